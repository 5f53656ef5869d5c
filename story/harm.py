"""Which clients are hurt by which finding: rejected and unanswered requests (the table of harms) with the findings that
they follow from.

Rule: nothing is guessed. A harm belongs to the entry of a finding whose check's page allows it, if all its relations
hold and its time fits. A sure relation comes before one that is not, and a lower rank before a higher one. If none is
sure, the card says "may". A harm that fits no finding stays in the table of harms only.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any, NamedTuple

from wirecheck.client_ids import is_internal
from wirecheck.decode.peer import Conversation
from wirecheck.judge.checks.declaration import Hurts
from wirecheck.judge.checks.listed_checks import LISTED
from wirecheck.judge.not_rejections import is_protocols_own
from wirecheck.lasting import goes_on, waits_on
from wirecheck.story import causes
from wirecheck.story.causes import Subject
from wirecheck.story.entries import BLAMED
from wirecheck.story.verdict import Entry, Finding, Harm, HurtClient
from wirecheck.wording import NS_PER_S

LATER_NS = 30 * NS_PER_S
"""Harm may end so much sooner than its finding is first seen: brokers' grace."""
CLOCKS_NS = NS_PER_S
"""Agents' clocks differ less than this: harm that begins sooner than its cause by more does not follow from it."""
MOST = 16
"""So many findings of one check, equal in all that its rule compares, are looked at: the earliest, which more harm can
follow from than from later ones.
"""
HURT = "hurt"
CLOSED, UNSUPPORTED = "connection closed", "UNSUPPORTED_VERSION"
NOT_KAFKA, UNREACHABLE = "no Kafka listener", "connection refused"
UNKNOWN_ID = "UNKNOWN_TOPIC_ID"
NEVER_READ = "records never read"


KINDS_OF_HARM = {code: check.hurts for code, check in LISTED.items() if check.hurts is not None}
SILENT = frozenset(one.outcome for one in KINDS_OF_HARM.values() if not one.always and one.outcome != UNKNOWN_ID)
"""In place of an error: what no response shows."""
LEADER_NOT_AVAILABLE, STORAGE_ERROR = "LEADER_NOT_AVAILABLE", "KAFKA_STORAGE_ERROR"
UNKNOWN_PARTITION = "UNKNOWN_TOPIC_OR_PARTITION"
TIMED_OUT, NO_COORDINATOR = "REQUEST_TIMED_OUT", "COORDINATOR_NOT_AVAILABLE"
TOO_FEW_REPLICAS = "NOT_ENOUGH_REPLICAS"
NO_RESPONSE = "NO_RESPONSE"
"""In place of an error."""
CLOSED_WITHOUT_RESPONSE = "CLOSED_WITHOUT_RESPONSE"
CLOSED_AT_ONCE = "CONNECTION_CLOSED"
"""In place of an error: the answer to writes that ask for none (acks=0)."""
ERROR_NAME = re.compile(r"\b[A-Z][A-Z_]{3,}\b", re.ASCII)
WITHOUT_CODE = frozenset({*(one.outcome for one in KINDS_OF_HARM.values() if one.always), *SILENT, NO_RESPONSE})
"""What hurts a client though no message has an error code."""


OWN_RANK, LAST_RANK = 8, 9
"""Of relations that no page declares: behind all that one does."""


class Rule(NamedTuple):
    """When harm belongs to findings of a check, as its page declares it."""

    code: str
    rank: int
    sure: bool
    """Else the finding may be the reason, and is named as that only."""
    relations: tuple[str, ...]


RULES = {
    code: tuple(Rule(code, one.rank, one.sure, one.relations) for one in check.explains)
    for code, check in LISTED.items()
    if check.explains is not None
}
"""By check; one finding may have several kinds of harm."""


