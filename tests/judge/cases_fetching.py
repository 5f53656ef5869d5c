"""Cases of the FET, GRP, ADM and CLU checks, in bytes."""

from tests.judge.lab import CLUSTER, ID_1, ID_2, NO_ID, disagrees_at

OTHER_CLUSTER = "another-cluster-22-chr"
LOG_ID = "AAAAAAAAAAAAAAAAAAAAAQ"


@disagrees_at(1)
def fet001_fires(lab):
    lab.metadata(0, [("orders", ID_1)])
    lab.fetches(range(1, 91, 2), ID_1, 100)


def fet001_fires__of_a_client_id_as_a_broker_has(lab):
    lab.metadata(0, [("orders", ID_1)])
    lab.fetches(range(1, 91, 2), ID_1, 100, client_id="broker-2-fetcher-0")


def fet001_near_miss(lab):
    """A burst of some seconds after a deletion; errors with successes in between."""
    lab.fetches([n / 10 for n in range(100)], ID_1, 100)
    for at in range(20, 100, 10):
        lab.fetches([at], ID_2, 103, client_id="slow")
        lab.fetches([at + 1], ID_2, 0, client_id="slow")


def fet001_fires__exactly_as_long(lab):
    """30.5 s, with successes right before and right after: no slot of time is without one at either end."""
    lab.metadata(0, [("orders", ID_1)])
    lab.fetches([1, 14], ID_1, 0)
    lab.fetches([14.2 + n * 0.5 for n in range(62)], ID_1, 100)
    lab.fetches([45.1, 47], ID_1, 0)


def fet001_near_miss__a_little_shorter(lab):
    lab.metadata(0, [("orders", ID_1)])
    lab.fetches([14], ID_1, 0)
    lab.fetches([14.2 + n * 0.5 for n in range(60)], ID_1, 100)
    lab.fetches([44.1, 60], ID_1, 0)


def fet001_fires__a_thousand_times_in_some_seconds(lab):
    """The capture ends 12 s after the first error; the client still goes on."""
    lab.metadata(0, [("orders", ID_1)])
    lab.fetches([5 + n / 100 for n in range(1200)], ID_1, 100)


def fet001_near_miss__retries_fast_and_recovers(lab):
    """The same, but the client has taken the new ID by now, and half a minute has passed."""
    lab.metadata(0, [("orders", ID_1)])
    lab.fetches([5 + n / 100 for n in range(1200)], ID_1, 100)
    lab.fetches(range(17, 50), ID_2, 0)


def fet001_near_miss__retries_fast_and_is_served(lab):
    """The same ID is served again: the broker has learned of the topic."""
    lab.metadata(0, [("orders", ID_1)])
    talk = lab.fetches([5 + n / 100 for n in range(1200)], ID_1, 100)
    lab.fetches([17.5], ID_1, 0, talk=talk)


def fet001_fires__beside_a_connection_that_is_served(lab):
    """Two readers of one client ID and host: one of them is refused, and the other hides it from nobody."""
    lab.metadata(0, [("orders", ID_1)])
    lab.fetches(range(1, 91, 2), ID_1, 100)
    lab.fetches(range(2, 91, 2), ID_1, 0)


def fet001_cannot_know(lab):
    """The answers were not seen."""
    talk = lab.fetches(range(1, 91, 2), ID_1, 100)
    talk.messages = talk.messages[::2]
    talk.exchanges = [(number, -1, 3) for number in range(len(talk.messages))]


def top_level(lab, error, times):
    lab.metadata(0)
    talk = lab.talk(client_id="app")
    for at in times:
        talk.ask(at, "Fetch", 13, {"sessionEpoch": 3, "sessionId": 9}, {"errorCode": error})
        lab.until = max(lab.until, at)


@disagrees_at(0)
def fet002_fires(lab):
    top_level(lab, 106, range(0, 700, 100))


def fet002_near_miss(lab):
    """A topic is deleted: it has no id for a while, and clients fall back to names."""
    lab.deleted(300, "orders", ID_1)
    top_level(lab, 106, range(20, 580, 100))


def fet002_cannot_know(lab):
    """Once per session, in a roll."""
    top_level(lab, 106, [5])


@disagrees_at(0)
def fet003_fires(lab):
    top_level(lab, 70, range(0, 90, 2))


def fet003_near_miss(lab):
    """A broker's start: everyone's session is gone at once."""
    top_level(lab, 70, [n / 10 for n in range(50)])


def fet003_cannot_know(lab):
    top_level(lab, 0, range(0, 90, 2))


def assigned(lab, at):
    lab.metadata(0, [("orders", ID_1)])
    lab.deleted(10, "orders", ID_1)
    given = {"assignment": {"topicPartitions": [{"topicId": ID_1, "partitions": [0]}]}}
    lab.talk().ask(at, "ConsumerGroupHeartbeat", 1, {"groupId": "readers"}, given)
    lab.until = max(lab.until, at)


