"""Statements: who keeps stating which ID of a topic, or none, in which messages, and which of them disagree.

A statement is one party's word in one kind of message: a controller's requests, a broker's granted responses, the
records of the metadata log. Two statements disagree if both are stated again after both were stated, and still after
the grace period from there: then neither has replaced the other, whichever came first and whatever messages carry them.
No ID, in a version that carries IDs, is a statement of one that has given this topic an ID, or received it.

Rule: requests of clients are not statements, because a client alone contradicts nobody. Nothing is compared across
generations of a metadata log. Where a controller's requests carry no IDs, the topic has none at times.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from operator import itemgetter
from typing import NamedTuple

from wirecheck.client_ids import broker_of
from wirecheck.decode.releases import gives_ids
from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.shapes import controllers_named, end_ns, goes_on, slots, stale_controllers, start_ns, whole
from wirecheck.judge.claims.claim import AT, METADATA_LOG, ZERO, Claim
from wirecheck.judge.claims.extract.log_entries import SOURCE
from wirecheck.judge.claims.extract.named_ids import ASKED_BY_ID
from wirecheck.judge.claims.outcomes import SUCCESS
from wirecheck.judge.thresholds import SECOND_NS
from wirecheck.judge.topic_history import CONTROL, REPORTS, Topic
from wirecheck.judge.topology.clusters import Group
from wirecheck.judge.topology.log_generations import ALWAYS

ORDERS = (*CONTROL, "stop-replica")
"""Sources that are requests of controllers."""
DELETION = "delete-topics"
STATED_ONCE = frozenset({SOURCE, "create-topics", DELETION})
"""Sources that are never repeated: offsets order the records of one log, and a deletion names what ended."""
DRAFTED = " (draft)"
"""Ends the API of a controller's requests in the layouts of a draft."""
LOG, CONTROLLER, BROKER = range(3)
"""Who is right where two disagree, the most reliable first."""
AUTHORITIES = ("the metadata log", "the controller", "the broker")
Span = tuple[int, int]


@dataclass(frozen=True, eq=False)
class StatedId:
    """One party's word about the topic, in one kind of message."""

    topic_id: str
    claim: Claim
    authority: int
    party: str
    api: str
    spans: Sequence[Span]
    """When it was stated: at least once from each beginning to its end, in order."""
    last_ns: int

    @property
    def first_ns(self) -> int:
        return self.spans[0][0]

    def again_ns(self, since_ns: int) -> int | None:
        """By when it had surely been stated again at or after a time."""
        return min((end for begin, end in self.spans if begin >= since_ns), default=None)


Pair = tuple[StatedId, StatedId]


class Disagreement(NamedTuple):
    """Two IDs of one name, or an ID and none, the statements of each that disagree with one of the other, and since
    when they do.
    """

    ids: tuple[str, str]
    """ZERO for none."""
    statements: tuple[list[StatedId], list[StatedId]]
    authorities: tuple[int, int]
    """Who is the most reliable that stated each of the IDs, repeatedly or once."""
    since_ns: int
    is_sure: bool
    """False where all of it is an endpoint that gives different clients different IDs: a proxy may rename topics."""


