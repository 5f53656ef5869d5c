"""A broker that the controller no longer reaches stays registered, and serves what it knew."""

import time

from lab import NET, Lab, reproduce

KAFKA = "3.9.1"


def incident(lab: Lab) -> None:
    """Needs the jars of Kafka 3.9.1. Three minutes. Orders go to broker 3 through a forwarder, in the capture."""
    lab.brokers_with_zookeeper(KAFKA, "3.9")
    for number, node in lab.nodes.items():
        plain, control = f"PLAINTEXT://{lab.address(number)}", f"CONTROL://{lab.controller(number)}"
        node.config |= {
            "listeners": f"{plain},{control}", "control.plane.listener.name": "CONTROL",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROL:PLAINTEXT",
        }  # fmt: skip
    wall = lab.forward((f"{NET}.99", 21179), (f"{NET}.3", 21103))
    lab.nodes[3].config["advertised.listeners"] = f"PLAINTEXT://{lab.address(3)},CONTROL://{NET}.99:21179"
    lab.start()
    if lab.leading_controller(KAFKA) == 3:
        raise SystemExit("broker 3 became controller: once more")
    lab.create(KAFKA, "bulletin", "1:2,2:3")
    for number in (1, 3):
        where = ("--bootstrap-server", lab.bootstrap(number), "--topic", "bulletin", "--group", f"readers-{number}")
        lab.client(KAFKA, "ConsoleConsumer", *where, "--consumer-property", "metadata.max.age.ms=5000")
    time.sleep(8)
    lab.event("FAULT the controller's orders no longer reach broker 3")
    wall.deaf_to = b""
    lab.create(KAFKA, "unheard", "1:2,2:1", 1, 2)
    for _ in range(6):  # each broker is asked, until nobody can call it propagation
        for number in (1, 2, 3):
            where = ("--bootstrap-server", lab.bootstrap(number), "--topic", "unheard", "--timeout-ms", 3000)
            lab.tool(KAFKA, "ConsoleConsumer", *where, check=False)
        time.sleep(2)


if __name__ == "__main__":
    reproduce(incident, "TID007")
