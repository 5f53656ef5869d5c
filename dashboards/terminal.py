"""A replay's result as lines for a person at a terminal.

Knows the one JSON object that a replay gives (coverage, clusters, topics, clients, findings) and how an SRE reads it:
what was seen first, then what is wrong, then what is known. Refuses to know how any of it was found.
Rule: nothing is shown that is not in the object, and everything a line claims can be looked up in it.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from dashboards.topic_id import hex_id

COLOURS = {"violation": "bold red", "anomaly": "yellow", "information": "cyan", "visibility": "magenta"}
KINDS = tuple(COLOURS)
SIDES_SHOWN = 4
WIDE = 110  # columns from which both forms of an id fit on one line

Row = Mapping[str, Any]


def show(result: Row, console: Console) -> None:
    """Print a whole result: coverage, findings, topics, clusters."""
    console.print(coverage_text(result["coverage"]))
    for error in result["coverage"]["input_errors"]:
        console.print(Text(f"  not all was readable: {error}", style="yellow"))
    for cluster in result["clusters"]:
        console.print(cluster_text(cluster))
    console.print()
    if result["topics"]:
        console.print(topics_table(result["topics"], many=len(result["clusters"]) > 1, wide=console.width >= WIDE))
    console.print(tally_text(result["findings"]))
    for finding in by_severity(result["findings"]):
        console.print()
        for line in finding_lines(finding):
            console.print(line, soft_wrap=True)


def coverage_text(coverage: Row) -> Text:
    """One line: how much of the traffic the verdict rests on. It comes before any verdict (DESIGN section 6)."""
    messages, decoded = coverage["messages"], coverage["decoded_messages"]
    share = f"{100 * decoded / messages:.1f} %" if messages else "none"
    text = Text("Coverage  ", style="bold")
    text.append(
        f"{coverage['frames']:,} frames, {coverage['connections']:,} connections, {messages:,} messages; "
        f"decoded {decoded:,} ({share})",
        style="not bold",
    )
    for count, words in (
        (coverage["unseen_bytes"], "bytes not captured"),
        (coverage["encrypted_connections"], "encrypted connections"),
        (coverage["undecoded_messages"], "messages not decoded"),
    ):
        if count:
            text.append(f", {count:,} {words}", style="not bold magenta")
    return text


def cluster_text(cluster: Row) -> Text:
    endpoints = cluster["endpoints"]
    shown = ", ".join(endpoint_text(endpoint) for endpoint in endpoints[:6])
    more = f" and {len(endpoints) - 6} more" if len(endpoints) > 6 else ""
    text = Text("Cluster   ", style="bold")
    text.append(f"{cluster['cluster_id'] or '(id not seen)'} [{cluster['label']}]  {shown}{more}", style="not bold")
    return text


def endpoint_text(endpoint: Any) -> str:
    if isinstance(endpoint, Mapping):
        broker = endpoint.get("broker_id")
        return str(endpoint["address"]) + (f" (broker {broker})" if broker is not None else "")
    return str(endpoint)


def topics_table(topics: Iterable[Row], *, many: bool, wide: bool) -> Table:
    """One row per id, so that a name's earlier ids stand above the current one."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in [*(["cluster"] if many else []), "topic", "topic id", "state", "first seen"]:
        table.add_column(heading, no_wrap=heading in {"topic id", "state", "first seen"}, overflow="fold")
    for topic in topics:
        both = (topic["topic_id"] or "(no id)", hex_id(topic["topic_id"]))
        cells = [topic["cluster"]] if many else []
        cells += [topic["name"] or "(not named)", ("  " if wide else "\n").join(both).strip()]
        cells += [topic["state"], clock(topic["first_seen"])]
        table.add_row(*map(Text, cells), style=None if topic["state"] == "current" else "dim")
    return table


def tally_text(findings: Iterable[Row]) -> Text:
    kinds = [finding["kind"] for finding in findings]
    text = Text("\nFindings  ", style="bold")
    if not kinds:
        return text.append("none", style="not bold green")
    for kind in KINDS:
        if kind in kinds:
            text.append(f"{kinds.count(kind)} {kind}  ", style=COLOURS[kind])
    return text


def by_severity(findings: Iterable[Row]) -> list[Row]:
    return sorted(findings, key=lambda f: (KINDS.index(f["kind"]), f["code"], f["first_seen"], f["id"]))


def finding_lines(finding: Row) -> Iterator[Text]:
    head = Text(f"{finding['code']} {finding['name']}", style=COLOURS[finding["kind"]])
    head.append(f"  {finding['kind']}  x{finding['count']}  {clock(finding['first_seen'])}", style="not bold dim")
    yield head.append(f"  {finding['id']}", style="not bold dim")
    yield Text("  " + finding["summary"])
    if finding["kind"] == "information":
        return
    for side in finding["sides"][:SIDES_SHOWN]:
        yield Text("    " + side_text(side), style="dim")
    if len(finding["sides"]) > SIDES_SHOWN:
        yield Text(f"    and {len(finding['sides']) - SIDES_SHOWN} more (--format json)", style="dim")


def side_text(side: Row) -> str:
    frame = side.get("frame") or {}
    where = f"frame {frame['first']} of {frame['source']}" if frame.get("first") else ""
    api = f"{side['api']} v{side['version']}" if side.get("api") else ""
    return "  ".join(filter(None, (clock(side["time"]), side["claim"], side.get("connection"), api, where)))


def clock(time: str | None) -> str:
    """The time of day with milliseconds out of an RFC 3339 time: dates rarely differ inside one incident."""
    return f"{time[11:23]}Z" if time else ""
