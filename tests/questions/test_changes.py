"""Who changed what: one change for each object of a request, with its sender and its answer, however it was seen."""

import base64
from collections import Counter

import numpy as np
import pytest

from tests.build import plain
from tests.decode.show.test_message_lines import frames
from tests.traffic import Talk
from wirecheck.decode.layouts.program import form
from wirecheck.decode.secrecy import confidential
from wirecheck.decode.wire import REQUEST, pack
from wirecheck.frame import Frame
from wirecheck.questions import changes as audit
from wirecheck.questions.changes import ACTIONS, Changes
from wirecheck.questions.request_digest import request_digests

ALICE = b"\0\0\x05User\x06alice\0\0"
ADMIN = b"\0\0\x05User\x06admin\0\0"
CLIENT, BROKER, CONTROLLER = ("10.0.4.12", 40000), ("10.0.1.3", 9092), ("10.0.1.9", 9093)
SONGS = {"name": "songs", "numPartitions": 2, "replicationFactor": 3, "assignments": [], "configs": []}
CREATE = {"topics": [SONGS], "timeoutMs": 30000, "validateOnly": False}
CREATED = {"topics": [{"name": "songs", "topicId": "JMxDMvfeRaOyTjPWGqDRbA", "errorCode": 0}]}
MS = 1_000_000
SECOND = 1000 * MS
START = Talk().ts_ns


def b64(data):
    return base64.b64encode(data).decode()


def request(api, version, body, number=7, client_id="lab-admin"):
    return plain(api, "request", version, body, {"correlationId": number, "clientId": client_id})


def response(api, version, body, number=7):
    return plain(api, "response", version, body, {"correlationId": number})


def direct(api, version, asked, answered=None, at=0, number=7, client_id="lab-admin", client=CLIENT):
    """A client's own connection to a broker: one request, its answer after 200 ms."""
    talk = Talk(client=client, server=BROKER, ts_ns=START + at).open()
    talk.request(request(api, version, asked, number, client_id))
    talk.ts_ns += 200 * MS
    if answered is not None:
        talk.response(response(api, version, answered, number))
    return talk.close()


def envelope(inner, answer=None, at=5 * MS, number=1, principal=ALICE, host=b"\x0a\0\4\x0c", broker="2", error=0):
    """The connection of a broker to the controller."""
    talk = Talk(client=(BROKER[0], 50000 + number), server=CONTROLLER, ts_ns=START + at).open()
    body = {
        "requestData": b64(inner[4:]),
        "requestPrincipal": None if principal is None else b64(principal),
        "clientHostAddress": b64(host),
    }
    talk.request(plain("Envelope", "request", 0, body, {"correlationId": number, "clientId": broker}))
    if error:
        refused = {"errorCode": error, "responseData": None}
        return talk.response(plain("Envelope", "response", 0, refused, {"correlationId": number}))
    talk.ts_ns += 50 * MS
    if answer is not None:
        talk.response(plain("Envelope", "response", 0, {"responseData": b64(answer[4:])}, {"correlationId": number}))
    return talk.close()


def found(*talks):
    """What is listed of these connections, as one capture."""
    segments = sorted((segment for talk in talks for segment in talk.segments), key=lambda one: one.ts_ns)
    return list(Changes().read([frames(segments)]).merged())


def brief(every):
    return [
        (one.action, one.object, one.principal, one.client_id, one.host, one.via_broker, one.error) for one in every
    ]


FORWARDED = ("CreateTopics", "songs", "User:alice", "lab-admin", "10.0.4.12", "2", "NONE")


def test_a_forwarded_request_is_one_change_with_its_principal():
    inner, answer = request("CreateTopics", 7, CREATE), response("CreateTopics", 7, CREATED)
    both = found(direct("CreateTopics", 7, CREATE, CREATED), envelope(inner, answer))
    assert brief(both) == [("CreateTopics", "songs", "User:alice", "lab-admin", "10.0.4.12", "10.0.1.3:9092", "NONE")]
    assert (both[0].time_ns, both[0].details) == (START + 3 * MS, "2 partitions, replication factor 3")
    assert both[0].frame == Frame("a.pcap", 4, 4)


def test_a_client_that_uses_tls_is_known_from_the_envelope():
    inner, answer = request("CreateTopics", 7, CREATE), response("CreateTopics", 7, CREATED)
    assert brief(found(envelope(inner, answer))) == [FORWARDED]


def test_an_envelope_that_was_not_answered_proves_no_broker():
    assert brief(found(envelope(request("CreateTopics", 7, CREATE)))) == [
        ("CreateTopics", "songs", "User:alice", "lab-admin", "10.0.4.12", "10.0.1.9:9093", None)
    ]


def test_a_refused_envelope_is_its_senders_whomever_it_names():
    (change,) = found(envelope(request("CreateTopics", 7, CREATE), broker="billing", error=31))
    assert (change.client_id, change.host, change.error) == ("billing", BROKER[0], "CLUSTER_AUTHORIZATION_FAILED")
    assert change.principal == "User:alice"  # claimed; --no-principals takes it out, so it is in no other column
    assert not {"alice", "10.0.4.12"} & set(change.details.split())
    assert "refused" in change.details


