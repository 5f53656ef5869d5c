"""Sums of an endpoint: what its connections add to them, of which connection it is, and what is left of it without one.

Rule: what a check reads of a sum is the same whether a connection in it has settled or not. A union does not depend on
the order of what is united, and its bounds are by number.
"""

from collections.abc import Iterable
from itertools import pairwise

from wirecheck.judge.claims.claim import Claim, Key, merged
from wirecheck.judge.claims.kinds import KINDS
from wirecheck.judge.ledger.ledger import in_order

ADDED = frozenset(
    {
        "midway",
        "encrypted",
        "unread",
        "missing",
        "unpaired",
        "outside",
        "outside_of_others",
        "ranges_hold",
        "asked",
        "closed_after",
        "partial",
        "unreadable",
    }
)
"""Kinds of what connections add to sums."""
BROKEN, CONTINUED = "bytes or messages of a connection are missing", "a connection continues a session"
ANSWERS = "responses of a connection may be missing"
"""Why part of the traffic of a connection is unknown. The times of the first are those of its requests."""
UNTIMED = "untimed"
"""A peak of one of which bytes are missing: from when on it is not known when, as a negative number; 0 is from ever."""
SIZE = "bytes"
"""How many bytes are missing of one, at most; where its client is unknown, how many were sent on it, and back."""
MUCH, MUCH_ONE_IN = "much", 10
"""A peak of one of which a good part is missing, one byte in so many: as all of the large requests."""
LASTED = "lasted"
"""A peak of one that lasted for longer than a moment."""
MOMENT_NS = 10_000_000_000
"""A lost packet of a heartbeat lacks until the next one: some seconds."""
MIDWAY = "midway"
"""A peak of one whose beginning was not captured."""
NOT_YET_NS = 1 << 62
"""Until when bytes are missing behind which nothing was read."""
CUT = "cut"
"""A peak of the first kept claim about a connection's client IDs, if there were more than are kept. Then any client may
be on the connection.
"""


def connection_of(added: Claim) -> Key | None:
    """Endpoint, client and start of the connection that adds something; None of a sum of settled ones."""
    client = added["client"]
    return None if client is None else (added["endpoint"], client, added["started_ns"])


def nameless(added: Claim) -> Claim:
    """The claim without the connection's name."""
    at = KINDS[added.kind].at
    key = tuple(None if place in {at["client"], at["started_ns"]} else part for place, part in enumerate(added.key))
    return Claim(
        added.kind, key, added.first, added.last, count=added.count, tally=dict(added.tally), peak=dict(added.peak)
    )


def summed(added: Iterable[Claim]) -> list[Claim]:
    """One claim per sum, in the order of their first sightings, whichever of their connections have settled."""
    return in_order(merged(nameless(claim) for claim in added))


Spans = list[list[int]]
QUIET_NS = 1_000_000_000
"""Shorter pauses are ignored."""
MOST_SPANS = 256
"""Of more the shortest silences are given up, so that too much is called busy, never too little."""


def united(spans: Spans, more: Iterable[tuple[int, int]]) -> Spans:
    """Spans that do not touch each other, in order."""
    found: Spans = []
    for first_ns, last_ns in sorted([*map(tuple, spans), *more]):
        if found and first_ns <= found[-1][1] + QUIET_NS:
            found[-1][1] = max(found[-1][1], last_ns)
        else:
            found.append([first_ns, last_ns])
    return bounded(found)


def bounded(spans: Spans) -> Spans:
    """The longest silences between them stay."""
    if len(spans) <= MOST_SPANS:
        return spans
    silences = sorted((before[1] - after[0], place) for place, (before, after) in enumerate(pairwise(spans), 1))
    begins = sorted(place for _, place in silences[: MOST_SPANS - 1])
    return [[spans[at][0], spans[until - 1][1]] for at, until in pairwise([0, *begins, len(spans)])]


def since(spans: Spans, oldest_ns: int) -> Spans:
    return [span for span in spans if span[1] >= oldest_ns]
