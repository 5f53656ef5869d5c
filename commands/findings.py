"""`wirecheck findings`: the findings of a monitor, or of a replay with --out. Only tables are read.

Nothing is checked again, so an answer takes a second, whatever was captured. How one finding looks in full is the
dashboards'.
"""

import shlex
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Any

import click

from wirecheck.commands import completion, names, options
from wirecheck.commands.ending import Stop
from wirecheck.commands.screen import as_json, columns, console, legible, paints, row
from wirecheck.document import document
from wirecheck.session.inputs import holds_tables
from wirecheck.session.results import latest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from wirecheck.story.verdict import Finding, Verdict

POLL_S = 1.0
"""How often the tables are looked at for what came since."""


@click.command(cls=options.Sections, short_help="List the open findings of a monitor or replay.")
@click.argument("out", metavar="VERDICTS", type=options.PATH)
@click.argument("finding_id", metavar="[ID]", required=False, shell_complete=completion.finding)
@options.choice
@click.option("--follow", is_flag=True, help="Wait for findings: print each when it is new or has changed.")
@options.form("json")
@names.option
@options.principals
def findings(
    out: Path,
    finding_id: str | None,
    form: str,
    *,
    follow: bool,
    no_principals: bool,
    **asked: Any,
) -> None:
    """List the open findings in the --out folder of a monitor or a replay, one card a row, the worst first: for how
    long, who is hurt, what is wrong, and why. With ID, print the card and its evidence: ID is a finding ID (a unique
    prefix is enough) or a check code that has exactly one open finding.

    With --follow, a card is printed when it is new or says something new. With --format json, each finding is one
    object.

    \b
    Examples:
      wirecheck findings verdict/
      wirecheck findings verdict/ --only violation --topic orders
      wirecheck findings verdict/ yuqnnqvu
      wirecheck findings verdict/ TID002
      wirecheck findings verdicts/ --follow
    """
    if finding_id is not None and follow:
        raise click.UsageError("give an ID or --follow, and not both")
    if not holds_tables(out) and not (follow and out.is_dir()):
        raise Stop(f"{out}: {no_tables(out)}")
    choice_of, printer = options.choice_of(asked), Printer(form)
    while follow and not has_batch(out):
        sleep(POLL_S)
    while True:
        found = latest(options.session(), out)
        view: dict[str, Any] = {"tables_in": str(out), "principals": not no_principals}
        whole = found.verdict(**view)
        inputs = [] if whole.coverage.decrypted_connections else captures_of(whole.findings)
        choice = choice_of(max((finding.last_ns for finding in whole.findings), default=0))
        result = found.verdict(choice, inputs, **view)
        if finding_id is not None:
            show_one(result if form == "json" else names.in_words(result), finding_id, form)
            return
        if choice.topics and not follow:
            options.need_topics(choice.topics, whole)
        printer.print(result, table=not follow)
        if not follow:
            if not printer.known:
                click.echo("no finding is open" if not choice else "no open finding matches", err=True)
            return
        sleep(POLL_S)


def no_tables(out: Path) -> str:
    """Why there are no findings in a place, and what to do about it."""
    if out.is_file():
        return f"a file, not results; first: wirecheck replay {shlex.quote(str(out))} --out verdict/"
    return "holds no tables of a replay or a monitor" if out.is_dir() else "no such folder"


def captures_of(findings: "Iterable[Finding]") -> list[str]:
    """The captures that findings name, if all of them are still there: a monitor's findings name interfaces, and a pipe
    is read once. Which key logs decrypted them, no table says.
    """
    named = {side.frame.source for one in findings for side in one.sides if side.frame} - {""}
    return sorted(named) if all(Path(name).is_file() for name in named) else []


def has_batch(out: Path) -> bool:
    """Whether a monitor or a replay has written its first batch there."""
    if not holds_tables(out):
        return False
    with suppress(LookupError):
        return latest(options.session(), out) is not None
    return False


