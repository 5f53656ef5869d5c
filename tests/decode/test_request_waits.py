"""How long a client waits, and when it has given up: by connections whose every byte was captured."""

from dataclasses import replace

import numpy as np
import pytest

from tests.judge.lab import Lab, exchanged
from wirecheck.decode.columns import tables
from wirecheck.decode.connection.exchanges import ANSWERED, CLOSED_BY_CLIENT, PENDING
from wirecheck.decode.request_waits import answerable_ns, given_up, until_ns, whole


def asked(api, version, request, closed=None, outcome=CLOSED_BY_CLIENT, **facts):
    """The exchanges that were given up: the first is answered, the second is not."""
    lab = Lab()
    talk = lab.talk(closed_by="client-fin" if closed else None, **facts)
    talk.ask(0, "Metadata", 12, {"topics": None}, {})
    talk.ask(1, api, version, request, outcome=outcome)
    talk.closed = closed
    exchanges, decoded = exchanged(talk)
    return given_up(exchanges, decoded, lambda name: tables(decoded, name, "request")).tolist()


@pytest.mark.parametrize(
    ("closed", "gave_up"), [(2.5, False), (3.5, True)], ids=["sooner than any client", "after two seconds"]
)
def test_a_request_without_a_limit_is_given_up_after_the_shortest_time(closed, gave_up):
    assert asked("Heartbeat", 4, {"groupId": "g"}, closed) == [1] * gave_up


@pytest.mark.parametrize(("closed", "gave_up"), [(20, False), (32, True)])
def test_a_fetch_is_given_up_when_it_was_open_for_longer_than_it_allows(closed, gave_up):
    assert asked("Fetch", 12, {"maxWaitMs": 30_000, "topics": []}, closed) == [1] * gave_up


@pytest.mark.parametrize(("closed", "gave_up"), [(100, False), (302, True)])
def test_a_group_decides_how_long_a_round_takes(closed, gave_up):
    assert asked("JoinGroup", 9, {"groupId": "g"}, closed) == [1] * gave_up


@pytest.mark.parametrize(("closed", "gave_up"), [(200, []), (302, [0, 1])])
def test_a_request_waits_for_those_before_it_on_its_connection(closed, gave_up):
    """A broker reads no further from a connection before it has answered."""
    lab = Lab()
    talk = lab.talk(closed_by="client-fin")
    talk.ask(0, "JoinGroup", 9, {"groupId": "g"}, outcome=CLOSED_BY_CLIENT)
    talk.ask(1, "LeaveGroup", 4, {"groupId": "g"}, outcome=CLOSED_BY_CLIENT)
    talk.closed = closed
    exchanges, decoded = exchanged(talk)
    assert given_up(exchanges, decoded, lambda name: tables(decoded, name, "request")).tolist() == gave_up


def test_a_write_waits_if_it_takes_seconds_whatever_it_allows():
    assert asked("Produce", 9, {"acks": -1, "timeoutMs": 30_000, "topicData": []}, 7) == [1]
    assert asked("Produce", 9, {"acks": -1, "timeoutMs": 30_000, "topicData": []}, 4) == []


def test_of_what_is_pending_at_the_end_only_writes_wait():
    assert asked("Heartbeat", 4, {"groupId": "g"}, outcome=PENDING) == []


@pytest.mark.parametrize("lost", ["unseen_response_bytes", "unseen_request_bytes", "cut_bytes", "skipped_bytes"])
def test_a_missing_byte_may_have_been_the_response(lost):
    assert asked("Heartbeat", 4, {"groupId": "g"}, 20, **{lost: 10}) == []


def test_a_connection_that_began_before_the_capture_is_joined_once_by_each_side():
    lab = Lab()
    talk = lab.talk(from_start=False, resynchronised=2)
    talk.ask(0, "Metadata", 12, {"topics": None}, {})
    exchanges, _ = exchanged(talk)
    (one,) = exchanges.connections
    assert whole(one)
    assert not whole(replace(one, resynchronised=3))
    assert not whole(replace(one, from_start=True))
    assert not whole(replace(one, responses=0))
    assert until_ns(exchanges, np.array([0])).tolist() == [int(exchanges.ts_ns[1])]
    assert answerable_ns(exchanges, np.array([0])).tolist() == [int(exchanges.ts_ns[0])]
    assert exchanges.outcome.tolist() == [ANSWERED]


def test_nothing_is_given_up_where_all_was_answered():
    lab = Lab()
    exchanges, decoded = exchanged(lab.metadata(0))
    assert given_up(exchanges, decoded, lambda name: tables(decoded, name, "request")).tolist() == []
