"""Rows of the tables clients, clusters and harms.

Rule: a client is a client ID at an address; a client of two clusters has a row in each. Unauthenticated hosts make no
cluster. A row of harms rests on captured responses, or on requests that certainly got none. A client is hurt if it is
stuck (`checks/shapes.py`), was rejected for longer than its grace period, was never granted anything, or got no
response for so long that it had to give up. Anything less affected it briefly. Per topic, and per client, the worst
MOST rows are kept, and one more row counts the others. The story decides which finding a harm follows from.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import groupby
from typing import Any, NamedTuple

from wirecheck.client_ids import is_internal, is_of_node
from wirecheck.decode import schemas
from wirecheck.judge.activity_states import STALLED, STEP_OF, Activity, activities
from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.connection_ends import last_close
from wirecheck.judge.checks.outages import (
    COORDINATOR_NOT_AVAILABLE,
    FIND_COORDINATOR,
    LEADER_NOT_AVAILABLE,
    METADATA,
    UNKNOWN_TOPIC_OR_PARTITION,
    WRITES_AND_READS,
    asks_by_name,
    waits_for_a_leader,
    without_coordinator,
    without_leader,
    without_used_topic,
    works,
    writes_unasked,
)
from wirecheck.judge.checks.shapes import gathered, known_addresses, with_former, with_unseen
from wirecheck.judge.checks.versions import version_rejected
from wirecheck.judge.claims.claim import ZERO, Claim, Subject
from wirecheck.judge.claims.outcomes import HARMLESS, OTHERS, SUCCESS, Outcomes, Part
from wirecheck.judge.ledger.connection_sums import summed
from wirecheck.judge.not_rejections import is_protocols_own
from wirecheck.judge.results.finding import Side, first_of, last_of
from wirecheck.judge.results.result_table import Body, ResultRow
from wirecheck.judge.results.topic_rows import integers, known
from wirecheck.judge.split_batches import is_split, may_split
from wirecheck.judge.streaks import (
    ASKS_AGAIN_NS,
    LOSES_NOTHING,
    SENT_ELSEWHERE,
    Streak,
    is_never,
    is_unavailable,
    longest_of,
    partitions,
    refused_in_part,
    refused_partition,
    responses,
    served_elsewhere,
    streaks,
    stuck,
    succeeded_during,
    together,
    waits,
    with_served,
    with_successes,
)
from wirecheck.judge.thresholds import SECOND_NS
from wirecheck.judge.topic_history import former_name_of, name_of
from wirecheck.judge.topology.clusters import Group
from wirecheck.lasting import OFTEN


def clients(subject: Subject, context: CheckContext) -> Iterator[ResultRow]:
    """One row for each cluster that the client asks."""
    claims = context.believed(subject, "client", "exchanged", "login", "software")
    exchanged = {claim.key: claim.tally for claim in claims if claim.kind == "exchanged"}
    groups: dict[tuple[str, str | None], tuple[Group, list[Claim]]] = {}
    sizes: dict[str, Counter[str]] = defaultdict(Counter)
    for claim in claims:
        for group, part in context.clusters.parts(claim):
            groups.setdefault((group.key, group.cluster), (group, []))[1].append(part)
            if claim.kind == "client":  # of several clusters at one address, by the number of requests
                shares = ((name, size * part.count) for name, size in exchanged.get(claim.key, {}).items())
                sizes[group.key].update({name: share // claim.count for name, share in shares})
    for name in sorted(groups, key=str):
        group, parts = groups[name]
        if any(claim.kind == "client" for claim in parts):
            yield client_row(subject, group, parts, sizes[group.key], context)


def client_row(
    subject: Subject, group: Group, claims: list[Claim], sizes: Counter[str], context: CheckContext
) -> ResultRow:
    requests = [claim for claim in claims if claim.kind == "client"]
    software = max((claim for claim in claims if claim.kind == "software"), key=lambda c: c.last, default=None)
    used = versions_used(requests)
    runs = [run for claim in requests for run in claim.outcomes.runs()]
    times = [ts_ns for claim in requests for ts_ns in (claim.first.ts_ns, claim.last.ts_ns)]
    times += [ts_ns for run in runs for ts_ns in (run.first_ns, run.last_ns)]
    end = last_close(subject, group, context)
    return ResultRow.of(
        "clients",
        "|".join((group.key, *subject[1:])),
        group.cluster,
        client_id=subject[1] or None,
        address=requests[0]["host"],
        software_name=software["name"] if software else None,
        software_version=software["version"] if software else None,
        apis=[{"api": api, "versions": sorted(versions)} for api, versions in sorted(used.items())],
        requests=sum(claim.count for claim in requests),
        request_bytes=sizes["request_bytes"],
        response_bytes=sizes["response_bytes"],
        security_protocols=security_protocols(used.keys(), sizes["tls_requests"], requests),
        principals=principals(claims) if context.settings.principals and granted(requests) else [],
        granted=granted(requests),
        through=sorted({claim["endpoint"] for claim in requests} & context.forwarding.endpoints()),
        closed=end.ns if end else None,
        closed_by=end.by if end else None,
        first_seen=min(times),
        last_seen=max(times),
    )


def versions_used(requests: Iterable[Claim]) -> dict[str, set[int]]:
    """By API."""
    used: dict[str, set[int]] = {}
    for claim in requests:
        for word in claim.tally:
            api, _, version = word.rpartition(":")
            used.setdefault(api, set()).add(int(version))
    return used


FIRST_OF_A_CONNECTION = {"ApiVersions", "SaslHandshake"}
"""A client that sends one has a connection that was captured from its first request on."""


def security_protocols(apis: Collection[str], tls_requests: int, requests: Sequence[Claim]) -> list[str]:
    if FIRST_OF_A_CONNECTION.isdisjoint(apis):
        return []
    sasl = "SASL_" if "SaslHandshake" in apis else ""
    plain = sum(claim.count for claim in requests) - tls_requests
    return [f"{sasl}{name}" for name, count in (("PLAINTEXT", plain), ("SSL", tls_requests)) if count > 0]


def principals(claims: Iterable[Claim]) -> list[str]:
    """A few: a server that is not a broker can accept any number of logins."""
    return sorted({claim["principal"] for claim in claims if claim.kind == "login"})[:MOST_PRINCIPALS]


def granted(requests: Sequence[Claim]) -> bool | None:
    """Whether a server granted the client anything; None where no answer to it was seen."""
    if any(claim.peak.get("answered") for claim in requests):
        return True
    return False if any(claim.peak.get("refused") for claim in requests) else None


def clusters(_servers: Subject, context: CheckContext) -> Iterator[ResultRow]:
    """One row per cluster. Endpoints that could not be joined are in the row of the label's only cluster."""
    every = sorted((group for group in context.clusters.groups if not group.outsider), key=lambda group: group.key)
    for key, found in groupby(every, key=lambda group: group.key):
        groups = [*found]
        body = {
            "withdrawn": False,
            "cluster_id": next((group.cluster_id for group in groups if group.cluster_id), None),
            "endpoints": sorted({endpoint for group in groups for endpoint in group.endpoints}),
            "brokers": sorted({broker for group in groups for broker in group.brokers}),
            "uncaptured_brokers": context.clusters.uncaptured(groups),
            "first_seen": min(group.first_ns for group in groups),
            "last_seen": max(group.last_ns for group in groups),
        }
        yield ResultRow("clusters", key, body)


