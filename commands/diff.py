"""`wirecheck diff`: what differs between two captures, between the results of two runs, or between two times of one.

Knows: how differences are printed, and that a gate ends with 1 on those that were asked for. Refuses to know what
differs (questions/traffic_diff.py, streaming/store/result_diff.py).
"""

import sys
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wirecheck.commands import completion, names, options
from wirecheck.commands.ending import FOUND
from wirecheck.commands.listing import Cells, Listing, need_messages, options_of_listing
from wirecheck.commands.screen import note, tell
from wirecheck.commands.units import time
from wirecheck.document import document
from wirecheck.session.frame_tables import capture_frames
from wirecheck.session.inputs import holds_tables
from wirecheck.session.results import WRONG_USE, differences_of, note_other_clusters
from wirecheck.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from wirecheck.questions.traffic import Traffic
    from wirecheck.questions.traffic_diff import Difference

GATES = ("matters", "any", "never", "findings", "errors", "clients", "topic-ids", "versions", "latency", "rates")
OF_GATE = {
    "findings": {"finding-new"},
    "errors": {"error-new", "error-worse"},
    "clients": {"client-gone"},
    "topic-ids": {"topic-id"},
    "versions": {"version-lower"},
    "latency": {"latency-higher"},
    "rates": {"rate-lower"},
}
"""Kinds of differences that fail each gate, beside the first three."""


@click.command(cls=options.Sections, short_help="Compare two captures or two results; usable in CI.")
@click.argument("before", shell_complete=completion.path)
@click.argument("after", required=False, shell_complete=completion.path)
@click.option(
    "--at",
    "times",
    type=time,
    multiple=True,
    metavar="TIME",
    help="Compare two times of BEFORE; give this option twice.",
)
@click.option(
    "--fail-on",
    "gates",
    multiple=True,
    type=click.Choice(GATES),
    metavar="KIND",
    default=("matters",),
    show_default=True,
    help="Exit with 1 on these differences (repeatable): matters (all that are worse after), any, never, "
    f"{', '.join(GATES[3:])}.",
)
@click.option("--all", "every", is_flag=True, help="Print all lines, also what is better after.")
@options_of_listing
def diff(
    before: str, after: str | None, form: str, ports: tuple[int, ...], *, every: bool, strict: bool, **asked: Any
) -> None:
    """Compare two captures: errors, clients, topic IDs, API versions, latencies, request rates. Or compare the results
    of two runs of a replay or a monitor, or two times of one: findings, clients that are harmed, clients, topic IDs.

    Differences that are worse after come first: new errors, errors that are twice as frequent, clients that are gone,
    changed topic IDs, lower API versions, doubled latencies (p99 by API and broker), halved request rates. Others are
    printed with --all. Captures may differ in length: rates are compared, not counts.

    BEFORE and AFTER are each a pcap or a folder of frames, or both the --out folder of a replay or a monitor.

    Exit status: 0 if there is no difference of --fail-on, 1 if there is one, 2 on usage errors or unreadable input.

    \b
    Examples:
      wirecheck diff before.pcapng after.pcapng
      wirecheck diff before.pcapng after.pcapng --fail-on errors
      wirecheck diff verdict/ --at 2026-11-21T10:00Z --at 2026-11-22T10:00Z
    """
    gates, times = asked["gates"], asked["times"]
    if any(holds_tables(Path(name)) for name in (before, after) if name):
        found, notes = differences_of(options.session(), before, after, times, ports, strict=strict)
        show(found, form, every=every, notes=notes)
    else:
        if after is None or times:
            raise click.UsageError(WRONG_USE)
        found = of_captures(before, after, form, ports, every=every, strict=strict)
    sys.exit(FOUND if any(fails(one, gates) for one in found) else 0)


def of_captures(
    before: str, after: str, form: str, ports: tuple[int, ...], *, every: bool, strict: bool
) -> "list[Difference]":
    from wirecheck.questions.traffic_diff import differences

    with (
        capture_frames(options.session(), [before], strict=strict) as earlier,
        capture_frames(options.session(), [after], strict=strict) as later,
    ):
        sides = read(before, earlier, ports), read(after, later, ports)
        note_other_clusters(options.session(), *({*chain(*side.brokers.clusters.values())} for side in sides))
        found = differences(*sides)
        show(found, form, every=every, notes=tuple(side.text() for side in sides))
        if lost := sum(side.failures.others + side.calls.others for side in sides):
            tell(f"wirecheck: not compared: {plural(lost, 'more request')} and errors")
    return found


def show(found: "list[Difference]", form: str, *, every: bool, notes: tuple[str, ...]) -> None:
    """`notes`: what each of the two rests on."""
    found = sorted(found, key=lambda one: (not one.matters, of_broker(one)))
    whole = every or form != "text"
    shown = [one for one in found if whole or (one.matters and not of_broker(one))]
    if form == "text":
        click.echo(sentence(found))
    Listing("differences", document, cells, lambda _one: ()).show(shown, form, every=every)
    if form == "text":
        others = len(found) - len(shown)
        internal = sum(map(of_broker, found)) if others else 0
        of_them = f", {internal:,} of them of brokers" if internal else ""
        more = f", {others:,} not shown{of_them} (--all)" if others else ""
        note(f"{plural(len(shown), 'difference')}{more}")
        for text, name in zip(notes, ("before", "after"), strict=True):
            note(f"{name}: {text}")


def of_broker(one: "Difference") -> bool:
    """Whether it is about requests of a broker or a controller; a finding about one counts like all findings."""
    from wirecheck.client_ids import is_internal

    return one.client_id is not None and is_internal(one.client_id) and not one.kind.startswith(("finding", "note"))


WORSE = {
    "finding-new": ("new finding", "new findings"),
    "error-new": ("client with new errors", "clients with new errors"),
    "error-worse": ("client with more errors", "clients with more errors"),
    "topic-id": ("topic recreated", "topics recreated"),
    "client-gone": ("client gone", "clients gone"),
    "version-lower": ("client with lower versions", "clients with lower versions"),
    "latency-higher": ("latency doubled", "latencies doubled"),
    "rate-lower": ("request rate halved", "request rates halved"),
}
"""What is worse after, of one and of several, in the order in which it is said."""


def sentence(found: "list[Difference]") -> str:
    """`Worse: 2 clients with new errors, 1 topic recreated.`: of clients, without brokers' own requests."""
    subjects: dict[str, set[str]] = {}
    for one in found:
        if one.matters and not of_broker(one):
            subjects.setdefault(one.kind, set()).add(one.subject if one.client_id is None else one.client_id)
    parts = [
        f"{len(subjects[kind]):,} {words[len(subjects[kind]) > 1]}" for kind, words in WORSE.items() if kind in subjects
    ]
    return f"Worse: {', '.join(parts)}." if parts else "Nothing that matters is worse."


def read(name: str, frames: "Iterator[pa.Table]", ports: tuple[int, ...]) -> "Traffic":
    """Stop where nothing of Kafka was seen: then nothing could differ."""
    from wirecheck.questions.traffic import Traffic

    found = Traffic(dialects=options.dialects()).read(frames, ports)
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
