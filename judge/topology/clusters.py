"""Which endpoints form one cluster, and which broker each endpoint belongs to.

Knows the three ways to join endpoints: a cluster ID that a server states or accepts, literal addresses in broker lists,
and topic IDs, which two clusters never share. Knows nothing of topic names.
Rule: two groups with different known cluster IDs are never united. An endpoint that states another cluster ID later is
a new incarnation (`endpoint_history.py`). What cannot be joined stays separate. If something contradicts membership in
the only known cluster, it is shown under no cluster (`membership.py`). An exception about one endpoint is a value
(`failures.py`): all others are separated without that endpoint.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from heapq import heappop, heappush
from itertools import chain, pairwise
from operator import attrgetter, itemgetter
from typing import NamedTuple

from wirecheck.judge.claims.claim import Claim
from wirecheck.judge.claims.kinds import UNANSWERED
from wirecheck.judge.ledger.failures import CLUSTERS, Failures, failure
from wirecheck.judge.ledger.ledger import in_order
from wirecheck.judge.topology.endpoint_history import (
    Births,
    Connections,
    births,
    changes_in_turn,
    disputed,
    host_of,
    is_literal,
    pieces,
    unknown,
)
from wirecheck.judge.topology.membership import (
    Barred,
    Membership,
    Node,
    Nodes,
    Reports,
    Twins,
    carried,
    listener_of,
    renamings,
    taken_apart,
    together,
    twins,
    two_logs,
    unreported,
)

ALWAYS = -(1 << 63)
Spans = dict[Node, tuple[int, int]]
TOUCHES = {
    "server",
    "advertised",
    "cluster_refused",
    "finalized_feature",
    "supported_feature",
    "node_feature",
    "unregistered",
    "feature_rejected",
    "feature_accepted",
    "listing",
    "creates",
    "order_type",
    "unsupported",
}
"""Kinds of claims that any client can cause. They show that an endpoint exists, but not how long its cluster was seen.
"""
RECEIVED = {"receives", "rejects"}
"""Kinds of claims about requests: they show not even that there is a server."""
FETCHES = "fetch_versions"
"""The only kind of claims about servers that is not about one endpoint. They show how long its cluster was seen."""
JOINING = {"address", "carries"}
"""Kinds of claims from control requests without a response that count where the capture has one direction only."""


MOST_FORMER = 16
"""Of the clusters that an address led to one after the other, so many are looked at."""


UNBARRED = Barred()


class Doubted(NamedTuple):
    """Servers that no member names."""

    hosts: frozenset[str] = frozenset()
    """Of those that contradict members."""
    unlisted: frozenset[str] = frozenset()
    """Endpoints of all of them."""


NONE_DOUBTED = Doubted()


class Joined:
    """Nodes that are one cluster: a union that no known ClusterId ever crosses. A root may have a ClusterId, and roots
    with different ones stay apart, as do those that cannot be of a cluster (`bars`) and those that are.
    """

    def __init__(self, known: dict[Node, str], bars: dict[Node, Barred]) -> None:
        self.parent: dict[Node, Node] = {}
        self.cluster_id, self.bars = dict(known), dict(bars)

    def root(self, node: Node) -> Node:
        while (parent := self.parent.get(node, node)) != node:
            node = parent
        return node

    def unite(self, one: Node, other: Node) -> None:
        kept, lost = sorted((self.root(one), self.root(other)))
        ids = {self.cluster_id[root] for root in (kept, lost) if root in self.cluster_id}
        if kept == lost or len(ids) > 1:
            return
        bars = self.bars.get(kept, UNBARRED).joined(self.bars.get(lost, UNBARRED))
        if any(cluster_id in bars for cluster_id in ids):
            return
        self.parent[lost], self.bars[kept] = kept, bars
        if ids:
            self.cluster_id[kept] = ids.pop()


@dataclass(eq=False)
class Group:
    """Endpoints known to be one cluster. Claims are compared only inside a group."""

    key: str
    """Its cluster in identities: its ClusterId, else the label's only one, else the label."""
    cluster_id: str | None = None
    cluster: str | None = None
    """The name of the cluster in rows: the key; None for endpoints that cannot belong to any known cluster."""
    outsider: bool = False
    """It states a cluster ID, but that cluster does not know it. Its statements are ignored."""
    endpoints: list[str] = field(default_factory=list)
    brokers: set[int] = field(default_factory=set)
    first_ns: int = 0
    last_ns: int = 0
    hosts: set[str] = field(default_factory=set)
    """Hosts of its brokers and controllers, as far as literal addresses show them."""
    listed: bool = False
    """Its broker lists have literal addresses only: a host that is not listed is not a broker."""

    def facts(self) -> tuple[object, ...]:
        return (self.key, self.cluster_id, self.cluster, self.outsider, self.endpoints[0])


