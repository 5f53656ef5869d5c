"""Claims about positions: from which offset each client reads a partition, what came of it, and where a group goes on.

Rule: nothing is judged here. A client's position is what it asks for; how far the log of a partition reaches is stated
elsewhere (`replicas.py`). In a fetch session (KIP-227) a partition is listed only where its position changes.
"""

from collections.abc import Iterator

import numpy as np

from wirecheck.decode.connection.exchanges import ANSWERED, CLOSED_BY_CLIENT, PENDING
from wirecheck.decode.request_waits import OVERDUE_NS, SECOND_NS, each_whole_since, until_ns
from wirecheck.judge.claims.batch import Batch, Bools, Lines, among, key_of_messages
from wirecheck.judge.claims.claim import AT, LOWEST, METADATA_LOG
from wirecheck.judge.claims.extract.replicas import replicas, to_clients
from wirecheck.judge.claims.members import label_of
from wirecheck.judge.claims.reduce import Column, Ints, Rows, spelled
from wirecheck.judge.claims.seconds import second_of

OUT_OF_RANGE = 1
NO_OFFSET, CLIENT, EARLIEST = -1, -1, -2
FEW = 64
"""Of answers about more partitions, as exporters ask for every minute, the last one is kept alone."""
OFFSETS_FETCHED = ("topics.partitions", "groups.topics.partitions")


def claims(batch: Batch) -> Iterator[Rows]:
    if asked := batch.lines("Fetch", "request", "topics.partitions"):
        yield from asked_for(asked)
    if answered := batch.lines("Fetch", "response", "responses.partitions"):
        yield from answers(answered)
    yield from sought(batch)
    yield from restored(batch)
    yield from joins(batch)


def place(partitions: Lines, topic: str, number: str) -> list[Column | str]:
    """Client, topic and partition, as parts of a key."""
    name = partitions.column(topic).only(partitions.present(topic))
    return ["@who", name, "topic_id" if partitions.has("topic_id") else "-", number]


def of_topic(partitions: Lines) -> Bools:
    """All but the metadata log, whose readers are nodes."""
    if not partitions.has("topic_id"):
        return np.ones(len(partitions), np.bool_)
    return ~among(partitions.column("topic_id"), {METADATA_LOG})


def at_slot(partitions: Lines, kind: str = "") -> Column:
    return spelled(f"{AT}{{}}{kind}".format, Column(partitions.batch.slot(partitions.message)))


