"""Endpoints are joined by what servers say, and two known ClusterIds never."""

from tests.judge.made import EAST, ID_1, WEST, S, carries, claim, cluster
from wirecheck.judge.topology.clusters import Clusters

OTHER, CONTROLLER = "10.0.0.2:9092", "10.0.0.3:19093"


def served(*endpoints):
    return [claim("server", endpoint, at=0, until=100, server=endpoint) for endpoint in endpoints]


def keys(clusters):
    return sorted((group.key, group.endpoints) for group in clusters.groups)


def test_a_cluster_id_joins_all_that_state_it():
    made = Clusters("lab", [*served(EAST, OTHER), cluster("A"), cluster("A", OTHER)])
    assert keys(made) == [("A", [EAST, OTHER])]


def test_literal_addresses_join_and_name_the_brokers():
    told = claim("address", EAST, OTHER, 2, at=1)
    made = Clusters("lab", [*served(EAST, OTHER), cluster("A"), told])
    assert keys(made) == [("A", [EAST, OTHER])]
    assert made.broker(OTHER, 5 * S) == 2


def test_host_names_join_nothing():
    named = "broker-2.example:9092"
    made = Clusters("lab", [*served(EAST, OTHER), cluster("A"), claim("address", EAST, named, 2, at=1)])
    assert made.of(OTHER, S) is not made.of(EAST, S)


def test_a_shared_topic_id_joins():
    shared = [carries(EAST, ID_1, at=1), carries(OTHER, ID_1, at=2)]
    assert keys(Clusters("lab", [*served(EAST, OTHER), cluster("A"), *shared])) == [("A", [EAST, OTHER])]


def test_two_known_cluster_ids_are_never_united():
    shared = [carries(EAST, ID_1, at=1), carries(WEST, ID_1, at=2)]
    told = claim("address", EAST, WEST, 2, at=1)
    made = Clusters("lab", [*served(EAST, WEST), cluster("A"), cluster("B", WEST), told, *shared])
    assert keys(made) == [("A", [EAST]), ("B", [WEST])]


def test_an_endpoint_that_states_another_id_later_is_a_new_incarnation():
    made = Clusters("lab", [*served(EAST), cluster("A", at=0), cluster("B", at=50)])
    assert [made.of(EAST, at * S).key for at in (10, 49, 50, 90)] == ["A", "A", "B", "B"]


def test_what_cannot_be_joined_is_shown_under_the_only_known_cluster_and_compared_with_nothing():
    made = Clusters("lab", [*served(EAST, OTHER), cluster("A")])
    assert made.of(OTHER, S).key == "A"
    assert made.of(OTHER, S) is not made.of(EAST, S)
    many = Clusters("lab", [*served(EAST, OTHER, WEST), cluster("A"), cluster("B", WEST)])
    assert many.of(OTHER, S).key == "lab"


def test_a_second_listener_of_a_host_has_the_name_of_its_only_broker():
    control = "10.0.0.2:19402"
    told = [claim("address", EAST, OTHER, 2, at=1), cluster("A", control), cluster("A")]
    made = Clusters("lab", [*served(EAST, OTHER, control), *told])
    assert made.broker(control, S) is None
    assert made.node_at(control, S) == 2
