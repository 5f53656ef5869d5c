"""Rows of a minute put together are the sums that who reads them would make."""

from collections import Counter, defaultdict

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.depth import examples
from wirecheck.streaming.store.minute_sums import KEYS, together
from wirecheck.streaming.store.result_tables import schema, table_of

TEXTS = st.sampled_from(["a", "b", "é", ""])
MOMENTS = st.integers(1, 9)
COUNTS = st.lists(st.tuples(st.integers(0, 4), st.integers(1, 9)), max_size=3, unique_by=lambda one: one[0])


@st.composite
def requests(draw):
    counted = [{"bucket": bucket, "count": count} for bucket, count in sorted(draw(COUNTS))]
    return {
        "label": "L", "revision": 1, "time": draw(st.sampled_from([0, 60])) * 10**9, "host": draw(TEXTS),
        "client_id": draw(st.sampled_from(["x", None])), "api": draw(TEXTS), "server": draw(TEXTS),
        "count": draw(st.integers(1, 9)), "first_seen": draw(MOMENTS) * 1000, "last_seen": draw(MOMENTS) * 1000,
        "request_bytes": draw(st.integers(0, 9)), "response_bytes": draw(st.integers(0, 9)),
        "versions": sorted(draw(st.sets(st.integers(0, 3)))), "granted": draw(st.sampled_from([None, 5000])),
        "fetch_begun": draw(st.sampled_from([None, 7000, 9000])),
        "latencies": counted, "broker_latencies": counted[:1], "network_latencies": [],
    }  # fmt: skip


@st.composite
def uses(draw):
    servers = [{"server": f"s{name}", "count": count} for name, count in sorted(draw(COUNTS))]
    return {
        "label": "L", "revision": 1, "time": 0, "host": draw(TEXTS), "client_id": None, "api": "Fetch",
        "topic": draw(TEXTS), "follower": draw(st.sampled_from([-1, 2])), "count": draw(st.integers(0, 2)),
        "first_seen": draw(MOMENTS) * 1000, "last_seen": draw(MOMENTS) * 1000, "servers": servers,
        "named": draw(st.sampled_from([None, 5000])), "forgotten": None,
    }  # fmt: skip


def added_up(table, rows):
    """By key, with whether anything was asked for."""
    found = defaultdict(Counter)
    for row in rows:
        mine = found[*(row[key] for key in KEYS[table]), row["count"] > 0]
        for name, value in row.items():
            if name in {"count", "request_bytes", "response_bytes"}:
                mine[name] += value
            elif name == "first_seen":
                mine[name] = min(mine[name] or value, value)
            elif name in {"last_seen", "granted", "fetch_begun", "named", "forgotten"} and value:
                mine[name] = max(mine[name] or value, value)
            elif name == "versions":
                mine.update({(name, one): 1 for one in value if (name, one) not in mine})
            elif isinstance(value, list):
                mine.update({(name, one.get("bucket", one.get("server"))): one["count"] for one in value})
    return {key: +mine for key, mine in found.items()}


@pytest.mark.parametrize(("table", "row"), [("requests_by_minute", requests()), ("uses_by_minute", uses())])
def test_sums_are_the_same_however_many_rows_were_put_together_before(table, row):
    @examples(60, deep=500)
    @given(st.lists(row, min_size=1, max_size=12), st.integers(0, 12))
    def law(rows, cut):
        named = [{"id": str(place), **one} for place, one in enumerate(rows)]
        every = table_of(table, named)
        once = together(table, every)
        assert once.schema == schema(table)
        read = times_as_numbers(once)
        assert len(read) == len(added_up(table, read)) == len(added_up(table, rows))
        assert [int(one["id"]) for one in read] == sorted(int(one["id"]) for one in read)
        assert added_up(table, read) == added_up(table, times_as_numbers(every))
        twice = together(table, pa.concat_tables([together(table, every.slice(0, cut)), every.slice(cut)]))
        assert twice.equals(once)

    law()


def times_as_numbers(rows):
    kinds = [(one.name, pa.int64() if pa.types.is_timestamp(one.type) else one.type) for one in rows.schema]
    return rows.cast(pa.schema(kinds)).to_pylist()


def test_of_rows_that_differ_nothing_is_copied():
    rows = table_of("uses_by_minute", [{"id": "0", "topic": "a", "count": 1}, {"id": "1", "topic": "b", "count": 1}])
    assert together("uses_by_minute", rows) is rows
