"""`wirecheck clients`: a list, and a gate that turns away exactly those who could not talk to the target."""

import csv
import gzip
import io
import json
import re
from dataclasses import replace

import pytest

from tests import traffic
from tests.commands.conftest import EXAMPLE, ROOT
from tests.judge.lab import Lab
from tests.story.values import client

ZOO = ROOT / "tests/scenarios/captures/kraft-clients-zoo/capture.pcap.gz"
TOO_OLD = {"java-0.9.0.1", "java-0.10.0.1", "java-0.10.2.2", "sarama-0.10.2.0"}
GAVE_UP = {"java-admin-1.0.2", "java-admin-0.11.0.3"}  # against the new cluster they never sent what it would refuse


def test_a_gate_names_exactly_those_who_could_not_talk_to_4(run):
    ended = run("clients", ZOO, "--target", "4.0", "--format", "json")
    found = {row["client_id"] for row in json.loads(ended.stdout)["clients"] if row["rejected_by_target"]}
    truth = json.loads((ZOO.parent / "truth.json").read_text())
    could_not = {row["client_id"] for row in truth["clients"] if row.get("could_talk") is False}
    assert {name.removesuffix("-new") for name in could_not if name.endswith("-new")} == TOO_OLD | GAVE_UP
    assert found == {f"{name}-old" for name in TOO_OLD | GAVE_UP} | {f"{name}-new" for name in TOO_OLD}
    assert ended.exit_code == 1


def test_the_report_says_what_to_do_and_guesses_old_java_right(run, tmp_path):
    ended = run("clients", ZOO, "--target", "4.0", "--format", "json", "--report", tmp_path / "upgrade.html")
    rows = {row["client_id"]: row for row in json.loads(ended.stdout)["clients"]}
    assert rows["java-0.10.2.2-old"]["upgrade_to"] == "2.1.0"
    assert (rows["sarama-0.10.2.0-old"]["upgrade_to"], rows["sarama-0.10.2.0-old"]["advice"][:18]) == (
        None, "set Config.Version",
    )  # fmt: skip
    for name, row in rows.items():
        real = re.fullmatch(r"java-(?:admin-)?([\d.]+)-(?:old|new)", name or "")
        if real and row["looks_like"]:
            lines = row["looks_like"].removeprefix("Java ").replace(" or ", " to ").split(" to ")
            assert any(real[1].startswith(line) for line in lines), (name, row["looks_like"])
    page = (tmp_path / "upgrade.html").read_text()
    assert page.count("<tr>") == 1 + 10


def test_groups_and_the_other_direction(run):
    ended = run("clients", ZOO, "--target", "2.8", "--group-by", "prefix", "--format", "json")
    groups = {row["group"]: row["rejected_versions"] for row in map(json.loads, ended.stdout.splitlines())}
    assert (ended.exit_code, groups["librdkafka"]) == (1, ["ConsumerGroupHeartbeat v1"])
    assert run("clients", ZOO, "--group-by", "host").exit_code == 2


