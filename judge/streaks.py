"""What lasts: streaks of errors in answers over time, who is stuck, who is refused in part, and how long something was
missing.

Rules: a success ends a streak of errors. Where a slot of time has both, an error counts for a streak only if it
certainly came before the first success or after the last. The connections of one client are looked at together and one
by one: a success on one of them does not hide errors on another.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce

from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.claims.claim import Claim
from wirecheck.judge.claims.outcomes import CLOSED, GIVEN_UP, OTHERS, SLOT_NS, SUCCESS, WAITED, Outcomes, Part, Run
from wirecheck.judge.thresholds import SECOND_NS, Settings

PAUSE_NS = 5 * SECOND_NS
"""A client that is refused at one broker without a pause this long was refused there all the time."""
WINDOW = 3
"""Slots of 10 s."""
ASKS_AGAIN_NS = 10 * SECOND_NS
"""A client that is refused asks again within this time, at whatever broker."""
PACES = 3
"""Who asks seldom is refused all the time too, if it is refused again within so many of its own pauses."""
OF_A_RESTART = frozenset({3, 5, 6, 7, 8, 9, 13, 14, 15, 16, 19, 20, 41, 51, 56, 74, 75, 100, CLOSED, GIVEN_UP})
"""Outcomes that the restart or the move of a broker explains, which took up to 38 s in captures."""
SENT_ELSEWHERE = frozenset({5, 6, 14, 15, 16, 74, 75})
"""Another broker leads the partition or coordinates the group by now, or soon."""
RETRY_NS = 30 * SECOND_NS
"""Clients that gave up connect again within 20 s, whatever library they use (reconnect.backoff.max.ms)."""
WRITING = frozenset({"writes", "transactions"})
LOSING = frozenset({*WRITING, "reads", "commits"})
"""What a client loses if it is rejected; the rest is asked again, or is a question about what may be denied."""
LOSES_NOTHING = frozenset({46, 59})
"""DUPLICATE_SEQUENCE_NUMBER: the log has the records. UNKNOWN_PRODUCER_ID: it has none of the producer's any more;
libraries begin a new sequence and send them again (KIP-360).
"""
IN_A_RHYTHM = 4
"""So many losses, each after a success, are no accident."""
COMES_BACK = 5
"""Who is sent to another broker so often, with a long pause before each time, is not served there either."""


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

    def is_long(self, settings: Settings) -> bool:
        """Whether it has so many errors over so long a time that its client is stuck."""
        return self.count >= settings.stuck_answers and self.seconds >= settings.stuck_s

    def joined(self, later: "Streak") -> "Streak":
        errors = tuple(sorted({*self.errors, *later.errors}))
        first_ns, last_ns = min(self.first_ns, later.first_ns), max(self.last_ns, later.last_ns)
        return Streak(self.count + later.count, first_ns, last_ns, errors)


def longest_of(found: Iterable[Streak]) -> Streak | None:
    """Of those that took as long, the one with the most errors."""
    return max(found, key=lambda streak: (streak.seconds, streak.count), default=None)


def stuck(outcomes: Outcomes, bad: Collection[int], context: CheckContext) -> Streak | None:
    """The longest streak that makes its client stuck: some errors over a long time, or very many on one connection
    that still go on.
    """
    if not any(error in outcomes for error in bad):
        return None
    settings = context.settings
    ports = sorted(outcomes.parts(bad), key=str)
    one_by_one = [streak for port in ports for streak in streaks(outcomes, bad, port)]
    long = [one for one in (*streaks(outcomes, bad), *one_by_one) if one.is_long(settings)]
    fast = [
        one
        for one in one_by_one
        if not one.ended
        and one.count >= settings.stuck_fast_answers
        and one.seconds >= settings.stuck_fast_s
        and not context.passed(one.last_ns + settings.stuck_pause_s * SECOND_NS)
    ]
    return longest_of([*long, *fast])


def refused_in_part(outcomes: Outcomes, bad: Collection[int], settings: Settings, step: str = "") -> Streak | None:
    """The longest time in which errors were a good part of a client's answers, whatever succeeded between: at least one
    in `partly_one_in` in each window of three slots, so often and so long as a streak that makes it stuck.
    `step`: in LOSING each error loses work, so that who seldom asks is judged by its own pace; in WRITING it is not
    read again, or part of what is committed next.
    """
    pause_ns = longest_pause_ns(outcomes, bad) if step in LOSING else ASKS_AGAIN_NS
    slots = max(WINDOW, 2 * pause_ns // SLOT_NS if pause_ns > ASKS_AGAIN_NS else 0)
    errors = of_errors(outcomes, bad, None)
    parts = [list[Streak]()]
    for number, failed, granted in windows(errors, of_successes(outcomes, None), slots):
        if failed * settings.partly_one_in < failed + granted:
            parts += [[]] if parts[-1] else []
            continue
        for one in errors.get(number, ()):
            if parts[-1] and not goes_on(parts[-1][-1], one, pause_ns):  # perhaps it was served meanwhile
                parts.append([])
            parts[-1].append(one)
    every = (reduce(Streak.joined, part) for part in parts if part)
    last_ns = max((run.last_ns for run in outcomes.runs({SUCCESS})), default=0)
    long = (one for one in every if one.is_long(settings) or is_loss(one, outcomes, step, settings))
    return longest_of(replace(one, ended=one.last_ns < last_ns) for one in long)


def refused_partition(
    refused: Outcomes,
    requests: Outcomes,
    settings: Settings,
    step: str,
    *,
    served_ns: Callable[[int], int],
    is_harmless: Callable[[Streak, Outcomes], bool],
) -> Streak | None:
    """The longest time in which a good part of a client's requests was rejected for one of its partitions, whatever the
    same responses grant for others. `refused`: errors by partition; `requests`: those of the same API and server, any
    of which may have asked for the partition, and was granted it if the server served it to anyone since (`served_ns`).
    `is_harmless`: of such a time, and what came of the partition.
    """
    if SUCCESS not in requests:
        return None  # all of them are rejected
    found = list[Streak]()
    asked: dict[int, list[Run]] = {}
    for outcome in requests.codes():
        for slot, parts in requests.of(outcome).items():
            asked.setdefault(slot, []).extend(parts.values())
    last_ns = max((run.last_ns for runs in asked.values() for run in runs), default=0)
    for part in partitions(refused, refused.errors()):
        of_part, failed = Outcomes(), Counter[int]()
        for error in refused.errors():
            for slot, parts in refused.of(error).items():
                if part in parts:
                    of_part.add(error, slot, OTHERS, parts[part])
                    failed[slot] += parts[part].count
        if failed.total() < settings.stuck_answers:
            continue
        served_until_ns = served_ns(part)
        for slot, runs in asked.items():
            first_ns, until_ns = min(run.first_ns for run in runs), max(run.last_ns for run in runs)
            granted = sum(run.count for run in runs) - failed[slot]
            if granted > 0 and first_ns <= served_until_ns:
                of_part.add(SUCCESS, slot, OTHERS, Run(granted, first_ns, until_ns))
        streak = refused_in_part(of_part, of_part.errors(), settings, step)
        if streak is not None and not is_harmless(streak, of_part):
            found.append(replace(streak, ended=streak.last_ns + ASKS_AGAIN_NS < last_ns))
    return longest_of(found)


def windows(errors: dict[int, list[Streak]], good: dict[int, Streak], slots: int) -> Iterator[tuple[int, int, int]]:
    """From the first error to the last each slot where the window of so many slots up to it changes, with the errors
    and the successes in it. A day has 8,640 slots, however few of them have an answer.
    """
    failed_by, granted_by = Counter[int](), Counter[int]()
    counts = ((failed_by, slot, sum(one.count for one in every)) for slot, every in errors.items())
    for by, slot, count in [*counts, *((granted_by, slot, one.count) for slot, one in good.items())]:
        by[slot] += count
        by[slot + slots] -= count
    first, last = min(errors, default=0), max(errors, default=-1)
    failed = granted = 0
    for number in sorted({*failed_by, *granted_by}):
        failed += failed_by[number]
        granted += granted_by[number]
        if first <= number <= last:
            yield number, failed, granted


def is_loss(one: Streak, outcomes: Outcomes, step: str, settings: Settings) -> bool:
    """Fewer errors than make a client stuck, over twice the time, and no restart explains them: so many, or half of all
    that a client writes.
    """
    if step not in LOSING or one.seconds < 2 * settings.stuck_s or not OF_A_RESTART.isdisjoint(one.errors):
        return False
    return one.count >= settings.stalled_requests or (step in WRITING and loses_half(one, outcomes))


def loses_half(one: Streak, outcomes: Outcomes) -> bool:
    """Whether a client that seldom writes loses at least half, in a rhythm: more often than three times."""
    times = [each for each in streaks(outcomes, one.errors) if one.first_ns <= each.first_ns <= one.last_ns]
    granted = [run for run in outcomes.runs({SUCCESS}) if one.first_ns <= run.last_ns and run.first_ns <= one.last_ns]
    often = len(times) >= IN_A_RHYTHM and LOSES_NOTHING.isdisjoint(one.errors)
    return often and sum(run.count for run in granted) <= one.count


def longest_pause_ns(outcomes: Outcomes, bad: Collection[int]) -> int:
    """Between two errors of the same trouble, by how often the client asked meanwhile."""
    errors = outcomes.runs(bad)
    first_ns = min((run.first_ns for run in errors), default=0)
    last_ns = max((run.last_ns for run in errors), default=0)
    within = (run for run in outcomes.runs({SUCCESS, *bad}) if run.last_ns >= first_ns and run.first_ns <= last_ns)
    return max(ASKS_AGAIN_NS, PACES * (last_ns - first_ns) // max(1, sum(run.count for run in within) - 1))


def goes_on(earlier: Streak, later: Streak, pause_ns: int) -> bool:
    """Several restarts one after the other are several times of trouble, however seldom a client asks."""
    restart = OF_A_RESTART.issuperset(earlier.errors) or OF_A_RESTART.issuperset(later.errors)
    return later.first_ns <= earlier.last_ns + (ASKS_AGAIN_NS if restart else pause_ns)


def now_and_then(outcomes: Outcomes, bad: Collection[int], settings: Settings) -> Streak | None:
    """The longest time in which errors hurt a client that is not stuck: as a good part of its answers, or one of them
    once in a while, when nothing was ever granted.
    """
    longest = longest_of(streaks(outcomes, bad))
    if longest is not None and is_never(longest, outcomes, settings):
        return longest
    return refused_in_part(outcomes, bad, settings)


def is_never(longest: Streak, outcomes: Outcomes, settings: Settings) -> bool:
    """Whether a client was never granted anything, and asked so often, over so long a time, that it is hurt."""
    often = longest.count >= settings.never_answers and longest.seconds >= settings.never_s
    return often and SUCCESS not in outcomes


def streaks(outcomes: Outcomes, bad: Collection[int], port: Part | None = None) -> list[Streak]:
    """All streaks of these errors, oldest first; of one connection, or of all together."""
    found: list[Streak] = []
    open_streak: Streak | None = None
    errors, good = of_errors(outcomes, bad, port), of_successes(outcomes, port)
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


def of_errors(outcomes: Outcomes, bad: Collection[int], port: Part | None) -> dict[int, list[Streak]]:
    """By slot the errors that count, in the order of their first."""
    found: dict[int, list[Streak]] = {}
    for error in bad:
        for slot, parts in outcomes.of(error).items():
            for name, run in parts.items():
                if port is None or name == port:
                    found.setdefault(slot, []).append(Streak(run.count, run.first_ns, run.last_ns, (error,)))
    return {slot: sorted(ones, key=lambda one: (one.first_ns, one.last_ns)) for slot, ones in found.items()}


def of_successes(outcomes: Outcomes, port: Part | None) -> dict[int, Streak]:
    """By slot the successes that may be the connection's: those of its port, and of ports that are not kept apart."""
    found: dict[int, Streak] = {}
    for slot, parts in outcomes.of(SUCCESS).items():
        for name, run in parts.items():
            if port in {None, OTHERS} or name in {port, OTHERS}:
                one = Streak(run.count, run.first_ns, run.last_ns)
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


