"""Judged without Spark: the plain loop's result, whatever is judged together, and the tables that a replay leaves."""

import os
from dataclasses import replace
from itertools import product
from types import SimpleNamespace
from unittest.mock import patch

import pytest

from tests.depth import DEEP, some
from tests.scenarios.engines import Scenario
from wirecheck.capture.agent.offline_agent import read_frames, write_frames
from wirecheck.judge.checks import evaluate
from wirecheck.judge.checks.evaluate import rows_of as rows_of_subject
from wirecheck.judge.ledger.ledger import Ledger
from wirecheck.judge.results.result_table import rows_of
from wirecheck.judge.revisions import judge
from wirecheck.judge.revisions.judge import Judge
from wirecheck.streaming.run import local_replay
from wirecheck.streaming.run.local_replay import LocalReplay, batches_of, of_files
from wirecheck.streaming.steps.plain_loop import Loop
from wirecheck.streaming.steps.settings import Settings
from wirecheck.streaming.store.run_result import Result


@pytest.fixture(scope="module")
def expected(frames_files):
    loop = Loop(Settings())
    loop.batch(frames_files)
    return loop.result().json()


def test_files_that_come_one_by_one_give_what_all_give_at_once(frames_files, expected):
    run = LocalReplay(Settings())
    for file in frames_files:
        run.judge([file])
    assert run.result().json() == expected


@pytest.mark.parametrize(
    ("name", "messages_together"),
    some(
        [
            *product(["two-clusters-one-wire"], [40, 50_000]),
            *product(["zk28-lossy-network", "zk28-sasl-tls"], [50_000, 40]),
        ],
        each=3,
    ),
)
def test_a_capture_gives_what_its_frames_give(name, messages_together, tmp_path, monkeypatch):
    """However much of it is read, and judged, at a time."""
    monkeypatch.setattr(local_replay, "MESSAGES_TOGETHER", messages_together)
    files = write_frames([Scenario(name).pcap], tmp_path / "frames", "default").files
    loop = Loop(replace(Settings(), exchanges=True))
    loop.batch(files)
    run = LocalReplay(replace(Settings(), exchanges=True))
    for table in read_frames([Scenario(name).pcap], "default", batch_bytes=1 << 16):
        run.add(table)
    assert run.messages
    assert run.result().json() == loop.result().json()
    told = (rows_of(run._latest.tables()["exchanges"]), loop.rows("exchanges"))
    assert sorted(map(str, told[0])) == sorted(map(str, told[1])) != []


BOUNDS = {
    "subjects": {"most_topics": 3, "most_clients": 3, "most_unanswered": 2, "most_ids_of_host": 2},
    "connections": {"most_connections": 2},
    "claims": {"most_claims": 4},
    "findings": {"most_findings": 1},
    "ageing": {"horizon_s": 20, "ageing_s": 7},
}


@pytest.mark.parametrize("bound", BOUNDS)
def test_what_is_judged_once_comes_out_as_judged_with_each_batch(bound, monkeypatch):
    name = "zk39-stubborn-client"
    settings = replace(Settings(), judge=replace(Settings().judge, **BOUNDS[bound]))
    monkeypatch.setattr(local_replay, "MESSAGES_TOGETHER", 800)
    once, times = judged(name, settings)
    monkeypatch.setattr(Judge, "may_wait", lambda _: False)
    always, more_times = judged(name, settings)
    assert once.json() == always.json()
    assert times < more_times or (bound, times) == ("claims", more_times)  # which each batch has too many of


WITHOUT_ROWS = [*product(["none", *BOUNDS], ["zk39-stubborn-client", "zk28-lossy-network"])]
"""Each bound of one of the two in turn; in the deep profile of both."""


@pytest.mark.parametrize(("bound", "name"), WITHOUT_ROWS if DEEP else [*WITHOUT_ROWS[::4], *WITHOUT_ROWS[3::4]])
def test_a_verdict_is_the_same_without_the_rows_that_it_does_not_have(bound, name, monkeypatch):
    """States and descriptions of topics, and coverage by connection; whatever leaves meanwhile."""
    monkeypatch.setattr(local_replay, "MESSAGES_TOGETHER", 800)
    judge_settings = replace(Settings().judge, **BOUNDS.get(bound, {}))
    found = [
        judged(name, replace(Settings(), judge=replace(judge_settings, detail_rows=kept, agreement_rows=kept)))[0]
        for kept in (1, 0)
    ]
    assert found[0].json() == found[1].json()
    assert not found[1].rows["partitions"]
    together = bound != "connections"  # of too many, some come back
    assert (len(found[1].rows["coverage"]) < len(found[0].rows["coverage"])) == together


