"""A batch's rows from the query to the tables, and only then to the metrics.

Spark repeats a batch after a crash. Its rows are mostly the same; where they are not, they replace the first ones in
every table, and the listener learns whether they did.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from wirecheck.streaming.spark import task_load
from wirecheck.streaming.spark.memory import release_plans
from wirecheck.streaming.steps.tagged import Tagged
from wirecheck.streaming.store import runs
from wirecheck.streaming.store.result_folder import Confirmed, Writer
from wirecheck.streaming.store.result_tables import from_ipc

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BatchTables = Mapping[str, pa.Table]
Listener = Callable[[BatchTables, bool, pa.Table | None], None]
"""Called with a batch's tables, whether they replace others, and the table of `task_load.py`."""
Before = Callable[[int], None]
"""Called with a batch's number before any of it is computed."""


def table_sink(
    writer: Writer, listener: Listener, before: Before, confirmed: Confirmed | None, inputs: Iterable[str]
) -> "Callable[[DataFrame, int], None]":
    """For foreachBatch: one batch of tagged rows, each to its table; with the first two, that this process began: the
    first one may repeat the last of an earlier process, and is then left as it is.
    """
    begun, first = {runs.NAME: runs.started(inputs)}, list[int]()

    def write(batch: "DataFrame", batch_id: int) -> None:
        before(batch_id)
        rows = batch.collect()
        fence = confirmed() if confirmed else {}
        tables = by_table(Tagged(r.label, r.bucket, r.route, bytes(r.cell)) for r in rows)
        loads = tables.pop(task_load.ROUTE, None)
        first[:] = first or [batch_id]
        more = begun if batch_id <= first[0] + 1 else {}
        listener(tables, writer.write(tables | more, batch_id, fence), loads)
        release_plans()

    return write


def by_table(rows: Iterable[Tagged]) -> dict[str, pa.Table]:
    parts: dict[str, list[pa.Table]] = {}
    for row in rows:
        parts.setdefault(row.route, []).append(from_ipc(row.cell))
    return {table: pa.concat_tables(rows) for table, rows in parts.items()}
