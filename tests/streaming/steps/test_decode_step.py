"""Exchanges to claims: a step that runs for months keeps nothing of a batch that is over."""

import gc
import tracemalloc
from itertools import pairwise
from statistics import median

import numpy as np

from tests.judge.lab import Lab, exchanged
from tests.judge.test_checks import CASES
from wirecheck.decode.connection.exchanges import Connection, Exchanges, Gap
from wirecheck.decode.dialect import read_exchanges
from wirecheck.decode.message import Messages
from wirecheck.decode.peer import Peer
from wirecheck.judge.claims.batch import Batch
from wirecheck.streaming.steps import decode_step
from wirecheck.streaming.steps.cells import from_cell, to_cell
from wirecheck.streaming.steps.decode_step import Claimed, decode_row, stated_by
from wirecheck.streaming.steps.follow_step import Bucket
from wirecheck.streaming.steps.pack_step import pack_files
from wirecheck.streaming.steps.settings import AgentFiles, Settings
from wirecheck.streaming.steps.tagged import CLAIMS, EXCHANGES

PASSES, LEFT_BYTES = 5, 4096
"""A batch takes megabytes; of Python's own caches so much may grow."""


def test_nothing_of_a_batch_outlives_it(frames_files):
    settings = Settings(buckets=1, agents={"a": AgentFiles()})
    cells = [row.cell for rows in pack_files(map(str, frames_files), settings) for row in rows]
    routes = [decode_row(row, settings).route for row in Bucket("L", 0, settings).receive(cells)]
    gc.collect()
    assert CLAIMS in routes
    assert Batch not in map(type, gc.get_objects())  # isinstance would look through weak proxies of what is gone


def test_batches_leave_no_memory_behind(frames_files):
    """Not even of what Python does not count as objects: the numbers that compiled code works with."""
    settings = Settings(buckets=1, agents={"a": AgentFiles()})

    def batch():
        cells = [row.cell for rows in pack_files(map(str, frames_files[:1]), settings) for row in rows]
        assert [decode_row(row, settings) for row in Bucket("L", 0, settings).receive(cells)]
        gc.collect()

    tracemalloc.start()
    try:
        for _ in range(PASSES):  # numpy keeps small blocks of each size that it meets: until it has met them
            batch()
        held = [tracemalloc.get_traced_memory()[0]]
        for _ in range(PASSES):
            batch()
            held.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    left = [after - before for before, after in pairwise(held)]
    assert median(left) < LEFT_BYTES  # a leak is in every pass; threads of other tests allocate in one


def claims_of(row, settings):
    return from_cell(decode_row(row, settings).cell, Claimed).stated().claims


def test_claims_are_the_same_out_of_a_cell(frames_files):
    """The local engine judges them without one, so none may have a tuple where its bytes make a list."""
    settings = Settings(buckets=1, agents={"a": AgentFiles()})
    cells = [row.cell for rows in pack_files(map(str, frames_files), settings) for row in rows]
    rows = [row for row in Bucket("L", 0, settings).receive(cells) if row.route == EXCHANGES]
    for row in rows:
        made = stated_by(from_cell(row.cell, Exchanges, Messages, Connection, Gap, Peer), settings)
        assert repr(Claimed.of(made).stated()) == repr(made)
    assert rows


def test_an_exchange_that_raises_is_set_aside_by_name_and_all_others_are_claimed(frames_files, monkeypatch):
    settings = Settings(buckets=1, exchanges=True, agents={"a": AgentFiles()})
    cells = [row.cell for rows in pack_files(map(str, frames_files[:1]), settings) for row in rows]
    cell = max(
        (row for row in Bucket("L", 0, settings).receive(cells) if row.route == EXCHANGES), key=lambda r: len(r.cell)
    )
    exchanges = from_cell(cell.cell, Exchanges, Messages, Connection, Gap, Peer)
    culprit = len(exchanges) // 3
    key, number = (
        column[exchanges.request[culprit]] for column in (exchanges.messages.key, exchanges.messages.correlation_id)
    )
    others = np.flatnonzero(
        (exchanges.messages.key[exchanges.request] != key)
        | (exchanges.messages.correlation_id[exchanges.request] != number)
    )
    without = cell._replace(cell=to_cell(exchanges.only(others)))
    expected = claims_of(without, settings)

    def raising(exchanges, *rest):
        messages = exchanges.messages
        if ((messages.key == key) & (messages.correlation_id == number)).any():
            raise IndexError(number)
        return read_exchanges(exchanges, *rest)

    monkeypatch.setattr(decode_step, "read_exchanges", raising)
    found = claims_of(cell, settings)
    marks = [claim for claim in found if claim.kind == "mark"]
    assert [claim["what"] for claim in marks] == ["input_errors"] * len(marks)
    assert all("IndexError in test_decode_step.py" in claim["reason"] for claim in marks)
    assert sum(claim.tally["count"] for claim in marks) == len(exchanges) - len(others)
    assert facts_of(claim for claim in found if claim.kind != "mark") == facts_of(expected)


def test_where_one_raises_a_request_is_claimed_beside_the_one_that_it_waits_for(monkeypatch):
    lab = Lab()
    lab.metadata(0)
    CASES["WIR007", "near_miss__behind_a_request_that_may_wait"](lab)
    whole, _ = exchanged(*lab.talks)
    expected = facts_of(claim for claim in stated_by(whole, Settings()).claims if claim.kind == "unanswered")
    first = whole.connections[0].name

    def raising(exchanges, *rest):
        if any(each.name == first for each in exchanges.connections):
            raise IndexError(first)
        return read_exchanges(exchanges, *rest)

    monkeypatch.setattr(decode_step, "read_exchanges", raising)
    found = facts_of(claim for claim in stated_by(whole, Settings()).claims if claim.kind == "unanswered")
    assert found == expected != []


def facts_of(claims):
    """What is stated and counted; when it was heard first and last depends a little on how cells are cut."""
    return sorted(repr((claim.kind, claim.key, sorted(claim.tally.items()), sorted(claim.peak))) for claim in claims)
