"""Tables are made smaller beside the query, and nobody waits for it."""

import os
from dataclasses import replace
from pathlib import Path
from threading import Event
from time import monotonic

import pytest

from wirecheck.streaming.run import resources
from wirecheck.streaming.run.plan import Plan
from wirecheck.streaming.run.resources import table_maintenance
from wirecheck.streaming.store.batches import Folders, write
from wirecheck.streaming.store.result_tables import from_ipc, to_ipc


@pytest.fixture
def plan(tmp_path, monkeypatch):
    plan = Plan(str(tmp_path), str(tmp_path / "out"), str(tmp_path / "checkpoint"), retain_s=0)
    monkeypatch.setattr(resources, "run_of", lambda _: "r")
    monkeypatch.setattr(resources, "committed", lambda _: 1)
    for number in (0, 1):
        rows = [{"id": "a", "revision": number + 1, "withdrawn": False}]
        write(from_ipc(to_ipc("topics", rows)), topics(plan), number)
        os.utime(topics(plan).part(number), (1_000_000 + number,) * 2)
    return plan


def topics(plan):
    return Folders(Path(plan.out) / "topics" / "run=r")


def merged(plan):
    return topics(plan).footer(1)[1]


def test_a_pass_runs_beside_whatever_else_does(plan, monkeypatch):
    monkeypatch.setattr(resources, "EVERY_S", 0.01)
    until = monotonic() + 20
    with table_maintenance(plan, pytest.fail):
        while not merged(plan) and monotonic() < until:
            Event().wait(0.01)
    assert topics(plan).rows(1)["revision"].to_pylist() == [2]


def test_an_end_does_not_wait_for_a_pass(plan, monkeypatch):
    begun, never = Event(), Event()
    monkeypatch.setattr(resources, "EVERY_S", 0)
    monkeypatch.setattr(resources, "LAST_S", 0.01)
    monkeypatch.setattr(resources, "tidy", lambda *_: (begun.set(), never.wait(20)))
    began = monotonic()
    with table_maintenance(plan, pytest.fail):
        assert begun.wait(10)
    assert monotonic() - began < 15
    never.set()


def test_a_pass_that_fails_is_told_and_tried_again(plan):
    part, said = topics(plan).part(0), []
    before = part.read_bytes()
    part.write_bytes(b"no parquet")
    os.utime(part, (1_000_000,) * 2)
    resources.tidy(plan, said.append)
    (line,) = said
    assert line.startswith("tables were not compacted: ")
    assert "\n" not in line
    part.write_bytes(before)
    os.utime(part, (1_000_000,) * 2)
    resources.tidy(plan, pytest.fail)
    assert topics(plan).rows(1)["revision"].to_pylist() == [2]


def test_cards_are_made_again_and_again_and_at_the_end_and_their_failure_stops_nothing(plan, monkeypatch):
    made, said = [], []

    def cards():
        made.append(len(made))
        if len(made) == 1:
            raise ValueError("odd bytes")

    monkeypatch.setattr(resources, "CARDS_EVERY_S", 0.01)
    until = monotonic() + 20
    with table_maintenance(replace(plan, once=True), said.append, None, cards):
        while len(made) < 3 and monotonic() < until:
            Event().wait(0.01)
        during = len(made)
    assert len(made) > during >= 3, "the last ones are of all batches"
    (failed,) = (text for text in said if "cards" in text)
    assert failed.startswith("the table of cards was not written: ValueError in ")
