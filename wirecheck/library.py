"""For programs and notebooks: messages of a capture as values and tables, and a verdict.

    for message in wirecheck.messages("incident.pcapng", error=True): print(message.time, message.api, message.errors)
    frame = wirecheck.messages("incident.pcapng").to_pandas()
    verdict = wirecheck.replay("incident.pcapng"); verdict.findings[0].summary; verdict.topics.to_pandas()

Nothing is written, and nothing loaded before it is asked for. What cannot be read is an InputError at the call; what
could be read in part is used, with a warning.
"""

from __future__ import annotations

import datetime as dt
import pathlib
import warnings
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeVar

from wirecheck.library_values import (
    Card,
    Message,
    Messages,
    Values,
    Verdict,
    table_of,
)
from wirecheck.session.session import InputError, Session, drafts
from wirecheck.wording import TimeSpan

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa

    from wirecheck.decode.show.message_filter import Filter
    from wirecheck.decode.show.message_lines import Reading
    from wirecheck.questions.changes import Change
    from wirecheck.questions.error_rows import ErrorRow
    from wirecheck.questions.group_rows import GroupRow
    from wirecheck.questions.latency_rows import LatencyRow
    from wirecheck.questions.subject_facts import Fact
    from wirecheck.questions.timeline import Event
    from wirecheck.questions.traffic import Traffic
    from wirecheck.questions.traffic_diff import Difference
    from wirecheck.story.seen import Client, Coverage, TopicDescription
    from wirecheck.story.verdict import CardEntry
    from wirecheck.story.verdict import Verdict as Judged
    from wirecheck.streaming.store.run_result import Result

Path = str | PathLike[str]
Time = str | dt.datetime
"""A time as the commands take it, `00:20:03` or `2026-11-21T00:20:03Z`, or a datetime; UTC unless it has a zone."""
Value = TypeVar("Value")
NS_PER_MS = 1_000_000
NOTHING_NAMED = "name a capture, or a folder of frames"
AS_IN_LINE = (
    "src", "dst", "side", "api", "key", "version", "correlation_id", "client_id", "size",
    "body", "undecoded", "malformed",
)  # fmt: skip


def messages(
    *paths: Path,
    api: str | Sequence[str] = (),
    topic: str | None = None,
    client: str | None = None,
    connection: str | None = None,
    side: str | None = None,
    ports: Sequence[int] = (),
    since: Time | None = None,
    until: Time | None = None,
    error: bool = False,
    bodies: bool = True,
    keep_records: bool = False,
    keylog: Path | Sequence[Path] = (),
    dialect: str | Sequence[str] = (),
) -> Messages:
    """Messages of captures, or of folders of an agent's frames, in order of time, read as they are asked for.

    Options are those of `wirecheck decode`. Iterating gives `Message` objects; without `bodies` they come several times
    as fast. As a table (`to_arrow`, `to_pandas`, `to_polars`, DuckDB) messages have no bodies and come fastest.
    Raises InputError if a path cannot be read or an option is wrong.
    """
    with as_input_error():
        from wirecheck.decode.show.message_filter import Filter
        from wirecheck.decode.show.message_lines import Reading

        def chosen() -> Filter:
            apis = (api,) if isinstance(api, str) else tuple(api)
            return Filter(
                apis, connection, topic, side, ports=tuple(ports), client=client, since=span(since), until=span(until),
                error=error,
            )  # fmt: skip

        chosen()
        dialects = known(dialect)
        source = Source(paths, several(keylog))
    shown = Reading(dialects, contents=keep_records, bodies=bodies or topic is not None, summary=True)
    return Messages(
        lambda: one_by_one(source, chosen(), shown),
        lambda: by_columns(source, chosen(), Reading(dialects, bodies=False, summary=True)),
    )


def known(dialect: str | Sequence[str]) -> tuple[str, ...]:
    """Drafts by their names. Raises InputError where one is unknown."""
    from wirecheck.decode.dialect import DIALECTS

    named = [dialect] if isinstance(dialect, str) else dialect
    for name in named:
        if name not in DIALECTS:
            raise InputError(f"{name}: no such dialect; there are {', '.join(DIALECTS)}")
    return drafts(named)


