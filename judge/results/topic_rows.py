"""Rows about topics: which there are, who reports, uses or rejects a disputed ID, every state of every partition, and
what responses state of a topic as a whole.

Rule: a row is a pure function of the ledger and the clusters. Only an ID that shared its name with another, was deleted
or was refused has rows of statements: one per speaker, however many connections, partitions and APIs it used; of
clients the first MOST_CLIENTS by their first use. A state's row is written when it is first stated, and once more when
another takes its place: what is merely repeated changes no row. The state that holds is the one of the highest leader
epoch, and within it the one stated last.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from wirecheck.decode.api_names import ACL_OPERATIONS
from wirecheck.decode.log.metadata_log import TOPIC_NAME
from wirecheck.judge.bounded_work import Span
from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.shapes import gathered
from wirecheck.judge.claims.claim import RESERVED, ZERO, Claim, Sighting, Subject
from wirecheck.judge.results.result_table import Body, ResultRow
from wirecheck.judge.topic_history import CONTROL, REPORTS, Topic, topic_of
from wirecheck.judge.topology.clusters import Group

MOST_CLIENTS = 32
REFUSALS = frozenset({"UNKNOWN_TOPIC_ID", "INCONSISTENT_TOPIC_ID", 100, 103})
CONTROLLERS_SAY = (*CONTROL, "stop-replica")
LOG_SAYS = "metadata-log"


class Speaker(NamedTuple):
    """Who, and what it does with the id."""

    speaker: str
    """broker, controller, metadata-log or client."""
    who: str
    """Endpoint, controller@epoch, nothing, or client id."""
    does: str
    """says, orders, uses or refuses."""


def topics_of_name(subject: Subject, context: CheckContext) -> Iterator[ResultRow]:
    name = subject[1]
    for group in known(context.groups(subject)):
        topic, former = topic_of(name, group, context), context.clusters.is_former(group)
        current = topic.histories[-1] if topic.histories else None
        earlier = [history.topic_id for history in topic.histories if topic.successor(history) is not None]
        former_ids = {*earlier}
        for history in topic.histories:
            replaced = history.topic_id in former_ids
            ended = topic.ended(history)
            deleted = ended is not None or topic.denied(history)
            state = "replaced" if replaced else "deleted" if deleted else "former" if former else "current"
            ended_ns = ended.last_word.ts_ns if ended and ended.kind == "deletion" and ended["topic_id"] else 0
            yield topic_row(
                group,
                name,
                history.topic_id,
                state=state,
                earlier_ids=earlier if history is current else [],
                sources=history.sources,
                **volumes(history.topic_id, name if history is current else None, group, context),
                first_seen=history.born_ns,
                last_seen=max(history.last.last_word.ts_ns, ended_ns),
            )
        if topic.older.lives:
            older = topic.older.span
            columns: dict[str, Any] = {"first_seen": older.first_ns, "last_seen": older.last_ns, "others": older.number}
            columns |= dict.fromkeys(VOLUMES)
            yield topic_row(group, name, None, about="older", state="others", earlier_ids=[], sources=[], **columns)
        if current is None and (claims := topic.without_id or served(group, name, context)):
            state = "former" if former else "current"
            yield unnumbered(group, name, topic, claims, state=state, context=context)


def served(group: Group, name: str, context: CheckContext) -> list[Claim]:
    """The claims of a broker that serves partitions by the topic's name: then the topic exists, even if no message
    describes it. The metadata log is fetched like a topic, but is not a topic.
    """
    claims = [] if name == TOPIC_NAME else context.claims("serves", group, "name", name)
    return [claim for claim in claims if claim["topic_id"] in {None, ZERO}]


VOLUMES = ("written_bytes", "read_bytes")


def volumes(topic_id: str | None, name: str | None, group: Group, context: CheckContext) -> dict[str, Any]:
    """How many bytes of records clients wrote and read, by the topic's ID and by a name that stands for it alone. What
    passed a proxy counts at the servers behind it.
    """
    proxies = context.forwarding.endpoints()
    by_id = context.claims("carried", group, "id", topic_id) if topic_id is not None else []
    by_name = context.claims("carried", group, "name", name) if name is not None else []
    found = [*by_id, *(claim for claim in by_name if claim["topic_id"] in {None, ZERO})]
    counted = [claim.tally for claim in found if claim["endpoint"] not in proxies]
    return {counter: sum(tally.get(counter, 0) for tally in counted) for counter in VOLUMES}


def unnumbered(
    group: Group, name: str, topic: Topic, claims: list[Claim], *, state: str, context: CheckContext
) -> ResultRow:
    """A topic that was only ever named without an id."""
    last = max(claim.last.ts_ns for claim in claims)
    ended = [claim for claim in topic.deletions if claim.last.ts_ns >= last]
    return topic_row(
        group,
        name,
        None,
        state="deleted" if ended else state,
        earlier_ids=[],
        sources=sorted({source_of(claim) for claim in claims}),
        **volumes(None, name, group, context),
        first_seen=min(claim.first.ts_ns for claim in claims),
        last_seen=max([last, *(claim.last.ts_ns for claim in ended)]),
    )


def topics_of_id(subject: Subject, context: CheckContext) -> Iterator[ResultRow]:
    """The row of an ID without a known name."""
    topic_id = subject[1]
    groups, filed = context.groups(subject), context.filed_for(subject)
    if topic_id in RESERVED or any(kind == "binding" for _, kind in filed.claims):
        return
    disputed = context.clusters.disputed
    if any(claim.server() not in disputed for claim in context.believed(subject, "binding")):
        return
    found: dict[int, tuple[Group, list[Claim]]] = {}
    for group in known(groups):
        uses = [claim for (place, _), claims in filed.claims.items() if place == id(group) for claim in claims]
        place = context.clusters.unknown if all(claim.server() in disputed for claim in uses) else group
        if uses:
            found.setdefault(id(place), (place, []))[1].extend(uses)
    for group, uses in found.values():
        yield topic_row(
            group,
            None,
            topic_id,
            state="unresolved",
            earlier_ids=[],
            sources=sorted({source_of(claim) for claim in uses}),
            **volumes(topic_id, None, group, context),
            first_seen=min(claim.first.ts_ns for claim in uses),
            last_seen=max(claim.last.ts_ns for claim in uses),
        )


def source_of(claim: Claim) -> str:
    if claim.kind in {"use", "refused", "serves"}:
        api = claim.first.api if claim.kind == "serves" else claim["api"]
        return "".join(f"-{c.lower()}" if c.isupper() else c for c in api).lstrip("-")
    return str(claim["source"]) if claim.kind in {"binding", "partition", "deletion"} else "leader-and-isr"


def known(groups: Iterable[Group]) -> Iterator[Group]:
    """Without outsiders: their statements about topics do not count."""
    return (group for group in groups if not group.outsider)


def topic_row(group: Group, name: str | None, topic_id: str | None, about: str = "name", **columns: Any) -> ResultRow:
    """A row of the table of topics. It is made by the name's subject, or by the ID's while the ID has no name: each
    identity has one owner, also where two names have one ID.
    """
    about = f"{about}:{name}" if topic_id is None else f"{topic_id}:{name or ''}"
    return ResultRow.of("topics", f"{group.key}|{about}", group.cluster, name=name, topic_id=topic_id, **columns)


def statements_of_id(subject: Subject, context: CheckContext) -> Iterator[ResultRow]:
    topic_id = subject[1]
    for group in known(context.groups(subject)):
        bindings = context.claims("binding", group, *subject)
        if not is_disputed(subject, bindings, group, context):
            continue
        name = min((claim["name"] for claim in bindings if claim["name"] is not None), default=None)
        for speaker, claims in by_speaker(subject, bindings, group, context).items():
            last = max(claims, key=lambda claim: claim.last_word)
            yield ResultRow.of(
                "statements",
                "|".join((group.key, topic_id, *speaker)),
                group.cluster,
                name=name,
                topic_id=topic_id,
                **speaker._asdict(),
                broker=context.broker(last) if speaker.speaker == "broker" else None,
                first_seen=min(claim.first.ts_ns for claim in claims),
                last_seen=last.last_word.ts_ns,
                count=sum(claim.count for claim in claims),
            )


def is_disputed(subject: Subject, bindings: list[Claim], group: Group, context: CheckContext) -> bool:
    """Whether another ID had its name, it was deleted, or a broker rejected it."""
    names = {claim["name"] for claim in bindings if claim["name"] is not None}
    return (
        any(len(topic_of(name, group, context).histories) > 1 for name in names)
        or bool(context.claims("deletion", group, *subject))
        or bool(context.claims("id_refused", group, *subject))
        or any(claim["error"] in REFUSALS for claim in context.claims("denies", group, *subject))
    )


def by_speaker(
    subject: Subject, bindings: list[Claim], group: Group, context: CheckContext
) -> dict[Speaker, list[Claim]]:
    """The claims about the ID by speaker; of clients the first few."""
    found: dict[Speaker, list[Claim]] = {}
    refusals = [claim for claim in context.claims("denies", group, *subject) if claim["error"] in REFUSALS]
    for claim in (*bindings, *context.claims("id_refused", group, *subject), *refusals):
        if (speaker := speaker_of(claim)) is not None:
            found.setdefault(speaker, []).append(claim)
    clients: dict[Speaker, list[Claim]] = {}
    for claim in context.claims("use", group, *subject):  # by first sighting
        speaker = Speaker("client", claim["client_id"] or "", "uses")
        if speaker in clients or len(clients) < MOST_CLIENTS:
            clients.setdefault(speaker, []).append(claim)
    return found | clients


def speaker_of(claim: Claim) -> Speaker | None:
    """None for a response to a client's request for a change, which states what was done and not what is known."""
    if claim.kind != "binding":
        return Speaker("broker", claim["endpoint"], "refuses")
    if claim["source"] in REPORTS:
        return Speaker("broker", claim.server(), "says")
    if claim["source"] in CONTROLLERS_SAY:
        return Speaker("controller", claim["by"] or "", "orders")
    return Speaker("metadata-log", "", "says") if claim["source"] == LOG_SAYS else None


