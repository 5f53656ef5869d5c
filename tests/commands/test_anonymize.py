"""`wirecheck anonymize` as a user types it: what it says, what it refuses, and the key file."""

import gzip
import json
import re
import stat

import pytest
from click.testing import CliRunner

from tests.scenarios.engines import Scenario
from wirecheck.cli import main

CAPTURE = "kraft4-groups-recreate"


def run(*arguments):
    return CliRunner().invoke(main, ["anonymize", *map(str, arguments)])


@pytest.fixture
def capture():
    return Scenario(CAPTURE).pcap


def test_the_copy_has_all_frames_and_is_for_its_user_alone(capture, tmp_path):
    target = tmp_path / "shared.pcapng"
    result = run(capture, "-o", target)
    assert (0, f"{target}: 3,624 frames under other names\n") == (result.exit_code, result.stderr)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert [target] == list(tmp_path.iterdir())
    assert b"iEn4ipplSQa8Dqx8Q4P36A" not in target.read_bytes()
    assert b"__consumer_offsets" in target.read_bytes()


def test_the_key_file_maps_back_and_gives_a_second_capture_the_same_names(capture, tmp_path):
    key = tmp_path / "names.json"
    written = []
    for name in ("one.pcapng", "two.pcapng"):
        assert run(capture, "-o", tmp_path / name, "--key-file", key).exit_code == 0
        written.append((tmp_path / name).read_bytes())
    assert written[0] == written[1]
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    back = json.loads(key.read_text())["back"]
    assert {"q1", "q2", "lab-admin", "iEn4ipplSQa8Dqx8Q4P36A"} <= set(back.values())
    assert all(new.encode() in written[0] for new, old in back.items() if old == "lab-admin")
    assert run(capture, "-o", tmp_path / "three.pcapng").exit_code == 0
    assert (tmp_path / "three.pcapng").read_bytes() != written[0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"no capture", "no capture"),
        (
            gzip.compress(b"\xd4\xc3\xb2\xa1\2\0\4\0" + bytes(8) + b"\xff\xff\0\0\1\0\0\0", mtime=0),
            "no TCP segments of Kafka connections",
        ),
    ],
)
def test_what_holds_no_kafka_is_refused_in_one_line(content, message, tmp_path):
    source, target = tmp_path / "in.pcap", tmp_path / "out.pcapng"
    source.write_bytes(content)
    result = run(source, "-o", target)
    assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1)
    assert message in result.stderr or re.search("not a|unknown", result.stderr)
    assert not target.exists()


def test_what_cannot_be_used_is_refused_before_anything_is_written(capture, tmp_path):
    bad = tmp_path / "bad.json"
    bad.write_text("{}")
    target, folder = tmp_path / "out.pcapng", tmp_path / "frames"
    folder.mkdir()
    (folder / "a-0000000001.parquet").write_bytes(b"")
    for arguments, message in (
        ((capture, "-o", capture), "is read by this command; choose another -o"),
        ((capture, "-o", target, "--key-file", bad), "not a key file of wirecheck anonymize"),
        ((capture, "-o", target, "--key-file", capture), "is read by this command; choose another --key-file"),
        ((folder, "-o", target), "holds frames; anonymize reads captures"),
        ((tmp_path / "none.pcap", "-o", target), "no such file"),
        ((Scenario("zk28-sasl-tls").pcap, "-o", target), "7 TLS connections cannot be decrypted"),
    ):
        result = run(*arguments)
        assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1), result.stderr
        assert message in result.stderr
        assert not target.exists()


@pytest.mark.parametrize("name", ["zk28-tls13-sasl-recreate", "zk39-tls12-mutual-inconsistent-id"])
def test_a_capture_with_keys_is_decrypted(name, tmp_path):
    target = tmp_path / "out.pcapng"
    assert run(Scenario(name).pcap, "-o", target).exit_code == 0
    found = [
        json.loads(CliRunner().invoke(main, ["replay", str(path), "--format", "json"]).stdout)
        for path in (Scenario(name).pcap, target)
    ]
    codes = [sorted(each["code"] for each in document["findings"]) for document in found]
    assert codes[0] == codes[1]
    assert found[0]["coverage"]["decoded_messages"] == found[1]["coverage"]["decoded_messages"]
