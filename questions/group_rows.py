"""Groups of a capture: members, state, rebalances, and how far their commits are behind what brokers last stated.

Only what was seen counts. A group whose members are on connections that were not captured has commits alone, and its
state is unknown; a partition that no client read, and none wrote with acks=all, has no end, and no lag.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from wirecheck.decode.show.message_lines import Accumulator
from wirecheck.questions.group_lag import Behind, History, Lives, Reached, lag
from wirecheck.questions.group_messages import (
    COLUMNS,
    HEARTBEATS,
    UNKNOWN_MEMBER_ID,
    Place,
    Step,
    acknowledged,
    cluster_ids,
    commits,
    steps,
    watermarks,
)
from wirecheck.questions.traffic import Traffic

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from wirecheck.decode.connection.exchanges import Exchanges
    from wirecheck.questions.group_messages import Committed, Watermark

MOST_GROUPS, MOST_PARTITIONS = 20_000, 100_000
MOST_CLUSTERS = 2
"""Whether there are several is all that is asked."""
SILENT_NS = 60_000_000_000
"""A member that is silent for longer at the end of the capture is gone: the session times out after 45 s by default."""
REBALANCE_IN_PROGRESS = 27


@dataclass(frozen=True, slots=True)
class GroupRow:
    """One group, as of the end of the capture."""

    group: str
    state: str
    """stable, rebalancing, empty, or unknown where no member was seen"""
    members: int
    rebalances: int
    generation: int | None
    """The last generation, or group epoch (KIP-848), that was seen."""
    partitions: int
    """With a commit that was seen."""
    measured_partitions: int
    """Of these, those with an end that was seen: the lag is about them."""
    lag: int | None
    """Records between the last commits and the ends; None where no partition has both."""
    committed_ns: int | None
    """The last commit; of a share group the last request that accepts or rejects records."""
    watermark_ns: int | None
    """When the oldest of the ends that the lag rests on was stated: a high watermark, or a write that was granted."""
    cluster: str | None = None
    """Its cluster ID, where the capture has several clusters."""
    type: str | None = None
    """classic, consumer, share or streams, as its members speak; None where no member was seen."""
    joining: int = 0
    """Members that wait in JoinGroup at the end."""
    lag_seconds: float | None = None
    """How long the record that has waited longest has been there, as far as the capture shows; None without a lag."""
    lag_per_second: float | None = None
    """Records by which the lag grew in the last minute; None where less than 10 s were seen."""
    ahead_partitions: int = 0
    """Partitions with a commit beyond the high watermark that was stated after it: the topic was recreated, or cut."""


def most_behind(row: GroupRow) -> tuple[int, bool, str]:
    return -(row.lag or 0), row.state == "stable", row.group


TYPES = {api: api.removesuffix("GroupHeartbeat").lower() for api in HEARTBEATS}
"""By the heartbeat of its members, the type of a group; all others are classic."""


@dataclass(slots=True)
class SeenMember:
    last_ns: int
    generation: int
    waits: bool = False
    """Its JoinGroup is open at the end."""


@dataclass(slots=True)
class SeenGroup:
    type: str | None = None
    members: dict[str, SeenMember] = field(default_factory=dict)
    instances: dict[str, str] = field(default_factory=dict)
    """By group.instance.id the member that has it: another one takes its place (KIP-345)."""
    generations: set[int] = field(default_factory=set)
    """That were given while the capture ran."""
    before: int = -1
    """The one that members had when they were seen first."""
    asked_ns: int = 0
    """When a member last had to join again."""
    synced_ns: int = 0
    """When a member last got its assignment."""
    commits: dict[Place, History] = field(default_factory=dict)
    acknowledged_ns: int = 0

    def seen(self, step: Step, *, given: bool) -> None:
        member, generation = step.member, max(step.stated, step.given)
        if step.instance and self.instances.setdefault(step.instance, member) != member:
            self.members.pop(self.instances[step.instance], None)
            self.instances[step.instance] = member
        one = self.members.setdefault(member, SeenMember(step.asked_ns, generation))
        one.last_ns, one.generation = max(one.last_ns, step.asked_ns), max(one.generation, generation)
        if given:
            self.generations.add(generation)
        elif not self.generations and self.before < 0:
            self.before = generation

    def waits(self, name: str, step: Step) -> None:
        """A member that joins, by its member ID, or by its connection where it has none yet."""
        one = self.members.setdefault(step.member or name, SeenMember(step.asked_ns, step.stated))
        one.last_ns, one.waits = max(one.last_ns, step.asked_ns), True


@dataclass
class Groups(Accumulator):
    """All groups of a capture."""

    dialects: Sequence[str] = ()
    traffic: Traffic = field(init=False)
    groups: dict[str, SeenGroup] = field(default_factory=dict)
    ends: dict[Place, Reached] = field(default_factory=dict)
    lives: Lives = field(default_factory=Lives)
    cluster_ids: set[str] = field(default_factory=set)
    others: int = 0
    """Groups and partitions beyond the bounds."""

    def __post_init__(self) -> None:
        self.traffic = Traffic(dialects=self.dialects, also=COLUMNS, own={api for api, *_ in COLUMNS})

    def add(self, exchanges: Exchanges) -> None:
        chunk = self.traffic.add(exchanges)
        if chunk is None:
            return
        self.lives.learn(chunk.decoded, chunk.exchanges.ts_ns)
        for step in steps(chunk):
            self.see_step(step)
        for one in commits(chunk, self.traffic.topic_names):
            self.see_commit(one)
        for name, _, time_ns in acknowledged(chunk):
            self.see_acknowledged(name, time_ns)
        if len(self.cluster_ids) < MOST_CLUSTERS:
            self.cluster_ids |= cluster_ids(chunk)
        for end in watermarks(chunk, self.traffic.topic_names):
            self.see_end(end)

    def see_commit(self, one: Committed) -> None:
        group = self.group(one.group)
        if group is not None and self.has_space(group.commits, one.place):
            group.commits.setdefault(one.place, History()).add(one.asked_ns, one.offset, one.topic_id)

    def see_acknowledged(self, name: str, time_ns: int) -> None:
        group = self.group(name)
        if group is not None:
            group.acknowledged_ns = max(group.acknowledged_ns, time_ns)

    def see_end(self, end: Watermark) -> None:
        if self.has_space(self.ends, end.place):
            self.ends.setdefault(end.place, Reached()).add(end)

    def has_space(self, places: Collection[Place], place: Place) -> bool:
        if place not in places and len(places) >= MOST_PARTITIONS:
            self.others += 1
            return False
        return True

    def group(self, name: str) -> SeenGroup | None:
        """Also the one with the empty name: who assigns partitions by itself may commit to it."""
        if name not in self.groups and len(self.groups) >= MOST_GROUPS:
            self.others += 1
            return None
        return self.groups.setdefault(name, SeenGroup())

    def see_step(self, step: Step) -> None:
        group = self.group(step.group) if step.group else None
        if group is None:
            return
        group.type = TYPES.get(step.api, "classic")
        rejoins = step.api == "Heartbeat" and step.error == REBALANCE_IN_PROGRESS
        if step.api == "JoinGroup" or rejoins:
            group.asked_ns = max(group.asked_ns, step.asked_ns)
        if step.leaves or step.error == UNKNOWN_MEMBER_ID:
            group.members.pop(step.member, None)
        elif step.api == "JoinGroup" and step.is_open:
            group.waits(step.connection, step)
        elif step.error == 0 or rejoins:
            group.seen(step, given=step.given >= 0 and step.given != step.stated)
        if step.api == "SyncGroup" and step.error == 0:
            group.synced_ns = max(group.synced_ns, step.answered_ns or 0)

    def rows(self) -> list[GroupRow]:
        """Those with the most records behind first, then those without a stable state, then by name."""
        return sorted((self.row(name, group) for name, group in self.groups.items()), key=most_behind)

    def row(self, name: str, group: SeenGroup) -> GroupRow:
        end_ns = self.traffic.last_ns
        there = [one for one in group.members.values() if one.waits or end_ns - one.last_ns <= SILENT_NS]
        generation = max([*group.generations, group.before], default=-1)
        current = [one for one in there if one.generation == generation and not one.waits]
        waiting = sum(one.waits for one in there)
        joining = group.asked_ns > group.synced_ns and group.asked_ns > 0
        seen = bool(group.members or group.generations or group.asked_ns)
        moving = joining or len(current) < len(there)
        state = "unknown" if not seen else "empty" if not there else "rebalancing" if moving else "stable"
        committed, behind = self.partitions(group)
        found = lag(behind, end_ns)
        commit_ns = max((one.last[0] for one in committed), default=group.acknowledged_ns)
        return GroupRow(
            name,
            state,
            len(there),
            len(group.generations),
            None if generation < 0 else generation,
            len(committed),
            len(behind),
            found.records if found else None,
            commit_ns or None,
            found.watermark_ns if found else None,
            type=group.type,
            joining=waiting,
            lag_seconds=found.seconds if found else None,
            lag_per_second=found.per_second if found else None,
            ahead_partitions=found.ahead if found else 0,
        )

    def partitions(self, group: SeenGroup) -> tuple[list[History], list[Behind]]:
        """Partitions with a commit to the topic that is there now, and those of which the end was seen, too."""
        newest = self.lives.newest()
        found = ((newest.get(place[0]), place, one) for place, one in group.commits.items())
        today = [(now, place, own) for now, place, one in found if (own := one.of(now)).times]
        both = [(one, end.end(now) if (end := self.ends.get(place)) else None) for now, place, one in today]
        return [one for one, _ in both], [Behind(one, end) for one, end in both if end is not None]
