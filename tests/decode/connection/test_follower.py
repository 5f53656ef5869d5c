"""Both directions: what is Kafka, who is the client, which response answers which request, and how it ends."""

import struct
from dataclasses import replace

import numpy as np
import pytest

from tests.decode.connection.conversations import (
    API_VERSIONS,
    AUTHENTICATE,
    FETCH,
    HANDSHAKE,
    METADATA,
    answered,
    exchange_rows,
    facts,
    only,
    opened,
    produce,
    request,
    response,
    segments,
    sized,
)
from tests.traffic import ACK, FIN, PSH, RST, Talk
from wirecheck.decode.connection.exchanges import joined
from wirecheck.decode.connection.follower import MAGIC, Follower, Limits

SECOND = 1_000_000_000

USUAL = Limits()


def follow(*talks, limits=USUAL, ports=frozenset()):
    frames = [frame for talk in talks for frame in talk.segments]
    follower = Follower(limits, ports)
    return [follower.receive(segments(frames)), follower.drain()]


def outcomes(results):
    return [row[0] for row in exchange_rows(results)]


def test_what_calls_gave_is_put_together_message_by_message():
    frames = exchanged(opened(), (1, 2)).segments
    follower = Follower()
    parts = [follower.receive(segments(frames[:5])), follower.receive(segments(frames[5:], agent="b"))]
    parts.append(follower.drain())
    whole = joined(parts)
    assert [*map(len, parts)] == [1, 2, 0]
    assert exchange_rows([whole]) == exchange_rows(parts)
    assert [whole.names[i] for i in whole.source.tolist()] == [p.names[i] for p in parts for i in p.source.tolist()]
    assert whole.connections == parts[-1].connections  # once, with its last facts
    assert set(whole.connection.tolist()) == {0}
    assert joined(parts[:1]) is parts[0]


def exchanged(talk, numbers):
    for number in numbers:
        talk.request(request(FETCH, 12, number, bytes(60))).response(response(number, bytes(30)))
    return talk


def handshake(version, mechanism=b"PLAIN", correlation_id=0, client="client-1"):
    return request(HANDSHAKE, version, correlation_id, struct.pack(">h", len(mechanism)) + mechanism, client)


@pytest.mark.parametrize("size", [40, 100_000])
def test_a_pipelined_client_is_answered_in_order(size):
    talk = opened()
    for number in (1, 2, 3):
        talk.request(produce(number, size=size))
    talk.response(b"".join(response(number) for number in (1, 2, 3)))
    assert answered(follow(talk)) == [0, 1, 2, 3]


def test_a_response_out_of_order_is_paired_by_id_and_marked():
    talk = opened().request(produce(1)).request(produce(2)).response(response(2)).response(response(1))
    results = follow(talk)
    assert [(row[2][3], row[1]) for row in exchange_rows(results)] == [(0, False), (1, False), (2, True)]
    assert only(results).out_of_order == 1


def test_repeated_correlation_ids_are_paired_by_order():
    talk = opened()
    for body in (b"one", b"two"):
        talk.request(request(AUTHENTICATE, 1, 2147483640, body)).response(response(2147483640, body))
    pairs = [(row[2][5][-3:], row[3][5][-3:]) for row in exchange_rows(follow(talk)) if row[2][1] == AUTHENTICATE]
    assert pairs == [(b"one", b"one"), (b"two", b"two")]


@pytest.mark.parametrize("version", range(14))
def test_produce_without_acks_has_no_response(version):
    talk = (
        opened().request(produce(1, acks=0, version=version)).request(produce(2, version=version)).response(response(2))
    )
    assert [(row[0], row[2][3]) for row in exchange_rows(follow(talk))] == [
        ("answered", 0),
        ("no-response-due", 1),
        ("answered", 2),
    ]


def test_a_response_nobody_asked_for_is_an_orphan_only_if_nothing_was_missed():
    assert "orphan" in outcomes(follow(opened().response(response(77))))
    talk = exchanged(opened(), range(1, 40)).response(response(77))
    talk.segments.pop(7)
    assert "orphan" not in outcomes(follow(talk))


