"""Cases of the CTL and LOG checks, in bytes."""

import base64

from tests.decode.log.batches import batch, topic
from tests.judge.lab import (
    B1,
    B2,
    B3,
    BROKERS,
    CLUSTER,
    ID_1,
    ID_2,
    ID_3,
    NO_ID,
    disagrees_at,
    disagrees_later,
    lacks,
    ns,
)
from wirecheck.decode.connection.exchanges import NO_RESPONSE_DUE


def two_epochs(lab, error, at=20, **late):
    lab.control(0, "UpdateMetadata", [("orders", ID_1, 1)], controller=3, epoch=1)
    lab.control(10, "UpdateMetadata", [("orders", ID_1, 1)], controller=2, epoch=2)
    lab.control(at, "UpdateMetadata", [("orders", ID_1, 1)], controller=3, epoch=1, error=error, **late)


@disagrees_at(20)
def ctl001_fires(lab):
    two_epochs(lab, 11)


def ctl001_near_miss(lab):
    """Per-partition 11 is what every new controller's second order gets; an order on its way counts for nothing."""
    two_epochs(lab, 0, at=11)
    lab.control(12, "LeaderAndIsr", [("orders", ID_1, 1)], controller=2, epoch=2, errors=[(ID_1, 11)])


def two_lives(lab, at, server):
    """Controller 1 of epoch 1, then 2 of epoch 2, and both again later."""
    for begun in (0, at):
        lab.control(begun, "UpdateMetadata", [("orders", ID_1, 1)], controller=1, epoch=1, server=server)
        lab.control(begun + 10, "UpdateMetadata", [("orders", ID_1, 1)], controller=2, epoch=2, server=B1)
    lab.until = at + 90


def ctl001_near_miss__epochs_that_start_again(lab):
    """As in a ZooKeeper that lost its data: a broker that had accepted the newer epoch accepts the older one."""
    two_lives(lab, 100, B1)


def ctl001_near_miss__epochs_that_start_again_once(lab):
    """Nothing newer came afterwards, and what this broker had accepted of the newer epoch is not in the capture."""
    lab.control(0, "UpdateMetadata", [("orders", ID_1, 1)], controller=1, epoch=1, server=B2)
    lab.control(10, "UpdateMetadata", [("orders", ID_1, 1)], controller=2, epoch=2, server=B1)
    lab.control(100, "UpdateMetadata", [("orders", ID_1, 1)], controller=1, epoch=1, server=B2)


def ctl001_fires__a_broker_that_knows_no_newer_epoch(lab):
    """B2 is given orders of both controllers' epochs, and accepts them."""
    two_lives(lab, 50, B2)


def ctl001_fires__on_its_connection_of_before(lab):
    """The older controller sends the last request, on the connection on which it was accepted before the newer one."""
    talk = lab.control(0, "UpdateMetadata", [("orders", ID_1, 1)], controller=1, epoch=1)
    lab.control(10, "UpdateMetadata", [("orders", ID_1, 1)], controller=2, epoch=2)
    request = {"controllerId": 1, "controllerEpoch": 1, "topicStates": []}
    for at in (60, 90):
        talk.ask(at, "UpdateMetadata", 7, request, {})
    lab.until = 150


def ctl001_fires__with_another_request_on_its_connection(lab):
    """It sends StopReplica for the first time after the newer controller was accepted."""
    talk = lab.control(0, "UpdateMetadata", [("orders", ID_1, 1)], controller=1, epoch=1)
    lab.control(10, "UpdateMetadata", [("orders", ID_1, 1)], controller=2, epoch=2)
    for at in (60, 90):
        talk.ask(at, "StopReplica", 3, {"controllerId": 1, "controllerEpoch": 1}, {})
    lab.until = 150


def ctl001_cannot_know__another_request_on_a_new_connection(lab):
    """Epochs may have started again, as in a ZooKeeper that lost its data."""
    lab.control(0, "UpdateMetadata", [("orders", ID_1, 1)], controller=1, epoch=1)
    lab.control(10, "UpdateMetadata", [("orders", ID_1, 1)], controller=2, epoch=2)
    talk = lab.talk(B1, "1", "10.0.0.1")
    for at in (60, 90):
        talk.ask(at, "StopReplica", 3, {"controllerId": 1, "controllerEpoch": 1}, {})
    lab.until = 150


def accepts_heartbeats(lab, times, server, *, broker=2, error=0):
    """Of a broker that is not fenced, by a controller of KRaft."""
    talk = lab.talk(server, str(broker), f"10.0.0.{broker}")
    for at in times:
        asked = {"brokerId": broker, "brokerEpoch": 20, "currentMetadataOffset": 100 + at}
        talk.ask(at, "BrokerHeartbeat", 1, asked, {"errorCode": error, "isCaughtUp": True})
        lab.until = max(lab.until, at)


@disagrees_at(2)
def ctl001_fires__two_that_accept_heartbeats(lab):
    """Controller 1 is cut off from its quorum, and brokers 2 and 4 turn to different ones."""
    lab.metadata(0, server=B2)
    accepts_heartbeats(lab, range(0, 120, 2), B1)
    accepts_heartbeats(lab, range(2, 120, 2), B3, broker=4)


def ctl001_near_miss__an_election(lab):
    """The former controller refuses what still comes (NOT_CONTROLLER)."""
    lab.metadata(0, server=B2)
    accepts_heartbeats(lab, range(0, 62, 2), B1)
    accepts_heartbeats(lab, range(62, 120, 2), B1, broker=4, error=41)
    for broker in (2, 4):
        accepts_heartbeats(lab, range(62, 180, 2), B3, broker=broker)


def ctl001_near_miss__elections_in_a_row(lab):
    """Each node is the controller for a quarter of a minute."""
    lab.metadata(0, server=B2)
    for begin in range(0, 120, 30):
        accepts_heartbeats(lab, range(begin, begin + 15, 2), B1)
        accepts_heartbeats(lab, range(begin + 15, begin + 30, 2), B3)


def ctl001_cannot_know__two_clusters_without_ids(lab):
    """A capture of two clusters; both have a topic of one ID, as after a copy of all disks."""
    others = {"10.0.2.1:9092": 1, "10.0.2.2:9092": 2, "10.0.2.3:9092": 3}
    for brokers, controller in ((BROKERS, B3), (others, "10.0.2.1:9092")):
        for server in brokers:
            lab.metadata(0, [("orders", ID_1)], server=server, brokers=brokers, cluster_id=None)
        accepts_heartbeats(lab, range(0, 120, 2), controller)


