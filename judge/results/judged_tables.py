"""The tables whose rows the judge makes, each as one value, in the order in which the page of tables has them.

Knows: names, columns with their sentences, and which functions make the rows. Does not load these: who only reads
tables needs nothing else of the judge.
Rule: a new table is its declaration here, a module beside it that makes its rows, and `make docs`.
"""

import pyarrow as pa

from wirecheck.judge.results.result_table import (
    CLUSTER,
    MOVED,
    NUMBERS,
    REVISION,
    SPAN,
    TEXT,
    TEXTS,
    TIME,
    Column,
    ResultTable,
    Shown,
)

SIDE = pa.struct(
    [
        ("time", TIME),
        ("claim", TEXT),
        ("connection", TEXT),
        ("api", TEXT),
        ("version", pa.int32()),
        ("correlation_id", pa.int32()),
        ("frame", pa.struct([("source", TEXT), ("first", pa.int64()), ("last", pa.int64())])),
    ]
)
WORDS = pa.list_(pa.struct([("name", TEXT), ("value", TEXT)]))
FINDINGS = ResultTable(
    "findings",
    "What contradicts what, or breaks a rule. One row per finding.",
    (
        *REVISION,
        Column("state", TEXT, "open, or withdrawn when later frames refuted it."),
        Column("code", TEXT, "Code of the check: wirecheck explain CODE."),
        Column("name", TEXT, "Name of the check."),
        Column("kind", TEXT, "violation, anomaly, information or visibility."),
        CLUSTER,
        Column("topic", TEXT, "Topic name, where it is about one and the name is known."),
        Column("topic_ids", TEXTS, "Topic ids it is about."),
        Column("client_ids", TEXTS, "Client ids it is about."),
        Column("brokers", NUMBERS, "Broker ids it is about."),
        Column("summary", TEXT, "One sentence, from the check's template."),
        Column("words", WORDS, "What the sentence names besides these columns, by the fields of the template."),
        *SPAN,
        Column("count", pa.int64(), "How often it was seen."),
        Column("sides", pa.list_(SIDE), "The claims that contradict each other, each with its exchange and frames."),
        Column(
            "others", pa.int64(), "Null; on a check's one row beyond its bound: how many more findings were not kept."
        ),
    ),
    shown=Shown(
        order_by=("first_seen", "code", "id"),
        hidden=frozenset({"revision", "label", "state"}),
        as_object={"words": ("name", "value")},
    ),
)
"""Its rows are made by the checks (`evaluate.py`)."""
TOPICS = ResultTable(
    "topics",
    "Which topics there are. One row per topic id; topics without ids have one row with a null id.",
    (
        *REVISION,
        Column("withdrawn", pa.bool_(), "The row no longer holds: another cluster or name was found for it."),
        CLUSTER,
        Column("name", TEXT, "Topic name; null while an id is unresolved."),
        Column("topic_id", TEXT, "Topic id; null for a topic that was only seen without one."),
        *SPAN,
        Column("sources", TEXTS, "Who bound the id to the name, or spoke of a topic without one, from a closed list."),
        Column("state", TEXT, "current, replaced, deleted or unresolved; others: no topic, see there."),
        Column("earlier_ids", TEXTS, "Ids the name had before, oldest first; on the current row."),
        Column("others", pa.int64(), "Null; on the one row beyond the bound: how many more topics were not kept."),
    ),
    rows={"name": "topic_rows.topics_of_name", "id": "topic_rows.topics_of_id"},
    reads={"name": "topic name:serves", "id": "id:*"},
    shown=Shown(order_by=("cluster", "name", "first_seen")),
    bounded=True,
)
DESCRIBED = (
    MOVED,
    CLUSTER,
    Column("topic_id", TEXT, "Topic id; its name stands in the table of topics."),
    Column("name", TEXT, "Topic name, where it was said without an id; else null."),
)
SOURCE = (
    Column("source", TEXT, "Who said so first: metadata, leader-and-isr, update-metadata, metadata-log, ..."),
    Column("connection", TEXT, "The connection on which it was said first: ip:port>ip:port, client first."),
    Column("first_seen", TIME, "Capture time of the first exchange that said so."),
)
PARTITIONS = ResultTable(
    "partitions",
    "What partitions looked like. One row per state that a partition was in.",
    (
        *REVISION,
        *DESCRIBED,
        Column("partition", pa.int32(), "Number of the partition. A partition has one row per state it was in."),
        Column("leader", pa.int32(), "Broker id of the leader; -1 for none."),
        Column("leader_epoch", pa.int32(), "Leader epoch; -1 where the version carries none."),
        Column("replicas", NUMBERS, "Broker ids of the replicas, the preferred leader first."),
        Column("isr", NUMBERS, "Broker ids of the replicas in sync."),
        Column("offline_replicas", NUMBERS, "Replicas said to be offline; null where nobody said any or none."),
        *SOURCE,
        Column(
            "until", TIME, "Capture time at which a later leader epoch began, or it was said last; null while it holds."
        ),
    ),
    rows={"name": "description_rows.unnumbered_partitions", "id": "description_rows.numbered_partitions"},
    reads={"name": "name:unnumbered name:offline", "id": "id:partition id:offline"},
)
DESCRIPTIONS = ResultTable(
    "descriptions",
    "What answers say of a topic as a whole. One row per thing said.",
    (
        *REVISION,
        *DESCRIBED,
        Column("internal", pa.bool_(), "Whether the topic is internal to Kafka; null where the version does not say."),
        Column("authorized_operations", TEXTS, "What the asker may do with it, by name; null where it was not asked."),
        *SOURCE,
    ),
    rows={"name": "description_rows.wholes", "id": "description_rows.wholes"},
    reads={"name": "name:topic_described", "id": "id:topic_described"},
)
STATEMENTS = ResultTable(
    "statements",
    "Who says, uses or refuses a topic id that shared its name with another, was deleted or was refused. One row each.",
    (
        *REVISION,
        MOVED,
        CLUSTER,
        Column("name", TEXT, "Topic name; null where nothing named the id."),
        Column("topic_id", TEXT, "Topic id."),
        Column("speaker", TEXT, "broker, controller, metadata-log or client."),
        Column("who", TEXT, "A broker's ip:port, controller@epoch, a client id; empty for the metadata log."),
        Column("does", TEXT, "says (in answers, or as the log), orders (a controller), uses (a client) or refuses."),
        Column("broker", pa.int32(), "Broker id of a broker, where it is known."),
        *SPAN,
        Column("count", pa.int64(), "How often it was seen."),
    ),
    rows={"id": "statement_rows.statements_of_id"},
    reads={"id": "id:binding id:deletion id:denies id:id_refused id:use topic"},
)
"""The page for a browser draws them; they grow with every message, and are told as clients are (`row_pace.py`)."""
CLIENTS = ResultTable(
    "clients",
    "Who speaks what. One row per client id and address.",
    (
        *REVISION,
        MOVED,
        CLUSTER,
        Column("client_id", TEXT, "Client id of the request header."),
        Column("address", TEXT, "Address without port."),
        Column("software_name", TEXT, "From ApiVersions v3+; null where the client never said."),
        Column("software_version", TEXT, "From ApiVersions v3+; null where the client never said."),
        Column(
            "apis",
            pa.list_(pa.struct([("api", TEXT), ("versions", NUMBERS)])),
            "Versions used per API, ascending.",
        ),
        Column("requests", pa.int64(), "Requests seen."),
        *SPAN,
        Column("others", pa.int64(), "Null; on the one row beyond the bound: how many more clients were not kept."),
    ),
    rows={"client": "client_rows.clients"},
    reads={"client": "client:client client:software"},
    shown=Shown(order_by=("cluster", "client_id", "address"), as_object={"apis": ("api", "versions")}),
    bounded=True,
)
HARMS = ResultTable(
    "harms",
    "Whose requests are refused. One row per client, topic and API.",
    (
        *REVISION,
        MOVED,
        CLUSTER,
        Column("level", TEXT, "hurt: stuck, or refused for longer than the grace period; else briefly."),
        Column("client_id", TEXT, "Client id of the request header."),
        Column("address", TEXT, "Address without port."),
        Column("api", TEXT, "The request that is refused."),
        Column("topic", TEXT, "Topic name, where it is known."),
        Column("topic_id", TEXT, "Topic id, where the request carries one."),
        Column("partitions", NUMBERS, "The first partitions of which errors were answered."),
        Column("errors", TEXTS, "Kafka's names of the errors."),
        Column("brokers", NUMBERS, "Broker ids that answered so."),
        Column("count", pa.int64(), "How many error answers, each partition once."),
        *SPAN,
        Column("recovered", pa.bool_(), "Whether a request succeeded afterwards."),
        Column("others", pa.int64(), "Null; on the one row beyond the bound: how many more were not kept."),
    ),
    rows={"id": "harm_rows.harms_of_id", "client": "harm_rows.harms_of_client"},
    reads={"id": "id:refused id:use id:binding", "client": "client:named_answer"},
    shown=Shown(order_by=("first_seen", "client_id", "topic", "api")),
)
"""Facts of who is hurt; which finding it follows from is the story's."""
CLUSTERS = ResultTable(
    "clusters",
    "Which endpoints make one cluster.",
    (
        *REVISION,
        Column("withdrawn", pa.bool_(), "The row no longer holds: it was joined with another."),
        Column(
            "cluster_id",
            TEXT,
            "ClusterId; null while no server stated it, and of endpoints that can be of none that is known.",
        ),
        Column("endpoints", TEXTS, "Server endpoints, ip:port, that belong to it."),
        Column("brokers", NUMBERS, "Broker ids it is known to have."),
        *SPAN,
    ),
    rows={"server": "cluster_rows.clusters"},
    reads={"server": "-"},
    shown=Shown(order_by=("label", "cluster_id"), hidden=frozenset({"id", "revision", "withdrawn"})),
)
COVERAGE = ResultTable(
    "coverage",
    "How much of the traffic the other tables rest on. One row per connection and measure.",
    (
        *REVISION,
        Column("withdrawn", pa.bool_(), "The row no longer holds: what is counted got another name."),
        Column("connection", TEXT, "The connection counted; null for what belongs to none."),
        Column(
            "measure",
            TEXT,
            "What is counted. Each row of unassigned_endpoints, unassigned_topics or unassigned_clients names one whose"
            " cluster is not known.",
        ),
        Column("count", pa.int64(), "How much of it."),
        Column("detail", TEXT, "Which one, where a measure has several: the reason, the error's line, the endpoint."),
    ),
    rows={
        "connection": "coverage_rows.connections",
        "agent": "coverage_rows.marks",
        "server": "coverage_rows.unassigned_endpoints",
        "name": "coverage_rows.unassigned_topics",
        "id": "coverage_rows.unassigned_topics",
        "client": "coverage_rows.unassigned_clients",
    },
    reads={"connection": "connection:connection", "agent": "agent:mark", "server": "-"}
    | dict.fromkeys(("name", "id", "client"), "-"),
)
"""The JSON has its sums."""

JUDGED = (FINDINGS, TOPICS, PARTITIONS, DESCRIPTIONS, STATEMENTS, CLIENTS, HARMS, CLUSTERS, COVERAGE)
