"""Clusters told apart, whatever servers said of themselves.

Knows: that what was said of one endpoint may make it impossible to tell who belongs together, and that all others are
told apart without it. Does not know how endpoints are joined (`clusters.py`).
Rule: an exception here is a value (`failures.py`); which endpoint was left out is part of the answer.
"""

from collections.abc import Iterable
from contextlib import suppress

from streaming.judge.claim import Claim
from streaming.judge.clusters import Clusters
from streaming.judge.failures import CLUSTERS, Failures, failure
from streaming.judge.incarnations import Connections

EVERY = "all of them"


def told_apart(
    label: str, stated: Iterable[Claim], connections: Connections, failures: Failures
) -> tuple[Clusters, str | None]:
    """Who belongs together, and the endpoint that had to be left out for it, or all of them."""
    claims = list(stated)
    failures.forget(CLUSTERS)
    try:
        return Clusters(label, claims, connections), None
    except Exception as error:  # noqa: BLE001 - whatever foreign bytes can bring about
        failures.add(failure(CLUSTERS, (CLUSTERS,), error))
    for endpoint in sorted({str(claim.server()) for claim in claims}):
        with suppress(Exception):
            return Clusters(
                label, [claim for claim in claims if str(claim.server()) != endpoint], connections
            ), endpoint
    return Clusters(label), EVERY
