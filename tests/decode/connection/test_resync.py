"""A boundary is found again by a chain of headers, by ids that were asked for, by packets, or it is not found."""

import struct
from itertools import combinations

import pytest

from tests.decode.connection.conversations import (
    API_VERSIONS,
    AUTHENTICATE,
    FETCH,
    HANDSHAKE,
    METADATA,
    exchange_rows,
    follow,
    only,
    produce,
    request,
    response,
    stepwise,
)
from tests.depth import some
from tests.traffic import Talk
from wirecheck.decode.connection.follower import Limits

USUAL = Limits()


def requests(results):
    return [row[2][3] for row in exchange_rows(results) if row[2]]


def asks(numbers, size=47, **options):
    return b"".join(request(FETCH, 12, number, bytes(size), **options) for number in numbers)


def answers(numbers, size=53):
    return b"".join(response(number, bytes(size)) for number in numbers)


def middle(*, mss=100, skip=5, said=(), **options):
    """A capture that begins in the middle of a connection, packets not at the messages' ends."""
    talk = Talk(mss=mss, **options)
    for from_client, data in said:
        talk.request(data) if from_client else talk.response(data)
    return talk.segments[skip:]


@pytest.mark.parametrize("mss", [100, 37, 1448])
@pytest.mark.parametrize("way", [follow, stepwise])
def test_requests_that_begin_within_packets_are_found_by_their_chain(mss, way):
    frames = middle(mss=mss, skip=1, said=[(True, asks(range(100, 160)))])
    found = requests(way(frames))
    assert found == list(range(found[0], 160))
    assert found[0] <= 100 + mss // 60 + 2


def test_requests_without_client_id_are_not_believed_on_their_own():
    results = follow(middle(skip=1, said=[(True, asks(range(100, 160), client=None))]))
    assert requests(results) == []
    assert only(results).protocol == "undecided"


def test_a_chain_of_another_client_is_no_chain():
    """Of two requests in a row from different clients neither proves the other."""
    data = b"".join(request(FETCH, 12, n, bytes(47), client=f"client-{n}") for n in range(100, 160))
    assert requests(follow(middle(skip=1, said=[(True, data)]))) == []


def test_ids_that_go_back_are_no_chain():
    assert requests(follow(middle(skip=1, said=[(True, asks(range(160, 100, -1)))]))) == []


def test_a_request_that_ends_the_capture_is_trusted_if_it_ends_where_the_bytes_do():
    one = bytes(33) + asks([7])
    results = follow(middle(skip=0, mss=1448, said=[(True, one)]))
    assert requests(results) == [7]
    assert requests(follow(middle(skip=0, mss=1448, said=[(True, one + b"\0")]))) == []


def test_answers_that_begin_within_packets_are_found_by_the_ids_that_were_asked():
    numbers = range(70_000, 70_040)
    frames = middle(skip=1, said=[(True, asks(numbers)), (False, bytes(30) + answers(numbers))])
    for way in (follow, stepwise):
        pairs = [(row[2][3], row[3][3]) for row in exchange_rows(way(frames)) if row[2] and row[3]]
        assert len(pairs) > 30
        assert all(asked == answer for asked, answer in pairs)


@pytest.mark.parametrize("first", [1, 70_000])
def test_answers_are_found_again_after_more_of_them_were_lost_than_a_client_usually_waits_for(first):
    numbers = range(first, first + 400)
    talk = Talk().open()
    for number in numbers:
        talk.request(asks([number])).response(answers([number]))
    answered = [frame for frame in talk.segments if frame.src == talk.server and frame.payload]
    lost = {id(frame) for frame in answered[20:320]}
    frames = [frame for frame in talk.segments if id(frame) not in lost]
    for way in (follow, stepwise):
        pairs = [(row[2][3], row[3][3]) for row in exchange_rows(way(frames)) if row[2] and row[3]]
        assert pairs == [(number, number) for number in [*numbers[:20], *numbers[320:]]]


@pytest.mark.parametrize("way", [follow, stepwise])
def test_answers_of_a_connection_joined_midway_are_found_though_its_last_request_was_lost(way):
    """Which ID it had is never known, so nothing is waited for any more at the connection's end."""
    talk = Talk(mss=1448)
    for n in range(9, 40):
        talk.request(asks([n])).response(answers([n], size=8 + n % 3))
    frames = [frame for frame in talk.close().segments if frame.payload != asks([39])]
    pairs = [(row[2][3], row[3][3]) for row in exchange_rows(way(frames)) if row[2] and row[3]]
    assert pairs == [(n, n) for n in range(9, 39)]


