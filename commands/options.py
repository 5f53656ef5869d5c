"""Options that several subcommands share, declared once so that they mean the same everywhere.

Knows: names, choices, defaults and help texts. Refuses to know what a command does with them.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

FAIL_ON = ("violation", "anomaly", "information", "visibility", "never")
DIALECTS = ("auto", "kafka", "kip516-draft", "kip4-draft")
ENGINES = ("spark", "local")
Decorator = Callable[[Any], Any]
PATH = click.Path(path_type=Path)


def no_link(value: str | None) -> None:
    """Refuse a place to write to that is a symbolic link: who could put it there would say where our user writes.

    Folders on the way to it may be links, as /var/run is. Raises click.BadParameter.
    """
    name = str(value).rstrip("/") if value is not None else ""
    if Path(name).is_symlink():
        raise click.BadParameter(f"{name} is a symbolic link to {Path(name).readlink()}: name that instead")


class Target(click.Path):
    """A file or folder that is written."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        found = super().convert(value, param, ctx)
        no_link(str(found))
        return found


TARGET = Target(path_type=Path)


def place_or_uri(_: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    """What is written may lie elsewhere, too: then it has no links."""
    no_link(value.removeprefix("file://") if value else None)
    return value


def cluster() -> Decorator:
    return click.option(
        "--cluster", default="default", show_default=True, metavar="LABEL", help="Label of the cluster pcaps are of."
    )


def tables() -> Decorator:
    return click.option("--from", "out", type=PATH, metavar="OUT", help="The --out folder of a replay or a monitor.")


def dialect() -> Decorator:
    return click.option(
        "--dialect", type=click.Choice(DIALECTS), default="auto", show_default=True, help="Layouts to read by."
    )


def engine() -> Decorator:
    return click.option(
        "--engine",
        type=click.Choice(ENGINES),
        help="Judge by Spark, or in this process.  [default: spark, if installed]",
    )


def form(*choices: str) -> Decorator:
    """`--format`, text unless told otherwise."""
    kinds = ("text", *choices)
    return click.option(
        "--format", "form", type=click.Choice(kinds), default="text", show_default=True, help="How to print."
    )


def ports() -> Decorator:
    return click.option(
        "--port",
        "ports",
        multiple=True,
        metavar="PORT",
        type=click.IntRange(1, 65535),
        help="Only connections with this port (repeatable).",
    )


def strict() -> Decorator:
    return click.option("--strict", is_flag=True, help="Exit with 2 if some of the input could not be read.")
