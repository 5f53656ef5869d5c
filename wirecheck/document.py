"""Values as JSON has them: every object of an output is made of the fields of its dataclass, here.

Rule: a time is an integer of nanoseconds until it is written; its field ends with `_ns`, and wording.TIMES has the name
that JSON gives it. It imports nothing of the project but that, so that every package can use it.
"""

from collections.abc import Callable, Collection
from dataclasses import Field, field, fields, is_dataclass, replace
from types import MappingProxyType
from typing import Any

from wirecheck.wording import TIMES, rfc3339

LEFT_OUT = "left out as"
HIDDEN = MappingProxyType({"hidden": True})
"""Metadata of a field that no document has."""


def left_out(value: Any) -> Any:
    """A field with this default, which is left out of the document as long as it has it."""
    return field(default=value, metadata={LEFT_OUT: value})


def document(value: Any) -> Any:
    """The same of objects, lists, texts and numbers."""
    match value:
        case dict():
            return {name: document(item) for name, item in value.items()}
        case list() | tuple():
            return [document(item) for item in value]
        case _ if is_dataclass(value) and not isinstance(value, type):
            cells = ((column, getattr(value, column.name)) for column in fields(value))
            return {
                TIMES.get(column.name, column.name): written(column, cell)
                for column, cell in cells
                if column.metadata != HIDDEN
                if LEFT_OUT not in column.metadata or cell != column.metadata[LEFT_OUT]
            }
    return value


def inner(value: Any, change: Callable[[Any], Any], kept: Collection[str] = ()) -> Any:
    """The same list, tuple or dataclass with each of its parts changed, but for fields of these names."""
    match value:
        case list():
            return list(map(change, value))
        case tuple():
            return value._make(map(change, value)) if hasattr(value, "_make") else tuple(map(change, value))
        case _ if is_dataclass(value) and not isinstance(value, type):
            names = [column.name for column in fields(value) if column.name not in kept]
            return replace(value, **{name: change(getattr(value, name)) for name in names})
    return value


def written(column: Field[Any], cell: Any) -> Any:
    return rfc3339(cell) if column.name in TIMES and cell is not None else document(cell)
