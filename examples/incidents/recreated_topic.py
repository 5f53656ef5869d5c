"""A topic is deleted and created again under one client, or several, and each counts itself what it read.

Knows: which clients there are, and what is done to their topics. Refuses to know what wirecheck says: `truth.json` is
written from what clients and writer count, before a capture is read. Rule: each client has a topic of its own.
"""

import argparse
import json
import os
import shutil
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab import Lab

KAFKA = "4.4.0"
OLD = 65
"""So many records each topic has before it is deleted; all are read and committed."""
WARM_S, SETTLE_S, LATE_S = 60, 12, 10
"""What was written in the last seconds need not have been read."""
COMPACTED = {"cleanup.policy": "compact", "segment.ms": "1000", "min.cleanable.dirty.ratio": "0.01"}
SMALL_JAVA = ["java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp"]


PYTHON = ("librdkafka", "librdkafka-848", "librdkafka-assign", "kcat", "kafka-python", "aiokafka")
NODE = ("kafkajs", "confluent", "platformatic", "platformatic-848", "kafka-ts", "no-kafka")
GO = (
    *("franz-go", "franz-go-848", "franz-go-assign", "franz-go-purge"),
    *("sarama", "sarama-partition", "kafka-go", "kafka-go-partition"),
)


def commands(clients: Path) -> dict[str, list[str]]:
    """How each client is started; `+`: address, topic, client ID and group."""

    def java_of(libs: str) -> list[str]:
        return [*SMALL_JAVA, f"{clients}/java/classes:{clients}/java/{libs}/*"]

    java = java_of("libs")
    reader = Path(__file__).with_name("recreated-topic") / "reader.py"
    return {
        "java": [*java, "Reader", "classic", "+", "group.protocol=classic"],
        "java-latest": [*java, "Reader", "classic", "+", "group.protocol=classic", "auto.offset.reset=latest"],
        "java-848": [*java, "Reader", "848", "+", "group.protocol=consumer"],
        "java-assign": [*java, "Reader", "assign", "+"],
        "java-share": [*java, "Reader", "share", "+"],
        "java-transactions": [*java, "Reader", "transactions", "+"],
        "streams": [*java, "Streams", "classic", "+", "STATE"],
        "streams-848": [*java, "Streams", "streams", "+", "STATE"],
        "connect": [*java_of("connect"), "Sink", "+", "STATE"],
        "vertx": [*java_of("vertx"), "Vertx", "+"],
        "camel": [*java_of("camel"), "Camel", "+"],
        **{name: [sys.executable, str(reader), name, "+"] for name in PYTHON},
        **{name: ["node", f"{clients}/node/reader.mjs", name, "+"] for name in NODE},
        **{name: [f"{clients}/go-reader", name, "+"] for name in GO},
    }


@dataclass
class Written:
    """The records that the writer of a topic has had acknowledged, by partition and offset, of each of its lives."""

    topic: str
    lives: list[dict[tuple[int, int], tuple[str, float]]] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)


