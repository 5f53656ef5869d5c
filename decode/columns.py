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

One pass over the tokens fills every column that the projection kept. A field that the version lacks and a tag that was
not sent look the same: the default, and not present.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from librt.vecs import vec
from mypy_extensions import i64

from wirecheck.decode.interpret.interpreter import OK
from wirecheck.decode.interpret.scatter import BEGINS_ROWS, Columns, RunParts
from wirecheck.decode.interpret.vectors import bytes_of, int32s, int64s, vec32, vec64
from wirecheck.decode.layouts.form import ROWS, SIZED, Form, Kind, Slot
from wirecheck.decode.layouts.layout import SIDES
from wirecheck.decode.layouts.program import form, programs
from wirecheck.decode.texts import Bytes, Lists, Text, uuids

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from wirecheck.decode.message import Decoded
    from wirecheck.decode.wire import Ints


def tables(decoded: Decoded, api: str | int, side: str) -> dict[str, Table]:
    """All tables of one message kind by path; "" has one row per message of it that was decoded."""
    here = form(api, side)
    cells = _filled(decoded, here)
    out: dict[str, Table] = {}
    for path, slot in here.tables.items():
        enclosing = next((table for table in out.values() if _encloses(table.slot, slot)), None)
        out[path] = Table(path, slot, cells, enclosing)
    return out


def row_of(table: Table, message: Ints) -> Ints:
    """The row of a message-level table that each message has, in any order; -1 for a message that has none."""
    if not len(table):
        return np.full(len(message), -1)
    order = np.argsort(table.message, kind="stable")
    places = table.message[order]
    at = np.minimum(np.searchsorted(places, message), len(places) - 1)
    return np.where(places[at] == message, order[at], -1)


def value_per(message: Ints, table: Table, name: str, absent: int) -> Ints:
    """A message-level integer column, looked up for messages of that kind in any order."""
    row = row_of(table, message)
    if not len(table):
        return np.full(len(message), absent)
    found: Ints = table[name][row]
    return np.where(row >= 0, found, absent)


def kinds(decoded: Decoded) -> list[tuple[int, int]]:
    """(key, side) of every kind of message that was decoded."""
    well = decoded.status == OK
    packed = np.unique(decoded.messages.key[well].astype(np.int64) * len(SIDES) + decoded.messages.side[well])
    return [divmod(one, len(SIDES)) for one in packed.tolist()]


def _encloses(outer: Slot, inner: Slot) -> bool:
    return inner.parent is not None and outer.level == inner.parent.level


@cache
def _columns_of(path: str, table: Slot) -> dict[str, Slot]:
    """Of a table's layout, which all batches share."""
    cut = len(path) + 1 if path else 0
    found = [slot for slot in table.walk() if slot.level == table.level and slot.kind not in ROWS]
    header = table.children.get("header")
    inside = set(header.walk()) if header is not None else set()
    ordered = sorted(found, key=inside.__contains__)
    return {slot.path[cut:]: slot for slot in reversed(ordered) if len(slot.path) > cut}


class Table:
    """One row per message, or per element of one kind of array."""

    def __init__(self, path: str, slot: Slot, cells: _Cells, enclosing: Table | None) -> None:
        self.path = path
        self.slot = slot
        self._cells = cells
        self.enclosing = enclosing
        self._columns: dict[str, Any] = {}
        self.numbered: dict[str, Any] = {}
        """What a reader made of columns of ids, for others that read them."""

    def __len__(self) -> int:
        return int(self._cells.decoded.rows[self.slot.level])

    @property
    def names(self) -> dict[str, Slot]:
        """Columns there are, body before header where both have one of the name."""
        return _columns_of(self.path, self.slot)

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
        return self.parent if self.enclosing is None else self.enclosing.message[self.parent]

    def enclosing_rows(self, path: str, rows: Ints) -> Ints:
        """The rows of the table at `path`, this one or one that encloses it, that these rows of this one are in."""
        table = self
        while table.path != path:
            assert table.enclosing is not None, f"{path} does not enclose {self.path}"
            table, rows = table.enclosing, table.parent[rows]
        return rows


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
    slots = [slot for slot in here.root.walk() if decoded.kept_slots is None or decoded.kept_slots[slot.number]]
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
    mine = np.flatnonzero(_of(decoded, here))
    columns = Columns(first, vec[i64](at), vec[i64](length_at), *_of_parts(here, at, length_at))
    columns.reserve(cells, sized)
    for slot in slots:
        columns.fill(slot.number, int(decoded.rows[slot.level]), *_absent(slot))
    columns.put(
        bytes_of(decoded.messages.data), vec64(mine), vec64(decoded.token_at),
        vec32(decoded.field), vec32(decoded.row), vec64(decoded.value), vec32(decoded.length),
        _parts(), len(programs().slots),
    )  # fmt: skip
    values, lengths = int64s(columns.values), int32s(columns.lengths)
    return _Cells(decoded, first, at, length_at, values, lengths)


def _of(decoded: Decoded, here: Form) -> NDArray[np.bool_]:
    """Messages of this kind that were decoded."""
    messages = decoded.messages
    mine: NDArray[np.bool_] = (messages.side == here.side) & (messages.key == here.key) & (decoded.status == OK)
    return mine


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


def _of_parts(here: Form, at: Ints, length_at: Ints) -> tuple[vec[i64], vec[i64]]:
    """By part of a run where its column begins in the values and the lengths; nowhere of another kind's."""
    slot, first = programs().runs.slot, here.slots.start
    of_form = (slot >= first) & (slot < here.slots.stop)
    index = np.where(of_form, slot - first, 0)
    return vec[i64](np.where(of_form, at[index], -1)), vec[i64](length_at[index])


@cache
def _parts() -> RunParts:
    runs = programs().runs
    return RunParts(vec[i64](runs.at), vec[i64](runs.op.astype(np.int64)), vec[i64](runs.offset), vec[i64](runs.stride))


def _absent(slot: Slot) -> tuple[int, int]:
    """Value and length that say the schema's default."""
    if slot.kind in SIZED or slot.kind == Kind.ARRAY:
        length = -1 if slot.default is None else 0
        assert slot.default in {None, 0, ""}, slot.label
        return (length if slot.kind == Kind.ARRAY else 0), length
    if slot.kind == Kind.UUID:
        return -1, 0
    return int(slot.default or 0), 0  # of a float, whose bits are the value, there is no other default
