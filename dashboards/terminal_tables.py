"""Topics and clients as tables for a terminal, and as rows for spreadsheets.

Knows the descriptions of topics and the clients of a replay's JSON, and how an SRE scans them: what is out of order
stands out. Refuses to know how any of it was found, and what a terminal may be told (the door sees to that).
Rule: nothing is shown that is not in the objects; a cell that nobody said anything for is empty or says so.
"""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from wirecheck.dashboards.verdict import UNKNOWN_CLUSTER

Row = Mapping[str, Any]
WIDEST = 1000
FOLDING = {
    "cluster": 8,
    "topic": 12,
    "client id": 12,
    "software": 8,
    "API versions": 16,
    "remarks": 8,
    "refused": 12,
    "said by": 10,
}
"""Columns that fold on narrow terminals, and from where; all others stay whole: whoever copies an id wants it so."""


def table(*headings: str) -> Table:
    made = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        folds = heading in FOLDING
        made.add_column(heading, overflow="fold", no_wrap=not folds, min_width=FOLDING.get(heading))
    return made


def put(made: Table, console: Console) -> None:
    """Print a table whole: on a terminal that is too narrow its lines go on below, where rich would drop columns."""
    width = console.width
    try:
        console.width = max(width, Measurement.get(console, console.options.update(width=WIDEST), made).minimum)
        console.print(made, crop=False)
    finally:
        console.width = width


def rows_table(rows: Iterable[Row], columns: Sequence[str]) -> Table:
    """Rows of any table of a result, by these of its columns."""
    made = table(*(column.replace("_", " ") for column in columns))
    for row in rows:
        made.add_row(*(Text(value_text(row[column])) for column in columns))
    return made


def value_text(value: Any) -> str:
    """What is null is empty."""
    if isinstance(value, list):
        return ", ".join(map(value_text, value))
    return "" if value is None else str(value)


def list_topics(topics: list[Row], console: Console) -> None:
    many = several(topics)
    made = table(*many, "topic", "topic id", "state", "parts", "last seen", "remarks")
    for topic in topics:
        cells = (
            *(topic[column] for column in many),
            topic["name"] or "(not named)",
            topic["topic_id"] or "(no id)",
            topic["state"],
            str(len(topic["partitions"]) or ""),
            clock(topic["last_seen"]),
            ", ".join(filter(None, ("internal" if topic["internal"] else "", troubles(topic)))),
        )
        made.add_row(*map(Text, cells), style=None if topic["state"] == "current" else "dim")
    if topics:
        put(made, console)
    else:
        console.print("no topic was seen")


def several(rows: list[Row]) -> list[str]:
    """The column that tells clusters apart, where there are several."""
    return ["cluster"] if len({row["cluster"] for row in rows}) > 1 else []


def troubles(topic: Row) -> str:
    """What is wrong with partitions now; of a topic that is gone they are as they were when it went."""
    partitions = topic["partitions"] if topic["state"] == "current" else []
    leaderless = sum(row["leader"] < 0 for row in partitions)
    short = sum(len(row["isr"]) < len(row["replicas"]) for row in partitions)
    said = ((leaderless, "without leader"), (short, "under-replicated"))
    return ", ".join(f"{count} {words}" for count, words in said if count)


def show_topics(topics: list[Row], console: Console) -> None:
    for number, topic in enumerate(topics):
        if number:
            console.print()
        for line in heading(topic):
            console.print(line, soft_wrap=True)
        if topic["partitions"]:
            put(partitions_table(topic["partitions"]), console)
        else:
            console.print("  no partitions were described")


def heading(topic: Row) -> Iterable[Text]:
    text = Text(topic["name"] or "(not named)", style="bold")
    yield text.append(f"  {topic['state']}  {cluster_of(topic)}", style="not bold")
    yield Text(
        f"  id             {topic['topic_id']}  {topic['topic_id_hex']}"
        if topic["topic_id"]
        else "  id             none seen"
    )
    if topic["earlier_ids"]:
        yield Text(f"  earlier ids    {' '.join(topic['earlier_ids'])}")
    yield Text(f"  seen           {topic['first_seen']} to {topic['last_seen']}")
    yield Text(f"  internal       {word(topic['internal'])}{by(topic['internal_claim'])}")
    operations = topic["authorized_operations"]
    told = "nobody asked" if operations is None else ", ".join(operations)
    yield Text(f"  authorized     {told}{by(topic['authorized_operations_claim'])}")


def cluster_of(topic: Row) -> str:
    return UNKNOWN_CLUSTER if topic["cluster"] is None else f"cluster {topic['cluster']}"


