"""Claims of the metadata log's quorum: who leads in which epoch, whom voters grant their votes, what the log is called.

Rule: a request counts if its answer accepts it, so a refused announcement states nothing about others. A pre-vote binds
nothing (KIP-996). Answers count for any asker: DescribeQuorum is the active controller's, and each answer to a fetch of
the log names the leader.
"""

from collections.abc import Callable, Iterator

import numpy as np

from wirecheck.decode.log.metadata_log import TOPIC_NAME
from wirecheck.judge.claims.batch import Batch, Bools, Lines, among
from wirecheck.judge.claims.claim import METADATA_LOG
from wirecheck.judge.claims.reduce import Column, Ints, Rows, constant

ANNOUNCED = ("BeginQuorumEpoch", "EndQuorumEpoch")
APIS = ("Vote", *ANNOUNCED)
PARTITIONS = "topics.partitions"
SNAPSHOTS = "FetchSnapshot"
FENCED_LEADER_EPOCH = 74
"""The answer names the leader of a newer epoch."""
TOPIC = ("topic_name", "topic_id")
"""By released layouts the log has its name, by KIP-516's draft its ID."""
UNNAMED = -1


def claims(batch: Batch) -> Iterator[Rows]:
    for api in APIS:
        if answered := batch.lines(api, "response", PARTITIONS):
            good = np.isin(answered["error_code"], (0, FENCED_LEADER_EPOCH))
            yield leaders(answered, api, (answered["leader_id"] >= 0) & good)
        if asked := batch.lines(api, "request", PARTITIONS):
            granting = accepted(asked, api)
            yield asked.states("quorum_topic", ["@who", f"={api}", *TOPIC], misnamed(asked) & granting)
            if api in ANNOUNCED:
                yield leaders(asked, api, (asked["leader_id"] >= 0) & granting)
    if asked := batch.lines("Vote", "request", PARTITIONS):
        yield granted(asked)
    if asked := batch.lines(SNAPSHOTS, "request", "topics"):
        yield asked.states("quorum_topic", ["@who", f"={SNAPSHOTS}", "name", "-"], sent(asked))
    if described := batch.lines("DescribeQuorum", "response", PARTITIONS):
        yield leaders(described, "DescribeQuorum", (described["leader_id"] >= 0) & (described["error_code"] == 0))
    if fetched := batch.lines("Fetch", "response", "responses.partitions"):
        yield named_in_fetches(fetched)


def leaders(lines: Lines, api: str, where: Bools) -> Rows:
    topic = TOPIC if lines.has("topic_id") else (TOPIC[0], "-")
    key = ["@endpoint", *topic, "partition_index", "leader_epoch", "leader_id", f"={api}"]
    return lines.states("quorum_leader", key, where)


def named_in_fetches(fetched: Lines) -> Rows:
    """The leader that an answer to a fetch of the log names: the server itself, or the one to turn to (KIP-595)."""
    named = among(fetched.column("topic"), {TOPIC_NAME}) | among(fetched.column("topic_id"), {METADATA_LOG})
    leader, epoch = fetched["current_leader.leader_id"], fetched["current_leader.leader_epoch"]
    where = [constant(TOPIC_NAME, len(fetched)), "-", "partition_index", Column(epoch), Column(leader), "=Fetch"]
    return fetched.states("quorum_leader", ["@endpoint", *where], named & (leader >= 0) & (epoch >= 0))


def accepted(asked: Lines, api: str) -> Bools:
    """Whether the answer has no error, for the request and for the partition."""
    return answered_with(asked, api, lambda answers: answers["error_code"] == 0)


def granted(asked: Lines) -> Rows:
    """Whom a voter granted an epoch. Before version 1, requests do not name the voter: it is the one who answers."""
    drafted = asked.batch.drafted(asked.message)
    epoch = np.where(drafted, asked["candidate_epoch"], asked["replica_epoch"])
    candidate = np.where(drafted, asked["candidate_id"], asked["replica_id"])
    voter = np.where(asked.present("/voter_id"), asked["/voter_id"], UNNAMED)
    given = answered_with(asked, "Vote", lambda answers: (answers["error_code"] == 0) & (answers["vote_granted"] == 1))
    whose = [Column(voter), "voter_directory_id", Column(candidate), "replica_directory_id"]
    key = ["@endpoint", *TOPIC, "partition_index", Column(epoch), *whose]
    return asked.states("vote_granted", key, given & (asked["pre_vote"] == 0))


def answered_with(asked: Lines, api: str, good: Callable[[Lines], Bools]) -> Bools:
    """By partition of requests, whether its answer is as wanted. There are few: elections are rare."""
    answers = asked.batch.lines(api, "response", PARTITIONS)
    if not answers:
        return np.zeros(len(asked), np.bool_)
    granted = good(answers) & (answers["/error_code"] == 0)
    found = {place for place, fits in zip(places(answers, answers.message), granted.tolist(), strict=True) if fits}
    return np.array([place in found for place in places(asked, asked.partner)], np.bool_)


def places(lines: Lines, response: Ints) -> Iterator[tuple[int, object, object, int]]:
    """By partition its response, topic and index."""
    every = np.arange(len(lines))
    name, number = (lines.column(word).at(every) for word in TOPIC)
    return zip(response.tolist(), name, number, lines["partition_index"].tolist(), strict=True)


def sent(asked: Lines) -> Bools:
    """Topics other than the metadata log of which a snapshot was sent: no partition of the answer has an error."""
    answers, header = (asked.batch.lines(SNAPSHOTS, "response", path) for path in (PARTITIONS, ""))
    if not answers or not header:
        return np.zeros(len(asked), np.bool_)
    bad = {*answers.message[answers["error_code"] != 0].tolist(), *header.message[header["error_code"] != 0].tolist()}
    good = np.isin(asked.partner, list({*answers.message.tolist()} - bad))
    found: Bools = good & ~among(asked.column("name"), {TOPIC_NAME})
    return found


def misnamed(asked: Lines) -> Bools:
    """Topics that are not the metadata log, by their name or by their ID."""
    drafted = asked.batch.drafted(asked.message)
    named, numbered = among(asked.column("topic_name"), {TOPIC_NAME}), among(asked.column("topic_id"), {METADATA_LOG})
    found: Bools = ~np.where(drafted, numbered, named)
    return found
