"""TCP segments as arrays: the frames table in the shape that a follower reads.

Payload bytes are copied only if the table comes in several chunks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wirecheck.decode.interpret.vectors import bytes_around

if TYPE_CHECKING:
    from collections.abc import Iterator

Ints = NDArray[np.int64]
FRAME = 0  # kind of a row that is a segment; every other row is an agent's mark
PORTS = 1 << 16
UNKNOWN = -1
CLASSES = 256
"""Of connections. All connections of one class are in one bucket, however many buckets there are."""
PER_SEGMENT = (
    "agent", "source", "frame_no", "ts_ns", "src", "dst", "seq", "ack", "flags", "window", "payload_len",
    "cut", "run",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Segments:
    """TCP segments, one row each, in the order their agents showed them."""

    label: str
    """The cluster's label."""
    names: tuple[str, ...]
    """Agents and sources; `agent` and `source` point here."""
    endpoints: tuple[tuple[str, int], ...]
    """(address, port); `src` and `dst` point here."""
    agent: NDArray[np.int32]
    source: NDArray[np.int32]
    frame_no: Ints
    """1-based in the source."""
    ts_ns: Ints
    src: NDArray[np.int32]
    dst: NDArray[np.int32]
    seq: Ints
    ack: Ints
    flags: NDArray[np.int32]
    window: NDArray[np.int32]
    """That its sender announces, not scaled; UNKNOWN where its agent did not record it."""
    payload_len: Ints
    """On the wire."""
    cut: Ints
    """How many of them a snap length cut off."""
    run: Ints
    """0: its sequence numbers are the wire's. Else the run of its agent that made them; gaps in them have no known
    length.
    """
    payload: NDArray[np.uint8]
    """Kept bytes of all segments, concatenated."""
    payload_at: Ints
    """n+1 offsets into `payload`."""
    left_at: Ints
    """n+1 offsets into the left-out spans."""
    left_offset: Ints
    """Where a left-out span begins in its segment's payload as on the wire."""
    left_length: Ints

    def __len__(self) -> int:
        return len(self.seq)

    def kept_bytes(self) -> tuple[int, bytes]:
        """Bytes that hold their payload, and at which of its offsets these begin: more than the payload, where it need
        not be copied.
        """
        begin, end = self.payload_at[[0, -1]].tolist()
        data, at = bytes_around(self.payload[begin:end])
        return begin - at, data

    def take(self, rows: NDArray[Any]) -> Segments:
        """These rows (indices or mask), in that order; names and endpoints stay as they are."""
        rows = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows.astype(np.int64)
        payload, payload_at = _picked(self.payload, self.payload_at, rows)
        left_offset, left_at = _picked(self.left_offset, self.left_at, rows)
        left_length, _ = _picked(self.left_length, self.left_at, rows)
        return replace(
            self,
            **{name: getattr(self, name)[rows] for name in PER_SEGMENT},
            payload=payload, payload_at=payload_at,
            left_at=left_at, left_offset=left_offset, left_length=left_length,
        )  # fmt: skip

    def parts(self, most: int) -> Iterator[Segments]:
        """The rows in their order, at most so many at a time; payloads are not copied."""
        for start in range(0, len(self), most):
            rows, edges = slice(start, start + most), slice(start, start + most + 1)
            mine = {name: getattr(self, name)[rows] for name in PER_SEGMENT}
            yield replace(self, **mine, payload_at=self.payload_at[edges], left_at=self.left_at[edges])

    def buckets(self, count: int) -> NDArray[np.int32]:
        """Bucket of every row: the same for both directions, in every process, at all times."""
        keys, index = unique_pairs(self.src, self.dst, len(self.endpoints))
        of_pair = [
            class_of(*self.endpoints[key // len(self.endpoints)], *self.endpoints[key % len(self.endpoints)]) % count
            for key in keys.tolist()
        ]
        return np.array(of_pair, np.int32)[index]


def bucket_of(src_ip: str, src_port: int, dst_ip: str, dst_port: int) -> int:
    """A number for a connection, independent of direction and process."""
    low, high = sorted(((src_ip, src_port), (dst_ip, dst_port)))
    return crc32(f"{low[0]} {low[1]} {high[0]} {high[1]}".encode())


def class_of(src_ip: str, src_port: int, dst_ip: str, dst_port: int) -> int:
    """What decides about a connection's bucket, and stays the same where the number of buckets is another."""
    return bucket_of(src_ip, src_port, dst_ip, dst_port) % CLASSES


def segments(table: pa.Table) -> Segments:
    """The rows of a frames table that are frames; marks are left aside."""
    label = next((text for text in table["cluster"].slice(0, 1).to_pylist() if text), "")
    kind: Any = table["kind"]
    if pc.max(kind).as_py() not in {FRAME, None}:
        table = table.filter(pc.equal(kind, pa.scalar(FRAME, pa.int8())))
    names, (agent, source) = _coded(table, ("agent", "source"))
    addresses, (src_ip, dst_ip) = _coded(table, ("src_ip", "dst_ip"))
    endpoints, (src, dst) = _endpoints(addresses, src_ip, dst_ip, table)
    payload, payload_at = _bytes(table["payload"])
    cut = _ints(table["count"]) if "count" in table.column_names else np.zeros(len(table), np.int64)
    run = _ints(table["decrypted"]) if "decrypted" in table.column_names else np.zeros(len(table), np.int64)
    return Segments(
        label, names, endpoints, agent, source, _ints(table["frame_no"]), _ints(table["ts_ns"]), src, dst,
        _ints(table["tcp_seq"]), _ints(table["tcp_ack"]), _ints(table["tcp_flags"]).astype(np.int32), _window(table),
        _ints(table["payload_len"]), cut, run, payload, payload_at, *_spans(table["left_out"]),
    )  # fmt: skip


def _window(table: pa.Table) -> NDArray[np.int32]:
    if "tcp_window" not in table.column_names:
        return np.full(len(table), UNKNOWN, np.int32)
    column = table["tcp_window"]
    return _ints(pc.fill_null(column, UNKNOWN) if column.null_count else column).astype(np.int32)


def unique_pairs(src: NDArray[np.int32], dst: NDArray[np.int32], count: int) -> tuple[Ints, NDArray[np.int32]]:
    """(low * count + high of every pair of endpoints, index of its pair per row)."""
    low, high = np.minimum(src, dst).astype(np.int64), np.maximum(src, dst).astype(np.int64)
    return distinct(low * count + high)


def distinct(keys: Ints) -> tuple[Ints, NDArray[np.int32]]:
    """(the distinct keys by first appearance, index of its key per row), without sorting."""
    coded = pa.array(keys).dictionary_encode()
    return coded.dictionary.to_numpy(), coded.indices.to_numpy()


def _picked(values: NDArray[Any], at: Ints, rows: Ints) -> tuple[NDArray[Any], Ints]:
    """The values of these rows, each of which has those between its offset and the next, and their offsets."""
    if values.dtype == np.uint8:
        buffers = [None, pa.py_buffer(np.ascontiguousarray(at)), pa.py_buffer(values)]
        found = pa.Array.from_buffers(pa.large_binary(), len(at) - 1, buffers).take(pa.array(rows))
        return _bytes(pa.chunked_array([found]))
    begin, lengths = at[rows], at[rows + 1] - at[rows]
    new_at = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(lengths, out=new_at[1:])
    return values[np.arange(new_at[-1]) + np.repeat(begin - new_at[:-1], lengths)], new_at


def _ints(column: Any) -> Ints:
    values: Ints = column.to_numpy().astype(np.int64, copy=False)
    return values


def _coded(table: pa.Table, columns: tuple[str, ...]) -> tuple[tuple[str, ...], list[NDArray[np.int32]]]:
    """Strings of several columns as indices into one tuple of texts."""
    texts: dict[str, int] = {}
    coded = []
    for name in columns:
        chunks = [_chunk_codes(chunk, texts) for chunk in table[name].chunks]
        coded.append(chunks[0] if len(chunks) == 1 else np.concatenate([np.zeros(0, np.int32), *chunks]))
    return tuple(texts), coded


def _chunk_codes(chunk: Any, texts: dict[str, int]) -> NDArray[np.int32]:
    if not pa.types.is_dictionary(chunk.type):
        chunk = chunk.dictionary_encode()
    known = chunk.dictionary.to_numpy(zero_copy_only=False).tolist()  # to_pylist takes five times as long
    mapped = [texts.setdefault(text or "", len(texts)) for text in known]
    indices = chunk.indices if chunk.null_count == 0 else chunk.indices.fill_null(0)
    codes = indices.to_numpy(zero_copy_only=False)
    if chunk.type.index_type == pa.int32() and mapped == list(range(len(mapped))):
        return np.asarray(codes)
    return np.array(mapped, np.int32)[codes] if mapped else np.zeros(0, np.int32)


def _endpoints(
    addresses: tuple[str, ...], src_ip: NDArray[np.int32], dst_ip: NDArray[np.int32], table: pa.Table
) -> tuple[tuple[tuple[str, int], ...], tuple[NDArray[np.int32], NDArray[np.int32]]]:
    src = src_ip.astype(np.int64) * PORTS + _ints(table["src_port"])
    dst = dst_ip.astype(np.int64) * PORTS + _ints(table["dst_port"])
    keys, index = distinct(np.concatenate([src, dst]))
    found = tuple((addresses[key // PORTS], key % PORTS) for key in keys.tolist())
    return found, (index[: len(src)], index[len(src) :])


def _bytes(column: Any) -> tuple[NDArray[np.uint8], Ints]:
    data, starts = [np.zeros(0, np.uint8)], [np.zeros(1, np.int64)]
    base = 0
    for chunk in column.chunks:
        _, offsets, values = chunk.buffers()
        at = np.frombuffer(offsets, np.int64 if pa.types.is_large_binary(chunk.type) else np.int32)
        at = at[chunk.offset : chunk.offset + len(chunk) + 1].astype(np.int64)
        if len(chunk) == 0 or values is None:
            starts.append(np.full(len(chunk), base, np.int64))
            continue
        data.append(np.frombuffer(values, np.uint8)[at[0] : at[-1]])
        starts.append(at[1:] - at[0] + base)
        base += int(at[-1] - at[0])
    return (data[1] if len(data) == 2 else np.concatenate(data)), np.concatenate(starts)


def _spans(column: Any) -> tuple[Ints, Ints, Ints]:
    """(n+1 offsets, span offsets, span lengths)."""
    lengths = pc.fill_null(pc.list_value_length(column), 0)
    left_at = np.zeros(len(column) + 1, np.int64)
    np.cumsum(_ints(lengths), out=left_at[1:])
    if left_at[-1] == 0:
        return left_at, np.zeros(0, np.int64), np.zeros(0, np.int64)
    flat = pc.list_flatten(column)
    return left_at, _ints(pc.struct_field(flat, "offset")), _ints(pc.struct_field(flat, "length"))
