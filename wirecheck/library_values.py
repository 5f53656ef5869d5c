"""What a message, a finding, a topic, a client and a verdict are in Python: values with names and types.

Knows: which names there are, and which table of results their rows lie in. Refuses to know where they come from
(library.py).
Rule: a value never changes, and holds nothing that the commands would not print.
"""

from __future__ import annotations

import datetime as dt  # noqa: TC003 - typing.get_type_hints finds it
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Frame:
    """Where in which capture."""

    source: str
    first: int
    """Number of the packet in its source, as Wireshark counts."""
    last: int


@dataclass(frozen=True, slots=True)
class Message:
    """One Kafka request or response as it was captured."""

    time: dt.datetime
    src: str
    """`ip:port`"""
    dst: str
    side: str
    """request or response"""
    api: str | None
    """Kafka's name; None where no release has this key, or the request was not seen."""
    key: int | None
    version: int | None
    correlation_id: int
    client_id: str | None
    """Of the request, of a response's request too."""
    size: int
    """Bytes, without the four that say so."""
    frame: Frame
    topics: tuple[str, ...]
    """The first two, by name, or by id where no message said its name by then."""
    errors: tuple[int, ...]
    """Kafka's error codes in it, each once; without 0."""
    latency_ms: float | None
    """Of a response, behind its request."""
    body: Mapping[str, Any] | None
    """The value, by Kafka's own names; None where it could not be read, or bodies are not asked for."""
    undecoded: str | None
    """Why it cannot be known what it says: something of it was not captured."""
    malformed: str | None
    """Why it is none, byte and field."""


@dataclass(frozen=True, slots=True)
class Change:
    """One object that an administrative request is about: who asked for what, and the answer."""

    time: dt.datetime
    """When the request was seen first."""
    action: str
    """The API, as Kafka calls it: DeleteTopics."""
    object_type: str
    """topic, broker, group, user, acl, quota, feature, controller, ..."""
    object: str
    """Its name; empty where the request means all objects of its type."""
    details: str
    """Counts and names of configurations, never a value."""
    principal: str | None
    """`User:alice`, out of the Envelope in which a broker forwards the request; None where none was seen."""
    client_id: str | None
    host: str
    """Address of the client."""
    via_broker: str | None
    """ID of the broker that the client asked, or its address."""
    error: str | None
    """Kafka's name of the error, NONE if the request was accepted, None where no answer was seen."""
    frame: Frame
    """The packet in which the request begins."""


@dataclass(frozen=True, slots=True)
class Side:
    """One piece of evidence: who said what."""

    time: str
    claim: str
    connection: str
    api: str | None
    version: int | None
    correlation_id: int | None
    frame: Frame


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong, or worth knowing, with its evidence."""

    id: str
    code: str
    name: str
    kind: str
    """violation, anomaly, information or visibility"""
    cluster: str | None
    topic: str | None
    topic_ids: tuple[str, ...]
    client_ids: tuple[str, ...]
    brokers: tuple[int, ...]
    summary: str
    first_seen: str
    last_seen: str
    count: int
    cause: str | None
    """Id of the finding it follows from."""
    consequences: tuple[str, ...]
    sides: tuple[Side, ...]


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic id under one name."""

    cluster: str | None
    name: str | None
    topic_id: str | None
    state: str
    """current, replaced, deleted or unresolved"""
    first_seen: str
    last_seen: str
    earlier_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Client:
    """Who speaks which versions."""

    cluster: str | None
    client_id: str | None
    address: str
    software_name: str | None
    software_version: str | None
    apis: Mapping[str, tuple[int, ...]]
    requests: int
    first_seen: str
    last_seen: str


class Values(Sequence[Value], Generic[Value]):
    """Findings, topics or clients; as a table their columns are those of docs/tables.md."""

    def __init__(self, values: Sequence[Value], table: str, rows: list[dict[str, Any]]) -> None:
        self._values, self._table, self._rows = tuple(values), table, rows

    @overload
    def __getitem__(self, index: int) -> Value: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Value]: ...

    def __getitem__(self, index: int | slice) -> Value | Sequence[Value]:
        return self._values[index]

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"<{len(self):,} {self._table}>"

    def to_arrow(self) -> pa.Table:
        """A row for each, in the same order."""
        import pyarrow as pa

        from wirecheck.streaming.store.result_tables import schema

        return pa.Table.from_pylist(self._rows, schema=schema(self._table))

    def to_pandas(self) -> pd.DataFrame:
        return self.to_arrow().to_pandas()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What captures say. `bool(verdict)`: no rule is broken."""

    sentence: str
    """All of it in one, with what it rests on."""
    coverage: Mapping[str, Any]
    findings: Values[Finding]
    topics: Values[Topic]
    clients: Values[Client]
    json: Mapping[str, Any]
    """The object that `wirecheck replay --engine local --format json` prints (docs/verdict.schema.json)."""

    def __bool__(self) -> bool:
        return not any(finding.kind == "violation" for finding in self.findings)
