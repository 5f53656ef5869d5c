"""GRP: offsets and assignments of groups, and producers, across the deletion or recreation of a topic.

Rule: only topics that were seen to be created again are judged: an offset beyond a topic's end alone may come from an
unclean election.
"""

from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks import shapes
from wirecheck.judge.checks.idle_members import waiting_member
from wirecheck.judge.checks.progress import Log, alive_ns, log_of, of_group
from wirecheck.judge.checks.shapes import (
    brokers_of,
    by_key,
    captured_brokers,
    clients_of,
    clock,
    counted,
    end_ns,
    gathered,
    of_topic,
    resting_on,
    seen_whole,
    start_ns,
)
from wirecheck.judge.checks.topic_id_uses import end_of
from wirecheck.judge.claims.claim import AT, LEAST, MOST_MEMBERS, Claim, Sighting, Subject
from wirecheck.judge.claims.members import hashed, named
from wirecheck.judge.claims.outcomes import OTHERS, SLOT_NS, SUCCESS, Outcomes, Part
from wirecheck.judge.claims.reduce import Column
from wirecheck.judge.results.finding import Evidence, Number, Side, first_of, last_of
from wirecheck.judge.streaks import in_order, together
from wirecheck.judge.thresholds import SECOND_NS
from wirecheck.judge.topic_history import Topic, name_of, topic_of
from wirecheck.judge.topology.clusters import Group

READS = frozenset({"Fetch", "ShareFetch"})


