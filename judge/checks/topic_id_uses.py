"""TID: topic IDs in requests: IDs that ended, zero IDs, reserved IDs, IDs without a name, and IDs that replace others.

Rule: uses count from the deletion on, and are reported after the grace period. A topic that a fetch forgets is not
used. A broker has a replica from the request to create it until the request to delete it; requests to other brokers do
not matter.
"""

import base64
from collections.abc import Iterator
from typing import Any

from wirecheck.client_ids import broker_of
from wirecheck.decode.log.metadata_log import TOPIC_NAME
from wirecheck.decode.releases import gives_ids
from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.shapes import (
    apis_of,
    clients_of,
    clock,
    controllers_named,
    counted,
    ends,
    gathered,
    goes_on,
    numbered,
    resting_on,
    servers_of,
)
from wirecheck.judge.checks.statements import disagreements
from wirecheck.judge.checks.topic_ids import recreation, renumbered
from wirecheck.judge.claims.claim import METADATA_LOG, RESERVED, ZERO, Claim, Subject
from wirecheck.judge.claims.extract.log_entries import SOURCE
from wirecheck.judge.claims.extract.uses import DESCRIPTIONS, SHARED
from wirecheck.judge.results.finding import Evidence, Side, first_of, last_of
from wirecheck.judge.streaks import stuck
from wirecheck.judge.topic_history import History, Topic, name_of, stated_order, topic_of
from wirecheck.judge.topology.clusters import Group

BEFORE_FIRST_NS = 2_000_000_000
"""A client that continues to use an ID uses it within this time after its end."""
DESCRIBING = {api for api, _ in (*DESCRIPTIONS, *SHARED)}
BROKERS_OWN = {"AlterPartition"}
"""Asked by brokers only, under their number as the client id."""

VERSION_BITS, RANDOM = 76, 4
VARIANT_BITS, LEACH_SALZ = 62, 2
"""Where RFC 9562 keeps the version and the variant of a UUID, and which those of java.util.UUID.randomUUID are."""
NO_LEADERSHIP = {"stop", "delete"}
"""Kinds of orders that make a broker neither leader nor follower."""
UNKNOWN_TOPIC_ID = 100
LAST_RESERVED = 99
"""Kafka reserves the IDs 0 to 99: 0 is the zero ID, 1 the metadata log."""


