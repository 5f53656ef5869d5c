"""Claims of a cluster in which every partition has traffic, batch by batch, as days go by.

Knows: how many claims of each kind such a cluster makes, and the judge as `streaming.steps.judge_step` calls it: new
for every batch, with its state as bytes in between. Does not know bytes on the wire, or Spark.
Rule: capture time advances by two days a batch, so that whatever ages does; topics are deleted and recreated.
"""

import base64
import random
import time
from collections.abc import Iterator

from wirecheck.decode.collector_pause import collector_paused
from wirecheck.judge.claims.claim import Claim, Sighting
from wirecheck.judge.revisions.judge import Judge

BROKERS, CLIENTS, TOPICS, PARTITIONS = 200, 1000, 10_000, 10
SECOND_NS = 1_000_000_000
HOUR_NS, SLOT_NS = 3600 * SECOND_NS, 10 * SECOND_NS
BATCHES, STEP_NS = 16, 45 * HOUR_NS
BEGIN_NS = 1_800_000_000 * SECOND_NS
TOPICS_OF_CLIENT, ANSWERED, RECREATED = 10, 500, 40
CLUSTER = "bench-cluster-id-22-chr"


class Cluster:
    """What its servers and clients say, batch by batch."""

    def __init__(self, topics: int = TOPICS, clients: int = CLIENTS, seed: int = 0, *, brokers: int = BROKERS) -> None:
        self.random, self.clients, self.brokers = random.Random(seed), clients, brokers
        self.ids = [self.fresh() for _ in range(topics)]
        self.servers = [f"10.1.{n // 250}.{n % 250}:9092" for n in range(brokers)]

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
            replicas = [(topic + partition + n) % self.brokers for n in range(3)]
            words = ",".join(map(str, replicas))
            yield Claim("partition", (self.ids[topic], partition, "metadata", 3, replicas[0], words, words), seen)

    def replicated(self, topic: int, end_ns: int) -> Iterator[Claim]:
        """Two followers per partition, and how far it goes."""
        for partition in range(PARTITIONS):
            leader = (topic + partition) % self.brokers
            server = self.servers[leader]
            for n in (1, 2):
                broker = (leader + n) % self.brokers
                name, host = f"broker-{broker}-fetcher-0", f"10.1.0.{broker}"
                seen = self.seen(end_ns, server, f"{host}:5000", "Fetch", 17)
                yield Claim("follows", (self.ids[topic], partition, broker, server, name, host), seen)
            peak = {"highest": 9, "latest": seen.ts_ns}
            yield Claim("reaches", (self.ids[topic], partition, server), seen, peak=peak)

    def client(self, client: int, end_ns: int) -> Iterator[Claim]:
        name, host = f"client-{client}", f"10.4.{client // 250}.{client % 250}"
        for n in range(TOPICS_OF_CLIENT):
            topic = (client * TOPICS_OF_CLIENT + n) % len(self.ids)
            server = self.servers[(topic + n) % self.brokers]
            seen = self.seen(end_ns, server, f"{host}:6000", "Fetch", 17)
            slots = {f"{seen.ts_ns // SLOT_NS + k}:0": 9 for k in range(6)}
            yield Claim("use", (self.ids[topic], "Fetch", name, host, server), seen, tally=slots | {"asked": 54})
            yield Claim("client", (name, host, server), seen, tally={"Fetch:17": 54, "Metadata:12": 3})
            yield Claim("activity", (name, host, server, "Fetch"), seen, tally=slots)


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
