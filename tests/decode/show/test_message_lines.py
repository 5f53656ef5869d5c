"""Lines of `wirecheck decode`: what each says, which are wanted, in which order, and why a message has no body."""

import base64
import struct

import pyarrow as pa
import pytest

from tests.build import plain
from tests.traffic import Talk
from wirecheck.capture.frames import PROGRESS
from wirecheck.decode.envelope import DEEPEST
from wirecheck.decode.show import message_lines as lines
from wirecheck.decode.show.message_filter import Filter
from wirecheck.decode.show.message_lines import Reading
from wirecheck.wording import TimeSpan

SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND
ORDERS = "JMxDMvfeRaOyTjPWGqDRbA"
PAYMENTS = "_-QiefO9BoNmqFLBu5ZR8w"
SPAN = pa.list_(pa.struct([("offset", pa.int32()), ("length", pa.int32())]))
BROKER_6 = ("fd00::9", 9092)
EVERYTHING = Filter()


def frames(segments, left_out=None, first=1, source="a.pcap"):
    """A table of frames; `left_out`: number of a frame -> [(offset, length)] of its payload."""
    left_out = left_out or {}
    spans = [left_out.get(first + i, []) for i in range(len(segments))]
    kept = []
    for segment, gone in zip(segments, spans, strict=True):
        outside = [b for at, b in enumerate(segment.payload) if not any(o <= at < o + n for o, n in gone)]
        kept.append(bytes(outside))
    count = len(segments)
    return pa.table(
        {
            "kind": pa.array([0] * count, pa.int8()),
            "cluster": ["c"] * count,
            "agent": ["a"] * count,
            "source": [source] * count,
            "frame_no": pa.array(range(first, first + count), pa.int64()),
            "ts_ns": pa.array([s.ts_ns for s in segments], pa.int64()),
            "src_ip": [s.src[0] for s in segments],
            "src_port": pa.array([s.src[1] for s in segments], pa.int32()),
            "dst_ip": [s.dst[0] for s in segments],
            "dst_port": pa.array([s.dst[1] for s in segments], pa.int32()),
            "tcp_seq": pa.array([s.seq for s in segments], pa.int64()),
            "tcp_ack": pa.array([s.ack for s in segments], pa.int64()),
            "tcp_flags": pa.array([s.flags for s in segments], pa.int32()),
            "payload": pa.array(kept, pa.binary()),
            "payload_len": pa.array([len(s.payload) for s in segments], pa.int32()),
            "left_out": pa.array([[{"offset": o, "length": n} for o, n in gone] for gone in spans], SPAN),
        }
    )


def asked(api, version, body, number=1, client_id="app"):
    return plain(api, "request", version, body, {"correlationId": number, "clientId": client_id})


def answered(api, version, body, number=1):
    return plain(api, "response", version, body, {"correlationId": number})


def metadata(talk, number=1, names=("orders",), topic_id=ORDERS):
    talk.request(asked("Metadata", 12, {"topics": [{"name": name} for name in names]}, number))
    topics = [{"name": name, "topicId": topic_id, "errorCode": 3} for name in names]
    return talk.response(answered("Metadata", 12, {"topics": topics}, number))


def produce(talk, records=b"record batch", number=2):
    body = {"acks": -1, "topicData": [{"name": "orders", "partitionData": [{"index": 0, "records": b64(records)}]}]}
    talk.request(asked("Produce", 9, body, number))
    return talk.response(answered("Produce", 9, {"responses": []}, number))


def b64(data):
    return base64.b64encode(data).decode()


def printed_lines(*talks, wanted=EVERYTHING, reading=lines.PLAIN, **options):
    segments = sorted((s for talk in talks for s in talk.segments), key=lambda s: s.ts_ns)
    return list(lines.of([frames(segments, **options)], wanted, reading))


def opened(**fields):
    return Talk(ts_ns=START, **fields).open()


