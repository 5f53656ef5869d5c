"""Sequence numbers of an agent's own, as of decrypted connections; and followers that are tapped."""

import random
from dataclasses import replace

import pytest

from tests.decode.connection.conversations import API_VERSIONS, exchange_rows, request, response, segments
from tests.traffic import Talk
from wirecheck.decode.connection.follower import Follower

BODY = bytes(range(200))


def conversation(count=30):
    """[(whether the client says it, bytes)]."""
    opening = (request(API_VERSIONS, 3, 0, b"\x05java\x013\0"), response(0, bytes(20)))
    said = [(True, opening[0]), (False, opening[1])]
    for number in range(1, count):
        said += [(True, request(3, 1, number, BODY[: 4 * (number % 40)])), (False, response(number, BODY))]
    return said


def plain(mss=1460):
    talk = Talk(mss=mss).open()
    for is_client, data in conversation():
        (talk.request if is_client else talk.response)(data)
    return talk.close().segments


def shown_by(agent, frames, run=1):
    """Frames of one agent, by sequence numbers of its own."""
    return segments(frames, agent, run=run)


def shifted(frames, by):
    """The same frames by numbers that are so much further."""
    return [replace(frame, seq=frame.seq + by & 0xFFFFFFFF, ack=frame.ack + by & 0xFFFFFFFF) for frame in frames]


def followed(*calls, restarts=False):
    follower, found = Follower(), []
    for call in calls:
        found.append(follower.receive(call))
        follower = Follower.restore(follower.snapshot()) if restarts else follower
    return [*found, follower.drain()]


def ciphertext(frames):
    """The frames as an agent without keys shows them: records of other bytes, a little longer, other numbers."""
    talk, client = Talk(), frames[0].src
    talk.open()
    for frame in frames:
        if frame.payload:
            record = b"\x17\x03\x03" + (len(frame.payload) + 17).to_bytes(2, "big") + b"#" * (len(frame.payload) + 17)
            (talk.request if frame.src == client else talk.response)(record)
    return talk.close().segments


def altered(frames):
    """The same frames with other bytes: whoever follows these too has conflicts, or other messages."""
    return [replace(frame, payload=bytes(byte ^ 1 for byte in frame.payload)) for frame in frames]


def conflicts(found):
    return sum(connection.conflicting_bytes for call in found for connection in call.connections)


def messages(found):
    return sorted(
        (int(m.side[i]), int(m.correlation_id[i]), m.data[m.at[i] : m.at[i + 1]].tobytes())
        for m in (each.messages for each in found)
        for i in range(len(m))
    )


@pytest.mark.parametrize("seed", range(20))
def test_a_gap_of_unknown_length_is_never_spliced(seed):
    """Behind a hole numbers are off by what nobody knows; only whole messages are handed out, and most are."""
    rng = random.Random(seed)
    frames, shifts = plain(mss=90), {}
    stays = [i for i in range(len(frames)) if i < 8 or rng.random() > 0.03]
    lost = [i for i in range(len(frames)) if i not in stays]
    found = []
    for i in stays:
        frame = frames[i]
        for k in lost:
            if k < i and frames[k].payload:
                shifts.setdefault(k, rng.randint(1, 40))
        mine = sum(n for k, n in shifts.items() if k < i and frames[k].src == frame.src)
        theirs = sum(n for k, n in shifts.items() if k < i and frames[k].src != frame.src)
        found.append(replace(frame, seq=frame.seq + mine, ack=frame.ack + theirs))
    said = set(messages(followed(segments(frames))))
    got = messages(followed(shown_by("a", found)))
    assert set(got) <= said
    assert len(got) > len(said) // 2


@pytest.mark.parametrize("restarts", [False, True])
def test_an_agents_own_numbers_take_the_place_of_the_wires_and_the_connection_counts_once(restarts):
    """The agent without keys is faster: neither what it showed before is followed, nor what it shows after."""
    frames = plain()
    wire = ciphertext(frames)
    calls = [segments(wire[:30], "b"), shown_by("a", frames[:9]), segments(wire[30:40], "b"), shown_by("a", frames[9:])]
    found = followed(*calls, segments(wire[40:], "b"), restarts=restarts)
    assert messages(found) == messages(followed(segments(frames)))
    last = {connection.name: connection for call in found for connection in call.connections}
    (connection,) = last.values()
    assert (connection.protocol, connection.decrypted, connection.from_start) == ("kafka", True, True)
    assert len({c.started_ns for call in found for c in call.connections}) == 1
    assert (connection.unseen_request_bytes, connection.unseen_response_bytes) == (0, 0)


def test_of_two_agents_with_their_own_numbers_the_first_is_followed():
    frames = plain()
    found = followed(shown_by("a", frames[:20]), shown_by("b", altered(frames)), shown_by("a", frames[20:]))
    assert (messages(found), conflicts(found)) == (messages(followed(segments(frames))), 0)


