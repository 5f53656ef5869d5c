"""Cases of what only drafts say."""

from tests.judge.lab import B2, ID_1, ID_2
from wirecheck.decode.layouts.program import Dialect

INCREMENTAL, FULL = 1, 2
TOLD = {"controllerId": 3, "controllerEpoch": 1}


def orders(lab, ids, *, server=B2, kind=INCREMENTAL, version=3):
    """A controller's LeaderAndIsr for one topic, every 20 s with the next of these ids; None is a StopReplica."""
    talk = lab.talk(server, "3", "10.0.0.3")
    for turn, (topic_id, number) in enumerate(ids):
        if topic_id is None:
            gone = {
                "topics": [{"name": "orders", "topicId": number, "partitionIndexes": [0]}],
                "deletePartitions": True,
            }
            talk.drafted(20 * turn, "StopReplica", 2, TOLD | gone, {})
        else:
            state = {"partitionIndex": 0, "leader": 1, "leaderEpoch": number, "isr": [1, 2], "replicas": [1, 2]}
            states = [{"topicName": "orders", "topicId": topic_id, "partitionStates": [state]}]
            talk.drafted(20 * turn, "LeaderAndIsr", version, TOLD | {"type": kind, "topicStates": states}, {})
    lab.until = 200


def talk_of_drafts(lab):
    """Every talk of this lab is read as a draft."""
    made = lab.talk

    def talk(*given, **facts):
        one = made(*given, **facts)
        one.dialect = Dialect.KIP516_DRAFT
        return one

    lab.talk = talk
    return lab


def tid018_fires(lab):
    orders(talk_of_drafts(lab), [(ID_1, 4), (ID_2, 0)])


def tid018_near_miss(lab):
    """The replica was deleted before the topic came back under another id."""
    orders(talk_of_drafts(lab), [(ID_1, 4), (None, ID_1), (ID_2, 0)])


def tid018_cannot_know(lab):
    """The older id was ordered to another broker: what this one has on disk was not seen."""
    lab = talk_of_drafts(lab)
    orders(lab, [(ID_1, 4)], server="10.0.0.1:9092")
    orders(lab, [(ID_2, 0)])
