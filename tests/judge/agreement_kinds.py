"""The kinds of messages that state which ID a topic has, in bytes, and which pairs of them can be seen together.

Each function writes what one party states about the topic `orders`, at some seconds of capture time. A kind that a
schema has and this table lacks fails `test_agreement.py`; so does one that is left out without a reason.
"""

from dataclasses import dataclass

from tests.decode.log.batches import topic
from tests.judge.cases_control import id_bytes
from tests.judge.cases_lives import begins, shows, writes
from tests.judge.lab import B1, BROKERS
from wirecheck.decode.layouts.program import Dialect

CONTROLLER, BROKER, LOG = "controller", "broker", "log"
TOLD = {"controllerId": 3, "controllerEpoch": 1}
STATE = {"partitionIndex": 0, "leader": 1, "leaderEpoch": 4, "isr": [1, 2, 3], "replicas": [1, 2, 3]}


def drafted(lab, times, api, version, request, response, *, server, client_id="app", host="10.0.0.99"):
    talk = lab.talk(server, client_id, host)
    talk.dialect = Dialect.KIP516_DRAFT
    for at in times:
        talk.drafted(at, api, version, request, response)


def ordered(lab, times, server, api, version, request, response):
    drafted(lab, times, api, version, TOLD | request, response, server=server, client_id="3", host="10.0.0.3")


def leader_and_isr(lab, times, topic_id, server):
    for at in times:
        lab.control(at, "LeaderAndIsr", [("orders", topic_id, 4)], server=server)


def update_metadata(lab, times, topic_id, server):
    for at in times:
        lab.control(at, "UpdateMetadata", [("orders", topic_id, 4)], server=server)


def metadata(lab, times, topic_id, server):
    talk = lab.talk(server)
    for at in times:
        lab.metadata(at, [("orders", topic_id, 0, 4)], server=server, talk=talk)


def described(api, version, rows):
    """One API whose response has the name and the ID in `rows`."""

    def states(lab, times, topic_id, server):
        talk = lab.talk(server)
        for at in times:
            talk.ask(at, api, version, {}, rows({"topicName": "orders", "topicId": topic_id}))

    return states


def of_members(*parts):
    return lambda pair: {"groups": [{"groupId": "g", "members": [{p: {"topicPartitions": [pair]} for p in parts}]}]}


def of_partitions(pair):
    return {"groups": [{"groupId": "g", "topics": [pair | {"partitions": [{"partitionIndex": 0}]}]}]}


def topic_partitions(lab, times, topic_id, server):
    talk = lab.talk(server)
    for at in times:
        answer = {"topics": [{"name": "orders", "topicId": topic_id, "partitions": []}]}
        talk.ask(at, "DescribeTopicPartitions", 0, {"topics": [{"name": "orders"}]}, answer)


def fetch_by_id(lab, times, topic_id, server):
    """By a follower, granted; a controller named the ID once."""
    lab.control(min(times), "LeaderAndIsr", [("orders", topic_id, 4)], server=server)
    lab.fetches(times, topic_id, server=server, client_id="broker-2-fetcher-0", host="10.0.0.2")


def draft_leader_and_isr(lab, times, topic_id, server):
    states = [{"topicName": "orders", "topicId": topic_id, "partitionStates": [STATE]}]
    ordered(lab, times, server, "LeaderAndIsr", 3, {"type": 0, "topicStates": states}, {})


def draft_leader_and_isr_response(lab, times, topic_id, server):
    errors = [{"topicName": "orders", "topicId": topic_id, "partitionIndex": 0}]
    ordered(lab, times, server, "LeaderAndIsr", 3, {"topicStates": []}, {"partitionErrors": errors})


def draft_update_metadata(lab, times, topic_id, server):
    states = [{"topicName": "orders", "topicId": topic_id, "partitionStates": [STATE]}]
    ordered(lab, times, server, "UpdateMetadata", 7, {"topicStates": states}, {"errorCode": 0})


