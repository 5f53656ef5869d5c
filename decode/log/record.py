"""The records inside one batch, as a table of positions, and as objects for those who want to look.

Knows: the record format of v2 (varints, deltas, headers). Does not know batches, compression or what a value means.
The walk is one kernel over arrays: a large cluster's metadata log has millions of records, and the judge wants columns.
Rule: every length is checked against the record, the record against the batch; one with holes (decode.holes) in its
structure is marked and stepped over, one whose own length is in a hole ends the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from wirecheck.decode.compiled import cached_njit
from wirecheck.decode.errors import BadLength, BadText, BadVarint, DecodeError, LeftoverBytes, Truncated
from wirecheck.decode.holes import Field, hidden

if TYPE_CHECKING:
    from collections.abc import Iterator

# Columns of a record table. Positions are in the field of the records (after decompression); lengths -1 where null.
OFFSET, TIMESTAMP_MS, KEY_AT, KEY_BYTES, VALUE_AT, VALUE_BYTES, HEADERS_AT, HEADERS, UNSEEN = range(9)
COLUMNS = 9
NOTHING_UNSEEN, CONTENT_UNSEEN, STRUCTURE_UNSEEN = range(3)

SMALLEST_RECORD_BYTES = 7  # length, attributes, two deltas, two lengths, header count
VARINT_BYTES, VARLONG_BYTES = 5, 10

_OK, TRUNCATED, _BAD_LENGTH, _BAD_VARINT, _LEFTOVER, _UNSEEN = range(6)
_ERRORS: dict[int, type[DecodeError]] = {
    TRUNCATED: Truncated,
    _BAD_LENGTH: BadLength,
    _BAD_VARINT: BadVarint,
    _LEFTOVER: LeftoverBytes,
}


@cached_njit
def read_zigzag(data: np.ndarray, at: int, end: int, most: int) -> tuple[int, int, int]:
    """(value, next position, status) of a signed varint of at most 5 bytes (32 bits) or 10 (64 bits)."""
    magnitude = 0  # without the sign bit, so that 64 bits fit
    sign = 0
    for i in range(most):
        if at + i >= end:
            return 0, at + i, TRUNCATED
        byte = int(data[at + i])
        if i == 0:
            sign = byte & 1
            magnitude = (byte & 0x7F) >> 1
        else:
            if i == most - 1 and byte > (0x0F if most == VARINT_BYTES else 0x01):
                return 0, at, _BAD_VARINT
            magnitude |= (byte & 0x7F) << (7 * i - 1)
        if byte < 0x80:
            return magnitude ^ -sign, at + i + 1, _OK
    return 0, at, _BAD_VARINT  # pragma: no cover -- the last byte was refused above


@cached_njit
def _field(data: np.ndarray, at: int, end: int, least: int) -> tuple[int, int, int]:
    """(length, begin, status) of a length-prefixed field that fits before `end`; -1 is null where `least` allows it."""
    length, begin, status = read_zigzag(data, at, end, VARINT_BYTES)
    if status != _OK:
        return 0, begin, status
    if length < least:
        return 0, at, _BAD_LENGTH
    if length > end - begin:
        return 0, at, TRUNCATED
    return length, begin, _OK


@cached_njit
def _headers(data: np.ndarray, at: int, end: int, count: int) -> tuple[int, int]:
    """(next position, status) behind `count` headers."""
    for _ in range(count):
        length, at, status = _field(data, at, end, 0)
        if status != _OK:
            return at, status
        length, at, status = _field(data, at + length, end, -1)
        if status != _OK:
            return at, status
        at += max(length, 0)
    return at, _OK


@cached_njit
def _record(data: np.ndarray, at: int, end: int, row: np.ndarray) -> tuple[int, int]:
    """(next position, status): what is between a record's length and its end, into `row`."""
    if at == end:
        return at, TRUNCATED
    row[TIMESTAMP_MS], at, status = read_zigzag(data, at + 1, end, VARLONG_BYTES)  # the attributes are unused
    if status != _OK:
        return at, status
    row[OFFSET], at, status = read_zigzag(data, at, end, VARINT_BYTES)
    if status != _OK:
        return at, status
    row[KEY_BYTES], row[KEY_AT], status = _field(data, at, end, -1)
    if status != _OK:
        return row[KEY_AT], status
    at = row[KEY_AT] + max(row[KEY_BYTES], 0)
    row[VALUE_BYTES], row[VALUE_AT], status = _field(data, at, end, -1)
    if status != _OK:
        return row[VALUE_AT], status
    count, at, status = read_zigzag(data, row[VALUE_AT] + max(row[VALUE_BYTES], 0), end, VARINT_BYTES)
    if status != _OK:
        return at, status
    if count < 0 or count > (end - at) // 2:
        return at, _BAD_LENGTH
    row[HEADERS_AT], row[HEADERS] = at, count
    at, status = _headers(data, at, end, count)
    if status == _OK and at != end:
        return at, _LEFTOVER
    return at, status


