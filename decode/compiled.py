"""`@cached_njit`: compiled by numba, kept on disk, compiled anew when anything it holds a copy of has changed.

Knows: that numba compares the one file a function stands in, while the compiled code holds copies of the kernels it
calls and of the numbers and arrays it names, wherever those stand. So each function gets a stamp of them as a variable
it closes over, which numba keeps with what it compiled.
Refuses to know: what kernels do.
Rule: whatever has cache=True has it from here; a kernel that only other kernels call is a plain @njit.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import CellType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
from numba import config, njit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["borrowing_njit", "cached_njit", "stamp"]

STAMP = "_stamp"


def cached_njit(function: Callable[..., Any]) -> Any:
    """The function compiled at its first call, or read from numba's cache; as it is under NUMBA_DISABLE_JIT=1.

    Of a function that is a plain @njit already, one with a cache of its own.
    """
    return _cached(function, {})


def borrowing_njit(function: Callable[..., Any]) -> Any:
    """The same for a kernel that makes no arrays: nobody counts references to those that its caller lends it.

    Counting costs a kernel that hands its arrays on to others more than half of its time (capture/link/packet.py: 131
    ns a packet, 63 without). What such a kernel calls makes no arrays either: numba refuses to compile it otherwise.
    """
    return _cached(function, {"_nrt": False})


def _cached(function: Callable[..., Any], options: dict[str, bool]) -> Any:
    plain: Any = getattr(function, "py_func", function)
    return function if config.DISABLE_JIT else njit(cache=True, **options)(_closed_over(plain, stamp(plain)))


def _closed_over(function: FunctionType, number: int) -> FunctionType:
    code = function.__code__.replace(co_freevars=(*function.__code__.co_freevars, STAMP))
    cells = (*(function.__closure__ or ()), CellType(number))
    made = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, cells)
    made.__dict__.update(function.__dict__)
    made.__doc__, made.__module__, made.__qualname__ = function.__doc__, function.__module__, function.__qualname__
    made.__annotations__ = function.__annotations__
    return made


def stamp(function: FunctionType) -> int:
    """Of the sources of all kernels that this one calls, directly or not, and of the values it and they name."""
    files, values = {function.__code__.co_filename}, []
    waiting, seen = [function], {function.__code__}
    while waiting:
        for name, value in _named(waiting.pop()):
            inner = getattr(value, "py_func", value)
            if isinstance(inner, FunctionType) and inner.__code__ not in seen:
                seen.add(inner.__code__)
                files.add(inner.__code__.co_filename)
                waiting.append(inner)
            elif isinstance(value, int | float | bool | str | bytes | tuple):
                values.append(f"{name}={value!r}".encode())
            elif isinstance(value, np.ndarray):
                values.append(name.encode() + value.tobytes())
    return crc32(b"".join([*map(_source, sorted(files)), *sorted(values)]))


def _named(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """What a function names outside of itself: globals, and of modules of the project whatever it may mean of them."""
    names = function.__code__.co_names
    for name in names:
        value = function.__globals__.get(name)
        if isinstance(value, ModuleType):
            if value.__name__.partition(".")[0] not in {"numpy", "numba"}:
                yield from ((f"{name}.{inner}", getattr(value, inner)) for inner in names if hasattr(value, inner))
        else:
            yield name, value


@cache
def _source(name: str) -> bytes:
    return Path(name).read_bytes()
