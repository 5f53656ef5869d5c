"""A fleet: which CPU one judge takes of a steady batch.

Knows: what a cluster of 200 brokers, 100 000 partitions, 10 000 clients and 20 000 connections says in 15 s when every
partition has traffic. Refuses to know: bytes on the wire, Spark.
Rule: filing and judging count, state as bytes does not. The last batch counts: by then all is known. There is no peer.
FLEET_SCALE=1 is the whole fleet; the default is a tenth of it, brokers too.
"""

import os
import time
from collections.abc import Iterator

from bench.judge import CLUSTER, SECOND_NS, SLOT_NS, Cluster, row
from wirecheck.decode.collector_pause import collector_paused
from wirecheck.judge.claims.claim import Claim, Sighting
from wirecheck.judge.judge import Judge

SCALE = int(os.environ.get("FLEET_SCALE", "10"))
"""The cluster is so many times smaller, its brokers too; at 1 it is the whole one."""
BROKERS, TOPICS, CLIENTS = 200 // SCALE, 10_000 // SCALE, 10_000 // SCALE
BATCHES, STEP_NS = 4, 15 * SECOND_NS
BEGIN_NS = 1_800_000_000 * SECOND_NS
REFRESHED = 20
"""One client in so many asks for metadata in a batch: all do within 300 s."""
MOST_S = 6.0
"""CPU seconds that one judge may take of the whole fleet's batch."""


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


def measure() -> list[dict]:
    count, seconds = one()
    bar, met = (f"at most {MOST_S:g} s", seconds <= MOST_S) if SCALE == 1 else (None, None)
    rows = [row(f"a fleet's 15 s (1/{SCALE}): claims of a steady batch", count, "claims")]
    return [*rows, row(f"a fleet's 15 s (1/{SCALE}): CPU of one judge", seconds, "s", bar=bar, met=met)]
