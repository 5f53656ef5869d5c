"""One direction: sequence numbers, overlaps, holes, and when a hole is given up."""

from dataclasses import replace

import pytest

from tests.decode.connection.conversations import (
    API_VERSIONS,
    FETCH,
    answered,
    exchange_rows,
    facts,
    follow,
    only,
    request,
    response,
    segments,
)
from tests.traffic import ACK, FIN, PSH, SYN, Segment, Talk
from wirecheck.decode.connection.follower import Follower, Limits

MS = 1_000_000


USUAL = Limits()


def exchange(number, talk, size=100):
    return talk.request(request(FETCH, 12, number, bytes([number]) * size)).response(response(number, b"!" * size))


def conversation(count=5, mss=50, **options):
    talk = Talk(mss=mss, **options).open().request(request(API_VERSIONS, 3, 0)).response(response(0))
    for number in range(1, count):
        exchange(number, talk)
    return talk.close().segments


@pytest.mark.parametrize("isn", [0, 2**31 - 3, 2**32 - 1, 2**32 - 100])
def test_sequence_numbers_wrap(isn):
    assert answered(follow(conversation(client_seq=isn, server_seq=isn))) == [0, 1, 2, 3, 4]


def test_data_in_the_syn_is_data():
    talk = Talk().open().request(request(API_VERSIONS, 3, 0)).response(response(0))
    syn, syn_ack, _, data, *rest = talk.segments
    early = replace(syn, payload=data.payload)
    assert answered(follow([early, syn_ack, *rest])) == [0]


def test_keep_alives_and_window_probes_are_not_data():
    frames = conversation()
    probes = [replace(f, seq=f.seq - 1, payload=b"", flags=ACK) for f in frames[4:9]]
    bytewise = [replace(f, seq=f.seq - 1, payload=b"?", flags=ACK) for f in frames[4:9]]
    mixed = (
        frames[:4] + [f for trio in zip(frames[4:9], probes, bytewise, strict=True) for f in trio[::-1]] + frames[9:]
    )
    assert exchange_rows(follow(mixed), packets=False) == exchange_rows(follow(frames), packets=False)


def test_the_first_bytes_stay_when_an_overlap_disagrees_and_both_are_counted():
    frames = conversation(2, mss=40)
    first, second = [f for f in frames if f.payload and f.src == frames[0].src][1:3]
    liar = replace(second, payload=b"X" * len(second.payload))
    at = frames.index(first)
    results = follow([*frames[:at], second, liar, *[f for f in frames[at:] if f is not second]])
    assert exchange_rows(results, packets=False) == exchange_rows(follow(frames), packets=False)
    assert only(results).conflicting_bytes == sum(byte != 0x58 for byte in second.payload)


def test_a_hole_the_peer_acknowledged_is_a_gap_once_the_slack_has_passed():
    frames = conversation(30)
    lost = next(f for f in frames if bytes([3]) * 20 in f.payload)
    results = follow([f for f in frames if f is not lost])
    assert only(results).unseen_request_bytes == len(lost.payload)
    assert only(results).gaps[0][1:3] == (0, len(lost.payload))
    assert set(answered(results)) >= set(range(30)) - {3}


@pytest.mark.parametrize("side", ["request", "response"])
def test_what_is_missing_came_between_the_message_before_and_the_first_that_is_read_behind(side):
    frames = conversation(30, mss=1000)
    of_side = [f for f in frames if f.payload and (f.src == frames[0].src) == (side == "request")]
    gone = of_side[5:7]
    shown = [f for f in frames if f not in gone]
    begun = [f for f in shown if f.ts_ns <= of_side[7].ts_ns]
    follower = Follower()
    early = [follower.receive(segments(begun)), follower.advance("a", begun[-1].ts_ns)]
    assert all(gap.until_ns == -1 for one in early for c in one.connections for gap in c.gaps)
    (gap,) = only(follow(shown)).gaps
    assert (gap.size, gap.since_ns, gap.until_ns) == (
        sum(len(f.payload) for f in gone),
        of_side[4].ts_ns,
        of_side[7].ts_ns,
    )
    assert gap.noticed_ns > gap.until_ns


def test_what_is_missing_was_sent_after_its_side_showed_that_it_had_sent_nothing_more():
    """A client that asks seldom, and acknowledged an answer just before."""
    talk = Talk().open().request(request(API_VERSIONS, 3, 0)).response(response(0))
    still = Segment(talk.client, talk.server, talk.client_seq, talk.server_seq, ACK, b"", talk.ts_ns + 40_000 * MS)
    talk.ts_ns += 41_000 * MS
    talk.request(request(FETCH, 12, 1))
    lost = talk.segments.pop()
    talk.ts_ns += 2_000 * MS
    exchange(2, talk)
    (gap,) = only(follow(sorted([*talk.segments, still], key=lambda frame: frame.ts_ns))).gaps
    assert gap.since_ns == still.ts_ns < lost.ts_ns < gap.until_ns == talk.segments[-2].ts_ns


def test_what_is_missing_was_sent_before_its_receiver_had_it():
    """The client, which acknowledges the answer, shows that it sent more than was seen, and asks again long after."""
    talk = Talk().open().request(request(API_VERSIONS, 3, 0)).response(response(0)).request(request(FETCH, 12, 1))
    lost = talk.segments.pop()
    talk.response(response(1))
    answer = talk.segments[-1]
    talk.segments.append(Segment(lost.src, lost.dst, talk.client_seq, talk.server_seq, ACK, b"", talk.ts_ns))
    talk.ts_ns += 40_000 * MS
    exchange(2, talk)
    (gap,) = only(follow(talk.segments)).gaps
    assert gap.since_ns < lost.ts_ns < gap.until_ns == answer.ts_ns


