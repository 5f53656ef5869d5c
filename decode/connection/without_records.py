"""Large messages without their records: what is handed out where nobody wants the records.

Knows: where a message's structure lies is found by walking it over a few windows of its bytes, one more wherever the
walk stands before bytes it has not got, so that records are never copied.
Refuses to know layouts (who walks knows them: structure.py), and what is done with the message.
Rule: only content of records fields is left away, only in messages that decode, and never what may be the metadata
log; in every other case the message is handed out whole, as it always was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirecheck.decode.connection.stream.chunks import Chunk
    from wirecheck.decode.connection.waiting import Message

    Walk = Callable[[bytes, list[tuple[int, int]], int, int, int], tuple[bool, int, int]]
    """(kept bytes, spans left out, side, key, version) to (whether the message is whole so, where on the wire bytes are
    missed or -1, how many spans lie within records)."""

LARGE: Final = 4096  # smaller messages are cheaper to copy than to walk
FIRST_BYTES: Final = 320  # of the windows
LAST_BYTES: Final = 64
MORE_BYTES: Final = 256
MOST_WINDOWS: Final = 64


@final
class WithoutRecords:
    def __init__(self, walk: Walk, carrying: frozenset[tuple[int, int, int]], log_names: tuple[bytes, ...]) -> None:
        """`carrying`: side, key and version of what can hold records; `log_names`: what only the metadata log says."""
        self.walk: Walk = walk
        self.carrying: frozenset[tuple[int, int, int]] = carrying
        self.log_names: tuple[bytes, ...] = log_names
        self.parts: list[bytes] = []
        """Of the message that was found last: what is kept, and the spans (offset, length) that are not."""
        self.spans: list[tuple[int, int]] = []

    def is_large(self, message: Message) -> bool:
        """Whether it is worth looking where this message has its records."""
        return message.size > LARGE and (message.side, message.key, message.version) in self.carrying

    def find(self, message: Message) -> bool:
        """Find the message, all of whose bytes we have, without its records; False: it is handed out whole."""
        size = message.size
        windows: list[tuple[int, int]] = [(0, FIRST_BYTES), (size - LAST_BYTES, size)]
        while len(windows) <= MOST_WINDOWS:
            kept = b"".join(_windows(message.chunks, windows))
            spans = [(windows[k][1], windows[k + 1][0] - windows[k][1]) for k in range(len(windows) - 1)]
            whole, missed, in_records = self.walk(kept, spans, message.side, message.key, message.version)
            if whole:
                self.parts, self.spans = [kept], spans
                return in_records == len(spans) and not any(name in kept for name in self.log_names)
            if missed < 0:
                return False
            _open(windows, missed, size)
        return False


def _open(windows: list[tuple[int, int]], where: int, size: int) -> None:
    """One window more, from this place on; windows that touch become one."""
    k = 0
    while k < len(windows) and windows[k][1] < where:
        k += 1
    end = min(where + MORE_BYTES, size)
    if windows[k][0] <= where:  # within a window, or at its end: that one grows
        windows[k] = (windows[k][0], max(windows[k][1], end))
    else:
        windows.insert(k, (where, end))
    if k + 1 < len(windows) and windows[k + 1][0] <= windows[k][1]:
        # it is the last one: a walk stands behind all that was opened for it before
        windows[k : k + 2] = [(windows[k][0], max(windows[k][1], windows[k + 1][1]))]


def _windows(chunk: Chunk | None, windows: list[tuple[int, int]]) -> list[bytes]:
    """The bytes of these windows of a message, whose chunks all hold bytes."""
    parts: list[bytes] = []
    k = 0
    begin: i64 = 0 if chunk is None else chunk.begin
    while chunk is not None and k < len(windows):
        at, end = chunk.begin - begin, chunk.end - begin
        while k < len(windows) and windows[k][0] < end:
            first, last = max(windows[k][0], at), min(windows[k][1], end)
            parts.append(chunk.data[chunk.start + first - at : chunk.start + last - at])
            if windows[k][1] > end:
                break
            k += 1
        chunk = chunk.next
    return parts
