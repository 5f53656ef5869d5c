"""Tokens to columns: what the pipeline reads.

    topics = tables(decoded, "Fetch", "request")["topics"]    "" has a row per message, header fields included
    topics["topic_id"]              uint8[rows, 16]; integers and booleans int64[rows], floats float64[rows]
    topics["topic"].codes()         Text: int32 codes (-1 null) and the unique strings; .strings() all of them
    topics["partitions"]            of an array: int64 counts, -1 null; elements are tables[...]["topics.partitions"]
    partitions["replicas"]          array of integers or uuids: Lists: .count, .row(i), .flat() -> values and offsets
    partitions["records"]           Bytes: .raw(i), .field(i) where some may have been left out
    topics.present("topic_id")      bool[rows]: on the wire; elsewhere a column holds the schema's default
    partitions.parent               int64[rows]: row of the enclosing table; .message: message index in the batch
    topics["topic_names"]           an array of strings is a table of its own too, with the column "value"
    tables(...)["topics._unknown_tagged_fields"]   unknown tags: columns "tag" and "data"

Knows slots and tokens; refuses to know versions. Absent is the same whether a version lacks the field or a tag was not
sent: default and not present. Null is length or count -1.
Rule: one pass over the tokens fills every column the projection kept; nothing is built per row in Python. What was
present is not written down beside it: that is asked of few columns, and the tokens still say it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from wirecheck.decode import machine
from wirecheck.decode.compiled import cached_njit
from wirecheck.decode.layouts.form import ROWS, Form, Kind, Slot
from wirecheck.decode.layouts.program import form, programs
from wirecheck.decode.texts import Bytes, Lists, Text, uuids

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from wirecheck.decode.message import Decoded
    from wirecheck.decode.wire import Ints

__all__ = ["Table", "tables"]

BEGINS_ROWS = -2  # in length_at: a slot whose tokens begin rows
SIZED = {Kind.TEXT, Kind.BYTES, Kind.RECORDS, Kind.INTEGERS, Kind.UUIDS}


def tables(decoded: Decoded, api: str | int, side: str) -> dict[str, Table]:
    """All tables of one message kind by path; "" has one row per message of it that was decoded."""
    here = form(api, side)
    cells = _filled(decoded, here)
    out: dict[str, Table] = {}
    for path, slot in here.tables.items():
        enclosing = next((table for table in out.values() if _encloses(table.slot, slot)), None)
        out[path] = Table(path, slot, cells, enclosing)
    return out


def _encloses(outer: Slot, inner: Slot) -> bool:
    return inner.parent is not None and outer.level == inner.parent.level


class Table:
    """One row per message, or per element of one kind of array."""

    def __init__(self, path: str, slot: Slot, cells: _Cells, enclosing: Table | None) -> None:
        self.path = path
        self.slot = slot
        self._cells = cells
        self._enclosing = enclosing
        self._columns: dict[str, Any] = {}

    def __len__(self) -> int:
        return int(self._cells.decoded.rows[self.slot.level])

    @cached_property
    def names(self) -> dict[str, Slot]:
        """Columns there are, body before header where both have one of the name."""
        cut = len(self.path) + 1 if self.path else 0
        found = [slot for slot in self.slot.walk() if slot.level == self.slot.level and slot.kind not in ROWS]
        header = self.slot.children.get("header")
        inside = set(header.walk()) if header is not None else set()
        ordered = sorted(found, key=inside.__contains__)
        return {slot.path[cut:]: slot for slot in reversed(ordered) if len(slot.path) > cut}

    def __getitem__(self, name: str) -> Any:
        if name not in self._columns:
            self._columns[name] = self._cells.column(self.names[name], len(self))
        return self._columns[name]

    def present(self, name: str) -> NDArray[np.bool_]:
        """Whether the field was on the wire, null or not."""
        return self._cells.seen(self.names[name], len(self))

    @property
    def parent(self) -> Ints:
        """Row of the enclosing table; of the table of messages, the message's index in the batch."""
        return self._cells.numbers(self.slot, len(self))

    @cached_property
    def message(self) -> Ints:
        """Index in the batch of the message a row came from."""
        return self.parent if self._enclosing is None else self._enclosing.message[self.parent]


