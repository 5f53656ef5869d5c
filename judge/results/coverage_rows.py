"""Rows of the coverage table: how much of the traffic a verdict rests on.

Rule: totals are sums over rows of one measure; a count of nothing has no row. A measure is only added, never renamed.
"""

from collections.abc import Iterator, Mapping

from wirecheck.decode.peer import Conversation, Peer
from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.claims.claim import Claim, Subject
from wirecheck.judge.connections import is_encrypted, is_unread, protocol_of
from wirecheck.judge.results.result_table import ResultRow

CUMULATIVE = (
    "frames",
    "payload_bytes",
    "requests",
    "responses",
    "raw_frames",
    "unseen_bytes",
    "skipped_bytes",
    "conflicting_bytes",
    "resynchronised",
    "limits_hit",
    "retransmitted",
    "unacceptable",
)
"""Facts of a connection that only grow: the greatest value counts."""
OTHERS, MOST_ENDPOINTS = "(others)", 100
"""Not the name of any endpoint. A limit is needed because any host can state any cluster ID."""
LOSSES = {"unseen_bytes", "skipped_bytes", "resynchronised"}
"""Not counted for connections of other protocols."""


def connections(subject: Subject, context: CheckContext) -> Iterator[ResultRow]:
    for claim in context.ledger.claims("connection", *subject):
        name = str(Conversation(Peer.of(claim["client"]), Peer.of(claim["endpoint"])))
        identity = f"{name}@{claim['started_ns']}"
        for measure, detail, count in measures(claim):
            if count:
                yield counted(f"{identity}|{measure}|{detail or ''}", name, measure, count, detail)


def of_connection(subject: Subject, context: CheckContext) -> Iterator[tuple[str, str | None, int]]:
    """Measure, detail, count."""
    for claim in context.ledger.claims("connection", *subject):
        yield from measures(claim)


def summed(sums: Mapping[tuple[str, str | None], int], number: int) -> Iterator[ResultRow]:
    """Rows of many connections together, the so many-th time."""
    for (measure, detail), count in sums.items():
        if count:
            yield counted(f"connections {number}|{measure}|{detail or ''}", None, measure, count, detail)


def measures(claim: Claim) -> Iterator[tuple[str, str | None, int]]:
    protocol = protocol_of(claim)
    yield "connections", protocol, 1
    yield "encrypted_connections", None, int(is_encrypted(claim))
    yield "refused_connections", claim["endpoint"], claim.peak.get("refused", 0)
    yield "decrypted_connections", None, int(protocol != "tls" and "decrypted" in claim.peak)
    yield "foreign_bytes", None, claim.peak.get("payload_bytes", 0) if is_unread(claim) else 0
    for measure in CUMULATIVE:
        yield measure, None, 0 if protocol == "other" and measure in LOSSES else claim.peak.get(measure, 0)
    yield "unseen_bytes", "snap length", claim.peak.get("cut_bytes", 0)
    for measure, count in claim.tally.items():
        name, _, detail = measure.partition(":")
        yield name, detail or None, count


def marks(_agents: Subject, context: CheckContext) -> Iterator[ResultRow]:
    """What agents report of themselves: frames skipped or dropped, input that could not be read. And agents of which
    nothing arrived.
    """
    for claim in context.ledger.claims("mark", "agent"):
        agent, what, source, reason = claim.key
        detail = reason if source is None else f"{source}: {reason}"
        count = claim.tally["count"]
        yield counted(f"{agent}|{what}|{detail}", None, what, count, detail)
    for agent in sorted(context.agents.absent):
        yield counted(f"{agent}|absent", None, "input_errors", 1, f"{agent}: its files were expected and none arrived")


def unassigned_endpoints(_servers: Subject, context: CheckContext) -> Iterator[ResultRow]:
    """Endpoints whose cluster is not known, the first by name; and how many more there are."""
    clusters = context.clusters
    unknown = {end for group in clusters.groups if group.cluster is None for end in group.endpoints}
    found = sorted(unknown | clusters.disputed)
    for endpoint in found[:MOST_ENDPOINTS]:
        yield unassigned("endpoints", endpoint)
    if len(found) > MOST_ENDPOINTS:
        yield unassigned("endpoints", OTHERS, len(found) - MOST_ENDPOINTS)


def unassigned_topics(subject: Subject, context: CheckContext) -> Iterator[ResultRow]:
    """A topic of such endpoints, by its name; by its ID if they give no name."""
    kinds = unassigned_kinds(subject, context)
    if kinds - {"absence"} and not (subject[0] == "id" and "binding" in kinds):
        yield unassigned("topics", subject[1])


def unassigned_clients(subject: Subject, context: CheckContext) -> Iterator[ResultRow]:
    if "client" in unassigned_kinds(subject, context):
        _, client_id, host = subject
        yield unassigned("clients", f"{client_id} ({host})")


def unassigned_kinds(subject: Subject, context: CheckContext) -> set[str]:
    """What kinds of claims were made about a subject in clusters that are not known."""
    places = context.clusters.unassigned
    return {kind for place, kind in context.filed_for(subject).claims if place in places} if places else set()


def unassigned(what: str, which: str, count: int = 1) -> ResultRow:
    measure = f"unassigned_{what}"
    return counted(f"{measure}|{which}", None, measure, count, which)


def counted(identity: str, connection: str | None, measure: str, count: int, detail: str | None) -> ResultRow:
    body = {"connection": connection, "measure": measure, "count": count, "detail": detail}
    return ResultRow("coverage", identity, body)