def claims(every):
    return [(one.principal, one.claimed_by) for one in every]


def test_who_claims_a_principal_that_no_controller_was_seen_to_accept():
    inner, answer = request("CreateTopics", 7, CREATE), response("CreateTopics", 7, CREATED)
    unanswered = envelope(inner)
    assert claims(found(unanswered)) == [("User:alice", BROKER[0])]
    assert claims(found(envelope(inner, broker="billing", error=31))) == [("User:alice", BROKER[0])]
    assert claims(found(envelope(inner, answer))) == [("User:alice", None)]
    assert claims(found(envelope(inner, principal=None))) == [(None, None)]


def test_the_broker_on_the_host_that_sent_an_envelope_has_its_id():
    brokers = {"brokers": [{"nodeId": 3, "host": BROKER[0], "port": 9092}], "controllerId": 3, "topics": []}
    learned = direct("Metadata", 9, {"topics": []}, brokers, number=2, client=("10.0.4.12", 40002))
    assert claims(found(learned, envelope(request("CreateTopics", 7, CREATE)))) == [("User:alice", "3")]


def test_an_envelope_that_was_accepted_counts_for_more_than_one_that_claims():
    """Another host sends the same request in an Envelope of its own while the client's is open."""
    inner, answer = request("CreateTopics", 7, CREATE), response("CreateTopics", 7, CREATED)
    false = envelope(inner, at=1 * MS, number=3, principal=ADMIN)
    true = envelope(inner, answer)
    client = direct("CreateTopics", 7, CREATE, CREATED)
    assert claims(found(client, false)) == [("User:admin", BROKER[0])]
    for talks in ((client, false, true), (false, true), (client, true, envelope(inner, at=9 * MS, principal=ADMIN))):
        assert claims(found(*talks)) == [("User:alice", None)]


def test_what_was_only_validated_changed_nothing():
    asked = {"topics": [SONGS], "validateOnly": True}
    (change,) = found(direct("CreateTopics", 7, asked, {"topics": [{"name": "songs"}]}))
    assert (change.is_validation, change.answer) == (True, "valid")


def test_a_request_that_is_forwarded_again_is_one_change():
    inner, answer = request("CreateTopics", 7, CREATE), response("CreateTopics", 7, CREATED)
    refused = envelope(inner)
    again = envelope(inner, answer, at=2 * SECOND, number=2)
    assert brief(found(refused, again))[0][-1] == "NONE"
    assert len(found(refused, again)) == 1


def test_an_envelope_with_a_part_of_a_request_answers_it_and_names_nobody():
    """A broker sets the levels of its own loggers, and forwards the rest of such a request."""
    logger = {"resourceType": 8, "resourceName": "3", "configs": [{"name": "kafka", "configOperation": 0}]}
    topic = {"resourceType": 2, "resourceName": "songs", "configs": [{"name": "retention.ms", "value": "1"}]}
    inner = request("IncrementalAlterConfigs", 1, {"resources": [topic]})
    answer = response("IncrementalAlterConfigs", 1, {"responses": [{"resourceType": 2, "resourceName": "songs"}]})
    client = direct("IncrementalAlterConfigs", 1, {"resources": [logger, topic]})
    listed = {(one.object, one.principal) for one in found(client, envelope(inner, answer))}
    assert listed == {("songs", None)}


def scram(password):
    one = {"mechanism": 1, "iterations": 4096, "salt": b64(b"salt"), "saltedPassword": b64(password)}
    upsertions = [{"name": f"user-{number}", **one} for number in range(3)]
    return request("AlterUserScramCredentials", 0, {"deletions": [], "upsertions": upsertions})[4:]


def test_secrets_are_no_part_of_what_tells_requests_apart():
    """So that an agent that leaves them out, and a pcap that has them, give one digest, which shows no password."""
    whole = [pack([scram(password)], [REQUEST], [51], [0]) for password in (b"12345678", b"87654321")]
    spans, _ = confidential(whole[0], np.array([-1]))
    cuts = list(zip(spans.offset.tolist(), spans.length.tolist(), strict=True))
    without = pack([scram(b"12345678")], [REQUEST], [51], [0], [cuts])
    assert len(cuts) == 6
    assert len({digest for messages in (*whole, without) for digest in request_digests(messages)}) == 1
    missing = pack([scram(b"12345678")], [REQUEST], [51], [0], [[*cuts, (len(scram(b"12345678")) - 1, 1)]])
    assert request_digests(missing) != request_digests(without)


@pytest.mark.parametrize("is_by_tls", [False, True])
def test_runs_of_one_tool_are_compared_only_while_they_are_open(monkeypatch, is_by_tls):
    """All of them have one client ID, address and correlation ID: comparing each with each would take for ever."""
    compared, may_be_one = Counter(), Changes.may_be_one

    def counted(changes, *both):
        compared[runs] += 1
        return may_be_one(changes, *both)

    monkeypatch.setattr(Changes, "may_be_one", counted)
    for runs in (20, 80):
        talks = []
        for number in range(runs):
            asked = {**CREATE, "topics": [{**SONGS, "name": f"songs-{number}"}]}
            at = number * 8 * SECOND
            if not is_by_tls:
                talks.append(direct("CreateTopics", 7, asked, CREATED, at=at, client=(CLIENT[0], 40000 + number)))
            inner, answer = request("CreateTopics", 7, asked), response("CreateTopics", 7, CREATED)
            talks.append(envelope(inner, answer, at=at + 5 * MS, number=number))
        assert len(found(*talks)) == runs
    assert compared[80] <= 4.2 * compared[20]


