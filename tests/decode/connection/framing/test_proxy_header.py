"""A PROXY header before a connection's first message: read once, at its beginning, and never a reason to lose one."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import proxy_headers
from tests.decode.connection.conversations import (
    API_VERSIONS,
    METADATA,
    answered,
    exchange_rows,
    follow,
    only,
    request,
    response,
    segments,
)
from tests.traffic import Talk
from wirecheck.decode.connection.follower import Follower
from wirecheck.decode.connection.framing.opening import MORE, NO_HEADER, proxy_header
from wirecheck.decode.peer import Peer

EVERY = proxy_headers.NAMELESS | {name: header for name, (header, _) in proxy_headers.NAMING.items()}
TLS_RECORD = b"\x16\x03\x01\x00\xc8" + bytes(200)


def talked(header: bytes, **options) -> Talk:
    talk = Talk(**options).open().request(header + request(API_VERSIONS, 3, 0)).response(response(0))
    for number in (1, 2, 3):
        talk.request(request(METADATA, 9, number, bytes(9))).response(response(number, bytes(20)))
    return talk.close()


def restored(frames):
    """One frame a call, and the follower stored and restored between."""
    follower, results = Follower(), []
    for frame in frames:
        results.append(follower.receive(segments([frame])))
        follower = Follower.restore(follower.snapshot())
    return [*results, follower.drain()]


@pytest.mark.parametrize("name", proxy_headers.NAMING)
@pytest.mark.parametrize("way", [follow, restored])
def test_the_connection_is_read_and_the_client_it_names_is_a_fact(name, way):
    header, host = proxy_headers.NAMING[name]
    results = way(talked(header).segments)
    assert answered(results) == [0, 1, 2, 3]
    connection = only(results)
    assert (connection.proxied_for, connection.protocol) == (Peer(host, 51234), "kafka")
    assert (connection.client, connection.skipped_bytes) == (Peer("10.0.0.1", 40000), 0)


@pytest.mark.parametrize("name", proxy_headers.NAMELESS)
def test_a_header_that_names_nobody_is_passed_over(name):
    results = follow(talked(proxy_headers.NAMELESS[name]).segments)
    assert (answered(results), only(results).proxied_for) == ([0, 1, 2, 3], None)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("mss", [1, 5, 13, 17])
def test_a_header_in_several_segments_is_one(name, mss):
    if len(EVERY[name]) > 1000 and mss < 13:
        mss = 101
    assert answered(follow(talked(EVERY[name], mss=mss).segments)) == [0, 1, 2, 3]


@pytest.mark.parametrize("name", EVERY)
def test_segments_in_another_order_or_twice_change_nothing(name):
    frames = talked(EVERY[name], mss=40).segments
    shaken = frames[:3] + sorted(frames[3:8], key=lambda frame: -frame.seq) + frames[4:]
    assert exchange_rows(follow(shaken), packets=False) == exchange_rows(follow(frames), packets=False)


@pytest.mark.parametrize("name", proxy_headers.INVALID)
def test_what_no_receiver_takes_is_no_header(name):
    results = follow(talked(proxy_headers.INVALID[name]).segments)
    assert only(results).proxied_for is None
    assert (only(results).protocol, exchange_rows(results)) == ("other", [])


@pytest.mark.parametrize("name", EVERY)
def test_a_header_in_the_middle_is_none(name):
    """It names nobody, and the connection is found again behind it."""
    talk = Talk().open().request(request(API_VERSIONS, 3, 0)).response(response(0)).request(EVERY[name])
    for number in range(1, 6):
        talk.request(request(METADATA, 9, number, bytes(9))).response(response(number, bytes(20)))
    results = follow(talk.close().segments)
    assert only(results).proxied_for is None
    assert answered(results)[-1] == 5


def test_a_second_header_is_none():
    results = follow(talked(proxy_headers.v1() + proxy_headers.v1(6)).segments)
    assert (only(results).protocol, exchange_rows(results)) == ("other", [])


def test_a_servers_first_bytes_are_no_header():
    talk = Talk().open().request(request(API_VERSIONS, 3, 0)).response(proxy_headers.v2() + response(0))
    results = follow(talk.close().segments)
    assert (only(results).proxied_for, answered(results)) == (None, [])


@pytest.mark.parametrize("name", EVERY)
def test_tls_behind_a_header_is_tls(name):
    talk = Talk().open().request(EVERY[name] + TLS_RECORD).response(TLS_RECORD)
    assert only(follow(talk.close().segments)).protocol == "tls"


def test_a_header_of_which_a_part_was_lost_costs_the_header():
    talk = talked(proxy_headers.v2(6), mss=20)
    results = follow([frame for i, frame in enumerate(talk.segments) if i != 4])
    assert (only(results).proxied_for, answered(results)[-1]) == (None, 3)


@pytest.mark.parametrize("name", ["v2 with TLVs", "v2 IPv6 with many TLVs"])
def test_what_a_proxy_adds_need_not_be_there(name):
    """It is redacted by agents."""
    header, host = proxy_headers.NAMING[name]
    shown = 28 if ":" not in host else 52
    talk = talked(header, mss=16384)
    results = follow(talk.segments, left_out={3: [(shown, len(header) - shown)]})
    assert (answered(results), only(results).proxied_for.host) == ([0, 1, 2, 3], host)


@given(st.sampled_from(sorted(EVERY)), st.integers(0, 120))
def test_a_header_that_is_cut_is_waited_for(name, length):
    header = EVERY[name]
    found = proxy_header(header[:length]).length
    assert found in {len(header), MORE}
    assert proxy_header(header + b"\0\0\0\x20").length == len(header)


@given(st.binary(max_size=140), st.sampled_from([b"", b"PROXY ", b"PROXY TCP4 ", proxy_headers.SIGNATURE]))
def test_any_bytes_are_a_header_none_or_the_beginning_of_one(data, front):
    found = proxy_header(front + data)
    assert found.length in {MORE, NO_HEADER} or 0 < found.shown <= min(found.length, len(front + data))
    assert len(found.host) in {0, 4, 16}


@pytest.mark.parametrize("seed", range(60))
def test_damaged_headers_raise_nothing_and_cost_no_other_connection(seed):
    chance = random.Random(seed)
    header = bytearray(EVERY[chance.choice(sorted(EVERY))][:400])
    for _ in range(chance.randrange(1, 5)):
        header[chance.randrange(len(header))] = chance.randrange(256)
    damaged = talked(bytes(header[: chance.randrange(1, len(header) + 1)]), mss=chance.choice([1, 7, 60, 1448]))
    good = talked(proxy_headers.v2(), client=("10.0.0.2", 40001))
    results = follow(sorted(damaged.segments + good.segments, key=lambda frame: frame.ts_ns))
    assert [row[2][3] for row in exchange_rows(results) if row[0] == "answered" and "10.0.0.2" in row[2][7]] == [
        0,
        1,
        2,
        3,
    ]
