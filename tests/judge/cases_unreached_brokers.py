"""Cases of CLI008, in bytes: clients that work at all brokers but one, and those who only look like one."""

from tests.judge.cases_unserved import READER, assignment, greet
from tests.judge.lab import B1, B2, B3, CLUSTER, ID_1, ID_2, lacks, ns

HERE, THERE, NAMED = "10.0.0.1:9094", "10.0.0.2:9094", "10.0.0.3:9094"
HOST, UNTIL = "10.0.0.7", 130
"""The listener of these clients, as its brokers are captured; broker 3 is listed by a name."""


def answer(leaders=(1, 2, 3), third="kafka-3.example", name="orders", topic_id=ID_1, error=0):
    nodes = [(1, "10.0.0.1"), (2, "10.0.0.2"), (3, third)]
    rows = [
        {"partitionIndex": n, "leaderId": leader, "leaderEpoch": 3, "replicaNodes": [leader], "isrNodes": [leader]}
        for n, leader in enumerate(leaders)
    ]
    topic = {"errorCode": error, "name": name, "topicId": topic_id, "partitions": rows}
    return {
        "brokers": [{"nodeId": node, "host": host, "port": 9094} for node, host in nodes],
        "clusterId": CLUSTER,
        "topics": [topic],
    }


def others(lab, *servers, host="10.0.0.8", until=UNTIL, topic="orders"):
    """Clients of another listener, at every broker all the time."""
    for number, server in enumerate(servers or (B1, B2, B3)):
        talk = greet(lab.talk(server, "other", host), 0)
        for at in range(1, until, 5):
            lab.metadata(at, talk=talk)
            produce(talk, at + 0.5, topic, number)


def produce(talk, at, topic, partition, error=0):
    asked = {"acks": 1, "topicData": [{"name": topic, "partitionData": [{"index": partition}]}]}
    said = {"responses": [{"name": topic, "partitionResponses": [{"index": partition, "errorCode": error}]}]}
    talk.ask(at, "Produce", 9, asked, said)


def looks(lab, every=1.0, topics=({"name": "orders"},), talk=None, client_id="app", **facts):
    """Metadata of its topic again and again."""
    talk = talk or greet(lab.talk(HERE, client_id, HOST), 0)
    for turn in range(int((UNTIL - 10) / every)):
        talk.ask(1.4 + turn * every, "Metadata", 12, {"topics": [*topics] or None}, answer(**facts))
    lab.until = UNTIL
    return talk


def writes(lab, *servers, client_id="app", topic="orders", error=0):
    """To a partition of each server, all the time."""
    for number, server in enumerate(servers or (HERE, THERE)):
        talk = lab.talk(server, client_id, HOST)
        for at in range(2, UNTIL - 8, 2):
            produce(talk, at, topic, number, error)


def fetches(lab, *servers, client_id="app"):
    for number, server in enumerate(servers or (HERE, THERE)):
        times = range(3, UNTIL - 8, 2)
        lab.fetches(times, ID_1, server=server, client_id=client_id, host=HOST, partition=number)


def is_member(lab, *partitions, client_id="app"):
    talk = greet(lab.talk(HERE, client_id, HOST), 0)
    joined = {"errorCode": 0, "memberId": "m-1", "leader": "m-1"}
    limits = {"rebalanceTimeoutMs": 300_000, "sessionTimeoutMs": 45_000, "protocolType": "consumer"}
    talk.ask(1, "JoinGroup", 7, {**READER, **limits}, joined)
    held = {"errorCode": 0, "assignment": assignment(("orders", partitions))}
    talk.ask(1.1, "SyncGroup", 5, READER, held)
    for at in range(2, UNTIL - 8, 3):
        talk.ask(at, "Heartbeat", 4, READER, {"errorCode": 0})


def cli008_fires__a_producer_lacks_one_broker(lab):
    others(lab)
    looks(lab)
    writes(lab)
    (found,) = lab.findings("CLI008")
    assert "and asked broker 3 (kafka-3.example:9094) for nothing" in found["summary"]
    assert "but for Metadata 120 times" in found["summary"]


