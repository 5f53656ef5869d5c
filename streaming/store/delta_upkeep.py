"""Keeps Delta tables small: files of a day are merged, old revisions and old results leave.

What is rewritten replaces exactly the batches it was read from, in one commit: a reader sees each row once. Earlier
versions stay readable (time travel) as long as replaced revisions are retained. Batches that Spark may repeat stay.
"""

import datetime as dt
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, TableNotFoundError

from wirecheck.streaming.store.compaction import BY_FILE, BY_ROW, DAY_S, MOST_ROWS, groups, retire_rows, withdrawn
from wirecheck.streaming.store.delta_tables import BATCH, DAY, NOW, RUN, of_batches, opened, put, rows_of
from wirecheck.streaming.store.result_tables import TABLES, latest_revisions

TARGET_BYTES = 32 << 20
"""Of a file of rows without revisions: one that has come to that is left alone."""
THINNED = "wirecheck.thinned"
"""A property of the table: of which run, and on which day, revisions of all days were held against each other."""
LEAST_HOURS = 1
"""Files that are not yet committed are younger, and so are those a reader has just listed."""


@dataclass(frozen=True)
class DeltaPart:
    """A file: batches of one run, written on one day."""

    day: dt.date
    first: int
    last: int
    rows: int

    @property
    def written_s(self) -> float:
        """To the day: files of different days are never merged."""
        return self.day.toordinal() * DAY_S

    begun_s = written_s


@dataclass(frozen=True)
class UpkeepTerms:
    """By when what goes, in seconds since 1970."""

    now_s: float
    retain_s: float
    """Versions with revisions that were replaced stay for so long."""
    retire_s: float | None = None
    """Results that were written, or seen last, before leave; None for never."""
    most_bytes: int | None = None
    """That all files of the run may have together; None for any number."""


def keep(out: Path | str, run: str, terms: UpkeepTerms, committed: int) -> int:
    """One pass over all tables of a run. Only batches up to `committed` are touched. By how many bytes its files exceed
    what they may have.
    """
    excess = 0 if terms.most_bytes is None else fit(out, run, terms.most_bytes, terms.now_s)
    for name in (*TABLES, NOW):
        try:
            table = opened(out, name)
        except TableNotFoundError:
            continue
        with suppress(CommitFailedError):  # a batch came in the midst of it: the next pass goes on
            if name in TABLES:
                keep_one(UpkeepPass(table, name, run, committed), terms)
            clean(table, max(LEAST_HOURS, math.ceil(terms.retain_s / 3600)))
    return excess


def fit(out: Path | str, run: str, most_bytes: int, now_s: float) -> int:
    """As `compaction.fit`, by days: today's files stay."""
    tables = {}
    for name in TABLES:
        with suppress(TableNotFoundError):
            tables[name] = opened(out, name)
    sizes = defaultdict(Counter[dt.date], {name: bytes_by_day(table, run) for name, table in tables.items()})
    excess = sum(sum(of_table.values()) for of_table in sizes.values()) - most_bytes
    today = dt.datetime.fromtimestamp(now_s, dt.UTC).date()
    for day in sorted({day for name in BY_FILE for day in sizes[name]}):
        if excess <= 0 or day >= today:
            break
        for name in BY_FILE:
            if size := sizes[name][day]:
                with suppress(CommitFailedError):
                    tables[name].delete(f"{RUN} = '{run}' AND {DAY} = '{day}'")
                    excess -= size
    return max(excess, 0)


def bytes_by_day(table: DeltaTable, run: str) -> Counter[dt.date]:
    """Of the files that hold rows of this run alone."""
    actions = pa.table(table.get_add_actions(flatten=True))
    found: Counter[dt.date] = Counter()
    if {f"min.{RUN}", f"max.{RUN}", f"partition.{DAY}"}.issubset(actions.column_names):
        columns = (f"partition.{DAY}", "size_bytes", f"min.{RUN}", f"max.{RUN}")
        for day, size, *runs in zip(*(actions[name].to_pylist() for name in columns), strict=True):
            found[day] += size if runs == [run, run] else 0
    return found


def keep_one(one: "UpkeepPass", terms: UpkeepTerms) -> None:
    if terms.retire_s is not None:
        one.retire(terms.retire_s)
    one.gather()
    today = dt.datetime.fromtimestamp(terms.now_s, dt.UTC).date()
    done = f"{one.run} {today}"
    if TABLES[one.name].revised and one.table.metadata().configuration.get(THINNED) != done:
        one.thin(today)
        one.table.alter.set_table_properties({THINNED: done}, raise_if_not_exists=False)


