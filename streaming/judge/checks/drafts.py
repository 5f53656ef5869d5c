"""TID: what KIP-516 as drafted says that no release does.

Knows: the type of a drafted LeaderAndIsr and what follows from it for the replicas a broker has. Does not know
messages.
Rule: a broker has a replica if it was ordered to, and until it was ordered to delete it; what was ordered elsewhere
says nothing about it.
"""

from collections.abc import Iterator

from streaming.judge.claim import Cell, Claim
from streaming.judge.clusters import Group
from streaming.judge.evidence import Evidence, first_of, last_of
from streaming.judge.scene import Scene

NO_LEADERSHIP = {"stop", "delete"}


def stale_partition_in_incremental(cell: Cell, group: Group, scene: Scene) -> Iterator[Evidence]:
    """Finds. An INCREMENTAL LeaderAndIsr, as KIP-516 drafted it (v3), that orders a broker to a partition under another
    topic id than the one it was ordered to before.

    Why it matters. By the draft the replica on the broker's disk is stale: the topic must have been deleted and created
    again, and the broker stages the old replica for deletion.

    When it is innocent. When the old replica was deleted first (StopReplica with deletion): then nothing is stale. A
    broker whose earlier orders were not seen is not judged, and neither are releases: they answer 103 instead.

    Source. KIP-516 as drafted, the second kind of stale partition.
    """
    for order in scene.claims("ordered", group, *cell):
        before = replica_before(order, scene.claims("ordered", group, "name", order["name"]))
        if order["how"] == "incremental" and before is not None:
            yield Evidence(
                (cell[1], order["partition"], scene.node(order)),
                (first_of(before), first_of(order), last_of(order)),
                topic=order["name"],
                topic_ids=(before["topic_id"], cell[1]),
                brokers=(scene.broker(order),),
                count=order.count,
                words={
                    "partition": order["partition"],
                    "where": scene.node(order),
                    "by": order["by"].replace("@", ", epoch "),
                    "old": before["topic_id"],
                    "new": cell[1],
                },
            )


def replica_before(order: Claim, orders: list[Claim]) -> Claim | None:
    """The order by which this broker has the partition under another id when this order comes."""
    same = [
        other
        for other in orders
        if (other["endpoint"], other["partition"]) == (order["endpoint"], order["partition"])
        and other["topic_id"] != order["topic_id"]
        and other.first < order.first
    ]
    deleted = {other["topic_id"]: other for other in same if other["how"] == "delete"}
    has = [
        other
        for other in same
        if other["how"] not in NO_LEADERSHIP
        and (other["topic_id"] not in deleted or deleted[other["topic_id"]].last < other.first)
    ]
    return max(has, key=lambda other: other.first, default=None)
