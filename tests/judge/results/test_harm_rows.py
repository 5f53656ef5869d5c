"""Whose requests are refused: from answers alone, ended by a success, and never a follower's."""

import pytest

from tests.judge.lab import B1, B2, B3, CLUSTER, ID_1, ID_2, ID_3, Lab, lacks, ns
from wirecheck.decode.connection.exchanges import CLOSED_BY_CLIENT
from wirecheck.judge.checks.shapes import gathered
from wirecheck.judge.claims.claim import Claim, Sighting
from wirecheck.judge.claims.extract import error_answers, replicas, uses
from wirecheck.judge.claims.outcomes import SLOT_NS, SUCCESS, WAITED, Run, single
from wirecheck.judge.results import client_rows
from wirecheck.judge.results.client_rows import HURT, OUTCOMES_BY_ID, SERVES

UNKNOWN_TOPIC_ID, NOT_LEADER, OFFSET_METADATA_TOO_LARGE = 100, 6, 12


def harms(lab):
    return sorted(lab.judge()["harms"].values(), key=lambda row: (row["client_id"] or "", row["api"]))


def levels(lab):
    return [(row["client_id"], row["level"], row["count"], row["recovered"]) for row in harms(lab)]


def produces(lab, times, name, error=0, *, client_id="writer", server=B1, partition=0):
    talk = lab.talk(server, client_id)
    for at in times:
        row = {"index": partition, "errorCode": error, "baseOffset": 1, "logAppendTimeMs": -1}
        asked = {"acks": 1, "timeoutMs": 1, "topicData": [{"name": name, "partitionData": []}]}
        talk.ask(at, "Produce", 7, asked, {"responses": [{"name": name, "partitionResponses": [row]}]})
        lab.until = max(lab.until, at)


def test_a_client_that_is_refused_again_and_again_is_hurt():
    lab = Lab()
    lab.metadata(1, [("orders", ID_1)])
    lab.fetches([2.0, *range(10, 60, 4)], ID_1, UNKNOWN_TOPIC_ID, client_id="reader")
    (row,) = harms(lab)
    assert (row["client_id"], row["level"], row["topic"], row["topic_id"]) == ("reader", HURT, "orders", ID_1)
    assert (row["errors"], row["partitions"], row["recovered"]) == (["UNKNOWN_TOPIC_ID"], [0], False)
    assert (row["count"], row["api"], row["address"]) == (14, "Fetch", "10.0.0.99")


def test_a_success_ends_it_and_what_ends_soon_was_brief():
    lab = Lab()
    lab.metadata(1, [("orders", ID_1)])
    talk = lab.fetches([2 + n / 10 for n in range(9)], ID_1, UNKNOWN_TOPIC_ID, client_id="reader")
    lab.fetches([4, 40, 80], ID_1, client_id="reader", talk=talk)
    assert levels(lab) == [("reader", "briefly", 9, True)]


def test_a_client_that_goes_on_at_another_broker_has_recovered():
    """The leader moved, or its address was repaired: no client asks the first broker again."""
    lab = Lab()
    lab.metadata(1)
    produces(lab, range(2, 60, 4), "orders", NOT_LEADER)
    produces(lab, range(60, 90, 4), "orders", server=B2)
    assert levels(lab) == [("writer", HURT, 15, True)]


def test_every_second_answer_an_error_all_the_time_hurts():
    lab = Lab()
    lab.metadata(1, [("orders", ID_1)])
    talk = lab.talk(B1, "reader")
    for at in range(2, 200, 4):
        lab.fetches([at], ID_1, NOT_LEADER, talk=talk)
        lab.fetches([at + 1], ID_1, talk=talk)
    assert levels(lab) == [("reader", HURT, 50, True)]


def test_single_errors_between_successes_are_no_row():
    lab = Lab()
    lab.metadata(1, [("orders", ID_1)])
    talk = lab.talk(B1, "reader")
    for at in range(2, 200, 12):
        lab.fetches([at], ID_1, NOT_LEADER, talk=talk)
        lab.fetches(range(at + 1, at + 12), ID_1, talk=talk)
    assert levels(lab) == []


def test_one_that_never_got_anything_is_hurt_by_few_errors():
    lab = Lab()
    lab.metadata(1, [("orders", ID_1)])
    lab.fetches([2, 20, 40, 60, 80], ID_1, UNKNOWN_TOPIC_ID, client_id="visitor")
    lab.fetches([2], ID_1, client_id="reader")
    lab.fetches([20, 40, 60, 80, 90], ID_1, UNKNOWN_TOPIC_ID, client_id="reader", talk=lab.talk(B1, "reader"))
    assert levels(lab) == [("reader", "briefly", 5, False), ("visitor", HURT, 5, False)]