def test_a_line_says_who_when_what_and_where_it_was_seen():
    request, response = printed_lines(metadata(opened()).close())
    assert {name: request[name] for name in request if name != "body"} == {
        "time": "2023-11-14T22:13:20.003000Z", "src": "10.0.0.1:40000", "dst": "10.0.0.9:9092", "side": "request",
        "key": 3, "api": "Metadata", "version": 12, "correlation_id": 1, "client_id": "app",
        "size": len(asked("Metadata", 12, {"topics": [{"name": "orders"}]})) - 4,
        "frame": {"source": "a.pcap", "first": 4, "last": 4},
    }  # fmt: skip
    assert (response["src"], response["dst"]) == ("10.0.0.9:9092", "10.0.0.1:40000")
    assert (response["side"], response["client_id"], response["frame"]["first"]) == ("response", "app", 5)
    assert response["body"]["topics"][0]["topicId"] == ORDERS


def test_an_ipv6_address_stands_in_brackets():
    request, _ = printed_lines(metadata(opened(client=("fd00::1", 40000), server=BROKER_6)).close())
    assert (request["src"], request["dst"]) == ("[fd00::1]:40000", "[fd00::9]:9092")


def test_lines_come_in_order_of_time_whatever_connection_ends_first():
    """A long poll: its exchange is known only when it is answered, half a minute after others."""
    long, short = opened(), opened(client=("10.0.0.2", 40000))
    long.request(asked("Metadata", 12, {"topics": []}))
    for turn in range(40):
        short.ts_ns = START + turn * SECOND
        metadata(short, turn + 1)
    long.ts_ns = START + 35 * SECOND
    long.response(answered("Metadata", 12, {"topics": []}))
    found = printed_lines(long.close(), short.close())
    assert len(found) == 82
    waiting = [line["time"] for line in found if line["src"] != "10.0.0.1:40000"]
    assert waiting == sorted(waiting)


def test_lines_are_not_kept_longer_than_needed():
    """The first lines are out before the last frames are asked for."""
    talk = opened()
    for turn in range(30):
        talk.ts_ns = START + turn * SECOND
        metadata(talk, turn + 1)
    asked_for = []

    def tables():
        for number, part in enumerate((talk.segments[:50], [], talk.segments[50:])):
            asked_for.append(number)
            yield frames(part, first=51 if number else 1)

    stream = lines.of(tables(), EVERYTHING)
    found = [next(stream)]
    assert asked_for == [0]
    found += stream
    assert len(found) == 60
    assert [line["time"] for line in found] == sorted(line["time"] for line in found)


def test_lines_that_are_wanted_at_once_come_with_the_frames_that_make_them_known():
    talk = metadata(metadata(opened()), 2)
    read = []

    def tables():
        for number, part in enumerate((talk.segments[:5], [], talk.segments[5:])):
            read.append(number)
            yield frames(part, first=6 if number else 1)

    stream = lines.of(tables(), EVERYTHING, Reading(at_once=True))
    assert [next(stream)["side"] for _ in range(2)] == ["request", "response"]
    assert read == [0]
    assert [line["correlation_id"] for line in stream] == [2, 2]


