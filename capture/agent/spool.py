"""Rows in, Parquet files out: where a file ends.

That depends on the rows alone, never on how they were batched. Each file ends with a PROGRESS row. A file that could
not be written leaves nothing, and the next one has its number.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from wirecheck.capture import frames, frames_file
from wirecheck.capture.agent.spool_folder import Folder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from wirecheck.capture.agent.spool_folder import Limits
    from wirecheck.capture.frames import Stamp

REASON = "the spool was full before it was shipped"
_EMPTIED = "wirecheck.emptied"


def empty(file: Path, into: Path) -> Counter[str] | None:
    """Write what is left of a file of frames; how many frames are lost, by source. Raises OSError.

    Its number and marks stay: readers see no missing number, and a mark counts what was lost. None, and nothing is
    written, if the file is not a full frames file.
    """
    try:
        if is_emptied(file):
            return None
        table = frames_file.read(file)
    except (frames.NotFramesError, pa.ArrowException):
        return None
    is_frame = pc.equal(table["kind"], frames.FRAME)
    lost = Counter(table["source"].filter(is_frame).to_pylist())
    marks = table.filter(pc.invert(is_frame))
    progress = marks.slice(marks.num_rows - 1)
    stamp = frames.Stamp(progress["cluster"][0].as_py(), progress["agent"][0].as_py())
    at_ns = progress["ts_ns"][0].as_py()
    mark = frames.mark_rows(
        [frames.Mark(frames.DROPPED, at_ns, source, n, REASON) for source, n in lost.items()], stamp
    )
    kept = [marks.slice(0, marks.num_rows - 1), pa.Table.from_batches([mark]), progress]
    whole = pa.concat_tables([part.select(frames.FRAMES.names).cast(frames.FRAMES) for part in kept])
    writer = FramesWriter(into, stamp, progress["file_seq"][0].as_py())
    writer.write(whole.cast(frames.FRAMES_CODED))
    writer.close({_EMPTIED: str(lost.total())})
    return lost


def is_emptied(file: Path) -> bool:
    """Whether a file is what was left of one."""
    return _EMPTIED.encode() in (pq.read_metadata(file).metadata or {})


SCHEMA = frames.FRAMES_CODED.append(pa.field(frames.TIME.name, frames.TIME.type))
# Strings and ports repeat; sequence numbers, times and payload do not, and a dictionary of them costs time and memory.
_REPEATING = [*frames.STRINGS, "kind", "file_seq", "src_port", "dst_port", "tcp_flags", "tcp_window", "count"]
# Of interleaved connections, but cheaper so than compressed.
_RISING = ["frame_no", "ts_ns", "tcp_seq", "tcp_ack", frames.TIME.name]
# zstd where most bytes are: of files of small messages a third goes, for up to 50 ns a row; elsewhere it gains nothing.
_COMPRESSION = {path: "zstd" if path == "payload" else "lz4" for name in SCHEMA.names for path in frames.leaves(name)}


class FramesWriter:
    """One file. Close it."""

    def __init__(self, path: Path, stamp: Stamp, file_seq: int) -> None:
        self._stamp, self._file_seq = stamp, file_seq
        self._span: frames_file.Span | None = None
        self._writer = pq.ParquetWriter(
            path,
            SCHEMA,
            compression=_COMPRESSION,
            compression_level={"payload": 1},
            use_dictionary=_REPEATING,
            column_encoding=dict.fromkeys(_RISING, "DELTA_BINARY_PACKED"),
            write_statistics=["ts_ns", "frame_no"],
            data_page_version="2.0",  # a page is compressed from where it was made: one copy less
            store_schema=False,  # readers see plain strings, the contract
        )

    def write(self, rows: pa.Table) -> None:
        """A row group of rows in the shape of FRAMES_CODED, but for the file's number."""
        table = frames.with_file_seq(rows, self._file_seq)
        self._span = frames_file.both(self._span, frames_file.span_of(table))
        table = table.append_column(SCHEMA.field(frames.TIME.name), frames.times(table["ts_ns"]))
        self._writer.write_table(table, row_group_size=max(table.num_rows, 1))

    def close(self, more: dict[str, str] | None = None) -> None:
        """Write the footer, with `more` metadata entries. Raises OSError."""
        entries = frames_file.entries(self._stamp, self._file_seq, self._span)
        self._writer.add_key_value_metadata(entries | (more or {}))
        self._writer.close()


ROLL_BYTES = 64 << 20
ROW_BYTES = 64  # what a row counts for beside its kept bytes when files are rolled
_GROUP_BYTES = 16 << 20


