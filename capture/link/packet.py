"""IP and TCP headers by offset: one captured packet becomes one row of numbers, or the reason why not.

No Python object per packet; every read is checked against the end of what was captured.
"""

from __future__ import annotations

import socket
import struct
import sys
from functools import lru_cache
from typing import Final, final

from librt.strings import read_i32_be, read_i32_le, read_i64_be
from librt.vecs import vec
from mypy_extensions import i64

from wirecheck.capture import frames
from wirecheck.capture.link.exported_pdu import ExportedPdu
from wirecheck.capture.link.link_type import (
    BAD_CHECKSUM,
    BAD_HEADER,
    IPV4_FRAGMENT,
    IPV6_FRAGMENT,
    LINK_ETHERNET,
    LINK_EXPORTED_PDU,
    NON_TCP,
    REASONS,
    SNAPLEN_HEADER,
    TCP,
    ip_start,
    not_tcp,
    u16,
    u32,
)

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


LONGEST: Final = 1460  # payload of an Ethernet frame without options
KNOWN: Final = 8  # segments of a host before one of its is found wrong
FEW: Final = 16  # at most one in so many is wrong
SLOTS: Final = 1 << 12  # hosts, by a hash of their addresses
MOST: Final = 1 << 16  # segments that a slot remembers: a host may be moved to another card
_TCP: Final = 6


@final
class Checksums:
    """Which segments a receiver drops by their TCP checksum (RFC 9293 section 3.1): damaged, or sent for captures only.

    One is wrong only where nearly all others of its host are not. What stands where a card is to fill it in (the sum of
    the pseudo-header, with or without the length, or nothing) counts as right. Segments that a card may have merged,
    and those that a snap length cut, are not looked at.
    """

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


# One row of cells per packet. Its payload is noted as Arrow's columnar format has a view ("variable-size binary view
# layout"): two cells, INLINE_BYTES of a payload are in the view itself.
FRAME_NO: Final = 0
TS_NS: Final = 1
CLOCK: Final = 2  # the newest time of any packet up to this one
SRC: Final = 3  # codes of addresses
DST: Final = 4
SRC_PORT: Final = 5
DST_PORT: Final = 6
SEQ: Final = 7
ACK: Final = 8
FLAGS: Final = 9
TCP_WINDOW: Final = 10
LENGTH: Final = 11  # of the payload on the wire
KEPT: Final = 12  # of it captured
VIEW: Final = 13
INTERFACE: Final = 15  # number in its section
STAMP: Final = 16  # its TCP timestamp (RFC 7323), or NO_STAMP
CELLS: Final = 17
NO_STAMP: Final = -1
INLINE_BYTES: Final = 12

_ACK_FLAG: Final = 16
NO_TIME_NS: Final = -1  # of no packet
_BIG_HOST: Final = sys.byteorder == "big"


