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

# columns of a message
M_CONNECTION: Final = 0  # place of its connection among those touched
M_SERIAL: Final = 1
M_DIRECTION: Final = 2
M_SIDE: Final = 3
M_KEY: Final = 4
M_VERSION: Final = 5
M_CORRELATION: Final = 6
M_SIZE: Final = 7
M_TS: Final = 8
M_TS_LAST: Final = 9
M_SOURCE: Final = 10
M_FRAME: Final = 11
M_FRAME_LAST: Final = 12
M_OFFSET: Final = 13
M_GAP: Final = 14
M_DATA: Final = 15  # where its bytes and its spans begin
M_SPANS: Final = 16
MESSAGE_COLUMNS: Final = 17
EXCHANGE_COLUMNS: Final = 4  # request, response, outcome, out of order
SPAN_COLUMNS: Final = 2  # offset, length
PART_COLUMNS: Final = 4  # one of Arrow's views: length and, up to INLINE bytes, itself; else nothing, buffer, offset
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
        """Where the next row begins; there is room for it."""
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
        at = self.placed.take(3)
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
        at = self.exchanges.take(EXCHANGE_COLUMNS)
        values = self.exchanges.values
        values[at], values[at + 1], values[at + 2] = asked, answered, outcome
        values[at + 3] = 1 if out_of_order else 0

    def _message(self, connection: Connection, message: Message) -> i64:
        """Its row."""
        self.touch(connection)
        at = self.messages.take(MESSAGE_COLUMNS)
        values = self.messages.values
        values[at + M_CONNECTION] = connection.touched
        values[at + M_SERIAL] = connection.serial
        values[at + M_DIRECTION] = connection.client if message.side == 0 else 1 - connection.client
        values[at + M_SIDE] = message.side
        values[at + M_KEY] = message.key
        values[at + M_VERSION] = message.version
        values[at + M_CORRELATION] = message.correlation
        values[at + M_SIZE] = message.size
        values[at + M_TS] = message.ts_ns
        values[at + M_TS_LAST] = message.ts_last_ns
        values[at + M_SOURCE] = message.source
        values[at + M_FRAME] = message.number
        values[at + M_FRAME_LAST] = message.number_last
        values[at + M_OFFSET] = message.offset
        values[at + M_GAP] = message.gap_bytes
        values[at + M_DATA] = self.size
        values[at + M_SPANS] = self.spans.used // SPAN_COLUMNS
        without = self.without_records
        if without is not None and message.spans == 0 and without.find(message):
            self._part(without.kept, 0, i64(len(without.kept)))
            for offset, length in without.spans:
                self._span(offset, length)
        else:
            self._bytes(message)
        return at // MESSAGE_COLUMNS

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
        at = self.parts.take(PART_COLUMNS)
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
        at = self.spans.take(SPAN_COLUMNS)
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
