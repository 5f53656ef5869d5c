"""What came of a stream before its time: chunks behind a hole, each byte once.

Knows: overlap, duplicates, bytes for what another agent left out, and how many bytes came again with another value.
Refuses to know: how long a hole is waited for (gaps.py), and what the bytes mean.
Rule: the first bytes seen for an offset stay, whatever comes later; kept bytes win over bytes left out.
"""

from __future__ import annotations

from typing import final

from mypy_extensions import i64

from wirecheck.decode.connection.stream.chunks import BOTH_LEFT_OUT, DATA, GAP, LEFT, OVERHEAD, UNSURE, Chunk, own
from wirecheck.decode.connection.stream.frame import NEVER


@final
class OutOfOrder:
    """Chunks in the order of their offsets, none of them overlapping another."""

    def __init__(self) -> None:
        self.first: Chunk | None = None
        self.last: Chunk | None = None
        self.count: i64 = 0
        self.kept: i64 = 0
        """How many of their bytes we have."""
        self.conflicting: i64 = 0
        """Bytes that came again with another value, since the beginning."""

    def add(self, chunk: Chunk) -> None:
        """A chunk, of bytes that we have or that were left out, as far as it is new."""
        before = self.last
        if before is not None and chunk.begin >= before.end:
            self._link(before, chunk)
            return
        before = None
        there = self.first
        while there is not None and there.begin < chunk.end:
            if chunk.begin < there.begin:
                rest = chunk.split(there.begin)
                self._link(before, chunk)
                chunk = rest
            if chunk.begin < there.end:
                if chunk.end <= there.end:
                    self._overlap(there, chunk)
                    return
                rest = chunk.split(there.end)
                self._overlap(there, chunk)
                chunk = rest
            before = there
            there = there.next
        self._link(before, chunk)

    def append(self, chunk: Chunk) -> None:
        """A chunk that lies behind all others, as it was stored."""
        chunk.next = None
        if self.last is None:
            self.first = chunk
        else:
            self.last.next = chunk
        self.last = chunk
        self.count += 1
        if chunk.kind == DATA:
            self.kept += chunk.end - chunk.begin

    def pop(self) -> None:
        """The first chunk has become part of the stream."""
        chunk = self.first
        if chunk is None:
            return
        self.first = chunk.next
        if chunk.next is None:
            self.last = None
        self.count -= 1
        if chunk.kind == DATA:
            self.kept -= chunk.end - chunk.begin

    def move_down(self, count: i64) -> None:
        """Overhead before all of them was passed over: their offsets are less by so much."""
        chunk = self.first
        while chunk is not None:
            chunk.begin -= count
            chunk.end -= count
            chunk.packet_begin -= count
            chunk.packet_end -= count
            chunk = chunk.next

    def clear(self) -> None:
        self.first, self.last = None, None
        self.count, self.kept = 0, 0

    def keep(self, payload: bytes) -> None:
        """The call ends: the bytes leave its payload."""
        own(self.first, payload, NEVER)

    def _link(self, before: Chunk | None, chunk: Chunk) -> None:
        """A new chunk, behind the chunk `before`."""
        if before is None:
            chunk.next = self.first
            self.first = chunk
        else:
            chunk.next = before.next
            before.next = chunk
        if chunk.next is None:
            self.last = chunk
        self.count += 1
        if chunk.kind == DATA:
            self.kept += chunk.end - chunk.begin

    def _overlap(self, there: Chunk, chunk: Chunk) -> None:
        """The chunk lies within one that is there: the same bytes again, others, or bytes for what was left out."""
        begin, end = chunk.begin, chunk.end
        if there.kind == DATA:
            if chunk.kind == DATA:
                at = there.start + begin - there.begin
                self.conflicting += differing(there.data, at, chunk.data, chunk.start, end - begin)
            return
        if there.kind == OVERHEAD or (is_open(chunk) and there.left_by | chunk.left_by == there.left_by):
            return
        part = self._part(there, begin, end)
        if is_open(chunk):
            part.left_by |= chunk.left_by
            part.kind = min(part.kind, chunk.kind)  # who left it out knew how long it is
            return
        part.kind, part.data, part.start = chunk.kind, chunk.data, chunk.start
        part.stamp_as(chunk)
        if chunk.kind == DATA:
            self.kept += end - begin

    def _part(self, chunk: Chunk, begin: i64, end: i64) -> Chunk:
        """[begin, end) of the chunk as a chunk of its own."""
        if end < chunk.end:
            self._split(chunk, end)
        return self._split(chunk, begin) if begin > chunk.begin else chunk

    def _split(self, chunk: Chunk, at: i64) -> Chunk:
        rest = chunk.split(at)
        self.count += 1
        if self.last is chunk:
            self.last = rest
        return rest


def is_open(chunk: Chunk) -> bool:
    """Whether another agent may know more of it: kept bytes win over bytes left out."""
    return chunk.kind in (LEFT, UNSURE)


def unsure_before(chunk: Chunk | None, upto: i64) -> bool:
    """Whether nobody knows how much of the stream lies before this offset: where TLS was undone, gaps are unsure."""
    while chunk is not None and chunk.begin < upto:
        if chunk.kind in (UNSURE, GAP):
            return True
        chunk = chunk.next
    return False


def left_out_for_good(chunk: Chunk) -> bool:
    """Whether nobody is left who may still show it."""
    return not is_open(chunk) or chunk.left_by == BOTH_LEFT_OUT


def differing(one: bytes, at: i64, other: bytes, begin: i64, count: i64) -> i64:
    """How many bytes differ."""
    total: i64 = 0
    if one[at : at + count] == other[begin : begin + count]:
        return total
    for k in range(count):
        if one[at + k] != other[begin + k]:
            total += 1
    return total
