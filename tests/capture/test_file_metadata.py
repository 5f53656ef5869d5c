"""What a file of frames says of itself: written by every writer, and held against its rows."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests import traffic as t
from wirecheck.capture import frames, frames_file
from wirecheck.capture.agent.offline_agent import write_frames
from wirecheck.capture.agent.spool import empty
from wirecheck.capture.frames_file import FileMetadata, Span


@pytest.fixture
def file(tmp_path, written):
    segments = t.Talk().open().request(b"x").segments
    packets = [t.Packet(at * 1000, t.ethernet(t.ip(s))) for at, s in enumerate(segments, 5)]
    return write_frames([written(t.pcap(packets))], tmp_path / "out", "prod", agent="a-1").files[0]


def rewritten(file, metadata, change=lambda table: table):
    """The same file with other metadata, and other rows."""
    table = change(pq.read_table(file))
    with pq.ParquetWriter(file, table.schema, store_schema=False) as writer:
        writer.add_key_value_metadata(metadata)
        writer.write_table(table)


OTHER_FORMAT = "not a file of frames of format 1: its metadata has no wirecheck.frames.format; capture again"


def metadata(file):
    return {name: text for name, text in pq.read_metadata(file).metadata.items() if name.startswith(b"wirecheck.")}


def test_a_file_says_whose_it_is_and_of_which_time(file):
    ts_ns = pq.read_table(file).filter(pa.compute.field("kind") == frames.FRAME)["ts_ns"].to_pylist()
    assert frames_file.of_itself(file) == FileMetadata("prod", "a-1", 1, Span(min(ts_ns), max(ts_ns)))
    assert metadata(file) == {
        b"wirecheck.frames.format": b"1",
        b"wirecheck.cluster": b"prod",
        b"wirecheck.agent": b"a-1",
        b"wirecheck.file_seq": b"1",
        b"wirecheck.least_ts_ns": str(min(ts_ns)).encode(),
        b"wirecheck.greatest_ts_ns": str(max(ts_ns)).encode(),
    }


def test_an_emptied_file_says_the_same_but_has_no_times(file, tmp_path):
    empty(file, tmp_path / "emptied.parquet")
    assert frames_file.of_itself(tmp_path / "emptied.parquet") == FileMetadata("prod", "a-1", 1, None)
    assert frames_file.read(tmp_path / "emptied.parquet")["kind"].to_pylist()[-1] == frames.PROGRESS


def test_times_are_of_all_row_groups(tmp_path, written):
    """Times fall, and the frames of one file are written in several parts."""
    segments = t.Talk().open().request(bytes(range(256)) * 2000).segments
    packets = [t.Packet((9999 - at) * 1000, t.ethernet(t.ip(s))) for at, s in enumerate(segments)]
    file = write_frames([written(t.pcap(packets))], tmp_path / "out", "prod", keep_records=True).files[0]
    whole = pq.read_table(file).filter(pa.compute.field("kind") == frames.FRAME)["ts_ns"].to_pylist()
    assert frames_file.of_itself(file).span == Span(min(whole), max(whole))
    assert whole[0] == max(whole)


def test_a_file_of_an_unreleased_format_is_refused_with_the_way_out(file):
    """As agents wrote them before format 1, by hand: with no metadata, and with the keys of its last days."""
    for before in ({}, {b"wirecheck.frames": b"1", b"wirecheck.cluster": b"prod"}):
        rewritten(file, before)
        for read in (frames_file.of_itself, frames_file.read):
            with pytest.raises(frames_file.FormatError) as refused:
                read(file)
            assert str(refused.value) == OTHER_FORMAT


def test_a_newer_format_is_refused_with_the_way_out(file):
    rewritten(file, metadata(file) | {b"wirecheck.frames.format": b"2"})
    with pytest.raises(
        frames.NotFramesError, match=r"^frames of format 2; this release reads format 1: upgrade wirecheck here$"
    ):
        frames_file.read(file, ["cluster"])


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("cluster", b"other", "its metadata and its rows differ in cluster"),
        ("agent", b"other", "its metadata and its rows differ in agent"),
        ("file_seq", b"2", "its metadata and its rows differ in file_seq"),
        ("least_ts_ns", b"0", "its metadata and its rows differ in times"),
        ("greatest_ts_ns", b"9", "its metadata and its rows differ in times"),
        ("greatest_ts_ns", b"nine", "its metadata has no greatest_ts_ns"),
        ("greatest_ts_ns", "\u0662".encode() * 11, "its metadata has no greatest_ts_ns"),
        ("file_seq", b"9" * 5000, "its metadata has no file_seq"),
        ("agent", b"\xff", "its metadata has no agent"),
        ("cluster", None, "its metadata has no cluster"),
        ("greatest_ts_ns", None, "its metadata has no greatest_ts_ns"),
        ("least_ts_ns", None, "its metadata and its rows differ in times"),
    ],
)
def test_what_is_said_must_be_what_the_rows_say(file, name, text, why):
    bent = metadata(file) | {f"wirecheck.{name}".encode(): text}
    rewritten(file, {key: value for key, value in bent.items() if value is not None})
    with pytest.raises(frames.NotFramesError, match=f"^{why}$"):
        frames_file.read(file)


def test_columns_that_are_not_read_are_not_held_against_it(file):
    rewritten(file, metadata(file) | {b"wirecheck.least_ts_ns": b"0"})
    assert frames_file.read(file, ["ts_ns", "src_ip"]).num_rows


def test_spans_add_up():
    assert frames_file.both(None, None) is None
    assert frames_file.both(Span(3, 5), None) == frames_file.both(None, Span(3, 5)) == Span(3, 5)
    assert frames_file.both(Span(3, 5), Span(1, 4)) == Span(1, 5)
