"""What differs between the results of two runs, and between two times of one."""

import pytest

from wirecheck.streaming.store.result_diff import Side, at_times, differences
from wirecheck.streaming.store.run_result import MadeRows, Result
from wirecheck.wording import NS_PER_S, ns_of

NOON_NS = ns_of("2026-11-21T12:00:00Z")


def at(minutes):
    return NOON_NS + minutes * 60 * NS_PER_S


def seen(first, last, **columns):
    return {"others": None, "first_seen": at(first), "last_seen": at(last), **columns}


def finding(first=0, last=0, kind="violation", code="TID002", client_ids=(), topic="orders"):
    return seen(
        first, last, code=code, kind=kind, topic=topic, client_ids=list(client_ids), brokers=[], summary="It is."
    )


def client(name, first=0, last=0, **versions):
    apis = [{"api": api, "versions": used} for api, used in versions.items()]
    return seen(first, last, client_id=name, requests=1_000, apis=apis)


def harm(first=0, last=0, recovered=False):
    return seen(
        first, last, errors=["X", "Y"], client_id="c", api="Produce", topic="orders", count=3, recovered=recovered
    )


def topic(topic_id, first=0, last=0, state="current"):
    return seen(first, last, cluster="C", name="orders", topic_id=topic_id, state=state, earlier_ids=[], sources=[])


def result(**rows):
    return Result(MadeRows(lambda table: rows.get(table, []), whole=False))


def kinds(found):
    return [(one.kind, one.subject, one.before, one.after, one.matters) for one in found]


NEW_ID, OLD_ID = "KHrEQJ4WSduMdJpyMZSmXg", "qC48IeRqScOXv2y8GPXuKw"


@pytest.mark.parametrize(("table", "row", "there", "gone"), [
    ("findings", finding(), ("finding-new", "TID002 orders", "", "It is.", True),
     ("finding-gone", "TID002 orders", "last at 2026-11-21 12:00:00", "", False)),
    ("findings", finding(kind="information", client_ids=["a", "b"]),
     ("note-new", "TID002 orders a", "", "It is.", False),
     ("note-gone", "TID002 orders a", "last at 2026-11-21 12:00:00", "", False)),
    ("clients", client("c"), ("client-new", "c", "", "1,000 requests", False),
     ("client-gone", "c", "1,000 requests", "", True)),
    ("harms", harm(), ("error-new", "X, Y c Produce orders", "", "3", True),
     ("error-gone", "X, Y c Produce orders", "3", "", False)),
    ("harms", harm(recovered=True), ("error-recovered", "X, Y c Produce orders", "", "3", False),
     ("error-gone", "X, Y c Produce orders", "3", "", False)),
])  # fmt: skip
def test_what_is_new_and_what_is_gone(table, row, there, gone):
    empty, full = Side(result()), Side(result(**{table: [row]}))
    assert kinds(differences(empty, full)) == [there]
    assert kinds(differences(full, empty)) == [gone]
    assert differences(full, full) == []


def test_topic_ids_and_highest_versions():
    before = result(topics=[topic(OLD_ID)], clients=[client("c", Fetch=[4, 11], Produce=[9])])
    replaced = topic(OLD_ID, state="replaced")
    after = result(topics=[replaced, topic(NEW_ID)], clients=[client("c", Fetch=[4], Produce=[9, 10])])
    assert kinds(differences(Side(before), Side(after))) == [
        ("topic-id", "orders", OLD_ID, NEW_ID, True),
        ("version-lower", "c Fetch", "v11", "v4", True),
        ("version-higher", "c Produce", "v9", "v10", False),
    ]


@pytest.mark.parametrize(("first", "last", "kind"), [
    (-60, -20, None),  # over before both
    (-60, -3, "client-gone"),  # seen shortly before the first
    (-60, 30, "client-gone"),
    (-60, 58, None),  # seen shortly before the second
    (-60, 90, None),
    (10, 20, "client-new"),  # between them only
    (10, 90, "client-new"),
    (61, 90, None),  # after both
])  # fmt: skip
def test_of_two_times_what_was_seen_around_each(first, last, kind):
    sides = at_times(result(clients=[client("c", first, last, Fetch=[4])]), at(0), at(60))
    assert [one.kind for one in differences(*sides)] == ([kind] if kind else [])


def test_topic_ids_of_two_times():
    both = result(topics=[topic(OLD_ID, -60, 9, state="replaced"), topic(NEW_ID, 10, 90)])
    assert [one.kind for one in differences(*at_times(both, at(0), at(60)))] == ["topic-id"]
    assert differences(*at_times(both, at(20), at(60))) == []
