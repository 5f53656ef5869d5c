"""KAFKA-13132: topics of an inter-broker protocol up to 2.7 get their ids, and brokers write them to disk, or not."""

import time

from lab import Lab, reproduce

KAFKA = "3.0.2"


def incident(lab: Lab) -> None:
    """Needs the jars of Kafka 3.0.2, or of what you want to try. Two minutes. No release is known to have the fault."""
    lab.brokers_with_zookeeper(KAFKA, "2.7")
    lab.start()
    lab.create(KAFKA, "ledger", "1:2:3,2:3:1")
    lab.producer(KAFKA, "ledger")
    time.sleep(5)
    controller = lab.leading_controller(KAFKA)
    for number in [n for n in lab.nodes if n != controller] + [controller]:
        lab.event(f"node {number} gets protocol 3.0")
        lab.stop(number)
        lab.nodes[number].config["inter.broker.protocol.version"] = "3.0"
        lab.start(number)
        for each, node in lab.nodes.items():
            lab.event(f"  on the disk of {each}: {node.topic_ids()}")
    time.sleep(15)
    for each, node in lab.nodes.items():
        lab.event(f"at the end, on the disk of {each}: {node.topic_ids()}")


if __name__ == "__main__":
    reproduce(incident, "TID016")
