"""Claims about who uses which topic id: requests by id and how they are answered.

Knows: where ids stand in Fetch, Produce, ShareFetch, OffsetCommit, OffsetFetch and AlterPartition, and which error
answers each gets. Does not know whether an id is alive.
Rule: an answer counts for the client that asked; the forgotten list of a fetch is no use.
"""

from collections.abc import Iterator

import numpy as np

from wirecheck.decode.columns import Table
from wirecheck.decode.wire import REQUEST
from wirecheck.judge.claims.batch import Batch, row_of
from wirecheck.judge.claims.extract.clients import who
from wirecheck.judge.claims.reduce import Rows, constant, ids, texts

REQUESTS = (
    ("Fetch", "topics"),
    ("Produce", "topic_data"),
    ("ShareFetch", "topics"),
    ("ShareAcknowledge", "topics"),
    ("OffsetCommit", "topics"),
    ("AlterPartition", "topics"),
)
ASSIGNMENTS = (
    ("ConsumerGroupHeartbeat", "assignment.topic_partitions"),
    ("ShareGroupHeartbeat", "assignment.topic_partitions"),
)
ANSWERS = (
    ("Fetch", "responses", "responses.partitions"),
    ("Produce", "responses", "responses.partition_responses"),
    ("ShareFetch", "responses", "responses.partitions"),
)


def claims(batch: Batch) -> Iterator[Rows]:
    yield from assigned(batch)
    yield from described(batch)
    for api, path in REQUESTS:
        tables = batch.tables(api, "request")
        if tables and api == "Fetch":
            yield highest(batch, tables["topics"], tables["topics.partitions"])
        if tables:
            yield requested(batch, api, tables[path])
            yield zero(batch, api, tables[path])
    for api, path, partitions in ANSWERS:
        tables = batch.tables(api, "response")
        if tables:
            yield from answered(batch, api, tables[path], tables[partitions])


def requested(batch: Batch, api: str, topics: Table) -> Rows:
    """Requests by id."""
    message = topics.message
    client_id, host, endpoint = who(batch, message)
    key = [ids(topics["topic_id"]), constant(api, len(topics)), client_id, host, endpoint]
    used = {"used": batch.exchanges.ts_ns[message]}
    return Rows("use", key, message, constant("asked", len(topics)), used).where(topics.present("topic_id"))


def answered(batch: Batch, api: str, topics: Table, partitions: Table) -> Iterator[Rows]:
    """Answers over time by error code, each partition once. In a fetch session the answers alone name the ID: it is
    used when the request comes, however long the server waits.
    """
    message, parent = partitions.message, partitions.parent
    client_id, host, endpoint = who(batch, message)
    error = partitions["error_code"]
    key = [ids(topics["topic_id"]).take(parent), constant(api, len(partitions)), client_id, host, endpoint]
    request, ts_ns = batch.partner(message, REQUEST), batch.exchanges.ts_ns
    used, numbered = np.where(request >= 0, ts_ns[request], ts_ns[message]), topics.present("topic_id")[parent]
    yield Rows("use", key, message, peak={"used": used}, error=error).where(numbered)


def highest(batch: Batch, topics: Table, partitions: Table) -> Rows:
    """The highest partition of each id that a client fetches."""
    message = partitions.message
    key = [ids(topics["topic_id"]).take(partitions.parent), *who(batch, message)]
    peak = {"partition": partitions["partition"], "latest": batch.exchanges.ts_ns[message]}
    by_id = topics.present("topic_id")[partitions.parent]
    return Rows("partition_use", key, message, peak=peak).where(by_id)


def zero(batch: Batch, api: str, topics: Table) -> Rows:
    """Requests by id that carry none."""
    message = topics.message
    bare = topics.present("topic_id") & ~topics["topic_id"].any(axis=1)
    return Rows("zero_use", [*who(batch, message), constant(api, len(topics))], message).where(bare)


def assigned(batch: Batch) -> Iterator[Rows]:
    """Topics that a coordinator hands to the members of a group of the new protocol."""
    for api, path in ASSIGNMENTS:
        tables, asks = batch.tables(api, "response"), batch.tables(api, "request")
        if tables and asks:
            topics, header = tables[path], asks[""]
            request = batch.partner(topics.message, REQUEST)
            at = row_of(header, request)
            group = texts(header["group_id"]).take(at)
            key = [ids(topics["topic_id"]), group, batch.endpoint(topics.message)]
            yield Rows("assigned", key, topics.message).where(at >= 0)


def described(batch: Batch) -> Iterator[Rows]:
    """Names and ids that a group's description pairs."""
    tables = batch.tables("ConsumerGroupDescribe", "response")
    for part in ("assignment", "target_assignment") if tables else ():
        topics, members, groups = (
            tables[path] for path in (f"groups.members.{part}.topic_partitions", "groups.members", "groups")
        )
        group = texts(groups["group_id"]).take(members.parent[topics.parent])
        key = [texts(topics["topic_name"]), ids(topics["topic_id"]), group, batch.endpoint(topics.message)]
        yield Rows("described", key, topics.message)
