"""`wirecheck doctor`: what this machine lacks, and the command that fixes it.

Knows: which packages have something to look at, and that a failure is exit code 1. Refuses to know what they look at.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

import click

from wirecheck import colours, extension_modules
from wirecheck.commands import options
from wirecheck.commands.ending import FOUND, Stop

Line = tuple[str, str, str, str]
COLOURS = {"ok": colours.GREEN, "warn": colours.AMBER, "fail": colours.RED}


@click.command(short_help="Show what this machine lacks, and how to fix it.")
@options.interfaces("Check this interface (repeatable).")
@click.option("--out", type=options.PATH, help="Check this directory for frames.")
@click.option("--remove-class-archive", is_flag=True, help="Remove the archive of Java classes that Spark starts from.")
@click.option("-v", "--verbose", is_flag=True, help="Also show the details of what is fine.")
def doctor(interfaces: tuple[str, ...], out: Path | None, *, remove_class_archive: bool, verbose: bool) -> None:
    """Check what capturing and replaying need on this machine. Failures and warnings come first.

    Exit status: 0 if nothing fails, 1 if something does.

    \b
    Examples:
      wirecheck doctor
      wirecheck doctor -i eth0 --out /var/lib/wirecheck
    """
    if remove_class_archive:
        remove_archive()
        return
    from wirecheck.capture.agent import agent_requirements as capture_room

    lines = [of_code(), *capture_room.checks(out, interfaces)]
    lines += of_streaming()
    for line in sorted((line for line in lines if line[1] != "ok"), key=lambda line: line[1] != "fail"):
        show(line)
    fine = [line for line in lines if line[1] == "ok"]
    if verbose:
        for line in fine:
            show(line)
    else:
        click.echo(f"{mark('ok')}  {', '.join(dict.fromkeys(name for name, *_ in fine))}; details: -v")
    sys.exit(FOUND if any(state == "fail" for _, state, *_ in lines) else 0)


def remove_archive() -> None:
    if find_spec("pyspark") is None:
        raise Stop("Spark is not installed, so there is no class archive")
    from wirecheck.streaming.spark.class_archive import remove_all

    try:
        files, size = remove_all()
    except OSError as failure:
        raise Stop(f"{failure.filename}: {failure.strerror}") from failure
    click.echo(f"Removed {files} {'file' if files == 1 else 'files'}, {size / 1e6:.0f} MB.")


def show(line: Line) -> None:
    name, state, text, fix = line
    click.echo(f"{mark(state)}  {name:14} {text}" + (f"; fix: {fix}" if fix else ""))


def mark(state: str) -> str:
    return click.style(f"{state:4}", fg=COLOURS[state])


def of_code() -> Line:
    """Whether what is slow runs compiled (setup.py)."""
    if not extension_modules.PLAIN:
        return "code", "ok", "compiled", ""
    return "code", "warn", extension_modules.cost(), extension_modules.remedy(extension_modules.PLAIN)


def of_streaming() -> list[Line]:
    """What Spark needs, for monitor and for replay by it; one line where it is not installed. A worker is tried."""
    if find_spec("pyspark") is None:
        text = "locally; Spark is not installed: monitor and replay --engine spark need its wheel with [monitor]"
        return [("judging", "ok", text, "")]
    from wirecheck.streaming.run.query_requirements import checks

    return checks()
