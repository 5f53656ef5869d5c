"""The frames that most traffic consists of, taken in one go: both directions in order, nothing missing, nothing new.

Knows: when a frame can only count, acknowledge and append, and what of it can end a message.
Refuses to know: everything else; a frame it does not vouch for goes the way of tracker.py, which knows every case.
Rule: what it does to a connection is what tracker.py would have done, fact by fact. A frame with any flag but ACK and
PSH is none of these: an ECN bit, which nothing reads, sends a frame the other way, and so the two are compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from wirecheck.decode.connection.connection import NOT_CLOSED, UNDECIDED, pending_in
from wirecheck.decode.connection.stream.direction import NEAR
from wirecheck.decode.connection.stream.frame import ACK, PSH, UNSET
from wirecheck.decode.connection.stream.modes import IN_SYNC, OFF, OPEN, OPENING, RUNNING

if TYPE_CHECKING:
    from wirecheck.decode.connection.connection import Connection
    from wirecheck.decode.connection.shared import Shared
    from wirecheck.decode.connection.stream.direction import Direction
    from wirecheck.decode.connection.stream.frame import Frame

ANYTHING: Final = 0  # a frame that the fast path does not vouch for
WITHIN: Final = 1  # within a message, or without bytes
ENDS: Final = 2  # may end a message
BEGINS: Final = 3  # begins with a message, and may end it


def kind_of(frame: Frame, connection: Connection, direction: Direction, other: Direction) -> i64:
    """What the frame is to the connection. Nothing is changed."""
    if frame.flags | PSH != ACK | PSH or connection.life != OPEN or connection.deadline_ns <= frame.ts_ns:
        return ANYTHING
    if frame.agent != connection.agent or frame.run != connection.run:
        return ANYTHING
    if connection.closed_by != NOT_CLOSED or connection.again.client_seq != UNSET:
        return ANYTHING
    if connection.early_responses.first is not None or direction.stream != RUNNING or other.stream != RUNNING:
        return ANYTHING
    if direction.out_of_order.first is not None or other.out_of_order.first is not None:
        return ANYTHING
    if max(other.acknowledged, other.offset_of(frame.ack)) > other.next_offset:
        return ANYTHING
    after = direction.next_offset + frame.length
    if direction.acknowledged > after:
        return ANYTHING
    if frame.length == 0:
        return WITHIN
    if frame.first_left != frame.end_left or connection.protocol == UNDECIDED:
        return ANYTHING
    if direction.offset_of(frame.seq) != direction.next_offset:
        return ANYTHING
    if direction.mode == OFF and other.mode == OFF:
        return WITHIN
    if direction.mode != IN_SYNC or other.mode not in (IN_SYNC, OPENING):
        return ANYTHING
    if other.next_offset >= other.need:
        return ANYTHING
    if after < direction.need:
        return WITHIN
    at_boundary = direction.message_begin == direction.next_offset and direction.ordered.first is None
    return BEGINS if at_boundary else ENDS


def settle(shared: Shared, connection: Connection, direction: Direction, before: i64) -> None:
    """A frame WITHIN a message, or without bytes, was taken; `before`: what waited in its direction."""
    waiting = pending_in(direction) - before
    connection.pending += waiting
    shared.pending += waiting
    connection.deadline_ns = min(connection.last_ns + shared.bounds.idle_ns, connection.due_ns)


def take(shared: Shared, connection: Connection, direction: Direction, other: Direction) -> None:
    """The frame that is looked at, of one of these kinds, counts and acknowledges; its bytes, and what follows from
    them, are the caller's.
    """
    frame, bounds = shared.frame, shared.bounds
    length, ts_ns = frame.length, frame.ts_ns
    shared.output.touch(connection)
    connection.frames += 1
    connection.last_ns = max(connection.last_ns, ts_ns)
    direction.frames += 1
    direction.shown_by |= 1
    direction.payload_bytes += length
    connection.remember_acknowledged(ts_ns, bounds.half_slack_ns, bounds.half_slack_frames)
    acknowledged = other.offset_of(frame.ack)
    other.acknowledged = max(other.acknowledged, acknowledged)
    other.shown = max(other.shown, acknowledged)
    begin = direction.offset_of(frame.seq)
    end = begin + length
    if length == 0:
        if begin - direction.newest < NEAR:
            direction.newest = max(direction.newest, begin)
    else:
        frame.offset = begin
        direction.newest = max(direction.newest, end)
        direction.shown = max(direction.shown, end)
        direction.next_offset = end
