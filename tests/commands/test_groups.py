"""`wirecheck groups`: state, members, rebalances and lag, and a question mark for what was not seen."""

import json

import pytest

import wirecheck
from tests.commands.conftest import ROOT
from tests.judge.lab import Lab
from wirecheck.commands.groups import age, lag
from wirecheck.questions.group_rows import GroupRow

NAME = "songs"


def joined(talk, at, group, member, generation):
    talk.ask(at, "JoinGroup", 7, {"groupId": group, "protocolType": "consumer"},
             {"generationId": generation, "memberId": member, "leader": member})  # fmt: skip
    talk.ask(at + 1, "SyncGroup", 5, {"groupId": group, "memberId": member, "generationId": generation}, {})


def commit(talk, at, group, offsets, error=0):
    parts = [{"partitionIndex": number, "committedOffset": offset} for number, offset in offsets.items()]
    answers = [{"partitionIndex": number, "errorCode": error} for number in offsets]
    talk.ask(at, "OffsetCommit", 8, {"groupId": group, "topics": [{"name": NAME, "partitions": parts}]},
             {"topics": [{"name": NAME, "partitions": answers}]})  # fmt: skip


def fetch(talk, at, partition, watermark):
    part = {"partitionIndex": partition, "highWatermark": watermark, "errorCode": 0}
    talk.ask(at, "Fetch", 11, {"topics": [{"topic": NAME, "partitions": [{"partition": partition}]}]},
             {"responses": [{"topic": NAME, "partitions": [part]}]})  # fmt: skip


@pytest.fixture
def capture(tmp_path):
    """`steady` has two members and commits two partitions of which one is fetched; `left` ended; `rejoining` waits for
    its second generation; of `elsewhere` only commits are seen.
    """
    lab = Lab()
    members = [lab.talk(client_id=f"app-{number}", host=f"10.0.0.{7 + number}") for number in range(2)]
    for member, talk in enumerate(members):
        joined(talk, 1 + member, "steady", f"m{member}", 4)
    for at in range(10, 100, 10):
        for member, talk in enumerate(members):
            talk.ask(at, "Heartbeat", 4, {"groupId": "steady", "memberId": f"m{member}", "generationId": 4}, {})
        fetch(members[0], at + 1, 0, at * 10)
    commit(members[0], 90, "steady", {0: 700, 1: 5})
    commit(members[0], 95, "steady", {0: 890}, error=22)
    gone = lab.talk(client_id="gone", host="10.0.0.20")
    joined(gone, 5, "left", "g", 1)
    gone.ask(50, "LeaveGroup", 4, {"groupId": "left", "members": [{"memberId": "g"}]}, {})
    again = lab.talk(client_id="again", host="10.0.0.21")
    joined(again, 5, "rejoining", "a", 1)
    again.ask(80, "Heartbeat", 4, {"groupId": "rejoining", "memberId": "a", "generationId": 1}, {"errorCode": 27})
    commit(lab.talk(client_id="job", host="10.0.0.22"), 60, "elsewhere", {7: 3})
    (tmp_path / "groups.pcap").write_bytes(lab.pcap())
    return tmp_path / "groups.pcap"


def test_a_row_says_what_was_seen_of_a_group_and_what_was_not(run, capture):
    ended = run("groups", capture)
    head, *lines = ended.stdout.splitlines()
    assert head.split() == ["GROUP", "STATE", "MEMBERS", "REBALANCES", "GENERATION", "LAG", "COMMIT", "WATERMARK"]
    assert [line.split()[:3] for line in lines] == [
        ["steady", "stable", "2"],
        ["elsewhere", "unknown", "?"],
        ["left", "empty", "0"],
        ["rejoining", "rebalancing", "1"],
    ]
    assert "200 (1 of 2 partitions)" in lines[0]  # the refused commit of 890 counts for nothing
    assert ended.stderr.startswith("4 groups; ")


def test_json_and_the_library_have_the_same_rows(run, capture):
    lines = [json.loads(line) for line in run("groups", capture, "--format", "json").stdout.splitlines()]
    found = wirecheck.groups(capture)
    assert [(row["group"], row["lag"]) for row in lines] == [(row.group, row.lag) for row in found]
    assert [row["rebalances"] for row in lines] == [1, 0, 1, 1]
    assert lines[0]["committed_at"] < lines[0]["watermark_at"]
    assert found.to_arrow().column("committed_at").to_pylist()[2:] == [None, None]


def test_one_group_can_be_asked_for_and_a_wrong_name_is_an_error(run, capture):
    assert [line.split()[0] for line in run("groups", capture, "--group", "left").stdout.splitlines()[1:]] == ["left"]
    ended = run("groups", capture, "--group", "stedy")
    assert (ended.exit_code, ended.stderr) == (2, "wirecheck: no group stedy was seen; close to it: steady\n")


def test_members_of_new_groups_state_epochs(run, tmp_path):
    lab = Lab()
    talk = lab.talk(client_id="new", host="10.0.0.7")
    for at, asked, given in ((1, 0, 1), (6, 1, 1), (11, 1, 2), (16, 2, 2)):
        talk.ask(at, "ConsumerGroupHeartbeat", 0, {"groupId": "k", "memberId": "m", "memberEpoch": asked},
                 {"memberId": "m", "memberEpoch": given})  # fmt: skip
    (tmp_path / "new.pcap").write_bytes(lab.pcap())
    (row,) = wirecheck.groups(tmp_path / "new.pcap")
    assert (row.state, row.members, row.rebalances, row.generation) == ("stable", 1, 2, 2)


@pytest.mark.parametrize(
    ("partitions", "measured", "behind", "text"),
    [(0, 0, None, "?"), (2, 2, 1204, "1,204"), (5, 3, 1204, "1,204 (3 of 5 partitions)")],
)
def test_a_lag_says_what_it_is_about(partitions, measured, behind, text):
    assert lag(GroupRow("g", "stable", 1, 0, 1, partitions, measured, behind, None, None)) == text


def test_ages_are_as_of_the_end():
    assert (age(None, 5), age(3_000_000_000, 7_400_000_000)) == ("?", "4 s ago")


def test_why_and_groups_say_the_same_of_a_recreated_topic_and_a_refused_commit(run, tmp_path):
    lab = Lab()
    talk = lab.talk(client_id="app", host="10.0.0.7")
    commit(talk, 1, "g", {0: 5})
    commit(talk, 2, "g", {0: 900}, error=22)
    fetch(talk, 3, 0, 1000)
    fetch(talk, 60, 0, 12)  # recreated
    (tmp_path / "again.pcap").write_bytes(lab.pcap())
    (row,) = wirecheck.groups(tmp_path / "again.pcap")
    assert row.lag == 7
    assert "committed 5, high watermark 12, lag 7" in run("why", "g", tmp_path / "again.pcap").stdout


def test_groups_of_one_name_in_two_clusters_are_two(run):
    """A mirror: the lag of one is not that of the other."""
    capture = ROOT / "tests/scenarios/captures/two-clusters-one-wire/capture.pcap.gz"
    rows = [json.loads(line) for line in run("groups", capture, "--format", "json").stdout.splitlines()]
    assert [(row["group"], row["cluster"], row["lag"]) for row in rows] == [
        ("mirror", "VZfnas_-SsKnG0bYndhJ1Q", 6),
        ("mirror", "1FwIxoMbSrqV6Gg2C4jxIw", 0),
    ]
    assert run("groups", capture).stdout.split()[:2] == ["GROUP", "CLUSTER"]
    assert [row.lag for row in wirecheck.groups(capture)] == [6, 0]
