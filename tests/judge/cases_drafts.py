"""Cases of what only drafts say."""

from tests.judge.cases_agreement import KINDS, TIMES, listed
from tests.judge.lab import B1, B2, CLUSTER, ID_1, ID_2, disagrees_at
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


@disagrees_at(20)
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


def answers_without(lab, *, asked=ID_1, error=0):
    """Broker 2 was ordered with the ID and lists it, and its later Fetch answers have none."""
    talk_of_drafts(lab)
    listed(lab)
    KINDS["draft-leader-and-isr"].states(lab, (1,), ID_1, B2)
    KINDS["draft-metadata"].states(lab, TIMES, ID_1, B2)
    fetch = {"topic": "orders", "partitions": [{"partition": 0}]} | ({} if asked is None else {"topicId": asked})
    row = {"partitionIndex": 0, "errorCode": error, "records": None, "abortedTransactions": None}
    answer = {"responses": [{"topic": "orders", "partitions": [row]}]}
    for at in TIMES:
        lab.talk(B2, "reader", "10.0.0.95").drafted(
            at + 2, "Fetch", 12, {"replicaId": -1, "topics": [fetch], "sessionEpoch": -1}, answer
        )
    lab.until = 200


@disagrees_at(2)
def tid020_fires__an_answer_of_a_draft_leaves_the_id_out(lab):
    answers_without(lab)


def tid020_near_miss__a_draft_is_asked_without_an_id(lab):
    """Who asks by the name alone is answered by it."""
    answers_without(lab, asked=None)


def tid020_near_miss__a_refusal_of_a_draft_without_an_id(lab):
    answers_without(lab, error=3)


def taken_over(lab, kind, *, before=True):
    """Controller 3 orders in epoch 1; then controller 1 in epoch 2, whose first LeaderAndIsr has this type."""
    if before:
        orders(lab, [(ID_1, 4)], kind=FULL)
    talk = lab.talk(B2, "1", "10.0.0.1")
    state = {"partitionIndex": 0, "leader": 1, "leaderEpoch": 5, "isr": [1, 2], "replicas": [1, 2]}
    states = [{"topicName": "orders", "topicId": ID_1, "partitionStates": [state]}]
    for at, of in ((60, kind), (80, INCREMENTAL)):
        request = {"controllerId": 1, "controllerEpoch": 2, "topicStates": states} | (
            {} if of is None else {"type": of}
        )
        talk.drafted(at, "LeaderAndIsr", 3, request, {})
    lab.until = 200


@disagrees_at(60)
def ctl021_fires(lab):
    taken_over(talk_of_drafts(lab), INCREMENTAL)


def ctl021_fires__of_no_type(lab):
    orders(talk_of_drafts(lab), [(ID_1, 4)], kind=3)


def ctl021_near_miss(lab):
    taken_over(talk_of_drafts(lab), FULL)


def ctl021_near_miss__an_older_controller(lab):
    """Its requests have no type."""
    taken_over(talk_of_drafts(lab), None)


def ctl021_cannot_know(lab):
    """What came before is not in the capture."""
    taken_over(talk_of_drafts(lab), INCREMENTAL, before=False)


def creates(lab, server, *, kraft=False):
    """Controller 3 orders brokers 1 and 2; then topics are created at a broker for a minute."""
    for number, at in ((B1, 0), (B2, 1)):
        lab.control(at, "UpdateMetadata", [("orders", ID_1, 4)], server=number, version=8, isKRaftController=kraft)
    talk = lab.talk(server, "admin")
    for at in range(10, 80, 10):
        topics = [{"name": f"new-{at}", "numPartitions": 1, "replicationFactor": 1}]
        talk.ask(at, "CreateTopics", 3, {"topics": topics}, {"topics": [{"name": f"new-{at}"}]})
    lab.until = 150


@disagrees_at(10)
def ctl020_fires(lab):
    listed(lab)
    creates(lab, B2)


def ctl020_near_miss(lab):
    """The controller itself, and any broker of a cluster that migrates to KRaft."""
    listed(lab)
    creates(lab, "10.0.0.3:9092")


def ctl020_near_miss__kraft(lab):
    listed(lab)
    creates(lab, B2, kraft=True)


def ctl020_cannot_know(lab):
    """Nothing shows who the controller is."""
    listed(lab)
    lab.talk(B2, "admin").ask(10, "CreateTopics", 3, {"topics": [{"name": "a"}]}, {"topics": [{"name": "a"}]})


