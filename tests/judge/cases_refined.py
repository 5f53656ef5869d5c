"""Further cases of checks whose files are full: rules of CreateTopics, what waits in queues, what is asked early."""

from tests.judge.cases_control import beats, denied, heartbeats_answered, led
from tests.judge.cases_fetching import creates
from tests.judge.cases_versions import follows, orders
from tests.judge.lab import B1, B2, B3, ID_1, ID_2, NO_ID
from wirecheck.decode.connection.exchanges import RESPONSE_UNSEEN

ASSIGNED = {"name": "a", "assignments": [{"brokerIds": [1]}]}


def adm001_fires__authorization(lab):
    creates(lab, {"name": "a"}, errors=(29,))


def adm001_fires__assignment_and_counts(lab):
    creates(lab, ASSIGNED, errors=(42,))


def adm001_fires__assignment_and_counts_of_a_topic_that_exists(lab):
    lab.metadata(-10, [("a", ID_1)])
    creates(lab, ASSIGNED, errors=(36,))


NEITHER = {"name": "a", "numPartitions": 3, "replicationFactor": -1}


def adm001_fires__neither_assignment_nor_both_counts(lab):
    creates(lab, NEITHER, errors=(38,), version=3)


def adm001_near_miss__defaults_of_the_broker(lab):
    """Since version 4, counts may be left out (KIP-464)."""
    creates(lab, NEITHER, errors=(0,), version=4)


def adm001_near_miss__an_invalid_request_without_a_timeout(lab):
    """Rule 6 is about requests that are valid."""
    creates(lab, {"name": "a b"}, timeout=0, errors=(17,))


def adm001_fires__late(lab):
    creates(lab, {"name": "a"}, errors=(7,))
    lab.metadata(20, [("a", ID_1)])


def adm001_cannot_know__whether_it_was_created(lab):
    creates(lab, {"name": "a"}, errors=(7,))


def adm001_fires__no_timeout(lab):
    creates(lab, {"name": "a"}, timeout=0, errors=(7,))
    lab.metadata(20, [("a", ID_1)])


def adm001_fires__partly(lab):
    creates(lab, {"name": "a"}, {"name": "b"}, errors=(0, 38))


def adm001_near_miss__partly(lab):
    """One is there already; all are refused; one was not asked of the controller."""
    creates(lab, {"name": "a"}, {"name": "b"}, errors=(0, 36))
    creates(lab, {"name": "c"}, {"name": "d"}, errors=(38, 38))
    creates(lab, {"name": "e"}, {"name": "f"}, errors=(41, 41))


def drf002_fires__newer_than_known(lab):
    lab.metadata(0, [("orders", None, 999)], version=9)


def ctl005_fires__and_goes_on(lab):
    """The controller is back to order later."""
    for at, epoch in ((0, 7), (60, 3), (90, 8)):
        lab.control(at, "UpdateMetadata", [("orders", ID_1, epoch)])


def ctl005_near_miss__waits_in_a_queue(lab):
    """Broker 2 hears late of everything."""
    for server, epoch, at in ((B1, 3, 0), (B1, 4, 5), (B2, 3, 60), (B2, 4, 61)):
        lab.control(at, "UpdateMetadata", [("orders", ID_1, epoch)], server=server)


def ctl004_fires__orders_are_refused(lab):
    lab.metadata(0)
    for at in range(0, 90, 5):
        lab.control(at, "UpdateMetadata", [("orders", ID_1, 3)], server=B2, error=77)


def ctl004_near_miss__orders(lab):
    lab.control(0, "UpdateMetadata", [("orders", ID_1, 3)], error=77)
    lab.control(60, "UpdateMetadata", [("orders", ID_1, 3)])
    heartbeats_answered(lab, 0, range(3, 90, 2))


def log003_near_miss__seldom_heard(lab):
    """Two heartbeats with a minute between: the broker may have been quick to follow, and was not asked."""
    beats(lab, 2, range(100, 160))
    talk = lab.talk(B3, "1", "10.0.0.1")
    for at, offset in ((5, 101), (65, 101), (70, 140)):
        talk.ask(at, "BrokerHeartbeat", 1, {"brokerId": 1, "currentMetadataOffset": offset}, {"isFenced": False})


