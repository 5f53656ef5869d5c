"""The same open findings whatever happens between the wire and the judge: batches, order, restarts, clocks, time."""

import json
import random
import struct

import pytest

from tests.depth import some
from tests.scenarios import engines
from tests.scenarios.engines import Scenario, frames, plain
from wirecheck.capture.agent.offline_agent import write_frames
from wirecheck.streaming.steps.plain_loop import Loop

STORIES = ("kip516-draft-contradiction", "zk39-inconsistent-id", "zk39-zombie-controller")
"""Findings that need what several connections say, and time."""
GRAVE = {"violation", "anomaly"}


def without_frames(result):
    return {
        finding["id"]: {**finding, "sides": [{**side, "frame": None} for side in finding["sides"]]}
        for finding in result["findings"]
    }


@pytest.fixture(scope="module", params=some(STORIES, each=2))
def story(request, tmp_path_factory):
    scenario = Scenario(request.param)
    return scenario, plain([frames([scenario.pcap], tmp_path_factory.mktemp("whole"))], scenario.settings)


def test_a_kill_between_any_two_batches_and_any_order_of_files_change_nothing(story, tmp_path):
    scenario, expected = story
    files = frames([scenario.pcap], tmp_path, roll_bytes=40_000)
    random.Random(8).shuffle(files)
    buckets, shards, rows = {}, {}, []
    for file in files:
        loop = Loop(scenario.settings)  # nothing is known but what was stored
        loop.buckets, loop.shards = dict(buckets), {label: dict(state) for label, state in shards.items()}
        loop.batch([file])
        buckets, shards, rows = loop.buckets, loop.shards, rows + loop.emitted
    last = Loop(scenario.settings)
    last.emitted = rows
    assert len(files) > 1 or scenario.name.startswith("kip516")
    assert without_frames(last.result().json()) == without_frames(expected)


def test_two_agents_with_skewed_clocks_find_the_same(story, tmp_path):
    """Both capture everything; the clock of one is 150 ms behind."""
    scenario, expected = story
    late = tmp_path / "late.pcap"
    late.write_bytes(moved(engines.packets(scenario), by_us=-150_000))
    one = frames([scenario.pcap], tmp_path / "one")
    two = write_frames([late], tmp_path / "two", "default", "second").files
    found = plain([[*one, *two]], scenario.settings)
    assert {f["id"] for f in found["findings"]} == {f["id"] for f in expected["findings"]}


@pytest.mark.parametrize("skew_ms", some([-200, 200]))
def test_two_agents_that_see_a_part_each_find_the_same_however_their_clocks_are_set(story, skew_ms, tmp_path):
    """Every connection is seen by one of them."""
    scenario, expected = story
    head, *rest = engines.packets(scenario)
    parts = ([head], [head])
    for packet in rest:
        parts[ports(packet) % 2].append(packet)
    one, two = tmp_path / "one.pcap", tmp_path / "two.pcap"
    one.write_bytes(b"".join(parts[0]))
    two.write_bytes(moved(parts[1], by_us=1000 * skew_ms))
    first = write_frames([one], tmp_path / "first", "default", "one").files
    second = write_frames([two], tmp_path / "second", "default", "two").files
    found = plain([second, first], scenario.settings)
    assert {f["id"] for f in found["findings"]} == {f["id"] for f in expected["findings"]}
    assert {(t["name"], t["topic_id"]) for t in found["topics"]} == {
        (t["name"], t["topic_id"]) for t in expected["topics"]
    }


def ports(packet):
    """Both ports of a TCP segment over IPv4 in Ethernet, added up: the same in both directions."""
    begin = 30 + (packet[30] & 15) * 4
    return sum(struct.unpack_from(">HH", packet, begin))


@pytest.mark.parametrize(
    ("name", "factor"),
    some(
        [
            ("zk28-healthy", 100),
            ("zk28-recreate", 10),
            ("zk27-to-28-ids-appear", 1000),
            ("kraft4-snapshot", 1000),
            ("two-clusters-one-wire", 100),
        ],
        each=2,
    ),
)
def test_nothing_is_alleged_when_the_same_takes_longer(name, factor, tmp_path):
    """So the graces of brokers, of clients and of a roll pass; orders wait in queues for minutes."""
    assert grave(slowed(name, tmp_path, factor=factor)) == []


@pytest.mark.parametrize("name", some(["zk28-recreate", "kraft4-snapshot"]))
def test_nothing_is_alleged_when_nothing_is_heard_for_two_hours(name, tmp_path):
    assert grave(slowed(name, tmp_path, hole_us=7200 * 1_000_000)) == []


