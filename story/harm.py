"""Which clients are hurt by which finding: rejected and unanswered requests (the table of harms) with the findings that
they follow from.

Rule: nothing is guessed. A harm belongs to the entry of a finding that the table allows, whose relations all hold and
whose time fits. A sure relation comes before one that is not, and a lower rank before a higher one. If none is sure,
the card says "may". A harm that fits no finding stays in the table of harms only.
"""

import datetime as dt
import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from wirecheck.decode.peer import Conversation
from wirecheck.lasting import goes_on, waits_on
from wirecheck.story import causes
from wirecheck.story.verdict import Entry, HurtClient
from wirecheck.wording import ns_of

Row = Mapping[str, Any]
LATER_S = 30.0
"""Harm may end so much sooner than its finding is first seen: brokers' grace."""
CLOCKS_S = 1.0
"""Agents' clocks differ less than this: harm that begins sooner than its cause by more does not follow from it."""
MOST = 16
"""So many clients are named in one card; the others are counted. So many findings of one check, equal in all that its
rule compares, are looked at: the earliest, which more harm can follow from than from later ones.
"""
HURT = "hurt"
CLOSED, UNSUPPORTED = "connection closed", "UNSUPPORTED_VERSION"
NOT_KAFKA, CONTROLLER, UNREACHABLE = "no Kafka listener", "a controller", "connection refused"
STATED = {"VER001": CLOSED, "CLI001": CLOSED, "CLI002": NOT_KAFKA, "CLI003": CONTROLLER, "WIR008": UNREACHABLE}
"""Checks whose findings say themselves that a client gets nowhere, and how."""
NOT_FETCHED, NOT_WRITTEN = "nothing fetched", "nothing written"


class Stopped(NamedTuple):
    """Work that ended without an error of each request."""

    api: str
    error: str
    recovered: bool
    """Whether the client works again: then that is the proof."""


STOPPED = {
    "FET008": Stopped("Fetch", NOT_FETCHED, False),
    "GRP007": Stopped("Fetch", NOT_FETCHED, False),
    "CLI005": Stopped("Produce", NOT_WRITTEN, True),
}
"""Checks whose findings name a client that stopped."""
SILENT = frozenset(one.error for one in STOPPED.values())
"""In place of an error: what no response shows."""
LEADER_NOT_AVAILABLE, STORAGE_ERROR = "LEADER_NOT_AVAILABLE", "KAFKA_STORAGE_ERROR"
UNKNOWN_PARTITION = "UNKNOWN_TOPIC_OR_PARTITION"
TIMED_OUT, NO_COORDINATOR = "REQUEST_TIMED_OUT", "COORDINATOR_NOT_AVAILABLE"
TOO_FEW_REPLICAS = "NOT_ENOUGH_REPLICAS"
NO_RESPONSE = "NO_RESPONSE"
"""In place of an error."""
CLOSED_AT_ONCE = "CONNECTION_CLOSED"
"""In place of an error: the answer to writes that ask for none (acks=0)."""
WITHOUT_CODE = frozenset({*STATED.values(), *SILENT, NO_RESPONSE})
"""What hurts a client though no message has an error code."""


class Rule(NamedTuple):
    code: str
    rank: int
    sure: bool
    """Else the finding may be the reason, and is named as that only."""
    relations: tuple[str, ...]
    why: str


@cache
def relations() -> Mapping[str, tuple[Rule, ...]]:
    """By check; one finding may have several kinds of harm."""
    lines = Path(__file__).with_name("harm_relations.tsv").read_text("ascii").splitlines()[1:]
    found = (line.split("\t") for line in lines)
    rules: dict[str, tuple[Rule, ...]] = {}
    for code, rank, certainty, names, why in found:
        rule = Rule(code, int(rank), certainty == "sure", tuple(names.split(",")), why)
        rules[code] = (*rules.get(code, ()), rule)
    return rules


def like_a_finding(harm: Row) -> Row:
    """A harm with the columns that findings have."""
    ids = [] if harm["topic_id"] is None else [harm["topic_id"]]
    return {**harm, "client_ids": [harm["client_id"] or ""], "topic_ids": ids}


def topics(row: Row) -> set[Any]:
    return {*product(("id",), row["topic_ids"]), *product(("name",), {row["topic"]} - {None})}


def partitions(row: Row) -> set[Any]:
    numbers = row["partitions"] if "partitions" in row else [row["words"].get("partition", "")]
    return set(product(topics(row), map(str, numbers)))


def of_error(error: str, row: Row) -> set[Any]:
    """Of a finding always: its rule asks for harm of this kind."""
    return {error} if error in row.get("errors", (error,)) else set()


def offline_replica(row: Row) -> set[Any]:
    """Of a harm the brokers that answered that their log directory failed, or the only replica of a partition without a
    leader; of a finding the brokers that it is about.
    """
    errors, brokers = row.get("errors", (STORAGE_ERROR,)), set(row["brokers"])
    only = LEADER_NOT_AVAILABLE in errors and len(brokers) == 1
    return brokers if STORAGE_ERROR in errors or only else set()


