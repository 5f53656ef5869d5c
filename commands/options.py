"""Options that several subcommands share, declared once so that they mean the same everywhere.

Knows: names, choices, defaults and help texts. Refuses to know what a command does with them.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

FAIL_ON = ("violation", "anomaly", "information", "visibility", "never")
DIALECTS = ("auto", "kafka", "kip516-draft", "kip4-draft")
Decorator = Callable[[Any], Any]
PATH = click.Path(path_type=Path)


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
