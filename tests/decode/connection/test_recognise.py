"""What the first bytes of a message say: a request header or not, acks, TLS, SASL mechanisms."""

import struct

import pytest

from tests.build import uvarint
from tests.decode.connection.conversations import (
    API_VERSIONS,
    AUTHENTICATE,
    FETCH,
    HANDSHAKE,
    METADATA,
    PRODUCE,
    produce,
    request,
    sized,
)
from wirecheck.decode.connection.framing import recognise
from wirecheck.decode.connection.framing.recognise import DOUBT, NO, NOT_SEEN, STRONG, WAIT, WEAK
from wirecheck.decode.wire import known

KNOWN = recognise.Known(*known().T.tolist())
LARGEST = 1 << 28
CONTROLLED_SHUTDOWN = 7


def header(data, have=None):
    return recognise.request_header(KNOWN, data[:have], LARGEST)


def raw(size, key, version, client_length=1, rest=b"cccccccc"):
    return struct.pack(">ihhih", size, key, version, 7, client_length) + rest


@pytest.mark.parametrize(
    ("data", "verdict"),
    [
        (request(FETCH, 11, 1), STRONG),
        (request(FETCH, 12, 1), STRONG),
        (request(FETCH, 11, 1, client=None), WEAK),
        (request(FETCH, 11, 1, client=""), WEAK),
        (raw(7, FETCH, 11), NO),
        (raw(LARGEST + 1, FETCH, 11), NO),
        (raw(60, -1, 11), NO),
        (raw(60, len(known()), 0), NO),
        (raw(60, FETCH, 99), NO),
        (raw(60, FETCH, -1), NO),
        (raw(60, FETCH, 11, -2), NO),
        (raw(60, FETCH, 11, 256), NO),
        (raw(12, FETCH, 11, 3), NO),
        (request(FETCH, 11, 1, client="a\nb"), NO),
        (request(FETCH, 11, 1, client="a\x7fb"), NO),
        (sized(struct.pack(">hhih", FETCH, 12, 1, 1) + b"c"), NO),
        (request(FETCH, 12, 1)[:-1] + b"\x09", NO),
        (sized(struct.pack(">hhii", CONTROLLED_SHUTDOWN, 0, 1, 3)), WEAK),
        (raw(20, CONTROLLED_SHUTDOWN, 0), NO),
    ],
)
def test_what_a_client_would_send_is_told_from_what_none_sends(data, verdict):
    assert header(data)[0] == verdict


def taken(data, have=None):
    return recognise.taken_request(KNOWN, data[:have], LARGEST)


def tagged(count, key=FETCH, version=12):
    tags = b"".join(struct.pack("BB", number, 1) + b"v" for number in range(count))
    return sized(struct.pack(">hhih", key, version, 1, 1) + b"c" + bytes([count]) + tags + b"body")


@pytest.mark.parametrize(
    ("data", "verdict"),
    [
        (request(FETCH, 11, 1), STRONG),
        (request(FETCH, 11, 1, client="a\nb"), DOUBT),
        (request(FETCH, 12, 1, client="\x7f"), DOUBT),
        (request(FETCH, 11, 1, client="c" * 300), DOUBT),
        (tagged(40), DOUBT),
        (sized(struct.pack(">hhih", FETCH, 12, 1, 1) + b"c\x09"), DOUBT),
        (request(API_VERSIONS, 99, 1), DOUBT),
        (request(API_VERSIONS, 201, 1), NO),
        (raw(60, FETCH, 99), NO),
        (raw(60, FETCH, -1), NO),
        (raw(60, FETCH, 11, -2), NO),
        (raw(12, FETCH, 11, 3), NO),
        (raw(7, FETCH, 11), NO),
        (raw(60, -1, 11), NO),
        (raw(20, CONTROLLED_SHUTDOWN, 0), NO),
        (struct.pack(">ihhi", 60, API_VERSIONS, 99, 1), WAIT),
        (request(FETCH, 11, 1, client="c" * 300)[:200], WAIT),
    ],
)
def test_what_a_server_would_take_is_told_from_what_none_does(data, verdict):
    assert taken(data)[0] == verdict


