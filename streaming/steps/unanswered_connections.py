"""Connections without an answer: MOST of each class have rows of their own, those beyond count together.

This bounds what one packet of anyone can create: health checks, port scans, half-open connections. Such a connection
waits, unreported, until it is answered or over. The number of buckets changes no row: classes do not depend on it. What
was asked on one without rows stays with its connection, and counts for its client.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from wirecheck.decode.connection.exchanges import Connection, Exchanges
from wirecheck.decode.connection.segments import bucket_of, class_of
from wirecheck.decode.peer import NO_PORT, Peer
from wirecheck.judge.claims.extract.unlisted import FACTS
from wirecheck.judge.claims.outcomes import SLOT_NS
from wirecheck.questions.error_rows import is_refused

MOST = 4
"""Of one class: 1,024 connections without a request, and as many with one."""
MOST_FRAMES = 64
"""A connection with more frames than that pays for its rows itself."""
MOST_WAYS = 64
"""From one host to one address, whose refused connections are one: what is down is known by them. So many of a call,
those with most.
"""
OTHERS = Peer("others", NO_PORT)
REFUSING = Peer("others that refuse", NO_PORT)
Kind = tuple[str, Peer, Peer, int, bool]
"""Protocol, client and server of connections that count together; of refused ones also in which 10 s, and whether the
capture has them from their start, as the judge counts them.
"""
Key = tuple[int, int]
Class = tuple[int, bool]
"""Of its addresses, and whether it has requests: silent connections leave those with requests their rows."""


class UnansweredConnections:
    """`counts`, `listed`: as `stored` gave them."""

    def __init__(self, counts: list[tuple[Class, int]] | None = None, listed: list[Key] | None = None) -> None:
        self._counts = Counter({(number, speaking): count for (number, speaking), count in counts or ()})
        """Connections that were over without an answer."""
        self._listed: set[Key] = {(ends, started_ns) for ends, started_ns in listed or ()}
        """Connections without an answer that have rows already, because they had a message to report."""

    def bounded(self, learned: Exchanges) -> Exchanges:
        """The same; connections without an answer that still wait are left out, those beyond the bound are one."""
        speaking = set(learned.connection.tolist())
        began = sorted(range(len(learned.connections)), key=lambda number: learned.connections[number].started_ns)
        listed = {number: self._listing(learned.connections[number], number in speaking) for number in began}
        if all(listed.values()):
            return learned
        stay = [listed[number] or (one.over and number in speaking) for number, one in enumerate(learned.connections)]
        shown = [
            one if listed[number] else replace(one, unlisted=1)
            for number, one in enumerate(learned.connections)
            if stay[number]
        ]
        places = np.cumsum(stay) - 1
        over = [number for number, stays in enumerate(stay) if not stays and learned.connections[number].over]
        for (_, client, server, *_), numbers in sorted(kinds_of(learned.connections, over).items(), key=str):
            places[numbers] = len(shown)
            shown.append(together([learned.connections[number] for number in numbers], client, server))
        return replace(learned, connections=tuple(shown), connection=places.astype(np.int32)[learned.connection])

    def _listing(self, one: Connection, speaking: bool) -> bool:
        """Whether a connection has rows of its own."""
        key = bucket_of(*one.client, *one.server), one.started_ns
        if not is_unanswered(one):
            self._listed.discard(key)
            return True
        if not one.over:
            if speaking:
                self._listed.add(key)
            return key in self._listed
        if key in self._listed:
            self._listed.discard(key)
            return True
        kind = class_of(*one.client, *one.server), one.requests > 0
        self._counts[kind] += 1
        return self._counts[kind] <= MOST

    def stored(self) -> tuple[list[tuple[Class, int]], list[Key]]:
        return sorted(self._counts.items()), sorted(self._listed)


def kinds_of(connections: Sequence[Connection], over: list[int]) -> dict[Kind, list[int]]:
    """Their numbers by what they are one as."""
    found: dict[Kind, list[int]] = {}
    ways = ways_of(connections[number] for number in over)
    for number in over:
        one = connections[number]
        way, when = (OTHERS, OTHERS), (0, False)
        if is_refused(one) and way_of(one) in ways:
            way, when = way_of(one), (one.started_ns // SLOT_NS, one.from_start)
        elif is_refused(one):
            way = OTHERS, REFUSING
        found.setdefault((one.protocol, *way, *when), []).append(number)
    return found


def ways_of(over: Iterable[Connection]) -> set[tuple[Peer, Peer]]:
    """Those on which most was refused: a port scan has one connection on each of its own."""
    counts = Counter(way_of(one) for one in over if is_refused(one))
    return {*sorted(counts, key=lambda way: (-counts[way], way))[:MOST_WAYS]}


def way_of(one: Connection) -> tuple[Peer, Peer]:
    return Peer(one.client.host, NO_PORT), one.server


def together(some: list[Connection], client: Peer, server: Peer) -> Connection:
    """Connections of one protocol as one."""
    sums = {name: sum(getattr(one, name) for one in some) for name in FACTS}
    started_ns = min(one.started_ns for one in some)
    last_ns = max(one.started_ns if is_refused(one) else one.last_ns for one in some)
    return replace(
        some[0], client=client, server=server, started_ns=started_ns, last_ns=last_ns, unlisted=len(some), **sums
    )


def is_unanswered(one: Connection) -> bool:
    """Whether no answer was read on a small connection, and nothing else is to be reported of it."""
    missing = one.unseen_request_bytes or one.unseen_response_bytes or one.cut_bytes or one.decrypted
    unread = one.protocol not in {"kafka", "undecided"} or one.raw_frames or one.proxied_for
    return not (one.responses or missing or unread or one.gaps) and one.frames <= MOST_FRAMES
