"""What is kept between calls: packed or not, stored or not, it goes on as if nothing had been."""

import pytest

from tests.decode.connection.conversations import (
    API_VERSIONS,
    FETCH,
    exchange_rows,
    facts,
    moved,
    produce,
    request,
    response,
    segments,
)
from tests.traffic import Talk
from wirecheck.decode.connection.follower import Follower

SECOND = 10**9
LINGERED = 20 * SECOND  # after which a closed connection is forgotten


def past(count=40):
    """Connections that are over long before the one that is looked at, and leave the heap mostly empty."""
    talks = [moved(Talk(), number) for number in range(1, count)]
    for talk in talks:
        talk.open().request(request(API_VERSIONS, 3, 0)).response(response(0)).request(produce(1, size=3000)).reset()
    return [frame for talk in talks for frame in talk.segments]


def present():
    """Something waits at most places: pieces behind a hole, requests, an answer, half a message."""
    talk = Talk(mss=60, ts_ns=Talk.ts_ns + 60 * SECOND).open()
    talk.request(request(API_VERSIONS, 3, 0)).response(response(0))
    for number in (1, 2, 3):
        talk.request(produce(number, size=200))
    talk.response(response(1, b"one" * 40)).response(response(3, b"three"))
    talk.request(request(FETCH, 12, 4, bytes(90))).response(response(4, b"four" * 30))
    frames = talk.segments
    early = next(i for i, frame in enumerate(frames) if b"four" in frame.payload)
    frames.insert(early - 2, frames.pop(early))  # an answer that the capture shows before its request
    frames[8], frames[10] = frames[10], frames[8]
    return frames


def follow(parts, *, stored):
    follower, results = Follower(), []
    for part in parts:
        results += [
            follower.receive(segments(part)),
            follower.advance("a", part[0].ts_ns + (LINGERED if len(part) > 99 else 0)),
        ]
        if stored:
            follower = Follower.restore(follower.snapshot())
    return [*results, follower.drain()]


def test_a_conversation_stored_after_every_frame_goes_on():
    parts = [past(), *([frame] for frame in present())]
    plain, stored = follow(parts, stored=False), follow(parts, stored=True)
    assert exchange_rows(stored, packets=False) == exchange_rows(plain, packets=False)
    assert facts(stored) == facts(plain)
    assert [row[0] for row in exchange_rows(plain) if row[2] and row[2][7].startswith("10.0.0.1:")].count(
        "answered"
    ) == 4


@pytest.mark.parametrize("cut", range(3, 27, 4))
def test_two_halves_of_a_conversation_are_one(cut):
    frames = present()
    assert exchange_rows(follow([past(), frames[:cut], frames[cut:]], stored=True), packets=False) == exchange_rows(
        follow([past() + frames], stored=False), packets=False
    )


def test_what_is_over_takes_no_room_in_what_is_stored():
    lone, crowded = Follower(), Follower()
    lone.receive(segments(present()[:14]))
    crowded.receive(segments(past(200)))
    crowded.advance("a", Talk.ts_ns + 50 * SECOND)
    crowded.receive(segments(present()[:14]))
    assert len(crowded.snapshot()) < 3 * len(lone.snapshot())


def test_left_out_bytes_in_several_packets_are_one_span_of_their_message():
    talk = (
        Talk(mss=100, ts_ns=Talk.ts_ns + 60 * SECOND).open().request(request(API_VERSIONS, 3, 0)).response(response(0))
    )
    frames = talk.request(produce(1, size=900)).segments
    first = next(i for i, frame in enumerate(frames) if len(frame.payload) == 100)
    gone = {i: [(0, 100)] for i in range(first + 2, first + 6)}
    follower = Follower()
    results = [follower.receive(segments(frames[: first + 4], left_out=gone)), follower.receive(segments(past()))]
    results.append(follower.advance("a", Talk.ts_ns + LINGERED))
    follower = Follower.restore(follower.snapshot())
    rest = {i - first - 4: spans for i, spans in gone.items() if i >= first + 4}
    results += [follower.receive(segments(frames[first + 4 :], left_out=rest)), follower.drain()]
    (spans,) = [row[2][6] for row in exchange_rows(results) if row[2][7].startswith("10.0.0.1:") and row[2][3] == 1]
    assert spans == ((196, 400),)
