"""Idle connections: rows of stored tables, made into objects when they are touched.

A block stores each column as its lowest value and differences in as few bytes as fit. A block of which most rows have
left is rewritten with its neighbours. STATE_VERSION (follower.py) goes up when this layout changes.
"""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from librt.vecs import vec
from mypy_extensions import i64
from numpy.typing import NDArray

from wirecheck.decode.connection.connection import Connection
from wirecheck.decode.connection.state.attributes import (
    BEGIN,
    CHUNKS,
    COLUMNS,
    CONNECTIONS,
    DATA_AT,
    END,
    KIND,
    MESSAGES,
    Reader,
    Writer,
    widths,
)
from wirecheck.decode.connection.stream.chunks import DATA
from wirecheck.decode.connection.stream.frame import NEVER
from wirecheck.decode.connection.stream.modes import OFF, OPEN

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from wirecheck.decode.connection.state.attributes import Numbers

Ints = NDArray[np.int64]
INTEGER_BYTES = (1, 2, 4, 8)


class Table:
    """A stored table: `rows` rows of `width` numbers in this memory, which it does not copy."""

    def __init__(self, memory: memoryview, rows: int, width: int) -> None:
        self._memory = memory
        self._rows = rows
        self._low = np.frombuffer(memory, np.int64, width)
        self._bytes = np.frombuffer(memory, np.uint8, width, 8 * width)
        self._parts: list[tuple[Ints, NDArray[np.unsignedinteger]]] = []
        at = 9 * width
        for size in INTEGER_BYTES:
            columns = np.flatnonzero(self._bytes == size)
            excess = np.frombuffer(memory, f"<u{size}", rows * len(columns), at).reshape(rows, len(columns))
            self._parts.append((columns, excess))
            at += excess.nbytes
        self.size = at

    def rows(self, chosen: NDArray[np.int64] | slice = slice(None)) -> Ints:
        """These rows, or all, as numbers again."""
        count = self._rows if isinstance(chosen, slice) else len(chosen)
        found = np.tile(self._low, (count, 1))
        for columns, excess in self._parts:
            found[:, columns] += excess[chosen].astype(np.int64)
        return found

    def column(self, number: int) -> Ints:
        found = np.full(self._rows, self._low[number])
        for columns, excess in self._parts:
            for place in np.flatnonzero(columns == number).tolist():
                found += excess[:, place].astype(np.int64)
        return found


def stored(numbers: Ints) -> bytes:
    """A table as bytes. (Differences wrap where they exceed 63 bits, and wrap back when they are read.)"""
    width = numbers.shape[1]
    low = numbers.min(0) if len(numbers) else np.zeros(width, np.int64)
    span = (numbers.max(0) - low if len(numbers) else low).view(np.uint64)
    size = np.select([span == 0, span < 1 << 8, span < 1 << 16, span < 1 << 32], [0, 1, 2, 4], 8).astype(np.uint8)
    parts = [low.tobytes(), size.tobytes()]
    for width in INTEGER_BYTES:
        columns = np.flatnonzero(size == width)
        parts.append((numbers[:, columns] - low[columns]).astype(f"<u{width}").tobytes())
    return b"".join(parts)


WIDTHS = widths()
WHICH, OFFSET = 1, 7  # columns of messages and chunks
MERGED = 2  # times as many as a new block has: smaller blocks before it are merged with it
MOST_ROWS = 4096  # of a block: while it is written, a connection takes some 4 kB of full numbers


@cache
def _columns() -> tuple[int, list[tuple[int, int, int]]]:
    """Of a stored connection: the client's column, and by direction those of next_offset, mode and ordered.begin."""
    probe = Connection("", 0)
    probe.client = NEVER - 1
    marks = [(NEVER - 2, NEVER - 3, NEVER - 4), (NEVER - 5, NEVER - 6, NEVER - 7)]
    for direction, values in zip((probe.lower, probe.higher), marks, strict=True):
        direction.next_offset, direction.mode, direction.ordered.begin = values
    row = _rows(Writer([probe]).tables[CONNECTIONS], WIDTHS[CONNECTIONS])[0].tolist()
    return row.index(probe.client), [tuple(map(row.index, values)) for values in marks]


