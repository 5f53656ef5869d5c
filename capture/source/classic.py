"""The classic pcap file: a header of 24 bytes, then packets behind 16 bytes each; four variants.

`walk` consumes whole records only, and names the reason where it stops. Source: draft-ietf-opsawg-pcap-05.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from librt.strings import read_i32_be, read_i32_le
from mypy_extensions import i64

from wirecheck.capture import frames
from wirecheck.capture.link.packet import Headers  # noqa: TC001 -- compiled: a type is one at run time too

if TYPE_CHECKING:
    from wirecheck.capture.source.rows import Rows
    from wirecheck.capture.source.windows import Windows

MAX_PACKET_BYTES: Final = 1 << 20  # Wireshark's limit is 256 KiB; Linux BIG TCP makes packets of up to 512 KiB
HEADER_BYTES: Final = 24
# Magic number as it stands in the file -> (big endian, nanoseconds per unit of the fraction)
MAGIC = {
    b"\xd4\xc3\xb2\xa1": (False, 1000),
    b"\xa1\xb2\xc3\xd4": (True, 1000),
    b"\x4d\x3c\xb2\xa1": (False, 1),
    b"\xa1\xb2\x3c\x4d": (True, 1),
}
MORE: Final = 0
_FULL: Final = 1
_BAD_LENGTH: Final = 2
STEPS_BACK: Final = 10  # a survey ends before a packet that is so much older than the newest before it
JUMPS: Final = 11  # or so much newer
LONE: Final = 4  # so few packets may have a time of their own
LATE_NS: Final = 1_000_000_000  # packets come late by less


def read32(data: bytes, at: i64, big: bool) -> i64:
    return i64(read_i32_be(data, at) if big else read_i32_le(data, at)) & 0xFFFFFFFF


@final
class Survey:
    """Where a walk that looks at times only stands, and how old the packet there is."""

    def __init__(self, position: int, packets: int, newest_ns: int, step_ns: int) -> None:
        self.step_ns: i64 = step_ns  # less is how interfaces and cores deliver packets
        self.jump_ns: i64 = frames.LATEST_NS  # less is how packets follow each other
        self.next_step_ns: i64 = step_ns  # to the next packet: none at the beginning of a section
        self.position: i64 = position  # of the next packet in its window
        self.packets: i64 = packets  # before it
        self.newest_ns: i64 = newest_ns  # of those packets that it still has to follow
        self.ts_ns: i64 = 0  # of the packet at which time steps back or jumps
        self.most_away: i64 = LONE  # where time returns within so many packets, they alone have another time
        self.away: i64 = 0  # so many packets have another time by now, from these on:
        self.away_position: i64 = 0
        self.away_packets: i64 = 0
        self.away_ns: i64 = 0
        self.lone: i64 = 0  # packets that alone have another time

    def is_away(self, position: i64, packets: i64, ts_ns: i64) -> bool:
        """Whether a packet of another time may be one of few: then the walk goes on behind it."""
        is_late = self.newest_ns - LATE_NS <= ts_ns < self.newest_ns
        if is_late:
            self.come_back()
        if self.away == 0:
            self.away_position, self.away_packets, self.away_ns = position, packets, ts_ns
        self.away += 1
        return self.away <= self.most_away and not is_late

    def come_back(self) -> None:
        """Behind packets that alone had another time."""
        self.lone += self.away
        self.away = 0

    def go_back(self) -> int:
        """To the first packet of another time: time steps back there, or jumps."""
        self.position, self.packets, self.ts_ns = self.away_position, self.away_packets, self.away_ns
        self.away = 0
        return STEPS_BACK if self.ts_ns < self.newest_ns else JUMPS


@final
class Classic:
    """The walk over one pcap file."""

    def __init__(self, windows: Windows, rows: Rows) -> None:
        head = windows.data[:HEADER_BYTES]
        self._big, fraction_ns = MAGIC[head[:4]]
        self._fraction_ns: i64 = fraction_ns
        # The upper half of the link type field is about frame check sequences, which the IP length cuts off.
        self._link_type: i64 = read32(head, 20, self._big) & 0xFFFF
        self.link_types = {int(self._link_type)}
        self.key_logs: list[bytes] = []  # it holds none
        rows.headers.position = HEADER_BYTES

    def walk(self, windows: Windows, rows: Rows, limit: int) -> tuple[bool, str | None]:
        """Whole packets of the window, at most `limit`: (is the window used up, what is broken at the position)."""
        headers = rows.headers
        status = self._walk(windows.data, limit, headers)
        if status == _BAD_LENGTH:
            return False, f"impossible packet length {read32(windows.data, headers.position + 8, self._big)}"
        return status == MORE, None

    def _walk(self, data: bytes, limit: i64, headers: Headers) -> i64:
        big, fraction_ns, link_type, filled = self._big, self._fraction_ns, self._link_type, i64(len(data))
        at = headers.position
        stop = headers.packets + limit
        status: i64 = _FULL
        while headers.packets < stop:
            if at + 16 > filled:
                status = MORE
                break
            captured = read32(data, at + 8, big)
            if captured > MAX_PACKET_BYTES:
                status = _BAD_LENGTH
                break
            if at + 16 + captured > filled:
                status = MORE
                break
            ts_ns = read32(data, at, big) * 1_000_000_000 + read32(data, at + 4, big) * fraction_ns
            if not headers.take_packet(data, at + 16, captured, read32(data, at + 12, big), link_type, ts_ns):
                break
            at += 16 + captured
        headers.position = at
        return status

    def survey(self, windows: Windows, rows: Rows, survey: Survey) -> int:
        """As `walk`, over times alone: STEPS_BACK or JUMPS before each packet with which time does so; MORE where the
        window is used up; another status where the file is broken.
        """
        del rows
        return int(self._survey(windows.data, survey))

    def _survey(self, data: bytes, survey: Survey) -> i64:
        big, fraction_ns, filled = self._big, self._fraction_ns, i64(len(data))
        at, packets, newest_ns, step_ns = survey.position, survey.packets, survey.newest_ns, survey.step_ns
        status: i64 = MORE
        while at + 16 <= filled:
            captured = read32(data, at + 8, big)
            if captured > MAX_PACKET_BYTES:
                status = _BAD_LENGTH
                break
            if at + 16 + captured > filled:
                break
            ts_ns = read32(data, at, big) * 1_000_000_000 + read32(data, at + 4, big) * fraction_ns
            if ts_ns < newest_ns - step_ns or ts_ns > newest_ns + survey.jump_ns:
                survey.newest_ns = newest_ns
                if not survey.is_away(at, packets, ts_ns):
                    return survey.go_back()
            else:
                newest_ns = max(newest_ns, ts_ns)
                if survey.away != 0:
                    survey.come_back()
            packets += 1
            at += 16 + captured
        survey.position, survey.packets, survey.newest_ns = at, packets, newest_ns
        return status

    def copy(self) -> Classic:
        """To go on at another place of the same file."""
        return self

    def interfaces(self) -> int:
        """As many as are declared so far."""
        return 1

    def truncated(self, rest: int) -> str:
        """What is cut when the file ends `rest` bytes behind the last whole packet."""
        return "truncated packet header" if rest < 16 else "truncated packet"

    def lies(self) -> list[str]:
        """What was not believed: a record has nothing to lie about but its length, which ends the file."""
        return []
