"""What a capture shows of one name: built messages through the follower, and a real cluster against its truth."""

from dataclasses import replace

import pytest

from tests.questions.test_traffic import MS, SECOND, capture, exchange, fetch, produce, talking
from tests.traffic import Talk
from wirecheck.questions.subject import Subject
from wirecheck.questions.subject_facts import kinds_of, sections

OLD, NEW = "JMxDMvfeRaOyTjPWGqDRbA", "qC48IeRqScOXv2y8GPXuKw"


def about(name, *talks, kind=None, at_ns=None):
    segments = [capture(*talks)]
    subject = Subject(name).read(segments)
    return sections(subject, kind or kinds_of(subject)[0], at_ns)


def metadata(talk, number, topic_id=OLD, leader=1, isr=(1, 2), brokers=((1, "10.0.1.3", 9092),)):
    partition = {"errorCode": 0, "partitionIndex": 0, "leaderId": leader, "leaderEpoch": 3, "replicaNodes": [1, 2],
                 "isrNodes": list(isr), "offlineReplicas": []}  # fmt: skip
    topic = {"errorCode": 0, "name": "orders", "topicId": topic_id, "isInternal": False, "partitions": [partition]}
    nodes = [{"nodeId": node, "host": host, "port": port, "rack": None} for node, host, port in brokers]
    answer = {"throttleTimeMs": 0, "brokers": nodes, "clusterId": "c", "controllerId": 1, "topics": [topic]}
    asked = {"topics": None, "allowAutoTopicCreation": False, "includeTopicAuthorizedOperations": False}
    exchange(talk, "Metadata", 12, asked, answer, number)


def join(talk, number, member, generation, reason=None, wait_ms=100, **more):
    asked = {"groupId": "billing", "sessionTimeoutMs": 1, "rebalanceTimeoutMs": 1, "memberId": member,
             "groupInstanceId": None, "protocolType": "consumer", "protocols": [], "reason": reason}  # fmt: skip
    answer = {"throttleTimeMs": 0, "errorCode": 0, "generationId": generation, "protocolType": "consumer",
              "protocolName": "range", "leader": "m-1", "skipAssignment": False, "memberId": member,
              "members": []}  # fmt: skip
    exchange(talk, "JoinGroup", 9, asked, answer, number, wait_ms=wait_ms, **more)


def leave(talk, number, member, reason, error=0, **more):
    one = {"memberId": member, "groupInstanceId": None, "reason": reason}
    answer = {"throttleTimeMs": 0, "errorCode": error, "members": []}
    exchange(talk, "LeaveGroup", 5, {"groupId": "billing", "members": [one]}, answer, number, **more)


def test_who_writes_reads_and_follows_a_topic():
    talk, other = talking(), talking(("10.0.1.4", 50000), at=MS)
    metadata(talk, 1)
    produce(talk, 2, 0)
    fetch(talk, 3)
    fetch(other, 1, replica=2, client_id="broker-2-fetcher-0")
    found = about("orders", talk.close(), other.close())
    assert [fact.who for fact in found["Written by"]] == ["billing-7 10.0.4.12"]
    assert [fact.who for fact in found["Read by"]] == ["billing-7 10.0.4.12"]
    assert [fact.who for fact in found["Followers"]] == ["broker 2"]
    assert [(fact.what, fact.count) for fact in found["Topic IDs"]] == [(OLD, 1)]


@pytest.mark.parametrize(("again_s", "late"), [(0, False), (20, True)])
def test_a_broker_that_repeats_what_others_replaced_is_marked(again_s, late):
    """One that was not asked again is not: it may know by now."""
    brokers = (1, "10.0.1.3", 9092), (2, "10.0.1.4", 9092)
    first, second = talking(), talking(at=5 * SECOND)
    second.server = ("10.0.1.4", 9092)
    metadata(first, 1, OLD, brokers=brokers)
    metadata(second, 1, NEW, brokers=brokers)
    if again_s:
        first.ts_ns += again_s * SECOND
        metadata(first, 2, OLD, brokers=brokers)
    found = about("orders", first.close(), second.close())["Partitions, as brokers describe them"]
    assert {(fact.who, fact.wrong) for fact in found} == {("broker 1", late), ("broker 2", False)}