class Named(NamedTuple):
    """A broker that a cluster's servers list at an address, and from when to when they do."""

    first_ns: int
    last_ns: int
    broker: int


@dataclass(frozen=True)
class Place:
    """An endpoint from a time on."""

    since_ns: int
    group: Group
    named: tuple[Named, ...] = ()

    @cached_property
    def holders(self) -> tuple[tuple[int, int | None], ...]:
        """The broker that was here from each time on. Of those that are named here then, who was named here last for
        the first time, as brokers may swap their addresses, and swap them back; where none is, who was named last.
        Where one list names several brokers here, a proxy stands for them: then it is none of them.
        """
        known = [one for one in self.named if isinstance(one.broker, int)]  # whatever a claim says
        if len(known) < 2:
            return tuple((ALWAYS, one.broker) for one in known)
        if len({one.first_ns for one in known}) < len(known):
            return ((ALWAYS, None),)
        begins = sorted(known, key=lambda one: one.first_ns)
        found: list[tuple[int, int | None]] = [(ALWAYS, min(known).broker)]
        begun, lasted = 0, begins[0]
        named: list[tuple[int, int, int]] = []  # those that have begun, the greatest on top, with negative numbers
        for since_ns in sorted({*(one.first_ns for one in begins), *(one.last_ns + 1 for one in begins)}):
            while begun < len(begins) and begins[begun].first_ns <= since_ns:
                one = begins[begun]
                heappush(named, (-one.first_ns, -one.last_ns, -one.broker))
                lasted = max(lasted, one, key=lambda one: (one.last_ns, one.first_ns))
                begun += 1
            while named and -named[0][1] < since_ns:
                heappop(named)
            broker = -named[0][2] if named else lasted.broker
            if broker != found[-1][1]:
                found.append((since_ns, broker))
        return tuple(found)

    def broker(self, ts_ns: int) -> int | None:
        """Which broker was here at a time."""
        at = bisect_right(self.holders, ts_ns, key=itemgetter(0))
        return self.holders[at - 1][1] if at else None

    def facts(self) -> tuple[object, ...]:
        return (self.since_ns, *self.group.facts(), self.holders)


SINCE = attrgetter("since_ns")


