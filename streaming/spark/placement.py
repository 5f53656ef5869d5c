"""Which task follows which bucket: keys that Spark's own hash distributes evenly.

Spark sends a row to task `pmod(hash, partitions)`, the hash being Murmur3 (x86, 32 bits, seed 42) over the grouping
columns (HashPartitioning, Murmur3Hash; org.apache.spark.unsafe.hash.Murmur3_x86_32), which can be inverted. The buckets
of a label get keys with consecutive hashes, so no task has two buckets more than another. State is kept under these
keys: they must never change.
"""

from functools import lru_cache

_ALL = 0xFFFFFFFF
_SEED = 42
_K1, _K2, _ADDED = 0xCC9E2D51, 0x1B873593, 0xE6546B64
_F1, _F2 = 0x85EBCA6B, 0xC2B2AE35
_LARGEST_FIRST = (1 << 30) - 1
"""A label's first hash; with any number of buckets it stays a positive int32, and pmod is the plain remainder."""


@lru_cache(1024)
def keys(label: str, buckets: int) -> tuple[int, ...]:
    """By bucket what stands in the column `bucket` between packing and following."""
    seed = hash_of_text(label)
    first = seed & _LARGEST_FIRST
    return tuple(signed(hashed_to(first + bucket, seed)) for bucket in range(buckets))


def task(label: str, key: int, partitions: int) -> int:
    """Where Spark sends a row of this label and key."""
    return signed(hash_of_int(key, hash_of_text(label))) % partitions


def hash_of_text(text: str) -> int:
    """Murmur3_x86_32.hashUnsafeBytes: the last one to three bytes are mixed in one by one, sign and all."""
    data = text.encode()
    whole = len(data) & ~3
    words = [int.from_bytes(data[at : at + 4], "little") for at in range(0, whole, 4)]
    state = _SEED
    for word in [*words, *((byte ^ 0x80) - 0x80 for byte in data[whole:])]:
        state = mixed(state, word)
    return finished(state, len(data))


def hash_of_int(value: int, seed: int) -> int:
    """Murmur3_x86_32.hashInt."""
    return finished(mixed(seed, value), 4)


def hashed_to(result: int, seed: int) -> int:
    """The int whose hash that is."""
    state = unfinished(result, 4)
    state = rotated((state - _ADDED) * pow(5, -1, 1 << 32), -13)
    return rotated((state ^ seed) * pow(_K2, -1, 1 << 32), -15) * pow(_K1, -1, 1 << 32) & _ALL


def mixed(state: int, word: int) -> int:
    word = rotated(word * _K1, 15) * _K2 & _ALL
    return (rotated(state ^ word, 13) * 5 + _ADDED) & _ALL


def finished(state: int, length: int) -> int:
    state ^= length
    state = (state ^ state >> 16) * _F1 & _ALL
    state = (state ^ state >> 13) * _F2 & _ALL
    return state ^ state >> 16


def unfinished(state: int, length: int) -> int:
    state ^= state >> 16
    state = state * pow(_F2, -1, 1 << 32) & _ALL
    state ^= state >> 13 ^ state >> 26
    state = state * pow(_F1, -1, 1 << 32) & _ALL
    return state ^ state >> 16 ^ length


def rotated(value: int, left: int) -> int:
    value &= _ALL
    return (value << left % 32 | value >> -left % 32) & _ALL


def signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value
