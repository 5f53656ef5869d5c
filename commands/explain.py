"""`wirecheck explain`: the page of one check, or of one of Kafka's errors.

It only prints: pages come from the catalogue.
"""

import re
import shlex
import sys
from difflib import get_close_matches
from typing import TYPE_CHECKING

import click

from wirecheck.commands import completion, names, options
from wirecheck.commands.ending import Stop
from wirecheck.commands.errors import listing
from wirecheck.commands.listing import need_messages
from wirecheck.commands.screen import console, legible

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirecheck.judge.checks.declaration import ListedCheck
    from wirecheck.judge.checks.error_meanings import ErrorMeaning
    from wirecheck.story.verdict import CardEntry, Finding

MOST_ENTRIES = 5


@click.command(cls=options.Sections, short_help="Explain a check or a Kafka error.")
@click.argument("code", required=False, shell_complete=completion.code)
@click.argument("inputs", nargs=-1, metavar="[INPUT...]", shell_complete=completion.path)
@names.option
@options.keylog
@options.dialect
@options.quiet
def explain(code: str | None, inputs: tuple[str, ...]) -> None:
    """Explain a check: what it detects, known false positives, and how to fix it. Without CODE, list all checks.

    CODE is a check's code or name, or the name or number of one of Kafka's errors: then the checks that name this
    error are listed. With INPUT (captures, folders of frames, or the --out folder of a replay or a monitor), the page
    of an error ends with who gets it there, and with the findings about it.

    \b
    Examples:
      wirecheck explain
      wirecheck explain TID002
      wirecheck explain topic-recreated
      wirecheck explain INCONSISTENT_TOPIC_ID
      wirecheck explain 103
      wirecheck explain 103 incident.pcapng
    """
    from wirecheck.judge.checks import listed_checks

    if code is None:
        for check in listed_checks.LISTED.values():
            click.echo(check_line(check))
        return
    codes = {check.name: check.code for check in listed_checks.LISTED.values()}
    name = codes.get(code.lower(), code.upper())
    if name in listed_checks.LISTED:
        if inputs:
            raise click.UsageError(f"with INPUT, give an error; for a check: wirecheck replay {shlex.join(inputs)} -v")
        print_page(listed_checks.page(name))
    elif (number := error_number(code)) is not None:
        print_page(error_page(number, asks=not inputs))
        if inputs:
            print_seen(number, inputs)
    else:
        close = get_close_matches(code.upper(), [*listed_checks.LISTED, *errors()]) + get_close_matches(
            code.lower(), codes
        )
        hint = f"close to it: {', '.join(close)}" if close else "wirecheck explain, without a code, lists them all"
        raise Stop(f"{code}: no such check or error; {hint}")


def check_line(check: "ListedCheck") -> str:
    return f"{check.code}  {check.kind:11}  {check.name}"


def print_page(page: str) -> None:
    if sys.stdout.isatty():
        from rich.markdown import Markdown

        console().print(Markdown(page))
    else:
        click.echo(page)


