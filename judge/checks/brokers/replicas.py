"""TID, CTL: orders that make a broker throw away a replica it should keep.

Knows which replicas a broker has by the controller's own word. Does not know messages.
Rule: topics that were deleted and partitions that were moved away are thrown away rightly; what was not seen before the
order is not judged.
"""

from collections.abc import Iterator

from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.brokers.control import turned_away
from wirecheck.judge.checks.brokers.leadership import latest
from wirecheck.judge.checks.clock import clock
from wirecheck.judge.claims.claim import Claim, Subject
from wirecheck.judge.results.finding import Evidence, first_of, last_of
from wirecheck.judge.topic_history import CONTROL, History, name_of, topic_of
from wirecheck.judge.topology.clusters import Group


def full_leader_and_isr_strays_replica(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Detects. A FULL LeaderAndIsr request omits a partition that the broker has, or names it with another topic ID,
    and no deletion or move was seen. Such requests come from a KRaft controller during migration, or from the draft of
    KIP-516.

    Why it matters. The broker treats its replica as stray and renames the directory. The data is offline, and is lost
    if an operator deletes the `-stray` directory.

    False positives. None known. Deletions and reassignments do not count, nor brokers whose earlier requests are not in
    the capture.

    Source. KIP-516; KIP-866; LogManager.findStrayReplicas of Kafka 3.9.
    """
    fulls = context.claims("full_order", group, "server")
    states = [claim for claim in context.claims("partition", group, *subject) if claim["source"] in CONTROL]
    if states:
        context.watch()
    if not fulls or not states or context.claims("deletion", group, *subject):
        return
    name = name_of(subject, group, context)
    orders = [o for o in context.claims("ordered", group, "name", name) if o["how"] == "full"] if name else []
    for partition, said in sorted(latest(states).items()):
        for full in fulls:
            broker = context.broker(full)
            before = [claim for claim in said if claim.first < full.last and has(claim, broker)]
            here = [o for o in orders if (o["partition"], o["endpoint"]) == (partition, full["endpoint"])]
            now = [o for o in here if o.last.ts_ns >= full.last.ts_ns]
            if not before or len(before) < len(said) or any(o["topic_id"] == subject[1] for o in now):
                continue
            if name is None or not context.passed(full.last.ts_ns + context.settings.broker_grace_ns):
                continue
            if any(ends(deletion, full) for deletion in topic_of(name, group, context).deletions):
                continue
            yield Evidence(
                (subject[1], partition, broker, "other-id" if now else "absent"),
                (first_of(before[0]), last_of(full), *(last_of(order) for order in now)),
                topic=name,
                topic_ids=(subject[1], *sorted({order["topic_id"] for order in now})),
                brokers=(broker,),
                words={
                    "partition": partition,
                    "broker": broker,
                    "reason": f"under {now[0]['topic_id']}" if now else "not at all",
                    "time": clock(full.last.ts_ns),
                },
            )


def has(claim: Claim, broker: int | None) -> bool:
    return str(broker) in claim["replicas"].split(",")


def ends(deletion: Claim, full: Claim) -> bool:
    """Whether a deletion that names no id may have come before the order."""
    return deletion["topic_id"] is None and deletion.first.ts_ns <= full.last.ts_ns


def stop_replica_contradiction(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Detects. A controller makes a broker delete a replica. After the grace period, in the same leader epoch, it still
    names the broker as a replica of that partition.

    Why it matters. The broker deleted its data, and the cluster counts on it as a replica. The partition has one copy
    less than it seems.

    False positives. None known. A replica that moved is no longer named, and a deleted topic has no epoch (-2).
    StopReplica without deletion is part of a broker's shutdown. Before version 3 the request has no epoch and does not
    count.

    Source. KIP-570; KafkaController.onPartitionReassignment of Kafka 3.9.
    """
    for stop in context.claims("stopped", group, *subject):
        context.watch()
        broker = context.broker(stop)
        history = alive_at(stop, topic_of(subject[1], group, context).histories)
        after = stop.first.ts_ns + context.settings.broker_grace_ns
        back = [
            claim
            for claim in (history.partitions if history else ())
            if claim["source"] in CONTROL
            and (claim["partition"], claim["leader_epoch"]) == (stop["partition"], stop["leader_epoch"])
            and has(claim, broker)
            and claim.last.ts_ns > after
        ]
        if history and back and not turned_away(back, group, context):
            yield Evidence(
                (subject[1], stop["partition"], broker),
                (first_of(stop), *(last_of(claim) for claim in back)),
                topic=subject[1],
                topic_ids=(history.topic_id,),
                brokers=(broker,),
                count=len(back),
                words={
                    "partition": stop["partition"],
                    "broker": broker,
                    "epoch": stop["leader_epoch"],
                    "time": clock(stop.first.ts_ns),
                },
            )


def alive_at(stop: Claim, histories: list[History]) -> History | None:
    """The id a name had when an order by name came."""
    born = [history for history in histories if history.born_ns <= stop.first.ts_ns]
    return born[-1] if born else None


def unclean_leader_election(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Detects. A PartitionChangeRecord of the metadata log elects a leader and marks it as recovering: the
    replica was not in sync.

    Why it matters. Records that only the former leader had are lost. Consumers beyond the new end are reset, and
    followers truncate.

    False positives. An operator asked for it (ElectLeaders, election type UNCLEAN), or the topic has
    unclean.leader.election.enable. Elections by ZooKeeper controllers and by KRaft before 3.2 are not marked.

    Source. KIP-704; PartitionChangeBuilder of Kafka 4.3.
    """
    by_partition: dict[int, list[Claim]] = {}
    for claim in context.claims("unclean", group, *subject):
        by_partition.setdefault(claim["partition"], []).append(claim)
    for partition, claims in sorted(by_partition.items()):
        last = max(claims, key=lambda claim: claim.peak["offset"])
        yield Evidence(
            (subject[1], partition),
            tuple(first_of(claim) for claim in claims),
            topic=name_of(subject, group, context),
            topic_ids=(subject[1],),
            brokers=tuple(claim["leader"] for claim in claims),
            count=len(claims),
            words={
                "leader": last["leader"],
                "partition": partition,
                "time": clock(last.first.ts_ns),
                "more": f" ({len(claims)} elections)" if len(claims) > 1 else "",
            },
        )


def log_directory_offline(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Detects. The heartbeats of a broker name log directories that are offline.

    Why it matters. A disk failed, or its file system is full or read-only. Replicas there are unavailable; leaders move
    to other brokers, and partitions with one replica are gone.

    False positives. None known. Brokers with one directory stop instead.

    Source. KIP-858; BrokerLifecycleManager of Kafka 3.7.
    """
    by_broker: dict[int, list[Claim]] = {}
    for claim in context.claims("offline_dirs", group, *subject):
        by_broker.setdefault(claim["broker"], []).append(claim)
    for broker, claims in sorted(by_broker.items()):
        yield Evidence(
            (broker,),
            tuple(side for claim in claims for side in (first_of(claim), last_of(claim))),
            brokers=(broker,),
            count=sum(claim.count for claim in claims),
            words={
                "node": broker,
                "directories": max(claim["directories"] for claim in claims),
                "time": clock(min(claim.first for claim in claims).ts_ns),
            },
        )