def test_a_capture_is_not_read_on_where_nothing_wanted_can_come_any_more():
    """An answer may come LONGEST_NS behind the time asked for, and no later."""
    talk, read = opened(), []
    for turn, seconds in enumerate((0, 590, 610, 620)):
        talk.ts_ns = START + seconds * SECOND
        metadata(talk, turn + 1)

    def tables():
        for at, end in ((0, 5), (5, 7), (7, 9), (9, 11)):
            read.append((talk.segments[at].ts_ns - START) // SECOND)
            yield frames(talk.segments[at:end], first=at + 1)

    found = list(lines.of(tables(), Filter(until=TimeSpan(START + SECOND, START + SECOND))))
    assert [line["correlation_id"] for line in found] == [1, 1]
    assert read == [0, 590, 610]


def test_a_line_without_its_body_says_what_the_message_is_about_and_how_long_its_answer_took():
    request, response = printed_lines(metadata(opened()), reading=Reading(bodies=False, summary=True))
    assert ("body" in request, "body" in response) == (False, False)
    assert (request["latency_ns"], response["latency_ns"]) == (None, 1_000_000)
    assert (request["summary"].topics, response["summary"].errors) == (("orders",), (3,))


def test_no_more_lines_wait_than_memory_is_for(monkeypatch):
    """A busy capture has more in WAIT_NS than anybody can hold: its first lines come before it is read to the end."""
    monkeypatch.setattr("wirecheck.decode.show.message_lines.WAITING_ROWS", 40)
    talk = opened()
    for turn in range(30):
        metadata(talk, turn + 1, names=("orders", "payments"))
    read = []

    def tables():
        for number, part in enumerate((talk.segments[:40], talk.segments[40:])):
            read.append(number)
            yield frames(part, first=1 + 40 * number)

    stream = lines.of(tables(), EVERYTHING)
    found = [next(stream)]
    assert read == [0]
    found += stream
    assert [line["correlation_id"] for line in found if line["side"] == "request"] == list(range(1, 31))


def test_a_large_message_weighs_more_than_a_small_one():
    small, large = (metadata(opened(), names=[f"topic-{i}" for i in range(n)]).close() for n in (1, 50))
    weights = []
    for talk in (small, large):
        for exchanges in lines.followed([frames(talk.segments)]):
            weights += lines.rows_of(lines.read(exchanges.messages)).tolist()
    assert min(weights) >= 1
    assert weights[2] >= weights[0] + 49
    assert weights[3] >= weights[1] + 49


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (Filter(), ["Metadata", "Metadata", "Produce", "Produce", "Metadata", "Metadata"]),
        (Filter(apis=("produce",)), ["Produce", "Produce"]),
        (Filter(apis=("Produce", "FETCH")), ["Produce", "Produce"]),
        (Filter(connection="10.0.0.2:40000"), ["Metadata", "Metadata"]),
        (Filter(connection="10.0.0.2:40000>10.0.0.9:9092"), ["Metadata", "Metadata"]),
        (Filter(connection="10.0.0.9:9092>10.0.0.2:40000"), []),
        (Filter(connection="10.0.0.2"), ["Metadata", "Metadata"]),
        (Filter(connection="10.0.0.2>10.0.0.9:9092"), ["Metadata", "Metadata"]),
        (Filter(connection="10.0.0.9"), ["Metadata", "Metadata", "Produce", "Produce", "Metadata", "Metadata"]),
        (Filter(side="request"), ["Metadata", "Produce", "Metadata"]),
        (Filter(side="response", apis=("0",)), ["Produce"]),
        (Filter(version=9), ["Produce", "Produce"]),
        (Filter(version=9, apis=("Metadata",)), []),
        (Filter(topic="payments"), ["Metadata", "Metadata"]),
        (Filter(topic="orders"), ["Metadata", "Metadata", "Produce"]),
        (Filter(topic=ORDERS), ["Metadata"]),
        (Filter(topic="24cc4332f7de45a3b24e33d61aa0d16c"), ["Metadata"]),
        (Filter(topic="24CC4332-f7de-45a3-b24e-33d61aa0d16c"), ["Metadata"]),
        (Filter(topic="nothing"), []),
    ],
)
def test_only_what_is_wanted(wanted, expected):
    one, other = produce(metadata(opened())), opened(client=("10.0.0.2", 40000))
    other.ts_ns += SECOND
    metadata(other, names=("payments",), topic_id=PAYMENTS)
    assert [line["api"] for line in printed_lines(one, other, wanted=wanted)] == expected


