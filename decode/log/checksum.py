"""The checksum of record batches: CRC-32C (Castagnoli).

The maintained CRC-32C wheels are each one more native dependency; eight bytes a step, compiled, are fast enough.
"""

from __future__ import annotations

from typing import Final

from librt.strings import read_i32_le
from librt.vecs import vec
from mypy_extensions import i64

_POLYNOMIAL: Final = 0x82F63B78  # RFC 3720 section 12.1, reflected
_MASK: Final = 0xFFFFFFFF


def _tables() -> vec[i64]:
    """Eight tables of 256 in a row, so that eight bytes are folded at once (Intel's slicing-by-8)."""
    rows = list(range(256))
    for _ in range(8):
        rows = [row >> 1 ^ (_POLYNOMIAL if row & 1 else 0) for row in rows]
    for i in range(7 * 256):
        rows.append(rows[i] >> 8 ^ rows[rows[i] & 255])
    return vec[i64](rows)


_TABLES: Final = _tables()


def crc32c(data: bytes) -> int:
    tables = _TABLES
    crc: i64 = _MASK
    at: i64 = 0
    end = i64(len(data))
    while at + 8 <= end:
        crc ^= i64(read_i32_le(data, at)) & _MASK
        crc = (
            tables[0x700 | crc & 255]
            ^ tables[0x600 | crc >> 8 & 255]
            ^ tables[0x500 | crc >> 16 & 255]
            ^ tables[0x400 | crc >> 24]
            ^ tables[0x300 | i64(data[at + 4])]
            ^ tables[0x200 | i64(data[at + 5])]
            ^ tables[0x100 | i64(data[at + 6])]
            ^ tables[i64(data[at + 7])]
        )
        at += 8
    while at < end:
        crc = tables[(crc ^ i64(data[at])) & 255] ^ crc >> 8
        at += 1
    return crc ^ _MASK
