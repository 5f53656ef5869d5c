"""Traffic by the minute: what clients requested and what came of it, in rows that any number of runs add up.

    kept = Windows(dialects); kept.count(exchanges, decoded); kept.minutes()
    traffic = whole(minutes)

Knows: which counts of `Traffic` can be divided and put together again. Refuses to know where they are kept.
Rule: what is put together of all minutes is what one pass counts, but for proxies, which are known at the end alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from wirecheck.questions.error_rows import is_refused
from wirecheck.questions.traffic import (
    STREAK_NS,
    Asked,
    Call,
    Calls,
    Chunk,
    Count,
    Rejection,
    Traffic,
    Use,
)
from wirecheck.wording import NS_PER_S

if TYPE_CHECKING:
    from wirecheck.decode.connection.exchanges import Exchanges
    from wirecheck.decode.message import Decoded

MINUTE_NS = 60 * NS_PER_S
REFUSED_ALONE = 1_000
"""Minutes, hosts and addresses of refused connections that are kept of one cell."""


class MinuteChunk(Chunk):
    """Who asked is kept apart by the minute in which it asked: the host of a call begins with its number."""

    def __init__(self, exchanges: Exchanges, decoded: Decoded) -> None:
        super().__init__(exchanges, decoded)
        self._minutes, code = np.unique(self.asked_ns // MINUTE_NS, return_inverse=True)
        self._parties = int(self.party.max()) + 1
        self.party = code.ravel() * self._parties + self.party

    def call(self, index: int) -> Call:
        minute, party = divmod(int(self.party[index]), self._parties)
        found = self.call_of(party, index)
        return found._replace(host=f"{self._minutes[minute]} {found.host}")

    def plain(self) -> Chunk:
        """The same without minutes."""
        return Chunk(self.exchanges, self.decoded, self._tables)


@dataclass
class Minute:
    """What was counted of one minute."""

    calls: dict[Call, Calls] = field(default_factory=dict)
    uses: dict[Use, Count] = field(default_factory=dict)
    failures: list[tuple[Rejection, Count]] = field(default_factory=list)
    """By server."""
    fetched: dict[tuple[str | None, str, str], Asked] = field(default_factory=dict)
    whole_fetch_ns: dict[tuple[str | None, str, str], int] = field(default_factory=dict)


class Windows(Traffic):
    """What one cell adds, by the minute."""

    def count_cell(self, exchanges: Exchanges, decoded: Decoded) -> Chunk | None:
        """Exchanges that were decoded for another reason; what they were read as, if there are some."""
        self.cover(exchanges)
        if not len(exchanges):
            return None
        chunk = MinuteChunk(exchanges, decoded)
        self.count(chunk)
        return chunk.plain()

    def failure_of(self, call: Call, error: str, topic: str, replica: int) -> Rejection:
        """Kept apart by server: one client may use a topic of one name in several clusters."""
        return super().failure_of(call._replace(host=f"{call.host} {call.server}"), error, topic, replica)

    def minutes(self) -> dict[int, Minute]:
        """By number since 1970."""
        found: dict[int, Minute] = {}
        for name in ("calls", "uses"):
            for key, one in getattr(self, name).items():
                minute, host = divided(key.host)
                getattr(found.setdefault(minute, Minute()), name)[key._replace(host=host)] = one
        for failure, count in self.failures.items():
            minute, place = divided(failure.host)
            host, _, _ = place.partition(" ")
            found.setdefault(minute, Minute()).failures.append((failure._replace(host=host), count))
        for name in ("fetched", "whole_fetch_ns"):
            for (client_id, place, more), one in getattr(self, name).items():
                minute, host = divided(place)
                getattr(found.setdefault(minute, Minute()), name)[client_id, host, more] = one
        return found

    def refused_connections(self) -> dict[tuple[int, str, str], Count]:
        """By minute, host and address."""
        found: dict[tuple[int, str, str], Count] = {}
        for one in sorted(self.connections.values(), key=lambda one: one.started_ns):
            key = one.started_ns // MINUTE_NS, one.client.host, str(one.server)
            if is_refused(one) and (key in found or len(found) < REFUSED_ALONE):
                last_ns = one.last_ns if one.unlisted else one.started_ns
                found.setdefault(key, Count()).seen(max(1, one.unlisted), one.started_ns, last_ns)
        return found


def divided(host: str) -> tuple[int, str]:
    minute, _, found = host.partition(" ")
    return int(minute), found


def add_minute(traffic: Traffic, minute: Minute) -> None:
    """Minutes come in their order; several of one minute in any."""
    for call, calls in minute.calls.items():
        merged(traffic.calls, call, calls)
    for use, count in minute.uses.items():
        merged(traffic.uses, use, count)
    for failure, count in minute.failures:
        known = traffic.failures.get(failure)
        again = known is not None and count.first_ns - known.last_ns <= STREAK_NS
        row = merged(traffic.failures, failure, count)
        if row is not None:
            row.streak = count.count + (row.streak if again else 0)
            row.streak_ns = row.streak_ns if again else count.first_ns
    for reads, asked in minute.fetched.items():
        one = traffic.fetched.setdefault(reads, Asked())
        one.asked_ns, one.forgotten_ns = max(one.asked_ns, asked.asked_ns), max(one.forgotten_ns, asked.forgotten_ns)
    for place, time_ns in minute.whole_fetch_ns.items():
        traffic.whole_fetch_ns[place] = max(traffic.whole_fetch_ns.get(place, 0), time_ns)


def merged(table: Any, key: Any, one: Any) -> Any:
    row = table.row(key, 0, one.first_ns, one.last_ns)
    if row is not None:
        row.merge(one)
    return row
