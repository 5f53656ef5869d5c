"""The segment that is looked at: one row of a call's columns at a time.

Knows: where the columns lie (bytes of little-endian int64), and which of them a segment has.
Refuses to know: which connection a segment belongs to, and what it changes there.
Rule: there is one Frame a follower, and `look` moves it on; whoever needs it later copies what it needs (chunks.py).
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
PSH: Final = 8
ACK: Final = 16


@final
class Columns:
    """A call's segments: one int64 each, a row of ten of them a segment."""

    def __init__(self, rows: bytes, payload: bytes, payload_at: bytes, left_at: bytes, left: bytes) -> None:
        self.rows: bytes = rows
        """pair, side, ts_ns, frame number, source, agent, seq, ack, flags, length on the wire of every segment."""
        self.payload: bytes = payload
        self.payload_at: bytes = payload_at
        self.left_at: bytes = left_at
        self.left: bytes = left
        """Offset and length of every span left out."""


WIDTH: Final = 10  # of a row
NOTHING: Final = Columns(b"", b"", b"", b"", b"")


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
        self.offset: i64 = -1
        """Of its first byte in its direction, once it is known."""

    def begin(self, columns: Columns) -> None:
        self.columns = columns
        self.payload = columns.payload

    def look(self, i: i64) -> None:
        columns = self.columns
        rows = columns.rows
        at: i64 = i * (8 * WIDTH)
        self.pair = read_i64_le(rows, at)
        self.side = read_i64_le(rows, at + 8)
        self.ts_ns = read_i64_le(rows, at + 16)
        self.number = read_i64_le(rows, at + 24)
        self.source = read_i64_le(rows, at + 32)
        self.agent = read_i64_le(rows, at + 40)
        self.seq = read_i64_le(rows, at + 48)
        self.ack = read_i64_le(rows, at + 56)
        self.flags = read_i64_le(rows, at + 64)
        self.length = read_i64_le(rows, at + 72)
        self.start = read_i64_le(columns.payload_at, 8 * i)
        self.end = read_i64_le(columns.payload_at, 8 * i + 8)
        self.first_left = read_i64_le(columns.left_at, 8 * i)
        self.end_left = read_i64_le(columns.left_at, 8 * i + 8)
        self.offset = -1

    def left_offset(self, k: i64) -> i64:
        """Where its span k begins in the payload as on the wire."""
        return read_i64_le(self.columns.left, 16 * k)

    def left_length(self, k: i64) -> i64:
        return read_i64_le(self.columns.left, 16 * k + 8)

    def forget(self) -> None:
        """The call is over: its bytes are nobody's any more. Its time stays the newest that was looked at."""
        self.columns = NOTHING
        self.payload = b""
