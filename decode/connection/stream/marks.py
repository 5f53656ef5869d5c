"""Small facts about a stream: how far it was some time ago, and where a message of it may begin.

Knows: a mark that ages by time and by frames, a candidate for a message's beginning, how much of one can be read.
Refuses to know: what is marked (direction.py), and what makes a candidate (framing/candidates.py).
Rule: a mark that has aged was true at least half a slack ago (limits.py), in capture time or in frames.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from wirecheck.decode.connection.stream.frame import UNSET

# what can be read of the message that a direction stands in
READABLE: Final = 0
HEADER_UNSEEN: Final = 1
GIVEN_UP: Final = 2  # it could wait no longer (eviction.py): only its end is still of interest
DOUBTED: Final = 3  # an opening that the server's answer or the next request has to confirm


@final
class Aging:
    """How far a direction had come half a slack ago and a whole one, by time and by frames."""

    def __init__(self) -> None:
        self.time_middle: i64 = UNSET
        self.time_old: i64 = UNSET
        self.frames_middle: i64 = UNSET
        self.frames_old: i64 = UNSET

    def time_passed(self, now: i64, half_slacks: i64) -> None:
        self.time_old = self.time_middle if half_slacks == 1 else now
        self.time_middle = now

    def frames_passed(self, now: i64) -> None:
        self.frames_old = self.frames_middle
        self.frames_middle = now

    def old(self) -> i64:
        """What it was for certain at least half a slack ago."""
        return max(self.time_old, self.frames_old)

    def limit(self, at: i64) -> None:
        self.time_middle = min(self.time_middle, at)
        self.time_old = min(self.time_old, at)
        self.frames_middle = min(self.frames_middle, at)
        self.frames_old = min(self.frames_old, at)


@final
class Candidate:
    """Where a message may begin in a stream without boundaries, and what its header says."""

    def __init__(self, begin: i64, end: i64, correlation: i64, client: i64) -> None:
        self.begin: i64 = begin
        self.end: i64 = end
        self.correlation: i64 = correlation
        self.client: i64 = client
        """Hash of its client id; 0 of a response."""
