"""A line of `wirecheck decode` for eyes: a headline and the body, indented.

Knows how people read a message: error codes by name, ids in both forms, what was left out as a length. Refuses to know
where the line came from.
Rule: whatever the line's JSON says is here too, and nothing else.
"""

from __future__ import annotations

import base64
from functools import cache
from textwrap import wrap
from typing import TYPE_CHECKING, Any
from uuid import UUID

from wirecheck.decode import schemas
from wirecheck.decode.layouts.layout import Field, layouts

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    """What the message says, or why that is not known; of an Envelope, what it carries too."""
    for reason in ("undecoded", "malformed"):
        if reason in of:
            yield f"{indent}{reason}: {of[reason]}"
    yield from rows(of.get("body", {}), indent, width)
    if "enveloped" in of:
        yield f"{indent}enveloped: {headline(of['enveloped'])}"
        yield from content(of["enveloped"], indent + "  ", width)


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
    """A struct's fields, one a row; of a list's elements, as many a row as `width` has room for."""
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
        said = f"{name}: {scalar(name, inner)}"
        if row and len(row) + len(said) + 2 > width:
            yield row
            row = ""
        row = f"{row}  {said}" if row else indent + said
    yield from [row] if row else []


def is_struct(value: Any) -> bool:
    return isinstance(value, dict) and "left_out" not in value


def is_list(value: Any) -> bool:
    """Of structs; one of plain values is a value itself."""
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def scalar(name: str, value: Any) -> str:
    if isinstance(value, dict):
        return f"({value['left_out']} bytes redacted)"
    if isinstance(value, list):
        return "[" + ", ".join(scalar(name, inner) for inner in value) + "]"
    if name in uuid_names() and isinstance(value, str):
        return f"{value} ({UUID(bytes=base64.urlsafe_b64decode(value + '=='))})"
    if name.lower().endswith("errorcode") and value:
        return f"{value} {error_name(value)}"
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def error_name(code: int) -> str:
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