def test_partitions_as_they_were_described_at_a_time():
    talk = talking()
    metadata(talk, 1, leader=1)
    then_ns = talk.ts_ns + SECOND
    talk.ts_ns += 10 * SECOND
    metadata(talk, 2, leader=2, isr=(2,))
    talk.close()
    for at_ns, leader in ((then_ns, "leader 1 "), (None, "leader 2 ")):
        (fact,) = about("orders", talk, at_ns=at_ns)["Partitions, as brokers describe them"]
        assert fact.details.startswith(leader)


def test_each_rebalance_has_its_trigger_and_duration():
    first, second = talking(), talking(("10.0.4.13", 40000))
    join(first, 1, "m-1", 1)
    second.ts_ns = first.ts_ns + 10 * SECOND
    join(second, 1, "m-2", 2, reason="rebalance enforced", wait_ms=900, client_id="shop")
    first.ts_ns = second.ts_ns - 800 * MS
    join(first, 2, "m-1", 2, wait_ms=700)
    second.ts_ns += 20 * SECOND
    leave(second, 2, "m-2", "the consumer is being closed", client_id="shop")
    first.ts_ns = second.ts_ns + SECOND
    join(first, 3, "m-1", 3)
    found = about("billing", first.close(), second.close(), kind="group")
    assert [(fact.what, fact.who, fact.details.partition(";")[0]) for fact in found["Rebalances"]] == [
        ("generation 3", "shop 10.0.4.13", "member left: the consumer is being closed"),
        ("generation 2", "shop 10.0.4.13", "member joined: rebalance enforced"),
        ("generation 1", "billing-7 10.0.4.12", "first seen"),
    ]
    assert "took 0.9 s, 2 members" in found["Rebalances"][1].details
    assert {fact.what for fact in found["Members"]} == {"m-1", "m-2"}


@pytest.mark.parametrize(("error", "leaves"), [(0, True), (25, True), (16, False)])
def test_a_member_that_another_broker_than_the_coordinator_refuses_to_let_go_stays(error, leaves):
    """NOT_COORDINATOR (16) refuses; UNKNOWN_MEMBER_ID (25) says that it is gone."""
    first, second = talking(), talking(("10.0.4.13", 40000))
    join(first, 1, "m-1", 1)
    join(second, 1, "m-2", 1, client_id="shop")
    leave(second, 2, "m-2", "the consumer is being closed", error, client_id="shop")
    first.ts_ns = second.ts_ns + SECOND
    join(first, 3, "m-1", 2)
    found = about("billing", first.close(), second.close(), kind="group")
    assert ("member left" in found["Rebalances"][0].details) is leaves


def test_a_member_that_does_not_rejoin_timed_out():
    first, second = talking(), talking(("10.0.4.13", 40000))
    join(first, 1, "m-1", 1)
    join(second, 1, "m-2", 1, client_id="shop")
    first.ts_ns += 60 * SECOND
    join(first, 2, "m-1", 2)
    rebalances = about("billing", first.close(), second.close(), kind="group")["Rebalances"]
    assert rebalances[0].who == "shop 10.0.4.13"
    assert rebalances[0].details.startswith("session timeout: did not rejoin;")


@pytest.mark.parametrize("reason", [
    "need to re-join with the given member-id: m-2", "rebalance failed due to MemberIdRequiredException",
])  # fmt: skip
def test_a_new_member_that_had_to_ask_for_its_id_gives_no_other_reason(reason):
    """KIP-394: its second request is the one that joins."""
    first, second = talking(), talking(("10.0.4.13", 40000), at=5 * SECOND)
    join(first, 1, "m-1", 1)
    join(second, 1, "m-2", 2, reason=reason, client_id="shop")
    first.ts_ns = second.ts_ns
    join(first, 2, "m-1", 2)
    rebalances = about("billing", first.close(), second.close(), kind="group")["Rebalances"]
    assert (rebalances[0].who, rebalances[0].details.partition(";")[0]) == ("shop 10.0.4.13", "member joined")


def beat(talk, number, member, epoch, given, **more):
    asked = {"groupId": "billing", "memberId": member, "memberEpoch": epoch, "instanceId": None, "rackId": None,
             "rebalanceTimeoutMs": -1, "subscribedTopicNames": None, "subscribedTopicRegex": None,
             "serverAssignor": None, "topicPartitions": None}  # fmt: skip
    answer = {"throttleTimeMs": 0, "errorCode": 0, "errorMessage": None, "memberId": member, "memberEpoch": given,
              "heartbeatIntervalMs": 1000, "assignment": None}  # fmt: skip
    exchange(talk, "ConsumerGroupHeartbeat", 1, asked, answer, number, **more)