def draft_stop_replica(lab, times, topic_id, server):
    rows = [{"name": "orders", "topicId": topic_id, "partitionIndexes": [0]}]
    ordered(lab, times, server, "StopReplica", 2, {"deletePartitions": False, "topics": rows}, {})


def draft_stop_replica_response(lab, times, topic_id, server):
    errors = [{"topicName": "orders", "topicId": topic_id, "partitionIndex": 0}]
    ordered(lab, times, server, "StopReplica", 2, {"topics": []}, {"partitionErrors": errors})


def draft_metadata(lab, times, topic_id, server):
    nodes = [{"nodeId": n, "host": b.split(":")[0], "port": int(b.split(":")[1])} for b, n in BROKERS.items()]
    rows = [{"name": "orders", "topicId": topic_id, "partitions": []}]
    answer = {"brokers": nodes, "clusterId": "lab-cluster-id-22-char", "topics": rows}
    drafted(lab, times, "Metadata", 10, {"topics": None}, answer, server=server)


def draft_fetch(lab, times, topic_id, server):
    row = {"partitionIndex": 0, "highWatermark": 10, "records": None, "abortedTransactions": None}
    answer = {"responses": [{"topic": "orders", "topicId": topic_id, "partitions": [row]}]}
    asked = {"replicaId": -1, "topics": [{"topic": "orders", "partitions": [{"partition": 0}]}], "sessionEpoch": -1}
    drafted(lab, times, "Fetch", 12, asked, answer, server=server)


def draft_list_offsets(lab, times, topic_id, server):
    answer = {"topics": [{"name": "orders", "topicId": topic_id, "partitions": [{"partitionIndex": 0, "offset": 5}]}]}
    drafted(lab, times, "ListOffsets", 6, {"replicaId": -1, "topics": []}, answer, server=server)


def draft_leader_epoch(lab, times, topic_id, server):
    answer = {"topics": [{"topic": "orders", "topicId": topic_id, "partitions": [{"partition": 0, "endOffset": 5}]}]}
    drafted(lab, times, "OffsetForLeaderEpoch", 4, {"replicaId": -1, "topics": []}, answer, server=server)


def metadata_log(lab, times, topic_id, server):
    """A record that is written at the first of the times, in a log that is read on until the last."""
    shows(lab, min(times) - 20, 10, begins(-30, 1, 0))
    shows(lab, min(times), 30, writes(min(times), 1, 20, topic("orders", id_bytes(topic_id))))
    for at in times[1:]:
        shows(lab, at, 30)


@dataclass(frozen=True)
class Kind:
    """One kind of message that states an ID."""

    states: object
    party: str
    structures: tuple = ()
    """Structures of the schemas that it covers: dialect's file, API, side and path."""
    reports: bool = False
    """Whether a proxy that renames topics would change it."""

    @property
    def name(self):
        return getattr(self, "title", None) or self.states.__name__


