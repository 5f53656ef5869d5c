"""Writes rows of the frames table as a pcapng file.

Redacted bytes are zeros at their full length, and a comment counts them. What the table does not hold (link layer,
TTL) is constant, and so is a window that is unknown.
"""

from __future__ import annotations

import os
import struct
from collections import Counter
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wirecheck.capture import frames
from wirecheck.capture.source.pcapng import TLS_KEY_LOG
from wirecheck.capture.traffic import tables
from wirecheck.decode.holes import laid_out
from wirecheck.decode.peer import Peer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import BinaryIO

COLUMNS = ("kind", "cluster", "agent", "source", "frame_no", "ts_ns", "src_ip", "src_port", "dst_ip", "dst_port")
SEGMENT = ("tcp_seq", "tcp_ack", "tcp_flags", "tcp_window", "payload", "payload_len", "left_out", "decrypted")
MOST_PAYLOAD = 65_000  # of one packet: an IP length has 16 bits, and a captured segment may be longer (offloading)
RAW_IP = 101
DROPPED_BY_INTERFACE = 5  # option code: isb_ifdrop
COMMENT, APPLICATION, RESOLUTION = 1, 4, 9  # option codes: opt_comment, shb_userappl, if_tsresol
TCP = 6
Place = tuple[str, int]
"""Source and number of a frame."""


class Pair(NamedTuple):
    """The two endpoints of a connection, in their own order."""

    low: Peer
    high: Peer

    @classmethod
    def of(cls, one: Peer, other: Peer) -> Pair:
        return cls(*sorted((one, other)))


def connections(files: Iterable[Path], cluster: str) -> dict[Pair, int]:
    """Every connection of one cluster label in these files of frames, with its bytes of payload on the wire."""
    found: Counter[Pair] = Counter()
    for table in cluster_frames(files, [*COLUMNS, "payload_len"], cluster):
        sums = table.group_by(["src_ip", "src_port", "dst_ip", "dst_port"]).aggregate([("payload_len", "sum")])
        for row in sums.to_pylist():
            found[pair_of(row)] += row["payload_len_sum"]
    return found


def cluster_frames(files: Iterable[Path], columns: list[str], cluster: str) -> Iterator[pa.Table]:
    """Frames of one cluster label, file by file."""
    return (of_cluster(table, cluster) for table in tables(files, columns))


def of_cluster(table: pa.Table, cluster: str) -> pa.Table:
    """Frames of one cluster label, no marks; addresses as plain strings."""
    mine = table.filter((pc.field("kind") == frames.FRAME) & (pc.field("cluster") == cluster))
    for name in ("src_ip", "dst_ip", "source"):
        mine = mine.set_column(mine.schema.get_field_index(name), name, mine[name].cast(pa.string()))
    return mine


def pair_of(row: Mapping[str, Any]) -> Pair:
    return Pair.of(Peer(row["src_ip"], row["src_port"]), Peer(row["dst_ip"], row["dst_port"]))


def selected(files: Iterable[Path], cluster: str, chosen: set[Pair]) -> pa.Table:
    """The frames of these connections, in the order of their times."""
    parts, names = [], [*COLUMNS, *SEGMENT]
    for table in cluster_frames(files, names, cluster):
        ends = table.select(["src_ip", "src_port", "dst_ip", "dst_port"])
        pairs = {
            tuple(row.values()): pair_of(row) in chosen
            for row in ends.group_by(ends.column_names).aggregate([]).to_pylist()
        }
        mask = [pairs[row] for row in zip(*ends.to_pydict().values(), strict=True)]
        parts.append(table.filter(pa.array(mask, pa.bool_())))
    if not parts:  # nothing was captured
        return pa.schema([frames.FRAMES.field(name) for name in names]).empty_table()
    table = pa.concat_tables(parts, promote_options="permissive")
    order = np.argsort(table["ts_ns"].to_numpy(), kind="stable")  # one agent's rows keep their order
    return table.take(pa.array(order))


def write(
    path: Path, table: pa.Table, title: str, comments: Mapping[Place, str], keys: bytes = b"", *, dropped: int = 0
) -> None:
    """Write selected frames as pcapng, with the lines of a key log if there are, and the packets that were lost in
    capture. Whole or not at all, mode 0600: it is other people's traffic. Where a frame has its `count`, so many bytes
    at its end were cut off.

    Raises OSError.
    """
    hidden = path.with_name(f".{path.name}.tmp")
    padded = sum(span["length"] for spans in table["left_out"].to_pylist() for span in spans)
    if padded:
        title += f"\n{padded} bytes of payload were not kept when it was captured; zeros stand in their place."
    hidden.unlink(missing_ok=True)  # what a crash left
    try:
        with os.fdopen(os.open(hidden, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600), "wb") as file:
            write_blocks(file, table, title, comments, keys, dropped=dropped)
        hidden.replace(path)
    finally:
        hidden.unlink(missing_ok=True)


