"""The fewest messages of a capture that still prove something: those a finding names, then those around them.

Bytes and sequence numbers stay as captured, so what is left out is a gap. Connections inside TLS are kept whole: their
records decrypt in order only. A choice is returned only after `proves` accepted it as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from wirecheck.capture.evidence.minimal_subset import smaller
from wirecheck.decode.connection.follower import Follower
from wirecheck.decode.connection.segments import segments

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from wirecheck.capture.evidence.pcapng_export import Place
    from wirecheck.decode.connection.exchanges import Exchanges
    from wirecheck.decode.connection.segments import Segments
    from wirecheck.decode.wire import Ints

FIN, SYN, RST = 1, 2, 4
NO_API = -1
OPENING = frozenset({17, 18, 36})
"""SaslHandshake, ApiVersions and SaslAuthenticate: what a connection begins with."""
TRIES = 64
"""So many times it is asked while messages are dropped: half of them, then a quarter, down to one at a time."""


@dataclass(frozen=True, eq=False)
class Unit:
    """Frames that are kept or dropped together: a request with its response, or what a connection has besides."""

    number: int
    rows: tuple[int, ...]
    connection: tuple[int, int]
    """Both endpoints, as numbers."""
    api: int = NO_API


class Choice(NamedTuple):
    """What is always kept, and what may be."""

    always: frozenset[int]
    """Rows: how connections begin and end, and all of those inside TLS."""
    required: list[Unit]
    rings: list[list[Unit]]


def fewest(
    table: pa.Table, places: set[Place], proves: Callable[[pa.Table], bool], most_tries: int = TRIES
) -> pa.Table | None:
    """Frames of the messages in these places, and of what else it needs to be proven; None if it needs all."""
    choice = choice_of(table, places)

    def frames(units: Iterable[Unit]) -> pa.Table:
        rows = choice.always.union(*(unit.rows for unit in units))
        return table.take(pa.array(sorted(rows), pa.int64()))

    required = set(choice.required)
    if required and proves(frames(required)):
        return frames(required)
    extra: list[Unit] = []
    for ring in choice.rings:
        extra += ring
        if ring and proves(frames([*required, *extra])):
            return frames(required | smaller(required, extra, lambda units: proves(frames(units)), most_tries))
    return None


def choice_of(table: pa.Table, places: set[Place]) -> Choice:
    """The frames as units, in rings: those asked for; the same API there; the same connections; all."""
    here = segments(table)
    low_high = _connections(here)
    whole = set(low_high[here.run != 0].tolist())
    kept = ((here.flags & (FIN | SYN | RST)) != 0) | np.isin(low_high, np.array(sorted(whole), np.int64))
    units = list(units_of(here, np.flatnonzero(~kept)))
    asked = {
        row
        for row, (source, number) in enumerate(zip(here.source.tolist(), here.frame_no.tolist(), strict=True))
        if (here.names[source], number) in places
    }
    required = [unit for unit in units if unit.api != NO_API and asked.intersection(unit.rows)]
    connections, apis = {unit.connection for unit in required}, {unit.api for unit in required}
    rings: list[list[Unit]] = [[], [], [], []]
    for unit in sorted(set(units) - set(required), key=lambda unit: (len(unit.rows), unit.number)):
        near = unit.connection in connections
        ring = 0 if near and unit.api in OPENING else 1 if unit.api in apis else 2 if near else 3
        rings[ring].append(unit)
    return Choice(frozenset(np.flatnonzero(kept).tolist()), required, rings)


def units_of(here: Segments, free: Ints) -> Iterator[Unit]:
    """Of these rows: an exchange a unit, then what is left of each connection."""
    left, rows_of, number = set(free.tolist()), RowsOf(here), 0
    for exchanges in followed(here):
        for request, response in zip(exchanges.request.tolist(), exchanges.response.tolist(), strict=True):
            halves = [half for half in (request, response) if half >= 0]
            rows = [row for half in halves for row in rows_of(exchanges, half)]
            if rows:
                left.difference_update(rows)
                api = int(exchanges.messages.key[halves[0]])
                yield Unit(number, tuple(rows), rows_of.connection(rows[0]), api)
                number += 1
    loose: dict[tuple[int, int], list[int]] = {}
    for row in sorted(left):
        loose.setdefault(rows_of.connection(row), []).append(row)
    for connection, rows in loose.items():
        yield Unit(number, tuple(rows), connection)
        number += 1


def followed(here: Segments) -> Sequence[Exchanges]:
    follower = Follower(ports=frozenset())
    return [follower.receive(here), follower.drain()]


class RowsOf:
    """Which rows a message is in: those of its direction, from its first frame to its last."""

    def __init__(self, here: Segments) -> None:
        self._here = here
        self._ways: dict[tuple[str, tuple[str, int], tuple[str, int]], list[int]] = {}
        for row, (source, src, dst) in enumerate(
            zip(here.source.tolist(), here.src.tolist(), here.dst.tolist(), strict=True)
        ):
            way = here.names[source], here.endpoints[src], here.endpoints[dst]
            self._ways.setdefault(way, []).append(row)
        self._numbers: dict[tuple[str, tuple[str, int], tuple[str, int]], Ints] = {}
        for way, rows in self._ways.items():
            rows.sort(key=here.frame_no.__getitem__)
            self._numbers[way] = here.frame_no[rows]

    def connection(self, row: int) -> tuple[int, int]:
        src, dst = int(self._here.src[row]), int(self._here.dst[row])
        return min(src, dst), max(src, dst)

    def __call__(self, exchanges: Exchanges, message: int) -> list[int]:
        connection = exchanges.connections[int(exchanges.connection[message])]
        ends = [(peer.host, peer.port) for peer in sorted((connection.client, connection.server))]
        src, dst = ends if exchanges.direction[message] == 0 else ends[::-1]
        way = exchanges.names[int(exchanges.source[message])], src, dst
        first, last = sorted((int(exchanges.frame_first[message]), int(exchanges.frame_last[message])))
        numbers = self._numbers.get(way)
        if numbers is None:
            return []
        begin, end = np.searchsorted(numbers, first, "left"), np.searchsorted(numbers, last, "right")
        return self._ways[way][begin:end]


def _connections(here: Segments) -> Ints:
    ends = here.src.astype(np.int64), here.dst.astype(np.int64)
    found: Ints = np.minimum(*ends) * len(here.endpoints) + np.maximum(*ends)
    return found
