"""The tables whose rows the judge makes, each as one value, in the order in which the page of tables has them.

Rule: a new table is its declaration here, its columns there, a function that makes its rows, and `make docs`.
"""

from functools import cache
from operator import itemgetter
from pathlib import Path

import pyarrow as pa

from wirecheck.judge.results.finding import news_of
from wirecheck.judge.results.result_table import (
    CLUSTER,
    NUMBERS,
    REVISION,
    SPAN,
    TEXT,
    TEXTS,
    TIME,
    Body,
    Column,
    ResultTable,
)

FRAME = pa.struct([("source", TEXT), ("first", pa.int64()), ("last", pa.int64())])
NUMBER = pa.int32()
MESSAGE = [("connection", TEXT), ("api", TEXT), ("version", NUMBER), ("correlation_id", NUMBER), ("frame", FRAME)]
OFFSETS = (
    *("offset", "never_read_from", "never_read_to", "never_read"),
    *("read_again_from", "read_again_to", "read_again"),
)
TYPES = {
    "text": TEXT,
    "texts": TEXTS,
    "numbers": NUMBERS,
    "time": TIME,
    "bool": pa.bool_(),
    "float64": pa.float64(),
    "int32": NUMBER,
    "int64": pa.int64(),
    "sides": pa.list_(pa.struct([("time", TIME), ("claim", TEXT), *MESSAGE])),
    "words": pa.list_(pa.struct([("name", TEXT), ("value", TEXT)])),
    "times": pa.list_(pa.struct([("name", TEXT), ("time", TIME)])),
    "partitions": pa.list_(pa.struct([("partition", NUMBER), *((name, pa.int64()) for name in OFFSETS)])),
    "apis": pa.list_(pa.struct([("api", TEXT), ("versions", NUMBERS)])),
}
SHARED = {column.name: column for column in (CLUSTER, *SPAN)}
"""Columns of one meaning wherever they are; `-` in the file."""


@cache
def read() -> dict[str, list[Column]]:
    """The columns of each table, without those of every table (REVISION)."""
    found: dict[str, list[Column]] = {}
    for line in Path(__file__).with_name("columns.tsv").read_text("ascii").splitlines()[1:]:
        table, name, kind, meaning = line.split("\t")
        column = SHARED[name] if kind == "-" else Column(name, TYPES[kind], meaning)
        found.setdefault(table, []).append(column)
    return found


def columns(table: str) -> tuple[Column, ...]:
    return (*REVISION, *read()[table])


def grows(_row: Body) -> None:
    """The news of a table whose rows change with every message: nothing, once there is a row."""


