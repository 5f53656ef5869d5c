"""Packets that are seen a second time under other addresses, of connections whose beginning decides nothing.

Knows: two routes that show the same packets: sequence and acknowledgement numbers, flags, window and payload are equal,
within milliseconds. Does not know what becomes of them.
Rule: what one end sends is seen first on one route, and what the other end sends first on the other; where two routes
show equal packets in any other order, they are not one connection. Few rows are compared: all at first, then one number
in SHARE, the same on both routes.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa

from wirecheck.capture.routes import Routes, back

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from wirecheck.capture.routes import Route

NEAR_NS: Final = 5_000_000
"""A host translates a packet within this."""
FIRST_ROWS: Final = 100_000
SHARE: Final = 4
RANDOM: Final = 1 << 24
"""Programs that write captures begin with small numbers, the same for each connection; a kernel begins anywhere."""
STRONG, WEAK, ENOUGH = 3, 1, 6
"""What a packet that is seen twice proves, with large numbers and with small ones; both directions have to show one."""
MOST_COMPARED: Final = 4000
"""Pairs of routes in a batch, and packets of each."""
MOST_OF_A_ROUTE: Final = 8
MOST_LEGS: Final = 8
MINIMUM: Final = 4
"""Rows of two packets that are seen twice."""
MOST_PAIRS: Final = 4096
"""Of routes, about which something is known."""


class Proven(NamedTuple):
    """Routes that show the same packets."""

    legs: list[Route]
    """In the order in which they show them."""
    row: int
    """Of a packet that several show, in the batch that decides."""


class PacketTwins:
    def __init__(self) -> None:
        self._rows = 0
        self._pairs: dict[tuple[Route, Route], list[int]] = {}
        """How many packets the first route showed first; and how many the way back, the second."""

    def look(self, rows: pa.RecordBatch) -> list[Proven]:
        picked = self._picked(rows)
        if len(picked) < MINIMUM:
            return []
        keys = rows.column("tcp_seq").to_numpy()[picked] << 32 | rows.column("tcp_ack").to_numpy()[picked]
        ordered = np.sort(keys)
        again = ordered[1:][ordered[1:] == ordered[:-1]]
        if not len(again):
            return []
        shown = np.isin(keys, again)
        numbers = pa.array(keys[shown]).dictionary_encode().indices.to_numpy()
        found: dict[tuple[Route, Route], int] = {}
        for first, second, row in _twins(rows, picked[shown], numbers):
            is_proven = self._learn(first, second, weight(rows, row))
            if is_proven and (first, second) not in found and (back(second), back(first)) not in found:
                found[first, second] = row
        return [*chains(found)]

    def _picked(self, rows: pa.RecordBatch) -> NDArray[np.int64]:
        """Rows with payload that are compared."""
        chosen = rows.column("payload_len").to_numpy() > 0
        if self._rows >= FIRST_ROWS:
            numbers = rows.column("tcp_seq").to_numpy().astype(np.uint32)
            chosen &= numbers * np.uint32(0x9E3779B1) < np.uint32((1 << 32) // SHARE)
        self._rows += rows.num_rows
        return np.flatnonzero(chosen)

    def _learn(self, first: Route, second: Route, proves: int) -> bool:
        """One more packet on both routes, and whether they are one connection by now."""
        forth, answers = (first, second), (back(second), back(first))
        if not {forth, answers} <= self._pairs.keys():
            while len(self._pairs) > MOST_PAIRS:
                del self._pairs[next(iter(self._pairs))]
        counts = self._pairs.setdefault(forth, [0, 0])
        counts[0] += proves
        self._pairs.setdefault(answers, [0, 0])[1] += proves
        other_orders = ((second, first), (back(first), back(second)))
        if any(self._pairs.get(pair, (0, 0))[0] for pair in other_orders):
            return False
        return min(counts) > 0 and sum(counts) >= ENOUGH


def chains(found: Mapping[tuple[Route, Route], int]) -> Iterator[Proven]:
    """Routes that follow each other: from the nearest to one end to the nearest to the other."""
    links: dict[Route, tuple[Route, int]] = {}
    for (near, far), row in found.items():
        links[near] = far, row
        links[back(far)] = back(near), row
    ends = {far for far, _ in links.values()}
    done: set[Route] = set()
    for first in [near for near in links if near not in ends]:
        legs, at = [first], []
        while legs[-1] in links and len(legs) <= MOST_LEGS:
            far, row = links[legs[-1]]
            legs.append(far)
            at.append(row)
        if first not in done:
            yield Proven(legs, min(at))
        done.add(back(legs[-1]))


def _twins(
    rows: pa.RecordBatch, at: NDArray[np.int64], numbers: NDArray[np.int32]
) -> Iterator[tuple[Route, Route, int]]:
    """The routes of packets that are seen twice, in the order in which they are seen, and the row of the first."""
    routes = Routes(rows)
    whose, ts_ns = routes.numbers[at], rows.column("ts_ns").to_numpy()[at]
    order = np.lexsort((at, ts_ns, numbers))
    shown = pa.array(numbers[order] * (whose.max(initial=0) + 1) + whose[order]).dictionary_encode().indices.to_numpy()
    order = order[np.flatnonzero(np.diff(np.maximum.accumulate(shown), prepend=-1))]  # first on each route
    numbers, whose, ts_ns, at = numbers[order], whose[order], ts_ns[order], at[order]
    again = (numbers[1:] == numbers[:-1]) & (np.diff(ts_ns) <= NEAR_NS)
    compared: Counter[tuple[int, int]] = Counter()
    for i in np.flatnonzero(again).tolist():
        pair = int(whose[i]), int(whose[i + 1])
        compared[pair] += 1
        if (
            compared[pair] <= MOST_OF_A_ROUTE
            and len(compared) <= MOST_COMPARED
            and _are_equal(rows, int(at[i]), int(at[i + 1]))
        ):
            yield routes.of(int(at[i])), routes.of(int(at[i + 1])), int(at[i])


def weight(rows: pa.RecordBatch, row: int) -> int:
    return STRONG if min(rows.column(name)[row].as_py() for name in ("tcp_seq", "tcp_ack")) >= RANDOM else WEAK


def _are_equal(rows: pa.RecordBatch, one: int, two: int) -> bool:
    payload = rows.column("payload")[one].as_py()
    columns = ("tcp_flags", "tcp_window", "payload_len", "payload")
    return bool(payload) and all(rows.column(name)[one].as_py() == rows.column(name)[two].as_py() for name in columns)
