"""GRP019: a member that vanished, and whose partitions no other member of its group reads.

Rule: the coordinator keeps a member for its session time-out, and until then no other one gets its partitions. That is
by design for seconds. It counts once a default session is over, records wait, and no member was assigned anything
since. Who removes the member, or reads its partitions outside of the group, has seen to it.
"""

from collections.abc import Iterator

from wirecheck.client_ids import is_internal
from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.progress import (
    ABSENT_S,
    Log,
    alive_ns,
    asks_on,
    assigned_last,
    greatest,
    log_of,
    members_of,
    of_group,
)
from wirecheck.judge.checks.shapes import clock, counted, gathered, resting_on, seen_everywhere
from wirecheck.judge.claims.claim import Claim, Subject
from wirecheck.judge.claims.outcomes import SLOT_NS
from wirecheck.judge.results.finding import Evidence, Number
from wirecheck.judge.thresholds import SECOND_NS
from wirecheck.judge.topology.clusters import Group


def partitions_of_a_vanished_member(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """One per group and member: all of its partitions of a topic that wait."""
    log = log_of(subject, group, context)
    waiting: dict[tuple[str, str], dict[int, int]] = {}
    vanished: dict[tuple[str, str], Claim] = {}
    for partition in sorted(log.of("committed")):
        for (reads,), done in gathered(log.current("committed", partition), "group"):
            holder = vanished_holder(reads, partition, log)
            if holder is None:
                continue
            end, commits, slot = log.end(partition), log.since_born(done), alive_ns(holder) // SLOT_NS
            if not end or not commits or commits[-1][0] > slot + 1 or greatest(end) <= greatest(end, slot + 1):
                continue
            place = reads, str(holder.key)
            vanished[place] = holder
            waiting.setdefault(place, {})[partition] = greatest(end) - commits[-1][1]
    for (reads, member), by_partition in sorted(waiting.items()):
        holder = vanished[reads, member]
        records, since_ns = sum(by_partition.values()), alive_ns(holder)
        words = {"client": holder["client_id"] or "a client without an ID", "group": reads, "since": clock(since_ns)}
        words |= {"partitions": counted(len(by_partition), "partition"), "records": Number(records)}
        about = {"topic": log.topic.name, "client_ids": (holder["client_id"],), "first_ns": since_ns, "count": records}
        key = reads, log.topic.name, holder["client_id"] or "", holder["host"]
        yield resting_on([holder], *key, **about, words=words)


def vanished_holder(reads: str, partition: int, log: Log) -> Claim | None:
    """The member that a partition was assigned to last, if it is silent for longer than a session by default, while
    others of its group live, and none of them was assigned anything since.
    """
    context, members = log.context, of_group("member", reads, log.group, log.context)
    holders = [one for one in members if "assigned" in one.peak and holds_last(one, partition, log)]
    last = max(holders, key=alive_ns, default=None)
    if last is None or is_internal(last["client_id"] or ""):
        return None
    since_ns = alive_ns(last)
    until_ns = since_ns + ABSENT_S * SECOND_NS
    if not context.passed(until_ns) or max(map(alive_ns, members)) < until_ns:
        return None
    if any(one.peak.get("assigned", 0) > since_ns - SLOT_NS or one.first.ts_ns > since_ns for one in members):
        return None
    if has_left(last, reads, log) or asks_on(last, since_ns + SLOT_NS, log):
        return None
    if is_removed(reads, members, since_ns, log) or is_taken_over(partition, reads, since_ns, log):
        return None
    context.watch()
    client = "client", last["client_id"] or "", last["host"]
    return last if seen_everywhere(client, since_ns, log.group, context) else None


def holds_last(member: Claim, partition: int, log: Log) -> bool:
    """Whether its last assignment has the partition."""
    names = {log.topic.name, *(history.topic_id for history in log.topic.histories)}
    return not {(name, partition) for name in names}.isdisjoint(assigned_last(member))


def has_left(member: Claim, reads: str, log: Log) -> bool:
    left = log.context.claims("left", log.group, "client", member["client_id"] or "", member["host"])
    return any(claim["group"] == reads and claim.last.ts_ns >= member.first.ts_ns for claim in left)


def is_removed(reads: str, members: list[Claim], since_ns: int, log: Log) -> bool:
    """Whether one that is no member had the group leave since: an administrator removes a member so."""
    own = {("client", one["client_id"] or "", one["host"]) for one in members}
    others = (client for client in sorted(log.context.ledger.subjects("client")) if client not in own)
    left = (claim for client in others for claim in log.context.claims("left", log.group, *client))
    return any(claim["group"] == reads and claim.last.ts_ns >= since_ns for claim in left)


def is_taken_over(partition: int, reads: str, since_ns: int, log: Log) -> bool:
    """Whether a reader outside of groups began the partition since, not behind what the group had committed."""
    done = log.current_of("committed", partition, reads)
    committed = greatest(log.since_born(done))
    for one in log.readers_now(partition):
        grouped = members_of(*one.who, log.group, log.context)
        if not grouped and one.first[0] > since_ns and one.first[1] <= committed < one.last[1]:
            return True
    return False
