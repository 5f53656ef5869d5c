"""The frames of metadata records (AbstractApiMessageSerde) and the keys of control records, as a table.

One row and one status per record; nothing read in a hole (decode.holes) is used.
"""

from __future__ import annotations

from typing import Any, Final, final

from librt.strings import read_i16_be
from librt.vecs import vec
from mypy_extensions import i64

from wirecheck.decode.interpret.hole_search import hidden
from wirecheck.decode.log import record_table as columns
from wirecheck.decode.log.record_table import Reader

FRAME_VERSION: Final = 1  # AbstractApiMessageSerde.DEFAULT_FRAME_VERSION; 0 was the preview in 2.8
CONTROL_KEY_BYTES: Final = 4  # version int16, type int16
FRAME_BYTES: Final = 15  # at most: three varints
LARGEST: Final = 0x7FFF  # types and versions are int16 wherever Kafka keeps them
FIRST_CONTROL: Final = 2  # LEADER_CHANGE
LAST_CONTROL: Final = 6  # KRAFT_VOTERS; ABORT and COMMIT are no part of a metadata log

# Columns of the table.
STATUS: Final = 0
TYPE: Final = 1
VERSION: Final = 2
BODY_AT: Final = 3
BODY_END: Final = 4
FRAME_COLUMNS: Final = 5

OK: Final = 0
NULL: Final = 1
TRUNCATED: Final = 2
BAD_VARINT: Final = 3
UNKNOWN_VERSION: Final = 4
UNKNOWN_TYPE: Final = 5
IN_HOLE: Final = 6

# Raft's records have no headers: one byte, their count.
NO_HEADERS_BYTES: Final = 1
# Results of `RecordHead.status`.
WHOLE: Final = 0
CUT_OFF: Final = 1
BROKEN: Final = 2
NO_FRAME: Final = -1  # in place of a type: nothing in it can be secret
FOREIGN: Final = -2  # anything can


@final
class FrameTable:
    """Fills a row for each row of a record table (record_table.py), both with positions in `data`."""

    def __init__(self, data: bytes, holes: Any, records: Any, rows: Any) -> None:
        self.data = data
        self.holes: vec[i64] = holes
        self.records: vec[i64] = records
        self.rows: vec[i64] = rows

    def fill(self, control: bool) -> None:
        records = self.records
        row: i64 = 0
        for record in range(i64(0), i64(len(records)), i64(columns.COLUMNS)):
            if records[record + columns.UNSEEN] == columns.STRUCTURE_UNSEEN:
                self.rows[row + STATUS] = IN_HOLE
            elif records[record + columns.VALUE_BYTES] < 0:
                self.rows[row + STATUS] = NULL
            elif control:
                self.control(record, row)
            else:
                self.frame(record, row)
            row += FRAME_COLUMNS

    def frame(self, record: i64, row: i64) -> None:
        """What opens a value: frame version, type, version."""
        begin = self.records[record + columns.VALUE_AT]
        end = begin + self.records[record + columns.VALUE_BYTES]
        reader = Reader(self.data, begin, end)
        status = self.opened(reader, row)
        self.close(row, status, begin, reader.at if status == OK else min(end, begin + FRAME_BYTES), end)

    def opened(self, reader: Reader, row: i64) -> i64:
        rows = self.rows
        if reader.uvarint() != FRAME_VERSION and reader.status == columns.OK:
            return UNKNOWN_VERSION
        kind = reader.uvarint()
        if kind > LARGEST:
            return UNKNOWN_TYPE
        version = reader.uvarint()
        if version > LARGEST:
            return UNKNOWN_VERSION
        if reader.status != columns.OK:
            return TRUNCATED if reader.status == columns.TRUNCATED else BAD_VARINT
        rows[row + TYPE] = kind
        rows[row + VERSION] = version
        rows[row + BODY_AT] = reader.at
        return OK

    def control(self, record: i64, row: i64) -> None:
        """A control record's type is in its key, its version opens the value and is part of the message."""
        records, rows = self.records, self.rows
        key, value = records[record + columns.KEY_AT], records[record + columns.VALUE_AT]
        status: i64 = TRUNCATED
        if records[record + columns.KEY_BYTES] >= CONTROL_KEY_BYTES and records[record + columns.VALUE_BYTES] >= 2:
            rows[row + TYPE] = i64(read_i16_be(self.data, key + 2)) & 0xFFFF
            rows[row + VERSION] = i64(read_i16_be(self.data, value)) & 0xFFFF
            rows[row + BODY_AT] = value
            status = OK if FIRST_CONTROL <= rows[row + TYPE] <= LAST_CONTROL else UNKNOWN_TYPE
        self.close(row, status, key, value + 2, value + records[record + columns.VALUE_BYTES])

    def close(self, row: i64, status: i64, read_from: i64, read_to: i64, end: i64) -> None:
        rows = self.rows
        unseen = len(self.holes) > 0 and hidden(self.holes, read_from, read_to) > 0
        rows[row + STATUS] = IN_HOLE if unseen else status
        rows[row + BODY_END] = end


@final
class RecordHead:
    """Where one record ends and what it holds, read from its first bytes; data before `here` has been captured."""

    def __init__(self, data: bytes, at: i64, here: i64) -> None:
        self.reader = Reader(data, at, here)
        self.here = here
        self.end: i64 = 0
        self.body_at: i64 = 0
        self.body_end: i64 = 0
        self.type: i64 = NO_FRAME
        self.version: i64 = 0

    def status(self, control: bool) -> i64:
        reader = self.reader
        length = reader.zigzag(columns.VARINT_BYTES)
        if reader.status == columns.OK and length < 1:
            return BROKEN
        self.end = reader.at + length
        reader.at += 1 if reader.status == columns.OK else 0  # the attributes
        reader.zigzag(columns.VARLONG_BYTES)
        reader.zigzag(columns.VARINT_BYTES)
        key_bytes = reader.zigzag(columns.VARINT_BYTES)
        if reader.status == columns.OK and key_bytes > (CONTROL_KEY_BYTES if control else 0):
            return BROKEN
        reader.step_over(key_bytes)
        value_bytes = reader.zigzag(columns.VARINT_BYTES)
        if reader.status != columns.OK:
            return CUT_OFF if reader.status == columns.TRUNCATED else BROKEN
        if reader.at + max(value_bytes, 0) + NO_HEADERS_BYTES != self.end:
            return BROKEN
        self.body_at = self.body_end = reader.at
        if control or value_bytes < 0:
            return WHOLE
        self.body_end += value_bytes
        return self.framed()

    def framed(self) -> i64:
        reader = self.reader
        reader.end = min(self.here, self.body_end)
        frame, self.type, self.version = reader.uvarint(), reader.uvarint(), reader.uvarint()
        if reader.status != columns.OK:
            return CUT_OFF if reader.end < self.body_end else BROKEN
        self.body_at = reader.at
        if frame != FRAME_VERSION:
            self.type = FOREIGN
        return WHOLE
