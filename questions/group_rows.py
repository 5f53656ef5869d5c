"""Groups of a capture: members, state, rebalances, and how far their commits are behind what brokers last stated.

Only what was seen counts. A group whose members are on connections that were not captured has commits alone, and its
state is unknown; a partition that no client fetched has no high watermark, and no lag.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from wirecheck.decode.show.message_lines import Accumulator
from wirecheck.questions.group_messages import COLUMNS, Place, Step, cluster_ids, commits, steps, watermarks
from wirecheck.questions.traffic import Traffic

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirecheck.decode.connection.exchanges import Exchanges
    from wirecheck.questions.traffic import Chunk

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
    """Of these, those with a high watermark that was seen: the lag is about them."""
    lag: int | None
    """Records between the last commits and the last high watermarks; None where no partition has both."""
    committed_ns: int | None
    """The last commit."""
    watermark_ns: int | None
    """The oldest of the high watermarks that the lag rests on."""
    cluster: str | None = None
    """Its cluster ID, where the capture has several clusters."""


def most_behind(row: GroupRow) -> tuple[int, bool, str]:
    return -(row.lag or 0), row.state == "stable", row.group


@dataclass(slots=True)
class SeenMember:
    last_ns: int
    generation: int


@dataclass(slots=True)
class SeenGroup:
    members: dict[str, SeenMember] = field(default_factory=dict)
    generations: set[int] = field(default_factory=set)
    """That were given while the capture ran."""
    before: int = -1
    """The one that members had when they were seen first."""
    asked_ns: int = 0
    """When a member last had to join again."""
    synced_ns: int = 0
    """When a member last got its assignment."""
    commits: dict[Place, tuple[int, int]] = field(default_factory=dict)
    """(offset, time in nanoseconds)"""

    def seen(self, member: str, time_ns: int, generation: int, *, given: bool) -> None:
        one = self.members.setdefault(member, SeenMember(time_ns, generation))
        one.last_ns, one.generation = max(one.last_ns, time_ns), max(one.generation, generation)
        if given:
            self.generations.add(generation)
        elif not self.generations and self.before < 0:
            self.before = generation


@dataclass
class Groups(Accumulator):
    """All groups of a capture."""

    dialects: Sequence[str] = ()
    traffic: Traffic = field(init=False)
    groups: dict[str, SeenGroup] = field(default_factory=dict)
    watermarks: dict[Place, tuple[int, int]] = field(default_factory=dict)
    """(high watermark, time in nanoseconds)"""
    cluster_ids: set[str] = field(default_factory=set)
    others: int = 0
    """Groups and partitions beyond the bounds."""

    def __post_init__(self) -> None:
        self.traffic = Traffic(dialects=self.dialects, also=COLUMNS)

    def add(self, exchanges: Exchanges) -> None:
        chunk = self.traffic.add(exchanges)
        if chunk is None:
            return
        for step in steps(chunk):
            self.see_step(chunk, step)
        for one in commits(chunk, self.traffic.topic_names):
            group = self.group(one.group)
            if group is not None:
                self.keep(group.commits, one.place, one.offset, one.asked_ns)
        if len(self.cluster_ids) < MOST_CLUSTERS:
            self.cluster_ids |= cluster_ids(chunk)
        for place, watermark, time_ns in watermarks(chunk, self.traffic.topic_names):
            self.keep(self.watermarks, place, watermark, time_ns)

    def keep(self, latest: dict[Place, tuple[int, int]], place: Place, offset: int, time_ns: int) -> None:
        if place not in latest and len(latest) >= MOST_PARTITIONS:
            self.others += 1
        elif time_ns >= latest.get(place, (0, 0))[1]:
            latest[place] = offset, time_ns

    def group(self, name: str) -> SeenGroup | None:
        if name not in self.groups and (not name or len(self.groups) >= MOST_GROUPS):
            self.others += bool(name)
            return None
        return self.groups.setdefault(name, SeenGroup())

    def see_step(self, chunk: Chunk, step: Step) -> None:
        group = self.group(step.group)
        if group is None:
            return
        rejoins = step.api == "Heartbeat" and step.error == REBALANCE_IN_PROGRESS
        if step.api == "JoinGroup" or rejoins:
            group.asked_ns = max(group.asked_ns, step.asked_ns)
        if step.leaves:
            group.members.pop(step.member, None)
        elif step.error == 0 or rejoins:
            new = step.given >= 0 and step.given != step.stated
            group.seen(step.member, step.asked_ns, max(step.stated, step.given), given=new)
        if step.api == "SyncGroup" and step.error == 0:
            group.synced_ns = max(group.synced_ns, int(chunk.exchanges.ts_ns[chunk.exchanges.response[step.exchange]]))

    def rows(self) -> list[GroupRow]:
        """Those with the most records behind first, then those without a stable state, then by name."""
        return sorted((self.row(name, group) for name, group in self.groups.items()), key=most_behind)

    def row(self, name: str, group: SeenGroup) -> GroupRow:
        end_ns = self.traffic.last_ns
        there = [one for one in group.members.values() if end_ns - one.last_ns <= SILENT_NS]
        generation = max([*group.generations, group.before], default=-1)
        current = [one for one in there if one.generation == generation]
        joining = group.asked_ns > group.synced_ns and group.asked_ns > 0
        seen = bool(group.members or group.generations or group.asked_ns)
        moving = joining or len(current) < len(there)
        state = "unknown" if not seen else "empty" if not there else "rebalancing" if moving else "stable"
        both = {place: self.watermarks[place] for place in group.commits if place in self.watermarks}
        lags = [max(0, watermark - group.commits[place][0]) for place, (watermark, _) in both.items()]
        return GroupRow(
            name,
            state,
            len(there),
            len(group.generations),
            None if generation < 0 else generation,
            len(group.commits),
            len(both),
            sum(lags) if both else None,
            max((time_ns for _, time_ns in group.commits.values()), default=None),
            min((time_ns for _, time_ns in both.values()), default=None),
        )