@pytest.mark.parametrize(
    ("close", "outcome", "by"),
    [
        (lambda talk: talk.reset(), "closed-by-server", "server-rst"),
        (lambda talk: talk.reset(by_client=True), "closed-by-client", "client-rst"),
        (lambda talk: talk.close(), "closed-by-client", "client-fin"),
        (lambda talk: talk, "pending", None),
    ],
)
def test_who_closed_first_with_a_request_open(close, outcome, by):
    results = follow(close(opened().request(request(METADATA, 1, 1))))
    assert outcomes(results) == ["answered", outcome]
    assert only(results).closed_by == by


def test_a_request_whose_answer_fell_into_a_gap_is_not_blamed_on_the_server():
    talk = exchanged(opened(), range(1, 40)).request(request(FETCH, 12, 40)).response(response(40, bytes(5000))).reset()
    lost = [f for f in talk.segments if f.src == talk.server and len(f.payload) > 500]
    talk.segments = [f for f in talk.segments if f not in lost]
    assert "closed-by-server" not in outcomes(follow(talk))


def test_the_same_ports_again_are_another_connection():
    first, second = exchanged(opened(), [1]), exchanged(opened(client_seq=500_000, server_seq=77), [1])
    second.segments = [replace(frame, ts_ns=frame.ts_ns + 10**9) for frame in second.segments]
    results = follow(first, second)
    assert len(facts(results)) == 2
    assert answered(results) == [0, 0, 1, 1]


@pytest.mark.parametrize("ahead", [5_000, 1 << 30])
def test_a_handshake_that_is_refused_on_the_same_ports_acknowledges_nothing_of_the_connection_before(ahead):
    """A broker is killed, and its client tries the same port again and again: SYN, and RST with its acknowledgement."""
    talk = exchanged(opened(), [1])
    for attempt in range(1, 4):
        syn = replace(talk.segments[0], seq=talk.client_seq + attempt * ahead, ts_ns=talk.ts_ns + attempt * 10**9)
        answer = {"src": talk.server, "dst": talk.client, "seq": 0, "ack": syn.seq + 1, "flags": RST | ACK}
        talk.segments += [syn, replace(syn, **answer, ts_ns=syn.ts_ns + 10**6)]
    found = facts(follow(talk)).values()
    assert {(one.unseen_request_bytes, one.unseen_response_bytes, one.gaps) for one in found} == {(0, 0, ())}


@pytest.mark.parametrize("mss", [1, 3, 1448])
def test_raw_sasl_tokens_are_counted_and_are_no_messages(mss):
    talk = Talk(mss=mss).open().request(request(API_VERSIONS, 0, -2)).response(response(-2))
    talk.request(handshake(0, correlation_id=-1)).response(response(-1, bytes(6)))
    talk.request(sized(b"\0alice\0secret")).response(sized(b""))
    results = follow(exchanged(talk, [1, 2]))
    assert answered(results) == [-2, -1, 1, 2]
    assert (only(results).raw_frames, only(results).sasl) == (2, "PLAIN")


@pytest.mark.parametrize("mss", [9, 1448])
def test_a_long_client_id_hides_no_mechanism(mss):
    talk = Talk(mss=mss).open().request(request(API_VERSIONS, 3, 0, client="c" * 200)).response(response(0))
    talk.request(handshake(1, b"SCRAM-SHA-512", 1, client="c" * 200)).response(response(1))
    assert only(follow(talk)).sasl == "SCRAM-SHA-512"


@pytest.mark.parametrize("cut", [1, 7, 1000])
def test_messages_of_any_size_are_handed_out_byte_for_byte(cut):
    """Arrow keeps up to 12 bytes elsewhere than more of them."""
    talk, said = opened(), []
    for number in range(1, 40):
        said += [
            request(FETCH, 12, number, bytes(range(number))),
            response(number, bytes(range(100, 100 + number - 1))),
        ]
        talk.request(said[-2]).response(said[-1])
    follower = Follower()
    parts = [segments(talk.segments[at : at + cut]) for at in range(0, len(talk.segments), cut)]
    batches = [result.messages for result in [*map(follower.receive, parts), follower.drain()]]
    found = [m.data[begin:end].tobytes() for m in batches for begin, end in zip(m.at[:-1], m.at[1:], strict=True)]
    assert found[2:] == [message[4:] for message in said]


