"""GRP011: groups whose last member left while records waited, and to which no other came.

Rule: who leaves while it reads was stopped, and closes its connections. It counts if it did nothing for a while before,
or if the connection over which it left stays open, and its client asks for nothing more: its process lives on. So does
the worker of a Connect task that failed. A library that reads no further ahead than it handles, and leaves at the
records that it asked for first, cannot handle them.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from wirecheck.decode.peer import Peer
from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.failed_tasks import Task, failed_tasks
from wirecheck.judge.checks.last_answers import OF_WORK, is_open
from wirecheck.judge.checks.progress import Log, Times, greatest, last_leave, log_of, longest_gap, readers
from wirecheck.judge.checks.shapes import clock, gathered, resting_on
from wirecheck.judge.claims.claim import Claim, Subject
from wirecheck.judge.claims.outcomes import SLOT_NS
from wirecheck.judge.results.finding import Evidence, Number
from wirecheck.judge.thresholds import SECOND_NS
from wirecheck.judge.topology.clusters import Group


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
    firsts: dict[str, list[Behind]] = {}
    for partition in sorted(log.of("position")):
        for group_id, one in left_at_its_first_records(log, partition):
            firsts.setdefault(group_id, []).append(one)
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
    waited = greatest(end, slot - 1) > offset and (slow or stays(last, log))
    grows = end[-1][0] - slot >= least and greatest(end) > greatest(end, slot)
    return Behind(greatest(end) - offset, acted_ns, last) if waited and grows else None


def left_at_its_first_records(log: Log, partition: int) -> Iterator[tuple[str, Behind]]:
    """Groups that never committed, whose last member asked for one offset of a partition alone, where records waited,
    and left: it could not handle the first ones. It joined within the capture, and no other came for long.
    """
    end, least = log.end(partition), log.context.settings.stuck_s * SECOND_NS // SLOT_NS
    for one in readers(log.current("position", partition)) if end and log.brokers else ():
        (first_ns, offset), (asked_ns, last) = one.first, one.last
        waited = greatest(end, asked_ns // SLOT_NS - 1) > offset
        if last != offset or {at for _, at in one.times} != {offset} or not waited:
            continue
        mine = log.context.by("client_id", "member", log.group, "host", one.host).get((one.client_id,), ())
        for reads in sorted({claim["group"] for claim in mine if "rebalance_timeout_ms" in claim.peak}):
            left = last_leave(reads, log.context, log.group)
            if left is None or (left["client_id"], left["host"]) != one.who or left.last.ts_ns < asked_ns:
                continue
            slot = left.last.ts_ns // SLOT_NS
            grows = end[-1][0] - slot >= least and greatest(end) > greatest(end, slot)
            commits = any(claim["group"] == reads for claim in log.every("committed"))
            if grows and not commits and log.whole(one.who, first_ns):
                yield reads, Behind(greatest(end) - offset, left.last.ts_ns, left)


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
