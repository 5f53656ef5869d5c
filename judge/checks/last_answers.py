"""CLI010: clients that ask for nothing more once they were answered by an error.

Rule: Kafka itself says after which errors a client tries again. A library passes any other one to its application,
whose thread often ends with it, without a word on the wire. What is part of the protocol does not count
(`not_rejections.tsv`). After the others a client tries again until it is granted what it asks for, or has no time left:
so several in a row count where it asks no more, stays connected, and its topic or coordinator serves others.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from wirecheck.client_ids import is_of_node
from wirecheck.decode import schemas
from wirecheck.decode.request_waits import MILLISECOND_NS
from wirecheck.judge.activity_states import BEFORE_WORK, STEP_OF, is_bad
from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks import unserved
from wirecheck.judge.checks.broker_seekers import is_producer
from wirecheck.judge.checks.connection_ends import connections_that_are_over, hash_of, lives_on
from wirecheck.judge.checks.error_meanings import denial_action
from wirecheck.judge.checks.failed_tasks import TASK
from wirecheck.judge.checks.lone_readers import RHYTHM, longest_pause
from wirecheck.judge.checks.shapes import brokers_of, clock, resting_on, seen_everywhere, seen_whole
from wirecheck.judge.checks.unserved import GREETED, NOT_THERE
from wirecheck.judge.claims.claim import Claim, Subject, error_name
from wirecheck.judge.claims.outcomes import OPEN, OTHERS, SLOT_NS, SUCCESS, Outcomes, Part
from wirecheck.judge.claims.response_outcomes import outcome_name
from wirecheck.judge.not_rejections import EVERY, not_rejection
from wirecheck.judge.results.finding import Evidence
from wirecheck.judge.streaks import streaks, together
from wirecheck.judge.thresholds import SECOND_NS
from wirecheck.judge.topic_history import name_of, topic_of
from wirecheck.judge.topology.clusters import Group

OF_MEMBERS = frozenset({
    "JoinGroup", "SyncGroup", "Heartbeat", "ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "StreamsGroupHeartbeat",
    "OffsetCommit",
})  # fmt: skip
"""What a member of a group asks for. Fetches that were begun go on for a while without it."""
OF_WORK = OF_MEMBERS | {
    "OffsetFetch", "ListOffsets", "Fetch", "ShareFetch", "InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn",
    "TxnOffsetCommit", "EndTxn", "Produce", "SaslHandshake", "SaslAuthenticate",
}  # fmt: skip
READS = frozenset({"Fetch", "ShareFetch"})
IN_BACKGROUND = READS | {"Heartbeat", "ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "OffsetCommit"}
"""What goes on for a while, or on and on, without an application that reads."""
OUT_OF_RANGE = 1
"""CLI004: it may work on what it has, and asks where to go on at its next poll."""
METADATA, PRODUCER_ID = "Metadata", "InitProducerId"
"""A name that no topic may have is refused once; a producer gets its ID all the same. Its ID shows that it is there to
write: a tool, or who writes to other topics, too, may ask for any name.
"""
PRODUCE = "Produce"
DESCRIBE_CLUSTER = "DescribeCluster"
"""A worker of Kafka Connect asks for it by the client ID that a connector sets (KIP-700)."""
COORDINATOR = "FindCoordinator"
"""What a member, or a transaction, asks for before all else; a tool ends where that is denied."""
REPLACED = frozenset({47, 82, 90})
"""INVALID_PRODUCER_EPOCH, FENCED_INSTANCE_ID, PRODUCER_FENCED: another process has taken over, as in a rolling update,
where the one before ends.
"""


OWNED = 111
"""UNRELEASED_INSTANCE_ID: the former process of a static member may leave yet, but Java's client does not try again."""


