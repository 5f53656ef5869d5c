"""An agent's folder when room is short, time passes, and neighbours have similar names."""

import os

import pyarrow as pa
import pytest

from capture import frames, listen
from capture.folder import Folder, Limits
from capture.spool import Spool
from tests import traffic as t
from tests.capture.reading import rows

STAMP = frames.Stamp("prod", "agent")


def mark(ts_ns=1):
    return frames.mark_rows([frames.Mark(frames.STARTED, ts_ns)], STAMP)


def write(folder, count, limits=None):
    """`count` files of one row each."""
    spool = Spool(folder, STAMP, roll_bytes=1, limits=limits)
    for i in range(count):
        spool.append(mark(i))
    spool.close()
    return spool.files


def names(folder):
    return sorted(path.name for path in folder.glob("*.parquet"))


def test_a_neighbour_whose_name_begins_the_same_is_left_alone(tmp_path):
    (tmp_path / ".agent-b-0000000001.parquet.tmp").write_bytes(b"")
    (tmp_path / "agent-b-0000000007.parquet").write_bytes(b"")
    assert [file.name for file in write(tmp_path, 1, Limits(retain_s=0))] == ["agent-0000000001.parquet"]
    assert (tmp_path / ".agent-b-0000000001.parquet.tmp").exists()


def test_only_files_older_than_asked_go_and_numbers_go_on(tmp_path):
    old = write(tmp_path, 3)
    for file in old[:2]:
        os.utime(file, (1_700_000_000, 1_700_000_000))
    write(tmp_path, 1, Limits(retain_s=1000))
    assert names(tmp_path) == ["agent-0000000003.parquet", "agent-0000000004.parquet"]


def test_numbers_go_on_though_every_file_is_gone(tmp_path):
    for file in write(tmp_path, 3):
        file.unlink()
    write(tmp_path, 1)
    assert names(tmp_path) == ["agent-0000000004.parquet"]


def test_a_limit_refuses_the_next_file_until_there_is_room(tmp_path):
    (first,) = write(tmp_path, 1)
    spool = Spool(tmp_path, STAMP, roll_bytes=1, limits=Limits(max_bytes=first.stat().st_size))
    with pytest.raises(OSError, match="limit of 0 MB"):
        spool.append(mark())
    spool.discard()
    first.unlink()
    spool.append(mark())
    spool.close()
    assert names(tmp_path) == ["agent-0000000002.parquet"]


def test_a_discarded_file_s_number_is_used_again(tmp_path):
    folder = Folder(tmp_path, "agent")
    folder.begin()
    folder.discard()
    folder.begin()
    assert folder.publish().name == "agent-0000000001.parquet"
    folder.close()


def batch_of_frames(written):
    found = rows(written(t.pcap(t.packets(t.Talk().open().segments))))
    only = [row for row in found if row["kind"] == frames.FRAME]
    return pa.RecordBatch.from_pylist(only, frames.FRAMES).cast(frames.FRAMES_CODED)


def test_a_writer_that_finds_no_room_loses_counts_says_so_and_goes_on(tmp_path, written, monkeypatch):
    monkeypatch.setattr(listen, "_RETRY_S", 0.0)
    said = []
    batch = batch_of_frames(written)
    out = tmp_path / "out"
    others = write(out, 3)
    spool = Spool(out, STAMP, limits=Limits(max_bytes=sum(file.stat().st_size for file in others)))
    writer = listen.Writer(spool, STAMP, said.append)
    work = [batch, 5, batch, 6]  # rows and the ends of files
    for each in work:
        writer._taken += each.num_rows if not isinstance(each, int) else 0
        writer._try(each)
    for file in others:
        file.unlink()
    writer._taken += batch.num_rows
    writer._try(batch)
    writer._try(None)
    assert writer.lost == 6
    assert said == [
        "cannot write: the agent's files reached their limit of 0 MB; frames are dropped until it goes again",
        "writing again; 6 frames could not be written",
    ]
    table = pa.concat_tables(frames.read(path) for path in sorted(out.glob("*.parquet")))
    dropped = [(row["count"], row["reason"]) for row in table.to_pylist() if row["kind"] == frames.DROPPED]
    assert dropped == [(6, "could not be written")]
    assert table["kind"].to_pylist().count(frames.FRAME) == 3


def test_a_writer_that_never_finds_room_ends_all_the_same(tmp_path, written):
    said = []
    spool = Spool(tmp_path / "out", STAMP, limits=Limits(max_bytes=0))
    writer = listen.Writer(spool, STAMP, said.append)
    writer.start()
    for work in (batch_of_frames(written), 5, batch_of_frames(written), 6):
        writer.put(work)
    writer.finish()
    spool.abandon()
    assert (writer.lost, len(said)) == (6, 1)
