"""Endpoints are joined by what servers say, and two known ClusterIds never."""

import pytest

from tests.judge.lab import ID_2, Lab
from tests.judge.made import EAST, ID_1, WEST, S, carries, claim, cluster
from wirecheck.judge.topology.clusters import Clusters
from wirecheck.judge.topology.membership import carried

OTHER, CONTROLLER = "10.0.0.2:9092", "10.0.0.3:19093"


def served(*endpoints):
    return [claim("server", endpoint, at=0, until=100, server=endpoint) for endpoint in endpoints]


def keys(clusters):
    return sorted((group.key, group.endpoints) for group in clusters.groups)


def test_a_cluster_id_joins_all_that_state_it():
    made = Clusters("lab", [*served(EAST, OTHER), cluster("A"), cluster("A", OTHER)])
    assert keys(made) == [("A", [EAST, OTHER])]


def test_literal_addresses_join_and_name_the_brokers():
    address = claim("address", EAST, OTHER, 2, at=1)
    made = Clusters("lab", [*served(EAST, OTHER), cluster("A"), address])
    assert keys(made) == [("A", [EAST, OTHER])]
    assert made.broker(OTHER, 5 * S) == 2


def test_brokers_that_swap_addresses_and_swap_them_back():
    """Who is at an address is what it was called then, not what it is called in the end."""
    addresses = [claim("address", EAST, OTHER, 2, at=1, until=100), claim("address", EAST, OTHER, 1, at=40, until=70)]
    made = Clusters("lab", [*served(EAST, OTHER), cluster("A"), *addresses])
    assert [made.broker(OTHER, at * S) for at in (0, 30, 40, 60, 80, 120)] == [2, 2, 1, 1, 2, 2]


def test_an_address_that_another_broker_got():
    addresses = [claim("address", EAST, OTHER, 2, at=1, until=30), claim("address", EAST, OTHER, 1, at=40, until=70)]
    made = Clusters("lab", [*served(EAST, OTHER), cluster("A"), *addresses])
    assert [made.broker(OTHER, at * S) for at in (0, 30, 35, 40, 90)] == [2, 2, 2, 1, 1]


def test_an_address_that_one_list_gives_to_several_brokers_is_no_broker():
    """A proxy with all brokers behind one address."""
    addresses = [claim("address", EAST, OTHER, number, at=1, until=100) for number in (1, 2)]
    late = claim("address", EAST, OTHER, 3, at=50, until=100)
    made = Clusters("lab", [*served(EAST, OTHER), cluster("A"), *addresses, late])
    assert {made.broker(OTHER, at * S) for at in (0, 30, 60, 120)} == {None}


def test_until_when_an_address_was_named_counts_where_it_decides_who_was_there():
    """The claims that a broker is named there last longer now; all else is as before."""

    def separated(until_2, until_1):
        addresses = [
            claim("address", EAST, OTHER, 2, at=1, until=until_2),
            claim("address", EAST, OTHER, 1, at=40, until=until_1),
        ]
        return Clusters("lab", [*served(EAST, OTHER), cluster("A"), *addresses])

    before = separated(100, 70)
    assert before.broker(OTHER, 90 * S) == 2
    longer = separated(100, 95)
    assert longer.broker(OTHER, 90 * S) == 1
    assert longer.moved(before)
    assert not separated(200, 70).moved(before), "who is named last is there until another is named"


def test_who_lists_an_address_of_two_clusters_is_of_the_one_whose_topic_ids_it_has():
    """A VIP led to cluster A, then to B: the controllers of both list it, and only the IDs tell whose each is."""
    vip = "10.0.8.8:9092"
    stated = [claim("cluster_id", vip, one, "metadata", at=at, until=at + 20, server=vip)
              for one, at in (("A", 10), ("B", 50))]  # fmt: skip
    listed = [claim("address", OTHER, vip, 1, at=12, server=OTHER)]
    ids = [carries(vip, ID_1, 52), carries(OTHER, ID_1, 14)]
    made = Clusters("lab", [*served(vip, OTHER), *stated, *listed, *ids])
    assert [made.of(OTHER, 15 * S).key, made.of(vip, 15 * S).key, made.of(vip, 60 * S).key] == ["B", "A", "B"]


def test_host_names_join_nothing():
    named = "broker-2.example:9092"
    made = Clusters("lab", [*served(EAST, OTHER), cluster("A"), claim("address", EAST, named, 2, at=1)])
    assert made.of(OTHER, S) is not made.of(EAST, S)


def test_a_shared_topic_id_joins():
    shared = [carries(EAST, ID_1, at=1), carries(OTHER, ID_1, at=2)]
    assert keys(Clusters("lab", [*served(EAST, OTHER), cluster("A"), *shared])) == [("A", [EAST, OTHER])]


def test_two_known_cluster_ids_are_never_united():
    shared = [carries(EAST, ID_1, at=1), carries(WEST, ID_1, at=2)]
    address = claim("address", EAST, WEST, 2, at=1)
    made = Clusters("lab", [*served(EAST, WEST), cluster("A"), cluster("B", WEST), address, *shared])
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
    addresses = [claim("address", EAST, OTHER, 2, at=1), cluster("A", control), cluster("A")]
    made = Clusters("lab", [*served(EAST, OTHER, control), *addresses])
    assert made.broker(control, S) is None
    assert made.node_at(control, S) == 2


@pytest.mark.parametrize(("error", "whose"), [(0, {ID_2}), (100, set())])
def test_an_id_that_a_client_was_refused_is_not_the_servers(error, whose):
    """A client keeps the IDs of the cluster to which an address led before: they do not make the next one the same."""
    lab = Lab()
    lab.fetches(range(1, 20, 2), ID_2, error, client_id="reader")
    found = [one for one in lab.claims() if one.kind == "carries"]
    assert {topic_id for _, topic_id, _ in carried(found)} == whose


@pytest.mark.parametrize(
    ("captured", "listed", "missing"),
    [
        ([EAST, OTHER], [EAST, OTHER], 0),
        ([EAST], [EAST, OTHER], 1),
        (["10.0.0.9:9092"], [EAST], 0),  # an address translation
        (["10.0.0.9:9092", EAST], [EAST, OTHER, "10.0.0.3:9092"], 1),
    ],
)
def test_a_listed_broker_without_an_endpoint_was_not_captured(captured, listed, missing):
    lists = [claim("address", end, one, n, at=1) for end in captured for n, one in enumerate(listed)]
    made = Clusters("lab", [*served(*captured), *(cluster("A", end) for end in captured), *lists])
    assert made.uncaptured(made.groups) == missing