HURT, BRIEFLY = "hurt", "briefly"
NO_RESPONSE, CONNECTION_CLOSED = "NO_RESPONSE", "CONNECTION_CLOSED"
"""In place of an error: the response never came; the broker closed the connection after a write that asks for none."""
PRODUCE = "Produce"
MS_NS = 1_000_000
MOST = 10_000
"""As many as one check has findings at most: a client without a row would count as one that works."""
MOST_PARTITIONS = 16
MOST_PRINCIPALS = 16
REFUSING = ("named_answer", "overdue", "unknown_topic", "leaderless", "denied_topic")
"""Kinds of claims about a client by which it may be hurt. Without any, only by what is not granted, and by closed
connections.
"""
BRIEF_ANSWERS = 5
"""Fewer errors than this between successes are how clients find a new leader."""


OUTCOMES_BY_ID = frozenset({"Fetch", "Produce", "ShareFetch", "OffsetFetch", "TxnOffsetCommit"})
"""Requests of which a topic ID's own harm is made (`claims/extract/uses.py`): of commits by ID only the ledger counts
the successes.
"""


SERVES = frozenset({"Produce", "Fetch", "ListOffsets", "OffsetForLeaderEpoch"})
"""Requests that show which server serves a partition (`claims/extract/replicas.py`)."""
ANY_TIME_NS = 1 << 62
LISTENER_NOT_FOUND = 72


class RefusedTopic(NamedTuple):
    name: str | None
    topic_id: str | None


Who = tuple[str | None, str, str]
"""Client ID, address and API."""


class Refused(NamedTuple):
    """What one client was refused, of one topic by one API."""

    who: Who
    refusals: list[Claim]
    """Its errors, kept apart by partition, or its requests without a response."""
    answers: list[Claim]
    """Its errors and successes."""
    of_topic: list[Claim]
    """Its errors and successes of the topic by any ID."""


@dataclass(frozen=True)
class Harm:
    """What one row says: the errors of one level that a client got of a topic, or how long it waited."""

    who: Who
    topic: RefusedTopic
    claims: list[Claim]
    level: str
    streaks: list[Streak]
    partitions: list[int]
    errors: list[str]
    """By name."""
    count: int
    """Responses, or requests without one, however many partitions they name."""
    blocked_ms: int
    brokers: Sequence[int] = ()
    """Those that the harm is about, where they are not the ones that answered."""
    succeeded: Sequence[Claim] = ()
    """Answers to the same client about the topic by any ID, besides `claims`."""

    @property
    def first_ns(self) -> int:
        return min(streak.first_ns for streak in self.streaks)

    @property
    def last_ns(self) -> int:
        return max(streak.last_ns for streak in self.streaks)

    @property
    def answers(self) -> Iterator[Claim]:
        yield from self.claims
        yield from self.succeeded


