"""An agent's folder when room is short, time passes, and neighbours have similar names."""

import os

import pytest

from wirecheck.capture import frames
from wirecheck.capture.agent.spool import Spool
from wirecheck.capture.agent.spool_folder import Folder, Limits

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


def test_a_file_that_could_not_appear_leaves_nothing_that_hinders_the_next(tmp_path, monkeypatch):
    def broken(_):
        raise OSError(28, "No space left on device")

    spool = Spool(tmp_path, STAMP, roll_bytes=1)
    with monkeypatch.context() as patched:
        patched.setattr("wirecheck.capture.agent.spool_folder.sync", broken)
        with pytest.raises(OSError, match="No space"):
            spool.append(mark())
        spool.discard()
    assert list(tmp_path.glob(".*.tmp")) == []
    spool.append(mark())
    spool.close()
    assert names(tmp_path) == ["agent-0000000001.parquet"]


def test_a_link_in_the_place_of_the_lock_is_not_followed(tmp_path):
    (tmp_path / "victim").write_bytes(b"as it was")
    (tmp_path / "frames").mkdir()
    (tmp_path / "frames" / ".a.lock").symlink_to(tmp_path / "victim")
    with pytest.raises(OSError, match="symbolic links"):
        Folder(tmp_path / "frames", "a")
    assert (tmp_path / "victim").read_bytes() == b"as it was"
