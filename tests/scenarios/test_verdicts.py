"""The same open findings whatever happens between the wire and the judge: batches, order, restarts, clocks, time."""

import random
import struct

import pytest

from capture.agent import write_frames
from streaming.loop import Loop
from streaming.settings import Settings
from tests.scenarios import roads
from tests.scenarios.roads import Scenario, frames, plain

STORIES = ("kip516-draft-contradiction", "zk39-inconsistent-id", "zk39-zombie-controller")
"""Findings that need what several connections say, and time."""
GRAVE = {"violation", "anomaly"}


def without_frames(result):
    return {
        finding["id"]: {**finding, "sides": [{**side, "frame": None} for side in finding["sides"]]}
        for finding in result["findings"]
    }


@pytest.fixture(scope="module", params=STORIES)
def story(request, tmp_path_factory):
    scenario = Scenario(request.param)
    return scenario, plain([frames([scenario.pcap], tmp_path_factory.mktemp("whole"))])


def test_a_kill_between_any_two_batches_and_any_order_of_files_change_nothing(story, tmp_path):
    scenario, told = story
    files = frames([scenario.pcap], tmp_path, roll_bytes=40_000)
    random.Random(8).shuffle(files)
    buckets, shards, rows = {}, {}, []
    for file in files:
        loop = Loop(Settings())  # nothing is known but what was stored
        loop.buckets, loop.shards = dict(buckets), {label: dict(state) for label, state in shards.items()}
        loop.batch([file])
        buckets, shards, rows = loop.buckets, loop.shards, rows + loop.told
    last = Loop(Settings())
    last.told = rows
    assert len(files) > 1 or scenario.name.startswith("kip516")
    assert without_frames(last.result().json()) == without_frames(told)


def test_two_agents_with_skewed_clocks_find_the_same(story, tmp_path):
    """Both capture everything; the clock of one is 150 ms behind."""
    scenario, told = story
    late = tmp_path / "late.pcap"
    late.write_bytes(moved(roads.packets(scenario), by_us=-150_000))
    one = frames([scenario.pcap], tmp_path / "one")
    two = write_frames([late], tmp_path / "two", "default", "second").files
    found = plain([[*one, *two]])
    assert {f["id"] for f in found["findings"]} == {f["id"] for f in told["findings"]}


@pytest.mark.parametrize("name", ["zk28-healthy", "zk28-recreate", "zk27-to-28-ids-appear"])
def test_nothing_is_alleged_when_the_same_takes_ten_times_as_long(name, tmp_path):
    """So the graces of brokers and of clients pass."""
    slow = tmp_path / "slow.pcap"
    slow.write_bytes(moved(roads.packets(Scenario(name)), factor=10))
    found = plain([frames([slow], tmp_path / "frames")])["findings"]
    assert [finding["summary"] for finding in found if finding["kind"] in GRAVE] == []


def moved(packets, *, by_us=0, factor=1):
    """The same packets at other times."""
    head, *rest = packets
    first = None
    out = [head]
    for packet in rest:
        seconds, micros = struct.unpack_from("<II", packet)
        at = seconds * 1_000_000 + micros
        first = at if first is None else first
        at = first + (at - first) * factor + by_us
        out.append(struct.pack("<II", *divmod(at, 1_000_000)) + packet[8:])
    return b"".join(out)


@pytest.mark.spark
def test_a_draft_that_contradicts_itself_by_the_query(spark, tmp_path):
    scenario = Scenario("kip516-draft-contradiction")
    frames([scenario.pcap], tmp_path / "frames")
    result = roads.spark(spark, tmp_path / "frames", tmp_path)
    found = {finding["code"]: finding for finding in result["findings"]}
    assert {"DRF001", "TID006", "TID018"} <= set(found)
    assert {side["api"] for side in found["TID006"]["sides"]} == {"LeaderAndIsr", "UpdateMetadata"}
    assert {side["connection"].rpartition(">")[2] for side in found["TID018"]["sides"]} == {"10.51.6.2:9092"}
    assert found["TID018"]["brokers"] == [2]
    assert found["TID006"]["topic"] == found["TID018"]["topic"] == "orders"