Uses = dict[Who, list[Claim]]


def harms_of_id(subject: Subject, context: CheckContext) -> Iterator[ResultRow]:
    for group in known(context.groups(subject)):
        claims = context.claims("refused", group, *subject)
        if refused := by_client(with_former(claim, subject, group, context) for claim in claims):
            uses = uses_of_id(subject[1], group, context)
            name = name_of(subject, group, context) or former_name_of(subject, group, context)
            topic = RefusedTopic(name, subject[1])
            clusters = (group, *context.clusters.formerly(group))
            of_topic = [uses for cluster in clusters for uses in uses_of_topic(topic, cluster, context)]
            every = (
                Refused(who, claims, uses.get(who, []), of_client(who, of_topic)) for who, claims in refused.items()
            )
            yield from rows(subject[1], (refusals(one, topic, group, context) for one in every), group, context)


def uses_of_id(topic_id: str, group: Group, context: CheckContext) -> Uses:
    """By client: sorted once, however many clients are asked for."""
    place = id(group), topic_id
    if place not in context.uses:
        subject = ("id", topic_id)
        claims = (with_former(claim, subject, group, context) for claim in context.claims("use", group, *subject))
        context.uses[place] = by_client(claims)
    return context.uses[place]


def uses_of_topic(topic: RefusedTopic, group: Group, context: CheckContext) -> list[Uses]:
    """Of a topic ID, and of the others that its name had or has."""
    bindings = context.claims("binding", group, "name", topic.name) if topic.name is not None else ()
    ids = {topic.topic_id, *(claim["topic_id"] for claim in bindings)} - {None, ZERO}
    return [uses_of_id(topic_id, group, context) for topic_id in sorted(ids)]


def harms_of_client(subject: Subject, context: CheckContext) -> Iterator[ResultRow]:
    for group in known(context.groups(subject)):
        if not all_granted(subject, group, context) or any(context.claims(kind, group, *subject) for kind in REFUSING):
            yield from harms_of_responses(subject, group, context)
        yield from harms_of_closes(subject, group, context)


def all_granted(subject: Subject, group: Group, context: CheckContext) -> bool:
    """Whether no request of a client was rejected, and no group in an answer about several."""
    every = (one for kind in ("activity", "entry") for one in context.claims(kind, group, *subject))
    return all(HARMLESS.issuperset(one.outcomes.codes()) for one in every)


def harms_of_responses(subject: Subject, group: Group, context: CheckContext) -> Iterator[ResultRow]:
    refused = (c for c in context.claims("named_answer", group, *subject) if c.outcomes.codes() != {SUCCESS})
    for (name,), claims in gathered(refused, "name"):
        topic = RefusedTopic(name, None)
        by_id = uses_of_topic(topic, group, context)
        every = (refused_by_name(who, found, of_client(who, by_id)) for who, found in by_client(claims).items())
        harms = (refusals(one, topic, group, context) for one in every)
        yield from rows("|".join((*subject[1:], name)), harms, group, context)
    for named_as, ones in gathered(context.claims("overdue", group, *subject), "topic topic_id"):
        of = RefusedTopic(*named_as)
        if not of.name and of.topic_id is not None:
            of = of._replace(name=name_of(("id", of.topic_id), group, context))
        by_name = context.by("name", "named_answer", group, *subject).get((of.name,), [])
        answers = [by_client(by_name), *uses_of_topic(of, group, context)]
        every = (Refused(who, found, [], of_client(who, answers)) for who, found in by_client(ones).items())
        waited = (unanswered(one, of, group, context) for one in every)
        yield from rows("|".join((*subject[1:], NO_RESPONSE, *map(str, named_as))), waited, group, context)
    yield from harms_without_topic(subject, group, context)
    yield from harms_without_leader(subject, group, context)
    yield from harms_without_coordinator(subject, group, context)
    yield from harms_of_denied_topics(subject, group, context)
    yield from harms_of_activities(subject, group, context)


def refused_by_name(who: Who, claims: list[Claim], by_id: list[Claim]) -> Refused:
    """A fetch names topics while the client lacks the ID of one of them, and has their IDs before and after."""
    accepted = [run for claim in by_id for run in claim.outcomes.runs({SUCCESS})]

    def succeeded(last_ns: int, first_ns: int) -> bool:
        return succeeded_during(Streak(0, last_ns, first_ns), accepted)

    return Refused(who, claims, [with_successes(claim, succeeded) for claim in claims], [*claims, *by_id])


def harms_without_coordinator(subject: Subject, group: Group, context: CheckContext) -> Iterator[ResultRow]:
    claims = [claim for claim in context.claims("activity", group, *subject) if claim["api"] == FIND_COORDINATOR]
    longest = without_coordinator(claims)
    if longest is None or longest.count < BRIEF_ANSWERS or is_internal(subject[1]):
        return
    who = (claims[0]["client_id"], claims[0]["host"], FIND_COORDINATOR)
    level = HURT if longest.is_long(context.settings) else BRIEFLY
    topic, error = RefusedTopic(None, None), [named(COORDINATOR_NOT_AVAILABLE)]
    harm = Harm(who, topic, claims, level, [longest], [], error, longest.count, longest_ms([longest]))
    yield from rows("|".join((*subject[1:], FIND_COORDINATOR)), [harm], group, context)


