"""KIP-896: a 4.x broker closes the connection of a client that sends a version it no longer has."""

import time

from lab import Lab, reproduce

KAFKA, OLD = "4.3.1", "0.10.2.2"


def incident(lab: Lab) -> None:
    """Needs the jars of Kafka 4.3.1 and 0.10.2.2. Takes a minute."""
    lab.format(lab.raft_node(1, KAFKA, "broker,controller"))
    lab.start()
    lab.create(KAFKA, "orders", "1,1")
    lab.producer(KAFKA, "orders", 4)
    time.sleep(4)
    lab.event(f"FAULT a producer of {OLD} is still there")
    lab.client(OLD, "VerifiableProducer", "--broker-list", lab.bootstrap(), "--topic", "orders", "--throughput", 2)
    time.sleep(20)


if __name__ == "__main__":
    reproduce(incident, "VER005")
