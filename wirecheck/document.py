"""Values as JSON and tables have them: every object of an output is made of the fields of its dataclass, and a value of
the columns of its row, here.

Rule: a time is an integer of nanoseconds until it is written; its field ends with `_ns`, and wording.TIMES has the name
that JSON gives it. It imports nothing of the project but that, so that every package can use it.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import Field, field, fields, is_dataclass, replace
from functools import cache
from operator import is_
from types import MappingProxyType
from typing import Any, TypeVar, cast, get_origin

from wirecheck.wording import TIMES, rfc3339

Value = TypeVar("Value")
LEFT_OUT = "left out as"
HIDDEN = MappingProxyType({"hidden": True})
"""Metadata of a field that no document has."""
SPREAD = MappingProxyType({"spread": True})
"""Metadata of a field whose own fields, or names and values, stand in its place; None stands for nothing."""


def left_out(value: Any) -> Any:
    """A field with this default, which is left out of the document as long as it has it."""
    return field(default=value, metadata={LEFT_OUT: value})


PLAIN = frozenset({str, int, float, bool, type(None)})
"""Of most values, which are themselves."""


def document(value: Any) -> Any:
    """The same of objects, lists, texts and numbers."""
    if type(value) in PLAIN:
        return value
    match value:
        case dict():
            return {name: document(item) for name, item in value.items()}
        case list() | tuple():
            return [document(item) for item in value]
        case _ if is_dataclass(value) and not isinstance(value, type):
            return document_of_fields(value)
    return value


def document_of_fields(value: Any) -> dict[str, Any]:
    made: dict[str, Any] = {}
    kind: type = type(value)
    for column in shown_fields(kind):
        cell = getattr(value, column.name)
        if column.metadata == SPREAD:
            made |= document(cell) or {}
        elif LEFT_OUT not in column.metadata or cell != column.metadata[LEFT_OUT]:
            made[TIMES.get(column.name, column.name)] = written(column, cell)
    return made


@cache
def shown_fields(kind: type) -> tuple[Field[Any], ...]:
    return tuple(column for column in fields(kind) if column.metadata != HIDDEN)


def of_row(kind: type[Value], row: Mapping[str, Any], **others: Any) -> Value:
    """A value whose fields are columns of a row, by the names that JSON has; a time in a row is nanoseconds. `others`:
    fields that are made otherwise.
    """
    columns = columns_of(cast("type", kind))
    cells = {
        name: tuple(row[column] or ()) if several else row[column]
        for name, column, several in columns
        if column in row and name not in others
    }
    return kind(**cells, **others)


@cache
def columns_of(kind: type) -> tuple[tuple[str, str, bool], ...]:
    """Of each field its name, that of its column, and whether it is a tuple."""
    return tuple((one.name, TIMES.get(one.name, one.name), get_origin(one.type) is tuple) for one in fields(kind))


def inner(value: Any, change: Callable[[Any], Any], kept: Collection[str] = ()) -> Any:
    """The same list, tuple or dataclass with each of its parts changed, but for fields of these names. Tuples and
    dataclasses of which nothing changes are themselves: there are as many as clients, and nearly none has such a name.
    """
    kind = type(value)
    if kind is list:
        return list(map(change, value))
    if isinstance(value, tuple):
        parts = tuple(map(change, value))
        if all(map(is_, parts, value)):
            return value
        return kind._make(parts) if hasattr(kind, "_make") else parts
    changed = {}
    for name in field_names(cast("type", kind)):
        if name not in kept and (part := change(before := getattr(value, name))) is not before:
            changed[name] = part
    return replace(value, **changed) if changed else value


@cache
def field_names(kind: type) -> tuple[str, ...]:
    """None of what is no dataclass."""
    return tuple(column.name for column in fields(kind)) if is_dataclass(kind) else ()


def written(column: Field[Any], cell: Any) -> Any:
    return rfc3339(cell) if column.name in TIMES and cell is not None else document(cell)
