"""The current segment: one row of a call's columns at a time. A follower has one Frame, and `look` moves it.

Code that needs a segment later copies what it needs (chunks.py). Which connection it belongs to is not known here.
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import read_i64_le
from mypy_extensions import i64

NEVER: Final = (1 << 62) - 1  # a time behind all others, and the largest number that costs nothing (mypyc)
UNSET: Final = 1 - (1 << 62)  # a position or a time that is not known
FIN: Final = 1
SYN: Final = 2
RST: Final = 4
ACK: Final = 16


@final
class Columns:
    """A call's segments."""

    def __init__(self, count: i64, numbers: bytes, payload: bytes, left: bytes) -> None:
        self.count: i64 = count
        self.numbers: bytes = numbers
        """One int64 a segment: pair, side, ts_ns, number, source, agent, seq, ack, flags, length on the wire, where its
        kept bytes begin and end in the payload, where its spans begin and end in those left out, how many of its bytes
        a snap length cut, the run that made its numbers, the receive window; column by column.
        """
        self.payload: bytes = payload
        self.left: bytes = left
        """Offset and length of every span that is left out."""


WIDTH: Final = 17  # columns
THE_WIRES: Final = 0  # `run` of a segment with the sequence numbers it had on the wire
NOTHING: Final = Columns(0, b"", b"", b"")


@final
class Frame:
    def __init__(self) -> None:
        self.columns: Columns = NOTHING
        self.payload: bytes = b""
        self.pair: i64 = 0
        self.side: i64 = 0
        """0 from the lower endpoint, 1 from the higher."""
        self.ts_ns: i64 = 0
        self.number: i64 = 0
        self.source: i64 = 0
        self.agent: i64 = 0
        self.seq: i64 = 0
        self.ack: i64 = 0
        self.flags: i64 = 0
        self.length: i64 = 0
        """Of its payload on the wire."""
        self.start: i64 = 0
        """Where its kept bytes begin in the call's payload, and end."""
        self.end: i64 = 0
        self.first_left: i64 = 0
        """Its spans left out."""
        self.end_left: i64 = 0
        self.cut: i64 = 0
        """How many bytes at its end a snap length cut."""
        self.run: i64 = THE_WIRES
        """Or the run of its agent that made its sequence numbers: only differences within one mean something."""
        self.window: i64 = -1
        """The receive window that its sender announces, not scaled; -1 unknown."""
        self.offset: i64 = -1
        """Of its first byte in its direction, once it is known."""
        self.ignored: bool = False
        """No receiver takes it: it counts, and changes nothing."""

    def begin(self, columns: Columns) -> None:
        self.columns = columns
        self.payload = columns.payload

    def look(self, i: i64) -> None:
        numbers = self.columns.numbers
        column = 8 * self.columns.count
        at: i64 = 8 * i
        self.pair = read_i64_le(numbers, at)
        self.side = read_i64_le(numbers, at + column)
        self.ts_ns = read_i64_le(numbers, at + 2 * column)
        self.number = read_i64_le(numbers, at + 3 * column)
        self.source = read_i64_le(numbers, at + 4 * column)
        self.agent = read_i64_le(numbers, at + 5 * column)
        self.seq = read_i64_le(numbers, at + 6 * column)
        self.ack = read_i64_le(numbers, at + 7 * column)
        self.flags = read_i64_le(numbers, at + 8 * column)
        self.length = read_i64_le(numbers, at + 9 * column)
        self.start = read_i64_le(numbers, at + 10 * column)
        self.end = read_i64_le(numbers, at + 11 * column)
        self.first_left = read_i64_le(numbers, at + 12 * column)
        self.end_left = read_i64_le(numbers, at + 13 * column)
        self.cut = read_i64_le(numbers, at + 14 * column)
        self.run = read_i64_le(numbers, at + 15 * column)
        self.window = read_i64_le(numbers, at + 16 * column)
        self.offset = -1
        self.ignored = False

    def left_offset(self, k: i64) -> i64:
        """Where its span k begins in the payload as on the wire."""
        return read_i64_le(self.columns.left, 16 * k)

    def left_length(self, k: i64) -> i64:
        return read_i64_le(self.columns.left, 16 * k + 8)

    def forget(self) -> None:
        """The call has ended: release its bytes. `ts_ns` stays the time of the last segment."""
        self.columns = NOTHING
        self.payload = b""
