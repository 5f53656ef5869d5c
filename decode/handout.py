"""Out of the follower's memory, into what other rooms read: the rows one call wrote as Exchanges.

Knows: the columns of slots.py's output arrays and how facts about a connection are worded.
Refuses to know: how the rows came about.
Rule: per connection touched a few microseconds, per message nothing but array operations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from decode import slots
from decode.exchanges import Connection, Exchanges, offsets
from decode.pieces import gather
from decode.recognise import MECHANISMS
from decode.wire import Messages

if TYPE_CHECKING:
    from decode.slots import Ints, Memory

ROLES = ("port", "syn", "content", "port")
PROTOCOLS = ("undecided", "kafka", "tls", "other")
CLOSED_BY = (None, "client-fin", "server-fin", "client-rst", "server-rst")
FIRST_GAPS = 16


class Handout:
    """The output of one call, before it is forgotten."""

    def __init__(
        self,
        memory: Memory,
        touched: Ints,
        pairs: dict[int, tuple[tuple[str, int], tuple[str, int], str]],
        gaps: dict[int, list[tuple[int, int, int]]],
    ) -> None:
        self._m = memory
        self._touched = touched
        self._pairs = pairs
        self._gaps = gaps

    def exchanges(self, label: str, names: tuple[str, ...]) -> Exchanges:
        m, whole = self._m, self._m.whole
        row = m.message[: whole[slots.G_MESSAGES]]
        exchange = m.exchange[: whole[slots.G_EXCHANGES]]
        self._note_gaps()
        place = np.zeros(len(m.connection), np.int32)
        place[self._touched] = np.arange(len(self._touched), dtype=np.int32)
        return Exchanges(
            label,
            names,
            self._connections(),
            self._messages(row),
            place[row[:, slots.M_CONNECTION]],
            row[:, slots.M_TS].copy(),
            row[:, slots.M_TS_LAST].copy(),
            row[:, slots.M_SOURCE].astype(np.int32),
            row[:, slots.M_FRAME].copy(),
            row[:, slots.M_FRAME_LAST].copy(),
            row[:, slots.M_AT].copy(),
            row[:, slots.M_GAP].copy(),
            exchange[:, slots.E_REQUEST].copy(),
            exchange[:, slots.E_RESPONSE].copy(),
            exchange[:, slots.E_OUTCOME].astype(np.int8),
            exchange[:, slots.E_OUT_OF_ORDER].astype(np.bool_),
            int(whole[slots.G_REFUSED]),
        )

    def _messages(self, row: Ints) -> Messages:
        m, parts, spans = self._m, int(self._m.whole[slots.G_PARTS]), int(self._m.whole[slots.G_SPANS])
        length = offsets(m.part[:parts, 1])
        data = np.empty(int(length[-1]), np.uint8)
        gather(m.payload, m.arena, m.part, parts, data)
        return Messages(
            data,
            length[np.append(row[:, slots.M_PARTS], parts)],
            row[:, slots.M_SIZE].copy(),
            np.append(row[:, slots.M_SPANS], spans),
            m.span[:spans, 0].copy(),
            m.span[:spans, 1].copy(),
            row[:, slots.M_SIDE].astype(np.int8),
            row[:, slots.M_KEY].astype(np.int16),
            row[:, slots.M_VERSION].astype(np.int16),
            row[:, slots.M_CORRELATION].astype(np.int32),
        )

    def _note_gaps(self) -> None:
        for slot, ts, direction, count in self._m.gap[: self._m.whole[slots.G_GAPS]].tolist():
            gaps = self._gaps.setdefault(slot, [])
            if len(gaps) < FIRST_GAPS:
                gaps.append((ts, direction, count))

    def _connections(self) -> tuple[Connection, ...]:
        rows = self._m.connection[self._touched].tolist()
        lower = self._m.way[2 * self._touched].tolist()
        upper = self._m.way[2 * self._touched + 1].tolist()
        return tuple(map(self._connection, self._touched.tolist(), rows, lower, upper))

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
            CLOSED_BY[row[slots.C_CLOSED_BY]],
            row[slots.C_CLOSE_NS],
            row[slots.C_OUT_OF_ORDER],
            row[slots.C_LIMITS],
        )
