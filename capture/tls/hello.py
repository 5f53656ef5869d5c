"""ClientHello, ServerHello and NewSessionTicket, as far as keys depend on them (RFC 8446 4.1, RFC 5246 7.4, RFC 7366).

Every length is checked; an invalid message gives nothing. What waits per direction is bounded.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

CLIENT_HELLO, SERVER_HELLO, NEW_SESSION_TICKET = 1, 2, 4
HELLOS = {CLIENT_HELLO, SERVER_HELLO, NEW_SESSION_TICKET}
TLS_1_2, TLS_1_3 = 0x0303, 0x0304
ENCRYPT_THEN_MAC, SESSION_TICKET, EARLY_DATA, SUPPORTED_VERSIONS = 22, 35, 42, 43
RETRY = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")
"""Random of a HelloRetryRequest (RFC 8446 4.1.3)."""
MOST_BYTES = 1 << 16
"""Of a message that is looked at; a larger one, as of many certificates, is passed over."""


@dataclass(frozen=True, slots=True)
class Hello:
    """Of a client or a server."""

    random: bytes
    session: bytes
    version: int
    suite: int = 0
    """Of a server."""
    extensions: dict[int, bytes] = field(default_factory=dict)


class LyingError(ValueError):
    """A length that runs beyond its message."""


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, count: int) -> bytes:
        if count > len(self._data) - self._at:
            raise LyingError
        self._at += count
        return self._data[self._at - count : self._at]

    def number(self, count: int) -> int:
        return int.from_bytes(self.take(count), "big")

    def vector(self, count: int) -> bytes:
        return self.take(self.number(count))

    def __bool__(self) -> bool:
        return self._at < len(self._data)


class Messages:
    """The handshake messages of one direction, out of the contents of its records."""

    def __init__(self) -> None:
        self._data = b""
        self._skip = 0

    def read(self, content: bytes) -> Iterator[tuple[int, bytes]]:
        """(type, body) of those that are whole now, and worth a look."""
        if self._skip:
            content, self._skip = content[self._skip :], max(self._skip - len(content), 0)
        self._data += content
        while len(self._data) >= 4:
            kind, size = self._data[0], int.from_bytes(self._data[1:4], "big")
            if kind not in HELLOS or size > MOST_BYTES:
                self._skip = max(4 + size - len(self._data), 0)
                self._data = self._data[4 + size :]
                continue
            if len(self._data) < 4 + size:
                return
            body, self._data = self._data[4 : 4 + size], self._data[4 + size :]
            yield kind, body


def client_hello(body: bytes) -> Hello:
    """Raises LyingError."""
    reader = _Reader(body)
    version, random, session = reader.number(2), reader.take(32), reader.vector(1)
    reader.vector(2)
    reader.vector(1)
    return Hello(random, session, version, extensions=_extensions(reader))


def server_hello(body: bytes) -> Hello:
    """Raises LyingError."""
    reader = _Reader(body)
    version, random, session, suite = reader.number(2), reader.take(32), reader.vector(1), reader.number(2)
    reader.number(1)
    extensions = _extensions(reader)
    chosen = extensions.get(SUPPORTED_VERSIONS, b"")
    return Hello(random, session, int.from_bytes(chosen, "big") if len(chosen) == 2 else version, suite, extensions)


def session_ticket(body: bytes) -> bytes:
    """Of TLS 1.2 (RFC 5077 3.3). Raises LyingError."""
    reader = _Reader(body)
    reader.take(4)
    return reader.vector(2)


def _extensions(reader: _Reader) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    if reader:
        inside = _Reader(reader.vector(2))
        while inside:
            kind = inside.number(2)
            found[kind] = inside.vector(2)
    return found
