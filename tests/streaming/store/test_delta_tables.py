"""Delta tables say what Parquet files say: over repeated batches, kills between commits, and other readers."""

import random

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from tests import object_store
from tests.depth import some
from wirecheck.judge.results.result_table import rows_of
from wirecheck.streaming.store import batches, delta_tables, result_folder
from wirecheck.streaming.store.delta_tables import NOW, DeltaTables
from wirecheck.streaming.store.result_folder import DELTA, PARQUET
from wirecheck.streaming.store.result_tables import TABLES, from_ipc, schema, to_ipc
from wirecheck.streaming.store.run_result import Result

S = 1_000_000_000


class Killed(BaseException):
    """Where a process would end."""


def rows(table, *lines):
    return from_ipc(to_ipc(table, [{"label": "L", **line} for line in lines]))


def finding(name, revision, state="open"):
    side = {"time": revision * S, "claim": "says", "connection": "a>b", "api": "Fetch", "version": 13}
    side |= {"correlation_id": 7, "frame": {"source": "x.pcap", "first": 1, "last": 2}}
    body = {"id": name, "revision": revision, "state": state, "code": "TID002", "kind": "violation", "sides": [side]}
    body |= {
        "topic_ids": [name],
        "client_ids": [],
        "summary": name,
        "name": "",
        "cluster": "L",
        "topic": name,
        "words": [],
    }
    return {**body, "first_seen": S, "last_seen": revision * S, "count": revision, "brokers": [1, 2]}


def topic(name, revision, *, gone=False):
    body = {"id": name, "revision": revision, "withdrawn": gone, "name": name, "sources": ["metadata"]}
    return {**body, "first_seen": S, "last_seen": revision * S, "state": "current", "earlier_ids": []}


def fence(seed, number):
    """A batch's rows, the same whenever it is asked for."""
    chance = random.Random(f"{seed} {number}")
    names = chance.sample("abcdefgh", chance.randint(0, 5))
    found = {
        "findings": [finding(n, number + 1, chance.choice(["open", "open", "withdrawn"])) for n in names[:3]],
        "topics": [topic(n, number + 1, gone=chance.random() < 0.2) for n in names],
        "totals": [{"id": "m", "revision": number + 1, "measure": "messages", "count": number}] * (number % 3 > 0),
        "exchanges": [{"connection": n, "time": number * S, "api": "Fetch", "version": 4} for n in names],
    }
    return {table: rows(table, *lines) for table, lines in found.items() if lines}


def every(out, table, run="r"):
    parts = list(result_folder.read(out, table, run))
    return pa.concat_tables([schema(table).empty_table(), *parts]).to_pylist()


def now(out):
    return rows_of(DeltaTable(f"{out}/{NOW}").to_pyarrow_table().sort_by("id"))


def of_open(out, run="r"):
    return sorted(Result.read(out, run).rows["findings"], key=lambda row: row["id"])


@pytest.mark.parametrize("seed", some(range(2)))
def test_the_same_rows_as_parquet_over_repeated_batches_and_kills_between_commits(tmp_path, monkeypatch, seed):
    parquet, delta = tmp_path / "parquet", tmp_path / "delta"
    chance, plain = random.Random(seed), delta_tables.write_deltalake
    left = [1 << 30]

    def cut_off(*arguments, **named):
        left[0] -= 1
        if left[0] < 0:
            raise Killed
        plain(*arguments, **named)

    monkeypatch.setattr(delta_tables, "write_deltalake", cut_off)
    writer, kills = DeltaTables(delta, "r"), 0
    for number in range(8):
        body = fence(seed, number)
        while chance.random() < 0.5:  # killed somewhere between its commits; maybe what comes again says otherwise
            left[0] = chance.randint(0, 5)
            first = fence(seed + chance.choice([0, 100]), number)
            batches.Tables(parquet, "r").write(first, number)
            try:
                writer.write(first, number)
            except Killed:
                kills += 1
            left[0] = 1 << 30
            writer = DeltaTables(delta, "r")
        batches.Tables(parquet, "r").write(body, number)
        writer.write(body, number)
        assert now(delta) == of_open(delta)
    assert kills > 0
    assert {name: every(delta, name) for name in TABLES} == {name: every(parquet, name) for name in TABLES}
    assert Result.latest(delta).json() == Result.latest(parquet).json()


def test_a_repeated_batch_changes_nothing_and_says_whether_it_says_otherwise(tmp_path):
    DeltaTables(tmp_path, "r").write(fence(1, 5), 5)
    versions = {name: DeltaTable(str(tmp_path / name)).version() for name in (*TABLES, NOW)}
    again = DeltaTables(tmp_path, "r")
    assert not again.write(fence(1, 5), 5)
    assert {name: DeltaTable(str(tmp_path / name)).version() for name in (*TABLES, NOW)} == versions
    assert again.write({"topics": rows("topics", topic("other", 1))}, 5)
    assert [row["id"] for row in every(tmp_path, "topics")] == ["other"]
    assert now(tmp_path) == []


def test_a_batch_is_a_commit_a_table_with_the_runs_txn_and_what_it_is_told_to_say(tmp_path):
    writer = DeltaTables(tmp_path, "r")
    for number in range(3):
        writer.write({"topics": rows("topics", topic("a", number + 1))}, number, {"fence": 1})
    table = DeltaTable(str(tmp_path / "topics"))
    assert (table.version(), table.transaction_version("r"), table.transaction_version("q")) == (3, 2, None)
    assert table.history(1)[0]["wirecheck.fence"] == "1"
    assert table.metadata().partition_columns == ["date"]
    assert DeltaTable(str(tmp_path / "clients")).version() == 0  # there, for whoever asks for it


