"""Frames files that no agent should have written: their rows lie, or their bytes are bent.

Knows: what an agent writes of one connection, how Parquet can store it, and what must hold of a file that is believed:
it is followed, decoded and shown as a capture without an index outside of an array.
Rule: an input is its number and the run's seed, nothing else: the runner can make it again.
"""

from __future__ import annotations

import io
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fuzz.capture_files import bent
from tests import traffic as t
from tests.build import plain
from wirecheck.capture import frames, frames_file
from wirecheck.capture.agent.offline_agent import write_frames
from wirecheck.capture.evidence import pcapng_export
from wirecheck.decode.show import message_lines
from wirecheck.decode.show.message_filter import Filter

if TYPE_CHECKING:
    from collections.abc import Callable

SUFFIX = "parquet"
NUMBERS = (
    -(1 << 63), -(1 << 31), -1_000_000, -2, -1, 0, 1, 2, 3, 7, 9, 40, 255, 511, 512, 65535, 65536, 1 << 20, 1 << 28,
    (1 << 31) - 1, 1 << 31, 1 << 32, 1 << 48, 1 << 62, (1 << 63) - 1,
)  # fmt: skip
TEXTS = ("", "L", "a", "localhost", "10.0.0.300", "::", "fe80::1%eth0", "10.0.0.1\0", "x" * 70_000, "\x1b[2J", "\u2028")
COMPRESSIONS = ("none", "snappy", "gzip", "zstd", "lz4", "brotli")


@cache
def honest() -> dict[str, list[Any]]:
    """What an agent writes of two connections, records left out of one answer, a packet cut."""
    talk, other = t.Talk().open(), t.Talk(client=("fd00::1", 40000), server=("fd00::9", 9092), mss=40).open()
    for number in range(4):
        asked = plain("Metadata", "request", 12, {"topics": [{"name": "orders"}]}, {"correlationId": number})
        answered = plain("Metadata", "response", 12, {"clusterId": "c"}, {"correlationId": number})
        talk.request(asked).response(answered)
        other.request(asked).response(answered)
    given = t.packets([*talk.request(b"what is no message").close().segments, *other.close().segments])
    given[5] = t.cut(given[5], len(given[5].data) - 9)
    with TemporaryDirectory() as folder:
        (Path(folder) / "x.pcap").write_bytes(t.pcap(given))
        (file,) = write_frames([Path(folder) / "x.pcap"], Path(folder) / "frames", "L", "a").files
        found: dict[str, list[Any]] = frames_file.read(file).cast(frames.FRAMES).to_pydict()
    assert any(found["left_out"])
    return found


def make(rng: np.random.Generator) -> bytes:
    """One file: its rows lie, or its bytes are bent, or both, or neither."""
    table = lying(rng) if rng.random() < 0.7 else of_columns({name: list(v) for name, v in honest().items()})
    data = stored(table, rng)
    if rng.random() < 0.4:
        return bent(data, rng)
    if rng.random() < 0.2:  # the footer says where everything is
        at = max(len(data) - 8 - int(rng.integers(1, 4000)), 0)
        return data[:at] + bent(data[at:], rng)
    return data


def stored(table: pa.Table, rng: np.random.Generator) -> bytes:
    sink = pa.BufferOutputStream()
    writer = pq.ParquetWriter(
        sink,
        table.schema,
        compression=str(rng.choice(COMPRESSIONS)),
        use_dictionary=bool(rng.integers(2)),
        data_page_version=str(rng.choice(["1.0", "2.0"])),
        data_page_size=int(rng.choice([64, 1 << 20])),
        write_statistics=bool(rng.integers(2)),
        store_schema=bool(rng.integers(2)),
    )
    if rng.random() < 0.9:
        writer.add_key_value_metadata(of_itself(rng))
    writer.write_table(table, row_group_size=int(rng.choice([1, 7, 1000])))
    writer.close()
    return bytes(sink.getvalue())


def of_itself(rng: np.random.Generator) -> dict[str, str]:
    """What an honest file says, or something else in one place."""
    ts_ns = [ns for ns, kind in zip(honest()["ts_ns"], honest()["kind"], strict=True) if kind == frames.FRAME]
    stamp = frames.Stamp(honest()["cluster"][0], honest()["agent"][0])
    said = frames_file.entries(stamp, honest()["file_seq"][0], frames_file.Span(min(ts_ns), max(ts_ns)))
    if rng.integers(2):
        name = str(rng.choice(list(said)))
        said[name] = str(NUMBERS[int(rng.integers(len(NUMBERS)))]) if rng.integers(2) else str(rng.choice(TEXTS))
        if rng.random() < 0.3:
            del said[name]
    return said


