"""Connections settle: they leave the ledger, their rows and sums stand, and no verdict depends on when they did."""

import random

import pytest

from tests.judge.lab import open_rows
from tests.judge.made import EAST, S, claim, cluster
from wirecheck.judge.revisions.judge import Judge

HOST = "10.0.0.9"
FACTS = {"frames": 9, "payload_bytes": 90, "requests": 3, "responses": 3, "from_start": 1}


def connection(number, at, until=None, *, over=False, protocol="kafka", **facts):
    """A connection as following hands it out."""
    until = at + 1 if until is None else until
    stamp = [int(until * S), 9]
    peak = {**FACTS, "protocol": [*stamp, protocol], "closed_by": [*stamp, "client-fin" if over else ""], **facts}
    peak |= {"over": 1} if over else {}
    return claim("connection", HOST, EAST, f"{HOST}:{number}", int(at * S), at=at, until=until, peak=peak)


def said(one, kind, *more, **facts):
    return claim(kind, *one.key, *more, at=one.first.ts_ns / S, **facts)


def of_one(number, at):
    """All that is said of a connection that is joined midway, has a gap and a stray answer, or is TLS; and its end."""
    kind = number % 4
    odd = [{"from_start": 0}, {"unseen_bytes": 70}, {}, {"protocol": "tls"}][kind]
    one = connection(number, at, over=True, **odd)
    gap = said(one, "gap", int(at * S), "response", 70, peak={"since": -int(at * S)})
    more = [[], [gap], [said(one, "stray", "response without request")], []]
    return [one, *more[kind], said(one, "connection_requests", "app", tally={"Fetch:13": 3})]


def judged(batches, *, restarts=False):
    """All rows of batches of (watermark in seconds, claims), and the last judge."""
    judge, rows, store = Judge("lab"), [], {}
    for number, (until, claims) in enumerate(batches):
        if restarts and number:
            judge = Judge("lab", store.get)
        judge.absorb(part.copy() for part in claims)
        judge.progress("agent", int(until * S), ended=number == len(batches) - 1)
        rows += judge.rows()
        store.update(judge.shards())
    return rows, judge


def known(judge):
    return {subject[2] for subject in judge.ledger.subjects("connection")}


def test_a_connection_that_is_over_leaves_once_all_have_passed_its_end_by_a_minute():
    one, other = connection(1, 5, over=True), connection(2, 5)
    batches = [(10, [cluster(), one, other]), (65.9, []), (66, [])]
    assert known(judged(batches[:2])[1]) == {f"{HOST}:1", f"{HOST}:2"}
    rows, judge = judged(batches)
    assert known(judge) == {f"{HOST}:2"}
    frames = [row["connection"] for row in open_rows(rows)["coverage"].values() if row["measure"] == "frames"]
    assert sorted(frames) == [f"{HOST}:1>{EAST}", f"{HOST}:2>{EAST}"]


def test_an_agent_whose_files_are_all_known_is_waited_for_however_late_it_is():
    judge = Judge("lab")
    judge.agents.awaited = frozenset({"early", "late"})
    judge.absorb([cluster(), connection(1, 5, over=True)])
    judge.progress("early", 3600 * S, ended=True)
    judge.rows()
    assert known(judge)
    judge.progress("late", 60 * S, ended=False)
    judge.rows()
    assert known(judge)
    judge.progress("late", 70 * S, ended=False)
    judge.rows()
    assert not known(judge)


def test_what_connections_add_is_the_same_whether_they_have_settled_or_not():
    parts = [of_one(number, 3 * number) for number in range(40)]
    whole = [(500, [cluster(), *(claim for part in parts for claim in part)])]
    expected = open_rows(judged(whole)[0])
    codes = sorted(row["code"] for row in expected["findings"].values())
    assert codes == ["VIS001", "VIS002", "VIS003", "WIR001"]
    batches = [(0, [cluster()]), *((3 * number + 2, part) for number, part in enumerate(parts)), (500, [])]
    for restarts in (False, True):
        rows, judge = judged(batches, restarts=restarts)
        assert not known(judge)
        assert open_rows(rows) == expected
    shuffled = parts[:]
    random.Random(3).shuffle(shuffled)
    rows, _ = judged([(0, [cluster()]), *((0, part) for part in shuffled), (500, [])])
    assert open_rows(rows) == expected


def test_a_batch_writes_what_it_touches_whatever_came_before():
    judge, store, sizes = None, {}, []
    for number in range(0, 2000, 20):
        judge = Judge("lab", store.get)
        part = [claim for n in range(number, number + 20) for claim in of_one(n * 4 + 2, n / 5)]
        judge.absorb([cluster(at=number / 5), *part])
        judge.progress("agent", int((number + 20) / 5 * S), ended=False)
        judge.rows()
        changed = judge.shards()
        sizes.append(sum(map(len, changed.values())))
        store |= changed
    assert judge.ledger.count("connection") <= 20 * (60 / 4 + 2)
    assert max(sizes[-10:]) < 1.1 * max(sizes[20:30])
    assert sum(map(len, store.values())) < 500_000


def test_rows_that_grow_are_told_once_in_a_while_and_the_last_ones_are_as_ever():
    def batch(number):
        grown = connection(1, 0, number, frames=10 * number)
        return [grown, claim("client", "app", HOST, EAST, at=number, count=5, tally={"Fetch:13": 5})]

    rows, _ = judged([(number, [cluster(at=number), *batch(number)]) for number in range(1, 300, 2)])
    by_table = {table: [row for row in rows if row.table == table] for table in ("coverage", "clients")}
    frames = [row.body["count"] // 10 for row in by_table["coverage"] if row.body["measure"] == "frames"]
    assert frames[0] <= 61
    assert len(frames) in range(2, 4)
    assert len(by_table["clients"]) in range(5, 8)
    last = open_rows(rows)
    assert [row["count"] for row in last["coverage"].values() if row["measure"] == "frames"] == [10 * 299]
    assert [row["requests"] for row in last["clients"].values()] == [5 * 150]


@pytest.mark.parametrize("silent", [False, True])
def test_a_connection_that_nobody_said_was_over_settles_when_no_follower_waits_for_it(silent):
    later = [] if silent else [connection(1, 5, 7000)]
    rows, judge = judged([(10, [cluster(), connection(1, 5)]), (3700, later), (7300, []), (7400, [])])
    assert bool(known(judge)) is not silent
    assert len(open_rows(rows)["coverage"])