def test_records_are_lengths_unless_they_are_asked_for():
    shown = [printed_lines(produce(opened()), reading=Reading(contents=contents))[0] for contents in (False, True)]
    records = [line["body"]["topicData"][0]["partitionData"][0]["records"] for line in shown]
    assert records == [{"left_out": 12}, b64(b"record batch")]


def test_records_that_were_not_captured_are_lengths_all_the_same():
    talk = produce(opened(), b"x" * 300)
    at = talk.segments[3].payload.index(b"x" * 300)
    request, _ = printed_lines(talk, left_out={4: [(at, 300)]}, reading=Reading(contents=True))
    assert request["body"]["topicData"][0]["partitionData"][0]["records"] == {"left_out": 300}


def test_a_message_whose_structure_was_not_captured_is_undecoded_and_says_where():
    talk = metadata(metadata(opened()), 2)
    request = printed_lines(talk, left_out={6: [(20, 4)]})[2]
    assert request["undecoded"].startswith("left-out at byte ")
    assert "body" not in request
    assert request["client_id"] == "app"


@pytest.mark.parametrize(("key", "version", "reason"), [(3, 30, "unknown-version"), (99, 0, "unknown-api")])
def test_what_this_release_does_not_know_is_undecoded(key, version, reason):
    talk = metadata(opened())
    talk.request(struct.pack(">ihhih", 12, key, version, 2, 0) + b"\0\0")
    talk.response(struct.pack(">ii", 4, 2))
    found = [line for line in printed_lines(talk.close()) if "undecoded" in line]
    assert [(line["key"], line["version"], line["undecoded"]) for line in found] == [(key, version, reason)] * 2
    assert [line["api"] for line in found] == [None if key == 99 else "Metadata"] * 2


def test_a_message_with_bytes_too_many_is_malformed_and_says_where():
    talk = metadata(opened())
    whole = asked("Metadata", 12, {"topics": []}, 2)
    talk.request(struct.pack(">i", len(whole) - 4 + 1) + whole[4:] + b"\7")
    talk.response(answered("Metadata", 12, {}, 2))
    assert printed_lines(talk)[2]["malformed"] == f"LeftoverBytes at byte {len(whole) - 4}"


def test_an_answer_whose_request_was_not_seen_has_no_api():
    """The first request was lost on its way to us; what answers it is shown, and nobody says what it is."""
    talk = metadata(metadata(opened()), 2)
    del talk.segments[3]
    found = [line for line in printed_lines(talk) if line["correlation_id"] == 1]
    assert [(line["key"], line["api"], line["version"], line["undecoded"]) for line in found] == [
        (None, None, None, "no-request")
    ]


CREATED = {"topics": [{"name": "payments", "configs": [{"name": "retention.ms", "value": "1000"}]}]}


def forwarded(request, response=None, number=5):
    """An Envelope's exchange on a connection between brokers."""
    talk = opened()
    header = {"correlationId": number, "clientId": "2"}
    talk.request(plain("Envelope", "request", 0, {"requestData": b64(request)}, header))
    body = {"responseData": None if response is None else b64(response)}
    return talk.response(plain("Envelope", "response", 0, body, {"correlationId": number})).close()


def test_what_an_envelope_carries_stands_beside_it():
    request = asked("CreateTopics", 7, CREATED, 41, "admin")[4:]
    response = answered("CreateTopics", 7, {"topics": [{"name": "payments", "topicId": ORDERS}]}, 41)[4:]
    outer = printed_lines(forwarded(request, response))
    assert [line["api"] for line in outer] == ["Envelope", "Envelope"]
    assert [line["client_id"] for line in outer] == ["2", "2"]
    assert outer[0]["body"]["requestData"] == {"left_out": len(request)}
    assert outer[1]["body"]["responseData"] == {"left_out": len(response)}
    inside = [line["enveloped"] for line in outer]
    bodies = [line.pop("body") for line in inside]
    assert inside == [
        {"side": side, "key": 19, "api": "CreateTopics", "version": 7, "correlation_id": 41, "client_id": "admin",
         "size": len(data)}
        for side, data in (("request", request), ("response", response))
    ]  # fmt: skip
    assert bodies[0]["topics"][0]["name"] == "payments"
    assert bodies[1]["topics"][0]["topicId"] == ORDERS


