"""Frame by frame: which connection a frame belongs to, and what follows from it.

Everything is decided by the frames of one connection in order and by capture time, never by how frames are cut into
calls. What falls due is done before the next frame is looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from wirecheck.decode.connection.acceptance import SYN_DATA, is_acceptable
from wirecheck.decode.connection.connection import (
    BY_FIN,
    BY_RST,
    BY_SYN,
    KAFKA,
    NOT_CLOSED,
    TLS,
    UNDECIDED,
    Connection,
    Handshake,
)
from wirecheck.decode.connection.framing.recognise import tls_record
from wirecheck.decode.connection.gaps import begin_run, close_holes, declare_gaps, reopen
from wirecheck.decode.connection.lifetime import close, expire, forget, progress, sent_all, set_closing, set_deadline
from wirecheck.decode.connection.matching import finish
from wirecheck.decode.connection.stream import modes
from wirecheck.decode.connection.stream.direction import NEAR
from wirecheck.decode.connection.stream.frame import ACK, FIN, NEVER, RST, SYN, THE_WIRES, UNSET

if TYPE_CHECKING:
    from wirecheck.decode.connection.shared import Shared
    from wirecheck.decode.connection.stream.direction import Direction
    from wirecheck.decode.connection.stream.frame import Frame

YOUNG_NS: Final = 1_000_000_000  # a SYN that late belongs to a new connection
TLS_RECORDS: Final = 4
TLS_HEADER_BYTES: Final = 5
SEQUENCE: Final = 0xFFFFFFFF
DOUBTED_RESET_NS: Final = 60_000_000_000  # for so long its sender may show that it sent none
NO_RESET: Final = 0
NEAR_BY: Final = 1
EXACT: Final = 2
SEGMENTS_A_RECORD: Final = 16  # 2^14 bytes of TLS in Ethernet frames, rounded up


def follow(shared: Shared, keys: list[str], connections: list[Connection | None], start: i64, count: i64) -> i64:
    """Frames from `start` on; where it stopped because too much waits, or how many there are. `connections`: the one
    of each pair of endpoints, which `keys` names.
    """
    frame, output = shared.frame, shared.output
    for i in range(start, count):
        frame.look(i)
        connection = connections[frame.pair]
        shared.current = connection
        output.mark()
        try:
            owner = on_frame(shared, connection, keys)
        except Exception as error:  # noqa: BLE001 -- whatever foreign bytes can bring about
            owner = shared.current
            shared.set_aside(owner, error)
            output.place(-1, -1, -1)
        if owner is not connection:
            connections[frame.pair] = owner
        if shared.pending > shared.limits.pending_bytes:
            return i + 1
    return count


def on_frame(shared: Shared, connection: Connection | None, keys: list[str]) -> Connection | None:
    """The frame that is looked at, of endpoints whose connection was this one: whose it is by now."""
    frame = shared.frame
    owner = _owner(shared, connection, keys)
    if connection is not None and owner is not connection:
        shared.recount(connection)
    if owner is None:
        shared.output.place(-1, -1, -1)
        return connection
    late = owner.life == modes.LINGERING or frame.ignored
    if not late and not is_acceptable(shared, owner, _agent_bit(owner, frame)):
        owner.unacceptable += 1
        late = True
    if late:
        _on_late(shared, owner)
        shared.output.place(-1, -1, -1)
    else:
        _on_segment(shared, owner)
        shared.output.place(owner.serial, frame.side, frame.offset)
    shared.recount(owner)
    return owner


# --- whose frame it is


def _owner(shared: Shared, connection: Connection | None, keys: list[str]) -> Connection | None:
    """The connection of the frame, after what fell due; None if it belongs to none worth following."""
    frame = shared.frame
    if connection is not None and connection.deadline_ns <= frame.ts_ns:
        expire(shared, connection, frame.ts_ns)
    if connection is not None and connection.life != modes.RELEASED and not _counts_alike(shared, connection):
        return None
    if frame.flags & SYN:
        return _on_handshake(shared, connection, keys)
    if connection is not None and connection.again.client_seq != UNSET and _begins_again(shared, connection):
        return _replace(shared, connection, keys)
    if connection is not None and connection.life != modes.RELEASED:
        return connection
    return _open(shared, keys) if frame.length > 0 else None


def _counts_alike(shared: Shared, connection: Connection) -> bool:
    """Whether the frame's sequence numbers are those that the connection is followed by. An agent's own go before the
    wire's, until it shows the wire's again; what others show meanwhile is not followed. Its next run goes on behind a
    gap.
    """
    frame = shared.frame
    if frame.run == connection.run and (frame.run == THE_WIRES or frame.agent == connection.agent):
        return True
    if connection.run == THE_WIRES:
        if connection.protocol == KAFKA:
            return False
        connection.renumber(frame.agent, frame.run)
        if frame.flags & SYN == 0:
            _begin_run(connection, frame)
        return True
    if connection.life == modes.LINGERING:
        return frame.flags & SYN != 0 and not connection.direction(frame.side).began_at(frame.seq + 1)
    if frame.agent != connection.agent or frame.flags & SYN:
        return frame.agent == connection.agent
    if frame.run == THE_WIRES and frame.length > 0:
        close(shared, connection, frame.ts_ns)
    if frame.run < connection.run:
        return False
    _go_over(shared, connection)
    return True


def _go_over(shared: Shared, connection: Connection) -> None:
    """To the agent's next run: it was started again within the connection. Nothing that it shows now continues or
    answers what it showed before.
    """
    frame = shared.frame
    close_holes(shared, connection, connection.lower, frame.ts_ns)
    close_holes(shared, connection, connection.higher, frame.ts_ns)
    progress(shared, connection)
    connection.run = frame.run
    _begin_run(connection, frame)
    if connection.client >= 0:
        finish(shared, connection)


def _begin_run(connection: Connection, frame: Frame) -> None:
    """Sequence numbers begin at those of this frame, its agent's first of the connection; of one that was seen from its
    beginning they are those behind SYN.
    """
    direction = connection.direction(frame.side)
    begin_run(connection, direction, frame.seq, frame.ts_ns)
    if frame.flags & ACK:
        begin_run(connection, connection.other(direction), frame.ack, frame.ts_ns)


def _on_handshake(shared: Shared, connection: Connection | None, keys: list[str]) -> Connection | None:
    """The connection a frame with SYN belongs to: the one there is if it fits, or goes on until the SYN is answered;
    else a new one.
    """
    frame = shared.frame
    seq = frame.seq + 1
    if connection is not None and connection.life != modes.RELEASED:
        if _fits(shared, connection, connection.direction(frame.side), seq):
            _learn_roles(connection, frame)
            return connection
        if connection.life == modes.OPEN and _goes_on(connection, frame):
            if _answered(connection.again, frame):
                if connection.run != THE_WIRES:  # no data of it come in these numbers
                    return _replace(shared, connection, keys)
                _note_answer(connection.again, frame)
            else:
                _note(connection.again, frame)
            frame.ignored = True
            return connection
        if connection.life == modes.OPEN:
            close(shared, connection, frame.ts_ns)
        forget(shared, connection)
    opened = _open(shared, keys)
    if opened is not None:
        opened.direction(frame.side).begin(seq)
        if frame.flags & ACK:
            opened.direction(1 - frame.side).begin(frame.ack)
        _learn_roles(opened, frame)
    return opened


# --- another connection of the same endpoints


def _goes_on(connection: Connection, frame: Frame) -> bool:
    """Whether both sides of a connection were seen and it is not closing: a SYN alone does not end it then. An agent
    that does not capture the other side cannot capture its SYN-ACK either: its SYN counts at once.
    """
    other = connection.direction(1 - frame.side)
    is_open = connection.due_ns == NEVER or _is_doubted(connection)
    return is_open and other.shown_by & _agent_bit(connection, frame) != 0


def _is_doubted(connection: Connection) -> bool:
    """Whether a closing connection is so by nothing but a reset whose sender may still show that it sent none."""
    lower, higher = connection.lower, connection.higher
    if lower.reset_exact or higher.reset_exact or (sent_all(lower) and sent_all(higher)):
        return False
    return lower.reset != UNSET or higher.reset != UNSET


def _agent_bit(connection: Connection, frame: Frame) -> i64:
    """Which of a connection's two agents shows the frame; 0: neither."""
    if frame.agent == connection.agent:
        return 1
    return 2 if frame.agent == connection.second_agent else 0