def disagreements(topic: Topic, context: CheckContext, among: Collection[str] | None = None) -> Iterator[Disagreement]:
    """The pairs of IDs that are both stated without an end, by their order; of all IDs, or among some."""
    ids = {claim["topic_id"] for claim in topic.bindings} - {None, METADATA_LOG}
    ids = ids if among is None else ids.intersection(among)
    since_ns = current_ns(topic)
    if len(ids) > 1 and since_ns > ALWAYS:
        ids -= {claim["topic_id"] for claim in topic.bindings if claim.first.ts_ns < since_ns}
    if len(ids) < 2 or topic.mixed:
        return
    grace_ns = context.settings.broker_grace_ns
    by_id: dict[str, list[StatedId]] = {}
    for one in statements(topic, sorted(ids), context):
        by_id.setdefault(one.topic_id, []).append(one)
    own = own_endpoints(topic.group, context) if len(by_id) > 1 else set()
    for ids_of in combinations(sorted(by_id), 2):
        mine, theirs = (by_id[topic_id] for topic_id in ids_of)
        if ZERO in ids_of:
            pairs = lacking(topic, mine, theirs, own)
        else:
            pairs = [(a, b) for a in lasting(mine, theirs, grace_ns) for b in theirs if disagree(a, b, grace_ns)]
        sure = without_proxies(pairs, own)
        pairs = sure or pairs
        if pairs:
            sides = ([*dict.fromkeys(a for a, _ in pairs)], [*dict.fromkeys(b for _, b in pairs)])
            authorities = min(a.authority for a in mine), min(b.authority for b in theirs)
            since_ns = min(max(a.first_ns, b.first_ns) for a, b in pairs)
            yield Disagreement(ids_of, sides, authorities, since_ns, is_sure=bool(sure))
    yield from outlived(topic, ids - by_id.keys(), by_id, context)


def outlived(
    topic: Topic, ids: set[str], by_id: dict[str, list[StatedId]], context: CheckContext
) -> Iterator[Disagreement]:
    """IDs that a topic has in brokers' answers to its deletion alone, and another one that it had before and keeps."""
    named = {claim["topic_id"] for claim in topic.bindings if claim["source"] != DELETION}
    deleted = [claim for claim in topic.bindings if claim["source"] == DELETION and claim["topic_id"] in ids - named]
    if not deleted or not by_id:
        return
    own, grace_ns = own_endpoints(topic.group, context), context.settings.broker_grace_ns
    answered: dict[str, list[Claim]] = {}
    for claim in deleted:
        if claim["endpoint"] in own:
            answered.setdefault(claim["topic_id"], []).append(claim)
    for topic_id, every in sorted(by_id.items()):
        for gone, claims in sorted(answered.items()) if topic_id != ZERO else ():
            first_ns, last_ns = min(c.first.ts_ns for c in claims), max(c.last.ts_ns for c in claims)
            kept = [one for one in every if keeps(one, first_ns, last_ns, grace_ns)]
            if kept:
                ended = [
                    StatedId(gone, c, BROKER, party(c, context), c.first.api, spans(c), c.last.ts_ns) for c in claims
                ]
                (one, mine), (other, theirs) = sorted([(topic_id, kept), (gone, ended)], key=itemgetter(0))
                authorities = min(s.authority for s in mine), min(s.authority for s in theirs)
                yield Disagreement((one, other), (mine, theirs), authorities, first_ns, is_sure=True)


def keeps(one: StatedId, first_ns: int, last_ns: int, grace_ns: int) -> bool:
    """Whether an ID was stated before a deletion, and goes on for the grace period after it."""
    again_ns = one.again_ns(last_ns)
    return one.first_ns <= first_ns and again_ns is not None and one.last_ns >= again_ns + grace_ns


def current_ns(topic: Topic) -> int:
    """Since when the current generation of the metadata log has been seen."""
    return topic.context.generations(topic.group).every[-1].since_ns


def lasting(one: Sequence[StatedId], other: Sequence[StatedId], grace_ns: int) -> list[StatedId]:
    """Statements of one ID that go on after another ID was first stated, and begin before that was last stated."""
    first_ns, last_ns = min(b.first_ns for b in other), max(b.last_ns for b in other)
    return [a for a in one if a.last_ns >= first_ns + grace_ns and a.first_ns + grace_ns <= last_ns]


def disagree(one: StatedId, other: StatedId, grace_ns: int) -> bool:
    """Whether both are stated again after both had been stated, and still after the grace period from there."""
    since_ns = max(one.first_ns, other.first_ns)
    again = one.again_ns(since_ns), other.again_ns(since_ns)
    if again[0] is None or again[1] is None:
        return False
    return min(one.last_ns, other.last_ns) >= max(again[0], again[1]) + grace_ns


