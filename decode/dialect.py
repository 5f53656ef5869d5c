"""Which dialect a message is in, where nobody says.

    spoken = hear(messages, peer, turn, heard)               # the draft that each message's peer speaks by then
    decoded = read(messages, spoken)
    decoded = read(messages, spoken, "kip516-draft")         # said: no detection
    decoded.dialect[i]                                       # what each message was read by

Knows the order of trying and what makes a reading plausible. Shipped layouts come first; what they refuse is tried as
the layout before a change in place, then as a draft; one peer does not mix, so from the exchange on in which a draft
first reads a message that a release does not, it is tried on all that the peer says: the draft's answer to a Fetch is
told by its questions alone. Refuses to know what follows from a dialect.
Rule: a draft is believed only if it reads the whole message and what it reads is plausible; where a shipped reading is
just as good, nothing is switched: `id_tags` finds what such messages carry. What is heard does not depend on how a
connection is cut into batches.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from wirecheck.decode.columns import tables
from wirecheck.decode.layouts.program import Dialect, programs
from wirecheck.decode.message import EVERYTHING, Status, decode, only
from wirecheck.decode.texts import Bytes, Lists, Text, uuids
from wirecheck.decode.wire import REQUEST, RESPONSE, SIDES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from wirecheck.decode.columns import Table
    from wirecheck.decode.message import Decoded, Projection
    from wirecheck.decode.wire import Ints, Messages

__all__ = ["AUTO", "DIALECTS", "ID_IS_AN_EXTRA_TAG", "Heard", "hear", "id_tags", "plausible", "read"]

AUTO = "auto"
CHANGED = (Dialect.KAFKA_CHANGED, Dialect.KAFKA_CHANGED_TWICE)
KIP516 = (Dialect.KIP516_DRAFT, Dialect.KIP516_DRAFT_LITERAL, Dialect.KIP516_DRAFT_INLINE)
DRAFTS = (*KIP516, Dialect.KIP4_DRAFT)
# What a person may say, and the readings it has, in the order of trying.
DIALECTS = {"kafka": (Dialect.KAFKA, *CHANGED), "kip516-draft": KIP516, "kip4-draft": (Dialect.KIP4_DRAFT,)}
MOST_PEERS = 1 << 16  # that are remembered; the oldest are forgotten first

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


Heard = dict[int, int]
"""By peer the draft that it speaks; only of those that do."""


def read(
    messages: Messages, spoken: NDArray[np.integer], dialect: str = AUTO, projection: Projection = EVERYTHING
) -> Decoded:
    """Decodes a batch in the dialect said; else what is refused as shipped as what reads it, the rest as was heard."""
    if dialect != AUTO:
        return _first_that_reads(messages, DIALECTS[dialect], projection)
    decoded = decode(messages, projection)
    found = _found(messages, np.flatnonzero(decoded.status >= Status.TRUNCATED))
    tried = np.where(found == Dialect.KAFKA, spoken, found).astype(np.int8)
    if not tried.any():
        return decoded
    again = decode(messages, projection, tried)
    worse = (again.status != Status.OK) & (tried > Dialect.KAFKA)
    return decode(messages, projection, np.where(worse, Dialect.KAFKA, tried)) if worse.any() else again


def _first_that_reads(messages: Messages, dialects: Sequence[Dialect], projection: Projection) -> Decoded:
    """By message the first of these readings that reads it; where none does, the first says why."""
    decoded = decode(messages, projection, dialects[0])
    refused = np.flatnonzero(decoded.status >= Status.TRUNCATED)
    tried = np.full(len(messages), dialects[0], np.int8)
    for dialect in dialects[1:]:
        other = decode(messages.take(refused), _status_only(), dialect)
        good = (other.status == Status.OK) & (other.dialect == dialect)
        tried[refused[good]] = dialect
        refused = refused[~good]
    return decode(messages, projection, tried) if (tried != dialects[0]).any() else decoded


def hear(messages: Messages, peer: NDArray[np.integer], turn: NDArray[np.integer], heard: Heard) -> NDArray[np.int8]:
    """By message the draft that its peer speaks, KAFKA if none. `heard` is what is known from before, and is added to.

    peer: a number that is the same for one peer, now and later; turn: the place of a message's exchange among the
    others, of the question and its answer alike.
    """
    rows = _telling(messages)
    rows = rows[~np.isin(peer[rows], list(heard))]
    found = _drafts(messages.take(rows)) if len(rows) else np.zeros(0, np.int8)
    rows, found = rows[found > 0], found[found > 0]
    begins: dict[int, int] = {}
    for row in np.argsort(turn[rows], kind="stable").tolist():
        name = int(peer[rows[row]])
        if name not in heard:
            heard[name], begins[name] = int(found[row]), int(turn[rows[row]])
    if not heard:
        return np.zeros(len(messages), np.int8)
    names, index = np.unique(peer, return_inverse=True)
    dialect = np.array([heard.get(name, Dialect.KAFKA) for name in names.tolist()], np.int8)
    begin = np.array([begins.get(name, -1) for name in names.tolist()], np.int64)
    while len(heard) > MOST_PEERS:
        del heard[next(iter(heard))]
    return np.where(turn >= begin[index], dialect[index], Dialect.KAFKA).astype(np.int8)


def _telling(messages: Messages) -> Ints:
    """Messages that can tell a draft."""
    rows = np.flatnonzero(_inside(messages))
    telling: Ints = rows[_tell()[messages.side[rows], messages.key[rows], messages.version[rows]]]
    return telling


@cache
def _tell() -> NDArray[np.bool_]:
    """By side, key and version whether a draft has a layout, but for answers whose question tells as much."""
    drafted: NDArray[np.bool_] = np.any(programs().entries[list(DRAFTS)] >= 0, axis=0)
    for key, side in ID_IS_AN_EXTRA_TAG:
        if side == RESPONSE:
            drafted[side, key] = False
    return drafted


def _inside(messages: Messages) -> NDArray[np.bool_]:
    """Whether key and version are such as any layout may have."""
    keys, versions = programs().entries.shape[2:]
    key, version = messages.key, messages.version
    inside: NDArray[np.bool_] = (key >= 0) & (key < keys) & (version >= 0) & (version < versions)
    return inside


def _drafts(messages: Messages) -> NDArray[np.int8]:
    """By message the draft it is in by itself; KAFKA where a release's layout reads it as well, or nothing does."""
    decoded = decode(messages, _status_only())
    doubted = (decoded.status >= Status.TRUNCATED) | _implausible(messages, decoded)
    found = _found(messages, np.flatnonzero(doubted))
    return np.where(np.isin(found, DRAFTS), found, Dialect.KAFKA).astype(np.int8)


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
    inside = _inside(messages) & (decoded.status == Status.OK)
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
