"""Cases of CLU002, in bytes: an outsider beside a cluster, and those who only look like one."""

import struct

from tests.decode.log.batches import voters
from tests.judge.cases_control import log_batch
from tests.judge.cases_versions import ranges
from tests.judge.cases_wire import DEAD
from tests.judge.lab import B1, B2, B3, BROKERS, CLUSTER, ID_1, ID_2, ID_3, disagrees_at, ns
from wirecheck.decode.connection.exchanges import CLOSED_BY_CLIENT

EVIL = "10.66.6.6"


def cluster(lab):
    """Two brokers that name each other, and a client that is served."""
    lab.metadata(0, [("orders", ID_1)])
    lab.metadata(0, [("orders", ID_1)], server=B2)
    lab.until = 100


def outsider(lab, server=B1, **facts):
    return lab.talk(server, "evil", EVIL, **facts)


def newer(talk, at=10):
    """A version that no release speaks."""
    talk.ask(at, "Metadata", 12, {"topics": None}, outcome=CLOSED_BY_CLIENT)
    data, side, key, _, *rest = talk.messages[-1]
    talk.messages[-1] = (data[:2] + struct.pack(">h", 77) + data[4:], side, key, 77, *rest)
    return talk


def malformed(talk, at=10):
    talk.ask(at, "Metadata", 12, {"topics": None}, outcome=CLOSED_BY_CLIENT)
    data, *rest = talk.messages[-1]
    talk.messages[-1] = (data + b"\0\0", *rest)
    return talk


def foreign_id(talk, at=10, api="Vote"):
    asked = {"clusterId": "EVIL-CLUSTER-ID-0000000"}
    return talk.ask(at, api, 0 if api == "Vote" else 17, asked, {"errorCode": 104})


def stale(talk, at=10, count=1):
    asked = {"topics": [{"topicId": ID_3, "partitions": [{"partition": 0}]}], "replicaState": {"replicaId": 2}}
    row = {"partitionIndex": 0, "errorCode": 100}
    for number in range(count):
        talk.ask(at + number, "Fetch", 16, asked, {"responses": [{"topicId": ID_3, "partitions": [row]}]})
    return talk


def order(talk, at=10, error=31):
    state = {"leader": 66, "leaderEpoch": 999, "isr": [66], "replicas": [66]}
    topics = [{"topicName": "orders", "topicId": ID_1, "partitionStates": [state]}]
    asked = {"controllerId": 66, "controllerEpoch": 99, "topicStates": topics}
    return talk.ask(at, "LeaderAndIsr", 5, asked, {"errorCode": error})


def outside(talk, at=10):
    """What it was just told is not taken."""
    keys = [{"apiKey": k, "minVersion": low, "maxVersion": high} for k, (low, high) in ranges("2.8.2", "Z").items()]
    talk.ask(at, "ApiVersions", 3, {}, {"apiKeys": keys})
    return talk.ask(at + 1, "Produce", 11, {}, outcome=CLOSED_BY_CLIENT)


@disagrees_at(10)
def clu002_fires(lab):
    cluster(lab)
    for use in (newer, malformed, foreign_id, stale, order, outside):
        use(outsider(lab))


def clu002_near_miss__in_the_voter_set(lab):
    """A controller that is named by the metadata log alone, and broken."""
    cluster(lab)
    log_batch(lab, 1, voters([(66, EVIL, 9093)]), 9)
    foreign_id(outsider(lab))


def clu002_fires__a_writer_that_is_rejected(lab):
    """It got version ranges, and writes for long under an ID that is unknown."""
    cluster(lab)
    talk = outsider(lab)
    talk.ask(1, "ApiVersions", 0, {}, {"apiKeys": [{"apiKey": 0, "minVersion": 0, "maxVersion": 13}]})
    for at in range(2, 100, 5):
        topics = [{"topicId": ID_3, "partitionData": [{"records": None}]}]
        answer = {"responses": [{"topicId": ID_3, "partitionResponses": [{"errorCode": 100}]}]}
        talk.ask(at, "Produce", 13, {"topicData": topics, "acks": 1}, answer)
    lab.until = 150


