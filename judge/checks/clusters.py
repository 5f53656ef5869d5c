"""CLU: which cluster a node or an endpoint belongs to, and hosts that belong to no cluster.

Rule: two cluster IDs at the same time contradict each other; one after the other means that the address was reassigned.
There is one finding per unauthenticated host, however many requests it sent.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice

from wirecheck.decode.forwarding import Forwarder
from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.shapes import clock, counted, ends, gathered, resting_on, servers_of
from wirecheck.judge.checks.versions import is_node, only_pretends, outside
from wirecheck.judge.claims.claim import LEAST, Claim, Subject
from wirecheck.judge.claims.extract.peers import IDS
from wirecheck.judge.claims.kinds import KINDS
from wirecheck.judge.results.finding import Evidence, Side, first_of
from wirecheck.judge.thresholds import SECOND_NS
from wirecheck.judge.topology.clusters import Group, Place
from wirecheck.judge.topology.endpoint_history import host_of
from wirecheck.judge.topology.forwarding import senders
from wirecheck.judge.topology.membership import carried
from wirecheck.judge.topology.unauthenticated_hosts import UNREAD, UnauthorizedUse

PRODUCE, GREETING = "Produce", "ApiVersions"
HARMLESS = {UNREAD}
"""What health checks and port scanners do all day."""
UNLESS = " (or a renaming proxy)"
SHOWN = 3
"""So many APIs and endpoints are named per kind of behaviour."""
OTHERWISE = {
    "partition": "other leaders in epochs of this cluster",
    "address": "addresses that no broker of this cluster names",
    "broker_epoch": "heartbeats that it accepts as a controller",
    "registration": "registrations that it accepts as a controller",
}
"""What an unlisted server states, by the kind of claim."""
MOST_CLIENT_IDS = 16
MOST_WAYS = 64
"""Of a forwarder: where it receives, from which host it sends on, and to which server."""
MOST_PAIRS = 16
"""Of the cluster IDs that an address states in turn, each is held against so many others."""


def cluster_id_mismatch(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    for (client_id, sent), claims in gathered(
        context.claims("cluster_refused", group, *subject),
        lambda claim: (claim["client_id"], claim["cluster_id"] or "unknown"),  # its bytes may not be kept
    ):
        if sent == group.cluster_id:  # a server rejected its own cluster's ID: nothing contradicts
            continue
        ids = tuple(sorted({sent, group.cluster_id or "unknown"}))
        words = {"who": client_id, "does": "sends cluster ID", "sent": sent, "but": "but the cluster is"}
        words["actual"] = group.cluster_id or "another"
        pretended = all(was_served_as_client(claim, group, context) for claim in claims)
        kind = "anomaly" if pretended else None  # no node: it may send what it likes
        yield resting_on(claims, ids, client_id, client_ids=(client_id,), words=words, kind=kind)
    yield from two_stated(subject, group, context)


def was_served_as_client(claim: Claim, group: Group, context: CheckContext) -> bool:
    """Whether a server granted the sender something, and nothing that only brokers and controllers ask for. A node of
    another cluster is granted nothing.
    """
    context.watch()
    mine = context.claims("client", group, "client", claim["client_id"] or "", claim["host"])
    return any(one.peak.get("answered") for one in mine) and not is_node(claim, group, context)


def two_stated(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    if subject != ("server",):
        return
    for endpoint in sorted(context.clusters.in_turn.intersection(group.endpoints)):
        claims = [claim for claim in context.stated_by("cluster_id", endpoint) if claim["how"] != "accepted"]
        own = [at for at, claim in enumerate(claims) if claim["cluster_id"] == group.cluster_id]
        for one, other in sorted((one, at) for at in own for one in others_before(claims, at)):
            found = in_turn_with(claims[one], claims[other])
            ids = (claims[one]["cluster_id"], claims[other]["cluster_id"])
            yield by_client(found) if clients_apart(*(asked(cluster_id, claims) for cluster_id in ids)) else found


def asked(cluster_id: str, claims: list[Claim]) -> set[str]:
    """The least of the clients that an endpoint gave a ClusterId."""
    return {name for one in claims if one["cluster_id"] == cluster_id for name in one.peak if name.startswith(LEAST)}


def clients_apart(one: set[str], other: set[str]) -> bool:
    """Whether no client is known to be given both: a gateway serves each client's own cluster at one address."""
    return bool(one) and bool(other) and one.isdisjoint(other)