def print_seen(number: int, inputs: tuple[str, ...]) -> None:
    """Who gets the error in these captures, clients first, and which findings are about it."""
    from rich.text import Text

    from wirecheck.decode import schemas
    from wirecheck.questions.error_rows import error_rows
    from wirecheck.questions.traffic import Traffic
    from wirecheck.session.frame_tables import capture_frames
    from wirecheck.session.inputs import result_folder
    from wirecheck.session.results import answers, traffic_of
    from wirecheck.session.subjects import clients_first

    name = (schemas.errors() | schemas.draft_errors())[number].name
    if (folder := result_folder(inputs)) is not None:
        traffic, _ = traffic_of(options.session(), folder, (), (None, None))
    else:
        with capture_frames(options.session(), inputs, strict=False) as frames:
            traffic = Traffic(dialects=options.dialects()).read(frames)
        need_messages(traffic, inputs)
    rows = [row for row in clients_first(error_rows(traffic)) if row.error == name]
    click.echo(f"\nWho gets {name} in this input:\n" if rows else "\nNo response in this input has it.")
    if rows:
        listing(rows).show(rows, "text", every=False)
    result = answers(options.session(), inputs, None, "default").verdict()
    about = [one for one in result.entries if names_it(one, result.by_id, name)]
    several = len({one.cluster for one in about} - {None}) > 1
    if about:
        click.echo("\nFindings about it:\n")
    for one in about[:MOST_ENTRIES]:
        where = f", in cluster {legible(one.cluster)}" if several and one.cluster else ""
        console().print(Text(f"{one.code}  {legible(names.in_words(one).card.headline)}{where}"))
    if (left := len(about) - MOST_ENTRIES) > 0:
        click.echo(f"and {left:,} more: wirecheck replay {shlex.join(inputs)} -v")


def names_it(entry: "CardEntry", findings: "Mapping[str, Finding]", error: str) -> bool:
    """Whether a client on the card gets the error, or a finding of it has the error in its sentence or evidence."""
    mine = [findings[name] for name in entry.finding_ids]
    texts = [one.error for one in (*entry.card.harm.clients, *entry.card.harm.briefly)]
    texts += [text for one in mine for text in (one.summary, *(side.claim for side in one.sides))]
    return re.search(rf"\b{error}\b", " ".join(texts)) is not None


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


def error_page(number: int, *, asks: bool = True) -> str:
    """One of Kafka's errors, and the checks whose pages name it."""
    from wirecheck.decode import schemas
    from wirecheck.judge.checks import listed_checks
    from wirecheck.judge.checks.error_meanings import error_meanings

    if number in schemas.draft_errors():
        return draft_error_page(number)
    error = schemas.errors()[number]
    named = re.compile(rf"\b{error.name}\b")
    checks = [check for code, check in listed_checks.LISTED.items() if named.search(listed_checks.page(code))]
    retry = "Clients retry it." if error.retriable else "Clients do not retry it."
    meaning = error_meanings().get(error.name)
    lines = [
        f"## {error.name} ({number})",
        "",
        *([f"{meaning.means}  "] if meaning else []),
        *([f"What to do: {meaning.action}  "] if meaning else []),
        *of_single_apis(error.name),
        *usual_causes(error.name),
        f"{retry}  ",
        *([f"Who gets it in a capture: `wirecheck explain {number} INPUT`  "] if asks else []),
        *(["See it there: `wirecheck decode INPUT --error`"] if asks else []),
        "",
    ]
    lines += ["Checks that name it:", "", *(f"    {check_line(check)}" for check in checks)]
    return "\n".join(lines if checks else [*lines[:-3], "", "No check names it."])


def of_single_apis(error: str) -> list[str]:
    """What it means in answers to some APIs, where that is something else."""
    from wirecheck.judge.checks.error_meanings import NONE, by_api

    apis: dict[ErrorMeaning, list[str]] = {}
    for (name, api), meaning in by_api().items():
        if name == error and api != NONE:
            apis.setdefault(meaning, []).append(api)
    return [f"To {', '.join(those)}: {one.means} {one.action}  " for one, those in apis.items()]


def usual_causes(error: str) -> list[str]:
    """A numbered list; nothing for errors that are seldom seen."""
    from wirecheck.judge.checks.error_meanings import error_causes

    found = error_causes().get(error, ())
    numbered = [f"{place}. {cause}" for place, cause in enumerate(found, 1)]
    return ["", "Usual causes:", "", *numbered, ""] if found else []


def draft_error_page(number: int) -> str:
    """One of the errors that only the draft of KIP-4 has."""
    from wirecheck.decode import schemas
    from wirecheck.judge.checks import listed_checks

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
            f"    {check_line(listed_checks.LISTED['DRF002'])}",
        ]
    )
