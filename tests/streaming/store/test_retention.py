"""What is older than asked for leaves, and nothing that still holds; no replaced revision is taken for the last."""

import os

import pytest

from wirecheck.streaming.store import compaction
from wirecheck.streaming.store.batches import Folders, write
from wirecheck.streaming.store.compaction import CompactionTerms
from wirecheck.streaming.store.result_tables import from_ipc, to_ipc
from wirecheck.streaming.store.run_result import last, revisions

DAY_S = 86400
OLD_S, NOW_S = 1000 * DAY_S, 1040 * DAY_S
BEFORE_S = NOW_S - 30 * DAY_S


def tell(out, table, number, rows, written_s=NOW_S):
    run = Folders(out / table / "run=r")
    write(from_ipc(to_ipc(table, rows)), run, number)
    os.utime(run.part(number), (written_s, written_s))
    return run


def seen(name, revision, at_s, **more):
    return {"id": name, "revision": revision, "last_seen": int(at_s * 1e9), **more}


def names(out, table):
    return sorted(row["id"] for row in last(revisions(out, table, "r")))


def test_rows_leave_that_were_last_seen_before_with_all_their_revisions(tmp_path):
    for number, at_s in enumerate((OLD_S, OLD_S + 5, NOW_S)):
        rows = [seen("both", number + 1, at_s, state="open")]
        rows += [seen("old", number + 1, at_s, state="open")] if number < 2 else []
        rows += [seen("taken back", number + 1, at_s, state="withdrawn" if number else "open")] if number < 2 else []
        tell(tmp_path, "findings", number, rows)
    compaction.retire(tmp_path, "r", BEFORE_S, 2)
    assert names(tmp_path, "findings") == ["both"]
    assert {row["id"] for row in revisions(tmp_path, "findings", "r")} == {"both"}


def test_topics_that_are_there_stay_and_what_no_time_is_known_of(tmp_path):
    states = ("current", "unresolved", "deleted", "replaced")
    tell(tmp_path, "topics", 0, [seen(state, 1, OLD_S, state=state, withdrawn=False) for state in states])
    tell(tmp_path, "clients", 0, [seen("client", 1, OLD_S, withdrawn=False), {"id": "others", "revision": 1}])
    tell(tmp_path, "partitions", 0, [{"id": "p", "revision": 1, "withdrawn": False, "until": int(OLD_S * 1e9)}], OLD_S)
    compaction.retire(tmp_path, "r", BEFORE_S, 0)
    assert names(tmp_path, "topics") == ["current", "unresolved"]
    assert names(tmp_path, "clients") == ["others"]
    assert names(tmp_path, "partitions") == ["p"]


def test_files_of_what_is_counted_leave_whole_compacted_or_not(tmp_path):
    for number in range(8):
        written_s = OLD_S + number * DAY_S / 8 if number < 4 else NOW_S - 3600
        tell(tmp_path, "coverage", number, [{"id": f"{number}", "revision": 1, "withdrawn": False}], written_s)
        tell(tmp_path, "exchanges", number, [{"label": f"{number}"}], written_s)
        tell(tmp_path, "changes", number, [{"id": f"{number}", "revision": 1, "targets": []}], written_s)
    compaction.compact(tmp_path, "r", CompactionTerms(NOW_S, 0), 7)
    compaction.retire(tmp_path, "r", BEFORE_S, 7)
    assert names(tmp_path, "coverage") == names(tmp_path, "changes") == ["4", "5", "6", "7"]
    assert Folders(tmp_path / "exchanges" / "run=r").numbers() == [4, 5, 6, 7]
    compaction.retire(tmp_path, "r", NOW_S, 6)
    assert Folders(tmp_path / "exchanges" / "run=r").numbers() == [7]


