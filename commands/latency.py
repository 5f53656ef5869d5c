"""`wirecheck latency`: how long each client waited for which answers.

Knows: the columns in which that is printed. Refuses to know how it is measured (questions/latency_rows.py).
"""

from typing import TYPE_CHECKING, Any

import click

from wirecheck.commands import names, options
from wirecheck.commands.counted_traffic import show_traffic
from wirecheck.commands.listing import (
    Cells,
    Listing,
    inputs_argument,
    note_hidden,
    options_of_rows,
)
from wirecheck.document import document
from wirecheck.wording import client_name, plural

if TYPE_CHECKING:
    from wirecheck.questions.latency_rows import ApiLatencyRow, LatencyRow
    from wirecheck.questions.traffic import Traffic


@click.command(cls=options.Sections, short_help="List how long clients wait for answers.")
@inputs_argument
@click.option("--client", metavar="ID", help="Only answers to this client ID.")
@click.option("--api", metavar="NAME", help="Only answers to requests of this API.")
@click.option(
    "--by", type=click.Choice(("client", "api")), default="client", help="One line a client and API, or one an API."
)
@options.since
@options.until
@click.option("--all", "every", is_flag=True, help="Print all lines: APIs that wait by design too, such as Fetch.")
@options.brokers
@options_of_rows
def latency(
    inputs: tuple[str, ...],
    form: str,
    ports: tuple[int, ...],
    *,
    every: bool,
    brokers: bool,
    strict: bool,
    **asked: Any,
) -> None:
    """List how long clients wait for answers, by client and API, slowest first.

    p50 and p99 are from a request's last byte to the answer's first, at the capture point. BROKER is the same without
    the network between capture point and broker, and NETWORK the way from the client to the broker and back, as far
    as the TCP handshake of the connection was captured. A p99 of fewer than 100 answers is the slowest of them, and
    dim. INPUT is one or more pcaps or folders of frames, or the --out
    folder of a replay or a monitor.

    \b
    Examples:
      wirecheck latency incident.pcapng
      wirecheck latency incident.pcapng --api Produce
      wirecheck latency incident.pcapng --by api
      wirecheck latency verdict/ --all --format csv
    """
    from wirecheck.client_ids import is_internal
    from wirecheck.questions.latency_rows import api_latency_rows, latency_rows

    def counts(client_id: str | None) -> bool:
        return asked["client"] in {None, client_id} and (
            brokers or asked["client"] is not None or not is_internal(client_id)
        )

    def show_apis(traffic: "Traffic", basis: str) -> None:
        found = [row for row in api_latency_rows(traffic, counts) if is_of_api(row, asked["api"])]
        shown = [row for row in found if every or form != "text" or asked["api"] is not None or not row.waits]
        APIS.show(shown, form, every=every)
        if form == "text":
            note_hidden(plural(len(shown), "API"), {"that wait (--all)": len(found) - len(shown)}, basis)

    def show(traffic: "Traffic", basis: str) -> None:
        found = [row for row in latency_rows(traffic) if is_chosen(row, asked)]
        mine = [row for row in found if brokers or form != "text" or not is_internal(row.client_id)]
        whole = every or form != "text" or asked["api"] is not None
        shown = [row for row in mine if whole or not row.waits]
        LISTING.of_clusters(lambda row: row.cluster, shown, 0).show(shown, form, every=every)
        if form == "text":
            hidden = {"of brokers (--brokers)": len(found) - len(mine), "that wait (--all)": len(mine) - len(shown)}
            note_hidden(plural(len(shown), "row"), hidden, basis)

    shown_so = show_apis if asked["by"] == "api" else show
    show_traffic(inputs, ports, (asked["since"], asked["until"]), shown_so, strict=strict)


def is_chosen(row: "LatencyRow", asked: dict[str, Any]) -> bool:
    return asked["client"] in {None, row.client_id} and is_of_api(row, asked["api"])


def is_of_api(row: "LatencyRow | ApiLatencyRow", api: str | None) -> bool:
    return (api or row.api).lower() == row.api.lower()


def cells(row: "LatencyRow", dated: bool) -> Cells:  # noqa: ARG001 - as Listing calls it
    """`p-lost  Produce  215  1.2 ms  8.4 ms  7.9 ms  0.3 ms  127.0.0.1`."""
    return [
        (client_name(row.client_id), "client"),
        (row.api, "topic"),
        *cells_of_times(row),
        (names.in_text(row.host), "host"),
    ]


def cells_of_api(row: "ApiLatencyRow", dated: bool) -> Cells:  # noqa: ARG001 - as Listing calls it
    """`Produce  3  215  1.2 ms  8.4 ms  7.9 ms  0.3 ms`."""
    return [(row.api, "topic"), (f"{row.clients:,}", "count"), *cells_of_times(row)]


def cells_of_times(row: "LatencyRow | ApiLatencyRow") -> Cells:
    of_99 = "latency" if row.count >= FEW else "time"
    return [
        (f"{row.count:,}", "count"),
        (f"{row.unanswered:,}" if row.unanswered else "-", "count"),
        (milliseconds(row.p50_ms), "latency"),
        (milliseconds(row.p99_ms), of_99),
        (milliseconds(row.broker_p99_ms), of_99),
        (milliseconds(row.network_p50_ms), "latency"),
    ]


FEW = 100
"""Answers, of which a hundredth is less than one."""


def milliseconds(time_ms: float | None) -> str:
    return "-" if time_ms is None else f"{time_ms:,.1f} ms" if time_ms < 100 else f"{time_ms:,.0f} ms"


OF_TIMES = ("count", "unanswered", "p50", "p99", "broker p99", "network p50")
SPARE = ("network p50", "broker p99")
APIS: "Listing[ApiLatencyRow]" = Listing(
    "APIs", document, cells_of_api, lambda _row: (), headings=("request", "clients", *OF_TIMES), spare=SPARE
)
LISTING: "Listing[LatencyRow]" = Listing(
    "rows",
    document,
    cells,
    lambda _row: (),
    headings=("client", "request", *OF_TIMES, "address"),
    spare=("address", *SPARE),
)
