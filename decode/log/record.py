"""The records of one batch: a table of positions (record_table.py), and objects for those who iterate.

Millions of records of a large cluster's log stay a table, because checks read columns. Batches and compression are not
known here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from librt.vecs import vec
from mypy_extensions import i64

from wirecheck.decode.errors import BadLength, BadText, BadVarint, DecodeError, LeftoverBytes, Truncated
from wirecheck.decode.holes import Field, pairs
from wirecheck.decode.log import record_table as columns
from wirecheck.decode.log.record_table import Reader, RecordTable

if TYPE_CHECKING:
    from collections.abc import Iterator

SMALLEST_RECORD_BYTES = 7  # length, attributes, two deltas, two lengths, header count

_ERRORS: dict[int, type[DecodeError]] = {
    columns.TRUNCATED: Truncated,
    columns.BAD_LENGTH: BadLength,
    columns.BAD_VARINT: BadVarint,
    columns.LEFTOVER: LeftoverBytes,
}


@dataclass(frozen=True, slots=True)
class Record:
    """One record as a person reads it. What lies in a hole is None, and `unseen` says that it is not null."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    unseen: bool = False


@dataclass(frozen=True, slots=True)
class Records:
    """The records of one batch: a row of positions for each."""

    field: Field  # the records' own bytes: those of the field, or what was decompressed
    table: np.ndarray  # int64[n, COLUMNS]
    unseen: int = 0  # records behind the last row: a hole took the place where they begin

    def __len__(self) -> int:
        return len(self.table)

    def __iter__(self) -> Iterator[Record]:
        data = self.field.data.tobytes()
        for offset, timestamp_ms, key_at, key_bytes, value_at, value_bytes, at, headers, unseen in self.table.tolist():
            if unseen == columns.STRUCTURE_UNSEEN:
                yield Record(offset, timestamp_ms, None, None, (), unseen=True)
                continue
            key, value = self._content(key_at, key_bytes), self._content(value_at, value_bytes)
            is_unseen = unseen != columns.NOTHING_UNSEEN
            yield Record(offset, timestamp_ms, key, value, tuple(_headers(data, at, headers)), unseen=is_unseen)

    def _content(self, at: int, length: int) -> bytes | None:
        return self.field.bytes(at, at + length) if length >= 0 and self.field.known(at, at + length) else None


def _headers(data: bytes, at: int, count: int) -> Iterator[tuple[str, bytes | None]]:
    reader = Reader(data, at, len(data))
    for _ in range(count):
        name_bytes = reader.length(0)
        name_at = reader.step_over(name_bytes)
        try:
            name = data[name_at : name_at + name_bytes].decode()
        except UnicodeDecodeError as error:
            raise BadText(name_at, "headers") from error
        length = reader.length(-1)
        begin = reader.step_over(length)
        yield name, (data[begin : begin + length] if length >= 0 else None)


def walk_records(field: Field, begin: int, end: int, count: int) -> Records:
    """Records of format v2 in [begin, end); offsets and timestamps are still deltas."""
    if count < 0 or count > (end - begin) // SMALLEST_RECORD_BYTES:
        raise BadLength(begin, "records")
    rows = vec[i64](np.zeros(count * columns.COLUMNS, np.int64))
    walk = RecordTable(field.bytes(begin, end), begin, pairs(field.holes), rows)
    walk.fill()
    table = np.array(rows).reshape(-1, columns.COLUMNS)[: walk.filled]
    if walk.reader.status == columns.LENGTH_UNSEEN:
        return Records(field, table, count - walk.filled)
    if walk.reader.status != columns.OK:
        raise _ERRORS[walk.reader.status](begin + walk.reader.at, "records")
    return Records(field, table, 0)