def cli008_fires__a_reader_of_no_group_lacks_one_broker(lab):
    others(lab)
    looks(lab)
    fetches(lab)


def cli008_fires__a_member_lacks_one_broker(lab):
    others(lab)
    is_member(lab, 0, 1, 2)
    looks(lab, 5.0)
    fetches(lab)


def cli008_fires__others_find_the_broker_by_its_name(lab):
    others(lab)
    talk = greet(lab.talk(NAMED, "neighbour", "10.0.0.9"), 0)
    looks(lab, talk=talk, client_id="neighbour")
    looks(lab)
    writes(lab)


def cli008_near_miss__a_member_without_partitions_of_that_broker(lab):
    others(lab)
    is_member(lab, 0, 1)
    looks(lab)
    fetches(lab)


def cli008_near_miss__a_producer_whose_keys_go_elsewhere(lab):
    """It asks for metadata as often as it is configured to."""
    others(lab)
    looks(lab, 5.0)
    writes(lab)


def cli008_near_miss__that_broker_leads_no_partition(lab):
    others(lab)
    looks(lab, leaders=(1, 2))
    writes(lab)


def cli008_near_miss__an_address_instead_of_a_name(lab):
    others(lab)
    looks(lab, third="10.0.0.3")
    writes(lab)


def cli008_near_miss__it_reaches_that_broker(lab):
    others(lab)
    looks(lab)
    writes(lab, HERE, THERE, NAMED)


def cli008_near_miss__its_host_reaches_that_broker(lab):
    """The name leads there for another client of that host, so that it is found."""
    others(lab)
    looks(lab)
    writes(lab)
    fetches(lab, HERE, THERE, NAMED, client_id="neighbour")
    looks(lab, 60.0, client_id="neighbour")


def cli008_fires__another_process_of_its_id_reaches_that_broker(lab):
    """One pod of several does not find the name."""
    others(lab)
    looks(lab)
    writes(lab)
    talk = greet(lab.talk(B3, "app", "10.0.0.12"), 0)
    lab.metadata(5, talk=talk)


def cli008_near_miss__a_member_behind_one_address_for_each_broker(lab):
    others(lab)
    is_member(lab, 0, 1, 2)
    looks(lab, 5.0)
    fetches(lab)
    lab.fetches(range(3, UNTIL - 8, 2), ID_1, server=NAMED, client_id="app", host="10.0.0.17", partition=2)


def cli008_near_miss__looks_for_a_topic_that_is_not_there(lab):
    others(lab)
    talk = looks(lab)
    for at in range(2, UNTIL - 10):
        talk.ask(at, "Metadata", 12, {"topics": [{"name": "none"}]}, answer((), name="none", topic_id=ID_2, error=3))
    writes(lab)


def cli008_near_miss__its_writes_are_rejected(lab):
    others(lab)
    looks(lab)
    writes(lab)
    writes(lab, HERE, error=6)


def cli008_near_miss__many_processes_of_one_id(lab):
    """Each asks as it starts."""
    others(lab)
    writes(lab)
    for at in range(1, UNTIL - 9):
        greet(lab.talk(HERE, "app", HOST), at).ask(at + 0.4, "Metadata", 12, {"topics": [{"name": "orders"}]}, answer())
    lab.until = UNTIL


def cli008_cannot_know__what_that_broker_is_asked(lab):
    """It was not captured, except for requests of brokers."""
    others(lab, B1, B2)
    others(lab, B3, host="10.0.0.1")
    looks(lab)
    writes(lab)


def cli008_cannot_know__that_broker_is_asked_for_other_topics_only(lab):
    others(lab, topic="songs")
    looks(lab)
    writes(lab)


def cli008_cannot_know__that_broker_is_down(lab):
    others(lab, B1, B2)
    others(lab, B3, until=60)
    looks(lab)
    writes(lab)


def cli008_cannot_know__bytes_to_that_broker_are_missing(lab):
    others(lab)
    looks(lab)
    writes(lab)
    lab.talk(NAMED, None, HOST, from_start=False, gaps=(lacks(ns(30), 0, 900),), unseen_request_bytes=900)