def ctl001_cannot_know__the_word_of_one(lab):
    """It lists both, and the other one was asked for no list."""
    lab.metadata(0)
    accepts_heartbeats(lab, range(0, 120, 2), B1)
    accepts_heartbeats(lab, range(0, 120, 2), B3, broker=4)


def ctl001_cannot_know__an_address_of_no_node(lab):
    """It may be another address of the controller."""
    lab.metadata(0)
    accepts_heartbeats(lab, range(0, 120, 2), B1)
    accepts_heartbeats(lab, range(0, 120, 2), "10.0.0.77:9093", broker=4)


def ctl001_cannot_know(lab):
    """The hand-over from ZooKeeper to KRaft."""
    lab.control(
        10, "UpdateMetadata", [("orders", ID_1, 1)], controller=3000, epoch=2, version=8, isKRaftController=True
    )
    lab.control(20, "UpdateMetadata", [("orders", ID_1, 1)], controller=3, epoch=1, error=11)


def leaders(lab, topic_id, one, other):
    lab.control(0, "UpdateMetadata", [("orders", ID_1, one[1], {"leader": one[0]})])
    lab.control(5, "UpdateMetadata", [("orders", topic_id, other[1], {"leader": other[0]})])


@disagrees_at(5)
def ctl002_fires(lab):
    leaders(lab, ID_1, (1, 4), (2, 4))


def ctl002_near_miss(lab):
    leaders(lab, ID_1, (1, 4), (2, 5))


def given_to_clients(lab, replicas_of, leader=None):
    """Each server names itself as the leader of all, to its own clients, or both one."""
    for second in range(0, 60, 10):
        for broker, server in ((1, B1), (2, B2)):
            lab.metadata(
                second, [("orders", ID_1)], server=server, leader=leader or broker, replicas=replicas_of(broker)
            )


@disagrees_at(0)
def ctl002_fires__as_clients_see_it(lab):
    given_to_clients(lab, lambda _: (1, 2, 3))


@disagrees_at(0)
def ctl002_fires__clients_see_another_than_the_controller(lab):
    given_to_clients(lab, lambda _: (2,), leader=2)
    ordered(lab, 1)


@disagrees_at(5)
def ctl002_fires__of_one_storage_by_two_controllers(lab):
    given_to_clients(lab, lambda broker: (broker,))
    ordered(lab, 1)
    ordered(lab, 2)


def ordered(lab, leader):
    lab.control(5, "UpdateMetadata", [("orders", ID_1, 0, {"leader": leader, "replicas": [leader], "isr": [leader]})])


def ctl002_near_miss__a_controller_knows_one_of_them(lab):
    given_to_clients(lab, lambda broker: (broker,))
    ordered(lab, 1)


def ctl002_near_miss__servers_that_share_one_storage(lab):
    given_to_clients(lab, lambda broker: (broker,))


def ctl002_near_miss__the_only_replica_as_often_as_was_asked_for(lab):
    given_to_clients(lab, lambda broker: (broker, broker, broker))


def ctl002_cannot_know(lab):
    """Another topic id: epochs start again."""
    leaders(lab, ID_2, (1, 0), (2, 0))


def listed_leader(lab):
    for at in range(0, 60, 10):
        lab.metadata(at, [("orders", ID_1, 0, 4)])


def altered(lab, leader, *, epoch=4, server=B3, host="10.0.0.1"):
    """Brokers list leader 1 of epoch 4; the controller answers its AlterPartition with a leader, too."""
    listed_leader(lab)
    row = {"leaderId": leader, "leaderEpoch": epoch, "isr": [1, 2, 3]}
    lab.talk(server, "1", host).ask(30, "AlterPartition", 2, {}, {"topics": [{"topicId": ID_1, "partitions": [row]}]})


@disagrees_at(30)
def ctl002_fires__the_controller_answers_another(lab):
    altered(lab, 2)


def ctl002_near_miss__the_controller_answers_the_next(lab):
    altered(lab, 2, epoch=5)


def ctl002_near_miss__the_controller_answers_the_same(lab):
    altered(lab, 1)


def ctl002_cannot_know__an_answer_of_an_outsiders_server(lab):
    altered(lab, 2, server="10.0.0.66:9092", host="10.0.0.77")


def ctl002_near_miss__an_error_names_the_leader_of_a_recreated_topic(lab):
    """A fetch of an ID that ended: the broker looks the leader up by name (kraft4-recreate)."""
    listed_leader(lab)
    part = {"errorCode": 6, "currentLeader": {"leaderId": 2, "leaderEpoch": 4}}
    lab.talk(B2, "reader").ask(30, "Fetch", 16, {}, {"responses": [{"topicId": ID_1, "partitions": [part]}]})


def replica_answers(lab, api, errors, times, client_id="1"):
    talk = lab.talk(B3, client_id, "10.0.0.1")
    for at, error in zip(times, errors, strict=False):
        row = [{"topicId": ID_1, "partitions": [{"partitionIndex": 0, "errorCode": error}]}]
        body = {"topics": row} if api == "AlterPartition" else {"directories": [{"topics": row}]}
        talk.ask(at, api, 2 if api == "AlterPartition" else 0, {}, body)
        lab.until = max(lab.until, at)


@disagrees_at(0)
def ctl003_fires(lab):
    lab.metadata(0, [("orders", ID_1)])
    replica_answers(lab, "AlterPartition", [100] * 30, range(0, 90, 3))


def ctl003_near_miss(lab):
    replica_answers(lab, "AlterPartition", [100] * 5 + [0] * 20, range(0, 90, 3))


def ctl003_cannot_know(lab):
    """By name, in versions of before 3.2: which incarnation is meant is not said."""
    talk = lab.talk(B3, "1", "10.0.0.1")
    for at in range(0, 90, 3):
        row = {"topicName": "orders", "partitions": [{"errorCode": 3}]}
        talk.ask(at, "AlterPartition", 0, {}, {"topics": [row]})


@disagrees_at(0)
def ctl009_fires(lab):
    replica_answers(lab, "AssignReplicasToDirs", [100] * 30, range(0, 90, 3))


