"""The pcapng file: sections of blocks, each section with its own byte order and interfaces.

`walk` consumes whole blocks only. Statements of a block are validated: an impossible option is ignored, an impossible
count clamped, an impossible packet skipped; each kind is reported once. Source: draft-ietf-opsawg-pcapng-03.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, final

import numpy as np
from librt.vecs import append, vec
from mypy_extensions import i64

from wirecheck.capture import frames
from wirecheck.capture.link.link_type import NO_PACKET
from wirecheck.capture.link.packet import Headers  # noqa: TC001 -- compiled: a type is one at run time too
from wirecheck.capture.source.classic import (
    MAX_PACKET_BYTES,
    MORE,
    Survey,
    read32,
)

if TYPE_CHECKING:
    from wirecheck.capture.source.rows import Rows
    from wirecheck.capture.source.windows import Windows

BINARY: Final = 128  # units of time: 0 to 18 are 10^-n seconds, BINARY + n are 2^-n seconds


def time_ns(ticks: i64, unit: i64, offset_ns: i64, latest_ns: i64) -> i64:
    """Of 63 bits of ticks; what is beyond the latest time is the latest: it is damage, and must not overflow."""
    value = latest_ns
    if unit < BINARY:
        scale: i64 = 1
        for _ in range(unit - 9 if unit > 9 else 9 - unit):
            scale *= 10
        if unit > 9:
            value = ticks // scale
        elif ticks > latest_ns // scale:
            return latest_ns
        else:
            value = ticks * scale
    else:
        shift = unit - BINARY
        seconds = ticks >> shift
        fraction = ticks - (seconds << shift)
        if shift > 33:  # keeps fraction * 1e9 inside int64
            fraction >>= shift - 33
            shift = 33
        if seconds > latest_ns // 1_000_000_000:
            return latest_ns
        value = seconds * 1_000_000_000 + ((fraction * 1_000_000_000) >> shift)
    return max(min(min(value, latest_ns) + offset_ns, latest_ns), 0)


@final
class Interfaces:
    """Those of a section, a column each, with their clocks (draft-ietf-opsawg-pcapng-03, if_tsresol, if_tsoffset)."""

    def __init__(self) -> None:
        self.count: i64 = 0
        self.link_type: vec[i64] = vec[i64]()
        self.snaplen: vec[i64] = vec[i64]()
        self.unit: vec[i64] = vec[i64]()
        self.offset_ns: vec[i64] = vec[i64]()

    def declare(self, link_type: i64, snaplen: i64, unit: i64, offset_ns: i64) -> None:
        self.link_type = append(self.link_type, link_type)
        self.snaplen = append(self.snaplen, snaplen)
        self.unit = append(self.unit, unit)
        self.offset_ns = append(self.offset_ns, offset_ns)
        self.count += 1

    def copy(self) -> Interfaces:
        found = Interfaces()
        for i in range(self.count):
            found.declare(self.link_type[i], self.snaplen[i], self.unit[i], self.offset_ns[i])
        return found


BLOCK = 10
TLS_KEY_LOG = 0x544C534B


def key_log(body: memoryview, order: str) -> bytes | None:
    """The lines in a Decryption Secrets Block (draft-ietf-opsawg-pcapng, 4.7); None where its length lies.

    `order` is its section's byte order.
    """
    if len(body) < 8:
        return None
    kind, length = struct.unpack(order + "II", body[:8])
    if length > len(body) - 8:
        return None
    return bytes(body[8 : 8 + length]) if kind == TLS_KEY_LOG else b""


MAGIC: Final = b"\x0a\x0d\x0d\x0a"
MAX_BLOCK_BYTES: Final = 16 << 20  # Wireshark's limit
_SECTION: Final = 0x0A0D0D0A
_INTERFACE: Final = 1
_OLD_PACKET: Final = 2
_SIMPLE_PACKET: Final = 3
_STATISTICS: Final = 5
_PACKET: Final = 6
_SECRETS: Final = 10
_JOURNAL: Final = 9  # a systemd journal entry: no packet, but Wireshark gives it a frame number
_FULL: Final = 1
_IN_PYTHON: Final = 2
_BAD_LENGTH: Final = 3
_LENGTHS_DISAGREE: Final = 4
_NO_INTERFACE: Final = 5
_BAD_PACKET: Final = 6
_BROKEN = {_BAD_LENGTH: "impossible block length", _LENGTHS_DISAGREE: "block lengths that disagree"}
_STEPPED_OVER = {_NO_INTERFACE: "packet of an undeclared interface", _BAD_PACKET: "impossible packet length"}
_FINEST_DECIMAL: Final = 18  # 10^-n and 2^-n seconds whose number in a second int64 holds
_FINEST_BINARY: Final = 62
_FARTHEST_OFFSET_S: Final = 1 << 31
_NO_LINK_TYPE: Final = -1
MOST_INTERFACES: Final = 1 << 16  # of a section; dumpcap and Wireshark write one per interface of a host
_IF_TSRESOL: Final = 9
_ISB_IFDROP: Final = 5
_IF_TSOFFSET: Final = 14
_ISB_OSDROP: Final = 7


def ticks_in(data: bytes) -> int | None:
    """Time of the first packet in a part of a file that begins at a multiple of 4 bytes, in its interface's units; None
    if no packet block is found.
    """
    for order in ("<u4", ">u4"):
        words = np.frombuffer(data, order, len(data) // 4).astype(np.int64)
        at = np.flatnonzero(words[:-5] == _PACKET)
        total = words[at + 1]
        end = at + total // 4 - 1
        whole = (total >= 32) & (total % 4 == 0) & (end < len(words))
        at, total, end = at[whole], total[whole], end[whole]
        at = at[words[end] == total]
        if len(at):
            return int(words[at[0] + 3]) << 32 | int(words[at[0] + 4])
    return None


@final
class Blocks:
    """The walk over one pcapng file."""

    def __init__(self) -> None:
        self._big = False
        self._interfaces = Interfaces()
        self._dropped: dict[int, int] = {}  # by interface the newest of its running totals
        self._lies: dict[str, list[int]] = {}  # by what cannot be: the first such place, how many there are
        self.link_types: set[int] = set()
        self.key_logs: list[bytes] = []  # TLS secrets; the caller removes those it takes
        self._latest_ns: i64 = frames.LATEST_NS
        self._untimed: i64 = 0  # packets without a time
        # the block at hand
        self._kind: i64 = 0
        self._length: i64 = 0
        # the packet at hand
        self._interface: i64 = 0
        self._begin: i64 = 0
        self._captured: i64 = 0
        self._wire: i64 = 0

    def walk(self, windows: Windows, rows: Rows, limit: int) -> tuple[bool, str | None]:
        """Whole blocks of the window, at most `limit` packets: (is the window used up, what is broken there)."""
        headers = rows.headers
        while True:
            status = self._walk(windows.data, limit, headers)
            at = int(headers.position)
            if status in _STEPPED_OVER:
                self._lie(_STEPPED_OVER[status], windows.start + at)
                headers.packets += 1
                headers.position += self._total(windows.data, at)
                continue
            if status != _IN_PYTHON:
                return status == MORE, _BROKEN.get(status)
            block = memoryview(windows.data)[at:]
            if windows.data.startswith(MAGIC, at):
                total, broken = self._section(block)
                if total == 0:
                    return broken is None, broken
            else:
                total = self._read_block(block, windows.start + at, headers)
            headers.position += total

    def _walk(self, data: bytes, limit: i64, headers: Headers) -> i64:
        big, interfaces = self._big, self._interfaces
        at = headers.position
        stop = headers.packets + limit
        status: i64 = _FULL
        while headers.packets < stop:
            status = self._find_block(data, at)
            if status != _FULL:
                break
            kind = self._kind
            if kind in (_PACKET, _SIMPLE_PACKET, _OLD_PACKET):
                ts_ns = max(headers.newest_ns, 0)  # a simple packet has no time of its own
                if kind != _SIMPLE_PACKET:
                    ts_ns = self._time_ns(data, at + 12)
                link_type = interfaces.link_type[self._interface]
                headers.interface = self._interface
                if not headers.take_packet(data, self._begin, self._captured, self._wire, link_type, ts_ns):
                    break
                if kind == _OLD_PACKET:
                    lost = read32(data, at + 8, big)
                    lost = lost & 0xFFFF if big else lost >> 16
                    headers.dropped += lost if lost != 0xFFFF else 0  # 0xFFFF: not known
                elif kind == _SIMPLE_PACKET:
                    self._untimed += 1
            elif kind == _JOURNAL:
                headers.packets += 1
                headers.skipped[NO_PACKET] += 1
            at += self._length
        headers.position = at
        return status

    def survey(self, windows: Windows, rows: Rows, survey: Survey) -> int:
        """As `walk`, over times alone: STEPS_BACK or JUMPS before each packet with which time does so; MORE where the
        window is used up; another status where the file is broken.
        """
        while True:
            status = int(self._survey(windows.data, survey))
            at = int(survey.position)
            if status in _STEPPED_OVER:
                survey.packets += 1
                survey.position += self._total(windows.data, at)
                continue
            if status != _IN_PYTHON:
                return status
            if survey.away:  # what is declared here is declared once
                return survey.go_back()
            block = memoryview(windows.data)[at:]
            if windows.data.startswith(MAGIC, at):
                total, broken = self._section(block)
                if total == 0:
                    return MORE if broken is None else _BAD_LENGTH
                survey.next_step_ns = 0
            else:
                total = self._read_block(block, windows.start + at, rows.headers)
            survey.position += total

    def _survey(self, data: bytes, survey: Survey) -> i64:
        at, packets, newest_ns, step_ns = survey.position, survey.packets, survey.newest_ns, survey.next_step_ns
        status: i64 = _FULL
        while True:
            status = self._find_block(data, at)
            if status != _FULL:
                break
            kind = self._kind
            if kind in (_PACKET, _OLD_PACKET, _SIMPLE_PACKET):
                if kind != _SIMPLE_PACKET:
                    ts_ns = self._time_ns(data, at + 12)
                    if ts_ns < newest_ns - step_ns or ts_ns > newest_ns + survey.jump_ns:
                        survey.newest_ns, survey.next_step_ns = newest_ns, step_ns
                        if not survey.is_away(at, packets, ts_ns) or step_ns == 0:
                            return survey.go_back()
                    else:
                        newest_ns = max(newest_ns, ts_ns)
                        step_ns = survey.step_ns
                        if survey.away != 0:
                            survey.come_back()
                packets += 1
            elif kind == _JOURNAL:
                packets += 1
            at += self._length
        survey.position, survey.packets, survey.newest_ns, survey.next_step_ns = at, packets, newest_ns, step_ns
        return status

    def copy(self) -> Blocks:
        """To go on at another place of the same section."""
        found = Blocks()
        found._big, found._interfaces = self._big, self._interfaces.copy()
        found._dropped, found.link_types = dict(self._dropped), set(self.link_types)
        return found

    def interfaces(self) -> int:
        """As many as this section declares so far."""
        return int(self._interfaces.count)

    def _find_block(self, data: bytes, at: i64) -> i64:
        """Note kind and length of the block at `at`, and where its packet stands if it is one; _FULL is fine."""
        big, filled = self._big, i64(len(data))
        if at + 12 > filled:
            return MORE
        kind = read32(data, at, big)
        if kind == _SECTION:  # its length is in its own byte order
            return _IN_PYTHON
        total = self._total(data, at)
        if total < 12 or total > MAX_BLOCK_BYTES:
            return _BAD_LENGTH
        if at + total > filled:
            return MORE
        if read32(data, at + total - 4, big) != read32(data, at + 4, big):
            return _LENGTHS_DISAGREE
        if kind in (_INTERFACE, _STATISTICS, _SECRETS):
            return _IN_PYTHON
        self._kind, self._length = kind, total
        if kind in (_PACKET, _SIMPLE_PACKET, _OLD_PACKET):
            return self._find_packet(data, at, total)
        return _FULL

    def _find_packet(self, data: bytes, at: i64, total: i64) -> i64:
        """Note where the packet of the block at `at` stands; _FULL is fine."""
        big, interfaces = self._big, self._interfaces
        if self._kind == _SIMPLE_PACKET:
            if total < 16 or interfaces.count == 0:
                return _BAD_PACKET if total < 16 else _NO_INTERFACE
            self._interface = 0
            self._begin = at + 12
            self._wire = read32(data, at + 8, big)
            self._captured = min(self._wire, total - 16)
            if interfaces.snaplen[0] > 0:
                self._captured = min(self._captured, interfaces.snaplen[0])
            return _FULL if self._captured <= MAX_PACKET_BYTES else _BAD_PACKET
        if total < 32:
            return _BAD_PACKET
        interface = read32(data, at + 8, big)
        if self._kind == _OLD_PACKET:  # two 16-bit numbers: interface, packets dropped before this one
            interface = interface >> 16 if big else interface & 0xFFFF
        if interface >= interfaces.count:
            return _NO_INTERFACE
        captured = read32(data, at + 20, big)
        if captured > total - 32 or captured > MAX_PACKET_BYTES:
            return _BAD_PACKET
        self._interface = interface
        self._begin = at + 28
        self._captured = captured
        self._wire = read32(data, at + 24, big)
        return _FULL

    def _time_ns(self, data: bytes, at: i64) -> i64:
        high, low = read32(data, at, self._big) & 0x7FFFFFFF, read32(data, at + 4, self._big)
        clock, interface = self._interfaces, self._interface
        return time_ns((high << 32) | low, clock.unit[interface], clock.offset_ns[interface], self._latest_ns)

    def _total(self, data: bytes, at: i64) -> i64:
        """Length of a block, with its padding."""
        return (read32(data, at + 4, self._big) + 3) & ~3

    def truncated(self, rest: int) -> str:
        """What is cut when the file ends `rest` bytes behind the last whole block."""
        return "truncated block header" if rest < 12 else "truncated block"

    def lies(self) -> list[str]:
        """What was not believed or is missing, a line for each kind."""
        untimed = f"packets without a time (simple packet blocks): {self._untimed}; times and durations are unknown"
        return [untimed] * (self._untimed > 0) + [
            f"{what} at byte offset {first}" + (f", the first of {count}" if count > 1 else "")
            for what, (first, count) in self._lies.items()
        ]

    def _lie(self, what: str, offset: int) -> None:
        if what in self._lies:
            self._lies[what][1] += 1
        else:
            self._lies[what] = [offset, 1]

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
        self._big = big
        self._interfaces = Interfaces()
        self._dropped = {}
        return total, None

    def _read_block(self, block: memoryview, offset: int, headers: Headers) -> int:
        order = ">" if self._big else "<"
        kind, total = struct.unpack(order + "II", block[:8])
        body = block[8 : total - 4]
        if kind == _SECRETS:
            log = key_log(body, order)
            if log is None:
                self._lie("secrets that run beyond their block, ignored", offset)
            elif log:
                self.key_logs.append(log)
        elif kind == _INTERFACE:
            self._declare(body, order, offset)
        elif len(body) >= 12:
            self._count_dropped(body, order, offset, headers)
        else:
            self._lie("statistics block too short, ignored", offset)
        return (int(total) + 3) & ~3

    def _declare(self, body: memoryview, order: str, offset: int) -> None:
        """One more interface, also where its block is too short to say what it is: the next one has the next number."""
        if self._interfaces.count == MOST_INTERFACES:
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
        self._interfaces.declare(link_type, snaplen, unit, offset_s * 1_000_000_000)

    def _unit(self, value: int, offset: int) -> int:
        """The unit of times by if_tsresol: a power of 10, or BINARY plus a power of 2 if its high bit is set."""
        power, finest = value & 127, _FINEST_BINARY if value & 128 else _FINEST_DECIMAL
        if power > finest:
            self._lie(f"if_tsresol {value}, a fraction of a second that cannot be, read as microseconds", offset)
            return 6
        return BINARY + power if value & 128 else power

    def _offset_s(self, value: int, offset: int) -> int:
        if abs(value) > _FARTHEST_OFFSET_S:
            self._lie(f"if_tsoffset of {value} seconds, ignored", offset)
            return 0
        return value

    def _count_dropped(self, body: memoryview, order: str, offset: int, headers: Headers) -> None:
        """isb_ifdrop and isb_osdrop are running totals of the interface."""
        interface = struct.unpack(order + "I", body[:4])[0]
        if interface >= self._interfaces.count:
            self._lie("statistics of an undeclared interface, ignored", offset)
            return
        options = self._options(body[12:], order, {_ISB_IFDROP: 8, _ISB_OSDROP: 8}, offset)
        lost = sum(struct.unpack(order + "Q", value)[0] for value in options.values())
        if lost > frames.MOST_COUNT:
            self._lie(f"{lost} dropped packets, counted as {frames.MOST_COUNT}", offset)
            lost = frames.MOST_COUNT
        before = self._dropped.get(interface, 0)
        self._dropped[interface] = max(lost, before)
        headers.dropped = min(headers.dropped + max(lost - before, 0), frames.MOST_COUNT)

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
