"""Which endpoints belong to a cluster, what contradicts that, and two running clusters with one cluster ID.

Rule: anyone can send a cluster ID, so stating it makes no endpoint a member. The core of a cluster is the endpoint
whose host most others list, with all that it lists in turn. An endpoint that is missing from complete lists of literal
addresses has to report the same topic IDs as the cluster. Host names and controllers are in no list, so for them only
different topic IDs count against membership. Only a contradiction separates clusters with one cluster ID, never
addresses alone: one leader epoch begins twice, at two endpoints that both continue to lead; two controllers accept
heartbeats of two registrations of one broker number at the same time; one broker number answers at two endpoints, whose
lists share no address, with two IDs for one name for longer than a change takes; or two controllers accept heartbeats
at the same time, and brokers whose lists share no address report such IDs. The key of each cluster is the cluster ID
and its smallest endpoint.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import chain, combinations, product
from typing import NamedTuple

from wirecheck.decode.api_names import key_of
from wirecheck.decode.releases import is_narrowed, read
from wirecheck.judge.claims.claim import AT, LEAST, Claim, Sighting
from wirecheck.judge.claims.overlaps import overlapping
from wirecheck.judge.topology.endpoint_history import host_of, is_literal

Node = tuple[str, int]
"""An endpoint and which incarnation of it."""
Nodes = Callable[[str, int], Node]
"""From an endpoint and a time to the node it was then."""
OF_CONTROLLERS = ("log_order", "heartbeat")
"""Kinds of claims about endpoints that serve the metadata log: a list of brokers leaves them out."""


@dataclass
class Words:
    """What one node states about its cluster."""

    lists: set[str] = field(default_factory=set)
    """Addresses of brokers that it hands out."""
    registered: set[str] = field(default_factory=set)
    """Addresses of nodes in voter sets and registrations that it shows: controllers too, on any listener."""
    names: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """By the hash of a topic's name the IDs that it reports for it."""
    ids: set[str] = field(default_factory=set)
    """Topic IDs that it uses or reports."""
    controller: bool = False
    stated: bool = False
    """Whether it stated its cluster itself."""
    first_ns: int = 1 << 63

    @property
    def hosts(self) -> set[str]:
        return {host_of(address) for address in self.lists | self.registered if is_literal(address)}

    @property
    def literal(self) -> bool:
        return bool(self.lists) and all(map(is_literal, self.lists))

    def common(self, other: "Words") -> int:
        """How many names have the same ID in both; or how many IDs are in both, if they share no name."""
        both = self.names.keys() & other.names.keys()
        return sum(not self.names[name].isdisjoint(other.names[name]) for name in both) or len(self.ids & other.ids)

    def apart(self, other: "Words") -> int:
        """How many names have different ids with both."""
        return sum(self.names[name].isdisjoint(other.names[name]) for name in self.names.keys() & other.names.keys())

    def add(self, other: "Words") -> None:
        self.lists |= other.lists
        self.registered |= other.registered
        self.ids |= other.ids
        for name, ids in other.names.items():
            self.names[name] |= ids


@dataclass
class Core:
    """The part of a cluster that is beyond doubt."""

    members: set[Node]
    words: Words = field(default_factory=Words)
    """The statements of all its members."""

    def add(self, found: Iterable[tuple[Node, Words]]) -> None:
        """Those that state the ClusterId and report IDs of the core: their lists may be another listener's."""
        known = [(one, words) for one, words in found if words.stated and words.common(self.words)]
        for one, words in known:
            self.members.add(one)
            self.words.add(words)

    @property
    def hosts(self) -> set[str]:
        return self.words.hosts | {host_of(endpoint) for endpoint, _ in self.members}

    @property
    def complete(self) -> bool:
        """Whether its lists show all of its brokers: they have literal addresses only, and captured ones among them."""
        return self.words.literal and any(endpoint in self.words.lists for endpoint, _ in self.members)


