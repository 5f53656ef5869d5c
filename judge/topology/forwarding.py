"""Which endpoints forward what they receive: proxies and balancers of which both legs are captured.

Knows: samples in the ledger and what servers list as brokers. Does not know how requests are compared
(`decode/forwarding.py`).
Rule: it depends on the ledger alone. What a forwarder sends on counts for the client that it received it from.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from wirecheck.decode.forwarding import Forwarder, Leg, Sample, Sampled, all_legs, forwarders
from wirecheck.judge.claims.claim import SAMPLE, Claim
from wirecheck.judge.claims.kinds import KINDS
from wirecheck.judge.ledger.ledger import Ledger
from wirecheck.judge.topology.endpoint_history import host_of

RECEIVED, SENT_ON = "received", "sent_on"
MALFORMED = "unreadable"
"""Bytes that are another's if they were received so, which the check asks."""
OF_LEG = ("client_id", "host", "endpoint")
PLACES = {
    name: places
    for name, kind in KINDS.items()
    if name not in {SENT_ON, MALFORMED}
    and len(places := [kind.at[part] for part in OF_LEG if part in kind.at]) == len(OF_LEG)
}
"""Of kinds of claims about one client at one server, where its key has these."""


@dataclass(frozen=True)
class Forwarding:
    forwarders: tuple[Forwarder, ...] = ()
    received: dict[str, Claim] = field(default_factory=dict)
    sent: dict[Leg, Claim] = field(default_factory=dict)
    """Of each back leg the requests of its client."""
    through: dict[Leg, str] = field(default_factory=dict)
    """By back leg the endpoint that sends on."""

    def is_back_leg(self, claim: Claim) -> bool:
        if not self.through or (places := PLACES.get(claim.kind)) is None:
            return False
        return Leg(*[claim.key[place] for place in places]) in self.through

    def endpoints(self) -> set[str]:
        return {one.endpoint for one in self.forwarders}


def serving_hosts(ledger: Ledger) -> set[str]:
    return {host_of(claim["endpoint"]) for claim in ledger.claims("server", "server")}


def forwarding_of(ledger: Ledger, addresses: Iterable[Claim]) -> Forwarding:
    """The forwarders among the servers of a ledger."""
    received: dict[str, Claim] = {}
    sent: dict[Leg, Claim] = {}
    for host in sorted(serving_hosts(ledger)):
        of_host = ledger.claims_of("host", host).values()
        sent |= {Leg(*claim.key): claim for claim in of_host if claim.kind == SENT_ON}
        received |= {claim["endpoint"]: claim for claim in of_host if claim.kind == RECEIVED}
    fronts = {endpoint: sample(claim) for endpoint, claim in received.items()}
    known = apart(addresses, ledger.claims("cluster_id", "server"))
    found = forwarders(fronts, {leg: sample(claim) for leg, claim in sent.items()}, known)
    if not found:
        return Forwarding()
    asking = {
        Leg(*claim.key): claim for subject in ledger.subjects("client") for claim in ledger.claims("client", *subject)
    }
    through = all_legs(found, {leg: claim.tally for leg, claim in asking.items()})
    shown = {leg: asking.get(leg) or sent[leg] for leg in through}  # which samples are kept depends on what came first
    return Forwarding(tuple(found), received, shown, through)


def sample(claim: Claim) -> Sample:
    begin = len(SAMPLE)
    members = ((name, value) for name, value in claim.peak.items() if name.startswith(SAMPLE))
    return Sample((Sampled(int(name[begin:], 16), *value) for name, value in members), claim.count)


def senders(received: Claim) -> set[str]:
    """The hosts of clients in the sample of what an endpoint receives."""
    return {one.host for one in sample(received).requests} - {""}


def apart(addresses: Iterable[Claim], cluster_ids: Iterable[Claim]) -> Callable[[str, str], bool]:
    """Whether some server lists two endpoints as different brokers, or they name different clusters as theirs."""
    clusters: dict[str, set[str]] = defaultdict(set)
    for claim in cluster_ids:
        clusters[claim["endpoint"]].add(claim["cluster_id"])
    stated: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for claim in addresses:
        stated[claim["endpoint"]][claim["address"]].add(claim["broker"])
    different = {frozenset((address, frozenset(nodes)) for address, nodes in one.items()) for one in stated.values()}
    lists = [dict(one) for one in different]  # all brokers of a cluster have one list, most of the time
    listed_in: dict[str, set[int]] = defaultdict(set)
    for number, one in enumerate(lists):
        for address in one:
            listed_in[address].add(number)

    def known(one: str, other: str) -> bool:
        mine, theirs = clusters.get(one), clusters.get(other)
        if mine and theirs and mine.isdisjoint(theirs):
            return True
        both = listed_in.get(one, set()) & listed_in.get(other, set())
        return any(lists[number][one].isdisjoint(lists[number][other]) for number in both)

    return known
