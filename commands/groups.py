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
    note_hidden,
    options_of_rows,
)
from wirecheck.document import document
from wirecheck.session.frame_tables import capture_frames
from wirecheck.session.inputs import result_folder
from wirecheck.session.kept_subjects import groups_of
from wirecheck.session.results import need_whole
from wirecheck.session.session import InputError
from wirecheck.session.subjects import unknown
from wirecheck.wording import NS_PER_S, duration, plural

if TYPE_CHECKING:
    from pathlib import Path

    from wirecheck.questions.group_rows import GroupRow


@click.command(cls=options.Sections, short_help="List consumer groups with state, rebalances and lag.")
@inputs_argument
@click.option("--group", metavar="NAME", help="Only this group.")
@click.option("--all", "every", is_flag=True, help="Print all lines, more than a screen too.")
@options_of_rows
def groups(
    inputs: tuple[str, ...], form: str, ports: tuple[int, ...], group: str | None, *, every: bool, strict: bool
) -> None:
    """List groups with their members, state, rebalances and lag, as of the end of the capture; most lag first.

    LAG is between the last commit and the end that were seen of each partition; ? where no partition has both. The end
    is the last high watermark, or what a writer was granted with acks=all since. Beside it stand the partitions that
    it is about, where these are not all. BEHIND is how long the record that has waited longest has been there, as far
    as the capture shows; TREND is how the lag grew in the last minute. COMMIT and WATERMARK are the ages of the last
    commit, or of the last accepted record of a share group, and of the oldest of these ends. If INPUT has several
    clusters, a column shows each group's cluster. `wirecheck why GROUP` shows members, rebalances and offsets of one
    group.

    INPUT is one or more pcaps or folders of frames, or the --out folder of a replay or a monitor. There, BEHIND and
    TREND are computed from a point every ten seconds.

    \b
    Examples:
      wirecheck groups incident.pcapng
      wirecheck groups incident.pcapng --group billing
      wirecheck groups verdict/ --format json
    """
    from wirecheck.questions.group_rows import Groups
    from wirecheck.session.cluster_readings import Reading, group_rows

    folder = result_folder(inputs)
    if folder is not None:
        of_results(folder, ports, form, group, every=every, strict=strict)
        return
    reading = Reading(options.session(), inputs, ports)
    with capture_frames(reading.session, inputs, strict=strict) as frames:
        found = Groups(dialects=options.dialects()).read(frames, ports)
        need_messages(found.traffic, inputs)
        need_group(group, set(found.groups))
        rows = [row for row in group_rows(reading, found) if group in {None, row.group}]
        listing(found.traffic.last_ns, several=any(row.cluster for row in rows)).show(rows, form, every=every)
        if form == "text":
            note_end(plural(len(rows), "group"), {"more groups and partitions": found.others}, found.traffic)


def of_results(
    folder: "Path", ports: tuple[int, ...], form: str, group: str | None, *, every: bool, strict: bool
) -> None:
    found = groups_of(options.session(), folder, ports)
    need_group(group, found.names)
    rows = [row for row in found.rows if group in {None, row.group}]
    listing(found.last_ns, several=any(row.cluster for row in rows)).show(rows, form, every=every)
    if form == "text":
        counted = f"{plural(found.coverage.messages, 'message')}, {found.coverage.decoded_messages:,} decoded"
        note_hidden(plural(len(rows), "group"), {"more groups and partitions": found.others}, counted)
    need_whole(found.coverage, strict=strict)


def need_group(group: str | None, seen: set[str]) -> None:
    if group is not None and group not in seen:
        raise InputError(unknown("group", group, seen))


HEADINGS = ("type", "state", "members", "rebalances", "generation", "lag", "behind", "trend", "commit", "watermark")
LEAST_TREND = 0.05
SPARE = ("generation", "watermark", "rebalances", "type", "commit")


def listing(end_ns: int, *, several: bool = False) -> "Listing[GroupRow]":
    """Ages are as of this time. `several`: clusters, which are named."""

    def cells(row: "GroupRow", dated: bool) -> Cells:  # noqa: ARG001 - as Listing calls it
        """`billing  stable  4  1  7  1,204  3 s  12 s`."""
        return [
            (row.group or "''", "client"),
            *([(row.cluster or "", "topic")] if several else []),
            (row.type or "?", "count"),
            (row.state, "ok" if row.state == "stable" else "latency"),
            (members(row), "count"),
            (f"{row.rebalances:,}", "count"),
            ("?" if row.generation is None else str(row.generation), "count"),
            (lag(row), "latency" if row.lag or row.ahead_partitions else "ok"),
            ("?" if row.lag_seconds is None else duration(row.lag_seconds), "time"),
            (trend(row), "latency" if (row.lag_per_second or 0) > 0 else "ok"),
            (age(row.committed_ns, end_ns), "time"),
            (age(row.watermark_ns, end_ns), "time"),
        ]

    return Listing(
        "groups",
        document,
        cells,
        lambda _row: (),
        headings=("group", *(["cluster"] if several else []), *HEADINGS),
        spare=SPARE,
    )


def members(row: "GroupRow") -> str:
    """`3`, `3 (2 joining)` or `?`."""
    if row.state == "unknown":
        return "?"
    return f"{row.members:,}" + (f" ({row.joining} joining)" if row.joining else "")


def lag(row: "GroupRow") -> str:
    """`1,204`, `1,204 (3 of 5 partitions)`, `0 (1 partition beyond the end)` or `?`."""
    if row.lag is None:
        return "?"
    notes = [f"{row.measured_partitions} of {plural(row.partitions, 'partition')}"] * (
        row.measured_partitions < row.partitions
    )
    if row.ahead_partitions:
        notes.append(f"{plural(row.ahead_partitions, 'partition')} beyond the end")
    return f"{row.lag:,}" + (f" ({', '.join(notes)})" if notes else "")


def trend(row: "GroupRow") -> str:
    """`+9.2/s`, `-3.0/s`, `0/s` or `?`."""
    if row.lag_per_second is None:
        return "?"
    return f"{row.lag_per_second:+,.1f}/s" if abs(row.lag_per_second) >= LEAST_TREND else "0/s"


def age(time_ns: int | None, end_ns: int) -> str:
    return "?" if time_ns is None else f"{max(0, end_ns - time_ns) / NS_PER_S:,.0f} s ago"