def test_secrets_inside_an_envelope_are_lengths_like_those_outside():
    request = asked("CreateTopics", 7, CREATED)[4:]
    for contents, value, carried in (
        (False, {"left_out": 4}, {"left_out": len(request)}),
        (True, "1000", b64(request)),
    ):
        line = printed_lines(forwarded(request), reading=Reading(contents=contents))[0]
        assert line["enveloped"]["body"]["topics"][0]["configs"][0]["value"] == value
        assert line["body"]["requestData"] == carried


@pytest.mark.parametrize(
    ("request_data", "expected"),
    [
        (b"\0\x13\0\x63\0\0\0\1\0\0", {"key": 19, "version": 99, "undecoded": "unknown-version"}),
        (b"\0\x63\0\0\0\0\0\1\0\0", {"key": 99, "api": None, "undecoded": "unknown-api"}),
        (b"\0\x13\0\x07\0\0\0\1", {"key": 19, "malformed": "Truncated at byte 8 in header.clientId"}),
        (b"\0\x13\0", {"key": None, "api": None, "malformed": "Truncated at byte 3"}),
        (b"\xff\xff\0\0\0\0\0\1\0\0", {"key": None, "undecoded": "unknown-api"}),
    ],
)
def test_an_envelope_whose_inside_is_wrong_or_unknown_says_so(request_data, expected):
    inside = printed_lines(forwarded(request_data))[0]["enveloped"]
    assert inside == inside | expected
    assert "body" not in inside


def test_an_envelope_without_answer_inside_has_none():
    request, response = printed_lines(forwarded(asked("CreateTopics", 7, CREATED)[4:]))
    assert response["body"]["responseData"] is None
    assert ("enveloped" in request, "enveloped" in response) == (True, False)


def test_what_was_left_out_inside_an_envelope_is_left_out():
    data = asked("CreateTopics", 7, CREATED)[4:]
    talk = forwarded(data)
    at = talk.segments[3].payload.index(data)
    gone = {
        "ids": printed_lines(talk, left_out={4: [(at + 1, 2)]})[0]["enveloped"],
        "names": printed_lines(talk, left_out={4: [(at + data.index(b"payments") - 1, 3)]})[0]["enveloped"],
    }
    assert (gone["ids"]["key"], gone["ids"]["undecoded"]) == (None, "left-out at byte 1")
    assert gone["names"]["undecoded"].startswith("left-out at byte ")
    value = printed_lines(talk, left_out={4: [(at + data.index(b"1000"), 4)]}, reading=Reading(contents=True))[0]
    assert value["enveloped"]["body"]["topics"][0]["configs"][0]["value"] == {"left_out": 4}


@pytest.mark.parametrize(("wanted", "expected"), [
    (Filter(apis=("CreateTopics",)), 2), (Filter(apis=("Envelope",)), 2), (Filter(apis=("Fetch",)), 0),
    (Filter(topic="payments"), 1), (Filter(topic=ORDERS), 1), (Filter(topic="orders"), 0),
])  # fmt: skip
def test_an_envelope_passes_by_what_it_carries(wanted, expected):
    request = asked("CreateTopics", 7, CREATED)[4:]
    response = answered("CreateTopics", 7, {"topics": [{"name": "", "topicId": ORDERS}]})[4:]
    assert len(printed_lines(forwarded(request, response), wanted=wanted)) == expected


def wrapped(data, times, side="request", number=60):
    """Envelopes around a message, the outermost without its size."""
    name = "requestData" if side == "request" else "responseData"
    header = {"correlationId": number} | ({"clientId": f"broker-{times}"} if side == "request" else {})
    for _ in range(times):
        data = plain("Envelope", side, 0, {name: b64(data)}, header)[4:]
    return data


