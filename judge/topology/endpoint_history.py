"""One endpoint that led to several clusters, one after the other: when each began, and which part of a claim belongs to
which.

Rule: a cluster takes an endpoint over if all statements of the other clusters came before, or lasted for SUSTAINED_NS
at least, as when an address is switched there and back. It takes over with the first connection after the longest pause
in between. A claim that several clusters made is split. If the count of a part is unknown, it is counted low.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import lru_cache
from ipaddress import ip_address
from itertools import pairwise
from typing import NamedTuple

from wirecheck.decode.peer import Peer
from wirecheck.judge.claims.claim import AT, Claim, slot_of
from wirecheck.judge.claims.outcomes import SLOT_NS

REQUESTS = "client"
"""The kind of claims that count every request, by the slot in which its connection began."""
LOG = "log_order"
"""The kind of claims that have high watermarks by slot, each with the time when it was seen."""
ACCEPTED = "accepted"
"""How a ClusterId was stated that a request carried, and not an answer."""
Births = dict[str, list[tuple[int, str]]]
"""Per endpoint its ClusterIds with the time from which each holds."""
Connections = Callable[[str], Iterable[tuple[int, int]]]
"""From an endpoint to when its connections began and were seen last."""
SUSTAINED_NS = 10_000_000_000
"""An address that is switched back to a cluster led to the other one for at least this long. A load balancer that
alternates between two clusters changes sooner.
"""
IN_TURN_NS = 15_000_000_000
"""An address that two clusters state within so long, one before and after the other, leads to them in turn; so does
one that changes more than SWITCHES times. Of others too little was seen: they may have been switched there and back."""
SWITCHES = 3
NAMES_BROKERS = {"Metadata", "DescribeCluster"}
"""Answers that have a ClusterId and the brokers' addresses in one."""


class Statement(NamedTuple):
    """The statement that an endpoint belongs to a cluster, with its first and last time."""

    first_ns: int
    last_ns: int
    cluster_id: str


SUMS = frozenset({"written_bytes", "read_bytes", "request_bytes", "response_bytes", "tls_requests"})
"""Counters of volumes, which add up all times together."""


def unknown(_endpoint: str) -> Iterable[tuple[int, int]]:
    return ()


def births(
    stated: list[Claim],
    addresses: list[Claim],
    connections: Connections = unknown,
    advertised: Iterable[Claim] = (),
) -> Births:
    own = own_statements(stated)
    ranges: dict[str, list[int]] = defaultdict(list)
    for claim in advertised:
        ranges[claim["endpoint"]].append(claim.first.ts_ns)
    also = statements_of_others(addresses, own)
    found: Births = {}
    for endpoint in sorted({*own, *also}):
        every = phases([*own.get(endpoint, []), *also.get(endpoint, [])])
        statements = every if one_after_another(every) and len(every) > 1 else own.get(endpoint, [])
        statements = statements if one_after_another(statements) else apart(statements)
        if statements:
            seen = connections(endpoint) if len(statements) > 1 else ()
            found[endpoint] = begins(statements, seen, sorted(ranges[endpoint]))
    return found


def disputed(stated: list[Claim]) -> dict[str, list[Statement]]:
    """Endpoints that may state several cluster IDs in turn. Their statements belong to no known cluster."""
    answered = [claim for claim in stated if claim["how"] != ACCEPTED]
    own = own_statements(answered)
    return {endpoint: statements for endpoint, statements in own.items() if not one_after_another(statements)}


def changes_in_turn(statements: list[Statement]) -> bool:
    """Whether an endpoint changed to and fro sooner than an address is switched, or more often."""
    orderly = all(before.last_ns < after.first_ns for before, after in pairwise(statements))
    soon = any(
        after.first_ns - before.last_ns < IN_TURN_NS for before, after in zip(statements, statements[2:], strict=False)
    )
    return not orderly or soon or len(statements) > SWITCHES + 1


