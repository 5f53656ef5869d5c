"""Cases of the CLI checks, in bytes: clients that get nowhere, and those who only look like one."""

import base64
import struct

from tests.judge.cases_versions import ranges
from tests.judge.lab import B1, B2, CLUSTER, ID_1, ID_2, disagrees_at, disagrees_later, lacks, ns
from wirecheck.decode.connection.exchanges import CLOSED_BY_CLIENT, CLOSED_BY_SERVER, NO_RESPONSE_DUE
from wirecheck.decode.connection.framing.recognise import hash_of_client
from wirecheck.decode.group_protocol import POLL_EXPIRED, UNSUBSCRIBED

GREETING = {"clientSoftwareName": "apache-kafka-java", "clientSoftwareVersion": "3.7.0"}
CONTROLLER = ranges("4.4.0", "C")
BROKER = ranges("3.9.1")


def advertised(found):
    keys = [{"apiKey": key, "minVersion": low, "maxVersion": high} for key, (low, high) in found.items()]
    return {"errorCode": 0, "apiKeys": keys}


def greet(talk, at, found=BROKER):
    return talk.ask(at, "ApiVersions", 3, GREETING, advertised(found))


def shut_out(lab, count=12, every=1.0, api="Metadata", version=12, greeted=True, outcome=CLOSED_BY_SERVER, **facts):
    """A listener that wants something else closes each connection."""
    for number in range(count):
        at = 1 + number * every
        talk = lab.talk(client_id="app", host="10.0.0.7", over=True, **facts)
        if greeted:
            greet(talk, at)
        talk.ask(at + 0.01, api, version, {"topics": None}, outcome=outcome)
        talk.closed = at + 0.02
    lab.until = count * every + 40


def served(lab, until, host="10.0.0.8"):
    for at in range(0, int(until), 2):
        lab.metadata(at, talk=lab.talk(client_id="other", host=host))


@disagrees_at(1)
def cli001_fires(lab):
    shut_out(lab)
    served(lab, 30)


def cli001_fires__not_even_greeted(lab):
    shut_out(lab, greeted=False)


def cli001_fires__answered_at_last(lab):
    shut_out(lab, count=40)
    lab.metadata(60, talk=lab.talk(client_id="app", host="10.0.0.7"))


def cli001_near_miss(lab):
    lab.metadata(0, talk=lab.talk(client_id="app", host="10.0.0.7"))
    shut_out(lab)


def cli001_near_miss__the_client_closes(lab):
    """A probe that does not wait."""
    shut_out(lab, outcome=CLOSED_BY_CLIENT)


def cli001_near_miss__a_broker_restarts(lab):
    """For some seconds; then it answers."""
    shut_out(lab, count=12, every=0.6)
    lab.metadata(12, talk=lab.talk(client_id="app", host="10.0.0.7"))


def cli001_near_miss__a_version_that_is_rejected(lab):
    """VER001's affair, with another client on that host that is served."""
    served(lab, 30, host="10.0.0.7")
    for number in range(12):
        talk = greet(lab.talk(client_id="app", host="10.0.0.7", over=True), 1 + number, {**BROKER, 0: (3, 10)})
        talk.refused(1.01 + number, "Produce", 2)
    lab.until = 60


def at_two_brokers(lab, count=6):
    """It asks one after the other."""
    for number in range(2 * count):
        at = 1 + 2 * number
        talk = greet(lab.talk((B1, B2)[number % 2], "app", "10.0.0.7", over=True), at)
        talk.ask(at + 0.01, "Metadata", 12, {"topics": None}, outcome=CLOSED_BY_SERVER)
        talk.closed = at + 0.02
    served(lab, 30)
    lab.until = 60


def cli001_fires__in_turn(lab):
    at_two_brokers(lab)


def cli001_near_miss__in_turn_and_one_answers(lab):
    at_two_brokers(lab)
    lab.metadata(2, talk=lab.talk(B2, "app", "10.0.0.7"))


def cli001_near_miss__few(lab):
    """Before any greeting, as while a broker behind a load balancer restarts."""
    shut_out(lab, count=6, every=3.0, greeted=False)


def cli001_fires__few_after_a_greeting(lab):
    """franz-go at a SASL listener: 9 requests, and it gives up."""
    shut_out(lab, count=9, every=2.5)


def cli001_near_miss__few_after_a_greeting_and_for_seconds(lab):
    """A proxy answers ApiVersions itself, and its broker restarts."""
    shut_out(lab, count=6, every=1.5)


def cli001_near_miss__few_after_a_greeting_and_then_served(lab):
    shut_out(lab, count=6, every=3.0)
    lab.metadata(20, talk=lab.talk(client_id="app", host="10.0.0.7"))


def unheard(lab, waits=2.0, every=4.0, count=20, api="ApiVersions", version=3, request=GREETING, **facts):
    """A server accepts connections and reads requests; the client gives up and connects again."""
    for number in range(count):
        at = 1 + number * every
        talk = lab.talk(client_id="app", host="10.0.0.7", over=True, closed_by="client-fin", **facts)
        talk.ask(at, api, version, request, outcome=CLOSED_BY_CLIENT)
        talk.closed = at + waits
    lab.until = count * every + 80


def cli001_fires__no_response_at_all(lab):
    """kafka-python waits 2 s for the first response."""
    unheard(lab)
    (found,) = lab.findings("CLI001")
    assert found["summary"].startswith("10.0.0.1:9092 sent no response on 20 connections of app: it answered nothing")


def cli001_fires__few_and_slow(lab):
    unheard(lab, waits=9, every=31, count=3)


def cli001_near_miss__no_response_and_another_check_says_so(lab):
    """WIR007's affair: the client waits for half a minute each time."""
    unheard(lab, waits=30, every=31, count=6)
    (found,) = lab.findings("WIR007")
    assert "never" in {word["name"] for word in found["words"]}


def cli001_near_miss__a_probe_that_does_not_wait(lab):
    unheard(lab, waits=0.5, every=2, count=60)


def cli001_near_miss__no_response_for_less_than_a_minute(lab):
    """As long as a broker is paused, or restarts behind a load balancer."""
    unheard(lab, count=14)


def cli001_near_miss__no_response_while_a_broker_is_paused(lab):
    """It answered before."""
    lab.metadata(0, talk=lab.talk(client_id="app", host="10.0.0.7"))
    unheard(lab)


def cli001_near_miss__it_waits_for_the_members_of_a_group(lab):
    """A rebalance takes long; its client is restarted again and again."""
    unheard(lab, api="JoinGroup", version=5, request={"groupId": "g"})


def cli001_near_miss__it_lets_the_server_take_so_long(lab):
    """A Fetch that may wait for records."""
    unheard(lab, api="Fetch", version=11, request={"maxWaitMs": 5000, "topics": [], "forgottenTopicsData": []})


def cli001_cannot_know__a_response_was_not_captured(lab):
    unheard(lab, unseen_response_bytes=40)


def cli001_cannot_know(lab):
    """Bytes of the answers are missing."""
    shut_out(lab, unseen_response_bytes=40)


def other_protocol(lab, protocol, count=4, **facts):
    for number in range(count):
        talk = lab.talk(client_id="app", host="10.0.0.7", over=True, requests=1, answered_in=protocol, **facts)
        talk.ask(1 + number, "ApiVersions", 3, GREETING, outcome=CLOSED_BY_SERVER)
        talk.closed = 1.1 + number
    lab.until = 60


@disagrees_at(1)
def cli002_fires(lab):
    other_protocol(lab, "http")


def cli002_fires__tls(lab):
    other_protocol(lab, "tls", count=12)


def cli001_near_miss__another_protocol(lab):
    """CLI002's affair."""
    other_protocol(lab, "tls", count=20)


def cli002_near_miss(lab):
    other_protocol(lab, "http")
    served(lab, 10)


def cli002_near_miss__once(lab):
    other_protocol(lab, "ssh", count=2)


def cli002_cannot_know(lab):
    """What came first was not captured."""
    other_protocol(lab, None)


CONTROLLER_1, CONTROLLER_2 = "10.0.0.1:9093", "10.0.0.2:9093"


def at_a_controller(lab, times=1):
    for number in range(times):
        greet(lab.talk(CONTROLLER_1, "app", "10.0.0.7"), 1 + number, CONTROLLER)
    served(lab, 60)
    lab.until = 90


@disagrees_at(1)
def cli003_fires(lab):
    at_a_controller(lab)


def cli003_fires__again_and_again(lab):
    at_a_controller(lab, times=10)


def cli003_fires__asks_what_is_not_offered(lab, until=40):
    """franz-go sends Metadata nevertheless; the controller closes."""
    for at in range(1, until, 3):
        talk = greet(lab.talk(CONTROLLER_1, "app", "10.0.0.7", over=True), at, CONTROLLER)
        talk.ask(at + 0.01, "Metadata", 12, {"topics": None}, outcome=CLOSED_BY_SERVER)
        talk.closed = at + 0.02
    served(lab, 60, host="10.0.0.7")
    lab.until = 90


def cli001_near_miss__a_controller(lab):
    """CLI003's affair."""
    cli003_fires__asks_what_is_not_offered(lab)


def cli003_fires__until_the_end(lab):
    """It still asks for versions when the capture ends."""
    at_a_controller(lab, times=40)
    lab.until = 42


def cli003_fires__at_each_controller(lab):
    """librdkafka and sarama connect to all servers that they were given."""
    for number, server in enumerate((CONTROLLER_1, CONTROLLER_2)):
        greet(lab.talk(server, "app", "10.0.0.7"), 1 + number, CONTROLLER)
    served(lab, 60)
    lab.until = 90
    assert len(lab.findings("CLI003")) == 2


def cli003_cannot_know__what_one_of_them_answered(lab):
    at_a_controller(lab)
    lab.talk(CONTROLLER_2, "app", "10.0.0.7").ask(2, "ApiVersions", 3, GREETING, outcome=CLOSED_BY_CLIENT)


def cli003_near_miss(lab):
    """bootstrap.controllers (KIP-919)."""
    talk = greet(lab.talk(CONTROLLER_1, "admin", "10.0.0.7"), 1, CONTROLLER)
    talk.ask(1.1, "DescribeCluster", 1, {"endpointType": 2}, {"errorCode": 0, "endpointType": 2})
    lab.until = 90


def cli003_near_miss__a_broker(lab):
    greet(lab.talk(CONTROLLER_1, "2", "10.0.0.2"), 1, CONTROLLER)
    lab.until = 90


def cli003_near_miss__a_probe_of_brokers(lab):
    for server in (B1, B2, CONTROLLER_1):
        greet(lab.talk(server, "probe", "10.0.0.7"), 1, CONTROLLER if server == CONTROLLER_1 else BROKER)
    lab.until = 90


def cli003_near_miss__just_now(lab):
    at_a_controller(lab)
    lab.talks = lab.talks[:1]
    lab.until = 20


def cli003_cannot_know(lab):
    """What the server answered was not captured."""
    lab.talk(CONTROLLER_1, "app", "10.0.0.7").ask(1, "ApiVersions", 3, GREETING, outcome=CLOSED_BY_CLIENT)
    lab.until = 90


def write(talk, at, error=0):
    row = {"index": 0, "errorCode": error, "baseOffset": 7}
    asked = {"acks": -1, "timeoutMs": 30000, "topicData": [{"name": "songs", "partitionData": [{"index": 0}]}]}
    talk.ask(at, "Produce", 9, asked, {"responses": [{"name": "songs", "partitionResponses": [row]}]})


def connected(lab):
    name = b"writer"
    return lab.talk(B1, "writer", "10.0.0.7", over=True, client_hash=hash_of_client(name, len(name))[0])


def writer(lab, error=3, until=60, after=()):
    talk = connected(lab)
    for at in range(until):
        write(talk, at)
    write(talk, until, error)
    for at in after:
        write(talk, at)
    for at in range(until + 5, until + 60, 5):
        talk.ask(at, "Metadata", 12, {"topics": []}, {"brokers": [], "topics": []})
    lab.until = until + 70


@disagrees_later("what stays away: from the last answer")
def cli005_fires(lab):
    writer(lab)


def write_by_id(talk, at, error=0):
    row = {"index": 0, "errorCode": error, "baseOffset": 7}
    asked = {"acks": -1, "timeoutMs": 30000, "topicData": [{"topicId": ID_1, "partitionData": [{"index": 0}]}]}
    talk.ask(at, "Produce", 13, asked, {"responses": [{"topicId": ID_1, "partitionResponses": [row]}]})


def cli005_fires__by_id(lab):
    lab.metadata(0, [("songs", ID_1)])
    talk = connected(lab)
    for at in range(60):
        write_by_id(talk, at)
    write_by_id(talk, 60, 100)
    for at in range(65, 120, 5):
        talk.ask(at, "Metadata", 12, {"topics": []}, {"brokers": [], "topics": []})
    lab.until = 130


def cli005_near_miss__by_id_from_then_on(lab):
    """The brokers were upgraded meanwhile."""
    lab.metadata(0, [("songs", ID_1)])
    writer(lab)
    talk = connected(lab)
    for at in range(61, 120):
        write_by_id(talk, at)


def cli005_fires__and_it_is_restarted(lab):
    """A new process, under the same client ID."""
    writer(lab)
    talk = connected(lab)
    for at in range(125, 150):
        write(talk, at)
    lab.until = 160
    assert [finding["kind"] for finding in lab.findings("CLI005")] == ["anomaly"]


