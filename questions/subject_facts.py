"""What `wirecheck why` shows of a topic, a client, a group or a broker: facts in sections.

    for section, facts in sections(subject, "topic").items(): ...

Every fact was seen, and has times and a count where they matter. A section of more than MOST_FACTS ends with how many
more there are.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wirecheck.decode.api_names import WAITS
from wirecheck.decode.peer import Peer
from wirecheck.questions.error_rows import OF_APIS, error_rows
from wirecheck.questions.group_lag import Behind, lag
from wirecheck.questions.traffic import Call, Calls, gathered, quantile_ms
from wirecheck.wording import NS_PER_S, broker_name, client_name, duration, hex_id, plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from wirecheck.decode.connection.exchanges import Connection
    from wirecheck.questions.error_rows import ErrorRow
    from wirecheck.questions.group_lag import Life, Reached
    from wirecheck.questions.subject import Commit, Described, Member, Move, Subject, View
    from wirecheck.questions.traffic import Count, Use

KINDS = ("topic", "group", "broker", "client")
"""In the order in which a name is taken for one."""
MOST_FACTS = 12
GROUP_APIS = frozenset(OF_APIS["group request rejected"]) - {"FindCoordinator"}
CONTROLLERS_OWN = frozenset({"BrokerHeartbeat", "BrokerRegistration", "Vote", "Envelope", "ControllerRegistration"})


@dataclass(frozen=True, slots=True)
class Fact:
    """One line of a section; what is not known is None or empty."""

    what: str
    who: str
    count: int | None
    first_ns: int | None
    last_ns: int | None
    details: str
    wrong: bool = False
    """It needs a look."""


Sections = dict[str, list[Fact]]


def kinds_of(subject: Subject) -> list[str]:
    """What the name is, of KINDS."""
    traffic, name = subject.traffic, subject.name
    found = {
        "topic": bool(subject.ids or subject.views) or any(use.topic == name for use in traffic.uses),
        "group": bool(subject.members or subject.moves or subject.commits),
        "client": any(call.client_id == name for call in traffic.calls),
        "broker": name in map(str, traffic.brokers.values())
        or any(name in {server, Peer.of(server).host} for server in servers_seen(subject)),
    }
    return [kind for kind in KINDS if found[kind]]


def servers_seen(subject: Subject) -> set[str]:
    return {call.server for call in subject.traffic.calls}


def sections(subject: Subject, kind: str, at_ns: int | None = None) -> Sections:
    """`at_ns`: how brokers described a topic then, not at the end."""
    of_kind: dict[str, Callable[[], Sections]] = {
        "topic": lambda: of_topic(subject, at_ns),
        "group": lambda: of_group(subject),
        "client": lambda: of_client(subject),
        "broker": lambda: of_broker(subject),
    }
    return {title: facts for title, facts in of_kind[kind]().items() if facts}


def of_topic(subject: Subject, at_ns: int | None) -> Sections:
    uses = [(use, count) for use, count in subject.traffic.uses.items() if use.topic == subject.name]
    writers = [users(subject, use, count) for use, count in uses if use.api == "Produce"]
    readers = [users(subject, use, count) for use, count in uses if use.api != "Produce" and use.replica < 0]
    followers = [users(subject, use, count) for use, count in uses if use.replica >= 0]
    return {
        "Errors": [failed(row) for row in error_rows(subject.traffic) if row.topic == subject.name],
        "Topic IDs": ids(subject),
        "Written by": by_count(writers),
        "Read by": by_count(readers),
        "Followers": by_count(followers),
        "Partitions, as brokers describe them": list(described(subject, at_ns)),
        "Changes": changed(subject),
    }


def users(subject: Subject, use: Use, count: Count) -> Fact:
    who = f"broker {use.replica}" if use.replica >= 0 else client(use.client_id, use.host)
    seconds = (count.last_ns - count.first_ns) / NS_PER_S
    rate = f"{(count.count - 1) / seconds:.1f} requests/s" if seconds > 0 else ""
    software = subject.traffic.software.get((use.client_id, use.host), "")
    return Fact(use.api, who, count.count, count.first_ns, count.last_ns, ", ".join(filter(None, (rate, software))))


def client(client_id: str | None, host: str) -> str:
    return f"{client_name(client_id)} {host}"


def by_count(facts: list[Fact]) -> list[Fact]:
    return sorted(facts, key=lambda fact: (-(fact.count or 0), fact.who, fact.what))


def failed(row: ErrorRow) -> Fact:
    brokers = ", ".join(map(broker_name, row.servers[:3]))
    details = "; ".join(filter(None, (f"{row.effect}, {row.status}", f"{row.about}, by {brokers}", row.throttling)))
    return Fact(row.error, client(row.client_id, row.host), row.count, row.first_ns, row.last_ns, details,
                row.status == "ongoing" and row.effect != "routine")  # fmt: skip


def ids(subject: Subject) -> list[Fact]:
    """The newest first; an older one that is still stated after a newer came up needs a look."""
    found = sorted(subject.ids.items(), key=lambda one: one[1][0], reverse=True)
    newest_ns = found[0][1][0] if found else 0
    facts = []
    for topic_id, (first_ns, last_ns, count) in found:
        late = first_ns < newest_ns < last_ns
        stale = [server for server, now in last_views(subject).items() if topic_id in {view.topic_id for view in now}]
        by = f", still stated by {brokers_of(subject, stale)}" if late and stale else ""
        facts.append(Fact(topic_id, "", count or None, first_ns, last_ns, f"{hex_id(topic_id)}{by}", late))
    return facts


def last_views(subject: Subject) -> dict[str, list[View]]:
    found: dict[str, list[View]] = defaultdict(list)
    for (server, _), seen in subject.views.items():
        if seen:
            found[server].append(seen[-1].view)
    return found


def brokers_of(subject: Subject, servers: Iterable[str]) -> str:
    named = sorted(map(subject.traffic.brokers.named, servers), key=lambda one: (len(one), one))
    return ", ".join(map(broker_name, dict.fromkeys(named)))


def described(subject: Subject, at_ns: int | None) -> Iterator[Fact]:
    """One fact for each way in which a partition is described at a time.

    A description that a broker repeats after another broker sent a newer one needs a look.
    """
    found: dict[int, dict[View, list[tuple[Described, str]]]] = defaultdict(lambda: defaultdict(list))
    for (server, partition), seen in subject.views.items():
        now = [one for one in seen if at_ns is None or one.since_ns <= at_ns]
        if now:
            found[partition][now[-1].view].append((now[-1], server))
    for partition, views in sorted(found.items()):
        newest_ns = max(min(one.since_ns for one, _ in replies) for replies in views.values())
        for view, replies in sorted(views.items(), key=lambda one: -len(one[1])):
            since_ns, last_ns = min(one.since_ns for one, _ in replies), max(one.last_ns for one, _ in replies)
            last_ns = last_ns if at_ns is None else min(last_ns, at_ns)
            who = brokers_of(subject, (server for _, server in replies))
            late = since_ns < newest_ns and last_ns > newest_ns + CLOCKS_NS
            yield Fact(f"partition {partition}", who, None, since_ns, last_ns, words(view), late)


CLOCKS_NS = 5_000_000_000
"""Brokers learn of a change within this, and clocks of capture points differ by less."""


def words(view: View) -> str:
    epoch = f" epoch {view.leader_epoch}" if view.leader_epoch >= 0 else ""
    topic_id = f", ID {view.topic_id}" if view.topic_id.strip("A") else ""
    return f"leader {view.leader}{epoch}, ISR {','.join(map(str, view.isr))}{topic_id}"


def changed(subject: Subject) -> list[Fact]:
    """The newest first."""
    found = [change for change in subject.changes.merged() if change.object == subject.name][::-1]
    return [
        Fact(one.action, f"{client(one.client_id, one.host)} {one.named_principal}".rstrip(), None,
             one.time_ns, None, " ".join(filter(None, (one.answer, one.details))),
             one.error not in {"NONE", None})
        for one in found
    ]  # fmt: skip


def of_group(subject: Subject) -> Sections:
    unit = "epoch" if subject.has_epochs else "generation"
    members = [
        Fact(name, client(one.client_id, one.host), None, one.first_ns, one.last_ns, f"{unit} {one.generation}")
        for name, one in sorted(subject.members.items(), key=lambda item: item[1].first_ns)
    ]
    clients = {(one.client_id, one.host) for one in subject.members.values()}
    errors = [
        failed(row)
        for row in error_rows(subject.traffic)
        if (row.client_id, row.host) in clients and row.api in GROUP_APIS
    ]
    newest, last_ns = subject.lives.newest(), subject.traffic.last_ns
    offsets = [
        offset_of(f"{topic}-{number}", commit, (subject.ends.get((topic, number)), newest.get(topic)), last_ns)
        for (topic, number), commit in sorted(subject.commits.items())
    ]
    return {"Errors": errors, "Members": members, "Rebalances": rebalances(subject, unit), "Offsets": offsets}


def offset_of(partition: str, commit: Commit, reached: tuple[Reached | None, Life | None], last_ns: int) -> Fact:
    """What a group committed of a partition, and how far that is behind its end."""
    (time_ns, offset), (ends, now) = commit.history.last, reached
    details, own, end = f"committed {offset:,}", commit.history.of(now), ends.end(now) if ends else None
    found = lag([Behind(own, end)], last_ns) if own.times and end else None
    if not own.times:
        details += " of the topic that was deleted: brokers have deleted it, too"
    elif found is not None and end is not None:
        details += f", end {end.last[1]:,}, lag {found.records:,}"
        details += f" for {duration(found.seconds)}" if found.records else ""
        details += ", beyond the end that was stated later" if found.ahead else ""
    return Fact(partition, commit.client_id or "", None, None, time_ns, details)


def rebalances(subject: Subject, unit: str) -> list[Fact]:
    """Each generation or epoch, the newest first: who triggered it, why, and how long until all members had their
    assignment.
    """
    moves = subject.moves
    by_generation: dict[int, list[Move]] = defaultdict(list)
    for move in moves:
        if move.generation >= 0:
            by_generation[move.generation].append(move)
    facts, before, since_ns = [], set[str](), 0
    for generation, found in sorted(by_generation.items()):
        joins = [move for move in found if move.kind != "sync"]
        until_ns, members = max(move.until_ns for move in found), {move.member for move in joins or found}
        if joins:  # else the capture began after they joined
            leaves = [move for move in moves if move.kind == "leave" and since_ns <= move.time_ns <= until_ns]
            away = before - members - {move.member for move in leaves}
            lost = sorted(name for name in away if subject.members[name].generation < generation)
            cause, who, began_ns = trigger(joins, leaves, before, [subject.members[name] for name in lost])
            took = f"took {(until_ns - began_ns) / NS_PER_S:.1f} s, {plural(len(members), 'member')}"
            facts.append(Fact(f"{unit} {generation}", who, None, began_ns, until_ns, f"{cause}; {took}"))
            stay = before.difference(lost, (move.member for move in leaves)) if subject.has_epochs else set()
            members |= stay
        before, since_ns = members, until_ns
    gone = [move for move in moves if move.kind == "leave" and move.time_ns >= since_ns]
    facts += [
        Fact("left", client(move.client_id, move.host), None, move.time_ns, None, move.reason) for move in gone
    ]  # fmt: skip
    return facts[::-1]


def trigger(joins: list[Move], leaves: list[Move], before: set[str], lost: list[Member]) -> tuple[str, str, int]:
    """(cause, client, when) of a rebalance; what was first. `lost`: members that did not rejoin."""
    first = min(joins, key=lambda move: move.time_ns)
    new = [move for move in joins if move.kind == "join" and move.member not in before]
    if leaves and leaves[0].time_ns <= first.time_ns:
        reason = f": {leaves[0].reason}" if leaves[0].reason else ""
        return f"member left{reason}", client(leaves[0].client_id, leaves[0].host), leaves[0].time_ns
    if new:
        move = min(new, key=lambda one: one.time_ns)
        cause = "member joined" if before else "first seen"
        return f"{cause}{f': {move.reason}' if move.reason else ''}", client(move.client_id, move.host), move.time_ns
    if lost:
        others = f" and {len(lost) - 1:,} more" if len(lost) > 1 else ""
        return f"session timeout: did not rejoin{others}", client(lost[0].client_id, lost[0].host), first.time_ns
    if first.kind == "epoch":
        return "cause not seen", "", first.time_ns
    return first.reason or "member rejoined", client(first.client_id, first.host), first.time_ns


def of_client(subject: Subject) -> Sections:
    traffic, name = subject.traffic, subject.name
    calls = [(call, found) for call, found in traffic.calls.items() if call.client_id == name]
    mine = [found for where, found in traffic.connections.items() if where in subject.connections]
    hosts = {call.host for call, _ in calls}
    broken = [found for found in traffic.connections.values() if found.client.host in hosts and not found.requests]
    uses = [(use, count) for use, count in traffic.uses.items() if use.client_id == name]
    topics = [
        Fact(f"{use.api} {use.topic}", "", count.count, count.first_ns, count.last_ns, "") for use, count in uses
    ]  # fmt: skip
    return {
        "Errors": [failed(row) for row in error_rows(traffic) if row.client_id == name],
        "Software": [
            Fact(software, host, None, None, None, "")
            for (who, host), software in traffic.software.items()
            if who == name
        ],
        "Connections": connected(subject, mine),
        "Connections without a request, of the same hosts": connected(subject, broken, wrong=True),
        "Topics": by_count(topics),
        "Groups": [Fact(group, "", None, None, None, f"wirecheck why {group}") for group in sorted(subject.groups)],
        "Requests": requests(calls),
    }


def connected(subject: Subject, connections: list[Connection], *, wrong: bool = False) -> list[Fact]:
    """By broker: how many, how they ended, how they logged in."""
    by_server: dict[tuple[str, str], list[Connection]] = defaultdict(list)
    for one in connections:
        by_server[str(one.server), one.client.host].append(one)
    facts = []
    for (server, host), found in by_server.items():
        ends = Counter(ended(one) for one in found)
        logins = {one.sasl for one in found if one.sasl}
        parts = [
            ", ".join(f"{count:,} {end}" for end, count in ends.most_common()),
            *(f"SASL {sasl}" for sasl in logins),
        ]
        rounds = sorted(one.network_ns for one in found if one.network_ns)
        parts += [f"round trip {short(rounds[len(rounds) // 2] / 1e6)}"] if rounds else []
        again = sum(one.retransmitted for one in found)
        parts += [f"{plural(again, 'retransmitted segment')}"] if again else []
        alien = sum(one.unacceptable for one in found)
        parts += [f"{plural(alien, 'segment')} of other sequence numbers, not read"] if alien else []
        parts += [f"{sum(len(one.gaps) for one in found):,} gaps"] if any(one.gaps for one in found) else []
        times = min(one.started_ns for one in found), max(one.last_ns for one in found)
        facts.append(
            Fact(brokers_of(subject, [server]), f"{host} to {server}", len(found), *times, ", ".join(parts), wrong)
        )
    return sorted(facts, key=lambda fact: fact.first_ns or 0)


def ended(one: Connection) -> str:
    if one.protocol == "tls":
        return "encrypted" if one.responses or not one.closed_by else f"encrypted, ended by {one.closed_by}"
    if not one.requests and not one.payload_bytes:
        return (
            "refused" if one.closed_by == "server-rst" else "never answered" if one.frames <= SYNS else "without data"
        )
    return ENDS.get(one.closed_by or "", "open")


ENDS = {
    "server-fin": "closed by the broker",
    "server-rst": "reset by the broker",
    "client-fin": "closed by the client",
    "client-rst": "reset by the client",
}
SYNS = 7
"""Linux sends a SYN six times again, by default."""


def requests(calls: list[tuple[Call, Calls]]) -> list[Fact]:
    """By API: how many, and how long until the answer."""
    facts = []
    for api, total in gathered(calls, lambda call: call.api).items():
        waits = " (waits for data or members)" if api in WAITS and total.latencies else ""
        versions = f"v{', v'.join(map(str, sorted(total.versions)))}" if total.versions else ""
        facts.append(Fact(api, versions, total.count, total.first_ns, total.last_ns, took(total) + waits))
    return by_count(facts)


def took(calls: Calls) -> str:
    """p50 and p99 at the capture point, in the broker, and on the network, as far as they are known."""
    parts = (("", calls.latencies), ("broker ", calls.in_broker), ("network ", calls.in_network))
    return "; ".join(
        f"{name}p50 {short(half)}, p99 {short(quantile_ms(part, 0.99) or half)}"
        for name, part in parts
        if (half := quantile_ms(part, 0.5)) is not None
    )


def short(duration_ms: float) -> str:
    return f"{duration_ms:,.1f} ms" if duration_ms >= 1 else f"{1000 * duration_ms:,.0f} us"


def addresses_of(subject: Subject) -> set[str]:
    """The servers of a broker's ID or address."""
    name = subject.name
    known = {server for server, node in subject.traffic.brokers.items() if str(node) == name}
    return known | {server for server in servers_seen(subject) if name in {server, Peer.of(server).host}}


