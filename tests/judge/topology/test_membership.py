"""Who is of a cluster: to state its ClusterId is not enough, and to be honest need not be to be listed."""

import pytest

from tests.judge.lab import B1, B2, B3, CLUSTER, ID_1, ID_2, ID_3, Lab
from tests.judge.test_orders import fetched

ROGUE, BALANCER = "10.66.6.6:9092", "10.0.9.9:9092"
HOSTS = {"kafka-1.example:9092": 1, "kafka-2.example:9092": 2}


def lab_of(brokers=None, servers=(B1, B2, B3), **more):
    lab = Lab()
    given = {} if brokers is None else {"brokers": brokers}
    for server in servers:
        for at in (0, 50, 100):
            lab.metadata(at, [("orders", ID_1)], server=server, **given, **more)
    return lab


def clusters(lab):
    return {row["cluster_id"]: row["endpoints"] for row in lab.judge()["clusters"].values()}


def topics(lab):
    return {(row["cluster"], row["name"], row["topic_id"]) for row in lab.judge()["topics"].values()}


def grave(lab):
    return [f["code"] for f in lab.findings() if f["kind"] in {"violation", "anomaly"}]


@pytest.mark.parametrize(
    "named", [{B1: 1}, {ROGUE: 66}, {ROGUE: 66, B1: 1}, {}], ids=["them", "itself", "both", "none"]
)
@pytest.mark.parametrize("servers", [(B1, B2, B3), (B1,)], ids=["three", "one"])
def test_a_server_that_nobody_names_and_that_tells_other_ids_is_no_member(named, servers):
    lab = lab_of(servers=servers)
    before = lab.judge()
    for at in range(40, 90):
        lab.metadata(at, [("orders", ID_2)], server=ROGUE, brokers=named)
    after = lab.judge()
    assert (after["clusters"], after["topics"]) == (before["clusters"], before["topics"])
    assert set(grave(lab)) <= {"CLU002"}  # it is unauthenticated, and nothing else follows from it


def test_nor_is_one_that_tells_topics_which_nobody_else_does():
    lab = lab_of()
    for at in (40, 90):
        lab.metadata(at, [("invoices", ID_2)], server=ROGUE, brokers={B1: 1})
    assert topics(lab) == {(CLUSTER, "orders", ID_1)}


def test_brokers_that_an_unauthenticated_host_lists_may_give_no_orders():
    lab = lab_of()
    lab.metadata(40, [], server=ROGUE, brokers={"10.66.6.7:9092": 7})
    state = {"controllerEpoch": 9, "leader": 1, "leaderEpoch": 9, "isr": [1], "replicas": [1]}
    order = {"topicName": "orders", "topicId": ID_2, "partitionStates": [state]}
    lab.talk(B1, "7", "10.66.6.7").ask(60, "LeaderAndIsr", 5, {"controllerEpoch": 9, "topicStates": [order]})
    assert topics(lab) == {(CLUSTER, "orders", ID_1)}


def test_a_load_balancer_tells_the_ids_that_its_brokers_tell():
    lab = lab_of()
    lab.metadata(40, [("orders", ID_1)], server=BALANCER)
    assert clusters(lab) == {CLUSTER: sorted([B1, B2, B3, BALANCER])}


def test_one_that_is_only_asked_for_the_brokers_is_shown_there():
    lab = lab_of()
    lab.metadata(40, [], server=BALANCER)
    assert clusters(lab) == {CLUSTER: sorted([B1, B2, B3, BALANCER])}


def test_one_that_shows_a_stale_broker_among_others_stays():
    lab = lab_of()
    lab.metadata(40, [("orders", ID_2), ("stock", ID_3)], server=BALANCER)
    lab.metadata(45, [("orders", ID_1), ("stock", ID_3)])
    assert BALANCER in clusters(lab)[CLUSTER]


@pytest.mark.parametrize("topics", [[("orders", ID_1)], [], [("orders", ID_2), ("stock", ID_3)]])
def test_host_names_name_nobody_that_is_seen(topics):
    """Brokers are seen at addresses that no list has: one may be stale, and is one of them all the same."""
    lab = lab_of(brokers=HOSTS, servers=(B1, B2))
    lab.metadata(20, [("stock", ID_3)], brokers=HOSTS)
    lab.metadata(40, topics, server=B3, brokers=HOSTS)
    assert clusters(lab) == {CLUSTER: [B1, B2, B3]}


def test_nor_do_literal_addresses_of_the_other_side_of_a_translation():
    outside = {"203.0.113.1:9092": 1, "203.0.113.2:9092": 2}
    lab = lab_of(brokers=outside, servers=(B1, B2))
    lab.metadata(40, [], server=B3, brokers=outside)
    assert clusters(lab) == {CLUSTER: [B1, B2, B3]}


def test_behind_host_names_other_ids_alone_speak_against_one():
    lab = lab_of(brokers=HOSTS, servers=(B1, B2))
    lab.metadata(40, [("orders", ID_2)], server=ROGUE, brokers=HOSTS)
    assert topics(lab) == {(CLUSTER, "orders", ID_1)}
    assert grave(lab) == []


def test_a_listener_that_is_not_advertised_is_its_hosts():
    inner = "10.0.0.2:9091"
    lab = lab_of()
    lab.metadata(40, [("orders", ID_2)], server=inner, brokers={inner: 2})
    assert inner in clusters(lab)[CLUSTER]


def test_brokers_of_another_listener_are_named_by_one_that_reports_the_same_ids():
    """Clients get one listener's addresses, and brokers another's; of one broker only other topics were seen."""
    lab, inner = lab_of(), {"10.0.5.1:9093": 1, "10.0.5.2:9093": 2}
    for at in (0, 50, 100):
        lab.metadata(at, [("orders", ID_1)], server="10.0.5.1:9093", brokers=inner)
    lab.fetches(range(10, 90, 5), ID_2, server="10.0.5.2:9093")
    assert inner.keys() <= {*clusters(lab)[CLUSTER]}


