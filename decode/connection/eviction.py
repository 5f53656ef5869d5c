"""Which connections give up what waits on them when a follower keeps too much.

The choice depends on what is kept and nothing else, so that cutting the input into other calls changes nothing. A
message is given up by its bytes, not by its boundary: the stream stays readable behind it.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Final

from wirecheck.decode.connection.connection import KAFKA, UNDECIDED
from wirecheck.decode.connection.gaps import wait_no_more
from wirecheck.decode.connection.lifetime import progress, set_deadline
from wirecheck.decode.connection.matching import give_up_request, give_up_responses
from wirecheck.decode.connection.stream.direction import GIVEN_UP
from wirecheck.decode.connection.stream.frame import NEVER
from wirecheck.decode.connection.stream.modes import IN_SYNC, OFF, OPENING, SEARCHING

if TYPE_CHECKING:
    from wirecheck.decode.connection.connection import Connection
    from wirecheck.decode.connection.shared import Shared
    from wirecheck.decode.connection.stream.direction import Direction

UNSURE: Final = 4  # doublings: one that never showed Kafka gives way at a sixteenth of what others may keep


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
    the `count` that make room for others first: those over, those that never showed what they are, those known not to
    be Kafka; the ones silent longest before others. Kafka never does.
    """
    may = [
        (0 if over else 1 if protocol == UNDECIDED else 2, last_ns, place, number)
        for place, (number, over, protocol, last_ns) in enumerate(found)
        if over or protocol != KAFKA
    ]
    return [number for _, _, _, number in sorted(may)[:count]]
