"""Segments that no receiver takes end nothing and hide nothing: SYN (RFC 5961), FIN, bytes outside of the window."""

import struct
from dataclasses import replace

import pytest

from tests.decode.connection.conversations import (
    FETCH,
    answered,
    exchange_rows,
    facts,
    only,
    request,
    response,
    segments,
)
from tests.traffic import ACK, FIN, PSH, RST, SYN, Segment, Talk
from wirecheck.decode.connection.follower import Follower

SECOND = 10**9
SERVER = ("10.0.0.9", 9092)


def exchange(talk, number):
    return talk.request(request(FETCH, 12, number, bytes(40))).response(response(number, bytes(40)))


def talked(numbers, talk=None):
    talk = talk or Talk().open()
    for number in numbers:
        exchange(talk, number)
    return talk


FAR = 900_000_000
"""Ahead of a number: within the greatest window there is, far from anything sent."""


def with_spoofed(*spoofed, numbers=range(20), at=20, close=True):
    """A connection of exchanges with these segments in its middle: (from client, ahead of its side, flags, payload)."""
    talk = talked(numbers)
    frames = (talk.close() if close else talk).segments
    said = {
        (f.src == SERVER): (f.seq + len(f.payload), f.dst if f.src == SERVER else f.src, f.src) for f in frames[:at]
    }
    made = []
    for from_client, ahead, flags, payload in spoofed:
        seq, _, src = said[not from_client]
        ack = said[from_client][0]
        dst = said[from_client][2]
        made.append(
            Segment(src, dst, (seq + ahead) % 2**32, ack if flags & ACK else 0, flags, payload, frames[at].ts_ns)
        )
    return frames[:at] + made + frames[at:]


def follow(frames, each=None, stored=False):
    follower, results = Follower(), []
    for begin in range(0, len(frames), each or len(frames)):
        results.append(follower.receive(segments(frames[begin : begin + (each or len(frames))])))
        if stored:
            follower = Follower.restore(follower.snapshot())
    return [*results, follower.drain()]


GAMES = {
    "a SYN": [(True, 77_777_777, SYN, b"")],
    "a SYN, twice": [(True, 77_777_777, SYN, b"")] * 2,
    "a SYN that carries a request": [(True, 77_777_777, SYN, request(FETCH, 12, 99, bytes(40)))],
    "a SYN and the challenge ACK": [(True, 77_777_777, SYN, b""), (False, 0, ACK, b"")],
    "a SYN near by": [(True, 5_000, SYN, b"")],
    "a SYN of the server": [(False, 77_777_777, SYN, b"")],
    "a SYN-ACK": [(False, 77_777_777, SYN | ACK, b"")],
    "a SYN and its data": [
        (True, 77_777_777, SYN, b""),
        (True, 77_777_778, PSH | ACK, request(FETCH, 12, 99, bytes(40))),
    ],
    "a FIN ahead": [(True, 70_000, FIN | ACK, b"")],
    "a FIN behind": [(True, -30, FIN | ACK, b"")],
    "bytes a little ahead": [(True, 70_000, PSH | ACK, b"x" * 1400)],
    "bytes far ahead": [(True, 1_000_000 + 1400 * i, PSH | ACK, b"x" * 1400) for i in range(20)],
    "bytes of the server far ahead": [(False, 200_000, PSH | ACK, b"x" * 1400)],
    "a RST within the window": [(True, 1_000, RST, b"")],
    "a RST of the server within the window": [(False, 1_000, RST | ACK, b"")],
}
RANDOM = {
    "an ACK": (ACK, b""),
    "data": (PSH | ACK, b"\0\0\0\x10" + bytes(96)),
    "a FIN": (FIN | ACK, b""),
    "a RST": (RST, b""),
    "a RST with an ACK": (RST | ACK, b""),
}


def far_away(frame, flags, payload, from_client, number):
    """A segment of the connection's endpoints without any right number."""
    client, server = (frame.dst, frame.src) if frame.src == SERVER else (frame.src, frame.dst)
    src, dst = (client, server) if from_client else (server, client)
    seq, ack = (frame.seq + FAR + number * 77_777_777) % 2**32, (frame.ack + FAR + number * 55_555_555) % 2**32
    return Segment(src, dst, seq, ack if flags & ACK else 0, flags, payload, frame.ts_ns + number)


