"""Claims of controllers: LeaderAndIsr, UpdateMetadata and StopReplica, and how brokers answer them.

Rule: a control request is a statement of its controller in its epoch; the receiver is named only where its response
counts. A request that was rejected (31 CLUSTER_AUTHORIZATION_FAILED, 11 STALE_CONTROLLER_EPOCH, 77 STALE_BROKER_EPOCH,
...) states nothing about topics. One whose response was not captured makes claims of a kind of its own, with its
sender's host; they wait until the sender is known (`check_context.py`).
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from wirecheck.decode.columns import value_per
from wirecheck.decode.wire import REQUEST, RESPONSE
from wirecheck.judge.claims.batch import Batch, Lines
from wirecheck.judge.claims.extract import bindings
from wirecheck.judge.claims.kinds import UNANSWERED
from wirecheck.judge.claims.reduce import Column, Ints, Rows, constant, spelled

INCONSISTENT_TOPIC_ID = 103
DURING_DELETE = -2
"""As a leader: the topic is being deleted; as an epoch of StopReplica: whatever its epoch."""
ORDERS = (("LeaderAndIsr", "leader-and-isr"), ("UpdateMetadata", "update-metadata"))
SHAPES = ("topic_states.partition_states", "ungrouped_partition_states")
"""Partitions under their topic, and, in the oldest requests, each with its topic's name."""
ANSWERS = ("topics.partition_errors", "partition_errors")
"""Partitions of an answer under their topic, and, in the draft, each with its topic."""
CONTROL = tuple((api, "") for api in ("LeaderAndIsr", "UpdateMetadata", "StopReplica"))
ACCEPTED, NOT_SEEN = 0, -1


def claims(batch: Batch) -> Iterator[Rows]:
    for api, source in ORDERS:
        yield from accepted(batch, api, states(batch, api, source))
        for _, partitions in batch.each("request", [(api, path) for path in SHAPES]):
            good = partitions["leader"] != DURING_DELETE
            unnumbered = bindings.states(partitions, source, good, "topic_name", "leader replicas isr")
            yield from accepted(batch, api, unnumbered)
    yield from accepted(batch, "StopReplica", stopped(batch))
    yield from refused(batch)
    for api, header in batch.each("request", CONTROL):
        yield requests(header, api)


def errors(batch: Batch, api: str, message: Ints) -> Ints:
    """Per request the top-level error of its response; NOT_SEEN without a captured response."""
    answers = batch.tables(api, "response")
    if not answers:
        return np.full(len(message), NOT_SEEN, np.int64)
    return value_per(batch.partner(message, RESPONSE), answers[""], "error_code", absent=NOT_SEEN)


def accepted(batch: Batch, api: str, stated: Iterable[Rows]) -> Iterator[Rows]:
    """What control requests state, as far as they were accepted. Requests that wait for their sender have a kind of
    their own.
    """
    for rows in stated:
        error = errors(batch, api, rows.message)
        if (error == ACCEPTED).all():
            yield rows
            continue
        yield rows.where(error == ACCEPTED)
        waiting = rows.where(error == NOT_SEEN)
        yield replace(waiting, kind=f"{UNANSWERED}{rows.kind}", key=[*waiting.key, batch.host(waiting.message)])


def controllers(lines: Lines) -> Column:
    """controller@epoch per row."""
    return spelled("{}@{}".format, lines.column("/controller_id"), lines.column("/controller_epoch"))


def states(batch: Batch, api: str, source: str) -> Iterator[Rows]:
    if single := batch.lines(api, "request", SHAPES[1]):
        key = ["topic_name", "-", f"={source}", "@endpoint", controllers(single)]
        yield single.states("binding", key, single["leader"] != DURING_DELETE)
    topics = batch.lines(api, "request", "topic_states")
    partitions = batch.lines(api, "request", SHAPES[0])
    if not topics or not partitions:
        return
    numbered, gone = topics.given("topic_id"), partitions["leader"] == DURING_DELETE
    sender = [f"={source}", topics.column("@endpoint").only(~numbered), controllers(topics)]
    near, twice = bindings.damaged_ids(topics)
    deleting = near | twice
    deleting[partitions.table.parent[gone]] = True
    yield topics.states("binding", ["topic_name", bindings.stated_ids(topics), *sender], ~deleting, tally=topics.slots)
    key = ["topic_name", topics.column("topic_id").only(numbered), *sender]
    yield topics.states("deletion", key, deleting & ~near & ~twice, tally=topics.slots)
    tally = Column(partitions["is_new"], [None, "is_new"]) if partitions.has("is_new") else None
    state = f"topic_id partition_index ={source} leader_epoch leader replicas isr"
    yield partitions.states("partition", state, partitions.given("topic_id") & ~gone, tally=tally)


def stopped(batch: Batch) -> Iterator[Rows]:
    """StopReplica that deletes whatever the epoch: the topic is being deleted, and not merely moved."""
    if partitions := batch.lines("StopReplica", "request", "topic_states.partition_states"):
        deletes, epoch = partitions["delete_partition"] == 1, partitions["leader_epoch"]
        ends = deletes & (epoch == DURING_DELETE)
        yield partitions.states("deletion", "topic_name - =stop-replica @endpoint -", ends, tally=partitions.slots)
        key = ["topic_name", "partition_index", "@endpoint", controllers(partitions), "leader_epoch"]
        yield partitions.states("stopped", key, deletes & (epoch >= 0))


def refused(batch: Batch) -> Iterator[Rows]:
    """LeaderAndIsr answered INCONSISTENT_TOPIC_ID, and the orders so answered."""
    for _, partitions in batch.each("response", [("LeaderAndIsr", path) for path in ANSWERS]):
        if partitions.header is None or not partitions.has("topic_id"):
            continue
        by, known = partitions.other_column(controllers(partitions.header))
        mismatch = known & (partitions["error_code"] == INCONSISTENT_TOPIC_ID)
        rows = partitions.states("id_refused", ["topic_id", "partition_index", "@endpoint", by], mismatch)
        yield rows
        yield replace(rows, kind="id_asked", message=batch.partner(rows.message, REQUEST))


def requests(header: Lines, api: str) -> Rows:
    """Who gives orders in which epoch, and how the receiver takes it."""
    kraft = next((name for name in header.table.names if name.replace("_", "") == "iskraftcontroller"), None)
    is_kraft, error = kraft or constant(0, len(header)), Column(errors(header.batch, api, header.message))
    drafted = header.batch.drafted(header.message).astype(np.int64)
    named = Column(drafted, [api, f"{api} (draft)"])  # its versions are of no release
    key = ["@endpoint", "controller_id", "controller_epoch", is_kraft, named, "@version", error, "@host"]
    return header.states("control", key)
