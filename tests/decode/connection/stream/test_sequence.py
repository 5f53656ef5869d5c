"""Overhead is passed over: what is inside TLS follows as if it were plain, in any order, from two agents."""

import random

import pytest

from tests.decode.connection.conversations import API_VERSIONS, request, response, segments, together
from tests.traffic import Talk
from wirecheck.decode.connection.follower import Follower
from wirecheck.decode.connection.stream.chunks import LEFT, OVERHEAD, UNSURE
from wirecheck.decode.connection.stream.sequence import Sequence

BODY = bytes(range(200))


def conversation(count=30):
    """[(whether the client says it, bytes)]."""
    opening = (request(API_VERSIONS, 3, 0, b"\x05java\x013\0"), response(0, bytes(20)))
    said = [(True, opening[0]), (False, opening[1])]
    for number in range(1, count):
        said += [(True, request(3, 1, number, BODY[: 4 * (number % 40)])), (False, response(number, BODY))]
    return said


def plain():
    talk = Talk().open()
    for is_client, data in conversation():
        (talk.request if is_client else talk.response)(data)
    return talk.close().segments


def wrapped(rng, kind=OVERHEAD):
    """The same, each message in records of random lengths, bytes around them; and what of each frame is overhead."""
    talk, spans = Talk(mss=1 << 20).open(), {}
    for is_client, data in conversation():
        at = 0
        while at < len(data):
            size = rng.randint(1, 120)
            front, back, content = rng.randint(1, 30), rng.randint(0, 20), data[at : at + size]
            spans[len(talk.segments)] = [(0, front, kind)] + ([(front + len(content), back, kind)] if back else [])
            (talk.request if is_client else talk.response)(b"#" * front + content + b"#" * back)
            at += size
    return talk.close().segments, spans


def followed(frames, spans):
    follower = Follower()
    found = [follower.receive(segments(frames, left_out=spans))]
    found.append(follower.drain())
    return found


def messages(found):
    return sorted(
        (int(m.side[i]), int(m.correlation_id[i]), m.data[m.at[i] : m.at[i + 1]].tobytes())
        for m in (each.messages for each in found)
        for i in range(len(m))
    )


@pytest.mark.parametrize("seed", range(20))
def test_the_same_messages_whatever_lies_between_their_bytes(seed):
    rng = random.Random(seed)
    frames, spans = wrapped(rng)
    order = list(range(len(frames)))
    for i in range(5, len(order) - 4):  # a shuffled capture
        if rng.random() < 0.2:
            k = i + rng.randint(1, 3)
            order[i], order[k] = order[k], order[i]
    order = [i for i in order for _ in range(2 if rng.random() < 0.1 else 1)]  # duplicates
    found = followed([frames[i] for i in order], {at: spans[i] for at, i in enumerate(order) if i in spans})
    assert messages(found) == messages(followed(plain(), {}))
    assert sum(c.overhead_bytes for c in found[-1].connections) == sum(n for s in spans.values() for _, n, _ in s)


@pytest.mark.parametrize("seed", range(20))
def test_behind_a_loss_only_whole_messages_are_handed_out(seed):
    rng = random.Random(seed)
    frames, spans = wrapped(rng)
    stays = [i for i in range(len(frames)) if i < 8 or rng.random() > 0.03]
    found = followed([frames[i] for i in stays], {at: spans[i] for at, i in enumerate(stays) if i in spans})
    said = set(messages(followed(plain(), {})))
    got = messages(found)
    assert set(got) <= said
    assert len(got) > len(said) // 3


def test_a_stretch_of_unknown_length_loses_the_boundary():
    rng = random.Random(3)
    frames, spans = wrapped(rng)
    spans[20] = [(0, len(frames[20].payload), UNSURE)]
    got = messages(followed(frames, spans))
    said = messages(followed(plain(), {}))
    assert set(got) < set(said)
    assert len(got) > len(said) - 8


def test_what_one_agent_could_not_open_another_may_have():
    frames, spans = wrapped(random.Random(5))
    rows, torn = [], {}
    for i, frame in enumerate(frames):
        for agent, lost in (("a", 3), ("b", 5)):
            if i in spans:
                kind = UNSURE if i % 2 else LEFT
                torn[len(rows)] = [(0, len(frame.payload), kind)] if i % 7 == lost and i > 6 else spans[i]
            rows.append((agent, frame))
    follower = Follower()
    found = [follower.receive(together(rows, left_out=torn)), follower.drain()]
    assert messages(found) == messages(followed(plain(), {}))


def test_the_syn_that_comes_again_is_known_behind_overhead():
    direction = Sequence()
    direction.base = 1000
    direction.fin = 700
    direction.pass_over(300)
    assert (direction.began_at(1000), direction.began_at(1300), direction.fin) == (True, False, 400)


def test_a_tapped_follower_hands_out_bytes_in_order_and_frames_nothing():
    frames = plain()
    follower = Follower(tapped=True)
    del frames[7]
    assert len(follower.receive(segments(frames)).messages) == 0
    runs, over = follower.taken, follower.over
    follower.drain()
    runs, over = [*runs, *follower.taken], [*over, *follower.over]
    sides = [b"".join(run.data or bytes(run.end - run.begin) for run in runs if run.side == side) for side in (0, 1)]
    asked, answered = (b"".join(d for is_client, d in conversation() if is_client is who) for who in (True, False))
    assert {len(side) for side in sides} == {len(asked), len(answered)}
    assert any(run.data is None for run in runs)
    assert over == [1]


def test_a_tapped_connection_that_is_turned_off_keeps_nothing():
    frames = plain()
    follower = Follower(tapped=True)
    follower.receive(segments(frames[:6]))
    follower.turn_off(follower.taken[0].key)
    follower.turn_off("nobody")
    follower.receive(segments(frames[6:]))
    assert follower.taken == []
