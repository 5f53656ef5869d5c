"""The ledger: every claim of one label, merged, in shards.

Knows: under which subjects a claim is filed (topic name, topic ID, client, link, ...), which shard has a subject, and
which shards have changed. Does not know what a claim means, nor which cluster it belongs to.
Rule: the ledger is a pure function of the set of claims, whatever their order and batches, until they are so old that
they leave (`ageing.py`). Only shards that are asked for are loaded, and only changed ones are returned.
"""

import zlib
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from functools import lru_cache
from operator import attrgetter
from typing import Any

import orjson
import pyarrow as pa

from wirecheck.judge.claims import kinds
from wirecheck.judge.claims.claim import Claim, Subject
from wirecheck.judge.ledger import kept_shards
from wirecheck.judge.ledger.shard import Claims, Glance, Shard

STATE_VERSION = 4
MAGIC = b"wirecheck ledger %d" % STATE_VERSION
"""The first line of a stored shard, followed by COMPRESSED: what former versions wrote is not."""
COMPRESSED = b" zstd "
"""Behind it the size before."""
ZSTD = pa.Codec("zstd", compression_level=1)
COUNTED = frozenset({"name", "id", "client", "connection", "follower"})
"""Spaces whose subjects are counted without being loaded (`subject_eviction.py`)."""
Load = Callable[[str], bytes | None]
FIRST = attrgetter("first")


class StateVersionError(Exception):
    """The stored state is of another version of wirecheck."""


class Ledger:
    def __init__(self, load: Load, sizes: dict[str, int] | None = None, label: str = "") -> None:
        self.label, self.load, self.sizes = label, load, {} if sizes is None else sizes
        """How many subjects the spaces that are counted had when their shards were last given back."""
        self.before: dict[str, int] = {}
        """How many each loaded shard had then."""
        self.loaded: dict[str, Shard] = {}
        self.changed: set[str] = set()
        self.places: dict[Subject, tuple[str, Shard]] = {}
        """Of subjects that claims came of: looked up once per batch."""
        self.touched: set[Subject] = set()
        """Subjects of which something new was stated since they were last judged."""
        self.repeated: set[Subject] = set()
        """Subjects of which something was stated again: counts and times have changed."""
        self.flowing: set[Subject] = set()
        """Subjects with continued traffic without an error, and nothing else."""

    def absorb_all(self, claims: Iterable[Claim], raised: Callable[[Claim, Exception], None]) -> None:
        """File claims; `raised` gets those that cannot be filed."""
        for claim in claims:
            try:
                self.absorb(claim)
            except Exception as error:  # noqa: BLE001 - whatever foreign bytes can bring about
                raised(claim, error)

    def absorb(self, claim: Claim) -> None:
        identity = claim.kind, claim.key
        for subject in claim.subjects():  # all of them, or it is not filed at all
            place = self.places.get(subject)
            if place is None:
                name = shard_of(subject)
                place = self.places[subject] = name, self.shard(name)
            name, shard = place
            claims = shard.claims.get(subject)
            if claims is None:
                claims = shard.made(subject)
            known = claims.get(identity)
            if known is None:
                claims[identity] = claim.copy()
                self.touched.add(subject)
            elif known.merge(claim):
                self.touched.add(subject)
            else:
                (self.flowing if known.flows else self.repeated).add(subject)
            self.changed.add(name)

    def remove(self, subject: Subject, claims: Iterable[Claim]) -> None:
        """Forget claims about one subject, and the subject with the last of them."""
        name = shard_of(subject)
        known = self.shard(name)[subject]
        for claim in claims:
            known.pop(claim.identity, None)
        if not known:
            del self.shard(name)[subject]
        self.changed.add(name)

    def rewrite(self, subject: Subject) -> None:
        """A claim about a subject was changed in place."""
        self.changed.add(shard_of(subject))

    def put_away(self, space: str, busy: Container[Subject]) -> None:
        """Keep subjects of a space as bytes until something is stated of them again; all but some."""
        for name, shard in self.loaded.items():
            if space_of(name) == space:
                for subject in [one for one in shard.claims if one not in busy]:
                    shard.put(subject)

    def forget(self, subject: Subject) -> None:
        """Forget a subject with all of its claims."""
        name = shard_of(subject)
        del self.shard(name)[subject]
        self.changed.add(name)
        self.touched.discard(subject)
        self.repeated.discard(subject)
        self.flowing.discard(subject)

    def __contains__(self, subject: Subject) -> bool:
        return subject in self.shard(shard_of(subject))

    def count(self, space: str) -> int:
        """How many subjects a space has, without loading more shards."""
        loaded = sum(len(shard) - self.before[name] for name, shard in self.loaded.items() if space_of(name) == space)
        return self.sizes.get(space, 0) + loaded

    def glance(self, subject: Subject) -> Iterator[Glance]:
        """The facts about one subject by which it is kept or evicted."""
        return self.shard(shard_of(subject)).glance(subject)

    def claims_of(self, *subject: str) -> Claims:
        """The claims about one subject; empty without any."""
        place = self.places.get(subject)
        shard = place[1] if place is not None else self.shard(shard_of(subject))
        return shard.known(subject) or {}

    def taken_in(self, *subject: str) -> Claims:
        """The same of a subject of which something new comes: it is no longer put away."""
        shard = self.shard(shard_of(subject))
        return shard.made(subject) if subject in shard else {}

    def subjects(self, space: str) -> Iterator[Subject]:
        for number in range(kinds.SPACES[space]):
            yield from self.shard(f"{space}-{number:02d}")

    def claims(self, kind: str, *subject: str) -> list[Claim]:
        """All claims of one kind about one subject, in the order of their first sighting."""
        return in_order([claim for claim in self.claims_of(*subject).values() if claim.kind == kind])

    def shard(self, name: str) -> Shard:
        found = self.loaded.get(name)
        if found is None:
            blob = self.load(name)
            found = kept_shards.KEPT.taken((self.label, name), blob) if blob else Shard()
            if found is None:
                found = Shard(unversioned(blob or b""))
            self.loaded[name] = found
            self.before[name] = len(found)
        return found

    def shards(self) -> dict[str, bytes]:
        """The shards that have changed since they were last asked for, as bytes."""
        changed = {name: stored(self.loaded[name].packed()) for name in sorted(self.changed)}
        for space in COUNTED:
            self.sizes[space] = self.count(space)
        self.before = {name: len(shard) for name, shard in self.loaded.items()}
        self.changed.clear()
        self.places.clear()
        return changed

    def leave(self, given_back: Mapping[str, bytes]) -> None:
        """The last call: the shards stay in the process, keyed by the bytes that they were returned as."""
        for name, shard in self.loaded.items():
            if name in given_back:
                kept_shards.KEPT.keep((self.label, name), given_back[name], shard)
        self.loaded.clear()
        self.places.clear()


