"""At every moment of a pass over Delta tables, and after any crash, a reader finds each row that stands, once."""

import datetime as dt
import random
from contextlib import suppress
from types import SimpleNamespace

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

from tests.depth import some
from wirecheck.streaming.store import delta_tables, delta_upkeep, result_folder
from wirecheck.streaming.store.compaction import MOST_ROWS, groups
from wirecheck.streaming.store.delta_tables import DeltaTables
from wirecheck.streaming.store.delta_upkeep import DeltaPart, UpkeepPass, UpkeepTerms
from wirecheck.streaming.store.result_tables import from_ipc, to_ipc
from wirecheck.streaming.store.run_result import Result

DAY_S = 86_400
BEGUN_S = 20_000 * DAY_S
S = 1_000_000_000
NEVER = 1 << 30
TODAY = dt.date(2026, 11, 24)


class Killed(BaseException):
    """Where a process would end."""


@pytest.fixture
def clock(monkeypatch):
    clock = SimpleNamespace(now_s=BEGUN_S)
    monkeypatch.setattr(delta_tables, "time", SimpleNamespace(time_ns=lambda: int(clock.now_s * S)))
    return clock


def lines(*bodies):
    return from_ipc(to_ipc("topics", [line(*one) for one in bodies]))


def line(name, revision, gone=False, seen_s=BEGUN_S):
    bodies = {"id": name, "revision": revision, "withdrawn": gone, "name": name, "state": "deleted"}
    return {**bodies, "first_seen": int(seen_s * S), "last_seen": int(seen_s * S), "label": "L"}


def tell(out, clock, batches, apart_s=DAY_S / 8):
    writer = DeltaTables(out, "r")
    for number, bodies in enumerate(batches):
        writer.write({"topics": lines(*bodies)} if bodies else {}, number)
        clock.now_s += apart_s


def rows(out):
    parts = result_folder.read(out, "topics", "r")
    return [(row["id"], row["revision"]) for part in parts for row in part.to_pylist()]


def standing(out):
    return {row["id"]: row["revision"] for row in Result.read(out, "r").rows["topics"]}


def files(out, table="topics"):
    return len(DeltaTable(str(out / table)).file_uris())


def keep(out, clock, committed=NEVER, **terms):
    delta_upkeep.keep(out, "r", UpkeepTerms(clock.now_s, 0, **terms), committed)


def test_batches_of_a_day_become_a_file_and_what_was_replaced_leaves(tmp_path, clock):
    tell(tmp_path, clock, [[("a", n), ("b", 0), (f"n{n}", 0)] for n in range(8)], apart_s=60)
    assert files(tmp_path) == 8
    keep(tmp_path, clock)
    assert files(tmp_path) == 1
    assert sorted(rows(tmp_path)) == [("a", 7), ("b", 0), *[(f"n{n}", 0) for n in range(8)]]


def test_of_all_days_only_the_last_revision_stays_and_what_was_withdrawn_goes_when_its_day_is_over(tmp_path, clock):
    tell(tmp_path, clock, [[("a", 0), ("c", 0)], [("a", 1), ("b", 0)], [("c", 1, True), ("b", 1, True)]], DAY_S)
    clock.now_s -= DAY_S
    keep(tmp_path, clock)
    assert rows(tmp_path) == [("a", 1), ("c", 1), ("b", 1)]  # today's may still be read beside what it replaced
    clock.now_s += DAY_S
    keep(tmp_path, clock)
    assert rows(tmp_path) == [("a", 1)]
    versions = DeltaTable(str(tmp_path / "topics")).version()
    keep(tmp_path, clock)
    assert versions <= DeltaTable(str(tmp_path / "topics")).version() <= versions + 2  # vacuum says that it ran


