"""GRP009 to GRP014: groups and readers whose position does not follow the log, and records that they never read.

Rule: a position alone proves nothing: an application may pause, prefetch, seek or commit late. It counts only beside
what the log did meanwhile, for longer than the group itself ever took before, and only if the group goes no other way.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

from wirecheck.client_ids import is_internal
from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.error_meanings import denial_action
from wirecheck.judge.checks.log_ends import NEVER, Unconfirmed, fall_of, of_id, unconfirmed
from wirecheck.judge.checks.shapes import (
    brokers_of,
    by_key,
    captured_brokers,
    clock,
    counted,
    end_ns,
    endpoints_of,
    gathered,
    known_addresses,
    lasting,
    resting_on,
    seen_between,
    seen_whole,
    slots,
    start_ns,
)
from wirecheck.judge.claims.claim import AT, LEAST, LOWEST, ZERO, Claim, Key, Subject, slot_of
from wirecheck.judge.claims.extract.acknowledgements import RELEASE
from wirecheck.judge.claims.outcomes import SLOT_NS
from wirecheck.judge.claims.response_outcomes import outcome_name
from wirecheck.judge.claims.seconds import at_second
from wirecheck.judge.results.finding import DOUBTED, Evidence, Number
from wirecheck.judge.thresholds import SECOND_NS
from wirecheck.judge.topic_history import Topic, name_of, topic_of
from wirecheck.judge.topology.clusters import Group
from wirecheck.wording import and_list

ROUNDS = 3
"""So often a group begins again at one offset until that is a loop; a rebalance, or a restart, does it once or twice.
"""
END, ANSWERED_NS = -1, 5_000_000_000
"""The timestamp of ListOffsets for the end of a log; so soon after an answer its client goes on from there."""
BEHIND, DELETED = "it begins the recreated topic behind them", "the log had deleted its offset"
FELL = "its log had fallen back behind it"
OLD_OFFSET = "its group kept an old offset"
MINUTE_S = 60
RESET_S = 30
"""A client asks where to go on at its next poll."""
Times = list[tuple[int, int]]
"""(slot, offset), in order"""
Who = tuple[str | None, str]


class Reader:
    """What a client on a host does with a partition of one topic ID, or of a topic by its name."""

    def __init__(self, client_id: str | None, host: str, topic_id: str | None, claims: list[Claim]) -> None:
        self.client_id, self.host, self.topic_id, self.claims = client_id, host, topic_id, claims
        self.who: Who = client_id, host

    @cached_property
    def extremes(self) -> tuple[Times, Times]:
        return extremes(self.claims)

    @property
    def times(self) -> Times:
        """The greatest offset that it asked for in each slot."""
        return self.extremes[0]

    @property
    def lows(self) -> Times:
        """The lowest offset that it asked for in each slot, and was not rejected."""
        return self.extremes[1]

    @cached_property
    def first(self) -> tuple[int, int]:
        """When it asked first, and for which offset."""
        negative, offset = max(one.peak["first"] for one in self.claims)
        return -negative, offset

    @cached_property
    def last(self) -> tuple[int, int]:
        ts_ns, offset = max(one.peak["last"] for one in self.claims)
        return ts_ns, offset

    @property
    def answer(self) -> tuple[int, int]:
        """When a response was captured last, and its error; zeros where none was."""
        ts_ns, error = max((tuple(one.peak["answer"]) for one in self.claims if "answer" in one.peak), default=(0, 0))
        return ts_ns, error

    @property
    def fed(self) -> list[int]:
        """The slots in which records came."""
        return [slot for one in self.claims for slot in slots(one.tally)]

    @property
    def lowest(self) -> int | None:
        """The lowest offset that it asked for and was not refused; None where it was refused each time."""
        known = [one.peak["lowest"] for one in self.claims if "lowest" in one.peak]
        return -int(max(known)) if known else None

    @property
    def begin(self) -> int | None:
        """The beginning of the log, as the first answer has it."""
        known = [one.peak["begin"] for one in self.claims if "begin" in one.peak]
        return int(max(known)[1]) if known else None


def by_slot(claims: Iterable[Claim]) -> Times:
    """The greatest offset of each slot."""
    return extremes(claims)[0]


def extremes(claims: Iterable[Claim]) -> tuple[Times, Times]:
    """By slot the greatest offset, and the lowest of requests that were not rejected."""
    high: dict[int, int] = {}
    negative: dict[int, int] = {}
    for claim in claims:
        for name, offset in claim.peak.items():
            if name.startswith(AT) and (slot := slot_of(name)) is not None:
                found = negative if name.endswith(LOWEST) else high
                found[slot] = max(offset, found.get(slot, offset))
    return sorted(high.items()), [(slot, -offset) for slot, offset in sorted(negative.items())]


def assigned(member: Claim) -> list[list[Any]]:
    """Partitions that a member was assigned, as far as they are kept: when, the topic's name or ID, and the number."""
    return [value for name, value in member.peak.items() if name.startswith(LEAST)]


def assigned_last(member: Claim) -> set[tuple[str, int]]:
    """Topics, by name or ID, and partitions of its last assignment."""
    return {(topic, number) for ts_ns, topic, number in assigned(member) if ts_ns == member.peak["assigned"]}


