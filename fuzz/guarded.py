"""Bytes that refuse what Python allows and nobody means: an index in front of the beginning.

Knows: indexing. Python counts a negative index from the end, compiled or not: a place that is off by some bytes would
read others in silence. Reading behind the end is an IndexError by itself.
Rule: for the plain source only (compiled code takes bytes and nothing derived from them); it is slow.
"""

from __future__ import annotations

from typing import Any


class Guarded(bytes):
    """Integer indices have to lie inside; slices have to begin and end in order."""

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            inside = (index.start or 0) >= 0 and (index.stop is None or (index.start or 0) <= index.stop)
        else:
            inside = 0 <= index < len(self)
        if not inside:
            raise IndexError(f"index {index} outside of {len(self)}")
        return super().__getitem__(index)
