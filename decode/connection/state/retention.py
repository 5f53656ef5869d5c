"""What outlives a call: bytes leave the call's payload for the arena, and heap and arena are packed when mostly empty.

Knows: everything that is reachable from a connection: its directions' lists, its waiting messages, their pieces.
Refuses to know: what any of it is for.
Rule: nothing here changes what a later call finds, only where it lies. Packing costs as much as what is alive.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

from wirecheck.decode.connection.state.slots import (
    C_ANSWERS,
    C_ANSWERS_TAIL,
    C_ASKED,
    C_ASKED_TAIL,
    C_COUNT,
    C_SIZE,
    C_TOUCH_NEXT,
    DATA,
    G_ARENA,
    G_ARENA_LIVE,
    G_CONNECTIONS,
    G_LINES,
    G_PIECES,
    G_TOP,
    G_TOUCHED,
    G_TOUCHED_COUNT,
    G_WAITS,
    H_COUNT,
    KNOWN,
    KNOWN_KEYS,
    NEXT,
    P_ADDRESS,
    P_AT,
    P_COUNT,
    P_FRAME_LAST,
    P_KIND,
    P_LENGTH,
    P_TS_LAST,
    Q_COUNT,
    Q_PIECES,
    Q_SETTLED,
    SCRATCH_BYTES,
    SYNC,
    UNSET,
    W_AT,
    W_COUNT,
    W_END,
    W_HEAD,
    W_HELD,
    W_HELD_TAIL,
    W_MODE,
    W_PIECES,
    W_SETTLED,
    W_TAIL,
)
from wirecheck.decode.copying import copy

if TYPE_CHECKING:
    from wirecheck.decode.connection.state.slots import Bytes, Ints

NEVER = 1 << 62


@njit
def touched(s: Ints) -> Any:
    """The connections touched in this call, the first one first."""
    rows = np.empty(s[G_TOUCHED_COUNT], np.int64)
    c = s[G_TOUCHED]
    for i in range(len(rows) - 1, -1, -1):
        rows[i] = c
        c = s[c + C_TOUCH_NEXT]
    return rows


@njit
def unsettled(s: Ints, rows: Ints) -> Any:
    """Bytes of these connections that still lie in this call's payload."""
    total = 0
    for c in rows:
        for w in (c + C_COUNT, c + C_COUNT + W_COUNT):
            first = s[w + W_HEAD] if s[w + W_SETTLED] < 0 else s[w + W_SETTLED]
            total += _in_payload(s, first) + _in_payload(s, s[w + W_HELD])
        for head in (s[c + C_ASKED], s[c + C_ANSWERS]):
            q = head
            while q >= 0:
                if s[q + Q_SETTLED] == 0:
                    total += _in_payload(s, s[q + Q_PIECES])
                q = s[q + NEXT]
    return total


@njit
def _in_payload(s: Ints, p: int) -> Any:
    total = 0
    while p >= 0:
        if s[p + P_KIND] == DATA and s[p + P_ADDRESS] >= 0:
            total += s[p + P_LENGTH]
        p = s[p + NEXT]
    return total


@njit
def settle(s: Ints, new: Bytes, old: Bytes, rows: Ints) -> None:
    """Copy the bytes of these connections into the arena; a message's pieces become one where they lie together."""
    for c in rows:
        for w in (c + C_COUNT, c + C_COUNT + W_COUNT):
            in_body = s[w + W_MODE] == SYNC and s[w + W_END] >= 0
            first = s[w + W_HEAD] if s[w + W_SETTLED] < 0 else s[w + W_SETTLED]
            last, merged = _settle_list(s, new, old, first, s[w + W_AT] if in_body else NEVER)
            s[w + W_PIECES] -= merged
            s[w + W_SETTLED] = last
            s[w + W_TAIL] = last
            _settle_list(s, new, old, s[w + W_HELD], NEVER)
        for head in (s[c + C_ASKED], s[c + C_ANSWERS]):
            q = head
            while q >= 0:
                if s[q + Q_SETTLED] == 0:
                    _settle_list(s, new, old, s[q + Q_PIECES], UNSET)
                    s[q + Q_SETTLED] = 1
                q = s[q + NEXT]


