"""An agent whose clock is wrong says nothing of the others: what a monitor believes, and what a replay does."""

import time

import pytest

from wirecheck.judge.thresholds import Settings as JudgeSettings
from wirecheck.streaming.steps.follow_step import Bucket
from wirecheck.streaming.steps.settings import Settings

NOW_NS = 1_800_000_000_000_000_000
SECOND_NS = 1_000_000_000
SILENT_NS = JudgeSettings().agent_silent_s * SECOND_NS


@pytest.mark.parametrize("ahead_ns", [-11 * 365 * 86_400 * SECOND_NS, -SECOND_NS, 0, SILENT_NS])
def test_a_clock_that_may_be_right_is_believed(monkeypatch, ahead_ns):
    monkeypatch.setattr(time, "time_ns", lambda: NOW_NS)
    assert Bucket("L", 0, Settings(live=True)).believed(NOW_NS + ahead_ns) == NOW_NS + ahead_ns


@pytest.mark.parametrize("ahead_ns", [SILENT_NS + 1, 86_400 * SECOND_NS, 11 * 365 * 86_400 * SECOND_NS])
def test_a_clock_ahead_by_more_shows_a_monitor_nothing_beyond_now(monkeypatch, ahead_ns):
    monkeypatch.setattr(time, "time_ns", lambda: NOW_NS)
    assert Bucket("L", 0, Settings(live=True)).believed(NOW_NS + ahead_ns) == NOW_NS
    assert Bucket("L", 0, Settings()).believed(NOW_NS + ahead_ns) == NOW_NS + ahead_ns  # a capture has its own time
