"""Where a message begins and ends: sizes that cannot be, headers that were not seen, tokens between messages."""

import struct
from dataclasses import replace

import pytest

from tests.decode.connection.conversations import (
    API_VERSIONS,
    FETCH,
    HANDSHAKE,
    PRODUCE,
    exchange_rows,
    follow,
    only,
    opened,
    produce,
    request,
    response,
    sized,
    stepwise,
)
from tests.traffic import Talk
from wirecheck.decode.connection.follower import Limits
from wirecheck.decode.connection.framing.recognise import hash_of_client

USUAL = Limits()


def answered(results):
    return [row[2][3] for row in exchange_rows(results) if row[0] == "answered"]


def more(talk, numbers):
    for number in numbers:
        talk.request(request(FETCH, 12, number, bytes(50))).response(response(number, bytes(40)))
    return talk


@pytest.mark.parametrize(
    "noise",
    [
        sized(b"\0\1\0"),  # too small to be a request
        struct.pack(">i", -5) + bytes(20),
        struct.pack(">i", 2**31 - 1) + bytes(20),
        sized(struct.pack(">hhih", -7, 3, 9, -1) + bytes(10)),
        sized(struct.pack(">hhih", 1, 3000, 9, -1) + bytes(10)),
        sized(struct.pack(">hhih", 1, 3, 9, 300) + bytes(10)),
    ],
)
def test_a_request_that_cannot_be_loses_the_boundary_until_the_next_one(noise):
    results = follow(more(more(opened(), [1]).request(noise), [2, 3, 4]).segments)
    assert {0, 1, 4} <= set(answered(results))
    assert only(results).resynchronised >= 1
    assert only(results).skipped_bytes >= len(noise)


@pytest.mark.parametrize("size", [-1, 3, 2**31 - 1])
def test_a_response_that_cannot_be_loses_the_boundary_until_the_next_one(size):
    talk = more(opened(), [1]).response(struct.pack(">i", size) + b"?" * 9)
    results = follow(more(talk, [70_002, 70_003, 70_004]).segments)
    assert {0, 1, 70_004} <= set(answered(results))


@pytest.mark.parametrize("mss", [1, 2, 5, 9])
def test_headers_in_several_packets_are_headers(mss):
    for way in (follow, stepwise):
        assert answered(way(more(opened(mss=mss), [1, 2]).segments)) == [0, 1, 2]


def test_a_request_of_which_the_beginning_was_left_out_is_no_message_and_keeps_the_boundary():
    talk = more(opened(), [1])
    place = len(talk.segments)
    more(talk, [2, 3])
    results = follow(talk.segments, left_out={place: [(6, 20)]})
    assert answered(results) == [0, 1, 3]


@pytest.mark.parametrize("gone", [(0, 4), (2, 30)])
def test_a_size_that_was_left_out_loses_the_boundary(gone):
    talk = more(opened(), [1])
    place = len(talk.segments)
    more(talk, [2, 3, 4])
    results = follow(talk.segments, left_out={place: [gone]})
    assert {0, 1, 4} <= set(answered(results))
    assert 2 not in answered(results)


def test_a_response_of_which_the_id_was_left_out_is_no_message_and_keeps_the_boundary():
    talk = more(opened(), [1]).request(request(FETCH, 12, 2, bytes(50)))
    place = len(talk.segments)
    more(talk.response(response(2, bytes(40))), [3])
    results = follow(talk.segments, left_out={place: [(4, 20)]})
    assert answered(results) == [0, 1, 3]
    assert "closed-by-server" not in [row[0] for row in exchange_rows(results)]


def shaken(mechanism=b"PLAIN", **options):
    talk = Talk(**options).open().request(request(API_VERSIONS, 0, 0)).response(response(0))
    talk.request(request(HANDSHAKE, 0, 1, struct.pack(">h", len(mechanism)) + mechanism))
    return talk.response(response(1, bytes(6)))


@pytest.mark.parametrize("size", [-1, 2**31 - 1])
def test_a_token_of_an_impossible_size_loses_the_boundary(size):
    talk = shaken().request(struct.pack(">i", size) + b"?" * 20)
    assert answered(follow(more(talk, [2, 3, 4]).segments))[-1] == 4


def test_a_token_longer_than_any_loses_the_boundary():
    talk = shaken().request(sized(b"\xee" * 200_000)).response(sized(b""))
    results = follow(more(talk, [2, 3, 4]).segments)
    assert answered(results)[:2] == [0, 1]
    assert answered(results)[-1] == 4