def test_the_same_request_of_a_later_client_is_another_change():
    """kafka-topics counts its requests from the same number every time it is started."""
    inner, answer = request("CreateTopics", 7, CREATE), response("CreateTopics", 7, CREATED)
    first = direct("CreateTopics", 7, CREATE, CREATED), envelope(inner, answer)
    late = direct("CreateTopics", 7, CREATE, CREATED, at=90 * SECOND, client=("10.0.4.12", 40001))
    twice = found(*first, late, envelope(inner, answer, at=90 * SECOND + 5 * MS, number=2))
    assert [one.principal for one in twice] == ["User:alice", "User:alice"]
    alone = found(envelope(inner, answer), envelope(inner, answer, at=90 * SECOND, number=2))
    assert brief(alone) == [FORWARDED, FORWARDED]


def test_an_unanswered_request_takes_the_answer_of_its_envelope():
    inner, answer = request("CreateTopics", 7, CREATE), response("CreateTopics", 7, CREATED)
    assert [one.error for one in found(direct("CreateTopics", 7, CREATE))] == [None]
    assert [one.error for one in found(direct("CreateTopics", 7, CREATE), envelope(inner, answer))] == ["NONE"]


def test_a_principal_of_another_form_is_none_and_an_odd_address_is_the_brokers():
    inner = request("CreateTopics", 7, CREATE)
    assert brief(found(envelope(inner, principal=b"CN=x", host=b"\1")))[0][2:5] == (None, "lab-admin", "10.0.1.3")
    assert brief(found(envelope(inner, principal=None)))[0][2] is None


def test_a_broker_is_called_by_the_id_that_metadata_gives_its_address():
    brokers = {"brokers": [{"nodeId": 3, "host": "10.0.1.3", "port": 9092}], "controllerId": 3, "topics": []}
    learned = direct("Metadata", 9, {"topics": []}, brokers, number=2, client=("10.0.4.12", 40002))
    assert brief(found(learned, direct("CreateTopics", 7, CREATE, CREATED)))[0][5] == "3"


def test_a_topic_that_a_metadata_request_created_names_that_client():
    asked = direct("Metadata", 9, {"topics": [{"name": "songs"}], "allowAutoTopicCreation": True}, number=7)
    made = found(asked, envelope(request("CreateTopics", 7, CREATE), response("CreateTopics", 7, CREATED)))
    assert brief(made) == [FORWARDED]
    assert made[0].details == "2 partitions, replication factor 3 created automatically for a Metadata request"
    never = direct("Metadata", 9, {"topics": [{"name": "songs"}], "allowAutoTopicCreation": False}, number=7)
    made = found(never, envelope(request("CreateTopics", 7, CREATE), response("CreateTopics", 7, CREATED)))
    assert made[0].details == "2 partitions, replication factor 3"


