"""The writing thread: what waits, what is promised, and what is lost while the disk takes nothing."""

from dataclasses import replace

import pyarrow as pa
import pytest

from tests import traffic as t
from tests.capture import canaries
from tests.capture.reading import rows
from tests.decode.connection.conversations import METADATA, request
from tests.depth import some
from wirecheck.capture import frames, frames_file
from wirecheck.capture.agent import writer
from wirecheck.capture.agent.counts import DISK, Counts
from wirecheck.capture.agent.redaction import Redaction
from wirecheck.capture.agent.spool import Spool
from wirecheck.capture.agent.spool_folder import Limits
from wirecheck.capture.agent.writer import Shown, Writer
from wirecheck.capture.tls.key_log import Secrets

STAMP = frames.Stamp("prod", "agent")
SECOND = 1_000_000_000


def kept():
    return Redaction(Secrets(), keep_records=True)


def redacted():
    return Redaction(Secrets())


class Disk:
    """A folder with others' files in it, and a writer without its thread."""

    def __init__(self, folder, monkeypatch, redaction=kept, room=None):
        monkeypatch.setattr(writer, "_RETRY_S", 0.0)
        self.said, self.counts, self.folder = [], Counts(), folder
        self.others = self.write_others() if room == 0 else []
        size = sum(file.stat().st_size for file in self.others)
        self.spool = Spool(folder, STAMP, limits=Limits(max_bytes=size or None))
        self.writer = Writer(self.spool, STAMP, self.counts, self.said.append, redaction)

    def write_others(self):
        spool = Spool(self.folder, STAMP, roll_bytes=1)
        for i in range(3):
            spool.append(mark(frames.STARTED, i))
        spool.close()
        return spool.files

    def make_room(self):
        for file in self.others:
            file.unlink()

    def rows(self):
        files = [path for path in sorted(self.folder.glob("*.parquet")) if path not in self.others]
        return pa.concat_tables(frames_file.read(path) for path in files).to_pylist()


def mark(kind, ts_ns, **more):
    return frames.mark_rows([frames.Mark(kind, ts_ns, **more)], STAMP)


@pytest.fixture
def three(written):
    return batch(rows(written(t.pcap(t.packets(t.Talk().open().segments)))))


def batch(found):
    mine = {"cluster": STAMP.cluster, "agent": STAMP.agent}  # a file has one writer
    only = [{**row, **mine} for row in found if row["kind"] == frames.FRAME]
    return pa.RecordBatch.from_pylist(only, frames.FRAMES).cast(frames.FRAMES_CODED)


def test_a_writer_that_finds_no_room_loses_counts_says_so_and_goes_on(tmp_path, three, monkeypatch):
    disk = Disk(tmp_path, monkeypatch, room=0)
    disk.writer.take([mark(frames.STARTED, 1)])
    for _ in range(2):
        disk.writer.take([three])
        disk.writer.show(Shown(three["ts_ns"][-1].as_py(), roll=True))
    disk.make_room()
    disk.writer.take([three])
    disk.writer.close()
    source = three["source"][0].as_py()
    assert disk.counts.lost == {(source, DISK): 6}
    assert disk.said == [
        "cannot write: the agent's files reached their limit of 0 MB; frames are dropped until writing works again",
        "writing again; 6 frames could not be written",
    ]
    found = disk.rows()
    assert found[0]["kind"] == frames.STARTED
    dropped = [(row["source"], row["count"], row["reason"]) for row in found if row["kind"] == frames.DROPPED]
    assert dropped == [(source, 6, "could not be written")]
    assert [row["kind"] for row in found].count(frames.FRAME) == disk.counts.kept_frames == 3


def test_marks_that_no_reader_saw_are_written_again_and_counted_together(tmp_path, three, monkeypatch):
    disk = Disk(tmp_path, monkeypatch, room=0)
    for ts_ns in (1, 2):
        disk.writer.take([mark(frames.SKIPPED, ts_ns, source="lo", count=7, reason="fragment")])
        disk.writer.show(Shown(5, roll=True))
    disk.make_room()
    disk.writer.take([three])
    disk.writer.close()
    skipped = [row for row in disk.rows() if row["kind"] == frames.SKIPPED]
    assert [(row["ts_ns"], row["count"]) for row in skipped] == [(2, 14)]


