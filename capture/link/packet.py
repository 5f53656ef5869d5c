"""IP and TCP headers by offset: one captured packet becomes one row of numbers, or the reason why not.

Knows: where the fields stand in IPv4 and IPv6 with extension headers, and what a snaplen cut.
Refuses to know: files and blocks (pcap.py, pcapng.py), link types and tunnels (link_type.py), connections, when a
checksum is wrong (checksums.py), and what payloads say: it notes where they stand.
Rule: no Python object per packet; every read stands behind a comparison with the end of what was captured.
"""

from __future__ import annotations

import sys
from typing import Final, final

from librt.strings import read_i32_be, read_i32_le
from librt.vecs import vec
from mypy_extensions import i64

from wirecheck.capture import frames
from wirecheck.capture.link.address_codes import ADDRESSES_FULL, Addresses, zeros
from wirecheck.capture.link.checksums import LONGEST, Checksums
from wirecheck.capture.link.link_type import (
    BAD_CHECKSUM,
    BAD_HEADER,
    IPV4_FRAGMENT,
    IPV6_FRAGMENT,
    LINK_ETHERNET,
    NON_TCP,
    REASONS,
    SNAPLEN_HEADER,
    TCP,
    ip_start,
    u16,
    u32,
)

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
LENGTH: Final = 10  # of the payload on the wire
KEPT: Final = 11  # of it captured
VIEW: Final = 12
CELLS: Final = 14
INLINE_BYTES: Final = 12

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
        self.newest_ns: i64 = NO_TIME_NS
        self.dropped: i64 = 0  # packets, as the file itself says
        self.cut: i64 = 0  # packets that a snaplen cut inside their payload
        self.cut_bytes: i64 = 0  # the longest of them as captured
        self.skipped: vec[i64] = zeros(len(REASONS))  # packets that are no frames, by reason
        self._checksums = Checksums()
        # of the packet at hand
        self._tcp: i64 = 0
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
        self._keep_payload(data, payload, max(0, min(behind, end) - payload), behind - payload)
        return TCP

    def _tcp_v4(self, data: bytes, ip: i64, end: i64, wire_end: i64) -> i64:
        """Where the TCP header begins, or minus the reason."""
        if ip + 20 > end:
            return -SNAPLEN_HEADER
        header_bytes = (i64(data[ip]) & 15) * 4
        total_bytes = u16(data, ip + 2)
        if header_bytes < 20 or 0 < total_bytes < header_bytes:
            return -BAD_HEADER
        if i64(data[ip + 9]) != 6:
            return -NON_TCP
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
                return -NON_TCP
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
