"""The same bytes again, other bytes, bytes for what was left out: what is held is whole and counted once."""

from dataclasses import replace

import pytest

from tests.decode.connection.conversations import (
    API_VERSIONS,
    exchange_rows,
    facts,
    produce,
    request,
    response,
    segments,
)
from tests.traffic import Talk
from wirecheck.decode.connection.follower import Follower

OPENED = Talk().open().request(request(API_VERSIONS, 3, 0)).response(response(0))
STREAM = produce(1, size=260)
FIRST = OPENED.client_seq


def piece(a, b, data=STREAM):
    """Bytes a to b of the stream in a packet of their own."""
    frame = next(f for f in OPENED.segments if f.src == OPENED.client and f.payload)
    return replace(frame, seq=FIRST + a, ack=OPENED.server_seq, payload=data[a:b], ts_ns=OPENED.ts_ns + a)


def follow(*calls):
    """Each call: [(frame, left-out spans)]."""
    follower = Follower()
    results = [follower.receive(segments(OPENED.segments))]
    for call in calls:
        frames = [frame for frame, _ in call]
        left_out = {i: spans for i, (_, spans) in enumerate(call) if spans}
        results.append(follower.receive(segments(frames, left_out=left_out)))
    return [*results, follower.drain()]


def said(results):
    """(bytes, spans) of the request."""
    (row,) = [row for row in exchange_rows(results) if row[2] and row[2][3] == 1]
    return row[2][5], row[2][6]


def conflicting(results):
    (connection,) = facts(results).values()
    return connection.conflicting_bytes


WHOLE = STREAM[4:], ()
ORDERS = [
    [(200, 300), (150, 299), (0, 160)],
    [(200, 250), (100, 290), (290, 300), (0, 120)],
    [(100, 150), (200, 250), (50, 299), (0, 80), (280, 300)],
    [(100, 150), (200, 250), (120, 220), (0, 130), (240, 300)],
    [(100, 300), (150, 200), (0, 100)],
    [(0, 100), (50, 150), (90, 300)],
]


@pytest.mark.parametrize("apart", [False, True], ids=["one call", "a call each"])
@pytest.mark.parametrize("order", ORDERS)
def test_pieces_that_overlap_in_any_way_give_the_stream(order, apart):
    frames = [(piece(a, min(b, len(STREAM))), ()) for a, b in [*order, (250, len(STREAM))]]
    results = follow(*([frame] for frame in frames)) if apart else follow(frames)
    assert said(results) == WHOLE
    assert conflicting(results) == 0


@pytest.mark.parametrize("apart", [False, True], ids=["one call", "a call each"])
def test_what_comes_again_with_other_bytes_is_counted_and_not_taken(apart):
    lie = bytes(byte ^ (at % 2) for at, byte in enumerate(STREAM))
    frames = [(piece(100, 200), ()), (piece(150, 250, lie), ()), (piece(0, 100), ()), (piece(250, len(STREAM)), ())]
    results = follow(*([frame] for frame in frames)) if apart else follow(frames)
    assert conflicting(results) == 25
    data, _ = said(results)
    assert data[:196] == STREAM[4:200]


@pytest.mark.parametrize("apart", [False, True], ids=["one call", "a call each"])
def test_kept_bytes_win_over_bytes_left_out(apart):
    """Two agents, of which one trimmed: whichever comes first."""
    trimmed, whole = (piece(100, 200), ((0, 100),)), (piece(100, 200), ())
    rest = [(piece(0, 100), ()), (piece(200, len(STREAM)), ())]
    for both in ([trimmed, whole], [whole, trimmed]):
        frames = [*both, *rest]
        results = follow(*([frame] for frame in frames)) if apart else follow(frames)
        assert said(results) == WHOLE
        assert conflicting(results) == 0


def test_bytes_for_a_part_of_what_was_left_out_fill_that_part():
    frames = [(piece(100, 200), ((0, 100),)), (piece(100, 150), ()), (piece(0, 100), ()), (piece(200, len(STREAM)), ())]
    assert said(follow(frames)) == (STREAM[4:150] + STREAM[200:], ((146, 50),))


def test_left_out_bytes_that_overlap_what_is_there_are_there():
    frames = [(piece(0, 150), ()), (piece(100, 250), ((60, 90),)), (piece(250, len(STREAM)), ())]
    assert said(follow(frames)) == (STREAM[4:160] + STREAM[250:], ((156, 90),))


@pytest.mark.parametrize("apart", [False, True], ids=["one call", "a call each"])
def test_bytes_for_the_middle_of_what_was_left_out_fill_the_middle(apart):
    frames = [(piece(100, 200), ((0, 100),)), (piece(130, 150), ()), (piece(0, 100), ()), (piece(200, len(STREAM)), ())]
    results = follow(*([frame] for frame in frames)) if apart else follow(frames)
    assert said(results) == (STREAM[4:100] + STREAM[130:150] + STREAM[200:], ((96, 30), (146, 50)))


@pytest.mark.parametrize("apart", [False, True], ids=["one call", "a call each"])
def test_what_was_left_out_twice_is_left_out_once(apart):
    trimmed = piece(100, 200), ((0, 100),)
    frames = [trimmed, trimmed, (piece(0, 100), ()), (piece(200, len(STREAM)), ())]
    results = follow(*([frame] for frame in frames)) if apart else follow(frames)
    assert said(results) == (STREAM[4:100] + STREAM[200:], ((96, 100),))


def test_what_was_left_out_and_what_was_lost_behind_it_are_one_span():
    """Of two packets the first is trimmed, the second lost; only the lost bytes are a gap."""
    frames = [(piece(0, 100), ()), (piece(100, 150), ((0, 50),)), (piece(200, len(STREAM)), ())]
    results = follow(frames)
    assert said(results) == (STREAM[4:100] + STREAM[200:], ((96, 100),))
    (connection,) = facts(results).values()
    assert connection.unseen_request_bytes == 50
