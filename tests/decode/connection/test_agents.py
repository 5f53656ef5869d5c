"""Two agents that show one connection: each heals what the other lost or left out, and is waited for while it lives."""

from dataclasses import replace

import numpy as np
import pytest

from tests.decode.connection.conversations import (
    API_VERSIONS,
    FETCH,
    answered,
    exchange_rows,
    only,
    produce,
    request,
    response,
    segments,
    together,
)
from tests.traffic import Talk
from wirecheck.decode.connection.follower import Follower, Limits

SECOND = 10**9
STEP = 10**6
USUAL = Limits()


def conversation(count, size=100, mss=1448):
    talk = Talk(mss=mss, step_ns=STEP).open().request(request(API_VERSIONS, 3, 0)).response(response(0, bytes(20)))
    for number in range(1, count + 1):
        talk.request(request(FETCH, 12, number, bytes([number]) * size)).response(response(number, bytes(size)))
    return talk.segments


def views(frames, *, lost=(), left_out=None, late_ns=STEP // 2):
    """What "a" and "b" show, in the order of their clocks; `lost` and `left_out` by agent and number of the frame."""
    lost, left_out = dict(lost), left_out or {}
    rows = [
        (agent, i, replace(frame, ts_ns=frame.ts_ns + (late_ns if agent == "b" else 0)))
        for agent in "ab"
        for i, frame in enumerate(frames)
        if i not in lost.get(agent, ())
    ]
    rows.sort(key=lambda row: row[2].ts_ns)
    spans = {at: left_out[agent][i] for at, (agent, i, _) in enumerate(rows) if i in left_out.get(agent, {})}
    return [(agent, frame) for agent, _, frame in rows], spans


def follow(frames, *, limits=USUAL, apart=False, **options):
    rows, spans = views(frames, **options)
    follower = Follower(limits)
    follower.expect(["a", "b"])
    if not apart:
        return [follower.receive(together(rows, spans)), follower.drain()]
    results = []
    for at, (agent, frame) in enumerate(rows):
        cut = {0: spans[at]} if at in spans else {}
        results.append(follower.receive(segments([frame], agent, cut)))
        follower = Follower.restore(follower.snapshot(), limits)
    return [*results, follower.drain()]


def alone(frames, left_out=None):
    follower = Follower()
    return [follower.receive(segments(frames, "a", left_out)), follower.drain()]


def unseen(results):
    return only(results).unseen_request_bytes + only(results).unseen_response_bytes


@pytest.mark.parametrize("apart", [False, True], ids=["one call", "a call each"])
@pytest.mark.parametrize("late_ns", [STEP // 2, 3 * SECOND, -3 * SECOND])
def test_what_one_lost_the_other_shows(late_ns, apart):
    frames = conversation(30)
    lost = {"a": {9, 12, 20, 33}, "b": {5, 10, 21, 40}}
    results = follow(frames, lost=lost.items(), late_ns=late_ns, apart=apart)
    assert exchange_rows(results, packets=False) == exchange_rows(alone(frames), packets=False)
    assert (unseen(results), only(results).conflicting_bytes) == (0, 0)


def test_what_a_snap_length_cut_counts_once_however_often_it_comes():
    frames = conversation(4)
    place = next(i for i, frame in enumerate(frames) if len(frame.payload) > 20)
    again = [*frames[: place + 1], *frames[place:]]
    cut = 7 * np.isin(np.arange(len(again)), (place, place + 1))
    left = {i: [(len(again[i].payload) - 7, 7)] for i in (place, place + 1)}
    follower = Follower()
    results = [follower.receive(replace(segments(again, "a", left), cut=cut.astype(np.int64))), follower.drain()]
    assert (only(results).cut_bytes, only(results).cut_segments) == (7, 1)


def test_what_both_lost_is_lost_and_nothing_else():
    frames = conversation(60)
    both = next(i for i, frame in enumerate(frames) if bytes([30]) * 50 in frame.payload)
    results = follow(frames, lost={"a": {both, 12}, "b": {both, 21}}.items())
    assert set(answered(results)) == set(range(61)) - {30}
    assert only(results).unseen_request_bytes == len(frames[both].payload)


def test_a_hole_that_both_have_passed_is_given_up_before_the_end():
    """Not at the end only: long ago both showed that the bytes behind it were acknowledged."""
    frames = conversation(120)
    both = next(i for i, frame in enumerate(frames) if bytes([30]) * 50 in frame.payload)
    first, _ = follow(frames, lost={"a": {both}, "b": {both}}.items())
    assert max(answered([first])) == 120


@pytest.mark.parametrize("late_ns", [STEP // 2, 3 * SECOND])
def test_a_hole_is_open_while_the_other_may_still_show_what_is_in_it(late_ns):
    """The second agent is behind: nothing of what the first lost is given up before it has passed there."""
    frames = conversation(120)
    hole = next(i for i, frame in enumerate(frames) if bytes([30]) * 50 in frame.payload)
    rows, _ = views(frames, lost={"a": {hole}}.items(), late_ns=late_ns)
    follower = Follower()
    follower.expect(["a", "b"])
    early = [row for row in rows if row[1].ts_ns < frames[hole].ts_ns + late_ns]
    results = [follower.receive(together(early))]
    assert unseen(results) == 0
    results += [follower.receive(together(rows[len(early) :])), follower.drain()]
    assert (answered(results), unseen(results)) == (list(range(121)), 0)


@pytest.mark.parametrize("gone", ["ended", "silent"])
def test_an_agent_that_is_gone_is_not_waited_for(gone):
    frames = conversation(120)
    hole = next(i for i, frame in enumerate(frames) if bytes([30]) * 50 in frame.payload)
    follower = Follower()
    follower.receive(together([(agent, frame) for frame in frames[:10] for agent in "ab"]))
    follower.advance("b", frames[9].ts_ns, ended=gone == "ended")
    if gone == "silent":
        follower.advance("a", frames[9].ts_ns + 61 * SECOND)
    result = follower.receive(segments([frame for i, frame in enumerate(frames) if 10 <= i != hole], "a"))
    assert max(answered([result])) == 120
    assert only([result]).unseen_request_bytes == len(frames[hole].payload)


def cuts(frames, begin, end):
    """Bytes begin to end of every payload that is longer, left out."""
    return {i: [(begin, end - begin)] for i, frame in enumerate(frames) if len(frame.payload) > end}


@pytest.mark.parametrize("apart", [False, True], ids=["one call", "a call each"])
@pytest.mark.parametrize(
    ("a", "b", "common"),
    [
        ((40, 100), (40, 100), (40, 100)),
        ((40, 80), (60, 100), (60, 80)),
        ((40, 100), (60, 80), (60, 80)),
        ((60, 80), (40, 100), (60, 80)),
        ((40, 60), (60, 100), None),
        ((40, 100), None, None),
        (None, (40, 100), None),
    ],
)
def test_only_what_both_left_out_is_left_out(a, b, common, apart):
    """Kept bytes win over left-out ones, whichever agent kept them and however the spans overlap."""
    frames = conversation(12, size=200)
    left_out = {agent: cuts(frames, *span) for agent, span in (("a", a), ("b", b)) if span}
    results = follow(frames, left_out=left_out, apart=apart)
    wanted = alone(frames, cuts(frames, *common) if common else None)
    begun = 2  # before the second agent shows the connection, nobody knows that it will
    assert exchange_rows(results, packets=False)[begun:] == exchange_rows(wanted, packets=False)[begun:]
    assert unseen(results) == 0


def test_what_one_left_out_and_the_other_lost_is_left_out_once_both_have_passed():
    frames = conversation(120, size=200)
    hole = next(i for i, frame in enumerate(frames) if bytes([30]) * 150 in frame.payload)
    cut = {"a": {hole: [(60, 100)]}}
    first, _ = follow(frames, lost={"b": {hole}}.items(), left_out=cut)
    (row,) = [row for row in exchange_rows([first]) if row[2][3] == 30]
    assert (row[0], row[2][6]) == ("answered", ((56, 100),))
    assert max(answered([first])) == 120


def test_what_waits_for_the_other_agent_is_bounded():
    """The other agent stands still: beyond the bound its bytes are not waited for, and that is counted."""
    frames = conversation(240, size=200)
    hole = next(i for i, frame in enumerate(frames) if bytes([30]) * 150 in frame.payload)
    limits = Limits(held_bytes=300, slack_frames=10**6, slack_ns=10**15)
    follower = Follower(limits)
    follower.expect(["a", "b"])
    begun = follower.receive(together([(agent, frame) for frame in frames[:8] for agent in "ab"]))
    result = follower.receive(segments([frame for i, frame in enumerate(frames) if 8 <= i != hole], "a"))
    assert only([begun, result]).limits_hit >= 1
    assert max(answered([result])) == 240


def test_loopback_shown_by_two_agents_is_two_connections_also_in_one_call():
    """Every host has 127.0.0.1: the same ports there are nobody else's connection."""
    talk = Talk(client=("127.0.0.1", 5), server=("127.0.0.1", 9092), step_ns=STEP).open()
    talk.request(request(API_VERSIONS, 3, 0)).response(response(0)).request(produce(1)).response(response(1))
    rows = [(agent, frame) for frame in talk.segments for agent in "ab"]
    elsewhere = conversation(2)
    rows += [(agent, frame) for frame in elsewhere for agent in "ab"]
    follower = Follower()
    follower.expect(["a", "b"])
    results = [follower.receive(together(rows)), follower.drain()]
    assert answered(results) == [0, 0, 0, 1, 1, 1, 2]
    assert len({(c.name, i) for i, c in enumerate(results[0].connections)}) == 3


def test_what_the_other_agent_did_not_show_until_the_end_stays_left_out():
    """The capture ends while b may still show what a left out."""
    frames = conversation(12, size=200)
    cut = {"a": {19: [(60, 100)]}}
    _, last = results = follow(frames, lost={"b": {19}}.items(), left_out=cut)
    assert [row[2][6] for row in exchange_rows(results) if row[2][6]] == [((56, 100),)]
    assert any(row[2][6] for row in exchange_rows([last]))
    assert unseen(results) == 0