def carrying(steps):
    """The exchange of an Envelope that carries CreateTopics so many steps down."""
    request = asked("CreateTopics", 7, CREATED, 41, "admin")[4:]
    response = answered("CreateTopics", 7, {"topics": [{"name": "payments", "topicId": ORDERS}]}, 41)[4:]
    return forwarded(wrapped(request, steps - 1), wrapped(response, steps - 1, "response"))


def innermost(line):
    return innermost(line["enveloped"]) if "enveloped" in line else line


@pytest.mark.parametrize("steps", range(1, DEEPEST + 1))
def test_envelopes_in_envelopes_are_read_step_by_step(steps):
    request, response = map(innermost, printed_lines(carrying(steps)))
    assert (request["api"], request["client_id"], request["side"]) == ("CreateTopics", "admin", "request")
    assert (response["api"], response["client_id"], response["side"]) == ("CreateTopics", "admin", "response")
    assert request["body"]["topics"][0]["name"] == "payments"
    assert response["body"]["topics"][0]["topicId"] == ORDERS


@pytest.mark.parametrize("steps", [DEEPEST + 1, 40])
def test_envelopes_deeper_than_any_are_said_to_be(steps):
    lines = printed_lines(carrying(steps))
    assert len(lines) == 2
    for line in lines:
        inside = innermost(line)
        assert (inside["api"], inside["undecoded"], "body" in inside) == ("Envelope", "too-deep", False)


def test_an_envelope_passes_by_what_it_carries_however_deep():
    passing = {"apis": (("CreateTopics",), ("Fetch",)), "topic": ("payments", "orders"), "version": (7, 8)}
    for name, (yes, no) in passing.items():
        assert [len(printed_lines(carrying(3), wanted=Filter(**{name: value}))) for value in (yes, no)] == [2, 0]


def test_a_malformed_message_says_which_field():
    talk = metadata(opened())
    talk.request(asked("Metadata", 12, {"topics": [{"name": "orders"}]}, 2).replace(b"\x07orders", b"\x00orders"))
    found = printed_lines(talk)[-1]
    assert found["malformed"] == "Truncated at byte 32 in topics._unknownTaggedFields"


def test_connections_that_nobody_can_read_are_named_to_who_asks():
    talk = opened().request(b"\x16\x03\x01\x02\x00" + bytes(512)).response(b"\x17\x03\x03\x00\x40" + bytes(64))
    hidden = lines.Noticed()
    read = metadata(opened(client=("10.0.0.2", 40000)))
    table = frames(sorted([*talk.segments, *read.segments], key=lambda s: s.ts_ns))
    assert len(list(lines.of([table], EVERYTHING, noticed=hidden))) == 2
    assert hidden.encrypted == {"10.0.0.1:40000>10.0.0.9:9092"}


def by_id(talk, number, topic=ORDERS):
    talk.request(asked("Fetch", 13, {"topics": [{"topicId": topic, "partitions": []}]}, number))
    return talk.response(answered("Fetch", 13, {"responses": []}, number))


OTHER, METADATA_LOG = "x" * 21 + "A", "A" * 20 + "AQ"


@pytest.mark.parametrize(
    ("topic", "expected"),
    [("orders", [1, 1, 2]), (ORDERS, [1, 2]), ("payments", []), (OTHER, [3]), ("__cluster_metadata", [4])],
)
def test_a_topic_asked_for_by_its_name_is_found_by_its_id_too(topic, expected):
    talk = metadata(opened())
    for number, said in ((2, ORDERS), (3, OTHER), (4, METADATA_LOG)):
        by_id(talk, number, said)
    assert [line["correlation_id"] for line in printed_lines(talk.close(), wanted=Filter(topic=topic))] == expected


