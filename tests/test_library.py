"""wirecheck as a library: messages and verdicts as typed values, equal to what the commands print."""

import datetime as dt
import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import wirecheck
from tests import traffic
from tests.build import plain
from wirecheck import door

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples/zk39-inconsistent-id/capture.pcap.gz"


@pytest.fixture(scope="module")
def verdict():
    return wirecheck.replay(EXAMPLE)


def printed(*arguments):
    return CliRunner().invoke(door.main, [*map(str, arguments), "--format", "json"]).stdout


def test_importing_it_loads_nothing():
    asked = (
        "import sys, wirecheck; heavy = {'numpy', 'pyarrow', 'click'}\n"
        "print(sorted(heavy & sys.modules.keys()), wirecheck.__version__)"
    )
    told = subprocess.run([sys.executable, "-c", asked], cwd=ROOT, capture_output=True, text=True, check=True)
    assert told.stdout == f"[] {wirecheck.__version__}\n"


def test_what_it_offers_is_there_and_nothing_else():
    assert all(getattr(wirecheck, name) is not None for name in wirecheck.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'judge_all'"):
        wirecheck.judge_all  # noqa: B018 - asking is the test


def test_messages_are_those_of_decode_and_come_one_by_one():
    lines = [json.loads(line) for line in printed("decode", EXAMPLE, "--api", "LeaderAndIsr").splitlines()]
    found = list(wirecheck.messages(EXAMPLE, api="LeaderAndIsr"))
    assert len(found) == len(lines) == 78
    for message, line in zip(found, lines, strict=True):
        assert message.time == dt.datetime.fromisoformat(line["time"])
        assert (message.src, message.dst, message.side, message.api) == tuple(
            line[n] for n in ("src", "dst", "side", "api")
        )
        assert (message.body, message.frame.first, message.size) == (line["body"], line["frame"]["first"], line["size"])
    first = next(wirecheck.messages(EXAMPLE))
    assert (first.api, first.side, first.latency_ms) == ("UpdateMetadata", "request", None)


def test_messages_are_picked_and_say_topics_errors_and_latency():
    refused = [message for message in wirecheck.messages(EXAMPLE, error=True, bodies=False) if 103 in message.errors]
    assert [message.frame.first for message in refused] == [2030, 3316]
    assert all(message.body is None and message.latency_ms > 0 for message in refused)
    (one,) = wirecheck.messages(
        EXAMPLE, since=refused[0].time, until=refused[0].time, api="LeaderAndIsr", side="response"
    )
    assert one.frame == refused[0].frame


def test_a_verdict_is_what_replay_prints(verdict):
    told = json.loads(printed("replay", EXAMPLE, "--engine", "local"))
    told.pop("engine")
    assert verdict.json == told
    assert verdict.sentence.startswith("Broker 3 refuses LeaderAndIsr for shipments")
    assert not verdict


def test_findings_topics_and_clients_are_values_and_tables(verdict):
    (finding,) = verdict.findings
    assert (finding.code, finding.topic, finding.brokers) == ("TID002", "shipments", (3,))
    assert [side.frame.first for side in finding.sides] == [1924, 2030, 3288, 3316]
    assert [topic.name for topic in verdict.topics] == ["__consumer_offsets", "pallets", "parcels", "shipments"]
    assert verdict.clients[0].apis["ApiVersions"] == (4,)
    for values, column in ((verdict.findings, "code"), (verdict.topics, "name"), (verdict.clients, "client_id")):
        table, frame = values.to_arrow(), values.to_pandas()
        assert table[column].to_pylist() == list(frame[column]) == [getattr(value, column) for value in values]


def test_a_healthy_capture_is_true(tmp_path):
    capture = tmp_path / "a.pcap"
    asked = plain("Metadata", "request", 12, {"topics": []}, {"correlationId": 1, "clientId": "a"})
    answered = plain("Metadata", "response", 12, {}, {"correlationId": 1})
    capture.write_bytes(
        traffic.pcap(traffic.packets(traffic.Talk().open().request(asked).response(answered).close().segments))
    )
    assert wirecheck.replay(capture, ports=[9092])


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda path: wirecheck.replay(path / "missing.pcap"), "missing.pcap: no such file"),
        (lambda path: list(wirecheck.messages(path / "missing.pcap")), "missing.pcap: no such file"),
        (lambda _: wirecheck.replay(), "name a capture"),
        (lambda _: wirecheck.messages(EXAMPLE, api="Fetsch"), "did you mean Fetch"),
        (wirecheck.replay, "holds no frames"),
    ],
)
def test_what_cannot_be_read_is_one_kind_of_error(tmp_path, wrong, said):
    with pytest.raises(wirecheck.InputError, match=said):
        wrong(tmp_path)


def test_what_could_not_be_read_of_a_file_is_a_warning(tmp_path):
    whole = traffic.pcap(traffic.packets(traffic.Talk().open().close().segments))
    (tmp_path / "cut.pcap").write_bytes(whole[:-5])
    with pytest.warns(UserWarning, match="truncated packet"):
        assert list(wirecheck.messages(tmp_path / "cut.pcap")) == []


def test_the_notebook_runs(monkeypatch):
    """Its cells, one after the other, as a kernel would."""
    monkeypatch.chdir(ROOT / "examples")
    cells = json.loads((ROOT / "examples/first-look.ipynb").read_text())["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert len(code) >= 4
    names = {}
    for cell in code:
        exec(compile(cell, "first-look.ipynb", "exec"), names)
    assert names["refused"], "the fault is found by hand, too"
    assert names["verdict"].findings[0].code == "TID002"
