"""Who says, uses and refuses a disputed id: one row per speaker, and none where nobody can disagree."""

from tests.judge.lab import B1, B2, ID_1, ID_2, Lab, ns
from wirecheck.judge.results.topic_rows import MOST_CLIENTS
from wirecheck.judge.revisions.judge import Judge


def statements(lab):
    rows = lab.judge()["statements"].values()
    return sorted((r["topic_id"], r["speaker"], r["who"], r["does"], r["broker"], r["count"]) for r in rows)


def recreated(lab):
    for at in (1, 2):
        lab.metadata(at, [("orders", ID_1)])
    lab.metadata(3, [("orders", ID_1)], server=B2)
    lab.metadata(9, [("orders", ID_2)])


def test_each_broker_has_a_row_per_id_from_its_first_to_its_last_word():
    lab = Lab()
    recreated(lab)
    assert statements(lab) == [
        (ID_1, "broker", B1, "says", 1, 2),
        (ID_1, "broker", B2, "says", 2, 1),
        (ID_2, "broker", B1, "says", 1, 1),
    ]
    rows = {(row["topic_id"], row["who"]): row for row in lab.judge()["statements"].values()}
    assert (rows[ID_1, B1]["first_seen"], rows[ID_1, B1]["name"]) == (ns(1.001), "orders")
    assert rows[ID_1, B1]["last_seen"] == ns(2.001)


def test_a_topic_with_one_id_that_nobody_refuses_has_none():
    lab = Lab()
    lab.metadata(1, [("orders", ID_1)])
    lab.fetches([2, 3], ID_1)
    assert statements(lab) == []


def test_who_refuses_an_order_and_who_gives_it_have_theirs():
    lab = Lab()
    lab.metadata(1, [("orders", ID_1)])
    lab.control(2, "LeaderAndIsr", [("orders", ID_1, 0)], errors=[(ID_1, 103)])
    assert [(speaker, does) for _, speaker, _, does, _, _ in statements(lab)] == [
        ("broker", "refuses"),
        ("broker", "says"),
        ("controller", "orders"),
    ]


def test_a_client_is_one_row_whatever_it_is_connected_to_and_of_many_the_first_stay():
    lab = Lab()
    recreated(lab)
    for number in range(MOST_CLIENTS + 5):
        for server in (B1, B2):
            lab.fetches([4 + number / 100], ID_1, server=server, client_id=f"app-{number:03}")
    users = [row for row in statements(lab) if row[1] == "client"]
    assert [row[2] for row in users] == [f"app-{number:03}" for number in range(MOST_CLIENTS)]
    alone = Lab()
    recreated(alone)
    alone.fetches([4], ID_1, client_id="app")
    (one,) = [row for row in statements(alone) if row[1] == "client"]
    assert {row[-1] for row in users} == {2 * one[-1]}


def test_what_is_merely_said_again_is_told_once_a_minute():
    judge, emitted = Judge("lab"), []
    for at in range(1, 130):
        lab = Lab()
        lab.metadata(at, [("orders", ID_1 if at < 5 else ID_2)])
        judge.absorb(lab.claims())
        judge.progress("agent", ns(at), ended=at == 129)
        emitted += [(at, row) for row in judge.rows() if row.table == "statements" and row.body["topic_id"] == ID_2]
    assert len(emitted) <= 5
    assert emitted[-1][0] == 129
    assert emitted[-1][1].body["count"] == 125