def at_second(partitions: Lines) -> Column:
    """By the slot and the second in it."""
    return spelled(second_of, Column(partitions.ts_ns // SECOND_NS))


def asked_for(asked: Lines) -> Iterator[Rows]:
    """Where a client asks for records: the earliest, the latest, the lowest, and the lowest and the greatest of each
    slot. The lowest are those of requests that were not rejected: what was rejected was not read.
    """
    _, follows = replicas(asked)
    offset, ts_ns = asked["fetch_offset"], asked.ts_ns
    good = ~follows & (offset >= 0) & of_topic(asked)
    latest = {"last": (ts_ns, offset), "first": (-ts_ns, offset)}
    key, greatest = place(asked, "topic", "partition"), (at_slot(asked), offset)
    failed = rejected(asked)
    yield asked.states("position", key, good & ~failed, latest=latest, named=greatest, peak={"lowest": -offset})
    if failed.any():
        yield asked.states("position", key, good & failed, latest=latest, named=greatest)
    yield asked.states("position", key, good & ~failed, named=(at_slot(asked, LOWEST), -offset))


def rejected(asked: Lines) -> Bools:
    """Whether a partition is answered with an error, as far as the request lists it."""
    found = np.zeros(len(asked), np.bool_)
    answered = asked.batch.lines("Fetch", "response", "responses.partitions")
    if answered is None:
        return found
    rows = np.flatnonzero((answered["error_code"] != 0) & (answered.partner >= 0))
    if not len(rows):
        return found
    places = {*zip(*(part.at(rows) for part in parts(answered, answered.partner, "partition_index")), strict=True)}
    listed = np.flatnonzero(np.isin(asked.message, answered.partner[rows]))
    asks = zip(*(part.at(listed) for part in parts(asked, asked.message, "partition")), strict=True)
    found[listed] = [one in places for one in asks]
    return found


def answers(answered: Lines) -> Iterator[Rows]:
    """What came: with which error, in which slots records, and where the log began then."""
    good = to_clients(answered) & of_topic(answered)
    error, ts_ns = answered["error_code"], answered.ts_ns
    key = place(answered, "topic", "partition_index")
    came = answered.slots.only(answered.size("records") > 0)
    yield answered.states("position", key, good, latest={"answer": (ts_ns, error)}, tally=came)
    begins = answered["log_start_offset"]
    known = good & (begins >= 0) & np.isin(error, (0, OUT_OF_RANGE))
    yield answered.states("position", key, known, latest={"begin": (-ts_ns, begins)})
    missed = good & (error == OUT_OF_RANGE)
    if missed.any():
        yield out_of_range(answered, key, missed)


def out_of_range(answered: Lines, key: list[Column | str], missed: Bools) -> Rows:
    """Where a client asked for an offset that the log does not have, as far as its request lists the partition. Such an
    answer does not say where the log begins: its log_start_offset is -1 (Kafka 4.4).
    """
    offset = np.full(len(answered), NO_OFFSET, np.int64)
    asked = answered.batch.lines("Fetch", "request", "topics.partitions")
    if asked is not None:
        rows = np.flatnonzero(missed)
        listed = np.flatnonzero(np.isin(asked.message, answered.partner[rows]))
        places = zip(*(part.at(listed) for part in parts(asked, asked.message, "partition")), strict=True)
        offsets = dict(zip(places, asked["fetch_offset"][listed].tolist(), strict=True))
        places_of = zip(*(part.at(rows) for part in parts(answered, answered.partner, "partition_index")), strict=True)
        offset[rows] = [offsets.get(place, NO_OFFSET) for place in places_of]
    return answered.states("out_of_range", key, missed & (offset >= 0), named=(at_second(answered), offset))


def parts(partitions: Lines, request: Ints, number: str) -> tuple[Column, Column, Column]:
    """By what a partition of a response is the same as one in its request."""
    topics = partitions.table.enclosing
    assert topics is not None
    return Column(request), label_of(topics, "topic").take(partitions.table.parent), Column(partitions[number])


def sought(batch: Batch) -> Iterator[Rows]:
    """Offsets that a client asked for by time, or by the beginning (-2) or the end (-1) of the log."""
    answers_of, asked = (batch.lines("ListOffsets", side, "topics.partitions") for side in ("response", "request"))
    if answers_of is None or asked is None:
        return
    sought_by, mixed = (np.zeros(len(batch.decoded), np.int64) for _ in range(2))
    sought_by[asked.message] = asked["timestamp"]
    mixed[asked.message[asked["timestamp"] != sought_by[asked.message]]] = 1
    partner = answers_of.partner
    from_client = answers_of.other("replica_id", absent=0) == CLIENT
    good = from_client & (partner >= 0) & (answers_of["error_code"] == 0) & (answers_of["offset"] >= 0)
    good &= mixed[partner] == 0
    key = [*place(answers_of, "name", "partition_index"), Column(np.maximum(sought_by[partner], EARLIEST - 1))]
    ts_ns, offset = answers_of.ts_ns, answers_of["offset"]
    few = np.bincount(answers_of.message, minlength=len(batch.decoded))[answers_of.message] <= FEW
    named = at_second(answers_of).only(few), offset
    yield answers_of.states("sought", key, good, latest={"last": (ts_ns, offset)}, named=named)


def restored(batch: Batch) -> Iterator[Rows]:
    """Which committed offset a client gets for a group that goes on; -1 where the group has none."""
    for path in OFFSETS_FETCHED:
        partitions = batch.lines("OffsetFetch", "response", path)
        if partitions is None:
            continue
        offset, good = partitions["committed_offset"], partitions["error_code"] == 0
        if path.startswith("groups"):
            group = partitions.column("group_id")
            good &= partitions["^error_code"] == 0
        else:
            group, known = partitions.other_column("group_id")
            good &= known
        client, host, _ = key_of_messages(batch, "@who", partitions.message)
        name = partitions.column("name").only(partitions.present("name"))
        topic_id = partitions.column("topic_id" if partitions.has("topic_id") else "-")
        key = [client, host, name, topic_id, group, "partition_index", "@endpoint"]
        yield partitions.states("restored", key, good & (offset >= 0), named=(at_slot(partitions), offset))
        yield partitions.states("offset_gone", key[2:], good & (offset == NO_OFFSET))


def joins(batch: Batch) -> Iterator[Rows]:
    """How long members wait until all others have joined: the longest time until a response, or until they close the
    connection, and when the last request was sent that has none before the capture ends. A response may be missing only
    where all of the connection was captured since then.
    """
    asked = batch.lines("JoinGroup", "request")
    if asked is None:
        return
    exchanges, row = batch.exchanges, batch.exchange[asked.message]
    outcome = exchanges.outcome[row]
    is_whole = each_whole_since(exchanges, asked.message)
    ended, pending = (outcome == ANSWERED) | ((outcome == CLOSED_BY_CLIENT) & is_whole), (outcome == PENDING) & is_whole
    to_ns = np.where(ended, until_ns(exchanges, row), 0)
    waited = (ended & (to_ns - asked.ts_ns >= OVERDUE_NS)) | pending
    longest = {"wait": (np.maximum(to_ns - asked.ts_ns, 0), asked.ts_ns)}
    peak = {"open": np.where(pending, asked.ts_ns, 0)}
    yield asked.states("join_wait", ["@who", "group_id"], waited, latest=longest, peak=peak)
