"""Rows in, the same rows out without records and secrets.

Kept are the bytes of messages as far as may_be_kept.py allows, sizes of SASL tokens between messages, size and IDs of a
message that could wait no longer, TLS record headers, and the addresses of a PROXY header. All else is redacted: other
protocols, bytes between unknown boundaries, and what came too late or again.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from wirecheck.capture.trim.may_be_kept import Confidence, Stretches
from wirecheck.capture.trim.pending_rows import (
    TLS_HEADER_BYTES,
    TLS_OPENING_BYTES,
    Chunk,
    Decided,
)
from wirecheck.capture.trim.placed_rows import Waiting, by_place
from wirecheck.capture.waiting_rows import SECOND, WaitingRows, array, vector
from wirecheck.decode.connection.follower import Follower
from wirecheck.decode.connection.framing.opening import V1, V1_MOST_BYTES, V2, proxy_header
from wirecheck.decode.connection.framing.recognise import tls_record

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from numpy.typing import NDArray

    from wirecheck.decode.connection.exchanges import Exchanges
    from wirecheck.decode.connection.handout import Placed
    from wirecheck.decode.connection.segments import Segments
    from wirecheck.decode.wire import Ints

NONE = -1


class Boundaries:
    """Streams by their numbers, ascending; `end` and `side` are those of the last message of each."""

    def __init__(self) -> None:
        self.stream: Ints = np.zeros(0, np.int64)
        self.end: Ints = np.zeros(0, np.int64)
        self._side: Ints = np.zeros(0, np.int64)

    def of(self, stream: Ints) -> Ints:
        """Ends by stream, NONE where none is known."""
        place, there = self._places(stream)
        return np.where(there, self.end[place], NONE) if len(self.stream) else np.full(len(stream), NONE)

    def side(self, stream: int) -> int:
        """Of a stream that has a boundary."""
        return int(self._side[np.searchsorted(self.stream, stream)])

    def move(self, stream: Ints, end: Ints, side: Ints) -> None:
        """These streams, ascending and each once, end here now."""
        place, there = self._places(stream)
        self.end[place[there]], self._side[place[there]] = end[there], side[there]
        if not there.all():
            every = np.concatenate([self.stream, stream[~there]])
            order = np.argsort(every, kind="stable")
            self.stream = every[order]
            self.end = np.concatenate([self.end, end[~there]])[order]
            self._side = np.concatenate([self._side, side[~there]])[order]

    def but(self, stream: Ints) -> NDArray[np.bool_]:
        """Which of the streams here are none of these, which ascend."""
        if not len(stream):
            return np.ones(len(self.stream), np.bool_)
        place = np.minimum(np.searchsorted(stream, self.stream), len(stream) - 1)
        found: NDArray[np.bool_] = stream[place] != self.stream
        return found

    def forget(self, stream: Ints) -> None:
        stays = ~np.isin(self.stream, stream)
        self.stream, self.end, self._side = self.stream[stays], self.end[stays], self._side[stays]

    def _places(self, stream: Ints) -> tuple[Ints, Ints]:
        if not len(self.stream):
            return np.zeros(len(stream), np.int64), np.zeros(len(stream), np.bool_)
        place = np.minimum(np.searchsorted(self.stream, stream), len(self.stream) - 1)
        return place, self.stream[place] == stream


KIB, MIB = 1 << 10, 1 << 20
MOST_TOKENS = 64  # SASL tokens between two messages
TOKEN_BYTES = 1 << 20
SASL_HANDSHAKE = 17  # in version 0 followed by tokens without header
IDS_BYTES = {0: 12, 1: 8}  # by side: size, key, version, correlation id; size, correlation id


@dataclass(frozen=True, slots=True)
class Bounds:
    """For how long rows wait; beyond, their payload is left out. Times are capture time."""

    unknown_bytes: int = 256 * KIB
    """Of a connection that is not recognised as Kafka, or where no message boundary is known."""
    unknown_ns: int = 2 * SECOND
    known_ns: int = 10 * SECOND
    """Of a message that is being put together: slow links, and holes that are still to be filled."""
    all_bytes: int = 64 * MIB
    """Of all connections together."""


CONNECTIONS_A_CALL = 5_000
"""That are closed at once: as objects they take some 5 kB each."""


class Trim(WaitingRows):
    """One agent's rows."""

    def __init__(self, bounds: Bounds = Bounds(), *, principals: bool = True) -> None:
        super().__init__(Follower(early=True))
        self._bounds = bounds
        self._confidence = Confidence(principals)
        self._boundary = Boundaries()
        self._given_up: dict[int, int] = {}  # by stream: end of what is not waited for; it cannot be compared any more
        self._raw: set[int] = set()  # streams that may carry tokens
        self._proxied: set[int] = set()  # streams that may begin with a PROXY header
        self.gave_up_bytes = 0
        self.connections = 0  # that are followed

    @property
    def left_out(self) -> dict[str, int]:
        """Bytes of payload by why they were left out; what is in no message is told by the caller's totals."""
        reasons = ("records", "secrets", "unreadable")
        return {name: self._confidence.left_out[name] for name in reasons} | {"waited too long": self.gave_up_bytes}

    def drain(self) -> Iterator[pa.RecordBatch]:
        while self._follower.open:
            self._on_progress(self._follower.drain(CONNECTIONS_A_CALL))
        self._ended(np.zeros(0, np.int64))
        yield from self._leave(len)

    def _on_rows(self, rows: pa.RecordBatch, table: Segments) -> None:
        chunk = Chunk(rows, table, self._follower.placed)
        chunk.compare(self._rows_waiting())
        for stream, end in self._given_up.items():  # few, if any
            chunk.placed.give_up_before(stream, end)
        self._batches.append(chunk)
        self._proxied |= _proxied(table, self._follower.placed)

    def _on_progress(self, exchanges: Exchanges) -> None:
        """What the messages handed out may keep, marked in the rows that wait."""
        if not len(exchanges.messages):
            return
        messages, stream = exchanges.messages, 2 * exchanges.serial + exchanges.direction
        order = array(by_place(vector(stream), vector(exchanges.stream_offset)))
        self._mark(self._confidence.kept(exchanges, order))
        raw = (messages.key == SASL_HANDSHAKE) & (messages.version == 0)
        self._raw.update(2 * s + d for s in exchanges.serial[raw].tolist() for d in (0, 1))
        self._move(
            stream[order],
            exchanges.stream_offset[order],
            messages.size[order] + 4,
            messages.side[order].astype(np.int64),
        )

    def _move(self, stream: Ints, begin: Ints, length: Ints, side: Ints) -> None:
        """Boundaries move on by these messages, sorted by place; what lies between two may be tokens."""
        end, first = begin + length, np.append(True, stream[1:] != stream[:-1])
        last = np.append(first[1:], True)
        known = self._boundary.of(stream[first])
        before = np.append(-1, end[:-1])
        before[first] = known
        for i in np.flatnonzero((before >= 0) & (begin > before)).tolist():
            self._tokens(int(stream[i]), int(before[i]), int(begin[i]))
        on = end[last] > known
        self._boundary.move(stream[last][on], end[last][on], side[last][on])

    def _mark(self, kept: Stretches) -> None:
        stretches = (vector(kept.stream), vector(kept.begin), vector(kept.end))
        for chunk in self._rows_waiting():
            chunk.placed.mark(*stretches)

    def _rows_waiting(self) -> Iterator[Chunk]:
        return (batch for batch in self._batches if isinstance(batch, Chunk))

    def _tokens(self, stream: int, begin: int, end: int) -> bool:
        """Keep the sizes of tokens that fill the room between two boundaries; whether they do."""
        at = begin
        sizes: list[int] = []
        while at < end and len(sizes) < MOST_TOKENS:
            size = int.from_bytes(self._read(stream, at), "big", signed=True)
            if not 0 <= size <= TOKEN_BYTES:
                return False
            sizes.append(at)
            at += 4 + size
        if at != end:
            return False
        self._mark_sizes(stream, sizes)
        return True

    def _read(self, stream: int, at: int) -> bytes:
        """The four bytes of a size; -1 if they are not all there."""
        found = self._bytes(stream, at, 4)
        return found if len(found) == 4 else b"\xff\xff\xff\xff"

    def _piece(self, stream: int, at: int, count: int) -> bytes:
        for chunk in self._rows_waiting():
            piece = chunk.read(stream, at, count)
            if piece:
                return piece
        return b""

    def _mark_sizes(self, stream: int, places: list[int], count: int = 4) -> None:
        begin = np.array(places, np.int64)
        self._mark(Stretches(np.full(len(begin), stream), begin, begin + count))

    # --- what leaves

    def _decided(self) -> Iterator[pa.RecordBatch]:
        decided = Decided(self._follower.decided())
        self.connections = len(decided.stream) // 2
        self._follow_tokens(decided)
        self._keep_proxy_headers(decided)
        self._ended(decided.stream)
        self._forget(decided)
        first, waiting = self._undecided(decided)
        if self._give_up(decided, waiting):
            first, _ = self._undecided(decided)
        yield from self._leave(lambda _: first.popleft())

    def _undecided(self, decided: Decided) -> tuple[deque[int], Waiting]:
        """(first row by chunk that waits, what waits in all)."""
        waiting = Waiting()
        return deque(
            batch.undecided(decided.frontier, waiting) if isinstance(batch, Chunk) else len(batch)
            for batch in self._batches
        ), waiting

    def _forget(self, decided: Decided) -> None:
        """What was given up matters until the stream has gone past it."""
        if self._given_up:
            upto = dict(zip(decided.stream.tolist(), decided.offset.tolist(), strict=True))
            self._given_up = {s: end for s, end in self._given_up.items() if upto.get(s, end) < end}

    def _follow_tokens(self, decided: Decided) -> None:
        """Streams that moved on without a message: tokens, or a boundary that was lost."""
        known = self._boundary.of(decided.stream)
        for i in np.flatnonzero((known >= 0) & (known < decided.offset)).tolist():
            one = decided.stream[i : i + 1]
            if self._tokens(int(one[0]), int(known[i]), int(decided.offset[i])):
                self._boundary.move(one, decided.offset[i : i + 1], np.array([self._boundary.side(int(one[0]))]))
            else:
                self._boundary.forget(one)

    def _keep_proxy_headers(self, decided: Decided) -> None:
        """Of those that the follower has passed, what they name; and what shows that TLS begins behind one."""
        for stream in list(self._proxied):
            passed = decided.frontier.of(stream)
            if passed <= 0:
                continue
            header = proxy_header(self._bytes(stream, 0, V1_MOST_BYTES))
            if 0 < header.length <= passed:
                self._mark_sizes(stream, [0], header.shown)
                opening = self._bytes(stream, header.length, TLS_HEADER_BYTES)
                if tls_record(opening):
                    self._mark_sizes(stream, [header.length], TLS_OPENING_BYTES)
            self._proxied.discard(stream)

    def _bytes(self, stream: int, at: int, count: int) -> bytes:
        """Up to so many bytes of a stream, as far as rows that wait have them."""
        found = b""
        while len(found) < count and (piece := self._piece(stream, at + len(found), count - len(found))):
            found += piece
        return found

    def _ended(self, opened: Ints) -> None:
        """Streams that end within a message or token: its size stays, so that the boundary before it does."""
        ended = self._boundary.but(opened)
        if not ended.any():
            return
        streams = self._boundary.stream[ended]
        for stream, boundary in zip(streams.tolist(), self._boundary.end[ended].tolist(), strict=True):
            at = boundary
            places: list[int] = []
            while len(places) < MOST_TOKENS:
                size = int.from_bytes(self._read(stream, at), "big", signed=True)
                if size < 0:
                    break
                places.append(at)
                at += 4 + size
            if places:
                self._mark_sizes(stream, places)
        self._boundary.forget(streams)

    def _give_up(self, decided: Decided, waiting: Waiting) -> bool:
        """Stop waiting with the rows that have waited too long or are too many; whether there were such."""
        by_name = np.argsort(array(waiting.streams))
        names, waiting_bytes, oldest_ns = (
            array(column)[by_name] for column in (waiting.streams, waiting.bytes, waiting.oldest_ns)
        )
        tired = self._tired(names, waiting_bytes, oldest_ns, decided)
        if not tired.any():
            return False
        offsets, boundaries = decided.of(names), self._boundary.of(names)
        for i in np.flatnonzero(tired & (boundaries == offsets)).tolist():
            name = int(names[i])
            self._mark_sizes(name, [int(offsets[i])], 4 if name in self._raw else IDS_BYTES[self._boundary.side(name)])
        for chunk in self._rows_waiting():
            gone = chunk.placed.give_up_waiting(decided.frontier, chunk.taken, vector(names[tired]))
            self.gave_up_bytes += int(array(gone.end).sum())
            for name, end in zip(gone.row, gone.begin, strict=True):
                self._given_up[name] = max(end, self._given_up.get(name, 0))
        return True

    def _tired(self, names: Ints, waiting_bytes: Ints, oldest: Ints, decided: Decided) -> Ints:
        """Streams whose rows wait no longer."""
        offset = decided.of(names)
        known, age = self._boundary.of(names) == offset, self._newest_ns - oldest
        known |= (offset == 0) & (self._boundary.of(names ^ 1) >= 0)  # a first answer to what was recognised
        _, connection = np.unique(names >> 1, return_inverse=True)
        together = np.bincount(connection, waiting_bytes * ~known)[connection]
        tired = ~known & ((age > self._bounds.unknown_ns) | (together > self._bounds.unknown_bytes))
        tired |= known & (age > self._bounds.known_ns)
        largest = np.argsort(np.where(tired, 0, -waiting_bytes), kind="stable")
        held = waiting_bytes[~tired].sum()
        for i in largest.tolist():
            if held <= self._bounds.all_bytes:
                break
            if not tired[i]:
                tired[i] = True
                held -= waiting_bytes[i]
        return np.asarray(tired)


def _proxied(table: Segments, placed: Placed) -> set[int]:
    """Streams of which a row has the first byte, and that is one of a PROXY header's."""
    rows = np.flatnonzero((placed.offset == 0) & (np.diff(table.payload_at) > 0))
    rows = rows[np.isin(table.payload[table.payload_at[rows]], (V1[0], V2[0]))]
    return set((2 * placed.serial[rows] + placed.direction[rows]).tolist())
