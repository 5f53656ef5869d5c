"""VER: what servers of one cluster advertise, beside each other: releases, and levels of features.

Rule: a roll may take an hour, and what is configured is not judged: an API that a server lacks says nothing. Levels of
features are compared where they are of one epoch, which is an offset of the metadata log: there they are one state.
Epochs grow all the time under KRaft, so two servers that never change also disagree where their epochs alternate.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations, pairwise
from types import MappingProxyType
from typing import Any

from wirecheck.decode.releases import is_of_controller, lines_of, order_of, spelled
from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.shapes import by_key, clock, ends, gathered, if_broker, servers_of
from wirecheck.judge.claims.claim import Claim, Subject
from wirecheck.judge.claims.extract.node_features import BROKER, MS
from wirecheck.judge.results.finding import Evidence, Side, last_of
from wirecheck.judge.thresholds import SECOND_NS
from wirecheck.judge.topology.clusters import Group

UNKNOWN_EPOCH = -1
OFF = 0
"""The level of a feature that is not in use."""
OF_THE_QUORUM = "kraft.version"
"""Its level is in records that no epoch counts, so that nodes have it at different times (KAFKA-19998). Before Kafka
4.0.1 controllers state 0 whatever it is (KAFKA-18920, KAFKA-18979).
"""
TURNS = 3
"""So many changes of a level in the order of epochs, which no server states itself, are none."""
REGISTRATION = "BrokerRegistration"
SHOWN = 3
"""So many brokers of one release are named."""


def brokers_of_several_releases(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Brokers that advertise the versions of different releases, for longer than a roll may take."""
    latest: dict[int, Claim] = {}
    for claim in context.claims("advertised", group, *subject):
        node = context.node(claim)
        if isinstance(node, int) and not is_of_controller(claim["ranges"]) and lines_of(claim["ranges"]):
            known = latest.get(node)
            latest[node] = claim if known is None else max(known, claim, key=lambda one: one.last)
    by_line: dict[tuple[str, ...], list[int]] = {}
    for node, claim in sorted(latest.items()):
        by_line.setdefault(lines_of(claim["ranges"]), []).append(node)
    apart = [(one, other) for one, other in combinations(by_line, 2) if set(one).isdisjoint(other)]
    window_ns = context.settings.roll_window_s * SECOND_NS
    answered_ns = last_answers(group, context)
    lasting = [
        pair
        for pair in apart
        if lasts_ns([latest[n] for line in pair for n in by_line[line]], answered_ns) >= window_ns
    ]
    behind = sum(sorted(map(len, by_line.values()))[:-1])
    if not lasting or behind <= context.settings.canary_brokers:
        return
    lines = sorted({line for pair in lasting for line in pair}, key=lambda line: order_of(line[0]))
    nodes = [node for line in lines for node in by_line[line]]
    since_ns = max(latest[node].first.ts_ns for node in nodes)
    words: dict[str, Any] = {"what": "; ".join(f"{brokers(by_line[line])} Kafka {spelled(line)}" for line in lines)}
    words["since"] = clock(since_ns)
    sides = tuple(
        Side(latest[n].last, f"broker {n} advertises Kafka {spelled(lines_of(latest[n]['ranges']))}") for n in nodes
    )
    yield Evidence((tuple(nodes),), sides, brokers=tuple(nodes), first_ns=since_ns, words=words)


def last_answers(group: Group, context: CheckContext) -> dict[str, int]:
    """When each server answered last: what it advertised last holds until then, as clients ask for it once."""
    accepts = context.claims("accepts", group, "server")
    return {claim["endpoint"]: max(claim.peak.values(), default=0) for claim in accepts}


def lasts_ns(claims: list[Claim], answered_ns: Mapping[str, int] = MappingProxyType({})) -> int:
    """For how long all of them were advertised beside each other."""
    until_ns = (max(claim.last.ts_ns, answered_ns.get(claim["endpoint"], 0)) for claim in claims)
    return min(until_ns) - max(claim.first.ts_ns for claim in claims)


def brokers(nodes: list[int]) -> str:
    more = f" and {len(nodes) - SHOWN} more" if len(nodes) > SHOWN else ""
    return f"broker{'s' if len(nodes) > 1 else ''} {', '.join(map(str, nodes[:SHOWN]))}{more}:"