def test_epochs_of_a_group_and_who_moved_it_on():
    """KIP-848: a member that joins or leaves moves the group on; otherwise the cause is not on the wire."""
    first, second = talking(), talking(("10.0.4.13", 40000), at=5 * SECOND)
    beat(first, 1, "m-1", 0, 1)
    beat(second, 1, "m-2", 0, 2, client_id="shop")
    for number, at_s, epoch, given in ((2, 1, 1, 2), (3, 10, 2, 3), (4, 21, 3, 4)):
        first.ts_ns = second.ts_ns + at_s * SECOND
        beat(first, number, "m-1", epoch, given)
    second.ts_ns += 11 * SECOND
    beat(second, 2, "m-2", 2, 3, client_id="shop")
    second.ts_ns += 9 * SECOND
    beat(second, 3, "m-2", -1, -1, client_id="shop")
    found = about("billing", first.close(), second.close(), kind="group")
    assert [(fact.what, fact.who, fact.details.partition(";")[0]) for fact in found["Rebalances"]] == [
        ("epoch 4", "shop 10.0.4.13", "member left"),
        ("epoch 3", "", "cause not seen"),
        ("epoch 2", "shop 10.0.4.13", "member joined"),
        ("epoch 1", "billing-7 10.0.4.12", "first seen"),
    ]
    assert [fact.details for fact in found["Members"]] == ["epoch 4", "epoch 3"]


def test_a_broker_by_its_id_and_by_its_address():
    talk = talking()
    metadata(talk, 1)
    produce(talk, 2, 6)
    talk.close()
    for name in ("1", "10.0.1.3:9092", "10.0.1.3"):
        found = about(name, talk, kind="broker")
        assert [fact.what for fact in found["Errors returned"]] == ["NOT_LEADER_OR_FOLLOWER"]
        assert {fact.what for fact in found["Requests"]} == {"Produce", "Metadata"}


def test_a_client_with_connections_that_failed():
    talk = talking()
    refused = Talk(client=("10.0.4.12", 40001), server=("10.0.1.9", 9092), ts_ns=talk.ts_ns + SECOND).open()
    del refused.segments[1:]
    produce(talk, 1, 0)
    found = about("billing-7", talk.close(), refused, kind="client")
    (served,) = found["Connections"]
    assert (served.what, served.details) == ("10.0.1.3:9092", "1 closed by the client, round trip 2.0 ms")
    (failed,) = found["Connections without a request, of the same hosts"]
    assert (failed.what, failed.details, failed.wrong) == ("10.0.1.9:9092", "1 never answered", True)


def test_a_slow_broker_and_a_slow_network_are_told_apart():
    """Both answer after 21 ms as their client sees it."""
    near, far = talking(), talking(("10.0.4.13", 40000))
    syn, answer, ack = far.segments
    far.segments[1:] = [replace(answer, ts_ns=syn.ts_ns + 10 * MS), replace(ack, ts_ns=syn.ts_ns + 20 * MS)]
    far.ts_ns += 20 * MS
    exchange(near, "Heartbeat", 4, BEAT, ALIVE, 1, wait_ms=20)
    exchange(far, "Heartbeat", 4, BEAT, ALIVE, 1, wait_ms=10, client_id="far")
    details = {
        name: about(name, near.close(), far.close(), kind="client")["Requests"][0].details
        for name in ("billing-7", "far")
    }
    assert details == {
        "billing-7": "p50 20.8 ms, p99 20.8 ms; broker p50 19.9 ms, p99 19.9 ms; network p50 2.0 ms, p99 2.0 ms",
        "far": "p50 10.9 ms, p99 10.9 ms; broker p50 1.0 ms, p99 1.0 ms; network p50 19.9 ms, p99 19.9 ms",
    }


BEAT = {"groupId": "billing", "generationId": 1, "memberId": "m-1", "groupInstanceId": None}
ALIVE = {"throttleTimeMs": 0, "errorCode": 0}


def test_a_group_of_which_only_heartbeats_were_captured_is_known():
    talk = talking()
    exchange(talk, "Heartbeat", 4, BEAT, ALIVE, 1)
    (member,) = about("billing", talk.close(), kind=None)["Members"]
    assert (member.what, member.who, member.details) == ("m-1", "billing-7 10.0.4.12", "generation 1")


def test_a_name_that_was_not_seen():
    talk = talking()
    produce(talk, 1, 0)
    assert kinds_of(Subject("nosuch").read([capture(talk.close())])) == []
