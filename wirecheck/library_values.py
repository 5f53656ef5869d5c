"""The values and tables that the library returns, with their fields, types and meanings.

A value never changes, and holds nothing that the commands would not print.
"""

from __future__ import annotations

import datetime as dt  # noqa: TC003 - typing.get_type_hints finds it
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from wirecheck.decode.kafka_error import KafkaError
    from wirecheck.frame import Frame
    from wirecheck.story.seen import Activity, Client, Coverage, Recreation, Topic
    from wirecheck.story.verdict import CardAction, CardCause, CardEntry, CardEvidence, CardHarm, Finding, Marks

Value = TypeVar("Value")
SHOWN_ROWS = 20
"""Of a table in a notebook."""
SHOWN_CHARACTERS = 300
"""Of a cell in a notebook."""


@dataclass(frozen=True, slots=True)
class Message:
    """One Kafka request or response as it was captured."""

    time: dt.datetime
    """When its first byte was captured, in UTC, to the microsecond."""
    src: str
    """Sender, as `ip:port`."""
    dst: str
    """Receiver, as `ip:port`."""
    side: str
    """request or response."""
    api: str | None
    """Kafka's name; None where no release has this key, or the request was not seen."""
    key: int | None
    """Number of the API; None where the request was not seen."""
    version: int | None
    """Version of the API; None where the request was not seen."""
    correlation_id: int
    """Number that joins a response to its request on one connection."""
    client_id: str | None
    """Client ID of the request; a response has that of its request."""
    size: int
    """Bytes, without the four bytes of the size itself."""
    frame: Frame
    """The packets that carry it."""
    topics: tuple[str, ...]
    """The first two topics, by name, or by ID where no message had given the name by then."""
    errors: tuple[KafkaError, ...]
    """Kafka's error codes in it, each once; without NONE."""
    latency_ms: float | None
    """Of a response: milliseconds since its request."""
    body: Mapping[str, Any] | None
    """The value, by Kafka's own names; None where it could not be read, or with `bodies=False`."""
    undecoded: str | None
    """Why the content cannot be known: part of it was not captured, or no release has this API or version."""
    malformed: str | None
    """Why it is not a valid message: byte and field."""


@dataclass(frozen=True, slots=True)
class Card:
    """Who is hurt, why, what to do, and what proves it: of one cause, or of one finding that stands alone."""

    headline: str
    """The harm if a client or a partition is hurt, else the cause."""
    harm: CardHarm
    """sentence, clients, briefly, partitions, possibly, others."""
    cause: CardCause
    """sentence, time_ns, by: what happened, when, and who did it."""
    action: CardAction
    """sentence, commands: what to do, with commands to paste."""
    evidence: CardEvidence
    """frames that prove it, and the command that cuts them out."""
    just_before: tuple[str, ...]
    """Granted changes of the same topic, user or right within 60 s before the first rejection."""
    since_then: tuple[str, ...]
    """Where a topic was created again: what its clients have done since; `recreations` has all of them."""
    code: str
    """Code of the check: TID001."""
    kind: str
    """violation, anomaly, information or visibility."""
    findings: tuple[str, ...]
    """IDs of its findings, without those that follow from them."""

    @classmethod
    def of(cls, entry: CardEntry) -> Card:
        parts = {part.name: getattr(entry.card, part.name) for part in fields(entry.card)}
        return cls(**parts, code=entry.code, kind=entry.kind, findings=entry.findings)


class Table(ABC):
    """Rows that go to pandas, polars, DuckDB and whatever else reads Arrow, without a copy where these can."""

    @abstractmethod
    def _reader(self) -> pa.RecordBatchReader: ...

    @abstractmethod
    def _shown(self) -> tuple[Sequence[str], Iterable[Sequence[object]], str]:
        """Of a notebook's table: the head, at least the first rows, and a line below."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The Arrow PyCapsule interface: `polars.DataFrame(table)`, `duckdb.sql("from table")`."""
        return self._reader().__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> pa.Table:
        return self._reader().read_all()

    def to_pandas(self) -> pd.DataFrame:
        """Needs pandas."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """Needs polars."""
        import polars as pl

        return pl.DataFrame(self.to_arrow())

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return html_table(*self._shown())


class Messages(Table):
    """Messages of captures: an iterable of `Message`, and a table of the same without bodies.

    Each iteration, and each table, reads the captures from their beginning.
    """

    def __init__(self, one_by_one: Callable[[], Iterator[Message]], reader: Callable[[], pa.RecordBatchReader]) -> None:
        self._one_by_one, self._open = one_by_one, reader

    def __iter__(self) -> Iterator[Message]:
        return self._one_by_one()

    def _reader(self) -> pa.RecordBatchReader:
        return self._open()

    def _shown(self) -> tuple[Sequence[str], Iterable[Sequence[object]], str]:
        names = ("time", "src", "dst", "api", "version", "side", "client_id", "topics", "errors", "latency_ms", "frame")
        rows = [
            [
                *(getattr(one, name) for name in names[:8]),
                [error.name for error in one.errors],
                one.latency_ms,
                one.frame.first,
            ]
            for one in islice(self, SHOWN_ROWS + 1)
        ]
        return names, rows[:SHOWN_ROWS], "more messages follow" if len(rows) > SHOWN_ROWS else f"messages: {len(rows)}"


class Values(Sequence[Value], Table, Generic[Value]):
    """Findings, topics, clients or changes; each is a value, and all are a table."""

    def __init__(self, values: Sequence[Value], name: str, made: Callable[[], pa.Table]) -> None:
        """`made`: makes the table, with rows in the order of the values."""
        self._values, self._name, self._made = tuple(values), name, made

    @cached_property
    def _table(self) -> pa.Table:
        return self._made()

    @overload
    def __getitem__(self, index: int) -> Value: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Value]: ...

    def __getitem__(self, index: int | slice) -> Value | Sequence[Value]:
        return self._values[index]

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"<{self._name}: {len(self):,}>"

    def filter(self, **values: object) -> Values[Value]:
        """Those whose fields have these values: `findings.filter(kind="violation", topic="orders")`.

        A field that holds several passes if the value is among them. AttributeError for a field that does not exist.
        """
        chosen = [i for i, one in enumerate(self._values) if all(has(one, name, each) for name, each in values.items())]
        return Values([self._values[i] for i in chosen], self._name, lambda: self._table.take(chosen))

    def _reader(self) -> pa.RecordBatchReader:
        return self._table.to_reader()

    def _shown(self) -> tuple[Sequence[str], Iterable[Sequence[object]], str]:
        names = [name for name in self._table.column_names if name not in NOT_SHOWN]
        rows = ([row[name] for name in names] for row in self._table.slice(0, min(SHOWN_ROWS, len(self))).to_pylist())
        more = len(self) - SHOWN_ROWS
        return names, rows, f"{self._name}: {len(self):,}" + (f", {more:,} not shown" if more > 0 else "")


NOT_SHOWN = {"sides", "times", "apis", "evidence", "partitions", "run", "batch_id"}
"""Columns that a notebook's table leaves out: they are tables themselves, or of the store."""


