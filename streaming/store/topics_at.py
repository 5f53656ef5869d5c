"""Topics as `kafka-topics --describe` shows them, from result tables: now, or as of an earlier time.

A description holds only what a row states, each with the time and the source of its first statement. As of a time T
nothing is used that was first stated after T.
"""

import datetime as dt
from collections.abc import Iterable
from typing import Any

from wirecheck.streaming.store.run_result import Result, Row, by_columns, plain
from wirecheck.wording import hex_id

FOREVER = dt.datetime.max.replace(tzinfo=dt.UTC)
Subject = tuple[str | None, str | None, str | None]
"""Cluster (null where it is unknown), topic id, and the name of a topic without one."""


def described(result: Result, at: dt.datetime | None = None) -> list[Row]:
    """Every topic, in the order of a replay's JSON. Times become RFC 3339."""
    at = at or FOREVER
    topics = [topic for topic in result.rows["topics"] if topic["first_seen"] <= at]
    partitions, words = (by_subject(result.rows[table], at) for table in ("partitions", "descriptions"))
    return [
        description(topic, topics, partitions.get(subject(topic), []), words.get(subject(topic), []), at)
        for topic in by_columns(topics, "cluster", "name", "first_seen")
    ]


def subject(row: Row) -> Subject:
    return row["cluster"], row["topic_id"], None if row["topic_id"] else row["name"]


def by_subject(rows: Iterable[Row], at: dt.datetime) -> dict[Subject, list[Row]]:
    by_subject_rows: dict[Subject, list[Row]] = {}
    for row in rows:
        if row["first_seen"] <= at and row.get("others") is None:
            by_subject_rows.setdefault(subject(row), []).append(row)
    return by_subject_rows


def description(topic: Row, topics: list[Row], partitions: list[Row], words: list[Row], at: dt.datetime) -> Row:
    state, earlier = state_at(topic, topics, at)
    internal, operations = (newest(words, column) for column in ("internal", "authorized_operations"))
    return {
        "cluster": topic["cluster"],
        "name": topic["name"],
        "topic_id": topic["topic_id"],
        "topic_id_hex": topic["topic_id"] and hex_id(topic["topic_id"]),
        "state": state,
        "earlier_ids": earlier,
        "first_seen": plain(topic["first_seen"]),
        "last_seen": plain(last_seen(topic, [*partitions, *words], at)),
        "internal": internal and internal["internal"],
        "internal_claim": word_of(internal),
        "authorized_operations": operations and operations["authorized_operations"],
        "authorized_operations_claim": word_of(operations),
        "partitions": [partition(row) for row in partition_states(partitions, at)],
    }


def last_seen(topic: Row, rows: list[Row], at: dt.datetime) -> dt.datetime:
    """The last time at or before `at` for which a row shows that a message named the topic. If the topic was also seen
    later, rows keep only changes: it may have been seen in between.
    """
    times = [row.get(column) for row in rows for column in ("first_seen", "until")]
    moments: list[dt.datetime] = [time for time in (topic["first_seen"], topic["last_seen"], *times) if time]
    return max(time for time in moments if time <= at)


def state_at(topic: Row, topics: list[Row], at: dt.datetime) -> tuple[str, list[str]]:
    """State and earlier ids, as they were known then; `topics` are those that were known."""
    if at == FOREVER:
        return topic["state"], topic["earlier_ids"]
    if topic["name"] is None:
        return topic["state"], []
    ids = [
        (other["first_seen"], other["topic_id"])
        for other in topics
        if (other["cluster"], other["name"]) == (topic["cluster"], topic["name"]) and other["topic_id"]
    ]
    earlier = [topic_id for first_seen, topic_id in sorted(ids) if first_seen < topic["first_seen"]]
    if any(first_seen > topic["first_seen"] for first_seen, _ in ids):
        return "replaced", []
    return "deleted" if topic["state"] == "deleted" and topic["last_seen"] <= at else "current", earlier


def newest(words: list[Row], column: str) -> Row | None:
    return max((row for row in words if row[column] is not None), key=lambda row: row["first_seen"], default=None)


def word_of(row: Row | None) -> Row | None:
    """On whose word something stands."""
    return row and {"time": plain(row["first_seen"]), "source": row["source"], "connection": row["connection"]}


def partition_states(rows: list[Row], at: dt.datetime) -> list[Row]:
    """The state each partition was in, by number."""
    latest: dict[int, Row] = {}
    for row in rows:
        other = latest.get(row["partition"])
        if other is None or order(row, at) > order(other, at):
            latest[row["partition"]] = row
    return [latest[number] for number in sorted(latest)]


def order(row: Row, at: dt.datetime) -> tuple[Any, ...]:
    """The highest leader epoch, then what held at that time, then what was stated last."""
    until = row["until"] or FOREVER
    return row["leader_epoch"], until >= at, row["first_seen"] if until >= at else until


def partition(row: Row) -> Row:
    columns = ("partition", "leader", "leader_epoch", "replicas", "isr", "offline_replicas")
    return {**{name: row[name] for name in columns}, **(word_of(row) or {})}
