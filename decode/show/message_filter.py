"""Which messages to show, selected by API names, addresses and topics.

What an Envelope carries passes as the Envelope itself does. A field that is not set selects everything. A wrong value
raises ValueError with the text for the user.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

import numpy as np

from wirecheck.decode.api_names import names
from wirecheck.decode.layouts.layout import SIDES
from wirecheck.wording import TimeSpan, span_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wirecheck.decode.connection.follower import Connection, Exchanges
    from wirecheck.decode.show.learned_names import Places

Line = dict[str, Any]
End = tuple[str, int | None]
HEX_ID = re.compile("[0-9a-fA-F]{32}")


@dataclass
class Filter:
    """Which messages are wanted; empty fields want all. ValueError for what no message can have."""

    apis: tuple[str, ...] = ()
    """API names, in any case, or keys."""
    connection: str | None = None
    """One end as ip:port or ip, or both as ip:port>ip:port, client first."""
    topic: str | None = None
    """A topic's name, or its id in base64 or in hex, that the message must carry."""
    side: str | None = None
    """request or response."""
    version: int | None = None
    """Of the API."""
    frames: tuple[int, ...] = ()
    """Numbers of packets in their captures, as Wireshark counts them, that must carry some of the message."""
    ports: tuple[int, ...] = ()
    """Of connections with one of these ports; others are not followed."""
    client: str | None = None
    """The client id of the request; * stands for any characters."""
    since: TimeSpan | None = None
    until: TimeSpan | None = None
    """Captured then, both ends included; a time of day is of the day on which a capture begins."""
    error: bool = False
    """With an error code, or malformed."""

    def __post_init__(self) -> None:
        _ = self.keys, self.ends  # raises ValueError now if one of them is wrong
        if self.topic == "":
            raise ValueError("a topic has a name or an ID")

    @cached_property
    def keys(self) -> frozenset[int]:
        return frozenset(key_of(api) for api in self.apis)

    @cached_property
    def ends(self) -> tuple[End, ...]:
        ends = self.connection.split(">") if self.connection is not None else []
        if len(ends) > 2:
            raise ValueError(f"{self.connection}: a connection has two ends")
        return tuple(map(endpoint, ends))

    @cached_property
    def topics(self) -> frozenset[str]:
        """The texts that mean the topic: bodies have ids in base64."""
        text = self.topic or ""
        plain = text.replace("-", "")
        found = base64.urlsafe_b64encode(bytes.fromhex(plain)) if HEX_ID.fullmatch(plain) else b""
        return frozenset({text, found.rstrip(b"=").decode()} - {""})

    @cached_property
    def called(self) -> re.Pattern[str]:
        """What client ids must match."""
        return re.compile(re.escape(self.client or "*").replace(r"\*", ".*"), re.DOTALL)

    def rows(self, exchanges: Exchanges, inside: dict[int, Line]) -> list[int]:
        """Messages that pass by what is known before their values are built; `inside`: what Envelopes carry, by row."""
        messages, keys = exchanges.messages, self.keys
        here = np.array([self.passes(connection) for connection in exchanges.connections], np.bool_)
        passing = here[exchanges.connection] if len(messages) else np.zeros(0, np.bool_)
        if self.since is not None:
            passing &= exchanges.ts_ns >= self.since.ns
        if self.until is not None:
            passing &= exchanges.ts_ns <= self.until.last_ns
        if self.side is not None:
            passing &= messages.side == SIDES.index(self.side)
        if self.frames:
            first, last = exchanges.frame_first[:, None], exchanges.frame_last[:, None]
            passing &= ((first <= np.array(self.frames)) & (last >= np.array(self.frames))).any(axis=1)
        asked = np.ones(len(messages), np.bool_)
        if keys:
            asked &= np.isin(messages.key, list(keys))
        if self.version is not None:
            asked &= messages.version == self.version
        for i, carried in inside.items():
            asked[i] |= any(
                (not keys or layer["key"] in keys) and self.version in {None, layer["version"]}
                for layer in layers(carried)
            )
        rows: list[int] = np.flatnonzero(passing & asked).tolist()
        return rows

    def passes(self, connection: Connection) -> bool:
        ends = self.ends
        if len(ends) == 2:
            return matches(ends[0], connection.client) and matches(ends[1], connection.server)
        return all(matches(end, connection.client) or matches(end, connection.server) for end in ends)

    def settle(self, first_ns: int) -> None:
        """Set the day of `since` and `until` from the time of the first frame, in nanoseconds since 1970."""
        self.since, self.until = span_of(self.since, self.until, first_ns)

    def names(self, client: str | None, inside: Line | None) -> bool:
        """Whether it is of the client that was asked for, or carries something that is."""
        client_ids = [client, *(layer["client_id"] for layer in layers(inside))]
        return self.client is None or any(one is not None and self.called.fullmatch(one) for one in client_ids)

    def keeps(self, found: Line, topics: frozenset[str], places: Places) -> bool:
        """Whether a line passes by its value and its place; `topics` are the texts that mean the topic."""
        if self.error and not any(wrong(layer) for layer in layers(found)):
            return False
        bodies = [layer.get("body") for layer in layers(found)]
        if self.topic is not None and topics.isdisjoint(texts(bodies)):
            return False
        return not self.frames or self.carried(found, places)

    def carried(self, found: Line, places: Places) -> bool:
        """By a frame that was asked for: one of its direction, as frames of other connections come in between."""
        first, last, source = found["frame"]["first"], found["frame"]["last"], found["frame"]["source"]
        here = [places.get((source, number)) for number in self.frames if first <= number <= last]
        return any(place is not None and (place.src, place.dst) == (found["src"], found["dst"]) for place in here)