def lacking(topic: Topic, mine: Sequence[StatedId], theirs: Sequence[StatedId], own: Collection[str]) -> list[Pair]:
    """Pairs of which one states no ID, and must have the other's: not where controllers send requests without IDs, as
    by an inter-broker protocol before 2.8. Brokers have their IDs from there.
    """
    if any(claim["topic_id"] is None and claim["source"] in CONTROL for claim in topic.bindings):
        return []
    nones, others = (mine, theirs) if mine[0].topic_id == ZERO else (theirs, mine)
    bare = without_tags(topic)
    nones = [none for none in nones if none.claim["endpoint"] not in bare]
    found = [(none, one) for none in nones for one in others if lacks(none, one, nones, others, own=own, topic=topic)]
    return found if mine[0].topic_id == ZERO else [(one, none) for none, one in found]


def without_tags(topic: Topic) -> set[str]:
    """The brokers to which a controller of the draft sends no ID in any kind of request in which it names one to others
    meanwhile: tags are optional there, and older brokers get none.
    """
    context, grace_ns = topic.context, topic.context.settings.broker_grace_ns
    bare: dict[tuple[str, str], dict[str, int]] = {}
    named: dict[str, dict[str, int]] = {}
    for claim in topic.bindings:
        if claim["source"] in CONTROL and claim["topic_id"] is not None:
            of_none = claim["topic_id"] == ZERO
            by = claim["by"]
            last = bare.setdefault((claim["endpoint"], by), {}) if of_none else named.setdefault(by, {})
            last[claim["source"]] = max(claim.last.ts_ns, last.get(claim["source"], 0))
    found = {
        end
        for (end, by), last in bare.items()
        if (beside := named.get(by)) and last.keys() >= beside.keys()
        if all(last_ns >= last[source] - grace_ns for source, last_ns in beside.items())
    }
    if not found:
        return found
    orders = context.claims("control", topic.group, "server")
    given = {claim["endpoint"] for claim in context.claims("ordered", topic.group, "name", topic.name)}
    return {one["endpoint"] for one in orders if one["api"].endswith(DRAFTED)} & found - given


def lacks(
    none: StatedId,
    one: StatedId,
    nones: Sequence[StatedId],
    others: Sequence[StatedId],
    *,
    own: Collection[str],
    topic: Topic,
) -> bool:
    """Whether who states no ID must have this one."""
    context = topic.context
    grace_ns, endpoint = context.settings.broker_grace_ns, at_endpoint(none)
    if none.authority != BROKER:
        return one.party == none.party and disagree(none, one, grace_ns)
    if at_endpoint(one) == endpoint:
        return disagree(none, one, grace_ns) and in_turns(none.spans, one.spans)
    if endpoint not in own:
        return one.authority == BROKER and disagree(none, one, grace_ns) and is_lone_broker(none, nones, topic)
    if one.authority == CONTROLLER:
        return goes_on(none.claim, one.first_ns, grace_ns)
    if not disagree(none, one, grace_ns):
        return False
    also = {at_endpoint(other) for other in others if other.authority == BROKER and disagree(none, other, grace_ns)}
    given = any(other.authority != BROKER for other in others)
    lasts_ns = min(none.last_ns, one.last_ns) - max(none.first_ns, one.first_ns)
    return (
        given
        or names_others(none.claim, topic, context)
        or has_ids(none.claim, topic, context)
        or uses_it(none, one.topic_id, topic)
        or (len(also.intersection(own)) >= WITNESSES and lasts_ns >= context.settings.roll_window_s * SECOND_NS)
    )


def is_lone_broker(none: StatedId, nones: Sequence[StatedId], topic: Topic) -> bool:
    """Whether a server that may be a proxy is the only one of its cluster without the ID, and its broker is at no other
    address: what renames or drops IDs does so at each of its addresses.
    """
    context = topic.context
    broker, endpoint = context.broker(none.claim), at_endpoint(none)
    if broker is None or {at_endpoint(other) for other in nones if other.authority == BROKER} != {endpoint}:
        return False
    listed = context.claims("address", topic.group, "server")
    if {one["address"] for one in listed if one["broker"] == broker} != {endpoint}:
        return False
    return names_others(none.claim, topic, context) or has_ids(none.claim, topic, context)


