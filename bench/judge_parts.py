"""The judge in parts: which CPU the directory and the most loaded shard take of what one judge takes.

Knows: what a cluster of 200 brokers, 100 000 partitions, 10 000 clients and 20 000 connections says in 15 s when every
partition has traffic, and how long each part is busy with it. Refuses to know: bytes on the wire, Spark.
Rule: one process takes all parts' turns, so that what is measured is CPU and not waiting; filing, judging, packing and
reading messages count, state as bytes does not (in none of them; `fleet.py` has it). The last batch counts: by then
all is known. There is no peer.
"""

import os
import time
from collections import Counter
from collections.abc import Iterator

from bench.judge import CLUSTER, SECOND_NS, SLOT_NS, Cluster, row
from wirecheck.judge.claims.claim import Claim, Sighting
from wirecheck.judge.judge import Judge
from wirecheck.judge.parts.homes import DIRECTORY, parts_of
from wirecheck.judge.parts.judge_in_parts import JudgeInParts
from wirecheck.judge.parts.part import Part
from wirecheck.judge.parts.part_message import unpacked
from wirecheck.streaming.steps.collector_pause import collector_paused

SCALE = int(os.environ.get("PARTS_SCALE", "10"))
"""The cluster is so many times smaller, its brokers too; at 1 it is the whole one."""
BROKERS, TOPICS, CLIENTS = 200 // SCALE, 10_000 // SCALE, 10_000 // SCALE
BATCHES, STEP_NS = 4, 15 * SECOND_NS
BEGIN_NS = 1_800_000_000 * SECOND_NS
REFRESHED = 20
"""One client in so many asks for metadata in a batch: all do within 300 s."""
SHARDS = (8, 32)


