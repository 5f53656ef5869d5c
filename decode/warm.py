"""Compiles what is compiled, so that nobody waits for it later.

Knows one tiny connection that passes through every kernel of the room: followed, decoded, read as values and columns;
ApiVersions, Metadata with one topic (text, ids, lists) and a Fetch of the metadata log (records, checksum, log frames).
Numba stores what it compiles beside the sources (or in the user's cache folder), for every later process.
Rule: a kernel that is on the way of real traffic is called here with the types it meets there.
"""

from __future__ import annotations

import struct

import numpy as np
import pyarrow as pa

from wirecheck.decode.columns import tables
from wirecheck.decode.connection.follower import Follower
from wirecheck.decode.connection.segments import segments
from wirecheck.decode.dialect import hear, read
from wirecheck.decode.log.metadata_log import field_entries
from wirecheck.decode.nested import nested
from wirecheck.decode.texts import id_codes
from wirecheck.decode.wire import pack, wire_offset

__all__ = ["warm"]

CLIENT, BROKER = ("10.0.0.1", 40000), ("10.0.0.2", 9092)
SYN, ACK, FIN = 2, 16, 1
API_VERSIONS = struct.pack(">hhih", 18, 0, 1, -1)
ANSWER = struct.pack(">ihihhh", 1, 0, 1, 18, 0, 4)
METADATA = bytes.fromhex("0003000a00000002000177000000000000")  # v10, of all topics
TOPIC = bytes.fromhex(
    "000000020000000000010100000000020000027424cc4332f7de45a3b24e33d61aa0d16c0002000000000000000000010000"
    "000002000000010200000001010000000000000000000000"
)
FETCH = bytes.fromhex(
    "0001000c00000003000177000000000100000000000000000000000000000000000000000002135f5f636c75737465725f6d"
    "657461646174610200000000000000000000000000000000000000000000000000000000000000010000010100"
)  # v12, of __cluster_metadata by replica 1
LOG = bytes.fromhex(
    "00000003000000000000000000000002135f5f636c75737465725f6d65746164617461020000000000000000000000000001"
    "0000000000000000000000000000000001000000005b00000000000000000000004e00000000026b846a1b00000000000000"
    "000000000003e800000000000003e8ffffffffffffffffffffffffffff0000000138000000012c010200027424cc4332f7de"
    "45a3b24e33d61aa0d16c0000000000"
)  # one batch with one TopicRecord
SAID = ((API_VERSIONS, ANSWER), (METADATA, TOPIC), (FETCH, LOG))


def warm() -> None:
    follower = Follower()
    exchanges = follower.receive(segments(frames()))
    Follower.restore(follower.snapshot()).advance("warm", 10**12)
    follower.drain()
    spoken = hear(exchanges.messages, exchanges.serial, exchanges.exchange, {})
    decoded = read(exchanges.messages, spoken)
    assert len(exchanges) == len(SAID), "the kernels do not agree with their test connection"
    nested(decoded, 0)
    topics = tables(decoded, "Metadata", "response")
    topics["topics"]["name"].codes()
    id_codes(topics["topics"]["topic_id"])
    topics["topics.partitions"]["replica_nodes"].flat()
    fetched = tables(decoded, "Fetch", "response")["responses.partitions"]["records"].field(0)
    none = np.zeros(1, np.int64)
    wire_offset(pack([METADATA], [0], [3], [10], [[(12, 1)]]), none, none)
    assert len(field_entries(fetched)) == 1, "the kernels do not agree with their test log"


def frames() -> pa.Table:
    """Requests and responses, one a packet, between SYN and FIN."""
    rows = [(CLIENT, BROKER, 0, 0, SYN, b""), (BROKER, CLIENT, 0, 1, SYN | ACK, b"")]
    sent, got = 1, 1
    for up, down in SAID:
        rows += [
            (CLIENT, BROKER, sent, got, ACK, sized(up)),
            (BROKER, CLIENT, got, sent + len(up) + 4, ACK, sized(down)),
        ]
        sent, got = sent + len(up) + 4, got + len(down) + 4
    rows.append((CLIENT, BROKER, sent, got, ACK | FIN, b""))
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
