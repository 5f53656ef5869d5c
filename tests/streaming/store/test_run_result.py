"""The last revision of an id holds."""

from wirecheck.document import document
from wirecheck.streaming.store.batches import Tables
from wirecheck.streaming.store.result_tables import from_ipc, to_ipc
from wirecheck.streaming.store.run_result import MOST_DETAILS, Result, coverage

NOON = 1_795_262_400_000_000_000  # 2026-11-21 12:00:00 UTC
FINDING = {
    "code": "TID002",
    "name": "leader-and-isr-inconsistent-topic-id",
    "kind": "violation",
    "label": "L",
    "cluster": "C",
    "summary": "Broker 3 refuses LeaderAndIsr.",
    "topic_ids": [],
    "client_ids": [],
    "brokers": [],
    "words": [],
    "sides": [],
    "first_seen": NOON,
    "last_seen": NOON,
    "count": 1,
}


def finding(revision, state="open", name="f1", **columns):
    return {**FINDING, "id": name, "revision": revision, "state": state, **columns}


def written(tmp_path, *batches):
    for number, (table, rows) in batches:
        Tables(tmp_path, "r").write({table: from_ipc(to_ipc(table, rows))}, number)
    return Result.read(tmp_path, "r")


def test_later_batches_replace_and_withdraw(tmp_path):
    result = written(
        tmp_path,
        (2, ("findings", [finding(2, count=5)])),
        (10, ("findings", [finding(3, count=7), finding(2, "withdrawn", "f2")])),
        (9, ("findings", [finding(1, name="f2")])),
    )
    (shown,) = result.json()["findings"]
    assert (shown["id"], shown["count"]) == ("f1", 7)
    assert not shown.keys() & {"revision", "state", "label"}


def test_a_topic_shows_its_state_and_not_its_revisions(tmp_path):
    topic = {
        "id": "t",
        "revision": 1,
        "label": "L",
        "withdrawn": False,
        "cluster": "C",
        "name": "orders",
        "topic_id": "x",
    }
    times = {"first_seen": 1_000_000_000, "last_seen": 2_000_000_000}
    lists = {"sources": ["metadata"], "state": "current", "written_bytes": 9, "read_bytes": 5, "earlier_ids": []}
    result = written(tmp_path, (0, ("topics", [{**topic, **times, **lists}])))
    assert result.json()["topics"] == [
        {
            "cluster": "C", "name": "orders", "topic_id": "x", "first_seen": "1970-01-01T00:00:01.000000Z",
            "last_seen": "1970-01-01T00:00:02.000000Z", "sources": ["metadata"], "state": "current",
            "written_bytes": 9, "read_bytes": 5, "earlier_ids": [],
        }
    ]  # fmt: skip


def test_another_run_is_not_read(tmp_path):
    Tables(tmp_path, "other").write({"findings": from_ipc(to_ipc("findings", [finding(1)]))}, 0)
    assert Result.read(tmp_path, "r").json()["findings"] == []


def test_the_apis_of_a_client_are_an_object(tmp_path):
    client = {"id": "c", "revision": 1, "apis": [{"api": "Fetch", "versions": [11, 13]}]}
    assert written(tmp_path, (0, ("clients", [client]))).json()["clients"][0]["apis"] == {"Fetch": [11, 13]}


def test_coverage_sums_measures_and_lists_input_errors():
    rows = [
        {"measure": "frames", "count": 3, "detail": None},
        {"measure": "frames", "count": 4, "detail": None},
        {"measure": "undecoded_messages", "count": 2, "detail": "unknown-api"},
        {"measure": "input_errors", "count": 1, "detail": "x.pcap: cut at byte 7"},
    ]
    found = coverage(rows)
    assert (found.frames, found.undecoded_messages, found.decoded_messages) == (7, 2, 0)
    assert found.input_errors == ("x.pcap: cut at byte 7",)
    assert found.details == {"undecoded_messages": {"unknown-api": 2}}


def test_of_what_is_of_no_known_cluster_the_first_are_named_and_the_others_counted():
    names = [f"t-{number:03}" for number in range(MOST_DETAILS + 5)]
    rows = [{"measure": "unassigned_topics", "count": 1, "detail": name} for name in names]
    rows += [{"measure": "unassigned_endpoints", "count": 7, "detail": "(others)"}]
    found = coverage(rows)
    assert found.unassigned_topics == MOST_DETAILS + 5
    assert found.details["unassigned_topics"] == dict.fromkeys(names[:MOST_DETAILS], 1) | {"(others)": 5}
    assert found.details["unassigned_endpoints"] == {"(others)": 7}


def test_rows_others_stand_apart_from_topics_and_clients_and_beside_findings(tmp_path):
    times = {"first_seen": 1_000_000_000, "last_seen": 2_000_000_000}
    more = {"id": "L|others|x", "revision": 1, "label": "L", "cluster": "C", "others": 12, **times}
    kept = {"id": "k", "revision": 1, "label": "L", "cluster": "C", **times}
    result = written(
        tmp_path,
        (0, ("topics", [{**more, "state": "others"}, {**kept, "name": "orders", "state": "current"}])),
        (1, ("clients", [{**more, "others": 3, "apis": []}, {**kept, "client_id": "app", "apis": []}])),
        (2, ("findings", [finding(1), finding(1, name="L|others|findings|TID002", others=7, count=7)])),
    )
    shown = result.json()
    assert [topic["name"] for topic in shown["topics"]] == ["orders"]
    assert [client["client_id"] for client in shown["clients"]] == ["app"]
    assert [found.get("others") for found in shown["findings"]] == [7, None]
    fence = {"label": "L", "cluster": "C"}
    fence |= {"first_seen": "1970-01-01T00:00:01.000000Z", "last_seen": "1970-01-01T00:00:02.000000Z"}
    assert shown["others"] == [{"table": "topics", **fence, "count": 12}, {"table": "clients", **fence, "count": 3}]
    assert document(result.not_kept("clients")) == shown["others"][1:]
    assert "others" not in written(tmp_path / "none").json()


def test_findings_are_read_with_their_cause_and_a_withdrawn_one_is_none(tmp_path):
    asleep = {"name": "f2", "code": "LOG003", "brokers": [4]}
    behind = finding(1, code="TID007", brokers=[4])
    verdict = written(tmp_path, (1, ("findings", [behind, finding(1, **asleep)]))).json()
    assert {row["id"]: (row["cause"], row["consequences"]) for row in verdict["findings"]} == {
        "f1": ("f2", []),
        "f2": (None, ["f1"]),
    }
    assert [entry["sentence"] for entry in verdict["entries"]] == [
        "Broker 4 stopped following the metadata log at 12:00:00; 1 finding follows from it."
    ]
    verdict = written(tmp_path, (2, ("findings", [finding(2, "withdrawn", **asleep)]))).json()
    assert [(row["id"], row["cause"]) for row in verdict["findings"]] == [("f1", None)]