def _note(again: Handshake, frame: Frame) -> None:
    """A handshake's frame that answers nothing."""
    client = 1 - frame.side if frame.flags & ACK else frame.side
    client_seq = frame.ack if frame.flags & ACK else (frame.seq + 1) & SEQUENCE
    if again.client_seq != client_seq or again.client != client:
        again.forget()
        again.ts_ns, again.agent = frame.ts_ns, frame.agent
    again.client, again.client_seq = client, client_seq
    again.server_seq = (frame.seq + 1) & SEQUENCE if frame.flags & ACK else again.server_seq
    again.frames += 1


def _answered(again: Handshake, frame: Frame) -> bool:
    """Whether SYN and SYN-ACK are both there, in whatever order they were captured."""
    if again.client_seq == UNSET:
        return False
    if frame.flags & ACK:
        return frame.side != again.client and (frame.ack - again.client_seq) & SEQUENCE <= SYN_DATA
    return frame.side == again.client and again.server_seq != UNSET and (frame.seq + 1) & SEQUENCE == again.client_seq


def _note_answer(again: Handshake, frame: Frame) -> None:
    again.answered = True
    again.frames += 1
    if frame.flags & ACK:
        again.server_seq = (frame.seq + 1) & SEQUENCE


def _begins_again(shared: Shared, connection: Connection) -> bool:
    """Whether a frame without SYN begins the connection whose handshake was noted: it carries data in its numbers. Any
    host can send SYN and SYN-ACK, one in the name of each side; what comes without data changes nothing yet.
    """
    frame, again = shared.frame, connection.again
    patience_ns = shared.limits.idle_ns if again.answered else shared.limits.slack_ns
    if frame.agent == again.agent and frame.ts_ns - again.ts_ns > patience_ns:
        again.forget()
        return False
    if frame.flags & ACK == 0 or connection.life != modes.OPEN or not _is_in_its_numbers(connection, frame):
        return False
    if frame.side == again.client:
        again.answered = True
    if frame.flags & RST:
        again.forget()
    if frame.length == 0:
        frame.ignored = True
        again.frames += 1
    return frame.length > 0


