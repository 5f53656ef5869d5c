"""What was counted in one pass: calls, uses, failures, whoever sent them and however the capture is cut."""

from dataclasses import replace

import pytest

from tests.build import plain
from tests.decode.show.test_message_lines import frames
from tests.traffic import Talk
from wirecheck.questions import traffic as counting
from wirecheck.questions.group_rows import Groups
from wirecheck.questions.traffic import THROTTLED, UNANSWERED, Call, Counts, Rejection, Traffic, Use, quantile_ms

MS = 1_000_000
SECOND = 1000 * MS
CLIENT, BROKER = ("10.0.4.12", 40000), ("10.0.1.3", 9092)
START = Talk().ts_ns
ID = "JMxDMvfeRaOyTjPWGqDRbA"


def exchange(talk, api, version, asked, answered, number, client_id="billing-7", wait_ms=5):
    """One request on a connection that is open, answered after so long."""
    talk.request(plain(api, "request", version, asked, {"correlationId": number, "clientId": client_id}))
    talk.ts_ns += wait_ms * MS
    if answered is not None:
        talk.response(plain(api, "response", version, answered, {"correlationId": number}))


def produce(talk, number, error, topic="orders", throttle_ms=0, **more):
    batch = {"index": 0, "records": None}
    asked = {
        "transactionalId": None,
        "acks": -1,
        "timeoutMs": 1,
        "topicData": [{"name": topic, "partitionData": [batch]}],
    }
    partition = {"index": 0, "errorCode": error, "baseOffset": 0, "logAppendTimeMs": -1, "logStartOffset": 0,
                 "recordErrors": [], "errorMessage": None}  # fmt: skip
    answered = {"responses": [{"name": topic, "partitionResponses": [partition]}], "throttleTimeMs": throttle_ms}
    exchange(talk, "Produce", 9, asked, answered, number, **more)


def fetch(talk, number, replica=-1, topic="orders", **more):
    asked = {"replicaId": replica, "maxWaitMs": 500, "minBytes": 1, "topics": [{"topic": topic, "partitions": []}],
             "sessionId": 0, "sessionEpoch": -1}  # fmt: skip
    answered = {"throttleTimeMs": 0, "errorCode": 0, "sessionId": 0, "responses": []}
    exchange(talk, "Fetch", 12, asked, answered, number, **more)


def talking(client=CLIENT, at=0):
    return Talk(client=client, server=BROKER, ts_ns=START + at).open()


def capture(*talks):
    return frames(sorted((segment for talk in talks for segment in talk.segments), key=lambda one: one.ts_ns))


@pytest.fixture
def busy():
    talk = talking()
    for number, error in enumerate([0, 6, 6, 0]):
        produce(talk, number, error, throttle_ms=40 if number == 2 else 0)
    fetch(talk, 9)
    return talk.close()


def test_calls_uses_and_failures_of_one_client(busy):
    traffic = Traffic().read([capture(busy)])
    calls = traffic.calls[Call("billing-7", "10.0.4.12", "10.0.1.3:9092", "Produce")]
    assert (calls.count, calls.versions, sum(calls.latencies.values())) == (4, {9}, 4)
    assert quantile_ms(calls.latencies, 0.5) == pytest.approx(6, rel=0.03)  # 5 ms, and 1 ms a packet
    assert {use: count.count for use, count in traffic.uses.items()} == {
        Use("billing-7", "10.0.4.12", "Produce", "orders", -1): 4,
        Use("billing-7", "10.0.4.12", "Fetch", "orders", -1): 1,
    }
    who = ("billing-7", "10.0.4.12", "Produce")
    assert {failure: count.count for failure, count in traffic.failures.items()} == {
        Rejection("NOT_LEADER_OR_FOLLOWER", *who, "orders", -1): 2,
        Rejection(THROTTLED, *who, "", -1): 1,
    }
    throttled = traffic.failures[Rejection(THROTTLED, *who, "", -1)]
    assert (throttled.sum_ms, throttled.worst_ms, throttled.servers) == (40, 40, {"10.0.1.3:9092": 1})