class Membership:
    """By ClusterId its core, which nodes are not of the cluster that they state, and what others cannot be of."""

    def __init__(self, claims: dict[str, list[Claim]], node: Nodes, stated: dict[Node, str]) -> None:
        self.words = words_of(claims, node)
        self.cores: dict[str, Core] = {}
        self.outsiders: set[Node] = set()
        """They state a cluster ID, but that cluster does not know them."""
        self.beside: set[Node] = set()
        """They state a cluster ID and list only brokers of that cluster, but no other node lists them."""
        self.stated = dict(stated)
        """ClusterIds by node, with the key of its cluster where two have one ClusterId."""
        by_id: dict[str, list[Node]] = defaultdict(list)
        for one, cluster_id in stated.items():
            by_id[cluster_id].append(one)
        for cluster_id, nodes in sorted(by_id.items()):
            core = self.cores[cluster_id] = self.core(nodes)
            others = set(nodes) - core.members
            known = {host_of(one[0]) for one in others if self.words[one].stated and self.agrees(one, core)}
            for one in others:
                self.place(one, core, known)
            self.take_apart(cluster_id, others)
            others = {one for one in others if self.stated[one] == cluster_id}
            core.add((one, self.words[one]) for one in others - self.outsiders - self.beside)
        self.index()
        self.bars = {one: self.barred(one) for one in self.words if one not in stated}
        """By node without a ClusterId those it cannot be of."""

    def core(self, nodes: list[Node]) -> Core:
        """The members: the endpoint whose host most others list, and all that it lists in turn. Ties are broken by the
        number of shared topic IDs, then by the first sighting.
        """
        lists = {one: self.words[one].hosts for one in nodes}
        named = Counter(host for hosts in lists.values() for host in hosts)
        carried = Counter(topic_id for one in nodes for topic_id in self.words[one].ids)

        def rank(one: Node) -> tuple[bool, int, int, int, Node]:
            words, host = self.words[one], host_of(one[0])
            shared = max((carried[topic_id] for topic_id in words.ids), default=0)
            return not words.stated, (host in lists[one]) - named[host], -shared, words.first_ns, one

        core = Core(set())
        left, found = set(nodes), {min(nodes, key=rank)}
        while found:
            core.members |= found
            left -= found
            for one in found:
                core.words.add(self.words[one])
            hosts = core.words.hosts
            found = {one for one in left if host_of(one[0]) in hosts}
        return core

    def take_apart(self, cluster_id: str, others: set[Node]) -> None:
        """Nodes outside the core that list one another are a cluster of their own, with what they name and what reports
        their IDs. Any number of servers can state a ClusterId and list one another, also before its brokers are seen:
        who has it in truth is not decided.
        """
        outside = sorted(self.outsiders & others)
        rivals = self.core(outside) if outside else Core(set())
        hosts = {host_of(endpoint) for endpoint, _ in rivals.members}
        listed = {host for one in rivals.members for host in self.words[one].hosts - {host_of(one[0])}}
        if len(hosts & listed) < LEAST_RIVALS:
            return
        near = rivals.hosts - self.cores[cluster_id].hosts
        left = {one: self.words[one] for one in others - rivals.members}
        rivals.members |= {
            one for one, words in left.items() if host_of(one[0]) in near or not near.isdisjoint(words.hosts)
        }
        rivals.add(left.items())
        self.outsiders -= rivals.members
        self.beside -= rivals.members
        key = f"{cluster_id}@{min(endpoint for endpoint, _ in rivals.members)}"
        self.stated |= dict.fromkeys(rivals.members, key)
        self.cores[key] = rivals

    def agrees(self, one: Node, core: Core) -> bool:
        """Whether most of the topic IDs that it reports are the core's."""
        return self.words[one].common(core.words) > self.words[one].apart(core.words)

    def place(self, one: Node, core: Core, known: Collection[str]) -> None:
        """Decide whether a node that the core does not list belongs to the cluster nevertheless. `known`: hosts where
        another listener reports its topic IDs.
        """
        words = self.words[one]
        common, apart = words.common(core.words), words.apart(core.words)
        if not core.complete or not words.stated or words.controller:
            if apart and not common:
                self.outsiders.add(one)
        elif not common and not words.ids and words.lists and words.lists <= core.words.lists:
            self.beside.add(one)
        elif apart > common or not (common or host_of(one[0]) in known):
            self.outsiders.add(one)

    def barred(self, one: Node) -> "Barred":
        """Known clusters that a node without a ClusterId cannot be of. Those with which it has no topic and no host in
        common are all alike.
        """
        words, host = self.words[one], host_of(one[0])
        others = self.every if words.literal else NO_CLUSTERS if words.controller else self.complete
        near = {cluster_id for each in {host, *words.hosts} for cluster_id in self.clusters_at.get(each, ())}
        topics = {*words.names, *words.ids, *(topic_id for ids in words.names.values() for topic_id in ids)}
        near |= {cluster_id for topic in topics for cluster_id in self.clusters_with.get(topic, ())}
        barred = {cluster_id for cluster_id in near if self.is_barred(words, host, self.cores[cluster_id])}
        return Barred(others, frozenset(near - barred), frozenset(barred - others))

    def is_barred(self, words: Words, host: str, core: Core) -> bool:
        if words.common(core.words):
            return False
        left_out = core.complete and not words.controller
        names_others = words.literal and words.hosts.isdisjoint(core.hosts)
        return bool(words.apart(core.words)) or (host not in core.hosts and (left_out or names_others))

    def index(self) -> None:
        """By host, and by topic, the clusters that have it; those with all of their brokers known."""
        self.every = frozenset(self.cores)
        self.complete = frozenset(cluster_id for cluster_id, core in self.cores.items() if core.complete)
        self.clusters_at: dict[str, list[str]] = defaultdict(list)
        """By host the clusters that have a member there, or list one."""
        self.clusters_with: dict[str, list[str]] = defaultdict(list)
        """By topic ID, and by the hash of a topic's name."""
        for cluster_id, core in self.cores.items():
            for host in core.hosts:
                self.clusters_at[host].append(cluster_id)
            for topic in {*core.words.names, *core.words.ids, *chain.from_iterable(core.words.names.values())}:
                self.clusters_with[topic].append(cluster_id)


