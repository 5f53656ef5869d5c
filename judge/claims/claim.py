"""What a claim is: one statement, its first and last sighting, and how often it was made.

Knows: how two sightings of one claim merge, how claims become bytes. Does not know which messages make claims
(`extraction.py`) or what follows from them (the ledger and the checks).
Rule: merging is commutative and associative: first is the least sighting, last the greatest, counts and tallies add,
peaks take the maximum. Other state does not belong in a claim.
"""

import sys
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import orjson

from wirecheck.decode import schemas
from wirecheck.decode.peer import ends_of
from wirecheck.judge.claims import kinds
from wirecheck.judge.claims.kinds import Subject
from wirecheck.judge.claims.outcomes import HARMLESS, MOST_SLOTS, SUCCESS, Outcomes, from_flat

__all__ = ["LEAST", "LOWEST", "METADATA_LOG", "MOST_MEMBERS", "RESERVED", "ZERO", "Claim", "Key"]
__all__ += ["Sighting", "Subject", "merged", "pack", "unpack"]

Key = tuple[Any, ...]
ZERO = "AAAAAAAAAAAAAAAAAAAAAA"
"""The zero topic ID as Kafka prints it, where a message has it explicitly. None stands for an API version without topic
IDs.
"""
METADATA_LOG = "AAAAAAAAAAAAAAAAAAAAAQ"
"""The reserved topic ID of __cluster_metadata."""
RESERVED = frozenset({ZERO, METADATA_LOG})
AT = "at:"
"""Before the slot in the name of what was last at some time."""
ALONE = ":1"
"""After the slot in the name of the end of a log that the leader alone has granted (acks=1)."""
LOWEST = ":low"
"""After the slot in the name of the lowest offset of a slot, which is stored as a negative number."""
LEAST = "least:"
"""Before the members of a set among the peaks, which are written so that they sort as they are."""
SAMPLE = "sample:"
"""Before the members of a sample, which is a set, too; another choice of what is in it is no news."""
SETS = (LEAST, SAMPLE)
MOST_MEMBERS = 128
"""Of a set the least members stay."""
UNSAID = {"name": "", "topic_id": "", "client_id": "a client without a name"}
"""What a sentence writes for fields that were not on the wire. For example, the metadata log removes topics by ID
alone.
"""


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
        return ends_of(self.connection)[1]

    @property
    def client(self) -> str:
        return ends_of(self.connection)[0]


sighting: Callable[[Iterable[Any]], Sighting] = partial(tuple.__new__, Sighting)
"""From all of its fields, in order: as `_make`, without a frame of Python's for each of many."""


class Claim:
    """One statement; mutable only by `merge`."""

    __slots__ = ("count", "first", "key", "kind", "last", "outcomes", "peak", "tally")

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
        outcomes: Outcomes | None = None,
    ) -> None:
        self.kind, self.key, self.first, self.last, self.count = kind, key, first, last or first, count
        self.tally = tally or {}
        """Counters that add up, by name or by slot of time."""
        self.peak = peak or {}
        """Values of which the greatest is kept: cumulative counts, offsets, or [time, value] for the latest value."""
        self.outcomes = outcomes or Outcomes()

    def merge(self, other: "Claim") -> bool:
        """Merge another claim into this one. Returns whether that is news: anything but a greater count, a later last
        sighting, another slot of time, or a greater value of a peak that its kind declares as growing.
        """
        news, grown, members = False, False, list[str]()
        if other.first < self.first:
            news, self.first = True, other.first
        self.last = max(self.last, other.last)
        self.count += other.count
        tally, peak = self.tally, self.peak
        for name, count in other.tally.items():
            before = tally.get(name)
            if before is None:
                grown, news = True, news or is_new(name, tally)
                tally[name] = count
            else:
                tally[name] = before + count
        for name, value in other.peak.items():
            known = peak.get(name)
            if known is None:
                grown, peak[name] = True, value
                if not name.startswith(SAMPLE):
                    members.append(name)
            elif known < value:
                peak[name] = value
                news = news or is_other(name, known, value, kinds.KINDS[self.kind].growing)
        if grown:
            self.bound()
        if other.outcomes and self.outcomes.merge(other.outcomes):
            news = True
        return news or (bool(members) and any(name in self.peak and not name.startswith(AT) for name in members))

    def bound(self) -> None:
        """Leave out what is too much: looked for where something is new, which after two hours is seldom."""
        if len(self.peak) > MOST_MEMBERS:
            self.peak = least(self.peak)
        if len(self.tally) + len(self.peak) > MOST_SLOTS:
            self.tally, self.peak = newest(self.tally), newest(self.peak)

    def copy(self) -> "Claim":
        """One that is kept; no more of it than is kept of any."""
        tally, peak = dict(self.tally), dict(self.peak)
        copied = Claim(self.kind, self.key, self.first, self.last, count=self.count, tally=tally, peak=peak)
        copied.bound()
        copied.outcomes.merge(self.outcomes)
        return copied

    def __getitem__(self, field: str) -> Any:
        return self.key[kinds.KINDS[self.kind].at[field]]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Claim) and self.state() == other.state()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Claim{self.state()}"

    def state(self) -> tuple[Any, ...]:
        return (self.kind, self.key, self.first, self.last, self.count, self.tally, self.peak, self.outcomes)

    def row(self, first: int, last: int) -> list[Any]:
        """As it is stored, with the numbers of its sightings."""
        return [self.kind, self.key, first, last, self.count, self.tally, self.peak, self.outcomes.flat()]

    @property
    def succeeded(self) -> bool:
        """Whether any of its answers had no error."""
        return SUCCESS in self.outcomes

    @property
    def flows(self) -> bool:
        """Whether it only shows that traffic continues."""
        return self.kind in kinds.TRAFFIC and HARMLESS.issuperset(self.outcomes.codes())

    @property
    def last_word(self) -> Sighting:
        """When it was last stated. The metadata log states a record once, however often the record is read again."""
        return self.first if "offset" in self.peak else self.last

    @property
    def identity(self) -> tuple[str, Key]:
        return self.kind, self.key

    def server(self) -> str:
        """The endpoint whose cluster the claim belongs to."""
        at = kinds.KINDS[self.kind].at.get("endpoint")
        return (self.key[at] if at is not None else None) or self.first.server

    def sentence(self) -> str:
        fields = zip(kinds.KINDS[self.kind].fields, self.key, strict=True)
        words = {field: UNSAID.get(field) if part is None else part for field, part in fields}
        if "error" in words:
            words["error"] = error_name(self["error"])
        return " ".join(kinds.KINDS[self.kind].sentence.format(**words).split())

    def subjects(self) -> list[Subject]:
        """The subjects under which the ledger files it, without those for which the key has no value."""
        key, found = self.key, list[Subject]()
        for space, named, places in kinds.KINDS[self.kind].filed:
            if named and (key[places[0]] is None or (space == "id" and key[places[0]] in RESERVED)):
                continue  # a name may read like a reserved id
            if len(places) == 1:
                part = key[places[0]]
                found.append((space, "" if part is None else str(part)))
            else:
                found.append((space, *["" if (part := key[place]) is None else str(part) for place in places]))
        return found


