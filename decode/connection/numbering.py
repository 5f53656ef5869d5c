"""Numbers for keys: the distinct ones by first appearance, without sorting. A run of equal keys costs a comparison
each.

The same keys get the same numbers on every machine. What a key stands for is not known here.
"""

from __future__ import annotations

from librt.strings import read_i64_le
from librt.vecs import append, vec
from mypy_extensions import i64


def numbered(keys: bytes) -> tuple[vec[i64], vec[i64]]:
    """(The distinct keys by first appearance, per key the number of its own) of these int64."""
    found: vec[i64] = vec[i64]()
    count: i64 = 0
    index = vec[i64]([0]) if len(keys) == 0 else vec[i64](memoryview(keys).cast("q"))
    slots = _empty(1 << 11)
    mask: i64 = (1 << 11) - 1
    last: i64 = -1
    last_number: i64 = -1
    for i in range(i64(len(keys)) >> 3):
        key = read_i64_le(keys, 8 * i)
        if key != last or last_number < 0:
            slot = _hash(key) & mask
            while slots[slot] >= 0 and found[slots[slot]] != key:
                slot = (slot + 1) & mask
            if slots[slot] < 0:
                slots[slot] = count
                found = append(found, key)
                count += 1
                if 4 * count > mask:
                    mask = 8 * mask + 7
                    slots = _rehashed(found, mask)
                last_number = count - 1
            else:
                last_number = slots[slot]
            last = key
        index[i] = last_number
    return found, index


def _hash(key: i64) -> i64:
    return (((key ^ (key >> 31)) & 0x7FFFFFFF) * 0x9E3779B1) >> 20  # no overflow, in plain Python neither


def _empty(count: i64) -> vec[i64]:
    return vec[i64]([-1] * count)


def _rehashed(found: vec[i64], mask: i64) -> vec[i64]:
    slots = _empty(mask + 1)
    for number in range(i64(len(found))):
        slot = _hash(found[number]) & mask
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = number
    return slots
