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
PART: Final = ("length", "first", "second", "third")
"""One of Arrow's views: up to INLINE bytes are in the view itself; else nothing, the buffer, and the offset in it."""
INLINE: Final = 12
MARKS: Final = 8
BUFFER_BITS: Final = 30  # buffers begin every so many bytes: offsets in them are 32 bits wide
FIRST_LENGTH: Final = 4096


@final
class Rows:
    """Rows of numbers, one behind the other."""

    def __init__(self) -> None:
        self.values: vec[i64] = vec[i64]([0] * FIRST_LENGTH)
        self.used: i64 = 0

    def take(self, width: i64) -> i64:
        """Reserve a row of this width. Returns its position in `values`, which grows if needed."""
        at = self.used
        self.used = at + width
        if self.used > i64(len(self.values)):
            self.values = extend(self.values, self.values)
        return at


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
        self.parts: Rows = Rows()
        """Where the messages' bytes lie, one behind the other: in the call's payload, or in `own`."""
        self.payload: bytes = b""
        self.own: list[bytes] = []
        """Bytes of earlier calls, and messages without their records."""
        self.own_size: i64 = 0
        self.size: i64 = 0
        self._marks: vec[i64] = vec[i64]([0] * MARKS)

    def begin(self, payload: bytes) -> None:
        self.touched = []
        self.payload = payload
        self.own = []
        self.own_size = self.size = 0
        self.messages.used = self.spans.used = self.exchanges.used = self.placed.used = self.parts.used = 0

    def mark(self) -> None:
        """A step begins, after which `take_back` may be called."""
        marks = self._marks
        marks[0], marks[1], marks[2] = self.messages.used, self.spans.used, self.exchanges.used
        marks[3], marks[4], marks[5] = self.placed.used, self.parts.used, i64(len(self.own))
        marks[6], marks[7] = self.own_size, self.size

    def take_back(self) -> None:
        """What was written since the last mark."""
        marks = self._marks
        self.messages.used, self.spans.used, self.exchanges.used = marks[0], marks[1], marks[2]
        self.placed.used, self.parts.used = marks[3], marks[4]
        del self.own[marks[5] :]
        self.own_size, self.size = marks[6], marks[7]

    def touch(self, connection: Connection) -> None:
        """Its facts changed in this call."""
        if connection.touched < 0:
            connection.touched = len(self.touched)
            self.touched.append(connection)

    def place(self, serial: i64, side: i64, offset: i64) -> None:
        """Where the next frame belongs."""
        at = self.placed.take(len(PLACED))
        values = self.placed.values
        values[at], values[at + 1], values[at + 2] = serial, side, offset

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
        at = self.exchanges.take(len(EXCHANGE))
        values = self.exchanges.values
        values[at], values[at + 1], values[at + 2] = asked, answered, outcome
        values[at + 3] = 1 if out_of_order else 0

    def _message(self, connection: Connection, message: Message) -> i64:
        """Its row."""
        self.touch(connection)
        at = self.messages.take(len(MESSAGE))
        values = self.messages.values
        side = connection.client if message.side == 0 else 1 - connection.client
        values[at], values[at + 1], values[at + 2] = connection.touched, connection.serial, side
        values[at + 3], values[at + 4], values[at + 5] = message.side, message.key, message.version
        values[at + 6], values[at + 7], values[at + 8] = message.correlation, message.size, message.ts_ns
        values[at + 9], values[at + 10], values[at + 11] = message.ts_last_ns, message.source, message.number
        values[at + 12], values[at + 13], values[at + 14] = message.number_last, message.offset, message.gap_bytes
        values[at + 15], values[at + 16] = self.size, self.spans.used // len(SPAN)
        without = self.without_records
        if without is not None and message.spans == 0 and without.find(message):
            self._part(without.kept, 0, i64(len(without.kept)))
            for offset, length in without.spans:
                self._span(offset, length)
        else:
            self._bytes(message)
        return at // len(MESSAGE)

    def _bytes(self, message: Message) -> None:
        """Its bytes, and spans where they are not; what lies together in the call's payload is one part."""
        begin = message.offset + 4
        span: i64 = -1  # the span that the last chunk belongs to
        chunk: Chunk | None = message.chunks
        while chunk is not None:
            following = chunk.next
            if chunk.kind == DATA:
                data, start = chunk.data, chunk.start
                end = start + chunk.end - chunk.begin
                while (
                    following is not None
                    and following.kind == DATA
                    and following.data is data
                    and following.start == end
                ):
                    end += following.end - following.begin
                    following = following.next
                self._part(data, start, end)
                span = -1
            elif span < 0:
                span = self._span(chunk.begin - begin, chunk.end - chunk.begin)
            else:
                self.spans.values[span + 1] += chunk.end - chunk.begin
            chunk = following

    def _part(self, data: bytes, start: i64, end: i64) -> None:
        """data[start:end] comes next."""
        length = min(end, i64(len(data))) - start
        self.size += length
        at = self.parts.take(len(PART))
        values = self.parts.values
        values[at] = length
        if length <= INLINE:
            values[at + 1] = _word(data, start, start + length)
            values[at + 2] = _word(data, start + 4, start + length)
            values[at + 3] = _word(data, start + 8, start + length)
            return
        first: i64 = 0
        if data is not self.payload:
            self.own.append(data[start : start + length])
            first = (i64(len(self.payload)) >> BUFFER_BITS) + 1
            start = self.own_size
            self.own_size += length
        values[at + 1], values[at + 2] = 0, first + (start >> BUFFER_BITS)
        values[at + 3] = start & ((1 << BUFFER_BITS) - 1)

    def _span(self, offset: i64, length: i64) -> i64:
        at = self.spans.take(len(SPAN))
        values = self.spans.values
        values[at], values[at + 1] = offset, length
        return at


def _word(data: bytes, at: i64, end: i64) -> i64:
    """The bytes from `at` on, four at most, as a little-endian number."""
    word: i64 = 0
    shift: i64 = 0
    while at < end and shift < 32:
        word |= i64(data[at]) << shift
        at += 1
        shift += 8
    return word