def by_client(found: Evidence) -> Evidence:
    words = {**found.words, "does": "leads clients to cluster", "but": "and other clients to", "in_turn": ""}
    return replace(found, kind="information", words=words)


def others_before(claims: list[Claim], at: int) -> Iterable[int]:
    """The first statements of other cluster IDs that began before one and were made again after it."""
    cluster_id, since_ns = claims[at]["cluster_id"], claims[at].first.ts_ns
    others = (n for n in range(at) if claims[n]["cluster_id"] != cluster_id and claims[n].last.ts_ns > since_ns)
    return islice(others, MOST_PAIRS)


def in_turn_with(one: Claim, other: Claim) -> Evidence:
    ids, endpoint = (one["cluster_id"], other["cluster_id"]), one["endpoint"]
    words = {"who": endpoint, "does": "leads to cluster", "sent": ids[0], "but": "and in turn to"}
    words |= {"actual": ids[1], "in_turn": endpoint}
    sides = (*ends([one]), first_of(other))
    return resting_on([one, other], tuple(sorted(ids)), endpoint, sides=sides, words=words)


def address_changed_cluster(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    if subject != ("server",):
        return
    switched: dict[str, list[tuple[Place, Place]]] = defaultdict(list)
    for endpoint, before, after in context.clusters.handovers_to.get(id(group), ()):
        switched[endpoint].append((before, after))
    for endpoint, found in switched.items():
        before, after = found[-1]
        mine = context.stated_by("cluster_id", endpoint)
        old = [side for side in stating(mine, before) if side.sighting.ts_ns < after.since_ns]
        new = [side for side in stating(mine, after) if side.sighting.ts_ns >= after.since_ns]
        carries = context.stated_by("carries", endpoint)
        ids = {topic_id for _, topic_id, since_ns in carried(carries) if since_ns < after.since_ns}
        if old and new:
            words: dict[str, object] = {"former": before.group.cluster_id, "latter": after.group.cluster_id}
            words["address"] = endpoint
            if all_moved(before.group, after.group, context):
                words["addresses"] = f"{len(before.group.endpoints)} addresses"
            words |= {"since": clock(after.since_ns), "until": clock(old[-1].sighting.ts_ns)}
            sides, first_ns = (old[-1], new[0]), found[0][1].since_ns
            ids_then = tuple(sorted(ids))
            yield Evidence((endpoint,), sides, topic_ids=ids_then, count=len(found), first_ns=first_ns, words=words)


def all_moved(former: Group, latter: Group, context: CheckContext) -> bool:
    """Whether every address of a cluster leads to one other cluster now: it was formatted again or replaced."""
    places = context.clusters.places
    gone = context.clusters.is_former(former) and len(former.endpoints) > 1
    return gone and all(places[endpoint][-1].group is latter for endpoint in former.endpoints)


def stating(claims: list[Claim], place: Place) -> list[Side]:
    """First and last statements of a place's cluster ID, in the order of time."""
    mine = (claim for claim in claims if claim["cluster_id"] == place.group.cluster_id)
    return sorted(ends(mine), key=lambda side: side.sighting)


def two_clusters_share_an_id(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    shown: set[str] = set()
    behind = served_by(context) if context.clusters.twins else {}
    for twin in context.clusters.twins:
        if context.clusters.listener(twin.one) in behind.get(context.clusters.listener(twin.other), ()):
            continue  # what is in between changes names
        first, second = twin.shown_by
        if agrees_behind(first, second, context) or agrees_behind(second, first, context):
            continue
        one, other = (
            context.clusters.of(end, claim.first.ts_ns) for end, claim in zip(twin[:2], twin.shown_by, strict=True)
        )
        smaller, larger = sorted((one, other), key=lambda each: each.key)
        if smaller is not group or subject != ("server",) or larger.key in shown:  # one finding for two clusters
            continue
        shown.add(larger.key)
        words = {"one": twin.one, "other": twin.other, "what": twin.what, "unless": UNLESS * twin.perhaps_proxy}
        since_ns = max(first.first.ts_ns, second.first.ts_ns)
        sides = (first_of(first), first_of(second))
        kind = "information" if twin.of_one_proxy else None
        yield Evidence((twin.one, twin.other), sides, first_ns=since_ns, words=words, kind=kind)


def agrees_behind(front: Claim, other: Claim, context: CheckContext) -> bool:
    """Whether one of the two is a proxy, and what it forwards to gives a topic the same ID as the other: a proxy that
    keeps an old ID is no cluster of its own.
    """
    listener = context.clusters.listener
    mine = [one for one in context.forwarding.forwarders if listener(one.endpoint) == listener(front["endpoint"])]
    ends = {end for one in mine for _, end in one.reached}
    if not ends or other.kind != "binding":
        return False
    every = context.believed(("name", other["name"]), "binding")
    return any(one["endpoint"] in ends and one["topic_id"] == other["topic_id"] for one in every)


def proxy_in_between(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    if subject != ("server",):
        return
    known = both_legs(context)
    for pair in context.clusters.renamings:
        first, second = pair.shown_by
        if (
            listeners_of(pair.one, pair.other, context) in known
            or context.clusters.of(pair.one, first.first.ts_ns) is not group
        ):
            continue
        words = {"who": f"{pair.one} and {pair.other}"}
        words["what"] = f"{pair.what}: one of them is a proxy that renames topics"
        since_ns = max(first.first.ts_ns, second.first.ts_ns)
        yield Evidence((pair.one, pair.other), (first_of(first), first_of(second)), first_ns=since_ns, words=words)
    of_host: dict[str, list[Forwarder]] = defaultdict(list)
    for one in context.forwarding.forwarders:
        if context.clusters.of(one.endpoint, context.forwarding.received[one.endpoint].first.ts_ns) is group:
            of_host[host_of(one.endpoint)].append(one)
    at_work = {*context.forwarding.through.values()}
    for host, found in sorted(of_host.items()):
        if any(one.endpoint in at_work for one in found):
            yield forwards(host, found, context)


def in_series(parts: Iterable[str]) -> str:
    """`1, 2 and 3`."""
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last


def both_legs(context: CheckContext) -> set[frozenset[str]]:
    """The pairs of listeners between which something forwards."""
    return {pair for one in context.forwarding.forwarders for pair in listeners(one, context)}


def served_by(context: CheckContext) -> dict[str, set[str]]:
    """Per listener those that serve the same cluster by forwarding: the one behind it, and all in front of that. What
    knows the IDs of another listener by other names forwards too.
    """
    found: dict[str, set[str]] = {}
    for pair in both_legs(context) | {listeners_of(two.one, two.other, context) for two in context.clusters.renamings}:
        served = set(pair).union(*(found.get(listener, ()) for listener in pair))
        found.update(dict.fromkeys(served, served))
    return found


def listeners(one: Forwarder, context: CheckContext) -> Iterator[frozenset[str]]:
    """The pairs of listeners on both sides of a forwarder."""
    for _, target in one.reached:
        yield listeners_of(one.endpoint, target, context)


def listeners_of(one: str, other: str, context: CheckContext) -> frozenset[str]:
    return frozenset(map(context.clusters.listener, (one, other)))


def forwards(host: str, found: list[Forwarder], context: CheckContext) -> Evidence:
    """What a host forwards, at one or several of its ports."""
    received = [context.forwarding.received[one.endpoint] for one in found]
    ends = {one.endpoint for one in found}
    sent = [leg for leg, end in context.forwarding.through.items() if end in ends]
    client_ids = {leg.client_id for leg in sent}
    sent_on = [context.forwarding.sent[leg] for leg in sent]
    first, second = (min(claims, key=lambda claim: claim.first) for claims in (received, sent_on))
    targets = sorted({leg.server for leg in sent})
    at = {target: context.clusters.broker(target, second.first.ts_ns) for target in targets}
    numbers = sorted({number for number in at.values() if number is not None})
    several = "brokers" if len(numbers) > 1 else "broker"
    to = [f"{several} {in_series(map(str, numbers))}"] if numbers else []
    to += [target for target, number in at.items() if number is None]
    does = "forwards" if len(found) == 1 else "forward"
    words = {"who": in_series(one.endpoint for one in found)}
    words["what"] = f"{does} the requests of {counted(len(client_ids), 'client')} to {in_series(to)}"
    if others := sorted({leg.host for leg in sent} - {host}):
        clients = {sender for claim in received for sender in senders(claim)}
        words["what"] += (
            "; clients keep their addresses" if clients.issuperset(others) else f" from {in_series(others)}"
        )
    renamed = {listeners_of(two.one, two.other, context) for two in context.clusters.renamings}
    if any(pair in renamed for one in found for pair in listeners(one, context)):
        words["what"] += "; it renames topics" if len(found) == 1 else "; they rename topics"
    ways = sorted({f"{one.endpoint}>{sender}>{target}" for one in found for sender, target in one.reached})
    words["ways"] = " ".join(ways[:MOST_WAYS])
    sides = (first_of(first), first_of(second))
    return Evidence((host, "forwards"), sides, first_ns=first.first.ts_ns, words=words)


def unauthenticated_host(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    host = subject[1]
    if host in context.unauthenticated_hosts.servers:
        yield from contradiction(host, group, context)
    elif context.unauthenticated_hosts.is_unauthenticated(host):
        uses = [
            use
            for use in context.unauthenticated_hosts.unauthorized_uses(host)
            if context.clusters.group_of(use.claim) is group
        ]
        if uses:
            found = odd(host, uses)
            writer = rejected_writer(host, uses, context)
            yield replace(found, words={**found.words, **writer}) if writer else found


def rejected_writer(host: str, uses: list[UnauthorizedUse], context: CheckContext) -> dict[str, str]:
    """Words of a host that does what a producer does: it got a server's version ranges, and writes for long under topic
    IDs that are unknown. Its writes are lost, whichever client it is.
    """
    settings = context.settings
    writes = [use for use in uses if use.what == IDS and PRODUCE in use.apis]
    lasts_ns = max((use.claim.last.ts_ns - use.claim.first.ts_ns for use in writes), default=0)
    if lasts_ns < settings.stuck_s * SECOND_NS or sum(use.times for use in writes) < settings.stuck_answers:
        return {}
    named = {str(client) for client in client_ids(writes)}
    asked = (claim for name in named for claim in context.ledger.claims("activity", "client", name, host))
    greeted = any((claim["api"], claim["outcome"]) == (GREETING, "granted") for claim in asked)
    return {"hurt_host": host, "api": PRODUCE} if greeted else {}


def odd(host: str, uses: list[UnauthorizedUse]) -> Evidence:
    by_kind: dict[str, list[UnauthorizedUse]] = defaultdict(list)
    for use in uses:
        by_kind[use.what].append(use)
    grave = set(by_kind) - HARMLESS
    kinds = sorted(by_kind, key=lambda kind: (kind in HARMLESS, kind))
    return Evidence(
        (host,),
        tuple(side for use in uses for side in sides(use)),
        client_ids=client_ids(uses),
        count=sum(use.times for use in uses),
        kind=None if grave else "information",
        words={
            "who": f"Host {host}",
            "why": "no broker lists it or granted its requests",
            "what": "; ".join(in_words(kind, by_kind[kind]) for kind in kinds),
        },
    )


def in_words(what: str, uses: list[UnauthorizedUse]) -> str:
    apis = sorted({api for use in uses for api in use.apis})
    more = ", ..." if len(apis) > SHOWN else ""
    count = counted(sum(use.times for use in uses), "time")
    return f"{what} {count}" + (f" ({', '.join(apis[:SHOWN])}{more})" if apis else "")


def sides(use: UnauthorizedUse) -> tuple[Side, Side]:
    claim = use.claim
    text = f"{claim['host']} sends {claim['endpoint']} {use.what}"
    return Side(claim.first, text), Side(claim.last, text)


def client_ids(uses: list[UnauthorizedUse]) -> tuple[str | None, ...]:
    found = {value for use in uses for name, value in use.claim.peak.items() if name.startswith(LEAST)}
    found |= {use.claim["client_id"] or "" for use in uses if use.claim.kind == "outside"}
    return tuple(sorted(found)[:MOST_CLIENT_IDS])


def client_sends_broker_requests(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    of_host: dict[str, list[tuple[Claim, str, int]]] = defaultdict(list)
    for claim, _, api, version in outside(subject, group, context):
        if only_pretends(claim, api, group, context):
            of_host[claim["host"]].append((claim, api, version))
    for host, found in sorted(of_host.items()):
        peers = context.ledger.claims("peer", "host", host)
        if not group.listed and any(one.peak["unread"] or one.peak.get("encrypted") for one in peers):
            continue  # brokers have host names: it may be one of them that was accepted unseen
        claims = [claim for claim, _, _ in found]
        sent = sorted({f"{api} v{version}" for _, api, version in found})
        clients = tuple(sorted({claim["client_id"] or "" for claim in claims})[:MOST_CLIENT_IDS])
        words: dict[str, object] = {"host": host, "server": servers_of(claims, context)}
        words["sent"] = ", ".join(sent[:SHOWN]) + (", ..." if len(sent) > SHOWN else "")
        words["why"] = "no broker list names this host" if group.listed else "no such request of this host was granted"
        count = sum(claim.tally[f"{api}:{version}"] for claim, api, version in found)
        first_ns = min(claim.first.ts_ns for claim in claims)
        yield resting_on(claims, host, subject[1], client_ids=clients, count=count, first_ns=first_ns, words=words)


def contradiction(host: str, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """A server that does not belong to the cluster, because it states otherwise than the cluster's members do."""
    unlisted = context.unauthenticated_hosts.known.unlisted
    found: list[Claim] = [
        claim
        for endpoint in sorted({claim["endpoint"] for claim in context.ledger.claims("serving", "host", host)})
        if endpoint in unlisted
        for claim in context.unauthenticated_hosts.contradictions(endpoint)
        if context.clusters.group_of(claim) is group
    ]
    if found:
        names = sorted({claim["name"] for claim in found if claim.kind == "binding"})
        ids = tuple(sorted({claim["topic_id"] for claim in found if "topic_id" in KINDS[claim.kind].fields}))
        words = {
            "who": f"Server {found[0].server()}",
            "why": "it reports this cluster's ID, and no broker of it lists it",
        }
        ids_of = [f"other IDs for {', '.join(names[:SHOWN])}{', ...' if len(names) > SHOWN else ''}"] if names else []
        others = dict.fromkeys(OTHERWISE[claim.kind] for claim in found if claim.kind != "binding")
        words["what"] = ", ".join([*ids_of, *others])
        if not others:
            words |= {"server": found[0].server(), "what": f"{words['what']}, as a proxy that renames topics has"}
        yield resting_on(found, host, topic=names[0] if len(names) == 1 else None, topic_ids=ids, words=words)
