"""Two live clusters that share one ClusterId, as after disks were copied: shown by what they contradict, taken apart.

Knows: beginnings of leader epochs, when each endpoint showed the log, broker lists, and which endpoint reports which
topic id under which name, and when. Does not know what a topic is.
Rule: only a contradiction takes clusters apart, never addresses alone: one leader epoch begins twice, at two endpoints
of one stated ClusterId that both go on leading; or two controllers accept heartbeats of two registrations of one broker
number beside each other; or one broker number answers at two endpoints, of lists that share no
address, with two ids for one name for longer than a change takes. Which endpoint is of which cluster, broker lists
and registrations of brokers say. The key of each is the ClusterId and the smallest endpoint of its component.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import combinations
from typing import NamedTuple

from wirecheck.judge.claims.claim import Claim
from wirecheck.judge.topology.membership import Node, pairs

AT, MARGIN_MS, COMMON_SLOTS = "at:", 1_000, 3
"""In so many slots of 10 s both must show the log: leaders of one quorum do so in turn."""
BESIDE_NS = 20_000_000_000
"""So long both ids must be reported beside each other. One broker never does that; it is less than the grace after
which the brokers of one of two clusters would be stale."""
MOST_ENDS = 64
"""Of one broker number that are compared with each other, those named first: a broker has a few listeners, and a host
that claims thousands comes after them."""
Reports = Callable[[str, str], tuple[Claim, int] | None]
"""From an endpoint and a topic id to its first report there, and when it was reported or served there last."""


class Twins(NamedTuple):
    """Two endpoints of two clusters with one ClusterId."""

    one: str
    other: str
    shown_by: tuple[Claim, Claim]
    what: str
    """What both do, and only two clusters can."""


def unreported(_endpoint: str, _topic_id: str) -> None:
    return None


def twins(claims: dict[str, list[Claim]], stated: dict[Node, str], reports: Reports) -> list[Twins]:
    """`stated` are the ClusterIds by node; an endpoint whose ClusterId is not known, or changed, has no twin."""
    ids: dict[str, set[str]] = defaultdict(set)
    for (endpoint, _), cluster_id in stated.items():
        ids[endpoint].add(cluster_id)
    found = {
        (twin.one, twin.other): twin
        for twin in (*by_reports(claims, reports), *by_heartbeats(claims), *by_epochs(claims))
    }
    return [found[one, other] for one, other in sorted(found) if ids[one] == ids[other] and len(ids[one]) == 1]


def by_epochs(claims: dict[str, list[Claim]]) -> Iterator[Twins]:
    """Endpoints that lead two metadata logs at one time."""
    by_epoch: dict[int, list[Claim]] = defaultdict(list)
    for claim in claims["log_epoch"]:
        by_epoch[claim["epoch"]].append(claim)
    slots = {order["endpoint"]: {name for name in order.peak if name.startswith(AT)} for order in claims["log_order"]}
    for epoch, begun in sorted(by_epoch.items(), reverse=True):
        begun.sort(key=lambda claim: (claim["endpoint"], claim["offset"], claim["written"]))
        for first, second in combinations(begun, 2):
            pair = (first["endpoint"], second["endpoint"])
            together = slots.get(pair[0], set()) & slots.get(pair[1], set())
            again = abs(first["written"] - second["written"]) > MARGIN_MS
            if pair[0] != pair[1] and again and len(together) >= COMMON_SLOTS:
                yield Twins(*pair, (first, second), f"both lead the metadata log in epoch {epoch}")


def by_heartbeats(claims: dict[str, list[Claim]], common_slots: int = COMMON_SLOTS) -> Iterator[Twins]:
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
        accepted.sort(key=lambda claim: (claim["endpoint"], claim["epoch"], claim.first))
        for first, second in combinations(accepted, 2):
            mine, theirs = (registered[claim["endpoint"], broker, claim["epoch"]] for claim in (first, second))
            differ = first["epoch"] != second["epoch"] or (mine and theirs and mine.isdisjoint(theirs))
            common = len(first.tally.keys() & second.tally.keys())
            if first["endpoint"] != second["endpoint"] and differ and common >= common_slots:
                ends = first["endpoint"], second["endpoint"]
                yield Twins(*ends, (first, second), f"both accept the heartbeats of a broker {broker} of their own")


def contradictions(claims: dict[str, list[Claim]]) -> Iterator[tuple[int, tuple[str, str], tuple[str, str]]]:
    """Broker numbers with two endpoints that name a topic by different ids: number, endpoints, ids."""
    names: dict[str, dict[str, set[str]]] = {}
    for claim in claims["names"]:
        known = names.setdefault(claim["endpoint"], defaultdict(set))
        for name, topic_id in pairs(claim.peak):
            known[name].add(topic_id)
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
            for name in sorted(names[one].keys() & names[other].keys()):
                mine, theirs = names[one][name], names[other][name]
                yield from ((number, (one, other), (a, b)) for a in sorted(mine - theirs) for b in sorted(theirs))
                yield from ((number, (one, other), (a, b)) for a in sorted(mine) for b in sorted(theirs - mine))


def by_reports(claims: dict[str, list[Claim]], reports: Reports) -> Iterator[Twins]:
    """Endpoints of one broker number, of lists that share no address, that report two ids for one name at one time. A
    broker has one image of the metadata, whichever listener it is asked at.
    """
    root = components(claims["address"])
    for number, (one, other), ids in contradictions(claims):
        first, second = reports(one, ids[0]), reports(other, ids[1])
        if ids[0] == ids[1] or root(one) == root(other) or first is None or second is None:
            continue
        beside_ns = min(first[1], second[1]) - max(first[0].first.ts_ns, second[0].first.ts_ns)
        if beside_ns > BESIDE_NS:
            said = f"both answer as broker {number}, with different IDs of topic {first[0]['name']}"
            yield Twins(one, other, (first[0], second[0]), said)


def components(addresses: Iterable[Claim]) -> Callable[[str], str]:
    """From an endpoint to the smallest one that broker lists join it to."""
    parent: dict[str, str] = {}

    def root(endpoint: str) -> str:
        while (above := parent.get(endpoint, endpoint)) != endpoint:
            endpoint = above
        return endpoint

    for claim in addresses:
        one, other = sorted((root(claim["endpoint"]), root(claim["address"])))
        parent[other] = one
    return root


def taken_apart(stated: dict[Node, str], claims: dict[str, list[Claim]], found: list[Twins]) -> dict[Node, str]:
    """ClusterIds by node, with the key of its component where a cluster has a twin."""
    root = components(claims["address"])
    of = {endpoint: told for (endpoint, _), told in stated.items()}
    split = {
        (of[twin.one], root(end))
        for twin in found
        if of.get(twin.one, "") == of.get(twin.other) and root(twin.one) != root(twin.other)
        for end in (twin.one, twin.other)
    }
    members: dict[tuple[str, str], list[str]] = defaultdict(list)
    for (endpoint, _), told in stated.items():
        members[told, root(endpoint)].append(endpoint)
    return {
        node: f"{told}@{min(members[told, root(node[0])])}" if (told, root(node[0])) in split else told
        for node, told in stated.items()
    }
