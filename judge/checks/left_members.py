"""GRP011: groups whose last member left while records waited, and to which no other came.

Rule: who leaves while it reads was stopped, and closes its connections. It counts if it did nothing for a while before,
or if the connection over which it left stays open, and its client asks for nothing more: its process lives on. So does
the worker of a Connect task that failed. A library that reads no further ahead than it handles, and leaves within
seconds of the records that it asked for first, cannot handle them. Who takes a sample reads another partition, or the
same records with another group.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from wirecheck.decode.peer import Peer
from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.failed_tasks import TASK, Task, failed_tasks
from wirecheck.judge.checks.last_answers import OF_WORK, is_open
from wirecheck.judge.checks.progress import (
    Log,
    Reader,
    Times,
    Who,
    expired,
    greatest,
    last_leave,
    log_of,
    longest_gap,
    members_of,
)
from wirecheck.judge.checks.rereads import holds
from wirecheck.judge.checks.shapes import clock, gathered, resting_on
from wirecheck.judge.claims.claim import Claim, Subject
from wirecheck.judge.claims.outcomes import SLOT_NS
from wirecheck.judge.results.finding import Evidence, Number
from wirecheck.judge.thresholds import SECOND_NS
from wirecheck.judge.topology.clusters import Group

COMMITS = frozenset({"OffsetCommit", "TxnOffsetCommit"})


def left_while_records_waited(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """One per group: its last member did nothing for a while, left, and no other came."""
    log = log_of(subject, group, context)
    found: dict[str, list[Behind]] = {}
    for partition in sorted(log.of("committed")):
        for _, done in gathered(log.current("committed", partition), "group"):
            one = behind(log, partition, done)
            if one is not None:
                found.setdefault(done[0]["group"], []).append(one)
    for reads, waiting in sorted(found.items()):
        since = clock(max(one.acted_ns for one in waiting))
        how = {"did": f"committed nothing from {since}", "since": since}
        yield left_behind(reads, waiting[0].left, sum(one.records for one in waiting), how, log)
    firsts = left_at_its_first_records(log)
    for reads, waiting in sorted(firsts.items()):
        if reads not in found:
            how = {"did": "committed none of its first records"}
            yield left_behind(reads, waiting[0].left, sum(one.records for one in waiting), how, log)
    tasks: dict[str, list[Task]] = {}
    for one_task in (task for partition in sorted(log.of("position")) for task in failed_tasks(log, partition)):
        tasks.setdefault(one_task.reads, []).append(one_task)
    for reads, ended in sorted(tasks.items()):
        if reads not in found and reads not in firsts:
            how = {"did": "ended, its Connect worker did not", "task": "yes"}
            yield left_behind(reads, ended[0].left, sum(task.records for task in ended), how, log)


def left_behind(reads: str, last: Claim, records: int, how: Mapping[str, Any], log: Log) -> Evidence:
    words = {"group": reads, "left": clock(last.last.ts_ns), "records": Number(records), **how}
    about_it = {"topic": log.topic.name, "client_ids": (last["client_id"],), "first_ns": last.last.ts_ns}
    return resting_on([last], reads, log.topic.name, **about_it, words=words)


class Behind(NamedTuple):
    """How the last member of a group left while a partition had more for it, or the client lived on without it."""

    records: int
    acted_ns: int
    """When it committed last, of whatever partition of the topic."""
    left: Claim


def behind(log: Log, partition: int, done: list[Claim]) -> Behind | None:
    """A partition that has grown for long enough since its group left it behind; `done`: its commits."""
    end, least = log.end(partition), log.context.settings.stuck_s * SECOND_NS // SLOT_NS
    if not end:
        return None
    reads, commits = done[0]["group"], log.since_born(done)
    if not commits or greatest(end) <= commits[-1][1] or end[-1][0] - commits[-1][0] < least:
        return None
    last = last_leave(reads, log.context, log.group) if log.brokers else None
    if last is None:
        return None
    left_ns, offset = last.last.ts_ns, commits[-1][1]
    slot = left_ns // SLOT_NS
    every = (one for one in log.every("committed") if one["group"] == reads)
    acted_ns = max(one.peak["committed"][0] for one in every)
    slow = left_ns - acted_ns >= patience_ns(done, commits, slot)
    waited = greatest(end, slot - 1) > offset and (slow or expired(last) or stays(last, log))
    grows = end[-1][0] - slot >= least and greatest(end) > greatest(end, slot)
    return Behind(greatest(end) - offset, acted_ns, last) if waited and grows else None


def left_at_its_first_records(log: Log) -> dict[str, list[Behind]]:
    """By group that never committed what its last member left behind: of each partition it asked for one offset alone,
    got records, and left at once. It joined within the capture, and no other came for long. Of who is in several groups
    it is not known which one reads: a probe has a new one each time.
    """
    found: dict[str, list[Behind]] = {}
    every = [
        (at, one)
        for at in sorted(log.of("position"))
        for one in log.readers_now(at)
        if log.context.claims("left", log.group, "client", one.client_id or "", one.host)
    ]
    moved = {one.who for _, one in every if len({one.first[1], *(offset for _, offset in one.times)}) > 1}
    for partition, one in every:
        if one.who in moved or not waited_for(one, log.end(partition)) or (one.client_id or "").startswith(TASK):
            continue
        groups = {claim["group"] for claim in memberships(one.who, log) if holds(claim, partition, log)}
        left = left_at_once(min(groups), one, log) if len(groups) == 1 and log.brokers else None
        if left is not None and grows_on(log, partition, left) and not is_read_for_it(one, left, partition, log):
            records = greatest(log.end(partition)) - one.first[1]
            found.setdefault(left["group"], []).append(Behind(records, left.last.ts_ns, left))
    return found


def waited_for(one: Reader, end: Times) -> bool:
    """Whether records came, and had been there for a while."""
    came = sum(count for claim in one.claims for count in claim.tally.values())
    return came > 0 and greatest(end, one.last[0] // SLOT_NS - 1) > one.first[1]


def memberships(who: Who, log: Log) -> list[Claim]:
    """What a client was as a member of groups that it joined within the capture."""
    return [claim for claim in members_of(*who, log.group, log.context) if "rebalance_timeout_ms" in claim.peak]


def left_at_once(reads: str, one: Reader, log: Log) -> Claim | None:
    """How the last member of a group left it, if that is this reader, within a slot of its last request, and the group
    committed nothing: who has its first records in hand for longer may be stopped.
    """
    left = last_leave(reads, log.context, log.group)
    if left is None or (left["client_id"], left["host"]) != one.who:
        return None
    at_once = 0 <= left.last.ts_ns - one.last[0] <= SLOT_NS
    return left if at_once and not commits(reads, one.who, log) and log.whole(one.who, one.first[0]) else None


def commits(reads: str, who: Who, log: Log) -> bool:
    """Whether a group commits anything of the topic, also in transactions, or this client anything at all."""
    kinds = ("committed", "committed_in_transaction")
    mine = log.context.claims("activity", log.group, "client", who[0] or "", who[1])
    return any(claim["api"] in COMMITS for claim in mine) or any(
        claim["group"] == reads for kind in kinds for claim in log.every(kind)
    )


def grows_on(log: Log, partition: int, left: Claim) -> bool:
    """Whether the log grows for long enough after a member left."""
    end, stuck_ns = log.end(partition), log.context.settings.stuck_s * SECOND_NS
    slot = left.last.ts_ns // SLOT_NS
    long = end[-1][0] - slot >= stuck_ns // SLOT_NS and log.context.passed(left.last.ts_ns + stuck_ns)
    return long and greatest(end) > greatest(end, slot)


def is_read_for_it(one: Reader, left: Claim, partition: int, log: Log) -> bool:
    """Whether a client without a group began at the same offset meanwhile, and read on, as the executors of a query of
    Spark do after its driver has joined.
    """
    (_, offset), (asked_ns, _) = one.first, one.last
    times = range(asked_ns, left.last.ts_ns + 1)
    every = log.readers_now(partition)
    others = (other for other in every if other.first[1] == offset and other.first[0] in times)
    return any(greatest(other.times) > offset and not memberships(other.who, log) for other in others)


def stays(left: Claim, log: Log) -> bool:
    """Whether the connection over which a member left is there for a while yet, and its client asks for nothing more
    of the kind, nor begins another connection.
    """
    subject, left_ns = ("client", left["client_id"] or "", left["host"]), left.last.ts_ns
    idle_ns = left_ns + log.context.settings.fell_silent_s * SECOND_NS
    if not log.context.passed(idle_ns) or not is_open(
        subject, left.last.server, Peer.of(left["client"]).port, idle_ns, log.context
    ):
        return False
    every = log.context.claims("activity", log.group, *subject)
    asks = any(run.last_ns > idle_ns for one in every if one["api"] in OF_WORK for run in one.outcomes.runs())
    return not asks and log.whole((left["client_id"], left["host"]), left_ns)


def patience_ns(done: list[Claim], commits: Times, slot: int) -> int:
    """How long a group may do without a commit: twice as long as between two on average, and as it ever did."""
    taken_ns = max(one.last.ts_ns for one in done) - min(one.first.ts_ns for one in done)
    average_ns = taken_ns // max(1, sum(one.count for one in done) - 1)
    return max(SLOT_NS, 2 * average_ns, 2 * (longest_gap(commits, slot) - 1) * SLOT_NS)
