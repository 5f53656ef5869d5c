"""What happened in a capture, one event after the other: changes, elections, starts of brokers, groups, clients.

    for event in Timeline().read(tables).events(): print(event.time_ns, event.kind, event.subject, event.text)

Rule: an event was seen. Leaders are as Metadata responses have them, so an election is as late as the first that shows
it; of several at once the partitions are counted. What follows from events (findings) is not known here.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from wirecheck.client_ids import is_of_node
from wirecheck.decode.api_names import keys
from wirecheck.decode.show.message_lines import Accumulator
from wirecheck.decode.show.message_summary import topic_codes
from wirecheck.decode.wire import RESPONSE
from wirecheck.questions.changes import Changes
from wirecheck.questions.group_messages import HEARTBEATS, Step, steps
from wirecheck.questions.subject import ALSO, registrations
from wirecheck.questions.traffic import Traffic
from wirecheck.wording import NS_PER_S, and_list, client_name, plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from wirecheck.decode.connection.exchanges import Exchanges
    from wirecheck.questions.changes import Change
    from wirecheck.questions.traffic import Chunk

KINDS = ("change", "broker", "election", "group", "client", "finding", "hurt")
"""What events are about. finding and hurt: what the checks conclude."""
MOST_EVENTS, MOST_PARTITIONS, MOST_NAMED = 20_000, 200_000, 3
BEGIN_NS, SILENT_NS = NS_PER_S, 30 * NS_PER_S
"""Who sends in the first second was there before; who has been silent for so long at the end has stopped."""


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened."""

    time_ns: int
    """When it was seen first, in nanoseconds since 1970."""
    kind: str
    """change, broker, election, group, client, finding or hurt"""
    subject: str
    """The topic, group, client or broker that it is about; empty where it is about several."""
    text: str
    """What happened, in words."""
    until_ns: int | None = None
    """When it was over, of what lasts; None for a moment, and for what went on at the end."""
    code: str | None = None
    """Of a finding, its check."""
    cluster: str | None = None
    """Cluster ID, where it is known."""


Party = tuple[str | None, str]
"""Client ID and address."""


class Leader(NamedTuple):
    epoch: int
    broker: int
    topic_id: bytes


class Elected(NamedTuple):
    """Elections that one second shows: from whom to whom."""

    second: int
    old: int
    new: int
    cluster: str | None


class Round(NamedTuple):
    """A generation of a group."""

    first_ns: int
    last_ns: int
    members: frozenset[str]


