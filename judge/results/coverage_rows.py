"""Rows of the coverage table: how much of the traffic a verdict rests on.

Knows: what is counted, per connection and per agent, and by which name. Does not know what was wrong.
Rule: totals are sums over rows of one measure; a count of nothing has no row. A measure is only added, never renamed.
"""

from collections.abc import Iterator

from wirecheck.decode.peer import Conversation, Peer
from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.claims.claim import Claim, Subject
from wirecheck.judge.results.result_table import ResultRow
from wirecheck.judge.topology.strangers import is_unread, protocol_of

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
)
"""Facts of a connection that only grow: the greatest value told holds."""
LOSSES = {"unseen_bytes", "skipped_bytes", "resynchronised"}
"""Of what does not speak Kafka nothing is missing."""


def connections(subject: Subject, context: CheckContext) -> Iterator[ResultRow]:
    """Rows of one connection."""
    for claim in context.ledger.claims("connection", *subject):
        name = str(Conversation(Peer.of(claim["client"]), Peer.of(claim["endpoint"])))
        identity = f"{name}@{claim['started_ns']}"
        for measure, detail, count in measures(claim):
            if count:
                yield counted(f"{identity}|{measure}|{detail or ''}", name, measure, count, detail)


def measures(claim: Claim) -> Iterator[tuple[str, str | None, int]]:
    protocol = protocol_of(claim)
    yield "connections", protocol, 1
    yield "encrypted_connections", None, int(protocol == "tls")
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


def counted(identity: str, connection: str | None, measure: str, count: int, detail: str | None) -> ResultRow:
    body = {"connection": connection, "measure": measure, "count": count, "detail": detail}
    return ResultRow("coverage", identity, body)
