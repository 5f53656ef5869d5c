"""Sums of an endpoint: what its connections add to them, of which connection it is, and what is left of it without one.

Knows: which kinds of claims connections add, and that a settled connection has no name there. Does not know what makes
a connection add something (`connection_account.py`).
Rule: what a check reads of a sum is the same whether a connection in it has settled or not.
"""

from collections.abc import Iterable

from wirecheck.judge.claims.claim import Claim, Key, merged
from wirecheck.judge.claims.kinds import KINDS
from wirecheck.judge.ledger.ledger import in_order

ADDED = frozenset({"midway", "encrypted", "unread", "missing", "unpaired", "outside", "asked", "partial", "unreadable"})
"""Kinds of what connections add to sums."""
CUT = "cut"
"""A peak of what is kept of a connection's client ids when there were more: nobody knows whose it is then."""


def connection_of(added: Claim) -> Key | None:
    """Endpoint, client and start of the connection that adds something; None of a sum of settled ones."""
    client = added["client"]
    return None if client is None else (added["endpoint"], client, added["started_ns"])


def nameless(added: Claim) -> Claim:
    """The same without the connection's name."""
    at = KINDS[added.kind].at
    key = tuple(None if place in {at["client"], at["started_ns"]} else part for place, part in enumerate(added.key))
    return Claim(
        added.kind, key, added.first, added.last, count=added.count, tally=dict(added.tally), peak=dict(added.peak)
    )


def summed(added: Iterable[Claim]) -> list[Claim]:
    """One claim per sum, in the order of their first sightings, whichever of their connections have settled."""
    return in_order(merged(nameless(claim) for claim in added))
