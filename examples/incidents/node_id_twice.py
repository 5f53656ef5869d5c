"""A second process starts with the node ID of a live broker, and registers while the first one is paused."""

import signal
import time

from lab import Lab, reproduce

KAFKA = "4.3.1"


def incident(lab: Lab) -> None:
    """Needs the jars of Kafka 4.3.1. Takes two minutes."""
    for number, roles in ((1, "controller"), (2, "broker"), (3, "broker")):
        lab.format(lab.raft_node(number, KAFKA, roles))
    lab.start(1, 2, 3)
    lab.create(KAFKA, "orders", "3:2,2:3")
    lab.producer(KAFKA, "orders")
    time.sleep(8)
    lab.event("FAULT a second process starts with node ID 3, with a disk and an address of its own")
    twin = lab.raft_node(13, KAFKA, "broker")
    twin.config["node.id"] = 3
    lab.format(twin)
    twin.start_alone()
    time.sleep(15)
    lab.event("node 3 is paused")
    lab.nodes[3].signal(signal.SIGSTOP)
    time.sleep(25)
    lab.event("node 3 goes on")
    lab.nodes[3].signal(signal.SIGCONT)
    time.sleep(25)


if __name__ == "__main__":
    reproduce(incident, "CTL012")