class Block:
    """Connections that were parked together; `memory` is all of it as bytes."""

    def __init__(self, memory: memoryview) -> None:
        self.memory = memory
        length = int.from_bytes(memory[:8], "little")
        head = json.loads(bytes(memory[8 : 8 + length]))
        self.keys: list[str] = head["keys"]
        at = 8 + length
        self.parked = np.frombuffer(memory, np.bool_, len(self.keys), at).copy()
        """Which of its rows are parked still."""
        self._parked_at = at
        at += len(self.keys)
        self.tables = []
        for rows, width in zip(head["rows"], WIDTHS, strict=True):
            self.tables.append(Table(memory[at:], rows, width))
            at += self.tables[-1].size
        self.data = memory[at:]
        self._owners: list[Ints] | None = None

    @classmethod
    def of(cls, keys: list[str], numbers: Sequence[Ints], data: list[bytes]) -> Block:
        head = json.dumps({"keys": keys, "rows": [len(rows) for rows in numbers]}).encode()
        parked = np.ones(len(keys), np.bool_).tobytes()
        tables = [stored(rows) for rows in numbers]
        return cls(memoryview(b"".join([len(head).to_bytes(8, "little"), head, parked, *tables, *data])))

    def stored(self) -> list[bytes | memoryview]:
        begin = self._parked_at
        return [self.memory[:begin], self.parked.tobytes(), self.memory[begin + len(self.keys) :]]

    def __len__(self) -> int:
        return int(np.count_nonzero(self.parked))

    def column(self, name: str) -> Ints:
        """Of the connections that are parked still."""
        return self.tables[CONNECTIONS].column(COLUMNS[name])[self.parked]

    def take(self, rows: list[int]) -> list[Connection]:
        """These connections as objects; they are not parked any more."""
        if self._owners is None:
            self._owners = [table.column(0) for table in self.tables[1:]]
        self.parked[rows] = False
        chosen = np.sort(np.array(rows, np.int64))
        tables = [self.tables[CONNECTIONS].rows(chosen)]
        for table, owners in zip(self.tables[1:], self._owners, strict=True):
            tables.append(table.rows(_owned(owners, chosen)))
        reader = Reader([vec[i64](numbers.reshape(-1)) for numbers in tables], self.data)
        return reader.connections([self.keys[row] for row in chosen.tolist()], chosen.tolist())

    def decided(self) -> Ints:
        """What lifetime.decided gives of those that are parked still, out of their columns."""
        table, messages, chunks = (self.tables[number] for number in (CONNECTIONS, MESSAGES, CHUNKS))
        early = messages.column(WHICH) == 1
        owners, first = np.unique(messages.column(0)[early], return_index=True)
        response = np.full(len(self.keys), NEVER)
        response[owners] = messages.column(OFFSET)[early][first]
        still = self.parked & (table.column(COLUMNS["life"]) == OPEN)
        found = np.empty((2, np.count_nonzero(still), 3), np.int64)
        client, directions = _columns()
        for side, (next_offset, mode, ordered_begin) in enumerate(directions):
            ordered = np.zeros(len(self.keys), np.bool_)
            ordered[chunks.column(0)[chunks.column(WHICH) == 2 * side]] = True
            ordered &= table.column(mode) != OFF
            at = np.where(ordered, table.column(ordered_begin), table.column(next_offset))
            at = np.where(table.column(client) == side, at, np.minimum(at, response))
            found[side] = np.stack((table.column(COLUMNS["serial"]), np.full(len(at), side), at), axis=1)[still]
        return found.reshape(-1, 3)

    def left(self) -> tuple[list[str], list[Ints], list[bytes]]:
        """Keys, tables and data of what is parked still, to be merged with others."""
        keys = [key for key, parked in zip(self.keys, self.parked.tolist(), strict=True) if parked]
        number = np.cumsum(self.parked) - 1
        tables = [self.tables[CONNECTIONS].rows()[self.parked]]
        for table in self.tables[1:]:
            rows = table.rows()
            rows = rows[self.parked[rows[:, 0]]]
            rows[:, 0] = number[rows[:, 0]]
            tables.append(rows)
        return keys, tables, self._data_of(tables[CHUNKS])

    def _data_of(self, chunks: Ints) -> list[bytes]:
        """The bytes of these chunks, one behind the other; the rows say where they lie from now on."""
        parts, at = [], 0
        for row in chunks:
            begin, length = int(row[DATA_AT]), int(row[END] - row[BEGIN]) if row[KIND] == DATA else 0
            parts.append(bytes(self.data[begin : begin + length]))
            row[DATA_AT] = at
            at += length
        return parts


