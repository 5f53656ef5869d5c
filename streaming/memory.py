"""What a process holds: rows handed over in pieces, and what they took given back.

Knows: that Arrow and glibc keep for themselves what was freed, and how they are told to return it. Knows nothing of
what rows are.
Rule: it changes no result. A worker lives as long as the query and takes any step's work in turn: what one step leaves
behind would lie beside what the next one needs.
"""

import ctypes
from collections.abc import Iterable, Iterator
from contextlib import suppress

import pyarrow as pa

from streaming.tagged import Tagged

PIECE_BYTES = 1 << 20


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


def give_back() -> None:
    """To the system, from Arrow and glibc."""
    pa.default_memory_pool().release_unused()
    with suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)