def test_what_spark_may_repeat_stays_as_it_is(tmp_path, clock):
    tell(tmp_path, clock, [[("a", n)] for n in range(4)], apart_s=1)
    keep(tmp_path, clock, committed=2)
    assert rows(tmp_path) == [("a", 2), ("a", 3)]
    DeltaTables(tmp_path, "r").write({"topics": lines(("b", 0))}, 3)
    assert rows(tmp_path) == [("a", 2), ("b", 0)]


@pytest.mark.parametrize("seed", some(range(2)))
def test_a_reader_at_every_moment_finds_each_row_that_stands_once(tmp_path, clock, monkeypatch, seed):
    chance = random.Random(seed)
    bodies = [
        [(name, number, chance.random() < 0.2) for name in chance.sample("abcdefgh", chance.randint(0, 4))]
        for number in range(10)
    ]
    tell(tmp_path, clock, bodies, apart_s=DAY_S / 4)
    expected = standing(tmp_path)
    plain, commits = delta_upkeep.put, [chance.randint(0, 3)]

    def cut_off(*arguments):
        commits[0] -= 1
        if commits[0] < 0:
            raise Killed
        plain(*arguments)
        assert standing(tmp_path) == expected
        assert len(set(rows(tmp_path))) == len(rows(tmp_path))

    monkeypatch.setattr(delta_upkeep, "put", cut_off)
    for _ in range(3):
        with suppress(Killed):
            keep(tmp_path, clock)
        assert standing(tmp_path) == expected
        commits[0] = chance.randint(0, 2)
    commits[0] = NEVER
    clock.now_s += 2 * DAY_S
    keep(tmp_path, clock)
    assert standing(tmp_path) == expected
    assert sorted(rows(tmp_path)) == sorted(expected.items())


def test_a_batch_that_comes_in_the_midst_of_a_pass_is_not_lost(tmp_path, clock, monkeypatch):
    tell(tmp_path, clock, [[("a", n)] for n in range(5)], apart_s=1)
    writer, plain = DeltaTables(tmp_path, "r"), delta_upkeep.put
    writer.write({"topics": lines(("a", 4))}, 4)

    def beside(*arguments):
        writer.write({"topics": lines(("late", 0))}, 5)
        plain(*arguments)
        writer.write({"topics": lines(("later", 0))}, 6)

    monkeypatch.setattr(delta_upkeep, "put", beside)
    keep(tmp_path, clock, committed=4)
    assert rows(tmp_path) == [("a", 4), ("late", 0), ("later", 0)]


def test_a_pass_whose_commit_fails_is_left_to_the_next(tmp_path, clock, monkeypatch):
    tell(tmp_path, clock, [[("a", n)] for n in range(3)], apart_s=1)

    def fails(*_):
        raise CommitFailedError("deleted data this operation read")

    with monkeypatch.context() as patched:
        patched.setattr(delta_upkeep, "put", fails)
        keep(tmp_path, clock)
    assert len(rows(tmp_path)) == 3
    keep(tmp_path, clock)
    assert rows(tmp_path) == [("a", 2)]


def test_results_of_long_ago_leave_with_all_their_revisions(tmp_path, clock):
    old, new = BEGUN_S, BEGUN_S + 9 * DAY_S
    writer = DeltaTables(tmp_path, "r")
    count = {"id": "c", "revision": 1, "withdrawn": False, "measure": "frames", "count": 1}
    writer.write({"topics": lines(("a", 1, False, old)), "coverage": from_ipc(to_ipc("coverage", [count]))}, 0)
    clock.now_s = new
    writer.write({"topics": lines(("a", 2, False, old), ("b", 1, False, new))}, 1)
    keep(tmp_path, clock, retire_s=new - DAY_S)
    assert rows(tmp_path) == [("b", 1)]
    assert list(result_folder.read(tmp_path, "coverage", "r")) == []