def writes_many(lab, times, failed, *, partitions=20, by_id=True, error=19, talk=None):
    """Each request has all partitions; where `failed` is true of its time the last one is rejected."""
    talk = talk or lab.talk(B1, "writer")
    name, version = ({"topicId": ID_1}, 13) if by_id else ({"name": "orders"}, 9)
    for at in times:
        codes = [0] * (partitions - 1) + [error if failed(at) else 0]
        rows = [{"index": number, "errorCode": code, "baseOffset": 1} for number, code in enumerate(codes)]
        asked = {"acks": -1, "timeoutMs": 1, "topicData": [{**name, "partitionData": []}]}
        talk.ask(at, "Produce", version, asked, {"responses": [{**name, "partitionResponses": rows}]})
        lab.until = max(lab.until, at)
    return talk


@pytest.mark.parametrize("by_id", [True, False])
@pytest.mark.parametrize("partitions", [2, 20, 200])
def test_a_partition_that_is_rejected_in_each_request_hurts_whatever_the_same_responses_grant(by_id, partitions):
    lab = Lab()
    lab.metadata(1, [("orders", ID_1)], partitions=partitions)
    writes_many(lab, range(2, 82, 2), lambda at: True, by_id=by_id, partitions=partitions)
    (row,) = harms(lab)
    assert (row["level"], row["topic"], row["errors"]) == (HURT, "orders", ["NOT_ENOUGH_REPLICAS"])
    assert (row["partitions"], row["count"], row["recovered"]) == ([partitions - 1], 40, False)


@pytest.mark.parametrize("by_id", [True, False])
@pytest.mark.parametrize(
    ("name", "failed"),
    [
        ("a leader that moves", lambda at: 20 <= at < 40),
        ("one request in 20", lambda at: at % 40 == 2),
        ("few", lambda at: at in {20, 30, 40, 50}),
    ],
)
def test_a_partition_that_is_rejected_seldom_or_for_a_moment_hurts_no_writer(name, failed, by_id):
    lab = Lab()
    lab.metadata(1, [("orders", ID_1)], partitions=20)
    writes_many(lab, range(2, 202, 2), failed, by_id=by_id, error=NOT_LEADER)
    assert [row for row in harms(lab) if row["level"] == HURT] == [], name


@pytest.mark.parametrize("by_id", [True, False])
@pytest.mark.parametrize(("library", "again", "hurt"), [
    ("apache-kafka-java", 2, []),
    ("apache-kafka-java", 0, [HURT]),
    ("librdkafka", 2, [HURT]),
])  # fmt: skip
def test_batches_of_one_partition_that_are_split_hurt_no_writer(library, again, hurt, by_id):
    """Each request to 20 partitions has a batch that is too large for the last one, which is sent again in halves."""
    lab = Lab()
    lab.metadata(1, [("orders", ID_1)], partitions=20)
    talk = lab.talk(B1, "writer")
    talk.ask(1, "ApiVersions", 3, {"clientSoftwareName": library, "clientSoftwareVersion": "1"}, {"apiKeys": []})
    for at in range(2, 82, 2):
        writes_many(lab, [at], lambda at: True, by_id=by_id, error=10, talk=talk)
        writes_many(lab, [at + 0.1 * half for half in range(1, again + 1)], lambda at: False, by_id=by_id, talk=talk)
    assert [row["level"] for row in harms(lab)] == hurt


def test_a_partition_that_is_written_again_recovered():
    lab = Lab()
    lab.metadata(1, [("orders", ID_1)], partitions=20)
    writes_many(lab, range(2, 202, 2), lambda at: 20 <= at < 90)
    (row,) = harms(lab)
    assert (row["level"], row["recovered"]) == (HURT, True)


def test_by_name_each_partition_counts_by_itself():
    lab = Lab()
    lab.metadata(1, [("orders", ID_1)])
    produces(lab, range(2, 80, 3), "orders", NOT_LEADER, partition=3)
    produces(lab, range(2, 80, 3), "orders", partition=4)
    (row,) = harms(lab)
    assert (row["client_id"], row["level"], row["api"], row["partitions"]) == ("writer", HURT, "Produce", [3])
    assert (row["topic"], row["topic_id"], row["errors"]) == ("orders", None, ["NOT_LEADER_OR_FOLLOWER"])


