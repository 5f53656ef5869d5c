"""Redacted rows in, the same rows under other names out: payloads whole, with zeros for what was redacted.

Only messages that were read reach the payloads, and beside them pieces of a few bytes: sizes, TLS headers. All rows
wait until the last is read.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from wirecheck.capture.anonymize.fields import Fields
from wirecheck.capture.anonymize.snapshots import LogInMessages
from wirecheck.capture.trim.pending_rows import TLS_OPENING_BYTES
from wirecheck.decode.connection.follower import Follower
from wirecheck.decode.connection.framing.opening import V1, V2, V2_BYTES, proxy_header
from wirecheck.decode.connection.framing.recognise import tls_record
from wirecheck.decode.connection.segments import segments
from wirecheck.decode.holes import laid_out

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wirecheck.capture.anonymize.names import Names
    from wirecheck.decode.connection.exchanges import Exchanges
    from wirecheck.decode.wire import Ints

MOST_PIECE_BYTES = 12
"""Of what is kept outside of messages: their size and IDs, the header of a TLS record."""
HELLO_BYTES = 11
"""Of a TLS hello: the header of its record, its kind, length and version; random bytes follow."""
TLS_CONTENT, TLS_MAJOR = 23, 3


@dataclass(slots=True)
class Written:
    """What became of a capture."""

    frames: int = 0
    foreign_frames: int = 0
    """Of connections without Kafka, with content."""
    encrypted: int = 0
    """Connections inside TLS."""
    outside_bytes: int = 0
    """That were kept by redaction and are in no message."""
    zeroed: Counter[str] = field(default_factory=Counter)
    """Bytes by field that could not be mapped."""


@dataclass(slots=True)
class _Stream:
    """One direction's messages by their places."""

    begins: list[int] = field(default_factory=list)
    bodies: list[tuple[int, bytearray]] = field(default_factory=list)


