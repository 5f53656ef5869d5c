"""Results that an earlier build wrote (c7abc25c, 28 November 2026) are read by this one;
both are of examples/kraft4-stale-broker. Its JSON has only names that this one has, too.
"""

import gzip
import json
import tarfile
from pathlib import Path

import pytest

import wirecheck

RESULTS = Path(__file__).parent / "results_of_an_earlier_build.tar.gz"
VERDICT = Path(__file__).parent / "verdict_of_an_earlier_build.json.gz"
EXAMPLE = Path(__file__).resolve().parents[2] / "examples/kraft4-stale-broker/capture.pcap.gz"
CODES = {"FET001", "LOG001", "LOG003", "TID010", "TID017"}
"""That this build has, and that the one before it found."""


@pytest.fixture(scope="module")
def earlier(tmp_path_factory):
    folder = tmp_path_factory.mktemp("earlier")
    with tarfile.open(RESULTS) as archive:
        archive.extraction_filter = lambda member, _: member  # as an argument Python 3.11.2 does not know it
        archive.extractall(folder)
    return folder


def test_findings_clients_and_topics_are_read(run, earlier):
    found = [json.loads(line) for line in run("findings", earlier, "--format", "json").stdout.splitlines()]
    assert {one["code"] for one in found} >= CODES
    clients = json.loads(run("clients", earlier, "--format", "json").stdout)["clients"]
    assert {one["client_id"] for one in clients} >= {"p-lost", "c-lost", "c-good", "p-good"}
    topics = json.loads(run("topics", earlier, "--format", "json").stdout)["topics"]
    assert {one["state"] for one in topics if one["name"] == "tickets"} == {"current", "replaced"}


@pytest.mark.parametrize("command", ["findings", "clients", "topics", "timeline", "changes"])
def test_each_question_that_it_kept_is_answered(run, earlier, command):
    ended = run(command, earlier)
    assert (ended.exit_code, ended.stderr.count("earlier version")) == (0, 0)
    assert "tickets" in ended.stdout or "p-lost" in ended.stdout


@pytest.mark.parametrize("command", ["errors", "latency", "agreement"])
def test_a_question_that_it_did_not_keep_is_not_answered_with_none(run, earlier, command):
    ended = run(command, earlier)
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert "an earlier version of wirecheck wrote it; ask the capture" in ended.stderr


def test_the_library_reads_them_too(earlier):
    assert {"p-lost", "c-lost"} <= {client.client_id for client in wirecheck.clients(earlier)}
    with pytest.raises(wirecheck.InputError, match="earlier version"):
        wirecheck.errors(earlier)


def test_they_are_compared_with_those_of_this_build(run, earlier, tmp_path):
    run("replay", EXAMPLE, "--out", tmp_path / "now")
    ended = run("diff", earlier, tmp_path / "now", "--format", "json")
    kinds = {json.loads(line)["kind"] for line in ended.stdout.splitlines()}
    assert kinds <= {"finding-new", "client-state"}  # what this build sees more; nothing went


def names(value, path=""):
    """Every name of a document with the kinds of values that it has."""
    if isinstance(value, dict | list):
        parts = value.items() if isinstance(value, dict) else (("[]", each) for each in value)
        for name, each in parts:
            yield from names(each, f"{path}.{name}")
    if value is not None:
        yield path, type(value).__name__


def test_a_program_that_reads_the_json_of_an_earlier_build_reads_that_of_this_one(run):
    before = json.loads(gzip.decompress(VERDICT.read_bytes()))
    now = json.loads(run("replay", EXAMPLE, "--format", "json").stdout)
    assert before["schema_version"] == now["schema_version"]  # raised where a name goes or means something else
    assert set(names(before)) - set(names(now)) == set()
    assert len(set(names(before))) > 250


def test_a_name_that_goes_and_a_value_of_another_kind_are_seen():
    before = {"topics": [{"name": "a", "partitions": 1}], "captured": None}
    assert set(names(before)) - set(names({**before, "captured": {"to": 1}})) == set()
    assert set(names(before)) - set(names({"topics": [{"name": "a"}]})) == {(".topics.[].partitions", "int")}
    assert set(names(before)) - set(names({"topics": [{"name": "a", "partitions": "1"}]})) != set()
