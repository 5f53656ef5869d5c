"""Wrong inputs: one line that says what and where, status 2, and no work before it."""

import gzip
import io
import struct
import tarfile

import pytest

from tests.commands.conftest import ROOT

EXAMPLE = ROOT / "examples/zk39-inconsistent-id/capture.pcap.gz"


@pytest.fixture
def archive(tmp_path):
    """A tar archive with a log, and no capture."""
    with tarfile.open(tmp_path / "logs.tar.gz", "w:gz") as tar:
        member = tarfile.TarInfo("server.log")
        member.size = 5
        tar.addfile(member, io.BytesIO(b"hello"))
    return tmp_path / "logs.tar.gz"


def one_line(ended):
    assert ended.exit_code == 2
    (line,) = ended.stderr.splitlines()
    return line.removeprefix("wirecheck: ")


@pytest.mark.parametrize("command", ["replay", "decode"])
@pytest.mark.parametrize(
    ("since", "until"), [("2026-11-21T00:00:00Z", "2020-01-01"), ("01:00", "00:30"), ("00:00:00.2", "00:00:00.1")]
)
def test_an_end_before_the_beginning_is_an_error(run, command, since, until):
    assert one_line(run(command, EXAMPLE, "--since", since, "--until", until)).startswith("--until is before --since")


def test_a_day_and_a_time_of_day_are_compared_once_the_day_is_known(run):
    ended = run("replay", EXAMPLE, "--since", "00:20", "--until", "2020-01-01")
    assert "--until is before --since" in ended.stderr
    assert ended.exit_code == 2


def test_a_frame_beyond_the_end_is_an_error(run):
    line = one_line(run("decode", EXAMPLE, "--frame", "99999999"))
    assert line.startswith("--frame 99999999: the last packet with TCP in ")


@pytest.mark.parametrize("command", ["replay", "decode", "errors", "topics", "clients"])
def test_what_is_elsewhere_has_to_be_fetched(run, command):
    line = one_line(run(command, "https://example.org/a.pcap"))
    assert line == "https://example.org/a.pcap: a URL: download it and name the file"


def test_an_archive_without_captures_and_a_folder_without_anything(run, archive, tmp_path):
    assert one_line(run("replay", archive)) == f"{archive}: the archive holds no capture"
    (tmp_path / "empty").mkdir()
    line = one_line(run("replay", tmp_path / "empty"))
    assert line == f"{tmp_path / 'empty'}: holds no capture and no frames (AGENT-NNNNNNNNNN.parquet)"


def test_evidence_names_its_place_before_anything_is_read(run, monkeypatch):
    monkeypatch.setattr("wirecheck.commands.evidence.checked_with_frames", None)  # would be a TypeError
    line = one_line(run("evidence", "TID002", EXAMPLE, "-o", "/nonexistent/x.pcapng"))
    assert line == "/nonexistent/x.pcapng: No such file or directory; choose another -o"


@pytest.mark.parametrize(("least", "status"), [(0, 1), (100, 1)])
def test_a_capture_that_was_seen_whole_passes_the_gate(run, least, status):
    assert run("replay", EXAMPLE, "--min-seen", str(least)).exit_code == status


def test_a_capture_of_which_half_is_missing_does_not(run, cut_capture):
    assert run("replay", cut_capture, "--min-seen", "1").exit_code in {0, 1}
    ended = run("replay", cut_capture, "--min-seen", "90")
    assert ended.exit_code == 2
    assert ended.stderr.splitlines()[-1].endswith("% was seen, which is less than 90 % (--min-seen)")


@pytest.fixture
def cut_capture(tmp_path):
    """The example, as a snap length of 96 bytes leaves it."""
    data = gzip.decompress(EXAMPLE.read_bytes())
    order = "<" if data[:4] in {b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1"} else ">"
    out, at = bytearray(data[:24]), 24
    while at < len(data):
        seconds, fraction, kept, size = struct.unpack_from(f"{order}4I", data, at)
        out += (
            struct.pack(f"{order}4I", seconds, fraction, min(kept, 96), size) + data[at + 16 : at + 16 + min(kept, 96)]
        )
        at += 16 + kept
    (tmp_path / "cut.pcap").write_bytes(out)
    return tmp_path / "cut.pcap"
