"""Result tables in memory: of every id the last revision, however many there were.

Knows: that of the rows with one id the one of the highest revision holds, the later where two have the same. Knows
nothing of what rows say, nor of batches on a disk (`compaction.py` does there what this does here).
Rule: what is held grows with the ids, not with the revisions; a row that was withdrawn stays, for it is what holds.
"""

from collections.abc import Mapping
from pathlib import Path
from uuid import uuid4

import pyarrow as pa

from wirecheck.streaming.store.batches import write_tables
from wirecheck.streaming.store.result_tables import TABLES, latest_revisions
from wirecheck.streaming.store.run_result import Result

SPARE_ROWS = 10_000
"""So many revisions may be held beyond twice the rows that hold, or looking through them would cost more than they."""


class LatestRows:
    """Add each batch's rows, in order."""

    def __init__(self) -> None:
        self._parts: dict[str, list[pa.Table]] = {}
        self._rows: dict[str, int] = {}
        self._limit: dict[str, int] = {}

    def add(self, table: str, rows: pa.Table) -> None:
        self._parts.setdefault(table, []).append(rows)
        self._rows[table] = self._rows.get(table, 0) + rows.num_rows
        if TABLES[table].revised and self._rows[table] > self._limit.get(table, SPARE_ROWS):
            self._thin(table)

    def _thin(self, table: str) -> None:
        held = latest_revisions(pa.concat_tables(self._parts[table]))
        self._parts[table], self._rows[table] = [held], held.num_rows
        self._limit[table] = 2 * held.num_rows + SPARE_ROWS

    def tables(self) -> Mapping[str, pa.Table]:
        for table in self._parts:
            if TABLES[table].revised:
                self._thin(table)
        return {table: pa.concat_tables(parts) for table, parts in self._parts.items()}

    def result(self) -> Result:
        return Result.of({table: rows.to_pylist() for table, rows in self.tables().items()})

    def write(self, out: Path | str) -> None:
        """As the tables of one run, in one batch."""
        write_tables(self.tables(), out, str(uuid4()), 0)
