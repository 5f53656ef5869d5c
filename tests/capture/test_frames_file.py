"""A file of frames is looked at before it is believed: what no agent writes is refused, in a line that says what."""

import gzip
from pathlib import Path

import pyarrow as pa
import pytest

from tests import frame_files, traffic
from wirecheck.capture import frames, frames_file
from wirecheck.capture.agent.offline_agent import write_frames
from wirecheck.decode.connection.segments import segments

TALK = traffic.Talk(mss=40).open().request(b"q" * 100).response(b"r" * 90).close().segments
ROW = 5  # a frame with payload: behind the STARTED mark, SYN, SYN and ACK, and ACK


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    """What an agent writes, as Python's columns."""
    folder = tmp_path_factory.mktemp("honest")
    (folder / "x.pcap").write_bytes(traffic.pcap(traffic.packets(TALK)))
    (file,) = write_frames([folder / "x.pcap"], folder / "frames", "L", "a", keep_records=True).files
    return frames_file.read(file).cast(frames.FRAMES).to_pydict()


def written(columns, path, **options):
    table = pa.table({name: pa.array(columns[name], frames.FRAMES.field(name).type) for name in columns})
    frame_files.write(table.cast(pa.schema([frames.FRAMES.field(name) for name in columns])), path, **options)
    return path


def copied(honest):
    return {name: list(values) for name, values in honest.items()}


def spans(*pairs):
    return [{"offset": offset, "length": length} for offset, length in pairs]


STORED = [{}, {"use_dictionary": False}, {"row_group_size": 3}, {"compression": "gzip"}]


@pytest.mark.parametrize("options", STORED, ids=str)
def test_what_an_agent_writes_is_read_however_parquet_stores_it(honest, tmp_path, options):
    table = frames_file.read(written(honest, tmp_path / "a.parquet", **options))
    assert table.cast(frames.FRAMES).to_pydict() == honest
    assert table["payload"].type == pa.binary()


LEAST_AND_MOST = {
    "frame_no": (0, 1 << 53), "ts_ns": (0, frames.LATEST_NS), "src_port": (0, 65535), "dst_port": (0, 65535),
    "tcp_seq": (0, 0xFFFFFFFF), "tcp_ack": (0, 0xFFFFFFFF), "tcp_flags": (0, 511), "tcp_window": (0, 65535),
    "count": (0, frames.MOST_COUNT),
}  # fmt: skip


@pytest.mark.parametrize("name", LEAST_AND_MOST)
def test_a_number_at_the_edge_of_its_range_is_one(honest, tmp_path, name):
    columns = copied(honest)
    columns[name][ROW], columns[name][ROW + 1] = LEAST_AND_MOST[name]
    assert frames_file.read(written(columns, tmp_path / "a.parquet"))[name][ROW].as_py() == LEAST_AND_MOST[name][0]


BEYOND = [
    ("kind", -1), ("kind", 10), ("file_seq", 0), ("file_seq", -5), ("frame_no", -1), ("frame_no", (1 << 53) + 1),
    ("ts_ns", -2), ("ts_ns", frames.LATEST_NS + 1), ("ts_ns", -(1 << 63)), ("src_port", -1), ("src_port", 65536),
    ("dst_port", 1 << 30), ("tcp_seq", -1), ("tcp_seq", 1 << 32), ("tcp_ack", (1 << 63) - 1), ("tcp_flags", 512),
    ("tcp_flags", -1), ("tcp_window", -1), ("tcp_window", 65536), ("payload_len", -1000000), ("payload_len", 1 << 28),
    ("count", -1), ("count", 1 << 62),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), BEYOND)
def test_a_number_outside_of_its_range_is_none(honest, tmp_path, name, value):
    columns = copied(honest)
    columns[name][ROW] = value
    with pytest.raises(frames.NotFramesError, match=rf"^{name} is {value}, not "):
        frames_file.read(written(columns, tmp_path / "a.parquet"))


@pytest.mark.parametrize("name", [name for name in frames.FRAMES.names if name not in {"reason", "tcp_window"}])
def test_nothing_is_null_in_a_frame(honest, tmp_path, name):
    columns = copied(honest)
    columns[name][ROW] = None
    with pytest.raises(frames.NotFramesError, match=rf"^no {name} in row {ROW + 1}$"):
        frames_file.read(written(columns, tmp_path / "a.parquet"))


@pytest.mark.parametrize("columns", [None, ["kind", "tcp_window", "ts_ns"], ["tcp_window"]], ids=str)
def test_a_column_that_an_older_release_did_not_write_is_unknown(honest, tmp_path, columns):
    older = {name: values for name, values in copied(honest).items() if name != "tcp_window"}
    table = frames_file.read(written(older, tmp_path / "a.parquet"), columns)
    assert table.column_names == (columns or frames.FRAMES.names)
    assert table.schema.field("tcp_window").type == pa.int32()
    assert table["tcp_window"].null_count == len(honest["kind"])


