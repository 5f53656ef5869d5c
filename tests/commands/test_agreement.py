"""`wirecheck agreement`: who states which ID and which versions, and whether all agree."""

import csv
import io
import json

import pytest

import wirecheck
from tests.judge.lab import B1, B2, B3, ID_1, NO_ID, Lab
from wirecheck.decode.schemas import releases


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


def test_a_result_folder_has_the_same(run, without_an_id, tmp_path):
    run("replay", without_an_id, "--out", tmp_path / "verdict")
    for form in ("text", "json", "csv"):
        of_capture = run("agreement", without_an_id, "--format", form).stdout
        assert run("agreement", tmp_path / "verdict", "--format", form).stdout == of_capture
    assert len(wirecheck.agreement(tmp_path / "verdict")["apis"]) == 7


@pytest.fixture
def of_releases(tmp_path):
    """Broker 1 has what 3.9 has; 2 has less of Fetch, an API of its own, and no ListGroups; 3 is of no release."""
    of_39 = {key: (one.low, one.high) for key, one in releases()["3.9.2"].items() if "B" in one.listeners}
    lab = Lab()
    lab.versions(0, of_39)
    lab.versions(0, {key: span for key, span in of_39.items() if key != LIST_GROUPS} | {1: (0, 11), 999: (0, 1)}, B2)
    lab.versions(0, {key: (low, high + 1) for key, (low, high) in of_39.items()}, B3)
    for server in (B1, B2, B3):
        lab.metadata(1, server=server)
    (tmp_path / "releases.pcap").write_bytes(lab.pcap())
    return tmp_path / "releases.pcap"


LIST_GROUPS = 16


def test_each_server_has_its_release_and_what_differs(run, of_releases):
    lines = run("agreement", of_releases).stdout.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("SERVER "))
    assert [line.split(maxsplit=2) for line in lines[at + 1 : at + 4]] == [
        [B1, "Kafka", "3.9"],
        [B2, "Kafka", "3.9  Fetch 0-11, not 0-17; no ListGroups; 999 0-1 besides"],
        [B3, "unknown"],
    ]
    found = json.loads(run("agreement", of_releases, "--format", "json").stdout)
    (fetch,) = [row for row in found["apis"] if (row["server"], row["api"]) == (B2, "Fetch")]
    assert (fetch["release"], fetch["advertised"], fetch["release_has"]) == ("3.9", ["0-11"], ["0-17"])
    assert [row for row in found["apis"] if row["server"] == B1 and row["release_has"]] == []


def test_the_report_has_the_table(run, without_an_id, tmp_path):
    run("replay", without_an_id, "--report", tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "IDs and versions: contradicted: TID020" in page
    assert page.index("<td><code>null</code></td><td>broker 2</td>") < page.index("<td><code>absent</code></td>")


def test_one_topic_alone(run, without_an_id):
    assert "orders" not in run("agreement", without_an_id, "--topic", "payments").stdout
    assert "SERVER" not in run("agreement", without_an_id, "--topic", "orders").stdout
