"""Parked connections: as small as their numbers, made into objects again one by one, and equal to what they were."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from librt.vecs import vec
from mypy_extensions import i64

from tests.decode.connection.conversations import API_VERSIONS, FETCH, moved, produce, request, response, segments
from tests.traffic import Talk
from wirecheck.decode.connection.connection import Connection
from wirecheck.decode.connection.follower import Follower
from wirecheck.decode.connection.state.attributes import COLUMNS, CONNECTIONS, Reader, Writer, widths
from wirecheck.decode.connection.state.parked import Parked, Table, stored
from wirecheck.decode.connection.stream.chunks import DATA, Chunk
from wirecheck.decode.connection.stream.direction import Candidate
from wirecheck.decode.connection.waiting import Message

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)


@given(st.integers(1, 6).flatmap(lambda width: st.lists(st.lists(INT64, min_size=width, max_size=width), max_size=5)))
def test_a_stored_table_is_the_table(rows):
    width = len(rows[0]) if rows else 3
    numbers = np.array(rows, np.int64).reshape(-1, width)
    table = Table(memoryview(stored(numbers)), len(rows), width)
    assert table.rows().tolist() == numbers.tolist()
    assert [table.column(k).tolist() for k in range(width)] == numbers.T.tolist()
    assert table.rows(np.array([0] * len(rows[:1]), np.int64)).tolist() == numbers[:1].tolist()


def followed(count=6):
    """Connections that wait in every way: out of order, in a message, unanswered, answered too early, searched."""
    follower = Follower()
    for number in range(count):
        talk = moved(Talk(mss=60), number).open().request(request(API_VERSIONS, 3, 0)).response(response(0))
        talk.request(produce(1, size=200)).response(response(9, b"early")).request(request(FETCH, 12, 2, bytes(90)))
        frames = talk.segments if number % 3 else talk.segments[6:]
        follower.receive(segments([frame for i, frame in enumerate(frames) if i != 8 + number]))
    return follower


def written(connection):
    rows = Writer([connection])
    return [list(table.values)[: table.at] for table in rows.tables], b"".join(rows.data)


def read(key, tables, data):
    (again,) = Reader([vec[i64](table) for table in tables], memoryview(data)).connections([key], [0])
    return again


def test_a_connection_comes_back_as_it_was():
    for connection in followed()._in_order():
        tables, data = written(connection)
        again = read(connection.key, tables, data)
        assert written(again) == (tables, data)
        assert again.count_pending() == again.pending == connection.pending


def numbers(thing):
    """Its attributes that are numbers."""
    found = {name: getattr(thing, name) for name in dir(thing) if name[0] != "_"}
    return {name: value for name, value in found.items() if isinstance(value, int)}


def things(connection):
    """All that a connection consists of, and which numbers there follow from others."""
    yield connection, {"touched"}
    for side in (connection.lower, connection.higher):
        yield from ((side, set()), (side.acknowledged_before, set()), (side.shown_by_both_before, set()))
        yield from ((side.ordered.first, {"start"}), (side.out_of_order.first, {"start"}), (side.candidates[0], set()))
    for queue in (connection.in_flight, connection.early_responses):
        yield from ((queue.first, {"start", "owned"}), (queue.first.chunks, {"start"}))


def test_every_attribute_is_stored():
    """One that is added to a connection or to what it consists of, and forgotten in attributes.py, is noticed here."""
    connection, data = Connection("key", 1), bytes(range(250))
    for side in (connection.lower, connection.higher):
        side.ordered.append(Chunk(0, 10, DATA, data, 7))
        side.out_of_order.add(Chunk(0, 10, DATA, data, 8))
        side.candidates.append(Candidate(0, 0, 0, 0))
    for queue in (connection.in_flight, connection.early_responses):
        queue.push(Message(0, 0, 0, 0))
        queue.first.chunks = Chunk(0, 10, DATA, data, 9)
    value = 1000
    for thing, not_stored in things(connection):
        for name, now in numbers(thing).items():
            kept = isinstance(thing, Chunk) and name in {"begin", "end", "kind"}
            if name not in {"side"} | not_stored and not kept:
                value += 1
                setattr(thing, name, True if isinstance(now, bool) else value)
    again = read("key", *written(connection))
    for (before, not_stored), (after, _) in zip(things(connection), things(again), strict=True):
        found = [{k: v for k, v in numbers(thing).items() if k not in not_stored} for thing in (before, after)]
        assert found[0] == found[1], type(before)


def test_columns_that_are_asked_for_are_where_they_are_said_to_be():
    connection = Connection("key", 1)
    for value, name in enumerate(COLUMNS, 1000):
        setattr(connection, name, value)
    row = written(connection)[0][CONNECTIONS]
    assert [row[place] for place in COLUMNS.values()] == [getattr(connection, name) for name in COLUMNS]
    assert len(row) == widths()[CONNECTIONS]


def test_only_what_is_touched_becomes_an_object():
    follower = Follower.restore(followed(20).snapshot())
    talk = moved(Talk(mss=60), 3).open()
    follower.receive(segments(talk.segments[2:]))
    assert (len(follower._connections), len(follower._parked)) == (1, 19)


@pytest.mark.parametrize("rounds", [1, 9])
@pytest.mark.parametrize(("most_rows", "most_blocks"), [(4096, 4), (16, 8)])
def test_blocks_stay_few_and_small_however_often_some_are_touched(monkeypatch, rounds, most_rows, most_blocks):
    monkeypatch.setattr("wirecheck.decode.connection.state.parked.MOST_ROWS", most_rows)
    connections = followed(40)._in_order()
    parked = Parked()
    parked.park(connections)
    keys = [connection.key for connection in connections]
    for turn in range(rounds):
        parked.park(parked.take(keys[turn::7]))
    assert len(parked._blocks) <= most_blocks
    assert max(len(block.keys) for block in parked._blocks) <= most_rows
    assert sorted(parked.keys()) == sorted(keys)
    back = {connection.key: connection for connection in parked.take(keys)}
    assert [written(back[connection.key]) for connection in connections] == [written(c) for c in connections]


def test_what_was_never_seen_of_a_connection_is_stored_with_it():
    talk = moved(Talk(mss=60), 1).open().request(request(API_VERSIONS, 3, 0)).response(response(0))
    talk.request(produce(1, size=200)).response(response(1)).request(request(FETCH, 12, 2)).response(response(2))
    follower = Follower()
    follower.receive(segments(talk.segments[:6] + talk.segments[7:]))
    follower.advance("a", talk.ts_ns + 10_000_000_000)
    again = Follower.restore(follower.snapshot())
    ((asked,), (stored,)) = ([c.gaps for c in each.drain().connections] for each in (follower, again))
    assert [(side, count) for _, side, count in asked] == [(0, 60)]
    assert stored == asked


def test_what_was_taken_out_is_not_stored_where_it_lay():
    """A block is written anew seldom: those of its connections that were touched lie in a later one."""
    follower = Follower.restore(followed(20).snapshot())
    talk = moved(Talk(mss=60), 3)
    follower.receive(segments(talk.open().segments[2:]))
    follower.advance("a", talk.ts_ns + 3000 * 10**9, ended=True)
    again = Follower.restore(follower.snapshot())
    assert again.drain().connections == follower.drain().connections


def test_what_is_not_parked_any_more_is_found_nowhere():
    connections = followed(20)._in_order()
    parked = Parked()
    parked.park(connections)
    keys = [connection.key for connection in connections]
    parked.take(keys[3:5])
    again = Parked(parked._blocks)
    assert len(again) == 18
    assert again.keys() == [key for key in keys if key not in keys[3:5]]
    assert again.take(keys[3:5]) == []
