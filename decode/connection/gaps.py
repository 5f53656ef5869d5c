"""When a hole is final: the missing bytes become a gap, and the stream continues behind it.

Evidence: the peer acknowledged past the hole some frames or some time ago, the hole is old, too much waits behind it,
or the capture or connection has ended. With two agents, both must have passed the hole. `declare_gaps` is the only
place that gives up a hole of an open connection; a gap has the time of the frame or deadline that made it final.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import i64

from wirecheck.decode.connection.connection import BY_RST
from wirecheck.decode.connection.shared import BOTH, BOTH_HELD
from wirecheck.decode.connection.stream.chunks import BOTH_LEFT_OUT, GAP, LEFT, Chunk
from wirecheck.decode.connection.stream.direction import REORDERED_NS
from wirecheck.decode.connection.stream.frame import NEVER, UNSET
from wirecheck.decode.connection.stream.last_gap import LastGap
from wirecheck.decode.connection.stream.modes import HELD, IN_SYNC, OFF, RUNNING, SEARCHING, TAPPED, UNSEEN

if TYPE_CHECKING:
    from wirecheck.decode.connection.connection import Connection
    from wirecheck.decode.connection.shared import Shared
    from wirecheck.decode.connection.stream.direction import Direction


def declare_gaps(shared: Shared, connection: Connection, direction: Direction, now: i64) -> bool:
    """Close every hole of a direction that is final by now; True if the stream moved."""
    moved = False
    both = shared.two_live(connection)
    patient = both and connection.second_agent >= 0
    while direction.stream != UNSEEN:
        behind = direction.out_of_order.first
        edge: i64 = NEVER if behind is None else behind.begin  # the hole ends here at the latest
        acknowledged = acknowledged_long_ago(direction, both)
        aged = behind is not None and now >= behind.ts_ns + hole_patience_ns(shared, both)
        if behind is not None and (is_complete(direction) or (aged and was_not_taken(direction, behind.ts_ns))):
            direction.discard_first()
            continue
        full = behind is not None and overfull(shared, direction, both)
        if direction.stream == HELD:  # is anything missing before the first bytes seen?
            if behind is None or not (acknowledged > edge or aged or full):
                return moved
            direction.start_at(edge)
        elif behind is not None and edge <= direction.next_offset:  # no hole: what one of two agents left out
            passed = aged or full or direction.shown_by_both_before.old() >= behind.end
            if patient and not passed:
                return moved
            if behind.kind == LEFT:
                behind.left_by = BOTH_LEFT_OUT
        elif acknowledged > direction.next_offset:
            declare(connection, direction, min(acknowledged, edge), now)
        elif aged or full:
            declare(connection, direction, edge, now)
        else:
            return moved
        if full and not aged and acknowledged <= edge:
            connection.limits_hit += 1
        direction.catch_up(patient)
        moved = True
    return moved


def acknowledged_long_ago(direction: Direction, both: bool) -> i64:
    """Up to where nothing that is missing is still under way, by what was acknowledged at least half the slack ago. Any
    host can acknowledge: it counts as far as the sender itself shows to have sent.
    """
    at = min(direction.acknowledged_before.old(), direction.reach())
    if direction.fin != UNSET:
        at = min(at, direction.fin)
    return min(at, direction.shown_by_both_before.old()) if both else at


def is_complete(direction: Direction) -> bool:
    """Whether a stream is complete up to its FIN: nothing that lies behind is of it."""
    return direction.stream == RUNNING and direction.fin == direction.next_offset


def was_not_taken(direction: Direction, ts_ns: i64) -> bool:
    """Whether the peer, later than that, still acknowledged less than what came out of order: bytes outside its window,
    or damaged on their way. What it takes it acknowledges (RFC 9293 3.10.7.4), and what it lacks is sent again.
    """
    return direction.stream == RUNNING and direction.lacking_ns > ts_ns


def hole_patience_ns(shared: Shared, both: bool) -> i64:
    return shared.limits.hole_ns * (BOTH if both else 1)


def overfull(shared: Shared, direction: Direction, both: bool) -> bool:
    times: i64 = BOTH_HELD if both else 1
    waiting = direction.out_of_order
    return waiting.kept > times * shared.limits.held_bytes or waiting.count > times * shared.limits.held_pieces


def declare(connection: Connection, direction: Direction, to: i64, now: i64) -> None:
    """What is missing up to this offset was never seen."""
    at = direction.next_offset
    connection.note_gap(now, direction, at, to, sent_ns(direction, to, now))
    note_last_gap(direction, at, to)
    direction.next_offset = to
    if direction.mode != OFF:
        direction.put_in_order(Chunk(at, to, GAP, b"", 0))
    direction.newest = max(direction.newest, to)
    direction.unseen_bytes += to - at


def sent_ns(direction: Direction, to: i64, now: i64) -> i64:
    """When all before this offset had been sent: what follows it was seen, or its receiver had it."""
    behind = direction.out_of_order.first
    if behind is not None and behind.begin == to:
        return behind.ts_ns
    return direction.acknowledged_ns if to <= direction.acknowledged else now


def note_last_gap(direction: Direction, begin: i64, end: i64) -> None:
    """As long as a gap is not believed, those behind it are only so many more."""
    gap = direction.last_gap
    if gap is not None and not gap.is_believed(direction.frames):
        gap.later.append((begin, end))
    elif direction.stream == RUNNING and direction.gaps_have_length and direction.mode not in (OFF, TAPPED):
        at_boundary = direction.mode == IN_SYNC and direction.message_begin == begin
        direction.last_gap = LastGap(begin, end, direction.frames, at_boundary)


def reopen(connection: Connection, direction: Direction, acknowledged: i64, now: i64) -> bool:
    """Take the last gap back if the sender went on at its beginning, and the peer acknowledges just that; True if so.
    A second agent may be so far behind: then nothing is taken back.
    """
    gap = direction.last_gap
    if gap is None or connection.second_agent >= 0 or not gap.is_contradicted(acknowledged, direction.kept_from()):
        return False
    direction.last_gap = None
    direction.unseen_bytes -= gap.unseen_bytes()
    connection.forget_gap(direction.side, gap.end - gap.begin)
    for begin, end in gap.later:
        connection.forget_gap(direction.side, end - begin)
    direction.gap_end = gap.begin
    within = direction.mode == IN_SYNC and direction.message_begin < gap.begin
    direction.go_back(gap, acknowledged, now)
    if gap.at_boundary:
        direction.mode = IN_SYNC
        direction.expect_message(gap.begin)
    elif not within and direction.mode in (IN_SYNC, SEARCHING):
        direction.lose_boundary()
    direction.catch_up(False)
    return True


def begin_run(connection: Connection, direction: Direction, seq: i64, now: i64) -> None:
    """The next byte seen has this number, of another run. What is missing before it counts as one byte."""
    if direction.stream != UNSEEN and not (direction.next_offset == 0 and direction.began_at(seq)):
        declare(connection, direction, direction.next_offset + 1, now)
        direction.last_gap = None
        direction.base = (seq - direction.next_offset) & 0xFFFFFFFF


def close_holes(shared: Shared, connection: Connection, direction: Direction, now: i64) -> None:
    """Nothing more will come: every hole is final, also that up to what was sent or acknowledged."""
    gap = direction.last_gap
    if gap is not None and direction.next_offset == gap.end:  # its sender showed nothing behind it
        reopen(connection, direction, gap.late.end, now)
    wait_no_more(connection, direction, now, shared.limits.half_slack_ns)
    end = direction.reach()
    two_clocks = connection.second_agent >= 0
    if two_clocks or direction.less_ns <= direction.alleged_ns + REORDERED_NS:  # acknowledgements do not go back
        end = max(end, direction.acknowledged)
    if connection.closed_by == BY_RST + direction.side:
        end = max(end, direction.reset)
    if direction.fin != UNSET:
        end = min(end, direction.fin)
    if direction.stream == RUNNING and end > direction.next_offset:
        declare(connection, direction, end, now)


def wait_no_more(connection: Connection, direction: Direction, now: i64, in_flight_ns: i64) -> None:
    """Wait for nothing that lies before what came out of order. `in_flight_ns`: how long an acknowledgement may have
    been under way that was sent before it.
    """
    behind = direction.out_of_order.first
    while behind is not None:
        if direction.stream == HELD:
            direction.start_at(behind.begin)
        elif is_complete(direction) or was_not_taken(direction, behind.ts_ns + in_flight_ns):
            direction.discard_first()
            behind = direction.out_of_order.first
            continue
        elif behind.begin > direction.next_offset:
            declare(connection, direction, behind.begin, now)
        direction.catch_up(False)
        behind = direction.out_of_order.first


def hole_deadline(shared: Shared, connection: Connection, direction: Direction) -> i64:
    """When the oldest hole becomes final if nothing more arrives; far away if there is none."""
    at: i64 = NEVER
    behind = direction.out_of_order.first
    hole_end: i64 = NEVER if behind is None else behind.begin
    if direction.stream == RUNNING:
        hole_end = direction.next_offset
    if min(direction.acknowledged, direction.reach()) > hole_end:
        at = (connection.half_slack + 1) * shared.limits.half_slack_ns
    if behind is not None:
        at = min(at, behind.ts_ns + hole_patience_ns(shared, shared.two_live(connection)))
    return at
