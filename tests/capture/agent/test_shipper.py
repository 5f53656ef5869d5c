"""Shipping: all of a spool, in order, once, through outages and ends; and what had to go is counted and said."""

import os
import random
import time

import pyarrow as pa
import pytest

from tests import traffic as t
from tests.capture.reading import frames_of
from wirecheck.capture import frames, frames_file
from wirecheck.capture.agent import shipper as module
from wirecheck.capture.agent.counts import SPOOL, Counts
from wirecheck.capture.agent.redaction import Redaction
from wirecheck.capture.agent.shipper import MOST_WAIT_S, Destination, Shipper, longest_wait_s
from wirecheck.capture.agent.spool import REASON, ROLL_BYTES, Spool, is_emptied
from wirecheck.capture.agent.spool_folder import Folder, Limits
from wirecheck.capture.agent.writer import Writer
from wirecheck.capture.frames import DROPPED
from wirecheck.capture.tls.key_log import Secrets

STAMP = frames.Stamp("prod", "a")
WAIT_S = 20.0


@pytest.fixture(autouse=True)
def hasty(monkeypatch):
    monkeypatch.setattr(module, "FIRST_WAIT_S", 0.001)


@pytest.fixture
def batch(written):
    return batch_of(written, b"x" * 999)


def batch_of(written, request):
    """The frames of one connection, of one source."""
    found = frames_of(written(t.pcap(t.packets(t.Talk().open().request(request).close().segments))))
    table = pa.Table.from_pylist([row | {"agent": "a", "cluster": "prod"} for row in found], frames.FRAMES)
    return table.cast(frames.FRAMES_CODED).combine_chunks().to_batches()[0]


class Away(Destination):
    """A place that cannot be reached for so many tries; of `lost_answers` files it takes all and answers nothing."""

    def __init__(self, uri, outages=0, lost_answers=0):
        super().__init__(uri)
        self.outages, self.lost_answers, self.came = outages, lost_answers, []

    def put(self, file):
        if self.outages:
            self.outages -= 1
            raise OSError("connection refused")
        sent = super().put(file)
        self.came.append((file.name, sent))
        if self.lost_answers:
            self.lost_answers -= 1
            raise OSError("timed out")
        return sent


def spooled(folder, batch, count, limits, *, whole=False):
    """A spool of so many files of one row each, or of all rows."""
    spool = Spool(folder, STAMP, limits=limits)
    for _ in range(count):
        spool.append(batch if whole else batch.slice(0, 1))
        spool.roll()
    return spool


def ship(folder, destination, count=None):
    """Everything a spool holds, by a thread of its own; what it said and counted."""
    said, counts = [], Counts()
    shipper = Shipper(folder, destination, counts, said.append)
    shipper.start()
    until_s = time.monotonic() + WAIT_S
    while folder.backlog().files and time.monotonic() < until_s and shipper.is_alive():
        time.sleep(0.01)
    shipper.finish(WAIT_S)
    assert not shipper.is_alive()
    return said, counts


def names(folder):
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


def test_all_of_a_spool_goes_in_order_and_leaves_it(tmp_path, batch):
    spool = spooled(tmp_path / "spool", batch, 5, Limits(ships=True))
    whole = {path.name: path.read_bytes() for path in spool.files}
    place = Away(str(tmp_path / "there"))
    said, counts = ship(spool.folder, place)
    assert [name for name, _ in place.came] == sorted(whole)
    assert {path.name: path.read_bytes() for path in (tmp_path / "there").iterdir()} == whole
    assert (names(tmp_path / "spool"), said) == ([], [])
    assert (counts.shipped_files, counts.shipped_bytes) == (5, sum(map(len, whole.values())))
    assert {oct(path.stat().st_mode & 0o777) for path in (tmp_path / "there").iterdir()} == {"0o600"}


def test_an_outage_is_said_once_and_passed(tmp_path, batch):
    spool = spooled(tmp_path / "spool", batch, 3, Limits(ships=True))
    said, counts = ship(spool.folder, Away(str(tmp_path / "there"), outages=4))
    assert [line.partition(" ")[0] for line in said] == ["cannot", "shipping"]
    assert (counts.ship_failures, counts.shipped_files, len(names(tmp_path / "there"))) == (4, 3, 3)


def test_what_arrived_though_nobody_heard_is_not_sent_twice(tmp_path, batch):
    spool = spooled(tmp_path / "spool", batch, 3, Limits(ships=True))
    place = Away(str(tmp_path / "there"), lost_answers=1)
    ship(spool.folder, place)
    assert [sent > 0 for _, sent in place.came] == [True, False, True, True]


def test_another_start_sends_what_was_left_and_numbers_go_on(tmp_path, batch):
    spool = spooled(tmp_path / "spool", batch, 3, Limits(ships=True))
    spool.abandon()  # as a kill leaves it
    again = spooled(tmp_path / "spool", batch, 2, Limits(ships=True))
    ship(again.folder, Away(str(tmp_path / "there")))
    assert names(tmp_path / "there") == [f"a-{n:010d}.parquet" for n in (1, 2, 3, 4, 5)]


def test_a_new_spool_goes_on_behind_what_is_there(tmp_path, batch):
    there = Destination(str(tmp_path / "there"))
    ship(spooled(tmp_path / "first", batch, 3, Limits(ships=True)).folder, there)
    (tmp_path / "there/a-b-0000000009.parquet").touch()  # another agent's
    assert (there.last_number("a"), there.last_number("c")) == (3, 0)


