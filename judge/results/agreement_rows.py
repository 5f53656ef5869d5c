"""Rows of the table of agreement: who states which ID of each topic, and which versions each server advertises and
answers.

Knows: the ledger of one label. Does not know which rows contradict each other: the findings show that
(`story/agreement.py`).
Rule: no ID is a statement, too: null where a message carries IDs and has none, absent where its version carries none.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from wirecheck.decode.api_names import key_of, name_of
from wirecheck.decode.releases import beside, estimate, lines_of, read, role_of
from wirecheck.judge.checks.shapes import controllers_named
from wirecheck.judge.checks.statements import ORDERS
from wirecheck.judge.claims.claim import ZERO, Claim, Subject
from wirecheck.judge.claims.outcomes import SUCCESS
from wirecheck.judge.results.result_table import ResultRow
from wirecheck.judge.results.topic_rows import LOG_SAYS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from wirecheck.judge.check_context import CheckContext
    from wirecheck.judge.topology.clusters import Group

NULL, ABSENT = "null", "absent"
UNKNOWN, NONE = "unknown", "none"
"""A release that is not known; a range of versions that a release, or a server, does not have."""


@dataclass(frozen=True)
class TopicStatement:
    """What one party states as a topic's ID, in one kind of message."""

    cluster: str | None
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

    cluster: str | None
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
    release: str
    """The Kafka release that the server's ranges fit, as 3.9 or 3.7-3.8; several if it was upgraded; unknown for
    servers of others; empty without an ApiVersions answer.
    """
    release_has: tuple[str, ...]
    """What that release has where the server differs: ranges, or none. An API that this server lacks, and others of the
    release advertise, is a difference too.
    """

    @property
    def difference(self) -> str:
        """`Fetch 0-11, not 0-17`, `no ListGroups`; empty where the server has what its release has."""
        if not self.release_has:
            return ""
        if not self.advertised:
            return f"no {self.api}"
        has = " or ".join(one for one in self.release_has if one != NONE)
        return f"{self.api} {', '.join(self.advertised)}{f', not {has}' if has else ' besides'}"


class Stated(NamedTuple):
    """What makes one row."""

    topic_id: str | None
    party: str
    api: str


Seen = list[tuple[int, int, int]]
"""From when to when, and how often."""


def statements_of_name(subject: Subject, context: CheckContext) -> Iterator[ResultRow]:
    """What a topic's ID is in messages that have its name."""
    for group in context.groups(subject):
        found: dict[Stated, Seen] = defaultdict(list)
        for claim in context.claims("binding", group, *subject):
            stated = Stated(claim["topic_id"], party(claim, context), claim.first.api or claim["source"])
            found[stated].append((claim.first.ts_ns, claim.last_word.ts_ns, claim.count))
        for one, seen in found.items():
            yield statement(group, subject[1], one, seen, "name")


def uses_of_id(subject: Subject, context: CheckContext) -> Iterator[ResultRow]:
    """Granted uses of an ID, by server and API."""
    for group in context.groups(subject):
        names = {claim["name"] for claim in context.claims("binding", group, *subject)}
        found: dict[Stated, Seen] = defaultdict(list)
        for claim in context.claims("use", group, *subject):
            if runs := claim.outcomes.runs({SUCCESS}):
                one = Stated(subject[1], party(claim, context), claim["api"])
                found[one] += [(run.first_ns, run.last_ns, run.count) for run in runs]
        for one, seen in found.items():
            yield statement(group, min(names) if len(names) == 1 else None, one, seen, "use")


def statement(group: Group, name: str | None, one: Stated, seen: Seen, how: str) -> ResultRow:
    stated = NULL if one.topic_id == ZERO else ABSENT if one.topic_id is None else "ID"
    first_ns, last_ns, counts = zip(*seen, strict=True)
    return ResultRow.of(
        "topic_statements",
        "|".join((group.key, how, name or "" if how == "name" else "", one.topic_id or stated, one.party, one.api)),
        group.cluster,
        topic=name,
        topic_id=one.topic_id if stated == "ID" else None,
        stated=stated,
        party=one.party,
        api=one.api,
        first_seen=min(first_ns),
        last_seen=max(last_ns),
        count=sum(counts),
    )