@dataclass(frozen=True, slots=True)
class _Cells:
    """All columns of one message kind in two flat arrays."""

    decoded: Decoded
    first: int
    """Number of its first slot."""
    at: Ints
    """By slot: where its column begins in values; -1 if the projection left it out."""
    length_at: Ints
    """By slot: where its column begins in lengths; -1 if it has none."""
    values: Ints
    lengths: NDArray[np.int32]
    there: dict[int, NDArray[np.bool_]] = field(default_factory=dict)
    """By slot number: which rows were on the wire, where that was asked."""

    def _begin(self, slot: Slot) -> int:
        begin = int(self.at[slot.number - self.first])
        if begin < 0:
            raise KeyError(f"{slot.path} is not in the projection")
        return begin

    def numbers(self, slot: Slot, rows: int) -> Ints:
        begin = self._begin(slot)
        return self.values[begin : begin + rows]

    def seen(self, slot: Slot, rows: int) -> NDArray[np.bool_]:
        self._begin(slot)
        if slot.number not in self.there:
            self.there[slot.number] = _present(self.decoded, slot.number, rows)
        return self.there[slot.number]

    def column(self, slot: Slot, rows: int) -> Any:
        values = self.numbers(slot, rows)
        if slot.kind == Kind.UUID:
            return uuids(self.decoded.messages.data, values)
        if slot.kind == Kind.FLOAT:
            return values.view(np.float64)
        if slot.kind not in SIZED:
            return values
        begin = int(self.length_at[slot.number - self.first])
        lengths = self.lengths[begin : begin + rows]
        if slot.kind == Kind.TEXT:
            return Text(self.decoded.messages.data, values, lengths)
        if slot.kind in {Kind.INTEGERS, Kind.UUIDS}:
            return Lists(self.decoded.messages.data, values, lengths, slot.width)
        return Bytes(self.decoded.messages, values, lengths)


def _filled(decoded: Decoded, here: Form) -> _Cells:
    slots = [slot for slot in here.root.walk() if decoded.wanted is None or decoded.wanted[slot.number]]
    first, count = here.slots.start, len(here.slots)
    at, length_at = np.full(count, -1, np.int64), np.full(count, -1, np.int64)
    cells = sized = 0
    for slot in slots:
        rows = int(decoded.rows[slot.level])
        at[slot.number - first] = cells
        cells += rows
        if slot.kind in SIZED:
            length_at[slot.number - first] = sized
            sized += rows
        elif slot.kind in ROWS:
            length_at[slot.number - first] = BEGINS_ROWS
    out = _Cells(decoded, first, at, length_at, np.empty(cells, np.int64), np.empty(sized, np.int32))
    mine = np.flatnonzero(_of(decoded, here))
    ours = int(decoded.rows[here.root.level]) == len(mine)  # else there are rows of a message that was taken back since
    certain = _certain(decoded, mine) if ours else frozenset()
    for slot in slots:
        if slot.number not in certain:
            _default(out, slot)
    _scatter(out, here, mine)
    return out


def _of(decoded: Decoded, here: Form) -> NDArray[np.bool_]:
    """Messages of this kind that were decoded."""
    messages = decoded.messages
    mine: NDArray[np.bool_] = (messages.side == here.side) & (messages.key == here.key) & (decoded.status == machine.OK)
    return mine


def _certain(decoded: Decoded, mine: Ints) -> frozenset[int]:
    """Numbers of the slots that each of these messages says in every row there is."""
    messages = decoded.messages
    read_by = decoded.dialect[mine], messages.side[mine], messages.key[mine], decoded.version[mine]
    used = np.unique(programs().entries[read_by]).tolist()
    return frozenset.intersection(*map(_always_said, used)) if used else frozenset()


@cache
def _always_said(entry: int) -> frozenset[int]:
    """Numbers of the slots that any message of this program says in every row: not those in tags and nullable structs.

    entry: row of the table, one of `Programs.entries`.
    """
    rows, at, said = programs().table, entry, set()
    while rows[at, machine.OP] != machine.END:
        op, number = int(rows[at, machine.OP]), int(rows[at, machine.FIELD])
        if op not in {machine.RUN, machine.TAGS}:  # a run's fields follow
            said.add(number)
        at = int(rows[at, machine.D]) if op in {machine.TAGS, machine.NULLABLE_STRUCT} else at + 1
    return frozenset(said)


def _present(decoded: Decoded, number: int, rows: int) -> NDArray[np.bool_]:
    """Rows of the tokens that say this slot, be it in a run."""
    runs, slots = programs().runs, len(programs().slots)
    says = np.zeros(slots + len(runs.stride), np.bool_)
    says[number] = True
    says[slots + np.searchsorted(runs.at, np.flatnonzero(runs.slot == number), "right") - 1] = True
    tokens = np.flatnonzero(says[decoded.field])
    row, count = decoded.row[tokens], np.where(decoded.field[tokens] < slots, 1, decoded.length[tokens])
    there = np.zeros(rows, np.bool_)
    there[np.repeat(row - np.cumsum(count) + count, count) + np.arange(count.sum())] = True
    return there


def _default(cells: _Cells, slot: Slot) -> None:
    """Fills a column with the schema's default, which stays where nothing is on the wire."""
    rows = int(cells.decoded.rows[slot.level])
    value, length = _absent(slot)
    cells.numbers(slot, rows).fill(value)
    if slot.kind in SIZED:
        begin = cells.length_at[slot.number - cells.first]
        cells.lengths[begin : begin + rows].fill(length)


