"""TID: brokers, controllers and requests that do not agree which topic is which.

Rule: two words contradict only if both were said again after the grace; a change that crossed a gap is not judged.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.error_streaks import goes_on, slots, start_ns
from wirecheck.judge.checks.shapes import brokers_of, clock, ends, resting_on
from wirecheck.judge.claims.claim import ZERO, Claim, Subject
from wirecheck.judge.results.finding import Evidence, Side, first_of, last_of
from wirecheck.judge.topic_history import CONTROL, History, Topic, topic_of
from wirecheck.judge.topology.clusters import Group


def topic_flips_between_ids(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Detects. A controller requests an earlier ID of a topic later than the grace period after a newer ID was bound.

    Why it matters. Topic IDs are never reused, so brokers are asked to serve two topics under one name. Replicas
    diverge, and either part may lose its data.

    False positives. None known. Metadata responses do not count, because they change with the broker that a client
    asks. A log that is read again does not count. During the grace period both IDs are in use.

    Source. KIP-516; KafkaController.processTopicIds of Kafka 3.9; KAFKA-14190.
    """
    topic = topic_of(subject[1], group, context)
    grace_ns = context.settings.broker_grace_ns
    for old, new in topic.changes:
        orders = [claim for claim in old.bindings if claim["source"] in CONTROL]
        again = [claim for claim in orders if claim.last.ts_ns > new.born_ns + grace_ns]
        bound = [claim for claim in new.bindings if claim["source"] in (*CONTROL, "metadata-log")]
        if again and bound and not rejected(again, context, group):
            sides = (first_of(old.first), first_of(new.first), *map(last_of, again))
            time = clock(max(claim.last.ts_ns for claim in again))
            words = {"old": old.topic_id, "new": new.topic_id, "time": time}
            yield two_ids(topic, old.topic_id, new.topic_id, sides, count=len(again), words=words)


def rejected(again: list[Claim], context: CheckContext, group: Group) -> bool:
    """Whether all that is said again comes from a controller that brokers turned away."""
    context.watch()
    stale = {
        f"{claim['controller']}@{claim['controller_epoch']}"
        for claim in context.claims("control", group, "server")
        if claim["error"] == 11
    }
    return all(claim["by"] in stale for claim in again)


