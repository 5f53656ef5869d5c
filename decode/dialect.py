"""Which dialect a message is in, where nobody says.

    decoded = read(messages, connection)                     # connection[i]: any number that is the same for one peer
    decoded = read(messages, connection, "kip516-draft")     # said: no detection
    decoded.dialect[i]                                       # what each message was read by

Knows the order of trying and what makes a reading plausible. Shipped layouts come first; what they refuse is tried as
the layout before a change in place, then as a draft; one peer does not mix, so a draft that reads one message of a
connection is tried on all of it. Refuses to know what follows from a dialect.
Rule: a draft is believed only if it reads the whole message and what it reads is plausible; where a shipped reading is
just as good, nothing is switched: `id_tags` finds what such messages carry.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from decode.columns import tables
from decode.message import EVERYTHING, Status, decode, only
from decode.program import Dialect, programs
from decode.texts import Bytes, Lists, Text, uuids
from decode.wire import REQUEST, RESPONSE, SIDES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from decode.columns import Table
    from decode.message import Decoded, Projection
    from decode.wire import Ints, Messages

__all__ = ["AUTO", "DIALECTS", "ID_IS_AN_EXTRA_TAG", "id_tags", "plausible", "read"]

AUTO = "auto"
DIALECTS = {dialect.label: dialect for dialect in Dialect}
CHANGED = (Dialect.KAFKA_CHANGED, Dialect.KAFKA_CHANGED_TWICE)
DRAFTS = (Dialect.KIP516_DRAFT, Dialect.KIP516_DRAFT_LITERAL, Dialect.KIP516_DRAFT_INLINE, Dialect.KIP4_DRAFT)

# Read as flexible, these drafts are the shipped bytes and one unknown tag in each row of this table: a shipped decoder
# reads them without harm.
ID_IS_AN_EXTRA_TAG = {
    (5, REQUEST): "topics", (5, RESPONSE): "partition_errors",
    (1, RESPONSE): "responses",
    (2, REQUEST): "topics", (2, RESPONSE): "topics",
    (23, REQUEST): "topics", (23, RESPONSE): "topics",
}  # fmt: skip
ID_BYTES = 16
BOUNDS = {
    "epoch": (-1, None), "offset": (-1, None), "partition": (0, 1_000_000), "partition_index": (0, 1_000_000),
    "max_bytes": (0, None), "partition_max_bytes": (0, None),
}  # fmt: skip
LONGEST_TOPIC = 249
LEGAL = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def read(
    messages: Messages, connection: NDArray[np.integer], dialect: str = AUTO, projection: Projection = EVERYTHING
) -> Decoded:
    """Decodes a batch in the dialect said, or in the one that each connection is found to speak."""
    if dialect != AUTO:
        return decode(messages, projection, DIALECTS[dialect])
    decoded = decode(messages, projection)
    doubted = (decoded.status >= Status.TRUNCATED) | _implausible(messages, decoded)
    if not doubted.any():
        return decoded
    found = _found(messages, np.flatnonzero(doubted))
    spoken = _spoken(found, connection)
    tried = np.where(found == Dialect.KAFKA, spoken, found).astype(np.int8)
    if not tried.any():
        return decoded
    again = decode(messages, projection, tried)
    worse = again.status != Status.OK
    return decode(messages, projection, np.where(worse, Dialect.KAFKA, tried)) if (worse & (tried > 0)).any() else again


def _implausible(messages: Messages, decoded: Decoded) -> NDArray[np.bool_]:
    """Read as shipped although a draft reads it too, in other bytes, and reads as nonsense."""
    rows = _drafted(messages, decoded)
    taken = messages.take(rows)
    both = np.zeros(len(rows), np.bool_)
    for dialect in DRAFTS:  # what was shipped is refused by a draft in its first bytes: cheap
        other = decode(taken, _status_only(), dialect)
        both |= (other.status == Status.OK) & (other.dialect == dialect)
    rows = rows[both]
    strange = np.zeros(len(messages), np.bool_)
    strange[rows] = ~plausible(decode(messages.take(rows)))
    return strange


def _drafted(messages: Messages, decoded: Decoded) -> Ints:
    """Messages read as shipped of whose version a draft has a layout that is more than one tag."""
    entries = programs().entries
    inside = (messages.key >= 0) & (messages.version >= 0) & (decoded.status == Status.OK)
    inside &= (messages.key < entries.shape[2]) & (messages.version < entries.shape[3])
    for key, side in ID_IS_AN_EXTRA_TAG:
        inside &= (messages.key != key) | (messages.side != side)
    rows = np.flatnonzero(inside)
    at = messages.side[rows], messages.key[rows], messages.version[rows]
    drafted: Ints = rows[(entries[Dialect.KIP516_DRAFT][at] >= 0) & (entries[Dialect.KAFKA][at] >= 0)]
    return drafted


@cache
def _status_only() -> Projection:
    return only({})


def _found(messages: Messages, rows: Ints) -> NDArray[np.int8]:
    """By message the first dialect that reads it plausibly; KAFKA where none does."""
    found = np.full(len(messages), Dialect.KAFKA, np.int8)
    for dialect in (*CHANGED, *DRAFTS):
        rows = rows[found[rows] == Dialect.KAFKA]
        decoded = decode(messages.take(rows), EVERYTHING, dialect)
        good = (decoded.status == Status.OK) & (decoded.dialect == dialect)
        if good.any() and dialect in DRAFTS:
            good &= plausible(decoded)
        found[rows[good]] = dialect
    return found


def _spoken(found: NDArray[np.int8], connection: NDArray[np.integer]) -> NDArray[np.int8]:
    """By message the draft that its connection was found to speak most; KAFKA where none was."""
    _, peer = np.unique(connection, return_inverse=True)
    votes = np.zeros((int(peer.max(initial=-1)) + 1, len(Dialect)), np.int64)
    drafts = np.isin(found, DRAFTS)
    np.add.at(votes, (peer[drafts], found[drafts]), 1)
    return np.where(votes.any(axis=1), votes.argmax(axis=1), Dialect.KAFKA)[peer].astype(np.int8)


def plausible(decoded: Decoded) -> NDArray[np.bool_]:
    """Whether a message's values are such as Kafka sends; false too for what was not decoded."""
    good: NDArray[np.bool_] = decoded.status == Status.OK
    messages = decoded.messages
    for key, side in set(zip(messages.key[good].tolist(), messages.side[good].tolist(), strict=True)):
        for path, table in tables(decoded, key, SIDES[side]).items():
            if path.endswith("_unknown_tagged_fields"):
                good[table.message] = False
                continue
            for name in table.names:
                good[table.message[_strange(name, table) & table.present(name)]] = False
    return good


