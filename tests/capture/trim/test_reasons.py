"""Why a member leaves its group: kept in the words of Kafka's own clients alone."""

import pytest

from tests.judge.lab import Lab
from wirecheck.capture import frames_file
from wirecheck.capture.agent.offline_agent import write_frames
from wirecheck.decode.group_protocol import REASONS


def written(reasons, tmp_path):
    lab = Lab()
    lab.metadata(0)
    talk = lab.talk(client_id="app")
    members = [{"memberId": f"m-{number}", "reason": reason} for number, reason in enumerate(reasons)]
    talk.ask(5, "LeaveGroup", 5, {"groupId": "g", "members": members}, {"errorCode": 0, "members": []})
    (tmp_path / "one.pcap").write_bytes(lab.pcap())
    files = write_frames([tmp_path / "one.pcap"], tmp_path / "frames", "c").files
    return b"".join(part for file in files for part in frames_file.read(file)["payload"].to_pylist() if part)


@pytest.mark.parametrize("reason", sorted(REASONS))
def test_the_reasons_of_kafkas_clients_are_kept(reason, tmp_path):
    kept = written([reason], tmp_path)
    assert reason.encode() in kept
    assert b"m-0" in kept


@pytest.mark.parametrize(
    "reason", ["hunter2", "consumer poll timeout has expired. hunter2", "the consumer is being closed "]
)
def test_all_others_are_not(reason, tmp_path):
    kept = written([reason, "the consumer is being closed"], tmp_path)
    assert b"hunter2" not in kept
    assert kept.count(b"the consumer is being closed") == 1
    assert b"consumer poll timeout" not in kept
    assert b"m-1" in kept