def test_reads_by_id_between_two_bursts_of_errors_by_name_part_them():
    """A consumer fetches by name while it lacks the new ID of a topic that was recreated, twice."""
    lab = Lab()
    lab.metadata(1, [("orders", ID_1)])
    talk = lab.talk(client_id="reader")
    for start in (2, 42):
        for at in range(start, start + 6):
            row = {"partitionIndex": 0, "errorCode": 3, "records": None, "abortedTransactions": None}
            asked = {"topics": [{"topic": "orders", "partitions": [{}]}], "sessionEpoch": -1, "replicaId": -1}
            talk.ask(at, "Fetch", 12, asked, {"responses": [{"topic": "orders", "partitions": [row]}]})
        lab.fetches(range(start + 10, start + 30, 5), ID_1, talk=talk)
    assert levels(lab) == [("reader", "briefly", 6, True)]


def answers_without_leader(lab, times, *, client_id="writer", partition=0, server=B1, led=None, error=5):
    """Metadata answers that a partition of orders has no leader, or, where `led` is true, that it has one."""
    talk = lab.talk(server, client_id)
    for at in times:
        leader = {"leaderId": 2, "errorCode": 0} if led else {"leaderId": -1, "errorCode": error}
        row = {"partitionIndex": partition, "leaderEpoch": 4, "replicaNodes": [2], "isrNodes": [2], **leader}
        topic = {"errorCode": 0, "name": "orders", "topicId": ID_1, "partitions": [row]}
        nodes = [{"nodeId": n, "host": f"10.0.0.{n}", "port": 9092} for n in (1, 2)]
        answer = {"brokers": nodes, "clusterId": CLUSTER, "topics": [topic]}
        talk.ask(at, "Metadata", 12, {"topics": [{"name": "orders"}]}, answer)
        lab.until = max(lab.until, at)


def test_a_client_that_finds_no_leader_is_hurt_and_a_monitor_is_not():
    lab = Lab()
    produces(lab, [1], "orders")
    for client_id in ("writer", "monitor"):
        answers_without_leader(lab, range(2, 50, 4), client_id=client_id)
    (row,) = harms(lab)
    assert (row["client_id"], row["level"], row["api"], row["errors"]) == (
        "writer",
        HURT,
        "Metadata",
        ["LEADER_NOT_AVAILABLE"],
    )
    assert (row["topic"], row["partitions"], row["brokers"], row["count"]) == ("orders", [0], [2], 12)
    assert (row["blocked_ms"], row["recovered"]) == (44_000, False)


LISTENER_NOT_FOUND = 72


@pytest.mark.parametrize(
    ("until", "led", "found"),
    [
        (50, [], [("writer", HURT, 12, False)]),
        (50, [64], [("writer", HURT, 12, True)]),
        (18, [22], []),
    ],
    ids=["for ever", "until the broker has it", "a restart"],
)
def test_a_leader_without_a_listener_for_a_client_hurts_it_though_others_find_it(until, led, found):
    """An administrator comes by a listener that all brokers have."""
    lab = Lab()
    produces(lab, [1], "orders")
    answers_without_leader(lab, range(2, until, 4), error=LISTENER_NOT_FOUND)
    answers_without_leader(lab, led, led=True)
    answers_without_leader(lab, range(3, 80, 5), led=True, client_id="administrator")
    assert levels(lab) == found
    assert all(row["errors"] == ["LISTENER_NOT_FOUND"] for row in harms(lab))


def test_a_leader_that_is_found_ends_it():
    lab = Lab()
    produces(lab, [1], "orders")
    answers_without_leader(lab, range(2, 50, 4))
    answers_without_leader(lab, [60], led=True)
    assert levels(lab) == [("writer", HURT, 12, True)]


def test_a_partition_that_is_written_meanwhile_has_a_leader():
    """Another broker's old answer does not stop a client that reaches the leader."""
    lab = Lab()
    produces(lab, [1, 20], "orders")
    answers_without_leader(lab, range(2, 50, 4))
    assert levels(lab) == []


def test_a_new_leader_between_two_elections_parts_them():
    """The records are written by topic ID, so no partition's success is known."""
    lab = Lab()
    lab.fetches([1], ID_1, client_id="writer")
    for start in (2, 36):
        answers_without_leader(lab, range(start, start + 20, 2))
        answers_without_leader(lab, [start + 22], led=True)
    assert levels(lab) == [("writer", "briefly", 10, True)]


