"""Connections that got no answer, as one bucket counts them: MOST have rows of their own, those beyond count together.

Knows: which connections nothing was answered on, and which of them have been reported. Refuses to know what their
requests state, and how they are counted (`claims/unlisted.py`).
Rule: what one packet of anybody can begin is bounded by number, for as long as a run goes on. Beyond the bound such a
connection waits, unreported, until it is answered, which gives it rows as any other, or is over, which makes it one of
the others. Health checks, port scans and half-open connections are like that; so is what a capture of one direction
shows, but such a connection soon has a message to report.
"""

from dataclasses import replace

import numpy as np

from wirecheck.decode.connection.exchanges import Connection, Exchanges
from wirecheck.decode.connection.segments import bucket_of
from wirecheck.decode.peer import NO_PORT, Peer
from wirecheck.judge.claims.unlisted import FACTS

MOST = 256
"""Of one bucket; a label has eight by default."""
MOST_FRAMES = 64
"""A connection with more frames than that pays for its rows itself."""
OTHERS = Peer("others", NO_PORT)
Key = tuple[int, int]


class UnansweredConnections:
    """`listed`: as `stored` gave it."""

    def __init__(self, count: int = 0, listed: list[Key] | None = None) -> None:
        self._count = count
        """Connections without an answer that have rows: those that are over stay counted."""
        self._listed: set[Key] = {(ends, started_ns) for ends, started_ns in listed or ()}
        """Those of them that may still be answered."""

    def bounded(self, found: Exchanges) -> Exchanges:
        """The same; connections without an answer beyond the bound are left out, or are one once they are over."""
        speaking = set(found.connection.tolist())
        listed = [self._listing(one, number in speaking) for number, one in enumerate(found.connections)]
        if all(listed):
            return found
        kept = [one for one, stays in zip(found.connections, listed, strict=True) if stays]
        places = np.cumsum(listed) - 1
        over = [place for place, stays in enumerate(listed) if not stays and found.connections[place].over]
        for protocol in sorted({found.connections[place].protocol for place in over}):
            mine = [place for place in over if found.connections[place].protocol == protocol]
            places[mine] = len(kept)
            kept.append(together([found.connections[place] for place in mine]))
        return replace(found, connections=tuple(kept), connection=places.astype(np.int32)[found.connection])

    def _listing(self, one: Connection, speaking: bool) -> bool:
        """Whether a connection has rows of its own."""
        key = bucket_of(*one.client, *one.server), one.started_ns
        listed = key in self._listed
        if not is_unanswered(one):
            self._count -= listed
            self._listed.discard(key)
            return True
        if listed:
            if one.over:
                self._listed.discard(key)
            return True
        if self._count < MOST or (speaking and not one.over):
            self._count += 1
            if not one.over:
                self._listed.add(key)
            return True
        return False

    def stored(self) -> tuple[int, list[Key]]:
        return self._count, sorted(self._listed)


def together(some: list[Connection]) -> Connection:
    """Connections of one protocol as one."""
    sums = {name: sum(getattr(one, name) for one in some) for name in FACTS}
    started_ns, last_ns = min(one.started_ns for one in some), max(one.last_ns for one in some)
    return replace(
        some[0], client=OTHERS, server=OTHERS, started_ns=started_ns, last_ns=last_ns, unlisted=len(some), **sums
    )


def is_unanswered(one: Connection) -> bool:
    """Whether no answer was read on a small connection, and nothing else is to be reported of it."""
    missing = one.unseen_request_bytes or one.unseen_response_bytes or one.cut_bytes or one.decrypted
    unread = one.protocol not in {"kafka", "undecided"} or one.raw_frames or one.proxied_for
    return not (one.responses or missing or unread or one.gaps) and one.frames <= MOST_FRAMES
