"""A controller that was frozen for longer than its session wakes up, and goes on giving orders of its old epoch."""

import contextlib
import signal
import subprocess
import time

from lab import Lab, reproduce

KAFKA = "3.9.1"


def incident(lab: Lab) -> None:
    """Needs the jars of Kafka 3.9.1. Takes two minutes."""
    lab.brokers_with_zookeeper(KAFKA, "3.9")
    lab.nodes[2].config["zookeeper.session.timeout.ms"] = 45000
    lab.start()
    old = lab.leading_controller(KAFKA)
    slow, heir = (2, 3) if old == 1 else (2, 1)
    if old == slow:
        lab.stop(old)
        lab.start(old)
        old = lab.leading_controller(KAFKA)
        heir = ({1, 3} - {old}).pop()
    lab.create(KAFKA, "meters", "1:2:3,2:3:1,3:1:2")
    lab.producer(KAFKA, "meters")
    time.sleep(4)
    lab.event(f"node {slow} is frozen: orders to it wait at controller {old}")
    lab.nodes[slow].signal(signal.SIGSTOP)
    for letter in "abc":
        size = ("--partitions", 2, "--replication-factor", 3)
        with contextlib.suppress(subprocess.TimeoutExpired):  # it waits for the frozen broker
            where = ("--bootstrap-server", lab.bootstrap(old))
            lab.tool(
                KAFKA, "TopicCommand", *where, "--create", "--topic", f"queued-{letter}", *size, check=False, seconds=8
            )
    lab.event(f"FAULT controller {old} is frozen for longer than its session")
    lab.nodes[old].signal(signal.SIGSTOP)
    while lab.leading_controller(KAFKA) != heir:
        time.sleep(1)
    time.sleep(2)
    lab.event(f"node {slow} wakes up, and then controller {old}")
    lab.nodes[slow].signal(signal.SIGCONT)
    time.sleep(1.5)
    lab.nodes[old].signal(signal.SIGCONT)
    time.sleep(25)


if __name__ == "__main__":
    reproduce(incident, "CTL001")
