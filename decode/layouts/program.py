"""Layouts to instruction rows: what decode/machine.py walks.

Knows layouts, slots and the instruction set; refuses to know bytes. One program reads one whole message of one side,
api, version and dialect, header included.
Rule: everything is compiled once per process into one table, in the order of the files of decode/schemas; nothing here
depends on traffic, and whatever bounds the machine relies on (depth, levels) is asserted here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate, groupby
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from wirecheck.decode import machine as m
from wirecheck.decode.layouts.form import WIDTHS, Form, Kind, Slot, number
from wirecheck.decode.layouts.layout import Field, Layout, layouts
from wirecheck.decode.layouts.readings import Dialect, readings
from wirecheck.decode.wire import DATA, RECORD, REQUEST, SIDES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

__all__ = ["Dialect", "Programs", "form", "programs"]

KEYS, VERSIONS = 128, 32  # bounds of the entry table


OPS = {
    "bool": m.BOOL, "int8": m.INT8, "int16": m.INT16, "uint16": m.UINT16, "int32": m.INT32, "int64": m.INT64,
    "float64": m.INT64, "uuid": m.UUID,
}  # fmt: skip
SIZED_OPS = {"string": m.TEXT, "bytes": m.BYTES, "records": m.BYTES}


Part: TypeAlias = tuple[Slot, int, int]  # of a run: slot, offset, instruction


@dataclass(frozen=True, slots=True)
class Programs:
    """Everything compiled."""

    table: NDArray[np.int32]
    """Instruction rows of all messages, one program after the other."""
    entries: NDArray[np.int32]
    """[dialect, side, key, version] to the program's first row, -1 if there is none."""
    forms: dict[tuple[int, int], Form]
    """(side, key) to message kind."""
    names: dict[tuple[str, str], Form]
    """(side, api name, an older one too) to message kind."""
    slots: tuple[Slot, ...]
    """By number."""
    levels: int
    """How many there are."""
    runs: Runs


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


@cache
def programs() -> Programs:
    sources = list(readings())
    forms: dict[tuple[int, int], Form] = {}
    names: dict[tuple[str, str], Form] = {}
    for _, layout, _ in sources:
        side = SIDES.index(layout.side)
        form = forms.setdefault((side, layout.key), Form(layout.api, side, layout.key))
        names |= {(layout.side, name): form for name in (layout.api, *layout.aka)}
    compiler = _Compiler()
    entries = np.full((len(Dialect), len(SIDES), KEYS, VERSIONS), -1, np.int32)
    for dialect, layout, version in sources:
        side = SIDES.index(layout.side)
        entries[dialect, side, layout.key, version] = compiler.message(forms[side, layout.key], layout, version)
    slots, levels = number(forms.values())
    assert all(len(form.levels) <= m.MOST_LEVELS for form in forms.values())
    compiler.resolve(forms.values(), len(slots))
    return Programs(np.array(compiler.rows, np.int32), entries, forms, names, slots, levels, compiler.runs())


def form(api: str | int, side: str) -> Form:
    """The message kind of an api, by name or key."""
    return programs().forms[SIDES.index(side), api] if isinstance(api, int) else programs().names[side, api]


