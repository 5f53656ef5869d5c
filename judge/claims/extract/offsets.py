"""Claims about offsets: what groups commit, what their coordinator has for them, how far partitions reach.

Knows: where offsets stand in OffsetCommit, OffsetFetch and Fetch. Does not know which topic a name meant at a time.
Rule: a commit counts if it was answered without any error; a partition's reach counts by topic id only, because a name
may mean two topics.
"""

from collections.abc import Iterator

import numpy as np

from wirecheck.judge.claims.batch import Batch
from wirecheck.judge.claims.claim import METADATA_LOG
from wirecheck.judge.claims.reduce import Rows

NO_OFFSET = -1


def claims(batch: Batch) -> Iterator[Rows]:
    yield from committed(batch)
    if partitions := batch.lines("OffsetFetch", "response", "groups.topics.partitions"):
        none = (partitions["committed_offset"] == NO_OFFSET) & (partitions["error_code"] == 0)
        none &= partitions.present("topic_id") & (partitions["^error_code"] == 0)
        yield partitions.states("offset_gone", "topic_id group_id partition_index @endpoint", none)
    if partitions := batch.lines("Fetch", "response", "responses.partitions"):
        high, topic_id = partitions["high_watermark"], partitions.column("topic_id")
        log = (topic_id.values or []).index(METADATA_LOG) if METADATA_LOG in (topic_id.values or ()) else -1
        known = partitions.present("topic_id") & (topic_id.codes != log)
        known &= (partitions["error_code"] == 0) & (high >= 0)
        peak = {"highest": high, "latest": partitions.ts_ns}
        yield partitions.states("reaches", [topic_id, "partition_index", "@endpoint"], known, peak=peak)


def committed(batch: Batch) -> Iterator[Rows]:
    """The last offset each group commits, by name or by id."""
    partitions = batch.lines("OffsetCommit", "request", "topics.partitions")
    answers = batch.lines("OffsetCommit", "response", "topics.partitions")
    if partitions and answers:
        bad, answer = np.unique(answers.message[answers["error_code"] != 0]), partitions.partner
        offset = partitions["committed_offset"]
        good = (answer >= 0) & ~np.isin(answer, bad) & partitions.other_column("-")[1] & (offset >= 0)
        name = partitions.column("name").only(partitions.present("name"))
        key = [name, "topic_id", "group_id", "partition_index", "@endpoint"]
        yield partitions.states("committed", key, good, latest={"committed": (partitions.ts_ns, offset)})