ZERO_ID = "A" * 22
CASES = [
    (
        "CreateTopics", 7,
        {"topics": [SONGS | {"numPartitions": -1, "replicationFactor": -1, "assignments": []}], "validateOnly": True},
        {"topics": [{"name": "songs", "errorCode": 36}]},
        [("topic", "songs", "default partitions, replication factor default (validate only)", "TOPIC_ALREADY_EXISTS")],
    ),
    (
        "CreateTopics", 7,
        {"topics": [SONGS | {"assignments": [{"partitionIndex": 0, "brokerIds": [1]}]}, SONGS | {"name": "b"}]},
        {"topics": [{"name": "b", "errorCode": 29}, {"name": "songs", "errorCode": 0}]},
        [
            ("topic", "songs", "1 assigned partition", "NONE"),
            ("topic", "b", "2 partitions, replication factor 3", "TOPIC_AUTHORIZATION_FAILED"),
        ],
    ),
    (
        "DeleteTopics", 5, {"topicNames": ["songs"]},
        {"responses": [{"name": "songs", "errorCode": 0}]}, [("topic", "songs", "", "NONE")],
    ),
    (
        "DeleteTopics", 6,
        {"topics": [{"name": None, "topicId": "JMxDMvfeRaOyTjPWGqDRbA"}, {"name": "b", "topicId": ZERO_ID}]},
        {"responses": [
            {"name": "songs", "topicId": "JMxDMvfeRaOyTjPWGqDRbA", "errorCode": 0},
            {"name": "b", "topicId": ZERO_ID, "errorCode": 3},
        ]},
        [("topic", "songs", "", "NONE"), ("topic", "b", "", "UNKNOWN_TOPIC_OR_PARTITION")],
    ),
    (
        "CreatePartitions", 3, {"topics": [{"name": "songs", "count": 6, "assignments": None}]},
        {"results": [{"name": "songs", "errorCode": 37}]},
        [("topic", "songs", "to 6 partitions", "INVALID_PARTITIONS")],
    ),
    (
        "DeleteRecords", 2, {"topics": [{"name": "songs", "partitions": [{"partitionIndex": 1, "offset": 9}]}]},
        {"topics": [{"name": "songs", "partitions": [{"partitionIndex": 1, "errorCode": 6}]}]},
        [("topic", "songs", "partition 1", "NOT_LEADER_OR_FOLLOWER")],
    ),
    (
        "AlterConfigs", 2,
        {"resources": [{"resourceType": 4, "resourceName": "1", "configs": [{"name": "password", "value": "secret"}]}]},
        {"responses": [{"resourceType": 4, "resourceName": "1", "errorCode": 0}]},
        [("broker", "1", "set password", "NONE")],
    ),
    (
        "IncrementalAlterConfigs", 1,
        {"resources": [
            {"resourceType": 2, "resourceName": "songs", "configs": [
                {"name": "retention.ms", "configOperation": 1, "value": None},
                {"name": "cleanup.policy", "configOperation": 9, "value": "secret"},
            ]},
            {"resourceType": 99, "resourceName": "odd", "configs": []},
        ]},
        {"responses": [{"resourceType": 2, "resourceName": "songs", "errorCode": 40}]},
        [
            ("topic", "songs", "delete retention.ms, change cleanup.policy", "INVALID_CONFIG"),
            ("resource", "odd", "", "NONE"),
        ],
    ),
    (
        "CreateAcls", 3,
        {"creations": [{"resourceType": 2, "resourceName": "s", "resourcePatternType": 4, "principal": "User:bob",
                        "host": "*", "operation": 3, "permissionType": 3}]},
        {"results": [{"errorCode": 31}]},
        [("acl", "s", "prefixed topic: ALLOW User:bob READ from *", "CLUSTER_AUTHORIZATION_FAILED")],
    ),
    (
        "DeleteAcls", 3,
        {"filters": [{"resourceTypeFilter": 77, "resourceNameFilter": None, "patternTypeFilter": 3,
                      "principalFilter": None, "hostFilter": None, "operation": 99, "permissionType": 1}] * 2},
        {"filterResults": [{"errorCode": 0}]},
        [
            ("acl", "", "resource: ANY any principal 99 from any host", "NONE"),
            ("acl", "", "resource: ANY any principal 99 from any host", "NONE"),
        ],
    ),
    (
        "AlterClientQuotas", 1,
        {"entries": [{"entity": [{"entityType": "user", "entityName": None},
                                 {"entityType": "client-id", "entityName": "p"}],
                      "ops": [{"key": "producer_byte_rate", "value": 5.0, "remove": False},
                              {"key": "request_percentage", "value": 0.0, "remove": True}]}]},
        {"entries": [{"errorCode": 0, "entity": []}]},
        [("quota", "user (default), client-id p", "set producer_byte_rate, remove request_percentage", "NONE")],
    ),
    (
        "AlterUserScramCredentials", 0,
        {"deletions": [{"name": "bob", "mechanism": 1}],
         "upsertions": [{"name": "eve", "mechanism": 1, "iterations": 4096,
                         "salt": b64(b"secret"), "saltedPassword": b64(b"secret")}]},
        {"results": [{"user": "eve", "errorCode": 0}, {"user": "bob", "errorCode": 91}]},
        [("user", "bob", "removed", "RESOURCE_NOT_FOUND"), ("user", "eve", "set", "NONE")],
    ),
    (
        "DeleteGroups", 2, {"groupsNames": ["g"]},
        {"results": [{"groupId": "g", "errorCode": 68}]}, [("group", "g", "", "NON_EMPTY_GROUP")],
    ),
    (
        "OffsetDelete", 0, {"groupId": "g", "topics": []},
        {"errorCode": 69, "topics": []}, [("group", "g", "", "GROUP_ID_NOT_FOUND")],
    ),
    (
        "ElectLeaders", 2, {"electionType": 0, "topicPartitions": None, "timeoutMs": 1},
        {"errorCode": 0, "replicaElectionResults": []}, [("topic", "", "", "NONE")],
    ),
    (
        "ElectLeaders", 2,
        {"electionType": 1, "topicPartitions": [{"topic": "songs", "partitions": [0, 1]}], "timeoutMs": 1},
        {"errorCode": 0, "replicaElectionResults": [{"topic": "songs", "partitionResult": [
            {"partitionId": 0, "errorCode": 0, "errorMessage": None},
            {"partitionId": 1, "errorCode": 84, "errorMessage": None}]}]},
        [("topic", "songs", "partitions 0, 1 (unclean)", "ELECTION_NOT_NEEDED")],
    ),
    (
        "AlterReplicaLogDirs", 2,
        {"dirs": [{"path": "/disk2", "topics": [{"name": "songs", "partitions": [0, 1]}]},
                  {"path": "/disk3", "topics": [{"name": "films", "partitions": [2]}]}]},
        {"results": [{"topicName": "songs", "partitions": [{"partitionIndex": 0, "errorCode": 0},
                                                           {"partitionIndex": 1, "errorCode": 57}]},
                     {"topicName": "films", "partitions": [{"partitionIndex": 2, "errorCode": 0}]}]},
        [("topic", "songs", "partitions 0, 1 to /disk2", "LOG_DIR_NOT_FOUND"),
         ("topic", "films", "partition 2 to /disk3", "NONE")],
    ),
    (
        "AlterPartitionReassignments", 0,
        {"topics": [{"name": "songs", "partitions": [{"partitionIndex": 0, "replicas": [1]}]}], "timeoutMs": 1},
        {"errorCode": 0, "responses": [{"name": "songs", "partitions": [{"partitionIndex": 0, "errorCode": 39}]}]},
        [("topic", "songs", "partition 0", "INVALID_REPLICA_ASSIGNMENT")],
    ),
    (
        "UpdateFeatures", 1,
        {"timeoutMs": 1, "featureUpdates": [{"feature": "metadata.version", "maxVersionLevel": 25, "upgradeType": 1}]},
        {"errorCode": 0, "results": [{"feature": "metadata.version", "errorCode": 0}]},
        [("feature", "metadata.version", "to level 25", "NONE")],
    ),
    ("UnregisterBroker", 0, {"brokerId": 5}, {"errorCode": 102}, [("broker", "5", "", "BROKER_ID_NOT_REGISTERED")]),
]  # fmt: skip


