"""FET: fetches that get nowhere, fetch sessions (KIP-227) that client and broker see differently, former leaders.

Rule: a single error answer is normal after every creation, deletion and restart; only what lasts is found. What was not
requested counts only for a client whose connections with that broker were captured from their beginning and without a
gap; what a bounded set has dropped is not judged.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.controllers import present_denials
from wirecheck.judge.checks.shapes import (
    all_begun,
    answers_as,
    brokers_of,
    by_server,
    clock,
    ends,
    gathered,
    lasting,
    members,
    of_id,
    requesters,
    resting_on,
    seen_whole,
    servers_of,
    start_ns,
    storm,
    stuck_client,
    with_former,
)
from wirecheck.judge.claims.claim import LEAST, MOST_MEMBERS, RESERVED, Claim, Sighting, Subject, error_name
from wirecheck.judge.claims.extract.client_sets import UNASKED
from wirecheck.judge.claims.outcomes import SLOT_NS
from wirecheck.judge.results.finding import Evidence, Side, Time, first_of, last_of
from wirecheck.judge.streaks import Streak, responses
from wirecheck.judge.thresholds import SECOND_NS
from wirecheck.judge.topic_history import former_name_of, name_of, topic_of
from wirecheck.judge.topology.clusters import Group

UNKNOWN_TOPIC_ID, INCONSISTENT_TOPIC_ID = 100, 103
SESSION_TOPIC_ID, UNKNOWN_LEADER_EPOCH, NOT_LEADER = 106, 75, 6
STUCK = (UNKNOWN_TOPIC_ID, INCONSISTENT_TOPIC_ID)


def fetch_stuck_on_topic_id(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    if subject[1] in RESERVED:
        return
    refused: dict[tuple[str | None, str], list[tuple[Claim, Streak]]] = {}
    uses = (with_former(claim, subject, group, context) for claim in context.claims("use", group, *subject))
    for claim, streak in lasting(uses, STUCK, {"Fetch", "ShareFetch"}, context):
        refused.setdefault((claim["client_id"], claim["host"]), []).append((claim, streak))
    name = (name_of(subject, group, context) or former_name_of(subject, group, context)) if refused else None
    for (client_id, host), found in sorted(refused.items(), key=str):
        claims = [claim for claim, _ in found]
        errors = sorted({error for _, streak in found for error in streak.errors})
        first_ns = min(streak.first_ns for _, streak in found)
        yield resting_on(
            claims,
            *(subject[1], client_id, host),
            sides=(*(answered(claim, streak) for claim, streak in found), *known(name, subject[1], group, context)),
            topic=name,
            topic_ids=(subject[1],),
            client_ids=(client_id,),
            brokers=brokers_of(claims, context),
            count=sum(times(claim, streak, subject, group, context) for claim, streak in found),
            first_ns=first_ns,
            last_ns=max(claim.last.ts_ns for claim in claims),
            words={
                "errors": names_of(errors),
                **requesters(claims, group, context),
                "since": clock(first_ns),
                "servers": servers_of(claims, context),
            },
        )


def times(use: Claim, streak: Streak, subject: Subject, group: Group, context: CheckContext) -> int:
    """How many responses: of a broker, which is followed by its partitions, how many of these they name."""
    who = "client_id host endpoint api"
    found = context.by(who, "refused", group, *subject).get(tuple(use[name] for name in who.split()), [])
    return sum(responses(with_former(claim, subject, group, context), streak) for claim in found) or streak.count


def answered(claim: Claim, streak: Streak) -> Side:
    return Side(claim.last, f"{claim['client_id']} is answered {names_of(streak.errors)} by {claim['endpoint']}")


def names_of(errors: Iterable[int]) -> str:
    return " and ".join(map(error_name, errors))


def known(name: str | None, topic_id: str, group: Group, context: CheckContext) -> tuple[Side, ...]:
    """The bindings of the ID, and of the one that replaced it."""
    if name is None:
        return ()
    histories = topic_of(name, group, context).histories
    mine = [last_of(history.last) for history in histories if history.topic_id == topic_id]
    return (*mine, *(first_of(newest.first) for newest in histories[-1:] if newest.topic_id != topic_id))


def fetch_session_mode_flip(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    deletions = [start_ns(int(slot)) for c in context.claims("deletions", group, "server") for slot in c.tally]
    grace_ns = context.settings.client_grace_ns
    for claim in by_server(context.claims("activity", group, *subject), {SESSION_TOPIC_ID}):
        flips = sorted(claim.outcomes.runs({SESSION_TOPIC_ID}), key=lambda run: run.first_ns)
        if claim["api"] != "Fetch" or not flips:
            continue
        context.watch()
        alone = [run for run in flips if all(abs(run.first_ns - ts_ns) > grace_ns for ts_ns in deletions)]
        if len(alone) >= 3 and alone[-1].last_ns - alone[0].first_ns > grace_ns:
            streak = Streak(sum(run.count for run in flips), alone[0].first_ns, alone[-1].last_ns)
            words = {"server": servers_of([claim], context)}
            yield stuck_client(claim, streak, *subject[1:], context.node(claim), context=context, words=words)


def leader_epoch_fencing(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    settings = context.settings
    fenced = (claim for claim in context.claims("fenced", group, *subject) if claim["error"] != NOT_LEADER)
    denied: dict[tuple[str | None, str | None], set[int]] = {}
    for (name, topic_id, partition), claims in gathered(fenced, "name topic_id partition"):
        streak = storm(run for claim in claims for run in claim.outcomes.runs())
        if not streak.is_long(settings):
            continue
        context.watch()
        if streak.seconds <= settings.client_grace_s and not steady(topic_id, partition, streak, group, context):
            continue
        bound = name or (name_of(("id", topic_id), group, context) if topic_id else None)
        errors = {claim["error"] for claim in claims}
        if UNKNOWN_LEADER_EPOCH in errors:
            if (bound, topic_id) not in denied:
                denied[bound, topic_id] = denied_partitions(bound, topic_id, group, context)
            if partition in denied[bound, topic_id]:
                continue
        yield resting_on(
            claims,
            *(bound or topic_id, partition, *subject[1:]),
            **storm_of(streak, bound, topic_id, claims),
            brokers=brokers_of(claims, context),
            words={"partition": partition, "errors": names_of(sorted(errors)), "since": clock(streak.first_ns)},
        )


def storm_of(streak: Streak, name: str | None, topic_id: str | None, claims: list[Claim]) -> dict[str, Any]:
    about = {"topic": name, "topic_ids": (topic_id,) if topic_id else (), "client_ids": (claims[0]["client_id"],)}
    return {**about, "count": streak.count, "first_ns": streak.first_ns}


def denied_partitions(name: str | None, topic_id: str | None, group: Group, context: CheckContext) -> set[int]:
    """Partitions of a topic that a broker denies leading: of these, the client's epoch is not what is wrong."""
    ids = [history.topic_id for history in topic_of(name, group, context).histories[-1:]] if name else []
    return {
        evidence.key[1]
        for known in dict.fromkeys([topic_id, *ids] if topic_id else ids)
        for evidence in present_denials(("id", known), group, context)
    }


