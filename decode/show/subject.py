"""What a capture shows of one name: a topic, a client, a group or a broker.

    subject = Subject("orders").read(tables)
    subject.views, subject.members, subject.commits

Only what concerns the name is kept, and of that only what changed. Each list is bounded; what is beyond its bound is
counted in `others`. What is worth showing is chosen in subject_facts.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wirecheck.decode.api_names import keys
from wirecheck.decode.nested import id_text
from wirecheck.decode.show.changes import Changes
from wirecheck.decode.show.message_lines import Accumulator
from wirecheck.decode.show.message_summary import topic_codes
from wirecheck.decode.show.traffic import Traffic
from wirecheck.decode.texts import Lists, Text
from wirecheck.decode.wire import REQUEST, RESPONSE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from wirecheck.decode.columns import Table
    from wirecheck.decode.connection.exchanges import Exchanges
    from wirecheck.decode.show.traffic import Call, Chunk
    from wirecheck.decode.wire import Ints

MOST = 10_000
"""Entries of each list."""
HEARTBEATS = ("ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "StreamsGroupHeartbeat")
"""Groups of KIP-848 and after: a member states its epoch, and the coordinator answers with the group's."""
GIVEN_ID = ("need to re-join with the given member-id", "rebalance failed due to MemberIdRequiredException")
"""How Java's clients give as the reason that they are new (KIP-394)."""
PARTITION = "topics.partitions.partition_index"
ALSO = (
    ("Metadata", "response", tuple(f"topics.partitions.{name}" for name in (
        "partition_index", "leader_id", "leader_epoch", "isr_nodes",
    ))),
    ("JoinGroup", "request", ("group_id", "member_id", "group_instance_id", "reason")),
    ("JoinGroup", "response", ("generation_id", "member_id", "error_code")),
    ("SyncGroup", "request", ("group_id", "member_id", "generation_id")),
    ("SyncGroup", "response", ("error_code",)),
    ("LeaveGroup", "request", ("group_id", "member_id", "members.member_id", "members.reason")),
    ("Heartbeat", "request", ("group_id", "member_id", "generation_id")),
    ("OffsetCommit", "request", ("group_id", PARTITION, "topics.partitions.committed_offset")),
    ("Fetch", "response", ("responses.partitions.partition_index", "responses.partitions.high_watermark")),
    *((api, "request", ("group_id", "member_id", "member_epoch")) for api in HEARTBEATS),
    *((api, "response", ("member_id", "member_epoch", "error_code")) for api in HEARTBEATS),
    ("BrokerRegistration", "request", ("broker_id",)),
    ("BrokerRegistration", "response", ("broker_epoch", "error_code")),
)  # fmt: skip


class View(NamedTuple):
    """How a broker described one partition."""

    topic_id: str
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]


@dataclass(slots=True)
class Described:
    """For how long a broker described a partition so."""

    view: View
    since_ns: int
    last_ns: int


@dataclass(slots=True)
class Member:
    """Of a group."""

    client_id: str | None
    host: str
    first_ns: int
    last_ns: int
    generation: int = -1
    """The last generation, or epoch, that it was given."""


class Move(NamedTuple):
    """One step of a member."""

    time_ns: int
    kind: str
    """join, sync or leave; of groups with epochs also epoch: the member was given a new one"""
    member: str
    client_id: str | None
    host: str
    generation: int
    """Given by the answer; -1 without one."""
    until_ns: int
    """When it was answered."""
    reason: str


class Commit(NamedTuple):
    offset: int
    time_ns: int
    client_id: str | None


