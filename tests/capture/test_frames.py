"""The contract with every reader of the table: names, types, and the traps of Spark's Parquet reader."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests import traffic as t
from wirecheck.capture import frames, frames_file
from wirecheck.capture.agent.offline_agent import write_frames

# Written down again on purpose: this is what files on disk are.
CONTRACT = {
    "kind": "int8",
    "cluster": "string",
    "agent": "string",
    "file_seq": "int32",
    "source": "string",
    "frame_no": "int64",
    "ts_ns": "int64",
    "src_ip": "string",
    "src_port": "int32",
    "dst_ip": "string",
    "dst_port": "int32",
    "tcp_seq": "int64",
    "tcp_ack": "int64",
    "tcp_flags": "int32",
    "tcp_window": "int32",
    "payload": "binary",
    "payload_len": "int32",
    "left_out": "list<element: struct<offset: int32 not null, length: int32 not null>>",
    "decrypted": "int64",
    "count": "int64",
    "reason": "string",
}
ON_DISK = CONTRACT | {"time": "timestamp[us, tz=UTC]"}


def written_file(tmp_path, written):
    packets = [t.Packet(5, t.ethernet(t.ip(s))) for s in t.Talk().open().request(b"x").segments]
    packets.append(t.cut(packets[-1], 54))
    packets.append(t.Packet(6, t.ethernet(bytes(28), kind=0x0806)))
    return write_frames([written(t.pcap(packets))], tmp_path / "out", "prod").files[0]


def test_the_schema_is_the_contract():
    assert {f.name: str(f.type).replace("item:", "element:") for f in frames.FRAMES} == CONTRACT


def test_files_on_disk_are_the_contract(tmp_path, written):
    schema = pq.read_schema(written_file(tmp_path, written))
    assert {f.name: str(f.type).replace("item:", "element:") for f in schema} == ON_DISK


def test_a_frame_says_how_many_of_its_bytes_a_snap_length_cut(tmp_path, written):
    packets = [t.Packet(5, t.ethernet(t.ip(s))) for s in t.Talk().open().request(b"x" * 300).segments]
    packets = [*packets[:-1], t.cut(packets[-1], 96)]
    path = write_frames([written(t.pcap(packets))], tmp_path / "out", "prod").files[0]
    rows = [row for row in pq.read_table(path).to_pylist() if row["kind"] == frames.FRAME]
    whole = sum(row["payload_len"] for row in rows)
    assert [row["count"] for row in rows if row["count"]] == [whole - (96 - 54)]


def test_no_type_that_spark_misreads_is_in_the_table(tmp_path, written):
    for schema in (frames.FRAMES, frames.FRAMES_CODED, pq.read_schema(written_file(tmp_path, written))):
        assert not any(
            pa.types.is_unsigned_integer(field.type) or (pa.types.is_timestamp(field.type) and field.type.unit == "ns")
            for field in schema
        )


def test_strings_are_dictionary_encoded_on_disk(tmp_path, written):
    group = pq.ParquetFile(written_file(tmp_path, written)).metadata.row_group(0)
    encodings = {group.column(i).path_in_schema: group.column(i).encodings for i in range(group.num_columns)}
    assert all("RLE_DICTIONARY" in encodings[name] for name in frames.STRINGS)
    assert "RLE_DICTIONARY" not in encodings["payload"]


def test_the_two_schemas_differ_in_the_coding_of_strings_only():
    plain = [field if field.name not in frames.STRINGS else field.with_type(frames.CODED) for field in frames.FRAMES]
    assert pa.schema(plain) == frames.FRAMES_CODED


def test_marks_have_no_addresses_no_numbers_and_no_payload(tmp_path, written):
    marks = [row for row in pq.read_table(written_file(tmp_path, written)).to_pylist() if row["kind"] != frames.FRAME]
    assert [row["kind"] for row in marks] == [
        frames.STARTED,
        frames.SKIPPED,
        frames.INPUT_ERROR,
        frames.ENDED,
        frames.PROGRESS,
    ]
    for row in marks:
        assert (row["src_ip"], row["dst_ip"], row["payload"], row["left_out"]) == (None, None, b"", [])
        numbers = ("frame_no", "src_port", "dst_port", "tcp_seq", "tcp_ack", "tcp_flags", "payload_len")
        assert {row[name] for name in numbers} == {0}
        assert row["tcp_window"] is None


def test_every_column_has_its_sentence():
    assert all(column.meaning.endswith(".") for column in frames.COLUMNS)


def test_columns_can_be_read_alone(tmp_path, written):
    table = frames_file.read(written_file(tmp_path, written), ["ts_ns", "src_ip"])
    assert table.column_names == ["ts_ns", "src_ip"]
    assert pa.types.is_dictionary(table["src_ip"].type)


def test_other_tools_find_the_time_of_each_row(tmp_path, written):
    found = pq.read_table(written_file(tmp_path, written), columns=["ts_ns", "time"])
    assert found["time"].cast(pa.int64()).to_pylist() == [ns // 1000 for ns in found["ts_ns"].to_pylist()]


@pytest.mark.parametrize(("ns", "us"), [(0, 0), (1_999, 1), (-1, -1), (frames.LATEST_NS, frames.LATEST_NS // 1000)])
def test_a_time_is_the_microsecond_it_lies_in(ns, us):
    made = frames.times(pa.chunked_array([[ns]], pa.int64()))
    assert (made.type, made.cast(pa.int64()).to_pylist()) == (frames.TIME.type, [us])


def test_payload_is_compressed_by_zstd_and_all_else_by_lz4(tmp_path, written):
    group = pq.ParquetFile(written_file(tmp_path, written)).metadata.row_group(0)
    columns = [group.column(i) for i in range(group.num_columns)]
    assert {c.path_in_schema: c.compression for c in columns} == {
        c.path_in_schema: "ZSTD" if c.path_in_schema == "payload" else "LZ4" for c in columns
    }
    assert group.num_columns > len(frames.FRAMES)  # nested ones, too
