"""What a command costs: its own CPU time and that of what it starts, and an error where it fails."""

import os

import pytest

from bench import cost


def test_a_command_has_cost_something():
    assert cost.cost("explain", "TID002").cpu_s > 0
    assert cost.own_s(os.getpid()) > 0
    assert cost.own_s(-1) == 0.0


def test_a_command_that_fails_has_no_figure():
    with pytest.raises(RuntimeError, match="explain ended with 2"):
        cost.cost("explain", "no such code")


def test_a_start_is_left_out(monkeypatch):
    """Three times the frames for three more seconds: a start of ten seconds counts in none of them."""
    runs = {
        cost.SIZES[0]: cost.Run(10_000, cost.Cost(11, 1), cost.Cost(21, 2), 100, 7),
        cost.SIZES[1]: cost.Run(40_000, cost.Cost(14, 3), cost.Cost(27, 4), 400, 8_000_000),
    }
    monkeypatch.setattr(cost, "run", lambda _, size: runs[size])
    found = cost.per_broker("small")
    assert (round(found.agent_cpu), round(found.monitor_cpu), found.agent_mb, found.monitor_mb) == (100, 200, 3, 4)
    assert (round(found.frames_gb_a_day, 4), found.results_mb) == (0.0086, 8.0)
