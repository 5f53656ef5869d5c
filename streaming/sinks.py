"""A batch's rows out of the query, onto the disk, and only then into the metrics.

Knows: which run a batch belongs to, and that its tables are written before anybody is told. Knows nothing of how a
folder appears (`batches.py`) or of what the rows say.
Rule: whoever is told of a batch may be told again, after a crash, and must take it as the same.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from streaming import batches
from streaming.tables import from_ipc
from streaming.tagged import Tagged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

QUERY_ID = "sql.streaming.queryId"  # Spark's name for the id a checkpoint keeps
Told = Mapping[str, pa.Table]
Listener = Callable[[Told], None]


def table_sink(out: Path | str, listener: Listener | None = None) -> "Callable[[DataFrame, int], None]":
    """For foreachBatch: one batch of tagged rows, one folder per table."""

    def write(batch: "DataFrame", batch_id: int) -> None:
        run = batch.sparkSession.sparkContext.getLocalProperty(QUERY_ID)
        rows = (Tagged(r.label, r.bucket, r.route, bytes(r.cell)) for r in batch.collect())
        told = write_batch(rows, out, str(run), batch_id)
        if listener:
            listener(told)

    return write


def write_batch(rows: Iterable[Tagged], out: Path | str, run: str, batch_id: int) -> Told:
    parts: dict[str, list[pa.Table]] = {}
    for row in rows:
        parts.setdefault(row.route, []).append(from_ipc(row.cell))
    told = {table: pa.concat_tables(rows) for table, rows in parts.items()}
    for table, rows_of_table in told.items():
        batches.write(rows_of_table, f"{out}/{table}/run={run}", batch_id)
    return told
