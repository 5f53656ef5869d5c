"""CTL019: a queue of writes that the broker answers one after the other gets on, however long each of them takes."""

import pytest

from tests.judge.cases_unserved import served
from tests.judge.lab import B1, ID_1, Lab

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
