"""How long clients wait: from when a server could answer, how long a request lets it take, and which requests their
client gave up.

Rule: only a connection of which no byte is missing since a request was sent shows that no response came. While the
client's TCP receive window is 0, no server can send one.
"""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from wirecheck.decode.api_names import key_of, name_of
from wirecheck.decode.columns import Table, value_per
from wirecheck.decode.connection.connection import FIRST_GAPS
from wirecheck.decode.connection.exchanges import CLOSED_BY_CLIENT, PENDING, Connection, Exchanges
from wirecheck.decode.message import Decoded, Status
from wirecheck.decode.wire import REQUEST, RESPONSE

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
TablesOf = Callable[[str], Mapping[str, Table]]
"""The tables of the requests of an API; empty where none was decoded."""
SECOND_NS, MILLISECOND_NS = 1_000_000_000, 1_000_000
WAITS = ("max_wait_ms", "timeout_ms")
"""Fields with the time that a server may take."""
ROUND_NS = 300_000_000_000
"""Answers to these wait for all members of a group: its rebalance timeout, by default max.poll.interval.ms."""
ROUNDS = {"JoinGroup", "SyncGroup"}
OVERDUE_NS = 5_000_000_000
"""A request that was open so much longer than it let its server take waited."""
SHORTEST_NS = 2 * SECOND_NS
"""No client gives up sooner: of the libraries known, kafka-python waits the least."""
PRODUCE = key_of("Produce")


def answerable_ns(exchanges: Exchanges, message: Ints) -> Ints:
    """From when on the server could answer each request: when it was sent, or when the client's TCP receive window that
    was 0 opened again. NEVER where it is still 0.
    """
    blocked_ns = np.array([each.blocked_until_ns for each in exchanges.connections], np.int64)
    return np.maximum(exchanges.ts_ns[message], blocked_ns[exchanges.connection[message]])


def allowed_ns(decoded: Decoded, message: Ints, tables_of: TablesOf) -> Ints:
    """How long each request lets its server take."""
    waits = np.zeros(len(message), np.int64)
    keys = decoded.messages.key[message]
    for key in np.unique(keys).tolist():
        name = name_of(key)
        tables = tables_of(name)
        field = next((f for f in WAITS if f in tables[""].names), None) if tables else None
        mine = np.flatnonzero(keys == key)
        if name in ROUNDS:
            waits[mine] = ROUND_NS
        elif field is not None:
            waits[mine] = np.maximum(0, value_per(message[mine], tables[""], field, absent=0)) * MILLISECOND_NS
    return waits


def due_ns(exchanges: Exchanges, decoded: Decoded, message: Ints, tables_of: TablesOf) -> Ints:
    """Until when each of these requests lets its server take. A broker reads no further from a connection before it has
    answered (Kafka's SocketServer mutes the channel): a request also waits for what those before it are allowed, such
    as a LeaveGroup behind a JoinGroup. `message`: all requests of a connection that got no response.
    """
    due = answerable_ns(exchanges, message) + allowed_ns(decoded, message, tables_of)
    connection = exchanges.connection[message]
    order = np.lexsort((message, connection))
    _, starts, counts = np.unique(connection[order], return_index=True, return_counts=True)
    for start, count in zip(starts[counts > 1].tolist(), counts[counts > 1].tolist(), strict=True):
        mine = order[start : start + count]
        due[mine] = np.maximum.accumulate(due[mine])
    return due


def whole(connection: Connection) -> bool:
    """Whether all that both sides sent was captured; of one that began before the capture, once both were seen."""
    return all_read(connection) and (connection.from_start or connection.responses > 0)


def all_read(connection: Connection) -> bool:
    """Whether nothing is missing since the first byte that was seen, and all was understood. Of a connection that began
    before the capture each side is joined in the middle of a message once, where the capture begins.
    """
    joined_once = connection.resynchronised <= (0 if connection.from_start else len((REQUEST, RESPONSE)))
    understood = not connection.skipped_bytes and joined_once
    return connection.protocol == "kafka" and no_byte_missing(connection) and understood


