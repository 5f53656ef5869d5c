"""Traffic and errors by the minute, as a monitor's page draws them."""

import time

import pyarrow as pa
import pytest

from wirecheck.questions.over_time import SLOTS, Course
from wirecheck.questions.traffic_windows import MINUTE_NS
from wirecheck.streaming.store import result_folder
from wirecheck.streaming.store.batches import Folders, Tables
from wirecheck.streaming.store.minute_lanes import lanes_in
from wirecheck.streaming.store.result_tables import table_of
from wirecheck.wording import NS_PER_S

BEGIN = 1_000 * MINUTE_NS
COMMON = {"label": "lab", "revision": 1, "api": "Fetch"}


def request(minute, size=100):
    times = {"time": BEGIN + minute * MINUTE_NS, "first_seen": 0, "last_seen": 0}
    return {**COMMON, **times, "id": f"r{minute}", "request_bytes": size, "response_bytes": 2 * size}


def error(minute, count, client_id="app", name="NOT_LEADER_OR_FOLLOWER", host="10.0.0.9"):
    times = {"time": BEGIN + minute * MINUTE_NS, "first_seen": 0, "last_seen": 0}
    who = {"client_id": client_id, "host": host, "error": name, "count": count, "topic": "", "follower": -1}
    return {**COMMON, **times, **who, "id": f"e{minute}{client_id}{name}{host}"}


def lanes(tmp_path, batches, clients=("app",), since_ns=0):
    tables = Tables(tmp_path, "run")
    for number, (requests, errors) in enumerate(batches):
        rows = {"requests_by_minute": requests, "errors_by_minute": errors}
        tables.write({name: table_of(name, every) for name, every in rows.items() if every}, number)
    return lanes_in(tmp_path, "run", clients, since_ns)


def test_a_slot_is_a_minute_and_a_minute_without_traffic_is_empty(tmp_path):
    found = lanes(tmp_path, [([request(0), request(2)], [error(0, 3)]), ([request(2, 1)], [error(2, 4)])])
    assert found.payload_bytes == (300, 0, 303)
    assert (found.first_ns, found.last_ns) == (BEGIN, BEGIN + 3 * MINUTE_NS)
    assert found.courses == {"errors": [Course("app", "NOT_LEADER_OR_FOLLOWER", [3, None, 4])]}


def test_who_is_refused_after_the_last_request_is_drawn(tmp_path):
    """The brokers are gone: nothing is sent any more."""
    found = lanes(tmp_path, [([request(0)], [error(minute, 1, name="CONNECTION_REFUSED") for minute in (0, 3)])])
    assert found.payload_bytes == (300, 0, 0, 0)
    assert found.courses == {"errors": [Course("app", "CONNECTION_REFUSED", [1, None, None, 1])]}


def test_days_have_slots_of_some_minutes_each_and_nothing_is_lost(tmp_path):
    minutes = range(0, 3 * 24 * 60, 7)
    found = lanes(tmp_path, [([request(n) for n in minutes], [error(n, 1) for n in minutes])])
    (course,) = found.courses["errors"]
    assert len(found.payload_bytes) == len(course.values) <= SLOTS
    assert sum(found.payload_bytes) == 300 * len(minutes)
    assert sum(filter(None, course.values)) == len(minutes)
    assert (found.last_ns - found.first_ns) % MINUTE_NS == 0


def test_a_range_begins_with_the_minute_that_it_cuts(tmp_path):
    batches = [([request(n) for n in range(10)], [error(n, 1) for n in range(10)])]
    found = lanes(tmp_path, batches, since_ns=BEGIN + 4 * MINUTE_NS + 1)
    assert (found.first_ns, sum(found.payload_bytes)) == (BEGIN + 4 * MINUTE_NS, 6 * 300)
    assert found.courses["errors"][0].values == [1] * 6


def test_only_these_clients_are_drawn_by_their_address_without_a_name(tmp_path):
    errors = [
        error(0, 1), error(0, 2, "other"), error(0, 4, None, "CONNECTION_REFUSED"), error(0, 8, name="throttled"),
    ]  # fmt: skip
    found = lanes(tmp_path, [([request(0)], errors)], clients=("app", "10.0.0.9"))
    assert [one[:2] for one in found.courses["errors"]] == [
        ("10.0.0.9", "CONNECTION_REFUSED"),
        ("app", "NOT_LEADER_OR_FOLLOWER"),
    ]


@pytest.mark.parametrize("since_ns", [0, BEGIN + 100 * MINUTE_NS])
def test_without_traffic_there_is_no_lane(tmp_path, since_ns):
    found = lanes(tmp_path, [([request(0)] if since_ns else [], [error(0, 1)])], since_ns=since_ns)
    assert found is None


def test_the_times_of_the_table_are_nanoseconds_here(tmp_path):
    """Whatever unit a table was written with."""
    found = lanes(tmp_path, [([request(0)], [])])
    assert table_of("requests_by_minute", [request(0)])["time"].type == pa.timestamp("us", "UTC")
    assert found.first_ns == BEGIN


@pytest.mark.parametrize("kind", [result_folder.PARQUET, result_folder.DELTA])
def test_what_was_written_long_before_the_range_is_not_read(tmp_path, monkeypatch, kind):
    """The tables of months are read for an hour of them."""
    writer = result_folder.writer(tmp_path, "run", kind)
    for number in range(3):
        writer.write({"requests_by_minute": table_of("requests_by_minute", [request(number)])}, number)
    read = []
    monkeypatch.setattr(
        Folders,
        "rows",
        lambda self, number, columns, rows=Folders.rows: read.append(number) or rows(self, number, columns),
    )
    now_ns = time.time_ns()
    assert lanes_in(tmp_path, "run", (), now_ns + 48 * 3600 * NS_PER_S) is None
    assert read == []
    assert lanes_in(tmp_path, "run", (), 0) is not None
