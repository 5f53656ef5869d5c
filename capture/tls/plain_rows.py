"""Rows of the frames table with plain payloads, and the same rows with the places they had on the wire.

Knows: how a row looks while it is trimmed (its payload is the plain bytes alone, its numbers count nothing but them),
and how it looks in a file (numbers and length as on the wire, overhead declared).
Refuses to know: how bytes became plain, which of them are kept, and where they stand (row_places.py).
Rule: what of a row is neither kept nor overhead is left out. Every row that goes one way comes back, in any number.
"""

from __future__ import annotations

from functools import cache
from typing import Any, cast

import numpy as np
import pyarrow as pa
from librt.vecs import vec
from mypy_extensions import i64
from numpy.typing import NDArray

from wirecheck.capture import frames
from wirecheck.capture.tls.row_places import Changed, Spans, left_on_the_wire

Ints = NDArray[np.int64]
WIRE = ("wire_seq", "wire_ack", "wire_len", "wire_overhead")
"""Columns that a row has besides while it is plain; null in one that was never encrypted."""
_SIDE = pa.schema([(WIRE[0], pa.int64()), (WIRE[1], pa.int64()), (WIRE[2], pa.int32()), (WIRE[3], frames.OVERHEAD)])


def plain(rows: pa.RecordBatch, changed: Changed) -> pa.RecordBatch:
    """The rows, those changed as they are now."""
    columns: dict[str, Any] = dict(zip(rows.schema.names, rows.columns, strict=True))
    there = array(changed.row)
    side = [_scattered(columns[name], there) for name in ("tcp_seq", "tcp_ack", "payload_len")]
    side.append(_merged(pa.nulls(len(rows), frames.OVERHEAD), _lists(changed.on_the_wire, frames.OVERHEAD), there))
    for name, values in (("tcp_seq", changed.seq), ("tcp_ack", changed.ack), ("payload_len", changed.length)):
        columns[name] = _put(columns[name], there, array(values))
    columns["payload"] = _merged(columns["payload"], _binary(array(changed.kept), b"".join(changed.pieces)), there)
    for name, spans in (("left_out", changed.left_out), ("overhead", changed.overhead)):
        columns[name] = _merged(columns[name], _lists(spans, rows.schema.field(name).type), there)
    more = [values.cast(field.type) for values, field in zip(side, _SIDE, strict=True)]
    return pa.RecordBatch.from_arrays([*columns.values(), *more], schema=pa.schema([*rows.schema, *_SIDE]))


def on_the_wire(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows that were plain, or some of them, as they go into a file."""
    if WIRE[0] not in rows.schema.names:
        return rows
    columns: dict[str, Any] = dict(zip(rows.schema.names, rows.columns, strict=True))
    before = {name: columns.pop(name) for name in WIRE}
    schema = pa.schema([field for field in rows.schema if field.name not in WIRE])
    there = np.flatnonzero(before["wire_seq"].is_valid().to_numpy(zero_copy_only=False))
    wire = {name: values.take(pa.array(there)) for name, values in before.items()}
    left_out = left_on_the_wire(
        spans_of(columns["left_out"].take(pa.array(there))),
        vector(columns["payload_len"].to_numpy()[there]),
        spans_of(wire["wire_overhead"]),
        vector(wire["wire_len"].to_numpy()),
    )
    for name, values in (("tcp_seq", "wire_seq"), ("tcp_ack", "wire_ack"), ("payload_len", "wire_len")):
        columns[name] = _put(columns[name], there, wire[values].to_numpy())
    columns["left_out"] = _merged(columns["left_out"], _lists(left_out, schema.field("left_out").type), there)
    columns["overhead"] = _merged(columns["overhead"], wire["wire_overhead"], there)
    return pa.RecordBatch.from_arrays(list(columns.values()), schema=schema)


# --- numbers, as compiled code has them and as tables do


def vector(values: NDArray[Any]) -> vec[i64]:
    """A copy."""
    return vec[i64](cast("Any", np.ascontiguousarray(values, np.int64)))


def array(values: vec[i64]) -> Ints:
    """The numbers of a vector, which they share."""
    return np.frombuffer(cast("Any", values), np.int64)


def spans_of(column: pa.ListArray) -> Spans:
    """Of a column of left-out spans, or of overhead."""
    found = Spans()
    fields = column.values.flatten()
    known = vector(fields[2].to_numpy(zero_copy_only=False)) if len(fields) > 2 else vec[i64]()
    at, offset, length = (vector(numbers.to_numpy()) for numbers in (column.offsets, *fields[:2]))
    found.fill(at, offset, length, known)
    return found


# --- columns


def _scattered(column: pa.Array, there: Ints) -> pa.Array:
    """Its values of these rows, null in the others."""
    others = np.ones(len(column), bool)
    others[there] = False
    return pa.array(column.to_numpy(), mask=others)


def _put(column: pa.Array, there: Ints, values: Ints) -> pa.Array:
    found = column.to_numpy().copy()
    found[there] = values
    return pa.array(found, column.type)


def _merged(column: pa.Array, values: pa.Array, there: Ints) -> pa.Array:
    """The column, with these values in these rows."""
    if len(there) == len(column):
        return values
    places = np.arange(len(column))
    places[there] = len(column) + np.arange(len(there))
    return pa.concat_arrays([column, values]).take(pa.array(places))


@cache
def _fields(kind: pa.ListType) -> list[pa.Field]:
    return [kind.value_type.field(i) for i in range(kind.value_type.num_fields)]


def _lists(spans: Spans, kind: pa.ListType) -> pa.ListArray:
    fields = _fields(kind)
    columns = [array(spans.offset).astype(np.int32), array(spans.length).astype(np.int32)]
    if len(fields) > len(columns):
        columns.append(array(spans.known).astype(bool))
    flat = pa.StructArray.from_arrays([pa.array(column) for column in columns], fields=fields)
    return pa.ListArray.from_arrays(pa.array(array(spans.at).astype(np.int32)), flat, type=kind)


def _binary(lengths: Ints, data: bytes) -> pa.Array:
    at = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=at[1:])
    return pa.BinaryArray.from_buffers(pa.binary(), len(lengths), [None, pa.py_buffer(at), pa.py_buffer(data)])
