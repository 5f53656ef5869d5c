"""Rows that wait until it is known which of their bytes are kept, and what they are then.

Knows: where the payload of each row lies in its stream, which stretches of it are kept, how a row looks without the
rest. Refuses to know: why a byte is kept, when a row is decided.
Rule: a byte that no stretch names is left out, and the length of what is left out stays. Rows that carry a stretch
again keep it too if they wait at the same time, and nothing if they come later.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from wirecheck.capture import frames
from wirecheck.capture.trim.overlap_conflicts import Carried, conflicts, without
from wirecheck.capture.trim.stream_order import by_place, by_row
from wirecheck.decode.compiled import cached_njit
from wirecheck.decode.connection.segments import distinct
from wirecheck.decode.copying import copy

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from wirecheck.capture.trim.may_be_kept import Stretches
    from wirecheck.decode.connection.places import Placed
    from wirecheck.decode.connection.segments import Segments
    from wirecheck.decode.wire import Ints

FAR = 1 << 62
MOST_LOOKED_AT = 4096  # rows that may carry one byte
TLS_HEADER_BYTES, TLS_OPENING_BYTES = 5, 16


@dataclass(slots=True)
class Chunk:
    """Rows of one batch; `taken` of them have left."""

    rows: pa.RecordBatch
    segments: Segments | None
    """None: marks, which wait only for their turn."""
    stream: Ints
    """-1: of no stream, nothing of it is kept."""
    offset: Ints
    names: Ints
    """The streams, -1 first."""
    index: NDArray[np.int32]
    """By row: which of these."""
    order: Ints
    """Rows by stream and offset."""
    longest: int
    taken: int = 0
    _marked: list[Any] = field(default_factory=list)
    _excluded: list[Any] = field(default_factory=list)
    carried: Carried | None = None
    """All rows, those that were given up too."""

    @classmethod
    def of(cls, rows: pa.RecordBatch, segments: Segments, placed: Placed) -> Chunk:
        there = (placed.offset >= 0) & (segments.payload_len > 0)
        stream = np.where(there, 2 * placed.serial + placed.direction, -1)
        offset = placed.offset.copy()
        order, longest = by_place(stream, offset), int(segments.payload_len.max(initial=0))
        carried = Carried(stream.copy(), offset, order, segments.payload, segments.payload_at, longest)
        names, index = distinct(np.append(-1, stream))
        return cls(rows, segments, stream, offset, names, index[1:], order, longest, carried=carried)

    @classmethod
    def of_marks(cls, rows: pa.RecordBatch) -> Chunk:
        none = np.full(rows.num_rows, -1, np.int64)
        return cls(rows, None, none, none, none[:1], np.zeros(len(none), np.int32), none[:0], 0)

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    @property
    def ts_ns(self) -> Ints:
        ts_ns: Ints = np.zeros(len(self), np.int64) if self.segments is None else self.segments.ts_ns
        return ts_ns

    @property
    def oldest_ns(self) -> int:
        """Time of the oldest row that has not left."""
        return int(self.rows.column("ts_ns").to_numpy()[self.taken :].min())

    @property
    def length(self) -> Ints:
        return np.zeros(len(self), np.int64) if self.segments is None else self.segments.payload_len

    def undecided(self, decided: Decided) -> Ints:
        """Rows that still may carry something worth keeping."""
        if self.segments is None:
            return self.order
        found: Ints = _undecided(self.index, self.offset, self.length, decided.of(self.names), self.taken)
        return found

    def mark(self, kept: Stretches) -> None:
        """These stretches of streams are kept, in every row here that carries any of them. Sorted by stream, begin."""
        if len(self.order) and len(kept.stream):
            found = _carried(self.stream, self.offset, self.length, self.order, self.longest, *kept)
            if len(found):
                self._marked.append(found)

    def compare(self, earlier: Iterable[Chunk]) -> None:
        """What rows here carry again with other bytes than earlier rows, here or there, is not kept of them."""
        if self.carried is not None:
            for chunk in (self, *earlier):
                if chunk.carried is not None:
                    self._excluded.append(conflicts(chunk.carried, self.carried))

    def give_up(self, rows: Ints) -> None:
        """These rows wait for nothing any more."""
        self.stream[rows], self.index[rows] = -1, 0
        self.order = self.order[self.stream[self.order] >= 0]

    def read(self, stream: int, at: int, count: int) -> bytes:
        """As many of these bytes of a stream as one row here has in a piece."""
        s = self.segments
        if s is None or not len(self.order):
            return b""
        place = _first(self.stream, self.offset, self.order, stream, at - self.longest)
        for row in self.order[place : place + MOST_LOOKED_AT]:  # most often the first one decides
            if self.stream[row] != stream or self.offset[row] > at:
                return b""
            if self.offset[row] + self.length[row] > at and s.left_at[row] == s.left_at[row + 1]:
                begin = int(s.payload_at[row] + at - self.offset[row])
                return s.payload[begin : min(begin + count, int(s.payload_at[row + 1]))].tobytes()
        return b""

    def take(self, upto: int) -> pa.RecordBatch:
        """The rows before `upto` that have not left, with nothing but what is kept."""
        rows, first = self.rows.slice(self.taken, upto - self.taken), self.taken
        self.taken = upto
        s = self.segments
        if s is None or not rows.num_rows:
            return rows
        marked = np.concatenate([np.zeros((0, 3), np.int64), *self._marked])
        marked = without(marked, np.concatenate([np.zeros((0, 3), np.int64), *self._excluded]))
        in_row, place = (np.ascontiguousarray(marked[:, column]) for column in (0, 1))
        marked_at, order = by_row(in_row, place, first, upto)
        kept_at, payload, left_at, left = _trimmed(
            first, upto, marked, marked_at, order, s.payload, s.payload_at, s.left_at, s.left_offset, s.left_length,
            self.length, self.offset,
        )  # fmt: skip
        return _replaced(rows, _binary(kept_at, payload), _lists(left_at, left))


class Decided:
    """Up to where each open stream is decided; of other streams everything is."""

    def __init__(self, opened: Ints) -> None:
        """`opened`: rows of connection, direction, offset."""
        table = opened
        stream = 2 * table[:, 0] + table[:, 1]
        order = np.argsort(stream)
        self.stream: Ints = stream[order]
        self.offset: Ints = table[order, 2]

    def of(self, stream: Ints) -> Ints:
        far = np.full(len(stream), FAR, np.int64)
        if not len(self.stream):
            return far
        place = np.minimum(np.searchsorted(self.stream, stream), len(self.stream) - 1)
        found: Ints = np.where(self.stream[place] == stream, self.offset[place], far)
        return found


def _binary(at: Ints, data: NDArray[np.uint8]) -> pa.BinaryArray:
    return pa.BinaryArray.from_buffers(
        pa.binary(), len(at) - 1, [None, pa.py_buffer(at.astype(np.int32)), pa.py_buffer(data)]
    )


def _lists(at: Ints, spans: Ints) -> pa.ListArray:
    columns = [pa.array(spans[:, k].astype(np.int32)) for k in (0, 1)]
    inner = pa.StructArray.from_arrays(columns, fields=list(frames.SPAN))
    return pa.ListArray.from_arrays(pa.array(at.astype(np.int32)), inner)


def _replaced(rows: pa.RecordBatch, payload: pa.Array, left_out: pa.Array) -> pa.RecordBatch:
    columns = dict(zip(rows.schema.names, rows.columns, strict=True))
    columns["payload"], columns["left_out"] = payload, left_out
    return pa.RecordBatch.from_arrays(list(columns.values()), schema=rows.schema)


@cached_njit
def _undecided(index: NDArray[np.int32], offset: Ints, length: Ints, decided: Ints, first: int) -> Any:
    """Rows from `first` on that end behind what is decided of their streams; of no stream (0) everything is."""
    found = np.empty(len(index) - first, np.int64)
    count = 0
    for r in range(first, len(index)):
        if index[r] > 0 and offset[r] + length[r] > decided[index[r]]:
            found[count] = r
            count += 1
    return found[:count].copy()


@cached_njit
def _first(row_stream: Ints, row_offset: Ints, order: Ints, stream: int, low: int) -> Any:
    """Place of the first row of a stream behind an offset."""
    first, high = 0, len(order)
    while first < high:
        middle = (first + high) // 2
        r = order[middle]
        if row_stream[r] < stream or (row_stream[r] == stream and row_offset[r] <= low):
            first = middle + 1
        else:
            high = middle
    return first


@cached_njit
def _carried(  # noqa: PLR0917 -- jitted kernels take arrays one by one
    row_stream: Ints, row_offset: Ints, length: Ints, order: Ints, longest: int, stream: Ints, begin: Ints, end: Ints
) -> Any:
    """(row, begin, end) in payloads of every stretch in every row that carries some of it."""
    room = 2 * len(stream) + 16
    found = np.empty((room, 3), np.int64)
    count, first = 0, 0
    for k in range(len(stream)):
        low = begin[k] - longest
        if k == 0 or stream[k] != stream[k - 1] or begin[k] < begin[k - 1]:
            first = _first(row_stream, row_offset, order, stream[k], low)
        while first < len(order) and row_stream[order[first]] == stream[k] and row_offset[order[first]] <= low:
            first += 1
        i = first
        while i < len(order):
            r = order[i]
            if row_stream[r] != stream[k] or row_offset[r] >= end[k]:
                break
            start, stop = max(begin[k], row_offset[r]), min(end[k], row_offset[r] + length[r])
            if start < stop:
                if count == room:
                    room *= 2
                    larger = np.empty((room, 3), np.int64)
                    larger[:count] = found
                    found = larger
                found[count, 0], found[count, 1], found[count, 2] = r, start - row_offset[r], stop - row_offset[r]
                count += 1
            i += 1
    return found[:count]


@cached_njit
def _tls_bytes(payload: NDArray[np.uint8], at: int, end: int, offset: int) -> Any:
    """How much of a payload says that it is TLS: the header of its record (RFC 8446 5.1), more of an opening."""
    if end - at < TLS_HEADER_BYTES or not (20 <= payload[at] <= 23) or payload[at + 1] != 3 or payload[at + 2] > 4:
        return 0
    if not 0 < ((np.int64(payload[at + 3]) << 8) | np.int64(payload[at + 4])) <= (1 << 14) + 2048:
        return 0
    return TLS_OPENING_BYTES if offset == 0 and payload[at] == 22 else TLS_HEADER_BYTES


@cached_njit
def _trimmed(  # noqa: PLR0917 -- jitted kernels take arrays one by one
    first: int, upto: int, marked: Ints, marked_at: Ints, order: Ints, payload: NDArray[np.uint8], payload_at: Ints,
    left_at: Ints, left_offset: Ints, left_length: Ints, length: Ints, offset: Ints,
) -> Any:  # fmt: skip
    """Payloads of these rows without what is not marked: (ends, bytes, ends of lists, spans left out)."""
    kept_at, out_at = np.zeros(upto - first + 1, np.int64), np.zeros(upto - first + 1, np.int64)
    data = np.empty(payload_at[upto] - payload_at[first], np.uint8)
    spans = np.empty((len(order) + (upto - first) + (left_at[upto] - left_at[first]), 2), np.int64)
    used, gaps = 0, 0
    for r in range(first, upto):
        h, h_end, missing, done = left_at[r], left_at[r + 1], 0, 0
        m, m_end, own = marked_at[r - first], marked_at[r - first + 1], 0
        if m == m_end and h == h_end:
            own = min(_tls_bytes(payload, payload_at[r], payload_at[r + 1], offset[r]), length[r])
        while own > 0 or m < m_end:
            a, b = 0, own
            if own == 0:
                a, b = max(marked[order[m], 1], done), marked[order[m], 2]
                m += 1
            own = 0
            while a < b:
                while h < h_end and left_offset[h] + left_length[h] <= a:
                    missing += left_length[h]
                    h += 1
                if h < h_end and left_offset[h] <= a:
                    a = left_offset[h] + left_length[h]
                    continue
                stop = min(b, left_offset[h]) if h < h_end else b
                if a > done:
                    spans[gaps, 0], spans[gaps, 1] = done, a - done
                    gaps += 1
                source = payload_at[r] + a - missing
                copy(payload, source, data, used, stop - a)
                used += stop - a
                done, a = stop, stop
        if done < length[r]:
            spans[gaps, 0], spans[gaps, 1] = done, length[r] - done
            gaps += 1
        kept_at[r - first + 1], out_at[r - first + 1] = used, gaps
    return kept_at, data[:used].copy(), out_at, spans[:gaps].copy()
