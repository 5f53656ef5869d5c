"""How connections of a client end, and whether the client may still be there.

Rule: a connection of which the client ID or the port was not kept may be open, and so may one to a broker that was not
captured.
"""

from typing import NamedTuple

from wirecheck.decode.connection.framing.recognise import hash_of_client
from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.shapes import MINUTE_NS, seen_whole
from wirecheck.judge.claims.claim import Claim, Subject
from wirecheck.judge.claims.outcomes import OTHERS, SUCCESS, Part
from wirecheck.judge.topology.clusters import Group


def connection_spans(subject: Subject, context: CheckContext) -> list[tuple[int, int]]:
    """From when to when each connection of this client, to any server, was seen: also those without a request."""
    every = (*context.ledger.claims("client", *subject), *connections_that_are_over(subject, context))
    return [(run.first_ns, run.last_ns) for one in every for run in one.outcomes.runs()]


def connections_that_are_over(subject: Subject, context: CheckContext) -> list[Claim]:
    """Those of a client, by server; of one that was never seen to close, `unclosed` is its last packet."""
    return over_among(context.ledger.claims("client", *subject), subject, context)


def over_among(asked: list[Claim], subject: Subject, context: CheckContext) -> list[Claim]:
    """The same at the servers that these requests went to."""
    _, client_id, host = subject
    hashed = hash_of(client_id)
    found: list[Claim] = []
    for endpoint in dict.fromkeys(one["endpoint"] for one in asked):
        found += context.anywhere("host client_hash", "connected", "link", endpoint).get((host, hashed), ())
    return found


LOOK_AGAIN_NS = 5 * MINUTE_NS
"""So much later than its last request a client is looked at again, if nothing new is stated of it."""


class LastClose(NamedTuple):
    """How the last connection of a client ended."""

    ns: int
    by: str
    """client or server."""


def last_close(client: Subject, group: Group, context: CheckContext) -> LastClose | None:
    """If each connection with requests of the client was closed after the last of them. One of which its client ID or
    its port was not kept may be open, and one to a broker that was not captured. A close is no news of a client: it is
    looked at again later.
    """
    asked = context.claims("client", group, *client)
    seen_ns = max((one.last.ts_ns for one in asked), default=0)
    context.passed(context.watermark_ns + max(LOOK_AGAIN_NS, context.watermark_ns - seen_ns))
    over = over_among(asked, client, context)
    closed_ns: dict[tuple[str, Part], int] = {}
    for one in over:
        for port in one.outcomes.parts({SUCCESS}):
            last_ns = max(run.last_ns for run in one.outcomes.runs({SUCCESS}, port))
            closed_ns[one["endpoint"], port] = last_ns
    if not closed_ns:
        return None
    for one in context.claims("activity", group, *client):
        for port in one.outcomes.parts(one.outcomes.codes()):
            last_ns = max(run.last_ns for run in one.outcomes.runs(part=port))
            if port == OTHERS or closed_ns.get((one["endpoint"], port), 0) < last_ns:
                return None
    end_ns = max(closed_ns.values())
    who, every = (client[1], client[2]), {*group.endpoints}
    if context.clusters.uncaptured([group]) or not seen_whole(*who, every, group, context, since_ns=end_ns):
        return None
    return LastClose(end_ns, "client" if any(one.peak.get("by_client") == end_ns for one in over) else "server")


def lives_on(client: Subject, until_ns: int, context: CheckContext) -> bool:
    """Whether the client was connected until then, or one of its connections was never closed."""
    if not context.passed(until_ns):
        return False
    unclosed = any("unclosed" in one.peak for one in connections_that_are_over(client, context))
    return unclosed or any(last_ns >= until_ns for _, last_ns in connection_spans(client, context))


def hash_of(client_id: str) -> int:
    """As connections have it."""
    name = client_id.encode(errors="replace")
    hashed, _ = hash_of_client(name, len(name))
    return hashed