TELL_OFFLINE = (*REPORTS, "update-metadata")
"""Sources whose messages have a field for offline replicas."""


@dataclass
class State:
    first: Claim
    last: Sighting
    offline: list[int] | None = None
    """Replicas that were reported to be offline; None if no message with that field was captured."""

    @property
    def epoch(self) -> int:
        return int(self.first["leader_epoch"])

    @property
    def order(self) -> tuple[int, Sighting]:
        return self.epoch, self.last


def named(subject: Subject) -> dict[str, str | None]:
    """The topic ID, or the name of a topic that was only seen without one. Readers join the ID's name."""
    return {
        "topic_id": subject[1] if subject[0] == "id" else None,
        "name": subject[1] if subject[0] == "name" else None,
    }


def partitions(subject: Subject, context: CheckContext) -> Iterator[ResultRow]:
    kind = "partition" if subject[0] == "id" else "unnumbered"
    for group in known(context.groups(subject)):
        offline = dict(gathered(context.claims("offline", group, *subject), "partition"))
        identity = "|".join((group.key, *subject))
        for partition, older in context.omitted(group, *subject).epochs.items():
            columns = {**named(subject), **counted(partition, older)}
            yield ResultRow.of("partitions", f"{identity}|{partition}|older", group.cluster, **columns)
        for (partition,), claims in gathered(context.claims(kind, group, *subject), "partition"):
            for name, state, until in with_ends(states(claims, Offline(offline.get((partition,), [])))):
                yield ResultRow.of(
                    "partitions",
                    f"{identity}|{partition}|{name}",
                    group.cluster,
                    **named(subject),
                    **row(partition, state, until),
                )


