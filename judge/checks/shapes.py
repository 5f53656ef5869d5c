"""What checks share: claims that make one finding, who sent a request, and whether all of it was captured.

Rule: a finding shows the first and the last sighting of each of its claims and counts all of them, unless its check
states otherwise.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from wirecheck.client_ids import broker_of
from wirecheck.decode.peer import Peer
from wirecheck.judge.check_context import STALE_CONTROLLER_EPOCH, CheckContext
from wirecheck.judge.claims.claim import AT, LEAST, Claim, Sighting, Subject
from wirecheck.judge.claims.outcomes import MOST_SLOTS, SLOT_NS, UNSEEN, Run
from wirecheck.judge.claims.seconds import at_second
from wirecheck.judge.ledger.connection_sums import (
    ANSWERS,
    BROKEN,
    CONTINUED,
    LASTED,
    MIDWAY,
    MOMENT_NS,
    MUCH,
    NOT_YET_NS,
    SIZE,
    UNTIMED,
)
from wirecheck.judge.results.finding import Evidence, Side, Time, first_of, last_of
from wirecheck.judge.streaks import (
    PAUSE_NS,
    SENT_ELSEWHERE,
    Streak,
    longest_of,
    served_elsewhere,
    stuck,
    together,
    with_runs,
    with_successes,
    without_pause,
)
from wirecheck.judge.thresholds import SECOND_NS
from wirecheck.judge.topic_history import History, Topic, name_of
from wirecheck.judge.topology.clusters import Group
from wirecheck.wording import number_list


def with_unseen(claim: Claim, group: Group, context: CheckContext) -> Claim:
    """With a success in each long pause between errors of which bytes were not captured, as one may have been there.
    Gaps further apart than a pause, as of 2 % of packets lost, do not hide what a client does all the time. Where a
    broker was not captured, a client may be served there.
    """
    if not SENT_ELSEWHERE.isdisjoint(claim.outcomes.codes()) and context.clusters.uncaptured([group]):
        claim = with_runs(claim, served_elsewhere(claim.outcomes, claim.outcomes.errors()))
    missing = context.claims("missing", group, "link", claim["endpoint"])
    spans = ((one.first.ts_ns, one.last.ts_ns, one.count) for one in missing if one["host"] == claim["host"])
    unseen = [(begin, end) for begin, end, gaps in spans if end - begin <= PAUSE_NS * gaps]
    return with_successes(
        claim,
        lambda last_ns, first_ns: any(
            begin <= first_ns + PAUSE_NS and end >= last_ns - PAUSE_NS for begin, end in unseen
        ),
    )


def storm(runs: Iterable[Run]) -> Streak:
    """The longest time of errors without a long pause."""
    return longest_of(without_pause(runs)) or Streak(0, 0, 0)


def answers_as(broker: int, claims: Iterable[Claim], context: CheckContext) -> list[Run]:
    """What claims' endpoints answered while they were this broker's."""
    at = context.clusters.broker
    return [run for claim in claims for run in claim.outcomes.runs() if at(claim["endpoint"], run.first_ns) == broker]


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
MINUTE_NS = 60_000_000_000
OF_ALL_LISTENERS = frozenset({"UpdateMetadata", "LeaderAndIsr", "BrokerRegistration"})


def clock(ts_ns: int) -> Time:
    """As 2026-11-21 00:10:25.616 UTC."""
    return Time(ts_ns)


def about(ts_ns: int) -> str:
    """A time that is known to a slot of 10 s only: as about 2026-11-21 00:10:20 UTC."""
    return f"about {datetime.fromtimestamp(ts_ns // 1_000_000_000, UTC):%Y-%m-%d %H:%M:%S} UTC"


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


QUOTA_ENDS_NS = 5 * SECOND_NS
"""Within so much of the end of a quota's wait, what waited for it is read and answered."""


def gathered(claims: Iterable[Claim], by: str | Callable[[Claim], Key]) -> list[tuple[Key, list[Claim]]]:
    """Claims that make one finding, by fields of their keys or by what a function makes of each; in order."""
    found = by_key(claims, by)
    return sorted(found.items(), key=lambda item: str(item[0])) if len(found) > 1 else [*found.items()]


def by_key(claims: Iterable[Claim], by: str | Callable[[Claim], Key]) -> dict[Key, list[Claim]]:
    """Claims by fields of their keys or by what a function makes of each: for looking up, as claims of all partitions
    are not gone through for each of them. Those of one kind and subject: `CheckContext.by`.
    """
    found: dict[Key, list[Claim]] = {}
    fields = by.split() if isinstance(by, str) else ()
    for claim in claims:
        key = tuple(claim[field] for field in fields) if isinstance(by, str) else by(claim)
        found.setdefault(key, []).append(claim)
    return found


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
    return [f"{noun} {', '.join(number_list(brokers))}"] if brokers else []


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
                found.outcomes.merge(other.outcomes)
    return found


