"""What one part of a judge tells another after a batch, as a value and as bytes.

Knows: everything that parts may say to each other, and how it travels: JSON, and behind it the claims as they travel
everywhere. Does not know when it is said (`part.py`), nor who carries it.
Rule: what comes out says what went in, on whatever machine; a message holds no object of the one who sent it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

import orjson

from wirecheck.judge.claims.claim import Claim, Key, Sighting, Subject, pack, unpack
from wirecheck.judge.failures import Failure
from wirecheck.judge.parts.told_clusters import ClustersTold, GroupTold

WHATEVER = "*"
Identity = tuple[str, Key]


class Wanted(NamedTuple):
    """Claims of one kind (or `*`) about one subject, or about all of a space, if no more is named."""

    subject: Subject
    kind: str


class News(NamedTuple):
    """Of one subject what has changed, and what is gone."""

    subject: Subject
    changed: list[Claim]
    gone: list[Identity]


class StrangersTold(NamedTuple):
    """What the directory tells of strangers."""

    hosts: dict[str, bool]
    """Those to which nothing was granted, and whether each is a stranger."""
    servers: set[str]
    kafka: set[str]
    raft: set[str]
    by_name: bool
    everything: bool
    """Whether somebody was heard before anybody knew that nothing was granted to him."""


class Shown(NamedTuple):
    """How far an agent has come."""

    agent: str
    ts_ns: int
    ended: bool


@dataclass
class Message:
    sender: int
    asks: set[Wanted] = field(default_factory=set)
    unasks: set[Wanted] = field(default_factory=set)
    """What nobody there reads any more."""
    claims: list[News] = field(default_factory=list)
    filed: list[Claim] = field(default_factory=list)
    """What the directory put together out of several messages, for whoever it is at home with."""
    shown: list[Shown] = field(default_factory=list)
    clusters: ClustersTold | None = None
    strangers: StrangersTold | None = None
    failures: list[Failure] | None = None

    def __bool__(self) -> bool:
        others = (self.clusters, self.strangers, self.failures)
        said = self.asks or self.unasks or self.claims or self.filed or self.shown
        return bool(said) or any(one is not None for one in others)

    def packed(self) -> bytes:
        head = [
            self.sender,
            sorted(self.asks),
            sorted(self.unasks),
            [(news.subject, len(news.changed), news.gone) for news in self.claims],
            self.shown,
            self.clusters,
            self.strangers,
            None if self.failures is None else stored(self.failures),
        ]
        return as_json(head) + b"\n" + pack(chain(*(news.changed for news in self.claims), self.filed))


def unpacked(blob: bytes) -> Message:
    head, _, packed = blob.partition(b"\n")
    sender, asks, unasks, counts, shown, clusters, strangers, failures = orjson.loads(head)
    claims, at = unpack(packed), 0
    found = Message(sender, {*map(wanted, asks)}, {*map(wanted, unasks)})
    for subject, count, gone in counts:
        about = [(kind, tuple(key)) for kind, key in gone]
        found.claims.append(News(tuple(subject), claims[at : at + count], about))
        at += count
    found.filed, found.shown = claims[at:], [Shown(*one) for one in shown]
    found.clusters = clusters_told(clusters) if clusters else None
    found.strangers = strangers_told(strangers) if strangers else None
    found.failures = None if failures is None else restored(failures)
    return found


def wanted(said: Any) -> Wanted:
    subject, kind = said
    return Wanted(tuple(subject), kind)


def clusters_told(said: Any) -> ClustersTold:
    """From JSON."""
    groups, unknown, places, answering = said
    found = {endpoint: tuple(map(tuple, spans)) for endpoint, spans in places.items()}
    return ClustersTold(tuple(map(group, groups)), group(unknown), found, frozenset(answering))


def group(said: Any) -> GroupTold:
    parts: list[Any] = [tuple(part) if isinstance(part, list) else part for part in said]
    return GroupTold(*parts)


def strangers_told(said: Any) -> StrangersTold:
    """From JSON."""
    hosts, servers, kafka, raft, by_name, everything = said
    return StrangersTold(hosts, set(servers), set(kafka), set(raft), by_name, everything)


def stored(failures: Iterable[Failure]) -> list[Any]:
    """Without what only a log needs."""
    return [(one.check, one.subject, one.cluster, one.error, one.seen) for one in failures]


def restored(said: Iterable[Any]) -> list[Failure]:
    return [
        Failure(check, tuple(subject), cluster, error, Sighting(*seen) if seen else None)
        for check, subject, cluster, error, seen in said
    ]


def as_json(value: Any) -> bytes:
    """The same bytes for the same value: sets in order."""
    return orjson.dumps(value, default=plain, option=orjson.OPT_SORT_KEYS)


def plain(value: Any) -> Any:
    return sorted(value) if isinstance(value, set | frozenset) else tuple(value)
