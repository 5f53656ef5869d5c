"""The pcapng file: sections of blocks, each section with its own byte order and interfaces.

Knows: section, interface and statistics blocks (read in Python: they are rare) and the three packet blocks (walked by
a jitted loop); time units per interface; what the file itself says was dropped.
Refuses to know: what is in a packet (packet.py), names, comments, secrets: such blocks are stepped over.
Rule: `walk` consumes whole blocks only; what it cannot consume it names, with the reason a person reads.
Source: draft-ietf-opsawg-pcapng-03.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

from capture import link, packet
from capture.classic import MAX_PACKET_BYTES, read32
from decode.compiled import borrowing_njit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from capture.rows import Rows
    from capture.windows import Windows

MAGIC = b"\x0a\x0d\x0d\x0a"
MAX_BLOCK_BYTES = 16 << 20  # Wireshark's limit
_SECTION, _INTERFACE, _OLD_PACKET, _SIMPLE_PACKET, _STATISTICS, _PACKET = 0x0A0D0D0A, 1, 2, 3, 5, 6
_JOURNAL = 9  # a systemd journal entry: no packet, but Wireshark gives it a frame number
_MORE, _FULL, _IN_PYTHON, _BAD_LENGTH, _LENGTHS_DISAGREE, _NO_INTERFACE, _BAD_PACKET = range(7)
_BROKEN = {
    _BAD_LENGTH: "impossible block length",
    _LENGTHS_DISAGREE: "block lengths that disagree",
    _NO_INTERFACE: "packet of an undeclared interface",
    _BAD_PACKET: "impossible packet length",
}
# One row per interface: link type, snaplen, unit of time, offset of time.
# Units: 0..9 are 10^-n seconds, _BINARY + n are 2^-n seconds.
_LINK_TYPE, _SNAPLEN, _UNIT, _OFFSET_NS = range(4)
_BINARY = 128
_LATEST_NS = 1 << 62  # times beyond (the year 2116) saturate: they are damage, and must not overflow


@borrowing_njit
def time_ns(high: int, low: int, unit: int, offset_ns: int) -> link.Number:
    value: link.Number = _LATEST_NS
    ticks = ((high & 0x7FFFFFFF) << 32) | low
    if unit < _BINARY:
        scale: link.Number = np.int64(1)
        for _ in range(abs(9 - unit)):
            scale *= 10
        if unit > 9:
            value = ticks // scale
        elif ticks > _LATEST_NS // scale:
            return _LATEST_NS
        else:
            value = ticks * scale
    else:
        shift = unit - _BINARY
        seconds = ticks >> shift
        fraction = ticks - (seconds << shift)
        if shift > 33:  # keeps fraction * 1e9 inside int64
            fraction >>= shift - 33
            shift = 33
        if seconds > _LATEST_NS // 1_000_000_000:
            return _LATEST_NS
        value = seconds * 1_000_000_000 + ((fraction * 1_000_000_000) >> shift)
    return min(value, _LATEST_NS) + offset_ns


@borrowing_njit
def _packet_place(
    data: NDArray[np.uint8], at: int, total: int, big: int, interfaces: NDArray[np.int64]
) -> tuple[link.Number, ...]:
    """(status, interface, first byte, captured, on the wire) of the packet block at `at`; _FULL is fine."""
    kind = read32(data, at, big)
    interface, begin = 0, at + 28
    if kind == _SIMPLE_PACKET:
        if total < 16 or interfaces.shape[0] == 0:
            return (_BAD_PACKET if total < 16 else _NO_INTERFACE), 0, 0, 0, 0
        wire = read32(data, at + 8, big)
        captured = min(wire, total - 16)
        if interfaces[0, _SNAPLEN] > 0:
            captured = min(captured, interfaces[0, _SNAPLEN])
        return (_FULL if captured <= MAX_PACKET_BYTES else _BAD_PACKET), 0, at + 12, captured, wire
    if total < 32:
        return _BAD_PACKET, 0, 0, 0, 0
    interface = read32(data, at + 8, big)
    if kind == _OLD_PACKET:  # two 16-bit numbers: interface, packets dropped before this one
        interface = interface >> 16 if big else interface & 0xFFFF
    if interface >= interfaces.shape[0]:
        return _NO_INTERFACE, 0, 0, 0, 0
    captured, wire = read32(data, at + 20, big), read32(data, at + 24, big)
    if captured > total - 32 or captured > MAX_PACKET_BYTES:
        return _BAD_PACKET, 0, 0, 0, 0
    return _FULL, interface, begin, captured, wire


@borrowing_njit
def _walk(
    data: NDArray[np.uint8],
    filled: int,
    section: tuple[int, NDArray[np.int64]],
    limit: int,
    state: packet.State,
) -> link.Number:
    counters = state.counters
    big, interfaces = section
    at = counters[packet.POSITION]
    stop = counters[packet.PACKET_NO] + limit
    status = _FULL
    while counters[packet.PACKET_NO] < stop:
        if at + 12 > filled:
            status = _MORE
            break
        kind = read32(data, at, big)
        if kind == _SECTION:  # its length is in its own byte order
            status = _IN_PYTHON
            break
        total = (read32(data, at + 4, big) + 3) & ~3
        if total < 12 or total > MAX_BLOCK_BYTES:
            status = _BAD_LENGTH
            break
        if at + total > filled:
            status = _MORE
            break
        if read32(data, at + total - 4, big) != read32(data, at + 4, big):
            status = _LENGTHS_DISAGREE
            break
        if kind in (_INTERFACE, _STATISTICS):
            status = _IN_PYTHON
            break
        if kind in (_PACKET, _SIMPLE_PACKET, _OLD_PACKET):
            place, interface, begin, captured, wire = _packet_place(data, at, total, big, interfaces)
            if place != _FULL:
                status = place
                break
            ts_ns = max(counters[packet.NEWEST_NS], 0)  # a simple packet has no time of its own
            if kind != _SIMPLE_PACKET:
                clock = interfaces[interface]
                ts_ns = time_ns(read32(data, at + 12, big), read32(data, at + 16, big), clock[_UNIT], clock[_OFFSET_NS])
            where = (begin, captured, wire, interfaces[interface, _LINK_TYPE], ts_ns)
            if not packet.take_packet(data, where, state):
                break
            if kind == _OLD_PACKET:
                lost = read32(data, at + 8, big)
                lost = lost & 0xFFFF if big else lost >> 16
                counters[packet.DROPPED] += lost if lost != 0xFFFF else 0  # 0xFFFF: not known
        elif kind == _JOURNAL:
            counters[packet.PACKET_NO] += 1
            state.skipped[link.NO_PACKET] += 1
        at += total
    counters[packet.POSITION] = at
    return status


class Blocks:
    """The walk over one pcapng file."""

    def __init__(self) -> None:
        self._big = 0
        self._interfaces = np.zeros((0, 4), np.int64)
        self._dropped: dict[tuple[int, int], int] = {}  # (section, interface) -> the newest of its running totals
        self._sections = 0
        self.link_types: set[int] = set()

    def walk(self, windows: Windows, rows: Rows, limit: int) -> tuple[bool, str | None]:
        """Whole blocks of the window, at most `limit` packets: (is the window used up, what is broken there)."""
        while True:
            status = _walk(windows.data, windows.filled, (self._big, self._interfaces), limit, rows.state)
            if status != _IN_PYTHON:
                return status == _MORE, _BROKEN.get(status)
            at = int(rows.state.counters[packet.POSITION])
            block = windows.data[at : windows.filled].data
            if block[:4] == MAGIC:
                total, broken = self._section(block)
                if total == 0:
                    return broken is None, broken
            else:
                total = self._interface_or_statistics(block, rows)
            rows.state.counters[packet.POSITION] += total

    def truncated(self, rest: int) -> str:
        """What is cut when the file ends `rest` bytes behind the last whole block."""
        return "truncated block header" if rest < 12 else "truncated block"

    def _section(self, block: memoryview) -> tuple[int, str | None]:
        """Begin a section: (length of its block, or 0 while it is not all here; what is wrong with it)."""
        order = bytes(block[8:12])
        if order not in (b"\x1a\x2b\x3c\x4d", b"\x4d\x3c\x2b\x1a"):
            return 0, "section of no known byte order"
        big = order == b"\x1a\x2b\x3c\x4d"
        total = struct.unpack(">I" if big else "<I", block[4:8])[0]
        if total < 28 or total % 4 or total > MAX_BLOCK_BYTES:
            return 0, "impossible block length"
        if total > len(block):
            return 0, None
        self._big = int(big)
        self._interfaces = np.zeros((0, 4), np.int64)
        self._sections += 1
        return total, None

    def _interface_or_statistics(self, block: memoryview, rows: Rows) -> int:
        order = ">" if self._big else "<"
        kind, total = struct.unpack(order + "II", block[:8])
        body = block[8 : total - 4]
        if kind == _INTERFACE and len(body) >= 8:
            link_type, _, snaplen = struct.unpack(order + "HHI", body[:8])
            self.link_types.add(link_type)
            unit, offset_s = 6, 0
            for code, value in _options(body[8:], order):
                if code == 9 and len(value) >= 1:  # if_tsresol: the high bit says a power of two
                    unit = _BINARY + (value[0] & 127) if value[0] & 128 else value[0]
                elif code == 14 and len(value) >= 8:  # if_tsoffset
                    offset_s = struct.unpack(order + "q", value[:8])[0]
            row = (link_type, snaplen, min(unit, _BINARY + 63), max(-(1 << 31), min(offset_s, 1 << 31)) * 1_000_000_000)
            self._interfaces = np.vstack([self._interfaces, np.array([row], np.int64)])
        elif kind == _STATISTICS and len(body) >= 12:
            interface = struct.unpack(order + "I", body[:4])[0]
            values = dict(_options(body[12:], order))
            # isb_ifdrop and isb_osdrop are running totals of the interface
            lost = sum(
                struct.unpack(order + "Q", values[code][:8])[0] for code in (5, 7) if len(values.get(code, b"")) >= 8
            )
            before = self._dropped.get((self._sections, interface), 0)
            self._dropped[self._sections, interface] = max(lost, before)
            rows.state.counters[packet.DROPPED] += max(lost - before, 0)
        return (int(total) + 3) & ~3


def _options(body: memoryview, order: str) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 4 <= len(body):
        code, size = struct.unpack(order + "HH", body[at : at + 4])
        if code == 0:
            return
        yield code, bytes(body[at + 4 : at + 4 + size])
        at += 4 + ((size + 3) & ~3)
