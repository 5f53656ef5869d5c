"""`wirecheck changes`: an audit of administrative requests.

Knows: the forms in which changes are printed, and how many lines a terminal shows at once. Refuses to know which
requests change something (decode/show/changes.py).
"""

import shutil
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from wirecheck.commands import completion, options
from wirecheck.commands.ending import Stop
from wirecheck.commands.frame_tables import tables, whole
from wirecheck.commands.inputs import NOT_WHOLE, places
from wirecheck.commands.screen import as_json, columns, legible, note, paints, progress, tell
from wirecheck.commands.screen import row as line

if TYPE_CHECKING:
    from wirecheck.decode.show.change import Change

Row = dict[str, Any]
Cells = list[tuple[str, str]]
WIDEST = 40
"""Characters of a column that are aligned; what is longer moves the rest of its line."""
DAY_NS = 86_400 * 1_000_000_000
AROUND_LINES = 4
"""Of a terminal's height that are not changes: the prompt, the command, and the line about those not shown."""


@click.command(short_help="Who changed topics, configurations, ACLs, quotas, groups.")
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...", shell_complete=completion.path)
@options.ports()
@click.option("--object", "name", metavar="NAME", help="Only changes of this topic, group, user or broker.")
@click.option("--failed", is_flag=True, help="Only requests that were refused or not answered.")
@click.option("--all", "every", is_flag=True, help="Print all lines, also if they are more than a screen.")
@options.keylog()
@options.strict()
@options.quiet()
@options.form("json", "csv")
def changes(
    inputs: tuple[str, ...],
    name: str | None,
    form: str,
    ports: tuple[int, ...],
    *,
    failed: bool,
    every: bool,
    strict: bool,
) -> None:
    """List who changed what: topics, partitions, configurations, ACLs, quotas, credentials, groups, leaders, features.

    Each line has the time, the request, the object, the client ID, the principal, the client's address, the broker and
    the answer. A KRaft broker forwards these requests to the controller with the client's principal and address, so
    both are known even if the client itself uses TLS. Values of configurations and credentials are never printed.

    INPUT is one or more pcaps, or folders of frames.

    \b
    Examples:
      wirecheck changes incident.pcapng
      wirecheck changes incident.pcapng --object orders
      wirecheck changes frames/ --format json | jq 'select(.action == "DeleteTopics")'
    """
    from wirecheck.decode.show.changes import MOST_CHANGES
    from wirecheck.decode.show.changes import changes as changes_of

    broken: list[str] = []
    with progress("reading"):
        found = changes_of(whole(tables(places(inputs), broken), broken), ports)
    chosen = [change for change in found.merged() if wanted(change, name, failed=failed)]
    print_changes(chosen, form, every=every)
    if found.others:
        tell(f"wirecheck: {found.others:,} more requests are not listed; {MOST_CHANGES:,} are kept")
    if form == "text":
        note(summary(chosen))
    if strict and broken:
        raise Stop(NOT_WHOLE)


def wanted(change: "Change", name: str | None, *, failed: bool) -> bool:
    return name in {None, change.object} and not (failed and change.error == "NONE")


def print_changes(found: "list[Change]", form: str, *, every: bool) -> None:
    if form == "json":
        for change in found:
            click.echo(as_json(row(change)))
    elif form == "csv":
        from wirecheck.dashboards.spreadsheets import csv_of

        click.echo(csv_of(legible([flat(change) for change in found])), nl=False)
    else:
        print_table(found, every=every)


def print_table(found: "list[Change]", *, every: bool) -> None:
    """The newest that fit a terminal, unless all are asked for."""
    room = max(1, shutil.get_terminal_size().lines - AROUND_LINES)
    cut = sys.stdout.isatty() and not every and len(found) > room
    shown = found[-room:] if cut else found
    dated = len({change.time_ns // DAY_NS for change in shown}) > 1
    for found_cells in aligned([cells(change, dated=dated) for change in shown]):
        click.echo(line(found_cells, paint=paints(), columns=columns()))
    if cut:
        note(f"The newest {room} of {len(found):,} changes; --all prints all.")


def cells(change: "Change", *, dated: bool) -> Cells:
    """`00:44:48  DeleteTopics songs  lab-admin  User:ANONYMOUS  127.0.0.1  via broker 1  ok`."""
    time = rfc3339(change.time_ns)
    via = f"via broker {change.via_broker}" if change.via_broker and change.via_broker.isdecimal() else ""
    of_type = "" if change.object_type == "topic" else f"{change.object_type} "
    answer = {"NONE": "ok", None: "no answer seen"}.get(change.error, change.error or "")
    return [
        (f"{time[:10]} {time[11:19]}" if dated else time[11:19], "time"),
        (f"{change.action} {of_type}{change.object or '(all)'}", "topic"),
        (change.client_id or "(no client ID)", "client"),
        (change.principal or "-", "principal"),
        (change.host, "host"),
        (via or f"via {change.via_broker}", "via"),
        (answer, "latency" if change.error is None else "error" if change.error != "NONE" else "ok"),
        (change.details, "details"),
    ]


def aligned(rows: list[Cells]) -> Iterator[Cells]:
    """Rows whose cells stand below each other, as far as these are not longer than WIDEST."""
    widths = [min(WIDEST, max(len(text) for text, _ in column)) for column in zip(*rows, strict=True)]
    for row_of_cells in rows:
        *padded, (details, role) = row_of_cells
        found = [(text.ljust(width), kind) for (text, kind), width in zip(padded, widths, strict=False)]
        yield [*found, (details, role)] if details else [*found[:-1], (found[-1][0].rstrip(), found[-1][1])]


def summary(found: "list[Change]") -> str:
    """How many of which outcome: `4 changes: 3 accepted, 1 refused`."""
    accepted = sum(change.error == "NONE" for change in found)
    unanswered = sum(change.error is None for change in found)
    counts = (
        (accepted, "accepted"),
        (len(found) - accepted - unanswered, "refused"),
        (unanswered, "without an answer"),
    )
    parts = ", ".join(f"{count:,} {outcome}" for count, outcome in counts if count)
    return f"{len(found):,} change{'' if len(found) == 1 else 's'}{': ' if parts else ''}{parts}"


def row(change: "Change") -> Row:
    """One change, as JSON and CSV have it."""
    return {
        "time": rfc3339(change.time_ns),
        "action": change.action,
        "object_type": change.object_type,
        "object": change.object,
        "details": change.details,
        "principal": change.principal,
        "client_id": change.client_id,
        "host": change.host,
        "via_broker": change.via_broker,
        "error": change.error,
        "frame": {"source": change.frame.source, "first": change.frame.first},
    }


def flat(change: "Change") -> Row:
    """As CSV has it: the frame in two columns."""
    return row(change) | {"frame": change.frame.first, "source": change.frame.source}


def rfc3339(time_ns: int) -> str:
    from wirecheck.decode.show.message_head import rfc3339

    return rfc3339(time_ns)
