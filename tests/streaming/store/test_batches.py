"""A batch appears whole, gives way to what its repetition says, and readers find one of the two at any moment."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from wirecheck.streaming.store import batches
from wirecheck.streaming.store.batches import FEW_ROWS, Folders, write
from wirecheck.streaming.store.result_tables import TABLES, schema


@pytest.fixture
def run(tmp_path):
    return Folders(tmp_path / "t/run=r")


def table(*ids):
    return pa.table({"id": pa.array(ids, pa.string()), "count": pa.array(range(len(ids)), pa.int64())})


def ids(run):
    return [run.rows(number)["id"].to_pylist() for number in run.numbers()]


def test_batches_are_read_in_order(run):
    for number in (10, 2):
        assert not write(table(str(number)), run, number)
    assert ids(run) == [["2"], ["10"]]
    assert run.rows(2, ["count", "none"]).column_names == ["count"]
    assert run.rows(3) is None


def test_arrow_opens_what_is_read(run, monkeypatch):
    """Buffers of Python's that Arrow's threads still hold when Python has ended abort the process."""
    write(table("a"), run, 0)
    monkeypatch.setattr("pathlib.Path.open", None)
    monkeypatch.setattr("builtins.open", None)
    assert run.rows(0)["id"].to_pylist() == ["a"]


def test_the_same_rows_again_change_nothing(run):
    write(table("a"), run, 0)
    before = run.written_s(0)
    assert not write(table("a"), run, 0)
    assert (ids(run), run.written_s(0)) == ([["a"]], before)


def test_other_rows_take_the_place_of_the_first(run):
    write(table("a", "b"), run, 0)
    assert write(table("a", "c"), run, 0)
    assert write(table("d"), run, 0)
    assert ids(run) == [["d"]]


def test_a_table_the_repetition_has_no_rows_for_is_emptied(run):
    assert not write(None, run, 0)
    write(table("a"), run, 0)
    assert write(None, run, 0)
    assert not write(None, run, 0)
    assert ids(run) == [[]]
    assert run.rows(0).schema == table().schema


def test_a_batch_that_goes_is_gone(run, tmp_path):
    write(table("a"), run, 0)
    run.remove(0)
    assert run.numbers() == []
    assert [path for path in (tmp_path / "t/run=r").rglob("*") if path.is_file()] == []


def test_a_crash_at_any_write_leaves_the_old_rows_or_the_new(run, monkeypatch):
    write(table("old"), run, 0)
    seen = []
    for name in ("sync", "shape"):
        step = getattr(batches, name)

        def watched(*arguments, step=step):
            seen.append(ids(run))
            done = step(*arguments)
            seen.append(ids(run))
            return done

        monkeypatch.setattr(batches, name, watched)
    write(table("new"), run, 0)
    assert len(seen) >= 4
    assert all(moment in ([["old"]], [["new"]]) for moment in seen)


def test_a_link_in_the_place_of_what_is_being_written_is_not_followed(tmp_path):
    (tmp_path / "victim").write_bytes(b"as it was")
    run = Folders(tmp_path / "run=1")
    batches.write(pa.table({"n": [1]}), run, 0)
    (tmp_path / "run=1" / "batch_id=0" / ".part.parquet.tmp").symlink_to(tmp_path / "victim")
    batches.write(pa.table({"n": [2]}), run, 0)
    assert (tmp_path / "victim").read_bytes() == b"as it was"
    assert run.rows(0)["n"].to_pylist() == [2]


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_read_as_it_was_written_beside_files_of_earlier_releases(name, run, tmp_path):
    """Which had Arrow's schema with the comments of its columns."""
    nothing = {field.name: None for field in schema(name)}
    rows = pa.Table.from_pylist([nothing, nothing], schema(name))
    write(rows, run, 1)
    assert not write(rows, run, 1)
    assert run.rows(1).equals(rows)
    (older := tmp_path / "older").mkdir()
    pq.write_table(rows, older / "part.parquet")
    both = [run.rows(1), pq.read_table(older / "part.parquet")]
    assert pa.concat_tables(both).schema.equals(pa.concat_tables(both[::-1]).schema)


def test_a_batch_of_few_rows_is_small_and_a_file_of_many_can_be_read_in_parts(run, tmp_path):
    few, many = (pa.table({"id": [f"a-{n % 7}" for n in range(count)]}) for count in (10, FEW_ROWS + 1))
    write(few, run, 0)
    write(many, run, 1)
    small, large = (next(tmp_path.rglob(f"batch_id={number}/part.parquet")) for number in (0, 1))
    assert small.stat().st_size < 300
    assert pq.read_metadata(small).row_group(0).column(0).statistics is None
    assert pq.read_metadata(large).row_group(0).column(0).statistics.max == "a-6"
