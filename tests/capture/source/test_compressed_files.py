"""Packed capture files: whole, in several streams, cut anywhere, damaged, and out of a pipe."""

import bz2
import gzip
import io
import lzma
import os
import threading
import zlib

import pyarrow as pa
import pytest

from tests import traffic as t
from tests.capture.reading import as_segments, expected, frames_of, marks_of, rows
from tests.depth import some
from wirecheck.capture import frames
from wirecheck.capture.agent.offline_agent import NothingReadableError
from wirecheck.capture.source import compressed_files, windows

TALK = t.Talk(mss=40).open().request(bytes(range(256)) * 40).response(os.urandom(4000)).close().segments
PCAP = t.pcap(t.packets(TALK))
OF_ZEROS = t.pcap([t.Packet(0, t.ethernet(bytes(60_000), kind=0x0806))])[24:]
PACKET_BYTES = 16 + 14 + 20 + 20  # of one without payload


def by_arrow(name):
    def pack(data):
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, name) as stream:
            stream.write(data)
        return sink.getvalue().to_pybytes()

    return pack


PACK = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": by_arrow("zstd"),
    "lz4": by_arrow("lz4"),
}
each = pytest.mark.parametrize("name", PACK)


@each
@pytest.mark.parametrize("batch_bytes", [100, 4096, 8 << 20])
def test_a_packed_file_gives_the_rows_of_the_plain_one(name, batch_bytes, written):
    plain, packed = written(PCAP, "x.pcap"), written(PACK[name](PCAP), "x")
    assert as_segments(frames_of(packed, batch_bytes=batch_bytes)) == as_segments(frames_of(plain)) == expected(TALK)
    assert marks_of(packed) == []


@each
def test_several_streams_are_one_file(name, written):
    half = len(PCAP) // 2 + 3
    path = written(PACK[name](PCAP[:half]) + PACK[name](PCAP[half:]))
    assert as_segments(frames_of(path)) == expected(TALK)
    assert marks_of(path) == []


def whole_packets(unpacked):
    """How many of TALK's packets so many bytes hold whole."""
    at, count = 24, 0
    for segment in TALK:
        at += PACKET_BYTES + len(segment.payload)
        count += at <= unpacked
    return count


def by_the_library(name, packed):
    """How much of a cut stream the library's own decompressor gives, asked byte by byte where it is Arrow's."""
    if name == "gzip":
        return len(zlib.decompressobj(wbits=31).decompress(packed))
    if name == "bzip2":
        return len(bz2.BZ2Decompressor().decompress(packed))
    if name == "xz":
        return len(lzma.LZMADecompressor().decompress(packed))
    stream, count = pa.CompressedInputStream(io.BytesIO(packed), name), 0
    while True:
        try:
            count += len(stream.read(1))
        except OSError as error:
            assert "Truncated" in str(error)  # noqa: PT017
            return count


@each
@pytest.mark.parametrize("left", some([0.3, 0.6, 0.999, 0.95], each=2))
def test_a_cut_file_gives_every_packet_that_the_library_can_unpack(name, left, written):
    many = b"".join(PACK[name](PCAP[at : at + 6000]) for at in range(0, len(PCAP), 6000))
    cut = many[: int(len(many) * left)]
    unpacked, rest = 0, cut
    while rest:  # stream by stream, as they were packed
        size = len(PACK[name](PCAP[unpacked : unpacked + 6000]))
        whole, rest = rest[:size], rest[size:]
        unpacked += min(6000, len(PCAP) - unpacked) if len(whole) == size else by_the_library(name, whole)
    count = whole_packets(unpacked)
    assert 0 < count <= len(TALK)
    path = written(cut)
    assert as_segments(frames_of(path)) == expected(TALK[:count])
    ((kind, _, reason),) = marks_of(path)
    assert (kind, reason) == (frames.INPUT_ERROR, f"truncated {name} stream at byte offset {unpacked}")


@each
def test_damage_is_told_and_what_stands_well_before_it_is_given(name, written):
    packed = bytearray(b"".join(PACK[name](part) for part in (PCAP[:6000], PCAP[6000:])))
    at = len(PACK[name](PCAP[:6000])) + 40
    packed[at : at + 400] = bytes(400)
    path = written(bytes(packed))
    found = as_segments(frames_of(path))
    assert found[: whole_packets(6000)] == expected(TALK[: whole_packets(6000)])
    assert marks_of(path)[-1][0] == frames.INPUT_ERROR  # what was damaged may look like other packets before that


