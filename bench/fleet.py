"""A fleet, from frames to rows: which CPU each part of the query takes of a batch, for 1, 8 and 32 shards.

Knows: what the servers and clients of a large cluster send in 15 s as bytes on the wire, and the steps of the query as
the plain loop calls them, state read and written between batches. Refuses to know: Spark, whose own share is not in
these figures, and how a step does its work.
Rule: one process takes every part's turn, so that what is measured is CPU and not waiting. A batch counts once all has
been said in batches before. FLEET_SCALE=1 is the whole fleet: 200 brokers, 10,000 clients with 20,000 connections,
10,000 topics; the default is a tenth of it, brokers too. There is no peer.
"""

import os
import struct
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, groupby
from pathlib import Path
from typing import BinaryIO

from bench import kafka_bytes as kafka
from bench.judge import row
from bench.traffic import Connection, Generator
from wirecheck.capture.agent.offline_agent import write_frames
from wirecheck.capture.frames_file import of_itself
from wirecheck.judge.parts.homes import DIRECTORY
from wirecheck.streaming.steps.decode_step import decode_row
from wirecheck.streaming.steps.part_step import dealt
from wirecheck.streaming.steps.plain_loop import Loop, bucket_of, label_of
from wirecheck.streaming.steps.settings import Settings
from wirecheck.streaming.steps.tagged import Tagged

SCALE = int(os.environ.get("FLEET_SCALE", "10"))
BROKERS, CLIENTS, TOPICS = 200 // SCALE, 10_000 // SCALE, 10_000 // SCALE
PARTITIONS = 10
BATCH_US, ROUNDS = 15_000_000, 5
"""Every connection has one exchange a round, five a batch."""
BATCHES, REFRESHED = 4, 20
"""Batches behind the one in which connections open; one client in so many asks for metadata in each."""
SHARDS = (1, 8, 32)
BUCKETS, FILE_BYTES = 32, 1_000_000
PCAP_HEADER = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1)


