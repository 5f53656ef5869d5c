"""At every moment of a compaction each row that stands is there, once."""

import os

import pyarrow.parquet as pq
import pytest

from streaming import compaction
from streaming.sinks import write_batch
from streaming.tables import to_ipc
from streaming.tagged import Tagged

OLD, NOW = 1_000_000, 2_000_000


@pytest.fixture
def run(tmp_path):
    """a changes twice, b once; c is withdrawn; d stands since the first batch."""
    told = [[("a", 1), ("b", 1), ("d", 1)], [("a", 2), ("c", 1)], [("b", 2)], [("a", 3), ("c", 2, True)]]
    for number, rows in enumerate(told):
        lines = [{"id": i, "revision": r, "withdrawn": bool(gone)} for i, r, *gone in rows]
        write_batch([Tagged("L", -1, "topics", to_ipc("topics", lines))], tmp_path, "r", number)
        os.utime(tmp_path / f"topics/run=r/batch_id={number}/part.parquet", (OLD + number, OLD + number))
    return tmp_path / "topics/run=r"


def rows(run):
    found = [row for path in sorted(run.glob("batch_id=*/part.parquet")) for row in pq.read_table(path).to_pylist()]
    return [(row["id"], row["revision"]) for row in found]


def standing(run):
    found = [row for path in sorted(run.glob("batch_id=*/part.parquet")) for row in pq.read_table(path).to_pylist()]
    last = {row["id"]: row for row in sorted(found, key=lambda row: row["revision"])}
    twice = len({(row["id"], row["revision"]) for row in found}) != len(found)
    return not twice, {name: row["revision"] for name, row in last.items() if not row["withdrawn"]}


def test_only_last_revisions_stay_and_empty_batches_go_a_pass_later(run):
    compaction.compact(run.parent.parent, "r", NOW)
    assert rows(run) == [("d", 1), ("b", 2), ("a", 3)]
    assert len(list(run.iterdir())) == 4
    compaction.compact(run.parent.parent, "r", NOW)
    assert rows(run) == [("d", 1), ("b", 2), ("a", 3)]
    assert sorted(path.name for path in run.iterdir()) == ["batch_id=0", "batch_id=2", "batch_id=3"]


def test_what_is_young_stays_and_so_does_all_behind_it(run):
    compaction.compact(run.parent.parent, "r", OLD + 1)
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

    for name in ("thin", "remove"):
        monkeypatch.setattr(compaction, name, watched(getattr(compaction, name)))
    for _ in range(3):
        compaction.compact(run.parent.parent, "r", NOW)
    assert len(seen) == 8
    assert all(moment == expected for moment in seen)
