"""Runs of a stream's bytes, and lists of them.

A chunk is bytes we have, redacted bytes, or bytes never seen; it points into a call's payload. Bytes are copied twice
at most: when a call ends before their message does (`own`), and into the message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64, mypyc_attr

if TYPE_CHECKING:
    from wirecheck.decode.connection.stream.frame import Frame

DATA: Final = 0  # bytes we have
LEFT: Final = 1  # bytes that the agent redacted or a snap length cut
GAP: Final = 2  # bytes never seen
TOGETHER: Final = 1 << 16  # bytes that are copied for the sake of one chunk fewer
BOTH_LEFT_OUT: Final = 3  # `left_by`: bits of the agents that left it out


@final
@mypyc_attr(free_list_len=1)
class Chunk:
    """A run of a direction's stream, [begin, end), out of one packet or, within a message, out of several."""

    def __init__(self, begin: i64, end: i64, kind: i64, data: bytes, start: i64) -> None:
        self.begin: i64 = begin
        self.end: i64 = end
        self.kind: i64 = kind
        self.data: bytes = data
        """What its bytes lie in, from `start` on."""
        self.start: i64 = start
        self.left_by: i64 = 0
        self.ts_ns: i64 = 0
        self.ts_last_ns: i64 = 0
        self.number: i64 = 0
        self.number_last: i64 = 0
        self.source: i64 = 0
        self.packet_begin: i64 = 0
        """Where the payload of its packet began and ended in the stream."""
        self.packet_end: i64 = 0
        self.next: Chunk | None = None

    def stamp(self, frame: Frame) -> None:
        """It comes from this frame."""
        self.ts_ns = frame.ts_ns
        self.ts_last_ns = frame.ts_ns
        self.number = frame.number
        self.number_last = frame.number
        self.source = frame.source
        self.packet_begin = frame.offset
        self.packet_end = frame.offset + frame.length

    def stamp_as(self, other: Chunk) -> None:
        """It comes from where the other chunk does."""
        self.ts_ns, self.ts_last_ns = other.ts_ns, other.ts_last_ns
        self.number, self.number_last = other.number, other.number_last
        self.source = other.source
        self.packet_begin, self.packet_end = other.packet_begin, other.packet_end

    def split(self, at: i64) -> Chunk:
        """End at this offset; the rest is the next chunk."""
        rest = Chunk(at, self.end, self.kind, self.data, self.start + at - self.begin)
        rest.left_by = self.left_by
        rest.stamp_as(self)
        rest.next = self.next
        self.next = rest
        self.end = at
        return rest

    def join(self, following: Chunk) -> None:
        """The chunk behind it in the list, which continues it also in what it lies in, becomes part of it."""
        self.end = following.end
        self.ts_last_ns = max(self.ts_last_ns, following.ts_last_ns)
        self.number_last = max(self.number_last, following.number_last)
        self.next = following.next

    def bytes(self) -> bytes:
        return self.data[self.start : self.start + self.end - self.begin]


