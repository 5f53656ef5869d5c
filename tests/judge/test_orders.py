"""Orders count when they were accepted, or when who gave them is known; whatever the order in which that is learned."""

import pytest

from tests.judge.lab import B1, B2, CLUSTER, ID_1, ID_2, Lab, ns, open_rows
from wirecheck.decode.connection.exchanges import CLOSED_BY_CLIENT
from wirecheck.judge.checks.shapes import clock
from wirecheck.judge.revisions.judge import Judge

OUTSIDER = "10.66.6.6"


@pytest.fixture
def lab():
    made = Lab()
    made.metadata(0, [("orders", ID_1)])
    made.metadata(100, [("orders", ID_1)])
    return made


def ordered(lab, api, at=50, *, host=OUTSIDER, server=B1, error=None, topic_id=ID_2, epoch=99):
    """One order of controller 66; without an error its connection is closed before it is answered."""
    version, state = {
        "LeaderAndIsr": (5, {"controllerEpoch": epoch, "leader": 2, "leaderEpoch": 999, "isr": [2], "replicas": [2]}),
        "UpdateMetadata": (7, {"controllerEpoch": epoch, "leader": 2, "leaderEpoch": 999, "isr": [2], "replicas": [2]}),
        "StopReplica": (3, {"leaderEpoch": -2, "deletePartition": 1}),
    }[api]
    topic = {"topicName": "orders", "partitionStates": [{"partitionIndex": 0, **state}]}
    if api != "StopReplica":
        topic["topicId"] = topic_id
    body = {"controllerId": 66, "controllerEpoch": epoch, "topicStates": [topic]}
    answer = None if error is None else {"errorCode": error}
    outcome = CLOSED_BY_CLIENT if error is None else None
    lab.talk(server, "66", host).ask(at, api, version, body, answer, outcome=outcome)


def topics(lab):
    return {row["topic_id"]: row["state"] for row in lab.judge()["topics"].values()}


APIS = ("LeaderAndIsr", "UpdateMetadata", "StopReplica")


def heeded(lab, api):
    """Whether the judge believes the order: another id, or a deletion."""
    listed = topics(lab)
    return listed[ID_1] == "deleted" if api == "StopReplica" else ID_2 in listed


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("error", [31, 11, 77])
@pytest.mark.parametrize("host", [OUTSIDER, "10.0.0.2"])
def test_what_was_refused_changes_nothing_whoever_asked(lab, api, error, host):
    before = lab.judge()["topics"]
    ordered(lab, api, error=error, host=host)
    assert lab.judge()["topics"] == before


@pytest.mark.parametrize("api", APIS)
def test_what_was_accepted_counts_whoever_asked(lab, api):
    ordered(lab, api, error=0)
    assert heeded(lab, api)


@pytest.mark.parametrize("api", APIS)
def test_an_unanswered_request_of_an_outsider_changes_nothing(lab, api):
    before = lab.judge()["topics"]
    ordered(lab, api)
    assert lab.judge()["topics"] == before
    assert lab.findings("CTL001") == []


@pytest.mark.parametrize("api", APIS)
def test_what_a_broker_asked_counts_although_its_answer_was_not_seen(lab, api):
    ordered(lab, api, host="10.0.0.2")
    assert heeded(lab, api)


@pytest.mark.parametrize("api", APIS)
def test_who_was_obeyed_once_is_known(lab, api):
    """As on one host's loopback, where the controller's address is in no list."""
    ordered(lab, api, host="127.0.0.1")
    ordered(lab, "UpdateMetadata", at=60, host="127.0.0.1", server=B2, error=0, topic_id=ID_1, epoch=1)
    assert heeded(lab, api)


def test_an_order_waits_for_its_sender_whatever_the_batches(lab):
    ordered(lab, "LeaderAndIsr", host="127.0.0.1")
    ordered(lab, "UpdateMetadata", at=60, host="127.0.0.1", server=B2, error=0, topic_id=ID_1, epoch=1)
    claims, found = lab.claims(), []
    for split in (len(claims), *range(1, len(claims), 5)):
        for parts in ((claims[:split], claims[split:]), (claims[split:], claims[:split])):
            judge, rows = Judge("lab"), []
            for part in parts:
                judge.absorb(part)
                judge.progress("agent", ns(200), ended=True)
                rows += judge.rows()
                stored = {**getattr(judge, "kept", {}), **judge.shards()}
                judge = Judge("lab", stored.get)
                judge.kept = stored
            found.append(open_rows(rows)["topics"])
    assert all(rows == found[0] for rows in found)
    assert {row["topic_id"] for row in found[0].values()} == {ID_1, ID_2}


@pytest.mark.parametrize("api", APIS)
def test_where_no_answer_is_ever_seen_orders_count(api):
    """A capture of one direction."""
    lab = Lab()
    lab.until = 200
    ordered(lab, "LeaderAndIsr", at=0, topic_id=ID_1, epoch=1)
    ordered(lab, api)
    assert heeded(lab, api)


def test_an_outsider_with_an_old_epoch_is_no_second_controller(lab):
    lab.control(0, "UpdateMetadata", [("orders", ID_1, 1)], controller=3, epoch=5)
    ordered(lab, "UpdateMetadata", error=31, epoch=1)
    ordered(lab, "UpdateMetadata", error=11, epoch=1)
    assert lab.findings("CTL001") == []