class Operator:
    """Who creates, deletes and writes, by librdkafka."""

    def __init__(self, bootstrap: str) -> None:
        from confluent_kafka import Producer
        from confluent_kafka.admin import AdminClient

        self.admin = AdminClient({"bootstrap.servers": bootstrap, "client.id": "ops-admin"})
        fresh = {"linger.ms": 5, "topic.metadata.refresh.interval.ms": 1000, "message.timeout.ms": 20_000}
        self.producer = Producer({"bootstrap.servers": bootstrap, "client.id": "ops-writer", **fresh})

    def create(self, topic: str, partitions: int, config: dict[str, str]) -> None:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import NewTopic

        for _ in range(50):
            new = NewTopic(topic, partitions, 1, config=config)
            try:
                self.admin.create_topics([new], request_timeout=20)[topic].result(30)
            except KafkaException as thrown:  # the former topic may not be gone yet
                if "ALREADY_EXISTS" not in str(thrown):
                    raise
                time.sleep(0.2)
            else:
                break

    def delete(self, topic: str) -> None:
        self.admin.delete_topics([topic], request_timeout=20)[topic].result(30)

    def write(self, written: Written, word: str, numbers: range, partitions: int, *, compacted: bool = False) -> None:
        life = written.lives[-1]
        for number in numbers:
            value = f"{word}-{number}"

            def done(error: object, message: Any, value: str = value) -> None:
                if error:
                    written.errors[str(error)] += 1
                else:
                    life[message.partition(), message.offset()] = value, time.time()

            key = str(number % 10).encode() if compacted else None
            self.produce(written.topic, value.encode(), key, number % partitions, done)
            self.producer.poll(0)

    def produce(self, topic: str, value: bytes, key: bytes | None, partition: int, done: Callable[..., None]) -> None:
        """A producer refuses a topic, or a partition, that is not in its metadata yet."""
        from confluent_kafka import KafkaException

        for _ in range(100):
            try:
                return self.producer.produce(topic, value, key, partition, on_delivery=done)
            except KafkaException:
                self.producer.poll(0.1)
        raise SystemExit(f"{topic} is not in the producer's metadata.")


@dataclass
class Reader:
    """One client's process, and what it printed."""

    name: str
    command: list[str]
    lab: Lab
    topic: str
    processes: list[Any] = field(default_factory=list)

    def start(self, environment: dict[str, str]) -> None:
        os.environ.update(environment)
        self.processes.append(self.lab.program(f"{self.name}-{len(self.processes)}", self.command))

    def rows(self) -> list[list[str]]:
        found = [line.split(" ") for one in self.processes for line in one.lines(r"^[REIW] \d+\.\d+ ?")]
        return sorted(found, key=lambda row: float(row[1]))

    def read(self) -> list[tuple[float, int, str, int]]:
        """When, at which offset, which record, of which partition."""
        return [(float(r[1]), int(r[2]), r[3], int(r[4])) for r in self.rows() if r[0] == "R"]


def counted(reader: Reader, written: Written, created: float, ended: float) -> dict[str, Any]:
    """What a client did with the newest life of its topic, by its own output."""
    life = written.lives[-1] if len(written.lives) > 1 else {}
    read = Counter(value for _, _, value, _ in reader.read())
    times = [ts for ts, _, value, _ in reader.read() if ts >= created and not value.startswith("old")]
    places = {value: place for place, (value, _) in life.items()}
    seen = [places[value] for value in read if value in places]
    never: dict[str, list[int]] = {}
    for (partition, offset), (value, _) in sorted(life.items()):
        reached = max((o for p, o in seen if p == partition), default=-1)
        if value not in read and offset < reached:
            never.setdefault(str(partition), []).append(offset)
    due = [value for value, at in life.values() if at < ended - LATE_S]
    errors = Counter(" ".join(row[2:])[:160] for row in reader.rows() if row[0] == "E")
    return {
        "topic": reader.topic,
        "read_of_the_old": sum(1 for value in read if value.startswith("old")),
        "read_of_the_new": len(seen),
        "written_to_the_new": len(life),
        "first_offset": {str(p): min(o for q, o in seen if q == p) for p, _ in sorted(seen)},
        "first_after_s": round(min(times) - created, 1) if times else None,
        "last_before_end_s": round(ended - max(times), 1) if times else None,
        "never_read": {p: [found[0], found[-1], len(found)] for p, found in never.items()},
        "not_reached": sum(1 for value in due if value not in read) - sum(map(len, never.values())),
        "read_twice": sum(count - 1 for count in read.values()),
        "errors": dict(errors.most_common(5)),
        "info": [" ".join(row[1:])[:200] for row in reader.rows() if row[0] == "I"][-8:],
        "alive_at_end": reader.processes[-1].is_alive,
    }