@disagrees_at(60)
def grp002_fires(lab):
    assigned(lab, 60)


def grp002_near_miss(lab):
    assigned(lab, 20)


def grp002_cannot_know(lab):
    """Nothing says that the id ended."""
    given = {"assignment": {"topicPartitions": [{"topicId": ID_1, "partitions": [0]}]}}
    lab.talk().ask(60, "ConsumerGroupHeartbeat", 1, {"groupId": "readers"}, given)


def described(lab, name, topic_id=ID_1):
    member = {"assignment": {"topicPartitions": [{"topicId": topic_id, "topicName": name, "partitions": [0]}]}}
    lab.talk().ask(5, "ConsumerGroupDescribe", 0, {}, {"groups": [{"groupId": "readers", "members": [member]}]})


@disagrees_at(5)
def grp003_fires(lab):
    lab.metadata(0, [("orders", ID_1)])
    described(lab, "payments")


def grp003_near_miss(lab):
    lab.metadata(0, [("orders", ID_1)])
    described(lab, "orders")


def grp003_cannot_know(lab):
    """Nothing else names the id."""
    described(lab, "payments", ID_2)


def asks(lab, version, *topics):
    lab.talk().ask(0, "Metadata", version, {"topics": list(topics)}, {"errorCode": 0} if version > 12 else {})


@disagrees_at(0)
def adm002_fires(lab):
    asks(lab, 10, {"topicId": ID_1, "name": None})


def adm002_near_miss(lab):
    asks(lab, 12, {"topicId": ID_1, "name": None})
    asks(lab, 10, {"topicId": NO_ID, "name": "orders"})


def adm002_cannot_know(lab):
    asks(lab, 9, {"name": "orders"})


def raft(lab, cluster_id, error, client_id="raft-client-7"):
    lab.metadata(0)
    talk = lab.talk(client_id=client_id)
    asked = {"clusterId": cluster_id, "topics": [{"topicId": LOG_ID, "partitions": [{}]}], "sessionEpoch": -1}
    for at in range(1, 20):
        talk.ask(at, "Fetch", 17, asked, {"errorCode": error})


@disagrees_at(1)
def clu001_fires(lab):
    raft(lab, OTHER_CLUSTER, 104)


def clu001_fires__a_client_that_poses_as_a_node(lab):
    """It is served as a client, and is none of the other cluster's nodes: less than a violation."""
    lab.metadata(0, talk=lab.talk(client_id="billing"))
    raft(lab, OTHER_CLUSTER, 104, client_id="billing")


def clu001_near_miss(lab):
    raft(lab, CLUSTER, 0)


def clu001_cannot_know(lab):
    """One address, two clusters, one after the other: it was given to another cluster."""
    lab.metadata(0)
    lab.metadata(100, cluster_id=OTHER_CLUSTER, brokers={})


def counted(lab, partition, refreshed=400):
    lab.metadata(0, [("orders", ID_1)])
    lab.fetches(range(1, 20, 2), ID_1, 3, partition=partition)
    lab.metadata(refreshed, [("orders", ID_1)])


@disagrees_at(1)
def fet006_fires(lab):
    counted(lab, 3)


def fet006_near_miss(lab):
    """The partition may just have been added: Metadata was not refreshed late enough."""
    counted(lab, 3, refreshed=200)
    counted(lab, 0, refreshed=250)


def fet006_near_miss__it_is_served(lab):
    """Only a broker that does not know the new partitions yet was asked for Metadata."""
    counted(lab, 0)
    lab.fetches(range(1, 20, 2), ID_1, partition=3)


def fet006_cannot_know(lab):
    """How many partitions the id has was never said."""
    lab.fetches(range(1, 20, 2), ID_1, 3, partition=3)
    lab.until = 400


def creates(lab, *topics, timeout=1000, errors=(0, 0), version=4):
    rows = [{"numPartitions": 3, "replicationFactor": 1, **topic} for topic in topics]
    responses = [{"name": topic["name"], "errorCode": error} for topic, error in zip(topics, errors, strict=False)]
    request, response = {"topics": rows, "timeoutMs": timeout}, {"topics": responses}
    lab.talk(client_id="admin").ask(0, "CreateTopics", version, request, response)


@disagrees_at(0)
def adm001_fires(lab):
    creates(lab, {"name": "a"}, {"name": "a"}, errors=(42,))


def adm001_near_miss(lab):
    creates(lab, {"name": "a"}, {"name": "b"})
    creates(lab, {"name": "c", "numPartitions": -1, "replicationFactor": -1, "assignments": [{"brokerIds": [1]}]})


def adm001_cannot_know(lab):
    """An answer alone does not say what was wrong."""
    creates(lab, {"name": "a"}, errors=(42,))
