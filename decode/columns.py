"""Tokens to columns: what the pipeline reads.

    topics = tables(decoded, "Fetch", "request")["topics"]    "" has a row per message, header fields included
    topics["topic_id"]              uint8[rows, 16]; integers and booleans int64[rows], floats float64[rows]
    topics["topic"].codes()         Text: int32 codes (-1 null) and the unique strings; .strings() all of them
    topics["partitions"]            of an array: int64 counts, -1 null; its elements are tables[...]["topics.partitions"]
    partitions["replicas"]          array of integers or uuids: Lists: .count, .row(i), .flat() -> values and offsets
    partitions["records"]           Bytes: .raw(i), .field(i) where some may have been left out
    topics.present("topic_id")      bool[rows]: on the wire; elsewhere a column holds the schema's default
    partitions.parent               int64[rows]: row of the enclosing table; .message: message index in the batch
    topics["topic_names"]           an array of strings is a table of its own too, with the column "value"
    tables(...)["topics._unknown_tagged_fields"]   unknown tags: columns "tag" and "data"

Knows slots and tokens; refuses to know versions. Absent is the same whether a version lacks the field or a tag was not
sent: default and not present. Null is length or count -1.
Rule: one pass over the tokens fills every column the projection kept; nothing is built per row in Python.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

from decode.form import ROWS, Form, Kind, Slot
from decode.program import form
from decode.texts import Bytes, Lists, Text, uuids

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from decode.message import Decoded
    from decode.wire import Ints

__all__ = ["Table", "tables"]

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
    """All columns of one message kind in three flat arrays."""

    decoded: Decoded
    first: int
    """Number of its first slot."""
    at: Ints
    """By slot: where its column begins in values and present; -1 if the projection left it out."""
    length_at: Ints
    """By slot: where its column begins in lengths; -1 if it has none."""
    values: Ints
    lengths: NDArray[np.int32]
    there: NDArray[np.bool_]

    def _begin(self, slot: Slot) -> int:
        begin = int(self.at[slot.number - self.first])
        if begin < 0:
            raise KeyError(f"{slot.path} is not in the projection")
        return begin

    def numbers(self, slot: Slot, rows: int) -> Ints:
        begin = self._begin(slot)
        return self.values[begin : begin + rows]

    def seen(self, slot: Slot, rows: int) -> NDArray[np.bool_]:
        begin = self._begin(slot)
        return self.there[begin : begin + rows]

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
    values, lengths, there = np.empty(cells, np.int64), np.empty(sized, np.int32), np.zeros(cells, np.bool_)
    for slot in slots:
        value, length = _absent(slot)
        begin, rows = at[slot.number - first], int(decoded.rows[slot.level])
        values[begin : begin + rows] = value
        if slot.kind in SIZED:
            begin = length_at[slot.number - first]
            lengths[begin : begin + rows] = length
    mine = (decoded.messages.side == here.side) & (decoded.messages.key == here.key)
    scatter(
        np.flatnonzero(mine), decoded.token_at, decoded.field, decoded.row, decoded.value, decoded.length,
        first, at, length_at, values, lengths, there,
    )  # fmt: skip
    return _Cells(decoded, first, at, length_at, values, lengths, there)


def _absent(slot: Slot) -> tuple[int, int]:
    """Value and length that say the schema's default."""
    if slot.kind in SIZED or slot.kind == Kind.ARRAY:
        length = -1 if slot.default is None else 0
        assert slot.default in {None, 0, ""}, slot.label
        return (length if slot.kind == Kind.ARRAY else 0), length
    if slot.kind == Kind.UUID:
        return -1, 0
    if slot.kind == Kind.FLOAT:
        return int(np.float64(slot.default or 0.0).view(np.int64)), 0
    return int(slot.default or 0), 0


@njit(cache=True)
def scatter(  # type: ignore[no-untyped-def]  # noqa: ANN202, PLR0917
    messages, token_at, field, row, value, length,  # noqa: ANN001
    first, at, length_at, values, lengths, there,  # noqa: ANN001
):  # fmt: skip
    """Puts every token of these messages into its column."""
    for message in messages:
        for token in range(token_at[message], token_at[message + 1]):
            slot = field[token] - first
            cell = at[slot] + row[token]
            values[cell] = value[token]
            there[cell] = True
            if length_at[slot] >= 0:
                lengths[length_at[slot] + row[token]] = length[token]
