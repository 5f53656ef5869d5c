"""The pcapng file: sections of blocks, each section with its own byte order and interfaces.

Knows: section, interface and statistics blocks (read in Python: they are rare) and the three packet blocks (walked by
a jitted loop); time units per interface; what the file itself says was dropped.
Refuses to know: what is in a packet (packet.py), names, comments, secrets: such blocks are stepped over.
Rule: `walk` consumes whole blocks only; what it cannot consume it names, with the reason a person reads. What a block
says is not believed: an impossible option is ignored, an impossible count clamped, a packet that cannot be where its
block says is stepped over, as long as the blocks themselves follow each other; each kind is told once.
Source: draft-ietf-opsawg-pcapng-03.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from wirecheck.capture import frames
from wirecheck.capture.link import link_type as link
from wirecheck.capture.link import packet
from wirecheck.capture.source.classic import MAX_PACKET_BYTES, read32
from wirecheck.decode.compiled import borrowing_njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from wirecheck.capture.source.rows import Rows
    from wirecheck.capture.source.windows import Windows

MAGIC = b"\x0a\x0d\x0d\x0a"
MAX_BLOCK_BYTES = 16 << 20  # Wireshark's limit
_SECTION, _INTERFACE, _OLD_PACKET, _SIMPLE_PACKET, _STATISTICS, _PACKET = 0x0A0D0D0A, 1, 2, 3, 5, 6
_JOURNAL = 9  # a systemd journal entry: no packet, but Wireshark gives it a frame number
_MORE, _FULL, _IN_PYTHON, _BAD_LENGTH, _LENGTHS_DISAGREE, _NO_INTERFACE, _BAD_PACKET = range(7)
_BROKEN = {_BAD_LENGTH: "impossible block length", _LENGTHS_DISAGREE: "block lengths that disagree"}
_STEPPED_OVER = {_NO_INTERFACE: "packet of an undeclared interface", _BAD_PACKET: "impossible packet length"}
# One row per interface: link type, snaplen, unit of time, offset of time.
# Units: 0..9 are 10^-n seconds, _BINARY + n are 2^-n seconds.
_LINK_TYPE, _SNAPLEN, _UNIT, _OFFSET_NS = range(4)
_BINARY = 128
_LATEST_NS = frames.LATEST_NS  # times beyond saturate: they are damage, and must not overflow
_FINEST_DECIMAL, _FINEST_BINARY = 18, 62  # 10^-n and 2^-n seconds whose number in a second int64 holds
_FARTHEST_OFFSET_S = 1 << 31
_NO_LINK_TYPE = -1
MOST_INTERFACES = 1 << 16  # of a section; dumpcap and Wireshark write one per interface of a host
_IF_TSRESOL, _ISB_IFDROP, _IF_TSOFFSET, _ISB_OSDROP = 9, 5, 14, 7


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
    return max(min(min(value, _LATEST_NS) + offset_ns, _LATEST_NS), 0)


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


@dataclass
class Lie:
    """Something in the blocks that cannot be: the first such place, and how many there are."""

    first: int
    count: int = 1


class Blocks:
    """The walk over one pcapng file."""

    def __init__(self) -> None:
        self._big = 0
        self._begin_section()
        self._lies: dict[str, Lie] = {}
        self.link_types: set[int] = set()

    def _begin_section(self) -> None:
        self._room = np.zeros((1, 4), np.int64)
        self._declared = 0
        self._dropped: dict[int, int] = {}  # by interface the newest of its running totals

    def walk(self, windows: Windows, rows: Rows, limit: int) -> tuple[bool, str | None]:
        """Whole blocks of the window, at most `limit` packets: (is the window used up, what is broken there)."""
        while True:
            interfaces = self._room[: self._declared]
            status = _walk(windows.data, windows.filled, (self._big, interfaces), limit, rows.state)
            at = int(rows.state.counters[packet.POSITION])
            if status in _STEPPED_OVER:
                self._lie(_STEPPED_OVER[status], windows.start + at)
                rows.state.counters[packet.PACKET_NO] += 1
                rows.state.counters[packet.POSITION] += self._total(windows.data[at : at + 8].data)
                continue
            if status != _IN_PYTHON:
                return status == _MORE, _BROKEN.get(status)
            block = windows.data[at : windows.filled].data
            if block[:4] == MAGIC:
                total, broken = self._section(block)
                if total == 0:
                    return broken is None, broken
            else:
                total = self._interface_or_statistics(block, windows.start + at, rows)
            rows.state.counters[packet.POSITION] += total

    def truncated(self, rest: int) -> str:
        """What is cut when the file ends `rest` bytes behind the last whole block."""
        return "truncated block header" if rest < 12 else "truncated block"

    def lies(self) -> list[str]:
        """What was not believed, a line for each kind."""
        return [
            f"{what} at byte offset {lie.first}" + (f", the first of {lie.count}" if lie.count > 1 else "")
            for what, lie in self._lies.items()
        ]

    def _lie(self, what: str, offset: int) -> None:
        if what in self._lies:
            self._lies[what].count += 1
        else:
            self._lies[what] = Lie(offset)

    def _total(self, head: memoryview) -> int:
        return (int(struct.unpack(">I" if self._big else "<I", head[4:8])[0]) + 3) & ~3

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
        self._begin_section()
        return total, None

    def _interface_or_statistics(self, block: memoryview, offset: int, rows: Rows) -> int:
        order = ">" if self._big else "<"
        kind, total = struct.unpack(order + "II", block[:8])
        body = block[8 : total - 4]
        if kind == _INTERFACE:
            self._declare(body, order, offset)
        elif len(body) >= 12:
            self._count_dropped(body, order, offset, rows)
        else:
            self._lie("statistics block too short, ignored", offset)
        return (int(total) + 3) & ~3

    def _declare(self, body: memoryview, order: str, offset: int) -> None:
        """One more interface, also where its block is too short to say what it is: the next one has the next number."""
        if self._declared == MOST_INTERFACES:
            self._lie(f"more than {MOST_INTERFACES} interfaces in a section, not read", offset)
            return
        link_type, snaplen, unit, offset_s = _NO_LINK_TYPE, 0, 6, 0
        if len(body) < 8:
            self._lie("impossible interface, its packets are not read", offset)
        else:
            link_type, _, snaplen = struct.unpack(order + "HHI", body[:8])
            self.link_types.add(link_type)
            options = self._options(body[8:], order, {_IF_TSRESOL: 1, _IF_TSOFFSET: 8}, offset)
            unit = self._unit(options.get(_IF_TSRESOL, b"\x06")[0], offset)
            offset_s = self._offset_s(struct.unpack(order + "q", options.get(_IF_TSOFFSET, bytes(8)))[0], offset)
        if self._declared == len(self._room):
            self._room = np.concatenate([self._room, np.zeros_like(self._room)])
        self._room[self._declared] = link_type, snaplen, unit, offset_s * 1_000_000_000
        self._declared += 1

    def _unit(self, said: int, offset: int) -> int:
        """Of if_tsresol, whose high bit says a power of two."""
        power, finest = said & 127, _FINEST_BINARY if said & 128 else _FINEST_DECIMAL
        if power > finest:
            self._lie(f"if_tsresol {said}, a fraction of a second that cannot be, read as microseconds", offset)
            return 6
        return _BINARY + power if said & 128 else power

    def _offset_s(self, said: int, offset: int) -> int:
        if abs(said) > _FARTHEST_OFFSET_S:
            self._lie(f"if_tsoffset of {said} seconds, ignored", offset)
            return 0
        return said

    def _count_dropped(self, body: memoryview, order: str, offset: int, rows: Rows) -> None:
        """isb_ifdrop and isb_osdrop are running totals of the interface."""
        interface = struct.unpack(order + "I", body[:4])[0]
        if interface >= self._declared:
            self._lie("statistics of an undeclared interface, ignored", offset)
            return
        options = self._options(body[12:], order, {_ISB_IFDROP: 8, _ISB_OSDROP: 8}, offset)
        lost = sum(struct.unpack(order + "Q", value)[0] for value in options.values())
        if lost > frames.MOST_COUNT:
            self._lie(f"{lost} dropped packets, counted as {frames.MOST_COUNT}", offset)
            lost = frames.MOST_COUNT
        before = self._dropped.get(interface, 0)
        self._dropped[interface] = max(lost, before)
        counters = rows.state.counters
        counters[packet.DROPPED] = min(int(counters[packet.DROPPED]) + max(lost - before, 0), frames.MOST_COUNT)

    def _options(self, body: memoryview, order: str, sizes: dict[int, int], offset: int) -> dict[int, bytes]:
        """The options of these codes; one of another size than its code has is ignored, and so is what runs over."""
        found, at = {}, 0
        while at + 4 <= len(body):
            code, size = struct.unpack(order + "HH", body[at : at + 4])
            if code == 0:
                break
            if at + 4 + size > len(body):
                self._lie("option that runs beyond its block, ignored", offset)
                break
            if code in sizes and size != sizes[code]:
                self._lie(f"option {code} of {size} bytes, ignored", offset)
            elif code in sizes:
                found[code] = bytes(body[at + 4 : at + 4 + size])
            at += 4 + ((size + 3) & ~3)
        return found
