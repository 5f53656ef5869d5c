"""CLI008: clients that get nowhere, and those that work at all brokers but one, whose host name they do not find.

Rule: a name that does not resolve shows nothing on the wire. It counts where a client lacks the broker for what it is
seen to need: it asks where its topics are without a pause, as no client does that has what it needs, or its group gave
it partitions of that broker. Others read or write the topic there meanwhile, and nothing of the client got there.
"""

from collections.abc import Collection, Iterator
from typing import NamedTuple

from wirecheck.client_ids import is_of_node
from wirecheck.decode.peer import Peer
from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.broker_seekers import AGAIN, MEMBERSHIP, gets_nowhere, no_further, on_one_connection
from wirecheck.judge.checks.idle_members import Held, held_by
from wirecheck.judge.checks.progress import members_of
from wirecheck.judge.checks.shapes import (
    MINUTE_NS,
    endpoints_of,
    known_addresses,
    members,
    seen_whole,
)
from wirecheck.judge.claims.claim import Claim, Subject
from wirecheck.judge.claims.outcomes import HARMLESS
from wirecheck.judge.results.finding import Evidence
from wirecheck.judge.thresholds import SECOND_NS
from wirecheck.judge.topic_history import topic_of
from wirecheck.judge.topology.clusters import Group
from wirecheck.judge.topology.endpoint_history import is_literal
from wirecheck.wording import and_list

WORK = frozenset({"Produce", "Fetch"})
LOOKS_NS, MEMBER_LOOKS_NS = 3 * SECOND_NS // 2, 6 * SECOND_NS
"""As often as this a client asks for Metadata that lacks a leader; a member that shows by its assignment that it does
may take its time (franz-go asks each 5 s). Others ask each five minutes, or as often as they are configured to.
"""


class Asks(NamedTuple):
    """A client's Metadata requests."""

    claims: list[Claim]
    times: int
    first_ns: int
    last_ns: int

    def every(self, pace_ns: int) -> bool:
        """Whether one process at least asks so often all the time."""
        return on_one_connection(self.claims) * pace_ns >= self.last_ns - self.first_ns