def of_columns(columns: dict[str, list[Any]]) -> pa.Table:
    return pa.table({name: pa.array(values, frames.FRAMES.field(name).type) for name, values in columns.items()})


def lying(rng: np.random.Generator) -> pa.Table:
    columns = {name: list(values) for name, values in honest().items()}
    for _ in range(int(rng.integers(1, 4))):
        LIES[int(rng.integers(len(LIES)))](columns, rng)
    table = of_columns(columns)
    if rng.random() < 0.05:
        table = table.drop_columns([str(rng.choice(table.column_names))])
    if rng.random() < 0.05:
        name = str(rng.choice(table.column_names))
        table = table.rename_columns({name: str(rng.choice(table.column_names))})
    return table


def number(columns: dict[str, list[Any]], rng: np.random.Generator) -> None:
    names = [name for name in columns if pa.types.is_integer(frames.FRAMES.field(name).type)]
    name, row = str(rng.choice(names)), int(rng.integers(len(columns["kind"])))
    bits = frames.FRAMES.field(name).type.bit_width
    value = NUMBERS[int(rng.integers(len(NUMBERS)))]
    value = value if -(1 << (bits - 1)) <= value < 1 << (bits - 1) else -1
    for i in range(len(columns[name])) if rng.random() < 0.1 else [row]:
        columns[name][i] = value


def text(columns: dict[str, list[Any]], rng: np.random.Generator) -> None:
    name, row = str(rng.choice(frames.STRINGS)), int(rng.integers(len(columns["kind"])))
    for i in range(len(columns[name])) if rng.random() < 0.3 else [row]:
        columns[name][i] = TEXTS[int(rng.integers(len(TEXTS)))]


def null(columns: dict[str, list[Any]], rng: np.random.Generator) -> None:
    columns[str(rng.choice(list(columns)))][int(rng.integers(len(columns["kind"])))] = None


def spans(columns: dict[str, list[Any]], rng: np.random.Generator) -> None:
    """Of a row: far ones, negative ones, some that add up and overlap, some that are right."""
    row, count = int(rng.integers(len(columns["kind"]))), int(rng.integers(1, 5))
    pairs = rng.choice([n for n in NUMBERS if -(1 << 31) <= n < 1 << 31], (count, 2))
    if rng.random() < 0.7:
        pairs = rng.integers(0, 30, (count, 2))
    if rng.random() < 0.3:
        pairs = np.sort(pairs.ravel()).reshape(count, 2)
        pairs[:, 1] = np.maximum(pairs[:, 1] - pairs[:, 0], 1)
    columns["left_out"][row] = [{"offset": int(a), "length": clamped(int(b))} for a, b in pairs]
    if rng.random() < 0.8 and columns["payload"][row] is not None:
        columns["payload_len"][row] = clamped(len(columns["payload"][row]) + int(pairs[:, 1].sum()))


def clamped(value: int) -> int:
    return max(-(1 << 31), min(value, (1 << 31) - 1))


def payload(columns: dict[str, list[Any]], rng: np.random.Generator) -> None:
    row = int(rng.integers(len(columns["kind"])))
    size = int(rng.choice([0, 1, 3, 4, 14, 2000]))
    columns["payload"][row] = rng.integers(0, 256, size, np.uint8).tobytes()
    if rng.random() < 0.6:
        columns["payload_len"][row], columns["left_out"][row] = size, []


def rows(columns: dict[str, list[Any]], rng: np.random.Generator) -> None:
    """In another order, twice, fewer."""
    count = len(columns["kind"])
    kind = int(rng.integers(4))
    order = np.arange(count)
    if kind == 0:
        order[: count - 1] = rng.permutation(count - 1)
    elif kind == 1:
        order = rng.permutation(count)
    elif kind == 2:
        order = np.sort(np.concatenate([order, rng.integers(0, count, 5)]))
    else:
        order = np.delete(order, rng.integers(0, count, 3))
    for name in columns:
        columns[name] = [columns[name][i] for i in order]


LIES: tuple[Callable[[dict[str, list[Any]], np.random.Generator], None], ...] = (
    number, number, text, null, spans, spans, payload, rows,
)  # fmt: skip


def read(path: Path, _: np.random.Generator) -> str:
    """What became of it; raises if it was believed and could not be used."""
    try:
        table = frames_file.read(path)
    except frames.NotFramesError:
        return "not frames"
    said = sum(1 for _ in message_lines.of(iter([table]), Filter(), message_lines.Reading(contents=False)))
    label = next((text for text in table["cluster"].slice(0, 1).to_pylist() if text), "")
    shown = pcapng_export.of_cluster(table.select([*pcapng_export.COLUMNS, *pcapng_export.SEGMENT]), label)
    pcapng_export.write_blocks(io.BytesIO(), shown, "title", {})
    return "believed, messages" if said else "believed, no message"
