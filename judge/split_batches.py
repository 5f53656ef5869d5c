"""Producers that split a batch which is larger than its topic takes, and send its records again (KIP-126).

Rule: as long as its smaller writes are granted, MESSAGE_TOO_LARGE says nothing against such a producer; nor against one
that may be one, as its library is not known and a part of its connections was not captured: their beginning states it.
Each batch that is split ends in two that are granted, or more: who is rejected far more often splits into what is as
large. A record that is too large by itself is lost: what is granted beside it is smaller by far.
"""

from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.claims.claim import Subject
from wirecheck.judge.claims.extract.clients import LARGEST_BYTES, MESSAGE_TOO_LARGE
from wirecheck.judge.claims.outcomes import SUCCESS, Outcomes
from wirecheck.judge.streaks import Streak

LIBRARIES = frozenset({"apache-kafka-java", "kafka-python"})
"""By their names in ApiVersions. Others lose the records of the batch."""
PRODUCE, OUT_OF_ORDER_SEQUENCE = "Produce", 45
REJECTED_FOR_ONE = 2
"""So many rejections for each write that is granted are still those of splits: ends of the time may cut some off."""


PARTS = 4
"""Java and kafka-python halve a batch until its parts are taken: none is smaller than this part of what was too large.
"""


def may_split(client: Subject, context: CheckContext) -> bool:
    claims = context.ledger.claims
    wrote = claims("client", *client)
    least_bytes = LARGEST_BYTES - max((one.peak.get("too_large", 0) for one in wrote), default=0)
    largest_bytes = max((one.peak.get("largest_bytes", 0) for one in wrote), default=0)
    if least_bytes < LARGEST_BYTES and largest_bytes * PARTS < least_bytes:
        return False
    if names := {claim["name"] for claim in claims("software", *client)}:
        return not LIBRARIES.isdisjoint(names)
    wrote_to = {claim["endpoint"] for claim in claims("activity", *client) if claim["api"] == PRODUCE}
    lacking = (one for at in wrote_to for kind in ("midway", "missing") for one in claims(kind, "link", at))
    return any(one["host"] == client[2] for one in lacking)


def is_split(api: str, part: Streak, outcomes: Outcomes) -> bool:
    """Whether errors among successes are those of batches that were too large, and of what an idempotent producer had
    sent behind them.
    """
    errors = {*part.errors}
    if api != PRODUCE or MESSAGE_TOO_LARGE not in errors or not errors <= {MESSAGE_TOO_LARGE, OUT_OF_ORDER_SEQUENCE}:
        return False
    every = outcomes.runs({SUCCESS})
    granted = sum(run.count for run in every if run.last_ns >= part.first_ns and run.first_ns <= part.last_ns)
    return part.count <= REJECTED_FOR_ONE * granted
