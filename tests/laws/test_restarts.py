"""A job may end and begin again between any two batches, and judge one twice; its tables are compacted meanwhile."""

from functools import partial

import pytest

from bench.chaos import PROMISED
from bench.month_traffic import planted
from tests.depth import some
from tests.laws import restarts
from tests.laws.restarts import RUN, Ways, as_a_monitor, compared, of_capture, of_month
from tests.scenarios.engines import Scenario
from wirecheck.streaming.run.metrics_page import Page
from wirecheck.streaming.run.monitor import read_back
from wirecheck.streaming.steps.plain_loop import Loop
from wirecheck.streaming.store.batches import Tables
from wirecheck.streaming.store.result_tables import from_ipc

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


def samples(page):
    """What it shows that is not 0, but for what is about this process and its times."""
    every = (sample for family in page.collect() for sample in family.samples)
    found = {(one.name, *one.labels.items()): one.value for one in every}
    return {name: value for name, value in found.items() if value and PROMISED.match(name[0])}


@pytest.mark.parametrize("name", ["kraft-clients-zoo", *some(["zk28-recreate", "zk39-stubborn-client"])])
def test_a_page_that_is_read_back_shows_what_it_showed_before(name, tmp_path):
    """After any batch. Each of its tables has rows."""
    batches = of_capture(Scenario(name).pcap, tmp_path)
    loop, page, tables = (
        Loop(as_a_monitor([file for files in batches for file in files])),
        Page(),
        Tables(tmp_path, RUN),
    )
    for number, files in enumerate(batches):
        loop.batch(files)
        written = {row.route: from_ipc(row.cell) for row in loop.emitted}
        loop.emitted.clear()
        tables.write(written, number)
        page.take(written)
        again = Page()
        read_back(again, str(tmp_path), RUN)
        assert samples(again) == samples(page)
    assert all(page.open.values())
    assert page.lags


def test_a_life_that_forgets_is_told_by_what_differs(monkeypatch):
    """The check can fail."""

    def forgetful(life, state, out, settings):
        state.unlink(missing_ok=True)
        restarts_live(life, state, out, settings)

    restarts_live = restarts.live
    monkeypatch.setattr(restarts, "live", forgetful)
    compared("forgetful", partial(of_capture, Scenario("kraft4-wrong-cluster").pcap), [1], ways := Ways())
    assert ways.differing
