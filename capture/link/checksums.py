"""Which segments a receiver drops by their TCP checksum: damaged on the way, or sent so that only captures take them.

Knows: TCP's checksum (RFC 9293 section 3.1) and what stands in its place where a card is to fill it in: the sum of the
pseudo-header, with or without the length, or nothing. Such segments count as right.
Refuses to know: what becomes of a segment, and what it carries.
Rule: whether a host's checksums mean anything is learned from its segments: one is wrong only where nearly all others
of its host are not. Segments that a card may have merged (they keep the checksum of their first part) and those that a
snap length cut are not looked at. Of a segment with its checksum right every byte is read once; of others only headers.
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import read_i64_be
from librt.vecs import vec
from mypy_extensions import i64

from wirecheck.capture.link.address_codes import zeros
from wirecheck.capture.link.link_type import u16, u32

LONGEST: Final = 1460  # payload of an Ethernet frame without options
KNOWN: Final = 8  # segments of a host before one of its is found wrong
FEW: Final = 16  # at most one in so many is wrong
SLOTS: Final = 1 << 12  # hosts, by a hash of their addresses
MOST: Final = 1 << 16  # segments that a slot remembers: a host may be moved to another card
_TCP: Final = 6


@final
class Checksums:
    def __init__(self) -> None:
        self._right: vec[i64] = zeros(SLOTS)
        self._wrong: vec[i64] = zeros(SLOTS)

    def is_wrong(self, data: bytes, ip: i64, tcp: i64, end: i64) -> bool:
        """Whether the segment data[tcp:end], all of it captured, is one that its receiver drops."""
        addresses: i64 = 8
        at = ip + 12
        if i64(data[ip]) >> 4 == 6:
            if tcp != ip + 40:  # a routing header may hold the address that counts (RFC 8200 section 8.1)
                return False
            addresses, at = 32, ip + 8
        pseudo = _sum(data, at, at + addresses) + _TCP
        slot = (_folded(_sum(data, at, at + addresses // 2)) * 40503) & (SLOTS - 1)
        given = u16(data, tcp + 16)
        right, wrong = self._right[slot], self._wrong[slot]
        length = end - tcp
        if (
            given == 0
            or given == _folded(pseudo + length)
            or given == _folded(pseudo)
            or _folded(pseudo + length + _sum(data, tcp, end)) == 0xFFFF
        ):
            self._right[slot] = right + 1
            if right >= MOST:
                self._right[slot], self._wrong[slot] = right >> 1, wrong >> 1
            return False
        self._wrong[slot] = wrong + 1
        return right >= KNOWN and right >= FEW * wrong


def _sum(data: bytes, at: i64, end: i64) -> i64:
    """Of 16-bit words, one after the other; not folded."""
    total: i64 = 0
    while at + 8 <= end:
        word = read_i64_be(data, at)
        total += (word & 0xFFFFFFFF) + ((word >> 32) & 0xFFFFFFFF)
        at += 8
    if at + 4 <= end:
        total += u32(data, at)
        at += 4
    if at + 2 <= end:
        total += u16(data, at)
        at += 2
    return total + (i64(data[at]) << 8) if at < end else total


def _folded(total: i64) -> i64:
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total