def test_a_broker_with_an_old_epoch_is_one(lab):
    lab.control(0, "UpdateMetadata", [("orders", ID_1, 1)], controller=3, epoch=5)
    ordered(lab, "UpdateMetadata", error=11, epoch=1, host="10.0.0.2")
    (finding,) = lab.findings("CTL001")
    assert f"from {clock(finding['first_seen'])} until " in finding["summary"]  # not since the newer controller came


def test_where_brokers_have_host_names_nobody_can_say_who_is_none():
    lab = Lab()
    lab.metadata(0, [("orders", ID_1)], brokers={"kafka-1.example:9092": 1, "kafka-2.example:9092": 2})
    lab.control(0, "UpdateMetadata", [("orders", ID_1, 1)], controller=3, epoch=5)
    ordered(lab, "UpdateMetadata", error=11, epoch=1)
    assert len(lab.findings("CTL001")) == 1


@pytest.mark.parametrize(("controller", "epoch"), [(3, 7), (2, 1)])
def test_the_controller_of_a_cluster_that_was_formatted_again_is_no_second_one(lab, controller, epoch):
    """What comes later is accepted, and of the one before nothing comes any more. If it does, both are active."""
    for at in (0, 5):
        lab.control(at, "UpdateMetadata", [("orders", ID_1, 9)], controller=controller, epoch=epoch)
    for at in (60, 61, 120):
        lab.control(at, "LeaderAndIsr", [("orders", ID_2, 0)], controller=1, epoch=1)
    assert lab.findings("CTL001") == []
    lab.control(110, "UpdateMetadata", [("orders", ID_1, 9)], controller=controller, epoch=epoch)
    assert len(lab.findings("CTL001")) == 1


# -- ClusterIds in requests


def fetched(lab, cluster_id, topic="orders", error=0, *, partition_error=0, version=12, server=B1, times=(50,)):
    talk = lab.talk(server, "app", OUTSIDER)
    for at in times:
        asked = {"clusterId": cluster_id, "topics": [{"topic": topic, "partitions": [{"partition": 0}]}]}
        part = {"partitionIndex": 0, "errorCode": partition_error, "records": None, "abortedTransactions": None}
        answer = {"errorCode": error, "responses": [{"topic": topic, "partitions": [part]}] if topic else []}
        talk.ask(at, "Fetch", version, asked if topic else {"clusterId": cluster_id}, answer)


def clusters(lab):
    return {(row["cluster_id"], tuple(row["endpoints"])) for row in lab.judge()["clusters"].values()}


@pytest.mark.parametrize(("topic", "error"), [("orders", 0), (None, 0), ("__cluster_metadata", 3)])
def test_who_does_not_serve_the_metadata_log_does_not_look_at_a_cluster_id(lab, topic, error):
    before = lab.judge()
    fetched(lab, "another-cluster-22-char", topic, partition_error=error, times=range(20, 80))
    after = lab.judge()
    assert (after["clusters"], after["topics"]) == (before["clusters"], before["topics"])


def test_who_serves_the_metadata_log_does():
    lab = Lab()
    fetched(lab, CLUSTER, "__cluster_metadata")
    assert clusters(lab) == {(CLUSTER, (B1,))}


def test_an_endpoints_own_word_beats_what_it_accepted(lab):
    fetched(lab, "another-cluster-22-char", "__cluster_metadata")
    assert clusters(lab) == {(CLUSTER, (B1,))}


def test_what_a_controller_accepted_one_after_another_is_two_clusters():
    """Wiped and built anew at the same address; a controller refuses who names another cluster."""
    lab = Lab()
    fetched(lab, CLUSTER, "__cluster_metadata", times=(10,))
    fetched(lab, "another-cluster-22-char", "__cluster_metadata", times=(90,))
    assert clusters(lab) == {(CLUSTER, (B1,)), ("another-cluster-22-char", (B1,))}


def test_what_it_accepted_in_turns_says_nothing():
    lab = Lab()
    fetched(lab, CLUSTER, "__cluster_metadata", times=(10, 95))
    fetched(lab, "another-cluster-22-char", "__cluster_metadata", times=(90,))
    assert clusters(lab) == {(None, (B1,))}


def test_an_id_that_a_restored_controller_gives_again_is_current_and_its_deletion_undone():
    """ZooKeeper was restored from a backup: controllers give the former ID last, and every server reports it again."""
    lab = Lab()
    lab.control(0, "UpdateMetadata", [("orders", ID_1, 0)])
    lab.metadata(5, [("orders", ID_1)])
    lab.deleted(9, "orders", ID_1)
    lab.control(10, "UpdateMetadata", [("orders", ID_2, 0)])
    for at in (15, 45):
        lab.metadata(at, [("orders", ID_2)])
    lab.control(90, "UpdateMetadata", [("orders", ID_1, 0)], epoch=2)
    for at in (95, 130, 160):
        lab.metadata(at, [("orders", ID_1)])
    lab.until = 200
    assert topics(lab) == {ID_1: "current", ID_2: "replaced"}
    assert {finding["code"] for finding in lab.findings()} == {"TID003"}