def rules_of(finding: Finding) -> tuple[Rule, ...]:
    """Of its check. Where that declares none, a finding explains what is refused to its clients with an error that it
    names, or by an API of which it states that they get nothing. One that needs a look may be the reason for anything
    else that is refused to them, if nothing else is.
    """
    code = finding.code
    own = "its API" if code in KINDS_OF_HARM else "its error"
    declared = RULES.get(code, (Rule(code, OWN_RANK, True, ("client", "its topic", own)),))
    last = Rule(code, LAST_RANK, False, ("client", "its topic"))
    return (*declared, last) if finding.kind in BLAMED else declared


def topics(one: Subject) -> set[Any]:
    return {*product(("id",), one.topic_ids), *product(("name",), {one.topic} - {None})}


def partitions(one: Subject) -> set[Any]:
    numbers = one.partitions if isinstance(one, Harm) else [one.words.get("partition", "")]
    return set(product(topics(one), map(str, numbers)))


def its_topic(one: Subject) -> set[Any]:
    """Of a harm what it is about; a finding that names no topic may be about any."""
    every = topics(one)
    return {*every, ("any",)} if isinstance(one, Harm) else every or {("any",)}


def its_error(one: Subject) -> set[Any]:
    """The errors of a harm, and those that a finding names."""
    if isinstance(one, Harm):
        return {*one.errors}
    return {name for text in (one.summary, *one.words.values()) for name in ERROR_NAME.findall(text)}


def its_api(one: Subject) -> set[Any]:
    """Of a harm, and of a finding that states one."""
    return {one.api} if isinstance(one, Harm) else {found.api.partition(" ")[0] for found in stated(one)}


def of_error(error: str, one: Subject) -> set[Any]:
    """Of a finding always: its rule asks for harm of this kind."""
    return {error} if not isinstance(one, Harm) or error in one.errors else set()


def offline_replica(one: Subject) -> set[Any]:
    """Of a harm the brokers that answered that their log directory failed, or the only replica of a partition without a
    leader; of a finding the brokers that it is about.
    """
    errors, brokers = one.errors if isinstance(one, Harm) else (STORAGE_ERROR,), set(one.brokers)
    only = LEADER_NOT_AVAILABLE in errors and len(brokers) == 1
    return brokers if STORAGE_ERROR in errors or only else set()


def metadata_broker(one: Subject) -> set[Any]:
    """Of a harm the brokers that it has its metadata from; of a finding the brokers that it is about."""
    return set(one.metadata_brokers if isinstance(one, Harm) else one.brokers)


def refusal(one: Subject) -> set[Any]:
    """What is refused to whom: of a harm, and of a finding that is made of it (`unexplained.py`)."""
    host, api = (one.address, one.api) if isinstance(one, Harm) else (one.words.get("host"), one.words.get("api"))
    topics = {one.topic or next(iter(one.topic_ids), None)}
    return set(product(one.client_ids, (host,), (api,), topics))


def removed_request(one: Subject) -> set[Any]:
    """Of a harm the API of requests on which the server closes; of a finding the one that is about old versions."""
    if isinstance(one, Harm):
        return set(product(one.client_ids, (one.api,))) if CLOSED_WITHOUT_RESPONSE in one.errors else set()
    return set(product(one.client_ids, (one.words.get("api"),)))


def rejected_version(one: Subject) -> set[Any]:
    """Of a harm who answered which API with UNSUPPORTED_VERSION (35); of a finding the same, where it is about that."""
    api = one.words.get("api") if not isinstance(one, Harm) else one.api if UNSUPPORTED in one.errors else None
    return set(product(one.brokers, (api,))) if api else set()


KEYS: Mapping[str, Callable[[Subject], Collection[Any]]] = {
    "client": causes.KEYS["clients"],
    "any id": causes.KEYS["any id"],
    "old id": causes.KEYS["old id"],
    "topic": topics,
    "its topic": its_topic,
    "its error": its_error,
    "its API": its_api,
    "partition": partitions,
    "broker": causes.KEYS["brokers"],
    "metadata broker": metadata_broker,
    "no response": partial(of_error, NO_RESPONSE),
    "offline replica": offline_replica,
    "unknown partition": partial(of_error, UNKNOWN_PARTITION),
    "unknown ID": partial(of_error, UNKNOWN_ID),
    "timed out": partial(of_error, TIMED_OUT),
    "no coordinator": partial(of_error, NO_COORDINATOR),
    "too few replicas": partial(of_error, TOO_FEW_REPLICAS),
    "refusal": refusal,
    "removed request": removed_request,
    "rejected version": rejected_version,
    "no leader": partial(of_error, LEADER_NOT_AVAILABLE),
}
"""What a harm and a finding have in common where a relation holds, of either."""


