import pytest

from wirecheck.client_ids import broker_of, is_internal, is_of_node


@pytest.mark.parametrize(
    ("client_id", "broker"),
    [
        ("1", 1),
        ("broker-1-fetcher-0", 1),
        ("2147483647", 2147483647),
        ("2147483648", None),
        ("raft-client-3", None),
        ("broker-x", None),
        ("app-1", None),
        ("", None),
        (None, None),
    ],
)
def test_a_client_id_may_name_the_broker_that_sends_it(client_id, broker):
    assert broker_of(client_id) == broker


def test_nodes_are_known_by_their_client_ids():
    nodes = ("1", "broker-1-fetcher-0", "raft-client-3", "broker-2-txn-marker-sender")
    assert [is_of_node(one) for one in nodes] == [True] * 4
    assert [is_of_node(one) for one in (None, "", "app-1", "broker-x")] == [False] * 4


def test_what_a_broker_sends_for_others_is_not_its_own():
    assert [is_internal(one) for one in ("1", "raft-client-3", "Persister-client-3")] == [True] * 3
    assert [is_internal(one) for one in ("broker-2-txn-marker-sender", "Persister-client-")] == [False, False]
