"""Two live clusters that share one ClusterId, as after disks were copied: shown by their metadata logs, taken apart.

Knows: beginnings of leader epochs, when each endpoint showed the log, and broker lists. Does not know topics.
Rule: only a contradiction takes clusters apart, never addresses alone: one leader epoch begins twice, at two endpoints
of one stated ClusterId that both go on leading. Which endpoint is of which cluster, broker lists and registrations of
brokers say. The key of each is the ClusterId and the smallest endpoint of its component.
"""

from collections import defaultdict
from itertools import combinations
from typing import NamedTuple

from wirecheck.judge.claims.claim import Claim
from wirecheck.judge.topology.membership import Node

AT, MARGIN_MS, COMMON_SLOTS = "at:", 1_000, 3
"""In so many slots of 10 s both must show the log: leaders of one quorum do so in turn."""


class Twins(NamedTuple):
    """Two endpoints that lead two metadata logs of one ClusterId at one time."""

    one: str
    other: str
    epochs: tuple[Claim, Claim]


def twins(claims: dict[str, list[Claim]], stated: dict[Node, str]) -> list[Twins]:
    """`stated` are the ClusterIds by node; an endpoint whose ClusterId is not known has no twin."""
    ids: dict[str, set[str]] = defaultdict(set)
    for (endpoint, _), cluster_id in stated.items():
        ids[endpoint].add(cluster_id)
    by_epoch: dict[int, list[Claim]] = defaultdict(list)
    for claim in claims["log_epoch"]:
        by_epoch[claim["epoch"]].append(claim)
    slots = {order["endpoint"]: {name for name in order.peak if name.startswith(AT)} for order in claims["log_order"]}
    found: dict[tuple[str, str], Twins] = {}
    for _, begun in sorted(by_epoch.items()):
        begun.sort(key=lambda claim: (claim["endpoint"], claim["offset"], claim["written"]))
        for first, second in combinations(begun, 2):
            pair = (first["endpoint"], second["endpoint"])
            together = slots.get(pair[0], set()) & slots.get(pair[1], set())
            again = abs(first["written"] - second["written"]) > MARGIN_MS
            one_id = pair[0] != pair[1] and not ids[pair[0]].isdisjoint(ids[pair[1]])
            if one_id and again and len(together) >= COMMON_SLOTS:
                found.setdefault(pair, Twins(*pair, (first, second)))
    return [found[pair] for pair in sorted(found)]


def taken_apart(stated: dict[Node, str], claims: dict[str, list[Claim]], found: list[Twins]) -> dict[Node, str]:
    """ClusterIds by node, with the key of its component where a cluster has a twin."""
    parent: dict[str, str] = {}

    def root(endpoint: str) -> str:
        while (above := parent.get(endpoint, endpoint)) != endpoint:
            endpoint = above
        return endpoint

    for claim in claims["address"]:
        one, other = sorted((root(claim["endpoint"]), root(claim["address"])))
        parent[other] = one
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
