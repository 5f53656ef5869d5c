"""`wirecheck replay`: pcaps and folders of frames to a verdict.

Knows: the order of the work (frames, query, result) and what exit code a verdict is. Refuses to know how any of it
is done.
"""

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wirecheck.commands import options
from wirecheck.commands.ending import FOUND, Stop, need_fitting
from wirecheck.commands.inputs import busy, frames_of, need_kafka, need_whole
from wirecheck.commands.outputs import for_its_user_alone, report_at, tables_at
from wirecheck.commands.screen import as_json, console, legible, progress

if TYPE_CHECKING:
    from wirecheck.streaming.store.run_result import Result


@click.command(short_help="Judge pcaps, or frames of an agent: the verdict.")
@click.argument("inputs", nargs=-1, required=True, metavar="FILE|DIR...")
@click.option("--out", type=options.TARGET, help="Keep the result tables (Parquet) in this folder.")
@click.option("--report", type=options.TARGET, metavar="HTML", help="Write a page for a browser, too: one file.")
@options.cluster()
@options.ports()
@options.dialect()
@click.option(
    "--fail-on",
    type=click.Choice(options.FAIL_ON),
    default="violation",
    show_default=True,
    help="Exit with 1 if something of this kind, or worse, is found.",
)
@options.form("json")
@options.strict()
@click.option("--keep-records", is_flag=True, help="Do not leave out records and secrets while judging.")
@click.option("--verbose", is_flag=True, help="Let Spark speak on the terminal.")
def replay(
    inputs: tuple[str, ...], form: str, fail_on: str, report: Path | None, *, strict: bool, **choices: Any
) -> None:
    """Judge pcaps (packed or not, - for what is piped in), or folders of an agent's frames, as if captured now.

    Exit codes: 0 nothing found of --fail-on's kind, 1 something, 2 wrong use, nothing to judge, or (with --strict)
    something that could not be read, whatever was found in the rest.

    \b
    Examples:
      wirecheck replay incident.pcapng
      wirecheck replay broker-1.pcap.gz broker-2.pcap.gz --format json > verdict.json
      wirecheck replay incident.pcapng --report incident.html
      wirecheck replay frames/ --out verdict/ --fail-on anomaly
    """
    with for_its_user_alone(), report_at(report, inputs) as write:
        found, ports = judged(inputs, **choices)
        result = found.json()
        if report is not None:
            from wirecheck.dashboards.report.page import page

            write(page(legible(result), legible(found.connections())))
    if form == "json":
        click.echo(as_json(result))
        for line in result["coverage"]["input_errors"]:
            click.echo(legible(f"wirecheck: {line}"), err=True)
    else:
        from wirecheck.dashboards import terminal
        from wirecheck.streaming.store.run_result import LISTINGS

        terminal.show(legible(result), console(), LISTINGS)
    need_kafka(result["coverage"], ports)
    need_whole(result["coverage"], strict=strict)
    kinds = () if fail_on == "never" else options.FAIL_ON[: options.FAIL_ON.index(fail_on) + 1]
    sys.exit(FOUND if any(finding["kind"] in kinds for finding in result["findings"]) else 0)


def judged(
    inputs: tuple[str, ...], out: Path | None, cluster: str, ports: tuple[int, ...], keep_records: bool, **switches: Any
) -> "tuple[Result, str]":
    """Frames of all inputs, through the query; where none was Kafka's, which ports were busy."""
    from wirecheck.streaming.run import replay as query
    from wirecheck.streaming.steps.frames_folder import frames_files
    from wirecheck.streaming.steps.settings import Settings

    settings = Settings(ports=frozenset(ports), **switches)
    with tempfile.TemporaryDirectory(prefix="wirecheck-") as folder, tables_at(out, Path(folder) / "tables") as tables:
        frames, work = Path(folder) / "frames", Path(folder) / "work"
        query.prepare(work, settings)
        captures = not any(Path(name).is_dir() for name in inputs)
        early = query.ahead(frames, tables, work, settings) if captures else None
        try:
            need_fitting()  # while Java starts
            folders = frames_of(inputs, frames, cluster, keep_records)
            with progress("judging") as advance:
                found = query.run(folders, tables, work, settings, advance, early=early)
            return found, busy(found, frames_files(folders), ports)
        except query.ReplayError as error:
            raise Stop(str(error)) from error
        finally:
            query.give_up(early)