@final
class Chunks:
    """The bytes of a direction that are in order and not cut into messages yet."""

    def __init__(self) -> None:
        self.first: Chunk | None = None
        self.last: Chunk | None = None
        self.begin: i64 = 0
        """Offset of the first of them."""
        self.count: i64 = 0
        self.kept: i64 = 0
        """How many of their bytes we have."""
        self.owned: Chunk | None = None
        """The last that is known not to lie in a call's payload."""

    def append(self, chunk: Chunk) -> None:
        chunk.next = None
        last = self.last
        if last is None:
            self.first = chunk
            self.begin = chunk.begin
        else:
            last.next = chunk
        self.last = chunk
        self.count += 1
        if chunk.kind == DATA:
            self.kept += chunk.end - chunk.begin

    def grow(self, frame: Frame, begin: i64, end: i64) -> bool:
        """The frame's payload, [begin, end), becomes part of the last chunk; False: it does not lie behind it."""
        last = self.last
        if last is None or last.kind != DATA or last.data is not frame.payload:
            return False
        if last.start + begin - last.begin != frame.start:
            return False
        last.end = end
        last.ts_last_ns = max(last.ts_last_ns, frame.ts_ns)
        last.number_last = max(last.number_last, frame.number)
        self.kept += end - begin
        return True

    def detach(self, upto: i64) -> Chunk | None:
        """Take off what lies before this offset, as a list."""
        first = self.first
        if first is None or first.begin >= upto:
            return None
        chunk: Chunk = first
        while True:
            following = chunk.next
            if chunk.end > upto:
                following = chunk.split(upto)
                if self.last is chunk:
                    self.last = following
                self.count += 1
            self.count -= 1
            if chunk.kind == DATA:
                self.kept -= chunk.end - chunk.begin
            if self.owned is chunk:
                self.owned = None
            if following is None or following.begin >= upto:
                break
            chunk = following
        chunk.next = None
        self.first = following
        if following is None:
            self.last = None
        self.begin = upto
        return first

    def clear(self) -> None:
        self.first, self.last, self.owned = None, None, None
        self.count, self.kept = 0, 0

    def keep(self, payload: bytes, message_begin: i64) -> None:
        """The call ends: keep the bytes, those of a message that began at `message_begin` as one."""
        first = self.first if self.owned is None else self.owned
        last, merged = own(first, payload, message_begin)
        self.count -= merged
        self.owned, self.last = last, last

    def look(self, at: i64, limit: i64) -> bytes:
        """The bytes from `at` on, up to `limit` or the first that is not there."""
        chunk = chunk_at(self.first, at)
        if chunk is None or chunk.kind != DATA or at + limit > chunk.end:
            return gathered(chunk, at, limit)
        start = chunk.start + at - chunk.begin
        return chunk.data[start : start + limit]

    def unseen_before(self, upto: i64) -> i64:
        """How many bytes before this offset were never seen."""
        total: i64 = 0
        chunk = self.first
        while chunk is not None and chunk.begin < upto:
            if chunk.kind == GAP:
                total += min(chunk.end, upto) - chunk.begin
            chunk = chunk.next
        return total


def gathered(chunk: Chunk | None, at: i64, limit: i64) -> bytes:
    """The bytes of a list from `at` on, up to `limit` or the first that is not there."""
    parts: list[bytes] = []
    while chunk is not None and limit > 0 and chunk.kind == DATA:
        start = chunk.start + at - chunk.begin
        count = min(chunk.end - at, limit)
        parts.append(chunk.data[start : start + count])
        limit -= count
        at = chunk.end
        chunk = chunk.next
    return b"".join(parts)


def fills_packets(chunk: Chunk | None, begin: i64, end: i64, most: i64) -> tuple[bool, i64]:
    """(whether [begin, end), which begins within the chunk, begins where a packet begins and ends where one ends,
    chunks walked); no if that takes more than `most`.
    """
    walked: i64 = 0
    if chunk is None or chunk.packet_begin != begin or chunk.kind == GAP:
        return False, walked
    while chunk is not None and chunk.end < end and walked < most:
        chunk = chunk.next
        walked += 1
    return chunk is not None and chunk.packet_end == end and chunk.kind != GAP, walked


def chunk_at(chunk: Chunk | None, at: i64) -> Chunk | None:
    """The chunk of the list, from this one on, in which an offset lies."""
    while chunk is not None and chunk.end <= at:
        chunk = chunk.next
    return chunk


def begins_packet(chunk: Chunk | None, at: i64) -> bool:
    found = chunk_at(chunk, at)
    return found is not None and found.packet_begin == at and found.kind != GAP


def own(chunk: Chunk | None, payload: bytes, merge_from: i64) -> tuple[Chunk | None, i64]:
    """Have a list keep its bytes itself, not within a call's payload; from `merge_from` on what lies together becomes
    one. (The last chunk, how many fewer there are.)
    """
    last: Chunk | None = None
    merged: i64 = 0
    while chunk is not None:
        last = chunk
        is_fresh = chunk.data is payload
        parts: list[bytes] = [chunk.bytes()] if chunk.kind == DATA and is_fresh else []
        following = chunk.next
        while chunk.begin >= merge_from and following is not None and following.kind == chunk.kind:
            if chunk.kind == DATA:
                if not (is_fresh and following.data is payload) and following.end - chunk.begin > TOGETHER:
                    break
                if len(parts) == 0:
                    parts.append(chunk.bytes())
                parts.append(following.bytes())
            chunk.join(following)
            merged += 1
            following = chunk.next
        if len(parts) > 0:
            chunk.data = b"".join(parts)
            chunk.start = 0
        chunk = following
    return last, merged