def harms_of_activities(subject: Subject, group: Group, context: CheckContext) -> Iterator[ResultRow]:
    """What a client is not granted, whatever it asks for, and of no topic; administration that is rejected hurts no
    work. The story leaves out what other harm of the client says better.
    """
    if is_of_node(subject[1]) or all_granted(subject, group, context):
        return
    claims = context.claims("activity", group, *subject)
    uncaptured, entries = context.clusters.known_uncaptured([group]), context.claims("entry", group, *subject)
    splits = partial(may_split, subject, context)
    for one in activities(claims, context.settings, uncaptured=uncaptured, entries=entries, may_split=splits):
        if one.streak is None or not (one.is_hurt and one.is_work) or is_explained(one, subject, group, context):
            continue
        of, who = RefusedTopic(None, None), (one.client_id, one.host, one.api)
        blocked = longest_ms([one.streak]) if one.state == STALLED else 0
        harm = Harm(who, of, one.refusals, HURT, [one.streak], [], one.errors, one.streak.count, blocked,
                    succeeded=one.claims)  # fmt: skip
        yield from rows("|".join((*subject[1:], one.api, "refused")), [harm], group, context)


def is_explained(one: Activity, subject: Subject, group: Group, context: CheckContext) -> bool:
    """Whether there is a harm of its own: of a topic, of no coordinator, of a late response."""
    if one.api == METADATA:
        return any(context.claims(kind, group, *subject) for kind in ("unknown_topic", "leaderless", "denied_topic"))
    if one.errors == [NO_RESPONSE]:
        return any(claim["api"] == one.api for claim in context.claims("overdue", group, *subject))
    if one.api == FIND_COORDINATOR and one.errors == [named(COORDINATOR_NOT_AVAILABLE)]:
        longest = without_coordinator(one.claims)
        return longest is not None and longest.is_long(context.settings)
    if all(is_protocols_own(one.api, error, in_part=one.state != STALLED) for error in one.errors):
        return (
            False  # the story leaves these out of what a topic's harm says, and only the ledger knows that they count
        )
    kinds = ("refused", "named_answer") if one.api in OUTCOMES_BY_ID else ("named_answer",)
    answers = (claim for kind in kinds for claim in context.claims(kind, group, *subject))
    levels = (worst(claim, context) for claim in answers if claim["api"] == one.api)
    return any(of_topic is not None and of_topic[0] == HURT for of_topic in levels)


def harms_of_denied_topics(subject: Subject, group: Group, context: CheckContext) -> Iterator[ResultRow]:
    """Topics that Metadata responses deny."""
    if is_internal(subject[1]):
        return
    for (name,), claims in gathered(context.claims("denied_topic", group, *subject), "name"):
        if (harm := denial(claims, name, context)) is not None:
            yield from rows("|".join((*subject[1:], METADATA, name, "refused")), [harm], group, context)


def denial(claims: list[Claim], name: str, context: CheckContext) -> Harm | None:
    """What all brokers together refused a client for so long that it is hurt."""
    outcomes = together(claims)
    longest, settings = longest_of(streaks(outcomes, outcomes.errors())), context.settings
    if longest is None or not (is_never(longest, outcomes, settings) or longest.is_long(settings)):
        return None
    who, names = (claims[0]["client_id"], claims[0]["host"], METADATA), [named(error) for error in longest.errors]
    of = RefusedTopic(name, None)
    return Harm(who, of, claims, HURT, [longest], [], names, longest.count, longest_ms([longest]))


def harms_of_closes(subject: Subject, group: Group, context: CheckContext) -> Iterator[ResultRow]:
    """Writes with acks=0 that all brokers together reject: each closes the connection at once, again and again. VER001
    says so of versions that Kafka 4.0 removed.
    """
    asked = context.claims("client", group, *subject)
    writes = {claim["endpoint"] for claim in asked if any(word.startswith(f"{PRODUCE}:") for word in claim.tally)}
    if not writes or is_internal(subject[1]):
        return
    every = [claim for endpoint in sorted(writes) for claim in context.claims("closed_after", group, "link", endpoint)]
    mine = [one for one in summed(every) if (one["client_id"] or "", one["host"]) == subject[1:]]
    closed = sum(one.tally.get("at_once", 0) for one in mine)
    settings, count = context.settings, sum(one.count for one in mine)
    if closed < settings.stuck_answers or (count - closed) * settings.partly_one_in > closed:
        return
    streak = Streak(closed, min(one.first.ts_ns for one in mine), max(one.last.ts_ns for one in mine))
    often = streak.seconds * SECOND_NS <= closed * ASKS_AGAIN_NS
    if not (often and streak.is_long(settings)) or any(True for _ in version_rejected(subject, group, context)):
        return
    last_ns = max((claim.peak.get("wrote", 0) for claim in asked), default=0)
    streak = replace(streak, ended=last_ns > streak.last_ns + ASKS_AGAIN_NS)
    harm = Harm(
        (mine[0]["client_id"], subject[2], PRODUCE), RefusedTopic(None, None), mine, HURT, [streak], [],
        [CONNECTION_CLOSED], closed, longest_ms([streak]),
    )  # fmt: skip
    yield from rows("|".join((*subject[1:], PRODUCE, "closed")), [harm], group, context)