@pytest.mark.parametrize(("each", "stored"), [(None, False), (1, True)])
@pytest.mark.parametrize("from_client", [True, False])
@pytest.mark.parametrize("name", RANDOM)
@pytest.mark.parametrize("count", [1, 10])
def test_segments_without_a_right_number_change_nothing(name, from_client, count, each, stored):
    talk = talked(range(20)).close().segments
    spoofed = [far_away(talk[20], *RANDOM[name], from_client, number) for number in range(count)]
    results = follow(talk[:20] + spoofed + talk[20:], each, stored)
    found = only(results)
    assert answered(results) == list(range(20))
    assert (found.unseen_request_bytes, found.unseen_response_bytes, found.skipped_bytes) == (0, 0, 0)
    assert (found.unacceptable, found.closed_by) == (count, "client-fin")


@pytest.mark.parametrize("name", ["an ACK", "data"])
def test_an_acknowledgement_of_what_was_never_sent_changes_nothing(name):
    """Its own number is right."""
    talk = talked(range(20)).close().segments
    flags, payload = RANDOM[name]
    at = next(i for i, frame in enumerate(talk) if i > 20 and frame.src != SERVER)
    spoofed = replace(far_away(talk[at], flags, payload, True, 0), seq=talk[at].seq)
    results = follow([*talk[:at], spoofed, *talk[at:]])
    assert answered(results) == list(range(20))
    assert only(results).unacceptable == 1


def moved(frames, by):
    """The same in other numbers, as after a stretch that the capture lost."""
    return [replace(f, seq=(f.seq + by) % 2**32, ack=(f.ack + by) % 2**32 if f.ack else 0) for f in frames]


@pytest.mark.parametrize("by", [20_000_000, 3_000_000_000], ids=["near 20 MB", "more than any window"])
def test_what_goes_on_behind_a_long_stretch_that_was_lost_is_read(by):
    """Both sides answer each other in the new numbers."""
    talk = talked(range(40)).segments
    results = follow(talk[:40] + moved(talk[40:], by))
    found = only(results)
    assert answered(results)[:18] == list(range(18))
    assert answered(results)[-16:] == list(range(24, 40))
    assert found.unacceptable <= 2


def test_one_side_alone_goes_on_behind_a_long_stretch_that_was_lost():
    """Of the other side nothing is captured."""
    talk = [frame for frame in talked(range(60)).segments if frame.dst == SERVER]
    found = only(follow(talk[:20] + moved(talk[20:], 20_000_000)))
    assert found.unacceptable == 7
    assert found.requests > 40


@pytest.mark.parametrize("one_sided", [False, True])
def test_segments_that_go_on_in_each_others_numbers_alone_end_nothing(one_sided):
    """Where the other side is captured they are not believed; else they are, until the connection goes on."""
    talk = [frame for frame in talked(range(60)).segments if not one_sided or frame.dst == SERVER]
    spoofed = [far_away(talk[20], PSH | ACK, bytes(100), True, 0)]
    for _ in range(9):
        last = spoofed[-1]
        spoofed.append(replace(last, seq=(last.seq + 100) % 2**32))
    results = follow(talk[:20] + spoofed + talk[20:])
    if one_sided:
        assert only(results).unacceptable <= 16
        assert only(results).requests > 40
    else:
        assert answered(results) == list(range(60))
        assert only(results).unacceptable == 10


@pytest.mark.parametrize(("each", "stored"), [(None, False), (1, False), (1, True)])
@pytest.mark.parametrize("name", GAMES)
def test_what_no_receiver_takes_ends_nothing_and_hides_nothing(name, each, stored):
    frames = with_spoofed(*GAMES[name])
    results = follow(frames, each, stored)
    found = only(results)
    assert answered(results) == list(range(20))
    assert (found.unseen_request_bytes, found.unseen_response_bytes, found.skipped_bytes) == (0, 0, 0)
    assert (found.frames, found.role_by, found.closed_by) == (len(frames), "syn", "client-fin")