@dataclass
class Log:
    """A topic as it is now: how far its partitions reach, and what groups and readers do with them."""

    topic: Topic
    group: Group
    context: CheckContext
    kinds: dict[str, dict[int, list[Claim]]] = field(default_factory=dict)
    """What `at` was asked for."""
    ends: dict[int, Times] = field(default_factory=dict)
    """What `end` was asked for: by each of many groups."""
    held: dict[int, Unconfirmed | None] = field(default_factory=dict)
    """What `unconfirmed` was asked for."""
    now: dict[tuple[str, int], list[Claim]] = field(default_factory=dict)
    """What `current` was asked for."""
    by_group: dict[tuple[str, int], dict[Key, list[Claim]]] = field(default_factory=dict)
    """What `current_of` was asked for."""
    read_by: dict[tuple[bool, int], list[Reader]] = field(default_factory=dict)
    """What `readers` and `readers_now` were asked for."""

    @property
    def born_ns(self) -> int:
        """When it took another one's place, also that of a former cluster; 0 of a topic that did not."""
        if len(self.topic.histories) > 1:
            return self.topic.histories[-1].born_ns
        return self.topic.lives.born_ns if self.topic.lives else 0

    def is_now(self, one: "Reader") -> bool:
        """Whether a reader asks by the ID of the topic that is there now."""
        return one.topic_id is not None and one.topic_id == self.topic_id

    @cached_property
    def brokers(self) -> set[str]:
        """The addresses of all brokers, if each was captured: what was not asked there was not asked at all."""
        self.context.watch()
        return captured_brokers(self.group, self.context) or set()

    def whole(self, who: Who, since_ns: int) -> bool:
        """Whether all that a client asked brokers for since then is known."""
        return bool(self.brokers) and seen_whole(*who, self.brokers, self.group, self.context, since_ns=since_ns)

    @cached_property
    def former(self) -> set[Who]:
        """Who read any partition of the topic before."""
        ended_ns = self.topic.lives.ended_ns if self.topic.lives else 0
        every = (one for partition in self.of("position") for one in self.readers(partition))
        return {one.who for one in every if read_before(one, self, ended_ns)}

    @property
    def topic_id(self) -> str | None:
        return self.topic.histories[-1].topic_id if self.topic.histories else None

    def names(self, client_id: str | None) -> dict[str, Any]:
        """What a finding about one of its clients is about."""
        topic_ids = (self.topic_id,) if self.topic_id else ()
        return {"topic": self.topic.name, "topic_ids": topic_ids, "client_ids": (client_id,)}

    def of(self, kind: str) -> dict[int, list[Claim]]:
        """Claims of a kind by the topic's name, and by each of its IDs, once; by partition."""
        if kind not in self.kinds:
            every = self.kinds[kind] = {}
            for claim in self.every(kind):
                every.setdefault(claim["partition"], []).append(claim)
        return self.kinds[kind]

    def every(self, kind: str) -> list[Claim]:
        """The same, of whatever partition."""
        found = [*self.context.claims(kind, self.group, "name", self.topic.name)]
        for history in self.topic.histories:
            found += self.context.claims(kind, self.group, "id", history.topic_id)
        return list({claim.key: claim for claim in found}.values())

    def at(self, kind: str, partition: int) -> list[Claim]:
        return self.of(kind).get(partition, [])

    def current(self, kind: str, partition: int) -> list[Claim]:
        """Those that may be about the topic as it is now: by its ID, or by its name alone."""
        if (kind, partition) not in self.now:
            ids = {None, ZERO, self.topic_id}
            self.now[kind, partition] = [claim for claim in self.at(kind, partition) if claim["topic_id"] in ids]
        return self.now[kind, partition]

    def current_of(self, kind: str, partition: int, reads: str) -> list[Claim]:
        """Those of one consumer group: gone through once, however many groups ask."""
        if (kind, partition) not in self.by_group:
            self.by_group[kind, partition] = by_key(self.current(kind, partition), "group")
        return self.by_group[kind, partition].get((reads,), [])

    def readers(self, partition: int) -> list[Reader]:
        """Those of a partition, by whichever of the topic's IDs."""
        if (False, partition) not in self.read_by:
            self.read_by[False, partition] = readers(self.at("position", partition))
        return self.read_by[False, partition]

    def readers_now(self, partition: int) -> list[Reader]:
        """Those that may read the topic as it is now."""
        if (True, partition) not in self.read_by:
            self.read_by[True, partition] = readers(self.current("position", partition))
        return self.read_by[True, partition]

    def end(self, partition: int) -> Times:
        """How far the log reached, by slot."""
        if partition not in self.ends:
            self.ends[partition] = self.since_born(self.current("serves", partition))
        return self.ends[partition]

    def unconfirmed(self, partition: int) -> Unconfirmed | None:
        """Whether its leader has had records for a minute that no reader gets."""
        if partition not in self.held:
            self.held[partition] = unconfirmed(self.current("serves", partition), self.born_ns, MINUTE_S)
        return self.held[partition]

    def since_born(self, claims: Iterable[Claim]) -> Times:
        """By slot what claims state of it, without what was stated by name in the slot of its birth."""
        born = self.born_ns // SLOT_NS
        named, numbered = ([c for c in claims if (c["topic_id"] in {None, ZERO}) is flag] for flag in (True, False))
        found = dict(by_slot(numbered))
        for slot, offset in by_slot(named):
            if slot > born or not born:
                found[slot] = max(offset, found.get(slot, offset))
        return sorted(found.items())


def log_of(subject: Subject, group: Group, context: CheckContext) -> Log:
    """Made once for all checks of the subject that is judged."""
    place = subject[1], id(group)
    if place not in context.topic_logs:
        context.topic_logs[place] = Log(topic_of(subject[1], group, context), group, context)
    log: Log = context.topic_logs[place]
    return log


def longest_gap(times: Times, until: int) -> int:
    """The most slots between two advances of an offset until a slot."""
    advances = [slot for (_, before), (slot, offset) in pairwise(times) if offset > before]
    early = [slot for slot in [*[slot for slot, _ in times[:1]], *advances] if slot <= until]
    return max((later - sooner for sooner, later in pairwise(early)), default=0)


def reached(times: Times, above: int, since: int) -> int | None:
    """The first slot from one on in which a log reaches beyond an offset."""
    return next((slot for slot, offset in times if slot >= since and offset > above), None)


def greatest(times: Times, until: int | None = None) -> int:
    return max((offset for slot, offset in times if until is None or slot <= until), default=0)


def of_group(kind: str, reads: str, group: Group, context: CheckContext) -> list[Claim]:
    """Claims about the members of a consumer group, on whichever host: gone through once, however many ask."""
    context.watch()
    place = "of_group", kind, id(group)
    if place not in context.indexes:
        found: dict[Key, list[Claim]] = {}
        for subject in sorted(context.ledger.subjects("host")):
            for claim in context.claims(kind, group, *subject):
                found.setdefault((claim["group"],), []).append(claim)
        context.indexes[place] = found
    return context.indexes[place].get((reads,), [])


def members_of(client_id: str | None, host: str, group: Group, context: CheckContext) -> list[Claim]:
    """Claims about a client's members of consumer groups. Its host may have any number of other clients."""
    found = context.by("client_id", "member", group, "host", host)
    return [one for name in ([client_id] if client_id else ["", None]) for one in found.get((name,), ())]


def readers(claims: Iterable[Claim]) -> list[Reader]:
    """Those of which a request was captured."""
    asked = (claim for claim in claims if "first" in claim.peak)
    found = gathered(asked, "client_id host topic_id")
    return [Reader(client_id, host, topic_id, claims) for (client_id, host, topic_id), claims in found]


# --- begins again and again at one offset


