"""A broker stops following the metadata log while its heartbeats go on: nobody fences it, and it serves old ids."""

import time

from lab import NET, Lab, reproduce

KAFKA = "4.3.1"
PORT = 21101


def incident(lab: Lab) -> None:
    """Needs the jars of Kafka 4.3.1. Three minutes. Broker 4 reaches the controller through a forwarder."""
    for number, roles in ((1, "controller"), (2, "broker"), (3, "broker"), (4, "broker")):
        node = lab.raft_node(number, KAFKA, roles, f"1@ctrl1:{PORT}")
        hosts = lab.work / f"hosts-{number}"
        hosts.write_text(f"{NET}.{99 if number == 4 else 1} ctrl1\n")
        node.flags = [f"-Djdk.net.hosts.file={hosts}"]
    lab.nodes[1].config["advertised.listeners"] = f"CONTROLLER://ctrl1:{PORT}"
    wall = lab.forward((f"{NET}.99", PORT), (f"{NET}.1", PORT))
    for node in lab.nodes.values():
        lab.format(node)
    lab.start()
    lab.create(KAFKA, "tickets", "2:3:4,3:4:2", 2, 3)
    lab.producer(KAFKA, "tickets", 4, 2, 3)
    time.sleep(8)
    lab.event("FAULT broker 4's fetches of the metadata log are cut, its heartbeats pass")
    wall.deaf_to = b"raft-client-"
    time.sleep(14)
    lab.delete(KAFKA, "tickets", 2, 3)
    lab.create(KAFKA, "tickets", "2:3,3:2", 2, 3)
    for number in (4, 2, 4, 2, 4, 2):
        where = ("--bootstrap-server", lab.bootstrap(number), "--describe", "--topic", "tickets")
        lab.tool(KAFKA, "TopicCommand", *where, check=False)
        time.sleep(12)


if __name__ == "__main__":
    reproduce(incident, "LOG003")