def has_ids(none: Claim, topic: Topic, context: CheckContext) -> bool:
    """Whether the server is a KRaft broker of a release that gives each topic an ID: all of them."""
    advertised = context.claims("advertised", topic.group, "server")
    return gives_ids({claim["ranges"] for claim in advertised if claim["endpoint"] == none["endpoint"]})


def uses_it(none: StatedId, topic_id: str, topic: Topic) -> bool:
    """Whether the broker that states no ID fetches by it, as a follower, meanwhile."""
    context = topic.context
    broker, grace_ns = context.broker(none.claim), context.settings.broker_grace_ns
    for claim in context.claims("use", topic.group, "id", topic_id):
        who = broker_of(claim["client_id"])
        if broker is not None and who == broker and context.acts_as(broker, claim["host"], topic.group):
            granted = claim.outcomes.runs({SUCCESS})
            if granted and min(none.last_ns, max(run.last_ns for run in granted)) - none.first_ns >= grace_ns:
                return True
    return False


def names_others(none: Claim, topic: Topic, context: CheckContext, kinds: Collection[str] = ("names",)) -> bool:
    """Whether a server gives or got IDs of other topics meanwhile: a controller assigns those of all topics at once.
    `kinds`: "carries" also has those that it granted to clients.
    """
    endpoint, grace_ns = none["endpoint"], context.settings.broker_grace_ns
    every = (claim for kind in kinds for claim in context.claims(kind, topic.group, "server"))
    last_ns, first_ns = none.last.ts_ns, none.first.ts_ns
    found = (claim for claim in every if claim["endpoint"] == endpoint)
    return any(min(c.last.ts_ns, last_ns) - max(c.first.ts_ns, first_ns) >= grace_ns for c in found)


WITNESSES = 2
"""So many other brokers must give an ID where one that never had it gives none."""
TURNS = 3
"""An ID that goes and comes back so often in answers of one server was not taken away by its controller."""


def in_turns(one: Sequence[Span], other: Sequence[Span]) -> bool:
    """Whether a party gives both by turns. A controller that takes IDs away, and the next one that gives them back,
    are two.
    """
    both = sorted([(begin, True) for begin, _ in one] + [(begin, False) for begin, _ in other])
    return sum(before != after for (_, before), (_, after) in pairwise(both)) > TURNS


OF_ONE_LISTENER = {"Metadata", "DescribeCluster", "LeaderAndIsr"}
"""APIs whose messages name brokers by the listener on which they are sent. Registrations name all listeners."""


def own_endpoints(group: Group, context: CheckContext) -> set[str]:
    """Endpoints that accepted what only nodes send each other: a node's own, and no proxy. So are those that they list,
    which are of the same listener.
    """
    context.watch()
    kinds = ("control", "broker_epoch")
    between = (claim for kind in kinds for claim in context.claims(kind, group, "server"))
    found = {claim["endpoint"] for claim in between if claim["error"] == 0}
    for broker in sorted(group.brokers):
        followed = context.claims("follower", group, "follower", str(broker))
        found |= {claim["endpoint"] for claim in followed if claim.peak.get("granted") == 1}
    listed = (one for one in context.claims("address", group, "server") if one.first.api in OF_ONE_LISTENER)
    return found | {one["address"] for one in listed if one["endpoint"] in found}


def without_proxies(pairs: list[Pair], own: Collection[str]) -> list[Pair]:
    """Without the endpoints that answer different clients with different IDs: a proxy may rename topics. One client
    that gets both on one connection shows that it is the server, as does what only a broker is asked for.
    """
    renaming = {
        endpoint
        for a, b in pairs
        if reports(a)
        and reports(b)
        and (endpoint := a.claim["endpoint"]) == b.claim["endpoint"]
        and endpoint not in own
        and connections(a).isdisjoint(connections(b))
    }
    return [(a, b) for a, b in pairs if renaming.isdisjoint({at_endpoint(a), at_endpoint(b)})]


