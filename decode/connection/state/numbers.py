"""Tables of integers as bytes, as small as their values allow, and back, a row or a column at a time.

Knows: a table is stored by columns: the lowest value of each, and by how much each row exceeds it, in as many bytes as
the largest excess needs; none where all rows agree.
Refuses to know: what the columns mean.
Rule: reading some rows, or one column, of a stored table costs as much as those, whatever else it holds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
WIDTHS = (1, 2, 4, 8)  # bytes


class Table:
    """A stored table: `rows` rows of `width` numbers in this memory, which it does not copy."""

    def __init__(self, memory: memoryview, rows: int, width: int) -> None:
        self._memory = memory
        self._rows = rows
        self._low = np.frombuffer(memory, np.int64, width)
        self._bytes = np.frombuffer(memory, np.uint8, width, 8 * width)
        self._parts: list[tuple[Ints, NDArray[np.unsignedinteger]]] = []
        at = 9 * width
        for size in WIDTHS:
            columns = np.flatnonzero(self._bytes == size)
            excess = np.frombuffer(memory, f"<u{size}", rows * len(columns), at).reshape(rows, len(columns))
            self._parts.append((columns, excess))
            at += excess.nbytes
        self.size = at

    def rows(self, chosen: NDArray[np.int64] | slice = slice(None)) -> Ints:
        """These rows, or all, as numbers again."""
        count = self._rows if isinstance(chosen, slice) else len(chosen)
        found = np.tile(self._low, (count, 1))
        for columns, excess in self._parts:
            found[:, columns] += excess[chosen].astype(np.int64)
        return found

    def column(self, number: int) -> Ints:
        found = np.full(self._rows, self._low[number])
        for columns, excess in self._parts:
            for place in np.flatnonzero(columns == number).tolist():
                found += excess[:, place].astype(np.int64)
        return found


def stored(numbers: Ints) -> bytes:
    """A table as bytes. (Differences wrap where they exceed 63 bits, and wrap back when they are read.)"""
    width = numbers.shape[1]
    low = numbers.min(0) if len(numbers) else np.zeros(width, np.int64)
    span = (numbers.max(0) - low if len(numbers) else low).view(np.uint64)
    size = np.select([span == 0, span < 1 << 8, span < 1 << 16, span < 1 << 32], [0, 1, 2, 4], 8).astype(np.uint8)
    parts = [low.tobytes(), size.tobytes()]
    for wanted in WIDTHS:
        columns = np.flatnonzero(size == wanted)
        parts.append((numbers[:, columns] - low[columns]).astype(f"<u{wanted}").tobytes())
    return b"".join(parts)
