"""Connections without an answer that are too many for rows of their own: what coverage counts of all of them together,
and what their clients asked for in vain.

Rule: each measure is one claim, as agents' marks are, so that it costs the same however many connections there were;
so is each API of a client, and what a server refuses of a host in 10 s. Nothing else is derived from what was sent on
them: of as many as have rows it was.
"""

from collections import Counter
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from wirecheck.decode.connection.exchanges import OUTCOMES, Exchanges
from wirecheck.decode.message import Decoded, Status
from wirecheck.decode.peer import NO_PORT
from wirecheck.judge.claims.batch import Batch
from wirecheck.judge.claims.claim import Claim
from wirecheck.judge.claims.extract import activities, clients, volumes
from wirecheck.judge.claims.extract.wire_format import is_refused, turned_away
from wirecheck.judge.claims.reduce import moment, reduced

OTHERS = "others"
"""Stands for all of these connections, in place of an agent's name."""
MEASURE = "unlisted_connections"
FACTS = ("frames", "payload_bytes", "requests", "resynchronised", "skipped_bytes", "conflicting_bytes", "limits_hit")
"""Facts of a connection that coverage counts; one without an answer has no others."""
Measure = tuple[str, str | None]
"""And its detail."""


def is_unlisted(exchanges: Exchanges) -> NDArray[np.bool_]:
    """Per connection."""
    return np.array([one.unlisted > 0 for one in exchanges.connections], np.bool_)


def apart(exchanges: Exchanges) -> tuple[Exchanges, Exchanges]:
    """What has rows of its own, and the others."""
    others = is_unlisted(exchanges)
    of_others = others[exchanges.connection[exchanges.first]]
    return exchanges.only(np.flatnonzero(~of_others)), exchanges.only(np.flatnonzero(of_others))


def claims(exchanges: Exchanges, decoded: Decoded) -> Iterator[Claim]:
    found = [one for one in exchanges.connections if one.unlisted]
    counts = Counter[Measure]()
    for one in found:
        counts[MEASURE, None] += one.unlisted
        counts["connections", one.protocol] += one.unlisted
    for fact in FACTS:
        counts[fact, None] = sum(getattr(one, fact) for one in found)
    counts["messages", None] = len(decoded)
    counts.update(map(status_measure, decoded.status.tolist()))
    counts.update(("exchanges", OUTCOMES[outcome].replace("-", "_")) for outcome in exchanges.outcome.tolist())
    first, last = moment(min(one.started_ns for one in found)), moment(max(one.last_ns for one in found))
    for (measure, detail), count in counts.items():
        if count:
            yield Claim("mark", (OTHERS, measure, None, detail), first, last, tally={"count": count})
    yield from (turned_away(one) for one in found if is_refused(one) and one.server.port != NO_PORT)
    if len(decoded):
        yield from asked(Batch(exchanges, decoded))


def asked(batch: Batch) -> Iterator[Claim]:
    """The requests of each client, and what came of them."""
    rows = (one for family in (activities, clients, volumes) for one in family.claims(batch) if one.kind in OF_CLIENTS)
    yield from (claim for one in rows for claim in reduced(one, batch.sightings))
    yield from activities.waits(batch)


OF_CLIENTS = frozenset({"activity", "client", "exchanged"})


def status_measure(status: int) -> Measure:
    return ("decoded_messages", None) if status == Status.OK else ("undecoded_messages", Status(status).name.lower())
