"""The messages behind a finding as a sequence diagram: requests, responses, and the field that decides.

Evidence of one exchange is one arrow. Arrows are in order of time; at most MESSAGES of them between at most LIFELINES
parties, and those that are not drawn are counted.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from wirecheck.decode.peer import Conversation
from wirecheck.story.seen import Statement
from wirecheck.story.verdict import Finding, Side

Row = Mapping[str, Any]
MESSAGES, LIFELINES = 6, 4
ERROR = re.compile(r"\b[A-Z][A-Z_]{4,} \(\d+\)")
"""`UNKNOWN_TOPIC_ID (100)`."""
ID = re.compile(r"(?<![\w-])[\w-]{22}(?![\w-])")
"""A topic ID in Kafka's base64."""
CONTROLLER = re.compile(r"controller \d+")
"""What sent LeaderAndIsr, UpdateMetadata or StopReplica, as a claim names it: its client ID is a bare number."""
SHORT = 6


def names_of(brokers: Mapping[str, int], statements: Iterable[Statement]) -> dict[str, str]:
    """Names of endpoints: brokers by their ID, as Metadata named them or statements have both."""
    return {address: f"broker {number}" for address, number in brokers.items()} | {
        row.who: f"broker {row.broker}" for row in statements if row.speaker == "broker" and row.broker is not None
    }


def sequence(finding: Finding, names: Mapping[str, str], decoded: Iterable[Row] = ()) -> dict[str, Any] | None:
    """Lifelines by name and arrows between them; None where fewer than two messages can be drawn. `decoded`: exchanges
    of the evidence, with their client IDs.
    """
    clients = {one["connection"]: one["client_id"] for one in decoded if one["client_id"]}
    exchanges: dict[tuple[str, str | None, int | None], list[Side]] = {}
    for side in sorted(finding.sides, key=lambda side: side.time_ns):
        connection = side.connection or ""
        if ">" in connection and side.api:
            exchanges.setdefault((connection, side.api, side.correlation_id), []).append(side)
    lifelines: list[str] = []
    arrows: list[dict[str, Any]] = []
    for key, sides in exchanges.items():
        ends = parties(key[0], sides, finding, names, clients.get(key[0]))
        if len({*lifelines, *ends}) > LIFELINES or len(arrows) >= MESSAGES:
            continue
        lifelines += [end for end in dict.fromkeys(ends) if end not in lifelines]
        arrows.append(
            {
                "time": sides[0].time_ns,
                "ends": ends,
                "api": f"{sides[0].api} v{sides[0].version}",
                "field": deciding(sides),
                "claims": list(dict.fromkeys(side.claim for side in sides)),
            }
        )
    if len(arrows) < 2 or len(lifelines) < 2:
        return None
    step = 100 / len(lifelines)
    places = {name: round(step / 2 + step * number, 2) for number, name in enumerate(lifelines)}
    for arrow in arrows:
        start, end = (places[name] for name in arrow.pop("ends"))
        arrow |= {"start": min(start, end), "end": max(start, end), "leftwards": end < start}
    return {
        "lifelines": [{"name": name, "at": at} for name, at in places.items()],
        "arrows": arrows,
        "left": len(exchanges) - len(arrows),
    }


def parties(
    connection: str, sides: Iterable[Side], finding: Finding, names: Mapping[str, str], client_id: str | None
) -> tuple[str, str]:
    """Client and server of a connection by name. A client ID of the finding counts only if the evidence of this
    exchange states it: a finding about one client may rest on what another one did.
    """
    client, server = Conversation.of(connection)
    claims = [side.claim for side in sides]
    words = {word for claim in claims for word in claim.split()}
    controller = next(filter(None, map(CONTROLLER.match, claims)), None)
    own = client_id or next((name for name in finding.client_ids if name in words), client.host)
    return controller[0] if controller else names.get(str(client), own), names.get(str(server), str(server))


def deciding(sides: Iterable[Side]) -> str:
    """The error that an exchange ended with, or else the topic ID that it is about."""
    text = " ".join(side.claim for side in sides)
    found = ERROR.search(text) or ID.search(text)
    return "" if found is None else found[0] if "(" in found[0] else f"ID {found[0][:SHORT]}"
