"""Slots: what a token's field number means, the same over all versions and dialects of a message.

Knows the tree of one message kind: header and body, structs, arrays, their elements, values; and its levels, each of
which counts the rows of one kind of element. Refuses to know versions, encodings and instructions.
Rule: a column's path and kind do not depend on which version filled it; layouts that disagree about one are our bug.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING

from wirecheck.decode.layouts.layout import Default, Field, snake

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["UNKNOWN_TAGS", "Form", "Kind", "Slot", "number"]

UNKNOWN_TAGS = "_unknownTaggedFields"


class Kind(IntEnum):
    """What the tokens of a slot are."""

    MESSAGE = 0
    STRUCT = 1
    ARRAY = 2
    ELEMENT = 3
    ENTRY = 4
    """Element of an array of strings; its text follows as a slot of its own, named `value`."""
    UNKNOWN_TAG = 5
    INTEGER = 6
    BOOLEAN = 7
    FLOAT = 8
    UUID = 9
    TEXT = 10
    BYTES = 11
    RECORDS = 12
    INTEGERS = 13
    UUIDS = 14


ROWS = {Kind.MESSAGE, Kind.ELEMENT, Kind.ENTRY, Kind.UNKNOWN_TAG}  # each of their tokens begins a row of a table
SIZED = {
    Kind.TEXT,
    Kind.BYTES,
    Kind.RECORDS,
    Kind.INTEGERS,
    Kind.UUIDS,
}  # each of their tokens has a place and a length
WIDTHS = {"bool": 1, "int8": 1, "int16": 2, "uint16": 2, "int32": 4, "int64": 8, "float64": 8, "uuid": 16}
SINGLE = {"bool": Kind.BOOLEAN, "float64": Kind.FLOAT, "uuid": Kind.UUID, "string": Kind.TEXT, "bytes": Kind.BYTES,
          "records": Kind.RECORDS, "struct": Kind.STRUCT}  # fmt: skip


@dataclass(slots=True, eq=False)
class Slot:
    """One field of one message kind."""

    name: str
    """Kafka's name, first letter lowered; empty for a message and an element."""
    kind: Kind
    parent: Slot | None = None
    default: Default = None
    width: int = 0
    """Bytes of a fixed-width value or element."""
    secret: bool = False
    number: int = -1
    """What tokens carry."""
    level: int = -1
    """Whose rows its tokens are of; of a message or element, its own."""
    path: str = ""
    """Column path: snake case, dotted, without header and body."""
    children: dict[str, Slot] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Dotted path in Kafka's names, for people; a field of the header begins with `header`."""
        above = self.parent.label if self.parent else ""
        name = "" if self.name == "body" and self.parent and self.parent.kind == Kind.MESSAGE else self.name
        return ".".join(part for part in (above, name) if part)

    def child(self, name: str, kind: Kind, like: Field | None = None) -> Slot:
        """The child of that name, made at first sight."""
        if name not in self.children:
            self.children[name] = made = Slot(name, kind, self)
            if like is not None:
                made.default, made.secret, made.width = like.default, like.secret, WIDTHS.get(like.type, 0)
        found = self.children[name]
        assert found.kind == kind, f"{found.label} is {found.kind.name} here and {kind.name} there"
        return found

    def of(self, field: Field) -> Slot:
        """The child that stands for a field of a layout."""
        if not field.array:
            return self.child(field.name, SINGLE.get(field.type, Kind.INTEGER), field)
        if field.type in {"struct", "string"}:
            return self.child(field.name, Kind.ARRAY, field)
        return self.child(field.name, Kind.UUIDS if field.type == "uuid" else Kind.INTEGERS, field)

    def element(self, kind: Kind) -> Slot:
        return self.child("", kind)

    def unknown_tag(self) -> Slot:
        """The child that stands for unknown tags; their number and bytes are its children, in this order."""
        tag = self.child(UNKNOWN_TAGS, Kind.UNKNOWN_TAG)
        tag.child("tag", Kind.INTEGER)
        tag.child("data", Kind.BYTES)
        return tag

    def enclosing(self) -> Iterator[Slot]:
        """The slot itself and all it stands in."""
        slot: Slot | None = self
        while slot is not None:
            yield slot
            slot = slot.parent

    def walk(self) -> Iterator[Slot]:
        yield self
        for child in self.children.values():
            yield from child.walk()


@dataclass(slots=True, eq=False)
class Form:
    """One kind of message: an api's requests or responses, a record type, a blob."""

    api: str
    side: int
    key: int
    root: Slot = field(default_factory=lambda: Slot("", Kind.MESSAGE))
    slots: range = range(0)
    """Numbers of its slots."""
    levels: range = range(0)
    """Numbers of its levels."""
    tables: dict[str, Slot] = field(default_factory=dict)
    """Table path to the slot whose tokens are its rows."""


def number(forms: Iterable[Form]) -> tuple[tuple[Slot, ...], int]:
    """Gives every slot its number, level and path; all slots by number, and how many levels there are."""
    slots: list[Slot] = []
    levels = 0
    for form in forms:
        first, first_level = len(slots), levels
        for slot in form.root.walk():
            slot.number = len(slots)
            slots.append(slot)
            slot.path = _path(slot)
            if slot.kind in ROWS:
                slot.level = levels
                levels += 1
                form.tables[slot.path] = slot
            else:
                assert slot.parent is not None
                slot.level = slot.parent.level
        form.slots, form.levels = range(first, len(slots)), range(first_level, levels)
    return tuple(slots), levels


def _path(slot: Slot) -> str:
    if slot.parent is None or (slot.parent.kind == Kind.MESSAGE and slot.name in {"header", "body"}):
        return ""
    if slot.kind == Kind.UNKNOWN_TAG and slot.parent.name == "header":
        return f"header.{snake(slot.name)}"
    above = slot.parent.path
    return ".".join(part for part in (above, snake(slot.name)) if part)
