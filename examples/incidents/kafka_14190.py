"""KAFKA-14190: kafka-topics of 2.4.1 writes ZooKeeper, the topic's id is gone, the next controller makes another."""

import time

from lab import Lab, reproduce

KAFKA, TOOL = "2.8.2", "2.4.1"


def incident(lab: Lab) -> None:
    """Needs the jars of Kafka 2.8.2 and 2.4.1. Takes two minutes."""
    lab.brokers_with_zookeeper(KAFKA, "2.8")
    lab.start()
    lab.create(KAFKA, "orders", "1:2:3,2:3:1")
    lab.producer(KAFKA, "orders")
    time.sleep(5)
    lab.event(f"FAULT kafka-topics {TOOL} --zookeeper adds a partition")
    where = ("--zookeeper", lab.zookeeper_address)
    lab.tool(TOOL, "TopicCommand", *where, "--alter", "--topic", "orders", "--partitions", 3)
    time.sleep(3)
    controller = lab.leading_controller(KAFKA)
    lab.stop(controller)
    time.sleep(8)
    lab.start(controller)
    time.sleep(40)


if __name__ == "__main__":
    reproduce(incident, "TID004")
