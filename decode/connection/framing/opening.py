"""The protocol of a connection by its first bytes: PROXY headers, Kafka, TLS, a GSS-API token, or something else.

While nothing is decided, nothing is cut. A first request that no known client sends must be confirmed by the server's
answer or the same client's next request. PROXY protocol: haproxy.org/download/2.9/doc/proxy-protocol.txt.
"""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from wirecheck.decode.connection.connection import KAFKA, OTHER, TLS
from wirecheck.decode.connection.framing import recognise
from wirecheck.decode.connection.framing.recognise import gss_token, int32, opening_request, taken_request, tls_record
from wirecheck.decode.connection.stream.direction import DOUBTED, READABLE
from wirecheck.decode.connection.stream.modes import OPENING

if TYPE_CHECKING:
    from wirecheck.decode.connection.connection import Connection
    from wirecheck.decode.connection.shared import Shared
    from wirecheck.decode.connection.stream.direction import Direction

FAR: Final = 1024  # bytes, enough for client id, transactional id and acks
FIRST_REQUEST: Final = 256  # bytes of a first request waited for before its connection is judged
# --- PROXY protocol
V1: Final = b"PROXY "
V2: Final = b"\r\n\r\n\0\r\nQUIT\n"
V1_MOST_BYTES: Final = 107  # its longest line
V2_BYTES: Final = 16  # signature, version and command, family and transport, length of the rest
PROXY: Final = 0x21  # version 2: a connection on behalf of a client; LOCAL (0x20): of the proxy itself
LOCAL: Final = 0x20
ADDRESS_BYTES: Final = (0, 4, 16, 108)  # by family: unspecified, IPv4, IPv6, UNIX
UNIX: Final = 3
V1_ADDRESSES: Final = re.compile(rb"PROXY TCP(4|6) ([0-9a-fA-F:.]+) ([0-9a-fA-F:.]+) (\d{1,5}) (\d{1,5})\r\n")
V1_UNKNOWN: Final = re.compile(rb"PROXY UNKNOWN(?: [ -~]*)?\r\n")
NO_HEADER: Final = 0
MORE: Final = -1  # the header may go on behind the bytes at hand


@final
class ProxyHeader:
    """The header that a proxy sends before its client's first byte."""

    def __init__(self, length: i64, shown: i64 = 0, host: bytes = b"", port: i64 = 0) -> None:
        self.length: i64 = length
        """Bytes, or NO_HEADER or MORE."""
        self.shown: i64 = shown
        """How many of them say whom it names; the rest is what proxies add."""
        self.host: bytes = host
        """Address of the client it names, 4 or 16 bytes; empty if it names none."""
        self.port: i64 = port


def proxy_header(data: bytes) -> ProxyHeader:
    """The header that these bytes, the first of a connection, begin with."""
    if data.startswith(V2[: len(data)]):
        return _version_2(data) if len(data) >= V2_BYTES else ProxyHeader(MORE)
    if not data.startswith(V1[: len(data)]):
        return ProxyHeader(NO_HEADER)
    length: i64 = data.find(b"\r\n", 0, V1_MOST_BYTES) + 2
    if length < 2:
        return ProxyHeader(MORE if len(data) < V1_MOST_BYTES else NO_HEADER)
    named = V1_ADDRESSES.match(data)
    if named is None:
        return ProxyHeader(length, length) if V1_UNKNOWN.fullmatch(data[:length]) else ProxyHeader(NO_HEADER)
    try:
        hosts = [ip_address(named[number].decode()) for number in (2, 3)]
    except ValueError:
        return ProxyHeader(NO_HEADER)
    if {host.version for host in hosts} != {int(named[1])} or max(int(named[4]), int(named[5])) > 0xFFFF:
        return ProxyHeader(NO_HEADER)
    return ProxyHeader(length, length, hosts[0].packed, int(named[4]))


def _version_2(data: bytes) -> ProxyHeader:
    command, family, transport = i64(data[12]), i64(data[13]) >> 4, i64(data[13]) & 15
    rest = i64(data[14]) << 8 | i64(data[15])
    if command not in (PROXY, LOCAL) or family > UNIX or transport > 2:
        return ProxyHeader(NO_HEADER)
    size: i64 = ADDRESS_BYTES[family]
    ports: i64 = 2 if 0 < family < UNIX else 0
    if command == LOCAL or family == 0:
        return ProxyHeader(V2_BYTES + rest, V2_BYTES)
    if rest < 2 * (size + ports):
        return ProxyHeader(NO_HEADER)
    if family == UNIX:
        return ProxyHeader(V2_BYTES + rest, V2_BYTES)
    shown = V2_BYTES + 2 * (size + ports)
    if i64(len(data)) < shown:
        return ProxyHeader(MORE)
    port = i64(data[V2_BYTES + 2 * size]) << 8 | i64(data[V2_BYTES + 2 * size + 1])
    return ProxyHeader(V2_BYTES + rest, shown, data[V2_BYTES : V2_BYTES + size], port)


