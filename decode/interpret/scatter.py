"""Tokens into columns, in one pass: what decode/columns.py asks of every batch.

The caller says where each column begins. No numpy here: bytes and vecs come in, vecs go out. Typed Python that mypyc
compiles; the source runs too.
"""

# ruff: noqa: PLR0917 -- vecs and numbers one by one: an object for them would be made for every token

from __future__ import annotations

from typing import Any, Final, final

from librt.strings import read_i16_be, read_i32_be, read_i64_be
from librt.vecs import extend, vec
from mypy_extensions import i32, i64

from wirecheck.decode.interpret.instruction import BOOL, FIXED, INT8, INT16, INT32, INT64, UUID

PIECE: Final = 1024
BEGINS_ROWS: Final = -2  # in length_at: a slot whose tokens begin rows


@final
class RunParts:
    """The fields of all runs; run r has those at[r]:at[r + 1]. As decode/layouts/program_writer.py has them."""

    def __init__(self, at: Any, op: Any, offset: Any, stride: Any) -> None:
        self.at: vec[i64] = at
        self.op: vec[i64] = op
        self.offset: vec[i64] = offset
        self.stride: vec[i64] = stride


@final
class Columns:
    """All columns of one message kind, one behind the other."""

    def __init__(self, first: i64, at: Any, length_at: Any, part_at: Any, part_length_at: Any) -> None:
        self.first = first
        """Number of the kind's first slot."""
        self.at: vec[i64] = at
        """By slot, where its column begins in the values; -1 if the projection excludes it."""
        self.length_at: vec[i64] = length_at
        """By slot, where it begins in the lengths; -1: it has none."""
        self.part_at: vec[i64] = part_at
        """The same by part of a run."""
        self.part_length_at: vec[i64] = part_length_at
        self.values: vec[i64] = vec[i64]()
        self.lengths: vec[i32] = vec[i32]()

    def reserve(self, cells: i64, sized: i64) -> None:
        """All 0. By pieces: `[0] * cells` would be written twice, and the second time out of the cache."""
        values: vec[i64] = vec[i64]([], capacity=cells)
        zeros = vec[i64]([0] * min(cells, PIECE))
        for _ in range(cells // PIECE):
            values = extend(values, zeros)
        self.values = extend(values, zeros[: cells - i64(len(values))])
        self.lengths = vec[i32]([0] * sized)

    def fill(self, slot: i64, rows: i64, value: i64, length: i64) -> None:
        """What a column holds where nothing is on the wire."""
        values, lengths = self.values, self.lengths
        cell, length_cell = self.at[slot - self.first], self.length_at[slot - self.first]
        if value != 0:
            for i in range(cell, cell + rows):
                values[i] = value
        if length != 0 and length_cell >= 0:
            for i in range(length_cell, length_cell + rows):
                lengths[i] = i32(length)

    def put(
        self, data: bytes, of: Any, tokens: Any, fields: Any, token_rows: Any, token_values: Any, token_lengths: Any,
        runs: RunParts, slots: i64,
    ) -> None:  # fmt: skip
        """Every token of these messages into its column, a run's into several. `slots`: how many there are."""
        messages: vec[i64] = of
        token_at: vec[i64] = tokens
        field: vec[i32] = fields
        row: vec[i32] = token_rows
        value: vec[i64] = token_values
        length: vec[i32] = token_lengths
        first, at, length_at = self.first, self.at, self.length_at
        values, lengths = self.values, self.lengths
        run_at, ops, offsets, strides, part_at = runs.at, runs.op, runs.offset, runs.stride, self.part_at
        for message in messages:
            for token in range(token_at[message], token_at[message + 1]):
                what = i64(field[token])
                here = i64(row[token])
                number = value[token]
                if what < slots:
                    slot = what - first
                    cell = at[slot] + here
                    values[cell] = number
                    length_cell = length_at[slot]
                    if length_cell >= 0:
                        lengths[length_cell + here] = length[token]
                    elif length_cell == BEGINS_ROWS:
                        end = cell + i64(length[token])
                        cell += 1
                        while cell < end:
                            values[cell] = number
                            cell += 1
                    continue
                run = what - slots
                stride = strides[run]
                count = i64(length[token])
                if stride < 0:
                    self.put_rows(data, runs, run, here, number, count)
                    continue
                for part in range(run_at[run], run_at[run + 1]):  # column by column
                    cell = part_at[part]
                    if cell < 0:
                        continue
                    cell += here
                    end = cell + count
                    place = number + offsets[part]
                    op = ops[part]
                    if op == INT32:
                        while cell < end:
                            values[cell] = i64(read_i32_be(data, place))
                            cell += 1
                            place += stride
                    elif op == INT64:
                        while cell < end:
                            values[cell] = read_i64_be(data, place)
                            cell += 1
                            place += stride
                    else:
                        while cell < end:
                            values[cell] = fixed(data, op, place)
                            cell += 1
                            place += stride

    def put_rows(self, data: bytes, runs: RunParts, run: i64, here: i64, place: i64, count: i64) -> None:
        """Rows of fixed-width fields and arrays of such: row by row, as each ends where its arrays do."""
        values, lengths = self.values, self.lengths
        ops, widths, cells, length_cells = runs.op, runs.offset, self.part_at, self.part_length_at
        first, end = runs.at[run], runs.at[run + 1]
        behind = -1 - runs.stride[run]
        for row in range(here, here + count):
            for part in range(first, end):
                op, cell, width = ops[part], cells[part], widths[part]
                if op == INT32:
                    if cell >= 0:
                        values[cell + row] = i64(read_i32_be(data, place))
                    place += width
                elif op < FIXED:
                    if cell >= 0:
                        values[cell + row] = fixed(data, op, place)
                    place += width
                else:
                    extent: i64 = 0
                    if op == FIXED:
                        extent = i64(read_i32_be(data, place))
                        place += 4
                    else:
                        extent = data[place]
                        extent -= 1
                        place += 1
                    if cell >= 0:
                        values[cell + row] = place
                        lengths[length_cells[part] + row] = i32(extent)
                    place += extent * width
            place += behind


def fixed(data: bytes, op: i64, at: i64) -> i64:
    """A value of fixed width, but for int32, which nearly all are."""
    number: i64 = at
    if op == INT16:
        number = i64(read_i16_be(data, at))
    elif op == INT64:
        number = read_i64_be(data, at)
    elif op == INT8:
        number = data[at]
        number = (number ^ 0x80) - 0x80
    elif op == BOOL:
        number = 1 if data[at] else 0
    elif op != UUID:  # UINT16
        number = i64(read_i16_be(data, at)) & 0xFFFF
    return number