def ctl009_near_miss(lab):
    replica_answers(lab, "AssignReplicasToDirs", [100, 100, 0], range(0, 9, 3))


def ctl009_cannot_know(lab):
    replica_answers(lab, "AssignReplicasToDirs", [0] * 9, range(0, 27, 3))


def heartbeats_answered(lab, error, times):
    lab.metadata(0)
    talk = lab.talk(B3, "1", "10.0.0.1")
    for at in times:
        talk.ask(at, "BrokerHeartbeat", 1, {"brokerId": 1}, {"errorCode": error})
        lab.until = max(lab.until, at)


@disagrees_at(0)
def ctl004_fires(lab):
    heartbeats_answered(lab, 77, range(0, 90, 2))


def ctl004_near_miss(lab):
    heartbeats_answered(lab, 77, [0, 1])
    heartbeats_answered(lab, 0, range(3, 90, 2))


def ctl004_cannot_know(lab):
    heartbeats_answered(lab, 0, range(0, 90, 2))


def node_beats(lab, epoch, times, error=0, host="10.0.0.14", broker=4):
    """Heartbeats of one process of a node."""
    lab.metadata(0)
    talk = lab.talk(client_id=f"{broker}", host=host)
    for at in times:
        talk.ask(at, "BrokerHeartbeat", 1, {"brokerId": broker, "brokerEpoch": epoch}, {"errorCode": error})
        lab.until = max(lab.until, at)
    return talk


def registers(lab, incarnation, times, error=0, epoch=-1, host="10.0.0.14", broker=4):
    talk = lab.talk(client_id=f"{broker}", host=host)
    listener = {"name": "PLAINTEXT", "host": host, "port": 9092}
    asked = {"brokerId": broker, "incarnationId": incarnation, "clusterId": CLUSTER, "listeners": [listener]}
    for at in times:
        talk.ask(at, "BrokerRegistration", 1, asked, {"errorCode": error, "brokerEpoch": epoch})
        lab.until = max(lab.until, at)


@disagrees_at(30)
def ctl012_fires(lab):
    """Refused while the first one lives, registered while that one is paused; then both act."""
    registers(lab, ID_1, [0], epoch=20)
    node_beats(lab, 20, range(1, 20, 2))
    registers(lab, ID_2, range(15, 19), error=101, host="10.0.0.44")
    registers(lab, ID_2, [30], epoch=90, host="10.0.0.44")
    node_beats(lab, 90, range(31, 90, 2), host="10.0.0.44")
    node_beats(lab, 20, range(45, 90, 2), error=77)


def ctl012_fires__at_one_address(lab):
    """Behind one address and with one advertised address: connections tell them apart."""
    node_beats(lab, 20, range(1, 60, 2), error=77)
    node_beats(lab, 90, range(11, 60, 2))


def ctl012_fires__refused_all_the_time(lab):
    """It had the node ID before."""
    registers(lab, ID_2, [-60], epoch=10, host="10.0.0.44")
    node_beats(lab, 20, range(1, 60, 2))
    registers(lab, ID_2, range(10, 60, 2), error=101, host="10.0.0.44")


def ctl012_fires__started_again_and_again(lab):
    """What is refused gives up after some seconds, and a supervisor starts it again. It had the node ID before."""
    registers(lab, ID_2, [-60], epoch=10, host="10.0.0.44")
    node_beats(lab, 20, range(1, 60, 2))
    for since, incarnation in ((10, ID_1), (24, ID_2), (38, ID_3)):
        registers(lab, incarnation, range(since, since + 6), error=101, host="10.0.0.44")


def ctl012_near_miss__only_refused(lab):
    """Any host can send what is refused: it says nothing about the node."""
    node_beats(lab, 20, range(1, 60, 2))
    registers(lab, ID_2, range(10, 60, 2), error=101, host="10.0.0.44")
    node_beats(lab, 5, range(1, 60, 2), error=31, host="10.0.0.45")
    node_beats(lab, 6, range(1, 60, 2), error=77, host="10.0.0.46")


def clu002_fires__only_refused(lab):
    ctl012_near_miss__only_refused(lab)


def ctl012_near_miss__restarts_in_a_row(lab):
    """Each is killed, refused until the session before has ended, and says something before it has an epoch."""
    for since, epoch, incarnation in ((0, 20, ID_1), (40, 90, ID_2), (80, 150, ID_3)):
        node_beats(lab, -1, [since, since + 1], error=77)
        registers(lab, incarnation, range(since, since + 8), error=101)
        registers(lab, incarnation, [since + 9], epoch=epoch)
        node_beats(lab, epoch, range(since + 10, since + 36, 2))


def assigns(lab, epoch, times, directory, host="10.0.0.1", error=0):
    talk = lab.talk(B3, "1", host)
    where = [{"id": directory, "topics": [{"topicId": ID_1, "partitions": [{"partitionIndex": 0}]}]}]
    for at in times:
        asked = {"brokerId": 1, "brokerEpoch": epoch, "directories": where}
        talk.ask(at, "AssignReplicasToDirs", 0, asked, {"errorCode": error, "directories": where})
        lab.until = max(lab.until, at)


def ctl012_fires__by_directories_that_go_back_and_forth(lab):
    """Of their heartbeats nothing was captured."""
    assigns(lab, 20, range(1, 60, 6), ID_2)
    assigns(lab, 90, range(4, 60, 6), ID_3, host="10.0.0.44")


def ctl012_near_miss__a_broker_with_two_directories(lab):
    assigns(lab, 20, range(1, 60, 6), ID_2)
    assigns(lab, 20, range(4, 60, 6), ID_3)


def offline(lab, directories, error=0):
    talk = lab.talk(B3, "1", "10.0.0.1")
    for at in range(1, 20, 2):
        talk.ask(at, "BrokerHeartbeat", 1, {"brokerId": 1, "offlineLogDirs": directories}, {"errorCode": error})
    lab.until = 20


@disagrees_at(1)
def ctl014_fires(lab):
    offline(lab, [ID_1])


def ctl014_near_miss(lab):
    offline(lab, [])


def ctl014_cannot_know(lab):
    """The controller accepts none of its heartbeats: whose they are is not known."""
    offline(lab, [ID_1], error=77)


