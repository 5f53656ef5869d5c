"""Connections as rows of numbers, and rows as connections: every attribute that outlives a call, by name.

Knows: which attributes of Connection, Direction, Chunk, Message and Candidate are stored, in which order.
Refuses to know: what they mean, and how rows become bytes (numbers.py, parked.py).
Rule: what is not listed here does not outlive a call or follows from what is (counts, sums); STATE_VERSION in
checkpoint.py goes up with every change.
"""

from __future__ import annotations

from itertools import pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from wirecheck.decode.connection.connection import Connection
from wirecheck.decode.connection.stream.chunks import DATA, Chunk
from wirecheck.decode.connection.stream.marks import Candidate
from wirecheck.decode.connection.waiting import Message, MessageQueue

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from wirecheck.decode.connection.stream.direction import Direction

    Ints = NDArray[np.int64]
    Row = Sequence[int]

CONNECTION = (
    "serial", "life", "client", "role_by", "protocol", "sasl", "tokens_may_follow", "started_ns", "last_ns", "frames",
    "frames_remembered", "half_slack", "deadline_ns", "due_ns", "closed_by", "close_ns", "unmatched_responses",
    "unmatched_requests", "answered_out_of_order", "tls_records", "payloads", "searched_bytes", "resynchronised",
    "limits_hit", "agent", "second_agent", "pending",
)  # fmt: skip
AGING = ("time_middle", "time_old", "frames_middle", "frames_old")
DIRECTION = (
    "stream", "base", "next_offset", "newest", "acknowledged", "shown", "shown_by_second", "fin", "start_seen",
    "frames", "payload_bytes", "unseen_bytes", "skipped_bytes", "overhead_bytes", "elastic", "unsure", "mode", "need",
    "message_begin", "message_end",
    "message_state", "key", "version", "correlation", "last_correlation", "client_hash", "scanned", "rescans",
    "messages", "raw_frames",
)  # fmt: skip
CHUNK = (
    "begin", "end", "kind", "left_by", "ts_ns", "ts_last_ns", "number", "number_last", "source", "packet_begin",
    "packet_end",
)  # fmt: skip
MESSAGE = (
    "side", "key", "version", "correlation", "size", "offset", "ts_ns", "ts_last_ns", "number", "number_last",
    "source", "flags", "losses", "gap_bytes", "kept", "spans",
)  # fmt: skip
CANDIDATE = ("begin", "end", "correlation", "client")
FLAGS = frozenset({"tokens_may_follow", "start_seen", "elastic", "unsure"})
INSIDE = (
    *(f"acknowledged_before.{name}" for name in AGING), *(f"shown_by_both_before.{name}" for name in AGING),
    "ordered.begin", "out_of_order.conflicting",
)  # fmt: skip
ALL = (*CONNECTION, *(f"{side}.{name}" for side in ("lower", "higher") for name in (*DIRECTION, *INSIDE)))
WIDTHS = (len(ALL), 2 + len(MESSAGE), 3 + len(CHUNK), 2 + len(CANDIDATE), 4)
"""Columns of the tables: connections; what they own, the owner's row first: messages (which queue), chunks (which list,
where in the data), candidates (which side), gaps."""
CONNECTIONS, MESSAGES, CHUNKS, CANDIDATES, GAPS = range(5)

_connection, _chunk, _message, _candidate = (attrgetter(*names) for names in (ALL, CHUNK, MESSAGE, CANDIDATE))


