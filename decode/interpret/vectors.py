"""Between numpy's arrays and the bytes and vecs of compiled code.

Out of compiled code nothing is copied; into it is a memcpy, unless the array is a view of a vec or of a bytes object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np
from librt.vecs import vec
from mypy_extensions import i32, i64

if TYPE_CHECKING:
    from numpy.typing import NDArray

VEC32, VEC64 = type(vec[i32]()), type(vec[i64]())


def int64s(numbers: vec[i64], count: int = -1) -> NDArray[np.int64]:
    """The first of them (-1: all) as an array, read-only, in the same memory."""
    return np.frombuffer(cast("memoryview", numbers), np.int64, count)


def int32s(numbers: vec[i32], count: int = -1) -> NDArray[np.int32]:
    return np.frombuffer(cast("memoryview", numbers), np.int32, count)


def vec64(array: NDArray[np.int64]) -> vec[i64]:
    """The array's numbers, and maybe more behind them: of one that `int64s` made, the vec it came from."""
    base: object = array.base
    return base if isinstance(base, VEC64) else vec[i64](array)


def vec32(array: NDArray[np.int32]) -> vec[i32]:
    base: object = array.base
    return base if isinstance(base, VEC32) else vec[i32](array)


def bytes_around(data: NDArray[np.uint8]) -> tuple[bytes, int]:
    """Bytes that hold the array, and where in them it begins: those it is a view of, or else a copy."""
    owner: object = data
    while isinstance(owner, (np.ndarray, memoryview)):
        owner = owner.base if isinstance(owner, np.ndarray) else owner.obj
    if not isinstance(owner, bytes) or not data.size:
        return data.tobytes(), 0
    return owner, data.ctypes.data - np.frombuffer(owner, np.uint8).ctypes.data


def bytes_of(data: NDArray[np.uint8]) -> bytes:
    """All of the array."""
    owner, at = bytes_around(data)
    return owner if at == 0 and len(owner) == data.nbytes else data.tobytes()