def party(claim: Claim, context: CheckContext) -> str:
    if claim.kind == "binding" and claim["source"] in ORDERS:
        return f"controller {controllers_named([claim['by']])}"
    if claim.kind == "binding" and claim["source"] == LOG_SAYS:
        return "metadata log"
    node = context.node(claim)
    return f"broker {node}" if isinstance(node, int) else node


Place = tuple[str, str]
"""A server and an API."""
Found = dict[Place, dict[str, None]]
"""In order, once each."""


def api_versions(subject: Subject, context: CheckContext) -> Iterator[ResultRow]:
    for group in sorted(context.groups(subject), key=lambda group: (group.key, group.endpoints)):
        advertised = context.claims("advertised", group, *subject)
        ranges, has = advertised_ranges(advertised), differing(advertised)
        releases: dict[str, dict[str, None]] = defaultdict(dict)
        for claim in advertised:
            releases[claim["endpoint"]][estimate(claim["ranges"]) or UNKNOWN] = None
        by_kind = {kind: versions(context.claims(kind, group, *subject)) for kind in ("receives", "accepts", "rejects")}
        for server, api in sorted(
            {*ranges, *has}.union(*by_kind.values()), key=lambda at: (at[0], key_of(at[1]), at[1])
        ):
            asked, answered, rejected = (sorted(found.get((server, api), ())) for found in by_kind.values())
            yield ResultRow.of(
                "api_versions",
                f"{group.key}|{server}|{api}",
                group.cluster,
                server=server,
                api=api,
                advertised=[*ranges.get((server, api), ())],
                used=asked,
                answered=answered,
                rejected=rejected,
                release=", ".join(releases.get(server, ())),
                release_has=[*has.get((server, api), ())],
            )


def versions(claims: Iterable[Claim]) -> dict[Place, set[int]]:
    found: dict[Place, set[int]] = defaultdict(set)
    for claim in claims:
        for word in claim.peak:
            api, _, version = word.rpartition(":")
            found[claim["endpoint"], api].add(int(version))
    return found


def advertised_ranges(advertised: Iterable[Claim]) -> Found:
    found: Found = defaultdict(dict)
    for claim in advertised:
        for key, (low, high) in read(claim["ranges"]).items():
            found[claim["endpoint"], name_of(key)][spelled(low, high)] = None
    return found


def spelled(low: int, high: int) -> str:
    return f"{low}-{high}"


def differing(advertised: list[Claim]) -> Found:
    """What the release of each server has where the server has something else, or nothing."""
    found: Found = defaultdict(dict)
    serves: dict[tuple[object, ...], dict[int, tuple[int, int]]] = defaultdict(dict)
    has: dict[str, set[int]] = defaultdict(set)
    for claim in advertised:
        own = {key for key, span in beside(claim["ranges"]) if span is None}
        serves[kind_of(claim)].update({key: one for key, one in read(claim["ranges"]).items() if key not in own})
        has[claim["endpoint"]].update(read(claim["ranges"]))
    for claim in advertised:
        others = serves[kind_of(claim)]
        for key, span in beside(claim["ranges"]):
            found[claim["endpoint"], name_of(key)][NONE if span is None else spelled(*span)] = None
        for key in sorted(others.keys() - has[claim["endpoint"]]) if lines_of(claim["ranges"]) else ():
            found[claim["endpoint"], name_of(key)][spelled(*others[key])] = None
    return found


def kind_of(claim: Claim) -> tuple[object, ...]:
    """Of servers that serve the same: those of one release and role."""
    return lines_of(claim["ranges"]), role_of(claim["ranges"])
