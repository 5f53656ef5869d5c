"""A run's batches of one table, as they lie under TABLE/run=ID: each whole or not at all, read back in order.

Knows: how a batch's rows appear, and give way to others, in one step: on this machine's disk (a folder renamed, later
its file) and on any other file system of Arrow's (a file, then the entry in `_commits` that names it). Knows nothing of
what rows say.
Rule: a batch is written again only if Spark repeats it, and then what it says now holds: the state goes on from there.
The same rows change nothing. Nobody else may add a batch.
"""

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from wirecheck.streaming.store.result_tables import TABLES
from wirecheck.streaming.store.storage import at, is_local, local

PART = "part.parquet"
COMMITS = "_commits"
SPANS = "_spans.json"


class Run(Protocol):
    """The batches of one table and run."""

    def numbers(self) -> list[int]:
        """The batches that readers may see, in order."""

    def rows(self, batch_id: int, columns: Iterable[str] | None = None) -> pa.Table | None:
        """All columns, or those of these that the table has; None where there is no such batch."""

    def put(self, rows: pa.Table, batch_id: int, written_s: float | None = None) -> None:
        """The batch's rows, instead of any it had; in one step for whoever reads meanwhile. Written now, or then."""

    def written_s(self, batch_id: int) -> float:
        """When it was first written, in seconds since 1970."""

    def remove(self, batch_id: int) -> None:
        """A batch without rows."""

    def sweep(self, batch_ids: list[int]) -> None:
        """What nobody has read since the last sweep of these batches goes."""

    def summary(self) -> bytes | None:
        """What compaction keeps beside the batches (`spans.py`); None where it has kept nothing."""

    def keep_summary(self, said: bytes) -> None:
        """Instead of what it kept before, in one step."""


def run_at(run: Path | str) -> Run:
    """`run`: the folder TABLE/run=ID, a path or a URI."""
    return Folders(local(run)) if is_local(run) else Entries(*at(run))


def write(rows: pa.Table, run: Run, batch_id: int) -> bool:
    """Whether the batch had been written with other rows."""
    before = run.rows(batch_id)
    if before is not None and before.equals(rows):
        return False
    run.put(rows, batch_id)
    return before is not None


def clear(run: Run, batch_id: int) -> bool:
    """The batch has no rows in this table; whether it had been written with some."""
    before = run.rows(batch_id)
    if before is None or not before.num_rows:
        return False
    run.put(before.slice(0, 0), batch_id)
    return True


def write_tables(rows: Mapping[str, pa.Table], out: Path | str, run: str, batch_id: int) -> bool:
    """One batch of every table; whether it had been written with other rows."""
    instead = False
    for table in TABLES:
        place = run_at(f"{out}/{table}/run={run}")
        written = write(rows[table], place, batch_id) if table in rows else clear(place, batch_id)
        instead = instead or written
    return instead


def read(run: Path | str) -> Iterator[pa.Table]:
    """Every batch, in order."""
    return every(run_at(run))


def every(found: Run) -> Iterator[pa.Table]:
    """The rows of a batch that goes meanwhile lie in a later one, which may be younger than our list of them
    (`compaction.py`).
    """
    upto = -1
    while True:
        gone = False
        for number in [number for number in found.numbers() if number > upto]:
            rows = found.rows(number)
            gone, upto = gone or rows is None, number
            if rows is not None:
                yield rows
        if not gone:
            return