def steady(topic_id: str | None, partition: int, streak: Streak, group: Group, context: CheckContext) -> bool:
    """Whether the partition's leader epoch is known from before a stretch to its end, and one."""
    states = context.by("partition", "partition", group, "id", topic_id) if topic_id else {}
    mine = states.get((partition,), [])
    newest = max((claim["leader_epoch"] for claim in mine), default=-1)
    last = [claim for claim in mine if claim["leader_epoch"] == newest]
    if newest < 0:
        return False
    before = min(claim.first.ts_ns for claim in last) < streak.first_ns
    return before and max(claim.last_word.ts_ns for claim in last) >= streak.last_ns // SLOT_NS * SLOT_NS


def former_leader_asked(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    settings = context.settings
    refused = (claim for claim in context.claims("fenced", group, *subject) if claim["error"] == NOT_LEADER)
    for (name, topic_id, partition, endpoint), claims in gathered(refused, "name topic_id partition endpoint"):
        broker = context.clusters.broker(endpoint, max(claim.last.ts_ns for claim in claims))
        streak = storm([] if broker is None else answers_as(broker, claims, context))
        if broker is None or not streak.is_long(settings):
            continue
        bound = name or (name_of(("id", topic_id), group, context) if topic_id else None)
        context.watch()
        states = partition_states(bound, topic_id, partition, group, context)
        leader = led_elsewhere(states, broker, streak, settings.stuck_s)
        if leader is None:
            continue
        words = {"partition": partition, "broker": broker, "leader": leader["leader"], "since": clock(streak.first_ns)}
        yield resting_on(
            claims,
            *(bound or topic_id, partition, *subject[1:], endpoint),
            sides=(last_of(leader), *ends(claims)),
            **storm_of(streak, bound, topic_id, claims),
            brokers=(broker,),
            words=words,
        )


def partition_states(
    name: str | None, topic_id: str | None, partition: int, group: Group, context: CheckContext
) -> list[Claim]:
    """The claims about a partition by the topic's ID, by every ID that its name had, and by the name alone."""
    states = context.by("partition", "unnumbered", group, "name", name) if name else {}
    found = [*states.get((partition,), ())]
    bound = context.claims("binding", group, "name", name) if name and not topic_id else []
    for known in sorted({claim["topic_id"] for claim in bound} - {None} | ({topic_id} if topic_id else set())):
        found += context.by("partition", "partition", group, "id", known).get((partition,), ())
    return found


def led_elsewhere(states: list[Claim], broker: int, streak: Streak, seconds: int) -> Claim | None:
    """The last claim that names another leader, if one was named for long enough during the streak and this broker
    never was.
    """
    begin, end = streak.first_ns, streak.last_ns
    meanwhile = [claim for claim in states if claim.last_word.ts_ns >= begin and claim.first.ts_ns <= end]
    others = [claim for claim in meanwhile if claim["leader"] not in {broker, -1}]
    if not others or any(claim["leader"] == broker for claim in meanwhile):
        return None
    spans = [min(end, claim.last_word.ts_ns) - max(begin, claim.first.ts_ns) for claim in others]
    return max(others, key=lambda claim: claim.last_word) if max(spans) >= seconds * SECOND_NS else None


def partition_out_of_range(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    counted = [c for c in context.claims("partition", group, *subject) if c["source"] == "metadata"]
    if not counted or subject[1] in RESERVED:
        return
    served = context.claims("serves", group, *subject)  # where only a stale broker's Metadata was captured
    highest, refreshed = max(c["partition"] for c in (*counted, *served)), max(c.last.ts_ns for c in counted)
    late_ns = refreshed - context.settings.client_grace_ns
    late = (c for c in context.claims("partition_use", group, *subject) if c.first.ts_ns < late_ns)
    for (client_id, host), claims in gathered((c for c in late if c.peak["partition"] > highest), "client_id host"):
        words = {"partition": max(claim.peak["partition"] for claim in claims), "highest": highest}
        about = {**of_id(subject, group, context), "client_ids": (client_id,)}
        yield resting_on(claims, subject[1], client_id, host, **about, words=words)


SESSION_NOT_FOUND, INVALID_SESSION_EPOCH = 70, 71
WITH_IDS = 13
"""The first Fetch version that carries topic ids."""
SHOWN = 3
"""So many partitions a summary names."""


def fetch_session_protocol(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    for error in (SESSION_NOT_FOUND, INVALID_SESSION_EPOCH):
        activities = by_server(context.claims("activity", group, *subject), {error})
        for claim, streak in lasting(activities, {error}, {"Fetch"}, context):
            evidence = disagreed(claim, error, error_name(error), clock(streak.first_ns), context)
            yield replace(evidence, count=streak.count, first_ns=streak.first_ns)
    for claim in context.claims("fetch_odd", group, *subject):
        yield disagreed(claim, claim["what"], claim["what"], clock(claim.first.ts_ns), context)
    for claim in context.claims("session_answers", group, *subject):
        odd = never_asked(claim, group, context)
        if odd:
            what = f"partition {odd[0].partition} of {odd[0].topic} answered but never requested"
            evidence = disagreed(claim, UNASKED, what, clock(odd[0].seen.ts_ns), context)
            yield replace(evidence, sides=tuple(Side(m.seen, f"{claim['endpoint']} answers {m.text}") for m in odd))


def disagreed(claim: Claim, error: int | str, what: str, since: Time, context: CheckContext) -> Evidence:
    return resting_on(
        [claim],
        *(claim["client_id"], claim["host"], context.node(claim), error),
        client_ids=(claim["client_id"],),
        brokers=(context.broker(claim),),
        words={"server": servers_of([claim], context), "error": what, "since": since},
    )


class Member(NamedTuple):
    """A partition of a fetch session."""

    seen: Sighting
    topic: str
    partition: int

    @property
    def text(self) -> str:
        return f"partition {self.partition} of {self.topic}"


def never_asked(claim: Claim, group: Group, context: CheckContext) -> list[Member]:
    """Partitions that a client forgets or is answered, and surely asked that endpoint for never."""
    asked: set[str] = set()
    for asks in context.claims("fetch_asks", group, "client", *who(claim)):
        if asks["endpoint"] == claim["endpoint"]:
            asked |= {name for name in asks.peak if name.startswith(LEAST)}
    greatest = max(asked) if len(asked) >= MOST_MEMBERS else None
    odd = [
        Member(seen, *partition)
        for name, seen, partition in members(claim, parts=2)
        if name not in asked and (greatest is None or name < greatest)
    ]
    if not odd:
        return []
    context.watch()
    grace_ns = context.settings.broker_grace_ns  # of the first answers: a member is kept with its latest one
    passed = odd if context.passed(min(claim.first.ts_ns, odd[0].seen.ts_ns) + grace_ns) else []
    if not passed or not seen_whole(claim["client_id"], claim["host"], {claim["endpoint"]}, group, context):
        return []
    begun = all_begun(claim["client_id"], claim["host"], claim["endpoint"], group, context)
    return sorted(passed) if begun else []


def who(claim: Claim) -> tuple[str, str]:
    return claim["client_id"] or "", claim["host"]


def forgets_unknown_partition(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    claims = context.claims("session_forgets", group, *subject)
    odd = [(c, m) for c in claims for m in never_asked(c, group, context) if one_id(m, group, context)]
    if odd:
        partitions, claims = sorted({member.text for _, member in odd}), [claim for claim, _ in odd]
        yield resting_on(
            claims,
            *subject[1:],
            sides=tuple(Side(member.seen, f"{claim['client_id']} forgets {member.text}") for claim, member in odd),
            client_ids=(claims[0]["client_id"],),
            brokers=brokers_of(claims, context),
            count=len(partitions),
            words={"partitions": ", ".join(partitions[:SHOWN]), "server": servers_of(claims, context)},
        )


def one_id(member: Member, group: Group, context: CheckContext) -> bool:
    """Whether a topic that a fetch names, by name or by id, is known to have had one id only."""
    by_id = member.seen.version >= WITH_IDS
    name = name_of(("id", member.topic), group, context) if by_id else member.topic
    return name is not None and len(topic_of(name, group, context).histories) < 2
