"""`wirecheck clients`: who speaks which versions, and who could not talk to a given release.

Knows: that a gate ends with 1 when somebody is turned away. Refuses to know what a release serves (streaming) and how a
table looks (dashboards).
"""

import sys
from pathlib import Path

import click

from wirecheck.commands import completion, options
from wirecheck.commands.ending import FOUND
from wirecheck.commands.inputs import answers, need_whole
from wirecheck.commands.screen import as_json, console, legible, warn_of


@click.command(short_help="Who speaks which versions; the gate before an upgrade.")
@click.argument("inputs", nargs=-1, metavar="INPUT...", shell_complete=completion.path)
@options.tables()
@click.option(
    "--target", metavar="RELEASE", help="Upgrade gate: exit 1 if a client sends what RELEASE refuses, as 4.0."
)
@click.option("--brokers", is_flag=True, help="Also list brokers and controllers.")
@options.cluster()
@options.keylog()
@options.strict()
@options.quiet()
@options.form("json", "csv")
def clients(
    inputs: tuple[str, ...],
    out: Path | None,
    cluster: str,
    form: str,
    target: str | None,
    *,
    brokers: bool,
    strict: bool,
) -> None:
    """List clients with their addresses, software, API versions and requests; with --target, those to upgrade.

    INPUT is one or more captures or folders of frames, or the --out folder of a replay or a monitor. A Kafka release
    rejects clients that use API versions older than it supports. Newer versions are negotiated down automatically.
    Brokers and controllers are listed with --brokers only (JSON and CSV always have them) and never count.

    Exit status: 0 if no client is rejected, 1 if one is, 2 on usage errors or unreadable input.

    \b
    Examples:
      wirecheck clients incident.pcapng
      wirecheck clients verdict/ --target 4.0
      wirecheck clients --from verdict/ --target 4.0 --format json | jq '.clients[] | select(.rejected_by_target != [])'
    """
    need_release(target)
    answered = answers(inputs, out, cluster)
    others = answered.uncounted("clients")
    warn_of(others)
    from wirecheck.dashboards import spreadsheets, terminal_tables
    from wirecheck.streaming.store import upgrade_gate

    result = answered.json()
    found = result["clients"]
    for client in found:
        client["between_brokers"] = upgrade_gate.between_brokers(client)
        if target is not None:
            client["rejected_by_target"] = upgrade_gate.rejected(client, target)
    refused = [client for client in found if client.get("rejected_by_target")]
    if form == "json":
        click.echo(as_json({**({"target": target} if target else {}), "clients": found, **others}))
    elif form == "csv":
        click.echo(spreadsheets.csv_of(legible(spreadsheets.client_rows(found))), nl=False)
    elif target is not None:
        terminal_tables.show_gate(legible(refused), legible(found), target, console())
    else:
        terminal_tables.list_clients(legible(found), console(), brokers=brokers)
    need_whole(result["coverage"], strict=strict)
    sys.exit(FOUND if refused else 0)


def need_release(target: str | None) -> None:
    """Wrong use where it is asked for one that nobody knows."""
    if target is None:
        return
    from wirecheck.streaming.store import upgrade_gate

    try:
        upgrade_gate.lowest(target)
    except LookupError as error:
        raise click.BadParameter(str(error), param_hint="--target") from error
