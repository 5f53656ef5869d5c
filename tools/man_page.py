"""The manual page wirecheck(1), made of what the commands say of themselves: `python -m tools.documents` writes it.

Knows: man(7)'s few macros, and that click knows every command, argument and option with its words. Refuses to hold
words of its own, but for the heads that man(7) asks for.
Rule: what `--help` says stands here, and nothing else; the page is committed, packaged, and in step.
"""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click

from wirecheck import cli

EXAMPLES = re.compile("\b\\s*Examples:\n")
SUMMARY = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]["description"]


def page() -> str:
    group = cli.main
    context = click.Context(group, info_name="wirecheck")
    lines = [
        '.TH WIRECHECK 1 "" "wirecheck" "User Commands"',
        ".SH NAME",
        f"wirecheck \\- {roff(SUMMARY[0].lower() + SUMMARY[1:])}",
        ".SH SYNOPSIS",
        ".B wirecheck",
        ".I COMMAND",
        "[\\fIOPTION\\fR]... [\\fIARGUMENT\\fR]...",
        ".SH DESCRIPTION",
        *words(group.help),
        ".SH COMMANDS",
    ]
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        lines += [f".SS wirecheck {name}", *of_command(name, command, context)]
    return "\n".join([*lines, ""])


def of_command(name: str, command: click.Command, above: click.Context) -> Iterator[str]:
    context = click.Context(command, info_name=name, parent=above)
    pieces = " ".join(piece for piece in command.collect_usage_pieces(context))
    yield f"\\fBwirecheck {name}\\fR {roff(pieces)}"
    yield ".PP"
    yield from words(command.help)
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record and record[1] and "--help" not in record[0]:
            yield ".TP"
            yield f"\\fB{roff(record[0])}\\fR"
            yield roff(" ".join(record[1].split()))


def words(text: str | None) -> Iterator[str]:
    """Paragraphs, then the examples as they are typed."""
    said, *more = EXAMPLES.split(text or "", maxsplit=1)
    for number, paragraph in enumerate(re.split(r"\n\s*\n", plain(said).strip())):
        if number:
            yield ".PP"
        yield roff(" ".join(paragraph.split()))
    for examples in more:
        yield from (".PP", "Examples:", ".PP", ".nf", ".RS 2")
        yield from (roff(line.strip()) for line in plain(examples).strip().splitlines())
        yield from (".RE", ".fi", ".PP")


def plain(text: str | None) -> str:
    return (text or "").replace("\b", "")


def roff(text: str) -> str:
    """With what man(7) would obey written out; a line that begins like a request is none."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("\u2026", "...")
    return f"\\&{escaped}" if escaped[:1] in {".", "'"} else escaped
