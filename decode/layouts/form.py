"""Slots: what a token's field number means, the same over all versions and dialects of a message.

A level counts the rows of one kind of element. Layouts that disagree about a column's kind are a bug.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, final

from wirecheck.decode.layouts.layout import Default, Field, snake

if TYPE_CHECKING:
    from collections.abc import Iterable

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


@final
class Slot:
    """One field of one message kind."""

    def __init__(self, name: str, kind: Kind, parent: Slot | None = None) -> None:
        self.name: str = name
        """Kafka's name, first letter lowered; empty for a message and an element."""
        self.kind: Kind = kind
        self.parent: Slot | None = parent
        self.default: Default = None
        self.width: int = 0
        """Bytes of a fixed-width value or element."""
        self.secret: bool = False
        self.number: int = -1
        """What tokens carry."""
        self.level: int = -1
        """Whose rows its tokens are of; of a message or element, its own."""
        self.path: str = ""
        """Column path: snake case, dotted, without header and body."""
        self.children: dict[str, Slot] = {}

    @property
    def label(self) -> str:
        """Dotted path in Kafka's names, for people; a field of the header begins with `header`."""
        above = self.parent.label if self.parent else ""
        name = "" if self.name == "body" and self.parent and self.parent.kind == Kind.MESSAGE else self.name
        return ".".join([part for part in (above, name) if part])

    def child(self, name: str, kind: Kind, like: Field | None = None) -> Slot:
        """The child of that name, made at first sight."""
        found = self.children.get(name)
        if found is None:
            found = Slot(name, kind, self)
            self.children[name] = found
            if like is not None:
                found.default, found.secret, found.width = like.default, like.secret, WIDTHS.get(like.type, 0)
        elif found.kind is not kind:
            raise AssertionError(f"{found.label} is {found.kind.name} here and {kind.name} there")
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
        if not tag.children:
            tag.child("tag", Kind.INTEGER)
            tag.child("data", Kind.BYTES).secret = True  # what it means is not known
        return tag

    def enclosing(self) -> list[Slot]:
        """The slot itself and all it stands in."""
        found = [self]
        while found[-1].parent is not None:
            found.append(found[-1].parent)
        return found

    def walk(self) -> list[Slot]:
        """The slot itself and all that stands in it, in order."""
        found = [self]
        for child in self.children.values():
            found += child.walk()
        return found


@final
class Form:
    """One kind of message: an api's requests or responses, a record type, a blob."""

    def __init__(self, api: str, side: int, key: int) -> None:
        self.api: str = api
        self.side: int = side
        self.key: int = key
        self.root: Slot = Slot("", Kind.MESSAGE)
        self.slots: range = range(0)
        """Numbers of its slots."""
        self.levels: range = range(0)
        """Numbers of its levels."""
        self.tables: dict[str, Slot] = {}
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
