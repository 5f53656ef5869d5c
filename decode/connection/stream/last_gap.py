"""The last gap of a direction, as long as its sender may still show that it is none.

An invented acknowledgement or segment can close a hole that never was. The sender then goes on where the gap begins,
and the peer acknowledges that: both say that nothing behind it was of the stream (gaps.py, `reopen`).
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from wirecheck.decode.connection.stream.out_of_order import OutOfOrder

LATE_BYTES: Final = 1 << 18  # held of what comes late; its acknowledgement is one round trip away
LATE_PIECES: Final = 256
LATE_NS: Final = 5_000_000_000
MOST_GAPS: Final = 16
BELIEVED_FRAMES: Final = 64  # of a direction that went on behind its gap


@final
class LastGap:
    def __init__(self, begin: i64, end: i64, frames: i64, at_boundary: bool) -> None:
        self.begin: i64 = begin
        self.end: i64 = end
        self.frames: i64 = frames
        """How many its direction had when it was declared."""
        self.at_boundary: bool = at_boundary
        """A message was to begin there."""
        self.later: list[tuple[int, int]] = []
        """Gaps that were declared behind it before it was believed: begin and end."""
        self.late: OutOfOrder = OutOfOrder()
        """What came of it since."""

    def is_believed(self, frames: i64) -> bool:
        full = len(self.later) >= MOST_GAPS
        return full or (self.late.count == 0 and frames - self.frames >= BELIEVED_FRAMES)

    def unseen_bytes(self) -> i64:
        total = self.end - self.begin
        for begin, end in self.later:
            total += end - begin
        return total

    def read_behind(self, upto: i64) -> list[tuple[int, int]]:
        """The stretches that were read between these gaps, and behind the last of them."""
        found: list[tuple[int, int]] = []
        at = self.end
        for begin, end in self.later:
            if at < begin:
                found.append((at, begin))
            at = end
        if at < upto:
            found.append((at, upto))
        return found

    def forget_old(self, now: i64) -> None:
        """What came late counts for so long, and only so much of it."""
        first = self.late.first
        if first is None:
            return
        if self.late.kept > LATE_BYTES or self.late.count > LATE_PIECES or now - first.ts_ns > LATE_NS:
            self.late.clear()

    def is_contradicted(self, acknowledged: i64, handed_out: i64) -> bool:
        """Whether the peer acknowledges what came late, and not yet the end of the gap; or whether all of the gap came,
        and nothing behind it was handed out.
        """
        first = self.late.first
        if first is None or first.begin != self.begin or acknowledged <= self.begin:
            return False
        whole = self.late.end >= self.end >= handed_out and len(self.later) == 0
        return whole or acknowledged < self.end
