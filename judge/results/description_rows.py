"""Rows that describe topics: every state of every partition, and what answers say of a topic as a whole.

Knows: which state of a partition holds, since when and on whose word, and which ones held before. Does not know how a
description looks to people, nor whether anything in it is wrong.
Rule: a row is written when a state is first said, and once more when another takes its place: what is merely said again
changes no row, so that many partitions cost nothing while they stand still. The state that holds is the one of the
highest leader epoch, and within it the one said last.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache

from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.shapes import gathered
from wirecheck.judge.claims.claim import Claim, Sighting, Subject
from wirecheck.judge.results.result_table import Body, ResultRow
from wirecheck.judge.results.topic_rows import known

TELL_OFFLINE = {"metadata", "describe-topic-partitions", "update-metadata"}
"""Sources whose messages have a field for offline replicas."""


@dataclass
class State:
    first: Claim
    last: Sighting
    offline: list[int] | None = None
    """Replicas that were said to be offline; None where nobody who says such things said anything."""

    @property
    def epoch(self) -> int:
        return int(self.first["leader_epoch"])

    @property
    def order(self) -> tuple[int, Sighting]:
        return self.epoch, self.last


def named(subject: Subject) -> dict[str, str | None]:
    """The topic id, or the name where a topic was only seen without one; the id's name is joined by who reads."""
    return {
        "topic_id": subject[1] if subject[0] == "id" else None,
        "name": subject[1] if subject[0] == "name" else None,
    }


def partitions(subject: Subject, context: CheckContext) -> Iterator[ResultRow]:
    kind = "partition" if subject[0] == "id" else "unnumbered"
    for group in known(context.groups(subject)):
        offline = dict(gathered(context.claims("offline", group, *subject), "partition"))
        identity, about = "|".join((group.key, *subject)), {"cluster": group.cluster, **named(subject)}
        for (partition,), claims in gathered(context.claims(kind, group, *subject), "partition"):
            found = states(claims, offline.get((partition,), []))
            for name, state in found.items():
                body = {"withdrawn": False, **about, **row(partition, state, until_ns(state, found.values()))}
                yield ResultRow("partitions", f"{identity}|{partition}|{name}", body)


def until_ns(state: State, every: Collection[State]) -> int | None:
    """When another state took its place: the beginning of the next leader epoch, else its own last word."""
    if len(every) == 1 or all(other is state or other.order < state.order for other in every):
        return None
    later = [other.first.first.ts_ns for other in every if other.epoch > state.epoch]
    return min(later, default=state.last.ts_ns)


def states(claims: list[Claim], offline: list[Claim]) -> dict[str, State]:
    """All states by what they say; the order of the ISR says nothing."""
    found: dict[str, State] = {}
    for claim in claims:
        _, _, source, epoch, leader, replicas, isr = claim.key
        name = f"{epoch}:{leader}:{replicas}:{ascending(isr)}"
        state = found.get(name)
        if state is None:
            state = found[name] = State(claim, claim.last_word)
        else:
            state.first = min(state.first, claim, key=lambda said: said.first)
            state.last = max(state.last, claim.last_word)
        if source in TELL_OFFLINE:
            now = [o for o in offline if o["source"] == source and o.first <= claim.last <= o.last]
            latest = max(now, key=lambda o: o.last, default=None)
            state.offline = integers(latest["offline"]) if latest else state.offline or []
    return found


@lru_cache(maxsize=1 << 14)
def integers(text: str) -> list[int]:
    """1,2,3 as numbers: few different ones, however many partitions."""
    return [int(number) for number in text.split(",") if number]


@lru_cache(maxsize=1 << 14)
def ascending(text: str) -> str:
    return ",".join(map(str, sorted(integers(text))))


def row(partition: int, state: State, until: int | None) -> Body:
    said = state.first
    _, _, source, epoch, leader, replicas, isr = said.key
    return {
        "partition": partition,
        "leader": leader,
        "leader_epoch": epoch,
        "replicas": integers(replicas),
        "isr": integers(isr),
        "offline_replicas": state.offline,
        "source": source,
        "connection": said.first.connection,
        "first_seen": said.first.ts_ns,
        "until": until,
    }


def wholes(subject: Subject, context: CheckContext) -> Iterator[ResultRow]:
    for group in known(context.groups(subject)):
        described = context.claims("topic_described", group, *subject)
        for (internal, operations), claims in gathered(described, "internal operations"):
            said = min(claims, key=lambda claim: claim.first)
            body = {
                "withdrawn": False,
                "cluster": group.cluster,
                **named(subject),
                "internal": None if internal is None else bool(internal),
                "authorized_operations": None if operations is None else operation_names(operations),
                "source": said["source"],
                "connection": said.first.connection,
                "first_seen": said.first.ts_ns,
            }
            yield ResultRow("descriptions", "|".join((group.key, *subject, f"{internal}:{operations}")), body)


OPERATIONS = {
    3: "READ",
    4: "WRITE",
    5: "CREATE",
    6: "DELETE",
    7: "ALTER",
    8: "DESCRIBE",
    9: "CLUSTER_ACTION",
    10: "DESCRIBE_CONFIGS",
    11: "ALTER_CONFIGS",
    12: "IDEMPOTENT_WRITE",
    13: "CREATE_TOKENS",
    14: "DESCRIBE_TOKENS",
    15: "TWO_PHASE_COMMIT",
}
"""AclOperation of Kafka: the bit of each in authorized operations."""


def operation_names(bits: int) -> list[str]:
    """The operations of a bit field, by name; an unknown bit keeps its number."""
    return [OPERATIONS.get(bit, str(bit)) for bit in range(32) if bits & 0xFFFFFFFF & 1 << bit]
