"""`wirecheck why`: one screen; the stale broker of the example names who is hurt, and which broker differs."""

import csv
import gzip
import io
import json
import subprocess
import sys

import pytest

import wirecheck
from tests.commands.conftest import ROOT
from tests.commands.test_changes import capture
from tests.depth import some
from tests.questions.test_traffic import produce, talking

STALE = ROOT / "examples/kraft4-stale-broker/capture.pcap.gz"


def test_the_stale_broker_and_who_it_hurts(run):
    result = run("why", "tickets", STALE, "--format", "json")
    found = json.loads(result.stdout)
    assert (found["name"], found["type"], result.exit_code) == ("tickets", "topic", 0)
    wrong = [row for row in found["sections"]["partitions"] if row["wrong"]]
    assert {row["who"] for row in wrong} == {"broker 4"}
    stale = [row["details"] for row in found["sections"]["topic_ids"] if row["wrong"]]
    assert stale == ["a82e3c21-e46a-49c3-97bf-6cbc18f5ee2b, still stated by broker 4"]
    hurt = {row["who"].split()[0] for row in found["sections"]["errors"] if row["wrong"]}
    assert {"p-lost", "broker-4-fetcher-0"} <= hurt


def test_text_csv_and_the_library(run):
    text = run("why", "tickets", STALE).stdout
    assert text.startswith("topic tickets\n\nFindings\n!  TID017")
    rows = list(csv.DictReader(io.StringIO(run("why", "tickets", STALE, "--format", "csv").stdout)))
    assert {row["section"] for row in rows} >= {"errors", "topic_ids", "written_by", "partitions", "changes"}
    found = wirecheck.why("tickets", STALE)
    assert [fact.who for fact in found["Written by"]] == [row["who"] for row in rows if row["section"] == "written_by"]


@pytest.mark.parametrize(("arguments", "words"), [
    (["ticket"], "close to it: tickets"),
    (["tickets", "--type", "group"], "tickets is not a group in this capture; it is a topic"),
])  # fmt: skip
def test_a_name_that_is_not_there_names_what_is(run, arguments, words):
    name, *options = arguments
    result = run("why", name, STALE, *options)
    assert (result.exit_code, words in result.stderr) == (2, True)


def test_a_name_that_is_several_things_says_so(run):
    assert "4 is also a client: --type client" in run("why", "4", STALE).stderr


def test_text_from_the_wire_is_harmless(run, tmp_path):
    talk = talking()
    produce(talk, 1, 0, topic="a", client_id="evil\x1b[2J\nx")
    result = run("why", "a", capture(tmp_path, talk.close()))
    assert "\x1b" not in result.stdout
    assert "evil\\x1b[2J\\nx" in result.stdout


def test_findings_come_first_and_a_broker_that_stopped_following_the_log_is_marked(run):
    found = json.loads(run("why", "4", STALE, "--type", "broker", "--format", "json").stdout)["sections"]
    assert found["findings"][0]["what"] == "LOG003"
    assert all(row["wrong"] for row in found["findings"])
    [log] = [row for row in found["follows"] if row["what"] == "__cluster_metadata"]
    assert (log["wrong"], log["details"]) == (True, "stays at offset 61 since about 2026-11-21 00:36:20 UTC, LOG003")


@pytest.mark.parametrize("broker", some(["2", "3"]))
def test_a_broker_that_is_healthy_is_not_marked_by_the_finding_of_another(run, broker):
    found = json.loads(run("why", broker, STALE, "--type", "broker", "--format", "json").stdout)["sections"]
    assert not any(row["wrong"] for row in found["follows"])
    assert "LOG003" not in {row["what"] for row in found.get("findings", ())}


def test_a_client_that_is_hurt_has_the_headline_of_its_card(run):
    found = json.loads(run("why", "p-lost", STALE, "--format", "json").stdout)["sections"]
    assert [(row["wrong"], "p-lost" in row["details"]) for row in found["findings"]] == [(True, True)]
    quiet = json.loads(run("why", "p-good", STALE, "--format", "json").stdout)["sections"]
    assert "findings" not in quiet


HEALTHY = ROOT / "tests/scenarios/captures"


