"""Claims about members of consumer groups: their assignments, that they live, and how far they commit.

Rule: what a member holds is its last assignment, whole: of the consumer protocol the answer to SyncGroup, of KIP-848
that to ConsumerGroupHeartbeat, of share groups (KIP-932) that to ShareGroupHeartbeat. An assignment with bytes of an
application in it (Kafka Streams, Connect) is not read, nor are the tasks of a Streams group (KIP-1071).
Sets are bounded (`members.py`).
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from wirecheck.decode.group_protocol import POLL_EXPIRED, UNSUBSCRIBED, assignment
from wirecheck.judge.claims.batch import Batch, Bools, Lines
from wirecheck.judge.claims.claim import Claim
from wirecheck.judge.claims.extract.client_sets import Partitions
from wirecheck.judge.claims.extract.clients import EPOCH_END_NS
from wirecheck.judge.claims.members import hashed, label_of, of_partition, sets
from wirecheck.judge.claims.reduce import Column, Ints, Rows, grouped

MEMBER = "member"
JOIN, CLASSIC, NEXT, SHARE = "JoinGroup", "Heartbeat", "ConsumerGroupHeartbeat", "ShareGroupHeartbeat"
STREAMS = "StreamsGroupHeartbeat"
BY_ID = (NEXT, SHARE)
EXPIRED, BY_CHOICE = 2, 1
STATED: dict[str | None, int] = {POLL_EXPIRED: EXPIRED, UNSUBSCRIBED: BY_CHOICE}
LEAVES = -1
"""The member epoch of a member that leaves."""
PARTITIONS = "assignment.topic_partitions"
SEVERAL = (("OffsetFetch", "groups", "group_id"), ("FindCoordinator", "coordinators", "key"))
"""API, and where one response answers for several groups (or transactional IDs), each with an error of its own."""


def claims(batch: Batch) -> Iterator[Rows]:
    for api in (JOIN, CLASSIC, *BY_ID):
        if answers := batch.lines(api, "response"):
            group, known = answers.other_column("group_id")
            limit = {"rebalance_timeout_ms": patience_ms(answers)} if api == JOIN else {}
            yield answers.states("entry", ["@who", group, f"={api}"], known, peak=limit, error=answers["error_code"])
    for api, groups, name in batch.each("response", SEVERAL):
        several = np.bincount(groups.message)[groups.message] > 1
        yield groups.states("entry", ["@who", name, f"={api}"], several, error=groups["error_code"])
    if joined := batch.lines(JOIN, "response"):
        limit_ms = patience_ms(joined)
        led = {"members": (joined.ts_ns, listed_in(joined))}
        yield of_members(joined, "member_id", {"rebalance_timeout_ms": limit_ms}, tally=joined.slots, latest=led)
    if alive := batch.lines(CLASSIC, "response"):
        yield of_members(alive, None, {"alive": alive.ts_ns})
    for api in (*BY_ID, STREAMS):
        if alive := batch.lines(api, "response"):
            peak = {"alive": alive.ts_ns}
            if api in {NEXT, STREAMS}:
                peak["rebalance_timeout_ms"] = alive.other("rebalance_timeout_ms", -1)
            epoch = alive.other("member_epoch", 0)
            yield of_members(alive, "member_id", peak, epoch >= 0)
            yield left(alive, epoch == LEAVES)
    if gone := batch.lines("LeaveGroup", "response"):
        why = reasons(gone)
        expired = {"expired": np.where(why == EXPIRED, gone.ts_ns, -1)}
        yield left(gone, np.ones(len(gone), np.bool_), peak=expired, tally=gone.slots.only(why != BY_CHOICE))


def patience_ms(joined: Lines) -> Ints:
    """How long a member has to join again, as it states; -1 where its request was not captured."""
    return np.maximum(joined.other("rebalance_timeout_ms", -1), joined.other("session_timeout_ms", -1))


def listed_in(joined: Lines) -> Ints:
    """How many members the leader of a generation gets to know, itself among them; the others get none."""
    members = joined.batch.lines("JoinGroup", "response", "members")
    listed = members.message if members else np.zeros(0, np.int64)
    found: Ints = np.bincount(listed, minlength=len(joined.batch.decoded))[joined.message]
    return found


def reasons(gone: Lines) -> Ints:
    """Whether LeaveGroup was answered to a member that did not poll in time, or unsubscribed; 0 for others."""
    asked, given = gone.batch.lines("LeaveGroup", "request", "members"), np.zeros(len(gone.batch.decoded), np.int64)
    if asked is not None:
        words = [STATED.get(reason, 0) for reason in asked.table["reason"].strings()]
        np.maximum.at(given, asked.message, words)
    found: Ints = np.where(gone.partner >= 0, given[gone.partner], 0)
    return found


def left(answers: Lines, where: Bools, **more: Any) -> Rows:
    """Who left a group, by connection: a process that ends leaves once, and its connection closes; `more` as of
    `Rows`.
    """
    group, known = answers.other_column("group_id")
    client = answers.batch.connection_part(answers.message, 0)
    good = known & where & (answers["error_code"] == 0)
    return answers.states("left", ["@who", group, client], good, **{"tally": answers.slots, **more})


def of_members(
    answers: Lines, member: str | None, peak: dict[str, Ints], where: Bools | None = None, **more: Any
) -> Rows:
    """What answers without an error state about the member that asked; `more` as of `Rows`."""
    group, known = answers.other_column("group_id")
    asked, _ = answers.other_column("member_id")
    own = asked if member is None else either(answers.column(member), asked)
    good = known & (answers["error_code"] == 0)
    chosen = good if where is None else good & where
    return answers.states(MEMBER, ["@who", group, own], chosen, peak=peak, **more)


def either(first: Column, second: Column) -> Column:
    """The first text of each row, or where that is null or empty the second."""
    values = [*(first.values or ()), *(second.values or ())]
    given = np.array([bool(value) for value in first.values or ()], np.bool_)[first.codes]
    width, other = len(first.values or ()), len(second.values or ())
    return Column(np.where(given, first.codes % width, second.codes % other + width), values)


def sets_of(batch: Batch) -> Iterator[Claim]:
    yield from assigned_by_name(batch)
    for api in BY_ID:
        yield from assigned_by_id(batch, api)
    yield from progress(batch)


def assigned_by_name(batch: Batch) -> Iterator[Claim]:
    """Assignments of the consumer protocol."""
    answers = batch.lines("SyncGroup", "response")
    if answers is None:
        return
    read = [read_assignment(answers, row) for row in range(len(answers))]
    known = np.array([one is not None for one in read], np.bool_)
    every = [(row, topic, number) for row, one in enumerate(read) for topic, numbers in one or () for number in numbers]
    names = {topic: code for code, topic in enumerate(dict.fromkeys(topic for _, topic, _ in every))}
    rows = np.array([row for row, *_ in every], np.int64)
    labels = Column(np.array([names[topic] for _, topic, _ in every], np.int64), [*names])
    numbers = np.array([number for *_, number in every], np.int64)
    yield from assigned(answers, known, Partitions(rows, labels, numbers))


def read_assignment(answers: Lines, row: int) -> tuple[tuple[str, tuple[int, ...]], ...] | None:
    """Topics with partitions; None where the answer is no assignment of a plain consumer."""
    data = answers.table["assignment"].raw(row)
    if data is None or answers["error_code"][row] != 0:
        return None
    found = assignment(data) if data else ()
    if found == ():
        return ()
    return None if not found or found.content else found.topics


def assigned_by_id(batch: Batch, api: str) -> Iterator[Claim]:
    """Assignments of KIP-848 and KIP-932; null where the former one stays."""
    answers, topics = batch.lines(api, "response"), batch.lines(api, "response", PARTITIONS)
    if answers is None or topics is None:
        return
    place = np.full(len(batch.decoded), -1, np.int64)
    place[answers.message] = np.arange(len(answers))
    numbers, offsets = topics.table["partitions"].flat()
    row = np.repeat(np.arange(len(topics)), np.diff(offsets))
    known = np.zeros(len(answers), np.bool_)
    known[place[topics.message]] = True
    labels = topics.column("topic_id").take(row)
    yield from assigned(answers, known, Partitions(place[topics.message[row]], labels, numbers))


def assigned(answers: Lines, known: Bools, partitions: Partitions) -> Iterator[Claim]:
    """The members of answers with an assignment, each with its partitions; `partitions.message` is the answer's row."""
    whole = of_members(answers, "member_id" if answers.kind[0] in BY_ID else None, {"assigned": answers.ts_ns})
    rows = answers_where(answers, whole, known)
    place = np.full(len(answers.batch.decoded), -1, np.int64)
    place[rows.message] = np.arange(len(rows.message))
    at = place[answers.message[partitions.message]] if len(partitions.message) else partitions.message
    kept = at >= 0
    inside = rows.where(at[kept])
    of_topic, number, seen = (
        partitions.label.take(kept),
        partitions.number[kept],
        answers.ts_ns[partitions.message[kept]],
    )

    def values(chosen: Ints) -> list[list[object]]:
        return [
            list(one) for one in zip(seen[chosen].tolist(), of_topic.at(chosen), number[chosen].tolist(), strict=True)
        ]

    yield from sets(rows, inside, of_partition(hashed(of_topic), number), answers.batch.sightings, values)


