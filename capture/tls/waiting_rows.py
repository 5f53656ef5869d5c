"""Rows that wait together, as a table and as the columns that compiled code reads.

Knows: which rows came together, how many of them have left, and the least offset that any of them has in a direction.
Refuses to know: for what a row waits (row_places.py), when it leaves (decryption.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wirecheck.capture import frames
from wirecheck.capture.tls.row_places import Columns, Known, Payloads, first_waiting, plain_rows
from wirecheck.capture.trim.pending_rows import array, vector

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wirecheck.capture.tls.row_places import PlainRows
    from wirecheck.decode.connection.places import Placed
    from wirecheck.decode.connection.segments import Segments


class Batch:
    """Rows that came together; `taken` of them have left. Marks have no segments, and wait for nothing."""

    def __init__(self, rows: pa.RecordBatch, segs: Segments | None, placed: Placed | None) -> None:
        self.rows, self.taken = rows, 0
        self.bytes = int(rows.column("payload_len").to_numpy().sum())
        self.columns: Columns | None = None
        self.oldest: dict[int, int] = {}
        """Of each direction (twice the connection's number, and its side) the least offset of a payload."""
        self.connections: set[int] = set()
        """Numbers of those that rows are of."""
        if segs is not None and placed is not None:
            self.columns = _columns(segs, placed)
            first, data = segs.kept_bytes()
            self._payloads = Payloads(data, vector(segs.payload_at - first), vector(segs.left_at))
            self.oldest, self.connections = _oldest(placed), set(np.unique(placed.serial).tolist())

    @property
    def oldest_ns(self) -> int:
        return int(self.rows.column("ts_ns").to_numpy()[self.taken :].min(initial=frames.LATEST_NS))

    def ready(self, known: dict[int, Known]) -> int:
        """The first row that waits."""
        if self.columns is None or not known:
            return len(self.rows)
        return first_waiting(self.columns, self.taken, known)

    def take(self, upto: int, known: dict[int, Known]) -> pa.RecordBatch:
        """The rows up to this one that have not left."""
        first, self.taken = self.taken, upto
        rows = self.rows.slice(first, upto - first)
        if self.columns is None or not known:
            return rows
        made = plain_rows(self.columns, self._payloads, first, upto, known)
        return _replaced(rows, made) if array(made.is_plain).any() else rows


def _replaced(rows: pa.RecordBatch, made: PlainRows) -> pa.RecordBatch:
    """The rows with the plain bytes in place of the encrypted ones."""
    number, is_plain = array(made.row), array(made.is_plain).astype(np.bool_)
    if len(number) != len(rows):  # some have a hole in their middle
        rows = rows.take(pa.array(number))
    columns = dict(zip(rows.schema.names, rows.columns, strict=True))
    for name, values in (
        ("tcp_seq", made.seq), ("tcp_ack", made.ack), ("tcp_flags", made.flags), ("payload_len", made.size),
    ):  # fmt: skip
        column = columns[name]
        columns[name] = pa.array(np.where(is_plain, array(values), column.to_numpy()), column.type)
    mask = pa.array(is_plain)
    columns["payload"] = pc.replace_with_mask(columns["payload"], mask, _payloads(made))
    columns["left_out"] = pc.if_else(mask, pa.scalar([], columns["left_out"].type), columns["left_out"])
    columns["decrypted"] = pc.or_(columns["decrypted"], mask)
    return pa.RecordBatch.from_arrays(list(columns.values()), schema=rows.schema)


def _payloads(made: PlainRows) -> pa.BinaryArray:
    size = array(made.size)[array(made.is_plain) != 0]
    at = np.zeros(len(size) + 1, np.int32)
    np.cumsum(size, out=at[1:])
    buffers = [None, pa.py_buffer(at), pa.py_buffer(b"".join(made.pieces.data))]
    return pa.BinaryArray.from_buffers(pa.binary(), len(size), buffers)


def oldest_offsets(batches: Iterable[Batch]) -> dict[int, int]:
    """Of each direction that any of their rows carries bytes of, the least offset of these."""
    waiting: dict[int, int] = {}
    for batch in batches:
        for name, offset in batch.oldest.items():
            waiting[name] = min(offset, waiting.get(name, offset))
    return waiting


def _columns(segs: Segments, placed: Placed) -> Columns:
    where = vector(placed.serial), vector(placed.direction), vector(placed.offset)
    columns = Columns(where, (vector(segs.seq), vector(segs.ack), vector(segs.flags)))
    columns.carry(vector(segs.payload_len))
    return columns


def _oldest(placed: Placed) -> dict[int, int]:
    there = np.flatnonzero((placed.serial >= 0) & (placed.offset >= 0))
    if not len(there):
        return {}
    stream = 2 * placed.serial[there] + placed.direction[there]
    order = np.lexsort((placed.offset[there], stream))
    names, first = np.unique(stream[order], return_index=True)
    return dict(zip(names.tolist(), placed.offset[there][order][first].tolist(), strict=True))