def ctl012_near_miss(lab):
    """A process is killed and started again at once: refused until the session of the first has ended."""
    registers(lab, ID_1, [0], epoch=20)
    node_beats(lab, 20, range(1, 40, 2))
    registers(lab, ID_2, range(41, 49), error=101)
    registers(lab, ID_2, [50], epoch=90)
    node_beats(lab, 90, range(51, 120, 2))


def ctl012_near_miss__a_pause(lab):
    """One process, silent for half a minute; it goes on with the epoch that it has."""
    node_beats(lab, 20, [*range(1, 20, 2), *range(50, 90, 2)])


def ctl012_near_miss__the_log_was_formatted_again(lab):
    """Broker epochs are offsets of the metadata log: they begin again with it."""
    for epoch, since in ((5, 1), (30, 20), (5, 50)):
        node_beats(lab, epoch, range(since, since + 20, 2))


def ctl012_near_miss__crossed_each_other(lab):
    """Two captures whose clocks differ by some seconds."""
    node_beats(lab, 20, range(1, 40, 2))
    node_beats(lab, 90, range(36, 90, 2))


def ctl012_cannot_know(lab):
    """Their answers were not seen: whether the other is heard at all is not known."""
    for epoch, since in ((20, 1), (90, 21)):
        talk = node_beats(lab, epoch, range(since, 90, 2))
        talk.messages = talk.messages[::2]
        talk.exchanges = [(number, -1, 3) for number in range(len(talk.messages))]


def epochs(lab, *state_numbers, source="UpdateMetadata", topic_id=ID_1):
    for at, epoch in state_numbers:
        lab.control(at, source, [("orders", topic_id, epoch)])


@disagrees_at(60)
def ctl005_fires(lab):
    epochs(lab, (0, 7), (60, 3))


def ctl005_near_miss(lab):
    """Orders that crossed each other."""
    epochs(lab, (0, 7), (10, 6), (60, 8))


def ctl005_cannot_know(lab):
    """Clients' Metadata may lag."""
    lab.metadata(0, [("orders", ID_1, 0, 7)])
    lab.metadata(60, [("orders", ID_1, 0, 3)])


def state(lab, at=0, until=60, **fields):
    lab.control(at, "LeaderAndIsr", [("orders", ID_1, 3, fields)])
    lab.until = max(lab.until, until)


@disagrees_at(0)
def ctl006_fires(lab):
    state(lab, leader=9)


def ctl006_near_miss(lab):
    """A reassignment passes through states that look odd."""
    state(lab, isr=[1, 4])
    state(lab, 5, leader=1, isr=[1, 4], replicas=[1, 4], leaderEpoch=4)


def ctl006_cannot_know(lab):
    """No leader at all."""
    state(lab, leader=-1, isr=[3])


def ctl008_calls(lab, error, times):
    talk = lab.talk(client_id="admin")
    for at in times:
        answer = {"topics": [{"name": "t", "topicId": NO_ID, "errorCode": error, "configs": []}]}
        talk.ask(at, "CreateTopics", 7, {"topics": [{"name": "t"}]}, answer)
        lab.until = max(lab.until, at)


@disagrees_at(0)
def ctl008_fires(lab):
    ctl008_calls(lab, 41, range(0, 90, 2))


def ctl008_near_miss(lab):
    ctl008_calls(lab, 41, [0, 1, 2])


def ctl008_cannot_know(lab):
    ctl008_calls(lab, 36, range(0, 90, 2))


def led(lab, at, leader=2, server=B1):
    """Who leads partition 0 of `solo`, as Metadata says."""
    state = {"leaderId": leader, "leaderEpoch": 5, "replicaNodes": [1, 2, 3], "isrNodes": [1, 2, 3]}
    answer = {"clusterId": None, "topics": [{"name": "solo", "topicId": ID_1, "partitions": [state]}]}
    lab.talk(server).ask(at, "Metadata", 12, {"topics": None}, answer)


def written(talk, at, error, *, by_name=False, name="solo", timeout_ms=30_000):
    """A write to partition 0 of a topic, and its answer."""
    topic = {"name": name} if by_name else {"topicId": ID_1}
    rows = [{**topic, "partitionResponses": [{"index": 0, "errorCode": error}]}]
    talk.ask(at, "Produce", 9 if by_name else 13, {"acks": 1, "timeoutMs": timeout_ms}, {"responses": rows})


def denied(lab, *, leader=2, times=range(0, 90, 5), later_epoch=None):
    for at in range(0, 100, 10):
        lab.metadata(at)
        led(lab, at, leader)
    if later_epoch:
        lab.metadata(20, [("solo", ID_1, 0, later_epoch)])
    talk = lab.talk(B2, "producer")
    for at in times:
        written(talk, at, 6)


@disagrees_at(0)
def ctl010_fires(lab):
    denied(lab)


def ctl010_near_miss(lab):
    """A few seconds after every election."""
    denied(lab, times=range(0, 20, 2))


def ctl010_cannot_know(lab):
    """A later epoch is known: the broker is right."""
    denied(lab, later_epoch=6)


def denied_by_name(lab, answers, *, repaired=None):
    """Broker 2 leads `solo`, as Metadata says until the end, and answers a producer that writes by name."""
    for at in range(0, 140, 10):
        lab.metadata(at)
        led(lab, at)
    talk = lab.talk(B2, "producer")
    for at in range(10, 130, 2):
        written(talk, at, answers(at) if repaired is None or at < repaired else 0, by_name=True)


def ctl010_fires__of_a_topic_that_is_written_by_name(lab):
    denied_by_name(lab, lambda _at: 6)


def ctl010_fires__before_it_was_repaired(lab):
    """The leader accepts writes in the same epoch later: what was refused for a minute was refused."""
    denied_by_name(lab, lambda _at: 6, repaired=70)


def ctl010_fires__by_id_before_it_was_repaired(lab):
    denied(lab, times=range(0, 60, 2))
    talk = lab.talk(B2, "producer")
    for at in range(60, 100, 2):
        written(talk, at, 0)


def ctl010_near_miss__it_also_accepts_writes(lab):
    denied_by_name(lab, lambda at: 6 if at % 4 else 0)


def swapped(lab):
    """From 40 to 120 s brokers 1 and 2 give out each other's address; producer writes to the address it was given."""
    for at in range(0, 170, 5):
        wrong = 40 <= at < 120
        lab.metadata(at, brokers={B1: 2, B2: 1, B3: 3} if wrong else BROKERS, server=B3)
        led(lab, at, server=B3)
        written(lab.talk(B1 if wrong else B2, "producer"), at, 6 if wrong else 0)


