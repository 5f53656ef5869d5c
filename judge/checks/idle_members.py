"""CLI004: members of consumer groups that hold partitions and do not fetch them.

Rule: that alone is no fault: an application may pause, or work on what it has. It counts only while nothing is known
that fetches for the member, commits of the partition stand still, and everything that its host sends was captured; for
longer than its group lets it work, or, while the log grows, for twice as long as it ever took.
"""

from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from wirecheck.client_ids import is_internal
from wirecheck.decode.api_names import key_of
from wirecheck.decode.releases import removed_in_4
from wirecheck.decode.request_waits import MILLISECOND_NS
from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.error_meanings import denial_action
from wirecheck.judge.checks.fetching import partition_states
from wirecheck.judge.checks.lone_readers import longest_pause
from wirecheck.judge.checks.progress import Log, by_slot, log_of, of_group
from wirecheck.judge.checks.shapes import all_begun, captured_brokers, clock, counted, resting_on, seen_repeatedly
from wirecheck.judge.checks.versions import advertised, took
from wirecheck.judge.claims.claim import LEAST, MOST_MEMBERS, Claim, Subject, error_name
from wirecheck.judge.claims.extract.clients import EPOCH_END_NS
from wirecheck.judge.claims.extract.group_members import BY_ID, SHARE
from wirecheck.judge.claims.members import hashed, named, of_partition
from wirecheck.judge.claims.outcomes import OTHERS, SLOT_NS, SUCCESS
from wirecheck.judge.claims.reduce import Column
from wirecheck.judge.claims.response_outcomes import outcome_name
from wirecheck.judge.results.finding import Evidence
from wirecheck.judge.thresholds import SECOND_NS
from wirecheck.judge.topic_history import name_of, topic_of
from wirecheck.judge.topology.clusters import Group

FETCH = "Fetch"
OF_SHARES = frozenset({"ShareFetch", "ShareAcknowledge"})


class Held(NamedTuple):
    """A partition that a member was assigned, and its names in fetches and commits: also by IDs of before, which a
    client may ask for after its topic was created again.
    """

    member: Claim
    topic: str
    topic_id: str | None
    topic_ids: tuple[str, ...]
    """All that the name had."""
    partition: int
    names: tuple[str, ...]


