"""How fast a capture becomes fields, beside tshark on the same file; and what the first use costs.

Knows the newest versions that both read: tshark 4.0 has Fetch up to v11 and Metadata up to v9 and calls what follows
malformed. tshark prints the ids, epochs, offsets and names of every partition; we build every column there is. Both
costs of reading packets are taken out: tshark's by a second capture with one message in it, ours by not doing it; a row
of its own has ours with it (packets, following, decoding, columns).
Rule: CPU seconds of both, in turn; a tshark that is not there, or that cannot read the messages, is a missing peer.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests import traffic
from tests.build import plain
from wirecheck.capture.agent.offline_agent import read_frames
from wirecheck.decode.columns import tables
from wirecheck.decode.message import decode
from wirecheck.decode.show.message_lines import followed
from wirecheck.decode.wire import REQUEST, RESPONSE, SIDES, Messages, pack

if TYPE_CHECKING:
    from collections.abc import Callable

BAR = 50
ROUNDS = 3
FIRST_USE = """
import time
from bench.decode import fetch_request, metadata_response, to_columns, whole
both = whole([fetch_request(0)], 0), whole([metadata_response(0)], 1)
begin = time.process_time()
to_columns(both[0], "Fetch")
to_columns(both[1], "Metadata")
print(time.process_time() - begin)
"""


@dataclass(frozen=True)
class Kind:
    """One kind of message, and what tshark is to print of it."""

    api: str
    side: int
    version: int
    message: bytes
    """Size, header and body."""
    count: int
    fields: tuple[str, ...]

    def messages(self) -> Messages:
        one = [self.message[4:]] * self.count
        key = 1 if self.api == "Fetch" else 3
        return pack(one, [self.side] * self.count, [key] * self.count, [self.version] * self.count)

    def capture(self, count: int) -> bytes:
        talk = traffic.Talk().open()
        for _ in range(count):
            if self.side == RESPONSE:
                talk.request(plain(self.api, "request", self.version, {"topics": None}, HEADER))
                talk.response(self.message)
            else:
                talk.request(self.message)
        return traffic.pcap(traffic.packets(talk.segments))


HEADER = {"correlationId": 7, "clientId": "consumer-1"}


def fetch() -> Kind:
    """10 topics x 10 partitions, as the requests of bench/decode.py."""
    partition = {"currentLeaderEpoch": 7, "fetchOffset": 70_000, "logStartOffset": -1, "partitionMaxBytes": 1 << 20}
    topics = [
        {"topic": f"topic-{i:04}", "partitions": [partition | {"partition": p} for p in range(10)]} for i in range(10)
    ]
    body = {"replicaId": -1, "maxWaitMs": 500, "maxBytes": 52428800, "sessionId": 77, "topics": topics}
    fields = ("topic_name", "partition_id", "current_leader_epoch", "offset", "log_start_offset", "max_bytes")
    return Kind("Fetch", REQUEST, 11, plain("Fetch", "request", 11, body, HEADER), 2000, fields)


def metadata() -> Kind:
    """1000 topics x 12 partitions."""
    partitions = [
        {"partitionIndex": i, "leaderId": i % 3, "leaderEpoch": 5, "replicaNodes": [0, 1, 2], "isrNodes": [0, 1, 2]}
        for i in range(12)
    ]
    body = {
        "brokers": [{"nodeId": i, "host": f"broker-{i}", "port": 9092} for i in range(3)],
        "clusterId": "abcdefghijklmnopqrstuv",
        "topics": [{"name": f"topic-{i:04}", "partitions": partitions} for i in range(1000)],
    }
    fields = ("topic_name", "partition_id", "leader_id", "leader_epoch", "replica_id", "isr_id")
    return Kind("Metadata", RESPONSE, 9, plain("Metadata", "response", 9, body, HEADER), 20, fields)


def measure() -> list[dict]:
    with tempfile.TemporaryDirectory(prefix="wirecheck-bench-") as name:
        compared = [found for kind in (fetch(), metadata()) for found in beside_tshark(kind, Path(name))]
        return compared + first_use()


def beside_tshark(kind: Kind, folder: Path) -> list[dict]:
    pcap, single = folder / "many.pcap", folder / "one.pcap"
    pcap.write_bytes(kind.capture(kind.count))
    single.write_bytes(kind.capture(1))
    messages = kind.messages()
    core = kind.count / best(lambda: to_columns(messages, kind.api))
    road = kind.count / best(lambda: by_the_whole_road(pcap, kind))
    theirs, theirs_whole = tshark_rates(kind, pcap, single)
    what = f"{kind.api} v{kind.version}"
    return [
        row(f"decode {what} to columns", core, f"{what}/s", "tshark", theirs, BAR),
        row(f"pcap of {what} to columns", road, f"{what}/s", "tshark", theirs_whole, None),
    ]


def to_columns(messages: Messages, api: str) -> None:
    decoded = decode(messages)
    assert not decoded.status.any()
    for table in tables(decoded, api, SIDES[messages.side[0]]).values():
        for name in table.names:
            len(table[name])


def by_the_whole_road(pcap: Path, kind: Kind) -> None:
    seen = 0
    for exchanges in followed(read_frames([pcap])):
        decoded = decode(exchanges.messages)
        for table in tables(decoded, kind.api, SIDES[kind.side]).values():
            seen += len(table) if table.path == "" else 0
            for name in table.names:
                len(table[name])
    assert seen == kind.count


def tshark_rates(kind: Kind, pcap: Path, single: Path) -> tuple[float | None, float | None]:
    """Messages per second: dissecting alone, and from the file."""
    if shutil.which("tshark") is None:
        return None, None
    command = ["tshark", "-n", "-Y", "kafka", "-T", "fields"]
    command += [part for field in kind.fields for part in ("-e", f"kafka.{field}")]
    if not readable([*command, "-r", str(single)], kind):
        return None, None
    many = min(spent([*command, "-r", str(pcap)]) for _ in range(ROUNDS))
    one = min(spent([*command, "-r", str(single)]) for _ in range(ROUNDS))
    return (kind.count - 1) / (many - one), kind.count / many


def readable(command: list[str], kind: Kind) -> bool:
    """Whether this tshark sees the last partition of the last topic."""
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    partitions = max(part.count(",") + 1 for line in told.splitlines() for part in line.split("\t"))
    return partitions >= (100 if kind.api == "Fetch" else 12_000)


def spent(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def best(work: Callable[[], object]) -> float:
    """Seconds of CPU of the fastest round, after one to warm up."""
    work()
    rounds = []
    for _ in range(ROUNDS):
        begin = time.process_time()
        work()
        rounds.append(time.process_time() - begin)
    return min(rounds)


def first_use() -> list[dict]:
    """CPU time before the first message of both kinds is decoded, in a process of its own."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    runs = [
        subprocess.run(
            [sys.executable, "-c", FIRST_USE], check=True, capture_output=True, text=True, env=environment
        ).stdout
        for _ in range(ROUNDS)
    ]
    return [row("decode, first use", min(map(float, runs)), "s")]


def row(  # noqa: PLR0917
    name: str, value: float, unit: str, peer: str | None = None, theirs: float | None = None, bar: float | None = None
) -> dict:
    ratio = value / theirs if theirs else None
    return {
        "name": name, "value": value, "unit": unit, "peer": peer, "peer_value": theirs, "ratio": ratio,
        "bar": f">= {bar}x" if bar else None, "met": ratio >= bar if ratio and bar else None,
    }  # fmt: skip
