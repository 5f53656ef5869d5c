"""At every moment of a compaction, and after any crash, a reader finds each row that stands; on any file system."""

import os
import random
from dataclasses import replace

import pyarrow as pa
import pytest

from tests.depth import some
from wirecheck.streaming.store import batches, compaction
from wirecheck.streaming.store.batches import Folders, write
from wirecheck.streaming.store.compaction import HOUR_S, PATIENCE_S, CompactionTerms
from wirecheck.streaming.store.result_tables import from_ipc, to_ipc

BEGUN = 1000 * HOUR_S
LATER = BEGUN + 100 * HOUR_S
TOLD = [[("a", 1), ("b", 1), ("d", 1)], [("a", 2), ("c", 1)], [("b", 2)], [("a", 3), ("c", 2, True)]]
"""a changes twice, b once; c is withdrawn; d stands since the first batch."""
STEPS = ("put", "remove")
TERMS = CompactionTerms(LATER, 0, most_rows=1000, many_batches=100)


def rows_of(*written):
    lines = [{"id": i, "revision": r, "withdrawn": bool(gone)} for i, r, *gone in written]
    return from_ipc(to_ipc("topics", lines))


def tell(run, number, written, written_s):
    write(rows_of(*written), run, number)
    os.utime(run.part(number), (written_s, written_s))


def made(folder):
    return Folders(folder / "topics/run=r")


@pytest.fixture
def run(tmp_path):
    run = made(tmp_path)
    for number, written in enumerate(TOLD):
        tell(run, number, written, BEGUN + number)
    return run


def parts(run):
    return compaction.parts_of(run, 1 << 30)


def rows(run):
    found = [run.rows(number) for number in run.numbers()]
    return [(row["id"], row["revision"]) for row in pa.concat_tables(found).to_pylist()] if found else []


def standing(parts):
    """As a reader takes it: the last revision of each id that is not withdrawn."""
    last = {row["id"]: row for part in parts for row in sorted(part.to_pylist(), key=lambda row: row["revision"])}
    newest = {}
    for part in parts:
        for row in part.to_pylist():
            if row["revision"] >= newest.get(row["id"], row)["revision"]:
                newest[row["id"]] = row
    assert last.keys() == newest.keys()
    return {name: row["revision"] for name, row in newest.items() if not row["withdrawn"]}


def seen(run):
    return standing([run.rows(number) for number in run.numbers()])


def passes(run, count=3, terms=TERMS, committed=1 << 30):
    for _ in range(count):
        compaction.compact_table(run, terms, committed)
        terms = replace(terms, now_s=terms.now_s + PATIENCE_S)


def test_batches_of_an_hour_become_one_file_and_what_it_replaces_leaves_later(run):
    compaction.compact_table(run, TERMS, 3)
    assert run.numbers() == [0, 1, 2, 3]
    assert run.rows(3)["id"].to_pylist() == ["d", "b", "a", "c"]
    compaction.compact_table(run, replace(TERMS, now_s=LATER + PATIENCE_S - 1), 3)
    assert run.numbers() == [0, 1, 2, 3]
    compaction.compact_table(run, replace(TERMS, now_s=LATER + PATIENCE_S), 3)
    assert rows(run) == [("d", 1), ("b", 2), ("a", 3), ("c", 2)]
    assert run.numbers() == [3]


def test_an_hour_that_is_not_over_is_left_alone_unless_it_has_many_batches(run):
    now = replace(TERMS, now_s=BEGUN + 60)
    passes(run, 1, now)
    assert ([part.made_s for part in parts(run)], len(rows(run))) == ([None] * 4, 8)
    passes(run, 1, replace(now, many_batches=4))
    assert len(run.rows(3)) == 8
    passes(run, 2, replace(now, now_s=BEGUN + HOUR_S))
    assert run.numbers() == [3]


def test_revisions_that_were_replaced_stay_for_as_long_as_asked(run):
    retain_s = LATER - BEGUN + PATIENCE_S
    passes(run, 2, replace(TERMS, retain_s=retain_s))
    assert run.numbers() == [3]
    assert len(rows(run)) == 8
    passes(run, 1, replace(TERMS, now_s=LATER + PATIENCE_S + 3, retain_s=retain_s))
    assert rows(run) == [("d", 1), ("b", 2), ("a", 3)]


def test_what_may_be_repeated_replaces_nothing(run):
    """Batch 3 withdraws c and changes a; repeated, it may not: until it is committed, both stay as they were."""
    passes(run, committed=2)
    assert rows(run) == [("d", 1), ("a", 2), ("c", 1), ("b", 2), ("a", 3), ("c", 2)]
    assert run.numbers() == [2, 3]


def test_a_withdrawn_row_leaves_once_nothing_earlier_of_it_can_be_seen(run):
    passes(run)
    tell(run, 4, [("e", 1), ("f", 1)], BEGUN + HOUR_S)
    passes(run)
    assert run.numbers() == [4]
    assert rows(run) == [("d", 1), ("b", 2), ("a", 3), ("e", 1), ("f", 1)]


