"""Rows of the exchanges table: one per exchange, on request.

Knows: which facts of an exchange people ask for. Knows nothing of what its messages say.
Rule: what was not seen is null, never 0.
"""

from collections.abc import Iterator
from typing import Any

from wirecheck.decode.connection.exchanges import OUTCOMES, Exchanges
from wirecheck.decode.layouts.program import form
from wirecheck.decode.message import Decoded, Status
from wirecheck.streaming.store.result_tables import to_ipc


def exchange_rows(exchanges: Exchanges, decoded: Decoded) -> bytes:
    return to_ipc("exchanges", list(lines(exchanges, decoded)))


def lines(exchanges: Exchanges, decoded: Decoded) -> Iterator[dict[str, Any]]:
    messages = exchanges.messages
    for i in range(len(exchanges.outcome)):
        request, response = int(exchanges.request[i]), int(exchanges.response[i])
        one = request if request >= 0 else response
        yield {
            "label": exchanges.label,
            "connection": exchanges.connections[int(exchanges.connection[one])].name,
            "time": int(exchanges.ts_ns[one]),
            "api": api_name(int(messages.key[one])),
            "version": int(messages.version[one]),
            "correlation_id": int(messages.correlation_id[one]),
            "outcome": OUTCOMES[int(exchanges.outcome[i])],
            "request_bytes": int(messages.size[request]) if request >= 0 else None,
            "response_bytes": int(messages.size[response]) if response >= 0 else None,
            "latency_us": latency_us(exchanges, request, response),
            "request_status": status(decoded, request),
            "response_status": status(decoded, response),
        }


def api_name(key: int) -> str:
    try:
        return form(key, "request").api
    except KeyError:
        return str(key)


def latency_us(exchanges: Exchanges, request: int, response: int) -> int | None:
    if request < 0 or response < 0:
        return None
    return int(exchanges.ts_ns[response] - exchanges.ts_last_ns[request]) // 1000


def status(decoded: Decoded, message: int) -> str | None:
    return Status(int(decoded.status[message])).name.lower() if message >= 0 else None
