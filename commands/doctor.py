"""`wirecheck doctor`: what this machine lacks, and the command that fixes it.

Knows: which rooms have something to look at, and that a failure is exit code 1. Refuses to know what they look at.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

import click

from wirecheck import extension_modules
from wirecheck.commands import options
from wirecheck.commands.ending import FOUND

Line = tuple[str, str, str, str]
COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


@click.command(short_help="What this machine lacks, and how to fix it.")
@options.interfaces("Look at this interface (repeatable).")
@click.option("--out", type=options.PATH, help="Look at this folder, where frames will go.")
def doctor(interfaces: tuple[str, ...], out: Path | None) -> None:
    """Look at what capturing and judging need of this machine; exit 1 if something fails.

    \b
    Examples:
      wirecheck doctor
      wirecheck doctor -i eth0 --out /var/lib/wirecheck
    """
    from wirecheck.capture.agent import agent_requirements as capture_room

    states = [show(line) for line in (of_code(), *capture_room.checks(out, interfaces))]
    states += [show(line) for line in of_streaming()]
    sys.exit(FOUND if "fail" in states else 0)


def show(line: Line) -> str:
    """Print it, and give back its state."""
    name, state, said, fix = line
    click.echo(f"{click.style(f'{state:4}', fg=COLOURS[state])}  {name:14} {said}" + (f"; fix: {fix}" if fix else ""))
    return state


def of_code() -> Line:
    """Whether what is slow runs compiled (setup.py)."""
    if not extension_modules.PLAIN:
        return "code", "ok", "compiled", ""
    return "code", "warn", extension_modules.cost(), extension_modules.remedy(extension_modules.PLAIN)


def of_streaming() -> list[Line]:
    """What Spark needs, for monitor and for replay by it; one line where it is not installed. A worker is tried."""
    if find_spec("pyspark") is None:
        said = (
            "locally; Spark is not installed: monitor and replay --engine spark need pip install 'wirecheck[monitor]'"
        )
        return [("judging", "ok", said, "")]
    from wirecheck.streaming.run.query_requirements import checks

    return checks()