def cli005_near_miss__another_connection_of_one_process(lab):
    """It pauses, and goes on at another broker; the first connection stays."""
    writer(lab, until=50)
    talk = connected(lab)
    for at in range(90, 105):
        write(talk, at)


def cli005_near_miss(lab):
    writer(lab, error=47)


def cli005_near_miss__a_cron_job(lab):
    """It wrote for a few seconds only."""
    writer(lab, until=5)


def cli005_near_miss__it_goes_on(lab):
    writer(lab, after=(75, 100))


def cli005_near_miss__no_error(lab):
    writer(lab, error=0)


def cli005_near_miss__it_ended(lab):
    talk = connected(lab)
    for at in range(60):
        write(talk, at)
    write(talk, 60, 3)
    lab.until = 200


def sends_nothing_more(lab, **facts):
    """An idempotent producer of kafka-python: no write, no Metadata, and the connection stays."""
    for at in range(0, 200, 20):
        lab.metadata(at, [("songs", ID_1)], brokers={B1: 1}, talk=lab.talk(client_id="other", host="10.0.0.8"))
    talk = connected(lab)
    talk.facts |= facts
    for at in range(60):
        write(talk, at)
    write(talk, 60, 29)
    lab.until = 200


def cli005_fires__it_sends_nothing_more(lab):
    sends_nothing_more(lab)


def cli005_near_miss__it_closes_its_connection(lab):
    sends_nothing_more(lab, close_ns=ns(62), closed_by="client-fin")


def cli005_cannot_know__bytes_are_missing(lab):
    sends_nothing_more(lab, unseen_request_bytes=100)


def cli005_fires__a_leader_that_moved(lab):
    """All brokers were captured."""
    lab.metadata(1, [("songs", ID_1)], brokers={B1: 1})
    writer(lab, error=6)


def cli005_cannot_know__a_leader_that_moved_to_a_broker_not_captured(lab):
    lab.metadata(1, [("songs", ID_1)], brokers={B1: 1, B2: 2})
    writer(lab, error=6)


def cli005_cannot_know__a_leader_that_moved_where_no_answer_lists_brokers(lab):
    writer(lab, error=6)


def cli005_cannot_know__a_topic_that_comes_back_at_a_broker_not_captured(lab):
    lab.metadata(1, [("songs", ID_1)], brokers={B1: 1, B2: 2})
    lab.deleted(59, "songs", ID_1)
    lab.metadata(62, [("songs", ID_2)], brokers={B1: 1, B2: 2})
    writer(lab)


def cli005_fires__a_topic_that_came_back_is_deleted_later(lab):
    """It wrote to the new one for a minute, at the broker that was captured."""
    lab.metadata(0, [("songs", ID_1)], brokers={B1: 1, B2: 2})
    lab.deleted(3, "songs", ID_1)
    lab.metadata(5, [("songs", ID_2)], brokers={B1: 1, B2: 2})
    lab.deleted(59.5, "songs", ID_2)
    writer(lab)


