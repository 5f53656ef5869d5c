"""Which open finding follows from which: one pure function over the open last revisions.

Rule: nothing is guessed. A cause is a finding that the table allows, whose relation holds and whose time fits. If
findings of two different origins fit, or one that explains only a part, there is no cause, and all of them are named as
possible. The table has no circle, so a cause is never a consequence of its consequence. Nothing depends on the order of
findings.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, product
from typing import Any, NamedTuple

from wirecheck.decode.peer import Conversation
from wirecheck.judge.checks.cause_rules import CauseRule, rules, rules_by_consequence

Row = Mapping[str, Any]
SOONER_S = 10
"""A consequence may seem to begin so much sooner than its cause: rates are kept per 10 s."""
LATER_S = 30
"""A consequence that needs its cause to last may begin so much later than it was seen last: brokers' grace."""
MOST_POSSIBLE = 16
"""So many possible causes are named, as many as a finding has sides."""
FETCHES = {"Fetch", "ShareFetch"}
CONTROL = {"LeaderAndIsr", "UpdateMetadata", "StopReplica"}


@dataclass(frozen=True)
class Linked:
    """What one finding has to do with the others, by their ids."""

    cause: str | None = None
    """The origin, which is itself not a consequence; None without one."""
    possible_causes: tuple[str, ...] = ()
    consequences: tuple[str, ...] = ()


@dataclass(frozen=True)
class OpenFinding:
    """As much of an open finding as relations look at; times in seconds."""

    id: str
    code: str
    place: tuple[str, str]
    """Label and cluster: nothing is compared across them, but what an address that changed its cluster explains."""
    first_s: float
    last_s: float
    keys: Mapping[str, frozenset[Any]] = field(default_factory=dict)
    """By relation what this finding offers as a cause (`cause ...`) and asks for as a consequence."""

    @classmethod
    def of(cls, row: Row) -> "OpenFinding | None":
        """None for a finding that is about no known cluster, or counts many: it is related to nothing."""
        if row["cluster"] is None or row.get("others") is not None:
            return None
        place = (row["label"], row["cluster"])
        times = (row["first_seen"].timestamp(), row["last_seen"].timestamp())
        return cls(row["id"], row["code"], place, *times, {name: keys(row) for name, keys in KEYS.items()})


def values(column: str) -> Callable[[Row], frozenset[Any]]:
    return lambda row: frozenset(row[column] or ())


def nth_id(index: int) -> Callable[[Row], frozenset[Any]]:
    return lambda row: frozenset(row["topic_ids"][index : index + 1])


def topic(row: Row) -> frozenset[Any]:
    return frozenset({row["topic"]} - {None})


def requesters(row: Row) -> frozenset[Any]:
    """Brokers that made the requests themselves, as the check knows them by their hosts."""
    return frozenset(int(broker) for broker in str(words_of(row).get("requester", "")).split(",") if broker)


def words_of(row: Row) -> Mapping[str, Any]:
    words = row["words"]
    return words if isinstance(words, Mapping) else {word["name"]: word["value"] for word in words}


def requests_of(row: Row) -> frozenset[Any]:
    """Client host, API and version of each side."""
    sides = [side for side in row["sides"] if side["api"] is not None]
    return frozenset(
        (Conversation.of(side["connection"] or "").client.host, side["api"], side["version"]) for side in sides
    )


def connections(row: Row) -> frozenset[Any]:
    return frozenset(side["connection"] for side in row["sides"] if side["connection"])


def servers(row: Row) -> frozenset[Any]:
    """Where its last side was seen; of what is about fetches, where the last of those went."""
    sides = [side for side in row["sides"] if side["api"] in FETCHES] or row["sides"]
    last = max(sides, key=lambda side: (side.get("time", 0), side["connection"] or ""), default=None)
    return frozenset({str(Conversation.of(last["connection"] or "").server)}) if last else frozenset()


def orders_alone(row: Row) -> frozenset[Any]:
    """Whether it rests on controllers' requests alone, without responses."""
    return frozenset({True}) if {side["api"] for side in row["sides"]} <= CONTROL else frozenset()


def vanished(row: Row) -> frozenset[Any]:
    """Whether topics are gone since a controller took over with a new metadata log."""
    return frozenset({True}) if words_of(row).get("vanished") else frozenset()


def anything(_row: Row) -> frozenset[Any]:
    return frozenset({True})


def missed_recreation(row: Row) -> frozenset[Any]:
    """The new ID of a recreation, and of a replica whose broker was away then."""
    if row["code"] == "TID001":
        return KEYS["new id"](row)
    return frozenset(row["topic_ids"]) if words_of(row).get("recreated") else frozenset()


def pair(row: Row) -> frozenset[Any]:
    """Both ids of a change, in any order."""
    ids = frozenset(row["topic_ids"])
    return frozenset({ids}) if len(ids) == 2 else frozenset()


KEYS: Mapping[str, Callable[[Row], frozenset[Any]]] = {
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


def linked(findings: Iterable[Row]) -> dict[str, Linked]:
    """By id what each has to do with the others, over open last revisions."""
    causes = Causes(one for row in findings if (one := OpenFinding.of(row)) is not None)
    origins = {name: causes.origin(name) for name in causes.open_findings}
    consequences: dict[str, list[str]] = defaultdict(list)
    for name, origin in origins.items():
        if origin.cause:
            consequences[origin.cause].append(name)
    return {name: Linked(origin.cause, origin.possible, tuple(consequences[name])) for name, origin in origins.items()}


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
    lasts = not rule.lasting or finding.first_s <= cause.last_s + LATER_S
    return cause.first_s <= finding.first_s + SOONER_S and lasts