def on_opening(shared: Shared, connection: Connection, direction: Direction) -> bool:
    """The client's first bytes, of which at least the size is there; False: more are needed."""
    at, largest = direction.message_begin, shared.limits.message_bytes
    have = direction.next_offset - at
    data = direction.ordered.look(at, min(have, FAR))
    n, size = i64(len(data)), int32(data, 0)
    if connection.proxied == NO_HEADER:
        header = proxy_header(data)
        if header.length != NO_HEADER:
            return _on_proxy_header(connection, direction, header, whole=n == have)
    if tls_record(data):
        connection.turn_off(TLS)
        return True
    if n >= 6 and gss_token(data):
        connection.tokens_may_follow = True
        connection.sasl = recognise.GSSAPI
        direction.is_kafka()
        return True
    if size < recognise.SHORTEST_REQUEST or size > largest:
        connection.turn_off(OTHER)
        return True
    enough = min(size + 4, FIRST_REQUEST)
    if have < enough:
        direction.need = at + min(enough, have + 1)
        if n >= 12 and taken_request(shared.known, data, largest)[0] == recognise.NO:
            connection.turn_off(OTHER)
            return True
        return False
    verdict, _, client = opening_request(shared.known, data[: size + 4], largest)
    if verdict == recognise.STRONG:
        _believe(connection, direction)
    elif n < enough:
        direction.lose_boundary()
    elif verdict == recognise.WAIT and n == have and have < size + 4:
        direction.need = direction.next_offset + 1
        return False
    elif verdict in (recognise.WEAK, recognise.DOUBT) and _may_wait(shared, direction):
        return _on_doubted(shared, connection, direction, data, client)
    else:
        connection.turn_off(OTHER)
    return True


def _on_proxy_header(connection: Connection, direction: Direction, header: ProxyHeader, *, whole: bool) -> bool:
    """What comes behind the header is the connection's first message. `whole`: nothing at hand is missing."""
    if header.length == MORE:
        if whole:
            direction.need = direction.next_offset + 1
            return False
        direction.lose_boundary()
        return True
    end = direction.message_begin + header.length
    direction.need = end
    if direction.next_offset < end:
        return False
    connection.proxied_for(header.length, header.host, header.port)
    direction.ordered.detach(end)
    direction.expect_message(end)
    return True


def _may_wait(shared: Shared, direction: Direction) -> bool:
    limits, waiting = shared.limits, direction.ordered
    return waiting.kept <= limits.search_bytes and waiting.count <= limits.search_pieces


def _believe(connection: Connection, direction: Direction) -> None:
    """The first request, at the boundary of this direction, is Kafka's."""
    connection.protocol = KAFKA
    direction.is_kafka()
    direction.message_state = READABLE
    direction.need = direction.message_begin + 4


def _on_doubted(shared: Shared, connection: Connection, direction: Direction, data: bytes, client: i64) -> bool:
    """The first request of a connection is none that clients send: the same client's next one confirms it."""
    correlation = int32(data, 8)
    end = direction.message_begin + 4 + int32(data, 0)
    direction.message_state = DOUBTED
    direction.correlation = correlation
    direction.need = direction.next_offset + 1
    if direction.next_offset <= end:
        return False
    data = direction.ordered.look(end, min(direction.next_offset - end, FAR))
    verdict, _, following = taken_request(shared.known, data, shared.limits.message_bytes)
    if verdict == recognise.NO:
        connection.turn_off(OTHER)
    elif verdict != recognise.WAIT and following == client and int32(data, 8) > correlation:
        _believe(connection, direction)
    else:
        return False
    return True


def believe_whole(shared: Shared, connection: Connection, direction: Direction) -> bool:
    """Nothing follows: a doubted request of a draft's inline form is believed if it ends exactly where the stream ends.
    True if it is one.
    """
    if direction.mode != OPENING or direction.message_state != DOUBTED:
        return False
    begin = direction.message_begin
    data = direction.ordered.look(begin, min(direction.next_offset - begin, FAR))
    if len(data) < 14 or direction.next_offset != begin + 4 + int32(data, 0):
        return False
    if recognise.may_be_inline(shared.known, data):
        _believe(connection, direction)
    return connection.protocol == KAFKA


def confirmed_by_answer(shared: Shared, connection: Connection, answers: Direction) -> bool:
    """Whether the server's first bytes answer a doubted request; what answers none is not Kafka's.

    The id must not be 0: zeros are everywhere.
    """
    if answers.ordered.kept > shared.limits.search_bytes:
        connection.turn_off(OTHER)
        return False
    asked = connection.other(answers)
    begin = answers.message_begin
    if asked.mode != OPENING or asked.message_state != DOUBTED or answers.next_offset - begin < 8:
        return False
    data = answers.ordered.look(begin, 8)
    if len(data) < 8:
        return False
    size, correlation = int32(data, 0), int32(data, 4)
    if 4 <= size <= shared.limits.message_bytes and correlation == asked.correlation:
        if correlation != 0:
            _believe(connection, asked)
        return connection.protocol == KAFKA
    connection.turn_off(OTHER)
    return False
