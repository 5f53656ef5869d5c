"""`wirecheck doctor`: what this machine lacks, and the command that mends it.

Knows: which rooms have something to look at, and that a failure is exit code 1. Refuses to know what they look at.
"""

import sys
from importlib import import_module
from pathlib import Path

import click

from wirecheck import extension_modules
from wirecheck.commands import options
from wirecheck.commands.ending import FOUND

Line = tuple[str, str, str, str]
COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


@click.command(short_help="What this machine lacks, and how to mend it.")
@click.option("-i", "interfaces", multiple=True, metavar="IFACE", help="Look at this interface (repeatable).")
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
    why = extension_modules.PLAIN
    if not why:
        return "code", "ok", "compiled", ""
    return "code", "warn", f"plain source ({why}), some 100 times slower than compiled", extension_modules.remedy(why)


def of_streaming() -> list[Line]:
    """What replay and monitor need; one line where they are not installed. A worker is tried."""
    try:
        streaming_room = import_module("wirecheck.streaming.run.query_requirements")
    except ImportError:  # that extra is not installed
        return [("judging", "ok", "not installed here: replay and monitor need pip install 'wirecheck[monitor]'", "")]
    return list(streaming_room.checks())