class Attached(NamedTuple):
    """One harm at the entry that it follows from."""

    harm: Harm
    sure: bool
    finding: str
    """ID of the finding that the harm follows from."""
    misled: bool = False
    """Whether brokers that the finding is about gave the client what it is refused for."""
    may_also: frozenset[int] = frozenset()
    """Places of all entries with findings that may be the reason."""
    stale: frozenset[int] = frozenset()
    """The brokers of these findings."""
    declared: bool = True
    """Whether the check's page declares the rule by which it is here, or states the harm itself."""


class Reason(NamedTuple):
    """A finding of an entry that harm may follow from."""

    since_ns: int
    """Harm that begins sooner does not follow from it: not before what the finding itself follows from."""
    until_ns: int
    """Harm that ends sooner does not either."""
    rule: Rule
    place: int
    finding: Finding

    @classmethod
    def of(cls, finding: Finding, root: Finding, place: int, rule: Rule) -> "Reason":
        states_it = finding is root and "client" in rule.relations
        since_ns = 0 if states_it else begins_ns(root) - CLOCKS_NS
        return cls(since_ns, finding.first_ns - LATER_NS, rule, place, finding)

    def fits(self, first_ns: int, last_ns: int) -> bool:
        return first_ns >= self.since_ns and last_ns >= self.until_ns


Key = tuple[Any, ...]


def keys(one: Subject, rule: Rule) -> Iterator[Key]:
    """Of a harm or of a finding: where the rule's relations all hold between two, they have one in common."""
    return (
        (one.cluster, rule.code, rule.relations, *found)
        for found in product(*(KEYS[name](one) for name in rule.relations))
    )


class Reasons:
    """Findings that harm may follow from, by what they have in common with it."""

    def __init__(self, reasons: Iterable[Reason]) -> None:
        self.by_key: dict[Key, list[Reason]] = defaultdict(list)
        self.rules: dict[Rule, None] = {}
        for reason in sorted(reasons, key=lambda one: (one[:2], one.place)):
            self.rules[reason.rule] = None
            for key in keys(reason.finding, reason.rule):
                if len(self.by_key[key]) < MOST:
                    self.by_key[key].append(reason)

    def fitting(self, harm: Harm) -> list[Reason]:
        alike = (one for rule in self.rules for key in keys(harm, rule) for one in self.by_key.get(key, ()))
        found = {(one.finding.id, one.rule): one for one in alike if one.fits(harm.first_ns, harm.last_ns)}
        return [*found.values()]


def by_entry(
    entries: Sequence[Entry], findings: Mapping[str, Finding], harms: Iterable[Harm]
) -> dict[int, list[Attached]]:
    """The harms of each entry, by its place; those that fit no entry are omitted."""
    reasons = [
        Reason.of(findings[name], findings[entry.findings[0]], place, rule)
        for place, entry in enumerate(entries)
        for name in entry.finding_ids
        for rule in rules_of(findings[name])
    ]
    first = Reasons(one for one in reasons if one.rule.rank < LAST_RANK)
    last = Reasons(one for one in reasons if one.rule.rank == LAST_RANK)
    found: dict[int, list[Attached]] = {}
    for harm in harms:
        if fitting := first.fitting(harm) or (last.fitting(harm) if is_refused(harm) else []):
            nearest = min(fitting, key=lambda one: (not one.rule.sure, one.rule.rank, one.place))
            found.setdefault(nearest.place, []).append(attached(harm, nearest, fitting))
    return found


