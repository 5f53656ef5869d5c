"""GRP015, and what each reader of a topic did once it was deleted and created again.

Rule: only who read the former topic counts, and only while everything that it asks brokers for is known. Who reads
nothing of the new topic did not lose it as long as another reader of its group, its application or its host does.
"""

from collections.abc import Iterator
from typing import NamedTuple

from wirecheck.client_ids import is_internal
from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.progress import (
    Log,
    Reader,
    Who,
    begins_at,
    by_who,
    greatest,
    log_of,
    members_of,
    read_the_former,
    shared_by,
)
from wirecheck.judge.checks.shapes import clock, resting_on
from wirecheck.judge.claims.claim import ZERO, Claim, Subject, error_name
from wirecheck.judge.claims.outcomes import SLOT_NS
from wirecheck.judge.results.finding import Evidence, Number
from wirecheck.judge.thresholds import SECOND_NS
from wirecheck.judge.topology.clusters import Group

BY_NAME = frozenset({None, ZERO})
Answer = tuple[int, int]
"""When, and with which error."""


class Continuation(NamedTuple):
    """What a reader of the former topic did with a partition of the new one."""

    partition: int
    mine: list[Reader]
    """By each ID, and by name."""
    offset: int | None
    """The lowest that it asked for; None where it asked for nothing, or by name so soon that this is not known."""
    answer: Answer
    """The last about the partition, under any ID."""
    reads: bool
    """Whether it was granted a fetch of the new topic."""

    @property
    def asked_ns(self) -> int:
        """When it was seen to fetch the partition last."""
        return max(self.answer[0], *(one.last[0] for one in self.mine))

    @property
    def claims(self) -> list[Claim]:
        return [claim for one in self.mine for claim in one.claims]


def continuations(log: Log) -> dict[Who, list[Continuation]]:
    """By client and host, in the order of the partitions; of a topic that took the place of a deleted one."""
    found: dict[Who, list[Continuation]] = {}
    if log.topic.lives is None:
        return found
    for partition in sorted(log.of("position")):
        every = [one for one in log.readers(partition) if not is_internal(one.client_id or "")]
        for who, mine in sorted(by_who(every).items(), key=str):
            if read_the_former(who, mine, log):
                found.setdefault(who, []).append(continued(log, partition, mine))
    return found


def continued(log: Log, partition: int, mine: list[Reader]) -> Continuation:
    begun = begins_at(log, mine)
    new = [one for one in mine if one.topic_id in {*BY_NAME, log.topic_id}]
    granted = any(error == 0 and at_ns > log.born_ns for at_ns, error in (answer_of([one]) for one in new))
    offset, reads = begun.offset if begun else None, granted or begun is not None
    return Continuation(partition, mine, offset, answer_of(mine), reads)


def answer_of(mine: list[Reader]) -> Answer:
    every = (claim.peak["answer"] for one in mine for claim in one.claims if "answer" in claim.peak)
    at_ns, error = max(every, default=(0, 0))
    return at_ns, error


def now_reading(log: Log, partition: int) -> Iterator[Reader]:
    """Who was granted a fetch of a partition of the new topic."""
    for one in log.readers(partition):
        at_ns, error = answer_of([one])
        if one.topic_id in {*BY_NAME, log.topic_id} and error == 0 and at_ns > log.born_ns:
            yield one


def is_read_for(one: Continuation, log: Log) -> bool:
    """Whether a client that may do so for a reader reads the partition: of its group, its client ID, or its host."""
    mine = one.mine[0]
    places = {*shared_by(mine, log)}
    return any(
        not places.isdisjoint(shared_by(other, log)) or (other.host == mine.host and other.first[0] > log.born_ns)
        for other in now_reading(log, one.partition)
    )


# --- GRP015


def nothing_read_since_recreation(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """One per reader: its fetches ended with an error while its topic was deleted and created again."""
    log = log_of(subject, group, context)
    for (client_id, host), every in continuations(log).items():
        lost = [one for one in every if waits(one, log) and not is_read_for(one, log)]
        if not lost or any(one.reads for one in every) or not log.whole((client_id, host), log.born_ns):
            continue
        asked_ns = max(one.asked_ns for one in every)
        alive_ns = lives_until((client_id, host), group, context)
        if is_member((client_id, host), asked_ns, log):
            continue  # CLI004
        errors = sorted({error_name(one.answer[1]) for one in lost})
        words = {
            "since": clock(asked_ns),
            "errors": " and ".join(errors),
            "records": Number(sum(greatest(log.end(one.partition)) for one in lost)),
        }
        if alive_ns - asked_ns >= context.settings.stuck_s * SECOND_NS:
            words["hurt_host"] = host
        yield resting_on(
            [claim for one in lost for claim in one.claims],
            *(log.topic.name, client_id, host),
            **log.names(client_id),
            first_ns=asked_ns,
            last_ns=max(asked_ns, alive_ns),
            words=words,
        )


def waits(one: Continuation, log: Log) -> bool:
    """Whether a reader's last fetch was rejected, and the new log has grown for long since."""
    if one.reads or one.answer[1] == 0:
        return False
    end, least = log.end(one.partition), log.context.settings.stuck_s * SECOND_NS // SLOT_NS
    since = max(one.asked_ns, log.born_ns) // SLOT_NS
    return bool(end) and end[-1][0] - since >= least and greatest(end) > greatest(end, since)


def lives_until(who: Who, group: Group, context: CheckContext) -> int:
    """When a client was seen last, by any request."""
    claims = context.claims("client", group, "client", who[0] or "", who[1])
    return max((claim.last.ts_ns for claim in claims), default=0)


def is_member(who: Who, asked_ns: int, log: Log) -> bool:
    """Whether a client is still a member of a group for long after its last fetch."""
    least_ns = log.context.settings.stuck_s * SECOND_NS
    members = members_of(*who, log.group, log.context)
    return any(claim.peak.get("alive", 0) - asked_ns >= least_ns for claim in members)
