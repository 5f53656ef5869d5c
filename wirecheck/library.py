"""For programs and notebooks: messages of a capture one by one, and a verdict as values.

    for message in wirecheck.messages("incident.pcapng", error=True): print(message.time, message.api, message.errors)
    verdict = wirecheck.replay("incident.pcapng"); verdict.findings[0].summary; verdict.topics.to_pandas()

Knows: what of a line and of a result the values (library_values.py) are made of. Refuses to know how any of it is
found: that is what the commands do, and nothing here does it otherwise.
Rule: typed values, nothing written anywhere, nothing loaded before it is asked for. What cannot be read is an
InputError; what could be read in part is used, with a warning for the rest.
"""

from __future__ import annotations

import datetime as dt
import tempfile
import warnings
from contextlib import contextmanager
from dataclasses import fields
from os import PathLike
from typing import TYPE_CHECKING, Any

from wirecheck.library_values import Change, Client, Finding, Frame, Message, Side, Topic, Value, Values, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path as Place

    import pyarrow as pa

    from wirecheck.decode.show.error_rows import ErrorRow
    from wirecheck.decode.show.message_filter import Moment
    from wirecheck.decode.show.subject_facts import Fact
    from wirecheck.decode.show.traffic import Traffic
    from wirecheck.streaming.store.run_result import Result

Path = str | PathLike[str]
NS_PER_MS = 1_000_000
AS_IN_LINE = (
    "src", "dst", "side", "api", "key", "version", "correlation_id", "client_id", "size",
    "body", "undecoded", "malformed",
)  # fmt: skip


class InputError(ValueError):
    """Nothing could be read, or nothing like it can be asked for; the message says what and why."""


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


def changes(*paths: Path, ports: Sequence[int] = ()) -> list[Change]:
    """Who changed what in captures, or in folders of an agent's frames, as `wirecheck changes` lists it, by time."""
    with as_input_error():
        from wirecheck.commands.frame_tables import tables
        from wirecheck.decode.show.changes import changes as changes_of

        found = changes_of(warned(tables(inputs_of(paths), [])), ports)
    return [changed(one) for one in found.merged()]


def errors(*paths: Path, ports: Sequence[int] = ()) -> list[ErrorRow]:
    """Errors by client, API and topic, worst first, as `wirecheck errors --all` lists them."""
    from wirecheck.decode.show.error_rows import error_rows

    return error_rows(traffic(paths, ports))


def why(name: str, *paths: Path, kind: str | None = None, ports: Sequence[int] = ()) -> dict[str, list[Fact]]:
    """What captures show of a topic, client, group or broker, by section, as `wirecheck why` prints it.

    `kind`: topic, group, broker or client, where the name is several of them. InputError where it is none.
    """
    with as_input_error():
        from wirecheck.commands.frame_tables import tables
        from wirecheck.commands.why import kind_of
        from wirecheck.decode.show.subject import subject_of
        from wirecheck.decode.show.subject_facts import sections

        subject = subject_of(name, warned(tables(inputs_of(paths), [])), ports)
        return sections(subject, kind_of(subject, kind)[0])


def traffic(paths: Sequence[Path], ports: Sequence[int]) -> Traffic:
    with as_input_error():
        from wirecheck.commands.frame_tables import tables
        from wirecheck.decode.show.traffic import counted

        return counted(warned(tables(inputs_of(paths), [])), ports)


def inputs_of(paths: Sequence[Path]) -> list[Place]:
    from wirecheck.commands.inputs import places

    named = places([str(path) for path in paths])
    if not named:
        raise InputError("name a capture, or a folder of frames")
    return named


def changed(one: Any) -> Change:
    same = {field.name: getattr(one, field.name) for field in fields(Change) if field.name not in {"time", "frame"}}
    source, number = one.frame
    time = dt.datetime.fromtimestamp(0, dt.UTC) + dt.timedelta(microseconds=one.time_ns // 1000)
    return Change(time=time, frame=Frame(source, number, number), **same)


def lines(paths: Sequence[Path], wanted: Any, reading: Any) -> Iterator[Message]:
    from wirecheck.commands.frame_tables import tables
    from wirecheck.decode.show import message_lines

    with as_input_error():
        for line in message_lines.of(warned(tables(inputs_of(paths), [])), wanted, reading):
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

    from wirecheck.commands.inputs import files_of, frames_of, judged_locally, places
    from wirecheck.commands.replay import captured_of
    from wirecheck.streaming.steps.settings import Settings

    with as_input_error(), tempfile.TemporaryDirectory(prefix="wirecheck-") as scratch:
        named = [str(path) for path in paths]
        if not places(named):
            raise InputError("name a capture, or a folder of frames")
        with frames_of(named, Place(scratch) / "frames", cluster, keep_records=False) as frames:
            result = judged_locally(frames, Settings(ports=frozenset(ports))).result()
            captured = captured_of(files_of(frames))
    return verdict(result, tuple(named), captured)


def verdict(result: Result, inputs: tuple[str, ...], captured: Mapping[str, Any] | None) -> Verdict:
    from wirecheck.commands.replay import about, for_programs
    from wirecheck.dashboards.verdict import sentence

    told = result.json()
    told |= {"verdict": sentence(told), "engine": "local", "captured": captured, **about(inputs)}
    told |= for_programs(told, inputs)
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
    from wirecheck.commands.ending import Stop

    try:
        yield
    except Stop as error:
        raise InputError(error.format_message()) from error
    except InputError:
        raise
    except ValueError as error:
        raise InputError(str(error)) from error
