"""`wirecheck explain`: the page of one check, or of one of Kafka's errors.

It only prints: pages come from the catalogue.
"""

import re
import sys
from difflib import get_close_matches
from typing import TYPE_CHECKING

import click

from wirecheck.commands import completion
from wirecheck.commands.ending import Stop
from wirecheck.commands.screen import console

if TYPE_CHECKING:
    from wirecheck.judge.checks.catalogue import Check


@click.command(short_help="Explain a check or a Kafka error.")
@click.argument("code", required=False, shell_complete=completion.code)
def explain(code: str | None) -> None:
    """Explain a check: what it detects, known false positives, and how to fix it. Without CODE, list all checks.

    CODE is a check's code or name, or the name or number of one of Kafka's errors: then the checks that name this
    error are listed.

    \b
    Examples:
      wirecheck explain
      wirecheck explain TID002
      wirecheck explain topic-recreated
      wirecheck explain INCONSISTENT_TOPIC_ID
      wirecheck explain 103
    """
    from wirecheck.judge.checks import catalogue

    if code is None:
        for check in catalogue.CHECKS.values():
            click.echo(check_line(check))
        return
    names = {check.name: check.code for check in catalogue.CHECKS.values()}
    name = names.get(code.lower(), code.upper())
    if name in catalogue.CHECKS:
        print_page(catalogue.page(name))
    elif (number := error_number(code)) is not None:
        print_page(error_page(number))
    else:
        close = get_close_matches(code.upper(), [*catalogue.CHECKS, *errors()]) + get_close_matches(code.lower(), names)
        hint = f"close to it: {', '.join(close)}" if close else "wirecheck explain, without a code, lists them all"
        raise Stop(f"{code}: no such check or error; {hint}")


def check_line(check: "Check") -> str:
    return f"{check.code}  {check.kind:11}  {check.name}"


def print_page(page: str) -> None:
    if sys.stdout.isatty():
        from rich.markdown import Markdown

        console().print(Markdown(page))
    else:
        click.echo(page)


def errors() -> dict[str, int]:
    """Kafka's error names, to their numbers."""
    from wirecheck.decode import schemas

    every = schemas.errors() | schemas.draft_errors()
    return {error.name.upper(): number for number, error in every.items() if number}


def error_number(text: str) -> int | None:
    """The number of an error that is given by its name or number; None if there is no such error."""
    known = errors()
    if text.lstrip("-").isdecimal():
        return int(text) if int(text) in known.values() else None
    return known.get(text.upper())


def error_page(number: int) -> str:
    """One of Kafka's errors, and the checks whose pages name it."""
    from wirecheck.decode import schemas
    from wirecheck.judge.checks import catalogue
    from wirecheck.judge.checks.error_meanings import error_meanings

    if number in schemas.draft_errors():
        return draft_error_page(number)
    error = schemas.errors()[number]
    named = re.compile(rf"\b{error.name}\b")
    checks = [check for code, check in catalogue.CHECKS.items() if named.search(catalogue.page(code))]
    retry = "Clients retry it." if error.retriable else "Clients do not retry it."
    meaning = error_meanings().get(error.name)
    lines = [
        f"## {error.name} ({number})",
        "",
        *([f"{meaning.means}  "] if meaning else []),
        *([f"What to do: {meaning.action}  "] if meaning else []),
        f"{retry}  ",
        "Who gets it in a capture: `wirecheck errors INPUT`, `wirecheck decode INPUT --error`",
        "",
    ]
    lines += ["Checks that name it:", "", *(f"    {check_line(check)}" for check in checks)]
    return "\n".join(lines if checks else [*lines[:-3], "", "No check names it."])


def draft_error_page(number: int) -> str:
    """One of the errors that only the draft of KIP-4 has."""
    from wirecheck.decode import schemas
    from wirecheck.judge.checks import catalogue

    error = schemas.draft_errors()[number]
    return "\n".join(
        [
            f"## {error.name} ({number})",
            "",
            f"Only the draft of KIP-4 has this code; no Kafka release does. {error.meaning}  ",
            f"The draft answers it to {', '.join(error.apis)}.  ",
            "See it in a capture: `wirecheck decode INPUT --dialect kip4-draft --error`",
            "",
            "Check that names it:",
            "",
            f"    {check_line(catalogue.CHECKS['DRF002'])}",
        ]
    )
