"""Rows of the exchanges table: one per exchange, on request.

Knows: which facts of an exchange people ask for, and how they are taken from all exchanges of a cell at once, a column
at a time: one by one they cost as much as decoding their messages. Knows nothing of what its messages say.
Rule: what was not seen is null, never 0.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wirecheck.decode.connection.exchanges import OUTCOMES, Exchanges
from wirecheck.decode.layouts.program import form
from wirecheck.decode.message import Decoded, Status
from wirecheck.streaming.store.result_tables import schema

Ints = NDArray[np.integer[Any]]


def exchange_rows(exchanges: Exchanges, decoded: Decoded) -> pa.Table:
    messages, request, response = exchanges.messages, exchanges.request, exchanges.response
    one = np.where(request >= 0, request, response)
    both = (request >= 0) & (response >= 0)
    latency_ns = exchanges.ts_ns[response] - exchanges.ts_last_ns[request]
    columns = {
        "label": pa.repeat(exchanges.label, len(exchanges)),
        "connection": chosen((connection.name for connection in exchanges.connections), exchanges.connection[one]),
        "time": exchanges.ts_ns[one] // 1000,
        "api": api_names(messages.key[one]),
        "version": messages.version[one],
        "correlation_id": messages.correlation_id[one],
        "outcome": chosen(OUTCOMES, exchanges.outcome),
        "request_bytes": where(request >= 0, messages.size[request]),
        "response_bytes": where(response >= 0, messages.size[response]),
        "latency_us": where(both, latency_ns // 1000),
        "request_status": statuses(decoded, request),
        "response_status": statuses(decoded, response),
    }
    kinds = schema("exchanges")
    return pa.table([as_kind(columns[name], kinds.field(name).type) for name in kinds.names], schema=kinds)


def as_kind(column: pa.Array | Ints, kind: pa.DataType) -> pa.Array:
    return (column if isinstance(column, pa.Array) else pa.array(column)).cast(kind)


def where(seen: NDArray[np.bool_], values: Ints) -> pa.Array:
    return pa.array(values, mask=~seen)


def chosen(words: Iterable[str], numbers: Ints, seen: NDArray[np.bool_] | None = None) -> pa.Array:
    return pc.take(pa.array(words, pa.string()), pa.array(numbers, mask=None if seen is None else ~seen))


def api_names(keys: Ints) -> pa.Array:
    different, index = np.unique(keys, return_inverse=True)
    return chosen(map(api_name, different.tolist()), index)


def api_name(key: int) -> str:
    try:
        return form(key, "request").api
    except KeyError:
        return str(key)


def statuses(decoded: Decoded, message: Ints) -> pa.Array:
    different, index = np.unique(decoded.status[message], return_inverse=True)
    return chosen((Status(status).name.lower() for status in different.tolist()), index, message >= 0)