@pytest.mark.parametrize("cut", [1, 5, 9, 14])
def test_a_capture_cut_anywhere_counts_the_same(busy, cut):
    whole = capture(busy)
    apart = Traffic().read([whole.slice(0, cut), whole.slice(cut)])
    together = Traffic().read([whole])
    assert (apart.calls, apart.uses, apart.failures, apart.messages) == (
        together.calls, together.uses, together.failures, together.messages,
    )  # fmt: skip


def test_a_follower_is_no_reader():
    talk = talking()
    fetch(talk, 1, replica=4, client_id="broker-4-fetcher-0")
    assert [use.replica for use in Traffic().read([capture(talk.close())]).uses] == [4]


def test_clients_are_told_apart_by_client_id_and_address():
    talks = [
        talking(("10.0.4.12", 40000)),
        talking(("10.0.4.12", 40001), at=MS),
        talking(("10.0.4.13", 40000), at=2 * MS),
    ]
    for talk, client_id in zip(talks, ["a", None, "a"], strict=True):
        produce(talk, 1, 0, client_id=client_id)
    who = {(call.client_id, call.host) for call in Traffic().read([capture(*(talk.close() for talk in talks))]).calls}
    assert who == {("a", "10.0.4.12"), (None, "10.0.4.12"), ("a", "10.0.4.13")}


def test_a_broker_that_closes_before_it_answers():
    talk = talking()
    exchange(talk, "ApiVersions", 0, {}, None, 1)
    talk.reset()
    failures = Traffic().read([capture(talk)]).failures
    assert [(failure.error, failure.api) for failure in failures] == [(UNANSWERED, "ApiVersions")]


def test_rows_are_bounded_and_what_is_beyond_is_counted():
    rows = Counts(counting.Count, most=1)
    assert rows.row("a", 2, 5, 9) is not None
    assert rows.row("b", 3, 1, 1) is None
    assert rows.row("a", 1, 3, 4).count == 3
    assert (rows["a"].first_ns, rows["a"].last_ns, rows.others) == (3, 9, 3)


def test_quantiles_of_nothing_and_of_few():
    assert quantile_ms({}, 0.99) is None
    assert quantile_ms({0: 98, 160: 2}, 0.5) == pytest.approx(0.001, rel=0.03)
    assert quantile_ms({0: 98, 160: 2}, 0.99) == pytest.approx(1.024, rel=0.03)


def test_a_client_id_that_is_no_text_is_counted_and_hides_nothing():
    talk = talking()
    exchange(talk, "Fetch", 12, {"replicaId": -1, "maxWaitMs": 500, "minBytes": 1, "topics": [], "sessionId": 0,
             "sessionEpoch": -1}, None, 1, client_id="?ppx")  # fmt: skip
    fetch(talk, 2)
    strange = [replace(one, payload=one.payload.replace(b"?ppx", b"\xffppx")) for one in talk.segments]
    assert Traffic().read([frames(strange)]).client_ids() == {"\ufffdppx", "billing-7"}


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (Traffic, "3 requests could not be read (DeleteTopics 2, Heartbeat 1)"),
        (Groups, "1 request could not be read (Heartbeat 1)"),
    ],
)
def test_each_question_says_how_many_requests_of_its_own_apis_could_not_be_read(question, said):
    """In a version that is newer than any layout, answered all the same."""
    talk = talking()
    produce(talk, 1, 0)
    for number, api in enumerate(["DeleteTopics", "Heartbeat", "DeleteTopics"], 2):
        asked = plain(api, "request", 4, {}, {"correlationId": number, "clientId": "app"})
        talk.request(asked[:6] + b"\0\x1e" + asked[8:])
        talk.response(plain(api, "response", 4, {}, {"correlationId": number}))
    found = question().read([capture(talk)])
    assert said in getattr(found, "traffic", found).text()


def test_where_all_requests_could_be_read_nothing_is_said_of_it(busy):
    assert "could not" not in Traffic().read([capture(busy)]).text()