def _is_in_its_numbers(connection: Connection, frame: Frame) -> bool:
    """Of the handshake that was noted: exactly, or close behind them and far from the connection's own."""
    again = connection.again
    if frame.side == again.client:
        seq, ack = again.client_seq, again.server_seq
    else:
        seq, ack = again.server_seq, again.client_seq
    if frame.seq == seq and frame.ack == ack:
        return True
    knows_both = again.server_seq != UNSET
    if not knows_both and frame.side == again.client:
        return False
    ahead = (frame.seq - seq) & SEQUENCE if knows_both else 0
    acknowledged = (frame.ack - ack) & SEQUENCE
    if ahead >= NEAR or acknowledged >= NEAR or (not knows_both and acknowledged == 0):
        return False
    direction = connection.direction(frame.side)
    is_own = connection.other(direction).is_near(frame.ack) and (not knows_both or direction.is_near(frame.seq))
    return not is_own


def _replace(shared: Shared, connection: Connection, keys: list[str]) -> Connection | None:
    """The connection is over: its ports are used again, by a handshake that was answered."""
    frame, again = shared.frame, connection.again
    connection.frames -= again.frames
    connection.direction(again.client).frames -= again.frames
    close(shared, connection, frame.ts_ns)
    forget(shared, connection)
    opened = _open(shared, keys)
    if opened is None:
        return None
    client = opened.direction(again.client)
    opened.started_ns = min(again.ts_ns, frame.ts_ns)
    opened.frames = client.frames = again.frames
    client.begin(again.client_seq)
    if again.server_seq != UNSET:
        opened.direction(1 - again.client).begin(again.server_seq)
    elif frame.flags & SYN:
        opened.direction(1 - again.client).begin(frame.seq + 1)
    opened.client, opened.role_by = again.client, BY_SYN
    return opened