@cached_njit
def _structure_hidden(holes: np.ndarray, at: int, end: int, row: np.ndarray) -> bool:
    """Whether anything but the key and the value lies in a hole."""
    key_end = row[KEY_AT] + max(row[KEY_BYTES], 0)
    value_end = row[VALUE_AT] + max(row[VALUE_BYTES], 0)
    gaps = hidden(holes, at, row[KEY_AT]) + hidden(holes, key_end, row[VALUE_AT]) + hidden(holes, value_end, end)
    return bool(gaps > 0)


@cached_njit
def _walk(data: np.ndarray, holes: np.ndarray, at: int, end: int, table: np.ndarray) -> tuple[int, int, int]:
    """(records walked, position, status) over len(table) records."""
    for i in range(len(table)):
        row = table[i]
        begin = at
        length, at, status = _field(data, begin, end, 0)
        if hidden(holes, begin, min(begin + VARINT_BYTES, max(at, begin + 1))) > 0:
            return i, begin, _UNSEEN
        if status != _OK:
            return i, at, status
        stop = at + length
        place, status = _record(data, at, stop, row)
        row[UNSEEN] = NOTHING_UNSEEN
        if len(holes) and hidden(holes, at, stop) > 0:
            row[UNSEEN] = CONTENT_UNSEEN
            if status != _OK or _structure_hidden(holes, at, stop, row):
                row[:] = -1
                row[UNSEEN] = STRUCTURE_UNSEEN
                status = _OK
        if status != _OK:
            return i, place, status
        at = stop
    return len(table), at, (_OK if at == end else _LEFTOVER)


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
        for row in self.table.tolist():
            if row[UNSEEN] == STRUCTURE_UNSEEN:
                yield Record(row[OFFSET], row[TIMESTAMP_MS], None, None, (), unseen=True)
                continue
            key = self._content(row[KEY_AT], row[KEY_BYTES])
            value = self._content(row[VALUE_AT], row[VALUE_BYTES])
            headers = tuple(self._headers(row[HEADERS_AT], row[HEADERS]))
            yield Record(row[OFFSET], row[TIMESTAMP_MS], key, value, headers, unseen=row[UNSEEN] != NOTHING_UNSEEN)

    def _content(self, at: int, length: int) -> bytes | None:
        return self.field.bytes(at, at + length) if length >= 0 and self.field.known(at, at + length) else None

    def _headers(self, at: int, count: int) -> Iterator[tuple[str, bytes | None]]:
        data, end = self.field.data, len(self.field)
        for _ in range(count):
            length, at, _ok = _field(data, at, end, 0)
            try:
                name = self.field.bytes(at, at + length).decode()
            except UnicodeDecodeError as error:
                raise BadText(at, "headers") from error
            length, at, _ok = _field(data, at + length, end, -1)
            yield name, (self.field.bytes(at, at + length) if length >= 0 else None)
            at += max(length, 0)


def walk_records(field: Field, begin: int, end: int, count: int) -> Records:
    """Records of format v2 in [begin, end); offsets and timestamps are still deltas."""
    if count < 0 or count > (end - begin) // SMALLEST_RECORD_BYTES:
        raise BadLength(begin, "records")
    table = np.zeros((count, COLUMNS), np.int64)
    walked, at, status = _walk(field.data, field.holes, begin, end, table)
    if status == _UNSEEN:
        return Records(field, table[:walked], count - walked)
    if status != _OK:
        raise _ERRORS[status](at, "records")
    return Records(field, table, 0)
