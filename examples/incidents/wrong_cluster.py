"""A broker that was formatted for another cluster knocks at this one's controller."""

import time

from lab import Lab, reproduce

KAFKA = "4.3.1"


def incident(lab: Lab) -> None:
    """Needs the jars of Kafka 4.3.1. Takes a minute."""
    for number, roles in ((1, "controller"), (2, "broker")):
        lab.format(lab.raft_node(number, KAFKA, roles))
    lab.start(1, 2)
    lab.create(KAFKA, "home", "2,2")
    lab.producer(KAFKA, "home", 4)
    time.sleep(4)
    stranger = lab.raft_node(7, KAFKA, "broker")
    lab.format(stranger, "PzO7DHjzQRiEIAS0px5gbQ")
    lab.event("FAULT broker 7, of another cluster, starts with this one's controller")
    stranger.start_alone()  # it will never say that it has started
    time.sleep(25)
    stranger.stop(kill=True)
    time.sleep(3)


if __name__ == "__main__":
    reproduce(incident, "CLU001")
