"""The compiled entries into following: what Python calls, once per call of the follower.

Knows: that numba's cache compares one source file only, while these kernels are spread over several and compile as one.
So each entry closes over a stamp of all their sources, which numba keeps with what it compiled: a change anywhere, of
a column number too, compiles anew.
Refuses to know: what the kernels do.
Rule: a kernel that Python calls is wrapped here and nowhere else has cache=True; the modules below are all they use.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

from numba import njit

from decode.following import keeping, output, walk

if TYPE_CHECKING:
    from collections.abc import Callable

    from decode.following.slots import Bytes, Frames, Ints

SOURCES = (
    "walk", "slots", "heap", "pieces", "stream", "cutting", "resync", "pairing", "recognise", "relief", "keeping",
    "output", "../wire", "../copying",
)  # fmt: skip


def _stamp() -> int:
    here = Path(__file__).parent
    return crc32(b"".join((here / f"{name}.py").read_bytes() for name in SOURCES))


def _following(stamp: int) -> tuple[Callable[..., Any], ...]:
    @njit(cache=True)
    def follow(s: Ints, new: Bytes, old: Bytes, f: Frames, start: int) -> Any:
        return walk.follow(s, new, old, f, start) if stamp >= 0 else 0

    @njit(cache=True)
    def lapse(s: Ints, new: Bytes, old: Bytes, rows: Ints, start: int, now: int) -> Any:  # noqa: PLR0917
        return walk.lapse(s, new, old, rows, start, now) if stamp >= 0 else 0

    @njit(cache=True)
    def relieve(s: Ints, new: Bytes, old: Bytes, rows: Ints, start: int) -> Any:
        return walk.relieve(s, new, old, rows, start) if stamp >= 0 else 0

    return follow, lapse, relieve


def _between_calls(stamp: int) -> tuple[Callable[..., Any], ...]:
    @njit(cache=True)
    def touched(s: Ints) -> Any:
        return keeping.touched(s if stamp >= 0 else s[:0])

    @njit(cache=True)
    def unsettled(s: Ints, rows: Ints) -> Any:
        return keeping.unsettled(s, rows) if stamp >= 0 else 0

    @njit(cache=True)
    def settle(s: Ints, new: Bytes, old: Bytes, rows: Ints) -> None:
        if stamp >= 0:
            keeping.settle(s, new, old, rows)

    @njit(cache=True)
    def pack(s: Ints, old: Bytes, rows: Ints, t: Ints, arena: Bytes) -> Any:
        return keeping.pack(s, old, rows[: len(rows) if stamp >= 0 else 0], t, arena)

    @njit(cache=True)
    def empty_lines(s: Ints, new: Bytes, old: Bytes, out: tuple[Ints, Bytes, Ints, Ints, Ints]) -> None:
        if stamp >= 0:
            output.empty_lines(s, new, old, out)

    return touched, unsettled, settle, pack, empty_lines


STAMP = _stamp()
follow, lapse, relieve = _following(STAMP)
touched, unsettled, settle, pack, empty_lines = _between_calls(STAMP)
