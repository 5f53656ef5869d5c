"""`wirecheck evidence`: by id or code, from pcaps, frames and tables; never a file that does not prove it."""

import json
import re

import pytest

from tests.commands.conftest import ROOT
from tests.depth import some
from wirecheck.capture.evidence import minimal_subset
from wirecheck.cli import main

TID002 = "yuqnnqvukzik2vec"
OTHER = ROOT / "tests/scenarios/captures/kraft4-wrong-cluster/capture.pcap.gz"


@pytest.fixture(scope="module")
def written(frames_folder, tmp_path_factory):
    """What is written from frames, whose records were left out."""
    from click.testing import CliRunner

    path = tmp_path_factory.mktemp("evidence") / "tid002.pcapng"
    result = CliRunner().invoke(main, ["evidence", "tid002", str(frames_folder), "-o", str(path)])
    assert (result.exit_code, result.stdout) == (0, ""), result.stderr
    assert result.stderr.startswith(f"TID002 {TID002}: ")
    return path


def test_its_section_says_what_it_is_and_its_packets_say_why(written):
    data = written.read_bytes()
    assert (
        f"finding {TID002} of cluster aqj98zPCSGyEHO5efX6mPg; wirecheck replay finds it in this file".encode() in data
    )
    assert b"answers INCONSISTENT_TOPIC_ID (103) for partition 1" in data
    assert len(data) < 100_000  # the example has 1.2 MB


def test_decode_reads_both_sides_from_their_handshake_on(written, run):
    lines = run("decode", written, "--api", "LeaderAndIsr", "--format", "json").stdout.splitlines()
    answers = [json.loads(line) for line in lines]
    assert any('"errorCode": 103' in line for line in lines)
    assert {"request", "response"} == {answer["side"] for answer in answers}


def test_from_tables_the_pcaps_are_those_it_names(run, verdict, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    result = run("evidence", TID002[:6], "--from", verdict, "-o", tmp_path / "x.pcapng")
    assert result.exit_code == 0, result.stderr
    assert (tmp_path / "x.pcapng").is_file()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nothing", "--from", "{verdict}"], f"no finding nothing; known findings: {TID002} (TID002)"),
        (
            [TID002, "{other}", "--from", "{verdict}"],
            "a replay of these frames does not give this finding, so nothing is written",
        ),
        ([TID002, "missing.pcap"], "missing.pcap: no such file"),
        ([TID002, "--from", "{frames}"], "holds no tables of a replay or a monitor"),
        ([TID002, "{verdict}"], "holds result tables: use --from"),
        ([TID002], "name the input"),
    ],
)
def test_what_cannot_be_proven_is_said_and_not_written(run, verdict, frames_folder, tmp_path, arguments, said):
    named = [part.format(verdict=verdict, other=OTHER, frames=frames_folder) for part in arguments]
    result = run("evidence", *named, "-o", tmp_path / "x.pcapng")
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_lies_proves_nothing_and_is_no_obstacle(run, verdict, lying_folder, tmp_path):
    result = run("evidence", TID002, lying_folder, "--from", verdict, "-o", tmp_path / "x.pcapng")
    assert result.exit_code == 0, result.stderr
    assert result.stderr.startswith(f"TID002 {TID002}: ")


def test_pcaps_that_are_gone_are_asked_for(run, verdict, tmp_path, monkeypatch):
    monkeypatch.setattr("wirecheck.commands.evidence.there", lambda _: False)
    result = run("evidence", TID002, "--from", verdict, "-o", tmp_path / "x.pcapng")
    assert (result.exit_code, "name the pcaps or the folder of frames" in result.stderr) == (2, True)