def test_a_client_is_the_same_whichever_way_it_is_read():
    plain, odd = request(FETCH, 11, 1, client="a\nb"), request(METADATA, 1, 9, client="a\nb")
    assert taken(plain)[2] == taken(odd)[2] != taken(request(FETCH, 11, 1, client="a\nc"))[2]
    assert taken(request(FETCH, 11, 1))[2] == header(request(FETCH, 11, 1))[2]


@pytest.mark.parametrize("count", [1, 8, 9, 40])
def test_a_header_ends_behind_its_tags(count):
    data = tagged(count)
    assert data[taken(data)[1] :] == b"body"
    assert taken(data, 17)[1] > 17


def with_tag(length, claimed=None):
    """A header with one tag of this length, which says that it is longer or shorter."""
    head = struct.pack(">hhih", FETCH, 12, 1, 1) + b"c\x01\xff\x01"
    return sized(head + uvarint(length if claimed is None else claimed) + bytes(length) + b"body")


@pytest.mark.parametrize("length", [0, 127, 128, 900])
def test_a_tag_has_its_length_in_front(length):
    """Which takes one byte for every 7 bits (KIP-482)."""
    data = with_tag(length)
    verdict, end, _ = header(data)
    assert (verdict, data[end:]) == (STRONG, b"body")
    assert header(data, end - 1)[0] == WAIT


@pytest.mark.parametrize("data", [with_tag(9, 14), with_tag(20_000), with_tag(2000, 1 << 34), with_tag(2000, 1 << 42)])
def test_tags_that_end_behind_their_message_or_farther_than_any_header_are_no_clients(data):
    """Nobody waits for their end, which may never come."""
    assert (header(data)[0], taken(data)[0]) == (NO, DOUBT)
    assert header(data, 19)[0] == WAIT


@pytest.mark.parametrize("have", [0, 3, 11, 12, 13, 14, 20])
def test_a_header_that_is_cut_off_waits_for_more(have):
    verdict, wanted, _ = header(request(FETCH, 12, 1, client="client-of-some-length"), have)
    assert verdict == WAIT
    assert wanted > have


def test_a_header_has_a_length_and_its_client_a_number():
    plain, flexible = header(request(FETCH, 11, 1)), header(request(FETCH, 12, 2))
    assert (plain[1], flexible[1]) == (14 + len("client-1"), 15 + len("client-1"))
    assert plain[2] == flexible[2] != header(request(FETCH, 11, 1, client="client-2"))[2]


def acks(data, have=None):
    header_length = header(request(PRODUCE, data[7], 1))[1]
    return recognise.produce_acks(KNOWN, data[:have], header_length)


@pytest.mark.parametrize("version", range(14))
@pytest.mark.parametrize("said", [-1, 0, 1])
def test_acks_of_every_version_are_found(version, said):
    assert acks(produce(1, said, version=version)) == (said, 1)


@pytest.mark.parametrize("version", [0, 3, 9])
def test_acks_behind_the_bytes_that_are_there_are_not_seen(version):
    length = header(request(PRODUCE, version, 1))[1]
    assert acks(produce(1, version=version), length) == (NOT_SEEN, NOT_SEEN)
    behind = length + (0 if version < 3 else 1 if version >= 9 else 2)
    assert acks(produce(1, version=version), behind + 1) == (NOT_SEEN, NOT_SEEN)
    assert acks(produce(1, version=version), behind + 2) == (-1, NOT_SEEN)


def test_a_timeout_below_zero_is_no_produce_request():
    assert acks(request(PRODUCE, 0, 1, struct.pack(">hii", 1, -5, 1))) == (1, -1)


def test_a_transaction_in_front_of_acks_is_stepped_over():
    name = b"t" * 200
    body = b"\xc9\x01" + name + struct.pack(">hi", 1, 1000) + b"\x02" + bytes(8)
    assert acks(request(PRODUCE, 9, 1, body)) == (1, 1)
    assert acks(request(PRODUCE, 3, 1, struct.pack(">h", 200) + name + struct.pack(">hii", 0, 1000, 4))) == (0, 4)
    assert acks(request(PRODUCE, 9, 1, b"\xff\xff\xff\xff\xff\xff")) == (NOT_SEEN, NOT_SEEN)


