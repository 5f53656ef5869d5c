"""GRP017: partitions that came while a group read their topic, and that no member of it reads.

Rule: in a classic group the leader divides the partitions that its own metadata has, so a new one waits until a member
asks for metadata, and some libraries never look. It counts only where every member of the last generation was captured:
as many as the leader got to know. Brokers divide the partitions of the newer groups themselves.
"""

from collections.abc import Collection, Iterator
from typing import NamedTuple

from wirecheck.client_ids import is_internal
from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks.progress import Log, assigned_last, greatest, log_of, of_group, readers
from wirecheck.judge.checks.shapes import clients_of, clock, counted, resting_on, start_ns
from wirecheck.judge.claims.claim import LEAST, MOST_MEMBERS, Claim, Subject
from wirecheck.judge.claims.extract.group_members import BY_ID
from wirecheck.judge.results.finding import Evidence, Number
from wirecheck.judge.thresholds import SECOND_NS
from wirecheck.judge.topology.clusters import Group


class LastGeneration(NamedTuple):
    """All members that a group had when its partitions were divided last."""

    members: list[Claim]
    began_ns: int

    @property
    def alive_ns(self) -> int:
        """Until when each of them was seen to live."""
        return min(int(one.peak["alive"]) for one in self.members)

    def held(self, topic: str) -> set[int]:
        """The partitions of a topic that they have."""
        return {int(number) for one in self.members for name, number in assigned_last(one) if name == topic}


class Unread(NamedTuple):
    partition: int
    since_ns: int
    """When it had a first record."""
    records: int
    states: list[Claim]


def new_partition_not_read(subject: Subject, group: Group, context: CheckContext) -> Iterator[Evidence]:
    """One per group."""
    log = log_of(subject, group, context)
    new = [*new_partitions(log)]
    if not new or not log.brokers:
        return
    for reads in sorted({claim["group"] for claim in log.every("committed")}):
        generation = last_generation(of_group("member", reads, group, context), context)
        if generation is None or not generation.held(log.topic.name) or not reads_on(generation, log, new):
            continue
        found = [one for one in new if not is_read(one, generation, log)]
        if not found or not waits_long(found, generation, context):
            continue
        words = {
            "group": reads,
            "partitions": named([one.partition for one in found]),
            "since": clock(min(one.since_ns for one in found)),
            "records": Number(sum(one.records for one in found)),
        }
        yield resting_on(
            [*generation.members, *(state for one in found for state in one.states)],
            *(reads, log.topic.name),
            topic=log.topic.name,
            client_ids=clients_of(generation.members),
            first_ns=min(one.since_ns for one in found),
            last_ns=generation.alive_ns,
            words=words,
        )


def named(partitions: list[int]) -> str:
    return f"partition {partitions[0]}" if len(partitions) == 1 else counted(len(partitions), "partition")


def new_partitions(log: Log) -> Iterator[Unread]:
    """Those with records that were not there when the topic was seen first, under whatever ID."""
    states: dict[int, list[Claim]] = {}
    every = [*log.context.claims("unnumbered", log.group, "name", log.topic.name)]
    for history in log.topic.histories:
        every += log.context.claims("partition", log.group, "id", history.topic_id)
    for claim in every:
        states.setdefault(claim["partition"], []).append(claim)
    first_ns = {partition: min(one.first.ts_ns for one in claims) for partition, claims in states.items()}
    known_ns = min(first_ns.values(), default=0)
    for partition, claims in sorted(states.items()):
        end = [slot for slot, offset in log.end(partition) if offset > 0]
        if end and first_ns[partition] >= known_ns + SECOND_NS:
            since_ns = max(first_ns[partition], start_ns(end[0]))
            yield Unread(partition, since_ns, greatest(log.end(partition)), claims)


def last_generation(members: Collection[Claim], context: CheckContext) -> LastGeneration | None:
    """None where it is not known whole."""
    led = (one for one in members if one.peak.get("members", (0, 0))[1])
    leader = max(led, key=lambda one: tuple(one.peak["members"]), default=None)
    if leader is None or any(one.last.api in BY_ID or is_internal(one["client_id"] or "") for one in members):
        return None
    began_ns, count = leader.peak["members"]
    mine = [one for one in members if int(one.peak.get("assigned", 0)) >= began_ns and "alive" in one.peak]
    at_once = all(one.peak["assigned"] - began_ns <= context.settings.broker_grace_ns for one in mine)
    full = any(sum(name.startswith(LEAST) for name in one.peak) >= MOST_MEMBERS for one in mine)
    return LastGeneration(mine, began_ns) if len(mine) == count and at_once and not full else None


def reads_on(generation: LastGeneration, log: Log, new: list[Unread]) -> bool:
    """Whether a member fetched another partition since, and all that the members ask for is known."""
    who = {(one["client_id"], one["host"]) for one in generation.members}
    since_ns, numbers = min(one.since_ns for one in new), {one.partition for one in new}
    others = (claim for partition in log.of("position") if partition not in numbers
              for claim in log.at("position", partition))  # fmt: skip
    fetches = any(one.who in who and one.last[0] >= since_ns for one in readers(others))
    return fetches and all(log.whole(one, generation.began_ns) for one in who)


def is_read(one: Unread, generation: LastGeneration, log: Log) -> bool:
    """Whether a member has the partition, or a client of the same host or application reads it."""
    hosts, clients = ({member[name] for member in generation.members} for name in ("host", "client_id"))
    every = log.readers(one.partition)
    asked = any(reader.host in hosts or reader.client_id in clients for reader in every)
    return one.partition in generation.held(log.topic.name) or asked


def waits_long(found: list[Unread], generation: LastGeneration, context: CheckContext) -> bool:
    """Longer than any client keeps its metadata. That the members live is no news: they are looked at again then."""
    settings = context.settings
    due_ns = min(one.since_ns for one in found) + settings.client_grace_ns + settings.broker_grace_ns
    if generation.alive_ns >= due_ns:
        return True
    context.passed(due_ns)
    return False