class Clusters:
    """All endpoints of one label in their groups."""

    def __init__(
        self,
        label: str,
        claims: Iterable[Claim] = (),
        connections: Connections = unknown,
        reports: Reports = unreported,
        doubted: Doubted = NONE_DOUBTED,
    ) -> None:
        by_kind: dict[str, list[Claim]] = defaultdict(list)
        claims = in_order(claims)
        self.answering = {claim["endpoint"] for claim in claims if claim.kind == "server" and claim.peak.get("answers")}
        for claim in self.believable(one for one in claims if one.kind not in RECEIVED):
            by_kind[claim.kind].append(claim)
        everything = [claim for found in by_kind.values() for claim in found]
        by_kind.pop(FETCHES, None)
        self.addresses = by_members(by_kind["address"], doubted.unlisted)
        """Statements of servers about the addresses of brokers; of members' addresses, those of members."""
        self.unlisted = doubted.unlisted
        """Endpoints that no member names."""
        self.listener = listener_of(self.addresses)
        self.listed_with = together(self.addresses)
        """By host one of those that broker lists connect it with, however far."""
        self.named_ends = {claim["address"] for claim in self.addresses}
        """Addresses of brokers."""
        self.unknown = Group(label)
        self.births = births(by_kind["cluster_id"], self.addresses, connections, by_kind["advertised"])
        of_several = disputed(by_kind["cluster_id"])
        self.disputed = set(of_several)
        """Endpoints that may state several ClusterIds in turn."""
        self.in_turn = {endpoint for endpoint, statements in of_several.items() if changes_in_turn(statements)}
        """Endpoints that surely do."""
        spans, facts = self.spans_of(everything)
        self.latest = latest(spans)
        """When each endpoint was seen last."""
        stated = {(end, n): cluster_id for end, found in self.births.items() for n, (_, cluster_id) in enumerate(found)}
        self.two_logs = two_logs(without(doubted.hosts, by_kind), self.listener, reports)
        """Pairs of endpoints of two running clusters, none on a doubted host: what such a server states separates no
        members. If no cluster ID is known, both may stay in one group."""
        self.twins = twins(self.two_logs, stated)
        """Pairs of endpoints of two running clusters with one cluster ID."""
        self.renamings = twins(renamings(without(doubted.hosts, by_kind), self.listener), stated)
        """Pairs of endpoints, one of a proxy that renames topics, the other of the brokers behind it."""
        if self.twins or self.renamings:
            stated = taken_apart(stated, by_kind["names"], [*self.twins, *self.renamings], self.listener)
        self.membership = Membership(by_kind, self.node, stated)
        stated = self.membership.stated
        apart = self.membership.outsiders | self.membership.beside
        joined = Joined(
            {one: cluster_id for one, cluster_id in stated.items() if one not in apart}, self.membership.bars
        )
        for first, second in chain(self.returns(), edges(by_kind, self.node, self.births)):
            if first not in apart and second not in apart:
                joined.unite(first, second)
        self.groups = self.named(label, joined, spans)
        self.date(spans, facts)
        self.places = self.placed(self.addresses, doubted.unlisted)
        self.resolved: Mapping[str, int] = {}
        """By endpoint the broker that answers there, where brokers are known by host names (`host_names.py`)."""
        self.serving: Collection[str] = ()
        """Of these, endpoints that serve partitions."""
        self.uncaptured_of: dict[frozenset[int], int] = {}
        """By clusters (their `id()`) how many of their brokers were not captured, once that was asked for."""
        self.former: dict[int, list[Group]] = {}
        """By cluster (its `id()`) those that its addresses led to before, once they were asked for."""
        self.only = {endpoint: places[0].group for endpoint, places in self.places.items() if len(places) == 1}
        """Groups of endpoints that were never anywhere else."""
        self.alone = len(self.only) == len(self.places)
        """No endpoint was ever another cluster's."""

    def resolve(self, brokers: Mapping[str, int], serving: Collection[str] = ()) -> None:
        """Brokers that are known by host names answer at these endpoints, and serve partitions at some."""
        self.resolved, self.serving = brokers, serving
        self.uncaptured_of.clear()
        for endpoint, broker in brokers.items():
            named = (Named(ALWAYS, ALWAYS, broker),)
            self.places[endpoint] = [
                place if place.named else replace(place, named=named) for place in self.places[endpoint]
            ]

    @cached_property
    def listed_by(self) -> dict[str, list[Claim]]:
        """By endpoint what it states about the addresses of brokers."""
        found: dict[str, list[Claim]] = defaultdict(list)
        for claim in self.addresses:
            found[claim["endpoint"]].append(claim)
        return found

    def uncaptured(self, groups: Collection[Group]) -> int:
        """How many brokers of these answer at no endpoint of the capture, at least: a server that no list names, as of
        an address translation, may be any of them.
        """
        which = frozenset(map(id, groups))
        if which not in self.uncaptured_of:  # each client asks
            self.uncaptured_of[which] = self.counted_uncaptured(groups)
        return self.uncaptured_of[which]

    def counted_uncaptured(self, groups: Collection[Group]) -> int:
        ours = {endpoint for group in groups for endpoint in group.endpoints}
        listed = [claim for endpoint in ours for claim in self.listed_by.get(endpoint, ())]
        here = {claim["broker"] for claim in listed if claim["address"] in ours}
        here |= {self.resolved[endpoint] for endpoint in ours if endpoint in self.resolved}
        named = {claim["address"] for claim in listed} | self.resolved.keys()
        unnamed = {claim["endpoint"] for claim in listed} - named
        return max(0, len({claim["broker"] for claim in listed} - here) - len(unnamed))

    def known_uncaptured(self, groups: Collection[Group]) -> int | None:
        """The same; None where no answer lists brokers."""
        listed = any(self.listed_by.get(endpoint) for group in groups for endpoint in group.endpoints)
        return self.uncaptured(groups) if listed else None

    def believable(self, claims: Iterable[Claim]) -> Iterator[Claim]:
        """What counts of servers' claims."""
        for claim in claims:
            kind = claim.kind.removeprefix(UNANSWERED)
            if kind == claim.kind:
                yield claim
            elif claim["endpoint"] not in self.answering and kind in JOINING:
                yield Claim(kind, claim.key[:-1], claim.first, claim.last, peak=claim.peak)

    def returns(self) -> Iterator[tuple[Node, Node]]:
        """Nodes of an endpoint that led to one cluster more than once."""
        for endpoint, found in self.births.items():
            first: dict[str, int] = {}
            for number, (_, cluster_id) in enumerate(found):
                if first.setdefault(cluster_id, number) != number:
                    yield (endpoint, first[cluster_id]), (endpoint, number)

    def handovers_of(self, endpoint: str) -> Iterator[tuple[str, Place, Place]]:
        """Where an endpoint led to one cluster, then to another: the places before and after."""
        for before, after in pairwise(self.places.get(endpoint, ())):
            if before.group is not after.group and endpoint not in self.disputed:
                yield endpoint, before, after

    def is_former(self, group: Group) -> bool:
        """Whether all its addresses lead to other clusters now, one after the other and not in turn."""
        return bool(group.endpoints) and all(
            self.places[endpoint][-1].group is not group and endpoint not in self.disputed
            for endpoint in group.endpoints
        )

    def formerly(self, group: Group) -> list[Group]:
        """Clusters that an address of this one led to before, the latest first, or leads to in turn."""
        if id(group) not in self.former:
            found: dict[int, Group] = {}
            for endpoint in group.endpoints if len(self.groups) > 1 else ():
                groups = [place.group for place in reversed(self.places[endpoint])]
                since = 0 if endpoint in self.disputed else groups.index(group)
                others = [one for one in groups[since : since + MOST_FORMER] if one is not group]
                found |= {id(one): one for one in others if id(one) not in found}
            self.former[id(group)] = [*found.values()][:MOST_FORMER]
        return self.former[id(group)]

    @cached_property
    def handovers_to(self) -> dict[int, list[tuple[str, Place, Place]]]:
        """By cluster (its `id()`) the addresses that led to another one before, of each the latest handovers."""
        found: dict[int, list[tuple[str, Place, Place]]] = defaultdict(list)
        for endpoint in sorted(self.places):
            for _, before, after in [*self.handovers_of(endpoint)][-MOST_FORMER:]:
                found[id(after.group)].append((endpoint, before, after))
        return found

    def silent(self, endpoint: str) -> bool:
        """Whether no response of it was captured, as in a capture of one direction."""
        return endpoint not in self.answering

    def node(self, endpoint: str, ts_ns: int) -> Node:
        begun = self.births.get(endpoint, ())
        if len(begun) < 2:
            return endpoint, 0
        return endpoint, max(0, bisect_right(begun, ts_ns, key=itemgetter(0)) - 1)

    def of(self, endpoint: str, ts_ns: int) -> Group:
        place = self.place(endpoint, ts_ns)
        return place.group if place else self.unknown

    def in_group(self, twin: Twins, group: Group) -> bool:
        """Whether both endpoints of two clusters were in one group when that was seen."""
        return all(self.of(end, claim.first.ts_ns) is group for end, claim in zip(twin[:2], twin.shown_by, strict=True))

    def broker(self, endpoint: str, ts_ns: int) -> int | None:
        place = self.place(endpoint, ts_ns)
        return place.broker(ts_ns) if place else None

    def node_at(self, endpoint: str, ts_ns: int) -> int | str:
        """The broker of an endpoint, else the only broker of its host, else the host."""
        broker = self.broker(endpoint, ts_ns)
        if broker is not None:
            return broker
        host, group = host_of(endpoint), self.of(endpoint, ts_ns)
        ends = (other for other in group.endpoints if host_of(other) == host)
        brokers = {known for other in ends if (known := self.broker(other, ts_ns)) is not None}
        return brokers.pop() if len(brokers) == 1 else host

    @cached_property
    def named_hosts(self) -> dict[int, set[tuple[int, str]]]:
        """Per group (by `id()`) the broker IDs and hosts that its servers list; of brokers that members list, where
        they list them.
        """
        found: dict[int, set[tuple[int, str]]] = defaultdict(set)
        theirs: dict[int, set[int]] = defaultdict(set)
        for claim in sorted(self.addresses, key=lambda one: one["endpoint"] in self.unlisted):  # members first
            group = id(self.of(claim["endpoint"], claim.last.ts_ns))
            if claim["endpoint"] not in self.unlisted:
                theirs[group].add(claim["broker"])
            elif claim["broker"] in theirs[group]:
                continue
            found[group].add((claim["broker"], host_of(claim["address"])))
        return found

    @cached_property
    def unassigned(self) -> set[int]:
        """By group's identity those that are shown under no cluster."""
        return {id(group) for group in (*self.groups, self.unknown) if group.cluster is None}

    def place(self, endpoint: str, ts_ns: int) -> Place | None:
        places = self.places.get(endpoint)
        return places[bisect_right(places, ts_ns, key=SINCE) - 1] if places else None  # the first is there from ALWAYS

    def group_of(self, claim: Claim) -> Group:
        """The cluster in which a claim was first made."""
        server = claim.server()
        return self.only.get(server) or self.of(server, claim.first.ts_ns)

    def only_group_of(self, claim: Claim) -> Group | None:
        """The cluster in which all of a claim was made, if its endpoints never led to another."""
        only = self.only.get(claim.server())
        return only if self.alone or claim.first.server == claim.last.server else None

    def parts(self, claim: Claim) -> Iterator[tuple[Group, Claim]]:
        """A claim and its cluster; where its endpoint led to several while it was made, one part per cluster. Answers
        over time have one part for each time that it led there, as what was answered between breaks a streak of errors.
        """
        only = self.only_group_of(claim)
        if only is not None:
            yield only, claim
            return
        server = claim.server()
        heir = claim.last.server if server == claim.first.server else server
        places = self.places.get(heir, ())
        begin, end = (bisect_right(places, seen.ts_ns, key=SINCE) for seen in (claim.first, claim.last))
        since = places[max(1, begin) : end]
        groups = [self.of(server, claim.first.ts_ns), *(one.group for one in since)]
        if all(group is groups[0] for group in groups):
            yield groups[0], claim
            return
        found: dict[int, tuple[Group, Claim]] = {}
        for number, part in pieces(claim, [one.since_ns for one in since]):
            group = groups[number]
            if claim.outcomes:
                yield group, part
            elif id(group) in found:
                found[id(group)][1].merge(part)
            else:
                found[id(group)] = group, part
        yield from found.values()

    def spans_of(self, claims: Iterable[Claim]) -> tuple[Spans, Spans]:
        """When each incarnation of an endpoint was seen first and last; and the same without what merely touches it."""
        spans: Spans = {}
        facts: Spans = {}
        for claim in claims:
            for endpoint, ts_ns in ends(claim):
                node = self.node(endpoint, ts_ns)
                for found in (spans,) if touches(claim) else (spans, facts):
                    found.setdefault((endpoint, 0), (ts_ns, ts_ns))
                    first, last = found.get(node, (ts_ns, ts_ns))
                    found[node] = (min(first, ts_ns), max(last, ts_ns))
        for endpoint, begun in self.births.items():
            for number, (since_ns, _) in enumerate(begun[1:], 1):
                if (endpoint, 0) in spans:  # a later incarnation, seen or not, is there from its birth on
                    spans[endpoint, number] = since_ns, spans.get((endpoint, number), (since_ns, since_ns))[1]
        return spans, facts

    def date(self, spans: Spans, facts: Spans) -> None:
        """When each group was seen first and last: by facts, where there are any."""
        nodes: dict[int, list[Node]] = defaultdict(list)
        for node, group in self.group_at.items():
            nodes[id(group)].append(node)
        for group in self.groups:
            times = [facts[node] for node in nodes[id(group)] if node in facts]
            times = times or [spans[node] for node in nodes[id(group)] if node in spans]
            if times:
                group.first_ns, group.last_ns = min(first for first, _ in times), max(last for _, last in times)

    def named(self, label: str, joined: Joined, spans: Spans) -> list[Group]:
        """The groups with their names. `unknown` is the group for endpoints without any claim."""
        members: dict[Node, list[Node]] = defaultdict(list)
        for node in spans:
            members[joined.root(node)].append(node)
        known = {joined.cluster_id[root] for root in members if root in joined.cluster_id}
        bars = {root: joined.bars.get(root, UNBARRED) for root in members if root not in joined.cluster_id}
        second = len(known) > 1 or any(bars.values())
        only = next(iter(known)) if len(known) == 1 else label
        self.unknown = Group(only, cluster=None if second else only)
        self.group_at: dict[Node, Group] = {}
        groups = []
        for root, nodes in sorted(members.items(), key=lambda item: min(item[1])):
            cluster_id = joined.cluster_id.get(root)
            ends = sorted({endpoint for endpoint, _ in nodes})
            shown = cluster_id or self.shown(nodes, known, bars.get(root, UNBARRED), second=second)
            key = shown or label
            group = Group(key, cluster_id, shown if known else label, endpoints=ends)
            group.outsider = root in self.membership.outsiders
            self.group_at.update(dict.fromkeys(nodes, group))
            groups.append(group)
        return groups

    def shown(self, nodes: list[Node], known: set[str], barred: Barred, *, second: bool) -> str | None:
        """Under which cluster those are shown that could not be joined: that of their host, else the only one."""
        if self.membership.outsiders.intersection(nodes):
            return None
        hosts = {host_of(endpoint) for endpoint, _ in nodes}
        there = {one for host in hosts for one in self.membership.clusters_at.get(host, ())}
        near = {one for one in there if one in known and one not in barred}
        found = near if second or near else {one for one in known if one not in barred}
        return found.pop() if len(found) == 1 else None

    def placed(self, addresses: list[Claim], unlisted: Collection[str]) -> dict[str, list[Place]]:
        """Which broker is where. What servers that no member names (`unlisted`) call a broker is none that members
        have elsewhere.
        """
        theirs = {claim["broker"] for claim in addresses if claim["endpoint"] not in unlisted} if unlisted else set()
        brokers: dict[tuple[int, str], dict[int, Named]] = defaultdict(dict)
        named: dict[int, set[str]] = defaultdict(set)
        for claim in addresses:
            for seen in (claim.first, claim.last):
                group = self.group_at[self.node(claim["endpoint"], seen.ts_ns)]
                group.brokers.add(claim["broker"])
                named[id(group)].add(claim["address"])
                if claim["endpoint"] in unlisted and claim["broker"] in theirs:
                    continue
                known = brokers[id(group), claim["address"]]
                now = known.get(claim["broker"], Named(seen.ts_ns, seen.ts_ns, claim["broker"]))
                span = min(now.first_ns, seen.ts_ns), max(now.last_ns, seen.ts_ns)
                known[claim["broker"]] = Named(*span, claim["broker"])
        for group in self.groups:
            lists = named[id(group)]
            group.listed = bool(lists) and all(map(is_literal, lists))
            group.hosts = {host_of(address) for address in (*group.endpoints, *filter(is_literal, lists))}
        places: dict[str, list[Place]] = defaultdict(list)
        for (endpoint, number), group in sorted(self.group_at.items(), key=lambda item: item[0]):
            since = self.births[endpoint][number][0] if number else ALWAYS
            places[endpoint].append(Place(since, group, tuple(sorted(brokers.get((id(group), endpoint), {}).values()))))
        return places

    def moved(self, before: "Clusters") -> bool:
        """Whether an endpoint that was known before now belongs elsewhere."""
        return any(
            endpoint in self.places
            and [place.facts() for place in places] != [place.facts() for place in self.places[endpoint]]
            for endpoint, places in before.places.items()
        ) or (before.unknown.key, before.unknown.cluster) != (self.unknown.key, self.unknown.cluster)


