"""Claims of orders with a type, and of topic ids where only a draft has some.

Knows: FULL orders of LeaderAndIsr, its v3 and StopReplica v2 of KIP-516 as drafted, and that some of the draft's
messages are a release's bytes with one unknown tag of 16 bytes per topic. Does not know what a broker does with an
order.
Rule: an order is claimed alike whether it was read as the draft or as the release: its connection may be seen from its
middle on only. A tag's bytes are believed to be an id only between brokers, and only if they have the form of a random
UUID: a proxy may add tags of its own to what clients send.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from wirecheck.decode.dialect import id_tags
from wirecheck.decode.message import Dialect
from wirecheck.judge.claims.batch import Batch
from wirecheck.judge.claims.extract.bindings import numbered
from wirecheck.judge.claims.extract.control import controllers
from wirecheck.judge.claims.extract.orders import accepted
from wirecheck.judge.claims.reduce import Column, Rows, constant, ids, texts

if TYPE_CHECKING:
    from wirecheck.decode.columns import Table

TYPES = ("unspecified", "incremental", "full")
"""Of LeaderAndIsr as drafted; other numbers mean unspecified too (AbstractControlRequest.Type)."""
STOP, DELETE = "stop", "delete"


def claims(batch: Batch) -> Iterator[Rows]:
    yield from accepted(batch, "LeaderAndIsr", ordered(batch))
    yield from accepted(batch, "StopReplica", stopped(batch))


def ordered(batch: Batch) -> Iterator[Rows]:
    """LeaderAndIsr: what a controller wants of each broker, and whether it means to say all or a part."""
    tables = batch.tables("LeaderAndIsr", "request")
    if not tables:
        return
    header, topics, partitions = tables[""], tables["topic_states"], tables["topic_states.partition_states"]
    of_topic, of_message = partitions.parent, topics.parent[partitions.parent]
    kind = np.where(header["type"] < len(TYPES), np.maximum(header["type"], 0), 0)
    key = [
        texts(topics["topic_name"]).take(of_topic),
        numbered(topics).take(of_topic),
        Column(partitions["partition_index"]),
        batch.endpoint(partitions.message),
        controllers(header).take(of_message),
        Column(kind[of_message], TYPES),
    ]
    drafted = batch.decoded.dialect[partitions.message] >= Dialect.KIP516_DRAFT
    named = topics["topic_id"].any(axis=1)[of_topic]
    full = kind == TYPES.index("full")
    yield Rows("ordered", key, partitions.message).where((drafted | full[of_message]) & named)
    yield Rows("full_order", [batch.endpoint(header.message), controllers(header)], header.message).where(full)


def stopped(batch: Batch) -> Iterator[Rows]:
    """StopReplica v2: which id a name had when its replicas were stopped, and whether they were deleted."""
    tables = batch.tables("StopReplica", "request")
    if not tables:
        return
    header, topics = tables[""], tables["topics"]
    topic_id = drafted_ids(topics, tables["topics._unknown_tagged_fields"])
    by = controllers(header).take(topics.parent)
    named = (batch.version(topics.message) == 2) & random_uuid(topic_id)
    name, number, source = texts(topics["name"]), ids(topic_id), constant("stop-replica", len(topics))
    yield Rows("binding", [name, number, source, constant(None, len(topics)), by], topics.message).where(named)
    partition, offsets = topics["partition_indexes"].flat()
    row = np.repeat(np.arange(len(topics)), np.diff(offsets))
    message = topics.message[row]
    how = Column(header["delete_partitions"][topics.parent[row]], (STOP, DELETE))
    key = [name.take(row), number.take(row), Column(partition), batch.endpoint(message), by.take(row), how]
    yield Rows("ordered", key, message).where(named[row])


def drafted_ids(topics: "Table", tags: "Table") -> NDArray[np.uint8]:
    """By topic its id, as a field of the draft or as a tag that the release does not know; zeros where it has none."""
    found: NDArray[np.uint8] = topics["topic_id"].copy()
    rows, extra = id_tags(tags)
    found[tags.parent[rows]] = extra
    return found


def random_uuid(ids: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Version 4, variant 2: what Kafka and the drafts make."""
    form: NDArray[np.bool_] = (ids[:, 6] >> 4 == 4) & (ids[:, 8] >> 6 == 2)
    return form
