"""Parked connections: as small as their numbers, made into objects again one by one, and equal to what they were."""

from operator import attrgetter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.decode.connection.conversations import API_VERSIONS, FETCH, moved, produce, request, response, segments
from tests.traffic import Talk
from wirecheck.decode.connection.follower import Follower
from wirecheck.decode.connection.state.attributes import ALL, Rows, connection_of
from wirecheck.decode.connection.state.numbers import Table, stored
from wirecheck.decode.connection.state.parked import Parked

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
    rows = Rows([connection])
    return [table.tolist() for table in rows.numbers()], b"".join(rows.data)


def test_a_connection_comes_back_as_it_was():
    for connection in followed()._in_order():
        tables, data = written(connection)
        again = connection_of(connection.key, tables, data)
        assert written(again) == (tables, data)
        assert again.count_pending() == again.pending == connection.pending


def numbers(thing):
    """Names of its attributes that are numbers."""
    return {name for name in dir(thing) if name[0] != "_" and isinstance(getattr(thing, name), int)}


def test_what_is_stored_is_every_attribute_of_a_connection():
    """One that is added to Connection or Direction and forgotten in attributes.py is noticed here."""
    (connection, *_) = followed(1)._in_order()
    assert numbers(connection) - {"touched"} == {name for name in ALL if "." not in name}
    lower = {name.removeprefix("lower.") for name in ALL if name.startswith("lower.") and name.count(".") == 1}
    assert numbers(connection.lower) - {"side"} == lower
    assert len(attrgetter(*ALL)(connection)) == len(set(ALL))


def test_only_what_is_touched_becomes_an_object():
    follower = Follower.restore(followed(20).snapshot())
    talk = moved(Talk(mss=60), 3).open()
    follower.receive(segments(talk.segments[2:]))
    assert (len(follower._connections), len(follower._parked)) == (1, 19)


@pytest.mark.parametrize("rounds", [1, 9])
def test_blocks_stay_few_however_often_some_are_touched(rounds):
    connections = followed(40)._in_order()
    parked = Parked()
    parked.park(connections)
    keys = [connection.key for connection in connections]
    for turn in range(rounds):
        parked.park(parked.take(keys[turn::7]))
    assert len(parked._blocks) <= 4
    assert sorted(parked.keys()) == sorted(keys)
    back = {connection.key: connection for connection in parked.take(keys)}
    assert [written(back[connection.key]) for connection in connections] == [written(c) for c in connections]
