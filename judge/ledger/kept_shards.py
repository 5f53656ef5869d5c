"""Shards that were given back stay in the process, so that the next batch does not read them again.

Rule: of each shard the newest is kept, with the digest of its bytes, and taken out when it is asked for, as it changes
then. So a batch that is repeated, or goes on from other bytes, reads its bytes, and so does a new process. Spark's
workers take turns: in a monitor a fourth of the shards are found, and older ones may not pile up.
"""

from hashlib import blake2b

from wirecheck.judge.ledger.shard import Shard

MOST_BYTES = 16_000_000
"""Of shards as bytes are kept; they take about eight times as much as objects."""
Place = tuple[str, str]
"""A label, and the name of one of its shards."""


class KeptShards:
    """The newest that were given back."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self.most_bytes, self.bytes = most_bytes, 0
        self.shards: dict[Place, tuple[bytes, Shard, int]] = {}

    def taken(self, place: Place, blob: bytes) -> Shard | None:
        kept, found, size = self.shards.pop(place, (b"", None, 0))
        self.bytes -= size
        return found if kept == digest(blob) else None

    def keep(self, place: Place, blob: bytes, shard: Shard) -> None:
        """Nobody may change it from now on but who takes it out."""
        self.bytes += shard.size - self.shards.pop(place, (b"", None, 0))[2]
        self.shards[place] = digest(blob), shard, shard.size
        while self.bytes > self.most_bytes:
            self.bytes -= self.shards.pop(next(iter(self.shards)))[2]


def digest(blob: bytes) -> bytes:
    return blake2b(blob, digest_size=16).digest()


KEPT = KeptShards()
