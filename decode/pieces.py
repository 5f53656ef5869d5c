"""Lists of pieces: how bytes of a stream are kept without moving them.

Knows: a piece is a run of one stream (bytes we have, bytes left out, bytes never seen) that points to where its bytes
lie; pieces form lists; lists are read, cut and given back here.
Refuses to know: why a piece is in which list.
Rule: bytes are copied twice at most: once when a call ends before their message does (settle), once into the message.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from decode.slots import (
    C_ANSWERS,
    C_ASKED,
    DATA,
    G_ARENA,
    G_ARENA_LIVE,
    G_PIECE_FREE,
    G_PIECE_TOP,
    G_PIECE_USED,
    GAP,
    P_ADDRESS,
    P_AT,
    P_FRAME,
    P_FRAME_LAST,
    P_KIND,
    P_LENGTH,
    P_NEXT,
    P_SOURCE,
    P_TS,
    P_TS_LAST,
    Q_NEXT,
    Q_PIECES,
    Q_SETTLED,
    W_FROM,
    W_HEAD,
    W_HELD,
    W_KEPT,
    W_PIECES,
    W_SETTLED,
    W_TAIL,
    Bytes,
    Ints,
    Memory,
)


@njit
def new_piece(m: Memory, at: int, length: int, kind: int, address: int) -> Any:
    whole = m.whole
    p = whole[G_PIECE_FREE]
    if p >= 0:
        whole[G_PIECE_FREE] = m.piece[p, P_NEXT]
    else:
        p = whole[G_PIECE_TOP]
        whole[G_PIECE_TOP] += 1
    whole[G_PIECE_USED] += 1
    m.piece[p, P_NEXT] = -1
    m.piece[p, P_AT] = at
    m.piece[p, P_LENGTH] = length
    m.piece[p, P_KIND] = kind
    m.piece[p, P_ADDRESS] = address
    return p


@njit
def stamp(m: Memory, p: int, ts: int, frame: int, source: int) -> None:
    m.piece[p, P_TS] = ts
    m.piece[p, P_TS_LAST] = ts
    m.piece[p, P_FRAME] = frame
    m.piece[p, P_FRAME_LAST] = frame
    m.piece[p, P_SOURCE] = source


@njit
def copy_stamp(m: Memory, p: int, q: int) -> None:
    for column in range(P_TS, P_SOURCE + 1):
        m.piece[q, column] = m.piece[p, column]


@njit
def free_piece(m: Memory, p: int) -> None:
    if m.piece[p, P_KIND] == DATA and m.piece[p, P_ADDRESS] < 0:
        m.whole[G_ARENA_LIVE] -= m.piece[p, P_LENGTH]
    m.piece[p, P_NEXT] = m.whole[G_PIECE_FREE]
    m.whole[G_PIECE_FREE] = p
    m.whole[G_PIECE_USED] -= 1


@njit
def free_list(m: Memory, p: int) -> None:
    while p >= 0:
        following = m.piece[p, P_NEXT]
        free_piece(m, p)
        p = following


@njit
def advance_front(m: Memory, p: int, count: int) -> None:
    """The piece without its first `count` bytes (fewer than it has)."""
    m.piece[p, P_AT] += count
    m.piece[p, P_LENGTH] -= count
    if m.piece[p, P_KIND] == DATA:
        if m.piece[p, P_ADDRESS] >= 0:
            m.piece[p, P_ADDRESS] += count
        else:
            m.piece[p, P_ADDRESS] -= count
            m.whole[G_ARENA_LIVE] -= count


@njit
def split(m: Memory, p: int, count: int) -> Any:
    """Cut the piece after `count` bytes; the rest is a new piece behind it."""
    address = m.piece[p, P_ADDRESS]
    if m.piece[p, P_KIND] == DATA:
        address = address + count if address >= 0 else address - count
    rest = new_piece(m, m.piece[p, P_AT] + count, m.piece[p, P_LENGTH] - count, m.piece[p, P_KIND], address)
    copy_stamp(m, p, rest)
    m.piece[rest, P_NEXT] = m.piece[p, P_NEXT]
    m.piece[p, P_NEXT] = rest
    m.piece[p, P_LENGTH] = count
    return rest


@njit
def append(m: Memory, w: int, p: int) -> None:
    """The piece becomes the newest in order of direction w."""
    way = m.way
    if way[w, W_HEAD] < 0:
        way[w, W_HEAD] = p
        way[w, W_FROM] = m.piece[p, P_AT]
    else:
        m.piece[way[w, W_TAIL], P_NEXT] = p
    way[w, W_TAIL] = p
    m.piece[p, P_NEXT] = -1
    way[w, W_PIECES] += 1
    if m.piece[p, P_KIND] == DATA:
        way[w, W_KEPT] += m.piece[p, P_LENGTH]


@njit
def detach(m: Memory, w: int, upto: int) -> Any:
    """Take the pieces before offset `upto` off direction w, as a list; -1 if there are none."""
    way = m.way
    first = way[w, W_HEAD]
    if first < 0 or m.piece[first, P_AT] >= upto:
        return -1
    last, p = -1, first
    while p >= 0 and m.piece[p, P_AT] < upto:
        excess = m.piece[p, P_AT] + m.piece[p, P_LENGTH] - upto
        if excess > 0:
            rest = split(m, p, m.piece[p, P_LENGTH] - excess)
            way[w, W_PIECES] += 1
            if way[w, W_TAIL] == p:
                way[w, W_TAIL] = rest
            if way[w, W_SETTLED] == p:
                way[w, W_SETTLED] = -1
        way[w, W_PIECES] -= 1
        if m.piece[p, P_KIND] == DATA:
            way[w, W_KEPT] -= m.piece[p, P_LENGTH]
        if way[w, W_SETTLED] == p:
            way[w, W_SETTLED] = -1
        last = p
        p = m.piece[p, P_NEXT]
    m.piece[last, P_NEXT] = -1
    way[w, W_HEAD] = p
    if p < 0:
        way[w, W_TAIL] = -1
    way[w, W_FROM] = upto
    return first


@njit
def without_front(m: Memory, p: int, count: int) -> Any:
    """The list without its first `count` bytes; -1 if nothing remains."""
    while p >= 0 and m.piece[p, P_LENGTH] <= count:
        count -= m.piece[p, P_LENGTH]
        following = m.piece[p, P_NEXT]
        free_piece(m, p)
        p = following
    if p >= 0 and count > 0:
        advance_front(m, p, count)
    return p


@njit
def read(m: Memory, p: int, at: int, out: Bytes, limit: int) -> Any:
    """Copy bytes from stream offset `at` on into `out`, up to `limit` or the first that is not there; how many."""
    while p >= 0 and m.piece[p, P_AT] + m.piece[p, P_LENGTH] <= at:
        p = m.piece[p, P_NEXT]
    count = 0
    while p >= 0 and count < limit and m.piece[p, P_KIND] == DATA:
        skip = at + count - m.piece[p, P_AT]
        length = min(m.piece[p, P_LENGTH] - skip, limit - count)
        address = m.piece[p, P_ADDRESS]
        if address >= 0:
            source, start = m.payload, address + skip
        else:
            source, start = m.arena, -1 - address + skip
        for i in range(length):
            out[count + i] = source[start + i]
        count += length
        p = m.piece[p, P_NEXT]
    return count


@njit
def byte_at(m: Memory, address: int) -> Any:
    return m.payload[address] if address >= 0 else m.arena[-1 - address]


@njit
def seen_last(m: Memory, p: int) -> Any:
    """(time, frame) of the newest packet in the list, bytes of it that were never seen."""
    ts, frame, gap = m.piece[p, P_TS_LAST], m.piece[p, P_FRAME_LAST], 0
    while p >= 0:
        if m.piece[p, P_KIND] == GAP:
            gap += m.piece[p, P_LENGTH]
        else:
            ts, frame = max(ts, m.piece[p, P_TS_LAST]), max(frame, m.piece[p, P_FRAME_LAST])
        p = m.piece[p, P_NEXT]
    return ts, frame, gap


# --- between calls: bytes move from the call's payload into the arena


@njit
def unsettled(m: Memory, c: int) -> Any:
    """Bytes of connection c that still lie in this call's payload."""
    total = 0
    for w in (2 * c, 2 * c + 1):
        first = m.way[w, W_HEAD] if m.way[w, W_SETTLED] < 0 else m.way[w, W_SETTLED]
        total += _in_payload(m, first) + _in_payload(m, m.way[w, W_HELD])
    for waiting in (m.connection[c, C_ASKED], m.connection[c, C_ANSWERS]):
        q = waiting
        while q >= 0:
            if m.wait[q, Q_SETTLED] == 0:
                total += _in_payload(m, m.wait[q, Q_PIECES])
            q = m.wait[q, Q_NEXT]
    return total


