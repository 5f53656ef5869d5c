"""The records of one v2 batch as a table of positions (DefaultRecord).

Every length is checked. A record with a hole in its structure is marked and skipped; one whose own length is in a hole
ends the table.
"""

from __future__ import annotations

from typing import Any, Final, final

from librt.vecs import vec
from mypy_extensions import i64

from wirecheck.decode.interpret.hole_search import hidden

# Columns of the table. Positions are in the field of the records (after decompression); lengths -1 where null.
OFFSET: Final = 0
TIMESTAMP_MS: Final = 1
KEY_AT: Final = 2
KEY_BYTES: Final = 3
VALUE_AT: Final = 4
VALUE_BYTES: Final = 5
HEADERS_AT: Final = 6
HEADERS: Final = 7
UNSEEN: Final = 8
COLUMNS: Final = 9

NOTHING_UNSEEN: Final = 0
CONTENT_UNSEEN: Final = 1
STRUCTURE_UNSEEN: Final = 2

VARINT_BYTES: Final = 5
VARLONG_BYTES: Final = 10

OK: Final = 0
TRUNCATED: Final = 1
BAD_LENGTH: Final = 2
BAD_VARINT: Final = 3
LEFTOVER: Final = 4
LENGTH_UNSEEN: Final = 5


@final
class Reader:
    """Numbers that stand one behind the other.

    The first that is wrong, or not whole before `end`, leaves a status and its place: from then on nothing is read.
    """

    def __init__(self, data: bytes, at: i64, end: i64) -> None:
        self.data = data
        self.at = at
        self.end = end
        self.status: i64 = OK

    def refuse(self, status: i64, at: i64) -> i64:
        self.status = status
        self.at = at
        return 0

    def zigzag(self, most: i64) -> i64:
        """A signed varint of at most 5 bytes (32 bits) or 10 (64 bits)."""
        if self.status != OK:
            return 0
        data, begin = self.data, self.at
        if begin < self.end:  # most are of one byte
            first = i64(data[begin])
            if first < 0x80:
                self.at = begin + 1
                return first >> 1 ^ -(first & 1)
        magnitude: i64 = 0  # without the sign, so that 64 bits fit
        sign: i64 = 0
        i: i64 = 0
        while True:  # the last byte that there may be ends it, or is refused
            if begin + i >= self.end:
                return self.refuse(TRUNCATED, begin + i)
            byte = i64(data[begin + i])
            if i == 0:
                sign = byte & 1
                magnitude = (byte & 0x7F) >> 1
            elif i == most - 1 and byte > (0x0F if most == VARINT_BYTES else 0x01):
                return self.refuse(BAD_VARINT, begin)
            else:
                magnitude |= (byte & 0x7F) << (7 * i - 1)
            i += 1
            if byte < 0x80:
                self.at = begin + i
                return magnitude ^ -sign

    def uvarint(self) -> i64:
        """An unsigned one of 32 bits."""
        data, begin = self.data, self.at
        if self.status != OK:
            return 0
        value: i64 = 0
        for i in range(i64(VARINT_BYTES)):
            if begin + i >= self.end:
                return self.refuse(TRUNCATED, begin)
            byte = i64(data[begin + i])
            value |= (byte & 0x7F) << (7 * i)
            if byte < 0x80 and value <= 0xFFFFFFFF:
                self.at = begin + i + 1
                return value
        return self.refuse(BAD_VARINT, begin)

    def length(self, least: i64) -> i64:
        """That of a field which fits before `end`; -1 is null, where `least` allows it."""
        begin = self.at
        length = self.zigzag(VARINT_BYTES)
        if self.status == OK and length < least:
            return self.refuse(BAD_LENGTH, begin)
        if self.status == OK and length > self.end - self.at:
            return self.refuse(TRUNCATED, begin)
        return length

    def step_over(self, length: i64) -> i64:
        """Where the field begins; the next number stands behind it."""
        begin = self.at
        self.at = begin + max(length, 0)
        return begin


