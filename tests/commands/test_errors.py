"""`wirecheck errors`: as a person, a program and a spreadsheet read it; names in place of addresses."""

import csv
import io
import json
import os
import re
import shutil

import pytest

import wirecheck
from tests.build import plain
from tests.commands.test_changes import capture
from tests.questions.test_traffic import SECOND, fetch, produce, talking
from tests.traffic import Talk
from wirecheck.commands import names


@pytest.fixture
def failing(tmp_path):
    talk = talking()
    for number in range(4):
        produce(talk, number, 6, topic="a\x1b[2Jb")
        talk.ts_ns += SECOND
    other = talking(("10.0.4.13", 40000))
    produce(other, 1, 3, client_id="shop")
    return capture(tmp_path, talk.close(), other.close())


START, TIMES, BROKER = "22:13:20", "22:13:20 22:13:23", "10.0.1.3:9092"
HEAD = "EFFECT STATE SINCE UNTIL COUNT OF CLIENT ADDRESS REQUEST ERROR ANSWERED BY"


def words(text):
    return [" ".join(line.split()) for line in text.splitlines()]


@pytest.mark.parametrize(
    ("command", "table"),
    [("errors", "requests_by_minute"), ("latency", "requests_by_minute"), ("agreement", "api_versions")],
)
def test_results_of_a_version_that_kept_no_such_rows_do_not_answer_with_none(run, failing, tmp_path, command, table):
    run("replay", failing, "--out", tmp_path / "verdict")
    shutil.rmtree(tmp_path / "verdict" / table)
    ended = run(command, tmp_path / "verdict")
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert ended.stderr.count("\n") == 1
    assert f"has no table {table}: an earlier version of wirecheck wrote it; ask the capture" in ended.stderr


def test_results_answer_as_the_capture_does_and_by_time(run, failing, tmp_path):
    run("replay", failing, "--out", tmp_path / "verdict")
    for command in ("errors", "latency"):
        of_capture = run(command, failing, "--all", "--format", "json").stdout
        assert of_capture
        assert run(command, tmp_path / "verdict", "--all", "--format", "json").stdout == of_capture
    assert list(wirecheck.errors(tmp_path / "verdict")) == list(wirecheck.errors(failing))
    assert list(wirecheck.latency(tmp_path / "verdict")) == list(wirecheck.latency(failing))
    during = run("errors", tmp_path / "verdict", "--since", "22:13", "--until", "22:14", "--format", "json").stdout
    assert len(during.splitlines()) == 2
    assert run("errors", tmp_path / "verdict", "--since", "22:20", "--format", "json").stdout == ""
    assert "none of them in these minutes" in run("errors", tmp_path / "verdict", "--since", "22:20").output
    assert run("errors", failing, "--since", "22:13").exit_code == 2


