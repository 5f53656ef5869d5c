"""`wirecheck replay`: captures and folders of frames to a verdict.

It keeps the order of the work (frames, query, result) and maps a verdict to an exit code.
"""

import math
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from wirecheck.commands import completion, names, options
from wirecheck.commands.ending import FOUND, Stop, need_fitting
from wirecheck.commands.outputs import for_its_user_alone, report_at, tables_at, writable
from wirecheck.commands.screen import as_json, console, legible, progress, tell
from wirecheck.session.frame_tables import opened
from wirecheck.session.inputs import files_in, holds_tables, places
from wirecheck.session.local_check import checked, checked_files, checked_with_frames, frames_of
from wirecheck.session.results import busy, need_kafka, need_seen, need_whole
from wirecheck.session.verdict_document import for_programs, with_about, write_cards

if TYPE_CHECKING:
    from wirecheck.story.expectations import Expectation
    from wirecheck.story.verdict import Engine, Verdict
    from wirecheck.streaming.run.query_process import QueryProcess
    from wirecheck.streaming.steps.settings import Settings
    from wirecheck.streaming.store.run_result import Result

Row = dict[str, Any]
SPARK: Literal["spark"] = "spark"
SPARK_S = 100
"""So long Spark may take for its first batch on a machine that is too busy; quiet, it takes some ten seconds."""

FAIL_ON = click.option(
    "--fail-on",
    envvar="WIRECHECK_FAIL_ON",
    type=click.Choice(options.FAIL_ON),
    default=options.HARM,
    show_default=True,
    help="Exit with status 1 if a finding of this kind, or worse, is listed; harm: on violations and hurt clients.",
)


@click.command(cls=options.Sections, short_help="Check capture files for topic-ID and version problems.")
@click.argument("inputs", nargs=-1, required=True, metavar="FILE|DIR...", shell_complete=completion.path)
@click.option("--out", type=options.TARGET, help="Write the result tables (Parquet) to this folder.")
@click.option("--report", type=options.TARGET, metavar="HTML", help="Also write a self-contained HTML report.")
@options.cluster
@options.keylog
@names.option
@options.ports
@options.dialect
@options.engine
@FAIL_ON
@options.form(*options.VERDICT_FORMS)
@options.choice
@options.strict
@options.min_seen
@options.principals
@options.expect
@options.grace
@click.option("--keep-records", is_flag=True, help="Do not redact records and secrets.")
@options.quiet
@click.option("-v", "--verbose", is_flag=True, help="Also show coverage, topics, all findings and Spark's log.")
def replay(inputs: tuple[str, ...], **choices: Any) -> None:
    """Check capture files for topic-ID and protocol-version problems.

    Reads pcap and pcapng (also compressed), folders and tar archives of these, - for standard input, and directories
    written by `wirecheck capture`.

    Exit status: 1 if a client is hurt or a rule of Kafka is broken (--fail-on), 0 if not, 2 on usage errors or
    unreadable input. Partly readable input is an error only with --strict.

    \b
    Examples:
      wirecheck replay incident.pcapng
      wirecheck replay broker-1.pcap.gz broker-2.pcap.gz --format json > out.json
      wirecheck replay incident.pcapng --format markdown > ticket.md
      wirecheck replay incident.pcapng --report incident.html
      wirecheck replay frames/ --out verdict/ --fail-on anomaly
      wirecheck replay incident.pcapng --topic orders --since 2026-11-21T00:20:03Z
    """
    if tables := next(filter(holds_tables, map(Path, inputs)), None):
        raise Stop(f"{tables}: holds result tables, not captures; `wirecheck findings {tables}` lists their findings")
    places(inputs)
    from wirecheck.capture.frames_file_name import text_of

    check(inputs, tuple(map(text_of, inputs)), **choices)


