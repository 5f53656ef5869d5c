"""Cases of the CLI checks, in bytes: clients that get nowhere, and those who only look like one."""

from tests.judge.cases_versions import ranges
from tests.judge.lab import B1, B2, ID_1, ID_2, ns
from wirecheck.decode.connection.exchanges import CLOSED_BY_CLIENT, CLOSED_BY_SERVER
from wirecheck.decode.connection.framing.recognise import hash_of_client

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


def cli001_near_miss__few(lab):
    shut_out(lab, count=6)


def cli001_cannot_know(lab):
    """Bytes of the answers are missing."""
    shut_out(lab, unseen_response_bytes=40)


def other_protocol(lab, protocol, count=4, **facts):
    for number in range(count):
        talk = lab.talk(client_id="app", host="10.0.0.7", over=True, requests=1, answered_in=protocol, **facts)
        talk.ask(1 + number, "ApiVersions", 3, GREETING, outcome=CLOSED_BY_SERVER)
        talk.closed = 1.1 + number
    lab.until = 60


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


CONTROLLER_1 = "10.0.0.1:9093"


def at_a_controller(lab, times=1):
    for number in range(times):
        greet(lab.talk(CONTROLLER_1, "app", "10.0.0.7"), 1 + number, CONTROLLER)
    served(lab, 60)
    lab.until = 90


def cli003_fires(lab):
    at_a_controller(lab)


def cli003_fires__again_and_again(lab):
    at_a_controller(lab, times=10)


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


def refused(lab, api, version, response, request=(), until=100, every=2):
    talk = lab.talk(client_id="app", host="10.0.0.7")
    for at in range(0, until, every):
        talk.ask(at, api, version, dict(request), response(at) if callable(response) else response)
    lab.until = until + 30


def cli006_fires__topic_denied_in_metadata(lab):
    refused(lab, "Metadata", 12, {"topics": [{"errorCode": 29, "name": "songs", "topicId": ID_1}]})


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


def cli006_fires__coordinator_denied(lab):
    refused(lab, "FindCoordinator", 3, {"errorCode": 30}, {"key": "g"})


def cli006_near_miss(lab):
    """A group that rebalances for long: answers that make the client join again."""
    refused(lab, "JoinGroup", 9, lambda at: {"errorCode": 79 if at % 4 else 27}, {"groupId": "g"})


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


def cli007_fires(lab):
    throttled(lab, [0, 0, 0, *range(100, 4000, 100), 0])


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
