"""How far groups are behind, and since when: what was committed last, beside how far the log reached."""

import pytest

from tests.judge.cases_progress import commits, fetches, grows, listed, recreated
from tests.judge.lab import ID_1, ID_2, Lab, ns
from wirecheck.judge.results import open_lags
from wirecheck.judge.results.open_lags import OpenLag

SLOT_NS = 10_000_000_000


def rows(lab):
    return {(row["group_id"], row["topic"]): row for row in lab.judge()["lags"].values()}


def of_group(lab, reads="g"):
    return rows(lab)[reads, "songs"]


def test_a_group_that_stopped_is_behind_by_what_came_since():
    lab = Lab()
    listed(lab, 0, ID_1)
    grows(lab, 100)
    commits(lab, [10, 25], [10, 24])
    lag = of_group(lab)
    assert (lag["partitions"], lag["unknown"], lag["records"]) == (1, 0, 97 - 24)
    assert abs(lag["waiting_since"] - ns(24)) <= SLOT_NS
    assert lag["growth_per_second"] == pytest.approx(1.0, abs=0.2)


def test_a_group_that_has_committed_all_waits_for_nothing():
    lab = Lab()
    listed(lab, 0, ID_1)
    grows(lab, 60)
    commits(lab, [10, 59], [10, 60])
    lag = of_group(lab)
    assert (lag["records"], lag["waiting_since"]) == (0, None)


def test_a_commit_that_goes_back_counts_also_within_one_slot():
    lab = Lab()
    listed(lab, 0, ID_1)
    grows(lab, 60)
    commits(lab, [10, 50.1], [10, 51])
    before = of_group(lab)["records"]
    commits(lab, [50.2], [5])
    assert of_group(lab)["records"] == before + 46


def test_where_no_end_was_seen_there_is_no_lag():
    lab = Lab()
    listed(lab, 0, ID_1)
    commits(lab, [10, 40], [10, 31])
    lag = of_group(lab)
    known = lag["partitions"], lag["unknown"], lag["records"], lag["waiting_since"], lag["growth_per_second"]
    assert known == (0, 1, None, None, None)


def test_what_was_committed_of_a_deleted_topic_is_no_lag_of_its_successor():
    lab = Lab()
    recreated(lab)
    commits(lab, [5, 20], [5, 20])
    fetches(lab, [(45 + n, n, n) for n in range(30)], ID_2, client_id="other", host="10.0.0.8")
    assert ("g", "songs") not in rows(lab)


def lag(group_id, records, since_s=None, label="lab"):
    return OpenLag(label, group_id, records, since_s)


def test_of_many_groups_those_that_are_furthest_behind_have_series_and_nothing_is_left_out(monkeypatch):
    monkeypatch.setattr(open_lags, "MOST", 2)
    records, since_s = open_lags.by_group(
        [lag("a", 5, 7.0), lag("b", 3), lag("b", 4, 9.0), lag("c", 1, 8.0), lag("d", 2, 6.0), lag("c", 1, label="two")]
    )
    assert records == {("lab", "a"): 5, ("lab", "b"): 7, ("lab", "(other)"): 3, ("two", "c"): 1}
    assert since_s == {("lab", "a"): 7.0, ("lab", "b"): 9.0, ("lab", "(other)"): 6.0}


def test_a_row_that_is_withdrawn_or_knows_no_end_has_no_series():
    row = {"label": "lab", "group_id": "g", "records": 4, "waiting_since": 3_000_000_000, "withdrawn": False}
    assert open_lags.kept(row) == OpenLag("lab", "g", 4, 3.0)
    assert open_lags.kept({**row, "records": None}) is open_lags.kept({**row, "withdrawn": True}) is None


def test_what_is_committed_in_transactions_counts_as_what_is_committed_else():
    lab = Lab()
    listed(lab, 0, ID_1)
    grows(lab, 60)
    for at, offset in ((10, 10), (40, 36)):
        row = {"partitionIndex": 0, "committedOffset": offset}
        asked = {"transactionalId": "t", "groupId": "g", "topics": [{"name": "songs", "partitions": [row]}]}
        answer = {"topics": [{"name": "songs", "partitions": [{"partitionIndex": 0, "errorCode": 0}]}]}
        lab.talk(client_id="app").ask(at, "TxnOffsetCommit", 3, asked, answer)
    assert of_group(lab)["records"] == 58 - 36
    commits(lab, [20], [20])
    assert of_group(lab)["records"] == 58 - 36, "what was committed last counts"