def without_pause(runs: Iterable[Run], pause_ns: int = RETRY_NS) -> list[Streak]:
    """Streaks in which a client asked again before a pause, oldest first."""
    found: list[Streak] = []
    for run in in_order(runs):
        one = Streak(run.count, run.first_ns, run.last_ns)
        if found and run.first_ns <= found[-1].last_ns + pause_ns:
            found[-1] = found[-1].joined(one)
        else:
            found.append(one)
    return found


def served_elsewhere(
    outcomes: Outcomes, bad: Collection[int], part: Part | None = None, granted: Collection[Run] | None = None
) -> list[Run]:
    """A success in each long pause that follows an error which sends a client to another broker: it asks again within
    that time as long as it is refused, and is served there. To be asked where a broker was not captured; or of one
    connection, or partition, with what the client is granted by others: a success in each pause with one of these,
    before the next error of any part.
    """
    if SENT_ELSEWHERE.isdisjoint(outcomes.codes() & {*bad}):
        return []
    own = [(run, error) for error in bad for run in outcomes.runs({error}, part)]
    begins = sorted({run.first_ns for error in bad for run in outcomes.runs({error})}) if part is not None else []
    found, last_ns, sent = list[Run](), 0, False
    for run, error in sorted(own, key=lambda one: one[0].first_ns):
        if sent:
            found += after_a_pause(last_ns, run.first_ns, granted)
        if run.last_ns >= last_ns:
            last_ns, sent = run.last_ns, error in SENT_ELSEWHERE
            at = bisect_right(begins, last_ns)
            found += after_a_pause(last_ns, begins[at], granted) if sent and at < len(begins) else []
    each = {run.first_ns: run for run in found}
    return [*each.values()] if len(each) + 1 < COMES_BACK else []


