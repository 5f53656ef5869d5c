"""For programs and notebooks: messages of a capture one by one, and a verdict as values.

    for message in wirecheck.messages("incident.pcapng", error=True): print(message.time, message.api, message.errors)
    verdict = wirecheck.replay("incident.pcapng"); verdict.findings[0].summary; verdict.topics.to_pandas()

Knows: what a message, a finding, a topic and a client are called in Python, and what of a result they are made of.
Refuses to know how any of it is found: that is what the commands do, and nothing here does it otherwise.
Rule: typed values, nothing written anywhere, nothing loaded before it is asked for. What cannot be read is an
InputError; what could be read in part is used, with a warning for the rest.
"""

from __future__ import annotations

import datetime as dt
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from os import PathLike
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from wirecheck.decode.show.message_filter import Moment
    from wirecheck.streaming.store.run_result import Result

Path = str | PathLike[str]
Value = TypeVar("Value")
NS_PER_MS = 1_000_000
AS_IN_LINE = (
    "src", "dst", "side", "api", "key", "version", "correlation_id", "client_id", "size",
    "body", "undecoded", "malformed",
)  # fmt: skip


class InputError(ValueError):
    """Nothing could be read, or nothing like it can be asked for; the message says what and why."""


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
    """The object that `wirecheck replay --format json` prints, but for who judged it."""

    def __bool__(self) -> bool:
        return not any(finding.kind == "violation" for finding in self.findings)


def messages(
    *paths: Path,
    api: str | Sequence[str] = (),
    topic: str | None = None,
    client: str | None = None,
    connection: str | None = None,
    side: str | None = None,
    ports: Sequence[int] = (),
    since: dt.datetime | None = None,
    until: dt.datetime | None = None,
    error: bool = False,
    bodies: bool = True,
    keep_records: bool = False,
) -> Iterator[Message]:
    """Messages of captures, or of folders of an agent's frames, in order of time, read as they are asked for.

    Options are those of `wirecheck decode`. Without `bodies` they come several times as fast.
    """
    with as_input_error():
        from wirecheck.decode.show.message_filter import Filter
        from wirecheck.decode.show.message_lines import Reading

        apis = (api,) if isinstance(api, str) else tuple(api)
        wanted = Filter(
            apis,
            connection,
            topic,
            side,
            ports=tuple(ports),
            client=client,
            since=moment(since),
            until=moment(until),
            error=error,
        )
        reading = Reading(contents=keep_records, bodies=bodies or topic is not None, summary=True)
    return lines(paths, wanted, reading)


def lines(paths: Sequence[Path], wanted: Any, reading: Any) -> Iterator[Message]:
    from wirecheck.commands.frame_tables import tables
    from wirecheck.commands.inputs import places
    from wirecheck.decode.show import message_lines

    with as_input_error():
        named = places([str(path) for path in paths])
        if not named:
            raise InputError("name a capture, or a folder of frames")
        for line in message_lines.of(warned(tables(named, [])), wanted, reading):
            yield message(line)


def warned(every: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """The same tables; what says that some of a file could not be read is a warning."""
    from wirecheck.capture.frames import INPUT_ERROR

    for table in every:
        for kind, source, reason in zip(
            *(table[name].to_pylist() for name in ("kind", "source", "reason")), strict=True
        ):
            if kind == INPUT_ERROR:
                warnings.warn(f"{source}: {reason}", stacklevel=4)
        yield table


def message(line: dict[str, Any]) -> Message:
    """The value of a line with a summary."""
    latency_ns, summary = line["latency_ns"], line["summary"]
    same: dict[str, Any] = {name: line.get(name) for name in AS_IN_LINE}
    return Message(
        time=dt.datetime.fromisoformat(line["time"]),
        frame=Frame(**line["frame"]),
        topics=summary.topics,
        errors=summary.errors,
        latency_ms=None if latency_ns is None else latency_ns / NS_PER_MS,
        **same,
    )


def moment(time: dt.datetime | None) -> Moment | None:
    from wirecheck.decode.show.message_filter import Moment

    if time is None:
        return None
    since = (time if time.tzinfo else time.replace(tzinfo=dt.UTC)) - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    return Moment(((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds) * 1000)


def replay(*paths: Path, cluster: str = "default", ports: Sequence[int] = ()) -> Verdict:
    """Judge captures, or folders of an agent's frames, as `wirecheck replay --engine local` does."""
    from pathlib import Path as Place

    from wirecheck.commands.inputs import frames_of, judged_locally, places
    from wirecheck.streaming.steps.settings import Settings

    with as_input_error(), tempfile.TemporaryDirectory(prefix="wirecheck-") as scratch:
        named = [str(path) for path in paths]
        if not places(named):
            raise InputError("name a capture, or a folder of frames")
        with frames_of(named, Place(scratch) / "frames", cluster, keep_records=False) as frames:
            result = judged_locally(frames, Settings(ports=frozenset(ports))).result()
    return verdict(result)


def verdict(result: Result) -> Verdict:
    from wirecheck.dashboards.verdict import sentence

    told = result.json()
    told["verdict"] = sentence(told)
    for error in told["coverage"]["input_errors"]:
        warnings.warn(error, stacklevel=3)
    return Verdict(
        told["verdict"],
        told["coverage"],
        values(Finding, "findings", told, result),
        values(Topic, "topics", told, result),
        values(Client, "clients", told, result),
        told,
    )


def values(kind: type[Value], table: str, told: Mapping[str, Any], result: Result) -> Values[Value]:
    """Rows of one table, as values and as they lie in the table, in one order."""
    from wirecheck.streaming.store.result_tables import TABLES
    from wirecheck.streaming.store.run_result import by_columns

    shown = TABLES[table].shown
    assert shown is not None
    return Values([value(kind, row) for row in told[table]], table, by_columns(result.rows[table], *shown.order_by))


def value(kind: type[Value], row: Mapping[str, Any]) -> Value:
    return kind(**{field.name: plain(field.name, row[field.name]) for field in fields(kind)})  # type: ignore[arg-type]


def plain(name: str, found: Any) -> Any:
    match name, found:
        case "sides", list():
            return tuple(Side(**{**side, "frame": Frame(**side["frame"])}) for side in found)
        case "apis", dict():
            return {api: tuple(versions) for api, versions in found.items()}
        case _, list():
            return tuple(found)
    return found


@contextmanager
def as_input_error() -> Iterator[None]:
    """What a command would end with."""
    from click import ClickException

    try:
        yield
    except ClickException as error:
        raise InputError(error.format_message()) from error
    except InputError:
        raise
    except ValueError as error:
        raise InputError(str(error)) from error
