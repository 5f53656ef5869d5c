"""Bytes that came again with other values: which packets disagree with what came before them.

Knows: where packets of one stream overlap, and how to compare what they carry there.
Refuses to know: what is kept of a packet, and why.
Rule: the first bytes seen for a place stay, as in following; what came later and differs is never kept, since what is
known of the first says nothing about it. This is the one place where that is decided for trimming.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, final

from librt.vecs import extend, vec
from mypy_extensions import i64

from wirecheck.capture.trim.placed_rows import Parts, PlacedRows  # noqa: TC001 -- compiled: as above

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_LOOKED_AT: Final = 512  # packets that may overlap one; of one that more may overlap, nothing is kept


@final
class Carried:
    """Packets of one batch with the place of their payload; of what was left out of it nothing is compared."""

    def __init__(self, rows: PlacedRows, at: Any, load: Callable[[], bytes]) -> None:
        """As the rows are now, those that are given up later too; `at`: n+1 offsets into what `load` gives."""
        self.stream = extend(vec[i64](), rows.stream)
        self.offset = rows.offset
        self.order = rows.order
        self.at: vec[i64] = at
        self.longest: i64 = rows.longest  # on the wire
        self._load = load
        self._bytes = b""  # copied only where packets overlap, which few do

    def size(self, row: i64) -> i64:
        return self.at[row + 1] - self.at[row]

    def payloads(self) -> bytes:
        if not self._bytes:
            self._bytes = self._load()
        return self._bytes


def conflicts(old: Carried, new: Carried, found: Parts) -> None:
    """Add (packet of `new`, begin, end) where it differs from one of `old`; both may be the same batch."""
    if old is new:
        _within(new, found)
    else:
        _against(old, new, found)


def _note_difference(old: Carried, i: i64, new: Carried, k: i64, found: Parts) -> None:
    """Of packet k from the first byte that differs from packet i on, as far as they overlap."""
    offset_i, offset_k = old.offset[i], new.offset[k]
    begin = max(offset_i, offset_k)
    end = min(offset_i + old.size(i), offset_k + new.size(k))
    if begin >= end:
        return
    first, second = old.payloads(), new.payloads()
    at_i, at_k, length = old.at[i] + begin - offset_i, new.at[k] + begin - offset_k, end - begin
    if first[at_i : at_i + length] == second[at_k : at_k + length]:
        return
    for place in range(length):
        if first[at_i + place] != second[at_k + place]:
            found.add(k, begin + place - offset_k, end - offset_k)
            return


def _within(batch: Carried, found: Parts) -> None:
    order, stream, offset, longest = batch.order, batch.stream, batch.offset, batch.longest
    reach: i64 = 0
    for k in range(i64(len(order))):
        row = order[k]
        if k == 0 or stream[row] != stream[order[k - 1]]:
            reach = offset[row]
        if offset[row] < reach:
            j = k - 1
            while j >= 0 and stream[order[j]] == stream[row] and offset[order[j]] + longest > offset[row]:
                if k - j > MOST_LOOKED_AT:
                    found.add(row, 0, longest)
                    break
                first, later = min(order[j], row), max(order[j], row)
                _note_difference(batch, first, batch, later, found)
                j -= 1
        reach = max(reach, offset[row] + batch.size(row))


def _against(old: Carried, new: Carried, found: Parts) -> None:
    """Stream by stream, both in order."""
    i: i64 = 0
    k: i64 = 0
    while i < i64(len(old.order)) and k < i64(len(new.order)):
        name, name2 = old.stream[old.order[i]], new.stream[new.order[k]]
        i_end, k_end = _run_end(old, i), _run_end(new, k)
        if name < name2:
            i = i_end
        elif name > name2:
            k = k_end
        else:
            _against_run(old, i, i_end, new, k, k_end, found)
            i, k = i_end, k_end


def _run_end(batch: Carried, at: i64) -> i64:
    """Where the rows of the stream that begins there end in the order."""
    name = batch.stream[batch.order[at]]
    while at < i64(len(batch.order)) and batch.stream[batch.order[at]] == name:
        at += 1
    return at


def _against_run(  # noqa: PLR0917 -- compiled: numbers as arguments cost nothing, an object for them would
    old: Carried, first: i64, last: i64, new: Carried, k: i64, k_end: i64, found: Parts
) -> None:
    """The rows of one stream."""
    reach: i64 = 0
    for j in range(first, last):
        reach = max(reach, old.offset[old.order[j]] + old.size(old.order[j]))
    for at in range(k, k_end):
        row = new.order[at]
        offset = new.offset[row]
        while first < last and old.offset[old.order[first]] + old.longest <= offset:
            first += 1
        end = offset + new.size(row) if offset < reach else 0
        for j in range(first, last):
            if old.offset[old.order[j]] >= end:
                break
            if j - first > MOST_LOOKED_AT:
                found.add(row, 0, new.longest)
                break
            _note_difference(old, old.order[j], new, row, found)
