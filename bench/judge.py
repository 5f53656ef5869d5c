"""Judging: days of a cluster of 100 000 partitions, 1 000 clients and 200 brokers, and a month of a fifth of it.

Knows: how many claims of each kind such a cluster makes when every partition has traffic, and the judge as
`streaming.steps.judge_step` calls it: made anew for every batch, with its state as bytes in between. Refuses to
know: bytes on the wire, Spark.
Rule: capture time goes on by two days a batch, so that whatever ages does; topics are deleted and created again. Time
is CPU time of one process with everything in it: state read, claims merged, rows told, state written. There is no peer.
"""

import base64
import os
import random
import time
from collections.abc import Iterator

from wirecheck.judge.claims.claim import Claim, Sighting
from wirecheck.judge.judge import Judge
from wirecheck.streaming.steps.collector_pause import collector_paused

BROKERS, CLIENTS, TOPICS, PARTITIONS = 200, 1000, 10_000, 10
SECOND_NS = 1_000_000_000
HOUR_NS, SLOT_NS = 3600 * SECOND_NS, 10 * SECOND_NS
BATCHES, STEP_NS = 16, 45 * HOUR_NS
BEGIN_NS = 1_800_000_000 * SECOND_NS
TOPICS_OF_CLIENT, ANSWERED, RECREATED = 10, 500, 40
CLUSTER = "bench-cluster-id-22-chr"
SCALE = int(os.environ.get("JUDGE_SCALE", "5"))
"""The month is that of a cluster so many times smaller, so that it takes a minute; at 1 it is the whole cluster's."""
GROWTH, FLAT = 1.2, "below 1.2 times the first"
SETTLED = 2
"""The first batch that tells nothing of the cluster for the first time."""


