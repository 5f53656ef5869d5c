"""Unauthenticated hosts: no broker names them, nothing was ever granted to them, and they did what no client does.

Rule: this depends on the ledger alone, whatever the order of claims. Once a host is granted something or named, it
counts as authenticated, and what depended on its claims is judged again. A host of which part was not captured is never
unauthenticated, nor is one that only uses an old version (VER001) or belongs to another cluster (CLU001).
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

from wirecheck.decode.api_names import BETWEEN_BROKERS, key_of, keys, name_of, newest
from wirecheck.decode.releases import Ranges, digest, read
from wirecheck.judge.claims.claim import LEAST, MOST_MEMBERS, ZERO, Claim, Subject
from wirecheck.judge.claims.extract.peers import CLUSTERS, IDS, REFUSED, STALE, STALE_CONTROLLER_EPOCH
from wirecheck.judge.claims.kinds import KINDS
from wirecheck.judge.ledger.ledger import Ledger, in_order
from wirecheck.judge.topology.endpoint_history import host_of, is_literal
from wirecheck.judge.topology.membership import carried

Link = Mapping[tuple[str, str], list[Claim]]
"""What hosts did at one endpoint, by kind of claim and host."""
OF_LINK = frozenset({"unread", "encrypted", "outside", "asked"})
"""Connections with TLS or with bytes that are not Kafka's, requests outside of the advertised ranges, and clients that
asked for ranges before the server closed the connection.
"""


HEARTBEAT, METADATA = key_of("BrokerHeartbeat"), key_of("Metadata")
OF_LISTENERS = frozenset({"Fetch", *map(name_of, BETWEEN_BROKERS)})
"""What brokers answer at a listener of their own."""
PAIR = 2
"""So many hosts are outweighed by more members. More hosts are not: they may be the members themselves."""
ADDRESSES = ("address", "registered")
"""Kinds of claims that name a node's address: broker lists, and the quorum's voters and registrations."""


class Servers:
    """What servers state about nodes and about themselves. A host is a member because a member names it, never because
    it names itself.
    """

    def __init__(self, claims: Iterable[Claim] = ()) -> None:
        self.named: set[str] = set()
        """Hosts that a server on another host names as a node's."""
        self.raft: set[str] = set()
        """Endpoints that show the metadata log."""
        self.kafka: set[str] = set()
        self.answering: set[str] = set()
        """Endpoints with captured responses. Of other endpoints it is unknown what they grant."""
        self.by_name = False
        """Brokers are named by host names: then any address may be one of them."""
        self.stated: dict[str, set[str]] = defaultdict(set)
        """ClusterIds by endpoint, out of its Metadata answers."""
        self.no_cluster_id: set[str] = set()
        """Endpoints that leave it out of answers that have a place for it."""
        self.carried: dict[str, set[str]] = defaultdict(set)
        """Topic ids by endpoint."""
        self.advertised: dict[str, dict[str, Ranges]] = defaultdict(dict)
        """Ranges by endpoint and their digest."""
        self.addresses: dict[str, list[Claim]] = defaultdict(list)
        """By endpoint whom it names as brokers."""
        self.accepted: dict[str, list[Claim]] = defaultdict(list)
        """By endpoint the registrations and heartbeats of brokers that it accepted."""
        self.apis: dict[str, set[str]] = defaultdict(set)
        """By endpoint what it answered."""
        for claim in claims:
            if claim.kind in ADDRESSES and not is_literal(claim["address"]):
                self.by_name = True
            if claim.kind == "address":
                self.addresses[claim["endpoint"]].append(claim)
            match claim.kind:
                case "address" | "registered" if host_of(claim["address"]) != host_of(claim["endpoint"]):
                    self.named.add(host_of(claim["address"]))
                case "broker_epoch" | "registration" if claim["error"] == 0:
                    self.accepted[claim["endpoint"]].append(claim)
                case "log_order":
                    self.raft.add(claim["endpoint"])
                case "server":
                    self.kafka.add(claim["endpoint"])
                    if claim.peak.get("answers"):
                        self.answering.add(claim["endpoint"])
                case "cluster_id" if claim["how"] == "metadata":
                    self.stated[claim["endpoint"]].add(claim["cluster_id"])
                case "no_cluster_id":
                    self.no_cluster_id.add(claim["endpoint"])
                case "carries":
                    self.carried[claim["endpoint"]].update(topic_id for _, topic_id, _ in carried([claim]))
                case "accepts":
                    self.apis[claim["endpoint"]].update(name.partition(":")[0] for name in claim.peak)
                case "advertised":
                    self.advertised[claim["endpoint"]][digest(claim["ranges"])] = read(claim["ranges"])
        self.members = self.members_by_cluster()
        """By ClusterId the addresses that its members name."""
        self.clusters = {cluster_id: self.cluster_of(addresses) for cluster_id, addresses in self.members.items()}
        self.unlisted = {*self.unnamed()}
        """Endpoints that state a ClusterId whose members name no such host."""
        self.quiet = {*self.without_metadata()}
        """Endpoints that serve clients, and never show which brokers there are."""

    def facts(self) -> str:
        """A digest of all that decides which hosts are unauthenticated."""
        ends = map(sorted, (self.named, self.raft, self.kafka, self.answering))
        return digest(repr([*ends, self.by_name]))

    def is_controller(self, endpoint: str) -> bool:
        """Whether it advertises heartbeats and no Metadata: it accepts brokers as a controller does. A Metadata answer
        in its name says nothing about that: anyone can send one packet in the name of another.
        """
        every = self.advertised.get(endpoint, {}).values()
        return any(HEARTBEAT in ranges and METADATA not in ranges for ranges in every)

    def members_by_cluster(self) -> dict[str, set[str]]:
        by_cluster, at_host = defaultdict[str, list[str]](list), defaultdict[str, set[str]](set)
        for endpoint, cluster_ids in self.stated.items():
            at_host[host_of(endpoint)].add(endpoint)
            for cluster_id in cluster_ids:
                by_cluster[cluster_id].append(endpoint)
        return {cluster_id: self.members_of(endpoints, at_host) for cluster_id, endpoints in by_cluster.items()}

    def members_of(self, endpoints: Iterable[str], at_host: Mapping[str, set[str]]) -> set[str]:
        """The addresses of members, as far as they are known: the servers that most others name are members, so are
        those that listed one another first, those that list one another and are more than a pair, and whom they name:
        two clusters with one ClusterId have members each, unless one names the other, which is none by that.
        `endpoints`: those that state their ClusterId; `at_host`: all that state any, by their host.
        """
        lists: dict[str, set[str]] = defaultdict(set)
        spans: dict[str, tuple[int, int]] = {}
        for endpoint in endpoints:
            host = host_of(endpoint)
            lists[host].update(claim["address"] for claim in self.addresses[endpoint])
            for claim in self.addresses[endpoint]:
                since_ns, until_ns = spans.get(host, (claim.first.ts_ns, claim.last.ts_ns))
                spans[host] = min(claim.first.ts_ns, since_ns), max(claim.last.ts_ns, until_ns)
        to = {host: {*map(host_of, named)} - {host} for host, named in lists.items()}
        by_others = Counter(chain.from_iterable(to.values()))
        most = max((by_others[host] for host in lists), default=0)
        found = {host for host in lists if by_others[host] == most}
        refused = disowned(to, spans, reached(to, found))
        if named := (spans.keys() & by_others.keys()) - refused:
            found.add(min(named, key=lambda host: (spans[host][0], host)))
        mutual = {host for host, named in to.items() if sum(host in to.get(other, ()) for other in named) >= PAIR}
        found |= mutual - refused
        return set[str]().union(*(at_host[host] for host in found), *(lists[host] for host in reached(to, found)))

    def unnamed(self) -> Iterator[str]:
        """Endpoints that state the ClusterId of members, or what only that cluster has, none of whom names their host.
        If members have host names, any address may be one of theirs. So may one of a list of other addresses, as of
        another listener, with numbers of members, where brokers state their ClusterId, too.
        """
        elsewhere: dict[str, set[str]] = defaultdict(set)
        for endpoint, claims in self.addresses.items():
            for claim in claims:
                if host_of(claim["address"]) != host_of(endpoint):
                    elsewhere[host_of(claim["address"])].add(endpoint)
        everybody = [*self.clusters.values()]
        for endpoint in sorted({*self.stated, *self.no_cluster_id}):
            stated = [self.clusters[one] for one in self.stated.get(endpoint, ())]
            host, lists = host_of(endpoint), elsewhere[host_of(endpoint)]
            for one in stated or [one for one in everybody if self.touches(endpoint, one)]:
                named = not one.literal or host in one.hosts
                if not named and not (stated and any(self.is_listener(end, one) for end in lists)):
                    yield endpoint
                    break

    def without_metadata(self) -> Iterator[str]:
        """Endpoints that answer no Metadata and report topic IDs of members, and whose host no server names. What only
        brokers ask each other, and fetches, may be answered by a listener between brokers: no list of clients has it.
        """
        everybody = [*self.clusters.values()]
        literal = bool(everybody) and all(one.literal and one.addresses for one in everybody)
        hosts = set[str]().union(self.named, *(one.hosts for one in everybody))
        silent = self.carried.keys() - self.addresses.keys() - self.stated.keys() - self.no_cluster_id - self.raft
        for endpoint in sorted(silent):
            whole = literal and endpoint in self.answering and host_of(endpoint) not in hosts
            whole = whole and self.apis[endpoint].isdisjoint(OF_LISTENERS)
            if whole and any(not one.topic_ids.isdisjoint(self.carried[endpoint]) for one in everybody):
                yield endpoint

    def cluster_of(self, addresses: set[str]) -> "MemberFacts":
        at = [end for end in self.addresses if end in addresses]
        numbers: dict[int, tuple[int, int]] = {}
        for claim in (claim for end in at for claim in self.addresses[end]):
            first_ns, last_ns = claim.first.ts_ns, claim.last.ts_ns
            known = numbers.get(claim["broker"], (first_ns, last_ns))
            numbers[claim["broker"]] = min(known[0], first_ns), max(known[1], last_ns)
        captured = len({*map(host_of, at)})
        topic_ids = set[str]().union(*(self.carried.get(end, ()) for end in addresses))
        return MemberFacts(
            addresses, {*map(host_of, addresses)}, numbers, topic_ids, captured, all(map(is_literal, addresses))
        )

    def touches(self, endpoint: str, members: "MemberFacts") -> bool:
        """Whether it hands out addresses or topic IDs of members, or no address that tells it from them."""
        ids = self.carried.get(endpoint, ())
        return not self.addresses[endpoint] or self.shares(endpoint, members) or not members.topic_ids.isdisjoint(ids)

    def shares(self, endpoint: str, members: "MemberFacts") -> bool:
        """Whether it hands out addresses of members."""
        return any(claim["address"] in members.addresses for claim in self.addresses.get(endpoint, ()))

    def is_listener(self, endpoint: str, members: "MemberFacts") -> bool:
        """Whether its list may be that of another listener of members: other addresses, and numbers of theirs. Two
        servers that list each other alone are none: a listener's list has all brokers that members name meanwhile.
        """
        claims = self.addresses[endpoint]
        numbers = {claim["broker"] for claim in claims}
        if self.shares(endpoint, members) or numbers.isdisjoint(members.numbers):
            return False
        hosts = {host_of(end) for end in self.listing(endpoint)}
        if len(hosts) > PAIR or len(hosts) >= members.captured:
            return True
        since_ns, until_ns = min(c.first.ts_ns for c in claims), max(c.last.ts_ns for c in claims)
        spans = members.numbers.items()
        return numbers.issuperset(one for one, (begin, end) in spans if begin <= until_ns and since_ns <= end)

    def listing(self, endpoint: str) -> Iterator[str]:
        """The endpoint, and those of the addresses in its list that list brokers themselves."""
        yield endpoint
        named = {claim["address"] for claim in self.addresses[endpoint]}
        yield from (address for address in named if address in self.addresses)


