"""A group lives on while its topic is deleted and made anew: its offsets are gone, and nobody told it."""

import time

from lab import Lab, reproduce

KAFKA = "4.3.1"


def incident(lab: Lab) -> None:
    """Needs the jars of Kafka 4.3.1. Takes a minute and a half."""
    lab.format(lab.raft_node(1, KAFKA, "broker,controller"))
    lab.start()
    lab.create(KAFKA, "invoices", "1,1")
    lab.producer(KAFKA, "invoices", 8)
    own = ("--topic", "invoices", "--group", "billing", "--bootstrap-server", lab.bootstrap())
    settings = ("auto.commit.interval.ms=1000", "metadata.max.age.ms=3000", "group.protocol=consumer")
    lab.client(KAFKA, "ConsoleConsumer", *own, *(word for pair in settings for word in ("--consumer-property", pair)))
    time.sleep(15)
    lab.event("FAULT the topic is made anew under the group")
    lab.delete(KAFKA, "invoices")
    time.sleep(3)
    lab.create(KAFKA, "invoices", "1")
    time.sleep(20)


if __name__ == "__main__":
    reproduce(incident, "TID001")
