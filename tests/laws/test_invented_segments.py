"""Law: segments with invented numbers, up to twelve, lose at most the messages whose bytes they overwrote.

Whoever knows addresses and ports can send them, in the name of either side: acknowledgements of what was never sent,
data ahead, SYN and SYN-ACK, FIN, RST, data that acknowledge nothing.

Not covered: two segments in the names of both sides that agree: one acknowledges what the other shows as sent. That is
what a loss looks like; it is taken back later, and the message in flight may be gone by then. One each is allowed.
Nor the message behind an overwritten one: its size may be what was overwritten, and hide what follows.
"""

from dataclasses import replace

from hypothesis import example, given
from hypothesis import strategies as st

from tests.decode.connection.conversations import FETCH, answered, facts, request, response, segments
from tests.depth import examples
from tests.traffic import ACK, FIN, PSH, RST, SYN, Segment, Talk
from wirecheck.decode.connection.follower import Follower

NEAR = 1 << 24
URG = 32
FLAGS = (ACK, PSH | ACK, RST, RST | ACK, FIN | ACK, FIN | PSH | URG, SYN, SYN | ACK, 0)
EXCHANGES = 40
MS = 1_000_000

numbers = st.one_of(st.integers(300, NEAR - 1), st.integers(1 - NEAR, -300), st.integers(NEAR, 2**32 - NEAR))
"""Ahead of what is true at that place; right ones end a connection as a true segment does."""
invented = st.lists(
    st.tuples(
        st.integers(3, 2 * EXCHANGES), st.booleans(), numbers, numbers, st.sampled_from(FLAGS), st.integers(0, 200)
    ),
    min_size=1,
    max_size=12,
)


def talk(step_ns: int, *, closed: bool = False) -> list[Segment]:
    said = Talk(step_ns=step_ns).open()
    for number in range(EXCHANGES):
        said.request(request(FETCH, 12, number, bytes(40))).response(response(number, bytes(200)))
    return said.close().segments if closed else said.segments


