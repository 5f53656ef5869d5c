"""TID: which topic is which: names that get another ID or lose theirs, and brokers and controllers that disagree.

Rule: an ID that was never bound contradicts nothing. What could be a recreation is one, and is never called anything
worse. Two statements contradict only if both were repeated after the grace period; where a gap may hide the change, no
check fires.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from itertools import chain, combinations, pairwise, product
from typing import Any, NamedTuple

from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.shapes import (
    brokers_of,
    by_id_and_name,
    by_key,
    clock,
    controllers_named,
    ends,
    gathered,
    goes_on,
    if_broker,
    of_topic,
    resting_on,
    servers_of,
    slots,
    stale_controllers,
    start_ns,
    whole,
)
from wirecheck.judge.checks.statements import has_ids, in_turns, names_others, own_endpoints, spans, without_tags
from wirecheck.judge.claims.claim import ZERO, Claim, Key, Subject
from wirecheck.judge.claims.extract.log_entries import SOURCE
from wirecheck.judge.claims.kinds import FORWARDED
from wirecheck.judge.claims.outcomes import OTHERS, SUCCESS
from wirecheck.judge.results.finding import Evidence, Side, Time, first_of, last_of
from wirecheck.judge.results.topic_rows import integers
from wirecheck.judge.streaks import together
from wirecheck.judge.topic_history import (
    CONTROL,
    REPORTS,
    SKEW_NS,
    History,
    Topic,
    name_of,
    seen_after,
    times,
    topic_of,
)
from wirecheck.judge.topology.clusters import Group
from wirecheck.judge.topology.endpoint_history import host_of
from wirecheck.wording import number_list

DELETE, DELETE_TOPICS = "delete", "DeleteTopics"
NO_ID = frozenset({None, ZERO})
RENUMBERED = "its partitions continue with their leader epochs under another ID"
LOST = "the controller names it without an ID"


def topic_recreated(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    topic = topic_of(subject[1], group, context)
    shown = False
    for old, new in topic.changes:
        reason = recreation(topic, old, new)
        if reason is not None and topic.follows(old, new):
            shown = True
            changed = (first_of(new.first), *reason)
            ended = clock(reason[0].sighting.ts_ns) if reason else ""
            words = {"old": old.topic_id, "topic_id": new.topic_id, "time": clock(new.born_ns), "ended": ended}
            words |= {"how": f" (deleted at {ended})" if ended else "", **requesters(topic, old, new)}
            words |= {
                "ids": f": its ID changed from {old.topic_id} to {new.topic_id}",
                "fewer": fewer(topic, old, new, context),
            }
            sides, since = (last_before(old, new), *changed), min(side.sighting.ts_ns for side in changed)
            columns = of_topic(topic, old, new)
            yield Evidence((topic.name, new.topic_id), sides, first_ns=since, words=words, **columns)

    if not shown and not topic.mixed:
        yield from recreated_without_ids(topic)


def fewer(topic: Topic, old: History, new: History, context: CheckContext) -> str:
    """How many partitions a topic has since, if not all of before: who reads or writes one of the others ends there.
    One that has no leader is there, and no answer gives its state.
    """
    waits = (c for c in context.claims("leaderless", topic.group, "name", topic.name) if c["topic_id"] != old.topic_id)
    answers = together(waits)
    without_leader = answers.parts(answers.codes())
    if not new.listed or OTHERS in without_leader or not old.listed - new.listed - without_leader:
        return ""
    return f" with {len(new.listed):,} of {len(old.listed):,} partitions"


def recreated_without_ids(topic: Topic) -> Iterator[Evidence]:
    """Deleted and then created by clients, both granted, in versions without IDs: what has no ID has changed, too."""
    if topic.made_again is None:
        return
    ended, made = topic.made_again
    words = {"time": clock(made.last.ts_ns), "how": f" (deleted at {clock(ended.first.ts_ns)})", "ids": "", "fewer": ""}
    sides = (first_of(ended), last_of(made))
    yield Evidence((topic.name, ""), sides, topic=topic.name, first_ns=ended.first.ts_ns, words=words)


def recreation(topic: Topic, old: History, new: History) -> tuple[Side, ...] | None:
    """The evidence that the topic was recreated: empty if only its leader epochs show it, None if nothing does."""
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
    """The clients that deleted the old topic and created the new one, as words of the finding."""
    changes = topic.context.claims("changed", topic.group, "name", topic.name)
    found = {
        "deleted": requester([claim for claim in changes if claim["action"] == DELETE_TOPICS], old.topic_id, old, new),
        "created": requester([claim for claim in changes if claim["action"] == "CreateTopics"], new.topic_id, old, new),
    }
    return {name: value for action, one in found.items() for name, value in as_words(action, one).items()}


def as_words(action: str, one: Requester | None) -> dict[str, str]:
    """Who did it, for cards."""
    every = zip(Requester._fields, one, strict=True) if one is not None else ()
    return {f"{action}_by_{name}": value for name, value in every if value is not None}


def requester(changes: list[Claim], topic_id: str, old: History, new: History) -> Requester | None:
    """None where several are possible. An Envelope has the principal, and the address that the broker saw."""
    of_id = [claim for claim in changes if claim["topic_id"] == topic_id]
    between = (
        claim
        for claim in changes
        if claim["topic_id"] is None and any(old.born_ns < ts_ns <= new.born_ns + SKEW_NS for ts_ns in times(claim))
    )
    return the_only(of_id or list(between), shown=bool(old.context.settings.principals))


def the_only(changes: list[Claim], *, shown: bool) -> Requester | None:
    """Who asked for all of these; `shown`: with host and principal."""
    fitting = [claim for claim in changes if claim["how"] == FORWARDED] or changes
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
    """The last binding of the old ID before the new one was first seen, as far as the ledger kept it."""
    earlier = [claim for claim in old.bindings if claim.last_word.ts_ns <= new.born_ns]
    if earlier:
        return last_of(max(earlier, key=lambda claim: (claim.last_word, repr(claim.key))))
    return first_of(old.first)


def leader_and_isr_inconsistent_topic_id(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    topic_id = subject[1]
    asked = context.claims("id_asked", group, *subject)
    name = name_of(subject, group, context)
    earlier = [h.topic_id for h in topic_of(name, group, context).histories if h.topic_id != topic_id] if name else []
    refused = context.claims("id_refused", group, *subject)
    served = by_key(by_id_and_name("serves", subject, name, group, context), "partition")
    states = context.by("partition", "partition", group, *subject)
    for (where,), claims in gathered(refused, lambda claim: (context.node(claim),)):
        partitions = sorted({claim["partition"] for claim in claims})
        endpoints = {claim["endpoint"] for claim in claims}
        orders = [claim for claim in asked if claim["endpoint"] in endpoints]
        numbers = f"partition{'s' if len(partitions) > 1 else ''} {', '.join(number_list(partitions))}"
        again_ns = in_sync_again_ns(where, claims, states, served)
        offline = f"was offline until {clock(again_ns)}" if again_ns else "stays offline"
        words = {"where": where, "partitions": numbers, "until": clock(again_ns) if again_ns else ""}
        words |= {"does": "rejected", "what": "was"} if again_ns else {"does": "rejects", "what": "is"}
        words["end"] = offline
        words["earlier"] = f" (another: {', '.join(earlier)})" if earlier and not again_ns else ""
        about = {"topic": name, "topic_ids": (topic_id,), "brokers": if_broker(where)}
        yield resting_on(claims, topic_id, where, sides=ends(orders + claims), **about, words=words)


def in_sync_again_ns(
    broker: int | str, refused: list[Claim], states: dict[Key, list[Claim]], served: dict[Key, list[Claim]]
) -> int | None:
    """When a broker that refused partitions was back in the ISR of all of them, or led and served them; None if it was
    not seen to be. A broker that never left the ISR may still refuse the ID: a new leader epoch alone proves nothing.
    `states` and `served` are by partition.
    """
    found = []
    for (partition,), claims in gathered(refused, "partition"):
        mine = states.get((partition,), [])
        latest = max(mine, key=lambda state: (state["leader_epoch"], state.last_word, repr(state.key)), default=None)
        last_ns = max(claim.last.ts_ns for claim in claims)
        if latest is None or latest.first.ts_ns <= last_ns or not is_in_isr(broker, latest):
            return None
        since_ns, places = latest.first.ts_ns, {claim["endpoint"] for claim in claims}
        was_out = any(not is_in_isr(broker, state) for state in mine)
        serves = any(
            one["endpoint"] in places and one.peak["latest"] >= since_ns for one in served.get((partition,), ())
        )
        if not was_out and not (serves and latest["leader"] == broker):
            return None
        found.append(since_ns)
    return max(found)


def is_in_isr(broker: int | str, state: Claim) -> bool:
    return str(broker) in state["isr"].split(",")


def topic_ids_assigned(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    topic = topic_of(subject[1], group, context)
    if not topic.histories:
        return
    new = topic.histories[0]
    bare = [claim for claim in topic.without_id if claim.first.ts_ns < new.born_ns and strong(claim, new, context)]
    ended = [c for c in topic.deletions if any(ts_ns <= new.born_ns + SKEW_NS for ts_ns in times(c))]
    if bare and not ended and not new.is_new:
        sides, words = (first_of(bare[0]), first_of(new.first)), {"time": clock(new.born_ns)}
        columns = of_topic(topic, new)
        yield Evidence((topic.name, new.topic_id), sides, first_ns=new.first.first.ts_ns, words=words, **columns)


def strong(claim: Claim, new: History, context: CheckContext) -> bool:
    """Whether a statement without a topic ID means that the topic has none, and not that its API version cannot carry
    one.
    """
    if claim["source"] in CONTROL:
        return True
    return bool(claim["topic_id"] == ZERO and claim.first.ts_ns + context.settings.broker_grace_ns < new.born_ns)


def topic_id_lost(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    topic = topic_of(subject[1], group, context)
    for old, new in topic.changes:
        if (
            topic.follows(old, new)
            and renumbered(topic, old, new)
            and (refused_by_replicas(new, group, context) or whole(old.last.first.ts_ns, new.born_ns, group, context))
        ):
            yield lost(topic, old, (last_of(old.last), first_of(new.first)), (old.topic_id, new.topic_id), RENUMBERED)
    if topic.histories:
        bare = [*zeroed(topic, topic.histories[-1], context)]
        yield from bare or unnamed(topic, topic.histories[-1], context)


def renumbered(topic: Topic, old: History, new: History) -> bool:
    if recreation(topic, old, new) is not None or not ordered(new):
        return False
    grace_ns = topic.context.settings.broker_grace_ns
    if any(claim["source"] in CONTROL and goes_on(claim, new.born_ns, grace_ns) for claim in old.bindings):
        return False  # the old ID was not replaced: it is ordered beside the new one
    common = old.epochs.keys() & new.epochs.keys()
    continues = all(new.epochs[p][0] >= old.epochs[p][1] for p in common)
    before, after = replicas(old, common), replicas(new, common)
    moved = {partition for partition in common if before.get(partition) != after.get(partition)}
    led_on = any(new.epochs[p][0] > 0 for p in common)
    stated = by_key(old.partitions, "partition") if moved else {}
    return (
        continues
        and led_on
        and all(reassigned(stated.get((p,), []), before.get(p), after.get(p), new.epochs[p][0]) for p in moved)
    )


def reassigned(stated: list[Claim], before: set[int] | None, assigned: set[int] | None, epoch: int) -> bool:
    """Whether a partition was assigned to these brokers, or on its way to them, while its topic still had the old ID:
    `stated` about the partition then. A controller that does not know topic IDs sends that by name, and removes the ID
    from the topic's ZooKeeper node (KAFKA-12835). During a reassignment a partition has the replicas of both ends
    (KIP-455), and there may be no request after its end.
    """
    return assigned is not None and any(
        before != set(integers(claim["replicas"])) >= assigned and 0 < claim["leader_epoch"] <= epoch
        for claim in stated
    )


def ordered(history: History) -> bool:
    return any(claim["source"] in CONTROL for claim in history.bindings)


def replicas(history: History, partitions: set[int]) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {}
    for claim in history.partitions:
        if claim["partition"] in partitions and claim["source"] in CONTROL:
            found[claim["partition"]] = set(integers(claim["replicas"]))
    return found


def refused_by_replicas(history: History, group: Group, context: CheckContext) -> bool:
    """Whether all replicas of a partition, two at least, hold another id on their disks: whatever was not captured, the
    topic was not deleted there.
    """
    refused: dict[int, set[int | str]] = {}
    for claim in context.claims("id_refused", group, "id", history.topic_id):
        refused.setdefault(claim["partition"], set()).add(context.node(claim))
    assigned = replicas(history, {*refused})
    return any(len(assigned.get(number, ())) > 1 and assigned[number] <= brokers for number, brokers in refused.items())


def zeroed(topic: Topic, history: History, context: CheckContext) -> Iterator[Evidence]:
    """Named without an id, explicitly, by a controller not older than the one that bound it, and not again since."""
    bare = [c for c in topic.without_id if c["topic_id"] == ZERO and c["source"] in CONTROL]
    bound = [claim for claim in history.bindings if claim["source"] in CONTROL]
    if bare and bound:
        older = without_tags(topic)
        bare = [claim for claim in bare if claim["endpoint"] not in older]
    if not bare or not bound:
        return
    latest = max(bare, key=lambda claim: (claim.first, repr(claim.key)))
    since = latest.first.ts_ns
    again = any(claim.last.ts_ns > since for claim in bound)
    current = history.born_ns < since and epoch(latest) >= max(map(epoch, bound))
    if current and not again and context.passed(since + context.settings.broker_grace_ns):
        yield lost(topic, history, (last_of(history.last), first_of(latest)), (history.topic_id,), LOST)
    elif again:
        yield from half_named(topic, history, bare, bound, context)


def half_named(
    topic: Topic, history: History, bare: list[Claim], bound: list[Claim], context: CheckContext
) -> Iterator[Evidence]:
    """Named with the ID in one kind of a controller's requests, and without it in another, both for long."""
    grace_ns = context.settings.broker_grace_ns
    for without, named in product(bare, bound):
        since_ns = max(without.first.ts_ns, named.first.ts_ns)
        if without["by"] == named["by"] and all(goes_on(claim, since_ns, grace_ns) for claim in (without, named)):
            how = f"{LOST} in {without.first.api}"
            sides = (*ends([without]), last_of(named))
            yield replace(lost(topic, history, sides, (history.topic_id,), how), first_ns=since_ns)
            return


