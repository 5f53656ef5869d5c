"""What a message is said to be about: its first topics, else its group or transaction, and its error codes."""

import base64

import pytest

from tests.build import plain
from tests.decode.show.test_message_lines import OTHER, PAYMENTS
from wirecheck.decode.api_names import key_of
from wirecheck.decode.dialect import read
from wirecheck.decode.layouts.layout import SIDES
from wirecheck.decode.show.message_summary import Failure, Summary, summaries
from wirecheck.decode.wire import pack

NAMES = {base64.urlsafe_b64decode(PAYMENTS + "=="): "payments"}
NONE = "A" * 22


def said(*messages, names=NAMES, cut=0):
    """Summaries of messages (api, side, version, body), by their place; `cut`: bytes that each lacks at its end."""
    kinds = [(SIDES.index(side), key_of(api), version) for api, side, version, _ in messages]
    data = [plain(*message)[4:] for message in messages]
    return summaries(read(pack([each[: len(each) - cut] for each in data], *zip(*kinds, strict=True))), names)


def only(*message):
    return said(message)[0]


def produced(*topics):
    return ("Produce", "request", 9, {"topicData": [{"name": topic} for topic in topics]})


@pytest.mark.parametrize(
    ("topics", "expected"),
    [
        (["b", "a"], (("b", "a"), 0)),
        (["b", "a", "c", "d"], (("b", "a"), 2)),
        (["b", "b", "a", "b"], (("b", "a"), 0)),
    ],
)
def test_the_first_topics_are_named_and_of_more_the_number_is_said(topics, expected):
    assert only(*produced(*topics)) == Summary(*expected, about=None, errors=())


def test_of_many_messages_each_says_its_own():
    many = [produced("a", "b", "c"), produced("b"), ("Heartbeat", "request", 4, {"groupId": "billing"}), produced("c")]
    assert said(*many) == {
        0: Summary(("a", "b"), 1, None, ()),
        1: Summary(("b",), 0, None, ()),
        2: Summary((), 0, "group billing", ()),
        3: Summary(("c",), 0, None, ()),
    }


def test_a_topic_said_by_its_id_has_the_name_that_is_known_or_else_the_id():
    topics = [{"topicId": PAYMENTS}, {"topicId": OTHER}]
    for api, version in (("Fetch", 13), ("ShareFetch", 1)):  # ShareFetch (KIP-932) never had names
        assert only(api, "request", version, {"topics": topics}).topics == ("payments", OTHER)


def test_a_topic_in_two_arrays_of_a_message_is_one():
    """A fetch session (KIP-227) adds topics in one array and forgets them in another."""
    body = {
        "topics": [{"topicId": PAYMENTS}, {"topicId": OTHER}],
        "forgottenTopicsData": [{"topicId": OTHER}, {"topicId": "B" * 21 + "A"}],
    }
    assert only("Fetch", "request", 13, body) == Summary(("payments", OTHER), 1, None, ())


def test_where_a_message_says_name_and_id_the_name_is_shown_and_the_id_where_it_has_none():
    named = {"name": "orders", "topicId": PAYMENTS}
    assert only("Metadata", "response", 12, {"topics": [named]}).topics == ("orders",)
    for nothing in (None, ""):
        nameless = {"name": nothing, "topicId": OTHER}
        assert only("Metadata", "response", 12, {"topics": [nameless, named]}).topics == (OTHER, "orders")


def test_neither_name_nor_id_is_no_topic():
    body = {"topics": [{"name": None, "topicId": NONE, "errorCode": 3}]}
    assert only("Metadata", "response", 12, body) == Summary((), 0, None, (3,), (Failure(3, (), (), 0),))


def test_names_of_settings_are_not_taken_for_topics():
    topic = {"name": "orders", "configs": [{"name": "retention.ms", "value": "1000"}]}
    assert only("CreateTopics", "request", 7, {"topics": [topic]}) == Summary(("orders",), 0, None, ())
    config = {"resourceType": 2, "resourceName": "orders", "configs": [{"name": "retention.ms", "errorCode": 0}]}
    assert said(("DescribeConfigs", "response", 4, {"results": [config]})) == {}


@pytest.mark.parametrize(
    ("message", "about"),
    [
        (("Heartbeat", "request", 4, {"groupId": "billing"}), "group billing"),
        (("EndTxn", "request", 3, {"transactionalId": "tx-1"}), "transaction tx-1"),
        (("TxnOffsetCommit", "request", 3, {"groupId": "billing", "transactionalId": "tx-1"}), "group billing"),
    ],
)
def test_a_message_without_topics_is_about_its_group_or_transaction(message, about):
    assert only(*message) == Summary((), 0, about, ())


def test_a_message_with_topics_is_about_them():
    body = {"groupId": "billing", "topics": [{"name": "orders"}]}
    assert only("OffsetCommit", "request", 8, body) == Summary(("orders",), 0, None, ())


def test_errors_are_said_once_each_in_their_order_wherever_they_stand():
    partitions = [{"partitionIndex": i, "errorCode": code} for i, code in enumerate((6, 0, 3, 6))]
    body = {"errorCode": 70, "responses": [{"topicId": PAYMENTS, "partitions": partitions}]}
    failures = (
        Failure(70, (), (), 0),
        Failure(6, ("payments",), ("payments-0", "payments-3"), 0),
        Failure(3, ("payments",), ("payments-2",), 0),
    )
    assert only("Fetch", "response", 13, body) == Summary(("payments",), 0, None, (70, 6, 3), failures)


def test_an_error_is_of_the_topic_and_partition_that_has_it():
    calm = {"topicId": OTHER, "partitions": [{"partitionIndex": 0}]}
    wrong = {"topicId": PAYMENTS, "partitions": [{"partitionIndex": i, "errorCode": 3 * (i != 1)} for i in range(5)]}
    found = only("Fetch", "response", 13, {"responses": [calm, wrong]})
    assert found.topics == (OTHER, "payments")
    assert found.failures == (Failure(3, ("payments",), ("payments-0", "payments-2"), 2),)


@pytest.mark.parametrize(
    ("message", "place"),
    [
        (("DeleteTopics", "response", 6, {"responses": [{"name": "orders", "errorCode": 41}]}), "orders"),
        (("Metadata", "response", 12, {"topics": [{"name": "orders", "errorCode": 3}]}), "orders"),
        (
            (
                "OffsetCommit", "response", 8,
                {"topics": [{"name": "orders", "partitions": [{"partitionIndex": 4, "errorCode": 22}]}]},
            ),
            "orders-4",
        ),
        (
            (
                "Produce", "response", 9,
                {"responses": [{"name": "orders", "partitionResponses": [{"index": 4, "errorCode": 22}]}]},
            ),
            "orders-4",
        ),
        (
            (
                "LeaderAndIsr", "response", 7,
                {"topics": [{"topicId": PAYMENTS, "partitionErrors": [{"partitionIndex": 1, "errorCode": 103}]}]},
            ),
            "payments-1",
        ),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else value,
)  # fmt: skip
def test_of_any_api_the_place_of_an_error_is_known(message, place):
    (failure,) = only(*message).failures
    assert failure.places == (place,)


def test_what_says_none_of_it_or_does_not_decode_has_no_summary():
    assert said(("ApiVersions", "request", 3, {"clientSoftwareName": "kcat"})) == {}
    assert said(produced(), ("Heartbeat", "response", 4, {})) == {}
    assert said(produced("orders"), cut=1) == {}
