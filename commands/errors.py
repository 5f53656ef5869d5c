"""`wirecheck errors`: which errors, of whom, how often, and whether they go on.

Knows: the columns in which errors are printed. Refuses to know what an error is and which one harms
(questions/error_rows.py).
"""

from typing import TYPE_CHECKING, Any

import click

from wirecheck.commands import completion, names, options
from wirecheck.commands.counted_traffic import show_traffic
from wirecheck.commands.ending import Stop
from wirecheck.commands.listing import (
    Cells,
    Listing,
    Row,
    inputs_argument,
    note_hidden,
    options_of_rows,
)
from wirecheck.commands.screen import tell
from wirecheck.document import document
from wirecheck.session.subjects import clients_first, close_to, of_broker, unknown
from wirecheck.wording import broker_name, client_name, clock, plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirecheck.questions.error_rows import ErrorRow
    from wirecheck.questions.traffic import Traffic


@click.command(cls=options.Sections, short_help="List errors, throttling and failed logins by client.")
@inputs_argument
@click.option("--client", metavar="ID", help="Only errors of this client ID.")
@click.option("--topic", metavar="NAME", shell_complete=completion.topic, help="Only errors about this topic.")
@click.option("--error", metavar="NAME", help="Only this error, such as NOT_LEADER_OR_FOLLOWER, or throttled.")
@options.since
@options.until
@click.option("--ongoing", is_flag=True, help="Only errors that continue until the end of the capture.")
@click.option("--all", "every", is_flag=True, help="Print all lines: routine errors too, and more than a screen.")
@options.brokers
@options_of_rows
def errors(
    inputs: tuple[str, ...],
    form: str,
    ports: tuple[int, ...],
    *,
    every: bool,
    brokers: bool,
    strict: bool,
    **asked: Any,
) -> None:
    """List errors by client, API and topic, worst first: how often, from when to when, and whether they continue.
    Errors of brokers' own requests are listed with --brokers, behind those of clients.

    Throttling (throttle_time_ms), failed logins and connections that a broker closed without a response are rows too.
    Errors that are part of the protocol's normal course are printed with --all only.

    INPUT is one or more pcaps or folders of frames, or the --out folder of a replay or a monitor.

    \b
    Examples:
      wirecheck errors incident.pcapng
      wirecheck errors incident.pcapng --client billing-7 --ongoing
      wirecheck errors verdict/ --client p-lost --since 2026-11-24T00:00Z
      wirecheck errors verdict/ --format json |
        jq 'select(.effect == "login failed")'
    """
    from wirecheck.questions.error_rows import error_rows

    def show(traffic: "Traffic", basis: str) -> None:
        need_seen(asked, traffic)
        found = [row for row in clients_first(error_rows(traffic)) if is_chosen(row, asked)]
        whole = form != "text"
        named = brokers or whole or asked["client"] is not None
        mine = [row for row in found if named or not of_broker(row)]
        shown = [row for row in mine if every or whole or row.effect != "routine"]
        listing(shown).show(shown, form, every=every)
        if traffic.failures.others:
            tell(f"wirecheck: not listed: {plural(traffic.failures.others, 'more error')}")
        if form == "text":
            hidden = {"of brokers (--brokers)": len(found) - len(mine), "routine (--all)": len(mine) - len(shown)}
            note_hidden(summary(shown), hidden, basis)

    show_traffic(inputs, ports, (asked["since"], asked["until"]), show, strict=strict)


def is_chosen(row: "ErrorRow", asked: dict[str, Any]) -> bool:
    return (
        asked["client"] in {None, row.client_id}
        and asked["topic"] in {None, row.topic}
        and (asked["error"] is None or asked["error"].lower() == row.error.lower())
        and not (asked["ongoing"] and row.status != "ongoing")
    )


def need_seen(asked: dict[str, Any], traffic: "Traffic") -> None:
    """Stop if a client or a topic was not seen, or Kafka has no such error: a typo is not "no errors"."""
    from wirecheck.decode import schemas
    from wirecheck.questions.traffic import GIVEN_UP, THROTTLED, UNANSWERED

    if asked["client"] is not None and asked["client"] not in (seen := traffic.client_ids()):
        raise Stop(unknown("client", asked["client"], seen))
    if asked["topic"] is not None and asked["topic"] not in (seen := traffic.topics()):
        raise Stop(unknown("topic", asked["topic"], seen))
    errors_known = {error.name for error in schemas.errors().values()} | {GIVEN_UP, THROTTLED, UNANSWERED}
    if asked["error"] is not None and asked["error"].lower() not in map(str.lower, errors_known):
        raise Stop(f"{asked['error']}: no such error{close_to(asked['error'].upper(), errors_known)}")


def cells(row: "ErrorRow", dated: bool) -> Cells:
    """`write rejected  ongoing  00:36:20  00:37:51  28  430  p-lost  127.0.0.1  Produce tickets  UNKNOWN_TOPIC_ID`."""
    role = "ok" if row.effect == "routine" else "error" if row.status == "ongoing" else "latency"
    throttled = f", throttled {row.throttling}" if row.throttling else ""
    often = f", {row.pace}" if row.pace else ""
    return [
        (row.effect, role),
        (row.status, role),
        (clock(row.first_ns, dated=dated), "time"),
        (clock(row.last_ns, dated=dated), "time"),
        (f"{row.count:,}", "count"),
        (f"{row.requests:,}", "count"),
        (client_name(row.client_id), "client"),
        (names.in_text(row.host), "host"),
        (row.about, "topic"),
        (f"{row.error}{often}", "error"),
        (f"{servers(row)}{throttled}", "details"),
    ]


def servers(row: "ErrorRow") -> str:
    """The most frequent two: `broker 2, broker 3`, or `through 10.9.0.1:9092`."""
    answered = row.servers
    shown = [names.in_text(broker_name(one)) for one in answered[:2]]
    through = "through " if row.through[:2] == answered[:2] else ""
    return through + ", ".join(shown) + (f" and {len(answered) - 2} more" if len(answered) > 2 else "")


def summary(shown: "list[ErrorRow]") -> str:
    """`3 errors, 1 ongoing`; besides connections of unknown clients that are refused still."""
    ongoing = [row for row in shown if row.effect != "routine" and row.status == "ongoing"]
    unknown = sum(row.is_of_unknown for row in ongoing)
    besides = f", besides {unknown:,} of unknown clients" if unknown else ""
    return f"{plural(len(shown), 'error')}, {len(ongoing) - unknown:,} ongoing{besides}"


def row_of(row: "ErrorRow") -> Row:
    """As JSON and CSV have it: times last."""
    found: Row = document(row)
    return found | {name: found.pop(name) for name in ("first_seen", "last_seen")}


def listing(rows: "Sequence[ErrorRow]") -> "Listing[ErrorRow]":
    return LISTING.of_clusters(lambda row: row.cluster, rows, CLUSTER_AT)


CLUSTER_AT = 6
"""Before the client."""
LISTING: "Listing[ErrorRow]" = Listing(
    "errors",
    row_of,
    cells,
    lambda row: (row.first_ns, row.last_ns),
    headings=(
        "effect",
        "state",
        "since",
        "until",
        "count",
        "of",
        "client",
        "address",
        "request",
        "error",
        "answered by",
    ),
    spare=("answered by", "address", "effect", "of", "until"),
)
