"""`wirecheck decode`: the messages of pcaps and of an agent's frames, or one message in hex, as people read them.

Knows: which options go together, how people paste bytes. Refuses to know layouts and lines: that is the decode room.
"""

import re
import sys
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wirecheck.commands import options
from wirecheck.commands.ending import FOUND, Stop
from wirecheck.commands.inputs import NOT_WHOLE, places
from wirecheck.commands.screen import as_json, legible, progress, tell

if TYPE_CHECKING:
    import pyarrow as pa

    from wirecheck.decode.show import message_lines

OF_FILES = ("connection", "ports", "topic", "frames", "limit", "strict")
OPTION = {"apis": "api", "frames": "frame", "ports": "port"}
BETWEEN_DIGITS = re.compile(r"0x|\\x|[\s:,-]", re.IGNORECASE)  # as tshark, Wireshark and Python write bytes
LARGEST_VERSION = 0x7FFF
OF_FRAME = "Only messages that packet N of a capture, as Wireshark numbers it, carries some of (repeatable)."


@click.command(short_help="Every Kafka message of pcaps or frames, or one in hex.")
@click.argument("files", nargs=-1, metavar="[FILE|DIR]...")
@click.option("--api", "apis", multiple=True, metavar="NAME", help="Only this API, by name or key (repeatable).")
@click.option("--version", "version", type=click.IntRange(0, LARGEST_VERSION), help="Only this version of it.")
@click.option("--side", type=click.Choice(["request", "response"]), help="Only requests, or responses.")
@click.option("--connection", metavar="IP[:PORT]", help="Only connections with this end, or IP:PORT>IP:PORT.")
@options.ports()
@click.option("--topic", metavar="NAME|ID", help="Only messages that carry this topic's name or id.")
@click.option("--frame", "frames", type=click.IntRange(1), multiple=True, metavar="N", help=OF_FRAME)
@click.option("--limit", type=click.IntRange(1), help="Stop after so many messages.")
@click.option("--keep-records", "contents", is_flag=True, help="Show records and secrets, not only their lengths.")
@options.dialect()
@options.keylog()
@options.form("json")
@options.strict()
@click.option("--hex", "digits", metavar="HEX", help="Decode this one message instead of files; - reads it from stdin.")
def decode(files: tuple[str, ...], digits: str | None, **choices: Any) -> None:
    """Print the Kafka messages of pcaps or of folders of an agent's frames, or one message in hex.

    Files may be compressed; - is standard input. A topic is found by its name and by its id too, once a message has
    both. A message in hex is a header and a body, with or without its size. A request has its API and version; of a
    response, give --side, --api and --version.

    Exit codes: 0 decoded, 1 the message in hex is malformed, 2 wrong use, no Kafka message, or (with --strict)
    something that could not be read.

    \b
    Examples:
      wirecheck decode incident.pcapng --api LeaderAndIsr --topic orders
      wirecheck decode incident.pcapng --connection 10.0.0.7:51234 --format json | jq .body
      wirecheck decode incident.pcapng --frame 1924 --frame 2030
      wirecheck decode frames/ --api Fetch --limit 20
      wirecheck decode --hex 00120003...
      wirecheck decode --hex 00000007... --side response --api ApiVersions --version 3
      wirecheck decode --hex 00040003... --dialect kip516-draft
    """
    if bool(files) == (digits is not None):
        raise click.UsageError("give FILEs or --hex, and not both")
    places(files)
    form = choices.pop("form")
    with progress("reading"):
        found = asked(files, digits, choices)
        first = [*islice(found, 1)]
    from wirecheck.decode.show import message_page

    malformed = False
    for line in chain(first, found):
        click.echo(as_json(line) if form == "json" else message_page.text(legible(line)))
        malformed = malformed or "malformed" in line
    sys.exit(FOUND if malformed and digits is not None else 0)