def clean(table: DeltaTable, hours: int) -> None:
    """Files and commits that no reader can ask for any more."""
    names = ("delta.deletedFileRetentionDuration", "delta.logRetentionDuration")
    retention = dict.fromkeys(names, f"interval {hours} hours")
    kept = table.metadata().configuration
    if any(kept.get(name) != value for name, value in retention.items()):
        table.alter.set_table_properties(retention)
    table.vacuum(hours, dry_run=False, enforce_retention_duration=False, full=True)
    table.cleanup_metadata()


@dataclass
class UpkeepPass:
    """Over one table."""

    table: DeltaTable
    name: str
    run: str
    committed: int

    def parts(self) -> list[DeltaPart]:
        """The run's files whose batches Spark will not repeat, in the order of the batches."""
        self.table.update_incremental()
        actions = pa.table(self.table.get_add_actions(flatten=True))
        columns = {f"min.{RUN}", f"max.{RUN}", f"min.{BATCH}", f"max.{BATCH}", f"partition.{DAY}", "num_records"}
        if not columns.issubset(actions.column_names):
            return []  # no file at all
        parts = [
            DeltaPart(row[f"partition.{DAY}"], row[f"min.{BATCH}"], row[f"max.{BATCH}"], row["num_records"])
            for row in actions.select(sorted(columns)).to_pylist()
            if row[f"min.{RUN}"] == row[f"max.{RUN}"] == self.run and row[f"max.{BATCH}"] <= self.committed
        ]
        return list(apart(sorted(parts, key=lambda part: (part.first, part.last))))

    def gather(self) -> None:
        """Small files of a day, with the older ones that are not much larger."""
        if not TABLES[self.name].revised:
            self.table.optimize.compact(target_size=TARGET_BYTES)
            return
        for group in groups(self.parts(), MOST_ROWS, 0):
            if len(group) > 1:
                self.put(group, latest_revisions(self.rows(group)))

    def thin(self, today: dt.date) -> None:
        """Of all days: revisions that a later file replaces, the oldest first, and what was withdrawn and is over."""
        parts, later, leave = self.parts(), pa.array([], pa.string()), {}
        for part in reversed(parts):
            ids = self.rows([part], ["id"])["id"].unique()
            if pc.any(pc.is_in(ids, later)).as_py():
                leave[part] = later
            later = pc.unique(pa.concat_arrays([later, ids]))
        for part in parts:
            rows = before = self.rows([part])
            if part in leave:
                rows = rows.filter(pc.invert(pc.is_in(rows["id"], leave[part])))
            if part.day < today:
                rows = latest_revisions(rows)
                rows = rows.filter(pc.invert(withdrawn(rows)))
            if rows.num_rows < before.num_rows:
                self.put([part], rows)

    def retire(self, before_s: float) -> None:
        """Whole days of what is counted; of what is over all revisions, the oldest first."""
        day = dt.datetime.fromtimestamp(before_s, dt.UTC).date()
        if self.name in BY_FILE and any(part.day < day for part in self.parts()):
            self.table.delete(f"{RUN} = '{self.run}' AND {DAY} < '{day}'")
        if self.name in BY_ROW:
            retire_rows(
                self.name,
                self.parts(),
                before_s,
                lambda part, columns: self.rows([part], columns),
                lambda part, rows: self.put([part], rows),
            )

    def rows(self, parts: Sequence[DeltaPart], columns: list[str] | None = None) -> pa.Table:
        condition = (pc.field(DAY) == pa.scalar(parts[0].day, pa.date32())) & (pc.field(RUN) == self.run)
        condition &= (pc.field(BATCH) >= parts[0].first) & (pc.field(BATCH) <= parts[-1].last)
        rows = rows_of(self.table, self.name, condition, columns)
        return rows.drop_columns([BATCH]) if columns is not None else rows

    def put(self, parts: Sequence[DeltaPart], rows: pa.Table) -> None:
        """Instead of their files."""
        instead_of = f"{DAY} = '{parts[0].day}' AND {of_batches(self.run, parts[0].first, parts[-1].last)}"
        put(self.table, rows, instead_of)


def apart(parts: Sequence[DeltaPart]) -> Iterator[DeltaPart]:
    """Files of one commit, over the same batches, as one."""
    current: DeltaPart | None = None
    for part in parts:
        if current is not None and part.first <= current.last:
            current = replace(current, last=max(current.last, part.last), rows=current.rows + part.rows)
        else:
            if current is not None:
                yield current
            current = part
    if current is not None:
        yield current
