"""Laws of following hostile traffic: its memory is bounded, its cost per frame is flat, and nobody else pays for it.

The attacks are those of fuzz/hostile.py; here they run against small bounds.
"""

import time

import numpy as np
import pytest

from fuzz.following import random_order
from fuzz.hostile import ATTACKS, START_NS, Frames, ordinary
from tests.decode.connection.conversations import exchange_rows, facts
from wirecheck.decode.connection.exchanges import ANSWERED
from wirecheck.decode.connection.follower import Follower, Limits

GOOD = 99
LIMITS = Limits(
    held_bytes=40_000, held_pieces=200, search_bytes=40_000, search_pieces=400, waiting_messages=100,
    waiting_bytes=100_000, message_bytes=400 << 20, connections=400, pending_bytes=400_000,
)  # fmt: skip
BLOCKS = 8
CONNECTION_BYTES = 1048  # of one that is stored, at most: as much as every number of it in full


def frames_of(name, block):
    count = {
        "65 k pipelined requests": 1,
        "900 kB begun on every connection": 50,
        "connections never confirmed": 80,
    }.get(name, 320)
    return Frames(ATTACKS[name](block, count))


def exchanges_of_good(results):
    name = next(c.name for e in results for c in e.connections if c.client[1] == GOOD)
    return [row for row in exchange_rows(results, packets=False) if (row[2] or row[3])[7] == name]


def mixed(rows, good):
    """The good connection's frames spread evenly among the others."""
    places = np.linspace(0, len(rows), len(good), endpoint=False).astype(int).tolist()
    out, at = [], 0
    for place, row in zip(places, good, strict=True):
        out += [*rows[at:place], row]
        at = place
    return Frames(out + rows[at:])


def blocks(name):
    """Blocks of the attack with a good connection among it; with name None the good connection alone."""
    for block in range(BLOCKS):
        rows = [] if name is None else frames_of(name, block).rows
        yield mixed(rows, ordinary(GOOD, block, 10)).segments(START_NS + block * 10**8)


@pytest.mark.parametrize("name", ATTACKS)
def test_a_hostile_stream_stays_within_bounds_and_costs_its_neighbour_nothing(name):
    alone = Follower(LIMITS)
    wanted = exchanges_of_good([*(alone.receive(part) for part in blocks(None)), alone.drain()])
    assert len(wanted) == 10 * BLOCKS + 1
    follower, results, sizes = Follower(LIMITS), [], []
    for part in blocks(name):
        results.append(follower.receive(part))
        follower._touch(follower._parked.keys())
        assert follower.pending == sum(c.count_pending() for c in follower._in_order()) <= LIMITS.pending_bytes
        follower = Follower.restore(follower.snapshot(), LIMITS)
        assert follower.pending == follower._parked.columns()["pending"].sum()
        sizes.append(len(follower.snapshot()))
    results.append(follower.drain())
    assert exchanges_of_good(results) == wanted
    assert follower.pending == 0
    most = LIMITS.pending_bytes + (CONNECTION_BYTES + 100) * LIMITS.connections
    assert max(sizes) <= most + 100_000
    assert results[-1].refused_connections == 0


@pytest.mark.parametrize("name", ATTACKS)
def test_where_calls_end_changes_nothing_while_bounds_are_hit(name):
    if name == "connections never confirmed":
        pytest.skip("connections are let go between calls")
    at_once, parted = Follower(LIMITS), Follower(LIMITS)
    results: list[list] = [[], []]
    for part in blocks(name):
        results[0].append(at_once.receive(part))
        for rows in np.array_split(np.arange(len(part)), 5):
            results[1].append(parted.receive(part.take(rows)))
            parted = Follower.restore(parted.snapshot(), LIMITS)
    results[0].append(at_once.drain())
    results[1].append(parted.drain())
    assert exchange_rows(results[1]) == exchange_rows(results[0])
    assert facts(results[1]) == facts(results[0])


def test_what_is_given_up_is_counted_and_the_stream_is_read_on():
    """Two requests of 300 kB, of which only one fits into what may wait; the small one behind it is read."""
    rows = ordinary(GOOD, 0, 1)
    body = ordinary(1, 0, 0)
    follower = Follower(Limits(pending_bytes=200_000))
    big = ATTACKS["900 kB begun on every connection"](0, 50)
    result = follower.receive(Frames([*rows, *body, *big]).segments(START_NS))
    assert [c.limits_hit for c in result.connections if c.client[1] == GOOD] == [0]
    (hit,) = [c for c in result.connections if c.limits_hit]
    assert hit.skipped_bytes > 500_000
    assert hit.unseen_request_bytes == 0


def test_connections_that_show_nothing_make_room_for_those_that_do():
    follower = Follower(Limits(connections=100))
    results = []
    for block in range(20):
        rows = ATTACKS["connections never confirmed"](block, 20) + ordinary(1000 + block, 0, 3)
        results.append(follower.receive(Frames(rows).segments(START_NS + block * 10**8)))
    results.append(follower.drain())
    assert results[-1].refused_connections == 0
    assert sum(int((e.outcome == ANSWERED).sum()) for e in results) == 20 * 4


@pytest.mark.parametrize("name", ATTACKS)
def test_the_cost_of_a_frame_does_not_grow_with_what_came_before(name):
    follower, costs = Follower(LIMITS), []
    for block in range(12):
        part = frames_of(name, block).segments(START_NS + block * 10**8)
        begin = time.thread_time()
        follower.receive(part)
        costs.append((time.thread_time() - begin) / len(part))
    assert min(costs[6:]) <= 5 * min(costs[:6])


def test_a_segment_in_random_order_costs_the_same_however_many_are_held():
    few, many = ([random_order(np.random.default_rng(seed), count) for seed in range(3)] for count in (1_000, 16_000))
    assert all(found == wanted for _, found, wanted in few + many)
    assert min(many)[0] <= 3 * min(few)[0]
