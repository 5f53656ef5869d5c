"""Rows in, the same rows out without records and secrets.

Kept are the bytes of messages as far as redaction_policy.py allows, sizes of SASL tokens between messages, size and IDs
of a message that could wait no longer, TLS record headers, and the addresses of a PROXY header. All else is redacted:
other protocols, bytes between unknown boundaries, and what came too late or again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from wirecheck.capture import frames
from wirecheck.capture.trim.pending_rows import (
    TLS_HEADER_BYTES,
    TLS_OPENING_BYTES,
    Chunk,
    Offsets,
)
from wirecheck.capture.trim.redaction_policy import RedactionPolicy, Stretches
from wirecheck.capture.waiting_rows import SECOND, WaitingRows, vector
from wirecheck.decode.connection.follower import Follower
from wirecheck.decode.connection.framing.opening import V1, V1_MOST_BYTES, V2, proxy_header
from wirecheck.decode.connection.framing.recognise import tls_record

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from wirecheck.decode.connection.exchanges import Exchanges
    from wirecheck.decode.connection.handout import Placed
    from wirecheck.decode.connection.segments import Segments
    from wirecheck.decode.wire import Ints

KIB, MIB = 1 << 10, 1 << 20
MOST_TOKENS = 64  # SASL tokens between two messages
TOKEN_BYTES = 1 << 20
SASL_HANDSHAKE = 17  # in version 0 followed by tokens without header
ALL = 1 << 62  # beyond any offset: of a stream that is not open everything is decided
IDS_BYTES = {0: 12, 1: 8}  # by side: size, key, version, correlation id; size, correlation id


@dataclass(frozen=True, slots=True)
class Bounds:
    """For how long rows wait; beyond, their payload is left out. Times are capture time."""

    unknown_bytes: int = 256 * KIB
    """Of a connection that is not recognised as Kafka, or where no message boundary is known."""
    unknown_ns: int = 2 * SECOND
    first_ns: int = 4 * SECOND
    """The same before anything of it was given up: where a stream begins in the middle is known after up to 3 s."""
    known_ns: int = 10 * SECOND
    """Of a message that is being put together: slow links, and holes that are still to be filled."""
    all_bytes: int = 64 * MIB
    """Of all connections together."""


CONNECTIONS_A_CALL = 5_000
"""That are closed at once: as objects they take some 5 kB each."""


class Trim(WaitingRows):
    """One agent's rows."""

    def __init__(self, bounds: Bounds = Bounds(), *, principals: bool = True, batch_headers: bool = False) -> None:
        super().__init__(Follower(early=True))
        self._bounds = bounds
        self._policy = RedactionPolicy(principals, batch_headers)
        self._boundary = Offsets()  # by stream: where its last message or token ends
        self._side = Offsets()  # and which side's it is
        self._given_up = Offsets()  # by stream: end of what is not waited for; it cannot be compared any more
        self._raw: set[int] = set()  # streams that may carry tokens
        self._proxied: set[int] = set()  # streams that may begin with a PROXY header
        self.gave_up_bytes = 0
        self.connections = 0  # that are followed

    @property
    def left_out(self) -> dict[str, int]:
        """Bytes of messages that were redacted, by reason; agent/redaction.py adds what is in no message."""
        reasons = ("records", "secrets", "unreadable")
        return {name: self._policy.left_out[name] for name in reasons} | {"waited too long": self.gave_up_bytes}

    def drain(self) -> Iterator[pa.RecordBatch]:
        while self._follower.open:
            self._on_progress(self._follower.drain(CONNECTIONS_A_CALL))
        self._ended(np.zeros(0, np.int64))
        yield from self._leave(len)

    def _on_rows(self, rows: pa.RecordBatch, table: Segments) -> None:
        chunk = Chunk(rows, table, self._follower.placed)
        chunk.compare(self._rows_waiting())
        chunk.give_up(np.flatnonzero(chunk.offset < self._given_up.of(chunk.stream)))
        self._batches.append(chunk)
        self._proxied |= _proxied(table, self._follower.placed)

    def _on_progress(self, exchanges: Exchanges) -> None:
        """What the messages handed out may keep, marked in the rows that wait."""
        if not len(exchanges.messages):
            return
        messages, stream = exchanges.messages, 2 * exchanges.serial + exchanges.direction
        order = np.lexsort((exchanges.stream_offset, stream))
        self._mark(self._policy.kept(exchanges, order))
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
        self._boundary = self._boundary.moved(stream[last][on], end[last][on])
        self._side = self._side.moved(stream[last][on], side[last][on])

    def _mark(self, kept: Stretches) -> None:
        stretches = (vector(kept.stream), vector(kept.begin), vector(kept.end))
        for chunk in self._rows_waiting():
            chunk.placed.mark(*stretches)

    def _rows_waiting(self) -> Iterator[Chunk]:
        return (batch for batch in self._batches if isinstance(batch, Chunk))

    def _tokens(self, stream: int, begin: int, end: int) -> bool:
        """Keep the sizes of SASL tokens if they fill [begin, end) exactly; returns whether they do."""
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
        opened = self._follower.decided()  # connection, direction, offset
        decided = Offsets(2 * opened[:, 0] + opened[:, 1], opened[:, 2], ALL)
        self.connections = len(decided.stream) // 2
        self._follow_tokens(decided)
        self._keep_proxy_headers(decided)
        self._ended(decided.stream)
        given_up = self._given_up
        self._given_up = given_up.without(given_up.stream[given_up.offset <= decided.of(given_up.stream)])
        for chunk in self._rows_waiting():
            chunk.decide(decided)
        self._give_up(decided)
        yield from self._leave(lambda batch: batch.first_waiting())

    def _follow_tokens(self, decided: Offsets) -> None:
        """Streams that moved on without a message: tokens, or a boundary that was lost."""
        known = self._boundary.of(decided.stream)
        for i in np.flatnonzero((known >= 0) & (known < decided.offset)).tolist():
            one = decided.stream[i : i + 1]
            if self._tokens(int(one[0]), int(known[i]), int(decided.offset[i])):
                self._boundary = self._boundary.moved(one, decided.offset[i : i + 1])
            else:
                self._forget(one)

    def _keep_proxy_headers(self, decided: Offsets) -> None:
        """Of those that the follower has passed, what they name; and what shows that TLS begins behind one."""
        for stream in list(self._proxied):
            passed = int(decided.of(np.array([stream]))[0])
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
        ended = self._boundary.without(opened)
        for stream, boundary in zip(ended.stream.tolist(), ended.offset.tolist(), strict=True):
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
        if len(ended.stream):
            self._forget(ended.stream)

    def _forget(self, stream: Ints) -> None:
        """No boundary of these streams is known."""
        self._boundary, self._side = self._boundary.without(stream), self._side.without(stream)

    def _give_up(self, decided: Offsets) -> None:
        """Stop waiting with the rows that have waited too long or are too many."""
        chunks = [chunk for chunk in self._rows_waiting() if len(chunk.waiting)]
        if not chunks:
            return
        streams = np.concatenate([chunk.stream[chunk.waiting] for chunk in chunks])
        lengths = np.concatenate([chunk.segments.payload_len[chunk.waiting] for chunk in chunks])
        names, index = np.unique(streams, return_inverse=True)
        oldest_ns = np.full(len(names), frames.LATEST_NS)
        np.minimum.at(oldest_ns, index, np.concatenate([chunk.segments.ts_ns[chunk.waiting] for chunk in chunks]))
        overdue = self._overdue(names, np.bincount(index, lengths), oldest_ns, decided)
        if not overdue.any():
            return
        offsets = decided.of(names)
        sides = self._side.of(names)
        for i in np.flatnonzero(overdue & (self._boundary.of(names) == offsets)).tolist():
            name = int(names[i])
            self._mark_sizes(name, [int(offsets[i])], 4 if name in self._raw else IDS_BYTES[int(sides[i])])
        for chunk in chunks:
            self._give_up_rows(chunk, chunk.waiting[np.isin(chunk.stream[chunk.waiting], names[overdue])])

    def _give_up_rows(self, chunk: Chunk, rows: Ints) -> None:
        names, index = np.unique(chunk.stream[rows], return_inverse=True)
        ends = self._given_up.of(names)
        np.maximum.at(ends, index, chunk.end[rows])
        self._given_up = self._given_up.moved(names, ends)
        self.gave_up_bytes += int(chunk.segments.payload_len[rows].sum())
        chunk.give_up(rows)

    def _overdue(self, names: Ints, waiting_bytes: Ints, oldest: Ints, decided: Offsets) -> Ints:
        """Streams whose rows wait no longer."""
        offset = decided.of(names)
        known, age = self._boundary.of(names) == offset, self._newest_ns - oldest
        known |= (offset == 0) & (self._boundary.of(names ^ 1) >= 0)  # a first answer to what was recognised
        _, connection = np.unique(names >> 1, return_inverse=True)
        together = np.bincount(connection, waiting_bytes * ~known)[connection]
        patience = np.where(self._given_up.of(names) < 0, self._bounds.first_ns, self._bounds.unknown_ns)
        overdue = ~known & ((age > patience) | (together > self._bounds.unknown_bytes))
        overdue |= known & (age > self._bounds.known_ns)
        largest = np.argsort(np.where(overdue, 0, -waiting_bytes), kind="stable")
        held = waiting_bytes[~overdue].sum()
        for i in largest.tolist():
            if held <= self._bounds.all_bytes:
                break
            if not overdue[i]:
                overdue[i] = True
                held -= waiting_bytes[i]
        return np.asarray(overdue)


def _proxied(table: Segments, placed: Placed) -> set[int]:
    """Streams of which a row has the first byte, and that is one of a PROXY header's."""
    rows = np.flatnonzero((placed.offset == 0) & (np.diff(table.payload_at) > 0))
    rows = rows[np.isin(table.payload[table.payload_at[rows]], (V1[0], V2[0]))]
    return set((2 * placed.serial[rows] + placed.direction[rows]).tolist())