def ctl010_fires__at_an_address_that_leads_to_another_broker(lab):
    swapped(lab)


def fet007_near_miss__brokers_had_swapped_their_addresses(lab):
    """The client asked the broker that it was given."""
    swapped(lab)


def followed(lab, asked, *, isr=(1, 3), session_epoch=0):
    """Broker 2 follows broker 1: one full fetch at 10 s, then increments; which topics, and who is in the ISR."""
    for at in range(0, 160, 10):
        rows = [
            {
                "name": name,
                "topicId": topic_id,
                "partitions": [{"leaderId": 1, "leaderEpoch": 5, "replicaNodes": [1, 2, 3], "isrNodes": list(isr)}],
            }
            for name, topic_id in (("letters", ID_1), ("calm", ID_2))
        ]
        lab.metadata(at)
        lab.talk(B1).ask(at, "Metadata", 12, {"topics": None}, {"clusterId": None, "topics": rows})
    talk = lab.talk(B1, "broker-2-fetcher-0", "10.0.0.2")
    topics = [{"topicId": topic_id, "partitions": [{}]} for topic_id in asked]
    for number, at in enumerate(range(10, 150, 5)):
        epoch = number + session_epoch
        body = {"replicaState": {"replicaId": 2}, "sessionId": 7 if epoch else 0, "sessionEpoch": epoch}
        talk.ask(at, "Fetch", 15, {**body, "topics": topics if not number else [topics[-1]]}, {"sessionId": 7})


@disagrees_later("what stays away: from when it was due")
def ctl011_fires(lab):
    followed(lab, [ID_2])


def recreated_while_away(lab, asked=(ID_2,), *, offline=True, recreated=True):
    """Letters is recreated while broker 2 is away. It comes back, and never follows the new one (KAFKA-14616)."""

    def answers(at, topic_id, epoch, away):
        state = {"leaderId": 1, "leaderEpoch": epoch, "replicaNodes": [1, 2, 3], "isrNodes": [1, 3]}
        row = {"name": "letters", "topicId": topic_id, "partitions": [{**state, "offlineReplicas": [2] * away}]}
        lab.talk(B1).ask(at, "Metadata", 12, {"topics": None}, {"clusterId": None, "topics": [row]})

    for at in range(-60, -40, 5):
        lab.metadata(at)
        answers(at, ID_3, 9 if recreated else 4, away=False)
    if recreated:
        lab.deleted(-22, "letters", ID_3)
        lab.created(-20, "letters", ID_1)
    for at in range(-19, 0, 3):
        answers(at, ID_1, 5, away=offline)
    followed(lab, asked)


def recreated_at(lab):
    (found,) = lab.findings("CTL011")
    return [word["value"] for word in found["words"] if word["name"] == "recreated"]


def ctl011_fires__recreated_while_the_broker_was_away(lab):
    recreated_while_away(lab)
    assert recreated_at(lab)


def ctl011_fires__recreated_and_nobody_says_that_the_broker_was_away(lab):
    recreated_while_away(lab, offline=False)
    assert not recreated_at(lab)


def ctl011_fires__the_topic_lost_its_id_while_the_broker_was_away(lab):
    """Its leader epochs go on: nothing was recreated (KAFKA-12835)."""
    recreated_while_away(lab, recreated=False)
    assert not recreated_at(lab)


def ctl011_fires__the_broker_was_away_and_nothing_was_recreated(lab):
    lab.metadata(-20)
    state = {"leaderId": 1, "leaderEpoch": 5, "replicaNodes": [1, 2, 3], "isrNodes": [1, 3], "offlineReplicas": [2]}
    row = {"name": "letters", "topicId": ID_1, "partitions": [state]}
    lab.talk(B1).ask(-19, "Metadata", 12, {"topics": None}, {"clusterId": None, "topics": [row]})
    followed(lab, [ID_2])
    assert not recreated_at(lab)


def ctl011_near_miss(lab):
    followed(lab, [ID_1, ID_2])


def ctl011_near_miss__recreated_while_the_broker_was_away_and_it_follows(lab):
    """As brokers from 3.7 on do."""
    recreated_while_away(lab, asked=[ID_1, ID_2])


def ctl011_near_miss__deleted_while_the_broker_was_paused(lab):
    """It goes on with the partitions that there are."""
    followed(lab, [ID_2])
    lab.deleted(120, "letters", ID_1)


def ctl011_cannot_know(lab):
    """The session's beginning was not seen: it may imply the partition."""
    followed(lab, [ID_2], session_epoch=40)


def stops(lab, name="orders", topic_id=ID_1, *, delete=True, epoch=5, version=3, back=60, **state):
    """The controller orders, stops broker 3's replica, and orders again in the same epoch."""
    lab.metadata(0)
    lab.control(0, "UpdateMetadata", [(name, topic_id, 5)])
    part = {"partitionIndex": 0, "leaderEpoch": epoch, "deletePartition": delete}
    asked = {"controllerId": 3, "controllerEpoch": 1}
    if version < 3:
        asked |= {"topics": [{"name": name, "partitionIndexes": [0]}], "deletePartitions": delete}
    else:
        asked |= {"topicStates": [{"topicName": name, "partitionStates": [part]}]}
    lab.talk(B3, "3", "10.0.0.3").ask(10, "StopReplica", version, asked, {})
    lab.control(back, "UpdateMetadata", [(name, topic_id, 5, state)])


@disagrees_later("what goes on after a change: from the change, since the state of a partition has two times, not all")
def ctl007_fires(lab):
    stops(lab)


def ctl007_near_miss(lab):
    """Moved away; stopped without deletion, twice; a topic that is deleted; an order that crossed it."""
    stops(lab, replicas=[1, 2, 4], isr=[1, 2, 4])
    stops(lab, "calm", ID_2, delete=False)
    stops(lab, "calm", ID_2, delete=False, back=62)
    stops(lab, "calm", ID_2, epoch=-2)
    stops(lab, "late", ID_3, back=30)


def ctl007_cannot_know(lab):
    """Before version 3 the order has no epoch."""
    stops(lab, version=2)


FULL = {"type": 2, "isKRaftController": True, "version": 7, "controller": 3000, "epoch": 9}


