"""A state that an earlier version left goes on: the verdict is that of one that never stopped."""

import gzip
import json
from pathlib import Path

import orjson
import pytest

from wirecheck.judge.claims.claim import unpack
from wirecheck.judge.judge import Judge
from wirecheck.judge.ledger.ledger import READ, STATE_VERSION, unversioned, version_of

STATES = Path(__file__).parents[1] / "states"
VERSIONS = sorted(READ - {STATE_VERSION})
SEEN = {"topics", "clients", "clusters", "partitions", "descriptions"}
"""Tables whose last rows do not depend on when a connection settles."""

OF_FOLLOWERS = [("fetch_versions", "server"), *(("follower", "follower", str(broker)) for broker in range(1, 4))]


def kept(version):
    return json.loads(gzip.decompress((STATES / f"{version}.json.gz").read_bytes()))


def shards(was):
    return {name: blob.encode("latin-1") for name, blob in was["state"].items()}


def gone_on(store, claims, until_ns, *, ended):
    """What one batch tells, with the state after it."""
    judge = Judge("default", store.get)
    judge.absorb(unpack(claims.encode()))
    judge.progress("agent", until_ns, ended=ended)
    rows = judge.rows()
    store |= judge.shards()
    return rows


def standing(store):
    """The last revisions of the rows that are remembered and stand, by table."""
    found = {}
    for name, blob in store.items():
        if name.startswith("told-"):
            for rows in orjson.loads(unversioned(blob))["cells"].values():
                for row, (_, is_open, body, *_) in rows.items():
                    if is_open:
                        found.setdefault(row.partition("|")[0], {})[row] = body
    return found


def counted(rows):
    """The last word of each row of coverage."""
    last = {row.key: row.body for row in rows if row.table == "coverage"}
    return {key: None if body.get("withdrawn") else body["count"] for key, body in last.items()}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_state_of_before_goes_on_to_the_verdict_of_one_that_never_stopped(version):
    was = kept(version)
    store = shards(was)
    assert {version_of(blob) for blob in store.values()} == {version}
    before = standing(store)
    told = gone_on(store, was["claims"][1], was["until_ns"][1], ended=True)
    anew, rows = {}, []
    rows += gone_on(anew, was["claims"][0], was["until_ns"][0], ended=False)
    rows += gone_on(anew, was["claims"][1], was["until_ns"][1], ended=True)
    now, expected = standing(store), standing(anew)
    assert {table: now.get(table) for table in SEEN} == {table: expected.get(table) for table in SEEN}
    assert now["findings"].keys() == expected["findings"].keys()
    assert {body["code"] for body in before["findings"].values()} <= {body["code"] for body in now["findings"].values()}
    counts = {row.partition("|")[2]: body["count"] for row, body in before.get("coverage", {}).items()} | counted(told)
    assert {key: count for key, count in counts.items() if count} == {k: n for k, n in counted(rows).items() if n}
    assert version_of(store["main"]) == STATE_VERSION


def test_what_followers_said_is_found_where_it_is_said_now():
    was = kept(8)
    before, now = shards(was), {}
    gone_on(before, was["claims"][1], was["until_ns"][1], ended=True)
    gone_on(now, was["claims"][0], was["until_ns"][0], ended=False)
    gone_on(now, was["claims"][1], was["until_ns"][1], ended=True)
    said = [
        {
            c.identity: c
            for kind, *subject in OF_FOLLOWERS
            for c in Judge("default", store.get).ledger.claims(kind, *subject)
        }
        for store in (before, now)
    ]
    assert said[0] == said[1]
    assert {kind for kind, _ in said[0]} == {kind for kind, *_ in OF_FOLLOWERS}
    assert not any(claim.tally for claim in said[0].values() if claim.kind == "follower")


@pytest.mark.parametrize("version", VERSIONS)
def test_later_revisions_of_rows_of_before_are_later_and_nothing_of_a_connection_is_left_elsewhere(version):
    was = kept(version)
    store = shards(was)
    numbers = {}
    for name, blob in store.items():
        if name.startswith("told-"):
            for rows in orjson.loads(unversioned(blob))["cells"].values():
                numbers |= {row: number for row, (number, *_) in rows.items()}
    told = gone_on(store, was["claims"][1], was["until_ns"][1], ended=True)
    again = [row for row in told if f"{row.table}|{row.key}" in numbers]
    grown = {"coverage", "clients"} & {row.partition("|")[0] for row in numbers}  # 7 had told no coverage by then
    assert "clients" in grown <= {row.table for row in again}
    assert all(row.revision > numbers[f"{row.table}|{row.key}"] for row in again)
    judge = Judge("default", store.get)
    assert all(judge.ledger.subjects("connection"))
    assert not [
        c for s in judge.ledger.subjects("link") for c in judge.ledger.claims_of(*s).values() if c.kind == "gap"
    ]
    assert judge.ledger.count("connection") == len(list(judge.ledger.subjects("connection"))) > 0
    assert judge.ledger.count("id") == len(list(judge.ledger.subjects("id")))