def stopped_and_served(lab, *, ordered_again, until=150):
    """As drafted: StopReplica deletes the replica at broker 2, which goes on serving the partition."""
    orders(talk_of_drafts(lab), [(ID_1, 4), (None, ID_1), *([(ID_1, 5)] if ordered_again else [])])
    reader = lab.talk(B2, "app")
    row = {"partitionIndex": 0, "highWatermark": 10, "records": None, "abortedTransactions": None}
    answer = {"responses": [{"topic": "orders", "topicId": ID_1, "partitions": [row]}]}
    asked = {"replicaId": -1, "sessionEpoch": -1}
    topics = [{"topic": "orders", "topicId": ID_1, "partitions": [{"partition": 0}]}]
    for at in range(5, until, 5):
        reader.drafted(at, "Fetch", 12, asked | {"topics": topics}, answer)


def tid010_fires__after_stop_replica(lab):
    stopped_and_served(lab, ordered_again=False)


def tid010_fires__soon_after_stop_replica(lab):
    """By the draft a replica is deleted at once."""
    stopped_and_served(lab, ordered_again=False, until=41)


def tid010_near_miss__what_waited_when_it_was_stopped(lab):
    stopped_and_served(lab, ordered_again=False, until=31)


def tagged_for(lab, ids, apis=("LeaderAndIsr", "UpdateMetadata")):
    """A controller orders each broker, with the topic's ID as a tag or without; brokers report what they got."""
    controller = talk_of_drafts(lab)
    state = {"partitionIndex": 0, "leader": 1, "leaderEpoch": 4, "isr": [1, 2], "replicas": [1, 2]}
    talks = {server: controller.talk(server, "3", "10.0.0.3") for server in ids}
    clients = {server: controller.talk(server, "app") for server in ids}
    for at in range(0, 160, 10):
        for server, topic_id in ids.items():
            for number, (api, version) in enumerate((("LeaderAndIsr", 3), ("UpdateMetadata", 7))):
                tag = {"topicId": topic_id or ID_1} if topic_id or api not in apis else {}
                row = {"topicName": "orders", "partitionStates": [state], **tag}
                more = {"type": INCREMENTAL} if api == "LeaderAndIsr" else {}
                talks[server].drafted(at + number / 10, api, version, TOLD | more | {"topicStates": [row]}, {})
            part = {"leaderId": 1, "leaderEpoch": 4, "replicaNodes": [1, 2], "isrNodes": [1, 2]}
            row = {"name": "orders", "partitions": [part], **({"topicId": topic_id} if topic_id else {})}
            nodes = [{"nodeId": n, "host": f"10.0.0.{n}", "port": 9092} for n in (1, 2, 3)]
            answer = {"brokers": nodes, "clusterId": CLUSTER, "topics": [row]}
            clients[server].drafted(at + 1, "Metadata", 10, {"topics": None}, answer)
    lab.until = 200


def tid004_near_miss__tags_for_some_brokers(lab):
    """Tags are optional: a broker that does not know them gets none, and gives none to its clients."""
    tagged_for(lab, {B1: ID_1, B2: None})


def tid020_near_miss__tags_for_some_brokers(lab):
    tagged_for(lab, {B1: ID_1, B2: None})


def tid004_fires__a_tag_in_one_kind_of_request(lab):
    """The same broker gets the ID in LeaderAndIsr."""
    tagged_for(lab, {B1: ID_1, B2: None}, apis=("UpdateMetadata",))


def tid010_near_miss__ordered_again_after_stop_replica(lab):
    stopped_and_served(lab, ordered_again=True)


def wir003_fires__two_ids_of_a_topic(lab):
    tagged_topics(lab, [(0, ID_1), (3, f"{ID_2}==")])


def wir003_fires__an_id_that_is_cut(lab):
    tagged_topics(lab, [(1, ID_1[:20])])


def wir003_near_miss__another_tag_beside_the_id(lab):
    tagged_topics(lab, [(0, ID_1), (7, "YWJj")])


def tagged_topics(lab, tags):
    """LeaderAndIsr as drafted, with these tags in the struct of its topic."""
    talk = talk_of_drafts(lab).talk(B2, "3", "10.0.0.3")
    state = {"partitionIndex": 0, "leader": 1, "leaderEpoch": 4, "isr": [1, 2], "replicas": [1, 2]}
    topic = {"topicName": "orders", "partitionStates": [state]}
    (first, topic_id), *others = tags
    if first == 0:
        topic["topicId"] = topic_id
    else:
        others = tags
    topic["_unknownTaggedFields"] = [{"tag": tag, "data": data} for tag, data in others]
    talk.drafted(1, "LeaderAndIsr", 3, TOLD | {"type": INCREMENTAL, "topicStates": [topic]}, {})
