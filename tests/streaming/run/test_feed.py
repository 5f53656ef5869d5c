"""A batch's files are written down before it runs, and a batch that is repeated is made of the same."""

from dataclasses import replace
from threading import Thread
from time import monotonic, sleep

import pytest

from wirecheck.streaming import checkpoint
from wirecheck.streaming.run import feed
from wirecheck.streaming.run.feed import Ended
from wirecheck.streaming.run.plan import Plan
from wirecheck.streaming.store.storage import local


@pytest.fixture
def plan(tmp_path):
    (tmp_path / "frames").mkdir()
    return Plan(
        str(tmp_path / "frames"), str(tmp_path / "out"), str(tmp_path / "checkpoint"), interval_s=0, max_batch_bytes=20
    )


def put(plan, *numbers):
    for number in numbers:
        (local(plan.frames) / f"a-{number:010d}.parquet").write_bytes(bytes(10))


def opened(plan, committed, monkeypatch):
    monkeypatch.setattr(checkpoint, "committed", lambda _: committed)
    return feed.opened(plan, lambda: None)


def numbers(plan, batch_id):
    return [int(name[-18:-8]) for name in checkpoint.read_files(plan.checkpoint, batch_id).files]


def test_batches_follow_each_other_and_a_restart_goes_on_behind_the_last(plan, monkeypatch):
    put(plan, 1, 2, 3)
    source = opened(plan, -1, monkeypatch)
    source(0)
    assert (numbers(plan, 0), source.running, source.waiting()) == ([1, 2], (2, 20), (3, 30))
    source.judged()
    assert source.waiting() == (1, 10)
    put(plan, 4)
    source = opened(plan, 0, monkeypatch)
    source(1)
    assert numbers(plan, 1) == [3, 4]


def test_a_batch_that_is_repeated_is_made_of_the_same_files(plan, monkeypatch):
    put(plan, 1)
    opened(plan, -1, monkeypatch)(0)
    put(plan, 2)
    source = opened(plan, -1, monkeypatch)
    source(0)
    source(1)
    assert (numbers(plan, 0), numbers(plan, 1)) == ([1], [2])


def test_a_batch_of_which_half_was_written_down_is_chosen_anew(plan, monkeypatch):
    put(plan, 1)
    opened(plan, -1, monkeypatch)(0)
    (local(plan.checkpoint) / checkpoint.place(0)).write_text("{")
    opened(plan, -1, monkeypatch)(0)
    assert numbers(plan, 0) == [1]


def test_it_waits_until_a_file_comes(plan, monkeypatch):
    source = opened(plan, -1, monkeypatch)
    asked = Thread(target=source, args=(0,))
    asked.start()
    until = monotonic() + 20
    while not source.waits and monotonic() < until:
        sleep(0.01)
    put(plan, 1)
    source.arrivals.look(everywhere=True)  # a new agent is found within seconds; not in this test
    asked.join(20)
    assert (numbers(plan, 0), source.waits) == ([1], False)
    assert source.waited_s[0] > 0


def test_a_batch_begins_no_sooner_after_the_last_than_is_asked_for(plan, monkeypatch):
    put(plan, 1, 2, 3, 4)
    source = opened(replace(plan, interval_s=0.3), -1, monkeypatch)
    began = monotonic()
    source(0)
    source(1)
    assert monotonic() - began >= 0.3
    assert source.waited_s[1] <= monotonic() - began
    put(plan, 5)
    source = opened(replace(plan, interval_s=3600, once=True), 1, monkeypatch)
    source(2)
    assert numbers(plan, 2) == [5]


def test_where_nothing_waited_half_the_interval_is_enough(plan, monkeypatch):
    """Else a batch that took longer than the interval once would make all later ones as late."""
    put(plan, 1)
    source = opened(replace(plan, interval_s=4), -1, monkeypatch)
    source(0)
    began = monotonic()
    asked = Thread(target=source, args=(1,))
    asked.start()
    while not source.waits and monotonic() < began + 20:
        sleep(0.01)
    put(plan, 2)
    asked.join(20)
    assert 1.9 <= monotonic() - began < 4
    assert numbers(plan, 1) == [2]


@pytest.mark.parametrize("once", [True, False])
def test_an_end_leaves_a_batch_that_waits_for_the_next_start(plan, once, monkeypatch):
    put(plan, 1)
    source = opened(replace(plan, once=once), -1, monkeypatch)
    source(0)
    put(plan, 2) if once else None
    source.ending.set()
    with pytest.raises(Ended):
        source(1)
    assert checkpoint.written_down(plan.checkpoint) == [0]


def test_only_the_last_batches_are_kept(plan, monkeypatch):
    source = opened(plan, -1, monkeypatch)
    for number in range(50):
        put(plan, number + 1)
        source.arrivals.look(everywhere=True)
        source(number)
    assert checkpoint.written_down(plan.checkpoint) == list(range(50 - checkpoint.KEPT, 50))


def test_an_agent_that_counts_from_one_again_is_said_once(plan, monkeypatch):
    put(plan, 1, 2, 3)
    opened(plan, -1, monkeypatch)(0)
    opened(plan, 0, monkeypatch)(1)
    source = opened(plan, 1, monkeypatch)
    assert list(source.warnings()) == []
    for number in (2, 3):
        (local(plan.frames) / f"a-{number:010d}.parquet").unlink()
    source = opened(plan, 1, monkeypatch)
    (line,) = source.warnings()
    assert line.startswith("agent a numbers its files from 1 again (up to 1; 3 were read before)")
    assert list(source.warnings()) == []
