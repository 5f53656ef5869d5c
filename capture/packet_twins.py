"""Packets that are seen a second time under other addresses, of connections whose beginning decides nothing.

Knows: two routes that show the same packets: sequence and acknowledgement numbers, flags, window and payload are equal,
within milliseconds. Does not know what becomes of them.
Rule: what one end sends is seen first on one route, and what the other end sends first on the other; where two routes
show equal packets in any other order, they are not one connection. Packets with payload are compared; where they are
seen twice in one direction only, so are the acknowledgements of the other, which need no payload.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa

from wirecheck.capture.routes import Routes, back

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from wirecheck.capture.routes import Route

NEAR_NS: Final = 5_000_000
"""A host translates a packet within this."""
RANDOM: Final = 1 << 24
"""Programs that write captures begin with small numbers, the same for each connection; a kernel begins anywhere."""
STRONG, WEAK, ENOUGH = 3, 1, 6
"""What a packet that is seen twice proves, with large numbers and with small ones; both directions have to show one."""
MOST_COMPARED: Final = 4000
"""Pairs of routes in a batch, and packets of each."""
MOST_OF_A_ROUTE: Final = 8
MOST_LEGS: Final = 8
MOST_UNDECIDED: Final = 64
MOST_ACKNOWLEDGEMENTS: Final = 256
"""Of a route, in a batch."""
ACK: Final = 16
MOST_PAIRS: Final = 4096
"""Of routes, about which something is known."""


class Proven(NamedTuple):
    """Routes that show the same packets."""

    legs: list[Route]
    """In the order in which they show them."""
    row: int
    """Of a packet that several show, in the batch that decides."""


class Twin(NamedTuple):
    """A packet that is seen on two routes."""

    first: Route
    second: Route
    row: int
    """Where it is seen first."""


class PacketTwins:
    def __init__(self) -> None:
        self._pairs: dict[tuple[Route, Route], list[int]] = {}
        """How much the packets prove that the first route showed first; and those of the way back, the second."""

    def look(self, rows: pa.RecordBatch, since_ns: int) -> tuple[list[Proven], int]:
        """The routes of these rows that are one connection; and the first row that waits for more. That is one of
        routes that show the same packets in one direction so far, from `since_ns` on. It and all rows after it have to
        come again, before other rows.
        """
        picked = np.flatnonzero(rows.column("payload_len").to_numpy() > 0)
        at, numbers = _seen_twice(rows, picked)
        if not len(at):
            return [], rows.num_rows
        routes = Routes(rows)
        twins = [*_twins(routes, at, numbers)]
        if not twins:
            return [], rows.num_rows
        known = {pair: [*counts] for pair, counts in self._pairs.items()}
        proven = self._learned(rows, twins)
        if undecided := self._undecided(twins, proven):
            of_route = routes.rows_by_route()
            answers = _acknowledgements(rows, [of_route.get(back(way)) for pair in undecided for way in pair])
            more = [*_twins(routes, *_seen_twice(rows, answers))]
            proven |= self._learned(rows, more)
            twins = sorted((*twins, *more), key=lambda twin: twin.row)
            undecided = [pair for pair in self._undecided(twins, proven) if pair not in known]
            waits_at = _first_row(rows, since_ns, [of_route[way] for pair in undecided for way in pair])
            if waits_at < rows.num_rows:
                self._pairs = known
                self._learned(rows, [twin for twin in twins if twin.row < waits_at])
                return [*chains(proven)], waits_at
        return [*chains(proven)], rows.num_rows

    def _learned(self, rows: pa.RecordBatch, twins: Iterable[Twin]) -> dict[tuple[Route, Route], int]:
        """Which routes are one connection by now, and a row that shows it."""
        proven: dict[tuple[Route, Route], int] = {}
        for first, second, row in twins:
            is_proven = self._learn(first, second, weight(rows, row))
            if is_proven and (first, second) not in proven and (back(second), back(first)) not in proven:
                proven[first, second] = row
        return proven

    def _learn(self, first: Route, second: Route, proves: int) -> bool:
        """One more packet on both routes, and whether they are one connection by now."""
        forth, answers = (first, second), (back(second), back(first))
        if not {forth, answers} <= self._pairs.keys():
            while len(self._pairs) > MOST_PAIRS:
                del self._pairs[next(iter(self._pairs))]
        counts = self._pairs.setdefault(forth, [0, 0])
        counts[0] += proves
        self._pairs.setdefault(answers, [0, 0])[1] += proves
        return not self._is_contradicted(first, second) and min(counts) > 0 and sum(counts) >= ENOUGH

    def _is_contradicted(self, first: Route, second: Route) -> bool:
        """Whether a packet was seen in another order than that of a translation."""
        return any(self._pairs.get(pair, (0, 0))[0] for pair in ((second, first), (back(first), back(second))))

    def _undecided(self, twins: Iterable[Twin], proven: Mapping[tuple[Route, Route], int]) -> list[tuple[Route, Route]]:
        pairs = dict.fromkeys((twin.first, twin.second) for twin in twins)
        return [
            (first, second)
            for first, second in pairs
            if (first, second) not in proven
            and (back(second), back(first)) not in proven
            and not self._is_contradicted(first, second)
        ][:MOST_UNDECIDED]


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


def _seen_twice(rows: pa.RecordBatch, at: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Which of these rows have the same sequence and acknowledgement numbers as another one, and a number for both."""
    keys = rows.column("tcp_seq").to_numpy()[at] << 32 | rows.column("tcp_ack").to_numpy()[at]
    ordered = np.sort(keys)
    again = ordered[1:][ordered[1:] == ordered[:-1]]
    if not len(again):
        return at[:0], np.zeros(0, np.int32)
    shown = np.isin(keys, again)
    return at[shown], pa.array(keys[shown]).dictionary_encode().indices.to_numpy()


