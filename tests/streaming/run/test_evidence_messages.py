"""The messages behind findings: the right exchange, both sides of it, cut to what the finding is about."""

from pathlib import Path

import pytest

from wirecheck.capture.agent.offline_agent import write_frames
from wirecheck.streaming.run import evidence_messages
from wirecheck.streaming.run.local_replay import LocalReplay
from wirecheck.streaming.steps.settings import Settings

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    folder = tmp_path_factory.mktemp("frames")
    files = write_frames([EXAMPLES / "kraft4-stale-broker/capture.pcap.gz"], folder, "default").files
    run = LocalReplay(Settings())
    run.judge(files)
    return files, run.result().findings()


def test_every_side_has_its_request_and_its_response_also_inside_an_envelope(judged):
    files, findings = judged
    found = evidence_messages.evidence_messages(files, findings)
    assert found.keys() == {finding.id for finding in findings}
    for finding in findings:
        for exchange in found[finding.id]:
            assert exchange["request"], exchange
            assert exchange["response"], exchange
    (recreated,) = [finding for finding in findings if finding.code == "TID001"]
    text = "\n".join("\n".join(exchange["response"]) for exchange in found[recreated.id])
    for topic_id in recreated.topic_ids:
        assert f"topicId: {topic_id}" in text


def test_it_is_bounded(judged, monkeypatch):
    files, findings = judged
    for name, most in (("FINDINGS", 2), ("EXCHANGES", 1), ("LINES", 3)):
        monkeypatch.setattr(evidence_messages, name, most)
    found = evidence_messages.evidence_messages(files, findings)
    assert [len(exchanges) for exchanges in found.values()] == [1, 1]
    sides = [
        exchange[side] for exchanges in found.values() for exchange in exchanges for side in ("request", "response")
    ]
    assert max(map(len, sides)) == 4
    assert any(lines[-1].endswith("lines more") for lines in sides)


def test_nothing_to_show_reads_nothing():
    assert evidence_messages.evidence_messages([Path("no-such-file")], []) == {}


def test_of_a_long_list_what_the_finding_is_about_is_shown_and_the_rest_counted():
    topics = [{"name": f"topic-{n}", "partitions": [{"index": p} for p in range(9)]} for n in range(50)]
    cut = evidence_messages.excerpt({"topics": topics, "ids": [1, 2, 3, 4]}, frozenset({"topic-17"}))
    assert [topic.get("name") for topic in cut["topics"]] == ["topic-17", None]
    assert cut["topics"][1] == {"(not shown)": "49 more"}
    assert cut["topics"][0]["partitions"] == [{"index": 0}, {"index": 1}, {"index": 2}, {"(not shown)": "6 more"}]
    assert cut["ids"] == [1, 2, 3, 4]
