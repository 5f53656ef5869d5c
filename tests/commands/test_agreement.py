"""`wirecheck agreement`: who states which ID and which versions, and whether all agree."""

import csv
import io
import json

import pytest

import wirecheck
from tests.judge.lab import B1, B2, B3, ID_1, NO_ID, Lab


@pytest.fixture
def without_an_id(tmp_path):
    """A controller orders an ID, two brokers report it, and one reports none; an old client reports no ID at all."""
    lab = Lab()
    lab.versions(0, {3: (0, 12), 6: (0, 8)})
    for at in range(0, 120, 10):
        for server in (B1, B2, B3):
            lab.control(at, "UpdateMetadata", [("orders", ID_1, 4)], server=server)
        for server, topic_id in ((B1, ID_1), (B2, NO_ID), (B3, ID_1)):
            lab.metadata(at + 2, [("orders", topic_id)], server=server)
    lab.metadata(60, [("orders", None)], version=9)
    (tmp_path / "ids.pcap").write_bytes(lab.pcap())
    return tmp_path / "ids.pcap"


def test_each_line_says_who_states_what_and_the_last_is_the_mark(run, without_an_id):
    ended = run("agreement", without_an_id)
    lines = [line.split() for line in ended.stdout.splitlines() if line]
    assert lines[0] == ["TOPIC", "ID", "STATED", "BY", "IN", "SINCE", "UNTIL", "TIMES", "FOUND"]
    stated = [(line[0], line[2], *line[3:5]) for line in lines if line[1] == "orders"]
    assert ("\u2718", ID_1, "controller", "3") in stated
    assert ("\u2718", "null", "broker", "2") in stated
    assert ("\u2718", ID_1, "broker", "1") in stated
    assert ("\u2718", "absent", "broker", "1") in stated
    assert ended.stdout.splitlines()[-1] == "\u2718 IDs and versions: contradicted: TID020"
    assert ["\u2714", B1, "Metadata", "0-12", "9,", "12", "9,", "12", "-"] in lines


def test_json_csv_and_the_library_have_the_same_rows(run, without_an_id):
    (line,) = run("agreement", without_an_id, "--format", "json").stdout.splitlines()
    found = json.loads(line)
    assert found["mark"]["mark"] == "violation"
    rows = [*csv.DictReader(io.StringIO(run("agreement", without_an_id, "--format", "csv").stdout))]
    assert [row["party"] for row in rows] == [row["party"] for row in found["topics"]]
    table = wirecheck.agreement(without_an_id)
    assert [one.party for one in table["topics"]] == [row["party"] for row in found["topics"]]
    assert [one.api for one in table["apis"]] == [row["api"] for row in found["apis"]]
    assert table["apis"].to_pandas().server.nunique() == 3


def test_one_topic_alone(run, without_an_id):
    assert "orders" not in run("agreement", without_an_id, "--topic", "payments").stdout
    assert "SERVER" not in run("agreement", without_an_id, "--topic", "orders").stdout