def test_an_answer_without_token_before_it_is_no_token():
    """The capture lost the token; the empty answer to it is one that nobody waits for."""
    talk = shaken()
    place = len(talk.segments)
    talk.request(sized(b"\0alice\0secret")).response(sized(b""))
    more(talk, [2, 3, 4])
    frames = [frame for i, frame in enumerate(talk.segments) if i != place]
    results = follow(frames)
    assert answered(results)[-1] == 4
    assert "orphan" not in [row[0] for row in exchange_rows(results)]


def test_tokens_that_were_never_answered_leave_nothing_waiting():
    talk = shaken().request(sized(b"\0alice\0secret")).reset()
    assert [row[0] for row in exchange_rows(follow(talk.segments))] == ["answered", "answered"]


def test_more_tokens_than_may_wait_are_forgotten():
    talk = shaken()
    for _ in range(6):
        talk.request(sized(b"\0alice\0secret"))
    results = follow(more(talk, [2]).segments, Limits(waiting_messages=4))
    assert only(results).limits_hit > 0
    assert "closed-by-server" not in [row[0] for row in exchange_rows(results)]


def test_produce_whose_acks_were_not_seen_is_owed_nothing():
    """Its header was seen, and where acks stand was not: an answer to a later request says that none was due."""
    talk = opened()
    place = len(talk.segments)
    talk.request(produce(1, size=300))
    more(talk, [2])
    results = follow(talk.segments, left_out={place: [(24, 200)]})
    assert [(row[0], row[2][3]) for row in exchange_rows(results)] == [
        ("answered", 0), ("no-response-due", 1), ("answered", 2),
    ]  # fmt: skip


def test_produce_whose_header_is_odd_is_owed_nothing_for_certain():
    """A fork's version: it is a message, where its acks stand is not known, and nobody is to blame for no answer."""
    talk = opened().request(produce(1, size=300, version=9).replace(b"\0\0\0\x09", b"\0\0\0\x63", 1))
    results = follow(more(talk, [2]).segments)
    assert [(row[0], row[2][3]) for row in exchange_rows(results)][1:] == [("no-response-due", 1), ("answered", 2)]


def test_a_connection_whose_requests_are_not_seen_holds_a_bounded_stretch_of_answers():
    talk = Talk().open()
    for number in range(60):
        talk.response(response(number, bytes(1000)))
    results = follow(talk.segments, Limits(search_bytes=10_000))
    assert (exchange_rows(results), only(results).protocol) == ([], "other")


def test_an_opening_of_which_bytes_were_left_out_is_searched_for_kafka():
    talk = Talk().open()
    place = len(talk.segments)
    talk.request(request(FETCH, 12, 1, bytes(400), client=None)).response(response(1))
    results = follow(more(talk, [2, 3, 4]).segments, left_out={place: [(16, 380)]})
    assert answered(results)[-1] == 4


def test_the_first_request_in_two_packets_is_judged_when_it_is_there():
    talk = Talk().open()
    whole = request(FETCH, 12, 1, bytes(400))
    talk.request(whole[:20])
    frames = more(talk.request(whole[20:]).response(response(1)), [2]).segments
    assert answered(stepwise(frames)) == [1, 2]


def test_a_first_request_that_nobody_sends_is_no_kafka():
    talk = Talk().open().request(struct.pack(">ihhih", 200, 999, 0, 1, 1) + b"c").request(bytes(200))
    results = stepwise([replace(frame) for frame in talk.segments])
    assert (exchange_rows(results), only(results).protocol) == ([], "other")


@pytest.mark.parametrize("mss", [1, 3, 5, 9, 1448])
def test_tokens_that_say_something_in_both_directions_are_counted_in_whatever_packets(mss):
    """SCRAM behind a handshake of version 0: four tokens, of which the answers look like responses."""
    talk = shaken(b"SCRAM-SHA-256", mss=mss)
    talk.request(sized(b"n,,n=alice,r=abc")).response(sized(b"r=abcdef,s=QSXCR,i=4096"))
    talk.request(sized(b"c=biws,r=abcdef,p=v0X8v3")).response(sized(b"v=rmF9pqV8S7suAoZWja4"))
    frames = more(talk, [2, 3]).segments
    for way in (follow, stepwise):
        results = way(frames)
        assert answered(results) == [0, 1, 2, 3]
        assert (only(results).raw_frames, only(results).sasl) == (4, "SCRAM-SHA-256")