@pytest.mark.parametrize(("api", "version", "asked", "answered", "expected"), CASES, ids=[case[0] for case in CASES])
def test_each_object_of_a_request_is_a_change_with_its_own_answer(api, version, asked, answered, expected):
    every = found(direct(api, version, asked, answered))
    assert [(one.object_type, one.object, one.details, one.error) for one in every] == expected
    assert "secret" not in str(every)


def test_every_action_names_arrays_and_fields_that_kafka_has():
    """A name that no version has would make a change without objects."""
    for api, action in ACTIONS.items():
        paths = {slot.path for slot in form(api, "request").root.walk()}
        answers = {slot.path for slot in form(api, "response").root.walk()}
        snake = {array: "".join(f"_{c.lower()}" if c.isupper() else c for c in array) for array in
                 (*action.requested, action.answered)}  # fmt: skip
        assert {snake[array] for array in action.requested} <= paths
        assert not action.answered or snake[action.answered] in answers


def test_what_does_not_decode_or_changes_nothing_is_no_change():
    broken = request("CreateTopics", 7, CREATE)
    talk = Talk(client=CLIENT, server=BROKER).open().request(broken[:-3] + b"\xff\xff\xff")
    assert found(talk.close()) == []
    assert (
        found(direct("Fetch", 4, {"replicaId": -1, "maxWaitMs": 1, "minBytes": 1, "topics": []}, {"responses": []}))
        == []
    )
    quorum = request("DescribeQuorum", 0, {"topics": []})
    assert found(envelope(quorum)) == []
    assert found() == []


@pytest.mark.parametrize(
    ("api", "topic", "details"),
    [
        ("ElectLeaders", {"topicPartitions": [{"topic": "songs", "partitions": [258, 259]}]}, "partitions ?"),
        (
            "AlterReplicaLogDirs",
            {"dirs": [{"path": "/data", "topics": [{"name": "songs", "partitions": [258, 259]}]}]},
            "partitions ? to /data",
        ),
    ],
)
def test_partitions_of_which_a_byte_was_not_captured_are_unknown(api, topic, details):
    segments = direct(api, 2, topic).segments
    number, request_bytes = next((i, s.payload) for i, s in enumerate(segments, 1) if s.payload)
    hole = (request_bytes.index(bytes([0, 0, 1, 2, 0, 0, 1, 3])) + 2, 3)
    (change,) = Changes().read([frames(segments, {number: [hole]})]).merged()
    assert (change.object, change.details) == ("songs", details)


@pytest.mark.parametrize(
    ("missing", "known"), [((), {"10.0.1.3:9092": 3, "10.0.1.4:9092": 4}), ((4,), {"10.0.1.3:9092": 3}), ((3, 4), {})]
)
def test_a_broker_whose_host_was_not_captured_names_no_address(missing, known):
    brokers = [{"nodeId": node, "host": f"10.0.1.{node}", "port": 9092} for node in (3, 4)]
    segments = direct("Metadata", 12, {"topics": []}, {"brokers": brokers}).segments
    number, answer = [(i, s.payload) for i, s in enumerate(segments, 1) if s.payload][-1]
    holes = [(answer.index(f"10.0.1.{node}".encode()), 8) for node in missing]
    assert Changes().read([frames(segments, {number: holes})]).brokers == known


def test_requests_beyond_the_bound_are_counted(monkeypatch):
    monkeypatch.setattr(audit, "MOST_CHANGES", 1)
    segments = direct("CreateTopics", 7, CREATE, CREATED).segments
    more = direct("DeleteTopics", 5, {"topicNames": ["songs"]}, at=SECOND, client=("10.0.4.12", 40009)).segments
    kept = Changes().read([frames([*segments, *more])])
    assert ([one.action for one in kept.merged()], kept.others) == (["CreateTopics"], 1)


def behind_a_proxy(*, at=5 * MS, answer=CREATED, client=(BROKER[0], 51000), took=100 * MS, name="songs"):
    """The same request out of the host that received it."""
    talk = Talk(client=client, server=CONTROLLER, ts_ns=START + at).open()
    asked = {**CREATE, "topics": [{**SONGS, "name": name}]}
    talk.request(request("CreateTopics", 7, asked, 3))
    talk.ts_ns += took
    if answer is not None:
        talk.response(response("CreateTopics", 7, answer, 3))
    return talk.close()