@dataclass
class Timeline(Accumulator):
    """All events of a capture."""

    dialects: Sequence[str] = ()
    principals: bool = True
    traffic: Traffic = field(init=False)
    changes: Changes = field(init=False)
    leaders: dict[tuple[str, int, str | None], Leader] = field(default_factory=dict)
    elected: dict[Elected, tuple[int, Counter[str]]] = field(default_factory=dict)
    """(when it was seen first, partitions by topic)"""
    registered: set[tuple[int, int, str]] = field(default_factory=set)
    """(broker, broker epoch, cluster ID)"""
    rounds: dict[tuple[str, int, str | None], Round] = field(default_factory=dict)
    found: list[Event] = field(default_factory=list)
    others: int = 0
    """Events beyond the bounds."""

    def __post_init__(self) -> None:
        self.traffic, self.changes = Traffic(dialects=self.dialects, also=ALSO), Changes(dialects=self.dialects)

    def add(self, exchanges: Exchanges) -> None:
        self.changes.add(exchanges)
        chunk = self.traffic.add(exchanges)
        if chunk is None:
            return
        self.see_leaders(chunk)
        self.see_registrations(chunk)
        for step in steps(chunk):
            self.see_step(step)

    def keep(self, event: Event) -> None:
        if len(self.found) < MOST_EVENTS:
            self.found.append(event)
        else:
            self.others += 1

    def see_leaders(self, chunk: Chunk) -> None:
        """What Metadata responses show first of each leader."""
        there = chunk.tables(keys()["Metadata"], RESPONSE)
        topics, parts = there["topics"], there["topics.partitions"]
        if not len(parts):
            return
        codes, texts = topic_codes(topics, "name", "topic_id", self.traffic.topic_names)
        ids = topics["topic_id"]
        time_ns = chunk.exchanges.ts_ns[parts.message]
        columns = (codes[parts.parent], parts["partition_index"], parts["leader_epoch"], parts["leader_id"])
        unique, first = np.unique(np.stack(columns, axis=1), axis=0, return_index=True)
        order = np.argsort(time_ns[first], kind="stable")
        for (code, partition, epoch, broker), row in zip(unique[order].tolist(), first[order].tolist(), strict=True):
            if code >= 0:
                now = Leader(epoch, broker, ids[parts.parent[row]].tobytes())
                cluster = self.cluster_at(chunk, int(parts.message[row]))
                self.see_leader((texts[code], partition, cluster), now, int(time_ns[row]))

    def see_leader(self, place: tuple[str, int, str | None], now: Leader, time_ns: int) -> None:
        """`place`: topic, partition and cluster."""
        before = self.leaders.get(place)
        if before is None and len(self.leaders) >= MOST_PARTITIONS:
            return
        if before is not None and now.topic_id == before.topic_id and now.epoch < before.epoch:
            return  # of a broker that lags behind
        self.leaders[place] = now
        if before is None or before.topic_id != now.topic_id or before.broker == now.broker:
            return
        key = Elected(time_ns // NS_PER_S, before.broker, now.broker, place[2])
        if key in self.elected or len(self.elected) < MOST_EVENTS:
            self.elected.setdefault(key, (time_ns, Counter()))[1][place[0]] += 1

    def cluster_at(self, chunk: Chunk, message: int) -> str | None:
        """The cluster of the server of a message."""
        call = chunk.call(int(chunk.exchange_of[message]))
        return self.traffic.brokers.cluster_of([call.server])

    def see_registrations(self, chunk: Chunk) -> None:
        for time_ns, broker, epoch, cluster in registrations(chunk):
            if (broker, epoch, cluster) not in self.registered:  # a request may be sent again
                self.registered.add((broker, epoch, cluster))
                text = f"registers with the controller, broker epoch {epoch:,}"
                self.keep(Event(time_ns, "broker", f"broker {broker}", text, cluster=cluster or None))

    def see_step(self, step: Step) -> None:
        who, cluster = client_name(step.call.client_id), self.traffic.brokers.cluster_of([step.call.server])
        if step.leaves:
            reason = f": {step.reason}" if step.reason else ""
            self.keep(Event(step.asked_ns, "group", step.group, f"{who} leaves{reason}", cluster=cluster))
        elif step.api in HEARTBEATS and step.error == 0 and step.stated == 0 and step.given > 0:
            self.keep(Event(step.asked_ns, "group", step.group, f"{who} joins", cluster=cluster))
        elif step.api == "JoinGroup" and step.error == 0 and step.given >= 0:
            until_ns = step.answered_ns or step.asked_ns
            key, begun = (step.group, step.given, cluster), step.asked_ns
            if key in self.rounds or len(self.rounds) < MOST_EVENTS:
                known = self.rounds.get(key, Round(begun, until_ns, frozenset()))
                self.rounds[key] = Round(
                    min(known.first_ns, begun), max(known.last_ns, until_ns), known.members | {step.member}
                )

    def events(self) -> list[Event]:
        """In order of time."""
        return merged(self.found, self.of_changes(), self.of_elections(), self.of_rounds(), self.of_clients())

    def of_changes(self) -> Iterator[Event]:
        for change in self.changes.merged():
            yield of_change(change if self.principals else change.without_principals())

    def of_elections(self) -> Iterator[Event]:
        for one, (time_ns, topics) in self.elected.items():
            count, names = sum(topics.values()), [f"{name} ({number})" for name, number in topics.most_common()]
            subject = next(iter(topics)) if len(topics) == 1 else ""
            old, new = (f"broker {broker}" if broker >= 0 else "no broker" for broker in (one.old, one.new))
            about = "" if subject else f": {listed(names)}"
            text = f"{old} -> {new} leads {plural(count, 'partition')}{about}"
            yield Event(time_ns, "election", subject, text, cluster=one.cluster)

    def of_rounds(self) -> Iterator[Event]:
        for (group, generation, cluster), one in self.rounds.items():
            took_s = (one.last_ns - one.first_ns) / NS_PER_S
            text = f"generation {generation} with {plural(len(one.members), 'member')}, took {took_s:.1f} s"
            yield Event(one.first_ns, "group", group, text, one.last_ns, cluster=cluster)

    def of_clients(self) -> Iterator[Event]:
        """Who appears while the capture runs, and who falls silent before its end: one event a second."""
        times: dict[Party, tuple[int, int]] = {}
        servers: dict[Party, set[str]] = {}
        for call, one in self.traffic.calls.items():
            if not is_of_node(call.client_id):
                first_ns, last_ns = times.get((call.client_id, call.host), (one.first_ns, one.last_ns))
                times[call.client_id, call.host] = min(first_ns, one.first_ns), max(last_ns, one.last_ns)
                servers.setdefault((call.client_id, call.host), set()).add(call.server)
        clusters = {who: self.traffic.brokers.cluster_of(ends) for who, ends in servers.items()}
        begin_ns, end_ns = self.traffic.first_ns, self.traffic.last_ns
        first = {who: first_ns for who, (first_ns, _) in times.items() if first_ns - begin_ns > BEGIN_NS}
        last = {who: last_ns for who, (_, last_ns) in times.items() if end_ns - last_ns > SILENT_NS}
        yield from together(first, clusters, "first request")
        yield from together(last, clusters, "last request")


def together(times: dict[Party, int], clusters: dict[Party, str | None], text: str) -> Iterator[Event]:
    """One event a second and cluster."""
    seconds: dict[tuple[int, str | None], list[tuple[int, str]]] = {}
    for (client_id, host), time_ns in times.items():
        name = f"{client_name(client_id)} ({host})"
        seconds.setdefault((time_ns // NS_PER_S, clusters[client_id, host]), []).append((time_ns, name))
    for (_, cluster), found in seconds.items():
        found.sort()
        names = [name for _, name in found]
        subject = names[0] if len(names) == 1 else ""
        yield Event(found[0][0], "client", subject, text if subject else f"{text} of {listed(names)}", cluster=cluster)


def of_change(change: Change) -> Event:
    """`DeleteTopics by lab-admin (User:ANONYMOUS, 127.0.0.1): ok`."""
    who = ", ".join(filter(None, (change.principal, change.host)))
    of_type = "" if change.object_type == "topic" else f" {change.object_type}"
    text = f"{change.action}{of_type} by {client_name(change.client_id)} ({who}): {change.answer}"
    details = f", {change.details}" if change.details else ""
    return Event(change.time_ns, "change", change.object, f"{text}{details}", cluster=change.cluster)


def listed(names: Sequence[str]) -> str:
    left = len(names) - MOST_NAMED
    return and_list([*names[:MOST_NAMED], f"{left:,} more"] if left > 0 else list(names))


def merged(*found: Iterable[Event]) -> list[Event]:
    """In order of time."""
    every = (event for events in found for event in events)
    return sorted(every, key=lambda event: (event.time_ns, KINDS.index(event.kind), event.subject, event.text))