class Source:
    """Captures and folders that were found readable when they were named."""

    def __init__(self, paths: Sequence[Path], key_logs: Sequence[Path]) -> None:
        from wirecheck.session.inputs import places

        self._paths, self._key_logs = places([str(path) for path in paths]), key_logs
        if not self._paths:
            raise InputError(NOTHING_NAMED)
        self._opened: Iterator[pa.Table] | None = self._open()

    def tables(self) -> Iterator[pa.Table]:
        """Frames, from the beginning."""
        opened, self._opened = self._opened, None
        return opened if opened is not None else self._open()

    def _open(self) -> Iterator[pa.Table]:
        """Up to its first rows, so that what is wrong is known at once."""
        from wirecheck.session.frame_tables import tables

        found = tables(session(self._key_logs), self._paths, [])
        first = next(found, None)
        return warned(found if first is None else chain([first], found))


def one_by_one(source: Source, chosen: Filter, reading: Reading) -> Iterator[Message]:
    from wirecheck.decode.show import message_lines

    with as_input_error():
        for line in message_lines.of(source.tables(), chosen, reading):
            yield message(line)


def by_columns(source: Source, chosen: Filter, reading: Reading) -> pa.RecordBatchReader:
    import pyarrow as pa

    from wirecheck.decode.show import message_columns

    def batches() -> Iterator[pa.RecordBatch]:
        with as_input_error():
            for table in message_columns.of(source.tables(), chosen, reading):
                yield from table.to_batches()

    return pa.RecordBatchReader.from_batches(message_columns.SCHEMA, batches())


def changes(
    *paths: Path,
    ports: Sequence[int] = (),
    keylog: Path | Sequence[Path] = (),
    dialect: str | Sequence[str] = (),
) -> Values[Change]:
    """Who changed what in captures, in folders of an agent's frames, or in the results of a replay or a monitor, as
    `wirecheck changes` lists it, by time.
    """
    with as_input_error():
        from wirecheck.questions.changes import Change, Changes
        from wirecheck.session.inputs import result_folder
        from wirecheck.session.results import changes_of

        folder = result_folder(tuple(map(str, paths)))
        if folder is None:
            found = Changes(dialects=known(dialect)).read(Source(paths, several(keylog)).tables(), ports)
        else:
            found, _ = changes_of(session(), folder, ports)
        return table_of(Change, list(found.merged()), "changes")


def errors(
    *paths: Path,
    ports: Sequence[int] = (),
    keylog: Path | Sequence[Path] = (),
    dialect: str | Sequence[str] = (),
) -> Values[ErrorRow]:
    """Errors by client, API and topic, worst first, as `wirecheck errors --all --brokers` lists them. Also of the
    results of a replay or a monitor.
    """
    from wirecheck.questions.error_rows import ErrorRow, error_rows
    from wirecheck.session.subjects import clients_first

    return table_of(ErrorRow, clients_first(error_rows(kept_or_read(paths, ports, keylog, dialect))), "errors")


def latency(
    *paths: Path,
    ports: Sequence[int] = (),
    keylog: Path | Sequence[Path] = (),
    dialect: str | Sequence[str] = (),
) -> Values[LatencyRow]:
    """How long clients waited for answers, by client and API, as `wirecheck latency --all --brokers` lists it. Also
    of the results of a replay or a monitor.
    """
    from wirecheck.questions.latency_rows import LatencyRow, latency_rows

    return table_of(LatencyRow, latency_rows(kept_or_read(paths, ports, keylog, dialect)), "latencies")


def kept_or_read(
    paths: Sequence[Path], ports: Sequence[int], keylog: Path | Sequence[Path], dialect: str | Sequence[str]
) -> Traffic:
    with as_input_error():
        from wirecheck.session.inputs import result_folder
        from wirecheck.session.results import traffic_of

        folder = result_folder(tuple(map(str, paths)))
        if folder is not None:
            return traffic_of(session(), folder, ports, (None, None))[0]
    return traffic(paths, ports, keylog, dialect)


def groups(
    *paths: Path,
    ports: Sequence[int] = (),
    keylog: Path | Sequence[Path] = (),
    dialect: str | Sequence[str] = (),
) -> Values[GroupRow]:
    """Groups with their members, state, rebalances and lag, as `wirecheck groups --all` lists them. Also of the
    results of a replay or a monitor.
    """
    with as_input_error():
        from wirecheck.questions.group_rows import GroupRow, Groups
        from wirecheck.session.cluster_readings import Reading, group_rows
        from wirecheck.session.inputs import result_folder
        from wirecheck.session.kept_subjects import groups_of

        if (folder := result_folder(tuple(map(str, paths)))) is not None:
            return table_of(GroupRow, groups_of(session(), folder, ports).rows, "groups")
        reading = Reading(session(several(keylog), known(dialect)), list(map(str, paths)), ports)
        found = Groups(dialects=known(dialect)).read(Source(paths, several(keylog)).tables(), ports)
        rows = group_rows(reading, found)
    return table_of(GroupRow, rows, "groups")


