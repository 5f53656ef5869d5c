"""Snapshots of the metadata log, put together over batches: chunks in, what their records say out.

Knows: which chunks of which snapshot have come, and that they are read in the order of their positions, so that what a
snapshot says does not depend on the order in which chunks came. Does not know records (`extract.log`) or batches of
them (`decode.log.snapshot`).
Rule: bounded. At most MOST_SNAPSHOTS are under way, the one that was heard of longest ago is given up, as is one whose
chunks wait for more than Snapshot allows; what is given up was simply not seen. A snapshot leaves when it is whole.
"""

import base64
from collections.abc import Iterator
from typing import Any

from wirecheck.decode.log.snapshot import MOST_WAITING_BYTES, Snapshot
from wirecheck.judge.claims.claim import Claim, Key, Sighting
from wirecheck.judge.claims.extract.log_entries import chunk_of, snapshot_claims

CHUNK = "chunk"
"""The kind of claim that is put together here and never filed."""
MOST_SNAPSHOTS = 16
Stored = list[list[Any]]


class Assembly:
    def __init__(self, snapshot: Snapshot, latest: Sighting | None = None) -> None:
        self.snapshot, self.latest = snapshot, latest
        self.waiting: dict[int, Claim] = {}
        self.end = snapshot.read_to
        """Position up to which chunks have been read."""

    def receive(self, claim: Claim) -> Iterator[Claim]:
        known = self.waiting.get(claim["position"])
        if known is None or chunk_of(claim).end > chunk_of(known).end:
            self.waiting[claim["position"]] = claim
        while self.waiting and min(self.waiting) <= self.end and not self.snapshot.lost:
            yield from self.read(self.waiting.pop(min(self.waiting)))

    def read(self, claim: Claim) -> Iterator[Claim]:
        chunk = chunk_of(claim)
        if chunk.end > self.end:
            self.end = chunk.end
            self.latest = max(claim.first, self.latest or claim.first)
            yield from snapshot_claims(self.snapshot.receive(chunk), self.snapshot, self.latest)

    @property
    def over(self) -> bool:
        waiting = sum(len(claim.peak["kept"]) for claim in self.waiting.values())
        return self.snapshot.complete or self.snapshot.lost or waiting > MOST_WAITING_BYTES


class Snapshots:
    """All snapshots under way, by host, endpoint, end offset and epoch."""

    def __init__(self, stored: Stored | None = None) -> None:
        self.under_way: dict[Key, Assembly] = {}
        for key, state, end, latest, waiting in stored or ():
            found = Assembly(Snapshot.restore(base64.b64decode(state)), Sighting(*latest) if latest else None)
            found.end = end
            found.waiting = {claim["position"]: claim for claim in map(claim_of, waiting)}
            self.under_way[tuple(key)] = found
        self.changed = False

    def receive(self, claim: Claim) -> Iterator[Claim]:
        self.changed = True
        key = claim.key[:4]
        end_offset, epoch = key[2:]
        found = self.under_way.pop(key, None) or Assembly(Snapshot(end_offset, epoch))
        yield from found.receive(claim)
        if not found.over:
            self.under_way[key] = found  # behind all others: heard of last
        while len(self.under_way) > MOST_SNAPSHOTS:
            del self.under_way[next(iter(self.under_way))]

    def state(self) -> Stored:
        return [
            [
                key,
                base64.b64encode(found.snapshot.snapshot()).decode(),
                found.end,
                found.latest,
                [[claim.key, claim.first, claim.peak] for _, claim in sorted(found.waiting.items())],
            ]
            for key, found in self.under_way.items()
        ]


def claim_of(stored: list[Any]) -> Claim:
    key, first, peak = stored
    return Claim(CHUNK, tuple(key), Sighting(*first), peak=peak)
