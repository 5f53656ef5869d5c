"""A cluster is stopped, formatted again with the same cluster ID, and started at the same addresses."""

import shutil
import time

from lab import Lab, reproduce

KAFKA = "4.3.1"


def incident(lab: Lab) -> None:
    """Needs the jars of Kafka 4.3.1. Takes a minute and a half."""
    for number, roles in ((1, "controller"), (2, "broker"), (3, "broker")):
        lab.format(lab.raft_node(number, KAFKA, roles))
    lab.start(1, 2, 3)
    for topic in ("orders", "payments"):
        lab.create(KAFKA, topic, "2:3")
    time.sleep(4)
    for number in (3, 2, 1):
        lab.stop(number)
    lab.event("FAULT all nodes are formatted again with the same cluster ID")
    for node in lab.nodes.values():
        shutil.rmtree(node.data)
        lab.format(node)
    lab.start(1, 2, 3)
    for topic in ("orders", "payments"):
        lab.create(KAFKA, topic, "2:3")
    time.sleep(40)


if __name__ == "__main__":
    reproduce(incident, "LOG005")