@pytest.mark.parametrize("answer", [b"r=abcdef,s=QSXCR,i=4096", b""])
def test_an_answer_captured_before_its_token_is_no_message(answer):
    talk = shaken(b"SCRAM-SHA-256").request(sized(b"n,,n=alice,r=abc"))
    place = len(talk.segments) - 1
    frames = more(talk.response(sized(answer)), [2, 3]).segments
    frames[place], frames[place + 1] = frames[place + 1], frames[place]
    for way in (follow, stepwise):
        results = way(frames)
        assert answered(results) == [0, 1, 2, 3]
        assert "orphan" not in [row[0] for row in exchange_rows(results)]
        assert only(results).raw_frames == (2 if answer else 1)  # an empty one is passed over as what nobody reads


def test_answers_captured_before_what_they_answer_behind_a_token_leave_nothing_out_of_order():
    """As a capture of two threads has it: the empty answer before its token, two responses before their requests."""
    talk = shaken()
    place = len(talk.segments)
    talk.request(sized(b"\0alice\0secret")).response(sized(b""))
    more(talk, [2, 3])
    token, answer, first, first_answer, second, second_answer, *rest = talk.segments[place:]
    mixed = [answer, token, second_answer, first_answer, second, first, *rest]
    results = follow([*talk.segments[:place], *mixed, *more(talk, [4, 5, 6]).segments[place + 6 :]])
    assert answered(results)[-3:] == [4, 5, 6]
    assert not any(found.out_of_order.any() for found in results)


def test_an_answer_to_a_token_that_is_not_waited_for_any_more_is_still_no_message():
    """Half of it is there when the client goes on, and more waits than may: the token is what is given up."""
    answer = sized(b"v=rmF9pqV8S7suAoZWja4")
    talk = shaken().request(sized(b"\0alice\0secret")).response(answer[:12])
    talk.request(request(FETCH, 12, 2, bytes(50))).response(answer[12:]).response(response(2))
    for way in (follow, stepwise):
        results = way(talk.segments, Limits(waiting_messages=1))
        assert answered(results) == [0, 1, 2]
        assert (only(results).raw_frames, only(results).limits_hit) == (2, 1)


def test_a_boundary_lost_while_a_token_waits_is_found_by_the_requests_behind_it():
    talk = shaken().request(sized(b"\0alice\0secret")).response(struct.pack(">i", -1) + b"?" * 9)
    results = follow(more(talk, [70_002, 70_003, 70_004]).segments)
    assert answered(results)[-1] == 70_004
    assert only(results).resynchronised == 1


def test_the_one_request_without_client_id_in_its_header_is_a_message():
    """ControlledShutdown v0; who the client is stays known, and finds the boundary again."""
    talk = more(opened(), [1]).request(sized(struct.pack(">hhii", 7, 0, 2, 3))).response(response(2, bytes(6)))
    more(talk, [3]).request(struct.pack(">i", -5) + bytes(20))
    results = follow(more(talk, [4]).segments)
    assert answered(results) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("way", [follow, stepwise])
def test_a_message_given_up_is_skipped_to_its_end_and_the_stream_is_read_on(way):
    talk = more(opened(), [1]).request(produce(2, size=300_000)).response(response(2))
    results = way(more(talk, [3, 4]).segments, Limits(pending_bytes=100_000))
    assert answered(results) == [0, 1, 3, 4]
    assert [row[0] for row in exchange_rows(results) if row[2] is None] == ["request-unseen"]
    assert only(results).skipped_bytes == len(produce(2, size=300_000))
    assert (only(results).limits_hit, only(results).resynchronised) == (1, 0)


def odd(number, client="a\nb", key=FETCH, version=12):
    return request(key, version, number, bytes(50), client=client)


@pytest.mark.parametrize("mss", [1448, 7])
@pytest.mark.parametrize("client", ["a\nb", "c" * 300, None])
@pytest.mark.parametrize("way", [follow, stepwise])
def test_a_strange_first_request_that_is_answered_is_kafka(way, client, mss):
    talk = Talk(mss=mss).open()
    for number in (5, 6, 7):
        talk.request(odd(number, client)).response(response(number, bytes(40)))
    results = way(talk.segments)
    assert only(results).protocol == "kafka"
    assert answered(results) == [5, 6, 7]


@pytest.mark.parametrize("way", [follow, stepwise])
def test_a_strange_first_request_before_another_of_the_same_client_is_kafka(way):
    """A client that wants no answers: Produce with acks 0."""
    body = b"\xff\xff" + struct.pack(">hii", 0, 1000, 1) + bytes(40)
    talk = Talk().open()
    for number in (0, 1, 2):
        talk.request(request(PRODUCE, 3, number, body, client="a\nb"))
    results = way(talk.segments)
    assert only(results).protocol == "kafka"
    assert [row[0] for row in exchange_rows(results)] == ["no-response-due"] * 3


