"""Claims about CreateTopics requests that meet a rule of KIP-4, with the answer they got; about elections and
reassignments that were requested.

Rule: only what meets a rule becomes a claim; it is rare, so it is looked at one by one.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from wirecheck.judge.claims.batch import Batch, Bools, Lines
from wirecheck.judge.claims.reduce import Column, Ints, Rows

DUPLICATE, UNAUTHORIZED, BOTH = "2 (duplicate)", "3 (authorization)", "4 (assignment and counts)"
NEITHER = "4 (neither assignment nor both counts)"
LATE, NO_TIMEOUT, PARTLY = "5 (timeout, then created)", "6 (no positive timeout)", "7 (partial result)"
OMITTED = "7 (no answer for a topic)"
DEFAULT = -1
"""As a count: the broker's own, or given by the assignment."""
DEFAULTS_SINCE = 4
"""The first version that may leave out counts (KIP-464)."""
PREFERRED = 0
"""The type of an election, and what versions without types have."""
OF_BOTH = ("error_code", "/error_code")
ASSIGNED = (
    ("CreateTopics", "topics.assignments", "broker_ids", "topics", ("error_code",)),
    ("AlterPartitionReassignments", "topics.partitions", "replicas", "responses.partitions", OF_BOTH),
)
"""API, what names the replicas of a partition, their column, what answers about the topic or the partition, and its
error codes.
"""
NONE, TIMED_OUT, UNSEEN, LEFT_OUT = 0, 7, -1, -2
"""LEFT_OUT: the response was captured and does not name the topic."""
REFUSED = (29, 31)
"""TOPIC_AUTHORIZATION_FAILED; CLUSTER_AUTHORIZATION_FAILED, in the first version."""
NO_FAILURE = (LEFT_OUT, UNSEEN, NONE, TIMED_OUT, 36, 41)
"""Not named in the response, not seen, created, perhaps created, there already, not asked of the controller."""


def claims(batch: Batch) -> Iterator[Rows]:
    yield from create_rules(batch)
    yield from odd_assignments(batch)
    if moving := batch.lines("ListPartitionReassignments", "response", "topics.partitions"):
        key = "name partition_index adding_replicas @endpoint"
        yield moving.states("reassigning", key, moving.size("adding_replicas") > 0)
    if elected := batch.lines("ElectLeaders", "response", "replica_election_results.partition_result"):
        preferred = (elected["error_code"] == 0) & (elected.other("election_type", absent=0) == PREFERRED)
        yield elected.states("elected", "topic partition_id @endpoint", preferred)


def odd_assignments(batch: Batch) -> Iterator[Rows]:
    """Partitions that were accepted with a broker twice among their replicas, or with a negative one."""
    for api, path, replicas, answers, errors in ASSIGNED:
        asked, answered = batch.lines(api, "request", path), batch.lines(api, "response", answers)
        if not asked or not answered:
            continue
        brokers, offsets = asked.table[replicas].flat()
        each = [brokers[one:other].tolist() for one, other in pairwise(offsets.tolist())]
        odd = np.array([len({*one}) < len(one) or min(one, default=0) < 0 for one in each], np.bool_)
        if not odd.any():
            continue
        words = [word for word in ("name", "partition_index") if answered.has(word)]
        good = np.all([answered[error] == 0 for error in errors], axis=0)
        accepted = {one for one, granted in zip(keyed(answered, answered.message, words), good, strict=True) if granted}
        took = np.array([one in accepted for one in keyed(asked, asked.partner, words)], np.bool_)
        yield asked.states("odd_assignment", ["@who", "name", "partition_index", replicas, f"={api}"], odd & took)


def keyed(lines: Lines, message: Ints, words: list[str]) -> Iterator[tuple[Any, ...]]:
    """Per row its message and these columns."""
    return zip(message.tolist(), *(lines.column(word).at(np.arange(len(lines))) for word in words), strict=True)


def create_rules(batch: Batch) -> Iterator[Rows]:
    topics = batch.lines("CreateTopics", "request", "topics")
    if topics is None:
        return
    names, parent = topics.column("name"), topics.table.parent
    errors = outcomes(topics, names)
    pairs = Counter(zip(parent.tolist(), names.codes.tolist(), strict=True))
    twice = np.array([pairs[pair] > 1 for pair in zip(parent.tolist(), names.codes.tolist(), strict=True)], bool)
    partitions, replicas = topics["num_partitions"] != DEFAULT, topics["replication_factor"] != DEFAULT
    assigned, as_drafted = topics["assignments"] > 0, topics["replica_assignment"] > 0
    both = assigned & (partitions | replicas)
    neither = ~(assigned | as_drafted) & ~(partitions & replicas) & (batch.version(topics.message) < DEFAULTS_SINCE)
    hasty = (topics["timeout_ms"] <= 0) & np.isin(errors, NO_FAILURE)  # a request that is wrong otherwise says so
    refused = np.isin(errors, REFUSED)
    own_fault = twice | both | neither | hasty | refused
    rules = (
        (DUPLICATE, twice),
        (UNAUTHORIZED, refused),
        (BOTH, both),
        (NEITHER, neither),
        (LATE, (errors == TIMED_OUT) & ~hasty),
        (NO_TIMEOUT, hasty),
        (PARTLY, partly(parent, errors) & ~own_fault),
        (OMITTED, errors == LEFT_OUT),
    )
    for rule, met in rules:
        yield topics.states("create_rule", ["@who", names, f"={rule}", Column(errors)], met)


def partly(parent: Ints, errors: Ints) -> Bools:
    """Topics that were refused in a request of which others were created."""
    made = np.zeros(int(parent.max(initial=-1)) + 1, np.bool_)
    made[parent[errors == NONE]] = True
    failed: Bools = ~np.isin(errors, NO_FAILURE)
    return failed & made[parent]


def outcomes(topics: Lines, names: Column) -> Ints:
    """How each topic of each request was answered."""
    answers, by_name = topics.batch.lines("CreateTopics", "response", "topics"), dict[tuple[int, Any], int]()
    whole = topics.batch.lines("CreateTopics", "response")
    unsaid = dict.fromkeys(whole.message.tolist() if whole else (), LEFT_OUT)
    if answers:
        answered, messages, errors = answers.column("name"), answers.message.tolist(), answers["error_code"].tolist()
        by_name = {(message, answered.value(row)): errors[row] for row, message in enumerate(messages)}
        unsaid |= {message: UNSEEN for message, name in by_name if name is None}
    pairs = [(response, names.value(row)) for row, response in enumerate(topics.partner.tolist())]
    found = [
        by_name.get((response, name), UNSEEN if name is None else unsaid.get(response, UNSEEN))
        for response, name in pairs
    ]
    return np.array(found, np.int64)
