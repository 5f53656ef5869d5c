"""The part of a line of `wirecheck decode` that is there whether the message decodes or not: time, endpoints, API.

    head = Heads(exchanges)
    head(i, "a client id")                # message i as one JSON object, without its content

Columns become plain numbers once for all their rows: a capture has many rows, and a numpy number costs more than the
text that is made of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wirecheck.decode.api_names import names
from wirecheck.decode.layouts.layout import SIDES
from wirecheck.decode.texts import Text
from wirecheck.decode.wire import REQUEST, short_header
from wirecheck.wording import rfc3339

if TYPE_CHECKING:
    from wirecheck.decode.connection.follower import Exchanges
    from wirecheck.decode.wire import Ints, Messages


class Heads:
    """Of all messages of one batch."""

    def __init__(self, exchanges: Exchanges) -> None:
        messages = exchanges.messages
        self._ends = [(str(c.client), str(c.server)) for c in exchanges.connections]
        self._names = exchanges.names
        self._rows = list(
            zip(
                exchanges.connection.tolist(), exchanges.ts_ns.tolist(), messages.side.tolist(), messages.key.tolist(),
                messages.version.tolist(), messages.correlation_id.tolist(), messages.size.tolist(),
                exchanges.source.tolist(), exchanges.frame_first.tolist(), exchanges.frame_last.tolist(),
                strict=True,
            )
        )  # fmt: skip

    def __call__(self, i: int, client: str | None) -> dict[str, Any]:
        connection, ts_ns, side, key, version, correlation_id, size, source, first, last = self._rows[i]
        src, dst = self._ends[connection] if side == REQUEST else self._ends[connection][::-1]
        return {
            "time": rfc3339(ts_ns),
            "src": src,
            "dst": dst,
            **_facts(side, key, version, correlation_id),
            "client_id": client,
            "size": size,
            "frame": {"source": self._names[source], "first": first, "last": last},
        }


def facts(messages: Messages, i: int) -> dict[str, Any]:
    """What is known of a message whether it decodes or not."""
    columns = messages.side, messages.key, messages.version, messages.correlation_id
    return _facts(*(int(column[i]) for column in columns))


def _facts(side: int, key: int, version: int, correlation_id: int) -> dict[str, Any]:
    return {
        "side": SIDES[side],
        "key": key if key >= 0 else None,
        "api": names().get(key),
        "version": version if version >= 0 else None,
        "correlation_id": correlation_id,
    }


def client_ids(exchanges: Exchanges) -> tuple[Ints, list[str]]:
    """By exchange the number of its client ID, -1 without one; see `wire.client_id`, which reads one header."""
    messages, out = exchanges.messages, np.full(len(exchanges), -1, np.int64)
    index = np.flatnonzero(exchanges.request >= 0)
    rows = exchanges.request[index]
    begin, end = messages.at[rows], messages.at[rows + 1]
    long_enough = end - begin >= LENGTH_ENDS
    index, rows, begin, end = (each[long_enough] for each in (index, rows, begin, end))
    length = (
        (messages.data[begin + 8].astype(np.int32) << 8 | messages.data[begin + 9]).astype(np.int16).astype(np.int32)
    )
    cut = np.r_[messages.span_offset, 1 << 62][
        np.where(np.diff(messages.span_at)[rows] > 0, messages.span_at[rows], -1)
    ]
    whole = (LENGTH_ENDS + length <= np.minimum(end - begin, cut)) & (length >= 0)
    whole &= ~((messages.key[rows] == CONTROLLED_SHUTDOWN) & (messages.version[rows] == 0))
    at = np.where(whole, begin + LENGTH_ENDS, 0)
    codes, texts = Text(messages.data, at, np.where(whole, length, -1).astype(np.int32)).codes()
    out[index] = codes
    return out, texts


LENGTH_ENDS = 10
"""Bytes of a request header before its client ID: key, version, correlation ID, length."""
CONTROLLED_SHUTDOWN = 7
assert short_header(CONTROLLED_SHUTDOWN, 0)


def clients_of_messages(exchanges: Exchanges) -> tuple[Ints, list[str]]:
    """By message the number of its request's client ID, -1 where it is null or not known; and the client IDs."""
    by_exchange, texts = client_ids(exchanges)
    exchange_of = exchanges.exchange
    return np.where(exchange_of >= 0, np.r_[by_exchange, -1][exchange_of], -1), texts
