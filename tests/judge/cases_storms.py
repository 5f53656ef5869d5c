"""Clients that ask without a pause: three cases of CLI012 and its look-alikes. A slot of 10 s begins at second 0."""

from tests.judge.lab import B1, ID_1, ID_2, disagrees_at, ns
from wirecheck.judge.checks.connection_ends import hash_of
from wirecheck.judge.results.finding import DOUBTED

FAST_S = 30
"""Three slots."""
ALIVE = {"groupId": "g", "memberId": "m-1"}


def lists(lab, times, talk):
    for at in times:
        lab.metadata(at, [("songs", ID_1)], talk=talk)


def every(per_s, until=FAST_S, since=0):
    return [since + number / per_s for number in range(int((until - since) * per_s))]


def fetches(lab, times, *rows, talk=None, client_id="app"):
    """rows: (topic ID, error) of each answer."""
    talk = talk or lab.metadata(0, [("songs", ID_1)], talk=lab.talk(client_id=client_id))
    asked = {"topics": [{"topicId": one, "partitions": [{"partition": 0}]} for one, _ in rows], "sessionEpoch": -1}
    parts = [{"partitionIndex": 0, "highWatermark": 10, "records": None, "abortedTransactions": None}]
    answer = [{"topicId": one, "partitions": [{**parts[0], "errorCode": error}]} for one, error in rows]
    for at in times:
        talk.ask(at, "Fetch", 13, {**asked, "replicaId": -1}, {"responses": answer})
        lab.until = max(lab.until, at)
    return talk


def heartbeats(lab, times, error=0, talk=None):
    talk = talk or lab.talk(client_id="member")
    for at in times:
        talk.ask(at, "Heartbeat", 0, ALIVE, {"errorCode": error})
        lab.until = max(lab.until, at)
    return talk


def writes(lab, times, error=0, talk=None):
    talk = talk or lab.talk(client_id="writer")
    row = {"index": 0, "errorCode": error, "baseOffset": 7}
    asked = {"acks": -1, "timeoutMs": 30000, "topicData": [{"name": "songs", "partitionData": [{"index": 0}]}]}
    for at in times:
        talk.ask(at, "Produce", 9, asked, {"responses": [{"name": "songs", "partitionResponses": [row]}]})
        lab.until = max(lab.until, at)
    return talk


def short(lab, times, *steps, client_id="app", host="10.0.0.99"):
    """A connection at each time, closed by its client once each step is answered."""
    for at in times:
        over = {"over": True, "close_ns": ns(at + 0.004), "closed_by": "client-fin", "client_hash": hash_of(client_id)}
        talk = lab.talk(client_id=client_id, host=host, **over)
        for number, step in enumerate(steps):
            step(lab, [at + number / 1000], talk=talk)
        lab.until = max(lab.until, at)


def greets(lab, times, talk):
    for at in times:
        talk.ask(at, "ApiVersions", 3, {}, {"apiKeys": [{"apiKey": 3, "minVersion": 0, "maxVersion": 12}]})


def logs_in(lab, times, talk, error=58):
    for at in times:
        talk.ask(at, "SaslAuthenticate", 2, {"authBytes": ""}, {"errorCode": error, "authBytes": ""})


@disagrees_at(0)
def cli012_fires(lab):
    """Its topic was recreated, and it does not wait between two fetches."""
    fetches(lab, every(105), (ID_1, 100))


def cli012_fires__of_one_topic(lab):
    """The other topic is granted in each answer, and has nothing new: without the error the broker would wait."""
    fetches(lab, every(105), (ID_1, 100), (ID_2, 0))
    (found,) = lab.findings("CLI012")
    assert found["topic_ids"] == [ID_1]
    assert ": they are rejected (UNKNOWN_TOPIC_ID)" in found["summary"], found["summary"]


def cli012_fires__heartbeats(lab):
    """They are granted; a group needs one in three seconds."""
    talk = heartbeats(lab, every(1, 20))
    heartbeats(lab, every(210, 50, 20), talk=talk)
    (found,) = lab.findings("CLI012")
    assert "sends Heartbeat without a pause, 210 a second" in found["summary"]
    assert found["summary"].endswith(": one in some seconds is enough; before: 1/s.")


def joins(lab, per_s, rejected=0):
    """A member that joins and gets its assignment again and again; one in so many SyncGroups is rejected."""
    talk = lab.talk(client_id="worker")
    for number, at in enumerate(every(per_s)):
        talk.ask(at, "JoinGroup", 7, ALIVE, {"errorCode": 0, "memberId": "m-1"})
        error = 25 if rejected and number % rejected == 0 else 0
        talk.ask(at + 0.001, "SyncGroup", 4, ALIVE, {"errorCode": error, "assignment": ""})
        lab.until = max(lab.until, at + 0.001)


