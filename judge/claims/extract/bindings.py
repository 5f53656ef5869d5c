"""Claims about which topic is which, from answers of brokers and from topic administration.

Knows: which answers bind an id to a name (Metadata, DescribeTopicPartitions, CreateTopics, DeleteTopics, group
describes), and which deny that a topic exists. Control requests are in `control.py`, the metadata log in
`log_entries.py`.
Rule: an error answer binds nothing; CreateTopics binds only if its request was seen and did more than validate.
"""

from collections.abc import Iterator

from wirecheck.judge.claims.batch import Batch, Bools, Lines
from wirecheck.judge.claims.kinds import FORWARDED, SENT
from wirecheck.judge.claims.reduce import Column, Rows

UNKNOWN_TOPIC = 3
REPORTS = (("Metadata", "metadata"), ("DescribeTopicPartitions", "describe-topic-partitions"))


def claims(batch: Batch) -> Iterator[Rows]:
    for api, source in REPORTS:
        if topics := batch.lines(api, "response", "topics"):
            error, named = topics["error_code"], topics.given("name")
            yield bound(topics, source, (error == 0) & named)
            if api == "Metadata":
                denied = (error == UNKNOWN_TOPIC) & named
                yield topics.states("absence", f"name ={source} @endpoint error_code", denied, tally=topics.slots)
        if partitions := batch.lines(api, "response", "topics.partitions"):
            key = f"topic_id partition_index ={source} leader_epoch leader_id replica_nodes isr_nodes"
            yield partitions.states("partition", key, partitions.given("topic_id") & (partitions["^error_code"] == 0))
    if topics := batch.lines("CreateTopics", "response", "topics"):
        yield from created(topics)
    if topics := batch.lines("DeleteTopics", "response", "responses"):
        yield from deleted(topics)


def bound(topics: Lines, source: str, where: Bools) -> Rows:
    return topics.states("binding", f"name topic_id ={source} @endpoint -", where, tally=topics.slots)


def created(topics: Lines) -> Iterator[Rows]:
    """Successful creations; who only validates gets an id that never exists (PROTOCOL 4.8)."""
    good = (topics["error_code"] == 0) & (topics.other("validate_only", absent=1) == 0)
    yield topics.states("creation", "name topic_id @endpoint", good)
    yield changed(topics, "topic_id", "CreateTopics", good)
    yield bound(topics, "create-topics", good & topics.given("topic_id"))


def deleted(topics: Lines) -> Iterator[Rows]:
    good, numbered = topics["error_code"] == 0, topics.given("topic_id")
    topic_id = topics.column("topic_id").only(numbered)
    yield topics.states("deletion", ["name", topic_id, "=delete-topics", "@endpoint", "-"], good, tally=topics.slots)
    yield changed(topics, topic_id, "DeleteTopics", good)
    yield bound(topics, "delete-topics", good & topics.given("name") & numbered)


def changed(topics: Lines, topic_id: str | Column, action: str, good: Bools) -> Rows:
    """Who asked for it: of an Envelope the client that it names."""
    who: list[str | Column] = ["@client_id", "@host", "-", f"={SENT}"]
    if (senders := topics.batch.senders) is not None:
        host, principal = senders.host.take(topics.message), senders.principal.take(topics.message)
        who = ["@client_id", host, principal, f"={FORWARDED}"]
    return topics.states("changed", ["name", topic_id, f"={action}", *who, "@endpoint"], good)