@pytest.mark.parametrize(
    ("answers", "protocol"),
    [
        ([response(6)], "other"),
        ([struct.pack(">ii", 1 << 30, 5)], "other"),
        ([b"R\0\0\0\x08\0\0\0\0"], "other"),
        ([], "undecided"),
    ],
)
@pytest.mark.parametrize("way", [follow, stepwise])
def test_a_strange_first_request_that_is_not_answered_as_kafka_does_is_none(way, answers, protocol):
    talk = Talk().open().request(odd(5))
    for answer in answers:
        talk.response(answer)
    results = way(talk.segments)
    assert (only(results).protocol, exchange_rows(results)) == (protocol, [])


def test_zeros_answer_nothing():
    talk = Talk().open().request(odd(0)).response(response(0, bytes(28)))
    assert only(follow(talk.segments)).protocol == "undecided"
    assert answered(follow(talk.request(odd(1)).response(response(1)).segments)) == [0, 1]


@pytest.mark.parametrize("behind", [odd(6, "a\nc"), sized(bytes(60)), odd(4)])
def test_what_another_or_nobody_sends_behind_a_strange_first_request_confirms_nothing(behind):
    results = follow(Talk().open().request(odd(5)).request(behind).segments)
    assert only(results).protocol in {"undecided", "other"}
    assert exchange_rows(results) == []


def test_a_strange_first_request_is_not_held_beyond_what_a_search_holds():
    long = request(FETCH, 12, 5, bytes(50_000), client="a\nb")
    for limits in (Limits(search_bytes=10_000), Limits(search_pieces=10)):
        assert only(follow(Talk().open().request(long).segments, limits)).protocol == "other"


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (  # PostgreSQL's startup message, whose "us" "er" reads as an id, and its answer
            struct.pack(">ihh", 130, 3, 0) + b"user\0postgres\0database\0orders\0".ljust(122, b"\0"),
            b"R\0\0\0\x0c\0\0\0\x05salt",
        ),
        (  # ZooKeeper: protocol version, last zxid, timeout, session, password
            struct.pack(">iiqiqi", 44, 0, 0x1_0005_0003, 30_000, 0, 16) + bytes(16),
            struct.pack(">iiiqi", 36, 0, 30_000, 0x1_0000_0001, 16) + bytes(16),
        ),
    ],
)
def test_protocols_with_a_size_in_front_are_not_kafka(asked, answer):
    results = follow(Talk().open().request(asked).response(answer).request(asked).response(answer).segments)
    assert (only(results).protocol, exchange_rows(results)) == ("other", [])


def test_a_strange_client_is_found_again_behind_a_gap():
    talk = Talk(mss=70).open()
    for number in range(1, 30):
        talk.request(odd(number)).response(response(number, bytes(40)))
    lost = [i for i, frame in enumerate(talk.segments) if frame.payload and frame.dst == talk.server][15]
    frames = talk.segments[:lost] + talk.segments[lost + 1 :]
    assert len(answered(follow(frames))) >= 27


def test_a_strange_client_that_signs_in_by_tokens_is_read_behind_them():
    """SaslHandshake v0, a token, then Kafka again."""
    handshake = request(HANDSHAKE, 0, 1, struct.pack(">h", 5) + b"PLAIN", client="a\nb")
    talk = Talk().open().request(handshake).response(response(1, bytes(6)))
    talk.request(sized(b"\0user\0word")).response(sized(b""))
    talk.request(odd(2)).response(response(2))
    results = follow(talk.segments)
    assert answered(results) == [1, 2]
    assert only(results).sasl == "PLAIN"


@pytest.mark.parametrize("name", ["app", None])
def test_a_connection_that_ends_as_it_signs_in_is_that_of_the_client_which_it_names(name):
    """Java's authenticator takes its ids from the end (KIP-368), and may be the only one that asks."""
    talk, first = Talk().open(), 2**31 - 8
    talk.request(request(API_VERSIONS, 0, first, b"", client=name)).response(response(first, bytes(300)))
    talk.request(request(HANDSHAKE, 1, first + 1, struct.pack(">h", 5) + b"PLAIN", client=name)).close()
    connection = only(follow(talk.segments))
    assert connection.client_hash == (hash_of_client(b"app", 3)[0] if name else -1)


def test_an_answer_of_which_the_id_was_left_out_confirms_nothing():
    talk = Talk().open().request(odd(5)).response(response(5, bytes(40)))
    results = follow(talk.segments, left_out={4: [(4, 4)]})
    assert (only(results).protocol, exchange_rows(results)) == ("undecided", [])
    talk.request(odd(6)).response(response(6))
    results = follow(talk.segments, left_out={4: [(4, 4)]})
    assert (only(results).protocol, answered(results)) == ("kafka", [6])
