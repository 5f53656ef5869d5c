"""Sequence numbers of one direction and the offsets they stand for: what was sent, acknowledged, shown.

Knows: that numbers have 32 bits and wrap (RFC 9293 3.4).
Refuses to know: bytes, and how the stream goes on (direction.py).
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from wirecheck.decode.connection.stream.frame import UNSET
from wirecheck.decode.connection.stream.marks import Aging
from wirecheck.decode.connection.stream.modes import UNSEEN, Mode

BELIEVABLE: Final = 1 << 30  # the largest window TCP can offer (RFC 7323 2.3): nothing further away belongs here


class Sequence:
    def __init__(self) -> None:
        self.stream: Mode = UNSEEN
        self.base: i64 = 0  # the sequence number of offset 0
        self.next_offset: i64 = 0  # of the next byte in order
        self.newest: i64 = 0  # end of the newest byte seen
        self.acknowledged: i64 = UNSET  # what the peer has, by its acknowledgements
        self.acknowledged_before: Aging = Aging()
        self.shown: i64 = UNSET  # how far each of two agents has shown this direction, data or acknowledgements
        self.shown_by_second: i64 = UNSET
        self.shown_by_both_before: Aging = Aging()
        self.fin: i64 = UNSET  # offset of FIN

    def offset_of(self, seq: i64) -> i64:
        """Where a sequence number lies: the place nearest to the newest byte."""
        ahead: i64 = (seq - self.base - self.newest) & 0xFFFFFFFF
        if ahead >= 0x80000000:
            ahead -= 0x100000000
        return self.newest + ahead

    def began_at(self, seq: i64) -> bool:
        """Whether offset 0 is at this number."""
        return (self.base - seq) & 0xFFFFFFFF == 0

    # --- how far it is

    def acknowledge(self, seq: i64, by_second: bool) -> None:
        """The peer has everything below this number."""
        if self.stream == UNSEEN:
            return
        at = self.offset_of(seq)
        if self.fin != UNSET:
            at = min(at, self.fin)
        if at - self.newest < BELIEVABLE:
            self.acknowledged = max(self.acknowledged, at)
            self.show(at, by_second)

    def show(self, at: i64, by_second: bool) -> None:
        """The agent of the frame that is looked at has shown it up to this offset."""
        if by_second:
            self.shown_by_second = max(self.shown_by_second, at)
        else:
            self.shown = max(self.shown, at)

    def time_passed(self, half_slacks: i64) -> None:
        self.acknowledged_before.time_passed(self.acknowledged, half_slacks)
        self.shown_by_both_before.time_passed(min(self.shown, self.shown_by_second), half_slacks)

    def frames_passed(self) -> None:
        self.acknowledged_before.frames_passed(self.acknowledged)
        self.shown_by_both_before.frames_passed(min(self.shown, self.shown_by_second))

    def finish_at(self, at: i64) -> None:
        """FIN stands here; what acknowledged it came first in a shuffled capture."""
        self.fin = at
        self.acknowledged = min(self.acknowledged, at)
        self.acknowledged_before.limit(at)