def refusal(row: Row) -> set[Any]:
    """What is refused to whom: of a harm, and of a finding that is made of it (`unexplained.py`)."""
    words = row["words"] if "words" in row else {"host": row["address"], "api": row["api"]}
    topics = {row["topic"] or next(iter(row["topic_ids"]), None)}
    return set(product(row["client_ids"], (words.get("host"),), (words.get("api"),), topics))


KEYS: Mapping[str, Callable[[Row], Collection[Any]]] = {
    "client": causes.KEYS["clients"],
    "any id": causes.KEYS["any id"],
    "old id": causes.KEYS["old id"],
    "topic": topics,
    "partition": partitions,
    "broker": causes.KEYS["brokers"],
    "no response": partial(of_error, NO_RESPONSE),
    "offline replica": offline_replica,
    "unknown partition": partial(of_error, UNKNOWN_PARTITION),
    "timed out": partial(of_error, TIMED_OUT),
    "no coordinator": partial(of_error, NO_COORDINATOR),
    "too few replicas": partial(of_error, TOO_FEW_REPLICAS),
    "refusal": refusal,
    "no leader": partial(of_error, LEADER_NOT_AVAILABLE),
}
"""What a harm and a finding have in common where a relation holds, of either."""


def seconds(time: str) -> float:
    """Of an RFC 3339 time."""
    return dt.datetime.fromisoformat(time).timestamp()


class Attached(NamedTuple):
    """One harm at the entry that it follows from."""

    harm: Row
    sure: bool
    may_also: frozenset[int] = frozenset()
    """Places of entries with findings that may be the reason too."""
    stale: frozenset[int] = frozenset()
    """The brokers of these findings."""


class Reason(NamedTuple):
    """A finding of an entry that harm may follow from."""

    since_s: float
    """Harm that begins sooner does not follow from it: not before what the finding itself follows from."""
    until_s: float
    """Harm that ends sooner does not either."""
    rule: Rule
    place: int
    row: Row

    @classmethod
    def of(cls, row: Row, root: Row, place: int, rule: Rule) -> "Reason":
        states_it = row is root and "client" in rule.relations
        since_s = -math.inf if states_it else begins_s(root) - CLOCKS_S
        return cls(since_s, seconds(row["first_seen"]) - LATER_S, rule, place, row)

    def fits(self, first_s: float, last_s: float) -> bool:
        return first_s >= self.since_s and last_s >= self.until_s


Key = tuple[Any, ...]


def keys(row: Row, rule: Rule) -> Iterator[Key]:
    """Of a harm or of a finding: where the rule's relations all hold between two, they have one in common."""
    return (
        (row["cluster"], rule.code, rule.relations, *found)
        for found in product(*(KEYS[name](row) for name in rule.relations))
    )


def by_entry(entries: Sequence[Entry], findings: Mapping[str, Row], harms: Iterable[Row]) -> dict[int, list[Attached]]:
    """The harms of each entry, by its place; those that fit no entry are omitted."""
    reasons = [
        Reason.of(findings[name], findings[entry.findings[0]], place, rule)
        for place, entry in enumerate(entries)
        for name in entry.finding_ids
        for rule in relations().get(findings[name]["code"], ())
    ]
    reasons.sort(key=lambda one: (one[:2], one.place))
    by_key: dict[Key, list[Reason]] = defaultdict(list)
    for reason in reasons:
        for key in keys(reason.row, reason.rule):
            if len(by_key[key]) < MOST:
                by_key[key].append(reason)
    rules = {reason.rule: None for reason in reasons}
    found: dict[int, list[Attached]] = {}
    for harm in harms:
        first_s, last_s = seconds(harm["first_seen"]), seconds(harm["last_seen"])
        about = like_a_finding(harm)
        alike = (one for rule in rules for key in keys(about, rule) for one in by_key.get(key, ()))
        fitting = {(one.row["id"], one.rule): one for one in alike if one.fits(first_s, last_s)}.values()
        if fitting:
            nearest = min(fitting, key=lambda one: (not one.rule.sure, one.rule.rank, one.place))
            may = [one for one in fitting if not one.rule.sure]
            brokers = frozenset(broker for one in may for broker in one.row["brokers"])
            attached = Attached(harm, nearest.rule.sure, frozenset(one.place for one in may), brokers)
            found.setdefault(nearest.place, []).append(attached)
    return found


def begins_s(finding: Row) -> float:
    """When the first of its evidence was seen."""
    return min(map(seconds, (finding["first_seen"], *(side["time"] for side in finding["sides"]))))


