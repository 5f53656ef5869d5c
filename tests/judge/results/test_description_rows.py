"""What topics looked like, from bytes: partitions, who said so, and no row for what is merely said again."""

import pytest

from tests.judge.lab import B2, ID_1, ID_2, NO_ID, Lab, ns, open_rows
from wirecheck.judge.results.topic_rows import operation_names
from wirecheck.judge.revisions.judge import Judge


def described(lab, table="partitions"):
    return list(lab.judge()[table].values())


def states(lab):
    """(leader, epoch, isr, until in seconds), in the order they were first said."""
    rows = sorted(described(lab), key=lambda row: row["first_seen"])
    return [(r["leader"], r["leader_epoch"], r["isr"], r["until"] and (r["until"] - ns(0)) / 1e9) for r in rows]


def test_a_state_holds_until_the_next_epoch_begins():
    lab = Lab()
    lab.control(1, "LeaderAndIsr", [("orders", ID_1, 0)])
    lab.control(5, "LeaderAndIsr", [("orders", ID_1, 1, {"leader": 2, "isr": [3, 2]})])
    lab.metadata(9, [("orders", ID_1)])  # a broker that lags says the old epoch again: nothing changes
    assert states(lab) == [(1, 0, [1, 2, 3], 5), (2, 1, [3, 2], None)]


def test_an_isr_that_shrinks_and_comes_back_is_what_was_said_last():
    lab = Lab()
    for at, isr in ((1, [1, 2, 3]), (3, [1, 2]), (5, [3, 1, 2])):
        lab.control(at, "LeaderAndIsr", [("orders", ID_1, 0, {"isr": isr})])
    assert states(lab) == [(1, 0, [1, 2, 3], None), (1, 0, [1, 2], 3)]


def test_each_state_names_who_said_it_first():
    lab = Lab()
    lab.control(1, "UpdateMetadata", [("orders", ID_1, 0)], server=B2)
    lab.metadata(2, [("orders", ID_1)])
    (row,) = described(lab)
    assert (row["source"], row["connection"].partition(">")[2], row["first_seen"]) == ("update-metadata", B2, ns(1))
    assert (row["topic_id"], row["name"]) == (ID_1, None)


@pytest.mark.parametrize("topic_id", [None, NO_ID], ids=["version without ids", "zero id"])
def test_a_topic_without_id_is_described_under_its_name(topic_id):
    lab = Lab()
    lab.metadata(1, [("orders", topic_id)], version=8 if topic_id is None else 12)
    (row,) = described(lab)
    assert (row["name"], row["topic_id"], row["replicas"]) == ("orders", None, [1, 2, 3])


def offline(lab, at, replicas):
    partition = {"leaderId": 1, "replicaNodes": [1, 2, 3], "isrNodes": [1, 2], "offlineReplicas": replicas}
    topic = {"name": "orders", "topicId": ID_1, "partitions": [partition]}
    lab.until = at
    lab.talk().ask(at, "Metadata", 12, {"topics": None}, {"topics": [topic]})


@pytest.mark.parametrize(("states", "expected"), [([[3]], [3]), ([[3], []], []), ([[], [3]], [3])])
def test_replicas_are_offline_while_the_last_word_says_so(states, expected):
    lab = Lab()
    for at, replicas in enumerate(states):
        offline(lab, at, replicas)
    assert [row["offline_replicas"] for row in described(lab)] == [expected]


def test_offline_is_unknown_where_nobody_says_such_things():
    lab = Lab()
    lab.control(1, "LeaderAndIsr", [("orders", ID_1, 0)])
    assert [row["offline_replicas"] for row in described(lab)] == [None]


def test_what_a_topic_is_as_a_whole():
    lab = Lab()
    topics = [
        {"name": "orders", "topicId": ID_1, "topicAuthorizedOperations": 0b1000},
        {"name": "__consumer_offsets", "topicId": ID_2, "isInternal": True, "topicAuthorizedOperations": -(1 << 31)},
    ]
    lab.talk().ask(1, "Metadata", 12, {"topics": None}, {"topics": topics})
    rows = {row["topic_id"]: (row["internal"], row["authorized_operations"]) for row in described(lab, "descriptions")}
    assert rows == {ID_1: (False, ["READ"]), ID_2: (True, None)}


def test_bits_of_operations_that_nobody_has_named_keep_their_number():
    assert operation_names(1 << 8 | 1 << 29) == ["DESCRIBE", "29"]


def test_a_state_that_is_said_again_in_later_batches_writes_no_row():
    judge, emitted = Judge("lab"), []
    for at in range(1, 6):
        lab = Lab()
        lab.metadata(at, [("orders", ID_1)])
        judge.absorb(lab.claims())
        judge.progress("agent", ns(at), ended=False)
        emitted.append([row for row in judge.rows() if row.table in {"partitions", "descriptions"}])
    assert [len(rows) for rows in emitted] == [2, 0, 0, 0, 0]
    assert len(open_rows(emitted[0])["partitions"]) == 1