def unnamed(topic: Topic, history: History, context: CheckContext) -> Iterator[Evidence]:
    """Brokers that gave the ID, and since then name the topic without one. Older controllers' requests carry none."""
    if topic.mixed or any(c["topic_id"] is None and c["source"] in CONTROL for c in topic.bindings):
        return
    found: list[tuple[Claim, Claim]] = []
    for bare in topic.without_id:
        mine = [c for c in history.bindings if c["source"] in REPORTS and c["endpoint"] == bare["endpoint"]]
        gave = max(mine, key=lambda claim: claim.last, default=None)
        if bare["topic_id"] != ZERO or bare["source"] not in REPORTS or gave is None:
            continue
        if goes_on(bare, gave.last.ts_ns, context.settings.broker_grace_ns):
            found.append((gave, bare))
    if found:
        nodes = sorted({str(context.node(bare)) for _, bare in found})
        how = f"broker {nodes[0]} names" if len(nodes) == 1 else f"brokers {', '.join(nodes)} name"
        sides = tuple(side for gave, bare in found for side in (last_of(gave), last_of(bare)))
        first = lost(topic, history, sides, (history.topic_id,), f"{how} it without an ID")
        since_ns = min(gave.last.ts_ns for gave, _ in found)
        yield replace(first, brokers=brokers_of([bare for _, bare in found], context), first_ns=since_ns)