@pytest.mark.parametrize(("topic_id", "is_member"), [(ID_1, True), (ID_2, False), (None, False)])
def test_a_listener_without_topics_is_of_the_cluster_whose_ids_its_host_reports(topic_id, is_member):
    """Clients are given addresses that nothing answers at. No other list has this host, as behind proxies."""
    lab, wrong = lab_of(), "10.0.5.1:9094"
    lab.metadata(40, [], server=wrong, brokers={"10.0.5.1:9999": 1})
    if topic_id is not None:
        lab.metadata(40, [("orders", topic_id)], server="10.0.5.1:9092", brokers={"10.0.5.1:9092": 1})
    assert (wrong in clusters(lab)[CLUSTER]) is is_member


def test_a_controller_describes_its_quorum_and_no_brokers():
    """KIP-919: an admin client that is given controllers asks one of them."""
    lab, controllers = lab_of(), {"10.0.7.1:9093": 101, "10.0.7.2:9093": 102}
    nodes = [{"brokerId": n, "host": c.split(":")[0], "port": int(c.split(":")[1])} for c, n in controllers.items()]
    talk = lab.talk("10.0.7.1:9093", "admin")
    ranges = [{"apiKey": key, "minVersion": 0, "maxVersion": 1} for key in (18, 60)]
    talk.ask(9, "ApiVersions", 3, {}, {"apiKeys": ranges})
    answer = {"endpointType": 2, "clusterId": CLUSTER, "controllerId": 101, "brokers": nodes}
    talk.ask(10, "DescribeCluster", 1, {"endpointType": 2}, answer)
    (row,) = lab.judge()["clusters"].values()
    assert "10.0.7.1:9093" in row["endpoints"]
    assert row["brokers"] == [1, 2, 3]


def test_controllers_are_in_no_list_of_brokers():
    controller = "10.0.7.1:9093"
    lab = lab_of()
    fetched(lab, CLUSTER, "__cluster_metadata", server=controller)
    assert controller in clusters(lab)[CLUSTER]


def test_a_stale_broker_is_compared_with_the_others():
    lab = Lab()
    for at in (0, 50, 100, 150):
        lab.metadata(at, [("orders", ID_1)], server=B1)
        lab.metadata(at + 1, [("orders", ID_2)] if at else [("orders", ID_1)], server=B2)
    lab.deleted(30, "orders", ID_1, server=B2)
    assert [f["code"] for f in lab.findings("TID007")] == ["TID007"]


# -- endpoints that do not say which cluster they are of


def silent(lab, server, topic_id=ID_2, times=range(20, 90, 2), error=100):
    """A server of which only fetches are seen, as in a capture that began late."""
    lab.fetches(times, topic_id, error, server=server, client_id="late", from_start=False)


def test_one_that_complete_lists_leave_out_is_of_an_unknown_cluster():
    lab = lab_of()
    silent(lab, "10.0.9.1:9092")
    assert clusters(lab) == {CLUSTER: [B1, B2, B3], None: ["10.0.9.1:9092"]}
    assert (None, None, ID_2) in topics(lab)


def test_and_so_are_its_neighbours_that_nothing_else_is_known_of():
    """A controller of the second cluster: no list of brokers has one."""
    lab = lab_of()
    silent(lab, "10.0.9.1:9092")
    fetched(lab, None, "__cluster_metadata", server="10.0.9.2:9093")
    assert clusters(lab)[None] == ["10.0.9.1:9092", "10.0.9.2:9093"]


def test_one_that_shares_an_id_is_of_the_cluster_whatever_the_lists():
    lab = lab_of()
    silent(lab, "10.0.9.1:9092", ID_1, error=0)
    assert clusters(lab) == {CLUSTER: sorted([B1, B2, B3, "10.0.9.1:9092"])}


def test_without_anything_against_it_it_is_shown_under_the_only_cluster():
    lab = lab_of(brokers=HOSTS, servers=(B1,))
    silent(lab, B2)
    assert clusters(lab) == {CLUSTER: [B1, B2]}


def test_no_violation_is_told_of_an_unknown_cluster():
    """A consumer is stuck there; whose topic it is, and whether it was ever made, nobody knows."""
    lab = lab_of()
    silent(lab, "10.0.9.1:9092")
    lab.created(10, "orders", ID_2, server="10.0.9.1:9092")
    lab.deleted(15, "orders", ID_2, server="10.0.9.1:9092")
    found = [f for f in lab.findings() if f["cluster"] is None]
    assert found
    assert {f["kind"] for f in found} & {"violation"} == set()


def test_of_two_that_say_the_same_names_with_other_ids_only_one_is_the_known_one():
    """Names alone join nothing: the second cluster has the same topics, and no list at all."""
    lab = lab_of(brokers=HOSTS, servers=(B1,))
    lab.created(10, "orders", ID_2, server="10.0.9.1:9092")
    assert clusters(lab) == {CLUSTER: [B1], None: ["10.0.9.1:9092"]}


def test_ids_of_findings_do_not_depend_on_what_a_cluster_is_called():
    lab = Lab()
    silent(lab, B2)
    alone = lab.judge()["findings"].keys()
    assert alone
    for at in (0, 100):
        lab.metadata(at, [("orders", ID_1)], server="10.0.9.1:9092", brokers={"10.0.9.1:9092": 1})
    beside = lab.judge()["findings"]
    assert {name: beside[name]["cluster"] for name in alone} == dict.fromkeys(alone)
