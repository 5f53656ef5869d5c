"""Rows that wait until it is known which of their bytes are kept, and what they are then.

Retransmitted rows keep the same bytes if they wait at the same time, and nothing if they come later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from librt.vecs import vec
from mypy_extensions import i64

from wirecheck.capture import frames
from wirecheck.capture.trim.kept_pieces import Payloads, trimmed
from wirecheck.capture.trim.placed_rows import Carried, PlacedRows, conflicts, without
from wirecheck.capture.waiting_rows import Batch, array, vector

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from wirecheck.capture.trim.kept_pieces import Pieces
    from wirecheck.decode.connection.handout import Placed
    from wirecheck.decode.connection.segments import Segments
    from wirecheck.decode.wire import Ints

TLS_HEADER_BYTES, TLS_OPENING_BYTES = 5, 16
NAMED = (b"HTTP", b"SSH-")
"""Protocols whose first bytes are their name."""
TLS_MOST_BYTES = (1 << 14) + 2048  # of a record
LAST_STREAM = (1 << 63) - 1
NO_STREAMS = np.zeros(0, np.int64)


class Chunk(Batch):
    """Frames, with what of them is kept."""

    def __init__(self, rows: pa.RecordBatch, segments: Segments, placed: Placed) -> None:
        super().__init__(rows)
        self.segments = segments
        carries = (placed.offset >= 0) & (segments.payload_len > 0)
        self.stream: Ints = np.where(carries, 2 * placed.serial + placed.direction, -1)
        """By row; -1 where it carries nothing, or was given up."""
        self.offset = placed.offset
        self.end: Ints = placed.offset + segments.payload_len
        self.waiting: Ints = np.flatnonzero(carries)
        """Rows that may carry something worth keeping, as far as is known."""
        order = np.lexsort((placed.offset, self.stream))
        order = order[self.stream[order] >= 0]
        self.placed = PlacedRows(*map(vector, (self.stream, placed.offset, segments.payload_len, order)))
        self._left_at = vector(segments.left_at)
        self._carried = Carried(self.placed, vector(segments.payload_at), segments.payload.tobytes)

    def first_waiting(self) -> int:
        return int(self.waiting[0]) if len(self.waiting) else len(self)

    def decide(self, decided: Offsets) -> None:
        """All before these offsets is known."""
        self.waiting = self.waiting[self.end[self.waiting] > decided.of(self.stream[self.waiting])]

    def give_up(self, rows: Ints) -> None:
        """These rows wait for nothing any more."""
        if len(rows):
            self.stream[rows] = -1
            self.waiting = self.waiting[self.stream[self.waiting] >= 0]
            self.placed.give_up(vector(rows))

    def compare(self, earlier: Iterable[Chunk]) -> None:
        """What rows here carry again with other bytes than earlier rows, here or there, is not kept of them."""
        conflicts(self._carried, self._carried, self.placed.excluded)
        for chunk in earlier:
            conflicts(chunk._carried, self._carried, self.placed.excluded)  # noqa: SLF001 -- one of its own

    def read(self, stream: int, at: int, count: int) -> bytes:
        """As many of these bytes of a stream as one row here has in a piece."""
        row = int(self.placed.carrier(stream, at, self._left_at))
        if row < 0:
            return b""
        segments = self.segments
        begin = int(segments.payload_at[row]) + at - int(self.placed.offset[row])
        return segments.payload[begin : min(begin + count, int(segments.payload_at[row + 1]))].tobytes()

    def made_of(self, rows: pa.RecordBatch, first: int) -> pa.RecordBatch:
        """The rows with nothing but what is kept."""
        upto = first + rows.num_rows
        s = self.segments
        marked = without(self.placed.kept, self.placed.excluded)
        edges = (s.payload_at, s.payload_len, s.left_at, s.left_offset, s.left_length)
        opening = vector(_opening_bytes(s.payload, s.payload_at[first : upto + 1], self.placed.offset, first))
        pieces = trimmed(first, upto, marked, Payloads(*map(vector, edges)), opening)
        return _replaced(rows, _payloads(s.payload, pieces), _lists(pieces))


class Offsets:
    """An offset of each of these streams, ascending; `other` is that of every other stream."""

    def __init__(self, stream: Ints = NO_STREAMS, offset: Ints = NO_STREAMS, other: int = -1) -> None:
        order = np.argsort(stream, kind="stable")
        self.stream, self.offset, self._other = stream[order], offset[order], other
        self._names, self._offsets = np.append(self.stream, LAST_STREAM), np.append(self.offset, other)

    def of(self, stream: Ints) -> Ints:
        place = np.searchsorted(self._names, stream)
        return np.where(self._names[place] == stream, self._offsets[place], self._other)

    def without(self, stream: Ints) -> Offsets:
        stays = ~np.isin(self.stream, stream)
        return Offsets(self.stream[stays], self.offset[stays], self._other)

    def moved(self, stream: Ints, offset: Ints) -> Offsets:
        """These streams have these offsets now."""
        others = self.without(stream)
        return Offsets(np.concatenate([others.stream, stream]), np.concatenate([others.offset, offset]), self._other)


def _payloads(payload: NDArray[np.uint8], pieces: Pieces) -> pa.BinaryArray:
    """Of each row its pieces, one behind the other. One piece is not copied, unless it holds far more in memory."""
    edges, at = array(pieces.edges).astype(np.int32), array(pieces.at).astype(np.int32)
    data = pa.py_buffer(payload[edges[0] : edges[-1]] if len(edges) else b"")
    if len(edges) > 2 or 0 < 2 * data.size < len(payload):  # every second of the stretches between edges is a piece
        places = pa.py_buffer(edges - edges[0])
        between = pa.Array.from_buffers(pa.binary(), len(edges) - 1, [None, places, data])
        data = between.take(pa.array(np.arange(0, len(edges), 2))).buffers()[2]
    return pa.BinaryArray.from_buffers(pa.binary(), len(at) - 1, [None, pa.py_buffer(at), data])


def _lists(pieces: Pieces) -> pa.ListArray:
    columns = [pa.array(array(numbers).astype(np.int32)) for numbers in (pieces.offset, pieces.length)]
    inner = pa.StructArray.from_arrays(columns, fields=list(frames.SPAN))
    return pa.ListArray.from_arrays(pa.array(array(pieces.left_at).astype(np.int32)), inner)


def _replaced(rows: pa.RecordBatch, payload: pa.Array, left_out: pa.Array) -> pa.RecordBatch:
    columns = dict(zip(rows.schema.names, rows.columns, strict=True))
    columns["payload"], columns["left_out"] = payload, left_out
    return pa.RecordBatch.from_arrays(list(columns.values()), schema=rows.schema)


def _opening_bytes(payload: NDArray[np.uint8], at: Ints, offset: vec[i64], first: int) -> Ints:
    """How many first bytes of each payload show that it is TLS: a record header (RFC 8446 5.1), more of an opening. And
    of the first one of a direction that it is HTTP or SSH.
    """
    found = np.zeros(len(at) - 1, np.int64)
    rows = np.flatnonzero(np.diff(at) >= TLS_HEADER_BYTES)
    for name in NAMED:
        named = rows[array(offset)[first + rows] == 0]
        for place, byte in enumerate(name):
            named = named[payload[at[named] + place] == byte]
        found[named] = len(name)
    kind = payload[at[rows]]
    rows = rows[(kind >= 20) & (kind <= 23)]
    rows = rows[(payload[at[rows] + 1] == 3) & (payload[at[rows] + 2] <= 4)]
    length = payload[at[rows] + 3].astype(np.int64) << 8 | payload[at[rows] + 4]
    rows = rows[(length > 0) & (length <= TLS_MOST_BYTES)]
    opens = (array(offset)[first + rows] == 0) & (payload[at[rows]] == 22)
    found[rows] = np.where(opens, TLS_OPENING_BYTES, TLS_HEADER_BYTES)
    return found
