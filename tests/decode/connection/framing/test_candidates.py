"""Candidates for a boundary: which are remembered, and what confirms them."""

from tests.decode.connection.conversations import FETCH, request, response
from wirecheck.decode.connection.follower import Limits
from wirecheck.decode.connection.framing.recognise import Known, request_header
from wirecheck.decode.connection.framing.resync import (
    CANDIDATES,
    CONFIRMED,
    REFUTED,
    WAITING,
    InFlightIds,
    add_candidate,
    confirm,
)
from wirecheck.decode.connection.shared import Shared
from wirecheck.decode.connection.stream.chunks import DATA, Chunk
from wirecheck.decode.connection.stream.direction import Candidate, Direction
from wirecheck.decode.connection.waiting import RAW, REQUEST, Message
from wirecheck.decode.wire import known

KNOWN = Known(*known().T.tolist())


def holding(data):
    direction = Direction(0)
    direction.begin(0)
    direction.ordered.append(Chunk(0, len(data), DATA, data, 0))
    direction.next_offset = len(data)
    return direction


def said(data, *, end, correlation=1, client=None, ids=None):
    found = request_header(KNOWN, data, 1 << 28)[2] if client is None else client
    return confirm(Shared(Limits(), KNOWN, None), holding(data), Candidate(0, end, correlation, found), ids)


def test_a_request_is_confirmed_by_the_same_clients_next_one():
    first = request(FETCH, 11, 1)
    assert said(first + request(FETCH, 11, 2), end=len(first)) == CONFIRMED
    assert said(first + request(FETCH, 11, 2, client="other"), end=len(first)) == REFUTED
    assert said(first + b"GET / HTTP/1.1\r\n" * 9, end=len(first)) == REFUTED
    assert said(first, end=len(first)) == WAITING
    assert said(first + request(FETCH, 11, 2)[:9], end=len(first)) == WAITING


def test_a_response_is_confirmed_by_the_answer_to_a_later_request():
    requests = [Message(REQUEST, 1, 11, number) for number in (5, 70_000, 9)]
    requests[2].flags = RAW
    ids = InFlightIds(requests)
    assert [ids.place(number) for number in (5, 70_000, 9)] == [0, 1, -1]
    first = response(5, b"body")
    for correlation, verdict in ((70_000, CONFIRMED), (4, REFUTED)):
        assert said(first + response(correlation), end=len(first), correlation=5, client=0, ids=ids) == verdict


def test_the_first_candidates_stay_and_of_the_others_the_one_that_ends_last_makes_room():
    direction = Direction(0)
    for number in range(CANDIDATES):
        add_candidate(direction, Candidate(number, 1000 + number, 1, 1))
        if number < CANDIDATES - 1:
            add_candidate(direction, Candidate(number, 5, 1, 1))  # the same place again
    add_candidate(direction, Candidate(50, 2000, 1, 1))
    assert [c.begin for c in direction.candidates] == list(range(CANDIDATES))
    add_candidate(direction, Candidate(60, 100, 1, 1))
    assert [c.begin for c in direction.candidates] == [*range(CANDIDATES - 1), 60]
