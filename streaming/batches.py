"""A run's batches of one table, as they lie under TABLE/run=ID: written once, read back in order.

Knows: how a batch appears whole or not at all, on this machine's disk (a folder renamed) and on any other file system
of Arrow's (a file, then its entry in `_commits`). Knows nothing of what rows say, except that a batch which is gone
held nothing any more (`compaction.py`).
Rule: batch N is written once: a folder that is there, or an entry in `_commits`, stays.
"""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from streaming.storage import Place, at, is_local, local

PART = "part.parquet"
COMMITS = "_commits"


def write(rows: pa.Table, run: Path | str, batch_id: int) -> None:
    """`run`: the folder TABLE/run=ID, a path or a URI."""
    if is_local(run):
        write_renamed(rows, local(run) / f"batch_id={batch_id}")
    else:
        write_committed(rows, at(run), batch_id)


def write_renamed(rows: pa.Table, folder: Path) -> None:
    if folder.exists():
        return
    beside = folder.with_name(f".tmp-{folder.name}")
    shutil.rmtree(beside, ignore_errors=True)  # what a crash left
    beside.mkdir(parents=True)
    pq.write_table(rows, beside / PART)
    sync(beside / PART)
    beside.rename(folder)
    sync(folder.parent)


def sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_committed(rows: pa.Table, place: Place, batch_id: int) -> None:
    """Object stores rename no folders: what counts is the entry in `_commits`, one small object per batch."""
    system, run = place
    entry = f"{run}/{COMMITS}/{batch_id}.json"
    if system.get_file_info(entry).type != fs.FileType.NotFound:
        return
    folder = f"{run}/batch_id={batch_id}"
    for path in (folder, f"{run}/{COMMITS}"):
        system.create_dir(path, recursive=True)
    put(system, f"{folder}/{PART}", as_parquet(rows))
    said = {"batch_id": batch_id, "files": [f"batch_id={batch_id}/{PART}"], "rows": rows.num_rows}
    put(system, entry, json.dumps(said).encode())


def put(system: fs.FileSystem, path: str, content: bytes) -> None:
    """A file under its name only when it is whole; a leading dot hides it until then."""
    folder, _, name = path.rpartition("/")
    hidden = f"{folder}/.{name}.tmp"
    with system.open_output_stream(hidden) as file:
        file.write(content)
    system.move(hidden, path)


def as_parquet(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink)
    return bytes(sink.getvalue())


def read(run: Path | str) -> Iterator[pa.Table]:
    """Every batch, in order. One that goes meanwhile held no row that stands."""
    system, inside = at(run)
    for number in numbers(system, inside):
        with suppress(FileNotFoundError), system.open_input_file(f"{inside}/batch_id={number}/{PART}") as file:
            yield pq.read_table(file)


def numbers(system: fs.FileSystem, run: str) -> list[int]:
    """The batches that readers may see."""
    there = names(system, run)
    if COMMITS in there:
        entries = names(system, f"{run}/{COMMITS}")
        return sorted(int(name.removesuffix(".json")) for name in entries if name.endswith(".json") and name[0] != ".")
    return sorted(int(name.partition("=")[2]) for name in there if name.startswith("batch_id="))


def names(system: fs.FileSystem, folder: str) -> set[str]:
    return {info.base_name for info in system.get_file_info(fs.FileSelector(folder, allow_not_found=True))}