def _fits(shared: Shared, connection: Connection, direction: Direction, seq: i64) -> bool:
    """Whether a SYN is this connection's own: seen before, or late in a shuffled capture."""
    frame, other = shared.frame, connection.other(direction)
    if direction.joined_behind(seq) and (direction.start_seen or frame.agent != connection.agent):  # the first lost it
        if direction.stream == modes.HELD:
            direction.begin_late(seq, shared.limits.held_bytes)
        return True
    if direction.start_seen:
        return direction.began_at(seq)
    answers = frame.flags & ACK != 0 and other.start_seen and other.began_at(frame.ack)  # however often it was sent
    if frame.flags & ACK and other.start_seen and (frame.ack - other.base) & SEQUENCE > SYN_DATA:
        return False  # it answers another SYN, which comes behind it
    if connection.life != modes.OPEN or (not answers and frame.ts_ns - connection.started_ns >= YOUNG_NS):
        return False
    if direction.stream == modes.UNSEEN:
        direction.begin(seq)
    elif direction.stream == modes.HELD:
        direction.begin_late(seq, shared.limits.held_bytes)
    return True


def _learn_roles(connection: Connection, frame: Frame) -> None:
    if connection.client < 0:
        connection.client = 1 - frame.side if frame.flags & ACK else frame.side
        connection.role_by = BY_SYN


def _open(shared: Shared, keys: list[str]) -> Connection | None:
    """A new connection, or None if there are too many."""
    if shared.open >= shared.limits.connections:
        shared.refused += 1
        return None
    shared.open += 1
    shared.serial += 1
    frame = shared.frame
    connection = Connection(keys[frame.pair], shared.serial)
    shared.current = connection
    connection.started_ns = connection.last_ns = frame.ts_ns
    connection.half_slack = frame.ts_ns // shared.limits.half_slack_ns
    connection.agent = frame.agent
    if frame.run != THE_WIRES:
        connection.renumber(frame.agent, frame.run)
    if shared.tapped:
        connection.tap()
    return connection


# --- what a frame changes


def _on_late(shared: Shared, connection: Connection) -> None:
    """A packet of a connection that is over counts as its own and changes nothing."""
    direction = connection.direction(shared.frame.side)
    connection.frames += 1
    direction.frames += 1
    direction.payload_bytes += shared.frame.length
    shared.output.touch(connection)


def _on_segment(shared: Shared, connection: Connection) -> None:
    frame, limits = shared.frame, shared.limits
    flags, ts_ns, length = frame.flags, frame.ts_ns, frame.length
    direction = connection.direction(frame.side)
    other = connection.other(direction)
    if frame.agent != connection.agent and connection.second_agent < 0:
        connection.second_agent = frame.agent
    by_second = frame.agent == connection.second_agent
    direction.shown_by |= _agent_bit(connection, frame)
    shared.output.touch(connection)
    connection.frames += 1
    connection.last_ns = max(connection.last_ns, ts_ns)
    direction.frames += 1
    direction.payload_bytes += length
    connection.remember_acknowledged(ts_ns, limits.half_slack_ns, limits.half_slack_frames)
    seq = frame.seq + (1 if flags & SYN else 0)
    moved = length > 0
    if frame.agent == connection.agent and (flags & SYN or _awaits_ack(connection)):
        _time_handshake(connection, frame)
    if flags & ACK and not _refuses(connection, frame):
        _learn_start(direction, other, frame, seq)
        other.acknowledge(frame.ack, by_second, ts_ns)
        other.note_lacking(ts_ns)
        _on_window(direction, other, frame)
        if connection.second_agent < 0:
            other.take_back(frame.ack, ts_ns - limits.slack_ns)
            if other.fin != UNSET and other.is_open_at(other.offset_of(frame.ack), ts_ns - limits.slack_ns):
                _take_fin_back(connection, other)
            if other.last_gap is not None:
                moved = reopen(connection, other, other.offset_of(frame.ack), ts_ns)
    resets = _resets(direction, seq) if flags & RST else NO_RESET
    if length > 0:
        if connection.protocol == UNDECIDED:
            _look_for_tls(connection, frame)
        if frame.agent == connection.agent and direction.comes_again(frame, seq):
            direction.retransmitted += 1
        direction.receive(frame, seq, 2 if by_second else 1, shared.patient(connection))
    elif flags & (RST | FIN) == 0:
        direction.went_on(seq, ts_ns)
        one_clock = connection.second_agent < 0
        if one_clock and direction.fin != UNSET and direction.is_open_at(direction.offset_of(seq), ts_ns):
            _take_fin_back(connection, direction)
    _on_ending(shared, connection, direction, seq, resets)
    if direction.has_hole():
        moved = declare_gaps(shared, connection, direction, ts_ns) or moved
    if other.has_hole():
        moved = declare_gaps(shared, connection, other, ts_ns) or moved
    if moved:
        progress(shared, connection)
    set_closing(shared, connection, ts_ns)
    set_deadline(shared, connection)


