"""What was not checked is listed: endpoints, topics and clients whose cluster nobody knows."""

from tests.judge.lab import B1, ID_1, ID_2, ID_3, Lab
from wirecheck.judge.results.coverage_rows import MOST_ENDPOINTS

APART, ROGUE = "10.0.9.1:9092", "10.66.6.6:9092"


def unassigned(lab):
    rows = [row for row in lab.judge()["coverage"].values() if row["measure"].startswith("unassigned")]
    assert all((row["count"], row["connection"]) == (1, None) for row in rows)
    return {(row["measure"].removeprefix("unassigned_"), row["detail"]) for row in rows}


def known(lab):
    for at in (0, 100):
        lab.metadata(at, [("orders", ID_1)])


def test_where_every_cluster_is_known_there_is_none():
    lab = Lab()
    known(lab)
    lab.metadata(50, [("stock", ID_2)], server=APART, brokers={APART: 1}, cluster_id="other-cluster-id-22-ch")
    assert unassigned(lab) == set()


def test_an_endpoint_that_speaks_of_no_known_cluster_is_listed_with_its_topics_and_clients():
    lab = Lab()
    known(lab)
    lab.fetches(range(20, 90, 2), ID_2, 100, server=APART, client_id="late", from_start=False)
    lab.created(30, "stock", ID_3, server=APART)
    assert unassigned(lab) == {
        ("endpoints", APART),
        ("topics", ID_2),
        ("topics", "stock"),
        ("clients", "late (10.0.0.99)"),
        ("clients", "admin (10.0.0.99)"),
    }


def test_a_server_that_states_a_cluster_which_does_not_know_it_is_listed_and_not_what_it_says():
    """Anybody can make one, with as many topics as he likes: CLU002 names it."""
    lab = Lab()
    known(lab)
    lab.metadata(50, [("orders", ID_2), ("stock", ID_3)], server=ROGUE, brokers={B1: 1})
    assert unassigned(lab) == {("endpoints", ROGUE)}


def test_an_address_that_leads_to_two_clusters_in_turn_is_listed():
    lab = Lab()
    for at in range(0, 60, 10):
        lab.metadata(at, [("orders", ID_1)], brokers={B1: 1})
        lab.metadata(at + 5, [("orders", ID_2)], brokers={B1: 1}, cluster_id="other-cluster-id-22-ch")
    assert unassigned(lab) == {("endpoints", B1)}


def test_so_many_endpoints_and_how_many_more():
    lab = Lab()
    known(lab)
    for number in range(MOST_ENDPOINTS + 3):
        server = f"10.0.9.{number}:9092"
        lab.fetches([20], ID_2, 100, server=server, client_id="late", from_start=False)
    rows = [row for row in lab.judge()["coverage"].values() if row["measure"] == "unassigned_endpoints"]
    assert len(rows) == MOST_ENDPOINTS + 1
    assert sum(row["count"] for row in rows) == MOST_ENDPOINTS + 3
    assert {row["detail"] for row in rows if row["count"] > 1} == {"(others)"}
