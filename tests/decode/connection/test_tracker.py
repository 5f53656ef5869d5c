"""Which connection a frame belongs to, and what happens when it begins, ends, or lasts too long."""

from dataclasses import replace

import pytest

from tests.decode.connection.conversations import (
    API_VERSIONS,
    FETCH,
    answered,
    exchange_rows,
    facts,
    moved,
    only,
    produce,
    request,
    response,
    segments,
)
from tests.traffic import ACK, FIN, SYN, Talk
from wirecheck.decode.connection.follower import Follower, Limits

SECOND = 10**9
ECE = 64  # a flag that nothing reads, and that a frame in step has not
USUAL = Limits()


def follow(*parts, limits=USUAL, ports=frozenset()):
    follower = Follower(limits, ports)
    return [*(follower.receive(segments(part)) for part in parts), follower.drain()]


def talked(numbers=(1, 2), client=1, **options):
    talk = (
        Talk(client=(f"10.0.0.{client}", 40000 + client), **options)
        .open()
        .request(request(API_VERSIONS, 3, 0))
        .response(response(0))
    )
    for number in numbers:
        talk.request(request(FETCH, 12, number, bytes(40))).response(response(number, bytes(40)))
    return talk


def later(frames, ns):
    return [replace(frame, ts_ns=frame.ts_ns + ns) for frame in frames]


@pytest.mark.parametrize("order", [(3, 0, 1, 2), (3, 0, 2, 1), (3, 1, 0, 2), (1, 0, 3, 2), (3, 2, 1, 0)])
def test_a_syn_that_the_capture_shows_late_still_begins_the_stream(order):
    frames = talked().segments
    results = follow([frames[i] for i in order] + frames[4:])
    assert answered(results) == [0, 1, 2]
    assert (only(results).from_start, only(results).client) == (True, ("10.0.0.1", 40001))


@pytest.mark.parametrize("after_s", [0.1, 1, 3, 60])
@pytest.mark.parametrize("again", [False, True])
def test_a_syn_that_is_answered_late_is_one_connection(after_s, again):
    """The first SYN, or its answer, was lost on the way: it is sent again after 1, 3, 7 ... s (RFC 6298)."""
    frames = talked().segments
    rest = later(frames[1:], int(after_s * SECOND))
    first = [frames[0], replace(frames[0], ts_ns=rest[0].ts_ns - 1000)] if again else frames[:1]
    results = follow([*first, *rest])
    assert answered(results) == [0, 1, 2]
    assert (only(results).frames, only(results).from_start) == (len(first) + len(rest), True)


def test_a_syn_behind_what_was_seen_of_the_stream_begins_nothing():
    """It would begin in the middle of bytes that are there."""
    frames = talked().segments
    odd = replace(frames[0], seq=frames[3].seq + 5, ts_ns=frames[3].ts_ns)
    results = follow([frames[3], odd, *frames[4:]])
    assert answered(results)[-2:] == [1, 2]


def test_a_packet_that_comes_after_the_end_counts_and_says_nothing_new():
    talk = talked().close()
    frames = talk.segments
    again = later([frame for frame in frames if frame.payload][-2:], 4 * SECOND)
    results, plain = follow([*frames, *again]), follow(frames)
    assert exchange_rows(results) == exchange_rows(plain)
    assert only(results).frames == only(plain).frames + 2
    assert only(results).payload_bytes > only(plain).payload_bytes


def test_the_same_ports_after_the_end_are_another_connection():
    first, second = talked().close(), talked(client_seq=77, server_seq=99)
    results = follow([*first.segments, *later(second.segments, 5 * SECOND)])
    assert len(facts(results)) == 2
    assert answered(results) == [0, 0, 1, 1, 2, 2]


def test_the_same_ports_before_the_end_was_seen_end_what_was():
    first, second = talked(), talked(client_seq=77, server_seq=99)
    results = follow([*first.segments, *later(second.segments, 5 * SECOND)])
    assert len(facts(results)) == 2
    assert answered(results) == [0, 0, 1, 1, 2, 2]


def test_a_side_of_which_only_the_end_is_seen_has_ended():
    """The capture shows the requests only, and then that the server closes."""
    talk = talked().request(request(FETCH, 12, 3, bytes(40)))
    requests = [frame for frame in talk.segments[3:] if frame.src == talk.client]
    end = replace(
        requests[-1], src=talk.server, dst=talk.client, seq=talk.server_seq, ack=talk.client_seq, flags=FIN | ACK,
        payload=b"", ts_ns=requests[-1].ts_ns + 6 * SECOND,
    )  # fmt: skip
    results = follow([*requests, end])
    assert only(results).closed_by == "server-fin"
    assert {row[0] for row in exchange_rows(results)} == {"response-unseen"}


