"""Layouts to programs: one program reads one whole message of one side, api, version and dialect, header included.

Knows layouts, slots and the instruction set (decode/interpret/instruction.py); refuses to know bytes.
Rule: fields of fixed width that stand together are read at once, and singly behind that, to say which of them fails.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate, groupby
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from wirecheck.decode.interpret import instruction as op
from wirecheck.decode.interpret.instruction import Instruction
from wirecheck.decode.layouts.form import WIDTHS, Form, Kind, Slot
from wirecheck.decode.layouts.layout import Field, Layout, layouts
from wirecheck.decode.wire import DATA, RECORD, REQUEST

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

__all__ = ["Runs", "Writer"]

OPS = {
    "bool": op.BOOL, "int8": op.INT8, "int16": op.INT16, "uint16": op.UINT16, "int32": op.INT32, "int64": op.INT64,
    "float64": op.INT64, "uuid": op.UUID,
}  # fmt: skip
SIZED_OPS = {"string": op.TEXT, "bytes": op.BYTES, "records": op.BYTES}


Part: TypeAlias = tuple[Slot, int, int]  # of a run: slot, offset, operation


class Runs(NamedTuple):
    """What the tokens of runs stand for; run r has the parts at[r]:at[r + 1]."""

    at: NDArray[np.int64]
    slot: NDArray[np.int32]
    """Of each part: slot number."""
    offset: NDArray[np.int64]
    """Where it begins in the run; in a run of rows its bytes, of an array those of an element."""
    op: NDArray[np.int32]
    """How it is read: an instruction."""
    stride: NDArray[np.int64]
    """Of each run: bytes from one row's to the next one's; `-1 - n` of a run of rows, with n bytes behind each."""


class Writer:
    """Appends programs. Until `resolve`, instructions have no field and no level, runs are counted from 0."""

    def __init__(self) -> None:
        self.instructions: list[Instruction] = []
        self.slots: list[Slot] = []  # of each instruction
        self.run_numbers: dict[tuple[tuple[Part, ...], int], int] = {}
        self.headers = {layout.api: layout for layout in layouts("kafka") if layout.side == "header"}
        self.behind: list[tuple[Instruction, str]] = []  # what has to point at the next one, and by which name

    def put(self, kind: int, slot: Slot) -> Instruction:
        """One instruction more: what follows the last one, and whatever else waits for it."""
        made = Instruction(kind)
        for before, name in self.behind:
            setattr(before, name, made)
        self.behind = [(made, "next")]
        self.instructions.append(made)
        self.slots.append(slot)
        return made

    def resolve(self, forms: Iterable[Form], slots: int) -> None:
        """Puts in what is known once all layouts were seen: numbers of slots, levels and runs."""
        levels = {form.root.number: len(form.levels) for form in forms}
        for now, slot in zip(self.instructions, self.slots, strict=True):
            now.field, now.level = slot.number, slot.level
            if now.op == op.MESSAGE:
                now.levels = levels[slot.number]
            elif now.op == op.RUN:
                now.field = slots + now.run
            elif now.op in {op.BLOCK, op.TAGGED_BLOCK, op.ROWS}:
                now.run += slots

    def runs(self) -> Runs:
        parts = [part for run, _ in self.run_numbers for part in run]
        return Runs(
            np.cumsum([0, *(len(run) for run, _ in self.run_numbers)], dtype=np.int64),
            np.array([slot.number for slot, _, _ in parts], np.int32),
            np.array([offset for _, offset, _ in parts], np.int64),
            np.array([kind for _, _, kind in parts], np.int32),
            np.array([stride for _, stride in self.run_numbers], np.int64),
        )

    def message(self, form: Form, layout: Layout, version: int) -> int:
        self.behind.clear()
        first = len(self.instructions)
        self.put(op.MESSAGE, form.root)
        if form.side not in {RECORD, DATA}:
            header = self.headers["RequestHeader" if form.side == REQUEST else "ResponseHeader"]
            header_version = layout.header_version(version)
            self.struct("header", form.root, _Shape(header.fields, header_version, header_version in header.flexible))
        self.struct("body", form.root, _Shape(layout.fields, version, version in layout.flexible))
        self.put(op.END, form.root)
        return first

    def struct(self, name: str, parent: Slot, shape: _Shape) -> None:
        slot = parent.child(name, Kind.STRUCT)
        self.put(op.STRUCT, slot)
        self.content(slot, shape)

    def content(self, slot: Slot, shape: _Shape) -> None:
        """A struct's fields, then its tag section."""
        for fixed, fields in groupby(shape.ordinary, _is_fixed):
            together = list(fields)
            if fixed and len(together) > 1:
                self.run(slot, together, shape)
            else:
                for field in together:
                    self.field(slot.of(field), field, shape)
        if shape.flexible:
            self.tags(slot, shape)

    def run(self, slot: Slot, fields: list[Field], shape: _Shape) -> None:
        """Fixed-width fields: at once, and behind that singly."""
        opening = self.put(op.RUN, slot)
        opening.run, opening.size = self.run_number(slot, fields, 0)
        for field in fields:
            self.field(slot.of(field), field, shape)
        self.behind.append((opening, "target"))

    def run_number(self, slot: Slot, fields: list[Field], stride: int) -> tuple[int, int]:
        """Of a run, equal ones sharing theirs, and how many bytes it has."""
        ends = list(accumulate(WIDTHS[field.type] for field in fields))
        parts = tuple(
            (slot.of(field), end - WIDTHS[field.type], OPS[field.type]) for field, end in zip(fields, ends, strict=True)
        )
        return self.run_numbers.setdefault((parts, stride), len(self.run_numbers)), ends[-1]

    def field(self, slot: Slot, field: Field, shape: _Shape) -> None:
        nullable = shape.version in field.nullable
        compact = shape.compact(field)
        if field.array and field.type in {"struct", "string"}:
            self.array(slot, field, shape)
        elif field.array:
            array = self.put(op.FIXED + compact, slot)
            array.nullable, array.least = nullable, WIDTHS[field.type]
        elif field.type == "struct":
            opening = self.put(op.NULLABLE_STRUCT if nullable else op.STRUCT, slot)
            self.content(slot, shape.inner(field))
            if nullable:
                self.behind.append((opening, "target"))
        elif field.type in SIZED_OPS:
            self.put(SIZED_OPS[field.type] + compact, slot).nullable = nullable
        else:
            self.put(OPS[field.type], slot).size = WIDTHS[field.type]

    def array(self, slot: Slot, field: Field, shape: _Shape) -> None:
        compact = shape.compact(field)
        inner = shape.inner(field)
        opening = self.put(op.ARRAY + compact, slot)
        opening.nullable = shape.version in field.nullable
        opening.least = max(1, inner.least if field.type == "struct" else 2 - compact)
        first = len(self.instructions)
        if field.type == "struct":
            element = slot.element(Kind.ELEMENT)
            self.content(element, inner)
        else:
            element = slot.element(Kind.ENTRY)
            self.put(op.TEXT + compact, element.child("value", Kind.TEXT, replace(field, array=False, default="")))
        opening.target = turn = self.turn(element, inner.ordinary if field.type == "struct" else [], inner)
        turn.target = self.instructions[first]
        self.behind += [(opening, "after"), (turn, "after")]

    def turn(self, element: Slot, parts: list[Field], shape: _Shape) -> Instruction:
        """What reads an array's elements, as many at once as their fields allow."""
        if parts and all(map(_is_fixed, parts)):
            turn = self.put(op.TAGGED_BLOCK if shape.flexible else op.BLOCK, element)
            turn.size = shape.least
            turn.run, _ = self.run_number(element, parts, shape.least)
        elif parts and all(map(_is_plain, parts)):
            turn = self.plain_rows(element, shape)
        else:
            turn = self.put(op.NEXT, element)
        return turn

    def plain_rows(self, element: Slot, shape: _Shape) -> Instruction:
        """Elements of fixed-width fields and arrays of such: what is to be skipped to find where each ends."""
        parts = tuple(
            (element.of(field), WIDTHS[field.type], op.FIXED + shape.compact(field) if field.array else OPS[field.type])
            for field in shape.ordinary
        )
        turn = self.put(op.ROWS, element)
        turn.run = self.run_numbers.setdefault((parts, -1 - int(shape.flexible)), len(self.run_numbers))
        skipped = 0
        for field in shape.ordinary:
            if field.array:
                self.skip(element, skipped, 1 if shape.compact(field) else 4, WIDTHS[field.type])
            skipped = 0 if field.array else skipped + WIDTHS[field.type]
        self.skip(element, skipped, 0, int(shape.flexible))
        return turn

    def skip(self, element: Slot, size: int, head: int, width: int) -> None:
        skip = self.put(op.SKIP, element)
        skip.size, skip.head, skip.width = size, head, width

    def tags(self, slot: Slot, shape: _Shape) -> None:
        opening = self.put(op.TAGS, slot.unknown_tag())
        turn = self.put(op.NEXT_TAG, slot.unknown_tag())
        before = None
        for field in shape.tagged:
            known = self.put(op.TAG, slot.of(field))
            known.tag = field.tag or 0
            known.size = WIDTHS[field.type] if known.tag < 0 else -1
            self.field(slot.of(field), field, shape)
            self.put(op.TAG_END, slot.of(field))
            if before is None:
                turn.first_tag = known
            else:
                before.next_tag = known
            before = known
        self.behind += [(opening, "target"), (turn, "target")]


