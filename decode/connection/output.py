"""What one call decided: exchanges and messages as numbers, and the messages' bytes.

A message is written once, when its exchange is decided; its bytes are joined once, at the end of the call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from librt.vecs import extend, vec
from mypy_extensions import i64

from wirecheck.decode.connection.stream.chunks import DATA, Chunk

if TYPE_CHECKING:
    from wirecheck.decode.connection.connection import Connection
    from wirecheck.decode.connection.framing.without_records import WithoutRecords
    from wirecheck.decode.connection.waiting import Message

MESSAGE: Final = (
    "connection", "serial", "direction", "side", "key", "version", "correlation", "size", "ts_ns", "ts_last_ns",
    "source", "frame_first", "frame_last", "stream_offset", "gap_bytes", "at", "span_at",
)  # fmt: skip
"""Columns of a message. `connection`: place of its connection among those touched; `at`, `span_at`: where its bytes and
its spans begin.
"""
EXCHANGE: Final = ("request", "response", "outcome", "out_of_order")
SPAN: Final = ("offset", "length")
PLACED: Final = ("serial", "direction", "offset")
MARKS: Final = 6
LARGE: Final = 4096  # bytes that are not copied before all are joined
FIRST_LENGTH: Final = 4096


@final
class Rows:
    """Rows of numbers, one behind the other."""

    def __init__(self) -> None:
        self.values: vec[i64] = vec[i64]([0] * FIRST_LENGTH)
        self.used: i64 = 0

    def put(self, number: i64) -> None:
        """The next number."""
        at = self.used
        self.used = at + 1
        if at == i64(len(self.values)):
            self.values = extend(self.values, self.values)
        self.values[at] = number


@final
class Output:
    def __init__(self, without_records: WithoutRecords | None) -> None:
        self.without_records: WithoutRecords | None = without_records
        """Where large messages are handed out without their records."""
        self.touched: list[Connection] = []
        """Connections whose facts changed in this call, the first one first."""
        self.messages: Rows = Rows()
        self.spans: Rows = Rows()
        self.exchanges: Rows = Rows()
        self.placed: Rows = Rows()
        """Of every frame: number of its connection, its direction there, offset of its payload; -1 for none."""
        self.parts: list[bytes | memoryview] = []
        """The messages' bytes, one behind the other."""
        self.size: i64 = 0
        """How many these are."""
        self._marks: vec[i64] = vec[i64]([0] * MARKS)

    def begin(self) -> None:
        self.touched = []
        self.parts, self.size = [], 0
        self.messages.used = self.spans.used = self.exchanges.used = self.placed.used = 0

    def mark(self) -> None:
        """A step begins, after which `take_back` may be called."""
        marks = self._marks
        marks[0], marks[1], marks[2] = self.messages.used, self.spans.used, self.exchanges.used
        marks[3], marks[4], marks[5] = self.placed.used, i64(len(self.parts)), self.size

    def take_back(self) -> None:
        """What was written since the last mark."""
        marks = self._marks
        self.messages.used, self.spans.used, self.exchanges.used = marks[0], marks[1], marks[2]
        self.placed.used, self.size = marks[3], marks[5]
        del self.parts[marks[4] :]

    def touch(self, connection: Connection) -> None:
        """Its facts changed in this call."""
        if connection.touched < 0:
            connection.touched = len(self.touched)
            self.touched.append(connection)

    def place(self, serial: i64, side: i64, offset: i64) -> None:
        """Where the next frame belongs."""
        self.placed.put(serial)
        self.placed.put(side)
        self.placed.put(offset)

    def add(
        self,
        connection: Connection,
        request: Message | None,
        response: Message | None,
        outcome: i64,
        out_of_order: bool,
    ) -> None:
        """One exchange."""
        asked: i64 = -1 if request is None else self._message(connection, request)
        answered: i64 = -1 if response is None else self._message(connection, response)
        row = self.exchanges
        row.put(asked)
        row.put(answered)
        row.put(outcome)
        row.put(1 if out_of_order else 0)

    def _message(self, connection: Connection, message: Message) -> i64:
        """Its row."""
        self.touch(connection)
        row = self.messages
        number = row.used // len(MESSAGE)
        row.put(connection.touched)
        row.put(connection.serial)
        row.put(connection.client if message.side == 0 else 1 - connection.client)
        row.put(message.side)
        row.put(message.key)
        row.put(message.version)
        row.put(message.correlation)
        row.put(message.size)
        row.put(message.ts_ns)
        row.put(message.ts_last_ns)
        row.put(message.source)
        row.put(message.number)
        row.put(message.number_last)
        row.put(message.offset)
        row.put(message.gap_bytes)
        row.put(self.size)
        row.put(self.spans.used // len(SPAN))
        without = self.without_records
        if without is not None and message.spans == 0 and without.find(message):
            self._part(without.kept, 0, i64(len(without.kept)))
            for offset, length in without.spans:
                self._span(offset, length)
        else:
            self._bytes(message)
        return number

    def _bytes(self, message: Message) -> None:
        """Its bytes, and spans where they are not."""
        span: i64 = -1  # the span that the last chunk belongs to
        chunk: Chunk | None = message.chunks
        while chunk is not None:
            length = chunk.end - chunk.begin
            if chunk.kind == DATA:
                self._part(chunk.data, chunk.start, chunk.start + length)
                span = -1
            elif span < 0:
                span = self._span(chunk.begin - message.offset - 4, length)
            else:
                self.spans.values[span + 1] += length
            chunk = chunk.next

    def _part(self, data: bytes, start: i64, end: i64) -> None:
        """data[start:end] comes next."""
        end = min(end, i64(len(data)))
        if end - start < LARGE:
            self.parts.append(data[start:end])
        else:
            self.parts.append(memoryview(data)[start:end])
        self.size += end - start

    def _span(self, offset: i64, length: i64) -> i64:
        at = self.spans.used
        self.spans.put(offset)
        self.spans.put(length)
        return at