def stated(finding: Row) -> list[Row]:
    """The harm that a finding states, by client; none where its check states none, or this finding does not."""
    if finding["code"] in STOPPED:
        return stopped(finding, STOPPED[finding["code"]])
    if finding["code"] not in STATED:
        return []
    first = Conversation.of(finding["sides"][0]["connection"] or "").client.host if finding["sides"] else ""
    host = finding["words"].get("host") or first  # the first side may be what the server advertised to another client
    facts = {name: finding[name] for name in ("cluster", "brokers", "count", "first_seen", "last_seen")}
    closed = NO_RESPONSE if finding["words"].get("silent") else STATED[finding["code"]]
    error = UNSUPPORTED if UNSUPPORTED in finding["words"].get("does", "") else closed
    about = {"topic": None, "topic_id": None, "partitions": [], "level": HURT, "recovered": False, "errors": [error]}
    about["granted_before"] = False
    blocked_ms = round(lasted_s(finding) * 1000)
    api = " v".join(filter(None, (finding["words"].get(word, "") for word in ("api", "version"))))
    where = "" if finding["code"] == "WIR008" else host  # its clients are on several hosts
    of_client = {**facts, **about, "blocked_ms": blocked_ms, "address": where, "api": api}
    return [{**of_client, "client_id": client} for client in finding["client_ids"]]


def stopped(finding: Row, work: Stopped) -> list[Row]:
    """The harm of clients whose work stopped: where the finding proves it, and so knows the client's host."""
    words = finding["words"]
    if "hurt_host" not in words:
        return []
    facts = {name: finding[name] for name in ("cluster", "topic", "brokers", "count", "first_seen", "last_seen")}
    facts |= {"topic_id": next(iter(finding["topic_ids"]), None), "level": HURT, "api": work.api}
    facts |= {"partitions": [int(words["partition"])] if "partition" in words else [], "errors": [work.error]}
    facts |= {"address": words["hurt_host"], "recovered": work.recovered, "granted_before": True}
    blocked_ms = round(lasted_s(finding) * 1000)
    return [{**facts, "blocked_ms": blocked_ms, "client_id": client} for client in finding["client_ids"]]


def joined(harms: Iterable[Row]) -> list[Row]:
    """One client, topic and API once, whatever number of IDs and clusters' endpoints it was refused by; what a former
    cluster refused counts in the next one's row too.
    """
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for harm in harms:
        key = (harm["client_id"], harm["address"], harm["topic"] or harm["topic_id"], harm["api"])
        known = found.get(key)
        if known is None:
            found[key] = dict(harm)
            continue
        again = known["cluster"] != harm["cluster"] and spans(known, harm)
        known["count"] = max(known["count"], harm["count"]) if again else known["count"] + harm["count"]
        known["level"] = HURT if HURT in {known["level"], harm["level"]} else known["level"]
        known["first_seen"] = min(known["first_seen"], harm["first_seen"])
        known["last_seen"] = max(known["last_seen"], harm["last_seen"])
        known["recovered"] = known["recovered"] and harm["recovered"]
        known["granted_before"] = known.get("granted_before") or harm.get("granted_before")
        known["blocked_ms"] = max(known["blocked_ms"], harm["blocked_ms"])
        for name in ("partitions", "errors", "brokers"):
            known[name] = sorted({*known[name], *harm[name]})
    return list(found.values())


def spans(one: Row, other: Row) -> bool:
    """Whether the time of one contains the time of the other: errors that continued when an address changed its
    cluster.
    """
    times = [(row["first_seen"], row["last_seen"]) for row in (one, other)]
    return (min(first for first, _ in times), max(last for _, last in times)) in times


def hurt_client(harm: Row, end_ns: int) -> HurtClient:
    """Tables of an earlier release do not say what was granted before."""
    first_ns, last_ns = ns_of(harm["first_seen"]), ns_of(harm["last_seen"])
    silent = not SILENT.isdisjoint(harm["errors"])
    lasts = waits_on(last_ns, end_ns) if silent else goes_on(harm["count"], first_ns, last_ns, end_ns)
    return HurtClient(
        client_id=harm["client_id"],
        address=harm["address"],
        topic=harm["topic"] or harm["topic_id"],
        partitions=tuple(harm["partitions"]),
        api=harm["api"],
        error=", ".join(harm["errors"]),
        count=harm["count"],
        first_ns=first_ns,
        last_ns=last_ns,
        blocked_ms=harm["blocked_ms"],
        granted_before=bool(harm.get("granted_before")),
        ongoing=lasts and not harm["recovered"],
    )


def lasted_s(row: Row) -> float:
    return seconds(row["last_seen"]) - seconds(row["first_seen"])


def worst_first(hurt: Iterable[HurtClient]) -> list[HurtClient]:
    """First what continues, then what lets nothing succeed, then what lasted longest."""

    def order(one: HurtClient) -> tuple[Any, ...]:
        return (
            not one.ongoing,
            one.is_partial,
            -round(one.lasted_s),
            -one.count,
            one.client_id or "",
            one.api,
            one.topic or "",
        )

    return sorted(hurt, key=order)