class Run:
    """One capture: clients warm up, their topics are deleted and created again, and are written to."""

    def __init__(self, lab: Lab, given: argparse.Namespace) -> None:
        self.lab, self.given = lab, given
        before, _, after = given.partitions.partition(":")
        self.partitions = int(before), int(after or before)
        self.config = COMPACTED if given.compacted else {}
        self.readers: list[Reader] = []
        self.written: dict[str, Written] = {}
        self.events: dict[str, float] = {}

    def prepare(self) -> None:
        lab = self.lab
        for number in range(1, self.given.brokers + 1):
            node = lab.raft_node(number, KAFKA, "broker,controller" if number == 1 else "broker")
            node.config |= {
                "transaction.state.log.num.partitions": 1, "share.coordinator.state.topic.num.partitions": 1,
                "share.coordinator.state.topic.replication.factor": 1, "share.coordinator.state.topic.min.isr": 1,
            }  # fmt: skip
            lab.format(node)
        lab.start()
        self.operator = Operator(lab.bootstrap())
        every = commands(self.given.clients)
        for name in self.given.client.split(","):
            topic = f"t-{name}"
            own = [lab.bootstrap(), topic, f"c-{name}", f"g-{name}"]
            words = every[name]
            at = words.index("+")
            command = [*words[:at], *own, *(str(lab.work / name) if w == "STATE" else w for w in words[at + 1 :])]
            self.readers.append(Reader(name, command, lab, topic))
            self.written[topic] = Written(topic)
        if self.given.transaction:
            own = [lab.bootstrap(), "TOPIC", "c-transactions", "TRANSACTIONS"]
            self.transactions = [*every["java-transactions"][:-1], *own]

    def mark(self, what: str) -> None:
        self.events[what] = time.time()
        self.lab.event(what)

    def new_life(self, word: str, count: int, partitions: int) -> None:
        for topic, written in self.written.items():
            self.operator.create(topic, partitions, self.config)
            written.lives.append({})
            self.operator.write(written, word, range(count), partitions, compacted=self.given.compacted)
        self.operator.producer.flush(20)

    def delete(self) -> None:
        for topic in self.written:
            self.operator.delete(topic)

    def warm(self) -> None:
        """Until each reader has all records, or as long as it may take."""
        self.new_life("old", OLD - 5, self.partitions[0])
        environment = {"PYTHONPATH": str(self.given.clients / "python"), "GOMAXPROCS": "2"}
        for reader in self.readers:
            reader.start(environment)
        if self.given.transaction:
            for reader in self.readers:
                mine = {"TOPIC": reader.topic, "TRANSACTIONS": f"transactions-{reader.name}"}
                command = [mine.get(word, word) for word in self.transactions]
                Reader("transactions", command, self.lab, reader.topic).start(environment)
        until = time.time() + WARM_S
        while time.time() < until and any(
            len(one.read()) < OLD - 5 and one.name not in NEVER_READ for one in self.readers
        ):
            time.sleep(0.5)
        for written in self.written.values():
            numbers = range(OLD - 5, OLD)
            self.operator.write(written, "old", numbers, self.partitions[0], compacted=self.given.compacted)
        self.operator.producer.flush(20)
        time.sleep(SETTLE_S)

    def recreate(self) -> None:
        for number in range(self.given.times):
            self.mark("deleted" if number == 0 else f"deleted-{number + 1}")
            self.delete()
            if self.given.never:
                return
            time.sleep(self.given.gap)
            self.mark("created")
            word = "new" if number == self.given.times - 1 else f"between{number}"
            self.new_life(word, self.given.records, self.partitions[1])
            if number < self.given.times - 1:
                time.sleep(self.given.gap)

    def watch(self) -> None:
        """Two records a second go to each topic, as long as it is there."""
        until, number, restart = time.time() + self.given.seconds, self.given.records, time.time() + 20
        while time.time() < until:
            if not self.given.never:
                for written in self.written.values():
                    numbers = range(number, number + 1)
                    self.operator.write(written, "new", numbers, self.partitions[1], compacted=self.given.compacted)
            number += 1
            self.operator.producer.poll(0)
            time.sleep(0.5)
            if self.given.restart and time.time() > restart:
                self.restart()
                restart = until + 1
        self.operator.producer.flush(10)
        self.mark("ended")

    def restart(self) -> None:
        self.mark("restarted")
        stopping = [threading.Thread(target=one.processes[-1].stop, args=(8,)) for one in self.readers]
        for thread in stopping:
            thread.start()
        for thread in stopping:
            thread.join()
        for reader in self.readers:
            reader.start({})

    def truth(self) -> dict[str, Any]:
        created, ended = self.events.get("created", self.events["deleted"]), self.events["ended"]
        clients = {f"c-{one.name}": counted(one, self.written[one.topic], created, ended) for one in self.readers}
        hurt = [name for name, one in clients.items() if one["never_read"] or one["not_reached"] > 5]
        return {
            "kafka": KAFKA,
            "brokers": [{"id": number} for number in self.lab.nodes],
            "topics": [{"name": topic} for topic in self.written],
            "events": self.events,
            "records": self.given.records,
            "clients": clients,
            "writer_errors": {topic: dict(one.errors) for topic, one in self.written.items() if one.errors},
            "hurt_clients": sorted(hurt),
        }


