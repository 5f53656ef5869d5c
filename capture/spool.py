"""The agent's folder: Parquet files of frames, rolled by size, complete or invisible.

Knows: file names and numbers, how a file appears whole or not at all, and the PROGRESS row that ends every file.
Refuses to know: where rows come from and what they say.
Rule: a reader never sees half a file. A file is written as `.NAME.tmp` (a leading dot is what hides it from Spark; a
suffix does not), synced, renamed, and its folder synced; numbers are contiguous per agent and folder, also over
restarts. Files are 0600: they hold other people's traffic. Where a file ends depends on its rows alone.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from capture import frames

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

ROLL_BYTES = 64 << 20
ROW_BYTES = 64  # what a row counts for beside its kept bytes when files are rolled
_GROUP_BYTES = 16 << 20
# Strings and ports repeat; sequence numbers, times and payload do not, and a dictionary of them costs time and memory.
_REPEATING = [*frames.STRINGS, "kind", "file_seq", "src_port", "dst_port", "tcp_flags", "count"]


class FolderInUseError(Exception):
    """Another agent of this name is writing to this folder."""


class Spool:
    """Rows in, files out. Close it: what was not closed does not exist for readers."""

    def __init__(self, folder: Path, stamp: frames.Stamp, roll_bytes: int = ROLL_BYTES) -> None:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", stamp.agent):
            raise ValueError(f"agent name {stamp.agent!r}: only letters, digits, '-', '_' and '.' can be a file name")
        self._folder, self._stamp, self._roll_bytes = folder, stamp, roll_bytes
        self.files: list[Path] = []
        self.newest_ns = 0
        folder.mkdir(parents=True, exist_ok=True)
        self._lock: int | None = _lock(folder / f".{stamp.agent}.lock")
        for left_by_a_crash in folder.glob(f".{stamp.agent}-*.parquet.tmp"):
            left_by_a_crash.unlink()
        self._file_seq = _last_file_seq(folder, stamp.agent)
        self._writer: pq.ParquetWriter | None = None
        self._pending: list[pa.Table] = []  # rows of the next row group
        self._pending_bytes = 0
        self._file_bytes = 0
        self._owed = False

    def append(self, rows: pa.RecordBatch) -> None:
        """Add rows in order; files that become full appear in the folder."""
        sizes = ROW_BYTES + _lengths(rows.column("payload"))
        while rows.num_rows:
            ends = np.cumsum(sizes)
            n = int(np.searchsorted(ends, self._roll_bytes - self._file_bytes)) + 1  # the row that fills the file is in
            self._add(rows.slice(0, n), int(ends[min(n, ends.size) - 1]))
            rows, sizes = rows.slice(n), sizes[n:]
            if self._file_bytes >= self._roll_bytes:
                self.roll()

    def progress(self, seen_ns: int) -> None:
        """Everything up to this time has been shown, though no row may say so: the next file ends with it."""
        self.newest_ns = max(self.newest_ns, seen_ns)
        self._owed = True

    def roll(self) -> None:
        """End the file that is being written with its PROGRESS row; no file without a row or a progress to tell."""
        if not self._pending and self._writer is None and not self._owed:
            return
        self._owed = False
        progress = frames.mark_rows([frames.Mark(frames.PROGRESS, self.newest_ns)], self._stamp)
        self._pending.append(pa.Table.from_batches([progress]))
        self._write_group()
        assert self._writer is not None
        self._writer.close()
        self._writer = None
        self._file_bytes = 0
        name = f"{self._stamp.agent}-{self._file_seq:010d}.parquet"
        path, hidden = self._folder / name, self._folder / f".{name}.tmp"
        _sync(hidden)
        hidden.replace(path)
        _sync(self._folder)
        self.files.append(path)

    def close(self) -> None:
        self.roll()
        self._release()

    def abandon(self) -> None:
        """Give up the file that is being written; what was rolled stays. After close there is nothing left to do."""
        if self._writer is not None:
            with contextlib.suppress(OSError):  # a full disk is why it is given up
                self._writer.close()
            self._writer = None
            (self._folder / f".{self._stamp.agent}-{self._file_seq:010d}.parquet.tmp").unlink(missing_ok=True)
        self._release()

    def _release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _add(self, rows: pa.RecordBatch, size: int) -> None:
        self._pending.append(pa.Table.from_batches([rows]))
        self._pending_bytes += size
        self._file_bytes += size
        self.newest_ns = max(self.newest_ns, int(np.max(rows.column("ts_ns").to_numpy())))
        if self._pending_bytes >= _GROUP_BYTES:
            self._write_group()

    def _write_group(self) -> None:
        if self._writer is None:
            self._file_seq += 1
            hidden = self._folder / f".{self._stamp.agent}-{self._file_seq:010d}.parquet.tmp"
            os.close(os.open(hidden, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600))
            self._writer = pq.ParquetWriter(
                hidden,
                frames.FRAMES_CODED,
                compression="lz4",
                use_dictionary=_REPEATING,
                column_encoding=dict.fromkeys(("frame_no", "ts_ns"), "DELTA_BINARY_PACKED"),
                write_statistics=["ts_ns", "frame_no"],
                store_schema=False,  # readers see plain strings, the contract
            )
        table = pa.concat_tables(self._pending).unify_dictionaries().combine_chunks()
        table = frames.with_file_seq(table, self._file_seq)
        self._writer.write_table(table, row_group_size=max(table.num_rows, 1))
        self._pending, self._pending_bytes = [], 0


def _lengths(binary: pa.BinaryArray) -> NDArray[np.int64]:
    offsets = np.frombuffer(binary.buffers()[1], np.int32)[binary.offset : binary.offset + len(binary) + 1]
    return np.diff(offsets).astype(np.int64)


def _last_file_seq(folder: Path, agent: str) -> int:
    numbers = [0]
    for path in folder.glob(f"{agent}-*.parquet"):
        found = re.fullmatch(r"-(\d{10})\.parquet", path.name.removeprefix(agent))
        numbers += [int(found[1])] if found else []
    return max(numbers)


def _lock(path: Path) -> int:
    handle = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(handle)
        raise FolderInUseError(f"{path.parent}: another agent of this name is writing here") from error
    return handle


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
