"""Parsed shards that stay in the process, so that the next batch does not parse them again.

Rule: the newest state of each shard is kept, with the digest of its bytes, and removed when it is taken, because it
changes then. A batch that is repeated, or that continues from other bytes, parses its bytes, and so does a new process.
Spark's workers take turns, so a monitor finds about a fourth of its shards here. Old ones must not accumulate.
"""

from hashlib import blake2b

from wirecheck.judge.ledger.shard import Shard

MOST_BYTES = 16_000_000
"""Of shards as bytes are kept; they take about eight times as much as objects."""
Place = tuple[str, str]
"""A label, and the name of one of its shards."""


class KeptShards:
    """The newest state of each shard."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self.most_bytes, self.bytes = most_bytes, 0
        self.shards: dict[Place, tuple[bytes, Shard, int]] = {}

    def taken(self, place: Place, blob: bytes) -> Shard | None:
        kept, found, size = self.shards.pop(place, (b"", None, 0))
        self.bytes -= size
        return found if kept == digest(blob) else None

    def keep(self, place: Place, blob: bytes, shard: Shard) -> None:
        """Only the caller that takes the shard out may change it from now on."""
        self.bytes += shard.size - self.shards.pop(place, (b"", None, 0))[2]
        self.shards[place] = digest(blob), shard, shard.size
        while self.bytes > self.most_bytes:
            self.bytes -= self.shards.pop(next(iter(self.shards)))[2]


def digest(blob: bytes) -> bytes:
    return blake2b(blob, digest_size=16).digest()


KEPT = KeptShards()
