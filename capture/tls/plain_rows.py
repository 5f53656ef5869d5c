"""Rows of the frames table with plain payloads, and the same rows with the places they had on the wire.

Knows: how a row looks while it is trimmed (its payload is the plain bytes alone, its numbers count nothing but them),
and how it looks in a file (numbers and length as on the wire, overhead declared).
Refuses to know: how bytes became plain, and which of them are kept.
Rule: what of a row is neither kept nor overhead is left out. Every row that goes one way comes back, in any number.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from wirecheck.capture import frames

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from wirecheck.capture.tls.plain_space import Span

WIRE = ("wire_seq", "wire_ack", "wire_len", "wire_overhead")
"""Columns that a row has besides while it is plain; null in one that was never encrypted."""
_SIDE = pa.schema([(WIRE[0], pa.int64()), (WIRE[1], pa.int64()), (WIRE[2], pa.int32()), (WIRE[3], frames.OVERHEAD)])
_MARKER = (0, 0, False)
"""Says of a row that overhead is about: of what is missing around it nobody knows how much the stream's is."""


class PlainRow:
    """What becomes of one row."""

    __slots__ = ("ack", "left_out", "overhead", "payload", "seq", "wire_overhead")

    def __init__(self, seq: int, ack: int, payload: Sequence[memoryview], spans: Iterable[Span], length: int) -> None:
        """`spans`: of its payload on the wire, of which `payload` are the bytes between them; or none at all is known
        of it, `length` bytes long, where there is no payload.
        """
        self.seq, self.ack, self.payload = seq & 0xFFFFFFFF, ack & 0xFFFFFFFF, payload
        self.wire_overhead = [tuple(span) for span in spans]
        self.left_out: list[tuple[int, int]] = [] if payload or self.wire_overhead or not length else [(0, length)]
        self.overhead = [_MARKER]
        passed = 0
        for begin, size, known in self.wire_overhead:
            if known:
                passed += size
            else:
                self.overhead.append((begin - passed, size, False))


def plain(rows: pa.RecordBatch, changed: dict[int, PlainRow]) -> pa.RecordBatch:
    """The rows, those changed as they are now."""
    n = rows.num_rows
    columns: dict[str, Any] = dict(zip(rows.schema.names, rows.columns, strict=True))
    side: list[list[Any]] = [[None] * n for _ in WIRE]
    numbers = {name: columns[name].to_numpy().copy() for name in ("tcp_seq", "tcp_ack", "payload_len")}
    before = {name: columns[name].to_numpy() for name in ("tcp_seq", "tcp_ack", "payload_len")}
    parts: list[Any] = []
    lengths = np.diff(_offsets(columns["payload"]))
    at = _offsets(columns["payload"])
    data = memoryview(columns["payload"].buffers()[2] or b"")
    left_out, overhead = columns["left_out"].to_pylist(), columns["overhead"].to_pylist()
    done = 0
    for i, row in changed.items():
        parts.append(data[at[done] : at[i]])
        parts.extend(row.payload)
        done = i + 1
        for values, value in zip(
            side, (before["tcp_seq"][i], before["tcp_ack"][i], before["payload_len"][i]), strict=False
        ):
            values[i] = int(value)
        side[3][i] = _structs(row.wire_overhead)
        lengths[i] = sum(len(piece) for piece in row.payload)
        numbers["tcp_seq"][i], numbers["tcp_ack"][i] = row.seq, row.ack
        left_out[i] = [{"offset": offset, "length": length} for offset, length in row.left_out]
        overhead[i] = _structs(row.overhead) if before["payload_len"][i] else []
        unsure = sum(length for _, length, _ in row.overhead)
        numbers["payload_len"][i] = lengths[i] + unsure + sum(length for _, length in row.left_out)
    parts.append(data[at[done] : at[n]])
    columns["payload"] = _binary(lengths, b"".join(parts))
    for name, values in numbers.items():
        columns[name] = pa.array(values, rows.schema.field(name).type)
    columns["left_out"] = pa.array(left_out, rows.schema.field("left_out").type)
    columns["overhead"] = pa.array(overhead, rows.schema.field("overhead").type)
    more = [pa.array(values, field.type) for values, field in zip(side, _SIDE, strict=True)]
    schema = pa.schema([*rows.schema, *_SIDE])
    return pa.RecordBatch.from_arrays([*columns.values(), *more], schema=schema)


