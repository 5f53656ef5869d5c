"""Wide fleets: what one more connection, client, topic, partition or broker costs a local replay.

Knows: captures of closed connections with one Metadata and one Heartbeat exchange each, at two sizes that differ in one
dimension, and the command as a user runs it. Refuses to know: what the command does with them.
Rule: four times as much costs at most BAR times the CPU time and the memory, the start of the command left out: that is
what a capture of one connection takes. The least CPU time of RUNS counts. Nothing is cached between connections but
what a client and a broker say, so that any number of them is written in seconds.
"""

import json
import os
import struct
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from random import Random
from typing import NamedTuple

from bench import kafka_bytes as kafka
from bench.contained import nothing_contained_in
from bench.replay import barred, ours, row
from bench.traffic import ACK, FIN, PSH, SEGMENT_BYTES, START_US, SYN, Connection, record

TIMES, BAR, RUNS = 4, 4.4, 2
PACKET_US = 20
TIME_AT, SEQ_AT, ACK_AT = 0, 54, 58  # in a packet of a capture file
MOST_PORTS = 60_000
ALL_TOPICS = b"\x00"


@dataclass(frozen=True)
class Fleet:
    """How much there is of everything."""

    connections: int
    clients: int
    topics: int = 20
    partitions: int = 2  # of each topic
    brokers: int = 3

    def times(self, *dimensions: str) -> "Fleet":
        return replace(self, **{name: getattr(self, name) * TIMES for name in dimensions})


ONE = Fleet(1, 1)
WIDE = {
    "connections of as many clients": (Fleet(2_000, 2_000), ("connections", "clients")),
    "connections of 20 clients": (Fleet(2_000, 20), ("connections",)),
    "topics": (Fleet(4, 4, topics=4_000), ("topics",)),
    "partitions of 20 topics": (Fleet(4, 4, partitions=500), ("partitions",)),
    "brokers": (Fleet(200, 20, topics=200, brokers=40), ("brokers",)),
}
"""By what grows: the smaller fleet, and its dimensions that are TIMES as large in the larger one."""


class Cost(NamedTuple):
    cpu_s: float
    memory_mb: float


def measure() -> list[dict]:
    with tempfile.TemporaryDirectory(prefix="wirecheck-bench-") as folder:
        pcap = Path(folder) / "wide.pcap"
        found = [(what, *costs(pcap, fleet, grows)) for what, (fleet, grows) in WIDE.items()]
    start = Cost(*map(min, zip(*(each for _, each, *_ in found), strict=True)))
    rows = [*rows_of("start", start)]
    for what, _, before, after in found:
        fleet, grows = WIDE[what]
        rows += rows_of(f"{getattr(fleet, grows[0]):,} {what}", before)
        rows += rows_of(f"{getattr(fleet, grows[0]) * TIMES:,} {what}", after)
        for name, unit in (("cpu_s", "CPU"), ("memory_mb", "memory")):
            least, one, other = (getattr(each, name) for each in (start, before, after))
            rows.append(
                barred(f"wide, {what}: {unit} of {TIMES} times as many", (other - least) / (one - least), BAR, "x")
            )
    return rows


def costs(pcap: Path, fleet: Fleet, grows: tuple[str, ...]) -> tuple[Cost, Cost, Cost]:
    """Of the start, of a fleet and of the larger one, at one time: other work makes a machine slower for a while."""
    return cost(pcap, ONE), cost(pcap, fleet), cost(pcap, fleet.times(*grows))


def rows_of(what: str, spent: Cost) -> Iterator[dict]:
    yield row(f"wide, {what}: CPU", spent.cpu_s, "s", None)
    yield row(f"wide, {what}: peak memory", spent.memory_mb, "MB", None)


def cost(pcap: Path, fleet: Fleet) -> Cost:
    """Of a replay in which every client is found, and nothing else is."""
    with pcap.open("wb") as file:
        file.writelines(packets(fleet))
    found = [replayed(pcap, fleet) for _ in range(RUNS)]
    return Cost(min(one.cpu_s for one in found), min(one.memory_mb for one in found))