def harms_without_topic(subject: Subject, group: Group, context: CheckContext) -> Iterator[ResultRow]:
    """Topics that a client wrote or read, and which do not exist any more."""
    answers = context.by("name", "named_answer", group, *subject)
    for (name,), claims in gathered(context.claims("unknown_topic", group, *subject), "name"):
        by_name = answers.get((name,), [])
        if not by_name and not context.ledger.claims("binding", "name", name):  # it was never used, nor an ID of it
            if (harm := asked_in_vain(claims, name, subject, group, context)) is not None:
                yield from rows("|".join((*subject[1:], METADATA, name)), [harm], group, context)
            continue
        topic, client = RefusedTopic(name, None), (claims[0]["client_id"], claims[0]["host"])
        tables = [by_client(by_name), *uses_of_topic(topic, group, context)]
        uses = [claim for api in WRITES_AND_READS for claim in of_client((*client, api), tables)]
        served = [run for claim in uses for run in claim.outcomes.runs({SUCCESS})]
        bound = context.claims("binding", group, "name", name)
        unasked = [] if served else writes_unasked(client, name, bound, group, context)
        named_ns = [claim.first.ts_ns for claim in bound]
        longest = None if is_internal(client[0]) else without_used_topic(claims, served, unasked, named_ns)
        if longest is not None and is_unavailable(longest, context.settings):
            later_ns = max([*named_ns, *(run.last_ns for run in served)])
            longest = replace(longest, ended=later_ns > longest.last_ns)
            error, who = [named(UNKNOWN_TOPIC_OR_PARTITION)], (*client, METADATA)
            harm = Harm(who, topic, claims, HURT, [longest], [], error, longest.count, longest_ms([longest]))
            yield from rows("|".join((*subject[1:], METADATA, name)), [harm], group, context)


def asked_in_vain(claims: list[Claim], name: str, subject: Subject, group: Group, context: CheckContext) -> Harm | None:
    """A client that asks for a topic that was never there, for so long that it is hurt, and writes and reads nothing
    else meanwhile. Who has other work, or looks into groups and offsets, waits for a topic that others create.
    """
    work = [one for one in context.claims("activity", group, *subject) if one["api"] in (*WRITES_AND_READS, *LOOKS_ON)]
    if is_of_node(subject[1]):
        return None
    if any(one.succeeded for one in work):
        longest = asked_in_vain_alone(claims, work, subject, group, context)
    else:
        longest = longest_of(streaks(together(claims), {UNKNOWN_TOPIC_OR_PARTITION}))
    if longest is None or not is_never(longest, together(claims), context.settings):
        return None
    who, error = (claims[0]["client_id"], claims[0]["host"], METADATA), [named(UNKNOWN_TOPIC_OR_PARTITION)]
    of = RefusedTopic(name, None)
    return Harm(who, of, claims, HURT, [longest], [], error, longest.count, longest_ms([longest]))


def asked_in_vain_alone(
    claims: list[Claim], work: list[Claim], subject: Subject, group: Group, context: CheckContext
) -> Streak | None:
    """The same of one connection, where several processes have one client ID, as a library's own: it asks for no topic
    that is there, and is used for nothing else. Where there is one broker its process has no other one for its work.
    Where there are several, a process with other work asks for metadata on the connections of that work, too.
    """
    if context.clusters.uncaptured([group]):
        return None
    ports = {port for claim in claims for port in claim.outcomes.parts({UNKNOWN_TOPIC_OR_PARTITION})} - {OTHERS}
    busy = {port for claim in work for port in claim.outcomes.parts(claim.outcomes.codes())}
    asked = together(one for one in context.claims("activity", group, *subject) if one["api"] == METADATA)
    found, alone = together(claims), ports - busy if OTHERS not in busy else set[Part]()
    if alone < ports and len({one for one, _ in known_addresses(None, group, context)}) > 1:
        return None
    every = [
        (port, one) for port in sorted(alone, key=str) for one in streaks(found, {UNKNOWN_TOPIC_OR_PARTITION}, port)
    ]
    return longest_of(
        one for port, one in every if not any(one.first_ns < run.last_ns for run in asked.runs({SUCCESS}, part=port))
    )


LOOKS_ON = ("ListOffsets", "OffsetFetch", "DescribeGroups", "ListGroups", "DescribeConfigs", "DescribeCluster")
"""What exporters and tools are granted while a topic that they also ask for is not there."""


