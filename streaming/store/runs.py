"""Which run wrote which tables, since when and of what: a row for each start of a process that writes.

Readers of Parquet see the rows of every run in a folder; the current one is that of the last start.
"""

import time
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pyarrow as pa

from wirecheck.capture.frames_file_name import text_of
from wirecheck.streaming.store.batches import Folders
from wirecheck.streaming.store.result_folder import latest_run
from wirecheck.streaming.store.result_tables import EXCHANGES, RUNS, TABLES, schema, table_of

NAME = RUNS.name


def started(inputs: Iterable[str]) -> pa.Table:
    """The row of a process that begins to write now."""
    now_ns = time.time_ns()
    row = {"id": str(now_ns), "revision": 1, "label": "", "started": now_ns, "inputs": [*map(text_of, inputs)]}
    return table_of(NAME, [{**row, "version": version_here()}])


def version_here() -> str | None:
    """None where it is not installed as a package."""
    try:
        return version("wirecheck")
    except PackageNotFoundError:
        return None


def note(out: Path, inputs: Iterable[str]) -> None:
    """Add the row to the run that wrote last, of a replay, which has one batch at the end; and a file without rows for
    each table that has none, so that readers of Parquet find its columns.
    """
    run = latest_run(out)
    Folders(f"{out}/{NAME}/run={run}").put(started(inputs), 0)
    for table in TABLES.keys() - {EXCHANGES.name}:
        place = Folders(f"{out}/{table}/run={run}")
        if not place.numbers():
            place.put(schema(table).empty_table(), 0)