def reports(one: StatedId) -> bool:
    """Whether it is what a server tells its clients about the topic."""
    return one.claim.kind == "binding" and one.claim["source"] in REPORTS


def connections(one: StatedId) -> set[str]:
    return {one.claim.first.connection, one.claim.last.connection}


def at_endpoint(one: StatedId) -> str | None:
    return one.claim["endpoint"] if one.authority == BROKER else None


def statements(topic: Topic, ids: Collection[str], context: CheckContext) -> Iterator[StatedId]:
    stale = stale_controllers(topic.group, context)
    for claim in topic.bindings:
        source, topic_id = claim["source"], claim["topic_id"]
        if topic_id not in ids or source in STATED_ONCE:
            continue
        if topic_id == ZERO and source not in (*CONTROL, *REPORTS, *ASKED_BY_ID):
            continue
        api = claim.first.api
        if source not in ORDERS:
            yield StatedId(topic_id, claim, BROKER, party(claim, context), api, spans(claim), claim.last.ts_ns)
        elif claim["by"] not in stale:
            by = f"controller {controllers_named([claim['by']])}"
            yield StatedId(topic_id, claim, CONTROLLER, by, api, spans(claim), claim.last.ts_ns)
    for topic_id in sorted({*ids} - {ZERO}):
        for claim in context.claims("use", topic.group, "id", topic_id):
            granted = sorted((run.first_ns, run.last_ns) for run in claim.outcomes.runs({SUCCESS}))
            if granted:
                last_ns = max(last for _, last in granted)
                yield StatedId(topic_id, claim, BROKER, party(claim, context), claim["api"], granted, last_ns)
    yield from logged(topic, context)


def logged(topic: Topic, context: CheckContext) -> Iterator[StatedId]:
    """The last ID that the metadata log gave the name, for as long as the log is seen to be read on without another
    record about it. Offsets decide between records; only what was written during the capture counts, as a node with an
    empty disk reads records again that ended long ago.
    """
    records = [claim for claim in topic.bindings if claim["source"] == SOURCE]
    last = max(records, key=lambda claim: claim.peak["offset"], default=None)
    removed = context.claims("deletion", topic.group, "id", last["topic_id"]) if last is not None else []
    if last is None or any("offset" in claim.peak for claim in removed):
        return
    context.watch()
    orders = [claim for claim in context.of_log(topic.group) if claim.kind == "log_order"]
    announced = [mark for claim in orders for name, mark in claim.peak.items() if name.startswith(AT)]
    written_ns = last.first.ts_ns
    before = max((mark[0] for mark in announced if -mark[1] < written_ns), default=None)
    if before is None or before > last.peak["offset"]:
        return
    read_ns = sorted({written_ns, *(-mark[1] for mark in announced if -mark[1] > written_ns)})
    if whole(written_ns, read_ns[-1], topic.group, context):
        reads = [(ts_ns, ts_ns) for ts_ns in read_ns]
        yield StatedId(last["topic_id"], last, LOG, AUTHORITIES[LOG], "records", reads, read_ns[-1])


def spans(claim: Claim) -> list[Span]:
    """When a claim was stated, by its slots of 10 s and its first and last sighting."""
    first_ns, last_ns = claim.first.ts_ns, claim.last.ts_ns
    between = (
        (max(start_ns(slot), first_ns), min(end_ns(slot), last_ns))
        for slot in slots(claim.tally)
        if first_ns < end_ns(slot) and start_ns(slot) < last_ns
    )
    return sorted({(first_ns, first_ns), *between, (last_ns, last_ns)})


def party(claim: Claim, context: CheckContext) -> str:
    node = context.node(claim)
    return f"broker {node}" if isinstance(node, int) else node
