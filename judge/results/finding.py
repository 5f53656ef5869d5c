"""What a check yields, and how it becomes a finding's row.

Rule: an identity holds no times, counts, frames, client ports or names that may come later; everything that grows is in
the row. Times in rows are nanoseconds of capture time; people's formats are made at the edge.
"""

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from wirecheck.judge.claims.claim import Claim, Sighting
from wirecheck.wording import shortened

CANONICAL = json.JSONEncoder(separators=(",", ":"), sort_keys=True, ensure_ascii=False)
SIDES = 16
"""A finding shows this many sides; its count is how often it was seen."""
GROWING = frozenset({"count", "last", "last_answer", "connections", "bytes", "gaps", "cut"})
"""Words of findings that change while the same is seen again: how often, and when last."""
DOUBTED = "doubted"
"""A word of findings whose clients are in doubt, of a check that mostly shows what hurts or is by design."""
NOUNS = ("broker ", "brokers ", "unnamed software ")
"""What a sentence may begin with besides a name."""
SAME = ("kind", "cluster", "topic", "topic_ids", "client_ids", "brokers", "first_seen")
"""Columns of a finding of which each change is news."""


@dataclass(frozen=True)
class Side:
    """One claim a finding rests on, with the exchange it was seen in."""

    sighting: Sighting
    claim: str

    def row(self) -> dict[str, Any]:
        """Columns that were not captured are null: a connection has no API, an unpaired response has neither API nor
        version.
        """
        seen = self.sighting
        named, message = bool(seen.api), bool(seen.api) or seen.frame_first > 0
        return {
            "time": seen.ts_ns,
            "claim": self.claim,
            "connection": seen.connection,
            "api": seen.api if named else None,
            "version": seen.version if named else None,
            "correlation_id": seen.correlation_id if message else None,
            "frame": {"source": seen.source, "first": seen.frame_first, "last": seen.frame_last},
        }


def first_of(claim: Claim) -> Side:
    return Side(claim.first, claim.sentence())


def last_of(claim: Claim) -> Side:
    return Side(claim.last_word, claim.sentence())


@dataclass(frozen=True)
class Evidence:
    key: tuple[Any, ...]
    """What makes it one finding; with code and cluster it is the identity."""
    sides: tuple[Side, ...]
    topic: str | None = None
    topic_ids: tuple[str, ...] = ()
    client_ids: tuple[str | None, ...] = ()
    brokers: tuple[int | None, ...] = ()
    count: int = 1
    kind: str | None = None
    """Where it is less than the check's own."""
    first_ns: int | None = None
    """Where the sides do not show the first time."""
    last_ns: int | None = None
    words: Mapping[str, object] = field(default_factory=dict)
    """What the check's summary names besides the columns; a Time is kept with its nanoseconds, too."""


@dataclass(frozen=True)
class Rule:
    """The part of a check's row in the catalogue that is written into its findings."""

    code: str
    name: str
    kind: str
    summary: str


@lru_cache(maxsize=1 << 14)
def identity(code: str, cluster: str, key: tuple[Any, ...]) -> str:
    """16 base32 characters of SHA-256 over (code, cluster, key) as canonical JSON. Of one code each part of a key is of
    one type: 1 is never True.
    """
    digest = hashlib.sha256(CANONICAL.encode([code, cluster, key]).encode()).digest()
    return base64.b32encode(digest[:10]).decode().lower()


def finding(rule: Rule, cluster: str | None, evidence: Evidence) -> dict[str, Any]:
    """The row of one finding, without revision and state."""
    sides = sorted(set(evidence.sides), key=lambda side: (side.sighting, side.claim))
    times = [side.sighting.ts_ns for side in sides]
    brokers = sorted({broker for broker in evidence.brokers if broker is not None})
    words = words_of(rule, evidence, brokers)
    return {
        "code": rule.code,
        "name": rule.name,
        "kind": rule.kind,
        "cluster": cluster,
        "topic": evidence.topic,
        "topic_ids": list(evidence.topic_ids),
        "client_ids": [client or "" for client in evidence.client_ids],
        "brokers": brokers,
        "summary": capitalized(rule.summary.format(**words)),
        "words": [{"name": name, "value": str(word)} for name, word in sorted(evidence.words.items())],
        "times": [{"name": n, "time": int(word)} for n, word in sorted(evidence.words.items()) if type(word) is Time],
        "first_seen": min(times) if evidence.first_ns is None else evidence.first_ns,
        "last_seen": max(times) if evidence.last_ns is None else evidence.last_ns,
        "count": evidence.count,
        "sides": [side.row() for side in sides[: SIDES // 2] + sides[SIDES // 2 :][-SIDES // 2 :]],
    }


class Time(int):
    """A time among the words of a finding, in nanoseconds: as 2026-11-21 00:10:25.616 UTC in a sentence."""

    def __str__(self) -> str:
        seconds, rest = divmod(int(self), 1_000_000_000)
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}.{rest // 1_000_000:03d} UTC"

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)


class Number(int):
    """In a sentence `{count:time}` is 1 time or 2,000 times; `{epoch}` is the number alone."""

    def __format__(self, noun: str) -> str:
        return f"{int(self)}" if not noun else f"{int(self):,} {noun}{'' if self == 1 else 's'}"


def capitalized(sentence: str) -> str:
    """Names from the wire stay as they are."""
    return sentence[:1].upper() + sentence[1:] if sentence.startswith(NOUNS) else sentence


def words_of(rule: Rule, evidence: Evidence, brokers: list[int]) -> dict[str, object]:
    """A topic without a known name is called by its ID, unless the sentence has that too."""
    unnamed = "(name unknown)" if "{topic_id}" in rule.summary or not evidence.topic_ids else evidence.topic_ids[0]
    words = {
        "topic": evidence.topic or unnamed,
        "topic_id": evidence.topic_ids[0] if evidence.topic_ids else "",
        "client": ", ".join(client or "(no client ID)" for client in evidence.client_ids),
        "brokers": ", ".join(map(str, brokers)),
        "count": evidence.count,
        **evidence.words,
    }
    return {
        name: Number(word) if type(word) is int else shortened(word) if isinstance(word, str) else word
        for name, word in words.items()
    }


def news_of(row: Mapping[str, Any]) -> list[Any]:
    """Everything in a finding except how often it was seen, when last, and its sides after the first."""
    return [row["sides"][0], *(row[name] for name in SAME), [w for w in row["words"] if w["name"] not in GROWING]]
