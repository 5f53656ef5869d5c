"""Which topic ID a topic name had when: spans and marks along one axis, in percent of the capture's time.

A span is what was seen, not what is assumed: it begins and ends with a sighting.
"""

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import Any

from wirecheck.dashboards.verdict import named_cluster

Row = Mapping[str, Any]
ROWS_SHOWN = 100
THINNEST = 0.6  # percent: a single sighting is still seen
TICKS = 4
MARKED = ("violation", "anomaly")


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


def axis_of(result: Row, traffic: Row | None = None) -> Axis:
    """Over everything that has a time, so that every part of the page speaks of the same span."""
    rows = (*result["clusters"], *result["topics"], *result["clients"], *result["findings"])
    times = [row[end] for row in rows for end in ("first_seen", "last_seen") if row.get(end)]
    times += (result.get("captured") or {}).values()
    return Axis([*times, traffic["first"], traffic["last"]] if traffic else times)


def rows(result: Row, axis: Axis) -> list[dict[str, Any]]:
    """One row per cluster and name, those with trouble or several ids first, at most ROWS_SHOWN."""
    lives: dict[tuple[str | None, str | None], list[Row]] = {}
    for topic in result["topics"]:
        key = (topic["cluster"], topic["name"])
        lives.setdefault(key if topic["name"] else (topic["cluster"], None), []).append(topic)
    marks: dict[tuple[str | None, str | None], list[Row]] = {}
    for finding in result["findings"]:
        if finding["topic"] and finding["kind"] in MARKED:
            marks.setdefault((finding["cluster"], finding["topic"]), []).append(finding)
    made = [row_of(key, ids, marks.get(key, []), axis) for key, ids in lives.items()]
    made.sort(key=lambda row: (-len(row["marks"]), -len(row["spans"]), row["name"] or "~", row["cluster"]))
    return made[:ROWS_SHOWN]


def row_of(key: tuple[str | None, str | None], ids: list[Row], found: list[Row], axis: Axis) -> dict[str, Any]:
    spans = [span(topic, axis) for topic in sorted(ids, key=lambda topic: topic["first_seen"])]
    return {
        "cluster": named_cluster(key[0]),
        "name": key[1],
        "spans": spans,
        "marks": [
            {"percent": axis.percent(f["first_seen"]), "kind": f["kind"], "code": f["code"], "id": f["id"]}
            for f in found[:20]
        ],
        "label": "; ".join(
            f"{s['topic_id'] or 'no ID'} {s['state']} from {s['from']} to {s['to']}" for s in spans[:20]
        ),
    }


def span(topic: Row, axis: Axis) -> dict[str, Any]:
    start, end = axis.percent(topic["first_seen"]), axis.percent(topic["last_seen"])
    width = max(end - start, THINNEST)
    return {
        "start": min(start, 100 - THINNEST),
        "width": round(width, 3),
        "state": topic["state"],
        "topic_id": topic["topic_id"],
        "from": axis.clock(topic["first_seen"]),
        "to": axis.clock(topic["last_seen"]),
    }
