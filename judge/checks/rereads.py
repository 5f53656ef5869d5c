"""GRP018: members that read the same records of a partition again and again within one process.

Rule: what is asked for again proves nothing alone: a reader at the end of a log asks for the next record on and on, one
that replays a topic begins again by design. It counts only while the log has more, for a minute and for longer than
twice what the group ever took between two commits, and if no commit of the group moves. Of a group that has not
committed the partition it counts where its members join again each time, where the group commits others of the topic,
or where nothing behind the offset is asked for; not where it looks for the beginning each time, and leaves well or
gets on elsewhere, unless it leaves ten times before the end of the log. Where the group has committed all that there
is, nothing waits. Who begins at the first record each time and commits nothing may do so by design, as a cache. It is
in doubt where that does not explain it: no member has the whole topic, or it is started again every few seconds.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from wirecheck.client_ids import is_internal
from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.progress import (
    MANY_ROUNDS,
    ROUNDS,
    Log,
    Reader,
    Times,
    assigned,
    assigned_last,
    begun_again,
    expired,
    greatest,
    log_of,
    longest_gap,
    members_of,
    of_group,
    reached,
    rounds_of,
)
from wirecheck.judge.checks.shapes import brokers_of, clock, end_ns, resting_on, slots, start_ns
from wirecheck.judge.claims.claim import Claim, Subject
from wirecheck.judge.claims.extract.positions import EARLIEST
from wirecheck.judge.claims.outcomes import SLOT_NS, Outcomes, Part
from wirecheck.judge.results.finding import DOUBTED, Evidence, Number
from wirecheck.judge.thresholds import SECOND_NS
from wirecheck.judge.topology.clusters import Group

LEAST_S = 60
"""A record may be tried so long, at first: libraries try ten times, or for a minute, and go on."""
FETCH, HEARTBEAT = "Fetch", "Heartbeat"
SOON_S = 8
"""A group to which a member comes so often, on average, is no job that reads a topic: its group alone takes 3 s to be
divided (group.initial.rebalance.delay.ms).
"""
SLOTS = 5
"""In so many slots of 10 s it asks for the offset again."""


class Again(NamedTuple):
    """A reader that comes back to one offset."""

    reader: Reader
    offset: int
    slots: list[int]
    """Those in which it asks for it, and the log has more."""
    only: bool
    """Whether it asks for nothing behind it."""

    @property
    def since_ns(self) -> int:
        return start_ns(self.slots[0])

    @property
    def lasts_ns(self) -> int:
        return (self.slots[-1] - self.slots[0]) * SLOT_NS


def reads_one_offset_again(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """One per group, partition and client."""
    log = log_of(subject, group, context)
    for partition in sorted(log.of("position")):
        every = [one for one in log.readers_now(partition) if not is_internal(one.client_id or "")]
        for again in (found for one in every if (found := comes_back(one, partition, log)) is not None):
            for reads, members in groups_of(again.reader, context, group):
                if begun_again(reads, again.reader.who, partition, log) is not None:
                    continue  # GRP009 speaks of it
                if reads_for(reads, members, again, partition, log):
                    yield evidence(reads, again, partition, log)


def comes_back(one: Reader, partition: int, log: Log) -> Again | None:
    """The lowest offset that a reader asked for in the last minute, if the log has more all the time, and records
    come.
    """
    born = log.born_ns // SLOT_NS
    asked = [each for each in [*one.lows, *unlisted(one)] if each[0] > born or not born]
    if len(asked) < SLOTS:
        return None
    offset = min(value for slot, value in asked if slot > asked[-1][0] - LEAST_S * SECOND_NS // SLOT_NS)
    if sum(value == offset for _, value in asked) < SLOTS:  # as of almost all readers
        return None
    lower = max((slot for slot, value in asked if value < offset), default=-1)
    first = next(slot for slot, value in asked if slot > lower and value == offset)
    more = reached(log.end(partition), offset, 0)
    if more is None:
        return None
    found = [slot for slot, value in asked if value == offset and slot > max(first - 1, more)]
    if len(found) < SLOTS:
        return None
    fed = {*one.fed}
    found = [slot for slot in found if slot in fed]
    if len(found) < SLOTS or (found[-1] - found[0]) * SLOT_NS < LEAST_S * SECOND_NS:
        return None
    _, error = one.answer
    behind = any(value > offset for slot, value in one.times if slot >= found[0])
    return None if error or waits(one, log) else Again(one, offset, found, not behind)


def unlisted(one: Reader) -> Times:
    """Records that come after a fetch session listed the partition last, slots later: from the offset of then."""
    ts_ns, offset = one.last
    listed = ts_ns // SLOT_NS
    later = (claim for claim in one.claims if claim.last.ts_ns // SLOT_NS > listed)
    return [
        (slot, offset) for slot in sorted({slot for claim in later for slot in slots(claim.tally) if slot > listed})
    ]


def waits(one: Reader, log: Log) -> bool:
    """Whether a quota or an open transaction holds the reader up."""
    client = "client", one.client_id or "", one.host
    return any(log.context.claims(kind, log.group, *client) for kind in ("throttled", "held_back"))


def groups_of(one: Reader, context: CheckContext, group: Group) -> Iterator[tuple[str, list[Claim]]]:
    """The groups that a client is a member of, with all of their members."""
    mine = members_of(*one.who, group, context)
    for reads in sorted({claim["group"] for claim in mine}):
        yield reads, of_group("member", reads, group, context)


def reads_for(reads: str, members: list[Claim], again: Again, partition: int, log: Log) -> bool:
    """Whether a group gets no further meanwhile with this partition, which its member reads for it."""
    if is_another_process(again, log) or not lives_meanwhile(members, again):
        return False
    done = log.current_of("committed", partition, reads)
    commits, restored = log.since_born(done), restored_to(reads, partition, log)
    if max(greatest(commits), restored) >= greatest(log.end(partition)):
        return False  # nothing waits for the group
    if not commits:
        rounds = rounds_of(again.reader.who, members, again.since_ns, end_ns(again.slots[-1]))
        if restored > again.offset or reads_all_by_design(reads, again, partition, log, rounds):
            return False
        mine = [one for one in members if (one["client_id"], one["host"]) == again.reader.who]
        known = [one for one in mine if "assigned" in one.peak]
        if known and not any(holds(one, partition, log) for one in known):
            return False
        often = rounds >= ROUNDS or again.only or commits_on(reads, again.slots[0], log)
        return often or replays_when_assigned(reads, again, partition, log)
    done_to = greatest(commits, again.slots[0])
    before = max((value for _, value in commits if value < done_to), default=done_to - 1)
    if any(value != done_to and slot > again.slots[0] for slot, value in commits) or again.offset < before:
        return False
    return again.lasts_ns >= 2 * longest_gap(commits, again.slots[0]) * SLOT_NS


def lives_meanwhile(members: list[Claim], again: Again) -> bool:
    """Whether the reader was a member of the group for long enough of the time: a probe has another group each time."""
    mine = [one for one in members if (one["client_id"], one["host"]) == again.reader.who]
    spans = [(one.first.ts_ns // SLOT_NS, max(one.last.ts_ns, one.peak.get("alive", 0)) // SLOT_NS) for one in mine]
    return sum(any(begun <= slot <= ended for begun, ended in spans) for slot in again.slots) >= SLOTS


def is_another_process(again: Again, log: Log) -> bool:
    """Whether each fetch connection is soon over, as of a tool that is started again and again, while heartbeats go on
    over one that stays: the member is another process of that ID, and may work on what it has.
    """
    client = "client", again.reader.client_id or "", again.reader.host
    every = log.context.claims("activity", log.group, *client)
    fetched, beaten = ([one.outcomes for one in every if one["api"] == api] for api in (FETCH, HEARTBEAT))
    return longest_on_one(fetched, again) <= 1 < len(again.slots) <= longest_on_one(beaten, again)


def longest_on_one(every: Iterable[Outcomes], again: Again) -> int:
    """Over how many slots one connection was used meanwhile."""
    found: dict[Part, set[int]] = {}
    for outcomes in every:
        for part in outcomes.parts(outcomes.codes()):
            seen = (run.first_ns // SLOT_NS for run in outcomes.runs(part=part))
            found.setdefault(part, set()).update(slot for slot in seen if again.slots[0] <= slot <= again.slots[-1])
    return max(map(len, found.values()), default=0)


def restored_to(reads: str, partition: int, log: Log) -> int:
    """How far a group had committed the partition before."""
    return greatest(log.since_born(log.current_of("restored", partition, reads)))


def reads_all_by_design(reads: str, again: Again, partition: int, log: Log, rounds: int) -> bool:
    """Whether a reader looks for the beginning of the log each time, and its group gets on in other partitions or
    leaves well each time: a cache that is filled, or a job that reads all there is. Who leaves well each time before it
    has come to the end, so many times, meets something on its way.
    """
    if again.only or not begins_at_the_first(again, partition, log):
        return False
    if no_cache(reads, again, partition, log, rounds):
        return False
    if leaves_well(reads, again, log) and not (rounds >= MANY_ROUNDS and never_at_the_end(again, partition, log)):
        return True
    return commits_on(reads, again.slots[0], log)


def no_cache(reads: str, again: Again, partition: int, log: Log, rounds: int) -> bool:
    """Whether a group that commits nothing, and begins at the first record each time, does not fill a cache: its
    members divide the topic, or they are started again far more often than a cache is filled.
    """
    if not begins_at_the_first(again, partition, log) or not never_commits(reads, log):
        return False
    members = of_group("member", reads, log.group, log.context)
    begun = sum(again.since_ns <= one.first.ts_ns <= end_ns(again.slots[-1]) for one in members)
    often = begun >= MANY_ROUNDS and again.lasts_ns <= begun * SOON_S * SECOND_NS
    return rounds >= ROUNDS and (often or is_divided(reads, log))


def is_divided(reads: str, log: Log) -> bool:
    """Whether a member of a group has some partitions of the topic, and other members have others."""
    names = {log.topic.name, *(history.topic_id for history in log.topic.histories)}
    members = (one for one in of_group("member", reads, log.group, log.context) if "assigned" in one.peak)
    held = [{number for name, number in assigned_last(one) if name in names} for one in members]
    return any(one and one != set().union(*held) for one in held)


def begins_at_the_first(again: Again, partition: int, log: Log) -> bool:
    every = [one for one in log.current("sought", partition) if (one["client_id"], one["host"]) == again.reader.who]
    return sum(one.count for one in every if one["timestamp"] == EARLIEST) >= ROUNDS


def leaves(reads: str, again: Again, log: Log) -> list[Claim]:
    client_id, host = again.reader.who
    left = log.context.claims("left", log.group, "client", client_id or "", host)
    return [claim for claim in left if claim["group"] == reads]


def leaves_well(reads: str, again: Again, log: Log) -> bool:
    return sum(claim.count for claim in leaves(reads, again, log) if not expired(claim)) >= ROUNDS


def never_commits(reads: str, log: Log) -> bool:
    return not any(claim["group"] == reads for claim in log.every("committed"))


def looks_at_the_first(reads: str, again: Again, partition: int, log: Log) -> bool:
    """Whether a reader asks for the first records only, leaves well each time and ends its connection, and its group
    commits nothing: as a check of health does, and who cannot process the first record.
    """
    if any(expired(claim) or len(claim.tally) > 1 for claim in leaves(reads, again, log)):
        return False  # it was away for longer than its max.poll.interval.ms
    first_only = again.only and begins_at_the_first(again, partition, log)
    return first_only and never_commits(reads, log) and leaves_well(reads, again, log)


def never_at_the_end(again: Again, partition: int, log: Log) -> bool:
    """Whether a reader never asks for what the log reached a while before."""
    end, since = log.end(partition), again.slots[0] + 1
    tops = [(slot, offset) for slot, offset in again.reader.times if slot >= since]
    return all(offset < greatest(end, slot - 1) for slot, offset in tops)


def replays_when_assigned(reads: str, again: Again, partition: int, log: Log) -> bool:
    """Whether a member lives on, joins again each time that its group is divided again, and begins at the first record
    then, and its group commits nothing: as a cache that is filled, and as who forgets to mark what it has read.
    """
    if not never_commits(reads, log):
        return False
    members = of_group("member", reads, log.group, log.context)
    mine = [one for one in members if (one["client_id"], one["host"]) == again.reader.who]
    joins = sum(count for one in mine for name, count in one.tally.items() if name.isdigit())
    began = sum(one.first.ts_ns >= again.since_ns for one in mine)
    return joins >= ROUNDS and began < ROUNDS and begins_at_the_first(again, partition, log)


def holds(member: Claim, partition: int, log: Log) -> bool:
    """Whether a member had the partition, as far as that is kept."""
    names = {log.topic.name, *(history.topic_id for history in log.topic.histories)}
    return any(name in names and number == partition for _, name, number in assigned(member))


def commits_on(reads: str, since: int, log: Log) -> bool:
    """Whether the group commits other partitions of the topic: this one it committed before the capture, if ever."""
    every = (claim for claim in log.every("committed") if claim["group"] == reads)
    return any(greatest(times) > greatest(times, since) for times in (log.since_born([one]) for one in every))


def evidence(reads: str, again: Again, partition: int, log: Log) -> Evidence:
    client_id, host = again.reader.who
    words: dict[str, Any] = {
        "group": reads,
        "partition": partition,
        "offset": again.offset,
        "since": clock(max(again.since_ns, again.reader.first[0])),
        "behind": Number(greatest(log.end(partition)) - again.offset),
    }
    members = of_group("member", reads, log.group, log.context)
    rounds = rounds_of(again.reader.who, members, again.since_ns, end_ns(again.slots[-1]))
    replays = replays_when_assigned(reads, again, partition, log)
    doubted = no_cache(reads, again, partition, log, max(rounds, ROUNDS if replays else 0))
    stuck = rounds >= MANY_ROUNDS and never_at_the_end(again, partition, log)
    looks = looks_at_the_first(reads, again, partition, log)
    by_choice = looks or replays or (doubted and not stuck)
    if not by_choice:
        words["hurt_host"] = host
    elif doubted and not looks:
        words[DOUBTED] = "yes"
    claims = again.reader.claims
    return resting_on(
        claims,
        *(reads, log.topic.name, partition, client_id, host),
        **log.names(client_id),
        brokers=brokers_of(claims, log.context),
        kind="information" if by_choice else None,
        first_ns=again.since_ns,
        last_ns=end_ns(again.slots[-1]),
        count=len(again.slots),
        words=words,
    )
