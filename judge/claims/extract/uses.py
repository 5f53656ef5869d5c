"""Claims about the use of topic IDs, and about offsets: what groups commit and where partitions end.

Rule: a response counts for the client that sent the request. Forgotten topics of a fetch are not used. A commit counts
if the whole response has no error. The end of a partition counts by topic ID only, because a name may stand for two
topics.
"""

from collections.abc import Iterator

import numpy as np

from wirecheck.judge.claims.batch import Batch, Bools, Lines, among
from wirecheck.judge.claims.claim import AT, METADATA_LOG
from wirecheck.judge.claims.extract.answers import SESSIONS
from wirecheck.judge.claims.reduce import Column, Rows, spelled

SHARE_STATE = ("InitializeShareGroupState", "ReadShareGroupState", "WriteShareGroupState")
"""What brokers ask a share coordinator about partitions that share groups read (KIP-932). The state of a topic that was
deleted is deleted, and may be described, later.
"""
REQUESTS = (
    ("Fetch", "topics"),
    ("Produce", "topic_data"),
    ("ShareFetch", "topics"),
    ("ShareAcknowledge", "topics"),
    ("OffsetCommit", "topics"),
    ("AlterPartition", "topics"),
    ("OffsetFetch", "groups.topics"),
    ("TxnOffsetCommit", "topics"),
    ("AssignReplicasToDirs", "directories.topics"),
    *((api, "topics") for api in SHARE_STATE),
)
OWNED = (("ConsumerGroupHeartbeat", "topic_partitions"),)
"""What a member says that it has: no use of an ID, as it may be on its way to give it back."""
ASSIGNMENTS = tuple((f"{kind}GroupHeartbeat", "assignment.topic_partitions") for kind in ("Consumer", "Share"))
"""Topics that a coordinator hands to the members of a group of the new protocol."""
DESCRIPTIONS = tuple(
    ("ConsumerGroupDescribe", f"groups.members.{part}.topic_partitions") for part in ("assignment", "target_assignment")
)
"""Names and IDs that a group's description pairs."""
SHARE_OFFSETS = "DescribeShareGroupOffsets"
SHARED = (("ShareGroupDescribe", "groups.members.assignment.topic_partitions"), (SHARE_OFFSETS, "groups.topics"))
"""The same of share groups. A coordinator that knows no topic of that name answers the null ID and offset -1."""
ANSWERS = (
    ("Fetch", "responses.partitions"),
    ("Produce", "responses.partition_responses"),
    ("ShareFetch", "responses.partitions"),
    ("AlterPartition", "topics.partitions"),
    ("OffsetFetch", "groups.topics.partitions"),
    ("TxnOffsetCommit", "topics.partitions"),
    ("AssignReplicasToDirs", "directories.topics.partitions"),
    *((api, "results.partitions") for api in SHARE_STATE),
)


def claims(batch: Batch) -> Iterator[Rows]:
    for api, topics in batch.each("response", ASSIGNMENTS):
        group, known = topics.other_column("group_id")
        yield topics.states("assigned", ["topic_id", group, f"={api}", "@who"], known)
        yield topics.states("null_assigned", f"@who ={api}", known & ~topics.given("topic_id"))
    for api, topics in batch.each("response", DESCRIPTIONS):
        yield topics.states("described", "topic_name topic_id group_id @endpoint")
        yield topics.states("null_assigned", f"@who ={api}", ~topics.given("topic_id"))
    for api, topics in batch.each("response", SHARED):
        bare = ~topics.given("topic_id")
        if api == SHARE_OFFSETS:
            bare &= has_offsets(batch, len(topics))
        yield topics.states("null_assigned", f"@who ={api}", bare)
    if partitions := batch.lines("Fetch", "request", "topics.partitions"):
        peak = {"partition": partitions["partition"], "latest": partitions.ts_ns}
        yield partitions.states("partition_use", "topic_id @who", partitions.present("topic_id"), peak=peak)
    for api, topics in batch.each("request", REQUESTS):
        by_id = topics.present("topic_id")
        peak = {"used": topics.ts_ns, **({"asked": np.ones(len(topics), np.int64)} if api in SESSIONS else {})}
        yield topics.states("use", f"topic_id ={api} @who", by_id, peak=peak)
        yield topics.states("zero_use", f"@who ={api}", by_id & ~topics.given("topic_id"))
    for api, topics in batch.each("request", OWNED):
        yield topics.states("zero_use", f"@who ={api}", ~topics.given("topic_id"))
    for api, partitions in batch.each("response", ANSWERS):
        yield answered(partitions, api)
    for api, kind in COMMITS.items():
        yield from committed(batch, api, kind)
    yield from committed_epochs(batch)
    if partitions := batch.lines("Fetch", "response", "responses.partitions"):
        high, topic_id = partitions["high_watermark"], partitions.column("topic_id")
        known = partitions.present("topic_id") & ~among(topic_id, {METADATA_LOG})
        known &= (partitions["error_code"] == 0) & (high >= 0)
        peak = {"highest": high, "latest": partitions.ts_ns}
        yield partitions.states("reaches", [topic_id, "partition_index", "@endpoint"], known, peak=peak)