def cli005_cannot_know(lab):
    """The capture ends soon after the error."""
    writer(lab)
    for talk in lab.talks:
        last = next(i for i, one in enumerate(talk.messages) if one[5] > 70)
        talk.messages = talk.messages[: last - last % 2]
        talk.exchanges = talk.exchanges[: len(talk.messages) // 2]
    lab.until = 72
    assert ns(lab.until)


# CLI006


@disagrees_at(20)
def cli006_fires(lab):
    """An ACL was removed."""
    talk = connected(lab)
    for at in range(100):
        write(talk, at, 29 if at >= 20 else 0)
    lab.until = 130


def cli006_fires__in_part(lab):
    """One record in three is too large."""
    talk = connected(lab)
    for at in range(150):
        write(talk, at, 10 if at % 3 == 0 else 0)
    lab.until = 160


def cli006_fires__never_granted(lab):
    talk = connected(lab)
    for at in range(0, 100, 2):
        write(talk, at, 29)
    lab.until = 130


def refused(lab, api, version, response, request=(), until=100, every=2, client_id="app"):
    talk = lab.talk(client_id=client_id, host="10.0.0.7")
    for at in range(0, until, every):
        talk.ask(at, api, version, dict(request), response(at) if callable(response) else response)
    lab.until = until + 30


def writes_seldom(lab, errors, every=20):
    talk = connected(lab)
    for number, error in enumerate(errors):
        write(talk, number * every, error)
        if error and error != TOO_LARGE:
            write(talk, number * every + 1)
    lab.until = len(errors) * every


TOO_LARGE = 10


def ends_seldom(lab, errors, every=15):
    """Each transaction lasts longer than its time-out; now and then the coordinator does not see it in time."""
    ended = {"transactionalId": "tx-1", "producerId": 7, "committed": True}
    talk = lab.talk(client_id="app", host="10.0.0.7")
    for number, error in enumerate(errors):
        talk.ask(number * every, "EndTxn", 4, ended, {"errorCode": error})
    lab.until = len(errors) * every


def cli006_fires__transactions_that_end_too_late(lab):
    ends_seldom(lab, [0, 47, 47] * 4)


def cli006_fires__one_of_two_writes_of_who_writes_seldom(lab):
    writes_seldom(lab, [0, TOO_LARGE] * 7)


def cli006_near_miss__who_writes_seldom_meets_each_restart(lab):
    """Each broker is restarted; the write is sent again, and is granted."""
    writes_seldom(lab, [0, 6] * 7)


def cli006_fires__each_transaction_after_a_pause(lab):
    """INVALID_PRODUCER_ID_MAPPING: its transactional ID expires between its transactions; the next attempt succeeds."""
    writes_after_a_pause(lab, 49)


def cli006_near_miss__each_write_after_a_pause_finds_a_new_leader(lab):
    writes_after_a_pause(lab, 6)


def cli006_near_miss__each_write_after_a_pause_is_in_the_log(lab):
    """DUPLICATE_SEQUENCE_NUMBER: libraries take it for written."""
    writes_after_a_pause(lab, 46)


def cli006_near_miss__the_log_has_none_of_a_producers_records_after_a_pause(lab):
    """UNKNOWN_PRODUCER_ID of brokers before KIP-360: retention took them, and the producer begins a new sequence."""
    writes_after_a_pause(lab, 59)


def cli006_near_miss__reads_from_the_start_each_time(lab):
    """A batch reader asks for offset 0, which retention took, and then for what is left."""
    talk = connected(lab)
    for at in range(0, 100, 25):
        for later, error in enumerate((1, 0)):
            row = {"partitionIndex": 0, "errorCode": error, "highWatermark": 10, "logStartOffset": 5, "records": None}
            asked = {"replicaId": -1, "topics": [{"topic": "songs", "partitions": [{"partition": 0}]}]}
            talk.ask(at + later, "Fetch", 12, asked, {"responses": [{"topic": "songs", "partitions": [row]}]})
    lab.until = 100


def writes_after_a_pause(lab, error, every=25):
    talk = connected(lab)
    for at in range(0, 4 * every, every):
        write(talk, at, error)
        write(talk, at + 3)
    lab.until = 4 * every


def cli006_near_miss__few_of_who_ends_seldom(lab):
    ends_seldom(lab, ([0] * 5 + [47]) * 5)


def cli006_near_miss__asks_seldom_for_what_is_denied(lab):
    """An exporter that may read the offsets of some groups."""
    asked = lambda at: {"groups": [{"groupId": "g", "topics": [], "errorCode": 30 if at % 30 else 0}]}  # noqa: E731
    refused(lab, "OffsetFetch", 8, asked, every=15, until=240)


def cli006_cannot_know__too_few_of_who_ends_seldom(lab):
    ends_seldom(lab, [0, 47, 47] * 2)


def cli006_fires__topic_denied_in_metadata(lab):
    refused(lab, "Metadata", 12, {"topics": [{"errorCode": 29, "name": "songs", "topicId": ID_1}]})


def cli006_fires__of_a_client_without_an_id(lab):
    topics = [{"errorCode": 29, "name": "songs", "topicId": ID_1}]
    refused(lab, "Metadata", 12, {"topics": topics}, client_id=None)


def cli006_fires__login(lab):
    """Each connection ends with the refusal."""
    for at in range(0, 100, 2):
        talk = lab.talk(client_id="app", host="10.0.0.7", over=True)
        greet(talk, at)
        talk.ask(at + 0.1, "SaslAuthenticate", 2, {}, {"errorCode": 58, "errorMessage": "no"})
        talk.closed = at + 0.2
    lab.until = 130


def cli006_fires__group(lab):
    refused(lab, "JoinGroup", 9, {"errorCode": 30}, {"groupId": "g"})


def cli006_fires__each_partition_of_a_group_without_an_error(lab):
    """Offsets of the group are in a transaction that stays open: the group has no error, and its only partition one."""
    rows = [{"name": "songs", "partitions": [{"partitionIndex": 0, "errorCode": 88}]}]
    asked = {"groups": [{"groupId": "g", "topics": [{"name": "songs", "partitionIndexes": [0]}]}]}
    refused(lab, "OffsetFetch", 9, {"groups": [{"groupId": "g", "topics": rows, "errorCode": 0}]}, asked)


def cli006_near_miss__one_partition_of_a_group_has_an_offset(lab):
    parts = [{"partitionIndex": 0, "errorCode": 88}, {"partitionIndex": 1, "errorCode": 0, "committedOffset": 7}]
    rows = [{"name": "songs", "partitions": parts}]
    asked = {"groups": [{"groupId": "g", "topics": [{"name": "songs", "partitionIndexes": [0, 1]}]}]}
    refused(lab, "OffsetFetch", 9, {"groups": [{"groupId": "g", "topics": rows, "errorCode": 0}]}, asked)


def cli006_fires__coordinator_denied(lab):
    refused(lab, "FindCoordinator", 3, {"errorCode": 30}, {"key": "g"})


def cli006_fires__asks_for_its_coordinator_now_and_then(lab):
    """kafka-go, every five seconds and a little; GRP006 is about those that ask without a pause."""
    lost = {"coordinators": [{"key": "g", "nodeId": -1, "host": "", "port": -1, "errorCode": 15}]}
    refused(lab, "FindCoordinator", 4, lost, {"keyType": 0, "coordinatorKeys": ["g"]}, every=6)


def cli006_near_miss(lab):
    """A group that rebalances for long: answers that make the client join again, and it does each time."""
    errors = (79, 27, 27, 0)
    refused(lab, "JoinGroup", 9, lambda at: {"errorCode": errors[at // 2 % 4]}, {"groupId": "g"})


def cli006_fires__never_joins(lab):
    """The same answers, and none that lets it join: what is the protocol's own counts while nothing behind succeeds."""
    refused(lab, "JoinGroup", 9, lambda at: {"errorCode": 79 if at % 4 else 27}, {"groupId": "g"})


def cli006_fires__heartbeats(lab):
    """A group protocol that the cluster does not have: one request in six seconds."""
    refused(lab, "ConsumerGroupHeartbeat", 1, {"errorCode": 35}, {"groupId": "g"}, every=6)


def cli006_fires__login_by_its_last_round(lab):
    """SCRAM: the first round of each login succeeds, whatever the password is."""
    for at in range(0, 100, 2):
        talk = lab.talk(client_id="app", host="10.0.0.7", over=True, sasl="SCRAM-SHA-256")
        greet(talk, at)
        for error, token in ((0, b"n,,n=app,r=abc"), (58, b"c=biws,r=abc,p=x")):
            sent = {"authBytes": base64.b64encode(token).decode()}
            talk.ask(at + 0.1 + error / 1000, "SaslAuthenticate", 2, sent, {"errorCode": error, "errorMessage": None})
        talk.closed = at + 0.3
    lab.until = 130


def cli006_fires__gives_up(lab):
    """Heartbeats that get no response; the client closes after nine seconds each time."""
    lab.metadata(0, talk=lab.talk(client_id="app", host="10.0.0.7"))
    for at in range(1, 120, 12):
        talk = lab.talk(client_id="app", host="10.0.0.7", over=True, closed_by="client-fin")
        greet(talk, at)
        talk.ask(at + 0.1, "Heartbeat", 4, {"groupId": "g"}, outcome=CLOSED_BY_CLIENT)
        talk.closed = at + 9.1
    served(lab, 130)
    lab.until = 140


def cli006_near_miss__administration(lab):
    """A tool that may not describe groups: no client's work."""
    refused(lab, "DescribeGroups", 5, {"groups": [{"errorCode": 30, "groupId": "g"}]})


def cli006_near_miss__a_finding_says_why(lab):
    """A client that keeps an old topic ID."""
    lab.metadata(0, [("songs", ID_1)])
    talk = connected(lab)
    for at in range(20):
        write_by_id(talk, at)
    for at in range(20, 420, 20):
        lab.metadata(at, [("songs", ID_2)])
    for at in range(21, 400, 3):
        write_by_id(talk, at, 100)
    lab.until = 420


def waits(lab, begin=10, until=30, every=0.5, server=B1, answers=False, gives_up=True, throttle_ms=0):
    """Writes that get no response while the same broker answers others."""
    lab.metadata(0, [("orders", ID_1)])
    talk = lab.talk(server, "app", "10.0.0.7", closed_by="client-fin", over=True)
    greet(talk, 1)
    for at in range(2, begin):
        write(talk, at, 0)
    if throttle_ms:
        granted = {"responses": [{"name": "orders", "partitionResponses": [{"index": 0, "baseOffset": 1}]}]}
        talk.ask(begin - 0.5, "Produce", 9, {"acks": -1}, {**granted, "throttleTimeMs": throttle_ms})
    number = begin
    while number < until:
        asked = {"acks": -1, "timeoutMs": 30_000, "topicData": [{"name": "orders", "partitionData": [{"index": 0}]}]}
        row = {"index": 0, "errorCode": 0, "baseOffset": 1, "logAppendTimeMs": -1}
        answer = {"responses": [{"name": "orders", "partitionResponses": [row]}]} if answers else None
        outcome = None if answers else CLOSED_BY_CLIENT
        talk.ask(number, "Produce", 9, asked, answer, outcome=outcome, answered_in=until - number)
        number += every
    talk.closed = until if gives_up else None
    lab.until = until + 60


@disagrees_at(10)
def ctl019_fires(lab):
    waits(lab)
    served(lab, 60)


def ctl019_fires__answered_at_last(lab):
    waits(lab, answers=True)
    served(lab, 60)


def ctl019_near_miss(lab):
    """A broker that takes three seconds for a write."""
    waits(lab, until=13)
    served(lab, 60)


def ctl019_near_miss__nothing_is_answered(lab):
    """A broker that is paused: no write is what it waits for."""
    waits(lab)


def ctl019_near_miss__a_quota(lab):
    """The broker reads nothing more from the connection for a minute, as it said."""
    waits(lab, throttle_ms=60_000)
    served(lab, 60)


def ctl019_fires__behind_a_quota_that_is_over(lab):
    waits(lab, throttle_ms=2_000)
    served(lab, 60)


def ctl019_cannot_know(lab):
    """Bytes of the connection were not captured."""
    waits(lab)
    lab.talks[-1].facts["unseen_response_bytes"] = 400
    served(lab, 60)


def finds_its_coordinator(lab, then=(), **facts):
    brokers = {B1: 1, B2: 2}
    for at in range(0, 120, 20):
        for server in brokers:
            lab.metadata(at, server=server, brokers=brokers, talk=lab.talk(server, "other", "10.0.0.8"))
    talk = lab.talk(client_id="app", host="10.0.0.7", **facts)
    greet(talk, 1)
    lab.metadata(2, brokers=brokers, talk=talk)
    found = {"coordinators": [{"key": "g", "nodeId": 1, "host": "10.0.0.1", "port": 9092, "errorCode": 0}]}
    talk.ask(3, "FindCoordinator", 4, {"keyType": 0, "coordinatorKeys": ["g"]}, found)
    for at, api, version, request, response in then:
        talk.ask(at, api, version, request, response)
    lab.until = 120


@disagrees_at(3)
def cli008_fires(lab):
    finds_its_coordinator(lab)


def cli008_fires__asks_again(lab):
    found = {"coordinators": [{"key": "g", "nodeId": 1, "host": "10.0.0.1", "port": 9092, "errorCode": 0}]}
    asked = {"keyType": 0, "coordinatorKeys": ["g"]}
    finds_its_coordinator(lab, [(at, "FindCoordinator", 4, asked, found) for at in range(8, 100, 5)])


def begins(lab, at):
    """A connection of which only the handshake was captured."""
    lab.talk(client_id=None, host="10.0.0.7", protocol="other", close_ns=0, closed_by=None).closed = at


def cli008_cannot_know__a_connection_of_which_nothing_is_known(lab):
    finds_its_coordinator(lab)
    begins(lab, 20)


def works_unread(lab, at):
    """A connection that begins then, of which no byte could be read, and that is used for minutes."""
    begins(lab, at)
    lab.talks[-1].last_packet = 590
    lab.talks[-1].facts |= {"payload_bytes": 900_000, "unseen_request_bytes": 400_000, "unseen_response_bytes": 500_000}
    for second in range(120, 600, 20):
        for server in (B1, B2):
            lab.metadata(second, server=server, brokers={B1: 1, B2: 2}, talk=lab.talk(server, "other", "10.0.0.8"))
    lab.until = 600


def cli008_cannot_know__a_later_connection_that_is_used(lab):
    """It was started again."""
    finds_its_coordinator(lab)
    works_unread(lab, 45)


def cli008_fires__a_connection_begins_as_the_capture_ends(lab):
    finds_its_coordinator(lab)
    begins(lab, 119)


def cli008_near_miss(lab):
    """It joins its group."""
    finds_its_coordinator(lab, [(4, "JoinGroup", 9, {"groupId": "g"}, {"errorCode": 0})])


def cli008_near_miss__a_tool(lab):
    """It asks for a group's offsets."""
    finds_its_coordinator(lab, [(4, "OffsetFetch", 7, {"groupId": "g", "topics": None}, {"errorCode": 0})])


def cli008_near_miss__a_pattern_that_matches_no_topic(lab):
    """librdkafka asks for all topics, and joins once there is one."""
    every = [(at, "Metadata", 12, {"topics": None}, {"topics": []}) for at in range(8, 100, 5)]
    finds_its_coordinator(lab, every)


def cli008_near_miss__a_pattern_that_matched_no_topic_once(lab):
    """It asks for all topics again after five minutes only (topic.metadata.refresh.interval.ms)."""
    finds_its_coordinator(lab, [(4, "Metadata", 12, {"topics": None}, {"topics": []})])


def cli008_fires__all_topics_before_its_coordinator(lab):
    """sarama knows them before it begins."""
    finds_its_coordinator(lab, [(2.5, "Metadata", 12, {"topics": None}, {"topics": []})])


def one_side(lab, until=110):
    """A connection of its host of which the requests were not captured, as where they take another link."""
    talk = lab.talk(B2, None, "10.0.0.7", payload_bytes=1_400, unseen_request_bytes=1_400)
    talk.messages = []
    talk.closed, talk.last_packet = 4, until
    talk.facts |= {"protocol": "undecided", "closed_by": None, "close_ns": 0}
    return talk


def cli008_cannot_know__one_side_of_a_connection(lab):
    """A member without partitions: its heartbeats to its coordinator, and little more."""
    found = {"coordinators": [{"key": "g", "nodeId": 1, "host": "10.0.0.1", "port": 9092, "errorCode": 0}]}
    asked = {"keyType": 0, "coordinatorKeys": ["g"]}
    finds_its_coordinator(lab, [(at, "FindCoordinator", 4, asked, found) for at in range(8, 100, 5)])
    one_side(lab)


def cli008_fires__a_short_connection_of_which_nothing_is_understood(lab):
    """Its first request was lost; on it no member works for minutes."""
    cli008_cannot_know__one_side_of_a_connection(lab)
    lab.talks[-1].last_packet = 9


def cli008_cannot_know(lab):
    """Bytes of its connection were not captured: it may have joined."""
    finds_its_coordinator(lab, unseen_request_bytes=300)


JOINS = (
    (4, "JoinGroup", 9, {"groupId": "g"}, {"errorCode": 0}),
    (5, "SyncGroup", 5, {"groupId": "g"}, {"errorCode": 0}),
    (6, "OffsetFetch", 7, {"groupId": "g", "topics": None}, {"errorCode": 0}),
)


def cli008_fires__joins_and_never_reads(lab):
    """auto.offset.reset=none: librdkafka stays a member."""
    beats = [(at, "Heartbeat", 4, {"groupId": "g"}, {"errorCode": 0}) for at in range(9, 100, 3)]
    finds_its_coordinator(lab, [*JOINS, *beats])


def cli008_near_miss__joins_and_reads(lab):
    finds_its_coordinator(lab, JOINS)
    lab.fetches([7], ID_1, talk=lab.talks[-1])


def cli008_near_miss__a_member_without_partitions(lab):
    """It asks for no offsets, as nothing is assigned to it."""
    finds_its_coordinator(lab, JOINS[:2])


def asks_for_brokers(lab, every=1.0, host="kafka-9.example", topics=({"name": "orders"},), times=None, **facts):
    """Metadata of its topics, again and again; an address that does not resolve shows nothing on the wire."""
    talk = greet(lab.talk(client_id="app", host="10.0.0.7", **facts), 0)
    led = {"name": "orders", "topicId": ID_1, "partitions": [{"leaderId": 1, "replicaNodes": [1], "isrNodes": [1]}]}
    answer = {"brokers": [{"nodeId": 1, "host": host, "port": 9092}], "clusterId": CLUSTER, "topics": [led]}
    times = times or [1 + number * every for number in range(60)]
    for at in times:
        talk.ask(at, "Metadata", 12, {"topics": list(topics) or None}, answer)
    lab.until = max(times) + 40
    return talk


def cli008_fires__asks_for_brokers_only(lab):
    asks_for_brokers(lab)


def cli008_fires__an_address_that_was_not_captured(lab):
    asks_for_brokers(lab, host="192.168.7.7")


def cli008_near_miss__a_tool_that_looks_at_metadata(lab):
    """All that brokers advertise was captured."""
    asks_for_brokers(lab, host="10.0.0.1")


def cli008_fires__asks_many_times_a_second(lab):
    """Java's consumer that was assigned a partition which is not there."""
    asks_for_brokers(lab, host="10.0.0.1", times=[1 + number / 5 for number in range(200)])


def asks_with_gaps(lab, *gaps):
    lost = sum(gap.size for gap in gaps)
    times = [1 + number / 5 for number in range(200)]
    asks_for_brokers(lab, host="10.0.0.1", times=times, gaps=gaps, unseen_request_bytes=lost)


def cli008_fires__asks_many_times_a_second_and_packets_are_lost(lab):
    """What it asked for otherwise, if anything, it asked for again."""
    asks_with_gaps(lab, *(lacks(ns(at), 0, 600) for at in (7, 19, 31)))


def cli008_cannot_know__what_was_asked_for_half_of_the_time(lab):
    asks_with_gaps(lab, lacks(ns(30), 0, 60_000, since_ns=ns(10)))


def looks_and_is_cut_off(lab, *, lasts=0.2, closed_by="server-fin", turns=20):
    """One connection after the other to the broker that it needs; all that was read on each is ApiVersions."""
    hashed, _ = hash_of_client(b"app", 3)
    asks_for_brokers(lab, every=2.0, host="10.0.0.1")
    for turn in range(turns):
        at = 2 + turn * 5
        facts = {"over": True, "close_ns": ns(at + lasts), "closed_by": closed_by, "client_hash": hashed}
        greet(lab.talk(B1, "app", "10.0.0.7", **facts), at).last_packet = at + lasts


def cli008_fires__each_connection_is_cut_off_within_a_request_that_is_too_large(lab):
    looks_and_is_cut_off(lab)
    (found,) = lab.findings("CLI008")
    assert "broker 1 (10.0.0.1:9092) closed 20 connections early" in found["summary"]


def cli008_near_miss__checks_of_health_close_by_themselves(lab):
    looks_and_is_cut_off(lab, closed_by="client-fin")


def cli008_near_miss__a_tool_whose_idle_connections_are_closed(lab):
    looks_and_is_cut_off(lab, lasts=60)


def cli008_near_miss__a_broker_that_restarts_closes_a_few(lab):
    looks_and_is_cut_off(lab, turns=5)


def cli008_cannot_know__whether_the_connection_is_open(lab):
    looks_and_is_cut_off(lab)
    lab.talks[-1].facts |= {"close_ns": 0, "closed_by": None}


def looks_from_many(lab, processes, of_each):
    """Checks of health behind one address: five a second, as many processes, each of which looks so many times."""
    for number in range(processes):
        times = [1 + (number + processes * turn) / 5 for turn in range(of_each)]
        asks_for_brokers(lab, host="10.0.0.1", times=times)


def cli008_near_miss__checks_of_health_of_many_pods(lab):
    looks_from_many(lab, 20, 10)


def cli008_near_miss__a_tool_that_is_started_again_and_again(lab):
    looks_from_many(lab, 200, 1)


def cli008_near_miss__a_tool_where_clients_reach_the_host_name(lab):
    asks_for_brokers(lab)
    lab.fetches([2, 60, 99], ID_1, client_id="reader")


def cli008_near_miss__a_tool_that_asks_for_all_topics(lab):
    asks_for_brokers(lab, topics=())


def has_a_producer_id(lab, **facts):
    talk = asks_for_brokers(lab, host="10.0.0.1", **facts)
    return talk.ask(0.5, "InitProducerId", 4, {}, {"errorCode": 0, "producerId": 7})


def cli008_fires__a_producer_that_never_writes(lab):
    """The topic has no partition 9, to which it wants to write; Java asks once a second whether it has now."""
    has_a_producer_id(lab)
    (found,) = lab.findings("CLI008")
    assert "perhaps no such partition" in found["summary"]


def cli008_near_miss__a_producer_that_writes(lab):
    talk = has_a_producer_id(lab)
    answer = {"responses": [{"name": "orders", "partitionResponses": [{"index": 0, "errorCode": 0}]}]}
    talk.ask(70, "Produce", 9, {"acks": 1, "topicData": [{"name": "orders", "partitionData": [{"index": 0}]}]}, answer)


def cli008_near_miss__a_producer_that_has_nothing_to_write(lab):
    has_a_producer_id(lab, every=5.0)


def cli008_cannot_know__whether_the_producer_wrote(lab):
    has_a_producer_id(lab, gaps=(lacks(ns(30), 0, 900),), unseen_request_bytes=900)


def seeks(lab, times, name="kafka-9.example", *, captured=True):
    """Its coordinator has a host name, which is not found; another broker is reached. Others have addresses of both."""
    brokers = {B1: 1, B2: 2} if captured else {B1: 1, f"{name}:9092": 2}
    for at in range(0, 120, 20):
        for server in (B1, B2) if captured else (B1,):
            lab.metadata(at, server=server, brokers=brokers, talk=lab.talk(server, "other", "10.0.0.8"))
    talk = greet(lab.talk(client_id="app", host="10.0.0.7"), 0)
    listed = [{"nodeId": 1, "host": "10.0.0.1", "port": 9092}, {"nodeId": 2, "host": name, "port": 9092}]
    answer = {"brokers": listed, "clusterId": CLUSTER, "topics": [{"name": "orders", "topicId": ID_1}]}
    talk.ask(1, "Metadata", 12, {"topics": [{"name": "orders"}]}, answer)
    found = {"coordinators": [{"key": "g", "nodeId": 2, "host": name, "port": 9092, "errorCode": 0}]}
    for at in times:
        talk.ask(at, "FindCoordinator", 4, {"keyType": 0, "coordinatorKeys": ["g"]}, found)
    lab.until = 130


def cli008_fires__asks_for_its_coordinator_all_the_time(lab):
    """librdkafka, once a second."""
    seeks(lab, range(2, 120))


def cli008_cannot_know__a_monitor_whose_coordinator_was_not_captured(lab):
    """It may ask that for the offsets of a group each second."""
    seeks(lab, range(2, 120), name="192.168.7.7")


def cli008_cannot_know__a_monitor_of_a_cluster_of_which_one_broker_was_captured(lab):
    """Brokers of Kubernetes have host names. What it asks the coordinator for the captured broker does not see."""
    seeks(lab, range(2, 120), name="kafka-2.kafka.svc", captured=False)


def seeks_brokers(lab, times, first=None, then=({"name": "orders"},)):
    """Another client shows that both brokers were captured, by other addresses."""
    for at in range(0, 120, 20):
        for server in (B1, B2):
            lab.metadata(at, server=server, brokers={B1: 1, B2: 2}, talk=lab.talk(server, "other", "10.0.0.8"))
    talk = greet(lab.talk("10.0.0.1:9094", "app", "10.0.0.7"), 0)
    listed = [{"nodeId": number, "host": f"kafka-{number}.example", "port": 9094} for number in (1, 2)]
    answer = {"brokers": listed, "clusterId": CLUSTER, "topics": [{"name": "orders", "topicId": ID_1}]}
    for at in times:  # sarama asks for all topics first
        talk.ask(at, "Metadata", 12, {"topics": [*then] if at > 1 else first}, answer)
    lab.until = 130


def cli008_fires__host_names_are_not_found_and_it_asks_once_a_second(lab):
    """As sarama's producer, on one connection."""
    seeks_brokers(lab, [1 + number * 0.8 for number in range(140)])


def cli008_near_miss__a_check_of_health_that_asks_for_brokers_alone_once_a_second(lab):
    """On one connection, as by an administrator's client."""
    seeks_brokers(lab, range(1, 120), first=[], then=())


def cli008_near_miss__an_exporter_that_asks_every_ten_seconds(lab):
    seeks_brokers(lab, range(1, 120, 10))


def cli008_near_miss__a_tool_that_is_started_each_three_seconds(lab):
    seeks_brokers(lab, range(1, 120, 3))


def cli008_near_miss__a_tool_that_looks_at_many_groups(lab):
    seeks(lab, [at + number / 10 for at in range(2, 120, 10) for number in range(9)])


def cli008_near_miss__finds_its_coordinator_at_once(lab):
    """It may be its member, at a broker that was not captured."""
    seeks(lab, range(2, 27))


TRIES = (0, 0.1, 0.4, 0.9, 1.6, 2.5, 3.6, 4.9, 9, 15, 23, 33, 43, 53)
"""How kafka-go asks again for the leader of a partition that does not exist."""


def cli008_fires__asks_at_once_and_ever_later(lab):
    asks_for_brokers(lab, host="10.0.0.1", times=[1 + 60 * turn + at for turn in range(3) for at in TRIES])


def cli008_near_miss__a_tool_that_asks_much_each_minute(lab):
    times = [1 + 60 * turn + at for turn in range(3) for at in range(8)]
    asks_for_brokers(lab, host="10.0.0.1", times=times)


def cli008_near_miss__asks_for_brokers_now_and_then(lab):
    asks_for_brokers(lab, every=5.0)


def cli008_near_miss__asks_for_brokers_and_writes(lab):
    talk = asks_for_brokers(lab)
    answer = {"responses": [{"name": "orders", "partitionResponses": [{"index": 0, "errorCode": 0}]}]}
    talk.ask(70, "Produce", 9, {"acks": 1, "topicData": [{"name": "orders", "partitionData": [{"index": 0}]}]}, answer)


NEVER_CLOSED = {"over": True, "client_hash": hash_of_client(b"app", 3)[0]}


def knows_dead_brokers(lab, *, then=(), dead=("10.0.0.9:9099", "10.0.0.9:9098"), serves=False, **facts):
    """It learns its brokers from one that advertises other addresses, which refuse its host."""
    talk = greet(lab.talk(client_id="app", host="10.0.0.7", **NEVER_CLOSED | facts), 1)
    lab.metadata(2, brokers={"10.0.0.9:9099": 1, "10.0.0.9:9098": 2}, talk=talk)
    for at in range(3, 100, 5):
        for address in dead:
            lab.talk(address, "app", "10.0.0.7", over=True, close_ns=ns(at), closed_by="server-rst")
    if serves:
        lab.metadata(
            50,
            brokers={"10.0.0.9:9099": 1},
            server="10.0.0.9:9099",
            talk=lab.talk("10.0.0.9:9099", "other", "10.0.0.8"),
        )
    for at, api, version, request, response in then:
        talk.ask(at, api, version, request, response)
    lab.until = 120


def cli008_fires__each_address_refuses_it(lab):
    """Java's producer asks for metadata once."""
    knows_dead_brokers(lab)


def cli008_near_miss__one_address_does_not_refuse_it(lab):
    """It may be an administrator's tool, which is connected."""
    knows_dead_brokers(lab, dead=("10.0.0.9:9099",))


def cli008_near_miss__an_address_serves_others(lab):
    knows_dead_brokers(lab, serves=True)


def cli008_near_miss__an_address_serves_others_over_tls(lab):
    """What it answers there is not in the capture."""
    lab.talk("10.0.0.9:9099", None, "10.0.0.8", protocol="tls", payload_bytes=900).last_packet = 100
    knows_dead_brokers(lab)


def cli008_near_miss__a_tool_that_looked_once(lab):
    knows_dead_brokers(lab, over=True, close_ns=ns(4), closed_by="client-fin")


def cli008_near_miss__works_where_it_began(lab):
    knows_dead_brokers(lab, then=[(4, "JoinGroup", 9, {"groupId": "g"}, {"errorCode": 0})])


def loses_all_brokers(lab, *, refused=range(30, 180, 30), closed_by="server-fin", back=(), neighbour=False):
    """A client that seldom writes; its brokers are gone from 20 s on, and refuse its host."""
    facts = {"over": True, "close_ns": ns(20), "closed_by": closed_by, "client_hash": hash_of_client(b"app", 3)[0]}
    talk = greet(lab.talk(client_id="app", host="10.0.0.7", **facts), 1)
    lab.metadata(2, brokers={B1: 1, B2: 2}, talk=talk)
    asked = {"acks": 1, "topicData": [{"name": "orders", "partitionData": [{"index": 0}]}]}
    said = {"responses": [{"name": "orders", "partitionResponses": [{"index": 0, "errorCode": 0}]}]}
    talk.ask(3, "Produce", 9, asked, said).last_packet = 20
    for at in refused:
        for address in (B1, B2):
            lab.talk(address, "app", "10.0.0.7", over=True, close_ns=ns(at), closed_by="server-rst")
    for at in back:
        lab.metadata(at, brokers={B1: 1, B2: 2}, talk=lab.talk(B1, "other", "10.0.0.8"))
    if neighbour:
        lab.metadata(4, brokers={B1: 1, B2: 2}, talk=lab.talk(B1, "neighbour", "10.0.0.7"))
    lab.until = 200


def cli008_fires__each_address_refuses_it_after_it_had_written(lab):
    """As its broker's listener is gone, or its network policy has changed."""
    loses_all_brokers(lab)
    (found,) = lab.findings("CLI008")
    assert "app got its last response at" in found["summary"]
    assert "10.0.0.1:9092 and 10.0.0.2:9092 refuse connections" in found["summary"]


def cli008_near_miss__all_brokers_restart(lab):
    loses_all_brokers(lab, refused=range(22, 70, 3))


def cli008_near_miss__a_broker_serves_others_again(lab):
    loses_all_brokers(lab, back=(100,))


def cli008_near_miss__it_left_before_its_host_was_refused(lab):
    """Its host may have a check of health."""
    loses_all_brokers(lab, closed_by="client-fin")


def cli008_cannot_know__whether_it_goes_on_over_tls(lab):
    """Its brokers closed the listener without TLS; it is served at the other port, or another client of its host."""
    loses_all_brokers(lab, refused=range(22, 100, 10))
    lab.talk("10.0.0.1:9093", None, "10.0.0.7", protocol="tls", payload_bytes=900, close_ns=0).last_packet = 195


def cli008_cannot_know__which_client_of_a_host_is_refused(lab):
    loses_all_brokers(lab, neighbour=True)


def ends(lab, error, *then, api="JoinGroup", version=9, at=4, **facts):
    request = {"groupId": "g"} if api != "InitProducerId" else {"transactionalId": "t"}
    finds_its_coordinator(lab, [(at, api, version, request, {"errorCode": error}), *then], **facts)


def fenced(lab, **facts):
    facts |= NEVER_CLOSED
    finds_its_coordinator(lab, [*JOINS, (20, "Heartbeat", 4, {"groupId": "g"}, {"errorCode": 82})], **facts)


def logs_in(lab, *outcomes):
    """A login every 10 s, each on a connection of its own; after a granted one all topics are asked for."""
    brokers = {B1: 1}
    for at in range(0, 120, 20):
        lab.metadata(at, brokers=brokers, talk=lab.talk(client_id="other", host="10.0.0.8"))
    for number, error in enumerate(outcomes):
        talk = greet(lab.talk(client_id="app", host="10.0.0.7"), 1 + number * 10)
        talk.ask(2 + number * 10, "SaslHandshake", 1, {"mechanism": "PLAIN"}, {"errorCode": error})
        if not error:
            lab.metadata(3 + number * 10, brokers=brokers, talk=talk)
    lab.until = 120


def cli010_fires__a_login_that_is_rejected_once(lab):
    """ILLEGAL_SASL_STATE: security.protocol is not the listener's."""
    logs_in(lab, 34)


def cli010_near_miss__a_login_that_is_granted_later(lab):
    logs_in(lab, 34, 0)


@disagrees_at(4)
def cli010_fires(lab):
    """GROUP_AUTHORIZATION_FAILED, once."""
    ends(lab, 30)


def is_denied(lab, *then, error=29, **facts):
    """A member whose topic is no longer granted to it: its library sends heartbeats, or leaves, and reads no more."""
    denied = {"partitionIndex": 0, "errorCode": error, "records": None, "abortedTransactions": None}
    rows = [{"partition": 0, "fetchOffset": 5}]
    asked = {"replicaId": -1, "topics": [{"topicId": ID_1, "partitions": rows}]}
    answer = {"responses": [{"topicId": ID_1, "partitions": [denied]}]}
    beats = [(at, "Heartbeat", 4, {"groupId": "g"}, {"errorCode": 0}) for at in range(9, 60, 3)]
    finds_its_coordinator(lab, [*JOINS, (7, "Fetch", 13, asked, answer), *beats, *then], **facts)


LEAVES = ("LeaveGroup", 3, {"groupId": "g", "members": [{"memberId": "m"}]}, {"errorCode": 0})


def cli010_fires__its_fetch_is_denied(lab):
    is_denied(lab)


def cli010_fires__its_fetch_is_denied_and_it_leaves(lab):
    """KafkaJS disconnects."""
    is_denied(lab, (61, *LEAVES))


def cli010_near_miss__joins_again_where_its_fetch_was_denied(lab):
    is_denied(lab, (61, *LEAVES), *((at + 60, *one) for at, *one in JOINS[:2]))


def cli010_near_miss__its_leader_moves(lab):
    """NOT_LEADER_OR_FOLLOWER, while the application works on a batch for minutes."""
    is_denied(lab, error=6)


def cli010_near_miss__its_fetch_is_granted_later(lab):
    is_denied(lab)
    lab.fetches([70], ID_1, talk=lab.talks[-1])


def cli010_cannot_know__its_fetches_may_be_missing(lab):
    is_denied(lab, unseen_request_bytes=300)


def cli010_cannot_know__a_later_connection_that_is_used(lab):
    is_denied(lab)
    works_unread(lab, 45)


def cli010_fires__a_connection_begins_as_the_capture_ends(lab):
    """Whose it is is not known, but it began long after."""
    is_denied(lab)
    begins(lab, 119)


INVALID_TOPIC = 17


def invalid_topic(lab, *then, before=(), writes=True, **facts):
    """A producer gets its ID all the same."""
    for at in range(0, 120, 20):
        lab.metadata(at, brokers={B1: 1}, talk=lab.talk(client_id="other", host="10.0.0.8"))
    talk = greet(lab.talk(client_id="app", host="10.0.0.7", **NEVER_CLOSED | facts), 1)
    for at, api, version, request, response in before:
        talk.ask(at, api, version, request, response)
    refused = {"errorCode": INVALID_TOPIC, "name": "bad topic!", "partitions": []}
    brokers = [{"nodeId": 1, "host": "10.0.0.1", "port": 9092}]
    answer = {"brokers": brokers, "clusterId": CLUSTER, "topics": [refused]}
    talk.ask(2, "Metadata", 12, {"topics": [{"name": "bad topic!"}]}, answer)
    if writes:
        talk.ask(3, "InitProducerId", 4, {}, {"errorCode": 0, "producerId": 7})
    for at, api, version, request, response in then:
        talk.ask(at, api, version, request, response)
    lab.until = 120


def cli010_fires__a_name_that_no_topic_may_have(lab):
    invalid_topic(lab)


def is_denied_its_coordinator(lab, client_id="app", **facts):
    for at in range(0, 120, 20):
        lab.metadata(at, brokers={B1: 1}, talk=lab.talk(client_id="other", host="10.0.0.8"))
    talk = lab.talk(client_id=client_id, host="10.0.0.7", **facts)
    greet(talk, 1)
    denied = {"coordinators": [{"key": "g", "nodeId": -1, "host": "", "port": -1, "errorCode": 30}]}
    talk.ask(3, "FindCoordinator", 4, {"keyType": 0, "coordinatorKeys": ["g"]}, denied)
    lab.until = 120


def cli010_fires__its_group_is_denied_at_the_first_step(lab):
    is_denied_its_coordinator(lab, **NEVER_CLOSED)


GONE = {"over": True, "close_ns": ns(4), "closed_by": "client-fin"}


def cli010_fires__a_task_of_connect_whose_group_is_denied(lab):
    """Its worker closes it."""
    is_denied_its_coordinator(lab, "connector-consumer-sink-0", **GONE)


def cli010_near_miss__a_console_to_which_one_group_is_denied(lab):
    """It stays connected, and waits for its user."""
    is_denied_its_coordinator(lab, **NEVER_CLOSED)
    lab.talks[-1].ask(4, "ListGroups", 4, {}, {"errorCode": 0, "groups": []})


def logs_in_again(lab, *then):
    """A sink of Kafka Connect: its worker asks about the cluster by the same client ID, and its library opens another
    connection while its application ends.
    """
    is_denied_its_coordinator(lab, **NEVER_CLOSED)
    cluster = {"errorCode": 0, "clusterId": CLUSTER, "brokers": [{"brokerId": 1, "host": "10.0.0.1", "port": 9092}]}
    lab.talks[-1].ask(2, "DescribeCluster", 1, {}, cluster)
    talk = greet(lab.talk(client_id="app", host="10.0.0.7", **NEVER_CLOSED), 3.1)
    talk.ask(3.2, "SaslHandshake", 1, {"mechanism": "PLAIN"}, {"errorCode": 0})
    talk.ask(3.3, "SaslAuthenticate", 2, {"authBytes": ""}, {"errorCode": 0, "authBytes": ""})
    for at, api, version, request, response in then:
        talk.ask(at, api, version, request, response)


def cli010_fires__its_group_is_denied_and_its_library_logs_in(lab):
    logs_in_again(lab)


def cli010_near_miss__logs_in_and_finds_its_coordinator(lab):
    found = {"coordinators": [{"key": "g", "nodeId": 1, "host": "10.0.0.1", "port": 9092, "errorCode": 0}]}
    logs_in_again(lab, (4, "FindCoordinator", 4, {"keyType": 0, "coordinatorKeys": ["g"]}, found))


def cli010_near_miss__a_tool_whose_group_is_denied(lab):
    is_denied_its_coordinator(lab, **GONE)


def cli010_fires__beside_a_connection_that_is_kept_in_reserve(lab):
    """On which nothing was ever sent: it hides nothing."""
    ends(lab, 30)
    lab.talk(client_id="app", host="10.0.0.7", protocol="undecided").last_packet = 2


def cli010_cannot_know__a_connection_of_which_bytes_are_missing(lab):
    ends(lab, 30)
    lab.talk(client_id="app", host="10.0.0.7", protocol="undecided", unseen_request_bytes=90).last_packet = 2


def cli010_near_miss__a_tool_that_looks_for_it(lab):
    invalid_topic(lab, over=True, close_ns=ns(4), closed_by="client-fin")


def cli010_near_miss__a_gateway_that_writes_to_others(lab):
    """A REST proxy, which was asked to write to such a topic once, and is idle since."""
    row = {"name": "orders", "partitionResponses": [{"index": 0, "errorCode": 0}]}
    asked = {"acks": 1, "topicData": [{"name": "orders", "partitionData": [{"index": 0}]}]}
    invalid_topic(lab, before=[(1.5, "Produce", 9, asked, {"responses": [row]})])


def cli010_near_miss__a_console_that_looks_at_topics(lab):
    """It stays connected, and was asked for such a topic once."""
    invalid_topic(lab, before=[(1.5, "ListGroups", 4, {}, {"errorCode": 0})], writes=False)


def cli010_near_miss__it_writes_to_another_one(lab):
    written = {"responses": [{"name": "orders", "partitionResponses": [{"index": 0, "errorCode": 0}]}]}
    asked = {"acks": 1, "topicData": [{"name": "orders", "partitionData": [{"index": 0}]}]}
    invalid_topic(lab, (4, "Produce", 9, asked, written))


def cli010_fires__a_transactional_producer(lab):
    ends(lab, 53, api="InitProducerId", version=4)


def cli010_fires__fenced_and_still_connected(lab):
    """FENCED_INSTANCE_ID; fetches go on for a while, and its connections are never closed."""
    fenced(lab)
    lab.fetches([25, 30], ID_1, talk=lab.talks[-1])


def twins(lab, *, begun_at=1, reads="other"):
    """Another client of the same ID, as a library's own is, is a member and goes on."""
    talk = greet(lab.talk(client_id="app", host="10.0.0.7"), begun_at)
    for at in range(begun_at + 1, 110, 3):
        talk.ask(at, "Heartbeat", 4, {"groupId": reads}, {"errorCode": 0})


def cli010_fires__beside_a_client_of_the_same_id(lab):
    ends(lab, 30)
    twins(lab)


def cli010_near_miss__a_client_of_the_same_id_connects_later(lab):
    """It may be the same application, which tries again."""
    ends(lab, 30)
    twins(lab, begun_at=20)


def cli010_fires__fenced_and_still_connected_beside_clients_of_the_same_id(lab):
    """One of them connects after that, as the process that took over."""
    fenced(lab)
    twins(lab, begun_at=30)


def cli010_fires__fenced_beside_more_connections_than_are_kept_apart(lab):
    """Its port is among the least, which are; the others begin later."""
    fenced(lab)
    for _ in range(20):
        twins(lab)


def cli010_fires__fenced_beside_more_connections_of_other_groups(lab):
    """Those of its group are kept apart."""
    for _ in range(20):
        twins(lab)
    fenced(lab)


def cli010_cannot_know__fenced_at_a_port_that_is_not_kept_apart(lab):
    for _ in range(20):
        twins(lab, reads="g")
    fenced(lab)


def cli010_near_miss__fenced_and_gone_beside_clients_of_the_same_id(lab):
    fenced(lab, close_ns=ns(23), closed_by="client-fin")
    twins(lab, begun_at=30)


def cli010_near_miss(lab):
    """It joins again, and is a member then."""
    ends(lab, 30, *((at + 20, *one) for at, *one in JOINS[:2]))


def cli010_near_miss__tries_again(lab):
    """NOT_COORDINATOR is retriable: its client had no time left."""
    ends(lab, 16)


def cli010_fires__a_static_member_that_another_one_owns(lab):
    """UNRELEASED_INSTANCE_ID: Java's client gives up."""
    ends(lab, 111, api="ConsumerGroupHeartbeat", version=1)


def cli010_near_miss__part_of_the_protocol(lab):
    """MEMBER_ID_REQUIRED."""
    ends(lab, 79)


def cli010_near_miss__replaced(lab):
    """A rolling update: the next process has the same group.instance.id, and this one ends."""
    fenced(lab, close_ns=ns(23), closed_by="client-fin")


def cli010_cannot_know(lab):
    """Bytes of its connection were not captured."""
    ends(lab, 30, unseen_request_bytes=300)


def cli010_cannot_know__the_capture_ends(lab):
    ends(lab, 30, at=100)


def gives_up(lab, error=6, times=5, *, before=0, then=(), serves=True, at=40, writes=write, **facts):
    """A producer is rejected several times within 2 s, while another client writes to the topic."""
    for now in range(0, 240, 20):
        lab.metadata(now, [("songs", ID_1)], brokers={B1: 1}, talk=lab.talk(client_id="other", host="10.0.0.8"))
    if serves:
        other = lab.talk(client_id="other", host="10.0.0.8")
        for now in range(3, 240, 3):
            writes(other, now)
    talk = greet(lab.talk(client_id="app", host="10.0.0.7", **NEVER_CLOSED | facts), at - 5)
    for number in range(before):
        writes(talk, at - 4 + number)
    for number in range(times):
        writes(talk, at + 0.4 * number, error)
    for now, failed in then:
        writes(talk, now, failed)
    lab.until = 240


def cli010_fires__rejected_several_times_in_a_row(lab):
    """NOT_LEADER_OR_FOLLOWER: it should have tried again until it is granted."""
    gives_up(lab)


def cli010_fires__rejected_several_times_after_few_writes(lab):
    gives_up(lab, before=3)


def cli010_fires__rejected_several_times_by_id(lab):
    gives_up(lab, before=3, writes=write_by_id)


def reads_by_id(lab, *, until=400):
    """A reader of few records is rejected several times within 2 s, while another one reads the topic by its ID."""
    gives_up(lab, times=0)
    lab.fetches(range(5, until, 5), ID_1, talk=lab.talk(client_id="other", host="10.0.0.9"))
    reader = greet(lab.talk(client_id="app", host="10.0.0.6", **NEVER_CLOSED), 35)
    lab.fetches((36, 38), ID_1, talk=reader)
    lab.fetches((40, 40.4, 40.8, 41.2), ID_1, 6, talk=reader)
    lab.until = 400


def cli010_fires__a_reader_by_id_rejected_several_times_in_a_row(lab):
    reads_by_id(lab)


def cli010_near_miss__an_id_that_serves_none_after_it(lab):
    reads_by_id(lab, until=40)


def cli010_near_miss__rejected_several_times_and_then_granted(lab):
    """It has nothing more to write."""
    gives_up(lab, then=[(43, 0)])


def cli010_near_miss__rejected_twice(lab):
    """Its application had no time left for more."""
    gives_up(lab, times=2)


def cli010_near_miss__a_topic_that_serves_none_after_it(lab):
    gives_up(lab, serves=False)


def cli010_near_miss__rejected_several_times_and_closed(lab):
    """A tool that its user stops."""
    gives_up(lab, close_ns=ns(43), closed_by="client-fin", client_hash=0)


def cli010_near_miss__it_pauses_for_as_long(lab):
    """It writes once in a while; the capture ends before it would again."""
    gives_up(lab, at=150, then=[(20, 0), (60, 0), (100, 0)])


def cli010_near_miss__an_exporter_at_its_own_pace(lab):
    """Its partition has no leader, and it asks again after minutes."""
    gives_up(lab, times=0)
    row = {"name": "songs", "partitions": [{"partitionIndex": 0, "errorCode": 6, "offset": -1}]}
    asked = {"replicaId": -1, "topics": [{"name": "songs", "partitions": [{"partitionIndex": 0, "timestamp": -1}]}]}
    for at in range(40, 45):
        lab.talks[-1].ask(at, "ListOffsets", 7, asked, {"topics": [row]})


def cli010_cannot_know__it_may_have_tried_again(lab):
    gives_up(lab, unseen_request_bytes=300)


def cli010_cannot_know__rejected_several_times_and_sent_to_a_broker_not_captured(lab):
    gives_up(lab)
    lab.metadata(42, [("songs", ID_1)], brokers={B1: 1, B2: 2}, talk=lab.talk(client_id="app", host="10.0.0.7"))


def is_sent_away(lab, *then, polls_ms=0):
    """A member whose coordinator is said to have moved, whenever it joins; `polls_ms`: how long it may do without a
    poll, as it states.
    """
    found = {"coordinators": [{"key": "g", "nodeId": 1, "host": "10.0.0.1", "port": 9092, "errorCode": 0}]}
    rounds = [
        (at + later, *asked)
        for at in (4, 5, 6, 7)
        for later, *asked in (
            (0, "JoinGroup", 9, {"groupId": "g", "rebalanceTimeoutMs": polls_ms}, {"errorCode": 16}),
            (0.2, "FindCoordinator", 4, {"keyType": 0, "coordinatorKeys": ["g"]}, found),
        )
    ]
    finds_its_coordinator(lab, [*rounds, *then], **NEVER_CLOSED)


def cli010_fires__sent_away_by_its_coordinator_again_and_again(lab):
    is_sent_away(lab)


def cli010_fires__sent_away_by_its_coordinator_and_past_its_next_poll(lab):
    is_sent_away(lab, polls_ms=60_000)


def cli010_near_miss__sent_away_by_its_coordinator_before_its_next_poll(lab):
    """An application that polls each two minutes joins again then (max.poll.interval.ms is 5 minutes)."""
    is_sent_away(lab, polls_ms=300_000)


def is_forgotten(lab, until, api, version, request, response):
    """A member that joined before the capture; its coordinator moved, and it connected to it again."""
    times, found = (4, 5, 6, 7), {"coordinators": [{"key": "g", "nodeId": 1, "host": "10.0.0.1", "port": 9092}]}
    asked = [(at, api, version, request, response) for at in times]
    asked += [(at + 0.2, "FindCoordinator", 4, {"keyType": 0, "coordinatorKeys": ["g"]}, found) for at in times]
    finds_its_coordinator(lab, sorted(asked, key=lambda one: one[0]), **NEVER_CLOSED)
    other = lab.talk(client_id="other", host="10.0.0.8")
    for at in range(120, until, 20):
        lab.metadata(at, brokers={B1: 1, B2: 2}, talk=other)
    lab.until = until


BEATS = "Heartbeat", 4, {"groupId": "g", "memberId": "m"}, {"errorCode": 16}


def cli010_fires__forgotten_and_past_five_minutes(lab):
    is_forgotten(lab, 400, *BEATS)


def cli010_near_miss__forgotten_and_its_application_polls_in_five_minutes(lab):
    """By default; what it stated was not captured."""
    is_forgotten(lab, 250, *BEATS)


def cli010_near_miss__commits_in_the_background_are_rejected_until_its_next_poll(lab):
    rows = [{"partitionIndex": 0, "committedOffset": 5}]
    asked = {"groupId": "g", "memberId": "m", "topics": [{"name": "songs", "partitions": rows}]}
    answer = {"topics": [{"name": "songs", "partitions": [{"partitionIndex": 0, "errorCode": 16}]}]}
    is_forgotten(lab, 250, "OffsetCommit", 8, asked, answer)


def cli010_near_miss__several_processes_are_forgotten_at_once(lab):
    """Members of one ID, as a library's own: each joins again when it has worked on what it read."""
    finds_its_coordinator(lab, JOINS, **NEVER_CLOSED)
    for number in range(4):
        talk = greet(lab.talk(client_id="app", host="10.0.0.7", **NEVER_CLOSED), 5)
        talk.ask(10 + number, "Heartbeat", 4, {"groupId": "g", "memberId": "m"}, {"errorCode": 25})


def cli010_near_miss__sent_away_and_leaves(lab):
    """The group of a library ends, and its client, which others share, stays connected."""
    asked = {"groupId": "g", "members": [{"memberId": "m-1"}]}
    is_sent_away(lab, (9, "LeaveGroup", 5, asked, {"errorCode": 0, "members": [{"memberId": "m-1", "errorCode": 0}]}))


def cli010_near_miss__lost_with_its_host(lab):
    """A container's host is gone without a word, and another one goes on."""
    gives_up(lab)
    talk = greet(lab.talk(client_id="app", host="10.0.0.77", **NEVER_CLOSED), 60)
    for at in range(61, 240, 3):
        write(talk, at)


def its_partition_goes(lab, then=(), *, serves=True, looks=range(62, 160, 2), **facts):
    """A reader of partition 3 without a group; the topic is created again, with fewer partitions; `looks`: when it asks
    for metadata.
    """
    brokers = {B1: 1}
    other = lab.talk(client_id="other", host="10.0.0.8")
    for at in range(0, 160, 10):
        lab.metadata(at, [("songs", ID_1 if at < 60 else ID_2)], brokers=brokers, talk=other)
    for at in (*range(1, 55, 3), *(range(65, 160, 3) if serves else ())):
        lab.fetches([at], ID_1 if at < 60 else ID_2, talk=other)
    reader = greet(lab.talk(client_id="app", host="10.0.0.7", **NEVER_CLOSED | facts), 1)
    row = {"partitionIndex": 3, "records": None, "abortedTransactions": None}
    asked = {"topics": [{"topic": "songs", "partitions": [{"partition": 3}]}], "replicaId": -1, "sessionEpoch": -1}
    for at in (*range(2, 58), 61, *then):
        answer = {"responses": [{"topic": "songs", "partitions": [{**row, "errorCode": 3 * (at == 61)}]}]}
        reader.ask(at, "Fetch", 12, asked, answer)
    for at in looks:
        lab.metadata(at, [("songs", ID_2)], brokers=brokers, talk=reader)
    lab.until = 160
    return reader


def cli010_fires__a_reader_whose_partition_is_not_there_any_more(lab):
    """sarama and kafka-go ask for metadata on and on."""
    its_partition_goes(lab)


def cli010_fires__a_reader_whose_partition_is_not_there_looks_each_10_s(lab):
    its_partition_goes(lab, looks=range(62, 160, 10))


def cli010_near_miss__what_a_reader_had_asked_for_ahead_is_not_there(lab):
    """Its application works on its last records, is paused, or has all that it needs; its library looks once."""
    its_partition_goes(lab, looks=(62, 150))


def cli010_near_miss__a_console_that_is_no_longer_asked_to_read(lab):
    """Its page is closed; it asks for metadata and configurations on and on."""
    talk = its_partition_goes(lab, looks=range(62, 160, 5))
    for at in range(63, 160, 5):
        talk.ask(at, "DescribeConfigs", 4, {"resources": []}, {"results": []})


def cli010_near_miss__a_reader_whose_partition_comes_back(lab):
    its_partition_goes(lab, then=range(80, 150))


def cli010_near_miss__a_reader_whose_topic_serves_none_any_more(lab):
    its_partition_goes(lab, serves=False)


def cli010_cannot_know__a_reader_whose_partition_is_not_there_may_read_another(lab):
    its_partition_goes(lab, unseen_request_bytes=300)


def polls(lab, times, until=400):
    """Its leader is elected when it polls first."""
    gives_up(lab, times=0)
    row = {"partitionIndex": 0, "errorCode": 6, "records": None, "abortedTransactions": None}
    asked = {"topics": [{"topic": "songs", "partitions": [{"partition": 0}]}], "replicaId": -1, "sessionEpoch": -1}
    for at in times:
        answer = {"responses": [{"topic": "songs", "partitions": [{**row, "errorCode": 6 * (at < 50)}]}]}
        lab.talks[-1].ask(at, "Fetch", 12, asked, answer)
    for talk in lab.talks[:-1]:
        if len(talk.exchanges) > 10:
            for at in range(240, until, 3):
                write(talk, at)
    lab.until = until


def cli010_fires__reads_nothing_after_several_errors(lab):
    polls(lab, (40, 40.1, 40.2, 40.3))


def cli010_near_miss__polls_every_four_minutes(lab):
    polls(lab, (40, 40.1, 40.2, 40.3, 280))


def cli010_near_miss__has_polled_once(lab):
    polls(lab, (40, 40.1, 40.2, 40.3), until=160)


def cli010_near_miss__let_in_after_that(lab):
    is_sent_away(lab, *((at + 6, *one) for at, *one in JOINS[:2]))


def cli006_near_miss__granted_soon(lab):
    """A topic is created, and its ACLs come later."""
    talk = connected(lab)
    for at in range(100):
        write(talk, at, 29 if at < 20 else 0)


def cli006_near_miss__now_and_then(lab):
    """One record in fifty is too large."""
    talk = connected(lab)
    for at in range(200):
        write(talk, at, 10 if at % 50 == 0 else 0)


def cli006_near_miss__a_broker(lab):
    talk = lab.talk(client_id="broker-1-fetcher-0", host="10.0.0.1")
    for at in range(0, 100, 2):
        talk.ask(at, "Metadata", 12, {}, {"topics": [{"errorCode": 29, "name": "songs", "topicId": ID_1}]})
    lab.until = 130


def cli006_near_miss__a_tool_that_describes(lab):
    row = {"errorCode": 29, "resourceType": 2, "resourceName": "songs", "configs": []}
    refused(lab, "DescribeConfigs", 4, {"results": [row]})


def cli006_cannot_know(lab):
    """The capture ends soon after the first refusal."""
    talk = connected(lab)
    for at in range(30):
        write(talk, at, 29 if at >= 22 else 0)
    lab.until = 31


# CLI007


def throttled(lab, waits_ms, every=2, client_id="app"):
    talk = lab.talk(client_id=client_id, host="10.0.0.7")
    row = {"index": 0, "errorCode": 0, "baseOffset": 7}
    asked = {"acks": -1, "timeoutMs": 30000, "topicData": [{"name": "songs", "partitionData": [{"index": 0}]}]}
    for number, wait_ms in enumerate(waits_ms):
        answer = {"responses": [{"name": "songs", "partitionResponses": [row]}], "throttleTimeMs": wait_ms}
        talk.ask(number * every, "Produce", 9, asked, answer)


@disagrees_at(6)
def cli007_fires(lab):
    throttled(lab, [0, 0, 0, *range(100, 4000, 100), 0])


def cli007_fires__next_to_nothing(lab):
    """producer_byte_rate=1: Java's producer writes again when it may."""
    throttled(lab, [107_000] * 3, every=107)
    (found,) = lab.findings("CLI007")
    assert found["kind"] == "anomaly"


def cli007_fires__within_its_quota(lab):
    throttled(lab, [1_900] * 30)
    (found,) = lab.findings("CLI007")
    assert found["kind"] == "information"


def cli007_near_miss__a_burst_once_an_hour(lab):
    throttled(lab, [100_000, 100_000], every=3600)


def cli007_near_miss__one_burst(lab):
    """Two writes at once, and it has nothing more to do."""
    throttled(lab, [100_000, 100_000], every=1)


def cli007_near_miss(lab):
    """A burst of some seconds."""
    throttled(lab, [*[500] * 12, *[0] * 100], every=1)


def cli007_near_miss__never(lab):
    throttled(lab, [0] * 100)


def cli007_near_miss__a_broker(lab):
    throttled(lab, [500] * 100, client_id="broker-2-fetcher-0")


def cli007_cannot_know(lab):
    """The capture is shorter than what counts."""
    throttled(lab, [500] * 5)


# CLI004


def assignment(*topics, user_data=None):
    """ConsumerProtocolAssignment version 0 in Base64; topics: (name, partitions)."""
    out = struct.pack(">hi", 0, len(topics))
    for name, partitions in topics:
        out += (
            struct.pack(">h", len(name))
            + name.encode()
            + struct.pack(f">i{len(partitions)}i", len(partitions), *partitions)
        )
    out += struct.pack(">i", -1) if user_data is None else struct.pack(">i", len(user_data)) + user_data
    return base64.b64encode(out).decode()


READER, SONGS = {"groupId": "g", "memberId": "m-1"}, (("songs", (0, 1)),)


def member(lab, topics=SONGS, *, at=1, until=420, timeout_ms=300_000, data=None, every=3):
    """One that joins, is assigned, and lives on."""
    talk = lab.talk(client_id="reader", host="10.0.0.7")
    joined = {"errorCode": 0, "memberId": "m-1", "leader": "m-1"}
    asked = {**READER, "rebalanceTimeoutMs": timeout_ms, "sessionTimeoutMs": 45_000, "protocolType": "consumer"}
    talk.ask(at, "JoinGroup", 7, asked, joined)
    talk.ask(at + 0.1, "SyncGroup", 5, READER, {"errorCode": 0, "assignment": data or assignment(*topics)})
    for now in range(at + 1, until, every):
        talk.ask(now, "Heartbeat", 4, READER, {"errorCode": 0})
    lab.until = until + 1
    return talk


def next_member(lab, topics=((ID_1, (0, 1)),), *, at=1, until=420, timeout_ms=300_000):
    """The same in KIP-848."""
    talk = lab.talk(client_id="reader", host="10.0.0.7")
    held = {"topicPartitions": [{"topicId": topic_id, "partitions": [*numbers]} for topic_id, numbers in topics]}
    for now in range(at, until, 3):
        first = now == at
        asked = {**READER, "memberEpoch": 0 if first else 5, "rebalanceTimeoutMs": timeout_ms if first else -1}
        answer = {"errorCode": 0, "memberId": "m-1", "memberEpoch": 5, "assignment": held if first else None}
        talk.ask(now, "ConsumerGroupHeartbeat", 1, asked, answer)
    lab.until = until + 1


def share_member(lab, *, at=1, until=420, client_id="reader"):
    """A member of a share group (KIP-932)."""
    talk = lab.talk(client_id=client_id, host="10.0.0.7")
    held = {"topicPartitions": [{"topicId": ID_1, "partitions": [0, 1]}]}
    for now in range(at, until, 3):
        asked = {**READER, "memberEpoch": 0 if now == at else 5}
        answer = {"errorCode": 0, "memberId": "m-1", "memberEpoch": 5, "assignment": held if now == at else None}
        talk.ask(now, "ShareGroupHeartbeat", 1, asked, answer)
    lab.until = until + 1
    return talk


def share_fetches(lab, times, client_id="reader"):
    """Both partitions are listed once; nothing is there to be fetched."""
    talk = lab.talk(client_id=client_id, host="10.0.0.7")
    for number, at in enumerate(times):
        listed = [{"topicId": ID_1, "partitions": [{"partitionIndex": n} for n in (0, 1)]}] if number == 0 else []
        asked = {**READER, "shareSessionEpoch": number, "topics": listed, "forgottenTopicsData": []}
        talk.ask(at, "ShareFetch", 1, asked, {"errorCode": 0, "responses": []})


def lists_songs(lab, until=420, leader=1):
    """What Metadata states of it, on one connection: partitions 0 and 1, led by broker 1."""
    rows = [
        {"partitionIndex": n, "leaderId": leader, "leaderEpoch": 3, "replicaNodes": [1], "isrNodes": [1]}
        for n in (0, 1)
    ]
    nodes = [{"nodeId": 1, "host": "10.0.0.1", "port": 9092}]
    answer = {
        "brokers": nodes,
        "clusterId": CLUSTER,
        "topics": [{"name": "songs", "topicId": ID_1, "partitions": rows}],
    }
    talk = lab.talk(client_id="reader", host="10.0.0.7")
    for at in range(0, until, 60):
        talk.ask(at, "Metadata", 12, {"topics": None}, answer)


def in_session(
    lab, times, *, asks=(), forgets=(), client_id="reader", talk=None, session=7, topic_id=ID_1, closes=None
):
    """Fetches of one session; `asks` and `forgets`: (number of the fetch, partitions); `closes`: when it is closed."""
    talk = talk or lab.talk(client_id=client_id, host="10.0.0.7")
    asks, forgets = dict(asks), dict(forgets)
    for number, at in enumerate(times):
        listed = (
            [{"topicId": topic_id, "partitions": [{"partition": n} for n in asks[number]]}] if number in asks else []
        )
        gone = [{"topicId": topic_id, "partitions": [*forgets[number]]}] if number in forgets else []
        asked = {"replicaId": -1, "sessionId": session if number else 0, "sessionEpoch": number, "topics": listed}
        rows = [
            {"partitionIndex": n, "highWatermark": 10, "records": None, "abortedTransactions": None}
            for n in asks.get(number, ())
        ]
        answer = {"sessionId": session, "responses": [{"topicId": topic_id, "partitions": rows}] if rows else []}
        talk.ask(at, "Fetch", 13, asked | {"forgottenTopicsData": gone}, answer)
    if closes:
        asked = {"replicaId": -1, "sessionId": session, "sessionEpoch": -1, "topics": [], "forgottenTopicsData": []}
        talk.ask(closes, "Fetch", 13, asked, {"sessionId": 0, "responses": []})
    return talk


def commits_offsets(lab, times, offsets):
    talk = lab.talk(client_id="reader", host="10.0.0.7")
    for at, offset in zip(times, offsets, strict=True):
        rows = [{"partitionIndex": n, "committedOffset": offset} for n in (0, 1)]
        answer = {"topics": [{"name": "songs", "partitions": [{"partitionIndex": n} for n in (0, 1)]}]}
        talk.ask(at, "OffsetCommit", 8, {**READER, "topics": [{"name": "songs", "partitions": rows}]}, answer)


@disagrees_later("what stays away: from when it was due")
def cli004_fires(lab):
    """It never fetches."""
    lists_songs(lab)
    member(lab)


def cli004_fires__bytes_of_an_earlier_connection_are_missing(lab, **facts):
    """It was over before the member got its partitions."""
    lists_songs(lab, 800)
    known = {"unseen_request_bytes": 40, "over": True, "close_ns": ns(10), "closed_by": "client-fin", **facts}
    lab.talk(client_id="reader", host="10.0.0.7", **known).ask(5, "Metadata", 12, {"topics": None}, {"clusterId": None})
    member(lab, at=120, until=800)


def cli004_cannot_know__that_connection_is_open(lab):
    cli004_fires__bytes_of_an_earlier_connection_are_missing(lab, over=False, close_ns=0, closed_by=None)
    lab.talks[1].ask(700, "Metadata", 12, {"topics": None}, {"clusterId": None})


def asks_in_an_old_version(lab, release="4.4.0"):
    """It joins in versions that are still there, and its broker closes the connection on what it asks for first."""
    lists_songs(lab)
    lab.versions(0, ranges(release))
    member(lab, until=60)
    lab.talk(client_id="reader", host="10.0.0.7").refused(3, "ListOffsets", 0)


def cli004_fires__its_offsets_are_asked_for_in_a_version_that_is_gone(lab):
    asks_in_an_old_version(lab)


def cli004_near_miss__the_broker_has_that_version_and_closed_for_another_reason(lab):
    """An application that has paused its partitions."""
    asks_in_an_old_version(lab, "3.9.1")
    lab.talk(client_id="other").ask(4, "ListOffsets", 0, {}, {"topics": []})


def cli004_near_miss__asks_again_in_another_version(lab):
    asks_in_an_old_version(lab)
    lab.talk(client_id="reader", host="10.0.0.7").ask(4, "ListOffsets", 1, {}, {"topics": []})


def loses_now_and_then(lab, size):
    """Of a member that never fetches so many bytes are missing, three times, between two heartbeats."""
    lists_songs(lab, 800)
    member(lab, until=800)
    gaps = tuple(lacks(ns(at), 0, size) for at in (100, 200, 300))
    lab.talks[1].facts |= {"gaps": gaps, "unseen_request_bytes": 3 * size}


def cli004_fires__moments_are_missing(lab):
    loses_now_and_then(lab, 350)


def cli004_cannot_know__whether_its_large_requests_are_missing(lab):
    """Each of them, as by a tap of small frames: a client without sessions names all partitions each time."""
    loses_now_and_then(lab, 9_000)


def cli004_fires__one_partition_of_two(lab):
    lists_songs(lab)
    member(lab)
    in_session(lab, range(3, 420, 2), asks=[(0, (1,))])


def cli004_fires__paused(lab):
    """A partition is taken out of the session, and the offset is committed again and again."""
    lists_songs(lab, 800)
    member(lab, until=800)
    in_session(lab, range(3, 800, 2), asks=[(0, (0, 1))], forgets=[(10, (0,))])
    commits_offsets(lab, range(5, 800, 5), [7] * 159)


def cli004_fires__kip_848(lab):
    lists_songs(lab)
    next_member(lab)


def cli004_fires__a_session_that_ended(lab):
    """It asked on a connection that is over, in the session of an earlier assignment."""
    lists_songs(lab, 800)
    in_session(lab, range(3, 100, 2), asks=[(0, (0, 1))])
    member(lab, at=120, until=800)
    in_session(lab, range(123, 800, 2), asks=[(0, (1,))])


def cli004_fires__a_share_group(lab):
    lists_songs(lab)
    share_member(lab)


def cli004_fires__a_share_group_that_stopped(lab):
    lists_songs(lab, 800)
    share_member(lab, until=800)
    share_fetches(lab, range(3, 100, 2))


def acquires_once(lab, lock_ms, until=250, count=1):
    """It takes records, which are locked for so long, and is silent."""
    lists_songs(lab, until)
    share_member(lab, until=until)
    listed = [{"topicId": ID_1, "partitions": [{"partitionIndex": 0}]}]
    taken = [{"firstOffset": 0, "lastOffset": 9, "deliveryCount": 1}] * count
    rows = [{"topicId": ID_1, "partitions": [{"partitionIndex": 0, "records": "AAAA", "acquiredRecords": taken}]}]
    answer = {"errorCode": 0, "acquisitionLockTimeoutMs": lock_ms, "responses": rows}
    talk = lab.talk(client_id="reader", host="10.0.0.7")
    talk.ask(4, "ShareFetch", 1, {**READER, "topics": listed, "forgottenTopicsData": []}, answer)


def cli004_fires__a_share_group_whose_lock_is_over(lab):
    acquires_once(lab, 30_000)


def cli004_near_miss__a_share_group_whose_lock_lasts(lab):
    acquires_once(lab, 180_000)


def cli004_near_miss__a_share_group_that_acquired_nothing(lab):
    acquires_once(lab, 30_000, count=0)


def cli004_near_miss__a_share_group(lab):
    """Of an empty topic."""
    lists_songs(lab)
    share_member(lab)
    share_fetches(lab, range(3, 420, 2))


def cli004_near_miss__a_share_group_works_four_minutes_on_a_batch(lab):
    lists_songs(lab, 1000)
    share_member(lab, until=1000)
    share_fetches(lab, range(3, 1000, 240))


def cli004_near_miss__a_share_group_that_acknowledges(lab):
    """It works on what it has, for long."""
    lists_songs(lab)
    talk = share_member(lab)
    share_fetches(lab, [3])
    for at in range(60, 420, 60):
        talk.ask(at, "ShareAcknowledge", 1, {**READER, "shareSessionEpoch": 1, "topics": []}, {"errorCode": 0})


def cli004_near_miss__a_share_group_of_two(lab):
    """Both members have one client ID on one host; one works, so it is unknown which one."""
    lists_songs(lab)
    share_member(lab)
    share_member(lab, at=2)
    share_fetches(lab, range(3, 420, 2))


def cli004_cannot_know__a_share_group(lab):
    """The broker that leads the partition was not captured."""
    lists_songs(lab)
    lab.metadata(2)
    share_member(lab)


def cli004_near_miss(lab):
    """An empty topic: in its session, nothing is listed after the first fetch."""
    lists_songs(lab)
    member(lab)
    in_session(lab, range(3, 420, 2), asks=[(0, (0, 1))])


def cli004_near_miss__a_session_that_goes_on(lab):
    """A second assignment changes nothing."""
    lists_songs(lab, 800)
    in_session(lab, range(3, 800, 2), asks=[(0, (0, 1))])
    member(lab, until=100)
    member(lab, at=120, until=800)


def cli004_near_miss__without_a_session(lab):
    """librdkafka lists everything in each fetch."""
    lists_songs(lab)
    member(lab)
    for number in (0, 1):
        lab.fetches(range(3, 420, 2), ID_1, client_id="reader", host="10.0.0.7", partition=number)
    lab.until = 421


def cli004_near_miss__by_name(lab):
    """An older client, which fetches by name."""
    lists_songs(lab)
    member(lab)
    talk = lab.talk(client_id="reader", host="10.0.0.7")
    for at in range(3, 420, 2):
        asked = [{"topic": "songs", "partitions": [{"partition": 0}, {"partition": 1}]}]
        talk.ask(at, "Fetch", 11, {"replicaId": -1, "sessionEpoch": -1, "topics": asked}, {"responses": []})


def cli004_near_miss__paused_for_less(lab):
    """pause() for four minutes."""
    lists_songs(lab)
    member(lab, until=250)


def cli004_near_miss__minutes_for_a_batch(lab):
    """It fetches much, works on it for long, and commits as it goes on."""
    lists_songs(lab, 1200)
    member(lab, until=1200)
    in_session(lab, range(3, 1200, 2), asks=[(0, (0, 1))], forgets=[(1, (0, 1))])
    commits_offsets(lab, range(200, 1200, 240), range(100, 600, 100))


def cli004_near_miss__another_client_id(lab):
    """The application's coordinator has a client of its own."""
    lists_songs(lab)
    member(lab)
    in_session(lab, range(3, 420, 2), asks=[(0, (0, 1))], client_id="reader-data")


def cli004_near_miss__a_standby(lab):
    lists_songs(lab)
    member(lab, ())


def cli004_near_miss__streams(lab):
    """Restores its state; the assignment has bytes of its own."""
    lists_songs(lab)
    member(lab, data=assignment(*SONGS, user_data=b"own"))


def cli004_near_miss__a_rebalance(lab):
    """Another member gets the partitions."""
    lists_songs(lab)
    talk = member(lab, until=200)
    talk.ask(200, "SyncGroup", 5, READER, {"errorCode": 0, "assignment": assignment()})
    for at in range(201, 800, 3):
        talk.ask(at, "Heartbeat", 4, READER, {"errorCode": 0})
    lab.until = 801


def cli004_near_miss__it_left(lab):
    lists_songs(lab)
    member(lab, until=100)
    lab.until = 900


def cli004_near_miss__no_leader(lab):
    lists_songs(lab, leader=-1)
    member(lab)


def cli004_near_miss__a_quota(lab):
    lists_songs(lab)
    member(lab)
    throttled(lab, [500] * 100, client_id="reader")


def cli004_cannot_know(lab):
    """The broker that leads the partition was not captured."""
    lists_songs(lab)
    lab.metadata(2)
    member(lab)


def cli004_cannot_know__bytes_are_missing(lab):
    lists_songs(lab)
    member(lab)
    talk = in_session(lab, range(3, 420, 2), asks=[(0, (1,))])
    talk.facts["unseen_request_bytes"] = 40


def cli004_cannot_know__the_session_began_before(lab):
    lists_songs(lab)
    member(lab)
    talk = lab.talk(client_id="reader", host="10.0.0.7", from_start=False)
    for number, at in enumerate(range(3, 420, 2)):
        asked = {"replicaId": -1, "sessionId": 7, "sessionEpoch": 40 + number, "topics": [], "forgottenTopicsData": []}
        talk.ask(at, "Fetch", 13, asked, {"sessionId": 7, "responses": []})


def out_of_range(lab, *then):
    """The log has deleted what the group committed: it begins at 30."""
    lists_songs(lab, 120)
    member(lab, (("songs", (0,)),), until=118)
    talk = lab.talk(client_id="reader", host="10.0.0.7")
    asked = {"replicaId": -1, "sessionEpoch": -1, "topics": [{"topicId": ID_1}]}
    asked["topics"][0]["partitions"] = [{"partition": 0, "fetchOffset": 5}]
    row = {"partitionIndex": 0, "errorCode": 1, "highWatermark": -1, "records": None, "abortedTransactions": None}
    talk.ask(3, "Fetch", 13, asked, {"responses": [{"topicId": ID_1, "partitions": [row]}]})
    for at, *what in then:
        talk.ask(at, *what)


def cli004_fires__its_offset_is_gone(lab):
    """Without auto.offset.reset (librdkafka: error) it asks for nothing more, and lives on in its group."""
    out_of_range(lab)
    (found,) = lab.findings("CLI004")
    assert {"name": "hurt_host", "value": "10.0.0.7"} in found["words"]


def cli004_fires__its_fetch_is_denied_beside_a_reader_of_no_group(lab):
    """It fetched for itself, so that the other one does not do it for it."""
    lists_songs(lab, 120)
    member(lab, (("songs", (0,)),), until=118)
    denied = {"partitionIndex": 0, "errorCode": 29, "highWatermark": -1, "records": None, "abortedTransactions": None}
    topics = [{"topicId": ID_1, "partitions": [{"partition": 0, "fetchOffset": 5}]}]
    asked = {"replicaId": -1, "sessionEpoch": -1, "topics": topics}
    answer = {"responses": [{"topicId": ID_1, "partitions": [denied]}]}
    lab.talk(client_id="reader", host="10.0.0.7").ask(3, "Fetch", 13, asked, answer)
    lab.fetches(range(4, 118, 2), ID_1, talk=lab.talk(client_id="copy", host="10.0.0.7"))


def cli004_near_miss__its_offset_is_gone_and_it_looks_for_another(lab):
    """It begins where the log does, and takes its time for what it gets."""
    asked = {"replicaId": -1, "topics": [{"name": "songs", "partitions": [{"partitionIndex": 0, "timestamp": -2}]}]}
    begin = {"topics": [{"name": "songs", "partitions": [{"partitionIndex": 0, "timestamp": -1, "offset": 30}]}]}
    out_of_range(lab, (3.5, "ListOffsets", 7, asked, begin))


def beside_a_session_of_before(lab, *, of_a_group):
    """Another client of the host continues a fetch session that began on a connection of before."""
    lists_songs(lab)
    member(lab)
    in_session(lab, range(3, 40, 2), asks={0: (0, 1)}, forgets={18: (0, 1)})
    talk = lab.talk(client_id="other", host="10.0.0.7")
    if of_a_group:
        joined = {"errorCode": 0, "memberId": "m-2", "leader": "m-2"}
        talk.ask(1, "JoinGroup", 7, {"groupId": "h", "memberId": "m-2", "protocolType": "consumer"}, joined)
    for number, at in enumerate(range(3, 420, 2)):
        asked = {"replicaId": -1, "sessionId": 9, "sessionEpoch": 40 + number, "forgottenTopicsData": []}
        asked["topics"] = [{"topicId": ID_2, "partitions": [{"partition": 0}]}] if number == 0 else []
        talk.ask(at, "Fetch", 13, asked, {"sessionId": 9, "responses": []})


def cli004_fires__beside_a_session_of_another_groups_member(lab):
    beside_a_session_of_before(lab, of_a_group=True)


def cli004_cannot_know__beside_a_session_of_a_client_of_no_group(lab):
    """It may be a thread of the member's application that fetches for it."""
    beside_a_session_of_before(lab, of_a_group=False)


def epoch_ahead(lab):
    """The group's committed leader epoch is one that no leader has; another group reads on."""
    lists_songs(lab, 120)
    row = {"partitionIndex": 0, "committedOffset": 5, "committedLeaderEpoch": 9, "errorCode": 0}
    answer = {"groups": [{"groupId": "g", "topics": [{"name": "songs", "partitions": [row]}]}]}
    lab.talk(client_id="reader", host="10.0.0.7").ask(2, "OffsetFetch", 8, {"groups": [{"groupId": "g"}]}, answer)
    lab.fetches(range(3, 118, 2), ID_1, client_id="other", host="10.0.0.8")


def grp007_kinds(lab):
    return {finding["kind"] for finding in lab.findings("GRP007")}


def grp007_fires__another_group_reads_on(lab):
    epoch_ahead(lab)
    member(lab, until=120)
    assert grp007_kinds(lab) == {"violation"}
    (found,) = lab.findings("GRP007")
    assert found["client_ids"] == ["reader"]


def grp007_fires__restarted_in_vain(lab):
    """The former member is over; the one that waits now is named, until it is seen last."""
    epoch_ahead(lab)
    member(lab, until=60)
    later = {**READER, "memberId": "m-2"}
    talk = lab.talk(client_id="reader", host="10.0.0.7")
    talk.ask(70, "SyncGroup", 5, later, {"errorCode": 0, "assignment": assignment(*SONGS)})
    for at in range(72, 120, 3):
        talk.ask(at, "Heartbeat", 4, later, {"errorCode": 0})
    (found,) = lab.findings("GRP007")
    assert (found["client_ids"], found["last_seen"]) == (["reader"], ns(117.001))


def grp007_fires__its_member_reads_on(lab):
    """A client that ignores the epoch."""
    epoch_ahead(lab)
    member(lab, until=120)
    in_session(lab, range(3, 120, 2), asks=[(0, (0, 1))])
    assert grp007_kinds(lab) == {"information"}


def grp007_fires__a_member_of_another_group_on_its_host(lab):
    epoch_ahead(lab)
    member(lab, until=120)
    in_session(lab, range(3, 120, 2), asks=[(0, (0, 1))], client_id="neighbour")
    talk = lab.talk(client_id="neighbour", host="10.0.0.7")
    theirs = {"groupId": "other", "memberId": "m-9"}
    talk.ask(1, "SyncGroup", 5, theirs, {"errorCode": 0, "assignment": assignment(*SONGS)})
    talk.ask(100, "Heartbeat", 4, theirs, {"errorCode": 0})
    assert grp007_kinds(lab) == {"violation"}


def closed_at_once(lab, count=15, every=3.0, writes=1, late=0.005, version=9, found=BROKER, pace=0.01, **facts):
    """acks=0: a broker's only answer to an error is to close the connection."""
    lab.metadata(0)
    for number in range(count):
        at = 1 + number * every
        talk = lab.talk(client_id="app", host="10.0.0.7", **{"over": True, "requests": writes + 1, **facts})
        greet(talk, at, found)
        talk.facts["responses"] = 1
        for _ in range(writes):
            at += pace
            talk.ask(at, "Produce", version, {"acks": 0, "timeoutMs": 30000}, outcome=NO_RESPONSE_DUE)
        talk.closed = at + late
    lab.until = count * every + 60


def cli006_fires__writes_without_a_response(lab):
    closed_at_once(lab)


def cli006_near_miss__writes_without_a_response_a_new_leader(lab):
    """The client learns who leads the partition, and goes on there."""
    closed_at_once(lab, count=3)


def cli006_near_miss__writes_without_a_response_that_are_taken(lab):
    """Many writes on each connection, until brokers restart."""
    closed_at_once(lab, writes=40, pace=0.2, every=10)


def cli006_fires__writes_without_a_response_one_behind_another(lab):
    """librdkafka: as many as it has until it learns that the connection is closed."""
    closed_at_once(lab, writes=40)


def cli006_near_miss__writes_without_a_response_and_idle(lab):
    """The broker closes when nothing comes for long (connections.max.idle.ms)."""
    closed_at_once(lab, every=30, late=20)


def cli006_near_miss__writes_without_a_response_and_the_client_closes(lab):
    """A script that writes once."""
    closed_at_once(lab, closed_by="client-fin")


def cli006_near_miss__writes_without_a_response_in_a_removed_version(lab):
    """VER001's affair."""
    closed_at_once(lab, version=0, found={**ranges("4.4.0"), 0: (0, 13)})


def cli006_cannot_know__writes_without_a_response(lab):
    """Bytes are missing in which a response may have been."""
    closed_at_once(lab, unseen_response_bytes=40, gaps=(lacks(ns(2), 1, 40),))


# GRP008


def leaves(talk, times, *, again=True, version=5, reason=None):
    """Each time of its own accord; it joins again after ten seconds."""
    for at in times:
        member_of_group = {"memberId": "m-1"}
        asked = {"groupId": "g", "members": [member_of_group | ({"reason": reason} if reason else {})]}
        talk.ask(at, "LeaveGroup", version, asked, {"errorCode": 0, "members": [{**member_of_group, "errorCode": 0}]})
        joined = {"errorCode": 0, "memberId": "m-1", "leader": "m-1"}
        if again:
            join = {**READER, "rebalanceTimeoutMs": 300_000, "sessionTimeoutMs": 45_000, "protocolType": "consumer"}
            talk.ask(at + 10, "JoinGroup", 7, join, joined)


@disagrees_at(310)
def grp008_fires(lab):
    leaves(member(lab, until=30), [310, 620, 930])
    lab.until = 950


def grp008_fires__of_the_next_protocol(lab):
    talk = lab.talk(client_id="reader", host="10.0.0.7")
    for at, epoch in ((1, 0), (4, 5), (310, -1), (330, 0), (640, -1), (650, 0)):
        asked = {**READER, "memberEpoch": epoch, "rebalanceTimeoutMs": 300_000 if epoch == 0 else -1}
        answer = {"errorCode": 0, "memberId": "m-1", "memberEpoch": 5, "assignment": None}
        talk.ask(at, "ConsumerGroupHeartbeat", 1, asked, answer)
    lab.until = 660


def removed(lab, times, *, again=True, one_connection=True):
    """Its work takes 14 s a record, and its session 10 s: it learns so with its next heartbeat, and joins again."""
    talk = member(lab, until=4)
    for at in times:
        talk = talk if one_connection else member(lab, at=at - 8, until=at - 6)
        talk.ask(at, "Heartbeat", 4, READER, {"errorCode": 25})
        if again:
            asked = {**READER, "rebalanceTimeoutMs": 20_000, "sessionTimeoutMs": 10_000, "protocolType": "consumer"}
            talk.ask(at + 14, "JoinGroup", 7, asked, {"errorCode": 0, "memberId": "m-1", "leader": "m-1"})
            talk.ask(at + 14.1, "Heartbeat", 4, READER, {"errorCode": 0})
    lab.until = max(times) + 30


def grp008_fires__the_coordinator_removes_it(lab):
    removed(lab, range(18, 130, 28))
    (found,) = lab.findings("GRP008")
    assert found["summary"].startswith("reader was removed from group g 4 times")


def grp008_near_miss__removed_twice(lab):
    removed(lab, range(18, 60, 28))


def grp008_near_miss__several_processes_are_removed_once(lab):
    removed(lab, range(18, 130, 28), one_connection=False)


def grp008_near_miss__it_is_no_member_and_does_not_join(lab):
    removed(lab, range(18, 130, 28), again=False)


def grp008_near_miss(lab):
    """A process is started again and again, as by a schedule."""
    for at in range(0, 600, 60):
        leaves(member(lab, at=at + 1, until=at + 30), [at + 40], again=False)


def grp008_near_miss__two_agents_whose_clocks_differ(lab):
    """Each shows the one message, in two slots of time."""
    leaves(member(lab, until=30), [309.95, 310.1], again=False)
    lab.until = 330


def grp008_near_miss__unsubscribes(lab):
    """Kafka Streams, of which tasks were taken: it polls in time."""
    leaves(member(lab, until=30), [310, 350, 390], reason=UNSUBSCRIBED)
    lab.until = 420


def grp008_near_miss__did_not_poll_once_and_unsubscribes(lab):
    talk = member(lab, until=30)
    leaves(talk, [310, 350, 390], reason=UNSUBSCRIBED)
    leaves(talk, [700], reason=POLL_EXPIRED)
    lab.until = 720


def grp008_fires__did_not_poll_and_unsubscribes_at_last(lab):
    """What it states last is not why it left before."""
    talk = member(lab, until=30)
    leaves(talk, [310, 620, 930], reason=POLL_EXPIRED)
    leaves(talk, [1240], reason=UNSUBSCRIBED)
    lab.until = 1260
    (found,) = lab.findings("GRP008")
    assert found["count"] == 3


def grp008_fires__states_that_it_did_not_poll(lab):
    leaves(member(lab, until=30), [310, 620, 930], reason=POLL_EXPIRED)
    lab.until = 950


def grp008_near_miss__an_administrator(lab):
    member(lab, until=300)
    leaves(lab.talk(client_id="adminclient-1", host="10.0.0.7"), [100, 200], again=False)


def grp008_near_miss__it_unsubscribes_once_and_ends_later(lab):
    """An application that rests for a while: its last leave is for good."""
    talk = member(lab, until=30)
    leaves(talk, [310])
    leaves(talk, [620], again=False)
    lab.until = 640


def grp008_cannot_know(lab):
    """The capture has one of its ends."""
    leaves(member(lab, until=30), [310])
    lab.until = 330


def commits_as_no_member(lab, ends=100):
    """Another one's group: each commit is rejected, and its fetches succeed."""
    talk = connected(lab)
    for at in range(0, ends, 2):
        rows = [{"partitionIndex": 0, "committedOffset": at}]
        asked = {"groupId": "g", "memberId": "", "generationIdOrMemberEpoch": -1,
                 "topics": [{"name": "songs", "partitions": rows}]}  # fmt: skip
        answer = {"topics": [{"name": "songs", "partitions": [{"partitionIndex": 0, "errorCode": 25}]}]}
        talk.ask(at, "OffsetCommit", 8, asked, answer)
        talk.ask(at + 1, "Fetch", 12, {"topics": [{"topic": "songs"}]}, {"responses": []})
    return talk


def cli006_fires__commits_for_a_group_that_it_is_not_in(lab):
    commits_as_no_member(lab)


def cli006_near_miss__a_member_that_joins_again(lab):
    talk = commits_as_no_member(lab, 20)
    talk.ask(25, "JoinGroup", 7, {"groupId": "g"}, {"errorCode": 0, "memberId": "m", "leader": "m"})
    for at in range(30, 100, 3):
        talk.ask(at, "Heartbeat", 4, {"groupId": "g", "memberId": "m"}, {"errorCode": 0})
