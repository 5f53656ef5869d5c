"""Rows passed on in pieces, and memory returned to the system by Arrow and glibc. It changes no result.

A worker lives as long as the query and runs each step in turn, so what one step keeps would add to the next one's
memory.
"""

import ctypes
import gc
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress

import pyarrow as pa

from wirecheck.streaming.steps.tagged import Tagged

PIECE_BYTES = 1 << 20
AS_IT_COMES = -1, -3  # M_TRIM_THRESHOLD, M_MMAP_THRESHOLD of malloc.h
"""What glibc otherwise adapts to the largest that was ever freed: what is larger than these goes back at once."""
GIVE_BACK_BYTES = 1 << 20, 256 << 10
frozen_modules = 0
"""How many were loaded when this process last set its objects apart."""


def in_pieces(rows: Iterable[Tagged]) -> Iterator[list[Tagged]]:
    """The rows as they come, together until they are a MB; what was taken for them is given back behind the last."""
    piece: list[Tagged] = []
    size = 0
    for row in rows:
        piece.append(row)
        size += len(row.cell)
        del row
        if size >= PIECE_BYTES:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece
    del piece
    give_back()


def hold_little() -> None:
    """This process returns what is large when it is freed; processes that it starts get this by their environment.

    Arrow's own pool (mimalloc) keeps what its threads freed: after a pass over the tables a driver of 170 MB held 230.
    """
    pa.set_memory_pool(pa.system_memory_pool())
    with suppress(OSError, AttributeError):  # another C library
        for option, size in zip(AS_IT_COMES, GIVE_BACK_BYTES, strict=True):
            ctypes.CDLL(None).mallopt(option, size)


def freeze_modules() -> None:
    """What loaded modules hold is not garbage: set it apart from what Python's collector looks through.

    PySpark's worker collects after each task (`pyspark.daemon`). Looking through modules took a third of its CPU
    time at 20,000 frames/s. Done only where modules were loaded since: what is alive now is never looked at again.
    """
    global frozen_modules  # noqa: PLW0603 - of this process, as the collector is
    if frozen_modules != len(sys.modules):
        frozen_modules = len(sys.modules)
        gc.freeze()


def release_plans() -> None:
    """Of earlier batches, in Java. Java holds a batch's plan until Python has collected the DataFrame, which is part of
    a cycle; left to itself the collector comes after hundreds of batches, and they take 300 MB.
    """
    freeze_modules()
    gc.collect()


def give_back() -> None:
    """To the system, from Arrow and glibc."""
    pa.default_memory_pool().release_unused()
    with suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)
