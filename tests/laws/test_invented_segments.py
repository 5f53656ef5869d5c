"""Law: segments with invented numbers, slipped into a connection, lose at most the messages whose bytes they overwrote.

Whoever knows addresses and ports can send them, in the name of either side: acknowledgements of what was never sent,
data ahead, SYN and SYN-ACK, FIN, RST, data that acknowledge nothing.
"""

from hypothesis import given
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

numbers = st.one_of(st.integers(300, NEAR - 1), st.integers(1 - NEAR, -300), st.integers(0, 2**32 - 1))
"""Ahead of what is true at that place."""
invented = st.lists(
    st.tuples(
        st.integers(3, 2 * EXCHANGES), st.booleans(), numbers, numbers, st.sampled_from(FLAGS), st.integers(0, 200)
    ),
    min_size=1,
    max_size=12,
)


def talk(step_ns: int) -> list[Segment]:
    said = Talk(step_ns=step_ns).open()
    for number in range(EXCHANGES):
        said.request(request(FETCH, 12, number, bytes(40))).response(response(number, bytes(200)))
    return said.segments


def slipped_in(true: list[Segment], made) -> tuple[list[Segment], set[int]]:
    """(all segments in order, the exchanges of which bytes were overwritten)."""
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
                overwritten.add((place - 3) // 2)
    return frames, overwritten


@examples(100, deep=1000)
@given(invented, st.sampled_from([10 * MS, 300 * MS, 2500 * MS]))
def test_segments_with_invented_numbers_lose_at_most_what_they_overwrote(made, step_ns):
    frames, overwritten = slipped_in(talk(step_ns), made)
    follower = Follower()
    results = [follower.receive(segments(frames)), follower.drain()]
    assert set(answered(results)) >= set(range(EXCHANGES)) - overwritten
    assert len(facts(results)) == 1