def _scatter(cells: _Cells, here: Form, mine: Ints) -> None:
    """Puts in what is on the wire."""
    decoded, compiled = cells.decoded, programs()
    runs = compiled.runs
    of_form = (runs.slot >= here.slots.start) & (runs.slot < here.slots.stop)
    slot = np.where(of_form, runs.slot - cells.first, 0)
    scatter(
        mine, decoded.messages.data, decoded.token_at,
        decoded.field, decoded.row, decoded.value, decoded.length, cells.first, len(compiled.slots),
        runs.at, np.where(of_form, cells.at[slot], -1), cells.length_at[slot], runs.offset, runs.op, runs.stride,
        cells.at, cells.length_at, cells.values, cells.lengths,
    )  # fmt: skip


def _absent(slot: Slot) -> tuple[int, int]:
    """Value and length that say the schema's default."""
    if slot.kind in SIZED or slot.kind == Kind.ARRAY:
        length = -1 if slot.default is None else 0
        assert slot.default in {None, 0, ""}, slot.label
        return (length if slot.kind == Kind.ARRAY else 0), length
    if slot.kind == Kind.UUID:
        return -1, 0
    return int(slot.default or 0), 0  # of a float, whose bits are the value, there is no other default


@cached_njit
def scatter(  # type: ignore[no-untyped-def]  # noqa: ANN202, PLR0917
    messages, data, token_at, field, row, value, length, first, slots,  # noqa: ANN001
    part_at, part_cell, part_length, part_offset, part_op, run_stride,  # noqa: ANN001
    at, length_at, values, lengths,  # noqa: ANN001
):  # fmt: skip
    """Puts every token of these messages into its column, a run's into several.

    An unsigned index saves numba's test for one counted from the end; with them this is twice as fast.
    """
    for message in messages:
        for token in range(np.uint64(token_at[message]), np.uint64(token_at[message + 1])):
            what = np.int64(field[token])
            here = np.int64(row[token])
            count = np.int64(length[token])
            number = value[token]
            if what < slots:
                slot = np.uint64(what - first)
                cell = at[slot] + here
                values[np.uint64(cell)] = number
                if length_at[slot] >= 0:
                    lengths[np.uint64(length_at[slot] + here)] = count
                elif length_at[slot] == BEGINS_ROWS:
                    for i in range(1, count):
                        values[np.uint64(cell + i)] = number
                continue
            run = np.uint64(what - slots)
            stride = run_stride[run]
            if stride < 0:
                for i in range(count):
                    for part in range(np.uint64(part_at[run]), np.uint64(part_at[run + np.uint64(1)])):
                        op = part_op[part]
                        width = part_offset[part]
                        cell = part_cell[part]
                        if op >= machine.FIXED:
                            if op == machine.FIXED:
                                extent = machine.int32(data, number)
                                number += 4
                            else:
                                extent = np.int64(data[np.uint64(number)]) - 1
                                number += 1
                            if cell >= 0:
                                values[np.uint64(cell + here + i)] = number
                                lengths[np.uint64(part_length[part] + here + i)] = extent
                            number += extent * width
                            continue
                        if cell >= 0:
                            at_row = np.uint64(cell + here + i)
                            if op == machine.INT32:
                                values[at_row] = machine.int32(data, number)
                            elif op == machine.INT16:
                                values[at_row] = machine.int16(data, number)
                            elif op == machine.INT64:
                                values[at_row] = machine.int64(data, number)
                            elif op == machine.UUID:
                                values[at_row] = number
                            elif op == machine.INT8:
                                values[at_row] = (np.int64(data[np.uint64(number)]) ^ 0x80) - 0x80
                            else:  # BOOL
                                values[at_row] = 1 if data[np.uint64(number)] else 0
                        number += width
                    number += -1 - stride
                continue
            for part in range(np.uint64(part_at[run]), np.uint64(part_at[run + np.uint64(1)])):
                if part_cell[part] < 0:
                    continue
                cell = part_cell[part] + here
                place = number + part_offset[part]
                op = part_op[part]
                # a call here would count references for every value
                if op == machine.INT32:
                    for i in range(count):
                        values[np.uint64(cell + i)] = machine.int32(data, place + i * stride)
                elif op == machine.INT64:
                    for i in range(count):
                        values[np.uint64(cell + i)] = machine.int64(data, place + i * stride)
                elif op == machine.INT16:
                    for i in range(count):
                        values[np.uint64(cell + i)] = machine.int16(data, place + i * stride)
                elif op == machine.UUID:
                    for i in range(count):
                        values[np.uint64(cell + i)] = place + i * stride
                elif op == machine.INT8:
                    for i in range(count):
                        values[np.uint64(cell + i)] = (np.int64(data[np.uint64(place + i * stride)]) ^ 0x80) - 0x80
                elif op == machine.BOOL:
                    for i in range(count):
                        values[np.uint64(cell + i)] = 1 if data[np.uint64(place + i * stride)] else 0
                else:  # UINT16
                    for i in range(count):
                        values[np.uint64(cell + i)] = machine.int16(data, place + i * stride) & 0xFFFF
