"""Batch N of a run is written once."""

import pyarrow.parquet as pq

from wirecheck.streaming.spark.sinks import by_table
from wirecheck.streaming.steps.tagged import Tagged
from wirecheck.streaming.store.batches import Tables
from wirecheck.streaming.store.result_tables import to_ipc


def row(table, *ids):
    return Tagged("L", -1, table, to_ipc(table, [{"id": name, "revision": 1} for name in ids]))


def write_batch(rows, out, number):
    tables = by_table(rows)
    return tables, Tables(out, "r").write(tables, number)


def ids(path):
    return pq.read_table(path)["id"].to_pylist()


def test_rows_of_a_table_become_one_file(tmp_path):
    write_batch([row("topics", "a"), row("clients", "c"), row("topics", "b")], tmp_path, 3)
    assert ids(tmp_path / "topics/run=r/batch_id=3/part.parquet") == ["a", "b"]
    assert ids(tmp_path / "clients/run=r/batch_id=3/part.parquet") == ["c"]


def test_a_repeated_batch_writes_what_is_missing_and_changes_nothing_else(tmp_path):
    write_batch([row("topics", "a")], tmp_path, 0)
    _, instead = write_batch([row("topics", "a"), row("clients", "not yet written")], tmp_path, 0)
    assert not instead
    assert ids(tmp_path / "topics/run=r/batch_id=0/part.parquet") == ["a"]
    assert ids(tmp_path / "clients/run=r/batch_id=0/part.parquet") == ["not yet written"]


def test_a_repeated_batch_that_says_something_else_holds_in_every_table(tmp_path):
    write_batch([row("topics", "first"), row("clients", "c"), row("coverage", "only then")], tmp_path, 0)
    written, instead = write_batch([row("topics", "again"), row("clients", "c")], tmp_path, 0)
    assert (instead, sorted(written)) == (True, ["clients", "topics"])
    found = {name: ids(tmp_path / name / "run=r/batch_id=0/part.parquet") for name in ("topics", "clients", "coverage")}
    assert found == {"topics": ["again"], "clients": ["c"], "coverage": []}


def test_what_a_crash_left_is_replaced_and_never_seen(tmp_path):
    left = tmp_path / "topics/run=r/.tmp-batch_id=0"
    left.mkdir(parents=True)
    (left / "half.parquet").write_bytes(b"half")
    write_batch([row("topics", "a")], tmp_path, 0)
    assert sorted(path.name for path in (tmp_path / "topics/run=r").rglob("*")) == ["batch_id=0", "part.parquet"]
