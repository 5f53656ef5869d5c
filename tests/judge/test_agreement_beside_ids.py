"""What contradicts an ID without being another one of another party: no ID, another client's answer at one endpoint, a
complete listing, an answer to another question. Each beside operations that look alike.
"""

import pytest

from tests.depth import some
from tests.judge.agreement_kinds import CONTROLLER, KINDS
from tests.judge.cases_agreement import listed
from tests.judge.lab import B1, B2, B3, ID_1, ID_2, NO_ID, Lab

TIMES = range(6, 126, 10)
ORDERS = [name for name, kind in KINDS.items() if kind.party == CONTROLLER and "stop" not in name]
REPORTS = [name for name, kind in KINDS.items() if kind.reports]
GATEWAY = "10.0.0.77:9092"


def found(lab, until=250):
    """The codes of what contradicts something."""
    return {one["code"] for one in lab.findings(until=until) if one["kind"] in {"violation", "anomaly"}}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("report", REPORTS)
@pytest.mark.parametrize("server", [B1, B2])
def test_no_id_of_a_broker_that_was_given_one_is_found(order, report, server):
    lab = Lab()
    listed(lab)
    KINDS[order].states(lab, TIMES, ID_1, B1)
    KINDS["update-metadata"].states(lab, [5], ID_1, B2)
    KINDS[report].states(lab, [at + 2 for at in TIMES], NO_ID, server)
    assert found(lab) & {"TID020", "TID004"}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("report", REPORTS)
def test_no_id_of_a_gateway_or_before_ids_is_none(order, report):
    gateway, older = Lab(), Lab()
    listed(gateway)
    KINDS[order].states(gateway, TIMES, ID_1, B1)
    KINDS[report].states(gateway, [at + 2 for at in TIMES], NO_ID, GATEWAY)
    listed(older)
    for at in TIMES:
        older.control(at, "LeaderAndIsr", [("orders", None, 4)], version=4)
    KINDS[report].states(older, [at + 2 for at in TIMES], NO_ID, B1)
    assert found(gateway) == found(older) == set()


@pytest.mark.parametrize("one", REPORTS)
@pytest.mark.parametrize("other", REPORTS)
def test_two_clients_of_a_broker_disagree_and_of_a_proxy_may(one, other):
    broker, proxy = Lab(), Lab()
    for lab in (broker, proxy):
        listed(lab)
        KINDS[one].states(lab, TIMES, ID_1, B3)
        KINDS[other].states(lab, [at + 3 for at in TIMES], ID_2, B3)
    broker.control(1, "UpdateMetadata", [("orders", ID_1, 4)], server=B3)
    assert "TID020" in found(broker)
    assert found(proxy) == set()
    assert [one["kind"] for one in proxy.findings("TID020")] == ["information"]


def fetches(talk, at):
    row = {"partitionIndex": 0, "highWatermark": 10, "records": None, "abortedTransactions": None}
    asked = {"topics": [{"topicId": ID_2, "partitions": [{"partition": 0}]}], "sessionEpoch": -1, "replicaId": -1}
    talk.ask(at, "Fetch", 13, asked, {"responses": [{"topicId": ID_2, "partitions": [row]}]})


def writes(talk, at):
    asked = {"topicData": [{"topicId": ID_2, "partitionData": [{"records": None}]}], "acks": 1}
    talk.ask(at, "Produce", 13, asked, {"responses": [{"topicId": ID_2, "partitionResponses": [{"errorCode": 0}]}]})


def commits(talk, at):
    asked = {"groupId": "g", "topics": [{"topicId": ID_2, "partitions": [{"committedOffset": at}]}]}
    talk.ask(at, "OffsetCommit", 10, asked, {"topics": [{"topicId": ID_2, "partitions": [{"errorCode": 0}]}]})


def is_assigned(talk, at):
    answer = {"assignment": {"topicPartitions": [{"topicId": ID_2, "partitions": [0]}]}}
    talk.ask(at, "ConsumerGroupHeartbeat", 0, {"groupId": "g"}, answer)


GRANTS = [fetches, writes, commits, is_assigned]


@pytest.mark.parametrize("grant", GRANTS)
@pytest.mark.parametrize(
    ("lists", "expected"),
    [
        ([("orders", ID_1)], True),
        ([("orders", ID_1), ("fresh", ID_2)], False),
        ([("orders", ID_1), ("fresh", NO_ID)], False),
        ([("orders", ID_1), ("fresh", ID_2, 5)], False),
    ],
)
def test_an_id_that_no_listing_has(grant, lists, expected):
    lab = Lab()
    talk = lab.talk(B1)
    for at in TIMES:
        grant(talk, at - 5)
        lab.metadata(at, lists, talk=talk)
        grant(talk, at + 20)
    assert ("TID021" in found(lab)) == expected


def by_id(api, version, request, response):
    return api, version, request, response


QUESTIONS = [
    by_id(
        "Fetch", 13,
        lambda one: {"topics": [{"topicId": one, "partitions": [{"partition": 0}]}], "sessionEpoch": 0},
        lambda one: {"responses": [{"topicId": one, "partitions": [{"records": None, "abortedTransactions": None}]}]},
    ),
    by_id(
        "Produce", 13,
        lambda one: {"topicData": [{"topicId": one, "partitionData": [{"records": None}]}], "acks": 1},
        lambda one: {"responses": [{"topicId": one, "partitionResponses": [{"errorCode": 0}]}]},
    ),
    by_id(
        "OffsetCommit", 10,
        lambda one: {"groupId": "g", "topics": [{"topicId": one, "partitions": [{"committedOffset": 1}]}]},
        lambda one: {"topics": [{"topicId": one, "partitions": [{"errorCode": 0}]}]},
    ),
    by_id(
        "Metadata", 12,
        lambda one: {"topics": [{"topicId": one, "name": None}]},
        lambda one: {"topics": [{"name": "orders", "topicId": one, "partitions": []}]},
    ),
    by_id(
        "DeleteTopics", 6,
        lambda one: {"topics": [{"topicId": one, "name": None}]},
        lambda one: {"responses": [{"name": "orders", "topicId": one, "errorCode": 0}]},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("api", "version", "request_of", "answer_of"), QUESTIONS)
def test_an_answer_that_names_another_id(api, version, request_of, answer_of):
    for answered, expected in ((ID_2, True), (ID_1, False)):
        lab = Lab()
        talk = lab.talk(B1)
        for at in TIMES:
            talk.ask(at, api, version, request_of(ID_1), answer_of(answered))
        lab.until = 200
        assert ("TID022" in found(lab)) == expected


@pytest.mark.parametrize("report", some(REPORTS, each=1))
def test_an_id_that_returns_in_answers_of_one_client(report):
    """A, B and A again, a minute each; and A and B, of which A does not return."""
    for turns, expected in (((ID_1, ID_2, ID_1), True), ((ID_1, ID_2, ID_2), False)):
        lab = Lab()
        for begin, topic_id in zip((0, 60, 120), turns, strict=True):
            KINDS[report].states(lab, range(begin, begin + 60, 10), topic_id, B1)
        assert ("TID003" in found(lab)) == expected
