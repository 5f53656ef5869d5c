"""What a result table is: one value with its name, its columns, where its rows come from and how it is shown.

Rule: code that reads, writes, compacts, lists or documents a table uses this value and names no table. Tables only
grow: a column keeps its name, type and meaning. Times are timestamp[us] in UTC (Spark rejects nanoseconds).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

Body = dict[str, Any]
Change = Callable[[Any], Any]


class Column(NamedTuple):
    name: str
    type: pa.DataType
    meaning: str
    """One sentence."""


class ResultRow(NamedTuple):
    """One row as it should be now, without label and revision."""

    table: str
    id: str
    body: Body

    @classmethod
    def of(cls, table: str, key: str, cluster: str | None, /, **columns: Any) -> "ResultRow":
        """A row that is not withdrawn, about a cluster, or about no known one."""
        return cls(table, key, {"withdrawn": False, "cluster": cluster, **columns})


@dataclass(frozen=True)
class ResultTable:
    name: str
    meaning: str
    """One or two sentences."""
    columns: tuple[Column, ...]
    rows: Mapping[str, str] = field(default_factory=dict)
    """From what its rows come: a space of the ledger to the function, module.name, that makes those of one subject.
    Empty where checks or a step of the job make them.
    """
    reads: Mapping[str, str] = field(default_factory=dict)
    """By space what these functions read of the ledger, in the words of the catalogue (`checks/catalogue.py`): there is
    no row without a claim of a kind that is marked as needed.
    """
    order_by: tuple[str, ...] = ()
    """Columns by which the JSON of a result lists its rows; what is null comes last. Empty: it does not list them."""
    news: Callable[[Body], Any] | None = None
    """What of a row is emitted at once when it changes; the rest waits. None: all of it is emitted at once."""
    in_result: bool = True
    """Whether it is part of a verdict, and read back."""
    bounded: bool = False
    """Whether it has one row `others` that counts everything that is not kept."""

    @property
    def revised(self) -> bool:
        """Whether a later row of one id replaces an earlier one."""
        return any(column.name == "revision" for column in self.columns)


TEXT, TEXTS, NUMBERS = pa.string(), pa.list_(pa.string()), pa.list_(pa.int32())
TIME = pa.timestamp("us", tz="UTC")
REVISION = (
    Column("id", TEXT, "Identity of the row: a later revision replaces an earlier one."),
    Column("revision", pa.int32(), "Increases with every revision of an ID."),
    Column("label", TEXT, "The agent's cluster label."),
)
CLUSTER = Column("cluster", TEXT, "Cluster ID if known, else the label; null if the endpoint matches no known cluster.")
SPAN = (
    Column("first_seen", TIME, "Capture time of the first exchange that the row is based on."),
    Column("last_seen", TIME, "Capture time of the last exchange that the row is based on."),
)


def rows_of(table: pa.Table) -> list[Body]:
    """Rows of a table that was written; times are nanoseconds since 1970, as where rows are made."""
    names, columns = table.column_names, [cells_of(column) for column in table.columns]
    return [dict(zip(names, cells, strict=True)) for cells in zip(*columns, strict=True)]


def cells_of(column: pa.ChunkedArray) -> list[Any]:
    if not has_time(column.type):
        return column.to_pylist()  # type: ignore[no-any-return]
    if pa.types.is_timestamp(column.type):  # Python's times cost 6 us each
        return pc.multiply(column.cast(pa.int64()), 1000).to_pylist()  # type: ignore[no-any-return]
    made = in_ns(column.type)
    return [None if cell is None else made(cell) for cell in column.cast(with_integers(column.type)).to_pylist()]


@cache
def has_time(kind: pa.DataType) -> bool:
    """Whether a value of this type may have a time in it."""
    if pa.types.is_nested(kind):
        return any(has_time(part.type) for part in fields_of(kind))
    return bool(pa.types.is_timestamp(kind))


def with_integers(kind: pa.DataType) -> pa.DataType:
    """The same type, with integers where times stand."""
    if pa.types.is_list(kind):
        return pa.list_(with_integers(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(part.name, with_integers(part.type)) for part in fields_of(kind)])
    return pa.int64() if pa.types.is_timestamp(kind) else kind


def in_ns(kind: pa.DataType) -> Change:
    """Microseconds to nanoseconds, wherever a time stands."""
    return of_times(kind, lambda time: time * 1000)


def of_times(kind: pa.DataType, change: Change) -> Change:
    """What changes the times in a value of a type that has some, and is not null."""
    if pa.types.is_timestamp(kind):
        return change
    if pa.types.is_list(kind):
        of_item = of_times(kind.value_type, change)
        return lambda items: [None if item is None else of_item(item) for item in items]
    timed = [(part.name, of_times(part.type, change)) for part in fields_of(kind) if has_time(part.type)]
    return lambda cell: {**cell, **{name: made(cell[name]) for name, made in timed if cell[name] is not None}}


def fields_of(kind: pa.DataType) -> list[pa.Field]:
    return [kind.field(number) for number in range(kind.num_fields)]
