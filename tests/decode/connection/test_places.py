"""Where packets belong in their streams, and up to where all is decided: what trimming works with."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.decode.connection.conversations import FETCH, produce, request, response, segments
from tests.traffic import Talk
from wirecheck.decode.connection.follower import Follower

SECRET = bytes(range(0xE0, 0xED))  # values that stand nowhere else


def streams(frames, placed):
    """Every byte that a packet carried, by its stream and its offset there: (packet, byte of its payload)."""
    where = {}
    rows = zip(frames, placed.serial.tolist(), placed.direction.tolist(), placed.offset.tolist(), strict=True)
    for number, (frame, serial, direction, offset) in enumerate(rows):
        for k in range(len(frame.payload) if offset >= 0 else 0):
            where.setdefault((serial, direction, offset + k), []).append((number, k))
    return where


def found(where, results) -> set[tuple[int, int]]:
    """(packet, byte of its payload) of every place where a message holds the secret."""
    marked = set()
    for result in results:
        m = result.messages
        for i in range(len(m)):
            data = m.data[m.at[i] : m.at[i + 1]].tobytes()
            begin = int(result.stream_offset[i]) + 4
            for at in (at for at in range(len(data)) if data.startswith(SECRET, at)):
                for k in range(at, at + len(SECRET)):
                    marked |= set(where[int(result.serial[i]), int(result.direction[i]), begin + k])
    return marked


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.sampled_from([1, 5, 64, 1448]), st.integers(0, 80), st.lists(st.integers(0, 10**6), max_size=8))
def test_leaving_out_the_found_bytes_leaves_no_secret_in_any_packet(mss, before, again):
    talk = Talk(mss=mss).open().request(request(FETCH, 12, 1, bytes(before) + SECRET)).response(response(1, SECRET * 2))
    talk.request(produce(2)).response(response(2, bytes(before) + SECRET))
    frames = list(talk.segments)
    for place in again:
        frames.insert(place % len(frames) + 1, frames[place % len(frames)])
    follower = Follower(early=True)
    results = [follower.receive(segments(frames))]
    where = streams(frames, follower.placed)
    results.append(follower.drain())
    marked = found(where, results)
    whole = b"".join(bytes(frames[n].payload[k : k + 1]) for n, k in sorted(marked))
    assert len(whole) >= 4 * len(SECRET)
    carried = {(n, k) for n, frame in enumerate(frames) for k in range(len(frame.payload))}
    kept = {place: frames[place[0]].payload[place[1]] for place in carried - marked}
    assert set(kept.values()) & set(SECRET) == set()


def test_every_byte_of_a_packet_is_decided_when_its_message_is_handed_out():
    talk = Talk(mss=10).open().request(request(FETCH, 12, 1, bytes(40)))
    follower, waiting = Follower(early=True), []
    for number, frame in enumerate(talk.segments):
        follower.receive(segments([frame]))
        (serial,), (direction,), (offset,) = (
            column.tolist() for column in (follower.placed.serial, follower.placed.direction, follower.placed.offset)
        )
        if offset >= 0:
            waiting.append((number, serial, direction, offset + len(frame.payload)))
    assert [number for number, *_ in waiting] == [3, 4, 5, 6, 7, 8, 9]
    upto = {(serial, direction): at for serial, direction, at in follower.decided().tolist()}
    assert all(end <= upto[serial, direction] for _, serial, direction, end in waiting)


def test_a_request_handed_out_early_gives_its_answer_key_and_version():
    talk = Talk().open().request(request(FETCH, 12, 7)).response(response(7))
    result = Follower(early=True).receive(segments(talk.segments))
    assert result.messages.key.tolist() == [FETCH, FETCH]
    assert result.messages.side.tolist() == [0, 1]
    assert [result.request.tolist(), result.response.tolist()] == [[0, -1], [-1, 1]]


@pytest.mark.parametrize("payload", [b"GET / HTTP/1.1\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"])
def test_what_is_not_kafka_is_decided_at_once(payload):
    talk = Talk().open().request(payload)
    follower = Follower(early=True)
    follower.receive(segments(talk.segments))
    assert sorted(offset for _, _, offset in follower.decided()) == [0, len(payload)]
    assert np.array_equal(np.unique(follower.decided()[:, 0]), [1])


def opened_by(*parts):
    """A follower after these calls of one connection that began with ApiVersions."""
    talk = Talk().open().request(request(18, 3, 0)).response(response(0))
    for is_client, data in parts:
        (talk.request if is_client else talk.response)(data)
    follower = Follower()
    follower.receive(segments(talk.segments))
    return follower, talk


def decided(follower):
    """Also where the connection is parked, and no object."""
    found = {(serial, direction): at for serial, direction, at in follower.decided().tolist()}
    follower.snapshot()
    assert found == {(serial, direction): at for serial, direction, at in follower.decided().tolist()}
    return {direction: at for (_, direction), at in found.items()}


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.sampled_from([1, 7, 64, 1448]), st.randoms(use_true_random=False), st.integers(0, 90))
def test_what_is_decided_does_not_depend_on_what_is_parked(mss, chance, count):
    talk = Talk(mss=mss).open().request(request(18, 3, 0)).response(response(0))
    talk.request(request(FETCH, 12, 1, bytes(30))).response(response(1, bytes(70))).request(produce(2))
    frames = sorted(talk.segments[:count], key=lambda frame: frame.ts_ns + chance.randrange(8 * 10**6))
    for early in (False, True):
        follower = Follower(early=early)
        follower.receive(segments(frames))
        decided(follower)


def test_what_waits_for_the_rest_of_its_message_is_not_decided():
    first, half = response(1, bytes(90)), request(FETCH, 12, 2, bytes(90))[:50]
    follower, _ = opened_by((True, request(FETCH, 12, 1)), (False, first), (True, half))
    begin = len(request(18, 3, 0)) + len(request(FETCH, 12, 1))
    assert decided(follower) == {0: begin, 1: len(response(0)) + len(first)}


def test_an_answer_whose_request_may_still_come_is_not_decided():
    """A shuffled capture: both are handed out together."""
    follower, talk = opened_by((False, response(1, bytes(9))))
    assert decided(follower) == {0: len(request(18, 3, 0)), 1: len(response(0))}
    talk.segments = []
    follower.receive(segments(talk.request(request(FETCH, 12, 1)).segments))
    assert decided(follower) == {
        0: len(request(18, 3, 0) + request(FETCH, 12, 1)),
        1: len(response(0) + response(1, bytes(9))),
    }


def test_of_a_connection_that_is_over_nothing_waits():
    follower, talk = opened_by((True, request(FETCH, 12, 1)))
    talk.segments = []
    follower.receive(segments(talk.close().segments))
    follower.advance("a", talk.ts_ns + 3_000_000_000)
    assert decided(follower) == {}
