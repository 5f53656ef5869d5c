"""The metadata log in messages: in answers to raft's Fetch as a whole, in those to FetchSnapshot in pieces.

A snapshot is mapped when all of its pieces are there, since a record may begin in one and end in the next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from wirecheck.capture.anonymize.log_names import BLANKED, renamed
from wirecheck.decode.columns import tables
from wirecheck.decode.holes import Field
from wirecheck.decode.log.metadata_log import TOPIC_ID, TOPIC_NAME
from wirecheck.decode.wire import RESPONSE, wire_offset

if TYPE_CHECKING:
    from wirecheck.capture.anonymize.fields import Fields
    from wirecheck.decode.message import Decoded
    from wirecheck.decode.wire import Ints

FETCH, FETCH_SNAPSHOT = 1, 59


class Piece(NamedTuple):
    """Of the log, in a message."""

    body: bytearray
    offset: int
    field: Field


class LogInMessages:
    """Finds the log in messages, and writes it under other names."""

    def __init__(self, fields: Fields) -> None:
        self._fields = fields
        self._found: list[tuple[int, int, Field]] = []
        self._chunks: list[tuple[int, int, Field, int, tuple[int, int]]] = []
        self._snapshots: dict[tuple[int, int, int], dict[int, list[Piece]]] = {}
        """By connection, end offset and epoch; by position. A piece may be fetched twice."""

    def look(self, rows: Ints, decoded: Decoded) -> None:
        """What of these messages is of the log; given again to `write`."""
        answers = decoded.messages.side == RESPONSE
        if (answers & (decoded.messages.key == FETCH)).any():
            self._look_at_fetch(rows, decoded)
        if (answers & (decoded.messages.key == FETCH_SNAPSHOT)).any():
            self._look_at_snapshots(rows, decoded)

    def _look_at_fetch(self, rows: Ints, decoded: Decoded) -> None:
        every = tables(decoded, "Fetch", "response")
        table, topics = every["responses.partitions"], every["responses"]
        if not len(table):
            return
        names, ids, column = topics["topic"].strings(), topics["topic_id"], table["records"]
        for row in range(len(table)):
            topic = int(table.parent[row])
            records = column.field(row)
            of_log = bytes(ids[topic]) == TOPIC_ID or names[topic] == TOPIC_NAME
            if of_log and records is not None and len(records):
                message = int(table.message[row])
                self._found.append((int(rows[message]), _offset(decoded, message, int(column.at[row])), records))

    def _look_at_snapshots(self, rows: Ints, decoded: Decoded) -> None:
        every = tables(decoded, "FetchSnapshot", "response")
        table = every["topics.partitions"]
        names = every["topics"]["name"].strings() if len(every["topics"]) else []
        column = table["unaligned_records"]
        for row in range(len(table)):
            chunk = column.field(row)
            if names[table.parent[row]] == TOPIC_NAME and chunk is not None and len(chunk):
                message = int(table.message[row])
                snapshot = int(table["snapshot_id.end_offset"][row]), int(table["snapshot_id.epoch"][row])
                place = _offset(decoded, message, int(column.at[row]))
                self._chunks.append((int(rows[message]), place, chunk, int(table["position"][row]), snapshot))

    def write(self, bodies: list[bytearray], serial: Ints) -> None:
        """Into the messages that were looked at: the log of Fetch now, of snapshots zeros until they are whole."""
        for row, offset, field in self._found:
            bodies[row][offset : offset + len(field)] = renamed(field, self._fields)
        for row, offset, field, position, snapshot in self._chunks:
            bodies[row][offset : offset + len(field)] = bytes(len(field))
            pieces = self._snapshots.setdefault((int(serial[row]), *snapshot), {})
            pieces.setdefault(position, []).append(Piece(bodies[row], offset, field))
        self._found, self._chunks = [], []

    def finish(self) -> None:
        """Nothing more comes: snapshots as far as their pieces follow each other from the beginning."""
        for by_position in self._snapshots.values():
            joined: list[tuple[int, Piece]] = []
            end = 0
            while end in by_position:
                joined += [(end, piece) for piece in by_position[end]]
                end += max(len(piece.field) for piece in by_position[end])
            if joined:
                self._write_joined(joined, end)
            behind = [p for at, pieces in by_position.items() if at >= end for p in pieces]
            self._fields.zeroed[BLANKED] += sum(len(piece.field) for piece in behind)

    def _write_joined(self, joined: list[tuple[int, Piece]], size: int) -> None:
        data, hidden = np.zeros(size, np.uint8), np.zeros(size + 2, np.bool_)
        for at, piece in joined:
            data[at : at + len(piece.field)] = piece.field.data
            for begin, end in piece.field.holes.tolist():
                hidden[at + begin + 1 : at + end + 1] = True
        holes = np.flatnonzero(hidden[1:] != hidden[:-1]).reshape(-1, 2)
        new = renamed(Field(data, holes.astype(np.int64)), self._fields)
        for at, (body, offset, field) in joined:
            body[offset : offset + len(field)] = new[at : at + len(field)]


def _offset(decoded: Decoded, message: int, place: int) -> int:
    place = place if place >= 0 else -1 - place
    return int(wire_offset(decoded.messages, np.array([message]), np.array([place]))[0])