class Printer:
    """Prints the cards that are new or say something new; as JSON, the findings that are new or changed."""

    def __init__(self, form: str) -> None:
        self.form = form
        self.known: dict[str, Any] = {}

    def print(self, result: "Verdict", *, table: bool) -> None:
        if self.form == "json":
            rows: dict[str, Any] = {one["id"]: one for one in with_cards(result.findings, result)}
            for name, finding in rows.items():
                if self.known.get(name) != finding:
                    click.echo(as_json(finding))
        else:
            rows = cards(names.in_words(result))
            fresh = [cells for name, cells in rows.items() if self.known.get(name) != cells[1:]]
            print_cards(fresh, table=table)
            rows = {name: cells[1:] for name, cells in rows.items()}  # all but the age
        self.known = rows


def with_cards(findings: "Iterable[Finding]", result: "Verdict") -> "Iterator[dict[str, Any]]":
    """Findings as JSON has them, each with the ID of the finding whose card it is on, and the card with that one."""
    entries = {name: entry for entry in result.entries for name in entry.finding_ids}
    for finding in findings:
        entry = entries.get(finding.id)
        head = entry.findings[0] if entry is not None else None
        card = document(entry.card) if entry is not None and head == finding.id else None
        yield {**document(finding), "card_of": head, "card": card}


def cards(result: "Verdict") -> dict[str, Any]:
    """The cells of each card, by the ID of its first finding; the worst first."""
    from wirecheck.dashboards.verdict import card_cells, clusters_seen, named_cluster

    several = len(clusters_seen(result)) > 1
    return {
        entry.findings[0]: card_cells(entry, result.last_ns, named_cluster(entry.cluster) if several else "")
        for entry in result.entries
    }


def print_cards(every: list[tuple[str, ...]], *, table: bool) -> None:
    """As a table with a heading; those that come one after the other as plain lines."""
    if table and every:
        from wirecheck.dashboards.terminal_tables import list_cards

        list_cards(legible(every), console())
        return
    paint = paints()
    for cells in every:
        roles = ("time", "cluster", "violation", "topic", "text", "frame")
        click.echo(row([cell for cell in zip(cells, roles, strict=True) if cell[0]], paint=paint, columns=columns()))


def show_one(result: "Verdict", name: str, form: str) -> None:
    found = [one_finding(result.findings, name)]
    if form == "json":
        click.echo(as_json(next(with_cards(found, result))))
        return
    from wirecheck.dashboards import terminal
    from wirecheck.dashboards.axis import axis_of
    from wirecheck.story.entries import entries

    for entry in result.entries:
        if found[0].id in entry.finding_ids:
            terminal.show_card(legible(entry), legible(result), console())
    alone = legible([*entries(found, result.findings, dated=result.of_several_days)])
    terminal.list_entries(replace(legible(result), findings=legible(tuple(found))), alone, axis_of(result), console())


def one_finding(findings: "Sequence[Finding]", name: str) -> "Finding":
    """The one open finding whose ID begins so, or the only one of this check; Stop lists what there is."""
    found = [one for one in findings if one.id == name] or [one for one in findings if one.id.startswith(name)]
    found = found or [one for one in findings if one.code == name.upper()]
    if len(found) > 1:
        found = [one for one in found if one.others is None]
    if len(found) == 1:
        if found[0].others is not None:
            raise Stop(f"{name} counts {found[0].others:,} findings of {found[0].code} that are not kept")
        return found[0]
    among = found or findings
    shown = ", ".join(f"{one.id} ({about(one, found)})" for one in among[:5]) + (" ..." if len(among) > 5 else "")
    what = f"{len(found)} findings match {name}" if found else f"no finding {name}"
    raise Stop(f"{what}; known findings: {shown}" if among else f"{what}; there are no findings")


def about(one: "Finding", several: "Sequence[Finding]") -> str:
    """`TID002`; of several that match, also what each is about."""
    client = next(filter(None, one.client_ids), None)
    return " ".join(filter(None, (one.code, *((one.topic, client) if one in several else ()))))
