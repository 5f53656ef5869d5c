"""`wirecheck changes`: an audit of administrative requests.

Knows: the forms in which changes are printed, and how many lines a terminal shows at once. Refuses to know which
requests change something (questions/changes.py).
"""

from typing import TYPE_CHECKING

import click

from wirecheck.commands import names, options
from wirecheck.commands.listing import Cells, Listing, Row, inputs_argument, need_messages, options_of_rows
from wirecheck.commands.screen import note, tell
from wirecheck.document import document
from wirecheck.session.frame_tables import capture_frames
from wirecheck.session.inputs import result_folder
from wirecheck.session.results import changes_of, need_whole
from wirecheck.wording import broker_name, client_name, clock, plural

if TYPE_CHECKING:
    from wirecheck.questions.changes import Change, Changes


@click.command(cls=options.Sections, short_help="List changes to topics, configurations, ACLs and groups.")
@inputs_argument
@click.option("--object", "name", metavar="NAME", help="Only changes of this topic, group, user or broker.")
@click.option("--failed", is_flag=True, help="Only requests that were rejected or not answered.")
@click.option("--all", "every", is_flag=True, help="Print all lines, even if they exceed a screen.")
@options.principals
@options_of_rows
def changes(
    inputs: tuple[str, ...],
    name: str | None,
    form: str,
    ports: tuple[int, ...],
    *,
    failed: bool,
    every: bool,
    strict: bool,
    no_principals: bool,
) -> None:
    """List who changed what: topics, partitions, configurations, ACLs, quotas, credentials, groups, leaders, features.

    Each line has the time, the request, the object, the client ID, the principal, the client's address, the broker and
    the answer. A KRaft broker forwards these requests to the controller with the client's principal and address, so
    both are known even if the client itself uses TLS. Values of configurations and credentials are never printed.

    INPUT is one or more pcaps or folders of frames, or the --out folder of a replay or a monitor.

    \b
    Examples:
      wirecheck changes incident.pcapng
      wirecheck changes incident.pcapng --object orders
      wirecheck changes verdict/ --format json |
        jq 'select(.action == "DeleteTopics")'
    """
    from wirecheck.questions.changes import Changes

    def show(found: "Changes", basis: str) -> None:
        chosen = [change for change in found.merged() if is_chosen(change, name, failed=failed)]
        if no_principals:
            chosen = [change.without_principals() for change in chosen]
        listing(several=len({change.cluster for change in chosen} - {None}) > 1).show(chosen, form, every=every)
        if found.others:
            tell(f"wirecheck: not listed: {plural(found.others, 'more change')}")
        if found.unread:
            tell(f"wirecheck: {plural(found.unread, 'administrative request')} could not be read and had no answer")
        if form == "text":
            note(f"{summary(chosen)}; {basis}")

    folder = result_folder(inputs)
    if folder is not None:
        kept, coverage = changes_of(options.session(), folder, ports)
        show(kept, f"{plural(coverage.messages, 'message')}, {coverage.decoded_messages:,} decoded")
        need_whole(coverage, strict=strict)
        return
    with capture_frames(options.session(), inputs, strict=strict) as frames:
        found = Changes(dialects=options.dialects()).read(frames, ports)
        need_messages(found, inputs)
        show(found, found.text())


def is_chosen(change: "Change", name: str | None, *, failed: bool) -> bool:
    return name in {None, change.object} and not (failed and change.error == "NONE")


def cells_of_several(change: "Change", dated: bool) -> Cells:
    """With the cluster before the broker."""
    *before, via, answer, details = cells(change, dated)
    return [*before, (change.cluster or "-", "cluster"), via, answer, details]


def cells(change: "Change", dated: bool) -> Cells:
    """`00:44:48  DeleteTopics songs  lab-admin  User:ANONYMOUS  127.0.0.1  via broker 1  ok`."""
    of_type = "" if change.object_type == "topic" else f"{change.object_type} "
    return [
        (clock(change.time_ns, dated=dated), "time"),
        (f"{change.action} {of_type}{change.object or whole(change)}".rstrip(), "topic"),
        (client_name(change.client_id), "client"),
        (names.in_text(change.named_principal or "-"), "principal"),
        (names.in_text(change.host) or "-", "host"),
        (f"via {names.in_text(broker_name(change.via_broker or ''))}{answered(change)}", "via"),
        (change.answer, "latency" if change.error is None else "error" if change.error != "NONE" else "ok"),
        (change.details, "details"),
    ]


def answered(change: "Change") -> str:
    """`, answered by node 1` of what a broker forwarded."""
    by = change.answered_by or ""
    return f", answered by {'node ' if by.isdigit() else ''}{names.in_text(by)}" if by else ""


def whole(change: "Change") -> str:
    """Of a request without a name: it means all objects of its type, but for tokens, which have none that is shown.
    A group may have the empty name, and of a topic only ElectLeaders leaves it out.
    """
    if change.object_type == "delegation token":
        return ""
    return "(all)" if change.action == "ElectLeaders" or change.object_type not in {"group", "topic"} else "''"


def summary(found: "list[Change]") -> str:
    """How many of which outcome: `4 changes: 3 accepted, 1 rejected`."""
    validated = sum(change.error == "NONE" and change.is_validation for change in found)
    accepted = sum(change.error == "NONE" for change in found) - validated
    unanswered = sum(change.error is None for change in found)
    counts = (
        (accepted, "accepted"),
        (validated, "only validated"),
        (len(found) - accepted - validated - unanswered, "rejected"),
        (unanswered, "without an answer"),
    )
    parts = ", ".join(f"{count:,} {outcome}" for count, outcome in counts if count)
    return f"{plural(len(found), 'change')}{': ' if parts else ''}{parts}"


def row(change: "Change") -> Row:
    """One change, as JSON and CSV have it."""
    frame = {"source": change.frame.source, "first": change.frame.first}
    found: Row = document(change)
    return found | {"host": change.host or None, "frame": frame}


def listing(*, several: bool = False) -> "Listing[Change]":
    """`several`: clusters, which are named."""
    shown = cells_of_several if several else cells
    return Listing("changes", row, shown, lambda change: (change.time_ns,), newest=True)
