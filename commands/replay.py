"""`wirecheck replay`: pcaps and folders of frames to a verdict.

Knows: the order of the work (frames, query, result) and what exit code a verdict is. Refuses to know how any of it
is done.
"""

import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wirecheck.commands import options
from wirecheck.commands.ending import FOUND, Stop, need_fitting
from wirecheck.commands.inputs import Frames, busy, files_of, frames_of, judged_locally, need_kafka, need_whole, places
from wirecheck.commands.outputs import for_its_user_alone, report_at, tables_at
from wirecheck.commands.screen import as_json, console, legible, progress, tell

if TYPE_CHECKING:
    from wirecheck.streaming.steps.settings import Settings
    from wirecheck.streaming.store.run_result import Result


@click.command(short_help="Judge pcaps, or frames of an agent: the verdict.")
@click.argument("inputs", nargs=-1, required=True, metavar="FILE|DIR...")
@click.option("--out", type=options.TARGET, help="Keep the result tables (Parquet) in this folder.")
@click.option("--report", type=options.TARGET, metavar="HTML", help="Write a page for a browser, too: one file.")
@options.cluster()
@options.keylog()
@options.ports()
@options.dialect()
@options.engine()
@click.option(
    "--fail-on",
    type=click.Choice(options.FAIL_ON),
    default="violation",
    show_default=True,
    help="Exit with 1 if something of this kind, or worse, is found.",
)
@options.form("json")
@options.choice()
@options.strict()
@click.option("--keep-records", is_flag=True, help="Do not redact records and secrets while judging.")
@click.option("--verbose", is_flag=True, help="Let Spark speak on the terminal.")
def replay(
    inputs: tuple[str, ...],
    form: str,
    fail_on: str,
    report: Path | None,
    engine: str | None,
    *,
    strict: bool,
    **choices: Any,
) -> None:
    """Judge pcaps (compressed or not, - for standard input), or folders of an agent's frames, as if captured now.

    Exit codes: 0 nothing listed of --fail-on's kind, 1 something, 2 wrong use, nothing to judge, or (with --strict)
    something that could not be read, whatever was found in the rest.

    \b
    Examples:
      wirecheck replay incident.pcapng
      wirecheck replay broker-1.pcap.gz broker-2.pcap.gz --format json > verdict.json
      wirecheck replay incident.pcapng --report incident.html
      wirecheck replay frames/ --out verdict/ --fail-on anomaly
      wirecheck replay incident.pcapng --topic orders --since 2026-11-21T00:20:03Z
    """
    places(inputs)
    choice = options.choice_of(choices)
    engine = engine or default_engine()
    with for_its_user_alone(), report_at(report, inputs) as write:
        found, ports = judged(inputs, engine, **choices)
        from wirecheck.dashboards.verdict import sentence

        result = found.json(choice)
        result |= {"verdict": sentence(result), "engine": engine}
        if report is not None:
            from wirecheck.dashboards.report.page import page

            write(page(legible(result), legible(found.connections())))
    if form == "json":
        click.echo(as_json(result))
        for line in result["coverage"]["input_errors"]:
            tell(f"wirecheck: {line}")
    else:
        from wirecheck.dashboards import terminal
        from wirecheck.streaming.store.run_result import LISTINGS

        terminal.show(legible(result), console(), LISTINGS)
    need_kafka(result["coverage"], ports)
    need_whole(result["coverage"], strict=strict)
    kinds = () if fail_on == "never" else options.FAIL_ON[: options.FAIL_ON.index(fail_on) + 1]
    sys.exit(FOUND if any(finding["kind"] in kinds for finding in result["findings"]) else 0)


def default_engine() -> str:
    """Spark, where it is installed."""
    return "spark" if find_spec("pyspark") is not None else "local"


def judged(
    inputs: tuple[str, ...],
    engine: str,
    out: Path | None,
    *,
    cluster: str,
    ports: tuple[int, ...],
    keep_records: bool,
    **switches: Any,
) -> "tuple[Result, str]":
    """What the frames of all inputs say; where none was Kafka's, which ports were busy."""
    from wirecheck.streaming.steps.settings import Settings

    settings = Settings(ports=frozenset(ports), **switches)
    with (
        tempfile.TemporaryDirectory(prefix="wirecheck-") as folder,
        tables_at(out, Path(folder) / "tables") as tables,
        frames_of(inputs, Path(folder) / "frames", cluster, keep_records) as frames,
    ):
        if engine == "spark":
            found = by_spark(frames, tables, Path(folder) / "work", settings)
        else:
            run = judged_locally(frames, settings)
            found = run.result()
            if out is not None:
                run.write(tables)
        return found, busy(found, files_of(frames), ports)


def by_spark(frames: Frames, tables: Path, work: Path, settings: "Settings") -> "Result":
    """Through the query; Spark starts while captures are read."""
    with progress("Spark is starting"):
        need_fitting()
        from wirecheck.streaming.run.query_process import QueryError, QueryProcess

    with QueryProcess(work, settings) as query:
        frames.wait()
        files = files_of(frames)
        try:
            with progress("Spark is starting", then="judging") as advance:
                return query.judge(files, tables, advance)
        except QueryError as error:
            raise Stop(str(error)) from error
