"""Errors by harm: what fails, and whether it goes on. Near misses: errors that ended, are routine, came once."""

import pytest

from tests.questions.test_traffic import BROKER, CLIENT, SECOND, START, capture, exchange, fetch, produce, talking
from tests.traffic import ACK, RST, SYN, Talk
from wirecheck.questions.error_rows import error_rows
from wirecheck.questions.traffic import Traffic


def rows(*talks):
    return error_rows(Traffic().read([capture(*talks)]))


def writes(errors, every_s=5, topic="orders", at=0, client=("10.0.4.12", 40000)):
    talk = talking(client, at)
    for number, error in enumerate(errors):
        produce(talk, number, error, topic)
        talk.ts_ns += every_s * SECOND
    return talk


def test_the_rate_of_a_client_that_does_not_wait_is_named():
    talk = writes([6] * 41, every_s=0.05)
    (fast,) = rows(talk.close())
    (slow,) = rows(writes([6] * 41, every_s=1).close())
    assert (fast.pace, slow.pace) == ("18 a second", "")


@pytest.mark.parametrize(("errors", "status"), [
    ([0, 6, 6, 6, 6], "ongoing"), ([6, 6, 6, 0, 0, 0, 0, 0], "recovered"), ([0, 0, 6], "stopped"), ([6, 6], "stopped"),
    ([6, 0], "recovered"), ([6, 0, 6, 0, 6, 0, 6], "ongoing"),
])  # fmt: skip
def test_whether_it_goes_on(errors, status):
    (row,) = rows(writes(errors).close())
    assert (row.status, row.count, row.requests) == (status, errors.count(6), len(errors))


def test_one_who_gave_up_long_before_the_end_has_stopped():
    other = writes([0] * 20, at=60 * SECOND, client=("10.0.4.13", 40000))
    (row,) = rows(writes([6, 6, 6], every_s=1).close(), other.close())
    assert row.status == "stopped"


def test_another_topic_that_works_is_no_recovery():
    talk = talking()
    for number in range(12):
        produce(talk, number, 100 if number % 2 else 0, "lost" if number % 2 else "fine")
        talk.ts_ns += SECOND
    (row,) = rows(talk.close())
    assert (row.topic, row.error, row.status) == ("lost", "UNKNOWN_TOPIC_ID", "ongoing")


def test_a_success_at_once_ends_an_error_about_the_request():
    talk = talking()
    for number, error in enumerate([14, 14, 0]):
        asked = {"transactionalId": None, "transactionTimeoutMs": 1, "producerId": -1, "producerEpoch": -1}
        answered = {"throttleTimeMs": 0, "errorCode": error, "producerId": 1, "producerEpoch": 0}
        exchange(talk, "InitProducerId", 4, asked, answered, number)
    (row,) = rows(talk.close())
    assert (row.effect, row.status, row.topic) == ("transaction rejected", "recovered", None)


def test_the_worst_comes_first_and_what_is_routine_last():
    talk = talking()
    exchange(talk, "JoinGroup", 4, JOIN, {"errorCode": 79, "members": [], "memberId": "m"}, 100)
    exchange(
        talk, "SaslAuthenticate", 1, {"authBytes": ""}, {"errorCode": 58, "errorMessage": "no", "authBytes": ""}, 101
    )
    for number in range(4):
        produce(talk, number, 6, throttle_ms=7)
        talk.ts_ns += SECOND
    found = rows(talk.close())
    assert [(row.effect, row.status) for row in found] == [
        ("write rejected", "ongoing"), ("throttled", "ongoing"), ("login failed", "stopped"), ("routine", "stopped"),
    ]  # fmt: skip
    assert (found[1].throttle_time_ms, found[1].throttle_time_max_ms, found[0].throttle_time_ms) == (28, 7, None)


JOIN = {"groupId": "g", "sessionTimeoutMs": 1, "rebalanceTimeoutMs": 1, "memberId": "", "protocolType": "consumer",
        "protocols": []}  # fmt: skip


