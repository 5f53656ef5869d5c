"""Which connections of a client were seen from beginning to end: where something missing means that it was not said.

Knows: what is kept of connections that were not (`life_cycle.py`). Does not know what was said.
Rule: a connection on which nobody was recognised may be anybody's. One gap, one message that could not be read, or a
beginning that was not seen, and nothing is known to be missing.
"""

from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.ledger.connection_sums import BROKEN, CONTINUED
from wirecheck.judge.topology.clusters import Group


def seen_whole(client_id: str | None, host: str, endpoints: set[str], group: Group, context: CheckContext) -> bool:
    """Whether everything a client asked of these endpoints, and was answered, is in the capture."""
    return not any(BROKEN in partly(client_id, host, endpoint, group, context) for endpoint in sorted(endpoints))


def all_begun(client_id: str | None, host: str, endpoint: str, group: Group, context: CheckContext) -> bool:
    """Whether every connection of a client began its fetch session anew: one that goes on with a session brings along
    what was asked on another, perhaps before the capture.
    """
    return CONTINUED not in partly(client_id, host, endpoint, group, context)


def partly(client_id: str | None, host: str, endpoint: str, group: Group, context: CheckContext) -> set[str]:
    """Why not all is known of the connections that are a client's, or may be."""
    return {
        claim["what"]
        for claim in context.claims("partial", group, "link", endpoint)
        if claim["host"] == host and (claim["anybodys"] or claim["client_id"] == client_id)
    }
