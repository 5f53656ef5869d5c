"""`wirecheck decode`: the messages of pcaps, or one message in hex, as people read them.

Knows: which options go together, how people paste bytes. Refuses to know layouts and lines: that is the decode room.
"""

import re
import sys
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from commands import options
from commands.ending import Stop
from commands.inputs import place, told_if_compiling
from commands.screen import as_json, legible

if TYPE_CHECKING:
    import pyarrow as pa

    from decode import lines

OF_FILES = ("connection", "topic", "limit")
BETWEEN_DIGITS = re.compile(r"0x|\\x|[\s:,-]", re.IGNORECASE)  # as tshark, Wireshark and Python write bytes
LARGEST_VERSION = 0x7FFF


@click.command(short_help="Every Kafka message of pcaps, or one in hex.")
@click.argument("files", nargs=-1, metavar="[FILE]...")
@click.option("--api", "apis", multiple=True, metavar="NAME", help="Only this API, by name or key (repeatable).")
@click.option("--version", "version", type=click.IntRange(0, LARGEST_VERSION), help="Only this version of it.")
@click.option("--side", type=click.Choice(["request", "response"]), help="Only requests, or responses.")
@click.option("--connection", metavar="IP[:PORT]", help="Only connections with this end, or IP:PORT>IP:PORT.")
@click.option("--topic", metavar="NAME|ID", help="Only messages that carry this topic's name or id.")
@click.option("--limit", type=click.IntRange(1), help="Stop after so many messages.")
@click.option("--keep-records", "contents", is_flag=True, help="Show records and secrets, not only their lengths.")
@options.dialect()
@options.form("json")
@click.option("--hex", "digits", metavar="HEX", help="Decode this one message instead of files; - reads it from stdin.")
def decode(files: tuple[str, ...], digits: str | None, **choices: Any) -> None:
    """Print the Kafka messages of pcaps, or one message in hex.

    A message in hex is a header and a body, with or without its size. A request says its API and version itself; of a
    response, give --side, --api and --version.

    \b
    Examples:
      wirecheck decode incident.pcapng --api LeaderAndIsr --topic orders
      wirecheck decode incident.pcapng --connection 10.0.0.7:51234 --format json | jq .body
      wirecheck decode --hex 00120003...
      wirecheck decode --hex 00000007... --side response --api ApiVersions --version 3
      wirecheck decode --hex 00040003... --dialect kip516-draft
    """
    if bool(files) == (digits is not None):
        raise click.UsageError("give FILEs or --hex, and not both")
    from decode import lines, page

    form, reading = choices.pop("form"), lines.Reading(choices.pop("dialect"), choices.pop("contents"))
    try:
        found = of_hex(digits, choices, reading) if digits is not None else of_files(files, choices, reading)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    for line in found:
        click.echo(as_json(line) if form == "json" else page.text(legible(line)))


def of_hex(digits: str, choices: dict[str, Any], reading: "lines.Reading") -> Iterator[dict[str, Any]]:
    from decode.single import single

    given = [name for name in OF_FILES if choices[name] is not None]
    if given:
        raise click.UsageError(f"--{given[0]} goes with FILEs: --hex is one message")
    if len(choices["apis"]) > 1:
        raise click.UsageError("--hex is one message: give one --api")
    data = hex_bytes(sys.stdin.read() if digits == "-" else digits)
    return iter(
        [single(data, choices["side"] or "request", next(iter(choices["apis"]), None), choices["version"], reading)]
    )


def hex_bytes(digits: str) -> bytes:
    """Bytes of hex digits, in pairs however they are parted. ValueError that says what is not one."""
    plain = BETWEEN_DIGITS.sub("", digits)
    if not plain:
        raise ValueError("--hex has no digits")
    odd = re.search(r"[^0-9a-fA-F]", plain)
    if odd:
        raise ValueError(f"--hex: {odd[0]!r}, behind {odd.start()} digits, is no hex digit")
    if len(plain) % 2:
        raise ValueError(f"--hex has {len(plain)} digits, an odd number: one is missing, or was cut off at the end")
    return bytes.fromhex(plain)


def of_files(files: tuple[str, ...], choices: dict[str, Any], reading: "lines.Reading") -> Iterator[dict[str, Any]]:
    from decode import lines

    limit, encrypted = choices.pop("limit"), set[str]()
    found = islice(messages(files, lines.Filter(**choices), reading, encrypted), limit)
    return told(found, ", ".join(files), choices, encrypted)


def told(
    found: Iterator[dict[str, Any]], files: str, choices: dict[str, Any], encrypted: set[str]
) -> Iterator[dict[str, Any]]:
    """The same lines; where there is none, that is said. Stop where there is none however little is asked."""
    none = True
    for line in found:
        none = False
        yield line
    if none:
        narrowed = [
            f"--{'api' if name == 'apis' else name}" for name, value in choices.items() if value not in (None, ())
        ]
        asked = f" passes {', '.join(narrowed)}" if narrowed else ""
        hidden = f"; encrypted connections: {len(encrypted)}" if encrypted else ""
        why = f"no Kafka message in {files}{asked}{hidden}"
        if not narrowed:
            raise Stop(why)
        click.echo(f"wirecheck: {why}", err=True)


def messages(
    files: tuple[str, ...], wanted: "lines.Filter", reading: "lines.Reading", encrypted: set[str]
) -> Iterator[dict[str, Any]]:
    from capture import agent, pcap
    from decode import lines

    told_if_compiling()
    try:
        yield from lines.of(whole(agent.read_frames([place(name) for name in files])), wanted, reading, encrypted)
    except pcap.InputError as error:
        raise Stop(str(error)) from error


def whole(tables: "Iterator[pa.Table]") -> "Iterator[pa.Table]":
    """The same tables; of a file that could not be read to its end, that is said."""
    import pyarrow.compute as pc

    from capture import frames

    for table in tables:
        broken = table.filter(pc.field("kind") == frames.INPUT_ERROR).select(["source", "reason"])
        for source, reason in (row.values() for row in broken.to_pylist()):
            click.echo(legible(f"wirecheck: {source}: {reason}"), err=True)
        yield table
