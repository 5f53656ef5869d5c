"""What many groups and readers do with a topic is gone through once: not for each group, nor for each check."""

from collections import Counter

import pytest

from tests.judge.cases_progress import reads_alone
from tests.judge.lab import Lab
from tests.judge.made import ID_1
from wirecheck.judge.checks import progress
from wirecheck.judge.checks.progress import Log

GROUPS = 150
ROUNDS = 4
MOST_LOOKS = 12
"""Checks that look at the offsets of a partition, twice as many as there are."""


@pytest.mark.parametrize("commits", [False, True])
def test_the_offsets_of_many_groups_are_gone_through_once_for_each_check(commits, monkeypatch):
    claims = {"restored": 0, "committed": 0}
    at = Log.at

    def counted(log, kind, partition):
        found = at(log, kind, partition)
        if kind in claims:
            claims[kind] += len(found)
        return found

    monkeypatch.setattr(Log, "at", counted)
    lab = Lab()
    lab.metadata(1, [("songs", ID_1)])
    talk = lab.talk(client_id="reader", host="10.0.0.7")
    names = [f"group-{number}" for number in range(GROUPS)]
    partition = {"partitionIndex": 0, "committedOffset": 5}
    rows = [{"name": "songs", "partitions": [partition]}]
    for second in range(2, 2 + ROUNDS):
        asked = {"groups": [{"groupId": name, "topics": None} for name in names]}
        answered = {"groups": [{"groupId": name, "topics": rows} for name in names]}
        talk.ask(second, "OffsetFetch", 8, asked, answered)
        for name in names if commits else ():
            own = {"groupId": name, "topics": rows}
            done = {"topics": [{"name": "songs", "partitions": [{"partitionIndex": 0}]}]}
            talk.ask(second + 0.5, "OffsetCommit", 8, own, done)
    lab.judge()
    assert claims["restored"] >= GROUPS
    assert all(count <= MOST_LOOKS * GROUPS for count in claims.values()), claims


def test_the_offsets_of_a_reader_are_gone_through_once_for_all_checks(monkeypatch):
    extremes, times = progress.extremes, Counter()

    def counted(claims):
        found = [*claims]
        times.update({id(claim) for claim in found if claim.kind == "position"})
        return extremes(found)

    monkeypatch.setattr(progress, "extremes", counted)
    lab = Lab()
    for number in range(ROUNDS):
        reads_alone(lab, reader=f"reader-{number}")
    lab.judge()
    assert len(times) >= ROUNDS
    assert {*times.values()} == {1}
