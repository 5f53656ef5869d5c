"""CTL: epochs that go back, and brokers and controllers that disagree about one.

Knows: what one receiver was told in which order, and answers STALE_BROKER_EPOCH over time. Does not know messages.
Rule: orders to different brokers wait in different queues, so only what one receiver was told twice is compared.
"""

from collections.abc import Iterator

from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.brokers.control import turned_away
from wirecheck.judge.checks.clock import clock
from wirecheck.judge.checks.error_streaks import stuck
from wirecheck.judge.checks.shapes import gathered, of_id
from wirecheck.judge.checks.topics.topic_id_uses import broker_number
from wirecheck.judge.claims.claim import Claim, Sighting, Subject
from wirecheck.judge.results.finding import Evidence, Side, first_of, last_of
from wirecheck.judge.topic_history import CONTROL
from wirecheck.judge.topology.clusters import Group

STALE_BROKER_EPOCH = 77
ORDERS = {"LeaderAndIsr", "UpdateMetadata", "StopReplica"}


def epoch_regression(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Detects. A broker receives a lower leader epoch for a partition later than the grace period after a higher one.

    Why it matters. Leader epochs only increase. A controller works from old state, or state was restored from a backup.

    False positives. None known. Requests that overtake each other within the grace period, or wait in one broker's
    queue, do not count. Neither do rejected requests and clients' Metadata responses, which may lag.

    Source. KIP-101; PartitionStateMachine and ControllerChannelManager of Kafka 3.9.
    """
    said = context.claims("partition", group, *subject)
    orders = (claim for claim in said if claim["source"] in CONTROL and claim["leader_epoch"] >= 0)
    for (partition,), claims in gathered(orders, "partition"):
        pairs = [(higher, lower) for lower in claims if (higher := before(lower, claims, context)) is not None]
        back = [lower for _, lower in pairs]
        if back:
            context.watch()
        if back and not turned_away(back, group, context):
            top, seen = max((pair[0] for pair in pairs), key=lambda found: (found[0]["leader_epoch"], found[1]))
            sides = (Side(seen, top.sentence()), *(last_of(claim) for claim in back))
            low, about = min(claim["leader_epoch"] for claim in back), of_id(subject, group, context)
            words = {"partition": partition, "high": top["leader_epoch"], "low": low}
            yield Evidence((subject[1], partition), sides, **about, count=len(back), words=words)


def before(lower: Claim, claims: list[Claim], context: CheckContext) -> tuple[Claim, Sighting] | None:
    """A higher epoch that the receiver of the last such order had been told longer than the grace before."""
    until = lower.last.ts_ns - context.settings.broker_grace_ns
    told = [
        (other, seen)
        for other in claims
        if other["leader_epoch"] > lower["leader_epoch"]
        for seen in (other.first, other.last)
        if seen.server == lower.last.server and seen.ts_ns < until
    ]
    return max(told, key=lambda found: (found[0]["leader_epoch"], found[1]), default=None)


def stale_broker_epoch_loop(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Detects. A broker gets or returns STALE_BROKER_EPOCH (77) at least 10 times over 30 s.

    Why it matters. Controller and broker disagree on the broker's current registration. Until one of them restarts,
    neither accepts the other's requests.

    False positives. None known. One or two errors around a restart are normal. Broker epochs decrease when a KRaft
    controller takes over.

    Source. KIP-380; BrokerLifecycleManager of Kafka 3.9; KafkaApis.isBrokerEpochStale.
    """
    for claim in context.claims("answer", group, *subject):
        streak = stuck(claim, {STALE_BROKER_EPOCH}, context)
        if streak is not None:
            refuses = claim["api"] in ORDERS
            sender = broker_number(claim["client_id"] or "")
            if not refuses and (sender is None or not context.acts_as(sender, claim["host"], group)):
                continue  # a client's word about a broker
            broker = context.node(claim) if refuses else claim["client_id"]
            yield Evidence(
                (broker, claim["client_id"]) if refuses else (broker,),
                (first_of(claim), last_of(claim)),
                client_ids=(claim["client_id"],),
                brokers=(context.broker(claim) if refuses else sender,),
                count=streak.count,
                first_ns=streak.first_ns,
                words={"broker": broker, "since": clock(streak.first_ns)},
            )
