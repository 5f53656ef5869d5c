"""`wirecheck why`: one screen about one topic, client, group or broker.

Knows: in which forms the facts are printed. Refuses to know what they are (questions/subject_facts.py).
"""

import shutil
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from wirecheck.commands import names, options
from wirecheck.commands.listing import (
    AROUND_LINES,
    Cells,
    inputs_argument,
    lines,
    options_of_listing,
    show_csv,
    span,
)
from wirecheck.commands.screen import as_json, note, paints, tell
from wirecheck.commands.screen import row as line
from wirecheck.commands.units import time
from wirecheck.document import document
from wirecheck.session.frame_tables import capture_frames
from wirecheck.session.inputs import result_folder
from wirecheck.session.kept_subjects import OF_CAPTURE, kept_subjects, need_no_time, subject_of
from wirecheck.session.results import need_whole
from wirecheck.session.subjects import kind_of
from wirecheck.wording import and_list, plural, several_days

if TYPE_CHECKING:
    from pathlib import Path

    from wirecheck.questions.subject_facts import Fact, Sections

KINDS = ("topic", "group", "broker", "client")
AROUND_SECTION = 3
"""Lines of a section that are not rows: an empty one, its title, and how many more there are."""


@click.command(cls=options.Sections, short_help="Show one topic, client, group or broker.")
@click.argument("name", metavar="NAME")
@inputs_argument
@click.option("--type", "kind", type=click.Choice(KINDS), help="What NAME is, if it is several things.")
@click.option("--at", type=time, metavar="TIME", help="Describe partitions as brokers did then, such as 00:20:03.")
@click.option("--all", "every", is_flag=True, help="Print all lines of each section.")
@options_of_listing
def why(
    name: str, inputs: tuple[str, ...], form: str, ports: tuple[int, ...], *, every: bool, strict: bool, **asked: Any
) -> None:
    """Show what a capture knows about one topic, client, group or broker. Findings come first.

    A topic: errors, its IDs over time, who writes and reads it, followers, how each broker describes its partitions
    (descriptions that differ are marked), and who changed it. A client: errors, connections and how they ended, topics,
    groups, requests with latencies. A group: members, each rebalance with its trigger and duration, committed offsets
    and lag. A broker: errors, addresses, registrations, what it follows, requests with latencies.

    A name that is in several clusters of the input is shown for each of them.

    NAME is a topic, client ID, group ID, broker ID or broker address. INPUT is one or more pcaps or folders of frames,
    or the --out folder of a replay or a monitor; a line says what only the capture shows.

    \b
    Examples:
      wirecheck why orders incident.pcapng
      wirecheck why orders incident.pcapng --at 2026-11-21T00:20:03Z
      wirecheck why billing verdict/ --type group --format json
    """
    from wirecheck.questions.subject import Subject
    from wirecheck.questions.subject_facts import sections
    from wirecheck.session.cluster_readings import Reading, read, subjects
    from wirecheck.session.subject_findings import with_findings

    folder = result_folder(inputs)
    if folder is not None:
        of_results(name, folder, ports, form, every=every, strict=strict, **asked)
        return
    subject = Subject(name, options.dialects())
    reading = Reading(options.session(), inputs, ports)
    with capture_frames(reading.session, inputs, strict=strict) as frames:
        result = read(reading, subject, frames)
    kind, others = kind_of(subject, asked["kind"])
    at = asked["at"] and asked["at"].on_day_of(subject.traffic.first_ns)
    shown = []
    for cluster, one in subjects(reading, subject, result, kind):
        found = with_findings(sections(one, kind, at and at.ns), one, kind, result, cluster)
        shown.append((View(name, kind, cluster), found))
        if one.others:
            tell(f"wirecheck: not kept: {plural(one.others, 'more fact')}")
    show(shown, form, every=every)
    if form == "text":
        note(f"{subject.traffic.text()}{also(name, others)}")


