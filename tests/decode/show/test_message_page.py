"""A line for eyes says what its JSON says."""

import pytest

from wirecheck.decode.show.message_page import text

LINE = {
    "time": "2023-11-14T22:13:20.003000Z", "src": "[fd00::1]:40000", "dst": "10.0.0.9:9092", "side": "response",
    "key": 3, "api": "Metadata", "version": 12, "correlation_id": 7, "client_id": "app", "size": 99,
    "frame": {"source": "a.pcap", "first": 4, "last": 5},
}  # fmt: skip
ORDERS = "JMxDMvfeRaOyTjPWGqDRbA"


def body(**fields):
    return text({**LINE, "body": fields}).splitlines()[1:]


def test_the_headline_says_everything_about_the_message():
    assert text({**LINE, "body": {}}) == (
        "2023-11-14T22:13:20.003000Z  [fd00::1]:40000 > 10.0.0.9:9092  Metadata v12 response  #7  client app  99 bytes"
        "  frame 4 of a.pcap"
    )


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"client_id": None}, "Metadata v12 response  #7  99 bytes"),
        ({"api": None, "key": 99}, "key 99 v12 response"),
        ({"version": None}, "Metadata v? response"),
        ({"api": None, "key": None, "version": None}, "unknown request's response"),
        ({"dialect": "kip516-draft"}, "99 bytes  as in kip516-draft"),
    ],
)
def test_a_headline_without_what_is_not_known(changed, expected):
    assert expected in text({**LINE, **changed, "body": {}})


def test_one_message_in_hex_has_no_time_and_no_frame():
    alone = {name: LINE[name] for name in ("side", "key", "api", "version", "correlation_id", "size")}
    assert text({**alone, "body": {}}) == "Metadata v12 response  #7  99 bytes"


@pytest.mark.parametrize("reason", ["undecoded", "malformed"])
def test_a_message_without_body_says_why(reason):
    assert text({**LINE, reason: "Truncated at byte 3"}).splitlines()[1:] == [f"  {reason}: Truncated at byte 3"]


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("name", "orders", "orders"),
        ("name", None, "null"),
        ("isInternal", False, "false"),
        ("isInternal", True, "true"),
        ("errorCode", 0, "0"),
        ("errorCode", 103, "103 INCONSISTENT_TOPIC_ID"),
        ("acquireErrorCode", -1, "-1 UNKNOWN_SERVER_ERROR"),
        ("errorCode", 1005, "1005 InvalidArgumentReplicaAssignment (draft of KIP-4)"),
        ("errorCode", 1010, "1010 (no such error)"),
        ("replicas", [1, 2], "[1, 2]"),
        ("replicas", [], "[]"),
        ("topicId", ORDERS, f"{ORDERS} (24cc4332-f7de-45a3-b24e-33d61aa0d16c)"),
        ("topicId", None, "null"),
        ("offlineLogDirs", [ORDERS], f"[{ORDERS} (24cc4332-f7de-45a3-b24e-33d61aa0d16c)]"),
        ("records", {"left_out": 300}, "(300 bytes redacted)"),
    ],
)
def test_a_value(name, value, expected):
    assert body(**{name: value}) == [f"  {name}: {expected}"]


def test_structs_and_lists_of_structs_are_indented():
    assert body(leader={"id": 1, "end": {"epoch": 3}}, topics=[{"name": "a", "rows": [{"x": 1}, {"x": 2}]}, {}]) == [
        "  leader:",
        "    id: 1",
        "    end:",
        "      epoch: 3",
        "  topics:",
        "    - name: a",
        "      rows:",
        "        - x: 1",
        "        - x: 2",
        "    - ",
    ]