def after_a_pause(last_ns: int, ts_ns: int, granted: Collection[Run] | None) -> list[Run]:
    """A success just before a time, if nothing was refused for long before it, and one of these came meanwhile."""
    if ts_ns <= last_ns + RETRY_NS or not (granted is None or succeeded_during(Streak(0, last_ns, ts_ns), granted)):
        return []
    return [Run(1, ts_ns - 1, ts_ns - 1)]


def with_served(outcomes: Outcomes, part: Part, served: Collection[Run]) -> Outcomes:
    """With these successes of one connection, or partition."""
    found = outcomes.copy() if served else outcomes
    for run in served:
        found.add(SUCCESS, run.first_ns // SLOT_NS, part, run)
    return found


def in_order(runs: Iterable[Run]) -> list[Run]:
    return sorted(runs, key=lambda run: (run.first_ns, run.last_ns))


def waits(claim: Claim) -> list[Streak]:
    """When a client waited without a response, oldest first."""
    return without_pause(claim.outcomes.runs({WAITED}))


def longest_wait(claim: Claim, context: CheckContext) -> Streak | None:
    """The longest of them that hurts its client, which then had to give up."""
    hurts = (one for one in waits(claim) if one.seconds >= context.settings.patience_s)
    return max(hurts, key=lambda one: (one.seconds, -one.first_ns), default=None)


def longest_outage(
    runs: Iterable[Run], named_ns: Collection[int], served: Collection[Run], pause_ns: int = RETRY_NS
) -> Streak | None:
    """The longest time of answers that there is no such thing. It ends where one is named, and where requests about it
    succeed in a long pause between the answers. If requests succeed amid the answers, only some brokers answer so.
    """
    outages: list[list[Run]] = []
    for run in in_order(runs):
        if not outages or came_back(outages[-1][-1], run, named_ns, served):
            outages.append([])
        outages[-1].append(run)
    every = (one for outage in outages for one in without_pause(outage, pause_ns))
    return longest_of(one for one in every if not succeeded_during(one, served))


def came_back(last: Run, run: Run, named_ns: Iterable[int], served: Iterable[Run]) -> bool:
    pause = Streak(0, last.last_ns, run.first_ns)
    named = any(last.first_ns < ts_ns <= run.first_ns for ts_ns in named_ns)
    return named or (run.first_ns - last.last_ns >= PAUSE_NS and succeeded_during(pause, served))


def is_unavailable(one: Streak, settings: Settings) -> bool:
    """Whether a client asked for a partition or a topic for so long that it is an outage."""
    return one.count >= settings.stuck_answers and one.seconds >= settings.unavailable_s


def succeeded_during(streak: Streak, accepted: Iterable[Run]) -> bool:
    """Whether the first or the last success of a run came between the first and the last error."""
    return any(streak.first_ns < ts_ns < streak.last_ns for run in accepted for ts_ns in (run.first_ns, run.last_ns))


def partitions(outcomes: Outcomes, errors: Collection[int]) -> list[int]:
    """Those with these errors, where answers are kept apart by partition; not those that count as one."""
    return sorted(part for part in outcomes.parts(errors) if isinstance(part, int) and part != OTHERS)


def together(claims: Iterable[Claim]) -> Outcomes:
    """Their answers over time."""
    outcomes = Outcomes()
    for claim in claims:
        outcomes.merge(claim.outcomes)
    return outcomes


def with_runs(claim: Claim, runs: Collection[Run]) -> Claim:
    """With these successes, of whatever connection or partition."""
    found = claim.copy() if runs else claim
    for run in runs:
        found.outcomes.add(SUCCESS, run.first_ns // SLOT_NS, OTHERS, run)
    return found


def with_successes(claim: Claim, between: Callable[[int, int], bool]) -> Claim:
    """With a success in each long pause between errors where `between` finds one, of the last error before the pause
    and the first after it.
    """
    errors = in_order(claim.outcomes.runs(claim.outcomes.errors()))
    if not errors:
        return claim
    pauses, last_ns = list[Run](), errors[0].last_ns
    for run in errors[1:]:
        if run.first_ns - last_ns >= PAUSE_NS and between(last_ns, run.first_ns):
            pauses.append(Run(1, run.first_ns - 1, run.first_ns - 1))
        last_ns = max(last_ns, run.last_ns)
    return with_runs(claim, pauses)


def responses(refused: Claim, streak: Streak) -> int:
    """How many responses had the errors of a streak, which counts those of each partition: in each slot those of the
    partition that most of them name.
    """
    count = 0
    for error in streak.errors:
        for of_slot in refused.outcomes.of(error).values():
            within = (
                run for run in of_slot.values() if run.first_ns <= streak.last_ns and run.last_ns >= streak.first_ns
            )
            count += max((run.count for run in within), default=0)
    return min(count, streak.count)