def harms_without_leader(subject: Subject, group: Group, context: CheckContext) -> Iterator[ResultRow]:
    """Partitions of topics that a client writes or reads, and for which brokers answered it that they had no leader.
    Who merely asks, as a monitor does, is not hurt, nor is who asks for all topics there are. Where its writes and
    reads went to brokers that were not captured, it must ask as often as one that waits.
    """
    for (name, topic_id), claims in gathered(context.claims("leaderless", group, *subject), "name topic_id"):
        topic = RefusedTopic(name, None if topic_id == ZERO else topic_id)
        client = claims[0]["client_id"], claims[0]["host"]
        by_name = context.by("name", "named_answer", group, *subject).get((name,), [])
        tables = [by_client(by_name), *uses_of_topic(topic, group, context)]
        used = any(of_client((*client, api), tables) for api in WRITES_AND_READS)
        if not is_internal(client[0]) and (used or (asks_by_name(claims) and works(subject, group, context))):
            harm = harm_without_leader(claims, by_name, topic, group, context, used=used)
            yield from rows("|".join((*subject[1:], METADATA, *map(str, topic))), [harm], group, context)


def harm_without_leader(
    claims: list[Claim], by_name: list[Claim], topic: RefusedTopic, group: Group, context: CheckContext, *, used: bool
) -> Harm | None:
    about = ("id", topic.topic_id) if topic.topic_id else ("name", topic.name or "")
    states = context.claims("partition" if topic.topic_id else "unnumbered", group, *about)
    found: dict[str, dict[int, Streak]] = {}
    code, waits_for = LEADER_NOT_AVAILABLE, without_leader(claims, by_name, states)
    if not waits_for:  # others, who came by another listener, are answered which broker leads
        code, waits_for = LISTENER_NOT_FOUND, without_leader(claims, by_name, (), LISTENER_NOT_FOUND)
    for number, one in waits_for.items():
        if one.count < BRIEF_ANSWERS or not (used or waits_for_a_leader(one)):
            continue
        if code == LEADER_NOT_AVAILABLE:
            led = (state for state in states if state["partition"] == number and state["leader"] >= 0)
            ended = any(state.last_word.ts_ns > one.last_ns for state in led)
        else:
            ended = last_asked_ns(claims[0], group, context) > one.last_ns + ASKS_AGAIN_NS
        level = HURT if one.is_long(context.settings) else BRIEFLY
        found.setdefault(level, {})[number] = replace(one, ended=ended)
    if not found:
        return None
    level = HURT if HURT in found else BRIEFLY
    of_level = found[level]
    without = (state for state in states if state["partition"] in of_level and state["leader"] < 0)
    replicas = {broker for state in without for broker in integers(state["replicas"])}
    who, waited = (claims[0]["client_id"], claims[0]["host"], METADATA), [*of_level.values()]
    error, count = [named(code)], max(streak.count for streak in waited)
    return Harm(who, topic, claims, level, waited, [*of_level], error, count, longest_ms(waited), sorted(replicas))


def last_asked_ns(of: Claim, group: Group, context: CheckContext) -> int:
    """When a client was answered with metadata last."""
    every = context.by("api", "activity", group, "client", of["client_id"] or "", of["host"])
    return last_accepted_ns(every.get((METADATA,), ()))


def by_client(claims: Iterable[Claim]) -> Uses:
    return {(client_id, host, api): found for (client_id, host, api), found in gathered(claims, "client_id host api")}


def of_client(who: Who, tables: list[Uses]) -> list[Claim]:
    return [claim for table in tables for claim in table.get(who, ())]


def rows(about: str, harms: Iterable[Harm | None], group: Group, context: CheckContext) -> Iterator[ResultRow]:
    """The worst first; those beyond are one row."""
    found = [harm for harm in harms if harm is not None]
    found.sort(key=lambda harm: (harm.level != HURT, -harm.count, str(harm.who)))
    for harm in found[:MOST]:
        client_id, host, api = harm.who
        key = "|".join((group.key, about, client_id or "", host, api))
        yield ResultRow("harms", key, body_of(harm, group, context))
    if rest := found[MOST:]:
        first = body_of(rest[0], group, context)
        lists: dict[str, Any] = {name: [] for name in ("partitions", "errors", "brokers", "metadata_brokers", "sides")}
        empty = {**first, **lists, "client_id": None, "address": None}
        body = {**empty, "others": len(rest), "count": sum(harm.count for harm in rest)}
        yield ResultRow("harms", f"{group.key}|{about}|others", body)


