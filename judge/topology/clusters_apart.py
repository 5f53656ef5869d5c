"""Who belongs together, whatever servers say of themselves.

Knows: that the claims of one endpoint may make it impossible to separate clusters, and that all others can be separated
without it. Does not know how endpoints are joined (`clusters.py`).
Rule: an exception here is a value (`failures.py`); which endpoint was left out is part of the answer.
"""

from collections.abc import Iterable
from contextlib import suppress

from wirecheck.judge.claims.claim import Claim
from wirecheck.judge.failures import CLUSTERS, Failures, failure
from wirecheck.judge.topology.clusters import Clusters
from wirecheck.judge.topology.endpoint_history import Connections

EVERY, UNKNOWN = "all of them", ""


def separate(
    label: str, stated: Iterable[Claim], connections: Connections, failures: Failures
) -> tuple[Clusters, str | None]:
    """Who belongs together, and the endpoint that had to be left out for it, or all of them."""
    claims = list(stated)
    failures.forget(CLUSTERS)
    try:
        return Clusters(label, claims, connections), None
    except Exception as error:  # noqa: BLE001 - whatever foreign bytes can bring about
        failures.add(failure(CLUSTERS, (CLUSTERS,), error))
    servers = [server_of(claim) for claim in claims]
    for endpoint in sorted(set(servers)):
        others = [claim for claim, server in zip(claims, servers, strict=True) if server not in {endpoint, UNKNOWN}]
        with suppress(Exception):
            return Clusters(label, others, connections), endpoint
    return Clusters(label), EVERY


def server_of(claim: Claim) -> str:
    """Whom a claim is about; UNKNOWN where its key does not say."""
    with suppress(Exception):
        return str(claim.server())
    return UNKNOWN
