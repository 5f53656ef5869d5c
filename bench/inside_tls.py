"""A capture again, inside TLS made by OpenSSL: the same packets' times and ends, the key log, where each record stands.

    python -m bench.inside_tls IN.pcap OUT.pcap KEYS.log [--version 1.3] [--ciphers NAMES]

Knows: connections that begin in the capture, without holes. What a side says up to a PSH goes to OpenSSL in one piece,
as a JVM writes a message, so records are of 16 KiB where messages are long. Acknowledgements say what was sent so far.
Refuses to know: what the bytes are, and how anything of ours reads TLS.
Rule: every run has new keys. A connection with a hole stops being said there; others are left out.
"""

from __future__ import annotations

import argparse
import ssl
import struct
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from bench.damage import LINK_BYTES, Flow
from tests.tls_traffic import VERSIONS, End, certificate

if TYPE_CHECKING:
    from collections.abc import Iterator

SEGMENT_BYTES = 1448
FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
WHOLE = 1 << 32
SHAKES = 3


class Record(NamedTuple):
    """Bytes [begin, end) of a direction, and where they stand inside TLS; offsets count from behind the SYN."""

    begin: int
    end: int
    wire_begin: int
    wire_end: int


class Packet(NamedTuple):
    when: bytes
    head: bytes
    """Down to the payload."""
    ip_at: int
    tcp_at: int
    flow: Flow
    seq: int
    flags: int
    payload: bytes


@dataclass
class Side:
    end: End
    isn: int
    next_seq: int
    """Of the plain bytes."""
    waiting: bytearray = field(default_factory=bytearray)
    said: int = 0
    wire_said: int = 0
    longest: int = SEGMENT_BYTES
    records: list[Record] = field(default_factory=list)
    has_hole: bool = False
    is_over: bool = False

    def sealed(self, data: bytes) -> bytes:
        """What OpenSSL makes of it; records of 16 KiB plain bytes, a shorter last one."""
        self.end.tls.write(data)
        wire = self.end.outside.read()
        begin, at = self.said, 0
        while at < len(wire):
            size = 5 + struct.unpack_from(">H", wire, at + 3)[0]
            length = min(self.said + len(data) - begin, 1 << 14)
            self.records.append(Record(begin, begin + length, self.wire_said + at, self.wire_said + at + size))
            begin, at = begin + length, at + size
        assert begin == self.said + len(data), "records are not of 16 KiB"
        self.said = begin
        return wire