NO_CLUSTERS: frozenset[str] = frozenset()
LEAST_RIVALS = 2
"""So many hosts list one another: one server that lists itself is no cluster."""


@dataclass(frozen=True)
class Barred:
    """Clusters that a node cannot be of. There may be many, nearly the same for each node: `most` is shared."""

    most: frozenset[str] = NO_CLUSTERS
    """None, those that are complete, or all of them."""
    but: frozenset[str] = NO_CLUSTERS
    also: frozenset[str] = NO_CLUSTERS

    def __contains__(self, cluster_id: object) -> bool:
        return cluster_id in self.also or (cluster_id in self.most and cluster_id not in self.but)

    def __bool__(self) -> bool:
        return bool(self.also) or len(self.most) > len(self.most & self.but)

    def joined(self, other: "Barred") -> "Barred":
        """Those of either."""
        more, less = (self, other) if len(self.most) >= len(other.most) else (other, self)
        but = frozenset(one for one in more.but if one not in less)
        also = frozenset(one for one in more.also | less.also if one not in more.most)
        return Barred(more.most, but - also, also)


def words_of(claims: dict[str, list[Claim]], node: Nodes) -> dict[Node, Words]:
    found: dict[Node, Words] = defaultdict(Words)
    for stated in claims.values():
        for claim in stated:
            words = found[node(claim["endpoint"], claim.first.ts_ns)]
            words.first_ns = min(words.first_ns, claim.first.ts_ns)
    for claim in claims["address"]:
        for ts_ns in (claim.first.ts_ns, claim.last.ts_ns):
            found[node(claim["endpoint"], ts_ns)].lists.add(claim["address"])
    for claim in claims["registered"]:
        for ts_ns in (claim.first.ts_ns, claim.last.ts_ns):
            found[node(claim["endpoint"], ts_ns)].registered.add(claim["address"])
    for claim in claims["names"]:
        words = found[node(claim["endpoint"], claim.first.ts_ns)]
        for name, topic_id in pairs(claim.peak):
            words.names[name].add(topic_id)
    for endpoint, topic_id, ts_ns in carried(claims["carries"]):
        found[node(endpoint, ts_ns)].ids.add(topic_id)
    for claim in claims["cluster_id"]:
        found[node(claim["endpoint"], claim.first.ts_ns)].stated |= claim["how"] != "accepted"
    for kind in OF_CONTROLLERS:
        for claim in claims[kind]:
            found[node(claim["endpoint"], claim.first.ts_ns)].controller = True
    for claim in claims["advertised"]:
        if key_of("Metadata") not in read(claim["ranges"]):
            found[node(claim["endpoint"], claim.first.ts_ns)].controller = True
    return found


