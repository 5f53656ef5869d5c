"""Laws of following what several agents show: two views of one connection are one stream, and heal each other.

What both lost is missing, and nothing else; clocks may differ by seconds; a view that kept a byte wins over one that
left it out; an agent that went silent is not waited for.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.decode.connection.conversations import FETCH, answered, exchange_rows, facts, request, response, segments
from tests.laws.test_following import conversations, follow
from tests.traffic import Segment, Talk
from wirecheck.decode.connection.follower import Follower
from wirecheck.streaming.steps.follow_step import in_time
from wirecheck.streaming.steps.pack_step import together

RUNS = settings(max_examples=30, deadline=None, derandomize=True)
SECOND = 10**9


def view(frames, agent, *, lost=(), skew_ns=0, left_out=None):
    kept = [replace(frame, ts_ns=frame.ts_ns + skew_ns) for i, frame in enumerate(frames) if i not in lost]
    return segments(kept, agent, left_out)


def by_time(whole):
    return whole.take(in_time(whole))


def seen_by_both(first, second, *, calls=1):
    """One follower is told both views as their clocks have them."""
    whole = by_time(together([first, second]))
    follower, results = Follower(), []
    follower.expect(["a", "b"])
    for rows in np.array_split(np.arange(len(whole)), calls):
        results.append(follower.receive(whole.take(rows)))
        follower = Follower.restore(follower.snapshot())
    results.append(follower.drain())
    return results


def whole_messages(results):
    """Messages of answered requests, without those with a hole in their middle."""
    rows = [row for row in exchange_rows(results, packets=False) if row[0] == "answered"]
    return {message for row in rows for message in row[2:4] if not message[6]}


@RUNS
@given(
    conversations,
    st.integers(0, 10**6),
    st.sampled_from([0, 1, 400_000_000, 3 * SECOND, -3 * SECOND]),
    st.integers(1, 4),
)
def test_what_two_agents_show_misses_only_what_both_lost(frames, seed, skew_ns, calls):
    dice = np.random.default_rng(seed)
    first, second = (set(np.flatnonzero(dice.random(len(frames)) < 0.05).tolist()) for _ in "ab")
    wanted = whole_messages(follow([frame for i, frame in enumerate(frames) if i not in first & second]))
    results = seen_by_both(view(frames, "a", lost=first), view(frames, "b", lost=second, skew_ns=skew_ns), calls=calls)
    assert whole_messages(results) <= whole_messages(follow(frames))
    if max(len(frame.payload) for frame in frames) > 7:  # where packets say little, a boundary is found by other bytes
        assert wanted <= whole_messages(results)
    if not first & second:
        assert whole_messages(results) == whole_messages(follow(frames))
        assert {c.unseen_request_bytes + c.unseen_response_bytes for c in facts(results).values()} <= {0}


@RUNS
@given(conversations, st.integers(0, 60), st.booleans())
def test_kept_bytes_win_over_left_out_ones(frames, snaplen, swap):
    """Once both agents have shown the connection; before, what is left out by the only one known is not waited for."""
    cut = {
        i: [(snaplen, len(frame.payload) - snaplen)] for i, frame in enumerate(frames) if len(frame.payload) > snaplen
    }
    views = [view(frames, "a", left_out=cut), view(frames, "b")]
    results = seen_by_both(*(views[::-1] if swap else views))
    assert exchange_rows(results, packets=False) == exchange_rows(follow(frames), packets=False)


def test_what_both_left_out_is_left_out_and_waits_for_nothing_more():
    frames = conversation(3)
    cut = {i: [(40, len(frame.payload) - 40)] for i, frame in enumerate(frames) if len(frame.payload) > 40}
    alone = Follower().receive(segments(frames, "a", cut))
    follower = Follower()
    follower.expect(["a", "b"])
    both = follower.receive(by_time(together([view(frames, name, left_out=cut) for name in "ab"])))
    assert exchange_rows([both], packets=False) == exchange_rows([alone], packets=False)
    assert len(both) == 4


def conversation(count: int) -> list[Segment]:
    talk = Talk(step_ns=10**6).open().request(request(18, 3, 0)).response(response(0, bytes(20)))
    for number in range(1, count + 1):
        talk.request(request(FETCH, 12, number, bytes(100))).response(response(number, bytes(100)))
    return talk.segments


@pytest.mark.parametrize(("silent_s", "said"), [(30, []), (61, list(range(12, 61)))])
def test_an_agent_that_went_silent_is_not_waited_for(silent_s, said):
    """b shows the beginning, a loses a request later on: b may have it, until it has been silent for a minute."""
    frames = conversation(60)
    follower = Follower()
    follower.receive(together([segments(frames[:10], "b"), segments(frames[:10], "a")]))
    follower.advance("b", frames[9].ts_ns)
    results = [follower.receive(segments(frames[10:27] + frames[28:], "a"))]
    before = answered(results)
    results = [follower.advance("a", frames[-1].ts_ns + silent_s * SECOND)]
    assert before == [3, 4, 5, 6, 7, 8, 9, 10, 11]
    assert [number for number in answered(results) if number > 12] == said[1:]


def test_an_agent_that_ended_is_not_waited_for():
    frames = conversation(60)
    follower = Follower()
    follower.receive(together([segments(frames[:10], "b"), segments(frames[:10], "a")]))
    follower.advance("b", frames[9].ts_ns, ended=True)
    result = follower.receive(segments(frames[10:27] + frames[28:], "a"))
    assert max(answered([result])) == 60


def test_loopback_of_two_hosts_stays_apart():
    frames = [replace(f, src=("127.0.0.1", f.src[1]), dst=("127.0.0.1", f.dst[1])) for f in conversation(5)]
    results = seen_by_both(view(frames, "a"), view(frames, "b"))
    assert len(exchange_rows(results)) == 2 * 6


@pytest.mark.parametrize("skew_ns", [0, 400_000_000, 3 * SECOND, -3 * SECOND])
@pytest.mark.parametrize("lost", [{0}, {1}, {0, 1}, {0, 1, 2}, {0, 1, 2, 3}, {*range(12)}], ids=len)
def test_an_agent_that_lost_the_handshake_shows_no_second_connection(lost, skew_ns):
    """The other agent has it, and may come to it when the connection is over by the clock of this one."""
    frames = conversation(20)
    results = seen_by_both(view(frames, "a"), view(frames, "b", lost=lost, skew_ns=skew_ns))
    assert exchange_rows(results, packets=False) == exchange_rows(follow(frames), packets=False)
    assert len(facts(results)) == 1


@pytest.mark.parametrize("skew_ns", [400_000_000, 3 * SECOND, -3 * SECOND])
@pytest.mark.parametrize("lost", [4, 8, 9, 12])
def test_a_handshake_that_comes_late_is_one_however_often_it_was_sent(lost, skew_ns):
    syn, answer, *rest = conversation(20)
    again = [replace(syn, ts_ns=syn.ts_ns - SECOND), syn, answer, replace(answer, ts_ns=answer.ts_ns + 1_000)]
    results = seen_by_both(view([*again, *rest], "a", lost=range(lost)), view([*again, *rest], "b", skew_ns=skew_ns))
    assert exchange_rows(results, packets=False) == exchange_rows(follow([syn, answer, *rest]), packets=False)
    assert len(facts(results)) == 1


@pytest.mark.parametrize("skew_ns", [0, 3 * SECOND, -3 * SECOND])
@pytest.mark.parametrize("before", [1, 500, 60_000])
def test_a_later_connection_is_read_whatever_number_its_client_chose(before, skew_ns):
    """Of one whose beginning no agent has: the server's number is its own."""
    late, first = conversation(20)[13:], request(18, 3, 1_000)
    asked = next(frame for frame in late if frame.dst[1] == 9092)
    ends_ns = late[-1].ts_ns + 20 * SECOND
    talk = Talk(step_ns=10**6, client_seq=asked.seq - 1 - before, server_seq=3_000_000_000, ts_ns=ends_ns)
    talk.open().request(first).response(response(1_000, bytes(20)))
    for number in range(1_001, 1_021):
        talk.request(request(FETCH, 12, number, bytes(100))).response(response(number, bytes(100)))
    frames = [*late, *talk.segments]
    results = seen_by_both(view(frames, "a"), view(frames, "b", skew_ns=skew_ns))
    assert whole_messages(follow(talk.segments)) <= whole_messages(results)