@pytest.mark.parametrize("folder", some(["kraft4-snapshot", "kraft4-healthy", "zk28-healthy"]))
def test_of_healthy_brokers_nothing_is_found(run, folder):
    """Brokers that hear nothing from the log for a while, such as one that was restarted, are not marked by that."""
    capture = HEALTHY / folder / "capture.pcap.gz"
    clusters = json.loads(run("replay", capture, "--format", "json").stdout)["clusters"]
    brokers = [str(broker) for cluster in clusters for broker in cluster["brokers"]]
    assert brokers
    for broker in brokers:
        result = run("why", broker, capture, "--type", "broker", "--format", "json")
        found = json.loads(result.stdout)["sections"]
        assert not any(row["wrong"] for row in found.get("findings", ()))
        assert not any(row["wrong"] for row in found.get("follows", ()))


TWO = HEALTHY / "two-clusters-one-wire/capture.pcap.gz"
EAST, WEST = "1FwIxoMbSrqV6Gg2C4jxIw", "VZfnas_-SsKnG0bYndhJ1Q"


@pytest.mark.parametrize("name", some(["orders", "1", "mirror"], each=2))
def test_a_name_of_two_clusters_is_shown_of_each(run, name):
    kind = {"1": ("--type", "broker")}.get(name, ())
    found = [json.loads(line) for line in run("why", name, TWO, *kind, "--format", "json").stdout.splitlines()]
    assert [one["cluster"] for one in found] == [EAST, WEST]
    text = run("why", name, TWO, *kind).stdout
    assert f" {name} in cluster {EAST}\n" in text
    assert f" {name} in cluster {WEST}\n" in text
    rows = list(csv.DictReader(io.StringIO(run("why", name, TWO, *kind, "--format", "csv").stdout)))
    assert {row["cluster"] for row in rows} == {EAST, WEST}


def test_equal_names_of_two_clusters_do_not_mark_each_other(run):
    """Each has one topic ID: no newer one of the other cluster makes it late."""
    found = [json.loads(line)["sections"] for line in run("why", "orders", TWO, "--format", "json").stdout.splitlines()]
    assert [len(sections["topic_ids"]) for sections in found] == [1, 1]
    assert [[row["who"].split()[0] for row in sections["read_by"]] for sections in found] == [["c-east"], ["c-west"]]
    assert {f"Read by, {EAST}", f"Read by, {WEST}"} <= wirecheck.why("orders", TWO).keys()


def test_a_name_of_one_of_two_clusters_is_shown_once(run):
    (found,) = map(json.loads, run("why", "c-east", TWO, "--format", "json").stdout.splitlines())
    assert found["cluster"] is None


def test_ports_hold_of_each_cluster(run):
    (found,) = map(json.loads, run("why", "orders", TWO, "--port", "20901", "--format", "json").stdout.splitlines())
    assert [row["who"].split()[0] for row in found["sections"]["read_by"]] == ["c-east"]


@pytest.mark.parametrize("words", [("why", "orders"), ("groups",)])
def test_two_clusters_that_are_piped_in_are_together_and_a_line_says_so(words):
    """A pipe cannot be read again, and is not waited for."""
    with gzip.open(TWO) as capture:
        result = subprocess.run(
            [sys.executable, "-m", "wirecheck", *words, "-"],
            input=capture.read(), capture_output=True, check=False, timeout=60, cwd=ROOT,
        )  # fmt: skip
    assert result.returncode == 0
    assert b"there are 2 clusters; to keep equal names apart, read a file, not a pipe" in result.stderr
    assert b"VZfnas_-SsKnG0bYndhJ1Q" not in result.stdout


def test_a_client_that_logs_in_has_its_principal(run):
    sasl = ROOT / "tests/scenarios/captures/zk28-sasl-tls/capture.pcap.gz"
    found = json.loads(run("why", "plain-v1", sasl, "--format", "json").stdout)["sections"]
    assert [(row["what"], row["who"]) for row in found["principals"]] == [("User:app", "127.0.0.1")]
    assert list(found)[:2] == ["software", "principals"]
    assert "principals" not in json.loads(run("why", "wrong-password", sasl, "--format", "json").stdout)["sections"]
