"""A run's batches of one table under TABLE/run=ID on a local disk: each whole or not at all, read back in order.

A batch is written again only if Spark repeats it, and then its new rows hold. Only one process may add batches.
"""

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from wirecheck.streaming.store.result_damage import DamagedResultError
from wirecheck.streaming.store.result_tables import RUNS, TABLES
from wirecheck.streaming.store.storage import local

PART = "part.parquet"
FEW_ROWS = 2_000


class Folders:
    """One table of one run, at TABLE/run=ID: batch_id=N/part.parquet."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = local(folder)

    def numbers(self) -> list[int]:
        if not self.folder.is_dir():
            return []
        return sorted(int(path.name.partition("=")[2]) for path in self.folder.glob("batch_id=*"))

    def part(self, batch_id: int) -> Path:
        return self.folder / f"batch_id={batch_id}" / PART

    def rows(self, batch_id: int, columns: Iterable[str] | None = None) -> pa.Table | None:
        """All columns, or those of these that it has; None where there is no such batch."""
        # Opened by Arrow, not by Python: what a file of Python's gave, Arrow's threads let go when they come to it, and
        # where Python has ended by then, that aborts the process.
        try:
            with pa.OSFile(str(self.part(batch_id))) as file:
                whole = pq.ParquetFile(file, page_checksum_verification=True)
                return whole.read(
                    None if columns is None else [name for name in columns if name in whole.schema_arrow.names]
                )
        except FileNotFoundError:
            return None
        except (pa.ArrowException, OSError) as error:
            raise DamagedResultError(self.part(batch_id), error) from error

    def footer(self, batch_id: int) -> tuple[int, Mapping[bytes, bytes]]:
        """How many rows it has, and the metadata that `put` was given."""
        with pa.OSFile(str(self.part(batch_id))) as file:
            found = pq.read_metadata(file)
            return found.num_rows, found.metadata or {}

    def size_bytes(self, batch_id: int) -> int:
        return self.part(batch_id).stat().st_size

    def written_s(self, batch_id: int) -> float:
        return self.part(batch_id).stat().st_mtime

    def put(
        self,
        rows: pa.Table,
        batch_id: int,
        written_s: float | None = None,
        metadata: Mapping[bytes, bytes] | None = None,
    ) -> None:
        folder = self.part(batch_id).parent
        there = folder.exists()
        beside = folder if there else folder.with_name(f".tmp-{folder.name}")
        if not there:
            shutil.rmtree(beside, ignore_errors=True)  # what a crash left
            beside.mkdir(parents=True)
        hidden = beside / f".{PART}.tmp"
        hidden.unlink(missing_ok=True)
        with (
            os.fdopen(os.open(hidden, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o666), "wb") as file,  # as umask allows
            pq.ParquetWriter(file, rows.schema, **shape(rows)) as writer,
        ):
            writer.write_table(rows)
            writer.add_key_value_metadata(metadata or {})
        if written_s is not None:
            os.utime(hidden, (written_s, written_s))
        sync(hidden)
        hidden.replace(beside / PART)
        if not there:
            beside.rename(folder)
        sync(folder if there else folder.parent)

    def remove(self, batch_id: int) -> None:
        """A reader that has its file open may read on."""
        folder = self.part(batch_id).parent
        for gone in self.folder.glob(".gone-*"):  # what a crash left
            shutil.rmtree(gone, ignore_errors=True)
        shutil.rmtree(folder.rename(folder.with_name(f".gone-{folder.name}")), ignore_errors=True)


class Tables:
    """All tables of a run, for the one who writes its batches."""

    def __init__(self, out: Path | str, run: str) -> None:
        self.places = {table: Folders(f"{out}/{table}/run={run}") for table in TABLES}

    def write(self, rows: Mapping[str, pa.Table], batch_id: int, fence: Mapping[str, Any] | None = None) -> bool:  # noqa: ARG002 - a folder has nowhere to keep it
        """One batch; whether it had been written with other rows, but for who wrote it."""
        kept = {RUNS.name} if self.places[RUNS.name].rows(batch_id) is not None else set()
        places = [(table, place) for table, place in self.places.items() if table not in kept]
        replaced = [write(rows.get(table), place, batch_id) for table, place in places]
        return any(replaced)


def write(rows: pa.Table | None, run: Folders, batch_id: int) -> bool:
    """Whether the batch had been written with other rows; `rows` is None where it has none in this table."""
    before = run.rows(batch_id)
    if rows is None and before is not None:
        rows = before.slice(0, 0)
    if rows is None or (before is not None and before.equals(rows)):
        return False
    run.put(rows, batch_id)
    return before is not None


def read(run: Folders, columns: Iterable[str] | None = None, since_s: float = 0.0) -> Iterator[pa.Table]:
    """Every batch that was written since then, in order. The rows of a batch that goes meanwhile lie in a later one,
    which may be younger than our list of them (`compaction.py`).
    """
    upto = -1
    while True:
        gone = False
        for number in [number for number in run.numbers() if number > upto]:
            if since_s and is_older(run, number, since_s):
                upto = number
                continue
            rows = run.rows(number, columns)
            gone, upto = gone or rows is None, number
            if rows is not None:
                yield rows
        if not gone:
            return


def is_older(run: Folders, number: int, since_s: float) -> bool:
    """Whether a batch that is there was written before that."""
    try:
        return run.written_s(number) < since_s
    except FileNotFoundError:
        return False


def sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def shape(rows: pa.Table) -> dict[str, Any]:
    """How they lie in a file. A batch's few rows are less than what may be said of them: without Arrow's copy of the
    schema (column comments and all; Parquet's own has every type of ours), without statistics and dictionaries a file
    of 100 rows has a third of the size. Nobody skips parts of so small a file; of a large one they do.
    """
    many = rows.num_rows > FEW_ROWS
    sizes = {"write_statistics": many, "use_dictionary": many}
    return {"compression": "zstd", "store_schema": False, "write_page_checksum": True, **sizes}
