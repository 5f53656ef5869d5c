"""Connections without an answer: each is counted, and only so many have rows of their own."""

from dataclasses import replace

import numpy as np
import pytest

from tests.build import plain
from tests.traffic import Packet, Talk, ethernet, ip, pcap
from wirecheck.capture.agent.offline_agent import write_frames
from wirecheck.decode.connection.exchanges import PER_MESSAGE, Connection, Exchanges
from wirecheck.decode.peer import Peer
from wirecheck.decode.wire import pack
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


def judged(folder, segments, files=1):
    """Coverage of a capture, as `replay --engine local` counts it, in so many batches."""
    packets = [Packet(segment.ts_ns, ethernet(ip(segment))) for segment in segments]
    folder.mkdir()
    (folder / "x.pcap").write_bytes(pcap(packets))
    made = write_frames([folder / "x.pcap"], folder / "frames", "x", roll_bytes=1 if files > 1 else None).files
    loop = Loop(Settings(buckets=1, agents=labelled_in(agents_of(made), made)))
    for file in made if files > 1 else [made]:
        loop.batch([file] if files > 1 else file)
    return loop.result().json()["coverage"], loop.rows("coverage")


def asked(number, answered):
    talk = Talk(client=("10.0.0.1", 1024 + number), ts_ns=START_NS + number * 1_000_000).open()
    talk.request(REQUEST)
    if answered:
        talk.response(ANSWER)
    return talk.segments


@pytest.mark.parametrize("count", [3, MOST, MOST + 1, 3 * MOST])
def test_every_connection_is_counted_and_a_bounded_number_has_rows(tmp_path, count):
    segments = [segment for number in range(count) for segment in asked(number, answered=False)]
    coverage, rows = judged(tmp_path / "some", segments)
    counted = (coverage["connections"], coverage["frames"], coverage["requests"], coverage["decoded_messages"])
    assert counted == (count, len(segments), count, count)
    named = {row["connection"] for row in rows if row["connection"] is not None}
    assert len(named) == min(count, MOST)
    assert coverage.get("unlisted_connections", 0) == count - len(named)
    assert coverage["details"]["connections"] == {"kafka": count}


def test_a_connection_that_is_answered_has_rows_however_many_are_not(tmp_path):
    segments = [segment for number in range(MOST + 50) for segment in asked(number, answered=False)]
    segments += [segment for number in range(MOST + 50, MOST + 60) for segment in asked(number, answered=True)]
    coverage, rows = judged(tmp_path / "some", segments)
    named = {row["connection"] for row in rows if row["connection"] is not None}
    assert {f"10.0.0.1:{1024 + number}>10.0.0.9:9092" for number in range(MOST + 50, MOST + 60)} <= named
    assert coverage["connections"] == MOST + 60
    assert coverage["unlisted_connections"] == 50


def test_a_connection_beyond_the_bound_is_reported_once_it_is_answered():
    bound = UnansweredConnections()
    assert len(bound.bounded(call([connection(number) for number in range(MOST)])).connections) == MOST
    late = connection(MOST)
    assert bound.bounded(call([late])).connections == ()
    answered = replace(late, responses=1)
    assert bound.bounded(call([answered])).connections == (answered,)


def test_what_is_over_without_an_answer_is_summed():
    bound = UnansweredConnections(MOST)
    (others,) = bound.bounded(call([connection(number, over=True) for number in range(5)])).connections
    assert (others.unlisted, others.frames, others.payload_bytes, others.requests) == (5, 5, 5, 5)
    assert str(others.client) == "others"


def test_one_that_has_rows_keeps_them_and_makes_room_when_it_is_answered():
    bound = UnansweredConnections(*UnansweredConnections(MOST - 1).stored())
    mine = connection(1)
    assert bound.bounded(call([mine])).connections == (mine,)
    bound = UnansweredConnections(*bound.stored())
    assert bound.bounded(call([connection(2)])).connections == ()
    assert bound.bounded(call([replace(mine, responses=1)])).connections
    assert bound.bounded(call([connection(3)])).connections


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
    one = connection(1, over=True, **facts)
    assert UnansweredConnections(MOST).bounded(call([one])).connections == (one,)
