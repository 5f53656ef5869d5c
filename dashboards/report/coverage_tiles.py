"""How much of the traffic was read: totals as tiles, endpoints and connections as rows.

What is missing is shown before what is there. A measure without a value is shown as 0, not omitted.
"""

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from wirecheck.dashboards.verdict import reasons, size
from wirecheck.decode.peer import Conversation
from wirecheck.story.seen import ConnectionRead, Coverage, EndpointRead, Read

CONNECTIONS_SHOWN = 200


def tiles(coverage: Coverage) -> list[dict[str, Any]]:
    """Name, value and whether the value is bad news, in reading order."""
    decoded = coverage.decoded_messages == coverage.messages > 0
    return [
        {"name": "Messages decoded", "value": coverage.share, "bad": not decoded},
        {"name": "Messages", "value": f"{coverage.messages:,}", "bad": not coverage.messages},
        {"name": "Connections", "value": f"{coverage.connections:,}", "bad": False},
        {"name": "Frames", "value": f"{coverage.frames:,}", "bad": False},
        {"name": "Never captured", "value": size(coverage.unseen_bytes), "bad": bool(coverage.unseen_bytes)},
        missing("Encrypted connections", coverage.encrypted_connections),
        missing("Messages not decoded", coverage.undecoded_messages, reasons(coverage)),
    ]


def missing(name: str, count: int, why: str = "") -> dict[str, Any]:
    return {"name": name, "value": f"{count:,}{why}" if count else "none", "bad": bool(count)}


def endpoints(connections: Iterable[ConnectionRead]) -> list[EndpointRead]:
    """Sums per server endpoint: the one that misses most first."""
    found: dict[str, list[ConnectionRead]] = {}
    for one in connections:
        found.setdefault(str(Conversation.of(one.connection).server), []).append(one)
    sums = [
        EndpointRead(
            endpoint=name,
            connections=len(every),
            **{column.name: sum(getattr(one, column.name) for one in every) for column in fields(Read)},
        )
        for name, every in found.items()
    ]
    return sorted(sums, key=lambda one: (*worst(one), one.endpoint))


def incomplete(connections: Iterable[ConnectionRead]) -> list[ConnectionRead]:
    """Connections of which something was not read, the worst first."""
    return [one for one in sorted(connections, key=lambda one: (*worst(one), one.connection)) if any(worst(one))]


def worst(one: Read) -> tuple[int, int, int]:
    return -one.encrypted_connections, -one.unseen_bytes, -one.undecoded_messages