def each_whole_since(exchanges: Exchanges, message: Ints) -> Bools:
    return np.array([whole_since(exchanges, one) for one in message.tolist()], np.bool_)


def whole_since(exchanges: Exchanges, message: int) -> bool:
    """Of a request whether no response to it is among what was not captured, and none of the requests before it that
    are missing waits: all that is missing of its connection was sent before, but for later requests, messages are read
    again behind it, and of the requests there one was answered. Of a write also where its server sends nothing since
    the capture began: who writes does not join groups, for which servers wait.
    """
    of = exchanges.connections[exchanges.connection[message]]
    if whole(of) or missing_before(of, int(exchanges.ts_ns[message])):
        return True
    return bool(of.silent and exchanges.messages.key[message] == PRODUCE and all_read(of))


def missing_before(connection: Connection, since_ns: int) -> bool:
    """Whether all that is missing was sent before. Brokers answer in order: where they seem not to, the response to a
    request that is behind its own in the capture was taken for none.
    """
    lost = connection.unseen_request_bytes + connection.unseen_response_bytes
    listed = len(connection.gaps) < FIRST_GAPS and sum(gap.size for gap in connection.gaps) == lost > 0
    begun = connection.from_start or connection.responses > 0
    in_order = not connection.out_of_order
    if not (listed and begun and in_order) or connection.protocol != "kafka" or is_doubtful(connection):
        return False
    answered_ns = min(since_ns, connection.answered_ns)  # a server may hold a request until another is answered
    return all(
        0 <= gap.until_ns <= (answered_ns if gap.side == REQUEST else since_ns)
        or (gap.side == REQUEST and gap.since_ns > since_ns)
        for gap in connection.gaps
    )


def no_byte_missing(connection: Connection) -> bool:
    """Whether all bytes from the first that was seen are there, understood or not."""
    lost = connection.unseen_request_bytes or connection.unseen_response_bytes
    return not lost and not is_doubtful(connection)


def is_doubtful(connection: Connection) -> bool:
    """Whether it is unknown, for other reasons than gaps, what was sent on it."""
    doubts = (
        connection.cut_bytes,
        connection.conflicting_bytes,
        connection.limits_hit,
        connection.is_guess,
    )
    return any(doubts)


def until_ns(exchanges: Exchanges, rows: Ints) -> Ints:
    """When each exchange ended: with its response, or with the last that is known of its connection."""
    response = exchanges.response[rows]
    ended_ns = np.array([each.close_ns or each.last_ns for each in exchanges.connections], np.int64)
    found: Ints = np.where(
        response >= 0, exchanges.ts_ns[response], ended_ns[exchanges.connection[exchanges.request[rows]]]
    )
    return found


def given_up(exchanges: Exchanges, decoded: Decoded, tables_of: TablesOf) -> Ints:
    """Exchanges that a client ended by closing, after it had waited for longer than it lets the server take. A write
    waits if it takes seconds, whatever it allows, also if the capture ended first.
    """
    rows = np.flatnonzero(np.isin(exchanges.outcome, (CLOSED_BY_CLIENT, PENDING)) & (exchanges.request >= 0))
    if not len(rows):
        return rows
    message = exchanges.request[rows]
    writes = decoded.messages.key[message] == PRODUCE
    ended = (exchanges.outcome[rows] == CLOSED_BY_CLIENT) | writes
    since_ns = answerable_ns(exchanges, message)
    known = each_whole_since(exchanges, message)
    due = np.maximum(due_ns(exchanges, decoded, message, tables_of), since_ns + SHORTEST_NS)
    enough_ns = np.where(writes, since_ns + OVERDUE_NS, due)
    long = until_ns(exchanges, rows) >= enough_ns
    found: Ints = rows[ended & known & long & (decoded.status[message] == Status.OK)]
    return found