@pytest.mark.parametrize(("by_client", "by"), [(True, "client-rst"), (False, "server-rst")])
def test_who_closed_is_said_by_the_roles_that_show_later(by_client, by):
    """The capture begins in the middle, and shows the reset before the packets that say who is the client."""
    talk = talked(numbers=(1, 2, 3)).reset(by_client=by_client)
    first = talk.segments[4]
    frames = [first, replace(talk.segments[-1], ts_ns=first.ts_ns), *talk.segments[5:-1]]
    results = follow(frames)
    assert (only(results).client, only(results).closed_by) == (("10.0.0.1", 40001), by)


def test_a_frame_without_bytes_begins_no_connection():
    frames = talked().segments
    results = follow([replace(frames[2], flags=ACK)])
    assert facts(results) == {}


def test_a_syn_of_one_connection_too_many_is_refused_and_counted():
    talks = [moved(Talk(), number) for number in range(3)]
    frames = [frame for talk in talks for frame in talk.open().request(request(API_VERSIONS, 3, 0)).segments]
    follower = Follower(Limits(connections=2))
    results = [follower.receive(segments(frames)), follower.drain()]
    assert len(facts(results)) == 2
    assert follower.refused == sum(1 for frame in talks[2].segments if frame.flags & SYN or frame.payload)


def test_connections_that_never_showed_kafka_make_room_for_others():
    quiet = [frame for number in range(3) for frame in moved(Talk(), number).open().segments]
    spoken = moved(Talk(ts_ns=Talk.ts_ns + SECOND), 9)
    spoken.open().request(request(API_VERSIONS, 3, 0)).response(response(0))
    results = follow(quiet, spoken.segments, limits=Limits(connections=4))
    assert answered(results) == [0]
    assert {c.protocol for c in facts(results).values() if c.client[1] != 40009} == {"undecided"}


def test_too_much_waiting_is_given_up_and_nobody_is_blamed():
    """A request of which the end never comes: beyond the bound it is skipped, and its connection says so."""
    greedy, modest = talked(mss=1400), talked(client=7)
    greedy.request(produce(5, size=400_000)[:300_000])
    results = follow(modest.segments[:4], greedy.segments, modest.segments[4:], limits=Limits(pending_bytes=100_000))
    by_client = {c.client[1]: c for c in facts(results).values()}
    assert by_client[40001].limits_hit > 0
    assert by_client[40007].limits_hit == 0
    assert "closed-by-server" not in [row[0] for row in exchange_rows(results)]
    assert [row[2][3] for row in exchange_rows(results) if row[0] == "answered"] == [0, 0, 1, 1, 2, 2]


def test_ports_leave_other_connections_alone():
    results = follow(talked().segments, talked(server=("10.0.0.9", 9999)).segments, ports=frozenset({9999}))
    assert [c.server[1] for c in facts(results).values()] == [9999]


def test_nothing_follows_from_no_frames():
    assert exchange_rows(follow([], talked().segments)) == exchange_rows(follow(talked().segments))


def test_an_answer_that_nobody_asked_for_is_said_when_its_time_has_passed():
    """Not at the end only: capture time that passes is enough."""
    talk = talked().response(response(77, bytes(20)))
    follower = Follower()
    first = follower.receive(segments(talk.segments))
    after = follower.advance("a", talk.ts_ns + 10 * SECOND)
    assert "orphan" not in [row[0] for row in exchange_rows([first])]
    assert [(row[0], row[3][3]) for row in exchange_rows([after])] == [("orphan", 77)]
    assert exchange_rows([follower.drain()]) == []


def test_an_end_that_is_shown_twice_is_one_end():
    talk = talked().close()
    again = [replace(frame, ts_ns=frame.ts_ns + 1) for frame in talk.segments if frame.flags & FIN]
    frames = sorted([*talk.segments, *again], key=lambda frame: frame.ts_ns)
    results = follow(frames)
    assert answered(results) == [0, 1, 2]
    assert only(results).closed_by == "client-fin"


def test_questions_answers_and_searches_give_way_too():
    """Whatever waits: requests without answers, answers whose requests are missing, bytes without a boundary."""
    asked, answering, searched = (moved(Talk(mss=1400), number) for number in (1, 2, 3))
    asked.open().request(request(API_VERSIONS, 3, 0)).response(response(0))
    answering.open().request(request(API_VERSIONS, 3, 0)).response(response(0))
    for number in range(1, 8):
        asked.request(produce(number, size=9_000))
        answering.request(request(FETCH, 12, number, bytes(40))).response(response(number, bytes(9_000)))
    searched.request(bytes(range(1, 256)) * 200)
    unasked = [frame for i, frame in enumerate(answering.segments) if frame.src == answering.server or i < 5]
    results = follow(asked.segments, unasked, searched.segments, limits=Limits(pending_bytes=20_000))
    given_up = {c.client[0] for c in facts(results).values() if c.limits_hit}
    assert len(given_up) >= 2
    assert not {row[0] for row in exchange_rows(results)} & {"orphan", "closed-by-server"}