class Cluster:
    """What its servers and clients say, batch by batch."""

    def __init__(self, topics: int = TOPICS, clients: int = CLIENTS, seed: int = 0) -> None:
        self.random, self.clients = random.Random(seed), clients
        self.ids = [self.fresh() for _ in range(topics)]
        self.servers = [f"10.1.{n // 250}.{n % 250}:9092" for n in range(BROKERS)]

    def fresh(self) -> str:
        number = bytearray(self.random.randbytes(16))
        number[6], number[8] = number[6] & 0x0F | 0x40, number[8] & 0x3F | 0x80
        return base64.urlsafe_b64encode(bytes(number))[:22].decode()

    def batch(self, number: int) -> Iterator[Claim]:
        end_ns = BEGIN_NS + (number + 1) * STEP_NS
        topics = range(len(self.ids))
        yield from self.servers_say(end_ns)
        if number:
            yield from self.recreated(end_ns)
        for topic in self.random.sample(topics, min(ANSWERED, len(topics))) if number else topics:
            yield from self.answered(topic, end_ns)
        for topic in topics:
            yield from self.replicated(topic, end_ns)
        for client in range(self.clients):
            yield from self.client(client, end_ns)

    def seen(self, end_ns: int, server: str, client: str, api: str, version: int) -> Sighting:
        """Somewhere in the last hour."""
        ts_ns = end_ns - self.random.randrange(HOUR_NS)
        return Sighting(ts_ns, f"{client}>{server}", api, version, 7, "a.pcap", 1, 2)

    def servers_say(self, end_ns: int) -> Iterator[Claim]:
        for broker, server in enumerate(self.servers):
            seen = self.seen(end_ns, server, "10.2.0.1:4000", "Metadata", 12)
            yield Claim("cluster_id", (server, CLUSTER, "metadata"), seen)
            yield Claim("server", (server,), seen)
            yield Claim("address", (server, server, broker), seen)

    def recreated(self, end_ns: int) -> Iterator[Claim]:
        for topic in self.random.sample(range(len(self.ids)), RECREATED):
            seen = self.seen(end_ns, self.servers[0], "10.2.0.1:4000", "DeleteTopics", 6)
            key = (f"topic-{topic}", self.ids[topic], "delete-topics", self.servers[0], None)
            yield Claim("deletion", key, seen, tally={str(seen.ts_ns // SLOT_NS): 1})
            self.ids[topic] = self.fresh()
            yield from self.answered(topic, end_ns)

    def answered(self, topic: int, end_ns: int) -> Iterator[Claim]:
        """Metadata of one topic by one of three brokers."""
        server = self.random.choice(self.servers[:3])
        seen = self.seen(end_ns, server, "10.2.0.1:4000", "Metadata", 12)
        tally = {str(seen.ts_ns // SLOT_NS): 1}
        yield Claim("binding", (f"topic-{topic}", self.ids[topic], "metadata", server, None), seen, tally=tally)
        for partition in range(PARTITIONS):
            replicas = [(topic + partition + n) % BROKERS for n in range(3)]
            words = ",".join(map(str, replicas))
            yield Claim("partition", (self.ids[topic], partition, "metadata", 3, replicas[0], words, words), seen)

    def replicated(self, topic: int, end_ns: int) -> Iterator[Claim]:
        """Two followers per partition, and how far it goes."""
        for partition in range(PARTITIONS):
            leader = (topic + partition) % BROKERS
            server = self.servers[leader]
            for n in (1, 2):
                broker = (leader + n) % BROKERS
                name, host = f"broker-{broker}-fetcher-0", f"10.1.0.{broker}"
                seen = self.seen(end_ns, server, f"{host}:5000", "Fetch", 17)
                yield Claim("follows", (self.ids[topic], partition, broker, server, name, host), seen)
            peak = {"highest": 9, "latest": seen.ts_ns}
            yield Claim("reaches", (self.ids[topic], partition, server), seen, peak=peak)

    def client(self, client: int, end_ns: int) -> Iterator[Claim]:
        name, host = f"client-{client}", f"10.4.{client // 250}.{client % 250}"
        for n in range(TOPICS_OF_CLIENT):
            topic = (client * TOPICS_OF_CLIENT + n) % len(self.ids)
            server = self.servers[(topic + n) % BROKERS]
            seen = self.seen(end_ns, server, f"{host}:6000", "Fetch", 17)
            slots = {f"{seen.ts_ns // SLOT_NS + k}:0": 9 for k in range(6)}
            yield Claim("use", (self.ids[topic], "Fetch", name, host, server), seen, tally=slots | {"asked": 54})
            yield Claim("client", (name, host, server), seen, tally={"Fetch:17": 54, "Metadata:12": 3})
            yield Claim("answer", (name, host, server, "Fetch"), seen, tally=slots)


def judged(cluster: Cluster, batches: int = BATCHES) -> list[tuple[int, float, int]]:
    """Per batch: claims, seconds, bytes of state after it."""
    shards: dict[str, bytes] = {}
    measured = []
    for number in range(batches):
        claims = list(cluster.batch(number))
        began = time.process_time()
        shards |= batch(claims, number, shards)
        measured.append((len(claims), time.process_time() - began, sum(map(len, shards.values()))))
    return measured


@collector_paused()
def batch(claims: list[Claim], number: int, shards: dict[str, bytes]) -> dict[str, bytes]:
    """The shards that one batch changed."""
    judge = Judge("bench", shards.get)
    judge.absorb(claims)
    judge.progress("agent", BEGIN_NS + (number + 1) * STEP_NS, ended=False)
    judge.rows()
    return judge.shards()


def measure() -> list[dict]:
    largest = judged(Cluster(), SETTLED + 1)
    steady = judged(Cluster(TOPICS // SCALE, CLIENTS // SCALE))[SETTLED:]
    early, late = steady[: len(steady) // 2], steady[len(steady) // 2 :]
    seconds = [sum(spent for _, spent, _ in part) / len(part) for part in (early, late)]
    sizes = [steady[0][2], steady[-1][2]]
    return [
        row("judge: claims of the largest batch (all is new)", largest[0][0], "claims"),
        row("judge: its CPU", largest[0][1], "s"),
        row("judge: claims of a later one, every partition with traffic", largest[-1][0], "claims"),
        row("judge: its CPU", largest[-1][1], "s"),
        row("judge: state after it", largest[-1][2] / 1e6, "MB"),
        row(f"judge: 1/{SCALE} of it, state in the first days of a month", sizes[0] / 1e6, "MB"),
        row("judge: state at its end", sizes[1] / 1e6, "MB", bar=FLAT, met=sizes[1] < GROWTH * sizes[0]),
        row("judge: CPU of a batch, first half", seconds[0], "s"),
        row("judge: CPU of a batch, second half", seconds[1], "s", bar=FLAT, met=seconds[1] < GROWTH * seconds[0]),
    ]


def row(name: str, value: float, unit: str, *, bar: str | None = None, met: bool | None = None) -> dict:
    return {"name": name, "value": value, "unit": unit, "peer": None, "peer_value": None, "ratio": None, "bar": bar,
            "met": met}  # fmt: skip
