"""One shard of the ledger: subjects of claims, stored as JSON rows until they are used.

Knows: how subjects become bytes and come back, and which of them were used. Does not know why.
Rule: claims are made only of subjects that are used, so that a small batch on a large ledger costs what it touches.
Sightings that claims of a shard share are written once. A packed shard equals what its bytes make, so it may be kept in
their place (`kept_shards.py`).
"""

import zlib
from collections.abc import Iterator
from typing import Any

import orjson

from wirecheck.judge.claims.claim import Claim, Key, Subject, pack, sighting, stored_claim, unpack
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
        self.put_away: dict[Subject, bytes] = {}
        """The claims of subjects that were used, and are not for some time."""
        self.size = len(blob)
        """Bytes of it when it was made or packed."""

    def known(self, subject: Subject) -> Claims | None:
        """Its claims; copies of them while they are put away."""
        found = self.claims.get(subject)
        if found is None and subject in self.put_away:
            return {claim.identity: claim for claim in self.away(subject)}
        if found is None and (rows := self.rows.get(subject)) is not None:
            found = {(row[0], (claim := self.claim(row)).key): claim for row in rows}
            self.claims[subject], self.rows[subject] = found, None
        return found

    def __getitem__(self, subject: Subject) -> Claims:
        found = self.known(subject)
        if found is None:
            raise KeyError(subject)
        if self.put_away.pop(subject, None) is not None:
            self.claims[subject] = found
        return found

    def made(self, subject: Subject) -> Claims:
        """A subject's claims; a new subject is added without any."""
        if subject in self.rows:
            return self[subject]
        found = self.claims[subject] = {}
        self.rows[subject] = None
        return found

    def put(self, subject: Subject) -> None:
        """Put the claims of a subject away: as bytes they take a tenth of the memory. Compressed they are so small that
        Python keeps them apart from what is large and soon freed.
        """
        self.put_away[subject] = zlib.compress(pack(self.claims.pop(subject).values()), 1)

    def away(self, subject: Subject) -> list[Claim]:
        return unpack(zlib.decompress(self.put_away[subject]))

    def __delitem__(self, subject: Subject) -> None:
        del self.rows[subject]
        self.put_away.pop(subject, None)
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
        made = self.away(subject) if subject in self.put_away else [*self.claims.get(subject, {}).values()]
        for claim in made:
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
            made = self[subject].values()
            stored.append(
                (subject, [one.row(number(one.first, len(numbers)), number(one.last, len(numbers))) for one in made])
            )
        self.sightings = [*numbers]
        blob = orjson.dumps([[*map(tuple, numbers)], stored])
        self.size = len(blob)
        return blob
