"""The few Kafka messages the benches' traffic is made of, encoded by hand.

Knows: the layouts of ApiVersions 3, Metadata 12, Fetch 12 and 13, Produce 9 and Heartbeat 4 (all flexible), and a
record batch that a broker would take (CRC included).
Refuses to know: anything of ours but CRC-32C, so that a bench cannot agree with the decoder about a mistake.
Rule: a change is held against an independent strict decoder (kio) before it is committed; tests hold the framing.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from wirecheck.decode.log.checksum import crc32c

PRODUCE, FETCH, METADATA, HEARTBEAT, API_VERSIONS = 0, 1, 3, 12, 18
NO_TAGS = b"\x00"
NODES = ((1, "10.0.0.11"), (2, "10.0.0.12"), (3, "10.0.0.13"))
CLUSTER_ID = "wirecheck-bench-cluster"


@dataclass(frozen=True)
class Topic:
    name: str
    topic_id: bytes


@dataclass
class Message:
    """Bytes with their size in front, and where the numbers stand that change from one sending to the next."""

    data: bytes
    correlation_at: int
    epoch_at: int | None = None  # a fetch session's epoch, int32
    offset_at: list[int] = field(default_factory=list)  # log offsets, int64


def varint(number: int) -> bytes:
    out = b""
    while number >= 0x80:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def text(value: str | None) -> bytes:
    return b"\x00" if value is None else varint(len(value) + 1) + value.encode()


def array(*elements: bytes) -> bytes:
    return varint(len(elements) + 1) + b"".join(elements)


def request(key: int, version: int, client_id: str, body: bytes) -> Message:
    head = struct.pack(">hhih", key, version, 0, len(client_id)) + client_id.encode() + NO_TAGS
    return Message(struct.pack(">i", len(head + body)) + head + body, correlation_at=8)


def response(body: bytes, *, tagged_header: bool = True) -> Message:
    head = bytes(4) + (NO_TAGS if tagged_header else b"")
    return Message(struct.pack(">i", len(head + body)) + head + body, correlation_at=4)


def after(message: Message, body: bytes, at: int) -> int:
    """Where byte `at` of the body stands in the message."""
    return len(message.data) - len(body) + at


def zigzag(number: int) -> bytes:
    return varint(number << 1)


def record_batch(value: bytes) -> bytes:
    """Record batch v2 of one record. Its base offset is outside of the checksum: it may be changed afterwards."""
    record = b"\x00" + zigzag(0) + zigzag(0) + b"\x01" + zigzag(len(value)) + value + zigzag(0)
    record = zigzag(len(record)) + record
    checked = struct.pack(">hiqqqhii", 0, 0, 1_700_000_000_000, 1_700_000_000_000, -1, -1, -1, 1) + record
    tail = struct.pack(">ibI", 0, 2, crc32c(checked)) + checked
    return struct.pack(">qi", 0, len(tail)) + tail


def api_versions(client_id: str) -> tuple[Message, Message]:
    ranges = ((PRODUCE, 0, 9), (FETCH, 0, 13), (METADATA, 0, 12), (HEARTBEAT, 0, 4), (API_VERSIONS, 0, 3))
    keys = array(*(struct.pack(">hhh", *row) + NO_TAGS for row in ranges))
    asked = request(API_VERSIONS, 3, client_id, text("apache-kafka-java") + text("3.9.1") + NO_TAGS)
    answered = response(struct.pack(">h", 0) + keys + struct.pack(">i", 0) + NO_TAGS, tagged_header=False)
    return asked, answered


def metadata(
    client_id: str, topics: list[Topic], partitions: int, brokers: Sequence[tuple[int, str]] = NODES
) -> tuple[Message, Message]:
    """`brokers`: their ids and hosts; the first three of them hold every partition."""
    names = array(*(bytes(16) + text(topic.name) + NO_TAGS for topic in topics))
    asked = request(METADATA, 12, client_id, names + b"\x01\x00" + NO_TAGS)
    listed = array(*(struct.pack(">i", n) + text(host) + struct.pack(">i", 9092) + b"\x00\x00" for n, host in brokers))
    rows = [listed, text(CLUSTER_ID), struct.pack(">i", 1)]
    described = []
    for topic in topics:
        parts = []
        for p in range(partitions):
            leader = struct.pack(">hiii", 0, p, brokers[p % 3][0], 4)
            nodes = array(*(struct.pack(">i", n) for n, _ in brokers[:3]))
            parts.append(leader + nodes + nodes + array() + NO_TAGS)
        head = struct.pack(">h", 0) + text(topic.name) + topic.topic_id + b"\x00"
        described.append(head + array(*parts) + struct.pack(">i", -(2**31)) + NO_TAGS)
    body = struct.pack(">i", 0) + b"".join(rows) + array(*described) + NO_TAGS
    return asked, response(body)


@dataclass(frozen=True)
class Session:
    replica_id: int
    asked: int  # 0 opens a session
    given: int


def fetch(version: int, client_id: str, topic: Topic, session: Session, value: bytes | None) -> tuple[Message, Message]:
    """No value: an empty incremental answer."""
    name = text(topic.name) if version < 13 else topic.topic_id
    partitions = [struct.pack(">iiqiqi", p, 4, 0, -1, -1, 1 << 20) + NO_TAGS for p in range(2)]
    asked_topics = array(name + array(*partitions) + NO_TAGS)
    head = struct.pack(">iiiibii", session.replica_id, 500, 1, 50 << 20, 0, session.asked, 0)
    body = head + asked_topics + array() + text("") + NO_TAGS
    asked = request(FETCH, version, client_id, body)
    asked.epoch_at = after(asked, body, 21)
    first = len(head) + 1 + len(name) + 1 + 8  # first partition's fetch offset
    asked.offset_at = [after(asked, body, first)]
    given = struct.pack(">ihi", 0, 0, session.given)
    if value is None:
        return asked, response(given + array() + NO_TAGS)
    batch = record_batch(value)
    numbers = struct.pack(">ihqqq", 0, 0, 1 << 40, 1 << 40, 0)
    partition = numbers + b"\x00" + struct.pack(">i", -1) + varint(len(batch) + 1)
    before = given + varint(2) + name + varint(2) + partition
    body = before + batch + NO_TAGS + NO_TAGS + NO_TAGS
    answered = response(body)
    answered.offset_at = [after(answered, body, len(before))]
    return asked, answered


def produce(client_id: str, topic: Topic, value: bytes) -> tuple[Message, Message]:
    batch = record_batch(value)
    partition = struct.pack(">i", 0) + varint(len(batch) + 1) + batch + NO_TAGS
    body = text(None) + struct.pack(">hi", -1, 30000) + array(text(topic.name) + array(partition) + NO_TAGS) + NO_TAGS
    asked = request(PRODUCE, 9, client_id, body)
    head = struct.pack(">ihqqq", 0, 0, 0, -1, 0) + array() + text(None) + NO_TAGS
    body = array(text(topic.name) + array(head) + NO_TAGS) + struct.pack(">i", 0) + NO_TAGS
    answered = response(body)
    answered.offset_at = [after(answered, body, 1 + len(text(topic.name)) + 1 + 6)]
    return asked, answered


def heartbeat(client_id: str) -> tuple[Message, Message]:
    body = text("bench-group") + struct.pack(">i", 3) + text(f"{client_id}-1") + text(None) + NO_TAGS
    return request(HEARTBEAT, 4, client_id, body), response(struct.pack(">ih", 0, 0) + NO_TAGS)