def carried(claims: Iterable[Claim]) -> Iterator[tuple[str, str, int]]:
    """Endpoints, the topic IDs that they used or reported, and since when."""
    for claim in claims:
        for member, since_ns in claim.peak.items():
            if member.startswith(LEAST):
                yield claim["endpoint"], member.removeprefix(LEAST), -since_ns


def pairs(members: Iterable[str]) -> Iterable[tuple[str, str]]:
    """Names' hashes and ids, from the members of a set of names."""
    for member in members:
        if member.startswith(LEAST):
            name, _, topic_id = member.removeprefix(LEAST).partition(":")
            yield name, topic_id


COMMON_SLOTS = 3
"""In so many slots of 10 s both must show the log: leaders of one quorum do so in turn."""
BESIDE_NS = 20_000_000_000
"""Both IDs must be reported at the same time for this long. One broker never does that. It is less than the grace
period after which the brokers of one of two clusters would be stale.
"""
MOST_ENDS = 64
"""Of one broker number that are compared with each other, those named first: a broker has a few listeners, and a host
that claims thousands comes after them."""
Listener = Callable[[str], str]
"""From an endpoint to the smallest one of its listener: of those that broker lists join it to."""
Reports = Callable[[str, str], tuple[Claim, int] | None]
"""From an endpoint and a topic id to its first report there, and when it was reported or served there last."""


class Twins(NamedTuple):
    """Two endpoints of two clusters with one ClusterId."""

    one: str
    other: str
    shown_by: tuple[Claim, Claim]
    what: str
    """What both do."""
    perhaps_proxy: bool = False
    """A proxy that renames topics does it, too, if clients of its brokers never get the other names."""
    of_one_proxy: bool = False
    """Both advertise the same ranges, which no release has like that: what a proxy and its brokers have in common."""


def unreported(_endpoint: str, _topic_id: str) -> None:
    return None


def twins(found: list[Twins], stated: dict[Node, str]) -> list[Twins]:
    """The pairs with one cluster ID. `stated`: cluster IDs by node. Pairs with an unknown or changed cluster ID are
    omitted.
    """
    ids: dict[str, set[str]] = defaultdict(set)
    for (endpoint, _), cluster_id in stated.items():
        ids[endpoint].add(cluster_id)
    return [twin for twin in found if ids[twin.one] == ids[twin.other] and len(ids[twin.one]) == 1]


def two_logs(claims: dict[str, list[Claim]], listener: Listener, reports: Reports) -> list[Twins]:
    """Endpoints of two clusters, whichever ClusterIds are known of them."""
    found = {
        (twin.one, twin.other): twin
        for twin in (
            *by_reports(claims, listener, reports),
            *by_controllers(claims, listener, reports),
            *by_heartbeats(claims),
            *by_epochs(claims),
        )
    }
    return [found[ends] for ends in sorted(found)]


def by_epochs(claims: dict[str, list[Claim]]) -> Iterator[Twins]:
    """Endpoints that lead two metadata logs at one time: a leader's first record has one time, wherever it is read."""
    by_epoch: dict[int, list[Claim]] = defaultdict(list)
    for claim in claims["log_epoch"]:
        by_epoch[claim["epoch"]].append(claim)
    slots = {order["endpoint"]: {name for name in order.peak if name.startswith(AT)} for order in claims["log_order"]}
    for epoch, every in sorted(by_epoch.items(), reverse=True):
        begun = sorted(every, key=lambda claim: claim.first)[:MOST_ENDS]
        begun.sort(key=lambda claim: (claim["endpoint"], claim["offset"], claim["written"]))
        for first, second in combinations(begun, 2):
            pair = (first["endpoint"], second["endpoint"])
            together = slots.get(pair[0], set()) & slots.get(pair[1], set())
            again = first["written"] != second["written"]
            if pair[0] != pair[1] and again and len(together) >= COMMON_SLOTS:
                yield Twins(*pair, (first, second), f"both lead the metadata log in epoch {epoch}")


