"""A line of `wirecheck decode` for people: a headline and the body, indented; or one row of cells.

Errors are shown by name, IDs in both forms, redacted bytes as a length. The page shows exactly what the line's JSON
has, with the same words with color and without; each cell of a row has a role, which the printer may color.
"""

from __future__ import annotations

from functools import cache
from textwrap import wrap
from typing import TYPE_CHECKING, Any, NamedTuple

from wirecheck.decode import schemas
from wirecheck.decode.layouts.layout import Field, layouts
from wirecheck.wording import hex_id

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wirecheck.decode.show.message_summary import Summary

Line = dict[str, Any]
WIDTH = 160  # characters of a row: what terminals of today show, and as wide as the tables of other commands


def text(of: Line, width: int | None = None) -> str:
    """The same for eyes: one headline, then the body indented; on a terminal in rows of its width."""
    lines = [headline(of), *content(of, "  ", WIDTH if width is None else min(width, WIDTH))]
    return "\n".join(lines if width is None else (part for line in lines for part in hung(line, width)))


def hung(line: str, width: int) -> list[str]:
    """A row that fits, going on four columns further in, between words."""
    below = " " * (len(line) - len(line.lstrip()) + 4)
    return [line] if len(line) <= width else wrap(line, width, subsequent_indent=below, break_on_hyphens=False)


def content(of: Line, indent: str, width: int = WIDTH) -> Iterator[str]:
    """The lines of a message: its fields, or why they are not known; of an Envelope, also those of its content."""
    for reason in ("undecoded", "malformed"):
        if reason in of:
            yield f"{indent}{reason}: {of[reason]}"
    yield from rows(named(of), indent, width)
    if "enveloped" in of:
        yield f"{indent}enveloped: {headline(of['enveloped'])}"
        yield from content(of["enveloped"], indent + "  ", width)


TYPES = ("UNSPECIFIED", "INCREMENTAL", "FULL")
"""Of LeaderAndIsr (KIP-516 as drafted, AbstractControlRequest.Type of KIP-866)."""


def named(of: Line) -> Line:
    """The body; the type of LeaderAndIsr with its name."""
    body: Line = of.get("body", {})
    kind = body.get("type")
    if of["api"] != "LeaderAndIsr" or not isinstance(kind, int):
        return body
    return body | {"type": f"{kind} {TYPES[kind] if 0 <= kind < len(TYPES) else '(no such type)'}"}


def headline(of: Line) -> str:
    version = "v?" if of["version"] is None else f"v{of['version']}"
    api = f"{of['api'] or 'key ' + str(of['key'])} {version}" if of["key"] is not None else "unknown request's"
    parts = [f"{api} {of['side']}", f"#{of['correlation_id']}", f"{of['size']} bytes"]
    if of.get("client_id"):
        parts.insert(2, f"client {of['client_id']}")
    if "principal" in of or "client_host" in of:
        who = of.get("principal", "a principal of unknown form")
        parts.append(f"forwarded for {who}, {of.get('client_host', 'address unknown')}")
    if "dialect" in of:
        parts.append(f"as in {of['dialect']}")
    if frame := of.get("frame"):
        parts = [of["time"], f"{of['src']} > {of['dst']}", *parts, f"frame {frame['first']} of {frame['source']}"]
    return "  ".join(parts)


def rows(value: Any, indent: str, width: int) -> Iterator[str]:
    """A struct's fields, one per row; elements of a list, as many per row as fit into `width` characters."""
    for name, inner in value.items():
        if is_struct(inner):
            yield f"{indent}{name}:"
            yield from rows(inner, indent + "  ", width)
        elif is_list(inner):
            yield f"{indent}{name}:"
            for element in inner:
                first, *rest = list(packed(element, indent + "    ", width)) or [indent + "    "]
                yield f"{indent}  - {first.strip()}"
                yield from rest
        else:
            yield f"{indent}{name}: {scalar(name, inner)}"


def packed(element: Line, indent: str, width: int) -> Iterator[str]:
    """The same rows; neighbours that are one value each share one: a partition is one line to read and to find."""
    row = ""
    for name, inner in element.items():
        if is_struct(inner) or is_list(inner):
            yield from [row] if row else []
            yield from rows({name: inner}, indent, width)
            row = ""
            continue
        field = f"{name}: {scalar(name, inner)}"
        if row and len(row) + len(field) + 2 > width:
            yield row
            row = ""
        row = f"{row}  {field}" if row else indent + field
    yield from [row] if row else []


def is_struct(value: Any) -> bool:
    return isinstance(value, dict) and "left_out" not in value


def is_list(value: Any) -> bool:
    """Of structs; one of plain values is a value itself."""
    return isinstance(value, list) and bool(value) and is_struct(value[0])


def scalar(name: str, value: Any) -> str:
    if isinstance(value, dict):
        return f"({value['left_out']} bytes redacted)"
    if isinstance(value, list):
        return "[" + ", ".join(scalar(name, inner) for inner in value) + "]"
    if name in uuid_names() and isinstance(value, str):
        return f"{value} ({hex_id(value)})"
    if name.lower().endswith("errorcode") and value:
        return f"{value} {error_name(value)}"
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def error_name(code: int) -> str:
    if code in schemas.draft_errors():
        return f"{schemas.draft_errors()[code].name} (draft of KIP-4)"
    known = schemas.errors().get(code)
    return known.name if known else "(no such error)"


@cache
def uuid_names() -> frozenset[str]:
    """Names of fields that are uuids wherever they occur."""

    def walk(fields: tuple[Field, ...]) -> Iterator[str]:
        for field in fields:
            if field.type == "uuid":
                yield field.name
            yield from walk(field.fields)

    return frozenset(name for layout in layouts("kafka") for name in walk(layout.fields))


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
        """`several`: more than one capture is read, so that a frame number alone is ambiguous."""
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
    """The subject of a message and its errors; of an Envelope, also those of the message in it."""
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
