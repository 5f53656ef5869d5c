"""`wirecheck decode`: the messages of pcaps and of an agent's frames, or one message in hex, as people read them.

Knows: which options go together, how people paste bytes. Refuses to know layouts and lines: that is the decode package.
"""

import re
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from time import sleep
from typing import TYPE_CHECKING, Any

import click

from wirecheck.commands import completion, names, options
from wirecheck.commands.ending import FOUND, Stop
from wirecheck.commands.screen import as_json, columns, legible, paints, progress, row, tell
from wirecheck.commands.units import need_order, time
from wirecheck.session.frame_tables import growing, tables, whole
from wirecheck.session.inputs import places
from wirecheck.session.results import NOT_WHOLE

if TYPE_CHECKING:
    from wirecheck.decode.show import message_filter, message_lines

OF_FILES = (
    "connection", "ports", "topic", "frames", "limit", "last", "strict", "client", "since", "until", "error", "follow",
)  # fmt: skip
LINES_AT_ONCE = 64
"""That go into a pipe or a file together: handing one over costs as much as making it."""
MOST_LAST = 100_000
"""So many messages are kept until the last one is known."""
POLL_S = 0.5
"""How often a file that grows is looked at."""
OPTION = {"apis": "api", "frames": "frame", "ports": "port"}
BETWEEN_DIGITS = re.compile(r"0x|\\x|[\s:,-]", re.IGNORECASE)  # as tshark, Wireshark and Python write bytes
LARGEST_VERSION = 0x7FFF
OF_FRAME = "Only messages with bytes in packet N, as Wireshark numbers it (repeatable)."