def _on_window(direction: Direction, other: Direction, frame: Frame) -> None:
    """A segment that acknowledges less than another did is older, and what it announces is no longer true (RFC 9293
    3.10.7.4: SND.WL1, SND.WL2). What ends a connection announces nothing: some hosts write 0 there.
    """
    if frame.window != 0 and direction.window_closed_ns == UNSET:
        return
    if frame.flags & (SYN | FIN | RST) == 0 and other.offset_of(frame.ack) >= other.acknowledged:
        direction.announce(frame.window, frame.ts_ns)


def _on_ending(shared: Shared, connection: Connection, direction: Direction, seq: i64, resets: i64) -> None:
    """What the frame, now that its bytes are received, says about the end of its direction."""
    frame = shared.frame
    flags, length, ts_ns = frame.flags, frame.length, frame.ts_ns
    if direction.fin != UNSET and direction.next_offset > direction.fin:
        _take_fin_back(connection, direction)
    if flags & FIN and _on_fin(direction, seq, length, ts_ns):
        _note_close(connection, BY_FIN + frame.side, ts_ns)
    if flags & RST and resets != NO_RESET:
        direction.reset = UNSET if direction.stream == modes.UNSEEN else direction.offset_of(seq)
        direction.reset_exact = resets == EXACT
        _reset(shared, connection, shared.limits.slack_ns if resets == EXACT else DOUBTED_RESET_NS)
    elif direction.reset != UNSET and length > 0:
        if direction.next_offset == direction.reset and not direction.reset_exact:
            _reset(shared, connection, shared.limits.slack_ns)
        elif not direction.reset_exact or frame.offset >= direction.reset:
            _take_reset_back(connection, direction)


def _take_fin_back(connection: Connection, direction: Direction) -> None:
    """It went on: that FIN was none of its own."""
    direction.fin = UNSET
    if connection.closed_by == BY_FIN + direction.side:
        connection.closed_by = NOT_CLOSED


def _take_reset_back(connection: Connection, direction: Direction) -> None:
    """Its side goes on, past or short of it: no host took it. A FIN before it may be true all the same."""
    if direction.reset_exact:
        direction.reset, direction.reset_exact = UNSET, False
    if connection.closed_by == BY_RST + direction.side:
        connection.closed_by = NOT_CLOSED
    if not connection.other(direction).reset_exact:
        connection.due_ns = NEVER


def _awaits_ack(connection: Connection) -> bool:
    """Whether the client's answer to the SYN-ACK is still of use."""
    return UNSET < connection.syn_ack_ns < NEVER