def full_orders(lab, topics, *, at=60, known=(1, 2, 3)):
    """Broker 2 is told of two partitions, and later of everything it has."""
    lab.metadata(0)
    for name, topic_id in (("orders", ID_1), ("calm", ID_2)):
        lab.control(0, "LeaderAndIsr", [(name, topic_id, 5, {"replicas": list(known)})], server=B2, version=7)
    lab.control(at, "LeaderAndIsr", topics, server=B2, **FULL)
    lab.until = max(lab.until, 120)


@disagrees_at(60)
def tid015_fires(lab):
    full_orders(lab, [("calm", ID_2, 5)])


def tid015_fires__other_id(lab):
    full_orders(lab, [("orders", ID_3, 5), ("calm", ID_2, 5)])


def tid015_near_miss(lab):
    """Everything is named; and a topic that was deleted is not."""
    full_orders(lab, [("orders", ID_1, 5), ("calm", ID_2, 5)])
    lab.control(5, "LeaderAndIsr", [("gone", ID_3, 1)], server=B2, version=7)
    lab.deleted(20, "gone", ID_3)


def tid015_cannot_know(lab):
    """The broker was never told to have the partition; or it was, and the order was not seen whole."""
    full_orders(lab, [("calm", ID_2, 5)], known=(1, 3))


def log(lab, at, *records, high_watermark, offset=0, server=B3):
    """The metadata log as a raft fetch shows it."""
    log_batch(lab, at, batch(*records, base_offset=offset, epoch=4), high_watermark, server)


def log_batch(lab, at, data, high_watermark, server=B3):
    row = {
        "partitionIndex": 0, "highWatermark": high_watermark, "abortedTransactions": None,
        "records": base64.b64encode(data).decode(),
    }  # fmt: skip
    answer = {"responses": [{"topicId": "AAAAAAAAAAAAAAAAAAAAAQ", "partitions": [row]}]}
    lab.talk(server, "raft-client-1").ask(at, "Fetch", 17, {"topics": []}, answer)
    lab.until = max(lab.until, at)


def id_bytes(topic_id):
    return base64.urlsafe_b64decode(topic_id + "==")


def log001_case(lab, at, high_watermark=50):
    lab.metadata(0, [("orders", ID_1)], server=B2)
    log(lab, 10, topic("orders", id_bytes(ID_2)), high_watermark=high_watermark)
    lab.metadata(10, [], server=B3)
    lab.metadata(at, [("orders", ID_1)], server=B2)


@disagrees_later("what goes on after a change: from the change")
def log001_fires(lab):
    log001_case(lab, 60)
    lab.metadata(100, [("orders", ID_1)], server=B2)


def log001_near_miss__a_pause_that_is_over(lab):
    """A paused broker answers what waited by what it knew before, for a moment, and then catches up."""
    for at in (60, 60.1, 60.2):
        log001_case(lab, at)
    lab.metadata(90, [("orders", ID_2)], server=B2)


def log001_near_miss(lab):
    log001_case(lab, 30)


def log001_cannot_know(lab):
    """The record was never seen to be committed."""
    log001_case(lab, 60, high_watermark=0)


def beats(lab, broker, offsets, *, fenced=False):
    talk = lab.talk(B3, str(broker), f"10.0.0.{broker}")
    lab.metadata(0, server=B3)
    for number, offset in enumerate(offsets):
        asked = {"brokerId": broker, "currentMetadataOffset": offset}
        talk.ask(2 * number, "BrokerHeartbeat", 1, asked, {"isFenced": fenced})
        lab.until = max(lab.until, 2 * number)


@disagrees_later("what stays away: from when it was last seen")
def log003_fires(lab):
    beats(lab, 1, [100] * 60)
    beats(lab, 2, range(100, 160))


