"""The classic pcap file: 24 bytes of header, then packets behind 16 bytes each.

Knows: its four variants (microseconds or nanoseconds, either byte order) and what a damaged record looks like.
Refuses to know: what is in a packet (packet.py), where the bytes come from (windows.py).
Rule: `walk` consumes whole records only; what it cannot consume it names, with the reason a person reads.
Source: draft-ietf-opsawg-pcap-05.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from wirecheck.capture.link import link_type as link
from wirecheck.capture.link import packet
from wirecheck.decode.compiled import borrowing_njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from wirecheck.capture.source.rows import Rows
    from wirecheck.capture.source.windows import Windows

MAX_PACKET_BYTES = 1 << 20  # Wireshark's limit is 256 KiB; Linux BIG TCP makes packets of up to 512 KiB
HEADER_BYTES = 24
# Magic number as it stands in the file -> (big endian, nanoseconds per unit of the fraction)
MAGIC = {
    b"\xd4\xc3\xb2\xa1": (0, 1000),
    b"\xa1\xb2\xc3\xd4": (1, 1000),
    b"\x4d\x3c\xb2\xa1": (0, 1),
    b"\xa1\xb2\x3c\x4d": (1, 1),
}
_MORE, _FULL, _BAD_LENGTH = range(3)


@borrowing_njit
def read32(data: NDArray[np.uint8], at: int, big: int) -> link.Number:
    if big:
        return link.u32(data, at)
    i = np.uint64(at)
    low = np.int64(data[i]) | (np.int64(data[i + np.uint64(1)]) << 8)
    return low | (np.int64(data[i + np.uint64(2)]) << 16) | (np.int64(data[i + np.uint64(3)]) << 24)


@borrowing_njit
def _walk(
    data: NDArray[np.uint8],
    filled: int,
    layout: tuple[int, int, int],
    limit: int,
    state: packet.State,
) -> link.Number:
    counters = state.counters
    big, fraction_ns, link_type = layout
    at = counters[packet.POSITION]
    stop = counters[packet.PACKET_NO] + limit
    status = _FULL
    while counters[packet.PACKET_NO] < stop:
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
        where = (at + 16, captured, read32(data, at + 12, big), link_type, ts_ns)
        if not packet.take_packet(data, where, state):
            break
        at += 16 + captured
    counters[packet.POSITION] = at
    return status


class Classic:
    """The walk over one pcap file."""

    def __init__(self, windows: Windows, rows: Rows) -> None:
        head = windows.data[:HEADER_BYTES].tobytes()
        big, fraction_ns = MAGIC[head[:4]]
        # The upper half of the link type field tells about frame check sequences, which the IP length cuts off.
        link_type = int.from_bytes(head[20:24], "big" if big else "little") & 0xFFFF
        self._layout = (big, fraction_ns, link_type)
        self.link_types = {link_type}
        rows.state.counters[packet.POSITION] = HEADER_BYTES

    def walk(self, windows: Windows, rows: Rows, limit: int) -> tuple[bool, str | None]:
        """Whole packets of the window, at most `limit`: (is the window used up, what is broken at the position)."""
        status = _walk(windows.data, windows.filled, self._layout, limit, rows.state)
        if status == _BAD_LENGTH:
            at = int(rows.state.counters[packet.POSITION])
            return False, f"impossible packet length {read32(windows.data, at + 8, self._layout[0])}"
        return status == _MORE, None

    def truncated(self, rest: int) -> str:
        """What is cut when the file ends `rest` bytes behind the last whole packet."""
        return "truncated packet header" if rest < 16 else "truncated packet"

    def lies(self) -> list[str]:
        """What was not believed: a record has nothing to lie about but its length, which ends the file."""
        return []
