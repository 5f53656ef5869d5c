"""Claims about error responses, with their server and client, and about odd requests.

Rule: errors are stored over time together with successes, so that a check can distinguish a storm from an incident. For
a topic ID only errors make a claim here, because its successes are stored with its use (`uses.py`); for a name both do.
These answers are kept apart by partition, not by port as elsewhere. Followers are not clients.
"""

from collections.abc import Iterator

import numpy as np

from wirecheck.client_ids import is_internal
from wirecheck.decode import schemas
from wirecheck.decode.log.metadata_log import TOPIC_NAME
from wirecheck.decode.message import Status
from wirecheck.decode.wire import REQUEST
from wirecheck.judge.claims.batch import Batch, Bools, Lines, among
from wirecheck.judge.claims.claim import METADATA_LOG, RESERVED
from wirecheck.judge.claims.extract.replicas import PARTITION_ANSWERS
from wirecheck.judge.claims.reduce import Rows

UNKNOWN_TOPIC, NOT_CONTROLLER, INCONSISTENT_CLUSTER_ID = 3, 41, 104
WITHOUT_LEADER = (5, 72)
"""LEADER_NOT_AVAILABLE; LISTENER_NOT_FOUND: the leader has no listener of the name by which the client asks."""
DENIED = (17, 29)
"""INVALID_TOPIC_EXCEPTION, TOPIC_AUTHORIZATION_FAILED: what a client gets before it writes or reads a topic at all."""
RAFT = tuple((api, "") for api in ("Fetch", "FetchSnapshot", "Vote", "BeginQuorumEpoch", "EndQuorumEpoch"))
FENCED = (6, 74, 75)
"""NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH."""
NEWEST_CODE = max(schemas.errors())
"""The highest error code of any release known."""
DRAFT_SPEAKERS = (
    *(("Metadata", "topics"), ("LeaderAndIsr", ""), ("StopReplica", "")),
    *(("CreateTopics", "topics"), ("DeleteTopics", "responses")),
)
"""Of which codes of the draft of KIP-4 count, unless the draft is named and has them there, and what is newer than the
newest known."""
CLIENTS_ANSWERS = (
    *PARTITION_ANSWERS,
    ("OffsetCommit", "topics.partitions", "name", "partition_index"),
    ("OffsetFetch", "topics.partitions", "name", "partition_index"),
    ("OffsetFetch", "groups.topics.partitions", "name", "partition_index"),
    ("TxnOffsetCommit", "topics.partitions", "name", "partition_index"),
    ("ShareFetch", "responses.partitions", "", "partition_index"),
    ("ShareAcknowledge", "responses.partitions", "", "partition_index"),
)
REPLICA_IDS = ("replica_id", "replica_state.replica_id")


def claims(batch: Batch) -> Iterator[Rows]:
    for api, lines in batch.each("response", DRAFT_SPEAKERS):
        codes = lines["error_code"]
        expected = [code for code, error in schemas.draft_errors().items() if api in error.apis]
        named = np.isin(codes, expected if "kip4-draft" in batch.dialects else [])
        yield lines.states("draft_code", f"@endpoint error_code ={api}", (codes > NEWEST_CODE) & ~named)
    for api, header in batch.each("response", RAFT):
        yield from refused_clusters(header, api)
    if topics := batch.lines("Metadata", "request", "topics"):
        yield from metadata_requests(topics)
    if topics := batch.lines("Metadata", "response", "topics"):
        error = topics["error_code"]
        yield topics.states(
            "unknown_topic", ["@who", "name"], (error == UNKNOWN_TOPIC) & topics.given("name"), error=error
        )
        denied = np.isin(error, DENIED) & topics.given("name")
        yield topics.states("denied_topic", ["@who", "name"], denied, error=error)
    if partitions := batch.lines("Metadata", "response", "topics.partitions"):
        yield leaderless(partitions)
    for _, partitions, name, number in batch.each("response", PARTITION_ANSWERS):
        yield fenced(partitions, name, number)
    for api, partitions, name, number in batch.each("response", CLIENTS_ANSWERS):
        yield from refused(partitions, api, name, number)


