"""A batch on an object store: how many requests it takes, and that it is whole whatever was cut off before."""

import json

import pytest

from tests import object_store
from wirecheck.streaming.store import batches
from wirecheck.streaming.store.batches import Tables
from wirecheck.streaming.store.result_tables import TABLES, from_ipc, to_ipc

OUT = "s3://bucket/verdicts"


@pytest.fixture
def store(monkeypatch):
    with object_store.running() as store:
        for name, value in store.environment.items():
            monkeypatch.setenv(name, value)
        store.objects["bucket/there"] = b""
        yield store


def rows(table, *ids):
    return from_ipc(to_ipc(table, [{"id": name, "revision": 0} for name in ids]))


def ids(table, run="r"):
    return [part["id"].to_pylist() for part in batches.read(f"{OUT}/{table}/run={run}")]


def test_a_batch_takes_two_requests_a_table_with_rows_and_none_for_others(store):
    tables = Tables(OUT, "r")
    tables.write({"topics": rows("topics", "a")}, 0)
    assert store.count() == {"LIST": len(TABLES), "PUT": 2}  # what was there before is asked once
    for number in range(1, 5):
        tables.write({"topics": rows("topics", "b"), "clients": rows("clients", "c")}, number)
        assert store.count() == {"PUT": 4}
    tables.write({}, 5)
    assert store.count() == {}
    assert ids("topics") == [["a"], *[["b"]] * 4]
    assert ids("clients") == [["c"]] * 4


def test_a_repeated_batch_takes_the_place_of_what_it_said_before_it_in_every_table(store):
    Tables(OUT, "r").write({"topics": rows("topics", "a"), "clients": rows("clients", "c")}, 7)
    again = Tables(OUT, "r")  # another start
    assert again.write({"topics": rows("topics", "b")}, 7)
    assert (ids("topics"), ids("clients")) == ([["b"]], [[]])
    assert not again.write({"topics": rows("topics", "b")}, 7)
    assert not Tables(OUT, "r").write({"topics": rows("topics", "b")}, 7)
    assert again.write({"topics": rows("topics", "c")}, 7)
    assert ids("topics") == [["c"]]


def test_a_file_without_an_entry_is_none(store):
    """The store went away between the two requests."""
    Tables(OUT, "r").write({"topics": rows("topics", "a")}, 0)
    del store.objects["bucket/verdicts/topics/run=r/_commits/0.json"]
    assert ids("topics") == []
    Tables(OUT, "r").write({"topics": rows("topics", "b")}, 0)
    assert ids("topics") == [["b"]]


def test_a_store_that_is_away_loses_the_batch_as_a_whole_or_not_at_all(store):
    tables = Tables(OUT, "r")
    tables.write({"topics": rows("topics", "a")}, 0)
    store.away = True
    with pytest.raises(OSError, match="AWS Error"):
        tables.write({"topics": rows("topics", "b")}, 1)
    store.away = False
    assert ids("topics") == [["a"]]
    tables.write({"topics": rows("topics", "b")}, 1)
    assert ids("topics") == [["a"], ["b"]]


def test_entries_say_what_else_is_to_be_said(store):
    Tables(OUT, "r").write({"topics": rows("topics", "a")}, 0, {"fence": 3})
    entry = json.loads(store.objects["bucket/verdicts/topics/run=r/_commits/0.json"])
    assert entry == {"batch_id": 0, "files": ["batch_id=0/part.parquet"], "rows": 1, "written_s": None, "fence": 3}


def test_the_server_refuses_a_second_put(store):
    """Or the tests of the lease would show nothing."""
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    def put(key, **headers):
        return urlopen(Request(f"{store.environment['AWS_ENDPOINT_URL']}/{key}", b"x", headers, method="PUT")).status

    assert put("bucket/new", **{"If-None-Match": "*"}) == 200
    with pytest.raises(HTTPError, match="412"):
        put("bucket/new", **{"If-None-Match": "*"})
    with pytest.raises(HTTPError, match="412"):
        put("bucket/new", **{"If-Match": '"another"'})
    assert put("bucket/new", **{"If-Match": object_store.etag(b"x")}) == 200
    store.conditional = False
    assert put("bucket/new", **{"If-None-Match": "*"}) == 200
