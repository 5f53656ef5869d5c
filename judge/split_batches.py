"""Producers that split a batch which is larger than its topic takes, and send its records again (KIP-126).

Rule: as long as some of its writes are granted, MESSAGE_TOO_LARGE says nothing against such a producer; nor against one
that may be one, as its library is not known. A record that is too large by itself is rejected alike, and is not seen.
"""

from collections.abc import Iterable

from wirecheck.judge.claims.claim import Claim

LIBRARIES = frozenset({"apache-kafka-java", "kafka-python"})
"""By their names in ApiVersions. Others lose the records of the batch."""
PRODUCE, MESSAGE_TOO_LARGE = "Produce", 10


def may_split(software: Iterable[Claim]) -> bool:
    """Of a client, by what it stated of its library."""
    names = {claim["name"] for claim in software}
    return not names or not LIBRARIES.isdisjoint(names)


def is_split(api: str, errors: Iterable[int]) -> bool:
    """Whether errors among successes are those of batches that were too large."""
    return api == PRODUCE and {*errors} == {MESSAGE_TOO_LARGE}
