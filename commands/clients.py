"""`wirecheck clients`: which client uses which versions, and which ones a given release rejects.

With --target it exits with 1 if a client is rejected. Which versions a release serves, and how a table looks, is
decided elsewhere.
"""

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wirecheck.commands import fields, names, options
from wirecheck.commands.ending import FOUND
from wirecheck.commands.listing import answers_argument, options_of_answers, show_csv, show_fields, show_rows
from wirecheck.commands.outputs import report_at
from wirecheck.commands.screen import as_json, console, legible, warn_of
from wirecheck.document import document
from wirecheck.session.results import answers, need_whole

if TYPE_CHECKING:
    from wirecheck.story.seen import Client


@click.command(cls=options.Sections, short_help="List clients and those that an upgrade breaks.")
@answers_argument
@click.option(
    "--target",
    metavar="RELEASE",
    help="Upgrade gate: exit with 1 if a client sends versions that RELEASE (such as 4.0) rejects.",
)
@click.option(
    "--group-by",
    "group_by",
    type=click.Choice(["prefix", "software", "host"]),
    help="With --target, print one line per client ID prefix (team), software or host.",
)
@click.option(
    "--report",
    type=options.TARGET,
    metavar="FILE",
    help="With --target, also write an HTML page of the clients to upgrade.",
)
@options.brokers
@options.principals
@options_of_answers
def clients(
    inputs: tuple[str, ...],
    out: Path | None,
    cluster: str,
    form: str,
    *,
    brokers: bool,
    no_principals: bool,
    strict: bool,
    **asked: Any,
) -> None:
    """List clients with their addresses, software, API versions and requests; with --target, those to upgrade.

    INPUT is one or more captures or folders of frames, or the --out folder of a replay or a monitor. A Kafka release
    rejects clients that use API versions older than it supports. Newer versions are negotiated down automatically, but
    older releases do not have every API. For each rejected client, the output names the first version of its library
    that works (upgrade_to).

    Brokers and controllers are listed only with --brokers, or in JSON and CSV. They never affect the exit status.

    Exit status: 0 if no client is rejected, 1 if one is, 2 on usage errors or unreadable input.

    \b
    Examples:
      wirecheck clients incident.pcapng
      wirecheck clients verdict/ --target 4.0
      wirecheck clients verdict/ --target 4.0 --group-by prefix --report up.html
      wirecheck clients verdict/ --target 4.0 --format json |
        jq '.clients[] | select(.rejected_by_target != [])'
    """
    target, group_by, report = (asked[name] for name in ("target", "group_by", "report"))
    need_release(target)
    if target is None and (group_by or report):
        raise click.UsageError("--group-by and --report take --target")
    answered = answers(options.session(), inputs, out, cluster)
    others = answered.not_kept("clients")
    warn_of(others)
    result = answered.verdict(principals=not no_principals)
    found = [judged(client, target) for client in result.clients]
    if form == "text":
        found = [replace(client, address=names.in_text(client.address)) for client in found]
    found = [*fields.asked().in_order(found, document)]
    refused = [client for client in found if client.rejected and client.granted is not False]
    with report_at(report, inputs) as write:
        if target is not None and report is not None:
            from wirecheck.dashboards import client_upgrades

            write(client_upgrades.page(legible(refused), legible(of_clients(found)), target))
    if group_by is not None:
        show_groups(of_clients(found), group_by, form)
    elif form == "json":
        rows = [names.in_row(row) for row in fields.asked().of_rows([*map(document, found)])]
        more = {"others": others} if others else {}
        click.echo(as_json({**({"target": target} if target else {}), "clients": rows, **more}))
    elif form == "csv" or fields.asked().columns:
        show_columns(found if brokers or form != "text" else of_clients(found), form)
    else:
        show_text(found, refused, target, brokers=brokers)
    need_whole(result.coverage, strict=strict)
    sys.exit(FOUND if refused else 0)


def of_clients(found: "list[Client]") -> "list[Client]":
    """Without brokers and controllers."""
    return [client for client in found if not client.between_brokers]


def show_groups(found: "list[Client]", group_by: str, form: str) -> None:
    from wirecheck.dashboards import client_upgrades, terminal_tables

    shown = client_upgrades.groups(found, group_by)
    if form == "text":
        terminal_tables.show_groups(legible(shown), console())
    else:
        show_rows(legible(document(shown)), form)


def show_columns(found: "list[Client]", form: str) -> None:
    from wirecheck.dashboards import spreadsheets

    if fields.asked().columns:
        show_fields("clients", found, form)
    else:
        show_csv([names.in_row(spreadsheets.client_row(client)) for client in found])


def show_text(found: "list[Client]", refused: "list[Client]", target: str | None, *, brokers: bool) -> None:
    """The list of clients; for an upgrade, those that it breaks, and those whose requests are rejected anyway."""
    from wirecheck.dashboards import client_upgrades, terminal_tables

    if target is None:
        terminal_tables.list_clients(legible(found), console(), brokers=brokers)
        return
    terminal_tables.show_gate(legible(refused), legible(found), target, console())
    supported = (client for client in of_clients(found) if not client.rejected)
    aged = [client for client in supported if client_upgrades.is_below_baseline(client, target)]
    terminal_tables.show_aged(legible(aged), target, console())
    denied = [client for client in found if client.rejected and client.granted is False]
    terminal_tables.show_denied(legible(denied), console())


def judged(client: "Client", target: str | None) -> "Client":
    """With what a release makes of it."""
    from wirecheck.dashboards import client_upgrades
    from wirecheck.streaming.store import upgrade_gate

    between_brokers = upgrade_gate.between_brokers(client)
    looks_like = None if between_brokers else client_upgrades.looks_like(client)
    client = replace(client, between_brokers=between_brokers, looks_like=looks_like)
    if target is None:
        return client
    rejected, not_served = upgrade_gate.rejected(client, target), upgrade_gate.not_served(client, target)
    client = replace(client, rejected_by_target=rejected, not_in_target=not_served)
    upgrade_to, advice = client_upgrades.advice(client, target) if client.rejected else (None, None)
    return replace(client, upgrade_to=upgrade_to, advice=advice)


def need_release(target: str | None) -> None:
    """Raises a usage error if the release is unknown."""
    if target is None:
        return
    from wirecheck.streaming.store import upgrade_gate

    try:
        upgrade_gate.lowest(target)
    except LookupError as error:
        raise click.BadParameter(str(error), param_hint="--target") from error
