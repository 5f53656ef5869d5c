"""A topic is deleted and made anew, and a consumer fetches the old id for ever."""

import time

from lab import Lab, reproduce

KAFKA = "4.3.1"


def incident(lab: Lab) -> None:
    """Needs the jars of Kafka 4.3.1, and --client, built from franz-go/: `cd franz-go && go build -o CONSUMER .`."""
    if not lab.given.client:
        raise SystemExit("--client is missing: the consumer built from franz-go/")
    lab.format(lab.raft_node(1, KAFKA, "broker,controller"))
    lab.format(lab.raft_node(2, KAFKA, "broker"))
    lab.start()
    lab.create(KAFKA, "songs", "1:2,2:1")
    lab.create(KAFKA, "calm", "1:2")
    lab.producer(KAFKA, "songs", 4)
    lab.program("franz-go", [lab.given.client, lab.bootstrap(), "songs"])
    time.sleep(10)
    lab.event("FAULT the topic is made anew, the consumer keeps what it was told")
    lab.delete(KAFKA, "songs")
    time.sleep(2)
    lab.create(KAFKA, "songs", "2:1,1:2")
    time.sleep(50)


if __name__ == "__main__":
    reproduce(incident, "TID001")
