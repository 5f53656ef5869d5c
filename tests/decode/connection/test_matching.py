"""Which response answers which request: order first, the id second, and nobody blamed for what was not seen."""

import pytest

from wirecheck.decode.connection.connection import Connection
from wirecheck.decode.connection.follower import Limits
from wirecheck.decode.connection.framing.recognise import Known
from wirecheck.decode.connection.handout import columns_of
from wirecheck.decode.connection.matching import (
    ANSWERED,
    NO_RESPONSE_DUE,
    ORPHAN,
    PENDING,
    REQUEST_UNSEEN,
    RESPONSE_UNSEEN,
    finish,
    on_request,
    on_response,
)
from wirecheck.decode.connection.output import EXCHANGE, MESSAGE
from wirecheck.decode.connection.shared import Shared
from wirecheck.decode.connection.waiting import ACKS_UNKNOWN, REQUEST, RESPONSE, Message


class Pair:
    def __init__(self, **limits):
        self.shared = Shared(Limits(**limits), Known([], [], [], []), None)
        self.connection = Connection("key", 1)
        self.connection.client = 0
        for direction in (self.connection.lower, self.connection.higher):
            direction.begin(0)

    def ask(self, *ids, flags=0, due=True):
        for number in ids:
            message = Message(REQUEST, 1, 12, number)
            message.flags = flags
            on_request(self.shared, self.connection, message, due)
        return self

    def answer(self, *ids):
        for number in ids:
            on_response(self.shared, self.connection, Message(RESPONSE, -1, -1, number))
        return self

    def outcomes(self):
        """(outcome, id, whether out of order) in the order they were decided."""
        ids = columns_of(self.shared.output.messages, MESSAGE)["correlation"].tolist()
        rows = zip(*columns_of(self.shared.output.exchanges, EXCHANGE).values(), strict=True)
        return [
            (outcome, ids[asked if asked >= 0 else answered], bool(late)) for asked, answered, outcome, late in rows
        ]


def test_answers_in_order_are_matched():
    assert Pair().ask(1, 2).answer(1, 2).outcomes() == [(ANSWERED, 1, False), (ANSWERED, 2, False)]


def test_an_answer_for_a_later_request_is_out_of_order():
    assert Pair().ask(1, 2).answer(2, 1).outcomes() == [(ANSWERED, 2, True), (ANSWERED, 1, False)]


def test_a_request_whose_answer_may_have_been_lost_is_not_waited_for():
    pair = Pair().ask(1)
    pair.connection.higher.unseen_bytes = 10
    assert pair.ask(2).answer(2).outcomes() == [(RESPONSE_UNSEEN, 1, False), (ANSWERED, 2, False)]


def test_produce_whose_acks_were_not_seen_is_owed_nothing():
    pair = Pair().ask(1, flags=ACKS_UNKNOWN).ask(2).answer(2)
    assert pair.outcomes() == [(NO_RESPONSE_DUE, 1, False), (ANSWERED, 2, False)]
    assert Pair().ask(1, due=False).outcomes() == [(NO_RESPONSE_DUE, 1, False)]


@pytest.mark.parametrize(("lost", "outcome"), [(0, ORPHAN), (5, REQUEST_UNSEEN)])
def test_an_answer_to_nothing_is_an_orphan_only_where_every_request_was_seen(lost, outcome):
    pair = Pair().answer(7)
    pair.connection.lower.unseen_bytes = lost
    finish(pair.shared, pair.connection)
    assert pair.outcomes() == [(outcome, 7, False)]


def test_an_answer_that_came_first_waits_for_its_request():
    assert Pair().answer(3).ask(3).outcomes() == [(ANSWERED, 3, False)]


def test_what_waits_is_bounded():
    pair = Pair(waiting_messages=2).ask(1, 2, 3)
    assert (pair.outcomes(), pair.connection.limits_hit) == ([(RESPONSE_UNSEEN, 1, False)], 1)
    finish(pair.shared, pair.connection)
    assert pair.outcomes()[1:] == [(PENDING, 2, False), (PENDING, 3, False)]


def test_what_a_slow_broker_leaves_in_its_receive_buffer_is_answered_in_full():
    """librdkafka has no limit of requests in flight: 1,796 waited for one broker. 200 kB hold 3,400 of 60 bytes."""
    pair = Pair().ask(*range(3400)).answer(*range(3400))
    assert pair.outcomes() == [(ANSWERED, number, False) for number in range(3400)]
    assert pair.connection.limits_hit == 0


def test_an_answer_that_stands_far_back_is_found_too():
    pair = Pair().answer(*range(20)).ask(12)
    assert pair.outcomes() == [(ANSWERED, 12, False)]


def test_answers_before_one_whose_request_came_wait_no_more_where_requests_may_be_missing():
    """Else those of lost requests hide the one that is due: kraft4-recreate with seed 9 of recovery.py."""
    pair = Pair().answer(*range(20))
    pair.connection.lower.unseen_bytes = 10
    unseen = [(REQUEST_UNSEEN, number, False) for number in range(12)]
    assert pair.ask(12).outcomes() == [*unseen, (ANSWERED, 12, False)]
    assert pair.connection.early_responses.unmatched == 1
    assert pair.ask(13).connection.early_responses.unmatched == 0


def test_where_nothing_has_matched_for_long_only_the_next_few_are_compared():
    """So that a stranger's ids cost little; what stands where it should be is found all the same, and sets it right."""
    pair = Pair(waiting_messages=64).answer(*range(20)).ask(*range(100, 148))
    assert pair.ask(12).outcomes() == []
    assert pair.ask(3).outcomes() == [(ANSWERED, 3, False)]
    assert pair.ask(13).outcomes()[1:] == [(ANSWERED, 13, False)]
