"""KAFKA-12835: a controller of protocol 2.7 reassigns, the topic's id is gone, the next controller makes another."""

import json
import time

from lab import Lab, reproduce

KAFKA = "2.8.0"


def incident(lab: Lab) -> None:
    """Needs the jars of Kafka 2.8.0. Takes three minutes."""
    lab.brokers_with_zookeeper(KAFKA, "2.8")
    lab.start()
    lab.create(KAFKA, "ledger", "1:2,2:1")
    lab.producer(KAFKA, "ledger")
    time.sleep(4)
    lab.stop(3)
    lab.nodes[3].config["inter.broker.protocol.version"] = "2.7"
    lab.start(3)
    while (other := lab.leading_controller(KAFKA)) != 3:
        lab.stop(other)
        lab.start(other)
    lab.event("FAULT the controller, of protocol 2.7, reassigns")
    plan = [{"topic": "ledger", "partition": number, "replicas": [number + 1, 3]} for number in (0, 1)]
    path = lab.work / "plan.json"
    path.write_text(json.dumps({"version": 1, "partitions": plan}))
    where = ("--bootstrap-server", lab.bootstrap(), "--reassignment-json-file", path)
    lab.tool(KAFKA, "ReassignPartitionsCommand", *where, "--execute")
    time.sleep(10)
    lab.stop(3)
    time.sleep(10)
    lab.start(3)
    time.sleep(40)


if __name__ == "__main__":
    reproduce(incident, "TID004")