def own_statements(stated: list[Claim]) -> dict[str, list[Statement]]:
    """The statements of each endpoint. A server's own responses count more than requests that it accepted, which count
    for several clusters one after the other.

    A controller never states its cluster ID. It rejects requests with another one (KIP-595: INCONSISTENT_CLUSTER_ID).
    """
    answered: dict[str, list[Claim]] = defaultdict(list)
    accepted: dict[str, list[Claim]] = defaultdict(list)
    for claim in stated:
        (accepted if claim["how"] == ACCEPTED else answered)[claim["endpoint"]].append(claim)
    alone = {
        endpoint: spans for endpoint, found in accepted.items() if one_after_another(spans := apart(spans_of(found)))
    }
    return alone | {endpoint: phases(spans_of(found)) for endpoint, found in answered.items()}


def spans_of(claims: list[Claim]) -> list[Statement]:
    """The statements of one endpoint; all of them as one where there is only one ClusterId, as nearly always."""
    if len({claim["cluster_id"] for claim in claims}) > 1:
        return [one for claim in claims for one in statements_of(claim)]
    return [
        Statement(
            min(claim.first.ts_ns for claim in claims),
            max(claim.last.ts_ns for claim in claims),
            claims[0]["cluster_id"],
        )
    ]


def statements_of(claim: Claim) -> Iterable[Statement]:
    """By slot of time, as far as slots are kept; else from the first to the last."""
    runs, cluster_id = claim.outcomes.runs(), claim["cluster_id"]
    if not runs:
        return [Statement(claim.first.ts_ns, claim.last.ts_ns, cluster_id)]
    ends = [Statement(seen.ts_ns, seen.ts_ns, cluster_id) for seen in (claim.first, claim.last)]
    return [*ends, *(Statement(run.first_ns, run.last_ns, cluster_id) for run in runs)]


def statements_of_others(addresses: list[Claim], own: dict[str, list[Statement]]) -> dict[str, list[Statement]]:
    """What a server's responses show about other brokers, while it stated its own cluster."""
    if all(len(statements) < 2 for statements in own.values()):
        return {}
    found: dict[str, list[Statement]] = defaultdict(list)
    for claim in addresses:
        for seen in {claim.first, claim.last}:
            speaks = [one for one in own.get(claim["endpoint"], []) if one.first_ns <= seen.ts_ns <= one.last_ns]
            if len(speaks) == 1 and seen.api in NAMES_BROKERS and is_literal(claim["address"]):
                found[claim["address"]].append(speaks[0])
    return found


def phases(statements: list[Statement]) -> list[Statement]:
    """One span per ClusterId and for as long as no other was stated, in the order of time."""
    found: list[Statement] = []
    for one in sorted(statements):
        if found and found[-1].cluster_id == one.cluster_id:
            found[-1] = found[-1]._replace(last_ns=max(found[-1].last_ns, one.last_ns))
        else:
            found.append(one)
    return found


def apart(statements: list[Statement]) -> list[Statement]:
    """One span per ClusterId, in the order in which they began."""
    spans: dict[str, Statement] = {}
    for one in sorted(statements):
        known = spans.get(one.cluster_id, one)
        spans[one.cluster_id] = known._replace(last_ns=max(known.last_ns, one.last_ns))
    return sorted(spans.values())


def one_after_another(statements: list[Statement]) -> bool:
    """Whether an endpoint was one cluster's at any time, and did not change to and fro sooner than an address does."""
    orderly = all(before.last_ns < after.first_ns for before, after in pairwise(statements))
    again = len(statements) > len({one.cluster_id for one in statements})
    brief = any(one.last_ns - one.first_ns < SUSTAINED_NS for one in statements[1:-1])
    return orderly and not (again and brief)


def begins(
    statements: list[Statement], connections: Iterable[tuple[int, int]], ranges: list[int]
) -> list[tuple[int, str]]:
    """The time from which each statement holds. Statements that overlap hold from their first time on. Version ranges
    that were never advertised before belong to the later cluster (`ranges`: when each was first advertised).
    """
    found, until_ns, seen = (
        [(statements[0].first_ns, statements[0].cluster_id)],
        statements[0].last_ns,
        sorted(connections),
    )
    for one in statements[1:]:
        since_ns = begun(until_ns, one.first_ns, seen) if until_ns < one.first_ns else one.first_ns
        since_ns = min([since_ns, *(ts_ns for ts_ns in ranges if until_ns < ts_ns < since_ns)])
        found.append((since_ns, one.cluster_id))
        until_ns = max(until_ns, one.last_ns)
    return found


