"""Traffic for tests: bytes of a conversation in, TCP segments, packets and capture files out.

Knows: TCP segments, IPv4 and IPv6 with extension headers, the link layers, pcap and pcapng.
Refuses to know: anything of ours; it shares no line and no constant with what it tests.
Rule: plain struct and bytes, one packet at a time; speed is for bench/traffic.py.
"""

import ipaddress
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
ETHERNET, NULL, RAW, LOOP, SLL, IPV4, IPV6, SLL2 = 1, 0, 101, 108, 113, 228, 229, 276

Endpoint = tuple[str, int]


@dataclass(frozen=True)
class Segment:
    src: Endpoint
    dst: Endpoint
    seq: int
    ack: int
    flags: int
    payload: bytes = b""
    ts_ns: int = 0
    window: int = 65535


@dataclass
class Talk:
    """One connection: what each side says, cut into segments of `mss` bytes, `step_ns` apart."""

    client: Endpoint = ("10.0.0.1", 40000)
    server: Endpoint = ("10.0.0.9", 9092)
    mss: int = 1448
    client_seq: int = 1000
    server_seq: int = 9_000_000
    ts_ns: int = 1_700_000_000_000_000_000
    step_ns: int = 1_000_000
    segments: list[Segment] = field(default_factory=list)

    def _say(self, from_client: bool, flags: int, payload: bytes = b"") -> None:
        src, dst = (self.client, self.server) if from_client else (self.server, self.client)
        seq, ack = (self.client_seq, self.server_seq) if from_client else (self.server_seq, self.client_seq)
        self.segments.append(
            Segment(src, dst, seq % 2**32, (ack % 2**32) if flags & ACK else 0, flags, payload, self.ts_ns)
        )
        said = len(payload) + (1 if flags & (SYN | FIN) else 0)
        if from_client:
            self.client_seq += said
        else:
            self.server_seq += said
        self.ts_ns += self.step_ns

    def open(self) -> "Talk":
        self._say(True, SYN)
        self._say(False, SYN | ACK)
        self._say(True, ACK)
        return self

    def request(self, data: bytes) -> "Talk":
        return self._send(True, data)

    def response(self, data: bytes) -> "Talk":
        return self._send(False, data)

    def _send(self, from_client: bool, data: bytes) -> "Talk":
        for at in range(0, len(data), self.mss):
            self._say(from_client, PSH | ACK, data[at : at + self.mss])
        return self

    def close(self) -> "Talk":
        self._say(True, FIN | ACK)
        self._say(False, FIN | ACK)
        self._say(True, ACK)
        return self

    def reset(self, *, by_client: bool = False) -> "Talk":
        self._say(by_client, RST)
        return self


def size_prefixed(message: bytes) -> bytes:
    return struct.pack(">i", len(message)) + message


# Packets, from the inside out.