class Spool:
    """Rows in, files out. Close it: what was not closed does not exist for readers."""

    def __init__(
        self, folder: Path, stamp: frames.Stamp, roll_bytes: int = ROLL_BYTES, limits: Limits | None = None
    ) -> None:
        self.folder = Folder(folder, stamp.agent, limits)
        self._ships = limits is not None and limits.ships
        self.emptied: Counter[str] = Counter()  # frames of files that could not be kept until they were shipped
        self._stamp, self._roll_bytes = stamp, roll_bytes
        self.files: list[Path] = []
        self.on_file: Callable[[Path, float], None] = lambda path, _: self.files.append(path)  # with its seconds
        self.written: Counter[str] = Counter()  # frames in files that readers can see, by source
        self.newest_ns = 0
        self._promised_ns: int | None = None
        self._writer: FramesWriter | None = None
        self._begin()

    def _begin(self) -> None:
        self._pending: list[pa.Table] = []  # rows of the next row group
        self._pending_bytes = 0
        self._file_bytes = 0
        self._file_frames: Counter[str] = Counter()
        self._owed = False  # a promise without a row

    @property
    def holds_rows(self) -> bool:
        """Are there rows that are in no file yet?"""
        return bool(self._pending) or self._writer is not None

    @property
    def disk_bytes(self) -> int:
        return self.folder.bytes

    def append(self, rows: pa.RecordBatch) -> None:
        """Add rows in order; files that become full appear in the folder."""
        sizes = ROW_BYTES + kept_lengths(rows)
        while rows.num_rows:
            ends = np.cumsum(sizes)
            n = int(np.searchsorted(ends, self._roll_bytes - self._file_bytes)) + 1  # the row that fills the file is in
            self._add(rows.slice(0, n), int(ends[min(n, ends.size) - 1]))
            rows, sizes = rows.slice(n), sizes[n:]
            if self._file_bytes >= self._roll_bytes:
                self.roll()

    def promise(self, shown_ns: int) -> None:
        """Nothing up to this time is still to come, whatever the rows say: files end with it from now on."""
        self._owed = self._owed or shown_ns != self._promised_ns
        self._promised_ns = shown_ns

    def forget_time(self) -> None:
        """The clock went back: the newest row is no longer the newest."""
        self.newest_ns, self._promised_ns = 0, 0

    def roll(self) -> None:
        """End the current file with its PROGRESS row. Without a row or a new promise there is no file."""
        if not self.holds_rows and not self._owed:
            return
        begin_s = time.perf_counter()
        shown_ns = self.newest_ns if self._promised_ns is None else self._promised_ns
        progress = frames.mark_rows([frames.Mark(frames.PROGRESS, shown_ns)], self._stamp)
        self._pending.append(pa.Table.from_batches([progress]))
        self._write_group()
        assert self._writer is not None
        self._writer.close()
        self._writer = None
        path = self.folder.publish()
        self.written.update(self._file_frames)
        self._begin()
        self.on_file(path, time.perf_counter() - begin_s)

    def close(self) -> None:
        """Nothing more comes: the last file ends with its newest row."""
        self._promised_ns = None
        self.roll()
        self.folder.close()

    def discard(self) -> None:
        """Give up the rows that are in no file yet."""
        if self._writer is not None:
            with contextlib.suppress(OSError):  # a full disk is why it is given up
                self._writer.close()
            self._writer = None
        self.folder.discard()
        self._begin()

    def abandon(self) -> None:
        """Give up what is in no file yet, and the folder. After close there is nothing left to do."""
        self.discard()
        self.folder.close()

    def _add(self, rows: pa.RecordBatch, size: int) -> None:
        self._pending.append(pa.Table.from_batches([rows]))
        self._pending_bytes += size
        self._file_bytes += size
        self._file_frames.update(frames_by_source(rows))
        self.newest_ns = max(self.newest_ns, int(np.max(rows.column("ts_ns").to_numpy())))
        if self._pending_bytes >= _GROUP_BYTES:
            self._write_group()

    def _write_group(self) -> None:
        if self._writer is None:
            self._free_space()
            self._writer = FramesWriter(self.folder.begin(), self._stamp, self.folder.last + 1)
        self._writer.write(pa.concat_tables(self._pending).unify_dictionaries())
        self._pending, self._pending_bytes = [], 0

    def _free_space(self) -> None:
        """Where files wait to be shipped, the oldest one's frames go before the newest one's."""
        while self._ships and self.folder.full:
            if not self.folder.empty_oldest(self._empty):
                return

    def _empty(self, file: Path, into: Path) -> bool:
        lost = empty(file, into)
        self.emptied.update(lost or {})
        return lost is not None


def frames_by_source(rows: pa.RecordBatch) -> dict[str, int]:
    source = rows.column("source")
    is_frame = rows.column("kind").to_numpy() == frames.FRAME
    if len(source.dictionary) == 1:
        counts = [int(np.count_nonzero(is_frame))]
    else:
        indices = source.indices.fill_null(0).to_numpy()
        counts = np.bincount(indices[is_frame], minlength=len(source.dictionary)).tolist()
    return {name: n for name, n in zip(source.dictionary.to_pylist(), counts, strict=True) if n}


def kept_lengths(rows: pa.RecordBatch) -> NDArray[np.int64]:
    """Kept bytes of each row."""
    payload = rows.column("payload")
    offsets = np.frombuffer(payload.buffers()[1], np.int32)[payload.offset : payload.offset + len(payload) + 1]
    return np.diff(offsets).astype(np.int64)
