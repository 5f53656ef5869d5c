"""Captures for the benches: a pcap of any size, as a span port beside three busy brokers would write it.

    python -m bench.traffic OUT.pcap 1G [--mix records|small] [--connections 200] [--seed 1]

Knows: connections that open, talk in turn and at the same time, acknowledge and close; what each kind of client says.
Refuses to know: how anything of ours reads it. Same arguments, same bytes.
Rule: fast by templates. The packets of one round (every connection has one exchange) are laid out once; each further
round only moves times, sequence numbers, correlation ids, session epochs and log offsets: 1 GB takes a few seconds.

mix "records": 90 % of the bytes are records (26 kB batches). mix "small": a few hundred bytes per message.
"""

import argparse
import struct
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np

from bench import kafka_bytes as kafka

SEGMENT_BYTES = 1448
START_US = 1_700_000_000_000_000
ROUND_US = 20_000
TEMPLATES = 8
RECORD_BYTES = {"records": 26_000, "small": 150}
SYN, FIN, PSH, ACK = 2, 1, 8, 16
# One row per frame of a template.
CONNECTION, FROM_CLIENT, AFTER_CLIENT, AFTER_SERVER, AT_US, BYTE = range(6)


@dataclass(frozen=True)
class Connection:
    number: int
    role: str  # "consumer 12", "consumer 13", "replica", "producer", "member"
    client: tuple[bytes, int]
    server: tuple[bytes, int]
    topic: kafka.Topic

    @property
    def client_id(self) -> str:
        return f"{self.role.split()[0]}-{self.number}"


@dataclass
class Template:
    """The pcap records of one stretch of time, and where in them what changes stands."""

    data: np.ndarray
    frames: np.ndarray  # [frames, 6]
    correlation: np.ndarray  # [n, 2]: connection, byte
    epoch: np.ndarray
    offset: np.ndarray
    said: np.ndarray  # [connections, 2]: bytes each client and server says
    fetches: np.ndarray  # [connections]
    exchanges: int


@dataclass
class Layout:
    """Packets in the making: every connection's frames with the microsecond they are due."""

    connections: list[Connection]
    rows: list[tuple[int, int, int, int, int, bytes]] = field(default_factory=list)
    marks: list[tuple[int, str, int, int]] = field(default_factory=list)  # frame, what, connection, byte in the frame
    exchanges: int = 0

    def __post_init__(self) -> None:
        self.said = np.zeros((len(self.connections), 2), np.int64)
        self.due_us = np.zeros(len(self.connections), np.int64)
        self.fetches = np.zeros(len(self.connections), np.int64)

    def frame(self, c: Connection, from_client: bool, flags: int, payload: bytes = b"") -> None:
        client, server = self.said[c.number]
        packet = record(c, from_client, flags, payload)
        self.rows.append((c.number, int(from_client), int(client), int(server), int(self.due_us[c.number]), packet))
        self.said[c.number, 0 if from_client else 1] += len(payload) + (1 if flags & (SYN | FIN) else 0)
        self.due_us[c.number] += 15

    def message(self, c: Connection, from_client: bool, message: kafka.Message) -> None:
        changes = [("correlation", message.correlation_at), *(("offset", at) for at in message.offset_at)]
        changes += [("epoch", message.epoch_at)] if message.epoch_at else []
        for number, at in enumerate(range(0, len(message.data), SEGMENT_BYTES)):
            last = at + SEGMENT_BYTES >= len(message.data)
            if at == 0:
                head = HEADER_BYTES
                self.marks += [(len(self.rows), what, c.number, head + byte) for what, byte in changes]
            self.frame(c, from_client, ACK | (PSH if last else 0), message.data[at : at + SEGMENT_BYTES])
            if number % 2 == 1 and not last:
                self.frame(c, not from_client, ACK)

    def exchange(self, c: Connection, pair: tuple[kafka.Message, kafka.Message]) -> None:
        self.message(c, True, pair[0])
        self.due_us[c.number] += 200
        self.message(c, False, pair[1])
        self.frame(c, True, ACK)
        self.exchanges += 1

    def template(self) -> Template:
        order = sorted(range(len(self.rows)), key=lambda i: (self.rows[i][4], i))
        sizes = np.array([len(self.rows[i][5]) for i in order])
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        start_of = dict(zip(order, starts.tolist(), strict=True))
        data = np.frombuffer(b"".join(self.rows[i][5] for i in order), np.uint8).copy()
        frames = np.array([[*self.rows[i][:5], start_of[i]] for i in order], np.int64)

        def places(kind: str) -> np.ndarray:
            found = [(c, start_of[frame] + byte) for frame, what, c, byte in self.marks if what == kind]
            return np.array(found, np.int64).reshape(-1, 2)

        kinds = [places(kind) for kind in ("correlation", "epoch", "offset")]
        return Template(data, frames, *kinds, self.said, self.fetches, self.exchanges)


