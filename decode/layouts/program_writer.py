"""Layouts to programs: one program reads one whole message of one side, API, version and dialect, header included.

Adjacent fields of fixed width are read at once, and again one by one to find the one that fails.
"""

from __future__ import annotations

from typing import TypeAlias, final

from wirecheck.decode.interpret import instruction as op
from wirecheck.decode.interpret.instruction import Instruction
from wirecheck.decode.layouts.form import WIDTHS, Form, Kind, Slot
from wirecheck.decode.layouts.layout import Field, Layout, layouts

OPS = {
    "bool": op.BOOL, "int8": op.INT8, "int16": op.INT16, "uint16": op.UINT16, "int32": op.INT32, "int64": op.INT64,
    "float64": op.INT64, "uuid": op.UUID,
}  # fmt: skip
SIZED_OPS = {"string": op.TEXT, "bytes": op.BYTES, "records": op.BYTES}


HEADERS = {"request": "RequestHeader", "response": "ResponseHeader"}  # by side; records and blobs have none
Part: TypeAlias = tuple[Slot, int, int]  # of a run: slot, offset, operation


@final
class Writer:
    """Appends programs. Until `resolve`, instructions have no field and no level, runs are counted from 0."""

    def __init__(self) -> None:
        self.instructions: list[Instruction] = []
        self.slots: list[Slot] = []  # of each instruction
        self.run_numbers: dict[tuple[tuple[Part, ...], int], int] = {}
        """By the parts of a run and its stride: bytes from one row's to the next one's; `-1 - n` of a run of rows,
        with n bytes behind each. A part's offset is where it begins in the run; in a run of rows it is its bytes, of an
        array those of an element."""
        self.headers: dict[str, Layout] = {layout.api: layout for layout in layouts("kafka") if layout.side == "header"}
        self.last: Instruction | None = None  # has to point at the next one as its `next`
        self.jumps: list[Instruction] = []  # have to as their `target`
        self.ends: list[Instruction] = []  # have to as their `after`

    def put(self, kind: int, slot: Slot) -> Instruction:
        """One instruction more: what follows the last one, and whatever else waits for it."""
        made = Instruction(kind)
        if self.last is not None:
            self.last.next = made
        self.last = made
        if self.jumps:
            for before in self.jumps:
                before.target = made
            self.jumps = []
        if self.ends:
            for before in self.ends:
                before.after = made
            self.ends = []
        self.instructions.append(made)
        self.slots.append(slot)
        return made

    def resolve(self, forms: list[Form], slots: int) -> None:
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

    def message(self, form: Form, layout: Layout, version: int) -> int:
        self.last = None
        first = len(self.instructions)
        self.put(op.MESSAGE, form.root)
        header = self.headers.get(HEADERS.get(layout.side, ""))
        if header is not None:
            header_version = layout.header_version(version)
            self.struct("header", form.root, Shape(header.fields, header_version, header_version in header.flexible))
        self.struct("body", form.root, Shape(layout.fields, version, version in layout.flexible))
        self.put(op.END, form.root)
        return first

    def struct(self, name: str, parent: Slot, shape: Shape) -> None:
        slot = parent.child(name, Kind.STRUCT)
        self.put(op.STRUCT, slot)
        self.content(slot, shape)

    def content(self, slot: Slot, shape: Shape) -> None:
        """A struct's fields, then its tag section."""
        begin, count = 0, len(shape.ordinary)
        while begin < count:
            end = begin
            while end < count and _is_fixed(shape.ordinary[end]):
                end += 1
            if end > begin + 1:
                self.run(slot, shape.ordinary[begin:end], shape)
                begin = end
            else:
                self.field(slot.of(shape.ordinary[begin]), shape.ordinary[begin], shape)
                begin += 1
        if shape.flexible:
            self.tags(slot, shape)

    def run(self, slot: Slot, fields: list[Field], shape: Shape) -> None:
        """Fixed-width fields: at once, and behind that singly."""
        opening = self.put(op.RUN, slot)
        opening.run, opening.size = self.run_number(slot, fields, 0)
        for field in fields:
            self.field(slot.of(field), field, shape)
        self.jumps.append(opening)

    def run_number(self, slot: Slot, fields: list[Field], stride: int) -> tuple[int, int]:
        """Of a run, equal ones sharing theirs, and how many bytes it has."""
        parts: list[Part] = []
        size = 0
        for field in fields:
            parts.append((slot.of(field), size, OPS[field.type]))
            size += WIDTHS[field.type]
        return self.run_numbers.setdefault((tuple(parts), stride), len(self.run_numbers)), size

    def field(self, slot: Slot, field: Field, shape: Shape) -> None:
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
                self.jumps.append(opening)
        elif field.type in SIZED_OPS:
            self.put(SIZED_OPS[field.type] + compact, slot).nullable = nullable
        else:
            self.put(OPS[field.type], slot).size = WIDTHS[field.type]

    def array(self, slot: Slot, field: Field, shape: Shape) -> None:
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
            self.put(op.TEXT + compact, element.child("value", Kind.TEXT, field._replace(array=False, default="")))
        opening.target = turn = self.turn(element, inner.ordinary if field.type == "struct" else [], inner)
        turn.target = self.instructions[first]
        self.ends += [opening, turn]

    def turn(self, element: Slot, parts: list[Field], shape: Shape) -> Instruction:
        """What reads an array's elements, as many at once as their fields allow."""
        if parts and all(_is_fixed(field) for field in parts):
            turn = self.put(op.TAGGED_BLOCK if shape.flexible else op.BLOCK, element)
            turn.size = shape.least
            turn.run, _ = self.run_number(element, parts, shape.least)
        elif parts and all(_is_plain(field) for field in parts):
            turn = self.plain_rows(element, shape)
        else:
            turn = self.put(op.NEXT, element)
        return turn

    def plain_rows(self, element: Slot, shape: Shape) -> Instruction:
        """Elements of fixed-width fields and arrays of such: what is to be skipped to find where each ends."""
        parts = tuple(
            [
                (
                    element.of(field),
                    WIDTHS[field.type],
                    op.FIXED + shape.compact(field) if field.array else OPS[field.type],
                )
                for field in shape.ordinary
            ]
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

    def tags(self, slot: Slot, shape: Shape) -> None:
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
        self.jumps += [opening, turn]


def _is_fixed(field: Field) -> bool:
    return field.type in WIDTHS and not field.array


def _is_plain(field: Field) -> bool:
    """What a run of rows may hold: columns.scatter reads no uint16 there, as no layout has one beside arrays."""
    return field.type in WIDTHS and field.type != "uint16"


@final
class Shape:
    """A struct at one version."""

    def __init__(self, fields: tuple[Field, ...], version: int, flexible: bool) -> None:
        self.version: int = version
        self.flexible: bool = flexible
        self.ordinary: list[Field] = []
        self.tagged: list[Field] = []
        for field in fields:
            if version in field.versions:
                (self.ordinary if field.tag is None else self.tagged).append(field)

    def compact(self, field: Field) -> int:
        return int(self.flexible and not field.inflexible)

    def inner(self, field: Field) -> Shape:
        return Shape(field.fields, self.version, self.flexible)

    @property
    def least(self) -> int:
        """Bytes that the smallest value takes."""
        return sum([self._least(field) for field in self.ordinary]) + int(self.flexible)

    def _least(self, field: Field) -> int:
        if _is_fixed(field):
            return WIDTHS[field.type]
        if field.type == "struct" and not field.array:
            return 1 if self.version in field.nullable else self.inner(field).least
        if self.flexible and not field.inflexible:
            return 1
        return 2 if field.type == "string" and not field.array else 4
