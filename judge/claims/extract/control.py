"""Claims of controllers: LeaderAndIsr, UpdateMetadata and StopReplica, and how brokers answer them.

Knows: where the ids, epochs and replicas stand in each version of the three, and which answers are refusals. Does not
know which controller is the right one.
Rule: a control request's word is its controller's, in its epoch; the receiver is named only where its answer counts.
What was refused is not said (`orders.py`).
"""

from collections.abc import Iterator

import numpy as np

from wirecheck.decode.columns import Table
from wirecheck.decode.wire import REQUEST
from wirecheck.judge.claims.batch import Batch, row_of
from wirecheck.judge.claims.extract.bindings import numbered, slots
from wirecheck.judge.claims.extract.orders import accepted, errors
from wirecheck.judge.claims.reduce import Column, Ints, Rows, constant, grouped, lists, texts

INCONSISTENT_TOPIC_ID = 103
DURING_DELETE = -2
"""As a leader: the topic is being deleted; as an epoch of StopReplica: whatever its epoch."""
CONTROL = ("LeaderAndIsr", "UpdateMetadata", "StopReplica")


def claims(batch: Batch) -> Iterator[Rows]:
    yield from accepted(batch, "LeaderAndIsr", states(batch, "LeaderAndIsr", "leader-and-isr"))
    yield from accepted(batch, "UpdateMetadata", states(batch, "UpdateMetadata", "update-metadata"))
    yield from accepted(batch, "StopReplica", stopped(batch))
    yield from refused(batch)
    for api in CONTROL:
        yield from requests(batch, api)


def controllers(table: Table) -> Column:
    """controller@epoch per row of the table of messages."""
    group, sample = grouped([Column(table["controller_id"]), Column(table["controller_epoch"])])
    _, codes = np.unique(group, return_inverse=True)
    names = [f"{table['controller_id'][row]}@{table['controller_epoch'][row]}" for row in sample.tolist()]
    return Column(codes.astype(np.int64).ravel(), names)


def states(batch: Batch, api: str, source: str) -> Iterator[Rows]:
    tables = batch.tables(api, "request")
    if not tables:
        return
    yield from ungrouped(batch, tables["ungrouped_partition_states"], tables[""], source)
    topics, partitions = tables["topic_states"], tables["topic_states.partition_states"]
    by = controllers(tables[""]).take(topics.parent)
    topic_id, message = numbered(topics), topics.message
    zero = ~topics["topic_id"].any(axis=1)
    receiver = batch.endpoint(message)
    endpoint = Column(np.where(zero, receiver.codes, len(receiver.values or ())), [*(receiver.values or ()), None])
    key = [texts(topics["topic_name"]), topic_id, constant(source, len(topics)), endpoint, by]
    deleting = np.zeros(len(topics), np.bool_)
    deleting[partitions.parent[partitions["leader"] == DURING_DELETE]] = True
    yield Rows("binding", key, message).where(~deleting)
    unnumbered = Column(np.where(zero, len(topic_id.values or ()) - 1, topic_id.codes), topic_id.values)
    gone = [key[0], unnumbered, key[2], endpoint, by]
    yield Rows("deletion", gone, message, slots(batch, message)).where(deleting)
    yield partition_rows(topics, partitions, source)


def ungrouped(batch: Batch, partitions: Table, header: Table, source: str) -> Iterator[Rows]:
    """Versions that repeat the topic's name per partition: older than ids."""
    message = partitions.message
    key = [
        texts(partitions["topic_name"]),
        constant(None, len(partitions)),
        constant(source, len(partitions)),
        batch.endpoint(message),
        controllers(header).take(partitions.parent),
    ]
    yield Rows("binding", key, message).where(partitions["leader"] != DURING_DELETE)


def partition_rows(topics: Table, partitions: Table, source: str) -> Rows:
    parent = partitions.parent
    key = [
        numbered(topics).take(parent),
        Column(partitions["partition_index"]),
        constant(source, len(partitions)),
        Column(partitions["leader_epoch"]),
        Column(partitions["leader"]),
        lists(partitions["replicas"]),
        lists(partitions["isr"]),
    ]
    tally = None
    if "is_new" in partitions.names:
        tally = Column(partitions["is_new"], [None, "is_new"])
    alive = topics["topic_id"].any(axis=1)[parent] & (partitions["leader"] != DURING_DELETE)
    return Rows("partition", key, partitions.message, tally).where(alive)


def stopped(batch: Batch) -> Iterator[Rows]:
    """StopReplica that deletes whatever the epoch: the topic is being deleted, and not merely moved."""
    tables = batch.tables("StopReplica", "request")
    if not tables:
        return
    topics, partitions = tables["topic_states"], tables["topic_states.partition_states"]
    message = partitions.message
    key = [
        texts(topics["topic_name"]).take(partitions.parent),
        constant(None, len(partitions)),
        constant("stop-replica", len(partitions)),
        batch.endpoint(message),
        constant(None, len(partitions)),
    ]
    deletes = partitions["delete_partition"] == 1
    ends = deletes & (partitions["leader_epoch"] == DURING_DELETE)
    yield Rows("deletion", key, message, slots(batch, message)).where(ends)
    by = controllers(tables[""]).take(topics.parent[partitions.parent])
    moved = [key[0], Column(partitions["partition_index"]), key[3], by, Column(partitions["leader_epoch"])]
    yield Rows("stopped", moved, message).where(deletes & (partitions["leader_epoch"] >= 0))


def refused(batch: Batch) -> Iterator[Rows]:
    """LeaderAndIsr answered INCONSISTENT_TOPIC_ID, and the orders so answered."""
    tables = batch.tables("LeaderAndIsr", "response")
    asked = batch.tables("LeaderAndIsr", "request")
    if not tables or not asked:
        return
    topics, errors = tables["topics"], tables["topics.partition_errors"]
    bad = (errors["error_code"] == INCONSISTENT_TOPIC_ID) & (batch.partner(errors.message, REQUEST) >= 0)
    header = asked[""]
    rows = np.flatnonzero(bad)
    at = row_of(header, batch.partner(errors.message[rows], REQUEST))
    rows, at = rows[at >= 0], at[at >= 0]
    message, request = errors.message[rows], batch.partner(errors.message[rows], REQUEST)
    by = controllers(header)
    key = [
        numbered(topics).take(errors.parent[rows]),
        Column(errors["partition_index"][rows]),
        batch.endpoint(message),
        by.take(at),
    ]
    yield Rows("id_refused", key, message)
    yield Rows("id_asked", key, request)


def requests(batch: Batch, api: str) -> Iterator[Rows]:
    """Who gives orders in which epoch, and how the receiver takes it."""
    tables = batch.tables(api, "request")
    if not tables:
        return
    header = tables[""]
    message = header.message
    key = [
        batch.endpoint(message),
        Column(header["controller_id"]),
        Column(header["controller_epoch"]),
        Column(kraft(header)),
        constant(api, len(header)),
        Column(batch.version(message)),
        Column(errors(batch, api, message)),
        batch.host(message),
    ]
    yield Rows("control", key, message, peak={"broker_epoch": broker_epoch(header)})


def kraft(header: Table) -> Ints:
    name = next((name for name in header.names if name.replace("_", "") == "iskraftcontroller"), None)
    return header[name] if name else np.zeros(len(header), np.int64)


def broker_epoch(header: Table) -> Ints:
    epochs: Ints = header["broker_epoch"]
    return epochs
