"""Sets per client: partitions in fetch sessions (KIP-227), topics that it writes to by name, and the topic IDs that
Metadata responses gave it for these.

A client may remove from a session whatever it requested from that server in any session. That is less strict than
KIP-227.
Rule: sets are bounded (`members.py`). Each member is stored with its last sighting. Brokers' own fetches make no sets,
because they have every partition.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from wirecheck.decode.columns import Table, value_per
from wirecheck.decode.log.metadata_log import TOPIC_NAME
from wirecheck.decode.wire import REQUEST, RESPONSE
from wirecheck.judge.claims.batch import Batch, Bools, Lines, among, numbered
from wirecheck.judge.claims.claim import METADATA_LOG, ZERO, Claim
from wirecheck.judge.claims.members import Hashes, hashed, label_of, of_partition, sets
from wirecheck.judge.claims.reduce import Column, Ints, Rows

SESSIONLESS, FULL = -1, 0
"""Session epochs: of a fetch outside of any session, and of one that begins a session."""
WITH_ERROR = 7
"""The first version whose answer has an error of its own; before, an answer without partitions may be one."""
MISSING, UNASKED = "partitions missing from the response", "partitions not requested"
NO_ID, ERROR = "-", "!"
"""In place of a topic ID: the API version has none, or the response has an error."""
HALF = np.uint64(32)
UPPER = np.uint64(0xFFFFFFFF00000000)


@dataclass(frozen=True)
class Partitions:
    """Partitions that messages name, one row each."""

    message: Ints
    label: Column
    number: Ints

    @property
    def hashes(self) -> Hashes:
        return of_partition(hashed(self.label), self.number)

    def where(self, mask: Bools) -> "Partitions":
        """Without the metadata log, whose fetches are raft's."""
        mask = mask & ~among(self.label, {METADATA_LOG, TOPIC_NAME})
        return Partitions(self.message[mask], self.label.take(mask), self.number[mask])


def claims(batch: Batch) -> Iterator[Rows]:
    fetches = Fetches.of(batch)
    if fetches is None:
        return
    header = fetches.header
    full = header["session_epoch"] == FULL  # the earliest is the greatest
    peak = {"any": -header.ts_ns, "full": np.where(full, -header.ts_ns, np.iinfo(np.int64).min)}
    yield header.states("session_begun", "@connection", fetches.in_session(batch, header.message), peak=peak)
    asked, returned = (
        rows.where(fetches.answered_in_full(batch, rows.message) & ~fetches.nameless(batch, rows.message))
        for rows in (fetches.asked, fetches.returned)
    )
    # partitions as parts of their exchange
    pair_asked, pair_returned = (of_partition(rows.hashes, batch.exchange[rows.message]) for rows in (asked, returned))
    for rows, there, others, what in (
        (asked, pair_asked, pair_returned, MISSING),
        (returned, pair_returned, pair_asked, UNASKED),
    ):
        yield batch.states("fetch_odd", ["@who", f"={what}"], rows.message, ~np.isin(there, others))


def members(batch: Batch) -> Iterator[Claim]:
    fetches = Fetches.of(batch)
    if fetches is None:
        return
    yield from asks(batch, fetches)
    for kind, rows in (("session_forgets", fetches.forgotten), ("session_answers", fetches.returned)):
        found = rows.where(fetches.in_session(batch, rows.message) & ~fetches.nameless(batch, rows.message))
        yield from named_sets(batch, kind, found)


def asks(batch: Batch, fetches: "Fetches") -> Iterator[Claim]:
    """What clients list in fetches, in a session or not: of each partition when last, and in which connection's session
    it stays from then on; and when they fetched last, and closed a session last (KIP-227), as at the end of a consumer.
    """
    header = fetches.header
    message = header.message[~fetches.of_follower(batch, header.message)]
    closes = (header["session_epoch"] == SESSIONLESS) & (header["session_id"] != 0)
    closes[np.isin(header.message, fetches.asked.message)] = False
    at = np.isin(header.message, message)
    peak = {"asked": np.where(closes, 0, header.ts_ns)[at], "closed": np.where(closes, header.ts_ns, 0)[at]}
    found = fetches.asked.where(~fetches.of_follower(batch, fetches.asked.message))
    in_session, seen = fetches.in_session(batch, found.message), batch.sightings.ts_ns[found.message]
    ports = batch.sightings.port.take(found.message).only(in_session)

    def values(rows: Ints) -> list[Any]:
        return [[ts_ns, port or 0] for ts_ns, port in zip(seen[rows].tolist(), ports.at(rows), strict=True)]

    rows = batch.states("fetch_asks", "@who", message, peak=peak)
    inside = batch.states("fetch_asks", "@who", found.message)
    yield from sets(rows, inside, found.hashes, batch.sightings, values)


def named_sets(batch: Batch, kind: str, found: Partitions) -> Iterator[Claim]:
    def values(rows: Ints) -> list[Any]:
        places = zip(found.label.at(rows), found.number[rows].tolist(), strict=True)
        return seen_at(batch, found.message[rows], ([str(label), number] for label, number in places))

    rows = batch.states(kind, "@who", found.message)
    yield from sets(rows, rows, found.hashes, batch.sightings, values)


