"""Bytes of messages as they were kept, and the position of reading.

Places are of the data, offsets of the message as it was on the wire.
"""

from __future__ import annotations

from typing import Any, final

from librt.vecs import vec
from mypy_extensions import i64


@final
class Kept:
    """The bytes of messages, one behind the other, and where some were left out; as decode/wire.py has them."""

    def __init__(self, data: bytes, at: Any, span_at: Any, span_offset: Any, span_length: Any) -> None:
        self.data = data
        self.at: vec[i64] = at
        """n + 1 places in the data."""
        self.span_at: vec[i64] = span_at
        """n + 1 places in the spans."""
        self.span_offset: vec[i64] = span_offset
        self.span_length: vec[i64] = span_length


def one_message(data: bytes, span_offset: Any, span_length: Any) -> Kept:
    """All kept bytes of one message, and the spans (offset as on the wire, length) that are missing."""
    return Kept(data, vec[i64]([0, len(data)]), vec[i64]([0, len(span_offset)]), span_offset, span_length)


@final
class Position:
    """Where reading stands in one message, of which bytes may have been left out."""

    def __init__(self) -> None:
        nothing = vec[i64]()
        self.offset = nothing
        self.length = nothing
        self.start: i64 = 0
        self.end: i64 = 0
        self.at: i64 = 0
        self.limit: i64 = 0
        """Kept bytes are contiguous up to here."""
        self.hidden: i64 = 0
        """Left-out bytes still ahead."""
        self.passed: i64 = 0
        """Left-out bytes behind."""
        self.hole: i64 = 0
        """What remains of the span at `limit`."""
        self.span: i64 = 0
        self.span_end: i64 = 0

    def enter(self, kept: Kept, message: i64) -> None:
        self.start = self.at = kept.at[message]
        self.end = self.limit = kept.at[message + 1]
        self.span = kept.span_at[message]
        self.span_end = kept.span_at[message + 1]
        self.hidden = self.passed = self.hole = 0
        if self.span < self.span_end:
            self.offset, self.length = kept.span_offset, kept.span_length
            for i in range(self.span, self.span_end):
                self.hidden += self.length[i]
            self.next_span()

    def next_span(self) -> None:
        while self.span < self.span_end and self.length[self.span] == 0:
            self.span += 1
        self.limit = self.end
        if self.span < self.span_end:
            self.limit = min(self.end, self.start + self.offset[self.span] - self.passed)
            self.hole = self.length[self.span]

    def skip(self, at: i64, rest: i64) -> None:
        """Steps over `rest` bytes of content of which some were left out; there are that many."""
        while True:
            step = min(rest, self.limit - at)
            at += step
            rest -= step
            if rest == 0:
                self.at = at
                return
            step = min(rest, self.hole)
            self.hole -= step
            self.hidden -= step
            self.passed += step
            rest -= step
            if self.hole == 0:
                self.span += 1
                self.next_span()
