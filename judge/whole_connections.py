"""Which connections of a client were seen from beginning to end: where something missing means that it was not said.

Knows: what following found out about each connection, and who spoke on it. Does not know what was said.
Rule: a connection on which nobody was recognised may be anybody's. One gap, one message that could not be read, or a
beginning that was not seen, and nothing is known to be missing.
"""

from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.claims.claim import Claim
from wirecheck.judge.ledger.bounds import CUT
from wirecheck.judge.topology.clusters import Group
from wirecheck.judge.topology.host_activity import protocol_of

IDENTITY = 4
"""Of a connection's key: host, endpoint, client, start."""


def seen_whole(client_id: str | None, host: str, endpoints: set[str], group: Group, context: CheckContext) -> bool:
    """Whether everything a client asked of these endpoints, and was answered, is in the capture."""
    return all(whole(c) for endpoint in sorted(endpoints) for c in theirs(client_id, host, endpoint, group, context))


def theirs(client_id: str | None, host: str, endpoint: str, group: Group, context: CheckContext) -> list[Claim]:
    """The connections that are a client's, or may be: also those on which more spoke than are kept."""
    spoken: dict[tuple[object, ...], set[str | None]] = {}
    for claim in context.claims("spoken", group, "link", endpoint):
        who = {claim["client_id"], client_id} if CUT in claim.peak else {claim["client_id"]}
        spoken.setdefault(claim.key[:IDENTITY], set()).update(who)
    return [
        claim
        for claim in context.claims("connection", group, "link", endpoint)
        if claim["host"] == host and client_id in spoken.get(claim.key[:IDENTITY], {client_id})
    ]


def whole(connection: Claim) -> bool:
    facts = connection.peak
    missing = facts["unseen_bytes"] or facts["resynchronised"] or facts["skipped_bytes"] or facts["limits_hit"]
    unread = any(word.startswith("undecoded_messages") for word in connection.tally)
    return bool(facts["from_start"]) and not missing and not unread and protocol_of(connection) == "kafka"
