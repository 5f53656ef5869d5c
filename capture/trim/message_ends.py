"""Where the last message of each stream ended: what lies behind is another message, a token, or lost.

Knows: one place and one side by stream, for all streams at once.
Refuses to know: what lies there.
Rule: Python runs once per call, never per stream; a stream that is forgotten has no boundary any more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from wirecheck.decode.wire import Ints

NONE = -1


class Boundaries:
    """Streams by their numbers, ascending; `end` and `side` are those of the last message of each."""

    def __init__(self) -> None:
        self.stream: Ints = np.zeros(0, np.int64)
        self.end: Ints = np.zeros(0, np.int64)
        self._side: Ints = np.zeros(0, np.int64)

    def of(self, stream: Ints) -> Ints:
        """Ends by stream, NONE where none is known."""
        place, there = self._places(stream)
        return np.where(there, self.end[place], NONE) if len(self.stream) else np.full(len(stream), NONE)

    def side(self, stream: int) -> int:
        """Of a stream that has a boundary."""
        return int(self._side[np.searchsorted(self.stream, stream)])

    def move(self, stream: Ints, end: Ints, side: Ints) -> None:
        """These streams, ascending and each once, end here now."""
        place, there = self._places(stream)
        self.end[place[there]], self._side[place[there]] = end[there], side[there]
        if not there.all():
            every = np.concatenate([self.stream, stream[~there]])
            order = np.argsort(every, kind="stable")
            self.stream = every[order]
            self.end = np.concatenate([self.end, end[~there]])[order]
            self._side = np.concatenate([self._side, side[~there]])[order]

    def but(self, stream: Ints) -> NDArray[np.bool_]:
        """Which of the streams here are none of these, which ascend."""
        if not len(stream):
            return np.ones(len(self.stream), np.bool_)
        place = np.minimum(np.searchsorted(stream, self.stream), len(stream) - 1)
        found: NDArray[np.bool_] = stream[place] != self.stream
        return found

    def forget(self, stream: Ints) -> None:
        stays = ~np.isin(self.stream, stream)
        self.stream, self.end, self._side = self.stream[stays], self.end[stays], self._side[stays]

    def _places(self, stream: Ints) -> tuple[Ints, Ints]:
        if not len(self.stream):
            return np.zeros(len(stream), np.int64), np.zeros(len(stream), np.bool_)
        place = np.minimum(np.searchsorted(self.stream, stream), len(self.stream) - 1)
        return place, self.stream[place] == stream
