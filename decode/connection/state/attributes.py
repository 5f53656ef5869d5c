"""Connections as rows of numbers and back: every attribute that outlives a call.

An attribute is named in one place, which writes and reads it; STATE_VERSION in follower.py goes up with every change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from librt.vecs import extend, vec
from mypy_extensions import i64

from wirecheck.decode.connection.connection import Connection
from wirecheck.decode.connection.stream.chunks import DATA, Chunk
from wirecheck.decode.connection.stream.direction import Candidate
from wirecheck.decode.connection.waiting import Message

if TYPE_CHECKING:
    from wirecheck.decode.connection.connection import Handshake
    from wirecheck.decode.connection.stream.direction import Aging, Direction

# tables: connections; what they own, the owner's row first: messages (and which queue), chunks (which list, where in
# the data), candidates (which side), gaps
CONNECTIONS: Final = 0
MESSAGES: Final = 1
CHUNKS: Final = 2
CANDIDATES: Final = 3
GAPS: Final = 4
DATA_AT: Final = 2  # columns of a chunk
BEGIN: Final = 3
END: Final = 4
KIND: Final = 5
COLUMNS: Final = {
    "serial": 0, "life": 1, "protocol": 4, "last_ns": 8, "deadline_ns": 12, "agent": 24, "second_agent": 25,
    "pending": 26,
}  # fmt: skip
"""Of a connection: what is asked about those that are no objects."""
NO_OWNER: Final = -1
FIRST_LENGTH: Final = 256


@final
class Numbers:
    """Rows of a table, one behind the other, that are written or read."""

    def __init__(self, values: vec[i64], *, reading: bool) -> None:
        self.values: vec[i64] = values
        self.at: i64 = 0
        self._reading = reading

    def of(self, number: i64) -> i64:
        """Write this number, or read the one that is stored in its place."""
        at = self.at
        self.at = at + 1
        if self._reading:
            return self.values[at]
        if at == i64(len(self.values)):
            self.values = extend(self.values, self.values)
        self.values[at] = number
        return number

    def flag(self, value: bool) -> bool:
        return self.of(1 if value else 0) == 1

    def owner(self, further: i64 = 0) -> i64:
        """Whose row comes next; or another number of that row."""
        at = self.at + further
        return self.values[at] if at < i64(len(self.values)) else NO_OWNER


def _connection(row: Numbers, c: Connection) -> None:
    c.serial, c.life, c.client, c.role_by = row.of(c.serial), row.of(c.life), row.of(c.client), row.of(c.role_by)
    c.protocol, c.sasl = row.of(c.protocol), row.of(c.sasl)
    c.tokens_may_follow = row.flag(c.tokens_may_follow)
    c.started_ns, c.last_ns, c.frames = row.of(c.started_ns), row.of(c.last_ns), row.of(c.frames)
    c.frames_remembered, c.half_slack = row.of(c.frames_remembered), row.of(c.half_slack)
    c.deadline_ns, c.due_ns = row.of(c.deadline_ns), row.of(c.due_ns)
    c.closed_by, c.close_ns = row.of(c.closed_by), row.of(c.close_ns)
    c.unmatched_responses, c.unmatched_requests = row.of(c.unmatched_responses), row.of(c.unmatched_requests)
    c.answered_out_of_order, c.tls_records = row.of(c.answered_out_of_order), row.of(c.tls_records)
    c.payloads, c.searched_bytes = row.of(c.payloads), row.of(c.searched_bytes)
    c.resynchronised, c.limits_hit = row.of(c.resynchronised), row.of(c.limits_hit)
    c.agent, c.second_agent, c.pending = row.of(c.agent), row.of(c.second_agent), row.of(c.pending)
    c.proxied, c.proxied_port = row.of(c.proxied), row.of(c.proxied_port)
    c.proxied_high, c.proxied_low, c.run = row.of(c.proxied_high), row.of(c.proxied_low), row.of(c.run)
    c.syn_ns, c.syn_ack_ns = row.of(c.syn_ns), row.of(c.syn_ack_ns)
    c.server_round_ns, c.client_round_ns = row.of(c.server_round_ns), row.of(c.client_round_ns)
    _handshake(row, c.again)
    _direction(row, c.lower)
    _direction(row, c.higher)


def _handshake(row: Numbers, h: Handshake) -> None:
    h.client, h.client_seq, h.server_seq = row.of(h.client), row.of(h.client_seq), row.of(h.server_seq)
    h.ts_ns, h.agent, h.frames = row.of(h.ts_ns), row.of(h.agent), row.of(h.frames)


def _direction(row: Numbers, d: Direction) -> None:
    d.stream, d.base, d.next_offset = row.of(d.stream), row.of(d.base), row.of(d.next_offset)
    d.newest, d.acknowledged = row.of(d.newest), row.of(d.acknowledged)
    d.shown, d.shown_by_second, d.fin = row.of(d.shown), row.of(d.shown_by_second), row.of(d.fin)
    d.start_seen, d.lacking_ns = row.flag(d.start_seen), row.of(d.lacking_ns)
    d.frames, d.shown_by, d.payload_bytes = row.of(d.frames), row.of(d.shown_by), row.of(d.payload_bytes)
    d.unseen_bytes, d.skipped_bytes = row.of(d.unseen_bytes), row.of(d.skipped_bytes)
    d.cut_bytes, d.cut_segments = row.of(d.cut_bytes), row.of(d.cut_segments)
    d.retransmitted = row.of(d.retransmitted)
    d.gaps_have_length, d.unsure = row.flag(d.gaps_have_length), row.flag(d.unsure)
    d.mode, d.need, d.message_begin = row.of(d.mode), row.of(d.need), row.of(d.message_begin)
    d.message_end, d.message_state = row.of(d.message_end), row.of(d.message_state)
    d.key, d.version, d.correlation = row.of(d.key), row.of(d.version), row.of(d.correlation)
    d.last_correlation, d.client_hash = row.of(d.last_correlation), row.of(d.client_hash)
    d.scanned, d.rescans = row.of(d.scanned), row.of(d.rescans)
    d.messages, d.raw_frames = row.of(d.messages), row.of(d.raw_frames)
    _aging(row, d.acknowledged_before)
    _aging(row, d.shown_by_both_before)
    d.ordered.begin = row.of(d.ordered.begin)
    d.out_of_order.conflicting = row.of(d.out_of_order.conflicting)


def _aging(row: Numbers, a: Aging) -> None:
    a.time_middle, a.time_old = row.of(a.time_middle), row.of(a.time_old)
    a.frames_middle, a.frames_old = row.of(a.frames_middle), row.of(a.frames_old)


def _chunk(row: Numbers, c: Chunk) -> None:
    c.begin, c.end, c.kind, c.left_by = row.of(c.begin), row.of(c.end), row.of(c.kind), row.of(c.left_by)
    c.ts_ns, c.ts_last_ns = row.of(c.ts_ns), row.of(c.ts_last_ns)
    c.number, c.number_last, c.source = row.of(c.number), row.of(c.number_last), row.of(c.source)
    c.packet_begin, c.packet_end = row.of(c.packet_begin), row.of(c.packet_end)


def _message(row: Numbers, m: Message) -> None:
    m.side, m.key, m.version = row.of(m.side), row.of(m.key), row.of(m.version)
    m.correlation, m.size, m.offset = row.of(m.correlation), row.of(m.size), row.of(m.offset)
    m.ts_ns, m.ts_last_ns = row.of(m.ts_ns), row.of(m.ts_last_ns)
    m.number, m.number_last, m.source = row.of(m.number), row.of(m.number_last), row.of(m.source)
    m.flags, m.losses, m.gap_bytes = row.of(m.flags), row.of(m.losses), row.of(m.gap_bytes)
    m.kept, m.spans = row.of(m.kept), row.of(m.spans)


def _candidate(row: Numbers, c: Candidate) -> None:
    c.begin, c.end, c.correlation, c.client = row.of(c.begin), row.of(c.end), row.of(c.correlation), row.of(c.client)


def widths() -> list[int]:
    """Columns of each table."""
    rows = [Numbers(vec[i64]([0] * FIRST_LENGTH), reading=False) for _ in range(4)]
    _connection(rows[CONNECTIONS], Connection("", 0))
    _message(rows[MESSAGES], Message(0, 0, 0, 0))
    _chunk(rows[CHUNKS], Chunk(0, 0, DATA, b"", 0))
    _candidate(rows[CANDIDATES], Candidate(0, 0, 0, 0))
    more = (0, 2, 3, 2)
    return [*(int(rows[k].at) + more[k] for k in range(4)), 4]


@final
class Writer:
    """Connections on their way into tables."""

    def __init__(self, connections: list[Connection]) -> None:
        self.tables: list[Numbers] = [Numbers(vec[i64]([0] * FIRST_LENGTH), reading=False) for _ in range(5)]
        self.data: list[bytes] = []
        self._size: i64 = 0
        for owner, connection in enumerate(connections):
            _connection(self.tables[CONNECTIONS], connection)
            self._add_owned(owner, connection)

    def _row(self, table: i64, owner: i64, which: i64) -> Numbers:
        row = self.tables[table]
        row.of(owner)
        row.of(which)
        return row

    def _add_owned(self, owner: i64, connection: Connection) -> None:
        number: i64 = 0  # of the list of chunks
        for direction in (connection.lower, connection.higher):
            self._add_chunks(owner, number, direction.ordered.first)
            for chunk in direction.out_of_order.held():
                self._add_chunk(owner, number + 1, chunk)
            for candidate in direction.candidates:
                _candidate(self._row(CANDIDATES, owner, direction.side), candidate)
            number += 2
        for which, queue in enumerate((connection.in_flight, connection.early_responses)):
            message = queue.first
            while message is not None:
                _message(self._row(MESSAGES, owner, which), message)
                self._add_chunks(owner, number, message.stored_pieces())
                number, message = number + 1, message.next
        for ts_ns, side, count in connection.gaps:
            row = self._row(GAPS, owner, ts_ns)
            row.of(side)
            row.of(count)

    def _add_chunks(self, owner: i64, number: i64, chunk: Chunk | None) -> None:
        while chunk is not None:
            self._add_chunk(owner, number, chunk)
            chunk = chunk.next

    def _add_chunk(self, owner: i64, number: i64, chunk: Chunk) -> None:
        row = self._row(CHUNKS, owner, number)
        row.of(self._size)
        _chunk(row, chunk)
        if chunk.kind == DATA:
            data = chunk.bytes()
            self.data.append(data)
            self._size += i64(len(data))


@final
class Reader:
    """Connections out of tables that a Writer wrote, some of their rows left out."""

    def __init__(self, tables: list[vec[i64]], data: memoryview) -> None:
        self._tables: list[Numbers] = [Numbers(values, reading=True) for values in tables]
        self._data = data

    def connections(self, keys: list[str], owners: list[int]) -> list[Connection]:
        """All there are; `owners`: the row that each had."""
        return [self._read(key, owner) for key, owner in zip(keys, owners, strict=True)]

    def _read(self, key: str, owner: i64) -> Connection:
        connection = Connection(key, 0)
        _connection(self._tables[CONNECTIONS], connection)
        number: i64 = 0
        candidates, messages, gaps = self._tables[CANDIDATES], self._tables[MESSAGES], self._tables[GAPS]
        for direction in (connection.lower, connection.higher):
            begin = direction.ordered.begin
            chunk = self._chunks(owner, number)
            while chunk is not None:
                following = chunk.next
                direction.ordered.append(chunk)
                chunk = following
            direction.ordered.begin, direction.ordered.owned = begin, direction.ordered.last
            chunk = self._chunks(owner, number + 1)
            while chunk is not None:
                following = chunk.next
                direction.out_of_order.add(chunk)
                chunk = following
            while candidates.owner() == owner and candidates.owner(1) == direction.side:
                candidates.at += 2
                candidate = Candidate(0, 0, 0, 0)
                _candidate(candidates, candidate)
                direction.candidates.append(candidate)
            number += 2
        while messages.owner() == owner:
            queue = connection.in_flight if messages.owner(1) == 0 else connection.early_responses
            messages.at += 2
            message = Message(0, 0, 0, 0)
            _message(messages, message)
            message.chunks, message.owned = self._chunks(owner, number), True
            queue.push(message)
            number += 1
        while gaps.owner() == owner:
            connection.gaps.append((gaps.owner(1), gaps.owner(2), gaps.owner(3)))
            gaps.at += 4
        return connection

    def _chunks(self, owner: i64, number: i64) -> Chunk | None:
        """A list of chunks."""
        rows = self._tables[CHUNKS]
        first: Chunk | None = None
        last: Chunk | None = None
        while rows.owner() == owner and rows.owner(1) == number:
            at = rows.owner(DATA_AT)
            rows.at += BEGIN
            chunk = Chunk(0, 0, DATA, b"", 0)
            _chunk(rows, chunk)
            if chunk.kind == DATA:
                chunk.data = bytes(self._data[at : at + chunk.end - chunk.begin])
            if last is None:
                first = chunk
            else:
                last.next = chunk
            last = chunk
        return first
