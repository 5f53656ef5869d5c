"""Pieces of rows and messages that are kept, and the spans between them that are redacted. Lengths never change.

A piece is a place, never bytes. What no piece names is redacted.
"""

from __future__ import annotations

from typing import Any, final

from librt.vecs import append, vec
from mypy_extensions import i64

from wirecheck.capture.trim.placed_rows import Parts, by_row, zeros


@final
class Payloads:
    """Of the rows of a batch: n+1 ends in their bytes, and what was left out before."""

    def __init__(self, at: Any, length: Any, left_at: Any, left_offset: Any, left_length: Any) -> None:
        self.at: vec[i64] = at
        self.length: vec[i64] = length  # on the wire
        self.left_at: vec[i64] = left_at
        self.left_offset: vec[i64] = left_offset
        self.left_length: vec[i64] = left_length


@final
class Pieces:
    """Pieces of the bytes of rows, and spans that are left out.

    `at` and `left_at` are n+1 offsets by row: into the pieces' bytes, and into the spans.
    """

    def __init__(self, rows: i64) -> None:
        self.at: vec[i64] = zeros(rows + 1)
        self.left_at: vec[i64] = zeros(rows + 1)
        self.edges: vec[i64] = vec[i64]()  # begin and end of each piece; adjacent ones are one, over rows too
        self._kept: i64 = 0
        self.offset: vec[i64] = vec[i64]()
        self.length: vec[i64] = vec[i64]()

    def keep(self, begin: i64, end: i64) -> None:
        last = i64(len(self.edges)) - 1
        if last >= 0 and self.edges[last] == begin:
            self.edges[last] = end
        else:
            self.edges = append(append(self.edges, begin), end)
        self._kept += end - begin

    def leave_out(self, offset: i64, length: i64) -> None:
        self.offset = append(self.offset, offset)
        self.length = append(self.length, length)

    def end_row(self, row: i64) -> None:
        self.at[row + 1] = self._kept
        self.left_at[row + 1] = i64(len(self.offset))


def trimmed(first: i64, upto: i64, marked: Parts, payloads: Payloads, opening: Any) -> Pieces:
    """The rows from `first` up to `upto`. Rows without a mark keep their first `opening` bytes (by row): TLS headers,
    names of protocols.
    """
    marked_at, order = by_row(marked.row, marked.begin, first, upto)
    pieces = Pieces(upto - first)
    row = _Row(pieces, payloads)
    begins: vec[i64] = opening
    for r in range(first, upto):
        m, m_end = marked_at[r - first], marked_at[r - first + 1]
        row.begin(r)
        if m == m_end and row.is_whole:
            row.keep(0, min(begins[r - first], payloads.length[r]))
        while m < m_end:
            row.keep(marked.begin[order[m]], marked.end[order[m]])
            m += 1
        row.close()
        pieces.end_row(r - first)
    return pieces


@final
class _Row:
    """What is kept of the row at hand, stretch by stretch."""

    def __init__(self, pieces: Pieces, payloads: Payloads) -> None:
        self._pieces = pieces
        self._payloads = payloads
        self.is_whole = True
        self._at: i64 = 0
        self._length: i64 = 0
        self._left: i64 = 0  # the next span that was left out before
        self._left_end: i64 = 0
        self._missing: i64 = 0  # bytes of those before it
        self._done: i64 = 0  # what is kept is decided up to here

    def begin(self, row: i64) -> None:
        payloads = self._payloads
        self._at = payloads.at[row]
        self._length = payloads.length[row]
        self._left = payloads.left_at[row]
        self._left_end = payloads.left_at[row + 1]
        self._missing = 0
        self._done = 0
        self.is_whole = self._left == self._left_end

    def keep(self, begin: i64, end: i64) -> None:
        payloads = self._payloads
        at = max(begin, self._done)
        while at < end:
            h = self._left
            stop = end
            if h < self._left_end:
                offset, behind = payloads.left_offset[h], payloads.left_offset[h] + payloads.left_length[h]
                if behind <= at:
                    self._missing += payloads.left_length[h]
                    self._left = h + 1
                    continue
                if offset <= at:
                    at = behind
                    continue
                stop = min(end, offset)
            if at > self._done:
                self._pieces.leave_out(self._done, at - self._done)
            source = self._at + at - self._missing
            self._pieces.keep(source, source + stop - at)
            self._done = stop
            at = stop

    def close(self) -> None:
        if self._done < self._length:
            self._pieces.leave_out(self._done, self._length - self._done)


@final
class MessageSpans:
    """Messages by the places of their sizes in their streams: how much of each may be kept, and spans that may not."""

    def __init__(self, at: Any, upto: Any, span_at: Any, offset: Any, length: Any) -> None:
        self.at: vec[i64] = at
        self.upto: vec[i64] = upto
        self.span_at: vec[i64] = span_at
        self.offset: vec[i64] = offset
        self.length: vec[i64] = length


def between(messages: Any, spans: MessageSpans) -> Parts:
    """What lies between the spans, sizes included: (message, begin and end in its stream), messages in this order."""
    order: vec[i64] = messages
    found = Parts()
    for k in range(i64(len(order))):
        i = order[k]
        begins = spans.at[i] + 4
        here, stop = spans.at[i], begins + spans.upto[i]
        for s in range(spans.span_at[i], spans.span_at[i + 1]):
            until = min(stop, begins + spans.offset[s])
            if until > here:
                found.add(i, here, until)
            here = max(here, begins + spans.offset[s] + spans.length[s])
        if stop > here:
            found.add(i, here, stop)
    return found
