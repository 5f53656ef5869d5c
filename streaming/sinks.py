"""A batch's rows onto the disk, once.

Knows: where a table's files of one run and batch lie, and that a folder appears complete or not at all. Knows nothing
of what the rows say.
Rule: batch N of a run is written once: Spark repeats a batch after a crash, and a folder that is there stays.
"""

import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from streaming.tables import from_ipc
from streaming.tagged import Tagged

QUERY_ID = "sql.streaming.queryId"  # Spark's name for the id a checkpoint keeps


def table_sink(out: Path) -> Callable[[DataFrame, int], None]:
    """For foreachBatch: one batch of tagged rows, one folder per table."""

    def write(batch: DataFrame, batch_id: int) -> None:
        run = batch.sparkSession.sparkContext.getLocalProperty(QUERY_ID)
        rows = (Tagged(r.label, r.bucket, r.route, bytes(r.cell)) for r in batch.collect())
        write_batch(rows, out, str(run), batch_id)

    return write


def write_batch(rows: Iterable[Tagged], out: Path, run: str, batch_id: int) -> None:
    by_table: dict[str, list[pa.Table]] = {}
    for row in rows:
        by_table.setdefault(row.route, []).append(from_ipc(row.cell))
    for table, parts in by_table.items():
        write_once(pa.concat_tables(parts), out / table / f"run={run}" / f"batch_id={batch_id}")


def write_once(rows: pa.Table, folder: Path) -> None:
    if folder.exists():
        return
    beside = folder.with_name(f".tmp-{folder.name}")
    shutil.rmtree(beside, ignore_errors=True)  # what a crash left
    beside.mkdir(parents=True)
    pq.write_table(rows, beside / "part.parquet")
    with (beside / "part.parquet").open("rb") as file:
        os.fsync(file.fileno())
    beside.rename(folder)