def timeline(
    *paths: Path,
    ports: Sequence[int] = (),
    keylog: Path | Sequence[Path] = (),
    dialect: str | Sequence[str] = (),
) -> Values[Event]:
    """What happened, in order of time, as `wirecheck timeline --all` lists it; of results what these have."""
    with as_input_error():
        from wirecheck.questions.timeline import Event
        from wirecheck.session.cluster_readings import Reading
        from wirecheck.session.inputs import result_folder
        from wirecheck.session.results import results_in
        from wirecheck.session.timeline import of_inputs, of_results

        named = list(map(str, paths))
        if (folder := result_folder(tuple(named))) is not None:
            return table_of(Event, of_results(folder, results_in(session(), folder, ports), principals=True), "events")
        reading = Reading(session(several(keylog), known(dialect)), named, ports)
        events, _ = of_inputs(reading, Source(paths, several(keylog)).tables(), principals=True)
    return table_of(Event, events, "events")


def why(
    name: str,
    *paths: Path,
    kind: str | None = None,
    at: Time | None = None,
    ports: Sequence[int] = (),
    keylog: Path | Sequence[Path] = (),
    dialect: str | Sequence[str] = (),
) -> dict[str, Values[Fact]]:
    """What captures show of a topic, client, group or broker, by section, as `wirecheck why` prints it. Of a name that
    several clusters have, the sections of each, with the cluster behind a comma.

    `kind`: topic, group, broker or client, where the name is several of them. `at`: partitions as brokers described
    them then. InputError where nothing has the name. Also of the results of a replay or a monitor, without `at`.
    """
    with as_input_error():
        from wirecheck.questions.subject import Subject
        from wirecheck.questions.subject_facts import Fact, sections
        from wirecheck.session.cluster_readings import Reading, read, subjects
        from wirecheck.session.inputs import result_folder
        from wirecheck.session.kept_subjects import kept_subjects, need_no_time, subject_of
        from wirecheck.session.subject_findings import with_findings
        from wirecheck.session.subjects import kind_of

        time, subject, names = span(at), Subject(name, known(dialect)), list(map(str, paths))
        if (folder := result_folder(tuple(names))) is not None:
            need_no_time(folder, at)
            subject, result = subject_of(session(), folder, name, ports)
            of = kind_of(subject, kind)[0]
            each = kept_subjects(folder, subject, result, of) or [(None, subject)]
        else:
            reading = Reading(session(several(keylog), known(dialect)), names, ports)
            result = read(reading, subject, Source(paths, several(keylog)).tables())
            time, of = time and time.on_day_of(subject.traffic.first_ns), kind_of(subject, kind)[0]
            each = subjects(reading, subject, result, of)
        found: dict[str, list[Fact]] = {}
        for cluster, one in each:
            shown = with_findings(sections(one, of, time and time.ns), one, of, result, cluster)
            found |= {f"{title}, {cluster}" if cluster else title: facts for title, facts in shown.items()}
    return {title: table_of(Fact, facts, title) for title, facts in found.items()}


def diff(
    before: Path,
    after: Path | None = None,
    *,
    at: tuple[Time, Time] | None = None,
    ports: Sequence[int] = (),
    keylog: Path | Sequence[Path] = (),
    dialect: str | Sequence[str] = (),
) -> Values[Difference]:
    """What is otherwise in a second capture, or in the results of a second run, as `wirecheck diff --all` lists it:
    what is worse after comes first. `at`: two times of the results of one run.
    """
    from wirecheck.questions.traffic_diff import Difference, differences
    from wirecheck.session.inputs import holds_tables
    from wirecheck.session.results import differences_of

    if after is None or any(holds_tables(pathlib.Path(side)) for side in (before, after)):
        times = tuple(one for one in map(span, at or ()) if one is not None)
        with as_input_error():
            found, _ = differences_of(session(), str(before), str(after) if after else None, times, ports, strict=False)
        return table_of(Difference, found, "differences")
    sides = [traffic([side], ports, keylog, dialect) for side in (before, after)]
    return table_of(Difference, differences(*sides), "differences")