def stale_topic_id_in_use(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    yield from uses_after_end(subject, group, context, brokers=False)


def stale_topic_id_in_replication(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    yield from uses_after_end(subject, group, context, brokers=True)


def uses_after_end(subject: Subject, group: Group, context: CheckContext, *, brokers: bool) -> Iterator[Evidence]:
    ended = end_of(subject, group, context)
    if ended is None:
        yield from uses_of_a_foreign_id(subject, group, context, brokers=brokers)
        return
    name, side = ended
    began = (one.began for one in context.generations(group).every if one.began is not None)
    if brokers and any(first_of(claim) == side for claim in began):
        return  # the broker is right about the log that it has read: LOG004 or LOG005 states what happened to it
    grace_ns = context.settings.broker_grace_ns if brokers else context.settings.client_grace_ns
    late: dict[tuple[Any, ...], list[Claim]] = {}
    for claim in context.claims("use", group, *subject):
        broker = sender_of(claim, group, context)
        if (broker is not None) is brokers and used_ns(claim) >= side.sighting.ts_ns + grace_ns:
            who: tuple[Any, ...] = (claim["client_id"], claim["host"]) if broker is None else (broker,)
            late.setdefault(who, []).append(claim)
    ended_ns = side.sighting.ts_ns
    for who, claims in sorted(late.items(), key=str):
        if brokers and not lasts(claims, ended_ns, grace_ns):
            continue
        since_ns = max(ended_ns, min(first_ns for claim in claims for first_ns, _ in spans(claim, ended_ns)))
        about = {"topic": name, "topic_ids": (subject[1],), "client_ids": clients_of(claims), "first_ns": since_ns}
        count = sum(after(claim, ended_ns) for claim in claims) or len(claims)
        words = {"does": "still uses", "which": f"ended at {clock(ended_ns)}", "ended": clock(ended_ns)}
        words |= {"last": clock(max(map(used_ns, claims))), "apis": apis_of(claims)}
        sides, about["brokers"] = (side, *map(last_of, claims)), who if brokers else ()
        yield resting_on(claims, subject[1], *who, sides=sides, count=count, **about, words=words)


def uses_of_a_foreign_id(subject: Subject, group: Group, context: CheckContext, *, brokers: bool) -> Iterator[Evidence]:
    """Requests that call a topic by an ID that no broker, controller or log gave it, while they give it another one."""
    grace_ns = context.settings.broker_grace_ns if brokers else context.settings.client_grace_ns
    found: dict[tuple[Any, ...], list[Claim]] = {}
    given: dict[str, Claim] = {}
    for claim in context.claims("stated", group, *subject):
        topic, broker = topic_of(claim["name"], group, context), sender_of(claim, group, context)
        if not topic.histories or topic.had(subject[1]):
            continue
        current = topic.histories[-1]
        both_ns = max(claim.first.ts_ns, current.born_ns)
        if (broker is not None) is brokers and goes_on(claim, both_ns, grace_ns):
            who: tuple[Any, ...] = (claim["client_id"], claim["host"]) if broker is None else (broker,)
            found.setdefault((claim["name"], *who), []).append(claim)
            given[claim["name"]] = current.last
    for (name, *whose), claims in sorted(found.items(), key=str):
        actual = given[name]
        words: dict[str, object] = {
            "does": "uses",
            "which": f"is not that of {name} ({actual['topic_id']})",
            "ended": "",
        }
        words |= {"last": clock(max(claim.last.ts_ns for claim in claims)), "apis": apis_of(claims)}
        first_ns = max(min(claim.first.ts_ns for claim in claims), actual.first.ts_ns)
        about = {"topic": name, "topic_ids": (subject[1], actual["topic_id"]), "client_ids": clients_of(claims)}
        sides = (last_of(actual), *ends(claims))
        about |= {"brokers": tuple(whose) if brokers else (), "first_ns": first_ns}
        yield resting_on(claims, subject[1], *whose, sides=sides, **about, words=words)


def sender_of(claim: Claim, group: Group, context: CheckContext) -> int | None:
    """The broker whose own request it is, by its client ID and its host; None of a client's."""
    own = claim["api"] in BROKERS_OWN or not (claim["client_id"] or "").isdigit()
    broker = broker_of(claim["client_id"]) if own else None
    return broker if broker is not None and context.acts_as(broker, claim["host"], group) else None


def used_ns(claim: Claim) -> int:
    """When it was asked for last; answers may come much later."""
    return int(claim.peak.get("used", claim.last.ts_ns))


def lasts(claims: list[Claim], since_ns: int, for_ns: int) -> bool:
    """Whether an ID was used for this long after a time, without a pause of half of it. A client that was paused uses
    what it knew before for a moment, however late.
    """
    begin_ns = until_ns = -for_ns
    for first_ns, last_ns in sorted(span for claim in claims for span in spans(claim, since_ns)):
        if first_ns - until_ns > for_ns // 2:
            begin_ns = max(first_ns, since_ns)
        until_ns = max(until_ns, last_ns)
        if until_ns - begin_ns >= for_ns - BEFORE_FIRST_NS:
            return True
    return False


def spans(claim: Claim, since_ns: int) -> list[tuple[int, int]]:
    """From when to when an ID was used after a time, by its answers; else by its first and its last use."""
    if claim.outcomes:
        return [(run.first_ns, run.last_ns) for run in claim.outcomes.runs() if run.last_ns >= since_ns]
    first_ns, last_ns = claim.first.ts_ns, used_ns(claim)
    return [(first_ns if first_ns >= since_ns else last_ns, last_ns)]


def after(claim: Claim, ts_ns: int) -> int:
    return sum(run.count for run in claim.outcomes.runs() if run.first_ns >= ts_ns)


def end_of(subject: Subject, group: Group, context: CheckContext) -> tuple[str, Side] | None:
    """The end of a topic ID: its deletion, or the binding that replaced it."""
    name = name_of(subject, group, context)
    if name is None:
        return None
    topic = topic_of(name, group, context)
    if subject[1] in topic.older.lives:
        later = topic.after_older(subject[1])
        return None if later is None else (name, first_of(later.first))
    for history in topic.histories:
        if history.topic_id == subject[1]:
            ended, successor = topic.ended(history), topic.successor(history)
            if ended is not None and ended.first.ts_ns >= history.born_ns:
                return name, first_of(ended)
            if successor is None or renumbered(topic, history, successor):
                return None
            if not disputed(topic, history, successor, context):
                side = replaced_by(successor, history)
                return None if side is None else (name, side)
    return None


def disputed(topic: Topic, history: History, successor: History, context: CheckContext) -> bool:
    """Whether both IDs are still stated, and nothing but times shows that one took the other's place (TID020)."""
    if stated_order(history, successor) or recreation(topic, history, successor) is not None:
        return False
    ids = {history.topic_id, successor.topic_id}
    return any(True for _ in disagreements(topic, context, ids))


def replaced_by(successor: History, history: History) -> Side | None:
    """The first binding of the ID that replaced it. An ID cannot end before it was first seen."""
    seen = [Side(seen, c.sentence()) for c in successor.bindings for seen in (c.first, c.last_word)]
    later = [side for side in seen if side.sighting.ts_ns >= history.born_ns]
    return min(later, key=lambda side: (side.sighting, side.claim), default=None)


def zero_topic_id_requested(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    for (api,), claims in gathered(context.claims("zero_use", group, *subject), "api"):
        lasted = max(claim.last.ts_ns for claim in claims) - claims[0].first.ts_ns
        if api != "Produce" or lasted >= context.settings.broker_grace_ns:
            words = {"api": api} | ({"hurt_host": subject[2]} if is_refused(api, subject, group, context) else {})
            yield resting_on(claims, api, *subject[1:], client_ids=(claims[0]["client_id"],), words=words)


def is_refused(api: str, subject: Subject, group: Group, context: CheckContext) -> bool:
    """Whether the requests under the zero ID are rejected for so long that the client is stuck."""
    mine = (claim for claim in context.claims("activity", group, *subject) if claim["api"] == api)
    return any(stuck(claim.outcomes, {UNKNOWN_TOPIC_ID}, context) is not None for claim in mine)


def reserved_topic_id_misused(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    if subject[0] == "id":
        uses = context.claims("use", group, *subject)
        if uses and 1 < number_of(subject[1]) <= LAST_RESERVED and not context.claims("binding", group, *subject):
            yield used_by(uses, uses[-1], subject[1], None, words={"why": "is reserved by Kafka"})
        return
    if subject[0] == "server":
        yield from named_as_the_log(context.claims("quorum_topic", group, *subject))
        yield from assigned_without_an_id(context.claims("null_assigned", group, *subject), context)
        return
    yield from created_without_an_id(subject, group, context)
    yield from logged_without_an_id(subject, group, context)
    bound = (claim for claim in context.claims("binding", group, *subject) if claim["topic_id"] not in {None, ZERO})
    odd: list[tuple[str, list[Claim]]] = []
    for (topic_id,), claims in gathered(bound, "topic_id"):
        if (why := misuse(topic_id, subject[1])) is not None:
            yield bound_to(claims, topic_id, subject[1], why)
        elif topic_id not in RESERVED and not is_random(topic_id):
            odd.append((topic_id, claims))
    if odd:  # one finding, however many there are: any server can state many
        topic_id, claims = min(odd, key=lambda one: (one[1][0].first.ts_ns, one[0]))
        more = f", like {len(odd) - 1:,} more of its IDs" if len(odd) > 1 else ""
        why = f"is not random{more}, so it is not from Apache Kafka"
        yield bound_to(claims, topic_id, subject[1], why, kind="information")


def logged_without_an_id(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """A record of the metadata log that gives a topic the null ID: KRaft gives each topic one."""
    bindings = context.claims("binding", group, *subject)
    if claims := [claim for claim in bindings if claim["source"] == SOURCE and claim["topic_id"] == ZERO]:
        yield bound_to(claims, ZERO, subject[1], "is the null ID, in the metadata log")


def named_as_the_log(claims: list[Claim]) -> Iterator[Evidence]:
    """What requests among voters name, which are about the metadata log alone: another topic, another ID or none."""
    for (name, topic_id), odd in gathered(claims, "name topic_id"):
        who = f"{apis_of(odd)} of {users(odd)}"
        topic, number, why = TOPIC_NAME, topic_id, f"is not the log's, in {who}"
        if topic_id is None:
            topic, number, why = name, METADATA_LOG, f"is {TOPIC_NAME}'s: {who} is about that"
        elif topic_id == ZERO:
            why = f"is the null ID, in {who}"
        words = {"topic": topic, "topic_id": number, "why": why}
        yield resting_on(odd, number, topic, topic=topic, topic_ids=(number,), client_ids=clients_of(odd), words=words)


REPEATED = 2
"""Answers: one may have been read wrongly."""


def assigned_without_an_id(claims: list[Claim], context: CheckContext) -> Iterator[Evidence]:
    """Topics that a coordinator hands to members, or describes as theirs, by an ID that none has."""
    for (api,), odd in gathered(claims, "api"):
        if (count := sum(claim.count for claim in odd)) >= REPEATED:
            topic = f"{'described' if api in DESCRIBING else 'assigned'} to {users(odd)}"
            why = f"is the null ID, in {api} of {servers_of(odd, context)}"
            words = {"topic": topic, "topic_id": ZERO, "why": why}
            yield resting_on(odd, ZERO, api, client_ids=clients_of(odd), count=count, words=words)


def users(claims: list[Claim]) -> str:
    return ", ".join(sorted({claim["client_id"] or claim["host"] for claim in claims})[:SHOWN])


def created_without_an_id(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """By a KRaft broker, which gives other topics IDs: a proxy may have been made for releases without them."""
    created = [claim for claim in context.claims("creation", group, *subject) if claim["topic_id"] == ZERO]
    if not created:
        return
    ranges = context.by("endpoint", "advertised", group, "server")
    names = context.by("endpoint", "names", group, "server")
    for (endpoint,), claims in gathered(created, "endpoint"):
        of_kraft = gives_ids({claim["ranges"] for claim in ranges.get((endpoint,), ())})
        if of_kraft and names.get((endpoint,)):
            why = f"is the null ID, in CreateTopics of {servers_of(claims, context)}"
            about = {"topic": subject[1], "topic_ids": (ZERO,)}
            yield resting_on(claims, ZERO, subject[1], endpoint, **about, words={"why": why, "topic_id": ZERO})


def bound_to(claims: list[Claim], topic_id: str, name: str, why: str, kind: str | None = None) -> Evidence:
    sides = (first_of(claims[0]), last_of(claims[-1]))
    about = {"topic": name, "topic_ids": (topic_id,), "kind": kind}
    return resting_on(claims, topic_id, name, sides=sides, **about, words={"why": why})


def misuse(topic_id: str, name: str) -> str | None:
    """What is wrong with an id for a name, by the ids that Kafka reserves."""
    if topic_id == METADATA_LOG and name != TOPIC_NAME:
        return f"is that of {TOPIC_NAME}"
    if name == TOPIC_NAME and topic_id != METADATA_LOG:
        return f"is not {METADATA_LOG}"
    return "is reserved by Kafka" if 1 < number_of(topic_id) <= LAST_RESERVED else None


def used_by(uses: list[Claim], last: Claim, *key: Any, words: dict[str, Any]) -> Evidence:
    about = {"topic_ids": key[:1], "client_ids": clients_of(uses)}
    return resting_on(uses, *key, sides=(first_of(uses[0]), last_of(last)), **about, words=words)


def number_of(topic_id: str) -> int:
    return int.from_bytes(base64.urlsafe_b64decode(topic_id + "=="), "big")


def is_random(topic_id: str) -> bool:
    number = number_of(topic_id)
    return (number >> VERSION_BITS) & 0xF == RANDOM and (number >> VARIANT_BITS) & 0x3 == LEACH_SALZ


def topic_id_unresolved(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    if subject[1] in RESERVED or context.believed(subject, "binding"):
        return
    uses = context.claims("use", group, *subject)
    if uses and context.passed(uses[0].first.ts_ns + context.settings.broker_grace_ns):
        words = {"apis": apis_of(uses), "client": users_of(uses, group, context)}
        yield used_by(uses, max(uses, key=lambda claim: claim.last), subject[1], words=words)


SHOWN = 3
"""So many clients a summary names."""


def users_of(uses: list[Claim], group: Group, context: CheckContext) -> str:
    """Who uses an ID: brokers by their numbers, then clients by their IDs."""
    senders = {(claim["client_id"], sender_of(claim, group, context)) for claim in uses}
    brokers = sorted({broker for _, broker in senders if broker is not None})
    clients = sorted({client or "(no client ID)" for client, broker in senders if broker is None})
    more = [counted(len(clients) - SHOWN, "other client")] if len(clients) > SHOWN else []
    return ", ".join([*numbered(brokers), *clients[:SHOWN], *more])


def stale_partition_in_incremental(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    for order in context.claims("ordered", group, *subject):
        orders = context.by("endpoint partition", "ordered", group, "name", order["name"])
        before = replica_before(order, orders.get((order["endpoint"], order["partition"]), []))
        if order["how"] == "incremental" and before is not None:
            partition, where, old = order["partition"], context.node(order), before["topic_id"]
            about = {"topic": order["name"], "topic_ids": (old, subject[1]), "brokers": (context.broker(order),)}
            words = {"partition": partition, "where": where, "old": old, "new": subject[1]}
            words["by"] = controllers_named([order["by"]])
            sides = (first_of(before), *ends([order]))
            yield resting_on(
                [order], subject[1], partition, where, sides=sides, **about, first_ns=order.first.ts_ns, words=words
            )


def replica_before(order: Claim, orders: list[Claim]) -> Claim | None:
    """The order by which this broker has the partition under another id when this order comes. `orders` are all that
    it got for the partition.
    """
    same = [other for other in orders if other["topic_id"] != order["topic_id"] and other.first < order.first]
    deleted = {other["topic_id"]: other for other in same if other["how"] == "delete"}
    has = [
        other
        for other in same
        if other["how"] not in NO_LEADERSHIP
        and (other["topic_id"] not in deleted or deleted[other["topic_id"]].last < other.first)
    ]
    return max(has, key=lambda other: other.first, default=None)
