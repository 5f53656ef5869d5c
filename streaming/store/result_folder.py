"""A folder of result tables of either kind: Parquet (`batches.py`) or Delta (`delta_tables.py`).

A local folder holds one kind, an object store Delta tables only. Delta's library is loaded only where it is needed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from wirecheck.streaming.store import batches, storage
from wirecheck.streaming.store.batches import Folders, Tables
from wirecheck.streaming.store.result_tables import TABLES
from wirecheck.streaming.store.storage import at, is_local

PARQUET, DELTA = "parquet", "delta"
KINDS = (PARQUET, DELTA)


Confirmed = Callable[[], Mapping[str, int]]
"""What a commit is to say; raises where it may not be made."""


class Writer(Protocol):
    """All tables of a run, for the one who writes its batches."""

    def write(self, rows: Mapping[str, pa.Table], batch_id: int, fence: Mapping[str, Any] | None = None) -> bool:
        """One batch; whether it had been written with other rows. `fence` is kept with what it commits."""


def writer(out: Path | str, run: str, kind: str, confirmed: Confirmed | None = None) -> Writer:
    """`confirmed`: asked again where another process has written meanwhile; raises where it has taken over."""
    if kind == DELTA:
        from wirecheck.streaming.store.delta_tables import DeltaTables

        return DeltaTables(out, run, confirmed)
    return Tables(out, run)


def kind_for(out: Path | str, asked: str | None) -> str:
    """The kind that was asked for, or that this place has. Raises ValueError where it cannot have that."""
    if is_local(out):
        return asked or PARQUET
    if asked == PARQUET:
        raise ValueError("Parquet tables need a folder on this machine's disk; an object store has --tables delta")
    return DELTA


def loaded(kind: str) -> None:
    """What it takes to write such tables. Raises ModuleNotFoundError where that is not installed."""
    if kind == DELTA:
        from wirecheck.streaming.store import delta_tables  # noqa: F401


def kind_of(out: Path | str, tables: Iterable[str] = TABLES) -> str | None:
    """None where it holds none of these tables."""
    system, folder = at(out)
    for table in tables:
        there = storage.names(system, f"{folder}/{table}")
        if any(name.startswith("run=") for name in there):
            return PARQUET
        if "_delta_log" in there:
            return DELTA
    return None


def read(
    out: Path | str, table: str, run: str, columns: Iterable[str] | None = None, since_s: float = 0.0
) -> Iterator[pa.Table]:
    """Every row of a run, in the order of its batches, some at a time; all columns, or those of these it has. Of what
    was written before a time, in seconds since 1970, some or nothing.
    """
    if kind_of(out, (table,)) == DELTA:
        from wirecheck.streaming.store import delta_tables

        return delta_tables.read(out, table, run, columns, since_s)
    if not is_local(out):
        return iter(())
    return batches.read(Folders(f"{out}/{table}/run={run}"), columns, since_s)


def latest_run(out: Path) -> str:
    """The one that wrote last. Raises LookupError where none wrote anything."""
    if kind_of(out) == DELTA:
        from wirecheck.streaming.store import delta_tables

        run = delta_tables.latest_run(out)
    else:
        runs: dict[str, int] = {}
        for table in TABLES:
            for batch in (out / table).glob("run=*/batch_id=*"):
                run = batch.parent.name.partition("=")[2]
                runs[run] = max(runs.get(run, 0), batch.stat().st_mtime_ns)
        run = max(runs, key=lambda run: runs[run]) if runs else None
    if run is None:
        raise LookupError(f"{out}: holds no tables of a replay or a monitor")
    return run
