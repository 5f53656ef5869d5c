"""The month's traffic: every step other connections, every day other clients and a topic created again."""

import itertools
import json
import time
from threading import Thread

import pyarrow.compute as pc
import pytest

from bench import paced_monitor
from bench.month import rows
from bench.month_run import Day, Month
from bench.month_traffic import (
    BETWEEN,
    CONNECTIONS,
    DAY_S,
    ID,
    MEASURED,
    PORTS,
    Traffic,
    begun_anew,
    plan,
    planted,
    stale,
)

STEPS = list(plan(30))


@pytest.fixture(scope="module")
def traffic(tmp_path_factory):
    return Traffic(tmp_path_factory.mktemp("month"))


def clients(table):
    pairs = zip(table["src_ip"].to_pylist(), table["src_port"].to_pylist(), strict=True)
    return {pair for pair in pairs if pair[1] >= PORTS}


def test_two_days_are_measured_and_both_have_a_fault_planted():
    counts = [sum(step.day == day for step in STEPS) for day in range(30)]
    assert [day for day, count in enumerate(counts) if count == MEASURED] == [1, 29]
    assert set(counts) == {MEASURED, BETWEEN}
    assert stale(1)
    assert stale(29)
    assert [(a.end_s - b.begin_s) for a, b in itertools.pairwise(STEPS) if a.day == b.day] == [0] * 194
    assert all(step.end_s - step.begin_s == DAY_S // counts[step.day] for step in STEPS)


def test_no_connection_of_one_file_is_there_in_another(traffic):
    seen = [clients(traffic.frames_of(STEPS[at])) for at in (0, 1, 60, -1)]
    assert [len(some) for some in seen] == [CONNECTIONS] * 4
    assert len(set().union(*seen)) == 4 * CONNECTIONS


def test_frames_lie_within_their_time(traffic):
    for step in (STEPS[0], STEPS[7], STEPS[90], STEPS[-1]):
        found = pc.min_max(traffic.frames_of(step)["ts_ns"]).as_py()
        assert step.begin_s * 10**9 <= found["min"] < found["max"] < step.end_s * 10**9


def test_clients_are_new_every_day_and_a_topic_has_another_id(traffic):
    first, third = (next(step for step in STEPS if step.day == day) for day in (0, 2))
    today, later = traffic.payload(first), traffic.payload(third)
    assert len(today) == len(later)
    assert b"con02mer-" in later
    assert b"con02mer-" not in today
    for topic in (0, 1, 2):
        assert ID + bytes([topic]) not in later


def test_what_is_planted_is_there(traffic):
    late = next(step for step in STEPS if step.day == 1 and step.late)
    said = traffic.payload(late)
    fresh = ID[:-1] + bytes([0xE1, 1])
    assert b"orders-1" + fresh in said  # what servers say
    assert ID + bytes([1]) in said  # what clients fetch by
    assert b"orders-1" + ID + bytes([1]) not in said
    assert begun_anew(said.replace(b"orders-1" + fresh, b"o" * 8 + fresh), b"orders-1" + fresh) != said
    assert {("TID001", "orders-1"), ("TID005", "orders-1")} <= planted(2)


def test_a_monitor_keeps_house_when_it_is_asked_to_and_as_at_that_time(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(paced_monitor.resources, "tidy", lambda *about: asked.append(about))
    clock = tmp_path / "clock"
    stopping = paced_monitor.Event()
    thread = Thread(target=paced_monitor.maintain_tables, args=(clock, "plan", "say", stopping))
    thread.start()
    paced_monitor.at(clock, 1234.5)
    until = time.monotonic() + 20
    while clock.exists() and time.monotonic() < until:
        time.sleep(0.01)
    stopping.set()
    thread.join()
    assert asked == [("plan", "say", 1234.5)]
    assert json.loads(clock.with_suffix(".done").read_text()) >= 0


def test_a_finding_that_only_one_of_both_made_is_told(tmp_path):
    """What is measured of the days is told before, and takes nothing from the verdict."""
    month = Month(tmp_path, None, [Day(memory_mb={"java": 1}), Day(memory_mb={"java": 1})], [(1, 1), (1, 1)])
    judged, expected = ({"findings": [{"id": one, "code": "TID001", "topic": one}], "coverage": {"frames": 7}}
                      for one in ("a", "b"))  # fmt: skip
    found = {line["name"].rpartition(": ")[2]: line for line in rows(month, judged, expected)}
    assert found["findings other than the plain loop's"]["value"] == 2
    assert found["frames counted other than by the plain loop"]["met"]
    assert found["memory of java, last"]["met"]
