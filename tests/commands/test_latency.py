"""`wirecheck latency`: who waited how long for what, the slowest first, and what waits by design apart."""

import csv
import io
import json

import pytest

import wirecheck
from tests.judge.lab import Lab
from wirecheck.commands.latency import cells_of_times, milliseconds
from wirecheck.questions.latency_rows import ApiLatencyRow


@pytest.fixture
def slow(tmp_path):
    """A writer that waits 20 ms, and once 900 ms; a reader that waits for data; a broker that asks another one."""
    lab = Lab()
    writer = lab.talk(client_id="writer", host="10.0.0.7")
    row = {"index": 0, "errorCode": 0, "baseOffset": 7}
    asked = {"acks": -1, "timeoutMs": 30000, "topicData": [{"name": "t", "partitionData": [{"index": 0}]}]}
    for at in range(200):
        answer = {"responses": [{"name": "t", "partitionResponses": [row]}]}
        writer.ask(at, "Produce", 9, asked, answer, answered_in=0.9 if at > 196 else 0.02)
    lab.talk(client_id="reader", host="10.0.0.8").ask(1, "Fetch", 12, {"topics": []}, {"responses": []}, answered_in=5)
    lab.talk(client_id="broker-2-fetcher-0", host="10.0.0.2").ask(2, "Metadata", 12, {}, {}, answered_in=0.3)
    (tmp_path / "slow.pcap").write_bytes(lab.pcap())
    return tmp_path / "slow.pcap"


def test_a_row_says_who_waits_for_what_and_how_long(run, slow):
    ended = run("latency", slow)
    head, line = ended.stdout.splitlines()
    times = ["P50", "P99", "BROKER", "P99", "NETWORK", "P50"]
    assert head.split() == ["CLIENT", "REQUEST", "COUNT", "UNANSWERED", *times, "ADDRESS"]
    assert line.split()[:4] == ["writer", "Produce", "200", "-"]
    (row,) = (row for row in wirecheck.latency(slow) if row.client_id == "writer")
    assert row.p50_ms == pytest.approx(20, rel=0.1)
    assert row.p99_ms == pytest.approx(900, rel=0.1)
    assert row.unanswered == 0
    assert "1 of brokers (--brokers) not shown; 1 that wait (--all) not shown" in ended.stderr


def test_what_is_not_shown_can_be_asked_for(run, slow):
    assert [line.split()[0] for line in run("latency", slow, "--all", "--brokers").stdout.splitlines()[1:]] == [
        "writer",
        "broker-2-fetcher-0",
        "reader",
    ]
    assert run("latency", slow, "--api", "fetch").stdout.splitlines()[1].startswith("reader")
    assert run("latency", slow, "--client", "nobody").stdout == ""


def test_json_csv_and_the_library_have_the_same_rows(run, slow):
    lines = [json.loads(line) for line in run("latency", slow, "--format", "json").stdout.splitlines()]
    rows = list(csv.DictReader(io.StringIO(run("latency", slow, "--format", "csv").stdout)))
    found = wirecheck.latency(slow)
    assert [row["client_id"] for row in lines] == [row["client_id"] for row in rows] == [row.client_id for row in found]
    assert [row["waits"] for row in lines] == [False, False, True]


@pytest.mark.parametrize(("time_ms", "text"), [(None, "-"), (0.04, "0.0 ms"), (23.71, "23.7 ms"), (1234.5, "1,234 ms")])
def test_times_are_short(time_ms, text):
    assert milliseconds(time_ms) == text


def test_by_api_all_clients_of_an_api_are_one_row(run, slow):
    rows = [json.loads(line) for line in run("latency", slow, "--by", "api", "--format", "json").stdout.splitlines()]
    assert [(row["api"], row["clients"], row["count"], row["waits"]) for row in rows] == [
        ("Produce", 1, 200, False),
        ("Fetch", 1, 1, True),
    ]
    with_brokers = run("latency", slow, "--by", "api", "--brokers", "--format", "json").stdout
    assert "Metadata" in with_brokers
    shown = run("latency", slow, "--by", "api")
    assert [line.split()[0] for line in shown.stdout.splitlines()] == ["REQUEST", "Produce"]
    assert "1 API; 1 that wait (--all) not shown" in shown.stderr


def test_results_have_the_same_by_api(run, slow, tmp_path):
    run("replay", slow, "--out", tmp_path / "verdict")
    of_capture, of_results = (
        run("latency", one, "--by", "api", "--format", "json").stdout for one in (slow, tmp_path / "verdict")
    )
    assert of_capture == of_results != ""


def test_a_p99_of_few_answers_is_dim():
    roles = {count: dict(cells_of_times(row(count)))["8.0 ms"] for count in (99, 100)}
    assert roles == {99: "time", 100: "latency"}


def row(count):
    return ApiLatencyRow("Produce", 1, count, 0, 1.0, 8.0, None, None, waits=False)
