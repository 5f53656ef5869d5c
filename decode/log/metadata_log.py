"""Entries out of the records field of a raft Fetch response: frames of records, control records.

Entries are ordered by (epoch, offset), never by time: a fresh node reads the log hours later. What is refused or unseen
is reported with its place; everything around it is used. Branches and transactions: decode.log.log_order.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
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
from wirecheck.decode.holes import Field, pairs
from wirecheck.decode.log import frame_table
from wirecheck.decode.log.compression import LARGEST_OUTPUT_BYTES, RECORD_BYTES, REFUSED_BYTES
from wirecheck.decode.log.frame_table import FrameTable
from wirecheck.decode.log.record_table import OFFSET, TIMESTAMP_MS
from wirecheck.decode.log.records import Batch, alone, read_batches
from wirecheck.decode.wire import DATA, RECORD, Messages, offsets, pack, together

if TYPE_CHECKING:
    from collections.abc import Sequence

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


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """Entries of the metadata log, one row each, in the order of the field. Two are equal if they are the same."""

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


Known = dict[tuple[bytes, bytes], Entries]
"""What was read, by the bytes of a field or of a batch, and by the holes in them."""


def field_entries(field: Field, known: Known | None = None) -> Entries:
    """The entries in a records field. `known`: of fields that were read before. Nodes that read one log get the same
    batches, but not always as many together.
    """
    known = {} if known is None else known
    name = field.data.tobytes(), field.holes.tobytes()
    if name not in known:
        known[name] = _read(field, known)
    return known[name]


def _read(field: Field, known: Known) -> Entries:
    found = read_batches(field)
    if len(found.batches) == 1 and found.batches[0].size == len(field):
        return batch_entries(found.batches[0], LARGEST_OUTPUT_BYTES)[0]
    parts: list[Entries] = []
    budget = LARGEST_OUTPUT_BYTES  # for the whole field: a bomb in every batch is a bomb too
    for batch in found.batches:
        own = alone(batch)
        part, spent = batch_entries(own, budget) if batch.codec else (field_entries(own.field, known), 0)
        refused = tuple(replace(one, position=batch.position + one.position) for one in part.refused)
        parts.append(replace(part, refused=refused))
        budget = max(budget - spent, 0)
    whole = joined(parts)
    if found.refused is not None:
        refused_here = Refused(found.refused.at, -1, type(found.refused))
        whole = replace(whole, refused=(*whole.refused, refused_here))
    return replace(
        whole,
        unseen=whole.unseen + (found.unseen_from is not None),
        read_to=found.batches[-1].end if found.batches else 0,
        left_over=found.left_over,
    )


def joined(parts: Sequence[Entries]) -> Entries:
    """The entries of many fields as one, for one pass of the machine; `refused` keeps the positions in their fields."""
    if len(parts) < 2:
        return parts[0] if parts else nothing()
    return Entries(
        together([p.messages for p in parts]),
        np.concatenate([p.offset for p in parts]),
        np.concatenate([p.epoch for p in parts]),
        np.concatenate([p.timestamp_ms for p in parts]),
        tuple(refused for p in parts for refused in p.refused),
        sum(p.unseen for p in parts),
    )


@cache
def nothing() -> Entries:
    none = np.zeros(0, np.int64)
    return Entries(pack([], [], [], []), none, none, none)


def batch_entries(batch: Batch, budget: int) -> tuple[Entries, int]:
    """The entries of a batch that is alone in its field, and what it took of the budget of bytes to decompress it."""
    try:
        part = _part(batch, budget)
    except DecodeError as error:
        refused = Refused(0, batch.base_offset, type(error))
        nothing_of_it = replace(nothing(), refused=(refused,), read_to=batch.size)
        return nothing_of_it, REFUSED_BYTES if batch.codec else 0
    good = part.frames[:, frame_table.STATUS] == frame_table.OK
    hidden = part.frames[:, frame_table.STATUS] == frame_table.IN_HOLE
    offset = part.table[:, OFFSET]
    entries = Entries(
        _bodies(part, part.frames[good]),
        offset[good],
        np.full(good.sum(), batch.partition_leader_epoch),
        part.table[good, TIMESTAMP_MS],
        tuple(
            Refused(0, int(offset[i]), REASONS[int(part.frames[i, frame_table.STATUS])])
            for i in np.flatnonzero(~good & ~hidden)
        ),
        part.behind + int(hidden.sum()),
        batch.size,
    )
    return entries, max(len(part.field), batch.count * RECORD_BYTES) if batch.codec else 0


def bodies(batch: Batch) -> tuple[Messages, NDArray[np.int64], Records, NDArray[np.bool_]]:
    """Of a batch whose checksum is not asked for: its bodies, where in the field each begins, its records, and which of
    these have no body that can be read. Raises DecodeError.
    """
    records = batch.records()
    table = frames(records, control=batch.control)
    good = table[:, frame_table.STATUS] == frame_table.OK
    part = _Part(batch.control, records.field, records.table, table, records.unseen)
    return _bodies(part, table[good]), table[good, frame_table.BODY_AT], records, ~good


@dataclass(frozen=True, slots=True)
class _Part:
    """One batch: its records and the frame of each."""

    control: bool
    field: Field
    table: np.ndarray
    frames: np.ndarray  # int64[n, 5]
    behind: int  # records whose beginning lies in a hole


def _part(batch: Batch, budget: int) -> _Part:
    if batch.magic != 2:
        raise BadMagic(batch.position + 16, "magic")  # raft began with v2
    if batch.crc_valid is False:
        raise BadChecksum(batch.position, "crc")
    records: Records = batch.records(budget)
    table = frames(records, control=batch.control)
    return _Part(batch.control, records.field, records.table, table, records.unseen)


def _bodies(part: _Part, good: np.ndarray) -> Messages:
    """The bodies behind good frames, as a batch for the machine."""
    _, kind, version, body_at, body_end = good.T
    cuts = [_between(part.field.holes, begin, end) for begin, end in good[:, frame_table.BODY_AT :].tolist()]
    flat = np.array([span for spans in cuts for span in spans], np.int64).reshape(-1, 2)
    size = body_end - body_at
    missing = np.array([sum(length for _, length in spans) for spans in cuts], np.int64)
    return Messages(
        _kept(part.field, body_at, body_end),
        offsets(size - missing),
        size,
        offsets(np.array([len(spans) for spans in cuts], np.int64)),
        flat[:, 0],
        flat[:, 1],
        np.full(len(good), DATA if part.control else RECORD, np.int8),
        (_data_keys()[np.minimum(kind, 6)] if part.control else kind).astype(np.int16),
        version.astype(np.int16),
        np.zeros(len(good), np.int32),
    )


def _kept(field: Field, body_at: np.ndarray, body_end: np.ndarray) -> np.ndarray:
    """The bytes of all these bodies in a row, without the holes."""
    inside = np.zeros(len(field) + 1, np.int8)
    inside[body_at] += 1
    inside[body_end] -= 1
    there = np.cumsum(inside[:-1]) > 0
    for begin, end in field.holes:
        there[begin:end] = False
    kept: np.ndarray = field.data[there]
    return kept


def _between(holes: np.ndarray, begin: int, end: int) -> list[tuple[int, int]]:
    """What lies in holes of [begin, end), as (offset from begin, length)."""
    if not len(holes):
        return []
    first = int(np.searchsorted(holes[:, 1], begin, "right"))
    last = int(np.searchsorted(holes[:, 0], end, "left"))
    return [(max(a, begin) - begin, min(b, end) - max(a, begin)) for a, b in holes[first:last].tolist()]


@cache
def _data_keys() -> np.ndarray:
    """By control type, the index of its message in decode/schemas/other.txt."""
    names = re.findall(r"^- (\w+) data", schemas.text("other.txt"), re.MULTILINE)
    keys = [names.index(CONTROL_MESSAGES[kind]) if kind in CONTROL_MESSAGES else -1 for kind in range(7)]
    return np.array(keys, np.int64)
