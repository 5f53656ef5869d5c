"""CTL: brokers that do not take the part in a partition that metadata gives them.

Knows who is named leader or replica, who says it is not, and who never asks. Does not know messages.
Rule: only the latest epoch known anywhere counts, only sessions seen from their full fetch, and only what lasts.
"""

from collections.abc import Iterator

from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.clock import clock
from wirecheck.judge.checks.error_streaks import error_name
from wirecheck.judge.checks.shapes import gathered
from wirecheck.judge.claims.claim import Claim, Subject
from wirecheck.judge.results.finding import Evidence, Side, first_of, last_of
from wirecheck.judge.topic_history import name_of
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
    name = name_of(subject, group, context)
    denials = context.claims("denies", group, *subject)
    served = context.claims("serves", group, *subject)
    if name is not None:
        denials = denials + context.claims("denies", group, "name", name)
        served = served + context.claims("serves", group, "name", name)
    states = latest(context.claims("partition", group, *subject))
    for (partition, endpoint), claims in gathered(denials, "partition endpoint"):
        state = states.get(partition)
        broker = context.broker(claims[0])
        if state is None or broker is None or state[0]["leader"] != broker:
            continue
        since = min(claim.first.ts_ns for claim in state)
        since = max(since, *(claim.peak["latest"] for claim in served if same_place(claim, partition, endpoint)), 0)
        late = [claim for claim in claims if claim.last.ts_ns > since + context.settings.broker_grace_ns]
        still = max(claim.last.ts_ns for claim in state) > since + context.settings.broker_grace_ns
        early = min(max(claim.first.ts_ns, since) for claim in claims)
        lasted = bool(late) and max(c.last.ts_ns for c in late) - early >= context.settings.broker_grace_ns
        if still and lasted and sum(c.count for c in late) >= context.settings.stuck_answers:
            yield Evidence(
                (subject[1], partition, broker),
                (first_of(state[0]), last_of(state[-1]), *(s for c in late for s in (first_of(c), last_of(c)))),
                topic=name,
                topic_ids=(subject[1],),
                brokers=(broker,),
                count=sum(claim.count for claim in late),
                first_ns=early,
                words={
                    "partition": partition,
                    "broker": broker,
                    "epoch": state[0]["leader_epoch"],
                    "errors": ", ".join(sorted({f"{c['api']} {error_name(c['error'])}" for c in late})),
                    "since": clock(early),
                },
            )


def same_place(claim: Claim, partition: int, endpoint: str) -> bool:
    return bool(claim["partition"] == partition and claim["endpoint"] == endpoint)


def latest(states: list[Claim]) -> dict[int, list[Claim]]:
    """Per partition what is said in its highest epoch, by the first sighting."""
    highest: dict[int, list[Claim]] = {}
    for claim in states:
        known = highest.get(claim["partition"])
        if known is None or claim["leader_epoch"] > known[0]["leader_epoch"]:
            highest[claim["partition"]] = [claim]
        elif claim["leader_epoch"] == known[0]["leader_epoch"]:
            known.append(claim)
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
                claim
                for claim in asked
                if claim["broker"] == int(replica) and claim["partition"] == partition and claim["host"] in hosts
            ]
            here = [session for session in sessions if leads(session, newest, context)]
            context.watch()
            since, session = silent_at(newest, mine, here, context)
            if since is not None and session is not None and session.last.ts_ns < deleted_ns:
                name = name_of(subject, group, context)
                yield silent(name, newest, int(replica), (since, session))


def leads(session: Claim, state: Claim, context: CheckContext) -> bool:
    """Whether a fetch session goes to the partition's leader."""
    return bool(context.clusters.broker(session["endpoint"], session.last.ts_ns) == state["leader"])


def silent_at(
    state: Claim, asked: list[Claim], sessions: list[Claim], context: CheckContext
) -> tuple[int | None, Claim | None]:
    """The same of each host's sessions on their own, with the last one: what one host did hides no other host's."""
    for host in sorted({session["host"] for session in sessions}):
        here = [session for session in sessions if session["host"] == host]
        since = silent_since(state, asked, here, context)
        if since is not None:
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


def silent(name: str | None, state: Claim, replica: int, alive: tuple[int, Claim]) -> Evidence:
    since, session = alive
    said = f"broker {replica} fetches others from broker {state['leader']}, and this one never"
    return Evidence(
        (state["topic_id"], state["partition"], replica),
        (Side(state.first, state.sentence()), last_of(state), Side(session.last, said)),
        first_ns=since,
        topic=name,
        topic_ids=(state["topic_id"],),
        brokers=(replica,),
        words={
            "partition": state["partition"],
            "broker": replica,
            "leader": state["leader"],
            "isr": state["isr"],
            "since": clock(since),
        },
    )
