"""Out of the follower's memory, into what other rooms read: the rows one call wrote as Exchanges.

Knows: the columns of slots.py's output arrays and how facts about a connection are worded.
Refuses to know: how the rows came about.
Rule: per connection touched a few microseconds, per message nothing but array operations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from wirecheck.decode.connection.exchanges import Connection, Exchanges
from wirecheck.decode.connection.recognise import MECHANISMS
from wirecheck.decode.connection.state import slots
from wirecheck.decode.connection.state.kernels import empty_lines
from wirecheck.decode.connection.without_records import LARGE, MOST_WINDOWS, layouts, no_layouts
from wirecheck.decode.wire import Messages

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from wirecheck.decode.connection.state.slots import Bytes, Ints

ROLES = ("port", "syn", "content", "port")
PROTOCOLS = ("undecided", "kafka", "tls", "other")
CLOSED_BY = ("client-fin", "server-fin", "client-rst", "server-rst")
FIRST_GAPS = 16
Pair = tuple[tuple[str, int], tuple[str, int], str]


def _messages(message: Ints, data: Bytes, span: Ints) -> Messages:
    return Messages(
        data,
        np.append(message[:, slots.M_DATA], len(data)),
        message[:, slots.M_SIZE].copy(),
        np.append(message[:, slots.M_SPANS], len(span)),
        span[:, 0].copy(),
        span[:, 1].copy(),
        message[:, slots.M_SIDE].astype(np.int8),
        message[:, slots.M_KEY].astype(np.int16),
        message[:, slots.M_VERSION].astype(np.int16),
        message[:, slots.M_CORRELATION].astype(np.int32),
    )


def nothing(label: str, names: tuple[str, ...], refused: int) -> Exchanges:
    """What a call hands out in which nothing fell due."""
    message, none, pairs = np.empty((0, slots.M_COUNT), np.int64), np.zeros(0, np.int64), np.zeros((0, 2), np.int64)
    small, numbers = np.zeros(0, np.int8), np.zeros(0, np.int32)
    return Exchanges(
        label, names, (), _messages(message, np.zeros(0, np.uint8), pairs), numbers, none, none, numbers, none, none,
        none, none, none, small, none, none, small, np.zeros(0, np.bool_), refused,
    )  # fmt: skip


class Handout:
    """The output of one call, before it is forgotten."""

    def __init__(
        self, heap: Ints, rows: Ints, pairs: dict[int, Pair], gaps: dict[int, list[tuple[int, int, int]]]
    ) -> None:
        self._heap = heap
        self._rows = rows
        self._pairs = pairs
        self._gaps = gaps

    def exchanges(self, label: str, names: tuple[str, ...], new: Bytes, old: Bytes) -> Exchanges:
        heap = self._heap
        counts = heap[slots.G_MESSAGES : slots.G_GAPS + 1].tolist()
        message = np.empty((counts[0], slots.M_COUNT), np.int64)
        early = bool(heap[slots.G_EARLY])
        more = counts[1] // LARGE * MOST_WINDOWS + MOST_WINDOWS if early else 0
        data, span = np.empty(counts[1], np.uint8), np.empty((counts[2] + more, 2), np.int64)
        exchange, gap = np.empty((counts[3], 4), np.int64), np.empty((counts[4], 4), np.int64)
        heap[self._rows + slots.C_PAIR] = np.arange(len(self._rows))
        out = message, data, span, exchange, gap
        used, spans = empty_lines(heap, new, old, out, layouts() if early else no_layouts())
        data, span = data[:used], span[:spans]
        self._note_gaps(gap)
        return Exchanges(
            label,
            names,
            () if early else self._connections(),
            _messages(message, data, span),
            message[:, slots.M_CONNECTION].astype(np.int32),
            message[:, slots.M_TS].copy(),
            message[:, slots.M_TS_LAST].copy(),
            message[:, slots.M_SOURCE].astype(np.int32),
            message[:, slots.M_FRAME].copy(),
            message[:, slots.M_FRAME_LAST].copy(),
            message[:, slots.M_AT].copy(),
            message[:, slots.M_GAP].copy(),
            self._heap[self._rows[message[:, slots.M_CONNECTION]] + slots.C_SERIAL],
            self._direction(message),
            exchange[:, 0].copy(),
            exchange[:, 1].copy(),
            exchange[:, 2].astype(np.int8),
            exchange[:, 3].astype(np.bool_),
            int(heap[slots.G_REFUSED]),
        )

    def _direction(self, message: Ints) -> NDArray[np.int8]:
        client = self._heap[self._rows[message[:, slots.M_CONNECTION]] + slots.C_CLIENT]
        return np.where(message[:, slots.M_SIDE] == 0, client, 1 - client).astype(np.int8)

    def _note_gaps(self, gap: Ints) -> None:
        for row, ts, direction, count in gap.tolist():
            gaps = self._gaps.setdefault(row, [])
            if len(gaps) < FIRST_GAPS:
                gaps.append((ts, direction, count))

    def _connections(self) -> tuple[Connection, ...]:
        facts = self._heap[self._rows[:, None] + np.arange(slots.C_SIZE)]
        middle, last = slots.C_COUNT, slots.C_COUNT + slots.W_COUNT
        columns = (facts[:, :middle].tolist(), facts[:, middle:last].tolist(), facts[:, last:].tolist())
        return tuple(map(self._connection, self._rows.tolist(), *columns))

    def _connection(self, slot: int, row: list[int], lower: list[int], upper: list[int]) -> Connection:
        low, high, _ = self._pairs[slot]
        side = row[slots.C_CLIENT]
        if side < 0:
            side = 0 if low[1] >= high[1] else 1
        client, server = (low, high) if side == 0 else (high, low)
        ask, answer = (lower, upper) if side == 0 else (upper, lower)
        is_kafka = row[slots.C_PROTOCOL] == slots.KAFKA
        return Connection(
            client,
            server,
            row[slots.C_STARTED],
            row[slots.C_LAST],
            bool(ask[slots.W_SYN] or answer[slots.W_SYN]),
            ROLES[row[slots.C_ROLE_BY]],
            PROTOCOLS[row[slots.C_PROTOCOL]],
            MECHANISMS[row[slots.C_SASL]],
            ask[slots.W_FRAMES] + answer[slots.W_FRAMES],
            ask[slots.W_BYTES] + answer[slots.W_BYTES],
            ask[slots.W_MESSAGES] if is_kafka else 0,
            answer[slots.W_MESSAGES] if is_kafka else 0,
            ask[slots.W_RAW] + answer[slots.W_RAW],
            ask[slots.W_UNSEEN],
            answer[slots.W_UNSEEN],
            tuple((ts, direction ^ side, count) for ts, direction, count in self._gaps.get(slot, ())),
            row[slots.C_RESYNCHRONISED],
            ask[slots.W_SKIPPED] + answer[slots.W_SKIPPED],
            ask[slots.W_CONFLICTING] + answer[slots.W_CONFLICTING],
            CLOSED_BY[(row[slots.C_CLOSED_BY] - slots.FIN_OF) ^ side] if row[slots.C_CLOSED_BY] else None,
            row[slots.C_CLOSE_NS],
            row[slots.C_OUT_OF_ORDER],
            row[slots.C_LIMITS],
        )
