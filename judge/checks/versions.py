"""VER: API versions that clients, brokers and servers use with each other.

Rule: the versions that a server accepts come from its own ApiVersions responses; without a captured one, it has
rejected nothing. A rolling upgrade may take an hour; only versions that no release can send are reported at once.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from operator import itemgetter
from typing import Any, NamedTuple

from wirecheck.client_ids import TO_BROKERS
from wirecheck.decode.api_names import BETWEEN_BROKERS, key_of, name_of
from wirecheck.decode.releases import (
    Ranges,
    accepts,
    beside_line,
    digest,
    estimate,
    is_4,
    is_narrowed,
    is_of_controller,
    is_unknown,
    lines_of,
    lowest_in_4,
    newest_line,
    newest_of,
    of_no_release,
    order_of,
    read,
    removed_in_4,
    spelled,
    upside_down,
)
from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.controllers import ORDERS
from wirecheck.judge.checks.shapes import (
    about,
    brokers_of,
    by_slot,
    clock,
    end_ns,
    ends,
    gathered,
    if_broker,
    members,
    resting_on,
    servers_of,
    start_ns,
)
from wirecheck.judge.checks.statements import own_endpoints
from wirecheck.judge.claims.claim import Claim, Sighting, Subject
from wirecheck.judge.ledger.connection_sums import summed
from wirecheck.judge.results.finding import Evidence, Side, first_of, last_of
from wirecheck.judge.thresholds import SECOND_NS
from wirecheck.judge.topology.clusters import Group
from wirecheck.wording import number_list

NEVER_REFUSED = "ApiVersions"
"""Answered in every version, with an error where it is too new (KIP-35): a close is a broker that died."""
DOES = {
    "closed_on": "closes the connection on",
    "closed_after": "closes the connection after",
    "version_error": "answers UNSUPPORTED_VERSION (35) to",
}
REPEATED = 2
"""Connections that a server closed on a client: one may have ended for any reason."""
CLOSED_AFTER = 3
"""... where no request was open."""
PRODUCE = "Produce"
REJECTED = 5
"""Versions rejected within an advertised range."""
ALIKE = 3
"""So many answers with the same ranges, and no other."""
SEVERAL = 2
"""Brokers that went back in one roll."""


def version_rejected(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    refused: dict[tuple[str, int], list[tuple[Claim, Claim]]] = {}
    by_error = refusals(context.claims("version_error", group, *subject), group, context)
    for claim, ranges in [*by_error, *closes(subject, group, context), *closes_after(subject, group, context)]:
        refused.setdefault((claim["api"], claim["version"]), []).append((claim, ranges))
    for (api, version), pairs in sorted(refused.items()):
        claims = sorted((claim for claim, _ in pairs), key=lambda claim: (claim.first, claim.key))
        low, high = read(pairs[0][1]["ranges"]).get(key_of(api), (-1, -1))
        text = f"advertises {api} {low} to {high}"
        yield resting_on(
            claims,
            *(*subject[1:], api, version),
            sides=ends(claims) + tuple(Side(r.first, f"{r['endpoint']} {text}") for _, r in pairs),
            client_ids=(claims[0]["client_id"],),
            brokers=brokers_of(claims, context),
            first_ns=claims[0].first.ts_ns,
            last_ns=max(claim.last.ts_ns for claim in claims),
            words={
                "server": servers_of(claims, context),
                "does": DOES[claims[0].kind],
                "host": subject[2],
                "api": api,
                "version": version,
                "software": software(subject, group, context),
                "range": shown(read(pairs[0][1]["ranges"]), key_of(api)),
            },
        )


def refusals(claims: Iterable[Claim], group: Group, context: CheckContext) -> Iterator[tuple[Claim, Claim]]:
    """Rejected requests in versions that their server had advertised it does not accept, each with the advertised
    ranges.
    """
    for claim in claims:
        context.watch()
        ranges = advertised(claim, group, context)
        known = ranges is not None and not unheard(claim, ranges, group, context)
        if ranges is not None and known and not took(claim, ranges, group, context):
            yield claim, ranges


def closes(subject: Subject, group: Group, context: CheckContext) -> list[tuple[Claim, Claim]]:
    """The requests on which a server closed the connection, if that happened often enough."""
    soon_ns = context.settings.refusal_s * SECOND_NS
    found = [
        (claim, ranges)
        for claim, ranges in refusals(context.claims("closed_on", group, *subject), group, context)
        if claim["api"] != NEVER_REFUSED and -claim.peak["soonest"] <= soon_ns
    ]
    closed = {seen.connection for claim, _ in found for seen in (claim.first, claim.last)}
    return found if len(closed) >= REPEATED else []


def closes_after(subject: Subject, group: Group, context: CheckContext) -> list[tuple[Claim, Claim]]:
    """The writes without a response (acks=0) after each of which a server closed the connection, if that happened on
    enough of them, and never otherwise. Only versions that a release removed are looked at.
    """
    soon_ns = context.settings.refusal_s * SECOND_NS
    open_ones = {(claim["endpoint"], claim["version"]) for claim in context.claims("closed_on", group, *subject)}
    wrote = [claim for claim in context.claims("request_version", group, *subject) if claim["api"] == PRODUCE]
    found: list[Claim] = []
    for endpoint in sorted({claim["endpoint"] for claim in wrote}):
        context.watch()
        ended = summed(context.claims("closed_after", group, "link", endpoint))
        mine = (one for one in ended if (one["client_id"] or "", one["host"]) == subject[1:])
        old = (one for one in mine if removed_in_4(key_of(PRODUCE), one["version"]))
        found += [one for one in old if (endpoint, one["version"]) not in open_ones]
    if any(one.peak["by_client"] or one.peak["latest"] > soon_ns for one in found):
        return []
    rejected = [*refusals(found, group, context)]
    return rejected if sum(claim.count for claim, _ in rejected) >= CLOSED_AFTER else []


def took(claim: Claim, ranges: Claim, group: Group, context: CheckContext) -> bool:
    """Whether the server of a claim accepts the version: it advertised it, in these ranges or in others at the same
    time, or it has answered it since it advertised these.
    """
    key, version, endpoint = key_of(claim["api"]), claim["version"], claim["endpoint"]
    beside = [c for c in context.claims("advertised", group, "server") if c["endpoint"] == endpoint]
    valid = [ranges, *(other for other in beside if ranges.first < other.last and other.first < claim.last)]
    answered = [c for c in context.claims("accepts", group, "server") if c["endpoint"] == endpoint]
    since = max((c.peak.get(f"{claim['api']}:{version}", 0) for c in answered), default=0)
    return since >= ranges.first.ts_ns or any(accepts(read(one["ranges"]), key, version) for one in valid)


def unheard(claim: Claim, ranges: Claim, group: Group, context: CheckContext) -> bool:
    """Whether the server may have advertised other ranges before the claim. That is possible if, since these ranges, an
    ApiVersions response or the beginning of a connection was not captured, or bytes are missing of a connection that
    began later. A connection that began, or was joined, earlier belongs to the same process.
    """
    link = ("link", claim["endpoint"])
    unseen = (c for c in context.claims("unanswered", group, *link) if c["outcome"] == "response_unseen")
    joined_ns = ((c, -c.peak.get("soonest", -c.last.ts_ns)) for c in context.claims("midway", group, *link))
    midway = (c for c, time_ns in joined_ns if time_ns > ranges.last.ts_ns)
    lost = [*midway, *(c for c in unseen if c["api"] == NEVER_REFUSED)]
    missing = context.claims("missing", group, *link)
    lost += [c for c in missing if c["started_ns"] is None or c["started_ns"] > ranges.last.ts_ns]
    return any(ranges.last.ts_ns < c.last.ts_ns and c.first.ts_ns <= claim.last.ts_ns for c in lost)


def shown(ranges: Ranges, key: int) -> str:
    """Every 4.x advertises versions of Produce below those that it accepts."""
    low, high = ranges.get(key, (-1, -1))
    if high < 0:
        return "no version of it"
    lowest = lowest_in_4().get(key, low) if is_4(ranges) else low
    return f"{lowest} to {high}" + (f" but advertises {low} to {high}" if lowest > low else "")


def advertised(claim: Claim, group: Group, context: CheckContext) -> Claim | None:
    """The ranges that the server of a claim had last advertised by then. Later ones do not count: the server may have
    been restarted with other software in between.
    """
    found = context.claims("advertised", group, "server")
    before = [c for c in found if c["endpoint"] == claim["endpoint"] and c.first.ts_ns <= claim.last.ts_ns]
    return before[-1] if before else None


def software(subject: Subject, group: Group, context: CheckContext) -> str:
    """The client's software in parentheses; empty if it never stated it."""
    claims = context.claims("software", group, *subject)
    return f" ({claims[-1]['name']} {claims[-1]['version']})" if claims else ""


