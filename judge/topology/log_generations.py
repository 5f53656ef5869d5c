"""The generations of one cluster's metadata log: where it started over or went back, and to which generation a record
belongs.

Knows: high watermarks, the beginnings of leader epochs, leaders' responses that a follower has read further than the
log goes, and the offsets at which brokers were registered (their epochs). Does not know topics.
Rule: within a generation nothing is written below an earlier high watermark, an epoch begins once, no server announces
a lower high watermark later, and no leader's log of an epoch ends below what was committed in that epoch or before, or
below what a follower has read of the leader's own. What breaks this begins a new generation. A record belongs to the
generation in which its leader wrote it, whenever it is read, and exists until a generation begins below it.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from wirecheck.judge.claims.claim import AT, Claim, Sighting
from wirecheck.judge.claims.outcomes import SLOT_NS

MS, MARGIN_NS = 1_000_000, 1_000_000_000
ALWAYS = -(1 << 63)


class Announced(NamedTuple):
    """A server's highest high watermark in one slot, with the first time when it was announced in that slot."""

    ts_ns: int
    high_watermark: int
    epoch: int
    """Of the leader; -1 where the version does not carry it."""
    claim: Claim


@dataclass(frozen=True)
class Beginning:
    """What may begin a generation: the first record of a leader epoch, a response that a follower has read too far, a
    lower high watermark than the server announced before, or the registration of a broker.
    """

    written_ns: int
    """When, by the leaders' clocks."""
    seen_ns: int
    """When, by the capture's clock: not later than that."""
    offset: int
    claim: Claim


@dataclass(frozen=True)
class Generation:
    since_ns: int = ALWAYS
    written_ns: int = ALWAYS
    base: int = 0
    """Lower offsets belong to the generation before."""
    began: Claim | None = None
    """What showed it first."""
    committed: int = -1
    """The highest high watermark of the generation before."""
    announced: Claim | None = None
    """The claim that announced it."""
    diverged: tuple[Claim, ...] = ()
    """Responses that made followers truncate committed records."""


FIRST = Generation()


@dataclass(frozen=True)
class LogGenerations:
    """The generations in their order; a log about which nothing is known has one."""

    every: tuple[Generation, ...] = (FIRST,)
    mixed: bool = False
    """Whether these are two logs that both continue. Then it is unknown which of their IDs came first, and neither
    ended the other.
    """
    epochs: tuple[Claim, ...] = field(default=(), repr=False)

    @property
    def current(self) -> int:
        return len(self.every) - 1

    def facts(self) -> tuple[object, ...]:
        begun = ((one.since_ns, one.written_ns, one.base) for one in self.every[1:])
        return ("two logs",) if self.mixed else tuple(begun)

    def at(self, ts_ns: int) -> int:
        """The generation at a capture time."""
        return max(number for number, one in enumerate(self.every) if one.since_ns <= ts_ns or not number)

    def born(self, claim: Claim) -> int:
        """The generation in which a record was written; by the time when it was seen, if it has no time of its own."""
        written_ns = claim.peak.get("written", -1) * MS
        if written_ns <= 0:
            return self.at(claim.first.ts_ns)
        return self.written_at(written_ns)

    def written_at(self, written_ns: int) -> int:
        return max(number for number, one in enumerate(self.every) if one.written_ns <= written_ns or not number)

    def last(self, claim: Claim) -> int:
        """The last generation that has a record."""
        number, offset = self.born(claim), claim.peak["offset"]
        while number < self.current and offset < self.every[number + 1].base:
            number += 1
        return number

    def of(self, claim: Claim) -> int:
        """The generation that a claim is about: a record's own, else the one at the time of the last sighting."""
        return self.last(claim) if "offset" in claim.peak else self.at(claim.last.ts_ns)

    def starts(self, number: int) -> dict[int, int]:
        """The offset at which each leader epoch begins, in one generation."""
        found: dict[int, int] = {}
        for claim in self.epochs:
            if self.written_at(claim["written"] * MS) == number:
                found[claim["epoch"]] = claim["offset"]
        return found


def generations_of(claims: Iterable[Claim]) -> LogGenerations:
    """The generations from what servers show of one log: a pure function, whatever the order of the claims."""
    by_kind: dict[str, list[Claim]] = defaultdict(list)
    for claim in claims:
        by_kind[claim.kind].append(claim)
    orders, diverged = by_kind["log_order"], by_kind["log_diverged"]
    announced = [one for order in orders for one in announcements(order)]
    announced = announced or [one for claim in by_kind["heartbeat"] for one in read(claim)]
    candidates = beginnings(by_kind)
    mixed = any(goes_on(one, announced) for one in candidates)
    found = (FIRST,) if mixed else tuple(generations(candidates, announced, diverged))
    return LogGenerations(found, mixed, tuple(by_kind["log_epoch"]))