def test_connections_that_wait_as_bytes_come_out_the_same(monkeypatch):
    monkeypatch.setattr(local_replay, "MESSAGES_TOGETHER", 400)
    once, _ = judged("zk39-stubborn-client", Settings())
    monkeypatch.setattr(judge, "MANY_CONNECTIONS", 0)
    kept: list[int] = []

    def put_away(ledger, *about, _put_away=Ledger.put_away):
        _put_away(ledger, *about)
        kept.append(sum(len(shard.put_away) for shard in ledger.loaded.values()))

    with patch.object(Ledger, "put_away", put_away):
        away, _ = judged("zk39-stubborn-client", Settings())
    assert away.json() == once.json()
    assert max(kept) > 10


def judged(name, settings):
    """The result of a capture, and how often a subject was judged."""
    run, times = LocalReplay(settings), []
    with patch.object(evaluate, "rows_of", side_effect=lambda *about: times.append(1) or rows_of_subject(*about)):
        for table in read_frames([Scenario(name).pcap], "default", batch_bytes=1 << 14):
            run.add(table)
        run.finish()
    return run.result(), len(times)


def test_what_is_told_meanwhile_is_what_was_read_so_far(frames_files, expected):
    run = LocalReplay(Settings())
    for file in frames_files:
        run.judge([file])
        run.result()
    assert run.result().json() == expected


def test_the_tables_give_the_same_result_to_who_reads_them_later(frames_files, expected, tmp_path):
    run = of_files(frames_files, Settings())
    for batch in batches_of(frames_files):
        run.judge(batch)
    run.write(tmp_path)
    assert Result.latest(tmp_path).json() == run.result().json() == expected


def test_each_labels_connections_end_with_its_own_agents(tmp_path):
    """Two clusters' agents in two folders: nothing comes for the first label any more when the second's file comes."""
    files = [
        *write_frames([Scenario("kip516-draft").pcap], tmp_path / "east", "east", agent="one").files,
        *write_frames([Scenario("two-clusters-one-wire").pcap], tmp_path / "west", "west", agent="two").files,
    ]
    both = of_files(files, Settings())
    for file in files:
        both.judge([file])
    for file, label in zip(files, ("east", "west"), strict=True):
        alone = of_files([file], Settings())
        alone.judge([file])
        assert of_label(both, label) == of_label(alone, label) != []


def of_label(run, label):
    return [row for row in run.result().rows["coverage"] if row["label"] == label]


def test_small_files_are_judged_together_oldest_first(tmp_path, monkeypatch):
    monkeypatch.setattr(local_replay, "BATCH_BYTES", 10)
    monkeypatch.setattr(local_replay, "BATCH_FILES", 3)
    files = []
    for age, size in enumerate((4, 4, 4, 20, 1, 1, 1, 1)):
        file = tmp_path / f"a-{8 - age:010d}.parquet"
        file.write_bytes(bytes(size))
        os.utime(file, (1_700_000_000 + age, 1_700_000_000 + age))
        files.append(file)
    gone = tmp_path / "b-0000000001.parquet"
    assert list(batches_of([*reversed(files), gone])) == [
        [gone, *files[:2]], [files[2]], [files[3]], files[4:7], files[7:],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([range(30), range(30, 60)], [1, 1]),
        ([range(10), range(10, 20), range(20, 30)], [2, 1]),
        ([range(30), range(30), range(30)], [3]),  # that go on: each time they come, their claims cost as much
        ([range(30), range(29, 60)], [1, 1]),
    ],
    ids=["follow each other", "few", "go on", "one goes on"],
)
def test_claims_are_made_of_few_connections_that_follow_each_other(parts, expected, monkeypatch):
    monkeypatch.setattr(local_replay, "CONNECTIONS_TOGETHER", 25)
    made = [SimpleNamespace(connections=[connection(number) for number in numbers]) for numbers in parts]
    found = [*local_replay.pieces(made)]
    assert [len(piece) for piece in found] == expected
    assert [part for piece in found for part in piece] == made


def connection(number):
    return SimpleNamespace(client=number, server=9092, started_ns=0)