@pytest.mark.parametrize("speaks", [True, False], ids=["closed on", "refused"])
def test_results_count_connections_that_have_no_rows_of_their_own(run, tmp_path, speaks):
    talks = [
        Talk(("10.0.4.12", 2000 + number), ts_ns=Talk().ts_ns + number * SECOND // 20).open() for number in range(1600)
    ]
    asked = plain("Metadata", "request", 9, {"topics": []}, {"correlationId": 7, "clientId": "c"})
    for talk in talks:
        if speaks:
            talk.request(asked)
        else:
            del talk.segments[1:]
        talk.reset()
    talks.append(talking(("10.0.4.13", 40000)))
    produce(talks[-1], 1, 3, client_id="shop")
    path = capture(tmp_path, *talks)
    run("replay", path, "--out", tmp_path / "verdict")
    of_capture = run("errors", path, "--all", "--format", "json").stdout
    assert max(json.loads(line)["count"] for line in of_capture.splitlines()) == 1600
    assert run("errors", tmp_path / "verdict", "--all", "--format", "json").stdout == of_capture


def test_a_line_says_what_fails_for_whom_and_how_often(run, failing):
    ended = run("errors", failing)
    assert words(ended.stdout) == [
        HEAD,
        f"write rejected ongoing {TIMES} 4 4 billing-7 10.0.4.12 Produce a\\x1b[2Jb NOT_LEADER_OR_FOLLOWER {BROKER}",
        f"write rejected stopped {START} {START} 1 1 shop 10.0.4.13 Produce orders UNKNOWN_TOPIC_OR_PARTITION {BROKER}",
    ]
    assert "2 errors, 1 ongoing; 10 messages, all decoded, 22:13:20 to 22:13:23 UTC" in ended.stderr
    assert ended.exit_code == 0


def test_json_csv_and_the_library_have_the_same_rows(run, failing):
    lines = [json.loads(line) for line in run("errors", failing, "--format", "json").stdout.splitlines()]
    rows = list(csv.DictReader(io.StringIO(run("errors", failing, "--format", "csv").stdout)))
    found = wirecheck.errors(failing)
    assert [row["client_id"] for row in lines] == [row["client_id"] for row in rows] == [row.client_id for row in found]
    assert (lines[0]["count"], lines[0]["servers"], lines[0]["first_seen"][:19]) == (
        4, ["10.0.1.3:9092"], "2023-11-14T22:13:20",
    )  # fmt: skip


@pytest.mark.parametrize(("options", "clients"), [
    (["--client", "shop"], ["shop"]), (["--topic", "orders"], ["shop"]), (["--ongoing"], ["billing-7"]),
    (["--error", "not_leader_or_follower"], ["billing-7"]), (["--error", "NONE"], []),
])  # fmt: skip
def test_only_what_was_asked_for(run, failing, options, clients):
    ended = run("errors", failing, *options, "--format", "json")
    assert [json.loads(line)["client_id"] for line in ended.stdout.splitlines()] == clients


def test_no_errors_say_over_what(run, tmp_path):
    talk = talking()
    fetch(talk, 1)
    ended = run("errors", capture(tmp_path, talk.close()))
    assert (ended.stdout, ended.exit_code) == ("", 0)
    assert "0 errors, 0 ongoing; 2 messages, all decoded" in ended.stderr


POD = {"metadata": {"name": "billing-7"}, "spec": {}, "status": {"podIP": "10.0.4.12", "podIPs": [{"ip": "10.0.4.12"}]}}
NODE = {"metadata": {"name": "agent"}, "spec": {"hostNetwork": True}, "status": {"podIP": "10.0.4.13"}}


@pytest.mark.parametrize("text", [
    "# hosts\n10.0.4.12 billing-7 alias\n::1 localhost\n", json.dumps({"10.0.4.12": "billing-7"}),
    json.dumps({"kind": "List", "items": [POD, NODE]}),
])  # fmt: skip
def test_names_of_addresses(run, failing, tmp_path, text):
    (tmp_path / "names").write_text(text)
    ended = run("errors", failing, "--names", tmp_path / "names")
    assert "billing-7 (10.0.4.12)" in ended.stdout
    assert "(10.0.4.13)" not in ended.stdout
    (row, *_) = map(
        json.loads, run("errors", failing, "--names", tmp_path / "names", "--format", "json").stdout.splitlines()
    )
    assert (row["host"], row["host_name"]) == ("10.0.4.12", "billing-7")


def test_a_file_of_names_may_be_a_pipe_have_a_mark_of_order_and_long_names(run, failing, tmp_path):
    """PowerShell writes the mark; a pipe that no process writes to is empty."""
    (tmp_path / "names").write_text(json.dumps({"10.0.4.12": "x" * 1000}), "utf-8-sig")
    ended = run("errors", failing, "--names", tmp_path / "names")
    assert f" {'x' * 253} (10.0.4.12)" in ended.stdout
    os.mkfifo(tmp_path / "pipe")
    assert run("errors", failing, "--names", tmp_path / "pipe").exit_code == 2


def test_names_beyond_the_bound_are_counted(run, failing, tmp_path, monkeypatch):
    monkeypatch.setattr(names, "MOST_NAMES", 1)
    (tmp_path / "names").write_text("10.0.4.12 billing-7\n10.0.4.13 other\n10.0.4.14 third\n")
    ended = run("errors", failing, "--names", tmp_path / "names")
    assert "billing-7 (10.0.4.12)" in ended.stdout
    assert "2 more names are not used; 1 are kept" in ended.stderr


@pytest.mark.parametrize("text", [
    "", "{", "[1]", '{"a": 1}', "no address", '{"items": [{}]}', '{"10.0.4.12": 5}', '{"10.0.4.12": NaN}',
])  # fmt: skip
def test_a_file_of_no_names_is_one_line(run, failing, tmp_path, text):
    (tmp_path / "names").write_text(text)
    ended = run("errors", failing, "--names", tmp_path / "names")
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert len(ended.stderr.splitlines()) == 1


@pytest.mark.parametrize("words", [["errors"], ["changes"], ["why", "orders"], ["decode"], ["topics"], ["replay"]])
@pytest.mark.parametrize(("content", "said"), [(b"no capture\n" * 9, "not a pcap"), (b"", "empty file")])
def test_a_file_that_is_no_capture_is_one_line(run, tmp_path, words, content, said):
    (tmp_path / "a.pcap").write_bytes(content)
    ended = run(*words, tmp_path / "a.pcap")
    assert (ended.exit_code, ended.stdout, ended.stderr.count("\n"), said in ended.stderr) == (2, "", 1, True)


@pytest.mark.parametrize("command", ["errors", "changes"])
def test_a_capture_without_kafka_is_no_empty_list(run, tmp_path, failing, command):
    (tmp_path / "none.pcap").write_bytes(failing.read_bytes()[:24])
    ended = run(command, tmp_path / "none.pcap")
    assert (ended.exit_code, "none.pcap: no Kafka messages could be read" in ended.stderr) == (2, True)


@pytest.mark.parametrize(("options", "said"), [
    (["--client", "shopp"], "no client shopp was seen; close to it: shop"),
    (["--topic", "order"], "no topic order was seen; close to it: orders"),
    (["--error", "NOT_LEADER"], "NOT_LEADER: no such error; close to it: NOT_LEADER_OR_FOLLOWER"),
])  # fmt: skip
def test_a_name_that_was_not_seen_is_an_error(run, failing, options, said):
    ended = run("errors", failing, *options)
    assert (ended.exit_code, said in ended.stderr) == (2, True)


def test_on_a_terminal_the_worst_stay_on_the_screen(run, failing, monkeypatch, capsys):
    """Rows that are wider than the terminal take several lines each."""
    from wirecheck.commands import errors as command
    from wirecheck.commands import listing, screen

    rows = [*wirecheck.errors(failing)] * 9
    monkeypatch.setattr(screen.Display, "quiet", False)
    monkeypatch.setattr(listing.sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(listing.shutil, "get_terminal_size", lambda: os.terminal_size((80, 20)))
    command.LISTING.show(rows, "text", every=False)
    printed = capsys.readouterr()
    head = re.sub(r"\x1b\[[0-9;]*m", "", printed.out).splitlines()[0]
    assert head.split() == ["STATE", "SINCE", "COUNT", "CLIENT", "REQUEST", "ERROR"]  # the others do not fit
    assert 10 < printed.out.count("\n") <= 14
    assert " of 18 errors" in printed.err


def test_what_brokers_ask_stands_apart(run, tmp_path):
    talk, broker = talking(), "broker-2-fetcher-0"
    produce(talk, 1, 6, client_id=broker)
    produce(talk, 2, 6)
    file = capture(tmp_path, talk.close())
    ended = run("errors", file)
    assert "billing-7" in ended.stdout
    assert broker not in ended.stdout
    assert "1 of brokers (--brokers) not shown" in ended.stderr
    _, first, second = run("errors", file, "--brokers").stdout.splitlines()
    assert ("billing-7" in first, broker in second) == (True, True)
    assert broker in run("errors", file, "--client", broker).stdout
    assert broker in run("errors", file, "--format", "json").stdout
