"""Why a hole becomes a gap, and when: acknowledged long ago, old, or too much behind it; never for less."""

import pytest

from tests.decode.connection.conversations import request
from wirecheck.decode.connection.connection import Connection
from wirecheck.decode.connection.follower import Limits
from wirecheck.decode.connection.framing.recognise import Known
from wirecheck.decode.connection.gaps import declare_gaps, hole_deadline
from wirecheck.decode.connection.shared import Shared
from wirecheck.decode.connection.stream.chunks import DATA, Chunk
from wirecheck.decode.connection.stream.frame import NEVER

SECOND = 10**9
LIMITS = Limits(slack_frames=8, held_bytes=100, held_pieces=10)


def holed(size=10):
    """A direction that misses bytes 0 to 50, with `size` bytes behind them at second 100."""
    shared, connection = Shared(LIMITS, Known([], [], [], []), None), Connection("key", 1)
    direction = connection.lower
    direction.begin(1000)
    chunk = Chunk(50, 50 + size, DATA, request(1, 12, 1) * 20, 0)
    chunk.ts_ns = 100 * SECOND
    direction.out_of_order.add(chunk)
    direction.newest = 50 + size
    connection.half_slack = 100 * SECOND // shared.limits.half_slack_ns
    return shared, connection, direction


def test_a_hole_waits_until_it_is_old_and_becomes_a_gap_then():
    shared, connection, direction = holed()
    assert hole_deadline(shared, connection, direction) == 105 * SECOND
    assert not declare_gaps(shared, connection, direction, 105 * SECOND - 1)
    assert declare_gaps(shared, connection, direction, 105 * SECOND)
    assert connection.gaps == [(105 * SECOND, 0, 50, 0, NEVER)]
    assert (direction.unseen_bytes, direction.next_offset, hole_deadline(shared, connection, direction)) == (
        50,
        60,
        NEVER,
    )


@pytest.mark.parametrize("by_time", [True, False])
def test_what_the_peer_acknowledged_is_final_when_it_was_half_a_slack_ago(by_time):
    shared, connection, direction = holed()
    direction.acknowledge(1000 + 55, False, 100 * SECOND)
    assert not declare_gaps(shared, connection, direction, 100 * SECOND)
    for _ in range(2):  # twice half a slack
        if by_time:
            connection.remember_acknowledged((connection.half_slack + 1) * SECOND, SECOND, 10**9)
        else:
            connection.frames += 4
            connection.remember_acknowledged(100 * SECOND, SECOND, 4)
    assert declare_gaps(shared, connection, direction, 101 * SECOND)
    assert connection.gaps == [(101 * SECOND, 0, 50, 0, NEVER)]


def test_too_much_behind_a_hole_ends_the_wait_and_is_counted():
    shared, connection, direction = holed(101)
    assert declare_gaps(shared, connection, direction, 100 * SECOND)
    assert (connection.limits_hit, direction.next_offset) == (1, 151)


def test_a_second_agent_that_may_still_show_it_is_waited_for_longer():
    shared, connection, direction = holed()
    connection.agent, connection.second_agent = 0, 1
    assert not declare_gaps(shared, connection, direction, 119 * SECOND)
    shared.gone_agents = 1 << 1
    assert declare_gaps(shared, connection, direction, 119 * SECOND)