@final
class RecordTable:
    """Fills a row for each record of a field's bytes from `begin` on.

    Afterwards `reader.at` and `reader.status` hold where and why it stopped.
    """

    def __init__(self, data: bytes, begin: i64, holes: Any, rows: Any) -> None:
        self.begin = begin
        self.holes: vec[i64] = holes
        self.rows: vec[i64] = rows
        self.filled: i64 = 0
        self.reader = Reader(data, 0, i64(len(data)))

    def fill(self) -> None:
        reader = self.reader
        end = reader.end
        while (self.filled + 1) * COLUMNS <= i64(len(self.rows)):
            begin = reader.at
            length = reader.length(0)
            if self.hidden(begin, min(begin + VARINT_BYTES, max(reader.at, begin + 1))):
                reader.refuse(LENGTH_UNSEEN, begin)
            if reader.status != OK:
                return
            reader.end = reader.at + length
            self.record(self.filled * COLUMNS)
            if reader.status != OK:
                return
            reader.at = reader.end
            reader.end = end
            self.filled += 1
        if reader.at != end:
            reader.refuse(LEFTOVER, reader.at)

    def hidden(self, at: i64, end: i64) -> bool:
        return len(self.holes) > 0 and hidden(self.holes, self.begin + at, self.begin + end) > 0

    def record(self, row: i64) -> None:
        """Reads one record. An error that a hole can have caused does not count against it."""
        reader, begin = self.reader, self.reader.at
        self.fields(row)
        if self.hidden(begin, reader.end):
            if reader.status != OK or self.structure_hidden(begin, row):
                self.blank(row)
                reader.status = OK
            else:
                self.rows[row + UNSEEN] = CONTENT_UNSEEN

    def fields(self, row: i64) -> None:
        """What is between a record's length and its end, into a row, if there is nothing to refuse."""
        reader, rows = self.reader, self.rows
        if reader.at == reader.end:
            reader.refuse(TRUNCATED, reader.at)
        else:
            reader.at += 1  # the attributes are unused
        rows[row + TIMESTAMP_MS] = reader.zigzag(VARLONG_BYTES)
        rows[row + OFFSET] = reader.zigzag(VARINT_BYTES)
        rows[row + KEY_BYTES] = reader.length(-1)
        rows[row + KEY_AT] = self.begin + reader.step_over(rows[row + KEY_BYTES])
        rows[row + VALUE_BYTES] = reader.length(-1)
        rows[row + VALUE_AT] = self.begin + reader.step_over(rows[row + VALUE_BYTES])
        count = reader.zigzag(VARINT_BYTES)
        if reader.status == OK and (count < 0 or count > (reader.end - reader.at) >> 1):
            reader.refuse(BAD_LENGTH, reader.at)
        rows[row + HEADERS_AT] = self.begin + reader.at
        rows[row + HEADERS] = count
        rows[row + UNSEEN] = NOTHING_UNSEEN
        while count > 0 and reader.status == OK:
            reader.step_over(reader.length(0))
            reader.step_over(reader.length(-1))
            count -= 1
        if reader.status == OK and reader.at != reader.end:
            reader.refuse(LEFTOVER, reader.at)

    def structure_hidden(self, begin: i64, row: i64) -> bool:
        """Whether anything but the key and the value lies in a hole."""
        rows, holes = self.rows, self.holes
        key_end = rows[row + KEY_AT] + max(rows[row + KEY_BYTES], 0)
        value_end = rows[row + VALUE_AT] + max(rows[row + VALUE_BYTES], 0)
        return (
            hidden(holes, self.begin + begin, rows[row + KEY_AT]) > 0
            or hidden(holes, key_end, rows[row + VALUE_AT]) > 0
            or hidden(holes, value_end, self.begin + self.reader.end) > 0
        )

    def blank(self, row: i64) -> None:
        for column in range(i64(UNSEEN)):
            self.rows[row + column] = -1
        self.rows[row + UNSEEN] = STRUCTURE_UNSEEN