def requests_disagree_on_topic_id(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Detects. LeaderAndIsr and UpdateMetadata requests of one controller in one epoch name different IDs for one
    topic, repeatedly. Or a broker that received an ID still answers Metadata requests with an earlier one after the
    grace period.

    Why it matters. Leaders work on one topic, and clients are sent to another.

    False positives. A topic that was recreated within the epoch does not count, because its older ID is not repeated.
    Rejected requests do not count. The capture may lack the latest update sent to a broker, so only IDs that are known
    to be older count.

    Source. KIP-516; ControllerBrokerRequestBatch of Kafka 2.8 to 3.9.
    """
    topic = topic_of(subject[1], group, context)
    claims = [c for c in topic.bindings if c["source"] in CONTROL and c["topic_id"] not in {None, ZERO}]
    claims.sort(key=lambda claim: (claim.first, repr(claim.key)))
    yield from unheeded(topic, claims, context)
    for number, one in enumerate(claims):
        for other in claims[number + 1 :]:
            if one["by"] != other["by"] or one["topic_id"] == other["topic_id"] or one["source"] == other["source"]:
                continue
            overlap_ns = min(one.last.ts_ns, other.last.ts_ns) - max(one.first.ts_ns, other.first.ts_ns)
            if overlap_ns > context.settings.broker_grace_ns or side_by_side(one, other, topic, context):
                words = {"by": one["by"].replace("@", ", epoch ")}
                words |= {which: f"{c['topic_id']} in {c.first.api}" for which, c in (("one", one), ("other", other))}
                about = {"brokers": (int(one["by"].partition("@")[0]),), "count": one.count + other.count}
                yield two_ids(topic, one["topic_id"], other["topic_id"], ends([one, other]), **about, words=words)


def two_ids(topic: Topic, one: str, other: str, sides: tuple[Side, ...], **columns: Any) -> Evidence:
    ids = sorted((one, other))
    return Evidence((topic.name, ids), sides, topic=topic.name, topic_ids=tuple(ids), **columns)


def unheeded(topic: Topic, orders: list[Claim], context: CheckContext) -> Iterator[Evidence]:
    """Brokers that were told an id and go on answering the one before it."""
    grace_ns = context.settings.broker_grace_ns
    answers = [claim for claim in topic.bindings if claim["source"] == "metadata"]
    for old, new in topic.changes:
        told = [(c, seen) for c in orders if c["topic_id"] == new.topic_id for seen in (c.first, c.last)]
        still = [
            (answer, order, seen)
            for answer in answers
            for order, seen in told
            if answer["topic_id"] == old.topic_id
            and order["source"] == "update-metadata"
            and context.clusters.node_at(seen.server, seen.ts_ns) == context.node(answer)
            and answer.last.ts_ns > seen.ts_ns + grace_ns
        ]
        if not still or not topic.follows(old, new) or old.born_ns > min(seen.ts_ns for _, _, seen in still):
            continue
        if rejected([order for _, order, _ in still], context, topic.group):
            continue
        by = {order["by"] for _, order, _ in still}
        sides = (side for answer, order, seen in still for side in (Side(seen, order.sentence()), last_of(answer)))
        yield two_ids(
            topic,
            old.topic_id,
            new.topic_id,
            tuple(sides),
            brokers=brokers_of([answer for answer, _, _ in still], context),
            count=sum({id(answer): answer.count for answer, _, _ in still}.values()),
            words={
                "one": f"{new.topic_id} in UpdateMetadata",
                "other": f"{old.topic_id} in Metadata of a broker that received it",
                "by": ", ".join(sorted(by)).replace("@", ", epoch "),
            },
        )


def side_by_side(one: Claim, other: Claim, topic: Topic, context: CheckContext) -> bool:
    """Said within a second of each other, never taken back, and nothing was deleted: two halves of one order."""
    second = 1_000_000_000
    if abs(other.first.ts_ns - one.first.ts_ns) > second or topic.deletions:
        return False
    histories = {history.topic_id: history for history in topic.histories}
    mine, theirs = histories[one["topic_id"]], histories[other["topic_id"]]
    if any({claim["source"] for claim in history.bindings} >= set(CONTROL) for history in (mine, theirs)):
        return False  # the other half of the order follows: a recreation under way
    return context.passed(max(one.last.ts_ns, other.last.ts_ns) + context.settings.broker_grace_ns)


def brokers_disagree_on_topic_id(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Detects. Brokers answer Metadata requests for one name with different IDs, repeatedly, after the grace period. Or
    one broker answers with an ID and another with UNKNOWN_TOPIC_OR_PARTITION.

    Why it matters. Which topic a client works on depends on the broker that it asks. A broker that is cut off from its
    controller stays in this state.

    False positives. A proxy that presents several brokers under one address. Differences of some seconds after a
    creation, deletion or restart do not count.

    Source. KIP-516; MetadataCache of Kafka 3.9 and 4.3.
    """
    topic = topic_of(subject[1], group, context)
    answers = [claim for claim in topic.bindings if claim["source"] == "metadata"]
    grace_ns = context.settings.broker_grace_ns
    for old, new in topic.changes:
        late = [c for c in answers if c["topic_id"] == old.topic_id and c.last.ts_ns > new.born_ns + grace_ns]
        stale = [claim for claim in late if goes_on(claim, new.born_ns, grace_ns)]
        fresh = [c for c in answers if c["topic_id"] == new.topic_id and c.last.ts_ns > new.born_ns + grace_ns]
        if stale and {claim["endpoint"] for claim in fresh} - {claim["endpoint"] for claim in stale}:
            words = {"one": old.topic_id, "other": new.topic_id}
            found = disagreement(topic, (stale, fresh), words, context)
            yield found if topic.follows(old, new) else replace(found, brokers=brokers_of([*stale, *fresh], context))
    for history in topic.histories[-1:]:
        deaf = list(ignorant(topic, history, context))
        if deaf:
            denying = {claim["endpoint"] for claim in deaf}
            told = [c for c in answers if c["topic_id"] == history.topic_id and c["endpoint"] not in denying]
            words = {"one": "no such topic", "other": history.topic_id}
            if told:
                yield disagreement(topic, (deaf, told), words, context)


def ignorant(topic: Topic, history: History, context: CheckContext) -> Iterator[Claim]:
    """Brokers that deny the topic again and again for longer than the grace while others go on answering its id. The
    first denials may be those of its beginning, which count once others know it; the last ones may be those of its end:
    they count once others have answered its id after them.
    """
    grace_ns = context.settings.broker_grace_ns
    answers = [c for c in topic.bindings if c["source"] == "metadata" and c["topic_id"] == history.topic_id]
    for absence in context.claims("absence", topic.group, "name", topic.name):
        endpoint = absence["endpoint"]
        own = {slot for claim in answers if claim["endpoint"] == endpoint for slot in slots(claim.tally)}
        others = {slot for claim in answers if claim["endpoint"] != endpoint for slot in slots(claim.tally)}
        if not others:
            continue
        begun, last_told = max(history.born_ns, absence.first.ts_ns), max(others)
        since_birth = [
            slot for slot in slots(absence.tally) if begun > history.born_ns or start_ns(slot) >= history.born_ns
        ]
        denied = [slot for slot in since_birth if slot < last_told]
        for first, last in stretches(denied, own):
            if start_ns(last) >= max(start_ns(first), begun, start_ns(min(others))) + grace_ns:
                yield absence
                break


MOST_PAUSE = 6
"""Denials that are further apart than so many slots of 10 s are two: in between the broker may have known the topic."""


def stretches(denied: list[int], own: set[int]) -> Iterator[tuple[int, int]]:
    """From when to when something was denied again and again, without being affirmed between."""
    first = None
    for slot, following in zip(denied, [*denied[1:], None], strict=False):
        first = slot if first is None else first
        if following is None or following - slot > MOST_PAUSE or any(slot <= other <= following for other in own):
            yield first, slot
            first = None


def disagreement(
    topic: Topic, between: tuple[list[Claim], list[Claim]], words: dict[str, str], context: CheckContext
) -> Evidence:
    one, other = between
    ids = [word for word in words.values() if " " not in word]
    brokers = sorted({str(context.node(claim)) for claim in one})
    against = sorted({str(context.node(claim)) for claim in other})
    about = {"topic": topic.name, "topic_ids": tuple(sorted(ids)), "brokers": brokers_of(one, context)}
    return resting_on(
        one,
        *(topic.name, sorted(ids) if len(ids) > 1 else [*ids, "unknown"]),
        sides=ends((*one, *other)),
        **about,
        last_ns=max(claim.last.ts_ns for claim in one),
        words={**words, "these": answering(brokers), "those": answering(against)},
    )


def answering(nodes: list[str]) -> str:
    return f"broker {nodes[0]} reports" if len(nodes) == 1 else f"brokers {', '.join(nodes)} report"


def topic_id_has_two_names(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Detects. One topic ID is bound to two names in one cluster.

    Why it matters. A topic is never renamed, and an ID is never reused. Either the metadata is corrupt, or two clusters
    were captured under one label.

    False positives. None within one cluster.

    Source. KIP-516.
    """
    bindings = context.claims("binding", group, *subject)
    names = sorted({claim["name"] for claim in bindings})
    if len(names) > 1:
        first = [next(claim for claim in bindings if claim["name"] == name) for name in names]
        about = {"topic": names[0], "topic_ids": (subject[1],), "words": {"names": " and ".join(names)}}
        yield resting_on(bindings, subject[1], names, sides=tuple(map(first_of, first)), **about)
