"""A topic whose deletion waits for a broker is removed from ZooKeeper by hand, and created again."""

import time

from lab import Lab, reproduce

KAFKA = "3.9.1"


def incident(lab: Lab) -> None:
    """Needs the jars of Kafka 3.9.1. Takes two minutes."""
    lab.brokers_with_zookeeper(KAFKA, "3.9")
    lab.start()
    lab.create(KAFKA, "returns", "1:2:3,2:1:3")
    lab.producer(KAFKA, "returns")
    time.sleep(5)
    lab.stop(3)
    lab.delete(KAFKA, "returns", 1, 2)
    time.sleep(5)
    lab.event("FAULT an operator removes the topic's nodes, and the controller's")
    for path in ("/brokers/topics/returns", "/config/topics/returns", "/admin/delete_topics/returns"):
        lab.zk(KAFKA, "deleteall", path)
    lab.zk(KAFKA, "delete", "/controller")
    time.sleep(5)
    lab.create(KAFKA, "returns", "1:2:3,2:1:3", 1, 2)
    time.sleep(4)
    lab.start(3)
    time.sleep(15)


if __name__ == "__main__":
    reproduce(incident, "TID001")
