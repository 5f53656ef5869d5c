"""Claims of the KRaft metadata log: TopicRecord binds, RemoveTopicRecord ends, in the order of epochs and offsets.

Knows: which Fetch answers carry the log and where its high watermark stands. Does not know which entries stand in the
end: that takes high watermarks and epochs seen elsewhere (`LogOrder`, put together from these claims by the scene).
Rule: every entry is claimed with its (epoch, offset), committed or not; time orders nothing here.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from decode.log.metadata_log import TOPIC_ID, TOPIC_NAME, Entries, field_entries
from decode.log.order import LogOrder
from decode.log.tables import LogTable, log_tables
from decode.wire import Messages
from streaming.judge.claim import SLOT_NS, Claim
from streaming.judge.extract.batch import Batch
from streaming.judge.extract.reduce import Column, Ints, Rows, constant, ids, lists, texts

SOURCE = "metadata-log"
SNAPSHOT = "snapshot:"
"""Before the place of what a snapshot says: it was written somewhere before."""


@dataclass(frozen=True)
class Part:
    """The log as one answer shows it."""

    message: int
    entries: Entries
    high_watermark: int


def claims(batch: Batch) -> Iterator[Rows]:
    yield from stated([part for part in answers(batch) if len(part.entries)], "")
    yield from stated([part for part in snapshots(batch) if len(part.entries)], SNAPSHOT)


def stated(parts: list[Part], how: str) -> Iterator[Rows]:
    """What records say; `how` stands before their places."""
    if not parts:
        return
    found = log_tables(joined([part.entries for part in parts]))
    message = np.repeat([part.message for part in parts], [len(part.entries) for part in parts])
    for name, rows in (("TopicRecord", bound), ("RemoveTopicRecord", ended), ("PartitionRecord", placed)):
        if name in found:
            yield rows(found[name], message[found[name].entry], how)


def orders(batch: Batch) -> Iterator[Claim]:
    """What each answer teaches about the order of the log."""
    for part in answers(batch):
        order = LogOrder()
        order.below(part.high_watermark)
        order.absorb(part.entries)
        seen = batch.sightings.at_rank(int(batch.sightings.rank[part.message]))
        slot = {f"at:{seen.ts_ns // SLOT_NS}": part.high_watermark}
        yield Claim("log_order", (seen.server,), seen, peak={**peaks(order), **slot})


def peaks(order: LogOrder) -> dict[str, Any]:
    """An order as values of which the greatest holds."""
    return {
        "high_watermark": order.high_watermark,
        **{f"start:{epoch}": -offset for epoch, offset in order.starts.items()},
        **{f"end:{epoch}": -offset for epoch, offset in order.ends.items()},
        **{f"mark:{offset}": list(marker) for offset, marker in order.markers.items()},
    }


def answers(batch: Batch) -> Iterator[Part]:
    tables = batch.tables("Fetch", "response")
    if not tables:
        return
    topics, partitions = tables["responses"], tables["responses.partitions"]
    by_id = topics.present("topic_id") & (topics["topic_id"] == np.frombuffer(TOPIC_ID, np.uint8)).all(axis=1)
    codes, names = topics["topic"].codes()
    by_name = codes == names.index(TOPIC_NAME) if TOPIC_NAME in names else np.zeros(len(topics), np.bool_)
    of_log = (by_id | by_name)[partitions.parent]
    records, high = partitions["records"], partitions["high_watermark"]
    for row in np.flatnonzero(of_log & (high >= 0)).tolist():
        field = records.field(row)
        if field is not None:
            watermark = int(high[row])
            yield Part(int(partitions.message[row]), field_entries(field, watermark), watermark)


def snapshots(batch: Batch) -> Iterator[Part]:
    """Beginnings of snapshots: a chunk that begins elsewhere does not begin with a batch, and is left out. Every record
    of a snapshot stands at its end.
    """
    tables = batch.tables("FetchSnapshot", "response")
    if not tables:
        return
    partitions = tables["topics.partitions"]
    records, end, epoch = (partitions[f] for f in ("unaligned_records", "snapshot_id.end_offset", "snapshot_id.epoch"))
    begins = (partitions["position"] == 0) & (partitions["error_code"] == 0) & (end > 0)
    for row in np.flatnonzero(begins).tolist():
        field = records.field(row)
        if field is not None:
            entries = field_entries(field)
            there = np.ones(len(entries), np.int64)
            entries = replace(
                entries,
                offset=there * int(end[row] - 1),
                epoch=there * int(epoch[row]),
                committed=there == 1,
                batches=(),
            )
            yield Part(int(partitions.message[row]), entries, int(end[row]))


def bound(table: LogTable, message: Ints, how: str) -> Rows:
    key = [
        texts(table["name"]),
        ids(table["topic_id"]),
        constant(SOURCE, len(table)),
        constant(None, len(table)),
        places(table, how),
    ]
    return Rows("binding", key, message, peak={"offset": table.offset, "epoch": table.epoch})


def ended(table: LogTable, message: Ints, how: str) -> Rows:
    key = [
        constant(None, len(table)),
        ids(table["topic_id"]),
        constant(SOURCE, len(table)),
        constant(None, len(table)),
        places(table, how),
    ]
    return Rows("deletion", key, message, peak={"offset": table.offset, "epoch": table.epoch})


def placed(table: LogTable, message: Ints, how: str) -> Rows:
    del how
    key = [
        ids(table["topic_id"]),
        Column(table["partition_id"]),
        constant(SOURCE, len(table)),
        Column(table["leader_epoch"]),
        Column(table["leader"]),
        lists(table["replicas"]),
        lists(table["isr"]),
    ]
    return Rows("partition", key, message, peak={"offset": table.offset, "epoch": table.epoch})


def places(table: LogTable, how: str) -> Column:
    """epoch@offset of each row."""
    names = [
        f"{how}{epoch}@{offset}" for epoch, offset in zip(table.epoch.tolist(), table.offset.tolist(), strict=True)
    ]
    unique = {name: code for code, name in enumerate(dict.fromkeys(names))}
    return Column(np.array([unique[name] for name in names], np.int64), list(unique))


def joined(parts: list[Entries]) -> Entries:
    """Entries of several answers as one run for the machine."""
    return Entries(
        messages_of([part.messages for part in parts]),
        np.concatenate([part.offset for part in parts]),
        np.concatenate([part.epoch for part in parts]),
        np.concatenate([part.timestamp_ms for part in parts]),
        np.concatenate([part.committed for part in parts]),
    )


def messages_of(parts: list[Messages]) -> Messages:
    return Messages(
        np.concatenate([part.data for part in parts]),
        shifted([part.at for part in parts]),
        np.concatenate([part.size for part in parts]),
        shifted([part.span_at for part in parts]),
        np.concatenate([part.span_offset for part in parts]),
        np.concatenate([part.span_length for part in parts]),
        np.concatenate([part.side for part in parts]),
        np.concatenate([part.key for part in parts]),
        np.concatenate([part.version for part in parts]),
        np.concatenate([part.correlation_id for part in parts]),
    )


def shifted(parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    lengths: Ints = np.concatenate([np.diff(part) for part in parts])
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