def seen_at(batch: Batch, message: Ints, kept: Iterable[list[Any]]) -> list[Any]:
    """What is stored with each member: its sighting, then its values."""
    return [[*seen, *one] for seen, one in zip(batch.sightings.of(message), kept, strict=True)]


@dataclass(frozen=True)
class Fetches:
    """The fetches of a batch with their answers."""

    header: Lines
    answered: Lines | None
    asked: Partitions
    forgotten: Partitions
    returned: Partitions

    @classmethod
    def of(cls, batch: Batch) -> "Fetches | None":
        header, forgotten = batch.lines("Fetch", "request"), batch.lines("Fetch", "request", "forgotten_topics_data")
        if not header or not forgotten:
            return None
        numbers, offsets = forgotten.table["partitions"].flat()
        row = np.repeat(np.arange(len(forgotten)), np.diff(offsets))
        gone = Partitions(forgotten.message[row], label_of(forgotten.table, "topic").take(row), numbers)
        asked = listed(batch.lines("Fetch", "request", "topics.partitions"), "partition")
        returned = listed(batch.lines("Fetch", "response", "responses.partitions"), "partition_index")
        return cls(header, batch.lines("Fetch", "response"), asked, gone, returned)

    def of_request(self, batch: Batch, message: Ints, column: str, absent: int) -> Ints:
        """A column of the request of messages of either side."""
        return value_per(batch.partner(message, REQUEST), self.header.table, column, absent)

    def nameless(self, batch: Batch, message: Ints) -> Bools:
        """Of fetches that were answered about the zero topic ID. Servers that are not Apache Kafka answer so about a
        deleted topic: which of the partitions they mean is unknown.
        """
        zero = np.zeros(len(batch.exchange), np.bool_)
        zero[self.returned.message[among(self.returned.label, {ZERO})]] = True
        answer = batch.partner(message, RESPONSE)
        found: Bools = (answer >= 0) & zero[answer]
        return found

    def in_session(self, batch: Batch, message: Ints) -> Bools:
        """Fetches of clients that keep a session, or begin one."""
        in_session = self.of_request(batch, message, "session_epoch", SESSIONLESS) >= FULL
        return in_session & ~self.of_follower(batch, message)

    def of_follower(self, batch: Batch, message: Ints) -> Bools:
        followed: Bools = self.of_request(batch, message, "replica_id", 0) >= 0
        return followed | (self.of_request(batch, message, "replica_state.replica_id", 0) >= 0)

    def answered_in_full(self, batch: Batch, message: Ints) -> Bools:
        """Of full fetches, in a session or not, that were answered without an error and without being throttled."""
        if self.answered is None:
            return np.zeros(len(message), np.bool_)
        answer = batch.partner(message, RESPONSE)
        good = value_per(answer, self.answered.table, "error_code", absent=-1) == 0
        free = value_per(answer, self.answered.table, "throttle_time_ms", absent=1) == 0
        full = self.of_request(batch, message, "session_epoch", absent=1) <= FULL
        whole: Bools = good & free & full & (batch.version(message) >= WITH_ERROR)
        return whole


def listed(partitions: Lines | None, number: str) -> Partitions:
    if partitions is None:
        none = np.zeros(0, np.int64)
        return Partitions(none, Column(none, [None]), none)
    topics, row = partitions.table.enclosing, partitions.table.parent
    assert topics is not None
    return Partitions(partitions.message, label_of(topics, "topic").take(row), partitions[number])


def topics_by_name(batch: Batch) -> Iterator[Claim]:
    """Names that a client writes to with success, and the ids of names as Metadata answered them to a client."""
    topics = batch.lines("Produce", "response", "responses")
    partitions = batch.lines("Produce", "response", "responses.partition_responses")
    if topics and partitions:
        good = np.zeros(len(topics), np.bool_)
        good[partitions.table.parent[partitions["error_code"] == 0]] = True
        rows = np.flatnonzero(good & topics.present("name"))
        yield from topic_sets(batch, "wrote", topics.message[rows], topics.column("name", rows))
    if topics := batch.lines("Metadata", "response", "topics"):
        rows = np.flatnonzero(topics.given("name"))
        answers = answer_of(topics.table).take(rows)
        yield from topic_sets(batch, "topics_answered", topics.message[rows], topics.column("name", rows), answers)


def answer_of(topics: Table) -> Column:
    ids = numbered(topics)
    values = [NO_ID if value in {None, ZERO} else value for value in ids.values or ()]
    return Column(np.where(topics["error_code"] == 0, ids.codes % len(values), len(values)), [*values, ERROR])


def topic_sets(batch: Batch, kind: str, message: Ints, names: Column, answers: Column | None = None) -> Iterator[Claim]:
    """Sets of names, or of names with their answers. Members of one name sort together."""
    hashes = hashed(names)
    if answers is not None:
        hashes = (hashes & UPPER) | (hashed(answers) >> HALF)

    def values(rows: Ints) -> list[Any]:
        answered = [""] * len(rows) if answers is None else answers.at(rows)
        return seen_at(batch, message[rows], map(list, zip(names.at(rows), answered, strict=True)))

    rows = batch.states(kind, "@who", message)
    yield from sets(rows, rows, hashes, batch.sightings, values)