def cli012_fires__two_connect_clusters_with_one_group(lab):
    """Each worker waits for a configuration that only the other cluster's topic has, and joins again."""
    joins(lab, 205, rejected=50)
    for found in lab.findings("CLI012"):
        assert found["summary"].endswith("UTC: one in some seconds is enough."), found["summary"]
        assert DOUBTED in {word["name"] for word in found["words"]}


def cli012_near_miss__joins_often(lab):
    joins(lab, 20)


def cli012_fires__a_producer_that_spins(lab):
    talk = writes(lab, every(20, 20))
    writes(lab, every(105, 50, 20), 3, talk)


def cli012_fires__opens_connections(lab):
    """It makes a client for each record that it would write, and closes it again."""
    short(lab, every(205), greets, lists)
    (found,) = lab.findings("CLI012")
    assert found["summary"].startswith("app opens connections without a pause, 205 a second"), found["summary"]
    assert found["summary"].endswith(": for ApiVersions and Metadata only.")


def cli012_fires__logs_in(lab):
    lab.metadata(0, [("songs", ID_1)])
    short(lab, every(105), greets, logs_in)
    (found,) = lab.findings("CLI012")
    assert found["summary"].endswith(": SaslAuthenticate is rejected (SASL_AUTHENTICATION_FAILED).")


def cli012_near_miss__short_connections_that_write(lab):
    """A function that is started for each record, behind one address."""
    short(lab, every(205), greets, writes)


def cli012_near_miss__health_checks(lab):
    short(lab, every(105), greets, lists)


def cli012_near_miss__health_checks_of_many_hosts(lab):
    for number in range(5):
        short(lab, every(60), greets, lists, host=f"10.0.1.{number}")


def cli012_near_miss__a_burst_of_connections(lab):
    short(lab, every(1000, 5), greets, logs_in)
    short(lab, every(1, 40, 5), greets, logs_in)


def cli012_near_miss(lab):
    """A burst that ends by itself: Java's consumer in the second after its topic was recreated."""
    talk = fetches(lab, every(1400, 6, 5), (ID_1, 100))
    fetches(lab, every(2, 60, 6), (ID_1, 100), talk=talk)


def cli012_near_miss__two_bursts(lab):
    """In slots with others between."""
    for at in (5, 25, 45):
        fetches(lab, every(1100, at + 1, at), (ID_1, 100))
    lab.until = 60


def cli012_near_miss__a_busy_reader(lab):
    fetches(lab, every(150), (ID_1, 0))


def cli012_near_miss__a_busy_producer(lab):
    """It is rejected as often as it was granted: it has so much to write."""
    talk = writes(lab, every(105, 20))
    writes(lab, every(105, 50, 20), 6, talk)


def cli012_near_miss__a_producer_from_the_start(lab):
    """How much it has to write is not known."""
    writes(lab, every(105), 29)


def cli012_near_miss__heartbeats_each_ten_milliseconds(lab):
    heartbeats(lab, every(100))


def cli012_near_miss__many_members_at_one_address(lab):
    for _ in range(20):
        heartbeats(lab, every(15))


def cli012_near_miss__many_readers_at_one_address(lab):
    for _ in range(20):
        fetches(lab, every(6), (ID_1, 100))


def cli012_near_miss__a_tool_without_rights(lab):
    """It asks for the offsets of each partition."""
    talk = lab.talk(client_id="exporter")
    for number, at in enumerate(every(105)):
        part = {"partitionIndex": number, "timestamp": -1}
        answer = {"partitionIndex": number, "errorCode": 29}
        asked = {"replicaId": -1, "topics": [{"name": "songs", "partitions": [part]}]}
        talk.ask(at, "ListOffsets", 6, asked, {"topics": [{"name": "songs", "partitions": [answer]}]})
    lab.until = FAST_S


def cli012_near_miss__share_acknowledgements(lab):
    talk = lab.talk(client_id="share")
    asked = {"groupId": "s", "memberId": "m", "shareSessionEpoch": 1, "topics": []}
    for at in every(150):
        talk.ask(at, "ShareAcknowledge", 1, asked, {"errorCode": 0, "responses": []})
    lab.until = FAST_S


def cli012_near_miss__an_admin_loop(lab):
    """A script that looks whether a topic is there, one request after the other."""
    talk = lab.talk(B1, "admin")
    for at in every(105):
        lab.metadata(at, [("songs", ID_1)], talk=talk)


def cli012_cannot_know(lab):
    """The capture has two slots of it."""
    fetches(lab, every(200, 20), (ID_1, 100))
