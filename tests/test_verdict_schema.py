"""The JSON of a replay is what docs/verdict.schema.json says, and the schema is no sieve."""

import copy
import json
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner

from wirecheck import cli
from wirecheck.session.verdict_document import SCHEMA_VERSION

ROOT = Path(__file__).resolve().parent.parent
SCHEMA = json.loads((ROOT / "docs/verdict.schema.json").read_text())
CAPTURES = sorted(path for path in (ROOT / "examples").rglob("*.pcap*"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def verdict_of(capture):
    return json.loads(
        CliRunner().invoke(cli.main, ["replay", str(capture), "--engine", "local", "--format", "json"]).stdout
    )


@pytest.fixture(scope="module")
def verdict():
    return verdict_of(ROOT / "examples/zk39-inconsistent-id/capture.pcap.gz")


@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: path.parent.name)
def test_a_verdict_is_as_the_schema_says(capture):
    VALIDATOR.check_schema(SCHEMA)
    found = verdict_of(capture)
    assert [error.message for error in VALIDATOR.iter_errors(found)] == []
    assert found["findings"]
    assert found["schema_version"] == SCHEMA_VERSION
    assert found["captured"]["from"] < min(side["time"] for one in found["findings"] for side in one["sides"])


@pytest.mark.parametrize(
    "spoil",
    [
        lambda it: it.pop("coverage"),
        lambda it: it.update(schema_version=2),
        lambda it: it["findings"][0].pop("commands"),
        lambda it: it["findings"][0].update(kind="bad"),
        lambda it: it["findings"][0]["sides"][0].update(frame="7"),
        lambda it: it["topics"][0].update(state="gone"),
        lambda it: it["captured"].pop("to"),
        lambda it: it["entries"][0].pop("card"),
        lambda it: it["entries"][0]["card"]["harm"].pop("clients"),
    ],
)
def test_what_is_not_so_is_refused(verdict, spoil):
    spoilt = copy.deepcopy(verdict)
    spoil(spoilt)
    assert list(VALIDATOR.iter_errors(spoilt)) != []


def test_a_verdict_says_who_judged_what_and_what_to_do_next(verdict):
    capture = str(ROOT / "examples/zk39-inconsistent-id/capture.pcap.gz")
    assert verdict["inputs"] == [capture]
    assert verdict["grace_s"] == {"brokers": 30, "clients": 300}
    assert verdict["captured"]["from"].startswith("2026-11-21T00:19:46")
    assert verdict["captured"]["to"].startswith("2026-11-21T00:20:27")
    (finding,) = verdict["findings"]
    assert finding["next"].startswith("On that broker, compare topic_id")
    by_frames, by_id = finding["commands"][1:3]
    assert finding["commands"] == [
        f"wirecheck decode {capture} --frame 1924 --frame 2030 --frame 3288 --frame 3316",
        by_frames,
        by_id,
        f"wirecheck evidence {finding['id']} {capture} -o {finding['id']}.pcapng",
        "wirecheck explain TID002",
    ]
    assert by_frames.startswith(
        f"tshark -r {capture} -d tcp.port==19093,kafka -Y 'frame.number in {{1924,2030,3288,3316}}'"
    )
    assert "kafka.topic_id" in by_id