def when(segment):
    return segment.ts_ns


def made(*talks):
    segments = sorted((one for talk in talks for one in talk.segments), key=when)
    return [(one.host, one.error) for one in Changes().read([frames(segments)]).merged()]


def test_a_change_through_a_proxy_is_one_of_its_client():
    client = direct("CreateTopics", 7, CREATE, CREATED)
    assert made(client, behind_a_proxy()) == [(CLIENT[0], "NONE")]
    assert made(direct("CreateTopics", 7, CREATE), behind_a_proxy()) == [(CLIENT[0], "NONE")]
    assert made(client, behind_a_proxy(answer=None)) == [(CLIENT[0], "NONE")]


def test_a_change_through_a_proxy_keeps_its_address():
    talks = direct("CreateTopics", 7, CREATE, CREATED), behind_a_proxy()
    found = Changes().read([frames(sorted((one for talk in talks for one in talk.segments), key=when))])
    found.brokers["10.0.1.3:9092"] = 4
    assert [change.via_broker for change in found.merged()] == ["10.0.1.3:9092"]


@pytest.mark.parametrize(
    "other",
    [
        {"at": 300 * MS},
        {"took": 400 * MS},
        {"client": ("10.0.7.7", 51000)},
        {"name": "other", "answer": None},
        {"answer": {"topics": [{**CREATED["topics"][0], "errorCode": 36}]}},
    ],
    ids=["later", "answered-later", "another-host", "another-topic", "another-answer"],
)
def test_another_change_stays_one(other):
    assert len(made(direct("CreateTopics", 7, CREATE, CREATED), behind_a_proxy(**other))) == 2


def test_a_repeated_request_whose_answer_was_not_captured_stays_one():
    assert len(made(direct("CreateTopics", 7, CREATE), behind_a_proxy(at=100 * MS))) == 2


A, B = ("10.0.1.3", 9092), ("10.0.2.8", 9092)
CLUSTERS = ((A, "cluster-a", 3, ("10.0.1.9", 9093)), (B, "cluster-b", 8, ("10.0.2.9", 9093)))


def naming_their_clusters():
    """A client of each cluster asks for metadata."""
    for number, (server, cluster, node, _) in enumerate(CLUSTERS):
        talk = Talk(client=("10.0.4.20", 42000 + number), server=server, ts_ns=START - SECOND).open()
        brokers = [{"nodeId": node, "host": server[0], "port": server[1]}]
        talk.request(request("Metadata", 12, {"topics": []}))
        talk.response(response("Metadata", 12, {"brokers": brokers, "clusterId": cluster, "topics": []}))
        yield talk.close()


def in_two_clusters(*answers):
    """A script that does the same in two clusters at the same time."""
    for number, ((server, *_), answer) in enumerate(zip(CLUSTERS, answers, strict=True)):
        talk = Talk(client=("10.0.4.12", 40100 + number), server=server, ts_ns=START + number * MS).open()
        talk.request(request("CreateTopics", 7, CREATE))
        talk.ts_ns += 200 * MS
        if answer is not None:
            talk.response(response("CreateTopics", 7, answer))
        yield talk.close()


def envelopes_of_two(*answers):
    inner = request("CreateTopics", 7, CREATE)
    for number, ((server, _, node, controller), answer) in enumerate(zip(CLUSTERS, answers, strict=True)):
        talk = Talk(client=(server[0], 50000), server=controller, ts_ns=START + (5 + number) * MS).open()
        body = {"requestData": b64(inner[4:]), "requestPrincipal": b64((ALICE, ADMIN)[number])}
        body["clientHostAddress"] = b64(b"\x0a\0\4\x0c")
        header = {"correlationId": 1, "clientId": str(node)}
        talk.request(plain("Envelope", "request", 0, body, header))
        talk.ts_ns += 50 * MS
        answered = {"responseData": b64(response("CreateTopics", 7, answer)[4:])}
        talk.response(plain("Envelope", "response", 0, answered, {"correlationId": 1}))
        yield talk.close()


EXISTS = {"topics": [{"name": "songs", "errorCode": 36}]}


def test_the_same_request_in_two_clusters_is_two_changes():
    """By TLS: only the Envelopes are read. Where no cluster is known, the principals tell that they are two."""
    both = found(*envelopes_of_two(CREATED, EXISTS), *naming_their_clusters())
    assert [(one.cluster, one.principal, one.answer) for one in both] == [
        ("cluster-a", "User:alice", "ok"),
        ("cluster-b", "User:admin", "TOPIC_ALREADY_EXISTS"),
    ]
    unknown = found(*envelopes_of_two(CREATED, EXISTS))
    assert [(one.cluster, one.principal) for one in unknown] == [(None, "User:alice"), (None, "User:admin")]


def test_an_envelope_belongs_to_the_request_in_its_cluster():
    both = found(*in_two_clusters(None, None), *envelopes_of_two(CREATED, EXISTS), *naming_their_clusters())
    assert [(one.cluster, one.principal, one.answer) for one in both] == [
        ("cluster-a", "User:alice", "ok"),
        ("cluster-b", "User:admin", "TOPIC_ALREADY_EXISTS"),
    ]


