"""Messages of formats v0 and v1, used before record batches: clients before 0.11, brokers up to 3.x.

A wrapper carries the last inner offset; inner ones are absolute in v0 and relative in v1 (KIP-31). A wrapper with log
append time (KIP-32) gives its time to all. As in Kafka's reader: no nested wrappers, one magic, at least one message.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np

from wirecheck.decode.errors import BadCompression, BadLength, BadMagic, LeftoverBytes, Truncated, UnexpectedNull
from wirecheck.decode.holes import Field, laid_out
from wirecheck.decode.log import compression
from wirecheck.decode.log.record import Records
from wirecheck.decode.log.record_table import COLUMNS, CONTENT_UNSEEN, NOTHING_UNSEEN, STRUCTURE_UNSEEN

OVERHEAD_BYTES = 12  # offset and size, before what the size counts
SMALLEST_BYTES = (14, 22)  # crc, magic, attributes, (timestamp), two lengths; by magic
CODEC_MASK = 0x07
LOG_APPEND_TIME = 0x08
_NO_TIMESTAMP = -1
_LENGTH_UNSEEN = -2
_UNSEEN_ROW = [-1] * (COLUMNS - 1) + [STRUCTURE_UNSEEN]


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a message set: a record, or the wrapper of some."""

    field: Field
    at: int  # where its offset begins
    size: int  # without offset and size

    @property
    def end(self) -> int:
        return self.at + OVERHEAD_BYTES + self.size

    @property
    def offset(self) -> int:
        return self.field.integer(self.at, 8)

    @property
    def crc(self) -> int:
        return self.field.integer(self.at + 12, 4) & 0xFFFFFFFF

    @property
    def magic(self) -> int:
        return self.field.integer(self.at + 16, 1)

    @property
    def attributes(self) -> int:
        return self.field.integer(self.at + 17, 1)

    @property
    def timestamp_ms(self) -> int:
        return self.field.integer(self.at + 18, 8) if self.magic else _NO_TIMESTAMP

    @property
    def content_at(self) -> int:
        return self.at + (26 if self.magic else 18)

    def crc_valid(self) -> bool:
        return zlib.crc32(self.field.data.data[self.at + 16 : self.end]) == self.crc

    def row(self) -> list[int]:
        """A row of a record table (decode.log.record)."""
        key_at, key_bytes = self._field(self.content_at)
        if key_bytes == _LENGTH_UNSEEN:
            return _UNSEEN_ROW
        value_at, value_bytes = self._field(key_at + max(key_bytes, 0))
        if value_bytes == _LENGTH_UNSEEN:
            return _UNSEEN_ROW
        end = value_at + max(value_bytes, 0)
        if end != self.end:
            raise LeftoverBytes(end, "records")
        unseen = NOTHING_UNSEEN if self.field.known(self.at, end) else CONTENT_UNSEEN
        return [self.offset, self.timestamp_ms, key_at, key_bytes, value_at, value_bytes, end, 0, unseen]

    def _field(self, at: int) -> tuple[int, int]:
        if at + 4 > self.end:
            raise Truncated(at, "records")
        if not self.field.known(at, at + 4):
            return at + 4, _LENGTH_UNSEEN
        length = self.field.integer(at, 4)
        if length < -1:
            raise BadLength(at, "records")
        if length > self.end - at - 4:
            raise Truncated(at, "records")
        return at + 4, length


def legacy_records(message: Message, limit: int) -> Records:
    """The record of a message, or the records of a wrapper."""
    row = message.row()
    codec = message.attributes & CODEC_MASK
    if codec == 0 or row[-1] == STRUCTURE_UNSEEN:
        return Records(message.field, np.array([row], np.int64))
    _, _, _, _, value_at, value_bytes, _, _, unseen = row
    if unseen:
        return Records(message.field, np.zeros((0, COLUMNS), np.int64), 1)
    if value_bytes < 0:
        raise UnexpectedNull(value_at, "records")
    block = message.field.bytes(value_at, value_at + value_bytes)
    inner = laid_out(compression.decompressed(codec, block, limit, magic=message.magic))
    rows = _inner_rows(inner, message.magic)
    table = np.array(rows, np.int64)
    if message.magic:
        table[:, 0] += np.array([message.offset]) - table[-1:, 0]  # arrays wrap, numbers would overflow
        if message.attributes & LOG_APPEND_TIME:
            table[:, 1] = message.timestamp_ms
    return Records(inner, table)


def _inner_rows(inner: Field, magic: int) -> list[list[int]]:
    rows, at = [], 0
    while at < len(inner):
        if at + OVERHEAD_BYTES + SMALLEST_BYTES[magic] > len(inner):
            raise Truncated(at, "records")
        message = Message(inner, at, inner.integer(at + 8, 4))
        if message.magic != magic:
            raise BadMagic(at + 16, "records")
        if message.size < SMALLEST_BYTES[magic]:
            raise BadLength(at + 8, "records")
        if message.end > len(inner):
            raise Truncated(at, "records")
        if message.attributes & CODEC_MASK:
            raise BadCompression(at + 17, "records")
        rows.append(message.row())
        at = message.end
    if not rows:
        raise BadLength(0, "records")
    return rows
