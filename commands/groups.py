"""`wirecheck groups`: members, state, rebalances and lag of each group.

Knows: the columns in which that is printed. Refuses to know how it is found out (questions/group_rows.py).
"""

from typing import TYPE_CHECKING

import click

from wirecheck.commands import options
from wirecheck.commands.listing import (
    Cells,
    Listing,
    inputs_argument,
    need_messages,
    note_end,
    options_of_listing,
)
from wirecheck.document import document
from wirecheck.session.frame_tables import capture_frames
from wirecheck.session.session import InputError
from wirecheck.session.subjects import unknown
from wirecheck.wording import NS_PER_S, plural

if TYPE_CHECKING:
    from wirecheck.questions.group_rows import GroupRow


@click.command(cls=options.Sections, short_help="List consumer groups with state, rebalances and lag.")
@inputs_argument
@click.option("--group", metavar="NAME", help="Only this group.")
@click.option("--all", "every", is_flag=True, help="Print all lines, more than a screen too.")
@options_of_listing
def groups(
    inputs: tuple[str, ...], form: str, ports: tuple[int, ...], group: str | None, *, every: bool, strict: bool
) -> None:
    """List groups with their members, state, rebalances and lag, as of the end of the capture; most lag first.

    LAG is between the last commit and the last high watermark that were seen of each partition; ? where no partition
    has both. Beside it stand the partitions that it is about, where these are not all. COMMIT and WATERMARK are the
    ages of the last commit and of the oldest high watermark. If INPUT has several clusters, a column shows each
    group's cluster. `wirecheck why GROUP` shows members, rebalances and offsets of one group.

    \b
    Examples:
      wirecheck groups incident.pcapng
      wirecheck groups incident.pcapng --group billing
      wirecheck groups frames/ --format json
    """
    from wirecheck.questions.group_rows import Groups
    from wirecheck.session.cluster_readings import Reading, group_rows

    reading = Reading(options.session(), inputs, ports)
    with capture_frames(reading.session, inputs, strict=strict) as frames:
        found = Groups(dialects=options.dialects()).read(frames, ports)
        need_messages(found.traffic, inputs)
        if group is not None and group not in found.groups:
            raise InputError(unknown("group", group, set(found.groups)))
        rows = [row for row in group_rows(reading, found) if group in {None, row.group}]
        listing(found.traffic.last_ns, several=any(row.cluster for row in rows)).show(rows, form, every=every)
        if form == "text":
            note_end(plural(len(rows), "group"), {"more groups and partitions": found.others}, found.traffic)


HEADINGS = ("state", "members", "rebalances", "generation", "lag", "commit", "watermark")


def listing(end_ns: int, *, several: bool = False) -> "Listing[GroupRow]":
    """Ages are as of this time. `several`: clusters, which are named."""

    def cells(row: "GroupRow", dated: bool) -> Cells:  # noqa: ARG001 - as Listing calls it
        """`billing  stable  4  1  7  1,204  3 s  12 s`."""
        return [
            (row.group, "client"),
            *([(row.cluster or "", "topic")] if several else []),
            (row.state, "ok" if row.state == "stable" else "latency"),
            (f"{row.members:,}" if row.state != "unknown" else "?", "count"),
            (f"{row.rebalances:,}", "count"),
            ("?" if row.generation is None else str(row.generation), "count"),
            (lag(row), "latency" if row.lag else "ok"),
            (age(row.committed_ns, end_ns), "time"),
            (age(row.watermark_ns, end_ns), "time"),
        ]

    return Listing(
        "groups",
        document,
        cells,
        lambda _row: (),
        headings=("group", *(["cluster"] if several else []), *HEADINGS),
        spare=("generation", "watermark"),
    )


def lag(row: "GroupRow") -> str:
    """`1,204`, `1,204 (3 of 5 partitions)` or `?`."""
    if row.lag is None:
        return "?"
    part = row.measured_partitions < row.partitions
    return f"{row.lag:,}" + (f" ({row.measured_partitions} of {row.partitions} partitions)" if part else "")


def age(time_ns: int | None, end_ns: int) -> str:
    return "?" if time_ns is None else f"{max(0, end_ns - time_ns) / NS_PER_S:,.0f} s ago"