def slipped_in(true: list[Segment], made) -> tuple[list[Segment], set[int]]:
    """(all segments in order, the exchanges of which bytes or a size before them were overwritten)."""
    places: dict[int, list[Segment]] = {}
    for place, from_client, seq, ack, flags, size in made:
        side = [one for one in true[:place] if (one.src == true[0].src) == from_client][-1]
        payload = bytes(i % 251 for i in range(size)) if flags in (PSH | ACK, FIN | PSH | URG, 0) else b""
        at = (side.seq + len(side.payload) + seq) % 2**32
        acknowledged = (side.ack + ack) % 2**32 if flags & ACK else 0
        one = Segment(side.src, side.dst, at, acknowledged, flags, payload, true[place].ts_ns - 1000)
        places.setdefault(place, []).append(one)
    frames, overwritten = [], set()
    for place, one in enumerate(true):
        frames += [*places.get(place, ()), one]
        for other in (other for several in places.values() for other in several):
            behind = (one.seq - other.seq) % 2**32
            if one.src == other.src and (behind < len(other.payload) or behind > 2**32 - len(one.payload)):
                overwritten |= {(place - 3) // 2, (place - 3) // 2 + 1}
    return frames, overwritten


def in_the_server_s_name(last: tuple) -> list[tuple]:
    """An acknowledgement, a FIN and a reset, all with one number: the stream seems to end there. Then one more."""
    return [*((3, False, 300, 300, flags, 0) for flags in (ACK, FIN | ACK, RST)), last]


@example(in_the_server_s_name((3, False, 300, 300, SYN, 0)), 10 * MS)
@example(in_the_server_s_name((3, True, -300, 300, SYN, 0)), 10 * MS)
@example([(3, True, 1776, 300, PSH | ACK, 52)], 10 * MS)
@example([(3, False, 300, 300, PSH | ACK, 118), (5, False, 418 - 212, 0, RST, 0)], 2500 * MS)
@examples(100, deep=1000)
@given(invented, st.sampled_from([10 * MS, 300 * MS, 2500 * MS]))
def test_segments_with_invented_numbers_lose_at_most_what_they_overwrote(made, step_ns):
    frames, overwritten = slipped_in(talk(step_ns), made)
    follower = Follower()
    results = [follower.receive(segments(frames)), follower.drain()]
    lost = set(range(EXCHANGES)) - overwritten - set(answered(results))
    by_client = sum(from_client for _, from_client, *_ in made)
    assert len(lost) <= min(by_client, len(made) - by_client), lost
    assert len(facts(results)) == 1


@examples(60, deep=600)
@given(
    st.integers(3, 2 * EXCHANGES - 12), st.integers(0, 2), st.booleans(), st.integers(10_000, NEAR - 1000),
    st.sampled_from([0, 1, 100, 200]), st.sampled_from([10 * MS, 300 * MS, 2500 * MS]),
)  # fmt: skip
def test_a_gap_that_invented_segments_made_is_taken_back(place, later, from_client, ahead, size, step_ns):
    """One shows data ahead, the other acknowledges it; then both sides go on where they were."""
    shows = (place, from_client, ahead, 0, PSH | ACK, size)
    takes = (place + later, not from_client, 0, ahead + size, ACK, 0)
    frames, overwritten = slipped_in(talk(step_ns, closed=True), [shows, takes])
    follower = Follower()
    results = [follower.receive(segments(frames)), follower.drain()]
    (found,) = facts(results).values()
    assert found.unseen_request_bytes + found.unseen_response_bytes == 0
    assert len(set(range(EXCHANGES)) - overwritten - set(answered(results))) <= 1


@examples(60, deep=600)
@given(
    st.integers(3, 2 * EXCHANGES - 12), st.booleans(), st.integers(300, NEAR - 1000),
    st.sampled_from([ACK, FIN | ACK]), st.booleans(), st.sampled_from([10 * MS, 300 * MS, 2500 * MS]),
)  # fmt: skip
def test_an_acknowledgement_or_a_fin_ahead_makes_no_gap(place, from_client, ahead, flags, closed, step_ns):
    """One segment, whether the connection ends later or the capture does."""
    made = (place, from_client, ahead if flags & FIN else 0, 0 if flags & FIN else ahead, flags, 0)
    frames, _ = slipped_in(talk(step_ns, closed=closed), [made])
    follower = Follower()
    results = [follower.receive(segments(frames)), follower.drain()]
    (found,) = facts(results).values()
    assert found.unseen_request_bytes + found.unseen_response_bytes == 0
    assert set(answered(results)) == set(range(EXCHANGES))


@examples(200, deep=4000)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(2 * NEAR, 2**32 - 2 * NEAR),
    st.integers(2 * NEAR, 2**32 - 2 * NEAR),
    st.data(),
)
def test_late_segments_of_the_connection_before_make_no_stretch_that_is_missing(seq, client_ahead, server_ahead, data):
    """Its ports are used again, and up to eight segments around that come in any order: what is lost is as long as the
    segments that came too late, however far the numbers of both are from each other.
    """
    before = Talk(client_seq=seq, server_seq=seq ^ 0x5555_5555).open()
    after = Talk(client_seq=seq + client_ahead, server_seq=before.server_seq + server_ahead).open()
    for number in range(6):
        for said, first in ((before, 0), (after, 100)):
            said.request(request(FETCH, 12, first + number, bytes(40))).response(response(first + number, bytes(40)))
    mixed = data.draw(st.permutations([*before.close().segments[-4:], *after.segments[:4]]))
    frames = [*before.segments[:-4], *mixed, *after.segments[4:]]
    follower = Follower()
    results = [follower.receive(segments([replace(one, ts_ns=MS * at) for at, one in enumerate(frames, 1)]))]
    results.append(follower.drain())
    assert {*range(1, 5), *range(102, 106)} <= {*answered(results)}
    assert sum(one.unseen_request_bytes + one.unseen_response_bytes for one in facts(results).values()) < 1000
