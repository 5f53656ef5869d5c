"""CTL019: a queue of writes that the broker answers one after the other gets on, however long each of them takes."""

import pytest

from tests.judge.cases_unserved import served
from tests.judge.lab import B1, ID_1, Lab
from wirecheck.decode.connection.exchanges import CLOSED_BY_CLIENT

TAKES_S = 12
"""Of each write in the queue."""


def queue(answered):
    """Two writes a second from 10 to 80 s; of those that are sent at `answered`, the response comes 12 s later."""
    lab = Lab()
    lab.metadata(0, [("orders", ID_1)])
    talk = lab.talk(B1, "app", "10.0.0.7")
    for half in range(20, 160):
        at = half / 2
        asked = {"acks": -1, "timeoutMs": 30_000, "topicData": [{"name": "orders", "partitionData": [{"index": 0}]}]}
        row = {"index": 0, "errorCode": 0, "baseOffset": 1, "logAppendTimeMs": -1}
        answer = {"responses": [{"name": "orders", "partitionResponses": [row]}]}
        takes_s = TAKES_S if answered(at) else 85 + (half - 20) / 100 - at
        talk.ask(at, "Produce", 9, asked, answer, answered_in=takes_s)
    served(lab, 90)
    lab.until = 150
    return lab


def words(lab):
    (found,) = lab.findings("CTL019")
    return {word["name"]: word["value"] for word in found["words"]}


def test_writes_that_are_answered_all_the_time_hurt_nobody():
    said = words(queue(lambda at: True))
    assert "hurt_host" not in said
    assert said["seconds"] == "12"


@pytest.mark.parametrize(("since", "seconds"), [(20, "65"), (30, "55")])
def test_writes_that_stop_being_answered_hurt(since, seconds):
    said = words(queue(lambda at: at < since))
    assert said["hurt_host"] == "10.0.0.7"
    assert said["seconds"] == seconds


def gives_up(*, after_s, granted):
    """Writes of which one gets no response, until the client closes the connection and writes on another one."""
    lab = Lab()
    lab.metadata(0, [("orders", ID_1)])
    asked = {"acks": -1, "timeoutMs": 1_000, "topicData": [{"name": "orders", "partitionData": [{"index": 0}]}]}
    row = {"index": 0, "errorCode": 0, "baseOffset": 1, "logAppendTimeMs": -1}
    answer = {"responses": [{"name": "orders", "partitionResponses": [row]}]}
    talk = lab.talk(B1, "app", "10.0.0.7")
    for at in range(2, 20):
        talk.ask(at, "Produce", 9, asked, answer)
    talk.ask(20, "Produce", 9, asked, outcome=CLOSED_BY_CLIENT)
    talk.closed, talk.last_packet = 20 + after_s, 20 + after_s
    talk.facts["closed_by"] = "client-fin"
    later = lab.talk(B1, "app", "10.0.0.7")
    for at in range(20 + after_s + 1, 90):
        later.ask(at, "Produce", 9, asked, *([answer] if granted else []))
    served(lab, 90)
    lab.until = 150
    return lab


@pytest.mark.parametrize(("after_s", "granted", "hurt"), [(12, True, False), (20, True, True), (12, False, True)])
def test_a_write_that_was_lost_with_its_connection_hurts_no_client_for_long(after_s, granted, hurt):
    said = words(gives_up(after_s=after_s, granted=granted))
    assert ("hurt_host" in said) == hurt