@njit
def _in_payload(m: Memory, p: int) -> Any:
    total = 0
    while p >= 0:
        if m.piece[p, P_KIND] == DATA and m.piece[p, P_ADDRESS] >= 0:
            total += m.piece[p, P_LENGTH]
        p = m.piece[p, P_NEXT]
    return total


@njit
def settle(m: Memory, c: int, body_from: Ints) -> None:
    """Copy the bytes of connection c into the arena; body_from[side]: pieces from there on are one message's body."""
    for side in (0, 1):
        w = 2 * c + side
        first = m.way[w, W_HEAD] if m.way[w, W_SETTLED] < 0 else m.way[w, W_SETTLED]
        last, merged = _move(m, first, body_from[side])
        m.way[w, W_PIECES] -= merged
        m.way[w, W_SETTLED] = last
        m.way[w, W_TAIL] = last
        _move(m, m.way[w, W_HELD], np.int64(1 << 62))
    for waiting in (m.connection[c, C_ASKED], m.connection[c, C_ANSWERS]):
        q = waiting
        while q >= 0:
            if m.wait[q, Q_SETTLED] == 0:
                _move(m, m.wait[q, Q_PIECES], np.int64(-(1 << 62)))
                m.wait[q, Q_SETTLED] = 1
            q = m.wait[q, Q_NEXT]


