"""Claims about offsets: what groups commit, what their coordinator has for them, how far partitions reach.

Knows: where offsets stand in OffsetCommit, OffsetFetch and Fetch. Does not know which topic a name meant at a time.
Rule: a commit counts if it was answered without any error; a partition's reach counts by topic id only, because a name
may mean two topics.
"""

from collections.abc import Iterator

import numpy as np

from wirecheck.decode.wire import RESPONSE
from wirecheck.judge.claims.batch import Batch
from wirecheck.judge.claims.claim import METADATA_LOG
from wirecheck.judge.claims.extract.bindings import numbered
from wirecheck.judge.claims.reduce import Column, Rows, ids, texts

NO_OFFSET = -1


def claims(batch: Batch) -> Iterator[Rows]:
    yield from committed(batch)
    yield from gone(batch)
    yield from reached(batch)


def committed(batch: Batch) -> Iterator[Rows]:
    """The last offset each group commits, by name or by id."""
    tables, answers = batch.tables("OffsetCommit", "request"), batch.tables("OffsetCommit", "response")
    if not tables or not answers:
        return
    header, topics, partitions = tables[""], tables["topics"], tables["topics.partitions"]
    errors = answers["topics.partitions"]
    bad = np.unique(errors.message[errors["error_code"] != 0])
    message, parent = partitions.message, partitions.parent
    answer = batch.partner(message, RESPONSE)
    good = (answer >= 0) & ~np.isin(answer, bad) & np.isin(answer, answers[""].message)
    names = texts(topics["name"])
    known = Column(np.where(topics.present("name"), names.codes, -1), names.values)
    key = [
        known.take(parent),
        numbered(topics).take(parent),
        texts(header["group_id"]).take(topics.parent[parent]),
        Column(partitions["partition_index"]),
        batch.endpoint(message),
    ]
    offset = partitions["committed_offset"]
    latest = {"committed": (batch.exchanges.ts_ns[message], offset)}
    yield Rows("committed", key, message, latest=latest).where(good & (offset >= 0))


def gone(batch: Batch) -> Iterator[Rows]:
    """Partitions of a topic id for which a coordinator has no offset of a group."""
    tables = batch.tables("OffsetFetch", "response")
    if not tables:
        return
    groups, topics, partitions = (tables[f"groups{part}"] for part in ("", ".topics", ".topics.partitions"))
    parent = partitions.parent
    key = [
        ids(topics["topic_id"]).take(parent),
        texts(groups["group_id"]).take(topics.parent[parent]),
        Column(partitions["partition_index"]),
        batch.endpoint(partitions.message),
    ]
    none = (partitions["committed_offset"] == NO_OFFSET) & (partitions["error_code"] == 0)
    by_id = topics.present("topic_id") & (groups["error_code"] == 0)[topics.parent]
    yield Rows("offset_gone", key, partitions.message).where(none & by_id[parent])


def reached(batch: Batch) -> Iterator[Rows]:
    """The highest high watermark of each partition, and when it was told last."""
    tables = batch.tables("Fetch", "response")
    if not tables:
        return
    topics, partitions = tables["responses"], tables["responses.partitions"]
    message, parent = partitions.message, partitions.parent
    topic_id = ids(topics["topic_id"]).take(parent)
    key = [topic_id, Column(partitions["partition_index"]), batch.endpoint(message)]
    high = partitions["high_watermark"]
    peak = {"highest": high, "latest": batch.exchanges.ts_ns[message]}
    log = (topic_id.values or []).index(METADATA_LOG) if METADATA_LOG in (topic_id.values or ()) else -1
    known = topics.present("topic_id")[parent] & (topic_id.codes != log)
    yield Rows("reaches", key, message, peak=peak).where(known & (partitions["error_code"] == 0) & (high >= 0))