def test_a_later_handshake_ends_in_messages():
    talk = opened().request(handshake(1, b"SCRAM-SHA-512", 1)).response(response(1))
    talk.request(request(AUTHENTICATE, 2, 2, b"\x05abcd")).response(response(2))
    results = follow(talk)
    assert answered(results) == [0, 1, 2]
    assert (only(results).sasl, only(results).raw_frames) == ("SCRAM-SHA-512", 0)


def test_tls_is_recognised_from_its_first_bytes_and_in_the_middle():
    hello, data = b"\x16\x03\x01\x02\x00" + bytes(512), b"\x17\x03\x03\x00\x40" + bytes(64)
    talk = Talk().open().request(hello).response(data).request(data)
    assert only(follow(talk)).protocol == "tls"
    for _ in range(4):
        talk.response(data).request(data)
    talk.segments = talk.segments[5:]
    results = follow(talk)
    assert (only(results).protocol, exchange_rows(results)) == ("tls", [])


ZOOKEEPER = sized(struct.pack(">iqiq", 0, 0, 18000, 0) + struct.pack(">i", 16) + bytes(17))
FOREIGN = {
    "zookeeper": (ZOOKEEPER, sized(struct.pack(">iiqi", 0, 18000, 1 << 56, 16) + bytes(17))),
    "http": (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n"),
    "redis": (b"*1\r\n$4\r\nPING\r\n", b"+PONG\r\n"),
    "zeros": (bytes(600), bytes(600)),
    "huge": (struct.pack(">ihhih", 2**31 - 1, 3, 1, 1, 1) + b"xyz", b""),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_other_protocols_are_not_kafka(name):
    said, answer = FOREIGN[name]
    results = follow(Talk().open().request(said).response(answer))
    assert (only(results).protocol, exchange_rows(results)) == ("other", [])


def test_an_unknown_api_in_the_middle_of_a_connection_is_a_message():
    talk = (
        opened().request(request(501, 0, 1)).response(response(1)).request(request(FETCH, 99, 2)).response(response(2))
    )
    assert [(row[2][1], row[2][2]) for row in exchange_rows(follow(talk))] == [(API_VERSIONS, 3), (501, 0), (FETCH, 99)]


@pytest.mark.parametrize("skip", range(5, 40, 3))
def test_a_capture_that_begins_in_the_middle_finds_messages_and_roles(skip):
    talk = exchanged(opened(mss=33), range(1, 40))
    talk.segments = talk.segments[skip:]
    results = follow(talk)
    assert (only(results).role_by, only(results).from_start) == ("content", False)
    assert only(results).client == talk.client
    assert set(answered(results)) >= set(range(skip // 4 + 1, 40))


def test_a_boundary_lost_in_a_gap_is_found_again_in_both_directions():
    talk = exchanged(opened(mss=33), range(1, 60))
    lost = [f for f in talk.segments[20:26] if f.payload]
    talk.segments = [f for f in talk.segments if f not in lost]
    results = follow(talk)
    assert set(answered(results)) >= set(range(1, 60)) - set(range(2, 7))
    assert only(results).resynchronised >= 1


def test_kafka_inside_of_records_is_not_taken_for_the_connection_itself():
    inner = b"".join(request(FETCH, 12, number, bytes(80), "inner") for number in range(1, 30))
    talk = opened()
    for number in range(1, 12):
        talk.request(request(0, 9, number, inner)).response(response(number))
    talk.segments = talk.segments[6:]
    told_clients = {row[2][5][10:15] for row in exchange_rows(follow(talk)) if row[2]}
    assert told_clients == {b"clien"}


def test_ports_narrow_and_a_name_shows_the_client_first():
    talks = exchanged(opened(), [1]), exchanged(opened(client=("fd00::2", 4), server=("fd00::1", 9093)), [1])
    assert {c.name for c in facts(follow(*talks)).values()} == {
        "10.0.0.1:40000>10.0.0.9:9092",
        "[fd00::2]:4>[fd00::1]:9093",
    }
    assert only(follow(*talks, ports=frozenset([9093]))).server == ("fd00::1", 9093)


def test_unanswered_requests_are_bounded():
    talk = opened()
    for number in range(1, 200):
        talk.request(request(FETCH, 12, number))
    results = follow(talk, limits=Limits(waiting_messages=50))
    assert outcomes([results[0]]).count("response-unseen") == 149
    assert only(results).limits_hit == 149


def test_an_answer_to_a_request_given_up_is_nobodys_fault():
    talk = opened()
    for number in range(1, 200):
        talk.request(request(FETCH, 12, number))
    for number in range(1, 200):
        talk.response(response(number))
    said = outcomes(follow(talk, limits=Limits(waiting_messages=50)))
    assert {said.count(word) for word in ("orphan", "pending")} == {0}
    assert said.count("answered") == 51


def test_requests_that_are_never_answered_do_not_hide_the_one_that_is():
    talk = opened()
    for number in range(1, 21):
        talk.request(request(FETCH, 12, number))
    for number in range(21, 521):
        talk.request(request(FETCH, 12, number))
        talk.response(response(number))
    said = outcomes(follow(talk))
    # 501: `opened` has one; of the 20, as many stay as are compared beside the one that is due
    assert {word: said.count(word) for word in said} == {"answered": 501, "response-unseen": 13, "pending": 7}


def test_too_many_connections_are_refused_and_counted():
    talks = [opened(client=("10.0.0.1", 1000 + i)) for i in range(5)]
    results = follow(*talks, limits=Limits(connections=3))
    assert len(facts(results)) == 3
    assert results[-1].refused_connections > 0


def test_an_idle_connection_is_let_go_by_capture_time():
    talk = exchanged(opened(), [1]).request(request(FETCH, 12, 2))
    follower = Follower()
    follower.receive(segments(talk.segments))
    result = follower.advance("a", talk.ts_ns + 1201 * 10**9)
    assert [row[0] for row in exchange_rows([result])] == ["pending"]
    follower.advance("a", talk.ts_ns + 1300 * 10**9)
    assert len(follower.decided()) == 0


def test_many_short_connections_leave_nothing_behind():
    follower, sizes = Follower(), []
    for block in range(20):
        frames = []
        for number in range(30):
            talk = opened(client=("10.1.0.1", 1024 + block * 30 + number), step_ns=1000)
            talk.ts_ns += 0
            frames += [replace(f, ts_ns=f.ts_ns + block * 20 * 10**9) for f in talk.close().segments]
        follower.receive(segments(frames))
        follower.advance("a", frames[-1].ts_ns + 15 * 10**9)
        sizes.append(len(follower.snapshot()))
    assert max(sizes) <= sizes[0] + len(str(20 * 30))  # digits of the newest connection's number


def test_a_message_of_many_calls_is_one_message():
    body = bytes(range(256)) * 4000
    talk = opened().request(request(FETCH, 12, 1, body)).response(response(1))
    follower, results = Follower(), []
    results += [follower.receive(segments([frame])) for frame in talk.segments]
    row = next(row for row in exchange_rows(results) if row[2][3] == 1)
    assert row[2][5].endswith(body)


def test_two_agents_on_loopback_see_two_connections():
    frames = exchanged(opened(client=("127.0.0.1", 5), server=("127.0.0.1", 9092)), [1]).segments
    follower = Follower()
    results = [follower.receive(segments(frames, agent)) for agent in ("a", "b")]
    assert answered(results) == [0, 0, 1, 1]


def test_a_half_closed_connection_is_still_answered():
    talk = opened().request(request(FETCH, 12, 1))
    talk._say(True, FIN | ACK)
    talk.response(response(1))
    talk._say(False, FIN | ACK)
    assert answered(follow(talk)) == [0, 1]


def test_a_half_closed_connection_is_answered_as_long_as_the_other_side_may():
    """A long poll whose client sends FIN meanwhile; then the broker says FIN, and late packets get linger_ns."""
    talk = opened().request(request(FETCH, 12, 1))
    talk._say(True, FIN | ACK)
    talk.ts_ns += 27 * SECOND
    talk.response(response(1))
    talk.ts_ns += 27 * SECOND
    talk._say(False, FIN | ACK)
    for follower in (Follower(), Follower(Limits(idle_ns=20 * SECOND))):
        results = [follower.receive(segments([frame])) for frame in talk.segments]
        patient = follower.limits.idle_ns > 27 * SECOND
        assert answered(results) == ([0, 1] if patient else [0])


@pytest.mark.parametrize(("seen", "over"), [(True, False), (False, True)])
def test_a_side_that_was_never_seen_holds_no_closed_connection_open(seen, over):
    talk = opened().request(request(FETCH, 12, 1))
    talk._say(True, FIN | ACK)
    follower = Follower()
    follower.receive(segments([frame for frame in talk.segments if seen or frame.src == talk.client]))
    results = [follower.advance("a", talk.ts_ns + 11 * SECOND)]
    assert bool(exchange_rows(results)) == over


def test_state_of_another_version_is_refused():
    blob = Follower().snapshot()
    assert blob.startswith(MAGIC)
    for head in (b"wirecheck follower 6 ", b"wirecheck connections 1 ", b"something else\n"):
        with pytest.raises(ValueError, match=r"^the checkpoint holds no connections of state version 8$"):
            Follower.restore(head + blob.removeprefix(MAGIC))


def test_what_was_stored_goes_on():
    talk = exchanged(opened(mss=9), range(1, 4))
    half = len(talk.segments) // 2
    follower = Follower()
    results = [follower.receive(segments(talk.segments[:half]))]
    follower = Follower.restore(follower.snapshot())
    results += [follower.receive(segments(talk.segments[half:])), follower.drain()]
    assert answered(results) == [0, 1, 2, 3]


def test_a_response_that_overtook_its_request_in_the_capture_waits_for_it():
    talk = opened().request(request(FETCH, 12, 1, bytes(10))).response(response(1))
    asked = next(i for i, f in enumerate(talk.segments) if f.payload[8:12] == struct.pack(">i", 1))
    talk.segments.insert(asked + 1, talk.segments.pop(asked))
    assert answered(follow(talk)) == [0, 1]
    assert talk.segments[asked + 1].flags == PSH | ACK


def tls_records(count, size=4000):
    talk = Talk(client=("10.0.0.7", 50000), server=("10.0.0.9", 9093))
    talk.ts_ns += 17
    for number in range(count):
        record = b"\x17\x03\x03" + size.to_bytes(2, "big") + np.random.default_rng(number).bytes(size)
        (talk.request if number % 2 else talk.response)(record)
    return talk


@pytest.mark.parametrize("trimmed", [False, True])
def test_tls_joined_mid_stream_is_recognised_in_records_of_many_segments_and_by_what_trimming_keeps(trimmed):
    frames = tls_records(8, 16_000).segments[2:]
    left_out = {i: [(5, len(f.payload) - 5)] for i, f in enumerate(frames)} if trimmed else None
    follower = Follower()
    results = [follower.receive(segments(frames, left_out=left_out)), follower.drain()]
    assert only(results).protocol == "tls"


def gss(size):
    return sized(b"\x60\x82" + (size - 4).to_bytes(2, "big") + bytes(size - 4))


def test_kerberos_tokens_of_0_9_clients_are_no_messages_and_what_follows_is_kafka():
    talk = Talk().open().request(gss(600)).response(gss(150)).request(sized(b""))
    talk.response(sized(b"\x05\x04\x05\xff" + bytes(28))).request(sized(b"\x05\x04\x00\xff" + bytes(40)))
    for number in range(3):
        talk.request(request(METADATA, 0, number, bytes(4))).response(response(number, bytes(30)))
    results = follow(talk)
    assert answered(results) == [0, 1, 2]
    connection = only(results)
    assert (connection.protocol, connection.sasl, connection.raw_frames) == ("kafka", "GSSAPI", 5)


def test_a_protocol_that_begins_like_kerberos_and_never_speaks_kafka_is_not_kafka():
    talk = Talk().open().request(gss(600))
    for _ in range(40):
        talk.request(sized(bytes(50))).response(sized(bytes(50)))
    results = follow(talk)
    assert only(results).protocol != "kafka"
    assert exchange_rows(results) == []


def test_what_was_handed_out_stays_as_it_was():
    """The follower uses its memory again in the next call: one message a call, and a call after it."""
    follower = Follower()
    talk = opened().request(request(FETCH, 12, 1)).response(response(1, b"first"))
    results = [follower.receive(segments([frame])) for frame in talk.segments]
    before = [exchange_rows([result]) for result in results]
    follower.receive(segments(opened(client=("10.0.0.3", 5)).segments))
    assert [exchange_rows([result]) for result in results] == before
