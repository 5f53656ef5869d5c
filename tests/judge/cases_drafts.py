"""Cases of what only drafts say."""

from tests.judge.cases_agreement import listed
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


def full_list(lab, at, topics, server=B2):
    """Every partition that the controller wants the broker to have."""
    states = [
        {
            "topicName": name,
            "topicId": topic_id,
            "partitionStates": [
                {"partitionIndex": 0, "leader": 1, "leaderEpoch": 4, "isr": [1, 2], "replicas": [1, 2]}
            ],
        }
        for name, topic_id in topics
    ]
    body = TOLD | {"type": FULL, "topicStates": states}
    lab.talk(server, "3", "10.0.0.3").drafted(at, "LeaderAndIsr", 3, body, {})


def tid015_fires__as_drafted(lab):
    listed(lab)
    orders(talk_of_drafts(lab), [(ID_1, 4)])
    full_list(lab, 60, [])


def tid015_near_miss__deleted_by_stop_replica(lab):
    """The broker was ordered to delete its replica: a list without it is right."""
    listed(lab)
    orders(talk_of_drafts(lab), [(ID_1, 4), (None, ID_1)])
    full_list(lab, 60, [])


def without_id(lab, times):
    for at in times:
        full_list(lab, at, [("orders", None)])
    lab.until = 200


def tid004_fires__the_tag_is_gone(lab):
    """In the draft the ID is a tag; a topic without it has no ID."""
    orders(talk_of_drafts(lab), [(ID_1, 4), (ID_1, 4)])
    without_id(lab, range(40, 160, 10))


def tid011_fires__never_a_tag(lab):
    without_id(talk_of_drafts(lab), range(0, 160, 10))


def tid002_fires__as_drafted(lab):
    """Answers of the draft list each partition with its topic."""
    row = {"topicName": "orders", "topicId": ID_1, "partitionIndex": 0, "errorCode": 103}
    state = {"partitionIndex": 0, "leader": 1, "leaderEpoch": 4, "isr": [1, 2], "replicas": [1, 2]}
    topics = [{"topicName": "orders", "topicId": ID_1, "partitionStates": [state]}]
    talk = talk_of_drafts(lab).talk(B2, "3", "10.0.0.3")
    for at in (5, 25, 45):
        asked = TOLD | {"type": INCREMENTAL, "topicStates": topics}
        talk.drafted(at, "LeaderAndIsr", 3, asked, {"errorCode": 0, "partitionErrors": [row]})
    lab.until = 200
