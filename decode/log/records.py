"""Record batches of all formats: message sets v0 and v1 (with wrapper messages) and batches v2.

A batch that is cut off at the end of the field is left over. A header in a hole ends the walk with `unseen_from`; a
value in one is None and marked. Counts and lengths are checked before anything is allocated. Formats: Kafka's
DefaultRecordBatch, DefaultRecord, AbstractLegacyRecordBatch, LegacyRecord; KIP-31, KIP-32, KIP-98.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from wirecheck.decode.errors import BadCompression, BadLength, BadMagic, DecodeError
from wirecheck.decode.holes import Field, laid_out
from wirecheck.decode.log import compression as codecs
from wirecheck.decode.log.checksum import crc32c
from wirecheck.decode.log.legacy_records import (
    CODEC_MASK,
    LOG_APPEND_TIME,
    OVERHEAD_BYTES,
    SMALLEST_BYTES,
    Message,
    legacy_records,
)
from wirecheck.decode.log.record import Records, walk_records
from wirecheck.decode.log.record_table import COLUMNS, OFFSET, STRUCTURE_UNSEEN, TIMESTAMP_MS, UNSEEN

if TYPE_CHECKING:
    from collections.abc import Iterable

TO_MAGIC_BYTES = 17  # Records.HEADER_SIZE_UP_TO_MAGIC
HEADER_BYTES = 61  # DefaultRecordBatch.RECORD_BATCH_OVERHEAD
_SMALLEST_BYTES = (*SMALLEST_BYTES, HEADER_BYTES - OVERHEAD_BYTES)  # by magic
_HEADER = struct.Struct(">qiibIhiqqqhii")
_SUMMED_FROM = 21  # the sum begins at the attributes: a leader writes its epoch without a new sum

_CONTROL = 0x20


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch of a records field; in formats v0 and v1, one message."""

    field: Field
    position: int  # in the field
    size: int  # in the field, offset and size included
    magic: int
    base_offset: int  # v0 and v1: the message's own, which is the last one of a wrapper
    crc: int
    attributes: int
    last_offset: int
    max_timestamp: int
    base_timestamp: int = -1
    partition_leader_epoch: int = -1
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    count: int = -1  # records in it by its own word; -1 in v0 and v1, which do not say

    @property
    def end(self) -> int:
        return self.position + self.size

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def compression(self) -> str:
        """Kafka's name; BadCompression for the three codes that were never given out."""
        if self.codec >= len(codecs.NAMES):
            raise BadCompression(self.position, "attributes")
        return codecs.NAMES[self.codec]

    @property
    def control(self) -> bool:
        return self.magic == 2 and bool(self.attributes & _CONTROL)

    @property
    def crc_valid(self) -> bool | None:
        """Whether the sum is that of the bytes; None where some were left out."""
        if not self.field.known(self.position, self.end):
            return None
        if self.magic < 2:
            return self._message().crc_valid()
        return crc32c(self.field.bytes(self.position + _SUMMED_FROM, self.end)) == self.crc

    def records(self, limit: int = codecs.LARGEST_OUTPUT_BYTES) -> Records:
        """Its records, decompressed into at most `limit` bytes."""
        try:
            return self._records(limit) if self.magic == 2 else legacy_records(self._message(), limit)
        except DecodeError as error:
            inside = error.at if self.codec == 0 else self.position  # places inside a compressed block say nothing
            raise type(error)(inside, "records") from error

    def _message(self) -> Message:
        return Message(self.field, self.position, self.size - OVERHEAD_BYTES)

    def _records(self, limit: int) -> Records:
        begin = self.position + HEADER_BYTES
        if self.codec == 0:
            records = walk_records(self.field, begin, self.end, self.count)
        elif not self.field.known(begin, self.end):
            return Records(self.field, np.zeros((0, COLUMNS), np.int64), max(self.count, 0))
        else:
            inner = laid_out(codecs.decompressed(self.codec, self.field.bytes(begin, self.end), limit))
            records = walk_records(inner, 0, len(inner), self.count)
        table = records.table
        table[:, OFFSET] += self.base_offset
        table[:, TIMESTAMP_MS] += self.base_timestamp
        if self.attributes & LOG_APPEND_TIME:
            table[:, TIMESTAMP_MS] = self.max_timestamp
        table[table[:, UNSEEN] == STRUCTURE_UNSEEN, :UNSEEN] = -1
        return records


@dataclass(frozen=True, slots=True)
class Batches:
    """What a records field holds."""

    batches: tuple[Batch, ...]
    left_over: int = 0  # bytes of a cut-off batch at the end
    unseen_from: int | None = None  # where a hole took a header and with it all that follows
    refused: DecodeError | None = None  # why the walk ended before the end


def batches(kept: bytes | memoryview | np.ndarray, left_out: Iterable[tuple[int, int]] = ()) -> Batches:
    """The batches of a records field; raises for the first that is none."""
    found = read_batches(laid_out(kept, left_out))
    if found.refused is not None:
        raise found.refused
    return found


def read_batches(field: Field) -> Batches:
    """The batches of a records field up to the first that is none, which is told, not raised."""
    found: list[Batch] = []
    at, end = 0, len(field)
    while end - at >= TO_MAGIC_BYTES:
        if not field.known(at, at + TO_MAGIC_BYTES):
            return Batches(tuple(found), 0, at)
        try:
            size, magic = size_and_magic(field, at)
        except DecodeError as error:
            return Batches(tuple(found), refused=error)
        if size > end - at:
            break
        header_end = at + (HEADER_BYTES if magic == 2 else OVERHEAD_BYTES + SMALLEST_BYTES[magic] - 8)
        if not field.known(at, header_end):
            return Batches(tuple(found), 0, at)
        found.append(header(field, at))
        at = found[-1].end
    return Batches(tuple(found), end - at)


def size_and_magic(field: Field, at: int) -> tuple[int, int]:
    """The size of a whole batch, and its format, from its first TO_MAGIC_BYTES; raises if it is none."""
    size, magic = field.integer(at + 8, 4), field.integer(at + 16, 1)
    if not 0 <= magic <= 2:
        raise BadMagic(at + 16, "magic")
    if size < _SMALLEST_BYTES[magic]:
        raise BadLength(at + 8, "size")
    return OVERHEAD_BYTES + size, magic


def header(field: Field, at: int) -> Batch:
    """The batch that begins here; its records need not be there yet."""
    size, magic = size_and_magic(field, at)
    if magic < 2:
        m = Message(field, at, size - OVERHEAD_BYTES)
        return Batch(field, at, size, magic, m.offset, m.crc, m.attributes, m.offset, m.timestamp_ms)
    (base_offset, _, epoch, magic, crc, attributes, last_delta, base_ms, max_ms, producer_id, producer_epoch, sequence,
     count) = _HEADER.unpack_from(field.data.data, at)  # fmt: skip
    return Batch(
        field, at, size, magic, base_offset, crc, attributes, base_offset + last_delta, max_ms, base_ms, epoch,
        producer_id, producer_epoch, sequence, count,
    )  # fmt: skip
