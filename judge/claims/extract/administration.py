"""Claims about CreateTopics requests that meet a rule of KIP-4, with the answer they got.

Knows: the rules that a request can break by itself, and those that show in its answer. Does not know which answer is
right, nor what became of a topic.
Rule: only what meets a rule becomes a claim; it is rare, so it is looked at one by one.
"""

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from wirecheck.decode.wire import RESPONSE
from wirecheck.judge.claims.batch import Batch
from wirecheck.judge.claims.extract.clients import who
from wirecheck.judge.claims.reduce import Column, Ints, Rows, constant, texts

if TYPE_CHECKING:
    from wirecheck.decode.columns import Table

DUPLICATE, UNAUTHORIZED, BOTH = "2 duplicate", "3 authorization", "4 assignment and counts"
LATE, NO_TIMEOUT, PARTLY = "5 timeout then created", "6 timeout not above 0", "7 partial result"
DEFAULT = -1
"""As a count: the broker's own, or given by the assignment."""
NONE, TIMED_OUT, UNSEEN = 0, 7, -1
REFUSED = (29, 31)
"""TOPIC_AUTHORIZATION_FAILED; CLUSTER_AUTHORIZATION_FAILED, in the first version."""
NO_FAILURE = (UNSEEN, NONE, TIMED_OUT, 36, 41)
"""Not seen, created, perhaps created, there already, asked of another than the controller."""
Bools = NDArray[np.bool_]


def claims(batch: Batch) -> Iterator[Rows]:
    tables = batch.tables("CreateTopics", "request")
    if not tables:
        return
    header, topics = tables[""], tables["topics"]
    names, parent = texts(topics["name"]), topics.parent
    errors = outcomes(batch, topics, names)
    pairs = Counter(zip(parent.tolist(), names.codes.tolist(), strict=True))
    twice = np.array([pairs[pair] > 1 for pair in zip(parent.tolist(), names.codes.tolist(), strict=True)], bool)
    counts = (topics["num_partitions"] != DEFAULT) | (topics["replication_factor"] != DEFAULT)
    both = (topics["assignments"] > 0) & counts
    hasty = (header["timeout_ms"] <= 0)[parent]
    refused = np.isin(errors, REFUSED)
    own_fault = twice | both | hasty | refused
    rules = (
        (DUPLICATE, twice),
        (UNAUTHORIZED, refused),
        (BOTH, both),
        (LATE, (errors == TIMED_OUT) & ~hasty),
        (NO_TIMEOUT, hasty),
        (PARTLY, partly(parent, errors) & ~own_fault),
    )
    for rule, met in rules:
        rows = np.flatnonzero(met)
        message = topics.message[rows]
        key = [*who(batch, message), names.take(rows), constant(rule, len(rows)), Column(errors[rows])]
        yield Rows("create_rule", key, message)


def partly(parent: Ints, errors: Ints) -> Bools:
    """Topics that were refused in a request of which others were created."""
    made = np.zeros(int(parent.max(initial=-1)) + 1, np.bool_)
    made[parent[errors == NONE]] = True
    failed: Bools = ~np.isin(errors, NO_FAILURE)
    return failed & made[parent]


def outcomes(batch: Batch, topics: "Table", names: Column) -> Ints:
    """How each topic of each request was answered."""
    tables = batch.tables("CreateTopics", "response")
    if not tables:
        return np.full(len(topics), UNSEEN, np.int64)
    answers = tables["topics"]
    said = texts(answers["name"])
    by_name = {
        (message, said.value(row)): int(answers["error_code"][row])
        for row, message in enumerate(answers.message.tolist())
    }
    responses = batch.partner(topics.message, RESPONSE).tolist()
    found = [by_name.get((response, names.value(row)), UNSEEN) for row, response in enumerate(responses)]
    return np.array(found, np.int64)
