"""Chunks that came before their time, each byte once.

The first bytes seen for an offset stay, whatever comes later; kept bytes replace redacted ones.
"""

from __future__ import annotations

from typing import final

from mypy_extensions import i64

from wirecheck.decode.connection.stream.chunks import BOTH_LEFT_OUT, DATA, GAP, LEFT, Chunk


@final
class OutOfOrder:
    """Chunks in the order of their offsets, none of them overlapping another: a sorted list, searched by bisection."""

    def __init__(self) -> None:
        self.chunks: list[Chunk] = []
        self.kept: i64 = 0
        """How many of their bytes we have."""
        self.conflicting: i64 = 0
        """Bytes that came again with another value, since the beginning."""

    @property
    def count(self) -> i64:
        return i64(len(self.chunks))

    @property
    def first(self) -> Chunk | None:
        return self.chunks[0] if len(self.chunks) > 0 else None

    @property
    def end(self) -> i64:
        """Where the last of them ends; 0 if there is none."""
        return self.chunks[self.count - 1].end if self.count > 0 else 0

    def add(self, chunk: Chunk) -> None:
        """A chunk, of bytes that we have or that were left out, as far as it is new."""
        if self.count == 0 or chunk.begin >= self.end:
            self.chunks.append(chunk)
            self._count_kept(chunk)
            return
        at = self._first_ending_behind(chunk.begin)
        if chunk.end <= self.chunks[at].begin:
            self.chunks.insert(at, chunk)
            self._count_kept(chunk)
        else:
            self._merge(at, chunk)

    def discard(self, count: i64) -> None:
        """So many of the first have become part of the stream, or never were."""
        for chunk in self.chunks[:count]:
            if chunk.kind == DATA:
                self.kept -= chunk.end - chunk.begin
        del self.chunks[:count]

    def clear(self) -> None:
        self.chunks, self.kept = [], 0

    def keep(self, payload: bytes) -> None:
        """The call ends: the bytes leave its payload."""
        for chunk in self.chunks:
            if chunk.kind == DATA and chunk.data is payload:
                chunk.data = chunk.bytes()
                chunk.start = 0

    def _first_ending_behind(self, at: i64) -> i64:
        """Place of the first chunk that ends behind this offset; there is one."""
        low: i64 = 0
        high = self.count - 1
        while low < high:
            middle = (low + high) >> 1
            if self.chunks[middle].end <= at:
                low = middle + 1
            else:
                high = middle
        return low

    def _count_kept(self, chunk: Chunk) -> None:
        if chunk.kind == DATA:
            self.kept += chunk.end - chunk.begin

    def _merge(self, at: i64, chunk: Chunk) -> None:
        """The chunk overlaps those from this place on: what of it is new goes between them."""
        merged: list[Chunk] = []
        upto = at
        count = self.count
        rest: Chunk | None = chunk
        while rest is not None and upto < count and self.chunks[upto].begin < rest.end:
            there = self.chunks[upto]
            upto += 1
            if rest.begin < there.begin:
                new, rest = rest, rest.split(there.begin)
                merged.append(new)
                self._count_kept(new)
            following = rest.split(there.end) if rest.end > there.end else None
            self._overlap(there, rest, merged)
            rest = following
        if rest is not None:
            merged.append(rest)
            self._count_kept(rest)
        self.chunks[at:upto] = merged

    def _overlap(self, there: Chunk, chunk: Chunk, merged: list[Chunk]) -> None:
        """The chunk lies within one that is there: the same bytes again, others, or bytes for what was left out."""
        merged.append(there)
        begin, end = chunk.begin, chunk.end
        if there.kind == DATA:
            if chunk.kind == DATA:
                at = there.start + begin - there.begin
                self.conflicting += differing(there.data, at, chunk.data, chunk.start, end - begin)
            return
        if there.kind == GAP:  # it was read already
            return
        if chunk.kind == LEFT and there.left_by | chunk.left_by == there.left_by:
            return
        part = there
        if begin > there.begin:
            part = there.split(begin)
            merged.append(part)
        if end < part.end:
            merged.append(part.split(end))
        if chunk.kind == LEFT:
            part.left_by |= chunk.left_by
            return
        part.kind, part.data, part.start = DATA, chunk.data, chunk.start
        part.stamp_as(chunk)
        self.kept += end - begin


def left_out_for_good(chunk: Chunk) -> bool:
    """Whether no agent can still provide its bytes."""
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