def wrong(line: Line) -> bool:
    return "malformed" in line or bool(line["summary"].errors)


def endpoint(text: str) -> End:
    """An address, and a port or None. IPv6 with a port stands in brackets."""
    host, colon, port = text.rpartition(":")  # not `Peer.of`, which reads any text: this one names what is wrong
    if not host or (":" in host and not host.endswith("]")):
        host, colon, port = text, "", ""
    try:
        address = str(ip_address(host.removeprefix("[").removesuffix("]")))
    except ValueError:
        raise ValueError(
            f"{text}: not an address; give IP, IP:PORT or IP:PORT>IP:PORT (client first), IPv6 as [fd00::1]:9092"
        ) from None
    if colon and not (port.isdecimal() and 0 < int(port) < 1 << 16):
        raise ValueError(f"{text}: {port or 'nothing'} is not a port")
    return address, int(port) if colon else None


def matches(selected: End, end: tuple[str, int]) -> bool:
    return selected[0] == end[0] and selected[1] in {None, end[1]}


def layers(line: Line | None) -> Iterator[Line]:
    """A line, what it carries, what that carries, and so on."""
    while line is not None:
        yield line
        line = line.get("enveloped")


def texts(body: Any) -> Iterator[str]:
    """Every string in a body."""
    if isinstance(body, str):
        yield body
    elif isinstance(body, dict | list):
        for inner in body.values() if isinstance(body, dict) else body:
            yield from texts(inner)


def key_of(api: str) -> int:
    """The key of an API named in any case, or given as its key. ValueError if there is none."""
    keys = {name.lower(): key for key, name in names().items()}
    if api.lower() in keys:
        return keys[api.lower()]
    if api.isdecimal() and int(api) in names():
        return int(api)
    near = [name for name in sorted(names().values()) if api and name.lower().startswith(api.lower())]
    near = near or [names()[keys[name]] for name in get_close_matches(api.lower(), keys, 3)]
    if near:
        raise ValueError(f"{api}: no such API; did you mean {', '.join(near)}?")
    raise ValueError(f"{api}: no such API; Kafka calls them {', '.join(sorted(names().values()))}")
