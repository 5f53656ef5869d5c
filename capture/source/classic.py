"""The classic pcap file: a header of 24 bytes, then packets behind 16 bytes each; four variants.

`walk` consumes whole records only, and names the reason where it stops. Source: draft-ietf-opsawg-pcap-05.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from librt.strings import read_i32_be, read_i32_le
from mypy_extensions import i64

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
_MORE: Final = 0
_FULL: Final = 1
_BAD_LENGTH: Final = 2


def read32(data: bytes, at: i64, big: bool) -> i64:
    return i64(read_i32_be(data, at) if big else read_i32_le(data, at)) & 0xFFFFFFFF


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
        return status == _MORE, None

    def _walk(self, data: bytes, limit: i64, headers: Headers) -> i64:
        big, fraction_ns, link_type, filled = self._big, self._fraction_ns, self._link_type, i64(len(data))
        at = headers.position
        stop = headers.packets + limit
        status: i64 = _FULL
        while headers.packets < stop:
            if at + 16 > filled:
                status = _MORE
                break
            captured = read32(data, at + 8, big)
            if captured > MAX_PACKET_BYTES:
                status = _BAD_LENGTH
                break
            if at + 16 + captured > filled:
                status = _MORE
                break
            ts_ns = read32(data, at, big) * 1_000_000_000 + read32(data, at + 4, big) * fraction_ns
            if not headers.take_packet(data, at + 16, captured, read32(data, at + 12, big), link_type, ts_ns):
                break
            at += 16 + captured
        headers.position = at
        return status

    def truncated(self, rest: int) -> str:
        """What is cut when the file ends `rest` bytes behind the last whole packet."""
        return "truncated packet header" if rest < 16 else "truncated packet"

    def lies(self) -> list[str]:
        """What was not believed: a record has nothing to lie about but its length, which ends the file."""
        return []