def test_no_topic_is_found_by_the_id_that_means_none():
    talk = opened().request(asked("Metadata", 12, {"topics": [{"name": "orders"}]}))
    talk.response(answered("Metadata", 12, {"topics": [{"name": "orders", "topicId": "A" * 22}]}))
    by_id(talk, 2, "A" * 22)
    assert [line["correlation_id"] for line in printed_lines(talk.close(), wanted=Filter(topic="orders"))] == [1, 1]


def test_what_was_not_decoded_gives_no_name_an_id():
    talk = opened().request(asked("Metadata", 12, {"topics": [{"name": "orders", "topicId": ORDERS}]})[:-1] + b"\7")
    by_id(talk, 2)
    assert printed_lines(talk.close(), wanted=Filter(topic="orders")) == []


def test_a_message_is_found_by_any_of_its_frames_and_no_other_by_them():
    """Frames of other connections lie between those of a message: they are not its own."""
    long, between = opened(mss=20), opened(client=("10.0.0.2", 40000))
    long.request(asked("Metadata", 12, {"topics": [{"name": "orders" * 20}]}))
    between.ts_ns = long.ts_ns - 3_500_000
    metadata(between, 7)
    long.response(answered("Metadata", 12, {"topics": []}))
    whole = printed_lines(long, between)
    first, last = next((line["frame"]["first"], line["frame"]["last"]) for line in whole if line["correlation_id"] == 1)
    inside = [line["frame"]["first"] for line in whole if line["correlation_id"] == 7]
    assert first < inside[0] < last
    for number in range(first, last + 1):
        found = printed_lines(long, between, wanted=Filter(frames=(number,)))
        assert [line["correlation_id"] for line in found] == [7 if number in inside else 1]
    assert len(printed_lines(long, between, wanted=Filter(frames=(first, last, inside[0])))) == 2


def test_of_a_frame_that_was_asked_for_it_is_known_which_way_it_went():
    noticed, talk = lines.Noticed(), metadata(opened(server=BROKER_6, client=("fd00::1", 40000)))
    assert list(lines.of([frames(talk.segments)], Filter(frames=(3, 99)), noticed=noticed)) == []
    assert noticed.frames == {("a.pcap", 3): ("[fd00::1]:40000", "[fd00::9]:9092", 0)}
    assert (
        list(lines.of([frames(talk.segments, source="b.pcap")], Filter(frames=(4,))))
        == printed_lines(talk, source="b.pcap")[:1]
    )


@pytest.mark.parametrize("ends", ["close", "reset"])
def test_a_request_without_a_response_is_known_once_its_connection_is_over(ends):
    talk = metadata(opened())
    talk.request(asked("Metadata", 12, {"topics": []}, 2))
    getattr(talk, ends)()
    later = talk.segments[-1].ts_ns + 11 * SECOND
    tables = [frames(talk.segments), frames([]), progress(later - 10 * SECOND), progress(later)]
    counts = [len(found.messages) for found in lines.followed(tables, at_once=True)]
    assert counts == [2, 0, 0, 1, 0]
    assert [len(found.messages) for found in lines.followed(tables)] == [2, 1]


def test_a_request_of_an_open_connection_may_still_be_answered():
    talk = metadata(opened())
    talk.request(asked("Metadata", 12, {"topics": []}, 2))
    later = progress(talk.segments[-1].ts_ns + 60 * SECOND)
    before, after = len(talk.segments), talk.response(answered("Metadata", 12, {}, 2)).segments
    tables = [frames(after[:before]), later, frames(after[before:], first=before + 1)]
    assert [len(found.messages) for found in lines.followed(tables, at_once=True)] == [2, 0, 0, 2, 0, 0]


def progress(ts_ns):
    """A mark alone, of the same agent."""
    table = frames([Talk().open().segments[0]])
    return table.set_column(0, "kind", pa.array([PROGRESS], pa.int8())).set_column(
        table.column_names.index("ts_ns"), "ts_ns", pa.array([ts_ns], pa.int64())
    )
