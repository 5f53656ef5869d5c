"""Claims that describe a topic as `kafka-topics --describe` would: what `partition` claims do not say.

Knows: partition states of topics without ids, offline replicas, whether a topic is internal, and which operations the
asker may do on it. States of topics with ids are `partition` claims (`bindings.py`, `control.py`, `log.py`).
Rule: a claim is filed under the topic id where the message carries one, else under the name, never under both; offline
replicas are claimed only where there are some, and whether they still are is seen from the state's own later claims.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from wirecheck.decode.columns import Table
from wirecheck.judge.claims.batch import Batch
from wirecheck.judge.claims.extract.control import DURING_DELETE
from wirecheck.judge.claims.extract.orders import accepted
from wirecheck.judge.claims.reduce import Column, Rows, constant, ids, lists, texts

NOT_ASKED = (-(1 << 31), 0)
"""Authorized operations of an answer whose request did not ask for them; brokers before 2.5 say 0, which nobody who may
see the topic at all can get."""
ANSWERS = (("Metadata", "metadata"), ("DescribeTopicPartitions", "describe-topic-partitions"))
ORDERS = (("LeaderAndIsr", "leader-and-isr"), ("UpdateMetadata", "update-metadata"))
Bools = NDArray[np.bool_]


def claims(batch: Batch) -> Iterator[Rows]:
    for api, source in ANSWERS:
        tables = batch.tables(api, "response")
        if tables:
            topics, partitions = tables["topics"], tables["topics.partitions"]
            good = (topics["error_code"] == 0) & (topics["name"].length >= 0)
            yield described(topics, source).where(good)
            names = ("partition_index", "leader_id", "replica_nodes", "isr_nodes")
            yield from states(topics, partitions, source, good[partitions.parent], names)
    for api, source in ORDERS:
        tables = batch.tables(api, "request")
        if tables:
            yield from accepted(batch, api, ordered(tables, source))


def ordered(tables: dict[str, Table], source: str) -> Iterator[Rows]:
    """Both shapes of control requests: partitions under their topic, and, in the oldest, each with its topic's name."""
    names = ("partition_index", "leader", "replicas", "isr")
    topics, partitions = tables["topic_states"], tables["topic_states.partition_states"]
    yield from states(topics, partitions, source, partitions["leader"] != DURING_DELETE, names)
    single = tables["ungrouped_partition_states"]
    yield from states(single, single, source, single["leader"] != DURING_DELETE, names)


def states(topics: Table, partitions: Table, source: str, good: Bools, names: tuple[str, ...]) -> Iterator[Rows]:
    """Partition states without ids, and offline replicas with or without."""
    parent = partitions.parent if partitions is not topics else np.arange(len(topics))
    name, topic_id = names_and_ids(topics)
    index, leader, replicas, isr = (partitions[column] for column in names)
    said = constant(source, len(partitions))
    state = [Column(partitions["leader_epoch"]), Column(leader), lists(replicas), lists(isr)]
    unnumbered = topic_id.codes[parent] < 0
    yield Rows("unnumbered", [name.take(parent), Column(index), said, *state], partitions.message).where(
        good & unnumbered
    )
    if "offline_replicas" in partitions.names:
        offline = partitions["offline_replicas"]
        key = [name.take(parent), topic_id.take(parent), Column(index), said, lists(offline)]
        yield Rows("offline", key, partitions.message).where(good & (offline.count > 0))


def described(topics: Table, source: str) -> Rows:
    """What is said of the topic as a whole."""
    name, topic_id = names_and_ids(topics)
    internal = np.where(topics.present("is_internal"), topics["is_internal"], 2)
    operations, codes = np.unique(topics["topic_authorized_operations"], return_inverse=True)
    known = [None if value in NOT_ASKED else value for value in operations.tolist()]
    key = [
        name,
        topic_id,
        constant(source, len(topics)),
        Column(internal, [0, 1, None]),
        Column(codes.astype(np.int64).ravel(), known),
    ]
    return Rows("topic_described", key, topics.message)


def names_and_ids(topics: Table) -> tuple[Column, Column]:
    """Name and id by topic: the id where the message carries one that is not zero, and then no name."""
    name = texts(topics["name"] if "name" in topics.names else topics["topic_name"])
    if "topic_id" not in topics.names:
        return name, Column(np.full(len(topics), -1, np.int64), [None])
    found = ids(topics["topic_id"])
    numbered = topics["topic_id"].any(axis=1)
    return (
        Column(np.where(numbered, -1, name.codes), name.values),
        Column(np.where(numbered, found.codes, -1), [*(found.values or ()), None]),
    )