def test_more_than_127_topics_are_some():
    assert acks(request(PRODUCE, 9, 1, b"\0" + struct.pack(">hi", -1, 1000) + b"\x80\x02" + bytes(8))) == (-1, 1)


def opening(data):
    return recognise.opening_request(KNOWN, data, LARGEST)[0]


@pytest.mark.parametrize(
    ("data", "verdict"),
    [
        (request(FETCH, 11, 1)[:5], WAIT),
        (raw(60, FETCH, 99), NO),
        (request(FETCH, 11, 1), STRONG),
        (request(FETCH, 11, 1, client=None), WEAK),
        *((request(key, 0, 1, client=None), STRONG) for key in (METADATA, HANDSHAKE, API_VERSIONS, AUTHENTICATE)),
        (produce(1, acks=1), STRONG),
        (produce(1, acks=5), NO),
        (request(PRODUCE, 0, 1, struct.pack(">hii", 1, 1000, 0)), NO),
        (request(PRODUCE, 0, 1, struct.pack(">hii", 1, 1000, 1_000_000)), NO),
        (request(PRODUCE, 3, 1, b"\0"), STRONG),
        (request(PRODUCE, 3, 1, b"\0", client=None), NO),
        (request(FETCH, 11, 1, client="a\nb"), DOUBT),
        (request(METADATA, 0, 1, client="a\nb"), DOUBT),
        (request(PRODUCE, 3, 1, b"\0", client="a\nb"), DOUBT),
        (request(PRODUCE, 0, 1, struct.pack(">hii", 1, 1000, 1), client="a\nb"), DOUBT),
        (request(PRODUCE, 0, 1, struct.pack(">hii", 5, 1000, 1), client="a\nb"), NO),
    ],
)
def test_a_connection_is_judged_by_its_first_request(data, verdict):
    assert opening(data) == verdict


@pytest.mark.parametrize(
    ("data", "is_tls"),
    [
        (b"\x16\x03\x01\x02\x00", True),
        (b"\x17\x03\x03\x48\x00", True),
        (b"\x16\x03\x01\x02", False),
        (b"\x18\x03\x01\x02\x00", False),
        (b"\x13\x03\x01\x02\x00", False),
        (b"\x16\x02\x01\x02\x00", False),
        (b"\x16\x03\x05\x02\x00", False),
        (b"\x16\x03\x01\x00\x00", False),
        (b"\x17\x03\x03\x48\x01", False),
    ],
)
def test_a_tls_record_is_known_by_its_header(data, is_tls):
    assert recognise.tls_record(data) is is_tls


@pytest.mark.parametrize(
    ("body", "name"),
    [
        *((struct.pack(">h", len(name)) + name.encode(), name) for name in recognise.MECHANISMS[2:7]),
        (struct.pack(">h", 5) + b"OTHER", "other"),
        (struct.pack(">h", 5) + b"PLA", "other"),
        (struct.pack(">h", 5), "other"),
    ],
)
def test_a_handshake_names_its_mechanism(body, name):
    data = request(HANDSHAKE, 1, 1, body)
    found = recognise.mechanism(data[header(data)[1] :])
    assert recognise.MECHANISMS[found] == name


@pytest.mark.parametrize(
    ("token", "is_first"),
    [
        (b"\x60\x03\x06\x01\x2a", True),
        (b"\x60\x7f" + bytes(127), True),
        (b"\x60\x81\x80" + bytes(128), True),
        (b"\x60\x82\x02\x00" + bytes(512), True),
        (b"\x60\x04\x06\x01\x2a", False),
        (b"\x60\x80" + bytes(128), False),
        (b"\x61\x03\x06\x01\x2a", False),
        (b"\x60\x82\xff\xff" + bytes(1 << 20), False),
    ],
)
def test_a_first_gss_token_is_known_by_its_tag_and_its_length(token, is_first):
    """Lengths as DER has them: below 128 in one byte, else behind how many bytes they take."""
    assert recognise.gss_token(sized(token)) is is_first
