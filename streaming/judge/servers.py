"""What servers say about who is who: which hosts are named, and which servers are not.

Knows: broker lists, registrations, ClusterIds and topic ids, by endpoint. Does not know how endpoints are joined
(`clusters.py`), nor what a client did.
Rule: who names itself is not named; an order names nobody, as anybody may send one.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from streaming.judge.claim import Claim
from streaming.judge.releases import Ranges, digest, read

LISTS = {"Metadata", "DescribeCluster", "BrokerRegistration"}


class Servers:
    """What the servers' own cell says about who is named and who serves what."""

    def __init__(self, claims: Iterable[Claim] = ()) -> None:
        self.named: set[str] = set()
        """Hosts that a server on another host names as a broker's."""
        self.raft: set[str] = set()
        """Endpoints that show the metadata log."""
        self.kafka: set[str] = set()
        self.stated: dict[str, set[str]] = defaultdict(set)
        """ClusterIds by endpoint, out of its Metadata answers."""
        self.carried: dict[str, set[str]] = defaultdict(set)
        """Topic ids by endpoint."""
        self.advertised: dict[str, dict[str, Ranges]] = defaultdict(dict)
        """Ranges by endpoint and their digest."""
        for claim in claims:
            match claim.kind:
                case "address" if host_of(claim["address"]) != host_of(claim["endpoint"]) and is_list(claim):
                    self.named.add(host_of(claim["address"]))
                case "log_order":
                    self.raft.add(claim["endpoint"])
                case "server":
                    self.kafka.add(claim["endpoint"])
                case "cluster_id" if claim["how"] == "metadata":
                    self.stated[claim["endpoint"]].add(claim["cluster_id"])
                case "carries":
                    self.carried[claim["endpoint"]].add(claim["topic_id"])
                case "advertised":
                    self.advertised[claim["endpoint"]][digest(claim["ranges"])] = read(claim["ranges"])

    def unnamed(self) -> Iterator[str]:
        """Endpoints that state the ClusterId of servers that are named, and are not."""
        members = {cid for end, found in self.stated.items() if host_of(end) in self.named for cid in found}
        yield from sorted(
            end for end, found in self.stated.items() if host_of(end) not in self.named and found & members
        )


def host_of(end: str) -> str:
    return end.rpartition(":")[0]


def is_list(claim: Claim) -> bool:
    """Whether an address was told by who knows: a broker list or a registration that was accepted, no order."""
    return not {claim.first.api, claim.last.api}.isdisjoint(LISTS)
