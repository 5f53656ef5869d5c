"""`wirecheck diff`: a gate by exit status; text, JSON and CSV."""

import csv
import io
import json
import re

import pytest

import wirecheck
from tests.commands.conftest import EXAMPLE, ROOT
from tests.commands.test_changes import capture
from tests.questions.test_traffic_diff import writes

STALE = ROOT / "examples/kraft4-stale-broker/capture.pcap.gz"
DRAFT = ROOT / "tests/scenarios/captures/kip516-draft/capture.pcap.gz"


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """Captures without and with an error that lasts."""
    made = []
    for name, errors in (("before", [0] * 6), ("after", [0, 6, 6, 6])):
        made.append(capture(tmp_path_factory.mktemp(name), writes(errors)))
    return made


@pytest.mark.parametrize(("options", "status"), [
    ([], 1), (["--fail-on", "never"], 0), (["--fail-on", "errors"], 1), (["--fail-on", "versions"], 0),
    (["--fail-on", "versions", "--fail-on", "any"], 1),
])  # fmt: skip
def test_a_gate(run, pair, options, status):
    assert run("diff", *pair, *options).exit_code == status


def test_no_difference_passes_and_says_over_what(run):
    ended = run("diff", STALE, STALE)
    assert (ended.exit_code, ended.stdout) == (0, "Nothing that matters is worse.\n")
    assert "0 differences" in ended.stderr
    assert ended.stderr.count("messages, all decoded") == 2


def test_what_a_draft_would_read_is_said(run):
    """Compared is what was read; of the rest the dialect is named."""
    ended = run("diff", DRAFT, DRAFT)
    assert ended.stderr.count(" messages not read without --dialect kip516-draft") == 2
    assert "not read" not in run("diff", DRAFT, DRAFT, "--dialect", "kip516-draft").stderr


def test_all_forms_have_the_same_rows(run, pair):
    text = run("diff", *pair).stdout
    head, shown = text.splitlines()
    assert head == "Worse: 1 client with new errors."
    assert " ".join(shown.split()).startswith("error-new NOT_LEADER_OR_FOLLOWER billing-7 Produce orders - -> 3 (")
    (row,) = map(json.loads, run("diff", *pair, "--format", "json").stdout.splitlines())
    (line,) = csv.DictReader(io.StringIO(run("diff", *pair, "--format", "csv").stdout))
    assert (row["kind"], row["matters"], line["subject"]) == ("error-new", True, row["subject"])


def test_clients_are_told_first_and_brokers_own_requests_are_counted(run):
    ended = run("diff", EXAMPLE, STALE)
    head, first, second, *rest = ended.stdout.splitlines()
    assert head.startswith("Worse: 2 clients with new errors, 1 topic recreated, 3 clients gone, ")
    assert ("c-lost" in first, "p-lost" in second) == (True, True)
    assert not [line for line in rest if "fetcher" in line or "raft-client" in line]
    assert re.search(r"\d+ not shown, \d+ of them of brokers \(--all\)", ended.stderr)
    assert "raft-client-4" in run("diff", EXAMPLE, STALE, "--all").stdout


@pytest.mark.parametrize("other", ["nosuch.pcap", "empty.pcap"])
def test_what_cannot_be_compared_is_wrong_use(run, pair, tmp_path, other):
    (tmp_path / "empty.pcap").write_bytes(pair[0].read_bytes()[:24])
    assert run("diff", pair[0], tmp_path / other).exit_code == 2


@pytest.fixture(scope="module")
def results(run, pair, tmp_path_factory):
    """Of replays of two captures."""
    folder = tmp_path_factory.mktemp("results")
    outs = [folder / f"{name}-verdict" for name in ("before", "after")]
    for path, out in zip((pair[0], STALE), outs, strict=True):
        assert run("replay", path, "--out", out, "--fail-on", "never").exit_code == 0
    return outs


def test_results_of_two_runs(run, results):
    ended = run("diff", *results, "--format", "json")
    assert ended.exit_code == 1
    kinds = {row["kind"] for row in map(json.loads, ended.stdout.splitlines())}
    assert kinds == {"finding-new", "note-new", "error-new", "client-new", "client-gone"}
    assert [run("diff", *results, "--fail-on", gate).exit_code for gate in ("findings", "versions")] == [1, 0]
    assert "0 differences" in run("diff", results[0], results[0]).stderr


def test_two_times_of_one_run(run, results):
    ended = run("diff", results[0], "--at", "22:13:10", "--at", "22:13:30", "--all")
    assert "client-new billing-7" in " ".join(ended.stdout.split())
    assert "before: 2023-11-14 22:13:10 UTC" in ended.stderr
    (new,) = wirecheck.diff(results[0], at=("22:13:10", "22:13:30"))
    assert (new.kind, new.subject) == ("client-new", "billing-7")
    assert {one.kind for one in wirecheck.diff(*results)} > {"finding-new", "client-gone"}


@pytest.mark.parametrize("asked", [
    ("BEFORE",), ("BEFORE", "--at", "22:13:10"), ("BEFORE", "--at", "22:13:30", "--at", "22:13:10"),
    ("BEFORE", "AFTER", "--at", "22:13:10"), ("BEFORE", "PCAP"), ("PCAP", "AFTER"), ("PCAP",),
    ("PCAP", "PCAP", "--at", "22:13:10"), ("BEFORE", "AFTER", "--port", "9092"),
])  # fmt: skip
def test_wrong_use_of_results_is_one_line(run, pair, results, asked):
    places = {"BEFORE": results[0], "AFTER": results[1], "PCAP": pair[0]}
    ended = run("diff", *(places.get(word, word) for word in asked))
    assert (ended.exit_code, ended.stdout, ended.stderr.count("\n")) == (2, "", 1)


def test_the_library_refuses_what_the_command_refuses(pair, results):
    with pytest.raises(wirecheck.InputError, match="give two captures"):
        wirecheck.diff(pair[0], results[1])
    with pytest.raises(wirecheck.InputError, match="--port takes pcaps"):
        wirecheck.diff(*results, ports=[9092])
    with pytest.raises(wirecheck.InputError, match="--port takes pcaps"):
        wirecheck.changes(results[0], ports=[9092])
