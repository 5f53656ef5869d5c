"""Claims about which topic is which, from answers of brokers and from topic administration.

Knows: which answers bind an id to a name (Metadata, DescribeTopicPartitions, CreateTopics, DeleteTopics, group
describes), and which deny that a topic exists. Control requests are in `control.py`, the metadata log in
`log_entries.py`.
Rule: an error answer binds nothing; CreateTopics binds only if its request was seen and did more than validate.
"""

from collections.abc import Iterator

import numpy as np

from wirecheck.decode.columns import Table
from wirecheck.decode.wire import REQUEST
from wirecheck.judge.claims.batch import Batch, value_per
from wirecheck.judge.claims.extract.clients import who
from wirecheck.judge.claims.kinds import FORWARDED, SENT
from wirecheck.judge.claims.reduce import Column, Ints, Rows, constant, ids, lists, texts

UNKNOWN_TOPIC = 3
Ends = tuple[Column, Column, Column]


def claims(batch: Batch) -> Iterator[Rows]:
    yield from metadata(batch)
    yield from described_partitions(batch)
    yield from created(batch)
    yield from deleted(batch)


def numbered(table: Table, column: str = "topic_id") -> Column:
    """Topic ids; None where the version carries none. Kept with the table: several families ask for them."""
    if column not in table.numbered:
        found = ids(table[column])
        codes = np.where(table.present(column), found.codes, -1)
        table.numbered[column] = Column(codes, [*(found.values or ()), None])
    kept: Column = table.numbered[column]
    return kept


def named(batch: Batch, table: Table, name: str, source: str) -> Rows:
    """What a table of topics binds, error or not."""
    message = table.message
    key = [
        texts(table[name]),
        numbered(table),
        constant(source, len(table)),
        batch.endpoint(message),
        constant(None, len(table)),
    ]
    return Rows("binding", key, message, slots(batch, message))


def metadata(batch: Batch) -> Iterator[Rows]:
    tables = batch.tables("Metadata", "response")
    if not tables:
        return
    topics = tables["topics"]
    error, has_name = topics["error_code"], topics["name"].length >= 0
    yield named(batch, topics, "name", "metadata").where((error == 0) & has_name)
    yield absence(batch, topics, "metadata").where((error == UNKNOWN_TOPIC) & has_name)
    partitions = tables["topics.partitions"]
    yield partition_rows(topics, partitions, "metadata")


def absence(batch: Batch, topics: Table, source: str) -> Rows:
    message = topics.message
    key = [
        texts(topics["name"]),
        constant(source, len(topics)),
        batch.endpoint(message),
        Column(topics["error_code"]),
    ]
    return Rows("absence", key, message, slots(batch, message))


def partition_rows(topics: Table, partitions: Table, source: str) -> Rows:
    """Partition states of topics that have ids (DescribeTopicPartitions and Metadata name their columns alike)."""
    parent = partitions.parent
    key = [
        numbered(topics).take(parent),
        Column(partitions["partition_index"]),
        constant(source, len(partitions)),
        Column(partitions["leader_epoch"]),
        Column(partitions["leader_id"]),
        lists(partitions["replica_nodes"]),
        lists(partitions["isr_nodes"]),
    ]
    good = topics["topic_id"].any(axis=1) & (topics["error_code"] == 0)
    return Rows("partition", key, partitions.message).where(good[parent])


def described_partitions(batch: Batch) -> Iterator[Rows]:
    tables = batch.tables("DescribeTopicPartitions", "response")
    if not tables:
        return
    topics, partitions = tables["topics"], tables["topics.partitions"]
    error = topics["error_code"]
    yield named(batch, topics, "name", "describe-topic-partitions").where((error == 0) & (topics["name"].length >= 0))
    yield partition_rows(topics, partitions, "describe-topic-partitions")


def created(batch: Batch) -> Iterator[Rows]:
    """Successful creations; who only validates gets an id that never exists (PROTOCOL 4.8)."""
    tables = batch.tables("CreateTopics", "response")
    asked = batch.tables("CreateTopics", "request")
    if not tables or not asked:
        return
    topics = tables["topics"]
    message = topics.message
    validated = value_per(batch.partner(message, REQUEST), asked[""], "validate_only", absent=1)
    good = (topics["error_code"] == 0) & (validated == 0)
    key = [texts(topics["name"]), numbered(topics), batch.endpoint(message)]
    yield Rows("creation", key, message).where(good)
    yield changed(batch, topics, key[:2], "CreateTopics").where(good)
    has_id = topics["topic_id"].any(axis=1)
    yield named(batch, topics, "name", "create-topics").where(good & has_id)


def deleted(batch: Batch) -> Iterator[Rows]:
    tables = batch.tables("DeleteTopics", "response")
    if not tables:
        return
    topics = tables["responses"]
    good = topics["error_code"] == 0
    message = topics.message
    known = numbered(topics)
    zero = ~topics["topic_id"].any(axis=1)
    topic_id = Column(np.where(zero, len(known.values or ()) - 1, known.codes), known.values)
    by = constant(None, len(topics))
    key = [texts(topics["name"]), topic_id, constant("delete-topics", len(topics)), batch.endpoint(message), by]
    yield Rows("deletion", key, message, slots(batch, message)).where(good)
    yield changed(batch, topics, key[:2], "DeleteTopics").where(good)
    has_name = topics["name"].length >= 0
    yield named(batch, topics, "name", "delete-topics").where(good & has_name & ~zero)


def changed(batch: Batch, topics: Table, topic: list[Column], action: str) -> Rows:
    """Who asked for it: of an Envelope the client that it names."""
    message, rows = topics.message, len(topics)
    client_id, host, endpoint = who(batch, message)
    principal, how = constant(None, rows), constant(SENT, rows)
    if batch.senders is not None:
        host, principal = batch.senders.host.take(message), batch.senders.principal.take(message)
        how = constant(FORWARDED, rows)
    return Rows("changed", [*topic, constant(action, rows), client_id, host, principal, how, endpoint], message)


def slots(batch: Batch, message: Ints) -> Column:
    """Tally names that count by 10 s of capture time."""
    unique, codes = np.unique(batch.slot(message), return_inverse=True)
    return Column(codes.astype(np.int64).ravel(), [str(slot) for slot in unique.tolist()])
