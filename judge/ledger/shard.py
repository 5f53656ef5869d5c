"""One shard of the ledger: subjects of claims, as they were stored until somebody asks for one.

Knows: how subjects become bytes and come back, and which of them were asked for. Does not know why.
Rule: a subject that nobody asks for is never made into claims, nor into bytes anew: a small batch on a large ledger
costs what it touches. Sightings shared by many claims of a shard are written once. A packed shard is what its bytes
make, so it may be kept in their place (`kept_shards.py`).
"""

from collections.abc import Iterator
from typing import Any

import orjson

from wirecheck.judge.claims.claim import SUCCESS, Claim, Key, Sighting, Subject

Claims = dict[tuple[str, Key], Claim]
Glance = tuple[str, bool, dict[str, Any], int, int]
"""Of a claim: kind, whether an answer without error is in it, peak, when it was made first and last."""
FIRST, LAST = 2, 3
"""Where a stored claim has the numbers of its sightings."""


class Shard:
    """Subjects to their claims, like a dict."""

    def __init__(self, blob: bytes = b"[[],[]]") -> None:
        self.sightings, stored = orjson.loads(blob)
        self.stored: dict[Subject, list[list[Any]]] = {tuple(subject): rows for subject, rows in stored}
        """Every subject, with its claims as they were when it was made or packed."""
        self.kept: dict[Subject, Claims] = {}
        """Claims that are as they are stored."""
        self.asked: dict[Subject, Claims] = {}
        """Claims that may have changed since."""
        self.size = len(blob)
        """Bytes of it when it was made or packed."""

    def known(self, subject: Subject) -> Claims | None:
        found = self.asked.get(subject)
        if found is None and (rows := self.stored.get(subject)) is not None:
            found = self.kept.pop(subject, None)
            if found is None:
                found = {(row[0], (claim := self.claim(row)).key): claim for row in rows}
            self.asked[subject] = found
        return found

    def __getitem__(self, subject: Subject) -> Claims:
        found = self.known(subject)
        if found is None:
            raise KeyError(subject)
        return found

    def __setitem__(self, subject: Subject, claims: Claims) -> None:
        self.stored.setdefault(subject, [])
        self.kept.pop(subject, None)
        self.asked[subject] = claims

    def made(self, subject: Subject) -> Claims:
        """A subject's claims; from now on there is one, if there was none."""
        found = self.known(subject)
        if found is None:
            found = self[subject] = {}
        return found

    def __delitem__(self, subject: Subject) -> None:
        del self.stored[subject]
        self.kept.pop(subject, None)
        self.asked.pop(subject, None)

    def __contains__(self, subject: object) -> bool:
        return subject in self.stored

    def __iter__(self) -> Iterator[Subject]:
        return iter([*self.stored])  # as they are now: a subject may leave meanwhile

    def __len__(self) -> int:
        return len(self.stored)

    def claim(self, row: list[Any]) -> Claim:
        kind, key, first, last, count, tally, peak, runs = row
        begin = Sighting._make(self.sightings[first])
        end = begin if first == last else Sighting._make(self.sightings[last])
        return Claim(kind, tuple(key), begin, end, count=count, tally=tally, peak=peak, runs=runs)

    def glance(self, subject: Subject) -> Iterator[Glance]:
        """A subject's claims without making them."""
        if (claims := self.asked.get(subject)) is not None:
            for claim in claims.values():
                yield claim.kind, claim.succeeded, claim.peak, claim.first.ts_ns, claim.last.ts_ns
            return
        for kind, _, first, last, _, _, peak, runs in self.stored.get(subject, ()):
            yield kind, SUCCESS in (runs or ()), peak, self.sightings[first][0], self.sightings[last][0]

    def packed(self) -> bytes:
        """All subjects as bytes, in the order in which they came; sightings that nobody has any more are left out."""
        kept: dict[int, int] = {}
        for subject, rows in self.stored.items():
            if subject not in self.asked:
                for row in rows:
                    row[FIRST] = kept.setdefault(row[FIRST], len(kept))
                    row[LAST] = kept.setdefault(row[LAST], len(kept))
        seen = {tuple(self.sightings[number]): at for at, number in enumerate(kept)}
        number = seen.setdefault  # a sighting is found as the tuple that it is
        for subject, claims in self.asked.items():
            self.stored[subject] = [
                claim.row(number(claim.first, len(seen)), number(claim.last, len(seen))) for claim in claims.values()
            ]
        self.sightings = [*map(tuple, seen)]
        self.kept |= self.asked
        self.asked = {}
        blob = orjson.dumps([self.sightings, [*self.stored.items()]])
        self.size = len(blob)
        return blob
