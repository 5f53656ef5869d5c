"""Folders and tar archives of captures."""

import gzip
import io
import tarfile

import pytest

from tests import traffic as t
from tests.capture.reading import frames_of
from wirecheck.capture import frames
from wirecheck.capture.source.archives import opened
from wirecheck.capture.source.captures_in import captures_of
from wirecheck.capture.source.pcap import CaptureFile, InputError

TALKS = [
    t.Talk(client=("10.1.0.1", 4000 + n), ts_ns=t.Talk().ts_ns + n * 10**10).open().close().segments for n in range(3)
]
FILES = {
    "a.pcap": t.pcap(t.packets(TALKS[0])),
    "b/trace.pcapng2": t.pcapng(t.packets(TALKS[1])),
    "c.pcap.gz": gzip.compress(t.pcap(t.packets(TALKS[2]))),
    "notes.txt": b"nothing to read",
    "logs.gz": gzip.compress(b"nothing to read either"),
    "empty": b"",
}
CAPTURES = ["a.pcap", "b/trace.pcapng2", "c.pcap.gz"]


def archive(path, mode, files=FILES):
    with tarfile.open(path, mode) as made:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            made.addfile(member, io.BytesIO(data))
    return path


@pytest.mark.parametrize(
    ("name", "mode"), [("x.tar", "w"), ("x.tar.gz", "w:gz"), ("x.tgz", "w:gz"), ("x.tar.xz", "w:xz")]
)
def test_captures_in_an_archive_are_read_as_files(name, mode, tmp_path):
    found = captures_of(archive(tmp_path / name, mode))
    assert found == [tmp_path / name / one for one in CAPTURES]
    rows = frames_of(*found)
    assert [row["ts_ns"] for row in rows] == [one.ts_ns for talk in TALKS for one in talk]
    assert [row["source"] for row in rows[::6]] == [str(tmp_path / name / one) for one in CAPTURES]


def test_captures_in_a_folder_are_those_of_the_folder_itself(tmp_path):
    (tmp_path / "b").mkdir()
    for name, data in FILES.items():
        (tmp_path / name).write_bytes(data)
    assert captures_of(tmp_path) == [tmp_path / "a.pcap", tmp_path / "c.pcap.gz"]
    assert captures_of(tmp_path / "b") == [tmp_path / "b/trace.pcapng2"]
    assert captures_of(tmp_path / "a.pcap") == []


def test_a_name_that_leads_out_of_the_archive_is_not_read(tmp_path):
    names = ["../../out.pcap", "/abs.pcap", "./dot.pcap"]
    found = captures_of(archive(tmp_path / "x.tar", "w", dict.fromkeys(names, FILES["a.pcap"])))
    assert found == [tmp_path / "x.tar/abs.pcap", tmp_path / "x.tar/dot.pcap"]
    assert len(frames_of(*found)) == 12


def test_a_damaged_or_cut_archive_gives_what_is_before_and_one_line(tmp_path):
    files = {"a.pcap": t.pcap([one for n in range(200) for one in t.packets(TALKS[0])])}
    path = archive(tmp_path / "x.tar.gz", "w:gz", files)
    (member,) = captures_of(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    file = CaptureFile(member)
    assert all(file.batches(frames.Stamp("", "")) or [1])
    assert file.error is not None
    file.close()
    path.write_bytes(b"no archive")
    with pytest.raises(InputError, match="archive that cannot be read"):
        CaptureFile(member)


def test_what_is_not_in_an_archive_is_no_such_file(tmp_path):
    path = archive(tmp_path / "x.tar", "w")
    for missing in (path / "missing.pcap", tmp_path / "y.tar/a.pcap"):
        with pytest.raises(FileNotFoundError):
            opened(missing)
