"""Rows by their stream and their place in it, without sorting what comes nearly sorted.

Knows: captures show every stream almost in order, so putting rows into the bins of their streams does nearly all.
Refuses to know: what the rows are.
Rule: the same order as np.lexsort((place, stream)), rows that are equal stay as they came, whatever came in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wirecheck.decode.compiled import cached_njit
from wirecheck.decode.connection.segments import distinct

if TYPE_CHECKING:
    from wirecheck.decode.wire import Ints

MOVES_PER_ROW = 16  # beyond that in one stream, sorting is cheaper


def by_place(stream: Ints, place: Ints) -> Ints:
    """Indices of the rows of streams (0 and up) by stream, then place; rows of no stream (-1) are left aside."""
    names, index = distinct(stream)
    rank = np.empty(len(names), np.int64)
    rank[np.argsort(names)] = np.arange(len(names))
    order, sorted_ = _in_bins(index, rank, place)
    if not sorted_:
        order = np.lexsort((place, stream))
    found: Ints = order[np.count_nonzero(stream < 0) :]
    return found


@cached_njit
def _in_bins(index: Ints, rank: Ints, place: Ints) -> Any:
    """(rows by the rank of their stream, then place; False where a stream was too much out of order)."""
    start = np.zeros(len(rank) + 1, np.int64)
    for i in range(len(index)):
        start[rank[index[i]] + 1] += 1
    for k in range(len(rank)):
        start[k + 1] += start[k]
    filled = start[:-1].copy()
    order = np.empty(len(index), np.int64)
    moves = MOVES_PER_ROW * len(index)
    for i in range(len(index)):
        bin_ = rank[index[i]]
        at = filled[bin_]
        filled[bin_] += 1
        while at > start[bin_] and place[order[at - 1]] > place[i]:
            order[at] = order[at - 1]
            at -= 1
            moves -= 1
            if moves < 0:
                return order, False
        order[at] = i
    return order, True


@cached_njit
def by_row(rows: Ints, place: Ints, first: int, upto: int) -> Any:
    """(where each row from `first` up to `upto` begins, indices by row and place) of entries that name rows."""
    start = np.zeros(upto - first + 1, np.int64)
    for i in range(len(rows)):
        if first <= rows[i] < upto:
            start[rows[i] - first + 1] += 1
    for k in range(upto - first):
        start[k + 1] += start[k]
    filled = start[:-1].copy()
    order = np.empty(start[-1], np.int64)
    for i in range(len(rows)):
        if first <= rows[i] < upto:
            row = rows[i] - first
            at = filled[row]
            filled[row] += 1
            while at > start[row] and place[order[at - 1]] > place[i]:
                order[at] = order[at - 1]
                at -= 1
            order[at] = i
    return start, order