@njit
def _move(m: Memory, p: int, merge_from: int) -> Any:
    last, merged = -1, 0
    while p >= 0:
        length = m.piece[p, P_LENGTH]
        if m.piece[p, P_KIND] == DATA and m.piece[p, P_ADDRESS] >= 0:
            start, to = m.piece[p, P_ADDRESS], m.whole[G_ARENA]
            m.arena[to : to + length] = m.payload[start : start + length]
            m.piece[p, P_ADDRESS] = -1 - to
            m.whole[G_ARENA] += length
            m.whole[G_ARENA_LIVE] += length
        if last >= 0 and m.piece[last, P_AT] >= merge_from and _touching(m, last, p):
            _join(m, last, p)
            merged += 1
            p = m.piece[last, P_NEXT]
            continue
        last = p
        p = m.piece[p, P_NEXT]
    return last, merged


@njit
def _touching(m: Memory, p: int, q: int) -> Any:
    if m.piece[p, P_KIND] != m.piece[q, P_KIND]:
        return False
    if m.piece[p, P_KIND] != DATA:
        return True
    return m.piece[p, P_ADDRESS] - m.piece[p, P_LENGTH] == m.piece[q, P_ADDRESS]


@njit
def _join(m: Memory, p: int, q: int) -> None:
    m.piece[p, P_LENGTH] += m.piece[q, P_LENGTH]
    m.piece[p, P_TS_LAST] = max(m.piece[p, P_TS_LAST], m.piece[q, P_TS_LAST])
    m.piece[p, P_FRAME_LAST] = max(m.piece[p, P_FRAME_LAST], m.piece[q, P_FRAME_LAST])
    m.piece[p, P_NEXT] = m.piece[q, P_NEXT]
    m.piece[q, P_NEXT] = m.whole[G_PIECE_FREE]
    m.whole[G_PIECE_FREE] = q
    m.whole[G_PIECE_USED] -= 1


@njit
def move_alive(m: Memory, connections: int, arena: Bytes) -> None:
    """Move what is alive in the arena into a new one; all bytes are settled."""
    used = 0
    for c in range(connections):
        for head in (m.way[2 * c, W_HEAD], m.way[2 * c, W_HELD], m.way[2 * c + 1, W_HEAD], m.way[2 * c + 1, W_HELD]):
            used = _moved(m, head, arena, used)
        for waiting in (m.connection[c, C_ASKED], m.connection[c, C_ANSWERS]):
            q = waiting
            while q >= 0:
                used = _moved(m, m.wait[q, Q_PIECES], arena, used)
                q = m.wait[q, Q_NEXT]
    m.whole[G_ARENA] = used
    m.whole[G_ARENA_LIVE] = used


@njit
def _moved(m: Memory, p: int, arena: Bytes, used: int) -> Any:
    while p >= 0:
        if m.piece[p, P_KIND] == DATA:
            start, length = -1 - m.piece[p, P_ADDRESS], m.piece[p, P_LENGTH]
            arena[used : used + length] = m.arena[start : start + length]
            m.piece[p, P_ADDRESS] = -1 - used
            used += length
        p = m.piece[p, P_NEXT]
    return used


@njit(cache=True)
def gather(payload: Bytes, arena: Bytes, part: Ints, parts: int, out: Bytes) -> None:
    """Copy the parts, in order, into the messages' bytes."""
    at = 0
    for i in range(parts):
        address, length = part[i, 0], part[i, 1]
        if address >= 0:
            out[at : at + length] = payload[address : address + length]
        else:
            out[at : at + length] = arena[-1 - address : -1 - address + length]
        at += length
