"""Claims about who uses which topic id: requests by id and how they are answered.

Knows: where ids stand in Fetch, Produce, ShareFetch, OffsetCommit, OffsetFetch and AlterPartition, and which error
answers each gets. Does not know whether an id is alive.
Rule: an answer counts for the client that asked; the forgotten list of a fetch is no use.
"""

from collections.abc import Iterator

import numpy as np

from wirecheck.judge.claims.batch import Batch, Lines
from wirecheck.judge.claims.reduce import Rows

REQUESTS = (
    ("Fetch", "topics"),
    ("Produce", "topic_data"),
    ("ShareFetch", "topics"),
    ("ShareAcknowledge", "topics"),
    ("OffsetCommit", "topics"),
    ("AlterPartition", "topics"),
)
ASSIGNING = ("ConsumerGroupHeartbeat", "ShareGroupHeartbeat")
ANSWERS = (
    ("Fetch", "responses.partitions"),
    ("Produce", "responses.partition_responses"),
    ("ShareFetch", "responses.partitions"),
)


def claims(batch: Batch) -> Iterator[Rows]:
    for api in ASSIGNING:  # topics that a coordinator hands to the members of a group of the new protocol
        if topics := batch.lines(api, "response", "assignment.topic_partitions"):
            group, known = topics.other_column("group_id")
            yield topics.states("assigned", ["topic_id", group, "@endpoint"], known)
    for part in ("assignment", "target_assignment"):  # names and ids that a group's description pairs
        path = f"groups.members.{part}.topic_partitions"
        if topics := batch.lines("ConsumerGroupDescribe", "response", path):
            yield topics.states("described", "topic_name topic_id group_id @endpoint")
    if partitions := batch.lines("Fetch", "request", "topics.partitions"):
        peak = {"partition": partitions["partition"], "latest": partitions.ts_ns}
        yield partitions.states("partition_use", "topic_id @who", partitions.present("topic_id"), peak=peak)
    for api, path in REQUESTS:
        if topics := batch.lines(api, "request", path):
            by_id, asked = topics.present("topic_id"), topics.column("=asked")
            yield topics.states("use", f"topic_id ={api} @who", by_id, tally=asked, peak={"used": topics.ts_ns})
            yield topics.states("zero_use", f"@who ={api}", by_id & ~topics.given("topic_id"))
    for api, path in ANSWERS:
        if partitions := batch.lines(api, "response", path):
            yield answered(partitions, api)


def answered(partitions: Lines, api: str) -> Rows:
    """Answers over time by error code, each partition once. In a fetch session the answers alone name the ID: it is
    used when the request comes, however long the server waits.
    """
    request, ts_ns = partitions.partner, partitions.batch.exchanges.ts_ns
    used, error = np.where(request >= 0, ts_ns[request], partitions.ts_ns), partitions["error_code"]
    key, by_id = f"topic_id ={api} @who", partitions.present("topic_id")
    return partitions.states("use", key, by_id, peak={"used": used}, error=error)
