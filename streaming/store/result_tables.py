"""Every result table by its name, and how rows become Arrow. Where a table has revisions, the last row of an `id`
holds.

IDs print as Kafka's base64. How a row was made is not known here.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wirecheck.judge.results.judged_tables import JUDGED
from wirecheck.judge.results.result_table import (
    CLUSTER,
    REVISION,
    TEXT,
    TEXTS,
    TIME,
    Column,
    ResultTable,
    has_time,
    of_times,
)

EXCHANGES = ResultTable(
    "exchanges",
    "Requests with their responses, by `monitor --exchanges` only. One row each, no revisions.",
    (
        Column("label", TEXT, "The agent's cluster label."),
        Column("connection", TEXT, "ip:port>ip:port, client first."),
        Column(
            "time",
            TIME,
            "Capture time of the request's first byte, or of the response's if the request is not in the capture.",
        ),
        Column("api", TEXT, "API name; its number if unknown."),
        Column("version", pa.int32(), "Request version; -1 if the request is not in the capture."),
        Column("correlation_id", pa.int32(), "Correlation ID."),
        Column("outcome", TEXT, "answered, or the reason for a missing response or request."),
        Column("request_bytes", pa.int64(), "Size of the request on the wire; null if not in the capture."),
        Column("response_bytes", pa.int64(), "Size of the response on the wire; null if not in the capture."),
        Column("latency_us", pa.int64(), "Microseconds from the request's last frame to the response's first."),
        Column("request_status", TEXT, "decoded, or the reason why not."),
        Column("response_status", TEXT, "decoded, or the reason why not."),
    ),
    in_result=False,
)
"""Its rows are made by `steps/decode_step.py`."""
CHANGES = ResultTable(
    "changes",
    "Administrative requests of clients, also as brokers forward them. Read by `wirecheck changes`.",
    (
        *REVISION,
        Column("time", TIME, "Capture time of the request."),
        Column("answered", TIME, "Capture time of the response; null if not in the capture."),
        Column("action", TEXT, "API name: DeleteTopics."),
        Column(
            "targets",
            pa.list_(pa.struct([(name, TEXT) for name in ("object_type", "object", "details", "error")])),
            "What the request changes; error is NONE if accepted, null if no response was seen. Without values.",
        ),
        Column("client_id", TEXT, "Client ID of the request header."),
        Column("host", TEXT, "Address of the client."),
        Column("principal", TEXT, "Principal in the Envelope; null in a row from a client's connection."),
        Column("connection", TEXT, "Connection that carried the request: ip:port>ip:port, client first."),
        Column("correlation_id", pa.int32(), "Correlation ID of the client's request."),
        Column("digest", TEXT, "Of the request's bytes without secrets; the same in its Envelope."),
        Column("in_envelope", pa.bool_(), "Whether a broker forwarded the request to a controller."),
        Column("forwarded_by", TEXT, "Client ID of that broker, its broker ID; null if the controller did not answer."),
        Column(
            "frame", pa.struct([("source", TEXT), ("first", pa.int64())]), "The packet in which the request begins."
        ),
    ),
)
"""Its rows are made by `change_rows.py`."""
OF_MINUTE = (
    *REVISION,
    Column("time", TIME, "Start of the minute."),
    Column("client_id", TEXT, "Client ID of the request header."),
    Column("host", TEXT, "Address of the client."),
    Column("api", TEXT, "API name; its number if unknown."),
)
SEEN = (
    Column("count", pa.int64(), "How many in this minute."),
    Column("first_seen", TIME, "Capture time of the first."),
    Column("last_seen", TIME, "Capture time of the last."),
)
COUNTED = pa.list_(pa.struct([("bucket", pa.int32()), ("count", pa.int64())]))
TOPIC = Column("topic", TEXT, "Topic name, or its ID if the name is unknown; empty if it is about the whole request.")
SERVERS = Column("servers", pa.list_(pa.struct([("server", TEXT), ("count", pa.int64())])), "How many by server.")
FOLLOWER = Column("follower", pa.int32(), "Broker ID of the follower that fetches; -1 for clients.")
REQUESTS_BY_MINUTE = ResultTable(
    "requests_by_minute",
    "Requests by client, server and API in each minute. Add up the rows of one minute. Read by `wirecheck latency`.",
    (
        *OF_MINUTE,
        Column("server", TEXT, "Server endpoint, ip:port."),
        *SEEN,
        Column("request_bytes", pa.int64(), "Bytes of the requests on the wire."),
        Column("response_bytes", pa.int64(), "Bytes of the responses on the wire."),
        Column("versions", pa.list_(pa.int32()), "Versions of the requests, ascending."),
        Column("granted", TIME, "When the last request was sent that was answered without an error; null for none."),
        Column("fetch_begun", TIME, "When the last fetch session began, or a fetch without one; null for none."),
        Column("latencies", COUNTED, "Answers by time: bucket b is about 2^(b/16) microseconds."),
        Column("broker_latencies", COUNTED, "The same without the network between capture point and broker."),
        Column("network_latencies", COUNTED, "Network round trips from the client to the broker, likewise."),
    ),
    in_result=False,
)
ERRORS_BY_MINUTE = ResultTable(
    "errors_by_minute",
    "Errors by client, API and topic in each minute. Add up the rows of one minute. Read by `wirecheck errors`.",
    (
        *OF_MINUTE,
        TOPIC,
        Column("error", TEXT, "Kafka's name of the error, or throttled, or what happened instead of a response."),
        FOLLOWER,
        *SEEN,
        SERVERS,
        Column("throttle_time_ms", pa.int64(), "Sum, of throttled responses."),
        Column("throttle_time_max_ms", pa.int64(), "Maximum, of throttled responses."),
    ),
    in_result=False,
)
USES_BY_MINUTE = ResultTable(
    "uses_by_minute",
    "Requests that write or read topics in each minute. Add up the rows of one minute.",
    (
        *OF_MINUTE,
        TOPIC,
        FOLLOWER,
        *SEEN,
        SERVERS,
        Column("named", TIME, "When a Fetch last named the topic; null for none."),
        Column("forgotten", TIME, "When it was last taken out of a fetch session; null for none."),
    ),
    in_result=False,
)
GROUPS_BY_MINUTE = ResultTable(
    "groups_by_minute",
    "Requests of members of groups to their coordinators in each minute. Read by `wirecheck groups` and `why`.",
    (
        *OF_MINUTE,
        Column("server", TEXT, "Server endpoint, ip:port."),
        Column("connection", TEXT, "Connection: ip:port>ip:port, client first."),
        Column("group_id", TEXT, "Group ID."),
        Column("member_id", TEXT, "Member ID that the response gives, else that of the request; empty for none."),
        Column("group_instance_id", TEXT, "Of a static member; else empty."),
        Column("stated", pa.int32(), "Generation, or member epoch, of the request; -1 if it has none."),
        Column("given", pa.int32(), "Generation, or member epoch, of the response; -1 if it has none."),
        Column("error_code", pa.int32(), "Of the response; null without one."),
        Column("reason", TEXT, "Why a member joins or leaves, in its own words; else empty."),
        Column("waits", pa.bool_(), "Whether the capture ended before the response."),
        *SEEN,
        Column("answered", TIME, "Capture time of the last response; null without one."),
    ),
    in_result=False,
)
OFFSETS_BY_MINUTE = ResultTable(
    "offsets_by_minute",
    "Offsets that groups committed, and ends of partitions, in each minute. Read by `wirecheck groups` and `why`.",
    (
        *OF_MINUTE[:-1],
        Column("server", TEXT, "Server endpoint, ip:port."),
        Column("group_id", TEXT, "Of a commit; null of an end, as are client_id and host."),
        Column(
            "api",
            TEXT,
            "OffsetCommit or TxnOffsetCommit of a commit. Of an end Fetch, a high watermark, or Produce: one more than "
            "the base offset that a writer was granted with acks=all, so the end is there or later.",
        ),
        Column("topic", TEXT, "Topic name, or its ID if the name is unknown."),
        Column("topic_id", TEXT, "Topic ID; null where the message has none."),
        Column("partition", pa.int32(), "Number of the partition."),
        Column("last_offset", pa.int64(), "The last of the minute."),
        *SEEN[1:],
        Column(
            "offsets",
            pa.list_(pa.struct([("time", TIME), ("offset", pa.int64())])),
            "The first of the minute, and the last of every ten seconds.",
        ),
    ),
    in_result=False,
)
OF_GROUPS = GROUPS_BY_MINUTE, OFFSETS_BY_MINUTE
"""Their rows are made by `group_tables.py`."""
BY_MINUTE = REQUESTS_BY_MINUTE, ERRORS_BY_MINUTE, USES_BY_MINUTE
"""Their rows are made by `window_rows.py`."""
CARDS = ResultTable(
    "cards",
    "What needs a look, in the words of the terminal. One row per card, the worst first. A replay ends with them; a"
    " monitor makes all of them again every minute, but not in Delta tables.",
    (
        *REVISION,
        CLUSTER,
        Column("code", TEXT, "Code of the check."),
        Column("mark", TEXT, "violation where the replay fails by it, else anomaly."),
        Column("headline", TEXT, "The harm if a client or a partition is hurt, else the cause."),
        Column("since", TIME, "Since when: of the harm, else of the cause."),
        Column("until", TIME, "When the harm was over; null where it lasts, or where that is not known."),
        Column("ongoing", pa.bool_(), "Whether a client is still refused; null where no client is known to be hurt."),
        Column("cause", TEXT, "What happened."),
        Column("impact", TEXT, "How many requests of how many clients."),
        Column("just_before", TEXTS, "Changes that were granted just before the first rejection."),
        Column("since_then", TEXTS, "What the clients of a topic that was created again have done since."),
        Column("fix", TEXT, "What to do; empty where nothing is to be done."),
        Column("look", TEXTS, "Commands that show more of it."),
        Column("evidence", TEXT, "The command that cuts its packets out of the capture."),
        Column("clients", TEXTS, "Client IDs of the hurt clients, the worst first."),
        Column("findings", TEXTS, "IDs of its findings, and of those that follow from them."),
    ),
    in_result=False,
)
"""Its rows are made of a verdict (`dashboards/listed_cards.py`): no judge of one cluster label has all of them."""
RUNS = ResultTable(
    "runs",
    "The runs that wrote these tables. One row per start of a run; the current run is that of the last start.",
    (
        *REVISION,
        Column("started", TIME, "When a process began to write, by the clock of its machine."),
        Column("inputs", TEXTS, "What it read: captures and folders of frames, as they were named."),
        Column("version", TEXT, "Version of wirecheck."),
    ),
    in_result=False,
)
"""Its rows are made by `runs.py`. The column `run` of a table, or of the path of its files, is the run's ID."""
TOTALS = ResultTable(
    "totals",
    "The monitor's counters. One row per measure and detail.",
    (
        *REVISION,
        Column("measure", TEXT, "Name of the measure; metrics are computed from it."),
        Column("detail", TEXT, "Subdivision of the measure: api:version, reason, code or agent."),
        Column(
            "count",
            pa.int64(),
            "Value since the run began; for judged_ns a time in nanoseconds, for followed_files a file number.",
        ),
    ),
)
"""Its rows are made by `totals.py`."""
BROKER_AT, CHANGES_NOT_KEPT = "broker_at", "changes_not_kept"
CLAIMS_WITHOUT_TEXT = "claims_without_text"
"""By kind: their bytes were captured but for a text, so that they state nothing."""
"""Measures of it: by address the broker's ID and 1; administrative requests and objects without a row."""
TABLES: Mapping[str, ResultTable] = {
    table.name: table for table in (*JUDGED, EXCHANGES, CHANGES, *BY_MINUTE, *OF_GROUPS, CARDS, RUNS, TOTALS)
}