def log003_near_miss(lab):
    """Slow, but moving."""
    beats(lab, 1, [100 + n // 8 for n in range(60)])
    beats(lab, 2, range(100, 160))


def log003_cannot_know(lab):
    """The log stands still for everyone; a fenced broker is catching up."""
    beats(lab, 1, [100] * 60)
    beats(lab, 2, [100] * 60)
    beats(lab, 4, [50] * 60, fenced=True)


def ctl004_near_miss__a_client_is_not_a_broker(lab):
    """Granted Metadata, refused as a broker: its word about a broker's epoch proves nothing."""
    for client_id in ("billing", "1"):
        talk = lab.talk(B3, client_id)
        lab.metadata(0, talk=talk)
        for at in range(1, 90, 2):
            talk.ask(at, "BrokerHeartbeat", 1, {"brokerId": 1}, {"errorCode": 77})
            lab.until = max(lab.until, at)


def impostor(lab):
    """A client that is granted Metadata and fetches with broker 2's replica ID: every partition is refused."""
    talk = lab.talk(B1, "billing")
    lab.metadata(11, talk=talk)
    return talk


def ctl011_fires__beside_a_refused_session_of_another_host(lab):
    followed(lab, [ID_2])
    body = {"replicaState": {"replicaId": 2}, "sessionId": 7, "sessionEpoch": 5}
    impostor(lab).ask(12, "Fetch", 15, body, {"errorCode": 70})


def ctl011_fires__beside_refused_fetches_of_another_host(lab):
    followed(lab, [ID_2])
    talk = impostor(lab)
    for at in range(12, 150, 5):
        body = {"replicaState": {"replicaId": 2}, "sessionEpoch": -1, "topics": [{"topicId": ID_1, "partitions": [{}]}]}
        row = {"topicId": ID_1, "partitions": [{"errorCode": 29}]}
        talk.ask(at, "Fetch", 15, body, {"responses": [row]})


def ctl015_writes(lab, times, *, error=7, by_name=False, timeout_ms=30_000, good=(), **facts):
    lab.metadata(0, [("solo", ID_1)])
    talk = lab.talk(client_id="writer", **facts)
    for at in sorted({*times, *good}):
        written(talk, at, 0 if at in good else error, by_name=by_name, timeout_ms=timeout_ms)
    lab.until = max(times) + 10


@disagrees_at(2)
def ctl015_fires(lab):
    ctl015_writes(lab, range(2, 60, 3))


def ctl015_fires__by_name(lab):
    ctl015_writes(lab, range(2, 60, 3), by_name=True)


def ctl015_fires__the_client_allows_1_ms(lab):
    ctl015_writes(lab, range(2, 60, 3), timeout_ms=1)


def ctl015_fires__the_client_allows_nothing(lab):
    ctl015_writes(lab, range(2, 60, 3), timeout_ms=0, by_name=True)


def ctl015_fires__some_writes_in_time(lab):
    """Of a client that allows 1 ms: replicas that do not follow would let none succeed."""
    ctl015_writes(lab, range(2, 80, 3), timeout_ms=1, good=range(3, 80, 3))


def ctl015_fires__seldom_and_never_in_time(lab):
    ctl015_writes(lab, range(2, 90, 15), timeout_ms=1)


def ctl015_fires__another_server_is_allowed_more(lab):
    ctl015_fires__the_client_allows_1_ms(lab)
    written(lab.talk(B2, "writer"), 5, 0, timeout_ms=30_000)


def ctl015_near_miss__some_writes_in_time(lab):
    ctl015_writes(lab, range(2, 80, 3), good=range(3, 80, 3))


def ctl015_near_miss__the_client_allows_1_ms_and_retries(lab):
    """A few of many: routine."""
    ctl015_writes(lab, range(2, 80, 30), timeout_ms=1, good=range(3, 80))


def ctl015_near_miss(lab):
    """A broker failed, and the controller took it out of the ISR."""
    ctl015_writes(lab, range(2, 25, 2))


def ctl015_near_miss__another_error(lab):
    ctl015_writes(lab, range(2, 60, 3), error=19)


def ctl015_cannot_know(lab):
    """Two brokers failed, one after the other; what was written between is not in the capture."""
    unseen = {"gaps": (lacks(ns(30), 1, 900),), "unseen_response_bytes": 900}
    ctl015_writes(lab, [*range(2, 22, 2), *range(40, 60, 2)], **unseen)


def tid019_asks(lab, times, *, used=True, by_name=False, client_id="writer"):
    """A client that wrote to orders is answered by two brokers that there is no such topic."""
    lab.metadata(0, [("orders", ID_1)], version=9 if by_name else 12)
    talks = [lab.talk(server, client_id) for server in (B1, B2)]
    if used:
        written(talks[0], 1, 0, by_name=by_name, name="orders")
    for number, at in enumerate(times):
        lab.metadata(at, [("orders", None, 3)], talk=talks[number % 2])


def unasked(talk, at, *, by_name, name="orders"):
    """A write with acks=0."""
    topic = {"name": name} if by_name else {"topicId": ID_1}
    rows = [{**topic, "partitionData": [{"index": 0}]}]
    talk.ask(at, "Produce", 9 if by_name else 13, {"acks": 0, "topicData": rows}, outcome=NO_RESPONSE_DUE)


@disagrees_at(2)
def tid019_fires(lab):
    tid019_asks(lab, range(2, 60, 3))


def tid019_fires__by_name(lab):
    tid019_asks(lab, range(2, 60, 3), by_name=True)


def tid019_fires__wrote_with_acks_0(lab):
    unasked(lab.talk(B1, "writer"), 1, by_name=True)
    tid019_asks(lab, range(2, 60, 3), used=False)
    (harm,) = lab.judge()["harms"].values()
    assert (harm["client_id"], harm["level"]) == ("writer", "hurt")


def tid019_fires__wrote_with_acks_0_by_id(lab):
    unasked(lab.talk(B1, "writer"), 1, by_name=False)
    tid019_asks(lab, range(2, 60, 3), used=False)


def tid019_fires__an_admin_deleted_it(lab):
    """Twice: what the first one deleted was created again."""
    for at, admin in ((-40, "first-admin"), (1.5, "admin")):
        talk = lab.talk(B1, admin)
        talk.ask(at, "DeleteTopics", 3, {"topicNames": ["orders"]}, {"responses": [{"name": "orders"}]})
    tid019_asks(lab, range(2, 60, 3))
    (found,) = lab.findings("TID019")
    assert {"name": "deleted_by_client_id", "value": "admin"} in found["words"]


def tid019_fires__one_of_two_admins_deleted_it(lab):
    for admin in ("one", "other"):
        talk = lab.talk(B1, admin)
        talk.ask(1.5, "DeleteTopics", 3, {"topicNames": ["orders"]}, {"responses": [{"name": "orders"}]})
    tid019_asks(lab, range(2, 60, 3))
    (found,) = lab.findings("TID019")
    assert all(not word["name"].startswith("deleted_by") for word in found["words"])


def tid019_fires__and_is_created_again(lab):
    for client_id in ("writer", "other"):
        tid019_asks(lab, range(2, 60, 3), client_id=client_id)
    lab.metadata(62, [("orders", ID_2)])


def tid019_fires__before_it_was_created(lab):
    """Nothing was deleted: the producer began too early."""
    talk = lab.talk(B1, "writer")
    for at in range(2, 60, 3):
        lab.metadata(at, [("orders", None, 3)], talk=talk)
    lab.metadata(62, [("orders", ID_1)], talk=talk)
    written(talk, 63, 0, name="orders")
    (found,) = lab.findings("TID019")
    assert {"name": "not_yet", "value": "yes"} in found["words"]


def tid019_near_miss(lab):
    """The topic is created again before long."""
    tid019_asks(lab, range(2, 38, 2))


def tid019_near_miss__twice(lab):
    tid019_asks(lab, range(2, 38, 2))
    lab.metadata(40, [("orders", ID_2)])
    tid019_asks(lab, range(48, 86, 2))


def tid019_near_miss__was_never_used(lab):
    """A consumer waits for a topic that others will create."""
    tid019_asks(lab, range(2, 60, 3), used=False)


def tid019_near_miss__wrote_another_topic_with_acks_0(lab):
    unasked(lab.talk(B1, "writer"), 1, by_name=True, name="solo")
    tid019_asks(lab, range(2, 60, 3), used=False)


def tid019_near_miss__another_client_wrote_it_with_acks_0(lab):
    unasked(lab.talk(B1, "other"), 1, by_name=True)
    tid019_asks(lab, range(2, 60, 3), used=False)


def tid019_near_miss__writes_on_with_acks_0(lab):
    """One broker does not know it; the others take the writes."""
    tid019_asks(lab, range(2, 60, 3), used=False)
    for at in range(3, 60, 4):
        unasked(lab.talk(B3, "writer"), at, by_name=True)


def tid019_near_miss__one_broker_does_not_know_it(lab):
    tid019_asks(lab, range(2, 60, 3))
    talk = lab.talk(B3, "writer")
    for at in range(3, 60, 4):
        written(talk, at, 0, name="orders")


def tid019_cannot_know(lab):
    """Whether the client used the topic was not captured: a broker's answers about it were."""
    tid019_asks(lab, range(2, 60, 3), used=False)
    lab.fetches([1], ID_1, client_id="another")


@disagrees_at(2)
def ctl017_fires(lab):
    ctl015_writes(lab, range(2, 60, 3), error=19)


def ctl017_fires__by_name(lab):
    ctl015_writes(lab, range(2, 60, 3), error=19, by_name=True)


def ctl017_near_miss(lab):
    """A broker restarts."""
    ctl015_writes(lab, range(2, 25, 2), error=19)


def ctl017_near_miss__time_out(lab):
    ctl015_writes(lab, range(2, 60, 3))


def ctl017_cannot_know(lab):
    """Two brokers restarted, one after the other; what was written between is not in the capture."""
    unseen = {"gaps": (lacks(ns(30), 1, 900),), "unseen_response_bytes": 900}
    ctl015_writes(lab, [*range(2, 22, 2), *range(40, 60, 2)], error=19, **unseen)


def metadata_of(talk, at, *leaders, version=12, epoch=4, replicas=(2,), asked=({"name": "orders"},)):
    """A Metadata response about orders with the leaders of its partitions from 0 on; -1: none."""
    rows = [
        {"partitionIndex": number, "leaderId": leader, "errorCode": 5 if leader < 0 else 0, "leaderEpoch": epoch}
        | {"replicaNodes": [*replicas], "isrNodes": [*replicas]}
        for number, leader in enumerate(leaders)
    ]
    topic = {"errorCode": 0, "name": "orders", "partitions": rows}
    topic |= {"topicId": ID_1} if version >= 10 else {}
    nodes = [{"nodeId": number, "host": f"10.0.0.{number}", "port": 9092} for number in (1, 2)]
    answer = {"brokers": nodes, "clusterId": CLUSTER, "topics": [topic]}
    talk.ask(at, "Metadata", version, {"topics": asked and [*asked]}, answer)


def ctl016_asks(lab, times, *, client_id="writer", writes=True, by_name=False, leaders=(-1,), **how):
    """A client that wrote to orders asks one broker after the other for its leaders."""
    talks = [lab.talk(server, client_id) for server in (B1, B2)]
    if writes:
        written(talks[0], 1, 0, by_name=by_name, name="orders")
    for number, at in enumerate(times):
        metadata_of(talks[number % 2], at, *leaders, **how)
        lab.until = max(lab.until, at)


@disagrees_at(2)
def ctl016_fires(lab):
    ctl016_asks(lab, range(2, 60, 3))


def ctl016_fires__by_name(lab):
    ctl016_asks(lab, range(2, 60, 3), by_name=True, version=9)


def ctl016_fires__of_old_and_new_clients(lab):
    """One finding: old clients ask by name and learn no ID."""
    ctl016_asks(lab, range(2, 60, 3))
    ctl016_asks(lab, range(2, 60, 3), by_name=True, version=5, client_id="old")


def ctl016_fires__before_a_short_restart(lab):
    """Of a client that learns no leader epochs: it wrote between the two times."""
    ctl016_asks(lab, range(2, 46, 2), by_name=True, version=5)
    written(lab.talk(client_id="writer"), 50, 0, by_name=True, name="orders")
    ctl016_asks(lab, range(62, 70, 2), writes=False, version=5)


def ctl016_fires__seen_at_another_broker(lab):
    """The leader was not captured, so no write or read of the topic was: the client is in a group, and asks all the
    time.
    """
    ctl016_asks(lab, range(2, 60), writes=False, client_id="reader")
    lab.talk(client_id="reader").ask(1, "JoinGroup", 9, {"groupId": "g"}, {"errorCode": 0})


def ctl016_near_miss__a_reader_that_looks_at_other_topics(lab):
    ctl016_asks(lab, range(2, 120, 10), writes=False, client_id="reader")
    lab.talk(client_id="reader").ask(1, "JoinGroup", 9, {"groupId": "g"}, {"errorCode": 0})


def ctl016_near_miss__a_writer_that_asks_for_all_topics(lab):
    """As kafka-go does every few seconds; it writes another topic."""
    ctl016_asks(lab, range(2, 60), writes=False, client_id="writer", asked=None)
    written(lab.talk(client_id="writer"), 1, 0, by_name=True, name="songs")


def ctl016_fires__and_ends(lab):
    for client_id in ("writer", "other"):
        ctl016_asks(lab, range(2, 60, 3), leaders=(-1, 1, -1), replicas=(2, 3), client_id=client_id)
    ctl016_asks(lab, [62], leaders=(2, 1, 2), epoch=5)


def ctl016_fires__while_offsets_are_committed(lab):
    """As a consumer's that commits by topic name: its coordinator is another broker."""
    ctl016_asks(lab, range(2, 60, 3))
    talk = lab.talk(B2, "writer")
    for at in range(3, 60, 5):
        topics = [{"name": "orders", "partitions": [{"partitionIndex": 0}]}]
        talk.ask(at, "OffsetCommit", 9, {"groupId": "g", "topics": topics}, {"topics": topics})


def ctl016_near_miss(lab):
    """A broker with the only replica restarts."""
    ctl016_asks(lab, range(2, 40, 2))


def ctl016_near_miss__two_restarts(lab):
    ctl016_asks(lab, range(2, 38, 2))
    ctl016_asks(lab, [40], leaders=(2,), epoch=5)
    ctl016_asks(lab, range(52, 88, 2), epoch=6)


def ctl016_near_miss__a_monitor(lab):
    ctl016_asks(lab, [], client_id="writer")
    ctl016_asks(lab, range(2, 60, 3), client_id="monitor", writes=False)


def ctl016_near_miss__has_a_leader(lab):
    ctl016_asks(lab, range(2, 60, 3), leaders=(2,))


def ctl016_cannot_know(lab):
    """Whether the client ever wrote or read is not in the capture."""
    ctl016_asks(lab, range(2, 60, 3), writes=False)
