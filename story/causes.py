"""Which open finding follows from which: one pure function over the open last revisions.

Rule: nothing is guessed. A cause is a finding that the table allows, whose relation holds and whose time fits. If
findings of two different origins fit, or one that explains only a part, there is no cause, and all of them are named as
possible. The table has no circle, so a cause is never a consequence of its consequence. Nothing depends on the order of
findings.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, product
from typing import Any, NamedTuple

from wirecheck.decode.peer import Conversation
from wirecheck.judge.checks.cause_rules import CauseRule, rules, rules_by_consequence
from wirecheck.story.verdict import Finding, Harm
from wirecheck.wording import NS_PER_S

Subject = Finding | Harm
"""What relations are about: a harm has the fields that a finding about it would have."""
SOONER_NS = 10 * NS_PER_S
"""A consequence may seem to begin so much sooner than its cause: rates are kept per 10 s."""
LATER_NS = 30 * NS_PER_S
"""A consequence that needs its cause to last may begin so much later than it was seen last: brokers' grace."""
MOST_POSSIBLE = 16
"""So many possible causes are named, as many as a finding has sides."""
FETCHES = {"Fetch", "ShareFetch"}
CONTROL = {"LeaderAndIsr", "UpdateMetadata", "StopReplica"}


@dataclass(frozen=True)
class OpenFinding:
    """As much of an open finding as relations look at."""

    id: str
    code: str
    place: tuple[str, str]
    """Label and cluster: nothing is compared across them, but what an address that changed its cluster explains."""
    first_ns: int
    last_ns: int
    keys: Mapping[str, frozenset[Any]] = field(default_factory=dict)
    """By relation what this finding offers as a cause (`cause ...`) and asks for as a consequence."""

    @classmethod
    def of(cls, one: Finding) -> "OpenFinding | None":
        """None for a finding that is about no known cluster, or counts many: it is related to nothing."""
        if one.cluster is None or one.others is not None:
            return None
        offered = {name: keys(one) for name, keys in KEYS.items()}
        return cls(one.id, one.code, (one.label, one.cluster), one.first_ns, one.last_ns, offered)


def values(field: str) -> Callable[[Any], frozenset[Any]]:
    return lambda one: frozenset(getattr(one, field))


def nth_id(index: int) -> Callable[[Any], frozenset[Any]]:
    return lambda one: frozenset(one.topic_ids[index : index + 1])


def topic(one: Subject) -> frozenset[Any]:
    return frozenset({one.topic} - {None})


def requesters(finding: Finding) -> frozenset[int]:
    """Brokers that made the requests themselves, as the check knows them by their hosts."""
    return frozenset(int(broker) for broker in finding.words.get("requester", "").split(",") if broker)


def requests_of(finding: Finding) -> frozenset[Any]:
    """Client host, API and version of each side."""
    sides = [side for side in finding.sides if side.api is not None]
    return frozenset((Conversation.of(side.connection or "").client.host, side.api, side.version) for side in sides)


def connections(finding: Finding) -> frozenset[Any]:
    return frozenset(side.connection for side in finding.sides if side.connection)


def servers(finding: Finding) -> frozenset[Any]:
    """Where its last side was seen; of what is about fetches, where the last of those went."""
    sides = [side for side in finding.sides if side.api in FETCHES] or finding.sides
    last = max(sides, key=lambda side: (side.time_ns, side.connection or ""), default=None)
    return frozenset({str(Conversation.of(last.connection or "").server)}) if last else frozenset()


def orders_alone(finding: Finding) -> frozenset[Any]:
    """Whether it rests on controllers' requests alone, without responses."""
    return frozenset({True}) if {side.api for side in finding.sides} <= CONTROL else frozenset()


def vanished(finding: Finding) -> frozenset[Any]:
    """Whether topics are gone since a controller took over with a new metadata log."""
    return frozenset({True}) if finding.words.get("vanished") else frozenset()


def anything(_finding: Finding) -> frozenset[Any]:
    return frozenset({True})


def missed_recreation(finding: Finding) -> frozenset[Any]:
    """The new ID of a recreation, and of a replica whose broker was away then."""
    if finding.code == "TID001":
        return KEYS["new id"](finding)
    return frozenset(finding.topic_ids) if finding.words.get("recreated") else frozenset()


def by_proxy(finding: Finding) -> frozenset[Any]:
    """Where a proxy is that gives an ID of its own, by address if brokers share its host; and where clients fetch."""
    if finding.code == "TID007":
        return frozenset(str(finding.words.get("at", "")).split(" and ")) - {""}
    ends = [
        Conversation.of(side.connection).server for side in finding.sides if side.api in FETCHES and side.connection
    ]
    return frozenset(where for end in ends for where in (end.host, str(end)))


def pair(finding: Finding) -> frozenset[Any]:
    """Both ids of a change, in any order."""
    ids = frozenset(finding.topic_ids)
    return frozenset({ids}) if len(ids) == 2 else frozenset()


KEYS: Mapping[str, Callable[[Any], frozenset[Any]]] = {
    "brokers": values("brokers"),
    "a broker": values("brokers"),
    "clients": values("client_ids"),
    "any id": values("topic_ids"),
    "old id": nth_id(0),
    "new id": nth_id(1),
    "both ids": pair,
    "topic": topic,
    "requester": requesters,
    "connection": connections,
    "request": requests_of,
    "server": servers,
    "orders alone": orders_alone,
    "missed recreation": missed_recreation,
    "vanished": vanished,
    "by proxy": by_proxy,
    "anything": anything,
}
OFFERED_AS = {"requester": "brokers"}
"""What the cause must have where it is not the relation's own key."""
ASKED_AS = {"old id": "any id", "new id": "any id", "orders alone": "anything", "vanished": "anything"}
"""What the consequence must have where it is not the relation's own key.

Where `brokers` are the relation, each that the consequence is about has to be explained; where it is `a broker`, one
is enough.
"""


