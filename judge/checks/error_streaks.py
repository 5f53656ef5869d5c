"""Answers over time: when errors lasted, from counters by 10 s.

Knows: tallies named `slot:error` and what a stretch of errors without a success is. Does not know which errors matter.
Rule: a slot in which a success was seen ends a stretch; a stretch is called as long as it surely was, not as it may
have been.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from wirecheck.judge.claims.claim import SLOT_NS

SLOT_S = SLOT_NS // 1_000_000_000


@dataclass(frozen=True)
class Streak:
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


def streaks(tally: Mapping[str, int], bad: Collection[int]) -> list[Streak]:
    """All stretches of these errors, oldest first."""
    found: list[Streak] = []
    open_streak: Streak | None = None
    for slot, errors in sorted(by_slot(tally).items()):
        count = sum(number for error, number in errors.items() if error in bad)
        if 0 in errors:
            if open_streak is not None:
                found.append(open_streak)
            open_streak = None
        elif count:
            seen = tuple(error for error in errors if error in bad)
            if open_streak is None:
                open_streak = Streak(count, slot, slot, seen)
            else:
                both = tuple(sorted({*open_streak.errors, *seen}))
                open_streak = Streak(open_streak.count + count, open_streak.first, slot, both)
    return [*found, open_streak] if open_streak is not None else found


def among(tally: Mapping[str, int], errors: Collection[int]) -> bool:
    """Whether any of these was ever answered. Nearly always none was, and of good answers there are two hours."""
    said = ",".join(tally) + ","
    return any(f":{error}," in said for error in errors)


def longest(tally: Mapping[str, int], bad: Collection[int], *, answers: int, seconds: int) -> Streak | None:
    """The longest stretch of at least so many answers over at least so long."""
    if not among(tally, bad):
        return None
    good = [streak for streak in streaks(tally, bad) if streak.count >= answers and streak.seconds >= seconds]
    return max(good, key=lambda streak: (streak.seconds, streak.count), default=None)


def slots(tally: Mapping[str, int]) -> list[int]:
    """Slots of tallies that are named by slot alone."""
    return sorted(int(name) for name in tally if name.isdigit())


def start_ns(slot: int) -> int:
    return slot * SLOT_NS


def end_ns(slot: int) -> int:
    return (slot + 1) * SLOT_NS
