"""ADM: what clients ask of topic administration that Kafka does not do as they may expect.

Rule: who asked is named, not who answered; what became of a topic is read from what bound it later.
"""

from collections.abc import Iterator

from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.shapes import clock, ends, gathered, resting_on
from wirecheck.judge.claims.claim import Claim, Subject, error_name
from wirecheck.judge.claims.extract.administration import BOTH, DUPLICATE, LATE, NO_TIMEOUT, PARTLY, UNAUTHORIZED
from wirecheck.judge.results.finding import Evidence, first_of
from wirecheck.judge.topic_history import Topic, topic_of
from wirecheck.judge.topology.clusters import Group

PREDICTED = {
    DUPLICATE: "INVALID_REQUEST (42)",
    UNAUTHORIZED: "TOPIC_AUTHORIZATION_FAILED (29), in version 0 CLUSTER_AUTHORIZATION_FAILED (31)",
    BOTH: "INVALID_REQUEST (42)",
    LATE: "REQUEST_TIMED_OUT (7), and the topic may be created later",
    NO_TIMEOUT: "REQUEST_TIMED_OUT (7)",
    PARTLY: "one per topic",
}
"""What Kafka answers to a CreateTopics request that meets a rule of KIP-4."""
EXISTS = "TOPIC_ALREADY_EXISTS (36), which it checks first"


def metadata_by_id_misuse(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    claims = context.claims("odd_request", group, *subject)
    if claims:
        what = ", and ".join(sorted({claim["what"] for claim in claims}))
        yield resting_on(claims, *subject[1:], client_ids=(claims[0]["client_id"],), words={"what": what})


def create_topics_rule(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    for (name, rule), claims in gathered(context.claims("create_rule", group, *subject), "name rule"):
        context.watch()
        topic = topic_of(name, group, context)
        born = next((first for first in births(topic) if first.first.ts_ns >= claims[0].first.ts_ns), None)
        if rule == LATE and born is None:
            continue
        actual = sorted({claim["error"] for claim in claims})
        created = born if rule in {LATE, NO_TIMEOUT} else None
        yield resting_on(
            claims,
            *(subject[1], name, rule),
            sides=ends(claims) + ((first_of(created),) if created else ()),
            topic=name,
            topic_ids=(created["topic_id"],) if created and created["topic_id"] else (),
            client_ids=(claims[0]["client_id"],),
            words={
                "rule": rule,
                "predicted": EXISTS if rule == BOTH and existed(topic, claims[0].first.ts_ns) else PREDICTED[rule],
                "actual": ", ".join("not captured" if error < 0 else error_name(error) for error in actual),
                "then": f". The topic was created at {clock(created.first.ts_ns)}" if created else "",
            },
        )


def births(topic: Topic) -> list[Claim]:
    """The first word for each life of a name, oldest first; for one life where it has no ids."""
    return [history.first for history in topic.histories] or topic.without_id[:1]


def existed(topic: Topic, ts_ns: int) -> bool:
    """Whether something had bound the name by then, and nothing had ended it."""
    alive = [first for first in births(topic) if first.first.ts_ns < ts_ns]
    return bool(alive) and not any(alive[-1].first.ts_ns < claim.first.ts_ns <= ts_ns for claim in topic.deletions)
