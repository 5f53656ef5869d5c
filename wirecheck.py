"""The door: one command, its subcommands, exit codes and the one line an error gets.

Composes the rooms (capture writes frames, streaming judges them, dashboards shows the result) and imports a room only
when a subcommand asks for it, so that the capture agent starts without Spark and `--help` starts at once.
Rule: nothing is decided here. Exit codes: 0 clean, 1 findings at or above --fail-on, 2 usage error or nothing readable.
"""

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console

    from decode import lines

FAIL_ON = ("violation", "anomaly", "information", "visibility", "never")
DIALECTS = ("auto", "kafka", "kip516-draft", "kip4-draft")
FOUND, UNUSABLE = 1, 2
TABLES = ("findings", "topics", "clients", "clusters", "coverage", "exchanges")


class Stop(click.ClickException):
    """An end with one clear line on stderr and exit code 2."""

    exit_code = UNUSABLE

    def show(self, file: Any = None) -> None:
        click.echo(f"wirecheck: {self.format_message()}", file=file or sys.stderr)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(package_name="wirecheck", message="wirecheck %(version)s")
def main() -> None:
    """Do all brokers and clients of a Kafka cluster agree on which topic is which? Answered from captured bytes.

    \b
    Examples:
      wirecheck replay incident.pcapng
      wirecheck decode incident.pcapng --api Metadata --limit 5
      wirecheck explain TID002
    """


@main.command()
@click.option(
    "-r", "first", multiple=True, required=True, metavar="FILE...", help="Read these pcaps (pcapng, .gz too)."
)
@click.argument("more", nargs=-1, metavar="")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder for the frames (Parquet).")
@click.option("--cluster", default="default", show_default=True, help="Label of the cluster these frames belong to.")
@click.option("--keep-records", is_flag=True, help="Write records and secrets too, and what is no Kafka traffic.")
def capture(first: tuple[str, ...], more: tuple[str, ...], out: Path, cluster: str, keep_records: bool) -> None:
    """Write TCP frames as the Parquet table that replay and monitor read.

    \b
    Example:
      wirecheck capture -r incident.pcapng --out frames/
    """
    summary = write_frames([Path(name) for name in (*first, *more)], out, cluster, keep_records=keep_records)
    for line in summary.input_errors:
        click.echo(f"wirecheck: {line}", err=True)
    click.echo(f"{summary.frames:,} frames in {len(summary.files):,} files under {out}", err=True)


@main.command()
@click.argument("inputs", nargs=-1, required=True, metavar="FILE|DIR...")
@click.option("--out", type=click.Path(path_type=Path), help="Keep the result tables (Parquet) in this folder.")
@click.option("--cluster", default="default", show_default=True, help="Label of the cluster these frames belong to.")
@click.option("--port", "ports", multiple=True, type=click.IntRange(1, 65535), help="Only connections with this port.")
@click.option("--dialect", type=click.Choice(DIALECTS), default="auto", show_default=True, help="Layouts to read by.")
@click.option("--fail-on", type=click.Choice(FAIL_ON), default="violation", show_default=True, help="Exit 1 from here.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--keep-records", is_flag=True, help="Do not leave out records and secrets while judging.")
@click.option("--verbose", is_flag=True, help="Let Spark speak on the terminal.")
def replay(inputs: tuple[str, ...], form: str, fail_on: str, **options: Any) -> None:
    """Judge pcaps, or folders of an agent's frames, as if they were captured now.

    \b
    Examples:
      wirecheck replay incident.pcapng
      wirecheck replay broker-1.pcap.gz broker-2.pcap.gz --format json > verdict.json
      wirecheck replay frames/ --out verdict/ --fail-on anomaly
    """
    result = judged(inputs, **options)
    if form == "json":
        click.echo(json.dumps(result, ensure_ascii=False))
        for line in result["coverage"]["input_errors"]:
            click.echo(f"wirecheck: {line}", err=True)
    else:
        from rich.console import Console

        from dashboards import terminal

        terminal.show(result, Console())
    coverage = result["coverage"]
    if not coverage["messages"] and not coverage["encrypted_connections"]:
        raise Stop(f"no Kafka traffic in {coverage['frames']} frames of {coverage['connections']} connections")
    kinds = () if fail_on == "never" else FAIL_ON[: FAIL_ON.index(fail_on) + 1]
    sys.exit(FOUND if any(finding["kind"] in kinds for finding in result["findings"]) else 0)


def judged(
    inputs: tuple[str, ...], out: Path | None, cluster: str, ports: tuple[int, ...], keep_records: bool, **switches: Any
) -> dict[str, Any]:
    """Frames of all inputs, through the query, as the JSON object of a replay."""
    from streaming import replay as query
    from streaming.settings import Settings

    claim_folder(out)
    settings = Settings(ports=frozenset(ports), **switches)
    with tempfile.TemporaryDirectory(prefix="wirecheck-") as folder:
        scratch = Path(folder)
        query.prepare(scratch / "work", settings)
        try:
            folders = frames_of(inputs, scratch / "frames", cluster, keep_records)
            with progress("judging") as advance:
                return query.run(folders, out or scratch / "tables", scratch / "work", settings, advance).json()
        except query.ReplayError as error:
            raise Stop(str(error)) from error
        finally:
            query.give_up()


