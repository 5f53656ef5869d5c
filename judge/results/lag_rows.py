"""Rows of the table lags: how far the committed offsets of each group are behind the ends of a topic's partitions.

Rule: only what was seen counts. A partition whose end is in no answer has no lag. What was committed of a deleted topic
is no commit of the one that took its place. A transaction that is not over counts as one that ended well.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.progress import Log, Times, log_of, reached
from wirecheck.judge.checks.shapes import gathered, start_ns
from wirecheck.judge.claims.claim import Subject
from wirecheck.judge.claims.outcomes import SLOT_NS
from wirecheck.judge.results.result_table import ResultRow

TREND_SLOTS = 6
"""How the lag grows is asked of the last minute: slots are of ten seconds."""


class PartitionLag(NamedTuple):
    """One partition of a group."""

    committed: int
    """The offset that was committed last; it may be lower than one before."""
    commits: Times
    """The greatest of each slot."""
    end: Times

    @property
    def records(self) -> int:
        """That are not committed."""
        return max(0, self.end[-1][1] - self.committed)

    def records_at(self, slot: int) -> int:
        committed, end = (max(offset for at, offset in times if at <= slot) for times in (self.commits, self.end))
        return max(0, end - committed)

    @property
    def waiting_since(self) -> int | None:
        """The slot since which the oldest of them has been there, as far as that was seen."""
        return reached(self.end, self.committed, 0) if self.records else None


def lags_of_name(subject: Subject, context: CheckContext) -> Iterator[ResultRow]:
    """One row per group that commits offsets of a topic."""
    for group in context.groups(subject):
        log = log_of(subject, group, context)
        for reads, (found, unknown, span) in sorted(of_groups(log).items()):
            waiting = [slot for one in found if (slot := one.waiting_since) is not None]
            yield ResultRow.of(
                "lags",
                "|".join((group.key, reads, subject[1])),
                group.cluster,
                group_id=reads,
                topic=subject[1],
                partitions=len(found),
                unknown=unknown,
                records=sum(one.records for one in found) if found else None,
                waiting_since=start_ns(min(waiting)) if waiting else None,
                growth_per_second=growth_per_second(found),
                first_seen=span[0],
                last_seen=span[1],
            )


def of_groups(log: Log) -> dict[str, tuple[list[PartitionLag], int, tuple[int, int]]]:
    """By group: partitions with an end, how many have none, and when it committed first and last."""
    found: dict[str, list[PartitionLag]] = defaultdict(list)
    unknown: dict[str, int] = defaultdict(int)
    spans: dict[str, tuple[int, int]] = {}
    for partition in sorted({*log.of("committed"), *log.of("committed_in_transaction")}):
        end = log.end(partition)
        every = (*log.current("committed", partition), *log.current("committed_in_transaction", partition))
        for (reads,), claims in gathered(every, "group"):
            if not (commits := log.since_born(claims)):
                continue
            first_ns, last_ns = spans.get(reads, (claims[0].first.ts_ns, 0))
            first_ns, last_ns = min(first_ns, claims[0].first.ts_ns), max(last_ns, *(one.last.ts_ns for one in claims))
            spans[reads] = first_ns, last_ns
            if end:
                _, offset = max(one.peak["committed"] for one in claims)
                found[reads].append(PartitionLag(offset, commits, end))
            else:
                unknown[reads] += 1
    return {reads: (found[reads], unknown[reads], span) for reads, span in spans.items()}


def growth_per_second(found: list[PartitionLag]) -> float | None:
    """Records by which the lag grows, over the last minute; None if too little was seen."""
    if not found:
        return None
    both = [times for one in found for times in (one.commits, one.end)]
    until = max(times[-1][0] for times in both)
    since = max(until - TREND_SLOTS, *(times[0][0] for times in both))
    if since >= until:
        return None
    grown = sum(one.records - one.records_at(since) for one in found)
    return grown * 1_000_000_000 / ((until - since) * SLOT_NS)
