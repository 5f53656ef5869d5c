"""Reassignments that do not end, elections without effect, assignments that no Kafka accepts, and replicas that start
over.

Rule: what was granted is compared with what brokers state later. A large partition moves for hours, so the time alone
is information.
"""

from collections.abc import Iterator

from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.shapes import clock, ends, gathered, numbered, resting_on, servers_of
from wirecheck.judge.claims.claim import Claim, Subject
from wirecheck.judge.results.finding import Evidence, last_of
from wirecheck.judge.results.topic_rows import integers
from wirecheck.judge.thresholds import SECOND_NS
from wirecheck.judge.topic_history import SKEW_NS, Topic, name_of, topic_of
from wirecheck.judge.topology.clusters import Group

WAITS_NS = 600 * SECOND_NS
"""A reassignment that is listed for so long is worth a note."""


def reassignment_waits(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    known = {claim["broker"] for claim in context.claims("address", group, "server")}
    for (adding,), claims in gathered(context.claims("reassigning", group, *subject), "adding"):
        lasting = [claim for claim in claims if claim.last.ts_ns - claim.first.ts_ns >= WAITS_NS]
        if not lasting:
            continue
        unknown = sorted({*integers(adding)} - known) if known else []
        since_ns = min(claim.first.ts_ns for claim in lasting)
        minutes = (max(claim.last.ts_ns for claim in lasting) - since_ns) // (60 * SECOND_NS)
        no_broker = f", although no broker lists {', '.join(numbered(unknown))}" if unknown else ""
        yield resting_on(
            lasting,
            subject[1],
            adding,
            topic=subject[1],
            brokers=tuple(integers(adding)),
            kind="anomaly" if unknown else None,
            first_ns=since_ns,
            words={"adding": ", ".join(numbered(integers(adding))), "lasted": f"{minutes} min", "unknown": no_broker},
        )


def replica_starts_over(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """Claims of one broker from several connections: it first had records before it asked for offset 0."""
    states = context.claims("partition", group, *subject)
    for (broker, partition), claims in gathered(context.claims("follows", group, *subject), "broker partition"):
        offsets_known = [claim for claim in claims if "begins" in claim.peak]  # an earlier build kept none
        mine = [claim for claim in offsets_known if context.acts_as(broker, claim["host"], group)]
        goes_on_ns = min((-claim.peak["goes_on"] for claim in mine), default=0)
        begins_ns = max((claim.peak["begins"] for claim in mine), default=0)
        if begins_ns <= goes_on_ns + SKEW_NS:  # by the clocks of two agents; no broker starts so fast
            continue
        stated = [state for state in states if state["partition"] == partition]
        if any(broker not in integers(state["replicas"]) and state.last.ts_ns >= goes_on_ns for state in stated):
            continue  # it was moved away, and its replica deleted
        name = name_of(subject, group, context)
        latest = max(mine, key=lambda claim: claim.peak["begins"])
        yield resting_on(
            [latest],
            subject[1],
            partition,
            broker,
            topic=name,
            brokers=(broker,),
            first_ns=begins_ns,
            words={"topic": name or subject[1], "partition": partition, "broker": broker, "time": clock(begins_ns)},
        )


def election_without_effect(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    topic = topic_of(subject[1], group, context)
    for (partition,), claims in gathered(context.claims("elected", group, *subject), "partition"):
        elected = max(claims, key=lambda claim: claim.last)
        state = unchanged(topic, partition, elected, context)
        if state is not None:
            words = {"partition": partition, "leader": state["leader"], "time": clock(elected.last.ts_ns)}
            sides = (last_of(elected), *ends([state]))
            yield Evidence(
                (topic.name, partition),
                sides,
                topic=topic.name,
                brokers=(state["leader"],),
                first_ns=elected.last.ts_ns,
                words=words,
            )


def unchanged(topic: Topic, partition: int, elected: Claim, context: CheckContext) -> Claim | None:
    """What brokers stated before an election and long after it, where the preferred replica could have led."""
    states = [one for history in topic.histories for one in history.partitions if one["partition"] == partition]
    newest = max((one["leader_epoch"] for one in states), default=-1)
    long_ns = elected.last.ts_ns + context.settings.broker_grace_ns
    for state in states:
        replicas, in_sync = integers(state["replicas"]), integers(state["isr"])
        spans = state.first.ts_ns <= elected.last.ts_ns and state.last.ts_ns >= long_ns
        could = bool(replicas) and replicas[0] in in_sync and state["leader"] not in {replicas[0], -1}
        if spans and could and state["leader_epoch"] == newest:
            return state
    return None


def assignment_accepted(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    for (name, partition), claims in gathered(context.claims("odd_assignment", group, *subject), "name partition"):
        latest = claims[-1]
        words = {"server": servers_of(claims, context), "replicas": latest["replicas"].replace(",", ", ")}
        words |= {"partition": partition, "api": latest["api"]}
        yield resting_on(
            claims, *subject[1:], name, partition, topic=name, client_ids=(latest["client_id"],), words=words
        )