def beginnings(by_kind: dict[str, list[Claim]]) -> list[Beginning]:
    """In the order of their times. The clock of the writer that is furthest ahead counts for all."""
    orders = by_kind["log_order"]
    ahead_ns = max((order.peak["clock"] for order in orders if "clock" in order.peak), default=0)
    found = []
    for claim in by_kind["log_epoch"]:
        written_ns = claim["written"] * MS
        seen_ns = min(claim.first.ts_ns, written_ns - ahead_ns) if written_ns > 0 else claim.first.ts_ns
        found.append(Beginning(written_ns, seen_ns, claim["offset"], claim))
    other = [(claim["end_offset"], claim) for claim in by_kind["log_diverged"] if claim["epoch"] >= 0]
    other += [(claim.peak["epoch"], claim) for claim in by_kind["registration"] if claim["error"] == 0]
    other += [(one.high_watermark, one.claim) for order in orders for one in lower(announcements(order))]
    found += [Beginning(c.first.ts_ns + ahead_ns, c.first.ts_ns, offset, c) for offset, c in other]
    return sorted(found, key=lambda one: (one.seen_ns, one.offset, repr(one.claim.key)))


def announcements(order: Claim) -> list[Announced]:
    """What one server announced, in the order of time."""
    found = []
    for name, value in order.peak.items():
        if name.startswith(AT):
            high_watermark, before_ns, epoch, *where = value
            claim = Claim(order.kind, order.key, Sighting(-before_ns, *where))
            found.append(Announced(-before_ns, high_watermark, epoch, claim))
    return sorted(found, key=lambda one: (one.ts_ns, one.high_watermark))


def read(heartbeats: Claim) -> Iterable[Announced]:
    """How far a broker has read, at the end of each slot; used if nothing else of the log was captured."""
    for name, offset in heartbeats.peak.items():
        if name.startswith(AT):
            yield Announced((int(name.removeprefix(AT)) + 1) * SLOT_NS, offset, -1, heartbeats)


def lower(announced: list[Announced]) -> Iterable[Announced]:
    """The slots in which one server's high watermark is lower than in the slot before. A leader's never decreases
    within a generation.
    """
    return (after for before, after in pairwise(announced) if after.high_watermark < before.high_watermark)


def generations(candidates: list[Beginning], announced: list[Announced], diverged: list[Claim]) -> Iterable[Generation]:
    found, begun = [FIRST], dict[int, int]()
    for one in candidates:
        since_ns = found[-1].since_ns
        before = [a for a in announced if since_ns <= a.ts_ns < one.seen_ns - MARGIN_NS and contradicts(a, one.claim)]
        last = max(before, key=lambda a: (a.high_watermark, -a.ts_ns, a.claim.key), default=None)
        committed = last.high_watermark if last else -1
        epoch = one.claim["epoch"] if one.claim.kind == "log_epoch" else None
        again = epoch is not None and one.written_ns - begun.get(epoch, one.written_ns) > MARGIN_NS
        if committed > one.offset or again:
            lost = tuple(taken_back(one, before, diverged))
            order = last.claim if last else None
            first_ns = one.claim.first.ts_ns
            found.append(Generation(first_ns, one.written_ns, one.offset, one.claim, committed, order, lost))
            begun.clear()
        if epoch is not None:
            begun.setdefault(epoch, one.written_ns)
    return found


def contradicts(announced: Announced, claim: Claim) -> bool:
    """Whether a beginning below this high watermark belongs to another generation. The end of an earlier epoch shows
    that only for what was committed in that epoch or before; a lower high watermark only for the same server.
    """
    if claim.kind == "log_diverged":
        ends = int(claim["diverging_epoch"])
        return ends >= claim["epoch"] or 0 <= announced.epoch <= ends
    return claim.kind in {"log_epoch", "registration"} or announced.claim.key == claim.key


def goes_on(one: Beginning, announced: list[Announced]) -> bool:
    """Whether another server announces a higher offset than this beginning both before and after it, as if nothing had
    begun: then there are two logs.
    """
    begin_ns, end_ns = one.seen_ns + MARGIN_NS, one.seen_ns + 2 * SLOT_NS
    reached: dict[str, int] = {}
    others = [other for other in announced if other.claim["endpoint"] != one.claim["endpoint"]]
    for other in others:
        if (
            other.ts_ns < one.seen_ns - MARGIN_NS
            and other.high_watermark > one.offset
            and contradicts(other, one.claim)
        ):
            server = other.claim["endpoint"]
            reached[server] = max(other.high_watermark, reached.get(server, -1))
    later = (other for other in others if begin_ns < other.ts_ns <= end_ns)
    return any(other.high_watermark >= reached.get(other.claim["endpoint"], 1 << 63) for other in later)


SOON_NS = 300 * 1_000_000_000
"""Followers of a log that went back fetch what it lost at once. A broker that stopped is restarted within this time."""


def taken_back(one: Beginning, before: list[Announced], diverged: list[Claim]) -> Iterable[Claim]:
    """Responses at the beginning of a generation that make a follower truncate what the generation before had
    committed; not those about an epoch in which nothing was committed. A log that starts over has epochs without a
    record, too.
    """
    for claim in sorted(diverged, key=lambda claim: claim.first):
        soon = one.seen_ns - MARGIN_NS <= claim.first.ts_ns <= one.seen_ns + SOON_NS
        if soon and claim["diverging_epoch"] >= 0 and any(loses(claim, one, announced) for announced in before):
            yield claim


def loses(claim: Claim, one: Beginning, announced: Announced) -> bool:
    """Whether a leader's response shows that what was announced is gone."""
    unknown = announced.epoch < 0 and claim["end_offset"] == one.offset
    return bool(claim["end_offset"] < announced.high_watermark and (unknown or contradicts(announced, claim)))