def test_text_says_who_where_with_what(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    ended = run("clients", ZOO, "--target", "4.0")
    assert ended.stdout.startswith("10 of 54 clients send versions that 4.0 rejects")
    assert "v1.61.1" in ended.stdout
    assert max(map(len, ended.stdout.splitlines())) <= 80


def test_modern_clients_pass(run, verdict):
    ended = run("clients", verdict, "--target", "4.0")
    assert (ended.exit_code, ended.stdout) == (0, "3 clients seen, none sends a version that 4.0 rejects\n")


@pytest.mark.parametrize("form", ["text", "csv", "json"])
def test_a_list_of_all_who_speak_is_no_gate(run, verdict, form):
    ended = run("clients", "--from", verdict, "--format", form)
    assert ended.exit_code == 0
    if form == "csv":
        rows = list(csv.DictReader(io.StringIO(ended.stdout)))
        assert (len(rows), rows[0]["address"]) == (9, "127.0.0.1")
    elif form == "json":
        assert "rejected_by_target" not in json.loads(ended.stdout)["clients"][0]


def test_a_release_that_does_not_exist_names_those_that_do(run, verdict):
    ended = run("clients", verdict, "--target", "five")
    assert (ended.exit_code, "unknown release five; known releases: 2.4, " in ended.stderr) == (2, True)


@pytest.mark.parametrize("command", [["topics"], ["clients"], ["clients", "--target", "4.0", "--format", "json"]])
def test_what_could_not_be_read_is_told_beside_the_answer(run, command, tmp_path):
    whole = gzip.decompress(EXAMPLE.read_bytes())
    (tmp_path / "cut.pcap").write_bytes(whole[: len(whole) // 2 + 7])
    (tmp_path / "notes.txt").write_text("no pcap")
    ended = run(*command, tmp_path / "cut.pcap", tmp_path / "notes.txt")
    assert ended.exit_code == 0
    said = ended.stderr.splitlines()
    assert said[0].startswith(f"wirecheck: {tmp_path}/cut.pcap: truncated packet at byte offset ")
    assert said[1] == f"wirecheck: {tmp_path}/notes.txt: not a pcap or pcapng file"


def test_a_gate_does_not_open_for_what_it_cannot_read(run):
    ended = run("clients", ROOT / "tests/scenarios/captures/zk28-sasl-tls/capture.pcap.gz", "--target", "2.8")
    assert re.search(r"^wirecheck: not included: .*encrypted connections", ended.stderr, re.MULTILINE)


def test_a_gate_does_not_open_for_nothing(run, tmp_path):
    (tmp_path / "web.pcap").write_bytes(traffic.pcap(traffic.packets(traffic.Talk().open().close().segments)))
    ended = run("clients", tmp_path / "web.pcap", "--target", "4.0")
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert ended.stderr == ("wirecheck: no Kafka traffic in 6 frames of 1 connection; busy ports: 9092 (6 frames)\n")


@pytest.mark.parametrize(
    ("refused", "seen", "said"),
    [
        (0, 1, "1 client seen, none sends a version that 4.0 rejects"),
        (1, 1, "1 of 1 client sends versions that 4.0 rejects"),
        (2, 3, "2 of 3 clients send versions that 4.0 rejects"),
    ],
)
def test_one_client_is_one(capsys, refused, seen, said):
    from rich.console import Console

    from wirecheck.dashboards.terminal_tables import show_gate

    one = client(rejected_by_target=(("Fetch", 3),), between_brokers=False)
    every = [one] * seen + [replace(one, between_brokers=True)]
    show_gate([one] * refused, every, "4.0", Console(width=100))
    assert capsys.readouterr().out.splitlines()[0] == said


def test_where_there_are_several_clusters_each_refused_client_has_its_own(run, monkeypatch):
    clusters = {row["cluster"] for row in json.loads(run("clients", ZOO, "--format", "json").stdout)["clients"]}
    monkeypatch.setenv("COLUMNS", "160")
    wide = run("clients", ZOO, "--target", "4.0").stdout.splitlines()
    assert wide[1].split()[:3] == ["cluster", "client", "ID"]
    assert {line.split()[0] for line in wide[2 : wide.index("")]} <= clusters  # then what to do
    monkeypatch.setenv("COLUMNS", "80")
    narrow = run("clients", ZOO, "--target", "4.0").stdout.splitlines()
    assert {line.partition("cluster ")[2].rstrip(":") for line in narrow if line.startswith("cluster ")} <= clusters
    assert max(map(len, narrow)) <= 80


def test_brokers_and_controllers_are_listed_where_they_are_asked_for(run, verdict):
    clients, every = run("clients", verdict).stdout, run("clients", verdict, "--brokers").stdout
    assert "broker-1-fetcher-0" not in clients
    assert clients.endswith("\n6 brokers and controllers are not listed; --brokers lists them\n")
    assert "broker-1-fetcher-0" in every
    assert "not listed" not in every


@pytest.mark.parametrize("wide", [80, 120])
def test_no_version_is_on_another_line_than_its_api(run, monkeypatch, wide):
    monkeypatch.setenv("COLUMNS", str(wide))
    ended = run("clients", ZOO, "--target", "4.0").stdout
    assert re.search(r"(Fetch|Metadata) v?\d", ended)
    assert [line for line in ended.splitlines() if re.search(r"[A-Z][a-z]+[A-Za-z]+,?$", line)] == []
    assert max(map(len, ended.splitlines())) <= wide


@pytest.mark.parametrize("by", ["prefix", "software"])
def test_groups_are_whole_at_80_columns(run, monkeypatch, by):
    """Their headings, and no version on another line than its API."""
    monkeypatch.setenv("COLUMNS", "80")
    head, *lines = run("clients", ZOO, "--target", "4.0", "--group-by", by).stdout.splitlines()
    assert head.split() == ["group", "clients", "rejected", "rejected", "versions", "upgrade", "to", "last", "seen"]
    assert any("ListOffsets v0," in line for line in lines)
    assert all(re.search(r"\d\dZ$", line.rstrip()) for line in lines if re.match(r"(java|Java|sarama) ", line))


def test_a_client_is_one_line_of_80_columns_and_those_that_are_rejected_come_first(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = run("clients", ROOT / "examples/kraft4-stale-broker/capture.pcap.gz").stdout.splitlines()
    assert [line.split()[0] for line in lines[1:3]] == ["p-lost", "c-lost"]
    assert [line.split()[-4:] for line in lines[1:3]] == [
        ["in", "part", "00:36:41Z", "Produce"],
        ["in", "part", "00:36:50Z", "Fetch"],
    ]
    assert lines[3].split()[-3:] == ["skipped", "00:36:41Z", "Fetch"]
    assert [line.split()[-2] for line in lines[4:7]] == ["left"] * 3
    assert len(lines) == 10
    assert max(map(len, lines)) <= 80


def test_a_client_whose_version_is_not_accepted_is_stalled(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    lines = run("clients", ZOO).stdout.splitlines()
    wrong = [line for line in lines if "stalled" in line and "connection closed" in line]
    assert wrong == lines[1 : 1 + len(TOO_OLD)]
    assert {line.split()[1] for line in wrong} == {f"{name}-new" for name in TOO_OLD}


def test_addresses_have_names(run, verdict, tmp_path):
    (tmp_path / "hosts").write_text("127.0.0.1 lab\n")
    assert "lab (127.0.0.1)" in run("clients", verdict, "--names", tmp_path / "hosts").stdout
    ended = run("clients", verdict, "--names", tmp_path / "hosts", "--format", "json")
    assert {(row["address"], row["address_name"]) for row in json.loads(ended.stdout)["clients"]} == {
        ("127.0.0.1", "lab")
    }


def test_people_read_names_and_programs_and_commands_keep_addresses(run, tmp_path):
    stale, hosts = ROOT / "examples/kraft4-stale-broker/capture.pcap.gz", tmp_path / "hosts"
    hosts.write_text("127.0.0.1 lab\n127.0.2.99 lab-4\n")
    page = tmp_path / "page.html"
    named = ("replay", stale, "--engine", "local", "--names", hosts)
    whole = run(*named, "-v", "--report", page).stdout
    assert "p-lost (lab (127.0.0.1)) has some writes" in whole
    assert "lab (127.0.0.1)" in page.read_text()
    commands = [line for line in whole.splitlines() if "--connection" in line]
    assert commands
    assert not any("lab" in line for line in commands)
    found = run(*named, "--format", "json").stdout
    assert "127.0.0.1" in found
    assert "lab (" not in found
    some_messages = ("decode", stale, "--names", hosts, "--limit", "300")
    assert "→ lab-4 (127.0.2.99):20621" in run(*some_messages).stdout
    as_json = run(*some_messages, "--format", "json").stdout
    assert "127.0.2.99" in as_json
    assert "lab-4 (127.0." not in as_json


def test_who_is_granted_nothing_is_named_apart_and_fails_no_gate(run, tmp_path):
    """Anybody can send old versions to a broker that refuses them; a client whose answers were not seen counts."""

    def ended(*, error=None):
        lab = Lab()
        talk = lab.talk(client_id="old", host="10.0.0.9")
        row = {"index": 0, "errorCode": error or 0, "baseOffset": 7}
        for at in range(3):
            asked = {"acks": -1, "timeoutMs": 30000, "topicData": [{"name": "t", "partitionData": [{"index": 0}]}]}
            answer = {"responses": [{"name": "t", "partitionResponses": [row]}]}
            talk.ask(at, "Produce", 2, asked, None if error is None else answer)
        (tmp_path / "old.pcap").write_bytes(lab.pcap())
        return run("clients", tmp_path / "old.pcap", "--target", "4.0")

    assert ended(error=0).exit_code == ended().exit_code == 1
    denied = ended(error=29)
    assert denied.exit_code == 0
    assert "1 more sends such versions and is granted nothing now: old (10.0.0.9)" in denied.stdout
