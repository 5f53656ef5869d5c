"""A line of `wirecheck decode` as one row of text: who said what to whom, about which topic, what went wrong, how fast.

Knows: the order of the cells, and what people call errors, sides and times. Refuses to know colours (each cell has a
role, and whoever prints it may paint it) and how wide a terminal is: a message is one row, whatever reads it.
Rule: the same words with colour and without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from wirecheck.decode.show.message_page import error_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wirecheck.decode.show.message_summary import Summary

Line = dict[str, Any]
WIDEST = {"ends": 30, "api": 24}
"""Columns that are as wide as their widest text so far, up to this."""
DAY = 10
NS_PER_MS = 1_000_000


class Cell(NamedTuple):
    text: str
    role: str
    """time, ends, api, topic, error, unread, latency or frame."""


class Rows:
    """Rows of one output, one below the other."""

    def __init__(self, *, several: bool) -> None:
        """`several`: more than one capture is read, and a frame's number says too little."""
        self._several = several
        self._widths = dict.fromkeys(WIDEST, 0)
        self._day = ""

    def cells(self, line: Line) -> list[Cell]:
        """`line` has a summary, and is one of a capture."""
        found = [
            Cell(self._clock(line["time"]), "time"),
            self._padded("ends", ends(line)),
            self._padded("api", api(line)),
            *content_cells(line),
        ]
        if line["latency_ns"] is not None:
            found.append(Cell(duration(line["latency_ns"]), "latency"))
        frame = line["frame"]
        of = f" of {frame['source']}" if self._several else ""
        return [*found, Cell(f"#{frame['first']}{of}", "frame")]

    def _padded(self, role: str, text: str) -> Cell:
        self._widths[role] = max(self._widths[role], min(len(text), WIDEST[role]))
        return Cell(text.ljust(self._widths[role]), role)

    def _clock(self, time: str) -> str:
        """The time of day with milliseconds; on another day than the first row's, its month and day, too."""
        self._day = self._day or time[:DAY]
        date = "" if time[:DAY] == self._day else f"{time[5:DAY]} "
        return f"{date}{time[DAY + 1 : DAY + 13]}"


def ends(line: Line) -> str:
    """`broker 2 \u2192 p-lost`: the sender and the receiver by name, by address where a name was not seen."""
    request = line["side"] == "request"
    client, server = (line["src"], line["dst"]) if request else (line["dst"], line["src"])
    if name := line["client_id"]:
        client = f"node {name}" if name.isdecimal() else name
    if line["broker"] is not None:
        server = f"broker {line['broker']}"
    return " \u2192 ".join((client, server) if request else (server, client))


def api(line: Line) -> str:
    """`Fetch v13`; of an Envelope also what it carries."""
    version = "v?" if line["version"] is None else f"v{line['version']}"
    name = line["api"] or ("unknown" if line["key"] is None else f"key {line['key']}")
    carried = f" [{api(line['enveloped'])}]" if "enveloped" in line else ""
    return f"{name} {version}{carried}"


def content_cells(line: Line) -> Iterator[Cell]:
    """What it is about, and what went wrong; of an Envelope also what the message in it says."""
    summary: Summary = line["summary"]
    if about := topics(summary):
        yield Cell(about, "topic")
    errors: dict[str, list[str]] = {}
    for failure in summary.failures:
        more = f" +{failure.more_places}" if failure.more_places else ""
        errors.setdefault(", ".join(failure.places) + more, []).append(error(failure.error))
    for places, names in sorted(errors.items(), key=lambda item: item[0] != ""):
        if places:
            yield Cell(places, "topic")
        yield Cell(" ".join(names), "error")
    if "malformed" in line:
        yield Cell(f"malformed: {line['malformed']}", "error")
    if "undecoded" in line:
        yield Cell(f"undecoded: {line['undecoded']}", "unread")
    if "enveloped" in line:
        yield from content_cells(line["enveloped"])


def topics(summary: Summary) -> str:
    """Topics without an error, and how many more; those with an error are named beside it."""
    failed = {topic for failure in summary.failures for topic in failure.topics}
    named = [topic for topic in summary.topics if topic not in failed]
    left = max(summary.more_topics - len(failed - set(summary.topics)), 0)
    return ", ".join(named) + (f" +{left}" if left else "") or ("" if failed else summary.about or "")


def error(code: int) -> str:
    name = error_name(code)
    return f"error {code}" if name.startswith("(") else name


def duration(ns: int) -> str:
    """With two or three digits: 0.43 ms, 4.3 ms, 203 ms, 1.20 s."""
    ms = ns / NS_PER_MS
    if ms >= 1000:
        return f"{ms / 1000:,.2f} s"
    return f"{ms:.0f} ms" if ms >= 10 else f"{ms:.1f} ms" if ms >= 1 else f"{ms:.2f} ms"
