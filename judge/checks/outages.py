"""Outages: for how long clients could not work, and the checks that report it.

An outage is no disagreement about topic IDs or versions, so its findings are informations.
"""

from bisect import bisect
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

from wirecheck.client_ids import is_internal, is_of_node
from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.fetching import partition_states
from wirecheck.judge.checks.shapes import (
    clients_of,
    clock,
    gathered,
    is_held_by_quota,
    of_id,
    resting_on,
    servers_of,
    start_ns,
    stuck_client,
    with_unseen,
)
from wirecheck.judge.checks.topic_ids import DELETE_TOPICS, as_words, the_only
from wirecheck.judge.claims.claim import ZERO, Claim, Subject
from wirecheck.judge.claims.outcomes import CLOSED, LATE, OTHERS, SLOT_NS, SUCCESS, TURNED_AWAY, WAITED, Run
from wirecheck.judge.results.finding import Evidence
from wirecheck.judge.results.topic_rows import integers
from wirecheck.judge.streaks import (
    ASKS_AGAIN_NS,
    PAUSE_NS,
    Streak,
    is_unavailable,
    longest_of,
    longest_outage,
    now_and_then,
    partitions,
    streaks,
    stuck,
    together,
    without_pause,
)
from wirecheck.judge.thresholds import SECOND_NS
from wirecheck.judge.topic_history import name_of
from wirecheck.judge.topology.clusters import Group

FIND_COORDINATOR, COORDINATOR_NOT_AVAILABLE = "FindCoordinator", 15
REQUEST_TIMED_OUT, NOT_ENOUGH_REPLICAS = 7, 19
METADATA, UNKNOWN_TOPIC_OR_PARTITION, LEADER_NOT_AVAILABLE = "Metadata", 3, 5
REPORTED = "metadata"
"""The source of claims from Metadata responses."""
SEARCHES = (METADATA, FIND_COORDINATOR)
WRITES_AND_READS = frozenset({"Produce", "Fetch", "ShareFetch"})
WORK = WRITES_AND_READS | {
    "InitProducerId",
    "OffsetCommit",
    "JoinGroup",
    "ConsumerGroupHeartbeat",
    "ShareGroupHeartbeat",
    "StreamsGroupHeartbeat",
}
"""What producers and consumers send, and tools that only look at topics do not."""
OF_BROKERS = WORK | {"Metadata", "FindCoordinator", "ListOffsets", "OffsetFetch"} - {"Fetch"}
"""What controllers of KRaft do not answer."""
NAMED_UNTIL_NS = 300 * SECOND_NS
"""Clients ask for metadata at least this often (metadata.max.age.ms)."""
LOOKS = frozenset({"ApiVersions", "SaslHandshake", "SaslAuthenticate", "Metadata", "FindCoordinator", "InitProducerId"})
"""What clients send first, to any broker, in order to find those that they need."""


def without_coordinator(claims: Iterable[Claim]) -> Streak | None:
    """The longest time in which a client asked brokers for its coordinator without a pause, and none knew it."""
    outcomes = together(claims)
    errors, found = outcomes.runs({COORDINATOR_NOT_AVAILABLE}), list[Streak]()
    for streak in streaks(outcomes, (COORDINATOR_NOT_AVAILABLE,)):
        within = (run for run in errors if streak.first_ns <= run.first_ns and run.last_ns <= streak.last_ns)
        found += [replace(one, ended=streak.ended) for one in without_pause(within, PAUSE_NS)]
    return longest_of(found)


def without_leader(
    answers: Iterable[Claim], by_name: Iterable[Claim], states: Iterable[Claim], error: int = LEADER_NOT_AVAILABLE
) -> dict[int, Streak]:
    """By partition the longest time in which a client got answers that it had no leader, by all brokers together; or
    another error, such as that its leader has no listener that the client can use.

    `by_name`: how its requests about the topic were answered; a write or read that succeeds meanwhile breaks the time.
    `states`: what is known of the partitions; a new leader in a Metadata response ends it.
    """
    refused, no_leader = together(answers), {error}
    accepted = together(claim for claim in by_name if claim["api"] in WRITES_AND_READS)
    led: dict[int, list[int]] = {}
    for state in states:
        if state["leader"] >= 0 and state["source"] == REPORTED:
            led.setdefault(state["partition"], []).append(state.first.ts_ns)
    found = {}
    for number in partitions(refused, no_leader):
        of_partition, served = refused.runs(no_leader, number), accepted.runs({SUCCESS}, number)
        outage = longest_outage(of_partition, led.get(number, []), served)
        if outage is not None:
            found[number] = outage
    return found