def tcp(segment: Segment, options: bytes = b"") -> bytes:
    """A TCP segment with its header; options are padded to four bytes. No checksum: capture never looks at it."""
    options += bytes(-len(options) % 4)
    first = ((5 + len(options) // 4) << 12) | segment.flags
    ports = (segment.src[1], segment.dst[1])
    head = struct.pack(">HHIIHHHH", *ports, segment.seq, segment.ack, first, segment.window, 0, 0)
    return head + options + segment.payload


def ipv4(src: str, dst: str, body: bytes, *, protocol=6, options=b"", fragment=0, total=None) -> bytes:
    options += bytes(-len(options) % 4)
    size = 20 + len(options)
    total = size + len(body) if total is None else total
    head = struct.pack(">BBHHHBBH", 0x40 | size // 4, 0, total, 7, fragment, 64, protocol, 0)
    return head + ipaddress.IPv4Address(src).packed + ipaddress.IPv4Address(dst).packed + options + body


def ipv6(src: str, dst: str, body: bytes, *, chain: Sequence[tuple[int, bytes]] = (), protocol=6, length=None) -> bytes:
    """`chain` are extension headers: (their own number, their bytes from the second one on)."""
    numbers = [number for number, _ in chain] + [protocol]
    extensions = b"".join(bytes([numbers[i + 1]]) + rest for i, (_, rest) in enumerate(chain))
    length = len(extensions) + len(body) if length is None else length
    head = struct.pack(">IHBB", 6 << 28, length, numbers[0], 64)
    return head + ipaddress.IPv6Address(src).packed + ipaddress.IPv6Address(dst).packed + extensions + body


def ip(segment: Segment) -> bytes:
    build = ipv6 if ":" in segment.src[0] else ipv4
    return build(segment.src[0], segment.dst[0], tcp(segment))


def ether_type(packet: bytes) -> int:
    return 0x86DD if packet[:1] and packet[0] >> 4 == 6 else 0x0800


def ethernet(packet: bytes, *, vlans: Sequence[tuple[int, int]] = (), kind: int | None = None) -> bytes:
    """`vlans` are tags from the outside in: (tag protocol, tag)."""
    tags = b"".join(struct.pack(">HH", protocol, tag) for protocol, tag in vlans)
    return bytes(12) + tags + struct.pack(">H", ether_type(packet) if kind is None else kind) + packet


def sll(packet: bytes) -> bytes:
    return struct.pack(">HHH8sH", 0, 1, 6, bytes(8), ether_type(packet)) + packet


def sll2(packet: bytes) -> bytes:
    return struct.pack(">HHIHBB8s", ether_type(packet), 0, 2, 1, 0, 6, bytes(8)) + packet


def loopback(packet: bytes, family: int, order: str) -> bytes:
    return struct.pack(order + "I", family) + packet


# Capture files.


@dataclass(frozen=True)
class Packet:
    ts_ns: int
    data: bytes
    wire: int | None = None  # length on the wire when it is not all here
    interface: int = 0

    @property
    def wire_bytes(self) -> int:
        return len(self.data) if self.wire is None else self.wire


def packets(segments: Iterable[Segment]) -> list[Packet]:
    return [Packet(s.ts_ns, ethernet(ip(s))) for s in segments]


def cut(packet: Packet, snaplen: int) -> Packet:
    return replace(packet, data=packet.data[:snaplen], wire=packet.wire_bytes)


def pcap(given: Iterable[Packet], *, link_type=ETHERNET, order="<", nanoseconds=False, snaplen=262144) -> bytes:
    magic, unit = (0xA1B23C4D, 1) if nanoseconds else (0xA1B2C3D4, 1000)
    out = [struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, snaplen, link_type)]
    for p in given:
        seconds, fraction = divmod(p.ts_ns, 10**9)
        out += [struct.pack(order + "IIII", seconds, fraction // unit, len(p.data), p.wire_bytes), p.data]
    return b"".join(out)


@dataclass(frozen=True)
class Interface:
    link_type: int = ETHERNET
    snaplen: int = 0
    resolution: int | None = None  # if_tsresol; None leaves microseconds
    offset_s: int | None = None  # if_tsoffset


def block(kind: int, body: bytes, order="<") -> bytes:
    body += bytes(-len(body) % 4)
    size = struct.pack(order + "I", 12 + len(body))
    return struct.pack(order + "I", kind) + size + body + size


def option(code: int, value: bytes, order="<") -> bytes:
    return struct.pack(order + "HH", code, len(value)) + value + bytes(-len(value) % 4)


def section(order="<") -> bytes:
    return block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1), order)


def interface_block(interface: Interface, order="<") -> bytes:
    body = struct.pack(order + "HHI", interface.link_type, 0, interface.snaplen)
    if interface.resolution is not None:
        body += option(9, bytes([interface.resolution]), order)
    if interface.offset_s is not None:
        body += option(14, struct.pack(order + "q", interface.offset_s), order)
    return block(1, body + option(0, b"", order), order)


def ticks(ts_ns: int, interface: Interface) -> int:
    since = ts_ns - (interface.offset_s or 0) * 10**9
    resolution = 6 if interface.resolution is None else interface.resolution
    per_second = 2 ** (resolution & 127) if resolution & 128 else 10**resolution
    return since * per_second // 10**9


def enhanced_packet(packet: Packet, interface: Interface, order="<", options=b"") -> bytes:
    high, low = divmod(ticks(packet.ts_ns, interface), 2**32)
    numbers = (packet.interface, high, low, len(packet.data), packet.wire_bytes)
    return block(6, struct.pack(order + "IIIII", *numbers) + padded(packet.data) + options, order)


def old_packet(packet: Packet, interface: Interface, order="<", dropped=0xFFFF) -> bytes:
    high, low = divmod(ticks(packet.ts_ns, interface), 2**32)
    numbers = (packet.interface, dropped, high, low, len(packet.data), packet.wire_bytes)
    return block(2, struct.pack(order + "HHIIII", *numbers) + padded(packet.data), order)


def simple_packet(packet: Packet, order="<") -> bytes:
    return block(3, struct.pack(order + "I", packet.wire_bytes) + packet.data, order)


def statistics_block(interface: int, dropped: int, order="<") -> bytes:
    return block(
        5, struct.pack(order + "III", interface, 0, 0) + option(5, struct.pack(order + "Q", dropped), order), order
    )


def padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def pcapng(given: Iterable[Packet], interfaces: Sequence[Interface] = (Interface(),), *, order="<") -> bytes:
    out = [section(order), *(interface_block(i, order) for i in interfaces)]
    out += [enhanced_packet(p, interfaces[p.interface], order) for p in given]
    return b"".join(out)
