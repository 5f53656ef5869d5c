"""Producers that split a batch which is larger than its topic takes, and send its records again (KIP-126).

Rule: as long as some of its writes are granted, MESSAGE_TOO_LARGE says nothing against such a producer; nor against one
that may be one, as the beginning of its connections was not captured, where it states its library. A record that is too
large by itself is rejected alike, and is not seen.
"""

from collections.abc import Iterable

from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.claims.claim import Subject

LIBRARIES = frozenset({"apache-kafka-java", "kafka-python"})
"""By their names in ApiVersions. Others lose the records of the batch."""
PRODUCE, MESSAGE_TOO_LARGE = "Produce", 10


def may_split(client: Subject, context: CheckContext) -> bool:
    claims = context.ledger.claims
    if names := {claim["name"] for claim in claims("software", *client)}:
        return not LIBRARIES.isdisjoint(names)
    wrote_to = {claim["endpoint"] for claim in claims("activity", *client) if claim["api"] == PRODUCE}
    return any(one["host"] == client[2] for endpoint in wrote_to for one in claims("midway", "link", endpoint))


def is_split(api: str, errors: Iterable[int]) -> bool:
    """Whether errors among successes are those of batches that were too large."""
    return api == PRODUCE and {*errors} == {MESSAGE_TOO_LARGE}
