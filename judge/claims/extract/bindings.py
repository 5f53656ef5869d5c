"""Claims about which topic is which, and what describes a topic, from answers of brokers and topic administration.

Bindings in control requests are in `control.py`, those in the metadata log in `log_entries.py`.
Rule: an error answer binds nothing; CreateTopics binds only if its request was seen and did more than validate. What
describes a topic is filed under its ID where the message carries one, else under its name. Offline replicas are claimed
only where there are some; whether they still are is seen from the state's own later claims.
"""

from collections.abc import Iterator

import numpy as np

from wirecheck.judge.claims.batch import Batch, Bools, Lines
from wirecheck.judge.claims.kinds import FORWARDED, SENT
from wirecheck.judge.claims.reduce import Column, Rows, ids

UNKNOWN_TOPIC, UNCLEAN = 3, 1
NOT_ASKED = (-(1 << 31), 0)
"""Authorized operations in responses whose request did not ask for them. Brokers before 2.5 answer 0, which is
impossible for a client that may see the topic.
"""
REPORTS = (("Metadata", "metadata"), ("DescribeTopicPartitions", "describe-topic-partitions"))


def claims(batch: Batch) -> Iterator[Rows]:
    for api, source in REPORTS:
        if topics := batch.lines(api, "response", "topics"):
            error, named = topics["error_code"], topics.given("name")
            yield bound(topics, source, (error == 0) & named)
            yield described(topics, source)
            if api == "Metadata":
                denied = (error == UNKNOWN_TOPIC) & named
                yield topics.states("absence", f"name ={source} @endpoint error_code", denied, tally=topics.slots)
        if partitions := batch.lines(api, "response", "topics.partitions"):
            key = f"topic_id partition_index ={source} leader_epoch leader_id replica_nodes isr_nodes"
            yield partitions.states("partition", key, partitions.given("topic_id") & (partitions["^error_code"] == 0))
            good = (partitions["^error_code"] == 0) & partitions.given("name")
            yield from states(partitions, source, good, "name", "leader_id replica_nodes isr_nodes")
    if topics := batch.lines("CreateTopics", "response", "topics"):
        yield from created(topics)
    if topics := batch.lines("DeleteTopics", "response", "responses"):
        yield from deleted(topics)
    if elected := batch.lines("ElectLeaders", "response", "replica_election_results.partition_result"):
        unclean = (elected["error_code"] == 0) & (elected.other("election_type", absent=0) == UNCLEAN)
        asked = ["topic", "partition_id", *asking(elected), "@endpoint"]
        yield elected.states("election_asked", asked, unclean)


def bound(topics: Lines, source: str, where: Bools) -> Rows:
    key = ["name", stated_ids(topics), f"={source}", "@endpoint", "-"]
    near, twice = damaged_ids(topics)
    return topics.states("binding", key, where & ~near & ~twice, tally=topics.slots)


ID_BYTES = 16
NEARLY = range(12, 21)
"""A tag of so many bytes, where a draft has the topic ID, is one that was cut or padded."""


def damaged_ids(topics: Lines) -> tuple[Bools, Bools]:
    """By the draft the ID is the only tag of 16 bytes. Topics with a tag of nearly so many instead of it, and those
    that have two.
    """
    near, twice = (np.zeros(len(topics), np.bool_) for _ in range(2))
    tags = topics.batch.lines(*topics.kind, f"{topics.table.path}._unknown_tagged_fields")
    if not tags or not topics.has("topic_id"):
        return near, twice
    length, row = tags.table["data"].length, tags.table.parent
    there, drafted = topics.present("topic_id"), topics.batch.drafted(topics.message)
    near[row[np.isin(length, [one for one in NEARLY if one != ID_BYTES])]] = True
    twice[row[length == ID_BYTES]] = True
    return near & drafted & ~there, twice & drafted & there


def stated_ids(topics: Lines) -> Column:
    """Per topic its ID; None where the version carries none. By KIP-516's draft the ID is a tag, and without it a topic
    has none.
    """
    there, drafted = topics.present("topic_id"), topics.batch.drafted(topics.message)
    if not (drafted & ~there).any():
        return topics.column("topic_id")
    return ids(topics.table["topic_id"]).only(there | drafted)


def created(topics: Lines) -> Iterator[Rows]:
    """Successful creations. A request that only validates gets an ID that never exists (PROTOCOL 4.8)."""
    good = (topics["error_code"] == 0) & (topics.other("validate_only", absent=1) == 0)
    yield topics.states("creation", "name topic_id @endpoint", good)
    yield topics.states("creates", "@endpoint", good)
    yield changed(topics, "topic_id", "CreateTopics", good)
    yield bound(topics, "create-topics", good & topics.given("topic_id"))


def deleted(topics: Lines) -> Iterator[Rows]:
    good, numbered = topics["error_code"] == 0, topics.given("topic_id")
    topic_id = topics.column("topic_id").only(numbered)
    yield topics.states("deletion", ["name", topic_id, "=delete-topics", "@endpoint", "-"], good, tally=topics.slots)
    yield changed(topics, topic_id, "DeleteTopics", good)
    yield bound(topics, "delete-topics", good & topics.given("name") & numbered)


def changed(topics: Lines, topic_id: str | Column, action: str, good: Bools) -> Rows:
    return topics.states("changed", ["name", topic_id, f"={action}", *asking(topics), "@endpoint"], good)


def asking(lines: Lines) -> list[str | Column]:
    """Who sent the request; for an Envelope, the client that it names."""
    if (senders := lines.batch.senders) is None:
        return ["@client_id", "@host", "-", f"={SENT}"]
    host, principal = senders.host.take(lines.message), senders.principal.take(lines.message)
    return ["@client_id", host, principal, f"={FORWARDED}"]


def states(partitions: Lines, source: str, good: Bools, name: str, state: str) -> Iterator[Rows]:
    """Partition states without ids, and offline replicas with or without."""
    named, topic_id, numbered = names_and_ids(partitions, name)
    key = [named, "partition_index", f"={source}", "leader_epoch", *state.split()]
    yield partitions.states("unnumbered", key, good & ~numbered)
    if partitions.has("offline_replicas"):
        key = [named, topic_id, "partition_index", f"={source}", "offline_replicas"]
        yield partitions.states("offline", key, good & (partitions.size("offline_replicas") > 0))


def described(topics: Lines, source: str) -> Rows:
    name, topic_id, _ = names_and_ids(topics, "name")
    internal = Column(topics["is_internal"]).only(topics.present("is_internal"))
    operations = topics["topic_authorized_operations"]
    key = [name, topic_id, f"={source}", internal, Column(operations).only(~np.isin(operations, NOT_ASKED))]
    return topics.states("topic_described", key, (topics["error_code"] == 0) & topics.given("name"))


def names_and_ids(lines: Lines, name: str) -> tuple[Column, Column | str, Bools]:
    """The topic ID where the message has one that is not zero, and the name elsewhere; and which rows have the ID."""
    if not lines.has("topic_id"):
        return lines.column(name), "-", np.zeros(len(lines), np.bool_)
    numbered = lines.given("topic_id")
    return lines.column(name).only(~numbered), lines.column("topic_id").only(numbered), numbered
