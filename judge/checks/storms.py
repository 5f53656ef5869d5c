"""CLI012: clients that ask again and again, as fast as they are answered, and gain nothing by it.

Rule: what moves records or changes something may come as fast as there is work. What is rejected without a pause, and
what a client needs once in some seconds, gains nothing. Only a rate that one connection has in three slots in a row
counts: many clients behind one address are no storm, nor is a burst that ends by itself. Connections that are opened
without a pause count together, if next to nothing is granted on them that comes after a client's first steps.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import groupby, pairwise
from typing import NamedTuple

from wirecheck.judge.activity_states import BEFORE_WORK, is_bad, is_code
from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.connection_ends import connections_that_are_over
from wirecheck.judge.checks.shapes import brokers_of, clients_of, clock, end_ns, gathered, resting_on
from wirecheck.judge.claims.claim import Claim, Subject
from wirecheck.judge.claims.outcomes import OTHERS, SLOT_NS, SUCCESS, UNASKED, Outcomes, Part
from wirecheck.judge.claims.response_outcomes import outcome_name
from wirecheck.judge.results.finding import DOUBTED, Evidence
from wirecheck.judge.streaks import Streak, longest_of, together
from wirecheck.judge.thresholds import SECOND_NS, Settings
from wirecheck.judge.topic_history import name_of
from wirecheck.judge.topology.clusters import Group
from wirecheck.wording import and_list

SELDOM = frozenset({
    "ApiVersions", "JoinGroup", "SyncGroup", "Heartbeat", "ConsumerGroupHeartbeat", "ShareGroupHeartbeat",
    "StreamsGroupHeartbeat",
})  # fmt: skip
"""What a client needs once in some seconds, also where it is granted: each asks for the same."""
JOINING = frozenset({"JoinGroup", "SyncGroup"})
"""Who asks for these alone, without a pause, is given no time to work: the group is divided again each time."""
READS = frozenset({"Fetch", "ShareFetch"})
POSITIONS = frozenset({"ListOffsets", "OffsetFetch", "OffsetForLeaderEpoch"})
"""A reader asks for these until it has them; a tool asks for each partition, or group."""
ASKED_UNTIL_GRANTED = READS | SELDOM | {"Metadata", "FindCoordinator", "InitProducerId"}
"""What a client asks for until it is granted: it decides by itself how soon it asks again."""


def asks_without_pause(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """One per API."""
    every = context.claims("activity", group, *subject)
    least = context.settings.storm_per_s * SLOTS * SLOT_NS // SECOND_NS
    if sum(claim.count for claim in every) < least:
        return
    yield from connects_without_pause(every, subject, context)
    reads = any(claim["api"] in READS for claim in every)
    for (api,), claims in gathered(every, "api"):
        if sum(claim.count for claim in claims) < least:
            continue
        asked = Asked(api, claims, together(claims), by_topic(api, subject, group, context))
        if (found := asked.seldom(context) if api in SELDOM else asked.rejected(context, reads=reads)) is not None:
            yield storm(asked, found, subject, group, context)


class Fast(NamedTuple):
    """Requests without a pause."""

    streak: Streak
    topic: Subject
    """What they are rejected for, if it is one topic; else empty."""


class Asked(NamedTuple):
    """What a client asked for by one API, and what came of it."""

    api: str
    claims: Sequence[Claim]
    outcomes: Outcomes
    """By connection."""
    by_topic: Mapping[Subject, Sequence[Claim]]
    """By partition, of answers that may grant others."""

    def seldom(self, context: CheckContext) -> Fast | None:
        codes = {code for code in self.outcomes.codes() if is_code(code) or code == SUCCESS}
        streak = fastest(self.outcomes, codes, context.settings.storm_seldom_per_s)
        return Fast(streak, ()) if streak else None

    def rejected(self, context: CheckContext, *, reads: bool) -> Fast | None:
        """What is rejected as a whole, or of one topic: brokers answer a fetch at once if a partition has an error."""
        per_s, codes = context.settings.storm_per_s, set(filter(is_code, self.outcomes.codes()))
        streak, topic = fastest(self.outcomes, codes, per_s), Subject()
        of_topics = [(one, found) for one in sorted(self.by_topic) if (found := self.of_topic(one, per_s))]
        if of_topics:
            topic, worst = max(of_topics, key=lambda one: one[1].count)
            streak = streak or (worst if fastest(self.outcomes, {*codes, SUCCESS}, per_s) else None)
        if streak is None or (self.api in POSITIONS and not reads):
            return None
        if self.api not in ASKED_UNTIL_GRANTED | POSITIONS and not self.is_faster(streak, context):
            return None
        return Fast(streak, topic)

    def of_topic(self, topic: Subject, per_s: int) -> Streak | None:
        outcomes = together(self.by_topic[topic])
        return fastest(outcomes, set(filter(is_code, outcomes.codes())), per_s)

    def is_faster(self, streak: Streak, context: CheckContext) -> bool:
        """Whether the client asks much more often than when it was granted what it asked for: else it has so much to
        do.
        """
        granted = self.granted_per_s(streak.first_ns)
        return granted is not None and rate(streak) >= context.settings.storm_times * granted

    def granted_per_s(self, until_ns: int) -> float | None:
        """How often it was granted this before a time, at most within one slot; None if it was not seen so."""
        runs = [run for run in self.outcomes.runs({SUCCESS}) if run.last_ns < until_ns]
        slots = groupby(sorted(runs, key=lambda run: run.first_ns), key=lambda run: run.first_ns // SLOT_NS)
        counts = [sum(run.count for run in found) for _, found in slots]
        return max(counts) * SECOND_NS / SLOT_NS if counts else None

    def before_per_s(self, since_ns: int) -> float | None:
        """How often it asked for this before, whatever the answer; None if it was not seen for a slot."""
        runs = [run for run in self.outcomes.runs() if run.last_ns < since_ns]
        seen_ns = since_ns - min((run.first_ns for run in runs), default=since_ns)
        return sum(run.count for run in runs) * SECOND_NS / seen_ns if seen_ns >= SLOT_NS else None


def by_topic(api: str, subject: Subject, group: Group, context: CheckContext) -> dict[Subject, list[Claim]]:
    """How each topic was answered: by its ID only what is rejected, by its name also what is granted."""
    found: dict[Subject, list[Claim]] = {}
    for kind, space, word in (("refused", "id", "topic_id"), ("named_answer", "name", "name")):
        for claim in context.claims(kind, group, *subject):
            if claim["api"] == api:
                found.setdefault((space, claim[word]), []).append(claim)
    return found


SLOTS = 3
"""So many in a row: a burst of some seconds fills one, or two that it touches."""


def fastest(outcomes: Outcomes, codes: Collection[int], per_s: int) -> Streak | None:
    """The longest time in which one part, as a connection, had so many of these outcomes per second in each slot."""
    slots: dict[Part, dict[int, Streak]] = {}
    for code in sorted(codes):
        for slot, parts in outcomes.of(code).items():
            for part, run in parts.items():
                if part != OTHERS:
                    one, mine = Streak(run.count, run.first_ns, run.last_ns, (code,)), slots.setdefault(part, {})
                    mine[slot] = mine[slot].joined(one) if slot in mine else one
    return longest_of(one for mine in slots.values() for one in dense(mine, per_s * SLOT_NS // SECOND_NS))


def dense(slots: Mapping[int, Streak], least: int) -> Iterator[Streak]:
    """Each time in which so many slots in a row have so many answers."""
    full = sorted(slot for slot, one in slots.items() if one.count >= least)
    parts: list[list[int]] = [full[:1]]
    for before, slot in pairwise(full):
        if slot == before + 1:
            parts[-1].append(slot)
        else:
            parts.append([slot])
    for part in parts:
        if len(part) >= SLOTS:
            yield reduce(Streak.joined, [slots[slot] for slot in part])


def connects_without_pause(every: Sequence[Claim], subject: Subject, context: CheckContext) -> Iterator[Evidence]:
    """All connections of a client together: it may have one after the other, or many at once."""
    opened: dict[int, Streak] = {}
    for run in together(connections_that_are_over(subject, context)).runs():
        slot = run.first_ns // SLOT_NS
        one = Streak(run.count, run.first_ns, min(run.last_ns, end_ns(slot)))
        opened[slot] = opened[slot].joined(one) if slot in opened else one
    rejected = Counter[int]()
    errors: dict[str, Counter[int]] = {}
    for claim in every:
        for code in filter(is_bad, claim.outcomes.codes()):
            for run in claim.outcomes.runs({code}):
                rejected[run.first_ns // SLOT_NS] += run.count
                errors.setdefault(claim["api"], Counter())[code] += run.count
    worked = granted_by_slot(claim for claim in every if claim["api"] not in BEFORE_WORK)
    streak = without_work(opened, worked, rejected, context.settings)
    if streak is None:
        return
    words = {
        "client": subject[1] or "a client without an ID",
        "does": "opens connections",
        "rate": f"{rate(streak):,.0f}",
        "from": clock(streak.first_ns),
        "to": clock(streak.last_ns),
        "answer": why_it_connects([claim for claim in every if claim["api"] in BEFORE_WORK], errors),
        "before": "",
    }
    about: dict[str, object] = {"first_ns": streak.first_ns, "last_ns": streak.last_ns, "count": streak.count}
    about |= {"client_ids": clients_of(every), "brokers": brokers_of(every, context), "words": words}
    yield resting_on(every, *subject[1:], "", **about)


def without_work(
    opened: Mapping[int, Streak], worked: Mapping[int, int], rejected: Mapping[int, int], settings: Settings
) -> Streak | None:
    """The longest time in which so many connections are opened in each slot, and what lets a client work is granted on
    hardly one in ten: each of 8,000 short connections that carry a write has its reason. Half as many are enough if
    half of them are rejected.
    """
    least, seldom = (per_s * SLOT_NS // SECOND_NS for per_s in (settings.storm_per_s, settings.storm_seldom_per_s))
    fast = {}
    for slot, one in opened.items():
        idle = worked.get(slot, 0) * settings.partly_one_in < one.count
        if idle and (one.count >= seldom or 2 * rejected.get(slot, 0) >= one.count):
            fast[slot] = one
    return longest_of(dense(fast, least))


def granted_by_slot(claims: Iterable[Claim]) -> Counter[int]:
    found = Counter[int]()
    for claim in claims:
        for run in claim.outcomes.runs({SUCCESS, UNASKED}):
            found[run.first_ns // SLOT_NS] += run.count
    return found


def why_it_connects(steps: Iterable[Claim], errors: Mapping[str, Counter[int]]) -> str:
    """What is rejected most, or all that it asks for."""
    if errors:
        api, counts = max(errors.items(), key=lambda one: (one[1].total(), one[0]))
        return f"{api} is rejected ({outcome_name(counts.most_common(1)[0][0])})"
    return f"for {and_list(sorted({claim['api'] for claim in steps}))} only"


def rate(streak: Streak) -> float:
    return streak.count / max(streak.seconds, 1)


def storm(asked: Asked, fast: Fast, subject: Subject, group: Group, context: CheckContext) -> Evidence:
    streak, topic = fast
    errors = [outcome_name(code) for code in mostly(streak, asked)]
    before = asked.before_per_s(streak.first_ns)
    words = {
        "client": subject[1] or "a client without an ID",
        "does": f"sends {asked.api}",
        "rate": f"{rate(streak):,.0f}",
        "from": clock(streak.first_ns),
        "to": clock(streak.last_ns),
        "answer": answer(asked.api, errors),
        "before": "" if before is None else f"; before: {in_words(before)}",
        **({DOUBTED: "yes"} if asked.api in JOINING else {}),
    }
    about: dict[str, object] = {"first_ns": streak.first_ns, "last_ns": streak.last_ns, "count": streak.count}
    if topic:
        about["topic"] = topic[1] if topic[0] == "name" else name_of(topic, group, context)
        about["topic_ids"] = (topic[1],) if topic[0] == "id" else ()
    every = asked.by_topic[topic] if topic else asked.claims
    mine = [claim for claim in every if not claim.outcomes.codes().isdisjoint(streak.errors)]
    about |= {"client_ids": clients_of(mine), "brokers": brokers_of(mine, context), "words": words}
    return resting_on(mine, *subject[1:], asked.api, **about)


def mostly(streak: Streak, asked: Asked) -> list[int]:
    """Its errors, unless it is about what is granted, too, and most of that was."""
    errors = [code for code in streak.errors if code != SUCCESS]
    if asked.api not in SELDOM:
        return errors
    rejected, granted = (meanwhile(streak, asked.outcomes, codes) for codes in (errors, {SUCCESS}))
    return errors if rejected >= granted else []


def meanwhile(streak: Streak, outcomes: Outcomes, codes: Collection[int]) -> int:
    runs = outcomes.runs(codes)
    return sum(run.count for run in runs if run.first_ns <= streak.last_ns and streak.first_ns <= run.last_ns)


def answer(api: str, errors: Iterable[str]) -> str:
    named = and_list(sorted(errors))
    if api not in SELDOM:
        return f"they are rejected ({named})"
    return f"the answer is {named}" if named else "one in some seconds is enough"


def in_words(per_s: float) -> str:
    return f"{per_s:,.0f}/s" if per_s >= 1 else "less than 1/s"