def traffic(
    paths: Sequence[Path], ports: Sequence[int], keylog: Path | Sequence[Path], dialect: str | Sequence[str]
) -> Traffic:
    with as_input_error():
        from wirecheck.questions.traffic import Traffic

        return Traffic(dialects=known(dialect)).read(Source(paths, several(keylog)).tables(), ports)


def topics(
    *paths: Path,
    at: Time | None = None,
    cluster: str = "default",
    keylog: Path | Sequence[Path] = (),
    dialect: str | Sequence[str] = (),
) -> Values[TopicDescription]:
    """Topics as they were observed, with their partitions, as `wirecheck topics` lists them; `at`: as of this time.

    Also of the results of a replay or a monitor.
    """
    with as_input_error():
        from wirecheck.document import document
        from wirecheck.session.results import time_among
        from wirecheck.streaming.store.topics_at import FOREVER_NS, described

        time, result = span(at), answers(paths, cluster, keylog, dialect)
        found = described(result, time_among(time, result.rows["topics"]) if time else FOREVER_NS)
    return Values(found, "topics", lambda: inferred(document(found)))


def agreement(
    *paths: Path,
    cluster: str = "default",
    keylog: Path | Sequence[Path] = (),
    dialect: str | Sequence[str] = (),
) -> dict[str, Values[Any]]:
    """Who states which ID of each topic (`topics`, of TopicStatement), which versions each server advertises, answers
    and rejects (`apis`, of ApiVersions), and which release that is (`servers`, of ServerRelease), as
    `wirecheck agreement --all` lists them. `replay` says what contradicts what. Also of the results of a replay or a
    monitor.
    """
    with as_input_error():
        from wirecheck.judge.results.agreement_rows import ApiVersions, TopicStatement
        from wirecheck.session.agreement import agreement as found
        from wirecheck.story.agreement import ServerRelease

        table, coverage = found(session(several(keylog), known(dialect)), tuple(map(str, paths)), cluster)
        warn_of(coverage)
    topics, apis = ([one for one, _ in rows] for rows in (table.topics, table.apis))
    return {
        "topics": table_of(TopicStatement, topics, "topics"),
        "apis": table_of(ApiVersions, apis, "apis"),
        "servers": table_of(ServerRelease, table.servers, "servers"),
    }


def clients(
    *paths: Path,
    target: str | None = None,
    cluster: str = "default",
    keylog: Path | Sequence[Path] = (),
    dialect: str | Sequence[str] = (),
) -> Values[Client]:
    """Clients and the API versions they use, as `wirecheck clients` lists them.

    With `target`, a release such as "4.0": each has in `rejected_by_target` what that release does not serve any more.
    Also of the results of a replay or a monitor.
    """
    with as_input_error():
        from wirecheck.streaming.store import upgrade_gate

        if target is not None:
            try:
                upgrade_gate.lowest(target)
            except LookupError as error:
                raise InputError(str(error)) from error
        result = answers(paths, cluster, keylog, dialect)
    return of_clients(result.clients(), result, target)


def of_clients(found: Sequence[Client], result: Result, target: str | None = None) -> Values[Client]:
    from wirecheck.streaming.store import upgrade_gate

    judged = [
        replace(
            client,
            between_brokers=upgrade_gate.between_brokers(client),
            rejected_by_target=upgrade_gate.rejected(client, target) if target is not None else (),
        )
        for client in found
    ]
    return stored(judged, "clients", result)


def answers(paths: Sequence[Path], cluster: str, keylog: Path | Sequence[Path], dialect: str | Sequence[str]) -> Result:
    """What result tables hold, or what captures and folders of frames come to."""
    from pathlib import Path as Place

    from wirecheck.judge.thresholds import Settings as JudgeSettings
    from wirecheck.session.inputs import holds_tables
    from wirecheck.session.local_check import checked
    from wirecheck.session.results import latest
    from wirecheck.streaming.steps.settings import Settings

    named = [str(path) for path in paths]
    if not named:
        raise InputError(NOTHING_NAMED)
    if len(named) == 1 and holds_tables(Place(named[0])):
        return latest(session(), Place(named[0]))
    reading = session(several(keylog), known(dialect))
    settings = Settings(dialects=reading.dialects, judge=JudgeSettings(agreement_rows=0))
    result = checked(reading, named, cluster, settings).run.result()
    warn_of(result.coverage())
    return result


