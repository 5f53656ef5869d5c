"""Claims from structures that carry a topic's name and its ID together, beyond those of `bindings`, `control` and
`log_entries`: descriptions of groups, and the requests and responses to which a draft added the ID.

Rule: a response counts for its server, if it has no error about that topic. A request counts for its sender only, and
only if it was not refused: what a client calls a topic binds no name.
"""

from collections.abc import Iterator

import numpy as np

from wirecheck.judge.claims.batch import Batch, Bools, Lines
from wirecheck.judge.claims.extract.bindings import stated_ids
from wirecheck.judge.claims.reduce import Ints, Rows

RESPONSES = (
    ("ConsumerGroupDescribe", "groups.members.assignment.topic_partitions", "topic_name", "group-describe"),
    ("ConsumerGroupDescribe", "groups.members.target_assignment.topic_partitions", "topic_name", "group-describe"),
    ("ShareGroupDescribe", "groups.members.assignment.topic_partitions", "topic_name", "group-describe"),
    ("DescribeShareGroupOffsets", "groups.topics", "topic_name", "share-group-offsets"),
    ("AlterShareGroupOffsets", "responses", "topic_name", "share-group-offsets"),
    ("DeleteShareGroupOffsets", "responses", "topic_name", "share-group-offsets"),
    ("Fetch", "responses", "topic", "fetch"),
    ("ListOffsets", "topics", "name", "list-offsets"),
    ("OffsetForLeaderEpoch", "topics", "topic", "offset-for-leader-epoch"),
    ("LeaderAndIsr", "partition_errors", "topic_name", "leader-and-isr-response"),
    ("StopReplica", "partition_errors", "topic_name", "stop-replica-response"),
)
"""API, table, column of the name, and what a binding from it is called."""
SOURCES = frozenset(source for *_, source in RESPONSES)
PARTITIONS = {
    "DescribeShareGroupOffsets": "groups.topics.partitions",
    "AlterShareGroupOffsets": "responses.partitions",
    "Fetch": "responses.partitions",
    "ListOffsets": "topics.partitions",
    "OffsetForLeaderEpoch": "topics.partitions",
}
"""Where the errors of a topic's partitions are."""
REQUESTS = (
    ("Fetch", "topics", "topic"),
    ("ListOffsets", "topics", "name"),
    ("OffsetForLeaderEpoch", "topics", "topic"),
)
ASKED_BY_ID = frozenset(source for api, *_, source in RESPONSES if api in {one for one, *_ in REQUESTS})
"""Sources whose request may name the ID already: an answer without it is a statement, too."""


def claims(batch: Batch) -> Iterator[Rows]:
    for api, topics, name, source in batch.each("response", RESPONSES):
        if (stated := paired(topics, name) | left_out(topics, name)).any():
            key = [name, stated_ids(topics), f"={source}", "@endpoint", "-"]
            yield topics.states("binding", key, stated & ~refused(batch, api, topics), tally=topics.slots)
    for api, topics, name in batch.each("request", REQUESTS):
        if (both := paired(topics, name)).any():
            key = [name, "topic_id", f"={api}", "@who"]
            yield topics.states("stated", key, both & ~refused_requests(batch, api, topics), tally=topics.slots)


def paired(topics: Lines, name: str) -> Bools:
    """Which rows have both: released versions have either, and those before IDs the name."""
    if not (topics.has(name) and topics.has("topic_id")):
        return np.zeros(len(topics), np.bool_)
    found: Bools = (topics.size(name) > 0) & topics.given("topic_id")
    return found


def left_out(topics: Lines, name: str) -> Bools:
    """Topics that a draft's answer names without an ID, although its request has one of each topic that it asks for."""
    found = np.zeros(len(topics), np.bool_)
    api, batch = topics.kind[0], topics.batch
    drafted = batch.drafted(topics.message)
    path = next((path for one, path, _ in REQUESTS if one == api), None)
    if path is None or not drafted.any() or not (topics.has(name) and topics.has("topic_id")):
        return found
    if asked := batch.lines(api, "request", path):
        without = asked.message[~asked.given("topic_id")]
        whole = np.setdiff1d(asked.message, without)
        found |= drafted & (topics.size(name) > 0) & ~topics.given("topic_id") & np.isin(topics.partner, whole)
    return found


def refused(batch: Batch, api: str, topics: Lines) -> Bools:
    """Rows of a response with an error: their own, that of what encloses them, or those of all their partitions."""
    found = np.zeros(len(topics), np.bool_)
    if topics.has("error_code"):
        found |= topics["error_code"] != 0
    if "error_code" in batch.tables(api, "response")[""].names:
        found |= topics["/error_code"] != 0
    partitions = batch.lines(api, "response", PARTITIONS[api]) if api in PARTITIONS else None
    if partitions:
        good, every = (np.zeros(len(topics), np.int64) for _ in range(2))
        np.add.at(every, partitions.table.parent, 1)
        np.add.at(good, partitions.table.parent[partitions["error_code"] == 0], 1)
        found |= (every > 0) & (good == 0)
    return found


def refused_requests(batch: Batch, api: str, topics: Lines) -> Bools:
    """Requests all of whose topics were refused, or that were refused as a whole."""
    (answer,) = (one for one in RESPONSES if one[0] == api)
    responses = batch.lines(api, "response", answer[1])
    if not responses:
        return np.zeros(len(topics), np.bool_)
    bad = refused(batch, api, responses)
    answered: Ints = np.unique(responses.message)
    granted: Ints = np.unique(responses.message[~bad])
    found: Bools = np.isin(topics.partner, answered) & ~np.isin(topics.partner, granted)
    return found
