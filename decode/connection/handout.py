"""What one call decided, as other rooms read it: Output's numbers as Exchanges.

Knows: the columns of output.py and how facts about a connection are worded.
Refuses to know: how the rows came about.
Rule: per connection touched a few microseconds, per message nothing but array operations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wirecheck.decode.connection import exchanges as handed_out
from wirecheck.decode.connection.connection import BY_FIN, KAFKA, NOT_CLOSED
from wirecheck.decode.connection.exchanges import Exchanges
from wirecheck.decode.connection.framing.recognise import MECHANISMS
from wirecheck.decode.connection.output import (
    EXCHANGE_COLUMNS,
    M_CONNECTION,
    M_CORRELATION,
    M_DATA,
    M_DIRECTION,
    M_FRAME,
    M_FRAME_LAST,
    M_GAP,
    M_KEY,
    M_OFFSET,
    M_SERIAL,
    M_SIDE,
    M_SIZE,
    M_SOURCE,
    M_SPANS,
    M_TS,
    M_TS_LAST,
    M_VERSION,
    MESSAGE_COLUMNS,
    SPAN_COLUMNS,
)
from wirecheck.decode.connection.stream.in_order import take
from wirecheck.decode.connection.stream.modes import OPEN
from wirecheck.decode.wire import Messages

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from wirecheck.decode.connection.connection import Connection
    from wirecheck.decode.connection.output import Output, Rows
    from wirecheck.decode.connection.stream.in_order import InOrder

    Ints = NDArray[np.int64]

ROLES = ("port", "syn", "content")
PROTOCOLS = ("undecided", "kafka", "tls", "other")
CLOSED_BY = ("client-fin", "server-fin", "client-rst", "server-rst")
End = tuple[str, int]


def exchanges(output: Output, label: str, names: tuple[str, ...], refused: int, *, facts: bool) -> Exchanges:
    """All that a call hands out; with facts about the connections it touched, or without."""
    message, span = columns_of(output.messages, MESSAGE_COLUMNS), columns_of(output.spans, SPAN_COLUMNS)
    exchange = columns_of(output.exchanges, EXCHANGE_COLUMNS)
    return Exchanges(
        label,
        names,
        tuple(map(facts_of, output.touched)) if facts else (),
        _messages(message, np.frombuffer(bytearray().join(output.parts), np.uint8), span),
        message[M_CONNECTION].astype(np.int32),
        message[M_TS],
        message[M_TS_LAST],
        message[M_SOURCE].astype(np.int32),
        message[M_FRAME],
        message[M_FRAME_LAST],
        message[M_OFFSET],
        message[M_GAP],
        message[M_SERIAL],
        message[M_DIRECTION].astype(np.int8),
        exchange[0],
        exchange[1],
        exchange[2].astype(np.int8),
        exchange[3].astype(np.bool_),
        refused,
    )


def in_order(touched: list[Connection]) -> tuple[list[InOrder], list[int]]:
    """(runs of bytes in order, numbers of connections that are over) of those that were tapped."""
    runs = [run for c in touched for side in (c.lower, c.higher) for run in take(c.key, c.serial, side)]
    return runs, [connection.serial for connection in touched if connection.life != OPEN]


def columns_of(rows: Rows, width: int) -> Ints:
    """The columns of the rows, each in one piece."""
    values: Any = rows.values  # a vec, whose memory numpy shares
    found: Ints = np.frombuffer(values, np.int64, rows.used).reshape(-1, width).T.copy()  # the memory is used again
    return found


def _messages(message: Ints, data: NDArray[np.uint8], span: Ints) -> Messages:
    return Messages(
        data,
        np.append(message[M_DATA], len(data)),
        message[M_SIZE],
        np.append(message[M_SPANS], span.shape[1]),
        span[0],
        span[1],
        message[M_SIDE].astype(np.int8),
        message[M_KEY].astype(np.int16),
        message[M_VERSION].astype(np.int16),
        message[M_CORRELATION].astype(np.int32),
    )


def key_of(low: End, high: End, agent: str) -> str:
    """The text by which the follower knows a pair of endpoints, the lower one first."""
    return f"{low[0]} {low[1]} {high[0]} {high[1]} {agent}"


def ends_of(key: str) -> tuple[End, End]:
    low, low_port, high, high_port, _ = key.split(" ", 4)
    return (low, int(low_port)), (high, int(high_port))


def facts_of(connection: Connection) -> handed_out.Connection:
    low, high = ends_of(connection.key)
    side = connection.client
    if side < 0:
        side = 0 if low[1] >= high[1] else 1
    client, server = (low, high) if side == 0 else (high, low)
    ask, answer = connection.direction(side), connection.direction(1 - side)
    is_kafka = connection.protocol == KAFKA
    by = connection.closed_by
    return handed_out.Connection(
        client,
        server,
        connection.started_ns,
        connection.last_ns,
        ask.start_seen or answer.start_seen,
        ROLES[connection.role_by],
        PROTOCOLS[connection.protocol],
        MECHANISMS[connection.sasl],
        ask.frames + answer.frames,
        ask.payload_bytes + answer.payload_bytes,
        ask.messages if is_kafka else 0,
        answer.messages if is_kafka else 0,
        ask.raw_frames + answer.raw_frames,
        ask.unseen_bytes,
        answer.unseen_bytes,
        tuple((ts, direction ^ side, count) for ts, direction, count in connection.gaps),
        connection.resynchronised,
        ask.skipped_bytes + answer.skipped_bytes,
        ask.out_of_order.conflicting + answer.out_of_order.conflicting,
        None if by == NOT_CLOSED else CLOSED_BY[(by - BY_FIN) ^ side],
        connection.close_ns,
        connection.answered_out_of_order,
        connection.limits_hit,
        ask.overhead_bytes + answer.overhead_bytes,
    )
