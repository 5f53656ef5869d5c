"""CLI008: the ways in which a client gets nowhere before its work: it found its coordinator, or which brokers it needs,
and goes no further.

Rule: a tool looks, and goes; so each way says what a tool does not do. All that the client may have asked for besides
has to be captured.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property

from wirecheck.client_ids import is_of_node
from wirecheck.decode.api_names import key_of
from wirecheck.decode.releases import read
from wirecheck.judge.activity_states import BEFORE_WORK, activities
from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.connection_ends import last_close, lives_on, over_among
from wirecheck.judge.checks.no_offset import without_offset
from wirecheck.judge.checks.shapes import (
    MINUTE_NS,
    captured_brokers,
    clock,
    endpoints_of,
    gathered,
    known_addresses,
    resting_on,
    seen_everywhere,
    seen_repeatedly,
    servers_of,
)
from wirecheck.judge.claims.claim import Claim, Subject
from wirecheck.judge.claims.outcomes import OTHERS, SLOT_NS, SUCCESS, TURNED_AWAY, Part, Run
from wirecheck.judge.results.finding import Evidence
from wirecheck.judge.thresholds import SECOND_NS
from wirecheck.judge.topology.clusters import Group
from wirecheck.judge.topology.endpoint_history import is_literal
from wirecheck.wording import and_list

UNNAMED = "a client without an ID"
FIND_COORDINATOR, INIT = "FindCoordinator", "InitProducerId"
LOOKS_FOR_BROKERS = frozenset({"Metadata", FIND_COORDINATOR})
"""How a client learns the leaders and its coordinator. An idempotent producer asks any broker for its ID (INIT)."""
AGAIN = 20
"""So many answers are more than a start needs."""
LISTS_ONE_IN = 10
"""Who asks for all topics more often than that looks for a pattern, or is a tool."""
RARELY_NS = 3 * SECOND_NS
"""Clients ask again once a second while they reach no broker, and after five minutes when all is well."""
WITHOUT_PAUSE_NS = SECOND_NS // 3
"""So soon, all the time, a process asks again that lacks a leader (retry.backoff.ms is 100 ms), and no tool."""
MOST_ADDRESSES = 3
MEMBERSHIP = frozenset({"SyncGroup", "ConsumerGroupHeartbeat"})
"""What a member of a group asks for; a tool that looks at offsets does not."""
OFFSET_FETCH = "OffsetFetch"
OF_MEMBERS = MEMBERSHIP | {OFFSET_FETCH, "JoinGroup", "Heartbeat", "LeaveGroup"}
"""What a consumer does before it reads. It asks for offsets only where partitions are assigned to it."""
NEW_GROUPS = ("ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "StreamsGroupHeartbeat")
"""KIP-848, KIP-932, KIP-1071: what clients with these protocols send next."""


def gets_nowhere(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """A client that ends before any work (CLI008)."""
    found = [*ends_at_its_coordinator(subject, group, context)]
    found = found or [*asks_for_brokers_only(subject, group, context)]
    found = found or [*refused_by_all_brokers(subject, group, context)]
    found = found or [*turned_away_at_last(subject, group, context)]
    yield from found or begins_nowhere(subject, group, context)


def refused_by_all_brokers(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """A client that learned its brokers, is still connected, and asked for no work: each address that it knows refuses
    the connections of its host.
    """
    _, client_id, host = subject
    found = context.claims("activity", group, *subject)
    mine = [claim for claim in found if claim["api"] in LOOKS_FOR_BROKERS and claim.succeeded]
    if is_of_node(client_id) or not mine or asks_for_work(found):
        return
    first_ns = min(claim.first.ts_ns for claim in mine)
    context.watch()
    until_ns = first_ns + context.settings.fell_silent_s * SECOND_NS
    known = known_addresses([subject], group, context)
    if not known or not all(refuses(address, host, first_ns, context) for _, address in known):
        return
    if not lives_on(subject, until_ns, context):
        return
    steps = {"step": "learned which brokers it needs", "then": "asked for nothing", "lacks": refusing(known)}
    yield no_further(mine, subject, first_ns, **steps)


def asks_for_work(found: Iterable[Claim]) -> bool:
    return not {claim["api"] for claim in found} <= BEFORE_WORK | {INIT}


def no_further(
    claims: Sequence[Claim], client: Subject, since_ns: int, *, step: str, then: str, lacks: str = ""
) -> Evidence:
    """`app found its coordinator at 12:00:00 and asked for nothing after that`, resting on these claims."""
    client_id = claims[0]["client_id"]
    words = {"client": client_id or UNNAMED, "step": step, "then": then, "since": clock(since_ns), "lacks": lacks}
    return resting_on(claims, *client[1:], client_ids=(client_id,), first_ns=since_ns, words=words)


def refusing(known: Iterable[tuple[int, str]]) -> str:
    """Of brokers and their addresses, as the end of a sentence."""
    return f": {and_list(sorted({address for _, address in known})[:MOST_ADDRESSES])} refuse connections"


def refuses(address: str, host: str, since_ns: int, context: CheckContext) -> bool:
    """Whether an address refused the host since then, and never served any, over TLS or not."""
    turned = context.ledger.claims("turned_away", "link", address)
    serves = any(context.ledger.claims(kind, "link", address) for kind in ("answered", "encrypted"))
    return not serves and any(one["host"] == host and one.last.ts_ns >= since_ns for one in turned)


def turned_away_at_last(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """A client that was served before, and since then each address that it knows, or asked, refuses the connections of
    its host, for longer than a restart, and serves no other. Alone on its host, it is the one that connects: one that
    had ended its connections by itself may have left.
    """
    _, client_id, host = subject
    found = context.claims("activity", group, *subject)
    if is_of_node(client_id) or not any(claim.succeeded for claim in found):
        return
    served_ns = max(run.last_ns for claim in found for run in claim.outcomes.runs())
    silent_ns = max(context.settings.cut_off_s * SECOND_NS, context.watermark_ns - served_ns)
    context.passed(context.watermark_ns + silent_ns)  # a refused connection is no news of a client
    asked = {claim["endpoint"] for claim in found}
    refused = {one: refusals(one, host, served_ns, context) for one in asked}
    if not any(refused.values()):
        return  # as of almost all clients
    known = known_addresses([subject], group, context)
    refused |= {one: refusals(one, host, served_ns, context) for one in {address for _, address in known} - asked}
    context.watch()
    if not (all(refused.values()) and is_long_outage([run for runs in refused.values() for run in runs], context)):
        return
    if may_have_left(subject, served_ns, group, context):
        return
    steps = {"step": "got its last response", "then": "asked for nothing", "lacks": refusing(known)}
    yield no_further(found, subject, served_ns, **steps)


def may_have_left(client: Subject, served_ns: int, group: Group, context: CheckContext) -> bool:
    """Whether others on its host may be the ones that connect, or it ended by itself, or went on over TLS."""
    host = client[2]
    if any(one[2] == host and one != client for one in context.ledger.subjects("client")):
        return True
    end = last_close(client, group, context)
    return (end is not None and end.by == "client") or goes_on_in_tls(host, served_ns, context)


def goes_on_in_tls(host: str, since_ns: int, context: CheckContext) -> bool:
    """Whether a host has a connection over TLS since then, at any address: it may be that client's, at a listener that
    took the place of the one that it had.
    """
    links = (context.ledger.claims("encrypted", *link) for link in context.ledger.subjects("link"))
    return any(one["host"] == host and one.last.ts_ns > since_ns for claims in links for one in claims)


def is_long_outage(runs: Collection[Run], context: CheckContext) -> bool:
    """Whether connections are refused again and again, and for longer than a restart takes."""
    lasted_ns = max(run.last_ns for run in runs) - min(run.first_ns for run in runs)
    often = sum(run.count for run in runs) >= context.settings.stalled_requests
    return often and lasted_ns >= context.settings.cut_off_s * SECOND_NS


def refusals(address: str, host: str, since_ns: int, context: CheckContext) -> list[Run]:
    """When an address refused the host since then, if it served none after the first of them, over TLS or not."""
    turned = context.anywhere("host", "turned_away", "link", address).get((host,), ())
    runs = [run for one in turned for run in one.outcomes.runs({TURNED_AWAY}) if run.first_ns > since_ns]
    if not runs:
        return []
    first_ns = min(run.first_ns for run in runs)
    served = (one for kind in ("answered", "encrypted") for one in context.ledger.claims(kind, "link", address))
    return [] if any(one.last.ts_ns > first_ns for one in served) else runs


def begins_nowhere(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """One of several processes of a client ID, as of a library's own."""
    if is_of_node(subject[1]):
        return
    for one in without_offset(subject, group, context):
        if seen_everywhere(subject, one.since_ns, group, context):
            words = {
                "client": subject[1] or UNNAMED,
                "step": f"learned that group {one.group} has no offset",
                "then": "asked for none",
                "since": clock(one.since_ns),
                "lacks": "",
                "group": one.group,
            }
            about = {"client_ids": (one.member["client_id"],), "first_ns": one.since_ns}
            yield resting_on([one.member], *subject[1:], one.group, **about, words=words)


