"""A peer is an address and a port; a conversation is two peers, client first. Their one text form is written and read
here.

Reading is total, because texts come from the wire: a text that is not a peer is a host.
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


@lru_cache(MOST_TEXTS)
def ends_of(text: str) -> tuple[str, str]:
    """Client and server of a conversation, each as text."""
    client, server = Conversation.of(text)
    return str(client), str(server)