def by_server(activities: Collection[Claim], outcomes: set[int]) -> list[Claim]:
    """What each server answered each API of a client, whatever the outcome, as one claim; empty where none of these
    outcomes is among it, as of nearly all clients.
    """
    found: list[Claim] = []
    if all(outcomes.isdisjoint(claim.outcomes.codes()) for claim in activities):
        return found
    for _, claims in gathered(activities, "client_id host endpoint api"):
        whole = claims[0] if len(claims) == 1 else claims[0].copy()
        for claim in claims[1:]:
            whole.merge(claim)
        found.append(whole)
    return found


def lasting(
    claims: Iterable[Claim], errors: Collection[int], apis: Collection[str] | None, context: CheckContext
) -> Iterator[tuple[Claim, Streak]]:
    """Claims about answers of some APIs, or all, with errors that make a client stuck, and from when to when."""
    for claim in claims:
        if (apis is None or claim["api"] in apis) and (streak := stuck(claim.outcomes, errors, context)) is not None:
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


def seen_whole(
    client_id: str | None,
    host: str,
    endpoints: set[str],
    group: Group,
    context: CheckContext,
    *,
    since_ns: int = 0,
    until_ns: int | None = None,
) -> bool:
    """Whether all requests of a client to these endpoints, and the responses, are in the capture, since a time and
    until another; not of short connections that began when a wait was over. After one undecoded message, or a beginning
    that was not captured, nothing counts as missing, nor where a gap may be of that time. A connection whose client is
    unknown may be any client's.
    """
    return not any(
        may_lack(claim, since_ns, until_ns)
        for endpoint in sorted(endpoints)
        for claim in partial_links(client_id, host, endpoint, group, context)
        if claim["what"] in {BROKEN, ANSWERS}
    )


def may_lack(claim: Claim, since_ns: int, until_ns: int | None) -> bool:
    """Whether some of the connections of which something is missing may have carried it in this time. Open ones end
    within a minute more. One that began when a wait was over, and goes on, may be where the client works again.
    """
    later = until_ns is not None and claim.first.ts_ns >= until_ns
    if claim.last.ts_ns + MINUTE_NS * bool(claim.peak.get("open")) < since_ns or (later and not is_used(claim)):
        return False
    return later or MIDWAY in claim.peak or may_be_missing(claim.peak, since_ns, until_ns or NOT_YET_NS)


def seen_repeatedly(
    client: Subject, endpoints: set[str], since_ns: int, group: Group, context: CheckContext, *, until_ns: int
) -> bool:
    """Whether what a client asked for again and again in this time, if at all, would be in the capture: all of it was
    captured, or what is missing are moments only, and few of its requests lack their responses. Of connections that
    began before the capture all is known from their first message on.
    """
    host = client[2]
    partial = [
        claim
        for endpoint in sorted(endpoints)
        for claim in partial_links(client[1] or None, host, endpoint, group, context)
        if claim["what"] in {BROKEN, ANSWERS} and may_lack(claim, since_ns, until_ns)
    ]
    if not partial:
        return True
    counts = together(context.claims("activity", group, *client)).counts()
    known = counts.total() - counts[UNSEEN]
    few = known >= MANY_SEEN and counts[UNSEEN] * UNSEEN_ONE_IN <= known
    return few and all(is_missing_for_moments(claim, since_ns, until_ns) for claim in partial)


UNSEEN_ONE_IN = 10
"""If fewer than one in so many responses is missing, what is asked several times is seen, or its response is."""
MANY_SEEN = 10


TOO_LITTLE_BYTES, FEW_BYTES = 16_384, 1_024
"""On a connection on which a client asks again and again more is sent, or for longer, if only one side of it was
captured; in so few bytes are no more than some requests.
"""


def is_missing_for_moments(claim: Claim, since_ns: int, until_ns: int) -> bool:
    """Whether few bytes of a connection are missing, or only now and then and no good part of them, and all others were
    understood.
    """
    size = claim.peak.get(SIZE, 0)
    if claim["anybodys"] and 0 < size <= TOO_LITTLE_BYTES:
        return LASTED not in claim.peak
    if claim.first.ts_ns >= until_ns or (UNTIMED in claim.peak and not claim.peak[UNTIMED]):
        return False
    if 0 < size <= FEW_BYTES and not claim["anybodys"]:
        return True
    if MUCH in claim.peak:  # between the small requests that are seen may be large ones, each time
        return False
    spans = ((at_second(name) * SECOND_NS, ends_ns) for name, ends_ns in claim.peak.items() if name.startswith(AT))
    return all(
        min(ends_ns, until_ns) - max(begins_ns, since_ns) <= MOMENT_NS
        for begins_ns, ends_ns in spans
        if begins_ns <= until_ns and ends_ns >= since_ns
    )


def seen_everywhere(
    client: Subject, since_ns: int, group: Group, context: CheckContext, *, until_ns: int | None = None
) -> bool:
    """Whether all brokers that a client may ask are captured, and all that it sent to members of the cluster, and was
    answered, on connections that were there at a time or later, but for those that began after another.
    """
    who = client[1] or None, client[2]
    return bool(captured_brokers(group, context, asked_by=[client])) and seen_whole(
        *who, set(group.endpoints), group, context, since_ns=since_ns, until_ns=until_ns
    )