def refusals(one: Refused, topic: RefusedTopic, group: Group, context: CheckContext) -> Harm | None:
    """None where it was refused too little to be worth a row."""
    of_topic = answers_of_topic(one, topic, group, context)
    known = (served_by_others(claim, of_topic) for claim in one.answers)
    answers = ((claim, with_unseen(claim, group, context)) for claim in known)
    every = ((claim, perhaps is claim, worst(perhaps, context)) for claim, perhaps in answers)
    found = [(pair[0], pair[1] if whole else as_known(pair[1], claim), claim) for claim, whole, pair in every if pair]
    hurt_at = {claim["endpoint"] for of, _, claim in found if of == HURT}
    elsewhere = (claim for claim in one.refusals if claim["endpoint"] not in hurt_at)
    apart = ((claim, of_one_partition(claim, one.who, group, context)) for claim in elsewhere)
    found += [(HURT, streak, claim) for claim, streak in apart if streak]
    level = HURT if any(of == HURT for of, *_ in found) else BRIEFLY
    settled_ns = last_accepted_ns(of_topic) - ASKS_AGAIN_NS
    where = {
        claim["endpoint"]: replace(streak, ended=streak.ended or streak.last_ns < settled_ns)
        for of, streak, claim in found
        if of == level
    }
    if level == BRIEFLY and not any(worth_a_row(streak, context) for streak in where.values()):
        return None
    during = reduce(Streak.joined, where.values())
    for _, streak, claim in found:  # refused elsewhere meanwhile; whether it is over, those of the level say
        if claim["endpoint"] not in where and streak.first_ns <= during.last_ns and streak.last_ns >= during.first_ns:
            where[claim["endpoint"]] = replace(streak, ended=True)
    of_level = [*where.values()]
    count = sum(responses(claim, where[at]) for claim in one.refusals if (at := claim["endpoint"]) in where)
    numbers = {number for claim in one.refusals for number in partitions(claim.outcomes, claim.outcomes.errors())}
    errors = [named(error) for error in sorted({error for streak in of_level for error in streak.errors})]
    blocked = blocked_ms([*one.refusals, *one.of_topic])
    return Harm(
        one.who, topic, one.refusals, level, of_level, sorted(numbers), errors, count, blocked, succeeded=one.of_topic
    )


def of_one_partition(claim: Claim, who: Who, group: Group, context: CheckContext) -> Streak | None:
    """What one partition is refused while the same responses grant others."""
    client_id, host, api = who
    every = context.by("api endpoint", "activity", group, "client", client_id or "", host)
    requests = together(every.get((api, claim["endpoint"]), ()))

    def is_harmless(part: Streak, outcomes: Outcomes) -> bool:
        lossless = LOSES_NOTHING.issuperset(part.errors)
        return lossless or (is_split(api, part, outcomes) and may_split(client_of(claim), context))

    def served_ns(partition: int) -> int:
        about = ("id", claim["topic_id"]) if claim.kind == "refused" else ("name", claim["name"])
        served = context.by("partition endpoint", "serves", group, *about).get((partition, claim["endpoint"]), ())
        return max((one.peak["latest"] for one in served), default=0) if api in SERVES else ANY_TIME_NS

    step = STEP_OF.get(api, "")
    return refused_partition(
        claim.outcomes, requests, context.settings, step, served_ns=served_ns, is_harmless=is_harmless
    )


def served_by_others(claim: Claim, of_topic: Iterable[Claim]) -> Claim:
    """With a success of each partition in the pauses in which another broker served it: it had moved there. What is
    known by a topic's ID is kept apart by connection, and was served in whichever partition.
    """
    outcomes, errors = claim.outcomes, claim.outcomes.errors()
    if SENT_ELSEWHERE.isdisjoint(errors):
        return claim
    others = [one for one in of_topic if one["endpoint"] != claim["endpoint"]]
    for part in sorted(outcomes.parts(errors), key=str):
        partition = part if claim.kind == "named_answer" else None
        granted = [run for one in others for run in one.outcomes.runs({SUCCESS}, partition)]
        outcomes = with_served(outcomes, part, served_elsewhere(outcomes, errors, part, granted))
    if outcomes is claim.outcomes:
        return claim
    found = claim.copy()
    found.outcomes = outcomes
    return found


def worth_a_row(streak: Streak, context: CheckContext) -> bool:
    """Of a client that is not known to be hurt: many errors, or some over a long time with no success since."""
    open_for_long = not streak.ended and streak.count >= OFTEN and streak.seconds >= context.settings.stuck_s
    return streak.count >= BRIEF_ANSWERS or open_for_long


def as_known(streak: Streak, claim: Claim) -> Streak:
    """To the first and the last error with no known success between: a success that was not captured (`with_unseen`)
    decides whether a client is hurt, and not how often it was refused.
    """
    known = [
        one
        for one in streaks(claim.outcomes, streak.errors)
        if one.first_ns <= streak.last_ns and one.last_ns >= streak.first_ns
    ]
    if not known:
        return streak
    whole = reduce(Streak.joined, known)
    ended = streak.ended and known[-1].ended
    return replace(whole.joined(streak), count=max(whole.count, streak.count), ended=ended)


def last_accepted_ns(answers: Iterable[Claim]) -> int:
    """When a request of the client about the topic last succeeded, at any broker; 0 if never."""
    return max((run.last_ns for claim in answers for run in claim.outcomes.runs({SUCCESS})), default=0)


def answers_of_topic(one: Refused, topic: RefusedTopic, group: Group, context: CheckContext) -> list[Claim]:
    """What all brokers answered the client about the topic by this API."""
    client_id, host, api = one.who
    if topic.topic_id is not None:
        return one.of_topic
    by_name = context.by("name api", "named_answer", group, "client", client_id or "", host)
    return [*{claim.identity: claim for claim in [*one.of_topic, *by_name.get((topic.name, api), [])]}.values()]