def test_what_an_envelope_carries_is_indented_below_it():
    inner = {"side": "request", "key": 19, "api": "CreateTopics", "version": 7, "correlation_id": 4, "size": 30}
    outer = {**LINE, "body": {"requestData": {"left_out": 30}}}
    assert text({**outer, "enveloped": {**inner, "client_id": "admin", "body": {"timeoutMs": 9}}}).splitlines()[1:] == [
        "  requestData: (30 bytes redacted)",
        "  enveloped: CreateTopics v7 request  #4  client admin  30 bytes",
        "    timeoutMs: 9",
    ]
    assert text({**outer, "enveloped": {**inner, "malformed": "Truncated at byte 3"}}).splitlines()[2:] == [
        "  enveloped: CreateTopics v7 request  #4  30 bytes",
        "    malformed: Truncated at byte 3",
    ]


def test_envelopes_in_envelopes_are_indented_step_by_step():
    inner = {"side": "request", "key": 19, "api": "CreateTopics", "version": 7, "correlation_id": 4, "size": 30}
    middle = {**inner, "key": 58, "api": "Envelope", "version": 0, "body": {}, "enveloped": {**inner, "body": {}}}
    assert text({**LINE, "body": {}, "enveloped": middle}).splitlines()[1:] == [
        "  enveloped: Envelope v0 request  #4  30 bytes",
        "    enveloped: CreateTopics v7 request  #4  30 bytes",
    ]


def test_the_plain_values_of_a_lists_element_share_a_row():
    partition = {"errorCode": 3, "partitionIndex": 0, "isrNodes": [1, 2], "records": {"left_out": 9}}
    topic = {"name": "a", "isInternal": False, "partitions": [partition, partition], "leader": {"id": 1}, "epoch": 5}
    shared = "errorCode: 3 UNKNOWN_TOPIC_OR_PARTITION  partitionIndex: 0  isrNodes: [1, 2]  records: (9 bytes redacted)"
    assert body(throttleTimeMs=0, topics=[topic]) == [
        "  throttleTimeMs: 0",
        "  topics:",
        "    - name: a  isInternal: false",
        "      partitions:",
        f"        - {shared}",
        f"        - {shared}",
        "      leader:",
        "        id: 1",
        "      epoch: 5",
    ]


def test_a_row_ends_where_it_would_become_too_wide():
    wide = {f"field{i}": "x" * 30 for i in range(9)} | {"long": "y" * 400, "last": 1}
    found = body(topics=[wide])
    assert [len(row) <= 160 or "y" in row for row in found] == [True] * len(found)
    assert len(found) == 6
    assert "  ".join(row.strip() for row in found[1:]) == "- " + "  ".join(f"{k}: {v}" for k, v in wide.items())


def test_a_message_of_many_partitions_takes_a_row_for_each():
    rows = [{"partitionIndex": i, "leaderId": 1, "isrNodes": [1, 2, 3]} for i in range(10_000)]
    assert len(body(topics=[{"name": "a", "partitions": rows}])) == 10_003


def test_on_a_terminal_rows_end_between_words_and_fields():
    partition = {"partitionIndex": 2, "controllerEpoch": 1, "leader": 2, "leaderEpoch": 1, "isr": [2, 1]}
    line = {**LINE, "body": {"topics": [{"name": "orders", "topicId": ORDERS, "partitions": [partition]}]}}
    assert text(line, 80).splitlines() == [
        "2023-11-14T22:13:20.003000Z  [fd00::1]:40000 > 10.0.0.9:9092  Metadata v12",
        "    response  #7  client app  99 bytes  frame 4 of a.pcap",
        "  topics:",
        "    - name: orders",
        f"      topicId: {ORDERS} (24cc4332-f7de-45a3-b24e-33d61aa0d16c)",
        "      partitions:",
        "        - partitionIndex: 2  controllerEpoch: 1  leader: 2  leaderEpoch: 1",
        "          isr: [2, 1]",
    ]
    assert len(text(line).splitlines()) == 5


def test_texts_of_which_the_first_was_not_kept_are_one_value():
    assert body(groupsNames=[{"left_out": 8}, "b"]) == ["  groupsNames: [(8 bytes redacted), b]"]
