"""A batch's rows from the query to the tables, and only then to the metrics.

Spark repeats a batch after a crash. Its rows are mostly the same; where they are not, they replace the first ones in
every table, and the listener learns whether they did.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from wirecheck.streaming.spark import task_load
from wirecheck.streaming.spark.task_load import Loads
from wirecheck.streaming.steps.tagged import Tagged
from wirecheck.streaming.store import result_folder
from wirecheck.streaming.store.result_folder import Confirmed
from wirecheck.streaming.store.result_tables import from_ipc

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from wirecheck.streaming.store.result_folder import Writer

BatchTables = Mapping[str, pa.Table]
Listener = Callable[[BatchTables, bool, Loads], None]
Before = Callable[[int], None]
"""Told of a batch before any of it is computed."""


def table_sink(
    out: Path | str,
    run: str,
    listener: Listener,
    before: Before,
    confirmed: Confirmed | None = None,
    *,
    kind: str = result_folder.PARQUET,
) -> "Callable[[DataFrame, int], None]":
    """For foreachBatch: one batch of tagged rows, each to its table."""
    writer: Writer = result_folder.writer(out, run, kind, confirmed)

    def write(batch: "DataFrame", batch_id: int) -> None:
        before(batch_id)
        loads: list[Tagged] = []
        rows = (Tagged(r.label, r.bucket, r.route, bytes(r.cell)) for r in batch.collect())
        rest = task_load.set_aside(rows, loads)
        fence = confirmed() if confirmed else {}
        tables = by_table(rest)
        instead = writer.write(tables, batch_id, fence)
        listener(tables, instead, task_load.loads(loads))

    return write


def by_table(rows: Iterable[Tagged]) -> BatchTables:
    parts: dict[str, list[pa.Table]] = {}
    for row in rows:
        parts.setdefault(row.route, []).append(from_ipc(row.cell))
    return {table: pa.concat_tables(rows) for table, rows in parts.items()}