def offset_from_dead_topic(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    topic = topic_of(subject[1], group, context)
    if not topic.replaces():
        return
    current, grace_ns = topic.histories[-1], context.settings.broker_grace_ns
    by_id = context.claims("committed", group, "id", current.topic_id)
    commits = [*context.claims("committed", group, *subject), *by_id]
    reaches = context.by("partition", "reaches", group, "id", current.topic_id)
    found: dict[tuple[str, int], tuple[Claim, int, list[Claim]]] = {}
    for claim in commits:
        offset = claim.peak["committed"][1]
        mine = reaches.get((claim["partition"],), [])
        highest = max((reach.peak["highest"] for reach in mine), default=offset)
        known_ns = max((reach.peak["latest"] for reach in mine), default=0)
        since_ns = current.born_ns + grace_ns
        late = [end for begin, end, one in commits_of(claim) if begin >= since_ns and one > highest]
        if offset > highest and late and known_ns >= min(late) + grace_ns:
            found[claim["group"], claim["partition"]] = (claim, offset, mine)
    for (who, partition), (claim, offset, mine) in sorted(found.items()):
        highest = max(reach.peak["highest"] for reach in mine)
        text = f"group {who} commits offset {offset} of partition {partition}"
        sides = (first_of(current.first), Side(claim.last, text), *map(last_of, mine))
        words = {"group": who, "partition": partition, "offset": offset, "highest": highest}
        about = {**of_topic(topic, current, topic.histories[-2]), "first_ns": max(current.born_ns, claim.first.ts_ns)}
        yield resting_on([claim], who, topic.name, partition, sides=sides, **about, words=words)


def commits_of(claim: Claim) -> list[tuple[int, int, int]]:
    """From when to when something was committed, and the offset: the latest, and the highest of each slot."""
    ts_ns, offset = claim.peak["committed"]
    every = ((int(name.removeprefix(AT)), value) for name, value in claim.peak.items() if name.startswith(AT))
    return [(ts_ns, ts_ns, offset), *((start_ns(slot), min(end_ns(slot), ts_ns), value) for slot, value in every)]


def committed_epoch_ahead(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """A consumer that gets such an epoch waits until the leader has it (KIP-320); Java's fetches nothing until then."""
    claims = context.claims("committed_epoch", group, *subject)
    if not claims:
        return
    space, topic_id = subject
    name = topic_id if space == "name" else name_of(subject, group, context) or topic_id
    if space == "name":
        topic_id = current_id(name, group, context)
    states = context.by("partition", "partition", group, "id", topic_id) if topic_id else {}
    for (who, partition), found in gathered(claims, "group partition"):
        latest = max(found, key=lambda claim: claim.peak["epoch"])
        ts_ns, epoch = latest.peak["epoch"]
        after = [one for one in states.get((partition,), ()) if one.last.ts_ns > ts_ns]
        current = max(after, key=lambda one: (one["leader_epoch"], one.last), default=None)
        if current is None or current["leader_epoch"] >= epoch or current["leader_epoch"] < 0:
            continue
        if max(one.last.ts_ns for one in after) < ts_ns + context.settings.broker_grace_ns:
            continue
        unread = is_not_fetched(topic_id, ts_ns, current, group, context)
        waiting = waiting_member(latest, topic_id, ts_ns, group, context)
        words = {"group": who, "epoch": epoch, "partition": partition, "current": current["leader_epoch"]}
        waits = "; a member holds it without fetching it" if waiting else ""
        words["stuck"] = "; no client has fetched the topic since" if unread else waits
        about = {"topic": name, "topic_ids": (topic_id,), "first_ns": ts_ns}
        about["kind"] = "violation" if unread or waiting else None
        if waiting is not None:
            member, since_ns = waiting
            words["hurt_host"] = member["host"]
            about |= {"client_ids": (member["client_id"],), "first_ns": since_ns, "last_ns": member.peak["alive"]}
            context.passed(member.peak["alive"] + SLOT_NS)  # that it lives on is no news: it is looked at again then
        sides = (Side(latest.last, f"group {who} has committed leader epoch {epoch}"), last_of(current))
        yield resting_on([latest], who, name, partition, sides=sides, **about, words=words)


def leaves_and_joins_again(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    left = [*leaves_by_itself(subject, group, context)]
    yield from left
    known = {one.key for one in left}
    yield from (one for one in removed_and_joins_again(subject, group, context) if one.key not in known)


AGAIN = 2
"""Once may be on purpose: an application that unsubscribes, and subscribes again."""


def leaves_by_itself(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Who leaves twice over one connection has joined in between; a process that ends leaves for good, which does not
    count. An administrator removes others. Two agents whose clocks differ may show one message at two times: it counts
    by slots, over a slot at least. Who unsubscribes, as it states, has polled in time: then that does not count.
    """
    left = context.claims("left", group, *subject)
    again = [claim for claim in left if len(claim.tally) > 1 and claim.last.ts_ns - claim.first.ts_ns >= SLOT_NS]
    for (reads,), claims in gathered(again, "group"):
        members = context.by("group", "member", group, "host", subject[2]).get((reads,), [])
        mine = [one for one in members if one["client_id"] == claims[0]["client_id"]]
        limits_ms = [ms for one in mine if (ms := one.peak.get("rebalance_timeout_ms", -1)) > 0]
        last = max((claim for claim in left if claim["group"] == reads), key=lambda claim: claim.last)
        counts = str(last.last.ts_ns // SLOT_NS) in last.tally
        for_good = counts and max(map(alive_ns, mine), default=0) <= last.last.ts_ns
        times = sum(len(claim.tally) for claim in claims) - for_good
        if not limits_ms or times < AGAIN:
            continue
        words = {
            "group": reads,
            "does": "left",
            "times": Number(times),
            "from": clock(min(claim.first.ts_ns for claim in claims)),
            "to": clock(max(claim.last.ts_ns for claim in claims)),
            "limit": f"; it may work {max(limits_ms) // 1000} s between polls",
        }
        about = {"client_ids": clients_of(claims), "brokers": brokers_of(claims, context), "count": times}
        yield resting_on(claims, *subject[1:], reads, **about, words=words)


def removed_and_joins_again(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Whose heartbeats the coordinator answers with UNKNOWN_MEMBER_ID on one connection, after it joined again each
    time: its session was over before it sent the next one. A coordinator that moves keeps its members.
    """
    for (reads,), claims in gathered(context.claims("entry", group, *subject), "group"):
        beats = together([claim for claim in claims if claim["api"] in BEATS])
        joins = together([claim for claim in claims if claim["api"] in JOINS])
        every = [removals(beats, joins, port) for port in sorted(beats.parts(REMOVED) - {OTHERS}, key=str)]
        times = max(every, key=len, default=[])
        if len(times) < REMOVALS or times[-1] - times[0] < context.settings.never_s * SECOND_NS:
            continue
        words = {"group": reads, "does": "was removed from", "times": Number(len(times))}
        words |= {"from": clock(times[0]), "to": clock(times[-1]), "limit": "; its heartbeats come too late"}
        about = {"client_ids": clients_of(claims), "brokers": brokers_of(claims, context), "count": len(times)}
        yield resting_on(claims, *subject[1:], reads, **about, words=words)


def removals(beats: Outcomes, joins: Outcomes, port: Part) -> list[int]:
    """When a member on one connection was no member any more; each but the first after it had joined again."""
    joined = joins.runs({SUCCESS}, part=port)
    found: list[int] = []
    for run in in_order(beats.runs(REMOVED, part=port)):
        if not found or any(found[-1] < one.last_ns and one.first_ns < run.last_ns for one in joined):
            found.append(run.last_ns if found else run.first_ns)
    return found


JOINS = frozenset({"JoinGroup", "ConsumerGroupHeartbeat", "ShareGroupHeartbeat"})
BEATS = JOINS - {"JoinGroup"} | {"Heartbeat"}
REMOVED = frozenset({25, 110})
"""UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH: the coordinator has no such member, or gave up waiting for it."""
REMOVALS = 3
"""Of the group; once or twice a process was slow."""


def current_id(name: str, group: Group, context: CheckContext) -> str:
    """Of the topic that has this name now; empty where no ID is known."""
    histories = topic_of(name, group, context).histories
    return histories[-1].topic_id if histories else ""


def is_not_fetched(topic_id: str, since_ns: int, state: Claim, group: Group, context: CheckContext) -> bool:
    """Whether no client fetched the topic since then, although its leader's answers are in the capture."""
    context.watch()
    uses = context.claims("use", group, "id", topic_id)
    if any(run.last_ns > since_ns for use in uses if use["api"] in READS for run in use.outcomes.runs()):
        return False
    until_ns = since_ns + context.settings.broker_grace_ns
    at = (end for end in group.endpoints if context.clusters.broker(end, until_ns) == state["leader"])
    answered = (one for end in at for one in context.claims("answered", group, "link", end))
    return any(run.last_ns > until_ns for one in answered for run in one.outcomes.runs())


def offset_invalidated_by_recreation(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    topic = topic_of(subject[1], group, context)
    if not topic.replaces():
        return
    current, log = topic.histories[-1], log_of(subject, group, context)
    before = [claim for claim in earlier_commits(topic, context) if claim.peak["committed"][0] < current.born_ns]
    had = {(claim["group"], claim["partition"]) for claim in before}
    gone = [c for c in offsets_gone(topic, group, context) if c.last.ts_ns > current.born_ns]
    committed = by_key(before, "group")
    for (who,), claims in gathered((c for c in gone if (c["group"], c["partition"]) in had), "group"):
        partitions = {claim["partition"] for claim in claims}
        mine = [claim for claim in committed[who,] if claim["partition"] in partitions]
        latest = [max(ones, key=lambda claim: claim.last) for _, ones in gathered(mine, "partition")]
        sides = (*map(last_of, [*claims, *latest]), first_of(current.first))
        words = {"group": who, "partitions": counted(len(partitions), "partition")}
        about = of_topic(topic, current, topic.histories[-2])
        after = (seen.ts_ns for claim in claims for seen in (claim.first, claim.last))
        first_ns = min(ts_ns for ts_ns in after if ts_ns > current.born_ns)
        known = all(reads_on(who, number, log) for number in partitions)
        about["kind"] = "information" if known else None
        yield resting_on(claims, who, topic.name, sides=sides, **about, first_ns=first_ns, words=words)


def reads_on(reads: str, partition: int, log: Log) -> bool:
    """Whether a member of a group asks for records of a topic that was created again: what it leaves out is known."""
    members = {(one["client_id"], one["host"]) for one in of_group("member", reads, log.group, log.context)}
    every = log.readers_now(partition)
    return any(one.who in members and one.last[0] > log.born_ns for one in every)


def offsets_gone(topic: Topic, group: Group, context: CheckContext) -> list[Claim]:
    """Answers without an offset, by the topic's name and by its current ID."""
    found = context.claims("offset_gone", group, "name", topic.name)
    return found + context.claims("offset_gone", group, "id", topic.histories[-1].topic_id)


def earlier_commits(topic: Topic, context: CheckContext) -> list[Claim]:
    """Commits by the topic's name, and by the ids it had before the current one."""
    found = context.claims("committed", topic.group, "name", topic.name)
    for history in topic.histories[:-1]:
        found = found + context.claims("committed", topic.group, "id", history.topic_id)
    return found


BEGIN = len(LEAST) + 8
"""How many characters of a member's name are the same in all members of one topic."""


class LastSeen(NamedTuple):
    """Where a name in a set was seen last, and with which answer."""

    seen: Sighting
    answer: str


def producer_crosses_recreation(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    topic = topic_of(subject[1], group, context)
    if not topic.replaces():
        return
    for client in writers(context).get(member_of(topic.name), ()):
        last = max(members("wrote", client, topic, context), default=None)
        if last is not None and last.seen.ts_ns >= topic.histories[-1].born_ns + context.settings.client_grace_ns:
            yield from misled(client, last, topic, context)


def writers(context: CheckContext) -> dict[str, list[Subject]]:
    """Per name, as a member of sets, the clients that write to it: looked up once however many names ask."""
    if context.writers is None:
        context.writers = defaultdict(list)
        for client in sorted(context.ledger.subjects("client")):
            for member in sorted({member for claim in context.believed(client, "wrote") for member in claim.peak}):
                context.writers[member].append(client)
    return context.writers


@lru_cache(maxsize=1 << 12)
def member_of(name: str) -> str:
    return named(hashed(Column(np.zeros(1, np.int64), [name])))[0]


def misled(client: Subject, wrote: LastSeen, topic: Topic, context: CheckContext) -> Iterator[Evidence]:
    """A client that writes, if all answers that it got since the change have the earlier ID."""
    old, new = topic.histories[-2:]
    answers = [
        answered for answered in members("topics_answered", client, topic, context) if answered.seen.ts_ns > new.born_ns
    ]
    if not answers or {answered.answer for answered in answers} != {old.topic_id}:
        return
    context.watch()
    if not all_seen(client, topic.group, context):
        return
    if context.passed(wrote.seen.ts_ns + context.settings.broker_grace_ns):
        latest = max(answers)
        answer = Side(latest.seen, f"{topic.name} has ID {latest.answer}")
        sides = (first_of(new.first), answer, Side(wrote.seen, f"{client[1]} writes to {topic.name}"))
        words = {"old": old.topic_id, "since": clock(new.born_ns)}
        words |= {"last_answer": clock(latest.seen.ts_ns), "last": clock(wrote.seen.ts_ns)}
        key, about = (*client[1:], topic.name, new.topic_id), of_topic(topic, new, old)
        yield Evidence(key, sides, **about, client_ids=(client[1],), words=words)


def members(kind: str, client: Subject, topic: Topic, context: CheckContext) -> Iterator[LastSeen]:
    """The members of a client's sets that are about a topic. Members of one topic begin alike."""
    begin = member_of(topic.name)[:BEGIN]
    for claim in context.claims(kind, topic.group, *client):
        for member, seen, (name, answer) in shapes.members(claim, parts=2):
            if member.startswith(begin) and name == topic.name:
                yield LastSeen(seen, answer)


def all_seen(client: Subject, group: Group, context: CheckContext) -> bool:
    """Whether every Metadata response to a client must have been captured and kept."""
    spoke = {claim["endpoint"] for claim in context.claims("client", group, *client)}
    answers = context.claims("topics_answered", group, *client)
    full = any(sum(name.startswith(LEAST) for name in claim.peak) >= MOST_MEMBERS for claim in answers)
    everywhere = captured_brokers(group, context) is not None
    return everywhere and not full and seen_whole(client[1] or None, client[2], spoke, group, context)


def group_assigns_dead_id(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    assigned = context.claims("assigned", group, *subject)
    ended = end_of(subject, group, context) if assigned else None
    if ended is None:
        return
    name, side = ended
    late_ns = side.sighting.ts_ns + context.settings.broker_grace_ns
    for (who,), claims in gathered((claim for claim in assigned if claim.last.ts_ns >= late_ns), "group"):
        sides = (side, *(last_of(claim) for claim in claims))
        since_ns = max(side.sighting.ts_ns, min(claim.first.ts_ns for claim in claims))
        about = {"topic": name, "topic_ids": (subject[1],), "first_ns": since_ns}
        words = {"group": who, "ended": clock(side.sighting.ts_ns)}
        yield resting_on(claims, who, subject[1], sides=sides, **about, words=words)


def group_describe_contradicts_binding(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    name = name_of(subject, group, context)
    for claim in context.claims("described", group, *subject) if name is not None else ():
        if claim["name"] != name:
            words, about = (
                {"group": claim["group"], "described": claim["name"]},
                {"topic": name, "topic_ids": (subject[1],)},
            )
            yield resting_on([claim], claim["group"], claim["name"], subject[1], **about, words=words)
