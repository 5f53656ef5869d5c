"""Rows that are no findings: a topic that nobody described is listed all the same, once a broker served it."""

from tests.judge.lab import B1, ID_1, Lab
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