def test_of_some_frames_a_column_may_be_unknown(honest, tmp_path):
    columns = copied(honest)
    columns["tcp_window"][ROW : ROW + 2] = [None, 7]
    table = frames_file.read(written(columns, tmp_path / "a.parquet"))
    assert table["tcp_window"].to_pylist() == columns["tcp_window"]
    assert segments(table).window[ROW - 1 : ROW + 1].tolist() == [-1, 7]


LIES = {
    "longer than what is kept": {"payload_len": 1000},
    "shorter than what is kept": {"payload_len": 3},
    "nothing is kept, nothing is left out": {"payload": b""},
    "a span before the payload": {"payload_len": 50, "left_out": spans((-10, 10))},
    "a span of a negative length": {"payload_len": 30, "left_out": spans((2, -10))},
    "a span without length": {"left_out": spans((2, 0))},
    "a span behind the end": {"payload_len": 50, "left_out": spans((41, 10))},
    "a span far behind the end": {"payload_len": 50, "left_out": spans((1 << 30, 10))},
    "spans that overlap": {"payload_len": 60, "left_out": spans((0, 10), (5, 10))},
    "spans out of order": {"payload_len": 60, "left_out": spans((30, 10), (10, 10))},
    "spans whose sum is right by wrapping around": {"left_out": spans((0, 1 << 30), (0, -(1 << 30)))},
    "a span of another row": {"payload_len": 41, "left_out": spans((40, 1)), "before": True},
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_payloads_and_spans_that_do_not_add_up_are_none(honest, tmp_path, lie):
    columns = copied(honest)
    assert (columns["payload_len"][ROW], columns["payload"][ROW]) == (40, b"q" * 40)
    for name in ("payload", "payload_len", "left_out"):
        columns[name][ROW] = lie.get(name, columns[name][ROW])
    if "before" in lie:
        columns["payload_len"][ROW], columns["left_out"][ROW + 1] = 40, lie["left_out"]
    with pytest.raises(frames.NotFramesError, match=r"^(payload of row|redacted span of) "):
        frames_file.read(written(columns, tmp_path / "a.parquet"))


@pytest.mark.parametrize("left_out", [spans((0, 10)), spans((50, 10)), spans((0, 2), (2, 3), (20, 5)), []], ids=str)
def test_spans_in_order_that_lie_inside_are_read(honest, tmp_path, left_out):
    columns = copied(honest)
    columns["left_out"][ROW] = left_out
    columns["payload_len"][ROW] = 40 + sum(span["length"] for span in left_out)
    if left_out == spans((50, 10)):
        columns["left_out"][ROW] = spans((40, 10))
    assert (
        frames_file.read(written(columns, tmp_path / "a.parquet"))["left_out"][ROW].as_py() == columns["left_out"][ROW]
    )


def drop_progress(columns):
    return {name: values[:-1] for name, values in columns.items()}


def progress_first(columns):
    return {name: values[-1:] + values for name, values in columns.items()}


def changed(name, value, row=ROW):
    def change(columns):
        columns[name][row] = value
        return columns

    return change


STRANGE = {
    "no progress row": (drop_progress, "no progress row"),
    "progress twice": (progress_first, "progress before its last row"),
    "no rows": (lambda columns: {name: [] for name in columns}, "no progress row"),
    "two clusters": (changed("cluster", "M"), "more than one cluster"),
    "two agents": (changed("agent", "b"), "more than one agent"),
    "two numbers": (changed("file_seq", 2), "more than one file_seq"),
    "no label": (lambda columns: columns | {"cluster": [""] * len(columns["kind"])}, "no cluster"),
    "an address that is none": (changed("src_ip", "localhost"), "src_ip is 'localhost', not an address"),
    "an address with a zero byte": (changed("dst_ip", "10.0.0.1\0"), "not an address"),
    "a text without end": (changed("reason", "x" * 70_000), "reason is longer than 65536 bytes"),
}


@pytest.mark.parametrize(("change", "said"), STRANGE.values(), ids=STRANGE)
def test_rows_that_no_agent_writes_are_none(honest, tmp_path, change, said):
    with pytest.raises(frames.NotFramesError, match=said):
        frames_file.read(written(change(copied(honest)), tmp_path / "a.parquet"))


def test_a_text_that_is_no_text_is_none(honest, tmp_path):
    columns = copied(honest)
    table = pa.table({n: pa.array(columns[n], frames.FRAMES.field(n).type) for n in columns}).cast(frames.FRAMES)
    bytes_, place = [b"\xff\xfe"] * len(table), table.schema.get_field_index("source")
    ends = pa.array(bytes_, pa.binary())
    source = pa.StringArray.from_buffers(len(ends), ends.buffers()[1], ends.buffers()[2])
    frame_files.write(table.set_column(place, "source", source), tmp_path / "a.parquet")
    with pytest.raises(frames.NotFramesError, match="UTF8"):
        frames_file.read(tmp_path / "a.parquet")


def test_a_column_of_another_type_or_twice_is_none(honest, tmp_path):
    table = pa.table(honest).cast(frames.FRAMES)
    wrong = table.set_column(6, "ts_ns", table["ts_ns"].cast(pa.timestamp("ns")))
    frame_files.write(wrong, tmp_path / "a.parquet")
    with pytest.raises(frames.NotFramesError, match="ts_ns is timestamp"):
        frames_file.read(tmp_path / "a.parquet")
    frame_files.write(table.append_column("ts_ns", table["ts_ns"]), tmp_path / "b.parquet")
    with pytest.raises(frames.NotFramesError):
        frames_file.read(tmp_path / "b.parquet")


def many(path, rows, payload=b""):
    """So many rows in a few KB: every column repeats itself."""
    repeated = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array([payload], pa.binary()))
    columns = {}
    for field in frames.FRAMES:
        value = 1 if pa.types.is_integer(field.type) else "10.0.0.1" if pa.types.is_string(field.type) else []
        value = False if pa.types.is_boolean(field.type) else value
        columns[field.name] = repeated if field.name == "payload" else pa.repeat(pa.scalar(value, field.type), rows)
    frame_files.write(pa.table(columns), path)
    return path


