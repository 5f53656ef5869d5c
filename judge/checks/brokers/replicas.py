"""TID, CTL: partitions that lack a leader or a replica, and requests that make a broker delete a replica.

Rule: only the latest epoch known anywhere counts, only sessions seen from their full fetch, and only what lasts. What
was not seen before a request is not judged.
"""

from collections.abc import Iterator

from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.brokers.control import turned_away
from wirecheck.judge.checks.shapes import clock, ends, gathered, of_id, resting_on
from wirecheck.judge.claims.claim import Claim, Subject, error_name
from wirecheck.judge.results.finding import Evidence, Side, first_of, last_of
from wirecheck.judge.topic_history import CONTROL, name_of, topic_of
from wirecheck.judge.topology.clusters import Group


def leader_denies_leadership(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Detects. Metadata names a broker as the leader of a partition in the highest known epoch, and the broker rejects
    requests for it. It answers NOT_LEADER_OR_FOLLOWER (6) or UNKNOWN_LEADER_EPOCH (75) at least 10 times for longer
    than the grace period, without a success.

    Why it matters. No client can write to or read from the partition. In KRaft, this is how a replica with another
    topic ID on its disk shows on the wire.

    False positives. None known. Errors for some seconds after an election are normal. If a later epoch is known, the
    broker is only behind.

    Source. Kafka 4.3: ReplicaManager.getOrCreatePartition; PROTOCOL notes on inconsistent IDs in KRaft.
    """
    name, grace_ns = name_of(subject, group, context), context.settings.broker_grace_ns
    places = [subject] if name is None else [subject, ("name", name)]
    denials, served = (
        [claim for place in places for claim in context.claims(kind, group, *place)] for kind in ("denies", "serves")
    )
    states = latest(context.claims("partition", group, *subject))
    for (partition, endpoint), claims in gathered(denials, "partition endpoint"):
        state = states.get(partition)
        broker = context.broker(claims[0])
        if state is None or broker is None or state[0]["leader"] != broker:
            continue
        here = [c.peak["latest"] for c in served if (c["partition"], c["endpoint"]) == (partition, endpoint)]
        since = max([min(claim.first.ts_ns for claim in state), *here])
        late = [claim for claim in claims if claim.last.ts_ns > since + grace_ns]
        still = max(claim.last.ts_ns for claim in state) > since + grace_ns
        early = min(max(claim.first.ts_ns, since) for claim in claims)
        lasted = bool(late) and max(c.last.ts_ns for c in late) - early >= grace_ns
        if still and lasted and sum(c.count for c in late) >= context.settings.stuck_answers:
            about = {"topic": name, "topic_ids": (subject[1],), "brokers": (broker,), "first_ns": early}
            words = {"partition": partition, "broker": broker, "epoch": state[0]["leader_epoch"], "since": clock(early)}
            words["errors"] = ", ".join(sorted({f"{c['api']} {error_name(c['error'])}" for c in late}))
            sides = (first_of(state[0]), last_of(state[-1]), *ends(late))
            yield resting_on(late, subject[1], partition, broker, sides=sides, **about, words=words)


def latest(states: list[Claim]) -> dict[int, list[Claim]]:
    """Per partition what is said in its highest epoch, by the first sighting."""
    highest: dict[int, list[Claim]] = {}
    for (partition, epoch), claims in gathered(states, "partition leader_epoch"):
        if partition not in highest or epoch > highest[partition][0]["leader_epoch"]:
            highest[partition] = claims
    return highest


def replica_never_fetches(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Detects. A replica fetches other partitions from a leader but never this one, for longer than the grace period,
    and stays out of the ISR. Only sessions that were captured from their full fetch count.

    Why it matters. The partition lacks a replica, and nothing else shows it. The broker rejects the replica on its own
    disk, which has another topic ID.

    False positives. None known. Replicas that moved or were removed do not count, nor sessions whose beginning is not
    in the capture. A deleted topic is not judged, because the replica may have been paused until the deletion.

    Source. Kafka 4.3: InconsistentTopicIdException in ReplicaManager; PROTOCOL notes on inconsistent IDs in KRaft.
    """
    states = latest(context.claims("partition", group, *subject))
    if not states:
        return
    deleted_ns = min((claim.first.ts_ns for claim in context.claims("deletion", group, *subject)), default=1 << 63)
    asked = context.claims("follows", group, *subject)
    for partition, state in sorted(states.items()):
        newest = max(state, key=lambda claim: (claim.last, repr(claim.key)))
        replicas = set(newest["replicas"].split(",")) - set(newest["isr"].split(",")) - {str(newest["leader"])}
        for replica in sorted(replicas):
            if not replica.isdigit() or newest["leader"] < 0:
                continue
            sessions = context.claims("follower", group, "follower", replica)
            sessions = [one for one in sessions if context.acts_as(int(replica), one["host"], group)]
            hosts = {session["host"] for session in sessions}
            mine = [
                c for c in asked if (c["broker"], c["partition"]) == (int(replica), partition) and c["host"] in hosts
            ]
            here = [session for session in sessions if context.broker(session) == newest["leader"]]
            context.watch()
            since, session = silent_at(newest, mine, here, context)
            if since is not None and session is not None and session.last.ts_ns < deleted_ns:
                yield silent(name_of(subject, group, context), newest, int(replica), since, session)


def silent_at(
    state: Claim, asked: list[Claim], sessions: list[Claim], context: CheckContext
) -> tuple[int | None, Claim | None]:
    """Since when one host's sessions lack the partition, and the last of them: what one host did hides no other's."""
    for _, here in gathered(sessions, "host"):
        if (since := silent_since(state, asked, here, context)) is not None:
            return since, max(here, key=lambda session: session.last)
    return None, None


def silent_since(state: Claim, asked: list[Claim], mine: list[Claim], context: CheckContext) -> int | None:
    """Since when a replica fetches from the leader without this partition; None if it cannot be said.

    A session is known from its full fetch. Where a claim was cut because its endpoint became another cluster's, the
    last full fetch may lie behind the end of the first part: of that one nobody knows how it began.
    """
    if not mine or any(not 0 <= claim.peak["full"] <= claim.last.ts_ns for claim in mine):
        return None
    full = max(claim.peak["full"] for claim in mine)
    last = max((claim.last.ts_ns for claim in asked), default=0)
    if last >= min(claim.peak["full"] for claim in mine if claim.last.ts_ns >= full):
        return None
    since = max(full, state.first.ts_ns)
    grace_ns = context.settings.broker_grace_ns
    alive = max(claim.last.ts_ns for claim in mine) >= since + grace_ns
    return since if alive and state.last.ts_ns >= since + grace_ns else None


def silent(name: str | None, state: Claim, replica: int, since: int, session: Claim) -> Evidence:
    said = f"broker {replica} fetches others from broker {state['leader']}, and this one never"
    sides = (*ends([state]), Side(session.last, said))
    words = {field: state[field] for field in ("partition", "leader", "isr")} | {"since": clock(since)}
    key, words = (state["topic_id"], state["partition"], replica), {**words, "broker": replica}
    return Evidence(key, sides, name, key[:1], brokers=(replica,), first_ns=since, words=words)


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
            ended = topic_of(name, group, context).deletions  # one that names no ID may have come before the order
            if any(one["topic_id"] is None and one.first.ts_ns <= full.last.ts_ns for one in ended):
                continue
            sides = (first_of(before[0]), last_of(full), *map(last_of, now))
            ids = (subject[1], *sorted({order["topic_id"] for order in now}))
            reason = f"under {now[0]['topic_id']}" if now else "not at all"
            words = {"partition": partition, "broker": broker, "reason": reason, "time": clock(full.last.ts_ns)}
            key = (subject[1], partition, broker, "other-id" if now else "absent")
            yield Evidence(key, sides, topic=name, topic_ids=ids, brokers=(broker,), words=words)


def has(claim: Claim, broker: int | None) -> bool:
    return str(broker) in claim["replicas"].split(",")


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
        histories = topic_of(subject[1], group, context).histories
        history = next((one for one in reversed(histories) if one.born_ns <= stop.first.ts_ns), None)
        after = stop.first.ts_ns + context.settings.broker_grace_ns
        partition, epoch = stop["partition"], stop["leader_epoch"]
        back = [
            claim
            for claim in (history.partitions if history else ())
            if claim["source"] in CONTROL
            and (claim["partition"], claim["leader_epoch"]) == (partition, epoch)
            and has(claim, broker)
            and claim.last.ts_ns > after
        ]
        if history and back and not turned_away(back, group, context):
            words = {"partition": partition, "broker": broker, "epoch": epoch, "time": clock(stop.first.ts_ns)}
            key, sides = (subject[1], partition, broker), (first_of(stop), *map(last_of, back))
            ids = (history.topic_id,)
            yield Evidence(key, sides, subject[1], ids, brokers=(broker,), count=len(back), words=words)


def unclean_leader_election(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Detects. A PartitionChangeRecord of the metadata log elects a leader and marks it as recovering: the
    replica was not in sync.

    Why it matters. Records that only the former leader had are lost. Consumers beyond the new end are reset, and
    followers truncate.

    False positives. An operator asked for it (`wirecheck changes` lists ElectLeaders requests), or the topic has
    unclean.leader.election.enable. The only replica of a partition is elected like this after a crash. Elections by
    ZooKeeper controllers and by KRaft before 3.2 are not marked.

    Source. KIP-704; PartitionChangeBuilder of Kafka 4.3.
    """
    for (partition,), claims in gathered(context.claims("unclean", group, *subject), "partition"):
        last = max(claims, key=lambda claim: claim.peak["offset"])
        words = {"leader": last["leader"], "partition": partition, "time": clock(last.first.ts_ns)}
        words["more"] = f" ({len(claims)} elections)" if len(claims) > 1 else ""
        about = {**of_id(subject, group, context), "brokers": tuple(claim["leader"] for claim in claims)}
        yield Evidence((subject[1], partition), tuple(map(first_of, claims)), **about, count=len(claims), words=words)


def log_directory_offline(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Detects. The heartbeats of a broker name log directories that are offline.

    Why it matters. A disk failed, or its file system is full or read-only. Replicas there are unavailable; leaders move
    to other brokers, and partitions with one replica are gone.

    False positives. None known. Brokers with one directory stop instead.

    Source. KIP-858; BrokerLifecycleManager of Kafka 3.7.
    """
    for (broker,), claims in gathered(context.claims("offline_dirs", group, *subject), "broker"):
        words = {"node": broker, "directories": max(claim["directories"] for claim in claims)}
        words["time"] = clock(min(claim.first for claim in claims).ts_ns)
        yield resting_on(claims, broker, brokers=(broker,), words=words)