def ends_at_its_coordinator(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """A client that learns its coordinator joins its group, or begins its transactions, at once. All brokers have to
    be captured, as it may work on at another one.
    """
    found = context.claims("activity", group, *subject)
    asked = {claim["api"] for claim in found}
    joined = bool(asked & MEMBERSHIP)
    step = OFFSET_FETCH if joined else FIND_COORDINATOR
    if is_of_node(subject[1]) or step not in asked or not asked <= BEFORE_WORK | (OF_MEMBERS if joined else set()):
        return
    mine = [claim for claim in found if claim["api"] == step and claim.succeeded]
    uncaptured = context.clusters.uncaptured([group])
    if not mine or any(one.streak for one in activities(found, context.settings, uncaptured=uncaptured)):
        return  # what is rejected says more
    context.watch()
    first_ns = min(claim.first.ts_ns for claim in mine)
    until_ns = first_ns + context.settings.fell_silent_s * SECOND_NS
    listed_ns = max((one.last.ts_ns for one in listings(subject, group, context)), default=0)
    if listed_ns >= min(until_ns, max(claim.last.ts_ns for claim in mine)):
        return  # it looks for topics of a pattern, every five minutes; librdkafka joins once there is one
    if not context.passed(until_ns) or not asks_nothing_else(subject, first_ns, until_ns, group, context):
        return
    if joined:
        steps = {"step": "learned the offsets of its group", "then": "read nothing"}
    else:
        lacks = not_offered({claim["endpoint"] for claim in mine}, group, context)
        steps = {"step": "found its coordinator", "then": "asked for nothing", "lacks": lacks}
    yield no_further(mine, subject, first_ns, **steps)


def listings(client: Subject, group: Group, context: CheckContext) -> list[Claim]:
    """When a client asked for all topics."""
    _, client_id, host = client
    every = context.claims("listing", group, "server")
    return [one for one in every if one["host"] == host and (one["client_id"] or "") == client_id]


def asks_nothing_else(client: Subject, since_ns: int, until_ns: int, group: Group, context: CheckContext) -> bool:
    """Whether all brokers were captured, and what it asked them for several times would be known."""
    return bool(captured_brokers(group, context, asked_by=[client])) and seen_repeatedly(
        client, set(group.endpoints), since_ns, group, context, until_ns=until_ns
    )


def asks_for_brokers_only(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """A client that learns again and again which broker it needs, and does not ask it: it cannot reach what that
    advertises, or does not find the host name, or a topic lacks the partition that it is for.
    """
    found = context.claims("activity", group, *subject)
    if is_of_node(subject[1]) or asks_for_work(found):
        return
    search = Search(found, subject, group, context)
    if search.is_short or search.is_rare:
        return
    context.watch()
    if search.may_be_of_a_tool or not search.is_all_that_it_asks:
        return
    steps = {"step": "learned which brokers it needs", "then": "asked only the same again", "lacks": search.lacks}
    yield no_further(search.claims, subject, search.first_ns, **steps)


class Search:
    """What a client learned of the brokers that it needs, where it asked none of them for work."""

    def __init__(self, found: Collection[Claim], client: Subject, group: Group, context: CheckContext) -> None:
        self.found, self.client, self.group, self.context = found, client, group, context
        self.claims = [claim for claim in found if claim["api"] in LOOKS_FOR_BROKERS and claim.succeeded]
        runs = [run for claim in self.claims for run in claim.outcomes.runs()]
        self.count = sum(run.count for run in runs)
        self.first_ns = min((run.first_ns for run in runs), default=0)
        self.last_ns = max((run.last_ns for run in runs), default=0)

    @property
    def lasted_ns(self) -> int:
        return self.last_ns - self.first_ns

    @property
    def is_short(self) -> bool:
        """As each start is."""
        return self.count < AGAIN or self.lasted_ns < self.context.settings.fell_silent_s * SECOND_NS

    @property
    def is_rare(self) -> bool:
        """As of a tool, or where all is well."""
        return self.lasted_ns > self.count * RARELY_NS and not self.tries

    @cached_property
    def tries(self) -> bool:
        """Whether it asks as a library that gets no further, and as no tool does."""
        if self.cut_off or asks_ever_later(self.claims):
            return True
        return on_one_connection(self.claims) >= self.lasted_ns // WITHOUT_PAUSE_NS

    @cached_property
    def cut_off(self) -> list[str]:
        return [*cut_off_by(self.client, self.group, self.context)]

    @cached_property
    def listed(self) -> int:
        """How often it asked for all topics."""
        return sum(one.count for one in listings(self.client, self.group, self.context))

    @cached_property
    def known(self) -> set[tuple[int, str]]:
        """The brokers that it learned, with their addresses."""
        return known_addresses([self.client], self.group, self.context)

    @cached_property
    def lost(self) -> set[tuple[int, str]]:
        """Those whose address was not captured."""
        return {one for one in self.known if not reached(one[1], one[0], self.group, self.context)}

    @property
    def may_be_of_a_tool(self) -> bool:
        """Whether it looks for all topics, or, where all that brokers advertise was captured, shows by nothing that it
        is there for more.
        """
        if self.listed * LISTS_ONE_IN > self.count:
            return True
        return not self.lost and not (self.tries or any(map(is_producer, self.found)))

    @property
    def is_all_that_it_asks(self) -> bool:
        """Whether it asked for nothing else, as far as the capture shows: there is one broker, and that was not
        captured; or what it had asked for would have been seen; or it asks as a client that does not find a host name.
        """
        if self.lost and len({broker for broker, _ in self.known}) == 1:
            return True
        if self.asks_nothing_else:
            return True
        if has_a_lost_name(self.known, self.group, self.context) and seeks_all_the_time(self.claims):
            return True
        names = bool(self.listed) and has_lost_names_alone(self.known, self.group, self.context)
        return names and asks_each_second(self.claims)

    @property
    def asks_nothing_else(self) -> bool:
        client, first_ns, last_ns, group, context = self.client, self.first_ns, self.last_ns, self.group, self.context
        if self.tries:
            return asks_nothing_else(client, first_ns, last_ns, group, context)
        return seen_everywhere(client, first_ns, group, context, until_ns=last_ns)

    @property
    def lacks(self) -> str:
        """The end of its sentence."""
        if self.cut_off:
            return f"; {and_list(self.cut_off)}"
        addresses = sorted(address for _, address in self.lost)[:MOST_ADDRESSES]
        why = f"brokers advertise {and_list(addresses)}" if self.lost else "perhaps no such partition"
        return f", {self.count:,} times; {why}"


def cut_off_by(subject: Subject, group: Group, context: CheckContext) -> Iterator[str]:
    """Servers that answer all that was read of a client's connections, and close each within seconds: it sends more on
    them, which never came to an end, such as a request that is larger than the server takes. Checks of health close by
    themselves.
    """
    settings = context.settings
    for _, asked in gathered(context.claims("client", group, *subject), "endpoint"):
        over = over_among(asked, subject, context)
        runs = [run for one in over for run in one.outcomes.runs({SUCCESS})]
        brief = [run for run in runs if run.last_ns - run.first_ns <= CUT_OFF_NS]
        if len(brief) < settings.never_served or (len(runs) - len(brief)) * settings.partly_one_in > len(runs):
            continue
        lasted_ns = max(run.last_ns for run in runs) - min(run.first_ns for run in runs)
        by_server = not any({"unclosed", "by_client"} & one.peak.keys() for one in over)
        if by_server and lasted_ns >= settings.stuck_s * SECOND_NS:
            yield f"{servers_of(asked, context)} closed {len(brief):,} connections early"


CUT_OFF_NS = 5 * SECOND_NS
"""Brokers close idle connections after minutes; a large request takes less to send until its server has its size."""


def has_a_lost_name(known: set[tuple[int, str]], group: Group, context: CheckContext) -> bool:
    """Whether a broker has a host name for these clients, and all brokers were captured, if by other addresses. One
    that was not may be asked for the offsets of a group each second, as by a monitor.
    """
    captured = {broker for broker, address in known_addresses(None, group, context)
                if endpoints_of(address, broker, group, context)}  # fmt: skip
    named = any(not is_literal(address) for _, address in known)
    return named and all(broker in captured for broker, _ in known)


def has_lost_names_alone(known: set[tuple[int, str]], group: Group, context: CheckContext) -> bool:
    """Whether none of the addresses that these clients have for brokers was captured, and they are host names."""
    lost = not any(reached(address, broker, group, context) or is_literal(address) for broker, address in known)
    return lost and has_a_lost_name(known, group, context)


def is_producer(claim: Claim) -> bool:
    """Whether it shows a producer ID that was granted: its client is there to write."""
    return bool(claim["api"] == INIT and claim.succeeded)


def asks_ever_later(mine: Collection[Claim]) -> bool:
    """Whether a client asks at once at first, then ever later, as long as it gets no further, and begins with that
    again: several of its slots have many requests, each before some with few. A tool keeps to its pace.
    """
    counts = Counter[int]()
    for claim in mine:
        for code in claim.outcomes.codes():
            for slot, parts in claim.outcomes.of(code).items():
                counts[slot] += sum(run.count for run in parts.values())
    fast = [slot for slot, count in counts.items() if count >= AT_FIRST]
    later = (all(0 < counts[slot + more] * FALLS_TO <= counts[slot] for more in AFTER) for slot in fast)
    return sum(later) >= TWICE


def seeks_all_the_time(mine: Collection[Claim]) -> bool:
    """Whether a client asks for its coordinator for a minute without a pause: it is answered, and does not find its
    host name. A tool that looks at several groups asks for theirs at once, and pauses.
    """
    found: dict[int, list[Run]] = {}
    for claim in mine:
        for slot, parts in claim.outcomes.of(SUCCESS).items() if claim["api"] == FIND_COORDINATOR else ():
            found.setdefault(slot, []).extend(parts.values())
    inner = [runs for _, runs in sorted(found.items())][1:-1]
    has_every_slot = len(found) == max(found, default=0) - min(found, default=1) + 1
    return (
        has_every_slot
        and len(inner) * SLOT_NS >= MINUTE_NS
        and all(max(run.last_ns for run in runs) - min(run.first_ns for run in runs) >= SLOT_NS // 2 for runs in inner)
    )


def asks_each_second(mine: Collection[Claim]) -> bool:
    """Whether a client asks for metadata once a second for a minute, on one connection to each broker: sarama begins
    with all topics, and asks for its own then. Who asks for brokers alone so often may check their health.
    """
    runs = [run for claim in mine for run in claim.outcomes.runs()]
    lasted_ns = max(run.last_ns for run in runs) - min(run.first_ns for run in runs)
    return lasted_ns >= MINUTE_NS and on_one_connection(mine) >= lasted_ns // SECOND_NS


def on_one_connection(mine: Collection[Claim]) -> int:
    """How many answers a client got that has one connection to each broker: many processes of a client ID at one host,
    as of checks of health, and tools that are started again, have many.
    """
    found: dict[str, Counter[Part]] = {}
    for claim in mine:
        counts = found.setdefault(claim["endpoint"], Counter())
        for port in claim.outcomes.parts(claim.outcomes.codes()) - {OTHERS}:
            counts[port] += sum(run.count for run in claim.outcomes.runs(part=port))
    return sum(max(counts.values(), default=0) for counts in found.values())


AT_FIRST, FALLS_TO, AFTER, TWICE = 5, 2, range(2, 5), 2
"""So many requests in a slot; in those from the second after it on not more than half as many, and not none."""


def reached(address: str, broker: int, group: Group, context: CheckContext) -> bool:
    """Whether what a broker advertises was captured; behind a host name, because clients are served there."""
    ends = endpoints_of(address, broker, group, context)
    return address in ends or not ends.isdisjoint(context.clusters.serving)


def not_offered(endpoints: set[str], group: Group, context: CheckContext) -> str:
    """The newer group protocols that these brokers do not offer, as the end of a sentence."""
    advertised = context.claims("advertised", group, "server")
    offered = {key for one in advertised if one["endpoint"] in endpoints for key in read(one["ranges"])}
    lacks = [api for api in NEW_GROUPS if offered and key_of(api) not in offered]
    return f"; the broker does not offer {and_list(lacks)}" if lacks else ""