def test_what_gives_way_may_have_been_stored_before():
    """A stored follower has room for nothing but what it holds; what a search gives up needs more to be said."""
    searched, asked = moved(Talk(mss=1400), 1), moved(Talk(mss=1400), 2)
    searched.request(b"\xee" * 60_000)
    asked.open().request(request(API_VERSIONS, 3, 0)).response(response(0))
    for number in range(1, 8):
        asked.request(produce(number, size=9_000)).response(response(number))
    limits = Limits(pending_bytes=65_000)
    follower = Follower(limits)
    results = [follower.receive(segments(searched.segments))]
    follower = Follower.restore(follower.snapshot(), limits)
    results += [follower.receive(segments(asked.segments)), follower.drain()]
    assert answered(results) == list(range(8))
    assert {c.client[1]: c.limits_hit for c in facts(results).values()} == {40001: 1, 40002: 0}


@pytest.mark.parametrize("flags", [ACK, ACK | ECE], ids=["in step", "as any other"])
def test_an_empty_packet_far_away_says_nothing_of_this_stream(flags):
    """Neither that bytes before it were sent, nor by what it acknowledges that the others were received."""
    frames = talked().segments
    last = frames[-1]
    for far in ({"seq": last.seq + (20 << 20)}, {"ack": last.ack + (1 << 30) + 5000}):
        results = follow([*frames, replace(last, payload=b"", flags=flags, **far)])
        assert exchange_rows(results) == exchange_rows(follow(frames))
        assert (only(results).unseen_request_bytes, only(results).unseen_response_bytes) == (0, 0)


def test_bytes_lost_of_a_connection_that_cannot_be_read_are_counted_all_the_same():
    record = b"\x17\x03\x03\x05\xa3" + bytes(1443)
    talk = Talk().open()
    for _ in range(8):
        talk.request(b"\x16\x03\x01\x05\xa3" + record[5:]).response(record)
    lost = [frame for frame in talk.segments if frame.src == talk.client and frame.payload][5]
    results = follow([frame for frame in talk.segments if frame is not lost])
    assert only(results).protocol == "tls"
    assert (only(results).unseen_request_bytes, only(results).unseen_response_bytes) == (len(lost.payload), 0)


@pytest.mark.parametrize("flags", [0, ECE], ids=["in step", "as any other"])
def test_what_the_server_says_while_a_request_is_given_up_is_read(flags):
    """The first half of a large request gave way; the server goes on meanwhile, and what follows is matched."""
    talk = talked((1,), mss=60_000).request(request(FETCH, 12, 2, bytes(40)))
    large = produce(3, size=120_000)
    talk.request(large[:60_000])
    first = len(talk.segments)
    talk.response(response(2, bytes(40))).request(large[60_000:]).response(response(3))
    talk.request(request(FETCH, 12, 4)).response(response(4))
    rest = [replace(frame, flags=frame.flags | flags) for frame in talk.segments[first:]]
    results = follow(talk.segments[:first], rest, limits=Limits(pending_bytes=30_000))
    assert answered(results) == [0, 1, 4]
    assert {row[0] for row in exchange_rows(results) if row[0] != "answered"} == {"response-unseen", "request-unseen"}
    assert (only(results).skipped_bytes, only(results).limits_hit) == (len(large), 1)


def test_connections_that_never_showed_kafka_make_room_though_they_were_stored():
    quiet = [frame for number in range(3) for frame in moved(Talk(), number).open().segments]
    spoken = moved(Talk(ts_ns=Talk.ts_ns + SECOND), 9)
    spoken.open().request(request(API_VERSIONS, 3, 0)).response(response(0))
    follower = Follower(Limits(connections=4))
    results = [follower.receive(segments(quiet))]
    follower = Follower.restore(follower.snapshot(), Limits(connections=4))
    results += [follower.receive(segments(spoken.segments)), follower.drain()]
    alike = follow(quiet, spoken.segments, limits=Limits(connections=4))
    assert exchange_rows(results) == exchange_rows(alike)
    assert facts(results) == facts(alike)


