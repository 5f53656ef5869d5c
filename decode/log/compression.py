"""Decompresses blocks of record batches, with bounded output.

Nothing is written beyond `limit` bytes; a block that does not end where it should is refused. Kafka's own framing:
xerial blocks around snappy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cramjam
import numpy as np

from wirecheck.decode.errors import BadCompression, BadLength

if TYPE_CHECKING:
    from collections.abc import Callable

# Brokers take 1 MiB batches by default and raft writes 8 MiB ones; eight times that is generous, and bounds a bomb.
LARGEST_OUTPUT_BYTES = 64 << 20
REFUSED_BYTES = LARGEST_OUTPUT_BYTES >> 3  # what a refused block is taken to have cost, where many share a budget

MOST_RECORDS = 20_000
"""In the compressed blocks of one field. Raft compresses none, and its batches have some thousand."""
RECORD_BYTES = LARGEST_OUTPUT_BYTES // MOST_RECORDS
"""What a record in a compressed block costs of a budget, however few bytes it has: records are walked one by one."""

_NONE, _GZIP, _SNAPPY, _LZ4, _ZSTD = range(5)

_XERIAL = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES = 16
_FULL = "failed to write whole buffer"  # Rust's WriteZero, as cramjam passes it on; tests pin it


def decompressed(codec: int, block: bytes, limit: int = LARGEST_OUTPUT_BYTES) -> bytes:
    """The bytes in a block; BadLength if they are more than `limit`, BadCompression if they are not whole."""
    if codec == _NONE:
        return block
    if codec == _SNAPPY:
        return _snappy(block, limit)
    if codec == _LZ4:
        return _into(cramjam.lz4.decompress_into, block, limit)
    if codec == _GZIP:
        return _into(cramjam.gzip.decompress_into, block, limit)
    if codec == _ZSTD:
        return _into(cramjam.zstd.decompress_into, block, limit)
    raise BadCompression(0)


def _into(decompress: Callable[[Any, Any], int], block: bytes, limit: int) -> bytes:
    output = np.empty(limit, np.uint8)  # pages are only taken when written to
    try:
        length = decompress(block, output)
    except cramjam.DecompressionError as error:
        raise (BadLength(0) if _FULL in str(error) else BadCompression(0)) from error
    return output[:length].tobytes()


def _snappy(block: bytes, limit: int) -> bytes:
    if not block.startswith(_XERIAL):
        return _raw_snappy(block, limit)
    parts, at = [], _XERIAL_HEADER_BYTES
    while at < len(block):
        length = int.from_bytes(block[at : at + 4], "big")
        at += 4
        if length > len(block) - at:
            raise BadCompression(at)
        parts.append(_raw_snappy(block[at : at + length], limit))
        limit -= len(parts[-1])
        at += length
    if at > len(block):
        raise BadCompression(at)
    return b"".join(parts)


def _raw_snappy(block: bytes, limit: int) -> bytes:
    try:
        if cramjam.snappy.decompress_raw_len(block) > limit:
            raise BadLength(0)
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise BadCompression(0) from error
