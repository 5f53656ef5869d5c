"""What checks share: claims that make one finding, errors that last, who sent a request, and whether all of it was
captured.

Rules: a finding shows the first and the last sighting of each of its claims and counts all of them, unless its check
states otherwise. A success ends a streak of errors. Where a slot of time has both, an error counts for a streak only if
it certainly came before the first success or after the last. The connections of one client are looked at together and
one by one: a success on one of them does not hide errors on another.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import reduce
from typing import Any

from wirecheck.client_ids import broker_of
from wirecheck.judge.check_context import STALE_CONTROLLER_EPOCH, CheckContext
from wirecheck.judge.claims.claim import (
    FIRST,
    LAST,
    LEAST,
    OTHERS,
    SLOT_NS,
    SUCCESS,
    WAITED,
    Claim,
    Run,
    Runs,
    Sighting,
    Subject,
    add_runs,
    every_run,
    slot_name,
)
from wirecheck.judge.ledger.connection_sums import BROKEN, CONTINUED
from wirecheck.judge.results.finding import Evidence, Side, first_of, last_of
from wirecheck.judge.thresholds import SECOND_NS, Settings
from wirecheck.judge.topic_history import History, Topic, name_of
from wirecheck.judge.topology.clusters import Group

PAUSE_NS = 5 * SECOND_NS
"""A client that is refused at one broker without a pause this long was refused there all the time."""
WINDOW = 3
"""Slots of 10 s."""
ASKS_AGAIN_NS = 10 * SECOND_NS
"""A client that is refused asks again within this time, at whatever broker."""
RETRY_NS = 30 * SECOND_NS
"""Clients that gave up connect again within 20 s, whatever library they use (reconnect.backoff.max.ms)."""


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
    long = [one for one in every if one.is_long(settings)]
    fast = [
        one
        for one in one_by_one
        if not one.ended
        and one.count >= settings.stuck_fast_answers
        and one.seconds >= settings.stuck_fast_s
        and not context.passed(one.last_ns + settings.stuck_pause_s * SECOND_NS)
    ]
    return max([*long, *fast], key=lambda streak: (streak.seconds, streak.count), default=None)


def refused_in_part(claim: Claim, bad: Collection[int], settings: Settings) -> Streak | None:
    """The longest time in which errors were a good part of a client's answers, whatever succeeded between: at least one
    in `partly_one_in` in each window of three slots, so often and so long as a streak that makes it stuck.
    """
    errors = {int(slot): found for slot, found in of_errors(claim.runs, bad, None).items()}
    good = {int(slot): one.count for slot, one in of_successes(claim.runs, None).items()}
    parts = [list[Streak]()]
    for number in range(min(errors, default=0), max(errors, default=-1) + 1):
        window = range(number - WINDOW + 1, number + 1)
        failed = sum(one.count for at in window for one in errors.get(at, ()))
        if not failed or failed * settings.partly_one_in < failed + sum(good.get(at, 0) for at in window):
            parts += [[]] if parts[-1] else []
            continue
        for one in errors.get(number, ()):
            if parts[-1] and one.first_ns > parts[-1][-1].last_ns + ASKS_AGAIN_NS:  # perhaps it was served meanwhile
                parts.append([])
            parts[-1].append(one)
    every = (reduce(Streak.joined, part) for part in parts if part)
    last_ns = max((run[LAST] for run in every_run(claim.runs, {SUCCESS})), default=0)
    long = (replace(one, ended=one.last_ns < last_ns) for one in every if one.is_long(settings))
    return max(long, key=lambda streak: (streak.seconds, streak.count), default=None)


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


def without_pause(runs: Iterable[Run], pause_ns: int = RETRY_NS) -> list[Streak]:
    """Streaks in which a client asked again before a pause, oldest first."""
    found: list[Streak] = []
    for count, first_ns, last_ns in sorted(runs, key=lambda run: run[FIRST:]):
        one = Streak(count, first_ns, last_ns)
        if found and first_ns <= found[-1].last_ns + pause_ns:
            found[-1] = found[-1].joined(one)
        else:
            found.append(one)
    return found


def with_unseen(claim: Claim, group: Group, context: CheckContext) -> Claim:
    """With a success in each long pause between errors of which bytes were not captured, as one may have been there.
    Gaps further apart than a pause, as of 2 % of packets lost, do not hide what a client does all the time.
    """
    missing = context.claims("missing", group, "link", claim["endpoint"])
    spans = ((one.first.ts_ns, one.last.ts_ns, one.count) for one in missing if one["host"] == claim["host"])
    unseen = [(begin, end) for begin, end, gaps in spans if end - begin <= PAUSE_NS * gaps]
    return with_successes(
        claim,
        lambda last_ns, first_ns: any(
            begin <= first_ns + PAUSE_NS and end >= last_ns - PAUSE_NS for begin, end in unseen
        ),
    )


def with_successes(claim: Claim, between: Callable[[int, int], bool]) -> Claim:
    """With a success in each long pause between errors where `between` finds one, of the last error before the pause
    and the first after it.
    """
    errors = sorted((run[FIRST], run[LAST]) for run in every_run(claim.runs, claim.runs.keys() - {SUCCESS}))
    if not errors:
        return claim
    found, last_ns = claim, errors[0][1]
    for first_ns, until_ns in errors[1:]:
        if first_ns - last_ns >= PAUSE_NS and between(last_ns, first_ns):
            found = found if found is not claim else claim.copy()
            add_runs(found.runs, {SUCCESS: {slot_name(first_ns // SLOT_NS): {OTHERS: [1, first_ns - 1, first_ns - 1]}}})
        last_ns = max(last_ns, until_ns)
    return found


def storm(runs: Iterable[Run]) -> Streak:
    """The longest time of errors without a long pause."""
    return max(without_pause(runs), key=lambda streak: (streak.seconds, streak.count), default=Streak(0, 0, 0))


def answers_as(broker: int, claims: Iterable[Claim], context: CheckContext) -> list[Run]:
    """What claims' endpoints answered while they were this broker's."""
    at = context.clusters.broker
    return [run for claim in claims for run in every_run(claim.runs) if at(claim["endpoint"], run[FIRST]) == broker]


def waits(claim: Claim) -> list[Streak]:
    """When a client waited without a response, oldest first."""
    return without_pause(every_run(claim.runs, {WAITED}))


def longest_wait(claim: Claim, context: CheckContext) -> Streak | None:
    """The longest of them that hurts its client, which then had to give up."""
    hurts = (one for one in waits(claim) if one.seconds >= context.settings.patience_s)
    return max(hurts, key=lambda one: (one.seconds, -one.first_ns), default=None)


def goes_on(claim: Claim, since_ns: int, for_ns: int) -> bool:
    """Whether something was stated repeatedly for this long after a time. A peer that was paused answers the waiting
    requests from what it knew before. That lasts for a moment only, however late it is.
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