def test_files_and_commits_that_nobody_can_ask_for_leave(tmp_path, clock, monkeypatch):
    monkeypatch.setattr(delta_upkeep, "LEAST_HOURS", 0)
    monkeypatch.setattr(delta_tables, "SETTINGS", {**delta_tables.SETTINGS, "delta.checkpointInterval": "10"})
    tell(tmp_path, clock, [[("a", n)] for n in range(25)], apart_s=0)
    log = tmp_path / "topics" / "_delta_log"
    assert len(list(log.glob("*.json"))) > 25
    keep(tmp_path, clock)
    keep(tmp_path, clock)
    assert len(list((tmp_path / "topics").glob("date=*/*.parquet"))) == 1
    assert len(list(log.glob("*.json"))) < 15
    assert rows(tmp_path) == [("a", 24)]


def test_how_long_versions_stay_is_what_was_asked_for(tmp_path, clock):
    tell(tmp_path, clock, [[("a", 0)]])
    delta_upkeep.keep(tmp_path, "r", UpkeepTerms(clock.now_s, 5 * 3600), NEVER)
    fence = DeltaTable(str(tmp_path / "topics")).metadata().configuration
    assert fence["delta.deletedFileRetentionDuration"] == fence["delta.logRetentionDuration"] == "interval 5 hours"


@pytest.mark.parametrize(
    ("rows", "files"),
    [([10], [[10]]), ([1] * 5, [[1] * 5]), ([100, 1, 1], [[1, 1], [100]]), ([4, 2, 1], [[4, 2, 1]]), ([], [])],
)
def test_a_file_joins_younger_ones_of_half_its_rows(rows, files):
    parts = [DeltaPart(TODAY, n, n, count) for n, count in enumerate(rows)]
    assert [[part.rows for part in group] for group in groups(parts, MOST_ROWS, 0)] == files


def test_files_over_the_same_batches_are_one(tmp_path, clock):
    parts = [DeltaPart(TODAY, 0, 3, 5), DeltaPart(TODAY, 0, 3, 6), DeltaPart(TODAY, 4, 4, 1)]
    assert list(delta_upkeep.apart(parts)) == [DeltaPart(TODAY, 0, 3, 11), DeltaPart(TODAY, 4, 4, 1)]
    assert list(delta_upkeep.apart([])) == []
    tell(tmp_path, clock, [])
    assert UpkeepPass(delta_tables.made(tmp_path, "topics"), "topics", "r", NEVER).parts() == []


def test_of_too_many_bytes_the_oldest_days_leave_and_no_finding(tmp_path, clock):
    writer = DeltaTables(tmp_path, "r")
    for number in range(6):
        coverage = from_ipc(to_ipc("coverage", [{"id": f"{number}", "revision": 1, "withdrawn": False}]))
        findings = from_ipc(to_ipc("findings", [{"id": "open", "revision": number + 1, "state": "open"}]))
        writer.write({"coverage": coverage, "findings": findings}, number)
        clock.now_s += DAY_S
    now_s = clock.now_s - DAY_S
    whole = sum(sum(bytes_of(tmp_path, name).values()) for name in ("coverage", "findings"))
    of_coverage = bytes_of(tmp_path, "coverage")
    two_days = sum(sorted(of_coverage.values())[:2])
    assert delta_upkeep.fit(tmp_path, "r", whole, now_s) == 0
    assert bytes_of(tmp_path, "coverage") == of_coverage
    assert delta_upkeep.fit(tmp_path, "r", whole - two_days, now_s) == 0
    assert set(bytes_of(tmp_path, "coverage")) == set(sorted(of_coverage)[2:])
    assert delta_upkeep.fit(tmp_path, "r", 1, now_s) > 0
    assert set(bytes_of(tmp_path, "coverage")) == {max(of_coverage)}  # today's stay
    assert {row["id"] for row in Result.read(tmp_path, "r").rows["findings"]} == {"open"}


def bytes_of(out, name):
    return {day: size for day, size in delta_upkeep.bytes_by_day(delta_tables.opened(out, name), "r").items() if size}
