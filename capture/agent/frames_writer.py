"""One file of frames as it is written: encodings, compression, the column for other tools, what it says of itself.

Knows: Parquet, and what each encoding costs. Refuses to know: names and numbers (spool_folder.py), when a file ends
(spool.py), what rows say.
Rule: a column keeps its name and type; readers skip columns they do not know.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from wirecheck.capture import file_metadata, frames

if TYPE_CHECKING:
    from pathlib import Path

    from wirecheck.capture.frames import Stamp

SCHEMA = frames.FRAMES_CODED.append(pa.field(frames.TIME.name, frames.TIME.type))
# Strings and ports repeat; sequence numbers, times and payload do not, and a dictionary of them costs time and memory.
_REPEATING = [*frames.STRINGS, "kind", "file_seq", "src_port", "dst_port", "tcp_flags", "count"]
# Of interleaved connections, but cheaper so than compressed.
_RISING = ["frame_no", "ts_ns", "tcp_seq", "tcp_ack", frames.TIME.name]
# zstd where most bytes are: of files of small messages a third goes, for up to 50 ns a row; elsewhere it gains nothing.
_COMPRESSION = {path: "zstd" if path == "payload" else "lz4" for name in SCHEMA.names for path in frames.leaves(name)}


class FramesWriter:
    """One file. Close it."""

    def __init__(self, path: Path, stamp: Stamp, file_seq: int) -> None:
        self._stamp, self._file_seq = stamp, file_seq
        self._span: file_metadata.Span | None = None
        self._writer = pq.ParquetWriter(
            path,
            SCHEMA,
            compression=_COMPRESSION,
            compression_level={"payload": 1},
            use_dictionary=_REPEATING,
            column_encoding=dict.fromkeys(_RISING, "DELTA_BINARY_PACKED"),
            write_statistics=["ts_ns", "frame_no"],
            store_schema=False,  # readers see plain strings, the contract
        )

    def write(self, rows: pa.Table) -> None:
        """A row group of rows in the shape of FRAMES_CODED, but for the file's number."""
        table = frames.with_file_seq(rows, self._file_seq)
        self._span = file_metadata.both(self._span, file_metadata.span_of(table))
        table = table.append_column(SCHEMA.field(frames.TIME.name), frames.times(table["ts_ns"]))
        self._writer.write_table(table, row_group_size=max(table.num_rows, 1))

    def close(self, more: dict[str, str] | None = None) -> None:
        """The footer; with more than every file says of itself. Raises OSError."""
        entries = file_metadata.entries(self._stamp, self._file_seq, self._span)
        self._writer.add_key_value_metadata(entries | (more or {}))
        self._writer.close()