def test_clients_that_keep_a_dead_id_longer_than_their_grace_are_told_of_and_no_others(tmp_path):
    """Ten times as slow: fifteen minutes go by. The others move on within seconds, now within minutes."""
    found = slowed("zk39-stubborn-client", tmp_path, factor=10)
    stale = [finding for finding in found if finding["code"] == "TID005"]
    assert {client for finding in stale for client in finding["client_ids"]} == STUBBORN
    assert {topic_id for finding in stale for topic_id in finding["topic_ids"]} == {"Bz7Mz4FoRz2GQ0Bvb_y--Q"}
    assert {finding["code"] for finding in found if finding["kind"] in GRAVE} == {"FET001", "TID005"}


def test_a_broker_that_keeps_a_dead_id_is_told_of_and_those_that_moved_on_are_not(tmp_path):
    found = slowed("kraft4-stale-broker", tmp_path, factor=10)
    stale = [finding for finding in found if finding["code"] == "TID017"]
    assert [finding["brokers"] for finding in stale] == [[4]]
    assert [finding["brokers"] for finding in found if finding["code"] == "LOG003"] == [[4]]
    misled = [finding for finding in found if finding["code"] == "TID005"]
    assert {client for finding in misled for client in finding["client_ids"]} == {"c-lost", "p-lost"}


def test_clusters_that_have_one_address_after_each_other_are_judged_as_if_each_was_alone(tmp_path):
    """The same ports, broker ids, topic names and controller epochs; other releases: 2.8, and 3.9 with a fault."""
    names = ("zk28-healthy", "zk39-inconsistent-id")
    alone = [plain([frames([Scenario(name).pcap], tmp_path / name)]) for name in names]
    both = plain([frames([Scenario(name).pcap for name in names], tmp_path / "both")])
    for row in alone[0]["topics"]:
        if row["state"] == "current":  # no address leads to that cluster any more
            row["state"] = "former"
    for table in ("topics", "clusters"):
        assert told_of(both, table) == sorted(told_of(alone[0], table) + told_of(alone[1], table))
    changed = [row for row in both["findings"] if row["code"] == "CLU004"]
    ports = ("127.0.1.1:19091", "127.0.1.2:19092", "127.0.1.3:19093")
    assert sorted(row["summary"].split()[1] for row in changed) == [*ports]
    both["findings"] = [row for row in both["findings"] if row["code"] != "CLU004"]
    assert told_of(both, "findings") == sorted(told_of(alone[0], "findings") + told_of(alone[1], "findings"))


def told_of(result, table):
    """Rows but for when they were seen last; a finding by its sentence."""
    if table == "findings":
        return sorted((row["id"], row["summary"]) for row in result[table] if row["kind"] != "visibility")
    return sorted(json.dumps({**row, "last_seen": None}, sort_keys=True) for row in result[table])


STUBBORN = {"stubborn-session", "stubborn-sessionless"}


def slowed(name, folder, **how):
    """Findings of a capture whose packets came at other times."""
    slow = folder / "slow.pcap"
    slow.write_bytes(moved(engines.packets(Scenario(name)), **how))
    return plain([frames([slow], folder / "frames")])["findings"]


def grave(findings):
    """But for CLI006: that a client is refused for long is true of a capture that takes longer."""
    return [one["summary"] for one in findings if one["kind"] in GRAVE and one["code"] != "CLI006"]


def moved(packets, *, by_us=0, factor=1, hole_us=0):
    """The same packets at other times; a hole comes after the first half."""
    head, *rest = packets
    first = None
    out = [head]
    for number, packet in enumerate(rest):
        seconds, micros = struct.unpack_from("<II", packet)
        at = seconds * 1_000_000 + micros
        first = at if first is None else first
        at = first + (at - first) * factor + by_us + (hole_us if number >= len(rest) // 2 else 0)
        out.append(struct.pack("<II", *divmod(at, 1_000_000)) + packet[8:])
    return b"".join(out)


def test_a_draft_that_contradicts_itself_names_both_requests_and_the_broker_that_is_stale(tmp_path):
    scenario = Scenario("kip516-draft-contradiction")
    result = plain([frames([scenario.pcap], tmp_path)], scenario.settings)
    found = {finding["code"]: finding for finding in result["findings"]}
    assert {"DRF001", "TID006", "TID018"} <= set(found)
    assert {side["api"] for side in found["TID006"]["sides"]} == {"LeaderAndIsr", "UpdateMetadata"}
    assert {side["connection"].rpartition(">")[2] for side in found["TID018"]["sides"]} == {"10.51.6.2:9092"}
    assert found["TID018"]["brokers"] == [2]
    assert found["TID006"]["topic"] == found["TID018"]["topic"] == "orders"
