"""Messages that wait: requests for their responses, responses for their requests.

A queue keeps its length and its bytes, so that checking a bound costs nothing. matching.py pairs them.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64, mypyc_attr

from wirecheck.decode.connection.stream.chunks import DATA, GAP, Chunk, own
from wirecheck.decode.connection.stream.frame import UNSET

RAW: Final = 1  # a SASL token without Kafka's header
ACKS_UNKNOWN: Final = 2  # Produce of which the acks were not seen
HANDED_OUT: Final = 4  # a request that was handed out when it was complete
REQUEST: Final = 0
RESPONSE: Final = 1
PATIENCE: Final = 16  # unmatched ones in a row after which only half as many waiting messages are compared
AHEAD: Final = 8  # clients keep 1 to 5 requests in flight


@final
@mypyc_attr(free_list_len=1)
class Message:
    def __init__(self, side: i64, key: i64, version: i64, correlation: i64) -> None:
        self.side: i64 = side
        self.key: i64 = key
        self.version: i64 = version
        self.correlation: i64 = correlation
        self.size: i64 = 0
        """On the wire, without the size itself."""
        self.offset: i64 = 0
        """Of its size in its direction."""
        self.chunks: Chunk | None = None
        """Its bytes behind the size."""
        self.owned: bool = False
        """They do not lie in a call's payload."""
        self.ts_ns: i64 = 0
        self.ts_last_ns: i64 = 0
        self.number: i64 = 0
        self.number_last: i64 = 0
        self.source: i64 = 0
        self.flags: i64 = 0
        self.losses: i64 = 0
        """Bytes the answering direction had lost when the request was complete."""
        self.gap_bytes: i64 = 0
        """Bytes of it that were never seen."""
        self.kept: i64 = 0
        """Bytes of it that we have."""
        self.spans: i64 = 0
        """Runs of it that we have not."""

    def lie_in(self, first: Chunk, begin: i64, end: i64) -> None:
        """Its bytes, with the size, are this list, which is [begin, end) of its direction; its header was seen."""
        self.offset = begin
        self.size = end - begin - 4
        self.ts_ns, self.number, self.source = first.ts_ns, first.number, first.source
        ts_ns, number = first.ts_last_ns, first.number_last
        before: i64 = DATA
        kept: i64 = 0
        chunk: Chunk | None = first
        while chunk is not None:
            if chunk.kind == DATA:
                kept += chunk.end - chunk.begin
            elif before == DATA:
                self.spans += 1
            if chunk.kind == GAP:
                self.gap_bytes += chunk.end - chunk.begin
            else:
                ts_ns, number = max(ts_ns, chunk.ts_last_ns), max(number, chunk.number_last)
            before = chunk.kind
            chunk = chunk.next
        self.ts_last_ns, self.number_last = ts_ns, number
        self.kept = kept - 4
        self.chunks = without_size(first, begin + 4)

    def is_raw(self) -> bool:
        return self.flags & RAW != 0

    def keep(self, payload: bytes) -> None:
        """The call ends: its bytes leave the call's payload, and become one chunk where they lie together."""
        if not self.owned:
            own(self.chunks, payload, UNSET)
            self.owned = True

    def early_copy(self) -> Message:
        """What is handed out of a request before its response; itself keeps only what the response needs."""
        copy = Message(self.side, self.key, self.version, self.correlation)
        copy.size, copy.offset, copy.chunks, copy.owned = self.size, self.offset, self.chunks, self.owned
        copy.ts_ns, copy.ts_last_ns = self.ts_ns, self.ts_last_ns
        copy.number, copy.number_last, copy.source = self.number, self.number_last, self.source
        copy.gap_bytes, copy.kept, copy.spans = self.gap_bytes, self.kept, self.spans
        self.chunks = None
        self.kept, self.spans = 0, 0
        self.flags |= HANDED_OUT
        return copy


def without_size(first: Chunk, behind: i64) -> Chunk | None:
    """A message's list without the bytes of its size, all of which we have."""
    chunk: Chunk | None = first
    while chunk is not None and chunk.end <= behind:
        chunk = chunk.next
    if chunk is not None and chunk.begin < behind:
        chunk.start += behind - chunk.begin
        chunk.begin = behind
    return chunk


@final
class MessageQueue:
    """Messages in the order they came."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.size: i64 = 0
        """Of all of them on the wire."""
        self.kept: i64 = 0
        self.unmatched: i64 = 0
        """In a row, of messages of the other direction, those whose other half was not where it should be in here."""

    @property
    def count(self) -> i64:
        return i64(len(self.messages))

    @property
    def first(self) -> Message | None:
        return self.messages[0] if len(self.messages) > 0 else None

    def push(self, message: Message) -> None:
        self.messages.append(message)
        self.size += message.size
        self.kept += message.kept

    def remove(self, place: i64) -> Message:
        message = self.messages.pop(place)
        self.size -= message.size
        self.kept -= message.kept
        return message

    def reach(self, most: i64) -> i64:
        """How many messages are compared: fewer, the longer nothing has been where it should be."""
        return max(most >> min(self.unmatched // PATIENCE, 30), AHEAD)

    def find(self, correlation: i64, reach: i64) -> i64:
        """Place of the first message with this ID among so many, -1 if there is none."""
        most = min(reach, self.count)
        place: i64 = 0
        while place < most:
            message = self.messages[place]
            if message.correlation == correlation and not message.is_raw():
                break
            place += 1
        if place > AHEAD:
            self.unmatched += 1
        elif place < most:
            self.unmatched = 0
        return place if place < most else -1
