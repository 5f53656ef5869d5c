"""What a claim is: one statement, who made it first and last, and how often.

Knows: the kinds of claims (KINDS, as data), how two sightings of one claim merge, how claims become bytes. Does not
know which messages make claims (`claims.py`) or what follows from them (the ledger and the checks).
Rule: merging is commutative and associative: first is the least sighting, last the greatest, counts and tallies add,
peaks take the maximum. A new kind is a row of KINDS; state that cannot be told by these four does not belong in one.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

Key = tuple[Any, ...]
Cell = tuple[str, ...]
ZERO = "AAAAAAAAAAAAAAAAAAAAAA"
"""The all-zero topic id as Kafka prints it: said explicitly; None is a version that carries no ids."""
METADATA_LOG = "AAAAAAAAAAAAAAAAAAAAAQ"
"""The reserved id of __cluster_metadata."""
RESERVED = frozenset({ZERO, METADATA_LOG})
SLOT_NS = 10_000_000_000
"""Tallies over time count in slots of 10 s."""
MOST_SLOTS = 720
"""Two hours of slots are kept per claim: the longest window of a check is one."""


class Sighting(NamedTuple):
    """Where one statement was seen. Sightings are ordered by time, ties by the rest."""

    ts_ns: int
    connection: str
    api: str
    version: int
    correlation_id: int
    source: str
    frame_first: int
    frame_last: int

    @property
    def server(self) -> str:
        return self.connection.rpartition(">")[2]

    @property
    def client(self) -> str:
        return self.connection.partition(">")[0]


@dataclass(frozen=True)
class Kind:
    fields: tuple[str, ...]
    """Names of the key's parts, in order."""
    cells: tuple[Cell, ...]
    """Where the ledger files it: (space, fields of the cell's key); once per subject it speaks about."""
    sentence: str
    """What one such claim says, from its fields."""

    @cached_property
    def at(self) -> dict[str, int]:
        """Where each field stands in a key."""
        return {name: place for place, name in enumerate(self.fields)}


def kind(fields: str, cells: str, sentence: str) -> Kind:
    return Kind(tuple(fields.split()), tuple(tuple(cell.split(":")) for cell in cells.split()), sentence)