def _strange(name: str, table: Table) -> NDArray[np.bool_]:
    """Rows of a column that no broker or client would have sent."""
    last = name.rpartition(".")[2]
    column = table[name]
    none = np.zeros(len(table), np.bool_)
    if isinstance(column, Text):
        return _no_topic(column) if last in {"topic", "name", "topic_name"} else none
    if isinstance(column, Lists | Bytes) or column.ndim != 1:
        return none
    lowest, highest = BOUNDS.get(last.rpartition("_")[2] if last.endswith(("epoch", "offset")) else last, (None, None))
    below = none if lowest is None else column < lowest
    above = none if highest is None else column > highest
    strange: NDArray[np.bool_] = below | above
    return strange


def _no_topic(column: Text) -> NDArray[np.bool_]:
    codes, unique = column.codes()
    strange = [not 0 < len(name) <= LONGEST_TOPIC or not LEGAL.issuperset(name) for name in unique]
    flags: NDArray[np.bool_] = np.array([*strange, False], np.bool_)[codes]
    return flags


def id_tags(tags: Table) -> tuple[Ints, NDArray[np.uint8]]:
    """Rows of a table of unknown tags that may be a draft's topic id, and the ids."""
    data: Bytes = tags["data"]
    rows = np.flatnonzero((data.length == ID_BYTES) & (data.at >= 0))
    return rows, uuids(data.messages.data, data.at[rows])
