"""`wirecheck agreement`: who states which ID of each topic, and which versions each server advertises and answers.

Knows: the columns in which that is printed. Refuses to know what contradicts what (story/agreement.py).
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from wirecheck.commands import names, options
from wirecheck.commands.listing import SHARED, Cells, Listing, inputs_argument
from wirecheck.commands.screen import as_json, legible
from wirecheck.document import document
from wirecheck.session.agreement import agreement as agreement_of
from wirecheck.session.results import need_whole
from wirecheck.wording import clock

if TYPE_CHECKING:
    from wirecheck.judge.results.agreement_rows import ApiVersions, TopicStatement
    from wirecheck.story.agreement import AgreementTable, Marked, ServerRelease

SIGNS = {"violation": "\u2718", "anomaly": "!", "visibility": "?", "clear": "\u2714"}


def options_of_table(command: Any) -> Any:
    return options.decorated(command, SHARED)


@click.command(cls=options.Sections, short_help="List who states which topic ID and which versions.")
@inputs_argument
@click.option("--topic", metavar="NAME", help="Only this topic.")
@click.option("--all", "every", is_flag=True, help="Print all lines: APIs that no client used, too.")
@options.cluster
@options_of_table
def agreement(
    inputs: tuple[str, ...], form: str, cluster: str, *, topic: str | None, every: bool, strict: bool
) -> None:
    """List what all parties state, and whether they agree: the mark of IDs and versions is the last line.

    INPUT is one or more captures or folders of frames, or the --out folder of a replay or a monitor.

    Topics: who states which ID, in which messages, from when to when. null: the message carries IDs and has none.
    absent: its version carries none. APIs: what each server advertises, and which versions were used, answered and
    rejected there. Servers: the Kafka release that the advertised ranges fit, and what differs from it.

    \b
    Examples:
      wirecheck agreement incident.pcapng
      wirecheck agreement verdict/ --topic orders
      wirecheck agreement incident.pcapng --format json
    """
    table, coverage = agreement_of(options.session(), inputs, cluster)
    servers = table.servers if topic is None else []
    topics = [row for row in table.topics if topic in {None, row[0].topic, row[0].topic_id}]
    apis = [row for row in table.apis if topic is None and (every or form != "text" or is_used(row[0]))]
    if form == "json":
        click.echo(as_json(as_document(table, topics, apis, servers)))
    elif form == "csv":
        TOPICS.show(topics, form, every=True)
    else:
        show(table, topics, apis, servers, every=every)
    need_whole(coverage, strict=strict)


def is_used(one: "ApiVersions") -> bool:
    return bool(one.used or one.answered or one.rejected)


def show(
    table: "AgreementTable",
    topics: Sequence[Any],
    apis: Sequence[Any],
    servers: "Sequence[ServerRelease]",
    *,
    every: bool,
) -> None:
    listings: tuple[tuple[Listing[Any], Sequence[Any]], ...] = (
        (TOPICS.of_clusters(lambda row: row[0].cluster, topics, 1), topics),
        (APIS.of_clusters(lambda row: row[0].cluster, apis, 1), apis),
        (SERVERS.of_clusters(lambda row: row.cluster, servers, 0), servers),
    )
    for listing, rows in listings:
        if rows:
            listing.show(rows, "text", every=every)
            click.echo()
    for finding in table.others:
        click.echo(legible(f"{SIGNS[finding.kind]} {finding.code} {finding.summary}"))
    click.echo(legible(f"{SIGNS[table.mark.mark]} IDs and versions: {table.mark.sentence}"))


def as_document(
    table: "AgreementTable", topics: Sequence[Any], apis: Sequence[Any], servers: "Sequence[ServerRelease]"
) -> dict[str, Any]:
    return {
        "topics": [names.in_row(as_row(row)) for row in topics],
        "apis": [names.in_row(as_row(row)) for row in apis],
        "servers": [names.in_row(document(one)) for one in servers],
        "others": [finding.id for finding in table.others],
        "mark": table.mark,
    }


def as_row(row: tuple[Any, "Marked"]) -> dict[str, Any]:
    one, marked = row
    return {**document(one), "mark": marked.mark, "codes": list(marked.codes)}


def of_topic(row: "tuple[TopicStatement, Marked]", dated: bool) -> Cells:
    """`✔  orders  JMxDMv...  broker 1  Metadata  12:00:01  12:02:01  14`."""
    one, marked = row
    return [
        (SIGNS[marked.mark], "sign"),
        (names.in_text(one.topic or "-"), "topic"),
        (one.topic_id or one.stated, "topic"),
        (names.in_text(one.party), "client"),
        (one.api, "client"),
        (clock(one.first_ns, dated=dated), "time"),
        (clock(one.last_ns, dated=dated), "time"),
        (f"{one.count:,}", "count"),
        (", ".join(marked.codes), "error"),
    ]


def of_api(row: "tuple[ApiVersions, Marked]", dated: bool) -> Cells:  # noqa: ARG001 - as Listing calls it
    one, marked = row
    return [
        (SIGNS[marked.mark], "sign"),
        (one.server, "host"),
        (one.api, "topic"),
        (", ".join(one.advertised) or "-", "count"),
        *((numbers(found), "count") for found in (one.used, one.answered, one.rejected)),
        (", ".join(marked.codes), "error"),
    ]


def of_server(one: "ServerRelease", dated: bool) -> Cells:  # noqa: ARG001 - as Listing calls it
    return [
        (one.server, "host"),
        (one.release if one.release == UNKNOWN else f"Kafka {one.release}", "count"),
        ("; ".join(one.differences), "error"),
    ]


UNKNOWN = "unknown"


def numbers(versions: Sequence[int]) -> str:
    """`9, 12`; `-` for none."""
    return ", ".join(map(str, versions)) or "-"


TOPICS: "Listing[tuple[TopicStatement, Marked]]" = Listing(
    "statements",
    as_row,
    of_topic,
    lambda row: (row[0].first_ns, row[0].last_ns),
    headings=("", "topic", "ID", "stated by", "in", "since", "until", "times", "found"),
    spare=("times", "since", "until"),
)
APIS: "Listing[tuple[ApiVersions, Marked]]" = Listing(
    "APIs",
    as_row,
    of_api,
    lambda _row: (),
    headings=("", "server", "API", "advertised", "used", "answered", "rejected", "found"),
    spare=("answered", "advertised"),
)
SERVERS: "Listing[ServerRelease]" = Listing(
    "servers",
    document,
    of_server,
    lambda _row: (),
    headings=("server", "release", "differs in"),
)