@njit
def _settle_list(s: Ints, new: Bytes, old: Bytes, p: int, merge_from: int) -> Any:
    last, merged = -1, 0
    while p >= 0:
        length, following = s[p + P_LENGTH], s[p + NEXT]
        if s[p + P_KIND] == DATA and s[p + P_ADDRESS] >= 0:
            start, to = s[p + P_ADDRESS], s[G_ARENA]
            copy(new, start, old, to, length)
            s[p + P_ADDRESS] = -1 - to
            s[G_ARENA] += length
            s[G_ARENA_LIVE] += length
        if last >= 0 and s[last + P_AT] >= merge_from and _touching(s, last, p):
            s[last + P_LENGTH] += length
            s[last + P_TS_LAST] = max(s[last + P_TS_LAST], s[p + P_TS_LAST])
            s[last + P_FRAME_LAST] = max(s[last + P_FRAME_LAST], s[p + P_FRAME_LAST])
            s[last + NEXT] = following
            s[p + NEXT] = s[G_PIECES]
            s[G_PIECES] = p
            s[G_PIECES + 1] += 1
            merged += 1
        else:
            last = p
        p = following
    return last, merged


@njit
def _touching(s: Ints, p: int, q: int) -> Any:
    if s[p + P_KIND] != s[q + P_KIND]:
        return False
    if s[p + P_KIND] != DATA:
        return True
    return s[p + P_ADDRESS] - s[p + P_LENGTH] == s[q + P_ADDRESS]


def spare_words(s: Ints) -> int:
    """Of the heap, what lies in free lists."""
    sizes = ((G_PIECES, P_COUNT), (G_WAITS, Q_COUNT), (G_CONNECTIONS, C_SIZE), (G_LINES, H_COUNT))
    return sum(int(s[pool + 1]) * size for pool, size in sizes)


@njit
def pack(s: Ints, old: Bytes, rows: Ints, t: Ints, arena: Bytes) -> Any:
    """Move these connections, all there are, into another heap and arena; where each now is."""
    head = KNOWN + 3 * s[KNOWN_KEYS]
    t[:head] = s[:head]
    t[G_TOP], t[G_ARENA] = head, SCRATCH_BYTES
    for pool in (G_PIECES, G_WAITS, G_CONNECTIONS, G_LINES):
        t[pool], t[pool + 1] = -1, 0
    moved = np.empty(len(rows), np.int64)
    for k in range(len(rows)):
        c, to = rows[k], t[G_TOP]
        moved[k] = to
        t[to : to + C_SIZE] = s[c : c + C_SIZE]
        t[G_TOP] += C_SIZE
        for w in (to + C_COUNT, to + C_COUNT + W_COUNT):
            t[w + W_HEAD], t[w + W_TAIL] = _pack_pieces(s, old, t[w + W_HEAD], t, arena)
            t[w + W_SETTLED] = t[w + W_TAIL]
            t[w + W_HELD], t[w + W_HELD_TAIL] = _pack_pieces(s, old, t[w + W_HELD], t, arena)
        t[to + C_ASKED], t[to + C_ASKED_TAIL] = _pack_waits(s, old, t[to + C_ASKED], t, arena)
        t[to + C_ANSWERS], t[to + C_ANSWERS_TAIL] = _pack_waits(s, old, t[to + C_ANSWERS], t, arena)
    t[G_ARENA_LIVE] = t[G_ARENA] - SCRATCH_BYTES
    return moved


@njit
def _pack_waits(s: Ints, old: Bytes, q: int, t: Ints, arena: Bytes) -> Any:
    first, last = -1, -1
    while q >= 0:
        to = t[G_TOP]
        t[to : to + Q_COUNT] = s[q : q + Q_COUNT]
        t[G_TOP] += Q_COUNT
        t[to + Q_PIECES], _ = _pack_pieces(s, old, s[q + Q_PIECES], t, arena)
        first, last = _linked(t, first, last, to)
        q = s[q + NEXT]
    return first, last


@njit
def _pack_pieces(s: Ints, old: Bytes, p: int, t: Ints, arena: Bytes) -> Any:
    first, last = -1, -1
    while p >= 0:
        to = t[G_TOP]
        t[to : to + P_COUNT] = s[p : p + P_COUNT]
        t[G_TOP] += P_COUNT
        if s[p + P_KIND] == DATA:
            start, length, at = -1 - s[p + P_ADDRESS], s[p + P_LENGTH], t[G_ARENA]
            copy(old, start, arena, at, length)
            t[to + P_ADDRESS] = -1 - at
            t[G_ARENA] += length
        first, last = _linked(t, first, last, to)
        p = s[p + NEXT]
    return first, last


@njit
def _linked(t: Ints, first: int, last: int, p: int) -> Any:
    t[p + NEXT] = -1
    if last >= 0:
        t[last + NEXT] = p
    return (p if first < 0 else first), p
