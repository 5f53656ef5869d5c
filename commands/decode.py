"""`wirecheck decode`: the messages of pcaps, or one message in hex, as people read them.

Knows: which options go together. Refuses to know layouts and lines: that is the decode room.
"""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from commands import options
from commands.ending import Stop
from commands.screen import as_json, legible

if TYPE_CHECKING:
    from decode import lines


@click.command()
@click.argument("files", nargs=-1, metavar="[FILE]...")
@click.option("--api", "apis", multiple=True, metavar="NAME", help="Only this API (repeatable); with --hex: its API.")
@click.option("--connection", metavar="IP:PORT", help="Only connections with this endpoint, or IP:PORT>IP:PORT.")
@click.option("--topic", metavar="NAME|ID", help="Only messages that carry this topic's name or id.")
@click.option("--limit", type=click.IntRange(1), help="Stop after so many messages.")
@click.option("--keep-records", "contents", is_flag=True, help="Show records and secrets, not only their lengths.")
@options.dialect()
@options.form("json")
@click.option("--hex", "digits", metavar="HEX", help="Decode this message (header and body, without its size).")
@click.option("--version", "version", type=int, help="With --hex: the API version.")
@click.option("--side", type=click.Choice(["request", "response"]), default="request", show_default=True)
def decode(files: tuple[str, ...], digits: str | None, version: int | None, side: str, **choices: Any) -> None:
    """Print the Kafka messages of pcaps, or one message in hex.

    \b
    Examples:
      wirecheck decode incident.pcapng --api LeaderAndIsr --topic orders
      wirecheck decode incident.pcapng --connection 10.0.0.7:51234 --format json | jq .body
      wirecheck decode --hex 00120003... --api ApiVersions --version 3 --side request
      wirecheck decode --hex 00040003... --api LeaderAndIsr --version 3 --dialect kip516-draft
    """
    if bool(files) == bool(digits):
        raise click.UsageError("give FILEs or --hex, and not both")
    from decode import lines, page

    form, reading = choices.pop("form"), lines.Reading(choices.pop("dialect"), choices.pop("contents"))
    try:
        if digits:
            apis = choices["apis"]
            if len(apis) != 1 or version is None:
                raise click.UsageError("--hex needs --api and --version")
            found = iter([lines.single(digits, apis[0], version, side, reading)])
        else:
            limit = choices.pop("limit")
            found = islice(messages(files, lines.Filter(**choices), reading), limit)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    for line in found:
        click.echo(as_json(line) if form == "json" else legible(page.text(line)))


def messages(files: tuple[str, ...], wanted: "lines.Filter", reading: "lines.Reading") -> Iterator[dict[str, Any]]:
    from capture import agent, pcap
    from decode import lines

    try:
        yield from lines.of(agent.read_frames([Path(name) for name in files]), wanted, reading)
    except pcap.InputError as error:
        raise Stop(str(error)) from error