@each
def test_what_lies_behind_the_last_stream_is_told(name, written):
    path = written(PACK[name](PCAP) + b"garbage that is no stream")
    assert as_segments(frames_of(path)) == expected(TALK)
    ((kind, _, reason),) = marks_of(path)
    assert kind == frames.INPUT_ERROR
    assert name in reason


@each
def test_a_packed_file_of_something_else_is_no_capture(name, written):
    with pytest.raises(NothingReadableError, match="not a pcap or pcapng file"):
        rows(written(PACK[name](b"some text, and no packets")))


@each
def test_of_a_file_that_unpacks_to_far_more_no_more_is_unpacked_than_asked_for(name):
    packed = PACK[name](bytes(20 << 20))
    before = pa.total_allocated_bytes()
    stream = compressed_files.unpacked(packed[: compressed_files.MAGIC_BYTES], io.BytesIO(packed))
    assert 0 < stream.readinto(memoryview(bytearray(1000))) <= 1000
    assert pa.total_allocated_bytes() - before < 8 << 20


@each
def test_a_file_that_expands_out_of_all_proportion_ends_with_a_line(name, written, monkeypatch):
    """What stands before that is given."""
    monkeypatch.setattr(windows, "UNPACKED_BYTES", 1 << 20)
    path = written(PACK[name](PCAP + OF_ZEROS * 500))
    limit = max(1 << 20, 200 * path.stat().st_size)
    found = rows(path)
    assert as_segments(row for row in found if row["kind"] == frames.FRAME) == expected(TALK)
    (reason,) = (row["reason"] for row in found if row["kind"] == frames.INPUT_ERROR)
    reason_alone, at = reason.rsplit(" ", 1)
    assert reason_alone == (
        "expands beyond 200 times its packed size; unpack it to read all of it; ended at byte offset"
    )
    assert 1 << 20 < int(at) < limit + (2 << 20)


@each
def test_a_small_file_may_expand_as_it_likes(name, written):
    path = written(PACK[name](PCAP + OF_ZEROS * 350))
    assert [row["reason"] for row in rows(path) if row["kind"] == frames.INPUT_ERROR] == []


def test_xz_takes_no_more_memory_than_is_allowed(written):
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 30}]
    with pytest.raises(NothingReadableError, match="xz stream that needs more than 256 MB of memory"):
        rows(written(lzma.compress(PCAP[:0] + b"x", filters=filters)))


@pytest.fixture
def piped(tmp_path):
    """Bytes out of a named pipe, which can be read once."""
    writers = []

    def pipe(data, name="pipe"):
        os.mkfifo(tmp_path / name)

        def write():
            with (tmp_path / name).open("wb") as end:
                end.write(data)

        writers.append(threading.Thread(target=write))
        writers[-1].start()
        return tmp_path / name

    yield pipe
    for writer in writers:
        writer.join(10)
        assert not writer.is_alive()


@pytest.mark.parametrize("name", ["plain", *PACK])
def test_a_pipe_is_read_once_and_gives_what_a_file_gives(name, piped):
    many = t.Talk(mss=1000).open().request(os.urandom(300_000)).close().segments
    data = t.pcap(t.packets(many))
    assert as_segments(frames_of(piped(PACK[name](data) if name in PACK else data))) == expected(many)


def test_a_pipe_stands_in_its_place_among_files(piped, written):
    first, second, third = TALK[:2], TALK[2:5], TALK[5:]
    early, late = written(t.pcap(t.packets(first)), "early"), written(t.pcap(t.packets(third)), "late")
    path = piped(t.pcapng(t.packets(second)))
    assert as_segments(frames_of(late, path, early)) == expected(TALK)


@pytest.mark.parametrize(("data", "reason"), [(b"", "empty file"), (b"no capture", "not a pcap or pcapng file")])
def test_a_pipe_without_a_capture_says_so(data, reason, piped):
    with pytest.raises(NothingReadableError, match=reason):
        rows(piped(data))
