"""TID and DRF: what the drafts of KIP-516 and KIP-4 say that no release does.

Rule: a broker has a replica if it was ordered to, and until it was ordered to delete it; what was ordered elsewhere
says nothing about it.
"""

from collections.abc import Iterator

from wirecheck.decode import schemas
from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.shapes import ends, resting_on
from wirecheck.judge.claims.claim import Claim, Subject
from wirecheck.judge.claims.extract.error_answers import DRAFT_CODES
from wirecheck.judge.results.finding import Evidence, first_of
from wirecheck.judge.topology.clusters import Group

NO_LEADERSHIP = {"stop", "delete"}


def stale_partition_in_incremental(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Detects. An INCREMENTAL LeaderAndIsr request, as drafted in KIP-516 (v3), names a partition with another topic ID
    than before.

    Why it matters. According to the draft, the replica on the broker's disk is stale. The topic was recreated, and the
    broker marks the old replica for deletion.

    False positives. None known. It does not count if the old replica was deleted first (StopReplica), or if earlier
    requests to the broker are not in the capture. Releases answer 103 instead.

    Source. KIP-516 as drafted, the second kind of stale partition.
    """
    for order in context.claims("ordered", group, *subject):
        before = replica_before(order, context.claims("ordered", group, "name", order["name"]))
        if order["how"] == "incremental" and before is not None:
            partition, where, old = order["partition"], context.node(order), before["topic_id"]
            about = {"topic": order["name"], "topic_ids": (old, subject[1]), "brokers": (context.broker(order),)}
            words = {"partition": partition, "where": where, "old": old, "new": subject[1]}
            words["by"] = order["by"].replace("@", ", epoch ")
            sides = (first_of(before), *ends([order]))
            yield resting_on([order], subject[1], partition, where, sides=sides, **about, words=words)


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


def draft_dialect(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Detects. A connection has messages that only the draft named by `--dialect` decodes, or that have a tag where the
    draft has its topic ID. Without `--dialect`, no draft is reported.

    Why it matters. The software is no released Kafka: a fork, or a test. wirecheck checks its messages nevertheless.

    False positives. A known fork, or a proxy that adds tags of its own.

    Source. KIP-516 and KIP-4 as drafted.
    """
    for claim in context.claims("dialect", group, *subject):
        words = {"host": claim["host"], "server": claim["endpoint"], "dialect": claim["dialect"]}
        yield resting_on([claim], claim["host"], claim["endpoint"], claim["dialect"], words=words)


def draft_error_code(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Detects. A response has an error code from 1001 to 1009, which only the draft of KIP-4 used. Reported as
    visibility: any other code above those of all known Kafka releases.

    Why it matters. Clients do not know these codes and treat them as an unknown server error.

    False positives. A fork that kept the codes. Other codes come from a newer Kafka or another server; wirecheck does
    not know their meaning.

    Source. KIP-4 as drafted; Errors of Kafka.
    """
    for claim in context.claims("draft_code", group, *subject):
        drafted = claim["error"] in DRAFT_CODES
        whose = "only a draft of KIP-4 had" if drafted else f"no release up to {schemas.newest_line()} has"
        words = {"server": claim["endpoint"], "error": claim["error"], "api": claim["api"], "whose": whose}
        kind = None if drafted else "visibility"
        yield resting_on([claim], claim["endpoint"], claim["error"], kind=kind, words=words)
