"""Entries out of the records field of a raft Fetch response: frames of records, control records.

Entries are ordered by (epoch, offset), never by time: a fresh node reads the log hours later. What is refused or unseen
is reported with its place; everything around it is used. Branches and transactions: decode.log.log_order.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from librt.vecs import vec
from mypy_extensions import i64

from wirecheck.decode import schemas
from wirecheck.decode.errors import (
    BadChecksum,
    BadMagic,
    BadVarint,
    DecodeError,
    Truncated,
    UnexpectedNull,
    UnknownApi,
    UnknownVersion,
)
from wirecheck.decode.holes import Field, laid_out, pairs
from wirecheck.decode.log import frame_table
from wirecheck.decode.log.compression import LARGEST_OUTPUT_BYTES, REFUSED_BYTES
from wirecheck.decode.log.frame_table import FrameTable
from wirecheck.decode.log.record_table import OFFSET, TIMESTAMP_MS
from wirecheck.decode.log.records import Batch, read_batches
from wirecheck.decode.wire import DATA, RECORD, Messages, offsets, together

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from wirecheck.decode.log.record import Records

REASONS: dict[int, type[DecodeError]] = {
    frame_table.NULL: UnexpectedNull,
    frame_table.TRUNCATED: Truncated,
    frame_table.BAD_VARINT: BadVarint,
    frame_table.UNKNOWN_VERSION: UnknownVersion,
    frame_table.UNKNOWN_TYPE: UnknownApi,
}


def frames(records: Records, *, control: bool) -> np.ndarray:
    """int64[n, 5]: for each record its status, type, version, and where its body is."""
    rows = vec[i64](np.zeros(len(records) * frame_table.FRAME_COLUMNS, np.int64))
    data, holes = records.field.data.tobytes(), pairs(records.field.holes)
    FrameTable(data, holes, vec[i64](records.table.ravel()), rows).fill(control)
    return np.array(rows).reshape(-1, frame_table.FRAME_COLUMNS)


TOPIC_NAME = "__cluster_metadata"
TOPIC_ID = bytes(15) + b"\x01"  # Uuid.METADATA_TOPIC_ID, AAAAAAAAAAAAAAAAAAAAAQ

# The messages in control records.
CONTROL_MESSAGES = {
    2: "LeaderChangeMessage",
    3: "SnapshotHeaderRecord",
    4: "SnapshotFooterRecord",
    5: "KRaftVersionRecord",
    6: "VotersRecord",
}


@dataclass(frozen=True, slots=True)
class Refused:
    """A batch or a record that is none, with the rest of the field unharmed."""

    position: int  # in the records field
    offset: int  # of the record, or the first of the batch; -1 where no batch could be read
    reason: type[DecodeError]


@dataclass(frozen=True, slots=True)
class Entries:
    """Entries of the metadata log, one row each, in the order of the field."""

    messages: Messages  # their bodies without the frame: metadata records (RECORD), control messages (DATA)
    offset: NDArray[np.int64]
    epoch: NDArray[np.int64]  # the leader epoch of the batch
    timestamp_ms: NDArray[np.int64]
    refused: tuple[Refused, ...] = ()
    unseen: int = 0  # records that are there but lie in holes
    read_to: int = 0  # end of the last batch of the field whose end is known
    left_over: int = 0  # bytes of a cut-off batch behind it; other bytes behind it could not be read

    def __len__(self) -> int:
        return len(self.offset)


def field_entries(field: Field) -> Entries:
    """The entries in a records field."""
    found = read_batches(field)
    refused: list[Refused] = []
    parts: list[_Part] = []
    budget = LARGEST_OUTPUT_BYTES  # for the whole field: a bomb in every batch is a bomb too
    for batch in found.batches:
        try:
            parts.append(_part(batch, budget))
        except DecodeError as error:
            budget = max(budget - REFUSED_BYTES, 0) if batch.codec else budget
            refused.append(Refused(batch.position, batch.base_offset, type(error)))
            continue
        budget -= len(parts[-1].field) if batch.codec else 0
        refused.extend(parts[-1].refused())
    if found.refused is not None:
        refused.append(Refused(found.refused.at, -1, type(found.refused)))
    offset = np.concatenate([_NONE, *(p.table[p.good(), OFFSET] for p in parts)])
    return Entries(
        _bodies(parts),
        offset,
        np.concatenate([_NONE, *(np.full(p.good().sum(), p.epoch) for p in parts)]),
        np.concatenate([_NONE, *(p.table[p.good(), TIMESTAMP_MS] for p in parts)]),
        tuple(refused),
        sum(p.unseen for p in parts) + (found.unseen_from is not None),
        found.batches[-1].end if found.batches else 0,
        found.left_over,
    )


def joined(parts: Sequence[Entries]) -> Entries:
    """The entries of many fields as one, for one pass of the machine; `refused` keeps the positions in their fields."""
    parts = parts or [field_entries(laid_out(b""))]
    return Entries(
        together([p.messages for p in parts]),
        np.concatenate([p.offset for p in parts]),
        np.concatenate([p.epoch for p in parts]),
        np.concatenate([p.timestamp_ms for p in parts]),
        tuple(refused for p in parts for refused in p.refused),
        sum(p.unseen for p in parts),
    )


_NONE = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class _Part:
    """Reads one batch: its records and the frame of each."""

    epoch: int
    position: int
    control: bool
    field: Field
    table: np.ndarray
    frames: np.ndarray  # int64[n, 5]
    behind: int  # records whose beginning lies in a hole

    def good(self) -> np.ndarray:
        good: np.ndarray = self.frames[:, frame_table.STATUS] == frame_table.OK
        return good

    @property
    def unseen(self) -> int:
        return self.behind + int((self.frames[:, frame_table.STATUS] == frame_table.IN_HOLE).sum())

    def refused(self) -> Iterable[Refused]:
        for i in np.flatnonzero(~self.good() & (self.frames[:, frame_table.STATUS] != frame_table.IN_HOLE)):
            yield Refused(self.position, int(self.table[i, OFFSET]), REASONS[int(self.frames[i, frame_table.STATUS])])


def _part(batch: Batch, budget: int) -> _Part:
    if batch.magic != 2:
        raise BadMagic(batch.position + 16, "magic")  # raft began with v2
    if batch.crc_valid is False:
        raise BadChecksum(batch.position, "crc")
    records: Records = batch.records(budget)
    table = frames(records, control=batch.control)
    epoch = batch.partition_leader_epoch
    return _Part(epoch, batch.position, batch.control, records.field, records.table, table, records.unseen)


def _bodies(parts: list[_Part]) -> Messages:
    """The bodies behind good frames, as a batch for the machine."""
    frames = np.concatenate([np.zeros((0, frame_table.FRAME_COLUMNS), np.int64), *(p.frames[p.good()] for p in parts)])
    control = np.concatenate([np.zeros(0, np.bool_), *(np.full(p.good().sum(), p.control) for p in parts)])
    cuts = [cut for p in parts for cut in _cuts(p)]
    flat = np.array([span for spans in cuts for span in spans], np.int64).reshape(-1, 2)
    _, kind, version, body_at, body_end = frames.T
    size = body_end - body_at
    missing = np.array([sum(length for _, length in spans) for spans in cuts], np.int64)
    return Messages(
        np.concatenate([np.zeros(0, np.uint8), *(_kept(p) for p in parts)]),
        offsets(size - missing),
        size,
        offsets(np.array([len(spans) for spans in cuts], np.int64)),
        flat[:, 0],
        flat[:, 1],
        np.where(control, DATA, RECORD).astype(np.int8),
        np.where(control, _data_keys()[np.minimum(kind, 6)], kind).astype(np.int16),
        version.astype(np.int16),
        np.zeros(len(frames), np.int32),
    )


def _kept(part: _Part) -> np.ndarray:
    """The bytes of all good bodies in a row, without the holes."""
    _, _, _, body_at, body_end = part.frames[part.good()].T
    inside = np.zeros(len(part.field) + 1, np.int8)
    inside[body_at] += 1
    inside[body_end] -= 1
    there = np.cumsum(inside[:-1]) > 0
    for begin, end in part.field.holes:
        there[begin:end] = False
    kept: np.ndarray = part.field.data[there]
    return kept


def _cuts(part: _Part) -> Iterable[list[tuple[int, int]]]:
    """For each good body the spans (offset, length) that are missing in it."""
    bodies = part.frames[part.good()][:, frame_table.BODY_AT :].tolist()
    if not len(part.field.holes):
        return [[] for _ in bodies]
    return [_between(part.field.holes, begin, end) for begin, end in bodies]


def _between(holes: np.ndarray, begin: int, end: int) -> list[tuple[int, int]]:
    """What lies in holes of [begin, end), as (offset from begin, length)."""
    first = int(np.searchsorted(holes[:, 1], begin, "right"))
    last = int(np.searchsorted(holes[:, 0], end, "left"))
    return [(max(a, begin) - begin, min(b, end) - max(a, begin)) for a, b in holes[first:last].tolist()]


@cache
def _data_keys() -> np.ndarray:
    """By control type, the index of its message in decode/schemas/other.txt."""
    names = re.findall(r"^- (\w+) data", schemas.text("other.txt"), re.MULTILINE)
    keys = [names.index(CONTROL_MESSAGES[kind]) if kind in CONTROL_MESSAGES else -1 for kind in range(7)]
    return np.array(keys, np.int64)
