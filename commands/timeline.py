"""`wirecheck timeline`: what happened in a capture, one line an event, in order of time.

Knows: the columns in which events are printed, and which are asked for. Refuses to know what an event is
(questions/timeline.py, session/timeline.py).
"""

from typing import TYPE_CHECKING, Any

import click

from wirecheck.commands import names, options
from wirecheck.commands.listing import Cells, Listing, inputs_argument, need_messages, note_end, options_of_rows
from wirecheck.commands.screen import note
from wirecheck.commands.units import need_order, time
from wirecheck.document import document
from wirecheck.session.frame_tables import capture_frames
from wirecheck.session.inputs import result_folder
from wirecheck.session.results import need_whole, results_in
from wirecheck.wording import clock, plural, span_of

if TYPE_CHECKING:
    from wirecheck.questions.timeline import Event

KINDS = ("change", "broker", "election", "group", "client", "finding", "hurt")


@click.command(cls=options.Sections, short_help="List what happened, in order of time.")
@inputs_argument
@click.option("--about", metavar="NAME", help="Only events that name this topic, client, group or broker.")
@click.option("--kind", "kinds", multiple=True, type=click.Choice(KINDS), help="Only events of this kind (repeatable).")
@click.option("--since", type=time, metavar="TIME", help="Only what was not over before TIME (00:20:03).")
@click.option("--until", type=time, metavar="TIME", help="Only what began at or before TIME.")
@click.option("--all", "every", is_flag=True, help="Print all lines, even if they exceed a screen.")
@options.principals
@options_of_rows
def timeline(
    inputs: tuple[str, ...],
    form: str,
    ports: tuple[int, ...],
    *,
    every: bool,
    strict: bool,
    no_principals: bool,
    **asked: Any,
) -> None:
    """List what happened, one line an event: changes with who made them, starts of brokers, elections, members that
    join and leave, clients that appear and fall silent, findings, and when clients stopped getting on and got on again.

    Elections are as Metadata responses show them. INPUT is one or more pcaps or folders of frames. Of the --out folder
    of a replay or a monitor, no elections and no starts of brokers are listed.

    \b
    Examples:
      wirecheck timeline incident.pcapng
      wirecheck timeline incident.pcapng --about orders
      wirecheck timeline incident.pcapng --since 00:20 --kind change
      wirecheck timeline verdict/ --format json
    """
    need_order(asked["since"], asked["until"])
    from wirecheck.session.cluster_readings import Reading
    from wirecheck.session.timeline import of_inputs, of_results

    folder = result_folder(inputs)
    if folder is not None:
        result = results_in(options.session(), folder, ports)
        found, coverage = of_results(folder, result, principals=not no_principals), result.coverage()
        show(found, asked, form, every=every)
        if form == "text":
            note(f"{plural(coverage.messages, 'message')}, {coverage.decoded_messages:,} decoded")
        need_whole(coverage, strict=strict)
        return
    reading = Reading(options.session(), inputs, ports)
    with capture_frames(reading.session, inputs, strict=strict) as frames:
        found, seen = of_inputs(reading, frames, principals=not no_principals)
        need_messages(seen.traffic, inputs)
        shown = show(found, asked, form, every=every)
        if form == "text":
            note_end(plural(shown, "event"), {"more events": seen.others}, seen.traffic)


def show(found: "list[Event]", asked: dict[str, Any], form: str, *, every: bool) -> int:
    """Those that are asked for; how many they are."""
    from wirecheck.session.timeline import Asked

    first_ns = found[0].time_ns if found else 0
    begin, end = span_of(asked["since"], asked["until"], first_ns)
    need_order(begin, end)
    selection = Asked(
        asked["about"], frozenset(asked["kinds"]), begin.ns if begin else 0, end.last_ns if end else Asked().until_ns
    )
    rows = [event for event in found if selection.fits(event)]
    LISTING.of_clusters(lambda event: event.cluster, rows, 2).show(rows, form, every=every)
    return len(rows)


def cells(event: "Event", dated: bool) -> Cells:
    """`00:39:05  change  ledger  DeleteTopics by lab-admin (User:ANONYMOUS, 127.0.0.1): ok`."""
    code = f" [{event.code}]" if event.code else ""
    role = {"hurt": "error", "finding": "latency"}.get(event.kind, "ok")
    return [
        (clock(event.time_ns, dated=dated), "time"),
        (event.kind, role),
        (names.in_text(event.subject), "topic"),
        (f"{names.in_text(event.text)}{code}", "details"),
    ]


LISTING: "Listing[Event]" = Listing(
    "events", document, cells, lambda event: (event.time_ns,), headings=("time", "kind", "about", "event")
)