def without_topic(answers: Iterable[Claim], served: Collection[Run], named_ns: Collection[int]) -> Streak | None:
    """The longest time in which a client got answers that a topic does not exist, by all brokers together.

    `served`: successes of its requests about the topic; `named_ns`: when the topic got an ID.
    """
    return longest_outage(together(answers).runs({UNKNOWN_TOPIC_OR_PARTITION}), named_ns, served)


def without_used_topic(
    answers: Iterable[Claim], served: Collection[Run], unasked: Collection[Run], named_ns: Collection[int]
) -> Streak | None:
    """The same of a client that used the topic. `unasked`: its last writes with acks=0, where nothing else shows that:
    who writes on so is not stuck.
    """
    used = served or unasked
    longest = without_topic(answers, used, named_ns) if used else None
    writes_on = longest is not None and any(run.last_ns > longest.first_ns for run in unasked)
    return None if writes_on else longest


REFUSED_AGAIN_NS = 40 * SECOND_NS
"""A client that is refused connects again within this time: kafka-python waits up to 30 s and a fifth."""


def works(client: Subject, group: Group, context: CheckContext) -> bool:
    """Whether a client writes or reads anything, or is in a group."""
    claims = context.claims("client", group, *client)
    return any(word.partition(":")[0] in WORK for claim in claims for word in claim.tally)


def asks_by_name(answers: Iterable[Claim]) -> bool:
    """Whether a client asked for the topic itself; some libraries ask for all topics every few seconds."""
    return any(claim.peak.get("named") for claim in answers)


def waits_for_a_leader(one: Streak) -> bool:
    """Whether a client asked as often as one that has something to write or read there."""
    return one.seconds * SECOND_NS <= one.count * PAUSE_NS


def users_by_id(name: str, group: Group, context: CheckContext) -> dict[tuple[str | None, str], list[Claim]]:
    """Who writes or reads a topic by one of its IDs, and how that was answered: by client ID and address."""
    bound = {claim["topic_id"] for claim in context.claims("binding", group, "name", name)} - {None, ZERO}
    uses = (claim for topic_id in sorted(bound) for claim in context.claims("use", group, "id", topic_id))
    found: dict[tuple[str | None, str], list[Claim]] = {}
    for claim in uses:
        if claim["api"] in WRITES_AND_READS:
            found.setdefault((claim["client_id"], claim["host"]), []).append(claim)
    return found


def writes_unasked(
    who: tuple[str | None, str], name: str, bound: Iterable[Claim], group: Group, context: CheckContext
) -> list[Run]:
    """When a client wrote to a topic last with acks=0, by its name and by each of its IDs."""
    places = [
        ("name", name),
        *(("id", topic_id) for topic_id in sorted({claim["topic_id"] for claim in bound} - {None, ZERO})),
    ]
    mine = (one for place in places for one in context.by("client_id host", "written", group, *place).get(who, ()))
    return [Run(1, one.peak["unasked"], one.peak["unasked"]) for one in mine if "unasked" in one.peak]


