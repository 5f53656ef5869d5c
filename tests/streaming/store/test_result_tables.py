"""Rows of result tables."""

import datetime as dt

import pytest

from wirecheck.judge.claims.kinds import SPACES
from wirecheck.streaming.store import result_tables

TIME_NS = 1_700_000_000_123_456_789


def test_nanoseconds_become_microseconds_also_inside_the_sides_of_a_finding():
    side = {
        "time": TIME_NS, "claim": "c", "connection": "a>b", "api": "Fetch", "version": 13, "correlation_id": 7,
        "frame": {"source": "x.pcap", "first": 1, "last": 2},
    }  # fmt: skip
    (row,) = result_tables.from_ipc(
        result_tables.to_ipc("findings", [{"id": "x", "first_seen": TIME_NS, "sides": [side]}])
    ).to_pylist()
    expected = dt.datetime(2023, 11, 14, 22, 13, 20, 123456, dt.UTC)
    assert (row["first_seen"], row["sides"][0]["time"], row["last_seen"]) == (expected, expected, None)
    assert row["sides"][0]["frame"] == side["frame"]


def test_a_name_that_is_no_column_is_our_mistake():
    with pytest.raises(KeyError, match="no such column: colour"):
        result_tables.to_ipc("topics", [{"id": "x", "colour": "red"}])


@pytest.mark.parametrize("table", result_tables.TABLES)
def test_every_column_has_one_sentence(table):
    for field in result_tables.schema(table):
        assert field.metadata[b"comment"].endswith(b".")


@pytest.mark.parametrize("table", result_tables.TABLES.values(), ids=lambda table: table.name)
def test_what_a_table_says_of_itself_is_there(table):
    columns = {column.name for column in table.columns}
    assert len(columns) == len(table.columns)
    assert table.rows.keys() <= SPACES.keys()
    assert "others" in columns or not table.bounded
    assert {*table.order_by} <= columns
    assert table.in_result or not table.order_by
    assert table.revised == ({"id", "revision", "label"} <= columns)