class _Compiler:
    """Appends programs to `rows`. Until `resolve`, a row's field and level are slots, not numbers."""

    def __init__(self) -> None:
        self.rows: list[list[int]] = []
        self.slots: list[Slot] = []  # of each row
        self.run_numbers: dict[tuple[tuple[Part, ...], int], int] = {}
        self.widths: dict[int, int] = {}  # of rows of SKIP
        self.headers = {layout.api: layout for layout in layouts("kafka") if layout.side == "header"}

    def row(self, op: int, slot: Slot, a: int = 0, b: int = 0, d: int = 0) -> int:
        self.rows.append([op, 0, a, b, 0, d])
        self.slots.append(slot)
        return len(self.rows) - 1

    def resolve(self, forms: Iterable[Form], slots: int) -> None:
        """Puts in what is known once all layouts were seen: numbers of slots, levels and runs."""
        levels = {form.root.number: len(form.levels) for form in forms}
        for row, slot in zip(self.rows, self.slots, strict=True):
            row[m.FIELD], row[m.C] = slot.number, slot.level
            if row[m.OP] == m.MESSAGE:
                row[m.D] = levels[slot.number]
            elif row[m.OP] == m.RUN:
                row[m.FIELD] = slots + row[m.B]
            elif row[m.OP] in {m.BLOCK, m.TAGGED_BLOCK, m.ROWS}:
                row[m.A] += slots
        for at, width in self.widths.items():
            self.rows[at][m.C] = width

    def runs(self) -> Runs:
        parts = [part for run, _ in self.run_numbers for part in run]
        return Runs(
            np.cumsum([0, *(len(run) for run, _ in self.run_numbers)], dtype=np.int64),
            np.array([slot.number for slot, _, _ in parts], np.int32),
            np.array([offset for _, offset, _ in parts], np.int64),
            np.array([op for _, _, op in parts], np.int32),
            np.array([stride for _, stride in self.run_numbers], np.int64),
        )

    def message(self, form: Form, layout: Layout, version: int) -> int:
        first = self.row(m.MESSAGE, form.root)
        if form.side not in {RECORD, DATA}:
            header = self.headers["RequestHeader" if form.side == REQUEST else "ResponseHeader"]
            header_version = layout.header_version(version)
            self.struct("header", form.root, _Shape(header.fields, header_version, header_version in header.flexible))
        self.struct("body", form.root, _Shape(layout.fields, version, version in layout.flexible))
        self.row(m.END, form.root)
        return first

    def struct(self, name: str, parent: Slot, shape: _Shape) -> None:
        slot = parent.child(name, Kind.STRUCT)
        self.row(m.STRUCT, slot)
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
        number, width = self.run_number(slot, fields, 0)
        opening = self.row(m.RUN, slot, width, number)
        for field in fields:
            self.field(slot.of(field), field, shape)
        self.rows[opening][m.D] = len(self.rows)

    def run_number(self, slot: Slot, fields: list[Field], stride: int) -> tuple[int, int]:
        """Of a run, equal ones sharing theirs, and how many bytes it has."""
        ends = list(accumulate(WIDTHS[field.type] for field in fields))
        parts = tuple(
            (slot.of(field), end - WIDTHS[field.type], OPS[field.type]) for field, end in zip(fields, ends, strict=True)
        )
        return self.run_numbers.setdefault((parts, stride), len(self.run_numbers)), ends[-1]

    def field(self, slot: Slot, field: Field, shape: _Shape) -> None:
        nullable = int(shape.version in field.nullable)
        compact = shape.compact(field)
        if field.array and field.type in {"struct", "string"}:
            self.array(slot, field, shape)
        elif field.array:
            self.row(m.FIXED + compact, slot, nullable, WIDTHS[field.type])
        elif field.type == "struct":
            opening = self.row(m.NULLABLE_STRUCT if nullable else m.STRUCT, slot)
            self.content(slot, shape.inner(field))
            self.rows[opening][m.D] = len(self.rows)
        elif field.type in SIZED_OPS:
            self.row(SIZED_OPS[field.type] + compact, slot, nullable)
        else:
            self.row(OPS[field.type], slot, WIDTHS[field.type])

    def array(self, slot: Slot, field: Field, shape: _Shape) -> None:
        compact = shape.compact(field)
        inner = shape.inner(field)
        least = inner.least if field.type == "struct" else 2 - compact
        opening = self.row(m.ARRAY + compact, slot, int(shape.version in field.nullable), max(1, least))
        if field.type == "struct":
            element = slot.element(Kind.ELEMENT)
            self.content(element, inner)
        else:
            element = slot.element(Kind.ENTRY)
            self.row(m.TEXT + compact, element.child("value", Kind.TEXT, replace(field, array=False, default="")))
        parts = inner.ordinary if field.type == "struct" else ()
        if parts and all(map(_is_fixed, parts)):
            number, _ = self.run_number(element, parts, inner.least)
            self.rows[opening][m.D] = self.row(m.BLOCK + int(inner.flexible), element, number, inner.least, opening + 1)
        elif parts and all(map(_is_plain, parts)):
            self.rows[opening][m.D] = self.plain_rows(element, inner, opening + 1)
        else:
            self.rows[opening][m.D] = self.row(m.NEXT, element, d=opening + 1)

    def plain_rows(self, element: Slot, shape: _Shape, first: int) -> int:
        """Elements of fixed-width fields and arrays of such: what is to be skipped to find where each ends."""
        parts = tuple(
            (element.of(field), WIDTHS[field.type], m.FIXED + shape.compact(field) if field.array else OPS[field.type])
            for field in shape.ordinary
        )
        number = self.run_numbers.setdefault((parts, -1 - int(shape.flexible)), len(self.run_numbers))
        turn = self.row(m.ROWS, element, number, d=first)
        skipped = 0
        for field in shape.ordinary:
            if field.array:
                self.skip(element, skipped, 1 if shape.compact(field) else 4, WIDTHS[field.type])
            skipped = 0 if field.array else skipped + WIDTHS[field.type]
        self.skip(element, skipped, 0, int(shape.flexible))
        self.rows[turn][m.B] = len(self.rows) - turn - 1
        return turn

    def skip(self, element: Slot, skipped: int, head: int, width: int) -> None:
        self.widths[self.row(m.SKIP, element, skipped, head)] = width

    def tags(self, slot: Slot, shape: _Shape) -> None:
        opening = self.row(m.TAGS, slot.unknown_tag())
        turn = self.row(m.NEXT_TAG, slot.unknown_tag())
        before = None
        for field in shape.tagged:
            any_number = field.tag is not None and field.tag < 0
            start = self.row(m.TAG, slot.of(field), field.tag or 0, WIDTHS[field.type] if any_number else -1)
            self.field(slot.of(field), field, shape)
            self.row(m.TAG_END, slot.of(field))
            if before is None:
                self.rows[turn][m.A] = start
            else:
                self.rows[before][m.D] = start
            before = start
        self.rows[opening][m.D] = self.rows[turn][m.D] = len(self.rows)


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