def frames_of(inputs: tuple[str, ...], folder: Path, cluster: str, keep_records: bool) -> list[Path]:
    """Folders of frames: those given, and one that is made here of the pcaps given."""
    folders = [Path(name) for name in inputs if Path(name).is_dir()]
    pcaps = [Path(name) for name in inputs if not Path(name).is_dir()]
    if not pcaps:
        return folders
    write_frames(pcaps, folder, cluster, keep_records=keep_records)
    return [*folders, folder]


def write_frames(files: list[Path], out: Path, cluster: str, *, keep_records: bool) -> Any:
    from capture import agent, pcap

    with progress("reading") as advance:
        try:
            return agent.write_frames(files, out, cluster, on_progress=advance, keep_records=keep_records)
        except pcap.InputError as error:
            raise Stop(str(error)) from error
        except OSError as error:
            raise Stop(f"{error.filename or out}: {error.strerror}") from error


def claim_folder(out: Path | None) -> None:
    """Make --out ready: a new folder, or one that holds an earlier replay and nothing else."""
    if out is None:
        return
    try:
        out.mkdir(parents=True, exist_ok=True)
        strangers = sorted(entry.name for entry in out.iterdir() if entry.name not in TABLES)
        if strangers:
            raise Stop(f"{out}: holds {strangers[0]}, which is not of an earlier replay; choose another --out")
        for entry in out.iterdir():
            shutil.rmtree(entry)
        (out / ".probe").touch()
        (out / ".probe").unlink()
    except OSError as error:
        raise Stop(f"{error.filename or out}: {error.strerror}") from error


@main.command()
@click.argument("files", nargs=-1, metavar="[FILE]...")
@click.option("--api", "apis", multiple=True, metavar="NAME", help="Only this API (repeatable); with --hex: its API.")
@click.option("--connection", metavar="IP:PORT", help="Only connections with this endpoint, or IP:PORT>IP:PORT.")
@click.option("--topic", metavar="NAME|ID", help="Only messages that carry this topic's name or id.")
@click.option("--limit", type=click.IntRange(1), help="Stop after so many messages.")
@click.option("--keep-records", "contents", is_flag=True, help="Show records and secrets, not only their lengths.")
@click.option("--dialect", type=click.Choice(DIALECTS), default="auto", show_default=True, help="Layouts to read by.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--hex", "digits", metavar="HEX", help="Decode this message (header and body, without its size).")
@click.option("--version", "version", type=int, help="With --hex: the API version.")
@click.option("--side", type=click.Choice(["request", "response"]), default="request", show_default=True)
def decode(files: tuple[str, ...], digits: str | None, version: int | None, side: str, **options: Any) -> None:
    """Print the Kafka messages of pcaps, or one message in hex.

    \b
    Examples:
      wirecheck decode incident.pcapng --api LeaderAndIsr --topic orders
      wirecheck decode incident.pcapng --connection 10.0.0.7:51234 --format json | jq .body
      wirecheck decode --hex 00120003... --api ApiVersions --version 3 --side request
      wirecheck decode --hex 00040003... --api LeaderAndIsr --version 3 --dialect kip516-draft
    """
    if bool(files) == bool(digits):
        raise click.UsageError("give FILEs or --hex, and not both")
    from decode import lines, page

    form, reading = options.pop("form"), lines.Reading(options.pop("dialect"), options.pop("contents"))
    try:
        if digits:
            apis = options["apis"]
            if len(apis) != 1 or version is None:
                raise click.UsageError("--hex needs --api and --version")
            found = iter([lines.single(digits, apis[0], version, side, reading)])
        else:
            limit = options.pop("limit")
            found = islice(messages(files, lines.Filter(**options), reading), limit)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    for line in found:
        click.echo(json.dumps(line, ensure_ascii=False) if form == "json" else page.text(line))


def messages(files: tuple[str, ...], wanted: "lines.Filter", reading: "lines.Reading") -> Iterator[dict[str, Any]]:
    from capture import agent, pcap
    from decode import lines

    try:
        yield from lines.of(agent.read_frames([Path(name) for name in files]), wanted, reading)
    except pcap.InputError as error:
        raise Stop(str(error)) from error


@main.command()
@click.argument("code")
def explain(code: str) -> None:
    """Say what a check finds, why it matters and when it is innocent.

    \b
    Example:
      wirecheck explain TID002
    """
    from streaming.judge import catalogue

    try:
        page = catalogue.page(code.upper())
    except KeyError:
        raise Stop(f"{code}: no such check; CHECKS.md lists them all") from None
    from rich.markdown import Markdown

    console().print(Markdown(page) if sys.stdout.isatty() else page, soft_wrap=True, markup=False, highlight=False)


def console(*, stderr: bool = False) -> "Console":
    from rich.console import Console

    return Console(stderr=stderr)


@contextmanager
def progress(what: str) -> Iterator[Any]:
    """Give a callable (done, total) that draws a bar when stderr is a terminal and does nothing otherwise."""
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    from rich.progress import Progress

    with Progress(console=console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


if __name__ == "__main__":
    main()