@pytest.mark.parametrize("name", ["bytes a little ahead", "bytes far ahead", "bytes of the server far ahead"])
def test_bytes_that_the_peer_never_takes_are_let_go_with_time(name):
    """The connection stays open, and is read on minutes later."""
    first = with_spoofed(*GAMES[name], close=False)
    last = first[-1]
    talk = Talk(client_seq=last.ack, server_seq=last.seq + len(last.payload), ts_ns=last.ts_ns + 60 * SECOND)
    results = follow(first + talked(range(20, 30), talk).segments)
    found = only(results)
    assert answered(results) == list(range(30))
    assert (found.unseen_request_bytes, found.unseen_response_bytes) == (0, 0)


def test_a_hole_that_the_peer_acknowledged_past_is_a_gap_as_ever():
    frames = talked(range(20)).close().segments
    lost = [frame for i, frame in enumerate(frames) if i != 21]
    assert only(follow(lost)).unseen_request_bytes == len(frames[21].payload)


def test_a_hole_at_the_end_of_a_capture_hides_nothing_behind_it():
    """Nothing says what the peer has: what came is read."""
    frames = talked(range(20)).request(request(FETCH, 12, 20, bytes(40))).request(request(FETCH, 12, 21)).segments
    results = follow(frames[:-2] + frames[-1:])
    assert [row[2][3] for row in exchange_rows(results)] == [*range(20), 21]


def again(**options):
    return talked(
        range(100, 110),
        Talk(client_seq=3_000_000_000, server_seq=2_000_000_000, ts_ns=1_700_000_003_000_000_000, **options).open(),
    )


@pytest.mark.parametrize(("each", "stored"), [(None, False), (1, True)])
@pytest.mark.parametrize(
    "order", [(0, 1, 2), (1, 0, 2), (0, 2, 1), (0, 0, 1, 2), (0, 1), (1, 2)], ids=lambda order: "".join(map(str, order))
)
def test_ports_that_are_used_again_are_another_connection_once_the_other_side_answers(order, each, stored):
    """No FIN was seen of the first; SYN, SYN-ACK and ACK come in any order, or one of them is lost."""
    first, second = talked(range(10)).segments, again().segments
    start = second[0].ts_ns
    hands = [replace(second[k], ts_ns=start + 1000 * i) for i, k in enumerate(order)]
    results = follow(first + hands + second[3:], each, stored)
    assert answered(results) == [*range(10), *range(100, 110)]
    found = sorted(facts(results).values(), key=lambda connection: connection.started_ns)
    assert [connection.started_ns for connection in found] == [first[0].ts_ns, start]
    early = order == (0, 2, 1)  # an ACK before what it acknowledges is taken for the first connection's
    assert [connection.frames for connection in found] == [len(first) + early, len(hands) - early + len(second) - 3]
    assert [connection.role_by for connection in found] == ["syn", "syn"]


def test_a_syn_whose_answer_was_lost_begins_a_connection_when_the_server_acknowledges_its_numbers():
    first, second = talked(range(10)).segments, again().segments
    results = follow([*first, second[0], *second[2:]])
    assert answered(results)[:10] == list(range(10))
    assert answered(results)[-8:] == list(range(102, 110))


def test_a_syn_that_is_not_answered_in_time_is_forgotten():
    """A server answers at once; an acknowledgement of such numbers a minute later is of something else."""
    first = talked(range(10)).segments
    second = again().segments
    late = [replace(frame, ts_ns=frame.ts_ns + 60 * SECOND) for frame in second[1:]]
    results = follow([*first, second[0], *late])
    assert answered(results)[:10] == list(range(10))


def test_a_connection_that_ends_gives_way_to_a_syn_at_once():
    first, second = talked(range(10)).close().segments, again().segments
    soon = [replace(frame, ts_ns=first[-1].ts_ns + 1000 + i) for i, frame in enumerate(second)]
    for frames in (first, [*first[:-3], replace(first[-3], flags=RST)]):
        results = follow(frames + soon)
        assert answered(results) == [*range(10), *range(100, 110)]
        assert len(facts(results)) == 2


@pytest.mark.parametrize("stored", [False, True])
def test_an_agent_that_shows_one_side_is_believed_about_its_syn(stored):
    """The agent that shows the server's side brings its file later: the answer to the SYN, and the end of what was."""
    first, second = talked(range(10)).segments, again().segments
    follower = Follower()
    follower.expect(["client side", "server side"])
    results = []
    for agent, frames in (
        ("client side", [frame for frame in first if frame.dst == SERVER]),
        ("server side", [frame for frame in first if frame.src == SERVER]),
        ("client side", [frame for frame in second if frame.dst == SERVER]),
        ("server side", [frame for frame in second if frame.src == SERVER]),
    ):
        results.append(follower.receive(segments(frames, agent=agent)))
        if stored:
            follower = Follower.restore(follower.snapshot())
    results.append(follower.drain())
    assert answered(results) == [*range(10), *range(100, 110)]


