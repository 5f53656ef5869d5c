"""How much of the traffic was read: totals as tiles, endpoints and connections as rows.

What is missing is shown before what is there. A measure without a value is shown as 0, not omitted.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from wirecheck.dashboards.verdict import reasons, share, size
from wirecheck.decode.peer import Conversation

Row = Mapping[str, Any]
CONNECTIONS_SHOWN = 200
MEASURES = ("frames", "messages", "decoded_messages", "unseen_bytes", "undecoded_messages", "encrypted_connections")


def tiles(coverage: Row) -> list[dict[str, Any]]:
    """Name, value and whether the value is bad news, in reading order."""
    decoded = coverage["decoded_messages"] == coverage["messages"] > 0
    return [
        {"name": "Messages decoded", "value": share(coverage), "bad": not decoded},
        {"name": "Messages", "value": f"{coverage['messages']:,}", "bad": not coverage["messages"]},
        {"name": "Connections", "value": f"{coverage['connections']:,}", "bad": False},
        {"name": "Frames", "value": f"{coverage['frames']:,}", "bad": False},
        {"name": "Never captured", "value": size(coverage["unseen_bytes"]), "bad": bool(coverage["unseen_bytes"])},
        missing("Encrypted connections", coverage["encrypted_connections"]),
        missing("Messages not decoded", coverage["undecoded_messages"], reasons(coverage)),
    ]


def missing(name: str, count: int, why: str = "") -> dict[str, Any]:
    return {"name": name, "value": f"{count:,}{why}" if count else "none", "bad": bool(count)}


def endpoints(connections: Iterable[Row]) -> list[dict[str, Any]]:
    """Sums per server endpoint: the one that misses most first."""
    found: dict[str, dict[str, Any]] = {}
    for row in connections:
        name = str(Conversation.of(row["connection"]).server)
        sums = found.setdefault(name, {"endpoint": name, "connections": 0, **dict.fromkeys(MEASURES, 0)})
        sums["connections"] += 1
        for measure in MEASURES:
            sums[measure] += row.get(measure, 0)
    return [with_share(row) for row in sorted(found.values(), key=lambda row: (*worst(row), row["endpoint"]))]


def incomplete(connections: Iterable[Row]) -> list[dict[str, Any]]:
    """Connections of which something was not read, the worst first."""
    rows = [{**dict.fromkeys(MEASURES, 0), **row} for row in connections]
    return [
        with_share(row) for row in sorted(rows, key=lambda row: (*worst(row), row["connection"])) if any(worst(row))
    ]


def worst(row: Row) -> tuple[int, int, int]:
    return -row["encrypted_connections"], -row["unseen_bytes"], -row["undecoded_messages"]


def with_share(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "share": share(row) if row["messages"] else "", "unseen": size(row["unseen_bytes"])}