def replay(
    *paths: Path,
    cluster: str = "default",
    ports: Sequence[int] = (),
    keylog: Path | Sequence[Path] = (),
    dialect: str | Sequence[str] = (),
    principals: bool = True,
    expect: Path | None = None,
) -> Verdict:
    """Check captures, or folders of an agent's frames, as `wirecheck replay --engine local` does.

    Without `principals`, the principal and the address of who changed a topic are omitted. `expect`: a file of known
    and accepted findings (docs/expect.md); InputError names a line that cannot be read.
    """
    from wirecheck.judge.thresholds import Settings as JudgeSettings
    from wirecheck.session.inputs import expectations
    from wirecheck.session.local_check import checked
    from wirecheck.session.verdict_document import for_programs, with_about
    from wirecheck.story.expectations import with_expected
    from wirecheck.streaming.steps.settings import Settings

    with as_input_error():
        reading = session(several(keylog), known(dialect))
        named = [str(path) for path in paths]
        if not named:
            raise InputError(NOTHING_NAMED)
        expected = expectations(expect)
        judge = JudgeSettings(principals=principals, agreement_rows=0)
        settings = Settings(ports=frozenset(ports), dialects=reading.dialects, judge=judge)
        found = checked(reading, named, cluster, settings)
        result = found.run.result()
        judged = result.verdict(inputs=named, keylogs=[str(path) for path in several(keylog)], principals=principals)
        judged = with_about(with_expected(judged, expected), named, reading.key_logs, {}, captured=found.captured)
        return verdict(result, for_programs(judged, named))


def verdict(result: Result, found: Judged) -> Verdict:
    from wirecheck.document import document

    assert found.about is not None
    warn_of(found.coverage)
    json = document(found)
    return Verdict(
        found.about.verdict,
        found.about.marks,
        found.coverage,
        cards(found.entries, json["entries"]),
        stored(found.findings, "findings", result),
        stored(found.topics, "topics", result),
        of_clients(found.clients, result),
        stored(found.activities, "activities", result),
        stored(found.recreations, "recreations", result),
        json,
    )


def cards(entries: Sequence[CardEntry], documents: list[dict[str, Any]]) -> Values[Card]:
    rows = [{name: entry[name] for name in ("code", "kind", "findings")} | entry["card"] for entry in documents]
    return Values(list(map(Card.of, entries)), "cards", lambda: inferred(rows))


def warn_of(coverage: Coverage) -> None:
    for error in coverage.input_errors:
        warnings.warn(error, stacklevel=4)


def warned(every: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The same tables; what states that part of a file could not be read is a warning."""
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
    from wirecheck.decode.kafka_error import KafkaError
    from wirecheck.frame import Frame

    latency_ns, summary = line["latency_ns"], line["summary"]
    same: dict[str, Any] = {name: line.get(name) for name in AS_IN_LINE}
    return Message(
        time=dt.datetime.fromisoformat(line["time"]),
        frame=Frame(**line["frame"]),
        topics=summary.topics,
        errors=tuple(map(KafkaError, summary.errors)),
        latency_ms=None if latency_ns is None else latency_ns / NS_PER_MS,
        **same,
    )


def span(time: Time | None) -> TimeSpan | None:
    return None if time is None else TimeSpan.parse(time) if isinstance(time, str) else TimeSpan.of(time)


def session(key_logs: Sequence[Path] = (), dialects: tuple[str, ...] = ()) -> Session:
    """What cannot be read is a warning; nothing is printed."""
    return Session(tuple(map(pathlib.Path, key_logs)), dialects, say=lambda line: warnings.warn(line, stacklevel=4))


def several(one_or_more: Path | Sequence[Path]) -> list[Path]:
    return [one_or_more] if isinstance(one_or_more, str | PathLike) else list(one_or_more)


def stored(found: Sequence[Value], table: str, result: Result) -> Values[Value]:
    """Values of one table, which has their rows in the same order."""
    from wirecheck.streaming.store.result_tables import TABLES, table_of
    from wirecheck.streaming.store.run_result import in_order

    return Values(found, table, lambda: table_of(table, in_order(TABLES[table], result.rows[table])))


def inferred(rows: list[dict[str, Any]]) -> pa.Table:
    import pyarrow as pa

    return pa.Table.from_pylist(rows)


@contextmanager
def as_input_error() -> Iterator[None]:
    """What a command would end with."""
    from wirecheck.capture.source import pcap
    from wirecheck.capture.tls.key_log import KeyLogError

    try:
        yield
    except InputError:
        raise
    except (pcap.InputError, KeyLogError, ValueError, OSError) as error:
        raise InputError(str(error)) from error