@click.command(cls=options.Sections, short_help="Print Kafka messages of captures, or decode one in hex.")
@click.argument("files", nargs=-1, metavar="[FILE|DIR]...", shell_complete=completion.path)
@click.option(
    "--api", "apis", multiple=True, metavar="NAME", shell_complete=completion.api,
    help="Only this API, by name or key (repeatable).",
)  # fmt: skip
@click.option("--version", "version", type=click.IntRange(0, LARGEST_VERSION), help="Only this version.")
@click.option("--side", type=click.Choice(["request", "response"]), help="Only requests, or responses.")
@click.option("--connection", metavar="IP[:PORT]", help="Only connections with this endpoint, or IP:PORT>IP:PORT.")
@options.ports
@click.option("--topic", metavar="NAME|ID", help="Only messages that carry this topic's name or ID.")
@click.option(
    "--client", metavar="ID", help="Only messages of this client ID, and responses to it; * matches anything."
)
@click.option("--since", type=time, metavar="TIME", help="Only messages captured at or after TIME, such as 00:20:03.5.")
@click.option("--until", type=time, metavar="TIME", help="Only messages captured at or before TIME.")
@click.option("--error", is_flag=True, help="Only messages with an error code, and malformed ones.")
@click.option("--frame", "frames", type=click.IntRange(1), multiple=True, metavar="N", help=OF_FRAME)
@click.option("--limit", type=click.IntRange(1), help="Stop after this number of messages.")
@click.option("--last", type=click.IntRange(1, MOST_LAST), metavar="N", help="Only the last N of these messages.")
@click.option("--follow", is_flag=True, help="Keep reading while the capture or directory grows.")
@click.option("-V", "--tree", is_flag=True, help="Print all fields of each message, as a tree.")
@click.option("--keep-records", "contents", is_flag=True, help="Show records and secrets, not only their lengths.")
@options.dialect
@names.option
@options.keylog
@options.form("json")
@options.strict
@options.principals
@options.quiet
@click.option("--hex", "digits", metavar="HEX", help="Decode this message instead of files; - reads it from stdin.")
def decode(files: tuple[str, ...], digits: str | None, *, no_principals: bool, **choices: Any) -> None:
    """Print the Kafka messages of captures or frames directories, one per line, or decode one message in hex.

    Each line has the time (UTC), sender, receiver, API and version, topics (or the group), errors, the latency of a
    response, and the frame number #N. `--frame N -V` prints all fields of that message. Clients and brokers are shown
    by name if it is known, else by address.

    Files may be compressed; - is standard input. --topic also finds messages that have only the topic's ID, once a
    message has shown both. With --follow, a request is printed with its response, or without one some
    seconds after its connection was closed.

    A message in hex has a header and a body; its size in front is optional. For a response in hex, also give --side,
    --api and --version.

    Exit status: 0 if decoded, 1 if the message in hex is malformed, 2 on usage errors, if there is no Kafka message,
    or (with --strict) if part of the input is unreadable.

    \b
    Examples:
      wirecheck decode incident.pcapng --api LeaderAndIsr --topic orders
      wirecheck decode incident.pcapng --connection 10.0.0.7:51234 -V
      wirecheck decode incident.pcapng --error --since 00:20
      wirecheck decode incident.pcapng --frame 1924 --frame 2030 -V
      wirecheck decode frames/ --follow --client 'billing-*'
      wirecheck decode frames/ --api Fetch --limit 20
      wirecheck decode incident.pcapng --client billing-7 --last 5
      wirecheck decode --hex 00120003...
      wirecheck decode --hex 00000007... --side response --api Fetch --version 12
      wirecheck decode --hex 00040003... --dialect kip516-draft
    """
    if bool(files) == (digits is not None):
        raise click.UsageError("give FILEs or --hex, and not both")
    if choices["last"] and (choices["limit"] or choices["follow"]):
        raise click.UsageError(f"--last does not go with {'--limit' if choices['limit'] else '--follow'}")
    need_order(choices["since"], choices["until"])
    places(files)
    tree, follow = choices.pop("tree") or digits is not None, choices["follow"]
    form = "json" if choices.pop("form") == "json" else "tree" if tree else "rows"
    with progress("waiting" if follow else "reading"):
        found = lines_of_input(files, digits, choices, rows=form == "rows")
        if no_principals:
            from wirecheck.decode.show.message_lines import without_principals

            found = map(without_principals, found)
        first = [*islice(found, 1)]
    malformed = False
    shown = printer(form, several=len(files) > 1)
    with printed(at_once=follow or sys.stdout.isatty()) as put:
        for line in chain(first, found):
            put(shown(line))
            malformed = malformed or "malformed" in line
    sys.exit(FOUND if malformed and digits is not None else 0)


@contextmanager
def printed(*, at_once: bool) -> Iterator[Callable[[str], None]]:
    """Yields a function that prints lines: at once, or several together if they go into a pipe or file."""
    held: list[str] = []

    def put(text: str) -> None:
        held.append(text)
        if at_once or len(held) >= LINES_AT_ONCE:
            show()

    def show() -> None:
        text = "\n".join(held)
        held.clear()
        click.echo(text)

    try:
        yield put
    finally:
        if held:
            show()


def printer(form: str, *, several: bool) -> Callable[[dict[str, Any]], str]:
    """What makes text of a line: one row, a tree of rows, or JSON."""
    from wirecheck.decode.show import message_page

    rows, paint = message_page.Rows(several=several), paints()
    if form == "rows":
        cells = (
            rows.cells if not names.known() else lambda line: [(names.in_text(t), role) for t, role in rows.cells(line)]
        )
        return lambda line: row(cells(line), paint=paint, columns=columns())
    if form == "tree":
        return lambda line: message_page.text(legible(names.in_words(line)), columns())
    return as_json


