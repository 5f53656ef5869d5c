"""The one axis of times of a page, in percent from the first to the last sighting of anything.

All pictures of a page share it, so that what is drawn above one another was at the same time.
"""

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import Any

from wirecheck.wording import ns_of, rfc3339, utc

Row = Mapping[str, Any]
THINNEST = 0.6  # percent: a single sighting is still seen
TICKS = 4
Time = int | str
"""Nanoseconds, or as JSON has it where rows of tables are shown."""


class Axis:
    """Capture time from the first to the last sighting of anything."""

    def __init__(self, times: Iterable[Time]) -> None:
        seen = sorted(map(moment, times))
        self.first = seen[0] if seen else dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
        self.last = seen[-1] if seen else self.first
        self.seconds = (self.last - self.first).total_seconds() or 1.0

    def percent(self, time: Time) -> float:
        share = (moment(time) - self.first).total_seconds() / self.seconds
        return round(100 * min(max(share, 0.0), 1.0), 3)

    def clock(self, time: dt.datetime | Time | None) -> str:
        """Time of day, with the date where the capture crosses midnight."""
        if time is None:
            return ""
        at = time if isinstance(time, dt.datetime) else moment(time)
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


def moment(time: Time) -> dt.datetime:
    return utc(time) if isinstance(time, int) else dt.datetime.fromisoformat(time)


def written(time: Time) -> str:
    """As HTML takes it."""
    return rfc3339(time) if isinstance(time, int) else time


def axis_of(result: Row, traffic: Row | None = None, since_ns: int = 0, until_ns: int = 0) -> Axis:
    """Over everything that has a time, so that every part of the page speaks of the same span. It begins at
    `since_ns`, if that is given, and ends at `until_ns` or later.
    """
    rows = (*result["clusters"], *result["topics"], *result["clients"])
    times = [row[end] for row in rows for end in ("first_seen", "last_seen") if row.get(end)]
    times += (result.get("captured") or {}).values()
    times += (traffic["first"], traffic["last"]) if traffic else ()
    seen = [ns for one in result["findings"] for ns in (one.first_ns, one.last_ns)]
    return Axis(ns for ns in (*map(ns_of, times), *seen, since_ns, until_ns) if ns and ns >= since_ns)
