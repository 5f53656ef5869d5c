"""Record batches of format v2, which raft began with; of older ones (message sets v0 and v1) where they end.

A batch that is cut off at the end of the field is left over. A header in a hole ends the walk with `unseen_from`; a
value in one is None and marked. Counts and lengths are checked before anything is allocated. Formats: Kafka's
DefaultRecordBatch, DefaultRecord, AbstractLegacyRecordBatch; KIP-98.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace

import numpy as np

from wirecheck.decode.errors import BadLength, BadMagic, DecodeError
from wirecheck.decode.holes import Field, laid_out
from wirecheck.decode.log import compression as codecs
from wirecheck.decode.log.checksum import crc32c
from wirecheck.decode.log.record import Records, walk_records
from wirecheck.decode.log.record_table import COLUMNS, OFFSET, STRUCTURE_UNSEEN, TIMESTAMP_MS, UNSEEN

OVERHEAD_BYTES = 12  # offset and size, before what the size counts
TO_MAGIC_BYTES = 17  # Records.HEADER_SIZE_UP_TO_MAGIC
HEADER_BYTES = 61  # DefaultRecordBatch.RECORD_BATCH_OVERHEAD
_SMALLEST_BYTES = (14, 22, HEADER_BYTES - OVERHEAD_BYTES)  # by magic; LegacyRecord.RECORD_OVERHEAD_V0 and _V1
_HEADER = struct.Struct(">q4xixIh4xqq14xi")  # what Batch has of it, in its order
_SUMMED_FROM = 21  # the sum begins at the attributes: a leader writes its epoch without a new sum

_CODEC_MASK, _LOG_APPEND_TIME, _CONTROL = 0x07, 0x08, 0x20


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch of a records field."""

    field: Field
    position: int  # in the field
    size: int  # in the field, offset and size included
    magic: int  # of what is older than 2, nothing is read but its offset
    base_offset: int
    partition_leader_epoch: int = -1
    crc: int = -1
    attributes: int = 0
    base_timestamp: int = -1
    max_timestamp: int = -1
    count: int = -1  # records in it by its own word

    @property
    def end(self) -> int:
        return self.position + self.size

    @property
    def codec(self) -> int:
        return self.attributes & _CODEC_MASK

    @property
    def control(self) -> bool:
        return bool(self.attributes & _CONTROL)

    @property
    def crc_valid(self) -> bool | None:
        """Whether the sum is that of the bytes; None where some were left out."""
        if not self.field.known(self.position, self.end):
            return None
        return crc32c(self.field.bytes(self.position + _SUMMED_FROM, self.end)) == self.crc

    def records(self, limit: int = codecs.LARGEST_OUTPUT_BYTES) -> Records:
        """Its records, decompressed into at most `limit` bytes, of which each record takes some."""
        try:
            return self._records(limit)
        except DecodeError as error:
            inside = error.at if self.codec == 0 else self.position  # places inside a compressed block say nothing
            raise type(error)(inside, "records") from error

    def _records(self, limit: int) -> Records:
        begin = self.position + HEADER_BYTES
        if self.codec == 0:
            records = walk_records(self.field, begin, self.end, self.count)
        elif not self.field.known(begin, self.end):
            return Records(self.field, np.zeros((0, COLUMNS), np.int64), max(self.count, 0))
        elif self.count * codecs.RECORD_BYTES > limit:
            raise BadLength(self.position)
        else:
            inner = laid_out(codecs.decompressed(self.codec, self.field.bytes(begin, self.end), limit))
            records = walk_records(inner, 0, len(inner), self.count)
        table = records.table
        table[:, OFFSET] += self.base_offset
        table[:, TIMESTAMP_MS] += self.base_timestamp
        if self.attributes & _LOG_APPEND_TIME:
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


def read_batches(field: Field) -> Batches:
    """The batches of a records field, up to the first that is invalid; `refused` holds its error. Raises nothing."""
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
        header_end = at + (HEADER_BYTES if magic == 2 else TO_MAGIC_BYTES)
        if not field.known(at, header_end):
            return Batches(tuple(found), 0, at)
        found.append(header(field, at))
        at = found[-1].end
    return Batches(tuple(found), end - at)


def alone(batch: Batch) -> Batch:
    """The batch as the only one of its field."""
    holes = np.clip(batch.field.holes - batch.position, 0, batch.size)
    field = Field(batch.field.data[batch.position : batch.end], holes[holes[:, 0] < holes[:, 1]])
    return replace(batch, field=field, position=0)


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
        return Batch(field, at, size, magic, field.integer(at, 8))
    return Batch(field, at, size, magic, *_HEADER.unpack_from(field.data.data, at))
