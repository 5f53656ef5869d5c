"""When a run of a fuzzer ends: after a number of inputs or, with --minutes, at a time.

Knows: that an hour at night is given in minutes, while a count repeats a run exactly.
Rule: what has begun is finished, so a run of minutes ends in order, with its counts; its seed and count repeat it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

S_PER_MINUTE = 60


@dataclass(frozen=True)
class Bound:
    """The end of one run: `inputs`, or if `minutes` is set, that time from when this was made.

    `minutes`: of wall time; with it, `inputs` bounds nothing.
    """

    inputs: int
    minutes: float | None = None
    begin_s: float = field(default_factory=time.monotonic)

    def over(self, done: int) -> bool:
        """Whether the run ends here, after so many inputs."""
        return self.left_minutes() <= 0 if self.minutes is not None else done >= self.inputs

    def next(self, done: int, most: int) -> int:
        """How many inputs come next, at most so many together."""
        return most if self.minutes is not None else min(most, self.inputs - done)

    def left_minutes(self) -> float:
        """Minutes until the end, not below 0; infinite without a time."""
        if self.minutes is None:
            return float("inf")
        return max(self.minutes - (time.monotonic() - self.begin_s) / S_PER_MINUTE, 0.0)

    def part(self, share: float) -> Bound:
        """A run of its own that begins now, with a share (0 to 1) of the inputs and of the minutes."""
        return Bound(max(int(self.inputs * share), 1), None if self.minutes is None else self.minutes * share)


def add_minutes(parser: argparse.ArgumentParser) -> None:
    """Add the option to a fuzzer's command line."""
    parser.add_argument("--minutes", type=float, help="end in order after so many minutes, whatever the count")