def test_small_ids_everywhere_are_not_answers():
    """Every four bytes of the body look like an id that was asked for; nothing wrong may come of it."""
    body = struct.pack(">ii", 20, 3) * 200
    numbers = range(1, 30)
    said = [(True, asks(numbers)), (False, bytes(7)), (False, body), (False, answers(numbers))]
    results = follow(middle(skip=0, said=said))
    assert {row[3][4] for row in exchange_rows(results) if row[2] and row[3]} <= {57}


def test_where_no_answer_is_due_none_is_looked_for():
    """What nobody asked for has no size: the boundary is lost, and who asks later is not blamed."""
    talk = Talk().open().request(request(METADATA, 1, 1)).response(response(1))
    results = stepwise(talk.response(bytes(40)).request(asks([2])).response(bytes(40)).segments)
    assert [row[0] for row in exchange_rows(results)] == ["answered", "response-unseen"]


def test_more_candidates_than_are_kept_cost_no_message():
    """Records full of request headers of one client; the requests around them are the connection's own."""
    inner = b"".join(request(FETCH, 12, 5, bytes(4000 + i))[:40] for i in range(60))
    data = b"".join(produce(n, size=0)[:-1] for n in (1,)) + inner + asks(range(200, 230))
    results = follow(middle(skip=0, said=[(True, data[5:])]))
    assert [n for n in requests(results) if n >= 200] == list(range(requests(results)[0], 230))


def test_a_connection_without_any_sign_of_kafka_is_given_up():
    limits = Limits(give_up_bytes=10_000, search_bytes=4_000)
    noise = bytes(range(1, 256)) * 100
    results = follow(middle(skip=0, said=[(True, noise)]), limits)
    assert (only(results).protocol, requests(results)) == ("other", [])


@pytest.mark.parametrize("limits", [Limits(search_bytes=2_000), Limits(search_pieces=20)])
def test_what_a_search_holds_is_bounded(limits):
    noise = bytes(range(1, 256)) * 40
    results = follow(middle(skip=0, said=[(True, noise), (True, asks(range(100, 130)))]), limits)
    assert only(results).skipped_bytes >= len(noise) - 100
    assert requests(results) == list(range(requests(results)[0], 130))


def test_a_boundary_lost_in_both_directions_is_found_in_both():
    talk = Talk(mss=100).open().request(request(METADATA, 1, 1)).response(response(1))
    for first in range(70_000, 70_100, 10):
        talk.request(asks(range(first, first + 10))).response(answers(range(first, first + 10)))
    frames = [frame for i, frame in enumerate(talk.segments) if i not in {20, 21, 29, 30}]
    results = follow(frames)
    assert requests(results)[-30:] == list(range(70_070, 70_100))
    assert sum(row[0] == "answered" for row in exchange_rows(results)) > 60
    assert only(results).resynchronised >= 2


def test_a_busy_connection_with_losses_is_answered_to_its_end():
    """Answers to lost requests must not pile up among those that are compared, nor unanswered requests after them."""
    talk = Talk().open()
    for number in range(70_000, 71_200):
        talk.request(request(FETCH, 12, number, bytes(10), client="c")).response(response(number, bytes(200)))
    full = [frame for frame in talk.segments if frame.payload]
    lost = {id(frame) for i, frame in enumerate(full) if i % 100 in {40, 61}}
    frames = [frame for frame in talk.segments if id(frame) not in lost]
    pairs = [row for row in exchange_rows(follow(frames)) if row[0] == "answered"]
    assert len(pairs) >= 1200 - len(lost) - 3


SLOWLY = 6 * 10**9  # a packet later, nobody waits any more for what came before the first one
NOISE = b"\xee"


@pytest.mark.parametrize("way", [follow, stepwise])
def test_a_request_too_long_to_hold_is_skipped_and_those_behind_it_are_read(way):
    big = request(FETCH, 12, 100, bytes(6000))
    frames = middle(skip=0, mss=500, said=[(True, NOISE * 33 + big + asks(range(101, 130)))], step_ns=SLOWLY)
    results = way(frames, Limits(search_bytes=2000))
    assert requests(results) == list(range(101, 130))
    assert only(results).skipped_bytes == 33 + len(big)


