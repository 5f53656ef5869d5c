"""The judge tells what changed, withdraws what no longer holds, and ends the same whatever the cuts."""

import random

from tests.judge.lab import CLUSTER, Lab, ns, open_rows, raising
from tests.judge.lab import ID_1 as LAB_1
from tests.judge.lab import ID_2 as LAB_2
from tests.judge.made import EAST, ID_1, ID_2, ID_3, WEST, S, bound, claim, cluster
from wirecheck.judge.claims.claim import ZERO
from wirecheck.judge.revisions.judge import Judge

STORY = [
    cluster(),
    bound("orders", ID_1, 1, until=20),
    claim("partition", ID_1, 0, "metadata", 4, 1, "1,2", "1,2", at=1, until=20),
    claim("deletion", "orders", ID_1, "delete-topics", EAST, None, at=21),
    bound("orders", ID_2, 30, until=40),
    bound("steady", ID_3, 1, until=40),
    bound("bare", None, 2, source="leader-and-isr", by="1@3"),
    bound("bare", ZERO, 3, source="metadata"),
    claim("use", "uuuuuuuuuuuuuuuuuuuuuA", "Fetch", "c", "10.0.0.99", EAST, at=5),
    claim("client", "c", "10.0.0.99", EAST, at=5, until=9, count=7, tally={"Fetch:13": 6, "Metadata:12": 1}),
    claim("software", "c", "10.0.0.99", EAST, "librdkafka", "2.1", at=5),
]


def judged(batches, store=None):
    """All rows told over batches of claims, by one judge, or by a new one per batch from stored shards."""
    rows = []
    judge = Judge("lab")
    for number, batch in enumerate(batches):
        if store is not None and number:
            judge = Judge("lab", store.get)
        judge.absorb(part.copy() for part in batch)
        judge.progress("agent", int(max([p.last.ts_ns for p in batch], default=0)), ended=number == len(batches) - 1)
        rows += judge.rows()
        if store is not None:
            store.update(judge.shards())
    return rows


def ends(rows):
    return open_rows(rows)


def test_a_recreation_is_told_once_with_both_ids_in_order():
    found = [f for f in ends(judged([STORY]))["findings"].values() if f["code"] == "TID001"]
    assert [(f["code"], f["topic"], f["topic_ids"]) for f in found] == [("TID001", "orders", [ID_1, ID_2])]
    assert "deleted at 1970-01-01 00:00:21.000 UTC" in found[0]["summary"]


def test_topics_have_one_row_per_id_and_one_for_a_name_without_any():
    rows = {(row["name"], row["topic_id"]): row for row in ends(judged([STORY]))["topics"].values()}
    states = {key: (row["state"], row["earlier_ids"]) for key, row in rows.items()}
    assert states == {
        ("orders", ID_1): ("replaced", []),
        ("orders", ID_2): ("current", [ID_1]),
        ("steady", ID_3): ("current", []),
        ("bare", None): ("current", []),
        (None, "uuuuuuuuuuuuuuuuuuuuuA"): ("unresolved", []),
    }


def test_a_name_that_arrives_later_resolves_the_id():
    late = bound("named", "uuuuuuuuuuuuuuuuuuuuuA", 50)
    rows = ends(judged([STORY, [late]]))["topics"].values()
    assert [(r["name"], r["state"]) for r in rows if r["topic_id"] == late["topic_id"]] == [("named", "current")]


def test_a_client_row_names_software_and_versions():
    (row,) = ends(judged([STORY]))["clients"].values()
    assert (row["software_name"], row["software_version"], row["requests"]) == ("librdkafka", "2.1", 7)
    assert row["apis"] == [{"api": "Fetch", "versions": [13]}, {"api": "Metadata", "versions": [12]}]


def test_any_order_cut_and_restart_ends_with_the_same_open_rows():
    expected = ends(judged([STORY]))
    rng = random.Random(7)
    for _ in range(25):
        story = STORY[:]
        rng.shuffle(story)
        cuts = sorted(rng.sample(range(len(story) + 1), 3))
        batches = [story[a:b] for a, b in zip([0, *cuts], [*cuts, len(story)], strict=True)]
        batches.append([claim("server", EAST, at=40)])  # the end: all capture time has passed
        assert ends(judged([STORY, batches[-1]])) == ends(judged(batches)) == ends(judged(batches, store={}))
    assert expected["findings"] == ends(judged([STORY, []]))["findings"]


