"""Between numpy's arrays and what compiled code works with: bytes and vecs.

Knows which way costs a copy: into compiled code one (`vec[i64](array)` is a memcpy), out of it none.
Refuses to know what the numbers are.
Rule: compiled modules know no numpy; their plain neighbours convert by these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

if TYPE_CHECKING:
    from librt.vecs import vec
    from mypy_extensions import i32, i64
    from numpy.typing import NDArray

__all__ = ["bytes_of", "int32s", "int64s"]


def int64s(numbers: vec[i64]) -> NDArray[np.int64]:
    """The same as an array, read-only, in the same memory."""
    return np.frombuffer(cast("memoryview", numbers), np.int64)


def int32s(numbers: vec[i32]) -> NDArray[np.int32]:
    return np.frombuffer(cast("memoryview", numbers), np.int32)


def bytes_of(data: NDArray[np.uint8]) -> bytes:
    """The same as bytes, for compiled code: without a copy where the array is all of such an object."""
    base: object = data.base
    return base if isinstance(base, bytes) and len(base) == data.nbytes else data.tobytes()