Key = tuple[Any, ...]


def clock(ts_ns: int) -> str:
    """As 2026-11-21 00:10:25.616 UTC."""
    seconds, rest = divmod(ts_ns, 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}.{rest // 1_000_000:03d} UTC"


def about(ts_ns: int) -> str:
    """A time that is known to a slot of 10 s only: as about 2026-11-21 00:10:20 UTC."""
    return f"about {datetime.fromtimestamp(ts_ns // 1_000_000_000, UTC):%Y-%m-%d %H:%M:%S} UTC"


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def gathered(claims: Iterable[Claim], by: str | Callable[[Claim], Key]) -> list[tuple[Key, list[Claim]]]:
    """Claims that make one finding, by fields of their keys or by what a function makes of each; in order."""
    found: dict[Key, list[Claim]] = {}
    fields = by.split() if isinstance(by, str) else ()
    for claim in claims:
        key = tuple(claim[field] for field in fields) if isinstance(by, str) else by(claim)
        found.setdefault(key, []).append(claim)
    return sorted(found.items(), key=lambda item: str(item[0]))


def ends(claims: Iterable[Claim]) -> tuple[Side, ...]:
    """The first and the last sighting of each."""
    return tuple(side for claim in claims for side in (first_of(claim), last_of(claim)))


def resting_on(claims: Collection[Claim], *key: Any, **columns: Any) -> Evidence:
    """One finding of these claims."""
    return Evidence(key, **{"sides": ends(claims), "count": sum(claim.count for claim in claims), **columns})


def of_link(claim: Claim, context: CheckContext, **words: Any) -> Evidence:
    """One finding per client host and endpoint."""
    host, endpoint = claim["host"], claim["endpoint"]
    words = {"host": host, "server": servers_of([claim], context), **words}
    return resting_on([claim], host, endpoint, words=words)


def of_id(subject: Subject, group: Group, context: CheckContext) -> dict[str, Any]:
    return {"topic": name_of(subject, group, context), "topic_ids": (subject[1],)}


def by_id_and_name(kind: str, subject: Subject, name: str | None, group: Group, context: CheckContext) -> list[Claim]:
    """Claims of one kind about a topic ID, and those that give its name alone."""
    by_name = context.claims(kind, group, "name", name) if name is not None else []
    return [*context.claims(kind, group, *subject), *by_name]


def of_topic(topic: Topic, *histories: History) -> dict[str, Any]:
    return {"topic": topic.name, "topic_ids": tuple(history.topic_id for history in histories)}


def clients_of(claims: Iterable[Claim]) -> tuple[str | None, ...]:
    return tuple(sorted({claim["client_id"] for claim in claims}, key=str))


def apis_of(claims: Iterable[Claim]) -> str:
    return ", ".join(sorted({claim["api"] for claim in claims}))


def brokers_of(claims: Iterable[Claim], context: CheckContext) -> tuple[int | None, ...]:
    return tuple(context.broker(claim) for claim in claims)


def if_broker(node: int | str) -> tuple[int, ...]:
    """What is known of a node (`CheckContext.node`) as a column."""
    return (node,) if isinstance(node, int) else ()


def server_name(endpoint: str, ts_ns: int, context: CheckContext) -> str:
    """The broker's number with its address in parentheses."""
    context.watch()  # which broker it is may become known later
    broker = context.clusters.broker(endpoint, ts_ns)
    return endpoint if broker is None else f"broker {broker} ({endpoint})"


def servers_of(claims: Iterable[Claim], context: CheckContext) -> str:
    """One server by its name, several by their numbers as far as these are known."""
    last = {claim["endpoint"]: claim.last.ts_ns for claim in sorted(claims, key=lambda claim: claim.last)}
    if len(last) == 1:
        return server_name(*last.popitem(), context)
    context.watch()
    brokers = {endpoint: context.clusters.broker(endpoint, ts_ns) for endpoint, ts_ns in last.items()}
    numbers = sorted({number for number in brokers.values() if number is not None})
    unknown = sorted(endpoint for endpoint, number in brokers.items() if number is None)
    return ", ".join([*numbered(numbers), *unknown])


def numbered(brokers: Sequence[int]) -> list[str]:
    """`broker 1` or `brokers 1, 2`, as one part of a list; empty without brokers."""
    noun = "broker" if len(brokers) == 1 else "brokers"
    return [f"{noun} {', '.join(map(str, brokers))}"] if brokers else []


def members(claim: Claim, parts: int) -> Iterator[tuple[str, Sighting, list[Any]]]:
    """Of a claim's set each member's name there, where it was seen last, and so many parts that are kept with it."""
    for name, value in claim.peak.items():
        if name.startswith(LEAST):
            yield name, Sighting(*value[:-parts]), value[-parts:]


def with_former(claim: Claim, subject: Subject, group: Group, context: CheckContext) -> Claim:
    """The claim with the responses that its client got at the same address while that led to other clusters. A streak
    of errors continues when the address changes its cluster.
    """
    former = [] if context.clusters.alone else context.clusters.formerly(group)
    if not former:
        return claim
    found = claim.copy()
    for one in former:
        for other in context.claims(claim.kind, one, *subject):
            if other.key == claim.key and other.last.ts_ns <= claim.first.ts_ns:
                add_runs(found.runs, other.runs)
    return found


def lasting(
    claims: Iterable[Claim], errors: Collection[int], apis: Collection[str] | None, context: CheckContext
) -> Iterator[tuple[Claim, Streak]]:
    """Claims about answers of some APIs, or all, with errors that make a client stuck, and from when to when."""
    for claim in claims:
        if (apis is None or claim["api"] in apis) and (streak := stuck(claim, errors, context)) is not None:
            yield claim, streak


def stuck_client(
    claim: Claim, streak: Streak, *key: Any, context: CheckContext, words: dict[str, Any], **columns: Any
) -> Evidence:
    """One client that one server rejects, since when."""
    about = {"client_ids": (claim["client_id"],), "brokers": (context.broker(claim),), "count": streak.count}
    words = {"since": clock(streak.first_ns), **words}
    return resting_on([claim], *key, **{**about, "first_ns": streak.first_ns, **columns}, words=words)


def requesters(claims: Iterable[Claim], group: Group, context: CheckContext) -> dict[str, str]:
    """The brokers among the senders, by number, as words of a finding. A client ID proves nothing: it counts only from
    a host that acts as that broker. If a broker is the only client, it is called by its number.
    """
    named = {(broker_of(claim["client_id"]), claim["host"]) for claim in claims}
    brokers = {broker for broker, host in named if broker is not None and context.acts_as(broker, host, group)}
    words = {"requester": ",".join(map(str, sorted(brokers)))}
    return words | ({"client": f"broker {words['requester']}"} if len(brokers) == len(named) == 1 else {})


def stale_controllers(group: Group, context: CheckContext) -> set[str]:
    """Controllers, as controller@epoch, of which a broker rejected a request as outdated."""
    context.watch()
    return {
        f"{claim['controller']}@{claim['controller_epoch']}"
        for claim in context.claims("control", group, "server")
        if claim["error"] == STALE_CONTROLLER_EPOCH
    }


def whole(first_ns: int, last_ns: int, group: Group, context: CheckContext) -> bool:
    """Whether the requests to the servers of a cluster during that time were captured without a gap."""
    context.watch()
    gaps = (
        span for endpoint in group.endpoints for busy in context.ledger.claims("busy", "link", endpoint)
        for span in busy.peak["gaps"]
    )  # fmt: skip
    return not any(begin_ns <= last_ns and first_ns <= end_ns for begin_ns, end_ns in gaps)


def controllers_named(by: Iterable[str]) -> str:
    """`3@1` as 3 (epoch 1)."""
    return ", ".join(f"{controller} (epoch {epoch})" for controller, _, epoch in (one.partition("@") for one in by))


def seen_whole(client_id: str | None, host: str, endpoints: set[str], group: Group, context: CheckContext) -> bool:
    """Whether all requests of a client to these endpoints, and the responses, are in the capture. After one gap, one
    undecoded message or a beginning that was not captured, nothing counts as missing. A connection whose client is
    unknown may be any client's.
    """
    return not any(BROKEN in partly(client_id, host, endpoint, group, context) for endpoint in sorted(endpoints))


def all_begun(client_id: str | None, host: str, endpoint: str, group: Group, context: CheckContext) -> bool:
    """Whether every connection of a client began a new fetch session. A connection that continues a session has
    partitions that were requested on another one, perhaps before the capture.
    """
    return CONTINUED not in partly(client_id, host, endpoint, group, context)


def partly(client_id: str | None, host: str, endpoint: str, group: Group, context: CheckContext) -> set[str]:
    """Why not everything is known of the connections that are, or may be, a client's."""
    return {
        claim["what"]
        for claim in context.claims("partial", group, "link", endpoint)
        if claim["host"] == host and (claim["anybodys"] or claim["client_id"] == client_id)
    }