@final
class Headers:
    """The headers of one batch's packets, a row each, and counts that go on from batch to batch of one source."""

    def __init__(self, capacity: int) -> None:
        self.capacity: i64 = capacity
        self.rows: i64 = 0
        self.payload_bytes: i64 = 0  # captured, of these rows
        self.window: i64 = 0  # number among the batch's windows of the bytes that are walked
        self.addresses = Addresses()
        self.cells: vec[i64] = zeros(CELLS * capacity)
        # over the source
        self.position: i64 = 0  # of the next byte in its window
        self.packets: i64 = 0
        self.interface: i64 = 0  # of the next packet
        self.newest_ns: i64 = NO_TIME_NS
        self.dropped: i64 = 0  # packets, as the file itself states
        self.cut: i64 = 0  # packets that a snaplen cut inside their payload
        self.cut_bytes: i64 = 0  # the longest of them as captured
        self.skipped: vec[i64] = zeros(len(REASONS))  # packets that are no frames, by reason
        self._checksums = Checksums()
        self._pdu = ExportedPdu()
        # of the packet at hand
        self._behind: i64 = 0  # where it ends on the wire
        self._most_payload_bytes: i64 = frames.MOST_PAYLOAD_BYTES

    def begin(self) -> None:
        """Forget the rows of the last batch."""
        self.rows = 0
        self.payload_bytes = 0
        self.window = 0
        self.addresses.forget()

    def forget_skipped(self) -> None:
        self.skipped = zeros(len(REASONS))

    def take_packet(  # noqa: PLR0917 -- compiled: numbers as arguments cost nothing, an object for them would
        self, data: bytes, at: i64, captured: i64, wire: i64, link_type: i64, ts_ns: i64
    ) -> bool:
        """Count one packet and keep its row if it has one. False: the batch is full, nothing was counted."""
        row = self.rows
        if row == self.capacity:
            return False
        outcome = self._read(data, at, captured, wire, link_type)
        if outcome == ADDRESSES_FULL:
            return False
        self.packets += 1
        self.newest_ns = max(self.newest_ns, ts_ns)
        if outcome == TCP:
            cells, cell = self.cells, CELLS * row
            cells[cell + FRAME_NO] = self.packets
            cells[cell + TS_NS] = ts_ns
            cells[cell + CLOCK] = self.newest_ns
            cells[cell + INTERFACE] = self.interface
            if cells[cell + KEPT] < cells[cell + LENGTH]:
                self.cut += 1
                self.cut_bytes = max(self.cut_bytes, captured)
            self.rows = row + 1
        else:
            self.skipped[outcome] += 1
        return True

    def _read(self, data: bytes, at: i64, captured: i64, wire: i64, link_type: i64) -> i64:
        """Headers of one packet into the next row: TCP, a reason, or ADDRESSES_FULL."""
        end = at + captured
        cut: i64 = BAD_HEADER if captured >= wire else SNAPLEN_HEADER  # too short, though all of it is here?
        if link_type == LINK_EXPORTED_PDU:
            outcome = self._read_exported(data, at, end, at + max(wire, captured))
            return cut if outcome == SNAPLEN_HEADER else outcome
        ip = at + 14
        if not _is_plain(data, at, captured, link_type):
            ip = ip_start(data, at, end, link_type)
        if ip < 0:
            return cut if ip == -SNAPLEN_HEADER else -ip
        if ip >= end:
            return cut
        version = i64(data[ip]) >> 4
        tcp: i64 = 0
        if version == 4:
            tcp = self._tcp_v4(data, ip, end, at + max(wire, captured))
        elif version == 6:
            tcp = self._tcp_v6(data, ip, end, at + max(wire, captured))
        else:
            return BAD_HEADER
        if tcp < 0:
            return cut if tcp == -SNAPLEN_HEADER else -tcp
        if tcp + 20 > end:
            return cut
        payload = tcp + (i64(data[tcp + 12]) >> 4) * 4
        behind = self._behind
        if payload < tcp + 20 or payload > behind or behind - payload > self._most_payload_bytes:
            return BAD_HEADER
        if behind <= end and behind - payload <= LONGEST and self._checksums.is_wrong(data, ip, tcp, behind):
            return BAD_CHECKSUM
        src: i64 = 0
        dst: i64 = 0
        if version == 4:
            src = self.addresses.code(data, ip + 12, 4)
            dst = self.addresses.code(data, ip + 16, 4)
        else:
            src = self.addresses.code(data, ip + 8, 16)
            dst = self.addresses.code(data, ip + 24, 16)
        if src < 0 or dst < 0:
            return ADDRESSES_FULL
        self._keep(data, tcp, src, dst)
        self.cells[CELLS * self.rows + STAMP] = _stamp(data, tcp + 20, min(payload, end))
        self._keep_payload(data, payload, max(0, min(behind, end) - payload), behind - payload)
        return TCP

    def _read_exported(self, data: bytes, at: i64, end: i64, wire_end: i64) -> i64:
        """The same of a PDU that Wireshark exported; data[end:wire_end] of it was cut."""
        pdu = self._pdu
        outcome = pdu.read(data, at, end)
        if outcome != TCP:
            return outcome
        length = wire_end - pdu.payload
        if length > self._most_payload_bytes:
            return BAD_HEADER
        src = self.addresses.code(data, pdu.src, pdu.address_bytes)
        dst = self.addresses.code(data, pdu.dst, pdu.address_bytes)
        if src < 0 or dst < 0:
            return ADDRESSES_FULL
        pdu.count(data, length)
        cells, cell = self.cells, CELLS * self.rows
        cells[cell + SRC] = src
        cells[cell + DST] = dst
        cells[cell + SRC_PORT] = pdu.src_port
        cells[cell + DST_PORT] = pdu.dst_port
        cells[cell + SEQ] = pdu.seq
        cells[cell + ACK] = pdu.ack
        cells[cell + FLAGS] = _ACK_FLAG
        cells[cell + TCP_WINDOW] = 0
        cells[cell + STAMP] = NO_STAMP
        self._keep_payload(data, pdu.payload, end - pdu.payload, length)
        return TCP

    def _tcp_v4(self, data: bytes, ip: i64, end: i64, wire_end: i64) -> i64:
        """Where the TCP header begins, or minus the reason."""
        if ip + 20 > end:
            return -SNAPLEN_HEADER
        header_bytes = (i64(data[ip]) & 15) * 4
        total_bytes = u16(data, ip + 2)
        if header_bytes < 20 or 0 < total_bytes < header_bytes:
            return -BAD_HEADER
        protocol = i64(data[ip + 9])
        if protocol != 6:
            is_later_fragment = u16(data, ip + 6) & 0x1FFF != 0
            return -NON_TCP if is_later_fragment else -not_tcp(data, protocol, ip + header_bytes, end)
        if u16(data, ip + 6) & 0x3FFF:  # more fragments, or an offset
            return -IPV4_FRAGMENT
        # 0: segmentation offload, the card would have filled it in
        self._behind = wire_end if total_bytes == 0 else ip + total_bytes
        return ip + header_bytes

    def _tcp_v6(self, data: bytes, ip: i64, end: i64, wire_end: i64) -> i64:
        """The same behind IPv6 and its chain of extension headers (RFC 8200 section 4)."""
        if ip + 40 > end:
            return -SNAPLEN_HEADER
        payload_bytes = u16(data, ip + 4)
        # 0: jumbo or segmentation offload
        self._behind = wire_end if payload_bytes == 0 else ip + 40 + payload_bytes
        following = i64(data[ip + 6])
        at = ip + 40
        while following != 6:
            if following not in (0, 43, 44, 51, 60, 135, 139, 140):
                return -not_tcp(data, following, at, end)
            if at + 8 > end:
                return -SNAPLEN_HEADER
            size = (i64(data[at + 1]) + 1) * 8
            if following == 51:  # authentication header: in units of 4, less 2 (RFC 4302)
                size = (i64(data[at + 1]) + 2) * 4
            elif following == 44:
                size = 8
                if u16(data, at + 2) & 0xFFF9:
                    return -IPV6_FRAGMENT if i64(data[at]) == 6 else -NON_TCP
            following = i64(data[at])
            at += size
        return at

    def _keep(self, data: bytes, tcp: i64, src: i64, dst: i64) -> None:
        cells, cell = self.cells, CELLS * self.rows
        cells[cell + SRC] = src
        cells[cell + DST] = dst
        cells[cell + SRC_PORT] = u16(data, tcp)
        cells[cell + DST_PORT] = u16(data, tcp + 2)
        cells[cell + SEQ] = u32(data, tcp + 4)
        cells[cell + ACK] = u32(data, tcp + 8)
        cells[cell + FLAGS] = u16(data, tcp + 12) & 0x1FF
        cells[cell + TCP_WINDOW] = u16(data, tcp + 14)

    def _keep_payload(self, data: bytes, at: i64, kept: i64, length: i64) -> None:
        cells, cell = self.cells, CELLS * self.rows
        cells[cell + LENGTH] = length
        cells[cell + KEPT] = kept
        self.payload_bytes += kept
        if kept > INLINE_BYTES:
            cells[cell + VIEW] = _pair(kept, _native32(data, at))
            cells[cell + VIEW + 1] = _pair(self.window, at)
        elif kept > 0:
            inline = data[at : at + kept] + bytes(INLINE_BYTES - kept)
            cells[cell + VIEW] = _pair(kept, _native32(inline, 0))
            cells[cell + VIEW + 1] = _pair(_native32(inline, 4), _native32(inline, 8))
        else:
            cells[cell + VIEW] = 0
            cells[cell + VIEW + 1] = 0


