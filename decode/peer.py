"""Who a peer is: an address and a port, and the two peers of a connection, client first.

Knows: the one text form of both ("10.0.0.1:9092", "[fd00::1]:9092", "client>server"), to be written and read.
Refuses to know: where a peer was seen, and whether its address is a name that has to be resolved.
Rule: nothing else splits such a text. Reading is total, as texts come from the wire: a text that is no peer is a host.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

NO_PORT = -1
MOST_TEXTS = 1 << 16


class Peer(NamedTuple):
    host: str
    """An address, IPv6 without brackets, or a name."""
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == NO_PORT else f"{host}:{self.port}"

    @staticmethod
    @lru_cache(MOST_TEXTS)
    def of(text: str) -> Peer:
        host, colon, port = text.rpartition(":")
        if not colon or port.endswith("]"):
            host, port = text, str(NO_PORT)
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        return Peer(host, int(port) if port.removeprefix("-").isdecimal() else NO_PORT)


class Conversation(NamedTuple):
    """The two ends of a connection."""

    client: Peer
    server: Peer

    def __str__(self) -> str:
        return f"{self.client}>{self.server}"

    @staticmethod
    @lru_cache(MOST_TEXTS)
    def of(text: str) -> Conversation:
        client, _, server = text.partition(">")
        return Conversation(Peer.of(client), Peer.of(server))