def blocked_ms(claims: Iterable[Claim]) -> int:
    """The longest time between errors without a success: of all IDs, partitions and brokers together."""
    outcomes = together(claims)
    return longest_ms(streaks(outcomes, outcomes.errors()))


def longest_ms(found: Iterable[Streak]) -> int:
    return max((streak.last_ns - streak.first_ns for streak in found), default=0) // MS_NS


def unanswered(one: Refused, topic: RefusedTopic, group: Group, context: CheckContext) -> Harm:
    """The longest time that each server left a client without a response; over once the server answers again."""
    longest = [(claim, max(waits(claim), key=lambda wait: wait.seconds)) for claim in one.refusals]
    patience_s = context.settings.patience_s
    level = HURT if any(wait.seconds >= patience_s for _, wait in longest) else BRIEFLY
    of_level = [
        replace(wait, ended=answers_after(claim, wait.last_ns, group, context))
        for claim, wait in longest
        if (wait.seconds >= patience_s) == (level == HURT)
    ]
    accepted = [run for claim in one.of_topic for run in claim.outcomes.runs({SUCCESS})]
    blocked = longest_ms(wait for wait in of_level if not succeeded_during(wait, accepted))
    count = sum(wait.count for wait in of_level)
    return Harm(one.who, topic, one.refusals, level, of_level, [], [NO_RESPONSE], count, blocked)


def answers_after(claim: Claim, ts_ns: int, group: Group, context: CheckContext) -> bool:
    every = context.claims("answered", group, "link", claim["endpoint"])
    return any(run.last_ns >= ts_ns for one in every for run in one.outcomes.runs({SUCCESS}))


def body_of(harm: Harm, group: Group, context: CheckContext) -> Body:
    client_id, address, api = harm.who
    at = context.clusters.broker
    answered = {at(claim.server(), seen.ts_ns) for claim in harm.claims for seen in (claim.first, claim.last)}
    return {
        "withdrawn": False,
        "cluster": group.cluster,
        "client_id": client_id,
        "address": address,
        "api": api,
        "topic": harm.topic.name,
        "topic_id": harm.topic.topic_id,
        "level": harm.level,
        "partitions": harm.partitions[:MOST_PARTITIONS],
        "errors": harm.errors,
        "brokers": harm.brokers or sorted(broker for broker in answered if broker is not None),
        "metadata_brokers": metadata_brokers(harm, group, context),
        "count": harm.count,
        "first_seen": harm.first_ns,
        "last_seen": harm.last_ns,
        "blocked_ms": harm.blocked_ms,
        "granted_before": granted_before(harm),
        "sides": [side.row() for side in sides_of(harm)],
        "recovered": all(streak.ended for streak in harm.streaks),
    }


def metadata_brokers(harm: Harm, group: Group, context: CheckContext) -> list[int]:
    """Those of which the client last asked metadata after the first error: it then knew what they said."""
    client_id, host, _ = harm.who
    asked = context.claims("client", group, "client", client_id or "", host)
    served = ((one["endpoint"], asked_ns) for one in asked if (asked_ns := one.peak.get("metadata", 0)) > harm.first_ns)
    brokers = {context.clusters.broker(endpoint, asked_ns) for endpoint, asked_ns in served}
    return sorted(broker for broker in brokers if broker is not None)


def granted_before(harm: Harm) -> bool:
    """Whether a request of the client with this API and topic succeeded before the first error."""
    return any(run.first_ns < harm.first_ns for claim in harm.answers for run in claim.outcomes.runs({SUCCESS}))


def sides_of(harm: Harm) -> list[Side]:
    """The first and the last of the sightings within the time of the errors, which may be of successes between them."""
    every = sorted(
        {side for claim in harm.claims for side in (first_of(claim), last_of(claim))},
        key=lambda side: (side.sighting, side.claim),
    )
    within = [side for side in every if harm.first_ns <= side.sighting.ts_ns <= harm.last_ns] or every[-1:]
    return within if len(within) < 2 else [within[0], within[-1]]


def worst(claim: Claim, context: CheckContext) -> tuple[str, Streak] | None:
    """The longest time that a client was refused by one broker, and what that means to it."""
    outcomes, bad = claim.outcomes, claim.outcomes.errors()
    if not bad:
        return None
    lasting = stuck(outcomes, bad, context)
    if lasting is not None:
        return HURT, lasting
    most = longest_of(streaks(outcomes, bad))
    if most is None:  # all of them among successes
        return None
    settings = context.settings
    part = refused_in_part(outcomes, bad, settings, STEP_OF.get(claim["api"], ""))
    if part is not None and not (is_split(claim["api"], part, outcomes) and may_split(client_of(claim), context)):
        return HURT, part
    never = not claim.succeeded and most.count >= settings.never_answers and most.seconds >= settings.never_s
    return (HURT if never or most.seconds >= settings.client_grace_s else BRIEFLY), most


def client_of(claim: Claim) -> Subject:
    return ("client", claim["client_id"] or "", claim["host"])


def named(error: int) -> str:
    known_as = schemas.errors().get(error)
    return known_as.name if known_as else f"error {error}"
