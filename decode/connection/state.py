"""Connections between calls: every attribute that outlives one as numbers, in some hundred bytes a connection.

An attribute is named in one place, which writes and reads it; STATE_VERSION in follower.py goes up with every change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
from librt.strings import BytesWriter, read_i64_le, write_i64_le
from mypy_extensions import i64

from wirecheck.decode.connection.connection import Connection
from wirecheck.decode.connection.stream.chunks import DATA, Chunk
from wirecheck.decode.connection.stream.direction import Candidate
from wirecheck.decode.connection.stream.frame import UNSET
from wirecheck.decode.connection.stream.last_gap import LastGap
from wirecheck.decode.connection.stream.modes import OPEN
from wirecheck.decode.connection.waiting import Message

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wirecheck.decode.connection.connection import Handshake
    from wirecheck.decode.connection.stream.direction import Aging, Direction
    from wirecheck.decode.connection.stream.out_of_order import OutOfOrder
    from wirecheck.decode.connection.waiting import MessageQueue

ASKED: Final = (
    "serial", "life", "protocol", "last_ns", "deadline_ns", "agent", "second_agent", "pending",
    "decided_lower", "decided_higher",
)  # fmt: skip
"""What is asked about connections that are no objects: the first numbers of a record, of eight bytes each."""
ASKED_BYTES: Final = 80


@final
class Numbers:
    """The numbers of a record, one behind the other, that are written, or read out of its bytes."""

    def __init__(self, record: bytes) -> None:
        self.reading: bool = len(record) > 0
        self._record: bytes = record
        self._at: i64 = 0
        self._written: BytesWriter = BytesWriter()

    def of(self, number: i64) -> i64:
        """Write this number, or read the one that is stored in its place: seven bits a byte, the last one without the
        highest bit (signed LEB128); UNSET as a zero of two bytes.
        """
        if self.reading:
            return self._read()
        written = self._written
        rest = number
        if number == UNSET:
            written.append(0x80)
            rest = 0
        while rest < -64 or rest > 63:
            written.append((rest & 0x7F) | 0x80)
            rest >>= 7
        written.append(rest & 0x7F)
        return number

    def _read(self) -> i64:
        value: i64 = 0
        shift: i64 = 0
        byte: i64 = 0x80
        while byte >= 0x80 and shift < 63:
            byte = i64(self._record[self._at])
            self._at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
        if byte >= 0x80:  # the tenth byte holds the sign alone
            byte = i64(self._record[self._at])
            self._at += 1
            return value - ((byte & 1) << 63)
        if value == 0 and shift > 7:
            return UNSET
        return value - ((byte >> 6) << shift)

    def asked(self, number: i64) -> i64:
        """The same in eight bytes."""
        if not self.reading:
            write_i64_le(self._written, number)
            return number
        self._at += 8
        return read_i64_le(self._record, self._at - 8)

    def flag(self, value: bool) -> bool:
        return self.of(1 if value else 0) == 1

    def data(self, data: bytes) -> bytes:
        count = self.of(i64(len(data)))
        if not self.reading:
            self._written.write(data)
            return data
        self._at += count
        return self._record[self._at - count : self._at]

    def bytes(self) -> bytes:
        return self._written.getvalue()


def _connection(row: Numbers, c: Connection) -> None:
    c.serial, c.life, c.protocol = row.asked(c.serial), row.asked(c.life), row.asked(c.protocol)
    c.last_ns, c.deadline_ns = row.asked(c.last_ns), row.asked(c.deadline_ns)
    c.agent, c.second_agent, c.pending = row.asked(c.agent), row.asked(c.second_agent), row.asked(c.pending)
    row.asked(c.decided(c.lower))
    row.asked(c.decided(c.higher))
    c.client, c.role_by, c.sasl = row.of(c.client), row.of(c.role_by), row.of(c.sasl)
    c.tokens_may_follow = row.flag(c.tokens_may_follow)
    c.started_ns, c.frames = row.of(c.started_ns), row.of(c.frames)
    c.frames_remembered, c.half_slack = row.of(c.frames_remembered), row.of(c.half_slack)
    c.due_ns, c.closed_by, c.close_ns = row.of(c.due_ns), row.of(c.closed_by), row.of(c.close_ns)
    c.answered_out_of_order, c.tls_records = row.of(c.answered_out_of_order), row.of(c.tls_records)
    c.payloads, c.searched_bytes = row.of(c.payloads), row.of(c.searched_bytes)
    c.hello_bytes, c.answered_ns = row.of(c.hello_bytes), row.of(c.answered_ns)
    c.resynchronised, c.limits_hit = row.of(c.resynchronised), row.of(c.limits_hit)
    c.proxied, c.proxied_port, c.run = row.of(c.proxied), row.of(c.proxied_port), row.of(c.run)
    c.proxied_host = row.data(c.proxied_host)
    c.syn_ns, c.syn_ack_ns = row.of(c.syn_ns), row.of(c.syn_ack_ns)
    c.server_round_ns, c.client_round_ns = row.of(c.server_round_ns), row.of(c.client_round_ns)
    _handshake(row, c.again)
    c.unacceptable, c.answered_in = row.of(c.unacceptable), row.of(c.answered_in)
    c.elsewhere.side, c.elsewhere.seq = row.of(c.elsewhere.side), row.of(c.elsewhere.seq)
    c.elsewhere.ack, c.elsewhere.frames = row.of(c.elsewhere.ack), row.of(c.elsewhere.frames)
    _direction(row, c.lower)
    _direction(row, c.higher)


def _handshake(row: Numbers, h: Handshake) -> None:
    h.client, h.client_seq, h.server_seq = row.of(h.client), row.of(h.client_seq), row.of(h.server_seq)
    h.ts_ns, h.agent, h.frames = row.of(h.ts_ns), row.of(h.agent), row.of(h.frames)
    h.answered = row.flag(h.answered)


def _direction(row: Numbers, d: Direction) -> None:
    d.stream, d.base, d.next_offset = row.of(d.stream), row.of(d.base), row.of(d.next_offset)
    d.newest, d.acknowledged = row.of(d.newest), row.of(d.acknowledged)
    d.shown, d.shown_by_second, d.fin = row.of(d.shown), row.of(d.shown_by_second), row.of(d.fin)
    d.reset, d.reset_exact, d.alleged_ns = row.of(d.reset), row.flag(d.reset_exact), row.of(d.alleged_ns)
    d.fin_ns, d.less_ns = row.of(d.fin_ns), row.of(d.less_ns)
    d.start_seen, d.lacking_ns = row.flag(d.start_seen), row.of(d.lacking_ns)
    d.frames, d.shown_by, d.payload_bytes = row.of(d.frames), row.of(d.shown_by), row.of(d.payload_bytes)
    d.unseen_bytes, d.skipped_bytes = row.of(d.unseen_bytes), row.of(d.skipped_bytes)
    d.cut_bytes, d.cut_segments = row.of(d.cut_bytes), row.of(d.cut_segments)
    d.retransmitted, d.silent_at = row.of(d.retransmitted), row.of(d.silent_at)
    d.window_closed_ns, d.window_opened_ns = row.of(d.window_closed_ns), row.of(d.window_opened_ns)
    d.gaps_have_length, d.unsure = row.flag(d.gaps_have_length), row.flag(d.unsure)
    d.mode, d.need, d.message_begin = row.of(d.mode), row.of(d.need), row.of(d.message_begin)
    d.message_end, d.message_state = row.of(d.message_end), row.of(d.message_state)
    d.key, d.version, d.correlation = row.of(d.key), row.of(d.version), row.of(d.correlation)
    d.last_correlation, d.client_hash = row.of(d.last_correlation), row.of(d.client_hash)
    d.scanned, d.rescans = row.of(d.scanned), row.of(d.rescans)
    d.messages, d.raw_frames = row.of(d.messages), row.of(d.raw_frames)
    d.shown_ns, d.acknowledged_ns = row.of(d.shown_ns), row.of(d.acknowledged_ns)
    d.gap_end, d.gap_sent_ns = row.of(d.gap_end), row.of(d.gap_sent_ns)
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
    if c.kind == DATA:
        c.data, c.start = row.data(c.bytes()), 0


def _message(row: Numbers, m: Message) -> None:
    m.side, m.key, m.version = row.of(m.side), row.of(m.key), row.of(m.version)
    m.correlation, m.size, m.offset = row.of(m.correlation), row.of(m.size), row.of(m.offset)
    m.ts_ns, m.ts_last_ns = row.of(m.ts_ns), row.of(m.ts_last_ns)
    m.number, m.number_last, m.source = row.of(m.number), row.of(m.number_last), row.of(m.source)
    m.flags, m.losses, m.gap_bytes = row.of(m.flags), row.of(m.losses), row.of(m.gap_bytes)
    m.kept, m.spans = row.of(m.kept), row.of(m.spans)


def _candidate(row: Numbers, c: Candidate) -> None:
    c.begin, c.end, c.correlation, c.client = row.of(c.begin), row.of(c.end), row.of(c.correlation), row.of(c.client)


def _list(row: Numbers, first: Chunk | None) -> Chunk | None:
    """A list of chunks, as it is written; read, if there is none."""
    last: Chunk | None = None
    chunk = first
    while row.flag(chunk is not None):
        if chunk is None:
            chunk = Chunk(0, 0, DATA, b"", 0)
            if last is None:
                first = chunk
            else:
                last.next = chunk
        _chunk(row, chunk)
        last, chunk = chunk, chunk.next
    return first


def _held(row: Numbers, held: OutOfOrder) -> None:
    for i in range(row.of(held.count)):
        chunk = Chunk(0, 0, DATA, b"", 0) if row.reading else held.chunks[i]
        _chunk(row, chunk)
        if row.reading:
            held.add(chunk)


def _last_gap(row: Numbers, d: Direction) -> None:
    if not row.flag(d.last_gap is not None):
        return
    gap = LastGap(0, 0, 0, False) if d.last_gap is None else d.last_gap
    d.last_gap = gap
    gap.begin, gap.end, gap.frames = row.of(gap.begin), row.of(gap.end), row.of(gap.frames)
    gap.at_boundary = row.flag(gap.at_boundary)
    for i in range(row.of(i64(len(gap.later)))):
        begin, end = (0, 0) if row.reading else gap.later[i]
        stretch = (row.of(begin), row.of(end))
        if row.reading:
            gap.later.append(stretch)
    _held(row, gap.late)


def _bytes_of(row: Numbers, d: Direction) -> None:
    """What waits in a direction, in order and out of order, and what may begin messages in it."""
    begin = d.ordered.begin
    chunk = _list(row, d.ordered.first)
    while row.reading and chunk is not None:
        following = chunk.next
        d.ordered.append(chunk)
        chunk = following
    d.ordered.begin, d.ordered.owned = begin, d.ordered.last
    _held(row, d.out_of_order)
    _last_gap(row, d)
    for i in range(row.of(i64(len(d.candidates)))):
        if row.reading:
            d.candidates.append(Candidate(0, 0, 0, 0))
        _candidate(row, d.candidates[i])


def _messages(row: Numbers, queue: MessageQueue) -> None:
    queue.unmatched = row.of(queue.unmatched)
    for place in range(row.of(queue.count)):
        message = Message(0, 0, 0, 0) if row.reading else queue.messages[place]
        _message(row, message)
        message.chunks, message.owned = _list(row, message.chunks), True
        if row.reading:
            queue.push(message)


def _gaps(row: Numbers, c: Connection) -> None:
    for i in range(row.of(i64(len(c.gaps)))):
        ts_ns, side, count, since_ns, until_ns = (0, 0, 0, 0, 0) if row.reading else c.gaps[i]
        gap = (row.of(ts_ns), row.of(side), row.of(count), row.of(since_ns), row.of(until_ns))
        if row.reading:
            c.gaps.append(gap)


def _all(row: Numbers, c: Connection) -> None:
    _connection(row, c)
    for direction in (c.lower, c.higher):
        _bytes_of(row, direction)
    for queue in (c.in_flight, c.early_responses):
        _messages(row, queue)
    _gaps(row, c)


def stored(connection: Connection) -> bytes:
    row = Numbers(b"")
    _all(row, connection)
    return row.bytes()


def restored(key: str, record: bytes) -> Connection:
    connection = Connection(key, 0)
    _all(Numbers(record), connection)
    return connection


@final
class Parked:
    """All connections of a follower that are not objects: a record by key, in the order they were parked."""

    def __init__(self, records: Iterable[tuple[str, bytes]] = ()) -> None:
        self.records: dict[str, bytes] = dict(records)

    def __len__(self) -> int:
        return len(self.records)

    def park(self, connections: list[Connection]) -> None:
        for connection in connections:
            self.records[connection.key] = stored(connection)

    def take(self, keys: Iterable[str]) -> list[Connection]:
        """Those of these connections that are parked, as objects."""
        found: list[Connection] = []
        for key in keys:
            record = self.records.pop(key, None)
            if record is not None:
                found.append(restored(key, record))
        return found

    def keys(self) -> list[str]:
        return list(self.records)

    def columns(self) -> dict[str, Any]:
        """What is asked about them, by name, in the order of `keys`."""
        heads = b"".join([record[:ASKED_BYTES] for record in self.records.values()])
        return dict(zip(ASKED, np.frombuffer(heads, np.int64).reshape(-1, len(ASKED)).T, strict=True))

    def decided(self) -> Any:
        """Rows (connection, direction, offset) of those that are open."""
        asked = self.columns()
        names = ("decided_lower", "decided_higher")
        rows = [
            np.stack((asked["serial"], np.full(len(self), side), asked[name]), axis=1)[asked["life"] == OPEN]
            for side, name in enumerate(names)
        ]
        return np.concatenate(rows)
