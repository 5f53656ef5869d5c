"""How many bytes of a stretch are missing. Holes are pairs of numbers (begin, end), sorted and disjoint.

A search costs the logarithm of their number. What lies around a hole is not known here.
"""

from __future__ import annotations

from typing import Any

from librt.vecs import vec
from mypy_extensions import i64


def hidden(pairs: Any, begin: i64, end: i64) -> i64:
    """How many bytes of [begin, end) lie in holes."""
    holes: vec[i64] = pairs
    low: i64 = 0
    high = i64(len(holes)) >> 1
    while low < high:
        middle = (low + high) >> 1
        if holes[2 * middle + 1] <= begin:
            low = middle + 1
        else:
            high = middle
    total: i64 = 0
    at = 2 * low
    while at < i64(len(holes)) and holes[at] < end:
        total += min(end, holes[at + 1]) - max(begin, holes[at])
        at += 2
    return total