def begun(after_ns: int, until_ns: int, connections: list[tuple[int, int]]) -> int:
    """The start of the first connection after the longest time without an open connection; connections are in order of
    time.
    """
    found, longest, busy = until_ns, 0, None
    for start_ns, last_ns in connections:
        silent = start_ns - (after_ns if busy is None else busy)
        if after_ns < start_ns <= until_ns and silent > longest:
            found, longest = start_ns, silent
        busy = last_ns if busy is None else max(busy, last_ns)
    return found


def pieces(claim: Claim, places: Iterable[int]) -> Iterable[tuple[int, Claim]]:
    """The part of a claim from each place's time on, by the place's number. Only the first part and the rest have a
    sighting of their own. In between, the times are known where answers were counted over time.
    """
    rest, number = claim, -1
    for number, at_ns in enumerate(places):
        early, rest = cut(rest, at_ns)
        if number:
            seen = [run.first_ns for run in early.outcomes.runs()], [run.last_ns for run in early.outcomes.runs()]
            if not all(seen):
                continue
            early.first, early.last = claim.last._replace(ts_ns=min(seen[0])), claim.last._replace(ts_ns=max(seen[1]))
        yield number, early
    yield number + 1, rest


def cut(claim: Claim, at_ns: int) -> tuple[Claim, Claim]:
    """The part of a claim before a time and the part after it, each with the one known sighting. Volumes stay with the
    later one.
    """
    slot = at_ns // SLOT_NS
    parts = []
    for seen, early in ((claim.first, True), (claim.last, False)):
        tally = {name: n for name, n in claim.tally.items() if belongs(name, slot, early=early)}
        peak = {name: value for name, value in claim.peak.items() if of_part(claim, name, at_ns, early=early)}
        outcomes = claim.outcomes.split(at_ns, early=early)
        parts.append(Claim(claim.kind, claim.key, seen, tally=tally, peak=peak, outcomes=outcomes))
    parts[0].count = early_count(claim, *parts)
    parts[1].count = claim.count - parts[0].count
    return parts[0], parts[1]


def early_count(claim: Claim, early: Claim, late: Claim) -> int:
    """How often it was stated before: by its slots, if they count all of it; otherwise once, which is low. Of requests,
    the total less the later part, because the oldest slots may be gone.
    """
    slots = {name: n for name, n in claim.tally.items() if slot_of(name) is not None}
    if claim.kind == REQUESTS:
        before = claim.count - sum(run.count for run in late.outcomes.runs())
    else:
        before = sum(n for name, n in slots.items() if name in early.tally) if sum(slots.values()) == claim.count else 1
    return min(max(1, before), claim.count - 1)


def of_part(claim: Claim, name: str, at_ns: int, *, early: bool) -> bool:
    """Whether a value is of the part before a time, or after it: a high watermark of the metadata log has a time."""
    if claim.kind == LOG and name.startswith(AT):
        return (-claim.peak[name][1] < at_ns) is early
    return belongs(name, at_ns // SLOT_NS, early=early)


def belongs(name: str, slot: int, *, early: bool) -> bool:
    """Whether a counter is of the part before a slot, or after it; those that no slot names are of both."""
    mine = slot_of(name)
    if name in SUMS:
        return not early
    return mine is None or (mine < slot) is early


@lru_cache(maxsize=1 << 14)
def is_literal(address: str) -> bool:
    """An IP address and port, not a name that resolves differently for everyone; loopback of one host is fine."""
    try:
        return not ip_address(host_of(address)).is_unspecified
    except ValueError:
        return False


def host_of(address: str) -> str:
    """An endpoint's or a client's address without its port, as both are written in claims."""
    return Peer.of(address).host