def writes_time_out(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    for claim in rejected_writes(REQUEST_TIMED_OUT, subject, group, context):
        allowed_ms = allowed_to_write_ms(claim, group, context)
        streak = stuck(claim.outcomes, {REQUEST_TIMED_OUT}, context)
        words = {"why": "replicas in the ISR do not confirm them"}
        if allowed_ms is not None and allowed_ms < context.settings.write_timeout_s * 1000:
            words = {"why": f"the client allows {allowed_ms:,} ms", "timeout": f"{allowed_ms:,}"}
            streak = streak or now_and_then(claim.outcomes, {REQUEST_TIMED_OUT}, context.settings)
        if streak is not None:
            yield refused_writer(claim, streak, words, context, **of_topic_by(subject, claim, group, context))


def writes_wait(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """One per server: a server that answers nothing at all is WIR007's."""
    if is_of_node(subject[1]):
        return
    for (endpoint,), claims in gathered(context.claims("write_wait", group, *subject), "endpoint"):
        wait = longest_write_wait(claims)
        if is_held_by_quota(claims[0], wait, group, context):
            continue
        answered = context.claims("answered", group, "link", endpoint)
        others = [run for claim in answered for run in claim.outcomes.runs({SUCCESS})]
        begins_ns = wait.first_ns + ANSWERS_WAITED_NS
        if wait.seconds >= context.settings.write_waits_s and any(
            run.first_ns < wait.last_ns and run.last_ns > begins_ns for run in others
        ):
            yield waiting_writes(claims, wait, subject, group, context)


ANSWERS_WAITED_NS = SECOND_NS
"""What was on its way when writes began to wait shows nothing about the time after that."""


def longest_write_wait(claims: Collection[Claim]) -> Streak:
    """From when the first of these writes was sent to when the last of them ended."""
    until_ns = max(claim.peak["until"] for claim in claims)
    found = without_pause((run for claim in claims for run in claim.outcomes.runs()), ASKS_AGAIN_NS)
    ended = [replace(one, last_ns=max(one.last_ns, until_ns if one is found[-1] else 0)) for one in found]
    return longest_of(ended) or Streak(0, until_ns, until_ns)


def waiting_writes(
    claims: list[Claim], wait: Streak, subject: Subject, group: Group, context: CheckContext
) -> Evidence:
    first, (topics, replicas) = claims[0], waited_for(claims, group, context)
    context.watch()
    uses = [c for c in context.claims("activity", group, *subject) if c["api"] == "Produce"]
    granted_ns = max((run.last_ns for use in uses for run in use.outcomes.runs({SUCCESS})), default=0)
    over = granted_ns > wait.last_ns
    words = {
        "client": first["client_id"] or "a client without an ID",
        "server": servers_of(claims, context),
        "partitions": "; ".join(f"{name} {numbered_partitions(topics[name])}" for name in sorted(topics)),
        "seconds": f"{max(claim.peak['longest'] for claim in claims) / SECOND_NS:.0f}",
        "since": clock(wait.first_ns),
        "until": f" to {clock(wait.last_ns)}" if over else "",
        **({"recovered": "yes"} if over else {}),
    }
    quiet_s = longest_quiet_s(uses, claims[0]["endpoint"], wait)
    lost = any(claim.peak["given_up"] for claim in claims) and not (
        over and wait.seconds < context.settings.write_lost_s
    )
    if lost or quiet_s >= context.settings.stuck_s:
        words["hurt_host"] = first["host"]  # else the client went on once the ISR had shrunk
    only = next(iter(topics)) if len(topics) == 1 else None
    about = {"topic": only, "client_ids": (first["client_id"],), "brokers": tuple(sorted(replicas))}
    times = {"first_ns": wait.first_ns, "last_ns": wait.last_ns, "count": wait.count}
    key = (first["client_id"] or "", first["host"], context.node(first))
    return resting_on(claims, *key, **about, **times, words=words)


def waited_for(claims: Iterable[Claim], group: Group, context: CheckContext) -> tuple[dict[str, set[int]], set[int]]:
    """Of writes that wait the partitions, by topic, and the brokers that have replicas of them."""
    topics, replicas = dict[str, set[int]](), set[int]()
    for claim in claims:
        of_id = ("id", claim["topic_id"]) if claim["topic_id"] not in {None, ZERO} else None
        name = claim["name"] or (of_id and name_of(of_id, group, context)) or claim["topic_id"] or ""
        numbers = {part for run_parts in claim.outcomes.of(WAITED).values() for part in run_parts if part != OTHERS}
        topics.setdefault(str(name), set()).update(int(part) for part in numbers)
        for number in numbers:
            states = partition_states(claim["name"], of_id and of_id[1], int(number), group, context)
            replicas |= {broker for state in states for broker in integers(state["replicas"])}
    return topics, replicas


def longest_quiet_s(uses: Collection[Claim], endpoint: str, wait: Streak) -> float:
    """The longest time within a wait in which the server answered no write of the client at all. A queue of writes that
    it answers one after the other takes as long for each of them, and gets on. Of several that were late in one slot
    only the last answer is known: the first may have come as the slot began.
    """
    found = [wait.first_ns, wait.last_ns]
    for outcomes in (use.outcomes for use in uses if use["endpoint"] == endpoint):
        for run in outcomes.runs({SUCCESS}):
            found += [run.first_ns, run.last_ns]
        for slot, parts in outcomes.of(LATE).items():
            for run in parts.values():
                found += [run.last_ns, *([start_ns(slot)] if run.count > 1 else [])]
    within = sorted(ts_ns for ts_ns in found if wait.first_ns <= ts_ns <= wait.last_ns)
    return max((later - before for before, later in pairwise(within)), default=0) / SECOND_NS


def numbered_partitions(numbers: Collection[int]) -> str:
    """`partitions 0, 2 and 5 more`."""
    left = len(numbers) - MOST_NUMBERS
    shown = ", ".join(map(str, sorted(numbers)[:MOST_NUMBERS])) + (f" and {left} more" if left > 0 else "")
    return f"partition{'' if len(numbers) == 1 else 's'} {shown}"


def too_few_replicas_in_sync(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    for claim in rejected_writes(NOT_ENOUGH_REPLICAS, subject, group, context):
        streak = stuck(claim.outcomes, {NOT_ENOUGH_REPLICAS}, context)
        if streak is not None:
            yield refused_writer(claim, streak, {}, context, **of_topic_by(subject, claim, group, context))


def rejected_writes(error: int, subject: Subject, group: Group, context: CheckContext) -> Iterator[Claim]:
    """Answers to writes with an error among them: by topic ID, or, of producers that name topics, by client."""
    by_id = subject[0] == "id"
    errors = context.claims("refused" if by_id else "named_answer", group, *subject)
    if any(claim["api"] == "Produce" and error in claim.outcomes for claim in errors):
        every = context.claims("use", group, *subject) if by_id else errors
        yield from (with_unseen(claim, group, context) for claim in every if claim["api"] == "Produce")


def allowed_to_write_ms(claim: Claim, group: Group, context: CheckContext) -> int | None:
    """The longest time that a client lets the broker take for a write; None if it is not known."""
    context.watch()
    mine = context.claims("client", group, "client", claim["client_id"] or "", claim["host"])
    known = [one.peak.get("timeout_ms", -1) for one in mine if one["endpoint"] == claim["endpoint"]]
    return max((ms for ms in known if ms >= 0), default=None)


def of_topic_by(subject: Subject, claim: Claim, group: Group, context: CheckContext) -> dict[str, Any]:
    """The topic that was written to, by its ID or by its name alone."""
    return of_id(subject, group, context) if subject[0] == "id" else {"topic": claim["name"]}


def refused_writer(
    claim: Claim, streak: Streak, words: dict[str, Any], context: CheckContext, **about: Any
) -> Evidence:
    topic = about["topic_ids"][0] if "topic_ids" in about else about["topic"]
    key = (topic, claim["client_id"], claim["host"], context.node(claim))
    return stuck_client(claim, streak, *key, context=context, words=words, **about, last_ns=streak.last_ns)


def partition_without_leader(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """For so long that a client that writes or reads the topic was stuck. One that only asks, as a monitor does, does
    not count. Where its writes and reads went to brokers that were not captured, it must ask as often as one that
    waits.
    """
    name = subject[1]
    bound = [claim for claim in context.claims("binding", group, *subject) if claim["topic_id"] not in {None, ZERO}]
    by_name = context.claims("unnumbered", group, *subject)
    for (topic_id,), claims in gathered(context.claims("leaderless", group, *subject), lambda c: (id_of(c, bound),)):
        states = by_name + (context.claims("partition", group, "id", topic_id) if topic_id else [])
        users = users_by_id(name, group, context)
        context.watch()
        stuck: dict[tuple[str | None, str], dict[int, Streak]] = {}
        for who, answers in gathered(claims, lambda claim: (claim["client_id"], claim["host"])):
            client = ("client", who[0] or "", who[1])
            named = [claim for claim in context.claims("named_answer", group, *client) if claim["name"] == name]
            used = who in users or any(claim["api"] in WRITES_AND_READS for claim in named)
            if not is_internal(who[0]) and (used or (asks_by_name(answers) and works(client, group, context))):
                found = without_leader(answers, named, states).items()
                long = {number: one for number, one in found if used or waits_for_a_leader(one)}
                long = {number: one for number, one in long.items() if is_unavailable(one, context.settings)}
                stuck |= {who: long} if long else {}
        if stuck:
            mine = [claim for claim in claims if (claim["client_id"], claim["host"]) in stuck]
            yield leaderless(mine, [*stuck.values()], states, topic=name, topic_id=topic_id)


def id_of(claim: Claim, bound: list[Claim]) -> str | None:
    """The ID of a topic that a claim is about; where it gives the name alone, the ID that the name got last then."""
    if claim["topic_id"] not in {None, ZERO}:
        return str(claim["topic_id"])
    known = [one for one in bound if one.first.ts_ns <= claim.last.ts_ns]
    return str(max(known, key=lambda one: one.first)["topic_id"]) if known else None


MOST_NUMBERS = 16
"""So many partitions are named; the others are counted."""


def leaderless(
    claims: list[Claim], stuck: list[dict[int, Streak]], states: list[Claim], *, topic: str, topic_id: str | None
) -> Evidence:
    """`stuck`: by client and partition, when it got answers that there is no leader."""
    streaks = [one for found in stuck for one in found.values()]
    numbers = sorted({number for found in stuck for number in found})
    first_ns, last_ns = min(one.first_ns for one in streaks), max(one.last_ns for one in streaks)
    led = {state["partition"] for state in states if state["leader"] >= 0 and state.last_word.ts_ns > last_ns}
    without = [state for state in states if state["partition"] in numbers and state["leader"] < 0]
    replicas = {broker for state in without for broker in integers(state["replicas"])}
    over = led.issuperset(numbers)
    words: dict[str, Any] = {"clients": len(stuck)}
    words["partitions"] = numbered_partitions(numbers)
    words |= {"had": "had" if over else "has had", "cannot": "could not" if over else "cannot"}
    words |= {"since": f"{'from' if over else 'since'} {clock(first_ns)}"}
    words |= {"until": f" until {clock(last_ns)}" if over else ""}
    about = {"topic": topic, "topic_ids": (topic_id,) if topic_id else (), "client_ids": clients_of(claims)}
    times = {"first_ns": first_ns, "last_ns": last_ns, "count": sum(one.count for one in streaks)}
    brokers = tuple(sorted(replicas))
    return resting_on(claims, topic, topic_id or "", **about, brokers=brokers, **times, words=words)


def coordinator_unavailable(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    answers = context.claims("activity", group, *subject)
    claims = [claim for claim in answers if claim["api"] == FIND_COORDINATOR]
    longest = without_coordinator(claims)
    if longest is not None and longest.is_long(context.settings) and not is_internal(subject[1]):
        times = {"first_ns": longest.first_ns, "last_ns": longest.last_ns, "count": longest.count}
        words = {"since": clock(longest.first_ns)}
        yield resting_on(claims, *subject[1:], client_ids=(claims[0]["client_id"],), **times, words=words)


def missing_topic_in_use(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """For so long that a client that wrote or read the topic was stuck. Others may wait for its creation."""
    name, claims = subject[1], context.claims("unknown_topic", group, *subject)
    if not claims:
        return
    bound = [claim for claim in context.claims("binding", group, *subject) if claim["topic_id"] not in {None, ZERO}]
    named_ns, users = [claim.first.ts_ns for claim in bound], users_by_id(name, group, context)
    context.watch()
    stuck: dict[tuple[str | None, str], Streak] = {}
    was_there = False
    for who, answers in gathered(claims, lambda claim: (claim["client_id"], claim["host"])):
        by_name = context.claims("named_answer", group, "client", who[0] or "", who[1])
        uses = [claim for claim in by_name if claim["name"] == name and claim["api"] in WRITES_AND_READS]
        served = [run for claim in (*uses, *users.get(who, ())) for run in claim.outcomes.runs({SUCCESS})]
        unasked = [] if served else writes_unasked(who, name, bound, group, context)
        longest = None if is_internal(who[0]) else without_used_topic(answers, served, unasked, named_ns)
        if longest is not None and is_unavailable(longest, context.settings):
            stuck[who] = longest
            used_ns = (run.first_ns for run in (*served, *unasked))
            was_there |= any(ts_ns < longest.first_ns for ts_ns in (*named_ns, *used_ns))
    if stuck:
        mine = [claim for claim in claims if (claim["client_id"], claim["host"]) in stuck]
        found = missing(name, mine, [*stuck.values()], bound, was_there=was_there)
        first_ns = min(one.first_ns for one in stuck.values())
        deleted = deleted_by(subject, group, first_ns, context) if was_there else {}
        yield replace(found, words={**found.words, **deleted})


def deleted_by(subject: Subject, group: Group, since_ns: int, context: CheckContext) -> dict[str, Any]:
    """Who deleted a topic last before a time, or while it was asked for in the first slot, if one only can be that."""
    changes = [claim for claim in context.claims("changed", group, *subject) if claim["action"] == DELETE_TOPICS]
    before = [claim for claim in changes if claim.first.ts_ns < since_ns + SLOT_NS]
    last_ns = max((claim.first.ts_ns for claim in before), default=0)
    last = [claim for claim in before if claim.first.ts_ns > last_ns - SLOT_NS]
    words = as_words("deleted", the_only(last, shown=bool(context.settings.principals)))
    return {**words, "ended": clock(min(claim.first.ts_ns for claim in last))} if words else {}


def missing(name: str, claims: list[Claim], stuck: list[Streak], bound: list[Claim], *, was_there: bool) -> Evidence:
    """`stuck`: when each client asked; `bound`: who gives the topic an ID; `was_there`: it existed before."""
    first_ns, last_ns = min(one.first_ns for one in stuck), max(one.last_ns for one in stuck)
    back = any(claim["source"] == REPORTED and claim.last.ts_ns > last_ns for claim in bound)
    words: dict[str, Any] = {"clients": len(stuck), "answered": "answered" if back else "have answered"}
    words["since"] = f"{'from' if back else 'since'} {clock(first_ns)}"
    words["until"] = f" until {clock(last_ns)}" if back else ""
    words |= {"later": "" if was_there else " later"} | ({} if was_there else {"not_yet": "yes"})
    topic_ids = (max(bound, key=lambda claim: claim.first)["topic_id"],) if bound else ()
    times = {"first_ns": first_ns, "last_ns": last_ns, "count": sum(one.count for one in stuck)}
    about = {"topic": name, "topic_ids": topic_ids, "client_ids": clients_of(claims)}
    return resting_on(claims, name, **about, **times, words=words)


def address_refuses_connections(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Of an address that brokers name although nothing listens there. They stop naming a broker that is down; of one
    that answers again it is unknown whether they named it meanwhile. Who never answered is in no cluster, so those who
    name it may be of any.
    """
    claims = context.claims("turned_away", group, *subject)
    answers = context.claims("answered", group, *subject) if claims else []
    served = [run for claim in answers for run in claim.outcomes.runs({SUCCESS})]
    longest = longest_outage(together(claims).runs({TURNED_AWAY}), (), served, REFUSED_AGAIN_NS)
    if longest is None or not is_unavailable(longest, context.settings):
        return
    if any(run.last_ns > longest.first_ns for run in served):
        return
    context.watch()
    endpoint, named_ns = subject[1], longest.first_ns + context.settings.broker_grace_ns
    listed = context.believed(("server",), "address")
    named = [claim for claim in listed if claim["address"] == endpoint]
    late = [claim for claim in named if claim.last.ts_ns >= named_ns]
    if late := late or [claim for claim in named if lives_elsewhere(claim, listed, named_ns, context)]:
        node = max(late, key=lambda claim: claim.last.ts_ns)["broker"]
        words = {"endpoint": endpoint, "node": node, "since": clock(longest.first_ns)}
        if served:
            words["served"] = clock(max(run.last_ns for run in served))
        hosts = {claim["host"] for claim in claims}
        cut_off = longest.seconds >= context.settings.cut_off_s
        naming = {claim["endpoint"] for claim in named}
        client_ids = tuple(shut_out(hosts, naming, node, longest, context)) if cut_off else ()
        about = {"brokers": (node,), "client_ids": client_ids, "count": longest.count}
        times = {"first_ns": longest.first_ns, "last_ns": longest.last_ns}
        yield resting_on([*claims, *late], endpoint, **about, **times, words=words)


def lives_elsewhere(named: Claim, listed: Iterable[Claim], since_ns: int, context: CheckContext) -> bool:
    """Whether the server that names an address is the broker itself, at another one: it lists that broker alone, and a
    connection to it goes on. Some clients ask it once only.
    """
    server = named["endpoint"]
    alone = all(claim["address"] == named["address"] for claim in listed if claim["endpoint"] == server)
    alive = (one for one in context.believed(("server",), "server") if one["endpoint"] == server)
    return server != named["address"] and alone and any(one.last.ts_ns >= since_ns for one in alive)


def tls_handshakes_fail(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Per host. Who once completed a handshake since then is no client that cannot."""
    encrypted = context.claims("encrypted", group, *subject)
    for claim in context.claims("tls_failed", group, *subject):
        longest = longest_outage(claim.outcomes.runs({CLOSED}), (), (), REFUSED_AGAIN_NS)
        if longest is None or not longest.is_long(context.settings):
            continue
        if any(one["host"] == claim["host"] and one.last.ts_ns >= longest.first_ns for one in encrypted):
            continue
        speaks = any(True for _ in context.claims("answered", group, *subject))
        words = {"host": claim["host"], "server": servers_of([claim], context), "seconds": f"{longest.seconds:.0f}"}
        words["plain"] = "; it answers others without TLS" if speaks else ""
        about = {"count": longest.count, "first_ns": longest.first_ns, "last_ns": longest.last_ns}
        yield resting_on([claim], claim["host"], subject[1], **about, words=words)


def connections_refused(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Per host, at an address that no broker names and where nothing answered. Clients try `::1` first where a name has
    both addresses.
    """
    endpoint, claims = subject[1], context.claims("turned_away", group, *subject)
    found = [(claim, longest_outage(claim.outcomes.runs({TURNED_AWAY}), (), (), REFUSED_AGAIN_NS)) for claim in claims]
    long = [(claim, one) for claim, one in found if one is not None and one.is_long(context.settings)]
    if not long or any(True for _ in context.claims("answered", group, *subject)):
        return
    context.watch()
    others = {endpoint, endpoint.replace("[::1]", "127.0.0.1")}
    servers = context.believed(("server",), "server", "address")
    if any(one.kind == "address" and one["address"] == endpoint for one in servers):
        return
    if any(one["endpoint"] in others and one.peak.get("answers") for one in servers if one.kind == "server"):
        return
    for claim, one in long:
        words = {"host": claim["host"], "endpoint": endpoint, "seconds": f"{one.seconds:.0f}"}
        about = {"count": one.count, "first_ns": one.first_ns, "last_ns": one.last_ns}
        yield resting_on([claim], claim["host"], endpoint, **about, words=words)


def shut_out(
    hosts: set[str], naming: Collection[str], node: int, outage: Streak, context: CheckContext
) -> Iterator[str]:
    """The clients on these hosts that asked a server which names the address, and reached the broker at no address
    since then, or shortly before. Of several on one host it is unknown whose connections were refused: those count
    that ask for metadata again and again, and get no further anywhere, or write or read elsewhere meanwhile. Those
    count as well that were served there until then, and look for it since.
    """
    found: dict[str, list[str]] = {}
    looking, alone = set[tuple[str, str]](), Counter[str]()
    for subject in context.ledger.subjects("client"):
        _, client_id, host = subject
        if host not in hosts or is_internal(client_id):
            continue
        every = context.ledger.claims("client", *subject)
        asked = [one for one in every if one.last.ts_ns >= outage.first_ns - ASKS_AGAIN_NS]
        if not any(one["endpoint"] in naming for one in asked):
            continue
        alone[host] += 1
        there = {one["endpoint"] for one in asked if is_known_as(one["endpoint"], node, outage, context)}
        again = looks_again(subject, outage, context)
        if not there or (again and not works_on(subject, there, outage, context)):
            found.setdefault(host, []).append(client_id)
            apis = {word.partition(":")[0] for one in every for word in one.tally}
            often = sum(one.count for one in every) >= context.settings.stuck_answers
            if again or (apis <= LOOKS and often):
                looking.add((host, client_id))
    for host, clients in sorted(found.items()):
        yield from sorted(one for one in clients if alone[host] == 1 or (host, one) in looking)


def looks_again(subject: Subject, outage: Streak, context: CheckContext) -> bool:
    """Whether a client that writes or reads asks for metadata, or for its coordinator, all the time: by themselves
    clients do that once in some minutes. Who did so before, at least half as often, is configured to; of whom too
    little was seen before has to ask as often as is seldom configured.
    """
    every = context.ledger.claims("activity", *subject)
    works = any(one["api"] in WRITES_AND_READS for one in every)
    begun, ended = outage.first_ns // SLOT_NS, outage.last_ns // SLOT_NS + 1
    seen = begun - 1 - min((one.first.ts_ns // SLOT_NS for one in every), default=begun)
    asked = ([run for one in every if one["api"] == api for run in one.outcomes.runs()] for api in SEARCHES)
    return works and any(
        asks_often(runs, begun, ended) and asks_more(runs, begun, ended, min(seen, LOOKED_BEFORE)) for runs in asked
    )


def works_on(subject: Subject, endpoints: Collection[str], outage: Streak, context: CheckContext) -> bool:
    """Whether a client is served there since then, besides what it asks to find a broker: the addresses that it began
    with may be another listener's.
    """
    mine = (one for one in context.ledger.claims("activity", *subject) if one["endpoint"] in endpoints)
    runs = (run for one in mine if one["api"] not in LOOKS for run in one.outcomes.runs({SUCCESS}))
    return any(run.last_ns > outage.first_ns for run in runs)


def asks_often(runs: Iterable[Run], begun: int, ended: int) -> bool:
    """Whether requests are in half of these slots."""
    slots = {
        run.first_ns // SLOT_NS for run in runs if begun <= run.last_ns // SLOT_NS and run.first_ns // SLOT_NS < ended
    }
    return len(slots) >= LOOKS_AGAIN and 2 * len(slots) >= ended - begun


def asks_more(runs: Iterable[Run], begun: int, ended: int, seen: int) -> bool:
    """Whether there are twice as many requests in these slots as in so many of those before, without the last one of
    these: trouble begins before the first refused connection.
    """
    by_slot = [(run.first_ns // SLOT_NS, run.count) for run in runs]
    count = sum(count for slot, count in by_slot if begun <= slot < ended)
    if seen < SEEN_BEFORE:
        return count >= PER_SLOT * (ended - begun)
    before = sum(count for slot, count in by_slot if begun - 1 - seen <= slot < begun - 1)
    return count * seen >= 2 * before * (ended - begun)


LOOKED_BEFORE, SEEN_BEFORE = 6, 3
"""In so many slots before the first refused connection its own rhythm is looked for, and in no fewer."""
LOOKS_AGAIN = 5
"""In so many slots of 10 s, and in half of them, a client asks for metadata."""
PER_SLOT = 2
"""Clients are seldom configured to ask for metadata more often than every 5 s."""


def is_known_as(endpoint: str, node: int, outage: Streak, context: CheckContext) -> bool:
    """Whether an endpoint is a broker's, and was not named for it only after the outage: what is advertised changes."""
    if context.clusters.broker(endpoint, outage.last_ns) != node:
        return False
    named = [one.first.ts_ns for one in context.believed(("server",), "address") if one["address"] == endpoint]
    return not named or min(named) <= outage.last_ns


class Away(NamedTuple):
    """A time in which no server of a cluster answered, and what clients were refused in it."""

    since_ns: int
    """The last answer before it; 0 where the capture begins later."""
    until_ns: int
    """The first answer after it; 0 where there is none."""
    refused: list[tuple[str, Run]]
    """By address."""

    @property
    def first_ns(self) -> int:
        return self.since_ns or min(run.first_ns for _, run in self.refused)

    @property
    def last_ns(self) -> int:
        return self.until_ns or max(run.last_ns for _, run in self.refused)

    @property
    def asked_s(self) -> float:
        """For how long clients were refused."""
        times = [ts_ns for _, run in self.refused for ts_ns in (run.first_ns, run.last_ns)]
        return (max(times) - min(times)) / SECOND_NS


def all_brokers_away(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """One per time. Every broker that the cluster's servers named until then must have refused a client: of one that
    no client asked, and of brokers that were not captured, it is unknown whether they answered.
    """
    links = [("link", endpoint) for endpoint in sorted(group.endpoints)]
    refused = {link[1]: claims for link in links if (claims := context.claims("turned_away", group, *link))}
    if not refused:
        return
    context.watch()
    answers = [one for link in links for one in context.claims("answered", group, *link) if is_broker(one, context)]
    served = sorted((run.first_ns, run.last_ns) for one in answers for run in one.outcomes.runs({SUCCESS}))
    every = [(at, run) for at, claims in refused.items() for one in claims for run in one.outcomes.runs({TURNED_AWAY})]
    named = context.claims("address", group, *subject)
    for away in times_away(served, every):
        long = away.asked_s >= context.settings.unavailable_s and len(away.refused) >= context.settings.stuck_answers
        nodes = {one["broker"] for one in named if one.last.ts_ns >= away.first_ns - NAMED_UNTIL_NS}
        at = {address for address, _ in away.refused}
        if long and nodes and nodes <= {one["broker"] for one in named if one["address"] in at}:
            yield without_brokers(away, refused, sorted(nodes))
    if served:
        context.passed(served[-1][1] + context.settings.unavailable_s * SECOND_NS)


def times_away(served: list[tuple[int, int]], refused: list[tuple[str, Run]]) -> Iterator[Away]:
    """The times between answers in which a client was refused, in order."""
    begins, ends = [first_ns for first_ns, _ in served], [0]
    for _, last_ns in served:
        ends.append(max(ends[-1], last_ns))
    found: dict[int, list[tuple[str, Run]]] = {}
    for address, run in refused:
        found.setdefault(bisect(begins, run.first_ns), []).append((address, run))
    for place, within in sorted(found.items()):
        until_ns = begins[place] if place < len(begins) else 0
        mine = [one for one in within if one[1].first_ns > ends[place] and (not until_ns or one[1].last_ns < until_ns)]
        if mine:
            yield Away(ends[place], until_ns, mine)


def is_broker(answers: Claim, context: CheckContext) -> bool:
    """Whether a server answers what controllers of KRaft do not, or it is unknown what it answers."""
    known = [one for one in context.ledger.claims("accepts", "server") if one["endpoint"] == answers["endpoint"]]
    versions = {word.partition(":")[0] for one in known for word in one.peak}
    return not versions or not versions.isdisjoint(OF_BROKERS)


def without_brokers(away: Away, refused: Mapping[str, list[Claim]], nodes: list[int]) -> Evidence:
    claims = [claim for at in sorted({address for address, _ in away.refused}) for claim in refused[at]]
    when = f"from {clock(away.first_ns)} to {clock(away.last_ns)}" if away.until_ns else f"since {clock(away.first_ns)}"
    words = {"when": when, "seconds": f"{(away.last_ns - away.first_ns) / SECOND_NS:.0f}", "brokers": len(nodes)}
    words |= {"until": clock(away.until_ns)} if away.until_ns else {}
    count = sum(run.count for _, run in away.refused)
    times = {"first_ns": away.first_ns, "last_ns": away.last_ns, "count": count}
    return resting_on(claims, str(clock(away.first_ns)), brokers=tuple(nodes), **times, words=words)