@pytest.mark.parametrize("way", [follow, stepwise])
def test_what_stands_at_the_end_of_a_request_is_not_looked_for_where_it_was_given_up(way):
    """The request and five bytes of the next one are in a packet too large to hold."""
    first = request(FETCH, 12, 100, bytes(1143 - 23))
    data = NOISE * (1448 + 300) + first + asks(range(101, 160))
    assert len(first) == 1143
    frames = middle(skip=0, mss=1448, said=[(True, data)], step_ns=SLOWLY)
    results = way(frames, Limits(search_bytes=1000))
    found = requests(results)
    assert found == list(range(102, 160))


def test_a_request_whose_follower_was_left_out_proves_nothing():
    frames = middle(skip=1, said=[(True, asks(range(100, 160)))])
    assert requests(follow(frames)) == list(range(102, 160))
    assert requests(follow(frames, left_out={1: [(16, 20)]})) == list(range(104, 160))


def answering(pad, between=b""):
    """Requests, and their answers behind some noise: one answer, what is between, and the rest."""
    numbers = range(70_000, 70_040)
    data = NOISE * pad + answers(numbers[:3]) + between + answers(numbers[3:])
    return middle(skip=1, said=[(True, asks(numbers)), (False, data)])


def paired(results):
    return [row[3][3] for row in exchange_rows(results) if row[0] == "answered"]


@pytest.mark.parametrize("way", [follow, stepwise])
@pytest.mark.parametrize("pad", [13, 17, 30])
def test_an_answer_is_believed_when_the_next_one_is_all_there(pad, way):
    """With a pad of 13, a packet ends four bytes behind the first answer to a request that was seen."""
    assert paired(way(answering(pad))) == list(range(70_002, 70_040))


def test_an_answer_whose_follower_was_left_out_proves_nothing():
    frames = answering(30)
    at = next(i for i, frame in enumerate(frames) if frame.src[1] == 9092) + 2
    assert paired(follow(frames, left_out={at: [(15, 4)]})) == list(range(70_004, 70_040))


@pytest.mark.parametrize("between", [NOISE * 9, struct.pack(">ii", 3, 70_003), struct.pack(">ii", 2**31 - 1, 70_003)])
def test_an_answer_before_what_cannot_be_one_proves_nothing(between):
    assert paired(follow(answering(30, between))) == list(range(70_003, 70_040))


@pytest.mark.parametrize("way", [follow, stepwise])
def test_requests_within_a_request_that_is_not_over_yet_wait_for_its_end(way):
    """What a client wrote into records: its chain is whole long before the request around it is."""
    inner = asks(range(6), client="inner")
    around = b"".join(request(FETCH, 12, number, NOISE * 20 + inner) for number in range(100, 104))
    frames = middle(skip=0, said=[(True, NOISE * 33 + around)], step_ns=SLOWLY)
    assert requests(way(frames)) == [100, 101, 102, 103]


@pytest.mark.parametrize("way", [follow, stepwise])
def test_a_client_known_by_its_syn_is_found_where_its_first_packets_are_lost(way):
    talk = Talk(mss=100).open()
    talk.step_ns = SLOWLY
    talk.request(asks(range(100, 160)))
    frames = [frame for i, frame in enumerate(talk.segments) if i not in {3, 4}]
    results = way(frames)
    assert requests(results) == list(range(103, 160))
    assert (only(results).role_by, only(results).unseen_request_bytes) == ("syn", 200)


def test_a_search_that_looks_again_finds_what_it_found_once():
    """More requests come while an answer is on its way: where it may begin is noted once."""
    talk = Talk(mss=500).open().request(request(METADATA, 1, 1)).response(response(1))
    talk.request(asks([70_001])).response(struct.pack(">i", -1) + NOISE * 40)
    body = NOISE * 1300
    long = response(70_001, body)
    talk.response(NOISE * 7 + long[:900])
    for number in (70_002, 70_003, 70_004):
        talk.request(asks([number]))
    talk.response(long[900:] + answers([70_002])).response(answers([70_003, 70_004]))
    results = stepwise(talk.segments)
    assert paired(results) == [1, 70_001, 70_002, 70_003, 70_004]


