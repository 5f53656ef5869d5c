"""The disks of a stopped cluster are copied, and both copies run at different addresses."""

import shutil
import time

from lab import Lab, reproduce

KAFKA = "4.3.1"


def incident(lab: Lab) -> None:
    """Needs the jars of Kafka 4.3.1. Takes two minutes."""
    for number, roles in ((1, "controller"), (2, "broker")):
        lab.format(lab.raft_node(number, KAFKA, roles))
    lab.start(1, 2)
    lab.create(KAFKA, "orders", "2")
    time.sleep(3)
    for number in (2, 1):
        lab.stop(number)
    lab.event("FAULT nodes 11 and 12 start with copies of the disks of nodes 1 and 2")
    voters = f"1@{lab.controller(11)}"
    for number, original, roles in ((11, 1, "controller"), (12, 2, "broker")):
        copy = lab.raft_node(number, KAFKA, roles, voters)
        copy.config["node.id"] = original
        shutil.copytree(lab.nodes[original].data, copy.data)
    lab.start(1, 2, 11, 12)
    time.sleep(5)
    lab.delete(KAFKA, "orders", 12)
    time.sleep(2)
    lab.create(KAFKA, "orders", "2", 12)
    time.sleep(45)


if __name__ == "__main__":
    reproduce(incident, "CLU003")
