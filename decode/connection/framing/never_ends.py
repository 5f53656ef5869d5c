"""A message whose rest never comes, because its size was none: other messages are read as its body.

A sender with the right numbers, or damaged bytes, can announce 90 MB. The peer shows it: a server answers what was not
asked as far as is known, a client asks on and on for what is not answered. Only then is the body looked through, and
only a chain of messages, each where the one before ends, is believed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from wirecheck.decode.connection.connection import KAFKA
from wirecheck.decode.connection.framing import recognise
from wirecheck.decode.connection.framing.recognise import int32, taken_request
from wirecheck.decode.connection.framing.resync import FAR, InFlightIds
from wirecheck.decode.connection.stream.frame import NEVER
from wirecheck.decode.connection.stream.modes import IN_SYNC

if TYPE_CHECKING:
    from wirecheck.decode.connection.connection import Connection
    from wirecheck.decode.connection.shared import Shared
    from wirecheck.decode.connection.stream.direction import Direction

ASKED_ON: Final = 8  # requests without a response; clients keep 1 to 5 in flight
CHAIN: Final = 3  # messages, each where the one before ends
LOOKED_THROUGH: Final = 4 << 20  # bytes of the body


def leave_what_never_ends(shared: Shared, connection: Connection, *, at_end: bool) -> bool:
    """Go on at the messages that lie in the body of one that never ends; True if there is one."""
    if connection.client < 0 or connection.protocol != KAFKA:
        return False
    asked, waiting = connection.in_flight.count, connection.early_responses.count
    if waiting > 0 and asked == 0 and (at_end or _is_power_of_two(waiting)):
        asks = connection.requests()
        if _lacks_its_rest(asks):
            return _go_on(connection, asks, _first_request(shared, asks))
    if asked >= ASKED_ON and (at_end or _is_power_of_two(asked)):
        answers = connection.responses()
        if _lacks_its_rest(answers):
            return _go_on(connection, answers, _first_response(shared, connection, answers))
    return False


def _is_power_of_two(count: i64) -> bool:
    """So that a body is not looked through with every message of the peer."""
    return count & (count - 1) == 0


def _lacks_its_rest(direction: Direction) -> bool:
    """Whether a message was begun and is not whole, though nothing that was sent is missing."""
    return direction.mode == IN_SYNC and direction.message_end > direction.next_offset and not direction.has_hole()


def _go_on(connection: Connection, direction: Direction, at: i64) -> bool:
    if at < 0:
        return False
    connection.note_gap(connection.last_ns, direction, direction.message_begin, at, NEVER)
    connection.resynchronised += 1
    direction.find_boundary(at)
    return True


def _first_response(shared: Shared, connection: Connection, direction: Direction) -> i64:
    """Where the first of a chain of responses begins, each to a later request than the one before; -1: nowhere."""
    begin = direction.message_begin
    data = direction.ordered.look(begin, LOOKED_THROUGH)
    ids = InFlightIds(connection.in_flight.messages)
    largest = shared.limits.message_bytes
    for first in range(4, i64(len(data)) - 7):
        at: i64 = first
        before: i64 = -1
        found: i64 = 0
        while found < CHAIN and at + 8 <= i64(len(data)):
            size = int32(data, at)
            place = ids.place(int32(data, at + 4))
            if not 4 <= size <= largest or place <= before:
                break
            found += 1
            before = place
            at += 4 + size
        if found == CHAIN and at <= i64(len(data)):
            return begin + first
    return -1


def _first_request(shared: Shared, direction: Direction) -> i64:
    """Where the first of a chain of requests begins, all of one client; a shorter one has to end with the stream."""
    begin = direction.message_begin
    data = direction.ordered.look(begin, LOOKED_THROUGH)
    n = i64(len(data))
    for first in range(4, n - 11):
        if i64(data[first + 4]) != 0 or i64(data[first + 6]) != 0:
            continue
        at, found = _chain_of_requests(shared, direction, data, first)
        if at == n or (found >= CHAIN and at < n):
            return begin + first
    return -1


def _chain_of_requests(shared: Shared, direction: Direction, data: bytes, at: i64) -> tuple[i64, i64]:
    """(where a chain of requests ends, -1 if it is none; how many they are)."""
    largest = shared.limits.message_bytes
    of = direction.client_hash
    before: i64 = 0
    found: i64 = 0
    while found < CHAIN and at + 12 <= i64(len(data)):
        verdict, _, client = taken_request(shared.known, data[at : at + recognise.HEADER_LIMIT], largest)
        if verdict <= recognise.WAIT or (of >= 0 and client != of):
            return -1, found
        correlation = int32(data, at + 8)
        if found > 0 and not 0 < correlation - before <= FAR:
            return -1, found
        of, before = client, correlation
        found += 1
        at += 4 + int32(data, at)
    return (at if found > 1 else -1), found