def test_a_hole_within_a_message_leaves_a_message_with_a_hole():
    frames = conversation(30)
    lost = next(f for f in frames if f.payload == bytes([3]) * 50)
    result = follow([f for f in frames if f is not lost])[0]
    (row,) = [i for i in range(len(result.messages)) if result.gap_bytes[i]]
    assert result.messages.correlation_id[row] == 3
    assert result.gap_bytes[row] == 50
    assert result.messages.span_length.tolist() == [50]


def test_an_acknowledgement_captured_before_reordered_data_is_no_gap():
    frames = conversation(4)
    late = next(f for f in frames if bytes([2]) * 20 in f.payload)
    at = frames.index(late)
    moved = [*frames[:at], *frames[at + 1 : at + 6], late, *frames[at + 6 :]]
    results = follow(moved)
    assert only(results).gaps == ()
    assert answered(results) == [0, 1, 2, 3]


def test_a_hole_nobody_acknowledged_is_given_up_after_its_time():
    talk = Talk(mss=50).open().request(request(API_VERSIONS, 3, 0))
    for number in range(1, 6):
        talk.request(request(FETCH, 12, number, bytes(100)))
    lost = talk.segments[6]
    frames = [f for f in talk.segments if f.src == talk.client and f is not lost]
    follower = Follower()
    follower.receive(segments(frames))
    before = follower.advance("a", frames[-1].ts_ns + 4_000 * MS)
    assert facts([before]) == {}
    assert only([follower.advance("a", frames[-1].ts_ns + 6_000 * MS)]).unseen_request_bytes == len(lost.payload)


def test_advancing_another_agent_gives_nothing_up():
    talk = Talk(mss=50).open().request(request(FETCH, 12, 0, bytes(200)))
    follower = Follower()
    follower.receive(segments(talk.segments[:4] + talk.segments[5:]))
    assert len(follower.advance("b", talk.ts_ns + 10**12).connections) == 0


def test_what_is_held_back_is_bounded():
    limits = Limits(slack_frames=10**6, slack_ns=10**15, held_bytes=200)
    frames = conversation(40)
    lost = next(f for f in frames if bytes([3]) * 20 in f.payload)
    results = follow([f for f in frames if f is not lost], limits)
    assert only(results).limits_hit >= 1
    assert len(answered(results)) >= 38


def test_left_out_spans_are_part_of_a_message_and_its_bytes_are_not():
    frames = (
        Talk().open().request(request(FETCH, 12, 1, b"A" * 10 + b"S" * 30 + b"B" * 5)).response(response(1)).segments
    )
    at = frames[3].payload.index(b"S")
    row = exchange_rows(follow(frames, left_out={3: [(at, 30)]}), packets=False)[0]
    size, kept, spans = row[2][4:7]
    assert (size, spans) == (len(frames[3].payload) - 4, ((at - 4, 30),))
    assert kept.endswith(b"A" * 10 + b"B" * 5)


def test_a_header_that_was_left_out_is_no_message():
    frames = conversation(30)
    at = next(i for i, f in enumerate(frames) if bytes([3]) * 10 in f.payload)
    results = follow(frames, left_out={at: [(0, len(frames[at].payload))]})
    assert set(answered(results)) >= set(range(30)) - {3, 4}
    assert 3 not in answered(results)


def test_fin_out_of_order_waits_for_the_data_before_it():
    frames = conversation(3)
    fin = next(i for i, f in enumerate(frames) if f.flags & FIN)
    moved = [*frames[: fin - 2], frames[fin], *frames[fin - 2 : fin], *frames[fin + 1 :]]
    assert answered(follow(moved)) == [0, 1, 2]


def test_a_capture_that_shows_one_direction_only_gives_requests_without_responses():
    frames = [f for f in conversation() if f.src[1] != 9092]
    results = follow(frames)
    assert [row[0] for row in exchange_rows(results)] == ["response-unseen"] * 5
    assert only(results).closed_by == "client-fin"


def test_responses_alone_are_counted_and_not_guessed():
    results = follow([f for f in conversation() if f.src[1] == 9092])
    assert exchange_rows(results) == []
    assert only(results).protocol == "undecided"


def test_bytes_before_the_first_packet_of_a_late_capture_find_their_place():
    frames = conversation(40)[60:]
    shuffled = [frames[4], frames[1], frames[0], *frames[2:4], *frames[5:]]
    assert answered(follow(shuffled)) == answered(follow(frames))
    assert len(answered(follow(frames))) >= 25


def test_a_distant_sequence_number_is_not_this_stream():
    frames = conversation()
    wild = Segment(
        frames[3].src, frames[3].dst, (frames[3].seq + 2**30 + 5000) % 2**32, 0, PSH | ACK, b"x" * 9, frames[3].ts_ns
    )
    assert exchange_rows(follow([*frames[:5], wild, *frames[5:]]), packets=False) == exchange_rows(
        follow(frames), packets=False
    )


def test_a_repeated_syn_changes_nothing():
    frames = conversation()
    assert frames[0].flags == SYN
    assert exchange_rows(follow([frames[0], *frames[:4], frames[0], *frames[4:]]), packets=False) == exchange_rows(
        follow(frames), packets=False
    )