def test_a_writer_that_never_finds_room_ends_all_the_same(tmp_path, three, monkeypatch):
    disk = Disk(tmp_path, monkeypatch, room=0)
    disk.writer.start()
    for work in (three, Shown(5, roll=True), three, Shown(6, roll=True)):
        disk.writer.put(work)
    disk.writer.finish()
    disk.spool.abandon()
    assert (disk.counts.lost_by(DISK), disk.counts.kept_frames) == (6, 0)


def test_a_file_does_not_promise_the_time_of_what_still_waits(tmp_path, written, monkeypatch):
    talk = t.Talk(mss=50).open().request(request(METADATA, 1, 1, bytes(400))[:100])
    disk = Disk(tmp_path, monkeypatch, redacted)
    every = batch(rows(written(t.pcap(t.packets(talk.segments)))))
    newest_ns = max(every["ts_ns"].to_pylist())
    disk.writer.take([every])
    disk.writer.show(Shown(newest_ns, roll=True))
    found = disk.rows()
    waits_ns = every["ts_ns"][len(found) - 1].as_py()
    assert (found[-1]["kind"], found[-1]["ts_ns"]) == (frames.PROGRESS, waits_ns - 1)
    assert len(found) - 1 < every.num_rows
    disk.writer.show(Shown(newest_ns + 5 * SECOND, roll=True))
    found = disk.rows()
    assert (found[-1]["kind"], found[-1]["ts_ns"]) == (frames.PROGRESS, newest_ns + 5 * SECOND)
    assert len(found) - 2 == every.num_rows


@pytest.mark.parametrize("cut", some([1, 7, 1000], each=2))
def test_no_secret_is_written_however_the_rows_came(cut, tmp_path, written, monkeypatch):
    segments = canaries.traffic(sorted(canaries.EXCHANGES), 100)
    every = batch(rows(written(t.pcap(t.packets(segments)))))
    disk = Disk(tmp_path / "out", monkeypatch, redacted)
    for at in range(0, every.num_rows, cut):
        part = every.slice(at, cut)
        disk.writer.take([part])
        if at % 5 == 0:
            disk.writer.show(Shown(part["ts_ns"][-1].as_py(), roll=at % 25 == 0))
    disk.writer.close()
    files = sorted((tmp_path / "out").glob("*.parquet"))
    assert canaries.leaks(files) == []
    assert disk.counts.kept_frames == every.num_rows
    kept = disk.counts.kept_bytes + sum(disk.counts.left_out_bytes.values())
    assert kept == sum(every["payload_len"].to_pylist())


def test_a_clock_that_goes_back_does_not_leave_out_what_comes_after(tmp_path, written, monkeypatch):
    def early(segments, ns):
        return [replace(segment, ts_ns=segment.ts_ns - ns) for segment in segments]

    disk = Disk(tmp_path, monkeypatch, redacted)
    before = canaries.kafka(["produce"], 40000, 100)
    after = canaries.kafka(["produce"], 40001, 100)
    disk.writer.take([batch(rows(written(t.pcap(t.packets(before.segments)))))])
    disk.writer.show(Shown(max(s.ts_ns for s in before.segments), roll=True))
    disk.writer.restart()
    disk.writer.take([batch(rows(written(t.pcap(t.packets(early(after.segments, 3600 * SECOND))))))])
    disk.writer.close()
    found = disk.rows()
    kept = {
        port: b"".join(row["payload"] for row in found if port in {row["src_port"], row["dst_port"]})
        for port in (40000, 40001)
    }
    assert len(kept[40000]) == len(kept[40001]) > 0
    assert found[-1]["ts_ns"] == max(s.ts_ns for s in after.segments) - 3600 * SECOND


@pytest.mark.parametrize(("together_bytes", "passes"), [(1 << 20, 2), (1, 4)])
def test_rows_are_trimmed_together_until_they_are_many_or_the_time_is_told(
    together_bytes, passes, tmp_path, three, monkeypatch
):
    monkeypatch.setattr(writer, "_TOGETHER_BYTES", together_bytes)
    redaction, added = redacted(), []

    def add(found):
        added.append(found.num_rows)
        return Redaction.add(redaction, found)

    monkeypatch.setattr(redaction, "add", add)
    disk = Disk(tmp_path, monkeypatch, lambda: redaction)
    for work in (three.slice(0, 1), three.slice(1, 1), Shown(0), three.slice(0, 1), three.slice(1, 1)):
        disk.writer.put(work)
    disk.writer._queue.put(None)
    disk.writer.run()
    assert len(added) == passes
    assert sum(added) == 4
