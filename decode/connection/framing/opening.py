"""What a connection is, by its first bytes: Kafka, TLS, a GSS-API token of old Kerberos, or something else.

Knows: when the first request is believed at once, and who has to confirm one that no client we know sends: the server's
answer, or the same client's next request.
Refuses to know: connections whose first bytes were not seen (resync.py), and headers (recognise.py).
Rule: what answers no request of ours is not Kafka's; while nothing is decided, nothing is cut.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from wirecheck.decode.connection.connection import KAFKA, OTHER, TLS
from wirecheck.decode.connection.framing.recognise import (
    DOUBT,
    GSSAPI,
    NO,
    SHORTEST_REQUEST,
    STRONG,
    WAIT,
    WEAK,
    gss_token,
    opening_request,
    taken_request,
    tls_record,
)
from wirecheck.decode.connection.stream.marks import DOUBTED, READABLE
from wirecheck.decode.connection.stream.modes import OPENING

if TYPE_CHECKING:
    from wirecheck.decode.connection.connection import Connection
    from wirecheck.decode.connection.shared import Shared
    from wirecheck.decode.connection.stream.direction import Direction

FAR: Final = 1024  # bytes, enough for client id, transactional id and acks
FIRST_REQUEST: Final = 256  # bytes of a first request waited for before its connection is judged


def on_opening(shared: Shared, connection: Connection, direction: Direction) -> bool:
    """The client's first bytes, of which at least the size is there; False: more are needed."""
    at, window, largest = direction.message_begin, shared.window, shared.bounds.message_bytes
    have = direction.next_offset - at
    n = direction.ordered.look(window, at, min(have, FAR))
    size = window.int32(0)
    if n >= 5 and tls_record(window.data, window.at, window.end):
        connection.turn_off(TLS)
        return True
    if n >= 6 and gss_token(window, size):
        connection.tokens_may_follow = True
        connection.sasl = GSSAPI
        direction.is_kafka()
        return True
    if size < SHORTEST_REQUEST or size > largest:
        connection.turn_off(OTHER)
        return True
    enough = min(size + 4, FIRST_REQUEST)
    if have < enough:
        direction.need = at + min(enough, have + 1)
        if n >= 12 and taken_request(shared.known, window.data, window.at, window.end, largest)[0] == NO:
            connection.turn_off(OTHER)
            return True
        return False
    end = window.at + min(n, size + 4)
    verdict, _, client = opening_request(shared.known, window.data, window.at, end, largest)
    if verdict == STRONG:
        _believe(connection, direction)
    elif n < enough:
        direction.lose_boundary()
    elif verdict == WAIT and n == have and have < size + 4:
        direction.need = direction.next_offset + 1
        return False
    elif verdict in (WEAK, DOUBT) and _may_wait(shared, direction):
        return _on_doubted(shared, connection, direction, client)
    else:
        connection.turn_off(OTHER)
    return True


def _may_wait(shared: Shared, direction: Direction) -> bool:
    bounds, waiting = shared.bounds, direction.ordered
    return waiting.kept <= bounds.search_bytes and waiting.count <= bounds.search_chunks


def _believe(connection: Connection, direction: Direction) -> None:
    """The first request, at the boundary of this direction, is Kafka's."""
    connection.protocol = KAFKA
    direction.is_kafka()
    direction.message_state = READABLE
    direction.need = direction.message_begin + 4


def _on_doubted(shared: Shared, connection: Connection, direction: Direction, client: i64) -> bool:
    """The first request of a connection is none that clients send: the same client's next one confirms it."""
    window, largest = shared.window, shared.bounds.message_bytes
    correlation = window.int32(8)
    end = direction.message_begin + 4 + window.int32(0)
    direction.message_state = DOUBTED
    direction.correlation = correlation
    direction.need = direction.next_offset + 1
    if direction.next_offset <= end:
        return False
    direction.ordered.look(window, end, min(direction.next_offset - end, FAR))
    verdict, _, following = taken_request(shared.known, window.data, window.at, window.end, largest)
    if verdict == NO:
        connection.turn_off(OTHER)
    elif verdict != WAIT and following == client and window.int32(8) > correlation:
        _believe(connection, direction)
    else:
        return False
    return True


def confirmed_by_answer(shared: Shared, connection: Connection, answers: Direction) -> bool:
    """Whether the server's first bytes answer a doubted request; what answers none is not Kafka's.

    The id must not be 0: zeros are everywhere.
    """
    if answers.ordered.kept > shared.bounds.search_bytes:
        connection.turn_off(OTHER)
        return False
    asked = connection.other(answers)
    begin = answers.message_begin
    if asked.mode != OPENING or asked.message_state != DOUBTED or answers.next_offset - begin < 8:
        return False
    window = shared.window
    if answers.ordered.look(window, begin, 8) < 8:
        return False
    size, correlation = window.int32(0), window.int32(4)
    if 4 <= size <= shared.bounds.message_bytes and correlation == asked.correlation:
        if correlation != 0:
            _believe(connection, asked)
        return connection.protocol == KAFKA
    connection.turn_off(OTHER)
    return False
