"""What came of requests over time: how many answers of each outcome, on a grid of 10 s, with the exact times of the
first and the last of them.

Rule: merging is commutative and associative, also at the bounds: what is dropped or put together once is so whenever it
comes. What follows from answers over time (streaks, who is stuck) is `streaks.py`.
"""

from collections import Counter
from collections.abc import Collection
from typing import Any, final

SLOT_NS = 10_000_000_000
"""A slot of the grid."""
MOST_SLOTS = 720
"""Two hours of slots are kept: the longest window of a check is one."""
MOST_PARTS = 16
"""Of one client's connections, or a topic's partitions, so many are kept apart per slot; the others count as one."""
SUCCESS = 0
WAITED = 1 << 16
"""Answers to requests that had waited, from when the first of them was sent. No error code of Kafka is so large."""
TURNED_AWAY = (1 << 16) + 1
"""Connections that the server refused."""
GIVEN_UP = (1 << 16) + 2
"""Requests that the client gave up, from when the first of them was sent to the last close."""
CLOSED = (1 << 16) + 3
"""Requests on which the server closed the connection."""
UNASKED = (1 << 16) + 4
"""Requests that ask for no response (acks=0)."""
STEP = (1 << 16) + 5
"""Answers before the last round of a login."""
OPEN, UNSEEN, UNREADABLE = (1 << 16) + 6, (1 << 16) + 7, (1 << 16) + 8
"""Requests with an unknown outcome: open for longer than they may be, when the connection or the capture ended; with a
response that was not captured; with one that was not decoded.
"""
LATE = (1 << 16) + 9
"""Requests that were granted late, from when the first of them was sent to the last response."""
IN_FLIGHT = (1 << 16) + 10
"""Requests that were open when the connection or the capture ended, for no longer than they may be."""
HARMLESS = frozenset({SUCCESS, UNASKED, STEP, OPEN, UNSEEN, UNREADABLE, LATE, IN_FLIGHT})
"""What rejects nothing."""
STATUS = 1 << 17
"""Is added to the code of a status that says no in an answer without an error code."""
Part = int | str
"""By what answers are kept apart: the client's port, a partition's index, or a client's address."""
OTHERS = 1 << 32
"""The part of those that are not kept apart: no port and no partition has this number."""
FLAT = 6
"""Numbers of a stored run."""


@final
class Run:
    """So many answers, from the first to the last of them."""

    __slots__ = ("count", "first_ns", "last_ns")

    def __init__(self, count: int, first_ns: int, last_ns: int) -> None:
        self.count, self.first_ns, self.last_ns = count, first_ns, last_ns

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Run):
            return NotImplemented
        return (self.count, self.first_ns, self.last_ns) == (other.count, other.first_ns, other.last_ns)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Run({self.count}, {self.first_ns}, {self.last_ns})"


Parts = dict[Part, Run]
Slots = dict[int, Parts]


