"""IP addresses as small numbers: those of one batch by first appearance, and what they are called.

Knows: addresses of 4 and of 16 bytes, in a hash table that is full at ADDRESS_CAPACITY.
Refuses to know: where in a packet they stand, and whose they are.
Rule: no Python object per packet; a text is made once per address and batch.
"""

from __future__ import annotations

import socket
import struct
from functools import lru_cache
from typing import Final, final

from librt.vecs import vec
from mypy_extensions import i64

from wirecheck.capture.link.link_type import u32

ADDRESSES_FULL: Final = -1  # not a reason: the caller ends the batch and comes again with an empty address table
ADDRESS_CAPACITY: Final = 4096  # distinct addresses per batch; a batch ends early when it meets more
ADDRESS_SLOTS: Final = 4 * ADDRESS_CAPACITY


def zeros(count: int) -> vec[i64]:
    return vec[i64](memoryview(bytes(8 * count)).cast("q"))


@final
class Addresses:
    """Codes of the addresses of one batch, by first appearance."""

    def __init__(self) -> None:
        self.count: i64 = 0
        self._bytes: vec[i64] = zeros(ADDRESS_CAPACITY + 1)  # by row = 1 + code: 4 or 16
        self._high: vec[i64] = zeros(ADDRESS_CAPACITY + 1)
        self._low: vec[i64] = zeros(ADDRESS_CAPACITY + 1)
        self._slot: vec[i64] = zeros(ADDRESS_CAPACITY + 1)
        self._row_in: vec[i64] = zeros(ADDRESS_SLOTS)  # by slot, 0 where it is free

    def forget(self) -> None:
        for row in range(i64(1), self.count + 1):
            self._row_in[self._slot[row]] = 0
        self.count = 0

    def code(self, data: bytes, at: i64, size: i64) -> i64:
        """Of the address of 4 or 16 bytes that stands there."""
        row_in = self._row_in
        high: i64 = 0
        low = u32(data, at)
        mixed = ((2166136261 ^ low) * 16777619) & 0xFFFFFFFF  # FNV-1a over 32-bit parts
        if size == 16:
            for part in range(i64(4), i64(16), i64(4)):
                mixed = ((mixed ^ u32(data, at + part)) * 16777619) & 0xFFFFFFFF
            high = _i64(low, u32(data, at + 4))
            low = _i64(u32(data, at + 8), u32(data, at + 12))
        slot = (mixed ^ (mixed >> 15)) & (ADDRESS_SLOTS - 1)
        row = row_in[slot]
        while row != 0:
            if self._low[row] == low and self._high[row] == high and self._bytes[row] == size:
                return row - 1
            slot = (slot + 1) & (ADDRESS_SLOTS - 1)
            row = row_in[slot]
        row = self.count + 1
        if row > ADDRESS_CAPACITY:
            return ADDRESSES_FULL
        self.count = row
        self._bytes[row] = size
        self._high[row] = high
        self._low[row] = low
        self._slot[row] = slot
        row_in[slot] = row
        return row - 1

    def texts(self) -> list[str]:
        """By code."""
        return [_text(self._bytes[row], self._high[row], self._low[row]) for row in range(1, self.count + 1)]


def _i64(high: i64, low: i64) -> i64:
    """Of two halves without a sign; a product that fits, where a shift would leave 64 bits in plain Python."""
    return ((high ^ 0x80000000) - 0x80000000) * 0x100000000 + low


@lru_cache(ADDRESS_CAPACITY)
def _text(size: int, high: int, low: int) -> str:
    if size == 4:
        return socket.inet_ntop(socket.AF_INET, struct.pack(">I", low))
    return socket.inet_ntop(socket.AF_INET6, struct.pack(">qq", high, low))