class Origin(NamedTuple):
    """What one finding goes back to."""

    cause: str | None = None
    possible: tuple[str, ...] = ()
    before: frozenset[str] = frozenset()
    """Every finding that it may follow from, directly or not."""


class Fit(NamedTuple):
    """What of a finding another one explains."""

    whole: bool
    size: int
    brokers: frozenset[Any]
    """Those of its brokers that it explains, where each has to be."""


NO_FIT = Fit(False, 0, frozenset())


def explained(finding: OpenFinding, fits: Sequence[Fit]) -> bool:
    """Whether these explain it whole, together."""
    brokers = frozenset().union(*(fit.brokers for fit in fits))
    return any(fit.whole for fit in fits) or (bool(brokers) and brokers >= finding.keys["brokers"])


def linked(findings: Sequence[Finding]) -> list[Finding]:
    """The same, each with what it has to do with the others."""
    causes = Causes(one for finding in findings if (one := OpenFinding.of(finding)) is not None)
    origins = {name: causes.origin(name) for name in causes.open_findings}
    consequences: dict[str, list[str]] = defaultdict(list)
    for name, origin in origins.items():
        if origin.cause:
            consequences[origin.cause].append(name)
    return [
        replace(one, cause=origin.cause, possible_causes=origin.possible, consequences=tuple(consequences[one.id]))
        for one in findings
        for origin in (origins.get(one.id, Origin()),)
    ]


CHANGED_CLUSTER = "CLU004"
"""The check about addresses: a client may keep an ID while its address leads to one cluster after the other."""


def place(finding: OpenFinding, cause: str) -> tuple[str, ...]:
    """Where a cause and what follows from it have to be."""
    return finding.place[:1] if cause == CHANGED_CLUSTER else finding.place


class Causes:
    """Findings by what they offer as causes."""

    def __init__(self, findings: Iterable[OpenFinding]) -> None:
        self.open_findings = {finding.id: finding for finding in sorted(findings, key=lambda finding: finding.id)}
        self.known: dict[str, Origin] = {}
        self.offers: dict[tuple[Any, ...], list[str]] = defaultdict(list)
        """(place, code, relations, one key of each) to ids, in their order."""
        relations_by_code: dict[str, set[tuple[str, ...]]] = defaultdict(set)
        for rule in rules():
            relations_by_code[rule.cause].add(rule.relations)
        for finding in self.open_findings.values():
            for relations in relations_by_code[finding.code]:
                for keys in product(*(finding.keys[OFFERED_AS.get(name, name)] for name in relations)):
                    self.offers[place(finding, finding.code), finding.code, relations, keys].append(finding.id)

    def origin(self, name: str) -> Origin:
        if name not in self.known:
            self.known[name] = self.traced(self.open_findings[name])
        return self.known[name]

    def traced(self, finding: OpenFinding) -> Origin:
        """Back along the rules, which have no circle, to where it began."""
        direct = self.direct(finding)
        before = frozenset(direct).union(*(self.origin(name).before for name in direct))
        nearest = [name for name in direct if not any(name in self.origin(other).before for other in direct)]
        roots = sorted({self.origin(name).cause or name for name in nearest})
        if len(roots) == 1 and (explained(finding, list(direct.values())) or self.surely(roots[0], finding)):
            return Origin(roots[0], (), before)
        return Origin(None, tuple(roots[:MOST_POSSIBLE]), before)

    def surely(self, root: str, finding: OpenFinding) -> bool:
        """Whether what a possible cause goes back to explains a finding itself, by a rule of a higher rank."""
        code, found = self.open_findings[root].code, rules_by_consequence().get(finding.code, ())
        whole = (rule for rule in found if rule.cause == code and rule.sure and "brokers" not in rule.relations)
        return any(root in self.fitting(rule, finding) for rule in whole)

    def direct(self, finding: OpenFinding) -> dict[str, "Fit"]:
        """The findings that it may follow from in one step, and what each explains."""
        found: dict[str, Fit] = {}
        rank = 0
        for rule in rules_by_consequence().get(finding.code, ()):
            if found and rule.rank > rank:
                break
            rank = rule.rank
            for name in self.fitting(rule, finding):
                each = "brokers" in rule.relations
                brokers = self.open_findings[name].keys["brokers"] & finding.keys["brokers"] if each else frozenset()
                found[name] = max(
                    found.get(name, NO_FIT), Fit(rule.sure and not each, len(brokers), brokers), key=lambda fit: fit[:2]
                )
        return dict(sorted(found.items())[: MOST_POSSIBLE + 1])

    def fitting(self, rule: CauseRule, finding: OpenFinding) -> Iterator[str]:
        """Findings of the rule's cause that have its relation to this one, at a time that fits; per key only the first
        ones, because `direct` keeps no more.
        """
        for keys in product(*(finding.keys[ASKED_AS.get(name, name)] for name in rule.relations)):
            offered = self.offers.get((place(finding, rule.cause), rule.cause, rule.relations, keys), ())
            yield from islice(
                (name for name in offered if fits(rule, self.open_findings[name], finding)), MOST_POSSIBLE + 1
            )


def fits(rule: CauseRule, cause: OpenFinding, finding: OpenFinding) -> bool:
    """Whether the cause's time fits."""
    lasts = not rule.lasting or finding.first_ns <= cause.last_ns + LATER_NS
    return cause.first_ns <= finding.first_ns + SOONER_NS and lasts