@final
class Outcomes:
    """Runs by outcome (an error code, SUCCESS, WAITED, TURNED_AWAY), slot and part."""

    __slots__ = ("_slots",)

    def __init__(self) -> None:
        self._slots: dict[int, Slots] = {}

    def __bool__(self) -> bool:
        return bool(self._slots)

    def __contains__(self, outcome: int) -> bool:
        return outcome in self._slots

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Outcomes) and self._slots == other._slots

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Outcomes{self._slots}"

    def codes(self) -> set[int]:
        return {*self._slots}

    def of(self, outcome: int) -> Slots:
        """By slot and part; not to be changed."""
        return self._slots.get(outcome, {})

    def errors(self) -> list[int]:
        """All but success, in order."""
        return sorted(self._slots.keys() - {SUCCESS})

    def runs(self, outcomes: Collection[int] | None = None, part: Part | None = None) -> list[Run]:
        """Those of some outcomes, or of all; of one part, or of all."""
        found: list[Run] = []
        for outcome, slots in self._slots.items():
            if outcomes is None or outcome in outcomes:
                for parts in slots.values():
                    if part is None:
                        found += parts.values()
                    elif part in parts:
                        found.append(parts[part])
        return found

    def counts(self) -> Counter[int]:
        """How many answers of each outcome."""
        found = Counter[int]()
        for outcome, slots in self._slots.items():
            count = 0
            for parts in slots.values():
                for run in parts.values():
                    count += run.count
            found[outcome] = count
        return found

    def parts(self, outcomes: Collection[int]) -> set[Part]:
        found: set[Part] = set()
        for outcome in outcomes:
            for parts in self.of(outcome).values():
                found.update(parts)
        return found

    def add(self, outcome: int, slot: int, part: Part, run: Run) -> None:
        """Add answers; a run that is added may be changed later. Without a look at the bounds."""
        slots = self._slots.get(outcome)
        if slots is None:
            slots = self._slots[outcome] = {}
        parts = slots.get(slot)
        if parts is None:
            slots[slot] = {part: run}
        else:
            add_to(parts, part, run)

    def add_run(self, outcome: int, run: Run) -> None:
        """Add answers of no part by themselves: a copy of the run, as one of OTHERS."""
        self.add(outcome, run.first_ns // SLOT_NS, OTHERS, Run(run.count, run.first_ns, run.last_ns))

    def merge(self, other: "Outcomes") -> bool:
        """Add all of another; whether that is news, which an outcome is that was not there before. The oldest slots,
        and parts, that are too many go.
        """
        news, grown = False, False
        for outcome, slots in other._slots.items():  # noqa: SLF001
            kept = self._slots.get(outcome)
            if kept is None:
                news, kept = True, {}
                self._slots[outcome] = kept
            for slot, parts in slots.items():
                found = kept.get(slot)
                if found is None:
                    grown, found = True, {}
                    kept[slot] = found
                for part, run in parts.items():
                    if part in found:
                        add_to(found, part, run)
                    else:
                        found[part] = Run(run.count, run.first_ns, run.last_ns)
                if len(found) > MOST_PARTS:
                    kept[slot] = few_parts(found)
        if grown and sum([len(slots) for slots in self._slots.values()]) > MOST_SLOTS:
            every: set[int] = set()
            for slots in self._slots.values():
                every.update(slots)
            self.drop_before(sorted(every)[-MOST_SLOTS:][0])
        return news

    def copy(self) -> "Outcomes":
        copied = Outcomes()
        copied.merge(self)
        return copied

    def drop_before(self, oldest: int) -> bool:
        """Drop the slots before one; whether there were any."""
        found = False
        for outcome, slots in [*self._slots.items()]:
            if min(slots) < oldest:
                found = True
                left = {slot: parts for slot, parts in slots.items() if slot >= oldest}
                if left:
                    self._slots[outcome] = left
                else:
                    del self._slots[outcome]
        return found

    def move(self, outcome: int, slot: int, to: int) -> None:
        """Count the answers of one slot with those of another."""
        slots = self._slots[outcome]
        parts = slots[to]
        for part, run in slots.pop(slot).items():
            add_to(parts, part, run)
        if len(parts) > MOST_PARTS:
            slots[to] = few_parts(parts)

    def split(self, at_ns: int, *, early: bool) -> "Outcomes":
        """The answers before a time, or those after it. Of those that came both before and after, the first and the
        last are known, one by one.
        """
        found = Outcomes()
        for outcome, slots in self._slots.items():
            for slot, parts in slots.items():
                for part, run in parts.items():
                    seen_ns = run.first_ns if early else run.last_ns
                    if (seen_ns < at_ns) is early:
                        both = run.first_ns < at_ns <= run.last_ns
                        mine = Run(1, seen_ns, seen_ns) if both else Run(run.count, run.first_ns, run.last_ns)
                        found.add(outcome, slot, part, mine)
        return found

    def flat(self) -> list[Part]:
        """As it is stored: of each run outcome, slot, part, count, the first after the slot began, the last after the
        first, in ns.
        """
        found: list[Part] = []
        for outcome, slots in self._slots.items():
            for slot, parts in slots.items():
                for part, run in parts.items():
                    after_ns = run.first_ns - slot * SLOT_NS
                    found += (outcome, slot, part, run.count, after_ns, run.last_ns - run.first_ns)
        return found


def from_flat(stored: list[Any]) -> Outcomes:
    found = Outcomes()
    for at in range(0, len(stored), FLAT):
        outcome, slot, part, count, after_ns, for_ns = stored[at : at + FLAT]
        first_ns = slot * SLOT_NS + after_ns
        found.add(outcome, slot, part, Run(count, first_ns, first_ns + for_ns))
    return found


def holds(stored: list[Part], outcome: int) -> bool:
    """Whether what is stored has answers of this outcome."""
    return outcome in stored[::FLAT]


def single(outcome: int, slot: int, part: Part, run: Run) -> Outcomes:
    """Those of one run."""
    found = Outcomes()
    found.add(outcome, slot, part, run)
    return found


def add_to(parts: Parts, part: Part, run: Run) -> None:
    known = parts.get(part)
    if known is None:
        parts[part] = run
    else:
        known.count += run.count
        known.first_ns = min(known.first_ns, run.first_ns)
        known.last_ns = max(known.last_ns, run.last_ns)


def few_parts(found: Parts) -> Parts:
    """The least parts as they are, the others as one: a part that is not kept once is never kept."""
    kept = {*sorted(found.keys() - {OTHERS})[:MOST_PARTS], OTHERS}
    less: Parts = {}
    for part, run in found.items():
        add_to(less, part if part in kept else OTHERS, run)
    return less
