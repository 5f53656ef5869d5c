"""The table of agreement: who states which ID of each topic, and which versions each server advertises and answers.

Knows: the ledger of one label as it stands at the end of a run. Does not know which rows contradict each other: the
findings show that (`story/agreement.py`).
Rule: no ID is a statement, too: null where a message carries IDs and has none, absent where its version carries none.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wirecheck.decode.api_names import key_of, name_of
from wirecheck.judge.checks.shapes import controllers_named
from wirecheck.judge.checks.statements import ORDERS
from wirecheck.judge.claims.claim import ZERO, Claim
from wirecheck.judge.claims.outcomes import SUCCESS
from wirecheck.judge.results.topic_rows import LOG_SAYS
from wirecheck.judge.topology.releases import read

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from wirecheck.judge.check_context import CheckContext
    from wirecheck.judge.topology.clusters import Group

NULL, ABSENT = "null", "absent"
REJECTED = ("version_error", "closed_on")


@dataclass(frozen=True)
class TopicStatement:
    """What one party states as a topic's ID, in one kind of message."""

    cluster: str
    topic: str | None
    """Its name; None where no message names the ID."""
    topic_id: str | None
    """None for no ID."""
    stated: str
    """ID, null (the message carries IDs and has none) or absent (its version carries none)."""
    party: str
    """The broker, or its address; the controller with its epoch; the metadata log."""
    api: str
    """The kind of message; a granted use of an ID is the API's name alone."""
    first_ns: int
    last_ns: int
    count: int


@dataclass(frozen=True)
class ApiVersions:
    """One API at one server: what it advertises, and what became of the versions that it was sent."""

    cluster: str
    server: str
    api: str
    advertised: tuple[str, ...]
    """The ranges, in the order in which they were advertised, as 0-12."""
    used: tuple[int, ...]
    """Versions of requests."""
    answered: tuple[int, ...]
    """Versions that were answered, with whatever error but UNSUPPORTED_VERSION; of ApiVersions none, as every version
    of it is answered.
    """
    rejected: tuple[int, ...]
    """Versions that were answered with UNSUPPORTED_VERSION, or by closing the connection."""


def topic_statements(context: CheckContext) -> Iterator[TopicStatement]:
    for subject in sorted(context.ledger.subjects("name")):
        for group in context.groups(subject):
            yield from of_claims(subject[1], context.claims("binding", group, *subject), group, context)
    for subject in sorted(context.ledger.subjects("id")):
        for group in context.groups(subject):
            names = {claim["name"] for claim in context.claims("binding", group, *subject)}
            name = min(names) if len(names) == 1 else None
            yield from uses(name, subject[1], group, context)


def of_claims(name: str, claims: Iterable[Claim], group: Group, context: CheckContext) -> Iterator[TopicStatement]:
    found: dict[tuple[str | None, str, str], list[Claim]] = defaultdict(list)
    for claim in claims:
        found[claim["topic_id"], party(claim, context), claim.first.api or claim["source"]].append(claim)
    for (topic_id, who, api), same in found.items():
        stated = NULL if topic_id == ZERO else ABSENT if topic_id is None else "ID"
        span = min(claim.first.ts_ns for claim in same), max(claim.last_word.ts_ns for claim in same)
        shown, count = None if topic_id == ZERO else topic_id, sum(claim.count for claim in same)
        yield TopicStatement(group.key, name, shown, stated, who, api, *span, count)


def uses(name: str | None, topic_id: str, group: Group, context: CheckContext) -> Iterator[TopicStatement]:
    """Granted uses of an ID, by server and API."""
    found: dict[tuple[str, str], list[tuple[int, int, int]]] = defaultdict(list)
    for claim in context.claims("use", group, "id", topic_id):
        for run in claim.outcomes.runs({SUCCESS}):
            found[party(claim, context), claim["api"]].append((run.first_ns, run.last_ns, run.count))
    for (who, api), runs in found.items():
        first_ns, last_ns = min(run[0] for run in runs), max(run[1] for run in runs)
        count = sum(run[2] for run in runs)
        yield TopicStatement(group.key, name, topic_id, "ID", who, api, first_ns, last_ns, count)


def party(claim: Claim, context: CheckContext) -> str:
    if claim.kind == "binding" and claim["source"] in ORDERS:
        return f"controller {controllers_named([claim['by']])}"
    if claim.kind == "binding" and claim["source"] == LOG_SAYS:
        return "metadata log"
    node = context.node(claim)
    return f"broker {node}" if isinstance(node, int) else node


def api_versions(context: CheckContext) -> Iterator[ApiVersions]:
    for group in sorted(context.clusters.groups, key=lambda group: (group.key, group.endpoints)):
        ranges: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
        answered: dict[tuple[str, str], set[int]] = defaultdict(set)
        for claim in context.claims("advertised", group, "server"):
            for key, (low, high) in read(claim["ranges"]).items():
                ranges[claim["endpoint"], name_of(key)][f"{low}-{high}"] = None
        for claim in context.claims("accepts", group, "server"):
            for word in claim.peak:
                api, _, version = word.rpartition(":")
                answered[claim["endpoint"], api].add(int(version))
        used, rejected = of_clients(group, context)
        seen = {*used, *answered, *rejected}
        servers = {endpoint for endpoint, _ in seen}
        for endpoint, api in sorted(seen | {place for place in ranges if place[0] not in servers}, key=in_order):
            place = endpoint, api
            numbers = (tuple(sorted(found.get(place, ()))) for found in (used, answered, rejected))
            yield ApiVersions(group.key, endpoint, api, tuple(ranges.get(place, ())), *numbers)


def in_order(place: tuple[str, str]) -> tuple[str, int, str]:
    return place[0], key_of(place[1]), place[1]


Versions = dict[tuple[str, str], set[int]]


def of_clients(group: Group, context: CheckContext) -> tuple[Versions, Versions]:
    """By server and API the versions that clients sent, and those that the server rejected."""
    used: Versions = defaultdict(set)
    rejected: Versions = defaultdict(set)
    for subject in sorted(context.ledger.subjects("client")):
        for claim in context.claims("client", group, *subject):
            for word in claim.tally:
                api, _, version = word.rpartition(":")
                used[claim["endpoint"], api].add(int(version))
        for kind in REJECTED:
            for claim in context.claims(kind, group, *subject):
                rejected[claim["endpoint"], claim["api"]].add(claim["version"])
    return used, rejected