def _stamp(data: bytes, at: i64, end: i64) -> i64:
    """The sender's timestamp among the TCP options in data[at:end]; nearly all senders write it first, behind two that
    do nothing.
    """
    if at + 12 <= end and u32(data, at) == 0x0101080A:
        return u32(data, at + 4)
    while at + 1 < end and data[at] != 0:
        if data[at] == 1:
            at += 1
            continue
        size = i64(data[at + 1])
        if data[at] == 8:
            return u32(data, at + 2) if size == 10 and at + size <= end else NO_STAMP
        at += max(size, 2)
    return NO_STAMP


def _native32(data: bytes, at: i64) -> i64:
    return i64(read_i32_be(data, at) if _BIG_HOST else read_i32_le(data, at))


def _pair(first: i64, second: i64) -> i64:
    """Two 32-bit words side by side in memory, as one number with a sign."""
    if _BIG_HOST:
        return first * 0x100000000 + (second & 0xFFFFFFFF)
    return second * 0x100000000 + (first & 0xFFFFFFFF)


def _is_plain(data: bytes, at: i64, captured: i64, link_type: i64) -> bool:
    """TCP in IPv4 in Ethernet, without tags or a tunnel: what nearly every packet is."""
    if link_type != LINK_ETHERNET or captured < 54:
        return False
    return u16(data, at + 12) == 0x0800 and i64(data[at + 14]) == 0x45 and i64(data[at + 23]) == 6
