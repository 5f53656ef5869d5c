"""When things fall due, and how a connection ends: deadlines, silence, FIN and RST, the end of a capture, eviction.

What falls due is done at its own time, whenever it is noticed, so that cutting the input changes nothing. Where too
much waits, who gives way depends on what is kept and nothing else: a message is given up by its bytes, not by its
boundary, and the stream stays readable behind it.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Final

from librt.vecs import vec
from mypy_extensions import i64

from wirecheck.decode.connection.connection import KAFKA, NOT_CLOSED, UNDECIDED
from wirecheck.decode.connection.framing.framing import cut
from wirecheck.decode.connection.framing.never_ends import leave_what_never_ends
from wirecheck.decode.connection.framing.opening import believe_whole
from wirecheck.decode.connection.framing.resync import last_chance, search
from wirecheck.decode.connection.gaps import close_holes, declare_gaps, hole_deadline, wait_no_more
from wirecheck.decode.connection.matching import (
    finish,
    give_up_request,
    give_up_response,
    give_up_responses,
    response_deadline,
)
from wirecheck.decode.connection.stream.direction import GIVEN_UP
from wirecheck.decode.connection.stream.frame import NEVER, UNSET
from wirecheck.decode.connection.stream.modes import (
    IN_SYNC,
    LINGERING,
    OFF,
    OPEN,
    OPENING,
    RELEASED,
    RUNNING,
    SEARCHING,
)

if TYPE_CHECKING:
    from wirecheck.decode.connection.connection import Connection
    from wirecheck.decode.connection.shared import Shared
    from wirecheck.decode.connection.stream.direction import Direction

UNSURE: Final = 4  # doublings: one that never showed Kafka gives way at a sixteenth of what others may keep


def progress(shared: Shared, connection: Connection) -> None:
    """Cut and match all that is complete, requests first; again if that revealed the client or that it is Kafka."""
    client, protocol = connection.client, connection.protocol
    _cut_both(shared, connection)
    if connection.client != client or connection.protocol != protocol:
        _cut_both(shared, connection)
    if leave_what_never_ends(shared, connection, at_end=False):
        _cut_both(shared, connection)


def _cut_both(shared: Shared, connection: Connection) -> None:
    direction = connection.direction(max(connection.client, 0))
    _cut_all(shared, connection, direction)
    _cut_all(shared, connection, connection.other(direction))


def _cut_all(shared: Shared, connection: Connection, direction: Direction) -> None:
    cut(shared, connection, direction)
    while direction.mode == SEARCHING and direction.stream == RUNNING and search(shared, connection, direction):
        cut(shared, connection, direction)


def set_closing(shared: Shared, connection: Connection, ts_ns: i64) -> None:
    """Both sides have sent all they had: over, as soon as late packets had their chance."""
    if connection.closed_by != NOT_CLOSED and sent_all(connection.lower) and sent_all(connection.higher):
        connection.due_ns = min(connection.due_ns, ts_ns + shared.limits.slack_ns)
        first = connection.direction(max(connection.client, 0))
        for direction in (first, connection.other(first)):
            if believe_whole(shared, connection, direction):
                progress(shared, connection)


def sent_all(direction: Direction) -> bool:
    return direction.fin != UNSET and direction.stream == RUNNING and direction.next_offset >= direction.fin


def set_deadline(shared: Shared, connection: Connection) -> None:
    """When something about this connection falls due if no frame comes."""
    at = min(connection.last_ns + _patience_ns(shared, connection), connection.due_ns)
    if _misses_something(connection.lower):
        at = min(at, hole_deadline(shared, connection, connection.lower))
    if _misses_something(connection.higher):
        at = min(at, hole_deadline(shared, connection, connection.higher))
    response = connection.early_responses.first
    if response is not None:
        at = min(at, response_deadline(shared, connection, response))
    connection.deadline_ns = at


def _misses_something(direction: Direction) -> bool:
    return direction.out_of_order.first is not None or direction.acknowledged > direction.next_offset


def _patience_ns(shared: Shared, connection: Connection) -> i64:
    """Silence in ns after which a connection is over. A side that was seen and has sent no FIN may still answer the
    other's (RFC 9293 3.6: a half-closed connection).
    """
    if connection.closed_by == NOT_CLOSED or _may_go_on(connection.lower) or _may_go_on(connection.higher):
        return shared.limits.idle_ns
    return shared.limits.linger_ns


def _may_go_on(direction: Direction) -> bool:
    return direction.frames > 0 and direction.fin == UNSET


def expire(shared: Shared, connection: Connection, now: i64) -> None:
    """Do what fell due up to now, each at its own time."""
    while connection.life != RELEASED and connection.deadline_ns <= now:
        at = connection.deadline_ns
        if connection.life == LINGERING:
            forget(shared, connection)
            return
        shared.output.touch(connection)
        if at >= connection.due_ns or at >= connection.last_ns + _patience_ns(shared, connection):
            close(shared, connection, at)
            continue
        connection.remember_acknowledged(at, shared.limits.half_slack_ns, shared.limits.half_slack_frames)
        moved = declare_gaps(shared, connection, connection.lower, at)
        moved = declare_gaps(shared, connection, connection.higher, at) or moved
        if moved:
            progress(shared, connection)
        response = connection.early_responses.first
        if response is not None and response_deadline(shared, connection, response) <= at:
            give_up_response(shared, connection)
        set_closing(shared, connection, at)
        set_deadline(shared, connection)


def close(shared: Shared, connection: Connection, now: i64) -> None:
    """Nothing more is expected of this connection: write what is open, keep nothing."""
    close_holes(shared, connection, connection.lower, now)
    close_holes(shared, connection, connection.higher, now)
    progress(shared, connection)
    if leave_what_never_ends(shared, connection, at_end=True):
        progress(shared, connection)
    first = connection.direction(max(connection.client, 0))
    for direction in (first, connection.other(first)):
        while believe_whole(shared, connection, direction) or last_chance(shared, connection, direction):
            progress(shared, connection)
    if connection.client >= 0:
        finish(shared, connection)
    connection.over(shared.limits.linger_ns)
    shared.output.touch(connection)


def forget(shared: Shared, connection: Connection) -> None:
    """It leaves the follower after the call, once its facts have been read."""
    connection.forget()
    shared.output.touch(connection)


def flush(shared: Shared, connection: Connection) -> None:
    """Close it now: the capture has ended, or there are too many connections."""
    if connection.life == OPEN:
        close(shared, connection, connection.last_ns)
    forget(shared, connection)
    shared.recount(connection)


def due(connections: list[Connection], shown: list[int], now: i64) -> tuple[list[tuple[int, int, Connection]], int]:
    """Those of the connections that fall due, each as (up to when, serial, itself), and the soonest deadline there is.
    `shown`: up to when each agent has shown what it captured, NEVER where it is not waited for; the last: no agent.
    """
    found: list[tuple[int, int, Connection]] = []
    soonest: i64 = NEVER
    times = vec[i64](shown)
    none: i64 = i64(len(shown)) - 1
    for connection in connections:
        second = connection.second_agent
        upto = min(times[connection.agent], times[second if second >= 0 else none])
        if upto == NEVER:
            upto = now
        if connection.deadline_ns <= upto:
            found.append((upto, connection.serial, connection))
        soonest = min(soonest, connection.deadline_ns)
    return found, soonest


def decided(connections: list[Connection]) -> list[tuple[int, int, int]]:
    """Rows (connection, direction, offset) of those that are open: what lies before it waits for nothing any more."""
    rows: list[tuple[int, int, int]] = []
    for connection in connections:
        if connection.life == OPEN:
            rows.append((connection.serial, 0, connection.decided(connection.lower)))
            rows.append((connection.serial, 1, connection.decided(connection.higher)))
    return rows


# --- eviction


def evict(shared: Shared, connection: Connection) -> None:
    """The connection gives up what waits on it, after whatever can still be read of it was."""
    shared.output.touch(connection)
    connection.limits_hit += 1
    wait_no_more(connection, connection.lower, connection.last_ns, NEVER)
    wait_no_more(connection, connection.higher, connection.last_ns, NEVER)
    progress(shared, connection)
    _give_up_bytes(connection.lower)
    _give_up_bytes(connection.higher)
    while connection.in_flight.count > 0:
        give_up_request(shared, connection)
    give_up_responses(shared, connection)
    set_deadline(shared, connection)
    shared.recount(connection)


def _give_up_bytes(direction: Direction) -> None:
    if direction.mode == OFF or (direction.mode == IN_SYNC and direction.message_end < 0):
        return
    if direction.mode == OPENING:
        direction.lose_boundary()
    if direction.mode == SEARCHING:
        direction.scanned = max(direction.scanned, direction.next_offset)
        direction.candidates = []
    else:
        direction.message_state = GIVEN_UP
        direction.need = direction.next_offset
    direction.drop(direction.next_offset)


def to_evict(kept: list[tuple[int, int, int]], pending: int, limit: int) -> list[int]:
    """Of (number, pending bytes, protocol) of all open connections the numbers of those that give up what waits on
    them, so that a quarter of the limit is free: those that keep most, by powers of two.
    """
    sizes = [held.bit_length() + (0 if protocol == KAFKA else UNSURE) for _, held, protocol in kept]
    by_size = [0] * (max(sizes, default=0) + 1)
    for size, (_, held, _) in zip(sizes, kept, strict=True):
        by_size[size] += held
    freed = [*accumulate(reversed(by_size))][::-1]  # by giving up all of this size and above
    least_bytes = pending - limit // 4 * 3
    least = max((size for size, total in enumerate(freed) if total >= least_bytes), default=0)
    return [number for size, (number, held, _) in zip(sizes, kept, strict=True) if size >= least and held > 0]


def to_let_go(found: list[tuple[int, bool, int, int]], count: int) -> list[int]:
    """Of (number, whether it is over, protocol, last time) of all connections, in the order they began, the numbers of
    the `count` that are closed first: those over, those that never showed what they are, those known not to
    be Kafka; the ones silent longest before others. Kafka never does.
    """
    may = [
        (0 if over else 1 if protocol == UNDECIDED else 2, last_ns, place, number)
        for place, (number, over, protocol, last_ns) in enumerate(found)
        if over or protocol != KAFKA
    ]
    return [number for _, _, _, number in sorted(may)[:count]]
