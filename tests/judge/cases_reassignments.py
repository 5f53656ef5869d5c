"""Cases of reassignments, requested elections and accepted assignments: CTL022, CTL023, ADM003, in bytes."""

from tests.judge.lab import B1, B2, ID_1, disagrees_at
from wirecheck.decode.connection.exchanges import RESPONSE_UNSEEN


def listed(lab, times, adding=(4,), client_id="operator"):
    """ListPartitionReassignments, as tools ask for it while they wait."""
    talk = lab.talk(client_id=client_id)
    for at in times:
        moving = {
            "partitionIndex": 0,
            "replicas": [1, 2, 3, *adding],
            "addingReplicas": [*adding],
            "removingReplicas": [],
        }
        rows = [{"name": "orders", "partitions": [moving]}] if adding else []
        talk.ask(at, "ListPartitionReassignments", 0, {"topics": None}, {"topics": rows})
        lab.until = max(lab.until, at)


@disagrees_at(10)
def ctl022_fires(lab):
    lab.metadata(0, [("orders", ID_1)])
    listed(lab, range(10, 700, 30), adding=(2,))


def ctl022_fires__to_a_broker_that_does_not_exist(lab):
    lab.metadata(0, [("orders", ID_1)])
    listed(lab, range(10, 700, 30))


def ctl022_near_miss(lab):
    """It ends within 10 minutes; later another one begins."""
    lab.metadata(0, [("orders", ID_1)])
    listed(lab, range(10, 400, 30), adding=(2,))
    listed(lab, range(400, 420, 10), adding=())
    listed(lab, range(430, 700, 30), adding=(3,))


def ctl022_cannot_know(lab):
    """Listed once."""
    lab.metadata(0, [("orders", ID_1)])
    listed(lab, [10])
    lab.metadata(900, [("orders", ID_1)])


def elected(lab, *, error=0, kind=0, leader=2, epochs=(4, 4)):
    """An operator asks for the preferred leader at 60 s; two brokers answer Metadata requests before and after it."""
    for at in range(0, 180, 10):
        epoch = epochs[at > 60]
        lab.metadata(at, [("orders", ID_1, 0, epoch)], leader=leader)
        lab.metadata(at + 1, [("orders", ID_1, 0, epochs[0])], leader=leader, server=B2)
    asked = {"electionType": kind, "topicPartitions": [{"topic": "orders", "partitions": [0]}]}
    result = {"partitionId": 0, "errorCode": error}
    answer = {"replicaElectionResults": [{"topic": "orders", "partitionResult": [result]}]}
    lab.talk(client_id="operator").ask(60, "ElectLeaders", 2, asked, answer)


@disagrees_at(60)
def ctl023_fires(lab):
    elected(lab)


def ctl023_near_miss(lab):
    """It leads already (ELECTION_NOT_NEEDED)."""
    elected(lab, error=84)


def ctl023_near_miss__elected(lab):
    """Another broker leads soon after it once more; one broker's Metadata is late."""
    elected(lab, epochs=(4, 5))


def ctl023_near_miss__the_preferred_one_leads(lab):
    elected(lab, leader=1)


def ctl023_cannot_know(lab):
    """The capture ends soon after it."""
    lab.metadata(0, [("orders", ID_1, 0, 4)], leader=2)
    elected_at = {"electionType": 0, "topicPartitions": [{"topic": "orders", "partitions": [0]}]}
    answer = {"topic": "orders", "partitionResult": [{"partitionId": 0, "errorCode": 0}]}
    lab.talk(client_id="operator").ask(60, "ElectLeaders", 2, elected_at, {"replicaElectionResults": [answer]})
    lab.metadata(70, [("orders", ID_1, 0, 4)], leader=2)


def reassigned(lab, replicas, *, error=0, whole=0):
    lab.metadata(0, [("orders", ID_1)])
    asked = [{"name": "orders", "partitions": [{"partitionIndex": 0, "replicas": replicas}]}]
    answer = [{"name": "orders", "partitions": [{"partitionIndex": 0, "errorCode": error}]}]
    talk = lab.talk(client_id="operator")
    talk.ask(1, "AlterPartitionReassignments", 0, {"topics": asked}, {"errorCode": whole, "responses": answer})


@disagrees_at(1)
def adm003_fires(lab):
    reassigned(lab, [1, 1, 2])


def adm003_fires__of_a_new_topic(lab):
    asked = {"name": "new", "assignments": [{"partitionIndex": 0, "brokerIds": [1, -2]}]}
    lab.metadata(0, [("orders", ID_1)])
    lab.talk(client_id="operator").ask(1, "CreateTopics", 7, {"topics": [asked]}, {"topics": [{"name": "new"}]})


def adm003_near_miss(lab):
    """As Kafka answers: INVALID_REPLICA_ASSIGNMENT."""
    reassigned(lab, [1, 1, 2], error=39)


def adm003_near_miss__cancelled(lab):
    """No replicas take the reassignment back."""
    reassigned(lab, None)


def adm003_near_miss__refused_as_a_whole(lab):
    reassigned(lab, [1, 1, 2], whole=41)


def adm003_cannot_know(lab):
    lab.metadata(0, [("orders", ID_1)])
    asked = {"name": "new", "assignments": [{"partitionIndex": 0, "brokerIds": [1, 1]}]}
    talk = lab.talk(client_id="operator")
    talk.ask(1, "CreateTopics", 7, {"topics": [asked]}, outcome=RESPONSE_UNSEEN)


def copied(lab, offsets, *, replicas=(1, 2, 3), until=160, begins=10):
    """Broker 2 fetches orders from broker 1 at these offsets, every 10 s; brokers state who its replicas are."""
    for at in range(0, until, 10):
        away = at in range(60, 70)
        state = {"leaderId": 1, "leaderEpoch": 5, "replicaNodes": [*(replicas if away else (1, 2, 3))]}
        lab.metadata(at)
        row = {"name": "orders", "topicId": ID_1, "partitions": [{**state, "isrNodes": [1, 3]}]}
        lab.talk(B1).ask(at, "Metadata", 12, {"topics": None}, {"clusterId": None, "topics": [row]})
    talk = lab.talk(B1, "broker-2-fetcher-0", "10.0.0.2")
    for number, offset in enumerate(offsets):
        asked = [{"topicId": ID_1, "partitions": [{"fetchOffset": offset}]}]
        row = {"highWatermark": 400, "records": None, "abortedTransactions": None}
        given = [{"topicId": ID_1, "partitions": [row]}]
        body = {"replicaState": {"replicaId": 2}, "sessionEpoch": -1, "topics": asked}
        talk.ask(begins + 10 * number, "Fetch", 15, body, {"responses": given})


@disagrees_at(50)
def ctl024_fires(lab):
    copied(lab, [310, 320, 350, 0, 0, 200, 390])


def ctl024_fires__by_a_new_connection(lab):
    copied(lab, [310, 320])
    copied(lab, [0, 390], until=0, begins=60)


def ctl024_near_miss(lab):
    """A new replica copies the log from its beginning."""
    copied(lab, [0, 0, 200, 390])


def ctl024_near_miss__truncated(lab):
    """To where its leader's epoch ends."""
    copied(lab, [310, 320, 290, 320])


def ctl024_near_miss__moved_away_and_back(lab):
    copied(lab, [310, 320, 350, 350, 0, 200, 390], replicas=(1, 3))


def ctl024_cannot_know(lab):
    """Its beginning was not captured: it may be a new replica."""
    copied(lab, [0, 200])