def schema(table: str) -> pa.Schema:
    columns = TABLES[table].columns
    return pa.schema([pa.field(name, kind, metadata={"comment": meaning}) for name, kind, meaning in columns])


def to_ipc(table: str, rows: Iterable[Mapping[str, Any]]) -> bytes:
    """Rows as one cell."""
    return as_ipc(table_of(table, rows))


def table_of(table: str, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Rows in the table's columns. Times are nanoseconds since 1970; a name that is no column is our mistake."""
    columns, every = schema(table), list(rows)
    unknown = {name for names in {*map(tuple, every)} for name in names}.difference(columns.names)
    if unknown:
        msg = f"no such column: {', '.join(sorted(unknown))}"
        raise KeyError(msg)
    made = [pa.array(values(every, column.name, column.type), column.type) for column in columns]
    return pa.Table.from_batches([pa.record_batch(made, columns)])


def as_ipc(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def values(rows: list[Mapping[str, Any]], name: str, kind: pa.DataType) -> list[Any]:
    """One column; what a row does not have is null."""
    cells = [row.get(name) for row in rows]
    if not has_time(kind):
        return cells
    made = of_times(kind, lambda time: time // 1000)  # microseconds
    return [None if cell is None else made(cell) for cell in cells]


@cache
def from_ipc(cell: bytes) -> pa.Table:
    return pa.ipc.open_stream(cell).read_all()


def latest_revisions(rows: pa.Table) -> pa.Table:
    """The last revision of each id, in the order in which they came."""
    codes = pc.rank(rows["id"], tiebreaker="dense").to_numpy()  # a dictionary would be a copy of all IDs
    order = np.lexsort([rows["revision"].to_numpy(), codes])
    last = np.ones(len(codes), np.bool_)
    last[:-1] = np.diff(codes[order]) != 0
    if last.all():  # as of a capture that is judged once: no copy of all its rows
        return rows
    return rows.take(pa.array(np.sort(order[last]))).combine_chunks()
