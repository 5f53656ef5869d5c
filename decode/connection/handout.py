"""The numbers of Output as Exchanges, with array operations only.

Nothing is done per message in Python. How the rows came about is not known here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wirecheck.decode.connection.connection import facts_of
from wirecheck.decode.connection.exchanges import Exchanges
from wirecheck.decode.connection.output import BUFFER_BITS, EXCHANGE, MESSAGE, PART, SPAN
from wirecheck.decode.connection.stream.chunks import DATA, gathered
from wirecheck.decode.connection.stream.frame import NEVER
from wirecheck.decode.connection.stream.modes import OPEN
from wirecheck.decode.wire import Messages

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wirecheck.decode.connection.connection import Connection
    from wirecheck.decode.connection.output import Output, Rows
    from wirecheck.decode.connection.stream.direction import Direction

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Placed:
    """Where the packets of one call belong, one row each."""

    serial: Ints
    """Number of the connection, -1 for none."""
    direction: Ints
    offset: Ints
    """Of the first payload byte in its direction; -1 if the packet carries none that matters."""

    @classmethod
    def none(cls) -> Placed:
        return cls(*np.zeros((3, 0), np.int64))


class InOrder(NamedTuple):
    """A run of one direction, [begin, end)."""

    key: str
    """Of the connection's endpoints, as the follower knows them."""
    serial: int
    side: int
    begin: int
    end: int
    data: bytes | None


def take(key: str, serial: int, direction: Direction) -> Iterator[InOrder]:
    chunk = direction.ordered.detach(direction.next_offset)
    while chunk is not None:
        begin, end, data = chunk.begin, chunk.end, None
        if chunk.kind == DATA:
            data = gathered(chunk, begin, NEVER)
            end = begin + len(data)
        while chunk is not None and chunk.end <= end:
            chunk = chunk.next
        yield InOrder(key, serial, direction.side, begin, end, data)


ROWS_AT_ONCE = 1024


def exchanges(output: Output, label: str, names: tuple[str, ...], refused: int, *, facts: bool) -> Exchanges:
    """All that a call hands out; with facts about the connections it touched, or without."""
    message, exchange = columns_of(output.messages, MESSAGE), columns_of(output.exchanges, EXCHANGE)
    return Exchanges(
        label,
        names,
        tuple(map(facts_of, output.touched)) if facts else (),
        _messages(message, _gathered(output), columns_of(output.spans, SPAN)),
        message["connection"].astype(np.int32),
        message["ts_ns"],
        message["ts_last_ns"],
        message["source"].astype(np.int32),
        message["frame_first"],
        message["frame_last"],
        message["stream_offset"],
        message["gap_bytes"],
        message["serial"],
        message["direction"].astype(np.int8),
        exchange["request"],
        exchange["response"],
        exchange["outcome"].astype(np.int8),
        exchange["out_of_order"].astype(np.bool_),
        refused,
    )


def in_order(touched: list[Connection]) -> tuple[list[InOrder], list[int]]:
    """(runs of bytes in order, numbers of connections that are over) of those that were tapped."""
    runs = [run for c in touched for side in (c.lower, c.higher) for run in take(c.key, c.serial, side)]
    return runs, [connection.serial for connection in touched if connection.life != OPEN]


def _rows(rows: Rows, width: int) -> Ints:
    """The rows where they lie: the next call writes there."""
    values: Any = rows.values  # a vec, whose memory numpy shares
    found: Ints = np.frombuffer(values, np.int64, rows.used).reshape(-1, width)
    return found


def columns_of(rows: Rows, names: tuple[str, ...]) -> dict[str, Ints]:
    """The columns of the rows, each in one piece; so many rows at a time as stay in the processor's cache."""
    found = _rows(rows, len(names))
    columns = np.empty((len(names), len(found)), np.int64)
    for at in range(0, len(found), ROWS_AT_ONCE):
        columns[:, at : at + ROWS_AT_ONCE] = found[at : at + ROWS_AT_ONCE].T
    return dict(zip(names, columns, strict=True))


def _gathered(output: Output) -> NDArray[np.uint8]:
    """The bytes of all parts, one behind the other: Arrow copies what its views name in a fifth of the time that many
    small slices take.
    """
    views = _rows(output.parts, len(PART)).astype(np.int32)
    buffers = [pa.py_buffer(part) for data in (output.payload, b"".join(output.own)) for part in _buffers(data)]
    parts = pa.Array.from_buffers(pa.binary_view(), len(views), [None, pa.py_buffer(views), *buffers])
    joined = parts.cast(pa.large_binary()).buffers()[2]
    return np.zeros(0, np.uint8) if joined is None else np.frombuffer(joined, np.uint8, output.size)


def _buffers(data: bytes) -> list[memoryview]:
    """What a view's buffer and offset point to."""
    return [memoryview(data)[at:] for at in range(0, len(data) + 1, 1 << BUFFER_BITS)]


def _messages(message: dict[str, Ints], data: NDArray[np.uint8], span: dict[str, Ints]) -> Messages:
    return Messages(
        data,
        np.append(message["at"], len(data)),
        message["size"],
        np.append(message["span_at"], len(span["offset"])),
        span["offset"],
        span["length"],
        message["side"].astype(np.int8),
        message["key"].astype(np.int16),
        message["version"].astype(np.int16),
        message["correlation"].astype(np.int32),
    )
