"""Laws of following: however frames are cut, shuffled, repeated or lost, what is told is the same or is missing.

Split: any cut into calls, with the follower stored and restored between them, with or without news of time.
Order: any shuffle within the window, any duplication, any overlap, any initial sequence number.
Truncation: what is not all there is never told. Loss: what is told is true. Bounds: memory does not follow length.
"""

import itertools
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.decode.connection.conversations import (
    API_VERSIONS,
    FETCH,
    METADATA,
    exchange_rows,
    moved,
    produce,
    request,
    response,
    segments,
)
from tests.depth import examples
from tests.traffic import ACK, PSH, Segment, Talk
from wirecheck.decode.connection.follower import Follower, Limits

RUNS = examples(30, deep=60)
ECN_ECHO = 64
MS = 1_000_000


def talk(number: int, sizes: list[tuple[int, int, int]], mss: int, isn: int, pipelined: bool) -> list[Segment]:
    """A connection whose client asks (kind, size of request, size of response), one after the other or two at once."""
    said = moved(Talk(mss=mss, client_seq=isn, server_seq=isn ^ 0x5A5A5A5A, step_ns=MS), number)
    said.ts_ns += number * 137
    said.open().request(request(API_VERSIONS, 3, 0, b"\x05java\x013\0")).response(response(0, bytes(20)))
    waiting: list[bytes] = []
    for i, (kind, asked, answered) in enumerate(sizes, 1):
        body = np.random.default_rng(i).bytes(asked)
        if kind == 0:
            said.request(produce(i, acks=0, size=asked))
            continue
        said.request(produce(i, size=asked) if kind == 1 else request((FETCH, METADATA)[kind % 2], 12, i, body))
        waiting.append(response(i, np.random.default_rng(i + 1000).bytes(answered)))
        if not pipelined or len(waiting) == 2:
            said.response(b"".join(waiting))
            waiting.clear()
    if waiting:
        said.response(b"".join(waiting))
    return said.close().segments


conversations = st.builds(
    lambda talks: sorted((s for n, t in enumerate(talks) for s in talk(n, *t)), key=lambda s: s.ts_ns),
    st.lists(
        st.tuples(
            st.lists(st.tuples(st.integers(0, 3), st.integers(0, 400), st.integers(0, 400)), min_size=1, max_size=6),
            st.sampled_from([1, 7, 100, 1448]),
            st.sampled_from([0, 1000, 2**31 - 50, 2**32 - 120, 2**32 - 1]),
            st.booleans(),
        ),
        min_size=1,
        max_size=3,
    ),
)


def follow(frames: list[Segment]) -> list:
    follower = Follower()
    return [follower.receive(segments(frames)), follower.drain()]


def damaged(frames: list[Segment], drop: set[int]) -> list[Segment]:
    return [frame for i, frame in enumerate(frames) if i % 97 not in drop]


@RUNS
@given(conversations, st.lists(st.integers(0, 2000)), st.sets(st.integers(0, 96), max_size=6), st.data())
def test_how_the_input_is_cut_into_calls_changes_nothing(frames, cuts, drop, data):
    frames = damaged(frames, drop)
    whole = exchange_rows(follow(frames))
    follower, results = Follower(), []
    places = sorted({0, len(frames), *(cut % (len(frames) + 1) for cut in cuts)})
    for start, stop in itertools.pairwise(places):
        numbers = range(start + 1, stop + 1)
        results.append(follower.receive(segments(frames[start:stop], numbers=numbers)))
        if data.draw(st.booleans()):
            results.append(follower.advance("a", frames[stop - 1].ts_ns))
        if data.draw(st.booleans()):
            follower = Follower.restore(follower.snapshot())
    results.append(follower.drain())
    assert exchange_rows(results) == whole


@RUNS
@given(conversations, st.lists(st.tuples(st.integers(0, 5000), st.integers(1, 6)), max_size=30))
def test_shuffling_within_the_window_changes_no_exchange(frames, moves):
    shuffled = list(frames)
    for anywhere, distance in moves:
        place = anywhere % len(shuffled)
        shuffled.insert(min(place + distance, len(shuffled) - 1), shuffled.pop(place))
    shuffled = [replace(frame, ts_ns=old.ts_ns) for frame, old in zip(shuffled, frames, strict=True)]
    assert exchange_rows(follow(shuffled), packets=False) == exchange_rows(follow(frames), packets=False)


@RUNS
@given(conversations, st.lists(st.tuples(st.integers(0, 5000), st.integers(1, 10)), max_size=30))
def test_packets_seen_twice_change_no_exchange(frames, copies):
    repeated = list(frames)
    for anywhere, later in copies:
        place = anywhere % len(repeated)
        repeated.insert(place + later, repeated[place])
    times = sorted(frame.ts_ns for frame in repeated)
    repeated = [replace(frame, ts_ns=ts) for frame, ts in zip(repeated, times, strict=True)]
    assert exchange_rows(follow(repeated), packets=False) == exchange_rows(follow(frames), packets=False)


