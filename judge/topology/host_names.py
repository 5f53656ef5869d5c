"""Which broker answers at an endpoint, where brokers advertise host names.

A list of host names says nothing about addresses. What an endpoint serves does: it leads those partitions, and Metadata
says which broker leads them. So each topic leaves some candidates for an endpoint, and the broker is the only one that
all its topics leave. Only a name with the endpoint's own port counts: clients connect to that.
A statement shows nothing while no endpoint serves the partition, or several of one port do (a former leader, or a
follower that clients fetch from). Nor does a partition where several leaders were stated while one endpoint alone
served it: some of them were not captured.
Rule: whether a host is a member is never decided here. This is only about who a member is.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from wirecheck.decode.peer import Peer
from wirecheck.judge.claims.claim import Claim, Subject
from wirecheck.judge.ledger.ledger import Ledger
from wirecheck.judge.topology.clusters import Clusters
from wirecheck.judge.topology.endpoint_history import is_literal

Topics = dict[str, list[int]]
Names = dict[tuple[int, int], set[int]]
Place = tuple[int, int]
"""A cluster (its `id()`) and a partition."""
SOON_NS = 2_000_000_000
"""A client asks which broker leads a partition, and then asks that broker."""
MOST_TOPICS = 64
"""Of an endpoint so many topics are remembered, the least by name, whatever the order in which they were seen."""
TOPICS = ("id", "name")


class HostNames:
    """What topics show about the endpoints of one label; part of its state."""

    def __init__(self, ledger: Ledger, stored: Mapping[str, Topics] | None = None) -> None:
        self.ledger = ledger
        self.left: dict[str, Topics] | None = dict(stored) if stored is not None else None
        """By endpoint and topic the brokers that it may be; None while no broker is known by a host name."""

    def look(self, news: Iterable[Subject], clusters: Clusters) -> dict[str, int]:
        """Note what topics with news show about endpoints. By endpoint the broker that answers there, of those that are
        known by host names alone.
        """
        names = names_of(clusters)
        if not names:
            self.left = None
            return {}
        if self.left is None:
            self.left, news = {}, chain(*map(self.ledger.subjects, TOPICS))
        for subject in sorted(one for one in news if one[0] in TOPICS):
            key, found = ":".join(subject), self.candidates(subject, clusters)
            for endpoint in self.left.keys() - found.keys():
                self.left[endpoint].pop(key, None)
            for endpoint, brokers in found.items():
                topics = self.left.setdefault(endpoint, {})
                topics[key] = sorted(brokers)
                if len(topics) > MOST_TOPICS:
                    del topics[max(topics)]
        return dict(self.brokers(names, clusters))

    def serving(self) -> frozenset[str]:
        """Endpoints at which a client got beyond the list of brokers: what is advertised there can be reached."""
        return frozenset(endpoint for endpoint, topics in (self.left or {}).items() if topics)

    def candidates(self, subject: Subject, clusters: Clusters) -> dict[str, set[int]]:
        """Per endpoint that serves partitions of a topic the brokers that led all of these, as far as they show it."""
        served: dict[Place, list[Claim]] = defaultdict(list)
        for claim in self.ledger.claims("serves", *subject):
            if subject[0] == "id" or claim["topic_id"] is None:
                served[id(clusters.group_of(claim)), claim["partition"]].append(claim)
        led: dict[Place, list[Claim]] = defaultdict(list)
        for claim in self.leaders(subject) if served else ():
            led[id(clusters.group_of(claim)), claim["partition"]].append(claim)
        found: dict[str, set[int]] = {}
        for place, claims in served.items():
            for endpoint, leaders in alone(claims, led[place]).items():
                if len(leaders) == 1:
                    found[endpoint] = found.get(endpoint, leaders) & leaders
        return found

    def leaders(self, subject: Subject) -> Iterator[Claim]:
        """Statements about the leaders of a topic's partitions."""
        space, name = subject
        ids, every = [name], []
        if space == "name":
            every = self.ledger.claims("unnumbered", *subject)
            ids = sorted({claim["topic_id"] for claim in self.ledger.claims("binding", *subject)} - {None})
        every += [claim for topic_id in ids for claim in self.ledger.claims("partition", "id", topic_id)]
        return (claim for claim in every if claim["leader"] >= 0)

    def brokers(self, names: Names, clusters: Clusters) -> Iterator[tuple[str, int]]:
        for group in clusters.groups:
            for endpoint in group.endpoints:
                brokers = {*names.get((id(group), Peer.of(endpoint).port), ())}
                if len(brokers) > 1:
                    shown = (self.left or {}).get(endpoint, {}).values()
                    brokers = brokers.intersection(*map(set, shown)) if shown else set()
                if len(brokers) == 1:
                    yield endpoint, brokers.pop()


def alone(served: Iterable[Claim], led: Iterable[Claim]) -> dict[str, set[int]]:
    """By endpoint the leaders that were stated of a partition while no other endpoint of its port served it."""
    found: dict[str, set[int]] = defaultdict(set)
    for stated in led:
        at_once: dict[int, set[str]] = defaultdict(set)
        for one in served:
            if one.first.ts_ns - SOON_NS <= stated.last.ts_ns and stated.first.ts_ns <= one.last.ts_ns:
                at_once[Peer.of(one["endpoint"]).port].add(one["endpoint"])
        for endpoint, *others in at_once.values():
            if not others:
                found[endpoint].add(stated["leader"])
    return found


def names_of(clusters: Clusters) -> Names:
    """By cluster (its `id()`) and port the brokers that its members know by host names, if by nothing else."""
    found: Names = defaultdict(set)
    literal: set[tuple[int, int]] = set()
    for claim in clusters.addresses:
        place = id(clusters.group_of(claim)), Peer.of(claim["address"]).port
        found[place].add(claim["broker"])
        if is_literal(claim["address"]):
            literal.add(place)
    return {place: brokers for place, brokers in found.items() if place not in literal}
