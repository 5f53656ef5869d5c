"""Rows of who says, uses or refuses a topic id, for ids about which not everybody has to agree.

Knows: which claims put an id into somebody's mouth, and who that is (a broker by its number, a controller by its epoch,
the metadata log, a client by its id). Does not know who is right: that is what checks find.
Rule: only an id that shared its name with another, was deleted or was refused has rows, for of any other there is
nothing to compare. One row per speaker, however many connections, partitions and APIs it spoke by; of clients the
first MOST_CLIENTS by their first use.
"""

from collections.abc import Iterator
from typing import NamedTuple

from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.claims.claim import Claim, Subject
from wirecheck.judge.results.result_table import ResultRow
from wirecheck.judge.results.topic_rows import known
from wirecheck.judge.topic_history import topic_of
from wirecheck.judge.topology.clusters import Group

MOST_CLIENTS = 32
REFUSALS = frozenset({"UNKNOWN_TOPIC_ID", "INCONSISTENT_TOPIC_ID", 100, 103})
BROKERS_SAY = frozenset({"metadata", "describe-topic-partitions"})
CONTROLLERS_SAY = frozenset({"leader-and-isr", "update-metadata", "stop-replica"})
LOG_SAYS = "metadata-log"


class Speaker(NamedTuple):
    """Who, and what it does with the id."""

    speaker: str
    """broker, controller, metadata-log or client."""
    who: str
    """Endpoint, controller@epoch, nothing, or client id."""
    does: str
    """says, orders, uses or refuses."""


def statements_of_id(subject: Subject, context: CheckContext) -> Iterator[ResultRow]:
    topic_id = subject[1]
    for group in known(context.groups(subject)):
        bindings = context.claims("binding", group, *subject)
        if not is_disputed(subject, bindings, group, context):
            continue
        name = min((claim["name"] for claim in bindings if claim["name"] is not None), default=None)
        for speaker, claims in spoken(subject, bindings, group, context).items():
            last = max(claims, key=lambda claim: claim.last_word)
            yield ResultRow(
                "statements",
                "|".join((group.key, topic_id, *speaker)),
                {
                    "withdrawn": False,
                    "cluster": group.cluster,
                    "name": name,
                    "topic_id": topic_id,
                    **speaker._asdict(),
                    "broker": context.broker(last) if speaker.speaker == "broker" else None,
                    "first_seen": min(claim.first.ts_ns for claim in claims),
                    "last_seen": last.last_word.ts_ns,
                    "count": sum(claim.count for claim in claims),
                },
            )


def is_disputed(subject: Subject, bindings: list[Claim], group: Group, context: CheckContext) -> bool:
    """Whether another id had its name, it was deleted, or somebody refused it."""
    names = {claim["name"] for claim in bindings if claim["name"] is not None}
    return (
        any(len(topic_of(name, group, context).histories) > 1 for name in names)
        or bool(context.claims("deletion", group, *subject))
        or bool(context.claims("id_refused", group, *subject))
        or any(claim["error"] in REFUSALS for claim in context.claims("denies", group, *subject))
    )


def spoken(subject: Subject, bindings: list[Claim], group: Group, context: CheckContext) -> dict[Speaker, list[Claim]]:
    """What was said of the id, by who said it; of clients the first few."""
    found: dict[Speaker, list[Claim]] = {}
    refusals = [claim for claim in context.claims("denies", group, *subject) if claim["error"] in REFUSALS]
    for claim in (*bindings, *context.claims("id_refused", group, *subject), *refusals):
        if (speaker := speaker_of(claim)) is not None:
            found.setdefault(speaker, []).append(claim)
    clients: dict[Speaker, list[Claim]] = {}
    for claim in context.claims("use", group, *subject):  # by first sighting
        speaker = Speaker("client", claim["client_id"] or "", "uses")
        if speaker in clients or len(clients) < MOST_CLIENTS:
            clients.setdefault(speaker, []).append(claim)
    return found | clients


def speaker_of(claim: Claim) -> Speaker | None:
    """None for an answer to an order of a client, which says what was done and not what is known."""
    if claim.kind != "binding":
        return Speaker("broker", claim["endpoint"], "refuses")
    if claim["source"] in BROKERS_SAY:
        return Speaker("broker", claim.server(), "says")
    if claim["source"] in CONTROLLERS_SAY:
        return Speaker("controller", claim["by"] or "", "orders")
    return Speaker("metadata-log", "", "says") if claim["source"] == LOG_SAYS else None
