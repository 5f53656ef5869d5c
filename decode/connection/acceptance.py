"""Whether a segment's numbers are those of its connection: what no receiver takes is counted and changes nothing.

Any host that knows addresses and ports can send a segment. A receiver takes it if its sequence number lies in its own
direction's window and what it acknowledges in the other's (RFC 9293 3.10.7.4, RFC 5961 5). A capture that loses packets
cannot know the window, so what is near counts. Numbers far away count once the other side answers in them, or, if that
is not captured, several segments in a row go on in them: so much was lost, or what was believed before was wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from wirecheck.decode.connection.gaps import begin_run, close_holes
from wirecheck.decode.connection.lifetime import progress
from wirecheck.decode.connection.stream import modes
from wirecheck.decode.connection.stream.direction import BELIEVABLE, NEAR
from wirecheck.decode.connection.stream.frame import ACK, FIN, RST, SYN, THE_WIRES, UNSET

if TYPE_CHECKING:
    from wirecheck.decode.connection.connection import Connection, Elsewhere
    from wirecheck.decode.connection.shared import Shared
    from wirecheck.decode.connection.stream.direction import Direction
    from wirecheck.decode.connection.stream.frame import Frame

SYN_DATA: Final = 1 << 16  # bytes that a SYN may carry and its answer acknowledge (RFC 7413)
IN_A_ROW: Final = 8  # segments of one side, with none between in the connection's numbers
YOUNG_FRAMES: Final = 2 * IN_A_ROW
SEQUENCE: Final = 0xFFFFFFFF


def is_acceptable(shared: Shared, connection: Connection, bit: i64) -> bool:
    """Whether the frame that is looked at counts. `bit`: of its agent, among the connection's two."""
    frame, elsewhere = shared.frame, connection.elsewhere
    if frame.run != THE_WIRES or frame.flags & SYN:
        return True
    if frame.flags & (ACK | RST) == 0:  # what does not acknowledge is dropped (RFC 9293 3.10.7.4)
        return False
    direction = connection.direction(frame.side)
    other = connection.other(direction)
    alone = connection.second_agent < 0 and frame.agent == connection.agent  # two agents are not equally far
    one_sided = other.shown_by & bit == 0
    if (
        not _answers_bare_syn(direction, other, frame)
        and is_within(direction, frame.seq, alone)
        and (frame.flags & ACK == 0 or one_sided or is_within(other, frame.ack, alone))
    ):
        elsewhere.forget()
        return True
    if not _goes_on(elsewhere, frame, one_sided):
        return False
    elsewhere.forget()
    ahead = _is_ahead(direction, frame.seq) and (frame.flags & ACK == 0 or _is_ahead(other, frame.ack))
    if not ahead or connection.frames < YOUNG_FRAMES:
        _go_to(shared, connection, direction, frame.seq)
        if frame.flags & ACK:
            _go_to(shared, connection, other, frame.ack)
    progress(shared, connection)
    return True


def _answers_bare_syn(direction: Direction, other: Direction, frame: Frame) -> bool:
    """Whether the first frame of a side acknowledges, without data, what the other side never showed behind its SYN: it
    may be the last one of a connection before on the same ports, or that SYN may be invented.
    """
    if direction.stream != modes.UNSEEN or frame.length > 0 or frame.flags & ACK == 0 or not other.start_seen:
        return False
    return other.newest == 0 and other.offset_of(frame.ack) > SYN_DATA


def is_within(direction: Direction, seq: i64, alone: bool) -> bool:
    """Whether a number is near to what a direction has shown. Only where it is shown by one agent `alone` is a number
    long before that none of its own: another agent may be so far behind.
    """
    if direction.stream == modes.UNSEEN:
        return True
    at = direction.offset_of(seq)
    return at - max(direction.newest, direction.acknowledged) < NEAR and (
        not alone or at - min(direction.next_offset, direction.newest) > -NEAR
    )


def _goes_on(elsewhere: Elsewhere, frame: Frame, one_sided: bool) -> bool:
    """Note a segment of other numbers: whether both sides are there by now, or, where the agent shows one side only,
    that goes on there. What ends a connection goes on nowhere.
    """
    if frame.flags & (FIN | RST):
        return False
    end = (frame.seq + frame.length) & SEQUENCE
    ack: i64 = frame.ack if frame.flags & ACK else UNSET
    if elsewhere.side == 1 - frame.side and _answer_each_other(frame.seq, ack, elsewhere):
        return True
    if elsewhere.side != frame.side or not _are_near(frame.seq, elsewhere.seq):
        elsewhere.frames = 0
    elsewhere.side, elsewhere.seq, elsewhere.ack = frame.side, end, ack
    elsewhere.frames += 1
    return one_sided and elsewhere.frames >= IN_A_ROW


def _answer_each_other(seq: i64, ack: i64, elsewhere: Elsewhere) -> bool:
    if ack == UNSET or elsewhere.ack == UNSET:  # noqa: PLR1714 - numbers, which a set would box
        return False
    return _are_near(seq, elsewhere.ack) and _are_near(ack, elsewhere.seq)


def _are_near(one: i64, two: i64) -> bool:
    ahead: i64 = (one - two) & SEQUENCE
    return ahead < NEAR or ahead > SEQUENCE - NEAR


def _is_ahead(direction: Direction, seq: i64) -> bool:
    """Whether a direction may have got there: what lies between is missing."""
    if direction.stream == modes.UNSEEN or is_within(direction, seq, True):
        return True
    return 0 <= direction.offset_of(seq) - direction.newest <= BELIEVABLE


def _go_to(shared: Shared, connection: Connection, direction: Direction, seq: i64) -> None:
    """A direction goes on at this number, and it is unknown how much is missing: it may be of another connection of
    these endpoints, as is likely where one side cannot have got there, or as the connection begins.
    """
    if direction.stream != modes.UNSEEN and not is_within(direction, seq, True):
        close_holes(shared, connection, direction, shared.frame.ts_ns)
        begin_run(connection, direction, seq, shared.frame.ts_ns)
