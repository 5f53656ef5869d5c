"""Whether each client gets its work done: the state of each of its activities, which are its APIs.

States, worst first:
- stalled: it asks and is not granted, without a success, for longer than its limit. Also if that is over.
- in part: it works, and at least one in ten of its requests is rejected, closed or given up for so long.
- failing: its last requests were not granted, and they are too few, or too close, to call it stalled.
- elsewhere: its last response sent it to another broker, of those that were not captured, and it asked nothing since.
- not captured: nothing that it asked has a known outcome, but for being sent to another broker before; requests in
  flight as the capture ends are no lack, unless a client ends its connections before each answer for long.
- working: what it asked for was granted, or too little was rejected to say otherwise.

Rule: every API counts. `not_rejections.tsv` has the errors that are part of the protocol: they count if nothing behind
that step succeeds meanwhile. A request whose outcome is unknown is no rejection, and may have been granted. Connections
are looked at together and one by one, so that one that works does not hide another that does not.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import NamedTuple

from wirecheck.judge.claims.claim import Claim
from wirecheck.judge.claims.outcomes import (
    CLOSED,
    GIVEN_UP,
    IN_FLIGHT,
    LATE,
    OPEN,
    OTHERS,
    SLOT_NS,
    STATUS,
    STEP,
    SUCCESS,
    UNASKED,
    UNREADABLE,
    UNSEEN,
    WAITED,
    Outcomes,
    Part,
    Run,
)
from wirecheck.judge.claims.response_outcomes import outcome_name
from wirecheck.judge.not_rejections import EVERY, not_rejection
from wirecheck.judge.split_batches import is_split
from wirecheck.judge.streaks import (
    OF_A_RESTART,
    SENT_ELSEWHERE,
    Streak,
    longest_of,
    refused_in_part,
    served_elsewhere,
    streaks,
    together,
    with_served,
)
from wirecheck.judge.thresholds import SECOND_NS, Settings

STALLED, IN_PART, FAILING = "stalled", "in part", "failing"
ELSEWHERE, NOT_CAPTURED, WORKING = "elsewhere", "not captured", "working"
STEPS: Mapping[str, tuple[str, ...]] = {
    "versions": ("ApiVersions",),
    "login": ("SaslHandshake", "SaslAuthenticate"),
    "metadata": ("Metadata",),
    "coordinator": ("FindCoordinator",),
    "group": (
        "JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup",
        "ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "StreamsGroupHeartbeat",
    ),
    "offsets": ("OffsetFetch", "ListOffsets", "OffsetForLeaderEpoch"),
    "transactions": ("InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn"),
    "reads": ("Fetch", "ShareFetch", "ShareAcknowledge"),
    "writes": ("Produce",),
    "commits": ("OffsetCommit",),
}  # fmt: skip
"""What a client has to be granted, in the order in which it asks."""
BEFORE_WORK = frozenset({
    "ApiVersions", "SaslHandshake", "SaslAuthenticate", "Metadata", "FindCoordinator", "GetTelemetrySubscriptions",
    "PushTelemetry",
})  # fmt: skip
"""What clients do before they ask for anything that is their work."""
ADMINISTRATION = "administration"
STEP_OF = {api: step for step, apis in STEPS.items() for api in apis}
WORK = frozenset(api for step in ("reads", "writes", "commits") for api in STEPS[step])
UNKNOWN = frozenset({OPEN, UNSEEN, UNREADABLE, STEP, IN_FLIGHT})
"""Outcomes that say nothing."""
STATE = attrgetter("state")


@dataclass(frozen=True)
class Activity:
    """One API of one client, at all servers of a cluster together."""

    client_id: str | None
    """None where requests carry none, or an empty one."""
    host: str
    api: str
    claims: Sequence[Claim]
    outcomes: Outcomes
    state: str
    streak: Streak | None
    """What makes the state; None of one that works."""

    @property
    def step(self) -> str:
        return STEP_OF.get(self.api, ADMINISTRATION)

    @property
    def is_hurt(self) -> bool:
        return self.state in {STALLED, IN_PART}

    @property
    def is_work(self) -> bool:
        """Whether the client needs it to write or read; what else is rejected is worth a note."""
        return self.api in STEP_OF

    @property
    def refusals(self) -> list[Claim]:
        """The claims that the state rests on."""
        errors = set(self.streak.errors) if self.streak else set()
        return [claim for claim in self.claims if not errors.isdisjoint(claim.outcomes.codes())]

    @cached_property
    def counts(self) -> Counter[int]:
        """By outcome."""
        return self.outcomes.counts()

    def count(self, *outcomes: int) -> int:
        return sum(self.counts[outcome] for outcome in outcomes)

    @property
    def granted(self) -> int:
        return self.count(SUCCESS, UNASKED, STEP, LATE)

    @property
    def rejected(self) -> int:
        """Error codes and statuses."""
        return sum(count for code, count in self.counts.items() if is_code(code))

    @property
    def errors(self) -> list[str]:
        """By name, what makes the state; of a client that was granted nothing, how it was rejected."""
        rejected = [code for code in self.counts if is_code(code)] if not self.granted else []
        return sorted({outcome_name(error) for error in (self.streak.errors if self.streak else rejected)})


def is_code(outcome: int) -> bool:
    """Whether a response said no."""
    return outcome != SUCCESS and (outcome < WAITED or outcome >= STATUS)


def is_bad(outcome: int) -> bool:
    return is_code(outcome) or outcome in {CLOSED, GIVEN_UP}


def activities(
    claims: Iterable[Claim],
    settings: Settings,
    *,
    uncaptured: int | None,
    entries: Iterable[Claim] = (),
    may_split: Callable[[], bool] | None = None,
) -> list[Activity]:
    """Of one client, by API; `claims`: all of its activities in one cluster, of which so many brokers were not
    captured: a client that is sent to another broker may be served there. None where no answer lists the brokers.
    `entries`: how its groups are answered. `may_split`: looks up whether it may split batches.
    """
    by_api: dict[str, list[Claim]] = {}
    for claim in claims:
        by_api.setdefault(claim["api"], []).append(claim)
    outcomes = {api: found[0].outcomes if len(found) == 1 else together(found) for api, found in by_api.items()}
    outcomes |= {api: left_open(each) for api, each in outcomes.items() if never_waits(api, each, settings)}

    def granted_by(apis: Collection[str]) -> list[Run]:
        return [run for api in apis if api in outcomes for run in outcomes[api].runs({SUCCESS})]

    found = [
        activity(api, by_api[api], outcomes[api], granted_by, settings, uncaptured=uncaptured) for api in sorted(by_api)
    ]
    if may_split is not None and IN_PART in map(STATE, found):
        splits = {one.api for one in found if is_of_splits(one, outcomes)}
        if splits and may_split():
            found = [replace(one, state=WORKING, streak=None) if one.api in splits else one for one in found]
    shown = {each.api for each in found if each.is_hurt}
    found = [each if each.is_hurt else taken_over(each, outcomes, shown, settings) for each in found]
    found = [replace(each, state=IN_PART) if reads_on(each, outcomes) else each for each in found]
    kept_out = stalled_groups(entries, settings)
    return [
        replace(one, state=STALLED, streak=kept_out[one.api]) if one.api in kept_out and one.state != STALLED else one
        for one in found
    ]


def is_of_splits(one: Activity, outcomes: Mapping[str, Outcomes]) -> bool:
    return one.state == IN_PART and one.streak is not None and is_split(one.api, one.streak, outcomes[one.api])


def reads_on(one: Activity, outcomes: Mapping[str, Outcomes]) -> bool:
    """Whether a client that finds no coordinator reads all the same, as one that assigns partitions to itself does. It
    cannot commit.
    """
    if one.api != COORDINATOR or one.state != STALLED or one.streak is None:
        return False
    if not outcomes.keys().isdisjoint({*STEPS["group"], *STEPS["transactions"]}) or READ not in outcomes:
        return False
    return any(run.last_ns + BETWEEN_NS >= one.streak.last_ns for run in outcomes[READ].runs({SUCCESS}))


COORDINATOR, READ = "FindCoordinator", "Fetch"


class TakenOver(NamedTuple):
    """What one process can take from another."""

    errors: frozenset[int]
    """How the one that lost it is answered."""
    apis: tuple[str, ...]
    """Any of them may be the one that is rejected, and it is the whole that is lost."""
    ends: str
    """Granted once for each that is not lost."""
    begins: str | None
    """If given: granted to a process that takes it. One that began before any was lost may end in a roll."""
    least_in_turn: int = 0
    """So many processes must have lost it one after the other: a few rolls may follow each other at once."""


TAKEN_OVER = (
    TakenOver(
        frozenset({47, 90}),  # INVALID_PRODUCER_EPOCH, PRODUCER_FENCED: another process has the transactional ID
        ("Produce", "AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn"),
        ends="EndTxn",
        begins=None,
    ),
    TakenOver(
        frozenset({82}),  # FENCED_INSTANCE_ID: another process has the group.instance.id
        ("JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit"),
        ends="SyncGroup",
        begins="JoinGroup",
        least_in_turn=6,
    ),
)

ONCE_A_PROCESS = frozenset[int]().union(*(kind.errors for kind in TAKEN_OVER if kind.begins is not None))
"""What a process is answered once, as it is replaced: its share says how long processes live, not that one is hurt."""


def taken_over(one: Activity, outcomes: Mapping[str, Outcomes], shown: Collection[str], settings: Settings) -> Activity:
    """Of the API that shows it most often: a client whose transactions, or static members, are lost to another process
    again and again. A tenth of them may be less of the requests of each API. Members: unless another API shows it.
    """
    kind = next((kind for kind in TAKEN_OVER if one.api in kind.apis and kind.ends in outcomes), None)
    if kind is None or (kind.begins is not None and not {*kind.apis}.isdisjoint(shown)):
        return one
    lost = {api: sum(run.count for run in outcomes[api].runs(kind.errors)) for api in kind.apis if api in outcomes}
    if not lost[one.api] or one.api != max(lost, key=lambda api: (lost[api], api)):
        return one
    ended = [run for code in (SUCCESS, UNSEEN, UNREADABLE) for run in outcomes[kind.ends].runs({code})]
    errors = tuple(sorted(kind.errors & outcomes[one.api].codes()))
    found = [
        Streak(sum(run.count for run in part), part[0].first_ns, max(run.last_ns for run in part), errors)
        for part in times_of_loss(kind, outcomes)
        if part
    ]
    longest = longest_of(each for each in found if loses(each, ended, settings))
    return one if longest is None else replace(one, state=IN_PART, streak=longest)


def times_of_loss(kind: TakenOver, outcomes: Mapping[str, Outcomes]) -> Iterator[list[Run]]:
    """The answers by which something was lost, apart where a pause is between them."""
    lost = [
        (run, port)
        for api in kind.apis
        if api in outcomes
        for port in outcomes[api].parts(kind.errors)
        for run in outcomes[api].runs(kind.errors, port)
    ]
    parts = list[list[tuple[Run, Part]]]()
    for run, port in sorted(lost, key=lambda each: (each[0].first_ns, each[0].last_ns, str(each[1]))):
        if not parts or run.first_ns - max(each.last_ns for each, _ in parts[-1]) > BETWEEN_NS:
            parts.append([])
        parts[-1].append((run, port))
    begun = outcomes.get(kind.begins) if kind.begins else None
    for part in parts:
        since_ns = part[0][0].first_ns
        if kind.begins is None:
            yield [run for run, _ in part]
        elif begun is not None and in_turn(part, begun) >= kind.least_in_turn:
            yield [run for run, port in part if begun_ns(run, port, begun) > since_ns]


def in_turn(part: Iterable[tuple[Run, Part]], begun: Outcomes) -> float:
    """How many processes lost it one after the other: all of them, by how many were there at once. In several rolls in
    a row there are many, but no more in turn than rolls.
    """
    lives: dict[tuple[Part, int], int] = {}
    for run, port in part:
        lives.setdefault((port, begun_ns(run, port, begun)), run.last_ns)
    first_ns, last_ns = min(lives.values()), max(lives.values())
    alive_ns = sum(lost_ns - max(since_ns, first_ns) for (_, since_ns), lost_ns in lives.items())
    return len(lives) * (last_ns - first_ns) / max(alive_ns, 1)


def begun_ns(lost: Run, port: Part, begun: Outcomes) -> int:
    """When what was lost on a connection had begun there last. Ports that count as one may be any."""
    every = begun.runs({SUCCESS}, port) if port != OTHERS else ()
    return max((min(run.last_ns, lost.last_ns) for run in every if run.first_ns < lost.last_ns), default=0)


BETWEEN_NS = 30 * SECOND_NS
"""Of processes that take an ID from each other, each begins again within seconds; a deployment is over after one."""


def loses(one: Streak, ended: Iterable[Run], settings: Settings) -> bool:
    """Whether at least one transaction in so many is lost, often, for long."""
    done = sum(run.count for run in ended if one.first_ns <= run.last_ns and run.first_ns <= one.last_ns)
    often = one.count >= settings.stalled_requests and one.seconds >= 2 * settings.stuck_s
    return often and one.count * settings.partly_one_in >= one.count + done


HEARTBEAT = "Heartbeat"
"""Granted to who is in its group."""


def stalled_groups(entries: Iterable[Claim], settings: Settings) -> dict[str, Streak]:
    """By API the longest streak of a group that no member of the client gets into, or that it cannot look up, where it
    has others. Of one group alone all that the client does shows more: heartbeats are granted where a response to
    JoinGroup was not captured.
    """
    by_group: dict[tuple[str, str], list[Claim]] = {}
    for claim in entries:
        by_group.setdefault((claim["api"], claim["group"]), []).append(claim)
    found: dict[str, list[Streak]] = {}
    if len({group for _, group in by_group}) < 2:
        return {}
    for (api, group), claims in by_group.items():
        if api == HEARTBEAT:
            continue
        outcomes = together(claims)
        lives = together(by_group[HEARTBEAT, group]).runs({SUCCESS}) if (HEARTBEAT, group) in by_group else ()
        unruly = [code for code in outcomes.codes() if is_bad(code) and not_rejection(api, outcome_name(code)) is None]
        every = streaks(with_unknown(outcomes, unruly, lives), unruly) if unruly else []
        found.setdefault(api, []).extend(one for one in every if is_stalled(one, settings))
    return {api: longest for api, every in found.items() if (longest := longest_of(every)) is not None}


def activity(
    api: str,
    claims: Sequence[Claim],
    outcomes: Outcomes,
    granted_by: Callable[[Collection[str]], list[Run]],
    settings: Settings,
    *,
    uncaptured: int | None,
) -> Activity:
    first, elsewhere = claims[0], bool(uncaptured)
    found: tuple[str, Streak | None] = WORKING, None
    if any(map(is_bad, outcomes.codes())):
        found = worst(api, outcomes, granted_by, settings, uncaptured=uncaptured)
        if found[0] == FAILING and uncaptured != 0 and asks_no_more(found[1], granted_by(WORK)):
            found = WORKING, None
        sent = sent_elsewhere(outcomes) if elsewhere and found[0] == WORKING else None
        found = (ELSEWHERE, sent) if sent is not None else found
        if uncaptured != 0 and found[0] == WORKING and outcomes.codes() <= UNKNOWN | SENT_ELSEWHERE:
            found = NOT_CAPTURED, None
    elif outcomes.codes() <= UNKNOWN - {STEP} and outcomes.codes() != {IN_FLIGHT}:
        found = NOT_CAPTURED, None
    return Activity(first["client_id"] or None, first["host"], api, claims, outcomes, *found)


def asks_no_more(rejected: Streak | None, granted: Iterable[Run]) -> bool:
    """Whether a client that was rejected last reads, writes or commits for long without asking again: another broker
    granted it, if the rejection is none that each of them would repeat.
    """
    if rejected is None or not OF_A_RESTART.issuperset(rejected.errors):
        return False
    return any(run.last_ns > rejected.last_ns + SLOT_NS for run in granted)


def sent_elsewhere(outcomes: Outcomes) -> Streak | None:
    """The last answers, if they send the client to another broker, and it asks this one nothing more."""
    sent = outcomes.runs(SENT_ELSEWHERE)
    others_ns = max((run.last_ns for run in outcomes.runs(outcomes.codes() - SENT_ELSEWHERE - UNKNOWN)), default=0)
    last = [run for run in sent if run.last_ns > others_ns]
    unknown_ns = max((run.last_ns for run in outcomes.runs(UNKNOWN)), default=0)
    if not last or unknown_ns > max(run.last_ns for run in last):
        return None
    first_ns = max(others_ns, min(run.first_ns for run in last))
    last_ns = max(run.last_ns for run in last)
    errors = tuple(sorted(SENT_ELSEWHERE & outcomes.codes()))
    return Streak(sum(run.count for run in last), first_ns, last_ns, errors)


def worst(
    api: str,
    outcomes: Outcomes,
    granted_by: Callable[[Collection[str]], list[Run]],
    settings: Settings,
    *,
    uncaptured: int | None,
) -> tuple[str, Streak | None]:
    """The state of an API with rejected requests, and the streak that makes it."""
    stalled: list[Streak] = []
    failing: list[Streak] = []
    for by, errors in by_protocol(api, outcomes):
        if uncaptured != 0 and READ in by and api != READ:  # it may read on at a broker that was not captured
            continue
        served = served_elsewhere(outcomes, errors) if uncaptured != 0 else []
        seen = with_unknown(outcomes, errors, [*granted_by(by), *served])
        stalled += [one for one in every_streak(seen, errors) if is_stalled(one, settings)]
        failing += [one for one in streaks(seen, errors)[-1:] if is_failing(one, settings)]
    if stalled:
        return STALLED, longest_of(stalled)
    unruly = [code for code in outcomes.codes() if is_bad(code) and not_rejection(api, outcome_name(code)) is None]
    unruly = [code for code in unruly if code not in ONCE_A_PROCESS]
    if api in STEP_OF and unruly:
        part = refused_in_part(with_unknown(outcomes, unruly, ()), unruly, settings, STEP_OF[api])
        if part is not None:
            return IN_PART, part
    return (FAILING, longest_of(failing)) if failing else (WORKING, None)


def by_protocol(api: str, outcomes: Outcomes) -> Iterator[tuple[frozenset[str], list[int]]]:
    """The errors that count by themselves (no APIs), and those that count unless the client works on by some APIs."""
    found: dict[frozenset[str], list[int]] = {}
    for code in sorted(outcomes.codes()):
        rule = not_rejection(api, outcome_name(code)) if is_bad(code) else None
        if is_bad(code) and (rule is None or EVERY not in rule.works_on_by):
            by = rule.works_on_by | {api} if rule and rule.works_on_by else frozenset[str]()
            found.setdefault(by, []).append(code)
    yield from found.items()


def never_waits(api: str, outcomes: Outcomes, settings: Settings) -> bool:
    """Whether requests were in flight as connections ended, again and again, and none was answered meanwhile: no end of
    a capture explains that, and their client gets nothing. Who leaves its group needs no answer.
    """
    if IN_FLIGHT not in outcomes or api not in STEP_OF or api == LEAVE:
        return False
    ended, answered = outcomes.runs({IN_FLIGHT}), outcomes.runs(outcomes.codes() - UNKNOWN)
    first_ns, last_ns = min(run.first_ns for run in ended), max(run.last_ns for run in ended)
    often = sum(run.count for run in ended) >= settings.stalled_requests
    long = last_ns - first_ns >= settings.stuck_s * SECOND_NS
    return often and long and not any(run.first_ns <= last_ns and first_ns <= run.last_ns for run in answered)


LEAVE = "LeaveGroup"


def left_open(outcomes: Outcomes) -> Outcomes:
    """The same, but those in flight are open: it is not known what would have come of them."""
    return recoded(outcomes, {code: OPEN if code == IN_FLIGHT else code for code in outcomes.codes()})


def recoded(outcomes: Outcomes, codes: Mapping[int, int]) -> Outcomes:
    """Those with these codes, each with another code."""
    found = Outcomes()
    for before, code in codes.items():
        for slot, parts in outcomes.of(before).items():
            for part, run in parts.items():
                found.add(code, slot, part, Run(run.count, run.first_ns, run.last_ns))
    return found


def with_unknown(outcomes: Outcomes, errors: Collection[int], granted: Iterable[Run]) -> Outcomes:
    """These errors, and all that was granted or may have been: what was not read, and what was not captured if that is
    a good part. `granted`: by other APIs, which shows that the client works on.
    """
    failed = sum(run.count for run in outcomes.runs(errors))
    unseen = sum(run.count for run in outcomes.runs({UNSEEN}))
    good = {SUCCESS, LATE, UNASKED, UNREADABLE, *([UNSEEN] if unseen * UNSEEN_ONE_IN >= failed else [])}
    known = outcomes.codes() & {*good, *errors}
    found = recoded(outcomes, {code: code if code in errors else SUCCESS for code in known})
    for run in granted:
        found.add_run(SUCCESS, run)
    return found


UNSEEN_ONE_IN = 4
"""If one in so many outcomes was not captured, a success may have been among them."""


def every_streak(outcomes: Outcomes, errors: Collection[int]) -> Iterator[Streak]:
    yield from streaks(outcomes, errors)
    ports = outcomes.parts(errors)
    if len(ports | outcomes.parts({SUCCESS})) > 1:
        granted = outcomes.runs({SUCCESS})
        for port in sorted(ports, key=str):
            served = served_elsewhere(outcomes, errors, port, granted)
            yield from streaks(with_served(outcomes, port, served), errors, port)


def is_stalled(one: Streak, settings: Settings) -> bool:
    """Long enough for what its errors may mean, and so often that it is no accident."""
    limit_s = settings.unavailable_s if OF_A_RESTART.issuperset(one.errors) else settings.stuck_s
    if OF_A_REBALANCE.issuperset(one.errors):
        limit_s = settings.client_grace_s if one.ended else 2 * settings.unavailable_s
    often = one.count >= settings.stalled_requests
    return one.seconds >= limit_s and (often or one.seconds >= 2 * limit_s) and one.count >= LEAST_REQUESTS


LEAST_REQUESTS = 3


def is_failing(one: Streak, settings: Settings) -> bool:
    often = one.count >= settings.stalled_requests and one.seconds >= settings.failing_s
    return often and not one.ended and not OF_A_REBALANCE.issuperset(one.errors)


OF_A_REBALANCE = frozenset({27})
"""REBALANCE_IN_PROGRESS: members that start one after the other send those before them into the next rebalance each
time, as where an application scales up. That ends, within the time that members have to join.
"""