def write_blocks(
    file: BinaryIO, table: pa.Table, title: str, comments: Mapping[Place, str], keys: bytes = b"", *, dropped: int = 0
) -> None:
    header = options((COMMENT, title.encode()), (APPLICATION, b"wirecheck"))
    file.write(block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1) + header))
    file.write(block(1, struct.pack("<HHI", RAW_IP, 0, 0) + options((RESOLUTION, b"\x09"))))
    if keys:  # a Decryption Secrets Block, before the frames it opens
        file.write(block(10, struct.pack("<II", TLS_KEY_LOG, len(keys)) + padded_to_4(keys)))
    for batch in table.to_batches(max_chunksize=4096):
        for row in batch.to_pylist():
            comment = comments.get((row["source"], row["frame_no"]))
            for number, packet in enumerate(packets(row)):
                note = options((COMMENT, comment.encode())) if comment and not number else b""
                seen = packet[: len(packet) - row.get("count", 0)]
                file.write(block(6, packet_head(row["ts_ns"], len(seen), len(packet)) + padded_to_4(seen) + note))
    if dropped:
        file.write(block(5, bytes(12) + struct.pack("<HHQ", DROPPED_BY_INTERFACE, 8, dropped) + bytes(4)))


def packet_head(ts_ns: int, seen: int, size: int) -> bytes:
    """Before 1970, as a damaged file may say, is 1970: the form knows nothing earlier."""
    high, low = divmod(max(ts_ns, 0), 1 << 32)
    return struct.pack("<IIIII", 0, high, low, seen, size)


def block(kind: int, body: bytes) -> bytes:
    total = len(body) + 12
    return struct.pack("<II", kind, total) + body + struct.pack("<I", total)


def options(*given: tuple[int, bytes]) -> bytes:
    """Options in pcapng's form, with their end."""
    parts = [struct.pack("<HH", code, len(value[:65535])) + padded_to_4(value[:65535]) for code, value in given]
    return b"".join(parts) + bytes(4)


def padded_to_4(value: bytes) -> bytes:
    return value + bytes(-len(value) % 4)


def packets(row: Mapping[str, Any]) -> Iterator[bytes]:
    """One frame as IP packets; more than one only where the segment is longer than IP can say."""
    payload = whole(row["payload"], row["payload_len"], row["left_out"])
    for start in range(0, max(len(payload), 1), MOST_PAYLOAD):
        yield packet(row, start, payload[start : start + MOST_PAYLOAD])


def whole(kept: bytes, size: int, left_out: Sequence[Mapping[str, int]]) -> bytes:
    """A payload at its full length, zeros where bytes were left out."""
    spans = ((span["offset"], span["length"]) for span in left_out)
    return laid_out(kept, spans).data.tobytes()[:size]


def packet(row: Mapping[str, Any], start: int, payload: bytes) -> bytes:
    flags = 5 << 12 | row["tcp_flags"] & 0x1FF
    seq, ack = (row["tcp_seq"] + start) & 0xFFFFFFFF, row["tcp_ack"] & 0xFFFFFFFF
    window = 65535 if row["tcp_window"] is None else row["tcp_window"]
    head = struct.pack(">HHIIHHHH", row["src_port"], row["dst_port"], seq, ack, flags, window, 0, 0)
    src, dst = (ip_address(row[side]).packed for side in ("src_ip", "dst_ip"))
    length = len(head) + len(payload)
    checked = checksum(src + dst + struct.pack(">II", length, TCP) + head + payload)
    segment = head[:16] + struct.pack(">H", checked) + head[18:] + payload
    if len(src) == 16:
        return struct.pack(">IHBB", 6 << 28, length, TCP, 64) + src + dst + segment
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + length, 0, 0x4000, 64, TCP, 0) + src + dst
    return ip[:10] + struct.pack(">H", checksum(ip)) + ip[12:] + segment


def checksum(data: bytes) -> int:
    """RFC 1071: the ones' complement of the ones' complement sum."""
    total = int(np.frombuffer(data + bytes(len(data) % 2), ">u2").sum(dtype=np.uint64))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
