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