def check(
    inputs: tuple[str, ...],
    shown_as: tuple[str, ...],
    *,
    form: str,
    fail_on: str,
    report: Path | None,
    expect: "tuple[Expectation, ...]",
    engine: str = "local",
    strict: bool = False,
    min_seen: int | None = None,
    no_principals: bool = False,
    **choices: Any,
) -> None:
    """Print what inputs say, and exit as that is. `shown_as`: their names in what is printed; empty where they do not
    stay.
    """
    choice_of = options.choice_of(choices)
    engine = SPARK if engine == SPARK else "local"
    with for_its_user_alone(), report_at(report, inputs) as write:
        found, engine, captured, ports, beside = judged(
            inputs, engine, looked_into=report is not None, principals=not no_principals, **choices
        )
        choice = choice_of(captured[0] if captured else 0)
        from wirecheck.dashboards.verdict import suggestions
        from wirecheck.story.expectations import with_expected

        if choice.topics and (every := found.verdict()).coverage.has_kafka:
            options.need_topics(choice.topics, every)
        result = found.verdict(choice, shown_as, list(map(str, options.key_logs())), principals=not no_principals)
        result = with_expected(result, expect)
        result = with_about(result, shown_as, options.key_logs(), choices["grace"], engine=engine, captured=captured)
        if form != "text" or report is not None or choices.get("out") is not None:
            result = for_programs(result, shown_as)
        if (out := choices.get("out")) is not None and result.cards:
            from wirecheck.streaming.store.result_folder import latest_run

            with writable(out):
                write_cards(out, latest_run(out), result)
        if report is not None:
            write(page_of(names.in_words(result), found, beside))
    if form != "text":
        click.echo(as_json(result) if form == "json" else ticket(result, form))
    else:
        from wirecheck.dashboards import terminal

        terminal.show(legible(names.in_words(result)), console(), whole=choices.get("verbose", False))
    unread = result.coverage.input_errors if form != "text" or not sys.stdout.isatty() else []
    for line in (*unread, *suggestions(result.coverage)):
        tell(f"wirecheck: {line}")
    need_kafka(result.coverage, ports)
    need_whole(result.coverage, strict=strict)
    need_seen(result.coverage, min_seen)
    sys.exit(FOUND if is_failure(result, fail_on) else 0)


def is_failure(result: "Verdict", fail_on: str) -> bool:
    """As the red mark says, or by the kinds of findings that are listed."""
    if fail_on == options.HARM:
        from wirecheck.story.marks import marks_of

        return any(one.mark == "violation" for _, one in marks_of(result).both)
    kinds = () if fail_on == "never" else options.FINDINGS[: options.FINDINGS.index(fail_on) + 1]
    known = {name for entry in result.entries if entry.expected for name in entry.finding_ids}
    return any(finding.kind in kinds and finding.id not in known for finding in result.findings)


def ticket(result: "Verdict", form: str) -> str:
    from wirecheck.dashboards.tickets import FORMS

    return FORMS[form](legible(names.in_words(result) if form == "markdown" else result))


def judged(
    inputs: tuple[str, ...],
    engine: str,
    out: Path | None = None,
    *,
    cluster: str = "default",
    ports: tuple[int, ...],
    grace: Mapping[str, int],
    keep_records: bool = False,
    verbose: bool = False,
    principals: bool,
    looked_into: bool,
    **switches: Any,
) -> "tuple[Result, Engine, tuple[int, int] | None, str, Row]":
    """What the frames of all inputs say; which engine said it; when they were captured; where none was Kafka's, which
    ports were busy; what a page shows of them.
    """
    from wirecheck.capture.traffic import busiest, ends
    from wirecheck.judge.thresholds import Settings as JudgeSettings
    from wirecheck.streaming.steps.settings import Settings

    session = options.session()
    switches |= {"ports": frozenset(ports), "dialects": session.dialects}
    kept = out is not None or looked_into
    judge = JudgeSettings(principals=principals, agreement_rows=int(kept), detail_rows=int(kept), **grace)
    settings = Settings(judge=judge, verbose=verbose, by_minute=out is not None, **switches)
    # Spark may still be ending in this folder while the verdict is printed
    folder = click.get_current_context().with_resource(tempfile.TemporaryDirectory(prefix="wirecheck-"))
    query = spark_query(Path(folder) / "work", settings) if engine == SPARK else None
    scratch = Path(folder) / "frames"
    with tables_at(out, Path(folder) / "tables") as tables:
        files: list[Path] = []
        if query is not None:
            files = files_in(frames_of(session, inputs, scratch, cluster, keep_records=keep_records))
            found = by_spark(query, files, tables)
            if found is None and out is not None:
                query.end()  # it would go on writing there
            if found is not None:
                note_run(out, tables, inputs)
                shown = shown_of(found, files) if looked_into else {}
                return found, SPARK, ends(files), busy(found, lambda: busiest(files), ports), shown
            check = checked_files(session, files, settings)
        elif looked_into:
            check, files = checked_with_frames(session, inputs, scratch, cluster, settings, keep_records=keep_records)
        else:
            check = checked(session, inputs, cluster, settings)
        if out is not None:
            with writable(out):
                check.run.write(tables)
                note_run(out, tables, inputs)
        result = check.run.result()
        shown = shown_of(result, files) if looked_into else {}
        return result, "local", check.captured, busy(result, lambda: check.ports, ports), shown