def reached(to: Mapping[str, set[str]], found: Iterable[str]) -> set[str]:
    """These hosts, and those with lists that their lists name, however far. `to`: by host whom it names."""
    every, left = set[str](), {*found}
    while left:
        every |= left
        left = set[str]().union(*(to.get(host, ()) for host in left)) & to.keys() - every
    return every


def disowned(to: Mapping[str, set[str]], spans: Mapping[str, tuple[int, int]], core: set[str]) -> set[str]:
    """Hosts that name members of the core, none of which names them, though some were asked later. Servers that list
    one another *and* the true brokers are no members by that.
    """
    return {
        host
        for host, named in to.items()
        if host not in core and any(spans[one][1] >= spans[host][0] + NAMED_NS for one in named & core & spans.keys())
    }


class MemberFacts(NamedTuple):
    """What the members of one cluster are and have."""

    addresses: set[str]
    hosts: set[str]
    numbers: dict[int, tuple[int, int]]
    """By broker number since when and until when members name it."""
    topic_ids: set[str]
    captured: int
    """So many hosts of theirs show which brokers there are."""
    literal: bool
    """Whether all addresses are literal."""


MOST_SUBJECTS = 10_000
"""So many subjects are remembered per host; one that has more is looked for everywhere."""
UNREAD, OUTSIDE = "bytes of another protocol", "versions outside the advertised range"
ANYWHERE: Subject = ("*",)
NAMING = {"binding", "creation", "partition"}
OF_REPLICAS = {"follower", "follows", "fetch_versions", "replica_answer", "heartbeat"}
"""Kinds of claims about what a broker does at another node: what a stranger's server grants makes no client a broker.
"""
OF_NAMES = {"binding", "described"}
"""Kinds of claims by which a server gives an ID a name."""
OF_MEMBERS = {"creation", "deletion", "address"}
"""Kinds of claims about what members show of their own: topics that a server created or deleted, and who is a member.
"""
OF_LOGS = {
    "reaches", "committed", "committed_in_transaction", "committed_epoch", "restored", "offset_gone", "serves",
    "carried", "denies", "offline", "elected", "reassigning", "changed", "election_asked", "led",
}  # fmt: skip
"""Kinds of claims about what is in a cluster's logs, which broker has them, and who had them changed: another server
has logs of its own, whichever names and IDs it gives them.
"""
OF_CLUSTERS = NAMING | OF_REPLICAS | OF_NAMES | OF_MEMBERS | OF_LOGS
"""Kinds of claims about what all servers of a cluster have in common."""
OF_OTHERS = OF_REPLICAS | OF_MEMBERS | OF_LOGS
"""Kinds of claims that say nothing where no member names the server."""
NAMED_NS = 20_000_000_000
"""So long after a broker names itself, brokers of its cluster name it too."""