def clu002_fires__versions(lab):
    cluster(lab)
    newer(outsider(lab))


def clu002_fires__malformed(lab):
    cluster(lab)
    malformed(outsider(lab))


def clu002_fires__cluster_id(lab):
    cluster(lab)
    foreign_id(outsider(lab))


def clu002_fires__ids(lab):
    cluster(lab)
    stale(outsider(lab), count=60)


def clu002_fires__orders(lab):
    cluster(lab)
    order(outsider(lab))


def clu002_fires__outside_the_range(lab):
    cluster(lab)
    outside(outsider(lab))


def clu002_fires__no_kafka(lab):
    cluster(lab)
    outsider(lab, protocol="other", payload_bytes=78)


def clu002_fires__a_server(lab):
    """It states the cluster's id, and gives its topic another one."""
    cluster(lab)
    rogue = lab.talk(f"{EVIL}:9092", "evil", EVIL)
    lab.metadata(10, [("orders", ID_2)], server=f"{EVIL}:9092", cluster_id=CLUSTER, talk=rogue)


def rogue_metadata(lab, at, **options):
    """Of an unlisted server that knows the cluster's topic IDs."""
    rogue = lab.talk(f"{EVIL}:9092", "evil", EVIL)
    lab.metadata(at, [("orders", ID_1)], server=f"{EVIL}:9092", cluster_id=CLUSTER, talk=rogue, **options)
    return rogue


def clu002_fires__a_server_with_other_leaders(lab):
    cluster(lab)
    rogue_metadata(lab, 10, leader=2)


def clu002_fires__a_server_with_other_addresses(lab):
    cluster(lab)
    rogue_metadata(lab, 10, brokers={DEAD: 1})


def clu002_fires__a_server_that_accepts_heartbeats(lab):
    """As a controller of the cluster would; it says that a directory of broker 2 is offline."""
    cluster(lab)
    rogue = rogue_metadata(lab, 10)
    for at in range(11, 60):
        asked = {"brokerId": 2, "brokerEpoch": 999, "currentMetadataOffset": at, "offlineLogDirs": [ID_3]}
        rogue.ask(at, "BrokerHeartbeat", 1, asked, {"errorCode": 0, "isCaughtUp": True})


def clu002_near_miss__a_metadata_answer_in_a_controllers_name(lab):
    """No list names a controller, and its brokers may send from any address. It answers no Metadata: that is forged."""
    cluster(lab)
    broker = lab.talk("10.0.0.66:9093", "broker-2", "10.0.0.67")
    keys = [{"apiKey": k, "minVersion": low, "maxVersion": high} for k, (low, high) in ranges("4.4.0", "C").items()]
    broker.ask(9, "ApiVersions", 3, {}, {"apiKeys": keys})
    for at in range(10, 60):
        asked = {"brokerId": 2, "brokerEpoch": 999, "currentMetadataOffset": at}
        broker.ask(at, "BrokerHeartbeat", 1, asked, {"errorCode": 0, "isCaughtUp": True})
    forged = lab.talk("10.0.0.66:9093", "evil", EVIL)
    lab.metadata(30, [("orders", ID_1)], server="10.0.0.66:9093", cluster_id=CLUSTER, talk=forged)


def describes(lab, name, leader, address=f"{EVIL}:9092"):
    """A server that answers no Metadata, and describes a topic by the cluster's ID."""
    cluster(lab)
    talk = lab.talk(address, "evil", EVIL)
    part = {"partitionIndex": 0, "leaderId": leader, "replicaNodes": [1, 2, 3], "isrNodes": [1, 2, 3]}
    row = {"name": name, "topicId": ID_1, "partitions": [part]}
    for at in range(10, 90, 10):
        talk.ask(at, "DescribeTopicPartitions", 0, {"topics": [{"name": name}]}, {"topics": [row], "nextCursor": None})


def ctl002_near_miss__of_an_outsiders_server_without_metadata(lab):
    describes(lab, "orders", 2)