class Fleet(Cluster):
    """What its servers and clients say in 15 s."""

    def __init__(self) -> None:
        super().__init__(TOPICS, CLIENTS)
        self.servers = self.servers[:BROKERS]

    def batch(self, number: int) -> Iterator[Claim]:
        end_ns = BEGIN_NS + (number + 1) * STEP_NS
        for client in self.random.sample(range(CLIENTS), CLIENTS // REFRESHED):
            yield from self.refreshed(client, end_ns)
        yield from self.brokers_follow(end_ns)
        for topic in range(TOPICS):
            if not number:
                yield from self.answered(topic, end_ns)
            yield from self.replicated(topic, end_ns)
        for client in range(CLIENTS):
            yield from self.spoke(client, end_ns)

    def seen(self, end_ns: int, server: str, client: str, api: str, version: int) -> Sighting:
        ts_ns = end_ns - self.random.randrange(STEP_NS)
        return Sighting(ts_ns, f"{client}>{server}", api, version, 7, "a.pcap", 1, 2)

    def refreshed(self, client: int, end_ns: int) -> Iterator[Claim]:
        """Metadata of a client's topics, with all brokers' addresses."""
        server = self.random.choice(self.servers)
        seen = self.seen(end_ns, server, "10.2.0.1:4000", "Metadata", 12)
        yield Claim("cluster_id", (server, CLUSTER, "metadata"), seen)
        yield Claim("server", (server,), seen, peak={"answers": 1})
        for broker, address in enumerate(self.servers):
            yield Claim("address", (server, address, broker), seen)
        yield from self.answered(client % TOPICS, end_ns)

    def brokers_follow(self, end_ns: int) -> Iterator[Claim]:
        """Every broker fetches from every other one."""
        for broker in range(BROKERS):
            host = f"10.1.0.{broker}"
            for leader, server in enumerate(self.servers):
                if leader != broker:
                    seen = self.seen(end_ns, server, f"{host}:5000", "Fetch", 17)
                    yield Claim(
                        "follower", (broker, server, f"broker-{broker}-fetcher-0", host), seen, peak={"full": -1}
                    )
            slots = {f"{seen.ts_ns // SLOT_NS}:17": 30}
            yield Claim("fetch_versions", (broker, host, 9092), seen, count=30, tally=slots)

    def replicated(self, topic: int, end_ns: int) -> Iterator[Claim]:
        for partition in range(10):
            leader = (topic + partition) % BROKERS
            server = self.servers[leader]
            for n in (1, 2):
                broker = (leader + n) % BROKERS
                seen = self.seen(end_ns, server, f"10.1.0.{broker}:5000", "Fetch", 17)
                key = (self.ids[topic], partition, broker, server, f"broker-{broker}-fetcher-0", f"10.1.0.{broker}")
                yield Claim("follows", key, seen)
            peak = {"highest": 9, "latest": seen.ts_ns}
            yield Claim("reaches", (self.ids[topic], partition, server), seen, peak=peak)

    def spoke(self, client: int, end_ns: int) -> Iterator[Claim]:
        """A client reads ten topics over two connections."""
        name, host = f"client-{client}", f"10.4.{client // 250}.{client % 250}"
        for n in (0, 1):
            server = self.servers[(client + n) % BROKERS]
            seen = self.seen(end_ns, server, f"{host}:6000", "Fetch", 17)
            slots = {f"{seen.ts_ns // SLOT_NS}:0": 9}
            yield Claim("client", (name, host, server), seen, tally={"Fetch:17": 54, "Metadata:12": 3})
            yield Claim("answer", (name, host, server, "Fetch"), seen, tally=slots)
            yield Claim("peer", (host, server), seen, peak={"granted": 1, "unread": 0, "encrypted": 0})
            key = (host, server, f"{host}:600{n}", BEGIN_NS)
            facts = {"from_start": 1, "protocol": [seen.ts_ns, "kafka"], "frames": 90, "requests": 54, "responses": 54}
            yield Claim("connection", key, seen, peak=facts)
            yield Claim("spoken", (*key, name), seen, tally={"Fetch:17": 54})
            for k in range(5):
                topic_id = self.ids[(client + 5 * n + k) % TOPICS]
                yield Claim("use", (topic_id, "Fetch", name, host, server), seen, tally=slots | {"asked": 54})


class Timed(JudgeInParts):
    """How long each part is busy, and how much it tells."""

    def __init__(self, shards: int) -> None:
        super().__init__("bench", shards)
        self.busy: Counter[int] = Counter()
        self.told: Counter[int] = Counter()

    def file(self, claims: list[Claim]) -> None:
        """As they come from other steps: sorted by part."""
        filed: list[list[Claim]] = [[] for _ in self.parts]
        for claim in claims:
            for number in parts_of(claim, self.shards):
                filed[number].append(claim)
        for number, mine in enumerate(filed):
            began = time.process_time()
            for claim in mine:
                self.parts[number].ledger.absorb(claim)
            self.busy[number] += time.process_time() - began

    def turn(self, part: Part) -> dict[int, bytes]:
        began = time.process_time()
        part.rows()
        said = {number: message.packed() for number, message in part.messages().items()}
        self.busy[part.number] += time.process_time() - began
        return said

    def batch(self) -> None:
        """As `rows`, with a clock."""
        self.rounds, spoken = 0, True
        while spoken:
            self.rounds += 1
            spoken = False
            for turn in ([self.directory], self.parts[1:]):
                said = [(part, *one) for part in turn for one in self.turn(part).items()]
                for sender, number, message in said:
                    spoken = True
                    self.told[sender.number] += len(message)
                    began = time.process_time()
                    self.parts[number].receive(unpacked(message))
                    self.busy[number] += time.process_time() - began


@collector_paused()
def one() -> tuple[int, float]:
    """Claims and CPU of the last batch, by one judge."""
    fleet, judge = Fleet(), Judge("bench")
    for number in range(BATCHES):
        claims = list(fleet.batch(number))
        judge.progress("agent", BEGIN_NS + (number + 1) * STEP_NS, ended=False)
        began = time.process_time()
        judge.absorb(claims)
        judge.rows()
        spent = time.process_time() - began
    return len(claims), spent


@collector_paused()
def parts(shards: int) -> Timed:
    fleet, judge = Fleet(), Timed(shards)
    for number in range(BATCHES):
        claims = list(fleet.batch(number))
        judge.progress("agent", BEGIN_NS + (number + 1) * STEP_NS, ended=False)
        judge.busy.clear()
        judge.told.clear()
        judge.file(claims)
        judge.batch()
    return judge


def measure() -> list[dict]:
    count, alone = one()
    rows = [row(f"judge in parts: claims of a batch (1/{SCALE} of the fleet)", count, "claims")]
    rows += [row("judge in parts: CPU of one judge", alone, "s")]
    for shards in SHARDS:
        judge = parts(shards)
        directory, most = judge.busy[DIRECTORY], max(judge.busy[n] for n in range(1, shards + 1))
        last = shards == SHARDS[-1]
        for name, seconds, of in (("directory", directory, 8), ("the most loaded shard", most, 12),
                                  ("both", directory + most, 6)):  # fmt: skip
            bar = f"1/{of} of one judge" if last else None
            met = seconds <= alone / of if last else None
            rows.append(row(f"judge in {shards} shards: CPU of {name}", seconds, "s", bar=bar, met=met))
        rows.append(row(f"judge in {shards} shards: CPU of all", sum(judge.busy.values()), "s"))
        rows.append(row(f"judge in {shards} shards: turns of a batch", judge.rounds, "turns"))
        rows.append(row(f"judge in {shards} shards: told by the directory", judge.told[DIRECTORY] / 1e6, "MB"))
        rows.append(row(f"judge in {shards} shards: told by shards",
                        (sum(judge.told.values()) - judge.told[DIRECTORY]) / 1e6, "MB"))  # fmt: skip
    return rows
