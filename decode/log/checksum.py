"""The checksums Kafka puts on records: CRC-32C (Castagnoli), and the xxHash32 of an LZ4 frame's descriptor.

Knows: the two algorithms, over arrays and short byte strings. Does not know what they guard.
Why here and not a package: the only kept CRC-32C wheels are one more native dependency each (one of them LGPL) for a
hundred lines; the machine's numba is here anyway and eight bytes a step are faster than any record source we read.
CRC-32 of the old formats is zlib's. Rule: no allocation that depends on the input.
"""

from __future__ import annotations

import struct

import numpy as np

from wirecheck.decode.compiled import cached_njit

_POLYNOMIAL = 0x82F63B78  # RFC 3720 section 12.1, reflected
_MASK = 0xFFFFFFFF


def _tables() -> np.ndarray:
    """Eight tables, so that eight bytes are folded at once (Intel's slicing-by-8)."""
    tables = np.zeros((8, 256), np.int64)
    row = np.arange(256, dtype=np.int64)
    for _ in range(8):
        row = (row >> 1) ^ (_POLYNOMIAL * (row & 1))
    tables[0] = row
    for i in range(1, 8):
        tables[i] = (tables[i - 1] >> 8) ^ row[tables[i - 1] & 255]
    return tables


_TABLES = _tables()


@cached_njit
def _crc32c(data: np.ndarray, begin: int, end: int, tables: np.ndarray) -> int:
    crc = 0xFFFFFFFF
    at = begin
    while at + 8 <= end:
        crc ^= int(data[at]) | int(data[at + 1]) << 8 | int(data[at + 2]) << 16 | int(data[at + 3]) << 24
        crc = (
            tables[7, crc & 255]
            ^ tables[6, (crc >> 8) & 255]
            ^ tables[5, (crc >> 16) & 255]
            ^ tables[4, crc >> 24]
            ^ tables[3, data[at + 4]]
            ^ tables[2, data[at + 5]]
            ^ tables[1, data[at + 6]]
            ^ tables[0, data[at + 7]]
        )
        at += 8
    while at < end:
        crc = tables[0, (crc ^ int(data[at])) & 255] ^ (crc >> 8)
        at += 1
    return crc ^ 0xFFFFFFFF


def crc32c(data: np.ndarray, begin: int, end: int) -> int:
    """The checksum of data[begin:end], a uint8 array."""
    return int(_crc32c(data, begin, end, _TABLES))


_PRIME_2, _PRIME_3, _PRIME_4, _PRIME_5 = 2246822519, 3266489917, 668265263, 374761393
_PRIME_1 = 2654435761
_SHORT_BYTES = 16


def _turned(value: int, bits: int) -> int:
    value &= _MASK
    return (value << bits | value >> (32 - bits)) & _MASK


def xxh32_short(data: bytes) -> int:
    """XxHash32 with seed 0 of fewer than 16 bytes (xxhash_spec.md, "XXH32 algorithm", steps 4 to 6)."""
    assert len(data) < _SHORT_BYTES
    words = len(data) // 4
    result = _PRIME_5 + len(data)
    for word in struct.unpack_from(f"<{words}I", data):
        result = _turned(result + word * _PRIME_3, 17) * _PRIME_4
    for byte in data[words * 4 :]:
        result = _turned(result + byte * _PRIME_5, 11) * _PRIME_1
    result &= _MASK
    result = (result ^ result >> 15) * _PRIME_2 & _MASK
    result = (result ^ result >> 13) * _PRIME_3 & _MASK
    return result ^ result >> 16
