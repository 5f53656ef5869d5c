"""CTL: controllers, leaders and replicas.

Rule: epochs order everything, time only measures how long something lasts; single refusals are normal in every roll.
Requests to different brokers wait in different queues, so only what one receiver got twice is compared.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.shapes import (
    clients_of,
    clock,
    ends,
    gathered,
    lasting,
    of_id,
    requesters,
    resting_on,
    stuck_client,
)
from wirecheck.judge.claims.claim import Claim, Sighting, Subject
from wirecheck.judge.claims.client_ids import broker_of
from wirecheck.judge.results.finding import Evidence, Side, first_of, last_of
from wirecheck.judge.topic_history import CONTROL
from wirecheck.judge.topology.clusters import Group

STALE_CONTROLLER_EPOCH, NOT_CONTROLLER, STALE_BROKER_EPOCH = 11, 41, 77
ORDERS = {"LeaderAndIsr", "UpdateMetadata", "StopReplica"}
ADMINISTRATION = ("CreateTopics", "DeleteTopics", "CreatePartitions")


def two_controllers(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Detects. A controller keeps sending requests with an old epoch after brokers accepted a newer controller, or gets
    STALE_CONTROLLER_EPOCH (11) at the top level. Or two controllers use the same epoch.

    Why it matters. Two brokers believe that they are the controller. Brokers reject the older one's requests, but it
    still passes its view to clients.

    False positives. None known. The hand-over from ZooKeeper to KRaft does not count. Neither does error 11 per
    partition, which every new controller's second full LeaderAndIsr gets. Accepted requests with a lower epoch that
    begin after the last one with the higher epoch are a cluster that was formatted again.

    Source. KafkaApis and ReplicaManager of Kafka 2.8 to 3.9; KIP-631.
    """
    orders = context.claims("control", group, *subject)
    spans = active(orders)
    accepted = [claim for claim in orders if claim["error"] == 0]
    found: dict[tuple[int, int], list[tuple[Claim, Claim]]] = defaultdict(list)
    for claim in orders:
        epoch, (begun_ns, over_ns) = claim["controller_epoch"], spans[sender(claim)]
        newer = [other for other in accepted if other["controller_epoch"] > epoch]
        together = [o for o in accepted if spans[sender(o)][0] <= over_ns and begun_ns <= spans[sender(o)][1]]
        rival = [o for o in together if o["controller_epoch"] == epoch and o["controller"] != claim["controller"]]
        late_ns = claim.last.ts_ns - context.settings.broker_grace_ns
        late = [o for o in together if o["controller_epoch"] > epoch and o.first.ts_ns < late_ns]
        against = rival or (newer if claim["error"] == STALE_CONTROLLER_EPOCH else late)
        if against and not (against[0]["kraft"] and not claim["kraft"]):
            found[sender(claim)].append((claim, against[0]))
    told: set[tuple[object, ...]] = set()
    for (controller, epoch), pairs in sorted(found.items()):
        other = pairs[0][1]
        both = tuple(sorted({controller, other["controller"]}))
        if (both, epoch) in told:
            continue
        told.add((both, epoch))
        sides = tuple(side for claim, newer in pairs for side in (*ends([claim]), first_of(newer)))
        since_ns = min(max(claim.first.ts_ns, newer.first.ts_ns) for claim, newer in pairs)
        words = {"controller": controller, "epoch": epoch, "since": clock(since_ns)}
        words |= {"other": other["controller"], "newer": other["controller_epoch"]}
        claims, about = [claim for claim, _ in pairs], {"brokers": both, "first_ns": since_ns}
        yield resting_on(claims, list(both), epoch, sides=sides, **about, words=words)


def sender(claim: Claim) -> tuple[int, int]:
    """The controller and its epoch."""
    return claim["controller"], claim["controller_epoch"]


def active(orders: Iterable[Claim]) -> dict[tuple[int, int], tuple[int, int]]:
    """When each controller sent its first and its last request in an epoch, in nanoseconds."""
    spans: dict[tuple[int, int], tuple[int, int]] = {}
    for claim in orders:
        begun_ns, over_ns = spans.get(sender(claim), (claim.first.ts_ns, claim.last.ts_ns))
        spans[sender(claim)] = min(begun_ns, claim.first.ts_ns), max(over_ns, claim.last.ts_ns)
    return spans


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
        if back and not turned_away(back, group, context):
            top, seen = max((pair[0] for pair in pairs), key=lambda found: (found[0]["leader_epoch"], found[1]))
            sides = (Side(seen, top.sentence()), *map(last_of, back))
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
    for claim, streak in lasting(context.claims("answer", group, *subject), {STALE_BROKER_EPOCH}, None, context):
        refuses = claim["api"] in ORDERS
        sender = broker_of(claim["client_id"])
        if not refuses and (sender is None or not context.acts_as(sender, claim["host"], group)):
            continue  # a client's word about a broker
        broker = context.node(claim) if refuses else claim["client_id"]
        key = (broker, claim["client_id"]) if refuses else (broker,)
        brokers = (context.broker(claim) if refuses else sender,)
        yield stuck_client(claim, streak, *key, context=context, brokers=brokers, words={"broker": broker})


