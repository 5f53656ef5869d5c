"""Connections without an answer: each is counted, and only so many have rows of their own."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from tests.build import plain
from tests.traffic import Packet, Talk, ethernet, ip, pcap
from wirecheck.capture.agent.offline_agent import write_frames
from wirecheck.decode.connection.exchanges import PER_MESSAGE, Connection, Exchanges
from wirecheck.decode.connection.segments import class_of
from wirecheck.decode.peer import Peer
from wirecheck.decode.wire import pack
from wirecheck.judge.claims.outcomes import SLOT_NS, TURNED_AWAY
from wirecheck.streaming.steps.decode_step import stated_by
from wirecheck.streaming.steps.frames_folder import agents_of, labelled_in
from wirecheck.streaming.steps.plain_loop import Loop
from wirecheck.streaming.steps.settings import Settings
from wirecheck.streaming.steps.unanswered_connections import MOST, UnansweredConnections

START_NS = 1_700_000_000_000_000_000
REQUEST = plain("Metadata", "request", 9, {"topics": []}, {"correlationId": 7, "clientId": "c"})
ANSWER = plain("Metadata", "response", 9, {}, {"correlationId": 7})


def connection(number, **facts):
    peers = Peer("10.0.0.1", 1024 + number), Peer("10.0.0.9", 9092)
    role = (True, "syn", "kafka", None)
    numbers = dict.fromkeys(("frames", "payload_bytes", "requests"), 1) | {"responses": 0, "raw_frames": 0}
    rest = {"unseen_request_bytes": 0, "unseen_response_bytes": 0, "gaps": (), "resynchronised": 0}
    rest |= {"skipped_bytes": 0, "conflicting_bytes": 0, "closed_by": None, "close_ns": 0, "out_of_order": 0}
    return replace(Connection(*peers, START_NS, START_NS, *role, **numbers, **rest, limits_hit=0), **facts)


def call(connections):
    """What a call of the follower gave: connections whose facts changed, and no messages."""
    none = np.zeros(0, np.int64)
    columns = dict.fromkeys((*PER_MESSAGE, "request", "response", "outcome", "out_of_order"), none)
    return Exchanges("L", (), tuple(connections), messages=pack([], [], [], []), **columns)


def judged(folder, segments, buckets=1):
    """Coverage of a capture, as `replay --engine local` counts it, and its rows without their order."""
    packets = [Packet(segment.ts_ns, ethernet(ip(segment))) for segment in segments]
    folder.mkdir()
    (folder / "x.pcap").write_bytes(pcap(packets))
    made = write_frames([folder / "x.pcap"], folder / "frames", "x").files
    loop = Loop(Settings(buckets=buckets, agents=labelled_in(agents_of(made), made)))
    loop.batch(made)
    result = loop.result().json()
    return result["coverage"], loop.rows("coverage"), result["clients"]


def asked(number, answered):
    talk = Talk(client=("10.0.0.1", 1024 + number), ts_ns=START_NS + number * 1_000_000).open()
    talk.request(REQUEST)
    if answered:
        talk.response(ANSWER)
    return talk.segments


def silent(number):
    return Talk(client=("10.0.0.2", 1024 + number), ts_ns=START_NS + number * 1_000_000).open().segments


def names(rows):
    return {row["connection"] for row in rows if row["connection"] is not None}


def same_class(count):
    """So many connections of one class."""
    numbers, found = (connection(number) for number in range(1 << 16)), []
    kind = class_of(*connection(0).client, *connection(0).server)
    while len(found) < count:
        one = next(numbers)
        found += [one] * (class_of(*one.client, *one.server) == kind)
    return found


@pytest.mark.parametrize("count", [3, 1500])
def test_every_connection_is_counted_and_a_bounded_number_has_rows(tmp_path, count):
    segments = [segment for number in range(count) for segment in asked(number, answered=False)]
    coverage, rows, clients = judged(tmp_path / "some", segments)
    assert [(row["client_id"], row["requests"]) for row in clients] == [("c", count)]
    counted = (coverage["connections"], coverage["frames"], coverage["requests"], coverage["decoded_messages"])
    assert counted == (count, len(segments), count, count)
    of_class = Counter(class_of("10.0.0.1", 1024 + number, "10.0.0.9", 9092) for number in range(count))
    assert len(names(rows)) == sum(min(MOST, some) for some in of_class.values())
    assert coverage.get("unlisted_connections", 0) == count - len(names(rows))
    assert coverage["details"]["connections"] == {"kafka": count}


def test_the_number_of_buckets_changes_no_row_and_no_count(tmp_path):
    segments = [segment for number in range(1300) for segment in asked(number, answered=number % 7 == 0)]
    segments += [segment for number in range(1300) for segment in silent(number)]
    segments.sort(key=lambda segment: segment.ts_ns)
    one, eight = (judged(tmp_path / str(buckets), segments, buckets) for buckets in (1, 8))
    assert one[0] == eight[0]
    assert names(one[1]) == names(eight[1])
    assert one[2] == eight[2]
    assert one[0]["unlisted_connections"] > 100


def test_a_connection_that_is_answered_has_rows_however_many_are_not(tmp_path):
    segments = [segment for number in range(1100) for segment in asked(number, answered=False)]
    segments += [segment for number in range(1100, 1160) for segment in asked(number, answered=True)]
    coverage, rows, _ = judged(tmp_path / "some", segments)
    assert {f"10.0.0.1:{1024 + number}>10.0.0.9:9092" for number in range(1100, 1160)} <= names(rows)
    assert coverage["connections"] == 1160


def test_connections_without_a_request_leave_the_others_their_rows(tmp_path):
    segments = [segment for number in range(2000) for segment in silent(number)]
    segments += [segment for number in range(20) for segment in asked(number, answered=False)]
    _, rows, _ = judged(tmp_path / "some", segments)
    assert {f"10.0.0.1:{1024 + number}>10.0.0.9:9092" for number in range(20)} <= names(rows)


def test_a_connection_waits_until_it_is_answered_or_over():
    bound = UnansweredConnections()
    one = connection(1)
    assert bound.bounded(call([one])).connections == ()
    answered = replace(one, responses=1)
    assert bound.bounded(call([answered])).connections == (answered,)
    over = replace(connection(2), over=True)
    assert bound.bounded(call([over])).connections == (over,)


def test_what_is_over_without_an_answer_is_summed():
    some = [replace(one, over=True) for one in same_class(MOST + 5)]
    bound = UnansweredConnections()
    *listed, others = bound.bounded(call(some)).connections
    assert listed == some[:MOST]
    assert (others.unlisted, others.frames, others.payload_bytes, others.requests) == (5, 5, 5, 5)
    assert str(others.client) == "others"


def test_those_that_began_first_have_rows():
    some = [replace(one, over=True, started_ns=START_NS - i) for i, one in enumerate(same_class(MOST + 1))]
    assert UnansweredConnections().bounded(call(some)).connections[:MOST] == tuple(some[1:])


def test_the_count_is_restored():
    some = [replace(one, over=True) for one in same_class(MOST + 1)]
    bound = UnansweredConnections()
    bound.bounded(call(some[:MOST]))
    (others,) = UnansweredConnections(*bound.stored()).bounded(call(some[MOST:])).connections
    assert others.unlisted == 1


@pytest.mark.parametrize("calls", [1, 3])
def test_the_judge_counts_every_refused_connection(calls):
    """A broker that is down refuses thousands: those without rows of their own show from when, and until when."""
    refused = {"over": True, "closed_by": "server-rst", "payload_bytes": 0, "requests": 0}
    times = [START_NS + number * 500_000_000 for number in range(80)]
    some = [
        replace(one, **refused, started_ns=at, close_ns=at)
        for one, at in zip(same_class(len(times)), times, strict=True)
    ]
    some.append(replace(some[-1], from_start=False))
    bound, size = UnansweredConnections(), -(-len(some) // calls)
    parts = [bound.bounded(call(some[at : at + size])) for at in range(0, len(some), size)]
    claims = [one for part in parts for one in stated_by(part, Settings()).claims if one.kind == "turned_away"]
    runs = [run for one in claims for run in one.outcomes.runs({TURNED_AWAY})]
    assert {one.key for one in claims} == {("10.0.0.1", "10.0.0.9:9092")}
    assert sum(one.count for one in claims) == sum(run.count for run in runs) == len(times)
    assert (min(run.first_ns for run in runs), max(run.last_ns for run in runs)) == (times[0], times[-1])
    assert all(run.first_ns // SLOT_NS == run.last_ns // SLOT_NS for run in runs)


def test_a_port_scan_hides_no_broker_that_is_down():
    """Each of its ways is refused once, and all before the broker is asked."""
    refused = {"over": True, "closed_by": "server-rst", "payload_bytes": 0, "requests": 0}
    some = [replace(one, **refused) for one in same_class(MOST + 20)]
    bound = UnansweredConnections()
    bound.bounded(call(some[:MOST]))
    scan = [replace(some[0], server=Peer("10.0.0.8", port)) for port in range(2_000, 12_000)]
    claims = stated_by(bound.bounded(call(scan + some[MOST:])), Settings()).claims
    counts = {one.key: one.count for one in claims if one.kind == "turned_away"}
    assert counts["10.0.0.1", "10.0.0.9:9092"] == 20


def test_one_that_had_a_message_to_report_keeps_its_rows():
    some = same_class(MOST + 1)
    bound = UnansweredConnections()
    bound.bounded(call([replace(one, over=True) for one in some[:MOST]]))
    one = some[MOST]
    speaking = replace(call([one]), connection=np.zeros(1, np.int64))
    assert bound.bounded(speaking).connections == (one,)
    bound = UnansweredConnections(*bound.stored())
    assert bound.bounded(call([one])).connections == (one,)
    over = replace(one, over=True)
    assert bound.bounded(call([over])).connections == (over,)
    assert bound.bounded(call([over])).connections != (over,)


@pytest.mark.parametrize(
    "facts",
    [
        {"responses": 1},
        {"protocol": "tls"},
        {"protocol": "other"},
        {"unseen_response_bytes": 1},
        {"raw_frames": 1},
        {"frames": 65},
        {"cut_bytes": 1},
        {"proxied_for": Peer("10.0.0.7", 1)},
    ],
)
def test_what_has_more_to_report_keeps_its_rows(facts):
    some = [replace(one, over=True) for one in same_class(MOST + 1)]
    bound = UnansweredConnections()
    bound.bounded(call(some[:MOST]))
    one = replace(some[MOST], **facts)
    assert bound.bounded(call([one])).connections == (one,)
