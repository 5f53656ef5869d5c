"""Who a release turns away."""

import pytest

from tests.story.values import client as client_value
from wirecheck.streaming.store.upgrade_gate import between_brokers, lines, rejected


def client(client_id="app", **apis):
    return client_value(client_id=client_id, apis={api: tuple(used) for api, used in apis.items()})


@pytest.mark.parametrize(
    ("apis", "refused"),
    [
        ({"Produce": [2, 3], "Fetch": [3, 4]}, (("Fetch", 3), ("Produce", 2))),
        ({"DescribeConfigs": [0]}, (("DescribeConfigs", 0),)),
        ({"Fetch": [4, 11, 18]}, ()),  # a client that can more uses less where less is offered
        ({"99": [0], "Fetch": [13]}, ()),
    ],
)
def test_versions_below_what_is_served_are_refused(apis, refused):
    assert rejected(client(**apis), "4.0") == refused


def test_a_single_release_of_a_line_may_serve_less_than_another():
    assert rejected(client(Fetch=[3]), "4.0.0") == (("Fetch", 3),)
    assert rejected(client(Fetch=[3]), "3.9") == ()


@pytest.mark.parametrize(
    ("client_id", "apis"),
    [
        ("broker-1-fetcher-0", {"Fetch": [3]}),
        ("raft-client-1", {"Fetch": [3], "Vote": [0]}),
        ("1", {"ApiVersions": [3], "LeaderAndIsr": [0], "UpdateMetadata": [1]}),
    ],
)
def test_what_brokers_send_each_other_is_not_blamed_on_clients(client_id, apis):
    row = client(client_id, **apis)
    assert (rejected(row, "4.0"), between_brokers(row)) == ((), True)


def test_a_client_with_a_number_for_a_name_is_a_client():
    assert not between_brokers(client("1", ApiVersions=[3], Metadata=[4]))


def test_an_unknown_release_names_those_that_are_known():
    with pytest.raises(LookupError, match=r"unknown release 9; known releases: 2\.4, "):
        rejected(client(), "9")
    assert "4.0" in lines()
