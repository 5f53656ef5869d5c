"""Groups of a capture: members, state, rebalances, and how far their commits are behind what brokers last stated.

Only what was seen counts. A group whose members are on connections that were not captured has commits alone, and its
state is unknown; a partition that nobody fetched has no high watermark, and no lag.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from wirecheck.decode.api_names import keys
from wirecheck.decode.show.message_lines import Accumulator
from wirecheck.decode.show.message_summary import topic_codes
from wirecheck.decode.show.subject import HEARTBEATS, PARTITION, answer_to, fields
from wirecheck.decode.show.traffic import Traffic
from wirecheck.decode.wire import REQUEST, RESPONSE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from wirecheck.decode.columns import Table
    from wirecheck.decode.connection.exchanges import Exchanges
    from wirecheck.decode.show.traffic import Chunk

MOST_GROUPS, MOST_PARTITIONS = 20_000, 100_000
SILENT_NS = 60_000_000_000
"""A member that is silent for longer at the end of the capture is gone: the session times out after 45 s by default."""
REBALANCE_IN_PROGRESS = 27
COMMITS = ("OffsetCommit", "TxnOffsetCommit")
ALSO = (
    ("JoinGroup", "request", ("group_id",)),
    ("JoinGroup", "response", ("generation_id", "member_id", "error_code")),
    ("SyncGroup", "request", ("group_id", "member_id", "generation_id")),
    ("SyncGroup", "response", ("error_code",)),
    ("LeaveGroup", "request", ("group_id", "member_id", "members.member_id")),
    ("Heartbeat", "request", ("group_id", "member_id", "generation_id")),
    ("Heartbeat", "response", ("error_code",)),
    *((api, "request", ("group_id", "member_id", "member_epoch")) for api in HEARTBEATS),
    *((api, "response", ("member_id", "member_epoch", "error_code")) for api in HEARTBEATS),
    *((api, "request", ("group_id", PARTITION, "topics.partitions.committed_offset")) for api in COMMITS),
    *((api, "response", (PARTITION, "topics.partitions.error_code")) for api in COMMITS),
    ("Fetch", "response", ("responses.partitions.partition_index", "responses.partitions.high_watermark")),
)  # fmt: skip

Place = tuple[str, int]
"""Topic and partition."""


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
    others: int = 0
    """Groups and partitions beyond the bounds."""

    def __post_init__(self) -> None:
        self.traffic = Traffic(dialects=self.dialects, also=ALSO)

    def add(self, exchanges: Exchanges) -> None:
        chunk = self.traffic.add(exchanges)
        if chunk is None:
            return
        self.join(chunk)
        self.sync(chunk)
        self.alive(chunk)
        for api in HEARTBEATS:
            self.beat(chunk, keys()[api])
        self.leave(chunk)
        for api in COMMITS:
            self.commit(chunk, keys()[api])
        self.see_watermarks(chunk)

    def asked(self, chunk: Chunk, key: int) -> Iterator[tuple[SeenGroup, int, int, int, Table]]:
        """(group, exchange, time, row, requests) of an API."""
        header = chunk.tables(key, REQUEST)[""]
        names = header["group_id"].strings() if len(header) else []
        for row, name in enumerate(names):
            group = self.group(name or "")
            if group is not None:
                index = int(chunk.exchange_of[header.message[row]])
                yield group, index, int(chunk.asked_ns[index]), row, header

    def group(self, name: str) -> SeenGroup | None:
        if name not in self.groups and (not name or len(self.groups) >= MOST_GROUPS):
            self.others += bool(name)
            return None
        return self.groups.setdefault(name, SeenGroup())

    def join(self, chunk: Chunk) -> None:
        answers = chunk.tables(keys()["JoinGroup"], RESPONSE)[""]
        for group, index, asked_ns, _, _ in self.asked(chunk, keys()["JoinGroup"]):
            group.asked_ns = max(group.asked_ns, asked_ns)
            answer = answer_to(chunk, index, answers)
            if answer is not None and answers["error_code"][answer] == 0:
                member, generation = (
                    fields(answers, np.array([answer]), n)[0][0] for n in ("member_id", "generation_id")
                )
                group.seen(member or "", asked_ns, generation, given=True)

    def sync(self, chunk: Chunk) -> None:
        answers = chunk.tables(keys()["SyncGroup"], RESPONSE)[""]
        for group, index, asked_ns, row, header in self.asked(chunk, keys()["SyncGroup"]):
            answer = answer_to(chunk, index, answers)
            if answer is not None and answers["error_code"][answer] == 0:
                member, generation = (fields(header, np.array([row]), n)[0][0] for n in ("member_id", "generation_id"))
                group.seen(member or "", asked_ns, generation, given=False)
                group.synced_ns = max(group.synced_ns, int(chunk.exchanges.ts_ns[answers.message[answer]]))

    def alive(self, chunk: Chunk) -> None:
        """A classic member's heartbeats."""
        answers = chunk.tables(keys()["Heartbeat"], RESPONSE)[""]
        for group, index, asked_ns, row, header in self.asked(chunk, keys()["Heartbeat"]):
            answer = answer_to(chunk, index, answers)
            error = None if answer is None else int(answers["error_code"][answer])
            if error == REBALANCE_IN_PROGRESS:
                group.asked_ns = max(group.asked_ns, asked_ns)
            if error in {0, REBALANCE_IN_PROGRESS}:
                member, generation = (fields(header, np.array([row]), n)[0][0] for n in ("member_id", "generation_id"))
                group.seen(member or "", asked_ns, generation, given=False)

    def beat(self, chunk: Chunk, key: int) -> None:
        """Members of KIP-848's groups, and of those after it."""
        answers = chunk.tables(key, RESPONSE)[""]
        for group, index, asked_ns, row, header in self.asked(chunk, key):
            member, epoch = (fields(header, np.array([row]), name)[0][0] for name in ("member_id", "member_epoch"))
            answer = answer_to(chunk, index, answers)
            if epoch < 0:
                group.members.pop(member or "", None)
            elif answer is not None and answers["error_code"][answer] == 0:
                given = int(answers["member_epoch"][answer])
                name = member or fields(answers, np.array([answer]), "member_id")[0][0] or ""
                group.seen(name, asked_ns, given, given=given != epoch)

    def leave(self, chunk: Chunk) -> None:
        key = keys()["LeaveGroup"]
        members = chunk.tables(key, REQUEST)["members"]
        for group, _, _, row, header in self.asked(chunk, key):
            inside = np.flatnonzero(members.parent == row)
            gone = (
                fields(members, inside, "member_id")[0]
                if len(inside)
                else fields(header, np.array([row]), "member_id")[0]
            )
            for member in gone:
                group.members.pop(member or "", None)

    def commit(self, chunk: Chunk, key: int) -> None:
        there = chunk.tables(key, REQUEST)
        topics, parts = there["topics"], there["topics.partitions"]
        if not len(parts):
            return
        refused = self.refused(chunk, key)
        codes, texts = topic_codes(topics, "name", "topic_id", self.traffic.topic_names)
        every = np.arange(len(parts))
        names = there[""]["group_id"].strings()
        for row, partition, offset in zip(
            every.tolist(), *fields(parts, every, "partition_index", "committed_offset"), strict=True
        ):
            topic_row = int(parts.parent[row])
            group = self.group(names[int(topics.parent[topic_row])] or "")
            index = int(chunk.exchange_of[parts.message[row]])
            place = texts[int(codes[topic_row])], partition
            if group is None or (index, partition) in refused:
                continue
            if place in group.commits or len(group.commits) < MOST_PARTITIONS:
                group.commits[place] = offset, int(chunk.asked_ns[index])

    @staticmethod
    def refused(chunk: Chunk, key: int) -> set[tuple[int, int]]:
        """(exchange, partition) of commits that were answered with an error."""
        parts = chunk.tables(key, RESPONSE)["topics.partitions"]
        rows = np.flatnonzero(parts["error_code"] != 0) if len(parts) else np.zeros(0, np.int64)
        exchanges = chunk.exchange_of[parts.message[rows]].tolist()
        return set(zip(exchanges, parts["partition_index"][rows].tolist(), strict=True)) if len(rows) else set()

    def see_watermarks(self, chunk: Chunk) -> None:
        """The last one of each partition in a chunk."""
        there = chunk.tables(keys()["Fetch"], RESPONSE)
        topics, parts = there["responses"], there["responses.partitions"]
        rows = np.flatnonzero(parts["high_watermark"] >= 0) if len(parts) else np.zeros(0, np.int64)
        if not len(rows):
            return
        codes, texts = topic_codes(topics, "topic", "topic_id", self.traffic.topic_names)
        places = np.stack([codes[parts.parent[rows]], parts["partition_index"][rows]])[:, ::-1]
        last = rows[len(rows) - 1 - np.unique(places, axis=1, return_index=True)[1]]
        for row in last.tolist():
            place = texts[int(codes[parts.parent[row]])], int(parts["partition_index"][row])
            if place in self.watermarks or len(self.watermarks) < MOST_PARTITIONS:
                time_ns = int(chunk.exchanges.ts_ns[parts.message[row]])
                self.watermarks[place] = int(parts["high_watermark"][row]), time_ns
            else:
                self.others += 1

    def rows(self) -> list[GroupRow]:
        """Those with the most records behind first, then those without a stable state, then by name."""
        found = [self.row(name, group) for name, group in self.groups.items()]
        return sorted(found, key=lambda row: (-(row.lag or 0), row.state == "stable", row.group))

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
