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
    gone,
    others,
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
    "Contradictions and broken rules. One row per finding.",
    (
        *REVISION,
        Column("state", TEXT, "open, or withdrawn when later frames refuted it."),
        Column("code", TEXT, "Code of the check: wirecheck explain CODE."),
        Column("name", TEXT, "Name of the check."),
        Column("kind", TEXT, "violation, anomaly, information or visibility."),
        CLUSTER,
        Column("topic", TEXT, "Topic name, if the finding is about a topic and the name is known."),
        Column("topic_ids", TEXTS, "Topic IDs that the finding is about."),
        Column("client_ids", TEXTS, "Client IDs that the finding is about."),
        Column("brokers", NUMBERS, "Broker IDs that the finding is about."),
        Column("summary", TEXT, "One sentence, from the check's template."),
        Column("words", WORDS, "Values of the template's fields that are not in these columns."),
        *SPAN,
        Column("count", pa.int64(), "Number of occurrences."),
        Column(
            "sides",
            pa.list_(SIDE),
            "Evidence: the claims that contradict each other, each with its exchange and frames.",
        ),
        others("findings", of="a check that exceeded its bound"),
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
    "Topics. One row per topic ID; a topic without an ID has one row with a null ID.",
    (
        *REVISION,
        gone("another cluster or name was found for it"),
        CLUSTER,
        Column("name", TEXT, "Topic name; null while the ID is unresolved."),
        Column("topic_id", TEXT, "Topic ID; null for a topic that was only seen without one."),
        *SPAN,
        Column(
            "sources",
            TEXTS,
            "Kinds of messages that bound the ID to the name, or named the topic without an ID; a closed list.",
        ),
        Column(
            "state",
            TEXT,
            "current, replaced, deleted, former (all captured addresses of its cluster lead to another one now; it may"
            " continue elsewhere) or unresolved; others for the row that counts dropped topics.",
        ),
        Column("earlier_ids", TEXTS, "IDs that the name had before, oldest first; only in the current row."),
        others("topics"),
    ),
    rows={"name": "topic_rows.topics_of_name", "id": "topic_rows.topics_of_id"},
    reads={"name": "topic name:serves", "id": "id:*"},
    shown=Shown(order_by=("cluster", "name", "first_seen")),
    bounded=True,
)
DESCRIBED = (
    MOVED,
    CLUSTER,
    Column("topic_id", TEXT, "Topic ID; the table topics has its name."),
    Column("name", TEXT, "Topic name, if the message had no ID; else null."),
)
SOURCE = (
    Column(
        "source",
        TEXT,
        "Kind of the first message with this content: metadata, leader-and-isr, update-metadata, metadata-log, ...",
    ),
    Column("connection", TEXT, "Connection of that message: ip:port>ip:port, client first."),
    Column("first_seen", TIME, "Capture time of that message's exchange."),
)
PARTITIONS = ResultTable(
    "partitions",
    "States of partitions. One row per state.",
    (
        *REVISION,
        *DESCRIBED,
        Column("partition", pa.int32(), "Number of the partition."),
        Column("leader", pa.int32(), "Broker ID of the leader; -1 for none."),
        Column("leader_epoch", pa.int32(), "Leader epoch; -1 if the version has none."),
        Column("replicas", NUMBERS, "Broker IDs of the replicas, the preferred leader first."),
        Column("isr", NUMBERS, "Broker IDs of the in-sync replicas."),
        Column("offline_replicas", NUMBERS, "Broker IDs of offline replicas; null if no message listed them."),
        *SOURCE,
        Column(
            "until",
            TIME,
            "Capture time at which a later leader epoch began, or of the last such message; null while valid.",
        ),
    ),
    rows=dict.fromkeys(("name", "id"), "description_rows.partitions"),
    reads={"name": "name:unnumbered name:offline", "id": "id:partition id:offline"},
)
DESCRIPTIONS = ResultTable(
    "descriptions",
    "Descriptions of whole topics in responses. One row per distinct description.",
    (
        *REVISION,
        *DESCRIBED,
        Column(
            "internal", pa.bool_(), "Whether the topic is internal to Kafka; null if the version does not include it."
        ),
        Column(
            "authorized_operations", TEXTS, "Operations that the requester may perform, by name; null if not requested."
        ),
        *SOURCE,
    ),
    rows=dict.fromkeys(("name", "id"), "description_rows.wholes"),
    reads={"name": "name:topic_described", "id": "id:topic_described"},
)
STATEMENTS = ResultTable(
    "statements",
    "Who reports, uses or rejects a topic ID that was replaced, deleted or rejected. One row each.",
    (
        *REVISION,
        MOVED,
        CLUSTER,
        Column("name", TEXT, "Topic name; null if no message named the ID."),
        Column("topic_id", TEXT, "Topic ID."),
        Column("speaker", TEXT, "broker, controller, metadata-log or client."),
        Column("who", TEXT, "A broker's ip:port, controller@epoch, or a client ID; empty for the metadata log."),
        Column(
            "does", TEXT, "says (in responses or the log), orders (a controller's request), uses (a client) or refuses."
        ),
        Column("broker", pa.int32(), "Broker ID, if the endpoint's is known."),
        *SPAN,
        Column("count", pa.int64(), "Number of occurrences."),
    ),
    rows={"id": "topic_rows.statements_of_id"},
    reads={"id": "id:binding id:deletion id:denies id:id_refused id:use topic"},
)
"""The page for a browser draws them; they grow with every message, and are told as clients are (`life_cycle.py`)."""
CLIENTS = ResultTable(
    "clients",
    "Clients and their API versions. One row per client ID and address.",
    (
        *REVISION,
        MOVED,
        CLUSTER,
        Column("client_id", TEXT, "Client ID of the request header."),
        Column("address", TEXT, "Address without port."),
        Column("software_name", TEXT, "From ApiVersions v3 or newer; null if the client never sent it."),
        Column("software_version", TEXT, "From ApiVersions v3 or newer; null if the client never sent it."),
        Column(
            "apis",
            pa.list_(pa.struct([("api", TEXT), ("versions", NUMBERS)])),
            "Versions used, by API, ascending.",
        ),
        Column("requests", pa.int64(), "Requests seen."),
        *SPAN,
        others("clients"),
    ),
    rows={"client": "client_rows.clients"},
    reads={"client": "client:client client:software"},
    shown=Shown(order_by=("cluster", "client_id", "address"), as_object={"apis": ("api", "versions")}),
    bounded=True,
)
HARMS = ResultTable(
    "harms",
    "Clients whose requests are rejected. One row per client, topic and API.",
    (
        *REVISION,
        MOVED,
        CLUSTER,
        Column("level", TEXT, "hurt (stuck, or rejected for longer than the grace period) or briefly."),
        Column("client_id", TEXT, "Client ID of the request header."),
        Column("address", TEXT, "Address without port."),
        Column("api", TEXT, "API of the rejected requests."),
        Column("topic", TEXT, "Topic name, if known."),
        Column("topic_id", TEXT, "Topic ID, if the request has one."),
        Column("partitions", NUMBERS, "The first partitions with errors."),
        Column("errors", TEXTS, "Kafka's names of the errors."),
        Column("brokers", NUMBERS, "IDs of the brokers that rejected them."),
        Column("count", pa.int64(), "Number of errors; each partition of a response counts once."),
        *SPAN,
        Column("recovered", pa.bool_(), "Whether a later request succeeded."),
        others("rows"),
    ),
    rows={"id": "harm_rows.harms_of_id", "client": "harm_rows.harms_of_client"},
    reads={"id": "id:refused id:use id:binding", "client": "client:named_answer"},
    shown=Shown(order_by=("first_seen", "client_id", "topic", "api")),
)
"""Facts of who is hurt; which finding it follows from is the story's."""
CLUSTERS = ResultTable(
    "clusters",
    "Clusters and their endpoints. One row per cluster.",
    (
        *REVISION,
        gone("it was merged with another"),
        Column(
            "cluster_id",
            TEXT,
            "Cluster ID; null until a server reports it, and for endpoints that match no known cluster.",
        ),
        Column("endpoints", TEXTS, "Server endpoints of the cluster, ip:port."),
        Column("brokers", NUMBERS, "Known broker IDs of the cluster."),
        *SPAN,
    ),
    rows={"server": "client_rows.clusters"},
    reads={"server": "-"},
    shown=Shown(order_by=("label", "cluster_id"), hidden=frozenset({"id", "revision", "withdrawn"})),
)
COVERAGE = ResultTable(
    "coverage",
    "How much of the traffic was captured and read. One row per connection and measure.",
    (
        *REVISION,
        gone("what it counts was renamed"),
        Column("connection", TEXT, "Connection; null for measures that are not about one."),
        Column(
            "measure",
            TEXT,
            "Name of the measure. A row of unassigned_endpoints, unassigned_topics or unassigned_clients is one whose"
            " cluster is not known.",
        ),
        Column("count", pa.int64(), "Value of the measure."),
        Column("detail", TEXT, "Subdivision of the measure: the reason, the error's line, or the endpoint."),
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
