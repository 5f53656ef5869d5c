"""`wirecheck changes`: the audit of a capture as a person, a program and a spreadsheet read it."""

import csv
import io
import json

import pytest

import wirecheck
from tests.questions.test_changes import (
    CREATE,
    CREATED,
    SECOND,
    direct,
    envelope,
    in_two_clusters,
    naming_their_clusters,
    request,
    response,
)
from tests.questions.test_counted_once import both_legs, created_through
from tests.traffic import packets, pcap
from wirecheck.commands import changes as command
from wirecheck.commands import listing, screen
from wirecheck.questions import changes as audit_of_requests
from wirecheck.streaming.store import change_rows


def capture(tmp_path, *talks):
    segments = sorted((segment for talk in talks for segment in talk.segments), key=lambda one: one.ts_ns)
    path = tmp_path / "audit.pcap"
    path.write_bytes(pcap(packets(segments)))
    return path


@pytest.fixture
def audit(tmp_path):
    inner, answer = request("CreateTopics", 7, CREATE), response("CreateTopics", 7, CREATED)
    evil = direct("DeleteTopics", 5, {"topicNames": ["a\x1b[2Jb"]}, at=SECOND, client=("10.0.4.13", 41000))
    return capture(tmp_path, direct("CreateTopics", 7, CREATE, CREATED), envelope(inner, answer), evil)


def test_a_line_says_who_what_where_and_the_answer(run, audit):
    ended = run("changes", audit)
    assert ended.exit_code == 0
    expected = (
        (
            "22:13:20 CreateTopics songs lab-admin User:alice 10.0.4.12 via 10.0.1.3:9092, "
            "answered by 10.0.1.9:9093 ok "
            "2 partitions, replication factor 3"
        ),
        "22:13:21 DeleteTopics a\\x1b[2Jb lab-admin - 10.0.4.13 via 10.0.1.3:9092 no answer seen",
    )
    assert tuple(" ".join(line.split()) for line in ended.stdout.splitlines()) == expected
    assert "2 changes: 1 accepted, 1 without an answer" in ended.stderr


def test_json_and_csv_have_the_same_cells(run, audit):
    lines = [json.loads(line) for line in run("changes", audit, "--format", "json").stdout.splitlines()]
    assert lines[0] | {"frame": None} == {
        "time": "2023-11-14T22:13:20.003000Z", "action": "CreateTopics", "object_type": "topic", "object": "songs",
        "details": "2 partitions, replication factor 3", "principal": "User:alice", "claimed_by": None,
        "client_id": "lab-admin", "host": "10.0.4.12", "via_broker": "10.0.1.3:9092",
        "answered_by": "10.0.1.9:9093", "error": "NONE", "frame": None,
        "cluster": None,
    }  # fmt: skip
    assert [line["error"] for line in lines] == ["NONE", None]
    rows = list(csv.DictReader(io.StringIO(run("changes", audit, "--format", "csv").stdout)))
    assert [row["principal"] for row in rows] == ["User:alice", ""]


def test_a_principal_that_no_controller_accepted_stands_beside_who_claimed_it(run, tmp_path):
    path = capture(tmp_path, envelope(request("CreateTopics", 7, CREATE)))
    (line,) = run("changes", path).stdout.splitlines()
    assert "User:alice (claimed by 10.0.1.3)" in line
    assert "no answer seen" in line
    bare = run("changes", path, "--no-principals", "--format", "json").stdout
    assert json.loads(bare)["claimed_by"] is None
    assert "10.0.1.3" not in bare
    out = tmp_path / "verdict"
    run("replay", path, "--out", out, "--fail-on", "never")
    assert run("changes", out).stdout == run("changes", path).stdout