def test_what_a_brokers_host_does_in_another_cluster_is_not_sent_on():
    """A script on the host of a broker does what a client does there, in another cluster."""
    client = direct("CreateTopics", 7, CREATE, CREATED)
    other = Talk(client=(A[0], 51000), server=B, ts_ns=START + 5 * MS).open()
    other.request(request("CreateTopics", 7, CREATE, 3))
    other.ts_ns += 50 * MS
    other.response(response("CreateTopics", 7, CREATED, 3))
    assert len(found(client, other.close())) == 1
    assert [one.cluster for one in found(client, other, *naming_their_clusters())] == ["cluster-a", "cluster-b"]


NAMES = [f"n{number}" for number in range(audit.MOST_TARGETS + 5)]


def test_of_too_many_objects_those_that_were_accepted_are_kept():
    """The accepted one is the last."""
    asked = {"topicNames": [*NAMES, "songs"]}
    answered = {"responses": [{"name": name, "errorCode": 0 if name == "songs" else 3} for name in asked["topicNames"]]}
    every = found(direct("DeleteTopics", 5, asked, answered))
    assert len(every) == audit.MOST_TARGETS
    assert [one.object for one in every if one.error == "NONE"] == ["songs"]


def test_of_too_many_requests_those_that_were_rejected_make_place(monkeypatch):
    monkeypatch.setattr(audit, "MOST_CHANGES", 3)
    refused = {"topics": [{"name": "songs", "errorCode": 36}]}
    talks = [
        direct("CreateTopics", 5, CREATE, refused, number * SECOND, client=("10.0.4.12", 41000 + number))
        for number in range(5)
    ]
    talks.append(direct("CreateTopics", 5, CREATE, CREATED, 9 * SECOND))
    segments = sorted((segment for talk in talks for segment in talk.segments), key=lambda one: one.ts_ns)
    changes = Changes().read([frames(segments)])
    assert [one.error for one in changes.merged()] == ["TOPIC_ALREADY_EXISTS", "TOPIC_ALREADY_EXISTS", "NONE"]
    assert changes.others == 3


def unreadable(message):
    """A newer version than any layout."""
    return message[:6] + b"\0\7" + message[8:]


def test_a_request_that_cannot_be_read_and_has_no_answer_is_counted():
    talk = Talk(client=CLIENT, server=BROKER).open().request(request("CreateTopics", 5, CREATE))
    talk.response(response("CreateTopics", 5, CREATED)).request(
        unreadable(request("DeleteTopics", 6, {}, number=8))
    ).close()
    changes = Changes().read([frames(talk.segments)])
    assert ([one.action for one in changes.merged()], changes.unread) == (["CreateTopics"], 1)


def test_the_objects_of_a_request_that_cannot_be_read_are_those_of_its_answer():
    """Its length is that of nothing that can be read; whoever answered it did."""
    message = bytearray(request("DeleteTopics", 5, {"topicNames": ["songs"]}))
    place = message.index(b"songs") - 1
    message[place] = 0x7F
    answer = response("DeleteTopics", 5, {"responses": [{"name": "songs", "errorCode": 0}]})
    talk = Talk(client=CLIENT, server=BROKER).open().request(bytes(message)).response(answer)
    (one,) = found(talk)
    assert (one.object, one.error, one.details) == ("songs", "NONE", audit.UNREAD)


def acl_of(principal, host="10.9.9.9", resource_type=2, name="songs"):
    one = {"resourceType": resource_type, "resourceName": name, "resourcePatternType": 3}
    one |= {"principal": principal, "host": host, "operation": 3, "permissionType": 3}
    return {"creations": [one]}


QUOTA = {"entries": [{"entity": [{"entityType": "user", "entityName": "carol, of CN=x"}], "ops": []}]}
SCRAM = {"upsertions": [{"name": "carol", "mechanism": 1, "iterations": 4096, "salt": "", "saltedPassword": ""}]}
OF_PRINCIPALS = [
    ("CreateAcls", 2, acl_of("User:carol"), "songs", "topic: ALLOW (left out) READ from (left out)"),
    ("CreateAcls", 2, acl_of("User:CN=carol READ from *"), "songs", "topic: ALLOW (left out) READ from (left out)"),
    ("CreateAcls", 2, acl_of("User:*", "*"), "songs", "topic: ALLOW User:* READ from *"),
    ("CreateAcls", 2, acl_of("User:*", "*", 7, "carol"), "(left out)", "user: ALLOW User:* READ from *"),
    ("AlterClientQuotas", 1, QUOTA, "(left out)", ""),
    ("AlterUserScramCredentials", 0, SCRAM, "(left out)", "set"),
    ("CreateDelegationToken", 3, {"ownerPrincipalType": "User", "ownerPrincipalName": "carol"}, "(left out)", ""),
]  # fmt: skip


@pytest.mark.parametrize(("api", "version", "asked", "name", "details"), OF_PRINCIPALS)
def test_without_principals_no_change_names_one(api, version, asked, name, details):
    (one,) = found(direct(api, version, asked))
    assert "carol" in f"{one.object} {one.details}" or "User:*" in one.details
    shown = one.without_principals()
    assert (shown.object, shown.details) == (name, details)
    assert "carol" not in str(shown)
    assert "10.9.9.9" not in str(shown)