@dataclass(frozen=True, slots=True, repr=False)
class Verdict:
    """The result of checking captures. `bool(verdict)`: neither mark is red."""

    sentence: str
    """The result in one sentence."""
    marks: Marks
    """ids_and_versions and work: the two questions, each with its mark and sentence."""
    coverage: Coverage
    """What was read: frames, messages, decoded_messages, unseen_bytes, encrypted_connections, ..."""
    cards: Values[Card]
    """Harm, cause, action and evidence of each cause, the worst harm first."""
    findings: Values[Finding]
    """What is wrong, or worth knowing."""
    topics: Values[Topic]
    """Every topic ID that was seen."""
    clients: Values[Client]
    """Every client that was seen, with whether it gets its work done (`work`)."""
    activities: Values[Activity]
    """What came of the requests of each client, by API."""
    recreations: Values[Recreation]
    """What each client did with a topic that was deleted and created again."""
    json: Mapping[str, Any]
    """The object that `wirecheck replay --engine local --format json` prints (docs/verdict.schema.json)."""

    def __bool__(self) -> bool:
        return all(one.mark != "violation" for _, one in self.marks.both)

    def __repr__(self) -> str:
        return f"<Verdict {self.sentence!r}, findings: {len(self.findings):,}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the sentence, and the findings."""
        rows = [(one.code, one.kind, one.topic, one.first_seen, one.summary, one.next) for one in self.findings]
        head = ("code", "kind", "topic", "since", "finding", "what to do")
        table = html_table(head, rows[:SHOWN_ROWS], f"findings: {len(rows):,}") if rows else ""
        return f"<p><b>{text_of(self.sentence)}</b></p>{table}"


def has(value: object, name: str, expected: object) -> bool:
    found = getattr(value, name)
    return expected in found if isinstance(found, tuple) else found == expected


def table_of(kind: type[Value], found: Sequence[Value], name: str) -> Values[Value]:
    """Values of plain fields as a table: `first_ns` is the column `first_seen`, a frame is `source` and `frame`."""
    import pyarrow as pa

    from wirecheck.wording import TIMES

    plain: dict[str, Any] = {
        "str": pa.string(), "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_(),
        "tuple[str, ...]": pa.list_(pa.string()), "tuple[int, ...]": pa.list_(pa.int64()),
    }  # fmt: skip
    columns, rows = [], [dict[str, Any]() for _ in found]
    for field in fields(kind):  # type: ignore[arg-type]
        cells = [getattr(one, field.name) for one in found]
        column, arrow = TIMES.get(field.name, field.name), plain.get(str(field.type).removesuffix(" | None"))
        if column != field.name:
            arrow = pa.timestamp("ns", "UTC")
        parts = [(column, arrow, cells)]
        if field.type == "Frame":
            parts = [
                ("source", pa.string(), [cell.source for cell in cells]),
                ("frame", pa.int64(), [cell.first for cell in cells]),
            ]
        for title, of_type, of_rows in parts:
            columns.append((title, of_type))
            for row, cell in zip(rows, of_rows, strict=True):
                row[title] = cell
    return Values(found, name, lambda: pa.Table.from_pylist(rows, schema=pa.schema(columns)))


def html_table(head: Sequence[str], rows: Iterable[Sequence[object]], below: str) -> str:
    """Text of the wire is escaped, and cut where it is long."""
    heads = "".join(f"<th>{text_of(name)}</th>" for name in head)
    body = "".join(f"<tr>{''.join(f'<td>{text_of(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table><p>{text_of(below)}</p>"


def text_of(cell: object) -> str:
    if isinstance(cell, list | tuple):
        cell = ", ".join(map(str, cell))
    text = "" if cell is None else f"{cell:.2f}" if isinstance(cell, float) else str(cell)
    shown = "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)
    return escape(shown if len(shown) <= SHOWN_CHARACTERS else f"{shown[:SHOWN_CHARACTERS]} ...")