class Folders:
    """On this machine's disk: batch_id=N/part.parquet."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def numbers(self) -> list[int]:
        if not self.folder.is_dir():
            return []
        return sorted(int(path.name.partition("=")[2]) for path in self.folder.glob("batch_id=*"))

    def part(self, batch_id: int) -> Path:
        return self.folder / f"batch_id={batch_id}" / PART

    def rows(self, batch_id: int, columns: Iterable[str] | None = None) -> pa.Table | None:
        with suppress(FileNotFoundError), self.part(batch_id).open("rb") as file:
            return columns_of(file, columns)
        return None

    def written_s(self, batch_id: int) -> float:
        return self.part(batch_id).stat().st_mtime

    def put(self, rows: pa.Table, batch_id: int, written_s: float | None = None) -> None:
        folder = self.part(batch_id).parent
        there = folder.exists()
        beside = folder if there else folder.with_name(f".tmp-{folder.name}")
        if not there:
            shutil.rmtree(beside, ignore_errors=True)  # what a crash left
            beside.mkdir(parents=True)
        hidden = beside / f".{PART}.tmp"
        hidden.unlink(missing_ok=True)
        with os.fdopen(os.open(hidden, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o666), "wb") as file:  # as umask allows
            pq.write_table(rows, file)
        if written_s is not None:
            os.utime(hidden, (written_s, written_s))
        sync(hidden)
        hidden.replace(beside / PART)
        if not there:
            beside.rename(folder)
        sync(folder if there else folder.parent)

    def remove(self, batch_id: int) -> None:
        folder = self.part(batch_id).parent
        gone = folder.with_name(f".gone-{folder.name}")
        shutil.rmtree(gone, ignore_errors=True)
        folder.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)

    def sweep(self, batch_ids: list[int]) -> None:  # noqa: ARG002 - of these nothing is left
        """A file that was replaced is gone already, and who has it open may read on; a crash may have left a folder."""
        for gone in self.folder.glob(".gone-*"):
            shutil.rmtree(gone, ignore_errors=True)

    def summary(self) -> bytes | None:
        with suppress(FileNotFoundError):
            return (self.folder / SPANS).read_bytes()
        return None

    def keep_summary(self, said: bytes) -> None:
        hidden = self.folder / f".{SPANS}.tmp"
        hidden.write_bytes(said)
        hidden.replace(self.folder / SPANS)


def sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class Entries:
    """Object stores rename no folders: what counts is `_commits/N.json`, one small object per batch, and the file that
    it names. A file is never written again: other rows come as another file, and then the entry is replaced.
    """

    def __init__(self, system: fs.FileSystem, folder: str) -> None:
        self.system, self.folder = system, folder

    def numbers(self) -> list[int]:
        entries = names(self.system, f"{self.folder}/{COMMITS}")
        return sorted(int(name.removesuffix(".json")) for name in entries if name.endswith(".json") and name[0] != ".")

    def place(self, batch_id: int) -> str:
        return f"{self.folder}/{COMMITS}/{batch_id}.json"

    def entry(self, batch_id: int) -> dict[str, Any] | None:
        with suppress(FileNotFoundError), self.system.open_input_file(self.place(batch_id)) as file:
            found: dict[str, Any] = json.loads(file.read())
            return found
        return None

    def rows(self, batch_id: int, columns: Iterable[str] | None = None) -> pa.Table | None:
        for _ in range(2):  # the file it named may have been swept away, the entry long pointing to another
            if (said := self.entry(batch_id)) is None:
                return None
            with suppress(FileNotFoundError), self.system.open_input_file(f"{self.folder}/{said['files'][0]}") as file:
                return columns_of(file, columns)
        return None

    def written_s(self, batch_id: int) -> float:
        first = (self.entry(batch_id) or {}).get("written_s")
        return float(first or self.system.get_file_info(self.place(batch_id)).mtime.timestamp())

    def put(self, rows: pa.Table, batch_id: int, written_s: float | None = None) -> None:
        folder = f"batch_id={batch_id}"
        for path in (folder, COMMITS):
            self.system.create_dir(f"{self.folder}/{path}", recursive=True)
        there = names(self.system, f"{self.folder}/{folder}")
        name = next(name for n in range(len(there) + 1) if (name := f"part-{n}.parquet" if n else PART) not in there)
        put(self.system, f"{self.folder}/{folder}/{name}", as_parquet(rows))
        said = {"batch_id": batch_id, "files": [f"{folder}/{name}"], "rows": rows.num_rows, "written_s": written_s}
        put(self.system, self.place(batch_id), json.dumps(said).encode())

    def remove(self, batch_id: int) -> None:
        self.system.delete_file(self.place(batch_id))
        self.system.delete_dir(f"{self.folder}/batch_id={batch_id}")

    def sweep(self, batch_ids: list[int]) -> None:
        for number in batch_ids:
            there = names(self.system, f"{self.folder}/batch_id={number}")
            said = self.entry(number) if len(there) > 1 else None
            keep = set(said["files"]) if said else {f"batch_id={number}/{name}" for name in there}
            for name in there:
                if f"batch_id={number}/{name}" not in keep:
                    self.system.delete_file(f"{self.folder}/batch_id={number}/{name}")

    def summary(self) -> bytes | None:
        with suppress(FileNotFoundError), self.system.open_input_file(f"{self.folder}/{SPANS}") as file:
            return bytes(file.read())
        return None

    def keep_summary(self, said: bytes) -> None:
        put(self.system, f"{self.folder}/{SPANS}", said)


def put(system: fs.FileSystem, path: str, content: bytes) -> None:
    """A file under its name only when it is whole; a leading dot hides it until then."""
    folder, _, name = path.rpartition("/")
    hidden = f"{folder}/.{name}.tmp"
    with system.open_output_stream(hidden) as file:
        file.write(content)
    system.move(hidden, path)


def columns_of(file: Any, columns: Iterable[str] | None) -> pa.Table:
    whole = pq.ParquetFile(file)
    return whole.read(None if columns is None else [name for name in columns if name in whole.schema_arrow.names])


def as_parquet(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink)
    return bytes(sink.getvalue())


def names(system: fs.FileSystem, folder: str) -> set[str]:
    return {info.base_name for info in system.get_file_info(fs.FileSelector(folder, allow_not_found=True))}
