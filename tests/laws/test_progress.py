"""Progress: what a reader never read is what is between where the log begins and the lowest offset that it asks for.
Nobody is accused whose position follows the log, however its group restarts, or who may have asked elsewhere.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.depth import DEEP
from tests.judge.cases_progress import (
    commits,
    crashes,
    fetches,
    follows,
    gets_empty_answers,
    gives_up,
    grows,
    is_quiet,
    leaves,
    listed,
    lives,
    process,
    recreated,
)
from tests.judge.lab import B1, B2, ID_1, ID_2, Lab

FEW = settings(max_examples=100 if DEEP else 15)
OF_PROGRESS = {"CLI004", "GRP009", "GRP010", "GRP011", "GRP012", "GRP014", "GRP015", "GRP018"}
OFFSETS = st.lists(st.integers(0, 200), min_size=1, max_size=12)


def codes(lab):
    return {finding["code"] for finding in lab.findings()} & OF_PROGRESS


def never_read(lab):
    return {finding["client_ids"][0]: finding["count"] for finding in lab.findings("GRP010")}


def reads_on(lab, offsets, *, by_name, client_id="reader", host="10.0.0.7"):
    """A reader of the topic before and after it was created again, at any offsets."""
    topic, version = (("songs", "songs"), 12) if by_name else ((ID_1, ID_2), 13)
    talk = fetches(lab, follows(1, 34), topic[0], version=version, client_id=client_id, host=host)
    steps = [(50 + n, offset, offset + 10) for n, offset in enumerate(offsets)]
    fetches(lab, steps, topic[1], version=version, talk=talk)


@FEW
@given(OFFSETS, st.booleans())
def test_what_was_never_read_is_what_is_below_the_lowest_offset(offsets, by_name):
    lab = Lab()
    recreated(lab)
    reads_on(lab, offsets, by_name=by_name)
    assert never_read(lab) == ({"reader": min(offsets)} if min(offsets) else {})


@FEW
@given(OFFSETS, OFFSETS, st.lists(st.integers(0, 200), max_size=4))
def test_what_is_read_by_name_and_what_by_id_is_read_and_what_is_rejected_is_not(named, numbered, refused):
    """A Java client asks by name until it knows the new ID."""
    lab = Lab()
    recreated(lab)
    talk = fetches(lab, follows(1, 34))
    fetches(lab, [(41 + n / 10, offset, 0, 6) for n, offset in enumerate(refused)], "songs", version=12, talk=talk)
    fetches(lab, [(42 + n / 10, offset, 300) for n, offset in enumerate(named)], "songs", version=12, talk=talk)
    fetches(lab, [(50 + n, offset, 300) for n, offset in enumerate(numbered)], ID_2, talk=talk)
    least = min(*named, *numbered)
    assert never_read(lab) == ({"reader": least} if least else {})


@FEW
@given(OFFSETS, OFFSETS)
def test_what_another_member_reads_was_read(mine, others):
    lab = Lab()
    recreated(lab)
    reads_on(lab, mine, by_name=False)
    reads_on(lab, others, by_name=False, host="10.0.0.9")
    least = min(*mine, *others)
    assert set(never_read(lab).values()) == ({least} if least else set())


@FEW
@given(OFFSETS, st.sampled_from(["another broker", "bytes are missing", "no deletion"]))
def test_what_may_have_been_asked_elsewhere_accuses_nobody(offsets, missing):
    lab = Lab()
    listed(lab, 0, ID_1)
    if missing != "no deletion":
        lab.deleted(35, "songs", ID_1)
    listed(lab, 40, ID_2)
    if missing == "another broker":
        lab.metadata(41, [("songs", ID_2)], brokers={B1: 1, B2: 2})
    reads_on(lab, offsets, by_name=False)
    if missing == "bytes are missing":
        lab.talks[-1].facts["unseen_request_bytes"] = 10
    assert codes(lab) <= {"GRP001"}


NEAR = st.lists(st.integers(20, 33), min_size=1, max_size=3)
"""Where a reader was in the former topic."""
UNSURE = (None, "another led it before", "another leads it", "nothing is said since", "another one read before")


@pytest.mark.parametrize("why", UNSURE)
@settings(max_examples=100 if DEEP else 4)
@given(st.one_of(NEAR, OFFSETS), st.integers(50, 99))
def test_what_the_only_leader_of_a_partition_was_asked_is_all_that_was_asked(why, offsets, at):
    """Broker 2 was not captured: broker 1 shows it only if it leads since the creation, and is said to yet. What is not
    where the reader was in the former topic may have been set at broker 2.
    """
    lab = Lab()
    recreated(lab)
    epoch, leader = int(why == "another led it before"), 1 + (why == "another leads it")
    said_at = 45 if why == "nothing is said since" else at
    lab.metadata(said_at, [("songs", ID_2, 0, epoch)], brokers={B1: 1, B2: 2}, leader=leader)
    reads_on(lab, offsets, by_name=False)
    if why == "another one read before":  # the first records, and goes before this one begins
        fetches(lab, [(41 + n, n, 90) for n in range(9)], ID_2, client_id="mate", host="10.0.0.9")
    kept = 20 <= min(offsets) <= 33
    assert never_read(lab) == ({"reader": min(offsets)} if why is None and kept else {})


@FEW
@given(st.lists(st.integers(2, 4), min_size=9, max_size=20))
def test_a_group_whose_commits_move_is_in_no_loop(pauses):
    lab, times = Lab(), [20]
    for pause in pauses:
        times.append(times[-1] + pause)
    offsets = [at - 2 for at in times]
    commits(lab, [at - 1 for at in times], offsets)
    crashes(lab, times, offsets)
    assert codes(lab) == set()


@FEW
@given(st.integers(3, 9), st.integers(0, 3))
def test_a_group_that_leaves_while_it_commits_has_done_its_work(every, late):
    """However far behind the log it is."""
    lab = Lab()
    listed(lab, 0, ID_1)
    grows(lab, 200, rate=3)
    talk = process(lab, 1, 1, until=60)
    leaves(talk, 60)
    times = range(5, 60 - late, every)
    commits(lab, times, times)
    fetches(lab, follows(2, 59))
    lab.until = 200
    assert "GRP011" not in codes(lab)


@FEW
@given(st.lists(st.tuples(st.integers(1, 12), st.integers(1, 9)), min_size=20, max_size=40))
def test_a_reader_that_moves_forward_reads_nothing_again(steps):
    """However slowly, and though its group commits nothing; at the end of the log it asks again and again."""
    lab, at, offset, asked = Lab(), 20, 10, []
    lives(lab, 400)
    for pause, records in steps:
        at, offset = at + pause, min(offset + records, at)
        asked.append((at, offset, at))
    fetches(lab, asked)
    assert not lab.findings("GRP018")


@FEW
@given(st.integers(1, 9), st.integers(0, 50), st.integers(0, 8))
def test_a_reader_that_comes_back_to_one_offset_is_named_however_often(every, ahead, later):
    lab = Lab()
    lives(lab, 200)
    rounds = range(20 + later, 180, every)
    fetches(lab, [step for at in rounds for step in ((at, 10, at), (at + every / 2, 10 + ahead, at))])
    assert [found["client_ids"] for found in lab.findings("GRP018")] == [["reader"]]


@FEW
@given(st.integers(1, 9), st.integers(1, 100), st.integers(1, 3), st.integers(0, 8))
def test_nothing_waits_for_a_group_that_has_committed_all(every, end, before, later):
    """Whatever another reader of its client ID looks at again, from the last record back."""
    lab = Lab()
    is_quiet(lab, end, 200)
    commits(lab, [5], [end])
    asked = range(20 + later, 180, every)
    fetches(lab, [step for at in asked for step in ((at, max(end - before, 0), end), (at + every / 2, end, end))])
    assert not lab.findings("GRP018")


@FEW
@given(st.integers(3, 19), st.integers(0, 60), st.lists(st.integers(5, 50), min_size=3, max_size=6))
def test_who_gets_records_once_in_a_while_is_fed_however_often_it_gives_up(every, offset, pauses):
    """A reader that closes its connections before their answers, and is answered in between or not at all."""
    answered, at = [], offset + 1
    for pause in pauses:
        at += pause
        answered.append(at)
    fed, unfed = Lab(), Lab()
    gives_up(fed, range(offset + 1, at + 40, every), offset, answered=answered)
    gives_up(unfed, range(offset + 10, offset + 120, every), offset)
    assert not fed.findings("CLI014")
    assert unfed.findings("CLI014")


@FEW
@given(st.integers(0, 60), st.integers(1, 9))
def test_empty_answers_say_nothing_while_other_records_of_the_topic_come(offset, partition):
    """A reader that is behind in several partitions gets those of one after the other."""
    unfed, behind = Lab(), Lab()
    gets_empty_answers(unfed, offset)
    gets_empty_answers(behind, offset, fed=(partition,))
    assert unfed.findings("CLI014")
    assert not behind.findings("CLI014")