def test_short_and_rare_elections_are_brief():
    lab = Lab()
    produces(lab, [1], "orders")
    for start in (2, 100, 200):
        answers_without_leader(lab, range(start, start + 12, 2))
    assert levels(lab) == [("writer", "briefly", 6, False)]


def test_a_follower_is_no_client():
    lab = Lab()
    lab.metadata(1, [("orders", ID_1)])
    talk = lab.talk(B1, "broker-2-fetcher-0")
    for at in range(2, 90, 3):
        asked = {"topics": [{"topicId": ID_1, "partitions": [{"partition": 0}]}], "sessionEpoch": -1}
        row = {"partitionIndex": 0, "errorCode": UNKNOWN_TOPIC_ID, "highWatermark": 1, "records": None}
        answer = {"responses": [{"topicId": ID_1, "partitions": [{**row, "abortedTransactions": None}]}]}
        talk.ask(at, "Fetch", 13, {**asked, "replicaId": 2}, answer)
        lab.until = at
    assert levels(lab) == []


def test_each_of_many_clients_has_a_row():
    assert len(harms(many_rejected(70))) == 70


def test_of_more_clients_than_the_bound_the_worst_stay_and_the_others_are_counted(monkeypatch):
    monkeypatch.setattr("wirecheck.judge.results.client_rows.MOST", 32)
    rows = harms(many_rejected(32 + 7))
    rest = [row for row in rows if row.get("others")]
    named = [row["client_id"] for row in rows if not row.get("others")]
    assert len(named) == 32
    assert "reader-020" in named
    assert [row["others"] for row in rest] == [7]


def many_rejected(count):
    lab = Lab()
    lab.metadata(1, [("orders", ID_1)])
    for number in range(count):
        times = [2 + n * 4 + number / 100 for n in range(12 + (number == 20))]
        lab.fetches(times, ID_1, UNKNOWN_TOPIC_ID, client_id=f"reader-{number:03}", server=B2)
    return lab


def blocked(lab):
    return {row["client_id"]: row["blocked_ms"] for row in harms(lab)}


def test_a_success_by_another_id_of_the_topic_shows_that_not_all_is_refused():
    def lab_of(fetched):
        lab = Lab()
        lab.metadata(1, [("orders", ID_1)])
        lab.metadata(2, [("orders", ID_2)])
        lab.metadata(2, [("payments", ID_3)])
        for at in range(10, 60, 4):
            lab.fetches([at, at + 0.5], ID_1, UNKNOWN_TOPIC_ID, client_id="reader")
            lab.fetches([at + 1], fetched, client_id="reader", server=B2)
        return lab

    assert blocked(lab_of(ID_2))["reader"] < 5_000
    assert blocked(lab_of(ID_3))["reader"] == 48_500


def test_addresses_that_lead_to_two_clusters_in_turn_serve_a_part():
    """A load balancer: at one of its addresses the reader's connection leads to the ID's cluster, at the other not."""
    lab = Lab()
    other, beside = {"cluster_id": "another-cluster-id-000"}, "10.0.1.1:9092"
    for at in range(0, 80, 8):
        for server, later in ((B1, 0), (B2, 4), (B3, 0)):
            lab.metadata(at + later, [("orders", ID_1)], server=server)
        for server, later in ((B1, 4), (B2, 0), (beside, 0)):
            lab.metadata(at + later, [("orders", ID_2)], brokers={B1: 1, B2: 2, beside: 3}, server=server, **other)
        for number, topic_id in enumerate((ID_1, ID_2)):
            lab.fetches([at + 5], topic_id, UNKNOWN_TOPIC_ID * (1 - number), client_id="reader", server=B2)
            lab.fetches([at + 5.5], topic_id, UNKNOWN_TOPIC_ID * number, client_id="reader", server=B1)
    assert {row["blocked_ms"] < 10_000 for row in harms(lab) if row["level"] == HURT} == {True}


def test_a_success_of_another_client_or_partition_by_name():
    lab = Lab()
    lab.metadata(1, [("orders", ID_1)])
    produces(lab, range(2, 80, 3), "orders", NOT_LEADER, client_id="alone")
    produces(lab, range(2, 80, 3), "orders", NOT_LEADER, partition=3)
    produces(lab, range(2, 80, 3), "orders", partition=4)
    assert blocked(lab)["alone"] == 75_000
    assert blocked(lab)["writer"] < 5_000


