"""Which broker answers at an endpoint, where brokers advertise host names.

A list of host names says nothing about addresses. What an endpoint serves does: it leads those partitions, and Metadata
says which broker leads them. So each topic leaves some candidates for an endpoint, and the broker is the only one that
all its topics leave. Only a name with the endpoint's own port counts: clients connect to that.
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
            for endpoint, brokers in self.candidates(subject, clusters).items():
                topics = self.left.setdefault(endpoint, {})
                topics[":".join(subject)] = sorted(brokers)
                if len(topics) > MOST_TOPICS:
                    del topics[max(topics)]
        return dict(self.brokers(names, clusters))

    def candidates(self, subject: Subject, clusters: Clusters) -> dict[str, set[int]]:
        """Per endpoint that serves partitions of a topic the brokers that led all of these at some time."""
        served = [c for c in self.ledger.claims("serves", *subject) if subject[0] == "id" or c["topic_id"] is None]
        led: dict[tuple[int, int], set[int]] = defaultdict(set)
        for claim in self.leaders(subject) if served else ():
            led[id(clusters.group_of(claim)), claim["partition"]].add(claim["leader"])
        found: dict[str, set[int]] = {}
        for claim in served:
            leaders = led.get((id(clusters.group_of(claim)), claim["partition"]))
            if leaders is not None:
                found[claim["endpoint"]] = found.get(claim["endpoint"], leaders) & leaders
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
