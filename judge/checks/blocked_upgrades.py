"""VER012: an update of a feature's level that is rejected because of a registration.

Rule: a registration outlives its node (KAFKA-20295). Only a rejected update makes a finding: that nodes are registered
with other ranges is how every upgrade begins.
"""

from collections.abc import Iterator
from typing import NamedTuple

from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.shapes import gathered, resting_on
from wirecheck.judge.claims.claim import Claim, Subject
from wirecheck.judge.results.finding import Evidence, Side, last_of
from wirecheck.judge.topology.clusters import Group
from wirecheck.wording import and_list

SHOWN = 3
"""So many nodes are named."""
UNSEEN = ", and no fetch of it was captured"
Place = tuple[str, int]
"""Role and node ID."""


class Blocks(NamedTuple):
    """A node whose registration does not support a level."""

    role: str
    node: int
    low: int
    high: int
    """0 where the feature is not supported at all."""
    claim: Claim | None
    """Of its registration; None where only the answer names it."""


def registration_blocks_upgrade(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    rejections = context.claims("feature_rejected", group, *subject)
    for (feature, level), claims in gathered(rejections, "feature level"):
        if accepted_since(feature, level, claims, group, context):
            continue
        if not (found := blocking(feature, level, claims, group, context)):
            continue
        silent = {one.node for one in found if not is_seen(one.node, group, context)}
        words = {"which": feature, "level": level, "what": in_words(found, silent)}
        sides = (*map(last_of, claims), *sides_of(found))
        first_ns = min(claim.first.ts_ns for claim in claims)
        nodes = tuple(sorted({one.node for one in found if one.role == "broker"}))
        yield resting_on(claims, feature, level, sides=sides, brokers=nodes, first_ns=first_ns, words=words)


def accepted_since(feature: str, level: int, claims: list[Claim], group: Group, context: CheckContext) -> bool:
    """Whether the level, or a higher one, was accepted after it was rejected last: nothing blocks it any more."""
    last_ns = max(claim.last.ts_ns for claim in claims)
    every = (one for one in context.claims("feature_accepted", group, "server") if one["feature"] == feature)
    return any(one["level"] >= level and one.last.ts_ns > last_ns for one in every)


def blocking(feature: str, level: int, claims: list[Claim], group: Group, context: CheckContext) -> list[Blocks]:
    """Whose registrations do not reach the level, as they were by then, and whom the answer names."""
    valid = registered_at(max(claim.last.ts_ns for claim in claims), group, context)
    found = {node_of(one): Blocks(*node_of(one), 0, 0, one) for one in valid}
    for one in valid:
        if one["feature"] == feature:
            found[node_of(one)] = Blocks(*node_of(one), one["low"], one["high"], one)
    found = {place: one for place, one in found.items() if one.high < level}
    for claim in claims:
        if claim["reason"] is not None:
            who, _, levels = claim["reason"].partition(":")
            role, node = who.split()
            low, high = levels.split("-")
            found.setdefault((role, int(node)), Blocks(role, int(node), int(low), int(high), None))
    return [found[place] for place in sorted(found)]


def registered_at(until_ns: int, group: Group, context: CheckContext) -> list[Claim]:
    """Each node's last registration by then, unless it was unregistered after it."""
    registered, latest, ended = context.claims("node_feature", group, "server"), dict[Place, int](), dict[Place, int]()
    for claims, times in ((registered, latest), (context.claims("unregistered", group, "server"), ended)):
        for claim in claims:
            if claim.first.ts_ns <= until_ns:
                times[node_of(claim)] = max(times.get(node_of(claim), 0), claim.peak["written"])
    return [
        claim
        for claim in registered
        if claim.peak["written"] == latest.get(node_of(claim), -1) > ended.get(node_of(claim), -1)
    ]


def node_of(claim: Claim) -> Place:
    return claim["role"], claim["node"]


def is_seen(node: int, group: Group, context: CheckContext) -> bool:
    """Whether the node was seen at work: it fetches, as every node does, or leads the quorum."""
    if context.claims("follower", group, "follower", str(node)):
        return True
    return any(claim["leader"] == node for claim in context.claims("quorum_leader", group, "server"))


def in_words(found: list[Blocks], silent: set[int]) -> str:
    each = [
        f"{one.role} {one.node} is registered with {reach(one)}{UNSEEN if one.node in silent else ''}"
        for one in found[:SHOWN]
    ]
    more = [f"{len(found) - SHOWN} more"] if len(found) > SHOWN else []
    return and_list([*each, *more])


def reach(one: Blocks) -> str:
    return f"{one.low} to {one.high}" if one.high else "no level of it"


def sides_of(found: list[Blocks]) -> tuple[Side, ...]:
    return tuple(
        Side(one.claim.first, f"{one.role} {one.node} is registered with {reach(one)}")
        for one in found[:SHOWN]
        if one.claim is not None
    )