FINDINGS = ResultTable(
    "findings",
    "Contradictions and broken rules. One row per finding.",
    columns("findings"),
    order_by=("first_seen", "code", "id"),
    news=news_of,
)
"""Its rows are made by the checks (`evaluate.py`)."""
TOPICS = ResultTable(
    "topics",
    "Topics. One row per topic ID; a topic without an ID has one row with a null ID.",
    columns("topics"),
    rows={"name": "topic_rows.topics_of_name", "id": "topic_rows.topics_of_id"},
    reads={"name": "topic name:absence name:serves name:carried id:carried", "id": "id:*"},
    order_by=("cluster", "name", "first_seen"),
    bounded=True,
)
PARTITIONS = ResultTable(
    "partitions",
    "States of partitions. One row per state.",
    columns("partitions"),
    rows=dict.fromkeys(("name", "id"), "topic_rows.partitions"),
    reads={"name": "name:unnumbered! name:offline", "id": "id:partition! id:offline"},
)
DESCRIPTIONS = ResultTable(
    "descriptions",
    "Descriptions of whole topics in responses. One row per distinct description.",
    columns("descriptions"),
    rows=dict.fromkeys(("name", "id"), "topic_rows.wholes"),
    reads={"name": "name:topic_described!", "id": "id:topic_described!"},
)
STATEMENTS = ResultTable(
    "statements",
    "Who reports, uses or rejects a topic ID that was replaced, deleted or rejected. One row each.",
    columns("statements"),
    rows={"id": "topic_rows.statements_of_id"},
    reads={"id": "several! id:binding id:deletion! id:denies! id:id_refused! id:use topic"},
    news=grows,
)
"""The HTML report draws them."""
TOPIC_STATEMENTS = ResultTable(
    "topic_statements",
    "Who states which ID of each topic, or none. One row per topic, ID, party and kind of message.",
    columns("topic_statements"),
    rows={"name": "agreement_rows.statements_of_name", "id": "agreement_rows.uses_of_id"},
    reads={"name": "name:binding!", "id": "id:use! id:binding"},
    order_by=("cluster", "topic", "first_seen", "party", "api"),
    news=grows,
)
API_VERSIONS = ResultTable(
    "api_versions",
    "Which versions each server advertises, was sent, answered and rejected. One row per server and API.",
    columns("api_versions"),
    rows={"server": "agreement_rows.api_versions"},
    reads={"server": "server:advertised server:accepts server:receives server:rejects"},
)
"""With `topic_statements` it is what `wirecheck agreement` prints."""
CLIENTS = ResultTable(
    "clients",
    "Clients and their API versions. One row per client ID and address.",
    columns("clients"),
    rows={"client": "client_rows.clients"},
    reads={
        "client": "client:client client:exchanged client:login client:software client:activity link:connected "
        "server:address link:partial"
    },
    order_by=("cluster", "client_id", "address"),
    news=grows,
    bounded=True,
)
ACTIVITIES = ResultTable(
    "activities",
    "What came of each client's requests, and whether it gets its work done. One row per client and API.",
    columns("activities"),
    rows={"client": "activity_rows.activities_of_client"},
    reads={"client": "client:activity! client:client client:entry client:software link:midway link:missing"},
    order_by=("cluster", "client_id", "address", "api"),
    news=itemgetter("state", "errors"),
)
RECREATIONS = ResultTable(
    "recreations",
    "What each client of a topic did once it was deleted and created again. One row per client, and what it does.",
    columns("recreations"),
    rows={"name": "recreation_rows.recreations_of_name"},
    reads={
        "name": "several! topic name:position id:position name:sought id:sought name:serves id:serves"
        " name:written id:written name:changed name:committed id:committed name:restored id:restored"
        " host:member server:address link:partial name:shared id:shared"
        " name:writes_in_transaction id:writes_in_transaction server:transaction_done"
    },
    order_by=("cluster", "topic", "created", "client_id", "address", "does"),
    news=itemgetter("state", "never_read", "transaction"),
)
LAGS = ResultTable(
    "lags",
    "How far groups are behind: committed offsets beside the ends of partitions. One row per group and topic.",
    columns("lags"),
    rows={"name": "lag_rows.lags_of_name"},
    reads={
        "name": "topic name:committed! id:committed! name:committed_in_transaction! name:serves id:serves"
        " id:committed_in_transaction!"
    },
    news=grows,
)
HARMS = ResultTable(
    "harms",
    "Clients whose requests are rejected or not answered. One row per client, topic and API.",
    columns("harms"),
    rows={"id": "client_rows.harms_of_id", "client": "client_rows.harms_of_client"},
    reads={
        "id": "id:refused! id:use id:binding name:binding link:missing client:client client:software"
        " client:activity link:midway id:serves",
        "client": "client:client client:named_answer client:refused client:activity client:overdue client:leaderless"
        " client:unknown_topic client:denied_topic client:entry server:address link:answered"
        " link:missing id:binding id:use id:partition name:binding name:unnumbered link:closed_after"
        " client:closed_on client:request_version client:software client:version_error server:advertised"
        " server:accepts link:unanswered link:midway name:written id:written name:serves",
    },
    order_by=("first_seen", "client_id", "topic", "api"),
    news=itemgetter("level", "topic", "errors", "brokers", "first_seen", "recovered"),
)
"""Facts about hurt clients; the story decides which finding they follow from."""
CLUSTERS = ResultTable(
    "clusters",
    "Clusters and their endpoints. One row per cluster.",
    columns("clusters"),
    rows={"server": "client_rows.clusters"},
    reads={"server": ""},
    order_by=("label", "cluster_id"),
)
COVERAGE = ResultTable(
    "coverage",
    "How much of the traffic was captured and read. One row per connection and measure.",
    columns("coverage"),
    rows={
        "connection": "coverage_rows.connections",
        "agent": "coverage_rows.marks",
        "server": "coverage_rows.unassigned_endpoints",
        "client": "coverage_rows.unassigned_clients",
        **dict.fromkeys(("name", "id"), "coverage_rows.unassigned_topics"),
    },
    reads={
        "connection": "connection:connection",
        "agent": "agent:mark",
        **dict.fromkeys(("server", "name", "id", "client"), ""),
    },
)
"""The JSON has its sums."""
OF_AGREEMENT = (TOPIC_STATEMENTS.name, API_VERSIONS.name)
"""Many rows, which only the table of agreement needs."""
OF_STATES = (PARTITIONS.name, DESCRIPTIONS.name, LAGS.name)
"""The same of `wirecheck topics` and of metrics: a verdict has none of them."""
JUDGED = (
    FINDINGS,
    TOPICS,
    PARTITIONS,
    DESCRIPTIONS,
    STATEMENTS,
    TOPIC_STATEMENTS,
    API_VERSIONS,
    CLIENTS,
    ACTIVITIES,
    RECREATIONS,
    LAGS,
    HARMS,
    CLUSTERS,
    COVERAGE,
)
