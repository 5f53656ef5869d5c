"""Record batches whose records were redacted, filled so that a decoder reads them: as many records, without content.

The header stays: offsets, times, producer, epoch, count. A compressed batch is marked as not compressed, because zeros
would be compressed into another length. Where so many records do not fit, there is one, as compaction may leave it.
"""

from __future__ import annotations

from wirecheck.decode.log.checksum import crc32c
from wirecheck.decode.log.records import HEADER_BYTES, OVERHEAD_BYTES

MAGIC_AT, CRC_AT, ATTRIBUTES_AT, LAST_DELTA_AT, COUNT_AT = 16, 17, 21, 23, 57
CODEC, CONTROL = 0x07, 0x20
NULL = b"\x01"
"""A length of -1."""
UNKNOWN_MARKER = b"\x08\0\0\xff\xff"
"""A key of a control batch that is none of Kafka's: which one it was is not known."""
MOST_OVERHEAD = 28
"""Of a record: three lengths and a delta of five bytes at most, a key of a marker, and three bytes."""


def filled(data: bytes) -> bytes:
    """A records field of which headers of batches are all that is kept; what is no such batch becomes zeros."""
    out, at = bytearray(len(data)), 0
    while len(data) - at > HEADER_BYTES and data[at + MAGIC_AT] == 2:
        end = at + OVERHEAD_BYTES + int.from_bytes(data[at + 8 : at + OVERHEAD_BYTES])
        if not at + HEADER_BYTES < end <= len(data):
            break
        out[at:end] = _batch(bytearray(data[at:end]))
        at = end
    return bytes(out)


def _batch(batch: bytearray) -> bytearray:
    size, count = len(batch) - HEADER_BYTES, int.from_bytes(batch[COUNT_AT:HEADER_BYTES], "big", signed=True)
    last = int.from_bytes(batch[LAST_DELTA_AT : LAST_DELTA_AT + 4])
    key = UNKNOWN_MARKER if batch[ATTRIBUTES_AT + 1] & CONTROL else NULL
    records = _records(size, count, key)
    if records is None:
        records, count = _one(size, last, key) or bytes(size), 1
    batch[ATTRIBUTES_AT + 1] &= ~CODEC & 0xFF
    batch[COUNT_AT:] = count.to_bytes(4, "big", signed=True) + records
    batch[CRC_AT:ATTRIBUTES_AT] = crc32c(bytes(batch[ATTRIBUTES_AT:])).to_bytes(4)
    return batch


def _records(size: int, count: int, key: bytes) -> bytes | None:
    """So many records in so many bytes, the last as long as is left; None if they do not fit."""
    if not 0 < count <= size // 7:
        return None
    front = b"".join(_record(_varint(delta) + key + NULL + b"\0") for delta in range(count - 1))
    last = _one(size - len(front), count - 1, key) if len(front) < size else None
    return None if last is None else front + last


def _one(size: int, delta: int, key: bytes) -> bytes | None:
    """A record of exactly so many bytes; None if there is none so short. At some sizes a length has one byte more than
    it needs: with 65 bytes, 63 behind one are too few, and 64 behind two too many.
    """
    for spare in (False, True):
        for overhead in range(6, MOST_OVERHEAD):
            value = size - overhead
            if value >= 0:
                found = _record(_varint(delta) + key + _varint(value) + bytes(value) + b"\0", spare=spare)
                if len(found) == size:
                    return found
    return None


def _record(behind_time: bytes, *, spare: bool = False) -> bytes:
    """With its length; no attributes, at the time of the batch."""
    length = _varint(2 + len(behind_time))
    if spare:
        length = length[:-1] + bytes([length[-1] | 0x80, 0])
    return length + b"\0\0" + behind_time


def _varint(number: int) -> bytes:
    """Zigzag, of a number that is not negative."""
    rest, out = number << 1, bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*out, rest])
