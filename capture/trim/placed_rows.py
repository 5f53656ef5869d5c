"""The rows of one batch by the place of their payload: which of them carry a stretch, and which wait for what.

Knows: where the payload of each row lies in its stream, what of it is to be kept, and up to where streams are decided.
Refuses to know: packets and their columns (pending_rows.py), and why a byte is kept.
Rule: one loop over the rows for what is asked of all of them; what is asked of a stretch begins at its first row.
"""

from __future__ import annotations

from typing import Any, Final, final

from librt.vecs import append, vec
from mypy_extensions import i64

from wirecheck.capture.trim.stream_order import Streams, by_place, by_row, zeros

FAR: Final = 1 << 61
MOST_LOOKED_AT: Final = 4096  # rows that may carry one byte


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
class Waiting:
    """What waits, by stream: its bytes and its oldest time."""

    def __init__(self) -> None:
        self._streams = Streams()
        self.bytes: vec[i64] = vec[i64]()
        self.oldest_ns: vec[i64] = vec[i64]()

    @property
    def streams(self) -> vec[i64]:
        return self._streams.names

    def add(self, stream: i64, length: i64, ts_ns: i64) -> None:
        at = self._streams.place(stream)
        if at == i64(len(self.bytes)):
            self.bytes = append(self.bytes, 0)
            self.oldest_ns = append(self.oldest_ns, ts_ns)
        self.bytes[at] += length
        self.oldest_ns[at] = min(self.oldest_ns[at], ts_ns)


@final
class Frontier:
    """Up to where each open stream is decided; of other streams everything is."""

    def __init__(self, streams: Any, offsets: Any) -> None:
        names: vec[i64] = streams
        decided: vec[i64] = offsets
        self._streams = Streams()
        self._offsets = zeros(i64(len(names)))
        for i in range(i64(len(names))):
            self._offsets[self._streams.place(names[i])] = decided[i]

    def of(self, stream: i64) -> i64:
        at = self._streams.find(stream)
        return FAR if at < 0 else self._offsets[at]


@final
class PlacedRows:
    """Rows in the order they came; `stream` is -1 where a row is of none or waits no more: nothing of it is kept."""

    def __init__(self, stream: Any, offset: Any, length: Any, ts_ns: Any) -> None:
        self.stream: vec[i64] = stream
        self.offset: vec[i64] = offset
        self.length: vec[i64] = length
        self.ts_ns: vec[i64] = ts_ns
        self.kept = Parts()
        self.excluded = Parts()  # of these nothing is kept, whoever says so
        self.longest: i64 = 0
        for i in range(i64(len(self.length))):
            self.longest = max(self.longest, self.length[i])
        self.order = by_place(stream, offset)

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

    def undecided(self, frontier: Frontier, first: i64, waiting: Waiting) -> i64:
        """The first row, from `first` on, that may carry something worth keeping; all such are added to `waiting`."""
        streams, offset, length = self.stream, self.offset, self.length
        count = i64(len(streams))
        found = count
        last: i64 = -1
        decided: i64 = FAR
        for r in range(first, count):
            stream = streams[r]
            if stream < 0:
                continue
            if stream != last:
                last = stream
                decided = frontier.of(stream)
            if offset[r] + length[r] > decided:
                found = min(found, r)
                waiting.add(stream, length[r], self.ts_ns[r])
        return found

    def give_up_waiting(self, frontier: Frontier, first: i64, tired: Any) -> Parts:
        """Rows from `first` on that wait in these streams wait for nothing any more: (stream, their end, bytes)."""
        names, gone = Streams(), Parts()
        waiting: vec[i64] = tired
        for k in range(i64(len(waiting))):
            names.place(waiting[k])
        for r in range(first, i64(len(self.stream))):
            stream, end = self.stream[r], self.offset[r] + self.length[r]
            if stream >= 0 and names.find(stream) >= 0 and end > frontier.of(stream):
                gone.add(stream, end, self.length[r])
                self.stream[r] = -1
        self._forget_given_up(i64(len(gone)))
        return gone

    def give_up_before(self, stream: i64, end: i64) -> None:
        """Rows of a stream that begin before `end` wait for nothing."""
        gone: i64 = 0
        at = self._first(stream, -1)
        for i in range(at, i64(len(self.order))):
            row = self.order[i]
            if self.stream[row] != stream or self.offset[row] >= end:
                break
            self.stream[row] = -1
            gone += 1
        self._forget_given_up(gone)

    def _forget_given_up(self, gone: i64) -> None:
        if gone:
            left = zeros(i64(len(self.order)) - gone)
            at: i64 = 0
            for i in range(i64(len(self.order))):
                if self.stream[self.order[i]] >= 0:
                    left[at] = self.order[i]
                    at += 1
            self.order = left

    def carrier(self, stream: i64, at: i64, left_at: Any) -> i64:
        """The first row that carries this byte of a stream and lacks nothing (`left_at`); -1 if none does."""
        whole: vec[i64] = left_at
        place = self._first(stream, at - self.longest)
        for i in range(place, min(i64(len(self.order)), place + MOST_LOOKED_AT)):  # most often the first one decides
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