NEVER_READ = {"no-kafka", "java-transactions"}


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    default = os.environ.get("WIRECHECK_KAFKA")
    parser.add_argument(
        "--kafka", type=Path, default=default, required=not default, help="folder of jars (get-kafka.sh)"
    )
    parser.add_argument(
        "--clients", type=Path, required=True, help="folder of clients (recreated-topic/get-clients.sh)"
    )
    parser.add_argument("--client", required=True, help=f"one or several of {', '.join(commands(Path()))}")
    parser.add_argument("--records", type=int, default=20, help="of the new topic, at once: 20 is short, 200 is long")
    parser.add_argument("--seconds", type=float, default=60, help="how long it is written to")
    parser.add_argument("--gap", type=float, default=1, help="seconds between deletion and creation")
    parser.add_argument("--brokers", type=int, default=1, help="topics and groups are divided among them")
    parser.add_argument("--partitions", default="1", help="before and after: 2:4")
    parser.add_argument("--times", type=int, default=1, help="how often it is recreated")
    parser.add_argument("--never", action="store_true", help="it is deleted, and not created again")
    parser.add_argument("--compacted", action="store_true", help="the topic is compacted")
    parser.add_argument("--transaction", action="store_true", help="a transactional producer writes to it, too")
    parser.add_argument("--restart", action="store_true", help="clients are restarted 20 s after the recreation")
    parser.add_argument("--out", type=Path, default=Path("incidents"), help="folder for capture and truth")
    parser.add_argument("--name", default="recreated_topic", help="folder in it")
    parser.add_argument("--agent", action="store_true", help="capture with wirecheck's agent in place of tcpdump")
    given = parser.parse_args()
    given.kafka, given.clients, given.out = given.kafka.resolve(), given.clients.resolve(), given.out.resolve()
    return given


def main() -> None:
    given = parsed()
    sys.path.insert(0, str(given.clients / "python"))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends what was started, as every other way out does
    with Lab(given.name, given) as lab:
        run = Run(lab, given)
        run.prepare()
        run.warm()
        run.recreate()
        run.watch()
        truth = run.truth()
        (lab.out / "truth.json").write_text(json.dumps(truth, indent=1) + "\n")
        time.sleep(1)
        lab.capture.signal(signal.SIGINT)
        lab.capture.process.wait(30)
    shutil.rmtree(lab.work, ignore_errors=True)
    for name, one in truth["clients"].items():
        print(name, json.dumps({key: value for key, value in one.items() if key != "info"}))


if __name__ == "__main__":
    main()