KINDS: Mapping[str, Kind] = {
    # which topic is which; `by` is controller@epoch in control requests, `endpoint` who answered (None: any broker)
    "binding": kind(
        "name topic_id source endpoint by", "name:name id:topic_id", "{source}: topic {name} has id {topic_id}"
    ),
    "absence": kind("name source endpoint error", "name:name", "{source}: no such topic {name} (error {error})"),
    "creation": kind("name topic_id endpoint", "name:name id:topic_id", "topic {name} is created"),
    "deletion": kind(
        "name topic_id source endpoint by", "name:name id:topic_id", "{source}: topic {name} {topic_id} is deleted"
    ),
    "partition": kind(
        "topic_id partition source leader_epoch leader replicas isr",
        "id:topic_id",
        "{source}: partition {partition} has leader {leader} of epoch {leader_epoch}, replicas {replicas}, ISR {isr}",
    ),
    "ordered": kind(
        "name topic_id partition endpoint by how",
        "name:name id:topic_id",
        "controller {by} orders {endpoint}: {how} partition {partition} of {name} with id {topic_id}",
    ),
    "id_refused": kind(
        "topic_id partition endpoint by",
        "id:topic_id",
        "{endpoint} answers INCONSISTENT_TOPIC_ID (103) for partition {partition} of {topic_id}",
    ),
    "id_asked": kind(
        "topic_id partition endpoint by",
        "id:topic_id",
        "controller {by} orders partition {partition} of topic id {topic_id}",
    ),
    "partition_use": kind(
        "topic_id client_id host endpoint", "id:topic_id", "{client_id} fetches partitions of {topic_id}"
    ),
    "use": kind("topic_id api client_id host endpoint", "id:topic_id", "{client_id} uses the id in {api}"),
    "deletions": kind("endpoint", "server:", "topics are deleted"),
    # who leads and follows
    "serves": kind(
        "name topic_id partition endpoint", "name:name id:topic_id", "{endpoint} serves partition {partition}"
    ),
    "denies": kind(
        "name topic_id partition endpoint api error",
        "name:name id:topic_id",
        "{endpoint} answers {api} for partition {partition} with {error}",
    ),
    "follower": kind("broker endpoint client_id", "server:", "broker {broker} fetches from {endpoint}"),
    "follows": kind(
        "topic_id partition broker endpoint client_id",
        "id:topic_id",
        "broker {broker} asks {endpoint} for partition {partition}",
    ),
    "heartbeat": kind("broker endpoint", "server:", "broker {broker} tells how far it has read the metadata log"),
    "replica_answer": kind(
        "topic_id partition api client_id endpoint", "id:topic_id", "{api} of {client_id} for partition {partition}"
    ),
    # which endpoint belongs to which cluster
    "server": kind("endpoint", "server:", "{endpoint} answers in Kafka's protocol"),
    "cluster_id": kind("endpoint cluster_id how", "server:", "{endpoint} belongs to cluster {cluster_id} ({how})"),
    "address": kind("endpoint address broker", "server:", "{endpoint} says that broker {broker} is at {address}"),
    "carries": kind("endpoint topic_id", "server:", "{endpoint} speaks of topic id {topic_id}"),
    "log_order": kind("endpoint", "server:", "{endpoint} shows the metadata log"),
    "advertised": kind("endpoint ranges", "server:", "{endpoint} advertises {ranges}"),
    "control": kind(
        "endpoint controller controller_epoch kraft api version error",
        "server:",
        "controller {controller} of epoch {controller_epoch} sends {api} v{version}, answered with {error}",
    ),
    # who speaks what
    "client": kind("client_id host endpoint", "client:client_id:host", "{client_id} at {host} sends requests"),
    "software": kind(
        "client_id host endpoint name version", "client:client_id:host", "{client_id} calls itself {name} {version}"
    ),
    "request_version": kind(
        "client_id host endpoint api version", "client:client_id:host", "{client_id} sends {api} v{version}"
    ),
    "closed_on": kind(
        "client_id host endpoint api version",
        "client:client_id:host",
        "{endpoint} closes the connection instead of answering {api} v{version}",
    ),
    "tolerated": kind("client_id host endpoint api tolerance", "wire:", "{client_id} sends {api} with {tolerance}"),
    "zero_use": kind(
        "client_id host endpoint api", "client:client_id:host", "{client_id} sends {api} with no topic id"
    ),
    "answer": kind("client_id host endpoint api", "client:client_id:host", "{endpoint} answers {api} of {client_id}"),
    "odd_request": kind(
        "client_id host endpoint what", "client:client_id:host", "{client_id} asks for metadata {what}"
    ),
    "create_rule": kind(
        "client_id host endpoint name rule error",
        "client:client_id:host",
        "{client_id} creates {name} against rule {rule} and is answered {error}",
    ),
    "cluster_refused": kind(
        "client_id host endpoint api cluster_id",
        "server:",
        "{client_id} presents cluster {cluster_id} in {api} and is answered INCONSISTENT_CLUSTER_ID (104)",
    ),
    "described": kind("name topic_id group endpoint", "id:topic_id", "group {group} is said to read {name}"),
    "assigned": kind("topic_id group endpoint", "id:topic_id", "group {group} is assigned partitions of {topic_id}"),
    # what was seen and read
    "connection": kind("host endpoint client started_ns", "link:endpoint", "connection {client}>{endpoint}"),
    "gap": kind(
        "host endpoint client started_ns ts_ns side bytes", "link:endpoint", "{bytes} {side} bytes are missing"
    ),
    "unanswered": kind("host endpoint api outcome", "link:endpoint", "{api} was not answered: {outcome}"),
    "malformed": kind(
        "api version side reason client_id host endpoint client started_ns",
        "wire:",
        "{api} v{version} {side} is malformed: {reason}",
    ),
    "unknown": kind("key version endpoint reason", "wire:", "API key {key} v{version} is not in the schemas"),
    "stray": kind("host endpoint client started_ns what", "link:endpoint", "{endpoint}: {what}"),
    "dialect": kind("host endpoint dialect", "link:endpoint", "{host} and {endpoint} speak {dialect}"),
    "draft_code": kind("endpoint error api", "link:endpoint", "{endpoint} answers {api} with {error}"),
    "mark": kind("agent what source reason", "agent:", "agent {agent}: {what} {source} {reason}"),
}
SPACES = {"name": 64, "id": 64, "client": 16, "link": 16, "server": 1, "wire": 1, "agent": 1}
"""The ledger's spaces and how many shards each is cut into."""


