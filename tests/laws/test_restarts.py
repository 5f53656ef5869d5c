"""A job may end and begin again between any two batches, and judge one twice; its tables are compacted meanwhile."""

from functools import partial

import pytest

from bench.month_traffic import planted
from tests.depth import some
from tests.laws import restarts
from tests.laws.restarts import Ways, compared, of_capture, of_month
from tests.scenarios.engines import Scenario

DAYS = range(3, 6)
"""Of the month: four steps each; on the last of them clients keep an old id."""


@pytest.mark.parametrize("name", some(["zk28-recreate", "zk39-inconsistent-id"]))
def test_what_is_found_is_what_a_replay_finds(name):
    line = compared(name, partial(of_capture, Scenario(name).pcap), [1], ways := Ways())
    assert line["findings"] >= 1
    assert ways.lives > 3
    assert ways.cut_off
    assert ways.compacted
    assert not ways.differing


def test_so_are_the_planted_faults_of_some_days_of_a_month():
    line = compared("days", partial(of_month, DAYS), [3], ways := Ways(), ["ids"])
    assert {("TID001", "orders-4"), ("TID005", "orders-5")} <= planted(max(DAYS) + 1) & set(line["found"])
    assert ways.cut_off
    assert not ways.differing


def test_a_life_that_forgets_is_told_by_what_differs(monkeypatch):
    """The check can fail."""

    def forgetful(life, state, out, settings):
        state.unlink(missing_ok=True)
        restarts_live(life, state, out, settings)

    restarts_live = restarts.live
    monkeypatch.setattr(restarts, "live", forgetful)
    compared("forgetful", partial(of_capture, Scenario("kraft4-wrong-cluster").pcap), [1], ways := Ways())
    assert ways.differing