def assigned_but_not_fetching(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """One per group, topic and client of a host; what another client of the host fetches is fetched."""
    members = [one for one in context.claims("member", group, *subject) if is_long(one, context)]
    if not members:
        return
    context.watch()
    clients = clients_at(subject[1], context)
    limited = {client[1] for client in clients if context.claims("throttled", group, *client)}
    idle: dict[tuple[str, str, str], list[tuple[Held, int, int]]] = {}
    free = [member for member in members if (member["client_id"] or "") not in limited]
    for held, since_ns, patience in patient(subject, free, clients, group, context):
        if lives_on(held.member, since_ns, patience, context) and is_led(held, group, context):
            key = (held.member["group"], held.topic, held.member["client_id"] or "")
            idle.setdefault(key, []).append((held, since_ns, since_ns + patience))
    for (reads, topic, client_id), found in sorted(idle.items()):
        until_ns = max(until for *_, until in found)
        first_ns = min(since for _, since, _ in found)
        alone = all(read_itself(held, since_ns, group, context) for held, since_ns, _ in found)
        who = [one for one in clients if one[1] == client_id] if alone else clients
        if not all_captured(found[0][0].member, first_ns, who, group, context, until_ns=until_ns):
            continue
        claims = list({id(held.member): held.member for held, *_ in found}.values())
        since_ns = max(since for _, since, _ in found)
        words = {
            "client": client_id or "a client without an ID",
            "group": reads,
            "partitions": counted(len({held.partition for held, *_ in found}), "partition"),
            "since": clock(since_ns),
        }
        errors = sorted({error for held, *_ in found if (error := rejected_with(held, group, context)) is not None})
        words["why"] = "paused, or stuck"
        if errors:
            rejected = " and ".join(map(error_name, errors))
            if denied := denial_action(outcome_name(errors[0]), "Fetch", topic):
                words["denied"] = denied
            words |= {"hurt_host": subject[1], "rejected": rejected, "why": f"its last fetch was rejected: {rejected}"}
        if OUT_OF_RANGE in errors:
            words["gone"] = "yes"
        if (closed := closed_on(found[0][0], group, context)) is not None:
            words |= {"hurt_host": subject[1], "closed": closed["api"]}
            words["why"] = f"the broker closes connections on {closed['api']} v{closed['version']}"
            claims.append(closed)
        ids = tuple(sorted({held.topic_id for held, *_ in found if held.topic_id}))
        about = {"topic": topic, "topic_ids": ids, "client_ids": (claims[0]["client_id"],), "first_ns": since_ns}
        last_ns = max(held.member.peak["alive"] for held, *_ in found)
        yield resting_on(claims, reads, topic, client_id, subject[1], **about, last_ns=last_ns, words=words)


def patient(
    subject: Subject, members: list[Claim], clients: list[Subject], group: Group, context: CheckContext
) -> Iterator[tuple[Held, int, int]]:
    """Each partition that members hold, since when it is idle, and how long it may be."""
    logs: dict[str, Log] = {}
    for member in members:
        own = [one for one in clients if one[1] == (member["client_id"] or "")]
        mine = [(held, idle_since_ns(held, subject, own, group, context)) for held in held_by(member, group, context)]
        last_ns = max((since_ns for _, since_ns in mine), default=0)
        for held, own_ns in mine:
            polls_at = polls_on_at(held, last_ns, logs, group, context)
            itself = is_rejected(held, group, context) or read_itself(held, own_ns, group, context)  # no other does
            alone = polls_at is not None or itself or len(own) == len(clients)
            since_ns = own_ns if alone else idle_since_ns(held, subject, clients, group, context)
            yield held, since_ns, patience_ns(held, since_ns, group, context, polls_at=polls_at)


def waiting_member(
    committed: Claim, topic_id: str, since_ns: int, group: Group, context: CheckContext
) -> tuple[Claim, int] | None:
    """The member of the group that a claim of `committed_epoch` is about which holds the partition and has not fetched
    it for the grace from a time on, although everything that its host sends was captured, and from when it waits. Of
    several, after a restart, the one that lived last.
    """
    found: list[tuple[Claim, int]] = []
    reads, partition = committed["group"], committed["partition"]
    for member in of_group("member", reads, group, context):
        lives, subject = "assigned" in member.peak and "alive" in member.peak, ("host", member["host"])
        every = held_by(member, group, context) if lives else ()
        mine = [held for held in every if (held.topic_id, held.partition) == (topic_id, partition)]
        clients = clients_at(subject[1], context) if mine else []
        for held in mine:
            idle_ns = max(since_ns, idle_since_ns(held, subject, clients, group, context))
            alive_ns = held.member.peak["alive"]
            waits = alive_ns - idle_ns >= context.settings.broker_grace_ns
            if waits and all_captured(held.member, idle_ns, clients, group, context, until_ns=alive_ns):
                found.append((held.member, idle_ns))
    return max(found, key=lambda one: (one[0].peak["alive"], str(one[0].key)), default=None)


def clients_at(host: str, context: CheckContext) -> list[Subject]:
    return sorted(one for one in context.ledger.subjects("client") if one[2] == host)


def patience_ns(held: Held, since_ns: int, group: Group, context: CheckContext, *, polls_at: int | None) -> int:
    """How long a member may do without a fetch: its own rebalance timeout (of Java max.poll.interval.ms), or more; of a
    share group, which states none, Java's own. Of a reader with a rhythm whose log goes on twice its longest pause; of
    a share group not less than a minute, twice as long as records are locked by default. Without a rhythm it is twice
    as long as a response says that they are locked: what it acquired is another one's by then.
    """
    if is_of_share_group(held.member):
        return share_patience_ns(held, since_ns, group, context)
    own_ms = int(held.member.peak.get("rebalance_timeout_ms", -1))
    longest = max(context.settings.unanswered_s * SECOND_NS, own_ms * 1_000_000)
    mine = positions_of(held, group, context)
    if is_rejected(held, group, context):
        return context.settings.stuck_s * SECOND_NS
    if polls_at is not None and has_more(held, mine, polls_at, group, context):
        longest = min(longest, POLLS_S * SECOND_NS)
    if not mine or not log_goes_on(held, mine, since_ns, group, context):
        return longest
    if sum(claim.count for claim in mine) < RHYTHM:
        return longest
    slots = [slot for slot, _ in by_slot(mine)]
    pause = max((later - sooner for sooner, later in pairwise(slots)), default=0)
    return min(longest, max(context.settings.stuck_s * SECOND_NS, 2 * (pause + 1) * SLOT_NS))


def read_itself(held: Held, since_ns: int, group: Group, context: CheckContext) -> bool:
    """Whether the member's own client has read for a while, the partition too, and fetches nothing more since then: not
    so the driver of a query of Spark, for which executors with client IDs of their own read.
    """
    client = "client", held.member["client_id"] or "", held.member["host"]
    fetches = [claim for claim in context.claims("activity", group, *client) if claim["api"] == FETCH]
    last_ns = max((run.last_ns for claim in fetches for run in claim.outcomes.runs()), default=0)
    often = sum(claim.count for claim in fetches) >= RHYTHM
    return often and last_ns <= since_ns + SLOT_NS and bool(positions_of(held, group, context))


def polls_on_at(held: Held, since_ns: int, logs: dict[str, Log], group: Group, context: CheckContext) -> int | None:
    """The offset of the partition that the member's group commits again and again since then, if any, as an application
    does that polls: it does not work on a batch, for which it would have until max.poll.interval.ms is over. Nor does
    another client fetch for it: its group would get on. `since_ns`: when it did anything with any of its partitions
    last; some of them may be paused by design.
    """
    if is_of_share_group(held.member) or held.member.peak["alive"] - since_ns < POLLS_S * SECOND_NS:
        return None
    log = logs.setdefault(held.topic, log_of(("name", held.topic), group, context))
    every = log.current_of("committed", held.partition, held.member["group"])
    later = [offset for slot, offset in log.since_born(every) if slot > since_ns // SLOT_NS]
    return later[-1] if len(later) >= POLLS_S * SECOND_NS // SLOT_NS // 2 and len({*later}) == 1 else None


def share_patience_ns(held: Held, since_ns: int, group: Group, context: CheckContext) -> int:
    client = "client", held.member["client_id"] or "", held.member["host"]
    mine = [claim for claim in context.claims("activity", group, *client) if claim["api"] in OF_SHARES]
    least_ns, own_ns = context.settings.unanswered_s * SECOND_NS, 2 * (longest_pause(mine) + 1) * SLOT_NS
    if sum(claim.count for claim in mine) < RHYTHM:
        lock_ns = locked_ns(held, client, since_ns, group, context)
        return max(least_ns, own_ns, 2 * lock_ns) if lock_ns else context.settings.client_grace_ns
    end = log_end(held, group, context)
    before = max((offset for slot, offset in end if slot <= since_ns // SLOT_NS), default=0)
    grows = bool(end) and end[-1][1] > before > 0
    return min(context.settings.client_grace_ns, max(least_ns, own_ns)) if grows else context.settings.client_grace_ns


def locked_ns(held: Held, client: Subject, since_ns: int, group: Group, context: CheckContext) -> int:
    """For how long the records that a member acquired with its last answer are locked; 0 where it acquired none."""
    every = [one for one in context.claims("acknowledged", group, *client) if one["group"] == held.member["group"]]
    last = [one for one in every if one.peak.get("acquired", 0) >= since_ns]
    return max((int(one.peak["lock_ms"]) for one in last), default=0) * MILLISECOND_NS


def log_end(held: Held, group: Group, context: CheckContext) -> list[tuple[int, int]]:
    """By slot how far the log of a partition reached."""
    served = [claim for claim in context.claims("serves", group, "name", held.topic) if claim["topic_id"] is None]
    if held.topic_id is not None:
        served = served + context.claims("serves", group, "id", held.topic_id)
    return by_slot(claim for claim in served if claim["partition"] == held.partition)


POLLS_S = 90
"""An application that polls, and does not fetch for so long, has paused its partitions or cannot get over a record."""
RHYTHM = 20
"""So many requests and answers about a partition show how often its reader asks."""
ROUTINE = frozenset([0, 1, 5, 6, 9, 13, 56, 74, 75, 76])
"""Errors that a reader gets for a while and answers by itself: of leaders, of epochs, of offsets, of disks."""


def positions_of(held: Held, group: Group, context: CheckContext) -> list[Claim]:
    """What the member's client asked for of a partition, by any ID of its topic."""
    client = "client", held.member["client_id"] or "", held.member["host"]
    every = context.claims("position", group, *client)
    mine = [claim for claim in every if claim["partition"] == held.partition and "last" in claim.peak]
    return [claim for claim in mine if claim["name"] == held.topic or claim["topic_id"] in held.topic_ids]


def has_more(held: Held, mine: list[Claim], committed: int, group: Group, context: CheckContext) -> bool:
    """Whether the log of a partition has more than its group committed and its reader asked for, grown since or not."""
    asked = (claim.peak["last"][1] for claim in mine if claim["topic_id"] in {None, held.topic_id})
    end = log_end(held, group, context)
    return bool(mine) and bool(end) and end[-1][1] > max([committed, *asked])


def log_goes_on(held: Held, mine: list[Claim], since_ns: int, group: Group, context: CheckContext) -> bool:
    """Whether the log of a partition has more than its reader asked for, and grew since then."""
    end = log_end(held, group, context)
    last = max(mine, key=lambda claim: claim.peak["last"][0])
    asked = last.peak["last"][1] if last["topic_id"] in {None, held.topic_id} else 0
    before = max((offset for slot, offset in end if slot <= since_ns // SLOT_NS), default=0)
    return bool(end) and end[-1][1] > max(asked, before if last["topic_id"] in {None, held.topic_id} else 0)


def rejected_with(held: Held, group: Group, context: CheckContext) -> int | None:
    """The last answer about a partition, if it was an error that its reader does not get over by itself; nor over
    OFFSET_OUT_OF_RANGE if it does not ask where the log begins or ends, as without auto.offset.reset.
    """
    answers = [claim.peak["answer"] for claim in positions_of(held, group, context) if "answer" in claim.peak]
    ts_ns, last = max(answers, default=(0, 0))
    if last == OUT_OF_RANGE and not looks_for_an_offset(held, ts_ns, group, context):
        return OUT_OF_RANGE
    return None if last in ROUTINE else int(last)


OUT_OF_RANGE = 1
TO_READ = frozenset({"OffsetFetch", "ListOffsets", "Fetch"})


def is_rejected(held: Held, group: Group, context: CheckContext) -> bool:
    return rejected_with(held, group, context) is not None or closed_on(held, group, context) is not None


def closed_on(held: Held, group: Group, context: CheckContext) -> Claim | None:
    """What a member that never fetched a partition asked for last to read at all, if the broker closed the connection
    on it, at once: a version that every Kafka 4 removed, and that no broker accepts as far as is known. A library that
    joins a group in versions that are still there may ask once, and live on without its partitions.
    """
    if positions_of(held, group, context):
        return None
    client = "client", held.member["client_id"] or "", held.member["host"]
    soon_ns = context.settings.refusal_s * SECOND_NS
    every = [one for one in context.claims("closed_on", group, *client) if -one.peak["soonest"] <= soon_ns]
    removed = [one for one in every if one["api"] in TO_READ and removed_in_4(key_of(one["api"]), one["version"])]
    last = max(removed, key=lambda one: (one.last.ts_ns, str(one.key)), default=None)
    if last is None:
        return None
    asked = [one for one in context.claims("activity", group, *client) if one["api"] == last["api"]]
    ranges = advertised(last, group, context)
    known = ranges is not None and took(last, ranges, group, context)
    return None if known or any(SUCCESS in one.outcomes for one in asked) else last


def looks_for_an_offset(held: Held, since_ns: int, group: Group, context: CheckContext) -> bool:
    """Whether a member's client asked for an offset of the partition since then, or a bit before, at any broker."""
    every = [*context.claims("sought", group, "name", held.topic)]
    every += [claim for one in held.topic_ids for claim in context.claims("sought", group, "id", one)]
    who = held.member["client_id"], held.member["host"]
    mine = (one for one in every if (one["client_id"], one["host"]) == who and one["partition"] == held.partition)
    return any(one.last.ts_ns >= since_ns - SECOND_NS for one in mine)


def is_of_share_group(member: Claim) -> bool:
    return member.last.api == SHARE


def is_long(member: Claim, context: CheckContext) -> bool:
    """Whether a member lives for so long after its assignment, and its patience is known."""
    peak = member.peak
    known = not is_internal(member["client_id"] or "") and "assigned" in peak and "alive" in peak
    stated = peak.get("rebalance_timeout_ms", -1) > 0 or is_of_share_group(member)
    shortest_ns = context.settings.stuck_s * SECOND_NS
    return known and stated and lives_on(member, peak["assigned"], shortest_ns, context)


def lives_on(member: Claim, since_ns: int, patience: int, context: CheckContext) -> bool:
    """Whether a member was alive when its patience was over. That it lives is no news: it is looked at again then."""
    if member.peak["alive"] - since_ns >= patience:
        return True
    context.passed(since_ns + patience + SLOT_NS)
    return False


def held_by(member: Claim, group: Group, context: CheckContext) -> Iterator[Held]:
    """The partitions of a member's last assignment."""
    for name, value in member.peak.items():
        if not name.startswith(LEAST) or value[0] != member.peak["assigned"]:
            continue
        label, partition = str(value[1]), int(value[2])
        topic, topic_id = names_of(label, member, group, context)
        ids = tuple(history.topic_id for history in topic_of(topic, group, context).histories)
        labels = dict.fromkeys(one for one in (topic, topic_id, *ids) if one)
        yield Held(member, topic, topic_id, ids, partition, tuple(place(one, partition) for one in labels))


def names_of(label: str, member: Claim, group: Group, context: CheckContext) -> tuple[str, str | None]:
    """A topic's name and ID; KIP-848 and share groups assign by ID, the consumer protocol by name."""
    if member.last.api in BY_ID:
        return name_of(("id", label), group, context) or label, label
    histories = topic_of(label, group, context).histories
    return label, histories[-1].topic_id if histories else None


@lru_cache(maxsize=1 << 14)
def place(label: str, partition: int) -> str:
    """A partition's name in sets."""
    return named(of_partition(hashed(Column(np.zeros(1, np.int64), [label])), np.array([partition])))[0]


def idle_since_ns(held: Held, subject: Subject, clients: list[Subject], group: Group, context: CheckContext) -> int:
    """When the partition was assigned, fetched last, or committed further, whichever came last. Members of other
    client IDs fetch for themselves.
    """
    since_ns = held.member.peak["assigned"]
    own = held.member["client_id"]
    if is_of_share_group(held.member):
        return max(int(since_ns), share_fetched_last_ns(own or "", clients, group, context))
    for claim in context.claims("progress", group, *subject):
        if (claim["group"], claim["client_id"]) == (held.member["group"], own):
            every = [claim.peak[name] for name in held.names if name in claim.peak]
            since_ns = max([since_ns, *(EPOCH_END_NS - begun for _, begun in every)])
            if not every and is_full(claim, held):
                return int(held.member.peak["alive"])
    others = {one["client_id"] or "" for one in context.claims("member", group, *subject)} - {own or ""}
    for client in (one for one in clients if one[1] not in others):
        for claim in context.claims("fetch_asks", group, *client):
            since_ns = max(since_ns, fetched_last_ns(held, claim, client, group, context))
    return int(since_ns)


def share_fetched_last_ns(client_id: str, clients: list[Subject], group: Group, context: CheckContext) -> int:
    """When a ShareFetch or ShareAcknowledge of this client ID was answered last. Both are about everything in its share
    session, where each partition is listed once.
    """
    mine = (claim for one in clients if one[1] == client_id for claim in context.claims("activity", group, *one))
    runs = (run for claim in mine if claim["api"] in OF_SHARES for run in claim.outcomes.runs())
    return max((run.last_ns for run in runs), default=0)


def is_full(claim: Claim, held: Held) -> bool:
    """Whether a set may have dropped the partition."""
    names = sorted(name for name in claim.peak if name.startswith(LEAST))
    return len(names) >= MOST_MEMBERS and any(name > names[-1] for name in held.names)


def fetched_last_ns(held: Held, asks: Claim, client: Subject, group: Group, context: CheckContext) -> int:
    """When one server had a fetch of the partition open last; 0 for never. In a session it stays asked for until it is
    forgotten, or the connection answers no more. That a session is closed is no fetch.
    """
    ended = asks.peak.get("closed", 0) > asks.peak.get("asked", 0)
    asked_ns = int(asks.peak.get("asked", 0)) if ended else asks.last.ts_ns
    if is_full(asks, held):
        return asked_ns
    last_ns = 0
    for name in held.names:
        ts_ns, port = asks.peak.get(name, (0, 0))
        last_ns = max(last_ns, ts_ns)
        if not port:
            continue
        forgets = [c for c in context.claims("session_forgets", group, *client) if c["endpoint"] == asks["endpoint"]]
        if any(is_full(claim, held) for claim in forgets):
            return asks.last.ts_ns
        gone_ns = max((claim.peak[name][0] for claim in forgets if name in claim.peak), default=0)
        answered_ns = asked_ns if ended else answered_last_ns(port, asks, client, group, context)
        last_ns = max(last_ns, gone_ns if gone_ns > ts_ns else answered_ns)
    return int(last_ns)


def answered_last_ns(port: int, asks: Claim, client: Subject, group: Group, context: CheckContext) -> int:
    """When a connection's fetch was answered last, as far as connections are kept apart."""
    mine = (claim for claim in context.claims("activity", group, *client) if claim["endpoint"] == asks["endpoint"])
    every = (claim.outcomes for claim in mine if claim["api"] == FETCH)
    runs = (run for outcomes in every for part in (port, OTHERS) for run in outcomes.runs(part=part))
    return max((run.last_ns for run in runs), default=0)


def is_led(held: Held, group: Group, context: CheckContext) -> bool:
    """Whether the partition has a leader, as was stated last."""
    states = partition_states(held.topic, held.topic_id, held.partition, group, context)
    last = max(states, key=lambda claim: claim.last_word, default=None)
    return last is not None and last["leader"] >= 0


def all_captured(
    member: Claim,
    since_ns: int,
    clients: list[Subject],
    group: Group,
    context: CheckContext,
    *,
    until_ns: int,
) -> bool:
    """Whether every fetch from the host since then, to whatever broker of the cluster, is in the capture and was read:
    by the member's client, by those that fetch, and by any client that was not seen. What is missing of connections
    that were over by then, or began later than a time, does not count, nor of members of other client IDs, which fetch
    for themselves.
    """
    if not captured_brokers(group, context, asked_by=clients):
        return False
    every, own = set(group.endpoints), member["client_id"] or ""
    others = {one["client_id"] or "" for one in context.claims("member", group, "host", member["host"])} - {own}
    return all(
        seen_repeatedly(client, every, since_ns, group, context, until_ns=until_ns)
        and all(all_begun(client[1] or None, client[2], one, group, context) for one in sorted(every))
        for client in clients
        if client[1] == own or (client[1] not in others and context.claims("fetch_asks", group, *client))
    ) and not any(
        claim["host"] == clients[0][2]
        for one in sorted(every)
        for claim in context.claims("encrypted", group, "link", one)
    )