def word(value: bool | None) -> str:
    return "not said" if value is None else "yes" if value else "no"


def by(claim: Row | None) -> str:
    return f"  ({claim['source']}, {clock(claim['time'])}, {claim['connection']})" if claim else ""


def partitions_table(partitions: list[Row]) -> Table:
    """Offline replicas have a column where there are some."""
    offline = any(row["offline_replicas"] for row in partitions)
    headings = [
        "partition",
        "leader",
        "epoch",
        "replicas",
        "isr",
        *(["offline"] if offline else []),
        "since",
        "said by",
    ]
    made = table(*headings)
    for row in partitions:
        short = len(row["isr"]) < len(row["replicas"]) or row["leader"] < 0
        lists = ("replicas", "isr", "offline_replicas") if offline else ("replicas", "isr")
        cells = (
            str(row["partition"]),
            str(row["leader"]) if row["leader"] >= 0 else "none",
            str(row["leader_epoch"]) if row["leader_epoch"] >= 0 else "",
            *(numbers(row[column]) for column in lists),
            clock(row["time"]),
            row["source"],
        )
        made.add_row(*map(Text, cells), style="yellow" if short else None)
    return made


def list_clients(clients: list[Row], console: Console) -> None:
    many = several(clients)
    made = table(*many, "client id", "address", "software", "requests", "last seen", "API versions")
    for client in clients:
        used = ", ".join(f"{api} {'/'.join(map(str, versions))}" for api, versions in client["apis"].items())
        cells = (
            *(client[column] for column in many),
            name(client),
            client["address"],
            software(client),
            f"{client['requests']:,}",
            clock(client["last_seen"]),
            used,
        )
        made.add_row(*map(Text, cells), style="dim" if client["between_brokers"] else None)
    if clients:
        put(made, console)
    else:
        console.print("no client was seen")


def show_gate(refused: list[Row], seen: int, target: str, console: Console) -> None:
    if not refused:
        console.print(Text(f"{seen} clients seen, none sends a version that {target} refuses", style="green"))
        return
    console.print(Text(f"{len(refused)} of {seen} clients send versions that {target} refuses", style="bold red"))
    made = table("client id", "address", "software", "refused", "last seen")
    for client in refused:
        cells = (name(client), client["address"], software(client), versions_of(client), clock(client["last_seen"]))
        made.add_row(*map(Text, cells))
    put(made, console)


def versions_of(client: Row) -> str:
    by_api: dict[str, list[str]] = {}
    for api, version in client.get("rejected_by_target", ()):
        by_api.setdefault(api, []).append(f"v{version}")
    return ", ".join(f"{api} {' '.join(versions)}" for api, versions in by_api.items())


def name(client: Row) -> str:
    return client["client_id"] or "(no client id)"


def software(client: Row) -> str:
    said = (client["software_name"], client["software_version"])
    return " ".join(part for part in said if part) or "not said"


def numbers(values: list[int] | None) -> str:
    return "" if values is None else ",".join(map(str, values))


def clock(time: str | None) -> str:
    """An RFC 3339 time to the second, without its year: 11-21 00:20:25Z."""
    return f"{time[5:10]} {time[11:19]}Z" if time else ""


def partition_rows(topics: Iterable[Row]) -> list[Row]:
    """One flat row per partition, and one for a topic that has none described."""
    columns = ("cluster", "name", "topic_id", "topic_id_hex", "state", "internal")
    empty = dict.fromkeys(
        ("partition", "leader", "leader_epoch", "replicas", "isr", "offline_replicas", "time", "source", "connection")
    )
    return [
        {**{column: topic[column] for column in columns}, **empty, **row}
        for topic in topics
        for row in topic["partitions"] or [{}]
    ]


def client_rows(clients: Iterable[Row]) -> list[Row]:
    """One flat row per client."""
    return [
        {
            **{name: value for name, value in client.items() if name not in {"apis", "rejected_by_target"}},
            "apis": [f"{api}:{version}" for api, versions in client["apis"].items() for version in versions],
            "rejected_by_target": [f"{api}:{version}" for api, version in client.get("rejected_by_target", ())],
        }
        for client in clients
    ]


def csv_of(rows: list[Row]) -> str:
    """Rows with a heading; lists are separated by spaces, what is not known is empty."""
    out = io.StringIO()
    if rows:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(rows[0])
        for row in rows:
            writer.writerow(" ".join(map(str, value)) if isinstance(value, list) else value for value in row.values())
    return out.getvalue()
