"""How far a group's commits are behind the ends of the partitions, since when, and whether that grows.

Rule: only what was seen counts. A partition that no client read, and none wrote with acks=all, has no end and no lag.
Of a topic that was deleted and created again only what belongs to the newest counts: brokers delete the offsets of a
deleted topic. What has no topic ID belongs to it from when its ID is stated first.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import repeat
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wirecheck.decode.message import Decoded
from wirecheck.decode.show.learned_names import MOST_NAMES, named
from wirecheck.decode.texts import id_codes
from wirecheck.questions.group_messages import Watermark
from wirecheck.wording import NS_PER_S

NONE = bytes(16)
Times = NDArray[np.int64]


class Life(NamedTuple):
    """The newest topic of a name that had several."""

    topic_id: bytes
    born_ns: int
    """When its ID was stated first beside the name."""


class Lives:
    """Which topic IDs messages stated beside a name, and when first: the one that was stated last is there now."""

    def __init__(self) -> None:
        self.first_ns: dict[bytes, tuple[int, str]] = {}

    def learn(self, decoded: Decoded, times_ns: Times) -> None:
        """`times_ns`: of each message."""
        for ids_there, codes, texts, messages in named(decoded):
            there = np.flatnonzero(np.isin(codes, [code for code, name in enumerate(texts) if name]))
            by_id, unique = id_codes(ids_there[there])
            order = np.lexsort((times_ns[messages[there]], by_id))
            for at in order[np.r_[True, np.diff(by_id[order]) != 0]] if len(order) else ():
                row = there[at]
                self.add(unique[by_id[at]].tobytes(), texts[codes[row]], int(times_ns[messages[row]]))

    def add(self, topic_id: bytes, name: str, time_ns: int) -> None:
        if topic_id in self.first_ns or len(self.first_ns) < MOST_NAMES:
            known_ns, known = self.first_ns.get(topic_id, (time_ns, name))
            self.first_ns[topic_id] = min(known_ns, time_ns), known

    def newest(self) -> dict[str, Life]:
        """By name; names of one topic are not in it."""
        found: dict[str, list[Life]] = {}
        for topic_id, (time_ns, name) in self.first_ns.items():
            if topic_id != NONE:
                found.setdefault(name, []).append(Life(topic_id, time_ns))
        return {name: max(own, key=lambda one: one.born_ns) for name, own in found.items() if len(own) > 1}


MOST_POINTS = 32
"""Of a partition; when there are more, every other one of the older half goes."""
TREND_NS, SHORTEST_TREND_NS = 60 * NS_PER_S, 10 * NS_PER_S
"""Whether the lag grows is asked of the last minute, and needs ten seconds."""


class History:
    """An offset of a partition over time: what a group committed, or its end."""

    __slots__ = ("former", "offsets", "stated_ns", "times", "topic_id")

    def __init__(self) -> None:
        self.times, self.offsets = array("q"), array("q")
        self.topic_id = b""
        """Of the newest topic of that name; empty where messages have its name alone."""
        self.former: set[bytes] = set()
        self.stated_ns = 0
        """When it was stated last as it is, and not as the least that it may be."""

    def add(self, time_ns: int, offset: int, topic_id: bytes = b"", *, is_least: bool = False) -> None:
        """`is_least`: it may be more, so that less than is known says nothing."""
        if topic_id in self.former:
            return
        if topic_id and topic_id != self.topic_id:
            if self.topic_id:
                self.former.add(self.topic_id)
                del self.times[:], self.offsets[:]
                self.stated_ns = 0
            self.topic_id = topic_id
        if is_least and self.offsets and offset <= self.offsets[-1]:
            return
        self.stated_ns = self.stated_ns if is_least else max(self.stated_ns, time_ns)
        at = bisect_right(self.times, time_ns)
        self.times.insert(at, time_ns)
        self.offsets.insert(at, offset)
        if len(self.times) > MOST_POINTS:
            del self.times[1 : MOST_POINTS // 2 : 2], self.offsets[1 : MOST_POINTS // 2 : 2]

    def of(self, now: Life | None) -> "History":
        """What it has of the topic that is there now; without several all of it."""
        if now is None or self.topic_id == now.topic_id:
            return self
        found = History()
        found.topic_id = now.topic_id
        since = bisect_left(self.times, now.born_ns) if not self.topic_id else len(self.times)
        found.times, found.offsets = self.times[since:], self.offsets[since:]
        found.stated_ns = self.stated_ns if found.times and self.stated_ns >= now.born_ns else 0
        return found

    @property
    def last(self) -> tuple[int, int]:
        """(time in nanoseconds, offset)"""
        return self.times[-1], self.offsets[-1]

    def at(self, time_ns: int) -> int:
        """The offset as of this time, between two points in proportion; before the first, the first."""
        place = bisect_right(self.times, time_ns)
        if place in {0, len(self.times)}:
            return self.offsets[max(0, place - 1)]
        since_ns, offset = self.times[place - 1], self.offsets[place - 1]
        lasted = self.times[place] - since_ns
        return offset + (self.offsets[place] - offset) * (time_ns - since_ns) // lasted

    def passed_ns(self, offset: int) -> int:
        """When it went beyond this offset and stayed there: between two points in proportion."""
        at = len(self.times) - 1
        while at > 0 and self.offsets[at - 1] > offset:
            at -= 1
        if at == 0:
            return self.times[0]
        before, grown = self.offsets[at - 1], self.offsets[at] - self.offsets[at - 1]
        lasted = self.times[at] - self.times[at - 1]
        return self.times[at - 1] + (lasted * (offset - before) // grown if grown > 0 else lasted)


@dataclass
class Reached:
    """How far one partition reaches."""

    stated: History = field(default_factory=History)
    """By high watermarks, and by writes of a topic ID."""
    written: History = field(default_factory=History)
    """By writes of a name: of the topic that is there now, if the name had no other."""

    def add(self, end: Watermark) -> None:
        history = self.written if end.is_least and not end.topic_id else self.stated
        history.add(end.time_ns, end.offset, end.topic_id, is_least=end.is_least)

    def end(self, now: Life | None) -> History | None:
        """`now`: the newest topic, if the name had several."""
        stated, written = self.stated.of(now), self.written.of(now)
        if not written.times:
            return stated if stated.times else None
        whole = History()
        points = [*zip(stated.times, stated.offsets, repeat(False), strict=False)]
        points += zip(written.times, written.offsets, repeat(True), strict=False)
        for time_ns, offset, is_least in sorted(points):
            whole.add(time_ns, offset, stated.topic_id, is_least=is_least)
        whole.stated_ns = stated.stated_ns
        return whole


class Behind(NamedTuple):
    """One partition of a group."""

    committed: History
    end: History

    @property
    def records(self) -> int:
        return max(0, self.end.last[1] - self.committed.last[1])

    @property
    def is_ahead(self) -> bool:
        """Whether the commit is beyond an end that was stated later."""
        (committed_ns, offset), (_, end) = self.committed.last, self.end.last
        return offset > end and self.end.stated_ns > committed_ns

    @property
    def since_ns(self) -> int:
        """Since when the oldest record that is not committed has been there, as far as was seen."""
        return self.end.passed_ns(self.committed.last[1])

    @property
    def known_ns(self) -> int:
        return max(self.committed.times[0], self.end.times[0])

    def records_at(self, time_ns: int) -> int:
        return max(0, self.end.at(time_ns) - self.committed.at(time_ns))


class Lag(NamedTuple):
    """Of a group, over the partitions of which the commit and the end were seen."""

    records: int
    seconds: float
    """How long the record that has waited longest has been there; 0 if none waits."""
    per_second: float | None
    """Records by which it grows, over the last minute; None if too little was seen."""
    ahead: int
    """Partitions with a commit beyond an end that was stated later."""
    watermark_ns: int
    """When the oldest of the ends was stated."""


def lag(partitions: Iterable[Behind], end_ns: int) -> Lag | None:
    """As of this time; None without partitions."""
    found = [*partitions]
    if not found:
        return None
    records = sum(one.records for one in found)
    waiting = [one.since_ns for one in found if one.records]
    then_ns = max(end_ns - TREND_NS, *(one.known_ns for one in found))
    long_ns = end_ns - then_ns
    before = sum(one.records_at(then_ns) for one in found)
    return Lag(
        records,
        max(0, end_ns - min(waiting)) / NS_PER_S if waiting else 0.0,
        (records - before) * NS_PER_S / long_ns if long_ns >= SHORTEST_TREND_NS else None,
        sum(one.is_ahead for one in found),
        min(one.end.last[0] for one in found),
    )