def note_run(out: Path | None, tables: Path, inputs: tuple[str, ...]) -> None:
    """What was read, beside tables that are kept."""
    if out is not None:
        from wirecheck.streaming.store import runs

        runs.note(tables, inputs)


def shown_of(found: "Result", files: list[Path]) -> Row:
    """What the frames show besides the verdict: how much was captured when, and the messages behind findings."""
    with progress("decoding evidence"):
        from wirecheck.capture.traffic import traffic
        from wirecheck.dashboards.axis import Traffic
        from wirecheck.streaming.run.evidence_messages import evidence_messages

        result, slots = found.verdict(), traffic(files)
        findings = result.by_id
        leading = [findings[one.findings[0]] for entry in result.entries for one in entry.with_consequences]
        shown: Row = {"exchanges": evidence_messages(files, leading, options.dialects())}
        if slots is not None:
            shown["traffic"] = Traffic(slots.first_ns, slots.last_ns, slots.payload_bytes)
            shown |= over_time_of(result, files, slots.first_ns, slots.last_ns)
        return shown


def over_time_of(result: "Verdict", files: list[Path], first_ns: int, last_ns: int) -> Row:
    """What changed over time, and the IDs of brokers; nothing of a result without a fault."""
    from wirecheck.dashboards.verdict import blamed, hurt_clients
    from wirecheck.questions.over_time import OverTime

    if not blamed(result):
        return {}
    tables = (table for file in files if (table := opened(file, [])) is not None)
    found = OverTime(hurt_clients(result), first_ns, last_ns, options.dialects()).read(tables)
    courses = {kind: [one._asdict() for one in every] for kind, every in found.courses().items()}
    return {"courses": courses, "brokers": dict(found.brokers)}


def page_of(result: "Verdict", found: "Result", shown: Row) -> str:
    """The page for a browser."""
    from wirecheck.dashboards.report.page import Attached, page
    from wirecheck.judge.checks.page import explanations
    from wirecheck.streaming.run.request_rows import request_rows

    codes = [finding.code for finding in result.findings]
    attached = {"connections": found.connections(), "statements": found.statements(), **shown}
    attached |= {"requests": request_rows(found.totals()), "agreement": found.agreement(result)}
    return page(legible(result), Attached(**legible(attached), explanations=explanations(codes)))


def spark_query(work: Path, settings: "Settings") -> "QueryProcess":
    """Spark, which starts while captures are read and ends with this command."""
    need_fitting()
    from wirecheck.streaming.run.query_process import QueryProcess

    command = click.get_current_context()
    query = command.with_resource(QueryProcess(work, settings))

    def finish() -> None:
        if query.archiving:
            with progress("making Spark's next start faster, once"):
                query.finish()

    command.call_on_close(finish)
    return query


def by_spark(query: "QueryProcess", files: list[Path], tables: Path) -> "Result | None":
    """None where Spark failed, which a line says. Stop there if WIRECHECK_ENGINE_STRICT=1."""
    from wirecheck.streaming.run.query_process import QueryError

    strict = os.environ.get("WIRECHECK_ENGINE_STRICT") == "1"
    try:
        with progress("Spark is starting", then="checking") as advance:
            return query.judge(files, tables, advance, patience_s=math.inf if strict else SPARK_S)
    except QueryError as error:
        if strict:
            raise Stop(str(error)) from error
        tell(f"wirecheck: Spark: {error}; the local engine answers")
        return None
