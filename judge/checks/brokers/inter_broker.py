"""VER: versions between brokers, and between what servers advertise and what is sent to them.

Rule: a roll may take its hour; only what no release can send is found at once.
"""

from collections import defaultdict
from collections.abc import Iterator

from wirecheck.decode.api_names import key_of
from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.brokers.control import ORDERS
from wirecheck.judge.checks.error_streaks import by_slot, end_ns, start_ns
from wirecheck.judge.checks.shapes import about, brokers_of, clock, ends, gathered, resting_on, servers_of
from wirecheck.judge.claims.claim import LEAST, Claim, Sighting, Subject
from wirecheck.judge.ledger.connection_sums import summed
from wirecheck.judge.results.finding import Evidence, Side, first_of, last_of
from wirecheck.judge.thresholds import SECOND_NS
from wirecheck.judge.topology.clusters import Group
from wirecheck.judge.topology.releases import digest, read

Level = tuple[int, tuple[int, ...], int, range]
Sent = tuple[int, int, dict[str, set[int]], list[Claim]]
"""A controller in one of its epochs: the versions of its requests by API, and the claims of them."""
LEVELS: tuple[Level, ...] = (
    (0, (0, 1, 2, 3), 0, range(6)),
    (1, (4,), 0, range(5, 11)),
    (2, (5,), 1, range(10, 12)),
    (3, (5,), 1, range(11, 12)),
    (4, (6,), 2, range(11, 12)),
    (4, (6,), 3, range(11, 13)),
    (5, (7,), 3, range(12, 14)),
    (6, (7,), 3, range(12, 14)),
    (7, (8,), 4, range(12, 18)),
)
"""LeaderAndIsr, UpdateMetadata, StopReplica and followers' Fetch versions of one inter-broker protocol, oldest first
(PROTOCOL 4.10). A follower falls back to Fetch v12 where a topic has no ID.
"""
WITH_IDS = 13
"""The first Fetch version that carries topic ids."""
LASTING_SLOTS = 4
"""So many slots of 10 s by name are no passing thing."""
SHOWN = 3
"""So many topics a summary names."""