@RUNS
@given(conversations, st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 300), st.integers(1, 400)), max_size=20))
def test_overlapping_retransmissions_change_no_exchange(frames, again):
    behind: dict[int, list] = {}
    for anywhere, back, length in again:
        place = anywhere % len(frames)
        last = frames[place]
        sent = [f for f in frames[: place + 1] if f.payload and (f.src, f.dst) == (last.src, last.dst)]
        data = b"".join(f.payload for f in sent)
        if data:
            start = max(len(data) - back - length, 0)
            piece = data[start : start + length]
            seq = (sent[0].seq + start) % 2**32
            behind.setdefault(place, []).insert(0, replace(last, seq=seq, payload=piece, flags=ACK | PSH))
    resent = [one for place, frame in enumerate(frames) for one in (frame, *behind.get(place, ()))]
    assert exchange_rows(follow(resent), packets=False) == exchange_rows(follow(frames), packets=False)


@RUNS
@given(conversations, st.integers(0, 5000))
def test_a_capture_that_ends_early_tells_only_what_was_whole(frames, cut):
    whole = {row[2:] for row in exchange_rows(follow(frames), packets=False)}
    messages = {message for row in whole for message in row if message}
    for _, _, asked, answered in exchange_rows(follow(frames[: cut % len(frames)]), packets=False):
        assert asked is None or asked in messages
        assert answered is None or answered in messages or answered[1:3] == (-1, -1)


@examples(60)
@given(conversations, st.sets(st.integers(0, 96), min_size=1, max_size=20), st.integers(0, 60))
def test_what_is_told_in_spite_of_loss_is_true(frames, drop, skip):
    rows = exchange_rows(follow(frames), packets=False)
    true = {message[:5] for row in rows for message in row[2:] if message}
    pairs = {(row[2][3], row[2][7]) for row in rows if row[0] == "answered"}
    for outcome, _, asked, answered in exchange_rows(follow(damaged(frames, drop)[skip:]), packets=False):
        for message in (asked, answered):
            assert message is None or message[:5] in true or (message[1] == -1 and message[0] == 1)
        assert outcome != "answered" or (asked[3] == answered[3] and (asked[3], asked[7]) in pairs)
        assert outcome != "orphan"


@pytest.mark.parametrize("mss", [1, 1448])
def test_memory_does_not_follow_the_length_of_a_hostile_stream(mss):
    limits = Limits(held_bytes=20_000, held_pieces=100, search_bytes=20_000, waiting_messages=50)
    said = Talk(mss=mss).open().request(request(API_VERSIONS, 3, 0)).segments
    noise = np.random.default_rng(1).bytes(400 * mss)
    last = said[-1]
    follower, sizes = Follower(limits), []
    for block in range(40):
        frames = []
        for i in range(200):
            seq = (last.seq + 60 + (block * 200 + i) * 2 * mss + (i % 3)) % 2**32
            payload = noise[(i * mss) % 1000 :][:mss]
            frames.append(Segment(last.src, last.dst, seq, 0, PSH | ACK, payload, last.ts_ns + block * 1000 + i))
        follower.receive(segments(([*said] if block == 0 else []) + frames))
        sizes.append(len(follower.snapshot()))
    assert max(sizes[20:]) <= 1.2 * max(sizes[:20])
    assert max(sizes) < 200_000


def outcome(exchanges) -> list:
    """All that a call hands out."""
    parts = [getattr(exchanges, field.name) for field in fields(exchanges) if field.name != "messages"]
    parts += [getattr(exchanges.messages, field.name) for field in fields(exchanges.messages)]
    return [part.tolist() if isinstance(part, np.ndarray) else part for part in parts]


@RUNS
@given(st.integers(3, 8), st.integers(0, 8), st.sampled_from([7, 2**32 - 1]), st.data())
def test_a_server_that_stays_at_its_number_answered_nothing(asked, answered, isn, data):
    """Of a connection that began before the capture, whose responses are not captured: both sides show the number."""
    said = Talk(server_seq=isn, step_ns=MS)
    for number in range(1, asked + 1):
        said.request(request(FETCH, 12, number, bytes(60)))
        said._say(False, ACK)
        if number <= answered:
            said.response(response(number, bytes(30)))
        said._say(True, ACK)
    frames = [frame for frame in said.segments if frame.src == said.client or not frame.payload]
    bare = [frame for frame in frames if not frame.payload]
    lost = data.draw(st.sets(st.integers(0, len(bare) - 3))) if bare else set()
    kept = [frame for frame in frames if frame not in [bare[place] for place in lost]]
    found = {row[0] for row in exchange_rows(follow(kept))}
    assert found == ({"response-unseen"} if answered else {"pending"})
