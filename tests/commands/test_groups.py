"""`wirecheck groups`: state, members, rebalances and lag, and a question mark for what was not seen."""

import json
import shutil
import sys

import pytest

import wirecheck
from tests.commands.conftest import ROOT
from tests.judge.lab import ID_1, ID_2, Lab, ns
from wirecheck.commands.groups import age, lag, members, trend
from wirecheck.decode.connection.exchanges import PENDING
from wirecheck.questions.group_rows import GroupRow, Groups
from wirecheck.session.cluster_readings import MOST_APART, apart
from wirecheck.session.frame_tables import capture_frames
from wirecheck.session.session import Session

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
    assert " ".join(head.split()) == (
        "GROUP TYPE STATE MEMBERS REBALANCES GENERATION LAG BEHIND TREND COMMIT WATERMARK"
    )
    assert [line.split()[:4] for line in lines] == [
        ["steady", "classic", "stable", "2"],
        ["elsewhere", "?", "unknown", "?"],
        ["left", "classic", "empty", "0"],
        ["rejoining", "classic", "rebalancing", "1"],
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


def test_the_group_with_the_empty_name_is_one(run, tmp_path):
    """Kafka accepts commits to it from who assigns partitions by itself."""
    lab = Lab()
    commit(lab.talk(client_id="app", host="10.0.0.7"), 1, "", {0: 5})
    (tmp_path / "empty.pcap").write_bytes(lab.pcap())
    (row,) = wirecheck.groups(tmp_path / "empty.pcap")
    assert (row.group, row.state) == ("", "unknown")
    assert run("groups", tmp_path / "empty.pcap").stdout.splitlines()[1].startswith("''")


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
    assert "committed 5, end 12, lag 7" in run("why", "g", tmp_path / "again.pcap").stdout


def test_groups_of_one_name_in_two_clusters_are_two(run):
    """A mirror: the lag of one is not that of the other."""
    capture = ROOT / "tests/scenarios/captures/two-clusters-one-wire/capture.pcap.gz"
    rows = [json.loads(line) for line in run("groups", capture, "--format", "json").stdout.splitlines()]
    assert [(row["group"], row["cluster"], row["lag"]) for row in rows] == [
        ("mirror", "VZfnas_-SsKnG0bYndhJ1Q", 7),
        ("mirror", "1FwIxoMbSrqV6Gg2C4jxIw", 0),
    ]
    assert run("groups", capture).stdout.split()[:2] == ["GROUP", "CLUSTER"]
    assert [row.lag for row in wirecheck.groups(capture)] == [7, 0]


def listed_group(lab, tmp_path):
    (tmp_path / "one.pcap").write_bytes(lab.pcap())
    (row,) = wirecheck.groups(tmp_path / "one.pcap")
    return row


def test_a_static_member_that_comes_again_takes_its_own_place(tmp_path):
    """KIP-345: a process with the same group.instance.id gets another member ID."""
    lab = Lab()
    talk = lab.talk(client_id="app", host="10.0.0.7")
    for number in range(5):
        talk.ask(number * 5, "JoinGroup", 7, {"groupId": "g", "groupInstanceId": "pod-0"},
                 {"generationId": 1, "memberId": f"m{number}", "leader": "m0"})  # fmt: skip
        talk.ask(number * 5 + 1, "SyncGroup", 5, {"groupId": "g", "memberId": f"m{number}", "generationId": 1}, {})
    row = listed_group(lab, tmp_path)
    assert (row.members, row.state) == (1, "stable")


def test_members_that_wait_in_a_join_are_members(tmp_path):
    lab = Lab()
    slow = lab.talk(client_id="slow", host="10.0.0.7")
    joined(slow, 1, "g", "slow", 1)
    slow.ask(80, "Heartbeat", 4, {"groupId": "g", "memberId": "slow", "generationId": 1}, {"errorCode": 27})
    for number in range(3):
        new = lab.talk(client_id="new", host=f"10.0.0.{8 + number}")
        new.ask(5, "JoinGroup", 4, {"groupId": "g"}, outcome=PENDING)
    row = listed_group(lab, tmp_path)
    assert (row.members, row.joining, row.state) == (4, 3, "rebalancing")
    assert members(row) == "4 (3 joining)"


def test_a_member_that_its_coordinator_does_not_know_is_none(tmp_path):
    """It joins under another ID."""
    lab = Lab()
    talk = lab.talk(client_id="reader")
    for at, member in ((1, "a"), (20, "b")):
        joined(talk, at, "g", member, 1)
    beat = {"groupId": "g", "memberId": "a", "generationId": 1}
    talk.ask(18, "Heartbeat", 4, beat, {"errorCode": 25})
    lab.until = 30
    assert listed_group(lab, tmp_path).members == 1


def test_a_commit_without_a_response_is_none(tmp_path):
    lab = Lab()
    talk = lab.talk(client_id="app", host="10.0.0.7")
    commit(talk, 1, "g", {0: 5})
    fetch(talk, 2, 0, 100)
    parts = [{"partitionIndex": 0, "committedOffset": 90}]
    talk.ask(3, "OffsetCommit", 8, {"groupId": "g", "topics": [{"name": NAME, "partitions": parts}]}, outcome=PENDING)
    assert listed_group(lab, tmp_path).lag == 95


def test_a_share_group_has_its_last_accepted_record(tmp_path):
    lab = Lab()
    talk = lab.talk(client_id="app", host="10.0.0.7")
    for at, kinds in ((5, [1]), (20, [2]), (21, [0])):
        batch = {"firstOffset": 1, "lastOffset": 1, "acknowledgeTypes": kinds}
        partitions = [{"partitionIndex": 0, "acknowledgementBatches": [batch]}]
        talk.ask(
            at, "ShareAcknowledge", 1, {"groupId": "g", "memberId": "m", "topics": [{"partitions": partitions}]}, {}
        )
    talk.ask(25, "Metadata", 12, {"topics": None}, {})
    row = listed_group(lab, tmp_path)
    assert age(row.committed_ns, ns(25.001)) == "20 s ago"
    assert (row.lag, row.lag_seconds) == (None, None)


def fetch_by_id(talk, at, topic_id, watermark):
    part = {"partitionIndex": 0, "highWatermark": watermark, "errorCode": 0}
    talk.ask(at, "Fetch", 13, {"topics": [{"topicId": topic_id, "partitions": [{"partition": 0}]}]},
             {"responses": [{"topicId": topic_id, "partitions": [part]}]})  # fmt: skip


def test_what_was_committed_to_the_deleted_topic_is_no_lag(tmp_path):
    lab = Lab()
    talk = lab.talk(client_id="app", host="10.0.0.7")
    lab.metadata(0, topics=[(NAME, ID_1)])
    fetch_by_id(talk, 1, ID_1, 100)
    commit(talk, 2, "g", {0: 90})
    lab.metadata(5, topics=[(NAME, ID_2)])
    fetch_by_id(talk, 6, ID_2, 200)
    row = listed_group(lab, tmp_path)
    assert (row.partitions, row.lag) == (0, None)


def test_a_lag_has_an_age_and_a_trend(tmp_path):
    """The end grows by 10 records a second, and the group commits half of them."""
    lab = Lab()
    talk = lab.talk(client_id="app", host="10.0.0.7")
    for at in range(100):
        fetch(talk, at, 0, at * 10)
        commit(talk, at + 0.5, "g", {0: at * 5})
    row = listed_group(lab, tmp_path)
    assert row.lag == 495
    assert row.lag_seconds == pytest.approx(50, abs=2)
    assert row.lag_per_second == pytest.approx(5, abs=0.5)
    assert trend(row) == f"{row.lag_per_second:+.1f}/s"


def write(talk, at, base_offset, acks=-1, error=0):
    part = {"index": 0, "errorCode": error, "baseOffset": base_offset}
    talk.ask(at, "Produce", 9, {"acks": acks, "topicData": [{"name": NAME, "partitionData": [{"index": 0}]}]},
             {"responses": [{"name": NAME, "partitionResponses": [part]}]})  # fmt: skip


def stops(lab):
    """A reader that commits all there is, and then nothing more."""
    talk = lab.talk(client_id="app", host="10.0.0.7")
    fetch(talk, 1, 0, 50)
    commit(talk, 2, "g", {0: 50})
    return lab.talk(client_id="writer", host="10.0.0.8")


def test_what_writers_were_granted_since_waits_for_a_reader_that_stopped(run, tmp_path):
    lab = Lab()
    writer = stops(lab)
    for at in range(10, 60):
        write(writer, at, 50 + at)
    row = listed_group(lab, tmp_path)
    assert row.lag == 60
    assert 49 <= row.lag_seconds <= 59  # the first of them came after the last high watermark, before the first answer
    (tmp_path / "writes.pcap").write_bytes(lab.pcap())
    run("replay", tmp_path / "writes.pcap", "--out", tmp_path / "verdict")
    (kept,) = wirecheck.groups(tmp_path / "verdict")
    assert kept.lag == 60


@pytest.mark.parametrize("more", [{"acks": 1}, {"error": 7}], ids=str)
def test_what_need_not_be_committed_is_no_end(more, tmp_path):
    lab = Lab()
    write(stops(lab), 10, 80, **more)
    assert listed_group(lab, tmp_path).lag == 0


def test_a_write_is_at_least_an_end_so_a_commit_may_be_beyond_it(tmp_path):
    """Its batch has ten records, and its answer comes after a reader has committed them."""
    lab = Lab()
    writer = stops(lab)
    commit(lab.talk(client_id="app", host="10.0.0.7"), 10, "g", {0: 60})
    write(writer, 11, 50)
    assert lag(listed_group(lab, tmp_path)) == "0"


def recreated(lab):
    """50 records are read and committed by name, and the topic is created again at 5 s."""
    lab.metadata(0, topics=[(NAME, ID_1)])
    writer = stops(lab)
    lab.metadata(5, topics=[(NAME, ID_2)])
    return writer


def test_a_commit_by_name_before_the_topic_was_created_again_is_of_no_topic(run, tmp_path):
    lab = Lab()
    write(recreated(lab), 10, 80)
    row = listed_group(lab, tmp_path)
    assert (row.partitions, row.lag, row.committed_ns, row.watermark_ns) == (0, None, None, None)
    run("replay", tmp_path / "one.pcap", "--out", tmp_path / "verdict")
    (kept,) = wirecheck.groups(tmp_path / "verdict")
    assert (kept.lag, kept.committed_ns) == (None, None)


def test_of_what_has_no_id_the_newest_topic_has_what_came_since_it_was_stated(tmp_path):
    """The reader goes on by name, and stops at 30 of 81 records."""
    lab = Lab()
    writer = recreated(lab)
    talk = lab.talk(client_id="app", host="10.0.0.7")
    fetch(talk, 6, 0, 30)
    commit(talk, 7, "g", {0: 30})
    write(writer, 10, 80)
    row = listed_group(lab, tmp_path)
    assert (row.partitions, row.lag) == (1, 51)


def test_an_end_by_name_before_the_topic_was_created_again_is_none(tmp_path):
    lab = Lab()
    write(recreated(lab), 6, 80, acks=1)
    commit(lab.talk(client_id="app", host="10.0.0.7"), 7, "g", {0: 30})
    row = listed_group(lab, tmp_path)
    assert (row.partitions, row.lag) == (1, None)


def test_a_commit_beyond_a_later_end_is_said(tmp_path):
    lab = Lab()
    talk = lab.talk(client_id="app", host="10.0.0.7")
    commit(talk, 1, "g", {0: 500})
    fetch(talk, 30, 0, 20)
    row = listed_group(lab, tmp_path)
    assert lag(row) == "0 (1 partition beyond the end)"


def test_results_answer_as_the_capture_does(run, capture, tmp_path):
    run("replay", capture, "--out", tmp_path / "verdict")
    of_capture, of_results = (
        [json.loads(line) for line in run("groups", one, "--format", "json").stdout.splitlines()]
        for one in (capture, tmp_path / "verdict")
    )
    rests_on_points = {"lag_seconds", "lag_per_second"}
    for rows in (of_capture, of_results):
        assert len(rows) == 4
        for row in rows:
            for name in rests_on_points:
                row.pop(name)
    assert of_results == of_capture
    ended = run("groups", tmp_path / "verdict", "--group", "stedy")
    assert (ended.exit_code, ended.stderr) == (2, "wirecheck: no group stedy was seen; close to it: steady\n")
    assert [row.group for row in wirecheck.groups(tmp_path / "verdict")] == [row["group"] for row in of_capture]
    assert [*wirecheck.why("steady", tmp_path / "verdict")] == [*wirecheck.why("steady", capture)]


def test_results_without_the_table_do_not_answer_with_none(run, capture, tmp_path):
    run("replay", capture, "--out", tmp_path / "verdict")
    shutil.rmtree(tmp_path / "verdict/groups_by_minute")
    for command in (("groups",), ("why", "steady")):
        ended = run(*command, tmp_path / "verdict")
        assert (ended.exit_code, ended.stdout) == (2, "")
        assert "has no table groups_by_minute: an earlier version of wirecheck wrote it" in ended.stderr


def test_results_without_groups_have_none(run, tmp_path):
    lab = Lab()
    fetch(lab.talk(client_id="reader", host="10.0.0.9"), 1, 0, 7)
    (tmp_path / "alone.pcap").write_bytes(lab.pcap())
    run("replay", tmp_path / "alone.pcap", "--out", tmp_path / "verdict")
    ended = run("groups", tmp_path / "verdict")
    assert (ended.exit_code, ended.stdout) == (0, "")
    assert ended.stderr.startswith("0 groups; 2 messages")


def test_a_server_that_states_many_cluster_ids_has_its_groups_once(run, tmp_path):
    """Its groups are read once, not once for each cluster ID: whose they are is not known."""
    lab = Lab()
    for number in range(40):
        lab.metadata(number, [(NAME, ID_1)], cluster_id=f"cluster{number:02}aaaaaaaaaaaaa")
    commit(lab.talk(client_id="app"), 50, "readers", {0: 7})
    (tmp_path / "many.pcap").write_bytes(lab.pcap())
    (row,) = [
        json.loads(line) for line in run("groups", tmp_path / "many.pcap", "--format", "json").stdout.splitlines()
    ]
    assert (row["group"], row["cluster"]) == ("readers", "cluster00aaaaaaaaaaaaa and 39 other cluster IDs")


def test_so_many_clusters_are_kept_apart():
    """Those with the most servers; each costs as much as reading what its servers sent."""
    many = {f"c{number:03}": frozenset({"10.0.0.1:9092", f"10.0.1.{number}:9092"}) for number in range(200)}
    largest = frozenset(f"10.0.2.{number}:9092" for number in range(3))
    kept = apart(many | {"z": largest})
    assert len(kept) == MOST_APART
    assert kept["z"] == largest
    assert apart({"a": largest, "b": frozenset({"10.0.0.1:9092"})}) == {"a": largest, "b": frozenset({"10.0.0.1:9092"})}


def copies_of_a_batch(capture):
    """How often a question about groups copies the bytes of what it reads."""
    count = 0

    def seen(_frame, event, function):
        nonlocal count
        count += event == "c_call" and getattr(function, "__name__", "") == "tobytes"

    with capture_frames(Session(), [str(capture)], strict=False) as frames:
        sys.setprofile(seen)
        try:
            Groups().read(frames, ())
        finally:
            sys.setprofile(None)
    return count


@pytest.mark.parametrize("what", ["commits", "leaves"])
def test_bytes_are_copied_as_often_however_many_rows_there_are(tmp_path, what):
    """A commit of 80,000 partitions took 15 CPU s: its group was looked up for each of them, in a copy of the batch."""
    found = []
    for many in (10, 200):
        lab = Lab()
        talk = lab.talk()
        if what == "commits":
            commit(talk, 5, "readers", dict.fromkeys(range(many), 7))
        else:
            left = [{"memberId": f"m{number}", "reason": "it ends"} for number in range(many)]
            talk.ask(5, "LeaveGroup", 5, {"groupId": "readers", "members": left}, {})
        (tmp_path / f"{many}.pcap").write_bytes(lab.pcap())
        found.append(copies_of_a_batch(tmp_path / f"{many}.pcap"))
    assert found[0] == found[1]