def epoch(claim: Claim) -> int:
    return int((claim["by"] or "@-1").partition("@")[2])


def lost(topic: Topic, old: History, sides: tuple[Side, ...], ids: tuple[str, ...], how: str) -> Evidence:
    words = {"old": old.topic_id, "how": how, "new": f" ({ids[1]})" if len(ids) > 1 else ""}
    first_ns = max(side.sighting.ts_ns for side in sides)
    key = topic.name, old.topic_id
    return Evidence(key, sides, topic=topic.name, topic_ids=ids, first_ns=first_ns, words=words)


def created_topic_id_differs(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    topic = topic_of(subject[1], group, context)
    for created, bound in topic.changes:
        only = {claim["source"] for claim in created.bindings} == {"create-topics"}
        soon = bound.born_ns - created.last.last.ts_ns < context.settings.broker_grace_ns
        other = not topic.deletions and "create-topics" not in bound.sources
        own = context.surely_one(created.first.first.server, created.born_ns, created.born_ns)
        if only and soon and other and own and whole(created.born_ns, bound.born_ns, group, context):
            words = {"created": created.topic_id, "bound": bound.topic_id}
            sides = (first_of(created.first), first_of(bound.first))
            about = {**of_topic(topic, created, bound), "first_ns": bound.born_ns, "words": words}
            yield Evidence((topic.name, *words.values()), sides, **about)


def deletion_not_effective(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    yield from served_after_deletion(subject, group, context)
    yield from served_after_stop(topic_of(subject[1], group, context), context)


def served_after_deletion(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    topic = topic_of(subject[1], group, context)
    for history in topic.histories:
        asked = deletion_of(topic, history)
        if asked is None:
            continue
        since = asked.sighting.ts_ns
        still = list(served_after(since, topic, history, context.settings.broker_grace_ns))
        if still:
            last = clock(max(claim.last.ts_ns for claim in still))
            words = {"time": clock(since), "last": last, "servers": servers_of(still, context)}
            about = {**of_topic(topic, history), "brokers": brokers_of(still, context)}
            about["first_ns"] = max(since, min(claim.first.ts_ns for claim in still))
            sides = (asked, *map(last_of, still))
            yield resting_on(still, history.topic_id, "deletion", sides=sides, **about, words=words)


def served_after_stop(topic: Topic, context: CheckContext) -> Iterator[Evidence]:
    """Partitions that a broker had to delete (StopReplica; all of them with the topic), and serves for longer than the
    grace period after that. A later order may give them back. By the draft they are deleted at once.
    """
    grace_ns = context.settings.broker_grace_ns
    stops = [*context.claims("stopped", topic.group, "name", topic.name)]
    stops += [c for c in context.claims("ordered", topic.group, "name", topic.name) if c["how"] == DELETE]
    stops += [c for c in topic.deletions if c["source"] == "stop-replica"]
    history = topic.histories[-1] if topic.histories else None
    if not stops or history is None:
        return
    served = [*context.claims("serves", topic.group, "id", history.topic_id)]
    served += context.claims("serves", topic.group, "name", topic.name)
    ordered_ns = max((c.last.ts_ns for c in topic.bindings if c["source"] == "leader-and-isr"), default=0)
    for (endpoint,), of_endpoint in gathered(stops, "endpoint"):
        since = max(claim.last.ts_ns for claim in of_endpoint)
        parts = {None if claim.kind == "deletion" else claim["partition"] for claim in of_endpoint}
        mine = [one for one in served if one["endpoint"] == endpoint and parts & {None, one["partition"]}]
        drafted = any(claim.kind == "ordered" for claim in of_endpoint)
        soon_ns = grace_ns // 2 if drafted else 2 * grace_ns
        still = [one for one in mine if one.peak["latest"] >= since + soon_ns]
        if still and ordered_ns <= since:
            last = clock(max(one.peak["latest"] for one in still))
            words = {"time": clock(since), "last": last, "servers": servers_of(still, context)}
            about = {**of_topic(topic, history), "brokers": brokers_of(still, context), "first_ns": since}
            sides = (*map(last_of, of_endpoint), *map(last_of, still))
            yield resting_on(still, history.topic_id, "stopped", endpoint, sides=sides, **about, words=words)


def deletion_of(topic: Topic, history: History) -> Side | None:
    """The first successful DeleteTopics while a name had an ID, or its removal in the metadata log, unless the deletion
    was taken back. Before version 6 the request has no topic ID.
    """
    until = topic.next_born_ns(history)
    generation_of = topic.context.generations(topic.group).of
    removals = topic.context.claims("deletion", topic.group, "id", history.topic_id)
    asked = [
        (sighting, claim)
        for claim in (*topic.deletions, *(one for one in removals if one["source"] == SOURCE))
        if claim["source"] in {"delete-topics", SOURCE} and generation_of(claim) >= history.generation
        for sighting in (claim.first, claim.last)
        if sighting.ts_ns > history.again_ns
    ]
    seen = [(sighting, claim) for sighting, claim in asked if claim["topic_id"] == history.topic_id] or [
        (sighting, claim)
        for sighting, claim in asked
        if claim["topic_id"] is None
        and history.born_ns + SKEW_NS < sighting.ts_ns < until
        and seen_after(sighting, history.first.first, topic.context)
    ]
    first = min(seen, key=lambda found: found[0], default=None)
    return Side(first[0], first[1].sentence()) if first else None


def served_after(ts_ns: int, topic: Topic, history: History, for_ns: int) -> Iterator[Claim]:
    """Responses in which brokers treat the topic ID as valid, repeatedly and for this long after a time. If brokers
    answered the deletion, responses on another listener may be of another cluster and do not count.
    """
    listener, brokers = topic.context.clusters.listener, topic.context.clusters.named_ends
    listeners = {listener(claim["endpoint"]) for claim in topic.deletions if claim["endpoint"] in brokers}
    for claim in history.bindings:
        if claim["source"] in REPORTS and goes_on(claim, ts_ns, for_ns):
            yield claim
    for claim in topic.context.claims("use", topic.group, "id", history.topic_id):
        good = [run for run in claim.outcomes.runs({SUCCESS}) if run.first_ns > ts_ns]
        lasts = bool(good) and max(run.last_ns for run in good) >= min(run.first_ns for run in good) + for_ns
        here = not listeners or listener(claim["endpoint"]) in listeners
        if claim["api"] == "Fetch" and lasts and here:
            yield claim


def zero_topic_id_on_modern_cluster(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    topic = topic_of(subject[1], group, context)
    yield from zero_in_kraft(topic, context)
    bare = [c for c in topic.without_id if c["topic_id"] == ZERO and c["source"] in CONTROL]
    if not bare or topic.histories or topic.deletions:
        return
    newest = max(map(epoch, bare))
    current = [claim for claim in bare if epoch(claim) == newest]
    if context.passed(current[0].first.ts_ns + context.settings.broker_grace_ns):
        words = {"time": clock(current[0].first.ts_ns), "who": "Controllers have"}
        sides = (first_of(current[0]), last_of(current[-1]))
        yield resting_on(current, topic.name, sides=sides, topic=topic.name, words=words)


def zero_in_kraft(topic: Topic, context: CheckContext) -> Iterator[Evidence]:
    """KRaft brokers that give or grant IDs, and this topic none, while nothing else gives it one."""
    bare = [c for c in topic.without_id if c["topic_id"] == ZERO and c["source"] in REPORTS]
    if not bare or topic.histories or topic.deletions or topic.mixed:
        return
    grace_ns = context.settings.broker_grace_ns
    lasting = [claim for claim in bare if claim.last.ts_ns - claim.first.ts_ns >= grace_ns]
    found = [
        one
        for one in lasting
        if names_others(one, topic, context, ("names", "carries")) and has_ids(one, topic, context)
    ]
    if found:
        nodes = sorted({str(context.node(claim)) for claim in found})
        since_ns = min(claim.first.ts_ns for claim in found)
        words = {"time": clock(since_ns), "who": f"Broker {nodes[0]} has"}
        if len(nodes) > 1:
            words["who"] = f"Brokers {', '.join(nodes)} have"
        about = {"topic": topic.name, "brokers": brokers_of(found, context), "first_ns": since_ns}
        yield resting_on(found, topic.name, **about, words=words)


def topic_flips_between_ids(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    topic = topic_of(subject[1], group, context)
    grace_ns = context.settings.broker_grace_ns
    for old, new in pairwise(() if topic.mixed else sorted(topic.histories, key=lambda history: history.born_ns)):
        if old.generation != new.generation:
            continue
        orders = [claim for claim in old.bindings if claim["source"] in CONTROL]
        bound = [claim for claim in new.bindings if claim["source"] in (*CONTROL, "metadata-log")]
        again = [c for c in orders if c.last.ts_ns > new.born_ns + grace_ns and not is_beside(c, bound)]
        if again and bound and not rejected(again, context, group):
            sides = (first_of(old.first), first_of(new.first), *map(last_of, again))
            time = clock(max(claim.last.ts_ns for claim in again))
            words = {"who": "A controller gave", "old": old.topic_id, "new": new.topic_id, "time": time}
            yield two_ids(topic, old.topic_id, new.topic_id, sides, count=len(again), first_ns=new.born_ns, words=words)
        elif not again and (back := list(returned(old, new, context))):
            since_ns = max(one.last.ts_ns for _, one in back)
            nodes = [str(context.node(claim)) for claim, _ in back]
            words = {"who": f"{in_answers(nodes)}", "old": old.topic_id, "new": new.topic_id, "time": clock(since_ns)}
            sides = (first_of(old.first), first_of(new.first), *(last_of(claim) for claim, _ in back))
            about = {"brokers": brokers_of([claim for claim, _ in back], context), "first_ns": since_ns, "words": words}
            yield two_ids(topic, old.topic_id, new.topic_id, sides, count=len(back), **about)


def is_beside(claim: Claim, bound: list[Claim]) -> bool:
    """Whether a controller sends this ID and the new one by turns: TID006 says so."""
    by_it = (other for other in bound if (other["source"], other["by"]) == (claim["source"], claim["by"]))
    return any(in_turns(spans(claim), spans(other)) for other in by_it)


def in_answers(nodes: list[str]) -> str:
    return f"Broker {nodes[0]} gave" if len(nodes) == 1 else f"Brokers {', '.join(nodes)} gave"


def returned(old: History, new: History, context: CheckContext) -> Iterator[tuple[Claim, Claim]]:
    """The answers of brokers that gave an ID, then the next one for longer than the grace period, and the former one
    again since; with those that gave the next one. Who gives both by turns is TID020's.
    """
    grace_ns, own = context.settings.broker_grace_ns, own_endpoints(old.group, context)
    for claim in old.bindings:
        for other in new.bindings if claim["source"] in REPORTS else ():
            if (other["source"], other["endpoint"]) != (claim["source"], claim["endpoint"]):
                continue
            if (
                claim["endpoint"] not in own
                and len({host_of(c.client) for c in (claim.first, other.first, claim.last)}) > 1
            ):
                continue  # a proxy may rename topics for one of its clients
            between = [slot for slot in slots(claim.tally) if other.first.ts_ns <= start_ns(slot) <= other.last.ts_ns]
            before = claim.first.ts_ns < other.first.ts_ns and other.last.ts_ns - other.first.ts_ns >= grace_ns
            if before and not between and goes_on(claim, other.last.ts_ns, grace_ns):
                yield claim, other


def rejected(again: list[Claim], context: CheckContext, group: Group) -> bool:
    """Whether all of these requests come from a controller that brokers rejected."""
    stale = stale_controllers(group, context)
    return all(claim["by"] in stale for claim in again)


def requests_disagree_on_topic_id(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    topic = topic_of(subject[1], group, context)
    claims = [c for c in topic.bindings if c["source"] in CONTROL and c["topic_id"] not in {None, ZERO}]
    claims.sort(key=lambda claim: (claim.first, repr(claim.key)))
    for _, of_controller in gathered(claims, "by"):
        for one, other in combinations(of_controller, 2):
            if one["topic_id"] == other["topic_id"]:
                continue
            if go_on_beside(one, other, topic, context):
                words = {"by": controllers_named([one["by"]])}
                words |= {which: f"{c['topic_id']} in {c.first.api}" for which, c in (("one", one), ("other", other))}
                about = {"brokers": (int(one["by"].partition("@")[0]),), "count": one.count + other.count}
                about["first_ns"] = max(one.first.ts_ns, other.first.ts_ns)
                yield two_ids(topic, one["topic_id"], other["topic_id"], ends([one, other]), **about, words=words)
    yield from unheeded(topic, claims, context)


def go_on_beside(one: Claim, other: Claim, topic: Topic, context: CheckContext) -> bool:
    """Whether two orders of one controller, with two IDs, go on beside each other: in two kinds of requests, or by
    turns in one kind, as to two brokers.
    """
    lasts_ns = min(one.last.ts_ns, other.last.ts_ns) - max(one.first.ts_ns, other.first.ts_ns)
    lasts = lasts_ns > context.settings.broker_grace_ns
    if one["source"] == other["source"]:
        return lasts and in_turns(spans(one), spans(other))
    return lasts or side_by_side(one, other, topic, context)


def two_ids(topic: Topic, one: str, other: str, sides: tuple[Side, ...], **columns: Any) -> Evidence:
    ids = tuple(sorted((one, other)))
    return Evidence((topic.name, ids), sides, topic=topic.name, topic_ids=ids, **columns)


def unheeded(topic: Topic, orders: list[Claim], context: CheckContext) -> Iterator[Evidence]:
    """Brokers that received an ID and go on answering the one before it: without a pause, in which they may have got
    that one again.
    """
    grace_ns = context.settings.broker_grace_ns
    answers = [claim for claim in topic.bindings if claim["source"] == "metadata"]
    for old, new in topic.changes:
        received = [(c, seen) for c in orders if c["topic_id"] == new.topic_id for seen in (c.first, c.last)]
        still = [
            (answer, order, seen)
            for answer in answers
            for order, seen in received
            if answer["topic_id"] == old.topic_id
            and order["source"] == "update-metadata"
            and context.clusters.node_at(seen.server, seen.ts_ns) == context.node(answer)
            and answer.last.ts_ns > seen.ts_ns + grace_ns
            and any(seen.ts_ns <= start_ns(slot) <= seen.ts_ns + grace_ns for slot in slots(answer.tally))
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
            first_ns=min(max(answer.first.ts_ns, seen.ts_ns) for answer, _, seen in still),
            count=sum({id(answer): answer.count for answer, _, _ in still}.values()),
            words={
                "one": f"{new.topic_id} in UpdateMetadata",
                "other": f"{old.topic_id} in Metadata of a broker that received it",
                "by": controllers_named(sorted(by)),
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
    topic = topic_of(subject[1], group, context)
    answers = [claim for claim in topic.bindings if claim["source"] == "metadata" and context.of_member(claim)]
    kept = [*kept_by_proxies(topic, answers, context)]
    yield from kept or answered_as_before(topic, answers, context)
    for history in topic.histories[-1:]:
        yield from denied_by_some(topic, history, answers, context)


def answered_as_before(topic: Topic, answers: list[Claim], context: CheckContext) -> Iterator[Evidence]:
    """Brokers that go on answering the former ID while others answer the new one."""
    grace_ns = context.settings.broker_grace_ns
    for old, new in topic.changes:
        late = [c for c in answers if c["topic_id"] == old.topic_id and c.last.ts_ns > new.born_ns + grace_ns]
        stale = [claim for claim in late if goes_on(claim, new.born_ns, grace_ns)]
        fresh = [c for c in answers if c["topic_id"] == new.topic_id and c.last.ts_ns > new.born_ns + grace_ns]
        if stale and {claim["endpoint"] for claim in fresh} - {claim["endpoint"] for claim in stale}:
            words: dict[str, Any] = {"one": old.topic_id, "other": new.topic_id}
            if topic.follows(old, new):
                words |= settled(stale, (c for c in answers if c["topic_id"] == new.topic_id))
            found = disagreement(topic, (stale, fresh), words, context)
            yield found if topic.follows(old, new) else undecided(found, (stale, fresh), context)


def undecided(found: Evidence, sides: tuple[list[Claim], list[Claim]], context: CheckContext) -> Evidence:
    """Which of two IDs is the newer one is not known. What one broker reports and two or more others do not is looked
    at first.
    """
    nodes = [{context.node(claim) for claim in claims} for claims in sides]
    less, more = sorted(nodes, key=len)
    alone = {"alone": called(less)} if len(less) == 1 < len(more) else {}
    every = brokers_of([*sides[0], *sides[1]], context)
    return replace(found, brokers=every, words={**found.words, **alone})


def kept_by_proxies(topic: Topic, answers: list[Claim], context: CheckContext) -> Iterator[Evidence]:
    """Proxies that go on giving the ID of before, which what they forward to gave, too, until it gave another one: so
    they give topics no IDs of their own. They may be a cluster of their own. One that gives both in turn keeps none: it
    forwards to a broker that does.
    """
    ends = {one.endpoint: {end for _, end in one.reached} for one in context.forwarding.forwarders}
    fronts = [claim for claim in answers if claim["endpoint"] in ends]
    every = context.believed(("name", topic.name), "binding") if fronts else ()
    found: dict[tuple[str, str], tuple[list[Claim], list[Claim]]] = {}
    for claim in fronts:
        given = {c["topic_id"] for c in fronts if c["endpoint"] == claim["endpoint"] and c.first < claim.last}
        behind = [c for c in every if c["source"] == "metadata" and c["endpoint"] in ends[claim["endpoint"]]]
        former = [c.last.ts_ns for c in behind if c["topic_id"] == claim["topic_id"]]
        since = [c for c in behind if former and c["topic_id"] not in NO_ID and c.first.ts_ns > max(former)]
        since = [] if any(c["topic_id"] in given for c in since) else since
        if since and goes_on(claim, min(c.first.ts_ns for c in since), context.settings.broker_grace_ns):
            newest = max(since, key=lambda c: c.first)["topic_id"]
            stale, fresh = found.setdefault((claim["topic_id"], newest), ([], []))
            stale.append(claim)
            fresh += [c for c in since if c["topic_id"] == newest and c not in fresh]
    for (one, other), between in sorted(found.items()):
        words: dict[str, Any] = {"one": one, "other": other}
        words |= settled(between[0], (c for c in answers if c["topic_id"] == other))
        apart = disagreement(topic, between, words, context)
        hosts = sorted({host_of(claim["endpoint"]) for claim in between[0]})
        theirs = sorted(end for end in ends if host_of(end) in hosts)
        shared = any(host_of(end) in hosts for end in chain.from_iterable(ends.values()))
        yield replace(
            apart, brokers=(), words={**apart.words, **keeps(hosts), "at": " and ".join(theirs if shared else hosts)}
        )


def keeps(hosts: list[str]) -> dict[str, str]:
    """Words about a proxy that gives an ID of its own."""
    proxy = " and ".join(hosts)
    return {"proxy": proxy, "one_brokers": f"the proxy at {proxy} reports", "other_brokers": "brokers behind it report"}


def denied_by_some(topic: Topic, history: History, answers: list[Claim], context: CheckContext) -> Iterator[Evidence]:
    """Brokers that deny a topic while others answer its ID."""
    if deaf := list(ignorant(topic, history, context)):
        denying = {claim["endpoint"] for claim in deaf}
        affirming = [claim for claim in answers if claim["topic_id"] == history.topic_id]
        words = {"one": "no such topic", "other": history.topic_id} | settled(deaf, affirming)
        if naming := [claim for claim in affirming if claim["endpoint"] not in denying]:
            yield disagreement(topic, (deaf, naming), words, context)


SETTLED = 2
"""Slots of 10 s from the last wrong answer to a right one: a broker that alternates between two answers is not
settled.
"""


def settled(wrong: list[Claim], right: Iterable[Claim]) -> dict[str, Time]:
    """Until when the brokers answered otherwise, where each of them has answered like the others since."""
    latest: dict[str, int] = {}
    for claim in right:
        latest[claim["endpoint"]] = max([latest.get(claim["endpoint"], 0), *slots(claim.tally)])
    for claim in wrong:
        answered = slots(claim.tally)
        if not answered or latest.get(claim["endpoint"], 0) < max(answered) + SETTLED:
            return {}
    return {"until": clock(max(claim.last.ts_ns for claim in wrong))}


def ignorant(topic: Topic, history: History, context: CheckContext) -> Iterator[Claim]:
    """Brokers that deny the topic again and again for longer than the grace while others go on answering its id. The
    first denials may be those of its beginning, which count once others know it; the last ones may be those of its end:
    they count once others have answered its id after them.
    """
    grace_ns = context.settings.broker_grace_ns
    answers = [c for c in topic.bindings if c["source"] == "metadata" and c["topic_id"] == history.topic_id]
    for absence in filter(context.of_member, context.claims("absence", topic.group, "name", topic.name)):
        endpoint = absence["endpoint"]
        own = {slot for claim in answers if claim["endpoint"] == endpoint for slot in slots(claim.tally)}
        others = {slot for claim in answers if claim["endpoint"] != endpoint for slot in slots(claim.tally)}
        if not others:
            continue
        begun, last_reported = max(history.born_ns, absence.first.ts_ns), max(others)
        since_birth = [
            slot for slot in slots(absence.tally) if begun > history.born_ns or start_ns(slot) >= history.born_ns
        ]
        denied = [slot for slot in since_birth if slot < last_reported]
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
    topic: Topic, between: tuple[list[Claim], list[Claim]], words: dict[str, Any], context: CheckContext
) -> Evidence:
    one, other = between
    ids = tuple(sorted(words[name] for name in ("one", "other") if " " not in words[name]))
    brokers = {context.node(claim) for claim in one}
    against = {context.node(claim) for claim in other}
    about = {"topic": topic.name, "topic_ids": ids, "brokers": brokers_of(one, context)}
    since_ns = max(min(claim.first.ts_ns for claim in claims) for claims in between)
    return resting_on(
        one,
        *(topic.name, ids if len(ids) > 1 else (*ids, "unknown")),
        sides=ends((*one, *other)),
        **about,
        first_ns=since_ns,
        last_ns=max(claim.last.ts_ns for claim in one),
        words={
            **words,
            "does": "reported" if "until" in words else "report",
            "since": clock(since_ns),
            "one_brokers": answering(brokers),
            "other_brokers": answering(against),
        },
    )


def answering(nodes: Collection[int | str]) -> str:
    return f"{called(nodes)} report{'s' if len(nodes) == 1 else ''}"


def called(nodes: Collection[int | str]) -> str:
    """Brokers by their numbers, or by their hosts where no number is known."""
    known = number_list(node for node in nodes if isinstance(node, int))
    names = ", ".join([*known, *sorted(node for node in nodes if isinstance(node, str))])
    return f"broker{'' if len(nodes) == 1 else 's'} {names}"


NAMES_SHOWN = 3
"""So many names of one ID a summary has."""


def topic_id_has_two_names(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    bindings = context.claims("binding", group, *subject)
    names = tuple(sorted({claim["name"] for claim in bindings}))
    if len(names) > 1:
        by_name = {claim["name"]: claim for claim in reversed(bindings)}
        first = [by_name[name] for name in names]
        about: dict[str, Any] = {"topic": names[0], "topic_ids": (subject[1],)}
        more = (f"{len(names) - NAMES_SHOWN:,} more",) if len(names) > NAMES_SHOWN else ()
        about |= {
            "words": {"names": " and ".join((*names[:NAMES_SHOWN], *more))},
            "first_ns": sorted(claim.first.ts_ns for claim in first)[1],
        }
        yield resting_on(bindings, subject[1], names, sides=tuple(map(first_of, first)), **about)