class Anonymizer:
    """One capture. `add` its rows in their order, then take what `finish` gives."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._fields = Fields(names)
        self._log = LogInMessages(self._fields)
        self._follower = Follower(early=True)
        self._tables: list[tuple[pa.Table, Ints, Ints]] = []
        self._streams: dict[int, _Stream] = {}
        self.written = Written(zeroed=self._fields.zeroed)

    def add(self, rows: pa.Table) -> None:
        """Frames without marks."""
        exchanges = self._follower.receive(segments(rows))
        placed = self._follower.placed
        stream = np.where(placed.serial < 0, -1, 2 * placed.serial + placed.direction)
        self._tables.append((rows, stream, placed.offset.copy()))
        self._take(exchanges)

    def _take(self, exchanges: Exchanges) -> None:
        messages = exchanges.messages
        if not len(messages):
            return
        bodies = self._fields.bodies(messages, exchanges.serial, self._log.look)
        self._log.write(bodies, exchanges.serial)
        stream = (2 * exchanges.serial + exchanges.direction).tolist()
        for name, begin, body in zip(stream, exchanges.stream_offset.tolist(), bodies, strict=True):
            self._streams.setdefault(name, _Stream()).bodies.append((begin, body))

    def finish(self) -> Iterator[pa.Table]:
        self._take(self._follower.drain())
        self._log.finish()
        for each in self._streams.values():
            each.bodies.sort(key=lambda one: one[0])
            each.begins = [begin for begin, _ in each.bodies]
        serving, encrypted = self._served()
        self.written.encrypted = len(encrypted)
        for rows, stream, offset in self._tables:
            yield self._written(rows, stream.tolist(), offset.tolist(), serving)

    def _served(self) -> tuple[set[tuple[str, int]], set[int]]:
        """Endpoints with a Kafka message, of either side; and connections with TLS content."""
        ends: set[tuple[str, int]] = set()
        encrypted: set[int] = set()
        for rows, stream, _ in self._tables:
            columns = [rows[name].to_pylist() for name in ("src_ip", "src_port", "dst_ip", "dst_port", "payload")]
            for name, src, src_port, dst, dst_port, payload in zip(stream.tolist(), *columns, strict=True):
                if name in self._streams:
                    ends |= {(src, src_port), (dst, dst_port)}
                elif len(payload) > 1 and payload[0] == TLS_CONTENT and payload[1] == TLS_MAJOR:
                    encrypted.add(name // 2)
        return ends, encrypted

    def _written(self, rows: pa.Table, stream: list[int], offset: list[int], ends: set[tuple[str, int]]) -> pa.Table:
        out: list[dict[str, Any]] = []
        for row, name, at in zip(rows.to_pylist(), stream, offset, strict=True):
            peers = (row["src_ip"], row["src_port"]), (row["dst_ip"], row["dst_port"])
            if row["payload_len"] and not ends.intersection(peers):
                self.written.foreign_frames += 1
                continue
            payload = self._payload(row, name, at)
            cut = min(row["count"], row["payload_len"])
            left = [{"offset": len(payload) - cut, "length": cut}] if cut else []
            out.append(row | {
                "src_ip": self._address(peers[0][0]), "dst_ip": self._address(peers[1][0]),
                "payload": payload[: len(payload) - cut], "left_out": left,
            })  # fmt: skip
        self.written.frames += len(out)
        return pa.Table.from_pylist(out, rows.schema)

    def _address(self, address: str) -> str:
        return str(ip_address(self._names.address(ip_address(address).packed)))

    def _payload(self, row: dict[str, Any], name: int, at: int) -> bytes:
        """As on the wire."""
        size = row["payload_len"]
        kept = laid_out(row["payload"], ((span["offset"], span["length"]) for span in row["left_out"])).data.tobytes()
        out, covered = bytearray(size), bytearray(size)
        found = self._streams.get(name) if at >= 0 else None
        if found is not None:
            first = max(bisect_right(found.begins, at) - 1, 0)
            for begin, body in found.bodies[first:]:
                if begin >= at + size:
                    break
                whole = len(body).to_bytes(4) + body
                low, high = max(begin, at), min(begin + len(whole), at + size)
                if low < high:
                    out[low - at : high - at] = whole[low - begin : high - begin]
                    covered[low - at : high - at] = b"\1" * (high - low)
        self._outside(row, kept, out, covered, opens=at == 0)
        return bytes(out)

    def _outside(self, row: dict[str, Any], kept: bytes, out: bytearray, covered: bytearray, *, opens: bool) -> None:
        """Short pieces between messages stay, and a PROXY header with other addresses."""
        for span in row["left_out"]:
            covered[span["offset"] : span["offset"] + span["length"]] = b"\1" * span["length"]
        begin = covered.find(0)
        while begin >= 0:
            end = covered.find(1, begin)
            end = len(covered) if end < 0 else end
            piece = kept[begin:end]
            if begin == 0 and opens and piece.startswith((V1, V2)):
                out[:end] = self._proxied(piece)
            elif end - begin <= MOST_PIECE_BYTES:
                out[begin:end] = piece
            elif end - begin == TLS_OPENING_BYTES and tls_record(piece):
                out[begin : begin + HELLO_BYTES] = piece[:HELLO_BYTES]
            else:
                self.written.outside_bytes += end - begin
            begin = covered.find(0, end)

    def _proxied(self, header: bytes) -> bytes:
        if proxy_header(header).length <= 0 and len(header) < V2_BYTES:
            return bytes(len(header))
        if header.startswith(V1):
            line, end, _ = header.partition(b"\r\n")
            return (self._names.addresses_in(line) + end).ljust(len(header), b"\0")
        width = {0x10: 4, 0x20: 16}.get(header[13] & 0xF0, 0)
        peers = [header[V2_BYTES + i * width : V2_BYTES + (i + 1) * width] for i in range(2)]
        new = b"".join(self._names.address(each) for each in peers if len(each) == width and width)
        ports = header[V2_BYTES + len(new) : V2_BYTES + len(new) + 4] if new else b""
        return (header[:V2_BYTES] + new + ports).ljust(len(header), b"\0")
