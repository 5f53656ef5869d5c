"""Compiles what is compiled, so that nobody waits for it later.

Knows one tiny connection that passes through every kernel of the room: followed, decoded, read as values and columns.
Numba stores what it compiles beside the sources (or in the user's cache folder), for every later process.
Rule: a kernel that is on the way of real traffic is called here with the types it meets there.
"""

from __future__ import annotations

import struct

import pyarrow as pa

from decode.columns import tables
from decode.connection import Follower
from decode.message import decode
from decode.nested import nested
from decode.segments import segments

__all__ = ["warm"]

CLIENT, BROKER = ("10.0.0.1", 40000), ("10.0.0.2", 9092)
SYN, ACK, FIN = 2, 16, 1
API_VERSIONS = struct.pack(">hhih", 18, 0, 1, -1)
ANSWER = struct.pack(">ihihhh", 1, 0, 1, 18, 0, 4)


def warm() -> None:
    follower = Follower()
    exchanges = follower.receive(segments(frames()))
    Follower.restore(follower.snapshot()).advance("warm", 10**12)
    follower.drain()
    decoded = decode(exchanges.messages)
    assert len(exchanges) == 1, "the kernels do not agree with their test connection"
    nested(decoded, 0)
    tables(decoded, "ApiVersions", "response")


def frames() -> pa.Table:
    """Request and response of one exchange, between SYN and FIN."""
    up, down = sized(API_VERSIONS), sized(ANSWER)
    rows = [
        (CLIENT, BROKER, 0, 0, SYN, b""),
        (BROKER, CLIENT, 0, 1, SYN | ACK, b""),
        (CLIENT, BROKER, 1, 1, ACK, up),
        (BROKER, CLIENT, 1, 1 + len(up), ACK, down),
        (CLIENT, BROKER, 1 + len(up), 1 + len(down), ACK | FIN, b""),
    ]
    src, dst, seq, ack, flags, payload = (list(column) for column in zip(*rows, strict=True))
    count = len(rows)
    spans = pa.list_(pa.struct([("offset", pa.int32()), ("length", pa.int32())]))
    columns = {
        "kind": pa.array([0] * count, pa.int8()),
        **{name: pa.array(["warm"] * count).dictionary_encode() for name in ("cluster", "agent", "source")},
        "frame_no": pa.array(range(1, count + 1), pa.int64()),
        "ts_ns": pa.array(range(count), pa.int64()),
        "src_ip": pa.array([end[0] for end in src]).dictionary_encode(),
        "src_port": pa.array([end[1] for end in src], pa.int32()),
        "dst_ip": pa.array([end[0] for end in dst]).dictionary_encode(),
        "dst_port": pa.array([end[1] for end in dst], pa.int32()),
        "tcp_seq": pa.array(seq, pa.int64()),
        "tcp_ack": pa.array(ack, pa.int64()),
        "tcp_flags": pa.array(flags, pa.int32()),
        "payload": pa.array(payload, pa.binary()),
        "payload_len": pa.array([len(kept) for kept in payload], pa.int32()),
        "left_out": pa.array([[]] * count, spans),
    }
    return pa.table(columns)


def sized(message: bytes) -> bytes:
    return struct.pack(">i", len(message)) + message


if __name__ == "__main__":
    warm()