def _time_handshake(connection: Connection, frame: Frame) -> None:
    """How long each side takes to answer the other's SYN, which its kernel does at once. Not of one that was sent
    twice (RFC 6298 3), nor if the client sends data with its answer, which may wait for the application.
    """
    ts_ns = frame.ts_ns
    if frame.flags & SYN == 0:
        if frame.side == connection.client or frame.flags & RST:
            if frame.length == 0 and frame.flags & (FIN | RST) == 0:
                connection.client_round_ns = max(ts_ns - connection.syn_ack_ns, 0)
            connection.syn_ack_ns = NEVER
    elif frame.flags & ACK == 0:
        connection.syn_ns = ts_ns if connection.syn_ns == UNSET else NEVER
    elif connection.syn_ack_ns == UNSET:
        connection.syn_ack_ns = ts_ns
        if UNSET < connection.syn_ns < NEVER:
            connection.server_round_ns = max(ts_ns - connection.syn_ns, 0)
    else:
        connection.syn_ack_ns = NEVER


def _refuses(connection: Connection, frame: Frame) -> bool:
    """Whether a reset answers a later SYN on the ports of this connection: it acknowledges that SYN, and nothing of the
    connection (RFC 9293, 3.10.7.1).
    """
    again = connection.again
    asked = again.client_seq != UNSET and frame.side != again.client
    return frame.flags & RST != 0 and asked and frame.ack == again.client_seq


def _learn_start(direction: Direction, other: Direction, frame: Frame, seq: i64) -> None:
    """The client's first packet after its SYN acknowledges exactly the server's SYN."""
    fresh = other.stream == modes.UNSEEN and direction.start_seen and direction.newest == 0
    if fresh and frame.flags & (SYN | RST) == 0 and direction.offset_of(seq) == 0:
        other.begin(frame.ack)


def _look_for_tls(connection: Connection, frame: Frame) -> None:
    """Payloads that begin as a TLS record does, also where only that was kept; a record fills up to a dozen packets."""
    connection.payloads += 1
    front = frame.end - frame.start
    if frame.first_left < frame.end_left:
        front = min(front, frame.left_offset(frame.first_left))
    if tls_record(frame.payload[frame.start : frame.start + min(front, TLS_HEADER_BYTES)]):
        connection.tls_records += 1
        if connection.payloads == 1 and frame.side == connection.client:
            at = frame.start + TLS_HEADER_BYTES
            length = i64(frame.payload[at - 2]) << 8 | i64(frame.payload[at - 1])
            connection.hello_bytes = TLS_HEADER_BYTES + length
    records = connection.tls_records
    if records >= TLS_RECORDS and SEGMENTS_A_RECORD * records > connection.payloads:
        connection.turn_off(TLS)


def _on_fin(direction: Direction, seq: i64, length: i64, ts_ns: i64) -> bool:
    """Whether a FIN can be the direction's own: no data beyond it has been seen."""
    if direction.stream == modes.UNSEEN:
        direction.begin_at_fin(seq)
    at = direction.offset_of(seq) + length
    if direction.stream == modes.RUNNING and at < direction.next_offset:
        return False
    if (
        direction.fin == UNSET or at == direction.next_offset < direction.fin
    ):  # an earlier FIN ahead of the data was not its own
        direction.finish_at(at, ts_ns)
    return True


def _resets(direction: Direction, seq: i64) -> i64:
    """Whether a reset has the number that its receiver expects, or one near by: that is dropped (RFC 5961 3.2), unless
    the capture lacks what comes before it. Behind a gap that is not believed yet, none is exact.
    """
    if direction.stream != modes.RUNNING:
        return EXACT
    gap = direction.last_gap
    if direction.offset_of(seq) == direction.next_offset and (gap is None or gap.is_believed(direction.frames)):
        return EXACT
    return NEAR_BY if direction.is_near(seq) else NO_RESET


def _reset(shared: Shared, connection: Connection, late_ns: i64) -> None:
    """It is over, unless its sender goes on within that time."""
    frame = shared.frame
    _note_close(connection, BY_RST + frame.side, frame.ts_ns)
    connection.due_ns = min(connection.due_ns, frame.ts_ns + late_ns)


def _note_close(connection: Connection, by: i64, ts_ns: i64) -> None:
    """FIN or RST was seen; the first one decides `closed_by`."""
    if connection.closed_by == NOT_CLOSED:
        connection.closed_by = by
        connection.close_ns = ts_ns
