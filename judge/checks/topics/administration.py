"""ADM: what clients ask of topic administration that Kafka does not do as they may expect.

Knows the rules of CreateTopics as KIP-4 gave them to its first version, and what Kafka answers to who meets one. Does
not know messages.
Rule: who asked is named, not who answered; what became of a topic is read from what bound it later.
"""

from collections.abc import Iterator

from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.clock import clock
from wirecheck.judge.checks.shapes import ends, gathered, resting_on
from wirecheck.judge.claims.claim import Claim, Subject
from wirecheck.judge.claims.extract.administration import BOTH, DUPLICATE, LATE, NO_TIMEOUT, PARTLY, UNAUTHORIZED
from wirecheck.judge.results.finding import Evidence, first_of
from wirecheck.judge.topic_history import Topic, topic_of
from wirecheck.judge.topology.clusters import Group

PREDICTED = {
    DUPLICATE: "42",
    UNAUTHORIZED: "29 (31 in version 0)",
    BOTH: "42",
    LATE: "7 and may create it later",
    NO_TIMEOUT: "7",
    PARTLY: "each topic by itself",
}
"""What Kafka answers to a CreateTopics request that meets a rule of KIP-4."""
EXISTS = "36, as the topic exists and that is looked at first"


def metadata_by_id_misuse(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Finds. A Metadata request by topic id in version 10 or 11, or one that mixes ids and names.

    Why it matters. The first is refused (INVALID_REQUEST); of the second brokers ignore the names: the client is told
    nothing about topics it asked for.

    When it is innocent. Never; ask by id from version 12 on, and by one of both.

    Source. KIP-516; KafkaApis.handleTopicMetadataRequest of Kafka 3.9.
    """
    claims = context.claims("odd_request", group, *subject)
    if claims:
        what = ", and ".join(sorted({claim["what"] for claim in claims}))
        yield resting_on(claims, *subject[1:], client_ids=(claims[0]["client_id"],), words={"what": what})


def create_topics_rule(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Finds. A CreateTopics request that meets a rule of KIP-4: a topic named twice (2), no authorization (3), an
    assignment beside partition or replica counts (4), a timeout after which the topic was created all the same (5), a
    timeout not above 0 (6), an answer that creates some topics and refuses others (7); with the answer Kafka gives to
    it and the one it got. Rule 1, who is no controller, is CTL008.

    Why it matters. The topic is not created; or it is, and the client was told otherwise (5; with a timeout of 0
    ZooKeeper clusters go on and create it, KRaft clusters do not); or the request is only partly done (7).

    When it is innocent. A client that does not wait on purpose sends a timeout of 0 and looks again later, as
    librdkafka up to 1.4 does unless it is told how long to wait. A topic that existed already (36) is no failure, and
    nothing is partly done for it; nor is it where this is not the controller (41). What was created after a timeout is
    only known if something bound it later.

    Source. KIP-4, CreateTopics; ZkAdminManager and ReplicationControlManager of Kafka 3.9.
    """
    for (name, rule), claims in gathered(context.claims("create_rule", group, *subject), "name rule"):
        context.watch()
        topic = topic_of(name, group, context)
        born = next((first for first in births(topic) if first.first.ts_ns >= claims[0].first.ts_ns), None)
        if rule == LATE and born is None:
            continue
        actual = sorted({claim["error"] for claim in claims})
        created = born if rule in {LATE, NO_TIMEOUT} else None
        yield Evidence(
            (subject[1], name, rule),
            ends(claims) + ((first_of(created),) if created else ()),
            topic=name,
            topic_ids=(created["topic_id"],) if created and created["topic_id"] else (),
            client_ids=(claims[0]["client_id"],),
            count=sum(claim.count for claim in claims),
            words={
                "rule": rule,
                "predicted": EXISTS if rule == BOTH and existed(topic, claims[0].first.ts_ns) else PREDICTED[rule],
                "actual": ", ".join("not seen" if error < 0 else str(error) for error in actual),
                "then": f"; it was created at {clock(created.first.ts_ns)}" if created else "",
            },
        )


def births(topic: Topic) -> list[Claim]:
    """The first word for each life of a name, oldest first; for one life where it has no ids."""
    return [history.first for history in topic.histories] or topic.without_id[:1]


def existed(topic: Topic, ts_ns: int) -> bool:
    """Whether something had bound the name by then, and nothing had ended it."""
    alive = [first for first in births(topic) if first.first.ts_ns < ts_ns]
    return bool(alive) and not any(alive[-1].first.ts_ns < claim.first.ts_ns <= ts_ns for claim in topic.deletions)
