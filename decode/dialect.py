"""Which dialect a message is in, message by message.

    decoded = read(messages)                    # as shipped
    decoded = read(messages, ["kip516-draft"])  # what is not read as shipped is read as the draft
    decoded.dialect[i]                          # what each message was read by
    suggested(messages)                         # by message the draft that would read it, of those not named

Order: shipped layouts, then the layout before a change in place, then the named drafts; then a request as a broker
reads it, which is more than Kafka's writers write. A message that only an unnamed draft could read is undecoded, never
malformed; the draft is suggested if it reads the whole message plausibly.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from wirecheck.decode.columns import tables
from wirecheck.decode.layouts.layout import SIDES
from wirecheck.decode.layouts.program import Dialect, programs
from wirecheck.decode.message import EVERYTHING, LENIENT, Status, as_brokers, decode, only
from wirecheck.decode.texts import Bytes, Lists, Text, uuids
from wirecheck.decode.wire import REQUEST, RESPONSE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from wirecheck.decode.columns import Table
    from wirecheck.decode.connection.exchanges import Exchanges
    from wirecheck.decode.message import Decoded, Projection
    from wirecheck.decode.wire import Ints, Messages

SHIPPED = "kafka"
CHANGED = (Dialect.KAFKA_CHANGED, Dialect.KAFKA_CHANGED_TWICE)
KIP516 = (Dialect.KIP516_DRAFT, Dialect.KIP516_DRAFT_LITERAL, Dialect.KIP516_DRAFT_INLINE)
DRAFTS = (*KIP516, Dialect.KIP4_DRAFT)
# What a person may name, and the readings it adds to the shipped ones, in the order of trying.
DIALECTS: dict[str, tuple[Dialect, ...]] = {SHIPPED: (), "kip516-draft": KIP516, "kip4-draft": (Dialect.KIP4_DRAFT,)}
NAMES = {reading: name for name, readings in DIALECTS.items() for reading in readings}
"""By reading of a draft the dialect that a person names."""

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
    messages: Messages,
    dialects: Iterable[str] = (),
    projection: Projection = EVERYTHING,
    lenient: Sequence[int] = (REQUEST,),
) -> Decoded:
    """Decodes a batch, each message by the first reading that takes it: shipped ones, then those of the named dialects.
    Bytes that a release reads but for a tag, where a named dialect has its topic ID, are that dialect's. `lenient`:
    sides of which malformed messages are read as Kafka's readers read them, where they do.
    """
    named = [reading for dialect in dialects for reading in DIALECTS[dialect]]
    decoded = _first_that_reads(messages, named, projection)
    refused = decoded.status >= Status.TRUNCATED
    if not refused.any():
        return decoded
    doubtful = refused & _drafted(messages, [draft for draft in DRAFTS if draft not in named])
    rows = np.flatnonzero(np.isin(decoded.status, LENIENT) & np.isin(messages.side, lenient))
    drafts = rows[doubtful[rows]]
    of_drafts = [draft is not None for draft in suggested(messages.take(drafts))] if len(drafts) else []
    decoded = as_brokers(decoded, projection, np.setdiff1d(rows, drafts[np.array(of_drafts, np.bool_)]))
    doubtful &= decoded.status >= Status.TRUNCATED
    if not doubtful.any():
        return decoded
    return replace(decoded, status=np.where(doubtful, Status.POSSIBLY_A_DRAFT, decoded.status).astype(np.int8))


def read_exchanges(exchanges: Exchanges, dialects: Iterable[str] = (), projection: Projection = EVERYTHING) -> Decoded:
    """Decodes the messages of exchanges. A malformed request counts as read only if its answer reads as one to it."""
    return confirmed(read(exchanges.messages, dialects, projection), exchanges)


def confirmed(decoded: Decoded, exchanges: Exchanges) -> Decoded:
    """The same batch without the malformed requests that no answer confirms: each may be another message than its
    header says, and then anything may be in the place of a name.
    """
    odd = decoded.deviation != Status.OK
    if not odd.any():
        return decoded
    request_of = exchanges.request_of
    answers = np.flatnonzero((request_of >= 0) & (decoded.status == Status.OK) & ~odd)
    lost = odd & (decoded.messages.side == REQUEST)
    lost[request_of[answers]] = False
    status = np.where(lost, decoded.deviation, decoded.status).astype(np.int8)
    return replace(decoded, status=status, deviation=np.where(lost, Status.OK, decoded.deviation).astype(np.int8))


def read_as_any(messages: Messages, projection: Projection = EVERYTHING) -> Decoded:
    """Decodes a batch, each message by any reading that takes it: for what holds whichever is right."""
    decoded = decode(messages, projection)
    return _reread(decoded, np.flatnonzero(decoded.status >= Status.TRUNCATED), (*CHANGED, *DRAFTS), projection)


def suggested(messages: Messages) -> list[str | None]:
    """By message the name of the draft that reads it, where one does; of messages that are not read as shipped."""
    found: list[str | None] = [None] * len(messages)
    rows = np.arange(len(messages))
    for draft in DRAFTS:
        decoded = decode(messages.take(rows), EVERYTHING, draft)
        good = plausible(decoded) & (decoded.dialect == draft)
        for row in rows[good].tolist():
            found[row] = NAMES[draft]
        rows = rows[~good]
    return found


def _first_that_reads(messages: Messages, named: Sequence[Dialect], projection: Projection) -> Decoded:
    """By message, the first layout that decodes it, the shipped one first. If none does, the status is that of the
    reading that comes furthest.
    """
    decoded = decode(messages, projection)
    hidden = bool(named) & (decoded.status == Status.LEFT_OUT)  # a draft may have a tag there, which was redacted
    refused = np.flatnonzero((decoded.status >= Status.TRUNCATED) | hidden | _with_id_tags(messages, decoded, named))
    return _reread(decoded, refused, (*CHANGED, *named), projection, named)


def _reread(
    decoded: Decoded, refused: Ints, others: Sequence[Dialect], projection: Projection, named: Sequence[Dialect] = ()
) -> Decoded:
    """These messages by the first of the others that reads them, where one does; else by that of the named ones that
    comes further than the shipped one.
    """
    messages = decoded.messages
    tried = np.full(len(messages), Dialect.KAFKA, np.int8)
    furthest = np.where(decoded.status >= Status.TRUNCATED, decoded.error_at, END)
    for dialect in others if len(refused) else ():
        other = decode(messages.take(refused), _status_only(), dialect)
        own = other.dialect == dialect
        good = own & (other.status == Status.OK)
        tried[refused[good]] = dialect
        if dialect in named:
            far = own & ~good & (other.error_at > furthest[refused])
            tried[refused[far]], furthest[refused[far]] = dialect, other.error_at[far]
        refused = refused[~good]
    return decode(messages, projection, tried) if tried.any() else decoded


END = np.iinfo(np.int64).max
"""As the place of an error: there was none."""


def _with_id_tags(messages: Messages, decoded: Decoded, dialects: Sequence[Dialect]) -> NDArray[np.bool_]:
    """Messages read as shipped, with a tag that these dialects have for the topic ID."""
    found = np.zeros(len(messages), np.bool_)
    if Dialect.KIP516_DRAFT not in dialects:
        return found
    kinds = [key << 1 | side for key, side in ID_IS_AN_EXTRA_TAG]
    rows = np.flatnonzero((decoded.status == Status.OK) & np.isin(messages.key << 1 | messages.side, kinds))
    whole = decode(messages.take(rows))
    for (key, side), path in ID_IS_AN_EXTRA_TAG.items():
        if ((whole.messages.key == key) & (whole.messages.side == side)).any():
            tags = tables(whole, key, SIDES[side])[f"{path}._unknown_tagged_fields"]
            found[rows[tags.message[id_tags(tags)[0]]]] = True
    return found


def _drafted(messages: Messages, drafts: Sequence[Dialect]) -> NDArray[np.bool_]:
    """Whether one of these drafts has a layout for a message's side, key and version."""
    entries = programs().entries
    keys, versions = entries.shape[2:]
    key, version = messages.key, messages.version
    found: NDArray[np.bool_] = (key >= 0) & (key < keys) & (version >= 0) & (version < versions)
    rows = np.flatnonzero(found)
    at = messages.side[rows], key[rows], version[rows]
    found[rows] = np.any([entries[draft][at] >= 0 for draft in drafts], axis=0)
    return found


@cache
def _status_only() -> Projection:
    return only({})


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
