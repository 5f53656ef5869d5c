"""At every moment of a compaction each row that stands is there, once; on any file system."""

import json
import os

import pyarrow as pa
import pytest
from pyarrow import fs

from wirecheck.streaming.store import compaction
from wirecheck.streaming.store.batches import COMMITS, Entries, Folders, write
from wirecheck.streaming.store.result_tables import from_ipc, to_ipc

OLD, NOW = 1_000_000, 2_000_000
TOLD = [[("a", 1), ("b", 1), ("d", 1)], [("a", 2), ("c", 1)], [("b", 2)], [("a", 3), ("c", 2, True)]]
"""a changes twice, b once; c is withdrawn; d stands since the first batch."""


@pytest.fixture(params=["folders", "entries"])
def run(request, tmp_path):
    folder = tmp_path / "topics/run=r"
    system = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    run = Folders(folder) if request.param == "folders" else Entries(system, "topics/run=r")
    for number, rows in enumerate(TOLD):
        lines = [{"id": i, "revision": r, "withdrawn": bool(gone)} for i, r, *gone in rows]
        write(from_ipc(to_ipc("topics", lines)), run, number)
        said = f"{COMMITS}/{number}.json" if isinstance(run, Entries) else f"batch_id={number}/part.parquet"
        os.utime(folder / said, (OLD + number, OLD + number))
    return run


def rows(run):
    found = pa.concat_tables([run.rows(number) for number in run.numbers()]).to_pylist()
    return [(row["id"], row["revision"]) for row in found]


def standing(run):
    found = pa.concat_tables([run.rows(number) for number in run.numbers()]).to_pylist()
    last = {row["id"]: row for row in sorted(found, key=lambda row: row["revision"])}
    twice = len({(row["id"], row["revision"]) for row in found}) != len(found)
    return not twice, {name: row["revision"] for name, row in last.items() if not row["withdrawn"]}


def test_only_last_revisions_stay_and_empty_batches_go_a_pass_later(run):
    compaction.compact_table(run, NOW, 3)
    assert rows(run) == [("d", 1), ("b", 2), ("a", 3)]
    assert run.numbers() == [0, 1, 2, 3]
    compaction.compact_table(run, NOW, 3)
    assert rows(run) == [("d", 1), ("b", 2), ("a", 3)]
    assert run.numbers() == [0, 2, 3]


def test_what_is_young_stays_and_so_does_all_behind_it(run):
    compaction.compact_table(run, OLD + 1, 3)
    assert rows(run) == [("d", 1), ("a", 2), ("c", 1), ("b", 2), ("a", 3), ("c", 2)]


def test_a_batch_is_as_old_as_it_was_when_it_is_thinned(run):
    compaction.compact_table(run, NOW, 3)
    assert [run.written_s(number) for number in run.numbers()] == [OLD, OLD + 1, OLD + 2, OLD + 3]


def test_what_may_be_repeated_replaces_nothing(run):
    """Batch 3 withdraws c and changes a; repeated, it may not: until it is committed, both stay as they were."""
    compaction.compact_table(run, NOW, 2)
    assert rows(run) == [("d", 1), ("a", 2), ("c", 1), ("b", 2), ("a", 3), ("c", 2)]


def test_a_reader_or_a_crash_between_any_two_steps_finds_every_row_that_stands_once(run, monkeypatch):
    expected = standing(run)
    seen = []

    def watched(step):
        def stepped(*arguments):
            seen.append(standing(run))
            step(*arguments)
            seen.append(standing(run))

        return stepped

    for name in ("put", "remove", "sweep"):
        monkeypatch.setattr(run, name, watched(getattr(run, name)))
    for _ in range(3):
        compaction.compact_table(run, NOW, 3)
    assert len(seen) == 14
    assert all(moment == expected for moment in seen)


def test_all_tables_of_a_run_are_thinned_but_for_rows_without_revisions(tmp_path):
    for table in ("topics", "exchanges"):
        for number in (0, 1):
            place = Folders(tmp_path / table / "run=r")
            write(pa.table({"id": ["a"], "revision": pa.array([number], pa.int32())}), place, number)
    compaction.compact(f"file://{tmp_path}", "r", 1e12, 1)
    assert [len(rows(Folders(tmp_path / table / "run=r"))) for table in ("topics", "exchanges")] == [1, 2]


def test_an_entry_says_what_a_reader_of_any_kind_needs(tmp_path):
    run = Entries(fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem()), "t/run=r")
    write(pa.table({"id": ["a"]}), run, 7)
    said = json.loads((tmp_path / f"t/run=r/{COMMITS}/7.json").read_text())
    assert (said["batch_id"], said["files"], said["rows"]) == (7, ["batch_id=7/part.parquet"], 1)