def ends(claim: Claim) -> Iterator[tuple[str, int]]:
    """The endpoints of the first and the last sighting of a claim, with the times."""
    for seen in (claim.first, claim.last):
        yield seen.server if claim.kind == FETCHES else claim["endpoint"], seen.ts_ns


def latest(spans: Spans) -> dict[str, int]:
    found: dict[str, int] = {}
    for (endpoint, _), (_, last_ns) in spans.items():
        found[endpoint] = max(last_ns, found.get(endpoint, last_ns))
    return found


def touches(claim: Claim) -> bool:
    return claim.kind in TOUCHES or (claim.kind == "control" and claim["error"] != 0)


def edges(claims: dict[str, list[Claim]], node: Nodes, births: Births) -> Iterator[tuple[Node, Node]]:
    """Pairs of nodes that belong to one cluster, the most reliable reasons first. An endpoint that lists an address
    that led to several clusters (both brokers of one VIP, for example) may belong to any of them.
    """
    yield from same([(c.first.ts_ns, c["endpoint"], c["cluster_id"]) for c in claims["cluster_id"]], node)
    listed = [*address_edges(claims, node)]
    ambiguous = {address for address, found in births.items() if len(found) > 1}
    yield from (edge for edge in listed if edge[1][0] not in ambiguous)
    shared = sorted((topic_id, end, ts_ns) for end, topic_id, ts_ns in carried(claims["carries"]))
    yield from same([(ts_ns, end, topic_id) for topic_id, end, ts_ns in shared], node)
    yield from (edge for edge in listed if edge[1][0] in ambiguous)


