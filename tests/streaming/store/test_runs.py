"""Who wrote result tables: one row for each process, and a repeated batch keeps the row of the one before."""

from wirecheck.streaming.store import runs
from wirecheck.streaming.store.batches import Folders, Tables
from wirecheck.streaming.store.result_tables import EXCHANGES, TABLES


def inputs_of(out, run):
    place = Folders(f"{out}/runs/run={run}")
    return [row["inputs"] for number in place.numbers() for row in place.rows(number).to_pylist()]


def test_a_batch_that_is_written_again_is_that_of_its_first_writer(tmp_path):
    assert not Tables(tmp_path, "r").write({runs.NAME: runs.started(["a"])}, 0)
    again = Tables(tmp_path, "r")
    assert not again.write({runs.NAME: runs.started(["b"])}, 0)
    assert inputs_of(tmp_path, "r") == [["a"]]
    assert not again.write({runs.NAME: runs.started(["b"])}, 1)
    assert inputs_of(tmp_path, "r") == [["a"], ["b"]]


def test_a_replay_has_a_file_for_each_table(tmp_path):
    Tables(tmp_path, "r").write({"totals": runs.started([]).slice(0, 0)}, 0)
    runs.note(tmp_path, ["incident.pcapng"])
    assert inputs_of(tmp_path, "r") == [["incident.pcapng"]]
    assert {path.name for path in tmp_path.iterdir()} == TABLES.keys() - {EXCHANGES.name}
