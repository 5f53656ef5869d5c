"""The rows of one batch by their places in streams: which rows carry a stretch, and which carry it with other bytes.

Why a byte is kept is decided elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, final

from librt.vecs import append, extend, vec
from mypy_extensions import i64

if TYPE_CHECKING:
    from collections.abc import Callable


def zeros(count: i64) -> vec[i64]:
    return vec[i64](memoryview(bytes(8 * count)).cast("q"))


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


MOST_CARRIERS: Final = 4096  # rows that may carry one byte


@final
class Parts:
    """(row, begin, end) in the payloads of rows, in the order they were found."""

    def __init__(self) -> None:
        self.row: vec[i64] = vec[i64]()
        self.begin: vec[i64] = vec[i64]()
        self.end: vec[i64] = vec[i64]()

    def add(self, row: i64, begin: i64, end: i64) -> None:
        self.row = append(self.row, row)
        self.begin = append(self.begin, begin)
        self.end = append(self.end, end)

    def __len__(self) -> int:
        return len(self.row)


@final
class PlacedRows:
    """Rows in the order they came; `stream` is -1 where a row is of none or was given up: nothing of it is kept."""

    def __init__(self, stream: Any, offset: Any, length: Any, order: Any) -> None:
        """`order`: the rows of streams by stream, then offset."""
        self.stream: vec[i64] = stream
        self.offset: vec[i64] = offset
        self.length: vec[i64] = length
        self.order: vec[i64] = order
        self.kept = Parts()
        self.excluded = Parts()  # of these nothing is kept, whatever is marked
        self.longest: i64 = 0
        for i in range(i64(len(self.length))):
            self.longest = max(self.longest, self.length[i])

    def mark(self, names: Any, begins: Any, ends: Any) -> None:
        """These stretches of streams, sorted by stream and begin, are kept in every row that carries any of them."""
        stream: vec[i64] = names
        begin: vec[i64] = begins
        end: vec[i64] = ends
        order, streams, offset, length, kept = self.order, self.stream, self.offset, self.length, self.kept
        rows = i64(len(order))
        if rows == 0:
            return
        first: i64 = 0
        for k in range(i64(len(stream))):
            name, low = stream[k], begin[k] - self.longest
            if k == 0 or name != stream[k - 1] or begin[k] < begin[k - 1]:
                first = self._first(name, low)
            while first < rows and streams[order[first]] == name and offset[order[first]] <= low:
                first += 1
            i = first
            while i < rows:
                r = order[i]
                if streams[r] != name or offset[r] >= end[k]:
                    break
                start, stop = max(begin[k], offset[r]), min(end[k], offset[r] + length[r])
                if start < stop:
                    kept.add(r, start - offset[r], stop - offset[r])
                i += 1

    def give_up(self, rows: Any) -> None:
        """Nothing of these rows is kept any more; each is of a stream."""
        gone: vec[i64] = rows
        for i in range(i64(len(gone))):
            self.stream[gone[i]] = -1
        left = vec[i64]()
        for i in range(i64(len(self.order))):
            if self.stream[self.order[i]] >= 0:
                left = append(left, self.order[i])
        self.order = left

    def carrier(self, stream: i64, at: i64, left_at: Any) -> i64:
        """The first row that carries this byte of a stream and lacks nothing (`left_at`); -1 if none does."""
        whole: vec[i64] = left_at
        place = self._first(stream, at - self.longest)
        for i in range(place, min(i64(len(self.order)), place + MOST_CARRIERS)):  # most often the first one decides
            row = self.order[i]
            if self.stream[row] != stream or self.offset[row] > at:
                return -1
            if self.offset[row] + self.length[row] > at and whole[row] == whole[row + 1]:
                return row
        return -1

    def _first(self, stream: i64, low: i64) -> i64:
        """Place of the first row of a stream behind an offset."""
        order = self.order
        first: i64 = 0
        high = i64(len(order))
        while first < high:
            middle = (first + high) >> 1
            r = order[middle]
            if self.stream[r] < stream or (self.stream[r] == stream and self.offset[r] <= low):
                first = middle + 1
            else:
                high = middle
        return first


def without(marked: Parts, excluded: Parts) -> Parts:
    """Parts less those excluded."""
    if len(excluded) == 0 or len(marked) == 0:
        return marked
    last: i64 = 0
    for i in range(i64(len(excluded.row))):
        last = max(last, excluded.row[i])
    start, order = by_row(excluded.row, excluded.begin, 0, last + 1)
    found = Parts()
    for m in range(i64(len(marked.row))):
        row, begin, end = marked.row[m], marked.begin[m], marked.end[m]
        if row <= last:
            for k in range(start[row], start[row + 1]):
                x = order[k]
                if begin < excluded.end[x] and excluded.begin[x] < end:
                    if begin < excluded.begin[x]:
                        found.add(row, begin, excluded.begin[x])
                    begin = excluded.end[x]
                    if begin >= end:
                        break
        if begin < end:
            found.add(row, begin, end)
    return found


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