def test_runs_do_not_see_each_other_and_the_last_that_wrote_is_the_latest(tmp_path):
    DeltaTables(tmp_path, "old").write({"topics": rows("topics", topic("old", 1))}, 0)
    DeltaTables(tmp_path, "new").write({"topics": rows("topics", topic("new", 1))}, 0)
    assert [row["id"] for row in every(tmp_path, "topics", "old")] == ["old"]
    assert [topic["name"] for topic in Result.latest(tmp_path).json()["topics"]] == ["new"]


def test_a_commit_beside_ours_is_read_and_ours_comes_behind_it(tmp_path):
    writer = DeltaTables(tmp_path, "r")
    writer.write({"topics": rows("topics", topic("a", 1))}, 0)
    beside = delta_tables.opened(tmp_path, "topics")
    one = delta_tables.rows_of(beside, "topics", delta_tables.pc.field("batch_id") == 0)
    delta_tables.put(beside, one, delta_tables.of_batches("r", 0, 0))
    writer.write({"topics": rows("topics", topic("b", 1))}, 1)
    assert [row["id"] for row in every(tmp_path, "topics")] == ["a", "b"]


def test_a_table_of_an_earlier_release_gains_the_columns_it_lacks(tmp_path, monkeypatch):
    whole = delta_tables.COLUMNS["topics"]
    names = [name for name in whole.names if name != "earlier_ids"]
    monkeypatch.setitem(delta_tables.COLUMNS, "topics", pa.schema([whole.field(name) for name in names]))
    before = rows("topics", topic("a", 1)).select([name for name in names if name in schema("topics").names])
    DeltaTables(tmp_path, "r").write({"topics": before}, 0)
    monkeypatch.setitem(delta_tables.COLUMNS, "topics", whole)
    assert every(tmp_path, "topics")[0]["earlier_ids"] is None
    DeltaTables(tmp_path, "r").write({"topics": rows("topics", {**topic("a", 2), "earlier_ids": ["x"]})}, 1)
    assert [row["earlier_ids"] for row in every(tmp_path, "topics")] == [None, ["x"]]


def test_on_an_object_store_as_on_a_disk(tmp_path, monkeypatch):
    out = "s3://bucket/verdicts"
    with object_store.running() as store:
        for name, value in store.environment.items():
            monkeypatch.setenv(name, value)
        store.objects["bucket/there"] = b""
        writer = DeltaTables(out, "r")
        for number in range(4):
            writer.write(fence(3, number), number)
            DeltaTables(tmp_path, "r").write(fence(3, number), number)
        assert (result_folder.kind_of(out), result_folder.kind_of("s3://bucket/none")) == (DELTA, None)
        assert {name: every(out, name) for name in TABLES} == {name: every(tmp_path, name) for name in TABLES}
        store.count()
        writer.write({"topics": rows("topics", topic("z", 9))}, 9)
        asked = store.count()
    assert asked["PUT"] == 2


class Lost(Exception):  # noqa: N818 - as a lease says it
    pass


def test_an_owner_that_slept_while_another_took_over_commits_nothing_more(tmp_path):
    """It wakes up between its lease and its commit, in a batch in which the later owner has other rows, or none."""

    def lost():
        raise Lost

    first = DeltaTables(tmp_path, "r", lost)
    first.write(fence(3, 0), 0, {"fence": 1})
    later = DeltaTables(tmp_path, "r", lambda: {"fence": 2})
    later.write({"topics": rows("topics", topic("a", 7))}, 1, {"fence": 2})
    before = {name: every(tmp_path, name) for name in TABLES}
    for name in ("topics", "findings"):
        line = topic("stale", 8) if name == "topics" else finding("stale", 8)
        with pytest.raises(Lost):
            first.write({name: rows(name, line)}, 1, {"fence": 1})
    assert {name: every(tmp_path, name) for name in TABLES} == before


@pytest.mark.parametrize(("wanted", "kind"), [(None, DELTA), (DELTA, DELTA), (PARQUET, None)])
def test_an_object_store_has_delta_tables_only(wanted, kind, tmp_path):
    if kind:
        assert result_folder.kind_for("s3://bucket/verdicts", wanted) == kind
    else:
        with pytest.raises(ValueError, match="an object store has --tables delta"):
            result_folder.kind_for("s3://bucket/verdicts", wanted)
    assert result_folder.kind_for(tmp_path, wanted) == (wanted or PARQUET)


@pytest.mark.parametrize(
    ("place", "spelled"),
    [
        ("s3://b/k/", ("s3://b/k", {"allow_http": "true"})),
        ("/a b/c", ("/a b/c", {})),
        ("file:/a b/c", ("/a b/c", {})),
    ],
)  # fmt: skip
def test_a_place_is_spelled_as_delta_rs_does(place, spelled):
    assert delta_tables.located(place) == spelled


def test_a_folder_says_which_kind_it_holds(tmp_path):
    assert result_folder.kind_of(tmp_path) is None
    result_folder.writer(tmp_path / "d", "r", DELTA).write(fence(1, 1), 1)
    result_folder.writer(tmp_path / "p", "r", PARQUET).write(fence(1, 1), 1)
    assert [result_folder.kind_of(tmp_path / name) for name in "dp"] == [DELTA, PARQUET]
