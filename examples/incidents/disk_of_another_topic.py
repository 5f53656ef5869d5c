"""KRaft: a replica's directory carries another topic's id; the broker leads by the log, and denies it."""

import time

from lab import Lab, reproduce

KAFKA = "4.3.1"


def incident(lab: Lab) -> None:
    """Needs the jars of Kafka 4.3.1. Takes two minutes."""
    for number in (1, 2, 3):
        lab.format(lab.raft_node(number, KAFKA, "broker,controller" if number == 1 else "broker"))
    lab.start()
    lab.create(KAFKA, "solo", "3")
    lab.create(KAFKA, "pair", "2:3,3:2")
    lab.create(KAFKA, "calm", "1:2:3")
    for topic in ("solo", "pair"):
        lab.producer(KAFKA, topic, 3)
    time.sleep(8)
    lab.stop(3)
    ids = lab.nodes[3].topic_ids()
    for name in ("solo-0", "pair-0"):
        path = lab.nodes[3].data / name / "partition.metadata"
        path.write_text(path.read_text().replace(ids[name], ids["calm-0"]))
    lab.event(f"FAULT solo-0 and pair-0 on node 3 have the id of calm, {ids['calm-0']}")
    lab.start(3)
    time.sleep(45)


if __name__ == "__main__":
    reproduce(incident, "CTL010")