def nodes_of(subject: Subject) -> set[str]:
    """Broker IDs of these servers, and the name itself."""
    brokers = subject.traffic.brokers
    return {str(brokers[server]) for server in addresses_of(subject) if server in brokers} | {subject.name}


def of_broker(subject: Subject) -> Sections:
    traffic, known, nodes = subject.traffic, addresses_of(subject), nodes_of(subject)
    calls = [(call, found) for call, found in traffic.calls.items() if call.server in known]
    apis = {call.api for call, _ in calls}
    roles = [
        role
        for role, here in (("controller", apis & CONTROLLERS_OWN), ("broker", apis & {"Produce", "Fetch", "Metadata"}))
        if here
    ]
    times = [time for _, found in calls for time in (found.first_ns, found.last_ns)]
    first_ns, last_ns = (min(times), max(times)) if times else (None, None)
    follows = [
        Fact(use.topic, "", count.count, count.first_ns, count.last_ns, "")
        for use, count in traffic.uses.items()
        if use.replica >= 0 and str(use.replica) in nodes
    ]
    return {
        "Errors returned": [
            failed(row) for row in error_rows(traffic) if set(row.servers) & (known | nodes)
        ],
        "Errors received": [failed(row) for row in error_rows(traffic) if str(row.follower) in nodes],
        "Addresses": [Fact(server, ", ".join(roles), None, first_ns, last_ns, "") for server in sorted(known)],
        "Registrations": [
            Fact(f"epoch {epoch}", "", None, time_ns, None, "")
            for time_ns, broker, epoch in dict.fromkeys(sorted(subject.registrations, reverse=True))
            if str(broker) in nodes
        ],
        "Follows": by_count(follows),
        "Requests": requests(calls),
    }  # fmt: skip
