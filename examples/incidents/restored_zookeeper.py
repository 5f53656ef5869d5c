"""A volume of another life: one replica's directory carries another topic id than the controller's."""

import time

from lab import Lab, reproduce

KAFKA, OTHER = "3.9.1", "WiReChEcKaBadTopIcId0Q"


def incident(lab: Lab) -> None:
    """Needs the jars of Kafka 3.9.1. Takes a minute and a half."""
    lab.brokers_with_zookeeper(KAFKA, "3.9")
    lab.start()
    lab.create(KAFKA, "shipments", "1:2:3,2:3:1")
    lab.create(KAFKA, "parcels", "1:2:3")
    lab.producer(KAFKA, "shipments")
    time.sleep(4)
    lab.stop(3)
    path = lab.nodes[3].data / "shipments-1/partition.metadata"
    path.write_text(path.read_text().replace(lab.nodes[3].topic_ids()["shipments-1"], OTHER))
    lab.event(f"FAULT {path.parent.name} on node 3 has the id {OTHER}")
    lab.start(3)
    time.sleep(10)
    lab.event("the next controller sends everything again")
    lab.zk(KAFKA, "delete", "/controller")
    time.sleep(10)


if __name__ == "__main__":
    reproduce(incident, "TID002")
