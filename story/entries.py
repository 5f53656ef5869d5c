"""Findings in reading order: equal ones as one entry, consequences under their cause, and the sentence of each.

Rule: every finding is in one entry, by its ID. The same findings give the same entries and texts, in whatever order
they come.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from wirecheck.client_ids import is_internal
from wirecheck.judge.checks.listed_checks import check_of
from wirecheck.judge.checks.page import remedy
from wirecheck.story.fields import ABOUT, ERRORS, SERVERS, SPEAKS, stated, statement
from wirecheck.story.verdict import Entry, Finding
from wirecheck.wording import and_list, clock, filled, number_list

Key = tuple[Any, ...]
KINDS = ("violation", "anomaly", "information", "visibility")
BLAMED = KINDS[:2]
"""Kinds of findings that need a look, the worse first."""
OF_ANY_KIND = frozenset({"CLI006"})
"""Checks of which one fault has findings of several kinds, by what its clients were granted before, and of one topic by
name and by ID, as its clients ask.
"""
AT_ONCE_NS = 5_000_000_000
"""Clients notice that a broker is gone within this time, whichever of its listeners they use."""
MOST_SEPARATE = 12
"""More entries of one check than these are brought together even if topics, clients, brokers and hosts all differ."""


def entries(findings: Iterable[Finding], every: Iterable[Finding] = (), *, dated: bool = False) -> list[Entry]:
    """What should be read first comes first, each with the entries that follow from it.

    A finding whose cause is not listed is an entry of its own and names the cause. `every` has the findings that are
    not listed. `dated`: sentences have the day of their times.
    """
    return Telling(list(findings), every, dated=dated).entries()


class Telling:
    """The findings that are listed, by what they follow from."""

    def __init__(self, findings: list[Finding], every: Iterable[Finding], *, dated: bool) -> None:
        listed = {one.id for one in findings}
        self.roots = [one for one in findings if one.cause not in listed]
        self.unlisted = {one.id: one for one in every if one.id not in listed}
        self.under: dict[str, list[Finding]] = defaultdict(list)
        for one in findings:
            if one.cause in listed:
                self.under[one.cause].append(one)
        self.dated = dated

    def entries(self) -> list[Entry]:
        return sorted((self.entry(group, own_next=True) for group in equal(self.roots, self.place)), key=rank)

    def entry(self, group: Sequence[Finding], *, own_next: bool) -> Entry:
        first, more = group[0], len(group) - 1
        following = [one for root in group for one in self.under.get(root.id, ())]
        ends = bool(following) and all_ends_with(first)
        under = (self.entry(rows, own_next=not ends) for rows in equal(following, self.place))
        return Entry(
            sentence=sentence(first, more, len(following), dated=self.dated),
            code=first.code,
            name=first.name,
            kind=min((one.kind for one in group), key=KINDS.index),
            cluster=first.cluster,
            role="cause" if following else "consequence" if first.cause else "alone",
            count=len(group),
            findings=tuple(one.id for one in group),
            topics=tuple(sorted({one.topic for one in group if one.topic is not None})),
            client_ids=tuple(sorted({client for one in group for client in one.client_ids})),
            brokers=tuple(sorted({broker for one in group for broker in one.brokers})),
            own_next=own_next,
            follows_from=self.follows_from(group),
            consequences=tuple(sorted(under, key=rank)),
        )

    def follows_from(self, group: Sequence[Finding]) -> str | None:
        """The causes that are not listed, by the first; the others are like it."""
        causes = dict.fromkeys(one.cause for one in group if one.cause in self.unlisted)
        if not causes:
            return None
        cause = self.unlisted[next(iter(causes))]
        more = f" ({len(causes) - 1:,} more like it)" if len(causes) > 1 else ""
        return f"{cause.code} {cause.id}: {origin(cause, dated=self.dated)}{more}."

    def place(self, one: Finding) -> Key:
        """What no equal findings differ in; causes and consequences count by their checks. The brokers, which those
        about one topic and those of a crowd may differ in, are the last of it.
        """
        follows = tuple(sorted({following.code for following in self.under.get(one.id, ())}))
        cause = self.unlisted[one.cause].code if one.cause in self.unlisted else None
        kind = "" if one.code in OF_ANY_KIND else one.kind
        return one.code, kind, one.cluster, bool(one.others), follows, cause, one.brokers


def rank(entry: Entry) -> Key:
    """Worst first, by what is under it too; then causes, then what was seen by its code."""
    worst = min(KINDS.index(one.kind) for one in entry.with_consequences)
    return worst, entry.role != "cause", entry.code, -entry.count, entry.findings[0]


def by_time(findings: Iterable[Finding]) -> list[Finding]:
    """Of those that begin at once the first partition comes first, whatever the names that IDs are made of."""
    return sorted(findings, key=lambda one: (one.first_ns, place_in(one), one.id))


def place_in(one: Finding) -> list[int]:
    """Partition and offset, where a finding has one of each."""
    return [int(one.words[name]) for name in ("partition", "offset") if one.words.get(name, "").isdecimal()]


def equal(findings: Iterable[Finding], place: Callable[[Finding], Key]) -> list[list[Finding]]:
    """Findings of one place that state the same, the earliest first in each group."""
    groups = [[one] for one in by_time(findings)]
    groups = together(groups, lambda one: (place(one), one.client_ids, stated(one, statement(one.code) | SPEAKS)))
    groups = together(groups, lambda one: (place(one)[:-1], *topic_of(one), stated(one, statement(one.code))))
    groups = together(at_several_servers(groups, place), lambda one: rejected_alike(one, place))
    groups = of_one_outage(groups, place)
    alike = [(place(group[0])[:-1], group[0].kind) for group in groups]
    counts = Counter(alike)
    too_many = [group for group, key in zip(groups, alike, strict=True) if counts[key] > MOST_SEPARATE]
    others = [group for group, key in zip(groups, alike, strict=True) if counts[key] <= MOST_SEPARATE]
    return others + together(too_many, lambda one: (place(one)[:-1], stated(one, ERRORS)))


def topic_of(one: Finding) -> Key:
    by_name = one.code in OF_ANY_KIND and one.topic is not None
    return one.topic, () if by_name else one.topic_ids


def together(groups: Iterable[list[Finding]], key: Callable[[Finding], Key]) -> list[list[Finding]]:
    """Groups whose first findings have one key, as one."""
    found: dict[Key, list[Finding]] = defaultdict(list)
    for group in groups:
        found[key(group[0])].extend(group)
    return list(map(by_time, found.values()))


def at_several_servers(groups: Iterable[list[Finding]], place: Callable[[Finding], Key]) -> list[list[Finding]]:
    """Groups about the same clients that differ in the server only, as one: what is to be done is to be done there. Of
    brokers that are clients the servers stay apart.
    """
    found: dict[Key, list[Finding]] = {}
    for group in groups:
        first, clients = group[0], tuple(sorted({client for one in group for client in one.client_ids}))
        clients = () if any(map(is_internal, clients)) or first.words.get("requester") else clients
        about = (place(first)[:-1], first.topic, first.topic_ids, stated(first, statement(first.code) - SERVERS))
        found.setdefault((clients, *about) if clients else (first.id,), []).extend(group)
    return list(map(by_time, found.values()))


def of_one_outage(groups: Iterable[list[Finding]], place: Callable[[Finding], Key]) -> list[list[Finding]]:
    """Groups about listeners of one broker that answered, and stopped at once, as one."""
    found: list[list[Finding]] = []
    of_broker: dict[Key, list[Finding]] = {}
    for group in sorted(groups, key=lambda group: group[0].first_ns):
        first = group[0]
        known = of_broker.get(place(first)) if first.words.get("served") and first.brokers else None
        if known is not None and first.first_ns - known[0].first_ns <= AT_ONCE_NS:
            known += group
        else:
            found.append(group)
            of_broker[place(first)] = group
    return found


def rejected_alike(one: Finding, place: Callable[[Finding], Key]) -> Key:
    """What findings about one client and the same errors have in common, whatever it asked for: it has one fault, which
    rejects it wherever it asks.
    """
    errors = stated(one, ERRORS)
    alike = one.client_ids and errors and "api" in one.words
    return (place(one)[:-1], one.client_ids, stated(one, ABOUT), errors) if alike else (one.id,)


def sentence(finding: Finding, more: int, following: int, *, dated: bool) -> str:
    """A cause and how many findings follow from it; of any other finding its summary. One sentence."""
    text = origin(finding, dated=dated) if following else finding.summary.removesuffix(".")
    if more:
        text += f" ({more:,} more like it)"
    if following:
        findings = f"{following:,} finding{'s follow' if following > 1 else ' follows'}"
        text += f"; {findings} from {'them' if more else 'it'}"
    return f"{text}."


def origin(finding: Finding, *, dated: bool) -> str:
    """What a finding is called as a cause: its summary, where the check has no other name for it."""
    called = check_of(finding.code).as_a_cause
    return filled(called.template, words(finding, dated=dated)) if called else finding.summary.removesuffix(".")


ADVERTISES = "ApiVersions"
"""An advertised version is not a request that a client is blamed for, unless there is nothing else."""


def words(finding: Finding, *, dated: bool) -> dict[str, str]:
    pairs = {(side.api, side.version) for side in finding.sides if side.api}
    requests = {request for request in pairs if request[0] != ADVERTISES} or pairs
    return {
        **finding.words,
        "summary": finding.summary.removesuffix("."),
        "topic": finding.topic or (finding.topic_ids or ("(name unknown)",))[0],
        "id": (finding.topic_ids or ("",))[0],
        "brokers": and_list(number_list(finding.brokers)),
        "clients": ", ".join(client or "(no client ID)" for client in finding.client_ids),
        "requests": ", ".join(f"{api} v{version}" for api, version in sorted(requests)),
        "first": clock(finding.first_ns, dated=dated),
        "began": clock(finding.times.get("since", finding.first_ns), dated=dated),
        "last": clock(finding.last_ns, dated=dated),
    }


def remedies_of(findings: Iterable[Finding]) -> dict[str, str]:
    """By finding ID. Where the remedy of its cause ends a finding, that is the remedy: one of its own may do harm."""
    by_id = {finding.id: finding for finding in findings}
    found = {}
    for finding in by_id.values():
        cause = by_id.get(finding.cause or "")
        ends = cause is not None and all_ends_with(cause)
        found[finding.id] = remedy(cause.code if cause is not None and ends else finding.code)
    return found


def all_ends_with(cause: Finding) -> bool:
    """Whether what follows from a finding ends with it; else each consequence needs something done of its own."""
    called = check_of(cause.code).as_a_cause
    return called is not None and (called.ends == "yes" or bool(cause.words.get(called.ends)))