@pytest.mark.parametrize("way", [follow, stepwise])
def test_an_id_from_elsewhere_among_those_asked_hides_no_answer(way):
    """A client that signs in again counts on from another number meanwhile."""
    again = 2_147_483_640
    data = asks(range(70_000, 70_010)) + request(AUTHENTICATE, 2, again, b"\x05abcd") + asks(range(70_010, 70_030))
    back = answers(range(70_000, 70_010)) + answers([again]) + answers(range(70_010, 70_030))
    frames = middle(skip=1, said=[(True, data), (False, NOISE * 30 + back)])
    assert paired(way(frames)) == [*range(70_002, 70_030), again]


@pytest.mark.parametrize("way", [follow, stepwise])
@pytest.mark.parametrize("count", [6, 40])
def test_however_many_requests_are_within_one_that_is_not_over_they_wait_for_its_end(way, count):
    """A topic that carries captured Kafka: more requests in one record batch than candidates are kept."""
    inner = asks(range(count), client="inner")
    around = b"".join(request(FETCH, 12, number, NOISE * 20 + inner) for number in range(100, 104))
    frames = middle(skip=0, said=[(True, NOISE * 33 + around)], step_ns=SLOWLY)
    assert requests(way(frames)) == [100, 101, 102, 103]


@pytest.mark.parametrize("way", [follow, stepwise])
@pytest.mark.parametrize(("client", "between"), [("inner", b""), ("inner", NOISE), ("client", NOISE)])
def test_requests_within_one_whose_beginning_was_lost_are_not_the_connections(way, client, between):
    """Neither those of another client, in a row, nor single ones of its own name with later ids: all are content."""
    inner = between.join(asks([number], client=client) for number in range(1000, 1040))
    talk = Talk(mss=500, step_ns=SLOWLY).open()
    for number in range(1, 20):
        talk.request(request(FETCH, 12, number, NOISE * 20 + inner, client="client")).response(answers([number]))
    begun = [i for i, frame in enumerate(talk.segments) if frame.payload and frame.src == talk.client]
    lost = begun[begun.index(next(i for i in begun if talk.segments[i].payload[8:12] == struct.pack(">i", 9)))]
    frames = [frame for i, frame in enumerate(talk.segments) if i != lost]
    assert requests(way(frames)) == [number for number in range(1, 20) if number != 9]


@pytest.mark.parametrize("way", [follow, stepwise])
def test_a_client_that_names_itself_late_is_found_all_the_same(way):
    """Some ask for ApiVersions before they know what they are called."""
    talk = Talk(mss=100).open().request(request(18, 0, 1, client=None)).response(response(1))
    talk.request(asks(range(2, 40), client="app"))
    frames = [frame for i, frame in enumerate(talk.segments) if i != 5]
    assert frames[4].payload
    found = requests(way(frames))
    assert found == [1, *range(found[1], 40)]
    assert found[1] <= 5


def test_answers_in_the_order_of_their_requests_follow_each_other_whatever_their_ids():
    """A client that signs in again: what it asks next has a smaller id, and is answered next."""
    again = 2_147_483_640
    data = asks([70_000, 70_001]) + request(AUTHENTICATE, 2, again, b"\x05abcd") + asks(range(70_002, 70_010))
    back = answers([again, 70_002], size=533) + answers(range(70_003, 70_010))
    frames = middle(skip=1, said=[(True, asks(range(69_990, 70_000)) + data), (False, NOISE * 30 + back)])
    assert paired(follow(frames)) == [*range(70_002, 70_010), again]


@pytest.mark.parametrize("way", [follow, stepwise])
def test_a_client_that_signs_in_again_is_found_by_its_chain_wherever_its_ids_go_on(way):
    """Java signs in with ids from 2^31 - 8 on (KIP-368), and packets do not end where messages do."""
    sign_in = request(AUTHENTICATE, 2, 2**31 - 7, bytes(9))
    frames = middle(mss=61, skip=4, said=[(True, asks(range(100, 104)) + sign_in + asks(range(104, 130)))])
    assert requests(way(frames)) == [*range(104, 130), 2**31 - 7]


@pytest.mark.parametrize("way", [follow, stepwise])
@pytest.mark.parametrize("tag", [b"\xff" * 6, b"\1\xff\xff\x7f"], ids=["a number without end", "a length beyond all"])
def test_bytes_like_a_header_whose_tags_never_end_hide_nothing_behind_them(way, tag):
    like = struct.pack(">ihhih", 150_000, FETCH, 12, 77, 4) + b"abcd\1" + tag
    said = [(True, b"\xee" * 290 + like + b"\xee" * 30)]
    for number in range(100, 140):
        said += [(True, asks([number])), (False, answers([number]))]
    assert requests(way(middle(skip=1, said=said)))[-10:] == list(range(130, 140))