def _acknowledgements(rows: pa.RecordBatch, of_routes: Iterable[NDArray[np.int64] | None]) -> NDArray[np.int64]:
    """The first ones of each route that have no payload."""
    flags, sizes = rows.column("tcp_flags").to_numpy(), rows.column("payload_len").to_numpy()
    found = (
        mine[(flags[mine] == ACK) & (sizes[mine] == 0)][:MOST_ACKNOWLEDGEMENTS]
        for mine in of_routes
        if mine is not None
    )
    return np.unique(np.concatenate([np.zeros(0, np.int64), *found]))


def _first_row(rows: pa.RecordBatch, since_ns: int, of_routes: Iterable[NDArray[np.int64]]) -> int:
    """The first one of these routes that is not older than `since_ns`; the number of rows if there is none."""
    ts_ns = rows.column("ts_ns").to_numpy()
    return min(
        (int(late[0]) for mine in of_routes if len(late := mine[ts_ns[mine] >= since_ns])), default=rows.num_rows
    )


def _twins(routes: Routes, at: NDArray[np.int64], numbers: NDArray[np.int32]) -> Iterator[Twin]:
    """Of rows with equal numbers those that are one packet, on two routes one after the other."""
    rows = routes.rows
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
            yield Twin(routes.of(int(at[i])), routes.of(int(at[i + 1])), int(at[i]))


def weight(rows: pa.RecordBatch, row: int) -> int:
    return STRONG if min(rows.column(name)[row].as_py() for name in ("tcp_seq", "tcp_ack")) >= RANDOM else WEAK


def _are_equal(rows: pa.RecordBatch, one: int, two: int) -> bool:
    columns = ("tcp_flags", "tcp_window", "payload_len", "payload")
    shows_what_it_holds = bool(rows.column("payload")[one].as_py()) or rows.column("payload_len")[one].as_py() == 0
    return shows_what_it_holds and all(
        rows.column(name)[one].as_py() == rows.column(name)[two].as_py() for name in columns
    )