def captured_brokers(
    group: Group, context: CheckContext, *, asked_by: Collection[Subject] | None = None
) -> set[str] | None:
    """The endpoints of all brokers of the cluster, as far as they are known; None where one of them was not captured. A
    broker that is known by a host name was captured where it is known which endpoint that is, and that answers to the
    end. `asked_by`: the brokers as these clients know them, as each listener has addresses of its own.
    """
    found: set[str] = set()
    for broker, address in known_addresses(asked_by, group, context):
        ends = endpoints_of(address, broker, group, context)
        if not ends:
            return None
        found |= ends
    return found


def known_addresses(asked_by: Collection[Subject] | None, group: Group, context: CheckContext) -> set[tuple[int, str]]:
    """The brokers and their addresses, as these clients know them, or as anybody does."""
    every = context.claims("address", group, "server")
    if asked_by is not None:
        asked = {one["endpoint"] for client in asked_by for one in context.claims("activity", group, *client)}
        every = [claim for claim in every if claim["endpoint"] in asked and is_answered(claim)]
    return {(claim["broker"], claim["address"]) for claim in every}


def is_answered(address: Claim) -> bool:
    """Whether an answer has it, for clients of that listener; orders of a controller have those of all listeners."""
    return not {address.first.api, address.last.api} <= OF_ALL_LISTENERS


def endpoints_of(address: str, broker: int, group: Group, context: CheckContext) -> set[str]:
    """Where a broker that is listed with this address was captured."""
    if address in group.endpoints:
        return {address}
    resolved, latest, port = context.clusters.resolved, context.clusters.latest, Peer.of(address).port
    since_ns = max((latest[end] for end in group.endpoints), default=0) - MINUTE_NS
    every = (end for end in group.endpoints if resolved.get(end) == broker and Peer.of(end).port == port)
    return {end for end in every if latest[end] >= since_ns}


def all_begun(client_id: str | None, host: str, endpoint: str, group: Group, context: CheckContext) -> bool:
    """Whether every connection of a client began a new fetch session. A connection that continues a session has
    partitions that were requested on another one, perhaps before the capture.
    """
    return all(claim["what"] != CONTINUED for claim in partial_links(client_id, host, endpoint, group, context))


def is_used(link: Claim) -> bool:
    """Whether connections, of which not everything is known, have packets for longer than a handshake takes."""
    return link.last.ts_ns - link.first.ts_ns >= SLOT_NS


def partial_links(
    client_id: str | None, host: str, endpoint: str, group: Group, context: CheckContext
) -> Iterator[Claim]:
    """Connections that are, or may be, a client's, of which not everything is known."""
    for claim in context.by("host", "partial", group, "link", endpoint).get((host,), ()):
        if claim["anybodys"] or (claim["client_id"] or "") == (client_id or ""):
            yield claim


def seen_between(
    who: tuple[str | None, str], endpoints: set[str], span_ns: tuple[int, int], group: Group, context: CheckContext
) -> bool:
    """Whether all that these endpoints answered a client between two times, and what it had asked for, is in the
    capture, whatever is missing before and after. A request is not known of which the response is missing as well, or
    came without it.
    """
    for endpoint in sorted(endpoints):
        claims = [*partial_links(*who, endpoint, group, context)]
        missing = {claim["what"] for claim in claims if may_be_missing(claim.peak, *span_ns)}
        if {BROKEN, ANSWERS} <= missing:
            return False
    return True


def may_be_missing(peak: Mapping[str, Any], begin_ns: int, end_ns: int) -> bool:
    """Whether bytes that are missing of a connection may be of the time between these two, or are not known not to."""
    spans = {at_second(name): until_ns for name, until_ns in peak.items() if name.startswith(AT)}
    missing = any(
        begin_ns <= max(until_ns, (at + 1) * SECOND_NS) and at * SECOND_NS <= end_ns for at, until_ns in spans.items()
    )
    if missing or -peak.get(UNTIMED, -end_ns) < end_ns:
        return True
    slots_kept = {at * SECOND_NS // SLOT_NS for at in spans}
    return len(slots_kept) >= MOST_SLOTS and min(slots_kept) * SLOT_NS > begin_ns


def is_held_by_quota(claim: Claim, wait: Streak, group: Group, context: CheckContext) -> bool:
    """Whether the server that a client waited for had asked it to wait for about as long: it reads nothing from a
    connection until that is over (KIP-219).
    """
    context.watch()
    throttled = context.claims("throttled", group, "client", claim["client_id"] or "", claim["host"])
    return any(
        one["endpoint"] == claim["endpoint"]
        and one.first.ts_ns < wait.last_ns
        and one.peak.get("until", 0) > wait.last_ns - QUOTA_ENDS_NS
        for one in throttled
    )