@pytest.mark.parametrize(("each", "stored"), [(None, False), (1, True)])
@pytest.mark.parametrize("from_client", [True, False])
def test_a_size_of_a_message_that_never_ends_hides_one_message(from_client, each, stored):
    """Its sender has the right numbers. The peer shows it: it answers what was not read, or asks on and on."""
    frames = talked(range(60)).close().segments
    at = next(i for i, frame in enumerate(frames) if i > 20 and (frame.dst == SERVER) == from_client)
    frames.insert(at, replace(frames[at], payload=struct.pack(">i", 90_000_000) + request(FETCH, 12, 999)[4:]))
    results = follow(frames, each, stored)
    found = only(results)
    missing = set(range(60)) - set(answered(results))
    assert len(missing) <= 3
    assert 0 < sum(gap.size for gap in found.gaps) < 300


def test_a_large_response_that_holds_other_responses_is_waited_for():
    """Whatever its body looks like: no more than what is asked meanwhile, and answered behind it."""
    talk = talked(range(3))
    for number in range(3, 20):
        talk.request(request(FETCH, 12, number, bytes(40)))
    talk.response(response(3, bytes(200_000)))
    for number in range(4, 20):
        talk.response(response(number, bytes(40)))
    assert answered(follow(talk.close().segments)) == list(range(20))


@pytest.mark.parametrize("ahead", [1_000, 60_000, 15_000_000])
def test_an_acknowledgement_of_what_its_sender_never_shows_loses_nothing(ahead):
    talk = talked(range(100)).close().segments
    at = next(i for i, frame in enumerate(talk) if i > 20 and frame.dst == SERVER)
    ack = replace(talk[at], ack=talk[at].ack + ahead, payload=b"", flags=ACK)
    results = follow([*talk[:at], ack, *talk[at:]])
    assert answered(results) == list(range(100))
    assert only(results).unseen_response_bytes == 0


def test_a_gap_that_two_invented_segments_made_is_taken_back():
    """One shows a number 10 MB ahead, the other acknowledges it; minutes later the connection goes on where it was."""
    first = talked(range(20), Talk(step_ns=SECOND).open())
    rest = talked(range(20, 40), Talk(**numbers_of(first), ts_ns=first.ts_ns + 60 * SECOND, step_ns=SECOND))
    last = first.segments[-1]
    shows = replace(last, seq=last.seq + len(last.payload) + 10_000_000, payload=b"", flags=ACK)
    takes = replace(shows, src=shows.dst, dst=shows.src, seq=shows.ack, ack=shows.seq)
    results = follow([*first.segments, shows, takes, *rest.close().segments])
    found = only(results)
    assert answered(results) == list(range(40))
    assert (found.unseen_response_bytes, found.gaps) == (0, ())


def numbers_of(talk):
    return {"client_seq": talk.client_seq, "server_seq": talk.server_seq}


def test_a_reset_whose_sender_goes_on_is_none():
    talk = talked(range(20)).close().segments
    at = next(i for i, frame in enumerate(talk) if i > 20 and frame.dst == SERVER)
    results = follow([*talk[:at], replace(talk[at], flags=RST, payload=b""), *talk[at:]])
    assert answered(results) == list(range(20))
    assert only(results).closed_by == "client-fin"


def test_a_handshake_of_invented_numbers_begins_no_connection():
    """Each side's is sent, and even acknowledged; no data follow."""
    first = talked(range(20)).segments
    hands = again().segments[:3]
    rest = talked(range(20, 40), Talk(client_seq=first[-1].ack, server_seq=first[-1].seq + len(first[-1].payload)))
    late = [replace(frame, ts_ns=frame.ts_ns + 10 * SECOND) for frame in rest.close().segments]
    results = follow([*first, *hands, *late])
    assert answered(results) == list(range(40))
    assert only(results).unseen_request_bytes + only(results).unseen_response_bytes == 0