def signed_in_again():
    """A broker's fetcher: it signs in without a client ID, fetches under its name, signs in again."""
    talk, fetches = Talk().open(), 0

    def ask(key, version, correlation, client, body, answer):
        talk.request(request(key, version, correlation, body, client=client)).response(response(correlation, answer))

    for session in range(4):
        sasl = 2**31 - 8
        if session == 0:
            ask(API_VERSIONS, 0, sasl, None, b"", bytes(300))
            sasl += 1
        ask(HANDSHAKE, 1, sasl, None, b"\0\5PLAIN", b"\0\0\0\0\0\1\0\5PLAIN")
        ask(AUTHENTICATE, 2, sasl + 1, None, b"\x05abcd\0", bytes(14))
        for _ in range(40):
            ask(FETCH, 12, fetches, "broker-1-fetcher-0", bytes(60), bytes(90))
            fetches += 1
    return talk.segments


@pytest.fixture(scope="module")
def sasl_packets():
    """(frames, which of them are of a SASL exchange, or beside one)."""
    frames = signed_in_again()
    sasl = {i for i, f in enumerate(frames) if f.payload[4:6] in {b"\0\x11", b"\0\x24"}}
    near = {i + d for i in sasl for d in range(-2, 4)}
    return frames, sorted(i for i in near if 0 <= i < len(frames) and frames[i].payload)


def unread(frames, lost):
    """How many messages that are there are not given, when these frames are lost."""
    asked = {f.payload[8:12] for i, f in enumerate(frames) if i not in lost and f.payload and f.src[1] == 40000}
    there = sum(
        1
        for i, f in enumerate(frames)
        if i not in lost and f.payload and (f.src[1] == 40000 or f.payload[4:8] in asked)
    )
    given = sum((row[2] is not None) + (row[3] is not None) for row in exchange_rows(follow(without(frames, lost))))
    return there - given


def without(frames, lost):
    return [frame for i, frame in enumerate(frames) if i not in lost]


def test_no_packet_of_a_sasl_exchange_takes_other_messages_with_it(sasl_packets):
    frames, places = sasl_packets
    assert [i for i in places if unread(frames, {i}) > 0] == []


def test_no_pair_of_packets_of_sasl_exchanges_takes_more_than_a_few_messages_with_it(sasl_packets):
    """Two packets in a row may hide where the next message begins: what stands there once is not proof enough."""
    frames, places = sasl_packets
    assert [pair for pair in some([*combinations(places, 2)]) if unread(frames, set(pair)) > 2] == []


def looks_asked(correlation_id):
    """A response whose bytes are those of a Metadata request 9 of the client "!s"."""
    return response(METADATA << 16 | 9, struct.pack(">ih", correlation_id, 2) + b"!s\0" + bytes(40))


@pytest.mark.parametrize("before", range(4))
@pytest.mark.parametrize("following", [0, 1, 9])
@pytest.mark.parametrize(("client", "port"), [("10.0.0.1", 20_000), ("10.0.0.1", 40_000), ("10.0.0.7", 40_000)])
def test_a_response_that_looks_like_a_request_makes_no_client_of_a_server(before, following, client, port):
    talk = Talk(client=(client, port), server=("10.0.0.5", 24_102))
    for number in range(before):
        talk.response(response(number, bytes(50)))
    talk.response(looks_asked(7))
    first = METADATA << 16 | 10
    for number in range(first, first + following):
        talk.request(asks([number])).response(answers([number]))
    results = follow(talk.segments)
    named = {row[2][7] for row in exchange_rows(results) if row[2]}
    if following > 1:
        assert requests(results) == [*range(first, first + following)]
    if following > 1 or port > 24_102:  # else nothing says who is the server
        assert all(name.startswith(f"{client}:{port}>") for name in named)


def test_requests_of_one_client_decide_though_what_lies_between_was_lost():
    talk = Talk()
    for number in range(5):
        talk.request(asks([number])).response(answers([number]))
    kept = [frame for number, frame in enumerate(talk.segments) if number % 4]
    assert requests(follow(kept)) == [1, 3]
