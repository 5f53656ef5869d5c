"""Sink tasks of Kafka Connect that failed while their worker lives.

Rule: a task that fails leaves its group and closes its connections at once, as any reader does that is stopped. What
stops a task on purpose is known to the workers first: they join their own group again when a connector is created,
changed, deleted or stopped (KIP-415, KIP-875), or when a worker leaves. The task leaves when it has written what it
has, which may take long: it asks for nothing meanwhile. A task that fails at its first records leaves within seconds of
such a join, so that one counts after which it began. A worker that is stopped leaves its own group, and is silent
until it is started again.
"""

from collections.abc import Iterator
from typing import NamedTuple

from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.progress import Log, Reader, greatest, last_leave, members_of, of_group, readers
from wirecheck.judge.checks.shapes import by_key, seen_everywhere, seen_whole
from wirecheck.judge.claims.claim import Claim
from wirecheck.judge.claims.outcomes import SLOT_NS, Run
from wirecheck.judge.thresholds import SECOND_NS

TASK, WORKER = "connector-consumer-", "connect"
"""How the client IDs of a sink task's consumer, and of its worker's own clients, begin by default."""
STORE, STORES = "-statuses", ("-configs", "-offsets")
"""How that of the client ends which keeps the states of a worker's tasks: after the group and the client.id, if any, of
the worker, which has that alone. It has others beside it.
"""
JOIN, LEAVE, FETCH, BEAT = "JoinGroup", "LeaveGroup", "Fetch", "Heartbeat"
REARRANGED_NS = 15 * SECOND_NS
"""So soon after its workers join again a task is stopped, or begins and fails."""


class Task(NamedTuple):
    """A task that left its group, and what waits for it in a partition."""

    reads: str
    left: Claim
    records: int


def failed_tasks(log: Log, partition: int) -> Iterator[Task]:
    of_tasks = [c for c in log.current("position", partition) if (c["client_id"] or "").startswith(TASK)]
    end = log.end(partition) if of_tasks else []
    for one in readers(of_tasks) if end else ():
        mine = members_of(*one.who, log.group, log.context)
        for reads in sorted({claim["group"] for claim in mine}):
            last = last_leave(reads, log.context, log.group) if log.brokers else None
            if last is not None and (last["client_id"], last["host"]) == one.who and failed(one, reads, last, log):
                done = log.since_born(log.current_of("committed", partition, reads))
                begun = min(offset for _, offset in one.times)
                yield Task(reads, last, greatest(end) - max(greatest(done), begun))


def failed(one: Reader, reads: str, last: Claim, log: Log) -> bool:
    """Whether its worker lives on without it, while the log grows, and did not arrange it."""
    context, left_ns = log.context, last.last.ts_ns
    until_ns = left_ns + context.settings.cut_off_s * SECOND_NS
    if not context.passed(until_ns):
        return False
    worker = [*of_worker(one, context)]
    if not lives(worker, left_ns, until_ns):
        return False
    members = (c for c in of_group("member", reads, log.group, context) if (c["client_id"], c["host"]) == one.who)
    began_ns = max((claim.first.ts_ns for claim in members), default=0)
    since_ns = min(left_ns - REARRANGED_NS, max(began_ns, fetched_last_ns(one, context)))
    joins = asks_for(JOIN, worker, since_ns if left_ns - began_ns > REARRANGED_NS else began_ns, left_ns)
    if joins or asks_for(LEAVE, worker, left_ns - REARRANGED_NS, left_ns):
        return False
    who = ("client", one.client_id or "", one.host)
    return seen_everywhere(who, left_ns, log.group, context) and is_seen(worker, one.host, since_ns, log)


def lives(worker: list[Claim], left_ns: int, until_ns: int) -> bool:
    """Whether the worker sends heartbeats soon after, and later: one each 3 s; without any, it may have another name.
    Of several on one host, as of two clusters, it may be any: so all live on that were there until then.
    """
    beats = by_key((claim for claim in worker if claim["api"] == BEAT), "client_id")
    every = [[run for claim in claims for run in claim.outcomes.runs()] for claims in beats.values()]
    there = [runs for runs in every if any(left_ns - REARRANGED_NS <= run.last_ns <= left_ns + SLOT_NS for run in runs)]
    return bool(there) and all(beats_on(runs, left_ns, until_ns) for runs in there)


def beats_on(runs: list[Run], left_ns: int, until_ns: int) -> bool:
    soon = any(run.first_ns <= left_ns + 2 * SLOT_NS and run.last_ns >= left_ns + SLOT_NS for run in runs)
    return soon and any(run.last_ns >= until_ns for run in runs)


def fetched_last_ns(one: Reader, context: CheckContext) -> int:
    mine = context.ledger.claims("activity", "client", one.client_id or "", one.host)
    runs = (run for claim in mine if claim["api"] == FETCH for run in claim.outcomes.runs())
    return max((run.last_ns for run in runs), default=0)


def asks_for(api: str, worker: list[Claim], since_ns: int, left_ns: int) -> bool:
    """Whether the worker asks for it since then, or shortly after the task leaves."""
    found = (claim for claim in worker if claim["api"] == api)
    times = (ts_ns for claim in found for run in claim.outcomes.runs() for ts_ns in (run.first_ns, run.last_ns))
    return any(since_ns <= ts_ns <= left_ns + SLOT_NS for ts_ns in times)


def is_seen(worker: list[Claim], host: str, since_ns: int, log: Log) -> bool:
    """Whether all that the worker asked for since then was captured: that it joins again is one request."""
    every, names = set(log.group.endpoints), {claim["client_id"] for claim in worker}
    return all(seen_whole(name, host, every, log.group, log.context, since_ns=since_ns) for name in sorted(names))


def of_worker(one: Reader, context: CheckContext) -> Iterator[Claim]:
    """What the other clients of a task's worker ask for, but for its tasks."""
    there = [subject for subject in context.ledger.subjects("client") if subject[2] == one.host]
    names = {name for _, name, _ in there}
    begins = {name.removesuffix(STORE) for name in names if name.endswith(STORE)}
    stores = {name for name in begins if not names.isdisjoint(f"{name}{other}" for other in STORES)}
    for subject in there:
        name = subject[1]
        of_store = any(f"{name}-".startswith(f"{store}-") or store.endswith(f"-{name}") for store in stores)
        if (of_store or name.startswith(WORKER)) and not name.startswith("connector-"):
            yield from context.ledger.claims("activity", *subject)