def of_results(
    name: str, folder: "Path", ports: tuple[int, ...], form: str, *, every: bool, strict: bool, **asked: Any
) -> None:
    from wirecheck.questions.subject_facts import sections
    from wirecheck.session.subject_findings import with_findings

    need_no_time(folder, asked["at"])
    subject, result = subject_of(options.session(), folder, name, ports)
    kind, others = kind_of(subject, asked["kind"])
    found = kept_subjects(folder, subject, result, kind)
    shown = [
        (View(name, kind, cluster), with_findings(sections(one, kind), one, kind, result, cluster))
        for cluster, one in found or [(None, subject)]
    ]
    show(shown, form, every=every)
    lacking = [OF_CAPTURE[kind]] if kind in OF_CAPTURE else []
    lacking += ["which of the clusters has what"] if found is None else []
    if lacking:
        tell(f"wirecheck: not in results: {and_list(lacking)}; ask the capture")
    if form == "text":
        coverage = result.coverage()
        note(f"{plural(coverage.messages, 'message')}, {coverage.decoded_messages:,} decoded{also(name, others)}")
    need_whole(result.coverage(), strict=strict)


def also(name: str, others: list[str]) -> str:
    return "".join(f"; {name} is also a {other}: --type {other}" for other in others)


class View(NamedTuple):
    """What is shown."""

    name: str
    kind: str
    cluster: str | None
    """Where the name is in several."""


def show(shown: "list[tuple[View, Sections]]", form: str, *, every: bool) -> None:
    if form == "csv":
        show_csv(
            [
                ({"cluster": view.cluster} if view.cluster else {}) | {"section": key(title)} | document(fact)
                for view, found in shown
                for title, facts in found.items()
                for fact in facts
            ]
        )
        return
    for place, (view, found) in enumerate(shown):
        if form == "json":
            lists = {key(title): [names.in_row(document(fact)) for fact in facts] for title, facts in found.items()}
            click.echo(as_json({"name": view.name, "type": view.kind, "cluster": view.cluster, "sections": lists}))
        else:
            click.echo("\n" * bool(place), nl=False)
            show_text(view, found, every=every)


def key(title: str) -> str:
    """`Written by` as written_by, without what stands behind a comma."""
    return title.partition(",")[0].lower().replace(" ", "_")


def show_text(view: View, found: "Sections", *, every: bool) -> None:
    """On a terminal what fits: of each section what needs a look, then its first lines."""
    from wirecheck.questions.subject_facts import MOST_FACTS
    from wirecheck.session.cluster_readings import UNKNOWN

    times = (at for facts in found.values() for fact in facts for at in (fact.first_ns, fact.last_ns) if at)
    dated = several_days(times)
    rows = {
        title: lines([cells_of(fact, dated=dated) for fact in (facts if every else facts[:MOST_FACTS])])
        for title, facts in found.items()
    }
    kept = {(title, place) for title, texts in rows.items() for place in range(len(texts))}
    if sys.stdout.isatty() and not every:
        kept = fitting(found, rows, shutil.get_terminal_size().lines - AROUND_LINES - AROUND_SECTION * len(rows))
    known = "" if view.cluster == UNKNOWN else "cluster "
    where = f" in {known}{view.cluster}" if view.cluster else ""
    click.echo(line([(f"{view.kind} {view.name}{where}", "topic")], paint=paints()))
    for title, texts in rows.items():
        shown = [text for place, text in enumerate(texts) if (title, place) in kept]
        left = len(found[title]) - len(shown)
        click.echo("\n".join(["", title, *shown, *([f"  and {left:,} more (--all)"] if left else [])]))


def fitting(found: "Sections", rows: dict[str, list[str]], most_lines: int) -> set[tuple[str, int]]:
    """(section, place) of rows that fit so many lines."""
    places = [(title, place) for title, texts in rows.items() for place in range(len(texts))]
    kept = set()
    for title, place in sorted(places, key=lambda one: (one[1] > 0, not found[one[0]][one[1]].wrong, one[1])):
        height = rows[title][place].count("\n") + 1
        if place == 0 or height <= most_lines:
            kept.add((title, place))
            most_lines -= height
    return kept


def cells_of(fact: "Fact", *, dated: bool) -> Cells:
    return [
        ("!" if fact.wrong else " ", "error"),
        (fact.what, "error" if fact.wrong else "topic"),
        (names.in_text(fact.who), "client"),
        ("" if fact.count is None else f"{fact.count:,}", "count"),
        (span(fact.first_ns, fact.last_ns, dated=dated), "time"),
        (names.in_text(fact.details), "details"),
    ]