class Wrapping:
    """Packets in, packets out."""

    def __init__(self, folder: Path, key_log: Path, version: str, ciphers: str | None) -> None:
        self._client, self._server = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._client.check_hostname, self._client.verify_mode = False, ssl.CERT_NONE
        self._server.load_cert_chain(certificate(folder))
        for context in (self._client, self._server):
            context.minimum_version = context.maximum_version = VERSIONS[version]
            if ciphers:
                context.set_ciphers(ciphers)
        self._client.keylog_filename = str(key_log)
        self._sides: dict[Flow, Side] = {}
        self._shaken: set[Flow] = set()

    @property
    def records(self) -> dict[Flow, list[Record]]:
        return {flow: side.records for flow, side in self._sides.items()}

    def of(self, packet: Packet) -> Iterator[bytes]:
        flow, back = packet.flow, packet.flow[2:] + packet.flow[:2]
        if packet.flags & SYN:
            if flow in self._sides:
                return
            context, server = (self._server, True) if packet.flags & ACK else (self._client, False)
            if server and back not in self._sides:
                return
            self._sides[flow] = Side(End(context, server=server), packet.seq, (packet.seq + 1) % WHOLE)
            yield self._packet(packet, packet.seq, packet.flags, b"")
            return
        mine, other = self._sides.get(flow), self._sides.get(back)
        if mine is None or other is None or mine.is_over:
            return
        if flow not in self._shaken:
            self._shaken |= {flow, back}
            yield from self._shake(packet, *((other, mine) if mine.end.tls.server_side else (mine, other)))
        yield from self._say(packet, mine)

    def _say(self, packet: Packet, mine: Side) -> Iterator[bytes]:
        self._take(packet, mine)
        if mine.waiting and packet.flags & (PSH | FIN):
            data = bytes(mine.waiting)
            mine.waiting.clear()
            yield from self._segments(packet, mine, mine.sealed(data))
        if not packet.payload or packet.flags & (FIN | RST):
            yield self._packet(packet, self._seq(mine), packet.flags, b"")
            mine.is_over = bool(packet.flags & (FIN | RST))

    def _take(self, packet: Packet, mine: Side) -> None:
        again = (mine.next_seq - packet.seq) % WHOLE
        mine.has_hole = mine.has_hole or (bool(packet.payload) and again >= WHOLE // 2)
        new = packet.payload[again:] if again < WHOLE // 2 else b""
        if new and not mine.has_hole:
            mine.waiting += new
            mine.next_seq = (mine.next_seq + len(new)) % WHOLE
            mine.longest = max(mine.longest, len(packet.payload))

    def _shake(self, packet: Packet, client: Side, server: Side) -> Iterator[bytes]:
        """Every flight at the time of the packet that completes TCP's handshake."""
        for _ in range(SHAKES):
            for one, other in ((client, server), (server, client)):
                one.end.shake()
                if wire := one.end.outside.read():
                    other.end.inside.write(wire)
                    yield from self._segments(packet, one, wire)

    def _segments(self, packet: Packet, side: Side, wire: bytes) -> Iterator[bytes]:
        for at in range(0, len(wire), side.longest):
            part = wire[at : at + side.longest]
            flags = ACK | (PSH if at + side.longest >= len(wire) else 0)
            seq = self._seq(side)
            side.wire_said += len(part)
            yield self._packet(packet, seq, flags, part, side)

    @staticmethod
    def _seq(side: Side) -> int:
        return (side.isn + 1 + side.wire_said) % WHOLE

    def _packet(self, packet: Packet, seq: int, flags: int, payload: bytes, side: Side | None = None) -> bytes:
        flow = packet.flow
        head = bytearray(packet.head)
        if side is not None and side is not self._sides[flow]:
            flow = flow[2:] + flow[:2]
            turn(head, packet)
        other = self._sides.get(flow[2:] + flow[:2])
        ack = self._seq(other) if other is not None and flags & ACK else 0
        struct.pack_into(">II", head, packet.tcp_at + 4, seq, ack)
        head[packet.tcp_at + 13] = flags & 0xFF
        struct.pack_into(">H", head, packet.ip_at + 2, len(head) - packet.ip_at + len(payload))
        struct.pack_into(">H", head, packet.ip_at + 10, 0)
        length = 4 * (head[packet.ip_at] & 15)
        total = sum(struct.unpack_from(f">{length // 2}H", head, packet.ip_at))
        total = (total & 0xFFFF) + (total >> 16)
        struct.pack_into(">H", head, packet.ip_at + 10, ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF)
        size = len(head) + len(payload)
        return packet.when + struct.pack("<II", size, size) + head + payload


def turn(head: bytearray, packet: Packet) -> None:
    """Source and target change places."""
    ip, tcp = packet.ip_at, packet.tcp_at
    head[ip + 12 : ip + 20] = head[ip + 16 : ip + 20] + head[ip + 12 : ip + 16]
    head[tcp : tcp + 4] = head[tcp + 2 : tcp + 4] + head[tcp : tcp + 2]


def packets(file: BinaryIO) -> Iterator[Packet]:
    """TCP over IPv4, of a little-endian pcap."""
    link = struct.unpack("<I", file.read(24)[20:24])[0]
    while len(record := file.read(16)) == 16:
        data = file.read(struct.unpack_from("<I", record, 8)[0])
        ip = LINK_BYTES[link]
        if data[ip] >> 4 != 4 or data[ip + 9] != 6:
            continue
        tcp = ip + 4 * (data[ip] & 15)
        source, target, seq = struct.unpack_from(">HHI", data, tcp)
        begin, end = tcp + 4 * (data[tcp + 12] >> 4), ip + struct.unpack_from(">H", data, ip + 2)[0]
        flow = (
            ".".join(map(str, data[ip + 12 : ip + 16])),
            source,
            ".".join(map(str, data[ip + 16 : ip + 20])),
            target,
        )
        yield Packet(record[:8], data[:begin], ip, tcp, flow, seq, data[tcp + 13], data[begin:end])


def wrap(
    source: Path, target: Path, key_log: Path, version: str = "1.3", ciphers: str | None = None
) -> dict[Flow, list[Record]]:
    """Of each direction its records of application data."""
    key_log.unlink(missing_ok=True)
    with source.open("rb") as file, target.open("wb") as out, tempfile.TemporaryDirectory() as folder:
        wrapping = Wrapping(Path(folder), key_log, version, ciphers)
        out.write(file.read(24))
        file.seek(0)
        for packet in packets(file):
            out.writelines(wrapping.of(packet))
    return wrapping.records


def main() -> None:
    parser = argparse.ArgumentParser(description="a capture again, inside TLS")
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("key_log", type=Path)
    parser.add_argument("--version", choices=VERSIONS, default="1.3")
    parser.add_argument("--ciphers")
    given = parser.parse_args()
    wrap(given.source, given.target, given.key_log, given.version, given.ciphers)


if __name__ == "__main__":
    main()
