"""Claims that describe a topic as `kafka-topics --describe` would: what `partition` claims do not say.

Knows: partition states of topics without ids, offline replicas, whether a topic is internal, and which operations the
asker may do on it. States of topics with ids are `partition` claims (`bindings.py`, `control.py`, `log_entries.py`).
Rule: a claim is filed under the topic id where the message carries one, else under the name, never under both; offline
replicas are claimed only where there are some, and whether they still are is seen from the state's own later claims.
"""

from collections.abc import Iterator

import numpy as np

from wirecheck.judge.claims.batch import Batch, Bools, Lines
from wirecheck.judge.claims.extract.bindings import REPORTS
from wirecheck.judge.claims.extract.control import DURING_DELETE, ORDERS, accepted
from wirecheck.judge.claims.reduce import Column, Rows

NOT_ASKED = (-(1 << 31), 0)
"""Authorized operations of an answer whose request did not ask for them; brokers before 2.5 say 0, which nobody who may
see the topic at all can get."""
SHAPES = ("topic_states.partition_states", "ungrouped_partition_states")
"""Of control requests: partitions under their topic, and, in the oldest, each with its topic's name."""


def claims(batch: Batch) -> Iterator[Rows]:
    for api, source in REPORTS:
        if topics := batch.lines(api, "response", "topics"):
            yield described(topics, source)
        if partitions := batch.lines(api, "response", "topics.partitions"):
            good = (partitions["^error_code"] == 0) & partitions.given("name")
            yield from states(partitions, source, good, "name", "leader_id replica_nodes isr_nodes")
    for api, source in ORDERS:
        for path in SHAPES:
            if partitions := batch.lines(api, "request", path):
                good = partitions["leader"] != DURING_DELETE
                yield from accepted(batch, api, states(partitions, source, good, "topic_name", "leader replicas isr"))


def states(partitions: Lines, source: str, good: Bools, name: str, state: str) -> Iterator[Rows]:
    """Partition states without ids, and offline replicas with or without."""
    named, topic_id, numbered = names_and_ids(partitions, name)
    key = [named, "partition_index", f"={source}", "leader_epoch", *state.split()]
    yield partitions.states("unnumbered", key, good & ~numbered)
    if partitions.has("offline_replicas"):
        key = [named, topic_id, "partition_index", f"={source}", "offline_replicas"]
        yield partitions.states("offline", key, good & (partitions.size("offline_replicas") > 0))


def described(topics: Lines, source: str) -> Rows:
    """What is said of the topic as a whole."""
    name, topic_id, _ = names_and_ids(topics, "name")
    internal = Column(topics["is_internal"]).only(topics.present("is_internal"))
    operations = topics["topic_authorized_operations"]
    key = [name, topic_id, f"={source}", internal, Column(operations).only(~np.isin(operations, NOT_ASKED))]
    return topics.states("topic_described", key, (topics["error_code"] == 0) & topics.given("name"))


def names_and_ids(lines: Lines, name: str) -> tuple[Column, Column | str, Bools]:
    """The id where the message carries one that is not zero, and then no name; and where it does."""
    if not lines.has("topic_id"):
        return lines.column(name), "-", np.zeros(len(lines), np.bool_)
    numbered = lines.given("topic_id")
    return lines.column(name).only(~numbered), lines.column("topic_id").only(numbered), numbered