def test_an_agent_of_the_same_name_is_said_and_nothing_is_overwritten(tmp_path, batch):
    (tmp_path / "there").mkdir()
    (tmp_path / "there/a-0000000001.parquet").write_text("theirs")
    spool = spooled(tmp_path / "spool", batch, 1, Limits(ships=True))
    said = []
    shipper = Shipper(spool.folder, Destination(str(tmp_path / "there")), Counts(), said.append)
    shipper.start()
    shipper.finish(0.5)
    assert "does another agent with this name ship there?" in said[0]
    assert said[-1] == "1 file not shipped yet; the next start with the same --out ships it"
    assert (tmp_path / "there/a-0000000001.parquet").read_text() == "theirs"
    assert names(tmp_path / "spool") == ["a-0000000001.parquet"]


def test_where_there_is_no_room_the_oldest_frames_go_and_their_marks_travel(tmp_path, written):
    """A reader of what was shipped misses no number and counts every frame, kept or lost."""
    many = batch_of(written, random.Random(1).randbytes(100_000))
    size = spooled(tmp_path / "size", many, 1, Limits(ships=True), whole=True).folder.bytes
    spool = Spool(tmp_path / "spool", STAMP, ROLL_BYTES, Limits(12 * size, ships=True))
    counts = Counts()
    writer = Writer(spool, STAMP, counts, lambda _: None, lambda: Redaction(Secrets(), keep_records=True))
    for _ in range(40):
        writer.take([many])
        spool.roll()
    (source,) = set(many["source"].to_pylist())
    lost = counts.lost[source, SPOOL]
    gone = lost // many.num_rows
    assert (gone * many.num_rows, 25 < gone < 32) == (lost, True)
    assert spool.folder.bytes <= 13 * size
    assert counts.kept_frames == 40 * many.num_rows - lost
    ship(spool.folder, Destination(str(tmp_path / "there")))
    files = sorted((tmp_path / "there").iterdir())
    files_rows = [frames_file.read(path).to_pylist() for path in files]
    assert names(tmp_path / "there") == [f"a-{n:010d}.parquet" for n in range(1, 41)]
    assert [is_emptied(path) for path in files] == [True] * gone + [False] * (40 - gone)
    kinds = [row["kind"] for rows in files_rows for row in rows]
    said = [
        (row["source"], row["count"], row["reason"]) for rows in files_rows for row in rows if row["kind"] == DROPPED
    ]
    assert said == [(source, many.num_rows, REASON)] * gone
    assert kinds.count(frames.FRAME) == 40 * many.num_rows - lost
    assert [rows[-1]["file_seq"] for rows in files_rows] == list(range(1, 41))
    assert [rows[-1]["kind"] for rows in files_rows] == [frames.PROGRESS] * 40


def test_marks_of_an_emptied_file_stay(tmp_path, written):
    """That a capture began, or what the kernel dropped, is not forgotten with the frames around it."""
    spool = Spool(tmp_path, STAMP, limits=Limits(ships=True))
    spool.append(frames.mark_rows([frames.Mark(frames.STARTED, 5), frames.Mark(DROPPED, 7, "eth0", 9, "why")], STAMP))
    spool.append(batch_of(written, b"x"))
    spool.promise(77)
    spool.roll()
    assert spool.folder.empty_oldest(spool._empty)
    rows = frames_file.read(spool.files[0]).to_pylist()
    assert [(row["kind"], row["ts_ns"]) for row in rows] == [
        (frames.STARTED, 5), (DROPPED, 7), (DROPPED, 77), (frames.PROGRESS, 77),
    ]  # fmt: skip


def test_a_file_on_its_way_is_not_emptied(tmp_path, batch):
    spool = spooled(tmp_path / "spool", batch, 2, Limits(ships=True))
    first = spool.folder.claim()
    tried = []
    spool.folder.empty_oldest(lambda file, _: bool(tried.append(file)))
    assert (first.name, [file.name for file in tried]) == ("a-0000000001.parquet", ["a-0000000002.parquet"])
    assert not spool.folder.empty_oldest(lambda *_: True)
    assert [path.name for path in (tmp_path / "spool").glob(".*.tmp")] == []


def test_what_is_no_file_of_frames_is_left_as_it_is(tmp_path, batch):
    spool = spooled(tmp_path / "spool", batch, 1, Limits(1, ships=True))
    spool.files[0].write_text("not Parquet at all, but large enough to be looked at")
    spool.append(batch.slice(0, 1))
    with pytest.raises(OSError, match="limit"):
        spool.roll()
    assert spool.files[0].read_text().startswith("not Parquet")


def test_a_file_that_left_whole_is_not_stopped_by_having_been_emptied_here(tmp_path, batch):
    spool = spooled(tmp_path / "spool", batch, 1, Limits(ships=True))
    place = Destination(str(tmp_path / "there"))
    whole = spool.files[0].read_bytes()
    place.put(spool.files[0])
    spool.folder.empty_oldest(spool._empty)
    ship(spool.folder, place)
    assert (tmp_path / "there/a-0000000001.parquet").read_bytes() == whole
    assert names(tmp_path / "spool") == []


def test_the_wait_doubles_up_to_a_minute():
    waits = [longest_wait_s(n) for n in range(1, 40)]
    assert waits == sorted(waits)
    assert waits[-1] == MOST_WAIT_S


def test_the_backlog_says_since_when(tmp_path, batch):
    spool = spooled(tmp_path / "spool", batch, 2, Limits(ships=True))
    os.utime(spool.files[0], (1_700_000_000, 1_700_000_000))
    assert spool.folder.backlog() == (2, 1_700_000_000)
    spool.folder.claim()
    spool.folder.shipped(spool.files[0])
    assert spool.folder.backlog().files == 1
    assert Folder(tmp_path / "other", "a").backlog() == (0, 0.0)