def is_new(name: str, tally: dict[str, int]) -> bool:
    """Whether a counter is one that was not there before, in no slot of time."""
    slot, _, error = name.partition(":")
    if not slot.isdigit():
        return True
    if not error or f"{int(slot) - 1}:{error}" in tally:
        return False
    return not any(other.endswith(f":{error}") and other.partition(":")[2] == error for other in tally)


def is_other(name: str, before: Any, value: Any, growing: frozenset[str]) -> bool:
    """Whether a peak has another value, and not just a greater or later one; one that begins to grow is news. A kind
    whose sets only grow declares the beginning of their members' names.
    """
    if name.startswith(SAMPLE):
        return False
    if name in growing or name.startswith(AT) or (LEAST in growing and name.startswith(LEAST)):
        return not before
    return bool(before[-1] != value[-1]) if isinstance(before, list | tuple) else True


def newest(counters: dict[str, Any]) -> dict[str, Any]:
    """Without the oldest slots, where there are too many: what is dropped once is dropped whenever it comes."""
    heads = [name.removeprefix(AT).partition(":")[0] for name in counters]
    gone = {*sorted({*filter(str.isdigit, heads)}, key=int)[:-MOST_SLOTS]}
    if not gone:
        return counters
    return {name: value for (name, value), head in zip(counters.items(), heads, strict=True) if head not in gone}


def without_slots(counters: dict[str, int], before: int) -> dict[str, int]:
    """Without the slots before one; counters that no slot names stay."""
    return {name: count for name, count in counters.items() if (slot := slot_of(name)) is None or slot >= before}


def least(peak: dict[str, Any]) -> dict[str, Any]:
    """Without the greatest members of a set that is too large: what is dropped once is dropped whenever it comes."""
    members = sorted(name for name in peak if name.startswith(SETS))
    gone = set(members[MOST_MEMBERS:])
    return {name: value for name, value in peak.items() if name not in gone} if gone else peak


def slot_of(name: str) -> int | None:
    """The slot of a counter that is named by one: `slot`, `slot:error` or `at:slot`."""
    part = name.removeprefix(AT).partition(":")[0]
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
        claim.row(seen.setdefault(claim.first, len(seen)), seen.setdefault(claim.last, len(seen))) for claim in claims
    ]
    return orjson.dumps([[tuple(sighting) for sighting in seen], rows])


def unpack(blob: bytes) -> list[Claim]:
    seen, rows = orjson.loads(blob)
    share_texts(seen, rows)
    sightings = [*map(sighting, seen)]
    return [stored_claim(row, sightings[row[2]], sightings[row[3]]) for row in rows]


def share_texts(seen: list[list[Any]], rows: list[list[Any]]) -> None:
    """One text for all that are equal: there are tens of thousands of connections, and each is unpacked by itself."""
    texts: dict[str, str] = {}
    for one in seen:  # a Sighting's connection, API and source
        one[1], one[2], one[5] = texts.setdefault(one[1], one[1]), sys.intern(one[2]), sys.intern(one[5])
    for row in rows:
        row[0] = sys.intern(row[0])
        row[1] = [texts.setdefault(text, text) if isinstance(text, str) else text for text in row[1]]


def stored_claim(row: list[Any], first: Sighting, last: Sighting) -> Claim:
    kind, key, _, _, count, tally, peak, outcomes = row
    return Claim(kind, tuple(key), first, last, count=count, tally=tally, peak=peak, outcomes=from_flat(outcomes))


def error_name(number: int | None) -> str:
    """One of Kafka's errors for people: NOT_LEADER_OR_FOLLOWER (6)."""
    if number is None:
        return str(number)
    known = schemas.errors().get(number) or schemas.draft_errors().get(number)
    return f"{known.name} ({number})" if known else str(number)
