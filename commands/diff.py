"""`wirecheck diff`: what is otherwise in a second capture.

Knows: how differences are printed, and that a gate ends with 1 on those that were asked for. Refuses to know what
differs (decode/show/traffic_diff.py).
"""

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from wirecheck.commands import completion, names
from wirecheck.commands.ending import FOUND
from wirecheck.commands.frame_tables import capture_frames
from wirecheck.commands.listing import Cells, Listing, need_messages, options_of_listing
from wirecheck.commands.screen import note, tell
from wirecheck.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from wirecheck.decode.show.traffic import Traffic
    from wirecheck.decode.show.traffic_diff import Difference

GATES = ("matters", "any", "never", "errors", "clients", "topic-ids", "versions", "latency", "rates")
OF_GATE = {
    "errors": {"error-new", "error-worse"},
    "clients": {"client-gone"},
    "topic-ids": {"topic-id"},
    "versions": {"version-lower"},
    "latency": {"latency-higher"},
    "rates": {"rate-lower"},
}
"""Kinds of differences that fail each gate, beside the first three."""


@click.command(short_help="Compare two captures; a gate for CI.")
@click.argument("before", shell_complete=completion.path)
@click.argument("after", shell_complete=completion.path)
@click.option(
    "--fail-on",
    "gates",
    multiple=True,
    type=click.Choice(GATES),
    default=("matters",),
    show_default=True,
    help="Exit 1 on these differences (repeatable). matters: all that are worse after.",
)
@click.option("--all", "every", is_flag=True, help="Print all lines, also those that are better after.")
@options_of_listing
def diff(
    before: str, after: str, form: str, ports: tuple[int, ...], *, gates: tuple[str, ...], every: bool, strict: bool
) -> None:
    """Compare two captures: errors, clients, topic IDs, API versions, latencies, request rates.

    Differences that are worse after come first: new errors, errors that are twice as frequent, clients that are gone,
    changed topic IDs, lower API versions, doubled latencies (p99 by API and broker), halved request rates. Others are
    printed with --all. Captures may differ in length: rates are compared, not counts.

    BEFORE and AFTER are each a pcap or a folder of frames.

    Exit status: 0 if there is no difference of --fail-on, 1 if there is one, 2 on usage errors or unreadable input.

    \b
    Examples:
      wirecheck diff before.pcapng after.pcapng
      wirecheck diff before.pcapng after.pcapng --fail-on errors --fail-on versions
    """
    from wirecheck.decode.show.traffic_diff import differences

    with capture_frames([before], strict=strict) as earlier, capture_frames([after], strict=strict) as later:
        sides = read(before, earlier, ports), read(after, later, ports)
        found = differences(*sides)
        shown = [one for one in found if every or form != "text" or one.matters]
        Listing("differences", asdict, cells, lambda _one: ()).show(shown, form, every=every)
        if lost := sum(side.failures.others + side.calls.others for side in sides):
            tell(f"wirecheck: {lost:,} requests and errors have no row and are not compared")
        if form == "text":
            better = len(found) - len(shown)
            more = f", {better:,} not shown (--all)" if better else ""
            note(f"{plural(len(shown), 'difference')}{more}")
            for side, name in zip(sides, ("before", "after"), strict=True):
                note(f"{name}: {side.text()}")
    sys.exit(FOUND if any(fails(one, gates) for one in found) else 0)


def read(name: str, frames: "Iterator[pa.Table]", ports: tuple[int, ...]) -> "Traffic":
    """Stop where nothing of Kafka was seen: then nothing could differ."""
    from wirecheck.decode.show.traffic import counted

    found = counted(frames, ports)
    need_messages(found, [name])
    return found


def fails(one: "Difference", gates: tuple[str, ...]) -> bool:
    return any(
        gate == "any" or (gate == "matters" and one.matters) or one.kind in OF_GATE.get(gate, ()) for gate in gates
    )


def cells(one: "Difference", dated: bool) -> Cells:  # noqa: ARG001 - as Listing calls it
    """`error-new  UNKNOWN_TOPIC_ID p-lost Produce tickets   -> 28 (12.7/min)`."""
    return [
        (one.kind, "error" if one.matters else "ok"),
        (names.in_text(one.subject), "topic"),
        (one.before or "-", "before"),
        (f"-> {one.after or '-'}", "details"),
    ]
