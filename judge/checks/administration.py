"""ADM: requests for topic administration that Kafka does not handle as the client may expect.

Rule: a finding names the client, not the broker. What became of a topic follows from its later bindings.
"""

from collections.abc import Iterator

from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.shapes import clock, ends, gathered, resting_on
from wirecheck.judge.claims.claim import Claim, Subject, error_name
from wirecheck.judge.claims.extract.administration import (
    BOTH,
    DUPLICATE,
    LATE,
    NEITHER,
    NO_TIMEOUT,
    OMITTED,
    PARTLY,
    UNAUTHORIZED,
)
from wirecheck.judge.results.finding import Evidence, first_of
from wirecheck.judge.topic_history import Topic, topic_of
from wirecheck.judge.topology.clusters import Group

PREDICTED = {
    DUPLICATE: "INVALID_REQUEST (42)",
    UNAUTHORIZED: "TOPIC_AUTHORIZATION_FAILED (29)",
    BOTH: "INVALID_REQUEST (42)",
    NEITHER: "INVALID_PARTITIONS (37) or INVALID_REPLICATION_FACTOR (38)",
    LATE: "REQUEST_TIMED_OUT (7)",
    NO_TIMEOUT: "REQUEST_TIMED_OUT (7)",
    PARTLY: "an answer of its own for each topic",
    OMITTED: "each topic of the request",
}
"""What Kafka answers to a CreateTopics request that meets a rule of KIP-4."""
BROKEN = {
    DUPLICATE: "the request names it twice",
    UNAUTHORIZED: "the client is not authorized to create it",
    BOTH: "the request has a replica assignment, and also a number of partitions or replicas",
    NEITHER: "the request has neither a replica assignment nor both counts",
    LATE: "the request timed out, and the topic was created later",
    NO_TIMEOUT: "the timeout of the request is not above 0",
    PARTLY: "only some topics of the request were created",
    OMITTED: "the response does not name it",
}
"""What is wrong, by the rule."""
UNAUTHORIZED_IN_0 = "CLUSTER_AUTHORIZATION_FAILED (31)"
"""The answer in version 0 of the API."""
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
                "broken": BROKEN[rule],
                "unauthorized": "yes" if rule == UNAUTHORIZED else "",
                "then": f"; created at {clock(created.first.ts_ns)}" if created else "",
                **answers(predicted(rule, topic, claims), claims),
            },
        )


def predicted(rule: str, topic: Topic, claims: list[Claim]) -> str:
    if rule == BOTH and existed(topic, claims[0].first.ts_ns):
        return EXISTS
    return UNAUTHORIZED_IN_0 if rule == UNAUTHORIZED and claims[0].first.version == 0 else PREDICTED[rule]


def answers(expected: str, claims: list[Claim]) -> dict[str, str]:
    """What Kafka answers and what this broker answered, as words of the finding; an answer may not be captured."""
    errors = sorted({claim["error"] for claim in claims if claim["error"] >= 0})
    actual = ", ".join(error_name(error) if error else "no error" for error in errors)
    if expected == PREDICTED[PARTLY]:
        outcome = f"Other topics of the request were created, this one was answered {actual}"
    elif expected == PREDICTED[OMITTED]:
        outcome = "Kafka answers each topic; this response lacks it"
    elif not actual:
        outcome = f"Kafka answers {expected}; this broker's answer was not captured"
    elif actual in expected:
        outcome = f"Kafka and this broker answer {expected}"
    else:
        outcome = f"Kafka answers {expected}, this broker {actual}"
    return {"predicted": expected, "actual": actual, "outcome": outcome}


def births(topic: Topic) -> list[Claim]:
    """The first binding of each topic that had this name, oldest first; a single one where the bindings have no topic
    IDs.
    """
    return [history.first for history in topic.histories] or topic.without_id[:1]


def existed(topic: Topic, ts_ns: int) -> bool:
    """Whether something had bound the name by then, and nothing had ended it."""
    alive = [first for first in births(topic) if first.first.ts_ns < ts_ns]
    return bool(alive) and not any(alive[-1].first.ts_ns < claim.first.ts_ns <= ts_ns for claim in topic.deletions)