def voting(leader, epoch, at=-20 * MS, voter=9, *, error=0, server=CONTROLLER, host="10.0.1.8"):
    """The leader of the quorum announces itself to a voter."""
    rows = [{"partitionIndex": 0, "leaderId": leader, "leaderEpoch": epoch}]
    body = {"voterId": voter, "topics": [{"topicName": "__cluster_metadata", "partitions": rows}]}
    talk = Talk(client=(host, 40000 + epoch), server=server, ts_ns=START + at).open()
    message = plain("BeginQuorumEpoch", "request", 1, body, {"correlationId": 3, "clientId": str(leader)})
    answer = {"errorCode": error}
    return talk.request(message).response(plain("BeginQuorumEpoch", "response", 1, answer, {"correlationId": 3}))


def describing(leader, epoch, server, client="10.9.9.7"):
    """A server says who leads the quorum, and that node 66 is the controller's address."""
    rows = [{"partitionIndex": 0, "leaderId": leader, "leaderEpoch": epoch}]
    body = {"topics": [{"topicName": "__cluster_metadata", "partitions": rows}]}
    node = {"nodeId": 66, "listeners": [{"name": "C", "host": CONTROLLER[0], "port": CONTROLLER[1]}]}
    talk = Talk(client=(client, 40000 + epoch), server=server, ts_ns=START - 10 * MS).open()
    talk.request(plain("DescribeQuorum", "request", 2, {}, {"correlationId": 3, "clientId": "x"}))
    return talk.response(plain("DescribeQuorum", "response", 2, {**body, "nodes": [node]}, {"correlationId": 3}))


@pytest.mark.parametrize(
    ("quorum", "node", "note"),
    [
        ([], "10.0.1.9:9093", ""),
        ([voting(9, 4)], "9", ""),
        ([voting(8, 3, at=-90 * MS), voting(9, 4)], "9", ""),
        ([voting(8, 4)], "9", "(node 9 does not lead the quorum, node 8 does)"),
        ([voting(9, 3, at=-90 * MS), voting(8, 4)], "9", "(node 9 does not lead the quorum, node 8 does)"),
        ([voting(9, 4), voting(8, 5, at=900 * MS)], "9", ""),
    ],
)
def test_who_answered_a_forwarded_request_is_the_node_that_the_broker_asked(quorum, node, note):
    """Also where the client's own request was not seen, as with TLS."""
    inner, answer = request("CreateTopics", 7, CREATE), response("CreateTopics", 7, CREATED)
    for talks in ([direct("CreateTopics", 7, CREATE, CREATED)], []):
        (one,) = found(*quorum, *talks, envelope(inner, answer))
        assert (one.answered_by, one.details) == (node, f"2 partitions, replication factor 3 {note}".strip())


OUTSIDE = ("10.9.9.6", 9093)
OUTSIDERS = {
    "refused": voting(77, 99, voter=77, error=31, host="10.9.9.7"),
    "a server of its own": voting(77, 99, voter=77, server=OUTSIDE, host="10.9.9.7"),
    "a description of its own": describing(77, 99, OUTSIDE),
}


@pytest.mark.parametrize("name", OUTSIDERS)
def test_what_no_node_of_the_quorum_granted_or_states_names_nobody(name):
    inner, answer = request("CreateTopics", 7, CREATE), response("CreateTopics", 7, CREATED)
    (one,) = found(OUTSIDERS[name], envelope(inner, answer))
    assert (one.answered_by, one.details) == ("10.0.1.9:9093", "2 partitions, replication factor 3")


def test_the_broker_that_forwards_may_say_who_leads():
    inner, answer = request("CreateTopics", 7, CREATE), response("CreateTopics", 7, CREATED)
    (one,) = found(describing(77, 99, BROKER), envelope(inner, answer))
    assert (one.answered_by, one.details.partition("(")[2]) == ("66", "node 66 does not lead the quorum, node 77 does)")


def test_of_a_request_that_a_broker_answered_itself_or_that_was_refused_no_other_node_answered():
    (one,) = found(direct("CreateTopics", 7, CREATE, CREATED))
    (refused,) = found(envelope(request("CreateTopics", 7, CREATE), error=31))
    assert (one.answered_by, refused.answered_by) == (None, None)


@pytest.mark.parametrize(("source", "named"), [("a.pcap", [None, "User:alice"]), ("b.pcap", [None, None])])
def test_of_equal_requests_time_names_one_only_where_one_clock_has_them_all(source, named):
    """Two people run one command within seconds, and one Envelope was lost. By another clock it may be of either."""
    inner, answer = request("CreateTopics", 7, CREATE), response("CreateTopics", 7, CREATED)
    asked = [
        direct("CreateTopics", 7, CREATE, CREATED, at=number * SECOND, client=(CLIENT[0], 40000 + number))
        for number in range(2)
    ]
    sent = frames(envelope(inner, answer, at=SECOND + 5 * MS).segments, source=source)
    every = [frames([segment for talk in asked for segment in talk.segments]), sent]
    assert [one.principal for one in Changes().read(every).merged()] == named
