"""Which brokers made requests themselves.

Knows: how brokers name their own requests. Does not know what was asked.
Rule: a client ID proves nothing. It tells the brokers of one host apart, and counts only from a host that acts as that
broker: brokers name it, or it was granted a fetch with the broker's replica ID.
"""

import re
from collections.abc import Iterable

from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.claims.claim import Claim
from wirecheck.judge.topology.clusters import Group

OWN = re.compile(r"(?:broker-(?=\d+-fetcher-))?(\d{1,10})(?:-fetcher-\d+)?", re.ASCII)
"""Client IDs of brokers' own requests (ReplicaFetcherManager, NodeToControllerChannelManager)."""


def requesters(claims: Iterable[Claim], group: Group, context: CheckContext) -> str:
    """The brokers among those who asked, by number, as a word of a finding."""
    found = ((OWN.fullmatch(claim["client_id"] or ""), claim["host"]) for claim in claims)
    brokers = {(int(match[1]), host) for match, host in found if match}
    return ",".join(map(str, sorted({broker for broker, host in brokers if context.acts_as(broker, host, group)})))