def replayed(pcap: Path, fleet: Fleet) -> Cost:
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(ours(pcap, "local"), stdout=out)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = status
        out.seek(0)
        result = json.load(out)
    nothing_contained_in(result["findings"])
    found = [len(result[table]) for table in ("clients", "topics", "findings")] + [result["coverage"]["exchanges"]]
    if found != [fleet.clients, fleet.topics, 0, 2 * fleet.connections]:
        msg = f"{fleet}: found {found}"
        raise RuntimeError(msg)
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e6)


# --- the captures


class Client(Connection):
    """One connection of a client."""

    @property
    def client_id(self) -> str:
        return self.role


def packets(fleet: Fleet) -> Iterator[bytes]:
    """A capture file: one connection after the other."""
    yield struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1)
    sent = 0
    for number in range(fleet.connections):
        for packet in packets_of(connection(fleet, number), said(fleet, number % fleet.clients)):
            now_us = START_US + sent * PACKET_US
            struct.pack_into("<II", packet, TIME_AT, *divmod(now_us, 1_000_000))
            sent += 1
            yield packet


def connection(fleet: Fleet, number: int) -> Client:
    client = number % fleet.clients
    host, port = struct.pack(">I", 0x0A020000 + client), 1024 + number // fleet.clients % MOST_PORTS
    broker = bytes(map(int, brokers(fleet)[number % fleet.brokers][1].split(".")))
    return Client(number, f"client-{client:06}", (host, port), (broker, 9092), kafka.Topic("", b""))


@cache
def brokers(fleet: Fleet) -> list[tuple[int, str]]:
    return [(number + 1, f"10.0.{number >> 8}.{number & 255}") for number in range(fleet.brokers)]


@cache
def metadata(fleet: Fleet) -> tuple[kafka.Message, kafka.Message]:
    random = Random(fleet.topics)
    ids = [uuid.UUID(bytes=random.randbytes(16), version=4).bytes for _ in range(fleet.topics)]  # as Kafka makes them
    topics = [kafka.Topic(f"orders-{number:06}", topic_id) for number, topic_id in enumerate(ids)]
    return kafka.metadata("", topics, fleet.partitions, brokers(fleet))


def said(fleet: Fleet, client: int) -> Iterator[tuple[bool, bytes]]:
    """What the client and the broker send in turn, and whether it is the client."""
    name = f"client-{client:06}"
    asked = kafka.request(kafka.METADATA, 12, name, ALL_TOPICS + b"\x01\x00" + kafka.NO_TAGS)
    for number, pair in enumerate(((asked, metadata(fleet)[1]), kafka.heartbeat(name))):
        for from_client, message in zip((True, False), pair, strict=True):
            at = message.correlation_at
            yield from_client, message.data[:at] + struct.pack(">i", number) + message.data[at + 4 :]


def packets_of(c: Client, messages: Iterator[tuple[bool, bytes]]) -> Iterator[bytearray]:
    """From the handshake to the end, without times."""
    after = {True: 1_000 + c.number, False: 5_000 + c.number}

    def packet(from_client: bool, flags: int, payload: bytes = b"") -> bytearray:
        made = bytearray(record(c, from_client, flags, payload))
        struct.pack_into(">I", made, SEQ_AT, after[from_client])
        struct.pack_into(">I", made, ACK_AT, after[not from_client] if flags & ACK else 0)
        after[from_client] += len(payload) + (1 if flags & (SYN | FIN) else 0)
        return made

    yield from (packet(True, SYN), packet(False, SYN | ACK), packet(True, ACK))
    for from_client, message in messages:
        for at in range(0, len(message), SEGMENT_BYTES):
            yield packet(from_client, ACK | PSH, message[at : at + SEGMENT_BYTES])
    yield from (packet(True, FIN | ACK), packet(False, FIN | ACK), packet(True, ACK))


if __name__ == "__main__":
    print(json.dumps(measure(), indent=1))