@dataclass
class Subject(Accumulator):
    """All that concerns one name."""

    name: str
    dialects: Sequence[str] = ()
    traffic: Traffic = field(init=False)
    changes: Changes = field(init=False)
    views: dict[tuple[str, int], list[Described]] = field(default_factory=dict)
    """By server and partition."""
    ids: dict[str, list[int]] = field(default_factory=dict)
    """[first, last, count] of each topic ID that brokers gave to the name."""
    members: dict[str, Member] = field(default_factory=dict)
    moves: list[Move] = field(default_factory=list)
    commits: dict[tuple[str, int], Commit] = field(default_factory=dict)
    watermarks: dict[tuple[str, int], int] = field(default_factory=dict)
    """The last high watermark of partitions that the group commits."""
    groups: set[str] = field(default_factory=set)
    """That a client of this name is a member of."""
    has_epochs: bool = False
    """The group's members state epochs (KIP-848 and after), not generations."""
    connections: set[tuple[str, int]] = field(default_factory=set)
    """Name and start of those of a client of this name."""
    registrations: list[tuple[int, int, int]] = field(default_factory=list)
    """(time, broker, epoch)"""
    others: int = 0

    def __post_init__(self) -> None:
        self.traffic, self.changes = Traffic(dialects=self.dialects, also=ALSO), Changes(dialects=self.dialects)

    def add(self, exchanges: Exchanges) -> None:
        self.changes.add(exchanges)
        chunk = self.traffic.add(exchanges)
        if chunk is None:
            return
        self.see_topic(chunk)
        self.see_client(chunk)
        for api, see in (("JoinGroup", self.join), ("SyncGroup", self.sync), ("LeaveGroup", self.leave)):
            see(chunk, keys()[api])
        for api in HEARTBEATS:
            self.beat(chunk, keys()[api])
        self.alive(chunk, keys()["Heartbeat"])
        self.commit(chunk, keys()["OffsetCommit"])
        self.register(chunk, keys()["BrokerRegistration"])

    def has_space(self, kept: Any) -> bool:
        if len(kept) < MOST:
            return True
        self.others += 1
        return False

    def see_topic(self, chunk: Chunk) -> None:
        there = chunk.tables(keys()["Metadata"], RESPONSE)
        topics, parts = there["topics"], there["topics.partitions"]
        named = equal(topics["name"], self.name)
        if not len(named):
            return
        ids = [id_text(each.tobytes()) for each in topics["topic_id"][named]]
        id_of = dict(zip(named.tolist(), ids, strict=True))
        for row, topic_id in id_of.items():
            time_ns = int(chunk.exchanges.ts_ns[topics.message[row]])
            if topic_id.strip("A") and (topic_id in self.ids or self.has_space(self.ids)):
                seen = self.ids.setdefault(topic_id, [time_ns, time_ns, 0])
                seen[:] = [min(seen[0], time_ns), max(seen[1], time_ns), seen[2] + 1]
        rows = np.flatnonzero(np.isin(parts.parent, named))
        columns = fields(parts, rows, "partition_index", "leader_id", "leader_epoch")
        for row, partition, leader, epoch in zip(rows.tolist(), *columns, strict=True):
            isr = tuple(parts["isr_nodes"].row(row).tolist())
            view = View(id_of[int(parts.parent[row])], leader, epoch, isr)
            message = int(parts.message[row])
            self.see_view(chunk.call(int(chunk.exchange_of[message])).server, partition, chunk, message, view)

    def see_view(self, server: str, partition: int, chunk: Chunk, message: int, view: View) -> None:
        seen = self.views.get((server, partition))
        if seen is None and self.has_space(self.views):
            seen = self.views[server, partition] = []
        time_ns = int(chunk.exchanges.ts_ns[message])
        if seen and seen[-1].view == view:
            seen[-1].last_ns = time_ns
        elif seen is not None and self.has_space(seen):
            seen.append(Described(view, time_ns, time_ns))

    def see_client(self, chunk: Chunk) -> None:
        exchanges = chunk.exchanges
        mine = chunk.of_client(self.name)
        for index in np.unique(exchanges.connection[exchanges.first[mine]]).tolist():
            connection = exchanges.connections[index]
            if self.has_space(self.connections):
                self.connections.add((connection.name, connection.started_ns))
        for api in ("JoinGroup", *HEARTBEATS):
            header = chunk.tables(keys()[api], REQUEST)[""]
            rows = np.flatnonzero(np.isin(chunk.exchange_of[header.message], mine))
            self.groups.update(filter(None, fields(header, rows, "group_id")[0]) if len(rows) else ())

    def asked(self, chunk: Chunk, key: int) -> Iterator[tuple[int, int, Table]]:
        """(exchange, row, requests) of an API that are about this group."""
        header = chunk.tables(key, REQUEST)[""]
        for row in equal(header["group_id"], self.name).tolist():
            yield int(chunk.exchange_of[header.message[row]]), row, header

    def move(self, where: tuple[Chunk, int], kind: str, member: str, generation: int, reason: str = "") -> None:
        """`where`: the exchange."""
        chunk, index = where
        exchanges, call = chunk.exchanges, chunk.call(index)
        response = int(exchanges.response[index])
        asked_ns = int(chunk.asked_ns[index])
        until_ns = int(exchanges.ts_ns[response]) if response >= 0 else asked_ns
        if self.has_space(self.moves):
            self.moves.append(Move(asked_ns, kind, member, call.client_id, call.host, generation, until_ns, reason))
        self.seen_member(member, call, (asked_ns, until_ns), generation)

    def seen_member(self, name: str, call: Call, times: tuple[int, int], generation: int = -1) -> None:
        """`times`: of the request and its answer."""
        if name and (name in self.members or self.has_space(self.members)):
            one = self.members.setdefault(name, Member(call.client_id, call.host, *times))
            one.last_ns, one.generation = max(one.last_ns, times[1]), max(one.generation, generation)

    def join(self, chunk: Chunk, key: int) -> None:
        answers = chunk.tables(key, RESPONSE)[""]
        for index, row, header in self.asked(chunk, key):
            member, reason = text(header, "member_id", row), text(header, "reason", row)
            reason = "" if reason.startswith(GIVEN_ID) else reason
            answer = answer_to(chunk, index, answers)
            if answer is None:
                self.move((chunk, index), "join", member, -1, reason)
            elif answers["error_code"][answer] == 0:
                given = text(answers, "member_id", answer) or member
                self.move((chunk, index), "join", given, int(answers["generation_id"][answer]), reason)

    def sync(self, chunk: Chunk, key: int) -> None:
        answers = chunk.tables(key, RESPONSE)[""]
        for index, row, header in self.asked(chunk, key):
            answer = answer_to(chunk, index, answers)
            if answer is not None and answers["error_code"][answer] == 0:
                self.move((chunk, index), "sync", text(header, "member_id", row), int(header["generation_id"][row]))

    def leave(self, chunk: Chunk, key: int) -> None:
        members = chunk.tables(key, REQUEST)["members"]
        for index, row, header in self.asked(chunk, key):
            inside = np.flatnonzero(members.parent == row).tolist()
            if not inside:
                self.move((chunk, index), "leave", text(header, "member_id", row), -1)
            for one in inside:
                self.move((chunk, index), "leave", text(members, "member_id", one), -1, text(members, "reason", one))

    def beat(self, chunk: Chunk, key: int) -> None:
        """Of a heartbeat only what changes the member's epoch is a move."""
        answers = chunk.tables(key, RESPONSE)[""]
        for index, row, header in self.asked(chunk, key):
            self.has_epochs = True
            answer, epoch = answer_to(chunk, index, answers), int(header["member_epoch"][row])
            member = text(header, "member_id", row) or ("" if answer is None else text(answers, "member_id", answer))
            if epoch < 0:
                self.move((chunk, index), "leave", member, -1)
            elif answer is not None and answers["error_code"][answer] == 0:
                given = int(answers["member_epoch"][answer])
                if given != epoch or member not in self.members:
                    kind = "join" if not epoch else "sync" if given == epoch else "epoch"
                    self.move((chunk, index), kind, member, given)
                else:
                    self.members[member].last_ns = int(chunk.asked_ns[index])

    def alive(self, chunk: Chunk, key: int) -> None:
        """A classic member's heartbeats show only that it is there."""
        for index, row, header in self.asked(chunk, key):
            asked_ns, generation = int(chunk.asked_ns[index]), int(header["generation_id"][row])
            self.seen_member(text(header, "member_id", row), chunk.call(index), (asked_ns, asked_ns), generation)

    def commit(self, chunk: Chunk, key: int) -> None:
        there = chunk.tables(key, REQUEST)
        topics, parts = there["topics"], there["topics.partitions"]
        mine = equal(there[""]["group_id"], self.name)
        if len(mine):
            codes, texts = topic_codes(topics, "name", "topic_id", self.traffic.topic_names)
            rows = np.flatnonzero(np.isin(topics.parent[parts.parent], mine))
            for row, partition, offset in zip(
                rows.tolist(), *fields(parts, rows, "partition_index", "committed_offset"), strict=True
            ):
                place = texts[int(codes[parts.parent[row]])], partition
                index = int(chunk.exchange_of[parts.message[row]])
                if place in self.commits or self.has_space(self.commits):
                    self.commits[place] = Commit(offset, int(chunk.asked_ns[index]), chunk.call(index).client_id)
        if self.commits:
            self.see_watermarks(chunk)

    def see_watermarks(self, chunk: Chunk) -> None:
        there = chunk.tables(keys()["Fetch"], RESPONSE)
        topics, parts = there["responses"], there["responses.partitions"]
        if not len(parts):
            return
        codes, texts = topic_codes(topics, "topic", "topic_id", self.traffic.topic_names)
        known = {topic for topic, _ in self.commits}
        mine = np.isin(codes, [code for code, topic in enumerate(texts) if topic in known])
        rows = np.flatnonzero(mine[parts.parent] & (parts["high_watermark"] >= 0))
        numbers = fields(parts, rows, "partition_index", "high_watermark")
        for row, partition, watermark in zip(rows.tolist(), *numbers, strict=True):
            place = texts[int(codes[parts.parent[row]])], partition
            if place in self.commits:
                self.watermarks[place] = max(watermark, self.watermarks.get(place, -1))

    def register(self, chunk: Chunk, key: int) -> None:
        asked, answers = chunk.tables(key, REQUEST)[""], chunk.tables(key, RESPONSE)[""]
        for message, broker in zip(asked.message.tolist(), asked["broker_id"].tolist(), strict=True):
            index = int(chunk.exchange_of[message])
            answer = answer_to(chunk, index, answers)
            if answer is not None and answers["error_code"][answer] == 0 and self.has_space(self.registrations):
                self.registrations.append((int(chunk.asked_ns[index]), broker, int(answers["broker_epoch"][answer])))


def equal(column: Text, name: str) -> Ints:
    """Rows with this text."""
    codes, texts = column.codes()
    return np.flatnonzero(codes == texts.index(name)) if name in texts else np.zeros(0, np.int64)


def text(table: Table, name: str, row: int) -> str:
    """One cell; empty if null."""
    return fields(table, np.array([row]), name)[0][0] or ""


def fields(table: Table, rows: Ints, *names: str) -> list[list[Any]]:
    """Cells of these rows, by column."""
    found: list[list[Any]] = []
    for name in names:
        column = table[name]
        assert not isinstance(column, Lists)
        if isinstance(column, Text):
            column = Text(column.data, column.at[rows], column.length[rows])
        found.append(column.strings() if isinstance(column, Text) else column[rows].tolist())
    return found


def answer_to(chunk: Chunk, index: int, answers: Table) -> int | None:
    """Row of the response of an exchange, where it was seen and decoded."""
    response = int(chunk.exchanges.response[index])
    if response < 0 or not len(answers):
        return None
    row = int(np.searchsorted(answers.message, response))
    return row if row < len(answers) and answers.message[row] == response else None