def two_leaders_same_epoch(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Detects. Two different leaders are reported for one partition in one leader epoch.

    Why it matters. An epoch has one leader. Two leaders write two histories under one number.

    False positives. None under one topic ID. A recreated topic has a new ID, and its epochs start again.

    Source. KIP-101; KIP-320.
    """
    said = [c for c in context.claims("partition", group, *subject) if c["leader"] >= 0 and c["leader_epoch"] >= 0]
    lives = context.lives(group)
    for (partition, epoch, _), claims in gathered(said, lambda c: (c["partition"], c["leader_epoch"], lives.of(c))):
        first = {claim["leader"]: claim for claim in reversed(claims)}
        if len(first) > 1:
            sides = tuple(first_of(claim) for _, claim in sorted(first.items()))
            columns = {**of_id(subject, group, context), "brokers": tuple(sorted(first)), "count": len(first)}
            yield Evidence(
                (subject[1], partition, epoch), sides, **columns, words={"partition": partition, "epoch": epoch}
            )


def isr_stuck(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Detects. A leader's AlterPartition requests for a partition fail with UNKNOWN_TOPIC_ID (100) or
    UNKNOWN_TOPIC_OR_PARTITION (3) at least 10 times over 30 s without a success.

    Why it matters. The ISR cannot change. A replica that caught up stays out of it, and one that fell behind stays in
    it.

    False positives. None known. Single errors are normal while a topic is created or deleted.

    Source. KIP-497; KIP-841; ReplicationControlManager of Kafka 4.3.
    """
    answers = context.claims("replica_answer", group, *subject)
    streaks = {id(claim): streak for claim, streak in lasting(answers, {100, 3}, {"AlterPartition"}, context)}
    for (partition,), claims in gathered((claim for claim in answers if id(claim) in streaks), "partition"):
        first_ns = min(streaks[id(claim)].first_ns for claim in claims)
        words = {"partition": partition, "requester": requesters(claims, group, context)}
        about = {**of_id(subject, group, context), "client_ids": clients_of(claims)}
        yield resting_on(claims, subject[1], partition, **about, first_ns=first_ns, words=words)


def directory_assignment_unknown(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Detects. A broker's AssignReplicasToDirs requests for a topic fail at least 10 times over 30 s.

    Why it matters. The controller does not know which disk has these replicas. If the disk fails, it does not move
    their leadership.

    False positives. None known. Single errors are normal while a topic is deleted or moved.

    Source. KIP-858; AssignmentsManager of Kafka 3.9.
    """
    answers = context.claims("replica_answer", group, *subject)
    for claim, streak in lasting(answers, {100, 3, 6}, {"AssignReplicasToDirs"}, context):
        who = claim["client_id"]
        columns = {**of_id(subject, group, context), "count": streak.count, "first_ns": streak.first_ns}
        words = {"broker": who, "requester": requesters([claim], group, context)}
        yield resting_on([claim], who, subject[1], **columns, client_ids=(who,), words=words)


def turned_away(orders: list[Claim], group: Group, context: CheckContext) -> bool:
    """Whether the orders came with those of a controller that brokers refused: that is CTL001, and harmless here."""
    context.watch()
    control = context.claims("control", group, "server")
    refused = {(c["controller"], c["controller_epoch"]) for c in control if c["error"] == STALE_CONTROLLER_EPOCH}
    stale = [claim for claim in control if (claim["controller"], claim["controller_epoch"]) in refused]
    return all(any(claim.first <= order.last <= claim.last for claim in stale) for order in orders)


def replica_set_contradiction(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Detects. A partition state from a controller or the metadata log contradicts itself. The ISR is not part of the
    replicas, the leader is not in the ISR, or a replica is listed twice.

    Why it matters. Kafka's controller cannot produce such a state. The metadata is corrupt, or a tool wrote it.

    False positives. None known. States that last less than 30 s do not count, because reassignments cause them.
    Metadata responses omit brokers and do not count.

    Source. PartitionRegistration of Kafka 4.3; KIP-497.
    """
    for (partition,), states in gathered(context.claims("partition", group, *subject), "partition"):
        last = max(states, key=lambda claim: (claim["leader_epoch"], claim.first))
        rules = [*broken_rules(last)] if last["source"] in (*CONTROL, "metadata-log") else []
        if rules and context.passed(last.first.ts_ns + context.settings.broker_grace_ns):
            for rule in rules:
                words = {"partition": partition, "rule": rule.replace("-", " ")}
                yield resting_on([last], subject[1], partition, rule, **of_id(subject, group, context), words=words)


def broken_rules(claim: Claim) -> Iterator[str]:
    replicas, isr = claim["replicas"].split(","), claim["isr"].split(",") if claim["isr"] else []
    if len(set(replicas)) < len(replicas):
        yield "replica-listed-twice"
    if set(isr) - set(replicas):
        yield "isr-outside-replicas"
    if claim["leader"] >= 0 and str(claim["leader"]) not in isr:
        yield "leader-outside-isr"


def not_controller_loop(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Detects. A client's topic administration requests get NOT_CONTROLLER (41) from the same broker at least 10 times
    over 30 s.

    Why it matters. The client never finds the controller. It does not refresh its metadata, or a proxy misdirects it.

    False positives. Single errors after the controller moved. KRaft brokers forward such requests instead.

    Source. KIP-4; KIP-590.
    """
    answers = context.claims("answer", group, *subject)
    for claim, streak in lasting(answers, {NOT_CONTROLLER}, ADMINISTRATION, context):
        words = {"api": claim["api"], "server": claim["endpoint"]}
        yield stuck_client(claim, streak, *subject[1:], context.node(claim), context=context, words=words)
