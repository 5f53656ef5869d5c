"""Mutation: one to four bends of a valid input, drawn from what breaks readers of length-prefixed formats.

Knows: bits, bytes, lengths at their limits, cuts, repeats, splices of two inputs. Does not know the format.
Rule: deterministic in its draws; output is bounded by twice the input and a little.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

BENDS = 9
MOST_REPEATED = 16  # bytes, by one bend

# What lengths and counts look like at their limits, as int32, int16 and varints.
EXTREMES = (
    b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\x80\0\0\0", b"\0\0\0\0",
    b"\x7f\xff", b"\xff\xfe", b"\xff\xff\xff\x7f", b"\x80\x80\x80\0",
)  # fmt: skip


class Draws:
    """xorshift64*, reduced; so that runs can be repeated."""

    def __init__(self, state: int) -> None:
        self.state = state

    def below(self, limit: int) -> int:
        x = self.state
        x ^= x >> 12
        x ^= (x << 25) & 0xFFFFFFFFFFFFFFFF
        x ^= x >> 27
        self.state = x
        return (x >> 16) % limit


def bend(source: bytes, other: bytes, draws: Draws) -> bytes:
    """The input, bent."""
    data = bytearray(source)
    below = draws.below
    for _ in range(1 + below(4)):
        if not data:
            break
        at, kind = below(len(data)), below(BENDS)
        if kind == 0:
            data[at] ^= 1 << below(8)
        elif kind == 1:
            data[at] = below(256)
        elif kind == 2:
            data[at] = (data[at] + 1 + 254 * below(2)) & 255  # one more or one less
        elif kind == 3:
            del data[at:]
        elif kind == 4:
            word = EXTREMES[below(len(EXTREMES))][: len(data) - at]
            data[at : at + len(word)] = word
        elif kind == 5:  # a slice goes missing
            del data[at : at + 1 + below(8)]
        elif kind == 6:  # a slice comes twice
            data[at:at] = data[at : at + 1 + below(MOST_REPEATED)]
        elif kind == 7 and other:  # the tail of another input
            begin = below(len(other))
            count = min(len(other) - begin, len(data) - at)
            data[at : at + count] = other[begin : begin + count]
        else:
            data[at] = 0
    return bytes(data)


def bend_all(
    data: bytes, at: NDArray[np.int64], pairs: Iterable[tuple[int, int]], draws: Draws
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """(data, places) of one bent input for each pair: the number of an input, and of the other one for a splice."""
    places = at.tolist()
    bent = [bend(data[places[a] : places[a + 1]], data[places[b] : places[b + 1]], draws) for a, b in pairs]
    return np.frombuffer(b"".join(bent), np.uint8), np.cumsum([0, *map(len, bent)], dtype=np.int64)
