"""Frames become a capture again: read back, they are the frames they were, with zeros where bytes were left out."""

import shutil
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest

from tests import traffic
from tests.capture.reading import frames_of
from wirecheck.capture import frames
from wirecheck.capture.agent.offline_agent import write_frames
from wirecheck.capture.evidence import pcapng_export
from wirecheck.decode.peer import Peer

COLUMNS = ("ts_ns", "src_ip", "src_port", "dst_ip", "dst_port", "tcp_seq", "tcp_ack", "tcp_flags")


def talk(client, server, said=b"\x00\x00\x00\x04abcd"):
    return traffic.Talk(client=client, server=server).open().request(said).response(said[::-1]).close()


TALKS = (
    talk(("10.0.0.1", 40000), ("10.0.0.9", 9092)),
    talk(("10.0.0.1", 40001), ("10.0.0.9", 9092)),
    talk(("fd00::1", 40000), ("fd00::9", 9092), b"odd"),
)
PAIRS = [pcapng_export.Pair.of(Peer(*t.client), Peer(*t.server)) for t in TALKS]


@pytest.fixture
def files(tmp_path):
    path = tmp_path / "talks.pcap"
    path.write_bytes(traffic.pcap(traffic.packets(s for t in TALKS for s in t.segments)))
    return write_frames([path], tmp_path / "frames", "L", keep_records=True).files


def shown(path):
    return sorted(tuple(row[name] for name in (*COLUMNS, "payload")) for row in frames_of(path))


def test_connections_are_counted_with_what_was_on_the_wire(files):
    assert pcapng_export.connections(files, "L") == {PAIRS[0]: 16, PAIRS[1]: 16, PAIRS[2]: 6}
    assert pcapng_export.connections(files, "other") == {}


@pytest.mark.parametrize("chosen", [{0}, {1, 2}, {0, 1, 2}], ids=str)
def test_what_is_written_is_read_back_as_it_was(files, tmp_path, chosen):
    table = pcapng_export.selected(files, "L", {PAIRS[i] for i in chosen})
    pcapng_export.write(tmp_path / "x.pcapng", table, "title", {})
    expected = sorted(row for i in chosen for row in shown_talk(TALKS[i]))
    assert shown(tmp_path / "x.pcapng") == expected
    assert (tmp_path / "x.pcapng").stat().st_mode & 0o777 == 0o600


def shown_talk(one):
    return [(s.ts_ns, *s.src, *s.dst, s.seq, s.ack, s.flags, s.payload) for s in one.segments]


@pytest.mark.parametrize(
    ("kept", "size", "left_out", "expected"),
    [
        (b"abc", 3, [], b"abc"),
        (b"", 3, [(0, 3)], b"\0\0\0"),
        (b"abef", 6, [(2, 2)], b"ab\0\0ef"),
        (b"be", 6, [(0, 1), (2, 2), (5, 1)], b"\0b\0\0e\0"),
    ],
)
def test_what_was_left_out_stands_as_zeros_at_its_place(kept, size, left_out, expected):
    spans = [{"offset": offset, "length": length} for offset, length in left_out]
    assert pcapng_export.whole(kept, size, spans) == expected


def one_row(payload, left_out=()):
    row = {
        "kind": 0, "cluster": "L", "source": "a.pcap", "frame_no": 7, "ts_ns": 1_700_000_000_123_456_789,
        "src_ip": "10.0.0.1", "src_port": 1, "dst_ip": "10.0.0.2", "dst_port": 9092, "tcp_seq": 2**32 - 1000,
        "tcp_ack": 5, "tcp_flags": 24, "tcp_window": None, "payload": payload,
        "payload_len": len(payload) + sum(n for _, n in left_out),
        "left_out": [{"offset": offset, "length": length} for offset, length in left_out],
    }  # fmt: skip
    kept = [name for name in frames.FRAMES.names if name in row]
    return pa.Table.from_pylist([row], pa.schema([frames.FRAMES.field(name) for name in kept]))


def test_a_segment_longer_than_ip_can_say_becomes_several_that_follow_each_other(tmp_path):
    payload = bytes(range(256)) * 600
    pcapng_export.write(tmp_path / "x.pcapng", one_row(payload), "t", {})
    rows = frames_of(tmp_path / "x.pcapng")
    assert [(row["tcp_seq"], row["payload_len"]) for row in rows] == [
        (2**32 - 1000, 65000), (64000, 65000), (129000, len(payload) - 130000),
    ]  # fmt: skip
    assert b"".join(row["payload"] for row in rows) == payload


def test_comments_name_the_finding_and_say_what_is_missing(tmp_path):
    path = tmp_path / "x.pcapng"
    pcapng_export.write(path, one_row(b"ab", [(2, 40)]), "TID002 is told", {("a.pcap", 7): "the order", ("b", 7): "no"})
    data = path.read_bytes()
    assert b"TID002 is told\n40 bytes of payload were not kept when it was captured" in data
    assert b"the order" in data
    assert b"no\0\0" not in data


@pytest.mark.parametrize(("window", "written"), [(0, 0), (65535, 65535), (None, 65535)])
def test_a_window_is_written_and_one_that_is_unknown_is_the_largest(tmp_path, window, written):
    table = one_row(b"ab")
    place = table.schema.get_field_index("tcp_window")
    pcapng_export.write(
        tmp_path / "x.pcapng", table.set_column(place, "tcp_window", pa.array([window], pa.int32())), "t", {}
    )
    assert [row["tcp_window"] for row in frames_of(tmp_path / "x.pcapng")] == [written]


@pytest.mark.skipif(not shutil.which("tshark"), reason="tshark is not installed")
def test_tshark_reads_it_and_every_checksum_is_right(files, tmp_path):
    path = tmp_path / "x.pcapng"
    pcapng_export.write(path, pcapng_export.selected(files, "L", set(PAIRS)), "title", {})
    options = ["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE", "-T", "fields"]
    fields = ["-e", "tcp.checksum.status", "-e", "ip.checksum.status"]
    result = subprocess.run(["tshark", "-r", path, *options, *fields], capture_output=True, text=True, check=True)
    assert set(result.stdout.split()) == {"1"}
    assert len(result.stdout.splitlines()) == 24


@pytest.mark.parametrize(("said", "written"), [(-1, 0), (-(1 << 63), 0), (1 << 62, 1 << 62)])
def test_any_time_that_a_damaged_file_says_is_written(files, tmp_path, said, written):
    table = pcapng_export.selected(files, "L", {PAIRS[2]})
    times = pa.array([said] * len(table), pa.int64())
    table = table.set_column(table.schema.get_field_index("ts_ns"), "ts_ns", times)
    pcapng_export.write(tmp_path / "x.pcapng", table, "title", {})
    assert {row["ts_ns"] for row in frames_of(tmp_path / "x.pcapng")} == {written}


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path):
    with pytest.raises(OSError, match="No such file"):
        pcapng_export.write(tmp_path / "none/x.pcapng", one_row(b"ab"), "t", {})
    assert list(Path(tmp_path).iterdir()) == []


def test_a_link_in_the_place_of_what_is_being_written_is_not_followed(files, tmp_path):
    (tmp_path / "victim").write_bytes(b"as it was")
    (tmp_path / ".x.pcapng.tmp").symlink_to(tmp_path / "victim")
    pcapng_export.write(tmp_path / "x.pcapng", pcapng_export.selected(files, "L", {PAIRS[0]}), "title", {})
    assert (tmp_path / "victim").read_bytes() == b"as it was"
    assert not (tmp_path / "x.pcapng").is_symlink()