class Claim:
    """One statement; mutable only by `merge`."""

    __slots__ = ("count", "first", "key", "kind", "last", "peak", "tally")

    def __init__(
        self,
        kind: str,
        key: Key,
        first: Sighting,
        last: Sighting | None = None,
        *,
        count: int = 1,
        tally: dict[str, int] | None = None,
        peak: dict[str, Any] | None = None,
    ) -> None:
        self.kind, self.key, self.first, self.last, self.count = kind, key, first, last or first, count
        self.tally = tally or {}
        """Counters that add up, by name or by slot of time."""
        self.peak = peak or {}
        """Values of which the greatest holds: cumulative counts, offsets, [stamp, value] for the latest word."""

    def merge(self, other: "Claim") -> None:
        self.first = min(self.first, other.first)
        self.last = max(self.last, other.last)
        self.count += other.count
        for name, count in other.tally.items():
            self.tally[name] = self.tally.get(name, 0) + count
        for name, value in other.peak.items():
            self.peak[name] = max(self.peak[name], value) if name in self.peak else value
        if len(self.tally) + len(self.peak) > MOST_SLOTS:
            self.tally, self.peak = newest(self.tally), newest(self.peak)

    def copy(self) -> "Claim":
        return Claim(
            self.kind,
            self.key,
            self.first,
            self.last,
            count=self.count,
            tally=dict(self.tally),
            peak=dict(self.peak),
        )

    def __getitem__(self, field: str) -> Any:
        return self.key[KINDS[self.kind].at[field]]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Claim) and self.state() == other.state()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Claim{self.state()}"

    def state(self) -> tuple[Any, ...]:
        return (self.kind, self.key, self.first, self.last, self.count, self.tally, self.peak)

    @property
    def identity(self) -> tuple[str, Key]:
        return self.kind, self.key

    def server(self) -> str:
        """The endpoint whose cluster the claim belongs to."""
        at = KINDS[self.kind].at.get("endpoint")
        return (self.key[at] if at is not None else None) or self.first.server

    def sentence(self) -> str:
        fields = KINDS[self.kind].fields
        return KINDS[self.kind].sentence.format(**dict(zip(fields, self.key, strict=True)))

    def cells(self) -> Iterator[Cell]:
        """The cells of the ledger it is filed in; none for a subject it leaves open."""
        at = KINDS[self.kind].at
        for space, *names in KINDS[self.kind].cells:
            values = [self.key[at[name]] for name in names if name]
            if space in {"name", "id"} and (values[0] is None or values[0] in RESERVED):
                continue
            yield (space, *("" if value is None else str(value) for value in values))


def newest(counters: dict[str, Any]) -> dict[str, Any]:
    """Without the oldest slots, where there are too many: what is dropped once is dropped whenever it comes."""
    slots = sorted({slot for name in counters if (slot := slot_of(name)) is not None})
    oldest = slots[-MOST_SLOTS] if len(slots) > MOST_SLOTS else -1
    return {name: value for name, value in counters.items() if (slot_of(name) or oldest) >= oldest}


def slot_of(name: str) -> int | None:
    """The slot of a counter that is named by one: `slot`, `slot:error` or `at:slot`."""
    part = name.removeprefix("at:").partition(":")[0]
    return int(part) if part.isdigit() else None


def merged(claims: Iterable[Claim]) -> list[Claim]:
    """One claim per kind and key."""
    unique: dict[tuple[str, Key], Claim] = {}
    for claim in claims:
        known = unique.get(claim.identity)
        if known is None:
            unique[claim.identity] = claim
        else:
            known.merge(claim)
    return list(unique.values())


def pack(claims: Iterable[Claim]) -> bytes:
    """Claims as bytes; sightings shared by many claims are written once."""
    seen: dict[Sighting, int] = {}
    rows = [
        [
            claim.kind,
            claim.key,
            seen.setdefault(claim.first, len(seen)),
            seen.setdefault(claim.last, len(seen)),
            claim.count,
            claim.tally,
            claim.peak,
        ]
        for claim in claims
    ]
    return json.dumps([list(seen), rows], separators=(",", ":"), ensure_ascii=False).encode()


def unpack(blob: bytes) -> list[Claim]:
    seen, rows = json.loads(blob)
    sightings = [Sighting(*values) for values in seen]
    return [
        Claim(kind, tuple(key), sightings[first], sightings[last], count=count, tally=tally, peak=peak)
        for kind, key, first, last, count, tally, peak in rows
    ]