def version_outside_advertised_range(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Detects. A client sends requests in a version outside the range that the server advertised on the same
    connection.

    Why it matters. The client does not negotiate versions, or ignores the answer. The server closes the connection or
    misreads the request.

    False positives. None known. ApiVersions itself does not count, nor connections whose range is not in the capture.
    The range of another connection may be that of another listener or release.

    Source. KIP-35; KIP-511.
    """
    asked = summed(context.claims("outside", group, *subject))
    told = advertised(group, context) if asked else {}
    found: dict[tuple[str | None, str, str, int], list[Claim]] = defaultdict(list)
    for claim in asked:
        for word in claim.tally if claim["digest"] in told else ():
            api, _, version = word.rpartition(":")
            found[claim["client_id"], claim["host"], api, int(version)].append(claim)
    for (client_id, host, api, number), claims in sorted(found.items(), key=str):
        yield resting_on(
            claims,
            *(client_id or "", host, api, number),
            sides=(*map(last_of, claims), *(advert(told[claim["digest"]], api) for claim in claims)),
            client_ids=(client_id,),
            brokers=brokers_of(claims, context),
            count=sum(claim.tally[f"{api}:{number}"] for claim in claims),
            words={"api": api, "version": number, "server": servers_of(claims)},
        )


def advertised(group: Group, context: CheckContext) -> dict[str, Claim]:
    context.watch()
    return {digest(claim["ranges"]): claim for claim in context.claims("advertised", group, "server")}


def advert(told: Claim, api: str) -> Side:
    low, high = read(told["ranges"]).get(key_of(api), (-1, -1))
    what = f"{api} {low} to {high}" if high >= 0 else f"no {api}"
    return Side(told.first, f"{told['endpoint']} advertises {what}")


def mixed_inter_broker_versions(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Detects. The request versions of a controller (LeaderAndIsr, UpdateMetadata, StopReplica, and Fetch as a
    follower) match no inter-broker protocol level. Or brokers still use different levels an hour after the upgrade
    began.

    Why it matters. The first case is no released Kafka. The second is an incomplete upgrade: topic IDs appear and
    disappear with the controller.

    False positives. A rolling upgrade, for an hour. A controller of which the capture has only one kind of request does
    not count.

    Source. MetadataVersion and ControllerChannelManager of Kafka 2.0 to 3.9.
    """
    followers = own_fetches(subject, group, context)
    sent: list[Sent] = []
    orders = context.claims("control", group, *subject)
    for (controller, epoch), claims in gathered(orders, "controller controller_epoch"):
        by_api = {api: {claim["version"] for claim in claims if claim["api"] == api} for api in ORDERS}
        by_api["Fetch"] = fetched(controller, claims, followers)
        sent.append((controller, epoch, by_api, claims))
        if not any(fits(level, by_api) for level in LEVELS):
            what = f"sends {shown(by_api)} in epoch {epoch}, which no release sends together"
            yield resting_on(claims, [controller], brokers=(controller,), words={"what": what})
    yield from two_levels(sent, context)
    yield from half_rolled(followers, context)


def own_fetches(subject: Subject, group: Group, context: CheckContext) -> list[Claim]:
    """Fetches with a replica ID from the hosts of that broker: one was granted there, or brokers name the host."""
    claims = context.claims("fetch_versions", group, *subject)
    proven = {(claim["broker"], claim["host"]) for claim in claims if claim.peak.get("granted") == 1}
    return [
        claim
        for claim in claims
        if (claim["broker"], claim["host"]) in proven or context.named_at(claim["broker"], claim["host"], group)
    ]


def fetched(controller: int, told: list[Claim], followers: list[Claim]) -> set[int]:
    """The versions in which a controller follows while it is one."""
    first, last = min(claim.first.ts_ns for claim in told), max(claim.last.ts_ns for claim in told)
    return {
        version
        for claim in followers
        if claim["broker"] == controller
        for slot, versions in by_slot(claim.tally).items()
        if first <= start_ns(slot) and end_ns(slot) <= last
        for version in versions
    }


def two_levels(sent: list[Sent], context: CheckContext) -> Iterator[Evidence]:
    """Brokers that gave orders of different levels, the older one longer than the roll window after the newer one."""
    newest: dict[int, tuple[int, int, int, list[Claim]]] = {}
    for broker, epoch, by_api, claims in sent:
        levels = [number for number, level in enumerate(LEVELS) if fits(level, by_api)]
        now = (levels[0], levels[-1], epoch, claims) if levels else None
        if now and by_api["LeaderAndIsr"] and (broker not in newest or now[:3] > newest[broker][:3]):
            newest[broker] = now
    window_ns = context.settings.roll_window_s * SECOND_NS
    for broker, (_, level, _, claims) in sorted(newest.items(), key=lambda item: item[0]):
        last_ns = max(claim.last.ts_ns for claim in claims)
        ahead = [
            other
            for other, (higher, _, _, newer) in newest.items()
            if higher > level and last_ns > min(claim.first.ts_ns for claim in newer) + window_ns
        ]
        if ahead:
            told = [claim for other in (broker, *ahead) for claim in newest[other][3]]
            both = sorted({broker, *ahead})
            what = f"broker {broker} gives orders of an older level than {', '.join(map(str, ahead))}"
            yield resting_on(told, both, brokers=tuple(both), count=len(told), words={"what": what})


def fits(level: Level, by_api: dict[str, set[int]]) -> bool:
    leader_and_isr, update_metadata, stop_replica, fetch = level
    return (
        by_api["LeaderAndIsr"] <= {leader_and_isr}
        and by_api["UpdateMetadata"] <= set(update_metadata)
        and by_api["StopReplica"] <= {stop_replica}
        and by_api["Fetch"] <= set(fetch)
    )


def shown(by_api: dict[str, set[int]]) -> str:
    return ", ".join(f"{api} v{'/v'.join(map(str, sorted(v)))}" for api, v in sorted(by_api.items()) if v)


def half_rolled(claims: list[Claim], context: CheckContext) -> Iterator[Evidence]:
    """Followers that fetch in versions of different levels beside each other for longer than the roll window."""
    spans: dict[int, dict[int, tuple[int, int]]] = defaultdict(dict)
    for claim in claims:
        for slot, versions in by_slot(claim.tally).items():
            for version in versions:
                first, last = spans[claim["broker"]].get(version, (slot, slot))
                spans[claim["broker"]][version] = (min(first, slot), max(last, slot))
    versions_of = {broker: max(found) for broker, found in spans.items()}
    window = context.settings.roll_window_s // 10
    low, high = min(versions_of.values(), default=0), max(versions_of.values(), default=0)
    old = [broker for broker, version in versions_of.items() if version == low != high]
    new = [broker for broker, version in versions_of.items() if version == high != low]
    if old and new:
        since = min(spans[broker][high][0] for broker in new)
        behind = [broker for broker in old if spans[broker][low][1] - since > window]
        if behind:
            both = sorted({*behind, *new})
            sides = tuple(last_of(claim) for claim in claims if claim["broker"] in both)
            what = f"some follow with Fetch v{low}, some with v{high} since {about(start_ns(since))}"
            yield Evidence((both,), sides, brokers=tuple(both), words={"what": what})


def follower_fetches_without_topic_ids(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Detects. A broker fetches by name again (Fetch v12) later than the grace period after it fetched by ID (v13 or
    newer). Meanwhile it still fetches other topics by ID, or brokers name some topics without an ID. Those topics are
    listed.

    Why it matters. One topic without an ID forces the whole fetch back to names. Look for the topic that lost its ID.

    False positives. None known. Before the inter-broker protocol reaches 3.1, and after it is rolled back, a broker
    fetches all topics by name; this does not count. Neither do the seconds around a deletion.

    Source. RemoteLeaderEndPoint.buildFetch of Kafka 3.9.
    """
    spans: dict[int, dict[bool, list[int]]] = defaultdict(lambda: defaultdict(list))
    claims = own_fetches(subject, group, context)
    for claim in claims:
        for slot, versions in by_slot(claim.tally).items():
            for version in versions:
                spans[claim["broker"]][version >= WITH_IDS].append(slot)
    for broker, by_kind in sorted(spans.items()):
        if not by_kind[True] or not by_kind[False]:
            continue
        after = end_ns(min(by_kind[True])) + context.settings.broker_grace_ns
        late = sorted({slot for slot in by_kind[False] if start_ns(slot) > after})
        if len(late) < LASTING_SLOTS:
            continue
        since = start_ns(late[0])
        bare = idless_since(since, group, context)
        beside = max(by_kind[True]) > late[LASTING_SLOTS - 1]
        carries = context.claims("carries", group, "server") if bare else ()  # topics had IDs since then
        if beside or any(claim.last.ts_ns >= since for claim in carries):
            mine = [claim for claim in claims if claim["broker"] == broker]
            topics = ", ".join(name for name, _ in bare[:SHOWN])
            sides = ends(mine) + tuple(Side(seen, f"{name} has no ID") for name, seen in bare[:SHOWN])
            columns = {"topic": bare[0][0] if len(bare) == 1 else None, "count": len(late), "first_ns": since}
            words = {"broker": broker, "since": about(since), "topics": f": {topics}" if topics else ""}
            yield resting_on(mine, broker, sides=sides, brokers=(broker,), **columns, words=words)


def idless_since(since_ns: int, group: Group, context: CheckContext) -> list[tuple[str, Sighting]]:
    """Topics that somebody named without an id after some time."""
    found: dict[str, Sighting] = {}
    for claim in context.claims("idless", group, "server"):
        for name, value in claim.peak.items():
            if name.startswith(LEAST) and value[0] >= since_ns:
                found[value[-1]] = max(Sighting(*value[:-1]), found.get(value[-1], Sighting(*value[:-1])))
    return sorted(found.items())


def legacy_control_request_after_kraft(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Detects. A broker accepts LeaderAndIsr, UpdateMetadata or StopReplica from a ZooKeeper controller later than the
    grace period after a KRaft controller took over.

    Why it matters. Two controllers of different kinds send requests: the migration did not complete.

    False positives. The hand-over, and a rollback of the migration, which has a new, higher epoch. Both do not count.

    Source. KIP-866.
    """
    orders = context.claims("control", group, *subject)
    kraft = [claim for claim in orders if claim["kraft"] and claim["error"] == 0]
    if not kraft:
        return
    since = min(claim.first.ts_ns for claim in kraft)
    highest = max(claim["controller_epoch"] for claim in kraft)
    late = (claim for claim in orders if claim.last.ts_ns > since + context.settings.broker_grace_ns)
    old = (c for c in late if not c["kraft"] and c["error"] == 0 and c["controller_epoch"] <= highest)
    for (controller,), claims in gathered(old, "controller"):
        sides, words = (first_of(kraft[0]), *map(last_of, claims)), {"controller": controller, "since": clock(since)}
        yield resting_on(claims, controller, sides=sides, brokers=(controller,), words=words)
