"""Lines that wait for earlier ones: an exchange is known when its answer is, and its request may be older than others.

Knows: when a line was captured, and how much it takes to hold. Refuses to know what is in it.
Rule: what waits is bounded; beyond that the oldest goes, though an older one may still come.
"""

from __future__ import annotations

import heapq
from itertools import count
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

Line = dict[str, Any]
WAITING_ROWS = 1 << 16  # of tables in all lines that wait, at some KB each: a busy capture has 1 GB in those seconds


class Waiting:
    """Lines in order of time."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, int, Line]] = []
        self._order, self._rows = count(), 0

    def add(self, ts_ns: int, rows: int, found: Line) -> None:
        heapq.heappush(self._heap, (ts_ns, next(self._order), rows, found))
        self._rows += rows

    def due(self, before_ns: int) -> Iterator[Line]:
        while self._heap and (self._heap[0][0] < before_ns or self._rows > WAITING_ROWS):
            _, _, rows, found = heapq.heappop(self._heap)
            self._rows -= rows
            yield found