DRAFT = "kip516_draft"
KINDS = {
    "leader-and-isr": Kind(leader_and_isr, CONTROLLER, (("kafka", "LeaderAndIsr", "request", "topic_states"),)),
    "update-metadata": Kind(update_metadata, CONTROLLER, (("kafka", "UpdateMetadata", "request", "topic_states"),)),
    "metadata": Kind(metadata, BROKER, (("kafka", "Metadata", "response", "topics"),), reports=True),
    "topic-partitions": Kind(
        topic_partitions, BROKER, (("kafka", "DescribeTopicPartitions", "response", "topics"),), reports=True
    ),
    "consumer-group-describe": Kind(
        described("ConsumerGroupDescribe", 1, of_members("assignment", "targetAssignment")),
        BROKER,
        tuple(
            ("kafka", "ConsumerGroupDescribe", "response", f"groups.members.{part}.topic_partitions")
            for part in ("assignment", "target_assignment")
        ),
    ),
    "share-group-describe": Kind(
        described("ShareGroupDescribe", 1, of_members("assignment")),
        BROKER,
        (("kafka", "ShareGroupDescribe", "response", "groups.members.assignment.topic_partitions"),),
    ),
    "describe-share-group-offsets": Kind(
        described("DescribeShareGroupOffsets", 0, of_partitions),
        BROKER,
        (("kafka", "DescribeShareGroupOffsets", "response", "groups.topics"),),
    ),
    "alter-share-group-offsets": Kind(
        described("AlterShareGroupOffsets", 0, lambda pair: {"responses": [pair | {"partitions": []}]}),
        BROKER,
        (("kafka", "AlterShareGroupOffsets", "response", "responses"),),
    ),
    "delete-share-group-offsets": Kind(
        described("DeleteShareGroupOffsets", 0, lambda pair: {"responses": [pair]}),
        BROKER,
        (("kafka", "DeleteShareGroupOffsets", "response", "responses"),),
    ),
    "fetch-by-id": Kind(fetch_by_id, BROKER),
    "metadata-log": Kind(metadata_log, LOG, (("metadata_records", "TopicRecord", "record", ""),)),
    "draft-leader-and-isr": Kind(
        draft_leader_and_isr, CONTROLLER, ((DRAFT, "LeaderAndIsr", "request", "topic_states"),)
    ),
    "draft-leader-and-isr-response": Kind(
        draft_leader_and_isr_response, BROKER, ((DRAFT, "LeaderAndIsr", "response", "partition_errors"),)
    ),
    "draft-update-metadata": Kind(
        draft_update_metadata, CONTROLLER, ((DRAFT, "UpdateMetadata", "request", "topic_states"),)
    ),
    "draft-stop-replica": Kind(draft_stop_replica, CONTROLLER, ((DRAFT, "StopReplica", "request", "topics"),)),
    "draft-stop-replica-response": Kind(
        draft_stop_replica_response, BROKER, ((DRAFT, "StopReplica", "response", "partition_errors"),)
    ),
    "draft-metadata": Kind(draft_metadata, BROKER, ((DRAFT, "Metadata", "response", "topics"),), reports=True),
    "draft-fetch": Kind(draft_fetch, BROKER, ((DRAFT, "Fetch", "response", "responses"),)),
    "draft-list-offsets": Kind(draft_list_offsets, BROKER, ((DRAFT, "ListOffsets", "response", "topics"),)),
    "draft-leader-epoch": Kind(draft_leader_epoch, BROKER, ((DRAFT, "OffsetForLeaderEpoch", "response", "topics"),)),
}
LEFT_OUT = {
    ("kafka", "Metadata", "request", "topics"): "a client asks by name or by ID",
    ("kafka", "DeleteTopics", "request", "topics"): "a client asks by name or by ID",
    ("kafka", "CreateTopics", "response", "topics"): "a topic is created once: TID009",
    ("kafka", "DeleteTopics", "response", "responses"): "it names what ended: TID010",
    (DRAFT, "Fetch", "request", "topics"): "a client or follower alone contradicts nobody: TID005, TID017",
    (DRAFT, "ListOffsets", "request", "topics"): "a client or follower alone contradicts nobody: TID005, TID017",
    (
        DRAFT,
        "OffsetForLeaderEpoch",
        "request",
        "topics",
    ): "a client or follower alone contradicts nobody: TID005, TID017",
}
"""Structures with a name and an ID that are no statements, with the reason."""


def both_parties(one, other):
    """Where the two kinds can be seen, as pairs of servers; without those that no capture can hold apart."""
    kinds = KINDS[one], KINDS[other]
    if {kind.party for kind in kinds} == {LOG}:
        return  # the offsets of one log decide
    if not (kinds[0].reports and kinds[1].reports):
        yield B1, B1
    yield B1, "10.0.0.2:9092"