def lines_of_input(
    files: tuple[str, ...], digits: str | None, choices: dict[str, Any], *, rows: bool
) -> Iterator[dict[str, Any]]:
    """The lines of what is to be decoded. click.UsageError for what no message can have."""
    from wirecheck.decode.show.message_lines import Reading

    summary = digits is None and (rows or choices["error"])
    reading = Reading(
        options.dialects(),
        choices.pop("contents"),
        bodies=not rows or choices["topic"] is not None,
        summary=summary,
        at_once=choices["follow"],
    )
    try:
        found = of_hex(digits, choices, reading) if digits is not None else of_files(files, choices, reading)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    return found if rows or not summary else map(without_summary, found)


def without_summary(line: dict[str, Any]) -> dict[str, Any]:
    """The same line as it is where nobody asked for errors only."""
    bare = {name: value for name, value in line.items() if name not in {"summary", "latency_ns", "broker"}}
    return bare | {"enveloped": without_summary(line["enveloped"])} if "enveloped" in line else bare


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
        raise ValueError(f"--hex: {odd[0]!r} after {odd.start()} digits is not a hex digit")
    if len(plain) % 2:
        raise ValueError(f"--hex has {len(plain)} digits, an odd number: one is missing, or was cut off at the end")
    return bytes.fromhex(plain)


def of_files(
    files: tuple[str, ...], choices: dict[str, Any], reading: "message_lines.Reading"
) -> Iterator[dict[str, Any]]:
    from wirecheck.decode.show import message_lines
    from wirecheck.decode.show.message_filter import Filter

    limit, last, strict = choices.pop("limit"), choices.pop("last"), choices.pop("strict")
    choices.pop("follow")
    noticed, broken = message_lines.Noticed(), list[str]()
    every = messages(files, Filter(**choices), reading, noticed, broken)
    found = islice(every, limit) if last is None else iter(deque(every, last))
    lines_of_files = at_least_one(found, ", ".join(files), choices, noticed)
    return unless_broken(lines_of_files, broken) if strict else lines_of_files


def unless_broken(found: Iterator[dict[str, Any]], broken: list[str]) -> Iterator[dict[str, Any]]:
    """The same lines. Stop behind them where a file could not be read to its end."""
    yield from found
    if broken:
        raise Stop(NOT_WHOLE)


def at_least_one(
    found: Iterator[dict[str, Any]], files: str, choices: dict[str, Any], noticed: "message_lines.Noticed"
) -> Iterator[dict[str, Any]]:
    """The same lines, with a message if there are none. Raises Stop if there are none without any filter."""
    none = True
    for line in found:
        none = False
        yield line
    if none:
        given = [name for name, value in choices.items() if value is not False and value not in {None, ()}]
        past_end = [number for number in choices["frames"] if number > noticed.last_frame]
        if past_end:
            raise Stop(f"--frame {max(past_end)}: the last packet with TCP in {files} is {noticed.last_frame:,}")
        narrowed = [f"--{OPTION.get(name, name)}" for name in given]
        asked = f" matches {', '.join(narrowed)}" if narrowed else ""
        hidden = f"; encrypted connections: {len(noticed.encrypted)}" if noticed.encrypted else ""
        for (source, number), packet in sorted(noticed.frames.items()):
            hidden += f"; frame {number} of {source}: {packet.src} > {packet.dst}, {packet.payload_bytes} bytes"
        why = f"no Kafka message in {files}{asked}{hidden}"
        if not narrowed:
            raise Stop(why)
        tell(f"wirecheck: {why}")


def messages(
    files: tuple[str, ...],
    chosen: "message_filter.Filter",
    reading: "message_lines.Reading",
    noticed: "message_lines.Noticed",
    broken: list[str],
) -> Iterator[dict[str, Any]]:
    from wirecheck.decode.show import message_lines

    inputs = places(files)
    session = options.session()
    if reading.at_once:
        every = growing(session, inputs, broken, pause, options.key_logs(missing=True))
    else:
        every = tables(session, inputs, broken)
    yield from message_lines.of(whole(session, every, broken), chosen, reading, noticed)


def pause() -> None:
    """Until a file that grows may have grown."""
    sys.stdout.flush()
    sleep(POLL_S)