def test_nothing_is_told_twice():
    judge = Judge("lab")
    judge.absorb(part.copy() for part in STORY)
    assert judge.rows()
    assert judge.rows() == []


def test_a_finding_is_withdrawn_when_its_cluster_becomes_known():
    named, rest = STORY[:1], STORY[1:]
    rows = [row for row in judged([rest, named]) if row.body.get("code") == "TID001"]
    emitted = sorted((row.body["cluster"], row.revision, row.body["state"]) for row in rows)
    assert [(cluster()["cluster_id"], 1, "open"), ("lab", 1, "open"), ("lab", 2, "withdrawn")] == emitted


def test_names_are_never_compared_across_clusters():
    west = [cluster("west-cluster-id-22-chars", WEST), bound("orders", ID_3, 35, server=WEST)]
    found = ends(judged([STORY + west]))
    assert [f["topic_ids"] for f in found["findings"].values() if f["code"] == "TID001"] == [[ID_1, ID_2]]
    assert len(found["clusters"]) == 2


def test_an_agent_that_is_behind_holds_the_watermark_until_it_is_silent_too_long():
    judge = Judge("lab")
    judge.progress("a", 100 * S, ended=False)
    judge.progress("b", 50 * S, ended=False)
    assert judge.watermark_ns == 50 * S
    judge.progress("a", 111 * S, ended=False)
    assert judge.watermark_ns == 111 * S
    judge.progress("b", 60 * S, ended=True)
    judge.progress("a", 115 * S, ended=True)
    assert judge.watermark_ns == 115 * S


def test_a_late_file_that_refutes_an_absence_withdraws_the_finding():
    """The id was used and nothing named it; an agent that lags behind shows who did, before the use."""
    judge = Judge("lab")
    judge.absorb([cluster(), claim("use", ID_1, "Fetch", "app", "10.0.0.99", EAST, at=5)])
    judge.progress("agent", 60 * S, ended=False)
    emitted = judge.rows()
    judge.absorb([bound("orders", ID_1, 1)])
    emitted += judge.rows()
    assert [(row.revision, row.body["state"]) for row in emitted if row.body.get("code") == "TID014"] == [
        (1, "open"), (2, "withdrawn"),
    ]  # fmt: skip
    assert "findings" not in open_rows(emitted)


def test_what_a_check_told_stands_while_it_raises_and_is_judged_again_once_it_does_not():
    lab, state = Lab(), {}
    lab.metadata(0, [("orders", LAB_1)])
    lab.deleted(5, "orders", LAB_1)
    lab.metadata(10, [("orders", LAB_2)])
    emitted = batch_of(lab, state)
    (name,) = (row.key for row in emitted if row.body.get("code") == "TID001")
    lab.metadata(20, [("orders", LAB_2)])
    with raising("TID001"):
        emitted = batch_of(lab, state)
    assert not [row for row in emitted if row.key == name]
    (said,) = (row.body for row in emitted if row.body.get("code") == "VIS006")
    assert "TID001 failed for 1 subject: LookupError in lab.py:" in said["summary"]
    assert said["cluster"] == CLUSTER
    lab.metadata(30, [("orders", LAB_2)])
    emitted = batch_of(lab, state)
    assert [row.body["state"] for row in emitted if row.body.get("code") == "VIS006"] == ["withdrawn"]
    assert not [row for row in emitted if row.key == name and row.body["state"] == "withdrawn"]


def batch_of(lab, state):
    """What a judge that goes on from its state tells of all that the lab has seen since."""
    judge = Judge("lab", state.get)
    judge.absorb(lab.claims())
    judge.progress("agent", ns(lab.until), ended=False)
    emitted = judge.rows()
    state.update(judge.shards())
    lab.talks.clear()
    return emitted


def test_a_vote_of_an_unknown_topic_contradicts_nothing(capsys):
    """The bytes of its name and ID were not captured."""
    named = [claim("quorum_leader", EAST, name, None, 0, 11, 2, "Vote", at=at) for at, name in ((1, "log"), (2, None))]
    other = claim("quorum_leader", WEST, None, None, 0, 11, 3, "Vote", at=3, server=WEST)
    found = open_rows(judged([[cluster(), cluster(server=WEST), *named, other]]))["findings"]
    assert [row["code"] for row in found.values() if row["code"] in {"LOG006", "VIS006"}] == []
    assert capsys.readouterr().err == ""
