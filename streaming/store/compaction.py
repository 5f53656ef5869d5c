"""Result tables kept small: revisions that later ones replaced leave, once they are old.

Knows: that of every id only the last revision is needed, and a withdrawn one not even that. Knows nothing of what rows
say, nor of how a batch's rows give way to fewer (`batches.py`).
Rule: a row never moves. A batch's rows are replaced, in one step, by those that still hold, oldest batch first; so a
reader at any moment, and after any crash, sees each row that stands, once. A batch that has become empty goes a pass
later. What Spark may still repeat replaces nothing: it may say otherwise then.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wirecheck.streaming.store.batches import Run, run_at
from wirecheck.streaming.store.result_tables import TABLES

COLUMNS = ("id", "revision", "withdrawn", "state")
"""All that says what stands; a table has some of them."""


@dataclass(frozen=True)
class Batch:
    number: int
    ids: pa.Array
    revision: NDArray[np.int32]
    withdrawn: NDArray[np.bool_]


def compact(out: Path | str, run: str, before_s: float, committed: int) -> None:
    """Thin all tables of a run. Only batches written before this time (seconds since 1970) are touched, and only what
    batches up to `committed` say counts.
    """
    for table in TABLES.values():
        if table.revised:
            compact_table(run_at(f"{out}/{table.name}/run={run}"), before_s, committed)


def compact_table(run: Run, before_s: float, committed: int) -> None:
    numbers = [number for number in run.numbers() if number <= committed]
    run.sweep(numbers)
    found = [summary(number, rows) for number in numbers if (rows := run.rows(number, COLUMNS)) is not None]
    for batch, standing in zip(found, stand(found), strict=True):
        written_s = run.written_s(batch.number)
        if written_s >= before_s:
            return  # whatever comes behind is younger, or must stay behind it
        if not len(batch.ids):
            run.remove(batch.number)
        elif not standing.all():
            thin(run, batch.number, standing, written_s)


def summary(number: int, rows: pa.Table) -> Batch:
    names = set(rows.column_names)
    gone = "state" if "state" in names and "withdrawn" not in names else "withdrawn"
    withdrawn = np.zeros(rows.num_rows, np.bool_)
    if gone in names:
        told = pc.equal(rows[gone], "withdrawn") if gone == "state" else rows[gone]
        withdrawn = pc.fill_null(told, False).to_numpy(zero_copy_only=False).astype(np.bool_)
    return Batch(number, rows["id"].combine_chunks(), rows["revision"].to_numpy(), withdrawn)


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


def thin(run: Run, number: int, standing: NDArray[np.bool_], written_s: float) -> None:
    """What is left is as old as its batch."""
    rows = run.rows(number)
    assert rows is not None
    run.put(rows.filter(pa.array(standing)), number, written_s)
