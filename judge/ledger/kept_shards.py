"""Shards that were given back stay in the process, so that the next batch does not read them again.

Rule: a shard is found by the digest of its bytes, and taken out when it is, as it changes then. So a batch that is
repeated, or goes on from other bytes, reads its bytes; a process that was started anew does, too.
"""

from hashlib import blake2b

from wirecheck.judge.ledger.shard import Shard

MOST_BYTES = 16_000_000
"""Of shards as bytes are kept; they take about eight times as much as objects."""


class KeptShards:
    """The newest that were given back."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self.most_bytes, self.bytes = most_bytes, 0
        self.shards: dict[bytes, tuple[Shard, int]] = {}

    def taken(self, blob: bytes) -> Shard | None:
        found, size = self.shards.pop(digest(blob), (None, 0))
        self.bytes -= size
        return found

    def keep(self, blob: bytes, shard: Shard) -> None:
        """Nobody may change it from now on but who takes it out."""
        if (name := digest(blob)) not in self.shards:
            self.shards[name] = (shard, shard.size)
            self.bytes += shard.size
        while self.bytes > self.most_bytes:
            self.bytes -= self.shards.pop(next(iter(self.shards)))[1]


def digest(blob: bytes) -> bytes:
    return blake2b(blob, digest_size=16).digest()


KEPT = KeptShards()
