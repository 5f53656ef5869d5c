"""Who belongs together, whatever servers say of themselves.

Knows: that the claims of one endpoint may make it impossible to separate clusters, and that all others can be separated
without it; that servers say the same again all day, which changes nothing. Does not know how endpoints are joined
(`clusters.py`).
Rule: an exception here is a value (`failures.py`); which endpoint was left out is part of the answer. What was told
apart holds for the same claims, in whatever process: it is remembered for the last few, and only until when something
was said is worked out again.
"""

from collections import OrderedDict, defaultdict
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from wirecheck.judge.claims.claim import Claim
from wirecheck.judge.claims.kinds import UNANSWERED
from wirecheck.judge.failures import CLUSTERS, Failures, failure
from wirecheck.judge.ledger.ledger import in_order
from wirecheck.judge.topology.clusters import Clusters
from wirecheck.judge.topology.endpoint_history import Connections
from wirecheck.judge.topology.shared_ids import Reports, by_heartbeats, contradictions, unreported

EVERY, UNKNOWN = "all of them", ""
TOLD = frozenset({"names", "carries", f"{UNANSWERED}carries"})
"""Kinds of claims that are sets: their members decide."""
REMEMBERED: "OrderedDict[Any, Clusters]" = OrderedDict()
MOST = 4
"""So many answers are remembered: one per label, and the one before."""


def separate(
    label: str, stated: Iterable[Claim], connections: Connections, failures: Failures, reports: Reports = unreported
) -> tuple[Clusters, str | None]:
    """Who belongs together, and the endpoint that had to be left out for it, or all of them."""
    claims = list(stated)
    failures.forget(CLUSTERS)
    try:
        return remembered(label, claims, connections, reports), None
    except Exception as error:  # noqa: BLE001 - whatever foreign bytes can bring about
        failures.add(failure(CLUSTERS, (CLUSTERS,), error))
    servers = [server_of(claim) for claim in claims]
    for endpoint in sorted(set(servers)):
        others = [claim for claim, server in zip(claims, servers, strict=True) if server not in {endpoint, UNKNOWN}]
        with suppress(Exception):
            return Clusters(label, others, connections, reports), endpoint
    return Clusters(label), EVERY


def remembered(label: str, claims: list[Claim], connections: Connections, reports: Reports) -> Clusters:
    if not settled(claims):
        return Clusters(label, claims, connections, reports)
    words = label, tuple(map(substance, in_order(claims)))
    found = REMEMBERED.pop(words, None)
    if found is None:
        found = Clusters(label, claims, connections, reports)
    else:
        found.say_until(claims)
    REMEMBERED[words] = found
    while len(REMEMBERED) > MOST:
        REMEMBERED.popitem(last=False)
    return found


def substance(claim: Claim) -> tuple[Any, ...]:
    """What decides where an endpoint belongs while nobody takes a word back: the order of words, not their times."""
    return claim.kind, claim.key, tuple(sorted(claim.peak)) if claim.kind in TOLD else bool(claim.peak.get("answers"))


def settled(claims: Iterable[Claim]) -> bool:
    """Whether no endpoint was said to be of two clusters, no address two brokers', and no broker number names a topic
    by two ids or is accepted by two controllers: where one was, it matters until when each was said.
    """
    claims = list(claims)
    kinds: dict[str, list[Claim]] = {"names": [], "address": [], "broker_epoch": [], "registration": []}
    for claim in claims:
        if claim.kind in kinds:
            kinds[claim.kind].append(claim)
    if any(True for _ in (*contradictions(kinds), *by_heartbeats(kinds, common_slots=1))):
        return False
    words: dict[tuple[str, str], set[Any]] = defaultdict(set)
    for claim in claims:
        if claim.kind == "cluster_id":
            words["cluster", claim["endpoint"]].add(claim["cluster_id"])
        elif claim.kind == "log_epoch":
            words["log", claim["epoch"]].add(claim["written"])
        elif claim.kind.removeprefix(UNANSWERED) == "address":
            words["address", claim["address"]].add(claim["broker"])
    return all(len(found) == 1 for found in words.values())


def server_of(claim: Claim) -> str:
    """Whom a claim is about; UNKNOWN where its key does not say."""
    with suppress(Exception):
        return str(claim.server())
    return UNKNOWN