def test_files_grow_to_a_bound_and_are_then_left_alone(run, monkeypatch):
    terms = replace(TERMS, most_rows=8)
    for number in range(4, 40):
        tell(run, number, [(f"{number}", 1), (f"{number}x", 1)], BEGUN + number * HOUR_S)
    passes(run, 4, terms)
    sizes = [len(run.rows(number)) for number in run.numbers()]
    assert (sum(sizes), max(sizes), len(sizes) < 16) == (4 + 2 * 36, 8, True)
    first, read = run.numbers()[0], []
    monkeypatch.setattr(run, "rows", lambda number, _rows=run.rows: read.append(number) or _rows(number))
    tell(run, 40, [("40", 1)], BEGUN + 40 * HOUR_S)
    passes(run, 3, terms)
    assert first not in read
    assert set(read) <= {38, 39, 40}


def test_a_pass_without_news_opens_nothing(run, monkeypatch):
    passes(run)
    for name in (*STEPS, "rows"):
        monkeypatch.setattr(run, name, lambda *_: pytest.fail("touched"))
    passes(run)


def test_a_file_is_as_old_as_its_newest_row_and_no_younger_than_now(run):
    tell(run, 4, [("e", 1)], LATER + 5000)  # written by a clock that has gone back since
    passes(run, 1, replace(TERMS, many_batches=1))
    assert run.written_s(3) == BEGUN + 3
    *_, first, last = parts(run)
    assert (first.begun_s, first.written_s, last.written_s) == (BEGUN, BEGUN + 3, LATER)


class CutError(Exception):
    """Where a kill -9 is put."""


@pytest.mark.parametrize("seed", some(range(6)))
def test_a_reader_and_a_crash_between_any_two_steps_find_every_row_that_stands(seed, tmp_path, monkeypatch):
    """Batches of eight hours of which some withdraw; each pass is cut off at every one of its steps and begun anew."""
    chance = random.Random(seed)
    run = made(tmp_path)
    terms = CompactionTerms(BEGUN, chance.choice([0, HOUR_S]), chance.choice([10, 1000]), chance.choice([3, 100]))
    expected: dict[str, int] = {}
    revisions: dict[str, int] = {}
    cut_after = [0]

    def watched(step):
        def stepped(*arguments):
            assert seen(run) == expected
            step(*arguments)
            assert seen(run) == expected
            cut_after[0] -= 1
            if not cut_after[0]:
                raise CutError

        return stepped

    cuts = 0
    for number in range(32):
        written = []
        for name in chance.sample("abcdefgh", chance.randrange(5)):
            revisions[name] = revisions.get(name, 0) + 1
            written.append((name, revisions[name], *([True] * (chance.random() < 0.3))))
            expected.pop(name, None)
            if len(written[-1]) == 2:
                expected[name] = revisions[name]
        terms = replace(terms, now_s=terms.now_s + HOUR_S / 4)
        tell(run, number, written, terms.now_s - 1)
        with monkeypatch.context() as patched:
            for name in STEPS:
                patched.setattr(run, name, watched(getattr(run, name)))
            for steps in range(1, 100):
                cut_after[0] = steps
                try:
                    compaction.compact_table(run, terms, number)
                    break
                except CutError:
                    cuts += 1
        assert seen(run) == expected
    assert cuts > 10


def test_a_reader_that_is_slower_than_the_patience_misses_nothing(tmp_path):
    """It has listed eight batches and read one when their rows go into one it has not listed."""
    run = made(tmp_path)
    for number in range(8):
        tell(run, number, [(f"{number}", 1)], BEGUN + number)
    reading = batches.read(run)
    parts = [next(reading)]
    tell(run, 8, [("8", 1)], BEGUN + 8)
    passes(run)
    assert run.numbers() == [8]
    parts += reading
    assert standing(parts) == {f"{number}": 1 for number in range(9)}


def test_all_tables_of_a_run_are_compacted_but_for_rows_without_revisions(tmp_path):
    for table in ("topics", "exchanges"):
        for number in (0, 1):
            place = Folders(tmp_path / table / "run=r")
            write(pa.table({"id": ["a"], "revision": pa.array([number], pa.int32())}), place, number)
    for now_s in (1e12, 1e12 + PATIENCE_S):
        compaction.compact(f"file://{tmp_path}", "r", CompactionTerms(now_s, 0), 1)
    assert [len(rows(Folders(tmp_path / table / "run=r"))) for table in ("topics", "exchanges")] == [1, 2]


def test_a_column_that_a_later_release_adds_is_null_before_it(run):
    tell(run, 4, [("x", 1)], BEGUN + 4)
    run.put(run.rows(4).append_column("more", pa.array([7])), 4, BEGUN + 4)
    passes(run)
    assert dict(zip(run.rows(4)["id"].to_pylist(), run.rows(4)["more"].to_pylist(), strict=True)) == {
        **dict.fromkeys("dbac"), "x": 7,
    }  # fmt: skip
