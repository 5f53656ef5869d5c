"""FET: clients that do not go to the leader they are told of.

Knows: who denies leading a partition to whom, and whom Metadata names meanwhile. Does not know what a client read of
it.
Rule: nobody is blamed for asking a broker that some Metadata answer still names.
"""

from collections.abc import Iterator

from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.clients.fetching import NOT_LEADER, storm
from wirecheck.judge.checks.clock import clock
from wirecheck.judge.checks.error_streaks import Streak
from wirecheck.judge.checks.shapes import ends, gathered
from wirecheck.judge.claims.claim import Claim, Subject
from wirecheck.judge.results.finding import Evidence, last_of
from wirecheck.judge.topic_history import name_of
from wirecheck.judge.topology.clusters import Group


def former_leader_asked(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Detects. A client keeps asking one broker for a partition and gets NOT_LEADER_OR_FOLLOWER (6) at least 10 times
    for more than 30 s. All that time, Metadata responses name another leader and never that broker.

    Why it matters. The client reads or writes nothing of the partition, and most libraries do not report it. librdkafka
    2.1 to 2.6 does this in a cluster that is upgraded from before 2.4: it treats a leader without an epoch as outdated.

    False positives. Until the client's next metadata refresh, and while brokers' Metadata responses differ; both do not
    count. A broker that is named and denies leadership has a finding of its own (CTL010).

    Source. KIP-320; librdkafka issue 4796.
    """
    settings = context.settings
    refused = (claim for claim in context.claims("fenced", group, *subject) if claim["error"] == NOT_LEADER)
    for (name, topic_id, partition, endpoint), claims in gathered(refused, "name topic_id partition endpoint"):
        streak, broker = storm(claims), context.broker(claims[0])
        if broker is None or streak.count < settings.stuck_answers or streak.seconds < settings.stuck_s:
            continue
        context.watch()
        bound = name or (name_of(("id", topic_id), group, context) if topic_id else None)
        states = partition_states(bound, topic_id, partition, group, context)
        leader = led_elsewhere(states, broker, streak, settings.stuck_s)
        if leader is None:
            continue
        yield Evidence(
            (bound or topic_id, partition, *subject[1:], endpoint),
            (last_of(leader), *ends(claims)),
            topic=bound,
            topic_ids=(topic_id,) if topic_id else (),
            client_ids=(claims[0]["client_id"],),
            brokers=(broker,),
            count=streak.count,
            first_ns=streak.first_ns,
            words={
                "partition": partition,
                "broker": broker,
                "leader": leader["leader"],
                "since": clock(streak.first_ns),
            },
        )


def partition_states(
    name: str | None, topic_id: str | None, partition: int, group: Group, context: CheckContext
) -> list[Claim]:
    """What is said of a partition by the topic's id, by every id that its name had, and by the name alone."""
    states = context.claims("unnumbered", group, "name", name) if name else []
    bound = context.claims("binding", group, "name", name) if name and not topic_id else []
    for known in sorted({claim["topic_id"] for claim in bound} - {None} | ({topic_id} if topic_id else set())):
        states = states + context.claims("partition", group, "id", known)
    return [claim for claim in states if claim["partition"] == partition]


def led_elsewhere(states: list[Claim], broker: int, streak: Streak, seconds: int) -> Claim | None:
    """The last word for another leader, if one was named for so long during the streak, and this broker never."""
    begin, end = streak.first_ns, streak.last_ns
    meanwhile = [claim for claim in states if claim.last_word.ts_ns >= begin and claim.first.ts_ns <= end]
    others = [claim for claim in meanwhile if claim["leader"] not in {broker, -1}]
    if not others or any(claim["leader"] == broker for claim in meanwhile):
        return None
    spans = [min(end, claim.last_word.ts_ns) - max(begin, claim.first.ts_ns) for claim in others]
    return max(others, key=lambda claim: claim.last_word) if max(spans) >= seconds * 1_000_000_000 else None
