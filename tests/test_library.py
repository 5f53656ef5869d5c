"""wirecheck as a library: messages and verdicts as typed values, equal to what the commands print."""

import ast
import dataclasses
import datetime as dt
import inspect
import itertools
import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

import wirecheck
from tests import traffic
from tests.build import plain
from tests.depth import some
from tools import run_notebook
from wirecheck import cli
from wirecheck.decode.schemas import errors
from wirecheck.document import document
from wirecheck.library_values import Values

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples/zk39-inconsistent-id/capture.pcap.gz"


@pytest.fixture(scope="module")
def verdict():
    return wirecheck.replay(EXAMPLE)


def printed(*arguments):
    return CliRunner().invoke(cli.main, [*map(str, arguments), "--format", "json"]).stdout


def test_importing_it_loads_nothing():
    asked = (
        "import sys, wirecheck; heavy = {'numpy', 'pyarrow', 'click'}\n"
        "print(sorted(heavy & sys.modules.keys()), wirecheck.__version__)"
    )
    result = subprocess.run([sys.executable, "-c", asked], cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stdout == f"[] {wirecheck.__version__}\n"


def test_what_it_offers_is_there_and_nothing_else():
    assert all(getattr(wirecheck, name) is not None for name in wirecheck.__all__)
    assert dir(wirecheck) == sorted(wirecheck.__all__)
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
    first = next(iter(wirecheck.messages(EXAMPLE)))
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
    expected = json.loads(printed("replay", EXAMPLE, "--engine", "local"))
    assert verdict.json == expected
    assert verdict.sentence == "Broker 3 did not replicate shipments partition 1: one replica short"
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
        (lambda path: wirecheck.messages(path / "missing.pcap"), "missing.pcap: no such file"),
        (wirecheck.messages, "holds no capture and no frames"),
        (lambda _: wirecheck.messages(), "name a capture"),
        (lambda _: wirecheck.messages(ROOT / "README.md"), "not a pcap"),
        (lambda _: wirecheck.messages(EXAMPLE, since="noon"), "is not a time"),
        (lambda _: wirecheck.messages(EXAMPLE, dialect="klingon"), "no such dialect"),
        (lambda _: wirecheck.messages(EXAMPLE, keylog="nothing.keys"), "nothing.keys"),
        (lambda _: wirecheck.replay(EXAMPLE, keylog="nothing.keys"), "nothing.keys"),
        (lambda _: wirecheck.clients(EXAMPLE, target="4"), "unknown release 4; known releases"),
        (lambda _: wirecheck.topics(EXAMPLE, at="noon"), "is not a time"),
        (lambda _: wirecheck.replay(), "name a capture"),
        (lambda _: wirecheck.messages(EXAMPLE, api="Fetsch"), "did you mean Fetch"),
        (wirecheck.replay, "holds no capture and no frames"),
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


@pytest.mark.parametrize(
    "kind", ["Change", "Client", "Finding", "Frame", "Message", "Side", "Topic", "TopicDescription"]
)
def test_every_field_has_a_sentence(kind):
    """A string behind each field, as editors and `make site` show it."""
    value = getattr(wirecheck, kind)
    (body,) = ast.parse(inspect.getsource(value)).body
    documented = {
        field.target.id
        for field, text in itertools.pairwise(body.body)
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
    }
    assert documented == {field.name for field in dataclasses.fields(value)}


def as_row(message):
    """A message as the table has it."""
    row = {field.name: getattr(message, field.name) for field in dataclasses.fields(message)}
    del row["body"]
    frame = row.pop("frame")
    places = {"source": frame.source, "frame_first": frame.first, "frame_last": frame.last}
    return row | places | {"topics": list(message.topics), "errors": [error.name for error in message.errors]}


@pytest.mark.parametrize(
    "options",
    some(
        [
            {},
            {"api": ["Fetch", "envelope"]},
            {"error": True},
            {"topic": "shipments"},
            {"client": "3*"},
            {"side": "response", "since": "00:20:05", "until": "00:20:10"},
            {"connection": "127.0.1.3"},
        ],
        each=2,
    ),
)
def test_the_table_has_the_same_messages_as_the_objects(options):
    """In order of time; where one becomes known late, the two may place it differently."""
    messages = wirecheck.messages(EXAMPLE, **options)
    rows, again = messages.to_arrow().to_pylist(), messages.to_arrow().to_pylist()
    objects = [as_row(message) for message in wirecheck.messages(EXAMPLE, bodies=False, **options)]
    assert sorted(rows, key=repr) == sorted(objects, key=repr)
    assert rows == again != []


@pytest.mark.parametrize("name", some(["zk28-lossy-network", "kraft-clients-zoo", "kraft4-healthy"], each=2))
def test_the_table_of_messages_forwarded_lost_and_of_many_clients_is_the_same_too(name):
    """With Envelopes, gaps, and what cannot be decoded."""
    for path in (ROOT / "tests/scenarios/captures" / name).glob("capture.pcap*"):
        rows = wirecheck.messages(path).to_arrow().to_pylist()
        assert rows == [as_row(message) for message in wirecheck.messages(path, bodies=False)]


def test_a_table_is_an_arrow_stream(verdict):
    for table in (wirecheck.messages(EXAMPLE, api="LeaderAndIsr"), verdict.findings, verdict.topics):
        stream = pa.RecordBatchReader.from_stream(table)
        assert stream.read_all().num_rows == len(list(table))


def test_errors_have_names():
    assert {error.name: error.value for error in wirecheck.KafkaError} == {
        kind.name: code for code, kind in errors().items()
    }
    assert (wirecheck.KafkaError(31000).name, wirecheck.KafkaError(31000) == 31000) == ("ERROR_31000", True)
    with pytest.raises(ValueError, match="70000"):
        wirecheck.KafkaError(70000)


def test_topics_at_a_time_and_clients_for_a_release():
    before = wirecheck.topics(EXAMPLE, at="2026-11-21T00:19:58Z")
    after = wirecheck.topics(EXAMPLE)
    assert {topic.name for topic in before} < {topic.name for topic in after}
    assert all(topic.partitions for topic in after if topic.name == "shipments")
    assert after.to_arrow().num_rows == len(after)
    assert wirecheck.clients(EXAMPLE, target="4.0").filter(between_brokers=False)[0].rejected_by_target == ()


def test_cards_are_those_of_the_entries(verdict):
    entries = verdict.json["entries"]
    assert [card.headline for card in verdict.cards] == [entry["card"]["headline"] for entry in entries] != []
    assert [document(card.harm) for card in verdict.cards] == [entry["card"]["harm"] for entry in entries]
    assert verdict.cards.to_arrow()["code"].to_pylist() == [entry["code"] for entry in entries]


def test_errors_changes_and_facts_are_the_rows_of_their_commands_and_tables():
    for name in ("errors", "changes"):
        rows = [json.loads(line) for line in printed(name, EXAMPLE).splitlines()]
        table = getattr(wirecheck, name)(EXAMPLE).to_arrow()
        assert table.num_rows == len(rows) > 0
        for column in ("client_id", "host", "error"):
            assert table[column].to_pylist() == [row[column] for row in rows]
    sections = wirecheck.why("shipments", EXAMPLE)
    stated = json.loads(printed("why", "shipments", EXAMPLE))["sections"]
    assert [facts.to_arrow()["what"].to_pylist() for facts in sections.values()] == [
        [fact["what"] for fact in facts] for facts in stated.values()
    ]
    assert not wirecheck.diff(EXAMPLE, EXAMPLE)


def test_findings_are_filtered(verdict):
    assert [one.code for one in verdict.findings.filter(kind="violation", brokers=3)] == ["TID002"]
    assert len(verdict.findings.filter(topic="orders")) == 0
    assert verdict.findings.filter(code="TID002").to_arrow()["code"].to_pylist() == ["TID002"]
    (finding,) = verdict.findings
    assert finding.next
    assert any(command.startswith("wirecheck evidence") for command in finding.commands)


def test_a_notebook_shows_tables_and_what_came_from_the_wire_is_text(verdict, tmp_path):
    assert "TID002" in verdict._repr_html_()
    assert verdict.topics._repr_html_().count("<tr>") == 1 + len(verdict.topics)
    capture = tmp_path / "a.pcap"
    asked = plain("Metadata", "request", 12, {"topics": []}, {"correlationId": 1, "clientId": "<b>a\x1b[2J</b>"})
    answered = plain("Metadata", "response", 12, {}, {"correlationId": 1})
    capture.write_bytes(
        traffic.pcap(traffic.packets(traffic.Talk().open().request(asked).response(answered).close().segments))
    )
    shown = wirecheck.messages(capture)._repr_html_()
    assert "&lt;b&gt;a\\x1b[2J&lt;/b&gt;" in shown
    assert "<b>" not in shown


def test_the_notebook_is_committed_with_what_its_cells_print():
    """Run cell by cell, as a kernel would; `make docs` writes the outputs."""
    path = ROOT / "examples/first-look.ipynb"
    committed = json.loads(path.read_text())
    assert committed == run_notebook.run(path)
    shown = [output["output_type"] for cell in committed["cells"] for output in cell.get("outputs", ())]
    assert (shown.count("stream"), shown.count("execute_result")) == (2, 4)
    assert "TID002" in json.dumps(committed)


def test_a_notebook_shows_no_row_of_an_empty_table():
    assert "<tr></tr><tr>" not in Values([], "cards", lambda: pa.Table.from_pylist([]))._repr_html_()
