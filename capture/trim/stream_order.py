"""Rows by their stream and their place in it, without sorting what comes nearly sorted.

Knows: captures show every stream almost in order, so putting rows into the bins of their streams does nearly all.
Refuses to know: what the rows are.
Rule: the same order as np.lexsort((place, stream)), rows that are equal stay as they came, whatever came in.
"""

from __future__ import annotations

from typing import Any, Final, final

from librt.vecs import append, extend, vec
from mypy_extensions import i64

MOVES_PER_ROW: Final = 16  # beyond that in one stream, sorting is cheaper
_ROOM: Final = 1 << 8
_SLOTS_PER_NAME: Final = 4


def zeros(count: i64) -> vec[i64]:
    return vec[i64](memoryview(bytes(8 * count)).cast("q"))


@final
class Streams:
    """Streams by first appearance."""

    def __init__(self) -> None:
        self.count: i64 = 0
        self.names: vec[i64] = vec[i64]()
        self._at: vec[i64] = zeros(_SLOTS_PER_NAME * _ROOM)  # by slot: 1 + place of a name, 0 where it is free
        self._mask: i64 = _SLOTS_PER_NAME * _ROOM - 1

    def place(self, stream: i64) -> i64:
        """Of one that may be new."""
        slot = self._slot(stream)
        found = self._at[slot]
        if found != 0:
            return found - 1
        if _SLOTS_PER_NAME * self.count > self._mask:
            self._grow()
            slot = self._slot(stream)
        self.names = append(self.names, stream)
        self.count += 1
        self._at[slot] = self.count
        return self.count - 1

    def find(self, stream: i64) -> i64:
        """Its place, or -1."""
        return self._at[self._slot(stream)] - 1

    def _slot(self, stream: i64) -> i64:
        """Where it is, or would be."""
        at, names, mask = self._at, self.names, self._mask
        slot = ((((stream ^ (stream >> 31)) & 0x7FFFFFFF) * 0x9E3779B1) >> 20) & mask
        while at[slot] != 0 and names[at[slot] - 1] != stream:
            slot = (slot + 1) & mask
        return slot

    def _grow(self) -> None:
        self._at = zeros(8 * (self._mask + 1))
        self._mask = 8 * (self._mask + 1) - 1
        for place in range(self.count):
            self._at[self._slot(self.names[place])] = place + 1


def by_place(names: Any, places: Any) -> vec[i64]:
    """Indices of the rows of streams (0 and up) by stream, then place; rows of no stream (-1) are left aside."""
    stream: vec[i64] = names
    place: vec[i64] = places
    streams = Streams()
    count = i64(len(stream))
    index = zeros(count)
    last: i64 = -1
    last_at: i64 = -1
    for i in range(count):
        if stream[i] != last:
            last = stream[i]
            last_at = streams.place(last) if last >= 0 else -1
        index[i] = last_at
    start = _starts(streams, index)
    order = zeros(start[streams.count])
    if not _insert(index, place, start, order):
        _sort(index, place, start, order)
    return order


def _starts(streams: Streams, index: vec[i64]) -> vec[i64]:
    """Of the bins, by place of their streams; bins lie in the order of the names. At the end how many rows there are.

    The bin of streams.names[k] begins at start[k].
    """
    sizes = zeros(streams.count)
    for i in range(i64(len(index))):
        if index[i] >= 0:
            sizes[index[i]] += 1
    start = zeros(streams.count + 1)
    total: i64 = 0
    for _, name in sorted([(streams.names[k], k) for k in range(streams.count)]):
        start[name] = total
        total += sizes[name]
    start[streams.count] = total
    return start


def _insert(index: vec[i64], place: vec[i64], start: vec[i64], order: vec[i64]) -> bool:
    """False: a stream was too much out of order."""
    filled = vec[i64]()
    filled = extend(filled, start)
    count = i64(len(index))
    moves = MOVES_PER_ROW * count
    for i in range(count):
        bin_ = index[i]
        if bin_ < 0:
            continue
        at = filled[bin_]
        filled[bin_] = at + 1
        here = place[i]
        while at > start[bin_] and place[order[at - 1]] > here:
            order[at] = order[at - 1]
            at -= 1
            moves -= 1
            if moves < 0:
                return False
        order[at] = i
    return True


def _sort(index: vec[i64], place: vec[i64], start: vec[i64], order: vec[i64]) -> None:
    rows = [(start[index[i]], place[i], i) for i in range(i64(len(index))) if index[i] >= 0]
    rows.sort()
    for at, (_, _, row) in enumerate(rows):
        order[at] = row


def by_row(rows: vec[i64], place: vec[i64], first: i64, upto: i64) -> tuple[vec[i64], vec[i64]]:
    """(where each row from `first` up to `upto` begins, indices by row and place) of entries that name rows."""
    start = zeros(upto - first + 1)
    for i in range(i64(len(rows))):
        if first <= rows[i] < upto:
            start[rows[i] - first + 1] += 1
    for k in range(upto - first):
        start[k + 1] += start[k]
    filled = vec[i64]()
    filled = extend(filled, start)
    order = zeros(start[upto - first])
    for i in range(i64(len(rows))):
        if first <= rows[i] < upto:
            row = rows[i] - first
            at = filled[row]
            filled[row] = at + 1
            while at > start[row] and place[order[at - 1]] > place[i]:
                order[at] = order[at - 1]
                at -= 1
            order[at] = i
    return start, order