def _rows(table: Numbers, width: int) -> Ints:
    values: Any = table.values  # a vec, whose memory numpy shares
    return np.frombuffer(values, np.int64, table.at).reshape(-1, width)


def _owned(owners: Ints, chosen: Ints) -> Ints:
    """Places of the rows whose owner is one of the chosen; both are sorted."""
    first, end = np.searchsorted(owners, chosen), np.searchsorted(owners, chosen + 1)
    before = np.cumsum(end - first) - (end - first)
    places: Ints = np.arange(int((end - first).sum())) + np.repeat(first - before, end - first)
    return places


def merged(blocks: list[Block]) -> Block:
    """One block of all that is parked in these."""
    keys: list[str] = []
    tables: list[list[Ints]] = [[] for _ in WIDTHS]
    data: list[bytes] = []
    size = 0
    for block in blocks:
        more_keys, more, more_data = block.left()
        for number, rows in enumerate(more):
            if number != CONNECTIONS:
                rows[:, 0] += len(keys)
            if number == CHUNKS:
                rows[:, DATA_AT] += size
            tables[number].append(rows)
        keys += more_keys
        data += more_data
        size += sum(map(len, more_data))
    return Block.of(keys, [np.concatenate(rows) for rows in tables], data)


class Parked:
    """All connections of a follower that are not objects."""

    def __init__(self, blocks: Iterable[Block] = ()) -> None:
        self._blocks = list(blocks)
        self._place: dict[str, tuple[Block, int]] = {}
        for block in self._blocks:
            self._note(block)

    def __len__(self) -> int:
        return len(self._place)

    def _note(self, block: Block) -> None:
        places = zip([block] * len(block.keys), range(len(block.keys)), strict=True)
        if block.parked.all():
            self._place.update(zip(block.keys, places, strict=True))
        else:
            found = zip(block.keys, places, block.parked.tolist(), strict=True)
            self._place.update((key, place) for key, place, parked in found if parked)

    def take(self, keys: Iterable[str]) -> list[Connection]:
        """Those of these connections that are parked, as objects."""
        rows: dict[int, list[int]] = {}
        blocks: dict[int, Block] = {}
        for key in keys:
            if (place := self._place.pop(key, None)) is not None:
                block, row = place
                blocks[id(block)] = block
                rows.setdefault(id(block), []).append(row)
        return [connection for number, block in blocks.items() for connection in block.take(rows[number])]

    def column(self, name: str) -> Ints:
        """An attribute of all that are parked, in the order of `keys`."""
        return np.concatenate([np.zeros(0, np.int64), *(block.column(name) for block in self._blocks)])

    def decided(self) -> Ints:
        """Rows (connection, direction, offset) of those that are open."""
        return np.concatenate([np.zeros((0, 3), np.int64), *(block.decided() for block in self._blocks)])

    def keys(self) -> list[str]:
        return [
            key
            for block in self._blocks
            for key, parked in zip(block.keys, block.parked.tolist(), strict=True)
            if parked
        ]

    def park(self, connections: list[Connection]) -> None:
        for at in range(0, len(connections), MOST_ROWS):
            some = connections[at : at + MOST_ROWS]
            written = Writer(some)
            numbers = [_rows(table, width) for table, width in zip(written.tables, WIDTHS, strict=True)]
            self._blocks.append(Block.of([connection.key for connection in some], numbers, written.data))
            self._note(self._blocks[-1])
        self._merge()

    def _merge(self) -> None:
        """Few blocks: the smallest become one, with larger ones as they grow. So a row is written again seldom."""
        kept = sorted((block for block in self._blocks if len(block)), key=len, reverse=True)
        last: list[Block] = []
        count = 0
        while kept and count + len(kept[-1]) <= MOST_ROWS and (not last or len(kept[-1]) <= MERGED * count):
            last.append(kept.pop())
            count += len(last[-1])
        if len(last) > 1 or (last and 2 * count < len(last[0].keys)):
            last = [merged(last)]
            self._note(last[0])
        self._blocks = kept + last

    def stored(self) -> list[list[bytes | memoryview]]:
        return [block.stored() for block in self._blocks]
