"""Claims of orders with a type, and of topic ids where only a draft has some.

Rule: an order is claimed alike whether it was read as the draft or as the release: its connection may be seen from its
middle on only. A tag's bytes are believed to be an id only between brokers, and only if they have the form of a random
UUID: a proxy may add tags of its own to what clients send.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from wirecheck.decode.dialect import id_tags
from wirecheck.judge.claims.batch import Batch, Lines
from wirecheck.judge.claims.extract.control import accepted, controllers
from wirecheck.judge.claims.reduce import Column, Ints, Rows, ids

if TYPE_CHECKING:
    from wirecheck.decode.columns import Table

TYPES = ("unspecified", "incremental", "full")
"""Of LeaderAndIsr as drafted; other numbers mean unspecified too (AbstractControlRequest.Type)."""
FULL = TYPES.index("full")
STOP, DELETE = "stop", "delete"


def claims(batch: Batch) -> Iterator[Rows]:
    yield from accepted(batch, "LeaderAndIsr", ordered(batch))
    yield from accepted(batch, "StopReplica", stopped(batch))


def ordered(batch: Batch) -> Iterator[Rows]:
    """LeaderAndIsr: the partitions that a controller assigns to each broker, and whether the request lists all of them
    or a part.
    """
    header = batch.lines("LeaderAndIsr", "request")
    partitions = batch.lines("LeaderAndIsr", "request", "topic_states.partition_states")
    if header and partitions:
        kind, key = kinds(partitions), ["topic_name", "topic_id", "partition_index", "@endpoint"]
        where = (batch.drafted(partitions.message) | (kind == FULL)) & partitions.given("topic_id")
        yield partitions.states("ordered", [*key, controllers(partitions), Column(kind, TYPES)], where)
        yield header.states("full_order", ["@endpoint", controllers(header)], kinds(header) == FULL)
        typed: list[str | Column] = ["@endpoint", controllers(header), "type"]
        yield header.states("order_type", typed, batch.drafted(header.message) & header.present("type"))


def kinds(lines: Lines) -> Ints:
    found: Ints = np.where(lines["type"] < len(TYPES), np.maximum(lines["type"], 0), 0)
    return found


def stopped(batch: Batch) -> Iterator[Rows]:
    """StopReplica v2: which id a name had when its replicas were stopped, and whether they were deleted."""
    topics = batch.lines("StopReplica", "request", "topics")
    tags = batch.lines("StopReplica", "request", "topics._unknown_tagged_fields")
    if not topics or not tags:
        return
    topic_id = drafted_ids(topics.table, tags.table)
    named = (batch.version(topics.message) == 2) & random_uuid(topic_id)
    name, number, by = topics.column("name"), ids(topic_id), controllers(topics)
    yield topics.states("binding", [name, number, "=stop-replica", "-", by], named, tally=topics.slots)
    partition, offsets = topics.table["partition_indexes"].flat()
    row = np.repeat(np.arange(len(topics)), np.diff(offsets))
    message = topics.message[row]
    how = Column(topics["delete_partitions"][row], (STOP, DELETE))
    key = [name.take(row), number.take(row), Column(partition), batch.endpoint(message), by.take(row), how]
    yield Rows("ordered", key, message).where(named[row])


def drafted_ids(topics: "Table", tags: "Table") -> NDArray[np.uint8]:
    """Per topic its ID, from a field of the draft or from a tag that the release does not know; zeros without one."""
    found: NDArray[np.uint8] = topics["topic_id"].copy()
    rows, extra = id_tags(tags)
    found[tags.parent[rows]] = extra
    return found


def random_uuid(ids: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Version 4, variant 2: what Kafka and the drafts make."""
    form: NDArray[np.bool_] = (ids[:, 6] >> 4 == 4) & (ids[:, 8] >> 6 == 2)
    return form