def refused_clusters(header: Lines, api: str) -> Iterator[Rows]:
    """ClusterIds that a server answered with INCONSISTENT_CLUSTER_ID. A request that did not decode has no row. One
    without a ClusterId cannot be refused for it: its answer is odd.
    """
    asked = header.header
    if asked is not None and asked.has("cluster_id"):
        bad = (header["error_code"] == INCONSISTENT_CLUSTER_ID) & (header.other(asked.size("cluster_id"), -1) >= 0)
        yield header.states("cluster_refused", ["@who", f"={api}", header.other_column("cluster_id")[0]], bad)


def metadata_requests(topics: Lines) -> Iterator[Rows]:
    """Metadata by topic ID: rejected in v10 and v11. From v12 on, if a request has both names and IDs, the names are
    ignored.
    """
    version, parent = topics.batch.version(topics.message), topics.table.parent
    by_id, by_name = topics.given("topic_id"), topics.given("name")
    early = np.isin(version, (10, 11)) & (by_id | ~by_name)
    mixed = np.zeros(len(topics), np.bool_)
    if len(topics):
        some_id, some_name = (np.bincount(parent, mask) > 0 for mask in (by_id, by_name & ~by_id))
        mixed = (version >= 12) & (some_id & some_name)[parent]
    for mask, what in ((early, "by ID before version 12"), (mixed, "by ID and by name")):
        yield topics.states("odd_request", ["@who", f"={what}"], mask)


def leaderless(partitions: Lines) -> Rows:
    """Who is answered that a partition has no leader, or none for its listener; whether it asked for topics by name."""
    error = partitions["error_code"]
    asked = partitions.batch.lines("Metadata", "request", "topics")
    named = np.isin(partitions.partner, asked.message if asked else np.empty(0, np.int64))
    key = ["@who", "name", "topic_id" if partitions.has("topic_id") else "-"]
    where = np.isin(error, WITHOUT_LEADER)
    peak = {"named": named.astype(np.int64)}
    return partitions.states(
        "leaderless", key, where, error=error, apart=partitions.column("partition_index"), peak=peak
    )


def fenced(partitions: Lines, name: str, number: str) -> Rows:
    """Answers that the broker does not lead, or not in the request's epoch; the metadata log's own are left out."""
    topic_id = partitions.column("topic_id" if partitions.has("topic_id") else "-")
    error, named = partitions["error_code"], partitions.column(name)
    where = np.isin(error, FENCED) & ~among(named, {TOPIC_NAME}) & ~among(topic_id, {METADATA_LOG})
    return partitions.states("fenced", ["@who", named, topic_id, number, "error_code"], where, error=error)


def refused(partitions: Lines, api: str, name: str, number: str) -> Iterator[Rows]:
    """How requests about topics are answered, by client and partition: the facts for the table of harms."""
    error = partitions["error_code"]
    by_id = partitions.present("topic_id") if partitions.has("topic_id") else np.zeros(len(partitions), np.bool_)
    if not ((error != 0) | ~by_id).any():
        return
    from_clients, numbers = ~followers(partitions), partitions.column(number)
    for kind, word, these in (("refused", "topic_id", by_id & (error != 0)), ("named_answer", name, ~by_id)):
        if these.any():
            about = partitions.column(word or "-")
            where = these & from_clients & ~among(about, {None, *RESERVED})
            yield partitions.states(kind, [about, f"={api}", "@who"], where, error=error, apart=numbers)


def followers(partitions: Lines) -> Bools:
    """Per answer whether its request carries a replica ID, as only brokers' and controllers' own do. Where the request
    was cut, a broker's kind of client ID is enough: a client that may be a broker is not called hurt.
    """
    batch, asked = partitions.batch, partitions.header
    names = batch.client_id(partitions.message)
    internal = np.array([is_internal(name) for name in names.values or ()], np.bool_)
    cut = batch.decoded.status[batch.partner(partitions.message, REQUEST)] != Status.OK
    found: Bools = internal[names.codes] & cut
    for name in REPLICA_IDS if asked is not None else ():
        if asked is not None and asked.has(name):
            found |= partitions.other(name, absent=-1) >= 0
    return found
