"""The live view of `wirecheck top`: open findings, who talks, the last errors.

    screen = Screen(); screen.press("s"); console.print(screen.draw(sample, columns=80, lines=24))

It fits the terminal. Every text is legible before it comes here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.console import Group
from rich.table import Table
from rich.text import Text

from wirecheck.colours import AMBER, GREEN, KIND_STYLES, RED, shade

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import RenderableType

KINDS = ("violation", "anomaly", "visibility", "information")
WIDE = 100
"""Columns from which addresses and bytes are shown, too."""
ERROR_LINES = 5
LEAST = 0.05
KEYS = "q quit  / filter  s sort  arrows  Enter open  Esc back  p pause"


class Finding(NamedTuple):
    """One open cause."""

    kind: str
    code: str
    sentence: str
    age_s: float
    action: str
    commands: tuple[str, ...]


class Talk(NamedTuple):
    """Who talks: one client and API."""

    client: str
    host: str
    api: str
    requests_per_s: float
    errors_per_s: float
    p99_ms: float | None
    throttled: int
    bytes_per_s: float
    details: tuple[str, ...]
    commands: tuple[str, ...]


class Failed(NamedTuple):
    """One of the last errors."""

    time: str
    client: str
    api: str
    topic: str
    error: str
    times: int


class Sample(NamedTuple):
    """What is known at one moment."""

    source: str
    time: str
    """Of the newest frame."""
    findings: tuple[Finding, ...]
    talks: tuple[Talk, ...]
    errors: tuple[Failed, ...]
    note: str = ""
    """What limits the view: no traffic yet, a source without rates."""


SORTS: dict[str, Callable[[Talk], Any]] = {
    "errors": lambda talk: (-talk.errors_per_s, -talk.requests_per_s, talk.client),
    "requests": lambda talk: (-talk.requests_per_s, talk.client),
    "p99": lambda talk: (-(talk.p99_ms or 0), talk.client),
    "throttled": lambda talk: (-talk.throttled, -talk.requests_per_s, talk.client),
    "client": lambda talk: (talk.client, talk.api),
}
"""By the column that is sorted by, the first is where it begins."""


@dataclass
class Screen:
    """What the person chose."""

    sort: str = "errors"
    filter: str = ""
    typing: bool = False
    selected: int = 0
    opened: bool = False
    paused: bool = False
    over: bool = False
    still: bool = False
    """Drawn once, whole, for no keys."""
    _count: int = field(default=0, repr=False)

    def press(self, key: str) -> None:
        """One key: a character, or up, down, enter, escape, backspace."""
        if self.typing:
            self._type(key)
            return
        match key:
            case "q" | "\x03":
                self.over = True
            case "/":
                self.typing, self.filter, self.opened = True, "", False
            case "s":
                order = list(SORTS)
                self.sort = order[(order.index(self.sort) + 1) % len(order)]
            case "p":
                self.paused = not self.paused
            case "down" | "j":
                self.selected = min(self.selected + 1, max(self._count - 1, 0))
            case "up" | "k":
                self.selected = max(self.selected - 1, 0)
            case "enter":
                self.opened = self._count > 0
            case "escape":
                self.opened, self.filter = False, "" if not self.opened else self.filter

    def _type(self, key: str) -> None:
        if key in {"enter", "escape"}:
            self.typing = False
            self.filter = "" if key == "escape" else self.filter
        elif key == "backspace":
            self.filter = self.filter[:-1]
        elif len(key) == 1 and key.isprintable():
            self.filter += key
        self.selected = 0

    def draw(self, sample: Sample, columns: int, lines: int) -> RenderableType:
        findings = [one for one in sample.findings if self._passes(one.sentence, one.code, one.kind)]
        findings.sort(key=lambda one: KINDS.index(one.kind))
        talks = [one for one in sample.talks if self._passes(one.client, one.host, one.api)]
        talks.sort(key=SORTS[self.sort])
        errors = [one for one in sample.errors if self._passes(one.client, one.api, one.topic, one.error)]
        self._count = len(findings) + len(talks)
        self.selected = min(self.selected, max(self._count - 1, 0))
        if self.opened and self._count:
            every: list[Finding | Talk] = [*findings, *talks]
            return Group(self._head(sample, columns), opened(every[self.selected]), self._foot(columns))
        error_lines = len(errors) if self.still else min(len(errors), ERROR_LINES)
        left = lines - 2 - 3 - (error_lines or 1)  # head, foot, three headings
        finding_lines = max(1, min(len(findings), left // 2))
        talk_lines = max(1, left - finding_lines - 1)
        return Group(
            self._head(sample, columns),
            self._findings(findings, finding_lines, columns),
            self._talks(talks, talk_lines, columns, len(findings)),
            self._errors(errors[:error_lines], columns),
            *(() if self.still else (self._foot(columns),)),
        )

    def _passes(self, *texts: str) -> bool:
        return not self.filter or any(self.filter.lower() in text.lower() for text in texts)

    def _head(self, sample: Sample, columns: int) -> Text:
        paused = "  paused" if self.paused else ""
        text = Text(f"wirecheck top  {sample.time}{paused}  {sample.source}", style="bold")
        if sample.note:
            text.append(f"  {sample.note}", style=shade(AMBER))
        return one_line(text, columns)

    def _foot(self, columns: int) -> Text:
        if self.typing:
            return one_line(Text(f"filter: {self.filter}_", style="reverse"), columns)
        shown = f"filter: {self.filter}  " if self.filter else ""
        return one_line(Text(f"{shown}sort: {self.sort}  {KEYS}", style="dim"), columns)

    def _findings(self, findings: list[Finding], most: int, columns: int) -> RenderableType:
        more = f", {len(findings) - most} not shown" if len(findings) > most else ""
        heading = Text(f"Open findings: {len(findings)}{more}", style="bold underline")
        if not findings:
            return Group(heading, Text("none", style=shade(GREEN)))
        begin = max(0, min(self.selected, len(findings) - 1) - most + 1)
        rows = []
        for number, one in list(enumerate(findings))[begin : begin + most]:
            text = Text().append(f"{age(one.age_s):>5}  {one.code}  ", style=KIND_STYLES[one.kind])
            text.append(one.sentence)
            rows.append(self._marked(one_line(text, columns), number))
        return Group(heading, *rows)

    def _marked(self, text: Text, number: int) -> Text:
        if number == self.selected and not self.still:
            text.stylize("reverse")
        return text

    def _talks(self, talks: list[Talk], most: int, columns: int, before: int) -> RenderableType:
        wide = columns >= WIDE
        table = Table(box=None, padding=(0, 1, 0, 0), expand=True, header_style="bold underline")
        table.add_column("Client", ratio=2, no_wrap=True, overflow="ellipsis")
        if wide:
            table.add_column("Address", no_wrap=True)
        table.add_column("API", ratio=1, no_wrap=True, overflow="ellipsis")
        for name in ("req/s", "err/s", "p99 ms", "throttled", *(("kB/s",) if wide else ())):
            table.add_column(name, justify="right", no_wrap=True)
        begin = max(0, self.selected - before - most + 1)
        for number, one in list(enumerate(talks))[begin : begin + most]:
            cells = [
                one.client,
                *([one.host] if wide else []),
                one.api,
                rate(one.requests_per_s),
                rate(one.errors_per_s),
            ]
            cells += [
                "-" if one.p99_ms is None else f"{one.p99_ms:.1f}",
                str(one.throttled or "-"),
                *([rate(one.bytes_per_s / 1000)] if wide else []),
            ]
            style = shade(RED) if one.errors_per_s else ""
            here = number + before == self.selected and not self.still
            style = f"{style} reverse" if here else style
            table.add_row(*(Text(cell) for cell in cells), style=style)
        return table

    def _errors(self, errors: list[Failed], columns: int) -> RenderableType:
        heading = Text("Last errors", style="bold underline")
        if not errors:
            return Group(heading, Text("none", style=shade(GREEN)))
        rows = []
        for one in errors:
            text = Text().append(f"{one.time}  ", style="dim").append(one.error, style=shade(RED))
            text.append(f" x{one.times}  {one.client}  {one.api}  {one.topic}")
            rows.append(one_line(text, columns))
        return Group(heading, *rows)


def opened(one: Finding | Talk) -> RenderableType:
    """All that is known of one row."""
    if isinstance(one, Finding):
        rows = [
            Text(one.sentence, style=KIND_STYLES[one.kind]),
            Text(f"{one.code}, open for {age(one.age_s)}", style="dim"),
        ]
        if one.action:
            rows.append(Text(f"do    {one.action}"))
    else:
        rows = [Text(f"{one.client} ({one.host})  {one.api}", style="bold"), *(Text(line) for line in one.details)]
    return Group(Text(""), *rows, *(Text(f"look  {command}") for command in one.commands), Text(""))


def one_line(text: Text, columns: int) -> Text:
    text.no_wrap = True
    text.truncate(columns, overflow="ellipsis")
    return text


def rate(value: float) -> str:
    """With one decimal below 100."""
    if not value:
        return "-"
    return "<0.1" if value < LEAST else f"{value:,.1f}" if value < 100 else f"{value:,.0f}"


def age(seconds: float) -> str:
    """12s, 3m, 5h, 2d."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= 2 * size:
            return f"{int(seconds // size)}{unit}"
    return f"{max(int(seconds), 0)}s"