def test_no_errors_no_rows():
    talk = talking()
    fetch(talk, 1)
    assert rows(talk.close()) == []


def fetches(talk, number, topics, error=None, *, epoch, forgotten=()):
    """One fetch of a session that names these topics; `error`: of the first of them."""
    asked = {"replicaId": -1, "maxWaitMs": 500, "minBytes": 1, "sessionId": 7, "sessionEpoch": epoch,
             "topics": [{"topic": one, "partitions": [{"partition": 0}]} for one in topics],
             "forgottenTopicsData": [{"topic": one, "partitions": [0]} for one in forgotten]}  # fmt: skip
    parts = [{"topic": "orders", "partitions": [{"partitionIndex": 0, "errorCode": error}]}] if error else []
    exchange(
        talk, "Fetch", 12, asked, {"throttleTimeMs": 0, "errorCode": 0, "sessionId": 7, "responses": parts}, number
    )


def reader(after):
    """Three errors about one of two topics, a fetch as `after` has it, and a minute of fetches that name no topic."""
    talk = talking()
    fetches(talk, 1, ["orders", "calm"], 6, epoch=0)
    for number in (2, 3):
        talk.ts_ns += SECOND
        fetches(talk, number, [], 6, epoch=number - 1)
    talk.ts_ns += SECOND
    fetches(talk, 4, **after)
    for number in range(5, 65):
        talk.ts_ns += SECOND
        fetches(talk, number, [], epoch=number)
    return talk.close()


@pytest.mark.parametrize(
    ("after", "status"),
    [
        ({"topics": [], "epoch": 3}, "recovered"),
        ({"topics": ["orders"], "epoch": 3}, "recovered"),
        ({"topics": ["orders", "calm"], "epoch": 0}, "recovered"),
        ({"topics": [], "epoch": 3, "forgotten": ["orders"]}, "not asked since"),
        ({"topics": ["calm"], "epoch": 0}, "not asked since"),
        ({"topics": [], "epoch": 3, "forgotten": ["calm"]}, "recovered"),
    ],
)
def test_a_topic_that_a_reader_took_out_of_its_session_has_not_recovered(after, status):
    (row,) = rows(reader(after))
    assert (row.topic, row.status) == ("orders", status)


def login(talk, number, error):
    asked = {"authBytes": ""}
    exchange(talk, "SaslAuthenticate", 1, asked, {"errorCode": error, "errorMessage": None, "authBytes": ""}, number)
    talk.ts_ns += SECOND


def test_the_first_step_of_a_login_is_no_recovery():
    talk = talking()
    for number in range(0, 20, 2):
        login(talk, number, 0)
        login(talk, number + 1, 58)
    login(talk, 20, 0)
    (row,) = rows(talk.close())
    assert row.status == "ongoing"
    talk = talking()
    login(talk, 0, 58)
    login(talk, 1, 0)
    fetch(talk, 2)
    (row,) = rows(talk.close())
    assert row.status == "recovered"


def refused(at, client):
    """A SYN that a RST answers."""
    talk = Talk(client=client, server=BROKER, ts_ns=START + at)
    talk._say(True, SYN)
    talk._say(False, RST | ACK)
    return talk


def test_connections_that_were_refused_are_a_row():
    talks = [refused(number * SECOND, (CLIENT[0], 41000 + number)) for number in range(5)]
    other = writes([0] * 6, every_s=1, client=("10.0.4.13", 40000))
    (row,) = rows(*talks, other.close())
    assert (row.effect, row.api, row.count, row.requests) == ("connection refused", "connect", 5, 5)
    assert (row.client_id, row.status) == (None, "ongoing")  # it is at another address than the one that writes
    (row,) = rows(*talks, writes([0] * 6, every_s=1, at=10 * SECOND, client=CLIENT).close())
    assert (row.client_id, row.status) == ("billing-7", "recovered")
