"""A finding's messages between those who exchanged them, in order of time."""

import pytest

from tests.dashboards.results import FINDING, changed
from tests.dashboards.test_lanes import OLD, said
from wirecheck.dashboards.report.sequence import LIFELINES, MESSAGES, deciding, names_of, sequence

NAMES = names_of(
    {"10.0.0.4:9092": 4},
    [
        said(OLD, 1, 0, 0, who="10.0.0.1:9092"),
        said(OLD, None, 0, 0, who="10.0.0.9:9092"),
        said(OLD, None, 0, 0, speaker="client", who="billing"),
    ],
)


def side(second, connection="10.0.0.7:50000>10.0.0.1:9092", correlation_id=1, claim="fetches", api="Fetch"):
    time = f"2026-11-20T22:00:{second:02}.000000Z"
    said = {"time": time, "connection": connection, "correlation_id": correlation_id, "claim": claim}
    return changed(FINDING.sides[0], said | {"api": api, "version": 13})


def drawn(*sides, client_ids=("billing",)):
    return sequence(changed(FINDING, {"sides": list(sides), "client_ids": list(client_ids)}), NAMES)


def test_an_exchange_is_one_arrow_with_the_error_it_ended_with():
    made = drawn(
        side(9, "10.0.0.1:40000>10.0.0.2:9093", 5, "told"),
        side(2, claim="billing fetches id"),
        side(3, claim="answers UNKNOWN_TOPIC_ID (100)"),
    )
    assert [line["name"] for line in made["lifelines"]] == ["billing", "broker 1", "10.0.0.1", "10.0.0.2:9093"]
    assert [(one["api"], one["field"], one["leftwards"]) for one in made["arrows"]] == [
        ("Fetch v13", "UNKNOWN_TOPIC_ID (100)", False),
        ("Fetch v13", "", False),
    ]
    assert made["arrows"][0]["start"] == made["lifelines"][0]["at"] < made["arrows"][0]["end"]


def test_a_client_is_named_only_where_the_evidence_names_it():
    """A consumer that is stuck did not delete the topic, though that is evidence, too."""
    deleted = side(1, "10.0.0.8:40000>10.0.0.1:9092", 7, "the topic is deleted", "DeleteTopics")
    made = drawn(deleted, side(2, claim="billing fetches id"))
    assert [line["name"] for line in made["lifelines"]] == ["10.0.0.8", "broker 1", "billing"]


def test_the_client_id_of_the_decoded_request_and_the_broker_that_metadata_named():
    deleted = side(1, "10.0.0.8:40000>10.0.0.4:9092", 7, "the topic is deleted", "DeleteTopics")
    decoded = [{"connection": deleted.connection, "api": "DeleteTopics", "correlation_id": 7, "client_id": "admin"}]
    made = sequence(changed(FINDING, {"sides": [deleted, side(2)], "client_ids": []}), NAMES, decoded)
    assert [line["name"] for line in made["lifelines"]] == ["admin", "broker 4", "10.0.0.7", "broker 1"]


def test_a_controller_is_named_as_the_claims_name_it_and_not_by_its_client_id():
    """In ZooKeeper mode its client ID is the bare broker ID, and two controllers may share a host."""
    connection, claim = "10.0.0.8:40000>10.0.0.4:9092", "controller 3 of epoch 1 sends UpdateMetadata v8"
    sent = [side(n, connection, n, claim, "UpdateMetadata") for n in (1, 2)]
    decoded = [{"connection": connection, "api": "UpdateMetadata", "correlation_id": 1, "client_id": "3"}]
    made = sequence(changed(FINDING, {"sides": sent, "client_ids": []}), NAMES, decoded)
    assert [line["name"] for line in made["lifelines"]] == ["controller 3", "broker 4"]


def test_a_connection_keeps_its_client_id_where_one_exchange_was_not_decoded():
    decoded = [{"connection": side(1).connection, "api": "Fetch", "correlation_id": 1, "client_id": "billing"}]
    made = sequence(changed(FINDING, {"sides": [side(1), side(2, correlation_id=2)], "client_ids": []}), NAMES, decoded)
    assert [line["name"] for line in made["lifelines"]] == ["billing", "broker 1"]


def test_arrows_and_lifelines_are_bounded_and_the_rest_is_counted():
    made = drawn(*(side(n, correlation_id=n) for n in range(20)))
    assert (len(made["arrows"]), made["left"]) == (MESSAGES, 20 - MESSAGES)
    many = drawn(*(side(n, f"10.0.1.{n}:5000>10.0.0.1:9092", n) for n in range(9)), client_ids=())
    assert (len(many["lifelines"]), len(many["arrows"]), many["left"]) == (LIFELINES, LIFELINES - 1, 6)


@pytest.mark.parametrize("sides", [(), (side(1),), (side(1), side(2, "", 2)), (side(1), side(2, api=None))])
def test_fewer_than_two_messages_are_no_diagram(sides):
    assert drawn(*sides) is None


@pytest.mark.parametrize(
    ("claim", "field"),
    [(f"says {OLD}", "ID AAAAAA"), (f"NOT_LEADER_OR_FOLLOWER (6) for {OLD}", "NOT_LEADER_OR_FOLLOWER (6)"), ("x", "")],
)
def test_an_error_decides_before_an_id(claim, field):
    assert deciding([side(1, claim=claim)]) == field