def ctl002_fires__at_a_listed_address(lab):
    """A broker that members name: it need not show which brokers there are."""
    describes(lab, "orders", 2, address=B3)


def tid008_near_miss__of_an_outsiders_server_without_metadata(lab):
    describes(lab, "evil", 1)


def clu002_near_miss__a_server_without_metadata(lab):
    """It may be a proxy that renames topics."""
    describes(lab, "evil", 2)


def ctl002_near_miss__of_an_outsiders_server(lab):
    clu002_fires__a_server_with_other_leaders(lab)


def ctl014_near_miss__of_an_outsiders_server(lab):
    clu002_fires__a_server_that_accepts_heartbeats(lab)


def clu002_near_miss__a_balancer(lab):
    """An address to begin with, before all brokers: it is unlisted, and repeats what they say."""
    cluster(lab)
    for at in range(10, 60, 10):
        rogue_metadata(lab, at)


def clu002_near_miss(lab):
    """It was granted something, before or after."""
    cluster(lab)
    newer(outsider(lab))
    lab.metadata(50, talk=outsider(lab))


def clu002_near_miss__named(lab):
    lab.metadata(0, brokers={B1: 1, B2: 2, f"{EVIL}:9092": 3})
    malformed(outsider(lab))


def clu002_near_miss__only_refused(lab):
    cluster(lab)
    outsider(lab).ask(10, "CreateTopics", 7, {"topics": [{"name": "x"}]}, {"topics": [{"name": "x", "errorCode": 41}]})


def clu002_near_miss__of_before(lab):
    """A client that does not ask for versions: VER001's affair."""
    lab.versions(0, {**ranges("4.4.0"), 0: (0, 13)})
    outsider(lab).refused(10, "Produce", 2)


def clu002_near_miss__another_clusters_node(lab):
    """Refused by an endpoint that serves raft: CLU001's affair."""
    wrong_cluster(lab)


def wrong_cluster(lab, api="Fetch"):
    log = {"partitionIndex": 0, "errorCode": 0, "highWatermark": 10, "records": b""}
    asked = {"clusterId": CLUSTER, "topics": [{"topicId": "AAAAAAAAAAAAAAAAAAAAAQ", "partitions": [{"partition": 0}]}]}
    answer = {"responses": [{"topicId": "AAAAAAAAAAAAAAAAAAAAAQ", "partitions": [log]}]}
    lab.talk(B3, "raft-client-1", "10.0.0.1").ask(0, "Fetch", 17, asked, answer)
    foreign_id(outsider(lab, B3), api=api)


def clu002_near_miss__an_empty_fetch(lab):
    """Nothing changed in its session: no error, and nothing granted either."""
    cluster(lab)
    outsider(lab).ask(10, "Fetch", 16, {"topics": [{"topicId": ID_1, "partitions": [{}]}]}, {"responses": []})


def clu002_near_miss__a_server_that_agrees(lab):
    """A load balancer's address: no broker's list has it, and it says what they say."""
    cluster(lab)
    lab.metadata(10, [("orders", ID_1)], server="10.0.0.200:9092", talk=lab.talk("10.0.0.200:9092"))


def clu002_cannot_know(lab):
    """What it was granted before the capture began nobody knows."""
    cluster(lab)
    stale(outsider(lab, from_start=False), count=60)


def clu002_cannot_know__an_answer_is_missing(lab):
    cluster(lab)
    newer(outsider(lab, unseen_response_bytes=100))


def clu002_cannot_know__encrypted(lab):
    """Under TLS it may be granted anything."""
    cluster(lab)
    newer(outsider(lab))
    outsider(lab, "10.0.0.1:9093", protocol="tls", payload_bytes=500)


def clu001_fires__of_a_host_that_nobody_names(lab):
    wrong_cluster(lab)


def ver001_fires__of_a_host_that_was_never_granted_anything(lab):
    for _ in range(2):
        clu002_near_miss__of_before(lab)


def ver001_near_miss__it_had_just_been_told(lab):
    """Of an outsider that is CLU002."""
    cluster(lab)
    outside(outsider(lab)).refused(12, "Produce", 11)


