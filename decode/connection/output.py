"""What one call decided, out of the heap and into arrays.

Knows: the lines of output a call left in the heap, and where the bytes of their messages lie.
Refuses to know: what is done with it.
Rule: bytes of a message are copied here, once; everything handed out is given back to the heap.
"""

# ruff: noqa: PLR0917 -- jitted kernels take arrays and indices one by one

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

from wirecheck.decode.connection.state.chunks import free_list
from wirecheck.decode.connection.state.slots import (
    AN_EXCHANGE,
    C_PAIR,
    DATA,
    E_OUT_OF_ORDER,
    E_OUTCOME,
    E_REQUEST,
    E_RESPONSE,
    G_ARENA_LIVE,
    G_LINE_HEAD,
    G_LINE_TAIL,
    G_LINES,
    G_PIECES,
    G_WAITS,
    H_BYTES,
    H_CONNECTION,
    H_DIRECTION,
    H_KIND,
    H_TS,
    M_AT,
    M_CONNECTION,
    M_CORRELATION,
    M_DATA,
    M_FRAME,
    M_FRAME_LAST,
    M_GAP,
    M_KEY,
    M_SIDE,
    M_SIZE,
    M_SOURCE,
    M_SPANS,
    M_TS,
    M_TS_LAST,
    M_VERSION,
    NEXT,
    P_ADDRESS,
    P_AT,
    P_KIND,
    P_LENGTH,
    Q_AT,
    Q_CORRELATION,
    Q_FRAME,
    Q_FRAME_LAST,
    Q_GAP,
    Q_KEY,
    Q_PIECES,
    Q_SIDE,
    Q_SIZE,
    Q_SOURCE,
    Q_SPANS,
    Q_TS,
    Q_TS_LAST,
    Q_VERSION,
)
from wirecheck.decode.connection.without_records import hollow, is_large, scratch
from wirecheck.decode.copying import copy

if TYPE_CHECKING:
    from wirecheck.decode.connection.state.slots import Bytes, Ints
    from wirecheck.decode.connection.without_records import Layouts

# column of a message and of the waiting message it comes from
SAME = np.array(
    [
        (M_SIDE, Q_SIDE), (M_KEY, Q_KEY), (M_VERSION, Q_VERSION), (M_CORRELATION, Q_CORRELATION), (M_SIZE, Q_SIZE),
        (M_TS, Q_TS), (M_TS_LAST, Q_TS_LAST), (M_SOURCE, Q_SOURCE), (M_FRAME, Q_FRAME), (M_FRAME_LAST, Q_FRAME_LAST),
        (M_AT, Q_AT), (M_GAP, Q_GAP),
    ]
)  # fmt: skip


@njit
def empty_lines(s: Ints, new: Bytes, old: Bytes, out: tuple[Ints, Bytes, Ints, Ints, Ints], layouts: Layouts) -> Any:
    """Fill (messages, their bytes, their spans, exchanges, gaps), which have room, and give all back.

    How many bytes and spans there are: fewer bytes where records are left away, and then more spans.
    """
    room = scratch(layouts)
    message, data, span, exchange, gap = out
    rows, at, spans, exchanges, gaps = 0, 0, 0, 0, 0
    line = s[G_LINE_HEAD]
    while line >= 0:
        c, following = s[line + H_CONNECTION], s[line + NEXT]
        if s[line + H_KIND] == AN_EXCHANGE:
            exchange[exchanges, 0], exchange[exchanges, 1] = -1, -1
            exchange[exchanges, 2], exchange[exchanges, 3] = s[line + E_OUTCOME], s[line + E_OUT_OF_ORDER]
            for side in (0, 1):
                q = s[line + E_REQUEST] if side == 0 else s[line + E_RESPONSE]
                if q < 0:
                    continue
                message[rows, M_CONNECTION] = s[c + C_PAIR]
                message[rows, M_DATA], message[rows, M_SPANS] = at, spans
                for k in range(len(SAME)):
                    message[rows, SAME[k, 0]] = s[q + SAME[k, 1]]
                to = -1
                if s[q + Q_SPANS] == 0 and is_large(s, q, layouts):
                    to, spans = hollow(s, new, old, q, data, span, at, spans, layouts, room)
                if to >= 0:
                    _give_back(s, q)
                    at = to
                else:
                    at, spans = _bytes(s, new, old, q, data, span, at, spans)
                exchange[exchanges, side] = rows
                rows += 1
            exchanges += 1
        else:
            gap[gaps, 0], gap[gaps, 1], gap[gaps, 2], gap[gaps, 3] = (
                c,
                s[line + H_TS],
                s[line + H_DIRECTION],
                s[line + H_BYTES],
            )
            gaps += 1
        _give(s, G_LINES, line)
        line = following
    s[G_LINE_HEAD], s[G_LINE_TAIL] = -1, -1
    return at, spans


@njit
def _give_back(s: Ints, q: int) -> None:
    free_list(s, s[q + Q_PIECES])
    _give(s, G_WAITS, q)


@njit
def _bytes(s: Ints, new: Bytes, old: Bytes, q: int, data: Bytes, span: Ints, at: int, spans: int) -> Any:
    """Copy the message and note its spans; where the next one's begin. The message and its pieces are given back."""
    p, begin, in_span = s[q + Q_PIECES], s[q + Q_AT] + 4, False
    while p >= 0:
        following, length, address = s[p + NEXT], s[p + P_LENGTH], s[p + P_ADDRESS]
        if s[p + P_KIND] != DATA:
            if in_span:
                span[spans - 1, 1] += length
            else:
                span[spans, 0], span[spans, 1] = s[p + P_AT] - begin, length
                spans += 1
            in_span = True
        else:
            if address >= 0:
                copy(new, address, data, at, length)
            else:
                copy(old, -1 - address, data, at, length)
                s[G_ARENA_LIVE] -= length
            at += length
            in_span = False
        _give(s, G_PIECES, p)
        p = following
    _give(s, G_WAITS, q)
    return at, spans


@njit
def _give(s: Ints, pool: int, p: int) -> None:
    s[p + NEXT] = s[pool]
    s[pool] = p
    s[pool + 1] += 1