def has_offsets(batch: Batch, count: int) -> Bools:
    """Which topics of answers about a share group's offsets have one."""
    found = np.zeros(count, np.bool_)
    if partitions := batch.lines(SHARE_OFFSETS, "response", "groups.topics.partitions"):
        good = (partitions["error_code"] == 0) & (partitions["start_offset"] >= 0)
        found[partitions.table.parent[good]] = True
    return found


def answered(partitions: Lines, api: str) -> Rows:
    """Answers over time by error code, each partition once. In a fetch session the answers alone name the ID: it is
    used when the request comes, however long the server waits.
    """
    request, ts_ns = partitions.partner, partitions.batch.exchanges.ts_ns
    used, error = np.where(request >= 0, ts_ns[request], partitions.ts_ns), partitions["error_code"]
    key, by_id = f"topic_id ={api} @who", partitions.present("topic_id")
    return partitions.states("use", key, by_id, peak={"used": used}, error=error)


def committed_epochs(batch: Batch) -> Iterator[Rows]:
    """The leader epoch that a group has committed with its offset, as its coordinator answers (KIP-320)."""
    for path in ("topics.partitions", "groups.topics.partitions"):
        if partitions := batch.lines("OffsetFetch", "response", path):
            epoch = partitions["committed_leader_epoch"]
            group, asked = partitions.other_column("group_id")
            if path.startswith("groups"):
                group, asked = partitions.column("group_id"), np.ones(len(partitions), np.bool_)
            good = asked & (partitions["error_code"] == 0) & (epoch >= 0) & (partitions["committed_offset"] >= 0)
            name = partitions.column("name").only(partitions.present("name"))
            topic_id = partitions.column("topic_id" if partitions.has("topic_id") else "-")
            key = [name, topic_id, group, "partition_index", "@endpoint"]
            yield partitions.states("committed_epoch", key, good, latest={"epoch": (partitions.ts_ns, epoch)})


COMMITS = {"OffsetCommit": "committed", "TxnOffsetCommit": "committed_in_transaction"}
"""What is committed in a transaction holds once that ends well, which another coordinator is asked for."""


def committed(batch: Batch, api: str, kind: str) -> Iterator[Rows]:
    """The last offset each group commits, by name or by id."""
    partitions = batch.lines(api, "request", "topics.partitions")
    answers = batch.lines(api, "response", "topics.partitions")
    if partitions and answers:
        bad, answer = np.unique(answers.message[answers["error_code"] != 0]), partitions.partner
        offset = partitions["committed_offset"]
        good = (answer >= 0) & ~np.isin(answer, bad) & partitions.other_column("-")[1] & (offset >= 0)
        name = partitions.column("name").only(partitions.present("name"))
        topic_id = "topic_id" if partitions.has("topic_id") else "-"
        key = [name, topic_id, "group_id", "partition_index", "@endpoint"]
        at = spelled(f"{AT}{{}}".format, Column(batch.slot(partitions.message)))
        latest = {"committed": (partitions.ts_ns, offset)}
        yield partitions.states(kind, key, good, latest=latest, named=(at, offset))
