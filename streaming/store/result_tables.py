"""Every result table: its columns, one sentence each, and how rows become Arrow.

Knows: names, types and meanings, in the order people read them. Knows nothing of how a row came to be.
Rule: tables only grow: a column keeps its name, type and meaning for ever. Times are timestamp[us] in UTC (Spark
refuses nanoseconds); ids print as Kafka's base64. Every row is a revision: the last one of an `id` holds.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

TIME = pa.timestamp("us", tz="UTC")
TEXTS = pa.list_(pa.string())
SIGHTING = pa.struct(
    [
        ("time", TIME),
        ("claim", pa.string()),
        ("connection", pa.string()),
        ("api", pa.string()),
        ("version", pa.int32()),
        ("correlation_id", pa.int32()),
        ("frame", pa.struct([("source", pa.string()), ("first", pa.int64()), ("last", pa.int64())])),
    ]
)
Columns = tuple[tuple[str, pa.DataType, str], ...]
REVISION: Columns = (
    ("id", pa.string(), "Identity of the row: a later revision replaces an earlier one."),
    ("revision", pa.int32(), "Grows with every revision of an id."),
    ("label", pa.string(), "The cluster label given to the agent."),
)
SPAN: Columns = (
    ("first_seen", TIME, "Capture time of the first exchange it rests on."),
    ("last_seen", TIME, "Capture time of the last one."),
)
FINDINGS: Columns = (
    *REVISION,
    ("state", pa.string(), "open, or withdrawn when later frames refuted it."),
    ("code", pa.string(), "Code of the check: wirecheck explain CODE."),
    ("name", pa.string(), "Name of the check."),
    ("kind", pa.string(), "violation, anomaly, information or visibility."),
    (
        "cluster",
        pa.string(),
        "ClusterId where known, else the label; null where something speaks against every known one.",
    ),
    ("topic", pa.string(), "Topic name, where it is about one and the name is known."),
    ("topic_ids", TEXTS, "Topic ids it is about."),
    ("client_ids", TEXTS, "Client ids it is about."),
    ("brokers", pa.list_(pa.int32()), "Broker ids it is about."),
    ("summary", pa.string(), "One sentence, from the check's template."),
    *SPAN,
    ("count", pa.int64(), "How often it was seen."),
    ("sides", pa.list_(SIGHTING), "The claims that contradict each other, each with its exchange and frames."),
    ("others", pa.int64(), "Null; on a check's one row beyond its bound: how many more findings were not kept."),
)
TOPICS: Columns = (
    *REVISION,
    ("withdrawn", pa.bool_(), "The row no longer holds: another cluster or name was found for it."),
    (
        "cluster",
        pa.string(),
        "ClusterId where known, else the label; null where something speaks against every known one.",
    ),
    ("name", pa.string(), "Topic name; null while an id is unresolved."),
    ("topic_id", pa.string(), "Topic id; null for a topic that was only seen without one."),
    *SPAN,
    ("sources", TEXTS, "Who bound the id to the name, or spoke of a topic without one, from a closed list."),
    ("state", pa.string(), "current, replaced, deleted or unresolved; others: no topic, see there."),
    ("earlier_ids", TEXTS, "Ids the name had before, oldest first; on the current row."),
    ("others", pa.int64(), "Null; on the one row beyond the bound: how many more topics were not kept."),
)
DESCRIBED: Columns = (
    ("withdrawn", pa.bool_(), "The row no longer holds: another cluster was found for it."),
    (
        "cluster",
        pa.string(),
        "ClusterId where known, else the label; null where something speaks against every known one.",
    ),
    ("topic_id", pa.string(), "Topic id; its name stands in the table of topics."),
    ("name", pa.string(), "Topic name, where it was said without an id; else null."),
)
SAID: Columns = (
    ("source", pa.string(), "Who said so first: metadata, leader-and-isr, update-metadata, metadata-log, ..."),
    ("connection", pa.string(), "The connection on which it was said first: ip:port>ip:port, client first."),
    ("first_seen", TIME, "Capture time of the first exchange that said so."),
)
PARTITIONS: Columns = (
    *REVISION,
    *DESCRIBED,
    ("partition", pa.int32(), "Number of the partition. A partition has one row per state it was in."),
    ("leader", pa.int32(), "Broker id of the leader; -1 for none."),
    ("leader_epoch", pa.int32(), "Leader epoch; -1 where the version carries none."),
    ("replicas", pa.list_(pa.int32()), "Broker ids of the replicas, the preferred leader first."),
    ("isr", pa.list_(pa.int32()), "Broker ids of the replicas in sync."),
    ("offline_replicas", pa.list_(pa.int32()), "Replicas said to be offline; null where nobody said any or none."),
    *SAID,
    ("until", TIME, "Capture time at which a later leader epoch began, or it was said last; null while it holds."),
)
DESCRIPTIONS: Columns = (
    *REVISION,
    *DESCRIBED,
    ("internal", pa.bool_(), "Whether the topic is internal to Kafka; null where the version does not say."),
    ("authorized_operations", TEXTS, "What the asker may do with it, by name; null where it was not asked."),
    *SAID,
)
CLIENTS: Columns = (
    *REVISION,
    ("withdrawn", pa.bool_(), "The row no longer holds: another cluster was found for it."),
    (
        "cluster",
        pa.string(),
        "ClusterId where known, else the label; null where something speaks against every known one.",
    ),
    ("client_id", pa.string(), "Client id of the request header."),
    ("address", pa.string(), "Address without port."),
    ("software_name", pa.string(), "From ApiVersions v3+; null where the client never said."),
    ("software_version", pa.string(), "From ApiVersions v3+; null where the client never said."),
    (
        "apis",
        pa.list_(pa.struct([("api", pa.string()), ("versions", pa.list_(pa.int32()))])),
        "Versions used per API, ascending.",
    ),
    ("requests", pa.int64(), "Requests seen."),
    *SPAN,
    ("others", pa.int64(), "Null; on the one row beyond the bound: how many more clients were not kept."),
)
CLUSTERS: Columns = (
    *REVISION,
    ("withdrawn", pa.bool_(), "The row no longer holds: it was joined with another."),
    (
        "cluster_id",
        pa.string(),
        "ClusterId; null while no server stated it, and of endpoints that can be of none that is known.",
    ),
    ("endpoints", TEXTS, "Server endpoints, ip:port, that belong to it."),
    ("brokers", pa.list_(pa.int32()), "Broker ids it is known to have."),
    *SPAN,
)
COVERAGE: Columns = (
    *REVISION,
    ("withdrawn", pa.bool_(), "The row no longer holds: what is counted got another name."),
    ("connection", pa.string(), "The connection counted; null for what belongs to none."),
    ("measure", pa.string(), "What is counted."),
    ("count", pa.int64(), "How much of it."),
    ("detail", pa.string(), "Which one, where a measure has several: the reason, or the error's line."),
)
EXCHANGES: Columns = (
    ("label", pa.string(), "The cluster label given to the agent."),
    ("connection", pa.string(), "ip:port>ip:port, client first."),
    ("time", TIME, "Capture time of the request's first byte, or of the response's where the request is unseen."),
    ("api", pa.string(), "API name; its number where it is unknown."),
    ("version", pa.int32(), "Request version; -1 where the request is unseen."),
    ("correlation_id", pa.int32(), "Correlation id."),
    ("outcome", pa.string(), "answered, or why there is no response or no request."),
    ("request_bytes", pa.int64(), "Size of the request on the wire; null where unseen."),
    ("response_bytes", pa.int64(), "Size of the response on the wire; null where unseen."),
    ("latency_us", pa.int64(), "From the request's last frame to the response's first."),
    ("request_status", pa.string(), "decoded, or why not."),
    ("response_status", pa.string(), "decoded, or why not."),
)
TOTALS: Columns = (
    *REVISION,
    ("measure", pa.string(), "What is counted since the run began; metrics are made of it."),
    ("detail", pa.string(), "Which one, where a measure has several: api:version, reason, code or agent."),
    ("count", pa.int64(), "How much of it; of judged_ns a time in nanoseconds, of followed_files a file number."),
)
MEANINGS: Mapping[str, str] = {
    "findings": "What contradicts what, or breaks a rule. One row per finding.",
    "topics": "Which topics there are. One row per topic id; topics without ids have one row with a null id.",
    "partitions": "What partitions looked like. One row per state that a partition was in.",
    "descriptions": "What answers say of a topic as a whole. One row per thing said.",
    "clients": "Who speaks what. One row per client id and address.",
    "clusters": "Which endpoints make one cluster.",
    "coverage": "How much of the traffic the other tables rest on. One row per connection and measure.",
    "totals": "What a batch added to the monitor's counters.",
    "exchanges": "Every request with its response, when asked for. One row each, no revisions.",
}
"""One or two sentences per table."""
TABLES: Mapping[str, Columns] = {
    "findings": FINDINGS,
    "topics": TOPICS,
    "partitions": PARTITIONS,
    "descriptions": DESCRIPTIONS,
    "clients": CLIENTS,
    "clusters": CLUSTERS,
    "coverage": COVERAGE,
    "exchanges": EXCHANGES,
    "totals": TOTALS,
}
UNSHOWN = ("exchanges", "totals")
"""Tables that are no part of a verdict."""


def schema(table: str) -> pa.Schema:
    return pa.schema([pa.field(name, kind, metadata={"comment": meaning}) for name, kind, meaning in TABLES[table]])


def to_ipc(table: str, rows: Iterable[Mapping[str, Any]]) -> bytes:
    """Rows as one cell. Times are given in nanoseconds since 1970; a name that is no column is our mistake."""
    columns = schema(table)
    made = [in_microseconds(row, columns) for row in rows]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, columns) as writer:
        writer.write_table(pa.Table.from_pylist(made, columns))
    return bytes(sink.getvalue())


def from_ipc(cell: bytes) -> pa.Table:
    return pa.ipc.open_stream(cell).read_all()


def in_microseconds(row: Mapping[str, Any], columns: pa.Schema) -> dict[str, Any]:
    strangers = row.keys() - set(columns.names)
    if strangers:
        msg = f"no such column: {', '.join(sorted(strangers))}"
        raise KeyError(msg)
    return {name: in_unit(row.get(name), columns.field(name).type) for name in columns.names}


def in_unit(value: Any, kind: pa.DataType) -> Any:
    """Nanoseconds to microseconds, wherever a time stands."""
    if value is None:
        return None
    if pa.types.is_timestamp(kind):
        return value // 1000
    if pa.types.is_list(kind):
        return [in_unit(item, kind.value_type) for item in value]
    if pa.types.is_struct(kind):
        return {
            kind.field(i).name: in_unit(value[kind.field(i).name], kind.field(i).type) for i in range(kind.num_fields)
        }
    return value


def document() -> str:
    """The page of every table and column."""
    lines = [
        "# Result tables",
        "",
        "Generated by `make docs` from `streaming/store/result_tables.py`. Parquet files under",
        "`TABLE/run=ID/batch_id=N/` in the --out folder of a replay or a monitor. Every row is a revision: of the",
        "rows with one `id` the one of the highest `revision` holds, unless it says `withdrawn` (findings: their",
        "`state` does). Tables only grow: a column keeps its name, type and meaning for ever. Times are UTC; ids print",
        "as Kafka's base64.",
    ]
    for name, columns in TABLES.items():
        lines += ["", f"## {name}", MEANINGS[name], "", "| column | type | meaning |", "|---|---|---|"]
        lines += [f"| `{column}` | {type_name(kind)} | {meaning} |" for column, kind, meaning in columns]
    return "\n".join(lines) + "\n"


def type_name(kind: pa.DataType) -> str:
    """An Arrow type as people write it."""
    if pa.types.is_list(kind):
        return f"list of {type_name(kind.value_type)}"
    if pa.types.is_struct(kind):
        return "{" + ", ".join(f"{field.name}: {type_name(field.type)}" for field in kind) + "}"
    return "timestamp (us, UTC)" if pa.types.is_timestamp(kind) else str(kind)
