"""Claims about fetch sessions (KIP-227): what clients asked for, what they forget, what they are answered.

Knows: which fetches belong to a session, and that a full fetch is answered in full. Does not know sessions' numbers:
what a client asked of a server in any session it may forget there, which is less than KIP-227 demands and never more.
Rule: brokers' own fetches make no sets, because they hold every partition there is; a set is bounded (`members.py`).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wirecheck.decode.columns import Table
from wirecheck.decode.log.metadata_log import TOPIC_NAME
from wirecheck.decode.wire import REQUEST, RESPONSE
from wirecheck.judge.claims.batch import Batch, connection_key, value_per
from wirecheck.judge.claims.claim import METADATA_LOG, Claim
from wirecheck.judge.claims.extract.clients import who
from wirecheck.judge.claims.members import Hashes, hashed, label_of, of_partition, sets
from wirecheck.judge.claims.reduce import Column, Ints, Rows, constant

SESSIONLESS, FULL = -1, 0
"""Session epochs: of a fetch outside of any session, and of one that begins a session."""
WITH_ERROR = 7
"""The first version whose answer has an error of its own; before, an answer without partitions may be one."""
MISSING, UNASKED = "partitions missing from the response", "partitions not requested"


@dataclass(frozen=True)
class Partitions:
    """Partitions that messages name, one row each."""

    message: Ints
    label: Column
    number: Ints

    @property
    def hashes(self) -> Hashes:
        return of_partition(hashed(self.label), self.number)

    def where(self, mask: NDArray[np.bool_]) -> "Partitions":
        """Without the metadata log, whose fetches are raft's."""
        log = [code for code, value in enumerate(self.label.values or ()) if value in {METADATA_LOG, TOPIC_NAME}]
        mask = mask & ~np.isin(self.label.codes, log)
        return Partitions(self.message[mask], self.label.take(mask), self.number[mask])


def claims(batch: Batch) -> Iterator[Rows]:
    """How sessions begin, and full fetches that were not answered with the partitions they asked for."""
    fetches = Fetches.of(batch)
    if fetches is None:
        return
    yield begun(batch, fetches)
    if fetches.answered is None:
        return
    asked, told = (rows.where(fetches.answered_in_full(batch, rows)) for rows in (fetches.asked, fetches.told))
    pair_asked, pair_told = paired(batch, asked), paired(batch, told)
    for rows, there, others, what in ((asked, pair_asked, pair_told, MISSING), (told, pair_told, pair_asked, UNASKED)):
        key = [*who(batch, rows.message), constant(what, len(rows.message))]
        yield Rows("fetch_odd", key, rows.message).where(~np.isin(there, others))


def begun(batch: Batch, fetches: "Fetches") -> Rows:
    """Since when each connection fetches in a session, and in one that begins on it; the earliest is the greatest."""
    message = fetches.header.message
    ts_ns = batch.exchanges.ts_ns[message]
    full = fetches.header["session_epoch"] == FULL
    peak = {"any": -ts_ns, "full": np.where(full, -ts_ns, np.iinfo(np.int64).min)}
    rows = Rows("session_begun", connection_key(batch, message), message, peak=peak)
    return rows.where(fetches.in_session(batch, message))


def members(batch: Batch) -> Iterator[Claim]:
    """What clients keep in their sessions, forget and are answered."""
    fetches = Fetches.of(batch)
    if fetches is None:
        return
    requests = fetches.header.message[fetches.in_session(batch, fetches.header.message)]
    for kind, rows in (
        ("session_asks", fetches.asked),
        ("session_forgets", fetches.forgotten),
        ("session_answers", fetches.told),
    ):
        found = rows.where(fetches.in_session(batch, rows.message))
        message = requests if kind == "session_asks" else found.message
        yield from named_sets(batch, kind, message, found)


def named_sets(batch: Batch, kind: str, message: Ints, found: Partitions) -> Iterator[Claim]:
    def values(rows: Ints) -> list[Any]:
        if kind == "session_asks":
            return [1] * len(rows)
        seen = batch.sightings.of(found.message[rows])
        inside = zip(seen, found.label.at(rows), found.number[rows].tolist(), strict=True)
        return [[*one, str(label), number] for one, label, number in inside]

    rows, inside = (Rows(kind, who(batch, at), at) for at in (message, found.message))
    yield from sets(rows, inside, found.hashes, batch.sightings, values)


@dataclass(frozen=True)
class Fetches:
    """The fetches of a batch with their answers."""

    header: Table
    answered: Table | None
    asked: Partitions
    forgotten: Partitions
    told: Partitions

    @classmethod
    def of(cls, batch: Batch) -> "Fetches | None":
        tables, answers = batch.tables("Fetch", "request"), batch.tables("Fetch", "response")
        if not tables:
            return None
        forgotten = tables["forgotten_topics_data"]
        numbers, offsets = forgotten["partitions"].flat()
        row = np.repeat(np.arange(len(forgotten)), np.diff(offsets))
        topics, told = tables["topics"], nothing()
        asked = listed(topics, tables["topics.partitions"], "partition")
        if answers:
            told = listed(answers["responses"], answers["responses.partitions"], "partition_index")
        gone = Partitions(forgotten.message[row], label_of(forgotten, "topic").take(row), numbers)
        return cls(tables[""], answers[""] if answers else None, asked, gone, told)

    def of_request(self, batch: Batch, message: Ints, column: str, absent: int) -> Ints:
        """A column of the request of messages of either side."""
        return value_per(batch.partner(message, REQUEST), self.header, column, absent)

    def in_session(self, batch: Batch, message: Ints) -> NDArray[np.bool_]:
        """Fetches of clients that keep a session, or begin one."""
        followed = self.of_request(batch, message, "replica_id", 0) >= 0
        followed |= self.of_request(batch, message, "replica_state.replica_id", 0) >= 0
        return ~followed & (self.of_request(batch, message, "session_epoch", SESSIONLESS) >= FULL)

    def answered_in_full(self, batch: Batch, rows: Partitions) -> NDArray[np.bool_]:
        """Of full fetches, in a session or not, that were answered without an error and without being throttled."""
        assert self.answered is not None
        message = rows.message
        answer = batch.partner(message, RESPONSE)
        good = value_per(answer, self.answered, "error_code", absent=-1) == 0
        free = value_per(answer, self.answered, "throttle_time_ms", absent=1) == 0
        full = self.of_request(batch, message, "session_epoch", absent=1) <= FULL
        whole: NDArray[np.bool_] = good & free & full & (batch.version(message) >= WITH_ERROR)
        return whole


def nothing() -> Partitions:
    none = np.zeros(0, np.int64)
    return Partitions(none, Column(none, [None]), none)


def listed(topics: Table, partitions: Table, number: str) -> Partitions:
    return Partitions(partitions.message, label_of(topics, "topic").take(partitions.parent), partitions[number])


def paired(batch: Batch, rows: Partitions) -> Hashes:
    """Partitions as parts of their exchange."""
    return of_partition(rows.hashes, batch.exchange[rows.message])
