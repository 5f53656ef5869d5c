"""Keys and record numbers of one direction: which of them open the next record.

Knows: the keys that records may be under, and which number the next one has, or between which two it lies.
Refuses to know: where records begin (record_stream.py), and how a key opens one (record_keys.py).
Rule: trying is bounded; a record that opens makes good for some tries, for a connection may live for months and lose
packets every day.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, final

from mypy_extensions import i64

from wirecheck.capture.tls.record_header import LONGEST_BYTES, SHORTEST_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wirecheck.capture.tls.record_keys import Opened

MOST_NUMBERS: Final = 1 << 16
"""Record numbers that may be tried for a record behind a gap: 64 K lost records, a GB of full ones."""
MOST_TRIES: Final = 1 << 18
"""Records times numbers that did not open, on one direction: then it is given up."""
EARNED_TRIES: Final = 16


class Numbers(NamedTuple):
    """Keys, least and most of them, as they were."""

    keys: list[Any]
    least: int
    most: int


@final
class RecordNumbers:
    """`least` and `most` are those that the next record can have."""

    def __init__(self) -> None:
        self.keys: list[Any] = []
        """RecordKeys that records may be under: that of the newest record that opened, then those that may follow."""
        self.least: i64 = 0
        self.most: i64 = 0
        self.most_tries: i64 = MOST_TRIES
        self.given_up: bool = False
        self._tries: i64 = 0
        self._record_bytes: i64 = LONGEST_BYTES  # of the newest record that opened

    def now(self) -> Numbers:
        """For `forget`."""
        return Numbers(list(self.keys), self.least, self.most)

    def use(self, keys: Iterable[Any], least: i64, most: i64) -> None:
        self.keys = list(keys)
        self.least, self.most = least, most

    def lose(self, missing: i64) -> None:
        """So many bytes of records were not seen, and the rest of one."""
        self.most = min(self.most + 1 + missing // SHORTEST_BYTES, self.least + MOST_NUMBERS)

    def step(self) -> None:
        """A record that nobody will open."""
        self.least += 1
        self.most += 1

    def fail(self) -> None:
        """A record did not open; it may be none."""
        self.most = min(self.most + 1, self.least + MOST_NUMBERS)

    def opened(self, record_bytes: i64) -> None:
        self._record_bytes = record_bytes
        self._tries = max(self._tries - EARNED_TRIES, 0)

    @property
    def is_exact(self) -> bool:
        """The next record can have one number only."""
        return self.least == self.most

    def forget(self, before: Numbers, record_bytes: i64) -> None:
        """What opened is not believed to stand there: as it was before, and so many bytes more of records unseen."""
        self.keys, self.least, self.most = before
        self.lose(record_bytes)

    def opens(self, ahead: i64, header: bytes, fragment: bytes) -> bool:
        """Whether this is the record so many behind the next one; nothing changes by it."""
        for place in range(i64(len(self.keys))):
            least = self.least + ahead if place == 0 else i64(0)
            most = self.least + ahead if place == 0 else ahead
            for number in range(least, most + 1):
                if self.keys[place].open(number, header, fragment) is not None:
                    return True
        return False

    def open(self, header: bytes, fragment: bytes) -> Opened | None:
        """By the key of the records before it and the likeliest number; by the next keys, if it is none of these."""
        for place in range(i64(len(self.keys))):
            least, most = (self.least, self.most) if place == 0 else (i64(0), self.most - self.least)
            above = least
            if place == 0:
                above += (most - least) * SHORTEST_BYTES // self._record_bytes
            below = above - 1
            while (above <= most or below >= least) and not self.given_up:
                opened = self._try(place, above, header, fragment) if above <= most else None
                if opened is None and below >= least:
                    opened = self._try(place, below, header, fragment)
                if opened is not None:
                    return opened
                above += 1
                below -= 1
        return None

    def _try(self, place: i64, number: i64, header: bytes, fragment: bytes) -> Opened | None:
        opened: Opened | None = self.keys[place].open(number, header, fragment)
        if opened is not None:
            self.least = self.most = number + 1
            self._renew(place)
            return opened
        self._tries += 1
        if self._tries > self.most_tries:
            self.given_up = True
        return None

    def _renew(self, place: i64) -> None:
        """The key at this place is in use; one of TLS 1.3 has a successor, behind a KeyUpdate."""
        del self.keys[:place]
        if len(self.keys) == 1 and self.keys[0].has_next:
            self.keys.append(self.keys[0].next())