def ends_before_its_work(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    found = [*gets_nowhere(subject, group, context)]
    yield from found or lacks_one_broker(subject, group, context)


def lacks_one_broker(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    _, client_id, host = subject
    found = context.claims("activity", group, *subject)
    asks = asks_of(found)
    if asks is None or is_of_node(client_id) or not works_well(found, asks):
        return
    is_member = any(claim["api"] in MEMBERSHIP for claim in found)
    if not asks.every(MEMBER_LOOKS_NS if is_member else LOOKS_NS):
        return
    context.watch()
    if looks_for_another_topic(subject, asks, group, context):
        return
    known = known_addresses([subject], group, context)
    lacks = {one for one in known if not is_literal(one[1]) and is_out_of_reach(one, subject, group, context)}
    others = known - lacks
    if not lacks or not others or not all(endpoints_of(address, broker, group, context) for broker, address in others):
        return
    topics = (needed_by_member if is_member else needed_for_topics)(subject, group, context)
    served = {broker for broker, _ in lacks if serves(broker, topics.get(broker, ()), asks, group, context)}
    lacks = {one for one in lacks if one[0] in served - {broker for broker, _ in others}}
    if not lacks or not seen_whole(client_id or None, host, own_endpoints(found, lacks, group), group, context):
        return
    names = and_list(sorted(f"broker {broker} ({address})" for broker, address in lacks))
    steps = {"step": "learned which brokers it needs", "then": f"asked {names} for nothing"}
    yield no_further(asks.claims, subject, asks.first_ns, **steps, lacks=f", but for Metadata {asks.times:,} times")


def own_endpoints(found: Collection[Claim], lacks: Collection[tuple[int, str]], group: Group) -> set[str]:
    """What a client asked, and where it may have asked a broker without being seen: at the port that this lists."""
    ports = {Peer.of(address).port for _, address in lacks}
    return {claim["endpoint"] for claim in found} | {end for end in group.endpoints if Peer.of(end).port in ports}


def asks_of(found: Collection[Claim]) -> Asks | None:
    """None where they are few, or not for a minute."""
    mine = [claim for claim in found if claim["api"] == "Metadata" and claim.succeeded]
    runs = [run for claim in mine for run in claim.outcomes.runs()]
    count = sum(run.count for run in runs)
    if count < AGAIN:
        return None
    asks = Asks(mine, count, min(run.first_ns for run in runs), max(run.last_ns for run in runs))
    return asks if asks.last_ns - asks.first_ns >= MINUTE_NS else None


def works_well(found: Collection[Claim], asks: Asks) -> bool:
    """Whether a client is granted reads or writes all the time, and no error makes it look for leaders."""
    work = [claim for claim in found if claim["api"] in WORK]
    granted = [run for claim in work if claim.succeeded for run in claim.outcomes.runs()]
    since_ns = asks.last_ns - MINUTE_NS
    errors = (run for claim in work for run in claim.outcomes.runs(claim.outcomes.codes() - HARMLESS))
    goes_on = max((run.last_ns for run in granted), default=0) >= since_ns
    return sum(run.count for run in granted) >= AGAIN and goes_on and not any(run.last_ns >= since_ns for run in errors)


def looks_for_another_topic(subject: Subject, asks: Asks, group: Group, context: CheckContext) -> bool:
    """Whether it asks for all topics still, or for one that is not there, without a leader, or not for it."""
    since_ns = asks.last_ns - MINUTE_NS
    kinds = ("unknown_topic", "denied_topic", "leaderless")
    if any(one.last.ts_ns >= since_ns for kind in kinds for one in context.claims(kind, group, *subject)):
        return True
    listings = (one for one in context.claims("listing", group, "server") if one["host"] == subject[2])
    return any((one["client_id"] or "") == subject[1] and one.last.ts_ns >= since_ns for one in listings)


def is_out_of_reach(known: tuple[int, str], subject: Subject, group: Group, context: CheckContext) -> bool:
    """Whether nothing of this client came to a broker, and no connection of its host to where the name may lead."""
    broker, address = known
    mine = {one["endpoint"] for one in context.ledger.claims("peer", "host", subject[2])}
    mine -= ends_of_others(broker, subject, group, context)
    asked = {one["endpoint"] for one in context.claims("client", group, *subject)}
    at_its_port = any(Peer.of(end).port == Peer.of(address).port for end in mine)
    return not at_its_port and asked.isdisjoint(ends_of(broker, group, context))


def ends_of(broker: int, group: Group, context: CheckContext) -> set[str]:
    """Where a broker was seen, at whatever listener."""
    at, latest = context.clusters.broker, context.clusters.latest
    return {end for end in group.endpoints if at(end, latest[end]) == broker}


def serves(broker: int, topics: Collection[str], asks: Asks, group: Group, context: CheckContext) -> bool:
    """Whether other clients read or write one of these topics there meanwhile, to the end; from hosts of no broker, as
    a capture that lacks a broker may have what others ask it.
    """
    ends, brokers = ends_of(broker, group, context), {Peer.of(end).host for end in group.endpoints}
    then_ns = asks.last_ns - MINUTE_NS
    subjects = [("name", topic) for topic in topics]
    subjects += [("id", one.topic_id) for topic in topics for one in topic_of(topic, group, context).histories]
    every = [
        one for kind in ("position", "written") for place in subjects for one in context.claims(kind, group, *place)
    ]
    others = (one for one in every if one["endpoint"] in ends and one["host"] not in brokers)
    return any(one.first.ts_ns <= then_ns <= one.last.ts_ns and not is_of_node(one["client_id"]) for one in others)


def ends_of_others(broker: int, subject: Subject, group: Group, context: CheckContext) -> set[str]:
    """Where other brokers than this answer; any other endpoint may be where its name leads."""
    known = known_addresses([subject], group, context)
    listed = {
        end for other, address in known if other != broker for end in endpoints_of(address, other, group, context)
    }
    at, latest = context.clusters.broker, context.clusters.latest
    return listed | {end for end in group.endpoints if at(end, latest[end]) not in {None, broker}}


def needed_by_member(subject: Subject, group: Group, context: CheckContext) -> dict[int, set[str]]:
    """The leaders of partitions that a group gave a member, and that it never asked for, with their topics."""
    found: dict[int, set[str]] = {}
    for member in members_of(subject[1], subject[2], group, context):
        known = "assigned" in member.peak and "alive" in member.peak
        if not known or member.peak["alive"] - member.peak["assigned"] < MINUTE_NS:
            continue
        for held in held_by(member, group, context):
            if not is_asked_for(held, group, context):
                for leader in leaders(held.topic, group, context, partition=held.partition):
                    found.setdefault(leader, set()).add(held.topic)
    return found


def is_asked_for(held: Held, group: Group, context: CheckContext) -> bool:
    """Whether a client of the member's ID asks for a partition, also from another address, as behind a translation."""
    every = [*context.claims("position", group, "name", held.topic)]
    every += [claim for one in held.topic_ids for claim in context.claims("position", group, "id", one)]
    client_id = held.member["client_id"]
    return any(one["partition"] == held.partition and one["client_id"] == client_id for one in every)


def needed_for_topics(subject: Subject, group: Group, context: CheckContext) -> dict[int, set[str]]:
    """The leaders of the partitions of all topics that a client asks Metadata for, with these topics."""
    every = context.claims("topics_answered", group, *subject)
    found: dict[int, set[str]] = {}
    for name in sorted({name for claim in every for _, _, (name, _) in members(claim, parts=2)}):
        for leader in leaders(name, group, context):
            found.setdefault(leader, set()).add(name)
    return found


def leaders(topic: str, group: Group, context: CheckContext, *, partition: int | None = None) -> set[int]:
    """Who leads the partitions of a topic, or one of them, as was stated last."""
    states = [*context.claims("unnumbered", group, "name", topic)]
    for history in topic_of(topic, group, context).histories:
        states += context.claims("partition", group, "id", history.topic_id)
    last: dict[int, Claim] = {}
    for claim in states:
        number = claim["partition"]
        if partition in {None, number} and (number not in last or claim.last_word > last[number].last_word):
            last[number] = claim
    return {claim["leader"] for claim in last.values()}