def begins_again_at_one_offset(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """One per group, partition and client: each time a new member gets the same committed offset."""
    log = log_of(subject, group, context)
    for partition in sorted(log.of("restored")):
        for (reads, client_id, host), found in gathered(log.current("restored", partition), "group client_id host"):
            begun = begun_again(reads, (client_id, host), partition, log)
            if begun is None or is_internal(client_id or ""):
                continue
            loop, rounds, since_ns = begun
            words = {
                "group": reads,
                "partition": partition,
                "offset": loop.offset,
                "rounds": Number(rounds),
                "since": clock(since_ns),
                "why": f"{counted(greatest(log.end(partition)) - loop.offset, 'record')} before the end",
                "hurt_host": host,
            }
            missed = [
                one
                for one in log.current("out_of_range", partition)
                if (one["client_id"], one["host"]) == (client_id, host)
            ]
            if loop.offset in by_second(missed).values():
                words["gone"] = "yes"
            elif error := rejected_last((client_id, host), partition, since_ns, log):
                if denial_action(error, "Fetch"):
                    continue  # CLI006
                words |= {"error": error, "why": f"as its fetches get {error}"}
            yield resting_on(
                found,
                *(reads, log.topic.name, partition, client_id, host),
                topic=log.topic.name,
                client_ids=(client_id,),
                brokers=brokers_of(found, context),
                first_ns=since_ns,
                last_ns=found[0].last.ts_ns,
                count=rounds,
                words=words,
            )


def rejected_last(who: Who, partition: int, since_ns: int, log: Log) -> str:
    """The error by which a client's last fetch of a partition was rejected since then; empty where records came."""
    every = [one for one in log.readers_now(partition) if one.who == who]
    answered_ns, error = max((one.answer for one in every), default=(0, 0))
    fed = any(slot > since_ns // SLOT_NS for one in every for slot in one.fed)
    return outcome_name(error) if error and answered_ns >= since_ns and not fed else ""


def begun_again(reads: str, who: Who, partition: int, log: Log) -> tuple["Loop", int, int] | None:
    """Where a client begins again and again for its group, how often, and since when."""
    every = log.current_of("restored", partition, reads)
    found = [one for one in every if (one["client_id"], one["host"]) == who]
    if sum(claim.count for claim in found) < ROUNDS:
        return None
    done = log.current_of("committed", partition, reads)
    loop = loop_of(by_slot(found), log.since_born(done), log.end(partition), log.context)
    if loop is None:
        return None
    since_ns = max(start_ns(loop.since), found[0].first.ts_ns)
    rounds = rounds_of(who, of_group("member", reads, log.group, log.context), since_ns, found[0].last.ts_ns)
    if rounds < ROUNDS or (rounds < MANY_ROUNDS and takes_few(who, reads, partition, loop.since, log)):
        return None
    return loop, rounds, since_ns


def rounds_of(who: Who, members: Iterable[Claim], since_ns: int, until_ns: int) -> int:
    """How often a client began as a new member, or joined again by itself, while no other member came or left."""
    every = [*members]
    mine = [one for one in every if (one["client_id"], one["host"]) == who]
    began = sum(since_ns <= one.first.ts_ns <= until_ns for one in mine)
    slots = range(since_ns // SLOT_NS, until_ns // SLOT_NS + 1)
    joins = sum(count for one in mine for name, count in one.tally.items() if name.isdigit() and int(name) in slots)
    return max(began, joins if joins >= JOINS_OF_A_MEMBER * len(every) + ROUNDS else 0)


def takes_few(who: Who, reads: str, partition: int, since: int, log: Log) -> bool:
    """Whether a client took some records of other partitions of the topic, committed them and left, again and again."""
    left = log.context.claims("left", log.group, "client", who[0] or "", who[1])
    if sum(claim.count for claim in left if claim["group"] == reads) < ROUNDS - 1:
        return False
    others = [one for one in log.every("committed") if one["group"] == reads and one["partition"] != partition]
    series = (log.since_born(claims) for _, claims in gathered(others, "partition"))
    return any(greatest(times) > greatest(times, since) for times in series)


MANY_ROUNDS = 10
"""A partition that so many batches in turn took nothing of does not wait by accident."""
JOINS_OF_A_MEMBER = 2
"""All members join again when one comes, and when it leaves."""


class Loop(NamedTuple):
    offset: int
    since: int
    """The slot since when it is the same."""


def loop_of(restored: Times, committed: Times, end: Times, context: CheckContext) -> Loop | None:
    """Where a group goes on again and again, while its log has more and no commit moves it."""
    if not restored:
        return None
    last, offset = restored[-1]
    others = [slot for slot, value in restored if value != offset]
    since = next(slot for slot, _ in restored if slot > max(others, default=-1))
    more = reached(end, offset, since)
    if more is None or any(value > offset and slot > since for slot, value in committed):
        return None
    stands = (last - max(since, more)) * SLOT_NS
    patience = max(context.settings.stuck_s * SECOND_NS, 2 * longest_gap(committed, since) * SLOT_NS)
    return Loop(offset, since) if stands >= patience else None


# --- records that were never read


class Skip(NamedTuple):
    """Offsets that a reader left out: from one to before another."""

    begin: int
    end: int
    ts_ns: int
    why: str
    how: dict[str, Any]
    """Words that only a skip of its kind has."""
    again: int
    """How many records the client has asked for since: they come again if it goes back."""
    claims: list[Claim]
    asked: bool = False
    """Whether the client asked for the end of the log."""

    @property
    def records(self) -> int:
        return self.end - self.begin


def records_never_read(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """One per client: what it left out of each partition."""
    log = log_of(subject, group, context)
    found: dict[Who, dict[int, list[Skip]]] = {}
    kinds = (of_recreation, of_former_offset, of_range, of_lost_offset, of_fall)
    for partition in sorted(log.of("position")):
        every = [one for one in log.readers(partition) if not is_internal(one.client_id or "")]
        for one in (skip for kind in kinds for skip in kind(log, partition, every)):
            who, skip = one
            found.setdefault(who, {}).setdefault(partition, []).append(skip)
    for (client_id, host), by_partition in sorted(found.items(), key=str):
        skips = [skip for every in by_partition.values() for skip in every]
        first = min(skips, key=lambda one: one.ts_ns)
        total = sum(skip.records for skip in skips)
        claims = list({claim.identity: claim for skip in skips for claim in skip.claims}.values())
        words: dict[str, Any] = {
            "records": Number(total),
            "partition": next(iter(by_partition)),
            "where": where(by_partition),
            "why": first.why,
            **first.how,
            "again": Number(sum(one.again for one in skips)),
            "since": clock(first.ts_ns),
        }
        by_choice = all(skip.asked for skip in skips)
        if not by_choice:
            words["hurt_host"] = host
        yield resting_on(
            claims,
            *(log.topic.name, client_id, host),
            **log.names(client_id),
            brokers=brokers_of(claims, context),
            kind="information" if by_choice else None,
            first_ns=first.ts_ns,
            last_ns=max(skip.ts_ns for skip in skips),
            count=total,
            words=words,
        )


def where(by_partition: dict[int, list[Skip]]) -> str:
    """The offsets, of one partition as numbers."""
    spans = {
        number: range(min(skip.begin for skip in skips), max(skip.end for skip in skips))
        for number, skips in by_partition.items()
    }
    parts = len(next(iter(by_partition.values())))
    return span_of(spans) + (f", in {parts} parts" if len(by_partition) == 1 and parts > 1 else "")


def span_of(spans: Mapping[int, range]) -> str:
    """`partition 0, offsets 12 to 51`, or how many partitions."""
    if len(spans) > 1:
        return counted(len(spans), "partition")
    ((partition, span),) = spans.items()
    return f"partition {partition}, offsets {span.start:,} to {span.stop - 1:,}"


def of_recreation(log: Log, partition: int, every: list[Reader]) -> Iterator[tuple[Who, Skip]]:
    """Readers of the former topic that begin the new one behind its first record, and no other member of theirs reads
    what is before. Without a deletion the log may be the same.
    """
    if log.topic.lives is None:
        return
    least, born_ns, all_begins = least_asked(log, every), log.born_ns, begins(log, every)
    for who, mine in by_who(every).items():
        begun = all_begins.get(who)
        if begun is None or not read_the_former(who, mine, log):
            continue
        begin = max([0, *(one.begin or 0 for one in mine if log.is_now(one))])
        is_least = all(least[place] >= begun.offset for one in mine for place in shared_by(one, log))
        if begun.offset <= begin or not is_least:
            continue
        is_whole = log.whole(who, born_ns)
        if is_whole or known_from_its_leader(partition, who, all_begins, log):
            sought = log.at("sought", partition)
            asked = any(asks_where_to_begin(claim, who, begun.offset, born_ns) for claim in sought if begun.by_id)
            asked = asked or looks_at_last_records(partition, who, mine, begun, log)
            may_be_set = not is_whole or is_set(partition, mine, begun, log) or is_chosen(partition, begun, log)
            if not asked and may_be_set and not may_be_kept(partition, mine, begun, log):
                continue
            again = max(one.last[1] for one in begun.readers) - begun.offset
            claims = [claim for one in begun.readers for claim in one.claims]
            recreated = {"recreated": log.topic_id}
            yield who, Skip(begin, begun.offset, begun.ts_ns, BEHIND, recreated, again, claims, asked)


def of_former_offset(log: Log, partition: int, every: list[Reader]) -> Iterator[tuple[Who, Skip]]:
    """Readers that begin again where their group had been in the former topic, behind what it has read of the new one.

    librdkafka commits its last offset once more when its topic comes back, reads the new one from its first record, and
    commits nothing until it is beyond that offset: who is started again meanwhile goes on there. What it, or a tool,
    committed after it had asked for anything of the new one is an offset of that.
    """
    if log.topic.lives is None:
        return
    born = log.born_ns // SLOT_NS
    for claim in log.current("restored", partition):
        reads, who = claim["group"], (claim["client_id"], claim["host"])
        places = {place for one in every for place in shared_by(one, log) if ("group", reads) in shared_by(one, log)}
        mine = [one for one in every if not places.isdisjoint(shared_by(one, log))]
        if all(one.who != who for one in mine) or not all(log.whole(one.who, log.born_ns) for one in mine):
            continue
        done = log.current_of("committed", partition, reads)
        former = {offset: slot for slot, offset in by_slot(done)}
        if not any(read_before(one, log, log.topic.lives.ended_ns) for one in mine):
            continue
        now = [one for one in mine if log.is_now(one)]
        for slot, offset in by_slot([claim]):
            kept = former.get(offset) if slot > born else None
            if kept is None or kept > born + 1:
                continue
            begin = read_until(now, range(kept + 1, slot), offset, log.end(partition))
            if begin is not None:
                found = [each for one in now for each in one.claims]
                ts_ns, again = max(start_ns(slot), claim.first.ts_ns), max(one.last[1] for one in now) - offset
                how = {"recreated": log.topic_id}
                yield who, Skip(begin, offset, ts_ns, OLD_OFFSET, how, again, [*found, claim])


def read_until(now: list[Reader], slots: range, offset: int, end: Times) -> int | None:
    """How far a group came in these slots, if it goes on at a later offset since then. What the log did not have yet
    was asked for and rejected.
    """
    asked = [each for one in now for each in one.times if each[0] < slots.stop and each[1] <= greatest(end, each[0])]
    after = [least for one in now for at, least in one.lows if at >= slots.stop]
    if not after or all(at not in slots for at, _ in asked):
        return None
    begin = max(each for _, each in asked)
    return begin if begin < offset <= min(after) else None


def never_read(log: Log, partition: int) -> dict[Who, Skip]:
    """By reader what it left out of the new topic since a recreation."""
    every = [one for one in log.readers(partition) if not is_internal(one.client_id or "")]
    return {**dict(of_former_offset(log, partition, every)), **dict(of_recreation(log, partition, every))}


def by_who(every: Iterable[Reader]) -> dict[Who, list[Reader]]:
    found: dict[Who, list[Reader]] = {}
    for one in every:
        found.setdefault(one.who, []).append(one)
    return found


def read_before(one: Reader, log: Log, ended_ns: int) -> bool:
    """Whether a reader read the former topic: by its ID, or by name before it was deleted."""
    return one.first[0] < (ended_ns if one.topic_id in {None, ZERO} else log.born_ns) and not log.is_now(one)


def read_the_former(who: Who, mine: Iterable[Reader], log: Log) -> bool:
    """Whether a client read a partition of the topic before; where a broker was not captured, any of that topic."""
    ended_ns = log.topic.lives.ended_ns if log.topic.lives else 0
    return any(read_before(one, log, ended_ns) for one in mine) or (not log.brokers and who in log.former)


class Begin(NamedTuple):
    """Where a client begins a partition of the topic as it is now."""

    offset: int
    """The lowest that it asks for, by ID or by name."""
    ts_ns: int
    readers: list[Reader]
    by_id: bool


def begins_at(log: Log, mine: list[Reader]) -> Begin | None:
    """None for a client that was seen to ask for nothing, or by name only so soon that it may have asked for the former
    topic, or for a partition that no client was served of the new one, which may have fewer. In the slot of the birth,
    what the former topic is asked for by name is not lower than before, so that the least is never too high; of what
    the new one is known not to have had yet the greatest counts. Where its birth was seen late, as at one broker, it
    was asked for since the former one ended: in that slot by who fell back.
    """
    born, every_end = log.born_ns // SLOT_NS, log.end(mine[0].claims[0]["partition"])
    ended = min(born, log.topic.lives.ended_ns // SLOT_NS) if log.topic.lives else born
    end = [(slot, offset) for slot, offset in every_end if slot == born]
    current = [one for one in mine if log.is_now(one) and one.lowest is not None]
    named = [one for one in mine if one.topic_id in {None, ZERO}]
    every = [each for one in named for each in one.times]
    asked, before = greatest([each for each in every if each[0] == born]), greatest(every, ended - 1)
    since = [(slot, asked if slot == born and end and offset > greatest(end) else offset)
             for one in named for slot, offset in one.lows
             if slot > ended or slot == born or (slot == ended and offset < before)]  # fmt: skip
    after = [slot for slot, _ in since if slot > born]
    unsure = any(one.first[0] // SLOT_NS == born for one in named if read_before(one, log, log.born_ns))
    if not every_end or (not current and (unsure or not after)):
        return None
    lowest = min([offset for _, offset in since] + [one.lowest for one in current if one.lowest is not None])
    ts_ns = min([one.first[0] for one in current] or [start_ns(after[0])])
    return Begin(lowest, ts_ns, [*current, *(named if since else [])], bool(current))


def least_asked(log: Log, every: Iterable[Reader]) -> dict[tuple[str, str | None], int]:
    """The lowest offset that any reader asks for, of each group and each application: what one of them reads the others
    need not.
    """
    found: dict[tuple[str, str | None], int] = {}
    by_reader = by_who(every)
    for who, begun in begins(log, every).items():
        for place in (place for one in by_reader[who] for place in shared_by(one, log)):
            found[place] = min(begun.offset, found.get(place, begun.offset))
    return found


def begins(log: Log, every: Iterable[Reader]) -> dict[Who, "Begin"]:
    """Where each reader begins, as far as that is known."""
    found = ((who, begins_at(log, mine)) for who, mine in by_who(every).items())
    return {who: begun for who, begun in found if begun is not None}


def shared_by(one: Reader, log: Log) -> list[tuple[str, str | None]]:
    """The application, by its client ID, and the groups that a reader is of."""
    members = members_of(*one.who, log.group, log.context)
    return [("client", one.client_id), *{("group", claim["group"]): None for claim in members}]


def asks_where_to_begin(sought: Claim, who: Who, offset: int, born_ns: int) -> bool:
    """Whether an answer about the topic as it is now gave a reader the offset at which it begins as the log's end, or
    as that of a time.
    """
    same = (sought["client_id"], sought["host"]) == who
    at_ns, found = sought.peak["last"]
    return same and sought["timestamp"] >= END and found == offset and at_ns >= born_ns


def looks_at_last_records(partition: int, who: Who, mine: list[Reader], begun: Begin, log: Log) -> bool:
    """Whether a client of no group asked for the end of the new log, and begins some records before it: not where it
    was in the former one, at which a reader may go on whatever it asks for.
    """
    born, names = log.born_ns // SLOT_NS, {None, ZERO}
    former = {greatest(one.times, born if one.topic_id in names else None) for one in mine if not log.is_now(one)}
    asked = ((one, each) for one in begun.readers for each in one.lows)
    since = [offset for one, (slot, offset) in asked if slot > born or one.topic_id not in names]
    of_group = any(place[0] == "group" for one in mine for place in shared_by(one, log))
    if not since or min(since) in former or of_group:
        return False
    until_ns = begun.ts_ns + SLOT_NS * (not begun.by_id)
    sought = log.at("sought", partition)
    ends = by_second(one for one in sought if (one["client_id"], one["host"], one["timestamp"]) == (*who, END))
    return any(log.born_ns <= at * SECOND_NS <= until_ns and end >= min(since) for at, end in ends.items())


def is_set(partition: int, mine: list[Reader], begun: Begin, log: Log) -> bool:
    """Whether the offset at which a reader begins was committed for its group before, since the topic is there: by a
    tool that sets it, or that translates it from another cluster.
    """
    born, begin = log.born_ns // SLOT_NS, begun.ts_ns // SLOT_NS
    groups = {place for one in mine for place in shared_by(one, log)}
    done = by_slot(one for one in log.current("committed", partition) if ("group", one["group"]) in groups)
    return any(born <= slot < begin and offset == begun.offset for slot, offset in done)


def is_chosen(partition: int, begun: Begin, log: Log) -> bool:
    """Whether the new log was longer already when a reader began: its application names the offset, as by a seek, if
    that is not from the former topic either. Who goes on by itself does so there, or at an end.
    """
    return begun.offset < greatest(log.end(partition), begun.ts_ns // SLOT_NS - 1)


def former_commit(partition: int, mine: list[Reader], log: Log) -> int:
    """The last offset that a reader's groups committed in the former topic, before the slot in which it was created
    again.
    """
    groups = {place for one in mine for place in shared_by(one, log)}
    done = by_slot(one for one in log.current("committed", partition) if ("group", one["group"]) in groups)
    return greatest(done, log.born_ns // SLOT_NS - 1)


def may_be_kept(partition: int, mine: list[Reader], begun: Begin, log: Log) -> bool:
    """Whether no commit that was not captured explains where a reader begins: where it was in the former topic, between
    its last commit, or what it asked for in its last seconds, as it may have committed, and the end of that one; or any
    offset, if it goes on at once. A tool sets offsets of groups without members alone.
    """
    born, ended_ns = log.born_ns // SLOT_NS, log.topic.lives.ended_ns if log.topic.lives else 0
    before = [one for one in mine if read_before(one, log, ended_ns)]
    asked = [each for one in before for each in one.lows if each[0] <= born]
    serves = [claim for claim in log.at("serves", partition) if claim["topic_id"] != log.topic_id]
    ends = [offset for slot, offset in by_slot(serves) if slot <= born]
    last = max((slot for slot, _ in asked), default=0)
    least = min((offset for slot, offset in asked if slot >= last - 1), default=0)
    least = max(least, former_commit(partition, mine, log))
    at_once = begun.ts_ns // SLOT_NS <= last + 1
    return at_once or least <= begun.offset <= max(ends, default=begun.offset)


def of_range(log: Log, partition: int, every: list[Reader]) -> Iterator[tuple[Who, Skip]]:
    """Readers whose offset the log no longer has, and that go on at a later one: of each second the last time. Who asks
    for 0 asks for the beginning, wherever that is.
    """
    missed = log.current("out_of_range", partition)
    sought = log.current("sought", partition) if missed else []
    for (client_id, host), claims in gathered(missed, "client_id host"):
        who = client_id, host
        answers = by_second(one for one in sought if (one["client_id"], one["host"]) == who)
        highest, gone = max((one.last[1] for one in every if one.who == who), default=0), by_second(claims)
        for second, offset in sorted(gone.items()):
            until = min((later for later in gone if later > second), default=second + RESET_S + 1)
            end = max((answers[at] for at in answers if second <= at < min(until, second + RESET_S + 1)), default=0)
            mine = [one for one in every if one.who == who]
            if 0 < offset < end <= highest and not goes_on(mine, second, range(offset, end), log):
                ts_ns = max(second * SECOND_NS, claims[0].first.ts_ns)
                yield who, Skip(offset, end, ts_ns, DELETED, {"retention": "deleted"}, 0, claims)


def of_fall(log: Log, partition: int, every: list[Reader]) -> Iterator[tuple[Who, Skip]]:
    """Readers that were ahead of a log that fell back, and go on where they were: what was written there since is new.
    Who asks for the end of each epoch goes back to where the log was cut (KIP-320), as does any member of its group.
    Who is started again at the end, as it is configured, has not waited.
    """
    subject = "id", log.topic_id or ""
    served = of_id(log.at("serves", partition), subject[1]) if log.topic_id and every else []
    fall = fall_of(served, subject, log.topic.name, log.group, log.context) if served else None
    if fall is None:
        return
    since, cut, by_reader = fall.low.slot, fall.low.offset, by_who(every)
    asked = {who: [each for one in mine for each in one.lows] for who, mine in by_reader.items()}
    least = {who: min((offset for slot, offset in each if slot >= since), default=NEVER) for who, each in asked.items()}
    shared: dict[tuple[str, str | None], int] = {}
    for who, mine in by_reader.items():
        for place in {place for one in mine for place in shared_by(one, log)}:
            shared[place] = min(least[who], shared.get(place, NEVER))
    for who, mine in by_reader.items():
        ahead = any(slot < since and offset > cut for slot, offset in asked[who])
        reads_on = any(slot > since for slot, _ in asked[who])
        if not ahead or not reads_on or not log.whole(who, start_ns(fall.high.slot)):
            continue
        if begins_where_asked(partition, who, asked[who], since, log):
            continue
        if min(shared[place] for one in mine for place in shared_by(one, log)) > cut:
            claims = [claim for one in mine for claim in one.claims]
            again = max(one.last[1] for one in mine) - least[who]
            yield who, Skip(cut, least[who], start_ns(since), FELL, {}, again, claims)


def begins_where_asked(partition: int, who: Who, asked: Times, since: int, log: Log) -> bool:
    """Whether a reader asked for the end, or for a time, since a slot, begins there, and was not rejected before."""
    missed = [one for one in log.at("out_of_range", partition) if (one["client_id"], one["host"]) == who]
    if any(second * SECOND_NS >= start_ns(since) for second in by_second(missed)):
        return False
    sought = [one for one in log.at("sought", partition) if one.peak["last"][0] >= start_ns(since)]
    for one in sought:
        slot = one.peak["last"][0] // SLOT_NS
        begins = min((offset for at, offset in asked if at >= slot), default=NEVER)
        if asks_where_to_begin(one, who, begins, start_ns(since)):
            return True
    return False


def goes_on(mine: list[Reader], second: int, gone: range, log: Log) -> bool:
    """Whether a reader was granted what it had missed after all: a log that was created again, or fell back, has grown
    until there. In the slot of the rejection it may have been granted that before, unless it came no further.
    """
    slot = second * SECOND_NS // SLOT_NS
    grew = bool(log.born_ns) or greatest([each for one in mine for each in one.times if each[0] == slot]) < gone.stop
    every = (each for one in mine for each in one.lows)
    return any((at > slot or (at == slot and grew)) and least in gone for at, least in every)


def by_second(claims: Iterable[Claim]) -> dict[int, int]:
    """The greatest offset of each second."""
    found: dict[int, int] = {}
    for claim in claims:
        for name, offset in claim.peak.items():
            if name.startswith(AT):
                second = at_second(name)
                found[second] = max(offset, found.get(second, offset))
    return found


# --- what came to the only leader of a partition


def known_from_its_leader(partition: int, who: Who, every: Mapping[Who, Begin], log: Log) -> bool:
    """Whether a reader was seen to begin where it begins, by what came to the only leader of the partition alone.

    The leader epoch is 0 until another broker leads: until then this broker gets every fetch of a consumer, as a nearer
    replica (KIP-392) is asked only where the leader says so, which gives no record then. Which group a reader is of may
    be unknown there: one that went before it may have read for it. `every`: where each reader begins.
    """
    begun, born_ns = every[who], log.born_ns
    begun_ns = begun.ts_ns + SLOT_NS * (not begun.by_id)
    endpoints = first_leader(partition, begun_ns, log)
    asked = [claim for one in begun.readers for claim in one.claims]
    return (
        bool(endpoints)
        and all(claim["endpoint"] in endpoints for claim in asked if claim["topic_id"] == log.topic_id)
        and any((slot_of(name) or 0) > born_ns // SLOT_NS for claim in asked for name in claim.tally)
        and not any(goes_before(every[other], begun) for other in every if other != who)
        and (
            seen_whole(*who, endpoints, log.group, log.context, since_ns=born_ns)
            or (
                seen_between(who, endpoints, (born_ns, begun_ns), log.group, log.context)
                and not is_set_back(partition, who, begun, log)
            )
        )
    )


def first_leader(partition: int, until_ns: int, log: Log) -> set[str]:
    """The endpoints of the broker that has led a partition from its creation to a time; none where another one may
    have, or where one of its listeners was not captured.
    """
    every = log.topic.histories[-1].partitions if log.topic.histories else []
    stated = [claim for claim in every if claim["partition"] == partition and claim["leader_epoch"] >= 0]
    leaders = {claim["leader"] for claim in stated if claim["leader"] >= 0}
    last_ns = max((claim.last.ts_ns for claim in stated), default=0)
    if len(leaders) != 1 or any(claim["leader_epoch"] for claim in stated) or last_ns < until_ns:
        return set()
    listed = {place for place in known_addresses(None, log.group, log.context) if place[0] in leaders}
    found = [endpoints_of(address, broker, log.group, log.context) for broker, address in listed]
    return set().union(*found) if all(found) else set()


def goes_before(other: Begin, begun: Begin) -> bool:
    """Whether a reader that begins sooner asks for nothing while another one reads: as the one before it in its group,
    which may fetch a moment longer, and may get the partition back.
    """
    since = begun.ts_ns // SLOT_NS
    both = slots_of(other) & slots_of(begun)
    both -= {since, since + (max(one.last[0] for one in other.readers) <= begun.ts_ns + SLOT_NS)}
    return other.offset < begun.offset and not any(slot >= since and slot + 1 in both for slot in both)


def slots_of(begun: Begin) -> set[int]:
    """In which a client asked for a partition."""
    return {slot for one in begun.readers for slot, _ in one.times}


def is_set_back(partition: int, who: Who, begun: Begin, log: Log) -> bool:
    """Whether a client was given a lower offset later on, by its group or by a time that it asked for: what it asked
    for then may be among what was not captured.
    """
    since = begun.ts_ns // SLOT_NS
    return any(
        (claim["client_id"], claim["host"]) == who and (slot_of(name) or 0) > since and offset < begun.offset
        for kind in ("restored", "sought")
        for claim in log.current(kind, partition)
        for name, offset in claim.peak.items()
        if name.startswith(AT)
    )


# --- offsets that are gone


class Restart(NamedTuple):
    """Where a group begins that has lost its offset."""

    who: Who
    reads: str
    before: int
    """The last offset that it committed."""
    offset: int
    """The first that a member asks for."""
    lost_ns: int
    read: int
    """How far its members may have read before."""
    claims: list[Claim]


def restarts(log: Log, partition: int, every: list[Reader]) -> Iterator[Restart]:
    for claim in log.current("offset_gone", partition):
        done = log.current_of("committed", partition, claim["group"])
        lost_ns = claim.last.ts_ns
        before = [offset for slot, offset in log.since_born(done) if end_ns(slot) < lost_ns]
        if not before:
            continue
        members = {
            (one["client_id"], one["host"]) for one in of_group("member", claim["group"], log.group, log.context)
        }
        began = [(offset, one.who, one.claims) for one in every if one.who in members
                 for offset in first_after(one, partition, lost_ns, log)]  # fmt: skip
        if began and all(log.whole(who, lost_ns) for _, who, _ in began):
            offset, who, found = min(began, key=lambda one: one[0])
            read = max(had_read(one, lost_ns) for one in every if one.who in members)
            yield Restart(who, claim["group"], before[-1], offset, lost_ns, read, [*found, claim])


def had_read(one: Reader, lost_ns: int) -> int:
    """How far a reader may have come before its group lost its offset. In the slot of the loss that is not known of one
    that reads on: as far as it ever came in a slot.
    """
    if one.last[0] < lost_ns:
        return greatest(one.times)
    before = [(slot, offset) for slot, offset in one.times if slot < lost_ns // SLOT_NS]
    if not before or before[-1][0] + 1 < lost_ns // SLOT_NS:
        return greatest(before)
    return greatest(before) + max((late - soon for (_, soon), (_, late) in pairwise(before)), default=0)


def of_lost_offset(log: Log, partition: int, every: list[Reader]) -> Iterator[tuple[Who, Skip]]:
    """Members of a group whose committed offset is gone, and that begin behind it."""
    for one in restarts(log, partition, every):
        begin = max(one.before, one.read)
        if one.offset > begin:
            why = f"the committed offset of group {one.reads} was gone"
            how = {"expired": "gone", "group": one.reads, "offset": begin}
            again = max((each.last[1] for each in every if each.who == one.who), default=one.offset) - one.offset
            yield one.who, Skip(begin, one.offset, one.lost_ns, why, how, again, one.claims)


def first_after(one: Reader, partition: int, ts_ns: int, log: Log) -> Iterator[int]:
    """Where a reader begins once its group has no offset: where an answer says, or its first fetch of all."""
    first_ns, offset = one.first
    if first_ns >= ts_ns:
        yield offset
    for claim in log.current("sought", partition):
        at_ns, end = claim.peak["last"]
        if (claim["client_id"], claim["host"]) == one.who and 0 <= at_ns - ts_ns <= ANSWERED_NS and one.last[1] >= end:
            yield end


def records_read_again(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """One per group: its committed offset is gone, and it begins before it."""
    log = log_of(subject, group, context)
    found: dict[tuple[Who, str], dict[int, Restart]] = {}
    for partition in sorted(log.of("offset_gone")):
        for one in restarts(log, partition, log.readers(partition)):
            if one.offset < one.before and not is_internal(one.who[0] or ""):
                found.setdefault((one.who, one.reads), {})[partition] = one
    for ((client_id, host), reads), by_partition in sorted(found.items(), key=str):
        again = [*by_partition.values()]
        first = min(again, key=lambda one: one.lost_ns)
        words = {
            "group": reads,
            "records": Number(sum(one.before - one.offset for one in again)),
            "where": span_of({number: range(one.offset, one.before) for number, one in by_partition.items()}),
            "since": clock(first.lost_ns),
        }
        yield resting_on(
            list({claim.identity: claim for one in again for claim in one.claims}.values()),
            *(reads, log.topic.name, client_id, host),
            topic=log.topic.name,
            client_ids=(client_id,),
            first_ns=first.lost_ns,
            words=words,
        )


# --- members that vanished


ABSENT_S = 75
"""A member is gone after session.timeout.ms, by default 45 s; who was killed is back within half a minute."""


def members_vanished(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """One per group: its last members fell silent, left no word, and no other came while records wait."""
    log = log_of(subject, group, context)
    found: dict[str, int] = {}
    silent: dict[str, tuple[list[Claim], int]] = {}
    for partition in sorted(log.of("committed")):
        for (reads,), done in gathered(log.current("committed", partition), "group"):
            if reads not in silent:
                silent[reads] = last_alive(reads, log)
            end, (last, since_ns) = log.end(partition), silent[reads]
            commits = log.since_born(done) if last and end else []
            if not commits:
                continue
            since = since_ns // SLOT_NS
            if commits[-1][0] <= since + 1 and greatest(end) > max(commits[-1][1], greatest(end, since + 1)):
                found[reads] = found.get(reads, 0) + greatest(end) - commits[-1][1]
    for reads, records in sorted(found.items()):
        last, since_ns = silent[reads]
        clients = tuple(sorted({one["client_id"] or "" for one in last}))
        words = {"group": reads, "since": clock(since_ns), "records": Number(records)}
        words["client"] = and_list([one or "a client without an ID" for one in clients])
        about = {"topic": log.topic.name, "client_ids": clients, "count": records}
        yield resting_on(last, reads, log.topic.name, **about, first_ns=since_ns, last_ns=since_ns, words=words)


def last_leave(reads: str, context: CheckContext, group: Group) -> Claim | None:
    """How the last member of a group left it; None while a member may live."""
    members = of_group("member", reads, group, context)
    if not members:
        return None
    left = [
        claim
        for subject in {("client", one["client_id"] or "", one["host"]) for one in members}
        for claim in context.claims("left", group, *subject)
        if claim["group"] == reads
    ]
    last = max(left, key=lambda claim: claim.last, default=None)
    if last is None:
        return None
    lives = [one for one in members if max(one.last.ts_ns, one.peak.get("alive", 0)) > last.last.ts_ns]
    return None if lives else last


def expired(left: Claim) -> bool:
    """Whether who left a group did so the last time because its application did not poll in time: it lives on."""
    return bool(left.peak.get("expired") == left.last.ts_ns)


def asks_on(member: Claim, since_ns: int, log: Log) -> bool:
    """Whether its client sent anything after that, a heartbeat that is answered by REBALANCE_IN_PROGRESS among it."""
    return asked_last_ns(member, log) > since_ns


def asked_last_ns(member: Claim, log: Log) -> int:
    client = "client", member["client_id"] or "", member["host"]
    every = log.context.claims("activity", log.group, *client)
    return max((run.last_ns for one in every for run in one.outcomes.runs()), default=0)


def alive_ns(member: Claim) -> int:
    return int(max(member.last.ts_ns, member.peak.get("alive", 0)))


def last_alive(reads: str, log: Log) -> tuple[list[Claim], int]:
    """The members of a group that were seen last, and when, if none was for so long, and none of them left; each of
    which all that it sent since then was captured. What a member asks for until then may be rejected: it ends, too,
    while its coordinator moves.
    """
    context, none = log.context, (list[Claim](), 0)
    members = of_group("member", reads, log.group, context)
    if not members or not log.brokers or last_leave(reads, context, log.group) is not None:
        return none
    alive = max(map(alive_ns, members))
    last = [one for one in members if alive - alive_ns(one) <= SLOT_NS]
    until_ns = max(alive, *(asked_last_ns(one, log) for one in last))
    if not context.passed(until_ns + ABSENT_S * SECOND_NS):
        return none
    known = all(log.whole((one["client_id"], one["host"]), until_ns) for one in last)
    return (last, until_ns) if known and not any(is_internal(one["client_id"] or "") for one in last) else none


# --- waits for other members


class Wait(NamedTuple):
    from_ns: int
    to_ns: int
    is_open: bool


def waits_for_members(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """One per client and group: how long its JoinGroup is open."""
    for (reads,), claims in gathered(context.claims("join_wait", group, *subject), "group"):
        wait = wait_of(claims, group, context)
        if wait.to_ns - wait.from_ns < context.settings.stuck_s * SECOND_NS:
            continue
        members = of_group("member", reads, group, context)
        limit_ms = max((one.peak.get("rebalance_timeout_ms", -1) for one in members), default=-1)
        others = not_joined(reads, members, wait, group, context)
        has = "has" if len(others) == 1 else "have"
        words: dict[str, Any] = {
            "group": reads,
            "seconds": Number((wait.to_ns - wait.from_ns) // SECOND_NS),
            "since": clock(wait.from_ns),
            "for": f", for {', '.join(others)}, which {has} not joined again" if others else "",
            **({"slow": ", ".join(others)} if others else {}),
            "until": "" if wait.is_open else f", until {clock(wait.to_ns)}",
        }
        if 0 < limit_ms * 1_000_000 <= wait.to_ns - wait.from_ns:
            words["hurt_host"] = subject[2]
        elif not is_replaced(wait, claims, members):
            words[DOUBTED] = "yes"
        yield resting_on(
            claims,
            *subject[1:],
            reads,
            client_ids=(claims[0]["client_id"],),
            brokers=brokers_of(claims, context),
            first_ns=wait.from_ns,
            last_ns=wait.to_ns,
            words=words,
        )


REPLACED_S = 45
"""session.timeout.ms: a member that was killed, and is started again, waits so long for the one that it was."""


def is_replaced(wait: Wait, claims: list[Claim], members: list[Claim]) -> bool:
    """Whether it waited no longer than for a member that was killed, and once, or in a roll."""
    if wait.is_open or wait.to_ns - wait.from_ns > REPLACED_S * SECOND_NS:
        return False
    waits, since_ns = sum(claim.count for claim in claims), min(claim.first.ts_ns for claim in claims)
    who = claims[0]["client_id"], claims[0]["host"]
    return waits == 1 or is_roll(members, since_ns, waits, who)


WAITS_EACH = 2
"""A member that begins again lets its group be divided once it is there, and often once more."""


def is_roll(members: list[Claim], since_ns: int, waits: int, who: Who) -> bool:
    """Whether each member begins again once at most, and others wait for nothing else: all wait for each that does not
    leave its group as it ends (Kafka Streams). Who has another client ID or host then takes the place of one that was
    there.
    """
    there, begun, fresh = Counter[Who](), Counter[Who](), Counter[Who]()
    soon_ns, listed = REPLACED_S * SECOND_NS, 0
    for one in members:
        mine, first_ns = (one["client_id"], one["host"]), one.first.ts_ns
        there[mine] += first_ns <= since_ns <= alive_ns(one) + soon_ns
        begun[mine] += first_ns > since_ns
        fresh[mine] += first_ns > since_ns + soon_ns
        listed = max(listed, one.peak.get("members", (0, 0))[1])
    places = max(there.total(), listed)
    in_places = not places or sum(count for mine, count in fresh.items() if not there[mine]) <= places
    each_once = all(count <= max(there[mine], 1) for mine, count in begun.items())
    return each_once and in_places and waits <= WAITS_EACH * begun.total() * max(there[who], 1)


def wait_of(claims: list[Claim], group: Group, context: CheckContext) -> Wait:
    """The longest; of a request that is open, as long as its server answered others."""
    longest_ns, from_ns = max(one.peak["wait"] for one in claims)
    context.watch()
    for claim in claims:
        open_ns = claim.peak["open"]
        answered = context.claims("answered", group, "link", claim["endpoint"])
        last_ns = max((run.last_ns for one in answered for run in one.outcomes.runs()), default=0)
        if open_ns and last_ns - open_ns > longest_ns:
            return Wait(open_ns, last_ns, True)
    return Wait(from_ns, from_ns + longest_ns, False)


def not_joined(reads: str, members: list[Claim], wait: Wait, group: Group, context: CheckContext) -> list[str]:
    """The clients of members that were seen until shortly before, and do not wait themselves."""
    waiting = {(one["client_id"], one["host"]) for one in of_group("join_wait", reads, group, context)}
    lived = (one for one in members if one.last.ts_ns > wait.from_ns - context.settings.broker_grace_ns)
    return sorted({one["client_id"] or "" for one in lived if (one["client_id"], one["host"]) not in waiting})


# --- accepts nothing


def share_group_accepts_nothing(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """One per client, share group and topic: all that it acquires it gives back."""
    claims = context.claims("acknowledged", group, *subject)
    for claim, streak in lasting(claims, {RELEASE}, None, context):
        topic_id = claim["topic_id"]
        words = {
            "group": claim["group"] or "",
            "records": Number(claim.tally.get("released", 0)),
            "deliveries": Number(claim.peak.get("deliveries", 0)),
            "since": clock(streak.first_ns),
            "hurt_host": subject[2],
        }
        yield resting_on(
            [claim],
            *(*subject[1:], claim["group"], topic_id),
            topic=name_of(("id", topic_id), group, context) if topic_id else None,
            topic_ids=(topic_id,) if topic_id else (),
            client_ids=(claim["client_id"],),
            brokers=brokers_of([claim], context),
            count=streak.count,
            first_ns=streak.first_ns,
            last_ns=streak.last_ns,
            words=words,
        )
