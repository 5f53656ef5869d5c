"""The part of a line of `wirecheck decode` that is there whether the message decodes or not: time, endpoints, API.

    head = Heads(exchanges)
    head(i, "a client id")                # message i as one JSON object, without its content

Columns become plain numbers once for all their rows: a capture has many rows, and a numpy number costs more than the
text that is made of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirecheck.decode.api_names import names
from wirecheck.decode.wire import REQUEST, SIDES
from wirecheck.wording import rfc3339

if TYPE_CHECKING:
    from wirecheck.decode.connection.follower import Exchanges
    from wirecheck.decode.wire import Messages


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