def fet001_fires__joined_in_the_middle(lab):
    clu002_cannot_know(lab)


def fet001_near_miss__of_an_outsider(lab):
    clu002_fires__ids(lab)


def wir003_near_miss__of_an_outsider(lab):
    clu002_fires__malformed(lab)


def wir005_near_miss__of_an_outsider(lab):
    clu002_fires__versions(lab)


def clu001_near_miss__of_an_outsider(lab):
    clu002_fires__cluster_id(lab)


def tid007_near_miss__of_an_outsiders_server(lab):
    clu002_fires__a_server(lab)


def wir008_near_miss__of_an_outsiders_server(lab):
    """It alone names an address where connections are reset."""
    cluster(lab)
    for at in range(0, 91, 5):
        lab.metadata(at, [("orders", ID_1)])
        rogue, brokers = lab.talk(f"{EVIL}:9092", "evil", EVIL), {**BROKERS, DEAD: 9}
        lab.metadata(at, [("orders", ID_2)], server=f"{EVIL}:9092", cluster_id=CLUSTER, brokers=brokers, talk=rogue)
    for at in range(10, 80, 3):
        lab.talk(DEAD, over=True, close_ns=ns(at), closed_by="server-rst")


def lists_itself(lab, at, number=3, address=f"{EVIL}:9092", names=(("orders", ID_1),)):
    """A server that names itself as a broker, beside the brokers of the cluster."""
    talk = lab.talk(address, "evil", EVIL)
    brokers = {one: n for one, n in {B1: 1, B2: 2}.items() if n != number} | {address: number}
    lab.metadata(at, names, server=address, cluster_id=CLUSTER, brokers=brokers, talk=talk)


def two_brokers(lab, *times):
    """Both brokers are asked, and name each other."""
    for at in times:
        for server in (B1, B2):
            lab.metadata(at, [("orders", ID_1)], server=server, brokers={B1: 1, B2: 2})
    lab.until = 100


def clu002_fires__a_server_that_lists_itself(lab):
    """It says nothing else: members, asked later, do not name it."""
    two_brokers(lab, 0, 60)
    for at in range(10, 60, 10):
        lists_itself(lab, at)


def clu002_fires__a_server_that_lists_itself_as_a_member(lab):
    two_brokers(lab, 0, 60)
    lists_itself(lab, 10, number=2)


def clu002_near_miss__a_broker_that_joins(lab):
    """It names itself at once, and the others do as soon as they know."""
    two_brokers(lab, 0)
    lists_itself(lab, 10)
    lab.metadata(12, [("orders", ID_1)], brokers={B1: 1, B2: 2, f"{EVIL}:9092": 3})
    lab.until = 100


def clu002_near_miss__a_broker_that_moved_at_the_end(lab):
    """No member was asked later."""
    two_brokers(lab, 0, 15)
    lists_itself(lab, 10, number=2)


def clu002_near_miss__a_lone_broker_of_another_listener(lab):
    """Its list shares no address with theirs, and has their numbers."""
    two_brokers(lab, 0, 60)
    internal = {"10.1.0.1:9094": 1, "10.1.0.2:9094": 2}
    for at in range(10, 60, 10):
        lab.metadata(at, [("orders", ID_1)], server="10.1.0.1:9094", brokers=internal)


def tid007_near_miss__of_a_server_that_lists_itself(lab):
    two_brokers(lab, 0, 30, 60, 90)
    for at in range(1, 95, 5):
        lists_itself(lab, at, names=[("orders", ID_2)])


def tid007_fires__of_a_broker_that_a_member_names(lab):
    """One of the two is enough."""
    for at in range(0, 100, 10):
        lab.metadata(at, [("orders", ID_1)], brokers={B1: 1, B2: 2, f"{EVIL}:9092": 3})
        lab.metadata(at, [("orders", ID_1)], server=B2, brokers={B1: 1, B2: 2})
        lists_itself(lab, at, names=[("orders", ID_2)])
    lab.until = 120