def test_a_small_file_of_more_rows_than_an_agent_writes_is_not_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(frames_file, "LARGEST_ROWS", 1000)
    path = many(tmp_path / "a.parquet", 1001)
    with pytest.raises(frames.NotFramesError, match=r"^expands beyond 1000 rows$"):
        frames_file.read(path)


def test_many_rows_in_few_bytes_are_not_unpacked(tmp_path):
    """10 million rows of one value each fit into 700 kB, and would take 1.6 GB of memory."""
    path = many(tmp_path / "a.parquet", 1_200_000)
    size = path.stat().st_size
    before = pa.total_allocated_bytes()
    with pytest.raises(frames.NotFramesError, match=rf"^expands to 1200000 rows, too many for a file of {size} bytes$"):
        frames_file.read(path)
    with pytest.raises(frames.NotFramesError, match=rf"too many for a file of {size} bytes$"):
        frames_file.read(pa.BufferReader(path.read_bytes()))
    assert pa.total_allocated_bytes() - before < 8 << 20


def test_a_large_file_may_have_as_many_rows_as_its_bytes_allow(tmp_path, honest, monkeypatch):
    path = written(honest, tmp_path / "a.parquet")
    rows = len(honest["kind"])
    monkeypatch.setattr(frames_file, "FEW_ROWS", rows - 1)
    assert frames_file.read(path).num_rows == rows
    monkeypatch.setattr(frames_file, "LEAST_ROW_BYTES", path.stat().st_size // rows + 1)
    with pytest.raises(frames.NotFramesError, match=f"^expands to {rows} rows, too many"):
        frames_file.read(path)


def test_one_long_payload_that_stands_for_many_is_not_written_out(tmp_path):
    path = many(tmp_path / "a.parquet", 3000, bytes(1 << 20))  # 3 GB
    assert path.stat().st_size < 4 << 20
    before = pa.total_allocated_bytes()
    with pytest.raises(frames.NotFramesError, match=r"^expands beyond 1024 MB$"):
        frames_file.read(path)
    assert pa.total_allocated_bytes() - before < 64 << 20


def test_a_disk_that_fails_is_not_the_file_s_fault(tmp_path, monkeypatch):
    def refused(*_, **__):
        raise PermissionError(13, "Permission denied")

    (tmp_path / "a.parquet").touch()
    monkeypatch.setattr(frames_file.pq, "ParquetFile", refused)
    with pytest.raises(PermissionError):
        frames_file.read(tmp_path / "a.parquet")
    monkeypatch.undo()
    (tmp_path / "a.parquet").unlink()
    with pytest.raises(FileNotFoundError):
        frames_file.read(tmp_path / "a.parquet")


def test_a_header_that_arrow_aborts_on_is_refused(tmp_path, monkeypatch):
    """Found by fuzzing: one byte of the footer, and asking for a column's metadata ended the process."""
    monkeypatch.setattr(frames_file, "metadata_of", lambda _: None)  # it is older than the format
    packed = Path(__file__).with_name("abort.parquet.gz").read_bytes()
    (tmp_path / "a.parquet").write_bytes(gzip.decompress(packed))
    with pytest.raises(frames.NotFramesError, match="histogram"):
        frames_file.read(tmp_path / "a.parquet")
