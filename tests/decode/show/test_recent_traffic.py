"""The last seconds of traffic that goes on."""

from pathlib import Path

import pytest

from wirecheck.capture.agent.offline_agent import read_frames
from wirecheck.decode.show.message_lines import followed
from wirecheck.decode.show.recent_traffic import RecentTraffic
from wirecheck.decode.show.traffic import counted

EXAMPLE = Path(__file__).resolve().parents[3] / "examples/zk39-inconsistent-id/capture.pcap.gz"


def batches():
    return list(followed(read_frames([EXAMPLE], batch_bytes=1 << 16)))


def test_without_a_window_all_is_counted_as_errors_and_diff_count_it():
    recent = RecentTraffic(None)
    for batch in batches():
        recent.add(batch)
    whole = counted(read_frames([EXAMPLE]))
    assert sum(one.requests for one in recent.talkers()) == sum(calls.count for calls in whole.calls.values())
    assert sum(one.times for one in recent.errors()) == sum(failed.count for failed in whole.failures.values())
    assert recent.seconds == pytest.approx((whole.last_ns - whole.first_ns) / 1e9, abs=0.01)
    dock = {one.api: one for one in recent.talkers() if one.client_id == "dock"}["Produce"]
    assert (dock.versions, dock.errors > 0, dock.p99_ms > 0, set(dock.servers) <= {"1", "2", "3"}) == (
        {11}, True, True, True,
    )  # fmt: skip


def test_what_is_older_than_the_window_is_forgotten():
    recent, most = RecentTraffic(5), 0
    for batch in batches():
        recent.add(batch)
        most = max(most, len(recent._slots))
    assert most <= 5
    assert recent.seconds == 5
    assert all(error.last_ns > recent.newest_ns - 6e9 for error in recent.errors())
    everything = RecentTraffic(3600)
    for batch in batches():
        everything.add(batch)
    assert 0 < sum(t.requests for t in recent.talkers()) < sum(t.requests for t in everything.talkers())


def test_nothing_is_nothing():
    recent = RecentTraffic(5)
    assert (recent.talkers(), recent.errors(), recent.seconds) == ([], [], 1.0)