def address(broker: int) -> bytes:
    return bytes([10, 0, broker // 250, 1 + broker % 250])


NODES = tuple((broker, ".".join(map(str, address(broker)))) for broker in range(BROKERS))


@dataclass(frozen=True)
class Client(Connection):
    """One of a client's two connections, or a broker's to another one."""

    name: str

    @property
    def client_id(self) -> str:
        return self.name


def clients() -> Iterator[Client]:
    topics = [kafka.Topic(f"topic-{n:05d}", b"wirecheck-to" + n.to_bytes(4, "big")) for n in range(TOPICS)]
    number = 0
    for broker in range(BROKERS):
        for leader in range(BROKERS):
            if leader != broker:
                client, server = (address(broker), 30_000 + leader), (address(leader), 9092)
                name = f"broker-{broker}-fetcher-0"
                yield Client(number, "replica", client, server, topics[number % TOPICS], name)
                number += 1
    for one in range(CLIENTS):
        host = bytes([10, 4, one // 250, 1 + one % 250])
        role = ("consumer 13", "consumer 13", "producer", "member")[one % 4]
        for n in (0, 1):
            server = (address((one + n) % BROKERS), 9092)
            topic = topics[(one + n * TOPICS // 2) % TOPICS]
            yield Client(number, role, (host, 40_000 + n), server, topic, f"client-{one}")
            number += 1


class Fleet(Generator):
    """As many messages of a few hundred bytes as 20,000 connections have, at leisure."""

    round_us, templates = BATCH_US // ROUNDS, ROUNDS

    def write(self, file: BinaryIO, size: int) -> None:
        """`size`: batches behind the opening one, which has rounds as well."""
        file.write(PCAP_HEADER)
        for opening in self._opening():
            self._send(file, opening)
        rounds = [self._round(k) for k in range(self.templates)]
        for said in rounds * (1 + size):
            self._send(file, said)

    def _metadata(self, c: Connection) -> tuple[kafka.Message, kafka.Message]:
        return kafka.metadata(c.client_id, [c.topic], PARTITIONS, NODES)

    def _asks_for_metadata(self, c: Connection, k: int) -> bool:
        return c.role != "replica" and (c.number + k) % (REFRESHED * ROUNDS) == 0


class Timed(Loop):
    """CPU seconds by step, and by what works at a time: a bucket, the judge, the directory, a shard."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.spent: Counter[tuple[str, int]] = Counter()
        self.turns_taken = 0

    def turn(self, packed: Iterable[Tagged]) -> None:
        self.turns_taken += 1
        followed = [*self.follow(packed)]
        claims = [*self.timed("decode", 0, (decode_row(one, self.settings) for one in followed))]
        if self.settings.shards > 1:
            parts = self.timed("deal", 0, (one for claimed in claims for one in dealt(claimed, self.settings)))
            self.turns, told = self.turns.after(self.judge_parts(chain(parts, self.turns.mail)))
        else:
            told = [*self.judge(claims)]
        self.told = told

    def timed(self, step: str, number: int, rows: Iterable[Tagged]) -> list[Tagged]:
        began = time.process_time()
        found = [*rows]
        self.spent[step, number] += time.process_time() - began
        return found

    def follow(self, packed: Iterable[Tagged]) -> Iterator[Tagged]:
        given = self.timed("pack", 0, packed)
        for (_, bucket), rows in groupby(sorted(given, key=bucket_of), key=bucket_of):
            yield from self.timed("follow", bucket, super().follow([*rows]))

    def judge(self, claims: Iterable[Tagged]) -> Iterator[Tagged]:
        for _, rows in groupby(sorted(claims, key=label_of), key=label_of):
            yield from self.timed("judge", DIRECTORY, super().judge([*rows]))

    def judge_parts(self, rows: Iterable[Tagged]) -> Iterator[Tagged]:
        for (_, part), given in groupby(sorted(rows, key=bucket_of), key=bucket_of):
            yield from self.timed("judge", part, super().judge_parts([*given]))


def batches(folder: Path) -> list[list[Path]]:
    """Files of frames, by the 15 s that they begin in; what opens connections comes with the first."""
    pcap = folder / "fleet.pcap"
    with pcap.open("wb") as file:
        Fleet([*clients()], "small", 1).write(file, BATCHES)
    files = write_frames([pcap], folder / "frames", "bench", roll_bytes=FILE_BYTES).files
    pcap.unlink()
    begun = [found.span.least_ns // 1_000 if (found := of_itself(file)) and found.span else 0 for file in files]
    from_end = [max(0, BATCHES - (begun[-1] - at) // BATCH_US) for at in begun]
    return [[file for file, number in zip(files, from_end, strict=True) if number == n] for n in range(BATCHES + 1)]


def measured(files: list[list[Path]], shards: int) -> Timed:
    """What the last batch took."""
    loop = Timed(Settings(buckets=BUCKETS, shards=shards))
    for some in files:
        loop.spent.clear()
        loop.turns_taken = 0
        loop.batch(some)
    return loop


def measure() -> list[dict]:
    found: list[dict] = []
    with tempfile.TemporaryDirectory() as name:
        files = batches(Path(name))
        alone = 0.0
        for shards in SHARDS:
            loop = measured(files, shards)
            by_step: Counter[str] = Counter()
            for (step, _), seconds in loop.spent.items():
                by_step[step] += seconds
            judging = [loop.spent["judge", number] for number in range(1, shards + 1)]
            if shards == 1:
                alone = by_step["judge"]
                rows = [("packing", by_step["pack"]), ("following, all buckets", by_step["follow"])]
                most = max(seconds for (step, _), seconds in loop.spent.items() if step == "follow")
                rows += [("the most loaded bucket", most), ("decoding", by_step["decode"]), ("one judge", alone)]
                found += [row(f"a fleet's 15 s (1/{SCALE}): CPU of {what}", seconds, "s") for what, seconds in rows]
                continue
            directory, most = loop.spent["judge", DIRECTORY], max(judging)
            last = shards == SHARDS[-1]
            for what, seconds, of in (("directory", directory, 8), ("the most loaded shard", most, 12),
                                      ("both", directory + most, 6)):  # fmt: skip
                bar, met = (f"1/{of} of one judge", seconds <= alone / of) if last else (None, None)
                found.append(row(f"in {shards} shards: CPU of {what}", seconds, "s", bar=bar, met=met))
            found.append(row(f"in {shards} shards: CPU of all parts", by_step["judge"], "s"))
            found.append(row(f"in {shards} shards: CPU of dealing claims to parts", by_step["deal"], "s"))
            found.append(row(f"in {shards} shards: turns of a batch", loop.turns_taken, "turns"))
    return found
