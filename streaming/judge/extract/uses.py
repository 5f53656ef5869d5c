"""Claims about who uses which topic id: requests by id and how they are answered.

Knows: where ids stand in Fetch, Produce, ShareFetch, OffsetCommit, OffsetFetch and AlterPartition, and which error
answers each gets. Does not know whether an id is alive.
Rule: an answer counts for the client that asked; the forgotten list of a fetch is no use.
"""

from collections.abc import Iterator

import numpy as np

from decode.columns import Table
from streaming.judge.extract.batch import Batch
from streaming.judge.extract.clients import who
from streaming.judge.extract.reduce import Column, Rows, constant, grouped, ids

REQUESTS = (
    ("Fetch", "topics"),
    ("Produce", "topic_data"),
    ("ShareFetch", "topics"),
    ("ShareAcknowledge", "topics"),
    ("OffsetCommit", "topics"),
    ("AlterPartition", "topics"),
)
ANSWERS = (
    ("Fetch", "responses", "responses.partitions"),
    ("Produce", "responses", "responses.partition_responses"),
    ("ShareFetch", "responses", "responses.partitions"),
)


def claims(batch: Batch) -> Iterator[Rows]:
    for api, path in REQUESTS:
        tables = batch.tables(api, "request")
        if tables:
            yield asked(batch, api, tables[path])
    for api, path, partitions in ANSWERS:
        tables = batch.tables(api, "response")
        if tables:
            yield answered(batch, api, tables[path], tables[partitions])


def asked(batch: Batch, api: str, topics: Table) -> Rows:
    message = topics.message
    client_id, host, endpoint = who(batch, message)
    key = [ids(topics["topic_id"]), constant(api, len(topics)), client_id, host, endpoint]
    return Rows("use", key, message, constant("asked", len(topics))).where(topics.present("topic_id"))


def answered(batch: Batch, api: str, topics: Table, partitions: Table) -> Rows:
    """Answers by 10 s and error code, each partition once; as `slot:error`."""
    message, parent = partitions.message, partitions.parent
    client_id, host, endpoint = who(batch, message)
    slot, error = batch.slot(message), partitions["error_code"]
    group, sample = grouped([Column(slot), Column(error)])
    _, codes = np.unique(group, return_inverse=True)
    names = [f"{slot[row]}:{error[row]}" for row in sample.tolist()]
    key = [ids(topics["topic_id"]).take(parent), constant(api, len(partitions)), client_id, host, endpoint]
    tally = Column(codes.astype(np.int64).ravel(), names)
    return Rows("use", key, message, tally).where(topics.present("topic_id")[parent])
