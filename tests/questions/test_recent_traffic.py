"""The last seconds of traffic that goes on."""

from pathlib import Path

import pytest

from wirecheck.capture.agent.offline_agent import read_frames
from wirecheck.decode.show.message_lines import followed
from wirecheck.questions.recent_traffic import RecentTraffic
from wirecheck.questions.traffic import Traffic

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/zk39-inconsistent-id/capture.pcap.gz"


def batches():
    return list(followed(read_frames([EXAMPLE], batch_bytes=1 << 16)))


def test_without_a_window_all_is_counted_as_errors_and_diff_count_it():
    recent = RecentTraffic(None)
    for batch in batches():
        recent.add(batch)
    whole, traffic = Traffic().read(read_frames([EXAMPLE])), recent.traffic()
    assert {call: one.count for call, one in traffic.calls.items()} == {
        call: one.count for call, one in whole.calls.items()
    }
    assert {key: one.servers for key, one in traffic.failures.items()} == {
        key: one.servers for key, one in whole.failures.items()
    }
    assert recent.seconds == pytest.approx((whole.last_ns - whole.first_ns) / 1e9, abs=0.01)


def test_what_is_older_than_the_window_is_forgotten():
    recent, most = RecentTraffic(5), 0
    for batch in batches():
        recent.add(batch)
        most = max(most, len(recent._slots))
    assert most <= 5
    assert recent.seconds == 5
    assert all(one.last_ns > recent.newest_ns - 6e9 for one in recent.traffic().failures.values())
    everything = RecentTraffic(3600)
    for batch in batches():
        everything.add(batch)
    windows = [sum(one.count for one in each.traffic().calls.values()) for each in (recent, everything)]
    assert 0 < windows[0] < windows[1]


def test_nothing_is_nothing():
    recent = RecentTraffic(5)
    assert (recent.traffic().calls, recent.traffic().failures, recent.seconds) == ({}, {}, 1.0)
