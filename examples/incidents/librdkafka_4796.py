"""librdkafka #4796: a leader epoch that a new broker told makes a client deaf to what old brokers say of the leader."""

import sys
import time
from pathlib import Path

from lab import Lab, reproduce

NEW, OLD = "3.6.2", "2.2.2"


def incident(lab: Lab) -> None:
    """Needs the jars of Kafka 3.6.2 and 2.2.2, and as --client a Python with confluent-kafka 2.4."""
    lab.brokers_with_zookeeper(NEW, "2.2", **{"leader.imbalance.check.interval.seconds": 3600})
    for number in (1, 2):
        lab.nodes[number].release = lab.release(OLD)
    lab.start()
    lab.create(NEW, "orders", "1:2", 3)
    program = Path(__file__).parent / "librdkafka_producer.py"
    lab.program("librdkafka", [lab.given.client or sys.executable, str(program), lab.bootstrap(3), "orders"])
    time.sleep(8)
    lab.event("the one new broker goes, and the leader moves from broker 1 to broker 2, both of before 2.4")
    lab.stop(3)
    lab.stop(1)
    lab.start(1)
    time.sleep(60)
    lab.start(3)
    time.sleep(20)


if __name__ == "__main__":
    reproduce(incident, "FET007")