def test_several_clusters_are_named(run, tmp_path):
    both = [*in_two_clusters(CREATED, CREATED), *naming_their_clusters()]
    path, alone = capture(tmp_path, *both), tmp_path / "one"
    lines = [" ".join(line.split()) for line in run("changes", path).stdout.splitlines()]
    assert [f"10.0.4.12 {name} via broker {number} ok" in line for line, name, number in zip(
        lines, ("cluster-a", "cluster-b"), (3, 8), strict=True)] == [True, True]  # fmt: skip
    rows = [json.loads(line) for line in run("changes", path, "--format", "json").stdout.splitlines()]
    assert [row["cluster"] for row in rows] == ["cluster-a", "cluster-b"]
    out = tmp_path / "verdict"
    run("replay", path, "--out", out, "--fail-on", "never")
    assert run("changes", out).stdout == run("changes", path).stdout
    alone.mkdir()
    path = capture(alone, *both[::2])
    assert "cluster" not in run("changes", path).stdout


@pytest.mark.parametrize("back", ["10.0.9.1", "10.0.7.1"], ids=["one-address", "two-addresses"])
def test_results_count_a_change_through_a_proxy_once(run, tmp_path, back):
    """Which address a proxy sends from is in the finding about it (CLU005)."""
    path, out = capture(tmp_path, *both_legs(back=back), *created_through(back)), tmp_path / "verdict"
    run("replay", path, "--out", out, "--fail-on", "never")
    (line,) = run("changes", out).stdout.splitlines()
    assert "CreateTopics songs" in line
    assert "10.0.4.12" in line
    assert run("changes", out).stdout == run("changes", path).stdout


@pytest.mark.parametrize(("options", "actions"), [
    (["--object", "songs"], ["CreateTopics"]), (["--failed"], ["DeleteTopics"]), (["--object", "other"], []),
    (["--port", "9093"], ["CreateTopics"]), (["--port", "1"], []),
])  # fmt: skip
def test_only_what_was_asked_for(run, audit, options, actions):
    ended = run("changes", audit, *options, "--format", "json")
    assert [json.loads(line)["action"] for line in ended.stdout.splitlines()] == actions


