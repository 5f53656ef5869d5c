"""What holds of revisions that came in any order, and no more than that."""

import pyarrow as pa
import pytest

from wirecheck.streaming.store import run_result
from wirecheck.streaming.store.result_tables import from_ipc, latest_revisions, to_ipc
from wirecheck.streaming.store.run_result import LatestRows


def rows(*revisions):
    return pa.table({name: [row[i] for row in revisions] for i, name in enumerate(("id", "revision", "count"))})


def test_the_last_revision_of_each_id_holds():
    revisions = rows(("a", 1, 10), ("b", 1, 20), ("a", 3, 11), ("c", 1, 30), ("a", 2, 12), ("b", 1, 21))
    assert latest_revisions(revisions).to_pylist() == rows(("a", 3, 11), ("c", 1, 30), ("b", 1, 21)).to_pylist()


@pytest.mark.parametrize("table", ["coverage", "totals"])
def test_no_more_is_held_than_twice_what_holds(table, monkeypatch):
    monkeypatch.setattr(run_result, "SPARE_ROWS", 10)
    held = LatestRows()
    for revision in range(500):
        held.add(table, rows(("a", revision, revision), ("b", revision, 0)))
        assert held._rows[table] <= 2 * 2 + 10 + 2
    assert held.tables()[table].to_pylist() == rows(("a", 499, 499), ("b", 499, 0)).to_pylist()


def test_what_was_withdrawn_is_not_shown_and_what_has_no_revisions_is_kept_whole(monkeypatch):
    monkeypatch.setattr(run_result, "SPARE_ROWS", 0)
    held = LatestRows()
    for revision, withdrawn in ((1, False), (2, True)):
        topic = {"id": "t", "revision": revision, "label": "L", "withdrawn": withdrawn, "name": "orders"}
        held.add("topics", from_ipc(to_ipc("topics", [topic])))
        held.add("exchanges", from_ipc(to_ipc("exchanges", [{"label": "L", "api": "Fetch"}])))
    assert held.result().rows["topics"] == []
    assert held.tables()["topics"]["revision"].to_pylist() == [2]
    assert held.tables()["exchanges"].num_rows == 2
