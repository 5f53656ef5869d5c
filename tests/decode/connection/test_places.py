"""Spans of messages are found in every packet that carried them, and packets are let go once all is decided."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.decode.connection.conversations import FETCH, produce, request, response, segments
from tests.traffic import Talk
from wirecheck.decode.connection.follower import Follower
from wirecheck.decode.connection.places import Places

SECRET = bytes(range(0xE0, 0xED))  # values that stand nowhere else


def found(places: Places, results) -> set[tuple[int, int]]:
    """(packet, byte of its payload) of every place where a message holds the secret."""
    marked = set()
    for result in results:
        m = result.messages
        for i in range(len(m)):
            data = m.data[m.at[i] : m.at[i + 1]].tobytes()
            for at in (at for at in range(len(data)) if data.startswith(SECRET, at)):
                one = np.array([i]), np.array([at]), np.array([len(SECRET)])
                numbers, offsets, lengths = places.spans(result, *one)
                for number, offset, length in zip(numbers.tolist(), offsets.tolist(), lengths.tolist(), strict=True):
                    marked |= {(number, offset + k) for k in range(length)}
    return marked


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.sampled_from([1, 5, 64, 1448]), st.integers(0, 80), st.lists(st.integers(0, 10**6), max_size=8))
def test_leaving_out_the_found_bytes_leaves_no_secret_in_any_packet(mss, before, again):
    talk = Talk(mss=mss).open().request(request(FETCH, 12, 1, bytes(before) + SECRET)).response(response(1, SECRET * 2))
    talk.request(produce(2)).response(response(2, bytes(before) + SECRET))
    frames = list(talk.segments)
    for place in again:
        frames.insert(place % len(frames) + 1, frames[place % len(frames)])
    follower, places = Follower(early=True), Places()
    results = [follower.receive(segments(frames))]
    places.add(np.arange(len(frames)), follower.placed, np.array([len(frame.payload) for frame in frames]))
    results.append(follower.drain())
    marked = found(places, results)
    whole = b"".join(bytes(frames[n].payload[k : k + 1]) for n, k in sorted(marked))
    assert len(whole) >= 4 * len(SECRET)
    carried = {(n, k) for n, frame in enumerate(frames) for k in range(len(frame.payload))}
    kept = {place: frames[place[0]].payload[place[1]] for place in carried - marked}
    assert set(kept.values()) & set(SECRET) == set()


def test_a_packet_is_let_go_when_every_byte_of_it_is_decided():
    talk = Talk(mss=10).open().request(request(FETCH, 12, 1, bytes(40)))
    follower, places = Follower(early=True), Places()
    for number, frame in enumerate(talk.segments):
        follower.receive(segments([frame]))
        places.add(np.array([number]), follower.placed, np.array([len(frame.payload)]))
    assert len(places) == 7
    gone = [places.release(*open_) for open_ in follower.decided().tolist()]
    assert sorted(n for numbers in gone for n in numbers.tolist()) == [3, 4, 5, 6, 7, 8, 9]
    assert len(places) == 0


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
