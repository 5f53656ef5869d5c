"""Claims about CreateTopics requests that break a rule, with the answer they got.

Knows: the rules of KIP-4 that a request can break by itself. Does not know which answer is right.
Rule: only requests that break a rule become claims; they are rare, so they are looked at one by one.
"""

from collections import Counter
from collections.abc import Iterator

import numpy as np

from decode.wire import RESPONSE
from streaming.judge.extract.batch import Batch
from streaming.judge.extract.clients import who
from streaming.judge.extract.reduce import Column, Rows, constant, texts

DUPLICATE, BOTH, NO_TIMEOUT = "2 duplicate", "4 assignment and counts", "6 timeout not above 0"
DEFAULT = -1
"""As a count: the broker's own, or given by the assignment."""


def claims(batch: Batch) -> Iterator[Rows]:
    tables = batch.tables("CreateTopics", "request")
    if not tables:
        return
    header, topics = tables[""], tables["topics"]
    names = texts(topics["name"])
    pairs = Counter(zip(topics.parent.tolist(), names.codes.tolist(), strict=True))
    twice = np.array([pairs[pair] > 1 for pair in zip(topics.parent.tolist(), names.codes.tolist(), strict=True)], bool)
    counts = (topics["num_partitions"] != DEFAULT) | (topics["replication_factor"] != DEFAULT)
    both = (topics["assignments"] > 0) & counts
    hasty = (header["timeout_ms"] <= 0)[topics.parent]
    for rule, broken in ((DUPLICATE, twice), (BOTH, both), (NO_TIMEOUT, hasty)):
        rows = np.flatnonzero(broken)
        message = topics.message[rows]
        told = [error_of(batch, int(topics.message[row]), names.value(row)) for row in rows.tolist()]
        errors = Column(np.array(told, np.int64))
        key = [*who(batch, message), names.take(rows), constant(rule, len(rows)), errors]
        yield Rows("create_rule", key, message)


def error_of(batch: Batch, request: int, name: str) -> int:
    """How a topic of a request was answered; -1 where the answer was not seen."""
    response = int(batch.partner(np.array([request]), RESPONSE)[0])
    tables = batch.tables("CreateTopics", "response")
    if response < 0 or not tables:
        return -1
    topics = tables["topics"]
    found = np.flatnonzero(topics.message == response)
    told = texts(topics["name"])
    return next((int(topics["error_code"][row]) for row in found.tolist() if told.value(row) == name), -1)
