"""The one axis of times of a page, in percent from the first to the last sighting of anything.

All pictures of a page share it, so that what is drawn above one another was at the same time.
"""

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import Any

Row = Mapping[str, Any]
THINNEST = 0.6  # percent: a single sighting is still seen
TICKS = 4


class Axis:
    """Capture time from the first to the last sighting of anything."""

    def __init__(self, times: Iterable[str]) -> None:
        seen = sorted(times)
        self.first = moment(seen[0]) if seen else dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
        self.last = moment(seen[-1]) if seen else self.first
        self.seconds = (self.last - self.first).total_seconds() or 1.0

    def percent(self, time: str) -> float:
        share = (moment(time) - self.first).total_seconds() / self.seconds
        return round(100 * min(max(share, 0.0), 1.0), 3)

    def clock(self, time: dt.datetime | str | None) -> str:
        """Time of day, with the date where the capture crosses midnight."""
        if time is None:
            return ""
        at = moment(time) if isinstance(time, str) else time
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


def moment(time: str) -> dt.datetime:
    return dt.datetime.fromisoformat(time)


def axis_of(result: Row, traffic: Row | None = None, since: str = "", until: str = "") -> Axis:
    """Over everything that has a time, so that every part of the page speaks of the same span. It begins at `since`, if
    that is given, and ends at `until` or later.
    """
    rows = (*result["clusters"], *result["topics"], *result["clients"], *result["findings"])
    times = [row[end] for row in rows for end in ("first_seen", "last_seen") if row.get(end)]
    times += (result.get("captured") or {}).values()
    times += (traffic["first"], traffic["last"]) if traffic else ()
    return Axis(time for time in (*times, since, until) if time and time >= since)