def feature_levels_disagree(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Finalized levels that differ at one epoch, and those that their server does not support."""
    finalized = context.claims("finalized_feature", group, *subject)
    of_log = [claim for claim in finalized if claim["feature"] != OF_THE_QUORUM]
    grace_ns = context.settings.broker_grace_ns
    for (feature, epoch), claims in gathered(of_log, "feature epoch"):
        levels = {claim["level"]: claim for claim in claims}
        both = [claims[0], *(one for one in claims if one["level"] != claims[0]["level"])]
        if len(levels) > 1 and epoch != UNKNOWN_EPOCH and (lasts_ns(both[:2]) >= grace_ns or of_one_server(claims)):
            each = [
                f"{servers_of(same, context)} {level}" for (level,), same in sorted(by_key(claims, "level").items())
            ]
            words = {"what": f"has different levels at one epoch ({epoch}): {'; '.join(each)}"}
            yield of_feature(feature, claims, f"epoch {epoch}", words, context)
    for (feature,), claims in gathered(of_log, "feature"):
        sides = alternating(claims)
        if sides and together_ns(sides) >= grace_ns:
            first, last = (pick(claim["epoch"] for side in sides for claim in side) for pick in (min, max))
            each = [f"{servers_of(side, context)} {side[0]['level']}" for side in sides]
            words = {"what": f"has different levels at epochs from {first} to {last}: {'; '.join(each)}"}
            latest = [max(side, key=lambda claim: claim.last) for side in sides]
            yield of_feature(feature, latest, "epochs", words, context)
    for claim, what in unsupported_levels(finalized, subject, group, context):
        yield of_feature(claim["feature"], [claim], claim["endpoint"], {"what": what}, context)
    for claim, what in set_back(of_log, subject, group, context):
        yield of_feature(claim["feature"], [claim], f"{claim['endpoint']} set back", {"what": what}, context)
    for record, claim, what in written_above(subject, group, context):
        yield of_feature(record["feature"], [record, claim], f"record {record['level']}", {"what": what}, context)
    for claim, what in registered_below(of_log, subject, group, context):
        found = of_feature(claim["feature"], [claim], f"registration {claim['node']}", {"what": what}, context)
        yield replace(found, brokers=(claim["node"],))
    for feature, level, granted, since in not_raised(finalized, subject, group, context):
        what = (
            f"still has level {since[0]['level']} at {servers_of(since, context)}, although level {level} was accepted"
        )
        words = {"what": f"{what} at {clock(granted.first.ts_ns)}"}
        yield of_feature(feature, [granted, *since], f"level {level}", words, context)


def not_raised(
    finalized: list[Claim], subject: Subject, group: Group, context: CheckContext
) -> Iterator[tuple[str, int, Claim, list[Claim]]]:
    """Levels that were accepted, once and as the last of their feature, and what servers state instead of them: the
    level of before, of a metadata log that goes on. Some servers call features off that are not (KAFKA-18920,
    KAFKA-18979: kraft.version).
    """
    grace_ns = context.settings.broker_grace_ns
    accepted = [one for one in context.claims("feature_accepted", group, *subject) if one.peak.get("done")]
    for (feature,), updates in gathered(accepted, "feature"):
        last = max(updates, key=lambda claim: claim.last)
        at_ns, level = last.first.ts_ns, last["level"]
        stated = [one for one in finalized if one["feature"] == feature and one["epoch"] != UNKNOWN_EPOCH]
        before = [one for one in stated if one.first.ts_ns < at_ns]
        reached = max((one["epoch"] for one in before), default=UNKNOWN_EPOCH)
        since = [one for one in stated if one.last.ts_ns >= at_ns + grace_ns and one["epoch"] > reached]
        levels = {one["level"] for one in (*before, *since)}
        alone = len({one["level"] for one in updates}) == 1 and level not in {one["level"] for one in stated}
        if not (before and since and alone and len(levels) == 1 and min(level, *levels) > OFF):
            continue
        if max(one.last.ts_ns for one in since) - min(one.first.ts_ns for one in since) >= grace_ns:
            yield feature, level, last, since


def unsupported_levels(
    finalized: list[Claim], subject: Subject, group: Group, context: CheckContext
) -> Iterator[tuple[Claim, str]]:
    """Levels above or below all that their server supported meanwhile; a feature that is not in use has level 0."""
    supported = context.by("endpoint feature", "supported_feature", group, *subject)
    for claim in finalized:
        ranges = supported.get((claim["endpoint"], claim["feature"]), ())
        valid = [one for one in ranges if one.first.ts_ns <= claim.last.ts_ns and claim.first.ts_ns <= one.last.ts_ns]
        level, server = claim["level"], servers_of([claim], context)
        if valid and all(level > one["high"] for one in valid):
            yield claim, f"has level {level}, and {server} supports no more than {max(one['high'] for one in valid)}"
        elif valid and all(OFF < level < one["low"] for one in valid):
            yield claim, f"has level {level}, and {server} supports no less than {min(one['low'] for one in valid)}"


def of_one_server(claims: list[Claim]) -> bool:
    """Whether one endpoint states two levels, each again and again: also one after the other, as it is one epoch."""
    lasting = [claim for claim in claims if claim.count > 1]
    return len({(one["endpoint"], one["level"]) for one in lasting}) > len({one["endpoint"] for one in lasting})


def set_back(
    finalized: list[Claim], subject: Subject, group: Group, context: CheckContext
) -> Iterator[tuple[Claim, str]]:
    """Brokers that state lower epochs only, for longer than the grace period, after a higher one. A broker answers once
    it has read the log to its end, a controller from the start on. Behind other addresses there may be several servers.
    """
    controllers = {
        one["endpoint"] for one in context.claims("advertised", group, *subject) if is_of_controller(one["ranges"])
    }
    for endpoint, claims in sorted(by_key(finalized, "endpoint").items()):
        highest = max(claims, key=lambda claim: (claim["epoch"], claim.last))
        lower = [one for one in claims if one["epoch"] < highest["epoch"] and one.first.ts_ns > highest.last.ts_ns]
        lower = [one for one in lower if one["epoch"] != UNKNOWN_EPOCH]
        if not lower or endpoint in controllers or not isinstance(context.node(highest), int):
            continue
        first, last = min(lower, key=lambda one: one.first), max(lower, key=lambda one: one.last)
        if last.last.ts_ns - first.first.ts_ns >= context.settings.broker_grace_ns:
            since = f"since {clock(first.first.ts_ns)}, after epoch {highest['epoch']}"
            yield last, f"is of epoch {last['epoch']} at {servers_of([last], context)} {since}"


def written_above(subject: Subject, group: Group, context: CheckContext) -> Iterator[tuple[Claim, Claim, str]]:
    """Records of the metadata log with a level that a server did not support, by its answers well before and well after
    the record was written; a controller writes none above a registration (FeatureControlManager.updateFeature).
    """
    supported = by_key(context.claims("supported_feature", group, *subject), "feature")
    grace_ns = context.settings.broker_grace_ns
    records = (one for one in context.claims("log_feature", group, *subject) if one["feature"] != OF_THE_QUORUM)
    for record in records:
        at_ns, level = record.peak["written"] * MS, record["level"]
        for same in by_key(supported.get((record["feature"],), ()), "endpoint").values():
            valid = [one for one in same if one.first.ts_ns + grace_ns <= at_ns <= one.last.ts_ns - grace_ns]
            if valid and all(level > one["high"] for one in same):
                most = f"{servers_of(valid, context)} supports no more than {max(one['high'] for one in valid)}"
                yield record, valid[0], f"gets level {level} by the metadata log, and {most}"
                break


def registered_below(
    finalized: list[Claim], subject: Subject, group: Group, context: CheckContext
) -> Iterator[tuple[Claim, str]]:
    """Brokers whose registration was granted although they support no level that is finalized before and after it: a
    controller rejects that (ClusterControlManager.registerBroker). A record of the log may be older than the level.
    """
    levels = by_key(finalized, "feature")
    for claim in context.claims("node_feature", group, *subject):
        at_ns, high = claim.first.ts_ns, claim["high"]
        if claim["role"] != BROKER or claim.first.api != REGISTRATION:
            continue
        stated = [one for one in levels.get((claim["feature"],), ()) if one.first.ts_ns < at_ns < one.last.ts_ns]
        if stated and all(one["level"] > high for one in stated):
            level = min(one["level"] for one in stated)
            yield claim, f"has level {level}, and broker {claim['node']} is registered with no more than {high}"


def together_ns(sides: list[list[Claim]]) -> int:
    """For how long servers answered beside each other, each with claims of its own."""
    return min(max(one.last.ts_ns for one in side) for side in sides) - max(
        min(one.first.ts_ns for one in side) for side in sides
    )


def alternating(claims: list[Claim]) -> list[list[Claim]]:
    """Of one feature what two servers state that each have one level, and whose epochs lie between each other's: were
    the level changed, both would have both. Empty without such.
    """
    if len({claim["level"] for claim in claims}) == 1:
        return []  # as of nearly all clusters, whose epochs are many
    known = [claim for claim in claims if claim["epoch"] != UNKNOWN_EPOCH]
    by_server = by_key(known, "endpoint")
    steady = [mine for mine in by_server.values() if len({claim["level"] for claim in mine}) == 1]
    by_level = {mine[0]["level"]: mine for mine in sorted(steady, key=len)}  # of each level who states it most
    for one, other in combinations(by_level.values(), 2):
        levels = [level for _, level in sorted((claim["epoch"], claim["level"]) for claim in (*one, *other))]
        if sum(before != after for before, after in pairwise(levels)) >= TURNS:
            return [one, other]
    return []


def of_feature(feature: str, claims: list[Claim], where: str, words: dict[str, Any], context: CheckContext) -> Evidence:
    words |= {"which": feature}
    nodes = sorted({node for claim in claims for node in if_broker(context.node(claim))})
    since_ns = max(claim.first.ts_ns for claim in claims)
    sides = (*ends(claims[:1]), *map(last_of, claims[1:]))
    return Evidence((feature, where), sides, brokers=tuple(nodes), first_ns=since_ns, words=words)