def attached(harm: Harm, nearest: Reason, fitting: Sequence[Reason]) -> Attached:
    """Harm at the entry of the nearest of the findings that it may follow from."""
    rule, may = nearest.rule, [one for one in fitting if not one.rule.sure]
    return Attached(
        harm,
        rule.sure,
        nearest.finding.id,
        misled="metadata broker" in rule.relations,
        may_also=frozenset(one.place for one in fitting),
        stale=frozenset(broker for one in may for broker in one.finding.brokers),
        declared=rule in RULES.get(rule.code, ()),
    )


def begins_ns(finding: Finding) -> int:
    """When the first of its evidence was seen."""
    return min([finding.first_ns, *(side.time_ns for side in finding.sides)])


def stated(finding: Finding) -> list[Harm]:
    """The harm that a finding states, by client; none where its check states none, or this finding does not."""
    found = KINDS_OF_HARM.get(finding.code)
    if found is None:
        return []
    return nothing_granted(finding, found) if found.always else stopped(finding, found)


def nothing_granted(finding: Finding, found: Hurts) -> list[Harm]:
    """Of clients that get nowhere at a server."""
    words = finding.words
    first = Conversation.of(finding.sides[0].connection or "").client.host if finding.sides else ""
    host = words.get("host") or first  # the first side may be what the server advertised to another client
    closed = NO_RESPONSE if words.get("silent") else found.outcome
    error = UNSUPPORTED if UNSUPPORTED in words.get("does", "") else closed
    api = " v".join(filter(None, (words.get(word, "") for word in ("api", "version"))))
    where = "" if found.outcome == UNREACHABLE else host  # its clients are on several hosts
    return [hurt_by(finding, client, where, api, error) for client in finding.client_ids]


def stopped(finding: Finding, found: Hurts) -> list[Harm]:
    """Of clients whose work stopped: where the finding proves it, and so knows the client's host."""
    words = finding.words
    if "hurt_host" not in words:
        return []
    about: dict[str, Any] = {
        "topic": finding.topic,
        "topic_id": next(iter(finding.topic_ids), None),
        "partitions": (int(words["partition"]),) if "partition" in words else (),
        "recovered": found.recovered or "recovered" in words,
        "granted_before": True,
    }
    api, outcome = found.api or words.get("api", ""), found.outcome
    if "closed" in words:
        api, outcome, about["granted_before"] = words["closed"], CLOSED_WITHOUT_RESPONSE, False
        about["count"] = 1  # what was seen so often is the member
    return [
        replace(hurt_by(finding, client, words["hurt_host"], api, outcome), **about) for client in finding.client_ids
    ]


def hurt_by(finding: Finding, client_id: str, address: str, api: str, error: str) -> Harm:
    """As the table of harms would have it, of no topic."""
    return Harm(
        cluster=finding.cluster,
        level=HURT,
        client_id=client_id,
        address=address,
        api=api,
        topic=None,
        topic_id=None,
        partitions=(),
        errors=(error,),
        brokers=finding.brokers,
        metadata_brokers=(),
        count=finding.count,
        first_ns=finding.first_ns,
        last_ns=finding.last_ns,
        blocked_ms=round(finding.lasted_s * 1000),
        granted_before=False,
        recovered=False,
    )


def joined(harms: Iterable[Harm]) -> list[Harm]:
    """One client, topic and API once, whatever number of IDs and clusters' endpoints it was refused by; what a former
    cluster refused counts in the next one's row too.
    """
    found: dict[tuple[Any, ...], Harm] = {}
    for harm in harms:
        lost = NEVER_READ in harm.errors  # records, not requests
        key = (harm.client_id, harm.address, harm.topic or harm.topic_id, harm.api, lost)
        found[key] = together(found[key], harm) if key in found else harm
    return list(found.values())


