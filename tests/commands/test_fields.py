"""`--sort` and `--columns` of lists: fields by the names of JSON, in each form."""

import csv
import io
import json

import pytest

from tests.judge.lab import Lab

COUNTS = {"slow-writer": 3, "writer": 12, "third": 5}


@pytest.fixture
def writers(tmp_path):
    """Clients that write so many times each, and one broker."""
    lab = Lab()
    asked = {"acks": -1, "timeoutMs": 30000, "topicData": [{"name": "t", "partitionData": [{"index": 0}]}]}
    row = {"index": 0, "errorCode": 3, "baseOffset": -1}
    for at, (name, times) in enumerate(COUNTS.items()):
        talk = lab.talk(client_id=name, host=f"10.0.0.{7 + at}")
        for number in range(times):
            answer = {"responses": [{"name": "t", "partitionResponses": [row]}]}
            talk.ask(number + at / 10, "Produce", 9, asked, answer)
    (tmp_path / "writers.pcap").write_bytes(lab.pcap())
    return tmp_path / "writers.pcap"


@pytest.mark.parametrize("command", ["errors", "latency"])
@pytest.mark.parametrize(("sort", "falls"), [("count", False), ("-count", True)])
def test_rows_are_in_the_order_of_a_field(run, writers, command, sort, falls):
    ended = run(command, writers, "--all", "--format", "json", "--sort", sort)
    counts = [json.loads(line)["count"] for line in ended.stdout.splitlines()]
    assert sorted(counts) == sorted(COUNTS.values())  # all rows are there
    assert counts == sorted(counts, reverse=falls)  # by number: as text 12 is before 3


def test_text_is_in_the_order_of_names_too(run, writers):
    head, *lines = run("errors", writers, "--all", "--sort", "client_id").stdout.splitlines()
    assert "CLIENT" in head
    places = [next(at for at, line in enumerate(lines) if name in line.split()) for name in sorted(COUNTS)]
    assert places == sorted(places)


def test_only_the_fields_that_were_asked_for_are_printed(run, writers):
    wanted = ("client_id", "count")
    asked = ("errors", writers, "--all", "--sort", "-count", "--columns", ",".join(wanted))
    rows = [json.loads(line) for line in run(*asked, "--format", "json").stdout.splitlines()]
    assert rows == [{"client_id": name, "count": COUNTS[name]} for name in ("writer", "third", "slow-writer")]
    table = [*csv.reader(io.StringIO(run(*asked, "--format", "csv").stdout))]
    assert table == [[*wanted], ["writer", "12"], ["third", "5"], ["slow-writer", "3"]]
    text = [line.split() for line in run(*asked).stdout.splitlines()]
    assert text == [["CLIENT_ID", "COUNT"], *table[1:]]


def test_clients_and_topics_take_them_from_captures_and_results(run, writers, tmp_path):
    run("replay", writers, "--out", tmp_path / "verdict")
    for source in (writers, tmp_path / "verdict"):
        asked = ("clients", source, "--columns", "client_id,requests", "--sort", "-requests")
        rows = json.loads(run(*asked, "--format", "json").stdout)["clients"]
        assert rows == [{"client_id": name, "requests": COUNTS[name]} for name in ("writer", "third", "slow-writer")]
        text = [line.split() for line in run(*asked).stdout.splitlines()]
        assert text == [["CLIENT_ID", "REQUESTS"], *([row["client_id"], str(row["requests"])] for row in rows)]


def test_a_field_that_no_row_has_is_one_line_that_names_those_there_are(run, writers):
    for option in ("--sort", "--columns"):
        ended = run("errors", writers, "--all", option, "cuont")
        assert ended.exit_code == 2
        assert ended.stdout == ""
        (line,) = ended.stderr.splitlines()
        assert f"{option}: no row has a field cuont; fields are " in line
        assert "client_id" in line


@pytest.mark.parametrize("columns", ["", " , "])
def test_columns_without_a_name_are_wrong_use(run, writers, columns):
    ended = run("errors", writers, "--columns", columns)
    assert ended.exit_code == 2
    assert "names no field" in ended.stderr