SEVERAL = 3
"""So many errors in a row are no single attempt of a client that had no time left."""
LOGINS = frozenset({"SaslHandshake", "SaslAuthenticate"})
"""A library opens connections, and logs in again, without its application."""
OFFSETS = frozenset({"OffsetFetch", "ListOffsets"})
JOINS, LEAVES = "JoinGroup", "LeaveGroup"
AT_A_POLL = frozenset({JOINS, "SyncGroup", "Heartbeat", "OffsetCommit"})
"""After errors of these a member joins, or commits, again when its application polls."""


class Answer(NamedTuple):
    """When an API was answered last, and by which outcome."""

    ts_ns: int
    code: int
    claim: Claim


def ends_at_an_error(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    if is_of_node(subject[1]):
        return
    ends = (one(subject, group, context) for one in (last_of_all, last_of_reads, last_of_a_connection, last_of_retries))
    end = next((one for one in ends if one is not None), None)
    if end is not None:
        _, client_id, host = subject
        claims, api = [end.claim], end.claim["api"]
        words = {"client": client_id or "a client without an ID", "api": api, "error": error_name(end.code)}
        if denied := denial_action(outcome_name(end.code), api):
            words["denied"] = denied
        words["since"] = clock(end.ts_ns)
        about = {"client_ids": (end.claim["client_id"],), "brokers": brokers_of(claims, context)}
        yield resting_on(claims, client_id, host, api, first_ns=end.ts_ns, **about, words=words)


def last_of_all(subject: Subject, group: Group, context: CheckContext) -> Answer | None:
    """The last answer to all that a client asks for."""
    every = context.claims("activity", group, *subject)
    counts = OF_WORK | {COORDINATOR} | ({METADATA} if begins_to_write(every) else set())
    last = latest(claim for claim in every if claim["api"] in counts)
    if COORDINATOR in last and (administers(every) or not is_final(COORDINATOR, last[COORDINATOR], every)):
        del last[COORDINATOR]  # who found it goes on with something else, and a console with other groups
    ends = [answer for api, answer in last.items() if is_final(api, answer, every)]
    if not ends:
        return None
    end = max(ends, key=lambda answer: (answer.ts_ns, answer.claim.key))
    api = end.claim["api"]
    background = READS if api in OF_MEMBERS else frozenset({PRODUCER_ID}) if api == METADATA else frozenset[str]()
    background |= LOGINS if api not in LOGINS else frozenset[str]()
    idle_ns = max(answer.ts_ns for answer in last.values())
    if any(answer.ts_ns > end.ts_ns for other, answer in last.items() if other not in {api, *background}):
        if not ends_on_its_connection(end, every):
            return None
        idle_ns = end.ts_ns
    idle_ns += context.settings.fell_silent_s * SECOND_NS
    context.watch()
    may_end = end.code in REPLACED or (api in {METADATA, COORDINATOR} and not subject[1].startswith(TASK))
    if not context.passed(idle_ns) or (may_end and not lives_on(subject, idle_ns, context)):
        return None
    return end if seen_everywhere(subject, end.ts_ns, group, context, until_ns=idle_ns) else None


def last_of_reads(subject: Subject, group: Group, context: CheckContext) -> Answer | None:
    """The last answer to what a client reads, while a thread of its library sends heartbeats on, or leaves for it: it
    may read again once it has joined, or has asked where to go on.
    """
    last = latest(claim for claim in context.claims("activity", group, *subject) if claim["api"] in OF_WORK)
    read = [answer for api, answer in last.items() if api in READS]
    end = max(read, key=lambda answer: (answer.ts_ns, answer.claim.key), default=None)
    if end is None or not is_final(end.claim["api"], end, ()) or end.code == OUT_OF_RANGE:
        return None
    if any(answer.ts_ns > end.ts_ns for api, answer in last.items() if api not in IN_BACKGROUND):
        return None
    context.watch()
    idle_ns = end.ts_ns + context.settings.fell_silent_s * SECOND_NS
    if not context.passed(idle_ns):
        return None
    return end if seen_everywhere(subject, end.ts_ns, group, context, until_ns=idle_ns) else None


def administers(every: Iterable[Claim]) -> bool:
    """Whether a client asks for what neither readers nor writers need, as a console or an exporter does: that one of
    many groups is denied to it ends nothing.
    """
    return any(claim["api"] not in STEP_OF.keys() | BEFORE_WORK | {DESCRIBE_CLUSTER} for claim in every)


def begins_to_write(every: Collection[Claim]) -> bool:
    """Whether a client got a producer ID, and asked for nothing else that is work."""
    return {claim["api"] for claim in every} <= BEFORE_WORK | {PRODUCER_ID} and any(map(is_producer, every))


def last_of_a_connection(subject: Subject, group: Group, context: CheckContext) -> Answer | None:
    """The last answer on a connection of a member that stays open, of a client ID that several processes have, as a
    library's own: what the others do is not this member's. It would send a heartbeat every few seconds.
    """
    every, entries = (context.claims(kind, group, *subject) for kind in ("activity", "entry"))
    final = [
        (claim, code, port)
        for claim in [*every, *entries]
        if claim["api"] in OF_MEMBERS
        for code in sorted(claim.outcomes.codes())
        if is_final(claim["api"], Answer(0, code, claim), every)
        for port in sorted(claim.outcomes.parts({code}) - {OTHERS}, key=str)
    ]
    for claim, code, port in final:
        ts_ns, endpoint = last_ns(claim, port, {code}), claim["endpoint"]
        there = [one for one in every if one["endpoint"] == endpoint]
        if any(last_ns(one, port) > ts_ns for one in there):
            continue
        mine = there if claim.kind == "activity" else [one for one in entries if of_one_group(one, claim)]
        if any(among_others(one, port, ts_ns) for one in mine if one["api"] in OF_MEMBERS):
            continue
        if code not in REPLACED and any(last_ns(one) > ts_ns for one in every if one["api"] == GREETED):
            continue  # it may be the same application, which tries again
        idle_ns = ts_ns + context.settings.fell_silent_s * SECOND_NS
        context.watch()
        if not context.passed(idle_ns) or not is_open(subject, endpoint, port, idle_ns, context):
            continue
        if seen_whole(subject[1] or None, subject[2], {endpoint}, group, context, since_ns=ts_ns):
            return Answer(ts_ns, code, claim)
    return None


def of_one_group(one: Claim, other: Claim) -> bool:
    """Whether two claims are of one group and server: its few connections are kept apart beside many of others."""
    return (one["group"], one["endpoint"]) == (other["group"], other["endpoint"])


def among_others(claim: Claim, port: Part, since_ns: int) -> bool:
    """Whether answers on a connection since then may be among those that are not kept apart: of each slot the
    connections with the least ports are.
    """
    for code in claim.outcomes.codes():
        for parts in claim.outcomes.of(code).values():
            if OTHERS in parts and parts[OTHERS].last_ns > since_ns:
                kept = [one for one in parts if isinstance(one, int) and one != OTHERS]
                if not isinstance(port, int) or port > max(kept, default=-1):
                    return True
    return False


def last_of_retries(subject: Subject, group: Group, context: CheckContext) -> Answer | None:
    """The last of several errors in a row after which a client should have tried again, at whatever it asked for last:
    it asks for no work for twice as long as it ever paused. What a producer that wrote steadily, or a steady reader,
    does is CLI005's and CLI009's affair, but for a reader whose partition is not there any more, though its topic is:
    a topic that was created again has fewer, and a library that reads one asks for metadata on and on. One that reads
    ahead may have got that error for records that its application asks for later, or never. Who only asks for offsets
    may be an exporter, at its own pace; who read seldom reads again when its application polls. A member that leaves
    has ended its work.
    """
    asks = context.claims("activity", group, *subject)
    every = [claim for claim in asks if claim["api"] in OF_WORK - LOGINS]
    end = max(latest(every).values(), key=lambda answer: (answer.ts_ns, answer.claim.key), default=None)
    if end is None or end.claim["api"] in OFFSETS or not is_to_be_retried(end):
        return None
    if end.claim["api"] in OF_MEMBERS and left_since(end.ts_ns, subject, group, context):
        return None
    api, of_api = end.claim["api"], [claim for claim in every if claim["api"] == end.claim["api"]]
    asked = together(of_api)
    in_a_row = on_one_connection(asked)
    is_steady = api in READS and sum(asked.counts().values()) >= RHYTHM
    is_gone = is_steady and end.code in NOT_THERE
    if (not is_gone and (in_a_row < SEVERAL or is_steady)) or is_replaced(end, group, context):
        return None
    least_s = context.settings.client_grace_s if api in READS and not is_gone else context.settings.fell_silent_s
    polls_ns = stated_patience_ns(subject, group, context) if api in AT_A_POLL else 0
    idle_ns = end.ts_ns + max(least_s * SECOND_NS, polls_ns, 2 * (longest_pause(every) + 1) * SLOT_NS)
    context.watch()
    if is_gone and not looks_on(asks, end.ts_ns, idle_ns):
        return None
    if not lives_on(subject, idle_ns, context) or not serves_others(end, group, context):
        return None
    if api == PRODUCE and any(True for _ in unserved.writer_fell_silent(subject, group, context)):
        return None
    return end if seen_everywhere(subject, end.ts_ns, group, context, until_ns=idle_ns) else None


def looks_on(asks: Collection[Claim], since_ns: int, until_ns: int) -> bool:
    """Whether a client asks for metadata again and again meanwhile, and does not administer: a reader looks for its
    partition. A console, or an exporter, asks so whatever it reads.
    """
    runs = (run for claim in asks if claim["api"] == METADATA for run in claim.outcomes.runs())
    looks = sum(run.count for run in runs if since_ns < run.first_ns and run.last_ns <= until_ns)
    return looks >= SEVERAL and not administers(asks)


def stated_patience_ns(subject: Subject, group: Group, context: CheckContext) -> int:
    """How long an application may do without a poll, by which it joins again (max.poll.interval.ms): of one that joined
    before the capture the default.
    """
    joins = (one for one in context.claims("entry", group, *subject) if one["api"] == JOINS)
    stated = [limit_ms for one in joins if (limit_ms := int(one.peak.get("rebalance_timeout_ms", -1))) >= 0]
    return max(stated) * MILLISECOND_NS if stated else context.settings.client_grace_s * SECOND_NS


def on_one_connection(asked: Outcomes) -> int:
    """How many errors in a row came last on one connection, at most. Several processes of one client ID on a host may
    have one each.
    """
    bad = [*filter(is_bad, asked.codes())]
    last = [one for one in streaks(asked, bad)[-1:] if not one.ended]
    runs = ((run for run in asked.runs(bad, port)) for port in asked.parts(bad) - {OTHERS})
    return max((sum(run.count for run in of for one in last if run.last_ns >= one.first_ns) for of in runs), default=0)


def left_since(ts_ns: int, subject: Subject, group: Group, context: CheckContext) -> bool:
    every = (claim for claim in context.claims("activity", group, *subject) if claim["api"] == LEAVES)
    return any(last_ns(claim) > ts_ns for claim in every)


def is_replaced(end: Answer, group: Group, context: CheckContext) -> bool:
    """Whether another host began to use the client ID since: a container that is lost with its host closes nothing, and
    another one goes on with its work.
    """
    hashed, host = hash_of(end.claim["client_id"] or ""), end.claim["host"]
    every = (
        claim
        for endpoint in sorted(group.endpoints)
        for claim in context.anywhere("client_hash", "connected", "link", endpoint).get((hashed,), ())
    )
    return any(claim["host"] != host and claim.first.ts_ns > end.ts_ns for claim in every)


def is_to_be_retried(answer: Answer) -> bool:
    """Whether it is an error after which a client goes on by itself: the same way, or as the protocol says."""
    error = schemas.errors().get(answer.code)
    if error is None or answer.code <= SUCCESS:
        return False
    rule = not_rejection(answer.claim["api"], error.name)
    return error.retriable if rule is None else EVERY not in rule.works_on_by


def serves_others(end: Answer, group: Group, context: CheckContext) -> bool:
    """Whether what the client asked for was granted to another client after its last answer: the same topics, or any
    request by the same broker.
    """
    client, api = ("client", end.claim["client_id"] or "", end.claim["host"]), end.claim["api"]
    if api not in {PRODUCE, *READS}:
        every = context.claims("answered", group, "link", end.claim["endpoint"])
        return any(run.last_ns > end.ts_ns for one in every for run in one.outcomes.runs({SUCCESS}))
    by_name = {one["name"] for one in context.claims("named_answer", group, *client) if one["api"] == api}
    by_id = {one["topic_id"] for one in context.claims("refused", group, *client) if one["api"] == api}
    if end.code in NOT_THERE:  # others may be served the topic that was created in its place
        by_name |= {name for topic_id in by_id if (name := name_of(("id", topic_id), group, context))}
        by_id |= {one.topic_id for name in by_name for one in topic_of(name, group, context).histories}
    served = [one for name in sorted(by_name) for one in context.claims("serves", group, "name", name)]
    served += [one for topic_id in sorted(by_id) for one in context.claims("serves", group, "id", topic_id)]
    return any(one.last.ts_ns > end.ts_ns for one in served)


def is_open(subject: Subject, endpoint: str, port: Part, until_ns: int, context: CheckContext) -> bool:
    """Whether a client's connection had packets until then, or was never seen to close."""
    every = [one.outcomes for one in connections_that_are_over(subject, context) if one["endpoint"] == endpoint]
    unclosed = any(one.runs({OPEN}, part=port) for one in every)
    return unclosed or any(run.last_ns >= until_ns for one in every for run in one.runs(part=port))


def ends_on_its_connection(end: Answer, every: Collection[Claim]) -> bool:
    """Of a member whose client ID others on its host have, too, as a library's own: whether nothing follows the error
    on its connection, and no connection of that ID began since. A process that took over has one.
    """
    if end.claim["api"] not in OF_MEMBERS or end.code in REPLACED:
        return False
    ports = [port for port in end.claim.outcomes.parts({end.code}) if last_ns(end.claim, port, {end.code}) == end.ts_ns]
    if len(ports) != 1 or OTHERS in ports:
        return False
    (port,) = ports
    begun = (claim for claim in every if claim["api"] == GREETED)
    return not any(last_ns(claim, port) > end.ts_ns for claim in every) and not any(
        last_ns(claim) > end.ts_ns for claim in begun
    )


def last_ns(claim: Claim, port: Part | None = None, codes: Collection[int] | None = None) -> int:
    """When an API was answered last on a connection, or on any."""
    return max((run.last_ns for run in claim.outcomes.runs(codes, part=port)), default=0)


def latest(claims: Iterable[Claim]) -> dict[str, Answer]:
    """By API how it was answered last."""
    found: dict[str, Answer] = {}
    for claim in claims:
        for code in claim.outcomes.codes():
            ts_ns = last_ns(claim, codes={code})
            known = found.get(claim["api"])
            if known is None or ts_ns > known.ts_ns:
                found[claim["api"]] = Answer(ts_ns, code, claim)
    return found


def is_final(api: str, answer: Answer, every: Iterable[Claim]) -> bool:
    """Whether it is an error after which no library tries again. A producer of which a record is refused goes on with
    the next one, whenever that comes: it counts where nothing was ever written.
    """
    error = schemas.errors().get(answer.code)
    if error is None or answer.code <= SUCCESS or error.retriable:
        return False
    if answer.code != OWNED and not_rejection(api, error.name) is not None:
        return False
    if api == PRODUCE and answer.code not in REPLACED:
        return not any(SUCCESS in claim.outcomes for claim in every if claim["api"] == PRODUCE)
    return True
