"""A metadata log that six nodes read: what a local replay of it costs, and how often a record batch is decoded.

Knows: a leader whose followers fetch each batch of its log, half of them several batches together. Refuses to know: how
a log is read. Rule: nodes that read the same bytes cost one decoding of them; calls are counted, in this process. Every
topic of the log must be found.
"""

import json
import struct
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from unittest.mock import patch

from bench import kafka_bytes as kafka
from bench.replay import barred, row
from bench.traffic import START_US, Connection
from bench.wide import PACKET_US, TIME_AT, packets_of
from wirecheck import library
from wirecheck.decode.log import metadata_log

READERS, BATCHES, TOGETHER = 6, 2_000, 3
LEADER, LOG = (bytes([10, 0, 0, 11]), 9093), kafka.Topic("", bytes(15) + b"\x01")
TOPIC_RECORD = b"\x01\x02\x00"
"""Versions and type in front of a TopicRecord."""
MOST_DECODINGS = 1.0


def measure() -> list[dict]:
    with tempfile.TemporaryDirectory(prefix="wirecheck-bench-") as folder:
        pcap = Path(folder) / "log.pcap"
        pcap.write_bytes(b"".join(packets(BATCHES)))
        spent_s, decodings = replayed(pcap, BATCHES)
    what = f"a metadata log of {BATCHES:,} batches that {READERS} nodes read"
    return [
        row(f"{what}: CPU", spent_s, "s", None),
        barred(f"{what}: decodings of each batch", decodings / BATCHES, MOST_DECODINGS, "x"),
    ]


def replayed(pcap: Path, batches: int) -> tuple[float, int]:
    """CPU seconds in this process, and how many batches were decoded."""
    decode, before_s = metadata_log.batch_entries, time.process_time()
    with patch.object(metadata_log, "batch_entries", side_effect=decode) as decoded:
        topics = library.topics(pcap)
    if len(topics) != batches:
        msg = f"{len(topics)} of {batches} topics were found"
        raise RuntimeError(msg)
    return time.process_time() - before_s, decoded.call_count


def packets(batches: int) -> Iterator[bytes]:
    """A capture file: one reader after the other."""
    yield struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1)
    log, sent = [log_batch(offset) for offset in range(batches)], 0
    for number in range(READERS):
        reader = Connection(number, "raft 17", (bytes([10, 0, 1, number + 1]), 30_000), LEADER, LOG)
        for packet in packets_of(reader, said(reader, log, TOGETHER if number % 2 else 1)):
            struct.pack_into("<II", packet, TIME_AT, *divmod(START_US + sent * PACKET_US, 1_000_000))
            sent += 1
            yield packet


def said(reader: Connection, log: list[bytes], together: int) -> Iterator[tuple[bool, bytes]]:
    """What the reader and the leader send in turn, and whether it is the reader."""
    asked, _ = kafka.fetch(13, reader.client_id, LOG, kafka.Session(reader.number + 2, 0, 0), None)
    for at in range(0, len(log), together):
        answered = kafka.response(fetched(b"".join(log[at : at + together]), len(log)))
        for from_reader, message in ((True, asked), (False, answered)):
            place = message.correlation_at
            yield from_reader, message.data[:place] + struct.pack(">i", at) + message.data[place + 4 :]


def fetched(records: bytes, high_watermark: int) -> bytes:
    numbers = struct.pack(">ihqqq", 0, 0, high_watermark, -1, 0)
    partition = numbers + kafka.array() + struct.pack(">i", -1) + kafka.varint(len(records) + 1) + records
    topic = LOG.topic_id + kafka.array(partition + kafka.NO_TAGS)
    return struct.pack(">ihi", 0, 0, 0) + kafka.array(topic + kafka.NO_TAGS) + kafka.NO_TAGS


def log_batch(offset: int) -> bytes:
    topic_id = Random(offset).randbytes(16)
    value = TOPIC_RECORD + kafka.text(f"orders-{offset:05}") + topic_id + kafka.NO_TAGS
    return struct.pack(">q", offset) + kafka.record_batch(value)[8:]


if __name__ == "__main__":
    print(json.dumps(measure(), indent=1))
