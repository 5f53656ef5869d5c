"""Answers over time: when errors lasted, by the times of the first and the last of them.

Knows: answers by error code, slot of time and connection, and what a streak of errors without a success is. Does not
know which errors matter.
Rule: a success ends a streak. Where a slot has both errors and successes, an error counts for a streak only if it
surely came before the first success or after the last. Connections of one client are looked at together and each by
itself: what one of them is granted does not hide that another is refused.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.claims.claim import OTHERS, SLOT_NS, SUCCESS, Claim, Runs
from wirecheck.judge.thresholds import SECOND_NS


@dataclass(frozen=True)
class Streak:
    """Errors from one time to another with no success between."""

    count: int
    first_ns: int
    last_ns: int
    errors: tuple[int, ...] = ()
    ended: bool = False
    """Whether a success came after it."""

    @property
    def seconds(self) -> float:
        return (self.last_ns - self.first_ns) / SECOND_NS

    def joined(self, later: "Streak") -> "Streak":
        errors = tuple(sorted({*self.errors, *later.errors}))
        first_ns, last_ns = min(self.first_ns, later.first_ns), max(self.last_ns, later.last_ns)
        return Streak(self.count + later.count, first_ns, last_ns, errors)


def stuck(claim: Claim, bad: Collection[int], context: CheckContext) -> Streak | None:
    """The longest streak that makes its client stuck: some errors over a long time, or very many on one connection
    that still go on.
    """
    if claim.runs.keys().isdisjoint(map(str, bad)):
        return None
    settings = context.settings
    ports = sorted({port for error in bad for found in claim.runs.get(str(error), {}).values() for port in found})
    one_by_one = [streak for port in ports for streak in streaks(claim.runs, bad, port)]
    every = [*streaks(claim.runs, bad), *one_by_one]
    long = [one for one in every if one.count >= settings.stuck_answers and one.seconds >= settings.stuck_s]
    fast = [
        one
        for one in one_by_one
        if not one.ended
        and one.count >= settings.stuck_fast_answers
        and one.seconds >= settings.stuck_fast_s
        and not context.passed(one.last_ns + settings.stuck_pause_s * SECOND_NS)
    ]
    return max([*long, *fast], key=lambda streak: (streak.seconds, streak.count), default=None)


def streaks(runs: Runs, bad: Collection[int], port: str | None = None) -> list[Streak]:
    """All streaks of these errors, oldest first; of one connection, or of all together."""
    found: list[Streak] = []
    open_streak: Streak | None = None
    errors, good = of_errors(runs, bad, port), of_successes(runs, port)
    for slot in sorted(errors.keys() | good.keys()):
        success = good.get(slot)
        before, after = sides(errors.get(slot, []), success)
        for one in before:
            open_streak = open_streak.joined(one) if open_streak else one
        if success is not None:
            found += [replace(open_streak, ended=True)] if open_streak else []
            open_streak = None
        for one in after:
            open_streak = open_streak.joined(one) if open_streak else one
    return [*found, open_streak] if open_streak else found


def of_errors(runs: Runs, bad: Collection[int], port: str | None) -> dict[str, list[Streak]]:
    """By slot the errors that count, in the order of their first."""
    found: dict[str, list[Streak]] = {}
    for error in bad:
        for slot, ports in runs.get(str(error), {}).items():
            for name, (count, first_ns, last_ns) in ports.items():
                if port is None or name == port:
                    found.setdefault(slot, []).append(Streak(count, first_ns, last_ns, (error,)))
    return {slot: sorted(ones, key=lambda one: (one.first_ns, one.last_ns)) for slot, ones in found.items()}


def of_successes(runs: Runs, port: str | None) -> dict[str, Streak]:
    """By slot the successes that may be the connection's: those of its port, and of ports that are not kept apart."""
    found: dict[str, Streak] = {}
    for slot, ports in runs.get(SUCCESS, {}).items():
        for name, (count, first_ns, last_ns) in ports.items():
            if port in {None, OTHERS} or name in {port, OTHERS}:
                one = Streak(count, first_ns, last_ns)
                found[slot] = found[slot].joined(one) if slot in found else one
    return found


def sides(errors: Iterable[Streak], success: Streak | None) -> tuple[list[Streak], list[Streak]]:
    """What of a slot's errors surely came before its first success, and what after its last."""
    before: list[Streak] = []
    after: list[Streak] = []
    for one in errors:
        if success is None or one.last_ns < success.first_ns:
            before.append(one)
        elif one.first_ns > success.last_ns:
            after.append(one)
        else:
            before += [Streak(1, one.first_ns, one.first_ns, one.errors)] if one.first_ns < success.first_ns else []
            after += [Streak(1, one.last_ns, one.last_ns, one.errors)] if one.last_ns > success.last_ns else []
    return before, after


def goes_on(claim: Claim, since_ns: int, for_ns: int) -> bool:
    """Whether something was stated again and again for so long after a time. A peer that was paused answers what waited
    by what it knew before, for a moment, however late: that is no word that lasts.
    """
    after = [start_ns(slot) for slot in slots(claim.tally) if start_ns(slot) >= since_ns]
    return bool(after) and claim.last.ts_ns >= max(min(after), since_ns) + for_ns


def by_slot(tally: Mapping[str, int]) -> dict[int, dict[int, int]]:
    """Of counters named `slot:number`: slot to number to count."""
    found: dict[int, dict[int, int]] = {}
    for name, count in tally.items():
        slot, colon, number = name.partition(":")
        if colon and slot.isdigit():
            found.setdefault(int(slot), {})[int(number)] = count
    return found


def slots(tally: Mapping[str, int]) -> list[int]:
    """Slots of tallies that are named by slot alone."""
    return sorted(int(name) for name in tally if name.isdigit())


def start_ns(slot: int) -> int:
    return slot * SLOT_NS


def end_ns(slot: int) -> int:
    return (slot + 1) * SLOT_NS
