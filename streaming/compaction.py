"""Result tables kept small: revisions that later ones replaced leave, once they are old.

Knows: that of every id only the last revision is needed, and a withdrawn one not even that. Knows nothing of what rows
say. On this machine's disk only: an object store's own lifecycle rules cannot know which revision is the last.
Rule: a row never moves. A batch's file is replaced, in one rename, by one without the rows that no longer hold, oldest
batch first; so a reader at any moment, and after any crash, sees each row that stands, once. A file that has become
empty goes a pass later.
"""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from streaming.batches import PART, sync
from streaming.tables import TABLES

KEPT_WHOLE = ("exchanges",)
"""Tables without revisions."""


@dataclass(frozen=True)
class Batch:
    folder: Path
    ids: pa.Array
    revision: NDArray[np.int32]
    withdrawn: NDArray[np.bool_]
    written_s: float

    @property
    def part(self) -> Path:
        return self.folder / PART


def compact(out: Path, run: str, before_s: float) -> None:
    """Thin all tables of a run; only batches written before this time (seconds since 1970) are touched."""
    for table in TABLES:
        if table not in KEPT_WHOLE:
            compact_table(out / table / f"run={run}", before_s)


def compact_table(run: Path, before_s: float) -> None:
    if not run.is_dir():
        return
    folders = sorted(run.glob("batch_id=*"), key=lambda path: int(path.name.partition("=")[2]))
    found = [read(folder) for folder in folders]
    for batch, standing in zip(found, stand(found), strict=True):
        if batch.written_s >= before_s:
            return  # whatever comes behind is younger, or must stay behind it
        if not len(batch.ids):
            remove(batch.folder)
        elif not standing.all():
            thin(batch, standing)


def read(folder: Path) -> Batch:
    names = set(pq.read_schema(folder / PART).names)
    gone = "state" if "state" in names and "withdrawn" not in names else "withdrawn"
    rows = pq.read_table(folder / PART, columns=[c for c in ("id", "revision", gone) if c in names])
    withdrawn = np.zeros(rows.num_rows, np.bool_)
    if gone in names:
        told = pc.equal(rows[gone], "withdrawn") if gone == "state" else rows[gone]
        withdrawn = pc.fill_null(told, False).to_numpy(zero_copy_only=False).astype(np.bool_)
    ids = rows["id"].combine_chunks()
    return Batch(folder, ids, rows["revision"].to_numpy(), withdrawn, (folder / PART).stat().st_mtime)


def stand(batches: list[Batch]) -> list[NDArray[np.bool_]]:
    """Per batch, which of its rows are the last revision of their id and not withdrawn."""
    if not batches:
        return []
    codes = pa.concat_arrays([batch.ids for batch in batches]).dictionary_encode().indices.to_numpy()
    revision = np.concatenate([batch.revision for batch in batches])
    withdrawn = np.concatenate([batch.withdrawn for batch in batches])
    newest = np.zeros(int(codes.max(initial=-1)) + 1, np.int32)
    np.maximum.at(newest, codes, revision)
    standing = (revision == newest[codes]) & ~withdrawn
    return np.split(standing, np.cumsum([len(batch.ids) for batch in batches])[:-1])


def thin(batch: Batch, standing: NDArray[np.bool_]) -> None:
    hidden = batch.folder / f".{PART}.tmp"
    pq.write_table(pq.read_table(batch.part).filter(pa.array(standing)), hidden)
    os.utime(hidden, (batch.written_s, batch.written_s))  # it is as old as its batch
    sync(hidden)
    hidden.replace(batch.part)


def remove(folder: Path) -> None:
    gone = folder.with_name(f".gone-{folder.name}")
    shutil.rmtree(gone, ignore_errors=True)
    folder.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)