def together(one: Harm, other: Harm) -> Harm:
    again = one.cluster != other.cluster and spans(one, other)
    return replace(
        one,
        count=max(one.count, other.count) if again else one.count + other.count,
        level=HURT if HURT in {one.level, other.level} else one.level,
        first_ns=min(one.first_ns, other.first_ns),
        last_ns=max(one.last_ns, other.last_ns),
        recovered=one.recovered and other.recovered,
        granted_before=one.granted_before or other.granted_before,
        blocked_ms=max(one.blocked_ms, other.blocked_ms),
        partitions=tuple(sorted({*one.partitions, *other.partitions})),
        errors=tuple(sorted({*one.errors, *other.errors})),
        brokers=tuple(sorted({*one.brokers, *other.brokers})),
    )


def spans(one: Harm, other: Harm) -> bool:
    """Whether the time of one contains the time of the other: errors that continued when an address changed its
    cluster.
    """
    times = [(harm.first_ns, harm.last_ns) for harm in (one, other)]
    return (min(first for first, _ in times), max(last for _, last in times)) in times


def refusing(one: Harm) -> Iterator[str]:
    """The errors that refuse something. Of no topic, those that do not count are left out already."""
    stated_errors = WITHOUT_CODE - {NO_RESPONSE}
    coded = (error for error in one.errors if error not in stated_errors)
    part = one.is_partial
    return (error for error in coded if not (one.of_topic and is_protocols_own(one.api, error, in_part=part)))


def hurts(one: Harm) -> bool:
    """Whether a client gets less done: not by errors that it answers by itself."""
    return one.level == HURT and (not WITHOUT_CODE.isdisjoint(one.errors) or any(True for _ in refusing(one)))


def is_refused(one: Harm) -> bool:
    """Whether it is a refusal for long of a client that is no broker."""
    return one.level == HURT and not is_internal(one.client_id or "") and any(True for _ in refusing(one))


def covered(harms: Iterable[Harm]) -> set[Harm]:
    """Harm of no topic where the same client is hurt at the same time by the same API of a topic, or by one of the same
    errors: that says more.
    """
    of_topics: dict[tuple[Any, ...], list[Harm]] = defaultdict(list)
    general = []
    for one in harms:
        if one.of_topic and hurts(one):
            of_topics[one.cluster, one.client].append(one)
        elif one.level == HURT and one.errors != (NO_RESPONSE,):
            general.append(one)
    return {one for one in general if any(says_more(other, one) for other in of_topics[one.cluster, one.client])}


def says_more(other: Harm, one: Harm) -> bool:
    meanwhile = other.first_ns <= one.last_ns and other.last_ns >= one.first_ns
    return meanwhile and (other.api == one.api or not {*one.errors}.isdisjoint(other.errors))


def hurt_client(harm: Harm, end_ns: int) -> HurtClient:
    silent = not SILENT.isdisjoint(harm.errors)
    errors = [one for one in harm.errors if one != NO_RESPONSE] if silent else harm.errors
    lasts = waits_on(harm.last_ns, end_ns) if silent else goes_on(harm.count, harm.first_ns, harm.last_ns, end_ns)
    return HurtClient(
        client_id=harm.client_id,
        address=harm.address,
        topic=harm.topic or harm.topic_id,
        partitions=harm.partitions,
        api=harm.api,
        error=", ".join(errors),
        count=harm.count,
        first_ns=harm.first_ns,
        last_ns=harm.last_ns,
        blocked_ms=harm.blocked_ms,
        granted_before=bool(harm.granted_before),
        ongoing=lasts and not harm.recovered,
    )


def worst_first(hurt: Iterable[HurtClient]) -> list[HurtClient]:
    """First what continues, then records that are lost, then what lets nothing succeed, then what is more than commits
    of offsets, as without records there are none, then what lasted longest.
    """

    def order(one: HurtClient) -> tuple[Any, ...]:
        return (
            not one.ongoing,
            one.error != NEVER_READ,
            one.is_partial,
            one.api == "OffsetCommit",
            -round(one.lasted_s),
            -one.count,
            one.client_id or "",
            one.api,
            one.topic or "",
        )

    return sorted(hurt, key=order)
