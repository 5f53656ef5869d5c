"""Chunks that came before their time, each byte once.

The first bytes seen for an offset stay, whatever comes later; kept bytes replace redacted ones.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from wirecheck.decode.connection.stream.chunks import BOTH_LEFT_OUT, DATA, GAP, LEFT, Chunk

NOTHING: Final = Chunk(0, 0, GAP, b"", 0)
CONSUMED: Final = 64  # places of chunks that became part of the stream before their room is used again


@final
class OutOfOrder:
    """Chunks in the order of their offsets, none of them overlapping another: a sorted list, searched by bisection."""

    def __init__(self) -> None:
        self.first: Chunk | None = None
        self.count: i64 = 0
        self.kept: i64 = 0
        """How many of their bytes we have."""
        self.conflicting: i64 = 0
        """Bytes that came again with another value, since the beginning."""
        self._chunks: list[Chunk] = []
        self._begin: i64 = 0
        """Where in the list the first stands."""
        self._fresh: list[Chunk] = []
        """Those that may lie in the payload of this call."""

    def add(self, chunk: Chunk) -> None:
        """A chunk, of bytes that we have or that were left out, as far as it is new."""
        count = i64(len(self._chunks))
        if self.count == 0 or chunk.begin >= self._chunks[count - 1].end:
            self._chunks.append(chunk)
            self._hold(chunk)
        else:
            at = self._first_ending_behind(chunk.begin)
            if chunk.end <= self._chunks[at].begin:
                self._chunks.insert(at, chunk)
                self._hold(chunk)
            else:
                self._merge(at, chunk)
        self.first = self._chunks[self._begin]

    def pop(self) -> None:
        """The first chunk has become part of the stream."""
        chunk = self.first
        if chunk is None:
            return
        self._chunks[self._begin] = NOTHING
        self._begin += 1
        self.count -= 1
        if chunk.kind == DATA:
            self.kept -= chunk.end - chunk.begin
        if self.count == 0:
            self.clear()
            return
        if self._begin >= CONSUMED and self._begin > self.count:
            del self._chunks[: self._begin]
            self._begin = 0
        self.first = self._chunks[self._begin]

    def clear(self) -> None:
        self.first = None
        self.count, self.kept, self._begin = 0, 0, 0
        self._chunks, self._fresh = [], []

    def keep(self, payload: bytes) -> None:
        """The call ends: the bytes leave its payload."""
        for chunk in self._fresh:
            if chunk.kind == DATA and chunk.data is payload and self._holds(chunk):
                chunk.data = chunk.bytes()
                chunk.start = 0
        self._fresh = []

    def end(self) -> i64:
        """Where the last of them ends; 0 if there is none."""
        return self._chunks[i64(len(self._chunks)) - 1].end if self.count > 0 else 0

    def held(self) -> list[Chunk]:
        return self._chunks[self._begin :]

    def _first_ending_behind(self, at: i64) -> i64:
        """Place of the first chunk that ends behind this offset; there is one."""
        low: i64 = self._begin
        high = i64(len(self._chunks)) - 1
        while low < high:
            middle = (low + high) >> 1
            if self._chunks[middle].end <= at:
                low = middle + 1
            else:
                high = middle
        return low

    def _holds(self, chunk: Chunk) -> bool:
        if chunk is self.first:
            return True
        if self.count == 0 or chunk.begin >= self._chunks[i64(len(self._chunks)) - 1].end:
            return False
        return self._chunks[self._first_ending_behind(chunk.begin)] is chunk

    def _hold(self, chunk: Chunk) -> None:
        """A new chunk has its place."""
        self.count += 1
        self._fresh.append(chunk)
        if chunk.kind == DATA:
            self.kept += chunk.end - chunk.begin

    def _merge(self, at: i64, chunk: Chunk) -> None:
        """The chunk overlaps those from this place on: what of it is new goes between them."""
        merged: list[Chunk] = []
        upto = at
        count = i64(len(self._chunks))
        rest: Chunk | None = chunk
        while rest is not None and upto < count and self._chunks[upto].begin < rest.end:
            there = self._chunks[upto]
            upto += 1
            if rest.begin < there.begin:
                new, rest = rest, rest.split(there.begin)
                merged.append(new)
                self._hold(new)
            following = rest.split(there.end) if rest.end > there.end else None
            self._overlap(there, rest, merged)
            rest = following
        if rest is not None:
            merged.append(rest)
            self._hold(rest)
        self._chunks[at:upto] = merged

    def _overlap(self, there: Chunk, chunk: Chunk, merged: list[Chunk]) -> None:
        """The chunk lies within one that is there: the same bytes again, others, or bytes for what was left out."""
        merged.append(there)
        begin, end = chunk.begin, chunk.end
        if there.kind == DATA:
            if chunk.kind == DATA:
                at = there.start + begin - there.begin
                self.conflicting += differing(there.data, at, chunk.data, chunk.start, end - begin)
            return
        if chunk.kind == LEFT and there.left_by | chunk.left_by == there.left_by:
            return
        part = there
        if begin > there.begin:
            part = self._split(there, begin)
            merged.append(part)
        if end < part.end:
            merged.append(self._split(part, end))
        if chunk.kind == LEFT:
            part.left_by |= chunk.left_by
            return
        part.kind, part.data, part.start = DATA, chunk.data, chunk.start
        part.stamp_as(chunk)
        self.kept += end - begin
        self._fresh.append(part)

    def _split(self, chunk: Chunk, at: i64) -> Chunk:
        self.count += 1
        return chunk.split(at)


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