def with_ends(found: Mapping[str, State]) -> Iterator[tuple[str, State, int | None]]:
    """Each state, and when another one replaced it: at the beginning of a later leader epoch, otherwise when this one
    was last stated. None for the state that holds.
    """
    ordered = sorted(found.items(), key=lambda item: item[1].order, reverse=True)
    holds = len(ordered) == 1 or ordered[1][1].order < ordered[0][1].order
    later_ns = soonest_ns = 1 << 63  # beginnings: of later epochs than the state's, and of all before it in this order
    for number, (name, state) in enumerate(ordered):
        if number and ordered[number - 1][1].epoch > state.epoch:
            later_ns = soonest_ns
        until = state.last.ts_ns if later_ns == 1 << 63 else later_ns
        yield name, state, None if holds and not number else until
        soonest_ns = min(soonest_ns, state.first.first.ts_ns)


class Offline:
    """What was stated of the offline replicas of one partition, by source."""

    def __init__(self, claims: Iterable[Claim]) -> None:
        self.stated: dict[str, list[Claim]] = {}
        """In the order of their first sighting; each but the first is the one until then that was stated last."""
        self.firsts: dict[str, list[Sighting]] = {}
        for claim in sorted(claims, key=lambda one: one.first):
            stated = self.stated.setdefault(claim["source"], [])
            self.firsts.setdefault(claim["source"], []).append(claim.first)
            stated.append(max(stated[-1], claim, key=lambda one: one.last) if stated else claim)

    def at(self, source: str, seen: Sighting) -> Claim | None:
        """What a source stated before and after a sighting."""
        before = bisect_right(self.firsts.get(source, ()), seen)
        found = self.stated[source][before - 1] if before else None
        return found if found is not None and seen <= found.last else None


