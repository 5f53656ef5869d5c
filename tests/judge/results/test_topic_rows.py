"""Rows that are no findings: a topic that nobody described is listed all the same, once a broker served it."""

import base64

from tests.judge.cases_lives import OTHER, clu004_near_miss, switched
from tests.judge.cases_topic_ids import ordered_again
from tests.judge.lab import B1, B2, CLUSTER, ID_1, ID_2, Lab
from wirecheck.decode.connection.exchanges import ORPHAN


def served(lab, at, name, *, api="Produce", version=9, error=0, topic_id=None):
    """One partition of a topic, written to or read by its name or id."""
    known = {"topicId": topic_id} if topic_id else {"topic" if api == "Fetch" else "name": name}
    row = {"index": 0, "errorCode": error}
    lists = {"topicData": [{**known, "partitionData": []}]}, {"responses": [{**known, "partitionResponses": [row]}]}
    if api == "Fetch":
        row = {"partitionIndex": 0, "errorCode": error, "highWatermark": 10, "abortedTransactions": None}
        lists = {"topics": [known]}, {"responses": [{**known, "partitions": [row]}]}
    lab.until = max(lab.until, at)
    return lab.talk(B1, "writer").ask(at, api, version, *lists)


def topics(lab):
    rows = lab.judge()["topics"].values()
    return {(row["name"], row["topic_id"]): (row["state"], row["sources"]) for row in rows}


def test_a_topic_that_was_only_produced_to_or_fetched_from_is_listed():
    lab = Lab()
    served(lab, 1, "orders")
    served(lab, 2, "events", api="Fetch", version=11)
    assert topics(lab) == {
        ("orders", None): ("current", ["produce"]),
        ("events", None): ("current", ["fetch"]),
    }


def test_who_was_refused_names_no_topic_and_the_metadata_log_is_none():
    lab = Lab()
    served(lab, 1, "no-such-topic", error=3)
    served(lab, 2, "__cluster_metadata", api="Fetch", version=12)
    assert topics(lab) == {}


def test_a_topic_that_was_produced_to_gets_its_id_once_somebody_names_it():
    lab = Lab()
    served(lab, 1, "orders")
    lab.metadata(5, [("orders", ID_1)])
    assert topics(lab) == {("orders", ID_1): ("current", ["metadata"])}


def test_a_deleted_topic_that_was_only_produced_to_is_deleted():
    lab = Lab()
    served(lab, 1, "orders")
    lab.deleted(5, "orders")
    assert topics(lab)["orders", None] == ("deleted", ["produce"])


def sides(lab, code):
    return [side for finding in lab.findings(code) for side in finding["sides"]]


def test_a_connection_has_neither_api_nor_version_nor_correlation_id():
    lab = Lab()
    lab.metadata(0, talk=lab.talk(from_start=False))
    first = sides(lab, "VIS002")[0]
    assert (first["api"], first["version"], first["correlation_id"], first["frame"]["first"]) == (None, None, None, 0)


def test_a_response_whose_request_was_not_seen_has_a_correlation_id_and_no_api():
    lab = Lab()
    talk = lab.metadata(0, talk=lab.talk(from_start=False))
    talk.messages = [*talk.messages, (*talk.messages[1][:5], 9)]
    talk.exchanges.append((-1, 2, ORPHAN))
    last = sides(lab, "VIS002")[-1]
    assert (last["api"], last["version"], last["correlation_id"], last["frame"]["first"]) == (None, None, 1, 3)


def places(lab):
    rows = lab.judge()["topics"].values()
    return {(row["cluster"], row["name"], row["topic_id"], row["state"]) for row in rows}


def test_topics_of_a_cluster_that_its_only_address_left_are_former():
    lab = Lab()
    switched(lab)
    assert places(lab) == {(CLUSTER, "orders", ID_1, "former"), (OTHER, "orders", ID_2, "current")}
    (finding,) = (one for one in lab.findings("CLU004"))
    words = {word["name"]: word["value"] for word in finding["words"]}
    assert (words["since"][11:19], words["until"][11:19]) == ("08:01:01", "08:00:20")


def test_topics_of_a_cluster_that_keeps_an_address_stay_current():
    lab = Lab()
    for at in (0, 60):
        lab.metadata(at, [("orders", ID_1)], brokers={B1: 1, B2: 2}, server=B2)
    switched(lab)
    assert (CLUSTER, "orders", ID_1, "current") in places(lab)


