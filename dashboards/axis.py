"""The one axis of times of a page, in percent from the first to the last sighting of anything.

All pictures of a page share it, so that what is drawn above one another was at the same time.
"""

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from wirecheck.story.verdict import Verdict
from wirecheck.wording import utc

THINNEST = 0.6  # percent: a single sighting is still seen
TICKS = 4


@dataclass(frozen=True)
class Traffic:
    """What was captured when."""

    first_ns: int
    last_ns: int
    payload_bytes: tuple[int, ...]
    """By slot: as many of one length are between the two times."""


class Axis:
    """Capture time from the first to the last sighting of anything."""

    def __init__(self, times_ns: Iterable[int]) -> None:
        seen_ns = sorted(times_ns) or [0]
        self.first, self.last = utc(seen_ns[0]), utc(seen_ns[-1])
        self.seconds = (self.last - self.first).total_seconds() or 1.0

    def percent(self, time_ns: int) -> float:
        share = (utc(time_ns) - self.first).total_seconds() / self.seconds
        return round(100 * min(max(share, 0.0), 1.0), 3)

    def clock(self, time: dt.datetime | int) -> str:
        """Time of day, with the date where the capture crosses midnight."""
        at = utc(time) if isinstance(time, int) else time
        shown = at.strftime("%H:%M:%S.%f")[:-3]
        return shown if self.first.date() == self.last.date() else f"{at:%m-%d} {shown}"

    def span(self) -> str:
        """From when to when, with the dates."""
        end = "%H:%M:%S" if self.first.date() == self.last.date() else "%Y-%m-%d %H:%M:%S"
        return f"{self.first:%Y-%m-%d %H:%M:%S} to {self.last:{end}} UTC"

    def ticks(self) -> list[dict[str, Any]]:
        step = dt.timedelta(seconds=self.seconds / TICKS)
        made = []
        for n in range(TICKS + 1):
            shown = self.clock(self.first + n * step)
            made.append({"percent": 100 * n / TICKS, "text": shown if self.seconds < TICKS else shown[:-4]})
        return made


def axis_of(result: Verdict, traffic: Traffic | None = None, since_ns: int = 0, until_ns: int = 0) -> Axis:
    """Over everything that has a time, so that every part of the page speaks of the same span. It begins at
    `since_ns`, if that is given, and ends at `until_ns` or later.
    """
    spans: list[tuple[int, int]] = [
        (one.first_ns, one.last_ns)
        for some in (result.clusters, result.topics, result.clients, result.findings)
        for one in some
    ]
    if result.about and result.about.captured:
        spans.append((result.about.captured.from_ns, result.about.captured.to_ns))
    if traffic:
        spans.append((traffic.first_ns, traffic.last_ns))
    times_ns = (*(ns for span in spans for ns in span), since_ns, until_ns)
    return Axis(ns for ns in times_ns if ns and ns >= since_ns)
