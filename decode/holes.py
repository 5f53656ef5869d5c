"""Bytes as they were on the wire, with the spans that are missing.

A hole holds zeros so that positions stay true; whoever reads structure must ask `known` first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from librt.vecs import vec
from mypy_extensions import i64

from wirecheck.decode.interpret.hole_search import hidden

if TYPE_CHECKING:
    from collections.abc import Iterable

NO_HOLES = np.zeros((0, 2), np.int64)


def pairs(holes: np.ndarray) -> vec[i64]:
    """The same numbers in a row, as compiled code takes them."""
    return vec[i64](holes.ravel())


@dataclass(frozen=True, slots=True)
class Field:
    """One field's bytes in wire coordinates."""

    data: np.ndarray  # uint8, zeros in the holes
    holes: np.ndarray  # int64[n, 2]: (begin, end), sorted and disjoint

    def known(self, begin: int, end: int) -> bool:
        return not len(self.holes) or hidden(pairs(self.holes), begin, end) == 0

    def bytes(self, begin: int, end: int) -> bytes:
        return self.data[begin:end].tobytes()

    def integer(self, at: int, size: int) -> int:
        """Signed, big-endian; only where `known`."""
        return int.from_bytes(self.data[at : at + size].tobytes(), "big", signed=True)

    def __len__(self) -> int:
        return len(self.data)


def laid_out(kept: bytes | memoryview | np.ndarray, left_out: Iterable[tuple[int, int]] = ()) -> Field:
    """Kept bytes, and spans (offset, length) as on the wire, sorted and disjoint, that were taken out of them."""
    source = kept if isinstance(kept, np.ndarray) else np.frombuffer(bytearray(kept), np.uint8)
    spans = [(offset, offset + length) for offset, length in left_out if length]
    if not spans:
        return Field(source, NO_HOLES)
    holes = np.array(spans, np.int64)
    assert (holes[1:, 0] >= holes[:-1, 1]).all()
    there = np.ones(len(source) + int((holes[:, 1] - holes[:, 0]).sum()), np.bool_)
    for begin, end in spans:
        there[begin:end] = False
    data = np.zeros(len(there), np.uint8)
    data[there] = source
    return Field(data, holes)
