"""CLI009: readers outside of consumer groups that stop.

Rule: a reader without a group states no limit, so its own rhythm is the limit. It counts only if it read for long and
often, is connected since then or never closed its connection, and the log has more for it than it ever asked for.
"""

from collections.abc import Iterator

from wirecheck.client_ids import is_of_node
from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.connection_ends import lives_on
from wirecheck.judge.checks.progress import Log, Reader, Who, greatest, log_of, reached
from wirecheck.judge.checks.shapes import brokers_of, clock, counted, resting_on
from wirecheck.judge.claims.claim import Claim, Subject
from wirecheck.judge.claims.kinds import PAUSE
from wirecheck.judge.claims.outcomes import SLOT_NS
from wirecheck.judge.results.finding import Evidence, Number
from wirecheck.judge.streaks import in_order
from wirecheck.judge.thresholds import SECOND_NS
from wirecheck.judge.topology.clusters import Group

FETCH = "Fetch"
OF_GROUPS = frozenset({
    "JoinGroup", "SyncGroup", "Heartbeat", "ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "StreamsGroupHeartbeat",
})  # fmt: skip
RHYTHM = 20
"""So many fetches show how often a reader asks."""
CHANGELOG = "-changelog"
"""Streams reads these only to restore a state, and is done then."""


def reader_fell_silent(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """One per client and topic: each partition that has more for it."""
    log = log_of(subject, group, context)
    if subject[1].endswith(CHANGELOG):
        return
    alone: dict[Who, dict[int, Reader]] = {}
    for partition in sorted(log.of("position")):
        for one in log.readers_now(partition):
            if not is_of_node(one.client_id):
                alone.setdefault(one.who, {})[partition] = one
    for who, by_partition in sorted(alone.items(), key=lambda item: str(item[0])):
        found = silence(who, by_partition, log)
        if found is not None:
            yield found


def silence(who: Who, by_partition: dict[int, Reader], log: Log) -> Evidence | None:
    context, client = log.context, ("client", who[0] or "", who[1])
    every = context.claims("activity", log.group, *client)
    fetches = [claim for claim in every if claim["api"] == FETCH]
    if not fetches or any(claim["api"] in OF_GROUPS for claim in every):
        return None
    runs = [run for claim in fetches for run in claim.outcomes.runs()]
    since_ns = max(run.last_ns for run in runs)
    begun_ns, count = min(run.first_ns for run in runs), sum(run.count for run in runs)
    settings = context.settings
    if count < RHYTHM or since_ns - begun_ns < settings.wrote_before * SECOND_NS:
        return None
    patience_ns = max(settings.fell_silent_s * SECOND_NS, 2 * (longest_pause(fetches) + 1) * SLOT_NS)
    context.watch()
    if not lives_on(client, since_ns + patience_ns, context):
        return None
    behind = {number: more_than_asked(log, number, one, since_ns) for number, one in by_partition.items()}
    waits = {number: records for number, records in behind.items() if records}
    if not waits or not log.whole(who, since_ns):
        return None
    claims = [claim for number in waits for claim in by_partition[number].claims]
    words = {
        "client": who[0] or "a client without an ID",
        "partitions": counted(len(waits), "partition"),
        "records": Number(sum(waits.values())),
        "since": clock(since_ns),
    }
    return resting_on(
        claims,
        *(log.topic.name, *who),
        **log.names(who[0]),
        brokers=brokers_of(claims, context),
        first_ns=since_ns,
        last_ns=since_ns + patience_ns,
        count=sum(waits.values()),
        words=words,
    )


def longest_pause(fetches: list[Claim]) -> int:
    """The most slots between two fetches. Within a run they are less than a slot apart, or as far as was kept of it."""
    runs = in_order(run for claim in fetches for run in claim.outcomes.runs())
    pauses = [claim.peak.get(PAUSE, 0) // SLOT_NS for claim in fetches]
    until = runs[0].last_ns // SLOT_NS if runs else 0
    for run in runs:
        pauses.append(run.first_ns // SLOT_NS - until)
        until = max(until, run.last_ns // SLOT_NS)
    return max(pauses, default=0)


def more_than_asked(log: Log, partition: int, reader: Reader, since_ns: int) -> int:
    """Records that the log got after a reader's last fetch, and which it never asked for."""
    asked, end = max(offset for _, offset in reader.times), log.end(partition)
    later = reached(end, asked, since_ns // SLOT_NS + 1)
    return greatest(end) - asked if later is not None else 0
