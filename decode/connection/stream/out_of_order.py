"""What came of a stream before its time: chunks behind a hole, each byte once.

Knows: overlap, duplicates, bytes for what another agent left out, and how many bytes came again with another value.
Refuses to know: how long a hole is waited for (gaps.py), and what the bytes mean.
Rule: the first bytes seen for an offset stay, whatever comes later; kept bytes win over bytes left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from mypy_extensions import i64

from wirecheck.decode.connection.stream.chunks import BOTH_LEFT_OUT, DATA, LEFT, Chunk, own
from wirecheck.decode.connection.stream.frame import NEVER

if TYPE_CHECKING:
    from wirecheck.decode.connection.stream.frame import Frame


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

    def insert(self, frame: Frame, begin: i64, end: i64, start: i64) -> None:
        """Bytes of this frame, [begin, end), that lie in the call's payload from `start` on, as far as they are new."""
        self._insert(frame, begin, end, DATA, start, 0)

    def leave_out(self, frame: Frame, begin: i64, end: i64, agent_bit: i64) -> None:
        """[begin, end) was sent, and left out by whoever captured this frame."""
        self._insert(frame, begin, end, LEFT, 0, agent_bit)

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

    def clear(self) -> None:
        self.first, self.last = None, None
        self.count, self.kept = 0, 0

    def keep(self, payload: bytes) -> None:
        """The call ends: the bytes leave its payload."""
        own(self.first, payload, NEVER)

    def _insert(self, frame: Frame, begin: i64, end: i64, kind: i64, start: i64, left_by: i64) -> None:
        if begin >= end:
            return
        before = self.last
        if before is not None and begin >= before.end:
            self._link(frame, before, begin, end, kind, start, left_by)
            return
        before = None
        chunk = self.first
        while chunk is not None and begin < end and chunk.begin < end:
            if begin < chunk.begin:
                self._link(frame, before, begin, chunk.begin, kind, start, left_by)
                start += chunk.begin - begin
                begin = chunk.begin
            stop = min(end, chunk.end)
            if begin < stop:
                self._overlap(frame, chunk, begin, stop, kind, start, left_by)
                start += stop - begin
                begin = stop
            before = chunk
            chunk = chunk.next
        if begin < end:
            self._link(frame, before, begin, end, kind, start, left_by)

    def _link(
        self, frame: Frame, before: Chunk | None, begin: i64, end: i64, kind: i64, start: i64, left_by: i64
    ) -> None:
        """A new chunk behind the chunk `before`."""
        chunk = Chunk(begin, end, kind, frame.payload, start)
        chunk.left_by = left_by
        chunk.stamp(frame)
        if before is None:
            chunk.next = self.first
            self.first = chunk
        else:
            chunk.next = before.next
            before.next = chunk
        if chunk.next is None:
            self.last = chunk
        self.count += 1
        if kind == DATA:
            self.kept += end - begin

    def _overlap(self, frame: Frame, chunk: Chunk, begin: i64, end: i64, kind: i64, start: i64, left_by: i64) -> None:
        """[begin, end) lies within the chunk: the same bytes again, other bytes, or bytes for what was left out."""
        if chunk.kind == DATA:
            if kind == DATA:
                there = chunk.start + begin - chunk.begin
                self.conflicting += differing(chunk.data, there, frame.payload, start, end - begin)
            return
        if chunk.kind != LEFT or (kind == LEFT and chunk.left_by | left_by == chunk.left_by):
            return
        part = self._part(chunk, begin, end)
        if kind == LEFT:
            part.left_by |= left_by
            return
        part.kind, part.data, part.start, part.left_by = DATA, frame.payload, start, 0
        part.stamp(frame)
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


def left_out_for_good(chunk: Chunk) -> bool:
    """Whether nobody is left who may still show it."""
    return chunk.kind != LEFT or chunk.left_by == BOTH_LEFT_OUT


def differing(one: bytes, at: i64, other: bytes, begin: i64, count: i64) -> i64:
    """How many bytes differ."""
    total: i64 = 0
    if one[at : at + count] == other[begin : begin + count]:
        return total
    for k in range(count):
        if one[at + k] != other[begin + k]:
            total += 1
    return total
