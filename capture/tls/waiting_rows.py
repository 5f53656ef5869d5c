"""Where the payloads of rows stand: for what a row of a TLS connection waits, and what becomes of it then.

Knows: rows that came together, places of payloads in their directions, sequence numbers that wrap.
Refuses to know: when rows leave (decryption.py), records, keys.
Rule: a row has the plain bytes of its place only if its own bytes are those that were seen there first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from wirecheck.capture import frames
from wirecheck.capture.tls.plain_rows import PlainRow

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from wirecheck.capture.tls.plain_space import PlainSpace, Span
    from wirecheck.capture.tls.record_stream import RecordStream
    from wirecheck.capture.tls.tls_connection import TlsConnection
    from wirecheck.decode.connection.places import Placed
    from wirecheck.decode.connection.segments import Segments

ACK = 16
HALF, WHOLE = 1 << 31, 1 << 32


@dataclass
class Known:
    """A connection that may be TLS, with what rows need to know of it."""

    key: str
    tls: TlsConnection
    base: dict[int, int]
    """By side, the sequence number of offset 0."""


class Batch:
    """Rows that came together; `taken` of them have left."""

    def __init__(self, rows: pa.RecordBatch, segs: Segments | None, placed: Placed | None) -> None:
        self.rows, self.segments, self.placed, self.taken = rows, segs, placed, 0
        self.bytes = int(rows.column("payload_len").to_numpy().sum())

    @property
    def oldest_ns(self) -> int:
        return int(self.rows.column("ts_ns").to_numpy()[self.taken :].min(initial=frames.LATEST_NS))


def oldest_offsets(batches: Iterable[Batch]) -> dict[int, int]:
    """Of each direction (twice the connection's number, and its side) that rows wait in, the least offset of theirs;
    -1 where none of them has one.
    """
    waiting: dict[int, int] = {}
    for batch in batches:
        if batch.placed is None:
            continue
        there = batch.taken + np.flatnonzero(batch.placed.serial[batch.taken :] >= 0)
        stream = 2 * batch.placed.serial[there] + batch.placed.direction[there]
        for name, offset in zip(stream.tolist(), batch.placed.offset[there].tolist(), strict=True):
            waiting.setdefault(name, offset)
            if 0 <= offset < waiting[name] or waiting[name] < 0:
                waiting[name] = offset
    return waiting


def needs(batch: Batch, row: int, known: Known) -> Iterator[tuple[RecordStream, int]]:
    """Up to where directions must be decided before it is known what the row is."""
    segs, placed = batch.segments, batch.placed
    assert segs is not None
    assert placed is not None
    side = int(placed.direction[row])
    stream, other = known.tls.stream(side), known.tls.stream(1 - side)
    if stream is not None and segs.payload_len[row]:
        yield stream, int(placed.offset[row] + segs.payload_len[row])
    if other is not None and segs.flags[row] & ACK and 1 - side in known.base:
        at = _near(int(segs.ack[row]), known.base[1 - side], other.space.decided)
        if at - other.space.decided < HALF >> 1:
            yield other, min(at, other.end)


def plain_row(batch: Batch, row: int, known: Known) -> PlainRow:
    segs, placed = batch.segments, batch.placed
    assert segs is not None
    assert placed is not None
    side, length = int(placed.direction[row]), int(segs.payload_len[row])
    seq, ack = int(segs.seq[row]), int(segs.ack[row])
    mine, other = known.tls.stream(side), known.tls.stream(1 - side)
    if other is not None and segs.flags[row] & ACK and 1 - side in known.base:
        ack = _moved(ack, known.base[1 - side], other.space)
    if mine is None or side not in known.base:
        return PlainRow(seq, ack, (), (), length)
    offset = int(placed.offset[row]) if length else _near(seq, known.base[side], mine.space.decided)
    begin = mine.space.place(offset)
    if not length or offset < 0:
        return PlainRow(seq - offset + begin, ack, (), (), length)
    wire = segs.payload[segs.payload_at[row] : segs.payload_at[row + 1]].tobytes()
    whole = segs.left_at[row] == segs.left_at[row + 1]
    data = mine.space.bytes_of(offset, wire) if whole else None
    if data is None:
        return PlainRow(seq - offset + begin, ack, (), (), mine.space.place(offset + length) - begin)
    spans = mine.space.spans(offset, offset + length)
    return PlainRow(seq - offset + begin, ack, _between(data, spans), spans, length)


def _between(data: memoryview, spans: list[Span]) -> list[memoryview]:
    """The bytes that no span covers."""
    found: list[memoryview] = []
    at = 0
    for span in spans:
        if span.begin > at:
            found.append(data[at : span.begin])
        at = span.begin + span.length
    if at < len(data):
        found.append(data[at:])
    return found


def _near(seq: int, base: int, offset: int) -> int:
    """The offset of a sequence number: the place nearest to this one."""
    return offset + (seq - base - offset + HALF) % WHOLE - HALF


def _moved(seq: int, base: int, space: PlainSpace) -> int:
    """The sequence number of the same place, among plain bytes."""
    offset = _near(seq, base, space.decided)
    return seq - offset + space.place(offset)
