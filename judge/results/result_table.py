"""What a result table is: one value with its name, its columns, where its rows come from and how it is shown.

Rule: code that reads, writes, compacts, lists or documents a table uses this value and names no table. Tables only
grow: a column keeps its name, type and meaning. Times are timestamp[us] in UTC (Spark rejects nanoseconds).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa

Body = dict[str, Any]


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
class Shown:
    """How a table is shown in the JSON of a result."""

    order_by: tuple[str, ...]
    """Columns; what is null comes last."""
    hidden: frozenset[str] = frozenset({"id", "revision", "label", "withdrawn"})
    """Columns that the JSON leaves out."""
    as_object: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Lists of structs that the JSON writes as one object: column to the fields of its names and values."""


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
    shown: Shown | None = None
    """None: the JSON does not have it, or not row by row."""
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