def in_order(claims: Iterable[Claim]) -> list[Claim]:
    """By first sighting, ties by key; keys are only written out where they have to be."""
    found = [*claims]
    if len(found) < 2:
        return found
    found.sort(key=FIRST)
    at = 0
    while at < len(found) - 1:
        end = at + 1
        while end < len(found) and found[end].first == found[at].first:
            end += 1
        if end - at > 1:
            found[at:end] = sorted(found[at:end], key=lambda claim: repr(claim.identity))
        at = end
    return found


def space_of(shard: str) -> str:
    return shard.rpartition("-")[0]


@lru_cache(maxsize=1 << 18)
def shard_of(subject: Subject) -> str:
    number = zlib.crc32("\0".join(subject).encode()) % kinds.SPACES[subject[0]]
    return f"{subject[0]}-{number:02d}"


def stored(blob: bytes) -> bytes:
    """A shard as it is stored. It repeats the same words, so it is compressed."""
    return b"%s%s%d\n%s" % (MAGIC, COMPRESSED, len(blob), ZSTD.compress(blob, asbytes=True))


def state_of(load: Load, name: str) -> Any:
    blob = load(name)
    return orjson.loads(unversioned(blob)) if blob else None


def unversioned(blob: bytes) -> bytes:
    """A stored shard without its first line. Raises StateVersionError."""
    head, _, rest = blob.partition(b"\n")
    magic, _, size = head.partition(COMPRESSED)
    if magic != MAGIC:
        raise StateVersionError(f"the checkpoint holds no ledger of state version {STATE_VERSION}")
    return bytes(ZSTD.decompress(rest, int(size), asbytes=True)) if size else rest
