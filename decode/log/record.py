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
from wirecheck.decode.log.record_table import (
    BAD_LENGTH,
    BAD_VARINT,
    COLUMNS,
    HEADERS,
    HEADERS_AT,
    KEY_AT,
    KEY_BYTES,
    LEFTOVER,
    LENGTH_UNSEEN,
    NOTHING_UNSEEN,
    OFFSET,
    OK,
    STRUCTURE_UNSEEN,
    TIMESTAMP_MS,
    TRUNCATED,
    UNSEEN,
    VALUE_AT,
    VALUE_BYTES,
    Reader,
    RecordTable,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

SMALLEST_RECORD_BYTES = 7  # length, attributes, two deltas, two lengths, header count

_ERRORS: dict[int, type[DecodeError]] = {
    TRUNCATED: Truncated,
    BAD_LENGTH: BadLength,
    BAD_VARINT: BadVarint,
    LEFTOVER: LeftoverBytes,
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
        for row in self.table.tolist():
            if row[UNSEEN] == STRUCTURE_UNSEEN:
                yield Record(row[OFFSET], row[TIMESTAMP_MS], None, None, (), unseen=True)
                continue
            key = self._content(row[KEY_AT], row[KEY_BYTES])
            value = self._content(row[VALUE_AT], row[VALUE_BYTES])
            headers = tuple(_headers(data, row[HEADERS_AT], row[HEADERS]))
            yield Record(row[OFFSET], row[TIMESTAMP_MS], key, value, headers, unseen=row[UNSEEN] != NOTHING_UNSEEN)

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
    rows = vec[i64](np.zeros(count * COLUMNS, np.int64))
    walk = RecordTable(field.bytes(begin, end), begin, pairs(field.holes), rows)
    walk.fill()
    table = np.array(rows).reshape(-1, COLUMNS)[: walk.filled]
    if walk.reader.status == LENGTH_UNSEEN:
        return Records(field, table, count - walk.filled)
    if walk.reader.status != OK:
        raise _ERRORS[walk.reader.status](begin + walk.reader.at, "records")
    return Records(field, table, 0)
