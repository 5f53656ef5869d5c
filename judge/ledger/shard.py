"""One shard of the ledger: subjects of claims, stored as JSON rows until they are used.

Knows: how subjects become bytes and come back, and which of them were used. Does not know why.
Rule: claims are made only of subjects that are used, so that a small batch on a large ledger costs what it touches.
Sightings that claims of a shard share are written once. A packed shard equals what its bytes make, so it may be kept in
their place (`kept_shards.py`).
"""

from collections.abc import Iterator
from typing import Any

import orjson

from wirecheck.judge.claims.claim import Claim, Key, Subject, sighting, stored_claim
from wirecheck.judge.claims.outcomes import SUCCESS, holds

Claims = dict[tuple[str, Key], Claim]
Glance = tuple[str, bool, dict[str, Any], int, int]
"""Of a claim: kind, whether an answer without error is in it, peak, when it was made first and last."""
FIRST, LAST = 2, 3
"""Where a stored claim has the numbers of its sightings."""


class Shard:
    """Subjects to their claims, like a dict."""

    def __init__(self, blob: bytes = b"[[],[]]") -> None:
        self.sightings, stored = orjson.loads(blob)
        self.rows: dict[Subject, list[list[Any]] | None] = {tuple(subject): rows for subject, rows in stored}
        """Every subject with its stored claims; None once the subject was used."""
        self.claims: dict[Subject, Claims] = {}
        """The claims of each subject that was used."""
        self.size = len(blob)
        """Bytes of it when it was made or packed."""

    def known(self, subject: Subject) -> Claims | None:
        found = self.claims.get(subject)
        if found is None and (rows := self.rows.get(subject)) is not None:
            found = {(row[0], (claim := self.claim(row)).key): claim for row in rows}
            self.claims[subject], self.rows[subject] = found, None
        return found

    def __getitem__(self, subject: Subject) -> Claims:
        found = self.known(subject)
        if found is None:
            raise KeyError(subject)
        return found

    def made(self, subject: Subject) -> Claims:
        """A subject's claims; a new subject is added without any."""
        found = self.known(subject)
        if found is None:
            found = self.claims[subject] = {}
            self.rows[subject] = None
        return found

    def __delitem__(self, subject: Subject) -> None:
        del self.rows[subject]
        self.claims.pop(subject, None)

    def __contains__(self, subject: object) -> bool:
        return subject in self.rows

    def __iter__(self) -> Iterator[Subject]:
        return iter([*self.rows])  # as they are now: a subject may leave meanwhile

    def __len__(self) -> int:
        return len(self.rows)

    def claim(self, row: list[Any]) -> Claim:
        begin = sighting(self.sightings[row[FIRST]])
        return stored_claim(row, begin, begin if row[FIRST] == row[LAST] else sighting(self.sightings[row[LAST]]))

    def glance(self, subject: Subject) -> Iterator[Glance]:
        """A subject's claims without making them."""
        for claim in self.claims.get(subject, {}).values():
            yield claim.kind, claim.succeeded, claim.peak, claim.first.ts_ns, claim.last.ts_ns
        for kind, _, first, last, _, _, peak, outcomes in self.rows.get(subject) or ():
            yield kind, holds(outcomes, SUCCESS), peak, self.sightings[first][0], self.sightings[last][0]

    def packed(self) -> bytes:
        """All subjects as bytes, in the order in which they came, without sightings that are no longer used."""
        numbers: dict[tuple[Any, ...], int] = {}
        number = numbers.setdefault  # a sighting is found as the tuple that it is
        stored: list[tuple[Subject, list[list[Any]]]] = []
        for subject, rows in self.rows.items():
            if rows is not None:
                for row in rows:
                    for place in (FIRST, LAST):
                        row[place] = number(tuple(self.sightings[row[place]]), len(numbers))
                stored.append((subject, rows))
                continue
            made = self.claims[subject].values()
            stored.append(
                (subject, [one.row(number(one.first, len(numbers)), number(one.last, len(numbers))) for one in made])
            )
        self.sightings = [*numbers]
        blob = orjson.dumps([[*map(tuple, numbers)], stored])
        self.size = len(blob)
        return blob
