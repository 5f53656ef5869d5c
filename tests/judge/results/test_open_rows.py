"""What a row that stands counts as: a table at a time it is what the rule says of each row."""

import random

import pyarrow as pa

from wirecheck.decode import api_names
from wirecheck.decode.releases import removed_in_4
from wirecheck.judge.results import open_rows
from wirecheck.streaming.store.result_tables import schema

APIS = schema("clients").field("apis").type


def by_the_rule(apis):
    known = api_names.keys()
    return any(
        removed_in_4(known[used["api"]], version)
        for used in apis or ()
        if used["api"] in known
        for version in used["versions"]
    )


def test_a_client_speaks_what_was_removed_as_the_rule_has_it():
    chance = random.Random(7)
    names = [*api_names.keys(), "Api99999", ""]

    def some(count):
        return [
            {"api": chance.choice(names), "versions": [chance.randrange(-1, 16) for _ in range(chance.randrange(3))]}
            for _ in range(count)
        ]

    rows = [None, [], *(some(chance.randrange(4)) for _ in range(500))]
    found = open_rows.speak_removed(pa.chunked_array([pa.array(rows[:9], APIS), pa.array(rows[9:], APIS)]))
    assert found.tolist() == [by_the_rule(apis) for apis in rows]
    assert 20 < found.sum() < 450
    sliced = pa.chunked_array([pa.array(rows, APIS).slice(100, 50)])
    assert open_rows.speak_removed(sliced).tolist() == found.tolist()[100:150]


def test_of_clients_only_what_they_count_by_is_made_python():
    rows = pa.table({"id": ["x"], "label": ["L"], "apis": pa.array([[]], APIS), "requests": [7], "cluster": ["c"]})
    assert list(open_rows.rows("clients", rows)) == [{"id": "x", "label": "L", open_rows.OLD: False}]
    assert open_rows.counts_as("clients", {"label": "L", open_rows.OLD: True}) == ("L", "removed")
