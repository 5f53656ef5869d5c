"""Where in packets the bytes of messages lie: what trimming needs to leave secrets out of packets that wait.

Knows: which stretch of which stream every waiting packet carried, as the follower placed it.
Refuses to know: which bytes are secret, and how packets are kept.
Rule: a span is found in every packet that carried any of it, copies and retransmissions too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from wirecheck.decode.compiled import cached_njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from wirecheck.decode.connection.exchanges import Exchanges

    Ints = NDArray[np.int64]

LARGEST_PAYLOAD = 1 << 18  # a packet's: 64 KiB by IP's length, more with BIG TCP (RFC 2675 jumbograms on Linux)


@dataclass(frozen=True, slots=True)
class Placed:
    """Where the packets of one call belong, one row each."""

    serial: Ints
    """Number of the connection, -1 for none."""
    direction: Ints
    offset: Ints
    """Of the first payload byte in its direction; -1 if the packet carries none that matters."""

    @classmethod
    def none(cls) -> Placed:
        return cls(*np.zeros((3, 0), np.int64))


class Places:
    """The packets that wait, by the place of their payload. Packets are known by numbers of the caller."""

    def __init__(self) -> None:
        self._rows = np.zeros((0, 4), np.int64)  # stream (2 * serial + direction), offset, length, number; sorted

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, numbers: Ints, placed: Placed, payload_len: Ints) -> None:
        """Packets with payload; those that belong to no connection are not kept here."""
        there = (placed.offset >= 0) & (payload_len > 0)
        stream = 2 * placed.serial[there] + placed.direction[there]
        rows = np.stack([stream, placed.offset[there], payload_len[there], numbers[there]], axis=1)
        rows = np.concatenate([self._rows, rows])
        self._rows = rows[np.lexsort((rows[:, 1], rows[:, 0]))]

    def spans(self, exchanges: Exchanges, message: Ints, offset: Ints, length: Ints) -> tuple[Ints, Ints, Ints]:
        """Spans in messages (after their size) as (number of the packet, offset in its payload, length)."""
        stream = 2 * exchanges.serial[message] + exchanges.direction[message]
        begin = exchanges.stream_offset[message] + 4 + offset
        first = self._lower(stream, begin - LARGEST_PAYLOAD)
        found = _carried(self._rows, stream, begin, begin + length, first)
        return found[:, 0], found[:, 1], found[:, 2]

    def release(self, serial: int, direction: int, decided: int) -> Ints:
        """Forget the packets of a direction that end at or before this offset; their numbers."""
        stream = 2 * serial + direction
        low, high = self._lower(np.array([stream, stream + 1]), np.array([-1, -1])).tolist()
        mine = self._rows[low:high]
        gone = mine[:, 1] + mine[:, 2] <= decided
        numbers: Ints = mine[gone, 3]
        if len(numbers):
            self._rows = np.concatenate([self._rows[:low], mine[~gone], self._rows[high:]])
        return numbers

    def _lower(self, stream: Ints, offset: Ints) -> Ints:
        found: Ints = _lower_bounds(self._rows, stream, offset)
        return found


@cached_njit
def _lower_bounds(rows: Ints, stream: Ints, offset: Ints) -> Any:
    found = np.empty(len(stream), np.int64)
    for k in range(len(stream)):
        low, high = 0, len(rows)
        while low < high:
            middle = (low + high) // 2
            if rows[middle, 0] < stream[k] or (rows[middle, 0] == stream[k] and rows[middle, 1] < offset[k]):
                low = middle + 1
            else:
                high = middle
        found[k] = low
    return found


@cached_njit
def _carried(rows: Ints, stream: Ints, begin: Ints, end: Ints, first: Ints) -> Any:
    count = 0
    for fill in (False, True):
        found = np.empty((count, 3), np.int64)
        count = 0
        for k in range(len(stream)):
            i = first[k]
            while i < len(rows) and rows[i, 0] == stream[k] and rows[i, 1] < end[k]:
                start, stop = max(begin[k], rows[i, 1]), min(end[k], rows[i, 1] + rows[i, 2])
                if start < stop:
                    if fill:
                        found[count, 0], found[count, 1], found[count, 2] = rows[i, 3], start - rows[i, 1], stop - start
                    count += 1
                i += 1
    return found