State = tuple[int, int, int]
"""A partition's number, an epoch of its leader, and the leader."""


class UnauthorizedUse(NamedTuple):
    """One kind of requests that no client sends, by one claim."""

    what: str
    claim: Claim
    times: int
    apis: tuple[str, ...]


@dataclass
class UnverifiedHost:
    """A host to which nothing was granted so far."""

    unauthenticated: bool
    subjects: set[Subject] = field(default_factory=set)
    """What was judged with its claims, or without them because it is unauthenticated."""
    asked: int = 0
    """So many of its clients had asked for ranges: on them it depends which of its claims count."""


class UnauthenticatedHosts:
    def __init__(self, ledger: Ledger, stored: Any = None) -> None:
        self.ledger = ledger
        kept = stored or {"hosts": [], "servers": [], "unlisted": [], "quiet": [], "facts": ""}
        self.hosts = {
            host: UnverifiedHost(unauthenticated, {tuple(subject) for subject in subjects}, asked)
            for host, unauthenticated, subjects, asked in kept["hosts"]
        }
        self.servers: set[str] = set(kept["servers"])
        """Hosts of servers that no server lists, and that contradict the listed ones."""
        self.unlisted: set[str] = set(kept["unlisted"])
        """Endpoints of servers that no member names, contradicting or not."""
        self.quiet: set[str] = set(kept["quiet"])
        """Endpoints of servers that never show which brokers there are."""
        self.facts: str = kept["facts"]
        """Of the servers, when hosts were looked at last."""
        self.known, self.links = Servers(), dict[str, Link]()
        self.states: dict[str, set[State]] = {}
        """By topic ID what members state of its partitions, as it was asked for since claims were new."""

    def state(self) -> dict[str, Any]:
        hosts = [
            [host, one.unauthenticated, sorted(one.subjects), one.asked] for host, one in sorted(self.hosts.items())
        ]
        ends = {"servers": sorted(self.servers), "unlisted": sorted(self.unlisted), "quiet": sorted(self.quiet)}
        return {"hosts": hosts, **ends, "facts": self.facts}

    def look(self, touched: Iterable[Subject]) -> set[Subject] | None:
        """Decide again on the hosts with new claims, and on all hosts if the servers have changed. Returns the subjects
        to judge again, None for all.
        """
        self.links.clear()
        self.states.clear()
        touched = set(touched)
        hosts = {subject[1] for subject in touched if subject[0] == "host"}
        if not touched and not self.hosts:
            return set()
        self.known = Servers(self.ledger.claims_of("server").values())
        servers, facts = set(self.contradicting()), self.known.facts()
        now = (servers, self.known.unlisted, self.known.quiet)
        moved, changed = now != (self.servers, self.unlisted, self.quiet), facts != self.facts
        (self.servers, self.unlisted, self.quiet), self.facts = now, facts
        if moved or changed:
            hosts = {subject[1] for subject in self.ledger.subjects("host")}
        elif self.hosts:
            links = {subject[1] for subject in touched if subject[0] == "link"}
            hosts |= {host for endpoint in links for _, host in self.link(endpoint) if host in self.hosts}
            hosts |= {host for host in self.hosts if self.ledger.claims("id_rejected", "host", host)}
        others = hosts - self.hosts.keys()
        dependents = {subject for host in sorted(hosts) for subject in self.look_at(host)}
        turned = set(filter(self.is_unauthenticated, others))  # rows may rest on its claims already
        if moved or (changed and turned) or ANYWHERE in dependents:
            return None
        if turned:
            dependents |= {("server",), ("wire",), *(one for one in self.ledger.subjects("client") if one[2] in turned)}
        return dependents

    def look_at(self, host: str) -> set[Subject]:
        """Decide on a host again; the subjects that depend on it, if other claims of it count than before."""
        before, here = self.hosts.pop(host, None), ("host", host)
        if not self.is_unverified(host):
            return {here, *before.subjects} if before else set()
        uses = () if self.is_hidden(host) else self.unauthorized_uses(host)
        asked = sum(len(self.asked(peer["endpoint"], host)) for peer in self.peers(host))
        now = self.hosts[host] = UnverifiedHost(bool(uses), before.subjects if before else set(), asked)
        same = before is None or (now.unauthenticated, now.asked) == (before.unauthenticated, before.asked)
        return {here} if same else {here, *now.subjects}

    @property
    def any_doubted(self) -> bool:
        return bool(self.hosts or self.unlisted or self.quiet)

    def doubted(self, host: str) -> bool:
        return host in self.hosts or host in self.servers

    def is_unauthenticated(self, host: str) -> bool:
        return host in self.hosts and self.hosts[host].unauthenticated

    def rests(self, hosts: Iterable[str], subject: Subject) -> None:
        """A subject is judged with, or without, the claims of these hosts."""
        for host in hosts:
            subjects = self.hosts[host].subjects
            if len(subjects) >= MOST_SUBJECTS:
                subjects.clear()
                subjects.add(ANYWHERE)
            elif ANYWHERE not in subjects:
                subjects.add(subject)

    # -- whose word it is ---------------------------------------------------------------------------------------------

    def speaker(self, claim: Claim) -> str | None:
        """The host that made a claim, if nothing was granted to it so far. A server's statement is its own, whichever
        client asked.
        """
        at = KINDS[claim.kind].at.get("host")
        return claim.key[at] if at is not None and claim.key[at] in self.hosts else None

    def may_silence(self, claim: Claim) -> bool:
        """Whether a claim has to be looked at for whose word it is."""
        return bool(self.servers or self.unlisted or self.quiet) or self.speaker(claim) is not None

    def silenced(self, claim: Claim, host: str | None) -> bool:
        """Whether no check may hear a claim: an unauthenticated host made it, and not as a broken peer's would be."""
        if self.servers and host_of(claim.server()) in self.servers and host_of(claim.last.server) in self.servers:
            return True
        if self.unlisted and claim.server() in self.unlisted and claim.last.server in self.unlisted:
            misnamed = claim.kind in OF_NAMES and self.misnames(claim)
            alone = claim.kind == "partition" and self.state_of(claim) not in self.states_of_members(claim["topic_id"])
            return misnamed or alone or claim.kind in OF_OTHERS
        if self.quiet and claim.server() in self.quiet and claim.last.server in self.quiet:
            return claim.kind in OF_CLUSTERS
        return host is not None and self.hosts[host].unauthenticated and not self.may_be_honest(claim)

    def states_of_members(self, topic_id: str) -> set[State]:
        """What members state of a topic's partitions."""
        if topic_id not in self.states:
            others, claims = self.unlisted | self.quiet, self.ledger.claims("partition", "id", topic_id)
            self.states[topic_id] = {
                self.state_of(one) for one in claims if not others.issuperset({one.first.server, one.last.server})
            }
        return self.states[topic_id]

    @staticmethod
    def state_of(partition: Claim) -> State:
        return partition["partition"], partition["leader_epoch"], partition["leader"]

    def misnames(self, claim: Claim) -> bool:
        """Whether members know a topic ID by other names alone."""
        topic_id = claim["topic_id"]
        bound = self.ledger.claims("binding", "id", topic_id) if topic_id else []
        others = self.unlisted | self.quiet
        names = {one["name"] for one in bound if one.server() not in others}
        return bool(names) and claim["name"] not in names

    def may_be_honest(self, claim: Claim) -> bool:
        """Another cluster's node among a quorum, a controller of before where brokers are named by host names, or a
        client of before that does not ask for versions.
        """
        if claim.kind == "cluster_refused":
            return claim["endpoint"] in self.known.raft
        if claim.kind == "control":
            return self.known.by_name and claim["error"] == STALE_CONTROLLER_EPOCH
        if claim.kind != "closed_on" or claim["api"] not in keys():
            return False
        return claim["version"] <= newest(key_of(claim["api"])) and not self.asked_first(claim)

    def asked_first(self, closed_on: Claim) -> bool:
        """Whether a client that was cut off had asked for versions before."""
        clients = {f"{LEAST}{seen.client}" for seen in (closed_on.first, closed_on.last)}
        asked = self.asked(closed_on["endpoint"], closed_on["host"])
        greatest = max(asked) if len(asked) >= MOST_MEMBERS else None  # more are not kept, and most do ask
        return not clients.isdisjoint(asked) or (greatest is not None and max(clients) > greatest)

    # -- what is odd --------------------------------------------------------------------------------------------------

    def peers(self, host: str) -> list[Claim]:
        return self.ledger.claims("peer", "host", host)

    def is_unverified(self, host: str) -> bool:
        """Whether all traffic of a host was captured from its beginning, no server lists it, and no authenticated
        server granted it anything.
        """
        peers = self.peers(host)
        granted = any(
            p.peak["unread"]
            or (p["endpoint"] in self.known.kafka and p["endpoint"] not in self.known.answering)
            or (p.peak["granted"] and host_of(p["endpoint"]) not in self.servers)
            for p in peers
        )
        return bool(peers) and host not in self.known.named and not granted

    def is_hidden(self, host: str) -> bool:
        """Whether a server may have granted it something under TLS. A server that also accepts plain Kafka on that
        endpoint does not count.
        """
        return any(p.peak.get("encrypted") and p["endpoint"] not in self.known.kafka for p in self.peers(host))

    def odd(self, host: str) -> list[Claim]:
        """What a host asked for and no client that works would, from servers that are authenticated themselves."""
        return [
            claim
            for claim in self.ledger.claims("odd_exchange", "host", host)
            if host_of(claim["endpoint"]) not in self.servers
        ]

    def unauthorized_uses(self, host: str) -> list[UnauthorizedUse]:
        """Everything odd that a host did as a client. To be rejected, or to try TLS without success, is not odd by
        itself.
        """
        asked = [
            UnauthorizedUse(claim["what"], claim, claim.count, tuple(sorted(claim.tally)))
            for claim in self.odd(host)
            if (claim["what"] != CLUSTERS or claim["endpoint"] not in self.known.raft)
            and (claim["what"] != STALE or not self.known.by_name)
        ]
        if self.asks_for_named_ids(host):
            asked = [use for use in asked if use.what != IDS]
        found = [use for use in asked if use.what != REFUSED]
        known_requests = {(claim["endpoint"], api) for claim in self.odd(host) for api in claim.tally}
        links = {peer["endpoint"]: self.link(peer["endpoint"]) for peer in self.peers(host)}
        for endpoint, link in links.items():
            for claim in link.get(("outside", host), ()):
                words = [(word.rpartition(":")[0], count) for word, count in sorted(claim.tally.items())]
                found += [
                    UnauthorizedUse(OUTSIDE, claim, n, (api,))
                    for api, n in words
                    if (endpoint, api) not in known_requests
                ]
            found += [UnauthorizedUse(UNREAD, claim, claim.count, ()) for claim in link.get(("unread", host), ())]
        besides = [use for use in asked if use.what == REFUSED]
        hidden = (claim for link in links.values() for claim in link.get(("encrypted", host), ()))
        return (
            [*found, *besides, *(UnauthorizedUse(UNREAD, claim, claim.count, ()) for claim in hidden)] if found else []
        )

    def asks_for_named_ids(self, host: str) -> bool:
        """Whether a member names an ID for which it was rejected: then the servers contradict themselves."""
        rejected = {claim["topic_id"] for claim in self.ledger.claims("id_rejected", "host", host)}
        members = (ids for end, ids in self.known.carried.items() if self.of_members(end))
        return bool(rejected) and not rejected.isdisjoint(set[str]().union(*members))

    def link(self, endpoint: str) -> Link:
        """The claims about a link, searched once for all hosts; empty for an endpoint that is not Kafka's."""
        if endpoint not in self.links:
            found: dict[tuple[str, str], list[Claim]] = defaultdict(list)
            if endpoint in self.known.kafka and host_of(endpoint) not in self.servers:
                claims = self.ledger.claims_of("link", endpoint).values()
                for claim in in_order(claim for claim in claims if claim.kind in OF_LINK):
                    found[claim.kind, claim["host"]].append(claim)
            self.links[endpoint] = found
        return self.links[endpoint]

    def asked(self, endpoint: str, host: str) -> set[str]:
        """Clients, with their ports: the least of them."""
        return {member for claim in self.link(endpoint).get(("asked", host), ()) for member in claim.peak}

    # -- servers that are ---------------------------------------------------------------------------------------------

    def contradicting(self) -> Iterator[str]:
        """Hosts of servers that state a cluster's ClusterId, that no server names, and that contradict its members.
        Knowing the IDs of topics proves nothing: each client that may describe a topic knows them.
        """
        for endpoint in sorted(self.known.unlisted):
            host = host_of(endpoint)
            whole = not any(claim.peak["unseen"] for claim in self.ledger.claims("serving", "host", host))
            if whole and any(True for _ in self.contradictions(endpoint)):
                yield host

    def contradictions(self, endpoint: str) -> Iterator[Claim]:
        """What an unlisted server states of its own, and members state otherwise. One that states several ClusterIds,
        as a gateway of several clusters, may state it of another cluster.
        """
        if len(self.known.stated[endpoint]) < 2:
            yield from self.other_ids(endpoint)
            yield from self.other_leaders(endpoint)
            yield from self.other_brokers(endpoint)
        if not self.known.is_controller(endpoint):
            yield from self.known.accepted[endpoint]  # a broker does not, and a controller does not answer Metadata

    def other_leaders(self, endpoint: str) -> Iterator[Claim]:
        """States of partitions in which members name another leader of the same epoch."""
        host = host_of(endpoint)
        for topic_id in sorted(self.known.carried[endpoint]):
            leaders: dict[tuple[int, int], set[int]] = defaultdict(set)
            own = []
            for claim in self.ledger.claims("partition", "id", topic_id):
                servers = (claim.first.server, claim.last.server)
                if any(map(self.of_members, servers)):
                    leaders[claim["partition"], claim["leader_epoch"]].add(claim["leader"])
                elif host in map(host_of, servers):
                    own.append(claim)
            for claim in own:
                if leaders[claim["partition"], claim["leader_epoch"]] - {claim["leader"]}:
                    yield claim

    def of_members(self, endpoint: str) -> bool:
        return endpoint not in self.known.unlisted and endpoint not in self.known.quiet

    def other_brokers(self, endpoint: str) -> Iterator[Claim]:
        """Addresses that members do not name when they are asked later: beside addresses of theirs, or with the number
        of a broker that they do not have. Also of brokers that they name elsewhere, where no server answers Kafka.
        """
        known = self.known
        own = {claim["address"] for claim in known.addresses[endpoint]}
        theirs = [claim for end, named in known.addresses.items() if self.of_members(end) for claim in named]
        members = {claim["address"] for claim in theirs}
        by_number = {claim["broker"] for claim in theirs}
        beside_theirs = not own.isdisjoint(members)
        asked_ns = max((c.last.ts_ns for c in theirs if not beside_theirs or c["address"] in own), default=0)
        names_itself = host_of(endpoint) in {*map(host_of, own)}
        alive = {host_of(server) for server in known.answering}
        for claim in known.addresses[endpoint]:
            if claim["address"] in members:
                continue
            if beside_theirs or claim["broker"] not in by_number:
                if asked_ns >= claim.first.ts_ns + NAMED_NS:
                    yield claim
            elif not names_itself and host_of(claim["address"]) not in alive:
                yield claim

    def other_ids(self, endpoint: str) -> Iterator[Claim]:
        """Bindings of topics that members know by other ids."""
        host = host_of(endpoint)
        members = {end: found for end, found in self.known.carried.items() if self.of_members(end)}
        others = {i for other, found in members.items() if host_of(other) != host for i in found}
        for topic_id in sorted(self.known.carried[endpoint] - others):
            claims = in_order(self.ledger.claims_of("id", topic_id).values())
            if not any(names_it(claim) and self.is_others(claim, host) for claim in claims):
                own = (
                    c for c in claims if c.kind == "binding" and c["source"] == "metadata" and c["endpoint"] == endpoint
                )
                yield from (claim for claim in own if self.otherwise(claim["name"], topic_id, host))

    def otherwise(self, name: str | None, topic_id: str, host: str) -> bool:
        """Whether a member on another host binds a name to another id."""
        return name is not None and any(
            claim["topic_id"] not in {None, ZERO, topic_id} and self.is_others(claim, host)
            for claim in self.ledger.claims("binding", "name", name)
        )

    def is_others(self, claim: Claim, host: str) -> bool:
        """Whether it is the statement of a member on another host."""
        return host_of(claim.server()) != host and self.of_members(claim.server())


def names_it(claim: Claim) -> bool:
    """Whether a claim shows that its server knows the topic ID."""
    return claim.kind in NAMING or (claim.kind == "use" and claim.succeeded)