def by_heartbeats(claims: dict[str, list[Claim]]) -> Iterator[Twins]:
    """Controllers that both accept one broker number's heartbeats: of one quorum only one does, and what two of them
    accept are two registrations. A proxy before a controller shows one and the same twice.
    """
    registered: dict[tuple[str, int, int], set[str]] = defaultdict(set)
    for claim in claims["registration"]:
        registered[claim["endpoint"], claim["broker"], claim.peak.get("epoch", -1)].add(claim["incarnation"])
    by_broker: dict[int, list[Claim]] = defaultdict(list)
    for claim in claims["broker_epoch"]:
        if claim["error"] == 0:
            by_broker[claim["broker"]].append(claim)
    for broker, accepted in sorted(by_broker.items()):
        for first, second in sorted(overlapping(accepted), key=lambda pair: tuple(map(of_controller, pair))):
            mine, theirs = (registered[claim["endpoint"], broker, claim["epoch"]] for claim in (first, second))
            differ = first["epoch"] != second["epoch"] or (mine and theirs and mine.isdisjoint(theirs))
            common = len(first.tally.keys() & second.tally.keys())
            if first["endpoint"] != second["endpoint"] and differ and common >= COMMON_SLOTS:
                ends = first["endpoint"], second["endpoint"]
                yield Twins(*ends, (first, second), f"both accept the heartbeats of a broker {broker} of their own")


def of_controller(accepted: Claim) -> tuple[str, int, Sighting]:
    return accepted["endpoint"], accepted["epoch"], accepted.first


def contradictions(claims: dict[str, list[Claim]]) -> Iterator[tuple[int, tuple[str, str], tuple[str, str]]]:
    """Broker numbers with two endpoints that name a topic by different ids: number, endpoints, ids. Not where one of
    the ids has another name at the other endpoint: two clusters never make one id, and a proxy renames topics. Nor
    where one endpoint has both by other names: they are topics of one cluster, which a proxy shows to its tenants.
    """
    names: dict[str, dict[str, set[str]]] = {}
    named: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for claim in claims["names"]:
        known = names.setdefault(claim["endpoint"], defaultdict(set))
        for name, topic_id in pairs(claim.peak):
            known[name].add(topic_id)
            named[topic_id].add((claim["endpoint"], name))
    numbers: dict[str, set[int]] = defaultdict(set)
    for claim in claims["address"]:
        if claim["address"] in names:
            numbers[claim["address"]].add(claim["broker"])
    numbered: dict[int, list[str]] = defaultdict(list)
    for address, found in numbers.items():  # in the order in which they were named first
        if len(found) == 1 and len(numbered[min(found)]) < MOST_ENDS:  # one that several brokers share is a proxy's
            numbered[min(found)].append(address)
    for number, ends in sorted(numbered.items()):
        for one, other in combinations(sorted(ends), 2):
            ours, others = (set[str]().union(*names[end].values()) for end in (one, other))
            for name in sorted(names[one].keys() & names[other].keys()):
                mine, theirs = names[one][name], names[other][name]
                if (mine - theirs) & others or (theirs - mine) & ours:
                    continue
                differ = [
                    *product(sorted(mine - theirs), sorted(theirs)),
                    *product(sorted(mine), sorted(theirs - mine)),
                ]
                if differ and not any(of_tenants(name, ids, named) for ids in differ):
                    yield from ((number, (one, other), ids) for ids in differ)


def of_tenants(name: str, ids: tuple[str, str], named: dict[str, set[tuple[str, str]]]) -> bool:
    """Whether one endpoint has both IDs by other names than this one. `named`: by ID the endpoints and names."""
    one, other = ({end for end, known in named[topic_id] if known != name} for topic_id in ids)
    return not one.isdisjoint(other)