def test_no_principals_omits_them_from_packets_lines_and_findings(run, tmp_path):
    """By every command that shows who changed a topic; zeros stand in their place, which name nobody."""
    recreated = ROOT / "tests/scenarios/captures/kraft4-groups-recreate/capture.pcap.gz"
    found, whole, bare = tmp_path / "out", tmp_path / "whole.pcapng", tmp_path / "bare.pcapng"
    run("replay", recreated, "--out", found)
    finding = next(
        row["id"]
        for row in map(json.loads, run("findings", found, "--format", "json").stdout.splitlines())
        if row["code"] == "TID001" and row["topic"] == "q2"
    )
    shown = {}
    for option in ((), ("--no-principals",)):
        path = bare if option else whole
        assert run("evidence", finding, recreated, "-o", path, *option).exit_code == 0
        listed = run("findings", found, finding, "--format", "json", *option).stdout
        decoded = [
            run("decode", whole, "--api", "Envelope", *form, *option).stdout for form in (["-V"], ["--format", "json"])
        ]
        shown[option] = [path.read_bytes().decode("latin-1"), listed, *decoded]
    assert all("ANONYMOUS" in text for text in shown[()])
    assert not any("ANONYMOUS" in text for text in shown["--no-principals",])
    listed, *decoded = shown["--no-principals",][1:]
    assert "created_by_client_id" in listed
    assert "_by_host" not in listed
    assert all("client_host" not in text and "forwarded for" not in text for text in decoded)
    lines = run("decode", bare, "--api", "Envelope", "--format", "json").stdout.splitlines()
    assert all({"principal", "client_host"}.isdisjoint(json.loads(line)["enveloped"]) for line in lines)
    assert lines


@pytest.mark.parametrize("other", ["--with-keys", "--keep-records"])
def test_what_would_show_principals_does_not_go_with_omitting_them(other, run, tmp_path):
    result = run("evidence", "TID002", ROOT / "examples", "-o", tmp_path / "e.pcapng", "--no-principals", other)
    assert (result.exit_code, f"give --no-principals or {other}, not both" in result.stderr) == (2, True)


CAPTURES = ROOT / "tests/scenarios/captures"
REPLAYED = ("kraft4-wrong-cluster", "zk28-recreate", "zk39-stubborn-client", "zk39-zombie-controller")


@pytest.mark.parametrize("folder", some(REPLAYED, each=4))
def test_a_minimal_file_gives_the_same_finding_with_fewer_frames(folder, run, tmp_path):
    """Of each check of a capture one finding."""
    capture, path = CAPTURES / folder / "capture.pcap.gz", tmp_path / "least.pcapng"
    by_code = {one["code"]: one for one in replayed(run, capture)["findings"]}
    assert by_code
    for code, finding in by_code.items():
        result = run("evidence", finding["id"], capture, "--minimal", "-o", path)
        assert result.exit_code == 0, (code, result.stderr)
        again = {one["id"]: one for one in replayed(run, path)["findings"]}
        assert again[finding["id"]]["code"] == code
        least, whole = (int(n.replace(",", "")) for n in re.findall(r"([\d,]+) frames \(", result.stderr))
        assert least < whole


def replayed(run, path):
    return json.loads(run("replay", path, "--format", "json").stdout)


def test_a_minimal_file_says_that_bytes_are_missing(frames_folder, run, tmp_path):
    path = tmp_path / "least.pcapng"
    result = run("evidence", "TID002", frames_folder, "--minimal", "-o", path)
    assert result.exit_code == 0
    assert "a replay reports what was removed as gaps" in result.stderr
    assert b"messages that it does not need were removed: their bytes are missing" in path.read_bytes()


FEW_TRIES = 3
"""Where what is tested is not how few frames are left."""


def test_of_connections_inside_tls_a_minimal_file_keeps_all_records(run, tmp_path, monkeypatch):
    """Without one of them, those after it could not be decrypted. The keys are in the capture."""
    monkeypatch.setattr(minimal_subset, "TRIES", FEW_TRIES)
    capture, path = CAPTURES / "zk39-tls12-mutual-inconsistent-id/capture.pcap.gz", tmp_path / "least.pcapng"
    result = run("evidence", "TID002", capture, "--minimal", "--with-keys", "-o", path)
    assert (result.exit_code, "decrypted" in result.stderr) == (0, False), result.stderr
    assert "TID002" in {one["code"] for one in replayed(run, path)["findings"]}


def test_a_blind_spot_keeps_its_connections_whole(run, tmp_path, monkeypatch):
    """Removing frames would make one."""
    monkeypatch.setattr(minimal_subset, "TRIES", FEW_TRIES)
    capture, path = CAPTURES / "zk28-sasl-tls/capture.pcap.gz", tmp_path / "least.pcapng"
    found = next(one for one in replayed(run, capture)["findings"] if one["kind"] == "visibility")
    result = run("evidence", found["id"], capture, "--minimal", "-o", path)
    assert (result.exit_code, "its connections stay whole" in result.stderr) == (0, True)
    assert b"were removed" not in path.read_bytes()