def unanswered(clients):
    """One topic ID that all clients use, and then all wait 40 s for a response that never comes."""
    for number in range(clients):
        host = f"10.2.{number // 250}.{number % 250}"
        who, seen = (
            (f"client-{number}", host),
            [Sighting(ns(at), f"{host}:4000>{B1}", "Fetch", 13, 7, "a.pcap", 1, 2) for at in (10, 20, 60)],
        )
        served = single(SUCCESS, ns(10) // SLOT_NS, 4000, Run(1, ns(10), ns(12)))
        yield Claim("use", (ID_1, "Fetch", *who, B1), seen[0], outcomes=served)
        yield Claim("client", (*who, B1), seen[0], seen[2], peak={"answered": 1})
        waited = single(WAITED, ns(60) // SLOT_NS, 4000, Run(1, ns(20), ns(60)))
        yield Claim("overdue", (*who, B1, "Fetch", "orders", ID_1), seen[1], seen[2], outcomes=waited)


def test_what_a_topics_clients_wait_for_costs_by_their_number_and_not_by_its_square(monkeypatch):
    """A broker that hangs leaves thousands of clients without a response at once."""
    looked_at = []

    def counted(claims, key):
        looked_at.extend(claims := list(claims))
        return gathered(claims, key)

    monkeypatch.setattr(client_rows, "gathered", counted)
    costs = []
    for clients in (50, 200):
        looked_at.clear()
        lab = Lab()
        lab.metadata(1, [("orders", ID_1)])
        lab.until = 200
        metadata = lab.claims()
        lab.claims = lambda metadata=metadata, clients=clients: [*metadata, *unanswered(clients)]
        assert len(harms(lab)) == clients
        costs.append(len(looked_at))
    assert costs[1] < 5 * costs[0]


def test_a_write_by_id_that_gets_no_response_names_its_topic():
    lab = Lab()
    lab.metadata(1, [("orders", ID_1)])
    talk = lab.talk(client_id="writer")
    body = {"acks": 1, "timeoutMs": 30000, "topicData": [{"topicId": ID_1, "partitionData": []}]}
    talk.ask(2, "Produce", 13, body, outcome=CLOSED_BY_CLIENT)
    talk.facts |= {"closed_by": "client-fin", "close_ns": ns(40), "responses": 1}
    lab.until = 60
    (row,) = harms(lab)
    assert (row["topic"], row["topic_id"], row["errors"]) == ("orders", ID_1, ["NO_RESPONSE"])


def test_a_streak_of_errors_goes_on_when_the_address_changes_its_cluster():
    """One cluster grants the ID, the next two refuse it, the first of them for less than it takes to be stuck."""
    lab = Lab()
    for number, (since, until) in enumerate(((0, 20), (30, 48), (60, 100))):
        known = {"cluster_id": f"another-cluster-id-00{number}"} if number else {}
        for at in (since, until):
            lab.metadata(at, [("orders", (ID_1, ID_2, ID_3)[number])], brokers={B1: 1}, **known)
        lab.fetches(range(since + 1, until, 2), ID_1, UNKNOWN_TOPIC_ID if number else 0, client_id="reader")
    (row,) = [row for row in harms(lab) if row["level"] == HURT]
    assert (row["first_seen"], row["last_seen"], row["count"]) == (ns(31.001), ns(99.001), 29)
    (stuck,) = lab.findings("FET001")
    assert (stuck["first_seen"], stuck["count"]) == (ns(31.001), 29)


def refused_twice(lab, *, pause_s=0, first_until=22, **facts):
    """Two times of errors that alone are too short, and nothing captured for a while between them."""
    lab.metadata(1)
    talk = lab.talk(B1, "writer", **facts)
    for at in (*range(2, first_until, 2), *range(first_until + pause_s, first_until + 20 + pause_s, 2)):
        row = {"index": 0, "errorCode": NOT_LEADER, "baseOffset": 1, "logAppendTimeMs": -1}
        asked = {"acks": 1, "timeoutMs": 1, "topicData": [{"name": "orders", "partitionData": []}]}
        talk.ask(at, "Produce", 7, asked, {"responses": [{"name": "orders", "partitionResponses": [row]}]})
        lab.until = max(lab.until, at)


def test_what_was_not_captured_between_errors_may_have_been_a_success():
    unseen = {"gaps": (lacks(ns(32), 1, 900),), "unseen_response_bytes": 900}
    lab = Lab()
    refused_twice(lab, pause_s=12, **unseen)
    assert levels(lab) == [("writer", "briefly", 20, False)]  # all were seen
    lab = Lab()
    refused_twice(lab, pause_s=12)
    assert levels(lab) == [("writer", HURT, 20, False)], "the client waited"
    lab = Lab()
    refused_twice(lab, **unseen)
    assert levels(lab) == [("writer", HURT, 20, False)], "no pause in which it may have succeeded for long"


def test_a_hurt_client_is_not_over_it_by_what_was_not_captured():
    unseen = {"gaps": (lacks(ns(62), 1, 900),), "unseen_response_bytes": 900}
    lab = Lab()
    refused_twice(lab, pause_s=12, first_until=60, **unseen)
    assert levels(lab) == [("writer", HURT, 39, False)]
    (row,) = harms(lab)
    assert row["last_seen"] == ns(90.001)


def test_a_client_that_is_sent_to_a_broker_that_was_not_captured_works_there_meanwhile():
    """It asks again within 30 s as long as it is refused."""
    lab = Lab()
    refused_twice(lab, pause_s=25)
    assert levels(lab) == [("writer", HURT, 20, False)]
    lab = Lab()
    refused_twice(lab, pause_s=35)
    assert levels(lab) == [("writer", "briefly", 20, False)]
    lab = Lab()
    refused_twice(lab, pause_s=35)
    for server in (B2, B3):
        lab.metadata(3, server=server)
    assert levels(lab) == [("writer", HURT, 20, False)], "every broker was captured"


def test_a_client_that_is_sent_elsewhere_and_comes_back_each_minute_is_served_nowhere():
    lab = Lab()
    lab.metadata(1)
    produces(lab, [at for minute in range(6) for at in (60 * minute, 60 * minute + 1)], "orders", NOT_LEADER)
    assert levels(lab) == [("writer", HURT, 12, False)]


def test_a_partition_that_comes_back_to_a_broker_was_served_elsewhere_meanwhile():
    """Both times that a restart takes it away, broker 1 rejects it; between them it is served by broker 2."""
    lab = Lab()
    lab.metadata(1)
    produces(lab, [*range(2, 12), *range(72, 82)], "orders", NOT_LEADER)
    produces(lab, range(13, 70, 2), "orders", server=B2)
    for server in (B2, B3):
        lab.metadata(3, server=server)
    assert levels(lab) == [("writer", "briefly", 10, True)]


def test_another_partition_that_is_served_elsewhere_hides_nothing():
    lab = Lab()
    lab.metadata(1)
    produces(lab, [*range(2, 12), *range(72, 82)], "orders", NOT_LEADER)
    produces(lab, range(13, 70, 2), "orders", server=B2, partition=1)
    for server in (B2, B3):
        lab.metadata(3, server=server)
    assert levels(lab)[0][1] == HURT


def test_few_errors_over_a_long_time_are_a_row_as_long_as_nothing_succeeds():
    """`errors` calls them ongoing, and so no card is without that client."""
    lab = Lab()
    lab.metadata(1, [("orders", ID_1)])
    talk = lab.fetches([2, 20, 40], ID_1, UNKNOWN_TOPIC_ID, client_id="reader")
    assert levels(lab) == [("reader", "briefly", 3, False)]
    lab.fetches([42], ID_1, talk=talk)
    assert levels(lab) == []
    lab = Lab()
    lab.metadata(1, [("orders", ID_1)])
    lab.fetches([2, 20], ID_1, UNKNOWN_TOPIC_ID, client_id="reader")
    lab.fetches([2, 3, 4], ID_1, UNKNOWN_TOPIC_ID, client_id="visitor")
    assert levels(lab) == [], "two errors, or some seconds, are a change of leaders"


def test_the_brokers_of_which_a_client_asked_metadata_after_the_first_error():
    lab = Lab()
    lab.metadata(1, [("orders", ID_1)])
    for at, server in ((2, B1), (3, B3), (20, B2), (40, B3)):
        lab.metadata(at, [("orders", ID_1)], server=server, talk=lab.talk(server, "reader"))
    lab.fetches(range(10, 60, 4), ID_1, UNKNOWN_TOPIC_ID, client_id="reader")
    assert [row["metadata_brokers"] for row in harms(lab)] == [[2, 3]]


def commits_by_id(lab, times, error, *, client_id="reader"):
    talk = lab.talk(client_id=client_id)
    for at in times:
        asked = {"groupId": "g", "topics": [{"topicId": ID_1, "partitions": [{"partitionIndex": 0}]}]}
        row = {"partitionIndex": 0, "errorCode": error(at)}
        talk.ask(at, "OffsetCommit", 10, asked, {"topics": [{"topicId": ID_1, "partitions": [row]}]})
        lab.until = max(lab.until, at)


def test_commits_by_id_that_are_all_rejected_hurt():
    """A topic ID's harm counts successes of reads and writes alone; of commits the ledger has them."""
    lab = Lab()
    lab.metadata(1, [("orders", ID_1)])
    commits_by_id(lab, range(2, 90, 3), lambda at: OFFSET_METADATA_TOO_LARGE)
    assert [(row["client_id"], row["api"], row["level"], row["errors"]) for row in harms(lab)] == [
        ("reader", "OffsetCommit", HURT, ["OFFSET_METADATA_TOO_LARGE"])
    ]


def test_commits_by_id_of_which_few_are_rejected_do_not_hurt():
    lab = Lab()
    lab.metadata(1, [("orders", ID_1)])
    commits_by_id(lab, range(2, 90, 3), lambda at: OFFSET_METADATA_TOO_LARGE if at % 36 == 2 else 0)
    assert not harms(lab)


def in_part(lab, api, times, failed, error):
    """A request about two topics, or groups, of which one is rejected at some times."""
    talk = lab.talk(client_id="app")
    for at in times:
        code = error if failed(at) else 0
        asked, answered = PARTS[api](code)
        talk.ask(at, *api, asked, answered)
        lab.until = max(lab.until, at)
    return [(row["api"], row["level"], row["errors"], row["count"]) for row in harms(lab)]


def offsets(code, key=lambda topic: {"name": topic[0]}, **asked):
    rows = [{**key(topic), "partitions": [{"partitionIndex": 0, "errorCode": of}]} for topic, of in of_two(code)]
    return {"topics": [{**key(topic), "partitions": [{"partitionIndex": 0}]} for topic, _ in of_two(code)], **asked}, {
        "topics": rows, "responses": rows,
    }  # fmt: skip


def of_two(code):
    return [(("orders", ID_1), 0), (("bills", ID_2), code)]


def by_id(topic):
    return {"topicId": topic[1]}


def of_groups(code, topics=False):
    error = {"errorCode": 0 if topics else code}
    row = {"partitionIndex": 0, "committedOffset": 1, "errorCode": code if topics else 0}
    named = [{"name": "bills", "partitions": [row]}] if topics or not code else []
    fine = [{"name": "orders", "partitions": [{"partitionIndex": 0, "committedOffset": 1}]}]
    groups = [{"groupId": "g", "topics": fine}, {"groupId": "h", "topics": named, **error}]
    return {"groups": [{"groupId": one["groupId"], "topics": []} for one in groups]}, {"groups": groups}


def of_keys(code):
    there = {"nodeId": 1, "host": "10.0.0.1", "port": 9092}
    found = [{"key": "g", **there}, {"key": "h", **(there if not code else {"nodeId": -1, "errorCode": code})}]
    return {"coordinatorKeys": ["g", "h"]}, {"coordinators": found}


PARTS = {
    ("TxnOffsetCommit", 3): offsets,
    ("TxnOffsetCommit", 6): lambda code: offsets(code, by_id),
    ("ShareAcknowledge", 1): lambda code: offsets(code, by_id),
    ("OffsetFetch", 7): offsets,
    ("OffsetFetch", 9): lambda code: of_groups(code, topics=True),
    ("OffsetFetch", 8): of_groups,
    ("FindCoordinator", 4): of_keys,
}
DENIED = {("OffsetFetch", 8): 30, ("FindCoordinator", 4): 30}
PARTLY = pytest.mark.parametrize("api", [*PARTS], ids=lambda api: f"{api[0]}-{api[1]}")


@PARTLY
def test_a_part_of_each_request_that_is_rejected_hurts_whatever_the_rest_is_granted(api):
    lab = Lab()
    lab.metadata(1, [("orders", ID_1), ("bills", ID_2)])
    code = DENIED.get(api, 29)
    found = in_part(lab, api, range(2, 90, 3), lambda at: True, code)
    assert found == [(api[0], HURT, [client_rows.named(code)], 30)]


@PARTLY
@pytest.mark.parametrize(
    "failed", [lambda at: at < 14, lambda at: at % 60 == 2], ids=["for a moment", "one request in 20"]
)
def test_a_part_that_is_rejected_for_a_moment_or_seldom_hurts_no_client(api, failed):
    lab = Lab()
    lab.metadata(1, [("orders", ID_1), ("bills", ID_2)])
    assert not in_part(lab, api, range(2, 180, 3), failed, DENIED.get(api, 29))


def test_groups_whose_coordinator_moves_or_that_are_gone_hurt_no_client():
    for api, code in (("OffsetFetch", 16), ("OffsetFetch", 14), ("OffsetFetch", 69), ("FindCoordinator", 15)):
        lab = Lab()
        lab.metadata(1, [("orders", ID_1), ("bills", ID_2)])
        version = 8 if api == "OffsetFetch" else 4
        assert not in_part(lab, (api, version), range(2, 90, 3), lambda at: True, code), (api, code)


def test_the_harms_of_a_topic_id_are_those_of_which_successes_are_claims_too():
    of_clients = {api for api, *_ in error_answers.CLIENTS_ANSWERS}
    assert of_clients & {api for api, _ in uses.ANSWERS} == OUTCOMES_BY_ID
    assert {api for api, *_ in replicas.PARTITION_ANSWERS} == SERVES


def asks_in_vain(lab, names, *, talk=None, every=2, until=100, brokers=None):
    """Metadata is answered that there is no topic of the first name, and has the others."""
    talk, brokers = talk or lab.talk(B1, "rdkafka", "10.0.0.7"), brokers or {B1: 1}
    for at in range(3, until, every):
        lab.metadata(at, [(names[0], None, 3), *((name, ID_1) for name in names[1:])], brokers=brokers, talk=talk)


def writes_by_name(lab, talk=None, times=range(2, 100, 3)):
    """Another process of the same client ID, which has work."""
    talk = talk or lab.talk(B1, "rdkafka", "10.0.0.7")
    for at in times:
        row = {"index": 0, "errorCode": 0, "baseOffset": at, "logAppendTimeMs": -1}
        asked = {"acks": 1, "timeoutMs": 1, "topicData": [{"name": "orders", "partitionData": []}]}
        talk.ask(at, "Produce", 7, asked, {"responses": [{"name": "orders", "partitionResponses": [row]}]})
    return talk


def missing(lab):
    return [(row["topic"], row["level"]) for row in harms(lab) if row["api"] == "Metadata"]


def test_a_process_that_asks_for_a_topic_in_vain_is_hurt_beside_others_of_its_client_id():
    lab = Lab()
    writes_by_name(lab)
    asks_in_vain(lab, ["typo"])
    assert missing(lab) == [("typo", HURT)]


def test_a_process_with_other_work_that_waits_for_a_topic_is_not_hurt():
    lab = Lab()
    asks_in_vain(lab, ["later"], talk=writes_by_name(lab))
    assert missing(lab) == [], "on one connection"
    lab = Lab()
    writes_by_name(lab)
    asks_in_vain(lab, ["later", "orders"])
    assert missing(lab) == [], "on one for metadata alone, which has its other topic"
    lab = Lab()
    writes_by_name(lab)
    asks_in_vain(lab, ["typo"])
    lab.metadata(50, brokers={B1: 1, B2: 2})
    assert missing(lab) == [], "it may work at a broker that was not captured"


SEVERAL = {B1: 1, B2: 2, B3: 3}


def of_several_brokers(lab):
    """Another process writes at each of them."""
    for server in SEVERAL:
        lab.metadata(1, server=server, brokers=SEVERAL)
    return [writes_by_name(lab, talk=lab.talk(server, "rdkafka", "10.0.0.7")) for server in SEVERAL]


def test_of_several_brokers_it_is_hurt_where_it_asks_on_connections_without_work_only():
    lab = Lab()
    of_several_brokers(lab)
    for server in (B1, B3):
        asks_in_vain(lab, ["typo"], every=4, talk=lab.talk(server, "rdkafka", "10.0.0.7"), brokers=SEVERAL)
    assert missing(lab) == [("typo", HURT)]


def test_of_several_brokers_it_may_wait_for_a_topic_where_it_also_asks_where_it_works():
    lab = Lab()
    busy, *_ = of_several_brokers(lab)
    for talk in (lab.talk(B3, "rdkafka", "10.0.0.7"), busy):
        asks_in_vain(lab, ["later"], every=4, talk=talk, brokers=SEVERAL)
    assert missing(lab) == []