HEADER_BYTES = 16 + 14 + 20 + 32


def record(c: Connection, from_client: bool, flags: int, payload: bytes) -> bytes:
    """One packet behind its pcap header; time, sequence and acknowledgement are still to come."""
    (src, src_port), (dst, dst_port) = (c.client, c.server) if from_client else (c.server, c.client)
    tcp = struct.pack(">HHIIHHHH", src_port, dst_port, 0, 0, 8 << 12 | flags, 4096, 0, 0)
    tcp += b"\x01\x01\x08\x0a" + bytes(8)
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 52 + len(payload), 0, 0x4000, 64, 6, 0, src, dst)
    total = sum(struct.unpack(">10H", ip))
    total = (total & 0xFFFF) + (total >> 16)
    ip = ip[:10] + struct.pack(">H", ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF) + ip[12:]
    packet = b"\x02\x00\x00\x00\x00\x02\x02\x00\x00\x00\x00\x01\x08\x00" + ip + tcp + payload
    return struct.pack("<IIII", 0, 0, len(packet), len(packet)) + packet


ROLES = ("consumer 12", "consumer 13", "consumer 13", "producer", "producer", "replica", "consumer 12", "member")


def connections(count: int) -> list[Connection]:
    topics = [
        kafka.Topic(f"orders-{i}", bytes.fromhex("24cc4332f7de45a3b24e33d61aa0d1") + bytes([i])) for i in range(20)
    ]
    found = []
    for i in range(count):
        role = ROLES[i % len(ROLES)]
        client = bytes([10, 0, 0, 11 + (i + 1) % 3]) if role == "replica" else bytes([10, 1, i // 50, 1 + i % 50])
        server = bytes([10, 0, 0, 11 + i % 3])
        found.append(Connection(i, role, (client, 30000 + i), (server, 9092), topics[i % len(topics)]))
    return found


class Generator:
    """Preamble, rounds, farewell: the capture of one mix."""

    round_us, templates = ROUND_US, TEMPLATES

    def __init__(self, found: list[Connection], mix: str, seed: int) -> None:
        self.connections, count = found, len(found)
        self.mix = mix
        self.random = np.random.default_rng(seed)
        self.next = np.zeros((count, 2), np.int64) + self.random.integers(1, 2**32, (count, 2))  # some will wrap
        self.correlation = np.zeros(count, np.int64)
        self.epoch = np.zeros(count, np.int64)
        self.frames = self.exchanges = self.bytes = 0
        self.now_us = START_US

    def write(self, file: BinaryIO, size: int) -> None:
        self.bytes += file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1))
        for opening in self._opening():
            self._send(file, opening)
        rounds = [self._round(k) for k in range(self.templates)]
        k = 0
        while self.bytes < size:
            self._send(file, rounds[k % self.templates])
            k += 1
        self._send(file, self._closing())

    def _layout(self) -> Layout:
        layout = Layout(self.connections)
        layout.due_us[:] = self.random.integers(0, self.round_us // 2, len(self.connections))
        return layout

    def _opening(self) -> list[Template]:
        """Handshake, then what every client asks first, then the fetch that opens a session."""
        steps = [self._layout() for _ in range(4)]
        for c in self.connections:
            steps[0].frame(c, True, SYN)
            steps[0].frame(c, False, SYN | ACK)
            steps[0].frame(c, True, ACK)
            steps[1].exchange(c, kafka.api_versions(c.client_id))
            steps[2].exchange(c, self._metadata(c))
            if self._fetches(c, None):
                steps[3].exchange(c, self._fetch(c, 0, self.random.bytes(100)))
                steps[3].fetches[c.number] = 1
            else:
                steps[3].exchange(c, kafka.heartbeat(c.client_id))
        return [step.template() for step in steps]

    def _round(self, k: int) -> Template:
        layout = self._layout()
        for c in self.connections:
            layout.exchange(c, self._pair(c, k))
            layout.fetches[c.number] = int(self._fetches(c, k))
        return layout.template()

    def _fetches(self, c: Connection, k: int | None) -> bool:
        metadata = k is not None and self._asks_for_metadata(c, k)
        return c.role.startswith(("consumer", "replica")) and not metadata

    def _fetch(self, c: Connection, asked: int, value: bytes | None) -> tuple[kafka.Message, kafka.Message]:
        replica_id = 1 + (c.number + 1) % 3 if c.role == "replica" else -1
        session = kafka.Session(replica_id, asked, 1000 + c.number)
        return kafka.fetch(12 if c.role.endswith("12") else 13, c.client_id, c.topic, session, value)

    def _metadata(self, c: Connection) -> tuple[kafka.Message, kafka.Message]:
        return kafka.metadata(c.client_id, [c.topic], 6)

    def _asks_for_metadata(self, c: Connection, k: int) -> bool:
        return (c.number + k) % TEMPLATES == 0 and c.role != "replica"

    def _pair(self, c: Connection, k: int) -> tuple[kafka.Message, kafka.Message]:
        if self._asks_for_metadata(c, k):
            return self._metadata(c)
        if c.role == "member":
            return kafka.heartbeat(c.client_id)
        value = self.random.bytes(RECORD_BYTES[self.mix] * int(self.random.integers(50, 150)) // 100)
        if c.role == "producer":
            return kafka.produce(c.client_id, c.topic, value)
        empty = self.mix == "small" and k % 2 == 0
        return self._fetch(c, 1000 + c.number, None if empty else value)

    def _closing(self) -> Template:
        layout = self._layout()
        for c in self.connections:
            layout.frame(c, True, FIN | ACK)
            layout.frame(c, False, FIN | ACK)
            layout.frame(c, True, ACK)
        return layout.template()

    def _send(self, file: BinaryIO, template: Template) -> None:
        data, rows = template.data, template.frames
        number, from_client = rows[:, CONNECTION], rows[:, FROM_CLIENT] == 1
        client = self.next[number, 0] + rows[:, AFTER_CLIENT]
        server = self.next[number, 1] + rows[:, AFTER_SERVER]
        at, due = rows[:, BYTE], self.now_us + rows[:, AT_US]
        put(data, at, due // 1_000_000, "<u4")
        put(data, at + 4, due % 1_000_000, "<u4")
        put(data, at + 54, np.where(from_client, client, server), ">u4")
        put(data, at + 58, np.where(from_client, server, client), ">u4")
        put(data, template.correlation[:, 1], self.correlation[template.correlation[:, 0]], ">u4")
        put(data, template.epoch[:, 1], self.epoch[template.epoch[:, 0]], ">u4")
        put(data, template.offset[:, 1], self.correlation[template.offset[:, 0]], ">u8")
        file.write(data.data)
        self.next += template.said
        self.epoch += template.fetches
        self.correlation += 1
        self.now_us = max(self.now_us + self.round_us, int(due.max()) + 1)
        self.frames += len(rows)
        self.exchanges += template.exchanges
        self.bytes += data.size


def put(data: np.ndarray, at: np.ndarray, values: np.ndarray, kind: str) -> None:
    """values[i] as `kind` at data[at[i]]."""
    raw = np.ascontiguousarray(values & (0xFFFFFFFF if kind.endswith("4") else -1)).astype(kind)
    width = raw.dtype.itemsize
    data[at[:, None] + np.arange(width)] = raw.view(np.uint8).reshape(-1, width)


def write_capture(path: Path, size: int, mix: str = "records", count: int = 200, seed: int = 1) -> Generator:
    """A pcap of at least `size` bytes; what it holds is in the generator's counts."""
    generator = Generator(connections(count), mix, seed)
    with path.open("wb") as file:
        generator.write(file, size)
    return generator


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("size", help="bytes, or with K, M, G")
    parser.add_argument("--mix", choices=sorted(RECORD_BYTES), default="records")
    parser.add_argument("--connections", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    scale = {"K": 10**3, "M": 10**6, "G": 10**9}.get(given.size[-1], 1)
    size = int(float(given.size.rstrip("KMG")) * scale)
    done = write_capture(given.out, size, given.mix, given.connections, given.seed)
    sys.stdout.write(f"{done.bytes} bytes, {done.frames} frames, {done.exchanges} exchanges\n")


if __name__ == "__main__":
    main()
