"""TID: which topic is which.

Rule: an id that was never bound contradicts nothing, and what could be a recreation is never called anything worse.
"""

from collections.abc import Iterator
from typing import NamedTuple

from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.shapes import clock, ends, gathered, if_broker, of_topic, resting_on
from wirecheck.judge.claims.claim import ZERO, Claim, Subject
from wirecheck.judge.claims.kinds import FORWARDED
from wirecheck.judge.results.finding import Evidence, Side, first_of, last_of
from wirecheck.judge.topic_history import CONTROL, SKEW_NS, History, Topic, name_of, times, topic_of
from wirecheck.judge.topology.clusters import Group


def topic_recreated(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Detects. A topic name gets another topic ID, after a deletion or with leader epochs that start again. The topic
    was deleted and recreated. Reported once per new ID.

    Why it matters. The old data is gone. Consumers' offsets, and clients or brokers that still use the old ID, refer to
    a topic that no longer exists. They have findings of their own.

    False positives. Recreating a topic is a normal way to empty it. IDs of validate-only CreateTopics requests, and IDs
    that were never bound to a name, do not count.

    Source. KIP-516; ReplicationControlManager and TopicDeletionManager of Kafka 3.9.
    """
    topic = topic_of(subject[1], group, context)
    for old, new in topic.changes:
        reason = recreation(topic, old, new)
        if reason is not None and topic.follows(old, new):
            sides = (last_before(old, new), first_of(new.first), *reason)
            ended = clock(reason[0].sighting.ts_ns) if reason else ""
            words = {"old": old.topic_id, "topic_id": new.topic_id, "time": clock(new.born_ns), "ended": ended}
            words |= {"how": f" (deleted at {ended})" if ended else "", **requesters(topic, old, new)}
            yield Evidence((topic.name, new.topic_id), sides, **of_topic(topic, old, new), words=words)


def recreation(topic: Topic, old: History, new: History) -> tuple[Side, ...] | None:
    """What shows that the topic was made anew: () if only its epochs do, None if nothing does."""
    ended = topic.ended(old)
    if ended is not None:
        return (first_of(ended),)
    if new.offset is not None or new.is_new or any(made(claim, old, new) for claim in topic.creations):
        return ()
    starts_again = any(new.epochs[p][0] < old.epochs[p][1] for p in new.epochs.keys() & old.epochs.keys())
    return () if starts_again else None


class Requester(NamedTuple):
    """Who asked for a change. What was not seen, or is not to be shown, is None."""

    client_id: str | None
    host: str | None
    principal: str | None


def requesters(topic: Topic, old: History, new: History) -> dict[str, str]:
    """Who deleted the old topic and who created the new one, as words of the finding."""
    changes = topic.context.claims("changed", topic.group, "name", topic.name)
    found = {
        "deleted": requester([claim for claim in changes if claim["action"] == "DeleteTopics"], old.topic_id, old, new),
        "created": requester([claim for claim in changes if claim["action"] == "CreateTopics"], new.topic_id, old, new),
    }
    return {
        f"{action}_by_{name}": value
        for action, one in found.items()
        if one is not None
        for name, value in zip(Requester._fields, one, strict=True)
        if value is not None
    }


def requester(changes: list[Claim], topic_id: str, old: History, new: History) -> Requester | None:
    """None where several are possible. An Envelope has the principal, and the address that the broker saw."""
    of_id = [claim for claim in changes if claim["topic_id"] == topic_id]
    between = (
        claim
        for claim in changes
        if claim["topic_id"] is None and any(old.born_ns < ts_ns <= new.born_ns + SKEW_NS for ts_ns in times(claim))
    )
    fitting = of_id or list(between)
    fitting = [claim for claim in fitting if claim["how"] == FORWARDED] or fitting
    shown = old.context.settings.principals
    named = {
        Requester(claim["client_id"], *((claim["host"], claim["principal"]) if shown else (None, None)))
        for claim in fitting
    }
    return named.pop() if len(named) == 1 else None


def made(creation: Claim, old: History, new: History) -> bool:
    if creation["topic_id"] is not None:
        return bool(creation["topic_id"] == new.topic_id)
    return any(old.born_ns + SKEW_NS < ts_ns <= new.born_ns + SKEW_NS for ts_ns in times(creation))


def last_before(old: History, new: History) -> Side:
    """The last word for the old id before the new one was heard of, as far as the ledger kept it."""
    earlier = [claim for claim in old.bindings if claim.last_word.ts_ns <= new.born_ns]
    if earlier:
        return last_of(max(earlier, key=lambda claim: (claim.last_word, repr(claim.key))))
    return first_of(old.first)


def leader_and_isr_inconsistent_topic_id(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Detects. A broker answers the controller's LeaderAndIsr request with INCONSISTENT_TOPIC_ID (103). The replica on
    its disk has another topic ID (partition.metadata) than the request.

    Why it matters. The broker neither leads nor follows these partitions, so they lack a replica without any other
    sign. The controller retries only after a restart of the broker or the controller. Do not delete the directory
    before the other replicas are in sync.

    False positives. None. The ID on the broker's disk is not on the wire. Earlier IDs of the name are listed because
    the ID on disk is often one of them.

    Source. ReplicaManager.becomeLeaderOrFollower of Kafka 2.8 to 3.9; KIP-516; KAFKA-14190.
    """
    topic_id = subject[1]
    asked = context.claims("id_asked", group, *subject)
    name = name_of(subject, group, context)
    earlier = [h.topic_id for h in topic_of(name, group, context).histories if h.topic_id != topic_id] if name else []
    refused = context.claims("id_refused", group, *subject)
    for (where,), claims in gathered(refused, lambda claim: (context.node(claim),)):
        partitions = sorted({claim["partition"] for claim in claims})
        endpoints = {claim["endpoint"] for claim in claims}
        orders = [claim for claim in asked if claim["endpoint"] in endpoints]
        numbers = f"partition{'s' if len(partitions) > 1 else ''} {', '.join(map(str, partitions))}"
        words = {"where": where, "partitions": numbers}
        words["earlier"] = f" (other IDs of this name: {', '.join(earlier)})" if earlier else ""
        about = {"topic": name, "topic_ids": (topic_id,), "brokers": if_broker(where)}
        yield resting_on(claims, topic_id, where, sides=ends(orders + claims), **about, words=words)


def topic_ids_assigned(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Detects. A topic that brokers and controllers named without an ID now has one, and its data continues.

    Why it matters. This is the migration of KIP-516: the inter-broker protocol reached 2.8, or KRaft replaced
    ZooKeeper. From now on, the topic's ID should not change.

    False positives. Normal during that migration. Names that had an ID before, or were deleted in between, do not
    count.

    Source. KIP-516, "Migration"; KafkaController.processTopicIds of Kafka 3.9.
    """
    topic = topic_of(subject[1], group, context)
    if not topic.histories:
        return
    new = topic.histories[0]
    bare = [claim for claim in topic.without_id if claim.first.ts_ns < new.born_ns and strong(claim, new, context)]
    ended = [c for c in topic.deletions if any(ts_ns <= new.born_ns + SKEW_NS for ts_ns in times(c))]
    if bare and not ended and not new.is_new:
        sides, words = (first_of(bare[0]), first_of(new.first)), {"time": clock(new.born_ns)}
        yield Evidence((topic.name, new.topic_id), sides, **of_topic(topic, new), words=words)


def strong(claim: Claim, new: History, context: CheckContext) -> bool:
    """Whether a statement without id means that there was none, and not that its version cannot carry one."""
    if claim["source"] in CONTROL:
        return True
    return bool(claim["topic_id"] == ZERO and claim.first.ts_ns + context.settings.broker_grace_ns < new.born_ns)
