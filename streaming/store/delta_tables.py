"""Result tables as Delta tables, partitioned by the day on which rows were written, and one of the open findings.

A batch is one commit in each table in which it has rows (delta-rs, no Java); the `txn` action of a run states the last
one. A repeated batch changes nothing if it is equal, else it replaces the first rows in one commit. Four columns before
those of the result table state a row's origin (`ORIGIN`).
"""

import datetime as dt
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Schema, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, TableNotFoundError

from wirecheck.judge.results.result_table import TIME
from wirecheck.streaming.store.result_tables import RUNS, TABLES, latest_revisions, schema
from wirecheck.streaming.store.storage import is_local, spelled

DAY, RUN, BATCH, WRITTEN = "date", "run", "batch_id", "written_at"
ORIGIN = pa.schema(
    [
        pa.field(DAY, pa.date32(), metadata={"comment": "Day on which the row was written; the table's partitions."}),
        pa.field(RUN, pa.string(), metadata={"comment": "The run that wrote it: one for each checkpoint."}),
        pa.field(BATCH, pa.int64(), metadata={"comment": "The batch of that run."}),
        pa.field(WRITTEN, TIME, metadata={"comment": "When it was written first."}),
    ]
)
NOW = "findings_now"
"""Readers without a catalogue can share no view: the open findings of the run that wrote last are a table."""
SETTINGS: Mapping[str, str | None] = {
    "delta.checkpointInterval": "100",
    "delta.deletedFileRetentionDuration": "interval 1 hours",
    "delta.logRetentionDuration": "interval 1 hours",
}
"""Of a new table. Delta's own week and month would keep a file for every batch of them."""
TRIES = 10
"""Commits are tried so often: housekeeping commits at the same time, and the table is then read again."""
LATER = PostCommitHookProperties(cleanup_expired_logs=False)
"""A commit lists no log to clean it: `delta_upkeep.py` does."""
ATONCE = 4
"""Tables that are written beside each other."""
COLUMNS = {**{name: pa.schema([*ORIGIN, *schema(name)]) for name in TABLES}, NOW: schema("findings")}


def located(where: Path | str) -> tuple[str, dict[str, str]]:
    """A place as delta-rs spells it. Credentials and endpoint come from where the stores' own tools have them."""
    return spelled(where), {} if is_local(where) else {"allow_http": "true"}  # without TLS is what was asked for


def opened(out: Path | str, table: str) -> DeltaTable:
    """One that is there. Raises TableNotFoundError."""
    place, options = located(out)
    return DeltaTable(f"{place}/{table}", storage_options=options)


def made(out: Path | str, table: str) -> DeltaTable:
    """One that is there, or is made; columns that this release knows besides are added, null in what is there."""
    try:
        table_there = opened(out, table)
    except TableNotFoundError:
        place, options = located(out)
        partitions = [DAY] if table in TABLES else None
        meaning = TABLES[table].meaning if table in TABLES else "The open findings of the run that wrote last."
        table_there = DeltaTable.create(
            f"{place}/{table}", COLUMNS[table], mode="ignore", partition_by=partitions, name=table,
            description=meaning, configuration=SETTINGS, storage_options=options,
        )  # fmt: skip
    names = {field.name for field in table_there.schema().fields}
    if missing := [field for field in COLUMNS[table] if field.name not in names]:
        table_there.alter.add_columns(Schema.from_arrow(pa.schema(missing)).fields)
    return table_there


def commit(run: str, batch_id: int, fence: Mapping[str, Any]) -> CommitProperties:
    """`fence` stands in the commit's metadata, beside how far the run has written this table."""
    words = {f"wirecheck.{name}": str(value) for name, value in fence.items()}
    return CommitProperties(custom_metadata=words, app_transactions=[Transaction(run, batch_id)])


