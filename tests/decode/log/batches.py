"""Record batches as bytes: what tests feed to decode.log.records and the modules of the metadata log; and what they
compare, a record as an object.

Knows: the formats, once more and the other way round, so that a mistake in the decoder is not repeated here.
Rule: every default is a legal batch; a test says only what it is about.
"""

import struct
import zlib
from dataclasses import dataclass, field

import cramjam

from wirecheck.decode.holes import laid_out
from wirecheck.decode.log import record_table as columns
from wirecheck.decode.log.metadata_log import field_entries
from wirecheck.decode.log.record_table import Reader
from wirecheck.decode.log.records import read_batches
from wirecheck.decode.log.secrets import LogSecrets

SNAPPY_HEADER = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)


def eight_bits(crc):
    """Bit by bit, from the polynomial (RFC 3720)."""
    for _ in range(8):
        crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc


OF_A_BYTE = [eight_bits(byte) for byte in range(256)]


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ OF_A_BYTE[crc & 0xFF ^ byte]
    return crc ^ 0xFFFFFFFF


def varint(number):
    """Signed, zigzag."""
    return uvarint(number << 1 if number >= 0 else (-number << 1) - 1)


def uvarint(number):
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def sized(content):
    return varint(-1) if content is None else varint(len(content)) + content


def record(value=b"v", *, key=None, offset=0, timestamp=0, headers=(), tail=b""):
    """A record of v2, its length before it; `tail` is what should not be there."""
    inside = b"\x00" + varint(timestamp) + varint(offset) + sized(key) + sized(value) + varint(len(headers))
    for name, content in headers:
        inside += sized(name) + sized(content)
    inside += tail
    return varint(len(inside)) + inside


@dataclass
class Batch:
    """A batch of v2 around records that are already bytes."""

    records: list = field(default_factory=lambda: [record()])
    base_offset: int = 0
    epoch: int = 0
    attributes: int = 0
    base_timestamp: int = 1_000
    max_timestamp: int = 1_000
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    last_delta: int | None = None
    count: int | None = None
    block: bytes | None = None  # in place of the records: what a codec made of them
    crc: int | None = None

    def bytes(self):
        count = len(self.records) if self.count is None else self.count
        last_delta = max(count - 1, 0) if self.last_delta is None else self.last_delta
        summed = struct.pack(
            ">hiqqqhii", self.attributes, last_delta, self.base_timestamp, self.max_timestamp, self.producer_id,
            self.producer_epoch, self.base_sequence, count,
        ) + (b"".join(self.records) if self.block is None else self.block)  # fmt: skip
        crc = crc32c(summed) if self.crc is None else self.crc
        return struct.pack(">qiibI", self.base_offset, len(summed) + 9, self.epoch, 2, crc) + summed


def batch(*values, **rest):
    """A batch whose records carry these values at consecutive offsets."""
    return Batch([record(value, offset=i) for i, value in enumerate(values)], **rest).bytes()


def message(value=b"v", *, key=None, magic=1, offset=0, attributes=0, timestamp=1_000, tail=b""):
    """A message of v0 or v1."""
    inside = struct.pack(">bb", magic, attributes) + (struct.pack(">q", timestamp) if magic else b"")
    for content in (key, value):
        inside += struct.pack(">i", -1) if content is None else struct.pack(">i", len(content)) + content
    inside += tail
    return struct.pack(">qiI", offset, len(inside) + 4, zlib.crc32(inside)) + inside


def entries(kept, left_out=()):
    return field_entries(laid_out(kept, left_out))


def secret_spans(data):
    """The spans to leave out of one records field of the metadata log."""
    return LogSecrets().feed(data)


def batches(data, left_out=()):
    """As decode.log.records reads a field; raises for the first batch that is none."""
    found = read_batches(laid_out(data, left_out))
    if found.refused is not None:
        raise found.refused
    return found


@dataclass(frozen=True)
class Record:
    """What lies in a hole is None, and `unseen` says that it is not null."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple = ()
    unseen: bool = False


def objects(records):
    """The records of a table of positions."""
    data, found = records.field.data.tobytes(), []

    def content(at, length):
        return data[at : at + length] if length >= 0 and records.field.known(at, at + length) else None

    for offset, timestamp_ms, key_at, key_bytes, value_at, value_bytes, at, count, unseen in records.table.tolist():
        seen = unseen != columns.STRUCTURE_UNSEEN
        key, value = (content(key_at, key_bytes), content(value_at, value_bytes)) if seen else (None, None)
        headers = tuple(headers_at(data, at, count if seen else 0))
        found.append(Record(offset, timestamp_ms, key, value, headers, unseen=unseen != columns.NOTHING_UNSEEN))
    return found


def headers_at(data, at, count):
    reader = Reader(data, at, len(data))
    for _ in range(count):
        length = reader.length(0)
        begin = reader.step_over(length)
        name = data[begin : begin + length].decode()
        length = reader.length(-1)
        begin = reader.step_over(length)
        yield name, (data[begin : begin + length] if length >= 0 else None)


def gzipped(content):
    return bytes(cramjam.gzip.compress(content))


def entry(kind, body, version=0, frame=1):
    """A metadata record's value: the frame, then the body."""
    return uvarint(frame) + uvarint(kind) + uvarint(version) + body


def text(content):
    """A compact string."""
    return b"\x00" if content is None else uvarint(len(content.encode()) + 1) + content.encode()


TOPIC_ID = bytes(range(16))


def topic(name="orders", topic_id=TOPIC_ID):
    return entry(2, text(name) + topic_id + b"\x00")


def remove_topic(topic_id=TOPIC_ID):
    return entry(9, topic_id + b"\x00")


def config(value="secret", name="ssl.keystore.password", resource="orders"):
    return entry(4, b"\x02" + text(resource) + text(name) + text(value) + b"\x00")


def marker(kind):
    """BeginTransaction (23), EndTransaction (24), AbortTransaction (25)."""
    return entry(kind, b"\x00")


def control(kind, value, key_version=0, **rest):
    """A control batch with one record."""
    key = struct.pack(">hh", key_version, kind)
    return Batch([record(value, key=key)], attributes=0x20, **rest).bytes()


def leader_change(leader=1, **rest):
    return control(2, struct.pack(">hi", 0, leader) + b"\x01\x01\x00", **rest)


def named_endpoint(host, port):
    return text("CONTROLLER") + text(host) + struct.pack(">H", port)


def voters(nodes, **rest):
    """The voter set (KIP-853): (id, host, port) each."""
    sets = b"".join(
        struct.pack(">i", node)
        + bytes(16)
        + b"\x02"
        + named_endpoint(host, port)
        + b"\0"
        + struct.pack(">hhH", 0, 1, 0)
        for node, host, port in nodes
    )
    return control(6, b"\0\0" + uvarint(len(nodes) + 1) + sets + b"\0", **rest)


def register_controller(node, host, port):
    endpoint = named_endpoint(host, port) + struct.pack(">hb", 0, 0)
    return entry(27, struct.pack(">i", node) + bytes(17) + b"\x02" + endpoint + b"\x01\0")


def without(data, *spans):
    """Without these (offset, length), as a field is kept of which they were left out."""
    kept = bytearray(data)
    for offset, length in reversed(spans):
        del kept[offset : offset + length]
    return bytes(kept)
