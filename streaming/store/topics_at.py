"""Topics as `kafka-topics --describe` shows them, from result tables: now, or as of an earlier time.

A description holds only what a row states, each with the time and the source of its first statement. As of a time T
nothing is used that was first stated after T.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from wirecheck.document import of_row
from wirecheck.story.seen import Partition, StatedBy, Topic, TopicDescription, TopicState
from wirecheck.streaming.store.run_result import Result, Row
from wirecheck.wording import hex_id

FOREVER_NS = 1 << 63
Subject = tuple[str | None, str | None, str | None]
"""Cluster (null where it is unknown), topic id, and the name of a topic without one."""


def described(
    result: Result, at_ns: int = FOREVER_NS, choose: Callable[[Sequence[Topic]], Sequence[Topic]] | None = None
) -> list[TopicDescription]:
    """Every topic, or those that are chosen of all that were known then, in the order of a replay's JSON."""
    topics = [topic for topic in result.topics() if topic.first_ns <= at_ns]
    chosen = choose(topics) if choose else topics
    partitions, wholes = (by_subject(result.rows[table], at_ns) for table in ("partitions", "descriptions"))
    return [
        description(topic, topics, partitions.get(subject(topic), []), wholes.get(subject(topic), []), at_ns)
        for topic in chosen
    ]


def subject(topic: Topic) -> Subject:
    return topic.cluster, topic.topic_id, None if topic.topic_id else topic.name


def by_subject(rows: Iterable[Row], at_ns: int) -> dict[Subject, list[Row]]:
    found: dict[Subject, list[Row]] = {}
    for row in rows:
        if row["first_seen"] <= at_ns and row.get("others") is None:
            key = row["cluster"], row["topic_id"], None if row["topic_id"] else row["name"]
            found.setdefault(key, []).append(row)
    return found


def description(
    topic: Topic, topics: Sequence[Topic], partitions: list[Row], wholes: list[Row], at_ns: int
) -> TopicDescription:
    state, earlier = state_at(topic, topics, at_ns)
    internal, operations = (newest(wholes, column) for column in ("internal", "authorized_operations"))
    return TopicDescription(
        cluster=topic.cluster,
        name=topic.name,
        topic_id=topic.topic_id,
        topic_id_hex=hex_id(topic.topic_id) or None,
        state=state,
        earlier_ids=earlier,
        written_bytes=topic.written_bytes,
        read_bytes=topic.read_bytes,
        first_ns=topic.first_ns,
        last_ns=last_ns(topic, [*partitions, *wholes], at_ns),
        internal=internal["internal"] if internal else None,
        internal_claim=stated_by(internal) if internal else None,
        authorized_operations=tuple(operations["authorized_operations"]) if operations else None,
        authorized_operations_claim=stated_by(operations) if operations else None,
        partitions=tuple(map(partition, partition_states(partitions, at_ns))),
    )


def last_ns(topic: Topic, rows: list[Row], at_ns: int) -> int:
    """The last time at or before `at_ns` for which a row shows that a message named the topic. If the topic was also
    seen later, rows keep only changes: it may have been seen in between.
    """
    times: list[int | None] = [row.get(column) for row in rows for column in ("first_seen", "until")]
    return max(time for time in (topic.first_ns, topic.last_ns, *filter(None, times)) if time <= at_ns)


def state_at(topic: Topic, topics: Sequence[Topic], at_ns: int) -> tuple[TopicState, tuple[str, ...]]:
    """State and earlier IDs, as they were known then; `topics` are those that were known."""
    if at_ns == FOREVER_NS:
        return topic.state, topic.earlier_ids
    if topic.name is None:
        return topic.state, ()
    ids = sorted(
        (other.first_ns, other.topic_id)
        for other in topics
        if (other.cluster, other.name) == (topic.cluster, topic.name) and other.topic_id
    )
    earlier = tuple(topic_id for first_ns, topic_id in ids if first_ns < topic.first_ns)
    if any(first_ns > topic.first_ns for first_ns, _ in ids):
        return "replaced", ()
    return "deleted" if topic.state == "deleted" and topic.last_ns <= at_ns else "current", earlier


def newest(rows: list[Row], column: str) -> Row | None:
    return max((row for row in rows if row[column] is not None), key=lambda row: row["first_seen"], default=None)


def stated_by(row: Row) -> StatedBy:
    return of_row(StatedBy, row, time_ns=row["first_seen"])


def partition_states(rows: list[Row], at_ns: int) -> list[Row]:
    """The state each partition was in, by number."""
    latest: dict[int, Row] = {}
    for row in rows:
        other = latest.get(row["partition"])
        if other is None or order(row, at_ns) > order(other, at_ns):
            latest[row["partition"]] = row
    return [latest[number] for number in sorted(latest)]


def order(row: Row, at_ns: int) -> tuple[Any, ...]:
    """The highest leader epoch, then what held at that time, then what was stated last."""
    until_ns = row["until"] or FOREVER_NS
    return row["leader_epoch"], until_ns >= at_ns, row["first_seen"] if until_ns >= at_ns else until_ns


def partition(row: Row) -> Partition:
    offline = row["offline_replicas"]
    return of_row(
        Partition, row, time_ns=row["first_seen"], offline_replicas=None if offline is None else tuple(offline)
    )
