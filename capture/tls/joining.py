"""Opens TLS 1.3 connections that began before the capture: which secret and which record number fit.

The tag proves both. Tries are bounded by connection and by capture time. TLS 1.2 is not possible: its keys depend on
the server's random, which no key log has.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from wirecheck.capture.tls.cipher_suites import TLS_1_3
from wirecheck.capture.tls.key_log import TRAFFIC
from wirecheck.capture.tls.record_keys import HEADER_BYTES, Tls13Key
from wirecheck.capture.tls.records import LONGEST_BYTES, MOST_NUMBERS, SHORTEST_BYTES, size_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wirecheck.capture.tls.cipher_suites import Suite
    from wirecheck.capture.tls.key_log import Secrets

HEAD_BYTES = 2 * (HEADER_BYTES + LONGEST_BYTES)
"""Of a direction that are looked at: in so many a record begins, and most end."""
MOST_SECRETS = 256
"""Connections of the key log that are tried, the newest."""
MOST_TRIES = 1 << 18
"""For one connection; a try takes 5 to 10 us."""
OFFLINE, LIVE = (50_000, 1_000_000), (12_500, 25_000)
"""Tries for all connections: so many a second of the capture, and so many at once where they were not used."""
SCANNED = 128
"""So many numbers that no tag is asked about cost as much as a try."""
JOINED_NUMBERS = 1 << 10
"""Behind the record that a key opened first, until the next one does."""
MOST_UPDATES = 8
"""So many KeyUpdates may have been before: each has a key of its own, made of the one before (RFC 8446 7.2), and
numbers from 0. Java sends one after 2^37 bytes (jdk.tls.keyLimits)."""
FEW, MANY = (0, 1 << 8, 1 << 12), (1 << 12, MOST_NUMBERS)
STEPS = (
    *((False, step) for step in pairwise(FEW)),
    *((True, step) for step in pairwise(FEW)),
    (False, MANY),
    (True, MANY),
)
"""Whether behind a KeyUpdate, and the least and most number: the likeliest first."""
SUITES = {48: (0x1302,), 32: (0x1301, 0x1303)}
_HEADER = re.compile(rb"\x17\x03\x03")


class Budget:
    """How often may be tried now."""

    def __init__(self, tries: tuple[int, int] = OFFLINE) -> None:
        self._a_second, self._most = tries
        self._left, self._ns = self._most, 0

    def earn(self, now_ns: int) -> None:
        seconds = (now_ns - self._ns) / 1e9 if self._ns else 0
        self._ns = max(now_ns, self._ns)
        self._left = min(self._left + int(max(seconds, 0) * self._a_second), self._most)

    @property
    def is_left(self) -> bool:
        return self._left > 0

    def spend(self, tries: int) -> None:
        self._left -= tries


class Trial(NamedTuple):
    side: int
    key: Tls13Key
    number: int
    random: bytes
    """Of the ClientHello that was not seen."""
    suite: int
    of_client: bool
    updates: int = 0
    """KeyUpdates that were before."""


class Joining:
    """One connection whose beginning was not seen."""

    def __init__(self, secrets: Secrets, budget: Budget) -> None:
        self._secrets, self._budget = secrets, budget
        self._heads = (bytearray(), bytearray())
        self._ended = [False, False]  # a gap, or enough
        self._trials: Iterator[tuple[int, Trial | None]] | None = None
        self._records: dict[int, tuple[bytes, bytes]] = {}
        self._tries = 0
        self._exhausted = False

    def see(self, side: int, data: bytes | None) -> None:
        head = self._heads[side]
        if data is None:
            self._ended[side] = bool(head)
        elif not self._ended[side]:
            head += data[: HEAD_BYTES - len(head)]
            self._ended[side] = len(head) == HEAD_BYTES

    @property
    def is_hopeless(self) -> bool:
        """No record begins in what was seen, or there is no secret left that could open one."""
        if next(self._secrets.unclaimed(1), None) is None:
            return True
        return (
            self._exhausted
            or self._tries >= MOST_TRIES
            or (any(self._ended) and not any(self._record(side) or not self._ended[side] for side in (0, 1)))
        )

    @property
    def tried(self) -> bool:
        return self._tries > 0

    def find(self) -> Trial | None:
        """What opens a record; None where nothing does, or not yet."""
        if self._trials is None:
            self._records = {side: found for side in (0, 1) if (found := self._record(side))}
            if not self._records:
                return None
            self._trials = self._every()
        while not self._exhausted and self._tries < MOST_TRIES and self._budget.is_left:
            tries, trial = next(self._trials, (0, None))
            self._exhausted = tries == 0
            self._tries += tries
            self._budget.spend(tries)
            if trial is not None and trial.key.open(trial.number, *self._records[trial.side]) is not None:
                return trial
        return None

    def of_handshake(self, side: int, suite: Suite, label: str) -> bytes | None:
        """The random of the ClientHello that was not seen, by the first record of the handshake that this label's
        secret opens.
        """
        record = self._record(side)
        if record is None:
            return None
        for random, found in self._secrets.unclaimed(MOST_SECRETS):
            secret = found.get(label, b"")
            if len(secret) == suite.prf_bytes and Tls13Key(suite, secret).open(0, *record) is not None:
                return random
        return None

    def other(self, trial: Trial) -> tuple[Tls13Key, int, int] | None:
        """Of the other direction: its key, and the least and most that the next number can be."""
        secret = self._secrets.of(trial.random).get(TRAFFIC[1 if trial.of_client else 0])
        if secret is None:
            return None
        label = TRAFFIC[1 if trial.of_client else 0]
        keys = self._generations(Tls13Key(TLS_1_3[trial.suite], secret), trial.random, label, trial.suite)
        record = self._records.get(1 - trial.side)
        if record is not None:
            for _, key in sorted(keys, key=lambda one: abs(one[0] - trial.updates)):
                number = number_of(key, record)
                if number is not None:
                    return key, number, number + JOINED_NUMBERS
        # who renews a key mostly asks the other side for it, too
        return min(keys, key=lambda one: abs(one[0] - trial.updates))[1], 0, MOST_NUMBERS

    def _record(self, side: int) -> tuple[bytes, bytes] | None:
        """The first that is whole, and behind which another begins, or nothing is."""
        head = self._heads[side]
        for found in _HEADER.finditer(head):
            at = found.start()
            end = at + HEADER_BYTES + (size_of(bytes(head[at : at + HEADER_BYTES]), 0) if at + 5 <= len(head) else 0)
            if not at + SHORTEST_BYTES <= end <= at + HEADER_BYTES + LONGEST_BYTES:
                continue
            if end == len(head) or head[end : end + 3] == b"\x17\x03\x03":
                return bytes(head[at : at + HEADER_BYTES]), bytes(head[at + HEADER_BYTES : end])
        return None

    def _every(self) -> Iterator[tuple[int, Trial | None]]:
        """What it costs, in tries; the likeliest first: low numbers, newest secrets."""
        side = min(self._records, key=lambda side: len(self._records[side][1]))
        first = [
            (Tls13Key(TLS_1_3[suite], secret), random, suite, label)
            for random, found in self._secrets.unclaimed(MOST_SECRETS)
            for label in TRAFFIC
            if (secret := found.get(label)) is not None
            for suite in SUITES.get(len(secret), ())
        ]
        for updated, (least, most) in STEPS:
            for one, random, suite, label in first:
                later = self._generations(one, random, label, suite)[1:] if updated else [(0, one)]
                for updates, key in later:
                    yield 1 + (most - least) // SCANNED, None
                    for number in key.likely(least, most, self._records[side][1]):
                        yield 1, Trial(side, key, number, random, suite, label == TRAFFIC[0], updates)

    def _generations(self, first: Tls13Key, random: bytes, label: str, suite: int) -> list[tuple[int, Tls13Key]]:
        """The first key and those behind KeyUpdates, each with its number: derived, logged, derived from those."""
        found = list(enumerate(generations(first)))
        logged = [Tls13Key(TLS_1_3[suite], one) for one in self._secrets.updated.get((random, label), ())]
        if not logged:
            return found
        derived = {key.secret: number for number, key in found}
        since = next((derived[key.secret] - at for at, key in enumerate(logged) if key.secret in derived), 1)
        found += [(since + at, key) for at, key in enumerate(logged) if key.secret not in derived]
        last = since + len(logged) - 1
        known = {key.secret for _, key in found}
        later = enumerate(generations(logged[-1])[1:], last + 1)
        return [*found, *((number, key) for number, key in later if key.secret not in known)]


def number_of(key: Tls13Key, record: tuple[bytes, bytes]) -> int | None:
    """The number under which a key opens a record."""
    return next((n for n in key.likely(0, MOST_NUMBERS, record[1]) if key.open(n, *record)), None)


def generations(key: Tls13Key) -> list[Tls13Key]:
    """A key, and those behind so many KeyUpdates."""
    found = [key]
    for _ in range(MOST_UPDATES):
        found.append(found[-1].next())
    return found
