"""The metadata log in messages: its records are kept, the secrets in them are not.

Knows: which answers carry it, that a Fetch answer's records are whole batches and a snapshot's chunks one stream.
Refuses to know: what is secret in a record (decode/log/secrets.py).
Rule: behind bytes that were not seen, and in chunks out of order, everything is secret.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from wirecheck.decode.columns import tables
from wirecheck.decode.log.metadata_log import TOPIC_ID, TOPIC_NAME
from wirecheck.decode.log.secrets import LogSecrets
from wirecheck.decode.message import Projection, decode, only
from wirecheck.decode.secrecy import RECORDS, Spans
from wirecheck.decode.wire import RESPONSE, wire_offset

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from wirecheck.decode.holes import Field
    from wirecheck.decode.message import Decoded
    from wirecheck.decode.wire import Ints, Messages

Cuts: TypeAlias = tuple[int, int, list[tuple[int, int]]]  # message, offset of the records, secret spans in them

FETCH, FETCH_SNAPSHOT = 1, 59
_NAME = TOPIC_NAME.encode()
FIRST_BY_ID = 13  # version of Fetch: topics have names before, ids from there on (KIP-516)
MOST_SNAPSHOTS = 64  # streams of chunks followed at once


@dataclass(slots=True)
class LogCuts:
    """Over one capture: chunks of a snapshot come one by one."""

    _snapshots: dict[tuple[int, int, int], tuple[int, LogSecrets]] = field(default_factory=dict)
    """By connection, end offset and epoch: the position of the next chunk, and the walk up to there."""

    def cuts(self, messages: Messages, serial: Ints) -> list[Cuts]:
        """All of the log in these answers."""
        decoded = decode(messages, _log_projection())
        return [*_fetched(decoded), *self._chunks(decoded, serial)]

    def _chunks(self, decoded: Decoded, serial: Ints) -> list[Cuts]:
        """Chunks of snapshots as (message, offset, secret spans); they are one stream, position by position."""
        found: list[Cuts] = []
        every = tables(decoded, "FetchSnapshot", "response")
        table, names = every["topics.partitions"], every["topics"]["name"].strings() if len(every["topics"]) else []
        for row in range(len(table)):
            if names[table.parent[row]] != TOPIC_NAME:
                continue
            message, position = int(table.message[row]), int(table["position"][row])
            column = table["unaligned_records"]
            chunk = column.field(row)
            if chunk is None or not len(chunk):
                continue
            snapshot = int(table["snapshot_id.end_offset"][row]), int(table["snapshot_id.epoch"][row])
            name = (int(serial[message]), *snapshot)
            expected, secrets = self._snapshots.pop(name, (0, LogSecrets()))
            if position == 0:
                expected, secrets = 0, LogSecrets()
            cuts = _secret(chunk, secrets) if position == expected else [(0, len(chunk))]
            if position == expected:
                self._snapshots[name] = position + len(chunk), secrets
            else:
                self._snapshots[name] = expected, secrets
            if len(self._snapshots) > MOST_SNAPSHOTS:
                del self._snapshots[next(iter(self._snapshots))]
            found.append((message, _offset(decoded, message, int(column.at[row])), cuts))
        return found


def _fetched(decoded: Decoded) -> list[Cuts]:
    """The metadata log in answers to raft's Fetch as (message, offset, secret spans)."""
    every = tables(decoded, "Fetch", "response")
    table, topics = every["responses.partitions"], every["responses"]
    if not len(table):
        return []
    names, ids = topics["topic"].strings(), topics["topic_id"]
    found = []
    for row in range(len(table)):
        topic = int(table.parent[row])
        if names[topic] != TOPIC_NAME and bytes(ids[topic]) != TOPIC_ID:
            continue
        records = table["records"].field(row)
        if records is not None and len(records):
            message = int(table.message[row])
            place = _offset(decoded, message, int(table["records"].at[row]))
            found.append((message, place, _secret(records, LogSecrets())))
    return found


def _secret(records: Field, walk: LogSecrets) -> list[tuple[int, int]]:
    """Secret spans of a piece of the log; behind bytes that were not seen everything is."""
    seen = int(records.holes[0, 0]) if len(records.holes) else len(records)
    cuts = walk.feed(records.bytes(0, seen))
    if seen < len(records):
        walk.lost = True
        cuts.append((seen, len(records) - seen))
    return cuts


def _offset(decoded: Decoded, message: int, place: int) -> int:
    place = place if place >= 0 else -1 - place
    return int(wire_offset(decoded.messages, np.array([message]), np.array([place]))[0])


@cache
def _log_projection() -> Projection:
    return only({
        ("Fetch", "response"): ["responses.topic", "responses.topic_id", "responses.partitions.records"],
        ("FetchSnapshot", "response"): [
            "topics.name", "topics.partitions.position", "topics.partitions.unaligned_records",
            "topics.partitions.snapshot_id.end_offset", "topics.partitions.snapshot_id.epoch",
        ],
    })  # fmt: skip


def carries_log(messages: Messages, spans: Spans) -> Ints:
    """Messages that may carry the metadata log: its name or id stands before their first records."""
    records = np.flatnonzero(spans.kind == RECORDS)
    rows: Ints = spans.message[records]
    may = (messages.side[rows] == RESPONSE) & ((messages.key[rows] == FETCH) | (messages.key[rows] == FETCH_SNAPSHOT))
    may[1:] &= rows[1:] != rows[:-1]
    rows, first = rows[may], spans.offset[records[may]]
    end = np.minimum(messages.at[rows] + first, messages.at[rows + 1])
    by_id = (messages.key[rows] == FETCH) & (messages.version[rows] >= FIRST_BY_ID)
    data = messages.data.tobytes()
    says = np.where(by_id, _says(data, TOPIC_ID, messages.at[rows], end), _says(data, _NAME, messages.at[rows], end))
    picked: Ints = rows[says]
    return picked


def _says(data: bytes, word: bytes, begin: Ints, end: Ints) -> NDArray[np.bool_]:
    """Whether a word stands between these places; there are few of it, if any."""
    found = [-1]
    while (at := data.find(word, found[-1] + 1)) >= 0:
        found.append(at)
    places = np.array([*found[1:], len(data)], np.int64)
    first: Ints = places[np.searchsorted(places, begin)]
    return first <= end - len(word)
