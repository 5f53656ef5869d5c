"""Connections that have settled, as one bucket remembers them: later frames of them are late.

A late frame would create its connection again and count it twice, so it is counted per agent and not followed. Only an
agent that was given up as silent, or is unknown, brings some. A connection is remembered for KEPT_NS, at most MOST of
them, by a 32-bit checksum of its ends.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wirecheck.decode.connection.exchanges import Connection
from wirecheck.decode.connection.segments import Segments, bucket_of, unique_pairs
from wirecheck.judge.connections import AFTER_NS, IDLE_NS

SECOND_NS = 1_000_000_000
KEPT_NS = IDLE_NS + 600 * SECOND_NS
"""Since a connection was seen last; one that falls silent leaves the follower as late as this bound begins."""
MOST = 16_384
"""Of one bucket: two hours of eighteen connections a second that come and go, over eight buckets."""
NEVER_S = -AFTER_NS // SECOND_NS - 1
Ints = NDArray[np.integer[Any]]
NONE = np.zeros(0, np.int64)


class SettledConnections:
    """`ends` and `last_s`: as `stored` gave them."""

    def __init__(self, ends: Ints = NONE, last_s: Ints = NONE) -> None:
        self._last_s: dict[int, int] = dict(zip(ends.tolist(), last_s.tolist(), strict=True))
        """By the sum of a connection's ends the second in which it was seen last, rounded up."""

    def let_go(self, connections: Iterable[Connection]) -> None:
        """Those of them that have left the follower."""
        for one in connections:
            if one.over:
                key = bucket_of(*one.client, *one.server)
                self._last_s[key] = max(-(-one.last_ns // SECOND_NS), self._last_s.get(key, 0))

    def late(self, frames: Segments, passed_ns: int) -> NDArray[np.bool_] | None:
        """Which frames are of connections that have left, and so old that all had passed them by AFTER_NS; None where
        none is. Where the same ends were used again it is the last of them that says so.
        """
        old = np.flatnonzero(frames.ts_ns < passed_ns - AFTER_NS) if self._last_s else NONE
        if not len(old):
            return None
        ends = frames.endpoints
        pairs, index = unique_pairs(frames.src[old], frames.dst[old], len(ends))
        sums = [bucket_of(*ends[pair // len(ends)], *ends[pair % len(ends)]) for pair in pairs.tolist()]
        upto_s = np.array([self._last_s.get(one, NEVER_S) + AFTER_NS // SECOND_NS for one in sums], np.int64)
        is_late = np.zeros(len(frames), np.bool_)
        is_late[old] = frames.ts_ns[old] <= upto_s[index] * SECOND_NS
        return is_late if is_late.any() else None

    def forget(self, passed_ns: int) -> None:
        """Remove what is older than KEPT_NS, and the oldest beyond MOST."""
        oldest_s = (passed_ns - KEPT_NS) // SECOND_NS
        recent = sorted((last_s, end) for end, last_s in self._last_s.items() if last_s >= oldest_s)[-MOST:]
        self._last_s = {end: last_s for last_s, end in recent}

    def stored(self) -> tuple[Ints, Ints]:
        return np.array([*self._last_s], np.int64), np.array([*self._last_s.values()], np.int64)