def ctl010_near_miss__few(lab):
    """A client that seldom asks was answered twice."""
    denied(lab, times=(5, 85))


def fet005_near_miss__the_leader_denies(lab):
    """For six minutes, of a broker that does not lead what it should."""
    denied(lab, times=range(0, 400, 5))
    for at in range(100, 420, 10):
        partition = {"leaderId": 2, "leaderEpoch": 5, "replicaNodes": [1, 2, 3], "isrNodes": [1, 2, 3]}
        answer = {"clusterId": None, "topics": [{"name": "solo", "topicId": ID_1, "partitions": [partition]}]}
        lab.talk(B1).ask(at, "Metadata", 12, {"topics": None}, answer)
    lab.fetches(range(0, 400, 5), ID_1, 75, server=B2)


def ended(lab):
    lab.metadata(0, [("orders", ID_1, 0, 4)])
    lab.deleted(30, "orders", ID_1)


def tid005_near_miss__asked_before_the_end(lab):
    """In a session, by a fetch that the broker keeps for long."""
    ended(lab)
    lab.fetches([10], ID_1, 0)
    talk, session = lab.talk(), {"sessionId": 7, "sessionEpoch": 2}
    row = {"topicId": ID_1, "partitions": [{"errorCode": 100, "records": None, "abortedTransactions": None}]}
    talk.ask(29, "Fetch", 13, session, {"responses": [row]}, answered_in=400)
    lab.until = 500


def tid017_fires__alter_partition(lab):
    ended(lab)
    talk = lab.talk(B3, "2", "10.0.0.2")
    for at in range(20, 80, 10):
        row = {"topicId": ID_1, "partitions": [{"partitionIndex": 0}]}
        refused = {"topicId": ID_1, "partitions": [{"partitionIndex": 0, "errorCode": 100}]}
        talk.ask(at, "AlterPartition", 2, {"topics": [row]}, {"topics": [refused]})
    lab.until = 100


def tid017_near_miss__renumbered(lab):
    """Replicas go on under the id on their disks: nothing has ended."""
    lab.control(0, "LeaderAndIsr", [("orders", ID_1, 3)])
    lab.control(60, "LeaderAndIsr", [("orders", ID_2, 4)], epoch=2, errors=[(ID_2, 103)])
    lab.fetches(range(0, 200, 5), ID_1, client_id="broker-2-fetcher-0", host="10.0.0.2")


def answers_older_id(lab, *, server, until, answers=(15, 30)):
    """A broker is told a newer id, and answers the older one, until then."""
    lab.metadata(0, [("orders", ID_1, 0, 4)], server=B1)
    lab.metadata(0, server=B2)
    lab.deleted(9, "orders", ID_1)
    lab.control(10, "UpdateMetadata", [("orders", ID_2, 0)], server=server)
    for at in (*answers, until):
        lab.metadata(at, [("orders", ID_1, 0, 4)], server=B1)
    lab.until = until + 60


def tid006_fires__told_and_not_heeded(lab):
    answers_older_id(lab, server=B1, until=60)


def tid006_near_miss__not_heeded_yet(lab):
    answers_older_id(lab, server=B1, until=35)


def tid006_near_miss__the_older_id_after_a_pause(lab):
    """ZooKeeper was restored meanwhile: the request that gave the older one again is not captured."""
    answers_older_id(lab, server=B1, until=90, answers=())


def tid006_cannot_know__whether_it_was_told(lab):
    """Another broker was; this one answers the older id, which is TID007's affair."""
    answers_older_id(lab, server=B2, until=60)


def ver003_fires__follows_in_another_level(lab):
    orders(lab, 5, 7)
    lab.metadata(0)
    follows(lab, 17, range(0, 60, 5), broker=3)
    lab.control(60, "LeaderAndIsr", [("t", NO_ID, 1)], version=5)