def test_an_id_used_at_an_address_of_two_clusters_in_turn_is_of_none_of_them():
    lab = Lab()
    clu004_near_miss(lab)
    lab.fetches(range(0, 60, 4), ID_1, client_id="reader")
    assert places(lab) == {(None, None, ID_1, "unresolved"), (None, None, ID_2, "unresolved")}


def denied(*times, server=B1, after=()):
    """A broker reports a topic and later answers that there is none, at these seconds."""
    lab = Lab()
    lab.metadata(1, [("orders", ID_1)], server=server)
    for at in times:
        lab.metadata(at, [("orders", None, 3)])
    for at in after:
        lab.metadata(at, [("orders", ID_1)])
    return topics(lab)[("orders", ID_1)][0]


def test_an_id_that_its_broker_denies_for_10_s_is_deleted_without_a_controllers_word():
    """As after a cluster was formatted again, of which only brokers were captured."""
    assert denied(20, 25, 31) == "deleted"


def test_an_id_that_is_denied_for_a_moment_by_another_broker_or_before_it_is_reported_again_is_current():
    """A broker that has just started knows no topic before its controller sends it all of them."""
    assert denied(20, 22) == "current"
    assert denied(20, 25, 31, server=B2) == "current"
    assert denied(20, 25, 31, after=[40]) == "current"


def test_an_id_that_came_back_is_deleted_by_name():
    """Before version 6 DeleteTopics has no ID: the one that came back is meant, and not the one between."""
    lab = Lab()
    ordered_again(lab)
    assert topics(lab)["orders", ID_1][0] == "current"
    lab.deleted(155, "orders")
    assert {topic_id: state for (_, topic_id), (state, _) in topics(lab).items()} == {ID_1: "deleted", ID_2: "replaced"}


def created_elsewhere(lab, *, reported):
    """B2 creates a topic of the name; B1 reports the former ID at these seconds."""
    lab.metadata(1, server=B2)
    lab.created(0, "orders", ID_1)
    lab.created(10, "orders", ID_2, server=B2)
    for at in reported:
        lab.metadata(at, [("orders", ID_1)])


def test_an_id_that_is_the_last_one_stated_is_not_replaced_by_a_creation():
    """Two clusters with one ClusterId: nothing shows that the other ID is of this one."""
    lab = Lab()
    created_elsewhere(lab, reported=(2, 25))
    assert topics(lab)["orders", ID_1][0] == "current"


def test_a_creation_replaces_an_id_that_nobody_states_after_it():
    lab = Lab()
    created_elsewhere(lab, reported=(2, 10.5))
    assert topics(lab)["orders", ID_1][0] == "replaced"


def test_bytes_of_records_that_clients_wrote_and_read():
    """Not what replicas fetch, and no write that was refused; by name they count for the ID that the name has now."""
    lab = Lab()
    lab.metadata(1, [("orders", ID_1)])
    batch = base64.b64encode(bytes(90)).decode()
    for at, error, version, name in ((2, 0, 13, None), (3, 87, 13, None), (4, 0, 9, "orders")):
        partition, answer = {"index": 0, "records": batch}, {"index": 0, "errorCode": error, "baseOffset": 1}
        named = {"name": name} if name else {"topicId": ID_1}
        asked = {"acks": -1, "timeoutMs": 1, "topicData": [{**named, "partitionData": [partition]}]}
        answered = {"responses": [{**named, "partitionResponses": [answer]}]}
        lab.talk(B1, "writer").ask(at, "Produce", version, asked, answered)
    for at, replica in ((5, -1), (6, 2)):
        asked = {"replicaId": replica, "topics": [{"topicId": ID_1, "partitions": [{"partition": 0}]}]}
        partition = {"partitionIndex": 0, "errorCode": 0, "highWatermark": 1, "records": batch}
        answered = {"responses": [{"topicId": ID_1, "partitions": [partition]}]}
        lab.talk(B1, "reader").ask(at, "Fetch", 13, asked, answered)
    (row,) = (row for row in lab.judge()["topics"].values() if row["name"] == "orders")
    assert (row["written_bytes"], row["read_bytes"]) == (180, 90)