def on_the_wire(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows that were plain, or some of them, as they go into a file."""
    if WIRE[0] not in rows.schema.names:
        return rows
    columns: dict[str, Any] = dict(zip(rows.schema.names, rows.columns, strict=True))
    seq, ack, length, spans = (columns.pop(name) for name in WIRE)
    schema = pa.schema([field for field in rows.schema if field.name not in WIRE])
    there = np.flatnonzero(seq.is_valid().to_numpy(zero_copy_only=False)).tolist()
    left_out, overhead = columns["left_out"].to_pylist(), columns["overhead"].to_pylist()
    sizes = columns["payload_len"].to_numpy()
    wire_spans, wire_sizes = spans.to_pylist(), length.to_pylist()
    for i in there:
        overhead[i] = wire_spans[i]
        left_out[i] = _left_on_the_wire(left_out[i], int(sizes[i]), wire_spans[i], wire_sizes[i])
    for name, before in (("tcp_seq", seq), ("tcp_ack", ack), ("payload_len", length)):
        values = columns[name].to_numpy().copy()
        values[there] = before.to_numpy(zero_copy_only=False)[there].astype(values.dtype)
        columns[name] = pa.array(values, schema.field(name).type)
    columns["left_out"] = pa.array(left_out, schema.field("left_out").type)
    columns["overhead"] = pa.array(overhead, schema.field("overhead").type)
    return pa.RecordBatch.from_arrays(list(columns.values()), schema=schema)


def _left_on_the_wire(
    left_out: list[dict[str, int]], size: int, spans: list[dict[str, Any]], wire_size: int
) -> list[dict[str, int]]:
    """What is neither kept nor overhead, by the places on the wire."""
    if not wire_size or (not left_out and not spans):
        return left_out
    taken = [(span["offset"], span["offset"] + span["length"]) for span in spans]
    edges = [0, *(edge for span in left_out for edge in (span["offset"], span["offset"] + span["length"])), size]
    for begin, end in list(pairwise(edges))[::2]:  # what is kept, by its places in the plain payload
        taken.extend(_wire_parts(begin, end, spans))
    found, at = [], 0
    for begin, end in sorted(taken):
        if begin > at:
            found.append({"offset": at, "length": begin - at})
        at = max(at, end)
    if at < wire_size:
        found.append({"offset": at, "length": wire_size - at})
    return found


def _wire_parts(begin: int, end: int, spans: list[dict[str, Any]]) -> list[tuple[int, int]]:
    """[begin, end) of a plain payload, by its places on the wire; known overhead parts it."""
    found = []
    for span in spans:
        if span["known"]:
            if span["offset"] > begin:
                if span["offset"] >= end:
                    break
                found.append((begin, span["offset"]))
                begin = span["offset"]
            begin += span["length"]
            end += span["length"]
    if begin < end:
        found.append((begin, end))
    return found


def _structs(spans: Iterable[Any]) -> list[dict[str, Any]]:
    return [{"offset": offset, "length": length, "known": known} for offset, length, known in spans]


def _offsets(payload: pa.Array) -> Any:
    return np.frombuffer(payload.buffers()[1], np.int32)[payload.offset : payload.offset + len(payload) + 1]


def _binary(lengths: Any, data: bytes) -> pa.Array:
    at = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=at[1:])
    return pa.BinaryArray.from_buffers(pa.binary(), len(lengths), [None, pa.py_buffer(at), pa.py_buffer(data)])
