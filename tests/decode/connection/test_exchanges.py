"""Some of the exchanges that a call handed out, with their messages."""

import numpy as np
import pytest

from tests.decode.connection.conversations import FETCH, exchange_rows, opened, request, response, segments
from wirecheck.decode.connection.exchanges import joined
from wirecheck.decode.connection.follower import Follower


def whole():
    """Of ApiVersions and of three requests: the second is answered before the first, the last never."""
    talk = opened()
    for number in (1, 2, 3):
        talk.request(request(FETCH, 12, number, bytes(10 * number)))
    talk.response(response(2)).response(response(1, bytes(9))).close()
    follower = Follower()
    return joined([follower.receive(segments(talk.segments)), follower.drain()])


def of_each(exchanges):
    return [exchange_rows([exchanges.only(np.array([i]))])[0] for i in range(len(exchanges))]


@pytest.mark.parametrize("numbers", [[0, 1, 2, 3], [2, 0], [1], []])
def test_some_exchanges_say_what_they_said_among_all_in_the_order_asked_for(numbers):
    every = whole()
    some = every.only(np.array(numbers, np.int64))
    assert of_each(some) == [of_each(every)[i] for i in numbers]
    assert some.connections == every.connections


def test_each_message_knows_its_exchange():
    every = whole()
    for exchanges in (every, every.only(np.array([2, 0]))):
        asked = exchanges.request.tolist()
        assert [asked[i] for i in exchanges.exchange[asked]] == asked
        assert exchanges.exchange[exchanges.response[exchanges.response >= 0]].tolist() == [
            i for i, row in enumerate(exchanges.response.tolist()) if row >= 0
        ]


def test_a_connection_in_several_pieces_is_over_in_one():
    """What counts connections would count it in each of them."""
    every = whole()
    pieces = every.divided(np.array_split(np.arange(len(every)), len(every)))
    assert [len(piece.connections) for piece in pieces] == [1] * len(every)
    assert sum(connection.over for piece in pieces for connection in piece.connections) == 1


def test_what_a_connection_left_unanswered_is_one_unit():
    talk = opened()
    for number in (1, 2, 3, 4):
        talk.request(request(FETCH, 12, number))
    talk.response(response(2)).close()
    follower = Follower()
    every = joined([follower.receive(segments(talk.segments)), follower.drain()])
    units = sorted(len(unit) for unit in every.units())
    assert units == [1, 1, 3]
    assert sorted(number for unit in every.units() for number in unit.tolist()) == [*range(len(every))]