@pytest.mark.parametrize("stored", [False, True])
def test_what_is_silent_is_let_go_by_the_time_that_its_agent_has_shown_or_that_is_said_at_its_end(stored):
    """Neither another agent's time lets it go, nor is it waited for once its own agent has ended."""
    talk, idle = talked(), 2000 * SECOND
    follower = Follower(Limits(silent_ns=4 * idle))
    follower.expect(["a", "b"])
    follower.receive(segments(talk.segments))
    if stored:
        follower = Follower.restore(follower.snapshot(), follower.limits)
    for agent, now_ns, ended in (("b", talk.ts_ns + idle, False), ("a", talk.ts_ns, True)):
        assert facts([follower.advance(agent, now_ns, ended=ended)]) == {}
    assert only([follower.advance("b", talk.ts_ns + idle)]).frames == len(talk.segments)


def test_when_an_agent_has_ended_what_is_not_due_by_then_is_not_over():
    idle, closed = talked(), talked(client=7).close()
    follower = Follower()
    follower.receive(segments([*idle.segments, *closed.segments]))
    follower.advance("a", closed.ts_ns + 5 * SECOND, ended=True)
    assert len(follower.decided()) == 2  # both directions of one connection
    assert {c.client[1] for c in follower.drain().connections} == {40001, 40007}


@pytest.mark.parametrize("stored", [False, True])
def test_what_is_silent_is_let_go_when_its_agent_has_shown_so_much_time(stored):
    talk = talked()
    follower = Follower()
    follower.receive(segments(talk.segments))
    if stored:
        follower = Follower.restore(follower.snapshot())
    last_ns = talk.segments[-1].ts_ns
    assert facts([follower.advance("a", last_ns + USUAL.idle_ns - 1)]) == {}
    assert only([follower.advance("a", last_ns + USUAL.idle_ns)]).frames == len(talk.segments)
    assert facts([follower.drain()]) == {}


def test_a_syn_that_the_capture_shows_long_after_its_stream_was_read_is_its_own():
    """Behind so many frames nothing before them is waited for; it changes nothing, also where something else is."""
    talk = talked(range(1, 60), step_ns=1_000_000)
    syn, rest = talk.segments[0], talk.segments[4:88] + talk.segments[90:]
    late = follow([*rest[:90], replace(syn, ts_ns=rest[89].ts_ns), *rest[90:]])
    assert answered(late) == answered(follow(rest))
    assert only(late).frames == len(rest) + 1


@pytest.mark.parametrize(
    ("change", "rounds"),
    [
        (lambda syn, answer, ack: [syn, answer, ack], (3, 5)),
        (lambda syn, answer, ack: [syn, later([syn], 1000)[0], answer, ack], (0, 5)),
        (lambda syn, answer, ack: [syn, answer, later([answer], 1000)[0], ack], (3, 0)),
        (lambda syn, answer, _ack: [syn, answer], (3, 0)),
        (lambda _syn, answer, ack: [answer, ack], (0, 5)),
    ],
    ids=["whole", "SYN twice", "SYN-ACK twice", "no ACK of its own", "no SYN"],
)
def test_a_handshake_shows_how_long_the_way_to_each_side_is(change, rounds):
    """What was sent twice shows nothing, and an answer with data may have waited for its application."""
    syn, answer, ack, *rest = talked().segments
    answer, ack = replace(answer, ts_ns=syn.ts_ns + 3_000_000), replace(ack, ts_ns=syn.ts_ns + 8_000_000)
    seen = only(follow([*change(syn, answer, ack), *later(rest, SECOND)]))
    assert (seen.server_round_ns // 1_000_000, seen.client_round_ns // 1_000_000) == rounds
    assert seen.network_ns == (8_000_000 if all(rounds) else 0)


def test_what_is_sent_again_is_counted_and_what_is_overtaken_is_not():
    frames = talked(numbers=(1, 2, 3), mss=30).segments
    data = [place for place, frame in enumerate(frames) if frame.payload]
    one, two = data[3], data[4]
    assert frames[one].src == frames[two].src
    probe = replace(frames[two], seq=frames[two].seq + len(frames[two].payload) - 1, payload=frames[two].payload[-1:])
    assert only(follow(frames)).retransmitted == 0
    assert only(follow([*frames[: two + 1], frames[one], *frames[two + 1 :]])).retransmitted == 1
    assert only(follow([*frames[: two + 1], probe, *frames[two + 1 :]])).retransmitted == 0
    swapped = [*frames[:one], frames[two], frames[one], *frames[two + 1 :]]
    assert only(follow(swapped)).retransmitted == 0
    filled = [
        *frames[:one],
        frames[two],
        *later(frames[one : one + 1], 5_000_000),
        *later(frames[two + 1 :], 5_000_000),
    ]
    assert only(follow(filled)).retransmitted == 1
