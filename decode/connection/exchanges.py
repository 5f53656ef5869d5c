"""The result of following: exchanges with their messages, and facts about connections.

An exchange appears once, when its outcome is known; a connection appears again whenever its facts changed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wirecheck.decode.peer import Conversation
from wirecheck.decode.wire import together

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirecheck.decode.peer import Peer
    from wirecheck.decode.wire import Messages

Ints = NDArray[np.int64]

OUTCOMES = (
    "answered", "no-response-due", "request-unseen", "response-unseen", "closed-by-server", "closed-by-client",
    "pending", "orphan",
)  # fmt: skip
ANSWERED, NO_RESPONSE_DUE, REQUEST_UNSEEN, RESPONSE_UNSEEN = 0, 1, 2, 3
CLOSED_BY_SERVER, CLOSED_BY_CLIENT, PENDING, ORPHAN = 4, 5, 6, 7


class Gap(NamedTuple):
    """Bytes that were sent and not captured. No message of another time is missing."""

    noticed_ns: int
    side: int
    """0 requests, 1 responses."""
    size: int
    since_ns: int
    """Its side had shown then that it had sent nothing of them; a message of which the rest is missing began then."""
    until_ns: int
    """Behind it messages are read again; where none lies between, when its bytes had been sent. -1 before that."""


@dataclass(frozen=True, slots=True)
class Connection:
    """One client endpoint and one server endpoint, from a SYN or the first packet seen to the next SYN or silence."""

    client: Peer
    server: Peer
    started_ns: int
    """Time of its first captured packet; distinguishes connections that use the same ports."""
    last_ns: int
    from_start: bool
    """The SYN of a side was seen."""
    role_by: str
    """How client and server are known: syn, content, or port (a guess: the higher port is the client's)."""
    protocol: str
    """kafka, tls, other or undecided."""
    sasl: str | None
    """Mechanism of the last handshake, or "raw" where only tokens were seen."""
    frames: int
    payload_bytes: int
    requests: int
    responses: int
    raw_frames: int
    """SASL tokens without Kafka header."""
    unseen_request_bytes: int
    unseen_response_bytes: int
    gaps: tuple[Gap, ...]
    """The first ones."""
    resynchronised: int
    skipped_bytes: int
    """Captured, but outside any known message boundaries."""
    conflicting_bytes: int
    """Bytes that came again with another value; the first stayed."""
    closed_by: str | None
    """client-fin, server-fin, client-rst or server-rst: whatever came first."""
    close_ns: int
    out_of_order: int
    limits_hit: int
    decrypted: bool = False
    """An agent shows it without its TLS, by sequence numbers of its own; what other agents show is not followed."""
    over: bool = False
    """It has left the follower: these are its last facts."""
    cut_bytes: int = 0
    """That the capture's snap length cut off."""
    cut_segments: int = 0
    proxied_for: Peer | None = None
    """The client that its PROXY header names. Any host can send one, so it is only shown; `client` is who connected."""
    unlisted: int = 0
    """So many connections that are over, got no answer and have no rows. Of one it is the only fact that differs; of
    several, which asked for nothing, the facts are sums and the peers are unnamed.
    """
    retransmitted: int = 0
    """Segments with bytes that had been sent before, as one agent shows them."""
    server_round_ns: int = 0
    """From the capture point to the server and back: SYN to SYN-ACK. 0: the handshake was not seen whole."""
    client_round_ns: int = 0
    """From the capture point to the client and back: SYN-ACK to ACK."""
    client_hash: int = -1
    """Of the client ID that its requests carry (`hash_of_client`); -1 unknown."""
    answered_in: str | None = None
    """http, tls or ssh: what the server's first bytes are, where requests are Kafka's and these are not."""
    tls_unfinished: bool = False
    """Its TLS handshake was given up, by a side that closed: it carried no content."""
    unacceptable: int = 0
    """Segments whose numbers are none of the connection's: they changed nothing (RFC 9293 3.10.7.4)."""

    blocked_until_ns: int = 0
    """When the client could take data again, after its receive window was 0: the server could not send a response
    before. Far ahead if it still is 0, 0 if it never was.
    """
    answered_ns: int = 0
    """When the last request was sent that was answered: those before it wait for nothing, seen or not."""
    silent: bool = False
    """It began before the capture, and its server sent nothing since: its sequence number is the same all the time."""

    @property
    def network_ns(self) -> int:
        """From the client to the server and back; 0 where it is not known."""
        known = self.server_round_ns and self.client_round_ns
        return self.server_round_ns + self.client_round_ns if known else 0

    @property
    def is_guess(self) -> bool:
        """Who is its client may still turn out to be otherwise: nothing is counted under its name yet."""
        return self.role_by == "port" and self.protocol == "undecided" and not self.over

    @property
    def name(self) -> str:
        return _name(self.client, self.server)

    @property
    def is_encrypted(self) -> bool:
        """Whether it carries content that TLS hides: not one whose handshake was given up."""
        return self.protocol == "tls" and not self.tls_unfinished


@lru_cache(1 << 14)
def _name(client: Peer, server: Peer) -> str:
    """Asked for with every claim that a connection makes."""
    return str(Conversation(client, server))


PER_MESSAGE = ("connection", "ts_ns", "ts_last_ns", "source", "frame_first", "frame_last", "stream_offset",
               "gap_bytes", "serial", "direction")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Exchanges:
    """Exchanges of one call: n messages, m exchanges that point to them."""

    label: str
    names: tuple[str, ...]
    """Agents and sources."""
    connections: tuple[Connection, ...]
    """Those whose facts changed in this call, the ones of the messages among them."""
    messages: Messages
    connection: NDArray[np.int32]
    """Per message: index into connections."""
    ts_ns: Ints
    """Per message: time of the packet with its first byte."""
    ts_last_ns: Ints
    source: NDArray[np.int32]
    """Per message: index into names."""
    frame_first: Ints
    frame_last: Ints
    stream_offset: Ints
    """Where its size stood in its direction: 0 is the first byte after SYN, 2^32 the first seen if there was none."""
    gap_bytes: Ints
    """Per message: how many of its left-out bytes were never seen, because of a gap in its middle."""
    serial: Ints
    """Per message: number of its connection in the follower."""
    direction: NDArray[np.int8]
    """Per message: 0 from the lower endpoint, 1 from the higher; with serial and stream_offset, its place."""
    request: Ints
    """Per exchange: message, or -1."""
    response: Ints
    outcome: NDArray[np.int8]
    out_of_order: NDArray[np.bool_]
    refused_connections: int = field(default=0)
    """Connections not followed because too many were open, since the beginning."""

    def __len__(self) -> int:
        return len(self.outcome)

    def only(self, numbers: Ints) -> Exchanges:
        """These exchanges with their messages, in that order; connections stay as they are."""
        halves = self.request[numbers], self.response[numbers]
        rows = np.unique(np.concatenate(halves))
        rows = rows[rows >= 0]
        request, response = (np.where(half >= 0, np.searchsorted(rows, half), -1) for half in halves)
        return replace(
            self,
            messages=self.messages.take(rows),
            **{name: getattr(self, name)[rows] for name in PER_MESSAGE},
            request=request, response=response,
            outcome=self.outcome[numbers], out_of_order=self.out_of_order[numbers],
        )  # fmt: skip

    def units(self) -> list[Ints]:
        """The numbers of exchanges that are decoded in one piece: one, or all that a connection left unanswered, since
        of these each waits for those before it.
        """
        numbers = np.arange(len(self))
        unanswered = np.isin(self.outcome, (CLOSED_BY_SERVER, CLOSED_BY_CLIENT, PENDING)) & (self.request >= 0)
        of = np.where(unanswered, self.connection[self.first], -1 - numbers)
        order = np.argsort(of, kind="stable")
        return np.split(order, np.flatnonzero(np.diff(of[order])) + 1) if len(self) else []

    def divided(self, pieces: Sequence[Ints]) -> list[Exchanges]:
        """Exchanges by number, in pieces: each connection is in the pieces that have its messages, and one that has
        none is in the first. It is over in one piece only, so that no sum over connections counts it twice.
        """
        found = [self.only(numbers) for numbers in pieces]
        speaking = [np.unique(piece.connection) for piece in found]
        silent = np.setdiff1d(np.arange(len(self.connections)), np.concatenate(speaking))
        kept = [np.union1d(speaking[0], silent), *speaking[1:]]
        first = {number: place for place in reversed(range(len(kept))) for number in kept[place].tolist()}
        return [
            replace(
                piece,
                connections=tuple(
                    self.connections[n] if first[n] == place else replace(self.connections[n], over=False)
                    for n in numbers.tolist()
                ),
                connection=np.searchsorted(numbers, piece.connection).astype(np.int32),
            )
            for place, (piece, numbers) in enumerate(zip(found, kept, strict=True))
        ]

    @property
    def exchange(self) -> Ints:
        """Per message: the exchange that points to it."""
        found, numbers = np.full(len(self.messages), -1, np.int64), np.arange(len(self))
        for half in (self.request, self.response):
            found[half[half >= 0]] = numbers[half >= 0]
        return found

    @property
    def first(self) -> Ints:
        """Per exchange: its request, or its response where the request was not seen."""
        return np.where(self.request >= 0, self.request, self.response)

    @property
    def request_of(self) -> Ints:
        """Per message: the request that it answers; -1 where there is none."""
        found, answered = np.full(len(self.messages), -1, np.int64), self.response >= 0
        found[self.response[answered]] = self.request[answered]
        return found


def joined(parts: Sequence[Exchanges]) -> Exchanges:
    """What several calls of one follower gave, as one; of a connection that several of them name the last facts."""
    if len(parts) == 1:
        return parts[0]
    number_of = {name: number for number, name in enumerate(dict.fromkeys(one for part in parts for one in part.names))}
    connections, place = _once([connection for part in parts for connection in part.connections])
    first = [0, *accumulate(len(part.connections) for part in parts)]
    messages = [0, *accumulate(len(part.messages) for part in parts)]
    columns = {name: [getattr(part, name) for part in parts] for name in (*PER_MESSAGE, "outcome", "out_of_order")}
    columns["connection"] = [place[part.connection + at] for part, at in zip(parts, first, strict=False)]
    columns["source"] = [np.array([number_of[name] for name in part.names], np.int32)[part.source] for part in parts]
    for half in ("request", "response"):
        columns[half] = [_moved(getattr(part, half), at) for part, at in zip(parts, messages, strict=False)]
    return Exchanges(
        parts[0].label, tuple(number_of), connections,
        messages=together([part.messages for part in parts]),
        **{name: np.concatenate(pieces) for name, pieces in columns.items()},
        refused_connections=parts[-1].refused_connections,
    )  # fmt: skip


def _once(every: Sequence[Connection]) -> tuple[tuple[Connection, ...], NDArray[np.int32]]:
    """Each connection once, with its last facts; and which of these each was. What stands for several stays apart."""
    kept: dict[tuple[Peer, Peer, int] | int, Connection] = {}
    place: list[int] = []
    places: dict[tuple[Peer, Peer, int] | int, int] = {}
    for number, one in enumerate(every):
        low, high = (one.client, one.server) if one.client < one.server else (one.server, one.client)
        key = number if one.unlisted else (low, high, one.started_ns)
        place.append(places.setdefault(key, len(places)))
        kept[key] = one
    return tuple(kept.values()), np.array(place, np.int32)


def _moved(half: Ints, at: int) -> Ints:
    return np.where(half >= 0, half + at, half)