def removed_in_kafka_4(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    if TO_BROKERS.fullmatch(subject[1]):
        return
    for (api,), claims in gathered(context.claims("request_version", group, *subject), "api"):
        words = {
            "api": api,
            "versions": ", ".join(f"v{version}" for version in sorted({claim["version"] for claim in claims})),
            "minimum": lowest_in_4().get(key_of(api), "nowhere"),
            "software": software(subject, group, context),
        }
        yield resting_on(claims, *subject[1:], api, client_ids=(claims[0]["client_id"],), words=words)


def rolling_upgrade_seen(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    for changes in together(changed(subject, group, context)):
        first = changes[0]
        old, new = (spelled(common(parts)) for parts in zip(*((c.old, c.new) for c in changes), strict=True))
        went = "was upgraded" if order_of(old) < order_of(new) else "went back"
        key, sides = (first.where, spelled(first.old), spelled(first.new)), (c.sides() for c in changes)
        words: dict[str, object] = {"who": server_in_words(first), "went": went, "before": old, "after": new}
        words["time"] = clock(first.after.first.ts_ns)
        found = tuple(chain.from_iterable(sides))
        about: dict[str, Any] = {"brokers": if_broker(first.where), "first_ns": first.after.first.ts_ns}
        yield Evidence(key, found, count=len(changes), words=words, **about)


def server_in_words(change: "Change") -> str:
    if isinstance(change.where, int):
        return f"Broker {change.where}"
    role = "Controller" if key_of(OF_CONTROLLERS) in read(change.after["ranges"]) else "Server"
    return f"{role} {change.where}"


@dataclass(frozen=True)
class Change:
    where: int | str
    before: Claim
    after: Claim

    @property
    def old(self) -> tuple[str, ...]:
        return lines_of(self.before["ranges"])

    @property
    def new(self) -> tuple[str, ...]:
        return lines_of(self.after["ranges"])

    def sides(self) -> tuple[Side, Side]:
        text = f"{self.after['endpoint']} advertises the versions of Kafka"
        return (
            Side(self.before.last, f"{text} {spelled(self.old)}"),
            Side(self.after.first, f"{text} {spelled(self.new)}"),
        )


def changed(subject: Subject, group: Group, context: CheckContext) -> list[Change]:
    """Every change from one release to another, in the order of time."""
    found = [
        Change(context.node(after), before, after)
        for (endpoint,), claims in gathered(context.claims("advertised", group, *subject), "endpoint")
        for before, after in pairwise(claims)
        if not in_turn(endpoint, context)
    ]
    to_another = (change for change in found if change.old and change.new and change.old != change.new)
    return sorted(to_another, key=lambda change: (change.after.first, change.after["endpoint"]))


def in_turn(endpoint: str, context: CheckContext, *between: Claim) -> bool:
    """Whether an address may lead to two clusters in turn: it led to two, and ranges of one were advertised on both
    sides of the change; or answers are missing between two ranges, which may have named another cluster (CLU001).
    """
    every = context.stated_by("advertised", endpoint)
    turns = [after.since_ns for _, _, after in context.clusters.handovers_of(endpoint)]
    if any(claim.first.ts_ns < turn <= claim.last.ts_ns for turn in turns for claim in every):
        return True
    if not between:
        return False
    context.watch()
    times = [between[0].last.ts_ns, between[1].first.ts_ns]
    missing = context.ledger.claims("missing", "link", endpoint)
    return any(claim.first.ts_ns <= max(times) and claim.last.ts_ns >= min(times) for claim in missing)


def together(changes: list[Change]) -> list[list[Change]]:
    """Changes of one node's listeners that may be one: they show different APIs, hence not the same lines."""
    found: list[list[Change]] = []
    for change in changes:
        for known in found:
            both = [*known, change]
            if known[0].where == change.where and common([c.old for c in both]) and common([c.new for c in both]):
                known.append(change)
                break
        else:
            found.append([change])
    return found


def common(lines: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(line for line in lines[0] if all(line in other for other in lines))


def advertised_range_anomaly(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    adverts = gathered(context.claims("advertised", group, *subject), "endpoint")
    several = any(len(claims) > 1 for _, claims in adverts)
    rejected = context.claims("unsupported", group, *subject)
    own = own_endpoints(group, context) if several or rejected else set()
    yield from rejected_within([claim for claim in rejected if claim["endpoint"] in own], group, context)
    yield from twice_in_one_answer(group, context)
    together = rolled_back([claim for _, claims in adverts for claim in claims], context) if several else set()
    for (endpoint,), claims in adverts:
        if endpoint in own:
            yield from alternating(endpoint, claims, context)
        yield from older_than_before(endpoint, claims, together, context)
        for claim in claims:
            if odd := oddity(claim["ranges"]):
                yield ranges_of(endpoint, [claim], odd.ranges, context, kind=odd.kind)


def older_than_before(
    endpoint: str, claims: Sequence[Claim], together: Collection[tuple[str, str]], context: CheckContext
) -> Iterator[Evidence]:
    """An endpoint that shows the versions of an older release than before, or those of two by turns. `together`: what
    all brokers were rolled back from and to.
    """
    for before, after in pairwise(claims):
        if before.first == after.first:
            continue  # of one answer
        old, new = estimate(before["ranges"]), estimate(after["ranges"])
        if old is None or new is None or old == new or in_turn(endpoint, context, before, after):
            continue
        if not context.surely_one(endpoint, before.last.ts_ns, after.first.ts_ns):
            continue  # the capture need not show that the address is another cluster's now, or was before
        to_and_fro = before.last.ts_ns > after.first.ts_ns + context.settings.broker_grace_ns
        if to_and_fro or order_of(new) < order_of(old):
            back = f", and later those of {old} again" if to_and_fro else ""
            ranges = f"the versions of Kafka {old}, then those of {new}{back}"
            kind = "information" if (old, new) in together and not to_and_fro else None
            yield ranges_of(endpoint, [before, after], ranges, context, since_ns=after.first.ts_ns, kind=kind)


class Oddity(NamedTuple):
    """What is odd about the ranges of one answer."""

    ranges: str
    kind: str


def oddity(advertised: str) -> Oddity | None:
    if ends := upside_down(advertised):
        ranges = in_ranges((key, read(advertised)[key]) for key in ends)
        return Oddity(f"ranges that end before they begin: {ranges}", "violation")
    if of_no_release(advertised):
        return Oddity("versions that no release of Kafka has", "information")
    if is_narrowed(advertised):
        beside = in_ranges(beside_line(advertised))
        return Oddity(f"the versions of Kafka {estimate(advertised)}, but {beside}", "information")
    return None


def twice_in_one_answer(group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Two ranges of one API or of one feature in one answer: whatever is at the address, it contradicts itself."""
    for (endpoint,), claims in sorted(context.by("endpoint", "advertised", group, "server").items()):
        if both := of_one_answer(claims):
            one, other = (read(claim["ranges"]) for claim in both[:2])
            changed = [key for key in sorted(one.keys() & other.keys()) if one[key] != other[key]]
            spans = sorted(in_ranges((key, ranges[key]) for key in changed) for ranges in (one, other))
            ranges = f"{' and '.join(spans)} in one answer"
            yield ranges_of(endpoint, both, ranges, context, kind="violation")
    supported = context.by("endpoint feature", "supported_feature", group, "server")
    for (endpoint, feature), claims in sorted(supported.items()):
        if both := of_one_answer(claims):
            spans = sorted(f"{claim['low']}-{claim['high']}" for claim in both)
            ranges = f"levels {' and '.join(spans)} of feature {feature} in one answer"
            yield ranges_of(endpoint, both, ranges, context, kind="violation", api=feature)


def of_one_answer(claims: list[Claim]) -> list[Claim]:
    """The claims of the earliest answer that made several of them."""
    by_answer: dict[Sighting, list[Claim]] = defaultdict(list)
    for claim in claims if len(claims) > 1 else ():
        by_answer[claim.first].append(claim)
    return min((one for one in by_answer.items() if len(one[1]) > 1), default=(None, []), key=itemgetter(0))[1]


def rolled_back(claims: list[Claim], context: CheckContext) -> set[tuple[str, str]]:
    """The releases from and to which all brokers went back in one roll, several of them before our eyes: a downgrade
    that was planned.
    """
    latest: dict[int, tuple[Sighting, str | None]] = {}
    steps: dict[tuple[str, str], dict[int, int]] = defaultdict(dict)
    for _, of_endpoint in gathered(claims, "endpoint"):
        for before, after in pairwise([None, *of_endpoint]):
            node = context.node(after) if after is not None else None
            if after is None or not isinstance(node, int) or is_of_controller(after["ranges"]):
                continue
            new, old = estimate(after["ranges"]), estimate(before["ranges"]) if before is not None else None
            latest[node] = max(latest.get(node, (after.last, new)), (after.last, new), key=lambda one: one[0])
            if old and new and order_of(new) < order_of(old):
                steps[old, new][node] = after.first.ts_ns
    window_ns = context.settings.roll_window_s * SECOND_NS
    return {
        (old, new)
        for (old, new), times in steps.items()
        if len(times) >= SEVERAL and max(times.values()) - min(times.values()) <= window_ns
        if all(release == new for _, release in latest.values())
    }


def rejected_within(claims: list[Claim], group: Group, context: CheckContext) -> Iterator[Evidence]:
    """UNSUPPORTED_VERSION (35) in answers to versions that the server itself advertises, again and again."""
    for (endpoint, api, version), found in gathered(claims, "endpoint api version"):
        valid = [
            (claim, ranges)
            for claim in found
            if (ranges := advertised(claim, group, context)) is not None
            and not unheard(claim, ranges, group, context)
            and accepts(read(ranges["ranges"]), key_of(api), version)
        ]
        count = sum(claim.count for claim, _ in valid)
        since_ns = min((claim.first.ts_ns for claim, _ in valid), default=0)
        lasts_ns = max((claim.last.ts_ns for claim, _ in valid), default=0) - since_ns
        if count < REJECTED or lasts_ns < context.settings.broker_grace_ns:
            continue
        if granted_since(since_ns, endpoint, f"{api}:{version}", group, context):
            continue  # then it is no matter of the version
        if api == COMMIT and version < OF_NEXT_MEMBERS and has_next_members(group, context):
            continue  # it may be their group's
        span = in_ranges([(key_of(api), read(valid[-1][1]["ranges"])[key_of(api)])])
        text = f"{span}, and answered UNSUPPORTED_VERSION (35) to v{version}, {count} times"
        about: dict[str, Any] = {"kind": "violation", "since_ns": since_ns, "api": api}
        yield ranges_of(endpoint, [claim for claim, _ in valid], text, context, **about)


COMMIT, OF_NEXT_MEMBERS = "OffsetCommit", 9
"""The first version in which members of the newer protocols may commit: a coordinator rejects those below, of whatever
client, as a matter of the group (KIP-848, ConsumerGroup.validateOffsetCommit).
"""
NEXT_MEMBERS = ("ConsumerGroupHeartbeat:", "StreamsGroupHeartbeat:")


def has_next_members(group: Group, context: CheckContext) -> bool:
    """Whether a server of the cluster grants heartbeats of the newer protocols."""
    return any(
        word.startswith(NEXT_MEMBERS) for claim in context.claims("accepts", group, "server") for word in claim.peak
    )


def granted_since(since_ns: int, endpoint: str, word: str, group: Group, context: CheckContext) -> bool:
    """Whether a server answered a version of an API without UNSUPPORTED_VERSION since then."""
    accepts = context.claims("accepts", group, "server")
    return any(claim["endpoint"] == endpoint and claim.peak.get(word, 0) >= since_ns for claim in accepts)


def alternating(endpoint: str, claims: list[Claim], context: CheckContext) -> Iterator[Evidence]:
    """Ranges of one release that change to and fro. What an active controller handles depends on it, too."""
    for before, after in pairwise(claims):
        lasts = before.last.ts_ns > after.first.ts_ns + context.settings.broker_grace_ns
        if not lasts or estimate(before["ranges"]) != estimate(after["ranges"]):
            continue
        one, other = read(before["ranges"]), read(after["ranges"])
        changed = [key for key in sorted(OF_BROKERS_ALONE & one.keys() & other.keys()) if one[key] != other[key]]
        if changed and not in_turn(endpoint, context, before, after):
            spans = (in_ranges((key, ranges[key]) for key in changed) for ranges in (one, other))
            ranges = "{}, then {}, and later the former again".format(*spans)
            yield ranges_of(endpoint, [before, after], ranges, context, since_ns=after.first.ts_ns)


def in_ranges(ranges: Iterable[tuple[int, tuple[int, int]]]) -> str:
    """The first SHOWN, as Fetch 4-11."""
    every = [f"{name_of(key)} {low}-{high}" for key, (low, high) in ranges]
    return ", ".join(every[:SHOWN]) + (", ..." if len(every) > SHOWN else "")


def release_unknown(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Servers that advertise more than any known release, however many ranges they advertise. Ranges between those of
    releases are VER007's.
    """
    newer = [claim for claim in unknown_servers(subject, group, context) if not of_no_release(claim["ranges"])]
    if newer:
        words = {"servers": servers_of(newer, context), "versions": above_releases(newer), "newest": newest_line()}
        yield resting_on(newer, brokers=brokers_of(newer, context), words=words)


def above_releases(claims: Iterable[Claim]) -> str:
    """The APIs and versions above those of every release, of which the first SHOWN."""
    highest: dict[int, int] = {}
    for ranges in {claim["ranges"] for claim in claims}:
        for key, (_, high) in read(ranges).items():
            highest[key] = max(high, highest.get(key, high))
    higher = [(key, high) for key, high in sorted(highest.items()) if high > newest_of(key)]
    shown = [f"{name_of(key)} v{version}" for key, version in higher[:SHOWN]]
    return ", ".join(shown) + (", ..." if len(higher) > SHOWN else "")


def ranges_of(
    endpoint: str,
    claims: list[Claim],
    ranges: str,
    context: CheckContext,
    *,
    since_ns: int | None = None,
    kind: str | None = None,
    api: str | None = None,
) -> Evidence:
    where = context.node(claims[-1])
    return resting_on(
        claims,
        where,
        *(endpoint if api is None else f"{endpoint} {api}",),
        brokers=if_broker(where),
        first_ns=since_ns,
        kind=kind,
        words={"node": servers_of(claims, context), "ranges": ranges} | ({} if api is None else {"api": api}),
    )


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
NEVER_REPLICATED = frozenset({6, 9})
"""Fetch versions that consumers send, and that no inter-broker protocol has (PROTOCOL 4.10)."""
OF_BROKERS_ALONE = frozenset(
    map(key_of, ("Produce", "Fetch", "ListOffsets", "Metadata", "OffsetCommit", "OffsetFetch"))
)
"""APIs of clients in which a broker's ranges do not depend on its controller (KIP-590)."""
ONLY_NODES = BETWEEN_BROKERS - {key_of("WriteTxnMarkers")}
"""APIs that no client sends; administrators abort transactions by WriteTxnMarkers."""
OF_FOLLOWERS = frozenset({"Fetch", "ListOffsets", "OffsetForLeaderEpoch"})
"""APIs of consumers that followers use too."""
WITH_IDS = 13
"""The first Fetch version that carries topic ids."""
LASTING_SLOTS = 4
"""So many slots of 10 s by name are no passing thing."""
SHOWN = 3
"""So many topics a summary names."""
OF_CONTROLLERS = "BrokerRegistration"
"""An API that controllers serve, and brokers do not."""


def version_outside_advertised_range(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    found: dict[tuple[str | None, str, str, int], list[tuple[Claim, Claim]]] = defaultdict(list)
    for claim, ranges, api, number in outside(subject, group, context):
        if not only_pretends(claim, api, group, context):
            found[claim["client_id"], claim["host"], api, number].append((claim, ranges))
    for (client_id, host, api, number), both in sorted(found.items(), key=str):
        claims = [claim for claim, _ in both]
        yield resting_on(
            claims,
            *(client_id or "", host, api, number),
            sides=(*map(last_of, claims), *(advert(ranges, api) for _, ranges in both)),
            client_ids=(client_id,),
            brokers=brokers_of(claims, context),
            count=sum(claim.tally[f"{api}:{number}"] for claim in claims),
            first_ns=min(claim.first.ts_ns for claim in claims),
            words={"api": api, "version": number, "server": servers_of(claims, context)},
        )


Outside = tuple[Claim, Claim, str, int]
"""Requests outside of ranges, the advertised ranges, and the API and version."""


def words_of(claim: Claim) -> Iterator[tuple[str, int]]:
    """API and version of each word that a claim counts."""
    for word in claim.tally:
        api, _, version = word.rpartition(":")
        yield api, int(version)


def outside(subject: Subject, group: Group, context: CheckContext) -> list[Outside]:
    return [*outside_own(subject, group, context), *outside_of_others(subject, group, context)]


def outside_own(subject: Subject, group: Group, context: CheckContext) -> Iterator[Outside]:
    """Requests outside of what was advertised on their own connection."""
    asked = summed(context.claims("outside", group, *subject))
    ranges = advertisements(group, context) if asked else {}
    for claim in asked:
        for api, version in words_of(claim) if claim["digest"] in ranges else ():
            yield claim, ranges[claim["digest"]], api, version


def outside_of_others(subject: Subject, group: Group, context: CheckContext) -> Iterator[Outside]:
    """Requests on connections without an ApiVersions response, outside of everything that the server advertised on any
    connection. A process keeps its ranges: those count that were advertised while the connection was open, or before
    and after the requests. Servers of no known release are not judged by what they advertise elsewhere. A client's
    requests count at a broker's own address, where no balancer is in between.
    """
    asked = summed(context.claims("outside_of_others", group, *subject))
    if not asked:
        return
    context.watch()
    every = [claim for claim in context.claims("advertised", group, "server") if claim["endpoint"] == subject[1]]
    if in_turn(subject[1], context) or any(is_unknown(claim["ranges"]) for claim in every):
        return
    own = subject[1] in own_endpoints(group, context)
    to_all = is_broker_to_all(subject[1], every, group, context)
    until_ns = held_until(subject, group, context)
    for claim in asked:
        began_ns = -claim.peak["began"]
        valid = [
            one for one in every
            if one.first.ts_ns <= claim.last.ts_ns
            and max(one.last.ts_ns, until_ns.get(digest(one["ranges"]), 0)) >= began_ns
        ]  # fmt: skip
        for api, version in words_of(claim) if valid else ():
            known = any(accepts(read(one["ranges"]), key_of(api), version) for one in every)
            direct = own or (to_all and version > highest(every, api))
            if not known and (between_brokers(claim, api, group) or (direct and was_granted(claim, group, context))):
                yield claim, valid[-1], api, version


def held_until(subject: Subject, group: Group, context: CheckContext) -> dict[str, int]:
    """Until when a server surely was a process that advertised ranges, by their digest."""
    until_ns: dict[str, int] = {}
    for claim in context.claims("ranges_hold", group, *subject):
        until_ns[claim["digest"]] = max(claim.peak["until"], until_ns.get(claim["digest"], 0))
    return until_ns


def highest(claims: list[Claim], api: str) -> int:
    """The highest advertised version of an API; a client that does not ask sends what it has, which may be older."""
    return max(read(claim["ranges"]).get(key_of(api), (0, -1))[1] for claim in claims)


def is_broker_to_all(endpoint: str, every: list[Claim], group: Group, context: CheckContext) -> bool:
    """Whether brokers list the address as one broker's, and it gave the same ranges to client after client: a balancer
    has an address that no list has.
    """
    if len(every) != 1 or every[0].count < ALIKE:
        return False
    listed = {claim["broker"] for claim in context.claims("address", group, "server") if claim["address"] == endpoint}
    return len(listed) == 1


def was_granted(claim: Claim, group: Group, context: CheckContext) -> bool:
    """Whether a server granted the client anything: any host can send a version."""
    mine = context.claims("client", group, "client", claim["client_id"] or "", claim["host"])
    return any(one.peak.get("answered") for one in mine)


def only_pretends(claim: Claim, api: str, group: Group, context: CheckContext) -> bool:
    """Whether a host sends what only brokers and controllers send, and is not known as one of them (CLU007)."""
    return key_of(api) in ONLY_NODES and not is_node(claim, group, context)


def is_node(claim: Claim, group: Group, context: CheckContext) -> bool:
    """Whether the sender is on a host of the cluster's brokers and controllers, or servers granted it what only those
    ask for. To be granted what any client asks for proves nothing.
    """
    context.watch()
    host = claim["host"]
    mine = context.claims("client", group, "client", claim["client_id"] or "", host)
    if host in context.senders(group) or any(one.peak.get("as_node") for one in mine):
        return True
    accepted = (context.by("error host", kind, group, "server") for kind in ("registration", "broker_epoch"))
    fetches = context.by("host", "fetch_versions", group, "server").get((host,), [])
    return any((0, host) in found for found in accepted) or any(one.peak.get("granted") == 1 for one in fetches)


def between_brokers(claim: Claim, api: str, group: Group) -> bool:
    """Whether only brokers and controllers send the request, or a follower does. It goes to its server directly, while
    a client's may lead through a balancer, to a server whose ranges are not in the capture.
    """
    follower = TO_BROKERS.fullmatch(claim["client_id"] or "") and claim["host"] in group.hosts
    return key_of(api) in BETWEEN_BROKERS or (api in OF_FOLLOWERS and bool(follower))


def advertisements(group: Group, context: CheckContext) -> dict[str, Claim]:
    context.watch()
    return {digest(claim["ranges"]): claim for claim in context.claims("advertised", group, "server")}


def advert(claim: Claim, api: str) -> Side:
    low, high = read(claim["ranges"]).get(key_of(api), (-1, -1))
    what = f"{api} {low} to {high}" if high >= 0 else f"no {api}"
    return Side(claim.first, f"{claim['endpoint']} advertises {what}")


def mixed_inter_broker_versions(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    if unknown_servers(subject, group, context):
        return  # the levels are those of Kafka's releases
    followers = own_fetches(subject, group, context)
    yield from of_no_level(followers)
    sent: list[Sent] = []
    orders = context.claims("control", group, *subject)
    for (controller, epoch), claims in gathered(orders, "controller controller_epoch"):
        by_api = order_versions(claims)
        by_api["Fetch"] = fetched(controller, claims, followers, context.settings.clocks_s * SECOND_NS)
        sent.append((controller, epoch, by_api, claims))
        if not any(fits(level, by_api) for level in LEVELS) and not of_two_zookeepers(claims):
            what = f"Controller {controller} sends {in_words(by_api)} in epoch {epoch}, which no release sends together"
            since = {"first_ns": since_unfit(claims)}
            yield resting_on(claims, (controller,), brokers=(controller,), words={"what": what}, **since)
    yield from two_levels(sent, context)
    yield from half_rolled(followers, context)


def unknown_servers(subject: Subject, group: Group, context: CheckContext) -> list[Claim]:
    """What servers of no known release advertise: forks, and releases that are newer than the newest known one."""
    return [claim for claim in context.claims("advertised", group, *subject) if is_unknown(claim["ranges"])]


def of_no_level(followers: list[Claim]) -> Iterator[Evidence]:
    """Followers that fetch in a version in which no release replicates."""
    for (broker,), claims in gathered(followers, "broker"):
        slots = [(slot, v) for claim in claims for slot, v in versions_by_slot(claim) if v in NEVER_REPLICATED]
        if slots:
            versions = in_words({"Fetch": {version for _, version in slots}})
            what = f"Broker {broker} replicates with {versions}, which no release does"
            since = {"count": len(slots), "first_ns": start_ns(min(slots)[0])}
            yield resting_on(claims, (broker,), brokers=(broker,), words={"what": what}, **since)


def versions_by_slot(claim: Claim) -> Iterator[tuple[int, int]]:
    for slot, versions in by_slot(claim.tally).items():
        for version in versions:
            yield slot, version


def order_versions(claims: list[Claim]) -> dict[str, set[int]]:
    return {api: {claim["version"] for claim in claims if claim["api"] == api} for api in ORDERS} | {"Fetch": set()}


def since_unfit(claims: list[Claim]) -> int:
    """The time of the first request that no level has together with those before it; of the last one if all fit and
    only the controller's own fetches do not.
    """
    ordered = sorted(claims, key=lambda claim: claim.first)
    for number, claim in enumerate(ordered, 1):
        if not any(fits(level, order_versions(ordered[:number])) for level in LEVELS):
            return claim.first.ts_ns
    return ordered[-1].first.ts_ns


def of_two_zookeepers(claims: list[Claim]) -> bool:
    """Whether an API changes its version at some time, and the versions before and after it are each of one level. A
    process keeps its versions, and a restarted one has another epoch: two ZooKeepers gave out this epoch.
    """
    ordered = sorted(claims, key=lambda claim: claim.first)
    for number in range(1, len(ordered)):
        early, late = ordered[:number], ordered[number:]
        if max(claim.last for claim in early) >= late[0].first:
            continue
        before, after = order_versions(early), order_versions(late)
        differ = any(before[api] and after[api] and before[api].isdisjoint(after[api]) for api in ORDERS)
        if differ and all(any(fits(level, part) for level in LEVELS) for part in (before, after)):
            return True
    return False


def own_fetches(subject: Subject, group: Group, context: CheckContext) -> list[Claim]:
    """Fetches with a replica ID from the hosts of that broker: one was granted there, or brokers name the host."""
    claims = context.claims("fetch_versions", group, *subject)
    proven = {(claim["broker"], claim["host"]) for claim in claims if claim.peak.get("granted") == 1}
    return [
        claim
        for claim in claims
        if (claim["broker"], claim["host"]) in proven or context.named_at(claim["broker"], claim["host"], group)
    ]


def fetched(controller: int, claims: list[Claim], followers: list[Claim], apart_ns: int) -> set[int]:
    """The versions in which a controller follows while it is one, by clocks that may be so far apart."""
    first = min(claim.first.ts_ns for claim in claims) + apart_ns
    last = max(claim.last.ts_ns for claim in claims) - apart_ns
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
            compared = [claim for other in (broker, *ahead) for claim in newest[other][3]]
            both = tuple(sorted({broker, *ahead}))
            newer = f"controller{'s' if len(ahead) > 1 else ''} {', '.join(number_list(ahead))}"
            what = f"Controller {broker} still uses an older inter-broker protocol than {newer}"
            since_ns = min(claim.first.ts_ns for other in ahead for claim in newest[other][3])
            about: dict[str, Any] = {"brokers": both, "count": len(compared), "first_ns": since_ns}
            yield resting_on(compared, both, words={"what": what}, **about)


def fits(level: Level, by_api: dict[str, set[int]]) -> bool:
    leader_and_isr, update_metadata, stop_replica, fetch = level
    return (
        by_api["LeaderAndIsr"] <= {leader_and_isr}
        and by_api["UpdateMetadata"] <= set(update_metadata)
        and by_api["StopReplica"] <= {stop_replica}
        and by_api["Fetch"] <= set(fetch)
    )


def in_words(by_api: dict[str, set[int]]) -> str:
    return ", ".join(f"{api} v{'/v'.join(map(str, sorted(v)))}" for api, v in sorted(by_api.items()) if v)


def half_rolled(claims: list[Claim], context: CheckContext) -> Iterator[Evidence]:
    """Followers that fetch in versions of different levels at the same time, for longer than the roll window."""
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
            both = tuple(sorted({*behind, *new}))
            sides = tuple(last_of(claim) for claim in claims if claim["broker"] in both)
            numbers = ", ".join(map(str, both))
            what = f"Brokers {numbers} have replicated with Fetch v{low} and v{high} since {about(start_ns(since))}"
            yield Evidence((both,), sides, brokers=both, first_ns=start_ns(since), words={"what": what})


def follower_fetches_without_topic_ids(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    spans: dict[int, dict[bool, list[int]]] = defaultdict(lambda: defaultdict(list))
    claims = own_fetches(subject, group, context)
    for claim in claims:
        for slot, versions in by_slot(claim.tally).items():
            for version in versions:
                spans[claim["broker"]][version >= WITH_IDS].append(slot)
    for broker, by_kind in sorted(spans.items()):
        if not by_kind[False] or not (by_kind[True] or by_ids_only(group, context)):
            continue
        since_slot = min(by_kind[True], default=min(by_kind[False]))
        after = end_ns(since_slot) + context.settings.broker_grace_ns
        late = sorted({slot for slot in by_kind[False] if start_ns(slot) > after})
        if len(late) < LASTING_SLOTS:
            continue
        since = start_ns(late[0])
        bare = idless_since(since, group, context)
        beside = not by_kind[True] or max(by_kind[True]) > late[LASTING_SLOTS - 1]
        carries = context.claims("carries", group, "server") if bare else ()  # topics had IDs since then
        if beside or any(claim.last.ts_ns >= since for claim in carries):
            mine = [claim for claim in claims if claim["broker"] == broker]
            topics = ", ".join(name for name, _ in bare[:SHOWN])
            sides = ends(mine) + tuple(Side(seen, f"{name} has no ID") for name, seen in bare[:SHOWN])
            columns = {"topic": bare[0][0] if len(bare) == 1 else None, "count": len(late), "first_ns": since}
            words = {"broker": broker, "since": about(since), "topics": topics or "some topic"}
            words["again"] = " again" if by_kind[True] else ""
            yield resting_on(mine, broker, sides=sides, brokers=(broker,), **columns, words=words)


def by_ids_only(group: Group, context: CheckContext) -> bool:
    """Whether all brokers are of Kafka 4: no level of it replicates by name."""
    ranges = {claim["ranges"] for claim in context.claims("advertised", group, "server")}
    return bool(ranges) and all(lines_of(text) and is_4(read(text)) for text in ranges)


def idless_since(since_ns: int, group: Group, context: CheckContext) -> list[tuple[str, Sighting]]:
    """Topics that a message named without an ID after some time."""
    found: dict[str, Sighting] = {}
    for claim in context.claims("idless", group, "server"):
        for _, seen, (name,) in members(claim, parts=1):
            if seen.ts_ns >= since_ns:
                found[name] = max(seen, found.get(name, seen))
    return sorted(found.items())


def legacy_control_request_after_kraft(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    accepted = [claim for claim in context.claims("control", group, *subject) if claim["error"] == 0]
    kraft = [claim for claim in accepted if claim["kraft"]]
    late: list[tuple[Claim, Claim]] = []
    for claim in accepted:
        # after a rollback, ZooKeeper's controller has a higher epoch; KRaft may take over again, in one that is higher
        over = next((one for one in kraft if one["controller_epoch"] >= claim["controller_epoch"]), None)
        if not claim["kraft"] and over and claim.last.ts_ns > over.first.ts_ns + context.settings.broker_grace_ns:
            late.append((claim, over))
    for (controller,), claims in gathered((claim for claim, _ in late), "controller"):
        over = min((one for claim, one in late if claim["controller"] == controller), key=lambda one: one.first)
        sides, words = (first_of(over), *map(last_of, claims)), {"controller": controller}
        words["since"] = clock(over.first.ts_ns)
        about: dict[str, Any] = {"brokers": (controller,), "words": words}
        about["first_ns"] = min(max(one.first.ts_ns, claim.first.ts_ns) for claim, one in late if claim in claims)
        yield resting_on(claims, controller, sides=sides, **about)
