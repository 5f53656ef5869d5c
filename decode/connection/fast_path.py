"""The frames that most traffic consists of, taken in one go: both directions in order, nothing missing, nothing new.

Knows: when a frame can only count, acknowledge and append, and what of it can end a message.
Refuses to know: everything else; a frame it does not vouch for goes the way of walk.py, which knows every case.
Rule: what it does to the heap is what walk.py would have done, word by word. A frame with any flag but ACK and PSH is
none of these: an ECN bit, which nothing reads, sends a frame the other way, and so the two are compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numba import njit

from wirecheck.decode.connection.reassembly import BELIEVABLE, offset_of, remember_acknowledged
from wirecheck.decode.connection.state.chunks import append, new_piece, stamp
from wirecheck.decode.connection.state.heap import other_way, touch, way_of
from wirecheck.decode.connection.state.slots import (
    C_AGENT,
    C_ANSWERS,
    C_CLOSED_BY,
    C_DEADLINE,
    C_DUE,
    C_LAST,
    C_PROTOCOL,
    C_STATE,
    C_TICK,
    DATA,
    G_PENDING,
    G_PIECES,
    G_TOP,
    L_IDLE_NS,
    LIVE,
    NOW_ACK,
    NOW_ADDRESS,
    NOW_AGENT,
    NOW_BIT,
    NOW_FLAGS,
    NOW_LEFT,
    NOW_LEFT_END,
    NOW_OFFSET,
    NOW_SEQ,
    NOW_TS,
    NOW_WIRE,
    OFF,
    P_COUNT,
    PIECE_BYTES,
    RUNNING,
    SEARCH,
    SYNC,
    UNDECIDED,
    W_ACKED,
    W_BYTES,
    W_END,
    W_FRAMES,
    W_HELD,
    W_MODE,
    W_NEED,
    W_NEXT,
    W_OPEN,
    W_SHOWN,
    W_TOP,
)

if TYPE_CHECKING:
    from wirecheck.decode.connection.state.slots import Ints

OUT_OF_STEP, WITHIN, ENDS = 0, 1, 2  # what a frame is: anything; within a message or without bytes; may end a message
ACK, PSH = 16, 8


@njit
def step(s: Ints, c: int) -> Any:
    """What the frame that is looked at is to connection c. Nothing is changed."""
    if s[NOW_FLAGS] | PSH != ACK | PSH or s[c + C_STATE] != LIVE or s[c + C_DEADLINE] <= s[NOW_TS]:
        return OUT_OF_STEP
    if s[NOW_AGENT] != s[c + C_AGENT] or s[c + C_CLOSED_BY] != 0 or s[c + C_ANSWERS] >= 0:
        return OUT_OF_STEP
    w = way_of(c, s[NOW_BIT])
    o = other_way(c, w)
    if s[w + W_OPEN] != RUNNING or s[o + W_OPEN] != RUNNING or s[w + W_HELD] >= 0 or s[o + W_HELD] >= 0:
        return OUT_OF_STEP
    if max(s[o + W_ACKED], offset_of(s, o, s[NOW_ACK])) > s[o + W_NEXT]:
        return OUT_OF_STEP
    wire = s[NOW_WIRE]
    after = s[w + W_NEXT] + wire
    if s[w + W_ACKED] > after:
        return OUT_OF_STEP
    if wire == 0:
        return WITHIN
    if s[NOW_LEFT] != s[NOW_LEFT_END] or s[c + C_PROTOCOL] == UNDECIDED or offset_of(s, w, s[NOW_SEQ]) + wire != after:
        return OUT_OF_STEP
    if s[w + W_MODE] == OFF and s[o + W_MODE] == OFF:
        return WITHIN
    if s[w + W_MODE] != SYNC or s[o + W_MODE] in (SEARCH, OFF) or s[o + W_NEXT] >= s[o + W_NEED]:
        return OUT_OF_STEP
    if s[G_PIECES] < 0 and s[G_TOP] + P_COUNT > len(s):
        return OUT_OF_STEP
    return WITHIN if after < s[w + W_NEED] else ENDS


@njit
def take(s: Ints, c: int) -> None:
    """The frame that is looked at, which is WITHIN or ENDS, becomes part of its connection; cutting is the caller's."""
    ts, wire = s[NOW_TS], s[NOW_WIRE]
    w = way_of(c, s[NOW_BIT])
    o = other_way(c, w)
    touch(s, c)
    s[c + C_TICK] += 1
    s[c + C_LAST] = max(s[c + C_LAST], ts)
    s[w + W_FRAMES] += 1
    s[w + W_BYTES] += wire
    remember_acknowledged(s, c, ts)
    acked = offset_of(s, o, s[NOW_ACK])
    s[o + W_ACKED] = max(s[o + W_ACKED], acked)
    s[o + W_SHOWN] = max(s[o + W_SHOWN], acked)
    at = offset_of(s, w, s[NOW_SEQ])
    if wire == 0:
        s[NOW_OFFSET] = -1
        if at - s[w + W_TOP] < BELIEVABLE >> 6:
            s[w + W_TOP] = max(s[w + W_TOP], at)
    else:
        s[NOW_OFFSET] = at
        s[w + W_TOP] = max(s[w + W_TOP], at + wire)
        s[w + W_SHOWN] = max(s[w + W_SHOWN], at + wire)
        s[w + W_NEXT] = at + wire
        if s[w + W_MODE] != OFF:
            p = new_piece(s, at, wire, DATA, s[NOW_ADDRESS])
            stamp(s, p)
            append(s, w, p)
            s[G_PENDING] += wire if s[w + W_END] >= 0 else wire + PIECE_BYTES
    s[c + C_DEADLINE] = min(s[c + C_LAST] + s[L_IDLE_NS], s[c + C_DUE])
