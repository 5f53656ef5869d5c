"""A batch on an object store: how many requests it takes, and that it is whole whatever was cut off before."""

import json
import threading

import pytest
from obstore.exceptions import BaseError

from tests import object_store
from wirecheck.streaming.store import batches, object_batches
from wirecheck.streaming.store.batches import Tables
from wirecheck.streaming.store.lease import LeaseLost
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
    [file] = entry.pop("files")
    assert f"bucket/verdicts/topics/run=r/{file}" in store.objects
    assert entry == {"batch_id": 0, "rows": 1, "written_s": None, "fence": 3}


def test_under_a_lease_a_batch_takes_two_requests_a_table_with_rows_too(store):
    tables = Tables(OUT, "r")
    tables.write({"topics": rows("topics", "a")}, 0, {"fence": 1})
    assert store.count() == {"LIST": len(TABLES), "PUT": 2}
    tables.write({"topics": rows("topics", "b"), "clients": rows("clients", "c")}, 1, {"fence": 1})
    assert store.count() == {"PUT": 4}


@pytest.fixture
def owners(store):
    """One that was stopped within a batch, after it had asked its lease, and who took over."""
    first, second = Tables(OUT, "r"), Tables(OUT, "r")
    first.write({"topics": rows("topics", "a"), "clients": rows("clients", "c")}, 0, {"fence": 1})
    return first, second


def test_what_an_earlier_owner_sends_late_changes_nothing(owners):
    first, second = owners
    second.write({"topics": rows("topics", "new")}, 1, {"fence": 2})
    with pytest.raises(LeaseLost, match="topics/run=r: another monitor has taken it over"):
        first.write({"topics": rows("topics", "old")}, 1, {"fence": 1})
    with pytest.raises(LeaseLost):
        first.write({"topics": rows("topics", "old")}, 1, {"fence": 1})
    assert ids("topics") == [["a"], ["new"]]


def test_nor_does_it_where_the_later_one_had_no_rows(owners):
    first, second = owners
    second.write({"topics": rows("topics", "new")}, 1, {"fence": 2})
    with pytest.raises(LeaseLost):
        first.write({"clients": rows("clients", "old")}, 1, {"fence": 1})
    assert ids("clients") == [["c"], []]


def test_what_it_sent_before_gives_way(owners):
    """It got there after the later one had asked what is there."""
    first, second = owners
    second.newest = dict.fromkeys(TABLES, 0)
    second.places = second.under({"fence": 2})
    first.write({"topics": rows("topics", "old")}, 1, {"fence": 1})
    second.write({"topics": rows("topics", "new")}, 1, {"fence": 2})
    assert ids("topics") == [["a"], ["new"]]


def test_an_entry_whose_answer_was_lost_is_known_again(owners, store):
    first, _ = owners
    place = first.places["topics"]
    entry = {**place.entry(0), "fence": 1}
    store.count()
    place.enter(0, entry)
    assert store.count() == {"GET": 1, "PUT": 1}
    assert ids("topics") == [["a"]]


def test_an_entry_waits_for_a_store_that_is_away(owners, store, monkeypatch):
    monkeypatch.setattr(object_batches, "LOOK_S", 0.05)
    first, _ = owners
    store.away = True
    threading.Timer(0.3, setattr, (store, "away", False)).start()
    first.places["topics"].enter(1, {"batch_id": 1, "files": ["x"], "fence": 1})
    monkeypatch.setattr(object_batches, "PATIENCE_S", 0.1)
    store.away = True
    with pytest.raises(BaseError):
        first.places["topics"].enter(2, {"batch_id": 2, "files": ["x"], "fence": 1})


def test_rows_that_are_replaced_under_a_lease_lie_in_a_file_of_their_own(owners):
    first, _ = owners
    assert first.write({"topics": rows("topics", "b"), "clients": rows("clients", "c")}, 0, {"fence": 1})
    assert (ids("topics"), ids("clients")) == ([["b"]], [["c"]])
    assert first.places["topics"].entry(0)["fence"] == 1


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
