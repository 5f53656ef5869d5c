"""Mutation: one to four bends of a valid input, drawn from what breaks readers of length-prefixed formats.

Knows: bits, bytes, lengths at their limits, cuts, repeats, splices of two inputs. Does not know the format.
Rule: deterministic in its state; output is bounded by twice the input and a little.
"""

from __future__ import annotations

import numpy as np

from wirecheck.decode.compiled import cached_njit

BENDS = 9
GROWTH_BYTES = 64  # at most, by all bends of one input

# What lengths and counts look like at their limits, as int32, int16 and varints.
EXTREMES = np.array(
    [
        [0x7F, 0xFF, 0xFF, 0xFF, 4], [0xFF, 0xFF, 0xFF, 0xFF, 4], [0x80, 0, 0, 0, 4], [0, 0, 0, 0, 4],
        [0x7F, 0xFF, 0, 0, 2], [0xFF, 0xFE, 0, 0, 2], [0xFF, 0xFF, 0xFF, 0x7F, 4], [0x80, 0x80, 0x80, 0x00, 4],
    ], np.int64,
)  # fmt: skip


@cached_njit
def draw(state: np.ndarray, below: int) -> int:
    """xorshift64*, reduced; the state is one cell, so that runs can be repeated."""
    x = state[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    state[0] = x
    return np.int64((x >> np.uint64(16)) % np.uint64(below))


@cached_njit
def bend_one(source: np.ndarray, other: np.ndarray, out: np.ndarray, state: np.ndarray, extremes: np.ndarray) -> int:
    """Length of the bent input in `out`, which has room for 2 * len(source) + GROWTH_BYTES."""
    length = len(source)
    out[:length] = source
    for _ in range(1 + draw(state, 4)):
        if length == 0:
            return 0
        at, kind = draw(state, length), draw(state, BENDS)
        if kind == 0:
            out[at] ^= np.uint8(1 << draw(state, 8))
        elif kind == 1:
            out[at] = np.uint8(draw(state, 256))
        elif kind == 2:
            out[at] = np.uint8((int(out[at]) + 1 + 254 * draw(state, 2)) & 255)  # one more or one less
        elif kind == 3:
            length = at
        elif kind == 4:
            row = extremes[draw(state, len(extremes))]
            for i in range(min(row[4], length - at)):
                out[at + i] = np.uint8(row[i])
        elif kind == 5:  # a slice goes missing
            gone = min(1 + draw(state, 8), length - at)
            for i in range(at, length - gone):
                out[i] = out[i + gone]
            length -= gone
        elif kind == 6:  # a slice comes twice
            more = min(1 + draw(state, 16), length - at, GROWTH_BYTES // 4)
            for i in range(length - 1, at - 1, -1):
                out[i + more] = out[i]
            length += more
        elif kind == 7 and len(other):  # the tail of another input
            begin = draw(state, len(other))
            count = min(len(other) - begin, length - at)
            out[at : at + count] = other[begin : begin + count]
        else:
            out[at] = 0
    return length


@cached_njit
def bend(  # noqa: PLR0917
    data: np.ndarray, at: np.ndarray, pick: np.ndarray, partner: np.ndarray, state: np.ndarray, extremes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(data, places) of one bent input for each picked seed."""
    room = 0
    for seed in pick:
        room += 2 * (at[seed + 1] - at[seed]) + GROWTH_BYTES
    out = np.zeros(room, np.uint8)
    out_at = np.zeros(len(pick) + 1, np.int64)
    for i in range(len(pick)):
        source = data[at[pick[i]] : at[pick[i] + 1]]
        other = data[at[partner[i]] : at[partner[i] + 1]]
        out_at[i + 1] = out_at[i] + bend_one(source, other, out[out_at[i] :], state, extremes)
    return out[: out_at[-1]], out_at
