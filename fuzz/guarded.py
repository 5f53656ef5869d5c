"""An array that refuses what numpy allows and C does not: reading behind the end, or in front of the beginning.

Knows: indexing. Plain Python wraps a negative index around silently; compiled code reads foreign memory there.
Rule: for the plain form of the machine only (NUMBA_DISABLE_JIT=1); it is slow.
"""

from __future__ import annotations

from typing import Any

import numpy as np


class Guarded(np.ndarray[Any, np.dtype[Any]]):
    """Integer indices have to lie inside; slices end at the edge in C too."""

    def __getitem__(self, index: Any) -> Any:
        _check(index, len(self))
        return super().__getitem__(index)

    def __setitem__(self, index: Any, value: Any) -> None:
        _check(index, len(self))
        super().__setitem__(index, value)


def _check(index: Any, length: int) -> None:
    if isinstance(index, int | np.integer) and not 0 <= index < length:
        raise IndexError(f"index {index} outside of {length}")


def guarded(array: np.ndarray) -> np.ndarray:
    return array.view(Guarded)
