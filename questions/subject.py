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
from wirecheck.decode.show.message_lines import Accumulator
from wirecheck.decode.wire import REQUEST, RESPONSE
from wirecheck.questions.changes import Changes
from wirecheck.questions.group_lag import History, Lives, Reached
from wirecheck.questions.group_messages import (
    COLUMNS,
    HEARTBEATS,
    Step,
    answer_to,
    commits,
    equal,
    fields,
    steps,
    watermarks,
)
from wirecheck.questions.traffic import Traffic

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from wirecheck.decode.connection.exchanges import Exchanges
    from wirecheck.questions.group_messages import Committed, Watermark
    from wirecheck.questions.traffic import Chunk

MOST = 10_000
"""Entries of each list."""
ALSO = (
    ("Metadata", "response", tuple(f"topics.partitions.{name}" for name in (
        "partition_index", "leader_id", "leader_epoch", "isr_nodes",
    ))),
    *COLUMNS,
    ("BrokerRegistration", "request", ("broker_id", "cluster_id")),
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


@dataclass(slots=True)
class Commit:
    history: History
    client_id: str | None
    """Who committed last."""


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
    """[first, last, count] of each topic ID that brokers gave to the name; a count of 0 is not known."""
    members: dict[str, Member] = field(default_factory=dict)
    moves: list[Move] = field(default_factory=list)
    commits: dict[tuple[str, int], Commit] = field(default_factory=dict)
    ends: dict[tuple[str, int], Reached] = field(default_factory=dict)
    """Of partitions that the group commits."""
    lives: Lives = field(default_factory=Lives)
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
        self.lives.learn(chunk.decoded, chunk.exchanges.ts_ns)
        self.see_topic(chunk)
        self.see_client(chunk)
        for step in steps(chunk, self.name):
            self.see_step(step)
        for one in commits(chunk, self.traffic.topic_names, self.name):
            self.see_commit(one)
        for end in watermarks(chunk, self.traffic.topic_names) if self.commits else ():
            self.see_end(end)
        self.registrations += [one[:3] for one in registrations(chunk) if self.has_space(self.registrations)]

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

    def move(self, step: Step, kind: str, generation: int) -> None:
        until_ns = step.asked_ns if step.answered_ns is None else step.answered_ns
        client = step.call.client_id, step.call.host
        if self.has_space(self.moves):
            self.moves.append(Move(step.asked_ns, kind, step.member, *client, generation, until_ns, step.reason))
        self.seen_member(step, until_ns, generation)

    def seen_member(self, step: Step, until_ns: int, generation: int) -> None:
        """`until_ns`: when it was answered."""
        name, call = step.member, step.call
        if name and (name in self.members or self.has_space(self.members)):
            one = self.members.setdefault(name, Member(call.client_id, call.host, step.asked_ns, until_ns))
            one.last_ns, one.generation = max(one.last_ns, until_ns), max(one.generation, generation)

    def see_step(self, step: Step) -> None:
        if step.api == "JoinGroup" and step.error in {None, 0}:
            self.move(step, "join", step.given)
        elif step.api == "SyncGroup" and step.error == 0:
            self.move(step, "sync", step.stated)
        elif step.leaves:
            self.has_epochs = self.has_epochs or step.api in HEARTBEATS
            self.move(step, "leave", -1)
        elif step.api == "Heartbeat":  # it shows only that the member is there
            self.seen_member(step, step.asked_ns, step.stated)
        elif step.api in HEARTBEATS:
            self.beat(step)

    def beat(self, step: Step) -> None:
        """Of a heartbeat only what changes the member's epoch is a move."""
        self.has_epochs = True
        if step.error == 0 and (step.given != step.stated or step.member not in self.members):
            kind = "join" if not step.stated else "sync" if step.given == step.stated else "epoch"
            self.move(step, kind, step.given)
        elif step.error == 0:
            self.members[step.member].last_ns = step.asked_ns

    def see_commit(self, one: Committed) -> None:
        known = self.commits.get(one.place)
        if known is not None or self.has_space(self.commits):
            commit = self.commits.setdefault(one.place, Commit(History(), None))
            commit.history.add(one.asked_ns, one.offset, one.topic_id)
            commit.client_id = one.call.client_id

    def see_end(self, end: Watermark) -> None:
        """Of a partition that the group commits."""
        if end.place in self.commits:
            self.ends.setdefault(end.place, Reached()).add(end)


def registrations(chunk: Chunk) -> Iterator[tuple[int, int, int, str]]:
    """(time, broker, broker epoch, cluster ID) of registrations that a controller accepted."""
    key = keys()["BrokerRegistration"]
    asked, answers = chunk.tables(key, REQUEST)[""], chunk.tables(key, RESPONSE)[""]
    columns = asked.message.tolist(), asked["broker_id"].tolist(), asked["cluster_id"].strings()
    for message, broker, cluster in zip(*columns, strict=True):
        index = int(chunk.exchange_of[message])
        answer = answer_to(chunk, index, answers)
        if answer is not None and answers["error_code"][answer] == 0:
            yield int(chunk.asked_ns[index]), broker, int(answers["broker_epoch"][answer]), cluster or ""
