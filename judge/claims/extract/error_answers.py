"""Claims about error answers that are not about one partition, and about odd requests.

Knows: top-level errors of Fetch and of requests between brokers and controllers, refused ClusterIds, admin answers 41,
Metadata requests by id, draft error codes. Does not know which of them last.
Rule: errors are kept over time with the successes beside them, so that a check can tell a storm from an incident.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from wirecheck.decode import schemas
from wirecheck.decode.log.metadata_log import TOPIC_NAME
from wirecheck.decode.wire import REQUEST
from wirecheck.judge.claims.batch import Batch, row_of
from wirecheck.judge.claims.claim import METADATA_LOG
from wirecheck.judge.claims.extract.bindings import numbered
from wirecheck.judge.claims.extract.clients import who
from wirecheck.judge.claims.extract.replicas import PARTITION_ANSWERS
from wirecheck.judge.claims.reduce import Column, Ints, Rows, constant, texts

if TYPE_CHECKING:
    from wirecheck.decode.columns import Table

NOT_CONTROLLER, INCONSISTENT_CLUSTER_ID = 41, 104
TOP_LEVEL = ("Fetch", "AlterPartition", "BrokerHeartbeat", "LeaderAndIsr", "UpdateMetadata", "StopReplica")
ADMIN = (("CreateTopics", "topics"), ("DeleteTopics", "responses"), ("CreatePartitions", "results"))
RAFT = ("Fetch", "FetchSnapshot", "Vote", "BeginQuorumEpoch", "EndQuorumEpoch")
FENCED = (6, 74, 75)
"""NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH."""
DRAFT_CODES = range(1001, 1010)
NEWEST_CODE = max(schemas.errors())
"""The highest error code of any release known."""
DRAFT_SPEAKERS = (
    ("Metadata", "topics"),
    ("LeaderAndIsr", ""),
    ("StopReplica", ""),
    ("CreateTopics", "topics"),
    ("DeleteTopics", "responses"),
)


def claims(batch: Batch) -> Iterator[Rows]:
    for api in TOP_LEVEL:
        tables = batch.tables(api, "response")
        if tables:
            header = tables[""]
            yield answers(batch, api, header.message, header["error_code"])
    for api, path in ADMIN:
        tables = batch.tables(api, "response")
        if tables:
            table = tables[path]
            yield answers(batch, api, table.message, table["error_code"])
    yield from refused_clusters(batch)
    yield from metadata_requests(batch)
    yield from draft_codes(batch)
    yield from fenced(batch)


def answers(batch: Batch, api: str, message: Ints, error: Ints) -> Rows:
    """Answers to one client by one endpoint, over time."""
    return Rows("answer", [*who(batch, message), constant(api, len(message))], message, error=error)


def refused_clusters(batch: Batch) -> Iterator[Rows]:
    """ClusterIds that a server answered with INCONSISTENT_CLUSTER_ID."""
    for api in RAFT:
        tables, asked = batch.tables(api, "response"), batch.tables(api, "request")
        if not tables or not asked or "cluster_id" not in asked[""].names:
            continue
        header, requests = tables[""], asked[""]
        bad = header.message[header["error_code"] == INCONSISTENT_CLUSTER_ID]
        request = batch.partner(bad, REQUEST)
        bad, request = bad[request >= 0], request[request >= 0]
        at = row_of(requests, request)
        # A request that did not decode has no row. One without a ClusterId cannot be refused for it: its answer is odd.
        known = (at >= 0) & (requests["cluster_id"].length[at] >= 0)
        bad, at = bad[known], at[known]
        key = [*who(batch, bad), constant(api, len(bad)), texts(requests["cluster_id"]).take(at)]
        yield Rows("cluster_refused", key, bad)


def metadata_requests(batch: Batch) -> Iterator[Rows]:
    """Metadata by id: refused in v10 and v11; with names beside ids the names are ignored from v12 on."""
    tables = batch.tables("Metadata", "request")
    if not tables:
        return
    topics: Table = tables["topics"]
    message, version = topics.message, batch.version(topics.message)
    by_id, by_name = topics["topic_id"].any(axis=1), topics["name"].length >= 0
    early = np.isin(version, (10, 11)) & (by_id | ~by_name)
    mixed = np.zeros(len(topics), np.bool_)
    if len(topics):
        some_id, some_name = (np.bincount(topics.parent, mask) > 0 for mask in (by_id, by_name & ~by_id))
        mixed = (version >= 12) & (some_id & some_name)[topics.parent]
    for mask, what in ((early, "by ID before version 12"), (mixed, "by ID and by name")):
        yield Rows("odd_request", [*who(batch, message), constant(what, len(topics))], message).where(mask)


def fenced(batch: Batch) -> Iterator[Rows]:
    """Answers that the broker does not lead, or not in the request's epoch; the metadata log's own are left out."""
    for api, path, inner, name, number in PARTITION_ANSWERS:
        tables = batch.tables(api, "response")
        if not tables:
            continue
        topics, partitions = tables[path], tables[f"{path}.{inner}"]
        rows = np.flatnonzero(np.isin(partitions["error_code"], FENCED))
        message, parent = partitions.message[rows], partitions.parent[rows]
        by_id = numbered(topics) if "topic_id" in topics.names else constant(None, len(topics))
        names, topic_id = texts(topics[name]).take(parent), by_id.take(parent)
        key = [
            *who(batch, message),
            names,
            topic_id,
            Column(partitions[number][rows]),
            Column(partitions["error_code"][rows]),
        ]
        log = [names.value(row) == TOPIC_NAME or topic_id.value(row) == METADATA_LOG for row in range(len(rows))]
        error = partitions["error_code"][rows]
        yield Rows("fenced", key, message, error=error).where(~np.array(log, np.bool_))


def draft_codes(batch: Batch) -> Iterator[Rows]:
    """Error codes that no release has: those of the draft of KIP-4, and what is newer than the newest known."""
    for api, path in DRAFT_SPEAKERS:
        tables = batch.tables(api, "response")
        if tables:
            table = tables[path]
            error, message = table["error_code"], table.message
            key = [batch.endpoint(message), Column(error), constant(api, len(table))]
            yield Rows("draft_code", key, message).where(error > NEWEST_CODE)
