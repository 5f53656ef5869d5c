"""Answers over time: when errors lasted, from counters by 10 s.

Knows: tallies named `slot:error` and what a stretch of errors without a success is. Does not know which errors matter.
Rule: a slot in which a success was seen ends a stretch; a stretch is called as long as it surely was, not as it may
have been.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache

from wirecheck.judge.claims.claim import SLOT_NS

SLOT_S = SLOT_NS // 1_000_000_000


@dataclass(frozen=True)
class Run:
    """Errors from one slot to another with no success between."""

    count: int
    first: int
    last: int
    errors: tuple[int, ...]

    @property
    def seconds(self) -> int:
        """How long it lasted at least."""
        return max(0, self.last - self.first - 1) * SLOT_S


def by_slot(tally: Mapping[str, int]) -> dict[int, dict[int, int]]:
    """Slot to error to count."""
    found: dict[int, dict[int, int]] = {}
    for name, count in tally.items():
        slot, colon, error = name.partition(":")
        if colon and slot.isdigit():
            found.setdefault(int(slot), {})[int(error)] = count
    return found


def runs(tally: Mapping[str, int], bad: Collection[int]) -> list[Run]:
    """All stretches of these errors, oldest first."""
    found: list[Run] = []
    open_run: Run | None = None
    for slot, errors in sorted(by_slot(tally).items()):
        count = sum(number for error, number in errors.items() if error in bad)
        if 0 in errors:
            if open_run is not None:
                found.append(open_run)
            open_run = None
        elif count:
            seen = tuple(error for error in errors if error in bad)
            if open_run is None:
                open_run = Run(count, slot, slot, seen)
            else:
                both = tuple(sorted({*open_run.errors, *seen}))
                open_run = Run(open_run.count + count, open_run.first, slot, both)
    return [*found, open_run] if open_run is not None else found


@cache
def words(errors: tuple[int, ...]) -> frozenset[str]:
    return frozenset(map(str, errors))


def longest(tally: Mapping[str, int], bad: Collection[int], *, answers: int, seconds: int) -> Run | None:
    """The longest stretch of at least so many answers over at least so long."""
    if not any(name.rpartition(":")[2] in words(tuple(bad)) for name in tally):
        return None
    good = [run for run in runs(tally, bad) if run.count >= answers and run.seconds >= seconds]
    return max(good, key=lambda run: (run.seconds, run.count), default=None)


def slots(tally: Mapping[str, int]) -> list[int]:
    """Slots of tallies that are named by slot alone."""
    return sorted(int(name) for name in tally if name.isdigit())


def start_ns(slot: int) -> int:
    return slot * SLOT_NS


def end_ns(slot: int) -> int:
    return (slot + 1) * SLOT_NS