def same(statements: list[tuple[int, str, str]], node: Nodes) -> Iterator[tuple[Node, Node]]:
    """Pairs of nodes with the same cluster ID, or the same topic ID."""
    seen: dict[str, tuple[Node, Node]] = {}
    for ts_ns, endpoint, what in statements:
        here = node(endpoint, ts_ns)
        first, previous = seen.get(what, (here, here))
        if first != here:
            yield first, here
        if previous not in {here, first}:
            yield previous, here
        seen[what] = (first, here)


def without(hosts: Collection[str], by_kind: dict[str, list[Claim]]) -> dict[str, list[Claim]]:
    """The claims about servers on other hosts."""
    if not hosts:
        return by_kind
    kept = ((kind, [one for one in found if host_of(one["endpoint"]) not in hosts]) for kind, found in by_kind.items())
    return defaultdict(list, kept)


def by_members(addresses: list[Claim], unlisted: Collection[str]) -> list[Claim]:
    """Without what `unlisted`, endpoints that no member names, state about addresses that others name."""
    if not unlisted:
        return addresses
    named = {claim["address"] for claim in addresses if claim["endpoint"] not in unlisted}
    return [claim for claim in addresses if claim["endpoint"] not in unlisted or claim["address"] not in named]


def address_edges(claims: dict[str, list[Claim]], node: Nodes) -> Iterator[tuple[Node, Node]]:
    servers = {claim["endpoint"] for found in claims.values() for claim in found}
    for claim in claims["address"]:
        if claim["address"] in servers and is_literal(claim["address"]):
            for ts_ns in (claim.first.ts_ns, claim.last.ts_ns):
                yield node(claim["endpoint"], ts_ns), node(claim["address"], ts_ns)


EVERY, UNKNOWN = "all of them", ""


def separate(
    label: str,
    stated: Iterable[Claim],
    connections: Connections,
    failures: Failures,
    *,
    reports: Reports = unreported,
    doubted: Doubted = NONE_DOUBTED,
) -> tuple[Clusters, str | None]:
    """The clusters; and the endpoint that had to be omitted because of an exception, EVERY for all of them."""
    claims = list(stated)
    failures.forget(CLUSTERS)
    try:
        return Clusters(label, claims, connections, reports, doubted), None
    except Exception as error:  # noqa: BLE001 - whatever foreign bytes can bring about
        failures.add(failure(CLUSTERS, (CLUSTERS,), error))
    servers = [server_of(claim) for claim in claims]
    for endpoint in sorted(set(servers)):
        others = [claim for claim, server in zip(claims, servers, strict=True) if server not in {endpoint, UNKNOWN}]
        with suppress(Exception):
            return Clusters(label, others, connections, reports, doubted), endpoint
    return Clusters(label), EVERY


def server_of(claim: Claim) -> str:
    """The server that a claim is about; UNKNOWN if its key does not have it."""
    with suppress(Exception):
        return str(claim.server())
    return UNKNOWN