class DeltaTables:
    """All tables of a run, for the one who writes its batches."""

    def __init__(self, out: Path | str, run: str, confirmed: Callable[[], Mapping[str, int]] | None = None) -> None:
        self.out, self.run, self.confirmed = out, run, confirmed
        self.tables: dict[str, DeltaTable] = {}
        self.open: pa.Table | None = None
        """The findings that were open after the last batch; None until they are read."""

    def write(self, rows: Mapping[str, pa.Table], batch_id: int, fence: Mapping[str, Any] | None = None) -> bool:
        """One batch; whether it had been written with other rows. The first one under a lease that was taken over is
        committed in every table, with or without rows: an earlier owner that wakes up within it commits nothing more.
        """
        if not self.tables and (fence or {}).get("fence", 1) > 1:
            rows = {**{name: schema(name).empty_table() for name in TABLES}, **rows}
        with ThreadPoolExecutor(ATONCE) as threads:
            if not self.tables:
                tables = threads.map(lambda name: made(self.out, name), COLUMNS)
                self.tables = dict(zip(COLUMNS, tables, strict=True))
            replaced = threads.map(lambda name: self.write_one(name, rows.get(name), batch_id, fence or {}), TABLES)
            replaced_in = {name for name, one in zip(TABLES, replaced, strict=True) if one}
        self.write_open(rows.get("findings"), batch_id, fence or {}, replaced="findings" in replaced_in)
        return bool(replaced_in)

    def write_one(self, name: str, rows: pa.Table | None, batch_id: int, fence: Mapping[str, Any]) -> bool:
        for left in reversed(range(TRIES)):
            table = self.tables[name]
            try:
                known = table.transaction_version(self.run)
                if known is None or known < batch_id:
                    if rows is not None:
                        self.append(table, rows, batch_id, fence)
                    return False
                if name == RUNS.name:  # another process wrote this batch
                    return False
                return self.replace(table, name, rows, batch_id, fence)
            except CommitFailedError:
                if not left:
                    raise
                if self.confirmed:  # written meanwhile: by housekeeping, or by a later owner
                    self.confirmed()
                table.update_incremental()
        return False

    def append(self, table: DeltaTable, rows: pa.Table, batch_id: int, fence: Mapping[str, Any]) -> None:
        full = self.with_origin(rows, batch_id, time.time_ns() // 1000)
        write(table, full, commit(self.run, batch_id, fence), mode="append")

    def replace(
        self, table: DeltaTable, name: str, rows: pa.Table | None, batch_id: int, fence: Mapping[str, Any]
    ) -> bool:
        """A batch that was written: whether with other rows, which these replace."""
        rows = schema(name).empty_table() if rows is None else rows
        first_rows = rows_of(table, name, (pc.field(RUN) == self.run) & (pc.field(BATCH) == batch_id))
        if first_rows.select(rows.column_names).equals(rows):
            return False
        written = pc.min(first_rows[WRITTEN]).value if first_rows.num_rows else time.time_ns() // 1000
        put(
            table, self.with_origin(rows, batch_id, written), of_batches(self.run, batch_id, batch_id),
            commit(self.run, batch_id, fence),
        )  # fmt: skip
        return True

    def with_origin(self, rows: pa.Table, batch_id: int, written_us: int) -> pa.Table:
        written = pa.scalar(written_us, pa.timestamp("us")).cast(TIME)
        day = pa.scalar(written_us // 86_400_000_000, pa.int32()).cast(pa.date32())
        origin = [
            pa.repeat(value, rows.num_rows) for value in (day, self.run, pa.scalar(batch_id, pa.int64()), written)
        ]
        return pa.table([*origin, *rows.columns], schema=pa.schema([*ORIGIN, *rows.schema]))

    def write_open(self, rows: pa.Table | None, batch_id: int, fence: Mapping[str, Any], *, replaced: bool) -> None:
        """Write the table of open findings again if this batch has some."""
        table = self.tables[NOW]
        done = table.transaction_version(self.run)
        if self.open is None or replaced:
            parts = list(read(self.out, "findings", self.run))
            self.open = latest_revisions(pa.concat_tables([schema("findings").empty_table(), *parts]))
        elif rows is not None:
            self.open = latest_revisions(pa.concat_tables([self.open, rows]))
        self.open = self.open.filter(pc.not_equal(self.open["state"], "withdrawn"))
        if done is None or replaced or (rows is not None and done < batch_id):
            write(table, self.open, commit(self.run, batch_id, fence), mode="overwrite")


def of_batches(run: str, first: int, last: int) -> str:
    return f"{RUN} = '{run}' AND {BATCH} >= {first} AND {BATCH} <= {last}"


def put(table: DeltaTable, rows: pa.Table, instead_of: str, properties: CommitProperties | None = None) -> None:
    """These rows, instead of those of which that is true: in one commit."""
    if rows.num_rows:
        write(table, rows, properties, mode="overwrite", predicate=instead_of)
    else:
        table.delete(instead_of, commit_properties=properties, post_commithook_properties=LATER)


def write(table: DeltaTable, rows: pa.Table, properties: CommitProperties | None, **how: Any) -> None:
    write_deltalake(table, rows, commit_properties=properties, post_commithook_properties=LATER, **how)


def rows_of(table: DeltaTable, name: str, condition: pc.Expression, columns: list[str] | None = None) -> pa.Table:
    """In the order in which they were written, with where they come from."""
    dataset = table.to_pyarrow_dataset()
    columns_read = pa.schema([field for field in COLUMNS[name] if columns is None or field.name in {BATCH, *columns}])
    rows = dataset.to_table(
        columns=[field for field in columns_read.names if field in dataset.schema.names], filter=condition
    )
    absent = [field for field in columns_read if field.name not in rows.column_names]
    for field in absent:  # a table of an earlier release, that is only read
        rows = rows.append_column(field, pa.nulls(rows.num_rows, field.type))
    return rows.take(pc.sort_indices(rows[BATCH])).select(columns_read.names).cast(columns_read)


def read(
    out: Path | str, name: str, run: str, columns: Iterable[str] | None = None, since_s: float = 0.0
) -> Iterator[pa.Table]:
    """Every row of a run in order, as the columns of a result table, or these of them: a day at a time. Nothing of the
    days before the one of `since_s`.
    """
    names = [column for column in schema(name).names if columns is None or column in columns]
    try:
        table = opened(out, name)
    except TableNotFoundError:
        return
    first = dt.datetime.fromtimestamp(since_s, dt.UTC).date()
    for day in (day for day in days(table) if day.as_py() >= first):
        rows = rows_of(table, name, (pc.field(DAY) == day) & (pc.field(RUN) == run), names)
        if rows.num_rows:
            yield rows.select(names)


def days(table: DeltaTable) -> list[pa.Scalar]:
    actions = pa.table(table.get_add_actions(flatten=True))
    column = f"partition.{DAY}"
    column_days = actions[column].cast(pa.date32()) if column in actions.column_names else pa.array([], pa.date32())
    return [pa.scalar(day, pa.date32()) for day in sorted(set(column_days.to_pylist()))]


def latest_run(out: Path | str) -> str | None:
    """The run that wrote last."""
    last: dict[str, int] = {}
    for name in TABLES:
        try:
            table = opened(out, name)
        except TableNotFoundError:
            continue
        for day in days(table)[-1:]:
            rows = table.to_pyarrow_dataset().to_table(columns=[RUN, WRITTEN], filter=pc.field(DAY) == day)
            for row in rows.group_by(RUN).aggregate([(WRITTEN, "max")]).to_pylist():
                written = row[f"{WRITTEN}_max"].timestamp()
                last[row[RUN]] = max(last.get(row[RUN], written), written)
    return max(last, key=lambda run: last[run]) if last else None
