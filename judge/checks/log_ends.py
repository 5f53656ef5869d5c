"""CTL: the end of a partition's log, which never moves back, and what was acknowledged below it.

Rule: an end is what leaders answer to requests that were sent long after: answers overtake each other, followers lag.
In a later leader epoch none is overtaken: there it is enough that the log grows, again, below what was acknowledged.
Retention, compaction and DeleteRecords move the start of a log. What names the topic alone counts only while the name
had this one ID.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import NamedTuple

from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.shapes import about, by_id_and_name, end_ns, gathered, start_ns
from wirecheck.judge.claims.claim import ALONE, AT, RESERVED, ZERO, Claim, Subject, slot_of
from wirecheck.judge.claims.outcomes import SLOT_NS
from wirecheck.judge.results.finding import Evidence, Side, last_of
from wirecheck.judge.thresholds import SECOND_NS
from wirecheck.judge.topic_history import name_of
from wirecheck.judge.topology.clusters import Group

NEVER = 1 << 63
GROWS_SLOTS = 2
"""A log that grows again below what was acknowledged does so for longer than writes are sent twice after an election.
"""
APART = 5
"""Slots: an answer comes within one after its request, so that 30 s lie between an answer and a request so much later.
"""


@dataclass(frozen=True, eq=False)
class End:
    """How far a log reached in one slot, at least, as the leader stated."""

    slot: int
    offset: int
    alone: bool
    """Whether the leader granted it without the other replicas."""
    claim: Claim


@dataclass(frozen=True)
class Fall:
    """Everything that was stated from `low` to `last` is below `high`, which was stated before."""

    high: End
    low: End
    last: End

    @property
    def slots(self) -> int:
        return self.last.slot - self.low.slot

    @property
    def seconds(self) -> int:
        return self.slots * SLOT_NS // SECOND_NS


def acknowledged_records_lost(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    topic_id = subject[1]
    if topic_id in RESERVED:
        return
    name, states = name_of(subject, group, context), context.by("partition", "partition", group, *subject)
    every = by_id_and_name("serves", subject, name, group, context)
    for (partition,), claims in gathered(of_id(every, topic_id), "partition"):
        if not may_fall(claims):
            continue
        fall, kind = fall_of(claims, subject, name, group, context), None
        if fall is None:
            fall, kind = fall_of(claims, subject, name, group, context, alone=True), "information"
        if fall is None:
            continue
        mine = states.get((partition,), [])
        leader = context.clusters.broker(fall.low.claim["endpoint"], start_ns(fall.low.slot))
        words = {
            "partition": partition,
            "high": fall.high.offset,
            "low": fall.low.offset,
            "since": about(start_ns(fall.low.slot)),
            "how": "" if kind is None else " with acks=1",
        }
        yield Evidence(
            (topic_id, partition),
            sides_of(fall, mine, leader),
            topic=name,
            topic_ids=(topic_id,),
            client_ids=writers(subject, start_ns(fall.low.slot), group, context),
            brokers=(leader,),
            kind=kind,
            first_ns=max(start_ns(fall.low.slot), fall.low.claim.first.ts_ns),
            last_ns=end_ns(fall.last.slot),
            words=words,
        )


def of_id(served: Iterable[Claim], topic_id: str) -> list[Claim]:
    """What is stated about a topic by its name, or by this ID."""
    return [one for one in served if one["topic_id"] in {None, ZERO, topic_id}]


def fall_of(
    served: list[Claim], subject: Subject, name: str | None, group: Group, context: CheckContext, *, alone: bool = False
) -> Fall | None:
    """The deepest fall of one partition, of which servers state this; `alone`: below what the leader alone had."""
    if not may_fall(served):
        return None
    states = context.by("partition", "partition", group, *subject).get((served[0]["partition"],), [])
    every = by_id_and_name("serves", subject, name, group, context)
    alive = Alive.of(subject, name, of_id(every, subject[1]), group, context)
    return worst(served, states, alive, context, alone=alone)


def sides_of(fall: Fall, states: Iterable[Claim], leader: int | None) -> tuple[Side, ...]:
    """The claims have their first and last sighting only, so these tell who stated the ends and until when."""
    high, low = fall.high.claim, fall.low.claim
    named = [one for one in states if one["leader"] == leader]
    before = Side(
        high.first, f"{high['endpoint']}: the log of partition {high['partition']} reached {fall.high.offset}"
    )
    after = Side(low.last, f"{low['endpoint']}: the log of partition {low['partition']} ended at {fall.low.offset}")
    return (before, after, *map(last_of, sorted(named, key=lambda one: one["leader_epoch"])[-1:]))


def writers(subject: Subject, until_ns: int, group: Group, context: CheckContext) -> tuple[str | None, ...]:
    """The clients that wrote to the topic by its ID before that."""
    uses = (one for one in context.claims("use", group, *subject) if one["api"] == "Produce")
    return tuple(sorted({one["client_id"] for one in uses if one.first.ts_ns < until_ns}, key=str))


@dataclass(frozen=True)
class Alive:
    """From when to when a topic ID was stated, and its name with it alone."""

    since_ns: int
    until_ns: int

    @classmethod
    def of(
        cls, subject: Subject, name: str | None, served: Iterable[Claim], group: Group, context: CheckContext
    ) -> "Alive":
        stated = [*context.claims("binding", group, *subject), *context.claims("partition", group, *subject)]
        stated += [one for one in served if one["topic_id"] == subject[1]]
        since_ns = min((one.first.ts_ns for one in stated), default=NEVER)
        until_ns = max((one.last_word.ts_ns for one in stated), default=0)
        bound = context.claims("binding", group, "name", name) if name is not None else []
        others = [one for one in bound if one["topic_id"] not in {None, ZERO, subject[1]}]
        if any(one.first.ts_ns <= until_ns and one.last_word.ts_ns >= since_ns for one in others):
            return cls(NEVER, 0)
        return cls(since_ns, until_ns)

    def has(self, claim: Claim, slot: int) -> bool:
        """Whether what was stated in a slot is about this ID."""
        if claim["topic_id"] not in {None, ZERO}:
            return True
        return self.since_ns <= start_ns(slot) and min(end_ns(slot), claim.last.ts_ns) <= self.until_ns


def may_fall(claims: Iterable[Claim]) -> bool:
    """Whether an end is below one that was stated in an earlier slot, by the same server or another: of a healthy
    partition that is read from its leader none is, and nothing else has to be looked up.
    """
    highest: dict[int, int] = {}
    lowest: dict[int, int] = {}
    for claim in claims:
        for name, offset in claim.peak.items():
            if name.startswith(AT) and (slot := slot_of(name)) is not None:
                highest[slot] = max(offset, highest.get(slot, offset))
                lowest[slot] = min(offset, lowest.get(slot, offset))
    before, slots = 0, sorted(highest)
    waiting = iter(slots)
    early = next(waiting, None)
    for slot in slots:
        while early is not None and early < slot:
            before, early = max(before, highest[early]), next(waiting, None)
        if lowest[slot] < before:
            return True
    return False


def worst(claims: list[Claim], states: list[Claim], alive: Alive, context: CheckContext, *, alone: bool) -> Fall | None:
    """The deepest fall of a partition's end below what was committed, or below what the leader alone had granted."""
    every = [end for claim in claims for end in ends_of(claim) if alive.has(claim, end.slot)]
    granted = [end for end in every if alone or not end.alone]
    slots = {slot for end in every for slot in (end.slot - 1, end.slot)}
    over_time = led_over_time(states)
    led = {slot: over_time[bisect_left(over_time, end_ns(slot), key=itemgetter(0)) - 1][1] for slot in slots}
    at = context.clusters.broker
    brokers = {end: at(end.claim["endpoint"], start_ns(end.slot)) for end in every}
    highs = [end for end in granted if brokers[end] in {led[slot].leader for slot in (end.slot - 1, end.slot)}]
    highs += [end for end in granted if led[end.slot].leader is None]
    lows = [end for end in every if led[end.slot].leader == brokers[end] is not None]
    later = -(-context.settings.clocks_s * SECOND_NS // SLOT_NS)
    found = [fall for fall in falls(highs, lows, APART + later) if fall.seconds >= context.settings.broker_grace_s]
    found += [
        fall
        for fall in falls(highs, lows, 1 + later)
        if fall.slots >= GROWS_SLOTS + later
        and fall.last.offset > fall.low.offset
        and led[fall.low.slot].epoch > led[fall.high.slot].epoch >= 0
    ]
    return max(found, key=lambda fall: (fall.high.offset - fall.low.offset, -fall.low.slot), default=None)


def ends_of(claim: Claim) -> Iterator[End]:
    for name, offset in claim.peak.items():
        if name.startswith(AT) and (slot := slot_of(name)) is not None:
            yield End(slot, offset, name.endswith(ALONE), claim)


class Unconfirmed(NamedTuple):
    """A partition of which a leader alone has records: no reader gets them."""

    offset: int
    """Where the committed part of its log ends, as far as any server states."""
    slots: list[int]
    """Those in which the leader states that, since it granted the first record behind it."""


def unconfirmed(served: Iterable[Claim], born_ns: int, least_s: int) -> Unconfirmed | None:
    """Whether one server grants records with acks=1 and states again and again, for so long, that the committed part
    of the log ends before them: too few replicas are in sync. After an election another server speaks.
    """
    every = [(claim["endpoint"], end) for claim in served for end in ends_of(claim) if end.slot > born_ns // SLOT_NS]
    if not any(end.alone for _, end in every):
        return None
    offset = max((end.offset for _, end in every if not end.alone), default=0)
    for leader in sorted({endpoint for endpoint, end in every if end.alone and end.offset > offset}):
        ahead = {end.slot for endpoint, end in every if endpoint == leader and end.alone and end.offset > offset}
        slots = sorted({end.slot for endpoint, end in every if endpoint == leader and not end.alone})
        slots = [slot for slot in slots if slot > min(ahead)]
        lasts_s = (slots[-1] - slots[0]) * SLOT_NS // SECOND_NS if slots else 0
        if offset and lasts_s >= least_s and len(ahead) >= GROWS_SLOTS:
            return Unconfirmed(offset, slots)
    return None


class Led(NamedTuple):
    """By whom a partition was led, as was stated until then; None and -1 where nothing was."""

    leader: int | None
    epoch: int


def led_over_time(states: Iterable[Claim]) -> list[tuple[int, Led]]:
    """Since when by whom, in the highest epoch that was stated until then; at first by none that is known."""
    found, newest = [(-1, Led(None, -1))], None
    for one in sorted(states, key=lambda one: one.first):
        now = one["leader_epoch"], one.first
        if newest is None or now > newest:
            newest = now
            found.append((one.first.ts_ns, Led(int(one["leader"]), int(one["leader_epoch"]))))
    return found


def falls(highs: Iterable[End], ends: Iterable[End], apart: int) -> Iterator[Fall]:
    """Where all ends of a slot are below what was stated so many slots before, and from there to where they are not."""
    greatest, reached = by_slot(highs), by_slot(ends)
    before: End | None = None
    fall: Fall | None = None
    waiting = sorted(greatest, reverse=True)
    for slot in sorted(reached):
        while waiting and waiting[-1] <= slot - apart:
            one = greatest[waiting.pop()]
            before = one if before is None or one.offset > before.offset else before
        now = reached[slot]
        if fall is not None and now.offset < fall.high.offset:
            fall = replace(fall, last=now)
            continue
        if fall is not None:
            yield fall
        fall = Fall(before, now, now) if before is not None and now.offset < before.offset else None
    if fall is not None:
        yield fall


def by_slot(ends: Iterable[End]) -> dict[int, End]:
    """The greatest of each slot."""
    found: dict[int, End] = {}
    for end in ends:
        if end.slot not in found or found[end.slot].offset < end.offset:
            found[end.slot] = end
    return found