class Rows:
    """Connections on their way into tables."""

    def __init__(self, connections: Iterable[Connection]) -> None:
        self.tables: tuple[list[Row], ...] = ([], [], [], [], [])
        self.data: list[bytes] = []
        self._size = 0
        for owner, connection in enumerate(connections):
            self._add(owner, connection)

    def numbers(self) -> list[Ints]:
        return [np.array(rows, np.int64).reshape(-1, width) for rows, width in zip(self.tables, WIDTHS, strict=True)]

    def _add(self, owner: int, connection: Connection) -> None:
        self.tables[CONNECTIONS].append(_connection(connection))
        for place, direction in enumerate((connection.lower, connection.higher)):
            self._add_chunks(owner, 2 * place, direction.ordered.first)
            self._add_chunks(owner, 2 * place + 1, direction.out_of_order.first)
            for candidate in direction.candidates:
                self.tables[CANDIDATES].append((owner, place, *_candidate(candidate)))
        number = 4  # of the list of chunks
        for place, queue in enumerate((connection.in_flight, connection.early_responses)):
            message = queue.first
            while message is not None:
                self.tables[MESSAGES].append((owner, place, *_message(message)))
                self._add_chunks(owner, number, message.chunks)
                number, message = number + 1, message.next
        self.tables[GAPS].extend((owner, *gap) for gap in connection.gaps)

    def _add_chunks(self, owner: int, number: int, chunk: Chunk | None) -> None:
        while chunk is not None:
            self.tables[CHUNKS].append((owner, number, self._size, *_chunk(chunk)))
            if chunk.kind == DATA:
                self.data.append(chunk.bytes())
                self._size += len(self.data[-1])
            chunk = chunk.next


def connection_of(key: str, rows: Sequence[list[list[int]]], data: bytes | memoryview) -> Connection:
    """The connection of one row of connections and what it owns, as Rows wrote them."""
    ((numbers,), messages, chunks, candidates, gaps) = rows
    connection = Connection(key, numbers[0])
    _fill(connection, CONNECTION, numbers)
    at = len(CONNECTION)
    for direction in (connection.lower, connection.higher):
        _fill(direction, DIRECTION, numbers[at:])
        at += len(DIRECTION)
        _fill(direction.acknowledged_before, AGING, numbers[at:])
        _fill(direction.shown_by_both_before, AGING, numbers[at + len(AGING) :])
        at += 2 * len(AGING) + 2
        direction.ordered.begin, direction.out_of_order.conflicting = numbers[at - 2 : at]
    lists: dict[int, list[Chunk]] = {}
    for row in chunks:
        lists.setdefault(row[1], []).append(_chunk_of(row, data))
    for place, direction in enumerate((connection.lower, connection.higher)):
        _restore_chunks(direction, lists.get(2 * place, []), lists.get(2 * place + 1, []))
        direction.candidates = [Candidate(*row[2:]) for row in candidates if row[1] == place]
    for number, row in enumerate(messages, 4):
        _restore_message((connection.in_flight, connection.early_responses)[row[1]], row, lists.get(number, []))
    connection.gaps = [(row[1], row[2], row[3]) for row in gaps]
    return connection


def _fill(target: Any, names: Sequence[str], numbers: Row) -> None:
    for name, number in zip(names, numbers, strict=False):
        setattr(target, name, bool(number) if name in FLAGS else number)


def _chunk_of(row: Row, data: bytes | memoryview) -> Chunk:
    begin, end, kind = row[3:6]
    chunk = Chunk(begin, end, kind, bytes(data[row[2] : row[2] + end - begin]) if kind == DATA else b"", 0)
    _fill(chunk, CHUNK, row[3:])
    return chunk


def _restore_chunks(direction: Direction, ordered: list[Chunk], out_of_order: list[Chunk]) -> None:
    begin = direction.ordered.begin
    for chunk in ordered:
        direction.ordered.append(chunk)
    direction.ordered.begin, direction.ordered.owned = begin, direction.ordered.last
    for chunk in out_of_order:
        direction.out_of_order.append(chunk)


def _restore_message(queue: MessageQueue, row: Row, chunks: list[Chunk]) -> None:
    message = Message(*row[2:6])
    _fill(message, MESSAGE, row[2:])
    for before, chunk in pairwise(chunks):
        before.next = chunk
    message.chunks = chunks[0] if chunks else None
    message.owned = True
    queue.push(message)