def _is_fixed(field: Field) -> bool:
    return field.type in WIDTHS and not field.array


def _is_plain(field: Field) -> bool:
    """What a run of rows may hold: columns.scatter reads no uint16 there, as no layout has one beside arrays."""
    return field.type in WIDTHS and field.type != "uint16"


@dataclass(frozen=True, slots=True)
class _Shape:
    """A struct at one version."""

    fields: tuple[Field, ...]
    version: int
    flexible: bool

    def compact(self, field: Field) -> int:
        return int(self.flexible and not field.inflexible)

    def inner(self, field: Field) -> _Shape:
        return _Shape(field.fields, self.version, self.flexible)

    @property
    def ordinary(self) -> list[Field]:
        return [field for field in self.fields if self.version in field.versions and field.tag is None]

    @property
    def tagged(self) -> list[Field]:
        return [field for field in self.fields if self.version in field.versions and field.tag is not None]

    @property
    def least(self) -> int:
        """Bytes that the smallest value takes."""
        return sum(self._least(field) for field in self.ordinary) + int(self.flexible)

    def _least(self, field: Field) -> int:
        if _is_fixed(field):
            return WIDTHS[field.type]
        if field.type == "struct" and not field.array:
            return 1 if self.version in field.nullable else self.inner(field).least
        if self.flexible and not field.inflexible:
            return 1
        return 2 if field.type == "string" and not field.array else 4