def test_a_file_of_what_is_counted_holds_no_more_than_a_day(tmp_path):
    for number in range(72):
        row = {"id": f"{number}", "revision": 1, "withdrawn": False}
        for table in ("coverage", "topics"):
            tell(tmp_path, table, number, [row], OLD_S + number * 3600)
    for now_s in (NOW_S, NOW_S + 600):
        compaction.compact(tmp_path, "r", CompactionTerms(now_s, 0), 71)
    assert len(Folders(tmp_path / "coverage" / "run=r").numbers()) >= 3
    assert Folders(tmp_path / "topics" / "run=r").numbers()[0] > 48
    compaction.retire(tmp_path, "r", OLD_S + DAY_S * 2, 71)
    assert 24 <= len(names(tmp_path, "coverage")) <= 48
    assert len(names(tmp_path, "topics")) == 72


class CutError(Exception):
    """Where a kill -9 is put."""


def test_cut_off_at_any_step_no_replaced_revision_stands(tmp_path, monkeypatch):
    for number in range(4):
        tell(tmp_path, "findings", number, [seen("old", number + 1, OLD_S + number, state="open")])
    put, newest = Folders.put, 4

    def cut(*arguments):
        put(*arguments)
        raise CutError

    monkeypatch.setattr(Folders, "put", cut)
    for _ in range(4):
        with pytest.raises(CutError):
            compaction.retire(tmp_path, "r", BEFORE_S, 3)
        assert [row["revision"] for row in last(revisions(tmp_path, "findings", "r"))] in ([newest], [])
    assert names(tmp_path, "findings") == []


def sizes(out):
    return sum(part.stat().st_size for part in out.rglob("*.parquet"))


def filled(out, *, newest_s):
    """Eight files of each table that can leave, a day apart, and findings as old as the first."""
    for number in range(8):
        written_s = newest_s - (7 - number) * DAY_S
        tell(out, "coverage", number, [{"id": f"{number}", "revision": 1, "withdrawn": False}], written_s)
        tell(out, "exchanges", number, [{"label": f"{number}"}], written_s)
        tell(out, "changes", number, [{"id": f"{number}", "revision": 1, "targets": []}], written_s)
    tell(out, "findings", 0, [seen("open", 1, OLD_S, state="open")], OLD_S)
    tell(out, "topics", 0, [seen("gone", 1, OLD_S, state="deleted", withdrawn=False)], OLD_S)


def test_of_too_many_bytes_the_oldest_files_leave_and_no_finding(tmp_path):
    filled(tmp_path, newest_s=NOW_S)
    whole = sizes(tmp_path)
    assert compaction.fit(tmp_path, "r", whole, NOW_S, 7) == 0
    assert sizes(tmp_path) == whole
    assert compaction.fit(tmp_path, "r", whole * 2 // 3, NOW_S, 7) == 0
    assert whole // 3 < sizes(tmp_path) <= whole * 2 // 3
    left = [Folders(tmp_path / table / "run=r").numbers() for table in ("coverage", "exchanges", "changes")]
    assert all(numbers[-1] == 7 for numbers in left)
    assert all(numbers == list(range(numbers[0], 8)) for numbers in left)
    assert (names(tmp_path, "findings"), names(tmp_path, "topics")) == (["open"], ["gone"])


@pytest.mark.parametrize(("committed", "kept"), [(7, [7]), (5, [6, 7])])
def test_what_was_written_within_an_hour_or_may_be_repeated_stays_and_the_excess_is_told(tmp_path, committed, kept):
    filled(tmp_path, newest_s=NOW_S)
    excess = compaction.fit(tmp_path, "r", 1, NOW_S, committed)
    assert Folders(tmp_path / "coverage" / "run=r").numbers() == kept
    assert excess == sizes(tmp_path) - 1
    assert names(tmp_path, "findings") == ["open"]


def test_files_of_former_runs_neither_count_nor_leave(tmp_path):
    filled(tmp_path, newest_s=NOW_S)
    for table in ("coverage", "exchanges"):
        (tmp_path / table / "run=r").rename(tmp_path / table / "run=former")
    compaction.fit(tmp_path, "r", 1, NOW_S, 7)
    assert len(Folders(tmp_path / "coverage" / "run=former").numbers()) == 8
