"""Claims about Metadata answers that list all topics, and about answers that name an ID which was not asked for, or
that reject one.

Rule: an answer lists all topics if its request names none, and each topic has a name, an ID and no error. A topic that
has no ID there may have any. Answers in a fetch session name what former requests asked for, so they do not count.
"""

from collections.abc import Iterator

import numpy as np

from wirecheck.judge.claims.batch import Batch, Bools, Lines
from wirecheck.judge.claims.reduce import Rows, ids

ASKED = (
    ("Fetch", "topics", "responses"),
    ("Produce", "topic_data", "responses"),
    ("OffsetCommit", "topics", "topics"),
    ("ShareAcknowledge", "topics", "responses"),
    ("AlterPartition", "topics", "topics"),
    ("LeaderAndIsr", "topic_states", "topics"),
    ("Metadata", "topics", "topics"),
    ("DeleteTopics", "topics", "responses"),
    ("ShareFetch", "topics", "responses"),
    ("OffsetFetch", "groups.topics", "groups.topics"),
    ("TxnOffsetCommit", "topics", "topics"),
    ("AssignReplicasToDirs", "directories.topics", "directories.topics"),
    *((f"{does}ShareGroupState", "topics", "results") for does in ("Initialize", "Read", "Write", "Delete")),
    ("ReadShareGroupStateSummary", "topics", "results"),
)
"""API, and where the request and the response name topics by ID."""
SESSIONS = {"Fetch": "session_epoch", "ShareFetch": "share_session_epoch"}
"""APIs with sessions, and the field that is greater than 0 in a session that goes on."""
REJECTING = (
    ("Metadata", "topics"),
    ("Fetch", "responses.partitions"),
    ("Produce", "responses.partition_responses"),
    ("OffsetCommit", "topics.partitions"),
    ("OffsetFetch", "groups.topics.partitions"),
    ("TxnOffsetCommit", "topics.partitions"),
    ("ShareFetch", "responses.partitions"),
    ("ShareAcknowledge", "responses.partitions"),
    ("DeleteTopics", "responses"),
)
"""API, and where its response names topics by ID with an error of each."""
ERRORS = {
    **dict(REJECTING),
    "AlterPartition": "topics.partitions",
    "AssignReplicasToDirs": "directories.topics.partitions",
    "LeaderAndIsr": "topics.partition_errors",
    **{f"{does}ShareGroupState": "results.partitions" for does in ("Initialize", "Read", "Write", "Delete")},
    "ReadShareGroupStateSummary": "results.partitions",
}
"""API, and where its response has the errors of what it names by ID."""
UNKNOWN_ID = (100, 103)
"""UNKNOWN_TOPIC_ID, INCONSISTENT_TOPIC_ID."""
ALL_TOPICS = -1
"""The count of a null array."""


def claims(batch: Batch) -> Iterator[Rows]:
    if header := batch.lines("Metadata", "response"):
        yield header.states("listing", "@who", lists_all(header), tally=header.slots)
    for api, path, answer in ASKED:
        asked, answered = batch.lines(api, "request", path), batch.lines(api, "response", answer)
        if asked and answered and asked.has("topic_id") and answered.has("topic_id"):
            yield from others(asked, answered, api)
    for api, lines in batch.each("response", REJECTING):
        if lines.has("topic_id"):
            by_id = lines.present("topic_id") & lines.given("topic_id") & np.isin(lines["error_code"], UNKNOWN_ID)
            yield lines.states("id_rejected", ["topic_id", f"={api}", "@who"], by_id, tally=lines.slots)


def lists_all(header: Lines) -> Bools:
    found: Bools = header.other("topics", absent=0) == ALL_TOPICS
    topics = header.batch.lines("Metadata", "response", "topics")
    if topics:
        whole = (topics["error_code"] == 0) & topics.given("name") & topics.given("topic_id")
        found &= ~np.isin(header.message, topics.message[~whole])
    return found


def granted(answered: Lines, api: str) -> Bools:
    """Of answers in which everything is granted: what is refused may have no ID."""
    path = ERRORS.get(api)
    errors = answered.batch.lines(api, "response", path) if path else None
    if not errors:
        return np.zeros(len(answered), np.bool_)
    found: Bools = ~np.isin(answered.message, errors.message[errors["error_code"] != 0])
    return found


def others(asked: Lines, answered: Lines, api: str) -> Iterator[Rows]:
    """Answers that name other IDs than their request, which names topics by ID alone; and what it asked for, where that
    is one.
    """
    odd = ~asked.present("topic_id") | ~asked.given("topic_id") | asked.batch.drafted(asked.message)
    if api in SESSIONS:
        odd |= asked[SESSIONS[api]] > 0
    whole = ~np.isin(asked.message, asked.message[odd])
    named = answered.present("topic_id") & (answered.given("topic_id") | granted(answered, api))
    named &= np.isin(answered.partner, asked.message[whole])
    both = np.concatenate([asked["topic_id"], answered["topic_id"]])
    codes = ids(both).codes
    of_request, of_answer = codes[: len(asked)], codes[len(asked) :]
    width, message = int(codes.max(initial=0)) + 1, asked.message
    foreign = named & ~np.isin(answered.partner * width + of_answer, message * width + of_request)
    if not foreign.any():
        return
    unanswered = ~np.isin(message * width + of_request, answered.partner * width + of_answer)
    left: dict[int, set[int]] = {}
    for row in np.flatnonzero(unanswered).tolist():
        left.setdefault(int(message[row]), set()).add(row)
    rows = [left.get(int(request), set()) for request in answered.partner.tolist()]
    alone = np.array([min(one) if len(one) == 1 else -1 for one in rows], np.int64)
    one_id = asked.column("topic_id").take(np.maximum(alone, 0)).only(alone >= 0)
    yield answered.states("other_answer", ["topic_id", one_id, f"={api}", "@who"], foreign)
