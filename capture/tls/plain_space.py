"""Where the plain bytes of one direction stand: at the places of their ciphertext, overhead between them.

Knows: offsets on the wire, the bytes there as they were and as they are plain, which of them are overhead, and where a
plain byte stands once overhead is left aside.
Refuses to know: records and keys; how rows look.
Rule: a place is decided once, in order. What nobody waits for any more is forgotten (`forget`), and what comes of it
later has no plain bytes.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import NamedTuple


class Span(NamedTuple):
    """Bytes of the wire that are none of the stream's; or, not `known`, of which nobody can tell how many are."""

    begin: int
    length: int
    known: bool

    @property
    def end(self) -> int:
        return self.begin + self.length


@dataclass(slots=True)
class Run:
    """Bytes that were seen without a gap between them."""

    begin: int
    wire: bytearray
    plain: bytearray


class PlainSpace:
    """One direction; offsets count as the follower's do."""

    def __init__(self, begin: int) -> None:
        self._begin = self.decided = begin
        """Up to here it is known what the bytes are."""
        self._spans: list[Span] = []
        self._begins: list[int] = []
        self._passed: list[int] = []  # overhead up to the end of each span
        self._passed_before = 0  # overhead up to the first span
        self._runs: list[Run] = []

    # --- what the records say

    def see(self, begin: int, data: bytes) -> None:
        """Bytes that are next on the wire."""
        if self._runs and self._runs[-1].begin + len(self._runs[-1].wire) == begin:
            self._runs[-1].wire += data
            self._runs[-1].plain += bytes(len(data))
        else:
            self._runs.append(Run(begin, bytearray(data), bytearray(len(data))))

    def put(self, begin: int, content: bytes) -> None:
        """The plain bytes from here on."""
        run = self._runs[self._run_at(begin)]
        at = begin - run.begin
        run.plain[at : at + len(content)] = content
        self.decided = begin + len(content)

    def overhead(self, upto: int) -> None:
        self._pass(upto, known=True)

    def unsure(self, upto: int) -> None:
        self._pass(upto, known=False)

    def unseen(self, upto: int) -> None:
        """A gap."""
        self.decided = max(self.decided, upto)

    def _pass(self, upto: int, *, known: bool) -> None:
        begin = self.decided
        if upto <= begin:
            return
        passed = upto - begin if known else 0
        last = self._spans[-1] if self._spans else None
        if last is not None and last.end == begin and last.known == known:
            self._spans[-1] = Span(last.begin, last.length + upto - begin, known)
            self._passed[-1] += passed
        else:
            self._spans.append(Span(begin, upto - begin, known))
            self._begins.append(begin)
            self._passed.append((self._passed[-1] if self._passed else self._passed_before) + passed)
        self.decided = upto

    # --- what rows ask

    def place(self, offset: int) -> int:
        """Where what stands here on the wire stands in the plain stream."""
        if offset <= self._begin:
            return offset
        i = bisect_right(self._begins, offset) - 1
        if i < 0:
            return offset - self._passed_before
        span = self._spans[i]
        beyond = span.end - offset if span.known and offset < span.end else 0
        return offset - self._passed[i] + beyond

    def spans(self, begin: int, end: int) -> list[Span]:
        """Those within [begin, end), cut to it and counted from there."""
        found: list[Span] = []
        i = max(bisect_right(self._begins, begin) - 1, 0)
        for k in range(i, len(self._spans)):  # a slice would copy all that wait
            span = self._spans[k]
            if span.begin >= end:
                break
            first, last = max(span.begin, begin), min(span.end, end)
            if first < last:
                found.append(Span(first - begin, last - first, span.known))
        return found

    def bytes_of(self, begin: int, wire: bytes) -> memoryview | None:
        """Plain bytes in the place of these; None where others were seen there first, or nobody remembers."""
        i = self._run_at(begin)
        if i < 0:
            return None
        run, end = self._runs[i], begin + len(wire)
        at = begin - run.begin
        if end > self.decided or run.wire[at : at + len(wire)] != wire:
            return None
        return memoryview(bytes(run.plain[at : at + len(wire)]))

    def _run_at(self, offset: int) -> int:
        return bisect_right(self._runs, offset, key=lambda run: run.begin) - 1

    def forget(self, upto: int) -> None:
        """Nobody waits for what lies before this offset, if it is decided."""
        upto = min(upto, self.decided)
        while self._runs and self._runs[0].begin + len(self._runs[0].wire) <= upto:
            del self._runs[0]
        if self._runs and self._runs[0].begin < upto:
            run = self._runs[0]
            gone = upto - run.begin
            del run.wire[:gone], run.plain[:gone]
            run.begin = upto
        gone = 0
        while gone < len(self._spans) and self._spans[gone].end <= upto:
            gone += 1
        if gone:
            self._passed_before = self._passed[gone - 1]
            del self._spans[:gone], self._begins[:gone], self._passed[:gone]