def test_a_terminal_shows_the_newest_that_fit(run, audit, monkeypatch, capsys):
    monkeypatch.setattr(screen.Display, "quiet", False)
    monkeypatch.setattr(listing.sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(listing.shutil, "get_terminal_size", lambda: listing.shutil.os.terminal_size((80, 5)))
    found = wirecheck.changes(audit)
    from wirecheck.capture.agent import offline_agent
    from wirecheck.questions.changes import Changes

    command.listing().show(list(Changes().read(offline_agent.read_frames([audit])).merged()), "text", every=False)
    shown = capsys.readouterr()
    assert ("CreateTopics" in shown.out, "DeleteTopics" in shown.out) == (False, True)
    assert "newest 1 of 2" in shown.err
    assert [change.action for change in found] == ["CreateTopics", "DeleteTopics"]


def test_a_missing_file_is_one_line(run, tmp_path):
    ended = run("changes", tmp_path / "nosuch.pcap")
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert "nosuch.pcap" in ended.stderr


def test_a_capture_without_changes_says_so(run, tmp_path):
    fetch = direct("Fetch", 4, {"replicaId": -1, "maxWaitMs": 1, "minBytes": 1, "topics": []}, {"responses": []})
    ended = run("changes", capture(tmp_path, fetch))
    assert (ended.exit_code, ended.stdout) == (0, "")
    assert "0 changes" in ended.stderr


def test_the_library_gives_values(audit):
    first = wirecheck.changes(audit)[0]
    assert (first.action, first.object, first.principal, first.error) == ("CreateTopics", "songs", "User:alice", "NONE")
    assert first.time.isoformat() == "2023-11-14T22:13:20.003000+00:00"
    with pytest.raises(wirecheck.InputError):
        wirecheck.changes()


@pytest.fixture
def results(run, audit, tmp_path):
    out = tmp_path / "verdict"
    assert run("replay", audit, "--out", out, "--fail-on", "never").exit_code == 0
    return out


@pytest.mark.parametrize("options", [(), ("--object", "songs"), ("--failed",), ("--no-principals",)])
def test_results_of_a_replay_have_the_changes_of_its_capture(run, audit, results, options):
    of_frames, of_results = (run("changes", where, *options, "--format", "json") for where in (audit, results))
    assert of_results.stdout == of_frames.stdout != ""
    assert run("changes", results).stderr.startswith("2 changes: 1 accepted, 1 without an answer; 5 messages")


def test_the_library_reads_results(audit, results):
    assert list(wirecheck.changes(results)) == list(wirecheck.changes(audit))


@pytest.mark.parametrize(("asked", "line"), [
    (("changes", "RESULTS", "AUDIT"), "not both"),
    (("changes", "RESULTS", "--port", "9092"), "--port takes pcaps and folders of frames"),
    (("decode", "RESULTS"), "this command reads pcaps and folders of frames"),
    (("why", "songs", "RESULTS", "--at", "00:20"), "--at takes pcaps and folders of frames"),
])  # fmt: skip
def test_what_results_cannot_answer_is_one_line(run, audit, results, asked, line):
    ended = run(*({"RESULTS": results, "AUDIT": audit}.get(word, word) for word in asked))
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert line in ended.stderr.replace("\n", " ")
    assert ended.stderr.count("\n") <= 2


def test_results_keep_so_many_requests_and_count_the_others(run, tmp_path, monkeypatch):
    monkeypatch.setattr(change_rows, "MOST_ROWS", 1)
    monkeypatch.setattr(audit_of_requests, "MOST_TARGETS", 1)
    two = {"topicNames": ["one", "two"]}
    other = direct("DeleteTopics", 5, two, at=SECOND, number=8, client=("10.0.4.12", 41000))
    path = capture(tmp_path, direct("DeleteTopics", 5, two), other)
    out = tmp_path / "verdict"
    run("replay", path, "--out", out, "--fail-on", "never")
    ended = run("changes", out, "--format", "json")
    assert [json.loads(line)["object"] for line in ended.stdout.splitlines()] == ["one"]
    assert "not listed: 2 more changes" in ended.stderr


def test_results_without_principals_have_neither_them_nor_addresses(run, audit, tmp_path):
    out = tmp_path / "verdict"
    run("replay", audit, "--out", out, "--fail-on", "never", "--no-principals")
    kept = run("changes", out, "--format", "json").stdout
    assert kept == run("changes", audit, "--no-principals", "--format", "json").stdout
    assert "alice" in run("changes", audit, "--format", "json").stdout
    assert {(row["principal"], row["host"]) for row in map(json.loads, kept.splitlines())} == {(None, None)}


def test_a_cell_of_the_text_is_not_longer_than_a_screen(run, tmp_path):
    """Kafka refuses such a name; JSON has all of it."""
    path = capture(tmp_path, direct("DeleteTopics", 5, {"topicNames": ["o" * 3_000]}))
    ended = run("changes", path)
    assert f"{'o' * 487}... (3,013 characters)  lab-admin" in ended.stdout
    assert "o" * 3_000 in run("changes", path, "--format", "json").stdout


def test_a_delegation_token_has_no_name_and_all_topics_none(run, tmp_path):
    token = direct("ExpireDelegationToken", 1, {"hmac": "AAAA", "expiryTimePeriodMs": -1}, {"errorCode": 0})
    elect = {"topicPartitions": None, "timeoutMs": 1}
    every = direct("ElectLeaders", 1, {"electionType": 0, **elect}, at=SECOND, client=("10.0.4.13", 41000))
    lines = [" ".join(line.split()) for line in run("changes", capture(tmp_path, token, every)).stdout.splitlines()]
    assert lines[0].startswith("22:13:20 ExpireDelegationToken delegation token lab-admin ")
    assert lines[1].startswith("22:13:21 ElectLeaders (all) lab-admin ")


def test_a_group_or_topic_with_the_empty_name_is_not_all_of_them(run, tmp_path):
    """Who assigns partitions by itself may commit to the group without a name, and an admin may delete it."""
    group = direct("DeleteGroups", 2, {"groupsNames": [""]}, {"results": [{"groupId": "", "errorCode": 0}]})
    topic = direct("DeleteTopics", 5, {"topicNames": [""]}, at=SECOND, client=("10.0.4.13", 41000))
    lines = [" ".join(line.split()) for line in run("changes", capture(tmp_path, group, topic)).stdout.splitlines()]
    assert lines[0].startswith("22:13:20 DeleteGroups group '' lab-admin ")
    assert lines[1].startswith("22:13:21 DeleteTopics '' lab-admin ")