def asked(files: tuple[str, ...], digits: str | None, choices: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The lines of what is to be decoded. click.UsageError for what no message can have."""
    from wirecheck.capture.arrow_alone import arrow_alone

    arrow_alone()
    from wirecheck.decode.show.message_lines import Reading

    reading = Reading(choices.pop("dialect"), choices.pop("contents"))
    try:
        return of_hex(digits, choices, reading) if digits is not None else of_files(files, choices, reading)
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def of_hex(digits: str, choices: dict[str, Any], reading: "message_lines.Reading") -> Iterator[dict[str, Any]]:
    from wirecheck.decode.show.pasted_message import single

    given = [name for name in OF_FILES if choices[name] not in {None, (), False}]
    if given:
        raise click.UsageError(f"--{OPTION.get(given[0], given[0])} goes with FILEs: --hex is one message")
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


def of_files(
    files: tuple[str, ...], choices: dict[str, Any], reading: "message_lines.Reading"
) -> Iterator[dict[str, Any]]:
    from wirecheck.decode.show import message_lines

    limit, strict, noticed, broken = choices.pop("limit"), choices.pop("strict"), message_lines.Noticed(), list[str]()
    found = islice(messages(files, message_lines.Filter(**choices), reading, noticed, broken), limit)
    lines_of_files = told(found, ", ".join(files), choices, noticed)
    return unless_broken(lines_of_files, broken) if strict else lines_of_files


def unless_broken(found: Iterator[dict[str, Any]], broken: list[str]) -> Iterator[dict[str, Any]]:
    """The same lines. Stop behind them where a file could not be read to its end."""
    yield from found
    if broken:
        raise Stop(NOT_WHOLE)


def told(
    found: Iterator[dict[str, Any]], files: str, choices: dict[str, Any], noticed: "message_lines.Noticed"
) -> Iterator[dict[str, Any]]:
    """The same lines; where there is none, that is said. Stop where there is none however little is asked."""
    none = True
    for line in found:
        none = False
        yield line
    if none:
        narrowed = [f"--{OPTION.get(name, name)}" for name, value in choices.items() if value not in {None, ()}]
        asked = f" passes {', '.join(narrowed)}" if narrowed else ""
        hidden = f"; encrypted connections: {len(noticed.encrypted)}" if noticed.encrypted else ""
        for (source, number), packet in sorted(noticed.frames.items()):
            hidden += f"; frame {number} of {source}: {packet.src} > {packet.dst}, {packet.payload_bytes} bytes"
        why = f"no Kafka message in {files}{asked}{hidden}"
        if not narrowed:
            raise Stop(why)
        tell(f"wirecheck: {why}")


def messages(
    files: tuple[str, ...],
    wanted: "message_lines.Filter",
    reading: "message_lines.Reading",
    noticed: "message_lines.Noticed",
    broken: list[str],
) -> Iterator[dict[str, Any]]:
    from wirecheck.capture.source import pcap
    from wirecheck.capture.tls.key_log import KeyLogError
    from wirecheck.decode.show import message_lines

    try:
        yield from message_lines.of(whole(tables(places(files), broken), broken), wanted, reading, noticed)
    except (pcap.InputError, KeyLogError) as error:
        raise Stop(str(error)) from error


def tables(inputs: list[Path], broken: list[str]) -> "Iterator[pa.Table]":
    """Frames of all inputs: of captures as one, then of folders."""
    from wirecheck.capture.agent import offline_agent

    captures = [path for path in inputs if not path.is_dir()]
    if captures:
        yield from offline_agent.read_frames(captures, key_logs=options.key_logs())
    if folders := [path for path in inputs if path.is_dir()]:
        yield from written(folders, broken)


def written(folders: list[Path], broken: list[str]) -> "Iterator[pa.Table]":
    """Frames as agents wrote them, of several agents side by side: what they all saw is one.

    A file that is none of frames is named, skipped, and added to the broken ones. Stop where no other is there.
    """
    from wirecheck.streaming.steps.frames_folder import FramesError, frames_files

    try:
        files = frames_files(folders)
    except FramesError as error:
        raise Stop(str(error)) from error
    wrong: list[str] = []
    begins = {path: beginning(path, wrong) for path in files}
    read = False
    for path in sorted((path for path in files if begins[path] is not None), key=lambda path: (begins[path], path)):
        if (table := opened(path, wrong)) is not None:
            left_out(wrong, broken)
            read = True
            yield table
    if not read:
        last = wrong.pop()
        left_out(wrong, broken)
        raise Stop(last)
    left_out(wrong, broken)


def opened(path: Path, wrong: list[str], columns: list[str] | None = None) -> "pa.Table | None":
    """A file of frames, or columns of it; None where it is none, and `wrong` says why. Stop where the disk fails."""
    from wirecheck.capture import frames, frames_file

    try:
        return frames_file.read(path, columns)
    except frames.NotFramesError as error:
        wrong.append(f"{path}: {error}")
    except OSError as error:
        raise Stop(f"{path}: {error.strerror or error}") from error
    return None


def beginning(path: Path, wrong: list[str]) -> int | None:
    """When a file of frames begins; marks at its edges count as frames do. None where it is none."""
    import pyarrow.compute as pc

    table = opened(path, wrong, ["ts_ns"])
    return None if table is None else int(pc.min(table["ts_ns"]).as_py() or 0)


def left_out(wrong: list[str], broken: list[str]) -> None:
    """A line for each file that is not read, once."""
    broken += wrong
    for line in wrong:
        tell(f"wirecheck: {line}; it is skipped")
    wrong.clear()


def whole(tables: "Iterator[pa.Table]", broken: list[str]) -> "Iterator[pa.Table]":
    """The same tables; of a file that could not be read to its end, that is said, and added to the broken ones."""
    import pyarrow.compute as pc

    from wirecheck.capture import frames

    for table in tables:
        errors = table.filter(pc.field("kind") == frames.INPUT_ERROR).select(["source", "reason"])
        for source, reason in (row.values() for row in errors.to_pylist()):
            broken.append(source)
            tell(f"wirecheck: {source}: {reason}")
        yield table