def test_a_connection_that_shows_kafka_by_the_wires_numbers_keeps_them():
    frames = plain()
    found = followed(segments(frames[:20], "b"), shown_by("a", altered(frames)), segments(frames[20:], "b"))
    assert (messages(found), conflicts(found)) == (messages(followed(segments(frames))), 0)
    assert not found[-1].connections[-1].decrypted


def test_an_agent_that_shows_the_wires_numbers_again_ends_its_own():
    """It was restarted without keys: what it decrypted is over, and nothing of it is spliced to ciphertext."""
    frames = plain()
    found = followed(shown_by("a", frames[:21]), segments(ciphertext(frames)[21:], "a"))
    assert set(messages(found)) <= set(messages(followed(segments(frames))))
    decrypted = [connection for call in found for connection in call.connections if connection.decrypted]
    assert decrypted
    assert not any(each.unseen_request_bytes or each.unseen_response_bytes for each in decrypted)


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("by", [-5000, 0, 40, 700, 1 << 29, 1 << 30, 3 << 30])
@pytest.mark.parametrize("cut", [20, 41, 42, 43])
def test_an_agent_that_is_started_again_within_a_connection_goes_on_behind_a_gap(by, cut, restarts):
    """Its numbers begin again, wherever that is: nothing is put together, no length is counted, one connection."""
    frames = plain(mss=90)
    found = followed(shown_by("a", frames[:cut]), shown_by("a", shifted(frames[cut:], by), run=2), restarts=restarts)
    said, got = messages(followed(segments(frames))), messages(found)
    assert set(got) <= set(said)
    assert len(got) >= len(said) - 6
    last = {connection.name: connection for call in found for connection in call.connections}
    (connection,) = last.values()
    assert (connection.protocol, connection.decrypted, connection.from_start) == ("kafka", True, True)
    assert len({c.started_ns for call in found for c in call.connections}) == 1
    assert (connection.unseen_request_bytes, connection.unseen_response_bytes, len(connection.gaps)) == (1, 1, 2)


def test_nothing_behind_a_start_answers_what_was_asked_before_it():
    """The ports may be another connection's by then: a correlation ID proves nothing across two runs."""
    frames = plain()
    last = max(i for i, frame in enumerate(frames) if frame.payload and frame.src == frames[0].src)
    found = followed(shown_by("a", frames[: last + 1]), shown_by("a", shifted(frames[last + 1 :], 40), run=2))
    outcomes = [exchange[0] for exchange in exchange_rows(found)]
    assert (outcomes.count("answered"), outcomes[-1]) == (29, "response-unseen")


def test_late_rows_of_a_run_that_is_over_change_nothing():
    frames = plain()
    calls = [shown_by("a", frames[:20]), shown_by("a", shifted(frames[20:40], 40), run=2)]
    more = [shown_by("a", altered(frames)[20:24]), shown_by("a", shifted(frames[40:], 40), run=2)]
    assert messages(followed(*calls, *more)) == messages(followed(*calls, more[1]))


def test_an_agent_that_is_started_with_keys_begins_where_it_is_and_not_at_the_syn():
    """Another agent without keys showed that: what was encrypted before is no gap of a known length."""
    frames = plain()
    wire, later = ciphertext(frames), shifted(frames[20:], 3 << 30)
    found = followed(segments(wire[:30], "b"), shown_by("a", later), segments(wire[30:], "b"))
    assert set(messages(found)) <= set(messages(followed(segments(frames))))
    assert len(messages(found)) > 30
    (connection,) = {c.name: c for call in found for c in call.connections}.values()
    assert (connection.unseen_request_bytes, connection.unseen_response_bytes) == (1, 1)


def test_a_handshake_shows_the_next_connection_of_the_same_ports_before_anything_is_decrypted():
    """It leaves by the wire's numbers: what it carries is not known yet."""
    frames = plain()[:-3]
    again = [replace(frame, seq=frame.seq + 5000, ack=frame.ack + 5000, ts_ns=frame.ts_ns + 10**10) for frame in frames]
    found = followed(shown_by("a", frames), segments(again[:3], "a"), shown_by("a", again[3:], run=2))
    assert len(messages(found)) == 2 * len(messages(followed(segments(frames))))
    last = {c.started_ns: c for call in found for c in call.connections}
    assert [c.unseen_request_bytes + c.unseen_response_bytes for c in last.values()] == [0, 0]


def test_the_next_connection_of_the_same_ports_may_be_another_agents():
    frames = plain()
    again = [replace(frame, seq=frame.seq + 5000, ack=frame.ack + 5000, ts_ns=frame.ts_ns + 10**12) for frame in frames]
    found = followed(shown_by("a", frames), segments(again, "b"))
    assert len(messages(found)) == 2 * len(messages(followed(segments(frames))))


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
