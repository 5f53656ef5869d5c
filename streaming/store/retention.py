"""Results that are older than anybody asks for: whole files of what is counted, rows of what is over.

Knows: which tables grow with time for ever, and by what a row of each is old. Knows nothing of how it came to be.
Rule: what may still change, or still holds, stays: topics that are there, partitions, clusters, totals. A row leaves
with all its revisions, the oldest first, so that no reader at any moment, and after any crash, takes one that was
replaced for the last. Frames that come later may bring it back, whole.
"""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from wirecheck.streaming.store import spans
from wirecheck.streaming.store.batches import Folders, run_at
from wirecheck.streaming.store.latest_rows import LatestRows

BY_FILE = ("coverage", "exchanges")
"""Their rows are old when they were written long ago: of a connection that is open they are told again and again."""
BY_ROW = ("findings", "clients", "topics")
"""Theirs when that of which they tell was seen for the last time long ago, by capture time."""
OVER = ("deleted", "former", "replaced")
"""Topics of other states stay."""


def retire(out: Path | str, run: str, before_s: float, committed: int) -> None:
    """What is older than this time, in seconds since 1970. Only batches up to `committed` are touched."""
    for table in BY_FILE:
        retire_files(run_at(f"{out}/{table}/run={run}"), before_s, committed)
    for table in BY_ROW:
        retire_rows(run_at(f"{out}/{table}/run={run}"), table, before_s, committed)


def retire_files(run: Folders, before_s: float, committed: int) -> None:
    numbers = [number for number in run.numbers() if number <= committed]
    known = spans.read(run, numbers)
    for span in known:
        if span.written_s < before_s:
            for number in [number for number in numbers if span.first <= number <= span.last]:
                run.remove(number)
                numbers.remove(number)
    upto = known[-1].last if known else -1
    for number in (number for number in numbers if number > upto):
        if run.written_s(number) >= before_s:
            return
        run.remove(number)


def retire_rows(run: Folders, table: str, before_s: float, committed: int) -> None:
    numbers = [number for number in run.numbers() if number <= committed]
    held = LatestRows()
    for number in numbers:
        if (rows := run.rows(number, ("id", "revision", "last_seen", "state"))) is not None:
            held.add(table, rows)
    gone = expired(table, held.tables().get(table), before_s)
    if gone is None or not len(gone):
        return
    for number in numbers:
        rows = run.rows(number)
        stays = pc.invert(pc.is_in(rows["id"], gone)) if rows is not None else None
        if rows is not None and not pc.all(stays, min_count=0).as_py():
            run.put(rows.filter(stays), number, run.written_s(number))
            run.sweep([number])


def expired(table: str, rows: pa.Table | None, before_s: float) -> pa.Array | None:
    """The ids of those that leave."""
    if rows is None:
        return None
    old = pc.less(rows["last_seen"], pa.scalar(round(before_s * 1e6)).cast(rows["last_seen"].type))
    if table == "topics":
        old = pc.and_(old, pc.is_in(rows["state"], pa.array(OVER)))
    return rows["id"].filter(pc.fill_null(old, False)).combine_chunks()
