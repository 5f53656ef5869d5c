"""Findings of real captures: for each some connections are found that give the same finding id, judged alone."""

import pytest

from tests.depth import some
from tests.scenarios.engines import NAMES, Scenario, frames
from tests.scenarios.test_two_agents import inside_tls
from wirecheck.capture.agent.offline_agent import write_frames
from wirecheck.capture.evidence import minimal_subset
from wirecheck.commands import options
from wirecheck.commands.evidence import Search
from wirecheck.session.local_check import judged_frames
from wirecheck.session.session import Session


@pytest.mark.parametrize("name", some(NAMES, each=6))
def test_the_evidence_of_every_kind_of_finding_gives_it_again(name, tmp_path, monkeypatch):
    """One finding per check; `make evidence` does all of them, and makes each as small as it can be."""
    monkeypatch.setattr(minimal_subset, "TRIES", 0)
    files = frames([Scenario(name).pcap], tmp_path / "frames")
    found = {row.code: row for row in judged_frames(Session(), files).findings()}
    for code, finding in found.items():
        written = tmp_path / f"{code}.pcapng"
        assert Search(finding, files, tmp_path, keep_records=False).proven(written) > (0, 0)
        assert written.is_file()


def test_evidence_of_a_decrypted_finding_is_the_encrypted_frames_with_their_keys(tmp_path, monkeypatch):
    """Any tool opens it with the keys inside; an agent's frames alone give plaintext, with numbers of their own."""
    path, keys = inside_tls("zk39-inconsistent-id", tmp_path)
    monkeypatch.setattr(options, "key_logs", lambda: [keys])
    files = write_frames([path], tmp_path / "frames", "default", key_logs=[keys]).files
    finding = next(row for row in judged_frames(Session(), files).findings() if row.kind == "violation")
    monkeypatch.setattr(minimal_subset, "TRIES", 0)
    for name, captures in (("encrypted", [path]), ("plain", [])):
        search = Search(finding, files, tmp_path, keep_records=False, captures=captures, with_keys=True)
        written = tmp_path / f"{name}.pcapng"
        assert search.proven(written) > (0, 0)
        again = write_frames([written], tmp_path / f"{name} again", "default").files
        assert finding.id in {row.id for row in judged_frames(Session(), again).findings()}
        data = written.read_bytes()
        assert (b"_TRAFFIC_SECRET_0" in data, b"\x17\x03\x03" in data) == (name == "encrypted",) * 2


@pytest.mark.parametrize("share", some([0.3, 0.6]))
def test_an_agent_started_again_within_decrypted_connections_finds_the_same_and_has_evidence(
    share, tmp_path, monkeypatch
):
    """Two runs of one agent over two halves of a capture, in two sets of files: never spliced, nothing false."""
    path, keys = inside_tls("zk39-inconsistent-id", tmp_path)
    whole = write_frames([path], tmp_path / "whole", "default", key_logs=[keys]).files
    halves = halved(path, share, tmp_path)
    files = [
        file
        for half in halves
        for file in write_frames([half], tmp_path / f"{half.stem} frames", "default", key_logs=[keys]).files
    ]
    expected = {(row.code, row.topic) for row in judged_frames(Session(), whole).findings()}
    result = judged_frames(Session(), files)
    found = result.findings()
    assert {(row.code, row.topic) for row in found if row.kind == "violation"} <= expected
    finding = next(row for row in found if row.kind == "violation")
    monkeypatch.setattr(minimal_subset, "TRIES", 0)
    monkeypatch.setattr(options, "key_logs", lambda: [keys])
    search = Search(finding, files, tmp_path, keep_records=False, captures=halves, with_keys=True)
    assert search.proven(tmp_path / "evidence.pcapng") > (0, 0)


def halved(path, share, folder):
    """The packets of a capture in two files, the last of a second between them missing."""
    data = path.read_bytes()
    at, packets = 24, []
    while at < len(data):
        size = 16 + int.from_bytes(data[at + 8 : at + 12], "little")
        packets.append(data[at : at + size])
        at += size
    cut = int(len(packets) * share)
    parts = folder / "first.pcap", folder / "second.pcap"
    for part, mine in zip(parts, (packets[:cut], packets[cut + 20 :]), strict=True):
        part.write_bytes(data[:24] + b"".join(mine))
    return parts


def test_evidence_has_the_keys_that_a_broker_logs_by_session(tmp_path):
    """TLS 1.2 of Java: a line names the session, not the client's random."""
    path = Scenario("zk39-tls12-mutual-inconsistent-id").pcap
    files = frames([path], tmp_path / "frames")
    finding = next(row for row in judged_frames(Session(), files).findings() if row.code == "TID002")
    search = Search(finding, files, tmp_path, keep_records=False, captures=[path], with_keys=True)
    assert search.proven(tmp_path / "e.pcapng") > (0, 0)
    data = (tmp_path / "e.pcapng").read_bytes()
    assert 0 < data.count(b"Master-Key:") < 37
    assert b"\x17\x03\x03" in data
    assert b"shipments" not in data.partition(b"RSA Session-ID:")[2]
    assert search.notes == []