def by_reports(claims: dict[str, list[Claim]], listener: Listener, reports: Reports) -> Iterator[Twins]:
    """Endpoints of one broker number, of lists that share no address, that report two ids for one name at one time. A
    broker has one image of the metadata, whichever listener it is asked at.
    """
    reports = cache(reports)  # each endpoint is compared with many
    ranges = defaultdict[str, set[str]](set)
    for claim in claims["advertised"]:
        ranges[claim["endpoint"]].add(claim["ranges"])
    for number, (one, other), ids in contradictions(claims):
        first, second = reports(one, ids[0]), reports(other, ids[1])
        if ids[0] == ids[1] or listener(one) == listener(other) or first is None or second is None:
            continue
        beside_ns = min(first[1], second[1]) - max(first[0].first.ts_ns, second[0].first.ts_ns)
        if beside_ns > BESIDE_NS:
            text = f"both answer as broker {number}, with different IDs of topic {first[0]['name']}"
            of_one = ranges[one] == ranges[other] and any(map(is_narrowed, ranges[one]))
            yield Twins(one, other, (first[0], second[0]), text, perhaps_proxy=True, of_one_proxy=of_one)


def named_apart(
    claims: dict[str, list[Claim]], listener: Listener
) -> Iterator[tuple[tuple[list[str], list[str]], tuple[str, str]]]:
    """Endpoints, and the IDs they have for one name, of lists that share no address. Each list has a controller that
    accepts heartbeats while the other's does: in a quorum one controller does.
    """
    slots: dict[str, set[str]] = defaultdict(set)
    for claim in claims["broker_epoch"]:
        if claim["error"] == 0:
            slots[listener(claim["endpoint"])] |= claim.tally.keys()
    names: dict[str, dict[str, dict[str, list[str]]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for claim in claims["names"] if len(slots) > 1 else ():
        for name, topic_id in pairs(claim.peak):
            names[listener(claim["endpoint"])][name][topic_id].append(claim["endpoint"])
    for one, other in combinations(sorted(slots)[:MOST_ENDS], 2):
        if len(slots[one] & slots[other]) < COMMON_SLOTS:
            continue
        for name in sorted(names[one].keys() & names[other].keys()):
            mine, theirs = names[one][name], names[other][name]
            for a, b in product(sorted(mine), sorted(theirs)):
                if a != b and not (a in theirs and b in mine):
                    yield (mine[a], theirs[b]), (a, b)


def by_controllers(claims: dict[str, list[Claim]], listener: Listener, reports: Reports) -> Iterator[Twins]:
    """Brokers that report two IDs for one name at one time, each with a controller of its own."""
    for ends, ids in named_apart(claims, listener):
        reported = [[(end, found) for end in sorted(at)[:MOST_ENDS] if (found := reports(end, topic_id))]
                    for at, topic_id in zip(ends, ids, strict=True)]  # fmt: skip
        if not all(reported):
            continue
        (one, first), (other, second) = (max(found, key=lambda each: each[1][1]) for found in reported)
        beside_ns = min(first[1], second[1]) - max(first[0].first.ts_ns, second[0].first.ts_ns)
        if beside_ns > BESIDE_NS:
            text = f"have different IDs of topic {first[0]['name']}, and each has a controller of its own"
            yield Twins(*(one, other), (first[0], second[0]), text)


def listener_of(addresses: Iterable[Claim]) -> Listener:
    """The listeners that broker lists show, each by its smallest endpoint."""
    return connected((claim["endpoint"], claim["address"]) for claim in addresses)


def together(addresses: Iterable[Claim]) -> dict[str, str]:
    """By host that lists brokers, or is listed, the smallest host that lists connect it with. Brokers that advertise
    other hosts on another listener are not together by it, nor are servers that list one another alone.
    """
    pairs = {(host_of(claim["endpoint"]), host_of(claim["address"])) for claim in addresses}
    root = connected(pairs)
    return {host: root(host) for pair in pairs for host in pair}


def connected(pairs: Iterable[tuple[str, str]]) -> Listener:
    """By each text the smallest one that pairs connect it with, however far; what is in no pair is alone."""
    parent: dict[str, str] = {}

    def root(text: str) -> str:
        while (above := parent.get(text, text)) != text:
            text = above
        return text

    for pair in pairs:
        one, other = sorted(map(root, pair))
        parent[other] = one
    return root


RENAMED = 2
"""So many topics, and most of those that both know, have other names at a proxy that renames them."""


def renamings(claims: dict[str, list[Claim]], listener: Listener) -> list[Twins]:
    """Endpoints of two listeners that know the same topic IDs by different names: a proxy that renames topics for its
    clients, and the brokers behind it. Their statements are about different names.
    """
    ids: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    shown: dict[str, Claim] = {}
    for claim in claims["names"]:
        end = listener(claim["endpoint"])
        shown[end] = min(shown.get(end, claim), claim, key=lambda one: (one.first, one.key))
        for name, topic_id in pairs(claim.peak):
            ids[end][topic_id].add(name)
    found = []
    for one, other in combinations(sorted(ids)[:MOST_ENDS], 2):
        both = ids[one].keys() & ids[other].keys()
        apart = sum(ids[one][topic_id].isdisjoint(ids[other][topic_id]) for topic_id in both)
        if apart >= RENAMED and 2 * apart > len(both):
            what = f"know {apart} topics by different names"
            found.append(Twins(shown[one]["endpoint"], shown[other]["endpoint"], (shown[one], shown[other]), what))
    return found


def taken_apart(
    stated: dict[Node, str], names_claims: list[Claim], found: list[Twins], listener: Listener
) -> dict[Node, str]:
    """ClusterIds by node, with the key of its cluster where two have one ClusterId."""
    of = {endpoint: cluster_id for (endpoint, _), cluster_id in stated.items()}
    split: dict[str, set[str]] = defaultdict(set)
    for twin in found:
        if of.get(twin.one, "") == of.get(twin.other) and listener(twin.one) != listener(twin.other):
            split[of[twin.one]] |= {listener(twin.one), listener(twin.other)}
    names: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for claim in names_claims:
        for name, topic_id in pairs(claim.peak):
            names[listener(claim["endpoint"])][name].add(topic_id)
    known = {one: set[str]().union(*ids.values()) for one, ids in names.items()}
    places = {
        node: (cluster_id, cluster_of_list(names, known, listener(node[0]), split[cluster_id]))
        for node, cluster_id in stated.items()
        if cluster_id in split
    }
    hosts: dict[tuple[str, str | None], set[str]] = defaultdict(set)
    for (endpoint, _), place in places.items():
        hosts[place].add(host_of(endpoint))
    for node, (cluster_id, of_list) in places.items():
        here = [one for one in sorted(split[cluster_id]) if host_of(node[0]) in hosts[cluster_id, one]]
        if of_list is None and len(here) == 1:  # as a controller that shares its host with a broker
            places[node] = cluster_id, here[0]
    smallest: dict[tuple[str, str | None], str] = {}
    for (endpoint, _), place in places.items():
        smallest[place] = min(endpoint, smallest.get(place, endpoint))
    keys = {node: f"{place[0]}@{smallest[place]}" for node, place in places.items() if place[1] is not None}
    return stated | keys


def cluster_of_list(
    names: dict[str, dict[str, set[str]]], known: dict[str, set[str]], own: str, split: set[str]
) -> str | None:
    """Which of the clusters with one ClusterId a list of brokers is of: its own, else the only one that reports an ID
    which it reports as well, while all others report only other IDs for that name, or that ID by another name. IDs from
    before a copy are all of theirs. `known`: all IDs that a list's brokers report, by list.
    """
    if own in split:
        return own
    found = {
        one
        for one in split
        for name, ids in names[own].items()
        for topic_id in ids & names[one][name]
        if all(
            topic_id not in names[other][name] and (names[other][name] - ids or topic_id in known.get(other, ()))
            for other in split - {one}
        )
    }
    return found.pop() if len(found) == 1 else None
