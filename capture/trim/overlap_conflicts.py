"""Bytes that came again with other values: which packets disagree with what came before them.

Knows: where packets of one stream overlap, and how to compare what they carry there.
Refuses to know: what is kept of a packet, and why.
Rule: the first bytes seen for a place stay, as in following; what came later and differs is never kept, since what is
known of the first says nothing about it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba import njit

from wirecheck.decode.compiled import cached_njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from wirecheck.decode.wire import Ints

MOST_LOOKED_AT = 512  # packets that may overlap one; of one that more may overlap, nothing is kept


class Carried(NamedTuple):
    """Packets of one batch with the place of their payload; of what was left out of it nothing is compared."""

    stream: Ints
    offset: Ints
    order: Ints
    """By stream and offset; those of no stream are not in it."""
    payload: NDArray[np.uint8]
    at: Ints
    """n+1 offsets into the payload."""
    longest: int
    """Of these payloads."""


def conflicts(old: Carried, new: Carried) -> Ints:
    """(packet of `new`, begin, end) where it differs from one of `old`; both may be the same batch."""
    found: Ints = _within(new) if old is new else _against(old, new)
    return found


def without(marked: Ints, excluded: Ints) -> Ints:
    """Stretches (packet, begin, end) less those excluded."""
    if not len(excluded) or not len(marked):
        return marked
    excluded = excluded[np.lexsort((excluded[:, 1], excluded[:, 0]))]
    found: Ints = _without(marked, excluded)
    return found


@njit
def _difference(old: Any, i: int, new: Any, k: int) -> Any:
    """(begin, end) of the overlap in packet k, if it differs there from packet i; else (0, 0)."""
    _, offset_i, _, payload_i, at_i, _ = old
    _, offset_k, _, payload_k, at_k, _ = new
    begin = max(offset_i[i], offset_k[k])
    end = min(offset_i[i] + at_i[i + 1] - at_i[i], offset_k[k] + at_k[k + 1] - at_k[k])
    for place in range(begin, end):
        if payload_i[at_i[i] + place - offset_i[i]] != payload_k[at_k[k] + place - offset_k[k]]:
            return place - offset_k[k], end - offset_k[k]
    return 0, 0


@njit
def _noted(found: Ints, count: int, row: int, begin: int, end: int) -> Any:
    if count == len(found):
        larger = np.empty((2 * len(found), 3), np.int64)
        larger[: len(found)] = found
        found = larger
    found[count, 0], found[count, 1], found[count, 2] = row, begin, end
    return found


@cached_njit
def _within(batch: Any) -> Any:
    stream, offset, order, _, at, longest = batch
    found, count, reach = np.empty((16, 3), np.int64), 0, 0
    for k in range(len(order)):
        row = order[k]
        if k == 0 or stream[row] != stream[order[k - 1]]:
            reach = offset[row]
        j = k - 1 if offset[row] < reach else -1
        while j >= 0 and stream[order[j]] == stream[row] and offset[order[j]] + longest > offset[row]:
            if k - j > MOST_LOOKED_AT:
                found = _noted(found, count, row, 0, longest)
                count += 1
                break
            first, later = min(order[j], row), max(order[j], row)
            begin, end = _difference(batch, first, batch, later)
            if begin < end:
                found = _noted(found, count, later, begin, end)
                count += 1
            j -= 1
        reach = max(reach, offset[row] + at[row + 1] - at[row])
    return found[:count]


@cached_njit
def _against(old: Any, new: Any) -> Any:
    stream, offset, order, _, at, longest = old
    stream2, offset2, order2, _, at2, longest2 = new
    found, count, i, k = np.empty((16, 3), np.int64), 0, 0, 0
    while i < len(order) and k < len(order2):
        name = stream[order[i]]
        if name < stream2[order2[k]]:
            i += 1
        elif name > stream2[order2[k]]:
            k += 1
        else:
            first, reach = i, 0
            while i < len(order) and stream[order[i]] == name:
                reach = max(reach, offset[order[i]] + at[order[i] + 1] - at[order[i]])
                i += 1
            while k < len(order2) and stream2[order2[k]] == name:
                row = order2[k]
                while first < i and offset[order[first]] + longest <= offset2[row]:
                    first += 1
                end2 = offset2[row] + at2[row + 1] - at2[row] if offset2[row] < reach else 0
                for j in range(first, i):
                    if offset[order[j]] >= end2:
                        break
                    if j - first > MOST_LOOKED_AT:
                        found = _noted(found, count, row, 0, longest2)
                        count += 1
                        break
                    begin, end = _difference(old, order[j], new, row)
                    if begin < end:
                        found = _noted(found, count, row, begin, end)
                        count += 1
                k += 1
    return found[:count]


@cached_njit
def _without(marked: Ints, excluded: Ints) -> Any:
    found, count = np.empty((16, 3), np.int64), 0
    for m in range(len(marked)):
        row, begin, end = marked[m, 0], marked[m, 1], marked[m, 2]
        low, high = 0, len(excluded)
        while low < high:
            middle = (low + high) // 2
            if excluded[middle, 0] < row:
                low = middle + 1
            else:
                high = middle
        while low < len(excluded) and excluded[low, 0] == row and begin < end:
            if begin < excluded[low, 2] and excluded[low, 1] < end:
                if begin < excluded[low, 1]:
                    found = _noted(found, count, row, begin, excluded[low, 1])
                    count += 1
                begin = excluded[low, 2]
            low += 1
        if begin < end:
            found = _noted(found, count, row, begin, end)
            count += 1
    return found[:count]