def ver003_near_miss__by_name_for_want_of_an_id(lab):
    orders(lab, 7, 8)
    lab.metadata(0)
    follows(lab, 12, range(0, 60, 5), broker=3)
    lab.control(60, "LeaderAndIsr", [("t", NO_ID, 1)], version=7)


def two_levels(lab, at):
    """Controller 2 gives orders of the next level; at a later time controller 1 gives those of the former."""
    orders(lab, 5, 7, controller=2, epoch=2)
    lab.until = at
    orders(lab, 4, 6, controller=1, epoch=3)


def ver003_fires__an_older_controller_after_the_roll(lab):
    two_levels(lab, 4000)


def ver003_near_miss__an_older_controller_within_the_roll(lab):
    two_levels(lab, 3000)


def adm001_fires__a_topic_without_an_answer(lab):
    lab.metadata(0)
    asked = {"topics": [{"name": "a", "numPartitions": 1}, {"name": "b", "numPartitions": 1}], "timeoutMs": 1000}
    for row in asked["topics"]:
        row["replicationFactor"] = 1
    lab.talk(client_id="admin").ask(5, "CreateTopics", 7, asked, {"topics": [{"name": "a", "configs": []}]})


def adm001_near_miss__no_response(lab):
    lab.metadata(0)
    asked = {"topics": [{"name": "a", "numPartitions": 1, "replicationFactor": 1}], "timeoutMs": 1000}
    lab.talk(client_id="admin").ask(5, "CreateTopics", 7, asked, outcome=RESPONSE_UNSEEN)


CREATE_TOPICS = (
    (
        adm001_fires__authorization,
        "3 (authorization)",
        "Kafka and this broker answer TOPIC_AUTHORIZATION_FAILED (29).",
    ),
    (
        adm001_fires__assignment_and_counts,
        "4 (assignment and counts)",
        "Kafka and this broker answer INVALID_REQUEST (42).",
    ),
    (
        adm001_fires__assignment_and_counts_of_a_topic_that_exists,
        "4 (assignment and counts)",
        "Kafka and this broker answer TOPIC_ALREADY_EXISTS (36), which it checks first.",
    ),
    (
        adm001_fires__neither_assignment_nor_both_counts,
        "4 (neither assignment nor both counts)",
        "Kafka and this broker answer INVALID_PARTITIONS (37) or INVALID_REPLICATION_FACTOR (38).",
    ),
    (
        adm001_fires__late,
        "5 (timeout, then created)",
        "Kafka and this broker answer REQUEST_TIMED_OUT (7); created at 2027-01-15 08:00:20.001 UTC.",
    ),
    (
        adm001_fires__no_timeout,
        "6 (no positive timeout)",
        "Kafka and this broker answer REQUEST_TIMED_OUT (7); created at 2027-01-15 08:00:20.001 UTC.",
    ),
    (
        adm001_fires__partly,
        "7 (partial result)",
        "Other topics of the request were created, this one was answered INVALID_REPLICATION_FACTOR (38).",
    ),
    (
        adm001_fires__a_topic_without_an_answer,
        "7 (no answer for a topic)",
        "Kafka answers each topic; this response lacks it.",
    ),
)
"""Cases of CreateTopics with the rule, and Kafka's answer and the broker's, as the finding names them."""


def own_epoch(lab, reads, errors, until=140):
    """A client asks broker 2 with the leader epoch of a former topic, and another client reads from there."""
    for at in range(0, until, 10):
        lab.metadata(at)
        led(lab, at)
    lab.fetches(reads, ID_1, server=B2, client_id="reader")
    lab.fetches(errors, ID_1, 75, server=B2, client_id="librdkafka")


def ctl010_near_miss__the_clients_own_epoch(lab):
    """The broker serves another client at that partition all the time."""
    own_epoch(lab, range(0, 130, 2), range(10, 130, 2))


def ctl010_near_miss__the_clients_own_epoch_after_the_other_has_read(lab):
    """The other client has no more to read: what was served between the errors shows whose fault they are."""
    own_epoch(lab, range(0, 60, 2), range(10, 130, 2))


def fet005_fires__while_others_are_served(lab):
    own_epoch(lab, range(0, 60, 2), range(10, 400, 2), until=420)