def states(claims: list[Claim], offline: Offline) -> dict[str, State]:
    """All different states. The order of the ISR does not matter."""
    found: dict[str, State] = {}
    for claim in claims:
        _, _, source, epoch, leader, replicas, isr = claim.key
        name = f"{epoch}:{leader}:{replicas}:{ascending(isr)}"
        state = found.get(name)
        if state is None:
            state = found[name] = State(claim, claim.last_word)
        else:
            state.first = min(state.first, claim, key=lambda one: one.first)
            state.last = max(state.last, claim.last_word)
        if source in TELL_OFFLINE:
            latest = offline.at(source, claim.last)
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
    earliest = state.first
    _, _, source, epoch, leader, replicas, isr = earliest.key
    return {
        "partition": partition,
        "leader": leader,
        "leader_epoch": epoch,
        "replicas": integers(replicas),
        "isr": integers(isr),
        "offline_replicas": state.offline,
        "source": source,
        "connection": earliest.first.connection,
        "first_seen": earliest.first.ts_ns,
        "until": until,
    }


def counted(partition: int, older: Span) -> Body:
    """The states of the leader epochs that are too many to be held apart."""
    columns = ("leader", "leader_epoch", "replicas", "isr", "offline_replicas", "source", "connection")
    body = {"partition": partition, "first_seen": older.first_ns, "until": older.last_ns, "others": older.number}
    return dict.fromkeys(columns) | body


def wholes(subject: Subject, context: CheckContext) -> Iterator[ResultRow]:
    for group in known(context.groups(subject)):
        described = context.claims("topic_described", group, *subject)
        for (internal, operations), claims in gathered(described, "internal operations"):
            earliest = min(claims, key=lambda claim: claim.first)
            yield ResultRow.of(
                "descriptions",
                "|".join((group.key, *subject, f"{internal}:{operations}")),
                group.cluster,
                **named(subject),
                internal=None if internal is None else bool(internal),
                authorized_operations=None if operations is None else operation_names(operations),
                source=earliest["source"],
                connection=earliest.first.connection,
                first_seen=earliest.first.ts_ns,
            )


def operation_names(bits: int) -> list[str]:
    """The operations of a bit field, by name; an unknown bit keeps its number."""
    known = dict(enumerate(ACL_OPERATIONS))
    return [known.get(bit, str(bit)) for bit in range(32) if bits & 0xFFFFFFFF & 1 << bit]
