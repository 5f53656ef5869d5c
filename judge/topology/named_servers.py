"""What servers say about who is who: which hosts are named, and which servers are not.

Knows: broker lists, voter sets, registrations, ClusterIds and topic ids, by endpoint. Does not know how endpoints are
joined (`clusters.py`), nor what a client did.
Rule: who names itself is not named by others; a server that does may be a member all the same.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from wirecheck.judge.claims.claim import Claim
from wirecheck.judge.topology.endpoint_history import host_of, is_literal
from wirecheck.judge.topology.membership import carried
from wirecheck.judge.topology.releases import Ranges, digest, read

ADDRESSES = ("address", "registered")
"""Kinds of claims that name a node's address: broker lists, and the quorum's voters and registrations."""


class Servers:
    """What the servers' own subject says about who is named and who serves what."""

    def __init__(self, claims: Iterable[Claim] = ()) -> None:
        self.named: set[str] = set()
        """Hosts that a server on another host names as a node's."""
        self.by_itself: set[str] = set()
        """Hosts that name themselves: perhaps as members whose others were not asked on that listener."""
        self.raft: set[str] = set()
        """Endpoints that show the metadata log."""
        self.kafka: set[str] = set()
        self.answering: set[str] = set()
        """Endpoints that were seen to answer; of others nobody knows what they grant."""
        self.by_name = False
        """Brokers are named by host names: then any address may be one of them."""
        self.stated: dict[str, set[str]] = defaultdict(set)
        """ClusterIds by endpoint, out of its Metadata answers."""
        self.carried: dict[str, set[str]] = defaultdict(set)
        """Topic ids by endpoint."""
        self.advertised: dict[str, dict[str, Ranges]] = defaultdict(dict)
        """Ranges by endpoint and their digest."""
        for claim in claims:
            if claim.kind in ADDRESSES and not is_literal(claim["address"]):
                self.by_name = True
            match claim.kind:
                case "address" | "registered" if host_of(claim["address"]) != host_of(claim["endpoint"]):
                    self.named.add(host_of(claim["address"]))
                case "address" | "registered":
                    self.by_itself.add(host_of(claim["address"]))
                case "log_order":
                    self.raft.add(claim["endpoint"])
                case "server":
                    self.kafka.add(claim["endpoint"])
                    if claim.peak.get("answers"):
                        self.answering.add(claim["endpoint"])
                case "cluster_id" if claim["how"] == "metadata":
                    self.stated[claim["endpoint"]].add(claim["cluster_id"])
                case "carries":
                    self.carried[claim["endpoint"]].update(topic_id for _, topic_id, _ in carried([claim]))
                case "advertised":
                    self.advertised[claim["endpoint"]][digest(claim["ranges"])] = read(claim["ranges"])

    def unnamed(self) -> Iterator[str]:
        """Endpoints that state the ClusterId of servers that are named, and that nobody names, themselves neither."""
        members = {cid for end, found in self.stated.items() if host_of(end) in self.named for cid in found}
        known = self.named | self.by_itself
        yield from sorted(end for end, found in self.stated.items() if host_of(end) not in known and found & members)