def answers_where(answers: Lines, rows: Rows, known: Bools) -> Rows:
    """Of rows made of answers those of some answers."""
    chosen = np.zeros(len(answers.batch.decoded), np.bool_)
    chosen[answers.message[known]] = True
    return rows.where(chosen[rows.message])


def progress(batch: Batch) -> Iterator[Claim]:
    """The greatest offset that a group commits of each partition, and when first."""
    partitions = batch.lines("OffsetCommit", "request", "topics.partitions")
    topics = batch.lines("OffsetCommit", "request", "topics")
    if partitions is None or topics is None:
        return
    labels = label_of(topics.table, "name").take(partitions.table.parent)
    offsets, hashes = partitions["committed_offset"], of_partition(hashed(labels), partitions["partition_index"])
    rows = partitions.states("progress", "@who group_id")
    group, _ = grouped([*rows.key, Column(hashes.view(np.int64) >> 1)])
    order = np.lexsort((batch.sightings.rank[rows.message], offsets, group))
    first = np.ones(len(order), np.bool_)
    first[1:] = (np.diff(group[order]) != 0) | (np.diff(offsets[order]) != 0)
    begun = np.sort(order[first])  # of commits of one offset the first
    ts_ns = partitions.ts_ns

    def values(chosen: Ints) -> list[list[object]]:
        at = begun[chosen]
        return [list(one) for one in zip(offsets[at].tolist(), (EPOCH_END_NS - ts_ns[at]).tolist(), strict=True)]

    yield from sets(rows, rows.where(begun), hashes[begun], batch.sightings, values)
